//! xdd's result lines: one per pass and target, the average of a target, all combined.
//!
//! Its MB is 10^6 bytes. Its latency is elapsed time by operations of a worker, averaged over the
//! workers: it is not measured, and has no tail.

use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::StreamOfCell;

const HEAD: &str = "\
What               Pass  Target   Queue     Bytes_Xfered         Ops     Elapsed  Bandwidth       IOPS   Latency   Pct_CPU  Op_Type    Xfer_Size
    UNITS>>      Number  Number  Number            Bytes        #ops     seconds   MBytes/s      Ops/s  millisec   percent     text        bytes
";

/// What a line says.
#[derive(Clone)]
struct Pass {
    queue: u64,
    bytes: u64,
    ops: u64,
    seconds: f64,
    /// Printed where a tool told them, worked out elsewhere.
    told: Option<(f64, f64)>,
    latency_ms: f64,
    cpu: Option<f64>,
    op: &'static str,
    block: u64,
}

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::any(shape::measured(run))?;
    let mut out = String::new();
    let mut cpu_known = true;
    for cell in streams.chunk_by(|a, b| a.cell.index == b.cell.index) {
        let Some(first) = cell.first().filter(|stream| !stream.counted().is_empty()) else {
            continue;
        };
        if !out.is_empty() {
            out.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}:", shape::place(first));
        out.push_str(HEAD);
        let mut targets = Vec::new();
        for stream in cell {
            targets.push(passes(stream)?);
        }
        cpu_known &= targets.iter().flatten().all(|pass: &Pass| pass.cpu.is_some());
        print_cell(&mut out, &targets);
    }
    if !cpu_known {
        out.push_str("(Pct_CPU is blank where the threads' CPU is not known.)\n");
    }
    Ok(out)
}

/// The passes of a target.
fn passes(stream: &StreamOfCell) -> Result<Vec<Pass>, Misfit> {
    let all = shape::visit_by_visit(stream);
    let passes: Option<Vec<Pass>> = all.iter().map(pass).collect();
    passes.ok_or_else(|| {
        Misfit::new(format!(
            "what its phase {} moved, in how many operations and seconds, is not known",
            crate::text::plain(&stream.cell.phase)
        ))
    })
}

fn pass(visit: &StreamOfCell) -> Option<Pass> {
    let figures = visit.figures();
    let (bytes, ops) = (figures.bytes_known()?, figures.requests_known()?);
    let elapsed = shape::elapsed_ns(visit)?;
    let plan = visit.plan;
    let queue = u64::from(plan.threads.max(1)) * u64::from(plan.queue_depth.max(1));
    let told = figures.is_told();
    let latency_ms = if told { figures.latency_ns_mean()? / 1e6 } else { latency(visit, elapsed) };
    let done = visit.op_names();
    let op = match (done.contains(&"read"), done.contains(&"write"), plan.op.as_str()) {
        (true, false, _) | (false, false, "read") => "read",
        (false, true, _) | (false, false, "write") => "write",
        _ => "mixed",
    };
    Some(Pass {
        queue,
        bytes,
        ops,
        seconds: elapsed as f64 / 1e9,
        told: figures.bytes_per_second_of_all().zip(figures.iops_of_all()).filter(|_| told),
        latency_ms,
        cpu: shape::cpu_percent(visit),
        op,
        block: plan.block_bytes.unwrap_or(0),
    })
}

/// ms an operation of each worker takes by its count, averaged over those that did any; with more
/// requests in flight per worker each counts as a worker of its own.
fn latency(visit: &StreamOfCell, elapsed_ns: u64) -> f64 {
    let records = visit.counted();
    let workers = records.iter().filter_map(|v| visit.record(v)).flat_map(|s| &s.workers);
    let each: Vec<f64> = workers
        .filter(|worker| worker.requests > 0)
        .map(|worker| elapsed_ns as f64 / 1e6 / worker.requests as f64)
        .collect();
    if each.is_empty() {
        return 0.0;
    }
    let depth = f64::from(visit.plan.queue_depth.max(1));
    each.iter().sum::<f64>() / each.len() as f64 * depth
}

/// Of several passes one after the other, or of targets side by side.
fn sum(passes: &[Pass], seconds: f64) -> Option<Pass> {
    let first = passes.first()?;
    let mean = |all: Vec<f64>| all.iter().sum::<f64>() / all.len().max(1) as f64;
    let cpu: Option<Vec<f64>> = passes.iter().map(|pass| pass.cpu).collect();
    Some(Pass {
        bytes: passes.iter().fold(0, |sum: u64, pass| sum.saturating_add(pass.bytes)),
        ops: passes.iter().fold(0, |sum: u64, pass| sum.saturating_add(pass.ops)),
        seconds,
        told: None,
        latency_ms: mean(passes.iter().map(|pass| pass.latency_ms).collect()),
        cpu: cpu.map(mean),
        ..first.clone()
    })
}

fn print_cell(out: &mut String, targets: &[Vec<Pass>]) {
    let count = targets.iter().map(Vec::len).max().unwrap_or(0);
    for number in 0..count {
        for (target, passes) in targets.iter().enumerate() {
            if let Some(pass) = passes.get(number) {
                line(out, " TARGET_PASS", number + 1, target, pass);
            }
        }
    }
    let mut averages = Vec::new();
    for (target, passes) in targets.iter().enumerate() {
        let seconds = passes.iter().map(|pass| pass.seconds).sum();
        if let Some(average) = sum(passes, seconds) {
            line(out, " TARGET_AVERAGE", count, target, &average);
            averages.push(average);
        }
    }
    // Targets work at the same time.
    let seconds = averages.iter().map(|average| average.seconds).fold(0.0, f64::max);
    if let Some(mut combined) = sum(&averages, seconds) {
        combined.cpu = combined.cpu.map(|mean| mean * averages.len() as f64);
        line(out, " COMBINED", count, targets.len(), &combined);
    }
}

fn line(out: &mut String, what: &str, pass: usize, target: usize, p: &Pass) {
    let by_time = |n: u64| if p.seconds > 0.0 { n as f64 / p.seconds } else { 0.0 };
    let (rate, iops) = p.told.unwrap_or_else(|| (by_time(p.bytes), by_time(p.ops)));
    let cpu = p.cpu.map_or_else(|| " ".repeat(9), |cpu| format!("{cpu:9.3}"));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{what:<15} {pass:7} {target:7} {:7} {:16} {:11} {:11.3} {:10.3} {iops:10.3} {:9.3} {cpu} {:>8} {:12}",
        p.queue,
        p.bytes,
        p.ops,
        p.seconds,
        rate / 1e6,
        p.latency_ms,
        p.op,
        p.block
    );
}
