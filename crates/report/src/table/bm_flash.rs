//! The two classic tables of bm-flash, to the letter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{self, StreamOfCell, total};

const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// IOPS as bm-flash prints it: truncated.
pub fn iops(rate: f64) -> String {
    format!("{:.0}", rate.max(0.0).trunc())
}

/// Bandwidth as bm-flash prints it: one decimal, `K` (KiB/s) below 1 MiB/s, else `M` (MiB/s).
///
/// Truncated, not rounded: 29158 requests of 4 KiB a second are 113.898 MiB/s and were printed
/// as 113.8M. All 164 cells of the published tables agree (a test reads them).
pub fn bandwidth(bytes_per_second: f64) -> String {
    let rate = bytes_per_second.max(0.0);
    let (value, unit) = if rate < MIB { (rate / KIB, 'K') } else { (rate / MIB, 'M') };
    // A hair above the decimal, since a rate that is exactly a tenth of a unit may be stored a
    // hair below it.
    format!("{:.1}{unit}", (value * 10.0 + 1e-9).trunc() / 10.0)
}

/// Size as its row labels: `512B`, `1K`, `4M`.
fn label(bytes: u64) -> String {
    for (shift, unit) in [(30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes > 0 && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// [`bm_flash`] of a run that has block sizes and threads.
pub(super) fn print(run: &Run) -> Result<String, Misfit> {
    let mut known = BTreeSet::new();
    for stream in shape::single(run)? {
        let phase = stream.cell.phase.as_str();
        let Some(block) = stream.plan.block_bytes else {
            let phase = crate::text::plain(phase);
            return Err(Misfit::new(format!("its phase {phase} has requests of several sizes")));
        };
        if stream.plan.queue_depth > 1 {
            let phase = crate::text::plain(phase);
            return Err(Misfit::new(format!(
                "its phase {phase} has {} requests in flight per thread, and bm-flash has one",
                stream.plan.queue_depth
            )));
        }
        if !known.insert((phase, block, stream.plan.threads)) {
            return Err(Misfit::new(format!(
                "several of its cells have blocks of {} and {} threads",
                label(block),
                stream.plan.threads
            )));
        }
    }
    Ok(bm_flash(run))
}

/// The fill line and one table per phase: block sizes down, threads across, `IOPS` and `BW`
/// in each cell. A cell in which nothing completed is blank. Columns grow where numbers are
/// larger than any of 2009.
pub fn bm_flash(run: &Run) -> String {
    let mut out = String::new();
    let mut phases: Vec<(&str, Vec<StreamOfCell>)> = Vec::new();
    for stream in figures::streams_of(run).into_iter().filter(|s| s.position == 0) {
        let phase = stream.cell.phase.as_str();
        match phases.iter_mut().find(|(name, _)| *name == phase) {
            Some((_, streams)) => streams.push(stream),
            None => phases.push((phase, vec![stream])),
        }
    }
    // The fill is made first and stored last.
    phases.sort_by_key(|(phase, _)| *phase != "fill");
    for (phase, streams) in &phases {
        let part = if *phase == "fill" { fill(streams) } else { Some(table(streams)) };
        if let Some(part) = part {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&part);
        }
    }
    out
}

/// `Filling 4G before testing  ...   4096 MB done in 3 seconds (1365 MB/sec).`: whole seconds
/// and the rate by those, as it has it.
fn fill(streams: &[StreamOfCell]) -> Option<String> {
    let visit = streams.iter().flat_map(|s| &s.visits).next()?;
    let bytes = total(visit.streams.iter().flat_map(|s| &s.ops).map(|op| op.bytes));
    let seconds = (visit.elapsed_ns.saturating_add(500_000_000) / 1_000_000_000).max(1);
    let mib = bytes >> 20;
    Some(format!(
        "Filling {} before testing  ...   {mib} MB done in {seconds} seconds ({} MB/sec).\n",
        label(mib << 20),
        mib / seconds
    ))
}

fn title(streams: &[StreamOfCell]) -> String {
    let op = streams.first().map_or("", |s| s.plan.op.as_str());
    let mut letters = crate::text::plain(op).chars().collect::<Vec<_>>();
    if let Some(first) = letters.first_mut() {
        *first = first.to_ascii_uppercase();
    }
    letters.into_iter().collect()
}

fn table(streams: &[StreamOfCell]) -> String {
    let (mut rows, mut columns) = (Vec::new(), Vec::new());
    // By block size and threads; the last of several alike.
    let mut cells = BTreeMap::new();
    for stream in streams {
        let (block, threads) = (stream.plan.block_bytes.unwrap_or(0), stream.plan.threads);
        if !rows.contains(&block) {
            rows.push(block);
        }
        if !columns.contains(&threads) {
            columns.push(threads);
        }
        let figures = stream.figures();
        if (figures.is_told() || figures.requests > 0)
            && let (Some(rate), Some(bytes)) =
                (figures.iops_of_visits(), figures.bytes_per_second_of_visits())
        {
            cells.insert((block, threads), (iops(rate), bandwidth(bytes)));
        }
    }
    let longest = |part: fn(&(String, String)) -> &String, least: usize| {
        cells.values().map(|cell| part(cell).len()).max().unwrap_or(0).max(least)
    };
    let shape = Shape {
        iops: longest(|cell| &cell.0, 5),
        bandwidth: longest(|cell| &cell.1, 7),
        label: rows.iter().map(|&b| label(b).len()).max().unwrap_or(0).max(5),
    };
    let mut out = format!("{} Tests:\n\n", title(streams));
    shape.head(&mut out, &columns);
    for block in rows {
        let cells: Vec<_> = columns.iter().map(|&t| cells.get(&(block, t))).collect();
        shape.row(&mut out, &label(block), &cells);
    }
    out
}

/// Widths: those of 2009 unless something is longer.
struct Shape {
    iops: usize,
    bandwidth: usize,
    label: usize,
}

// Writing to a string cannot fail, hence `let _`.
impl Shape {
    fn cell(&self) -> usize {
        self.iops + self.bandwidth + 3
    }

    fn head(&self, out: &mut String, columns: &[u32]) {
        let Self { iops, bandwidth, label } = *self;
        let width = self.cell();
        let _ = write!(out, "{:>label$} ", "Block");
        for &threads in columns {
            let name = format!("{threads} thread{}", if threads == 1 { "" } else { "s" });
            let _ = write!(out, "|{name:^width$}");
        }
        let _ = write!(out, "\n{:>label$} ", "Size");
        for _ in columns {
            let _ = write!(out, "| {:>iops$} {:>2$}   ", "IOPS", "BW", bandwidth - 2);
        }
        let _ = write!(out, "\n{:>label$} ", "");
        for _ in columns {
            let _ = write!(out, "|{:width$}", "");
        }
        out.push('\n');
    }

    fn row(&self, out: &mut String, name: &str, cells: &[Option<&(String, String)>]) {
        let Self { iops, bandwidth, label } = *self;
        let _ = write!(out, "{name:>label$} ");
        // Blank cells at a row's end were printed without their bars.
        let used = cells.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        for cell in cells.iter().take(used) {
            let _ = match cell {
                Some((rate, bytes)) => write!(out, "| {rate:>iops$} {bytes:>bandwidth$} "),
                None => write!(out, "|{:1$}", "", self.cell()),
            };
        }
        out.push('\n');
    }
}
