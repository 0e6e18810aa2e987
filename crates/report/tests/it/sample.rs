//! Planted runs.

use record::{
    BackendRecord, Bitmap, CellRecord, Gap, LedgerEntry, Machine, OpRecord, Purpose, Run,
    RunHeader, RunState, Series, SeriesRow, SlowRequest, StreamPlan, StreamRecord, TargetKind,
    TargetRecord, VisitEnd, VisitRecord, Warning, WorkerRecord,
};
use stats::LatencyHistogram;
use units::Nanos;

pub fn header(suite: &str) -> RunHeader {
    RunHeader {
        id: "r17".into(),
        version: record::VERSION,
        suite: suite.into(),
        suite_text: format!("name = \"{suite}\"\n"),
        target: TargetRecord {
            given: "/ssd/test.dat".into(),
            resolved: "/ssd/test.dat".into(),
            kind: TargetKind::File,
            size_bytes: 4 << 30,
            files: 1,
            file_system: Some("ext4".into()),
            mount: None,
            devices: vec!["sda".into()],
            direct_alignment: Some(512),
            link: None,
            cache_bytes: None,
            model: None,
            remarks: vec![],
        },
        seed: 7,
        command_line: vec!["plimsoll".into(), "run".into(), suite.into()],
        program: "0.1.0".into(),
        stack: None,
        machine: Machine {
            host: "db1".into(),
            kernel: "6.1.0".into(),
            architecture: "x86_64".into(),
            processor: "Some CPU @ 3 GHz".into(),
            processors: 8,
            memory_bytes: 48 << 30,
        },
        started_unix_ns: 1_235_088_000_000_000_000,
        state: RunState::Complete,
        visits_planned: 2,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: vec![],
    }
}

pub fn stream(name: &str, op: &str, block_bytes: Option<u64>, threads: u32) -> StreamPlan {
    StreamPlan { name: name.into(), op: op.into(), block_bytes, threads, queue_depth: 1 }
}

pub fn cell(
    index: u32,
    phase: &str,
    coordinates: &[(&str, &str)],
    streams: Vec<StreamPlan>,
) -> CellRecord {
    CellRecord {
        index,
        phase: phase.into(),
        coordinates: coordinates.iter().map(|&(f, v)| (f.into(), v.into())).collect(),
        streams,
        impossible: None,
    }
}

/// `requests` of `block` bytes with latencies of 1, 2, ... 1000 us over and over.
pub fn op(name: &str, requests: u64, block: u64) -> OpRecord {
    let mut latency = LatencyHistogram::new();
    let latencies = (0..requests).map(|k| (k % 1000 + 1) * 1000);
    latencies.clone().for_each(|ns| latency.record(Nanos::new(ns)));
    let row = SeriesRow {
        requests: requests / 2,
        bytes: requests / 2 * block,
        tail: vec![(40, 5), (100, 1000), (104, 10)],
    };
    OpRecord {
        op: name.into(),
        requests,
        bytes: requests * block,
        errors: vec![],
        short: 0,
        latency,
        latency_ns_min: latencies.clone().min().unwrap_or(0),
        latency_ns_max: latencies.clone().max().unwrap_or(0),
        latency_ns_sum: latencies.map(u128::from).sum(),
        series: Series { interval_ns: 1_000_000_000, rows: vec![row.clone(), row] },
        slow: vec![],
        slow_dropped: 0,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    }
}

pub fn record(name: &str, ops: Vec<OpRecord>) -> StreamRecord {
    let requests = ops.iter().map(|op| op.requests).sum();
    StreamRecord {
        name: name.into(),
        backend: BackendRecord {
            name: "io_uring".into(),
            flags: vec!["registered-buffers".into()],
            reasons: vec!["kernel 6.1".into()],
            direct: true,
        },
        ops,
        workers: vec![WorkerRecord {
            requests,
            cpu_user_ns: Some(requests * 200),
            cpu_system_ns: Some(requests * 1500),
            switches_voluntary: Some(12),
            switches_involuntary: Some(1),
            gaps: vec![],
            batch_max: 4,
            stamp_error_ns_max: 800,
            closing_sync: None,
        }],
        ramp_requests: 0,
        backlog: 0,
    }
}

pub fn visit(cell: u32, order: u32, elapsed_ns: u64, streams: Vec<StreamRecord>) -> VisitRecord {
    VisitRecord {
        cell,
        repeat: 0,
        order,
        started_unix_ns: 1_235_088_001_000_000_000,
        elapsed_ns,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams,
        completions: Bitmap::zeros(0),
        counters: Vec::new(),
        ledger: vec![],
        host_stalls: vec![],
        warnings: vec![],
    }
}

pub fn ledger(read_bytes: u64, write_bytes: u64) -> LedgerEntry {
    LedgerEntry { device: "sda".into(), read_bytes, write_bytes, ..LedgerEntry::default() }
}

/// Something of everything: a grid of two axes with a blank, an impossible, an interrupted, a
/// failing and a repeated cell; a phase of mixed streams.
pub fn rich() -> Run {
    let mut header = header("mixed-bag");
    header.visits_planned = 9;
    header.state = RunState::Interrupted;
    header.warnings = vec![Warning::new("tmpfs", "the target is memory\x1b[31m, no device")];
    header.target.given = "/ssd/\x1b]0;owned\x07test.dat".into();
    header.target.remarks = vec!["on a copy-on-write file system".into()];
    let axes = |b, t| [("block_size", b), ("threads", t)];
    let plan = |block, threads| vec![stream("main", "read", Some(block), threads)];
    let mut cells = vec![
        cell(0, "read", &axes("512B", "1"), plan(512, 1)),
        cell(1, "read", &axes("512B", "10"), plan(512, 10)),
        cell(2, "read", &axes("4KiB", "1"), plan(4096, 1)),
        cell(3, "read", &axes("4KiB", "10"), plan(4096, 10)),
        cell(
            4,
            "oltp",
            &[],
            vec![stream("pages", "mixed", Some(8192), 8), stream("log", "write", Some(512), 1)],
        ),
    ];
    cells[0].impossible = Some("512-byte direct I/O on a device of 4096-byte sectors".into());
    let mut first =
        visit(2, 0, 2_000_000_000, vec![record("main", vec![op("read", 20_000, 4096)])]);
    first.ledger = vec![ledger(20_000 * 4096, 0), LedgerEntry { depth: 1, ..ledger(9, 9) }];
    let mut second =
        visit(2, 1, 1_000_000_000, vec![record("main", vec![op("read", 40_000, 4096)])]);
    second.ledger = vec![ledger(20_000 * 4096, 4096)];
    let mut cut = visit(2, 2, 500_000_000, vec![record("main", vec![op("read", 1, 4096)])]);
    cut.end = VisitEnd::Interrupted;
    let mut bad = op("read", 15, 4096);
    bad.errors = vec![(5, 3), (28, 1)];
    bad.short = 2;
    bad.slow = vec![SlowRequest { at_ns: 5, latency_ns: 200_000_000, worker: 1, offset: 4096 }];
    let mut failing = visit(3, 3, 1_500_000_000, vec![record("main", vec![bad])]);
    failing.end = VisitEnd::Hanging;
    failing.warnings = vec![
        Warning::new("hanging", "1 request never came back"),
        Warning::new("buffered-fallback", "direct asked, buffered got"),
    ];
    failing.host_stalls = vec![Gap { start_ns: 3, length_ns: 60_000_000 }];
    failing.completions = Bitmap::zeros(1_500);
    (0..1_500).filter(|ms| !(200..300).contains(ms)).for_each(|ms| failing.completions.set(ms));
    let mut pages = record(
        "pages",
        vec![op("read", 6_000, 8192), op("write", 3_000, 8192), op("fsync", 100, 0)],
    );
    pages.workers[0].cpu_user_ns = None;
    let log = record("log", vec![op("write", 2_000, 512)]);
    let both = visit(4, 4, 1_000_000_000, vec![pages, log]);
    Run { header, cells, visits: vec![first, second, cut, failing, both] }
}
