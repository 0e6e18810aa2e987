use record::{RunState, RunSummary};
use report::table;

use crate::sample;

#[test]
fn a_run_as_a_table() {
    insta::assert_snapshot!(table::grid(&sample::rich()));
}

#[test]
fn two_axes_as_a_matrix() {
    insta::assert_snapshot!(table::matrix(&sample::rich()).unwrap());
}

#[test]
fn a_phase_of_other_than_two_axes_has_no_matrix() {
    let mut run = sample::rich();
    run.cells.retain(|cell| cell.phase == "oltp");
    assert_eq!(table::matrix(&run), None);
}

#[test]
fn no_table_is_wider_than_a_hundred_or_orders_a_terminal() {
    let mut run = sample::rich();
    for cell in &mut run.cells {
        cell.coordinates.push(("a_field_with_a_long_name_indeed".into(), "x\x1b[2J".repeat(20)));
        for stream in &mut cell.streams {
            stream.name = "stream\r\n".repeat(9);
        }
    }
    for visit in &mut run.visits {
        for op in visit.streams.iter_mut().flat_map(|s| &mut s.ops) {
            op.latency_ns_max = u64::MAX / 1000;
            op.bytes = u64::MAX / 1000;
        }
    }
    let grid = table::grid(&run);
    for line in grid.lines().skip(1) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(grid.contains("left out for width: p50, device"), "{grid}");
    for text in [grid, table::matrix(&sample::rich()).unwrap(), table::bm_flash(&run)] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
}

/// A run of these streams in one phase without axes, with the operations of one visit of 2 s.
fn of_one_phase(streams: Vec<(&str, &str, Vec<record::OpRecord>)>, text: &str) -> record::Run {
    let mut header = sample::header("s");
    header.suite_text = text.to_owned();
    let plans = streams.iter().map(|(name, op, _)| sample::stream(name, op, Some(8192), 1));
    let cell = sample::cell(0, "p", &[], plans.collect());
    let records = streams.into_iter().map(|(name, _, ops)| sample::record(name, ops));
    let visit = sample::visit(0, 0, 2_000_000_000, records.collect());
    record::Run { header, cells: vec![cell], visits: vec![visit] }
}

/// The words of the first line of a table that begins so.
fn line<'a>(table: &'a str, begin: &str) -> Vec<&'a str> {
    let found = table.lines().find(|line| line.starts_with(begin));
    found.unwrap_or_else(|| panic!("no {begin} in {table}")).split_whitespace().collect()
}

#[test]
fn a_copy_and_an_update_count_once() {
    for op in ["copy", "update"] {
        let ops = vec![sample::op("read", 20_000, 8192), sample::op("write", 20_000, 8192)];
        let run = of_one_phase(vec![("main", op, ops)], "");
        let table = table::grid(&run);
        // 10 000 a second of 8 KiB, each of them twice 500.5 us long.
        let told = line(&table, op);
        assert_eq!(told[1..3], ["10000", "78.1"], "{table}");
        assert_eq!(told[3..7], ["1001", "-", "-", "-"], "{table}");
        assert_eq!(line(&table, "read")[1], "10000", "{table}");
        assert_eq!(line(&table, "write")[2], "500", "{table}");
        assert!(table.contains("counts once"), "{table}");
        let document = report::document(&run);
        assert_eq!(document.cells[0].iops, Some(10_000.0));
        assert_eq!(document.cells[0].visits[0].bytes, Some(20_000 * 8192));
    }
}

#[test]
fn among_reads_the_writes_of_updates_are_halves() {
    let suite = |other: &str| {
        format!(
            "schema = 1\nname = \"s\"\n[[phase]]\nname = \"p\"\ntime = \"1s\"\nblock_size = \"8KiB\"\n\
             classes = [{{ weight = 1, operation = \"update\" }}, {{ weight = 9, operation = \
             \"{other}\" }}]\n[[phase.stream]]\nname = \"main\"\n"
        )
    };
    let rate = |other: &str, reads: u64, writes: u64| {
        let ops = vec![sample::op("read", reads, 8192), sample::op("write", writes, 8192)];
        let table = table::grid(&of_one_phase(vec![("main", "mixed", ops)], &suite(other)));
        line(&table, "mixed")[1].to_owned()
    };
    // bonnie++'s seeks: a tenth of 8192.
    assert_eq!(rate("read", 8192, 819), "4096");
    assert_eq!(rate("write", 819, 8192), "4096");
    // A mix of reads and writes has no halves.
    let text = suite("read").replace("update", "write");
    let ops = vec![sample::op("read", 8192, 8192), sample::op("write", 819, 8192)];
    let table = table::grid(&of_one_phase(vec![("main", "mixed", ops)], &text));
    assert_eq!(line(&table, "mixed")[1], "4506");
}

#[test]
fn a_flush_has_a_line_of_its_own() {
    let mut flush = sample::op("fsync", 1_000, 0);
    flush.latency_ns_sum = 1_500_000 * 1_000;
    let ops = vec![sample::op("write", 1_000, 8192), flush];
    let table = table::grid(&of_one_phase(vec![("log", "write", ops)], ""));
    assert_eq!(line(&table, "write")[1..4], ["500", "3.91", "500"], "{table}");
    // Rate, no bytes, and the flush's own latency.
    assert_eq!(line(&table, "fsync")[1..4], ["500", "-", "1500"], "{table}");
    assert!(table.contains("a write that is flushed takes both"), "{table}");
    assert!(!table.contains("operation by operation"), "{table}");
}

#[test]
fn it_is_said_what_a_rate_is() {
    assert!(table::grid(&sample::rich()).contains("\nrates: "));
    let one = of_one_phase(vec![("main", "read", vec![sample::op("read", 20_000, 8192)])], "");
    assert!(table::grid(&one).contains("\nrates: what completed in a visit, by its time\n"));
    let mut two = one.clone();
    two.visits.push(record::VisitRecord { repeat: 1, order: 1, ..one.visits[0].clone() });
    let text = table::grid(&two);
    assert!(text.contains("geometric mean of a cell's visits"), "{text}");
    let layout = table::layout("ioping").unwrap().print(&two).unwrap();
    assert!(layout.contains("(Up to 2 visits to a cell: "), "{layout}");
}

#[test]
fn names_of_axes_are_broken_and_not_cut() {
    let mut run = sample::rich();
    for cell in run.cells.iter_mut().filter(|cell| cell.phase == "read") {
        for field in ["pages.queue_depth", "log.access.random_share"] {
            cell.coordinates.push((field.into(), "8".into()));
        }
    }
    let table = table::grid(&run);
    let heads: Vec<&str> = table.lines().skip_while(|line| *line != "read").take(5).collect();
    for piece in ["pages.", "queue_", "depth", "log.", "access.", "random_", "share"] {
        assert!(heads.iter().any(|line| line.contains(piece)), "{piece} in {heads:?}");
    }
    assert!(!heads.concat().contains('~'), "{table}");
}

#[test]
fn each_stream_has_its_own_interval_and_marks() {
    let mut run = sample::rich();
    let plans = vec![
        sample::stream("log", "write", Some(8192), 1),
        sample::stream("reads", "read", Some(8192), 8),
    ];
    run.cells = vec![sample::cell(0, "oltp", &[], plans)];
    let visit = |(order, log): (u32, u64)| {
        let log = sample::record("log", vec![sample::op("write", log, 8192)]);
        let reads = sample::op("read", 200_000 + u64::from(order) * 100, 8192);
        let reads = sample::record("reads", vec![reads]);
        let made = sample::visit(0, order, 2_000_000_000, vec![log, reads]);
        record::VisitRecord { repeat: order, ..made }
    };
    run.visits = (0..).zip([4_000, 4_020, 40, 3_980, 4_010]).map(visit).collect();
    let grid = table::grid(&run);
    let line = |name: &str| grid.lines().find(|line| line.starts_with(name)).unwrap();
    // Far apart: low to high, and no share of the rate.
    let ends = line("log").split_whitespace().find_map(|word| word.split_once('-'));
    let ends = ends.map(|(low, high)| (low.parse().unwrap_or(0.0), high.parse().unwrap_or(0.0)));
    let (low, high): (f64, f64) = ends.unwrap_or_else(|| panic!("{grid}"));
    assert!(0.0 < low && low * 2.0 < high, "{grid}");
    let flat = grid.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("95 % interval (over 50 %: its bounds, in 1/s)"), "{grid}");
    assert!(line("reads").contains(" 0.0"), "{grid}");
    // An outlier; of both, nothing known of caches.
    let marks = |name: &str| line(name).split_whitespace().last().unwrap().split(',').count();
    assert_eq!((marks("log"), marks("reads")), (2, 1), "{grid}");
    assert!(grid.contains("oltp · log: 20.0 against a median of 2 K IOPS"), "{grid}");
}

#[test]
fn reads_and_writes_have_a_device_ratio_each() {
    // 100 MiB read out of a cache and 100 MiB written to the device are no ratio of one half.
    let mut run = sample::rich();
    run.cells.retain(|cell| cell.phase == "read");
    let visit = run.visits.iter_mut().find(|v| !v.ledger.is_empty() && v.cell == 2).unwrap();
    let asked = visit.streams[0].ops[0].bytes;
    let mut writes = visit.streams[0].ops[0].clone();
    writes.op = "write".to_owned();
    visit.streams[0].ops.push(writes);
    for entry in visit.ledger.iter_mut().filter(|entry| entry.depth == 0) {
        (entry.read_bytes, entry.write_bytes) = (0, asked);
    }
    let order = visit.order;
    run.visits.retain(|visit| visit.cell != 2 || visit.order == order);
    let grid = table::grid(&run);
    assert!(grid.contains(" rd/wr"), "{grid}");
    let line = grid.lines().find(|line| line.starts_with("4KiB        1 ")).unwrap();
    let told = line.split_whitespace().any(|cell| cell == "0/1" || cell == "0/1.00");
    assert!(told, "{line}");
}

#[test]
fn a_listing() {
    let summary = |id: &str, state, live| RunSummary {
        id: id.into(),
        suite: "bm-flash".into(),
        target: "/ssd/\x1b[31mtest.dat".into(),
        imported: None,
        started_unix_ns: Some(1_235_088_000_000_000_000),
        state,
        live,
        visits_made: 3,
        visits_planned: 84,
        warnings: 2,
        part: None,
    };
    let listed = |id, state, live| {
        let mut run = sample::rich();
        (run.header.state, run.header.visits_planned) = (state, 84);
        table::Listed::new(summary(id, state, live), &run)
    };
    let runs = [
        listed("r1", RunState::Complete, false),
        listed("r2", RunState::Running, true),
        listed("r10", RunState::Killed, false),
        listed("r11", RunState::Interrupted, true),
    ];
    assert_eq!(
        table::list(&runs),
        "run  started (UTC)        state        visits  warnings  suite     target
r1   2009-02-20 00:00:00  complete       3/84         2  bm-flash  /ssd/\\u{1b}[31mtest.dat
r2   2009-02-20 00:00:00  running        3/84         2  bm-flash  /ssd/\\u{1b}[31mtest.dat
r10  2009-02-20 00:00:00  killed         3/84         2  bm-flash  /ssd/\\u{1b}[31mtest.dat
r11  2009-02-20 00:00:00  interrupted    3/84         2  bm-flash  /ssd/\\u{1b}[31mtest.dat
"
    );
    assert_eq!(table::list(&[]), "no runs\n");
}

#[test]
fn what_the_device_moved_in_the_ramp_is_held_against_what_the_ramp_asked() {
    let shown = |ramp: u64| {
        let mut run = sample::rich();
        run.visits[1].ledger[0].read_bytes = 40_000 * 4096;
        let visit = &mut run.visits[0];
        visit.streams[0].ramp_requests = ramp;
        visit.ledger[0].read_bytes = (20_000 + ramp) * 4096;
        table::grid(&run)
    };
    assert_eq!(shown(5_000), shown(0));
}

#[test]
fn what_is_alike_in_every_visit_of_a_stream_is_a_warning_once_and_a_mark_with_a_sentence() {
    let op = || sample::op("write", 100, 8192);
    let mut run = of_one_phase(vec![("log", "write", vec![op()]), ("w", "write", vec![op()])], "");
    let one = run.visits[0].clone();
    run.visits = (0..5u32)
        .map(|order| {
            let mut visit = record::VisitRecord { order, repeat: order, ..one.clone() };
            let left = u64::from(order) + 10;
            visit.streams[1].backlog = left;
            visit.warnings = vec![
                record::Warning::new("backlog", format!("stream `w`, worker 0: {left} requests")),
                record::Warning::new("overloaded", format!("stream `w`: 400 offered, {left} back")),
            ];
            visit
        })
        .collect();
    let grid = table::grid(&run);
    let flat = grid.split_whitespace().collect::<Vec<_>>().join(" ");
    let sum = "backlog: p, stream `w`: 60 requests that were due had not been issued when 5 visits \
               ended (14 at most in one)";
    assert!(flat.contains(sum), "{grid}");
    assert!(flat.contains("overloaded: p, stream `w`: 400 offered, 10 back (5 times)"), "{grid}");
    assert_eq!(flat.matches("stream `w`").count(), 2, "{grid}");
    assert!(flat.contains("overloaded: more was offered than the target takes"), "{grid}");
    assert!(flat.contains("backlog: open loop: some of what was due"), "{grid}");
}
