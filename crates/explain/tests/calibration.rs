//! Calibrations of made-up runs of which the truth is known.

mod common;

use explain::calibration::{Calibration, machine_key};
use record::{Bitmap, CellRecord, Gap, Run, StreamPlan, TargetKind, VisitRecord};
use stats::Random;

const SEED: u64 = 41;
/// Log-sd of a visit.
const NOISE: f64 = 0.02;

#[test]
fn the_floor_is_what_the_noise_makes_of_ten_blocks() {
    let found = Calibration::of(&planted(600, NOISE, 0.0), None, None);
    assert_eq!((found.blocks, found.group, found.overall.values), (300, 10, 360));
    // A mean of ten differences has log-sd 0.02 sqrt(2 / 10); 95 % lie within 1.96 of it.
    let truth = 1.96 * NOISE * (2.0f64 / 10.0).sqrt();
    let floor = found.overall.floor.unwrap();
    assert!((floor / truth - 1.0).abs() < 0.15, "{floor}, wanted {truth}, seed {SEED}");
    let cv = found.overall.cv.unwrap();
    assert!((cv / NOISE - 1.0).abs() < 0.05, "{cv}");
    assert_eq!(found.classes.len(), 3);
    let given = found.floor(&planted(2, 0.0, 0.0).header).unwrap();
    assert_eq!(given.classes.len(), 3, "every class has a floor of its own");
    for (class, floor) in &given.classes {
        assert!((floor / truth - 1.0).abs() < 0.3, "{class:?}: {floor}, wanted {truth}");
    }
}

#[test]
fn a_short_one_takes_the_largest_and_lends_it_to_all() {
    let found = Calibration::of(&planted(20, NOISE, 0.0), None, None);
    assert_eq!((found.blocks, found.overall.values), (10, 12));
    let classes = found.classes.iter().map(|class| class.noise.floor.unwrap());
    assert_eq!(classes.reduce(f64::max), found.overall.floor);
    let given = found.floor(&planted(2, 0.0, 0.0).header).unwrap();
    assert!(given.classes.is_empty());
    assert_eq!(
        given.from,
        "calibrate of 20 February 2009 on db1, /ssd/test.dat, of means of 10 blocks"
    );
    insta::assert_snapshot!(found.sentences().join("\n"));
}

#[test]
fn a_coin_takes_the_drift_out() {
    // Every visit 1 % faster than the one before: without coins every mean is 1 %.
    let found = Calibration::of(&planted(20, 0.0, 0.01), None, None);
    let floor = found.overall.floor.unwrap();
    assert!(floor < 0.0095 && floor > 0.0, "{floor}, seed {SEED}");
}

#[test]
fn half_a_block_is_none_and_nothing_is_unknown() {
    let mut run = planted(20, NOISE, 0.0);
    run.visits.retain(|visit| !(visit.cell == 3 && visit.repeat == 7));
    assert_eq!(Calibration::of(&run, None, None).blocks, 9);
    run.visits.clear();
    let none = Calibration::of(&run, None, None);
    assert_eq!((none.blocks, none.overall.floor, none.null_rate()), (0, None, None));
    assert!(none.floor(&run.header).is_none());
    assert!(none.sentences()[0].starts_with("Unknown: "), "{:?}", none.sentences());
    run.cells.clear();
    assert!(!Calibration::of(&run, None, None).sentences().is_empty());
}

#[test]
fn stalls_are_counted_by_the_hour() {
    let mut run = planted(20, 0.0, 0.0);
    run.visits[5].host_stalls.push(Gap { start_ns: 0, length_ns: 80_000_000 });
    run.visits[9].host_stalls.push(Gap { start_ns: 0, length_ns: 120_000_000 });
    let stalls = Calibration::of(&run, None, None).stalls;
    assert_eq!((stalls.count, stalls.longest_ns), (2, 120_000_000));
    // 240 visits of 2 s: 8 minutes.
    let per_hour = stalls.per_hour.unwrap();
    assert!((per_hour.rate - 15.0).abs() < 1e-9 && per_hour.low < 2.0 && per_hour.high > 54.0);
    run.header.target.kind = TargetKind::Twin;
    assert_eq!(Calibration::of(&run, None, None).stalls.per_hour, None, "nobody looked");
}

#[test]
fn what_is_otherwise_is_named_and_twins_are_apart() {
    let run = planted(20, NOISE, 0.0);
    let found = Calibration::of(&run, None, None);
    let mut now = run.header.clone();
    now.machine.kernel = "6.12.0".into();
    now.program = "0.2.0".into();
    now.target.devices = vec!["sdb".into()];
    assert_eq!(machine_key(&now), machine_key(&run.header), "it is the same machine");
    assert_eq!(
        found.floor(&now).unwrap().from,
        "calibrate of 20 February 2009 on db1, /ssd/test.dat, of means of 10 blocks, measured with \
         kernel 6.1.0 and with version 0.1.0 of the program and on another target"
    );
    now.target.kind = TargetKind::Twin;
    assert_ne!(machine_key(&now), machine_key(&run.header));
    now = run.header.clone();
    now.machine.memory_bytes -= 5 << 20;
    assert_eq!(machine_key(&now), machine_key(&run.header), "kernels keep a little for themselves");
    let twin = |given: &str| {
        let mut now = run.header.clone();
        now.target.kind = TargetKind::Twin;
        now.target.given = given.into();
        machine_key(&now)
    };
    assert_eq!(twin("memory:1GiB"), twin("memory:2GiB"));
    assert_ne!(twin("memory:1GiB"), twin("null:"));
    assert_ne!(twin("model:a.toml"), twin("model:b.toml"));
    now.machine.host = "db2".into();
    assert_ne!(machine_key(&now), machine_key(&run.header));
}

#[test]
fn what_came_once_is_no_noise_and_is_told() {
    assert!(Calibration::of(&planted(20, NOISE, 0.0), None, None).events.is_empty());
    // Half the rate from the eighth visit of each cell on, and never back.
    let mut run = planted(20, NOISE, 0.0);
    for visit in run.visits.iter_mut().filter(|visit| visit.repeat >= 7) {
        halve(visit);
    }
    let found = Calibration::of(&run, None, None);
    assert!(found.overall.floor.unwrap() > 0.05, "half of a tenth of ln 2: {found:?}");
    assert_eq!(found.events.len(), 1, "{:?}", found.events);
    assert!(found.sentences().contains(&found.events[0]), "{:?}", found.sentences());
    let from = found.floor(&run.header).unwrap().from;
    assert!(from.ends_with(", with more than noise in it: calibrate again"), "{from}");
    // Only one cell.
    let mut run = planted(20, NOISE, 0.0);
    for visit in run.visits.iter_mut().filter(|v| v.repeat >= 7 && v.cell == 3) {
        halve(visit);
    }
    let found = Calibration::of(&run, None, None);
    assert_eq!(found.events.len(), 1, "{:?}", found.events);
    assert!(found.events[0].starts_with("`read 3`"), "{:?}", found.events);
    // Nothing came back in one visit for most of it.
    let mut run = planted(20, NOISE, 0.0);
    stand_still(&mut run.visits[60], 1_500);
    let found = Calibration::of(&run, None, None);
    assert_eq!(found.events.len(), 1, "{:?}", found.events);
    assert!(found.events[0].contains("1.5 s") && found.events[0].contains("`read 0`"), "{found:?}");
    // A calibration of before knows of none.
    let text = serde_json::to_string(&found).unwrap();
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    old.as_object_mut().unwrap().remove("events");
    assert!(serde_json::from_value::<Calibration>(old).unwrap().events.is_empty());
}

#[test]
fn what_is_stored_comes_back() {
    let found = Calibration::of(&planted(20, NOISE, 0.0), None, None);
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), found);
}

fn halve(visit: &mut VisitRecord) {
    visit.streams[0].ops[0].requests /= 2;
}

/// After its first 200 ms.
fn stand_still(visit: &mut VisitRecord, ms: u64) {
    let mut completions = Bitmap::zeros(2_000);
    (0..2_000).filter(|at| !(200..200 + ms).contains(at)).for_each(|at| completions.set(at));
    visit.completions = completions;
    let op = &mut visit.streams[0].ops[0];
    op.latency_ns_max = ms * 1_000_000;
    op.requests = op.requests * (2_000 - ms) / 2_000;
}

/// Twelve cells in three classes; visits of this noise, each faster than the one before by `drift`.
fn planted(visits: u32, noise: f64, drift: f64) -> Run {
    let mut random = Random::new(SEED);
    let mut made = Vec::new();
    for repeat in 0..visits {
        for cell in 0..12 {
            let rate = 5_000.0 * f64::from(cell + 1);
            let rate = rate * (noise * random.normal() + drift * f64::from(repeat)).exp();
            let order = made.len() as u32;
            made.push(VisitRecord {
                order,
                started_unix_ns: common::header().started_unix_ns
                    + i64::from(order) * 3_000_000_000,
                ..common::visit(cell, repeat, rate)
            });
        }
    }
    Run { header: common::header(), cells: (0..12).map(cell).collect(), visits: made }
}

fn cell(index: u32) -> CellRecord {
    CellRecord {
        index,
        phase: "read".into(),
        coordinates: vec![("queue_depth".into(), index.to_string())],
        streams: vec![StreamPlan {
            name: "read".into(),
            op: "read".into(),
            block_bytes: Some(4096),
            threads: 1,
            queue_depth: [1, 8, 32][index as usize % 3],
        }],
        impossible: None,
    }
}
