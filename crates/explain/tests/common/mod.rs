//! Records of made-up runs.

use record::{
    Bitmap, Machine, OpRecord, Purpose, RunHeader, RunState, Series, StreamRecord, TargetKind,
    TargetRecord, VisitEnd, VisitRecord,
};
use stats::LatencyHistogram;
use units::Nanos;

/// Of a whole run on a file; who needs another changes it.
pub fn header() -> RunHeader {
    RunHeader {
        id: "r7".into(),
        version: record::VERSION,
        suite: "bm-flash".into(),
        suite_text: "name = \"bm-flash\"\n".into(),
        target: TargetRecord {
            given: "/ssd/test.dat".into(),
            resolved: "/ssd/test.dat".into(),
            kind: TargetKind::File,
            size_bytes: 4 << 30,
            files: 1,
            file_system: Some("ext4".into()),
            mount: Some("/ssd (rw,relatime)".into()),
            devices: vec!["sda".into()],
            direct_alignment: Some(512),
            link: None,
            cache_bytes: None,
            model: None,
            remarks: vec![],
        },
        seed: 41,
        command_line: vec!["plimsoll".into()],
        program: "0.1.0".into(),
        stack: None,
        machine: Machine {
            host: "db1".into(),
            kernel: "6.1.0".into(),
            architecture: "x86_64".into(),
            processor: "Some CPU".into(),
            processors: 8,
            memory_bytes: 48 << 30,
        },
        started_unix_ns: 1_235_088_000_000_000_000,
        state: RunState::Complete,
        visits_planned: 0,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: vec![],
    }
}

/// Two seconds of requests of 100 us.
pub fn visit(cell: u32, repeat: u32, rate: f64) -> VisitRecord {
    let requests = (rate * 2.0).round() as u64;
    let mut latency = LatencyHistogram::new();
    (0..100).for_each(|_| latency.record(Nanos::new(100_000)));
    let mut completions = Bitmap::zeros(2000);
    (0..2000).for_each(|ms| completions.set(ms));
    let op = OpRecord {
        op: "read".into(),
        requests,
        bytes: requests * 4096,
        errors: vec![],
        short: 0,
        latency,
        latency_ns_min: 100_000,
        latency_ns_max: 100_000,
        latency_ns_sum: u128::from(requests) * 100_000,
        series: Series::default(),
        slow: vec![],
        slow_dropped: 0,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    };
    VisitRecord {
        cell,
        repeat,
        order: 0,
        started_unix_ns: 0,
        elapsed_ns: 2_000_000_000,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: vec![StreamRecord {
            name: "read".into(),
            backend: record::BackendRecord::default(),
            ops: vec![op],
            workers: vec![],
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
