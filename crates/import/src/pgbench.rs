//! pgbench's report, 8.x to today: one operation, the transaction.

use std::collections::BTreeSet;

use crate::draft::{Cell, Draft, Drafts, Figure, Latency, RESULT, Stream};
use crate::text::{Found, Line, Reader, Text};

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut reader = text.reader();
    let mut drafts = Drafts::default();
    let mut before = reader.rest();
    while let Some(line) = reader.seek("transaction type:") {
        // Each report stands below the version that made it; those before 14 print none.
        let head = before.len().saturating_sub(reader.rest().len());
        let head = before.get(..head).unwrap_or_default();
        no_rate(head)?;
        let version = head.iter().rev().find_map(version).map(str::to_owned);
        let mut draft = one(line, &mut reader, version)?;
        before = reader.rest();
        let is_next = |line: &Line| line.after("transaction type:").is_some();
        let tail = before.iter().position(is_next).unwrap_or(before.len());
        let (tail, more) = before.split_at(tail);
        // It is about what stands above it; it comes on another stream, which may be ahead.
        let ahead = head.iter().find(|line| drafts.is_empty() && is_aborted(line));
        if let Some(line) = ahead.filter(|_| !more.is_empty()) {
            return Err(line.unfit("a report above it, or one alone in its file"));
        }
        if ahead.is_some() || tail.iter().any(is_aborted) {
            draft.cells.iter_mut().for_each(abort);
        }
        drafts.push(draft);
    }
    no_rate(before)?;
    drafts.all().ok_or_else(|| text.ended("`transaction type:`"))
}

/// A rate outside a report is of another one that ran into it.
fn no_rate(lines: &[Line]) -> Found<()> {
    match lines.iter().find(|line| line.after("tps =").is_some()) {
        Some(line) => Err(line.unfit("`transaction type:` and the rest of a report before it")),
        None => Ok(()),
    }
}

/// `15.20` of `pgbench (15.20 (Debian 15.20-0+deb12u1))`.
fn version<'a>(line: &'a Line) -> Option<&'a str> {
    line.after("pgbench (")?.split(|c: char| c.is_whitespace() || c == ')').next()
}

/// `pgbench: error: Run was aborted; the above results are incomplete.`
fn is_aborted(line: &Line) -> bool {
    line.text.contains("Run was aborted")
}

fn abort(cell: &mut Cell) {
    cell.failed = true;
    let text = "pgbench was aborted: its figures are of what was done until then";
    cell.warnings = vec![("aborted".to_owned(), text.to_owned())];
}

fn one(first: &Line, reader: &mut Reader, version: Option<String>) -> Found<Draft> {
    let mut draft = Draft { version, ..Draft::of("pgbench") };
    let kind = first.after("transaction type:").unwrap_or_default();
    draft.set("transaction type", kind);
    let mut figure = Figure::of("transaction");
    let mut latency = Latency::default();
    let (mut clients, mut elapsed_ns, mut aborted) = (None, None, false);
    let mut met = BTreeSet::from(["transaction type"]);
    let rate = loop {
        let Some(line) = reader.next() else { return Err(reader.ended("`tps =`")) };
        if is_aborted(line) {
            aborted = true;
            continue;
        }
        let (name, value) = line
            .text
            .trim()
            .split_once([':', '='])
            .map(|(name, value)| (name.trim(), value.trim()))
            .ok_or_else(|| line.unfit("a line of the report, `name: value` or `tps = ...`"))?;
        if !met.insert(name) {
            return Err(line.unfit("each line of a report once"));
        }
        match name {
            "tps" => break rate(line, value, reader, &mut draft)?,
            "number of clients" => {
                clients = u32::try_from(line.whole(value, "a number of clients")?).ok();
                set(&mut draft, name, value);
            }
            "duration" => {
                let seconds = value.strip_suffix(" s").unwrap_or(value);
                let seconds = line.whole(seconds, "seconds")?;
                elapsed_ns = seconds.checked_mul(1_000_000_000);
                set(&mut draft, name, value);
            }
            "number of transactions actually processed" => {
                let count = value.split('/').next().unwrap_or_default();
                figure.requests = Some(line.whole(count.trim(), "a number of transactions")?);
            }
            "number of failed transactions" => {
                let count = value.split_whitespace().next().unwrap_or_default();
                line.whole(count, "a number of failed transactions")?;
                // Deadlocks and the like: the database raised them, and no device.
                set(&mut draft, &format!("{RESULT}failed transactions"), value);
            }
            // A 0 is less than three decimals show.
            "latency average" => latency.mean = Some(millis(line, value)?).filter(|ns| *ns > 0.0),
            "latency stddev" => latency.sd = Some(millis(line, value)?),
            "initial connection time" | "average connection time" => {
                set(&mut draft, &format!("{RESULT}{name}"), value);
            }
            _ if known(name) => set(&mut draft, name, value),
            _ => return Err(line.unfit("a line of the report, or `tps =`")),
        }
    };
    if figure.requests.is_none() {
        let wanted = "`number of transactions actually processed:` before `tps =`";
        return Err(reader.ended(wanted));
    }
    figure.iops = Some(rate);
    figure.latency = latency;
    let stream = Stream {
        threads: clients,
        queue_depth: clients.map(|_| 1),
        ops: vec![figure],
        ..Stream::of("transaction")
    };
    let mut cell =
        Cell { phase: "pgbench".to_owned(), streams: vec![stream], elapsed_ns, ..Cell::default() };
    if aborted {
        abort(&mut cell);
    }
    draft.cells.push(cell);
    Ok(draft)
}

fn known(name: &str) -> bool {
    let begins = [
        "scaling factor",
        "query mode",
        "number of threads",
        "maximum number of tries",
        "partition",
        "number of transactions",
        "rate limit",
        "latency limit",
        "number of transactions above",
        "number of transactions skipped",
        "total number of retries",
        "number of transactions retried",
        "minimum number of tries",
        "transaction type",
    ];
    begins.iter().any(|b| name.starts_with(b))
}

fn set(draft: &mut Draft, name: &str, value: &str) {
    draft.set(name, value);
}

fn millis(line: &Line, value: &str) -> Found<f64> {
    let found = value.split_once(' ').filter(|(_, unit)| unit.starts_with("ms"));
    let (digits, _) = found.ok_or_else(|| line.unfit_word(value, "a time in ms"))?;
    Ok(line.number(digits, "a time in ms")? * 1e6)
}

/// `2172.354108 (without initial connection time)`. Before 14 there are two: with and without
/// the time to connect; the latter is the one. From 14 on `-C` has only one, with that time.
fn rate(line: &Line, value: &str, reader: &mut Reader, draft: &mut Draft) -> Found<f64> {
    let (digits, how) =
        value.split_once(' ').ok_or_else(|| line.unfit("a rate and what it is of"))?;
    let rate = line.number(digits, "a rate")?;
    if how == "(including reconnection times)" {
        set(draft, "connections", "a new one for each transaction");
        draft.remark(
            "Each transaction had a connection of its own, and its rate holds the time to connect: pgbench \
             tells none without.",
        );
        return Ok(rate);
    }
    if how.starts_with("(including") {
        let (line, value) = reader.want("tps =")?;
        let (digits, how) = value.split_once(' ').unwrap_or_default();
        if !(how.starts_with("(excluding") && how.ends_with(')')) {
            return Err(line.unfit("`(excluding connections establishing)`"));
        }
        return line.number(digits, "a rate");
    }
    if how.starts_with("(without") && how.ends_with(')') {
        Ok(rate)
    } else {
        Err(line.unfit("`(without initial connection time)`"))
    }
}
