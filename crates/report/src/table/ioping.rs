//! ioping's statistics, as 1.3 prints them.

use std::fmt::Write;

use record::{Run, TargetKind};

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell, total};
use crate::text::plain;

const NUMBERS: [(&str, f64); 4] = [("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0)];
const TIMES: [(&str, f64); 6] =
    [("day", 86_400e9), ("hour", 3_600e9), ("min", 60e9), ("s", 1e9), ("ms", 1e6), ("us", 1e3)];
const SIZES: [(&str, f64); 5] = [
    ("TiB", (1u64 << 40) as f64),
    ("GiB", (1u64 << 30) as f64),
    ("MiB", (1u64 << 20) as f64),
    ("KiB", 1024.0),
    ("B", 1.0),
];

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let mut out = String::new();
    let several = streams.iter().filter(|stream| !stream.counted().is_empty()).count() > 1;
    for stream in streams.iter().filter(|stream| !stream.counted().is_empty()) {
        shape::one_at_a_time(stream, "ioping")?;
        if several {
            if !out.is_empty() {
                out.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}:", shape::place(stream));
        }
        out.push_str(&statistics(run, stream)?);
    }
    Ok(out)
}

fn statistics(run: &Run, stream: &StreamOfCell) -> Result<String, Misfit> {
    let figures = stream.figures();
    let (Some(min), Some(mean), Some(max)) =
        (figures.latency_ns_min(), figures.latency_ns_mean(), figures.latency_ns_max())
    else {
        return Err(Misfit::new(format!(
            "the latencies of its phase {} are not known",
            plain(&stream.cell.phase)
        )));
    };
    let known = Known { exact: !figures.is_told() };
    let sd = figures.latency_ns_sd().map_or_else(|| "-".to_owned(), |sd| known.time(sd));
    let mut out = format!("--- {} ioping statistics ---\n", target(run));
    out.push_str(&completed(run, stream, &figures, mean));
    out.push_str(&generated(run, stream));
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "min/avg/max/mdev = {} / {} / {} / {sd}",
        known.time(min as f64),
        known.time(mean),
        known.time(max as f64)
    );
    if out.contains(" -/s") || sd == "-" {
        out.push_str("(- is what is not known.)\n");
    }
    Ok(out)
}

/// `. (ext4 /dev/vda 252.0 GiB)`.
fn target(run: &Run) -> String {
    let target = &run.header.target;
    let about = match (shape::setting(run, "target"), target.kind) {
        (Some(about), _) => Some(about.to_owned()),
        (None, TargetKind::BlockDevice) if target.size_bytes > 0 => {
            Some(format!("block device {}", EXACT.size(target.size_bytes as f64)))
        }
        (None, _) => target.file_system.as_ref().map(|kind| match target.devices.first() {
            Some(device) => format!("{kind} /dev/{device}"),
            None => kind.clone(),
        }),
    };
    let about = about.map(|about| format!(" ({about})")).unwrap_or_default();
    plain(&format!("{}{about}", target.given))
}

/// What came back, in the time that it took: pauses do not count.
fn completed(run: &Run, stream: &StreamOfCell, figures: &Figures, mean: f64) -> String {
    if let Some(told) = shape::setting(run, "result completed") {
        return plain(told) + "\n";
    }
    // Where ioping waited between its requests the figures' time and rates are with the pauses.
    let told = figures.is_told() && stream.cell.phase != "latency";
    let known = Known { exact: !told };
    let elapsed = shape::elapsed_ns(stream).map(|ns| ns as f64);
    let requests = match figures.requests_known() {
        Some(count) => Some(count as f64),
        // Told in thousands: from the rate and the time, which are of three digits.
        None => figures.iops_of_all().zip(elapsed).map(|(rate, ns)| rate * ns / 1e9),
    };
    let busy = match elapsed {
        Some(ns) if told => Some(ns),
        _ => requests.map(|requests| mean * requests),
    };
    let by_busy =
        |n: Option<f64>| n.zip(busy).map(|(n, ns)| if ns > 0.0 { n * 1e9 / ns } else { 0.0 });
    let bytes = figures.bytes_known().map(|bytes| bytes as f64);
    let rate = figures.bytes_per_second_of_all().filter(|_| told).or_else(|| by_busy(bytes));
    let iops = figures.iops_of_all().filter(|_| told).or_else(|| by_busy(requests));
    let moved = bytes.or_else(|| rate.zip(busy).map(|(rate, ns)| rate * ns / 1e9));
    let word = if stream.op_names().contains(&"write") { "written" } else { "read" };
    let say =
        |value: Option<f64>, how: &dyn Fn(f64) -> String| value.map_or_else(|| "-".to_owned(), how);
    format!(
        "{} requests completed in {}, {} {word}, {} iops, {}/s\n",
        say(requests, &|n| EXACT.number(n)),
        say(busy, &|ns| known.time(ns)),
        say(moved, &|bytes| EXACT.size(bytes)),
        say(iops, &|n| known.number(n)),
        say(rate, &|bytes| known.size(bytes))
    )
}

/// What was asked for, in all the time: the requests before the counted ones are in it.
fn generated(run: &Run, stream: &StreamOfCell) -> String {
    if run.header.imported.is_some() {
        // Versions before 1.0 had no such line.
        let told = shape::setting(run, "result generated");
        let left_out = shape::setting(run, "result not counted");
        let left_out = left_out.map(|told| plain(told) + ", ").unwrap_or_default();
        let line = told.map(|told| format!("{left_out}generated {}\n", plain(told)));
        return line.unwrap_or_default();
    }
    let visits = stream.counted();
    let elapsed = total(visits.iter().map(|v| v.elapsed_ns.saturating_add(v.ramp_ns))) as f64;
    let records: Vec<_> = visits.iter().filter_map(|v| stream.record(v)).collect();
    let warm = total(records.iter().map(|record| record.ramp_requests));
    let figures = stream.figures();
    let requests = figures.requests.saturating_add(warm) as f64;
    let block = stream.plan.block_bytes.unwrap_or(0) as f64;
    let bytes = figures.bytes as f64 + warm as f64 * block;
    let by_time = |n: f64| if elapsed > 0.0 { n * 1e9 / elapsed } else { 0.0 };
    format!(
        "generated {} requests in {}, {}, {} iops, {}/s\n",
        EXACT.number(requests),
        EXACT.time(elapsed),
        EXACT.size(bytes),
        EXACT.number(by_time(requests)),
        EXACT.size(by_time(bytes))
    )
}

/// A figure with what is known of it: one that was printed before has lost its last digits, and
/// that it is a whole number of units says nothing.
#[derive(Clone, Copy)]
struct Known {
    exact: bool,
}

impl Known {
    fn number(self, value: f64) -> String {
        scaled(value, &NUMBERS, self.exact)
    }

    fn time(self, ns: f64) -> String {
        scaled(ns, if ns < 1e3 { &[("ns", 1.0)] } else { &TIMES }, self.exact)
    }

    fn size(self, bytes: f64) -> String {
        scaled(bytes, &SIZES, self.exact)
    }
}

const EXACT: Known = Known { exact: true };

/// Cut to a whole number first; then in the largest unit that is not larger: whole if it is a
/// multiple of the unit, else with one decimal from ten units on and two below.
fn scaled(value: f64, units: &[(&str, f64)], exact: bool) -> String {
    let value = shape::cut(value) as f64;
    let found = units.iter().find(|(_, unit)| value >= *unit).or_else(|| units.last());
    let (name, unit) = found.copied().unwrap_or(("", 1.0));
    let decimals = match () {
        () if value % unit == 0.0 && (exact || unit == 1.0) => 0,
        () if value >= unit * 10.0 => 1,
        () => 2,
    };
    let text = format!("{:.decimals$}", value / unit);
    if name.is_empty() { text } else { format!("{text} {name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ioping() {
        assert_eq!(EXACT.number(10_342.0), "10.3 k");
        assert_eq!(EXACT.number(4_778.4), "4.78 k");
        assert_eq!(EXACT.number(6.247), "6");
        assert_eq!(EXACT.number(0.0), "0");
        assert_eq!(EXACT.number(2_000.0), "2 k");
        assert_eq!(EXACT.time(837_100.0), "837.1 us");
        assert_eq!(EXACT.time(5_130_000.0), "5.13 ms");
        assert_eq!(EXACT.time(1_000_123_456.0), "1.00 s");
        assert_eq!(EXACT.time(999.0), "999 ns");
        assert_eq!(EXACT.size(16_384.0), "16 KiB");
        assert_eq!(EXACT.size(25_587.0), "25.0 KiB");
        assert_eq!(EXACT.size(44_983_910.0), "42.9 MiB");
        let told = Known { exact: false };
        assert_eq!(told.time(56_000.0), "56.0 us");
        assert_eq!(told.number(11_000.0), "11.0 k");
        assert_eq!(told.number(6.0), "6");
    }
}
