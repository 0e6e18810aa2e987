//! ioping's statistics and its batch lines.
//!
//! The rate of completion is kept, not the rate at which requests were generated: it says how
//! fast the device answers.

use crate::draft::{Cell, Draft, Figure, Latency, Stream};
use crate::text::{self, Found, Line, Text};

/// A batch line: count, time, rate, bytes per second, min, mean, max, deviation; since 1.0 also
/// what was generated. All whole numbers.
pub(crate) fn is_batch(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    lines.peek().is_some()
        && lines.all(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            matches!(words.len(), 8 | 10)
                && words.iter().all(|w| w.bytes().all(|b| b.is_ascii_digit()))
        })
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let all: Vec<&str> = text.lines.iter().map(|line| line.text.as_str()).collect();
    if is_batch(&all.join("\n")) {
        return batch(text);
    }
    let mut reader = text.reader();
    let mut drafts = Vec::new();
    while let Some(title) = reader.seek("--- ") {
        let mut draft = Draft { suite: "ioping".to_owned(), ..Draft::default() };
        target(title, &mut draft)?;
        let Some(line) = reader.next() else { return Err(reader.ended("`requests completed in`")) };
        let (mut figure, moved, elapsed_ns) = completed(line)?;
        let Some(mut line) = reader.next() else { return Err(reader.ended("`generated`")) };
        // Versions before 1.0 have no such line.
        if let Some(rest) = line.after("generated ") {
            draft.settings.push(("result generated".to_owned(), rest.to_owned()));
            line = reader.next().ok_or_else(|| reader.ended("`min/avg/max/mdev`"))?;
        }
        figure.latency = extremes(line)?;
        figure.op = if moved == "written" { "write" } else { "read" }.to_owned();
        let block = block(text, title.number)?;
        draft.cells.push(cell(figure, block, elapsed_ns));
        drafts.push(draft);
    }
    if drafts.is_empty() { Err(text.ended("`--- ... ioping statistics ---`")) } else { Ok(drafts) }
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
            draft.settings.push(("target".to_owned(), about.to_owned()));
        }
        None => draft.target = Some(rest.to_owned()),
    }
    Ok(())
}

/// `10.3 k requests completed in 940.2 ms, 40.3 MiB read, 11.0 k iops, 42.9 MiB/s`.
fn completed(line: &Line) -> Found<(Figure, String, Option<u64>)> {
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
    let mut word = "read".to_owned();
    let mut bytes = None;
    if let Some(moved) = moved {
        let (size, how) = moved.rsplit_once(' ').ok_or_else(|| line.unfit(wanted))?;
        if !matches!(how, "read" | "written") {
            return Err(line.unfit_word(how, "`read` or `written`"));
        }
        let exact = size.ends_with(" KiB") || size.ends_with(" B");
        let found = real_bytes(size).ok_or_else(|| line.unfit_word(size, "a size"))?;
        bytes = (exact && !rounded).then_some(found as u64);
        word = how.to_owned();
    }
    let figure = Figure {
        // `10.3 k` is no count.
        requests: (!rounded).then_some(requests as u64),
        bytes,
        iops: Some(scaled(line, iops.trim(), "requests a second")?),
        bytes_per_s: Some(rate),
        ..Figure::default()
    };
    Ok((figure, word, text::ns(elapsed)))
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

fn cell(figure: Figure, block: Option<u64>, elapsed_ns: Option<u64>) -> Cell {
    let op = figure.op.clone();
    let stream = Stream {
        block,
        threads: Some(1),
        queue_depth: Some(1),
        ops: vec![figure],
        ..Stream::of(&op)
    };
    Cell { phase: op, streams: vec![stream], elapsed_ns, ..Cell::default() }
}

fn batch(text: &Text) -> Found<Vec<Draft>> {
    let mut draft = Draft { suite: "ioping".to_owned(), ..Draft::default() };
    for line in text.lines.iter().filter(|line| !line.text.trim().is_empty()) {
        let mut n = Vec::new();
        for word in line.text.split_whitespace() {
            n.push(line.whole(word, "a field of a batch line")?);
        }
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
        let figure = Figure {
            requests: Some(count),
            iops: Some(iops as f64),
            bytes_per_s: Some(rate as f64),
            latency,
            ..Figure::of("read")
        };
        draft.cells.push(cell(figure, None, Some(time)));
    }
    draft.remarks.push(
        "A batch line does not tell reads from writes: it is taken for reads, as ioping does \
         unless told otherwise."
            .to_owned(),
    );
    Ok(vec![draft])
}
