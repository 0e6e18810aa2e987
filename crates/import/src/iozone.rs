//! IOZone's grid of file and record sizes, and its throughput mode. Its kB is 1024 bytes.
//!
//! Phases and axes are those of our suite `iozone`, whose file has one size and whose processes one
//! number: only where an output has several of them they are axes, too.

use crate::draft::{Cell, Draft, Drafts, Figure, Latency, Stream, axis, size_axis};
use crate::text::{Found, Line, Text};
use units::Bytes;

const KIB: f64 = 1024.0;

/// Columns of the grid, in their order: phase and operation.
const GRID: [(&str, &str); 13] = [
    ("write", "write"),
    ("rewrite", "write"),
    ("read", "read"),
    ("reread", "read"),
    ("random-read", "read"),
    ("random-write", "write"),
    ("backward-read", "read"),
    ("record-rewrite", "write"),
    ("stride-read", "read"),
    ("fwrite", "write"),
    ("refwrite", "write"),
    ("fread", "read"),
    ("refread", "read"),
];
/// Their heads.
const HEADS: [&str; 13] = [
    "write", "rewrite", "read", "reread", "read", "write", "read", "rewrite", "read", "fwrite",
    "frewrite", "fread", "freread",
];

/// Throughput mode: what the workers are called, phase and operation. Longer names first.
const WORKERS: [(&str, &str, &str); 15] = [
    ("initial writers", "write", "write"),
    ("rewriters", "rewrite", "write"),
    ("re-readers", "reread", "read"),
    ("random readers", "random-read", "read"),
    ("random writers", "random-write", "write"),
    ("reverse readers", "backward-read", "read"),
    ("stride readers", "stride-read", "read"),
    ("mixed workload", "mixed", "mixed"),
    ("pwrite writers", "pwrite", "write"),
    ("pread readers", "pread", "read"),
    ("fwriters", "fwrite", "write"),
    ("freaders", "fread", "read"),
    ("refreaders", "refread", "read"),
    ("readers", "read", "read"),
    ("writers", "write", "write"),
];

/// What the numbers of the grid are.
#[derive(Clone, Copy)]
enum Unit {
    Kib,
    Ops,
    Micros,
}

/// Whether the next line has to be a row of the grid.
#[derive(Clone, Copy, PartialEq)]
enum Rows {
    Next,
    Maybe,
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    let mut lines: Vec<&Line> = Vec::new();
    for line in &text.lines {
        if line.text.trim() == "iozone test complete." {
            drafts.push(one(&lines, line)?);
            lines.clear();
        } else {
            lines.push(line);
        }
    }
    let more = lines.iter().any(|l| {
        l.text.contains("see throughput") || l.text.contains("reclen") || l.text.contains("Iozone:")
    });
    let found = drafts.all().filter(|_| !more);
    found.ok_or_else(|| text.ended("`iozone test complete.`"))
}

fn one(lines: &[&Line], end: &Line) -> Found<Draft> {
    let mut draft = Draft::of("iozone");
    let (mut unit, mut has_unit) = (Unit::Kib, false);
    let mut file_size = None;
    let mut record = None;
    let mut heads: Option<Vec<usize>> = None;
    let mut rows = Rows::Maybe;
    let mut workers = String::new();
    for line in lines {
        let text = line.text.trim();
        if text.starts_with("Iozone: Performance Test") && !draft.cells.is_empty() {
            return Err(line.unfit("`iozone test complete.` of the output before it"));
        } else if let Some(rest) = line.after("Version $Revision:") {
            draft.version = Some(rest.trim_end_matches('$').trim().to_owned());
        } else if let Some(rest) = line.after("Command line used:") {
            set(&mut draft, "command line", rest);
            let mut words = rest.split_whitespace().skip_while(|w| *w != "-f").skip(1);
            draft.target = words.next().map(str::to_owned);
        } else if let Some((_, rest)) = text.split_once("Output is in ") {
            // `OPS Mode. Output is in operations per second.`
            (unit, has_unit) = (unit_of(line, rest)?, true);
        } else if let Some(rest) = line.after("File size set to") {
            file_size = Some(size(line, rest)?);
        } else if let Some(rest) = line.after("Record Size") {
            record = Some(size(line, rest)?);
        } else if text.starts_with("Include ")
            || text.starts_with("O_DIRECT")
            || text.starts_with("SYNC Mode")
        {
            set(&mut draft, "mode", text);
        } else if text.contains("reclen") && text.contains("rewrite") {
            heads = Some(self::heads(line)?);
            rows = Rows::Next;
        } else if let Some(rest) = line.after("Children see throughput for") {
            let cell = throughput(line, rest, file_size, record)?;
            let is_same =
                |other: &Cell| other.phase == cell.phase && other.coordinates == cell.coordinates;
            if draft.cells.iter().any(is_same) {
                return Err(line.unfit("`iozone test complete.` of the output before it"));
            }
            draft.push(cell);
            workers = words(rest);
        } else if text.contains(" throughput ") && text.contains('=')
            || text.starts_with("Min xfer")
        {
            // The parent's line follows the children's, of the same workers.
            let parent = line.after("Parent sees throughput for").map(words);
            if parent.is_some_and(|parent| parent != workers) {
                return Err(line.unfit("`Children see throughput for` the same workers before it"));
            }
            detail(line, &mut draft)?;
        } else if let Some(heads) = &heads
            && (rows == Rows::Next || text.starts_with(|c: char| c.is_ascii_digit()))
            && !text.is_empty()
        {
            row(line, heads, unit)?.into_iter().for_each(|cell| draft.push(cell));
            rows = Rows::Next;
            continue;
        }
        // Rows stand together; behind a blank line other reports may follow.
        if text.is_empty() && rows == Rows::Next {
            rows = Rows::Maybe;
        }
    }
    draft.size = file_size;
    if heads.is_some() && !has_unit {
        draft.remark("No line says what its figures are: taken for kB/s, as IOZone prints unless told otherwise.");
    }
    if draft.cells.is_empty() {
        return Err(end.unfit("figures before it"));
    }
    if let Some(size) = shared(&mut draft, "file_size", |_| true) {
        draft.size = draft.size.or_else(|| size.parse::<Bytes>().ok().map(Bytes::get));
    }
    // One process in throughput mode is told from none by its axis.
    shared(&mut draft, "threads", |count| count != "1");
    Ok(draft)
}

/// Takes an axis away on which all cells have the same place, if it may be; returns that.
fn shared(draft: &mut Draft, field: &str, may_go: fn(&str) -> bool) -> Option<String> {
    let place = |cell: &Cell| {
        let found = cell.coordinates.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| value.clone())
    };
    let first = draft.cells.first().and_then(place).filter(|value| may_go(value))?;
    if draft.cells.iter().any(|cell| place(cell).as_ref() != Some(&first)) {
        return None;
    }
    for cell in &mut draft.cells {
        cell.coordinates.retain(|(name, _)| name != field);
    }
    Some(first)
}

/// `12 initial writers`, of a line of throughput.
fn words(rest: &str) -> String {
    let who = rest.split('=').next().unwrap_or_default();
    who.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn set(draft: &mut Draft, name: &str, value: &str) {
    draft.set(name, value);
}

fn unit_of(line: &Line, words: &str) -> Found<Unit> {
    let words = words.to_ascii_lowercase();
    let has = |marks: [&str; 2]| marks.iter().any(|mark| words.contains(mark));
    if words.starts_with("kbytes/sec") {
        Ok(Unit::Kib)
    } else if has(["microseconds", "usec"]) {
        Ok(Unit::Micros)
    } else if has(["operations per second", "ops"]) {
        Ok(Unit::Ops)
    } else {
        Err(line.unfit("`Output is in kBytes/sec`, in ops or in microseconds"))
    }
}

/// `1048576 kB`.
fn size(line: &Line, words: &str) -> Found<u64> {
    let mut words = words.split_whitespace();
    let count = line.whole(words.next().unwrap_or_default(), "a size in kB")?;
    match words.next() {
        Some("kB" | "KB" | "Kbytes" | "kBytes") => Ok(count.saturating_mul(1024)),
        Some(other) => Err(line.unfit_word(other, "`kB`")),
        None => Err(line.unfit("a size in kB")),
    }
}

/// Where the columns end, size and record size first.
fn heads(line: &Line) -> Found<Vec<usize>> {
    let mut ends = Vec::new();
    let mut at = 0;
    let wanted = ["kB", "reclen"].into_iter().chain(HEADS);
    for (word, head) in line.text.split_whitespace().zip(wanted) {
        at += line.text.get(at..).and_then(|rest| rest.find(word)).unwrap_or(0) + word.len();
        if !word.eq_ignore_ascii_case(head) {
            return Err(line.unfit_word(word, format!("the head `{head}`")));
        }
        ends.push(at);
    }
    if ends.len() < 4 { Err(line.unfit("heads of columns")) } else { Ok(ends) }
}

/// A line of the grid. Tests that were not run are blank.
fn row(line: &Line, heads: &[usize], unit: Unit) -> Found<Vec<Cell>> {
    let mut at = 0;
    let mut words = Vec::new();
    for word in line.text.split_whitespace() {
        at += line.text.get(at..).and_then(|rest| rest.find(word)).unwrap_or(0) + word.len();
        words.push((word, at));
    }
    let [(file, _), (record, end), figures @ ..] = words.as_slice() else {
        return Err(line.unfit("file size, record size and figures"));
    };
    let file = line.whole(file, "a file size in kB")?.saturating_mul(1024);
    let record = line.whole(record, "a record size in kB")?.saturating_mul(1024);
    if record > file {
        // One of the two is missing, and every figure stands in its neighbour's place.
        return Err(line.unfit("a file size, and a record size that is no more"));
    }
    let columns = heads.get(2..).unwrap_or_default();
    if figures.is_empty() || figures.len() > columns.len() {
        return Err(line.unfit(format!("1 to {} figures", columns.len())));
    }
    let mut drift = *end as isize - heads[1] as isize;
    let mut next = 0;
    let mut cells = Vec::new();
    for (k, (word, end)) in figures.iter().enumerate() {
        let off = |c: usize| *end as isize - columns[c] as isize - drift;
        let column = match figures.len() == columns.len() {
            true => Some(k),
            false => {
                (next..columns.len()).min_by_key(|&c| off(c).abs()).filter(|&c| off(c).abs() <= 2)
            }
        };
        let column = column.ok_or_else(|| line.unfit_word(word, "a figure under its head"))?;
        // Only as far as numbers push each other, so that blanks do not add up.
        drift = (drift + off(column)).clamp(-2, 6);
        next = column + 1;
        let value = line.number(word, "a figure")?;
        let (phase, op) = GRID[column];
        let figure = figure(op, value, unit);
        cells.push(cell(
            phase,
            op,
            figure,
            vec![size_axis("file_size", file), size_axis("block_size", record)],
            record,
            Some(1),
        ));
    }
    Ok(cells)
}

fn figure(op: &str, value: f64, unit: Unit) -> Figure {
    let mut figure = Figure::of(op);
    match unit {
        Unit::Kib => figure.bytes_per_s = Some(value * KIB),
        Unit::Ops => figure.iops = Some(value),
        Unit::Micros => figure.latency = Latency { mean: Some(value * 1e3), ..Latency::default() },
    }
    figure
}

fn cell(
    phase: &str,
    op: &str,
    figure: Figure,
    coordinates: Vec<(String, String)>,
    record: u64,
    threads: Option<u32>,
) -> Cell {
    let stream = Stream {
        block: Some(record).filter(|&r| r > 0),
        threads,
        queue_depth: Some(1),
        ops: vec![figure],
        name: phase.to_owned(),
        ..Stream::of(op)
    };
    Cell { phase: phase.to_owned(), coordinates, streams: vec![stream], ..Cell::default() }
}

/// `12 initial writers = 4732581.09 kB/sec`.
fn throughput(line: &Line, rest: &str, file: Option<u64>, record: Option<u64>) -> Found<Cell> {
    let wanted = "`Children see throughput for N initial writers = ... kB/sec`";
    let (who, rate) = rest.split_once('=').ok_or_else(|| line.unfit(wanted))?;
    let (count, name) = who.trim().split_once(' ').ok_or_else(|| line.unfit(wanted))?;
    let threads = u32::try_from(line.whole(count, "a number of workers")?).ok();
    let name = name.trim();
    let found = WORKERS.iter().find(|(workers, ..)| *workers == name);
    let (_, phase, op) = found.ok_or_else(|| line.unfit_word(name, "workers known here"))?;
    let value = rate_in(line, rate)?;
    let mut coordinates = Vec::new();
    coordinates.extend(file.map(|file| size_axis("file_size", file)));
    coordinates.extend(record.map(|record| size_axis("block_size", record)));
    coordinates.push(axis("threads", count));
    let figure = match value {
        (value, Unit::Kib) => figure(op, value, Unit::Kib),
        (value, unit) => figure(op, value, unit),
    };
    Ok(cell(phase, op, figure, coordinates, record.unwrap_or(0), threads))
}

/// `4732581.09 kB/sec`.
fn rate_in(line: &Line, words: &str) -> Found<(f64, Unit)> {
    let mut words = words.split_whitespace();
    let value = line.number(words.next().unwrap_or_default(), "a rate")?;
    let unit = match words.next().map(str::to_ascii_lowercase).as_deref() {
        Some("kb/sec" | "kbytes/sec") => Unit::Kib,
        Some("ops/sec") => Unit::Ops,
        _ => return Err(line.unfit("a rate in kB/sec or ops/sec")),
    };
    Ok((value, unit))
}

/// What the parent saw, least and most of the workers: told with the cell, in no figure.
fn detail(line: &Line, draft: &mut Draft) -> Found<()> {
    let (name, value) = line.text.split_once('=').ok_or_else(|| line.unfit("`name = value`"))?;
    let number = value.split_whitespace().next().unwrap_or_default();
    line.number(number, "a number")?;
    let phase = draft.cells.last().map(|cell| cell.phase.clone());
    let Some(phase) = phase else { return Err(line.unfit("`Children see throughput` before it")) };
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    set(draft, &format!("result {phase}: {name}"), value.trim());
    Ok(())
}
