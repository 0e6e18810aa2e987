//! Power cuts. What a process does to the store's files is recorded; at any moment of that, the files
//! are put together as a disk may have them that keeps what was synced, and of the rest anything.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use store::{Store, StoreError};

use crate::{Numbers, killed, sample, scratch, times};

/// What a disk writes whole.
const SECTOR: usize = 512;

#[derive(Clone, Debug)]
enum Event {
    /// Opened, and made if it is not there.
    Made(String),
    Written(String, usize, Vec<u8>),
    Cut(String, usize),
    Removed(String),
    /// A file, or the directory: its name is empty.
    Synced(String),
    /// So many visits are reported as stored.
    Stored(usize),
}

/// The text with what strace puts in place of bytes.
fn bytes(text: &str) -> Vec<u8> {
    let hex = |pair: &str| u8::from_str_radix(pair, 16).unwrap();
    text.split("\\x").skip(1).map(hex).collect()
}

/// What is between the first pair of these.
fn between(text: &str, start: char, end: char) -> Option<&str> {
    text.split_once(start)?.1.split_once(end).map(|(inner, _)| inner)
}

/// * `folder`: of the store.
fn event(line: &str, folder: &str) -> Option<Event> {
    let (_, call) = line.trim_start_matches(|c: char| c.is_ascii_digit()).trim().split_once('(')?;
    let what = line.split('(').next()?.rsplit(' ').next()?;
    let name = |path: &[u8]| {
        let path = String::from_utf8_lossy(path).into_owned();
        path.strip_prefix(folder).map(|rest| rest.trim_start_matches('/').to_owned())
    };
    let of_descriptor = || name(&bytes(between(call, '<', '>')?));
    let of_path = || name(&bytes(between(call, '"', '"')?));
    let number = |at: usize| {
        let end = call.rsplit_once(')')?.0;
        end.rsplit(", ").nth(at)?.parse::<usize>().ok()
    };
    match what {
        "openat" if call.contains("O_CREAT") && !call.contains("= -1") => {
            of_path().map(Event::Made)
        }
        "pwrite64" => {
            Some(Event::Written(of_descriptor()?, number(0)?, bytes(between(call, '"', '"')?)))
        }
        "ftruncate" => Some(Event::Cut(of_descriptor()?, number(0)?)),
        "unlink" => of_path().map(Event::Removed),
        "fsync" | "fdatasync" => of_descriptor().map(Event::Synced),
        "write" => {
            let text = String::from_utf8(bytes(between(call, '"', '"')?)).ok()?;
            let order: usize = text.trim().strip_prefix("stored ")?.parse().ok()?;
            Some(Event::Stored(order + 1))
        }
        _ => None,
    }
}

/// Of `None` there is no strace here.
fn record(test: &str, visits: usize) -> Option<Vec<Event>> {
    let store = scratch(test);
    let trace = store.with_file_name("trace");
    let folder = store.parent().unwrap().join("in");
    std::fs::create_dir(&folder).unwrap();
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-xx", "-s", "100000", "-o"]).arg(&trace);
    command.args(["-e", "trace=openat,pwrite64,write,ftruncate,unlink,fsync,fdatasync"]);
    command.arg(std::env::current_exe().unwrap());
    killed::child(&mut command, &folder.join("plimsoll.db"), visits);
    if !command.output().is_ok_and(|done| done.status.success()) {
        return None;
    }
    let text = std::fs::read_to_string(&trace).unwrap();
    let folder = folder.to_str().unwrap();
    Some(text.lines().filter_map(|line| event(line, folder)).collect())
}

/// A file: what is on the disk, and what was done to it since.
#[derive(Clone, Default)]
struct File {
    kept: Vec<u8>,
    rest: Vec<Event>,
}

#[derive(Clone, Default)]
struct Disk {
    files: Vec<File>,
    /// Names on the disk, and what was done to names since.
    kept: BTreeMap<String, usize>,
    rest: Vec<(String, Option<usize>)>,
    stored: usize,
}

fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    file.resize(file.len().max(at + bytes.len()), 0);
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

impl Disk {
    fn names(&self, rest: usize) -> BTreeMap<String, usize> {
        let mut names = self.kept.clone();
        for (name, file) in self.rest.iter().take(rest) {
            match file {
                Some(file) => names.insert(name.clone(), *file),
                None => names.remove(name),
            };
        }
        names
    }

    fn play(&mut self, event: &Event) {
        let names = self.names(usize::MAX);
        let file = |name: &String| names.get(name).copied();
        match event {
            Event::Made(name) if file(name).is_none() => {
                self.rest.push((name.clone(), Some(self.files.len())));
                self.files.push(File::default());
            }
            Event::Made(_) => {}
            Event::Removed(name) => self.rest.push((name.clone(), None)),
            Event::Written(name, ..) | Event::Cut(name, _) => {
                if let Some(file) = file(name) {
                    self.files[file].rest.push(event.clone());
                }
            }
            Event::Synced(name) if name.is_empty() => {
                self.kept = names;
                self.rest.clear();
            }
            Event::Synced(name) => {
                if let Some(file) = file(name) {
                    let File { kept, rest } = &mut self.files[file];
                    rest.drain(..).for_each(|event| match event {
                        Event::Written(_, at, bytes) => write(kept, at, &bytes),
                        Event::Cut(_, length) => kept.resize(length, 0),
                        _ => {}
                    });
                }
            }
            Event::Stored(visits) => self.stored = *visits,
        }
    }

    /// The files as they may be after a power cut: of what was not synced any sectors, in any order.
    fn cut(&self, numbers: &mut Numbers) -> BTreeMap<String, Vec<u8>> {
        let names = self.names(numbers.below(self.rest.len() + 1));
        let mut some = |File { kept, rest }: &File| {
            let mut content = kept.clone();
            // All, none, or each with a chance.
            let way = numbers.below(3);
            for event in rest {
                match event {
                    Event::Written(_, at, bytes) => {
                        let sectors = bytes.chunks(SECTOR).enumerate();
                        for (number, sector) in sectors {
                            if way == 0 || way == 1 && numbers.below(2) == 0 {
                                write(&mut content, at + number * SECTOR, sector);
                            }
                        }
                    }
                    Event::Cut(_, length) if way < 2 => content.resize(*length, 0),
                    _ => {}
                }
            }
            content
        };
        names.into_iter().map(|(name, file)| (name, some(&self.files[file]))).collect()
    }
}

/// What is in the store after a power cut; how many visits.
fn visits_after(files: &BTreeMap<String, Vec<u8>>, folder: &Path) -> usize {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir(folder).unwrap();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    let path = folder.join("plimsoll.db");
    match Store::open_read_only(&path) {
        Err(StoreError::Empty(_) | StoreError::CannotOpen { .. }) => return 0,
        store => drop(store.unwrap()),
    }
    let Some(run) = Store::open(&path).unwrap().list().unwrap().pop() else { return 0 };
    let run = Store::open(&path).unwrap().load(&run.id).unwrap();
    for (order, visit) in (0..).zip(&run.visits) {
        assert!(*visit == sample::visit(order), "visit {order} differs");
    }
    run.visits.len()
}

/// `PLIMSOLL_CUTS=10000` for the long form.
#[test]
fn a_power_cut_loses_no_stored_visit() {
    let Some(events) = record("power", 8) else {
        println!("skipped: no strace here");
        return;
    };
    let syncs = events.iter().filter(|event| matches!(event, Event::Synced(_))).count();
    let folder = scratch("power_after").with_file_name("cut");
    let (mut numbers, mut unsynced) = (Numbers(7), 0);
    let cuts = times("PLIMSOLL_CUTS", 150);
    let moments = 1..=events.len();
    let mut disk = Disk::default();
    let mut done = 0;
    for moment in moments {
        disk.play(&events[moment - 1]);
        while done < cuts * moment / events.len() {
            done += 1;
            unsynced += usize::from(disk.files.iter().any(|file| !file.rest.is_empty()));
            let found = visits_after(&disk.cut(&mut numbers), &folder);
            let stored = disk.stored;
            assert!((stored..=stored + 1).contains(&found), "moment {moment}: {stored} {found}");
        }
    }
    println!(
        "{done} cuts at {} moments, {unsynced} with unsynced writes, {syncs} syncs",
        events.len()
    );
    assert_eq!(disk.stored, 8, "all that the process did was seen");
}
