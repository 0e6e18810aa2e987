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
    let mut bent = String::from_utf8(sample("sysbench-1.0.20-fileio-rndrd.txt")).unwrap();
    bent = bent.replace("writes/s:", "writs/s:");
    let error = try_import("s.txt", bent.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("wanted `writes/s:`"), "{error}");
    assert!(error.line().is_some());
}
