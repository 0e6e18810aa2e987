//! `plimsoll layer create|serve|status|check|destroy`

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;
use units::{ByteOffset, Bytes};
use volume::StampedWrites;

use crate::world::{Done, World};

const BLOCK: usize = 4096;
const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;

/// A client of the network block device protocol, one request at a time.
struct Client(UnixStream);

impl Client {
    fn connect(socket: &PathBuf) -> Self {
        let late = Instant::now() + Duration::from_secs(30);
        let mut stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) => assert!(Instant::now() < late, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed, no zeroes; then the export without a name.
        stream.write_all(&3u32.to_be_bytes()).unwrap();
        stream.write_all(&[b"IHAVEOPT".as_slice(), &1u32.to_be_bytes(), &[0; 4]].concat()).unwrap();
        let mut size_and_flags = [0; 10];
        stream.read_exact(&mut size_and_flags).unwrap();
        Self(stream)
    }

    /// Errors where the server goes away.
    fn ask(&mut self, command: u16, at: u64, data: &[u8], into: &mut [u8]) -> std::io::Result<u32> {
        let length = (data.len() + into.len()) as u32;
        let mut request = [&0x2560_9513u32.to_be_bytes()[..], &[0; 2]].concat();
        request.extend(command.to_be_bytes());
        request.extend(at.to_be_bytes());
        request.extend(at.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.0.write_all(&request)?;
        let mut reply = [0; 16];
        self.0.read_exact(&mut reply)?;
        let error = u32::from_be_bytes([reply[4], reply[5], reply[6], reply[7]]);
        if error == 0 {
            self.0.read_exact(into)?;
        }
        Ok(error)
    }

    fn read(&mut self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert_eq!(self.ask(READ, at, &[], &mut bytes).unwrap(), 0);
        bytes
    }

    fn write(&mut self, at: u64, data: &[u8]) {
        assert_eq!(self.ask(WRITE, at, data, &mut []).unwrap(), 0);
    }
}

struct Serving(Child);

impl Serving {
    fn of(world: &World) -> Self {
        let mut command = world.command(&["layer", "serve", "v", "--socket", "s"]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn send(&mut self, signal: Signal) -> i32 {
        kill_process(Pid::from_child(&self.0), signal).unwrap();
        self.0.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn made() -> World {
    made_of("16MiB")
}

fn made_of(size: &str) -> World {
    let world = World::new();
    world.ok(&["layer", "create", "v", "--size", size]);
    world
}

/// Numbers that look random.
fn random() -> impl FnMut(u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    }
}

/// `check` finds nothing.
fn is_whole(world: &World) {
    let found = known(world, "check");
    let nothing = Value::Array(Vec::new());
    assert_eq!((&found["damaged"], &found["faults"]), (&nothing, &nothing));
}

fn known(world: &World, command: &str) -> Value {
    serde_json::from_str(&world.run(&["layer", command, "v", "--json"]).out).unwrap()
}

#[test]
fn a_volume_is_made_served_looked_at_and_removed() {
    let world = World::new();
    let told = world.ok(&["layer", "create", "v", "--size", "16MiB", "--dry-run"]).out;
    assert!(told.contains("Creates ") && told.contains("a volume of 16 MiB"), "{told}");
    assert_eq!(world.files(), ["home"]);
    world.ok(&["layer", "create", "v", "--size", "16MiB"]);
    let mut serving = Serving::of(&world);
    let mut client = Client::connect(&world.path("s"));
    // Not made of whole blocks.
    client.write(5000, b"so far, so good");
    assert_eq!(client.read(5000, 15), b"so far, so good");
    // One server at a time, and nobody looks at what it writes.
    for words in [&["layer", "serve", "v", "--socket", "t"][..], &["layer", "status", "v"]] {
        let failed = world.run(words);
        assert!(failed.code == 3 && failed.err.contains("v is in use by process "), "{failed:?}");
    }
    assert_eq!(serving.send(Signal::INT), 130);
    let found = known(&world, "check");
    assert_eq!((&found["closed"], &found["live_bytes"]), (&Value::from(true), &Value::from(4096)));
    assert_eq!(found["damaged"], Value::Array(Vec::new()));
    let refused = world.run(&["layer", "destroy", "v"]);
    assert!(refused.code == 3 && refused.err.contains("add `--yes`"), "{refused:?}");
    world.ok(&["layer", "destroy", "v", "--yes"]);
    assert_eq!(world.files(), ["home"]);
}

#[test]
fn what_is_not_to_be_a_volume_is_left_alone() {
    let world = World::new();
    std::fs::write(world.path("dear"), vec![7; 1 << 20]).unwrap();
    for (words, said) in [
        (&["create", "dear", "--size", "16MiB"][..], "is there already"),
        (&["create", "v"], "v is not there, and a volume in a new file needs its size"),
        (&["create", "array:gp3-alone", "--size", "16MiB"], "names no file or device"),
        (&["serve", "dear"], "--socket <SOCKET>|--mount <DIRECTORY>"),
        (&["create", "v", "--size", "16MiB", "--fill", "95%"], "wanted a fill of 10% to 90%"),
        (&["create", "v", "--size", "20TiB"], "no volume of that size fits there"),
        (&["create", ".", "--size", "16MiB"], "is neither a file nor a block device"),
        (&["create", "no/v", "--size", "16MiB"], "its directory no does not exist"),
        (&["status", "dear"], "no volume on the device"),
        (&["check", "dear"], "no volume on the device"),
        (&["serve", "dear", "--socket", "s"], "no volume on the device"),
        (&["destroy", "dear", "--yes"], "no volume on the device"),
        (&["status", "nothing"], "cannot open nothing"),
    ] {
        let failed = world.run(&[&["layer"], words].concat());
        assert!(failed.code > 1 && failed.err.contains(said), "{words:?}: {failed:?}");
    }
    assert_eq!(world.files(), ["dear", "home"]);
    assert!(std::fs::read(world.path("dear")).unwrap().iter().all(|&byte| byte == 7));
    // A volume is no scratch file: a run may not write it. Nor is any file a socket that was left.
    world.ok(&["layer", "create", "v", "--size", "16MiB"]);
    let refused = world.run(&["layer", "serve", "v", "--socket", "dear"]);
    assert!(refused.code == 5 && refused.err.contains("cannot listen on dear"), "{refused:?}");
    assert!(world.path("dear").exists());
    let refused = world.run(&["run", "random-write", "--target", "v", "--quick"]);
    assert_eq!(refused.code, 3, "{refused:?}");
}

#[test]
fn damage_is_found_and_told() {
    let world = made();
    let mut serving = Serving::of(&world);
    let mut client = Client::connect(&world.path("s"));
    client.write(8 * BLOCK as u64, &[0xa5; BLOCK]);
    assert_eq!(client.ask(FLUSH, 0, &[], &mut []).unwrap(), 0);
    serving.send(Signal::TERM);
    let bytes = std::fs::read(world.path("v")).unwrap();
    let place = bytes.windows(BLOCK).position(|window| window == [0xa5; BLOCK]).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(world.path("v")).unwrap();
    file.write_all_at(&[0x5a], place as u64 + 9).unwrap();
    let found = known(&world, "check");
    assert_eq!(found["damaged"], Value::from(vec![8 * BLOCK]), "{found}");
    let told = world.run(&["layer", "check", "v"]);
    assert!(told.code == 7 && told.out.contains("block at byte 32768"), "{told:?}");
    let mut serving = Serving::of(&world);
    let mut client = Client::connect(&world.path("s"));
    let mut bytes = [0; BLOCK];
    assert_eq!(client.ask(READ, 8 * BLOCK as u64, &[], &mut bytes).unwrap(), 5, "EIO");
    assert_eq!(client.read(0, BLOCK), [0; BLOCK]);
    serving.send(Signal::INT);
}

/// What a block says: its place, and the number of the write.
fn stamped(place: u64, number: u64) -> Vec<u8> {
    [place.to_le_bytes(), number.to_le_bytes()].concat().repeat(BLOCK / 16)
}

fn stamp(block: &[u8]) -> (u64, u64) {
    let word = |at: usize| u64::from_le_bytes(*block[at..].first_chunk().unwrap());
    assert!(block.chunks(16).all(|pair| pair == &block[..16]), "torn");
    (word(0), word(8))
}

/// Killed in the middle of writes, ten times (`PLIMSOLL_KILLS` for more): what a flush was answered for is
/// there, and what is there is the state after a prefix of the writes.
#[test]
fn a_server_that_is_killed_loses_nothing_that_was_flushed() {
    let kills = std::env::var("PLIMSOLL_KILLS").map_or(10, |text| text.parse().unwrap());
    let (world, mut next) = (made(), random());
    let mut stamped = StampedWrites::new(1, Bytes::mib(16));
    // What is kept outside of the server.
    let mut flushed = 0;
    for kill in 0..kills {
        let mut serving = Serving::of(&world);
        let mut client = Client::connect(&world.path("s"));
        let read = |at: ByteOffset, into: &mut [u8]| {
            client.ask(READ, at.get(), &[], into).map(|error| error == 0)
        };
        let differ = stamped.judge(read).unwrap();
        let last = stamped.last();
        assert!(differ.is_empty() && last >= flushed, "{kill}: {last} of {flushed}, {differ:?}");
        let ends = Instant::now() + Duration::from_millis(30 + next(100));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(ends - Instant::now());
            serving.send(Signal::KILL);
        });
        for number in last + 1.. {
            let (at, data) = stamped.write(number);
            if client.ask(WRITE, at.get(), &data, &mut []).is_err() {
                break;
            }
            if next(20) == 0 {
                match client.ask(FLUSH, 0, &[], &mut []) {
                    Ok(error) => assert_eq!(error, 0),
                    Err(_) => break,
                }
                flushed = number;
            }
        }
        killer.join().unwrap();
    }
    assert!(flushed > 100, "{flushed} writes were flushed");
    is_whole(&world);
}

#[test]
fn who_asks_sees_a_volume_survive_kills() {
    let world = World::new();
    let said = world.ok(&["layer", "crash-test", ".", "--kills", "3", "--json"]).out;
    let found: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&found["kills"], &found["lost"]), (&Value::from(3), &Value::from(0)), "{found}");
    assert_eq!(found["wrong"], Value::Array(Vec::new()));
    assert!(found["writes"].as_u64().unwrap() > 60, "{found}");
    // What is killed writes over a volume: none but the one that was made for it.
    world.ok(&["layer", "create", "v", "--size", "16MiB"]);
    let refused = world.run(&["layer", "crash-writer", "v", "1", "1"]);
    assert!(refused.code == 3 && refused.err.contains("was not made by"), "{refused:?}");
    assert_eq!(known(&world, "status")["live_bytes"], Value::from(0));
    std::fs::write(world.path("plimsoll-crash-test"), b"dear").unwrap();
    let refused = world.run(&["layer", "crash-test", "."]);
    assert!(refused.code == 3 && refused.err.contains("is there already"), "{refused:?}");
    assert_eq!(std::fs::read(world.path("plimsoll-crash-test")).unwrap(), b"dear");
}

/// Ctrl-C of a terminal goes to all processes of a command.
#[test]
fn a_crash_test_that_is_interrupted_says_how_far_it_is() {
    let world = World::new();
    let mut command = world.command(&["layer", "crash-test", ".", "--kills", "1000"]);
    command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    // It has killed a few, and says so.
    let (mut told, stderr) = (String::new(), running.stderr.take().unwrap());
    let mut notes = BufReader::new(stderr);
    notes.read_line(&mut told).unwrap();
    assert!(told.contains(" kills of 1000, about "), "{told}");
    kill_process_group(Pid::from_child(&running), Signal::INT).unwrap();
    let done = Done::from(running.wait_with_output().unwrap());
    assert!(done.code == 130 && done.out.contains(" survived "), "{done:?}");
    assert_eq!(world.files(), ["home"]);
}

// What befell the first layer of this kind in a study of 2008, each as a test; the two that need a file
// system are in tests/real.

/// There, writing stopped after 2 GB of `dd`.
#[test]
fn more_than_two_gigabytes_are_written_in_a_row() {
    const PIECE: usize = 1 << 20;
    let (world, pieces) = (made_of("64MiB"), 64);
    let mut serving = Serving::of(&world);
    let mut client = Client::connect(&world.path("s"));
    let data = |number: u64| stamped(number % pieces, number).repeat(PIECE / BLOCK);
    for number in 0..2200 {
        client.write(number % pieces * PIECE as u64, &data(number));
    }
    for number in 2200 - pieces..2200 {
        assert!(client.read(number % pieces * PIECE as u64, PIECE) == data(number), "{number}");
    }
    assert_eq!(serving.send(Signal::INT), 130);
    is_whole(&world);
}

const PAGE: usize = 16 << 10;

/// Writes pages of 16 KiB at random, four times as many as there are, and returns the number of the write that
/// each had last.
fn pages_written(client: &mut Client, pages: u64) -> Vec<u64> {
    let mut next = random();
    let mut last = vec![0; pages as usize];
    for number in 1..=4 * pages {
        let page = next(pages);
        client.write(page * PAGE as u64, &stamped(page, number).repeat(PAGE / BLOCK));
        last[page as usize] = number;
        if number % 200 == 0 {
            assert_eq!(client.ask(FLUSH, 0, &[], &mut []).unwrap(), 0);
        }
    }
    last
}

/// There, a database found pages that were other pages.
#[test]
fn no_page_is_another_page() {
    let (world, pages) = (made(), 1024);
    let mut serving = Serving::of(&world);
    let mut client = Client::connect(&world.path("s"));
    let last = pages_written(&mut client, pages);
    for again in [false, true] {
        for page in (0..pages).filter(|&page| last[page as usize] > 0) {
            let wanted = (page, last[page as usize]);
            let seen = client.read(page * PAGE as u64, PAGE);
            assert!(seen.chunks(BLOCK).all(|block| stamp(block) == wanted), "{page} {again}");
        }
        assert_eq!(serving.send(Signal::TERM), 143);
        serving = Serving::of(&world);
        client = Client::connect(&world.path("s"));
    }
}

/// There, the drive could only be read from in the midst of a test. Filled as far as it goes.
#[test]
fn a_full_volume_is_written_on_and_on() {
    let (world, pages) = (World::new(), 1024);
    world.ok(&["layer", "create", "v", "--size", "16MiB", "--fill", "90%"]);
    let mut serving = Serving::of(&world);
    let mut client = Client::connect(&world.path("s"));
    for page in 0..pages {
        client.write(page * PAGE as u64, &stamped(page, 0).repeat(PAGE / BLOCK));
    }
    for _ in 0..3 {
        pages_written(&mut client, pages);
    }
    assert_eq!(serving.send(Signal::INT), 130);
    is_whole(&world);
}
