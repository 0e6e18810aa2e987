//! An operation that no storage has, measured as block requests are.

use meter::{
    Done, Load, Meter, OpId, Orders, Quota, SessionWork, VisitShared, WorkerId, merge, play,
};
use record::{Run, VisitRecord};
use suite::model::{Last, Pacing, Stop, Until};
use units::{Instant, Nanos};

use crate::sample;

/// Each takes 2 ms, now and then 20.
struct Till(Instant, u64);

impl SessionWork for Till {
    fn now(&mut self) -> Instant {
        self.0
    }

    fn wait_until(&mut self, until: Instant) {
        self.0 = until;
    }

    fn next(&mut self) -> OpId {
        OpId(0)
    }

    fn play(&mut self, _op: OpId) -> Done {
        self.1 += 1;
        self.0 = self.0 + Nanos::millis(if self.1.is_multiple_of(50) { 20 } else { 2 });
        Done::Whole { bytes: 0 }
    }
}

/// A visit of four sessions, of which each pauses so long after each transaction.
fn visit(repeat: u32, think: Nanos) -> VisitRecord {
    let stop = Stop {
        ramp: Nanos::ZERO,
        time: Some(Nanos::secs(3)),
        bytes: None,
        operations: None,
        until: Until::All,
        last: Last::Whole,
        extend: None,
    };
    let load = Load {
        name: "till",
        threads: 4,
        depth: 1,
        pacing: Pacing::Closed { think, burst: 1 },
        duty: None,
        stop,
        unasked: Vec::new(),
    };
    let (shared, quota) = (VisitShared::new(4), Quota::default());
    let of = |worker: u32| {
        let id = WorkerId { stream: 0, worker };
        let meter = Meter::new(&load, id, &[OpId(0)], false, &shared.pulses()[worker as usize]);
        let orders = Orders {
            stop: &load.stop,
            shared: &shared,
            quota: &quota,
            begin: Instant::ZERO,
            failures: 0,
            seed: 1,
        };
        play(meter, &orders, &mut Till(Instant::ZERO, u64::from(worker)), &mut ())
    };
    let found = merge(std::slice::from_ref(&load), &["transaction"], (0..4).map(of).collect());
    let mut visit = sample::visit(0, repeat, found.elapsed.get(), found.streams);
    visit.repeat = repeat;
    visit.started_unix_ns += i64::from(repeat) * 4_000_000_000;
    visit.load_ns = found.load.map(Nanos::get);
    visit.completions = found.completions;
    visit
}

fn run() -> Run {
    let mut header = sample::header("till");
    header.visits_planned = 6;
    let cell = sample::cell(0, "main", &[], vec![sample::stream("till", "transaction", None, 4)]);
    let visits = (0..6).map(|k| visit(k, Nanos::micros(10 * u64::from(k))));
    Run { header, cells: vec![cell], visits: visits.collect() }
}

#[test]
fn a_transaction_has_a_table_findings_and_a_page() {
    let run = run();
    // 50 take 118 ms, four at a time.
    let rate = 4.0 * 50.0 / 0.118;
    let table = report::table::grid(&run);
    let line = table.lines().find(|line| line.starts_with("transaction")).unwrap_or(&table);
    let said: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((said / rate - 1.0).abs() < 0.03, "{said} for {rate}: {table}");
    assert!(report::csv(&run).contains(",transaction,"));
    let view = explain::view::View::new(&run);
    let context = explain::explanation::Context::default();
    let text = format!("{:?}", explain::explanation::Explanation::of(&[view], &context));
    assert!(text.contains("AnswerRate"), "{text}");
    let page = report::page::page(&[run], &report::page::Terms::default());
    let page = serde_json::to_string(&page).unwrap();
    assert!(page.contains("\"transaction\""), "{page}");
}
