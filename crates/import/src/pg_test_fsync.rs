//! pg_test_fsync, 8.3 to today: flush rates by method, with one and with two writes, and by size
//! of `open_sync` writes.
//!
//! Its operation is a commit of one, two or up to sixteen writes. Phases are those of our suite
//! `pg-test-fsync`.

use crate::draft::{Cell, Draft, Drafts, Figure, Latency, Stream, axis};
use crate::text::{self, Found, Line, Reader, Text};

const METHODS: [&str; 5] =
    ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"];

/// What holds for every line.
struct Sheet {
    /// Seconds a test.
    seconds: Option<u64>,
    /// Whether lines have the time of an operation: from 9.3 on all of them.
    timed: bool,
    /// Whether the open methods go around the page cache.
    direct: bool,
}

/// What a line measured.
struct Place<'a> {
    phase: &'a str,
    coordinates: Vec<(String, String)>,
    /// Bytes of it.
    block: Option<u64>,
    /// `commit`; `write` where nothing is flushed.
    op: &'static str,
    direct: bool,
}

/// The first table of an output.
const FIRST: &str = "Compare file sync methods using one ";

/// Every output is a run: none says what it measured, so that they need not be repeats.
pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    for output in outputs(text) {
        drafts.push(one(&output)?);
    }
    drafts.all().ok_or_else(|| text.ended(format!("`{FIRST}`")))
}

/// The outputs in a text: a line that stands above the first table, or its title, begins another
/// one behind that.
fn outputs<'a>(text: &'a Text<'a>) -> Vec<Text<'a>> {
    let mut starts = vec![0];
    let mut has_table = false;
    for (k, line) in text.lines.iter().enumerate() {
        let is_table = line.after(FIRST).is_some();
        if has_table && (is_table || seconds(line).is_some() || is_about_direct(line)) {
            starts.push(k);
            has_table = false;
        }
        has_table |= is_table;
    }
    starts.push(text.lines.len());
    let lines = |range: &[usize]| text.lines.get(range[0]..range[1]).unwrap_or_default().to_vec();
    starts.windows(2).map(|range| Text { name: text.name, lines: lines(range) }).collect()
}

/// `5 seconds per test`.
fn seconds<'a>(line: &'a Line) -> Option<&'a str> {
    let (count, _) = line.text.split_once(" second")?;
    line.text.contains("per test").then_some(count.trim())
}

fn is_about_direct(line: &Line) -> bool {
    line.text.starts_with("O_DIRECT") || line.text.starts_with("Direct I/O")
}

fn one(text: &Text) -> Found<Draft> {
    let mut reader = text.reader();
    let mut draft = Draft::of("pg-test-fsync");
    let sheet = sheet(text, &mut draft)?;
    for (title, writes) in [("one", 1u64), ("two", 2)] {
        let start = format!("Compare file sync methods using {title} ");
        let line = reader.find(&start)?;
        let block = line.after(&start).and_then(|rest| rest.split_whitespace().next());
        let block = block.and_then(text::bytes).ok_or_else(|| line.unfit("a block size, `8kB`"))?;
        for method in METHODS {
            let (line, rest) = wanted(&mut reader, method)?;
            let is_open = method.starts_with("open");
            let place = Place {
                phase: &format!("{title}-{}", method.replace('_', "-")),
                coordinates: Vec::new(),
                block: Some(block.saturating_mul(writes)),
                op: "commit",
                direct: is_open && sheet.direct,
            };
            draft.push(sheet.cell(line, rest, place)?);
        }
    }
    reader.find("Compare open_sync with different")?;
    for writes in [1u64, 2, 4, 8, 16] {
        let (line, rest) = after_notes(&mut reader, &format!("{writes} *"))?;
        let words: Vec<_> = rest.split_whitespace().collect();
        let block = words.first().and_then(|word| text::bytes(word));
        let block = block.ok_or_else(|| line.unfit("a write size, `8kB`"))?;
        let rest =
            rest.split_once("open_sync write").map(|(_, rest)| rest.trim_start_matches('s').trim());
        let rest = rest.ok_or_else(|| line.unfit("`open_sync write`"))?;
        let place = Place {
            phase: "split",
            coordinates: vec![axis("commit_writes", writes.to_string())],
            block: Some(block.saturating_mul(writes)),
            op: "commit",
            direct: sheet.direct,
        };
        draft.push(sheet.cell(line, rest, place)?);
    }
    reader.find("Test if fsync on non-write file descriptor")?;
    for (label, name) in
        [("write, fsync, close", "write-fsync-close"), ("write, close, fsync", "write-close-fsync")]
    {
        let (line, rest) = after_notes(&mut reader, label)?;
        let place = Place {
            phase: "other-descriptor",
            coordinates: vec![axis("method", name)],
            block: None,
            op: "commit",
            direct: false,
        };
        draft.push(sheet.cell(line, rest, place)?);
    }
    let line = reader.find("Non-sync")?;
    let block = line
        .text
        .split_whitespace()
        .find_map(|word| word.ends_with("kB").then(|| text::bytes(word)).flatten());
    let (line, rest) = after_notes(&mut reader, "write")?;
    let coordinates = Vec::new();
    let place = Place { phase: "unflushed", coordinates, block, op: "write", direct: false };
    draft.push(sheet.cell(line, rest, place)?);
    if draft.cells.iter().all(|cell| cell.blank) {
        return Err(line.unfit("a method that is available"));
    }
    absent(&mut draft);
    Ok(draft)
}

/// Names the methods that were not to be had.
fn absent(draft: &mut Draft) {
    let phases = draft.cells.iter().filter(|cell| cell.blank).map(|cell| cell.phase.as_str());
    let phases = phases.collect::<Vec<_>>().join(", ");
    if !phases.is_empty() {
        draft.remark(format!("pg_test_fsync says `n/a`, so there is no figure: {phases}."));
    }
}

fn sheet(text: &Text, draft: &mut Draft) -> Found<Sheet> {
    let mut sheet = Sheet { seconds: None, timed: false, direct: false };
    for line in &text.lines {
        sheet.timed |= line.text.contains("usecs/op");
        if let Some(count) = seconds(line) {
            sheet.seconds = Some(line.whole(count, "seconds a test")?);
            draft.set("seconds per test", count);
        }
        if is_about_direct(line) {
            sheet.direct = line.text.starts_with("O_DIRECT supported");
            draft.set("direct", line.text.trim());
        }
    }
    Ok(sheet)
}

/// The next line that is no note in brackets, which is to begin with `label`.
fn after_notes<'a>(reader: &mut Reader<'a>, label: &str) -> Found<(&'a Line<'a>, &'a str)> {
    loop {
        let mut ahead = reader.clone();
        let Some(line) = ahead.next() else { return Err(reader.ended(&format!("`{label}`"))) };
        // Notes may take two lines; the second ends with the bracket.
        let text = line.text.trim();
        if text.starts_with('(') || text.ends_with(')') {
            *reader = ahead;
            continue;
        }
        return reader.want(label);
    }
}

fn wanted<'a>(reader: &mut Reader<'a>, method: &str) -> Found<(&'a Line<'a>, &'a str)> {
    let (line, rest) = after_notes(reader, method)?;
    // `fsync` begins `fsync_writethrough`, too.
    if rest.starts_with('_') { Err(line.unfit(format!("`{method}`"))) } else { Ok((line, rest)) }
}

impl Sheet {
    /// `5910.119 ops/sec     169 usecs/op`, or `n/a`.
    fn cell(&self, line: &Line, rest: &str, place: Place) -> Found<Cell> {
        let words: Vec<_> = rest.trim_end_matches('*').split_whitespace().collect();
        let found = match words.as_slice() {
            ["n/a"] | ["n/a*"] => None,
            [rate, "ops/sec", us, "usecs/op"] => {
                let mean = line.number(us, "microseconds an operation")? * 1e3;
                Some((line.number(rate, "operations a second")?, Some(mean)))
            }
            [rate, "ops/sec"] if !self.timed => {
                Some((line.number(rate, "operations a second")?, None))
            }
            _ => return Err(line.unfit("`... ops/sec ... usecs/op`, or `n/a`")),
        };
        let blank = found.is_none();
        let ops = found.into_iter().map(|(rate, mean)| Figure {
            iops: Some(rate),
            latency: Latency { mean, ..Latency::default() },
            ..Figure::of(place.op)
        });
        let stream = Stream {
            name: place.phase.to_owned(),
            block: place.block,
            threads: Some(1),
            queue_depth: Some(1),
            direct: place.direct,
            ops: ops.collect(),
            ..Stream::of(place.op)
        };
        Ok(Cell {
            phase: place.phase.to_owned(),
            coordinates: place.coordinates,
            streams: vec![stream],
            elapsed_ns: self.seconds.and_then(|s| s.checked_mul(1_000_000_000)).filter(|_| !blank),
            blank,
            ..Cell::default()
        })
    }
}
