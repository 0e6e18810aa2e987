//! Made-up operations, played one at a time on a clock of their own.
#![expect(clippy::panic, reason = "tests; the lints only know functions marked as such")]

use meter::{
    Done, Load, Meter, OpId, Orders, Quota, SessionWork, VisitResult, VisitShared, WorkerId,
    WorkerResult, merge, play,
};
use record::OpRecord;
use suite::model::{Arrivals, Duty, Last, Pacing, Stop, Until};
use units::{Instant, Nanos};

const NAMES: [&str; 2] = ["order", "payment"];

/// Orders of 1 ms and payments of 3 ms in turns, a hundred bytes each.
struct Till {
    now: Instant,
    turn: u8,
    /// Of the operations, this and all after it fail.
    fails_from: u64,
    played: u64,
}

impl SessionWork for Till {
    fn now(&mut self) -> Instant {
        self.now
    }

    fn wait_until(&mut self, until: Instant) {
        assert!(until > self.now, "a wait for what is past");
        self.now = until;
    }

    fn next(&mut self) -> OpId {
        self.turn ^= 1;
        OpId(self.turn ^ 1)
    }

    fn play(&mut self, op: OpId) -> Done {
        self.now = self.now + Nanos::millis(1 + 2 * u64::from(op.0));
        self.played += 1;
        match self.played > self.fails_from {
            true => Done::Failed { error: 7, text: "no money".to_owned() },
            false => Done::Whole { bytes: 100 },
        }
    }
}

fn stop() -> Stop {
    Stop {
        ramp: Nanos::ZERO,
        time: Some(Nanos::secs(2)),
        bytes: None,
        operations: None,
        until: Until::All,
        last: Last::Whole,
        extend: None,
    }
}

fn load(pacing: Pacing, stop: Stop) -> Load<'static> {
    Load { name: "till", threads: 2, depth: 1, pacing, duty: None, stop, unasked: Vec::new() }
}

const CLOSED: Pacing = Pacing::Closed { think: Nanos::ZERO, burst: 1 };

/// Each worker after the other, which no worker can tell: nothing is shared but a budget.
fn results(load: &Load<'_>, fails_from: u64) -> Vec<WorkerResult> {
    let (shared, quota) = (VisitShared::new(2), Quota::default());
    let begin = Instant::ZERO + Nanos::secs(7);
    let of = |worker: u32| {
        let id = WorkerId { stream: 0, worker };
        let pulse = &shared.pulses()[worker as usize];
        let meter = Meter::new(load, id, &[OpId(0), OpId(1)], false, pulse);
        let orders = Orders {
            stop: &load.stop,
            shared: &shared,
            quota: &quota,
            begin,
            failures: 2,
            seed: u64::from(worker),
        };
        play(meter, &orders, &mut Till { now: begin, turn: 0, fails_from, played: 0 }, &mut ())
    };
    (0..2).map(of).collect()
}

fn played(load: &Load<'_>) -> VisitResult {
    merge(std::slice::from_ref(load), &NAMES, results(load, u64::MAX))
}

fn op<'a>(result: &'a VisitResult, name: &str) -> &'a OpRecord {
    let found = result.streams[0].ops.iter().find(|op| op.op == name);
    found.unwrap_or_else(|| panic!("no {name}"))
}

fn total(result: &VisitResult) -> u64 {
    result.streams[0].ops.iter().map(|op| op.requests).sum()
}

#[test]
fn one_after_the_other_for_so_long() {
    let load = load(CLOSED, stop());
    let found = played(&load);
    // Two sessions of 4 ms a pair, for 2 s.
    assert_eq!((op(&found, "order").requests, op(&found, "payment").requests), (1000, 1000));
    assert_eq!(op(&found, "order").latency_ns_max, 1_000_000);
    assert_eq!(op(&found, "payment").latency_ns_sum, 3_000_000_000);
    assert_eq!((found.elapsed, found.load), (Nanos::secs(2), Some(Nanos::secs(2))));
    assert_eq!(op(&found, "order").series.rows.len(), 20);
    assert!(found.warnings.is_empty() && !found.failed, "{:?}", found.warnings);
}

#[test]
fn what_leaves_a_worker_is_the_same_in_another_process() {
    let load = load(CLOSED, stop());
    let here = results(&load, u64::MAX);
    let sent = serde_json::to_string(&here).unwrap();
    let there: Vec<WorkerResult> = serde_json::from_str(&sent).unwrap();
    let loads = std::slice::from_ref(&load);
    let text = |results| format!("{:?}", merge(loads, &NAMES, results));
    let (there, here) = (text(there), text(here));
    let differs = there.bytes().zip(here.bytes()).position(|(there, here)| there != here);
    let around = differs.map(|at| (&there[at.max(60) - 60..], &here[at.max(60) - 60..]));
    let around = around.map(|(there, here)| (&there[..100], &here[..100]));
    assert!(there.len() == here.len() && around.is_none(), "{around:?}");
}

#[test]
fn what_was_due_earlier_waited() {
    // 400 a second for two sessions, each able to play 500 of them.
    let found = played(&load(Pacing::Open { rate: 800.0, arrivals: Arrivals::Fixed }, stop()));
    // One every 2.5 ms: each order is due half a millisecond before the payment ends.
    assert_eq!(op(&found, "order").latency_ns_max, 1_500_000);
    assert_eq!(op(&found, "payment").latency_ns_max, 3_000_000);
    assert_eq!(total(&found), 1600);
    let poisson = Pacing::Open { rate: 800.0, arrivals: Arrivals::Poisson };
    let found = played(&load(poisson, stop()));
    assert!((1400..1800).contains(&total(&found)), "{}", total(&found));
}

#[test]
fn an_overloaded_stream_ends_the_visit() {
    let stop = Stop { time: Some(Nanos::secs(60)), ..stop() };
    let found = played(&load(Pacing::Open { rate: 2000.0, arrivals: Arrivals::Fixed }, stop));
    assert!(found.elapsed < Nanos::secs(10), "{}", found.elapsed);
    let codes: Vec<_> = found.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert!(codes.contains(&"overloaded") && codes.contains(&"backlog"), "{codes:?}");
}

#[test]
fn thinking_and_resting_take_their_time() {
    let think = Pacing::Closed { think: Nanos::millis(6), burst: 2 };
    // A pair of 4 ms and a pause of 6.
    assert_eq!(total(&played(&load(think, stop()))), 2 * 400);
    let duty = Some(Duty { on: Nanos::millis(40), off: Nanos::millis(60) });
    let found = played(&Load { duty, ..load(CLOSED, stop()) });
    assert_eq!(total(&found), 2 * 400);
    assert!(found.streams[0].workers[0].gaps.is_empty(), "rest is not a gap");
}

#[test]
fn a_ramp_is_not_counted_and_a_number_is_the_end() {
    let ramp = Stop { ramp: Nanos::secs(1), ..stop() };
    let found = played(&load(CLOSED, ramp));
    // The payments that end with the ramp are measured.
    assert_eq!((total(&found), found.streams[0].ramp_requests), (2002, 998));
    let number = Stop { operations: Some(300), time: None, ..stop() };
    let found = played(&load(CLOSED, number));
    assert_eq!((total(&found), found.load), (300, None));
}

#[test]
fn failures_are_counted_and_end_it_when_there_are_too_many() {
    let load = load(CLOSED, stop());
    let found = merge(std::slice::from_ref(&load), &NAMES, results(&load, 10));
    assert!(found.failed);
    let errors: u64 = found.streams[0].ops.iter().map(OpRecord::errors_total).sum();
    assert_eq!((total(&found), errors), (10, 3), "the second finds the visit ended");
    assert_eq!(found.warnings[0].text, "stream `till`, worker 0: no money");
}
