//! Orion's summary, and its matrices of rates and latencies by small and large load.
//!
//! Columns are small outstanding requests, rows are large ones or, where these are sequential,
//! streams. MBPS is taken for 2^20 bytes. The best point is a single one, so noise makes it look
//! better.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use record::Run;
use stats::histogram::bucket_bounds;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell};

const MIB: f64 = 1024.0 * 1024.0;
/// Where the last bin of a histogram ends, us.
const LAST_BIN: u64 = 1 << 28;

/// Small and large load.
type Point = (u64, u64);

/// What a stream is there.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Small,
    Large,
}

/// How the versions print latencies.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    /// To 11.1: ms.
    Old,
    /// 11.2: us, whole in the details.
    Middle,
    /// Later: us with three decimals.
    New,
}

/// Every measured point.
struct Matrix<'a> {
    small: BTreeMap<Point, StreamOfCell<'a>>,
    large: BTreeMap<Point, StreamOfCell<'a>>,
    /// Of a summary there are the best points and no matrix.
    summary: bool,
    version: Version,
}

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::any(shape::measured(run))?;
    let imported = run.header.imported.as_ref();
    let version = imported.map(|i| i.version.as_deref().unwrap_or("11.2"));
    let version = match version {
        None => Version::New,
        Some(v) if v.starts_with("10.") || v.starts_with("11.1") => Version::Old,
        Some(v) if v.starts_with("11.") => Version::Middle,
        Some(_) => Version::New,
    };
    let summary = imported.is_some_and(|i| i.version.is_some());
    let (small, large) = (BTreeMap::new(), BTreeMap::new());
    let mut matrix = Matrix { small, large, summary, version };
    for cell in streams.chunk_by(|a, b| a.cell.index == b.cell.index) {
        let kinds = kinds(cell).ok_or_else(|| {
            let phase = cell.first().map_or("", |stream| stream.cell.phase.as_str());
            Misfit::new(format!(
                "its phase {} is neither small nor large, nor one of each together",
                crate::text::plain(phase)
            ))
        })?;
        let point = point(cell, &kinds);
        for (stream, kind) in cell.iter().zip(kinds) {
            if stream.counted().is_empty() {
                continue;
            }
            let points = if kind == Kind::Small { &mut matrix.small } else { &mut matrix.large };
            points.entry(point).or_insert_with(|| stream.clone());
        }
    }
    Ok(matrix.print())
}

/// What each stream of a cell is: by the name of the phase, or the smaller blocks and the larger.
fn kinds(cell: &[StreamOfCell]) -> Option<Vec<Kind>> {
    match cell {
        [only] if only.cell.phase.starts_with("small") => Some(vec![Kind::Small]),
        [only] if only.cell.phase.starts_with("large") => Some(vec![Kind::Large]),
        [a, b] => match (a.plan.block_bytes?, b.plan.block_bytes?) {
            (a, b) if a < b => Some(vec![Kind::Small, Kind::Large]),
            (a, b) if a > b => Some(vec![Kind::Large, Kind::Small]),
            _ => None,
        },
        _ => None,
    }
}

fn point(cell: &[StreamOfCell], kinds: &[Kind]) -> Point {
    let told = |name: &str| {
        let coordinates = &cell.first()?.cell.coordinates;
        let (_, value) = coordinates.iter().find(|(field, _)| field == name)?;
        value.parse().ok()
    };
    if let (Some(small), Some(large)) = (told("small"), told("large")) {
        return (small, large);
    }
    let of = |wanted: Kind| {
        let found = cell.iter().zip(kinds).find(|(_, kind)| **kind == wanted);
        found.map_or(0, |(stream, _)| load(stream))
    };
    (of(Kind::Small), of(Kind::Large))
}

/// Requests in flight; where the number of threads is what varies they are streams, with some in
/// flight each.
fn load(stream: &StreamOfCell) -> u64 {
    let plan = stream.plan;
    let own = format!("{}.threads", plan.name);
    let fields = || stream.cell.coordinates.iter().map(|(field, _)| field.as_str());
    let streams = fields().any(|field| field == "threads" || field == own);
    let depth = if streams { 1 } else { u64::from(plan.queue_depth) };
    u64::from(plan.threads) * depth
}

fn mbps(figures: &Figures) -> Option<f64> {
    figures.bytes_per_second_of_visits().map(|rate| rate / MIB)
}

/// The point with the largest value.
fn most<'a, 'b>(
    points: &'b BTreeMap<Point, StreamOfCell<'a>>,
    value: impl Fn(&Figures) -> Option<f64>,
) -> Option<(f64, Point, &'b StreamOfCell<'a>)> {
    let mut best: Option<(f64, Point, &StreamOfCell)> = None;
    for (point, stream) in points {
        let Some(value) = value(&stream.figures()).filter(|value| value.is_finite()) else {
            continue;
        };
        if best.is_none_or(|(most, ..)| value > most) {
            best = Some((value, *point, stream));
        }
    }
    best
}

// Writing to a string cannot fail, hence `let _`.
impl Matrix<'_> {
    fn print(&self) -> String {
        let mut out = self.best();
        if !self.summary {
            let columns = self.loads(|(small, _)| small);
            let rows = self.loads(|(_, large)| large);
            let small: Vec<u64> = columns.iter().copied().filter(|&small| small > 0).collect();
            let of_small = |title: &str, value: &dyn Fn(&Figures) -> Option<String>| {
                table(title, &small, &rows, &|point| value(&self.small.get(&point)?.figures()))
            };
            out += &of_small("iops.csv", &|f| f.iops_of_visits().map(|iops| format!("{iops:.0}")));
            out += &table("mbps.csv", &columns, &rows, &|point| match point {
                (_, 0) => (point == (0, 0)).then(|| "0.00".to_owned()),
                _ => mbps(&self.large.get(&point)?.figures()).map(|mbps| format!("{mbps:.2}")),
            });
            out += &of_small("lat.csv, microseconds", &|f| {
                f.latency_ns_mean().map(|ns| format!("{:.2}", ns / 1e3))
            });
            out += &self.histograms();
        }
        out
    }

    fn loads(&self, of: fn(Point) -> u64) -> Vec<u64> {
        let points = self.small.keys().chain(self.large.keys());
        // A matrix has the line of no load of the other kind, measured or not.
        let loads: BTreeSet<u64> = points.map(|point| of(*point)).chain([0]).collect();
        loads.into_iter().collect()
    }

    fn best(&self) -> String {
        let mut out = String::new();
        let at = |(small, large): Point| format!("@ Small={small} and Large={large}");
        if let Some((rate, point, _)) = most(&self.large, mbps) {
            let _ = writeln!(out, "Maximum Large MBPS={rate:.2} {}", at(point));
        }
        let gap = if self.version == Version::Old { "" } else { "\n" };
        if let Some((iops, point, stream)) = most(&self.small, Figures::iops_of_visits) {
            let gap = if out.is_empty() { "" } else { gap };
            let _ = writeln!(out, "{gap}Maximum Small IOPS={iops:.0} {}", at(point));
            self.details(&mut out, stream, &at(point));
        }
        let least = |figures: &Figures| figures.latency_ns_mean().map(|ns| -ns);
        if let Some((ns, point, stream)) = most(&self.small, least) {
            let gap = if out.is_empty() { "" } else { gap };
            let latency = match self.version {
                Version::Old => format!("{:.2}", -ns / 1e6),
                Version::Middle => format!("{:.2} usecs", -ns / 1e3),
                Version::New => format!("{:.3} usecs", -ns / 1e3),
            };
            let _ = writeln!(out, "{gap}Minimum Small Latency={latency} {}", at(point));
            self.details(&mut out, stream, &at(point));
        }
        out
    }

    /// `Small Read Latency: avg=1711 us, min=791 us, max=12316 us, std dev=454 us @ ...`.
    fn details(&self, out: &mut String, stream: &StreamOfCell, at: &str) {
        if self.version == Version::Old {
            return;
        }
        for (op, name) in [("read", "Read"), ("write", "Write")] {
            let figures = stream.figures_of(|known| known == op);
            let us = |ns: f64| match self.version {
                Version::New => format!("{:.3} us", ns / 1e3),
                _ => format!("{:.0} us", ns / 1e3),
            };
            if let (Some(mean), Some(min), Some(max), Some(sd)) = (
                figures.latency_ns_mean(),
                figures.latency_ns_min(),
                figures.latency_ns_max(),
                figures.latency_ns_sd(),
            ) {
                let (mean, sd) = (us(mean), us(sd));
                let (min, max) = (us(min as f64), us(max as f64));
                let _ = writeln!(
                    out,
                    "Small {name} Latency: avg={mean}, min={min}, max={max}, std dev={sd} {at}"
                );
            }
        }
    }

    /// Of the points with the best rate and with the least latency.
    fn histograms(&self) -> String {
        let least = |figures: &Figures| figures.latency_ns_mean().map(|ns| -ns);
        let points = [most(&self.small, Figures::iops_of_visits), most(&self.small, least)];
        let mut done: Vec<Point> = Vec::new();
        let mut out = String::new();
        for (_, point, stream) in points.into_iter().flatten() {
            if done.contains(&point) || stream.figures().latencies().count() == 0 {
                continue;
            }
            if done.is_empty() {
                out.push_str("\nhist.txt:\n");
            }
            done.push(point);
            histogram(&mut out, stream, point);
        }
        out
    }
}

fn table(
    title: &str,
    columns: &[u64],
    rows: &[u64],
    cell: &dyn Fn(Point) -> Option<String>,
) -> String {
    let cells = |row: &u64| -> Vec<Option<String>> {
        columns.iter().map(|column| cell((*column, *row))).collect()
    };
    let all: Vec<(u64, Vec<Option<String>>)> = rows.iter().map(|row| (*row, cells(row))).collect();
    let loaded =
        all.iter().flat_map(|(row, cells)| cells.iter().zip(columns).map(move |c| (row, c)));
    let mut measured = loaded.filter(|(row, (cell, small))| cell.is_some() && **row + **small > 0);
    if measured.next().is_none() {
        return String::new();
    }
    let mut out = format!("\n{title}:\n{:>11}", "Large/Small");
    for column in columns {
        let _ = write!(out, ",{column:>7}");
    }
    out.push('\n');
    for (row, cells) in all {
        let _ = write!(out, "{row:>11}");
        for cell in cells {
            let _ = write!(out, ",{:>7}", cell.unwrap_or_default());
        }
        out.push('\n');
    }
    out
}

/// Bins that double from 32 us on, with counts and how many percent lie up to there.
fn histogram(out: &mut String, stream: &StreamOfCell, (small, large): Point) {
    let [reads, writes] = ["read", "write"].map(|op| stream.figures_of(|known| known == op));
    let _ = writeln!(out, "Small Read / Write Latency Histogram @ Small={small} and Large={large}");
    let _ = writeln!(out, "{:>16}{:>40}{:>26}", "Latency:", "# of IOs (read)", "# of IOs (write)");
    // ns: the middle of each bucket, which is 0.4 % wide.
    let counts = |figures: &Figures| -> Vec<(u64, u64)> {
        let middle = |bucket: u32| {
            let (low, high) = bucket_bounds(bucket as usize);
            low + (high - low) / 2
        };
        figures.latencies().sparse().map(|(bucket, count)| (middle(bucket), count)).collect()
    };
    let (reads, writes) = (counts(&reads), counts(&writes));
    let longest = reads.iter().chain(&writes).map(|(ns, _)| *ns).max().unwrap_or(0);
    let mut edges = vec![0u64, 32];
    while let Some(&last) = edges.last() {
        if last >= LAST_BIN {
            break;
        }
        edges.push(if last.saturating_mul(1000) > longest { LAST_BIN } else { last * 2 });
    }
    let within = |all: &[(u64, u64)], from: u64, to: u64| -> u64 {
        let inside = |ns: u64| ns >= from * 1000 && (ns < to * 1000 || to == LAST_BIN);
        all.iter().filter(|(ns, _)| inside(*ns)).fold(0, |sum, (_, n)| sum + n)
    };
    let share = |all: &[(u64, u64)], to: u64| -> f64 {
        let count = within(all, 0, LAST_BIN);
        if count == 0 { 0.0 } else { within(all, 0, to) as f64 * 100.0 / count as f64 }
    };
    for pair in edges.windows(2) {
        let &[from, to] = pair else { continue };
        let _ = writeln!(
            out,
            "{from:9} - {to:<10} us:{:16} ({:6.2}%){:15} ({:6.2}%)",
            within(&reads, from, to),
            share(&reads, to),
            within(&writes, from, to),
            share(&writes, to)
        );
    }
}
