//! Comparisons: the studies' own claims judged by their own numbers, and planted runs.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panic")]

mod common;

use explain::compare::{
    Comparison, Design, Direction, Doubt, Finding, Floor, MarginFrom, Method, Terms, Verdict,
    compare, compare_beside,
};
use explain::differ::differences;
use explain::view::View;
use finding::Code;
use record::{
    Bitmap, Blocks, CellRecord, Run, RunHeader, RunState, StreamPlan, TargetKind, VisitEnd,
    VisitRecord,
};
use stats::{LatencyHistogram, Random};
use units::Nanos;

/// Figure 4 of "100K+ IOPS on semi-commodity hardware": jfs with cfq against xfs with noop, and
/// other controllers meanwhile.
#[test]
fn file_system_and_scheduler_changed_together_credit_neither() {
    let stack = |run: &mut Run, file_system: &str, scheduler: &str, controller: &str| {
        let target = &mut run.header.target;
        target.file_system = Some(file_system.to_owned());
        target.remarks =
            vec![format!("scheduler: {scheduler}"), format!("controller: {controller}")];
    };
    let (mut a, mut b) = (Planted::new("r1").run(), Planted::new("r2").faster(2.0).run());
    stack(&mut a, "jfs", "cfq", "2 x Areca 1680");
    stack(&mut b, "xfs", "noop", "2 x Areca 1231");
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let against = &seen.against[0];
    let names: Vec<_> = against.differences.factors.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["controller", "file system", "scheduler"]);
    assert_eq!(against.overall.verdict, Verdict::Different);
    insta::assert_snapshot!(seen.sentences().join("\n"));
}

#[test]
fn blocks_cancel_a_drift_that_would_be_a_difference() {
    let drift = |visit: u32| 0.98_f64.powi(visit as i32);
    let blocks = |id: &str, ratio: f64, seed: u64| {
        Planted { blocks: Some("g1"), visits: 10, drift, seed, ..Planted::new(id) }.faster(ratio)
    };
    let (a, b) = (blocks("r1", 1.0, 1).run(), blocks("r2", 1.1, 2).run());
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let against = &seen.against[0];
    assert_eq!(against.design, Design::Blocks);
    assert_eq!(against.overall.method, Method::SignedRank);
    assert_eq!(against.overall.verdict, Verdict::Different, "{:#?}", against.overall);
    assert_eq!(against.overall.direction, Some(Direction::Faster));
    assert!(against.cells.iter().all(|c| c.outcome.method == Method::PairedT), "42 cells: no rank");
    let different = against.cells.iter().filter(|c| c.outcome.verdict == Verdict::Different);
    assert!(different.count() >= 38, "of 42");
    let same = compare(&[View::new(&a), View::new(&a)], &Terms::default());
    assert_eq!(same.against[0].overall.verdict, Verdict::Same);
    assert!(same.against[0].differences.is_none());
}

#[test]
fn no_verdict_stands_without_the_word_that_a_side_changed_its_level() {
    let halves = |repeat: u32| if repeat < 7 { 1.0 } else { 0.5 };
    let of = |id: &str, drift: fn(u32) -> f64, blocks| {
        let mut run = Planted { cells: 4, visits: 10, drift, blocks, ..Planted::new(id) }.run();
        for (order, visit) in (0..).zip(&mut run.visits) {
            visit.order = order;
            visit.started_unix_ns = run.header.started_unix_ns + i64::from(order) * 3_000_000_000;
        }
        run
    };
    // One cell of B fell on the way.
    let (a, mut b) = (of("r1", |_| 1.0, None), of("r2", |_| 1.0, None));
    let fell = of("r2", halves, None).visits;
    for (visit, fell) in b.visits.iter_mut().zip(fell).filter(|(visit, _)| visit.cell == 3) {
        *visit = fell;
    }
    let said = |a: &Run, b: &Run| {
        let seen = compare(&[View::new(a), View::new(b)], &Terms::default());
        let against = &seen.against[0];
        let rows =
            against.cells.iter().filter_map(|row| row.not_on_one_level("B")).collect::<Vec<_>>();
        (against.headline(), rows)
    };
    let (headline, rows) = said(&a, &b);
    assert!(
        headline.contains(". Not on one level: B in `read 4` (to 50 %). Rates there are"),
        "{headline}"
    );
    assert_eq!(rows, ["B"]);
    let (headline, rows) = said(&b, &a);
    assert!(
        headline.contains(". Not on one level: A in `read 4` (to 50 %). Rates there are"),
        "{headline}"
    );
    assert_eq!(rows, ["A"]);
    assert!(!said(&a, &a).0.contains("level"));
    // In blocks what falls on both alike is in no ratio, and what falls on one is.
    let blocks = |id, drift| of(id, drift, Some("g"));
    let (a, b) = (blocks("r1", |_| 1.0), blocks("r2", halves));
    let (headline, rows) = said(&a, &b);
    assert!(headline.contains("Not on one level: B in `read 1` (to 50 %)"), "{headline}");
    assert_eq!(rows, ["B"; 4]);
    let (headline, rows) = said(&blocks("r1", halves), &b);
    assert!(!headline.contains("level") && rows.is_empty(), "{headline}");
}

/// A device with two speeds, each for a time by chance, whatever else happens: visits 3 s apart.
fn of_two_speeds(id: &'static str, seed: u64, slow: f64, dwell_s: f64) -> Run {
    let mut run = Planted { cells: 4, visits: 10, seed, ..Planted::new(id) }.run();
    let mut random = Random::new(seed ^ 0x5eed);
    let mut is_slow = random.below(2) == 0;
    let mut until = 0.0;
    for (order, visit) in (0..).zip(&mut run.visits) {
        visit.order = order;
        visit.started_unix_ns = run.header.started_unix_ns + i64::from(order) * 3_000_000_000;
        while f64::from(order) * 3.0 >= until {
            is_slow = !is_slow;
            until += dwell_s * random.exponential();
        }
        if is_slow {
            let op = &mut visit.streams[0].ops[0];
            op.requests = (op.requests as f64 * slow) as u64;
        }
    }
    run
}

#[test]
fn one_device_of_two_speeds_is_not_two_devices() {
    let mut wrong = 0;
    for seed in 0..60 {
        let slow = [0.35, 0.5, 0.7][seed as usize % 3];
        let (a, b) = (
            of_two_speeds("r1", 2 * seed, slow, 40.0),
            of_two_speeds("r2", 2 * seed + 1, slow, 40.0),
        );
        let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
        let against = &seen.against[0];
        if against.verdict == Verdict::Different {
            wrong += 1;
        }
    }
    assert!(wrong <= 3, "{wrong} of 60 pairs of runs of one device are called different");
    // What is further apart than its levels stays a difference.
    let (a, mut b) = (of_two_speeds("r1", 5, 0.7, 40.0), of_two_speeds("r2", 6, 0.7, 40.0));
    for visit in &mut b.visits {
        visit.streams[0].ops[0].requests *= 10;
    }
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    assert_eq!(seen.against[0].verdict, Verdict::Different, "{:#?}", seen.against[0].overall);
}

#[test]
fn a_difference_that_changes_its_level_in_blocks_is_not_many_values() {
    // Two devices of one kind, each at a speed of its own for a third of the blocks and more.
    fn halves(block: u32, from: u32) -> f64 {
        if block < from { 1.0 } else { 0.5 }
    }
    let blocks = |id, drift: fn(u32) -> f64| {
        Planted { cells: 4, visits: 12, blocks: Some("g"), drift, ..Planted::new(id) }.run()
    };
    let late = blocks("r1", |block| halves(block, 10));
    let early = blocks("r2", |block| halves(block, 2));
    let seen = compare(&[View::new(&late), View::new(&early)], &Terms::default());
    let against = &seen.against[0];
    assert_eq!(against.verdict, Verdict::Inconclusive, "{}", against.headline());
    assert!(against.overall.doubts.contains(&Doubt::Levels), "{:?}", against.overall);
    assert!(!against.is_worse());
    let json = serde_json::to_value(against).unwrap();
    assert_eq!((&json["verdict"], &json["slower"]), (&"inconclusive".into(), &0.into()));
    assert!(against.headline().contains("changed its speed"), "{}", against.headline());
    // Where both change alike the ratio is what it was.
    let b = Planted { cells: 4, visits: 12, blocks: Some("g"), ..Planted::new("r2") };
    let b = Planted { drift: |block| halves(block, 10), ..b }.faster(1.2).run();
    let seen = compare(&[View::new(&late), View::new(&b)], &Terms::default());
    assert_eq!(seen.against[0].verdict, Verdict::Different, "{}", seen.against[0].headline());
}

#[test]
fn the_ratio_over_all_is_the_mean_of_those_of_the_cells() {
    // Cells were done after more or fewer visits, and later ones were slower.
    let drift = |repeat: u32| 0.97_f64.powi(repeat as i32);
    let of = |id, most: [u32; 4]| {
        let mut run = Planted { cells: 4, visits: 9, drift, ..Planted::new(id) }.run();
        run.visits.retain(|visit| visit.repeat < most[visit.cell as usize]);
        run
    };
    let (a, b) = (of("r1", [3, 9, 4, 3]), of("r2", [9, 3, 3, 8]));
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let against = &seen.against[0];
    let logs = against.cells.iter().map(|row| row.outcome.ratio.unwrap().ratio.ln());
    let mean = (logs.sum::<f64>() / 4.0).exp();
    let told = against.overall.ratio.unwrap().ratio;
    assert!((told / mean - 1.0).abs() < 1e-9, "x{told} over all, x{mean} by the cells");
    for row in &against.cells {
        let by_rates = row.other.per_second.unwrap() / row.reference.per_second.unwrap();
        assert!((row.outcome.ratio.unwrap().ratio / by_rates - 1.0).abs() < 1e-9, "{row:?}");
    }
}

/// How many of four cells are told of each side in ten blocks of which these are the drifts.
fn told_in_blocks(drifts: [fn(u32) -> f64; 2], seed: u64) -> [usize; 2] {
    let [a, b] = [0, 1].map(|side| {
        let (id, drift, seed) = (["r1", "r2"][side], drifts[side], 2 * seed + side as u64);
        let plan = Planted { cells: 4, visits: 10, drift, seed, ..Planted::new(id) };
        let mut run = Planted { blocks: Some("g"), ..plan }.run();
        for (order, visit) in (0..).zip(&mut run.visits) {
            visit.order = order;
            visit.started_unix_ns = run.header.started_unix_ns + i64::from(order) * 3_000_000_000;
        }
        run
    });
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let told = seen.against[0].cells.iter().filter_map(|row| row.not_on_one_level("B"));
    let told: Vec<String> = told.collect();
    ["A", "B"].map(|side| told.iter().filter(|sides| sides.contains(side)).count())
}

#[test]
fn a_fall_within_a_block_of_one_side_is_told_however_few_blocks_there_are() {
    // Of ten differences two in a row are the fall: they tell nothing of the noise.
    let falls = |repeat: u32| [1.0, 0.8, 0.4][(repeat.max(6) - 6).min(2) as usize];
    let told = |drifts| {
        let all = (0..10).map(|seed| told_in_blocks(drifts, seed));
        all.fold([0, 0], |sum, of| [sum[0] + of[0], sum[1] + of[1]])
    };
    let [a, b] = told([|_| 1.0, falls]);
    assert!(a <= 1 && b >= 38, "{a} and {b} of 40");
    let [a, b] = told([falls, falls]);
    assert!(a <= 1 && b <= 1, "{a} and {b} of 40");
}

#[test]
fn of_two_sides_that_changed_those_are_told_that_the_difference_followed() {
    type Drift = fn(u32) -> f64;
    fn at(repeat: u32, block: u32, level: f64) -> f64 {
        if repeat < block { 1.0 } else { level }
    }
    let told = |drifts| told_in_blocks(drifts, 1);
    // Both fell at once, B further: the ratio fell with it.
    let (further, less): (Drift, Drift) = (|r| at(r, 5, 0.2), |r| at(r, 5, 0.4));
    assert_eq!(told([less, further]), [0, 4]);
    assert_eq!(told([further, less]), [4, 0]);
    // One after the other: the ratio fell, and came back.
    let (sooner, later): (Drift, Drift) = (|r| at(r, 3, 0.4), |r| at(r, 7, 0.4));
    assert_eq!(told([sooner, later]), [4, 4]);
    assert_eq!(told([later, sooner]), [4, 4]);
}

#[test]
fn six_blocks_are_decided_by_the_mean_unless_one_is_odd() {
    let one_cell = |id: &str, seed: u64| Planted {
        cells: 1,
        visits: 7,
        blocks: Some("g"),
        seed,
        ..Planted::new(id)
    };
    let (a, mut b) = (one_cell("r1", 1).run(), one_cell("r2", 2).faster(1.2).run());
    let method = |a: &Run, b: &Run| {
        let seen = compare(&[View::new(a), View::new(b)], &Terms::default());
        let outcome = seen.against[0].cells[0].outcome.clone();
        (outcome.method, outcome.doubts, seen.sentences().join("\n"))
    };
    assert_eq!(method(&a, &b).0, Method::PairedT);
    slow_down(&mut b.visits[3], 0.3);
    let (seen, doubts, text) = method(&a, &b);
    assert_eq!(seen, Method::SignedRank);
    assert_eq!(doubts, [Doubt::FewBadRuns, Doubt::OddBlock]);
    assert!(text.contains("Carried by a few odd runs"), "{text}");
    assert!(text.contains("B had 1 stall"), "{text}");
    insta::assert_snapshot!(text);
}

/// As if the device had stood still for most of the visit.
fn slow_down(visit: &mut VisitRecord, share: f64) {
    let op = &mut visit.streams[0].ops[0];
    op.requests = (op.requests as f64 * share) as u64;
    visit.completions = Bitmap::zeros(2000);
    (0..600).for_each(|ms| visit.completions.set(ms));
}

/// Requests of 100 us, of which in 100 two take longer: `tail` times as long, the visit's own noise in it.
fn tailed(id: &str, visits: u32, tail: f64, noise: f64) -> Run {
    let mut run = Planted { cells: 4, visits, ..Planted::new(id) }.run();
    let mut random = Random::new(run.header.seed + 100);
    for visit in &mut run.visits {
        let slow = (1e5 * tail * (noise * random.normal()).exp()) as u64;
        let latency = &mut visit.streams[0].ops[0].latency;
        let of = |n: u32| if n.is_multiple_of(50) { slow } else { 100_000 };
        *latency = LatencyHistogram::new();
        (0..2000).for_each(|n| latency.record(Nanos::new(of(n))));
    }
    run
}

#[test]
fn a_percentile_has_an_interval_from_visits_and_a_verdict() {
    let tails = |a: &Run, b: &Run| {
        let seen = compare(&[View::new(a), View::new(b)], &Terms::default());
        let cells = seen.against[0].cells.clone();
        cells.into_iter().map(|cell| cell.latency.unwrap().percentiles).collect::<Vec<_>>()
    };
    let base = tailed("r1", 8, 10.0, 0.1);
    for tail in tails(&base, &tailed("r2", 8, 20.0, 0.1)) {
        // 2000 requests leave two above the 99.9th percentile.
        assert_eq!(tail.iter().map(|one| one.percentile).collect::<Vec<_>>(), [50.0, 99.0]);
        assert_eq!((tail[0].verdict, tail[0].direction), (Verdict::Same, None), "{tail:?}");
        let p99 = &tail[1];
        assert_eq!((p99.verdict, p99.direction), (Verdict::Different, Some(Direction::Slower)));
        let (low, high) = p99.ratio.low.zip(p99.ratio.high).unwrap();
        assert!(1.5 < low && low < 2.0 && 2.0 < high && high < 2.6, "{p99:?}");
    }
    // What visits differ by is no difference between sides, and two of them know nothing.
    for tail in tails(&base, &tailed("r3", 8, 10.0, 1.0)) {
        assert_eq!(tail[1].verdict, Verdict::Inconclusive, "{tail:?}");
    }
    assert!(tails(&base, &tailed("r2", 2, 20.0, 0.1)).iter().all(Vec::is_empty));
}

#[test]
fn few_blocks_and_single_visits_claim_nothing() {
    let some = |visits, id: &str, blocks| Planted { visits, blocks, ..Planted::new(id) };
    for blocks in [Some("g"), None] {
        for visits in 1..=5 {
            let (a, b) = (some(visits, "r1", blocks).run(), some(visits, "r2", blocks).faster(2.0));
            let b = b.run();
            let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
            let overall = &seen.against[0].overall;
            let claims = blocks.is_none() && visits >= 2;
            assert_eq!(overall.verdict == Verdict::Different, claims, "{visits} {blocks:?}");
            assert_eq!(overall.ratio.unwrap().low.is_some(), visits >= 2);
            assert!((overall.ratio.unwrap().ratio - 2.0).abs() < 0.05);
        }
    }
}

#[test]
fn a_second_run_of_the_reference_is_the_floor_of_drift() {
    let (a, mut again) = (Planted::new("r1").run(), Planted::new("r3").faster(1.10).run());
    let mut b = Planted { seed: 5, ..Planted::new("r2") }.faster(1.08).run();
    b.header.target.file_system = Some("xfs".to_owned());
    let views = |b: &Run, again: &Run| {
        compare(&[View::new(&a), View::new(b), View::new(again)], &Terms::default())
    };
    let seen = views(&b, &again);
    let [b_seen, bracket] = seen.against.as_slice() else { unreachable!("three sides") };
    assert!(bracket.bracket && !b_seen.bracket);
    assert_eq!(b_seen.overall.margin_from, MarginFrom::Drift);
    assert!((b_seen.overall.margin - 0.10).abs() < 0.02, "{}", b_seen.overall.margin);
    assert_eq!(b_seen.overall.verdict, Verdict::Inconclusive, "nor are they called the same");
    assert_eq!(b_seen.overall.doubts, [Doubt::WithinDrift]);
    insta::assert_snapshot!(seen.sentences().join("\n"));
    // Without that the same 8 % are a difference.
    again.header.target.file_system = Some("zfs".to_owned());
    assert_eq!(views(&b, &again).against[0].overall.verdict, Verdict::Different);
}

/// "PostgreSQL Server Benchmarks: Part Five - Disks", 5 July 2011: bonnie++ sequential reads in KiB/s and
/// sysbench fsyncs a second, five tests each, on software and hardware RAID 10. Of the software side's
/// fsyncs only mean and standard deviation are printed: five values that have just those.
#[test]
fn a_studys_five_reads_differ_and_its_five_fsyncs_do_not() {
    let of = |id, rates: [f64; 5]| {
        let mut run = Planted { cells: 1, visits: 5, ..Planted::new(id) }.run();
        run.visits = (0..).zip(rates).map(|(k, rate)| common::visit(0, k, rate)).collect();
        run
    };
    let seen = |a, b| {
        let (a, b) = (of("r1", a), of("r2", b));
        compare(&[View::new(&a), View::new(&b)], &Terms::default()).against[0].overall.clone()
    };
    let reads = seen(
        [337_376.0, 321_752.0, 284_567.0, 324_414.0, 334_216.0],
        [655_455.0, 617_670.0, 557_031.0, 659_125.0, 586_393.0],
    );
    assert_eq!(reads.verdict, Verdict::Different);
    assert_eq!(reads.ratio.unwrap().text(), "x1.92 [1.73, 2.13]");
    let fsyncs = seen(
        [7990.02, 8054.2, 8118.38, 8182.56, 8246.74],
        [3170.57, 7606.69, 8379.83, 7627.63, 7523.14],
    );
    assert_eq!(fsyncs.verdict, Verdict::Inconclusive);
}

#[test]
fn earlier_runs_of_a_configuration_are_its_floor_of_drift() {
    let on = |file_system: &str, id: &str, ratio: f64| {
        let mut run = Planted::new(id).faster(ratio).run();
        run.header.target.file_system = Some(file_system.to_owned());
        run
    };
    let (a, b) = (on("ext4", "r3", 1.0), on("xfs", "r4", 1.35));
    let seen = |earlier: &[Run]| {
        let earlier: Vec<View<'_>> = earlier.iter().map(View::new).collect();
        let sides = [View::new(&a), View::new(&b)];
        compare_beside(&sides, None, &earlier, &Terms::default()).against.remove(0)
    };
    assert_eq!(seen(&[]).verdict, Verdict::Different);
    let alike = [on("ext4", "r1", 1.005), on("xfs", "r2", 1.36), on("zfs", "r2", 0.7)];
    assert_eq!(seen(&alike).verdict, Verdict::Different, "no further than chance, or of neither");
    assert_eq!(seen(&alike).drift, None);
    for file_system in ["ext4", "xfs"] {
        let found = seen(&[on(file_system, "r1", if file_system == "xfs" { 0.95 } else { 1.4 })]);
        assert_eq!(found.verdict, Verdict::Inconclusive, "{file_system}");
        assert_eq!(found.overall.doubts, [Doubt::WithinDrift], "{file_system}");
    }
}

#[test]
fn a_machines_floor_is_the_least_margin() {
    let (a, b) = (Planted::new("r1").run(), Planted::new("r2").faster(1.06).run());
    let floor =
        Floor { classes: vec![], overall: 0.08, blocks: 0, from: "calibration c1".to_owned() };
    let verdict = |floor: Option<Floor>| {
        let terms = Terms { floor, ..Terms::default() };
        compare(&[View::new(&a), View::new(&b)], &terms).against[0].overall.clone()
    };
    assert_eq!(verdict(None).verdict, Verdict::Different);
    let floored = verdict(Some(floor));
    assert_eq!((floored.verdict, floored.margin_from), (Verdict::Same, MarginFrom::Floor));
}

#[test]
fn a_floor_is_wider_for_cells_of_fewer_visits_than_its_blocks() {
    let (a, b) = (Planted::new("r1").run(), Planted::new("r2").faster(1.06).run());
    let visits = a.visits.iter().filter(|visit| visit.cell == 0).count() as u32;
    let floor = |blocks| Floor { classes: vec![], overall: 0.05, blocks, from: "c1".to_owned() };
    let seen = |blocks| {
        let terms = Terms { floor: Some(floor(blocks)), ..Terms::default() };
        compare(&[View::new(&a), View::new(&b)], &terms)
    };
    let margin = |blocks| seen(blocks).against[0].cells[0].outcome.margin;
    assert!((margin(visits) - 0.05).abs() < 1e-9, "as many visits as blocks");
    let four_times = 1.05f64.ln() * 2.0;
    assert!((margin(4 * visits) - four_times.exp_m1()).abs() < 1e-9, "{}", margin(4 * visits));
    assert!(
        (seen(4 * visits).against[0].overall.margin - 0.05).abs() < 1e-9,
        "over all is of many"
    );
    let said = seen(4 * visits).sentences().join("\n");
    assert!(said.contains("in those up to 10 % counts for nothing"), "{said}");
}

#[test]
fn cells_of_one_side_only_are_listed() {
    let (a, b) = (Planted::new("r1").run(), Planted { cells: 40, ..Planted::new("r2") }.run());
    let seen = compare(&[View::new(&b), View::new(&a)], &Terms::default());
    let against = &seen.against[0];
    assert_eq!((against.cells.len(), against.only_other.len()), (40, 2));
    assert_eq!(against.only_other, ["read 41", "read 42"]);
    assert_eq!(against.only_reference, [""; 0]);
    assert!(seen.sentences().join("\n").contains("Measured on B only"));
}

#[test]
fn odd_runs_are_compared_without_panic() {
    let mut dead = Planted::new("r2").run();
    for visit in &mut dead.visits {
        visit.streams[0].ops[0].requests = 0;
    }
    let mut full = Planted::new("r3").run();
    for visit in &mut full.visits {
        visit.streams[0].ops[0].requests = u64::MAX;
        visit.elapsed_ns = 1;
    }
    let empty = Run { cells: vec![], visits: vec![], ..Planted::new("r4").run() };
    let usual = Planted::new("r1").run();
    let all = [&usual, &dead, &full, &empty];
    for first in all {
        let mut views = vec![View::new(first)];
        views.extend(all.map(View::new));
        for margin in [0.0, 0.03, f64::NAN, f64::INFINITY, -1.0] {
            let seen = compare(&views, &Terms { margin, ..Terms::default() });
            assert_eq!(seen.against.len(), 4);
            assert!(!seen.sentences().is_empty());
            serde_json::to_string(&seen).unwrap();
        }
    }
    assert_eq!(compare(&[], &Terms::default()).against.len(), 0);
    let seen = compare(&[View::new(&usual), View::new(&dead)], &Terms::default());
    let overall = &seen.against[0].overall;
    assert_eq!((overall.verdict, overall.ratio), (Verdict::Inconclusive, None));
}

#[test]
fn what_differs_is_told_by_dotted_path() {
    let with = |id: &str, text: &str| {
        let mut run = Planted::new(id).run();
        run.header.suite_text = text.to_owned();
        run
    };
    let a = with(
        "r1",
        "name = \"x\"\nrepeats = 3\n[[phase]]\nname = \"read\"\naccess = { kind = \"uniform\" }\n\
         time = \"1s\"\n[[phase]]\nname = \"write\"\ntime = \"1s\"\nqueue_depth = 1\n",
    );
    let b = with(
        "r2",
        "name = \"x\"\nrepeats = 5\n[[phase]]\nname = \"read\"\naccess = { kind = \"zipf\", theta \
         = 0.9 }\ntime = \"2s\"\n[[phase]]\nname = \"write\"\ntime = \"2s\"\nqueue_depth = 4\n",
    );
    let seen = differences(&a, &b);
    let told: Vec<_> =
        seen.factors.iter().map(|f| format!("{} {} {}", f.name, f.left, f.right)).collect();
    assert_eq!(
        told,
        [
            "phase.*.time 1s 2s",
            "phase.read.access.kind uniform zipf",
            "phase.read.access.theta none 0.9",
            "phase.write.queue_depth 1 4",
        ]
    );
    insta::assert_snapshot!(seen.sentences().join("\n"));
}

#[test]
fn the_place_counts_only_on_one_device() {
    let on = |resolved: &str, mount: &str, device: &str| {
        let mut run = Planted::new("r1").run();
        let target = &mut run.header.target;
        target.resolved = resolved.to_owned();
        target.mount = Some(mount.to_owned());
        target.devices = vec![device.to_owned()];
        run
    };
    let names = |a: &Run, b: &Run| {
        differences(a, b).factors.into_iter().map(|f| f.name).collect::<Vec<_>>()
    };
    let a = on("/a/x", "/a (rw,relatime)", "sda");
    assert_eq!(names(&a, &on("/a/y", "/a (relatime,rw)", "sda")), ["file"]);
    assert_eq!(names(&a, &on("/b/x", "/b (rw,noatime)", "sda")), ["mount options", "mount point"]);
    assert_eq!(names(&a, &on("/b/x", "/b (rw,relatime)", "sdb")), ["devices"]);
    assert!(differences(&a, &a).is_none());
    let mut seeded = a.clone();
    seeded.header.seed += 1;
    assert!(differences(&a, &seeded).is_none(), "a seed is no factor");
}

#[test]
fn the_same_runs_give_the_same_comparison() {
    let (a, b) = (Planted::new("r1").run(), Planted::new("r2").faster(1.3).run());
    let text = || {
        let seen: Comparison = compare(&[View::new(&a), View::new(&b)], &Terms::default());
        serde_json::to_string(&seen).unwrap()
    };
    assert_eq!(text(), text());
}

const COMMITTED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/plimsoll.comparison-1.schema.json");

#[test]
fn the_committed_schema_is_the_current_one() {
    let schema = serde_json::to_value(explain::compare::schema()).unwrap();
    let current = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    if std::env::var_os("PLIMSOLL_WRITE_SCHEMA").is_some() {
        std::fs::write(COMMITTED, &current).unwrap();
    }
    let committed = std::fs::read_to_string(COMMITTED).unwrap();
    assert!(
        committed == current,
        "schema/plimsoll.comparison-1.schema.json is stale: run this test with \
         PLIMSOLL_WRITE_SCHEMA=1"
    );
    // Unknown is null, never missing: every word of the schema is in a document.
    let (a, b) = (Planted::new("r1").run(), Planted::new("r2").run());
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let document = serde_json::to_value(seen).unwrap();
    let words = |schema: &serde_json::Value| -> Vec<String> {
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    };
    let of = |name: &str| words(&schema["$defs"][name]);
    let against = &document["against"][0];
    for (part, words) in [
        (&document, words(&schema)),
        (against, of("Against")),
        (&against["cells"][0], of("CellComparison")),
        (&against["overall"], of("Outcome")),
        (&against["cells"][0]["reference"], of("Rate")),
    ] {
        let missing: Vec<_> = words.iter().filter(|word| part.get(word).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

fn sentences(a: &Run, b: &Run, terms: &Terms) -> String {
    compare(&[View::new(a), View::new(b)], terms).sentences().join("\n")
}

#[test]
fn too_few_visits_for_a_confidence_are_not_a_ratio_at_the_margin() {
    let one = |id| Planted { cells: 1, visits: 3, ..Planted::new(id) };
    let (a, b) = (one("r1").run(), one("r2").faster(0.12).run());
    let terms = Terms { confidence: 1.0 - f64::EPSILON / 2.0, ..Terms::default() };
    let text = sentences(&a, &b, &terms);
    assert!(text.contains("too few visits for that confidence"), "{text}");
    assert!(!text.contains("too near"), "{text}");
    assert!(text.lines().all(|line| line.len() < 600), "{text}");
    let seen = compare(&[View::new(&a), View::new(&b)], &terms);
    assert_eq!(seen.against[0].overall.direction, None, "p is no smaller than that level");
}

#[test]
fn one_cell_has_one_answer_and_counts_of_both_sides() {
    let some = |id, visits| Planted { cells: 1, visits, ..Planted::new(id) };
    for visits in [1, 5] {
        let (a, b) = (some("r1", 9).run(), some("r2", visits).faster(2.4).run());
        let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
        assert_eq!(seen.against[0].overall, seen.against[0].cells[0].outcome);
        let text = seen.sentences().join("\n");
        assert!(text.contains(&format!("(9 visits of A, {visits} of B)")), "{text}");
    }
}

#[test]
fn both_edges_of_a_large_margin_are_told() {
    let (a, b) = (Planted::new("r1").run(), Planted::new("r2").faster(0.42).run());
    let text = sentences(&a, &b, &Terms { margin: 0.7, ..Terms::default() });
    assert!(text.starts_with("Different: B is slower than A, x0.42"), "{text}");
    assert!(text.contains("Ratios between x0.59 and x1.70 count for nothing"), "{text}");
}

#[test]
fn nothing_in_common_is_said_first_and_shortly() {
    let (a, mut b) = (Planted::new("r1").run(), Planted::new("r2").run());
    b.cells.iter_mut().for_each(|cell| cell.phase = "other".into());
    let keys = (0..29).map(|k| format!("key{k} = {k}\n")).collect::<String>();
    b.header.suite_text.push_str(&keys);
    let text = sentences(&a, &b, &Terms::default());
    assert!(text.starts_with("Unknown: A and B have no cell in common"), "{text}");
    assert!(text.contains("29 things changed together") && text.contains("and 24 more"), "{text}");
    assert!(!text.contains("drift") && !text.contains("rounds each"), "{text}");
}

#[test]
fn failed_missing_and_mad_visits_are_named() {
    let (a, mut b) = (Planted::new("r1").run(), Planted::new("r2").run());
    for visit in &mut b.visits {
        visit.end = VisitEnd::Failed;
        let text = "stream `read`, worker 0: read of 4096 bytes at byte 7 of file 0 failed: EIO";
        visit.warnings = vec![record::Warning::new("io-error", text)];
    }
    let text = sentences(&a, &b, &Terms::default());
    assert!(text.starts_with("Unknown: visits failed in B"), "{text}");
    assert!(text.contains("168 of 168 visits of B failed: EIO."), "{text}");

    let mut b = Planted::new("r2").run();
    b.visits.truncate(1);
    let text = sentences(&a, &b, &Terms::default());
    assert!(text.contains("B says that it is complete, yet 1 of 168 visits"), "{text}");
    b.header.state = RunState::Running;
    let text = sentences(&a, &b, &Terms::default());
    assert!(text.contains("B is under way, 1 of 168 visits: its visits so far"), "{text}");
    b.header.state = RunState::Killed;
    let text = sentences(&a, &b, &Terms::default());
    let wanted = "B was killed, 1 of 168 visits, 167 missed: 167 not made: what is missing is not";
    assert!(text.contains(wanted), "{text}");

    let mut b = Planted { cells: 1, ..Planted::new("r2") }.run();
    let a = Planted { cells: 1, ..Planted::new("r1") }.run();
    for visit in &mut b.visits {
        visit.elapsed_ns = (-5i64).cast_unsigned();
    }
    let text = sentences(&a, &b, &Terms::default());
    assert!(text.starts_with("Unknown") && text.contains("4 visits of B hold numbers"), "{text}");
}

#[test]
fn a_back_end_that_followed_is_no_second_factor() {
    let of = |depth: u32, backend: &str, asked: &str| {
        let mut run = Planted::new("r1").run();
        run.header.suite_text = format!("queue_depth = {depth}\nbackend = \"{asked}\"\n");
        let streams = run.visits.iter_mut().flat_map(|visit| &mut visit.streams);
        streams.for_each(|stream| stream.backend.name = backend.to_owned());
        run
    };
    let found = differences(&of(1, "blocking", "auto"), &of(8, "io_uring", "auto"));
    assert_eq!(found.factors.len(), 1, "{found:?}");
    let codes: Vec<_> = found.findings().iter().map(|one| one.code).collect();
    assert_eq!(codes[..2], [Code::OneThingDiffers, Code::BackEndFollowed]);
    let found = differences(&of(1, "blocking", "auto"), &of(1, "io_uring", "auto"));
    assert_eq!(found.factors.len(), 1, "nothing else that it can have followed: {found:?}");
}

#[test]
fn what_nobody_recorded_is_no_difference() {
    let (mut a, b) = (Planted::new("r1").run(), Planted::new("r2").run());
    a.header.target.direct_alignment = None;
    assert!(differences(&a, &b).is_none());
}

#[test]
fn an_edited_model_is_no_a_a() {
    let (mut a, mut b) = (Planted::new("r1").run(), Planted::new("r2").run());
    let model = |name: &str, latency: &str| {
        format!(
            "schema = 1\nname = \"{name}\"\n[model]\nsize = \"1GiB\"\n[model.read]\niops = 240\n\
             latency = \"{latency}\"\n[[model.stage]]\nname = \"drive\"\n"
        )
    };
    for run in [&mut a, &mut b] {
        run.header.target.kind = TargetKind::Twin;
        run.header.target.devices.clear();
        run.header.target.model = Some(model("disk", "4900us"));
    }
    assert!(differences(&a, &b).is_none(), "{:?}", differences(&a, &b));
    b.header.target.model = Some(model("disk", "5880us"));
    let said = differences(&a, &b).sentences().join(" ");
    let wanted = "One thing differs: model.read.latency (4900us in r1, 5880us in r2).";
    assert_eq!(said, wanted);
    // Words about it change nothing.
    b.header.target.model = Some(model("another", "4900us"));
    assert!(differences(&a, &b).is_none(), "{:?}", differences(&a, &b));
    // What was not kept is not known to differ.
    b.header.target.model = None;
    assert!(differences(&a, &b).is_none());
    b.header.target.model = Some("not [ toml".to_owned());
    assert!(!differences(&a, &b).is_none());
}

/// A, B by `ratio`, and A once more by `again`: eleven blocks, the tenth of A against itself. The
/// first of two blocks begins with A, and the next with the other.
fn checked_group(cells: u32, ratio: f64, again: f64) -> [Run; 3] {
    let side = |id: &str, label: &str, ratio: f64| {
        let planted = Planted { cells, visits: 11, blocks: Some("g"), ..Planted::new(id) };
        let mut run = planted.faster(ratio).run();
        let blocks = run.header.blocks.as_mut().unwrap();
        (blocks.side, blocks.controls) = (label.to_owned(), vec![9]);
        blocks.is_control = label == "A'";
        let blocks = blocks.clone();
        run.visits.retain(|visit| blocks.takes_part(visit.repeat));
        for visit in &mut run.visits {
            let second = (label != "A") == visit.repeat.is_multiple_of(2);
            visit.started_unix_ns = i64::from(2 * visit.repeat + u32::from(second));
        }
        run
    };
    [side("r1", "A", 1.0), side("r2", "B", ratio), side("r3", "A'", again)]
}

#[test]
fn blocks_of_a_side_against_itself_check_and_count_for_nothing() {
    for cells in [1, 42] {
        let [a, b, again] = checked_group(cells, 1.1, 1.0);
        let views = [View::new(&a), View::new(&b)];
        let seen = compare_beside(&views, Some(&View::new(&again)), &[], &Terms::default());
        let against = &seen.against[0];
        assert_eq!((against.overall.count, against.overall.verdict), (10, Verdict::Different));
        assert!(against.cells.iter().all(|c| c.reference.visits == 10 && c.other.visits == 10));
        let control = against.control.as_ref().unwrap();
        assert_eq!((control.blocks, control.of, control.finding), (1, 11, Finding::Noise));
        assert!(control.ratio.unwrap().low.unwrap() < 1.0 && control.second_p.unwrap() > 0.01);
        let text = seen.sentences().join(" ");
        assert!(text.contains("Of 11 blocks 1 was A against A: they differ by"), "{text}");
        assert!(text.contains("within the noise"), "{text}");
        // B as the reference: the same check.
        let views = [View::new(&b), View::new(&a)];
        let turned = compare_beside(&views, Some(&View::new(&again)), &[], &Terms::default());
        assert_eq!(turned.against[0].overall.count, 10);
        let found = turned.against[0].control.as_ref().unwrap();
        assert_eq!((found.blocks, found.finding), (1, Finding::Noise));
        // Without the run nothing is checked, and that is said.
        let alone = compare(&[View::new(&a), View::new(&b)], &Terms::default());
        assert_eq!(alone.against[0].control.as_ref().unwrap().finding, Finding::Unknown);
        assert_eq!(alone.against[0].overall, against.overall);
        assert!(alone.sentences().join(" ").contains("Not checked: no block"));
    }
}

#[test]
fn a_side_that_is_not_itself_takes_the_claim_away() {
    for cells in [1, 42] {
        let [a, b, again] = checked_group(cells, 1.1, 0.8);
        let views = [View::new(&a), View::new(&b)];
        let seen = compare_beside(&views, Some(&View::new(&again)), &[], &Terms::default());
        let against = &seen.against[0];
        let control = against.control.as_ref().unwrap();
        assert_eq!(control.finding, Finding::BeyondTheDifference, "{control:?}");
        let overall = &against.overall;
        assert_eq!((overall.verdict, overall.direction), (Verdict::Inconclusive, None));
        assert_eq!(overall.margin_from, MarginFrom::Control);
        assert!(overall.doubts.contains(&Doubt::WithinControl), "{overall:?}");
        let text = seen.sentences().join(" ");
        assert!(text.contains("do not trust this comparison"), "{text}");
        assert!(text.contains("A against itself lies as far apart"), "{text}");
        // What is larger than that still stands.
        let [a, b, again] = checked_group(cells, 2.0, 0.8);
        let views = [View::new(&a), View::new(&b)];
        let seen = compare_beside(&views, Some(&View::new(&again)), &[], &Terms::default());
        let against = &seen.against[0];
        assert_eq!(against.control.as_ref().unwrap().finding, Finding::Beyond);
        assert_eq!(against.overall.verdict, Verdict::Different);
        assert!((0.2..0.3).contains(&against.overall.margin), "{:?}", against.overall);
    }
}

#[test]
fn one_cell_that_is_not_itself_is_named() {
    let [a, b, mut again] = checked_group(42, 1.1, 1.0);
    for op in again.visits[7].streams.iter_mut().flat_map(|stream| &mut stream.ops) {
        op.requests /= 2;
    }
    let views = [View::new(&a), View::new(&b)];
    let seen = compare_beside(&views, Some(&View::new(&again)), &[], &Terms::default());
    let against = &seen.against[0];
    let control = against.control.as_ref().unwrap();
    let named: Vec<_> = control.cells.iter().map(|cell| cell.cell.as_str()).collect();
    assert_eq!(named, ["read 8"]);
    let inconclusive = |k: usize| against.cells[k].outcome.margin_from == MarginFrom::Control;
    assert!(inconclusive(7) && !inconclusive(8));
}

#[test]
fn who_comes_second_and_is_slower_is_seen() {
    let [mut a, mut b, mut again] = checked_group(1, 1.1, 1.0);
    for (run, first) in [(&mut a, true), (&mut b, false), (&mut again, false)] {
        for visit in &mut run.visits {
            // As they were made: A first in even blocks.
            if visit.repeat.is_multiple_of(2) != first {
                visit.streams[0].ops[0].requests = visit.streams[0].ops[0].requests * 8 / 10;
            }
        }
    }
    let views = [View::new(&a), View::new(&b)];
    let seen = compare_beside(&views, Some(&View::new(&again)), &[], &Terms::default());
    let control = seen.against[0].control.as_ref().unwrap();
    assert_eq!(control.finding, Finding::Noise, "it hangs on no label: {control:?}");
    let second = control.second.unwrap();
    assert!((0.77..0.83).contains(&second.ratio), "{second:?}");
    let text = seen.sentences().join(" ");
    assert!(text.contains("Who is visited second in a block is x0.8"), "{text}");
}

#[test]
fn cells_that_differ_are_in_the_headline_however_little_the_mean_moves() {
    let a = Planted::new("r1").run();
    // 8 of 42 lose 10 %: 2 % over all, within the margin.
    let mut b = Planted::new("r2").run();
    let changed = |run: &mut Run, cells: std::ops::Range<u32>, share: f64| {
        for visit in run.visits.iter_mut().filter(|visit| cells.contains(&visit.cell)) {
            let op = &mut visit.streams[0].ops[0];
            op.requests = (op.requests as f64 * share) as u64;
        }
    };
    changed(&mut b, 0..8, 0.9);
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let against = &seen.against[0];
    assert_eq!((against.overall.verdict, against.verdict), (Verdict::Same, Verdict::Different));
    assert_eq!((against.slower, against.faster, against.is_worse()), (8, 0, true));
    let head = against.headline();
    let wanted = "Different: B is slower than A in 8 of 42 cells; over 42 cells together the same \
                  within 3 %, x0.98";
    assert!(head.starts_with(wanted), "{head}");

    changed(&mut b, 8..16, 1.0 / 0.9);
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let head = seen.against[0].headline();
    let wanted = "Different: B is slower than A in 8 and faster in 8 of 42 cells; over 42 cells";
    assert!(head.starts_with(wanted), "{head}");

    // What is better over all and worse somewhere is both.
    changed(&mut b, 8..42, 1.2);
    let seen = compare(&[View::new(&a), View::new(&b)], &Terms::default());
    let against = &seen.against[0];
    let head = against.headline();
    assert!(head.starts_with("Different: B is faster than A, x1.1"), "{head}");
    assert!(head.ends_with(" over 42 cells, but slower in 8 of them."), "{head}");
    assert!(against.is_worse());

    // The same configuration twice claims nothing in any cell.
    let again = Planted::new("r3").run();
    let seen = compare(&[View::new(&a), View::new(&again)], &Terms::default());
    let against = &seen.against[0];
    assert_eq!((against.verdict, against.slower, against.faster), (Verdict::Same, 0, 0));
    assert!(!against.is_worse());
}

#[test]
fn few_requests_a_visit_may_differ_by_their_ends() {
    // Two seconds of one request at a time: 5 a visit, and 4; always the same, as if there were no
    // noise at all.
    let of = |requests: u64, blocks: Option<&'static str>| {
        let mut run = Planted { cells: 2, visits: 10, blocks, ..Planted::new("r1") }.run();
        for visit in &mut run.visits {
            let op = &mut visit.streams[0].ops[0];
            op.requests = requests * u64::from(visit.cell + 1);
            op.latency_ns_sum = 2_000_000_000 * u128::from(visit.cell + 1);
            // Those in flight come all at one time.
            visit.completions = record::Bitmap::zeros(2_000);
            (1..=requests).for_each(|k| visit.completions.set(k * 1_999 / requests));
        }
        run
    };
    for blocks in [None, Some("g")] {
        let seen = |a: u64, b: u64| {
            let (a, b) = (of(a, blocks), of(b, blocks));
            compare(&[View::new(&a), View::new(&b)], &Terms::default()).against.remove(0)
        };
        let one = seen(5, 4);
        for outcome in one.cells.iter().map(|cell| &cell.outcome).chain([&one.overall]) {
            assert_eq!(outcome.verdict, Verdict::Inconclusive, "{outcome:?}");
            assert_eq!((outcome.direction, outcome.more), (None, None));
            assert_eq!(outcome.doubts, [Doubt::FewRequests]);
        }
        let ratio = one.cells[0].outcome.ratio.unwrap();
        assert!(ratio.low.unwrap() < 0.6 && ratio.high.unwrap() > 1.1, "{ratio:?}");
        // More than ends explain is a difference all the same, and so is one of many requests.
        assert_eq!(seen(5, 50).verdict, Verdict::Different);
        assert_eq!(seen(5_000, 4_000).verdict, Verdict::Different);
    }
    let text = sentences(&of(5, None), &of(4, None), &Terms::default());
    assert!(text.contains("its start and end alone may make as much of a difference"), "{text}");
}

/// Ten visits of two seconds with 20 in flight and about so many requests of which `at_once` complete in the
/// same millisecond; 1 % noise.
fn twenty_in_flight(id: &str, requests: f64, at_once: u64, ramp_ns: u64) -> Run {
    let mut run = Planted { cells: 1, visits: 10, ..Planted::new(id) }.run();
    run.cells[0].streams[0].threads = 20;
    for visit in &mut run.visits {
        let op = &mut visit.streams[0].ops[0];
        op.requests = (op.requests as f64 / 2_000.0 * requests).round() as u64;
        op.latency_ns_sum = 40_000_000_000;
        visit.ramp_ns = ramp_ns;
        let times = op.requests / at_once;
        visit.completions = record::Bitmap::zeros(2_000);
        (0..times).for_each(|k| visit.completions.set(k * 2_000 / times));
    }
    run
}

#[test]
fn what_the_ends_of_visits_do_to_both_sides_is_not_in_their_ratio() {
    let seen = |a: &Run, b: &Run| {
        compare(&[View::new(a), View::new(b)], &Terms::default()).against.remove(0).cells.remove(0)
    };
    let one_by_one = |id, requests| twenty_in_flight(id, requests, 1, 0);
    let (a, b) = (one_by_one("r1", 200.0), one_by_one("r2", 225.0));
    assert_eq!(seen(&a, &b).outcome.verdict, Verdict::Different);
    // Twenty at a time are ten times or twelve: it may be one by the end alone.
    let twenty = |id, requests| twenty_in_flight(id, requests, 20, 0);
    let outcome = seen(&twenty("r1", 200.0), &twenty("r2", 220.0)).outcome;
    assert_eq!(
        (outcome.verdict, &outcome.doubts[..]),
        (Verdict::Inconclusive, &[Doubt::FewRequests][..])
    );
    // After another ramp the start is another, of another plan all is.
    let ramped = twenty_in_flight("r2", 220.0, 1, 50_000_000);
    assert_eq!(seen(&a, &ramped).outcome.verdict, Verdict::Inconclusive);
    let mut deeper = one_by_one("r2", 220.0);
    deeper.cells[0].streams[0].queue_depth = 2;
    assert_eq!(seen(&a, &deeper).outcome.verdict, Verdict::Inconclusive);
}

#[test]
fn what_one_request_decides_is_not_in_the_ratio_over_all() {
    let of = |id, ratio| {
        let mut run = Planted { cells: 5, ..Planted::new(id) }.faster(ratio).run();
        for visit in run.visits.iter_mut().filter(|visit| visit.cell == 4) {
            let op = &mut visit.streams[0].ops[0];
            (op.requests, op.latency_ns_sum) = (2, 4_000_000_000);
        }
        run
    };
    let (a, b) = (of("r1", 1.0), of("r2", 1.1));
    let one = compare(&[View::new(&a), View::new(&b)], &Terms::default()).against.remove(0);
    let counts: Vec<bool> = one.cells.iter().map(|row| row.counts).collect();
    assert_eq!(counts, [true, true, true, true, false]);
    let ratio = one.overall.ratio.unwrap();
    assert!((ratio.ratio / 1.1 - 1.0).abs() < 0.02, "{ratio:?}");
    let text = sentences(&a, &b, &Terms::default());
    assert!(text.contains("over 4 cells"), "{text}");
    let told =
        "A single request or burst more or less would be a good part of the rate of `read 5`";
    assert!(text.contains(told), "{text}");
    // Where there is nothing else, it is all there is.
    let only = |mut run: Run| {
        run.visits.retain(|visit| visit.cell == 4);
        run
    };
    let (a, b) = (only(a), only(b));
    let one = compare(&[View::new(&a), View::new(&b)], &Terms::default()).against.remove(0);
    assert!(one.cells.iter().all(|row| row.counts) && !one.cells.is_empty());
}

/// A run of so many cells and visits with noise of 1 %.
struct Planted {
    id: &'static str,
    cells: u32,
    visits: u32,
    ratio: f64,
    seed: u64,
    blocks: Option<&'static str>,
    drift: fn(u32) -> f64,
}

impl Planted {
    fn new(id: &str) -> Self {
        let id = ["r1", "r2", "r3", "r4"].into_iter().find(|known| *known == id).unwrap();
        let seed = u64::from(id.as_bytes()[1]);
        Self { id, cells: 42, visits: 4, ratio: 1.0, seed, blocks: None, drift: |_| 1.0 }
    }

    fn faster(self, ratio: f64) -> Self {
        Self { ratio, ..self }
    }

    fn run(&self) -> Run {
        let mut random = Random::new(self.seed);
        let mut visits = Vec::new();
        for repeat in 0..self.visits {
            for cell in 0..self.cells {
                let rate = 1_000.0 * f64::from(cell + 1) * self.ratio * (self.drift)(repeat);
                let rate = rate * (0.01 * random.normal()).exp();
                visits.push(common::visit(cell, repeat, rate));
            }
        }
        let cells = (0..self.cells).map(cell).collect();
        Run { header: self.header(), cells, visits }
    }

    fn header(&self) -> RunHeader {
        RunHeader {
            id: self.id.into(),
            seed: self.seed,
            visits_planned: self.cells * self.visits,
            blocks: self.blocks.map(|group| Blocks {
                group: group.into(),
                side: self.id.into(),
                looks: 1,
                controls: vec![],
                is_control: false,
            }),
            ..common::header()
        }
    }
}

fn cell(index: u32) -> CellRecord {
    CellRecord {
        index,
        phase: "read".into(),
        coordinates: vec![("threads".into(), (index + 1).to_string())],
        streams: vec![StreamPlan {
            name: "read".into(),
            op: "read".into(),
            block_bytes: Some(4096),
            threads: index + 1,
            queue_depth: 1,
        }],
        impossible: None,
    }
}
