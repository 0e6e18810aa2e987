//! MariaDB with InnoDB tables.

use std::ffi::OsString;
use std::time::Duration;

use mysql::consts::CapabilityFlags;
use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder, Statement};
use rustix::process::Signal;
use units::Bytes;

use crate::clients::{LoadClient, MariadbLoad};
use crate::error::{CONNECT, with_causes};
use crate::named::{Looked, MYSQL_PWD, ServedLoad, ServerUrl};
use crate::process::{self, Ending, Launch, User};
use crate::programs::{self, Packages};
use crate::row::Row;
use crate::server::{Base, Commits, ServerCounter};
use crate::site::{Kit, Site, Started};
use crate::{DbError, SessionError};

const DATABASE: &str = "plimsoll";
const TABLE: &str = "create table commits (id bigint not null auto_increment primary key, \
    session int not null, n bigint not null, pad varchar(100) not null) engine = InnoDB, \
    character set = latin1";
const INSERT: &str = "insert into commits (session, n, pad) values (?, ?, ?)";

const ENDING: Ending =
    &[(Signal::TERM, Duration::from_secs(10)), (Signal::KILL, Duration::from_secs(10))];

/// What is counted, as it is called here and there; of bytes where the name says so, and of milliseconds
/// where it is a time.
const COUNTERS: &[(&str, &str)] = &[
    ("Handler_commit", "commits"),
    ("Com_insert", "rows"),
    ("Innodb_os_log_written", "log bytes"),
    ("Innodb_log_writes", "log writes"),
    // Of data and log: it does not count them apart.
    ("Innodb_data_fsyncs", "file syncs"),
    ("Innodb_data_reads", "file reads"),
    ("Innodb_pages_read", "pages read"),
    ("Innodb_pages_written", "pages written"),
    ("Innodb_row_lock_waits", "row lock waits"),
    ("Innodb_row_lock_time", "lock wait time"),
];

/// What a server in use asks of its storage, as [`COUNTERS`].
const ASKED: &[(&str, &str)] = &[
    ("Innodb_os_log_written", "log bytes"),
    ("Innodb_pages_read", "pages read"),
    ("Innodb_pages_written", "pages written"),
];

/// What is read back: what decides about durability and the device.
const SETTINGS: &str = "version innodb_page_size innodb_buffer_pool_size \
    innodb_flush_log_at_trx_commit innodb_flush_method innodb_doublewrite innodb_log_file_size \
    innodb_log_buffer_size innodb_log_group_home_dir innodb_io_capacity innodb_io_capacity_max \
    innodb_flush_neighbors innodb_use_native_aio innodb_use_atomic_writes log_bin sync_binlog \
    autocommit max_connections performance_schema";

/// How the server is started, besides its paths, its memory and its sessions. At the end its pages
/// need not reach the device: they are removed.
const OPTIONS: &str = "--skip-networking --skip-name-resolve --skip-log-bin \
    --performance-schema=OFF --innodb_flush_log_at_trx_commit=1 --innodb_flush_method=O_DIRECT \
    --innodb_doublewrite=1 --innodb_fast_shutdown=2";

/// How an empty database is made.
const MAKING: &str = "--auth-root-authentication-method=normal --skip-test-db --skip-name-resolve";

const PLACES: &str =
    "/usr/bin /usr/sbin /usr/libexec /usr/local/sbin /usr/local/mysql/bin /usr/local/mysql/scripts";

pub(crate) fn kit() -> Result<Kit, DbError> {
    let packages = Packages { debian: "mariadb-server", rhel: "mariadb-server" };
    let places = programs::places(PLACES);
    let server = programs::find(&["mariadbd", "mysqld"], &places, packages)?;
    let said = programs::version(&server)?;
    if !said.contains("MariaDB") {
        return Err(DbError::OtherProgram { path: server, wanted: "MariaDB", said });
    }
    let maker = programs::find(&["mariadb-install-db", "mysql_install_db"], &places, packages)?;
    let version = said.split_once("Ver ").map_or("?", |(_, after)| after.trim_start());
    let program = format!("MariaDB {}", version.split(['-', ' ']).next().unwrap_or("?"));
    let user = User::of_package("mysql", &program)?;
    Ok(Kit { program, server, maker, setpriv: programs::setpriv()?, user })
}

pub(crate) fn start(site: &Site<'_>, stops: &dyn Fn() -> bool) -> Result<Started, DbError> {
    let mut arguments: Vec<OsString> = vec!["--no-defaults".into()];
    arguments.push(option("--datadir=", &site.data));
    arguments.push("--innodb_log_file_size=96M".into());
    // The log that the first one makes is the one that the second one finds.
    arguments.extend(site.log.iter().map(|log| option("--innodb_log_group_home_dir=", log)));
    let mut launch = Launch {
        setpriv: &site.kit.setpriv,
        user: site.kit.user.as_ref(),
        program: &site.kit.maker,
        arguments: arguments.clone(),
        directory: &site.data,
        log: &site.words,
        orphaned: "KILL",
        ending: process::MAKER_ENDING,
    };
    launch.arguments.extend(MAKING.split_whitespace().map(Into::into));
    if !launch.run(stops)? {
        return Ok(None);
    }
    let socket = site.socket.join("s");
    arguments.push(option("--socket=", &socket));
    arguments.push(option("--pid-file=", &site.data.join("pid")));
    arguments.push(format!("--innodb_buffer_pool_size={}", site.memory.get()).into());
    arguments.push(format!("--max_connections={}", site.sessions + 5).into());
    arguments.extend(OPTIONS.split_whitespace().map(Into::into));
    launch.program = &site.kit.server;
    launch.arguments = arguments;
    launch.ending = ENDING;
    let options = |database: Option<&str>| {
        let builder = OptsBuilder::new().user(Some("root")).db_name(database);
        Opts::from(builder.socket(Some(socket.to_string_lossy())))
    };
    let connected = launch.serve(
        stops,
        |process| site.place.serves(process.pid),
        || Conn::new(options(None)).map_err(|error| with_causes(&error)),
    )?;
    let Some((process, mut conn)) = connected else { return Ok(None) };
    for statement in ["create database plimsoll", "use plimsoll"] {
        conn.query_drop(statement).map_err(DbError::query("make the database"))?;
    }
    Ok(Some((process, base(options(Some(DATABASE)), conn)?)))
}

/// Makes the table of commits.
fn base(options: Opts, mut conn: Conn) -> Result<Box<dyn Base>, DbError> {
    for statement in [TABLE, "insert into commits values (0, 0, 0, '')"] {
        conn.query_drop(statement).map_err(DbError::query("make the table"))?;
    }
    Ok(Box::new(Mariadb { options, conn: conn.into() }))
}

fn connect(url: &ServerUrl, database: Option<&str>) -> Result<(Opts, Conn), DbError> {
    let options = Opts::from_url(&url.text()).map_err(DbError::query("read the URL"))?;
    let mut builder = OptsBuilder::from_opts(options).pass(std::env::var(MYSQL_PWD).ok());
    builder = builder.tcp_connect_timeout(Some(Duration::from_secs(5)));
    if let Some(database) = database {
        builder = builder.db_name(Some(database));
    }
    let options = Opts::from(builder);
    let conn = Conn::new(options.clone()).map_err(DbError::query(CONNECT))?;
    Ok((options, conn))
}

pub(crate) fn attach(url: &ServerUrl, database: &str) -> Result<Box<dyn Base>, DbError> {
    let (options, conn) = connect(url, Some(database))?;
    base(options, conn)
}

pub(crate) fn execute(url: &ServerUrl, sql: &str, what: &'static str) -> Result<(), DbError> {
    connect(url, None)?.1.query_drop(sql).map_err(DbError::query(what))
}

pub(crate) fn look(url: &ServerUrl) -> Result<Looked, DbError> {
    let (_, mut conn) = connect(url, None)?;
    let failed = || DbError::query::<mysql::Error>("look at the server");
    let version: Option<String> = conn.query_first("select version()").map_err(failed())?;
    let version = version.unwrap_or_default();
    let names = "'read_only','innodb_flush_log_at_trx_commit','log_bin','sync_binlog'";
    let ask = format!("show global variables where variable_name in ({names})");
    let settings: Vec<(String, String)> = conn.query(ask).map_err(failed())?;
    let setting = |wanted: &str| {
        settings.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
    };
    if setting("read_only") != "OFF" {
        return Err(DbError::Unfit(url.text(), "is read-only, as a replica is"));
    }
    let wanted =
        [("innodb_flush_log_at_trx_commit", true), ("sync_binlog", setting("log_bin") == "ON")];
    let undurable = wanted.iter().filter(|(name, counts)| *counts && setting(name) != "1");
    let left: Vec<String> = conn.query("show databases like 'plimsoll\\_%'").map_err(failed())?;
    Ok(Looked {
        program: program(&version),
        undurable: undurable.map(|(name, _)| format!("{name}={}", setting(name))).collect(),
        left,
    })
}

fn option(name: &str, path: &std::path::Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

struct Mariadb {
    options: Opts,
    /// Ours, for questions. A lock: it can be moved to another thread, but not be shared.
    conn: std::sync::Mutex<Conn>,
}

/// What a server calls so, in this order.
fn pairs(conn: &mut Conn, of: &str, names: &[&str]) -> Result<Vec<(String, String)>, mysql::Error> {
    let list = names.join("','");
    let mut found: Vec<(String, String)> =
        conn.query(format!("show global {of} where variable_name in ('{list}')"))?;
    found.sort_by_key(|(name, _)| names.iter().position(|known| known.eq_ignore_ascii_case(name)));
    Ok(found)
}

/// Reads counters.
///
/// * `counters`: as [`COUNTERS`].
fn read(conn: &mut Conn, counters: &[(&str, &'static str)]) -> Result<Vec<ServerCounter>, DbError> {
    let names: Vec<_> = counters.iter().map(|(theirs, _)| *theirs).collect();
    let found = pairs(conn, "status", &names).map_err(DbError::query("read the counters"))?;
    let counter = |(name, value): &(String, String)| {
        let (_, name) = *counters.iter().find(|(theirs, _)| theirs == name)?;
        let value: u64 = value.parse().ok()?;
        Some(match name.rsplit(' ').next() {
            Some("time") => ServerCounter { name, unit: "us", value: 1000 * value },
            Some("bytes") => ServerCounter { name, unit: "B", value },
            _ => ServerCounter { name, unit: "", value },
        })
    };
    Ok(found.iter().filter_map(counter).collect())
}

/// A server whose counters are read, and nothing else.
pub(crate) fn observe(url: &ServerUrl) -> Result<ServedLoad, DbError> {
    let (_, mut conn) = connect(url, None)?;
    let failed = || DbError::query::<mysql::Error>("look at the server");
    let ask = "select version(), @@innodb_page_size, \
        (select cast(coalesce(sum(data_length + index_length), 0) as unsigned) \
            from information_schema.tables where table_schema not in \
            ('mysql', 'sys', 'performance_schema', 'information_schema'))";
    let about: Option<(String, u64, u64)> = conn.query_first(ask).map_err(failed())?;
    let (version, page, size) = about.unwrap_or_default();
    Ok(ServedLoad {
        program: program(&version),
        page: Bytes::new(page),
        size: Bytes::new(size),
        read: Box::new(move || {
            let mut all = read(&mut conn, ASKED)?;
            let value = numbers_taken(&mut conn)? / 2;
            all.push(ServerCounter { name: "commits", unit: "", value });
            Ok(all)
        }),
    })
}

/// A transaction takes a number when it first writes and another when it ends; one that only reads takes none.
/// `Com_commit` counts the latter too, and misses statements that commit by themselves.
fn numbers_taken(conn: &mut Conn) -> Result<u64, DbError> {
    let failed = || DbError::query("count transactions (the user needs the right PROCESS)");
    let said: Option<(String, String, String)> =
        conn.query_first("show engine innodb status").map_err(failed())?;
    let text = said.unwrap_or_default().2;
    let number = text
        .split_once("Trx id counter ")
        .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| DbError::Unfit("the server".into(), "says nothing of its transactions"))
}

/// `MariaDB 10.11.19`.
fn program(version: &str) -> String {
    let kind = if version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
    format!("{kind} {}", version.split('-').next().unwrap_or("?"))
}

impl Base for Mariadb {
    fn client(&self) -> Result<Box<dyn LoadClient>, DbError> {
        let options = OptsBuilder::from_opts(self.options.clone())
            .additional_capabilities(CapabilityFlags::CLIENT_FOUND_ROWS);
        let conn = Conn::new(options).map_err(DbError::query("open a session"))?;
        Ok(Box::new(MariadbLoad::new(conn)))
    }

    fn session(&self, _session: i32) -> Result<Box<dyn Commits>, DbError> {
        let connect = || {
            let mut conn = Conn::new(self.options.clone())?;
            let insert = conn.prep(INSERT)?;
            Ok(Box::new(MariadbClient { conn, insert }) as Box<dyn Commits>)
        };
        connect().map_err(DbError::query::<mysql::Error>("open a session"))
    }

    fn counters(&mut self) -> Result<Vec<ServerCounter>, DbError> {
        let conn = self.conn.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        read(conn, COUNTERS)
    }

    fn size(&mut self) -> Option<u64> {
        let conn = self.conn.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        let ask = "select cast(sum(data_length + index_length) as unsigned) \
            from information_schema.tables where table_schema = database()";
        conn.query_first(ask).ok()?
    }

    fn settings(&mut self) -> Result<Vec<(String, String)>, DbError> {
        let names: Vec<_> = SETTINGS.split_whitespace().collect();
        let conn = self.conn.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        pairs(conn, "variables", &names).map_err(DbError::query("read the settings"))
    }
}

struct MariadbClient {
    conn: Conn,
    insert: Statement,
}

impl Commits for MariadbClient {
    fn commit(&mut self, row: &Row) -> Result<(), SessionError> {
        let values = (row.session, row.n, row.pad.as_str());
        self.conn.exec_drop(&self.insert, values).map_err(|error| SessionError {
            number: match &error {
                mysql::Error::MySqlError(error) => i32::from(error.code),
                _ => -1,
            },
            text: with_causes(&error),
        })
    }
}
