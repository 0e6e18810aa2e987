//! `plimsoll serve` as browsers, scripts and attackers meet it.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Done, World, start};

/// No answer takes so long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server; killed when dropped.
struct Served {
    child: Option<Child>,
    /// `127.0.0.1:1234`.
    host: String,
    token: Option<String>,
}

impl Served {
    fn start(world: &World, words: &[&str]) -> Self {
        let all = [&["serve", "--json"], words].concat();
        let mut command = world.command(&all);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        while !text.ends_with("}\n") {
            assert!(out.read_line(&mut text).unwrap() > 0, "{:?}", child.wait_with_output());
        }
        let told: Value = serde_json::from_str(&text).unwrap();
        let url = told["url"].as_str().unwrap();
        let port = url.trim_start_matches("http://").split(['/', '#']).next().unwrap();
        let port = port.rsplit(':').next().unwrap();
        let token = told["token"].as_str().map(str::to_owned);
        Self { child: Some(child), host: format!("127.0.0.1:{port}"), token }
    }

    fn on_any_port(world: &World) -> Self {
        Self::start(world, &["--listen", "127.0.0.1:0"])
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// The answer to a request, word for word, head and body.
    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // Who is cut off has the answer all the same.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn get(&self, path: &str, more: &str) -> Answer {
        let host = &self.host;
        let text = self.ask(&format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
        ));
        Answer::of(&text)
    }

    fn json(&self, path: &str) -> Value {
        let answer = self.get(path, "");
        assert_eq!(answer.status, 200, "{}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    /// Events, as they come.
    fn listen(&self) -> impl Iterator<Item = Value> + use<> {
        let mut stream = self.connect();
        let host = &self.host;
        write!(stream, "GET /api/events HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(self.child.as_ref().unwrap()), signal).unwrap();
    }

    fn end(mut self) -> Done {
        Done::from(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        let head = head.to_lowercase();
        // What is sent in pieces has their lengths between.
        let body = match head.contains("transfer-encoding: chunked") {
            true => body.split("\r\n").filter(|part| part.len() > 8).collect(),
            false => body.to_owned(),
        };
        Self { status, head, body }
    }
}

#[test]
fn the_list_the_page_and_the_tables_are_those_of_the_other_commands() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let live = served.json("/api/runs");
    assert_eq!(live["schema"], "plimsoll.live/1");
    let ids: Vec<_> = live["runs"].as_array().unwrap().iter().map(|run| &run["id"]).collect();
    assert_eq!(ids, ["r1", "r2"]);
    assert_eq!(live["runs"][0]["standing"], "complete");
    let page = served.json("/api/page/r2,r1");
    let report: Value =
        serde_json::from_str(&world.ok(&["report", "r2", "r1", "--json"]).out).unwrap();
    assert_eq!(page, report);
    let table = served.get("/api/table/r1", "");
    assert!(table.head.contains("content-type: text/plain"), "{}", table.head);
    assert!(table.body.contains(&world.ok(&["table", "r1"]).out), "{}", table.body);
    for path in ["/", "/runs/r1", "/runs/r1,r2"] {
        let html = served.get(path, "");
        assert_eq!(html.status, 200);
        assert!(html.head.contains("content-type: text/html"), "{}", html.head);
        assert!(html.head.contains("frame-ancestors 'none'"), "{}", html.head);
        // With figures and without them.
        assert!(html.body.contains("data-from=\"serve\"") || html.body.contains("random-read"));
    }
    for (path, status) in [("/api/page/r3", 404), ("/api/page/r1,r1", 404), ("/api/page/x", 404)] {
        let answer = served.get(path, "");
        assert_eq!(answer.status, status, "{path}");
        assert!(serde_json::from_str::<Value>(&answer.body).unwrap()["error"].is_string());
    }
}

#[test]
fn no_path_of_a_request_is_one_of_a_file() {
    let world = World::with_two_runs();
    std::fs::write(world.path("secret"), "secret").unwrap();
    let served = Served::on_any_port(&world);
    let dir = world.dir.display();
    for path in [
        "/secret",
        "/../secret",
        "/runs/../secret",
        "/runs/..%2fsecret",
        "/api/page/..%2f..%2fetc%2fpasswd",
        "/api/table/%2e%2e%2fsecret",
        "//etc/passwd",
        "/runs/r1%00",
        "/api/page/r1%2f..%2fsecret",
        "/api/page/file:%2f%2f%2fetc%2fpasswd",
        "/runs/",
        "/api/",
        "/assets/page.html",
        "/.git/config",
        &format!("{dir}/secret"),
        &format!("/api/table/{dir}/secret"),
    ] {
        let answer = served.get(path, "");
        assert_eq!(answer.status, 404, "{path}");
        assert!(!answer.body.contains("secret\n") && !answer.body.contains("root:"), "{path}");
    }
}

#[test]
fn other_hosts_pages_and_methods_are_refused() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let status = |request: String| Answer::of(&served.ask(&request)).status;
    let host = &served.host;
    for (wrong, code) in [
        ("Host: evil.example".to_owned(), 421),
        ("X: y".to_owned(), 400),
        (format!("Host: {host}\r\nHost: {host}"), 400),
        (format!("Host: {host}\r\nOrigin: http://evil.example"), 403),
        (format!("Host: {host}\r\nOrigin: null"), 403),
        (format!("Host: {host}\r\nSec-Fetch-Site: cross-site"), 403),
    ] {
        for path in ["/api/runs", "/api/page/r1", "/api/table/r1", "/api/events"] {
            let request = format!("GET {path} HTTP/1.1\r\n{wrong}\r\nConnection: close\r\n\r\n");
            assert_eq!(status(request), code, "{wrong} {path}");
        }
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
        let request =
            format!("{method} /api/runs HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(request), 405, "{method}");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: {host}\r\n\r\n", "a".repeat(40_000));
    assert!([414, 431].contains(&status(long)));
    assert_eq!(served.get("/api/runs", "").status, 200, "it is still there");
}

#[test]
fn who_asks_from_elsewhere_needs_the_token() {
    let world = World::with_two_runs();
    let served = Served::start(&world, &["--listen", "0.0.0.0:0"]);
    let token = served.token.clone().unwrap();
    let with = |token: &str| served.get("/api/runs", &format!("Authorization: Bearer {token}\r\n"));
    assert_eq!(with(&token).status, 200);
    assert_eq!(with(&token[1..]).status, 401);
    for path in ["/api/runs", "/api/page/r1", "/api/table/r1", "/api/events", "/api/nothing"] {
        let answer = served.get(path, "");
        assert_eq!(answer.status, 401, "{path}");
        assert!(!answer.body.contains("random-read"), "{path}: {}", answer.body);
    }
    // What is answered without it knows of no run.
    for path in ["/", "/runs/r1"] {
        assert!(!served.get(path, "").body.contains("random-read"), "{path}");
    }
    served.signal(Signal::INT);
    let done = served.end();
    assert!(!done.err.contains(&token), "{done:?}");

    std::fs::write(world.path("token"), "0123456789abcdef\n").unwrap();
    let own = Served::start(&world, &["--listen", "127.0.0.1:0", "--token-file", "token"]);
    assert_eq!(own.token.as_deref(), Some("0123456789abcdef"));
    assert_eq!(own.get("/api/runs", "").status, 401);
    std::fs::write(world.path("token"), "short").unwrap();
    let done = world.run(&["serve", "--token-file", "token"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("hint: `openssl rand -hex 24`"), "{done:?}");
    assert!(!done.err.contains("short,"), "{done:?}");
}

/// Whether a connection was closed by the server.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut some = [0; 4096];
    loop {
        match stream.read(&mut some) {
            // What had come before.
            Ok(1..) => {}
            Ok(0) => return true,
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

#[test]
fn who_asks_nothing_makes_room_for_who_does() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    // Said to nobody, half of a head, and a head after which all is read slowly or not at all.
    let silent: Vec<_> = (0..120)
        .map(|k| {
            let mut stream = served.connect();
            if k % 2 == 1 {
                write!(stream, "GET /api/runs HTTP/1.1\r\nHost: {}\r\nX: ", served.host).unwrap();
            }
            stream
        })
        .collect();
    for path in ["/api/runs", "/api/page/r1", "/"] {
        assert_eq!(served.get(path, "").status, 200, "{path}");
    }
    // They made room, not their time ran out: that would have been the end of all that came first.
    assert!(is_closed(&silent[0]), "who was silent for longest");
    assert!(!is_closed(&silent[60]) && !is_closed(&silent[95]), "answered only after a time-out");
}

#[test]
fn who_asks_nothing_is_cut_off_in_the_end() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let silent = served.connect();
    let mut half = served.connect();
    write!(half, "GET /api/runs HTTP/1.1\r\nHost: ").unwrap();
    let mut asked = served.connect();
    write!(asked, "GET /favicon.ico HTTP/1.1\r\nHost: {}\r\n\r\n", served.host).unwrap();
    for mut stream in [silent, half, asked] {
        let end = stream.read_to_end(&mut Vec::new());
        assert!(end.is_ok(), "it is still open: {end:?}");
    }
}

#[test]
fn every_answer_says_how_it_may_be_used() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    for (path, more) in [
        ("/", ""),
        ("/runs/r1", ""),
        ("/api/runs", ""),
        ("/api/page/r1", ""),
        ("/api/page/x", ""),
        ("/api/table/r1", ""),
        ("/nowhere", ""),
        ("/favicon.ico", ""),
        ("/api/runs", "Origin: http://evil.example\r\n"),
    ] {
        let head = served.get(path, more).head;
        for wanted in [
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
            "content-security-policy: default-src 'none'; ",
            "frame-ancestors 'none'",
        ] {
            assert!(head.contains(wanted), "{path}: {wanted} in {head}");
        }
        for other in ["access-control", "set-cookie", "location:", "\nserver:"] {
            assert!(!head.contains(other), "{path}: {other} in {head}");
        }
    }
}

#[test]
fn so_many_may_listen_and_the_others_are_told() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let ask = format!("GET /api/events HTTP/1.1\r\nHost: {}\r\n\r\n", served.host);
    let listen = || {
        let mut stream = served.connect();
        stream.write_all(ask.as_bytes()).unwrap();
        let mut status = [0; 12];
        // Who was sent away may have had to make room already.
        if let Err(error) = stream.read_exact(&mut status) {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "neither heard nor sent away");
        }
        (stream, String::from_utf8_lossy(&status).into_owned())
    };
    let all: Vec<_> = (0..400).map(|_| listen()).collect();
    let (heard, away): (Vec<_>, Vec<_>) = all.iter().partition(|(_, told)| told.ends_with("200"));
    assert_eq!(heard.len(), 32);
    assert!(away.iter().filter(|(_, told)| told.ends_with("503")).count() > 300);
    assert!(away.iter().any(|(stream, _)| is_closed(stream)), "they had to make room");
    // Who listens does not, however many come.
    assert!(!heard.iter().any(|(stream, _)| is_closed(stream)));
    assert_eq!(served.get("/api/page/r1", "").status, 200);
    drop(all);
    let since = Instant::now();
    while !listen().1.ends_with("200") {
        assert!(since.elapsed() < PATIENCE, "their places are not free again");
    }
}

#[test]
fn a_port_in_use_is_named_with_a_way_out() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let done = world.run(&["serve", "--listen", &served.host]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains(&format!("{} is in use", served.host)), "{done:?}");
    assert!(done.err.contains("`--listen 127.0.0.1:0` takes a port that is free"), "{done:?}");
    let done = world.run(&["serve", "--listen", "203.0.113.7:7546"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("is no address of this machine"), "{done:?}");
}

#[test]
fn it_ends_at_once_and_leaves_nothing() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let world = World::with_two_runs();
        let folder = world.store().parent().unwrap().to_owned();
        let names = || std::fs::read_dir(&folder).unwrap().count();
        let served = Served::on_any_port(&world);
        let mut events = served.listen();
        events.next().unwrap();
        served.json("/api/page/r1");
        let since = Instant::now();
        served.signal(signal);
        let done = served.end();
        // A listener, and a client that never asks, keep nothing waiting.
        assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.err.contains("stopped; the store was only read"), "{done:?}");
        assert_eq!(names(), 1, "nothing lies beside the store");
        assert_eq!(events.next(), None);
    }
}

/// The first event of which something is true, for one run.
fn wait_for(
    events: &mut impl Iterator<Item = Value>,
    id: &str,
    is: impl Fn(&Value) -> bool,
) -> Value {
    let since = Instant::now();
    for event in events {
        let found = event["runs"].as_array().unwrap().iter().find(|run| run["id"] == id);
        if let Some(run) = found.filter(|run| is(run)) {
            return run.clone();
        }
        assert!(since.elapsed() < PATIENCE, "it never came");
    }
    panic!("the events ended");
}

const MANY: [&str; 9] = [
    "run",
    "random-read",
    "--target",
    "null:",
    "--time",
    "100ms",
    "--set",
    "queue_depth=1,2,4,8",
    "--classic",
];

#[test]
fn a_run_is_told_while_it_goes_on_and_when_it_is_killed() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let mut events = served.listen();
    assert_eq!(events.next().unwrap()["whole"], true);
    let words = [&MANY[..], &["--set", "repeats=200"]].concat();
    let mut run = start(&world, &words);
    let told = wait_for(&mut events, "r3", |run| run["visits_made"].as_u64() > Some(1));
    assert_eq!(told["standing"], "running");
    // What is new is told, and no more.
    let page = served.json("/api/page/r3");
    assert_eq!(page["runs"][0]["state"], "running");
    run.kill().unwrap();
    run.wait().unwrap();
    let told = wait_for(&mut events, "r3", |run| run["standing"] != "running");
    assert_eq!(told["standing"], "killed");
    // Who writes is not in the way of who reads, nor the other way round.
    world.ok(&["rm", "r1", "--yes"]);
    let whole = events.find(|event| event["whole"] == true).unwrap();
    assert_eq!(whole["runs"].as_array().unwrap().len(), 2);
    assert_eq!(served.get("/api/page/r1", "").status, 404);
}

#[test]
fn a_run_without_time_for_all_is_called_as_other_listings_call_it() {
    let world = World::new();
    let models = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/disk.toml");
    let target = format!("model:{}", models.display());
    let mut words = vec!["run", "random-read", "--target", &target];
    for set in [
        "file_size=256MiB",
        "threads=1,2,3",
        "time=10s",
        "rounds.visit_time=2s",
        "rounds.ramp=500ms",
        "rounds.time_max=8s",
    ] {
        words.extend(["--set", set]);
    }
    let late = world.run(&words);
    assert_eq!(late.code, 4, "{}", late.err);
    assert!(late.err.contains("had no time for"), "{}", late.err);
    world.ok(&MANY);
    let list: Value = serde_json::from_str(&world.ok(&["list", "--json"]).out).unwrap();
    assert_eq!(list["runs"][0]["standing"], "out of time");
    let live = Served::on_any_port(&world).json("/api/runs");
    for (listed, told) in [0, 1].map(|k| (&list["runs"][k], &live["runs"][k])) {
        assert_eq!(told["standing"], listed["standing"]);
        assert_eq!(told["visits_made"], listed["visits"]["made"]);
        assert_eq!(told["visits_planned"], listed["visits"]["planned"]);
    }
}

#[test]
fn a_store_that_goes_away_is_told_and_read_again_when_it_is_back() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let mut events = served.listen();
    events.next().unwrap();
    let (store, away) = (world.store(), world.path("away.db"));
    std::fs::rename(&store, &away).unwrap();
    let gone = events.find(|event| !event["trouble"].is_null()).unwrap();
    assert!(gone["trouble"]["error"].as_str().unwrap().ends_with("is gone"), "{gone}");
    assert_eq!(served.get("/api/page/r1", "").status, 503);
    std::fs::rename(&away, &store).unwrap();
    events.find(|event| event["trouble"].is_null()).unwrap();
    assert_eq!(served.get("/api/page/r1", "").status, 200);
    // Another store under the same name.
    let other = World::new();
    other.ok(&["run", "random-write", "--target", "null:", "--time", "50ms", "--classic"]);
    std::fs::rename(other.store(), &store).unwrap();
    let now = events.find(|event| event["whole"] == true).unwrap();
    assert_eq!(now["runs"].as_array().unwrap().len(), 1);
    assert_eq!(now["runs"][0]["suite"], "random-write");
    assert_eq!(served.json("/api/page/r1")["runs"][0]["suite"], "random-write");
    std::fs::write(&store, "no store at all").unwrap();
    let trouble = events.find(|event| !event["trouble"].is_null()).unwrap();
    assert!(trouble["trouble"]["error"].as_str().unwrap().contains("store"), "{trouble}");
}

/// One run that cannot be read is shown as such, and keeps no other from being shown.
#[test]
fn a_damaged_run_hides_no_other_from_the_page() {
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let mut events = served.listen();
    events.next().unwrap();
    if !crate::written::harm(&world.store(), "c.execute('DELETE FROM run WHERE number = 1')") {
        println!("skipped: no python3 with sqlite3");
        return;
    }
    let shown = wait_for(&mut events, "r1", |run| run["standing"] == "damaged");
    assert_eq!(shown["suite"], "");
    let live = served.json("/api/runs");
    assert_eq!(live["runs"].as_array().unwrap().len(), 2, "{live}");
    assert_eq!(live["trouble"], Value::Null);
    assert_eq!(served.get("/api/page/r2", "").status, 200);
    let refused = served.get("/api/page/r1", "");
    assert!(refused.status == 503 && refused.body.contains("its row is lost"), "{}", refused.body);
}

#[test]
fn a_store_that_another_process_has_locked_is_told_and_read_again_when_it_is_free() {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let world = World::with_two_runs();
    let served = Served::on_any_port(&world);
    let mut events = served.listen();
    events.next().unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(world.store()).unwrap();
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let locked = |text: &str| assert!(text.contains("is locked by another process"), "{text}");
    let answer = served.get("/api/page/r2", "");
    assert_eq!(answer.status, 503, "{}", answer.body);
    assert!(answer.head.contains("retry-after: "), "{}", answer.head);
    locked(&answer.body);
    // As if somebody had written: it has to look.
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let told = events.find(|event| !event["trouble"].is_null()).unwrap();
    locked(told["trouble"]["error"].as_str().unwrap());
    assert_eq!(served.get("/", "").status, 200);
    fcntl_lock(&file, FlockOperation::Unlock).unwrap();
    let since = Instant::now();
    events.find(|event| event["trouble"].is_null()).unwrap();
    assert!(since.elapsed() < PATIENCE, "told {:?} after it was free", since.elapsed());
    served.json("/api/page/r2");
}

#[test]
fn it_may_be_there_before_the_first_run() {
    let world = World::new();
    let served = Served::on_any_port(&world);
    let live = served.json("/api/runs");
    assert!(live["trouble"]["error"].as_str().unwrap().contains("there is no store"), "{live}");
    assert!(!world.store().exists(), "it makes none");
    let mut events = served.listen();
    world.ok(&MANY);
    wait_for(&mut events, "r1", |run| run["standing"] == "complete");
    assert_eq!(served.json("/api/runs")["trouble"], Value::Null);
    let done = world.run(&["--store", "none.db", "serve"]);
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("there is no store none.db yet"), "{done:?}");
}
