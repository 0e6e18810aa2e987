//! The figures of every sample, to the digits that the tool printed.

use record::{OpRecord, Reported, Run, TargetKind};

use super::{import, only, ops, reported, sample};

fn told(op: &OpRecord) -> &Reported {
    op.reported.as_ref().unwrap()
}

/// The values of an axis that a phase's cells have.
fn at<'a>(run: &'a Run, phase: &str, field: &str) -> Vec<&'a str> {
    let cells = run.cells.iter().filter(|cell| cell.phase == phase);
    cells
        .flat_map(|cell| &cell.coordinates)
        .filter(|(name, _)| name == field)
        .map(|(_, value)| value.as_str())
        .collect()
}

fn setting<'a>(run: &'a Run, name: &str) -> &'a str {
    let settings = &run.header.imported.as_ref().unwrap().settings;
    let found = settings.iter().find(|(n, _)| n == name);
    &found.unwrap_or_else(|| panic!("no setting {name} in {settings:?}")).1
}

fn version(run: &Run) -> Option<&str> {
    run.header.imported.as_ref().unwrap().version.as_deref()
}

fn quantile(told: &Reported, share: f64) -> u64 {
    let found = told.latency.quantiles.iter().find(|(q, _)| (q - share).abs() < 1e-12);
    found.unwrap_or_else(|| panic!("{share} of {:?}", told.latency.quantiles)).1
}

#[test]
fn fio_json_plus_has_counts_rates_latencies_and_bins() {
    let run = only("fio-3.33-randread.json+");
    assert_eq!(version(&run), Some("3.33"));
    // fio prints when it is done.
    let started = 1_795_237_494_438_000_000 - 2_001_000_000;
    assert_eq!((run.header.started_unix_ns, run.visits[0].started_unix_ns), (started, started));
    assert_eq!(run.header.target.given, "f.dat");
    assert_eq!(run.header.target.size_bytes, 64 << 20);
    let plan = &run.cells[0].streams[0];
    assert_eq!((plan.op.as_str(), plan.block_bytes), ("read", Some(8192)));
    assert_eq!((plan.threads, plan.queue_depth), (1, 8));
    let backend = &run.visits[0].streams[0].backend;
    assert_eq!((backend.name.as_str(), backend.direct), ("libaio", true));
    assert_eq!(run.visits[0].elapsed_ns, 2_001_000_000);
    let read = reported(&run, "randread", "read");
    assert_eq!((read.requests, read.bytes), (Some(89_876), Some(736_264_192)));
    assert_eq!((read.iops, read.bytes_per_s), (Some(44_915.542_229), Some(367_948_121.0)));
    assert_eq!(read.cpu_percent, Some(9.4 + 74.5));
    let latency = &read.latency;
    assert_eq!((latency.min, latency.max), (Some(50_915), Some(7_603_479)));
    assert_eq!((latency.mean, latency.sd), (Some(176_681.480_061), Some(303_284.557_413)));
    assert_eq!((quantile(read, 0.5), quantile(read, 0.9999)), (132_096, 5_406_720));
    assert_eq!(latency.buckets.len(), 305);
    assert_eq!(latency.buckets.iter().map(|(_, n)| n).sum::<u64>(), 89_876);
    assert!(latency.buckets.is_sorted());

    let run = only("fio-3.33-randwrite.json+");
    let write = reported(&run, "randwrite", "write");
    assert_eq!((write.iops, write.requests), (Some(33_562.218_891), Some(67_158)));
    assert_eq!((write.latency.min, write.latency.max), (Some(26_720), Some(5_467_035)));
    assert_eq!(quantile(write, 0.99), 473_088);
}

#[test]
fn fio_json_behind_its_normal_output_has_both_directions() {
    let run = only("fio-3.33-mix83.normal+json.txt");
    let (read, write) = (reported(&run, "mix", "read"), reported(&run, "mix", "write"));
    assert_eq!((read.iops, write.iops), (Some(25_107.338_992), Some(5_251.622_566)));
    assert_eq!((read.requests, write.requests), (Some(50_290), Some(10_519)));
    assert_eq!((read.bytes_per_s, write.bytes_per_s), (Some(411_358_642.0), Some(86_042_584.0)));
    assert_eq!((quantile(read, 0.999), quantile(write, 0.999)), (4_112_384, 4_112_384));
    // CPU is of the job, and so of neither direction.
    assert_eq!((read.cpu_percent, write.cpu_percent), (None, None));
    let plan = &run.cells[0].streams[0];
    assert_eq!((plan.op.as_str(), plan.threads, plan.queue_depth), ("mixed", 4, 1));
    assert_eq!(setting(&run, "rwmixread"), "83");
}

#[test]
fn fio_before_3_counts_in_kib_and_us() {
    let run = only("fio-2.2-randwrite.json");
    assert_eq!(version(&run), Some("2.2.10"));
    let ran = run.visits[0].elapsed_ns.cast_signed();
    assert_eq!(run.header.started_unix_ns, 1_433_331_000_000_000_000 - ran);
    let write = reported(&run, "randwrite", "write");
    assert_eq!((write.requests, write.bytes), (Some(102_400), Some(409_600 * 1024)));
    assert_eq!((write.iops, write.bytes_per_s), (Some(10_237.15), Some(40_948.0 * 1024.0)));
    assert_eq!((write.latency.min, write.latency.mean), (Some(41_000), Some(96_710.0)));
    assert_eq!((quantile(write, 0.5), quantile(write, 0.999)), (74_000, 2_512_000));
    // It does not record its options.
    let plan = &run.cells[0].streams[0];
    assert_eq!((plan.block_bytes, plan.threads, plan.queue_depth), (None, 0, 0));
    assert_eq!(
        (run.header.target.given.as_str(), run.header.target.kind),
        ("", TargetKind::Unknown)
    );
}

#[test]
fn fio_terse_has_its_percentiles() {
    let run = only("fio-3.33-read.terse.txt");
    assert_eq!(version(&run), Some("3.33"));
    let read = reported(&run, "ter", "read");
    assert_eq!(read.bytes, Some(3_964_928 * 1024));
    assert_eq!((read.iops, read.bytes_per_s), (Some(3_868.0), Some(3_960_967.0 * 1024.0)));
    assert_eq!(read.requests, None);
    assert_eq!((read.latency.min, read.latency.max), (Some(203_000), Some(4_429_000)));
    let (mean, sd) = (read.latency.mean.unwrap(), read.latency.sd.unwrap());
    assert!((mean - 257_074.165).abs() < 1e-6 && (sd - 76_708.975).abs() < 1e-6);
    assert_eq!((quantile(read, 0.5), quantile(read, 0.9999)), (254_000, 4_423_000));
    assert_eq!(run.visits[0].elapsed_ns, 1_001_000_000);
    assert_eq!(run.cells[0].streams[0].threads, 0);
}

#[test]
fn fio_terse_of_every_version_has_its_directions() {
    let rows = [
        ("fio-3.33-read.terse2.txt", None, "t", 16_098.0, 64_460, 61_830.554, 44_000, 1_001),
        (
            "fio-3.33-read.terse5.txt",
            Some("3.33"),
            "t",
            14_835.0,
            59_520,
            67_146.016,
            43_000,
            1_003,
        ),
    ];
    for (name, fio, job, iops, kib, mean, median, ms) in rows {
        let run = only(name);
        assert_eq!(version(&run), fio, "{name}");
        assert_eq!(ops(&run, job).len(), 1, "{name}");
        let read = reported(&run, job, "read");
        assert_eq!((read.iops, read.bytes), (Some(iops), Some(kib * 1024)), "{name}");
        assert!((read.latency.mean.unwrap() - mean).abs() < 1e-6, "{name}");
        assert_eq!(quantile(read, 0.5), median, "{name}");
        assert_eq!(run.visits[0].elapsed_ns, ms * 1_000_000, "{name}");
    }
    let run = only("fio-3.33-trimwrite.terse4.txt");
    let (write, trim) = (reported(&run, "trw", "write"), reported(&run, "trw", "trim"));
    assert_eq!((write.iops, trim.iops), (Some(16_546.0), Some(16_547.0)));
    assert_eq!((trim.bytes, trim.latency.max), (Some(66_256 * 1024), Some(50_290_000)));
    assert_eq!(run.cells[0].streams[0].op, "mixed");
}

#[test]
fn fio_has_no_latency_of_what_it_did_not_time() {
    let run = only("fio-3.33-failed.json");
    assert_eq!(run.visits[0].end, record::VisitEnd::Failed);
    let [read] = ops(&run, "kb")[..] else { panic!("{run:#?}") };
    let latency = &told(read).latency;
    assert_eq!((latency.min, latency.mean, latency.max, latency.sd), (None, None, None, None));
    assert_eq!(told(read).requests, Some(1));
    // Nobody knows how long it ran, and so not when it began.
    assert_eq!((run.visits[0].elapsed_ns, run.header.started_unix_ns), (0, 0));
}

#[test]
fn sysbench_1_fileio_has_a_rate_of_each_kind() {
    // Mode, reads, writes, fsyncs a second; MiB read and written; events; sum of latencies in ms.
    let rows = [
        ("rndrd", [859_094.90, 0.0, 0.0], [6_711.68, 0.0], 1_723_008, 3_290.58, 8.04),
        ("rndrw", [41_869.99, 27_913.33, 2_795.33], [327.11, 218.07], 145_392, 3_925.76, 8.63),
        ("rndwr", [0.0, 40_370.20, 1_617.80], [0.0, 315.39], 84_134, 3_963.28, 15.51),
        ("seqrd", [838_595.52, 0.0, 0.0], [6_551.53, 0.0], 1_678_588, 3_541.67, 12.06),
        ("seqrewr", [0.0, 41_600.14, 1_666.98], [0.0, 325.00], 87_150, 3_972.25, 8.31),
        ("seqwr", [0.0, 123_908.59, 4_958.84], [0.0, 968.04], 258_125, 3_927.26, 5.43),
    ];
    for (mode, rates, moved, events, sum, max) in rows {
        let run = only(&format!("sysbench-1.0.20-fileio-{mode}.txt"));
        assert_eq!(run.header.suite, format!("sysbench-{mode}"));
        assert_eq!(version(&run), Some("1.0.20"));
        let plan = &run.cells[0].streams[0];
        assert_eq!(
            (plan.block_bytes, plan.threads, plan.queue_depth),
            (Some(8192), 2, 1),
            "{mode}"
        );
        assert_eq!(
            (run.header.target.files, run.header.target.size_bytes),
            (4, 16 << 20),
            "{mode}"
        );
        let all = ops(&run, mode);
        for (k, op) in ["read", "write", "fsync"].into_iter().enumerate() {
            let found = all.iter().find(|o| o.op == op).map(|op| told(op));
            assert_eq!(
                found.and_then(|f| f.iops),
                Some(rates[k]).filter(|r| *r > 0.0),
                "{mode} {op}"
            );
            let mib = moved.get(k).filter(|mib| **mib > 0.0);
            let rate = mib.map(|mib| mib * 1024.0 * 1024.0);
            assert_eq!(found.and_then(|f| f.bytes_per_s), rate, "{mode} {op}");
        }
        // Latency is of all kinds together.
        let whole =
            if all.len() == 1 { all[0] } else { all.iter().find(|o| o.op == "event").unwrap() };
        let whole = told(whole);
        assert_eq!(whole.requests, Some(events), "{mode}");
        let mean = whole.latency.mean.unwrap();
        assert!((mean / (sum * 1e6 / events as f64) - 1.0).abs() < 1e-12, "{mode}: {mean}");
        assert_eq!(whole.latency.max, Some((max * 1e6f64).round() as u64), "{mode}");
        // `0.00` is less than is printed, not nothing.
        assert_eq!(whole.latency.min, None, "{mode}");
        let binned: u64 = whole.latency.buckets.iter().map(|(_, n)| n).sum();
        assert_eq!(binned, events, "{mode}: the histogram has every event");
    }
}

#[test]
fn sysbench_0_4_counts_operations() {
    let run = only("sysbench-0.4-fileio-rndrd.txt");
    assert_eq!(version(&run), Some("0.4.12"));
    let read = reported(&run, "rndrd", "read");
    assert_eq!((read.requests, read.bytes), (Some(10_000), Some(10_000 * 8192)));
    assert_eq!((read.iops, read.bytes_per_s), (Some(186.61), Some(1.4579 * 1024.0 * 1024.0)));
    let latency = &read.latency;
    assert_eq!((latency.min, latency.max), (Some(120_000), Some(48_310_000)));
    assert_eq!((latency.mean, quantile(read, 0.95)), (Some(5_356_640.0), 8_920_000));
    assert_eq!(run.header.target.files, 500);
    assert_eq!(run.visits[0].elapsed_ns, 53_587_700_000);

    let run = only("sysbench-0.4-fileio-rndrw.txt");
    let count = |op: &str| reported(&run, "rndrw", op).requests;
    assert_eq!((count("read"), count("write")), (Some(6_003), Some(4_000)));
    assert_eq!((count("fsync"), count("event")), (Some(1_600), Some(10_003)));
    // One rate is printed, of reads and writes together: not taken for either.
    assert_eq!(reported(&run, "rndrw", "read").iops, None);
    assert_eq!(run.visits[0].elapsed_ns, 39_999_200_000);
}

#[test]
fn sysbench_1_1_has_rates_alone() {
    let run = only("sysbench-1.1-fileio-rndrw.txt");
    let rate = |op: &str| reported(&run, "rndrw", op).iops;
    assert_eq!((rate("read"), rate("write")), (Some(3_000.12), Some(2_000.08)));
    assert_eq!(rate("fsync"), Some(802.55));
    assert_eq!(reported(&run, "rndrw", "event").latency.mean, Some(1_380_000.0));
    assert_eq!(run.visits[0].elapsed_ns, 0);
    assert!(run.visits[0].streams[0].backend.direct);
    assert_eq!(setting(&run, "result latency sum"), "79812.44");
}

#[test]
fn sysbench_says_how_its_threads_shared_the_work() {
    let run = only("sysbench-0.4-fileio-rndrw.txt");
    assert_eq!(setting(&run, "result total time taken by event execution"), "152.7710");
    assert_eq!(setting(&run, "result events (avg/stddev)"), "2500.7500/21.30");
    assert_eq!(setting(&run, "result execution time (avg/stddev)"), "38.1927/0.41");
    let mean = reported(&run, "rndrw", "event").latency.mean.unwrap();
    assert!((mean - 152.771e9 / 10_003.0).abs() < 1e-3, "{mean}");
    // Of repeats each says its own.
    let one = String::from_utf8(sample("sysbench-0.4-fileio-rndrw.txt")).unwrap();
    let two = one.replace("152.7710", "152.7711") + &one;
    let runs = super::try_import("two", two.as_bytes()).unwrap();
    assert_eq!((runs.len(), import::alike(&runs)), (2, 2));
    let run = import::together(runs).unwrap();
    assert_eq!(run.visits.len(), 2);
    assert_eq!(setting(&run, "repeat 2: result events (avg/stddev)"), "2500.7500/21.30");
}

#[test]
fn sysbench_as_a_commit_test_is_our_suite_of_that() {
    let text = String::from_utf8(sample("sysbench-1.0.20-fileio-rndwr.txt")).unwrap();
    let text = text.replace("4 files, 16MiB each", "1 files, 8KiB each");
    let text = text.replace("each 100 requests", "each 1 requests");
    let run = super::try_import("x", text.as_bytes()).unwrap().remove(0);
    assert_eq!(
        (run.header.suite.as_str(), run.cells[0].phase.as_str()),
        ("sysbench-fsync-rate", "commit")
    );
}

#[test]
fn sysbench_oltp_has_transactions() {
    let rows = [
        // The study's, as its page has it, without blanks.
        ("sysbench-0.4-oltp-mft.txt", 50_007, 131.93, "0", 379_031_000_000u64, 242.5, 704.1),
        ("sysbench-0.5-oltp.txt", 18_001, 599.83, "3", 30_010_200_000, 26.666_913, 45.02),
        ("sysbench-1.0.20-oltp_read_write.txt", 1_784, 592.21, "25", 3_012_100_000, 6.7357, 12.98),
    ];
    for (name, count, rate, errors, elapsed, mean, p95) in rows {
        let run = only(name);
        let all = ops(&run, "oltp");
        let [only] = all.as_slice() else { panic!("{name}: {all:?}") };
        let told = told(only);
        assert_eq!((told.requests, told.iops), (Some(count), Some(rate)), "{name}");
        // The database's own, which no device is to be asked about.
        assert_eq!(only.errors_total(), 0, "{name}");
        let label = if name.contains("-0.4-") { "deadlocks" } else { "ignored errors" };
        assert_eq!(setting(&run, &format!("result {label}")), errors, "{name}");
        assert_eq!(run.visits[0].elapsed_ns, elapsed, "{name}");
        let found = told.latency.mean.unwrap() / 1e6;
        assert!((found / mean - 1.0).abs() < 1e-4, "{name}: {found}");
        assert_eq!(quantile(told, 0.95), (p95 * 1e6f64).round() as u64, "{name}");
    }
    let run = only("sysbench-0.4-oltp-mft.txt");
    assert_eq!(version(&run), None);
    assert_eq!(run.cells[0].streams[0].threads, 32);
    assert_eq!(setting(&run, "result statements read"), "700098");
}

#[test]
fn bonnie_of_the_study_has_its_three_blocks() {
    // Block write, rewrite, block read, seeks: rate and CPU; then the latencies in us.
    let rows = [
        (
            "sas6ir",
            [68_781, 125_098, 5_352_333],
            [8.0, 9.0, 99.0],
            (948.2, 6.0),
            [1_646_000, 5_768_000, 195, 100_000],
        ),
        (
            "h800",
            [92_822, 127_608, 5_275_436],
            [10.0, 9.0, 99.0],
            (825.0, 103.0),
            [1_750_000, 493_000, 194, 1_105],
        ),
        (
            "wal",
            [81_065, 126_596, 5_459_792],
            [10.0, 10.0, 99.0],
            (826.7, 103.0),
            [1_947_000, 490_000, 196, 1_512],
        ),
    ];
    for (name, rates, cpus, seeks, latencies) in rows {
        let run = only(&format!("bonnie-1.96-{name}.txt"));
        assert_eq!((version(&run), run.header.machine.host.as_str()), (Some("1.96"), "db01"));
        assert_eq!(run.header.target.size_bytes, 62 << 30);
        assert_eq!(setting(&run, "concurrency"), "4");
        let phases: Vec<_> = run.cells.iter().map(|cell| cell.phase.as_str()).collect();
        assert_eq!(phases, ["write-block", "rewrite", "read-block", "seek"], "{name}");
        for (k, phase) in phases.iter().enumerate() {
            let found = told(ops(&run, phase)[0]);
            match rates.get(k) {
                Some(kib) => {
                    let rate = f64::from(*kib) * 1024.0;
                    assert_eq!((found.bytes_per_s, found.cpu_percent), (Some(rate), Some(cpus[k])));
                }
                None => assert_eq!((found.iops, found.cpu_percent), (Some(seeks.0), Some(seeks.1))),
            }
            assert_eq!(found.latency.max, Some(latencies[k] * 1_000), "{name} {phase}");
            assert_eq!((found.latency.mean, found.requests), (None, None));
        }
    }
}

#[test]
fn bonnie_csv_says_what_its_table_says() {
    let (csv, table) = (only("bonnie-1.03.csv"), only("bonnie-1.03.txt"));
    assert_eq!(csv.cells, table.cells);
    for run in [&csv, &table] {
        let write = reported(run, "write-block", "write");
        assert_eq!(write.bytes_per_s, Some(58_211.0 * 1024.0));
        assert_eq!(reported(run, "seek", "seek").iops, Some(188.4));
        assert_eq!(reported(run, "create-in-order", "create").iops, Some(12_345.0));
        assert_eq!(reported(run, "delete-at-random", "delete").cpu_percent, Some(57.0));
        assert_eq!(setting(run, "files (x 1024)"), "16");
    }
    // `+++++`: too fast to tell.
    let stat = reported(&csv, "stat-in-order", "stat");
    assert_eq!((stat.iops, stat.cpu_percent), (None, None));
    let visit = csv.visits.iter().find(|v| csv.cells[v.cell as usize].phase == "stat-in-order");
    assert_eq!(visit.unwrap().warnings[0].code, "too-short");

    let (csv, table) = (only("bonnie-2.00.csv"), only("bonnie-2.00.table.txt"));
    assert_eq!(csv.visits.len(), 12);
    for run in [&csv, &table] {
        assert_eq!(version(run), Some("2.00a"));
        let write = reported(run, "write-byte", "write");
        assert_eq!((write.bytes_per_s, write.cpu_percent), (Some(1_045.0 * 1024.0), Some(97.0)));
        assert_eq!(write.latency.max, Some(12_181_000));
        assert_eq!(reported(run, "delete-at-random", "delete").latency.max, Some(130_000));
        assert_eq!(reported(run, "read-block", "read").bytes_per_s, None);
    }
}

#[test]
fn bonnie_csv_of_several_rounds_is_repeats_only_if_the_user_says_so() {
    let runs = import("bonnie-1.96.csv");
    assert_eq!((runs.len(), import::alike(&runs)), (2, 2));
    let run = import::together(runs).unwrap();
    let rates: Vec<_> =
        ops(&run, "write-block").iter().map(|op| told(op).bytes_per_s.unwrap() / 1024.0).collect();
    assert_eq!(rates, [68_781.0, 69_102.0]);
    assert_eq!((run.cells.len(), run.visits.len()), (4, 8));
    let fast = only("bonnie-2.00-fast.txt");
    assert!(fast.visits.iter().all(|visit| visit.warnings.len() == 1));
    assert_eq!(reported(&fast, "rewrite", "rewrite").latency.max, Some(4_114_000));
    assert_eq!(fast.cells[3].streams[0].threads, 5);
}

/// The page of a study: three controllers, and nothing in the tables that tells one from another.
#[test]
fn tables_of_three_set_ups_on_one_page_are_three_runs() {
    let names = ["bonnie-1.96-sas6ir.txt", "bonnie-1.96-h800.txt", "bonnie-1.96-wal.txt"];
    let page = names.map(|name| String::from_utf8(sample(name)).unwrap());
    let page = page.join("\nAnd the next controller:\n\n");
    let runs = super::try_import("page", page.as_bytes()).unwrap();
    let rate = |run: &Run| reported(run, "write-block", "write").bytes_per_s.unwrap() / 1024.0;
    assert_eq!(runs.iter().map(rate).collect::<Vec<_>>(), [68_781.0, 92_822.0, 81_065.0]);
    assert!(runs.iter().all(|run| (run.cells.len(), run.visits.len()) == (4, 4)));
    assert_eq!(import::alike(&runs), 3, "they differ in their figures alone");
    let whole = import::together(runs).unwrap();
    assert_eq!((whole.cells.len(), whole.visits.len()), (4, 12));
    assert_eq!(whole.visits[4].repeat, 1);
    assert_eq!(import::alike(&[whole]), 0);
}

/// As published: the head with the number of threads is not on the page.
#[test]
fn sysbench_oltp_of_a_page_keeps_what_it_tells() {
    let run = only("sysbench-0.4-oltp-mft.txt");
    let settings = &run.header.imported.as_ref().unwrap().settings;
    assert!(!settings.iter().any(|(name, _)| name == "test"), "{settings:?}");
    assert_eq!(setting(&run, "max-requests"), "50000");
    let stream = &run.cells[0].streams[0];
    // 50007 events, 1562.7188 of each thread.
    assert_eq!((stream.threads, stream.queue_depth), (32, 1));
    let remarks = &run.header.imported.as_ref().unwrap().remarks;
    assert!(remarks.iter().any(|text| text.contains("32 by the events")), "{remarks:?}");
    // With its head, every line is a setting of its own.
    let head = "sysbench 0.4.12:  multi-threaded system evaluation benchmark\n\n\
                Running the test with following options:\nNumber of threads: 32\n\n\
                Doing OLTP test.\nRunning mixed OLTP test\n\
                Using Special distribution (12 iterations,  1 pct of values are returned in 75 pct cases)\n\
                Using \"BEGIN\" for starting transactions\nUsing auto_inc on the id column\n";
    let text = head.to_owned() + std::str::from_utf8(&sample("sysbench-0.4-oltp-mft.txt")).unwrap();
    let run = super::try_import("x", text.as_bytes()).unwrap().remove(0);
    assert_eq!(run.cells[0].streams[0].threads, 32);
    assert_eq!(
        setting(&run, "transactions begin with"),
        "Using \"BEGIN\" for starting transactions"
    );
    assert_eq!(setting(&run, "auto_inc"), "Using auto_inc on the id column");
    assert!(setting(&run, "distribution").contains("12 iterations"));
    assert_eq!(setting(&run, "max-requests"), "50000");
    assert!(run.header.imported.unwrap().remarks.is_empty());
    // What no whole number of threads explains is not known.
    let odd = String::from_utf8(sample("sysbench-0.4-oltp-mft.txt")).unwrap();
    let odd = odd.replace("1562.7188", "1562.9");
    let run = super::try_import("x", odd.as_bytes()).unwrap().remove(0);
    assert_eq!(run.cells[0].streams[0].threads, 0);
}

/// A whole output of 2.00: its table rounds files a second otherwise than its line of CSV.
#[test]
fn bonnie_of_both_is_read_from_its_line_of_csv() {
    let name = "bonnie-2.00-files.txt";
    let both = only(name);
    let text = String::from_utf8(sample(name)).unwrap();
    let table: String =
        text.split_inclusive('\n').filter(|line| !line.starts_with("1.98,")).collect();
    assert_eq!(table.lines().count() + 1, text.lines().count());
    let table = super::try_import(name, table.as_bytes()).unwrap().remove(0);
    for (run, made) in [(&both, [1659.0, 1423.0]), (&table, [1024.0, 1024.0])] {
        assert_eq!(
            (run.header.machine.host.as_str(), run.header.target.size_bytes),
            ("h", 64 << 20)
        );
        for (phase, rate) in ["create-in-order", "create-at-random"].into_iter().zip(made) {
            let create = reported(run, phase, "create");
            assert_eq!((create.iops, create.cpu_percent), (Some(rate), Some(26.0)), "{phase}");
        }
        assert_eq!(reported(run, "create-in-order", "create").latency.max, Some(19_258_000));
        assert_eq!(reported(run, "write-byte", "write").bytes_per_s, Some(399.0 * 1024.0));
        assert_eq!(reported(run, "read-byte", "read").latency.max, Some(435_000_000));
        assert_eq!(reported(run, "delete-at-random", "delete").iops, None);
        assert_eq!(setting(run, "files (x 1024)"), "1");
    }
    assert_eq!(both.visits.len(), table.visits.len());
}

#[test]
fn bonnie_has_the_requests_of_our_suite() {
    let run = only("bonnie-1.03.csv");
    // A block is read and written; K/s counts it once.
    for op in ["read", "write", "rewrite"] {
        assert_eq!(reported(&run, "rewrite", op).bytes_per_s, Some(25_103.0 * 1024.0), "{op}");
    }
    // Every tenth seek writes back what it read.
    assert_eq!(reported(&run, "seek", "seek").iops, Some(188.4));
    assert_eq!(reported(&run, "seek", "read").iops, Some(188.4));
    assert_eq!(reported(&run, "seek", "write").iops, Some(18.84));
    let view = explain::View::new(&run);
    let rate = |phase: &str| {
        let cell = view.cells.iter().find(|cell| cell.cell.phase == phase).unwrap();
        cell.visits[0].requests_per_second
    };
    assert!((rate("rewrite") / (2.0 * 25_103.0 / 8.0) - 1.0).abs() < 1e-12);
    assert!((rate("seek") / (1.1 * 188.4) - 1.0).abs() < 1e-12);
}

#[test]
fn ioping_with_pauses_has_their_rate() {
    let run = only("ioping-1.3.txt");
    let read = reported(&run, "latency", "read");
    assert_eq!((read.requests, read.bytes), (Some(4), Some(16 << 10)));
    // 4 requests in 800.4 ms.
    assert!((read.iops.unwrap() - 4.0 / 0.8004).abs() < 1e-9, "{:?}", read.iops);
    assert_eq!(run.visits[0].elapsed_ns, 800_400_000);
    assert!(setting(&run, "result completed").contains("4.78 k iops"));
    let latency = &read.latency;
    assert_eq!((latency.min, latency.max), (Some(189_100), Some(221_100)));
    assert_eq!((latency.mean, latency.sd), (Some(209_300.0), Some(12_300.0)));
    assert_eq!(run.cells[0].streams[0].block_bytes, Some(4096));
    assert_eq!(run.header.target.file_system.as_deref(), Some("ext4"));

    let run = only("ioping-1.3-batch.txt");
    let read = reported(&run, "latency", "read");
    assert_eq!(read.requests, Some(4));
    assert!((read.iops.unwrap() - 4.0 / 0.400_300_436).abs() < 1e-9, "{:?}", read.iops);
    assert_eq!((read.bytes_per_s, read.latency.min), (None, Some(140_162)));
    assert_eq!((read.latency.mean, read.latency.sd), (Some(176_510.0), Some(29_633.0)));
}

#[test]
fn ioping_without_pauses_keeps_what_it_completed() {
    let run = only("ioping-1.3-seek-rate.txt");
    let read = reported(&run, "seek-rate", "read");
    // `10.3 k` and `40.3 MiB` are no counts.
    assert_eq!((read.requests, read.bytes), (None, None));
    assert_eq!((read.iops, read.latency.max), (Some(11_000.0), Some(5_130_000)));
    assert_eq!(run.visits[0].elapsed_ns, 940_200_000);
    let text = String::from_utf8(sample("ioping-1.3-seek-rate.txt")).unwrap();
    let large = text.replace("42.9 MiB/s", "2.69 GiB/s");
    let run = super::try_import("x", large.as_bytes()).unwrap().remove(0);
    assert_eq!(run.cells[0].phase, "sequential");
}

#[test]
fn pg_test_fsync_has_every_method() {
    let run = only("pg_test_fsync-15.txt");
    let rate = |phase: &str, op: &str| {
        let found = ops(&run, phase).into_iter().find(|found| found.op == op);
        found.and_then(|op| told(op).iops)
    };
    let methods = ["open-datasync", "fdatasync", "fsync", "fsync-writethrough", "open-sync"];
    let commits = |words: &str, op: &str| methods.map(|m| rate(&format!("{words}-{m}"), op));
    let one = [Some(5_910.119), Some(5_312.405), Some(3_449.052), None, Some(300.817)];
    assert_eq!(commits("one", "commit"), one);
    let two = [Some(245.760), Some(269.416), Some(288.154), None, Some(130.826)];
    assert_eq!(commits("two", "commit"), two);
    assert_eq!(at(&run, "split", "commit_writes"), ["1", "2", "4", "8", "16"]);
    let split: Vec<_> = ops(&run, "split").into_iter().map(|op| told(op).iops.unwrap()).collect();
    assert_eq!(split, [309.890, 129.579, 294.696, 122.623, 18.483]);
    let other: Vec<_> = ops(&run, "other-descriptor").into_iter().map(|op| told(op).iops).collect();
    assert_eq!(other, [Some(2_818.759), Some(294.830)]);
    assert_eq!(rate("unflushed", "write"), Some(693_582.627));
    let first = told(ops(&run, "one-open-datasync")[0]);
    assert_eq!((first.latency.mean, first.requests), (Some(169_000.0), None));
    assert_eq!(reported(&run, "one-fsync", "commit").latency.mean, Some(290_000.0));
    assert_eq!(run.visits[0].elapsed_ns, 1_000_000_000);
    // `n/a` has a cell and no visit, and is named.
    let remarks = &run.header.imported.as_ref().unwrap().remarks;
    assert!(remarks[0].contains("one-fsync-writethrough, two-fsync-writethrough"), "{remarks:?}");
    // O_DIRECT is of the open methods only.
    let direct = |k: usize| run.visits[k].streams[0].backend.direct;
    assert_eq!([direct(0), direct(1), direct(3)], [true, false, true]);
}

#[test]
fn pgbench_has_transactions_without_connecting() {
    let run = only("pgbench-15.txt");
    let found = reported(&run, "pgbench", "transaction");
    assert_eq!((found.requests, found.iops), (Some(6_510), Some(2_172.354_108)));
    assert_eq!((found.latency.mean, found.latency.sd), (Some(1_832_000.0), Some(686_000.0)));
    assert_eq!(run.cells[0].streams[0].threads, 4);
    assert_eq!(run.visits[0].elapsed_ns, 3_000_000_000);
    assert!(version(&run).unwrap().starts_with("15.20"));
    let run = only("pgbench-9.6.txt");
    let found = reported(&run, "pgbench", "transaction");
    assert_eq!((found.requests, found.iops), (Some(71_234), Some(1_187.466_001)));
    assert_eq!((found.latency.mean, found.latency.sd), (Some(13_478_000.0), None));
    assert_eq!((version(&run), setting(&run, "scaling factor")), (None, "100"));
}

#[test]
fn iozone_has_its_grid_and_its_throughput() {
    let run = only("iozone-auto.txt");
    assert_eq!(version(&run), Some("3.414"));
    assert_eq!(run.cells.len(), 3 * 13);
    let kib = |phase: &str| -> Vec<f64> {
        ops(&run, phase).iter().map(|op| told(op).bytes_per_s.unwrap() / 1024.0).collect()
    };
    assert_eq!(at(&run, "write", "record_size").len() + at(&run, "write", "block_size").len(), 3);
    assert_eq!(kib("write"), [172_945.0, 184_310.0, 191_007.0]);
    assert_eq!(kib("random-write"), [374_157.0, 380_015.0, 391_777.0]);
    assert_eq!(kib("record-rewrite"), [240_642.0, 251_007.0, 260_335.0]);
    assert_eq!(kib("refread"), [1_450_619.0, 1_460_901.0, 1_470_338.0]);

    let run = only("iozone-some.txt");
    let rate = |phase: &str| told(ops(&run, phase)[0]).bytes_per_s.unwrap() / 1024.0;
    let phases: Vec<_> = run.cells.iter().map(|cell| cell.phase.as_str()).collect();
    assert_eq!(phases, ["write", "rewrite", "random-read", "random-write", "stride-read"]);
    assert_eq!((rate("write"), rate("rewrite")), (31_782.0, 22_524.0));
    assert_eq!((rate("random-read"), rate("random-write")), (816_017.0, 10_411.0));
    assert_eq!(rate("stride-read"), 3_779_260.0);

    let run = only("iozone-throughput.txt");
    let rate = |phase: &str| told(ops(&run, phase)[0]).bytes_per_s.unwrap() / 1024.0;
    assert_eq!((rate("write"), rate("rewrite")), (473_258.09, 483_774.94));
    assert_eq!((rate("read"), rate("random-read")), (592_137.09, 301_776.50));
    assert_eq!(run.cells[0].streams[0].threads, 12);
}

#[test]
fn orion_has_its_best_points_and_its_matrices() {
    let run = only("orion-simple-summary.txt");
    assert_eq!(version(&run), Some("11.1.0.7.0"));
    let large = told(ops(&run, "large")[0]);
    assert_eq!(large.bytes_per_s, Some(84.55 * 1024.0 * 1024.0));
    let small: Vec<_> = ops(&run, "small").into_iter().map(told).collect();
    assert_eq!((small[0].iops, small[0].latency.mean), (Some(5_120.0), None));
    assert_eq!((small[1].iops, small[1].latency.mean), (None, Some(330_000.0)));
    assert_eq!(at(&run, "small", "queue_depth"), ["5", "1"]);

    let run = only("orion-oltp-summary.txt");
    let small: Vec<_> = ops(&run, "small").into_iter().map(told).collect();
    assert_eq!(small[0].iops, Some(9_899.0));
    let latency = &small[0].latency;
    assert_eq!((latency.min, latency.max), (Some(791_000), Some(12_316_000)));
    assert_eq!((latency.mean, latency.sd), (Some(1_711_000.0), Some(454_000.0)));
    assert_eq!(small[1].latency.mean, Some(123_580.0));
    assert_eq!(
        (run.header.target.given.as_str(), run.header.target.kind),
        ("/dev/sdb", TargetKind::BlockDevice)
    );

    let run = only("orion_iops.csv");
    let rates: Vec<_> = ops(&run, "small").iter().map(|op| told(op).iops.unwrap()).collect();
    assert_eq!(rates, [3_011.0, 4_120.0, 4_702.0, 4_988.0, 5_120.0]);
    assert_eq!(at(&run, "small", "small"), ["1", "2", "3", "4", "5"]);
    let run = only("orion_lat.csv");
    let means: Vec<_> =
        ops(&run, "small").iter().map(|op| told(op).latency.mean.unwrap()).collect();
    assert_eq!(means, [330_000.0, 480_000.0, 640_000.0, 800_000.0, 980_000.0]);
    let run = only("orion_mbps.csv");
    let rates: Vec<_> = ops(&run, "large").iter().map(|op| told(op).bytes_per_s.unwrap()).collect();
    assert_eq!(rates, [61.2 * 1024.0 * 1024.0, 84.55 * 1024.0 * 1024.0]);
}

#[test]
fn xdd_has_a_visit_per_pass() {
    let run = only("xdd.txt");
    assert_eq!(version(&run), Some("7.0.0.rc"));
    assert_eq!(at(&run, "pass", "block_size"), ["8KiB"]);
    let all: Vec<_> = ops(&run, "pass").into_iter().map(told).collect();
    let rates: Vec<_> = all.iter().map(|op| op.iops.unwrap()).collect();
    assert_eq!(rates, [8_469.235, 8_440.602, 8_485.684]);
    assert_eq!((all[0].requests, all[0].bytes), (Some(2_097_152), Some(17_179_869_184)));
    assert_eq!((all[0].bytes_per_s, all[0].cpu_percent), (Some(69.38e6), Some(152.2)));
    assert_eq!(all[0].latency.mean, Some(15_114_000.0));
    let plan = &run.cells[0].streams[0];
    assert_eq!((plan.block_bytes, plan.queue_depth), (Some(8192), 128));
    assert_eq!(run.visits[0].elapsed_ns, 247_620_000_000);
}

#[test]
fn iometer_has_a_cell_per_block_of_results() {
    let run = only("iometer.csv");
    assert_eq!(version(&run), Some("1.1.0"));
    assert_eq!(at(&run, "levels", "queue_depth"), ["1", "4"]);
    assert_eq!(run.cells[0].streams[0].name, "Database");
    let remarks = &run.header.imported.as_ref().unwrap().remarks;
    assert!(remarks.iter().any(|r| r.contains("aligned to 8192 bytes")), "{remarks:?}");
    let of = |op: &str| -> Vec<Reported> {
        let all = ops(&run, "levels").into_iter().filter(|o| o.op == op);
        all.map(|op| told(op).clone()).collect()
    };
    let (read, write) = (of("read"), of("write"));
    assert_eq!((read[0].iops, write[0].iops), (Some(1_010.25), Some(497.5)));
    assert_eq!((read[1].iops, write[1].iops), (Some(3_800.5), Some(1_871.75)));
    assert_eq!((read[0].requests, read[0].bytes), (Some(30_307), Some(248_274_944)));
    assert_eq!(read[0].bytes_per_s, Some(7.892_578 * 1024.0 * 1024.0));
    let latency = &write[0].latency;
    assert_eq!((latency.mean, latency.max), (Some(795_888.0), Some(71_902_000)));
    assert_eq!(run.cells[0].streams[0].block_bytes, Some(8192));
}

#[test]
fn repeats_in_files_of_their_own_are_put_together() {
    let runs = || vec![only("pgbench-15.txt"), only("pgbench-15.txt")];
    let run = import::together(runs()).unwrap();
    assert_eq!((run.cells.len(), run.visits.len()), (1, 2));
    assert_eq!((run.visits[1].repeat, run.visits[1].order), (1, 1));
    assert_eq!(run.header.visits_planned, 2);
    let other = import("pgbench-9.6.txt");
    let error = import::together([runs(), other].concat()).unwrap_err();
    assert!(
        error.to_string().starts_with("pgbench-9.6.txt: no repeat of pgbench-15.txt"),
        "{error}"
    );
}

#[test]
fn another_place_is_no_repeat() {
    type Change = fn(&mut record::RunHeader, &str);
    let mut runs = vec![only("pgbench-15.txt"), only("pgbench-15.txt")];
    let changes: [(&str, Change); 4] = [
        ("file system", |header, to| {
            header.target.file_system = Some(to.to_owned()).filter(|to| !to.is_empty());
        }),
        ("target", |header, to| header.target.given = to.to_owned()),
        ("host", |header, to| header.machine.host = to.to_owned()),
        ("version", |header, to| {
            header.imported.as_mut().unwrap().version = Some(to.to_owned());
        }),
    ];
    for (what, change) in changes {
        let before = runs.clone();
        change(&mut runs[0].header, "one");
        change(&mut runs[1].header, "other");
        let error = import::together(runs.clone()).unwrap_err().to_string();
        assert!(error.contains(&format!("{what} `other` against `one`")), "{error}");
        change(&mut runs[1].header, "");
        assert!(import::together(runs).is_ok(), "unknown is no difference");
        runs = before;
    }
    type Number = fn(&mut record::RunHeader, u32);
    let numbers: [(&str, Number); 2] = [
        ("size in bytes", |header, to| header.target.size_bytes = to.into()),
        ("number of files", |header, to| header.target.files = to),
    ];
    for (what, change) in numbers {
        let before = runs.clone();
        change(&mut runs[0].header, 1);
        change(&mut runs[1].header, 2);
        let error = import::together(runs.clone()).unwrap_err().to_string();
        assert!(error.contains(&format!("{what} `2` against `1`")), "{error}");
        change(&mut runs[1].header, 0);
        assert!(import::together(runs).is_ok(), "unknown is no difference");
        runs = before;
    }
}

#[test]
fn another_test_is_no_repeat() {
    let pair = || vec![only("pgbench-15.txt"), only("pgbench-15.txt")];
    let refused = |runs| import::together(runs).unwrap_err();
    let mut runs = pair();
    runs[1].cells[0].streams[0].threads += 1;
    let error = refused(runs);
    assert!(error.to_string().contains("its cells or settings differ"), "{error}");
    assert!(error.hint().unwrap().contains("without `--together`"), "{error}");
    let mut runs = pair();
    runs[1].header.suite = "another".to_owned();
    assert!(refused(runs).to_string().contains("another against pgbench"));
    let mut runs = pair();
    runs[1].header.imported.as_mut().unwrap().tool = "another".to_owned();
    assert!(refused(runs).to_string().contains("no repeat of pgbench-15.txt"));
}
