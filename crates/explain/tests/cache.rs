//! Caches, from made-up records whose truth is known.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use explain::View;
use explain::cache::{Caches, Verdict, Witness, caches};
use record::{
    BackendRecord, Bitmap, CellRecord, LedgerEntry, Link, Machine, OpRecord, Purpose, Run,
    RunHeader, RunState, Series, SeriesRow, StreamPlan, StreamRecord, TargetKind, TargetRecord,
    VisitEnd, VisitRecord, Warning,
};
use stats::LatencyHistogram;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A run of a suite with a visit to each cell; what the devices did is for the test to say.
struct Bench {
    run: Run,
}

impl Bench {
    fn new(suite_text: &str) -> Self {
        let source = suite::parse(suite_text, "test.toml").unwrap();
        let checked = suite::check(&source, &suite::CheckContext::default()).unwrap();
        let cells: Vec<CellRecord> = checked
            .phases
            .iter()
            .flat_map(|phase| phase.cells.iter().map(move |cell| (phase, cell)))
            .zip(0..)
            .map(|((phase, cell), index)| CellRecord {
                index,
                phase: phase.name.clone(),
                coordinates: phase
                    .axes
                    .iter()
                    .zip(&cell.coordinates)
                    .map(|(axis, &at)| (axis.field.clone(), axis.values[at].clone()))
                    .collect(),
                streams: cell.streams.iter().map(stream_plan).collect(),
                impossible: None,
            })
            .collect();
        let header = header(suite_text, checked.files.size.get());
        let mut bench = Self { run: Run { header, cells, visits: Vec::new() } };
        let plans: Vec<(u32, StreamPlan, bool)> = bench
            .run
            .cells
            .iter()
            .zip(checked.cells())
            .map(|(record, cell)| (record.index, record.streams[0].clone(), cell.streams[0].direct))
            .collect();
        for (cell, plan, direct) in plans {
            let visit = visit(cell, bench.run.visits.len() as u32, &plan, direct);
            bench.run.visits.push(visit);
        }
        bench
    }

    /// One random read cell over a file of 1 GiB.
    fn read(direct: bool) -> Self {
        Self::new(&format!(
            "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"read\"\n\
             time = \"10s\"\ndirect = {direct}\n"
        ))
    }

    fn write(direct: bool) -> Self {
        Self::new(&format!(
            "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"write\"\n\
             operation = \"write\"\ntime = \"10s\"\ndirect = {direct}\n"
        ))
    }

    /// The device on top moved these shares of the 100 MiB that each visit asks for.
    fn moved(mut self, read: f64, written: f64) -> Self {
        for visit in &mut self.run.visits {
            visit.ledger = vec![entry("vda", 0, read, written)];
        }
        self.run.header.target.devices = vec!["vda".to_owned()];
        self
    }

    fn caches(&self) -> Caches {
        let found = caches(&View::new(&self.run));
        // Whatever is found can be said and stored.
        assert!(found.cells.is_empty() || !found.findings().is_empty());
        serde_json::to_string(&found).unwrap();
        found
    }

    fn verdict(&self) -> Verdict {
        self.caches().cells[0].verdict.clone()
    }
}

/// What is said of findings.
fn texts(found: &[finding::Finding]) -> String {
    finding::texts(found).join("\n")
}

fn entry(device: &str, depth: u32, read: f64, written: f64) -> LedgerEntry {
    let bytes = |share: f64| (share * 100.0 * MIB as f64) as u64;
    LedgerEntry {
        device: device.to_owned(),
        depth,
        read_bytes: bytes(read),
        write_bytes: bytes(written),
        ..LedgerEntry::default()
    }
}

fn stream_plan(stream: &suite::model::Stream) -> StreamPlan {
    StreamPlan {
        name: stream.name.clone(),
        op: stream.mix.classes[0].op.name().to_owned(),
        block_bytes: stream.mix.block_size().map(units::Bytes::get),
        threads: stream.threads,
        queue_depth: stream.queue_depth,
    }
}

fn header(suite_text: &str, size_bytes: u64) -> RunHeader {
    RunHeader {
        id: "r1".to_owned(),
        version: record::VERSION,
        suite: "t".to_owned(),
        suite_text: suite_text.to_owned(),
        target: TargetRecord {
            given: "/data/x".to_owned(),
            resolved: "/data/x".to_owned(),
            kind: TargetKind::File,
            size_bytes,
            files: 1,
            file_system: Some("ext4".to_owned()),
            mount: None,
            devices: Vec::new(),
            direct_alignment: Some(512),
            link: None,
            cache_bytes: None,
            model: None,
            remarks: Vec::new(),
        },
        seed: 7,
        command_line: Vec::new(),
        program: "0".to_owned(),
        stack: None,
        machine: Machine {
            host: "h".to_owned(),
            kernel: "6".to_owned(),
            architecture: "x86_64".to_owned(),
            processor: "p".to_owned(),
            processors: 4,
            memory_bytes: 16 * GIB,
        },
        started_unix_ns: 0,
        state: RunState::Complete,
        visits_planned: 1,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: Vec::new(),
    }
}

/// 100 MiB in 10 s by 4 KiB, each request 390 us.
fn visit(cell: u32, order: u32, plan: &StreamPlan, direct: bool) -> VisitRecord {
    let requests = 25_600;
    let mut latency = LatencyHistogram::new();
    for _ in 0..requests {
        latency.record(units::Nanos::micros(390));
    }
    let rows = vec![SeriesRow { requests: 256, bytes: MIB, tail: Vec::new() }; 100];
    let op = OpRecord {
        op: plan.op.clone(),
        requests,
        bytes: 100 * MIB,
        errors: Vec::new(),
        short: 0,
        latency,
        latency_ns_min: 390_000,
        latency_ns_max: 390_000,
        latency_ns_sum: 390_000 * u128::from(requests),
        series: Series { interval_ns: 100_000_000, rows },
        slow: Vec::new(),
        slow_dropped: 0,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    };
    let stream = StreamRecord {
        name: plan.name.clone(),
        backend: BackendRecord {
            name: "blocking".to_owned(),
            flags: Vec::new(),
            reasons: vec!["queue depth 1".to_owned()],
            direct,
        },
        ops: vec![op],
        workers: Vec::new(),
        ramp_requests: 0,
        backlog: 0,
    };
    VisitRecord {
        cell,
        repeat: 0,
        order,
        started_unix_ns: 0,
        elapsed_ns: 10_000_000_000,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: vec![stream],
        completions: Bitmap::default(),
        counters: Vec::new(),
        ledger: Vec::new(),
        host_stalls: Vec::new(),
        warnings: Vec::new(),
    }
}

#[test]
fn a_cache_on_one_side_is_compared_with_nothing() {
    use explain::compare::{Doubt, Terms, compare};
    let against = |a: f64, b: f64| {
        let (a, b) = (Bench::read(false).moved(a, 0.0), Bench::read(false).moved(b, 0.0));
        compare(&[View::new(&a.run), View::new(&b.run)], &Terms::default()).against.remove(0)
    };
    for (a, b) in [(1.0, 0.02), (0.02, 1.0), (0.5, 0.02)] {
        let found = against(a, b);
        assert!(!found.is_compared() && found.overall.ratio.is_none(), "{a} {b}");
        assert_eq!(found.cells[0].outcome.doubts, [Doubt::Cached], "{a} {b}");
        assert_eq!(found.cells[0].latency, None, "{a} {b}");
        assert!(found.headline().starts_with("Not comparable"), "{}", found.headline());
    }
    let alike = against(0.02, 0.02);
    assert!(alike.is_compared() && alike.headline().contains("of caches"), "{}", alike.headline());
    let devices = against(1.0, 1.0);
    assert!(devices.is_compared() && devices.cells[0].reference_cached.is_none());
}

#[test]
fn the_ledger_tells_device_from_cache() {
    let is = |read: f64, wanted: &str| {
        let said = texts(&Bench::read(true).moved(read, 0.0).caches().findings());
        assert!(said.contains(wanted), "{read}: {said}");
    };
    is(1.0, "from the device, as far as its counters tell: it moved 100 % of the bytes read.");
    is(0.96, "from the device");
    is(0.94, "partly cached: at least 6.0 % of the bytes read were answered above `vda`");
    is(0.06, "partly cached: at least 94 %");
    is(0.04, "cached: 96 % of the bytes read were answered above `vda`");
    is(1.5, "the device read 1.5 times what was asked for (150 MiB for 100 MiB)");
}

/// The device moved this share of what was read.
fn device(ratio: f64) -> Verdict {
    Verdict::Device { op: "read".to_owned(), ratio }
}

#[test]
fn a_cache_of_reads_is_not_hidden_behind_writes() {
    // 100 MiB read out of a cache and 100 MiB written: half of all bytes moved, none of the read.
    let mut bench = Bench::read(true).moved(0.0, 1.0);
    let visit = &mut bench.run.visits[0];
    let mut writes = visit.streams[0].ops[0].clone();
    writes.op = "write".to_owned();
    visit.streams[0].ops.push(writes);
    let moved = explain::cache::ledger::moved(visit, &[]);
    assert_eq!(moved.ratios(), (Some(0.0), Some(1.0)));
    let cell = &bench.caches().cells[0];
    let said = texts(&cell.findings());
    assert!(said.contains("cached: 100 % of the bytes read were answered above `vda`"), "{said}");
    assert!(said.contains("it moved 100 % of the bytes written"), "{said}");
    assert_eq!(cell.verdict.op(), Some("read"));
}

#[test]
fn what_is_said_of_reads_is_said_of_no_cell_that_writes() {
    let mut bench = Bench::new(
        "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"read\"\n\
         time = \"10s\"\n[[phase]]\nname = \"write\"\noperation = \"write\"\ntime = \"10s\"\n",
    )
    .moved(1.0, 0.0);
    bench.run.visits[1].ledger = vec![entry("vda", 0, 0.0, 1.0)];
    let said = texts(&bench.caches().findings());
    assert!(said.contains("1 of 2 cells (`read`): from the device"), "{said}");
    assert!(said.contains("1 of 2 cells (`write`): from the device"), "{said}");
    assert!(
        said.contains("100 % of the bytes read") && said.contains("100 % of the bytes written")
    );
}

#[test]
fn the_ramp_is_in_the_counters_and_not_in_the_figures() {
    let mut bench = Bench::read(true).moved(1.2, 0.0);
    bench.run.visits[0].streams[0].ramp_requests = 25_600 / 5;
    assert_eq!(bench.verdict(), device(1.0));
}

/// 5 % writes of 4 KiB, direct: so many measured and in the ramp, all of which the device moved but
/// `cached` of the reads and of the writes.
fn mixed(measured: [u64; 2], ramp: [u64; 2], cached: [f64; 2]) -> Bench {
    let mut bench = Bench::new(
        "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"mix\"\n\
         read_share = 0.95\ntime = \"10s\"\ndirect = true\n",
    )
    .moved(1.0, 1.0);
    let visit = &mut bench.run.visits[0];
    let stream = &mut visit.streams[0];
    let ops = ["read", "write"].into_iter().zip(measured).map(|(name, requests)| {
        let mut op = stream.ops[0].clone();
        (op.op, op.requests, op.bytes) = (name.to_owned(), requests, requests * 4096);
        op.latency_ns_sum = u128::from(requests) * 390_000;
        op
    });
    let ops: Vec<_> = ops.collect();
    stream.ops = ops;
    stream.ramp_requests = ramp[0] + ramp[1];
    let moved = |at: usize| ((measured[at] + ramp[at]) as f64 * (1.0 - cached[at])) as u64 * 4096;
    (visit.ledger[0].read_bytes, visit.ledger[0].write_bytes) = (moved(0), moved(1));
    bench
}

#[test]
fn chance_in_a_ramp_is_no_cache() {
    // 5 % of 11 000 in the ramp are 550 writes, +-23: here 3 of those few.
    let (measured, ramp) = ([9500, 500], [10_520, 480]);
    let bench = mixed(measured, ramp, [0.0, 0.0]);
    assert!(!bench.verdict().is_cached(), "{:?}", bench.verdict());
    assert_eq!(bench.verdict().mark(), None, "{:?}", bench.verdict());
    // One that chance does not make is found: its share is the least that it can be.
    for cached in [[0.0, 0.5], [0.3, 0.0], [0.99, 0.99]] {
        let found = mixed(measured, ramp, cached);
        assert!(found.verdict().is_cached(), "{cached:?}: {:?}", found.verdict());
    }
    // One that chance could make is neither told nor denied.
    let found = mixed(measured, ramp, [0.0, 0.08]).verdict();
    assert!(matches!(found, Verdict::Unknown { .. }), "{found:?}");
}

#[test]
fn no_witness_is_unknown_and_never_fine() {
    let bench = Bench::read(true);
    assert!(matches!(bench.verdict(), Verdict::Unknown { .. }));
    // Counters that never move do not count: overlays, iostats off on a kernel that hides it.
    let still = Bench::read(true).moved(0.0, 0.0);
    assert!(matches!(still.verdict(), Verdict::Unknown { .. }), "{:?}", still.verdict());
    // With a fill that they did count, zeros are a cache.
    let mut filled = Bench::read(false).moved(0.0, 0.0);
    let mut fill = filled.run.visits[0].clone();
    (fill.cell, fill.ledger) = (1, vec![entry("vda", 0, 0.0, 1.0)]);
    let cell = CellRecord { index: 1, phase: "fill".to_owned(), ..filled.run.cells[0].clone() };
    filled.run.cells.push(cell);
    filled.run.visits.insert(0, fill);
    assert_eq!(filled.verdict().mark().map(finding::Code::name), Some("cached"));
    // So they are where every page was there before.
    let mut resident = Bench::read(false).moved(0.0, 0.0);
    resident.run.visits[0].resident_before = Some(1000);
    assert_eq!(resident.verdict().mark().map(finding::Code::name), Some("cached"));
    // Nor is a device whose counters could not be read.
    let mut warned = Bench::read(true);
    let text = "counters of vda: the kernel does not count on it (queue/iostats is 0)";
    warned.run.header.warnings.push(Warning::new("ledger-unknown", text));
    let said = texts(&warned.caches().findings());
    assert!(said.contains("unknown whether a cache answered: counters of vda"), "{said}");
    assert!(said.contains("Unknown does not mean uncached"), "{said}");
    // Nor are a few requests.
    let mut few = Bench::read(true).moved(1.0, 0.0);
    few.run.visits[0].streams[0].ops[0].bytes = 4096;
    assert!(matches!(few.verdict(), Verdict::Unknown { .. }));
    // Nor what the kernel copies by itself.
    few.run.visits[0].streams[0].ops[0].op = "copy-range".to_owned();
    let said = texts(&few.caches().findings());
    let wanted = "counters are compared with reads and writes, and the requests are `copy-range`";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn memory_is_no_device_whatever_else_is_said() {
    let mut bench = Bench::read(true);
    bench.run.header.target.remarks = vec!["tmpfs: memory, no device".to_owned()];
    bench.run.visits[0].warnings.push(Warning::new("buffered-fallback", "refused"));
    assert_eq!(bench.verdict(), Verdict::NoDevice { what: "memory (tmpfs)".to_owned() });
    let said = texts(&bench.caches().findings());
    assert!(said.contains("no device") && !said.contains("from the device"), "{said}");
    let mut twin = Bench::read(true);
    twin.run.header.target.kind = TargetKind::Twin;
    assert!(matches!(twin.verdict(), Verdict::NoDevice { .. }));
    // A model counts as devices do.
    let mut model = Bench::read(true).moved(1.0, 0.0);
    model.run.header.target.kind = TargetKind::Twin;
    assert_eq!(model.verdict(), device(1.0));
}

#[test]
fn a_twin_has_no_page_cache() {
    let twin = |direct: bool| {
        let mut bench = Bench::read(direct).moved(0.5, 0.0);
        bench.run.header.target.kind = TargetKind::Twin;
        for stream in bench.run.visits.iter_mut().flat_map(|visit| &mut visit.streams) {
            stream.backend.direct = false;
        }
        bench
    };
    let witnesses = |bench: &Bench| {
        let findings = &bench.caches().cells[0].findings;
        findings.iter().map(|finding| finding.witness).collect::<Vec<_>>()
    };
    // Direct I/O asked for and not given, and less memory than the file has: of a file these say
    // that it was the page cache.
    assert_eq!(witnesses(&twin(true)), [Witness::Ledger]);
    assert_eq!(witnesses(&twin(false)), [Witness::Ledger]);
    let file = |direct: bool| {
        let mut bench = twin(direct);
        bench.run.header.target.kind = TargetKind::File;
        witnesses(&bench)
    };
    assert!(file(true).contains(&Witness::Direct), "{:?}", file(true));
    assert!(file(false).contains(&Witness::Size), "{:?}", file(false));
    // What its model says it has counts.
    let mut cached = twin(false);
    cached.run.header.target.cache_bytes = Some(GIB / 2);
    assert_eq!(witnesses(&cached).len(), 2);
    let said = texts(&cached.caches().cells[0].findings());
    assert!(said.contains("1 GiB are used, caches hold 512 MiB"), "{said}");
}

#[test]
fn a_cache_between_a_loop_device_and_its_disk_is_seen() {
    let mut bench = Bench::read(true);
    bench.run.header.target.devices = vec!["loop0".to_owned(), "vda1".to_owned(), "vda".to_owned()];
    let ledger = |disk: f64| {
        vec![entry("loop0", 0, 1.0, 0.0), entry("vda1", 1, disk, 0.0), entry("vda", 2, disk, 0.0)]
    };
    bench.run.visits[0].ledger = ledger(0.0);
    assert!(matches!(bench.verdict(), Verdict::Cached { .. }), "{:?}", bench.verdict());
    bench.run.visits[0].ledger = ledger(1.0);
    assert_eq!(bench.verdict(), device(1.0));
    // Where a disk was not counted nothing is concluded from the others.
    bench.run.visits[0].ledger = ledger(0.0);
    bench.run.header.target.devices.push("vdb".to_owned());
    assert_eq!(bench.verdict(), device(1.0));
}

#[test]
fn a_mirror_reads_once_and_a_volume_on_disk_and_array_adds_up() {
    let mut bench = Bench::read(true);
    let names = ["dm-0", "md0", "sda", "sdb", "sdc"];
    bench.run.header.target.devices = names.map(str::to_owned).to_vec();
    bench.run.visits[0].ledger = vec![
        entry("dm-0", 0, 1.0, 0.0),
        entry("md0", 1, 0.5, 0.0),
        entry("sda", 1, 0.5, 0.0),
        entry("sdb", 2, 0.25, 0.0),
        entry("sdc", 2, 0.25, 0.0),
    ];
    assert_eq!(bench.verdict(), device(1.0));
}

#[test]
fn writes_in_memory_are_a_lag_and_direct_ones_must_arrive() {
    let lag = Bench::write(false).moved(0.0, 0.3);
    assert!(
        matches!(lag.verdict(), Verdict::WriteLag { missing_bytes, .. } if missing_bytes == 70 * MIB)
    );
    let direct = Bench::write(true).moved(0.0, 0.3);
    assert!(matches!(direct.verdict(), Verdict::PartlyCached { .. }));
    let amplified = Bench::write(true).moved(0.0, 2.0);
    let said = texts(&amplified.caches().findings());
    assert!(said.contains("wrote 2 times what was asked for (200 MiB for 100 MiB)"), "{said}");
}

#[test]
fn what_a_file_system_compressed_is_no_cache() {
    let of = |data: &str, remark: &str| {
        let mut bench = Bench::new(&format!(
            "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\ndata = \"{data}\"\n[[phase]]\n\
             name = \"read\"\ntime = \"10s\"\ndirect = true\n"
        ))
        .moved(0.03, 0.0);
        bench.run.header.target.remarks = vec![remark.to_owned()];
        bench.verdict()
    };
    let compresses =
        "compressed (mount option compress=zstd): compressible data measures the processor";
    let Verdict::Unknown { why } = of("zero", compresses) else {
        panic!("{:?}", of("zero", compresses))
    };
    assert!(why.contains("compress=zstd"), "{why}");
    // Whether ZFS compresses the kernel does not say.
    let zfs = of("zero", "zfs: may be compressed, the kernel does not say");
    assert!(matches!(zfs, Verdict::Unknown { .. }), "{zfs:?}");
    // Where nothing can be compressed, or nothing compresses, what did not move was cached.
    for other in [
        of("incompressible", compresses),
        of("zero", "btrfs: copy on write, blocks are not written in place"),
    ] {
        assert!(matches!(other, Verdict::Cached { .. }), "{other:?}");
    }
}

#[test]
fn a_flush_under_a_read_cell_is_named() {
    // What the studies' first cells suffered from.
    let bench = Bench::read(true).moved(1.0, 4.0);
    let said = texts(&bench.caches().findings());
    assert!(said.contains("the device wrote 400 MiB that nobody asked for here"), "{said}");
    assert_eq!(bench.verdict().mark().map(finding::Code::name), Some("foreign-traffic"));
}

#[test]
fn size_against_known_caches_reports_the_hit_rate() {
    // The studies: 4 GiB in a controller's 4 GB.
    let mut bench = Bench::read(true).moved(1.0, 0.0);
    bench.run.header.target.cache_bytes = Some(GIB);
    assert!(matches!(bench.verdict(), Verdict::TooSmall { hit_rate, .. } if hit_rate == 1.0));
    bench.run.header.target.cache_bytes = Some(GIB / 4);
    assert!(matches!(bench.verdict(), Verdict::LargeEnough { hit_rate, .. } if hit_rate == 0.25));
    let said = texts(&bench.caches().findings());
    assert!(
        said.contains("up to 25 % of random requests over 1 GiB can still hit 256 MiB"),
        "{said}"
    );
    // Memory counts where the page cache was used and nothing shows that it did not answer.
    let mut buffered = Bench::read(false).moved(0.5, 0.0);
    let found = &buffered.caches().cells[0];
    assert!(found.findings.iter().any(|f| f.witness == Witness::Size), "{found:?}");
    buffered = buffered.moved(1.0, 0.0);
    assert_eq!(buffered.verdict(), device(1.0));
}

#[test]
fn the_region_is_the_working_set_not_the_file() {
    let text = "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"read\"\n\
                time = \"10s\"\nregion = { length = \"64MiB\" }\n";
    let mut bench = Bench::new(text).moved(1.0, 0.0);
    bench.run.header.target.cache_bytes = Some(GIB / 8);
    assert!(
        matches!(bench.verdict(), Verdict::TooSmall { working_set_bytes, .. } if working_set_bytes == 64 * MIB)
    );
    bench.run.header.suite_text = "what is this".to_owned();
    assert!(
        matches!(bench.verdict(), Verdict::LargeEnough { working_set_bytes, .. } if working_set_bytes == GIB)
    );
}

#[test]
fn a_log_is_small_on_purpose() {
    // Without counters, so that sizes and pages are all that is known.
    let marks = |bench: &mut Bench| -> Vec<&'static str> {
        bench.run.visits.iter_mut().for_each(|visit| visit.resident_before = Some(900));
        let cells = bench.caches().cells;
        let findings = cells.iter().flat_map(|cell| &cell.findings);
        findings.filter_map(|found| Some(found.verdict.mark()?.name())).collect()
    };
    // The last of pg_test_fsync's phases flushes nothing.
    for (name, unflushed) in [("wal", 0), ("sysbench-fsync-rate", 0), ("pg-test-fsync", 1)] {
        let mut log = Bench::new(suite::find_builtin(name).unwrap().text);
        let said = marks(&mut log);
        let too_small = said.iter().filter(|mark| **mark == "too-small").count();
        assert_eq!((too_small, said.contains(&"not-cold")), (unflushed, false), "{name}: {said:?}");
    }
    // Where nothing is flushed, memory can be all that was written to.
    assert!(marks(&mut Bench::write(false)).contains(&"too-small"));
    let said = marks(&mut Bench::read(false));
    assert!(said.contains(&"too-small") && said.contains(&"not-cold"), "{said:?}");
    // An update reads, too.
    let update = "schema = 1\nname = \"t\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"u\"\n\
                  operation = \"update\"\ntime = \"10s\"\ndirect = false\n";
    assert!(marks(&mut Bench::new(update)).contains(&"not-cold"));
}

#[test]
fn a_rate_above_the_link_cannot_be_the_device() {
    // 10 MiB/s.
    let mut bench = Bench::read(true).moved(1.0, 0.0);
    let mut link = |bytes_per_second| {
        let name = "SATA 6.0 Gb/s of sda".to_owned();
        bench.run.header.target.link = Some(Link { name, bytes_per_second });
        bench.verdict()
    };
    assert_eq!(link(100 * MIB), device(1.0));
    assert!(matches!(link(10 * MIB), Verdict::AtLink { .. }));
    assert!(matches!(link(9 * MIB), Verdict::AboveLink { .. }));
    assert_eq!(link(0), device(1.0));
}

#[test]
fn direct_is_a_request() {
    let mut bench = Bench::read(true).moved(1.0, 0.0);
    bench.run.visits[0].streams[0].backend.direct = false;
    assert!(matches!(bench.verdict(), Verdict::Buffered { .. }));
    let mut bench = Bench::read(true).moved(1.0, 0.0);
    bench.run.visits[0].resident_before = Some(10);
    bench.run.visits[0].resident_after = Some(400);
    let said = texts(&bench.caches().findings());
    assert!(said.contains("39 % of the files came into the page cache"), "{said}");
    // Pages that were there before and are no more, or still, are somebody else's.
    bench.run.visits[0].resident_after = Some(10);
    assert_eq!(bench.verdict(), device(1.0));
    let mut warm = Bench::read(false).moved(1.0, 0.0);
    warm.run.visits[0].resident_before = Some(51);
    assert_eq!(warm.verdict(), Verdict::NotCold { share: 0.051 });
}

/// Cells of growing regions with the latencies that a cache gives.
fn sweep(latency: impl Fn(f64) -> f64) -> Bench {
    let mut bench = Bench::new(suite::find_builtin("working-set").unwrap().text).moved(1.0, 0.0);
    for visit in &mut bench.run.visits {
        let size = 0.0625 * f64::from(1 << (visit.cell / 2));
        let op = &mut visit.streams[0].ops[0];
        op.latency_ns_sum = (latency(size) * 1000.0 * op.requests as f64) as u128;
    }
    bench
}

#[test]
fn a_cache_is_found_in_the_sweep_and_told() {
    let cached = sweep(|size| 120.0 - 90.0 * (4.0 / size).min(1.0));
    let found = cached.caches();
    assert_eq!(found.sweeps.len(), 1);
    let fit = found.sweeps[0].fit.unwrap();
    assert!(fit.found && (fit.cache_bytes / GIB as f64 - 4.0).abs() < 0.1, "{fit:?}");
    let (hit, miss) = (fit.hit_ns.unwrap(), fit.miss_ns.unwrap());
    assert!((hit - 30e3).abs() < 1e3 && (miss - 120e3).abs() < 2e3, "{fit:?}");
    let said = texts(&found.findings());
    assert!(
        said.contains("A cache of ") && said.contains("in the controller or the drive"),
        "{said}"
    );
    // A twin's records never say direct, and it has no page cache; of a file that says memory.
    let mut twin = cached;
    for visit in &mut twin.run.visits {
        visit.streams[0].backend.direct = false;
    }
    assert!(twin.caches().sweeps[0].buffered);
    twin.run.header.target.kind = TargetKind::Twin;
    assert!(!twin.caches().sweeps[0].buffered);
    let flat = sweep(|_| 100.0).caches();
    assert!(!flat.sweeps[0].fit.unwrap().found);
    assert!(
        texts(&flat.findings()).contains("No cache visible over working sets of 64 MiB to 32 GiB")
    );
    // Faster over more: no cache does that.
    assert!(!sweep(|size| 100.0 - size).caches().sweeps[0].fit.unwrap().found);
}

#[test]
fn of_a_cache_smaller_than_all_sets_only_bounds_are_told() {
    // 32 MiB below sets from 64 MiB on, and 24 GiB below one set.
    let small = sweep(|size| 120.0 - 90.0 * (0.03125 / size).min(1.0)).caches();
    let fit = small.sweeps[0].fit.unwrap();
    assert!(fit.found && fit.at_most && fit.hit_ns.is_none(), "{fit:?}");
    let truth = 32.0 * MIB as f64;
    assert!(fit.cache_bytes_low < truth && truth < fit.cache_bytes_high, "{fit:?}");
    let said = small.sweeps[0].finding().text();
    assert!(said.starts_with("A cache of at most 6"), "{said}");
    assert!(said.contains("a hit takes 75 us at most"), "{said}");
    assert!(said.contains("a miss takes 120 us ("), "{said}");

    // A hundredth over the smallest, sure as it is, is no cache of any size.
    let little = sweep(|size| if size < 0.1 { 121.0 } else { 122.0 } + size * 1e-4).caches();
    let fit = little.sweeps[0].fit.unwrap();
    assert!(fit.f > fit.f_min && !fit.found, "{fit:?}");
    let said = little.sweeps[0].finding().text();
    assert!(said.starts_with("No cache visible") && !said.contains("0 B"), "{said}");

    let large = sweep(|size| 120.0 - 90.0 * (24.0 / size).min(1.0)).caches();
    let fit = large.sweeps[0].fit.unwrap();
    assert!(fit.found && fit.miss_ns.is_none(), "{fit:?}");
    assert!(fit.hit_ns.is_some_and(|ns| (ns - 30e3).abs() < 1e3), "{fit:?}");
    let said = large.sweeps[0].finding().text();
    assert!(said.contains("a miss takes 52.5 us or more, and too few sets"), "{said}");
}

fn reread(first_us: f64, second_us: f64) -> Caches {
    reread_of(TargetKind::File, true, first_us, second_us)
}

fn reread_of(kind: TargetKind, direct: bool, first_us: f64, second_us: f64) -> Caches {
    let mut bench = Bench::new(suite::find_builtin("reread").unwrap().text).moved(1.0, 0.0);
    for (visit, us) in bench.run.visits.iter_mut().zip([first_us, second_us]) {
        visit.streams[0].backend.direct = direct;
        let op = &mut visit.streams[0].ops[0];
        op.latency_ns_sum = (us * 1000.0 * op.requests as f64) as u128;
        for (at, row) in op.series.rows.iter_mut().enumerate() {
            row.requests = 250 + (at as u64 * 7919) % 13;
        }
    }
    bench.run.header.target.kind = kind;
    bench.caches()
}

#[test]
fn the_second_pass_shows_a_cache() {
    assert!(reread_of(TargetKind::File, false, 120.0, 40.0).rereads[0].buffered);
    assert!(!reread_of(TargetKind::Twin, false, 120.0, 40.0).rereads[0].buffered);
    let found = &reread(120.0, 40.0).rereads[0];
    assert!(found.found && found.ratio.unwrap() == 3.0, "{found:?}");
    assert!(found.low.unwrap() > 2.9 && found.high.unwrap() < 3.1, "{found:?}");
    let said = texts(&reread(120.0, 40.0).findings());
    assert!(
        said.contains("A cache of 100 MiB or more: the second read of 100 MiB was 3 times"),
        "{said}"
    );
    let none = reread(120.0, 110.0);
    assert!(!none.rereads[0].found);
    assert!(texts(&none.findings()).contains("No cache seen by reading again"));
}

#[test]
fn a_write_cache_is_placed_in_bytes() {
    let mut bench = Bench::write(true).moved(0.0, 1.0);
    let op = &mut bench.run.visits[0].streams[0].ops[0];
    for (at, row) in op.series.rows.iter_mut().enumerate() {
        let noise = (at as u64 * 7919) % 13;
        row.bytes = if at < 40 { (20 + noise) * MIB } else { (4 * MIB) + noise * MIB / 8 };
    }
    let found = bench.caches().write_caches;
    let [cache] = found.as_slice() else { panic!("{found:?}") };
    let filled = 40 * 26 * MIB;
    assert!(cache.at_bytes.abs_diff(filled) < filled / 20, "{cache:?}");
    assert!(cache.size_bytes < cache.at_bytes && !cache.refills);
    assert!(
        texts(&cache.findings()).contains("writes fell from 260 MiB/s to 47.6 MiB/s"),
        "{}",
        texts(&cache.findings())
    );
    // Without idleness before, nobody knows how full it was.
    bench.run.visits[0].quiet = Some(false);
    assert!(bench.caches().write_caches.is_empty());
}

/// A visit of writes with so many bytes in each 100 ms.
fn written(rows: impl Fn(usize) -> u64) -> Bench {
    let mut bench = Bench::write(true).moved(0.0, 1.0);
    let op = &mut bench.run.visits[0].streams[0].ops[0];
    for (at, row) in op.series.rows.iter_mut().enumerate() {
        row.bytes = rows(at);
    }
    op.bytes = op.series.rows.iter().map(|row| row.bytes).sum();
    bench
}

#[test]
fn a_write_cache_that_fills_within_an_interval_or_two_has_its_size() {
    let slow = |at: usize| 2 * MIB + (at as u64 * 7919) % 13 * MIB / 64;
    // 512 MiB at 12.5 GiB/s is full after 40 ms; at 4 GiB/s after 125 ms.
    for (first, second) in [(512 * MIB + 1, 0), (400 * MIB, 112 * MIB)] {
        let bench = written(|at| match at {
            0 => first + slow(0),
            1 => second + slow(1),
            at => slow(at),
        });
        let found = bench.caches().write_caches;
        let [cache] = found.as_slice() else { panic!("{found:?}") };
        assert!(cache.size_bytes.abs_diff(512 * MIB) < 5 * MIB, "{cache:?}");
        // That and what had drained until then.
        let planted = (if second == 0 { 512.8 } else { 514.6 } * MIB as f64) as u64;
        assert!((cache.at_bytes_low..=cache.at_bytes_high).contains(&planted), "{cache:?}");
        assert!((cache.after / (21.0 * MIB as f64) - 1.0).abs() < 0.2, "{cache:?}");
        // Where it filled in the first interval only a least rate is known.
        let least = if second == 0 { 5120.0 } else { 4000.0 } * MIB as f64;
        assert_eq!(cache.before_is_least, second == 0, "{cache:?}");
        assert!(cache.before >= least && cache.before < 1.1 * least, "{cache:?}");
        let told = texts(&cache.findings());
        assert_eq!(told.contains("MiB/s or more to"), second == 0, "{told}");
    }
}

#[test]
fn what_stands_still_once_its_cache_is_full_has_its_size() {
    // 300 MiB at once, then nothing for the rest of the visit.
    let found = written(|at| if at == 0 { 300 * MIB } else { 0 }).caches().write_caches;
    let [cache] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((cache.size_bytes, cache.after), (300 * MIB, 0.0), "{cache:?}");
    let text = texts(&cache.findings());
    assert!(text.contains("stopped after 3000 MiB/s or more once 300 MiB"), "{text}");
    assert!(text.contains("a stall, a write cache") && !text.contains("0 B/s"), "{text}");
}

#[test]
fn pauses_that_the_suite_asks_for_fill_no_cache() {
    let mut bench = written(|at| if at < 10 { 12 * MIB } else { 0 });
    assert_eq!(bench.caches().write_caches.len(), 1);
    let text = &mut bench.run.header.suite_text;
    text.push_str("think = \"9s\"\nburst = 100\n");
    assert!(bench.caches().write_caches.is_empty());
}

#[test]
fn odd_records_do_not_panic() {
    let mut bench = Bench::read(true).moved(1.0, 0.0);
    bench.run.header.target.cache_bytes = Some(u64::MAX);
    bench.run.header.machine.memory_bytes = u64::MAX;
    bench.run.header.target.link = Some(Link { name: String::new(), bytes_per_second: u64::MAX });
    let visit = &mut bench.run.visits[0];
    visit.ledger[0].read_bytes = u64::MAX;
    visit.ledger.push(visit.ledger[0].clone());
    visit.streams[0].ops[0].bytes = u64::MAX;
    visit.streams[0].ramp_requests = u64::MAX;
    bench.caches();
    bench.run.visits[0].streams[0].ops[0].requests = 0;
    bench.run.visits[0].elapsed_ns = 1;
    bench.caches();
    bench.run.visits.clear();
    let none = caches(&View::new(&bench.run));
    assert!(none.cells.is_empty() && none.findings().is_empty());
}
