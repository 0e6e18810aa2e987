//! What is cut short, bent or foreign is refused as a whole, and nothing panics.

use import::{Tool, recognise};
use record::Run;
use stats::Random;

use super::{sample, samples, try_import};

/// What an import must not lose: how many visits each cell has, and how many operations.
fn shape(runs: &[Run]) -> Vec<(usize, usize, usize)> {
    let ops = |run: &Run| run.visits.iter().flat_map(|v| &v.streams).map(|s| s.ops.len()).sum();
    runs.iter().map(|run| (run.cells.len(), run.visits.len(), ops(run))).collect()
}

/// Formats whose lines stand alone: what is cut after a line is a shorter output, and nobody can
/// tell. With each, how many lines are such.
fn may_be_shorter(name: &str) -> bool {
    // IOMeter adds a block for each level, each whole by itself.
    let alone =
        ["iometer.csv", "orion_iops.csv", "orion_lat.csv", "orion_mbps.csv", "bonnie-1.96.csv"];
    alone.contains(&name)
}

/// bonnie++'s table without its second part is what `-n 0` prints.
fn is_table_of_bonnie(name: &str) -> bool {
    matches!(name, "bonnie-2.00.table.txt" | "bonnie-1.03.txt")
}

#[test]
fn every_sample_is_recognised_and_read() {
    for name in samples() {
        let text = String::from_utf8(sample(&name)).unwrap();
        let tool = recognise(&text).unwrap_or_else(|| panic!("{name}"));
        let begins = name.split(['_', '-', '.']).next().unwrap();
        let expected = match begins {
            "bm" => "bm-flash",
            "pg" => "pg-test-fsync",
            other => other,
        };
        assert!(tool.name().starts_with(expected), "{name} taken for {tool}");
        let runs = try_import(&name, text.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        for run in &runs {
            assert!(!run.visits.is_empty(), "{name}");
            assert_eq!(run.header.imported.as_ref().unwrap().tool, tool.name());
        }
    }
}

#[test]
fn bent_outputs_do_not_panic_and_lose_no_cell() {
    let seed = 20_090_220;
    let mut random = Random::new(seed);
    for name in samples() {
        let bytes = sample(&name);
        let whole = shape(&try_import(&name, &bytes).unwrap());
        let whole: usize = whole.iter().map(|(cells, ..)| cells).sum();
        for round in 0..200 {
            let mut bent = bytes.clone();
            let at = random.below(bent.len() as u64) as usize;
            let bit = random.below(7);
            bent[at] ^= 1 << bit;
            let Ok(runs) = try_import(&name, &bent) else { continue };
            let cells: usize = shape(&runs).iter().map(|(cells, ..)| cells).sum();
            let lines_stand_alone = may_be_shorter(&name) || is_table_of_bonnie(&name);
            // A bent mark can hide an output of several, or a row that stands alone.
            assert!(
                cells >= whole || lines_stand_alone,
                "{name}, seed {seed}, round {round}: byte {at} bit {bit}: {cells} of {whole} cells"
            );
        }
    }
}

#[test]
fn no_tool_panics_on_the_output_of_another() {
    for name in samples() {
        let bytes = sample(&name);
        for tool in Tool::ALL {
            let origin = import::Origin { file: name.clone(), ..import::Origin::default() };
            let _ = import::read(&bytes, Some(tool), &origin);
        }
    }
}

#[test]
fn noise_of_the_tools_own_words_does_not_panic() {
    let seed = 41;
    let mut random = Random::new(seed);
    let all: Vec<Vec<u8>> = samples().iter().map(|name| sample(name)).collect();
    let mut words: Vec<&[u8]> = Vec::new();
    for bytes in &all {
        words.extend(bytes.split_inclusive(|b| b" ,;\n|".contains(b)).take(400));
    }
    for _ in 0..400 {
        let mut text = Vec::new();
        for _ in 0..random.below(120) {
            text.extend_from_slice(words[random.below(words.len() as u64) as usize]);
        }
        let origin = import::Origin { file: "noise".into(), ..import::Origin::default() };
        for tool in Tool::ALL {
            let _ = import::read(&text, Some(tool), &origin);
        }
        let _ = try_import("noise", &text);
    }
}

#[test]
fn foreign_text_is_refused_by_line() {
    let told = |bytes: &[u8]| try_import("x.txt", bytes).unwrap_err().to_string();
    assert_eq!(told(b""), "x.txt: nothing in it, wanted the output of a tool");
    assert_eq!(told(b"one\n\xff\n"), "x.txt:2: this is not text");
    assert_eq!(told(b"\nhello\n"), "x.txt:1: no tool known here begins like this: seen `hello`");
    let hint = try_import("x.txt", b"hello").unwrap_err().hint().unwrap();
    assert!(hint.contains("`--tool`") && hint.contains("bm-flash"), "{hint}");
    // Nothing of it is cut off: it is another's.
    let origin = import::Origin { file: "x.txt".to_owned(), ..import::Origin::default() };
    let error = import::read(&sample("pgbench-15.txt"), Some(Tool::Fio), &origin).unwrap_err();
    assert!(error.to_string().contains("read as fio JSON: seen what pgbench prints"), "{error}");
    assert_eq!(error.hint().unwrap(), "leave `--tool` out");
    let mut bent = String::from_utf8(sample("sysbench-1.0.20-fileio-rndrd.txt")).unwrap();
    bent = bent.replace("writes/s:", "writs/s:");
    let error = try_import("s.txt", bent.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("wanted `writes/s:`"), "{error}");
    assert!(error.line().is_some());
}

/// A sample with one piece exchanged, and the line that it is on.
fn bent(name: &str, from: &str, to: &str) -> (String, usize) {
    let text = String::from_utf8(sample(name)).unwrap();
    let at = text.find(from).unwrap_or_else(|| panic!("{name} has no {from}"));
    let line = text[..at].matches('\n').count() + 1;
    (text.replacen(from, to, 1), line)
}

/// What would be left of such a job without the number looks like all of it.
#[test]
fn bent_numbers_of_fio_are_refused_by_line() {
    let name = "fio-3.33-randread.json+";
    let iops = "\"iops\" : ";
    let text = String::from_utf8(sample(name)).unwrap();
    let value = |field: &str| {
        let at = text.find(field).unwrap() + field.len();
        let end = text[at..].find([',', '\n']).unwrap();
        format!("{field}{}", &text[at..at + end])
    };
    let total = "\"total_ios\" : ";
    let cases = [
        (value(iops), format!("{iops}\"41\""), "`\"iops\" : \"41\"`: invalid type: string"),
        (value(iops), format!("{iops}-41.5"), "expected a number from 0 to 10^18"),
        (value(iops), format!("{iops}1e19"), "expected a number from 0 to 10^18"),
        (value(iops), format!("{iops}true"), "invalid type: boolean"),
        (value(iops), format!("{iops}[1]"), "invalid type: sequence"),
        (value(iops), format!("{iops}NaN"), "expected"),
        (value(total), format!("{total}\"7\""), "`\"total_ios\" : \"7\"`: invalid type: string"),
        (value(total), format!("{total}-7"), "expected a whole number from 0 to 10^18"),
        (value(total), format!("{total}7.5"), "expected a whole number from 0 to 10^18"),
        // 2^53 and 2^63 as floats: no digit of theirs is sure.
        (value(total), format!("{total}9007199254740994.0"), "expected a whole number"),
        (value(total), format!("{total}9223372036854775808"), "expected a whole number"),
    ];
    for (from, to, why) in &cases {
        let (text, line) = bent(name, from, to);
        let error = try_import("x.json", text.as_bytes()).unwrap_err();
        assert_eq!(error.line(), Some(line), "{to}: {error}");
        assert!(error.to_string().contains(why), "{to}: {error}");
        assert!(error.to_string().contains("wanted JSON as fio writes it"), "{error}");
    }
    // Bins, percentiles, options: the first of each, whatever its number is.
    let first = |list: &str| {
        let at = text.find(list).unwrap();
        let line = text[at..].lines().nth(1).unwrap();
        line.trim().trim_end_matches(',').to_owned()
    };
    for (list, to, why) in [
        ("\"lat_ns\" : {", "\"min\" : \"x\"", "`\"min\" : \"x\"`: invalid type: string"),
        ("\"lat_ns\" : {", "\"min\" : -1", "expected a number from 0 to 10^18"),
        ("\"bins\" : {", "\"12\" : \"3\"", "invalid type: string"),
        ("\"bins\" : {", "\"12\" : 3.5", "expected a whole number"),
        ("\"bins\" : {", "\"12\" : null", "null, expected a number"),
        ("\"bins\" : {", "\"x\" : 3", "expected a number in quotes"),
        ("\"percentile\" : {", "\"990.0\" : 3", "expected a number up to 100 in quotes"),
        ("\"percentile\" : {", "\"99.0\" : -3", "expected a number from 0"),
        ("\"job options\" : {", "\"direct\" : 1", "expected text"),
    ] {
        let from = first(list);
        let at = text.find(list).unwrap();
        let text = format!("{}{}", &text[..at], text[at..].replacen(&from, to, 1));
        let error = try_import("x.json", text.as_bytes()).unwrap_err();
        let line = text[..at].matches('\n').count() + 2;
        assert_eq!(error.line(), Some(line), "{to}: {error}");
        assert!(error.to_string().contains(why), "{to}: {error}");
    }
}

#[test]
fn what_fio_did_not_write_is_no_error() {
    let name = "fio-3.33-randread.json+";
    let whole = try_import(name, &sample(name)).unwrap();
    let (null, _) = bent(name, "\"stddev\" : ", "\"stddev\" : null, \"was\" : ");
    let runs = try_import(name, null.as_bytes()).unwrap();
    assert_eq!(shape(&runs), shape(&whole));
    // A program between that knows no whole numbers.
    let (float, _) = bent(name, "\"groupid\" : 0", "\"groupid\" : 0.0");
    assert_eq!(shape(&try_import(name, float.as_bytes()).unwrap()), shape(&whole));
}

#[test]
fn bent_bins_of_sysbench_are_refused_by_line() {
    let name = "sysbench-1.0.20-fileio-rndrd.txt";
    let text = String::from_utf8(sample(name)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let head = lines.iter().position(|line| line.starts_with("Latency histogram")).unwrap();
    let nth = head + 5;
    let (value, rest) = lines[nth].split_once('|').unwrap();
    let with = |line: &str| {
        let mut bent = lines.clone();
        bent[nth] = line;
        bent.join("\n") + "\n"
    };
    assert!(try_import(name, with(lines[nth]).as_bytes()).is_ok());
    for line in [
        format!("{value} {rest}"),
        format!("{value}|** -5"),
        format!("{value}|** 1.5"),
        format!("{value}|**"),
        format!("   x |{rest}"),
        format!("  -1 |{rest}"),
        format!("  99999.0 |{rest}"),
        format!("  0.0001 |{rest}"),
    ] {
        let error = try_import(name, with(&line).as_bytes()).unwrap_err();
        // What stands out of order may be told by the line after it.
        let near = error.line().unwrap();
        assert!((nth + 1..=nth + 2).contains(&near), "{line}: {error}");
    }
}
