//! Runs of our own that measured what a sample says print the sample's lines.

use record::{OpRecord, Run, StreamRecord, VisitRecord, WorkerRecord};
use report::table::{LAYOUTS, layout};
use stats::LatencyHistogram;
use units::Nanos;

use crate::sample;

const GIB: u64 = 1 << 30;

macro_rules! imported {
    ($name:literal) => {
        include_str!(concat!("../../../import/tests/data/", $name))
    };
}

/// What an operation did: `us` are latencies in microseconds, as often as it takes.
fn op(name: &str, requests: u64, block: u64, us: &[f64]) -> OpRecord {
    let ns: Vec<u64> = us.iter().map(|us| (us * 1e3) as u64).collect();
    let mut latency = LatencyHistogram::new();
    for k in 0..requests.min(1000) as usize {
        latency.record(Nanos::new(ns[k % ns.len()]));
    }
    let mean = ns.iter().map(|&ns| ns as f64).sum::<f64>() / ns.len() as f64;
    OpRecord {
        latency,
        latency_ns_min: ns.iter().copied().min().unwrap(),
        latency_ns_max: ns.iter().copied().max().unwrap(),
        latency_ns_sum: (mean * requests as f64) as u128,
        requests,
        bytes: requests * block,
        ..sample::op(name, 0, 0)
    }
}

/// A stream of one worker that took so many percent of a processor.
fn record(ops: Vec<OpRecord>, elapsed_ns: u64, cpu_percent: f64) -> StreamRecord {
    let mut record = sample::record("main", ops);
    record.workers[0].cpu_user_ns = Some(0);
    record.workers[0].cpu_system_ns = Some((elapsed_ns as f64 * cpu_percent / 100.0) as u64);
    record
}

/// A cell of visits far apart has one mean in the table of its suite and in ours.
#[test]
fn a_cell_has_one_mean_in_every_table() {
    let mut planted = Planted::new("bm-flash");
    let plan = sample::stream("read", "read", Some(4096), 1);
    let at = [("block_size", "4KiB"), ("threads", "1")];
    let cell = planted.cell("read", &at, plan);
    for requests in [8100, 1000, 125] {
        let ops = vec![op("read", requests, 4096, &[100.0])];
        planted.visit(cell, 1_000_000_000, record(ops, 1_000_000_000, 1.0));
    }
    // The cube root of the product; all requests by all time would be 3075.
    let classic = report::table::bm_flash(&planted.run);
    assert!(classic.contains(" 1004 ") && !classic.contains("3075"), "{classic}");
    let ours = report::table::grid(&planted.run);
    assert!(ours.contains(" 1004 ") && !ours.contains("3075"), "{ours}");
}

struct Planted {
    run: Run,
}

impl Planted {
    fn new(suite: &str) -> Self {
        Self { run: Run { header: sample::header(suite), cells: vec![], visits: vec![] } }
    }

    fn cell(&mut self, phase: &str, at: &[(&str, &str)], plan: record::StreamPlan) -> u32 {
        let index = self.run.cells.len() as u32;
        self.run.cells.push(sample::cell(index, phase, at, vec![plan]));
        index
    }

    fn visit(&mut self, cell: u32, elapsed_ns: u64, record: StreamRecord) -> &mut VisitRecord {
        let order = self.run.visits.len() as u32;
        self.run.visits.push(sample::visit(cell, order, elapsed_ns, vec![record]));
        self.run.visits.last_mut().unwrap()
    }

    /// A cell of one visit.
    fn add(
        &mut self,
        phase: &str,
        at: &[(&str, &str)],
        plan: record::StreamPlan,
        ops: Vec<OpRecord>,
        (elapsed_ns, cpu): (u64, f64),
    ) -> &mut VisitRecord {
        let cell = self.cell(phase, at, plan);
        self.visit(cell, elapsed_ns, record(ops, elapsed_ns, cpu))
    }

    #[track_caller]
    fn print(&self, name: &str) -> String {
        layout(name).unwrap().print(&self.run).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// The original's own lines, without what we say of several visits below them.
fn without_note(text: &str) -> &str {
    let end = text.find("(Up to").unwrap_or_else(|| panic!("nothing said of visits: {text}"));
    &text[..end]
}

/// ns for so many at a rate.
fn time(count: u64, rate: f64) -> u64 {
    (count as f64 * 1e9 / rate) as u64
}

/// The 1.96 table of the studies' controller, and files as 1.03 printed them.
#[test]
fn bonnie() {
    let mut planted = Planted::new("bonnie");
    let header = &mut planted.run.header;
    (header.machine.host, header.target.size_bytes) = ("db01".into(), 62 * GIB);
    let stream = |threads| sample::stream("main", "mixed", Some(8192), threads);
    let blocks = 62 * GIB / 8192;
    let kib = 62 * GIB / 1024;
    // Half a KiB/s more: it is cut.
    planted.add(
        "write-block",
        &[],
        stream(1),
        vec![op("write", blocks, 8192, &[90.0, 1_750_900.0]), op("fsync", 1, 0, &[9e6])],
        (time(kib, 92_822.5), 10.9),
    );
    planted.add(
        "rewrite",
        &[],
        stream(1),
        vec![op("read", blocks, 8192, &[9.0]), op("write", blocks, 8192, &[9.0, 493_000.0])],
        (time(kib, 127_608.5), 9.5),
    );
    planted.add(
        "read-block",
        &[],
        stream(1),
        vec![op("read", blocks, 8192, &[1.0, 194.9])],
        (time(kib, 5_275_436.5), 99.5),
    );
    // A fifth of the CPU that is printed: five threads count it each.
    planted.add(
        "seek",
        &[],
        stream(5),
        vec![op("read", 8192, 8192, &[10.0, 1105.0]), op("write", 819, 8192, &[10.0])],
        (time(8192, 825.0), 20.7),
    );
    planted.add(
        "create-in-order",
        &[],
        sample::stream("main", "create", None, 1),
        vec![op("create", 16384, 0, &[10.0])],
        (time(16384, 12_345.5), 62.5),
    );
    planted.add(
        "stat-in-order",
        &[],
        sample::stream("main", "stat", None, 1),
        vec![op("stat", 16384, 0, &[1.0])],
        (400_000_000, 99.0),
    );
    let text = planted.print("bonnie");
    let table = imported!("bonnie-1.96-h800.txt");
    let table = table.replace("1.96", "1.97").replace("Concurrency   4", "Concurrency   1");
    assert!(text.starts_with(&table), "{text}");
    let files = "\
Version  1.97       ------Sequential Create------ --------Random Create--------
db01                -Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--
              files  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP
                 16 12345  62 +++++ +++
Latency                10us       1us
";
    assert_eq!(&text[table.len()..], files);
}

#[test]
fn bonnie_without_cpu_says_so() {
    let mut planted = Planted::new("bonnie");
    let stream = sample::stream("main", "write", Some(4096), 1);
    let visit = planted.add(
        "write-block",
        &[],
        stream,
        vec![op("write", 1 << 20, 4096, &[90.0])],
        (10_000_000_000, 10.0),
    );
    visit.streams[0].workers[0].cpu_user_ns = None;
    let text = planted.print("bonnie");
    assert!(text.contains("Size:chnk"), "{text}");
    assert!(text.contains("\ndb1           4G:4k           419430\n"), "{text}");
    assert!(text.ends_with("(%CP is blank where the threads' CPU is not known.)\n"), "{text}");
}

/// What 1.0.20 printed of random writes.
#[test]
fn sysbench() {
    let mut planted = Planted::new("sysbench-rndwr");
    let elapsed = 2_003_755_200;
    let cell = planted.cell("rndwr", &[], sample::stream("main", "write", Some(8192), 2));
    let mut all = record(
        vec![op("write", 80_892, 8192, &[4.0, 8.9]), op("fsync", 3_242, 0, &[3.0])],
        elapsed,
        100.0,
    );
    // The sum is exact; of the times of the flushes only the longest matters here.
    all.ops[0].latency_ns_sum = 800_000_000;
    (all.ops[1].latency_ns_sum, all.ops[1].latency_ns_max) = (3_163_280_000, 15_510_000);
    let worker = |requests| WorkerRecord { requests, ..all.workers[0].clone() };
    all.workers = vec![worker(40_784), worker(43_350)];
    planted.visit(cell, elapsed, all);
    let text = planted.print("sysbench");
    let original = imported!("sysbench-1.0.20-fileio-rndwr.txt");
    let original = &original[original.find("File operations").unwrap()..];
    // sysbench's rates are of another moment than its total time, and the flushes at the end are no
    // events: these two cannot be met with the others.
    let wanted =
        original.trim_end().replace("2.0036s", "2.0038s").replace("1617.80", "1617.96").replace(
            "execution time (avg/stddev):   1.9816/0.00",
            "execution time (avg/stddev):   1.9816/-",
        );
    assert_eq!(text, format!("{wanted}\n(- is what is not known.)\n"));
}

/// What 0.4 printed of the studies' seek rate.
#[test]
fn sysbench_of_old() {
    let mut planted = Planted::new("sysbench-seek-rate");
    let elapsed = 53_587_700_000;
    let cell = planted.cell("seek-rate", &[], sample::stream("main", "read", Some(8192), 1));
    let mut all = record(vec![op("read", 10_000, 8192, &[120.0, 8_920.0, 48_310.0])], elapsed, 1.0);
    all.ops[0].latency_ns_sum = 53_566_400_000;
    let mut latency = LatencyHistogram::new();
    (0..1000)
        .for_each(|k| latency.record(Nanos::new(if k < 960 { 8_920_000 } else { 48_310_000 })));
    all.ops[0].latency = latency;
    planted.visit(cell, elapsed, all);
    let original = imported!("sysbench-0.4-fileio-rndrd.txt");
    let original = &original[original.find("Operations performed").unwrap()..];
    let text = planted.print("sysbench-0.4");
    let percentile = |text: &str| {
        text.lines()
            .map(|l| if l.contains("percentile") { "" } else { l.trim_end() })
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert_eq!(percentile(&text), percentile(original.trim_end()));
    // To 0.4 %: 8.92.
    assert!(text.contains("approx.  95 percentile:               8.9"), "{text}");
}

/// The rates of a row, to the digits printed.
fn rates(line: &str) -> Option<f64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [.., rate, "ops/sec", us, "usecs/op"] = words.as_slice() else { return None };
    let (rate, us): (f64, f64) = (rate.parse().ok()?, us.parse().ok()?);
    let low = (rate - 0.0005).max(1e6 / (us + 0.5));
    let high = (rate + 0.0005).min(1e6 / (us - 0.5));
    assert!(low < high, "{line}");
    Some((low + high) / 2.0)
}

#[test]
fn pg_test_fsync() {
    let original = imported!("pg_test_fsync-15.txt");
    let mut planted = Planted::new("pg-test-fsync");
    let plan = |block| sample::stream("main", "write", Some(block), 1);
    let mut writes = 1;
    let mut section = "";
    for line in original.lines() {
        for (title, name, count) in [
            ("one 8kB", "one", 1),
            ("two 8kB", "two", 2),
            ("different write sizes", "split", 1),
            ("non-write file", "", 1),
            ("Non-sync", "unflushed", 1),
        ] {
            if line.contains(title) {
                (section, writes) = (name, count);
            }
        }
        let Some(rate) = rates(line) else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        let (phase, at, block, writes) = match section {
            "one" | "two" => {
                (format!("{section}-{}", words[0].replace('_', "-")), None, 8192, writes)
            }
            "split" => {
                let count: u64 = words[0].parse().unwrap();
                ("split".to_owned(), Some(format!("{}KiB", 16 / count)), 16384 / count, count)
            }
            "unflushed" => ("unflushed".to_owned(), None, 8192, 1),
            _ => continue,
        };
        let at: Vec<(&str, &str)> = at.iter().map(|size| ("block_size", size.as_str())).collect();
        let count = 1_000_000;
        let elapsed = time(count, rate);
        planted.add(
            &phase,
            &at,
            plan(block),
            vec![op("write", count * writes, block, &[100.0]), op("fsync", count, 0, &[100.0])],
            (elapsed, 10.0),
        );
    }
    // A long time for a few digits: what it was is said, and not counted here.
    let text = planted.print("pg-test-fsync");
    let text = text.split_once('\n').unwrap().1;
    let wanted: String = original
        .lines()
        .skip(1)
        .map(|line| match line {
            // Our suite has not that.
            l if l.contains("write, fsync, close") || l.contains("write, close, fsync") => {
                format!("{:<38}{:>21}\n", &l[..27], "n/a")
            }
            l => format!("{l}\n"),
        })
        .collect();
    assert_eq!(text, wanted);
}

#[test]
fn ioping() {
    let mut planted = Planted::new("ioping");
    let target = &mut planted.run.header.target;
    target.given = ".".into();
    let visit = planted.add(
        "latency",
        &[],
        sample::stream("main", "read", Some(4096), 1),
        vec![op("read", 4, 4096, &[209.86, 217.06, 221.08, 189.13])],
        (700_400_000, 1.0),
    );
    (visit.ramp_ns, visit.streams[0].ramp_requests) = (100_000_000, 1);
    let original = imported!("ioping-1.3.txt");
    let original = &original[original.find("---").unwrap()..];
    // A file does not say how large its device is.
    let original = original.replace("/dev/vda 252.0 GiB", "/dev/sda");
    let (wanted, _) = original.rsplit_once(" / ").unwrap();
    let text = planted.print("ioping");
    assert!(text.starts_with(wanted), "{text}\n{wanted}");
    let sd: f64 = text.rsplit(' ').nth(1).unwrap().parse().unwrap();
    assert!((sd - 12.3).abs() < 0.9, "{text}");
}

#[test]
fn iozone() {
    let original = imported!("iozone-auto.txt");
    let mut planted = Planted::new("iozone");
    planted.run.header.target.size_bytes = 64 << 20;
    let phases = [
        "write",
        "rewrite",
        "read",
        "reread",
        "random-read",
        "random-write",
        "backward-read",
        "record-rewrite",
        "stride-read",
        "fwrite",
        "refwrite",
        "fread",
        "refread",
    ];
    let rows: Vec<&str> = original.lines().filter(|l| l.trim().starts_with("65536")).collect();
    for row in &rows {
        let numbers: Vec<u64> = row.split_whitespace().map(|w| w.parse().unwrap()).collect();
        let block = numbers[1] << 10;
        for (phase, kib) in phases.iter().zip(&numbers[2..]) {
            let name = if phase.contains("write") { "write" } else { "read" };
            let size = format!("{}KiB", numbers[1]);
            planted.add(
                phase,
                &[("block_size", &size)],
                sample::stream("main", name, Some(block), 1),
                vec![op(name, (64 << 20) / block, block, &[10.0])],
                (time(65_536, *kib as f64 + 0.5), 50.0),
            );
        }
    }
    let text = planted.print("iozone");
    let found: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(found, rows);
    assert_eq!(rows.len(), 3);
}

/// Four workers on four files.
#[test]
fn iozone_with_several_workers() {
    let mut planted = Planted::new("iozone");
    let cell = planted.cell("rewrite", &[], sample::stream("main", "write", Some(1024), 4));
    let elapsed = 1_000_000_000;
    let mut all = record(vec![op("write", 1000, 1024, &[10.0])], elapsed, 50.0);
    let worker = |requests| WorkerRecord { requests, ..all.workers[0].clone() };
    all.workers = [200, 250, 250, 300].map(worker).to_vec();
    planted.visit(cell, elapsed, all);
    let text = planted.print("iozone");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for (line, end) in [
        (0, "rewriters = 1000.00 kB/sec"),
        (1, "rewriters = 1000.00 kB/sec"),
        (2, "process = 200.00 kB/sec"),
        (3, "process = 300.00 kB/sec"),
        (4, "process = 250.00 kB/sec"),
        (5, "xfer = 200.00 kB"),
    ] {
        assert!(rows[line].join(" ").ends_with(end), "{text}");
    }
}

/// Three passes of the study's size.
#[test]
fn xdd() {
    let original = imported!("xdd.txt");
    let mut planted = Planted::new("xdd");
    let mut plan = sample::stream("main", "read", Some(8192), 128);
    plan.queue_depth = 1;
    let cell = planted.cell("pass", &[("block_size", "8KiB")], plan);
    for (seconds, cpu) in [(247.62, 152.2), (248.46, 153.2), (247.14, 154.2)] {
        let elapsed = (seconds * 1e9) as u64;
        let mut all = record(vec![op("read", 2_097_152, 8192, &[10.0])], elapsed, 0.0);
        let each = WorkerRecord {
            requests: 2_097_152 / 128,
            cpu_user_ns: Some((elapsed as f64 * cpu / 100.0 / 128.0) as u64 + 1),
            cpu_system_ns: Some(0),
            ..WorkerRecord::default()
        };
        all.workers = vec![each; 128];
        planted.visit(cell, elapsed, all);
    }
    let text = planted.print("xdd");
    let (start, rest) = text.split_once('\n').unwrap();
    assert_eq!(start, "pass, block_size 8KiB:");
    let from = original.find("What ").unwrap();
    let to = original.find("Ending time").unwrap();
    let original: String =
        original[from..to].lines().map(|l| format!("{}\n", l.trim_end())).collect();
    assert_eq!(without_note(rest), original);
}

#[test]
fn dd() {
    let mut planted = Planted::new("dd-40g");
    planted.add(
        "write",
        &[("block_size", "8KiB")],
        sample::stream("main", "write", Some(8192), 1),
        vec![op("write", 5_242_880, 8192, &[10.0])],
        (281_520_000_000, 50.0),
    );
    planted.add(
        "copy",
        &[],
        sample::stream("main", "copy", Some(1 << 20), 1),
        vec![op("read", 2048, 1 << 20, &[10.0]), op("write", 2048, 1 << 20, &[10.0])],
        (2_000_000_000, 50.0),
    );
    // The kernel copies; the flush at the end is in the time.
    planted.add(
        "in-kernel",
        &[],
        sample::stream("main", "copy-range", Some(1 << 20), 1),
        vec![op("fsync", 1, 0, &[10.0]), op("copy-range", 2048, 1 << 20, &[10.0])],
        (1_000_000_000, 50.0),
    );
    assert_eq!(
        planted.print("dd"),
        "write, block_size 8KiB:
5242880+0 records in
5242880+0 records out
42949672960 bytes (43 GB, 40 GiB) copied, 281.52 s, 153 MB/s

copy:
2048+0 records in
2048+0 records out
2147483648 bytes (2.1 GB, 2.0 GiB) copied, 2 s, 1.1 GB/s

in-kernel:
2048+0 records in
2048+0 records out
2147483648 bytes (2.1 GB, 2.0 GiB) copied, 1 s, 2.1 GB/s
"
    );
}

/// The report in KDiskMark's own documentation.
#[test]
fn crystaldiskmark() {
    let mut planted = Planted::new("crystaldiskmark");
    planted.run.header.target.size_bytes = GIB;
    for (phase, block, depth, (iops, us)) in [
        ("read-seq-1m-q8", 1 << 20, 8, (496.97, 13_840.05)),
        ("read-seq-1m-q1", 1 << 20, 1, (428.006, 2_280.14)),
        ("read-rnd-4k-q32", 4096, 32, (88_664.25, 352.37)),
        ("read-rnd-4k-q1", 4096, 1, (11_041.5, 88.48)),
        ("write-seq-1m-q8", 1 << 20, 8, (449.523_4, 15_153.11)),
        ("write-rnd-4k-q1", 4096, 1, (78_792.5, 383.86)),
    ] {
        let name = if phase.starts_with("read") { "read" } else { "write" };
        let mut plan = sample::stream("main", name, Some(block), 1);
        plan.queue_depth = depth;
        let cell = planted.cell(phase, &[], plan);
        for count in [1_000_000, 2_000_000] {
            let elapsed = time(count, iops);
            let ops = vec![op(name, count, block, &[us])];
            planted.visit(cell, elapsed, record(ops, elapsed, 50.0));
        }
    }
    let text = planted.print("crystaldiskmark");
    let wanted = "\
--------------------------------------------------------------------------------
* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]
* KB = 1000 bytes, KiB = 1024 bytes

[Read]
Sequential   1 MiB (Q=  8, T= 1):   508.897 MB/s [    497.0 IOPS] < 13840.05 us>
Sequential   1 MiB (Q=  1, T= 1):   438.278 MB/s [    428.0 IOPS] <  2280.14 us>
    Random   4 KiB (Q= 32, T= 1):   354.657 MB/s [  88664.3 IOPS] <   352.37 us>
    Random   4 KiB (Q=  1, T= 1):    44.166 MB/s [  11041.5 IOPS] <    88.48 us>

[Write]
Sequential   1 MiB (Q=  8, T= 1):   460.312 MB/s [    449.5 IOPS] < 15153.11 us>
    Random   4 KiB (Q=  1, T= 1):   315.170 MB/s [  78792.5 IOPS] <   383.86 us>

   Test: 1 GiB (x2) [Measure: 4673 sec]
   Date: 2009-02-20 00:00:00
";
    assert_eq!(without_note(&text), wanted);
}

/// A point of both loads, and the bins of 19c.
#[test]
fn orion() {
    let mut planted = Planted::new("orion-normal");
    let depth = |name: &str, block, depth| {
        let mut plan = sample::stream(name, "read", Some(block), 1);
        plan.queue_depth = depth;
        plan
    };
    let second = 1_000_000_000;
    for (load, count, us) in [(1u32, 3011, 330.0), (2, 4120, 480.0)] {
        planted.add(
            "small",
            &[("queue_depth", &load.to_string())],
            depth("main", 8192, load),
            vec![op("read", count, 8192, &[us])],
            (second, 10.0),
        );
    }
    planted.add(
        "large",
        &[("queue_depth", "1")],
        depth("main", 1 << 20, 1),
        vec![op("read", 6120, 1 << 20, &[160.0])],
        (100 * second, 10.0),
    );
    let index = planted.run.cells.len() as u32;
    let at = [("large-reads.queue_depth", "1"), ("small-reads.queue_depth", "2")];
    planted.run.cells.push(sample::cell(
        index,
        "together",
        &at,
        vec![depth("small-reads", 8192, 2), depth("large-reads", 1 << 20, 1)],
    ));
    let streams = vec![
        record(vec![op("read", 2000, 8192, &[1000.0])], second, 1.0),
        record(vec![op("read", 40, 1 << 20, &[20_000.0])], second, 1.0),
    ];
    planted.run.visits.push(sample::visit(index, index, second, streams));
    // Every rate is by the time until all of it was back, that of the best point too.
    planted.run.visits[1].load_ns = Some(second / 2);
    let text = planted.print("orion");
    let wanted = "\
Maximum Large MBPS=61.20 @ Small=0 and Large=1

Maximum Small IOPS=4120 @ Small=2 and Large=0
Small Read Latency: avg=480.000 us, min=480.000 us, max=480.000 us, std dev=0.000 us @ Small=2 and Large=0

Minimum Small Latency=330.000 usecs @ Small=1 and Large=0
Small Read Latency: avg=330.000 us, min=330.000 us, max=330.000 us, std dev=0.000 us @ Small=1 and Large=0

iops.csv:
Large/Small,      1,      2
          0,   3011,   4120
          1,       ,   2000

mbps.csv:
Large/Small,      0,      1,      2
          0,   0.00,       ,       
          1,  61.20,       ,  40.00

lat.csv, microseconds:
Large/Small,      1,      2
          0, 330.00, 480.00
          1,       ,1000.00

hist.txt:
Small Read / Write Latency Histogram @ Small=2 and Large=0
        Latency:                         # of IOs (read)          # of IOs (write)
        0 - 32         us:               0 (  0.00%)              0 (  0.00%)
       32 - 64         us:               0 (  0.00%)              0 (  0.00%)
       64 - 128        us:               0 (  0.00%)              0 (  0.00%)
      128 - 256        us:               0 (  0.00%)              0 (  0.00%)
      256 - 512        us:            1000 (100.00%)              0 (  0.00%)
      512 - 268435456  us:               0 (100.00%)              0 (  0.00%)
";
    assert!(text.starts_with(wanted), "{text}");
}

#[test]
fn iometer() {
    let mut planted = Planted::new("iometer-database");
    planted.run.header.machine.processors = 8;
    let mut plan = sample::stream("main", "mixed", Some(8192), 1);
    plan.queue_depth = 4;
    // The sample's second level: 30 s at 5672.25 a second.
    let cell = planted.cell("levels", &[("queue_depth", "4")], plan);
    let elapsed = 30_000_000_000;
    let ops = vec![op("read", 114_015, 8192, &[634.669]), op("write", 56_152, 8192, &[846.225])];
    planted.visit(cell, elapsed, record(ops, elapsed, 100.0));
    let text = planted.print("iometer");
    let row = text.lines().nth(2).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "database", "1", "4", "5672.23", "3800.50", "1871.73", "44.31", "46.47", "0.7045",
            "0.8462", "12.50"
        ],
        "{text}"
    );
    assert!(text.contains("of the workers' work alone"), "{text}");
}

/// What other suites yield, and nothing at all.
#[test]
fn odd_runs_are_refused_and_none_breaks_a_layout() {
    let empty = Planted::new("bm-flash").run;
    let mut zero = Planted::new("zero");
    zero.add("read", &[], sample::stream("main", "read", Some(0), 0), vec![], (0, 0.0));
    let mut huge = Planted::new("huge");
    let mut most = op("read", 1, 1, &[1.0]);
    (most.requests, most.bytes) = (u64::MAX, u64::MAX);
    (most.latency_ns_max, most.latency_ns_sum) = (u64::MAX, u128::MAX);
    for phase in ["small", "write-block", "read", "one-fdatasync", "read-seq", "seek"] {
        let mut plan = sample::stream("main", "read", Some(u64::MAX), u32::MAX);
        plan.queue_depth = u32::MAX;
        let cell = huge.cell(phase, &[], plan);
        let mut visit = record(vec![op("read", 1, 1, &[1.0])], u64::MAX, 100.0);
        visit.ops = vec![most.clone()];
        visit.workers[0].requests = u64::MAX;
        huge.visit(cell, u64::MAX, visit.clone());
        huge.visit(cell, 1, visit);
    }
    huge.run.header.target.size_bytes = u64::MAX;
    huge.run.header.target.files = u32::MAX;
    for run in [empty, zero.run, huge.run, sample::rich()] {
        for layout in &LAYOUTS {
            if let Err(error) = layout.print(&run) {
                let text = error.to_string();
                let start = format!("the layout {} does not fit r17 of ", layout.name);
                assert!(text.starts_with(&start) && error.hint().is_some(), "{text}");
            }
        }
    }
    let error = layout("dd").unwrap().print(&sample::rich()).unwrap_err().to_string();
    assert_eq!(
        error,
        "the layout dd does not fit r17 of mixed-bag: 2 streams run at once in its phase oltp, and \
         the original has one"
    );
}

#[test]
fn several_visits_are_told() {
    let mut planted = Planted::new("pg-test-fsync");
    let cell = planted.cell("one-fsync", &[], sample::stream("main", "write", Some(8192), 1));
    for _ in 0..3 {
        let ops = vec![op("write", 100, 8192, &[10.0])];
        planted.visit(cell, 5_000_000_000, record(ops, 5_000_000_000, 1.0));
    }
    let text = planted.print("pg-test-fsync");
    assert!(text.starts_with("5 seconds per test\n"), "{text}");
    assert!(text.contains("(Up to 3 visits to a cell: rates are the geometric mean of"), "{text}");
}

#[test]
fn bm_flash_has_one_request_in_flight_per_thread() {
    let print = |depth| {
        let mut planted = Planted::new("random-read");
        let plan = sample::stream("main", "read", Some(4096), 1);
        let plan = record::StreamPlan { queue_depth: depth, ..plan };
        let cell = planted.cell("measure", &[], plan);
        let ops = vec![op("read", 100, 4096, &[10.0])];
        planted.visit(cell, 1_000_000_000, record(ops, 1_000_000_000, 1.0));
        layout("bm-flash").unwrap().print(&planted.run).map_err(|error| error.to_string())
    };
    assert!(print(1).unwrap().contains("1 thread"));
    // Thirty-two requests of one thread stood under "1 thread".
    let refused = print(32).unwrap_err();
    assert!(
        refused.contains("has 32 requests in flight per thread, and bm-flash has"),
        "{refused}"
    );
}
