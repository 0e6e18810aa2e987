//! Cells of several streams: each is judged by itself, whatever the others do.

use explain::compare::{Comparison, Design, Direction, Terms, Verdict, compare};
use explain::explanation::{Context, Explanation};
use explain::latency::latencies;
use explain::view::View;
use explain::{Findings, drift, halt};
use finding::texts;
use record::{
    BackendRecord, Bitmap, Blocks, CellRecord, Gap, Machine, OpRecord, Purpose, Run, RunHeader,
    RunState, Series, SeriesRow, SlowRequest, StreamPlan, StreamRecord, TargetKind, TargetRecord,
    VisitEnd, VisitRecord, WorkerRecord,
};
use stats::{LatencyHistogram, Random};
use units::Nanos;

const SECONDS: u64 = 20;
const SECOND: u64 = 1_000_000_000;

/// A stream of one worker that completes `rate(second)` requests in each second.
fn stream(name: &str, op: &str, rate: impl Fn(u64) -> u64) -> StreamRecord {
    let mut latency = LatencyHistogram::new();
    let row = |second: u64, tenth: u64| SeriesRow {
        requests: rate(second) / 10 + u64::from(tenth < rate(second) % 10),
        ..SeriesRow::default()
    };
    let rows: Vec<SeriesRow> = (0..SECONDS * 10).map(|tenth| row(tenth / 10, tenth % 10)).collect();
    let requests = rows.iter().map(|row| row.requests).sum();
    (0..requests).for_each(|_| latency.record(Nanos::micros(200)));
    StreamRecord {
        name: name.to_owned(),
        backend: BackendRecord::default(),
        ops: vec![OpRecord {
            op: op.to_owned(),
            requests,
            bytes: requests * 8192,
            errors: vec![],
            short: 0,
            latency,
            latency_ns_min: 200_000,
            latency_ns_max: 200_000,
            latency_ns_sum: u128::from(requests) * 200_000,
            series: Series { interval_ns: SECOND / 10, rows },
            slow: vec![],
            slow_dropped: 0,
            late_requests: 0,
            late_bytes: 0,
            reported: None,
        }],
        workers: vec![WorkerRecord { requests, ..WorkerRecord::default() }],
        ramp_requests: 0,
        backlog: 0,
    }
}

fn visit(repeat: u32, streams: Vec<StreamRecord>) -> VisitRecord {
    let mut completions = Bitmap::zeros(SECONDS * 1000);
    (0..SECONDS * 1000).for_each(|bit| completions.set(bit));
    VisitRecord {
        cell: 0,
        repeat,
        order: repeat,
        started_unix_ns: i64::from(repeat) * 30_000_000_000,
        elapsed_ns: SECONDS * SECOND,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams,
        completions,
        counters: Vec::new(),
        ledger: vec![],
        host_stalls: vec![],
        warnings: vec![],
    }
}

/// A log beside page reads, one cell.
fn run(id: &str, visits: Vec<VisitRecord>) -> Run {
    let plan = |name: &str, op: &str, queue_depth| StreamPlan {
        name: name.to_owned(),
        op: op.to_owned(),
        block_bytes: Some(8192),
        threads: 1,
        queue_depth,
    };
    Run {
        header: RunHeader {
            id: id.to_owned(),
            version: record::VERSION,
            suite: "oltp".to_owned(),
            suite_text: String::new(),
            target: TargetRecord {
                given: "/ssd/test.dat".to_owned(),
                resolved: "/ssd/test.dat".to_owned(),
                kind: TargetKind::File,
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
            },
            seed: 1,
            command_line: vec![],
            program: "0.1.0".to_owned(),
            stack: None,
            machine: Machine {
                host: "db1".to_owned(),
                kernel: "6.1".to_owned(),
                architecture: "x86_64".to_owned(),
                processor: "CPU".to_owned(),
                processors: 8,
                memory_bytes: 1 << 36,
            },
            started_unix_ns: 0,
            state: RunState::Complete,
            visits_planned: visits.len() as u32,
            blocks: None,
            targets: vec![],
            part: None,
            imported: None,
            warnings: vec![],
        },
        cells: vec![CellRecord {
            index: 0,
            phase: "oltp".to_owned(),
            coordinates: vec![],
            streams: vec![plan("log", "write", 1), plan("reads", "read", 16)],
            impossible: None,
        }],
        visits,
    }
}

/// `visits` visits with a log of `log(repeat)` and reads of `reads` a second, each with 1 % of
/// noise.
fn planted(id: &str, visits: u32, seed: u64, log: impl Fn(u32) -> f64, reads: f64) -> Run {
    let mut random = Random::new(seed);
    let each = (0..visits).map(|repeat| {
        let mut noisy = |rate: f64| (rate * (0.01 * random.normal()).exp()) as u64;
        let (log, reads) = (noisy(log(repeat)), noisy(reads));
        visit(repeat, vec![stream("log", "write", |_| log), stream("reads", "read", |_| reads)])
    });
    run(id, each.collect())
}

fn text(findings: &[finding::Finding]) -> String {
    findings.iter().map(finding::Finding::text).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_log_that_fell_to_a_hundredth_in_one_visit_is_seen_beside_the_reads() {
    let run = planted("r1", 5, 3, |repeat| if repeat == 2 { 10.0 } else { 1_000.0 }, 50_000.0);
    let view = View::new(&run);
    let found = Findings::of(&view);
    let names: Vec<&str> = found.streams.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["oltp · log", "oltp · reads"]);
    let interval = |position: usize| found.streams[position].interval.as_ref().unwrap();
    assert_eq!(interval(0).outliers, [2]);
    assert!(interval(0).half_width > 1.0 && interval(1).half_width < 0.03);
    assert!(interval(1).outliers.is_empty());
    // What was shown before: in the sum there is nothing to see.
    assert!(found.intervals[0].as_ref().unwrap().outliers.is_empty());
    let marks = found.marks(&view);
    let outliers: Vec<_> = marks.iter().filter(|mark| mark.code.name() == "outlier").collect();
    assert_eq!(outliers.len(), 1);
    assert_eq!((outliers[0].cell, outliers[0].stream.as_deref()), (0, Some("log")));
    assert!(outliers[0].evidence.contains("against a median of"), "{}", outliers[0].evidence);
    let explained = Explanation::of(&[View::new(&run)], &Context::default());
    let sure = &explained.runs[0].sections[1];
    assert_eq!(sure.question, finding::Question::Confidence);
    let text = sure.sentences().join("\n");
    assert!(text.contains("`oltp · log`: one of 5 visits is an outlier"), "{text}");
    assert!(!text.contains("`oltp · reads`: one of 5"), "{text}");
}

#[test]
fn a_stream_that_changes_its_level_or_stands_still_is_told_from_its_neighbours() {
    let steady = |name: &str| stream(name, "read", |_| 50_000);
    let falls = |second: u64| if second < 10 { 1_000 } else { 400 };
    let changes = visit(0, vec![stream("log", "write", falls), steady("reads")]);
    assert!(drift::changed(&changes));
    let drifts = drift::drift(&View::new(&run("r1", vec![changes.clone()])));
    let [only] = drifts.visits.as_slice() else { panic!("{drifts:?}") };
    assert_eq!(only.cell_name, "oltp · log");
    assert_eq!((only.stream.as_deref(), only.steps.len()), (Some("log"), 1));

    let pauses = |second: u64| if (8..10).contains(&second) { 0 } else { 1_000 };
    let mut stuck = visit(1, vec![stream("log", "write", pauses), steady("reads")]);
    assert!(!halt::any(&stuck), "nothing was in flight: there was nothing to do");
    stuck.streams[0].workers[0].gaps = vec![Gap { start_ns: 8 * SECOND, length_ns: 2 * SECOND }];
    assert!(halt::any(&stuck));
    assert!(!drift::changed(&stuck), "a stall is an event, no level");
    let run = run("r1", vec![visit(0, vec![steady("log"), steady("reads")]), stuck]);
    let view = View::new(&run);
    let found = Findings::of(&view);
    assert_eq!(found.freezes.all.events(), 0, "the device went on");
    let [halt] = found.halts.events.as_slice() else { panic!("{:?}", found.halts) };
    assert_eq!((halt.stream.as_str(), halt.repeat), ("log", 1));
    assert!(halt.length_ns.abs_diff(2 * SECOND) <= 2_000_000, "{halt:?}");
    let marks = found.marks(&view);
    let stalled = marks.iter().find(|mark| mark.code.name() == "stalled").unwrap();
    assert_eq!(stalled.stream.as_deref(), Some("log"));
    let said = text(&found.halts.findings());
    assert!(said.starts_with("`oltp · log` stalled for 2 s in visit 2"), "{said}");
    assert!(
        said.contains("it waited for something of its own, such as a flush or a lock"),
        "{said}"
    );
    // One request, and nothing that it waited for.
    let mut late = run;
    let only = SlowRequest { at_ns: 10 * SECOND, latency_ns: 2 * SECOND, worker: 0, offset: 0 };
    late.visits[1].streams[0].ops[0].slow = vec![only];
    let said = text(&halt::halts(&View::new(&late)).findings());
    assert!(said.contains("went on: the only request that it had in flight was late."), "{said}");
}

#[test]
fn a_visit_in_which_the_change_came_is_in_no_level_of_a_few_visits() {
    let rate = |repeat: u32| match repeat {
        0 | 1 => 2_000.0,
        2 => 1_775.0,
        _ => 1_400.0,
    };
    let (mut found, mut true_levels) = (0, 0);
    for seed in 0..20 {
        let run = planted("r1", 10, seed, rate, 50_000.0);
        let drifts = drift::drift(&View::new(&run));
        // So few visits do not always tell.
        let Some(log) = drifts.cells.first() else { continue };
        let near = |rate: f64, level: f64| (rate / level).ln().abs() < 0.03;
        found += 1;
        true_levels +=
            u32::from(near(log.steps[0].before, 2_000.0) && near(log.steps[0].after, 1_400.0));
    }
    assert!(found >= 10 && true_levels * 10 >= found * 9, "{true_levels} of {found}");
}

#[test]
fn what_a_stream_that_works_by_turns_does_to_its_neighbours_is_no_change_of_their_level() {
    // A checkpoint: it pauses, works from 6 s to 14 s, its requests ending one by one, and pauses again.
    let works = |second: u64| match second {
        6..=11 => 1_000,
        12 => 600,
        13 => 200,
        _ => 0,
    };
    let said = |reads: &dyn Fn(u64) -> u64, works: &dyn Fn(u64) -> u64| {
        let streams = vec![stream("checkpoint", "write", works), stream("reads", "read", reads)];
        let visit = visit(0, streams);
        let found = drift::drift(&View::new(&run("r1", vec![visit.clone()])));
        (drift::changed(&visit), texts(&found.findings()).join("\n"))
    };
    let beside = |second: u64| 1_400 - works(second) * 8 / 10 + second % 3;
    let (changed, text) = said(&beside, &works);
    assert!(!changed && !text.contains("the rate changed"), "{text}");
    // What changes while it pauses is a change.
    let falls = |second: u64| if second < 14 { beside(second) } else { 700 + second % 3 };
    let (changed, text) = said(&falls, &works);
    assert!(changed, "{text}");
    assert!(
        text.contains("`oltp · reads`, visit 1: the rate changed from 1.4 K to 701 IOPS"),
        "{text}"
    );
    // Nor is anything left out beside one that has only short pauses.
    let short = |second: u64| if second.is_multiple_of(3) { 0 } else { 500 };
    let halved = |second: u64| if second < 10 { 1_400 + second % 3 } else { 700 + second % 3 };
    assert!(said(&halved, &short).0);
}

/// What is said of the rate of one stream of writes alone.
fn said_of(rate: impl Fn(u64) -> u64) -> (drift::Drifts, Vec<String>) {
    let alone = visit(0, vec![stream("log", "write", rate)]);
    let mut run = run("r1", vec![alone]);
    run.cells[0].streams.truncate(1);
    let found = drift::drift(&View::new(&run));
    let said = texts(&found.findings());
    (found, said)
}

#[test]
fn a_change_of_level_has_the_time_and_the_rates_that_were() {
    let has = |(_, said): &(drift::Drifts, Vec<String>), wanted: &str| {
        assert!(said.iter().any(|line| line.contains(wanted)), "{wanted}: {said:?}");
    };
    let falls = |at: f64| {
        said_of(move |second| {
            let early = (at - second as f64).clamp(0.0, 1.0);
            // As even as a rate is, or nothing is known of its noise.
            (50_000.0 * early + 30_000.0 * (1.0 - early)) as u64 + second * 7 % 5
        })
    };
    has(&falls(3.0), "the rate changed from 50.0 K to 30.0 K IOPS after 3 s");
    has(&falls(17.0), "the rate changed from 50.0 K to 30.0 K IOPS after 17 s");
    has(&falls(10.0), "the rate changed from 50.0 K to 30.0 K IOPS after 10 s");
    let within = falls(12.5);
    has(&within, "the rate changed from 50.0 K to 30.0 K IOPS after 13 s [12, 13]");
    let step = &within.0.visits[0].steps[0];
    assert_eq!((step.from_ns, step.at_ns), (12 * SECOND, 13 * SECOND));
    // How fast it was before nobody knows.
    let (found, said) = falls(0.5);
    assert_eq!(found.visits, [], "{said:?}");
}

#[test]
fn seconds_of_few_requests_are_counted_and_not_believed_to_the_digit() {
    let said_of = |rate: &dyn Fn(u64) -> u64| {
        let mut alone = visit(0, vec![stream("log", "write", rate)]);
        // A request takes as long as there is to the next one.
        alone.streams[0].workers[0].gaps = vec![Gap { start_ns: 0, length_ns: SECONDS * SECOND }];
        let mut run = run("r1", vec![alone]);
        run.cells[0].streams.truncate(1);
        texts(&drift::drift(&View::new(&run)).findings()).join("\n")
    };
    let said = said_of(&|second| if second < 10 { 4 } else { 2 });
    assert!(said.contains("the rate changed from 4 to 2 IOPS after 10 s"), "{said}");
    // Even requests, 3.2 a second: where the fourth falls is chance.
    let said = said_of(&|second| 3 + u64::from([11, 13, 15, 17].contains(&second)));
    assert!(!said.contains("the rate changed"), "{said}");
}

#[test]
fn a_rate_is_said_to_have_kept_its_level_only_where_a_change_would_have_shown() {
    let kept = |said: &[String]| said.iter().any(|line| line.contains("the rate kept its level"));
    let (found, said) = said_of(|second| 50_000 + second * 7_919 % 1_000);
    assert!(kept(&said) && found.kept.is_some_and(|kept| kept.seen_from < 0.1), "{found:?}");
    assert!(said.iter().any(|line| line.contains("in the first or last 5 s, is not excluded")));
    // Now a third and now all of it: a half would not be seen.
    let (found, said) = said_of(|second| [9_000, 50_000, 14_000, 30_000][second as usize % 4]);
    assert!(!kept(&said) && found.kept.is_none(), "{found:?}");
}

#[test]
fn how_arrivals_of_a_rate_that_is_kept_come_is_no_change_of_level() {
    let falls = |second: u64| if second < 10 { 1_060 } else { 1_000 } + second % 2;
    let mut run = run("r1", vec![visit(0, vec![stream("log", "write", falls)])]);
    run.cells[0].streams.truncate(1);
    let found = |run: &Run| drift::drift(&View::new(run)).visits.len();
    assert_eq!(found(&run), 1);
    let suite = |rate: u32| {
        format!(
            r#"
schema = 1
name = "s"
file_size = "1GiB"
[defaults]
access = "uniform"
block_size = "8KiB"
time = "20s"
[[phase]]
name = "oltp"
[[phase.stream]]
name = "log"
operation = "write"
rate = {rate}
arrivals = "poisson"
"#
        )
    };
    run.header.suite_text = suite(1_030);
    assert_eq!(found(&run), 0);
    // Asked for far more, what it did is the storage's doing.
    run.header.suite_text = suite(5_000);
    assert_eq!(found(&run), 1);
}

#[test]
fn a_stream_to_which_all_came_back_late_does_not_stand_still() {
    // One write, asked for in a visit of 110 ms and back after it.
    let mut late = stream("log", "write", |_| 0);
    late.workers[0].gaps = vec![Gap { start_ns: 0, length_ns: 105_000_000 }];
    let mut short = visit(0, vec![late, stream("reads", "read", |_| 1_000)]);
    short.elapsed_ns = 110_000_000;
    assert!(halt::any(&short));
    let found = halt::halts(&View::new(&run("r1", vec![short])));
    assert_eq!(found.events, []);
}

#[test]
fn a_slow_stream_that_waits_as_long_as_ever_does_not_stand_still() {
    // Five scans a second, one after the other: 200 ms each, and one of 240 ms.
    let mut scan = stream("scan", "read", |_| 5);
    scan.ops[0].latency = LatencyHistogram::new();
    (0..99).for_each(|_| scan.ops[0].latency.record(Nanos::millis(200)));
    scan.ops[0].latency.record(Nanos::millis(240));
    let each = |k: u64| Gap { start_ns: k * SECOND / 5, length_ns: SECOND / 5 - 1_000_000 };
    scan.workers[0].gaps = (0..99).map(each).collect();
    scan.workers[0].gaps[50].length_ns = 236_000_000;
    let beside = || stream("log", "write", |_| 1_000);
    let usual = visit(0, vec![scan.clone(), beside()]);
    assert_eq!(halt::halts(&View::new(&run("r1", vec![usual]))).events, []);
    // Ten times that is no longer usual.
    scan.workers[0].gaps[50].length_ns = 2_400_000_000;
    assert!(halt::any(&visit(0, vec![scan, beside()])));
}

#[test]
fn bursts_with_pauses_between_are_no_change_of_level() {
    let bursts = |second: u64| if second % 10 < 3 { 5_000 } else { 0 };
    let streams = vec![stream("log", "write", bursts), stream("reads", "read", |_| 50_000)];
    assert!(!drift::changed(&visit(0, streams)));
    assert!(!drift::changed(&visit(0, vec![stream("log", "write", bursts)])));
}

fn compared(a: &Run, b: &Run) -> Comparison {
    compare(&[View::new(a), View::new(b)], &Terms::default())
}

#[test]
fn a_stream_that_halves_is_told_from_one_that_stays() {
    let a = planted("r1", 6, 5, |_| 1_000.0, 10_000.0);
    let b = planted("r2", 6, 6, |_| 500.0, 10_000.0);
    let seen = compared(&a, &b);
    let against = &seen.against[0];
    assert_eq!(against.design, Design::Apart);
    let rows: Vec<_> = against
        .cells
        .iter()
        .map(|row| (row.cell.as_str(), row.stream.as_deref(), row.outcome.verdict))
        .collect();
    assert_eq!(
        rows,
        [
            ("oltp · log", Some("log"), Verdict::Different),
            ("oltp · reads", Some("reads"), Verdict::Same)
        ]
    );
    assert_eq!(against.cells[0].outcome.direction, Some(Direction::Slower));
    let ratio = |row: usize| against.cells[row].outcome.ratio.unwrap().ratio;
    assert!((ratio(0) - 0.5).abs() < 0.02 && (ratio(1) - 1.0).abs() < 0.02);
    // No mean over a log and page reads: the one that halves decides.
    let names: Vec<_> = against.streams.iter().map(|one| one.stream.as_str()).collect();
    assert_eq!(
        (names.as_slice(), against.overall.ratio.unwrap().ratio),
        (&["log", "reads"][..], ratio(0))
    );
    let text = seen.sentences().join("\n");
    assert!(text.starts_with("Different by stream: of B, `log` is slower, x0.5"), "{text}");
    assert!((against.cells[0].reference.per_second.unwrap() / 1_000.0 - 1.0).abs() < 0.02);
}

#[test]
fn blocks_are_compared_stream_by_stream() {
    let side = |id: &str, seed: u64, log: f64| {
        let mut run = planted(id, 10, seed, |_| log, 10_000.0);
        let blocks = Blocks {
            group: "g".to_owned(),
            side: id.to_owned(),
            looks: 1,
            controls: vec![],
            is_control: false,
        };
        run.header.blocks = Some(blocks);
        run
    };
    let seen = compared(&side("A", 1, 1_000.0), &side("B", 2, 500.0));
    let against = &seen.against[0];
    assert_eq!(against.design, Design::Blocks);
    let verdicts: Vec<_> = against.cells.iter().map(|row| row.outcome.verdict).collect();
    assert_eq!(verdicts, [Verdict::Different, Verdict::Same]);
}

#[test]
fn a_rate_that_the_suite_sets_is_named_with_its_stream() {
    let text = "[[phase]]\nname = \"oltp\"\n[[phase.stream]]\nname = \"log\"\nrate = 1000\n\
                [[phase.stream]]\nname = \"reads\"\nrate = \"none\"\n";
    let side = |id: &str, seed: u64| {
        let mut run = planted(id, 6, seed, |_| 1_000.0, 10_000.0);
        run.header.suite_text = text.to_owned();
        run
    };
    let seen = compared(&side("r1", 5), &side("r2", 6));
    let rows: Vec<bool> = seen.against[0].cells.iter().map(|row| row.scheduled).collect();
    assert_eq!(rows, [true, false]);
    let said = seen.sentences().join("\n");
    assert!(said.contains("The rate of `log` is set by the suite"), "{said}");
}

#[test]
fn what_the_suite_offers_is_not_in_the_ratio_over_all() {
    let text = "[[phase]]\nname = \"oltp\"\n[[phase.stream]]\nname = \"log\"\nrate = 1000\n\
                [[phase.stream]]\nname = \"reads\"\nrate = \"none\"\n";
    let side = |id: &str, seed: u64, reads: f64| {
        let mut run = planted(id, 6, seed, |_| 1_000.0, reads);
        run.header.suite_text = text.to_owned();
        run
    };
    let seen = compared(&side("r1", 5, 10_000.0), &side("r2", 6, 20_000.0));
    let ratio = seen.against[0].overall.ratio.unwrap().ratio;
    assert!((ratio - 2.0).abs() < 0.06, "{ratio}");
    let said = seen.sentences().join("\n");
    assert!(said.contains("over 1 stream"), "{said}");
}

/// One stream that is offered 1000 requests a second and takes 240.
fn offered(left: impl Fn(u32) -> u64) -> Run {
    let mut run = planted("r1", 6, 5, |_| 240.0, 10_000.0);
    run.header.suite_text = "schema = 1\nname = \"oltp\"\nfile_size = \"1GiB\"\n[[phase]]\n\
                             name = \"oltp\"\n[[phase.stream]]\nname = \"log\"\n\
                             operation = \"write\"\naccess = \"uniform\"\nblock_size = \"8KiB\"\n\
                             rate = 1000\ntime = \"20s\"\n"
        .to_owned();
    run.cells[0].streams.truncate(1);
    for visit in &mut run.visits {
        visit.streams.truncate(1);
        visit.streams[0].backlog = left(visit.repeat);
    }
    run
}

#[test]
fn what_is_offered_and_not_taken_is_overload_in_short_visits_too() {
    let run = offered(|_| 760 * SECONDS);
    let view = View::new(&run);
    let marks = Findings::of(&view).marks(&view);
    let overload = marks.iter().find(|mark| mark.code.name() == "overloaded");
    let seen = &overload.expect("a mark").evidence;
    assert!(seen.starts_with("1000 requests a second were offered, 24"), "{seen}");
    let said = text(&latencies(&view).findings());
    assert!(said.contains("`oltp` was overloaded in 6 visits: 1000 requests a second"), "{said}");
    assert!(said.contains("% of what was due had not been issued by the visit's end"), "{said}");
}

#[test]
fn what_chance_or_one_stall_leaves_is_no_overload() {
    let marked = |run: &Run| {
        let view = View::new(run);
        let found = Findings::of(&view).marks(&view);
        let said = text(&latencies(&view).findings()).contains("overloaded");
        (
            view.rows[0].fell_behind(),
            found.iter().any(|mark| mark.code.name() == "overloaded"),
            said,
        )
    };
    // One and a half times the square root of what was due, and more than 2 % of it.
    let due = (240 * SECONDS) as f64;
    let left = (1.5 * due.sqrt()) as u64;
    assert!(left as f64 > 0.02 * (due + left as f64), "{left} of {due}");
    assert_eq!(marked(&offered(|_| left)), (false, false, false));
    // A visit that ended in a stall: the rate was not reached, by no fault of the offer.
    let stalled = offered(|repeat| if repeat == 2 { 200 * SECONDS } else { 0 });
    assert_eq!(marked(&stalled), (true, false, false));
}

#[test]
fn an_offered_rate_that_a_side_did_not_reach_is_about_the_storage() {
    let text = "[[phase]]\nname = \"oltp\"\n[[phase.stream]]\nname = \"log\"\nrate = 1000\n\
                [[phase.stream]]\nname = \"reads\"\nrate = \"none\"\n";
    let side = |id: &str, seed: u64, log: f64| {
        let mut run = planted(id, 6, seed, |_| log, 10_000.0);
        run.header.suite_text = text.to_owned();
        let behind = log < 1_000.0;
        for visit in run.visits.iter_mut().filter(|_| behind) {
            visit.streams[0].backlog = visit.streams[0].ops[0].requests;
        }
        run
    };
    for (a, b, who) in [
        (1_000.0, 500.0, "B did not reach the rate it was offered, A did"),
        (500.0, 1_000.0, "A did not reach the rate it was offered, B did"),
        (500.0, 500.0, "Neither A nor B reached the rate that was offered"),
    ] {
        let seen = compared(&side("r1", 5, a), &side("r2", 6, b));
        let against = &seen.against[0];
        let row = &against.cells[0];
        assert!(row.scheduled && row.is_of_storage(), "{row:?}");
        assert_eq!((row.reference_fell_behind, row.other_fell_behind), (a < 1e3, b < 1e3));
        let said = seen.sentences().join("\n");
        assert!(said.contains(&format!("In `oltp · log`: {who}")), "{said}");
        assert!(!said.contains("what was offered, not"), "{said}");
        let log = against.streams.iter().find(|one| one.stream == "log").unwrap();
        let ratio = log.outcome.ratio.unwrap().ratio;
        assert!((ratio / (b / a) - 1.0).abs() < 0.02, "{ratio}");
    }
}

#[test]
fn streams_in_another_order_are_matched_by_name() {
    let a = planted("r1", 6, 5, |_| 1_000.0, 10_000.0);
    let mut b = planted("r2", 6, 6, |_| 1_000.0, 10_000.0);
    b.cells[0].streams.reverse();
    b.visits.iter_mut().for_each(|visit| visit.streams.reverse());
    let seen = compared(&a, &b);
    let ratios = seen.against[0].cells.iter().map(|row| row.outcome.ratio.unwrap().ratio);
    assert!(ratios.into_iter().all(|ratio| (ratio - 1.0).abs() < 0.03), "{seen:?}");
}

#[test]
fn a_visit_that_lacks_a_stream_is_no_visit_of_it() {
    let mut run = planted("r1", 4, 5, |_| 1_000.0, 10_000.0);
    run.visits[1].streams.pop();
    run.visits[2].streams.clear();
    let view = View::new(&run);
    let visits: Vec<usize> = view.rows.iter().map(|row| row.visits.len()).collect();
    assert_eq!(visits, [3, 2]);
    let _ = Explanation::of(&[view], &Context::default());
}
