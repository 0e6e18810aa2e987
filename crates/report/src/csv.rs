//! One line per visit, stream and operation.

use std::fmt::Write;

use record::{OpRecord, Run, VisitRecord};
use units::Nanos;

use crate::figures::{self, Figures, StreamOfCell, known};

/// The columns, in order; see `docs/formats.md`.
pub const COLUMNS: [&str; 37] = [
    "run",
    "suite",
    "target",
    "seed",
    "cell",
    "phase",
    "coordinates",
    "stream",
    "block_bytes",
    "threads",
    "queue_depth",
    "visit",
    "repeat",
    "started_unix_ns",
    "elapsed_ns",
    "end",
    "op",
    "requests",
    "bytes",
    "errors",
    "short",
    "iops",
    "bytes_per_s",
    "latency_ns_mean",
    "latency_ns_min",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p99",
    "latency_ns_p999",
    "latency_ns_max",
    "cpu_ns_per_io_user",
    "cpu_ns_per_io_system",
    "device_read_bytes",
    "device_write_bytes",
    "backend",
    "direct",
    "warnings",
];

/// A header line, then one line per visit, stream and operation, in the order of the cells.
///
/// Quoting as in RFC 4180; lines end with a bare newline, which every reader takes and line
/// tools need. What is not known is empty. CPU is the stream's over all its operations, device
/// bytes are the visit's.
pub fn csv(run: &Run) -> String {
    let mut out = COLUMNS.join(",");
    out.push('\n');
    for stream in figures::streams_of(run) {
        for visit in &stream.visits {
            for op in stream.record(visit).into_iter().flat_map(|s| &s.ops) {
                line(&mut out, &fields(run, &stream, visit, op));
            }
        }
    }
    out
}

fn line(out: &mut String, fields: &[String]) {
    for (k, field) in fields.iter().enumerate() {
        if k > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ')
        {
            // Writing to a string cannot fail.
            let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

fn or_empty<T: ToString>(value: Option<T>) -> String {
    value.map(|v| v.to_string()).unwrap_or_default()
}

fn fields(run: &Run, stream: &StreamOfCell, visit: &VisitRecord, op: &OpRecord) -> [String; 37] {
    let StreamOfCell { cell, plan, .. } = stream;
    let record = stream.record(visit);
    let mut figures = Figures::over(Nanos::new(visit.elapsed_ns));
    figures.add(op, visit, Some(plan));
    let cpu = figures::cpu(record.into_iter());
    let alone = StreamOfCell { visits: vec![visit], ..*stream };
    let device = alone.device_bytes();
    let coordinates: Vec<_> = cell.coordinates.iter().map(|(f, v)| format!("{f}={v}")).collect();
    let codes: Vec<_> = visit.warnings.iter().map(|w| w.code.as_str()).collect();
    [
        run.header.id.clone(),
        run.header.suite.clone(),
        run.header.target.given.clone(),
        or_empty(known(run, run.header.seed)),
        cell.index.to_string(),
        cell.phase.clone(),
        coordinates.join(";"),
        plan.name.clone(),
        or_empty(plan.block_bytes),
        or_empty(known(run, plan.threads)),
        or_empty(known(run, plan.queue_depth)),
        visit.order.to_string(),
        visit.repeat.to_string(),
        or_empty(known(run, visit.started_unix_ns)),
        or_empty(known(run, visit.elapsed_ns)),
        visit.end.name().to_owned(),
        op.op.clone(),
        or_empty(figures.requests_known()),
        or_empty(figures.bytes_known()),
        figures.errors.to_string(),
        op.short.to_string(),
        or_empty(figures.iops()),
        or_empty(figures.bytes_per_second()),
        or_empty(figures.latency_ns_mean()),
        or_empty(figures.latency_ns_min()),
        or_empty(figures.latency_ns(0.5)),
        or_empty(figures.latency_ns(0.9)),
        or_empty(figures.latency_ns(0.99)),
        or_empty(figures.latency_ns(0.999)),
        or_empty(figures.latency_ns_max()),
        or_empty(cpu.map(|c| c.user)),
        or_empty(cpu.map(|c| c.system)),
        or_empty(device.map(|d| d.0)),
        or_empty(device.map(|d| d.1)),
        record.map(|r| r.backend.name.clone()).unwrap_or_default(),
        record.map(|r| r.backend.direct.to_string()).unwrap_or_default(),
        codes.join(";"),
    ]
}
