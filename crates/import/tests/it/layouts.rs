//! What was imported is printed in the layout of its tool as that printed it.

use report::table::{layout, layout_of_import};

use super::{only, sample};

/// A line as far as it is known: `-` stands for what a run does not know.
fn is_line(printed: &str, original: &str) -> bool {
    let (printed, original) = (printed.trim_end(), original.trim_end());
    let masked = |printed: &str| match printed.strip_suffix("-/-") {
        Some(known) => Some(known.to_owned()),
        None => printed.strip_suffix('-').map(str::to_owned),
    };
    printed == original
        || masked(printed).is_some_and(|known| original.starts_with(known.trim_end()))
}

/// Lines of a sample from one with `from` to one with `to`, both included.
fn lines(name: &str, from: &str, to: &str) -> Vec<String> {
    let text = String::from_utf8(sample(name)).unwrap();
    let start = text.lines().position(|line| line.contains(from)).unwrap();
    let below: Vec<String> = text.lines().skip(start).map(str::to_owned).collect();
    let end = below.iter().rposition(|line| line.contains(to)).unwrap();
    below[..=end].to_vec()
}

fn printed(name: &str) -> Vec<String> {
    let run = only(name);
    let text = layout_of_import(&run).unwrap().print(&run).unwrap_or_else(|e| panic!("{e}"));
    text.lines().map(str::to_owned).collect()
}

/// The same lines in the same order; `skip` are printed before them.
#[track_caller]
fn same(name: &str, from: &str, to: &str, skip: usize) {
    let printed = printed(name);
    let wanted = lines(name, from, to);
    for (k, line) in wanted.iter().enumerate() {
        let found = printed.get(k + skip).map_or("", String::as_str);
        assert!(is_line(found, line), "{name}\nseen   {found}\nwanted {line}\n{printed:#?}");
    }
    let rest = &printed[wanted.len() + skip..];
    // Remarks in parentheses, which may go over several lines.
    let remarks = rest.first().is_none_or(|line| line.starts_with('('))
        && rest.last().is_none_or(|line| line.ends_with(')'));
    assert!(remarks, "{name}: {rest:#?}");
}

fn tokens(line: &str) -> Vec<String> {
    line.split([' ', '\t', ',']).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
}

/// The same words and numbers; blanks do not count.
#[track_caller]
fn says(name: &str, lines: &[&str]) {
    let printed = printed(name);
    for line in lines {
        let found = printed.iter().any(|printed| tokens(printed) == tokens(line));
        assert!(found, "{name}: {line}\n{printed:#?}");
    }
}

#[test]
fn bonnie() {
    same("bonnie-1.03.txt", "Version", "+++++", 0);
    for array in ["h800", "sas6ir", "wal"] {
        same(&format!("bonnie-1.96-{array}.txt"), "Version", "Latency", 0);
    }
    same("bonnie-2.00-fast.txt", "Version", "Latency", 0);
    same("bonnie-2.00.table.txt", "Version", "Latency", 0);
    // The CSV of the same run holds the same.
    assert_eq!(printed("bonnie-2.00.csv"), printed("bonnie-2.00.table.txt"));
}

#[test]
fn sysbench() {
    for mode in ["rndrd", "rndrw", "rndwr", "seqrd", "seqrewr", "seqwr"] {
        let name = format!("sysbench-1.0.20-fileio-{mode}.txt");
        same(&name, "File operations:", "execution time", 0);
    }
    same("sysbench-1.1-fileio-rndrw.txt", "Throughput:", "sum:", 0);
    for mode in ["rndrd", "rndrw"] {
        let name = format!("sysbench-0.4-fileio-{mode}.txt");
        same(&name, "Operations performed:", "execution time", 0);
    }
}

#[test]
fn pg_test_fsync() {
    same("pg_test_fsync-15.txt", "per test", "usecs/op", 0);
}

#[test]
fn ioping() {
    same("ioping-1.3.txt", "statistics", "mdev", 0);
    same("ioping-1.3-seek-rate.txt", "statistics", "mdev", 0);
    // How many bytes each of the requests had between which it waited is not told.
    let batch = printed("ioping-1.3-batch.txt");
    assert_eq!(batch[1], "4 requests completed in 706.0 us, - read, 5.67 k iops, -/s");
    assert_eq!(batch.last().unwrap(), "(- is what is not known.)");
}

#[test]
fn xdd() {
    // The name of the cell stands above the heads.
    same("xdd.txt", "What ", "COMBINED", 1);
}

#[test]
fn iozone() {
    same("iozone-auto.txt", "65536      64", "65536     256", 3);
    same("iozone-some.txt", "409600      64", "409600      64", 3);
    let lines = lines("iozone-throughput.txt", "Children", "Min xfer");
    let lines: Vec<String> = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        // Its KB is our kB in the line of the children, which is no setting.
        .map(|line| line.replace("KB/sec", "kB/sec").trim().to_owned())
        .collect();
    assert_eq!(lines.len(), 24);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    says("iozone-throughput.txt", &lines);
}

#[test]
fn orion() {
    same("orion-simple-summary.txt", "Maximum Large", "Minimum Small Latency", 0);
    same("orion-oltp-summary.txt", "Maximum Small", "@ Small=1 and Large=0", 0);
    says("orion_iops.csv", &["Large/Small, 1, 2, 3, 4, 5", "0, 3011, 4120, 4702, 4988, 5120"]);
    says("orion_mbps.csv", &["0, 0.00", "1, 61.20", "2, 84.55"]);
    // In us, whatever it was in.
    says("orion_lat.csv", &["0, 330.00, 480.00, 640.00, 800.00, 980.00"]);
}

#[test]
fn iometer() {
    says(
        "iometer.csv",
        &[
            "Database 1 1 1507.75 1010.25 497.50 11.78 12.35 0.6626 88.1110",
            "Database 1 4 5672.25 3800.50 1871.75 44.31 46.47 0.7045 88.1110",
        ],
    );
}

#[test]
fn a_layout_of_another_method_is_refused() {
    let told = |name: &str, of: &str| {
        let error = layout(of).unwrap().print(&only(name)).unwrap_err();
        assert!(error.hint().is_some_and(|hint| hint.contains("grid")));
        error.to_string()
    };
    assert_eq!(
        told("ioping-1.3.txt", "bonnie"),
        "the layout bonnie does not fit the run of ioping: it has none of bonnie++'s phases, such \
         as write-block or seek"
    );
    assert!(told("ioping-1.3.txt", "pg-test-fsync").contains("one-fdatasync"));
    assert!(
        told("ioping-1.3.txt", "orion").contains("its phase latency is neither small nor large")
    );
    assert!(told("xdd.txt", "ioping").contains("has 128 requests in flight, and ioping has one"));
    assert!(told("pgbench-15.txt", "sysbench").contains("neither reads nor writes"));
    assert!(told("bonnie-2.00.csv", "dd").contains("is not known"));
    assert!(told("xdd.txt", "crystaldiskmark").contains("not named for seq or rnd"));
}

/// A zero is what was not done, and no figure that nobody told.
#[test]
fn what_is_not_known_is_no_zero() {
    let print = |name: &str, of: &str| layout(of).unwrap().print(&only(name)).unwrap();
    let batch = print("ioping-1.3-batch.txt", "sysbench");
    let line = |text: &str, label: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
        found.trim_start().strip_prefix(label).unwrap().trim().to_owned()
    };
    assert_eq!(
        (line(&batch, "read, MiB/s:"), line(&batch, "written, MiB/s:")),
        ("-".into(), "0.00".into())
    );
    assert!(batch.ends_with("(- is what is not known.)\n"), "{batch}");
    let old = print("sysbench-1.0.20-fileio-rndwr.txt", "sysbench-0.4");
    assert_eq!(line(&old, "Operations performed:"), "0 Read, - Write, - Other = - Total");
    assert!(old.contains("Read 0b  Written -  Total transferred -  ("), "{old}");
    assert!(!old.contains("(0b/sec)") && old.ends_with("(- is what is not known.)\n"), "{old}");
}
