//! Copies of a store with bytes changed at many places: each gives the same answers as before, or an
//! error.

use std::path::Path;

use record::{Run, RunSummary};
use store::{Store, StoreError, StoredCalibration};

use crate::{Numbers, sample, scratch};

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

#[test]
fn a_garbled_store_gives_the_same_answers_or_says_so() {
    let path = scratch("a_garbled_store");
    drop(fill(&path));
    let good = std::fs::read(&path).unwrap();
    let expected = answers(&path).unwrap();
    let copy = path.with_file_name("copy.db");
    let copies = 600;
    let mut numbers = Numbers(copies as u64);
    let (mut failed, mut wrong) = (0, Vec::new());
    for step in 0..copies {
        let mut bytes = good.clone();
        garble(&mut bytes, step, &mut numbers);
        std::fs::write(&copy, &bytes).unwrap();
        match answers(&copy) {
            Err(_) => failed += 1,
            Ok(found) if found == expected => {}
            Ok(_) => wrong.push(step),
        }
    }
    assert!(wrong.is_empty(), "read on without a word: copies {wrong:?} of {copies}");
    assert!(failed > 100, "{failed}");
}
