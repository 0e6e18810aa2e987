//! One row per visit, stream and operation: what CSV and Parquet hold, typed.

use record::{OpRecord, Run, VisitRecord};

use crate::figures::{self, Figures, StreamOfCell, known};

/// How many columns there are.
pub(crate) const WIDTH: usize = 37;

/// A column of the exports with a line per visit, stream and operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; see `docs/formats.md`.
    pub name: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Their unit; empty where they have none.
    pub unit: &'static str,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// Whole, not negative.
    Count,
    /// A 64-bit float.
    Number,
    /// Yes or no.
    Flag,
    /// ns since 1970, in UTC.
    Time,
}

/// A value of a row. What is not known is `None` in its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Count(u64),
    Number(f64),
    Flag(bool),
    Time(i64),
}

pub(crate) type Row = [Option<Value>; WIDTH];

const fn column(name: &'static str, kind: Kind, unit: &'static str) -> Column {
    Column { name, kind, unit }
}

/// The columns, in order; see `docs/formats.md`.
pub const COLUMNS: [Column; WIDTH] = [
    column("run", Kind::Text, ""),
    column("suite", Kind::Text, ""),
    column("target", Kind::Text, ""),
    column("seed", Kind::Count, ""),
    column("cell", Kind::Count, ""),
    column("phase", Kind::Text, ""),
    column("coordinates", Kind::Text, ""),
    column("stream", Kind::Text, ""),
    column("block_bytes", Kind::Count, "B"),
    column("threads", Kind::Count, ""),
    column("queue_depth", Kind::Count, ""),
    column("visit", Kind::Count, ""),
    column("repeat", Kind::Count, ""),
    column("started_unix_ns", Kind::Time, "ns"),
    column("elapsed_ns", Kind::Count, "ns"),
    column("end", Kind::Text, ""),
    column("op", Kind::Text, ""),
    column("requests", Kind::Count, ""),
    column("bytes", Kind::Count, "B"),
    column("errors", Kind::Count, ""),
    column("short", Kind::Count, ""),
    column("iops", Kind::Number, "1/s"),
    column("bytes_per_s", Kind::Number, "B/s"),
    column("latency_ns_mean", Kind::Number, "ns"),
    column("latency_ns_min", Kind::Count, "ns"),
    column("latency_ns_p50", Kind::Count, "ns"),
    column("latency_ns_p90", Kind::Count, "ns"),
    column("latency_ns_p99", Kind::Count, "ns"),
    column("latency_ns_p999", Kind::Count, "ns"),
    column("latency_ns_max", Kind::Count, "ns"),
    column("cpu_ns_per_io_user", Kind::Number, "ns"),
    column("cpu_ns_per_io_system", Kind::Number, "ns"),
    column("device_read_bytes", Kind::Count, "B"),
    column("device_write_bytes", Kind::Count, "B"),
    column("backend", Kind::Text, ""),
    column("direct", Kind::Flag, ""),
    column("warnings", Kind::Text, ""),
];

/// The rows of a run, in the order of the cells. CPU is the stream's over all its operations,
/// device bytes are the visit's.
pub(crate) fn rows(run: &Run) -> Vec<Row> {
    let mut all = Vec::new();
    for stream in figures::streams_of(run) {
        for visit in &stream.visits {
            let ops = stream.record(visit).into_iter().flat_map(|s| &s.ops);
            all.extend(ops.map(|op| row(run, &stream, visit, op)));
        }
    }
    all
}

fn text(value: impl Into<String>) -> Option<Value> {
    Some(Value::Text(value.into()))
}

fn count(value: impl Into<u64>) -> Option<Value> {
    Some(Value::Count(value.into()))
}

fn number(value: Option<f64>) -> Option<Value> {
    value.map(Value::Number)
}

fn row(run: &Run, stream: &StreamOfCell, visit: &VisitRecord, op: &OpRecord) -> Row {
    let StreamOfCell { cell, plan, .. } = stream;
    let record = stream.record(visit);
    let mut figures = Figures::over(&[visit]);
    figures.add(op, visit, Some(plan));
    let cpu = figures::cpu(record.into_iter());
    let alone = StreamOfCell { visits: vec![visit], ..*stream };
    let device = alone.device_bytes();
    let coordinates: Vec<_> = cell.coordinates.iter().map(|(f, v)| format!("{f}={v}")).collect();
    let codes: Vec<_> = visit.warnings.iter().map(|w| w.code.as_str()).collect();
    [
        text(&run.header.id),
        text(&run.header.suite),
        known(run, run.header.target.given.clone()).map(Value::Text),
        known(run, run.header.seed).and_then(count),
        count(cell.index),
        text(&cell.phase),
        text(coordinates.join(";")),
        text(&plan.name),
        plan.block_bytes.and_then(count),
        known(run, plan.threads).and_then(count),
        known(run, plan.queue_depth).and_then(count),
        count(visit.order),
        count(visit.repeat),
        known(run, visit.started_unix_ns).map(Value::Time),
        known(run, visit.elapsed_ns).and_then(count),
        text(visit.end.name()),
        text(&op.op),
        figures.requests_known().and_then(count),
        figures.bytes_known().and_then(count),
        known(run, figures.errors).and_then(count),
        known(run, op.short).and_then(count),
        number(figures.iops()),
        number(figures.bytes_per_second()),
        number(figures.latency_ns_mean()),
        figures.latency_ns_min().and_then(count),
        figures.latency_ns(0.5).and_then(count),
        figures.latency_ns(0.9).and_then(count),
        figures.latency_ns(0.99).and_then(count),
        figures.latency_ns(0.999).and_then(count),
        figures.latency_ns_max().and_then(count),
        number(cpu.map(|c| c.user)),
        number(cpu.map(|c| c.system)),
        device.and_then(|d| count(d.0)),
        device.and_then(|d| count(d.1)),
        record.and_then(|r| known(run, r.backend.name.clone())).map(Value::Text),
        record.and_then(|r| known(run, r.backend.direct)).map(Value::Flag),
        text(codes.join(";")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_their_units() {
        for column in COLUMNS {
            assert_eq!(column.name.contains("_ns"), column.unit == "ns", "{}", column.name);
            assert_eq!(column.name.ends_with("bytes"), column.unit == "B", "{}", column.name);
        }
    }
}
