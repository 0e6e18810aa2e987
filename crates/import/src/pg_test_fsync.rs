//! pg_test_fsync, 8.3 to today: flush rates by method, with one and with two writes, and by size
//! of `open_sync` writes.

use crate::draft::{Cell, Draft, Figure, Latency, Stream, axis, size_axis};
use crate::text::{self, Found, Line, Reader, Text};

const METHODS: [&str; 5] =
    ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"];

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut reader = text.reader();
    let mut draft = Draft { suite: "pg-test-fsync".to_owned(), ..Draft::default() };
    let seconds = settings(text, &mut draft)?;
    for (title, phase, writes) in [("one", "one-write", 1u64), ("two", "two-writes", 2)] {
        let start = format!("Compare file sync methods using {title} ");
        let line = reader.find(&start)?;
        let block = line.after(&start).and_then(|rest| rest.split_whitespace().next());
        let block = block.and_then(text::bytes).ok_or_else(|| line.unfit("a block size, `8kB`"))?;
        for method in METHODS {
            let (line, rest) = wanted(&mut reader, method)?;
            let coordinates = vec![axis("method", method)];
            draft.cells.push(cell(line, rest, phase, coordinates, Some(block), writes, seconds)?);
        }
    }
    reader.find("Compare open_sync with different")?;
    for count in [1u64, 2, 4, 8, 16] {
        let (line, rest) = after_notes(&mut reader, &format!("{count} *"))?;
        let words: Vec<_> = rest.split_whitespace().collect();
        let block = words.first().and_then(|word| text::bytes(word));
        let block = block.ok_or_else(|| line.unfit("a write size, `8kB`"))?;
        let rest =
            rest.split_once("open_sync write").map(|(_, rest)| rest.trim_start_matches('s').trim());
        let rest = rest.ok_or_else(|| line.unfit("`open_sync write`"))?;
        let coordinates = vec![size_axis("block_size", block), axis("writes", count)];
        draft.cells.push(cell(
            line,
            rest,
            "open-sync-sizes",
            coordinates,
            Some(block),
            count,
            seconds,
        )?);
    }
    reader.find("Test if fsync on non-write file descriptor")?;
    for (label, name) in
        [("write, fsync, close", "write-fsync-close"), ("write, close, fsync", "write-close-fsync")]
    {
        let (line, rest) = after_notes(&mut reader, label)?;
        draft.cells.push(cell(
            line,
            rest,
            "other-descriptor",
            vec![axis("method", name)],
            None,
            1,
            seconds,
        )?);
    }
    let line = reader.find("Non-sync")?;
    let block = line
        .text
        .split_whitespace()
        .find_map(|word| word.ends_with("kB").then(|| text::bytes(word)).flatten());
    let (line, rest) = after_notes(&mut reader, "write")?;
    draft.cells.push(cell(line, rest, "no-sync", Vec::new(), block, 1, seconds)?);
    if draft.cells.iter().all(|cell| cell.blank) {
        return Err(line.unfit("a method that is available"));
    }
    Ok(vec![draft])
}

fn settings(text: &Text, draft: &mut Draft) -> Found<Option<u64>> {
    let mut seconds = None;
    for line in &text.lines {
        if let Some((count, _)) = line.text.split_once(" second")
            && line.text.contains("per test")
        {
            seconds = Some(line.whole(count.trim(), "seconds a test")?);
            draft.settings.push(("seconds per test".to_owned(), count.trim().to_owned()));
        }
        if line.text.starts_with("O_DIRECT") || line.text.starts_with("Direct I/O") {
            draft.settings.push(("direct".to_owned(), line.text.trim().to_owned()));
        }
    }
    Ok(seconds)
}

/// The next line that is no note in brackets, which is to begin with `label`.
fn after_notes<'a>(reader: &mut Reader<'a>, label: &str) -> Found<(&'a Line, &'a str)> {
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

fn wanted<'a>(reader: &mut Reader<'a>, method: &str) -> Found<(&'a Line, &'a str)> {
    let (line, rest) = after_notes(reader, method)?;
    // `fsync` begins `fsync_writethrough`, too.
    if rest.starts_with('_') { Err(line.unfit(format!("`{method}`"))) } else { Ok((line, rest)) }
}

/// `5910.119 ops/sec     169 usecs/op`, or `n/a`.
fn cell(
    line: &Line,
    rest: &str,
    phase: &str,
    coordinates: Vec<(String, String)>,
    block: Option<u64>,
    writes: u64,
    seconds: Option<u64>,
) -> Found<Cell> {
    let words: Vec<_> = rest.trim_end_matches('*').split_whitespace().collect();
    let mut cell = Cell { phase: phase.to_owned(), coordinates, ..Cell::default() };
    let (rate, latency) = match words.as_slice() {
        ["n/a"] | ["n/a*"] => (None, None),
        [rate, "ops/sec", us, "usecs/op"] => {
            let rate = line.number(rate, "operations a second")?;
            (Some(rate), Some(line.number(us, "microseconds an operation")? * 1e3))
        }
        // Before 9.3 there is no time.
        [rate, "ops/sec"] => (Some(line.number(rate, "operations a second")?), None),
        _ => return Err(line.unfit("`... ops/sec ... usecs/op`, or `n/a`")),
    };
    cell.blank = rate.is_none();
    let ops = rate.map(|rate| Figure {
        iops: Some(rate),
        latency: Latency { mean: latency, ..Latency::default() },
        ..Figure::of("commit")
    });
    let stream = Stream {
        name: "commit".into(),
        op: "commit".into(),
        block: block.filter(|_| writes == 1),
        threads: Some(1),
        queue_depth: Some(1),
        ops: ops.into_iter().collect(),
        ..Stream::default()
    };
    cell.streams = vec![stream];
    cell.elapsed_ns = seconds.and_then(|s| s.checked_mul(1_000_000_000)).filter(|_| !cell.blank);
    Ok(cell)
}
