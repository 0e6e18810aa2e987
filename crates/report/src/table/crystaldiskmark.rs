//! CrystalDiskMark's lines as its Linux relative KDiskMark prints them.
//!
//! Its MB/s is KiB a second divided by 1000, which is 2.3 % less than the millions of bytes that
//! its own header promises; the latency is the mean. Latencies are the mean of the visits', not
//! of all requests'; rates are the geometric mean, as in every other table.

use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell};
use crate::text::{plain, utc};

const WIDTH: usize = 80;

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let (mut reads, mut writes) = (Vec::new(), Vec::new());
    for stream in &streams {
        let Some(line) = line(stream)? else { continue };
        match stream.plan.op.as_str() {
            "read" => reads.push(line),
            "write" => writes.push(line),
            other => return Err(Misfit::new(format!("one of its lines is {}", plain(other)))),
        }
    }
    let mut out = "-".repeat(WIDTH);
    out.push_str("\n* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]\n");
    out.push_str("* KB = 1000 bytes, KiB = 1024 bytes\n");
    for (title, lines) in [("[Read]", reads), ("[Write]", writes)] {
        if !lines.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "\n{title}\n{}", lines.join("\n"));
        }
    }
    out.push_str(&settings(run, &streams));
    Ok(out)
}

/// `Sequential   1 MiB (Q=  8, T= 1):   508.897 MB/s [    497.0 IOPS] < 13840.05 us>`; none for a
/// stream that was not measured.
fn line(stream: &StreamOfCell) -> Result<Option<String>, Misfit> {
    let phase = &stream.cell.phase;
    let words: Vec<&str> = phase.split(['-', '_']).collect();
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    let pattern = match (has(&["seq", "sequential"]), has(&["rnd", "rand", "random"])) {
        (true, false) => "Sequential",
        (false, true) => "Random",
        _ => {
            return Err(Misfit::new(format!(
                "its phase {} is not named for seq or rnd, as read-seq-1m-q8 is",
                plain(phase)
            )));
        }
    };
    let Some(block) = stream.plan.block_bytes.filter(|&block| block >= 1024) else {
        return Err(Misfit::new(format!("its phase {} has no block size in KiB", plain(phase))));
    };
    let kib = block >> 10;
    let (size, unit) = if kib >= 1024 { (kib >> 10, "MiB") } else { (kib, "KiB") };
    let visits: Vec<Figures> =
        shape::visit_by_visit(stream).iter().map(StreamOfCell::figures).collect();
    let mean = |value: &dyn Fn(&Figures) -> Option<f64>| -> Option<f64> {
        let all: Vec<f64> = visits.iter().map(value).collect::<Option<_>>()?;
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let figures = stream.figures();
    let rates = (figures.bytes_per_second_of_visits(), figures.iops_of_visits());
    let (Some(rate), Some(iops)) = rates else { return Ok(None) };
    if visits.is_empty() {
        return Ok(None);
    }
    let latency = mean(&Figures::latency_ns_mean)
        .map_or_else(|| format!("{:8}", ""), |ns| format!("{:8.2}", ns / 1000.0));
    Ok(Some(format!(
        "{:>WIDTH$}",
        format!(
            "{pattern} {size:>3} {unit} (Q={:>3}, T={:>2}): {:9.3} MB/s [ {iops:8.1} IOPS] < \
             {latency} us>",
            stream.plan.queue_depth,
            stream.plan.threads,
            rate / 1024.0 / 1000.0
        )
    )))
}

/// What was set: sizes, repeats and time.
fn settings(run: &Run, streams: &[StreamOfCell]) -> String {
    let header = &run.header;
    let mib = header.target.size_bytes >> 20;
    let size = if mib >= 1024 { format!("{} GiB", mib >> 10) } else { format!("{mib} MiB") };
    let repeats = streams.iter().map(|stream| stream.counted().len()).max().unwrap_or(0);
    let visits = streams.iter().flat_map(StreamOfCell::counted);
    let seconds = visits.map(|visit| visit.elapsed_ns as f64 / 1e9).fold(0.0, f64::max);
    let seconds = match seconds {
        1.0.. => format!("{seconds:.0}"),
        _ => shape::general(seconds, 2),
    };
    let mut out = format!("\n   Test: {size} (x{repeats}) [Measure: {seconds} sec]\n");
    if header.started_unix_ns != 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "   Date: {}", utc(header.started_unix_ns));
    }
    out
}
