//! Copies of a store with bytes changed at many places: each gives the same answers as before, or an
//! error, or a doubt about the log.

use std::path::Path;

use record::{Run, RunSummary};
use store::{Store, StoreError, StoredCalibration};

use crate::{kill, sample, scratch};

/// All that is ever read of a store.
type Answers = (Vec<RunSummary>, Vec<Run>, Vec<Run>, Vec<String>, Option<StoredCalibration>);

fn answers(path: &Path) -> Result<Answers, StoreError> {
    let store = Store::open(path)?;
    let listed = store.list()?;
    let each = ["r1", "r2", "r3"];
    let runs = each.iter().map(|id| store.load(id)).collect::<Result<_, _>>()?;
    let outlines = each.iter().map(|id| store.outline(id)).collect::<Result<_, _>>()?;
    let named = ["last", "last-1"].iter().map(|id| store.resolve(id)).collect::<Result<_, _>>()?;
    Ok((listed, runs, outlines, named, store.calibration("machine")?))
}

fn fill(path: &Path) -> Store {
    let mut store = Store::open(path).unwrap();
    let mut header = sample::header();
    let id = store.create_run(&header, &sample::cells()).unwrap();
    (0..4).for_each(|order| store.add_visit(&id, &sample::visit(order)).unwrap());
    store.add_warning(&id, &record::Warning::new("a", "doubt")).unwrap();
    store.add_runs(&[sample::imported("r2")]).unwrap();
    let calibration = |started_unix_ns| StoredCalibration {
        machine: "machine".to_owned(),
        started_unix_ns,
        version: 1,
        body: "{\"noise\": 0.01}".to_owned(),
    };
    store.add_calibration(&calibration(1)).unwrap();
    store.add_calibration(&calibration(2)).unwrap();
    header.suite = "another".to_owned();
    let id = store.create_run(&header, &sample::cells()).unwrap();
    store.add_visit(&id, &sample::visit(0)).unwrap();
    store
}

/// A stream of numbers from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Changes bytes in one place: a bit, a byte, some bytes, a sector or a page of zeros.
fn garble(bytes: &mut [u8], way: usize, numbers: &mut Numbers) {
    let end = bytes.len();
    let at = numbers.below(end);
    let stretch = |length: usize| at / length * length..(at / length * length + length).min(end);
    match way % 6 {
        0 => bytes[at] ^= 1 << numbers.below(8),
        1 => bytes[at] ^= 0xff,
        2 => bytes[at] = bytes[at].wrapping_add(1),
        3 => bytes[at..].iter_mut().take(16).for_each(|byte| *byte = numbers.below(256) as u8),
        4 => bytes[stretch(512)].fill(0),
        _ => bytes[stretch(4096)].fill(0),
    }
}

/// How many copies were another, said so, or doubted; the others gave the same answers.
fn play(test: &str, garbles_log: bool, copies: usize) -> (usize, usize) {
    let path = scratch(test);
    let store = fill(&path);
    match garbles_log {
        true => kill(store),
        false => drop(store),
    }
    let log = path.with_file_name("plimsoll.db-wal");
    let (good, good_log) = (std::fs::read(&path).unwrap(), std::fs::read(&log).unwrap_or_default());
    let place = path.with_file_name("copy");
    let put = |file: &[u8], beside: &[u8]| {
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).unwrap();
        let copy = place.join("plimsoll.db");
        std::fs::write(&copy, file).unwrap();
        if !beside.is_empty() {
            std::fs::write(place.join("plimsoll.db-wal"), beside).unwrap();
        }
        copy
    };
    let copy = put(&good, &good_log);
    assert_eq!(store::doubt(&copy), None, "nothing is wrong with the whole");
    let expected = answers(&copy).unwrap();
    let mut numbers = Numbers(copies as u64);
    let (mut failed, mut doubted, mut wrong) = (0, 0, Vec::new());
    for step in 0..copies {
        let (mut file, mut beside) = (good.clone(), good_log.clone());
        garble(if garbles_log { &mut beside } else { &mut file }, step, &mut numbers);
        let copy = put(&file, &beside);
        let doubt = store::doubt(&copy);
        match answers(&copy) {
            _ if doubt.is_some() => doubted += 1,
            Err(_) => failed += 1,
            Ok(found) if found == expected => {}
            Ok(_) => wrong.push(step),
        }
    }
    assert!(wrong.is_empty(), "read on without a word: copies {wrong:?} of {copies}");
    (failed, doubted)
}

#[test]
fn a_garbled_store_gives_the_same_answers_or_says_so() {
    let (failed, doubted) = play("a_garbled_store", false, 600);
    assert!(failed > 100 && doubted == 0, "{failed} {doubted}");
}

#[test]
fn a_garbled_log_gives_the_same_answers_or_says_so() {
    let (failed, doubted) = play("a_garbled_log", true, 600);
    assert!(doubted > 500, "{failed} {doubted}");
}

/// A writer that is killed leaves a log that ends anywhere: what was committed is read, without a doubt.
#[test]
fn a_log_that_was_cut_short_by_a_kill_is_no_doubt() {
    let path = scratch("a_log_cut_short");
    kill(fill(&path));
    let log = path.with_file_name("plimsoll.db-wal");
    let whole = std::fs::read(&log).unwrap();
    for step in 0..50 {
        let length = 32 + (whole.len() - 32) * step / 50;
        std::fs::write(&log, &whole[..length]).unwrap();
        assert_eq!(store::doubt(&path), None, "{length}");
    }
}

/// A log that began anew over an older one has frames of both.
#[test]
fn a_log_that_began_anew_is_no_doubt() {
    let path = scratch("a_log_that_began_anew");
    fill(&path);
    for _ in 0..3 {
        let raw = rusqlite::Connection::open(&path).unwrap();
        raw.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        let mut store = Store::open(&path).unwrap();
        store.add_warning("r1", &record::Warning::new("b", "more")).unwrap();
        assert_eq!(store::doubt(&path), None);
        assert!(store.load("r1").is_ok() && store.list().is_ok());
    }
}
