//! IOZone's grid: a line per file and record size, a column per operation, KiB a second cut to
//! whole numbers. With several workers its throughput mode: what the children saw, the parent, and
//! the least, most and mean of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell, total};
use crate::text::plain;

/// A column: names of its phase, width, and its workers in throughput mode.
struct Column {
    phases: [&'static str; 2],
    width: usize,
    /// What is left blank where it was not done.
    blank: usize,
    workers: &'static str,
}

const fn column(
    ours: &'static str,
    imported: &'static str,
    width: usize,
    workers: &'static str,
) -> Column {
    Column { phases: [ours, imported], width, blank: width, workers }
}

const COLUMNS: [Column; 13] = [
    column("write", "write", 8, "initial writers"),
    column("rewrite", "rewrite", 8, "rewriters"),
    column("read", "read", 9, "readers"),
    column("reread", "reread", 9, "re-readers"),
    column("random-read", "random-read", 8, "random readers"),
    column("random-write", "random-write", 8, "random writers"),
    column("backward-read", "backward-read", 8, "reverse readers"),
    Column { blank: 8, ..column("record-rewrite", "record-rewrite", 9, "record-rewrite workers") },
    column("stride-read", "stride-read", 9, "stride readers"),
    column("fwrite", "fwrite", 9, "fwriters"),
    column("refwrite", "frewrite", 9, "frewriters"),
    column("fread", "fread", 8, "freaders"),
    column("refread", "freread", 9, "refreaders"),
];

const HEAD: &str = "                                                            random  random    bkwd   record   stride
              kB  reclen   write rewrite    read    reread    read   write    read  rewrite     read   fwrite frewrite   fread  freread
";

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let known = |s: &StreamOfCell| column_of(s).is_some() && !s.counted().is_empty();
    let streams: Vec<_> = streams.into_iter().filter(known).collect();
    if streams.is_empty() {
        return Err(Misfit::new("it has none of IOZone's phases, such as rewrite or stride-read"));
    }
    // Throughput mode names its number of processes, one or more.
    let (many, one): (Vec<_>, Vec<_>) = streams.iter().partition(|s| {
        let named = || s.cell.coordinates.iter().any(|(field, _)| field == "threads");
        s.plan.threads > 1 || run.header.imported.is_some() && named()
    });
    let mut out = String::new();
    if !one.is_empty() {
        grid(run, &one, &mut out)?;
    }
    for stream in many {
        throughput(run, stream, &mut out)?;
    }
    Ok(out)
}

fn column_of(stream: &StreamOfCell) -> Option<usize> {
    let phase = stream.cell.phase.as_str();
    COLUMNS.iter().position(|column| column.phases.contains(&phase))
}

/// Bytes of a coordinate such as `64KiB`; of our own runs the file is the target's.
fn file_size(run: &Run, stream: &StreamOfCell) -> u64 {
    let told = stream.cell.coordinates.iter().find(|(field, _)| field == "file_size");
    told.and_then(|(_, text)| bytes(text)).unwrap_or(run.header.target.size_bytes)
}

fn bytes(text: &str) -> Option<u64> {
    text.parse::<units::Bytes>().ok().map(units::Bytes::get)
}

fn grid(run: &Run, streams: &[&StreamOfCell], out: &mut String) -> Result<(), Misfit> {
    let mut rows: BTreeMap<(u64, u64), [Option<f64>; 13]> = BTreeMap::new();
    let told = |value: fn(&Figures) -> bool| streams.iter().all(|s| value(&s.figures()));
    // -O and -N print other units; what was read in them is printed in them.
    let unit = match () {
        () if told(|f| f.bytes_per_second_of_visits().is_some()) => Unit::Kib,
        () if told(|f| f.iops_of_visits().is_some()) => Unit::Ops,
        () if told(|f| f.latency_ns_mean().is_some()) => Unit::Micros,
        () => return Err(Misfit::new("its rates are not known")),
    };
    for stream in streams {
        let record = stream.plan.block_bytes.unwrap_or(0);
        let figures = stream.figures();
        let value = match unit {
            Unit::Kib => figures.bytes_per_second_of_visits().map(|rate| rate / 1024.0),
            Unit::Ops => figures.iops_of_visits(),
            Unit::Micros => figures.latency_ns_mean().map(|ns| ns / 1e3),
        };
        let row = rows.entry((file_size(run, stream), record)).or_default();
        if let Some(cell) = column_of(stream).and_then(|column| row.get_mut(column)) {
            *cell = value;
        }
    }
    out.push_str(match unit {
        Unit::Kib => "\tOutput is in kBytes/sec\n",
        Unit::Ops => "\tOutput is in operations per second\n",
        Unit::Micros => "\tOutput is in microseconds per operation\n",
    });
    out.push_str(HEAD);
    for ((file, record), cells) in rows {
        let mut line = format!("{:16}{:8}", file >> 10, record >> 10);
        for (cell, column) in cells.iter().zip(&COLUMNS) {
            let width = column.width;
            // Writing to a string cannot fail. Wide numbers keep a blank before them.
            let _ = match cell {
                Some(value) => write!(line, " {:>1$}", shape::cut(*value), width - 1),
                None => write!(line, "{:1$}", "", column.blank),
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    Ok(())
}

/// What the numbers are.
#[derive(Clone, Copy)]
enum Unit {
    Kib,
    Ops,
    Micros,
}

fn throughput(run: &Run, stream: &StreamOfCell, out: &mut String) -> Result<(), Misfit> {
    let (Some(column), Some(rate)) = (
        column_of(stream).and_then(|column| COLUMNS.get(column)),
        stream.figures().bytes_per_second_of_visits(),
    ) else {
        return Err(Misfit::new("its rates are not known"));
    };
    let threads = stream.plan.threads;
    let (name, kib) = (column.workers, rate / 1024.0);
    let mut row = |label: &str, value: String, unit: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\t{label:<52}= {value:>10} {unit}");
    };
    row(&format!("Children see throughput for {threads:2} {name}"), format!("{kib:.2}"), "kB/sec");
    if stream.figures().is_told() {
        for (label, value) in details(run, &stream.cell.phase) {
            let (value, unit) = value.split_once(' ').unwrap_or((value, ""));
            row(&plain(label), plain(value), &plain(unit));
        }
    } else {
        let each = of_each(stream);
        row(
            &format!("Parent sees throughput for {threads:2} {name}"),
            format!("{kib:.2}"),
            "kB/sec",
        );
        if let Some(elapsed) = shape::elapsed_ns(stream).filter(|_| !each.is_empty()) {
            let rate = |bytes: u64| format!("{:.2}", bytes as f64 * 1e9 / elapsed as f64 / 1024.0);
            let least = each.iter().copied().min().unwrap_or(0);
            let most = each.iter().copied().max().unwrap_or(0);
            let mean = total(each.iter().copied()) / each.len() as u64;
            row("Min throughput per process", rate(least), "kB/sec");
            row("Max throughput per process", rate(most), "kB/sec");
            row("Avg throughput per process", rate(mean), "kB/sec");
            row("Min xfer", format!("{:.2}", least as f64 / 1024.0), "kB");
        }
    }
    out.push('\n');
    Ok(())
}

/// What an imported run says besides: what the parent saw, the least, the most.
fn details<'a>(run: &'a Run, phase: &str) -> Vec<(&'a str, &'a str)> {
    let start = format!("result {phase}: ");
    let settings = run.header.imported.iter().flat_map(|imported| &imported.settings);
    settings
        .filter_map(|(name, value)| Some((name.strip_prefix(&start)?, value.as_str())))
        .collect()
}

/// Bytes that each worker moved; empty where they are not known, since flushes were counted, too.
fn of_each(stream: &StreamOfCell) -> Vec<u64> {
    let Some(block) = stream.plan.block_bytes else { return Vec::new() };
    let mut each: Vec<u64> = Vec::new();
    for visit in stream.counted() {
        for (k, worker) in stream.record(visit).into_iter().flat_map(|s| &s.workers).enumerate() {
            let bytes = worker.requests.saturating_mul(block);
            match each.get_mut(k) {
                Some(sum) => *sum = sum.saturating_add(bytes),
                None => each.push(bytes),
            }
        }
    }
    let all = total(each.iter().copied());
    if all == stream.figures().bytes { each } else { Vec::new() }
}
