use finding::{Code, Number};
use record::{
    BackendRecord, Bitmap, CellRecord, Gap, LedgerEntry, Machine, OpRecord, Purpose, Run,
    RunHeader, RunState, Series, SlowRequest, StreamPlan, StreamRecord, TargetKind, TargetRecord,
    VisitEnd, VisitRecord, WorkerRecord,
};
use stats::LatencyHistogram;
use units::Nanos;

use super::*;

pub(crate) const MS: u64 = 1_000_000;

/// A suite of requests of 4 KiB all over a file.
///
/// * `top`: lines before its defaults; `rest`: more of these, then its phases.
pub(crate) fn suite_text(top: &str, rest: &str) -> String {
    format!(
        r#"
schema = 1
name = "s"
file_size = "1GiB"
{top}
[defaults]
access = "uniform"
block_size = "4KiB"
time = "1s"
{rest}
"#
    )
}

/// Ten seconds of one worker, a request each ms, but none in the given milliseconds.
pub(crate) fn visit(order: u32, op: &str, silent: &[(u64, u64)]) -> VisitRecord {
    let mut completions = Bitmap::zeros(10_000);
    let mut latency = LatencyHistogram::new();
    let (mut requests, mut sum) = (0, 0u128);
    for bit in 0..10_000 {
        if !silent.iter().any(|&(start, length)| (start..start + length).contains(&bit)) {
            completions.set(bit);
            latency.record(Nanos::millis(1));
            requests += 1;
            sum += u128::from(MS);
        }
    }
    let mut slow = Vec::new();
    for &(start, length) in silent {
        let latency_ns = (length + 1) * MS;
        latency.record(Nanos::new(latency_ns));
        sum += u128::from(latency_ns);
        slow.push(SlowRequest { at_ns: (start + length) * MS, latency_ns, worker: 0, offset: 0 });
    }
    let gaps =
        silent.iter().map(|&(start, length)| Gap { start_ns: start * MS, length_ns: length * MS });
    let op = OpRecord {
        op: op.to_owned(),
        requests,
        bytes: requests * 4096,
        errors: vec![],
        short: 0,
        latency,
        latency_ns_min: MS,
        latency_ns_max: MS,
        latency_ns_sum: sum,
        series: Series::default(),
        slow,
        slow_dropped: 0,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    };
    VisitRecord {
        cell: u32::from(op.op == "write"),
        repeat: order,
        order,
        started_unix_ns: i64::from(order) * 20_000_000_000,
        elapsed_ns: 10_000 * MS,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: vec![StreamRecord {
            name: "s".to_owned(),
            backend: BackendRecord::default(),
            ops: vec![op],
            workers: vec![WorkerRecord { requests, gaps: gaps.collect(), ..Default::default() }],
            ramp_requests: 0,
            backlog: 0,
        }],
        completions,
        counters: Vec::new(),
        ledger: vec![],
        host_stalls: vec![],
        warnings: vec![],
    }
}

pub(crate) fn run(kind: TargetKind, visits: Vec<VisitRecord>) -> Run {
    let cell = |index: u32, phase: &str| CellRecord {
        index,
        phase: phase.to_owned(),
        coordinates: vec![],
        streams: vec![StreamPlan {
            name: "s".to_owned(),
            op: phase.to_owned(),
            block_bytes: Some(4096),
            threads: 1,
            queue_depth: 1,
        }],
        impossible: None,
    };
    let target = TargetRecord {
        given: "t".to_owned(),
        resolved: "t".to_owned(),
        kind,
        size_bytes: 1 << 30,
        files: 1,
        file_system: None,
        mount: None,
        devices: vec![],
        direct_alignment: None,
        link: None,
        cache_bytes: None,
        model: None,
        remarks: vec![],
    };
    let machine = Machine {
        host: String::new(),
        kernel: String::new(),
        architecture: String::new(),
        processor: String::new(),
        processors: 1,
        memory_bytes: 0,
    };
    let header = RunHeader {
        id: "r1".to_owned(),
        version: record::VERSION,
        suite: "s".to_owned(),
        suite_text: String::new(),
        target,
        seed: 1,
        command_line: vec![],
        program: String::new(),
        stack: None,
        machine,
        started_unix_ns: 0,
        state: RunState::Complete,
        visits_planned: 2,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: vec![],
    };
    Run { header, cells: vec![cell(0, "read"), cell(1, "write")], visits }
}

fn ledger(queue_ms: u64) -> Vec<LedgerEntry> {
    vec![LedgerEntry { device: "sda".to_owned(), queue_ms, ..Default::default() }]
}

fn said(found: &Freezes) -> Vec<String> {
    finding::texts(&found.findings())
}

fn found(run: &Run) -> Freezes {
    freezes(&View::new(run))
}

#[test]
fn tiers_are_by_length_and_ends_count() {
    let visit = visit(0, "read", &[(0, 150), (2_000, 1_200), (4_500, 5_500)]);
    let tiers: Vec<Tier> = gaps(&visit).iter().map(|gap| gap.tier).collect();
    assert_eq!(tiers, [Tier::Hiccup, Tier::Stall, Tier::Freeze]);
    let last = gaps(&visit)[2];
    assert!(last.open_end && last.end_ns() == visit.elapsed_ns);
    assert!(stalled(&visit));
}

#[test]
fn what_the_bitmap_leaves_out_at_the_end_is_silence() {
    let mut short = visit(0, "read", &[]);
    assert!(!stalled(&short));
    short.completions = {
        let mut map = Bitmap::zeros(7_000);
        (0..7_000).for_each(|bit| map.set(bit));
        map
    };
    short.streams[0].workers[0].gaps = vec![Gap { start_ns: 7_000 * MS, length_ns: 3_000 * MS }];
    let found = gaps(&short);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].tier, found[0].open_end), (Tier::Stall, true));
}

#[test]
fn what_was_watched_for_less_than_a_hiccup_tells_none() {
    let mut short = visit(0, "read", &[]);
    short.elapsed_ns = 60 * MS;
    short.completions = Bitmap::zeros(60);
    (0..60).for_each(|bit| short.completions.set(bit));
    let said = said(&found(&run(TargetKind::File, vec![short]))).join("\n");
    assert!(said.contains("is unknown: 60 ms of measuring is less than that"), "{said}");
    assert!(!said.contains("never stalled"), "{said}");
}

#[test]
fn pauses_with_nothing_in_flight_are_no_gaps() {
    let mut paced = visit(0, "read", &[(2_000, 3_000)]);
    paced.streams[0].workers[0].gaps.clear();
    assert!(!stalled(&paced));
    // Without workers nobody says that it was idle.
    paced.streams[0].workers.clear();
    assert!(stalled(&paced));
}

#[test]
fn a_device_of_five_requests_a_second_is_slow_and_not_frozen() {
    let mut slow = visit(0, "read", &[]);
    slow.completions = Bitmap::zeros(10_000);
    (1..50).for_each(|k| slow.completions.set(k * 200));
    slow.streams[0].ops[0].requests = 49;
    let worker = &mut slow.streams[0].workers[0];
    worker.gaps = (0..50).map(|k| Gap { start_ns: k * 200 * MS, length_ns: 199 * MS }).collect();
    assert!(!stalled(&slow));
}

#[test]
fn a_stall_of_the_host_is_not_the_devices() {
    let mut stalled = visit(0, "read", &[(3_000, 2_000)]);
    stalled.host_stalls = vec![Gap { start_ns: 3_010 * MS, length_ns: 1_980 * MS }];
    let found = found(&run(TargetKind::File, vec![stalled]));
    assert_eq!(found.events[0].source, Source::Host);
    assert_eq!(found.all.of_host, 1);
    let text = &said(&found)[0];
    assert!(
        text.starts_with("The host, not the device, stalled for 100 ms or more once in"),
        "{text}"
    );
    assert!(!text.contains("The device stalled"), "{text}");
}

#[test]
fn the_devices_queue_time_tells_where_requests_waited() {
    let with = |queue_ms| {
        let mut quiet = visit(0, "read", &[]);
        quiet.ledger = ledger(8_000);
        let mut frozen = visit(1, "read", &[(3_000, 3_000)]);
        frozen.ledger = ledger(queue_ms);
        found(&run(TargetKind::File, vec![quiet, frozen])).events[0].source
    };
    // Seven seconds at 80 %, and three of the gap or none.
    assert_eq!(with(5_600 + 3_000), Source::Device);
    assert_eq!(with(5_600), Source::AboveBlockLayer);
    assert_eq!(with(5_600 + 1_400), Source::Unknown);
}

#[test]
fn without_evidence_nothing_is_blamed() {
    let of = |kind| found(&run(kind, vec![visit(0, "read", &[(3_000, 2_000)])])).events[0].source;
    assert_eq!(of(TargetKind::File), Source::Unknown);
    assert_eq!(of(TargetKind::Twin), Source::Device);
}

#[test]
fn what_cannot_stand_still_is_not_blamed() {
    for twin in ["null", "memory"] {
        let mut held = visit(0, "read", &[(3_000, 2_000)]);
        held.streams[0].backend.name = twin.to_owned();
        let found = found(&run(TargetKind::Twin, vec![held]));
        assert_eq!((found.events[0].source, found.all.of_host), (Source::Host, 1), "{twin}");
    }
}

#[test]
fn the_host_is_not_cleared_by_a_watcher_where_the_workers_took_all_processors() {
    let with = |share: f64| {
        let mut quiet = visit(0, "read", &[]);
        quiet.ledger = ledger(8_000);
        let mut held = visit(1, "read", &[(3_000, 3_000)]);
        held.ledger = ledger(5_600);
        let cpu = (held.elapsed_ns as f64 * share) as u64;
        held.streams[0].workers[0].cpu_user_ns = Some(cpu);
        let mut run = run(TargetKind::File, vec![quiet, held]);
        run.header.machine.processors = 1;
        found(&run).events.remove(0)
    };
    assert_eq!(with(0.2).source, Source::AboveBlockLayer);
    let busy = with(0.95);
    assert_eq!(busy.source, Source::Unknown);
    assert!(!busy.evidence.contains("the host ran"), "{}", busy.evidence);
}

#[test]
fn a_request_that_hangs_is_where_the_counters_say() {
    let of = |in_flight_end| {
        let mut hanging = visit(0, "read", &[(6_000, 4_000)]);
        hanging.end = VisitEnd::Hanging;
        hanging.ledger = ledger(0);
        hanging.ledger[0].in_flight_end = in_flight_end;
        found(&run(TargetKind::File, vec![hanging])).events.remove(0)
    };
    assert_eq!(of(3).source, Source::Device);
    assert!(of(3).at_least && of(3).finding().text().contains("at least 4"), "{:?}", of(3));
    assert_eq!(of(0).source, Source::AboveBlockLayer);
}

#[test]
fn lost_time_and_the_writes_before_are_told() {
    let visits = vec![visit(0, "write", &[]), visit(1, "read", &[(2_000, 5_000)])];
    let run = run(TargetKind::File, visits);
    let found = found(&run);
    let event = &found.events[0];
    assert_eq!((event.workers, event.workers_all), (1, 1));
    // Ten seconds of writing from 0, reading from 20, the gap 2 s later.
    assert!(event.since_write_ns.unwrap().abs_diff(12_000 * MS) <= MS);
    let read = &found.cells[0].tally;
    assert!((read.lost_share - 0.5).abs() < 0.001, "{read:?}");
    assert!((read.rate_between / read.rate - 2.0).abs() < 0.01, "{read:?}");
    insta::assert_snapshot!(said(&found).join("\n"));
}

#[test]
fn rates_are_those_of_tables_and_flushes_in_none() {
    let mut synced = visit(0, "write", &[(2_000, 5_000)]);
    let mut flushes = synced.streams[0].ops[0].clone();
    flushes.op = "fsync".to_owned();
    flushes.bytes = 0;
    let written = synced.streams[0].ops[0].requests;
    synced.streams[0].ops.push(flushes);
    let run = run(TargetKind::File, vec![synced]);
    let tally = found(&run).cells[0].tally;
    assert_eq!(tally.requests, written);
    assert!((tally.rate - written as f64 / 10.0).abs() < 0.01, "{tally:?}");
}

#[test]
fn where_all_workers_stood_still_in_turn_there_are_no_others_that_went_on() {
    let mut both = visit(0, "read", &[]);
    let free = both.streams[0].workers[0].clone();
    let with = |start: u64, length: u64| {
        let gap = Gap { start_ns: start * MS, length_ns: length * MS };
        WorkerRecord { gaps: vec![gap], ..free.clone() }
    };
    both.streams[0].workers = vec![with(1_000, 1_000), with(1_900, 800)];
    let found = found(&run(TargetKind::File, vec![both]));
    let said = said(&found).join("\n");
    assert!(said.contains("Each of 2 workers stalled within 1.7 s"), "{said}");
}

#[test]
fn a_freeze_of_reads_and_writes_is_not_blamed_on_writes_alone() {
    let mut mixed = visit(0, "read", &[(2_000, 5_000)]);
    let mut writes = mixed.streams[0].ops[0].clone();
    writes.op = "write".to_owned();
    mixed.streams[0].ops.push(writes);
    let found = found(&run(TargetKind::Twin, vec![mixed]));
    let said = said(&found).join("\n");
    assert!(said.contains(", while reading and writing"), "{said}");
    assert!(said.contains("Repeat the cell with its reads alone"), "{said}");
    assert!(!said.contains("a minute without writes"), "{said}");
}

#[test]
fn the_last_request_of_a_burst_that_is_late_is_no_device_that_stood_still() {
    let with = |held: usize, dropped: u64| {
        let mut burst = visit(0, "write", &[(2_000, 1_500)]);
        let op = &mut burst.streams[0].ops[0];
        let late = op.slow[0];
        op.slow = (0..held as u64).map(|k| SlowRequest { offset: 4096 * k, ..late }).collect();
        op.slow_dropped = dropped;
        // Another one that was late, at another time.
        op.slow.push(SlowRequest { at_ns: 1_900 * MS, latency_ns: 1_000 * MS, ..late });
        let mut run = run(TargetKind::Twin, vec![burst]);
        run.cells[1].streams[0].queue_depth = 32;
        said(&found(&run)).join("\n")
    };
    let said = with(1, 0);
    assert!(
        said.starts_with("With one request in flight nothing came back for 100 ms or more once"),
        "{said}"
    );
    assert!(said.contains(", the only request in flight, while writing: at the device"), "{said}");
    assert!(said.contains("One request was in flight in `write` when nothing came back"), "{said}");
    assert!(said.contains("whether the device stalled or this one request was late"), "{said}");
    // All that was out, or nobody knows how many.
    for (held, dropped) in [(2, 0), (32, 0), (1, 1)] {
        let said = with(held, dropped);
        assert!(said.starts_with("The device stalled for 100 ms or more once"), "{said}");
        assert!(said.contains(", 1 of 1 worker, while writing: at the device"), "{said}");
        assert!(!said.contains("this one request"), "{said}");
    }
}

#[test]
fn one_worker_of_many_is_stuck_and_the_device_is_not() {
    let mut mixed = visit(0, "read", &[]);
    let free = mixed.streams[0].workers[0].clone();
    mixed.streams[0].workers = vec![free; 4];
    mixed.streams[0].workers[2].gaps = vec![Gap { start_ns: 500 * MS, length_ns: 4_000 * MS }];
    let found = found(&run(TargetKind::File, vec![mixed]));
    assert_eq!(found.events, []);
    assert_eq!(found.stuck.len(), 1);
    assert_eq!((found.stuck[0].workers, found.stuck[0].workers_all), (1, 4));
}

#[test]
fn workers_that_stand_still_one_after_the_other_do_not_stand_still_together() {
    let mut mixed = visit(0, "read", &[]);
    let free = mixed.streams[0].workers[0].clone();
    mixed.streams[0].workers = vec![free; 4];
    // Each from a little before the one before is back; the first one twice.
    for (worker, start) in [(0, 500), (1, 2_400), (2, 4_300), (3, 6_200), (0, 8_100)] {
        let gap = Gap { start_ns: start * MS, length_ns: 2_000 * MS };
        mixed.streams[0].workers[worker].gaps.push(gap);
    }
    let found = found(&run(TargetKind::File, vec![mixed]));
    let workers: Vec<u32> = found.stuck.iter().map(|stuck| stuck.workers).collect();
    assert_eq!(workers, [2, 2, 1], "{:?}", found.stuck);
}

#[test]
fn waiting_for_one_hanging_request_is_no_freeze_of_the_device() {
    let mut hanging = visit(0, "read", &[(6_000, 4_000)]);
    hanging.end = VisitEnd::Hanging;
    let done = WorkerRecord { gaps: vec![], ..hanging.streams[0].workers[0].clone() };
    hanging.streams[0].workers.extend(vec![done; 3]);
    let found = found(&run(TargetKind::File, vec![hanging]));
    assert_eq!(found.events, []);
    assert_eq!((found.stuck.len(), found.stuck[0].workers), (1, 1));
}

#[test]
fn nothing_measured_is_unknown_and_not_fine() {
    let found_none = found(&run(TargetKind::File, vec![]));
    assert!(said(&found_none)[0].contains("unknown"));
    let mut blind = visit(0, "read", &[]);
    blind.completions = Bitmap::default();
    let found_blind = found(&run(TargetKind::File, vec![blind]));
    assert_eq!(found_blind.unknown_visits, 1);
    assert!(said(&found_blind)[0].contains("unknown"));
    let quiet = found(&run(TargetKind::File, vec![visit(0, "read", &[])]));
    let text = &said(&quiet)[0];
    assert!(text.contains("At 95 % confidence, such stalls occur no more often than once in"));
    assert!(!text.contains("hour"), "{text}");
}

#[test]
fn odd_records_do_not_crash() {
    let mut odd = visit(0, "write", &[(0, 10_000)]);
    odd.elapsed_ns = u64::MAX;
    odd.started_unix_ns = i64::MIN;
    odd.streams[0].ops[0].requests = u64::MAX;
    odd.streams[0].ops[0].slow[0].latency_ns = u64::MAX;
    odd.streams[0].workers[0].gaps.push(Gap { start_ns: u64::MAX, length_ns: u64::MAX });
    odd.host_stalls = vec![Gap { start_ns: u64::MAX, length_ns: u64::MAX }];
    odd.ledger = ledger(u64::MAX);
    let run = run(TargetKind::File, vec![odd.clone(), odd]);
    let _ = said(&found(&run));
    let view = View::new(&run);
    let _ = crate::latency::latencies(&view).findings();
    let _ = crate::drift::drift(&view).findings();
    let _ = crate::steady::steady(&view).findings();
}

#[test]
fn a_visit_lost_to_requests_that_never_came_back_is_the_first_thing_said() {
    let quiet = visit(0, "read", &[]);
    let mut lost = visit(1, "read", &[]);
    lost.end = VisitEnd::Hanging;
    lost.elapsed_ns = 0;
    lost.streams.clear();
    lost.completions = Bitmap::default();
    let found = found(&run(TargetKind::BlockDevice, vec![quiet, lost]));
    assert_eq!((found.lost_visits, found.all.visits), (1, 1));
    let said = said(&found);
    assert!(said[0].starts_with("In 1 visit requests never came back"), "{said:?}");
    assert!(said[1].starts_with("Otherwise the device never stalled"), "{said:?}");
}

/// Eight seconds of writing, and two in which only the flush at the end was under way.
fn flushed(order: u32) -> VisitRecord {
    let mut visit = visit(order, "write", &[(8_000, 2_000)]);
    let worker = &mut visit.streams[0].workers[0];
    worker.gaps.clear();
    worker.closing_sync = Some(Gap { start_ns: 8_000 * MS, length_ns: 2_000 * MS });
    let row = |at: u64| {
        let requests = if at < 80 { 100 + at % 3 } else { 0 };
        record::SeriesRow { requests, bytes: requests * 4096, tail: vec![] }
    };
    visit.streams[0].ops[0].series =
        Series { interval_ns: 100 * MS, rows: (0..100).map(row).collect() };
    visit
}

#[test]
fn the_flush_at_the_end_is_no_stall_and_no_change() {
    let one = flushed(0);
    assert!(!stalled(&one), "{:?}", gaps(&one));
    assert!(!crate::drift::changed(&one));
    let run = run(TargetKind::File, vec![flushed(0), flushed(1)]);
    let view = View::new(&run);
    let found = freezes(&view);
    assert_eq!((found.events.len(), found.all.events(), found.stuck.len()), (0, 0, 0));
    assert_eq!(found.all.load_ns(), 16_000 * MS, "nobody could have seen more");
    let share = |code| {
        let found = found.findings();
        let one = found.iter().find(|found| found.code == code);
        one.and_then(|one| one.value("share").cloned())
    };
    assert_eq!(share(Code::ClosingFlush), Some(Number::share(0.2).into()));
    let said = said(&found).join("\n");
    assert!(said.contains("never stalled for 100 ms or more in 16 s"), "{said}");
    assert!(crate::Findings::of(&view).marks(&view).iter().all(|m| m.code.name() != "stalled"));
    assert!(crate::cache::caches(&view).write_caches.is_empty(), "a cache that filled");
    assert_eq!(crate::closing::load_ns(&one), 8_000 * MS);
}

#[test]
fn what_waits_for_a_flush_stands_still() {
    // One in the middle.
    let within = run(TargetKind::File, vec![visit(0, "write", &[(4_000, 2_000)])]);
    let found_within = found(&within);
    assert_eq!(found_within.all.stalls, 1);
    // Another stream's requests were out meanwhile.
    let mut beside = flushed(0);
    let mut other = beside.streams[0].clone();
    other.workers[0].closing_sync = None;
    other.workers[0].gaps = vec![Gap { start_ns: 8_000 * MS, length_ns: 2_000 * MS }];
    beside.streams.push(other);
    assert!(stalled(&beside));
}

/// Ten seconds of which the first five are load.
fn loaded(silent: &[(u64, u64)]) -> VisitRecord {
    VisitRecord { load_ns: Some(5_000 * MS), ..visit(0, "read", silent) }
}

#[test]
fn waiting_for_what_is_late_when_the_load_is_over_is_no_gap() {
    for start in [4_998, 5_000, 5_001, 6_000] {
        let late = loaded(&[(start, 3_000)]);
        assert!(gaps(&late).is_empty() && !stalled(&late), "{start}");
        let found = found(&run(TargetKind::File, vec![late]));
        assert!(found.events.is_empty() && found.stuck.is_empty(), "{found:?}");
        assert_eq!(found.all.watched_ns, 5_000 * MS);
    }
    // Under way when it ends, with nothing coming back for a while: of its whole length.
    let gap = gaps(&loaded(&[(4_900, 3_000)]))[0];
    assert!(gap.length_ns.abs_diff(3_000 * MS) <= 2 * MS && !gap.open_end, "{gap:?}");
    // In the middle of it nothing has changed.
    assert_eq!(gaps(&loaded(&[(1_000, 3_000)])).len(), 1);
}

#[test]
fn a_worker_that_waits_alone_when_the_load_is_over_is_not_stuck() {
    let with_gap = |start: u64, length: u64| {
        let mut visit = loaded(&[]);
        let gap = Gap { start_ns: start * MS, length_ns: length * MS };
        let other = visit.streams[0].workers[0].clone();
        visit.streams[0].workers.push(WorkerRecord { gaps: vec![gap], ..other });
        found(&run(TargetKind::File, vec![visit])).stuck
    };
    assert!(with_gap(4_950, 3_000).is_empty() && with_gap(5_100, 3_000).is_empty());
    assert_eq!(with_gap(4_000, 3_000)[0].length_ns, 3_000 * MS);
}
