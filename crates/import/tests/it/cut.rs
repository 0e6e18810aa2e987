//! Every sample cut after every line and at its bytes: refused, or as good as the whole, or known
//! to be what a shorter output looks like, and then the run says so.

use record::Run;

use super::{data, sample, samples, try_import};

/// Samples that are cut into what the tool prints when it has less to print, what the run then
/// remarks, and why nobody can tell.
const SHORTER: [(&str, &str, &str); 10] = [
    ("bonnie-1.96.csv", "no end mark", "each repeat of -x is a line"),
    ("bonnie-1.03.txt", "no part about files", "-n 0 prints the first part only"),
    ("bonnie-2.00.table.txt", "no part about files", "-n 0 prints the first part only"),
    (
        "bonnie-2.00-fast.txt",
        "Read from the table",
        "the CSV goes to another stream than the table",
    ),
    (
        "bonnie-2.00-files.txt",
        "Read from the table",
        "the CSV goes to another stream than the table",
    ),
    ("fio-3.33-json-terse.txt", "no end mark", "the terse line alone is an output, too"),
    ("iometer.csv", "no end mark", "each level adds a block"),
    ("orion_iops.csv", "no end mark", "-matrix asks for any rows"),
    ("orion_lat.csv", "no end mark", "-matrix asks for any rows"),
    ("orion_mbps.csv", "no end mark", "-matrix asks for any rows"),
];

/// What is read of them, the file itself aside.
fn read_of(mut runs: Vec<Run>) -> Vec<Run> {
    for imported in runs.iter_mut().filter_map(|run| run.header.imported.as_mut()) {
        (imported.bytes, imported.xxh3) = (0, String::new());
    }
    runs
}

fn whole(name: &str) -> Vec<Run> {
    read_of(super::import(name))
}

fn remarks(runs: &[Run]) -> Vec<&str> {
    let imported = runs.iter().filter_map(|run| run.header.imported.as_ref());
    imported.flat_map(|i| &i.remarks).map(String::as_str).collect()
}

/// * `at_line`: whether the cut is behind a line.
fn check(name: &str, short: &[u8], whole: &[Run], at_line: bool) {
    let cut = short.len();
    match try_import(name, short) {
        Err(error) => {
            let told = error.to_string();
            assert!(told.starts_with(name), "{told}");
            assert!(
                cut == 0
                    || told.contains("wanted")
                    || told.contains("line end")
                    || told.contains("no tool")
                    || told.contains("nothing in it"),
                "{told}"
            );
        }
        Ok(runs) => {
            let runs = read_of(runs);
            if runs == whole {
                return;
            }
            let known = SHORTER.iter().find(|(sample, ..)| *sample == name && at_line);
            let Some((_, remark, _)) = known else {
                panic!("{name} cut at byte {cut}: a part of it is taken\n{runs:#?}");
            };
            let told = remarks(&runs);
            assert!(told.iter().any(|t| t.contains(remark)), "{name} cut at byte {cut}: {told:?}");
        }
    }
}

#[test]
fn what_is_cut_after_a_line_is_refused_or_says_so() {
    for name in samples() {
        let bytes = sample(&name);
        let whole = whole(&name);
        let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(k, _)| k + 1);
        for cut in std::iter::once(0).chain(ends) {
            check(&name, &bytes[..cut], &whole, true);
        }
    }
}

#[test]
fn what_is_cut_within_a_line_is_refused() {
    for name in samples() {
        let bytes = sample(&name);
        let whole = whole(&name);
        // Every byte of short ones, some hundred of long ones, and every byte near the end.
        let step = if bytes.len() < 3_000 { 1 } else { bytes.len() / 300 };
        let near = bytes.len().saturating_sub(250);
        for cut in (1..near).step_by(step).chain(near.max(1)..bytes.len()) {
            if bytes[cut - 1] != b'\n' {
                check(&name, &bytes[..cut], &whole, false);
            }
        }
    }
}

#[test]
fn every_exception_is_one() {
    for (name, ..) in SHORTER {
        assert!(data().join(name).exists(), "{name}");
        let bytes = sample(name);
        let whole = whole(name);
        let lines = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(k, _)| k + 1);
        let shorter = lines
            .filter_map(|cut| try_import(name, &bytes[..cut]).ok())
            .filter(|runs| read_of(runs.clone()) != whole)
            .count();
        assert!(shorter > 0, "{name} is cut into nothing shorter any more");
    }
}

#[test]
fn a_lost_line_end_is_told() {
    let bytes = sample("bonnie-1.03.csv");
    let error = try_import("b.csv", bytes.trim_ascii_end()).unwrap_err();
    assert!(error.to_string().contains("without a line end"), "{error}");
    assert!(error.to_string().contains("14680,57"), "{error}");
    assert!(error.hint().unwrap().contains("add a line end"));
    // What ends with words that no shorter line ends with may have been pasted.
    for name in ["ioping-1.3.txt", "pg_test_fsync-15.txt", "pgbench-15.txt", "iozone-some.txt"] {
        let bytes = sample(name);
        let pasted = try_import(name, bytes.trim_ascii_end()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(read_of(pasted), whole(name), "{name}");
    }
}

#[test]
fn words_of_the_page_behind_an_output_need_no_line_end() {
    for name in ["bonnie-1.96-h800.txt", "bm-flash-raid0-12.txt", "sysbench-0.4-oltp-mft.txt"] {
        let page = [sample(name), b"\nThanks for reading".to_vec()].concat();
        let found = try_import(name, &page).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read_of(found), whole(name), "{name}");
    }
}

#[test]
fn several_outputs_of_fio_in_one_file_are_several_runs() {
    let one = sample("fio-3.33-randread.json+");
    let other = String::from_utf8(one.clone()).unwrap();
    let other = other.replace("\"timestamp_ms\" : 17952", "\"timestamp_ms\" : 17953");
    let two = [one.clone(), b"\n".to_vec(), other.into_bytes()].concat();
    let runs = read_of(try_import("two.json", &two).unwrap());
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0].cells, runs[1].cells);
    let cut = &two[..two.len() - one.len() / 2];
    let told = try_import("two.json", cut).unwrap_err().to_string();
    assert!(told.contains("the end of the text"), "{told}");
}

#[test]
fn batch_lines_of_ioping_are_alike() {
    let line = sample("ioping-1.3-batch.txt");
    let of = |n: u8| String::from_utf8(line.clone()).unwrap().replacen(' ', &format!("{n} "), 1);
    let run = try_import("b.txt", (of(1) + &of(2) + &of(3)).as_bytes()).unwrap();
    assert_eq!(run[0].visits.len(), 3);
    assert!(remarks(&run).iter().any(|r| r.starts_with("3 batch lines")), "{:?}", remarks(&run));
    let text = String::from_utf8(line.repeat(2)).unwrap();
    // Two fields less: what versions before 1.0 print, but not behind one of 1.3.
    let short = text.trim_end().rsplitn(3, ' ').last().unwrap().to_owned() + "\n";
    let told = try_import("b.txt", short.as_bytes()).unwrap_err().to_string();
    assert!(told.contains("as many whole numbers as on the lines before"), "{told}");
}

#[test]
fn a_time_lost_on_one_line_of_pg_test_fsync_is_missed() {
    let text = String::from_utf8(sample("pg_test_fsync-15.txt")).unwrap();
    let bent = text.replace("ops/sec     290 usecs/op", "ops/sec");
    let told = try_import("p.txt", bent.as_bytes()).unwrap_err().to_string();
    assert!(told.starts_with("p.txt:8:") && told.contains("usecs/op"), "{told}");
    // Before 9.3 no line had one.
    let mut old = String::new();
    for line in text.lines() {
        let end = line.find("ops/sec").map_or(line.len(), |at| at + "ops/sec".len());
        old += &line[..end];
        old.push('\n');
    }
    let runs = try_import("p.txt", old.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(runs[0].visits.len(), 16);
}

#[test]
fn the_point_of_the_least_latency_of_orion_has_its_details() {
    let text = String::from_utf8(sample("orion-oltp-summary.txt")).unwrap();
    let short = text.trim_end().rsplit_once('\n').unwrap().0.to_owned() + "\n";
    let told = try_import("o.txt", short.as_bytes()).unwrap_err().to_string();
    assert!(told.contains("Small Read Latency"), "{told}");
}

#[test]
fn a_matrix_of_orion_with_fewer_rows_than_its_columns_ask_for_warns() {
    let text = String::from_utf8(sample("orion_iops.csv")).unwrap();
    let two = text.split_inclusive('\n').take(3).collect::<String>();
    let runs = try_import("orion_iops.csv", two.as_bytes()).unwrap();
    assert_eq!(runs[0].header.warnings[0].code, "rows-missing");
    assert!(whole("orion_iops.csv")[0].header.warnings.is_empty());
}
