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
        "xdd.txt",
        "iometer.csv",
        "pg_test_fsync-15.txt",
        "sysbench-0.4-oltp-mft.txt",
    ] {
        let once = try_import(name, &sample(name)).unwrap();
        let thrice = [sample(name), sample(name), sample(name)].join(&b'\n');
        let runs = try_import(name, &thrice).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(runs.len(), once.len(), "{name}");
        assert_eq!(runs[0].visits, once[0].visits, "{name}");
        assert_eq!(codes(&runs[0]), ["copies"], "{name}");
        let left_out = if name == "iometer.csv" { 4 } else { 2 };
        let told = format!("{left_out} outputs of this file");
        assert!(runs[0].header.warnings[0].text.starts_with(&told), "{name}");
        assert_eq!(codes(&once[0]), [""; 0], "{name}");
    }
}

/// Figures of a second output, which differ from the first's.
fn other(name: &str, pairs: &[(&str, &str)]) -> String {
    let mut other = text(name);
    for (from, to) in pairs {
        assert!(other.contains(from), "{name}: {from}");
        other = other.replace(from, to);
    }
    other
}

/// Side by side they would be targets, and their rates would add up.
#[test]
fn outputs_of_xdd_one_behind_the_other_are_runs() {
    let second = other("xdd.txt", &[("8469.235", "8470.235"), ("8440.602", "8441.602")]);
    let runs = taken(&(text("xdd.txt") + &second));
    let before = only("xdd.txt");
    assert_eq!((runs.len(), runs[1].cells.clone()), (2, before.cells));
    let whole = import::together(runs).unwrap();
    assert_eq!(whole.visits.len(), 6);
    assert!(whole.visits.iter().all(|visit| visit.streams.len() == 1));
    assert_eq!(codes(&whole), [""; 0]);
    // Of another target or size they are another run.
    let of = |target: &str| {
        text("xdd.txt").replace("Request size", &format!("Target device, {target}\nRequest size"))
    };
    let runs = taken(&(of("/dev/a") + &of("/dev/b")));
    let targets: Vec<&str> = runs.iter().map(|run| run.header.target.given.as_str()).collect();
    assert_eq!(targets, ["/dev/a", "/dev/b"]);
    let large = text("xdd.txt").replace("        8192\n", "       16384\n");
    assert_eq!(taken(&(text("xdd.txt") + &large)).len(), 2);
    // One that was cut, and two that run into each other.
    let cut = second.split("COMBINED").next().unwrap();
    assert!(refused(&(text("xdd.txt") + cut)).1.contains("wanted the line `COMBINED`"));
    let (line, told) = refused(&(cut.to_owned() + &second));
    assert!(
        line > cut.lines().count() && told.contains("a pass of a target that has no"),
        "{told}"
    );
}

/// Behind the last line of the one before, whatever was pasted of its head.
#[test]
fn a_second_output_in_a_file_is_not_dropped() {
    let name = "pg_test_fsync-15.txt";
    let second = other(name, &[("5910.119", "5911.119")]);
    let headless: String = second.split_inclusive('\n').skip(3).collect();
    for second in [second, headless] {
        let runs = taken(&(text(name) + &second));
        let rate =
            |run: &Run| super::ops(run, "one-open-datasync")[0].reported.clone().unwrap().iops;
        let rates: Vec<_> = runs.iter().map(rate).collect();
        assert_eq!(rates, [Some(5910.119), Some(5911.119)]);
        let cut = second.split("Non-sync").next().unwrap();
        assert!(refused(&(text(name) + cut)).1.contains("wanted `Non-sync`"));
        assert!(refused(&(cut.to_owned() + &text(name))).1.contains("wanted `Non-sync`"));
    }
    for (name, from, to) in [
        ("sysbench-0.4-oltp-mft.txt", "131.93", "132.93"),
        ("sysbench-0.4-fileio-rndrd.txt", "10000.0000/0.00", "110000.0000/0.00"),
        ("sysbench-1.0.20-fileio-seqwr.txt", "129062.5000/707.50", "1129062.5000/707.50"),
    ] {
        let second = other(name, &[(from, to)]);
        let second: String =
            second.split_inclusive('\n').filter(|line| !line.starts_with("sysbench")).collect();
        let runs = taken(&(text(name) + &second));
        let visits: usize = runs.iter().map(|run| run.visits.len()).sum();
        assert_eq!(visits, 2, "{name}");
        // Of the first its end is missing.
        let cut = second.split("total time:").next().unwrap();
        let (_, told) = refused(&(cut.to_owned() + &second));
        assert!(told.contains("wanted the head of another output before it"), "{name}: {told}");
    }
    let name = "sysbench-1.1-fileio-rndrw.txt";
    let headless: String =
        text(name).split_inclusive('\n').filter(|line| !line.starts_with("sysbench")).collect();
    let (_, told) = refused(&(text(name) + &headless));
    assert!(told.contains("wanted the head of another output"), "{told}");
}

#[test]
fn a_row_with_more_fields_than_heads_is_refused() {
    let decimal_comma = |text: &str| -> String {
        let is_point = |chars: &[char]| {
            chars[1] == '.' && chars[0].is_ascii_digit() && chars[2].is_ascii_digit()
        };
        let chars: Vec<char> = text.chars().collect();
        let comma = |k: usize| k > 0 && chars.get(k - 1..k + 2).is_some_and(is_point);
        chars.iter().enumerate().map(|(k, c)| if comma(k) { ',' } else { *c }).collect()
    };
    for name in ["orion_mbps.csv", "orion_lat.csv", "iometer.csv"] {
        let text = text(name);
        let version = text.find("'Results").unwrap_or(0);
        let bent = text[..version].to_owned() + &decimal_comma(&text[version..]);
        let error = try_import(name, bent.as_bytes()).unwrap_err().to_string();
        assert!(error.contains("fields, as there are heads, of"), "{name}: {error}");
    }
    // A comma in the name of a specification.
    let bent = text("iometer.csv").replace("ALL,All,Database,", "ALL,All,Data, base,");
    assert!(refused(&bent).1.contains("fields, as there are heads, of"));
}

#[test]
fn a_row_of_iometer_is_held_against_itself() {
    for (from, to, sum) in [
        ("1507.750000,1010.250000", "1507.750000,1011.250000", "1508.750000"),
        ("11.779297,7.892578", "11.789297,7.892578", "11.779297"),
    ] {
        let bent = text("iometer.csv").replacen(from, to, 1);
        let (line, told) = refused(&bent);
        assert_eq!(line, line_of(&bent, "ALL,"), "{told}");
        assert!(told.contains(&format!("the sum of those of reads and writes, {sum}")), "{told}");
    }
    for (from, to) in [(",0,0,4,12.5", ",0,0,4x,12.5"), (",0,0,4,12.5", ",0,0,+4,12.5")] {
        let (_, told) = refused(&text("iometer.csv").replacen(from, to, 1));
        assert!(told.contains("Queue Depth, a whole number"), "{told}");
    }
    // Of two files: one name of two specifications.
    let second = text("iometer.csv").replace("8192,100,67,", "4096,100,67,");
    let (_, told) = refused(&(text("iometer.csv") + &second));
    assert!(told.contains("the lines of that name before it"), "{told}");
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
    let told = finding::texts(&explain::gap::gaps(&explain::View::new(&run)).findings()).join("\n");
    assert!(told.contains("Gap, not confirmed"), "{told}");
    assert!(!told.contains("cache that was full"), "{told}");
}

/// They are there, and `export` writes them.
#[test]
fn bins_of_another_tool_are_not_said_to_be_missing() {
    let told = |name: &str| {
        let run = only(name);
        finding::texts(&explain::latency::latencies(&explain::View::new(&run)).findings())
            .join("\n")
    };
    for (name, has_bins) in [
        ("fio-3.33-randread.json+", true),
        ("sysbench-1.0.20-fileio-rndrd.txt", true),
        ("sysbench-1.0.20-oltp_read_write.txt", false),
        ("pgbench-15.txt", false),
    ] {
        let run = only(name);
        let found = told(name);
        assert!(found.contains("how long requests wait is unknown"), "{found}");
        assert_eq!(found.contains("there is no histogram of latencies"), !has_bins, "{found}");
        assert_eq!(found.contains("bins that another tool printed"), has_bins, "{found}");
        assert_eq!(report::hlog(&run).is_ok_and(|log| log.contains("Tag=")), has_bins, "{name}");
    }
}

/// What only one parser reads would be all that is kept.
#[test]
fn outputs_of_two_tools_in_one_file_are_refused() {
    let mixed = |names: [&str; 2]| names.map(text).join("\n");
    for (names, told) in [
        (["fio-3.33-randread.json+", "ioping-1.3.txt"], "what fio JSON prints, and what ioping"),
        (["ioping-1.3.txt", "pgbench-15.txt"], "what pgbench prints, and what ioping"),
        (["xdd.txt", "iozone-some.txt"], "what IOZone prints, and what xdd"),
        (["bm-flash-raid0-12.txt", "pgbench-15.txt"], "what pgbench prints, and what bm-flash"),
        (
            ["bonnie-2.00.table.txt", "fio-3.33-randread.json+"],
            "what fio JSON prints, and what bonn",
        ),
    ] {
        let error = try_import("x", mixed(names).as_bytes()).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(error.hint().unwrap().contains("files of their own"));
    }
    let both = mixed(["orion-simple-summary.txt", "orion_iops.csv"]);
    assert!(refused(&both).1.contains("its summary is another file"));
    // Who names a tool has that alone.
    let origin = import::Origin { file: "x".to_owned(), ..import::Origin::default() };
    let both = mixed(["ioping-1.3.txt", "pgbench-15.txt"]);
    let runs = import::read(both.as_bytes(), Some(import::Tool::Pgbench), &origin).unwrap();
    assert_eq!(runs.len(), 1);
}

/// An interval over both would be of neither.
#[test]
fn what_was_asked_otherwise_is_no_repeat() {
    for (name, from, to, told) in [
        (
            "fio-3.33-randread.json+",
            "\"direct\" : \"1\"",
            "\"direct\" : \"0\"",
            "direct `0` against `1`",
        ),
        (
            "pgbench-15.txt",
            "scaling factor: 2",
            "scaling factor: 1000",
            "scaling factor `1000` against `2`",
        ),
        ("sysbench-1.0.20-fileio-rndwr.txt", "each 100 requests", "each 1 requests", "fsync `"),
    ] {
        let runs = [text(name), other(name, &[(from, to)])].map(|text| taken(&text).remove(0));
        let error = import::together(runs.to_vec()).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("of neither"), "{name}: {error}");
        let runs = [text(name), text(name)].map(|text| taken(&text).remove(0));
        assert!(import::together(runs.to_vec()).is_ok(), "{name}");
    }
}

/// Its first and last line of the head say it in other words than that of kB/s.
#[test]
fn units_of_iozone_stand_in_its_line_of_the_mode() {
    let with = |line: &str| {
        let text = text("iozone-some.txt");
        let old = text.lines().find(|line| line.contains("Output is in")).unwrap();
        taken(&text.replace(old, line)).remove(0)
    };
    let told = |run: &Run| super::ops(run, "write")[0].reported.clone().unwrap();
    let rate = told(&only("iozone-some.txt")).bytes_per_s.unwrap() / 1024.0;
    let ops = told(&with("\tOPS Mode. Output is in operations per second."));
    assert_eq!(ops.iops, Some(rate));
    let us = told(&with("\tMicroseconds/op Mode. Output is in microseconds per operation."));
    assert_eq!((us.latency.mean, us.bytes_per_s), (Some(rate * 1e3), None));
    let none = with("");
    assert_eq!(told(&none).bytes_per_s, Some(rate * 1024.0));
    let remarks = none.header.imported.unwrap().remarks;
    assert!(remarks.iter().any(|text| text.contains("taken for kB/s")), "{remarks:?}");
}

/// `ioping -c 6 -i 0.1 -p 2 -B`: lines of two, and one of all.
#[test]
fn lines_of_parts_of_ioping_are_no_repeats() {
    let lines = "2 9084 220167 901805372 4387 4542 4697 155 3 200876706\n\
                 2 13840 144509 591907514 5087 6920 8753 1833 2 199236408\n";
    let all = "5 29815 167701 686902566 4387 5963 8753 1643 6 502614955\n";
    let run = taken(&(lines.to_owned() + all)).remove(0);
    assert_eq!((run.visits.len(), codes(&run)), (1, vec!["snapshots"]));
    assert_eq!(run.visits[0].streams[0].ops[0].requests, 5);
    // Without it they are repeats, and so are lines that are not of its time.
    assert_eq!(taken(lines)[0].visits.len(), 2);
    let longer = all.replace(" 502614955", " 302614955");
    assert_eq!(taken(&(lines.to_owned() + &longer))[0].visits.len(), 3);
}

#[test]
fn zeros_of_nothing_are_unknown() {
    let latency = |run: &Run| run.visits[0].streams[0].ops[0].reported.clone().unwrap().latency;
    let none = "--- f (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n\
                0 requests completed in 0 ns, 0 B read, 0 iops, 0 B/s\n\
                generated 1 requests in 16.1 us, 4 KiB, 62.1 k iops, 242.4 MiB/s\n\
                min/avg/max/mdev = 0 ns / 0 ns / 0 ns / 0 ns\n";
    let pgbench =
        text("pgbench-15.txt").replace("latency average = 1.832 ms", "latency average = 0.000 ms");
    let pgbench = pgbench.replace("latency stddev = 0.686 ms\n", "");
    for text in [none, &pgbench] {
        assert_eq!(latency(&taken(text)[0]), record::ReportedLatency::default());
    }
    // bonnie++ prints the CPU of what it rated, and the size of its file.
    let row = text("bonnie-1.03.csv");
    let fields: Vec<&str> = row.lines().next().unwrap().split(',').collect();
    for (nth, value, told) in [(4, "", "a rate of write-block before its CPU"), (1, "0G", "a size")]
    {
        let mut bent = fields.clone();
        bent[nth] = value;
        let (line, error) = refused(&(row.clone() + &bent.join(",") + "\n"));
        assert_eq!(line, row.lines().count() + 1);
        assert!(error.contains(told), "{error}");
    }
}

/// Reads of `verify` come after the writes.
#[test]
fn a_job_of_fio_that_verifies_is_no_mix() {
    let name = "fio-3.33-mix83.normal+json.txt";
    let rw = text(name).lines().find(|line| line.contains("\"rw\" : ")).unwrap().to_owned();
    let written =
        rw.split_once(" : ").unwrap().0.to_owned() + " : \"randwrite\", \"verify\" : \"crc32c\"";
    let end = if rw.trim_end().ends_with(',') { "," } else { "" };
    let run = taken(&text(name).replace(&rw, &(written + end))).remove(0);
    let ops = |run: &Run| {
        let ops = &run.visits[0].streams[0].ops;
        ops.iter().map(|op| op.op.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ops(&only(name)), ["read", "write"]);
    assert_eq!(ops(&run), ["read-back", "write"]);
    assert_eq!(run.cells[0].streams[0].op, "write");
}

/// One line a job, each from the beginning of the execution.
#[test]
fn snapshots_of_terse_lines_are_of_one_execution() {
    let last = text("fio-3.33-read.terse.txt");
    let of = |ran: &str, kib: &str, min: &str, max: &str| {
        let text =
            last.replacen(";3964928;3960967;3868;1001;", &format!(";{kib};3960967;3868;{ran};"), 1);
        assert!(text.contains(&format!(";{kib};")));
        text.replacen(";203;4429;256.897050", &format!(";{min};{max};256.897050"), 1)
            .replace(";203;4429;257.074165", &format!(";{min};{max};257.074165"))
    };
    let (first, second) =
        (of("299", "1000000", "220", "4400"), of("600", "2000000", "203", "4429"));
    let runs = taken(&(first.clone() + &second + &last));
    assert_eq!(runs[0].visits, only("fio-3.33-read.terse.txt").visits);
    assert_eq!(codes(&runs[0]), ["snapshots"]);
    assert!(runs[0].header.warnings[0].text.contains("left out: 2."));
    // Two jobs, and another execution behind them.
    let two = |text: &str| text.to_owned() + &text.replace(";ter;", ";ter2;");
    let runs = taken(&(two(&first) + &two(&second) + &two(&last) + &two(&first)));
    assert_eq!((runs[0].cells.len(), runs[0].visits.len()), (2, 4));
    assert!(runs[0].header.warnings[0].text.contains("left out: 4."));
    // Repeats: as long, of as much, with a least latency that rose, of other times.
    for other in [
        of("1000", "3900000", "203", "4429"),
        of("500", "3964928", "199", "4429"),
        of("500", "4000000", "203", "4429"),
        of("500", "2000000", "203", "4430"),
    ] {
        assert_eq!(taken(&(other + &last))[0].visits.len(), 2);
    }
}

/// Of several executions, with `-p` or without.
#[test]
fn lines_of_parts_stand_before_the_line_that_they_are_of() {
    let first = "2 13452454 149 608960 181751 6726227 13270703 6544476 3 213399823\n\
                 2 17481663 114 468605 8110927 8740832 9370736 629904 2 196071008\n\
                 5 33331463 150 614434 181751 6666293 13270703 4760093 6 502534554\n";
    let second = "2 19157313 104 427617 5727132 9578656 13430181 3851524 3 213584549\n\
                  2 18195969 110 450210 6208330 9097984 11987639 2889654 2 198537346\n\
                  5 43332020 115 472630 5727132 8666404 13430181 3335541 6 506147103\n";
    let plain = "4 9084000 440 1801372 1387 2271000 4697000 155000 5 500876706\n";
    let counts = |text: &str| {
        let run = taken(text).remove(0);
        let count = |visit: &record::VisitRecord| visit.streams[0].ops[0].requests;
        (run.visits.iter().map(count).collect::<Vec<_>>(), codes(&run).len())
    };
    for (text, found) in [
        (first.to_owned() + second, vec![5, 5]),
        (first.to_owned() + plain, vec![5, 4]),
        (plain.to_owned() + second, vec![4, 5]),
        (plain.to_owned() + first + plain.replace('4', "3").as_str() + second, vec![4, 5, 3, 5]),
    ] {
        assert_eq!(counts(&text), (found, 1), "{text}");
    }
}

/// A batch line is known among other lines only by its figures.
#[test]
fn batch_lines_beside_other_outputs_are_refused() {
    let batch = text("ioping-1.3-batch.txt");
    for name in super::samples() {
        let alone = try_import(&name, &sample(&name)).unwrap();
        assert!(!alone.is_empty(), "{name}");
        // By its figures the line may be a part of those five requests.
        if ["ioping-1.3-batch.txt", "ioping-1.3-mixed.txt"].contains(&name.as_str()) {
            continue;
        }
        for both in [text(&name) + "\n" + &batch, batch.clone() + &text(&name)] {
            let error = try_import(&name, both.as_bytes()).unwrap_err().to_string();
            let is_told = error.contains("what ioping prints") || error.contains("wanted");
            assert!(is_told, "{name}: {error}");
        }
    }
    // `-p` prints them above the statistics that have them all.
    let ioping = "1 3627931 276 1129018 3627931 3627931 3627931 0 2 103812736\n\
                  2 4247605 471 1928616 534567 2123802 3713038 1589236 2 200037003\n\
                  2 421739 4742 19424336 129833 210870 291906 81036 2 196581539\n\n\
                  --- . (ext4 /dev/vda 252.0 GiB) ioping statistics ---\n\
                  5 requests completed in 8.30 ms, 20 KiB read, 602 iops, 2.35 MiB/s\n\
                  generated 6 requests in 500.5 ms, 24 KiB, 11 iops, 48.0 KiB/s\n\
                  min/avg/max/mdev = 129.8 us / 1.66 ms / 3.71 ms / 1.65 ms\n";
    assert_eq!(taken(ioping)[0].visits.len(), 1);
    let more = "2 13452454 149 608960 181751 6726227 13270703 6544476 3 213399823\n";
    assert_eq!(refused(&(more.to_owned() + ioping)).0, 1);
    assert_eq!(refused(&(ioping.to_owned() + more)).0, 9);
}

/// The table of a line of CSV says the same.
#[test]
fn a_table_of_bonnie_without_its_line_of_csv_is_not_dropped() {
    let whole = text("bonnie-2.00.table.txt") + &text("bonnie-2.00.csv");
    for (name, other) in [
        ("bonnie-2.00.table.txt", text("bonnie-1.03.csv")),
        ("bonnie-1.03.txt", text("bonnie-2.00.csv")),
        ("bonnie-1.96-wal.txt", text("bonnie-1.96.csv")),
    ] {
        let table: String = text(name)
            .lines()
            .filter(|line| !line.starts_with("1.9"))
            .map(|l| l.to_owned() + "\n")
            .collect();
        for both in [table.clone() + &other, other.clone() + &table] {
            let (line, told) = refused(&both);
            assert_eq!(line, line_of(&both, "Sequential Output------"), "{told}");
            assert!(told.contains("line of CSV of this table"), "{told}");
        }
    }
    // Before or behind it, and with a table whose blanks were collapsed.
    let fast = text("bonnie-2.00-fast.txt");
    let row = fast.lines().find(|line| line.starts_with("1.98,")).unwrap();
    let table = without(&fast, line_of(&fast, "1.98,"));
    let collapsed: String = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n")
        .collect();
    for both in
        [format!("{table}{row}\n"), format!("{row}\n{table}"), format!("{collapsed}{row}\n")]
    {
        assert_eq!(taken(&both)[0].visits, only("bonnie-2.00-fast.txt").visits, "{both}");
    }
    assert!(taken(&whole).len() < 3);
}

#[test]
fn a_read_table_alone_is_not_dropped() {
    let cut: String = text("bm-flash-raid0-12.txt").split_inclusive('\n').take(21).collect();
    assert!(!cut.contains("Write Tests:") && refused(&cut).1.contains("wanted `Write Tests:`"));
    let both = cut.clone() + &text("bm-flash-raid5-4.txt");
    let (line, told) = refused(&both);
    assert!(line > 21 && told.contains("wanted `Write Tests:` and its table before it"), "{told}");
}

/// As two at once print into one file.
#[test]
fn reports_of_pgbench_that_run_into_each_other_are_refused() {
    let other = text("pgbench-15.txt").replace("number of clients: ", "number of clients: 1");
    let (first, second): (Vec<_>, Vec<_>) = (
        text("pgbench-15.txt").lines().map(str::to_owned).collect(),
        other.lines().map(str::to_owned).collect(),
    );
    let whole = line_of(&other, "tps = ");
    for at in line_of(&other, "transaction type:") + 1..whole {
        let mixed = [&first[..at], &second[..], &first[at..]].concat().join("\n") + "\n";
        let (_, told) = refused(&mixed);
        assert!(told.contains("wanted"), "{told}");
    }
    let (_, told) = refused(&(text("pgbench-15.txt") + &first[whole - 1] + "\n"));
    assert!(told.contains("the rest of a report before it"), "{told}");
    let twice =
        text("pgbench-15.txt").replace("scaling factor: 2", "scaling factor: 2\nscaling factor: 3");
    assert!(refused(&twice).1.contains("each line of a report once"));
}

/// Two outputs, of which the first has no end, are no repeats of each other's cells.
#[test]
fn an_output_of_iozone_without_its_end_is_refused_before_a_whole_one() {
    let whole = text("iozone-throughput.txt");
    let first = line_of(&whole, "Children see");
    for headless in [0, first - 1] {
        let second: String = whole.split_inclusive('\n').skip(headless).collect();
        for lines in first..whole.lines().count() {
            let cut: String = whole.split_inclusive('\n').take(lines).collect();
            let (line, told) = refused(&(cut + &second));
            assert!(line > lines, "{told}");
            assert!(told.contains("wanted `iozone test complete.`"), "{told}");
        }
    }
}

/// `ioping -G` reads and writes by turns, and does not tell which.
#[test]
fn ioping_of_both_by_turns_is_a_mix() {
    let run = only("ioping-1.3-mixed.txt");
    let op = &run.visits[0].streams[0].ops[0];
    assert_eq!((op.op.as_str(), run.cells[0].streams[0].op.as_str()), ("mixed", "mixed"));
    let told = op.reported.clone().unwrap();
    assert_eq!((told.requests, told.bytes), (Some(5), Some(20 << 10)));
    let word = text("ioping-1.3-mixed.txt").replace("20 KiB,", "20 KiB moved,");
    assert!(refused(&word).1.contains("seen `moved`"));
}

/// `ioping -t`, `-T`: what is not counted is in no rate of all the time.
#[test]
fn requests_that_ioping_does_not_count_are_told() {
    let run = only("ioping-1.3-too-fast.txt");
    let told = run.visits[0].streams[0].ops[0].reported.clone().unwrap();
    assert_eq!((told.requests, told.iops), (Some(0), None));
    assert_eq!(told.latency, record::ReportedLatency::default());
    let imported = run.header.imported.unwrap();
    let left_out = imported.settings.iter().find(|(name, _)| name == "result not counted");
    assert_eq!(left_out.unwrap().1, "4 too fast");
    assert!(imported.remarks[0].starts_with("4 too fast: such requests"), "{:?}", imported.remarks);
    // Some of them.
    let some = text("ioping-1.3.txt");
    let generated = some.lines().find(|line| line.starts_with("generated ")).unwrap();
    let rate =
        |text: &str| taken(text)[0].visits[0].streams[0].ops[0].reported.clone().unwrap().iops;
    assert!(rate(&some).is_some());
    let both = format!("2 too fast, 1 too slow, {generated}");
    assert_eq!(rate(&some.replace(generated, &both)), None);
    let odd = format!("2 too odd, {generated}");
    assert!(refused(&some.replace(generated, &odd)).1.contains("`min/avg/max/mdev =`"));
}

#[test]
fn pgbench_with_a_connection_for_each_transaction_is_no_repeat_of_one_without() {
    let run = only("pgbench-15-connect.txt");
    let told = run.visits[0].streams[0].ops[0].reported.clone().unwrap();
    let line = text("pgbench-15-connect.txt");
    let line = line.lines().find(|line| line.starts_with("tps = ")).unwrap();
    assert!(line.ends_with(" (including reconnection times)"), "{line}");
    assert_eq!(told.iops, line.split(' ').nth(2).unwrap().parse().ok());
    let imported = run.header.imported.unwrap();
    assert!(imported.remarks[0].contains("holds the time to connect"), "{:?}", imported.remarks);
    let has = |name: &str| imported.settings.iter().any(|(known, _)| known == name);
    assert!(has("result average connection time") && has("connections"));
    // All else alike, both in one file are two runs.
    let with = text("pgbench-15.txt")
        .replace("initial connection time", "average connection time")
        .replace("(without average connection time)", "(including reconnection times)");
    assert_eq!(taken(&(text("pgbench-15.txt") + &with)).len(), 2);
}

/// It comes on another stream, and so behind its report, within it or ahead of it.
#[test]
fn an_aborted_run_of_pgbench_is_told_as_such() {
    let whole = text("pgbench-15.txt");
    let line = "pgbench: error: Run was aborted; the above results are incomplete.\n";
    let within = whole.replace("latency average", &format!("{line}latency average"));
    let ends = |text: &str| -> Vec<_> {
        let visits = taken(text).into_iter().flat_map(|run| run.visits);
        let end = |visit: record::VisitRecord| {
            let code = visit.warnings.first().map(|warning| warning.code.clone());
            assert_eq!(code.as_deref() == Some("aborted"), visit.end == record::VisitEnd::Failed);
            visit.end == record::VisitEnd::Failed
        };
        visits.map(end).collect()
    };
    for aborted in [whole.clone() + line, line.to_owned() + &whole, within] {
        assert_eq!(ends(&aborted), [true]);
    }
    let second = other("pgbench-15.txt", &[("2172.354108", "2173.354108")]);
    assert_eq!(ends(&(whole.clone() + &second)), [false, false]);
    assert_eq!(ends(&(whole.clone() + line + &second)), [true, false]);
    assert_eq!(ends(&(whole.clone() + &second + line)), [false, true]);
    let (at, told) = refused(&(line.to_owned() + &whole + &second));
    assert!(at == 1 && told.contains("one alone in its file"), "{told}");
}

#[test]
fn two_versions_of_pgbench_are_two_runs() {
    let newer = text("pgbench-15.txt");
    let older = other("pgbench-15.txt", &[("15.20", "14.1"), ("2172.354108", "2171.354108")]);
    let versions = |text: &str| -> Vec<_> {
        let version = |run: &Run| run.header.imported.as_ref().unwrap().version.clone();
        taken(text).iter().map(version).collect()
    };
    let told = |version: &str| Some(version.to_owned());
    assert_eq!(versions(&(newer.clone() + &older)), [told("15.20"), told("14.1")]);
    assert_eq!(versions(&(newer.clone() + &text("pgbench-9.6.txt"))), [told("15.20"), None]);
    let again = newer.replace("2172.354108", "2171.354108");
    assert_eq!(versions(&(newer + &again)), [told("15.20"), told("15.20")]);
}

/// A row that lost a number has each figure in its neighbour's place.
#[test]
fn a_record_of_iozone_is_no_larger_than_its_file() {
    let whole = text("iozone-auto.txt");
    let rows: Vec<&str> =
        whole.lines().filter(|line| line.trim_start().starts_with("65536 ")).collect();
    assert!(rows.len() > 2);
    for row in rows {
        let lost = row.replacen("65536", "     ", 1);
        let bent = whole.replace(row, &lost);
        let (line, told) = refused(&bent);
        assert_eq!(line, line_of(&bent, &lost));
        assert!(told.contains("a record size that is no more"), "{told}");
    }
}

/// `--output-format=json,terse` is one run in two forms; of another run a form would be dropped.
#[test]
fn terse_lines_beside_json_are_of_the_same_run() {
    let both = only("fio-3.33-json-terse.txt");
    assert_eq!((both.visits.len(), codes(&both).len()), (1, 0));
    assert_eq!(both.header.imported.as_ref().unwrap().tool, "fio");
    let json =
        ["fio-3.33-randread.json+", "fio-3.33-mix83.normal+json.txt", "fio-2.2-randwrite.json"];
    let terse =
        ["fio-3.33-read.terse.txt", "fio-3.33-read.terse2.txt", "fio-3.33-trimwrite.terse4.txt"];
    for (json, terse) in json.into_iter().flat_map(|json| terse.map(|terse| (json, terse))) {
        for both in [text(json) + &text(terse), text(terse) + &text(json)] {
            let (line, told) = refused(&both);
            assert!(both.lines().nth(line - 1).unwrap().contains(";0%=0;"), "{line}");
            assert!(told.contains("fio terse prints of a job that what fio JSON prints"), "{told}");
            for tool in [import::Tool::Fio, import::Tool::FioTerse] {
                let runs = import::read(both.as_bytes(), Some(tool), &import::Origin::default());
                assert_eq!(runs.unwrap()[0].header.imported.as_ref().unwrap().tool, tool.name());
            }
        }
    }
    // The same job once more, with other figures.
    let whole = text("fio-3.33-json-terse.txt");
    let line = whole.lines().next().unwrap();
    let fields: Vec<&str> = line.split(';').collect();
    assert_eq!((fields[2], fields[5]), ("j", "35528"));
    for (at, figure) in [(5, "35529"), (5 + 34, "112.998050"), (2, "k"), (3, "1")] {
        let mut other = fields.clone();
        other[at] = figure;
        let (line, _) = refused(&(whole.clone() + &other.join(";") + "\n"));
        assert_eq!(line, whole.lines().count() + 1, "{figure}");
    }
    assert_eq!(taken(&(whole.clone() + line + "\n"))[0].visits, both.visits);
}

fn told_by(run: &Run, op: &str) -> record::Reported {
    let ops = &run.visits[0].streams[0].ops;
    ops.iter().find(|found| found.op == op).unwrap().reported.clone().unwrap()
}

/// What `verify` reads back is no part of the mix, and fio counts both as one.
#[test]
fn how_fast_a_verified_mix_read_is_unknown() {
    let run = only("fio-3.33-randrw-verify.json");
    assert_eq!(run.cells[0].streams[0].op, "mixed");
    let read = told_by(&run, "read");
    assert_eq!((read.iops, read.bytes_per_s, read.requests), (None, None, None));
    assert_eq!(read.latency, record::ReportedLatency::default());
    assert_eq!(told_by(&run, "write").iops, Some(13_868.421_053));
    assert_eq!(told_by(&run, "read+read-back").requests, Some(2048));
    let remarks = run.header.imported.as_ref().unwrap().remarks.join(" ");
    assert!(remarks.contains("how fast the mix read is not known"), "{remarks}");
    // Nor is the sum of both.
    assert!(explain::View::new(&run).cells[0].visits.is_empty());
    let figures = report::figures::streams_of(&run)[0].figures();
    assert_eq!((figures.iops(), figures.bytes_per_second()), (None, None));
    // What it verifies as it reads, and what it was told not to verify, it reads at its own pace.
    let whole = text("fio-3.33-randrw-verify.json");
    let other = |from: &str, to: &str| {
        assert!(whole.contains(from));
        taken(&whole.replace(from, to)).remove(0)
    };
    for run in [
        other("\"verify\" : \"md5\"", "\"verify\" : \"md5\", \"do_verify\" : \"0\""),
        other("\"verify\" : \"md5\"", "\"verify\" : \"0\""),
    ] {
        assert_eq!(told_by(&run, "read").iops, Some(9_061.946_903));
    }
    // Without options nobody knows.
    let bare = whole.replace("\"job options\"", "\"other\"");
    let run = taken(&bare).remove(0);
    let remarks = run.header.imported.as_ref().unwrap().remarks.join(" ");
    assert!(remarks.contains("No options are told"), "{remarks}");
    let is_doubted = |text: &str| {
        let imported = taken(text).remove(0).header.imported.unwrap();
        imported.remarks.join(" ").contains("No options are told")
    };
    let read = text("fio-3.33-read.terse.txt");
    assert!(!is_doubted(&read) && !is_doubted(&text("fio-3.33-trimwrite.terse4.txt")));
    let mut fields: Vec<&str> = read.trim_end().split(';').collect();
    fields.copy_within(5..46, 46);
    assert!(is_doubted(&(fields.join(";") + "\n")));
}

/// With `--verify_only` fio counts writes that it does not make.
#[test]
fn writes_that_fio_did_not_make_are_left_out() {
    let run = only("fio-3.33-verify-only.json");
    let ops: Vec<&str> = run.visits[0].streams[0].ops.iter().map(|op| op.op.as_str()).collect();
    assert_eq!((ops, run.cells[0].streams[0].op.as_str()), (vec!["read"], "read"));
    assert_eq!(told_by(&run, "read").iops, Some(44_521.739_13));
    let remarks = run.header.imported.as_ref().unwrap().remarks.join(" ");
    assert!(remarks.contains("they are left out"), "{remarks}");
}

/// fio puts all jobs before the one that has it together, and prints the others as nothing.
#[test]
fn a_job_of_fio_without_a_name_is_told_with_its_line() {
    let whole = text("fio-3.33-randrw-verify.json");
    let at = whole.find("    {\n      \"jobname\"").unwrap();
    let end = whole.find("\n  ],\n  \"disk_util\"").unwrap();
    let job = &whole[at..end];
    let nobody = job
        .replace("      \"jobname\" : \"j\",\n", "")
        .replace("\"groupid\" : 0", "\"groupid\" : 4294967295");
    let both = format!("{},\n{nobody}{}", &whole[..end], &whole[end..]);
    let (line, told) = refused(&both);
    assert_eq!(line, whole[..end].lines().count() + 1, "{told}");
    assert!(told.contains("`group_reporting`") && told.contains("`jobname` of job 2"), "{told}");
}

/// Names, logs, and what only says in how many pieces it is told, ask for nothing else.
#[test]
fn repeats_of_fio_may_have_other_names() {
    let first = text("fio-3.33-json-terse.txt");
    let first = first.split_once('\n').unwrap().1;
    let with = |from: &str, to: &str| {
        assert!(first.contains(from), "{from}");
        // Another execution, of other figures.
        taken(&first.replace(from, to).replace("8846.", "8847.")).remove(0)
    };
    let runtime = "\"runtime\" : \"1\"";
    let before = taken(first).remove(0);
    for (from, to) in [
        (runtime, "\"runtime\" : \"1s\""),
        (runtime, "\"runtime\" : \"1000ms\""),
        ("\"bs\" : \"4k\"", "\"bs\" : \"4096\""),
        (runtime, "\"runtime\" : \"1\", \"write_iops_log\" : \"r2\""),
        (runtime, "\"runtime\" : \"1\", \"group_reporting\" : \"\""),
        (runtime, "\"runtime\" : \"1\", \"percentile_list\" : \"50:99\""),
        ("\"name\" : \"j\"", "\"name\" : \"k\""),
    ] {
        let run = import::together(vec![before.clone(), with(from, to)]);
        let run = run.unwrap_or_else(|error| panic!("{to}: {error}"));
        assert_eq!((run.cells.len(), run.visits.len()), (1, 2), "{to}");
    }
    // A job of another name that was asked for the same.
    let other = taken(&first.replace(": \"j\"", ": \"k\"").replace("8846.", "8847.")).remove(0);
    assert_eq!(other.cells[0].phase, "k");
    let run = import::together(vec![before.clone(), other]).unwrap();
    assert_eq!((run.cells[0].phase.as_str(), run.visits[1].streams[0].name.as_str()), ("j", "j"));
    let settings = &run.header.imported.as_ref().unwrap().settings;
    assert!(settings.contains(&("repeat 2: job".to_owned(), "k".to_owned())), "{settings:?}");
    for (from, to, told) in [
        (runtime, "\"runtime\" : \"2\"", "runtime `2` against `1`"),
        ("\"rw\" : \"randread\"", "\"rw\" : \"read\"", "rw `read` against `randread`"),
        ("\"bs\" : \"4k\"", "\"bs\" : \"8k\"", "bs `8k` against `4k`"),
    ] {
        let error = import::together(vec![before.clone(), with(from, to)]).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
    }
    // Of what tells no options the name is all there is.
    let terse = text("fio-3.33-read.terse.txt");
    let pair = [terse.clone(), terse.replace(";ter;", ";other;")];
    let runs = pair.map(|text| taken(&text).remove(0));
    assert!(import::together(runs.to_vec()).is_err());
}

/// fio caps the depth of a synchronous engine at one, and `psync` is what it takes where none is named.
#[test]
fn a_synchronous_engine_of_fio_has_one_request_in_flight_whatever_iodepth_asks() {
    let whole = text("fio-3.33-json-terse.txt");
    let whole = whole.split_once('\n').unwrap().1;
    let asked = "\"bs\" : \"4k\"";
    assert!(whole.contains(asked) && !whole.contains("\"iodepth\""), "{whole}");
    let with = |more: &str| {
        let options = format!("{asked}, {more}\"iodepth\" : \"32\"");
        let whole = whole.lines().filter(|line| !line.contains("\"ioengine\""));
        taken(&whole.collect::<Vec<_>>().join("\n").replace(asked, &options)).remove(0)
    };
    for (more, depth, warned) in [
        ("", 1, true),
        ("\"ioengine\" : \"psync\", ", 1, true),
        ("\"ioengine\" : \"mmap\", ", 1, true),
        ("\"ioengine\" : \"libpmem\", ", 1, true),
        ("\"ioengine\" : \"sg\", \"sync\" : \"1\", ", 1, true),
        ("\"ioengine\" : \"psync\", \"io_submit_mode\" : \"offload\", ", 32, false),
        ("\"ioengine\" : \"libaio\", ", 32, false),
        ("\"ioengine\" : \"io_uring\", ", 32, false),
    ] {
        let run = with(more);
        assert_eq!(run.cells[0].streams[0].queue_depth, depth, "{more}");
        let capped = run.visits[0].warnings.iter().chain(&run.header.warnings);
        assert_eq!(capped.filter(|w| w.code == "depth-capped").count() > 0, warned, "{more}");
    }
}

/// Each hint has to lead on.
#[test]
fn two_tools_in_one_file_are_told_as_such_whichever_was_named() {
    use import::Tool::{SysbenchFileio, SysbenchOltp};
    let both =
        text("sysbench-1.0.20-fileio-rndrd.txt") + &text("sysbench-1.0.20-oltp_read_write.txt");
    assert!(refused_as(&both, None).contains("with `--tool` that tool's alone is read"));
    for tool in [SysbenchFileio, SysbenchOltp] {
        let origin = import::Origin::default();
        if import::read(both.as_bytes(), Some(tool), &origin).is_ok() {
            continue;
        }
        let told = refused_as(&both, Some(tool));
        assert!(told.contains("stands beside it") && told.contains("files of their own"), "{told}");
        assert!(!told.contains("--tool"), "{told}");
    }
    let alone = refused_as(&text("sysbench-1.0.20-fileio-rndrd.txt"), Some(SysbenchOltp));
    assert!(alone.contains("leave `--tool` out"), "{alone}");
}

/// The error and its hint.
fn refused_as(text: &str, tool: Option<import::Tool>) -> String {
    let error = import::read(text.as_bytes(), tool, &import::Origin::default()).unwrap_err();
    format!("{error}\n{}", error.hint().unwrap_or_default())
}

/// -1 is not the same for all, and need not be the same as the -1 of another block.
#[test]
fn blocks_of_iometer_of_unknown_depth_are_no_repeats() {
    let whole = text("iometer.csv");
    let heads = whole.lines().find(|line| line.starts_with("'Target Type,")).unwrap();
    let column = heads.split(',').position(|head| head == "Queue Depth").unwrap();
    let many: String = whole
        .lines()
        .map(|line| {
            let mut fields: Vec<&str> = line.split(',').collect();
            if line.starts_with("ALL,") {
                fields[column] = "-1";
            }
            fields.join(",") + "\n"
        })
        .collect();
    let (before, run) = (only("iometer.csv"), taken(&many).remove(0));
    assert!(before.visits.len() > 1);
    assert_eq!((run.cells.len(), run.visits.len()), (before.visits.len(), before.visits.len()));
    let places = run.cells.iter().map(|cell| cell.coordinates.last().unwrap().clone());
    let wanted = (1..=run.cells.len()).map(|number| ("results".to_owned(), number.to_string()));
    assert!(places.eq(wanted));
    let remarks = run.header.imported.as_ref().unwrap().remarks.join(" ");
    assert!(remarks.contains("told apart by their number"), "{remarks}");
}
