//! ioping's statistics and its batch lines.
//!
//! Phases are those of our suite `ioping`. Where ioping waited between its requests, as it does
//! unless told otherwise, the phase is `latency`, and its rate is that of requests by all the time,
//! pauses included, as ours is: how fast the device answers is in the latency. Where it did not
//! wait (`-R`), the phase is `seek-rate`, or `sequential` for requests of 256 KiB (`-RL`).

use std::ops::Range;

use crate::draft::{CELLS_MAX, Cell, Copies, Draft, Drafts, Figure, Latency, Stream, no_end_mark};
use crate::text::{self, Found, Line, Text};

/// A batch line: count, time, rate, bytes per second, min, mean, max, deviation; since 1.0 also
/// what was generated. All whole numbers.
pub(crate) fn is_batch(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some() && lines.all(is_batch_line)
}

/// Whether a batch line stands among other lines. Figures that other tools print in as many columns,
/// as in IOZone's grid, do not add up to one: its mean is between its extremes, and as many of it as
/// were counted take no longer than all the time.
pub(crate) fn has_batch_line(text: &str) -> bool {
    text.lines().any(is_held_batch_line)
}

fn is_held_batch_line(line: &str) -> bool {
    let n: Vec<f64> = match is_batch_line(line) {
        true => line.split_whitespace().filter_map(text::number).collect(),
        false => return false,
    };
    match n.as_slice() {
        &[count, time, _, _, min, mean, max, ..] => {
            count > 0.0 && min <= mean && mean <= max && count * mean <= time + count
        }
        _ => false,
    }
}

fn is_batch_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    let count = words.by_ref().take(11).take_while(|word| digits(word)).count();
    matches!(count, 8 | 10) && words.next().is_none()
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut lines = text.lines.iter().filter(|line| !line.text.trim().is_empty()).peekable();
    if lines.peek().is_some() && lines.all(|line| is_batch_line(&line.text)) {
        return batch(text);
    }
    let mut reader = text.reader();
    let mut drafts = Drafts::default();
    // Number of the last line that was read.
    let mut above = 0;
    while let Some(title) = reader.seek("--- ") {
        let mut draft = Draft::of("ioping");
        target(title, &mut draft)?;
        let Some(line) = reader.next() else { return Err(reader.ended("`requests completed in`")) };
        let done = completed(line)?;
        draft.set("result completed", line.text.trim());
        let Some(mut line) = reader.next() else { return Err(reader.ended("`generated`")) };
        // Versions before 1.0 have no such line: they print the time with the pauses.
        let (mut all_ns, mut not_counted) = (None, false);
        if let Some((left_out, rest)) = split_generated(line) {
            draft.set("result generated", rest);
            all_ns = Some(generated(line, rest)?);
            not_counted = !left_out.is_empty();
            if not_counted {
                draft.set("result not counted", left_out);
                draft.remark(format!(
                    "{left_out}: such requests, beyond `-t` or `-T`, are in none of its figures."
                ));
            }
            line = reader.next().ok_or_else(|| reader.ended("`min/avg/max/mdev`"))?;
        }
        let latency = extremes(line)?;
        of_these(text, above..title.number, &done, &latency)?;
        above = line.number;
        let block = block(text, title.number)?;
        draft.push(cell(Measured { latency, block, all_ns, not_counted, ..done }));
        drafts.push(draft);
    }
    match text.lines.iter().find(|line| line.number > above && is_held_batch_line(&line.text)) {
        Some(line) => Err(line.unfit(OF_ITS_OWN)),
        None => drafts.all().ok_or_else(|| text.ended("`--- ... ioping statistics ---`")),
    }
}

const OF_ITS_OWN: &str = "batch lines in a file of their own";

/// Batch lines above statistics have to be of parts of them, as `-p` prints them: else they are an
/// output of their own, which would be lost.
fn of_these(text: &Text, between: Range<usize>, all: &Measured, latency: &Latency) -> Found<()> {
    let start = text.lines.partition_point(|line| line.number <= between.start);
    let end = text.lines.partition_point(|line| line.number < between.end);
    let lines = text.lines.get(start..end).unwrap_or_default();
    let (mut sum, mut most, mut last) = (0.0, 0.0f64, None);
    for line in lines.iter().filter(|line| is_held_batch_line(&line.text)) {
        let n: Vec<f64> = line.text.split_whitespace().filter_map(text::number).collect();
        (sum, most, last) = (sum + n[0], most.max(n[0]), Some(line));
        let least = latency.min.map_or(0.0, |ns| ns as f64 * (1.0 - ROUNDED));
        let largest = latency.max.map_or(f64::INFINITY, |ns| ns as f64 * (1.0 + ROUNDED));
        if sum > all.about * (1.0 + ROUNDED) || n[4] < least || n[6] > largest {
            return Err(line.unfit(OF_ITS_OWN));
        }
    }
    // What is left is less than a part.
    match last.filter(|_| sum + most < all.about * (1.0 - ROUNDED)) {
        Some(line) => Err(line.unfit(OF_ITS_OWN)),
        None => Ok(()),
    }
}

/// Statistics have three digits.
const ROUNDED: f64 = 0.01;

/// What ioping says about its requests.
#[derive(Default)]
struct Measured {
    /// `read`, `write`, or `mixed` for both by turns (`-G`).
    op: String,
    /// How many, if it is not rounded.
    requests: Option<u64>,
    /// The same, rounded or not.
    about: f64,
    bytes: Option<u64>,
    iops: f64,
    bytes_per_s: f64,
    /// In which they were answered; in versions before 1.0 all the time.
    answered_ns: f64,
    /// All the time.
    all_ns: Option<f64>,
    latency: Latency,
    block: Option<u64>,
    /// Some requests are in none of these: they were faster or slower than asked for.
    not_counted: bool,
}

/// `2 too fast, 1 too slow, generated 10 requests in ...`: what was not counted, and what stands behind
/// `generated`.
fn split_generated<'a>(line: &'a Line) -> Option<(&'a str, &'a str)> {
    let (before, rest) = line.text.trim().split_once("generated ")?;
    let before = before.trim().trim_end_matches(',');
    let tells = |part: &str| part.ends_with(" too fast") || part.ends_with(" too slow");
    (before.is_empty() || before.split(", ").all(tells)).then_some((before, rest.trim()))
}

/// `10.3 k requests in 1.00 s, 40.4 MiB, 10.3 k iops, 40.3 MiB/s`: the time, in ns.
fn generated(line: &Line, rest: &str) -> Found<f64> {
    let time = rest.split(", ").next().and_then(|part| part.split_once("requests in "));
    let (_, time) = time.ok_or_else(|| line.unfit("`generated ... requests in ..., ...`"))?;
    duration(line, time)
}

/// `--- /dev/vda (block device 252 GiB) ioping statistics ---`.
fn target(line: &Line, draft: &mut Draft) -> Found<()> {
    let rest = line.after("--- ").and_then(|r| r.strip_suffix("ioping statistics ---"));
    let rest = rest.ok_or_else(|| line.unfit("`--- ... ioping statistics ---`"))?.trim();
    match rest.split_once(" (") {
        Some((name, about)) => {
            draft.target = Some(name.to_owned());
            let about = about.trim_end_matches(')');
            draft.file_system = about
                .split_once(' ')
                .map(|(kind, _)| kind.to_owned())
                .filter(|k| k != "block" && k != "device");
            draft.set("target", about);
        }
        None => draft.target = Some(rest.to_owned()),
    }
    Ok(())
}

/// `10.3 k requests completed in 940.2 ms, 40.3 MiB read, 11.0 k iops, 42.9 MiB/s`.
fn completed(line: &Line) -> Found<Measured> {
    let wanted = "`... requests completed in ..., ... read, ... iops, .../s`";
    let parts: Vec<_> = line.text.split(", ").map(str::trim).collect();
    let (count, rest) = match parts.first().and_then(|p| p.split_once("requests completed in")) {
        Some((count, time)) => (count.trim(), (time.trim(), &parts[1..])),
        None => return Err(line.unfit(wanted)),
    };
    let (time, rest) = rest;
    // Versions before 1.0 leave out what was moved.
    let (moved, rest) = match rest {
        [moved, iops, rate] => (Some(*moved), [*iops, *rate]),
        [iops, rate] => (None, [*iops, *rate]),
        _ => return Err(line.unfit(wanted)),
    };
    let elapsed = duration(line, time)?;
    let rounded = count.split_whitespace().count() > 1;
    let requests = scaled(line, count, "requests")?;
    let iops =
        rest[0].strip_suffix("iops").ok_or_else(|| line.unfit_word(rest[0], "`... iops`"))?;
    let rate =
        rest[1].strip_suffix("/s").ok_or_else(|| line.unfit_word(rest[1], "a rate, `.../s`"))?;
    let rate = text::bytes(&rate.replace(' ', "")).map(|_| rate).and_then(real_bytes);
    let rate = rate.ok_or_else(|| line.unfit_word(rest[1], "a rate with its unit"))?;
    let mut op = "read";
    let mut bytes = None;
    if let Some(moved) = moved {
        let (size, how) = moved.rsplit_once(' ').ok_or_else(|| line.unfit(wanted))?;
        let size = match how {
            "read" => size,
            "written" => {
                op = "write";
                size
            }
            // `8 KiB` alone: it read and wrote by turns.
            _ if real_bytes(moved).is_some() => {
                op = "mixed";
                moved
            }
            _ => return Err(line.unfit_word(how, "`read` or `written`, or a size alone")),
        };
        let exact = size.ends_with(" KiB") || size.ends_with(" B");
        let found = real_bytes(size).ok_or_else(|| line.unfit_word(size, "a size"))?;
        bytes = (exact && !rounded).then_some(found as u64);
    }
    Ok(Measured {
        op: op.to_owned(),
        // `10.3 k` is no count.
        requests: (!rounded).then_some(requests as u64),
        about: requests,
        bytes,
        iops: scaled(line, iops.trim(), "requests a second")?,
        bytes_per_s: rate,
        answered_ns: elapsed,
        ..Measured::default()
    })
}

/// Bytes of `42.9 MiB`, not cut to whole ones.
fn real_bytes(words: &str) -> Option<f64> {
    let (value, unit) = words.trim().split_once(' ')?;
    Some(text::number(value)? * text::binary(unit)? as f64)
}

/// `11.0 k`: thousands.
fn scaled(line: &Line, words: &str, what: &str) -> Found<f64> {
    let mut words = words.split_whitespace();
    let value = line.number(words.next().unwrap_or_default(), what)?;
    let scale = match words.next() {
        None => 1.0,
        Some("k") => 1e3,
        Some("M") => 1e6,
        Some("G") => 1e9,
        Some(other) => return Err(line.unfit_word(other, "`k`, `M` or `G`")),
    };
    Ok(value * scale)
}

/// ns of `940.2 ms`.
fn duration(line: &Line, words: &str) -> Found<f64> {
    let found = words.trim().split_once(' ');
    let found = found.and_then(|(v, unit)| Some(text::number(v)? * text::time_unit(unit)?));
    found.ok_or_else(|| line.unfit_word(words, "a time with its unit"))
}

/// `min/avg/max/mdev = 56.0 us / 91.0 us / 5.13 ms / 112.0 us`.
fn extremes(line: &Line) -> Found<Latency> {
    let rest = line.after("min/avg/max/mdev =");
    let rest = rest.ok_or_else(|| line.unfit("`min/avg/max/mdev =`"))?;
    let mut values = Vec::new();
    for part in rest.split('/') {
        values.push(duration(line, part)?);
    }
    let &[min, mean, max, sd] = values.as_slice() else { return Err(line.unfit("four times")) };
    Ok(Latency {
        min: text::ns(min),
        mean: Some(mean),
        max: text::ns(max),
        sd: Some(sd),
        ..Latency::default()
    })
}

/// Of the lines of single requests above the statistics: `4 KiB <<< .`.
fn block(text: &Text, before: usize) -> Found<Option<u64>> {
    let above = text.lines.partition_point(|line| line.number < before);
    let above = text.lines.get(..above).unwrap_or_default().iter().rev();
    let mut own = above.take_while(|line| !line.text.trim_start().starts_with("--- "));
    let Some(line) = own.find(|line| line.text.contains(" request=")) else {
        return Ok(None);
    };
    let size = line.text.split(['<', '>']).next().unwrap_or_default();
    let bytes = real_bytes(size).ok_or_else(|| line.unfit("a size, `4 KiB <<<`"))?;
    Ok(Some(bytes as u64))
}

/// Above this a request is taken for one of `-L`, which has 256 KiB, below for one of 4 KiB.
const LARGE: f64 = 181.0 * 1024.0;
/// Waiting for less than this share of the time is no waiting: ioping itself takes some.
const BUSY: f64 = 0.5;

fn cell(done: Measured) -> Cell {
    let busy_ns = match done.all_ns {
        Some(_) => done.answered_ns,
        None => done.latency.mean.map_or(done.answered_ns, |mean| mean * done.about),
    };
    let all_ns = done.all_ns.unwrap_or(done.answered_ns);
    let waits = busy_ns < BUSY * all_ns;
    let size = done.block.map_or(done.bytes_per_s / done.iops.max(1.0), |block| block as f64);
    let phase = match waits {
        true => "latency",
        false if size > LARGE => "sequential",
        false => "seek-rate",
    };
    // Of all the time there were more requests than those that were counted.
    let rated = all_ns > 0.0 && !done.not_counted;
    let by_all = |n: f64| if rated { Some(n * 1e9 / all_ns) } else { None };
    // Zeros of no request are no latencies.
    let latency = if done.about > 0.0 { done.latency } else { Latency::default() };
    let figure = Figure {
        requests: done.requests,
        bytes: done.bytes,
        iops: if waits { by_all(done.about) } else { Some(done.iops) },
        bytes_per_s: match (waits, done.bytes) {
            (true, Some(bytes)) => by_all(bytes as f64),
            (true, None) => None,
            (false, _) => Some(done.bytes_per_s),
        },
        latency,
        ..Figure::of(&done.op)
    };
    let stream = Stream {
        name: phase.to_owned(),
        block: done.block,
        threads: Some(1),
        queue_depth: Some(1),
        ops: vec![figure],
        ..Stream::of(&done.op)
    };
    let elapsed_ns = text::ns(if waits { all_ns } else { done.answered_ns });
    Cell { phase: phase.to_owned(), streams: vec![stream], elapsed_ns, ..Cell::default() }
}

/// How many of the lines right before the last one are of parts of what that is of (`-p`): it counts
/// at least as many requests in at least as much time as they do together, and has the least and the
/// largest of theirs. What is left is less than a part.
fn parts(lines: &[Vec<u64>]) -> usize {
    let Some((all, before)) = lines.split_last().filter(|(all, _)| all.len() == 10) else {
        return 0;
    };
    let mut sums = [0u64; 10];
    let (mut count, mut of_them, mut largest, mut requests) = (0, false, 0, 0);
    for part in before.iter().rev() {
        for field in [0, 1, 8, 9] {
            sums[field] = sums[field].saturating_add(part[field]);
        }
        let holds = [0, 1, 8, 9].iter().all(|&field| all[field] >= sums[field]) && all[9] > sums[9];
        if !(holds && part[4] >= all[4] && part[6] <= all[6]) {
            break;
        }
        of_them |= part[4] == all[4] || part[6] == all[6];
        (largest, requests) = (largest.max(part[0]), sums[0]);
        count += 1;
    }
    if of_them && all[0].saturating_sub(requests) <= largest { count } else { 0 }
}

/// The lines that are of no part of another one's time, and how many are left out.
fn wholes(mut lines: Vec<Vec<u64>>) -> (Vec<Vec<u64>>, usize) {
    let (mut wholes, mut left_out) = (Vec::new(), 0);
    loop {
        let parts = parts(&lines);
        let Some(whole) = lines.pop() else { break };
        wholes.push(whole);
        lines.truncate(lines.len() - parts);
        left_out += parts;
    }
    wholes.reverse();
    (wholes, left_out)
}

fn batch(text: &Text) -> Found<Vec<Draft>> {
    let mut draft = Draft::of("ioping");
    let mut words = None;
    let mut lines: Vec<Vec<u64>> = Vec::new();
    let mut copies = Copies::default();
    for line in text.lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let mut n = Vec::new();
        for word in line.text.split_whitespace() {
            n.push(line.whole(word, "a field of a batch line")?);
        }
        // A version prints lines of one kind.
        if words.is_some_and(|words| words != n.len()) {
            return Err(line.unfit("as many whole numbers as on the lines before"));
        }
        words = Some(n.len());
        if !copies.have(&n) && lines.len() <= CELLS_MAX {
            lines.push(n);
        }
    }
    let (wholes, parts) = wholes(lines);
    for n in wholes {
        let line = text.lines.first().ok_or_else(|| text.ended("a batch line"))?;
        let &[count, time, iops, rate, min, mean, max, sd, ..] = n.as_slice() else {
            return Err(line.unfit("8 or 10 whole numbers"));
        };
        let latency = Latency {
            min: Some(min),
            mean: Some(mean as f64),
            max: Some(max),
            sd: Some(sd as f64),
            ..Latency::default()
        };
        draft.push(cell(Measured {
            op: "read".to_owned(),
            requests: Some(count),
            about: count as f64,
            bytes: None,
            iops: iops as f64,
            bytes_per_s: rate as f64,
            answered_ns: time as f64,
            all_ns: n.get(9).map(|&ns| ns as f64),
            latency,
            ..Measured::default()
        }));
    }
    draft.warnings.extend(copies.warning());
    if parts > 0 {
        let text = format!(
            "{parts} lines of this file are left out: they are of parts of the time that the line behind \
             them is of, as `-p` prints them."
        );
        draft.warnings.push(("snapshots".to_owned(), text));
    }
    draft.remark(
        "A batch line does not tell reads from writes: it is taken for reads, as ioping does \
         unless told otherwise.",
    );
    draft.remark(no_end_mark(draft.cells.len(), "batch line", "batch lines"));
    Ok(vec![draft])
}
