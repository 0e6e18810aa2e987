use report::{CSV_COLUMNS, csv};

use crate::sample;

/// A reader of RFC 4180 in a few lines: records of fields.
pub fn parse(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut chars) = (false, text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(!quoted && field.is_empty() && record.is_empty());
    records
}

fn column(name: &str) -> usize {
    CSV_COLUMNS.iter().position(|&c| c == name).unwrap_or_else(|| panic!("no column {name}"))
}

#[test]
fn one_line_per_visit_stream_and_operation() {
    let records = parse(&csv(&sample::rich()));
    assert_eq!(records[0], CSV_COLUMNS);
    assert!(records.iter().all(|r| r.len() == CSV_COLUMNS.len()));
    let picked: Vec<_> = records[1..]
        .iter()
        .map(|r| {
            ["cell", "visit", "stream", "op", "requests", "iops"].map(|c| r[column(c)].as_str())
        })
        .collect();
    assert_eq!(
        picked,
        [
            ["2", "0", "main", "read", "20000", "10000"],
            ["2", "1", "main", "read", "40000", "40000"],
            ["2", "2", "main", "read", "1", "2"],
            ["3", "3", "main", "read", "15", "10"],
            ["4", "4", "pages", "read", "6000", "6000"],
            ["4", "4", "pages", "write", "3000", "3000"],
            ["4", "4", "pages", "fsync", "100", "100"],
            ["4", "4", "log", "write", "2000", "2000"],
        ]
    );
    // Not known is empty.
    assert_eq!(records[3][column("latency_ns_p50")], "");
    assert_eq!(records[5][column("cpu_ns_per_io_user")], "");
    assert_eq!(records[4][column("warnings")], "hanging;buffered-fallback");
    assert_eq!(records[4][column("errors")], "4");
    assert_eq!(records[1][column("device_read_bytes")], (20_000 * 4096).to_string());
}

#[test]
fn what_needs_quotes_is_quoted() {
    let mut run = sample::rich();
    run.header.target.given = "a,b \"c\"\r\n=d ".into();
    let text = csv(&run);
    // A line break would end the line for the tools that the format is made for.
    assert!(text.contains(r#""a,b ""c""\r\n=d ""#));
    assert!(parse(&text)[1..].iter().all(|r| r[column("target")] == r#"a,b "c"\r\n=d "#));
    assert!(text.lines().all(|line| !line.contains('\r')));
}

#[test]
fn no_text_is_a_formula_and_numbers_stay_numbers() {
    let mut run = sample::rich();
    let target = |run: &record::Run| parse(&csv(run))[1][column("target")].clone();
    for evil in ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "=cmd|' /C calc'!A0", "\u{ff1d}1"] {
        run.header.target.given = evil.into();
        assert_eq!(target(&run), format!("'{evil}"));
    }
    for (fine, printed) in [("a=b", "a=b"), ("\t=1", "\\t=1"), ("/dev/sda", "/dev/sda")] {
        run.header.target.given = fine.into();
        assert_eq!(target(&run), printed);
    }
    // Only texts: a number below zero is one.
    run.visits.iter_mut().for_each(|visit| visit.started_unix_ns = -5);
    assert_eq!(parse(&csv(&run))[1][column("started_unix_ns")], "-5");
}

#[test]
fn the_documented_columns_are_the_printed_ones() {
    let doc =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md"))
            .unwrap();
    for column in CSV_COLUMNS {
        assert!(doc.contains(&format!("`{column}`")), "docs/formats.md does not say `{column}`");
    }
}
