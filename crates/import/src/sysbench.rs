//! sysbench fileio, 0.4 to 1.x; and what its file and OLTP tests have in common.
//!
//! 0.4 counts operations and prints one rate that leaves syncs out; 1.x prints a rate for each
//! kind and no counts. Latency is of all events together, syncs included: where there were
//! several kinds it stands with an operation `event`, which is in no rate. Several outputs in
//! one file are several runs.

use crate::draft::{self, Cell, Draft, Drafts, Figure, Latency, RESULT, Stream};
use crate::text::{self, Found, Line, Reader, Text};

const MIB: f64 = 1024.0 * 1024.0;

/// The outputs in a text: each begins with sysbench's version, or, where that was not pasted,
/// behind the last line of the one before. What only made or removed files or tables is none.
pub(crate) fn outputs<'a>(text: &'a Text<'a>) -> impl Iterator<Item = Text<'a>> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    let (mut empty, mut ended) = (true, false);
    for (k, line) in text.lines.iter().enumerate() {
        let is_blank = line.text.trim().is_empty();
        let begins = !empty && (version(line).is_some() || ended && !is_blank);
        match found.last_mut() {
            Some((_, end)) if !begins => *end = k + 1,
            _ => {
                found.push((k, k + 1));
                (empty, ended) = (true, false);
            }
        }
        empty &= is_blank;
        ended |= line.after(LAST).is_some();
    }
    let several = found.len() > 1;
    found.into_iter().filter_map(move |(start, end)| {
        let lines = text.lines.get(start..end).unwrap_or_default();
        is_output(lines, several).then(|| Text { name: text.name, lines: lines.to_vec() })
    })
}

/// The last line of an output; 1.1 has none such.
const LAST: &str = "execution time (avg/stddev):";
/// What stands in an output once.
const ONCE: [&str; 7] = [
    "Operations performed:",
    "File operations:",
    "Throughput:",
    "OLTP test statistics:",
    "SQL statistics:",
    "total time:",
    "min:",
];

fn is_output(lines: &[Line], several: bool) -> bool {
    let has = |marks: &[&str]| lines.iter().any(|l| marks.iter().any(|mark| l.text.contains(mark)));
    let chores = ["Creating files for", "Removing test files", "Creating table", "Dropping table"];
    let ran = has(&["Threads started!", "Number of threads:", "statistics:"]);
    let begun = lines.iter().any(|line| version(line).is_some());
    ran || !has(&chores) && (begun || !several)
}

fn version<'a>(line: &'a Line) -> Option<&'a str> {
    let rest = line.after("sysbench ")?;
    let word = rest.split_whitespace().next()?.trim_end_matches(':');
    word.starts_with(|c: char| c.is_ascii_digit()).then_some(word)
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    for output in outputs(text) {
        let draft = one(&output)?;
        drafts.push(draft);
    }
    drafts.all().ok_or_else(|| text.ended("the output of a run"))
}

/// What stands above the results.
pub(crate) struct Head {
    pub version: Option<String>,
    pub threads: Option<u32>,
}

pub(crate) fn head(text: &Text) -> Found<Head> {
    // Each of these reports is of the time since the one before, the last one too.
    if let Some(line) = text.lines.iter().find(|l| l.text.trim().ends_with("Checkpoint report:")) {
        return Err(line.unfit("a run without `--report-checkpoints`: no report is of all of it"));
    }
    // The end of the one before is missing, or the head of this one.
    for mark in ONCE {
        if let Some(line) = text.lines.iter().filter(|line| line.after(mark).is_some()).nth(1) {
            return Err(line.unfit("the head of another output before it, `sysbench 1.0.20`"));
        }
    }
    let version = text.lines.iter().find_map(version).map(str::to_owned);
    let line = text.lines.iter().find(|l| l.text.trim().starts_with("Number of threads:"));
    let threads = match line {
        Some(line) => {
            let word = line.after("Number of threads:").unwrap_or_default();
            u32::try_from(line.whole(word, "a number of threads")?).ok()
        }
        None => None,
    };
    Ok(Head { version, threads })
}

/// What stands below the results: time, events, latency, fairness.
pub(crate) struct Tail {
    pub elapsed_ns: Option<u64>,
    pub events: Option<u64>,
    pub latency: Latency,
    /// How many threads there were, by the events of one of them.
    pub threads: Option<u32>,
    /// What has no place among the figures, as it is printed: the sum of latencies, and how evenly
    /// the threads shared the work.
    pub told: Vec<(String, String)>,
}

/// Names of what is told beside.
const SUM: &str = "latency sum";
const OLD_SUM: &str = "total time taken by event execution";

pub(crate) fn tail(reader: &mut Reader, histogram: Option<Bins>) -> Found<Tail> {
    let line = reader.find("total time:")?;
    let word = line.after("total time:").unwrap_or_default();
    let elapsed_ns = duration(line, word, "the total time")?;
    let (line, word) = reader.want("total number of events:")?;
    let events = line.whole(word, "a number of events")?;
    // A line that was lost would shift every percentile.
    let binned = histogram.iter().flatten().fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
    if histogram.is_some() && binned != events {
        let wanted = format!("as many as its histogram has, {binned}");
        return Err(line.unfit_word(word, wanted));
    }
    let mut told = Vec::new();
    let mut tell = |name: &str, value: &str| told.push((format!("{RESULT}{name}"), value.into()));
    // Until 0.5, in seconds.
    let mut sum = None;
    let mut ahead = reader.clone();
    if let Some(line) = ahead.next()
        && let Some(word) = line.after(OLD_SUM).map(|rest| rest.trim_start_matches(':').trim())
    {
        // 0.5 prints the unit.
        let seconds = word.strip_suffix('s').unwrap_or(word);
        sum = Some(line.number(seconds, "the sum of latencies")? * 1e9);
        tell(OLD_SUM, word);
    }
    let (mut latency, of_new) = latencies(reader, histogram, events > 0)?;
    if let Some((line, word)) = of_new {
        sum = Some(line.number(word, "the sum of latencies")? * 1e6);
        tell(SUM, word);
    }
    // Two decimals of a ms say little about fast storage; the sum says it.
    if let Some(sum) = sum.filter(|_| events > 0) {
        latency.mean = Some(sum / events as f64);
    }
    let mut threads = None;
    reader.find("Threads fairness:")?;
    for label in ["events (avg/stddev):", LAST] {
        let (line, word) = reader.want(label)?;
        let (mean, sd) =
            word.split_once('/').ok_or_else(|| line.unfit("a mean and a deviation"))?;
        let mean = line.number(mean.trim(), "a mean")?;
        line.number(sd.trim(), "a deviation")?;
        if label != LAST {
            threads = shared_by(events, mean);
        }
        tell(label.trim_end_matches(':'), word);
    }
    Ok(Tail { elapsed_ns, events: Some(events), latency, threads, told })
}

/// How many threads made these events, if each made so many on average: the mean is printed with four
/// decimals. `None` where no whole number fits, or a neighbour would print the same mean.
fn shared_by(events: u64, mean: f64) -> Option<u32> {
    let threads = (events as f64 / mean).round();
    let fits = |threads: f64| threads >= 1.0 && (events as f64 / threads - mean).abs() <= 1e-4;
    let is_one = fits(threads) && !fits(threads - 1.0) && !fits(threads + 1.0);
    (is_one && threads <= f64::from(u32::MAX)).then_some(threads as u32)
}

/// The threads as the head says, else as the events of one of them do, with a remark.
pub(crate) fn threads(draft: &mut Draft, head: Option<u32>, tail: &Tail) -> Option<u32> {
    let found = head.or(tail.threads);
    if let Some(count) = found.filter(|_| head.is_none()) {
        draft.remark(format!(
            "The line `Number of threads:` is not in the file: {count} by the events of all threads \
             and of one."
        ));
    }
    found
}

/// 1.1 ends with the latency: neither time nor events.
fn tail_of_1_1(reader: &mut Reader, histogram: Option<Bins>) -> Found<Tail> {
    let (latency, sum) = latencies(reader, histogram, true)?;
    let Some((line, word)) = sum else { return Err(reader.ended("`sum:`")) };
    line.number(word, "the sum of latencies")?;
    let told = vec![(format!("{RESULT}{SUM}"), word.to_owned())];
    Ok(Tail { elapsed_ns: None, events: None, latency, threads: None, told })
}

/// A line and what is told on it.
type Told<'a> = (&'a Line<'a>, &'a str);

/// Latency, and the sum of all where it is printed in ms (1.x). A 0 is less than two decimals of a
/// ms show, and not known.
fn latencies<'a>(
    reader: &mut Reader<'a>,
    histogram: Option<Bins>,
    any: bool,
) -> Found<(Latency, Option<Told<'a>>)> {
    let mut latency = Latency { buckets: histogram.unwrap_or_default(), ..Latency::default() };
    let line = reader.find("min:")?;
    // 1.x has the unit in the title, 0.4 and 0.5 behind each number.
    let value = |line: &Line, word: &str, what: &str| -> Found<f64> {
        let found = if word.ends_with('s') {
            duration(line, word, what)?.map(|ns| ns as f64)
        } else {
            Some(line.number(word, what)? * 1e6)
        };
        found.ok_or_else(|| line.unfit_word(word, what.to_owned()))
    };
    let min = value(line, line.after("min:").unwrap_or_default(), "the least latency")?;
    let (line, word) = reader.want("avg:")?;
    let mean = value(line, word, "the mean latency")?;
    let (line, word) = reader.want("max:")?;
    let max = value(line, word, "the largest latency")?;
    if any {
        let seen = |ns: &f64| *ns > 0.0;
        latency.min = Some(min).filter(seen).and_then(text::ns);
        latency.mean = Some(mean).filter(seen);
        latency.max = Some(max).filter(seen).and_then(text::ns);
    }
    percentile(reader, &mut latency, &value, any)?;
    let mut ahead = reader.clone();
    let sum = ahead.next().and_then(|line| Some((line, line.after("sum:")?)));
    if sum.is_some() {
        *reader = ahead;
    }
    Ok((latency, sum))
}

/// `95th percentile:`, `approx.  95 percentile:`; none where it was switched off.
fn percentile(
    reader: &mut Reader,
    latency: &mut Latency,
    value: &dyn Fn(&Line, &str, &str) -> Found<f64>,
    any: bool,
) -> Found<()> {
    let Some(line) = reader.next() else { return Err(reader.ended("a percentile")) };
    // As 1.0 says that it was asked for none.
    if line.after("percentile stats:") == Some("disabled") {
        return Ok(());
    }
    let (label, word) = line.text.split_once(':').ok_or_else(|| line.unfit("a percentile"))?;
    let label = label.trim();
    if !label.ends_with("percentile") {
        return Err(line.unfit("a percentile"));
    }
    let digits: String = label.chars().filter(char::is_ascii_digit).collect();
    let share = line.whole(&digits, "which percentile")?;
    let ns = value(line, word.trim(), "a latency")?;
    if any && ns > 0.0 && (1..=100).contains(&share) {
        latency.quantiles.extend(text::ns(ns).map(|ns| (share as f64 / 100.0, ns)));
    }
    Ok(())
}

/// `2.0029s`, `12.98ms`, `300.0 s`.
pub(crate) fn duration(line: &Line, word: &str, what: &str) -> Found<Option<u64>> {
    let found = text::split_unit(word).and_then(|(v, unit)| Some(v * text::time_unit(unit)?));
    let found = found.ok_or_else(|| line.unfit_word(word, format!("{what} with its unit")))?;
    Ok(text::ns(found))
}

/// Latency in ns, and how many events had it.
pub(crate) type Bins = Vec<(u64, u64)>;

/// The bins of `--histogram`: value in ms, bar, count. `None` without one.
pub(crate) fn histogram(text: &Text) -> Found<Option<Bins>> {
    let mut reader = text.reader();
    let mut bins: Bins = Vec::new();
    if reader.seek("Latency histogram").is_none() {
        return Ok(None);
    }
    reader.want("value")?;
    while let Some(line) = reader.peek().filter(|l| l.text.contains('|')) {
        reader.next();
        let (value, rest) = line.text.split_once('|').unwrap_or_default();
        let ms = line.number(value.trim(), "a latency in ms")?;
        let count = rest.split_whitespace().last().unwrap_or_default();
        let count = line.whole(count, "a count")?;
        let ns = text::ns(ms * 1e6).ok_or_else(|| line.unfit("a latency in ms"))?;
        // Bins narrower than a microsecond are printed alike.
        match bins.last_mut() {
            Some((last, _)) if *last > ns => {
                return Err(line.unfit_word(value.trim(), "a latency above the one before"));
            }
            Some((last, sum)) if *last == ns => *sum = sum.saturating_add(count),
            _ => bins.push((ns, count)),
        }
    }
    // What follows are words: a line of numbers is a bin that lost its bar, and perhaps others with it.
    match reader.next() {
        Some(line) if !line.text.trim_start().starts_with(char::is_alphabetic) => {
            Err(line.unfit("a bin of the histogram, `0.012 |***  34`"))
        }
        _ => Ok(Some(bins)),
    }
}

/// The mode as `--file-test-mode` names it.
fn mode(text: &Text) -> Option<&'static str> {
    let modes = [
        ("sequential write (creation)", "seqwr"),
        ("sequential rewrite", "seqrewr"),
        ("sequential write", "seqwr"),
        ("sequential read", "seqrd"),
        ("random read", "rndrd"),
        ("random write", "rndwr"),
        ("random r/w", "rndrw"),
    ];
    let line = text.lines.iter().find_map(|line| line.after("Doing "))?;
    modes.iter().find(|(words, _)| line.starts_with(words)).map(|(_, mode)| *mode)
}

fn one(text: &Text) -> Found<Draft> {
    let head = head(text)?;
    let mut draft = Draft { version: head.version, ..Draft::default() };
    let mode = mode(text);
    draft.suite =
        mode.map_or_else(|| "sysbench-fileio".to_owned(), |mode| format!("sysbench-{mode}"));
    let block = settings(text, &mut draft)?;
    let histogram = histogram(text)?;
    let mut reader = text.reader();
    let mut rates = match reader.seek("Operations performed:") {
        Some(line) => counted(line, &mut reader, block)?,
        None => {
            reader = text.reader();
            let old = reader.seek("File operations:").is_some();
            if old { rates_of_1_0(&mut reader)? } else { rates_of_1_1(text, &mut reader)? }
        }
    };
    let tail = match text.lines.iter().any(|line| line.text.contains("total time:")) {
        true => tail(&mut reader, histogram)?,
        false => tail_of_1_1(&mut reader, histogram)?,
    };
    let threads = threads(&mut draft, head.threads, &tail);
    draft.settings.extend(tail.told);
    let data: Vec<_> = rates.iter().filter(|f| f.op != "fsync").map(|f| f.op.clone()).collect();
    match rates.as_mut_slice() {
        [only] => {
            only.latency = tail.latency;
            only.requests = only.requests.or(tail.events);
        }
        _ => rates.push(Figure {
            requests: tail.events,
            latency: tail.latency,
            ..Figure::of("event")
        }),
    }
    let op = match data.as_slice() {
        [only] => only.clone(),
        _ => "mixed".to_owned(),
    };
    let direct =
        draft.settings.iter().any(|(n, v)| n == "extra file open flags" && v.contains("direct"));
    let engine = draft.settings.iter().find(|(n, _)| n == "I/O mode").map(|(_, v)| v.clone());
    if is_commit_test(&draft, mode, block) {
        draft.suite = "sysbench-fsync-rate".to_owned();
    }
    let name = match draft.suite.as_str() {
        "sysbench-fsync-rate" => "commit",
        _ => mode.unwrap_or("fileio"),
    };
    let name = name.to_owned();
    let stream = Stream {
        name: name.clone(),
        op,
        block,
        threads,
        // Each thread waits for its request, but for asynchronous mode, which does not say.
        queue_depth: engine.as_ref().filter(|e| !e.contains("async")).map(|_| 1),
        engine,
        direct,
        ops: rates,
    };
    draft.cells.push(Cell {
        phase: name,
        streams: vec![stream],
        elapsed_ns: tail.elapsed_ns,
        ..Cell::default()
    });
    Ok(draft)
}

/// One file of one block, flushed after each write: our suite `sysbench-fsync-rate`.
fn is_commit_test(draft: &Draft, mode: Option<&str>, block: Option<u64>) -> bool {
    let says = |what: &str| draft.settings.iter().any(|(n, v)| n == "fsync" && v.contains(what));
    mode == Some("rndwr")
        && draft.files == Some(1)
        && draft.size.is_some()
        && draft.size == block
        && says("each 1 requests")
}

/// Files, sizes and flags; the block size is returned.
fn settings(text: &Text, draft: &mut Draft) -> Found<Option<u64>> {
    let mut block = None;
    let mut set = |name: &str, value: &str| draft::set(&mut draft.settings, name, value);
    for line in &text.lines {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        match words.as_slice() {
            ["Extra", "file", "open", "flags:", flags @ ..] => {
                set("extra file open flags", &flags.join(" "))
            }
            [count, "files,", size, "each"] => {
                let files = line.whole(count, "a number of files")?;
                draft.files = u32::try_from(files).ok();
                draft.size = text::bytes(size);
                set("files", line.text.trim());
            }
            [size, "total", "file", "size"] => set("total file size", size),
            ["Block", "size", size] => {
                let bytes = text::bytes(size);
                block = Some(bytes.ok_or_else(|| line.unfit_word(size, "a block size"))?);
                set("block size", size);
            }
            ["Read/Write", "ratio", .., ratio] => set("read/write ratio", ratio),
            ["Periodic", "FSYNC", ..] | ["Calling", "fsync()", ..] => {
                set("fsync", line.text.trim())
            }
            ["Using", rest @ .., "I/O", "mode"] => set("I/O mode", &rest.join(" ")),
            _ => {}
        }
    }
    Ok(block)
}

/// 0.4 and 0.5: `Operations performed:  28800 Read, 19200 Write, 61361 Other = 109361 Total`.
fn counted(line: &Line, reader: &mut Reader, block: Option<u64>) -> Found<Vec<Figure>> {
    let rest = line.after("Operations performed:").unwrap_or_default();
    let (parts, total) = rest.split_once('=').ok_or_else(|| line.unfit("`= ... Total`"))?;
    let mut counts = Vec::new();
    for (part, label) in parts.split(',').zip(["read", "write", "other"]) {
        let words: Vec<_> = part.split_whitespace().collect();
        let [count, word] = words.as_slice() else { return Err(line.unfit("three counts")) };
        if !word.to_ascii_lowercase().starts_with(label) {
            return Err(line.unfit_word(word, format!("`{label}`")));
        }
        counts.push(line.whole(count, "a count")?);
    }
    let &[reads, writes, others] = counts.as_slice() else {
        return Err(line.unfit("three counts"));
    };
    let total = total.split_whitespace().next().unwrap_or_default();
    let sum = reads.saturating_add(writes).saturating_add(others);
    if line.whole(total, "a total")? != sum {
        return Err(line.unfit_word(total, format!("the sum of the counts, {sum}")));
    }
    let (next, moved) = reader.want("Read ")?;
    let transfer = moved.rsplit_once('(').and_then(|(_, rate)| rate.strip_suffix("/sec)"));
    let transfer = transfer.and_then(text::split_unit);
    let (rate, unit) = transfer.ok_or_else(|| next.unfit("a rate, `(2.4999Mb/sec)`"))?;
    let scale = text::binary(unit).ok_or_else(|| next.unfit_word(unit, "a unit"))?;
    let Some(next) = reader.next() else { return Err(reader.ended("`Requests/sec executed`")) };
    let words: Vec<_> = next.text.split_whitespace().collect();
    let [iops, "Requests/sec", "executed"] = words.as_slice() else {
        return Err(next.unfit("`... Requests/sec executed`"));
    };
    let iops = next.number(iops, "requests a second")?;
    let figure = |op: &str, requests: u64| Figure {
        requests: Some(requests),
        bytes: block.and_then(|block| requests.checked_mul(block)),
        ..Figure::of(op)
    };
    let kinds = [("read", reads), ("write", writes)];
    let mut figures: Vec<_> =
        kinds.iter().filter(|(_, n)| *n > 0).map(|(op, n)| figure(op, *n)).collect();
    // The printed rates are of reads and writes together.
    if let [only] = figures.as_mut_slice() {
        (only.iops, only.bytes_per_s) = (Some(iops), Some(rate * scale as f64));
    }
    if others > 0 {
        figures.push(Figure { requests: Some(others), ..Figure::of("fsync") });
    }
    Ok(figures)
}

/// 1.0: a rate for each kind, then MiB/s.
fn rates_of_1_0(reader: &mut Reader) -> Found<Vec<Figure>> {
    let mut rates = [0.0; 3];
    for (rate, label) in rates.iter_mut().zip(["reads/s:", "writes/s:", "fsyncs/s:"]) {
        let (line, word) = reader.want(label)?;
        *rate = line.number(word, "a rate")?;
    }
    reader.want("Throughput:")?;
    let mut moved = [0.0; 2];
    for (rate, label) in moved.iter_mut().zip(["read, MiB/s:", "written, MiB/s:"]) {
        let (line, word) = reader.want(label)?;
        *rate = line.number(word, "MiB a second")?;
    }
    Ok(figures(rates, moved))
}

/// 1.1: `read:  IOPS=41869.99 327.11 MiB/s (343.00 MB/s)`.
fn rates_of_1_1<'a>(text: &'a Text, reader: &mut Reader<'a>) -> Found<Vec<Figure>> {
    *reader = text.reader();
    if reader.seek("Throughput:").is_none() {
        return Err(reader.ended("`File operations:` or `Operations performed:`"));
    }
    let (mut rates, mut moved) = ([0.0; 3], [0.0; 2]);
    for (k, label) in ["read:", "write:", "fsync:"].into_iter().enumerate() {
        let (line, rest) = reader.want(label)?;
        let mut words = rest.split_whitespace();
        let iops = words.next().and_then(|w| w.strip_prefix("IOPS=")).unwrap_or_default();
        rates[k] = line.number(iops, "`IOPS=` and a rate")?;
        if let Some(moved) = moved.get_mut(k) {
            *moved = line.number(words.next().unwrap_or_default(), "MiB a second")?;
        }
    }
    Ok(figures(rates, moved))
}

fn figures(rates: [f64; 3], moved: [f64; 2]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (k, op) in ["read", "write", "fsync"].into_iter().enumerate() {
        let mib = moved.get(k).copied();
        if rates[k] > 0.0 || mib.is_some_and(|mib| mib > 0.0) {
            let bytes_per_s = mib.map(|mib| mib * MIB);
            figures.push(Figure { iops: Some(rates[k]), bytes_per_s, ..Figure::of(op) });
        }
    }
    figures
}
