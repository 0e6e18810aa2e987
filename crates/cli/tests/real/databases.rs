//! Databases that are made for a run: measured as places are, and nothing of them is left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::Lab;

/// A directory that the servers' users can reach, wherever the checkout is.
pub struct Open(pub PathBuf);

impl Open {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-databases-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }

    fn entries(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The engines whose programs are installed, with a part of their servers' command lines.
pub fn engines() -> Vec<&'static str> {
    let here = |engine: &&str| {
        let is = match *engine {
            "postgres" => Path::new("/usr/lib/postgresql").exists(),
            "mariadb" => Path::new("/usr/sbin/mariadbd").exists(),
            _ => true,
        };
        if !is {
            eprintln!("skipped: no {engine}");
        }
        is
    };
    ["sqlite", "postgres", "mariadb"].into_iter().filter(here).collect()
}

/// Whether a process has that directory on its command line or as its own.
fn is_used(directory: &Path) -> bool {
    let found = Command::new("pgrep").args(["-f", directory.to_str().unwrap()]).output().unwrap();
    found.status.success()
}

fn counter(visit: &Value, name: &str) -> Option<u64> {
    let all = visit["counters"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name)?["value"].as_u64()
}

#[test]
fn each_engine_is_measured_counted_and_removed() {
    let lab = Lab::new("databases");
    for engine in engines() {
        let place = Open::new();
        let words = format!("run commits --quick --target {engine}:{} --json", place.text());
        let said = lab.run(&words);
        assert!(matches!(said.code, Some(0 | 10)), "{said}");
        assert!(place.entries().is_empty(), "{engine} leaves {:?}", place.entries());
        let document = said.document();
        assert_eq!(document["target"]["kind"], "database");
        let cells = document["cells"].as_array().unwrap();
        let depths: Vec<_> = cells.iter().map(|cell| cell["queue_depth"].as_u64()).collect();
        assert_eq!(depths, [Some(1), Some(8), Some(64)]);
        for cell in cells {
            let visit = &cell["visits"].as_array().unwrap()[0];
            let made = visit["ops"][0]["requests"].as_u64().unwrap();
            assert!(made > 0 && cell["iops"].as_f64().unwrap() > 0.0, "{engine}: {cell}");
            assert!(counter(visit, "time").unwrap() > 100_000, "at least the measured 100 ms");
            let workers = visit["workers"].as_array().unwrap().len() as u64;
            assert_eq!(Some(workers), cell["queue_depth"].as_u64(), "a session is a thread");
            if engine != "sqlite" {
                assert!(counter(visit, "rows").unwrap() >= made, "{engine}: {visit}");
                assert!(counter(visit, "log bytes").unwrap() >= made * 100, "{engine}: {visit}");
            }
        }
    }
}

#[test]
fn what_a_kill_leaves_is_removed_by_the_next_run_or_with_its_own() {
    let lab = Lab::new("killed-databases");
    for (number, engine) in (1..).zip(engines()) {
        let place = Open::new();
        let target = format!("{engine}:{}", place.text());
        for removed_by in ["run", "rm"] {
            let id = format!("r{}", 3 * number - if removed_by == "run" { 2 } else { 0 });
            let words = format!("run commits --set time=20s --target {target}");
            let mut running = lab.start(&words);
            running.until_it_says(&id);
            running.until("a server", |_| {
                let [left] = place.entries().try_into().unwrap_or([PathBuf::new()]);
                left.join("plimsoll.toml").exists() && left.join("data").exists()
            });
            running.kill();
            let [left] = place.entries().try_into().unwrap();
            let mine = place.0.join("mine");
            fs::create_dir(&mine).unwrap();
            match removed_by {
                "run" => {
                    lab.run(&format!("run commits --quick --target {target}"));
                }
                _ => {
                    lab.ok(&format!("rm {id} --yes"));
                }
            }
            assert!(!left.exists(), "{removed_by} leaves {}", left.display());
            assert!(!is_used(&left), "its server lives");
            assert_eq!(place.entries(), std::slice::from_ref(&mine), "what is not ours stays");
            fs::remove_dir(mine).unwrap();
        }
    }
}

#[test]
fn interrupted_it_leaves_nothing_and_goes_on() {
    let lab = Lab::new("interrupted-databases");
    let place = Open::new();
    let words = format!("run commits --classic --set time=1s --target sqlite:{}", place.text());
    let mut running = lab.start(&words);
    running.until("the first visit", |running| {
        running.err().contains("1 of 3") || {
            fs::read_dir(&place.0).is_ok_and(|mut all| all.next().is_some())
        }
    });
    std::thread::sleep(std::time::Duration::from_millis(1500));
    running.signal(Signal::INT);
    running.end().is(130, &["resume r1"]);
    assert!(place.entries().is_empty(), "{:?}", place.entries());
    lab.ok("resume r1");
    assert_eq!(lab.list()[0]["state"], "complete");
    assert!(place.entries().is_empty(), "{:?}", place.entries());
}

#[test]
fn a_database_is_asked_beside_its_place() {
    let lab = Lab::new("db-commit");
    fs::create_dir(lab.path("on")).unwrap();
    let said = lab.run("db commit --on on --minutes 0.1 --json");
    assert!(matches!(said.code, Some(0 | 10)), "{said}");
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["schema"], "plimsoll.database/1");
    let [figure] = found["figures"].as_array().unwrap().as_slice() else { panic!("{said}") };
    assert_eq!(figure["sessions"], 1, "SQLite has one writer at a time");
    assert!(figure["ratio"]["value"].as_f64().unwrap() > 0.0, "{said}");
    assert!(figure["busy"].as_f64().unwrap() > 0.0, "{said}");
    let first = found["answer"]["findings"][0]["text"].as_str().unwrap();
    assert!(first.starts_with("SQLite 3.") && first.contains("commits/s by 1 session"), "{first}");
    assert_eq!(fs::read_dir(lab.path("on")).unwrap().count(), 0);
}

#[test]
fn transactions_are_loaded_played_and_checked() {
    let lab = Lab::new("db-tpcc");
    fs::create_dir(lab.path("on")).unwrap();
    let said = lab.run("db tpcc --on on --minutes 0.1 --sessions 1,2 --json");
    assert!(matches!(said.code, Some(0 | 10)), "{said}");
    let found: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(found["schema"], "plimsoll.transactions/1");
    assert_eq!((&found["scale"], &found["consistent"]), (&1.into(), &true.into()), "{said}");
    assert!(found["size"].as_u64().unwrap() > 50_000_000, "{said}");
    let figures = found["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 2, "{said}");
    for figure in figures {
        assert!(figure["new_orders"]["value"].as_f64().unwrap() > 0.0, "{said}");
        assert_eq!(figure["failed"], 0, "{said}");
        let kinds = figure["kinds"].as_array().unwrap();
        let share = |name| {
            kinds.iter().find(|kind| kind["kind"] == name).map(|kind| kind["share"].as_f64())
        };
        let orders = share("new-order").unwrap().unwrap();
        assert!((0.3..0.6).contains(&orders), "{said}");
        let parts = ["commits", "locks", "reads", "other"];
        let sum: f64 = parts.map(|part| figure["time"][part].as_f64().unwrap()).iter().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{said}");
        assert_ne!(figure["limit"], "unknown", "{said}");
    }
    assert_eq!(fs::read_dir(lab.path("on")).unwrap().count(), 0);
    // The stored run answers the same.
    let shown = lab.ok("table r1");
    assert!(shown.out.contains("sessions"), "{shown}");
    lab.ok("explain r1");
}

/// A server, and how it is named.
fn served(engine: db::Engine, on: &Open) -> (db::Server, String) {
    let (on, log_on, memory) = (on.0.clone(), None, units::Bytes::mib(32));
    let plan = db::Plan { engine, on, log_on, memory, data: units::Bytes::ZERO, key: 0xfeed_2001 };
    let server = db::look(&plan).unwrap().start(16, &|| false).unwrap().unwrap();
    let socket = server.path().join("socket").display().to_string();
    let url = match engine {
        db::Engine::Postgres => format!("postgres://postgres@/postgres?host={socket}"),
        _ => format!("mysql://root@localhost/?socket={socket}/s"),
    };
    (server, url)
}

#[test]
fn a_server_in_use_is_profiled_and_its_load_raised_on_a_place() {
    for name in engines().into_iter().filter(|name| *name != "sqlite") {
        let (lab, place) = (Lab::new("db-profile"), Open::new());
        let (mut server, url) = served(db::Engine::parse(name).unwrap(), &place);
        lab.run(&format!("db profile --server {url} --seconds 1"))
            .is(5, &["wrote nothing", "--seconds"]);
        let witness = server.witness(4).unwrap();
        let before = server.counters().unwrap();
        let said = lab.run(&format!("db profile --server {url} --seconds 2 --json"));
        witness.stop();
        assert_eq!(
            said.code,
            Some(0),
            "{said}; alive: {}: {}",
            server.is_alive(),
            server.last_words()
        );
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(found["schema"], "plimsoll.profile/1");
        let rate = |name: &str| found[name].as_f64().unwrap();
        let made = witness.acknowledged() as f64;
        let seen = rate("commits") * rate("seconds");
        // The sessions also committed before it looked and after.
        assert!(seen > 0.3 * made && seen < 1.01 * made + 10.0, "{name}: {made} {found:#}");
        assert!(rate("log_bytes") > 100.0 * rate("commits"), "{found:#}");
        assert!(before.iter().any(|counter| counter.name == "commits"), "{before:?}");
        lab.run(&format!("db profile --server {url} --seconds 1")).is(3, &["exists", "--force"]);
        lab.ok("suite show profile.toml");
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/nvme.toml");
        let played = lab.run(&format!("run profile.toml --quick --target model:{model} --json"));
        assert!(matches!(played.code, Some(0 | 10)), "{played}");
        server.stop().unwrap();
    }
}

#[test]
fn what_a_server_acknowledged_is_looked_for_when_it_is_back() {
    for name in engines().into_iter().filter(|name| *name != "sqlite") {
        let (lab, place) = (Lab::new("db-durability"), Open::new());
        let (server, url) = served(db::Engine::parse(name).unwrap(), &place);
        let words = format!("db durability --server {url} --sessions 3 --json");
        let mut stopped = lab.start(&words);
        stopped.until_it_says("Ctrl-C stops");
        stopped.signal(Signal::INT);
        stopped.end().is(130, &["nothing was tested"]);
        let mut running = lab.start(&words);
        running.until_it_says("Ctrl-C stops");
        std::thread::sleep(std::time::Duration::from_millis(500));
        // Its connections are cut; a server that is killed is in the tests of the crate.
        let (kill, sql) = match name {
            "postgres" => (
                "psql",
                "select pg_terminate_backend(pid) from pg_stat_activity \
                where datname like 'plimsoll%'",
            ),
            _ => ("mariadb", "kill user root"),
        };
        let socket = server.path().join("socket");
        let mut client = Command::new(kill);
        match name {
            "postgres" => client.arg("-h").arg(socket).args(["-U", "postgres", "-c", sql]),
            _ => client.arg("-S").arg(socket.join("s")).args(["-u", "root", "-e", sql]),
        };
        client.output().unwrap();
        let said = running.end();
        said.is(0, &["is gone after"]);
        let found: Value = serde_json::from_str(&said.out).unwrap();
        assert!(found["acknowledged"].as_u64().unwrap() > 0, "{found:#}");
        assert_eq!((&found["missing"], &found["sessions"]), (&0.into(), &3.into()), "{found:#}");
        server.stop().unwrap();
        assert!(place.entries().is_empty(), "{:?}", place.entries());
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    let lab = Lab::new("refused-databases");
    let place = Open::new();
    let on = place.text();
    for (words, code, parts) in [
        ("db commit --on /not/there".to_owned(), 2, ["/not/there is not there", ""]),
        (format!("db commit --on {on} --log-on {on}"), 2, ["sqlite keeps its log", ""]),
        (format!("db commit --on {on} --minutes 0"), 2, ["0.1 to 1440", ""]),
        (format!("db commit --on {on} --memory 99TiB"), 2, ["memory", "sqlite"]),
        (format!("run random-read --target sqlite:{on}"), 2, ["cannot play", "`commits`"]),
        ("run tpcc --target null:".to_owned(), 2, ["is no database", "sqlite:DIRECTORY"]),
        (format!("db tpcc --on {on} --warehouses 0"), 2, ["warehouses", ""]),
        ("db oltp".to_owned(), 2, ["--on <DIRECTORY>", ""]),
        ("db tpcc --server mysql://joe:secret@nowhere/app".to_owned(), 2, ["MYSQL_PWD", ""]),
        ("db tpcc --server oracle://joe@nowhere".to_owned(), 2, ["postgres://", "mysql://"]),
        ("db tpcc --server postgres://joe@localhost:1/app".to_owned(), 5, ["connect", ""]),
        ("db commit --server postgres://joe@localhost:1/app".to_owned(), 2, ["run commits", ""]),
        (format!("db tpcc --on {on} --warehouses 90000"), 3, ["no room", ""]),
        ("db profile --server mysql://joe:secret@nowhere/app".to_owned(), 2, ["MYSQL_PWD", ""]),
        ("db profile --server postgres://joe@localhost:1/app".to_owned(), 5, ["connect", ""]),
        ("db durability --server postgres://joe@localhost:1/a".to_owned(), 5, ["connect", ""]),
        ("run commits --target sqlite:".to_owned(), 2, ["needs a directory", ""]),
        (format!("run commits --target sqlit:{on}"), 2, ["did you mean `sqlite:`", ""]),
    ] {
        lab.run(&words).is(code, &parts);
        assert!(place.entries().is_empty(), "{words} made {:?}", place.entries());
    }
    let said = lab.ok(&format!("run commits --target sqlite:{on} --dry-run"));
    assert!(said.out.contains("plimsoll-db-NUMBER"), "{said}");
    assert!(place.entries().is_empty(), "{:?}", place.entries());
}
