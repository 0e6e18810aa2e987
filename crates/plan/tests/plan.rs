//! Order, seeds and resuming, over suites made from text.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeSet, HashSet};

use plan::{Plan, PlannedVisit, Progress, VisitKey, least_duration};
use proptest::prelude::*;
use suite::model::Suite;
use suite::{CheckContext, check, parse};
use units::Nanos;

/// Two phases of `first` and `second` cells.
fn two_phases(first: u32, second: u32, repeats: u32, order: &str) -> Suite {
    let axis = |n: u32| (1..=n).map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        r#"
schema = 1
name = "two"
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

fn cells(visits: &[PlannedVisit]) -> Vec<u32> {
    visits.iter().map(|visit| visit.cell).collect()
}

#[test]
fn as_written_goes_phase_by_phase_and_repeat_by_repeat() {
    let plan = Plan::new(&two_phases(3, 2, 2, "as-written"), 7);
    assert_eq!(cells(&plan.visits), [0, 1, 2, 0, 1, 2, 3, 4, 3, 4]);
    let repeats: Vec<u32> = plan.visits.iter().map(|visit| visit.repeat).collect();
    assert_eq!(repeats, [0, 0, 0, 1, 1, 1, 0, 0, 1, 1]);
    let orders: Vec<u32> = plan.visits.iter().map(|visit| visit.order).collect();
    assert_eq!(orders, (0..10).collect::<Vec<_>>());
}

#[test]
fn shuffled_permutes_every_repeat_anew() {
    let suite = two_phases(20, 20, 3, "shuffled");
    let plan = Plan::new(&suite, 7);
    let rounds: Vec<Vec<u32>> = plan.visits.chunks(20).map(cells).collect();
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
    assert_ne!(cells(&plan.visits), cells(&Plan::new(&suite, 8).visits));
}

#[test]
fn every_position_sees_every_cell_about_equally_often() {
    let suite = two_phases(5, 1, 2000, "shuffled");
    let plan = Plan::new(&suite, 3);
    let mut seen = [[0u32; 5]; 5];
    for round in plan.visits.chunks(5).take(2000) {
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
    let written = Plan::new(&two_phases(6, 6, 3, "as-written"), 7);
    let shuffled = Plan::new(&two_phases(6, 6, 3, "shuffled"), 7);
    let seeds = |plan: &Plan| -> BTreeSet<(VisitKey, u64)> {
        plan.visits.iter().map(|visit| (visit.key(), visit.seed)).collect()
    };
    assert_eq!(seeds(&written), seeds(&shuffled));
    let distinct: HashSet<u64> = written.visits.iter().map(|visit| visit.seed).collect();
    assert_eq!(distinct.len(), written.visits.len(), "two visits share a seed");
}

/// Stored runs are resumed with plans made anew: these numbers may never change.
#[test]
fn seeds_stay_what_they_are() {
    let plan = Plan::new(&two_phases(4, 1, 2, "shuffled"), 1);
    assert_eq!(cells(&plan.visits), [2, 1, 3, 0, 1, 0, 3, 2, 4, 4]);
    assert_eq!(plan.visits[0].seed, 3968265725657940402);
}

#[test]
fn impossible_cells_are_left_out_and_the_rest_keeps_its_seeds() {
    let plan = Plan::new(&two_phases(3, 2, 2, "shuffled"), 7);
    let without = plan.without_cells(&BTreeSet::from([1, 4]));
    assert_eq!(without.visits.len(), 6);
    assert!(without.visits.iter().all(|visit| visit.cell != 1 && visit.cell != 4));
    for (visit, order) in without.visits.iter().zip(0..) {
        assert_eq!(visit.order, order);
        let same = plan.visits.iter().find(|v| v.key() == visit.key()).unwrap();
        assert_eq!(same.seed, visit.seed);
    }
}

#[test]
fn time_left_counts_what_visits_take_beyond_what_they_ask_for() {
    let suite = two_phases(3, 2, 2, "as-written");
    let plan = Plan::new(&suite, 7);
    assert_eq!(least_duration(&suite, &plan.visits), Nanos::secs(30));
    assert_eq!(suite.least_duration(), Nanos::secs(30));
    let left = &plan.visits[4..];
    let fresh = Progress { visits: 0, least: Nanos::ZERO, elapsed: Nanos::secs(1) };
    assert_eq!(fresh.time_left(&suite, left), Nanos::secs(18));
    let late = Progress { visits: 4, least: Nanos::secs(12), elapsed: Nanos::secs(14) };
    assert_eq!(late.time_left(&suite, left), Nanos::secs(21));
    let early = Progress { visits: 4, least: Nanos::secs(12), elapsed: Nanos::secs(10) };
    assert_eq!(early.time_left(&suite, left), Nanos::secs(18));
    assert_eq!(late.time_left(&suite, &[]), Nanos::ZERO);
}

proptest! {
    /// However a run is cut in two, both parts together are the plan.
    #[test]
    fn a_resumed_run_makes_what_is_left(
        first in 1u32..8, second in 1u32..8, repeats in 1u32..4, seed: u64, cut in 0usize..60,
        shuffled: bool,
    ) {
        let order = if shuffled { "shuffled" } else { "as-written" };
        let suite = two_phases(first, second, repeats, order);
        let plan = Plan::new(&suite, seed);
        prop_assert_eq!(plan.visits.len() as u32, (first + second) * repeats);
        let cut = cut.min(plan.visits.len());
        let done: HashSet<VisitKey> = plan.visits[..cut].iter().map(PlannedVisit::key).collect();
        let again = Plan::new(&suite, seed);
        prop_assert_eq!(again.remaining(&done), plan.visits[cut..].to_vec());
        let all: HashSet<VisitKey> = plan.visits.iter().map(PlannedVisit::key).collect();
        prop_assert_eq!(all.len(), plan.visits.len());
        prop_assert!(again.remaining(&all).is_empty());
    }
}
