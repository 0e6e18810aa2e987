//! sysbench fileio's report: 1.0's for our own runs and, by its own name, 0.4's; imported runs in
//! their version's.
//!
//! An event is a read, a write or, in 1.x, a flush: its latencies are of all of them together.
//! 0.4 counts only reads and writes as events, and cuts sizes to five digits.

use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell, is_data};
use crate::text::plain;

const MIB: f64 = 1024.0 * 1024.0;
/// In place of what was not measured.
const NOT_KNOWN: &str = "-";

#[derive(Clone, Copy, PartialEq)]
enum Version {
    V04,
    V10,
    V11,
}

pub fn print(run: &Run) -> Result<String, Misfit> {
    let version = run.header.imported.as_ref().and_then(|i| i.version.as_deref());
    let version = match version {
        Some(v) if v.starts_with("0.") => Version::V04,
        Some(v) if v.starts_with("1.1") => Version::V11,
        _ => Version::V10,
    };
    in_version(run, version)
}

pub fn print_old(run: &Run) -> Result<String, Misfit> {
    in_version(run, Version::V04)
}

fn in_version(run: &Run, version: Version) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let mut out = String::new();
    let measured = || streams.iter().filter(|stream| !stream.counted().is_empty());
    let several = measured().count() > 1;
    for stream in measured() {
        let mut report = Report::of(stream, version)?;
        // Of several outputs together nobody told these.
        let alone = run.header.imported.is_some() && run.visits.len() == 1;
        if alone {
            report.beside = Beside::of(run);
        }
        if several {
            if !out.is_empty() {
                out.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}:", shape::place(stream));
        }
        match version {
            Version::V04 => report.print_old(&mut out),
            Version::V10 | Version::V11 => report.print(&mut out, version),
        }
    }
    let is_unknown = |word: &str| word == NOT_KNOWN || word.ends_with("/-") || word.ends_with("=-");
    let words = |line: &str| line.split([' ', ',', '(', ')']).any(is_unknown);
    if let Some(apart) = apart(&streams) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{apart}");
    }
    if out.contains("(-/sec)") || out.lines().any(words) {
        out.push_str("(- is what is not known.)\n");
    }
    Ok(out)
}

/// From here on the two means of a cell are two different figures.
const APART: f64 = 0.01;

/// Rates that stand beside the counts and the time they are of are those; where the mean over the visits,
/// which every other table shows, is another figure, it is said.
fn apart(streams: &[StreamOfCell]) -> Option<String> {
    let of_both = |stream: &StreamOfCell| {
        let figures = stream.figures();
        let (all, mean) = (figures.iops_of_all()?, figures.iops_of_visits()?);
        let is_apart = (all / mean).ln().abs() > APART;
        is_apart.then(|| format!("{}: {mean:.2}", shape::place(stream)))
    };
    let told: Vec<String> = streams.iter().filter_map(of_both).collect();
    (!told.is_empty()).then(|| {
        format!(
            "(Rates are all requests by all time, as sysbench has it. The geometric mean of the visits, as in \
             other tables, is another, in requests/s: {}.)",
            told.join(", ")
        )
    })
}

/// What an imported output says beside its figures, as it was printed.
#[derive(Default)]
struct Beside {
    sum: Option<String>,
    events: Option<String>,
    time: Option<String>,
}

impl Beside {
    fn of(run: &Run) -> Self {
        let told = |name: &str| shape::setting(run, &format!("result {name}")).map(plain);
        Self {
            sum: told("latency sum").or_else(|| told("total time taken by event execution")),
            events: told("events (avg/stddev)"),
            time: told("execution time (avg/stddev)"),
        }
    }
}

/// What a report is made of.
struct Report {
    beside: Beside,
    reads: Figures,
    writes: Figures,
    others: Figures,
    /// All events: what their latencies are of.
    events: Figures,
    /// How many; `None` where it was not told.
    count: Option<u64>,
    elapsed_ns: Option<u64>,
    threads: u32,
    block: Option<u64>,
    /// Events of each thread, summed over the visits; empty where they are not known.
    of_threads: Vec<u64>,
}

// Writing to a string cannot fail, hence `let _`.
impl Report {
    fn of(stream: &StreamOfCell, version: Version) -> Result<Self, Misfit> {
        let done = stream.op_names();
        if !done.iter().any(|op| matches!(*op, "read" | "write")) {
            return Err(Misfit::new(format!(
                "its phase {} neither reads nor writes",
                plain(&stream.cell.phase)
            )));
        }
        let is_other = |op: &str| !is_data(op) && op != "event";
        let others = stream.figures_of(is_other);
        // Of imported runs of several operations the latencies stand apart.
        let events = match (done.contains(&"event"), version) {
            (true, _) => stream.figures_of(|op| op == "event"),
            (false, Version::V04) => stream.figures(),
            (false, _) => stream.figures_of(|_| true),
        };
        let told = events.is_told();
        let mut of_threads: Vec<u64> = Vec::new();
        for visit in stream.counted() {
            for (k, worker) in stream.record(visit).into_iter().flat_map(|s| &s.workers).enumerate()
            {
                match of_threads.get_mut(k) {
                    Some(sum) => *sum = sum.saturating_add(worker.requests),
                    None => of_threads.push(worker.requests),
                }
            }
        }
        // A thread's count has its flushes in it.
        if told || version == Version::V04 && others.requests > 0 {
            of_threads.clear();
        }
        Ok(Self {
            beside: Beside::default(),
            reads: stream.figures_of(|op| op == "read"),
            writes: stream.figures_of(|op| op == "write"),
            count: events.requests_known().filter(|&n| n > 0 || !told),
            others,
            events,
            elapsed_ns: shape::elapsed_ns(stream),
            threads: stream.plan.threads,
            block: stream.plan.block_bytes,
            of_threads,
        })
    }

    /// 0 where an operation was not done, and nothing where it was and nobody told how fast.
    fn iops(figures: &Figures) -> Option<f64> {
        figures.iops_of_all().or_else(|| (!figures.is_told()).then_some(0.0))
    }

    fn bytes_per_s(figures: &Figures) -> Option<f64> {
        figures.bytes_per_second_of_all().or_else(|| (!figures.is_told()).then_some(0.0))
    }

    fn seconds(&self) -> String {
        known(self.elapsed_ns.map(|ns| format!("{:.4}s", ns as f64 / 1e9)))
    }

    fn event_count(&self) -> String {
        known(self.count.map(|count| count.to_string()))
    }

    /// The 95th, of however few events, as the original has it.
    fn percentile(&self) -> Option<f64> {
        let of_all = || self.events.latencies().quantile(0.95).map(units::Nanos::get);
        self.events.latency_ns(0.95).or_else(of_all).map(|ns| ns as f64)
    }

    /// Sum of all events' latencies, ns: exact in our own runs, not known of means of two
    /// digits.
    fn sum_ns(&self) -> Option<f64> {
        let mean = self.events.latency_ns_mean().filter(|_| !self.events.is_told())?;
        Some(mean * self.events.requests as f64)
    }

    fn print(&self, out: &mut String, version: Version) {
        match version {
            Version::V11 => self.throughput(out),
            _ => self.operations(out),
        }
        out.push_str("\nLatency (ms):\n");
        let ms = |ns: Option<f64>| known(ns.map(|ns| format!("{:.2}", ns / 1e6)));
        for (label, ns) in [
            ("min:", self.events.latency_ns_min().map(|ns| ns as f64)),
            ("avg:", self.events.latency_ns_mean()),
            ("max:", self.events.latency_ns_max().map(|ns| ns as f64)),
            ("95th percentile:", self.percentile()),
        ] {
            let _ = writeln!(out, "         {label:<32}{:>12}", ms(ns));
        }
        let sum = self.beside.sum.clone().unwrap_or_else(|| ms(self.sum_ns()));
        let _ = writeln!(out, "         {:<32}{sum:>12}", "sum:");
        if version == Version::V10 {
            self.fairness(out);
        }
    }

    /// 1.0's rates.
    fn operations(&self, out: &mut String) {
        let rows = [&self.reads, &self.writes, &self.others];
        out.push_str("File operations:\n");
        for (label, figures) in ["reads/s:", "writes/s:", "fsyncs/s:"].into_iter().zip(rows) {
            let _ = writeln!(out, "    {label:<30}{}", hundredths(Self::iops(figures)));
        }
        out.push_str("\nThroughput:\n");
        for (label, figures) in ["read, MiB/s:", "written, MiB/s:"].into_iter().zip(rows) {
            let mib = Self::bytes_per_s(figures).map(|bytes| bytes / MIB);
            let _ = writeln!(out, "    {label:<30}{}", hundredths(mib));
        }
        out.push_str("\nGeneral statistics:\n");
        let _ = writeln!(out, "    {:<37}{}", "total time:", self.seconds());
        let _ = writeln!(out, "    {:<37}{}", "total number of events:", self.event_count());
    }

    /// 1.1's.
    fn throughput(&self, out: &mut String) {
        out.push_str("Throughput:\n");
        for (label, figures) in [("read: ", &self.reads), ("write:", &self.writes)] {
            let (iops, told) = (Self::iops(figures), Self::bytes_per_s(figures));
            // Told MiB/s have two decimals, which is too few for another unit.
            let bytes = self.block.zip(iops).map(|(block, iops)| iops * block as f64).or(told);
            let (iops, mib) = (hundredths(iops), hundredths(told.map(|bytes| bytes / MIB)));
            let mb = hundredths(bytes.map(|bytes| bytes / 1e6));
            let _ = writeln!(out, "         {label} IOPS={iops} {mib} MiB/s ({mb} MB/s)");
        }
        let _ = writeln!(out, "         fsync: IOPS={}", hundredths(Self::iops(&self.others)));
    }

    fn print_old(&self, out: &mut String) {
        let [reads, writes, others] =
            [&self.reads, &self.writes, &self.others].map(Figures::requests_known);
        let [read, written] =
            [&self.reads, &self.writes].map(|f| f.bytes_known().map(|bytes| bytes as f64));
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
        let moved = read.zip(written).map(|(read, written)| read + written);
        let by_time = |n: Option<f64>| n.zip(self.elapsed_ns).map(|(n, ns)| n * 1e9 / ns as f64);
        // As it was told; a mode of both kinds has one rate of both.
        let [iops, rate] = match (self.reads.is_told(), self.writes.is_told()) {
            (true, false) => [self.reads.iops_of_all(), self.reads.bytes_per_second_of_all()],
            (false, true) => [self.writes.iops_of_all(), self.writes.bytes_per_second_of_all()],
            _ => {
                let both =
                    |of: fn(&Figures) -> Option<f64>| Some(of(&self.reads)? + of(&self.writes)?);
                [
                    by_time(sum(reads, writes).map(|n| n as f64)).or_else(|| both(Self::iops)),
                    by_time(moved).or_else(|| both(Self::bytes_per_s)),
                ]
            }
        };
        let number = |n: Option<u64>| known(n.map(|n| n.to_string()));
        let _ = writeln!(
            out,
            "Operations performed:  {} Read, {} Write, {} Other = {} Total",
            number(reads),
            number(writes),
            number(others),
            number(sum(sum(reads, writes), others))
        );
        let _ = writeln!(
            out,
            "Read {}  Written {}  Total transferred {}  ({}/sec)",
            known(read.map(size)),
            known(written.map(size)),
            known(moved.map(size)),
            known(rate.map(size))
        );
        let iops = hundredths(iops);
        let _ = writeln!(out, "{iops:>8} Requests/sec executed\n\nTest execution summary:");
        let _ = writeln!(out, "    {:<37}{}", "total time:", self.seconds());
        let _ = writeln!(out, "    {:<37}{}", "total number of events:", self.event_count());
        let taken = self.beside.sum.clone();
        let taken = known(taken.or_else(|| self.sum_ns().map(|ns| format!("{:.4}", ns / 1e9))));
        let _ = writeln!(out, "    total time taken by event execution: {taken}");
        out.push_str("    per-request statistics:\n");
        let ms = |ns: Option<f64>| known(ns.map(|ns| format!("{:.2}ms", ns / 1e6)));
        for (label, ns) in [
            ("min:", self.events.latency_ns_min().map(|ns| ns as f64)),
            ("avg:", self.events.latency_ns_mean()),
            ("max:", self.events.latency_ns_max().map(|ns| ns as f64)),
            ("approx.  95 percentile:", self.percentile()),
        ] {
            let _ = writeln!(out, "         {label:<32}{:>12}", ms(ns));
        }
        self.fairness(out);
    }

    /// Mean and deviation over the threads, of their events and of the time these took.
    fn fairness(&self, out: &mut String) {
        let threads = f64::from(self.threads.max(1));
        let number = self.of_threads.len() as f64;
        let sum: f64 = self.of_threads.iter().map(|&n| n as f64).sum();
        let mean = (number > 0.0).then(|| sum / number);
        let sd = mean.map(|mean| {
            let squares: f64 = self.of_threads.iter().map(|&n| (n as f64 - mean).powi(2)).sum();
            (squares / number).sqrt()
        });
        // One thread does not deviate.
        let alone = (self.threads == 1).then_some(0.0);
        let events = mean.or_else(|| Some(self.count? as f64 / threads));
        let time = self.sum_ns().map(|ns| ns / 1e9 / threads);
        let pair = |mean: Option<f64>, sd: Option<f64>| {
            let sd = sd.filter(|_| mean.is_some());
            format!(
                "{}/{}",
                known(mean.map(|mean| format!("{mean:.4}"))),
                known(sd.map(|sd| format!("{sd:.2}")))
            )
        };
        let told = |text: &Option<String>, mean: Option<f64>, sd: Option<f64>| {
            text.clone().unwrap_or_else(|| pair(mean, sd))
        };
        let events = told(&self.beside.events, events, sd.or(alone));
        let time = told(&self.beside.time, time, alone);
        out.push_str("\nThreads fairness:\n");
        let _ = writeln!(out, "    {:<31}{events}", "events (avg/stddev):");
        let _ = writeln!(out, "    {:<31}{time}", "execution time (avg/stddev):");
    }
}

fn hundredths(value: Option<f64>) -> String {
    known(value.map(|value| format!("{value:.2}")))
}

fn known(text: Option<String>) -> String {
    text.unwrap_or_else(|| NOT_KNOWN.to_owned())
}

/// `78.125Mb`, of 1024s, with five digits.
fn size(bytes: f64) -> String {
    let mut value = bytes;
    let mut unit = "b";
    for larger in ["Kb", "Mb", "Gb", "Tb"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{}{unit}", shape::general(value, 5))
}
