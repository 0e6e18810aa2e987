//! Orion's summary, and its matrices of rates and latencies.
//!
//! Orion does not say how many bytes its MB has; its large requests of 1024 KB are 1 MB to it,
//! so it is taken for 2^20.
//!
//! A summary names its run, so it is one of our suites `orion-simple`, `-normal`, ... with their
//! phases and axes. A matrix tells neither that, nor sizes, nor the share of writes.

use crate::csv;
use crate::draft::{Cell, Draft, Drafts, Figure, Latency, Stream, axis};
use crate::text::{self, Found, Line, Text};

const MIB: f64 = 1024.0 * 1024.0;
const SMALL: u64 = 8 << 10;
const LARGE: u64 = 1 << 20;

/// Whether a text is one of the matrices: `Large/Small, 0, 1, 2` above rows of numbers.
pub(crate) fn is_csv(text: &str) -> bool {
    text.lines().any(is_head)
}

fn is_head(line: &str) -> bool {
    if !line.contains("Large/Small") {
        return false;
    }
    let fields = csv::fields(line);
    fields.first().is_some_and(|f| f == "Large/Small")
        && fields.len() > 1
        && fields.iter().skip(1).all(|f| f.is_empty() || f.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    if text.lines.iter().any(|line| is_head(&line.text)) {
        if let Some(line) = text.lines.iter().find(|line| line.after("ORION VERSION").is_some()) {
            return Err(line.unfit("a matrix alone: its summary is another file"));
        }
        return matrix(text).map(|draft| vec![draft]);
    }
    let starts = |line: &&Line| line.text.trim().starts_with("ORION VERSION");
    let mut outputs: Vec<Vec<&Line>> = vec![Vec::new()];
    for line in &text.lines {
        if starts(&line) {
            outputs.push(Vec::new());
        }
        if let Some(last) = outputs.last_mut() {
            last.push(line);
        }
    }
    let blank = |lines: &Vec<&Line>| lines.iter().all(|l| l.text.trim().is_empty());
    if outputs.len() > 1
        && outputs.first().is_some_and(|first| !first.iter().any(|l| l.text.contains('@')))
    {
        outputs.remove(0);
    }
    outputs.retain(|lines| !blank(lines));
    let mut drafts = Drafts::default();
    for lines in &outputs {
        drafts.push(summary(text, lines)?);
    }
    drafts.all().ok_or_else(|| text.ended("`ORION VERSION`"))
}

/// What a summary says about how it was made.
#[derive(Default)]
struct Setup {
    run: Option<String>,
    small: Option<u64>,
    large: Option<u64>,
    writes: Option<u64>,
    seconds: Option<u64>,
    sequential: bool,
}

impl Setup {
    fn op(&self) -> &'static str {
        match self.writes {
            Some(0) => "read",
            Some(100) => "write",
            _ => "mixed",
        }
    }

    fn cell(&self, phase: &str, (small, large): (u64, u64)) -> Cell {
        let (count, block) = match phase {
            "large" => (large, self.large.unwrap_or(LARGE)),
            _ => (small, self.small.unwrap_or(SMALL)),
        };
        let streams_of_large = phase == "large" && self.sequential;
        let alone = if phase == "large" { small == 0 } else { large == 0 };
        let coordinates = match (self.suite(), streams_of_large) {
            (Some(_), false) if alone => vec![axis("queue_depth", count)],
            // Sequential streams have several requests in flight each, which is not told.
            (Some(_), true) if alone => vec![axis("threads", count)],
            _ => vec![axis("small", small), axis("large", large)],
        };
        let count = u32::try_from(count).ok();
        let stream = Stream {
            name: phase.to_owned(),
            op: self.op().to_owned(),
            block: Some(block),
            threads: if streams_of_large { count } else { Some(1) },
            queue_depth: if streams_of_large { None } else { count },
            ..Stream::default()
        };
        Cell {
            phase: phase.to_owned(),
            coordinates,
            streams: vec![stream],
            elapsed_ns: self.seconds.and_then(|s| s.checked_mul(1_000_000_000)),
            ..Cell::default()
        }
    }

    /// Our suite of the run.
    fn suite(&self) -> Option<String> {
        let run = self.run.as_deref()?;
        ["simple", "normal", "oltp", "dss", "advanced"]
            .contains(&run)
            .then(|| format!("orion-{run}"))
    }
}

fn summary(whole: &Text, lines: &[&Line]) -> Found<Draft> {
    let mut draft = Draft::of("orion");
    let mut setup = Setup::default();
    let (mut large, mut iops, mut least) = (None, None, None);
    let mut targets: Vec<String> = Vec::new();
    let mut latencies: Vec<(&Line, &str)> = Vec::new();
    for (k, line) in lines.iter().enumerate() {
        let text = line.text.trim();
        if let Some(rest) = line.after("ORION VERSION") {
            draft.version = Some(rest.to_owned());
        } else if text.starts_with("Command") && text.ends_with(':') {
            let command = lines.get(k + 1).map_or("", |line| line.text.trim());
            draft.set("command line", command);
            let mut words = command.split_whitespace().skip_while(|w| *w != "-run").skip(1);
            setup.run = words.next().map(str::to_owned);
        } else if let Some(rest) = line.after("Small IO size:") {
            setup.small = Some(kilobytes(line, rest)?);
        } else if let Some(rest) = line.after("Large IO size:") {
            setup.large = Some(kilobytes(line, rest)?);
        } else if let Some(rest) = line.after("Write:") {
            setup.writes = Some(line.whole(rest.trim_end_matches('%'), "a share in percent")?);
        } else if let Some(rest) = line.after("Duration for each Data Point:") {
            let seconds = rest.split_whitespace().next().unwrap_or_default();
            setup.seconds = Some(line.whole(seconds, "seconds")?);
        } else if let Some(rest) = line.after("Name:") {
            targets.extend(rest.split("Size:").next().map(|name| name.trim().to_owned()));
        } else if let Some(rest) = line.after("Maximum Large MBPS=") {
            large = Some(best(line, rest)?);
        } else if let Some(rest) = line.after("Maximum Small IOPS=") {
            iops = Some(best(line, rest)?);
        } else if let Some(rest) = line.after("Minimum Small Latency=") {
            least = Some(latency_best(line, rest)?);
        } else if text.starts_with("Small Read Latency:")
            || text.starts_with("Small Write Latency:")
        {
            latencies.push((line, text));
        } else if let Some((name, value)) = text.split_once(':')
            && [
                "IO Types",
                "IO Type",
                "Simulated Array Type",
                "Cache Size",
                "Small Columns",
                "Large Columns",
                "Total Data Points",
                "Test",
                "Stripe Depth",
            ]
            .contains(&name)
        {
            setup.sequential |= name.starts_with("IO Type") && value.contains("Sequential");
            draft.set(name.to_ascii_lowercase(), value.trim_matches([',', ' ']));
        }
    }
    let wants = |what: &str, found: bool| {
        if found { Ok(()) } else { Err(whole.ended(format!("`{what}`"))) }
    };
    let run = setup.run.as_deref();
    if !matches!(run, Some("oltp" | "advanced")) {
        wants("Maximum Large MBPS=", large.is_some())?;
    }
    if !matches!(run, Some("dss" | "advanced")) || iops.is_some() {
        wants("Maximum Small IOPS=", iops.is_some())?;
        wants("Minimum Small Latency=", least.is_some())?;
    }
    wants("Maximum Small IOPS=` or `Maximum Large MBPS=", large.is_some() || iops.is_some())?;
    details(whole, &latencies, iops.map(|(_, at)| at), least.map(|(_, at)| at))?;
    if let Some(suite) = setup.suite() {
        draft.suite = suite;
    }
    draft.target = (!targets.is_empty()).then(|| targets.join(", "));
    draft.files = u32::try_from(targets.len()).ok().filter(|&n| n > 0);
    if let Some((rate, at)) = large {
        let figure = Figure { bytes_per_s: Some(rate * MIB), ..Figure::of(setup.op()) };
        push(&mut draft, &setup, "large", at, figure);
    }
    if let Some((rate, at)) = iops {
        let latency = told(&latencies, at, &setup)?;
        push(
            &mut draft,
            &setup,
            "small",
            at,
            Figure { iops: Some(rate), latency, ..Figure::of(setup.op()) },
        );
    }
    if let Some((mean, at)) = least {
        let mut latency = told(&latencies, at, &setup)?;
        latency.mean = Some(mean);
        match (iops, draft.cells.last_mut()) {
            // One point is both.
            (Some((_, same)), Some(cell)) if same == at => {
                if let Some(figure) = cell.streams.first_mut().and_then(|s| s.ops.first_mut()) {
                    figure.latency = latency;
                }
            }
            _ => {
                push(&mut draft, &setup, "small", at, Figure { latency, ..Figure::of(setup.op()) })
            }
        }
    }
    draft.remarks.push("Orion's MB is taken for 2^20 bytes.".to_owned());
    draft
        .remarks
        .push("A summary holds the best points only: noise makes them look better.".to_owned());
    Ok(draft)
}

/// Versions with a line about the latencies of a point have one for each point.
fn details(
    whole: &Text,
    lines: &[(&Line, &str)],
    iops: Option<(u64, u64)>,
    least: Option<(u64, u64)>,
) -> Found<()> {
    let mut wanted: Vec<(u64, u64)> = iops.into_iter().chain(least).collect();
    for (line, text) in lines {
        let at = text.split_once('@').map(|(_, at)| point(line, at)).transpose()?;
        if let Some(found) = wanted.iter().position(|wanted| Some(*wanted) == at) {
            wanted.remove(found);
        }
    }
    if lines.is_empty() || wanted.is_empty() {
        return Ok(());
    }
    Err(whole.ended("`Small Read Latency: ...` of the point with the least latency"))
}

fn push(draft: &mut Draft, setup: &Setup, phase: &str, at: (u64, u64), figure: Figure) {
    let mut cell = setup.cell(phase, at);
    if let Some(stream) = cell.streams.first_mut() {
        stream.ops.push(figure);
    }
    draft.push(cell);
}

/// `8 KB`.
fn kilobytes(line: &Line, words: &str) -> Found<u64> {
    let count = words.strip_suffix("KB").map(str::trim);
    let count = count.ok_or_else(|| line.unfit("a size in KB"))?;
    Ok(line.whole(count, "a size in KB")?.saturating_mul(1024))
}

/// `9899 @ Small=17 and Large=0`.
fn best(line: &Line, rest: &str) -> Found<(f64, (u64, u64))> {
    let (value, at) =
        rest.split_once('@').ok_or_else(|| line.unfit("`@ Small=... and Large=...`"))?;
    Ok((line.number(value.trim(), "a rate")?, point(line, at)?))
}

/// `123.58 usecs @ Small=1 and Large=0`; before 11.2 in ms without a unit.
fn latency_best(line: &Line, rest: &str) -> Found<(f64, (u64, u64))> {
    let (value, at) =
        rest.split_once('@').ok_or_else(|| line.unfit("`@ Small=... and Large=...`"))?;
    let mut words = value.split_whitespace();
    let number = line.number(words.next().unwrap_or_default(), "a latency")?;
    let scale = match words.next() {
        None => 1e6,
        Some(unit) => {
            text::time_unit(unit).ok_or_else(|| line.unfit_word(unit, "a unit of time"))?
        }
    };
    Ok((number * scale, point(line, at)?))
}

fn point(line: &Line, at: &str) -> Found<(u64, u64)> {
    let found = at.trim().strip_prefix("Small=").and_then(|rest| rest.split_once(" and Large="));
    let (small, large) = found.ok_or_else(|| line.unfit("`@ Small=... and Large=...`"))?;
    Ok((line.whole(small, "a load")?, line.whole(large, "a load")?))
}

/// `Small Read Latency: avg=1711 us, min=791 us, max=12316 us, std dev=454 us @ Small=17 and
/// Large=0`, of that point, where all its requests are of one kind.
fn told(lines: &[(&Line, &str)], at: (u64, u64), setup: &Setup) -> Found<Latency> {
    let mut latency = Latency::default();
    for (line, text) in lines {
        let (values, place) =
            text.split_once('@').ok_or_else(|| line.unfit("`@ Small=... and Large=...`"))?;
        let kind = if text.starts_with("Small Read") { "read" } else { "write" };
        if point(line, place)? != at || kind != setup.op() {
            continue;
        }
        let (_, values) = values.split_once(':').unwrap_or_default();
        for value in values.split(',') {
            let (name, value) = value.split_once('=').ok_or_else(|| line.unfit("`name=value`"))?;
            let found = value.trim().split_once(' ');
            let found = found.and_then(|(v, unit)| Some(text::number(v)? * text::time_unit(unit)?));
            let ns = found.ok_or_else(|| line.unfit_word(value, "a time with its unit"))?;
            match name.trim() {
                "avg" => latency.mean = Some(ns),
                "min" => latency.min = text::ns(ns),
                "max" => latency.max = text::ns(ns),
                "std dev" => latency.sd = Some(ns),
                other => return Err(line.unfit_word(other, "`avg`, `min`, `max` or `std dev`")),
            }
        }
    }
    Ok(latency)
}

/// What a matrix holds.
#[derive(Clone, Copy, PartialEq)]
enum Holds {
    Iops,
    Mbps,
    Micros,
    Millis,
}

fn matrix(text: &Text) -> Found<Draft> {
    let head = text.lines.iter().position(|line| is_head(&line.text)).unwrap_or(0);
    let (above, rest) = text.lines.split_at(head);
    let Some((head, rows)) = rest.split_first() else { return Err(text.ended("`Large/Small`")) };
    let said = above.iter().map(|l| l.text.to_lowercase()).collect::<Vec<_>>().join(" ");
    let name = text.name.to_lowercase();
    let holds = match () {
        () if said.contains("microseconds") => Holds::Micros,
        () if said.contains("latency") || name.contains("_lat") => Holds::Millis,
        () if said.contains("in iops") || name.contains("_iops") => Holds::Iops,
        () if said.contains("mbps") || name.contains("_mbps") => Holds::Mbps,
        () => return Err(head.unfit("a title, or a file name with _iops, _mbps or _lat")),
    };
    let heads = csv::fields(&head.text);
    let columns: Vec<&str> =
        heads.iter().skip(1).map(String::as_str).filter(|f| !f.is_empty()).collect();
    let mut draft = Draft::of("orion");
    // A matrix does not say what was asked.
    let setup = Setup::default();
    let mut loads = Vec::new();
    for line in rows.iter().filter(|line| !line.text.trim().is_empty()) {
        let fields = csv::fields(&line.text);
        let large = line.whole(fields.first().map_or("", String::as_str), "a load")?;
        if loads.last().is_some_and(|before| large <= *before) {
            return Err(line.unfit("a load above the one before"));
        }
        loads.push(large);
        // A blank more is a sign, too: of a figure with a decimal comma.
        if fields.len() != heads.len() {
            let wanted = format!("{} fields, as there are heads, of {}", heads.len(), fields.len());
            return Err(line.unfit(wanted));
        }
        let values = fields.get(1..).unwrap_or_default();
        for (small, value) in columns.iter().zip(values).filter(|(_, value)| !value.is_empty()) {
            let small = head.whole(small, "a load")?;
            let value = line.number(value, "a figure")?;
            // There is no point without any load, and no rate of what was not asked for.
            let phase = if holds == Holds::Mbps { "large" } else { "small" };
            let load = if phase == "large" { large } else { small };
            if load == 0 && value == 0.0 {
                continue;
            }
            let mut figure = Figure::of("mixed");
            match holds {
                Holds::Iops => figure.iops = Some(value),
                Holds::Mbps => figure.bytes_per_s = Some(value * MIB),
                Holds::Micros => figure.latency.mean = Some(value * 1e3),
                Holds::Millis => figure.latency.mean = Some(value * 1e6),
            }
            let mut cell = setup.cell(phase, (small, large));
            for stream in &mut cell.streams {
                // Sizes can be asked for; a matrix names none.
                stream.block = None;
                stream.ops.push(figure.clone());
            }
            draft.push(cell);
        }
    }
    if draft.cells.is_empty() {
        return Err(text.ended("a row of figures"));
    }
    draft.remark(crate::draft::no_end_mark(loads.len(), "row", "rows"));
    // Five small loads and two large ones for each disk, and no large one: `simple`, `normal`.
    let expected = 1 + columns.iter().filter(|small| **small != "0").count() / 5 * 2;
    if loads.len() > 1 && loads.len() < expected {
        let text = format!(
            "{} of the {expected} rows that Orion's own matrix of so many columns has: it was told \
             to measure fewer, or the file was cut",
            loads.len()
        );
        draft.warnings.push(("rows-missing".to_owned(), text));
    }
    Ok(draft)
}
