//! The suite's own order, seeds and resuming, over suites made from text.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeSet, HashSet};

use plan::{Left, Made, PlannedVisit, Schedule, Standing, VisitKey};
use proptest::prelude::*;
use record::Purpose;
use suite::model::Suite;
use suite::{CheckContext, check, parse};
use units::{Bytes, Nanos};

/// Two phases of `first` and `second` cells.
fn two_phases(first: u32, second: u32, repeats: u32, order: &str) -> Suite {
    let axis = |n: u32| (1..=n).map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"
schema = 1
name = "two"
method = "classic"
repeats = {repeats}
order = "{order}"
settle = "1s"

[defaults]
time = "2s"

[[phase]]
name = "one"
grid.threads = [{}]

[[phase]]
name = "other"
grid.queue_depth = [{}]
"#,
        axis(first),
        axis(second)
    );
    check(&parse(&text, "two.toml").unwrap(), &CheckContext::default()).unwrap()
}

fn schedule(suite: &Suite, seed: u64) -> Schedule {
    Schedule::new(suite, seed, &BTreeSet::new())
}

fn made(visit: &PlannedVisit, took: Nanos) -> Made {
    Made {
        key: visit.key(),
        purpose: Purpose::Measure,
        ok: true,
        ln_rates: vec![Some(1.0)],
        rows: Vec::new(),
        veto: None,
        took,
        waited: Nanos::ZERO,
        measured: took,
        written: Bytes::ZERO,
        ramp: None,
    }
}

/// All of it, each visit having taken 3 s.
fn play(schedule: &Schedule) -> Vec<PlannedVisit> {
    let mut course = schedule.begin();
    let mut visits = Vec::new();
    while let Some(visit) = course.next() {
        course.add(&made(&visit, Nanos::secs(3)));
        visits.push(visit);
    }
    assert!(course.standing().iter().all(|cell| cell.standing == Standing::Made));
    assert_eq!(course.left(), Left::default());
    visits
}

fn cells(visits: &[PlannedVisit]) -> Vec<u32> {
    visits.iter().map(|visit| visit.cell).collect()
}

#[test]
fn as_written_goes_phase_by_phase_and_repeat_by_repeat() {
    let visits = play(&schedule(&two_phases(3, 2, 2, "as-written"), 7));
    assert_eq!(cells(&visits), [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]);
    let repeats: Vec<u32> = visits.iter().map(|visit| visit.repeat).collect();
    assert_eq!(repeats, [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]);
    let orders: Vec<u32> = visits.iter().map(|visit| visit.order).collect();
    assert_eq!(orders, (0..10).collect::<Vec<_>>());
    assert!(visits.iter().all(|visit| visit.ramp.is_none()));
}

#[test]
fn shuffled_permutes_every_repeat_anew() {
    let suite = two_phases(20, 20, 3, "shuffled");
    let visits = play(&schedule(&suite, 7));
    let rounds: Vec<Vec<u32>> = visits.chunks(20).map(cells).collect();
    for (index, round) in rounds.iter().enumerate() {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        let first = if index < 3 { 0 } else { 20 };
        assert_eq!(sorted, (first..first + 20).collect::<Vec<_>>());
        assert_ne!(*round, sorted, "round {index} was not shuffled");
    }
    let distinct: HashSet<Vec<u32>> =
        rounds.iter().map(|r| r.iter().map(|c| c % 20).collect()).collect();
    assert_eq!(distinct.len(), 6, "two rounds had the same order");
    assert_ne!(cells(&visits), cells(&play(&schedule(&suite, 8))));
}

#[test]
fn every_position_sees_every_cell_about_equally_often() {
    let suite = two_phases(5, 1, 2000, "shuffled");
    let visits = play(&schedule(&suite, 3));
    let mut seen = [[0u32; 5]; 5];
    for round in visits.chunks(5).take(2000) {
        for (position, visit) in round.iter().enumerate() {
            seen[position][visit.cell as usize] += 1;
        }
    }
    // 2000 rounds at 1 in 5: mean 400, standard deviation 17.9; six of them.
    for (position, row) in seen.iter().enumerate() {
        assert!(row.iter().all(|n| n.abs_diff(400) < 108), "position {position}: {row:?}, seed 3");
    }
}

#[test]
fn seeds_do_not_depend_on_the_order() {
    let written = play(&schedule(&two_phases(6, 6, 3, "as-written"), 7));
    let shuffled = play(&schedule(&two_phases(6, 6, 3, "shuffled"), 7));
    let seeds = |visits: &[PlannedVisit]| -> BTreeSet<(VisitKey, u64)> {
        visits.iter().map(|visit| (visit.key(), visit.seed)).collect()
    };
    assert_eq!(seeds(&written), seeds(&shuffled));
    let distinct: HashSet<u64> = written.iter().map(|visit| visit.seed).collect();
    assert_eq!(distinct.len(), written.len(), "two visits share a seed");
}

/// Stored runs are resumed with schedules made anew: these numbers may never change.
#[test]
fn seeds_stay_what_they_are() {
    let visits = play(&schedule(&two_phases(4, 1, 2, "shuffled"), 1));
    assert_eq!(cells(&visits), [2, 1, 3, 0, 1, 0, 3, 2, 4, 4]);
    assert_eq!(visits[0].seed, 3968265725657940402);
}

#[test]
fn impossible_cells_are_left_out_and_the_rest_keeps_its_seeds() {
    let suite = two_phases(3, 2, 2, "shuffled");
    let whole = play(&schedule(&suite, 7));
    let without = play(&Schedule::new(&suite, 7, &BTreeSet::from([1, 4])));
    assert_eq!(without.len(), 6);
    assert!(without.iter().all(|visit| visit.cell != 1 && visit.cell != 4));
    for (visit, order) in without.iter().zip(0..) {
        assert_eq!(visit.order, order);
        let same = whole.iter().find(|v| v.key() == visit.key()).unwrap();
        assert_eq!(same.seed, visit.seed);
    }
}

#[test]
fn time_left_is_what_cells_ask_for_and_then_what_they_took() {
    let suite = two_phases(3, 2, 2, "as-written");
    let schedule = schedule(&suite, 7);
    let left = schedule.left(&[]);
    assert_eq!((left.visits, left.visits_most, left.time), (10, 10, Nanos::secs(30)));
    assert_eq!(suite.least_duration(), Nanos::secs(30));
    let slow: Vec<Made> =
        play(&schedule)[..3].iter().map(|visit| made(visit, Nanos::secs(5))).collect();
    // Three of the same cells again at 5 s, and four that nothing is known of.
    let left = schedule.left(&slow);
    assert_eq!((left.visits, left.time), (7, Nanos::secs(3 * 5 + 4 * 3)));
}

proptest! {
    /// However a run is cut in two, both parts together are the whole.
    #[test]
    fn a_resumed_run_makes_what_is_left(
        first in 1u32..8, second in 1u32..8, repeats in 1u32..4, seed: u64, cut in 0usize..60,
        shuffled: bool,
    ) {
        let order = if shuffled { "shuffled" } else { "as-written" };
        let suite = two_phases(first, second, repeats, order);
        let whole = play(&schedule(&suite, seed));
        prop_assert_eq!(whole.len() as u32, (first + second) * repeats);
        let cut = cut.min(whole.len());
        let done: Vec<Made> = whole[..cut].iter().map(|visit| made(visit, Nanos::secs(3))).collect();
        let mut course = schedule(&suite, seed).after(&done);
        for visit in &whole[cut..] {
            prop_assert_eq!(course.next(), Some(*visit));
            course.add(&made(visit, Nanos::secs(3)));
        }
        prop_assert_eq!(course.next(), None);
    }
}
