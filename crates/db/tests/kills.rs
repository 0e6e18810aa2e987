//! Servers and clients that are killed while they commit: nothing that was acknowledged is missing.
//!
//! `PLIMSOLL_KILLS` says how many kills of each engine there are: 4 unless it is set.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{directory, plan, started};
use db::{Engine, Server, ServerUrl, Surviving, left_behind, look_at_server, remove};

const SESSIONS: u32 = 8;
/// Set for a test that is started again as the program that is killed.
const COMMITTING: &str = "PLIMSOLL_TEST_DB_COMMITTING";

fn kills() -> u64 {
    std::env::var("PLIMSOLL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4)
}

/// From the number of the kill: the same at each run, and anywhere within a second.
fn moment(kill: u64) -> Duration {
    Duration::from_micros(100_000 + kill.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 900_000)
}

/// A server that can be killed and started again as it was.
struct Crashing {
    server: Server,
    command: Vec<String>,
    ids: [String; 2],
    again: Option<Child>,
}

impl Crashing {
    fn new(server: Server) -> Self {
        let process = format!("/proc/{}", server.pid().unwrap());
        let line = std::fs::read_to_string(format!("{process}/cmdline")).unwrap();
        let command = line.split_terminator('\0').map(str::to_owned).collect();
        let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
        let id = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().next().unwrap().to_owned()
        };
        let ids = [id("Uid:"), id("Gid:")];
        Self { server, command, ids, again: None }
    }

    /// The server and all its processes, at once.
    fn kill(&mut self) {
        let pid = match &mut self.again {
            Some(again) => again.id() as i32,
            None => self.server.pid().unwrap(),
        };
        let children = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent =
                stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse::<i32>().ok()?;
            (parent == pid).then(|| entry.file_name().to_str().unwrap().parse::<i32>().unwrap())
        });
        let all: Vec<i32> = std::iter::once(pid).chain(children).collect();
        for pid in all {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        self.again.take().map(|mut again| again.wait().unwrap());
    }

    fn start(&mut self) {
        let [uid, gid] = &self.ids;
        let mut command = Command::new("setpriv");
        if rustix::process::geteuid().is_root() {
            command.args([&format!("--reuid={uid}"), &format!("--regid={gid}"), "--clear-groups"]);
        }
        command.args(["--pdeathsig=KILL", "--"]).args(&self.command);
        command.current_dir(self.server.path().join("data")).env("LC_ALL", "C");
        self.again = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    /// As soon as the server answers again. A PostgreSQL does not start until the last process of the one
    /// before is gone.
    fn surviving(&mut self, ask: impl Fn() -> Option<Surviving>) -> Surviving {
        let since = Instant::now();
        loop {
            if let Some(found) = ask() {
                return found;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "the server does not come back");
            std::thread::sleep(Duration::from_millis(50));
            if self.again.as_mut().is_none_or(|again| again.try_wait().unwrap().is_some()) {
                self.start();
            }
        }
    }

    fn end(mut self) {
        self.kill();
        self.server.stop().unwrap();
    }
}

fn crashing(engine: Engine, on: &Path) -> Option<(Crashing, ServerUrl)> {
    let server = Crashing::new(started(&plan(engine, on))?);
    let socket = server.server.path().join("socket").display().to_string();
    let url = match engine {
        Engine::Postgres => format!("//postgres@/postgres?host={socket}"),
        _ => format!("//root@localhost/?socket={socket}/s"),
    };
    let url = ServerUrl::parse(engine, &url).unwrap();
    Some((server, url))
}

/// What survives kills at several moments, the first of them given.
fn killed(engine: Engine, first: u64, kills: u64, weaken: impl Fn(&Path)) -> Option<Surviving> {
    let on = directory();
    let (mut server, url) = crashing(engine, on.path())?;
    weaken(&server.server.path().join("socket"));
    let named = look_at_server(&url, 0xabc).unwrap().start(SESSIONS, &|| false).unwrap().unwrap();
    let mut all = Surviving { acknowledged: 0, missing: 0, unanswered: 0 };
    for kill in first..first + kills {
        let witness = named.witness(SESSIONS).unwrap();
        std::thread::sleep(moment(kill));
        server.kill();
        let since = Instant::now();
        while !witness.is_over() {
            assert!(since.elapsed() < Duration::from_secs(30), "sessions outlive their server");
            std::thread::sleep(Duration::from_millis(5));
        }
        let found = server.surviving(|| named.surviving(&witness).ok());
        println!("{engine}, kill {kill}: {found:?}, back after {:?}", since.elapsed());
        assert!(found.acknowledged > 0, "{engine}: nothing was committed before kill {kill}");
        assert!(found.unanswered <= u64::from(SESSIONS), "{engine}: {found:?}");
        all.acknowledged += found.acknowledged;
        all.missing += found.missing;
        all.unanswered += found.unanswered;
    }
    named.stop().unwrap();
    server.end();
    assert!(std::fs::read_dir(on.path()).unwrap().next().is_none());
    Some(all)
}

#[test]
fn nothing_acknowledged_is_missing_after_a_postgres_was_killed() {
    let all = killed(Engine::Postgres, 1, kills(), |_| ());
    assert!(all.is_none_or(|all| all.missing == 0), "{all:?}");
}

#[test]
fn nothing_acknowledged_is_missing_after_a_mariadb_was_killed() {
    let all = killed(Engine::Mariadb, 1001, kills(), |_| ());
    assert!(all.is_none_or(|all| all.missing == 0), "{all:?}");
}

/// The check can say no: these acknowledge commits that are in memory only.
#[test]
fn what_a_server_lost_that_lies_is_found() {
    let postgres = killed(Engine::Postgres, 1, 1, |socket| {
        let mut config = postgres::Config::new();
        let mut client =
            config.host_path(socket).user("postgres").connect(postgres::NoTls).unwrap();
        for weaken in [
            "alter role postgres set synchronous_commit = off",
            "alter system set wal_writer_delay = '10s'",
            "alter system set wal_writer_flush_after = '1GB'",
            "select pg_reload_conf()",
        ] {
            client.batch_execute(weaken).unwrap();
        }
    });
    assert!(postgres.is_none_or(|all| all.missing > 0), "{postgres:?}");
    // One kill: a server that is started again has the setting no more.
    let mariadb = killed(Engine::Mariadb, 1, 1, |socket| {
        let socket = socket.join("s");
        let options = mysql::OptsBuilder::new().user(Some("root")).socket(socket.to_str());
        let mut conn = mysql::Conn::new(options).unwrap();
        let weaken = "set global innodb_flush_log_at_trx_commit = 0";
        mysql::prelude::Queryable::query_drop(&mut conn, weaken).unwrap();
    });
    assert!(mariadb.is_none_or(|all| all.missing > 0), "{mariadb:?}");
}

/// Not a test: the program that is killed, if it is told so. Who starts it keeps what it says.
#[test]
fn committing_program() {
    let Ok(on) = std::env::var(COMMITTING) else { return };
    let server = started(&plan(Engine::Sqlite, Path::new(&on))).unwrap();
    let mut session = server.session().unwrap();
    for n in 1.. {
        session.commit().unwrap();
        println!("\nacknowledged {n}");
    }
}

#[test]
fn nothing_acknowledged_is_missing_after_a_program_with_sqlite_was_killed() {
    for kill in 1..=kills() {
        let on = directory();
        let mut program = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "committing_program", "--nocapture"])
            .env(COMMITTING, on.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(program.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut numbers = lines.filter_map(|line| line.strip_prefix("acknowledged ")?.parse().ok());
        let mut last: i64 = numbers.next().unwrap();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(moment(2000 + kill));
            program.kill().unwrap();
            program.wait().unwrap();
        });
        last = numbers.last().unwrap_or(last);
        killer.join().unwrap();
        let [left] = left_behind(on.path()).try_into().unwrap();
        let file = rusqlite::Connection::open(left.path.join("data/commits.db")).unwrap();
        let count = |which: &str| {
            let sql =
                format!("select count(*) from commits where session = 1 and n {which} {last}");
            file.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        println!("sqlite, kill {kill}: {last} acknowledged");
        assert_eq!(count("<="), last);
        assert!(count(">") <= 1);
        let sound = file.query_row("pragma integrity_check", [], |row| row.get::<_, String>(0));
        assert_eq!(sound.unwrap(), "ok");
        drop(file);
        remove(&left).unwrap();
    }
}
