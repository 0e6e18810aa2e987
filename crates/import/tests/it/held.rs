//! One part of an output held against another: what does not add up is refused, and what is there
//! twice counts once.

use record::Run;

use super::{only, sample, try_import};

fn text(name: &str) -> String {
    String::from_utf8(sample(name)).unwrap()
}

/// The text without its line `number`, from 1.
fn without(text: &str, number: usize) -> String {
    let lines = text.split_inclusive('\n').enumerate();
    lines.filter(|(k, _)| k + 1 != number).map(|(_, line)| line).collect()
}

/// The number of the first line with `mark`.
fn line_of(text: &str, mark: &str) -> usize {
    text.lines().position(|line| line.contains(mark)).unwrap() + 1
}

fn refused(text: &str) -> (usize, String) {
    let error = try_import("x", text.as_bytes()).unwrap_err();
    (error.line().unwrap(), error.to_string())
}

fn taken(text: &str) -> Vec<Run> {
    try_import("x", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn codes(run: &Run) -> Vec<&str> {
    run.header.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn bins_of_sysbench_hold_every_event() {
    let whole = text("sysbench-1.0.20-fileio-rndwr.txt");
    let head = line_of(&whole, "Latency histogram");
    for nth in [head + 2, head + 40, head + 90] {
        let short = without(&whole, nth);
        let (line, told) = refused(&short);
        assert_eq!(line, line_of(&short, "total number of events:"), "{told}");
        assert!(told.contains("as many as its histogram has"), "{told}");
    }
    // None of them at all.
    let none: Vec<&str> = whole.lines().filter(|line| !line.contains(" |")).collect();
    assert!(refused(&(none.join("\n") + "\n")).1.contains("as many as its histogram has, 0"));
    // Reports in between are of the whole histogram, which stands below them.
    let interval = "[ 1s ] reads: 0.00 MiB/s writes: 377.82 MiB/s fsyncs: 1932.44/s \
                    latency (ms,95%): 0.006\nLatency histogram";
    assert_eq!(taken(&whole.replace("Latency histogram", interval))[0].visits.len(), 1);
}

#[test]
fn checkpoints_of_sysbench_are_of_parts_and_refused() {
    let whole = text("sysbench-1.0.20-fileio-rndwr.txt");
    let bent = whole.replace("Threads started!", "Threads started!\n[ 1s ] Checkpoint report:");
    let (line, told) = refused(&bent);
    assert_eq!(line, line_of(&bent, "Checkpoint report"));
    assert!(told.contains("--report-checkpoints"), "{told}");
}

#[test]
fn sysbench_need_not_have_a_percentile() {
    let whole = text("sysbench-1.0.20-fileio-rndwr.txt");
    let line = whole.lines().find(|line| line.contains("95th percentile:")).unwrap();
    let none = whole.replace(line, "         percentile stats:               disabled");
    let before = super::ops(&only("sysbench-1.0.20-fileio-rndwr.txt"), "rndwr")[0].clone();
    let run = taken(&none).remove(0);
    let told = |op: &record::OpRecord| op.reported.clone().unwrap().latency;
    let (mut before, found) = (told(&before), told(super::ops(&run, "rndwr")[0]));
    before.quantiles.clear();
    assert_eq!(found, before);
}

#[test]
fn bins_of_fio_hold_every_request() {
    let whole = text("fio-3.33-randread.json+");
    let head = line_of(&whole, "\"bins\" : {");
    for nth in [head + 1, head + 100] {
        let (line, told) = refused(&without(&whole, nth));
        assert!(line > nth, "{told}");
        assert!(told.contains("requests in the bins, expected the 89876 of `N`"), "{told}");
    }
}

/// Half of it is thrice in a file with one figure changed.
#[test]
fn copies_in_one_output_are_one_measurement() {
    for name in [
        "sysbench-1.0.20-fileio-rndwr.txt",
        "sysbench-1.0.20-oltp_read_write.txt",
        "bonnie-2.00.csv",
        "bonnie-2.00.table.txt",
        "pgbench-15.txt",
        "ioping-1.3-batch.txt",
        "ioping-1.3.txt",
        "fio-3.33-read.terse.txt",
        "fio-3.33-randread.json+",
    ] {
        let once = try_import(name, &sample(name)).unwrap();
        let thrice = [sample(name), sample(name), sample(name)].join(&b'\n');
        let runs = try_import(name, &thrice).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(runs.len(), once.len(), "{name}");
        assert_eq!(runs[0].visits, once[0].visits, "{name}");
        assert_eq!(codes(&runs[0]), ["copies"], "{name}");
        assert!(runs[0].header.warnings[0].text.starts_with("2 outputs of this file"), "{name}");
        assert_eq!(codes(&once[0]), [""; 0], "{name}");
    }
}

#[test]
fn snapshots_of_fio_are_of_one_execution() {
    let last = text("fio-3.33-randread.json+");
    let earlier = |ms: &str, requests: &str| {
        let text =
            last.replace("\"timestamp_ms\" : 1795237494438", &format!("\"timestamp_ms\" : {ms}"));
        text.replace("\"total_ios\" : 89876", &format!("\"total_ios\" : {requests}"))
    };
    let (first, second) = (earlier("1795237492938", "20000"), earlier("1795237493438", "40000"));
    let runs = taken(&(first.clone() + &second + &last));
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].visits, only("fio-3.33-randread.json+").visits);
    assert_eq!(codes(&runs[0]), ["snapshots"]);
    assert!(runs[0].header.warnings[0].text.starts_with("2 outputs before"));
    // One that had done more before, and one that began when the other was done.
    let more = earlier("1795237493438", "90000");
    assert_eq!(taken(&(more + &last)).len(), 2);
    let done = earlier("1795237492436", "20000");
    assert_eq!(taken(&(done + &last)).len(), 2);
}

/// As a page collapses them.
#[test]
fn figures_without_blanks_are_of_no_column() {
    let table = "Version 2.00a       ------Sequential Output------ --Sequential Input- --Random-\n\
        \x20                   -Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--\n\
        Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n\
        host1           64M           +++++ +++ +++++ +++           +++++ +++ +++++ +++\n\
        Latency                        9070us   16102us             12344us   12164us\n\n";
    let phases = |run: &Run| run.cells.iter().map(|c| c.phase.clone()).collect::<Vec<_>>();
    let run = taken(table).remove(0);
    assert_eq!(phases(&run), ["write-block", "rewrite", "read-block", "seek"]);
    let collapse = |by: &str| {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(by) + "\n";
        table.lines().map(words).collect::<String>()
    };
    for by in [" ", "\t"] {
        let told = try_import("x", collapse(by).as_bytes()).unwrap_err().to_string();
        if by == " " {
            assert!(told.starts_with("x:4:") && told.contains("blanks are missing"), "{told}");
        }
    }
}

#[test]
fn a_bent_line_of_csv_is_not_passed_over() {
    let row = text("bonnie-2.00.csv");
    let row = row.lines().find(|line| line.starts_with("1.98,")).unwrap();
    for (from, to) in
        [("1.98,", "1;98,"), ("1.98,", "NaN,"), ("1.98,", ""), ("1.98,", "1.98,1;98,")]
    {
        let text = format!("{row}\n{}\n", row.replacen(from, to, 1));
        let (line, told) = refused(&text);
        assert_eq!(line, 2, "{told}");
    }
    // The names of the fields may stand above.
    let names = (0..50).map(|k| format!("name{k}")).collect::<Vec<_>>().join(",");
    assert_eq!(taken(&format!("{names}\n{row}\n")).len(), 1);
}

/// bm-flash tells neither how long a test took nor how large its file is.
#[test]
fn no_cache_is_full_of_what_nobody_told() {
    let run = only("bm-flash-raid5-4.txt");
    let told = explain::gap::gaps(&explain::View::new(&run)).sentences().join("\n");
    assert!(told.contains("Gap, not confirmed"), "{told}");
    assert!(!told.contains("cache that was full"), "{told}");
}
