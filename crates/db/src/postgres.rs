//! PostgreSQL.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::{Client, Config, NoTls, Statement};
use rustix::process::Signal;
use units::Bytes;

use crate::clients::{LoadClient, PostgresLoad};
use crate::error::{CONNECT, with_causes};
use crate::lock_watch::LockWatch;
use crate::named::{Looked, PGPASSWORD, ServedLoad, ServerUrl};
use crate::process::{self, Ending, Launch, User};
use crate::programs::{self, Packages};
use crate::row::Row;
use crate::server::{Base, Commits, ServerCounter};
use crate::site::{Kit, Site, Started};
use crate::{DbError, SessionError};

const TABLE: &str =
    "create table commits (session int not null, n bigint not null, pad text not null)";
const INSERT: &str = "insert into commits (session, n, pad) values ($1, $2, $3)";

/// Sessions report their counts once a second; this one at the end of this statement.
const SETTLE: &str = "select pg_stat_force_next_flush()";

/// Fast; then at once, without a checkpoint; then by force.
const ENDING: Ending = &[
    (Signal::INT, Duration::from_secs(10)),
    (Signal::QUIT, Duration::from_secs(5)),
    (Signal::KILL, Duration::from_secs(10)),
];

/// What is counted: name, unit, and what is selected; where versions differ, the first that works.
/// Log bytes are a position, not a statistic: exact at once. Commits are this database's, and our
/// questions are some of them.
const COUNTERS: &str = "\
rows | | n_tup_ins from pg_stat_user_tables where relname = 'commits'
commits | | xact_commit from pg_stat_database where datname = current_database()
log bytes | B | pg_current_wal_lsn() - '0/0'::pg_lsn
log records | | wal_records from pg_stat_wal
log page images | | wal_fpi from pg_stat_wal
log syncs | | wal_sync from pg_stat_wal | sum(fsyncs) from pg_stat_io where object = 'wal'
log sync time | us | wal_sync_time * 1000 from pg_stat_wal \
    | sum(fsync_time) * 1000 from pg_stat_io where object = 'wal'
pages read | | blks_read from pg_stat_database where datname = current_database()
pages found in the cache | | blks_hit from pg_stat_database where datname = current_database()
pages written | | buffers_checkpoint + buffers_clean + buffers_backend from pg_stat_bgwriter \
    | sum(writes) from pg_stat_io where object = 'relation'
checkpoints | | checkpoints_timed + checkpoints_req from pg_stat_bgwriter \
    | num_timed + num_requested from pg_stat_checkpointer";

/// What is asked of a server that is there before a database is made on it.
const LOOK: &str = "select current_setting('server_version'), pg_is_in_recovery(), \
    (select rolcreatedb or rolsuper from pg_roles where rolname = current_user), \
    current_setting('fsync'), current_setting('synchronous_commit'), \
    current_setting('full_page_writes')";
const LEFT: &str = "select datname::text from pg_database where datname like 'plimsoll\\_%'";

/// What a server in use asks of its storage, as [`COUNTERS`]. A transaction that writes takes a number.
const ASKED: &str = "\
commits | | pg_snapshot_xmax(pg_current_snapshot())::text::int8
log bytes | B | pg_current_wal_lsn() - '0/0'::pg_lsn
pages read | | sum(blks_read) from pg_stat_database
pages written | | buffers_checkpoint + buffers_clean + buffers_backend from pg_stat_bgwriter \
    | sum(writes) from pg_stat_io where object = 'relation'";
const ABOUT: &str = "select current_setting('server_version'), \
    current_setting('block_size')::int8, \
    (select coalesce(sum(pg_database_size(oid)), 0)::int8 from pg_database \
        where has_database_privilege(oid, 'connect'))";

/// What is read back: what decides about durability and the device.
const SETTINGS: &str = "server_version block_size shared_buffers fsync synchronous_commit \
    wal_sync_method full_page_writes wal_level wal_compression wal_buffers max_wal_size \
    wal_segment_size checkpoint_timeout checkpoint_completion_target commit_delay data_checksums \
    autovacuum max_connections huge_pages io_method debug_io_direct track_io_timing \
    track_wal_io_timing";

/// How the server is started, besides its paths, its memory and its sessions. One that lost a process
/// is no server to measure: it is to end, and be seen to.
const OPTIONS: &str = "listen_addresses= wal_level=minimal max_wal_senders=0 max_wal_size=1GB fsync=on \
    synchronous_commit=on full_page_writes=on autovacuum=on track_io_timing=on \
    track_wal_io_timing=on logging_collector=off log_checkpoints=on huge_pages=off \
    restart_after_crash=off";

/// Finds the programs; both in one directory, so that they are of one version.
pub(crate) fn kit() -> Result<Kit, DbError> {
    let mut places = programs::places("/usr/bin");
    places.extend(versions("/usr/lib/postgresql", ""));
    places.extend(versions("/usr", "pgsql-"));
    places.push("/usr/local/pgsql/bin".into());
    let packages = Packages { debian: "postgresql", rhel: "postgresql-server" };
    let has_both = |place: &PathBuf| programs::is_program(&place.join("initdb"));
    let both: Vec<_> = places.iter().filter(|place| has_both(place)).cloned().collect();
    let searched = if both.is_empty() { &places } else { &both };
    // A link from a directory of links leads to the real one.
    let found = programs::find(&["postgres"], searched, packages)?;
    let server = found.canonicalize().map_err(DbError::file("look at", &found))?;
    let maker = programs::find(&["initdb"], &[server.with_file_name("")], packages)?;
    let said = programs::version(&server)?;
    let version = said.split_whitespace().nth(2).unwrap_or("?");
    let program = format!("PostgreSQL {version}");
    let user = User::of_package("postgres", &program)?;
    Ok(Kit { program, server, maker, setpriv: programs::setpriv()?, user })
}

/// `bin` in the directories of each version, the highest first.
fn versions(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let numbers = name.to_str()?.strip_prefix(prefix)?.split('.').map(str::parse);
            Some((numbers.collect::<Result<_, _>>().ok()?, entry.path().join("bin")))
        })
        .collect();
    found.sort_by(|one, other| other.cmp(one));
    found.into_iter().map(|(_, path)| path).collect()
}

pub(crate) fn start(site: &Site<'_>, stops: &dyn Fn() -> bool) -> Result<Started, DbError> {
    let mut launch = Launch {
        setpriv: &site.kit.setpriv,
        user: site.kit.user.as_ref(),
        program: &site.kit.maker,
        arguments: ["--auth=trust", "--username=postgres", "--no-locale", "--encoding=UTF8"]
            .map(Into::into)
            .to_vec(),
        directory: &site.data,
        log: &site.words,
        orphaned: "KILL",
        ending: process::MAKER_ENDING,
    };
    // One sync of the file system comes after it.
    launch.arguments.extend(["--no-sync".into(), "--pgdata".into(), site.data.clone().into()]);
    if let Some(log) = &site.log {
        launch.arguments.extend(["--waldir".into(), log.clone().into()]);
    }
    if !launch.run(stops)? {
        return Ok(None);
    }
    launch.program = &site.kit.server;
    launch.arguments = arguments(site);
    // Gives its shared memory back, which it cannot when it is killed.
    launch.orphaned = "QUIT";
    launch.ending = ENDING;
    let config = config(&site.socket);
    let connected = launch.serve(
        stops,
        |process| site.place.serves(process.pid),
        || config.connect(NoTls).map_err(|error| with_causes(&error)),
    )?;
    let Some((process, client)) = connected else { return Ok(None) };
    Ok(Some((process, base(config, client)?)))
}

/// Makes the table of commits.
fn base(config: Config, mut client: Client) -> Result<Box<dyn Base>, DbError> {
    client.batch_execute(TABLE).map_err(DbError::query("make the table"))?;
    client.execute(INSERT, &[&0_i32, &0_i64, &""]).map_err(DbError::query("insert a row"))?;
    // That row is not to be counted later.
    let _ = client.batch_execute(SETTLE);
    let counted = counted(&mut client, COUNTERS);
    let client = Mutex::new(client);
    Ok(Box::new(Postgres { config, client, counted, locks: OnceLock::new() }))
}

fn connect(url: &ServerUrl, database: Option<&str>) -> Result<(Config, Client), DbError> {
    let mut config: Config = url.text().parse().map_err(DbError::query("read the URL"))?;
    config.application_name("plimsoll").connect_timeout(Duration::from_secs(5));
    if let Ok(password) = std::env::var(PGPASSWORD) {
        config.password(password);
    }
    if let Some(database) = database {
        config.dbname(database);
    }
    let client = config.connect(NoTls).map_err(DbError::query(CONNECT))?;
    Ok((config, client))
}

pub(crate) fn attach(url: &ServerUrl, database: &str) -> Result<Box<dyn Base>, DbError> {
    let (config, client) = connect(url, Some(database))?;
    base(config, client)
}

pub(crate) fn execute(url: &ServerUrl, sql: &str, what: &'static str) -> Result<(), DbError> {
    connect(url, None)?.1.batch_execute(sql).map_err(DbError::query(what))
}

pub(crate) fn look(url: &ServerUrl) -> Result<Looked, DbError> {
    let (_, mut client) = connect(url, None)?;
    let failed = || DbError::query::<postgres::Error>("look at the server");
    let row = client.query_one(LOOK, &[]).map_err(failed())?;
    let (version, is_replica, may): (String, bool, bool) = (row.get(0), row.get(1), row.get(2));
    if is_replica {
        return Err(DbError::Unfit(url.text(), "is a replica: it only reads"));
    }
    if !may {
        let why = "does not let this user make a database: alter role ... createdb";
        return Err(DbError::Unfit(url.text(), why));
    }
    let undurable = ["fsync", "synchronous_commit", "full_page_writes"];
    let off = (3..).zip(undurable).filter(|(at, _)| row.get::<_, String>(*at) == "off");
    let left = client.query(LEFT, &[]).map_err(failed())?;
    Ok(Looked {
        program: format!("PostgreSQL {}", version.split(' ').next().unwrap_or("?")),
        undurable: off.map(|(_, name)| format!("{name}=off")).collect(),
        left: left.iter().map(|row| row.get(0)).collect(),
    })
}

fn arguments(site: &Site<'_>) -> Vec<OsString> {
    let own = [
        format!("unix_socket_directories={}", quoted(&site.socket)),
        format!("shared_buffers={}kB", site.memory.get() / 1024),
        format!("max_connections={}", site.sessions + 5),
    ];
    let settings = OPTIONS.split_whitespace().map(OsString::from).chain(own.map(Into::into));
    let mut arguments = vec!["-D".into(), site.data.clone().into()];
    arguments.extend(settings.flat_map(|setting| ["-c".into(), setting]));
    arguments
}

/// The setting is a list: a comma in the path would make it two.
fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display().to_string().replace('"', "\"\""))
}

fn config(socket: &Path) -> Config {
    let mut config = Config::new();
    config.host_path(socket).user("postgres").dbname("postgres").application_name("plimsoll");
    config.connect_timeout(Duration::from_secs(5));
    config
}

/// A counter that this version has.
struct Counted {
    name: &'static str,
    unit: &'static str,
    select: String,
}

/// * `counters`: as [`COUNTERS`].
fn counted(client: &mut Client, counters: &'static str) -> Vec<Counted> {
    let mut works = |select: &String| client.simple_query(select).is_ok();
    let counters = counters.lines().filter_map(|line| {
        let mut parts = line.split('|').map(str::trim);
        let (name, unit) = (parts.next()?, parts.next()?);
        let select = parts.map(|from| format!("select {from}")).find(&mut works)?;
        Some(Counted { name, unit, select })
    });
    counters.collect()
}

/// Reads counters, all at one moment.
fn read(client: &mut Client, counted: &[Counted]) -> Result<Vec<ServerCounter>, DbError> {
    let failed = || DbError::query::<postgres::Error>("read the counters");
    let select = |counted: &Counted| format!("coalesce(({}), 0)::int8", counted.select);
    let asked: Vec<_> = counted.iter().map(select).collect();
    let row = client.query_one(&format!("select {}", asked.join(", ")), &[]).map_err(failed())?;
    let counter = |(index, counted): (usize, &Counted)| {
        let value = row.try_get::<_, i64>(index)?.max(0) as u64;
        Ok(ServerCounter { name: counted.name, unit: counted.unit, value })
    };
    let counters: Result<Vec<_>, postgres::Error> =
        counted.iter().enumerate().map(counter).collect();
    counters.map_err(failed())
}

/// A server whose counters are read, and nothing else.
pub(crate) fn observe(url: &ServerUrl) -> Result<ServedLoad, DbError> {
    let (_, mut client) = connect(url, None)?;
    let failed = || DbError::query::<postgres::Error>("look at the server");
    let row = client.query_one(ABOUT, &[]).map_err(failed())?;
    let (version, page, size): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
    let counted = counted(&mut client, ASKED);
    Ok(ServedLoad {
        program: format!("PostgreSQL {}", version.split(' ').next().unwrap_or("?")),
        page: Bytes::new(page.unsigned_abs()),
        size: Bytes::new(size.unsigned_abs()),
        read: Box::new(move || read(&mut client, &counted)),
    })
}

struct Postgres {
    config: Config,
    /// Ours, for questions. A lock: it can be moved to another thread, but not be shared.
    client: Mutex<Client>,
    counted: Vec<Counted>,
    /// Once transactions are played: commits of a row each wait for no lock.
    locks: OnceLock<LockWatch>,
}

impl Postgres {
    fn client(&mut self) -> &mut Client {
        self.client.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Base for Postgres {
    fn client(&self) -> Result<Box<dyn LoadClient>, DbError> {
        let client = self.config.connect(NoTls).map_err(DbError::query("open a session"))?;
        if self.locks.get().is_none() {
            let _ = self.locks.set(LockWatch::start(&self.config)?);
        }
        Ok(Box::new(PostgresLoad::new(client)))
    }

    fn session(&self, _session: i32) -> Result<Box<dyn Commits>, DbError> {
        let connect = || {
            let mut client = self.config.connect(NoTls)?;
            let insert = client.prepare(INSERT)?;
            Ok(Box::new(PostgresClient { client, insert }) as Box<dyn Commits>)
        };
        connect().map_err(DbError::query::<postgres::Error>("open a session"))
    }

    fn counters(&mut self) -> Result<Vec<ServerCounter>, DbError> {
        let client = self.client.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut counters = read(client, &self.counted)?;
        let waited = self.locks.get().and_then(LockWatch::waited_us);
        let name = "lock wait time";
        counters.extend(waited.map(|value| ServerCounter { name, unit: "us", value }));
        Ok(counters)
    }

    fn size(&mut self) -> Option<u64> {
        let row = self.client().query_one("select pg_database_size(current_database())", &[]);
        u64::try_from(row.ok()?.get::<_, i64>(0)).ok()
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, DbError> {
        let names: Vec<_> = SETTINGS.split_whitespace().collect();
        let ask = "select name, current_setting(name) from pg_settings where name = any($1)";
        let rows =
            self.client().query(ask, &[&names]).map_err(DbError::query("read the settings"))?;
        let mut found: Vec<(String, String)> =
            rows.iter().map(|row| (row.get(0), row.get(1))).collect();
        found.sort_by_key(|(name, _)| names.iter().position(|known| known == name));
        Ok(found)
    }
}

struct PostgresClient {
    client: Client,
    insert: Statement,
}

impl Commits for PostgresClient {
    fn commit(&mut self, row: &Row) -> Result<(), SessionError> {
        let values: [&(dyn postgres::types::ToSql + Sync); 3] = [&row.session, &row.n, &row.pad];
        self.client.execute(&self.insert, &values).map(drop).map_err(|error| told(&error))
    }

    fn settle(&mut self) -> Result<(), SessionError> {
        match self.client.batch_execute(SETTLE) {
            // Before version 15: sessions then report in their own time.
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_FUNCTION) => Ok(()),
            done => done.map_err(|error| told(&error)),
        }
    }
}

fn told(error: &postgres::Error) -> SessionError {
    let Some(database) = error.as_db_error() else {
        return SessionError { number: -1, text: with_causes(error) };
    };
    let state = database.code().code();
    SessionError {
        number: i32::from_str_radix(state, 36).unwrap_or(-1),
        text: format!("{} (SQLSTATE {state})", database.message()),
    }
}
