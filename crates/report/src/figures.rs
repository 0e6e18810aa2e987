//! The arithmetic between records and every report: rates, latencies, CPU per I/O.
//!
//! Each report shows the same figures because each takes them from here.

use std::collections::BTreeMap;

use explain::converged::not_converged;
use explain::interval::CellInterval;
use explain::view::{Counting, Counts, rate_of, whole};
use explain::{Findings, Mark, View};
use record::{
    CellRecord, OpRecord, Purpose, Reported, ReportedLatency, Run, StreamPlan, StreamRecord,
    VisitEnd, VisitRecord, Warning,
};
use stats::LatencyHistogram;

/// How many values must lie above a percentile for it to be printed: with fewer it is a guess
/// about a handful of requests.
pub const ABOVE_MIN: u64 = 10;

/// What was measured of some requests, over one or more visits.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Measured time of the visits together.
    pub elapsed_ns: u64,
    /// What rates are of: time, requests, bytes; see [`VisitRecord::rated_ns`].
    rated: (u64, u64, u64),
    /// Time and requests that the rate of each visit is of, by its number, cell and repeat.
    each: BTreeMap<(u32, u32, u32), (u64, u64)>,
    /// Completed in full.
    pub requests: u64,
    /// Moved by those.
    pub bytes: u64,
    /// Failed.
    pub errors: u64,
    /// Completed with fewer bytes than asked.
    pub short: u64,
    latency: LatencyHistogram,
    latency_ns_min: u64,
    latency_ns_max: u64,
    latency_ns_sum: u128,
    told: Told,
    /// Operations that are two requests are in it: how long each took as a whole is not recorded,
    /// but in the mean.
    pairs: bool,
}

/// What other tools reported, where they did.
#[derive(Clone, Debug, Default)]
struct Told {
    /// Rates with the visit they are of.
    iops: Vec<(u32, Option<f64>)>,
    bytes: Vec<(u32, Option<f64>)>,
    /// Latency of each operation and visit, with its weight in a mean.
    latency: Vec<(Option<f64>, ReportedLatency)>,
    /// Whether requests, and bytes, of all of them were counted.
    no_requests: bool,
    no_bytes: bool,
}

/// CPU time per completed request, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cpu {
    /// In user mode.
    pub user: f64,
    /// In the kernel.
    pub system: f64,
}

impl Figures {
    /// No requests yet, in the time of these visits.
    pub fn over(visits: &[&VisitRecord]) -> Self {
        let elapsed_ns = total(visits.iter().map(|visit| visit.elapsed_ns));
        let rated_ns = total(visits.iter().map(|visit| visit.rated_ns()));
        let each = visits.iter().map(|visit| (number_of(visit), (visit.rated_ns(), 0)));
        Self { elapsed_ns, rated: (rated_ns, 0, 0), each: each.collect(), ..Self::default() }
    }

    /// Counts in what an operation did; its time is counted apart.
    pub fn add(&mut self, op: &OpRecord, visit: &VisitRecord, plan: Option<&StreamPlan>) {
        if let Some(told) = &op.reported {
            self.told.add(op, told, visit, plan);
        }
        if op.requests > 0 {
            self.latency_ns_min = match self.requests {
                0 => op.latency_ns_min,
                _ => self.latency_ns_min.min(op.latency_ns_min),
            };
        }
        self.latency_ns_max = self.latency_ns_max.max(op.latency_ns_max);
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(op.latency_ns_sum);
        self.latency.merge(&op.latency);
        self.requests = self.requests.saturating_add(op.requests);
        self.bytes = self.bytes.saturating_add(op.bytes);
        let (_, requests, bytes) = &mut self.rated;
        *requests = requests.saturating_add(op.requests_rated());
        *bytes = bytes.saturating_add(op.bytes_rated());
        if let Some((_, requests)) = self.each.get_mut(&number_of(visit)) {
            *requests = requests.saturating_add(op.requests_rated());
        }
        self.errors = self.errors.saturating_add(total(op.errors.iter().map(|&(_, n)| n)));
        self.short = self.short.saturating_add(op.short);
    }

    /// Counts in the time of the other half of each operation, which is no operation by itself.
    fn add_half(&mut self, op: &OpRecord) {
        self.pairs = true;
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(op.latency_ns_sum);
        self.errors = self.errors.saturating_add(total(op.errors.iter().map(|&(_, n)| n)));
        self.short = self.short.saturating_add(op.short);
    }

    /// Whether there are operations of two requests in it. Their mean latency is that of both
    /// together; other latencies are known of each half alone, and of those of
    /// [`StreamOfCell::figures_of`].
    pub fn has_pairs(&self) -> bool {
        self.pairs
    }

    /// Completed requests per second of the time in which the load was under way: over several
    /// visits the ratio of the sums. `None` when no time was measured. What another tool reported
    /// is the geometric mean over the visits for which it did.
    pub fn iops(&self) -> Option<f64> {
        let (time, requests, _) = self.rated;
        self.told_or(&self.told.iops, per_second(requests, time))
    }

    /// Bytes per second likewise.
    pub fn bytes_per_second(&self) -> Option<f64> {
        let (time, _, bytes) = self.rated;
        self.told_or(&self.told.bytes, per_second(bytes, time))
    }

    /// Of one visit all requests by the time until the last of them was back: the arithmetic of tools
    /// that wait for it with the clock running. Of several visits their mean, as in every other table.
    pub fn iops_of_visits(&self) -> Option<f64> {
        self.told_or(&self.told.iops, self.mean_of_several().or_else(|| self.iops_of_all()))
    }

    /// Bytes per second likewise.
    pub fn bytes_per_second_of_visits(&self) -> Option<f64> {
        let (_, requests, bytes) = self.rated;
        let several = self.mean_of_several().filter(|_| requests > 0);
        let several = several.map(|rate| rate * bytes as f64 / requests as f64);
        self.told_or(&self.told.bytes, several.or_else(|| self.bytes_per_second_of_all()))
    }

    /// All requests by all the time until the last of each visit was back, for who prints both.
    pub fn iops_of_all(&self) -> Option<f64> {
        self.told_or(&self.told.iops, per_second(self.requests, self.elapsed_ns))
    }

    /// Bytes per second likewise.
    pub fn bytes_per_second_of_all(&self) -> Option<f64> {
        self.told_or(&self.told.bytes, per_second(self.bytes, self.elapsed_ns))
    }

    /// Geometric mean of the rates of several visits.
    fn mean_of_several(&self) -> Option<f64> {
        let rates = self.each.values().filter_map(|&(time, requests)| per_second(requests, time));
        if self.each.len() < 2 { None } else { geometric_mean(&rates.collect::<Vec<_>>()) }
    }

    fn told_or(&self, told: &[(u32, Option<f64>)], counted: Option<f64>) -> Option<f64> {
        if self.is_told() { mean_of_visits(told) } else { counted }
    }

    /// Whether another tool reported these figures.
    pub fn is_told(&self) -> bool {
        !self.told.latency.is_empty()
    }

    /// Completed in full; `None` where a tool reported something and did not count.
    pub fn requests_known(&self) -> Option<u64> {
        (!self.told.no_requests).then_some(self.requests)
    }

    /// Moved by those, likewise.
    pub fn bytes_known(&self) -> Option<u64> {
        (!self.told.no_bytes).then_some(self.bytes)
    }

    /// Exact mean latency in ns; `None` when nothing completed.
    pub fn latency_ns_mean(&self) -> Option<f64> {
        if self.is_told() {
            return self.told.mean();
        }
        (self.requests > 0).then(|| self.latency_ns_sum as f64 / self.requests as f64)
    }

    /// Exact shortest latency in ns.
    pub fn latency_ns_min(&self) -> Option<u64> {
        if self.is_told() {
            return self.told.all(|latency| latency.min)?.into_iter().min();
        }
        (self.requests > 0 && !self.pairs).then_some(self.latency_ns_min)
    }

    /// Exact longest latency in ns.
    pub fn latency_ns_max(&self) -> Option<u64> {
        if self.is_told() {
            return self.told.all(|latency| latency.max)?.into_iter().max();
        }
        (self.requests > 0 && !self.pairs).then_some(self.latency_ns_max)
    }

    /// Standard deviation of the latencies in ns, from the middles of their histogram's buckets,
    /// which are 0.8 % wide: off by at most 0.4 % of the latencies. What another tool reported is
    /// as it reported it, and `None` over several operations or visits.
    pub fn latency_ns_sd(&self) -> Option<f64> {
        if self.is_told() {
            let [(_, only)] = self.told.latency.as_slice() else { return None };
            return only.sd;
        }
        if self.pairs {
            return None;
        }
        let middle = |bucket: u32| {
            let (low, high) = stats::histogram::bucket_bounds(bucket as usize);
            (low as f64 + high as f64) / 2.0
        };
        let count = self.latency.count() as f64;
        let mean = self.latency.sparse().map(|(b, n)| middle(b) * n as f64).sum::<f64>() / count;
        let off = |b: u32| (middle(b) - mean).powi(2);
        let squares: f64 = self.latency.sparse().map(|(b, n)| off(b) * n as f64).sum();
        (count > 0.0).then(|| (squares / count).sqrt())
    }

    /// How often which latency was met; empty where another tool measured.
    pub fn latencies(&self) -> &LatencyHistogram {
        &self.latency
    }

    /// Latency that a share `q` (in `0.0..=1.0`) of the requests did not exceed, in ns, at most
    /// 0.4 % off. `None` when fewer than [`ABOVE_MIN`] values lie above it. What another tool
    /// reported is as it reported it, and `None` over several operations or visits.
    pub fn latency_ns(&self, q: f64) -> Option<u64> {
        if self.is_told() {
            return self.told.quantile(q);
        }
        if self.pairs {
            return None;
        }
        let quantile = self.latency.quantile_with(q, ABOVE_MIN)?.get();
        // The middle of a bucket can lie outside what was seen.
        Some(quantile.max(self.latency_ns_min).min(self.latency_ns_max.max(self.latency_ns_min)))
    }
}

/// The geometric mean over visits of the sums in each, which is that of intervals and comparisons. Of a visit in which one rate is not known the sum is
/// not, either.
fn mean_of_visits(rates: &[(u32, Option<f64>)]) -> Option<f64> {
    let mut visits: BTreeMap<u32, Option<f64>> = BTreeMap::new();
    for (visit, rate) in rates {
        let sum = visits.entry(*visit).or_insert(Some(0.0));
        *sum = sum.zip(*rate).map(|(sum, rate)| sum + rate);
    }
    let known: Vec<f64> = visits.into_values().flatten().collect();
    match known.as_slice() {
        // What it was told as, to the last digit.
        [only] => Some(*only),
        all => geometric_mean(all).or(all.first().map(|_| 0.0)),
    }
}

/// Of those above 0, which alone have a logarithm; none where there are none.
fn geometric_mean(rates: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = rates.iter().filter(|rate| **rate > 0.0).map(|rate| rate.ln()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// What tells a visit from others of its run.
fn number_of(visit: &VisitRecord) -> (u32, u32, u32) {
    (visit.order, visit.cell, visit.repeat)
}

fn per_second(n: u64, ns: u64) -> Option<f64> {
    (ns > 0).then(|| n as f64 * 1e9 / ns as f64)
}

impl Told {
    fn add(
        &mut self,
        op: &OpRecord,
        told: &Reported,
        visit: &VisitRecord,
        plan: Option<&StreamPlan>,
    ) {
        let rate = rate_of(op, visit, plan);
        self.iops.push((visit.order, rate.requests));
        self.bytes.push((visit.order, rate.bytes));
        self.no_requests |= told.requests.is_none();
        self.no_bytes |= told.bytes.is_none();
        let weight = told.requests.map(|n| n as f64).or(rate.requests);
        self.latency.push((weight, told.latency.clone()));
    }

    /// A value of each; `None` if one does not have it.
    fn all<T>(&self, value: impl Fn(&ReportedLatency) -> Option<T>) -> Option<Vec<T>> {
        self.latency.iter().map(|(_, latency)| value(latency)).collect()
    }

    fn mean(&self) -> Option<f64> {
        let means = self.all(|latency| latency.mean)?;
        if let [only] = means.as_slice() {
            return Some(*only);
        }
        let weights: Vec<f64> =
            self.latency.iter().map(|(weight, _)| *weight).collect::<Option<_>>()?;
        let total: f64 = weights.iter().sum();
        let sum: f64 = weights.iter().zip(&means).map(|(weight, mean)| weight * mean).sum();
        (total > 0.0).then(|| sum / total)
    }

    fn quantile(&self, q: f64) -> Option<u64> {
        let [(_, only)] = self.latency.as_slice() else { return None };
        if let Some((_, value)) = only.quantiles.iter().find(|(share, _)| (share - q).abs() < 1e-9)
        {
            return Some(*value);
        }
        let count = total(only.buckets.iter().map(|(_, n)| *n));
        // Nearest rank, as for our own.
        let rank = ((count as f64 * q).ceil() as u64).max(1);
        if count.checked_sub(rank)? < ABOVE_MIN {
            return None;
        }
        let mut seen = 0u64;
        let found = only.buckets.iter().find(|(_, n)| {
            seen = seen.saturating_add(*n);
            seen >= rank
        });
        found.map(|(value, _)| *value)
    }
}

/// A sum that stays at the top instead of wrapping: counters from a damaged store must not panic.
pub fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// A number of a record that is 0 in imported runs where it is not known.
pub fn known<T: Default + PartialEq>(run: &Run, number: T) -> Option<T> {
    (run.header.imported.is_none() || number != T::default()).then_some(number)
}

pub use explain::view::is_data;

/// Whether an operation makes earlier ones durable and nothing else.
pub fn is_sync(op: &str) -> bool {
    matches!(op, "fsync" | "fdatasync" | "sync-range")
}

/// A run with what was found in it.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// All of it.
    pub run: &'a Run,
    /// Intervals and verdicts.
    pub findings: Findings,
    /// Reasons to look twice.
    pub marks: Vec<Mark>,
}

impl<'a> Judged<'a> {
    /// Looks at a run.
    pub fn new(run: &'a Run) -> Self {
        let view = View::new(run);
        let findings = Findings::of(&view);
        let marks = findings.marks(&view);
        Self { run, findings, marks }
    }

    /// The interval of a stream's rate.
    pub fn interval(&self, stream: &StreamOfCell<'_>) -> Option<&CellInterval> {
        let index = stream.cell.index;
        if stream.cell.streams.len() < 2 {
            let position = self.run.cells.iter().position(|cell| cell.index == index)?;
            return self.findings.intervals.get(position)?.as_ref();
        }
        let found = self.findings.streams.iter();
        let mut found = found.filter(|s| s.cell == index && s.position as usize == stream.position);
        found.next()?.interval.as_ref()
    }

    /// Reasons to look twice at a stream, or at all of its cell.
    pub fn marks_of(&self, stream: &StreamOfCell<'_>) -> impl Iterator<Item = &Mark> {
        let (index, name) = (stream.cell.index, stream.plan.name.as_str());
        let of = move |mark: &&Mark| mark.stream.as_deref().is_none_or(|own| own == name);
        self.marks.iter().filter(move |mark| mark.cell == index).filter(of)
    }
}

/// A cell's stream with its visits: what one element of `cells` and one line of a table is about.
#[derive(Clone)]
pub struct StreamOfCell<'a> {
    /// The cell.
    pub cell: &'a CellRecord,
    /// Which stream of it.
    pub position: usize,
    /// What it asks for.
    pub plan: &'a StreamPlan,
    /// Which of its requests are operations.
    pub counts: Counts,
    /// Every visit of the cell, in the order made.
    pub visits: Vec<&'a VisitRecord>,
}

/// Every cell and stream of a run, in the suite's order.
pub fn streams_of(run: &Run) -> Vec<StreamOfCell<'_>> {
    let mut all = Vec::new();
    let counting = Counting::of(run);
    for cell in &run.cells {
        let visits: Vec<_> = run.visits.iter().filter(|v| v.cell == cell.index).collect();
        for (position, plan) in cell.streams.iter().enumerate() {
            let counts = counting.in_stream(cell, position);
            all.push(StreamOfCell { cell, position, plan, counts, visits: visits.clone() });
        }
    }
    all
}

impl<'a> StreamOfCell<'a> {
    /// The visits that count: those that ended by their stop rule; where there is none, those
    /// that were cut short. Pilots never do.
    pub fn counted(&self) -> Vec<&'a VisitRecord> {
        let whole = |v: &&&VisitRecord| matches!(v.end, VisitEnd::Complete | VisitEnd::Hanging);
        let made = self.visits.iter().filter(|v| v.purpose == Purpose::Measure);
        let found: Vec<_> = made.clone().filter(whole).copied().collect();
        if found.is_empty() { made.copied().collect() } else { found }
    }

    /// What the stream measured in a visit, if it came that far.
    pub fn record(&self, visit: &'a VisitRecord) -> Option<&'a StreamRecord> {
        visit.streams.get(self.position)
    }

    /// Its data operations in the visits that count; all operations where it has no other. An
    /// update or a copy is one, with the bytes of one of its halves.
    pub fn figures(&self) -> Figures {
        let counted = self.counted();
        let records: Vec<_> =
            counted.iter().filter_map(|v| Some((*v, self.record(v)?.ops.as_slice()))).collect();
        self.data(&counted, &records)
    }

    /// The same of one visit.
    pub fn figures_in(&self, visit: &VisitRecord, ops: &[OpRecord]) -> Figures {
        self.data(&[visit], &[(visit, ops)])
    }

    fn data(&self, visits: &[&VisitRecord], records: &[(&VisitRecord, &[OpRecord])]) -> Figures {
        let has_data = records.iter().any(|(_, ops)| ops.iter().any(|op| is_data(&op.op)));
        let mut figures = Figures::over(visits);
        for (visit, ops) in records {
            for op in whole(ops).filter(|op| !has_data || is_data(&op.op)) {
                if self.counts.takes(&op.op) {
                    figures.add(op, visit, Some(self.plan));
                } else if self.counts.has_pairs() {
                    figures.add_half(op);
                }
            }
        }
        figures
    }

    /// The operations that `wanted` takes by name, in the visits that count.
    pub fn figures_of(&self, wanted: impl Fn(&str) -> bool) -> Figures {
        let counted = self.counted();
        let mut figures = Figures::over(&counted);
        for visit in &counted {
            for op in self.record(visit).into_iter().flat_map(|s| &s.ops) {
                if wanted(&op.op) {
                    figures.add(op, visit, Some(self.plan));
                }
            }
        }
        figures
    }

    /// Whether its operations are commits.
    pub fn commits(&self) -> bool {
        self.plan.op == "commit" || self.op_names().contains(&"commit")
    }

    /// Whether its operations are transactions of a database.
    pub fn transacts(&self) -> bool {
        self.plan.op == "transaction"
    }

    /// Names of the operations met, in the order first met.
    pub fn op_names(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for op in self.counted().into_iter().filter_map(|v| self.record(v)).flat_map(|s| &s.ops) {
            if !names.contains(&op.op.as_str()) {
                names.push(&op.op);
            }
        }
        names
    }

    /// Names of those that only make durable what the others did; none where it did nothing else.
    pub fn syncs_beside_data(&self) -> Vec<&'a str> {
        let names = self.op_names();
        let has_data = names.iter().any(|op| is_data(op));
        names.into_iter().filter(|op| has_data && is_sync(op)).collect()
    }

    /// CPU per completed request, of any operation, in the visits that count. `None` when
    /// nothing completed or a worker's CPU is not known.
    pub fn cpu(&self) -> Option<Cpu> {
        cpu(self.counted().into_iter().filter_map(|v| self.record(v)))
    }

    /// Bytes read from and written to the devices right under the target, in the visits that
    /// count. `None` when no such device was watched. All streams of a cell share them.
    pub fn device_bytes(&self) -> Option<(u64, u64)> {
        let counted = self.counted();
        let mut top = counted.iter().flat_map(|v| &v.ledger).filter(|entry| entry.depth == 0);
        let first = top.next()?;
        Some(top.fold((first.read_bytes, first.write_bytes), |(r, w), entry| {
            (r.saturating_add(entry.read_bytes), w.saturating_add(entry.write_bytes))
        }))
    }

    /// Reasons to look twice, as short words for programs: see `docs/formats.md`.
    pub fn marks(&self) -> Vec<String> {
        let mut marks = Vec::new();
        if let Some(why) = &self.cell.impossible {
            return vec![format!("not-possible-here: {why}")];
        }
        if self.counted().is_empty() {
            return vec!["not-measured".to_owned()];
        }
        let counted = self.counted();
        for (end, mark) in [
            (VisitEnd::Interrupted, "interrupted"),
            (VisitEnd::Failed, "failed"),
            (VisitEnd::Hanging, "hanging"),
        ] {
            if counted.iter().any(|v| v.end == end) {
                marks.push(mark.to_owned());
            }
        }
        let all = self.figures_of(|_| true);
        if all.requests == 0 && !all.is_told() && all.errors == 0 && all.short == 0 {
            marks.push("nothing-completed".to_owned());
        }
        if all.errors > 0 {
            marks.push("errors".to_owned());
        }
        if all.short > 0 {
            marks.push("short".to_owned());
        }
        for warning in counted.iter().flat_map(|v| &v.warnings) {
            if warning.stream().is_some_and(|stream| stream != self.plan.name) {
                continue;
            }
            if !marks.contains(&warning.code) {
                marks.push(warning.code.clone());
            }
        }
        marks
    }
}

/// Doubts about a run as a whole. How much of it is not known as well as was asked for is told anew
/// from what is stored, as marks and explanations tell it: a run that was broken off has not said it.
pub fn warnings_of(run: &Run) -> Vec<Warning> {
    const CODE: &str = "not-converged";
    let stored = run.header.warnings.iter().filter(|warning| warning.code != CODE);
    let open = not_converged(&View::new(run)).text().map(|text| Warning::new(CODE, text));
    stored.cloned().chain(open).collect()
}

/// See [`StreamOfCell::cpu`].
pub fn cpu<'a>(records: impl Iterator<Item = &'a StreamRecord>) -> Option<Cpu> {
    let (mut user, mut system, mut requests) = (0u64, 0u64, 0u64);
    for record in records {
        for worker in &record.workers {
            user = user.saturating_add(worker.cpu_user_ns?);
            system = system.saturating_add(worker.cpu_system_ns?);
        }
        requests = requests.saturating_add(total(record.ops.iter().map(|op| op.requests)));
    }
    (requests > 0 && user.saturating_add(system) > 0).then(|| Cpu {
        user: user as f64 / requests as f64,
        system: system as f64 / requests as f64,
    })
}
