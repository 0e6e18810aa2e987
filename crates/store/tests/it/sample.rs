//! A run in which every field says something.

use record::{
    BackendRecord, Bitmap, Blocks, CellRecord, Counter, Gap, Imported, LedgerEntry, Link, Machine,
    OfStudy, OpRecord, PartOf, Purpose, Reported, ReportedLatency, Run, RunHeader, RunState,
    Series, SeriesRow, SlowRequest, StreamPlan, StreamRecord, TargetKind, TargetRecord, VisitEnd,
    VisitRecord, Warning, WorkerRecord,
};
use stats::LatencyHistogram;
use units::Nanos;

pub fn header() -> RunHeader {
    RunHeader {
        id: String::new(),
        version: record::VERSION,
        suite: "bm-flash".into(),
        suite_text: "name = \"bm-flash\"\n".into(),
        target: TargetRecord {
            given: "/ssd/tést.dat".into(),
            resolved: "/mnt/ssd/tést.dat".into(),
            kind: TargetKind::BlockDevice,
            size_bytes: u64::MAX,
            files: 3,
            file_system: Some("ext4".into()),
            mount: Some("/mnt/ssd rw,noatime".into()),
            devices: vec!["dm-0".into(), "sda".into()],
            direct_alignment: Some(512),
            link: None,
            cache_bytes: None,
            model: None,
            remarks: vec!["a \"remark\"".into()],
        },
        seed: u64::MAX - 1,
        command_line: vec!["plimsoll".into(), "run".into(), "bm flash".into()],
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
        // As one is read that no process holds.
        state: RunState::Killed,
        visits_planned: 4,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: vec![Warning::new("tmpfs", "the target is memory")],
    }
}

pub fn cells() -> Vec<CellRecord> {
    let stream = |name: &str, op: &str, block_bytes| StreamPlan {
        name: name.into(),
        op: op.into(),
        block_bytes,
        threads: 10,
        queue_depth: 4,
    };
    vec![
        CellRecord {
            index: 0,
            phase: "read".into(),
            coordinates: vec![
                ("block_size".into(), "4KiB".into()),
                ("threads".into(), "10".into()),
            ],
            streams: vec![stream("main", "read", Some(4096)), stream("side", "mixed", None)],
            impossible: None,
        },
        CellRecord {
            index: 1,
            phase: "write".into(),
            coordinates: vec![],
            streams: vec![],
            impossible: Some("512-byte direct I/O on sectors of 4096 bytes".into()),
        },
    ]
}

fn op(name: &str, scale: u64) -> OpRecord {
    let mut latency = LatencyHistogram::new();
    let latencies: Vec<u64> = (1..=100).map(|k| k * 1_000 * scale).collect();
    latencies.iter().for_each(|&ns| latency.record(Nanos::new(ns)));
    latency.record(Nanos::secs(1200));
    let row = SeriesRow { requests: 50, bytes: 204_800, tail: vec![(3, 40), (90, 10)] };
    OpRecord {
        op: name.into(),
        requests: 101,
        bytes: 413_696,
        errors: vec![(5, 2), (28, 1)],
        short: 1,
        latency,
        latency_ns_min: latencies[0],
        latency_ns_max: 1_200_000_000_000,
        latency_ns_sum: u128::from(u64::MAX) * 5 + u128::from(scale),
        series: Series {
            interval_ns: 100_000_000,
            rows: vec![row.clone(), SeriesRow::default(), row],
        },
        slow: vec![SlowRequest { at_ns: 7, latency_ns: 1 << 40, worker: 2, offset: 8192 }],
        slow_dropped: 3,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    }
}

pub fn visit(order: u32) -> VisitRecord {
    let mut completions = Bitmap::zeros(10_000);
    (0..9_000).filter(|ms| ms % 100 != 0).for_each(|ms| completions.set(ms));
    let worker = WorkerRecord {
        requests: 101,
        cpu_user_ns: Some(5_000),
        cpu_system_ns: Some(9_000),
        switches_voluntary: Some(12),
        switches_involuntary: None,
        gaps: vec![Gap { start_ns: 5, length_ns: 60_000_000 }],
        batch_max: 16,
        stamp_error_ns_max: 700,
        closing_sync: None,
    };
    let stream = StreamRecord {
        name: "main".into(),
        backend: BackendRecord {
            name: "io_uring".into(),
            flags: vec!["registered-buffers".into()],
            reasons: vec!["kernel 6.1".into()],
            direct: true,
        },
        ops: vec![op("read", 1), op("write", 7)],
        workers: vec![worker.clone(), WorkerRecord { cpu_user_ns: None, ..worker }],
        ramp_requests: 8,
        backlog: 2,
    };
    VisitRecord {
        cell: 0,
        repeat: order,
        order,
        started_unix_ns: 1_235_088_001_000_000_000 + i64::from(order),
        elapsed_ns: 10_000_123_456,
        load_ns: None,
        end: VisitEnd::Hanging,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: vec![stream.clone(), StreamRecord { name: "side".into(), ..stream }],
        completions,
        counters: Vec::new(),
        ledger: vec![LedgerEntry {
            device: "sda".into(),
            depth: 1,
            reads: 2,
            read_bytes: 3,
            writes: 4,
            write_bytes: 5,
            discards: 6,
            discard_bytes: 7,
            flushes: 8,
            queue_ms: 9,
            in_flight_end: 10,
        }],
        host_stalls: vec![Gap { start_ns: 1, length_ns: 2 }],
        warnings: vec![Warning::new("hanging", "1 request never came back")],
    }
}

pub fn run(id: &str) -> Run {
    Run {
        header: RunHeader { id: id.into(), ..header() },
        cells: cells(),
        visits: vec![visit(0), visit(1)],
    }
}

/// With all that the sixth schema and later ones can hold.
pub fn latest() -> Run {
    let mut run = later();
    if let Some(blocks) = &mut run.header.blocks {
        (blocks.controls, blocks.is_control) = (vec![9, 19], true);
    }
    run.header.part = Some(PartOf {
        group: "1f2e3d4c".into(),
        list: "one-dvd-per-second".into(),
        number: 3,
        of: 8,
        study: Some(OfStudy {
            state: None,
            stack: 2,
            levels: vec![("file_system".into(), "xfs".into()), ("legs".into(), "2".into())],
            again: true,
        }),
    });
    let mut other = run.header.target.clone();
    other.given = "/ssd/other.dat".into();
    run.header.targets = vec![run.header.target.clone(), other];
    run
}

/// With what schema 19 added.
pub fn with_counters() -> Run {
    let mut run = with_load();
    let counter = Counter { name: "log flushes".into(), unit: String::new(), value: 3 };
    run.visits.iter_mut().for_each(|visit| visit.counters = vec![counter.clone()]);
    run
}

/// With what schema 14 added.
pub fn with_load() -> Run {
    let mut run = with_model();
    for visit in &mut run.visits {
        visit.load_ns = Some(visit.elapsed_ns - 7);
        let ops = visit.streams.iter_mut().flat_map(|stream| &mut stream.ops);
        ops.for_each(|op| (op.late_requests, op.late_bytes) = (2, 8192));
    }
    run
}

/// With what schema 12 added.
pub fn with_model() -> Run {
    let mut run = with_stack();
    run.header.target.model = Some("schema = 1\nname = \"d\u{ef}sk\"\n".into());
    run
}

/// With what schema 11 added.
pub fn with_stack() -> Run {
    use record::stack::{
        Disk, Layer, Md, Queue, STACK_VERSION, Setting, StackHost, StackTarget, StackTree,
        Throttle, Unseen, What, Wire,
    };
    let layer = |id: &str, below: &[&str], what: What| Layer {
        id: id.into(),
        below: below.iter().map(|&id| id.to_owned()).collect(),
        size_bytes: Some(u64::MAX),
        what,
        queue: Some(Queue { alignment_offset_bytes: Some(-1), ..Queue::default() }),
    };
    let link = Link { name: "SATA 6.0 Gb/s".into(), bytes_per_second: 600_000_000 };
    let disk = Disk {
        serial: Some("#0123456789abcdef".into()),
        wire: Some(Wire { now: link.clone(), capable: Some(link) }),
        ..Disk::default()
    };
    let mut run = latest();
    run.header.stack = Some(StackTree {
        version: STACK_VERSION,
        targets: vec![StackTarget {
            given: "/ssd".into(),
            resolved: "/mnt/ssd".into(),
            role: None,
            on: vec!["md0".into()],
        }],
        layers: vec![
            layer("md0", &["sda"], What::Md(Md { level: "raid1".into(), ..Md::default() })),
            layer("sda", &[], What::Disk(disk)),
        ],
        host: StackHost {
            settings: vec![Setting { name: "vm.swappiness".into(), value: "60".into() }],
            ..StackHost::default()
        },
        throttles: vec![Throttle {
            group: "/".into(),
            device: "sda".into(),
            of: "reads".into(),
            per_second: u64::MAX,
        }],
        unseen: vec![Unseen { what: "a".into(), why: "b".into() }],
    });
    run
}

/// With what schema 2 added.
pub fn later() -> Run {
    let mut run = run("r1");
    run.header.blocks = Some(Blocks {
        group: "g17".into(),
        side: "B".into(),
        looks: 2,
        controls: vec![],
        is_control: false,
    });
    run.header.target.cache_bytes = Some(4 << 30);
    run.header.target.link =
        Some(Link { name: "PCIe 3.0 x4 of nvme0".into(), bytes_per_second: 3_938_461_538 });
    let visit = &mut run.visits[1];
    (visit.resident_before, visit.resident_after) = (Some(3), Some(1000));
    (visit.purpose, visit.ramp_ns) = (Purpose::Pilot, 500_000_001);
    (visit.waited_ns, visit.quiet) = (1_000_000_007, Some(false));
    run
}

/// As another tool's output comes in: much is not known, and what is known is not counted by us.
pub fn imported(id: &str) -> Run {
    let mut run = run(id);
    run.header.imported = Some(Imported {
        tool: "fio".into(),
        version: None,
        file: "./résultat, \"2\".json".into(),
        bytes: 22_015,
        xxh3: "00c0ffee00c0ffee".into(),
        settings: vec![("rw".into(), "randread".into()), ("odd \u{1b}".into(), String::new())],
        remarks: vec!["Percentiles are of completion latency.".into()],
    });
    run.header.state = RunState::Complete;
    run.header.started_unix_ns = 0;
    run.header.target.kind = TargetKind::Unknown;
    let everything = Reported {
        requests: Some(u64::MAX),
        bytes: Some(413_696),
        iops: Some(2_172.354_108),
        bytes_per_s: Some(0.1 + 0.2),
        cpu_percent: Some(103.0),
        latency: ReportedLatency {
            min: Some(0),
            mean: Some(1.0 / 3.0),
            max: Some(1 << 62),
            sd: Some(5e-324),
            quantiles: vec![(99.0 / 100.0, 17), (99.99 / 100.0, 1 << 40), (0.1 + 0.2, 3)],
            buckets: vec![(0, 1), (1 << 63, u64::MAX)],
        },
    };
    for visit in &mut run.visits {
        for stream in &mut visit.streams {
            stream.ops[0].reported = Some(everything.clone());
            stream.ops[1].reported = Some(Reported::default());
        }
    }
    run
}
