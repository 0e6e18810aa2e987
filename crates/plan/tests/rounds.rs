//! Rounds: order, ends, vetoes, time; steady phases; resuming from any visit.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};

use plan::{CellStanding, Made, PlannedVisit, RoundOf, Schedule, Short, Standing, Veto, Why};
use proptest::prelude::*;
use record::{Blocks, Purpose};
use stats::Random;
use stats::memory::Rows;
use stats::random::derive_seed;
use suite::model::Suite;
use suite::{CheckContext, check, parse};
use units::{Bytes, Nanos};

/// Two phases of `first` and `second` cells of 10 s.
fn suite(first: u32, second: u32, rounds: &str) -> Suite {
    let axis = |n: u32| (1..=n).map(|t| t.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "schema = 1\nname = \"two\"\n[rounds]\n{rounds}\n[defaults]\ntime = \"10s\"\n\
         [[phase]]\nname = \"one\"\ngrid.threads = [{}]\n\
         [[phase]]\nname = \"other\"\ngrid.queue_depth = [{}]\n",
        axis(first),
        axis(second)
    );
    check(&parse(&text, "two.toml").unwrap(), &CheckContext::default()).unwrap()
}

fn steady(round: &str) -> Suite {
    let text = format!(
        "schema = 1\nname = \"steady\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"w\"\n\
         operation = \"write\"\ntime = 1\nsteady = {{ {round} }}\n[[phase]]\nname = \"r\"\ntime = 1\n"
    );
    check(&parse(&text, "steady.toml").unwrap(), &CheckContext::default()).unwrap()
}

/// A device: what a visit yields depends on nothing but which one it is.
struct World {
    seed: u64,
    /// Noise by cell, as a standard deviation of ln rate.
    noise: fn(u32) -> f64,
    veto: fn(&PlannedVisit) -> Option<Veto>,
    took: Nanos,
}

const QUIET: World = World { seed: 5, noise: |_| 0.01, veto: |_| None, took: WHOLE };

/// A visit that nothing had to be waited for: a ramp of 500 ms, up to as much on top, and 2 s measured.
const WHOLE: Nanos = Nanos::millis(2_750);

impl World {
    fn visit(&self, visit: &PlannedVisit) -> Made {
        let labels = [u64::from(visit.cell), u64::from(visit.repeat)];
        let noise = Random::new(derive_seed(self.seed, &labels)).normal();
        let pilot = visit.purpose == Purpose::Pilot;
        // What is more than that is the wait.
        let waited = if pilot { Nanos::ZERO } else { self.took.saturating_sub(WHOLE) };
        let permille = u64::from(visit.time_permille.unwrap_or(1000));
        let measured = if pilot { Nanos::secs(10) } else { Nanos::millis(2 * permille) };
        let ramp = if pilot { Nanos::ZERO } else { Nanos::millis(750) };
        Made {
            key: visit.key(),
            purpose: visit.purpose,
            ok: true,
            ln_rates: vec![Some(10.0 + (self.noise)(visit.cell) * noise)],
            rows: Vec::new(),
            veto: (self.veto)(visit),
            took: waited + ramp + measured,
            waited,
            measured,
            written: Bytes::ZERO,
            ramp: pilot.then(|| Nanos::millis(500 * u64::from(visit.cell % 4))),
        }
    }

    fn play(&self, schedule: &Schedule) -> (Vec<PlannedVisit>, Vec<Made>) {
        let mut course = schedule.begin();
        let (mut visits, mut made) = (Vec::new(), Vec::new());
        while let Some(visit) = course.next() {
            assert_eq!(course.next(), Some(visit), "asked again it says the same");
            made.push(self.visit(&visit));
            course.add(made.last().unwrap());
            visits.push(visit);
            assert!(visits.len() < 10_000, "it never ends");
        }
        (visits, made)
    }
}

fn schedule(suite: &Suite, seed: u64) -> Schedule {
    Schedule::new(suite, seed, &BTreeSet::new())
}

fn counts(visits: &[PlannedVisit]) -> BTreeMap<u32, u32> {
    let mut counts = BTreeMap::new();
    for visit in visits.iter().filter(|visit| visit.purpose == Purpose::Measure) {
        *counts.entry(visit.cell).or_default() += 1;
    }
    counts
}

#[test]
fn every_round_visits_every_open_cell_once_in_an_order_of_its_own() {
    let suite = suite(20, 15, "pilot = false");
    let (visits, _) = QUIET.play(&schedule(&suite, 7));
    let mut orders = BTreeSet::new();
    for (phase, count) in [(0..20, 20), (20..35, 15)] {
        let of: Vec<u32> =
            visits.iter().map(|v| v.cell).filter(|cell| phase.contains(cell)).collect();
        for round in of.chunks(count).take(3) {
            let distinct: BTreeSet<u32> = round.iter().copied().collect();
            assert_eq!(distinct.len(), count, "{round:?}");
            assert!(orders.insert(round.to_vec()), "two rounds have the same order");
        }
    }
    let first_of_other = visits.iter().position(|v| v.cell >= 20).unwrap();
    assert!(visits[first_of_other..].iter().all(|v| v.cell >= 20), "phases are interleaved");
    assert!(counts(&visits).values().all(|&n| n <= 4), "{:?}", counts(&visits));
}

#[test]
fn quiet_cells_end_first_and_noisy_ones_at_the_cap() {
    let suite = suite(20, 1, "pilot = false\ntime_max = \"1h\"");
    let noise = |cell| if cell < 2 { 0.5 } else { 0.01 };
    let schedule = schedule(&suite, 7);
    let (visits, made) = World { noise, ..QUIET }.play(&schedule);
    let counts = counts(&visits);
    assert_eq!((counts[&0], counts[&1]), (10, 10));
    // Two noisy cells of three visits may look like a second speed of the device; of five they do not.
    assert!((2..20).all(|cell| counts[&cell] <= 5), "{counts:?}");
    let standing = schedule.standing(&made);
    assert_eq!(standing[0].standing, Standing::NotConverged(Why::Cap));
    assert_eq!(standing[5].standing, Standing::Converged);
    assert!(standing[5].half_width.unwrap() <= 0.05_f64.ln_1p());
    assert!(standing[0].half_width.unwrap() > 0.05_f64.ln_1p());
    let course = schedule.after(&made);
    assert!(standing.iter().all(|cell| course.half_width(cell.cell) == cell.half_width));
    assert_eq!(course.half_width(99), None);
}

#[test]
fn a_cell_with_a_stall_or_a_change_never_ends_early() {
    let suite = suite(20, 1, "pilot = false\ntime_max = \"1h\"");
    let veto = |visit: &PlannedVisit| match (visit.cell, visit.repeat) {
        (3, 1) => Some(Veto::Stall),
        (4, 0) => Some(Veto::Change),
        _ => None,
    };
    let schedule = schedule(&suite, 7);
    let (visits, made) = World { veto, ..QUIET }.play(&schedule);
    let counts = counts(&visits);
    assert_eq!((counts[&3], counts[&4], counts[&5]), (10, 10, 3));
    let standing = schedule.standing(&made);
    assert_eq!(standing[3].vetoes, [Veto::Stall]);
    assert_eq!(standing[4].vetoes, [Veto::Change]);
    assert_eq!(standing[3].standing, Standing::Converged, "narrow at the cap");
}

#[test]
fn an_outlier_asks_for_more_visits() {
    let suite = suite(20, 1, "pilot = false\ntime_max = \"1h\"\nprecision = 1");
    let mut course = schedule(&suite, 7).begin();
    let mut visits = Vec::new();
    while let Some(visit) = course.next() {
        let mut made = QUIET.visit(&visit);
        if (visit.cell, visit.repeat) == (6, 2) {
            made.ln_rates[0] = made.ln_rates[0].map(|rate| rate + 0.42_f64.ln());
        }
        course.add(&made);
        visits.push(visit);
    }
    // Its interval is narrow enough for a precision of 100 %: the outlier alone keeps it.
    let counts = counts(&visits);
    assert_eq!((counts[&6], counts[&7]), (10, 3));
    assert_eq!(course.standing()[6].vetoes, [Veto::Outlier]);
}

#[test]
fn pilots_come_first_in_their_phase_and_set_its_ramp() {
    let suite = suite(12, 12, "pilot = true\ntime_max = \"20min\"");
    let (visits, _) = QUIET.play(&schedule(&suite, 7));
    let pilots = |cells: std::ops::Range<u32>| -> Vec<u32> {
        let of = visits.iter().filter(|v| cells.contains(&v.cell));
        of.take_while(|v| v.purpose == Purpose::Pilot).map(|v| v.cell).collect()
    };
    assert_eq!(pilots(0..12), [0, 5, 11]);
    assert_eq!(pilots(12..24), [12, 17, 23]);
    assert_eq!(visits.iter().filter(|v| v.purpose == Purpose::Pilot).count(), 6);
    let mut ramps = BTreeSet::new();
    for visit in visits.iter().filter(|v| v.purpose == Purpose::Measure) {
        // Cells 11 and 23 asked for most. A fifth of a visit of 3.5 s may come on top.
        let ramp = visit.ramp.unwrap();
        assert!(ramp >= Nanos::millis(1500) && ramp < Nanos::millis(2200), "{ramp}");
        ramps.insert(ramp);
    }
    assert!(ramps.len() > 60, "of {} visits: {ramps:?}", visits.len());
    let seeds: BTreeSet<u64> = visits.iter().map(|visit| visit.seed).collect();
    assert_eq!(seeds.len(), visits.len(), "a pilot shares a seed with a visit");
}

#[test]
fn ramps_leave_time_for_three_visits_of_every_cell() {
    // Pilots ask for 1.5 s. 72 visits of 2.75 s and three pilots each phase: 258 s.
    let of = |time: &str| {
        let suite = suite(12, 12, &format!("pilot = true\ntime_max = \"{time}\""));
        let mut course = schedule(&suite, 7).begin();
        while let Some(visit) = course.next().filter(|v| v.purpose == Purpose::Pilot) {
            course.add(&QUIET.visit(&visit));
        }
        let (ramp, cut) = (course.next().unwrap().ramp.unwrap(), course.ramp_cut());
        let least = cut.map_or(Nanos::millis(1500), |(_, cut)| cut);
        assert!(ramp >= least && ramp < least + Nanos::millis(700), "{ramp}");
        cut
    };
    let millis = Nanos::millis;
    // Of 36 s to spare three quarters are for ramps: 375 ms for each visit.
    assert_eq!(of("294s"), Some((millis(1500), millis(875))));
    assert_eq!(of("258s"), Some((millis(1500), millis(500))));
    assert_eq!(of("20min"), None);
}

#[test]
fn a_slow_first_phase_leaves_the_second_its_three_visits() {
    // 40 cells of 3.5 s each: planned as 2.5 s. Three visits to all are 420 s, seven and a half to
    // the first phase alone are 525 s.
    let suite = suite(20, 20, "pilot = false\ntime_max = \"480s\"");
    let slow = World { noise: |_| 0.3, took: Nanos::millis(3_500), ..QUIET };
    let (visits, made) = slow.play(&schedule(&suite, 7));
    assert!(counts(&visits).values().all(|&n| n >= 3), "{:?}", counts(&visits));
    let took: u64 = made.iter().map(|made| made.took.get()).sum();
    assert!(Nanos::new(took) <= Nanos::secs(480), "{}", Nanos::new(took));
}

#[test]
fn waits_for_an_idle_device_do_not_eat_the_visits_that_an_interval_needs() {
    // 120 visits of 2.75 s are planned, 330 s; each is waited for 2 s. Two rounds and a half would
    // be all.
    let suite = suite(20, 20, "pilot = false\ntime_max = \"430s\"");
    let slow = World { took: Nanos::millis(4_750), ..QUIET };
    let (visits, made) = slow.play(&schedule(&suite, 7));
    assert!(counts(&visits).values().all(|&n| n == 3), "{:?}", counts(&visits));
    let took = made.iter().fold(Nanos::ZERO, |sum, made| sum + made.took);
    assert!(took <= Nanos::secs(430) && took > Nanos::secs(410), "{took}");
    // The first round knows of no waits yet.
    assert!(visits[..20].iter().all(|visit| visit.time_permille.is_none()));
    let cut = visits[20..].iter().map(|visit| visit.time_permille);
    assert!(cut.flatten().all(|permille| (250..500).contains(&permille)), "{visits:?}");
    assert!(visits[20..].iter().all(|visit| visit.time_permille.is_some()));
}

#[test]
fn a_device_that_is_never_idle_leaves_time_for_every_visit() {
    // One cell in each phase, three visits of 2.5 s to each and two pilots: 35 s of the minute. Waits
    // of 30 s, as a device that is never idle would have them, left time for one visit of three.
    for (first, second) in [(1, 1), (4, 2)] {
        let time = 30 * (first + second);
        let rounds = format!("visits_min = 3\nvisits_max = 3\ntime_max = \"{time}s\"");
        let suite = suite(first, second, &rounds);
        let schedule = schedule(&suite, 7);
        let wait = schedule.wait_most();
        assert!(wait > Nanos::ZERO && wait < Nanos::secs(30), "{wait}");
        let enough = |wait: Nanos| {
            let world = World { took: WHOLE + wait, ..QUIET };
            let (visits, _) = world.play(&schedule);
            counts(&visits).values().all(|n| *n == 3)
        };
        assert!(!enough(Nanos::secs(30)) && enough(wait), "{wait}");
    }
}

#[test]
fn what_is_to_spare_is_shared_with_the_phases_to_come() {
    // Five visits of 2.75 s to each of 40 cells are 550 s; three are wanted at least.
    let suite = suite(20, 20, "pilot = false\ntime_max = \"560s\"");
    let noisy = World { noise: |_| 0.3, ..QUIET };
    let visits = noisy.play(&schedule(&suite, 7)).0;
    assert!(counts(&visits).values().all(|&n| n == 5), "{:?}", counts(&visits));
    // The second phase's visits alone are waited for, which nobody could know: its part of the
    // time to spare goes there, before any of them is shortened.
    let mut course = schedule(&suite, 7).begin();
    let mut visits = Vec::new();
    while let Some(visit) = course.next() {
        let took = if visit.cell < 20 { WHOLE } else { Nanos::millis(4_250) };
        course.add(&World { took, ..noisy }.visit(&visit));
        visits.push(visit);
    }
    assert!(visits.iter().all(|visit| visit.time_permille.is_none()), "{visits:?}");
    assert!(counts(&visits).values().all(|&n| n >= 3), "{:?}", counts(&visits));
}

#[test]
fn what_comes_after_the_least_visits_is_not_shortened() {
    let suite = suite(10, 1, "pilot = false\ntime_max = \"120s\"");
    let noisy = World { noise: |_| 0.3, took: Nanos::millis(4_000), ..QUIET };
    let (visits, _) = noisy.play(&schedule(&suite, 7));
    let cut = |visit: &&PlannedVisit| visit.cell < 10 && visit.time_permille.is_some();
    assert!(visits.iter().filter(cut).all(|visit| visit.repeat < 3), "{visits:?}");
    assert!(counts(&visits).values().all(|&n| n >= 3), "{:?}", counts(&visits));
}

#[test]
fn too_short_a_time_is_known_before_the_first_visit() {
    let short = |time: &str| {
        schedule(&suite(20, 10, &format!("pilot = false\ntime_max = \"{time}\"")), 7).short()
    };
    assert_eq!(short("248s"), None);
    let needed = Nanos::millis(247_500);
    let cut = |time_permille, rounds| Some(Short { wanted: 3, time_permille, rounds, needed });
    assert_eq!(short("160s"), cut(513, None));
    assert_eq!(short("113s"), cut(252, None));
    assert_eq!(short("80s"), cut(250, Some(2)));
    assert_eq!(short("75s"), cut(250, Some(2)));
}

#[test]
fn no_round_is_begun_that_would_end_too_late() {
    // 30 cells of 2.5 s: 75 s a round.
    let budget = |time: &str, noise: fn(u32) -> f64| {
        let suite = suite(20, 10, &format!("pilot = false\ntime_max = \"{time}\""));
        let schedule = schedule(&suite, 7);
        let (visits, made) = World { noise, ..QUIET }.play(&schedule);
        let took = made.iter().fold(Nanos::ZERO, |sum, made| sum + made.took);
        (counts(&visits), took, schedule.standing(&made))
    };
    // Not even a quarter of each visit: 90 s for three of all.
    let (counts, took, standing) = budget("80s", |_| 0.3);
    assert!((0..20).all(|cell| counts[&cell] == 2), "{counts:?}");
    assert!((20..30).all(|cell| counts[&cell] >= 2), "{counts:?}");
    assert!(took <= Nanos::secs(80), "{took}");
    assert!(standing.iter().all(|c| c.standing == Standing::NotConverged(Why::Time)));
    // Shorter visits, three of each. Both phases have their share: neither eats the other's.
    let (counts, took, _) = budget("160s", |_| 0.3);
    assert!(counts.values().all(|&n| n == 3), "{counts:?}");
    assert!(took <= Nanos::secs(160) && took >= Nanos::secs(155), "{took}");
    let (_, took, _) = budget("600s", |_| 0.3);
    assert!(took <= Nanos::secs(600), "{took}");
    assert!(took >= Nanos::secs(500), "time was left: {took}");
}

#[test]
fn a_device_that_is_slower_than_planned_still_gets_one_visit_to_every_cell() {
    let suite = suite(20, 10, "pilot = false\ntime_max = \"100s\"");
    let schedule = schedule(&suite, 7);
    let (visits, _) = World { took: Nanos::secs(10), ..QUIET }.play(&schedule);
    assert_eq!(visits.len(), 30);
}

#[test]
fn cells_with_too_few_visits_go_first_when_time_is_short() {
    let suite = suite(20, 1, "pilot = false\ntime_max = \"125s\"\nvisits_min = 3");
    let schedule = schedule(&suite, 7);
    let mut course = schedule.begin();
    let mut made = Vec::new();
    while let Some(visit) = course.next() {
        let mut one = QUIET.visit(&visit);
        // The device is waited for before odd cells.
        let wait = Nanos::millis(if visit.cell % 2 == 1 { 1_500 } else { 0 });
        (one.took, one.waited) = (one.took + wait, wait);
        course.add(&one);
        made.push(one);
    }
    assert!(made.iter().fold(Nanos::ZERO, |sum, m| sum + m.took) <= Nanos::secs(125));
}

#[test]
fn a_failed_visit_counts_as_made_and_in_no_interval() {
    let suite = suite(1, 1, "pilot = false");
    let schedule = schedule(&suite, 7);
    let mut course = schedule.begin();
    let mut visits = 0;
    while let Some(visit) = course.next() {
        let mut made = QUIET.visit(&visit);
        made.ok = false;
        course.add(&made);
        visits += 1;
    }
    assert_eq!(visits, 6, "three of each, and then it gives up");
    let failed = Standing::NotConverged(Why::Failed);
    assert!(course.standing().iter().all(|c| c.standing == failed));
    assert!(course.standing().iter().all(|c| c.half_width.is_none()));
}

/// A log beside reads in five cells, both with noise of 1 %.
fn log_and_reads() -> Suite {
    let text = "schema = 1\nname = \"both\"\n[rounds]\npilot = false\ntime_max = \"1h\"\n\
                [defaults]\ntime = \"10s\"\n[[phase]]\nname = \"p\"\n\
                grid.block_size = [\"4KiB\", \"8KiB\", \"16KiB\", \"32KiB\", \"64KiB\"]\n\
                [[phase.stream]]\nname = \"log\"\noperation = \"write\"\n\
                [[phase.stream]]\nname = \"reads\"\n";
    check(&parse(text, "both.toml").unwrap(), &CheckContext::default()).unwrap()
}

/// Visits that each cell gets, with `log` making the log's ln rate of a cell's repeat from noise.
fn visits_by_log(log: fn(&PlannedVisit, f64) -> Option<f64>) -> (Vec<u32>, Vec<CellStanding>) {
    let suite = log_and_reads();
    let mut course = schedule(&suite, 7).begin();
    let mut visits = Vec::new();
    while let Some(visit) = course.next() {
        let labels = [9, u64::from(visit.cell), u64::from(visit.repeat)];
        let noise = Random::new(derive_seed(1, &labels)).normal();
        let reads = QUIET.visit(&visit).ln_rates[0];
        let ln_rates = vec![log(&visit, noise), reads.map(|rate| rate + 2.0)];
        course.add(&Made { ln_rates, ..QUIET.visit(&visit) });
        visits.push(visit);
    }
    (counts(&visits).into_values().collect(), course.standing())
}

#[test]
fn a_cell_of_several_streams_ends_when_each_is_known() {
    let quiet = visits_by_log(|_, noise| Some(6.0 + 0.01 * noise));
    assert!(quiet.0.iter().all(|&n| n <= 4), "{:?}", quiet.0);
    // The reads are as well known as before, and in the sum the log would not show.
    let noisy = visits_by_log(|_, noise| Some(6.0 + 0.3 * noise));
    assert_eq!(noisy.0, [10; 5]);
    let wide = |cell: &CellStanding| cell.half_width.is_some_and(|width| width > 0.05);
    assert!(noisy.1.iter().all(wide), "{:?}", noisy.1);
    let never = visits_by_log(|_, _| None);
    assert_eq!(never.0, [10; 5], "nothing is known of the log");
}

#[test]
fn an_outlier_of_one_stream_asks_for_more_visits() {
    let (visits, standing) = visits_by_log(|visit, noise| {
        let is_odd = (visit.cell, visit.repeat) == (3, 1);
        Some(if is_odd { 5.5 } else { 6.0 } + 0.01 * noise)
    });
    assert_eq!(visits[3], 10);
    assert_eq!(standing[3].vetoes, [Veto::Outlier]);
    // What one of 15 visits met, any of them could have met: the others are not known to 5 % either.
    assert!(standing[0].vetoes.is_empty() && visits[0] > 4, "{visits:?}");
}

#[test]
fn a_failed_visit_that_is_left_out_is_made_again_under_its_number() {
    let suite = suite(12, 1, "pilot = false");
    let schedule = schedule(&suite, 7);
    let (visits, made) = QUIET.play(&schedule);
    let lost = visits.iter().position(|v| v.cell == 4 && v.repeat == 1).unwrap();
    let without: Vec<Made> =
        made.iter().enumerate().filter(|(i, _)| *i != lost).map(|(_, made)| made.clone()).collect();
    let mut course = schedule.after(&without);
    let mut again = Vec::new();
    while let Some(visit) = course.next() {
        course.add(&QUIET.visit(&visit));
        again.push(visit);
    }
    assert!(again.iter().any(|v| v.key() == visits[lost].key() && v.seed == visits[lost].seed));
    assert!(again.len() <= 2, "{again:?}");
}

#[test]
fn no_more_time_is_left_than_there_is() {
    // 30 cells of 2.75 s, three visits at least: 247.5 s, of which the time allows less.
    for (time, visits) in [("160s", 90), ("80s", 64)] {
        let suite = suite(20, 10, &format!("pilot = false\ntime_max = \"{time}\""));
        let schedule = schedule(&suite, 7);
        let left = schedule.left(&[]);
        let most: Nanos = time.parse().unwrap();
        assert!(left.ends_by_time, "{left:?}");
        assert_eq!((left.time, left.visits), (most, visits), "{left:?}");
        let (_, made) = World { noise: |_| 0.3, ..QUIET }.play(&schedule);
        for n in 1..=made.len() {
            let left = schedule.left(&made[..n]);
            let spent = made[..n].iter().fold(Nanos::ZERO, |sum, made| sum + made.took);
            assert!(left.time <= most.saturating_sub(spent) + WHOLE, "{n}: {left:?} of {most}");
        }
    }
    let enough = schedule(&suite(2, 2, "pilot = false\ntime_max = \"1h\""), 7).left(&[]);
    assert!(!enough.ends_by_time);
}

#[test]
fn what_is_left_narrows() {
    let suite = suite(20, 5, "pilot = false\ntime_max = \"1h\"");
    let schedule = schedule(&suite, 7);
    let fresh = schedule.left(&[]);
    assert_eq!((fresh.visits, fresh.visits_most), (75, 250));
    assert_eq!(fresh.time, Nanos::millis(75 * 2_750));
    let (_, made) = World { noise: |_| 0.06, ..QUIET }.play(&schedule);
    let mut most = fresh.visits_most;
    for n in 1..=made.len() {
        let left = schedule.left(&made[..n]);
        assert!(left.visits_most <= most && left.visits <= left.visits_most, "{left:?}");
        most = left.visits_most;
    }
    assert_eq!(schedule.left(&made), plan::Left::default());
}

#[test]
fn where_it_is_can_be_told() {
    let suite = suite(12, 1, "pilot = true");
    let mut course = schedule(&suite, 7).begin();
    let mut seen = Vec::new();
    while let Some(visit) = course.next() {
        let round = course.round().unwrap();
        if seen.last() != Some(&round) {
            seen.push(round);
        }
        course.add(&QUIET.visit(&visit));
    }
    assert_eq!((seen[0].of, seen[0].number), (RoundOf::Pilots, 0));
    assert_eq!(
        (seen[1].of, seen[1].number, seen[1].open, seen[1].cells),
        (RoundOf::Visits, 1, 12, 12)
    );
    assert_eq!(course.round(), None);
}

/// A steady phase whose rate over rounds is `rate`, each writing `mib`.
fn steady_rounds(suite: &Suite, mib: u64, rate: fn(u32) -> f64) -> (u32, Standing) {
    let schedule = schedule(suite, 1);
    let mut course = schedule.begin();
    let mut rounds = 0;
    while let Some(visit) = course.next().filter(|visit| visit.cell == 0) {
        assert_eq!(visit.repeat, rounds);
        let mut made = QUIET.visit(&visit);
        made.ln_rates = vec![Some(rate(rounds).ln())];
        made.written = Bytes::mib(mib);
        course.add(&made);
        rounds += 1;
    }
    (rounds, course.standing()[0].standing)
}

#[test]
fn a_steady_phase_ends_when_it_is_steady() {
    let flat = |_| 1000.0;
    assert_eq!(steady_rounds(&steady("volume = 0"), 0, flat), (10, Standing::Steady));
    let decays = |round: u32| 1000.0 * (1.0 + 4.0 * (-f64::from(round) / 2.0).exp());
    let (rounds, standing) = steady_rounds(&steady("volume = 0"), 0, decays);
    assert!((11..=20).contains(&rounds) && standing == Standing::Steady, "{rounds} {standing:?}");
}

#[test]
fn it_is_given_up_and_says_so() {
    let falls = |round: u32| 1000.0 * 0.9_f64.powi(round as i32);
    assert_eq!(steady_rounds(&steady("volume = 0"), 0, falls), (25, Standing::NotSteady));
    let short = steady("rounds_max = 4");
    assert_eq!(steady_rounds(&short, 0, |_| 1.0), (4, Standing::NotSteady));
}

#[test]
fn before_the_volume_is_written_nothing_is_steady() {
    // A cliff after 2 GiB; flat before it. 100 MiB a round: 21 rounds.
    let cliff = |round: u32| if round < 20 { 1000.0 } else { 500.0 };
    assert_eq!(steady_rounds(&steady("volume = 0"), 100, cliff), (10, Standing::Steady));
    let (rounds, _) = steady_rounds(&steady("volume = 2"), 100, cliff);
    assert!(rounds >= 21, "accepted before the cliff: {rounds}");
    let long = steady("volume = 2\n, rounds_max = 60");
    let (rounds, standing) = steady_rounds(&long, 100, cliff);
    assert!(rounds >= 25 && standing == Standing::Steady, "{rounds} {standing:?}");
}

#[test]
fn a_steady_phase_is_left_by_the_phase_after_it() {
    let schedule = schedule(&steady("volume = 0"), 1);
    let (visits, _) = World { noise: |_| 0.001, ..QUIET }.play(&schedule);
    assert!(visits[..10].iter().all(|visit| visit.cell == 0 && visit.ramp.is_none()));
    assert!(visits[10..].iter().all(|visit| visit.cell == 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `next` after a cut is `next` without one, whatever came before.
    #[test]
    fn a_resumed_run_goes_on_as_it_would_have(
        first in 1u32..16, second in 1u32..5, seed: u64, cut in 0.0f64..1.0, noisy: bool,
        pilot: bool, minutes in 3u32..9,
    ) {
        let rounds = format!("pilot = {pilot}\ntime_max = \"{minutes}min\"\nvisits_max = 6");
        let suite = suite(first, second, &rounds);
        let noise = if noisy { |cell| 0.02 * f64::from(cell) } else { |_| 0.01 };
        let veto = |visit: &PlannedVisit| visit.seed.is_multiple_of(23).then_some(Veto::Stall);
        let world = World { seed, noise, veto, ..QUIET };
        let schedule = schedule(&suite, seed);
        let (visits, made) = world.play(&schedule);
        let cut = (cut * made.len() as f64) as usize;
        for at in [cut, 0, made.len()] {
            prop_assert_eq!(schedule.next(&made[..at]), visits.get(at).copied());
        }
        let keys: BTreeSet<_> = visits.iter()
            .map(|v| (v.key(), v.purpose == Purpose::Pilot)).collect();
        prop_assert_eq!(keys.len(), visits.len(), "a visit was planned twice");
        for standing in schedule.standing(&made) {
            let vetoed = !standing.vetoes.is_empty();
            let early = standing.standing == Standing::Converged && standing.visits < 6;
            prop_assert!(!(vetoed && early), "ended early over a veto: {:?}", standing);
            prop_assert!(standing.visits >= 1 && standing.visits <= 6);
        }
    }
}

#[test]
fn sides_of_a_comparison_measure_alike_however_long_one_is_waited_for() {
    let blocks = Blocks {
        group: "g".to_owned(),
        side: "A".to_owned(),
        looks: 1,
        controls: Vec::new(),
        is_control: false,
    };
    let suite = suite(20, 20, "pilot = false\ntime_max = \"430s\"");
    let slow = World { took: Nanos::millis(4_500), ..QUIET };
    let (visits, _) = slow.play(&schedule(&suite, 7).in_blocks(Some(&blocks)));
    assert!(visits.iter().all(|visit| visit.time_permille.is_none()), "{visits:?}");
}

#[test]
fn sides_of_a_comparison_stay_in_step_over_blocks_of_others() {
    let side = |label: &str, is_control: bool, visits: u32| {
        let blocks = Blocks {
            group: "g".to_owned(),
            side: label.to_owned(),
            looks: 1,
            controls: vec![2, 5],
            is_control,
        };
        let rounds = format!(
            "pilot = false\ntime_max = \"1h\"\nvisits_min = {visits}\nvisits_max = {visits}"
        );
        let schedule = schedule(&suite(6, 3, &rounds), 7).in_blocks(Some(&blocks));
        let (visits, _) = QUIET.play(&schedule);
        visits.iter().map(|v| (v.cell, v.repeat, v.seed)).collect::<Vec<_>>()
    };
    let (a, b, again) = (side("A", false, 7), side("B", false, 5), side("A'", true, 2));
    assert_eq!((a.len(), b.len(), again.len()), (9 * 7, 9 * 5, 9 * 2));
    // The same cells in the same order, with the same addresses: only the blocks are shared out.
    let of = |wanted: &[u32]| {
        a.iter().filter(|(_, repeat, _)| wanted.contains(repeat)).copied().collect::<Vec<_>>()
    };
    assert_eq!(b, of(&[0, 1, 3, 4, 6]));
    assert_eq!(again, of(&[2, 5]));
}

/// Visits that agree, 0.5 s apart, and whose rows show noise that lasts longer than that.
#[test]
fn close_visits_that_agree_by_lasting_noise_do_not_end_a_cell() {
    let visits_of = |lasts: bool| {
        let mut course = schedule(&suite(1, 1, "pilot = false"), 1).begin();
        let mut visits = 0u32;
        while let Some(visit) = course.next().filter(|visit| visit.cell == 0) {
            let at = |row: u32| f64::from(visits) * 2.5 + f64::from(row) * 0.1;
            let rate = |row: u32| 1e4 * (1.0 + if lasts { 0.1 * at(row).sin() } else { 0.0 });
            let rows: Vec<f64> = (0..20).map(rate).collect();
            let rates = vec![Some(10.0 + 0.001 * f64::from(visits % 2))];
            let rows = vec![Rows::new(at(0), 0.1, &rows)];
            course.add(&Made { rows, ln_rates: rates, ..QUIET.visit(&visit) });
            visits += 1;
        }
        visits
    };
    assert_eq!(visits_of(false), 3);
    assert!(visits_of(true) > 3, "three visits do not know the level of noise that lasts");
}
