//! Real servers in directories of the tests' own.

#![expect(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "helpers of tests")]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{KEY, directory, plan, started};
use db::{
    DbError, Engine, LeftDatabase, Plan, Server, ServerUrl, left_behind, look, look_at_server,
    remove,
};
use units::Bytes;

/// Set for a test that is started again as the program that is killed.
const KILLED: &str = "PLIMSOLL_TEST_DB_KILLED";

fn is_running(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

fn is_true_soon(what: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while !what() {
        if since.elapsed() > Duration::from_secs(30) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// Eight sessions at once, `rows` each, and what that was by the server's counters.
fn commit(server: &mut Server, rows: u32) -> Vec<(&'static str, u64)> {
    let before = server.counters().unwrap();
    let server_shared: &Server = server;
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut session = server_shared.session().unwrap();
                for _ in 0..rows {
                    assert_eq!(session.commit().unwrap(), 100);
                }
                session.settle().unwrap();
            });
        }
    });
    let after = server.counters().unwrap();
    let grown = before.iter().zip(&after).map(|(before, after)| {
        assert_eq!(before.name, after.name);
        assert!(after.value >= before.value, "{before:?} {after:?}");
        (after.name, after.value - before.value)
    });
    grown.collect()
}

fn setting<'a>(server: &'a Server, name: &str) -> &'a str {
    let found = server.settings().iter().find(|(known, _)| known == name);
    &found.unwrap_or_else(|| panic!("no {name} in {:?}", server.settings())).1
}

fn at_least(grown: &[(&'static str, u64)], name: &str, least: u64) {
    let value = grown.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    assert!(value.is_some_and(|value| value >= least), "{name} of {grown:?}");
}

fn ends_without_a_trace(server: Server, on: &Path) {
    let pid = server.pid();
    assert!(left_behind(on).is_empty(), "a living one is not left behind");
    server.stop().unwrap();
    assert!(is_empty(on));
    assert!(!pid.is_some_and(is_running));
}

#[test]
fn postgres_commits_and_leaves_nothing() {
    let on = directory();
    let Some(mut server) = started(&plan(Engine::Postgres, on.path())) else { return };
    let grown = commit(&mut server, 50);
    println!("{grown:?}\n{:?}", server.settings());
    let exact = grown.iter().find(|(name, _)| *name == "rows");
    assert_eq!(exact, Some(&("rows", 400)));
    at_least(&grown, "commits", 400);
    at_least(&grown, "log bytes", 400 * 100);
    at_least(&grown, "log records", 400);
    at_least(&grown, "log syncs", 1);
    for name in ["fsync", "synchronous_commit", "full_page_writes", "autovacuum"] {
        assert_eq!(setting(&server, name), "on");
    }
    assert_eq!(setting(&server, "shared_buffers"), "32MB");
    processor_time_does_not_fall(&mut server);
    assert_eq!(rows(&server), 401 + 1000);
    assert!(server.is_alive() && server.last_words().contains("ready to accept connections"));
    ends_without_a_trace(server, on.path());
}

/// Also not when those who used it are gone: every session has a process of its own.
fn processor_time_does_not_fall(server: &mut Server) {
    let mut last = 0;
    for _ in 0..5 {
        let mut session = server.session().unwrap();
        (0..200).for_each(|_| assert_eq!(session.commit(), Ok(100)));
        drop(session);
        for _ in 0..10 {
            let counters = server.counters().unwrap();
            let time = counters.iter().find(|counter| counter.name == "server processor time");
            let time = time.unwrap().value;
            assert!(time >= last, "{last} {time}");
            last = time;
        }
    }
    assert!(last > 0);
}

fn rows(server: &Server) -> i64 {
    let socket = server.path().join("socket");
    let mut config = postgres::Config::new();
    config.host_path(socket).user("postgres");
    let mut client = config.connect(postgres::NoTls).unwrap();
    client.query_one("select count(*) from commits", &[]).unwrap().get(0)
}

#[test]
fn mariadb_commits_and_leaves_nothing() {
    let on = directory();
    let Some(mut server) = started(&plan(Engine::Mariadb, on.path())) else { return };
    let grown = commit(&mut server, 50);
    println!("{grown:?}\n{:?}", server.settings());
    at_least(&grown, "rows", 400);
    at_least(&grown, "commits", 400);
    at_least(&grown, "log bytes", 400 * 100);
    at_least(&grown, "file syncs", 1);
    for (name, wanted) in [
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_doublewrite", "ON"),
        ("innodb_flush_method", "O_DIRECT"),
        ("innodb_buffer_pool_size", "33554432"),
        ("log_bin", "OFF"),
    ] {
        assert_eq!(setting(&server, name), wanted);
    }
    let socket = server.path().join("socket/s");
    let options = mysql::OptsBuilder::new().user(Some("root")).socket(socket.to_str());
    let mut conn = mysql::Conn::new(options).unwrap();
    let rows: Option<i64> =
        mysql::prelude::Queryable::query_first(&mut conn, "select count(*) from plimsoll.commits")
            .unwrap();
    assert_eq!(rows, Some(401));
    assert!(server.is_alive() && server.last_words().contains("ready for connections"));
    ends_without_a_trace(server, on.path());
}

#[test]
fn sqlite_commits_and_leaves_nothing() {
    let on = directory();
    let Some(mut server) = started(&plan(Engine::Sqlite, on.path())) else { return };
    commit(&mut server, 50);
    assert_eq!(setting(&server, "journal_mode"), "wal");
    assert_eq!(setting(&server, "synchronous"), "full");
    assert_eq!(setting(&server, "cache_size"), "-32768");
    let file = rusqlite::Connection::open(server.path().join("data/commits.db")).unwrap();
    let rows = file.query_row("select count(*) from commits", [], |row| row.get::<_, i64>(0));
    assert_eq!(rows.unwrap(), 401);
    drop(file);
    ends_without_a_trace(server, on.path());
}

#[test]
fn the_log_lies_where_it_was_asked_for() {
    for (engine, file) in [(Engine::Postgres, "0000"), (Engine::Mariadb, "ib_logfile0")] {
        let (on, log_on) = (directory(), directory());
        let plan = Plan { log_on: Some(log_on.path().into()), ..plan(engine, on.path()) };
        let Some(mut server) = started(&plan) else { continue };
        let name = server.path().file_name().unwrap().to_owned();
        let logs = std::fs::read_dir(log_on.path().join(&name).join("log")).unwrap();
        let logs: Vec<_> = logs.map(|log| log.unwrap().file_name()).collect();
        let is_log = |log: &std::ffi::OsString| log.to_str().unwrap().starts_with(file);
        assert!(logs.iter().any(is_log), "{logs:?}");
        assert!(!server.path().join("data").join(file).exists());
        commit(&mut server, 5);
        assert!(left_behind(log_on.path()).is_empty());
        ends_without_a_trace(server, on.path());
        assert!(is_empty(log_on.path()));
    }
}

#[test]
fn a_long_path_has_its_socket_elsewhere() {
    let on = directory();
    let long = on.path().join("d".repeat(100));
    std::fs::create_dir(&long).unwrap();
    let key = u64::from(std::process::id()) << 20;
    let plan = Plan { key, ..plan(Engine::Postgres, &long) };
    let Some(mut server) = started(&plan) else { return };
    commit(&mut server, 5);
    let name = server.path().file_name().unwrap().to_owned();
    let short = || ["/run", "/tmp"].iter().any(|at| Path::new(at).join(&name).exists());
    assert!(short());
    ends_without_a_trace(server, &long);
    assert!(!short());
}

#[test]
fn what_is_stopped_meanwhile_leaves_nothing() {
    for engine in [Engine::Postgres, Engine::Mariadb] {
        let on = directory();
        let Ok(ready) = look(&plan(engine, on.path())) else { continue };
        assert!(ready.start(1, &|| true).unwrap().is_none());
        assert!(is_empty(on.path()));
    }
}

/// Not a test: the program that is killed, if it is told so.
#[test]
fn killed_program() {
    let Ok(text) = std::env::var(KILLED) else { return };
    let (engine, on) = text.split_once(':').unwrap();
    let server = started(&plan(Engine::parse(engine).unwrap(), Path::new(on))).unwrap();
    let _session = server.session().unwrap();
    println!("\nserves {}", server.pid().unwrap_or(0));
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_program_leaves_no_server_and_what_it_leaves_is_found() {
    use std::io::BufRead;
    for engine in Engine::ALL {
        let on = directory();
        if look(&plan(engine, on.path())).is_err() {
            println!("skipped: no {engine}");
            continue;
        }
        let mut program = killed_program_command(engine, on.path()).spawn().unwrap();
        let lines = std::io::BufReader::new(program.stdout.take().unwrap()).lines();
        let pid = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("serves ").and_then(|pid| pid.parse::<i32>().ok()));
        assert!(left_behind(on.path()).is_empty(), "it lives");
        let held =
            LeftDatabase { path: on.path().join(format!("plimsoll-db-{KEY:016x}")), key: KEY };
        assert!(matches!(remove(&held), Err(DbError::InUse(_))));
        program.kill().unwrap();
        program.wait().unwrap();
        let pid = pid.unwrap();
        assert!(pid == 0 || is_true_soon(|| !is_running(pid)), "{engine} goes on");
        let left = left_behind(on.path());
        assert_eq!(left, [held]);
        remove(&left[0]).unwrap();
        assert!(is_empty(on.path()));
    }
}

/// Processes that name the directory in their command line.
fn processes_of(directory: &Path) -> usize {
    let name = directory.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(name)).count()
}

#[test]
fn a_kill_at_any_moment_leaves_what_can_be_removed() {
    for engine in [Engine::Postgres, Engine::Mariadb] {
        for after in [20, 150, 400, 700, 1000, 1500] {
            let on = directory();
            if look(&plan(engine, on.path())).is_err() {
                println!("skipped: no {engine}");
                continue;
            }
            let mut program = killed_program_command(engine, on.path()).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(after));
            program.kill().unwrap();
            program.wait().unwrap();
            for left in left_behind(on.path()) {
                remove(&left).unwrap();
            }
            assert!(is_empty(on.path()), "{engine} {after}");
            assert!(is_true_soon(|| processes_of(on.path()) == 0), "{engine} {after}");
            assert!(is_empty(on.path()), "{engine} {after}");
        }
    }
}

fn killed_program_command(engine: Engine, on: &Path) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "killed_program", "--nocapture"]).stdout(Stdio::piped());
    program.env(KILLED, format!("{engine}:{}", on.display()));
    program
}

#[test]
fn what_only_looks_like_ours_stays() {
    let on = directory();
    let name = |key: u64| format!("plimsoll-db-{key:016x}");
    let server = started(&plan(Engine::Sqlite, on.path())).unwrap();
    let mark = std::fs::read_to_string(server.path().join("plimsoll.toml")).unwrap();
    server.stop().unwrap();
    // Of another key; with no mark; with an empty one; a link to one of ours.
    let ours = on.path().join(name(KEY));
    let others = [KEY + 1, KEY + 2, KEY + 3, KEY + 4].map(|key| on.path().join(name(key)));
    for path in others[..3].iter().chain([&ours]) {
        std::fs::create_dir(path).unwrap();
    }
    std::fs::write(others[0].join("plimsoll.toml"), &mark).unwrap();
    std::fs::write(others[2].join("plimsoll.toml"), "").unwrap();
    std::os::unix::fs::symlink(&ours, &others[3]).unwrap();
    let far = directory();
    std::fs::write(far.path().join("theirs"), "data").unwrap();
    std::fs::write(ours.join("plimsoll.toml"), &mark).unwrap();
    std::os::unix::fs::symlink(far.path(), ours.join("data")).unwrap();

    let left = left_behind(on.path());
    assert_eq!(left, [LeftDatabase { path: ours.clone(), key: KEY }]);
    for (path, key) in others.iter().zip(KEY + 1..) {
        let refused = remove(&LeftDatabase { path: path.clone(), key });
        assert!(refused.is_err(), "{path:?}");
        assert!(path.symlink_metadata().is_ok());
    }
    assert!(remove(&LeftDatabase { path: ours.clone(), key: KEY + 1 }).is_err());
    remove(&left[0]).unwrap();
    assert!(!ours.exists());
    assert!(far.path().join("theirs").exists(), "links are not followed");
    let refused = look(&Plan { key: KEY + 1, ..plan(Engine::Sqlite, on.path()) });
    assert!(matches!(refused, Err(DbError::Exists(_))));
}

#[test]
fn a_server_that_outlived_its_program_is_ended_and_no_other_process() {
    let on = directory();
    let server = started(&plan(Engine::Sqlite, on.path())).unwrap();
    let path = server.path().to_path_buf();
    let mark = std::fs::read_to_string(path.join("plimsoll.toml")).unwrap();
    server.stop().unwrap();
    for (later, ends) in [(0, true), (1, false)] {
        let mut sleep = Command::new("sleep").arg("60").spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", sleep.id())).unwrap();
        let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let start: u64 = fields[19].parse().unwrap();
        std::fs::create_dir(&path).unwrap();
        let server = format!("[server]\npid = {}\nstart = {}\n", sleep.id(), start + later);
        std::fs::write(path.join("plimsoll.toml"), format!("{mark}\n{server}")).unwrap();
        remove(&LeftDatabase { path: path.clone(), key: KEY }).unwrap();
        assert!(!path.exists());
        assert_eq!(sleep.try_wait().unwrap().is_some(), ends);
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_numbers_and_names() {
    let on = directory();
    let refused = |plan: Plan| look(&plan).unwrap_err().to_string();
    let plan = |engine| plan(engine, on.path());
    let log_on = Some(on.path().to_path_buf());
    let text = refused(Plan { log_on: log_on.clone(), ..plan(Engine::Sqlite) });
    assert!(text.starts_with("sqlite keeps its log beside its data"), "{text}");
    let text = refused(Plan { log_on, ..plan(Engine::Postgres) });
    assert!(text.starts_with("data and log are both to lie on"), "{text}");
    let text = refused(Plan { memory: Bytes::gib(1 << 20), ..plan(Engine::Sqlite) });
    assert!(text.contains("of memory for sqlite: wanted 1 MiB to"), "{text}");
    let file = on.path().join("file");
    std::fs::write(&file, "").unwrap();
    let text = refused(Plan { on: file, ..plan(Engine::Sqlite) });
    assert!(text.contains("file is not a directory"), "{text}");

    let closed = on.path().join("closed");
    std::fs::create_dir_all(closed.join("below")).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    match look(&Plan { on: closed.join("below"), ..plan(Engine::Postgres) }) {
        Err(error @ DbError::Closed { .. }) => {
            let text = error.to_string();
            assert!(text.contains("user `postgres`") && text.contains("may not pass"), "{text}");
            let hint = error.hint().unwrap();
            assert!(hint.ends_with(&format!("chmod o+x {}", closed.display())), "{hint}");
        }
        other => println!("skipped: not root, or no postgres: {other:?}"),
    }
}

#[test]
fn a_server_that_dies_is_seen_to() {
    let on = directory();
    let Some(mut server) = started(&plan(Engine::Mariadb, on.path())) else { return };
    let mut session = server.session().unwrap();
    session.commit().unwrap();
    let killed = Command::new("kill").args(["-9", &server.pid().unwrap().to_string()]).status();
    assert!(killed.unwrap().success());
    assert!(session.commit().is_err());
    let since = Instant::now();
    while server.is_alive() {
        assert!(since.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.counters().is_err());
    assert!(server.session().is_err());
    assert!(!server.last_words().is_empty());
    ends_without_a_trace(server, on.path());
}

#[test]
fn servers_and_sessions_can_go_to_threads() {
    fn goes<T: Send>() {}
    fn is_shared<T: Sync>() {}
    goes::<Server>();
    is_shared::<Server>();
    goes::<db::DbSession>();
}

/// A server that is there: a throwaway one, asked through its socket.
fn a_server_is_asked_in_a_database_of_its_own(engine: Engine, url: impl Fn(&str) -> String) {
    let on = directory();
    let Some(server) = started(&plan(engine, on.path())) else { return };
    let socket = server.path().join("socket");
    let url = ServerUrl::parse(engine, &url(&socket.display().to_string())).unwrap();
    let ready = look_at_server(&url, 0xabc).unwrap();
    assert!(ready.says[0].contains("plimsoll_0000000000000abc"), "{:?}", ready.says);
    assert_eq!(ready.remarks.len(), 0, "{:?}", ready.remarks);
    let mut named = ready.start(2, &|| false).unwrap().unwrap();
    assert_eq!(named.session().unwrap().commit(), Ok(100));
    assert!(named.counters().unwrap().iter().all(|of| of.name != "server processor time"));
    assert!(named.size() > Bytes::ZERO && named.is_alive());
    let again = look_at_server(&url, 0xdef).unwrap();
    assert!(again.left.iter().any(|said| said.contains("abc is there")), "{:?}", again.left);
    assert!(look_at_server(&url, 0xabc).unwrap().start(2, &|| false).is_err(), "it is there");
    named.stop().unwrap();
    assert_eq!(look_at_server(&url, 0xdef).unwrap().left.len(), 0, "dropped");
    drop(look_at_server(&url, 0xdef).unwrap().start(2, &|| false).unwrap());
    assert_eq!(look_at_server(&url, 0xdef).unwrap().left.len(), 0, "dropped");
    server.stop().unwrap();
    assert!(look_at_server(&url, 0xdef).is_err(), "it is gone");
}

#[test]
fn a_postgres_that_is_there_is_left_as_it_was() {
    a_server_is_asked_in_a_database_of_its_own(Engine::Postgres, |socket| {
        format!("//postgres@/postgres?host={socket}")
    });
}

#[test]
fn a_mariadb_that_is_there_is_left_as_it_was() {
    a_server_is_asked_in_a_database_of_its_own(Engine::Mariadb, |socket| {
        format!("//root@localhost/?socket={socket}/s")
    });
}
