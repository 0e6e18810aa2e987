//! xdd's result lines: a line per pass and target, and one of all of them together. Its MB is
//! 10^6 bytes; its latency is elapsed time by operations.
//!
//! Passes that read are phase `pass` of our suite `xdd`, by the size of their requests.

use std::collections::{BTreeMap, BTreeSet};

use crate::draft::{CELLS_MAX, Cell, Draft, Drafts, Figure, Latency, Stream, size_axis};
use crate::text::{Fault, Found, Line, Text, ns};

const MB: f64 = 1e6;

/// Outputs one behind the other are runs of their own.
pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    for lines in text.lines.split_inclusive(|line| mark(line) == Some("COMBINED")) {
        if drafts.is_empty() || lines.iter().any(begins) {
            let draft = one(text, lines)?;
            drafts.push(draft);
        }
    }
    drafts.all().ok_or_else(|| text.ended("the line `COMBINED`"))
}

/// The first word of a line.
fn mark<'a>(line: &'a Line) -> Option<&'a str> {
    line.text.split_whitespace().next()
}

/// Whether a line is of an output that was not read to its end: what stands behind the last one may
/// be anything.
fn begins(line: &Line) -> bool {
    let marks = ["What", "TARGET_PASS", "TARGET_AVERAGE", "COMBINED"];
    line.after("XDD Version").is_some() || mark(line).is_some_and(|word| marks.contains(&word))
}

/// An output: each ends with its line `COMBINED`.
fn one(text: &Text, lines: &[Line]) -> Found<Draft> {
    let mut draft = Draft::of("xdd");
    let mut columns: Vec<&str> = Vec::new();
    let mut passes: Vec<(u64, Stream, u64)> = Vec::new();
    let mut met = BTreeSet::new();
    let mut combined = None;
    for line in lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match words.first().copied() {
            Some("What") if words.contains(&"Ops") => columns = words,
            Some("TARGET_PASS") if passes.len() == CELLS_MAX => {
                let what = format!("more than {CELLS_MAX} passes");
                return Err(Fault::TooMuch { line: Some(line.number), what });
            }
            Some("TARGET_PASS") => {
                let (pass, stream, elapsed) = result(line, &words, &columns)?;
                if !met.insert((pass, stream.name.clone())) {
                    // Streams of one pass run side by side: there would be two of one target.
                    return Err(line.unfit("a pass of a target that has no line before it"));
                }
                passes.push((pass, stream, elapsed));
            }
            Some("COMBINED") => combined = Some(result(line, &words, &columns)?),
            Some("TARGET_AVERAGE") => {
                result(line, &words, &columns)?;
            }
            _ => setting(line, &mut draft),
        }
    }
    let Some(combined) = combined else { return Err(text.ended("the line `COMBINED`")) };
    if passes.is_empty() {
        passes.push(combined);
    }
    let of_first = passes.first().map(|(_, stream, _)| (stream.op.clone(), stream.block));
    let (op, block) = of_first.unwrap_or_default();
    let sequential = draft.settings.iter().any(|(n, v)| n == "seek pattern" && v != "random");
    let phase = if op == "read" && !sequential { "pass".to_owned() } else { op };
    let coordinates: Vec<_> =
        block.map(|block| size_axis("block_size", block)).into_iter().collect();
    let mut cells: BTreeMap<u64, Cell> = BTreeMap::new();
    for (pass, stream, elapsed) in passes {
        let cell = cells.entry(pass).or_insert_with(|| Cell {
            phase: phase.clone(),
            coordinates: coordinates.clone(),
            ..Cell::default()
        });
        cell.streams.push(stream);
        cell.elapsed_ns = cell.elapsed_ns.max(Some(elapsed));
    }
    cells.into_values().for_each(|cell| draft.push(cell));
    draft.remarks.push("xdd works latency out of elapsed time: it has no tail.".to_owned());
    Ok(draft)
}

/// `Name, value` lines of its configuration.
fn setting(line: &Line, draft: &mut Draft) {
    let Some((name, value)) = line.text.split_once(", ") else { return };
    let (name, value) = (name.trim(), value.trim());
    match name {
        "XDD Version" | "Version" => draft.version = Some(value.to_owned()),
        "ID for this run"
        | "Queue Depth"
        | "Request size"
        | "Per-pass time limit"
        | "Number of passes"
        | "Seek pattern"
        | "Seek range"
        | "Direct I/O"
        | "I/O Synchronization" => {
            draft.set(name.to_ascii_lowercase(), value);
        }
        "Target device" | "Target Name" => draft.target = Some(value.trim_matches('\'').to_owned()),
        _ => {}
    }
}

/// Pass, stream and elapsed ns.
fn result(line: &Line, words: &[&str], columns: &[&str]) -> Found<(u64, Stream, u64)> {
    if columns.is_empty() {
        return Err(line.unfit("a line of heads before it, `What Pass Target ...`"));
    }
    if words.len() != columns.len() {
        return Err(line.unfit(format!(
            "{} words, as there are heads, of {}",
            columns.len(),
            words.len()
        )));
    }
    let word = |name: &str| {
        let found = columns.iter().position(|c| *c == name).and_then(|k| words.get(k).copied());
        found.ok_or_else(|| line.unfit(format!("a column `{name}`")))
    };
    let pass = line.whole(word("Pass")?, "a pass")?;
    let target = word("Target")?;
    line.whole(target, "a target")?;
    let depth = u32::try_from(line.whole(word("Queue")?, "a queue depth")?).ok();
    let bytes = line.whole(word("Bytes_Xfered")?, "bytes")?;
    let requests = line.whole(word("Ops")?, "a number of operations")?;
    let elapsed = ns(line.number(word("Elapsed")?, "seconds")? * 1e9);
    let elapsed = elapsed.ok_or_else(|| line.unfit("elapsed seconds"))?;
    let op = match word("Op_Type")?.to_ascii_lowercase().as_str() {
        "read" => "read",
        "write" => "write",
        "mixed" | "read/write" => "mixed",
        "no-op" | "noop" => "no-op",
        other => return Err(line.unfit_word(other, "`read`, `write` or `mixed`")),
    };
    let block = line.whole(word("Xfer_Size")?, "a request size in bytes")?;
    let cpu = match word("Pct_CPU") {
        Ok(word) => Some(line.number(word, "CPU in percent")?),
        Err(_) => None,
    };
    let figure = Figure {
        requests: Some(requests),
        bytes: Some(bytes),
        iops: Some(line.number(word("IOPS")?, "operations a second")?),
        bytes_per_s: Some(line.number(word("Bandwidth")?, "MB a second")? * MB),
        cpu_percent: cpu,
        latency: Latency {
            mean: Some(line.number(word("Latency")?, "ms")? * 1e6),
            ..Latency::default()
        },
        ..Figure::of(op)
    };
    let stream = Stream {
        name: format!("target-{target}"),
        block: Some(block).filter(|&b| b > 0),
        threads: Some(1),
        queue_depth: depth.filter(|&d| d > 0),
        ops: vec![figure],
        ..Stream::of(op)
    };
    Ok((pass, stream, elapsed))
}
