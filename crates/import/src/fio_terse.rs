//! fio's terse lines, versions 2 to 5: one line a job, fields apart by `;`.
//!
//! Version 2 to 4 agree in the first 46 fields of reads (5 to 45) and of writes that are kept
//! here; version 5 has the figures of trims behind those of writes.

use crate::draft::{Cell, Draft, Figure, Latency, Stream, no_end_mark};
use crate::text::{self, Found, Line, Text};

/// Fields of one direction: totals, two latencies, 20 percentiles, the whole latency, bandwidth.
const DIRECTION: usize = 41;
/// Where the first direction begins.
const FIRST: usize = 5;
/// Behind the directions come at least CPU and depths.
const REST: usize = 11;

/// Whether a line looks like one.
pub(crate) fn is_line(line: &str) -> bool {
    let mut fields = line.split(';');
    let version = fields.next().unwrap_or_default().trim();
    matches!(version, "2" | "3" | "4" | "5")
        && fields.next().is_some_and(|f| f.starts_with("fio"))
        && line.split(';').count() > FIRST
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut draft = Draft::of("fio");
    for line in text.lines.iter().filter(|line| is_line(&line.text)) {
        let fields: Vec<&str> = line.text.trim().split(';').collect();
        let wanted = FIRST + directions(&fields).len() * DIRECTION + REST;
        if fields.len() < wanted {
            return Err(line.unfit(format!("at least {wanted} fields, of {}", fields.len())));
        }
        draft.version = fields.get(1).map(|v| v.trim_start_matches("fio-").to_owned());
        draft.push(job(line, &fields)?);
    }
    if draft.cells.is_empty() {
        return Err(text.ended("a terse line, `3;fio-...`"));
    }
    draft.remark(no_end_mark(draft.cells.len(), "line of a job", "lines of jobs"));
    draft.remarks.push(
        "Percentiles are of completion latency, mean and extremes of the whole; terse lines tell \
         neither the block size nor how many jobs and requests there were at once."
            .to_owned(),
    );
    Ok(vec![draft])
}

fn job(line: &Line, fields: &[&str]) -> Found<Cell> {
    let field = |k: usize| fields.get(k).copied().unwrap_or_default();
    let mut cell = Cell { phase: field(2).to_owned(), ..Cell::default() };
    let mut ops = Vec::new();
    for (k, op) in directions(fields).iter().enumerate() {
        let start = FIRST + k * DIRECTION;
        if let Some((figure, ms)) = direction(line, op, &|f| field(start + f))? {
            cell.elapsed_ns = cell.elapsed_ns.max(ms.checked_mul(1_000_000));
            ops.push(figure);
        }
    }
    let error = line.whole(field(4), "the job's error")?;
    if error != 0 {
        cell.failed = true;
        cell.warnings.push(("fio-error".to_owned(), format!("the job ended with error {error}")));
    }
    let op = match ops.as_slice() {
        [only] => only.op.clone(),
        _ => "mixed".to_owned(),
    };
    cell.streams = vec![Stream { name: cell.phase.clone(), op, ops, ..Stream::default() }];
    Ok(cell)
}

/// In the order of the fields.
fn directions(fields: &[&str]) -> &'static [&'static str] {
    match fields.first() {
        Some(&"5") => &["read", "write", "trim"],
        _ => &["read", "write"],
    }
}

/// What a direction did, and for how many ms; `None` if it did nothing.
fn direction<'a>(
    line: &Line,
    op: &str,
    field: &dyn Fn(usize) -> &'a str,
) -> Found<Option<(Figure, u64)>> {
    let kibibytes = line.whole(field(0), "KiB moved")?;
    let bandwidth = line.number(field(1), "KiB a second")?;
    let iops = line.number(field(2), "requests a second")?;
    let runtime = line.whole(field(3), "ms of run time")?;
    let mut latency = Latency::default();
    for k in 12..32 {
        let (share, value) = field(k)
            .split_once("%=")
            .ok_or_else(|| line.unfit_word(field(k), "a percentile, `99.000000%=329`"))?;
        let share = line.number(share, "a percentage")?;
        let value = line.number(value, "a latency in us")?;
        if let Some(ns) = text::ns(value * 1e3).filter(|_| share > 0.0) {
            latency.quantiles.push((share / 100.0, ns));
        }
    }
    let us = |k: usize, what: &str| line.number(field(k), what).map(|us| us * 1e3);
    latency.min = text::ns(us(32, "the least latency in us")?);
    latency.max = text::ns(us(33, "the largest latency in us")?);
    latency.mean = Some(us(34, "the mean latency in us")?);
    latency.sd = Some(us(35, "the deviation of latency in us")?);
    for k in 36..DIRECTION {
        line.number(field(k).trim_end_matches('%'), "a bandwidth")?;
    }
    if kibibytes == 0 && iops == 0.0 {
        return Ok(None);
    }
    let figure = Figure {
        bytes: kibibytes.checked_mul(1024),
        iops: Some(iops),
        bytes_per_s: Some(bandwidth * 1024.0),
        latency,
        ..Figure::of(op)
    };
    Ok(Some((figure, runtime)))
}
