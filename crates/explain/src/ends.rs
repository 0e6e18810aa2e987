//! What the start and the end of a visit can make of its rate.
//!
//! At a visit's start and at its end the requests in flight are filling up or running dry, and
//! those are as many as are in flight: of N requests with n in flight the rate can be wrong by
//! about n/N. Of one at a time it is known which way: the request that began in the ramp counts
//! whole, so the rate is too high. Repeating the visit does not help: every visit has the same ends.
//!
//! A stream that pauses by plan is one burst of requests after another: whether the last one began
//! just before or just after the end moves the count by all of it. And whatever is asked for, the
//! next request was due just before or just after the end: one is always in doubt.

use finding::{Code, Finding, Subject};
use record::StreamPlan;
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::{CellView, View, VisitView, is_preparation, rate_of};

/// From this share on it is said.
pub const SHARE_MIN: f64 = 0.05;
/// From this share on it is taken into the interval.
pub const WIDENS_FROM: f64 = 0.01;

/// A cell with few requests for each one in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ends {
    /// Requests in flight, or in a burst between two pauses of the plan.
    pub in_flight: f64,
    /// It is bursts that an end lets in or leaves out.
    pub bursts: bool,
    /// One request, all of such a burst, or as many as come at one time.
    grain: f64,
    /// Requests that were completed in a visit, on average.
    pub requests: f64,
    /// The one by the other: how far the rate may be off, 1 at most.
    pub share: f64,
    /// It can only be too high: one request at a time, the first of a visit begun in its ramp.
    pub too_high: bool,
}

impl Ends {
    /// What was seen, and what helps.
    pub fn evidence(&self) -> String {
        format!(
            "a visit has {:.0} requests {}: its start and end may make the rate {} by up to {:.0} %; \
             longer visits help (--set time=...)",
            self.requests.round(),
            match (self.in_flight.round().max(1.0), self.bursts) {
                (requests, false) => format!("with {requests:.0} in flight"),
                (requests, true) => format!("in bursts of {requests:.0}"),
            },
            if self.too_high { "too high" } else { "wrong" },
            (self.share * 100.0).round()
        )
    }
}

/// Of a row; `None` where its visits are long enough, or nobody knows what was in flight.
pub fn ends(row: &CellView<'_>) -> Option<Ends> {
    of(row, true).filter(|found| found.share >= SHARE_MIN)
}

/// Whether a row has so few requests for those in flight that nothing which looks odd in it is a
/// story of the device. How long its bursts are is another matter: in a burst there are enough.
pub fn is_few(row: &CellView<'_>) -> bool {
    of(row, false).is_some_and(|found| found.share >= SHARE_MIN)
}

/// Rows of a run with few requests for each one in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FewRequests {
    /// As people say them: cells, or streams of cells that have several.
    pub rows: Vec<String>,
    #[serde(skip)]
    subjects: Vec<Subject>,
}

impl FewRequests {
    /// Of a run.
    pub fn of(view: &View<'_>) -> Self {
        let grid = view.rows.iter().filter(|row| !is_preparation(&row.cell.phase));
        let few: Vec<&CellView<'_>> = grid.filter(|row| is_few(row)).collect();
        Self {
            rows: few.iter().map(|row| row.name()).collect(),
            subjects: few.iter().map(|row| row.subject()).collect(),
        }
    }

    /// That they are excluded; `None` where there are none.
    pub fn finding(&self) -> Option<Finding> {
        (!self.rows.is_empty()).then(|| {
            Finding::new(Code::FewRequestsOfCells)
                .on_all(self.subjects.iter().cloned(), 0)
                .with("one", self.rows.len() == 1)
        })
    }
}

/// By which share a row's interval is to be wider for it; `None` where that is next to nothing.
pub fn widens(row: &CellView<'_>) -> Option<f64> {
    of(row, true).map(|found| found.share).filter(|share| *share >= WIDENS_FROM)
}

/// By how much the difference of the logarithms of two rows' rates may be off, beside what their visits
/// differ by. 0 where that is next to nothing.
///
/// What is in flight fills up at the start and runs dry at the end of either row's visits in the same
/// way, if both have the same plan. Of that the ratio holds how much more of it one has, and what is not
/// alike, which is less as the ends are less of a visit. Besides there is what a count cannot show, of
/// either: [`grain_left`]. Of different plans nothing is in common.
///
/// * `deviations`: of the logarithms of visits' rates, where known.
pub fn between(rows: [&CellView<'_>; 2], deviations: [Option<f64>; 2]) -> f64 {
    let [of_a, of_b] = rows.map(offset);
    let apart = of_a.hypot(of_b);
    if apart <= 0.0 || !alike(rows) {
        return apart;
    }
    let share = rows.iter().filter_map(|row| widens(row)).fold(0.0, f64::max);
    let shown = (of_a - of_b).hypot(apart * share);
    let [grain_a, grain_b] = [0, 1].map(|side| grain_left(rows[side], deviations[side]));
    shown.hypot(grain_a.hypot(grain_b)).min(apart)
}

/// Whether the same is asked for of both, after the same ramp.
fn alike([a, b]: [&CellView<'_>; 2]) -> bool {
    let ramp = |row: &CellView<'_>| row.visits.iter().map(|visit| visit.visit.ramp_ns).max();
    a.plans() == b.plans() && ramp(a) == ramp(b)
}

/// By how much the logarithm of a row's rate may be off. 0 where that is next to nothing.
fn offset(row: &CellView<'_>) -> f64 {
    widens(row).map_or(0.0, ln_offset)
}

/// The same of one operation of a row of one stream, of which its visits have so many requests: of
/// flushes there may be fewer than of writes.
pub fn offset_of(row: &CellView<'_>, requests: f64) -> f64 {
    let found = of(row, true).map_or(1.0, |found| found.in_flight);
    let share = (found / requests).min(1.0);
    if share >= WIDENS_FROM { ln_offset(share) } else { 0.0 }
}

/// By how much the logarithm of a row's rate may be off by one request, one burst, or as many as come at
/// one time: the least that ends do.
pub fn grain(row: &CellView<'_>) -> f64 {
    let found = of(row, true);
    found.map_or(0.0, |found| ln_offset((found.grain / found.requests).min(1.0)))
}

/// What of it repeating the visit does not show.
///
/// A count is what came of it before the end: rounded, by up to one. Where the moment of the last one
/// moves from visit to visit by a good part of the time between two, rounding comes out even over visits,
/// and shows in what they differ by. Where each visit is as the one before, all of it stays. Between: the
/// first harmonic of a rounded number under Gaussian noise, `exp(-2 (pi s)^2)`, s in units of one.
pub fn grain_left(row: &CellView<'_>, deviation: Option<f64>) -> f64 {
    let grain = grain(row);
    let moves = deviation.filter(|_| grain > 0.0).map_or(0.0, |deviation| deviation / grain);
    grain * (-2.0 * (std::f64::consts::PI * moves).powi(2)).exp()
}

/// Whether a single request or burst more or less would be a good part of a row's rate.
pub fn is_of_one(row: &CellView<'_>) -> bool {
    grain(row) >= OF_ONE_MIN
}

/// A rate that one more or less changes by two fifths says nothing in a mean over rows.
const OF_ONE_MIN: f64 = 0.5;

/// What the ends of visits may do to a mean over rows, each of which one request or one burst may move
/// by so much ([`grain_left`]).
///
/// What is in flight comes to an end in each row in another way, and shows in how rounds differ; what of
/// it is alike in all is alike on both sides, too. What does not show is what a count cannot: less than
/// one, up or down, as likely as not. The mean of them is a bound; where they are many, two standard
/// deviations of such a mean are less.
pub fn of_mean(grains: impl Iterator<Item = f64>) -> f64 {
    let grains: Vec<f64> = grains.collect();
    let squares: f64 = grains.iter().map(|grain| grain * grain).sum();
    let sum: f64 = grains.iter().sum();
    sum.min(2.0 * (squares / 3.0).sqrt()) / grains.len().max(1) as f64
}

/// Further than this nobody can tell: one request, which came or did not.
const OFFSET_MAX: f64 = 3.0;

fn ln_offset(share: f64) -> f64 {
    (-(-share).ln_1p()).min(OFFSET_MAX)
}

/// * `by_bursts`: whether a stream that pauses counts by its bursts.
fn of(row: &CellView<'_>, by_bursts: bool) -> Option<Ends> {
    let counted: Vec<&VisitView<'_>> = row
        .visits
        .iter()
        .filter(|visit| visit.requests_per_second > 0.0 && visit.visit.rated_ns() > 0)
        .collect();
    if counted.is_empty() {
        return None;
    }
    let mean = |of: &dyn Fn(&VisitView<'_>) -> f64| {
        counted.iter().map(|visit| of(visit)).sum::<f64>() / counted.len() as f64
    };
    let requests = mean(&|visit| visit.requests_per_second * visit.visit.rated_ns() as f64 / 1e9);
    let seen = mean(&seen);
    let asked = slots(row);
    let mut burst = 0.0;
    for (_, plan, each) in row.plans_with_bursts().filter(|_| by_bursts) {
        burst += each.map_or(0.0, |each| slots_of(plan) * f64::from(each));
    }
    // With pauses or a planned rate far fewer may be in flight than there are slots.
    let in_flight = if asked > 0.0 && seen * 2.0 >= asked { asked } else { seen };
    let bursts = burst > in_flight;
    let in_flight = in_flight.max(burst).max(1.0);
    let grain = mean(&at_one_time).clamp(1.0, in_flight).max(burst);
    let share = (in_flight / requests).min(1.0);
    let ramped = row.visits.iter().all(|visit| visit.visit.ramp_ns > 0);
    let too_high = asked == 1.0 && ramped && !bursts;
    share.is_finite().then_some(Ends { in_flight, bursts, grain, requests, share, too_high })
}

/// Requests that a row may have in flight; 0 where its plan does not say.
pub(crate) fn slots(row: &CellView<'_>) -> f64 {
    row.plans().iter().map(slots_of).sum()
}

fn slots_of(plan: &StreamPlan) -> f64 {
    f64::from(plan.threads) * f64::from(plan.queue_depth)
}

/// Requests that were completed at one time, to the millisecond, on average.
fn at_one_time(visit: &VisitView<'_>) -> f64 {
    let rated_ns = visit.visit.rated_ns();
    let completions = visit.completions();
    let times = completions.ones(rated_ns.div_ceil(1_000_000));
    visit.requests_per_second * rated_ns as f64 / 1e9 / times.max(1) as f64
}

/// Requests in flight on average: the sum of all latencies by the time in which any was in flight. Those that
/// end after the load are in the sum, so that time goes on to the last of them.
///
/// Of what another tool reported, it is each rate times the mean time; 0 where one of these is missing.
pub(crate) fn seen(visit: &VisitView<'_>) -> f64 {
    if let Some(reported) = reported(visit) {
        return reported;
    }
    let time_ns = visit.visit.elapsed_ns.max(visit.visit.rated_ns());
    latencies_ns(visit) / time_ns as f64
}

/// `None` if this program measured all operations itself.
fn reported(visit: &VisitView<'_>) -> Option<f64> {
    let ops = || visit.streams().iter().flat_map(|stream| &stream.ops);
    ops().any(|op| op.reported.is_some()).then_some(())?;
    let of = |op: &record::OpRecord| {
        let mean_ns = op.reported.as_ref()?.latency.mean?;
        Some(rate_of(op, visit.visit, None).requests? * mean_ns / 1e9)
    };
    Some(ops().map(of).sum::<Option<f64>>().unwrap_or(0.0))
}

/// The sum of all latencies.
pub(crate) fn latencies_ns(visit: &VisitView<'_>) -> f64 {
    let ops = visit.streams().iter().flat_map(|stream| &stream.ops);
    ops.map(|op| op.latency_ns_sum as f64).sum()
}

#[cfg(test)]
mod tests {
    use record::{Bitmap, Gap, Run, TargetKind};
    use stats::LatencyHistogram;
    use units::Nanos;

    use crate::Findings;
    use crate::freeze::tests::{MS, run, visit};
    use crate::view::View;

    /// Six visits of ten seconds with so many requests in flight, of which one stands still for two
    /// seconds and has half the rate.
    fn with_in_flight(in_flight: u32) -> Run {
        let mut visits: Vec<_> = (0..6).map(|order| visit(order, "read", &[])).collect();
        visits[3] = visit(3, "read", &[(2_000, 2_000)]);
        for visit in &mut visits {
            let op = &mut visit.streams[0].ops[0];
            op.requests = if visit.order == 3 { 5_000 } else { 10_000 + u64::from(visit.order) };
            op.latency_ns_sum = u128::from(in_flight) * u128::from(10_000 * MS);
        }
        let mut run = run(TargetKind::File, visits);
        run.cells[0].streams[0].queue_depth = in_flight;
        run
    }

    /// Three visits of 200 ms with forty in flight that take 10 ms each, so few for so many; in the
    /// last the device stands still for so long. One request of each visit takes longer.
    fn standing_still(still_ms: u64, longest_ms: u64) -> Run {
        let short = |order: u32, still_ms: u64| {
            let mut made = visit(order, "read", &[]);
            made.elapsed_ns = (200 + still_ms) * MS;
            made.completions = Bitmap::zeros(200 + still_ms);
            let mut latency = LatencyHistogram::new();
            let mut sum = 0;
            let mut took = |ms: u64, count: u64| {
                (0..count).for_each(|_| latency.record(Nanos::millis(ms)));
                sum += u128::from(ms * MS * count);
            };
            for batch in 1..=20 {
                let held = if batch > 10 { still_ms } else { 0 };
                made.completions.set(batch * 10 + held - 1);
                took(10 + if batch == 11 { still_ms } else { 0 }, 40 - u64::from(batch == 1));
            }
            took(longest_ms, 1);
            let stream = &mut made.streams[0];
            stream.workers[0].gaps = match still_ms {
                0 => vec![],
                ms => vec![Gap { start_ns: 100 * MS, length_ns: ms * MS }],
            };
            let op = &mut stream.ops[0];
            (op.requests, op.latency, op.latency_ns_sum) = (800, latency, sum);
            op.latency_ns_max = (still_ms + 10).max(longest_ms) * MS;
            made
        };
        let mut run = run(TargetKind::File, vec![short(0, 0), short(1, 0), short(2, still_ms)]);
        run.cells[0].streams[0].queue_depth = 40;
        run
    }

    #[test]
    fn a_standstill_far_beyond_all_else_is_told_of_few_requests_too() {
        let codes = |run: &Run| -> Vec<&str> {
            let view = View::new(run);
            let marks = Findings::of(&view).marks(&view).into_iter().filter(|mark| mark.cell == 0);
            marks.map(|mark| mark.code.name()).filter(|code| *code != "cache-unknown").collect()
        };
        let still = standing_still(1_500, 10);
        let found = Findings::of(&View::new(&still));
        assert!(codes(&still).contains(&"few-requests"), "{:?}", codes(&still));
        assert!(codes(&still).contains(&"stalled"), "{:?}", codes(&still));
        assert_eq!(found.freezes.events.len(), 1);
        assert!((1_490 * MS..=1_510 * MS).contains(&found.freezes.events[0].length_ns));
        // Less than a second is no story of few requests, nor is what others took a third of.
        for none in [standing_still(700, 10), standing_still(1_500, 500), standing_still(0, 10)] {
            assert!(Findings::of(&View::new(&none)).freezes.events.is_empty());
            assert!(!codes(&none).contains(&"stalled"), "{:?}", codes(&none));
        }
    }

    #[test]
    fn no_story_is_told_of_few_requests() {
        let enough = with_in_flight(1);
        let found = Findings::of(&View::new(&enough));
        let codes = |run: &Run| -> Vec<&str> {
            let view = View::new(run);
            let marks = Findings::of(&view).marks(&view).into_iter().filter(|mark| mark.cell == 0);
            marks.map(|mark| mark.code.name()).filter(|code| *code != "cache-unknown").collect()
        };
        assert_eq!(codes(&enough), ["stalled", "gap", "outlier"]);
        assert!(found.few_requests.finding().is_none());
        let few = with_in_flight(1_000);
        let found = Findings::of(&View::new(&few));
        assert_eq!(codes(&few), ["few-requests"]);
        assert!(found.freezes.events.is_empty() && found.freezes.few_requests_visits == 6);
        let said = found.few_requests.finding().map(|found| found.text()).unwrap_or_default();
        assert!(said.starts_with("`read` has too few requests per visit"), "{said}");
        let interval = found.intervals[0].as_ref().unwrap();
        assert!(interval.outliers.is_empty() && interval.outlier().is_none());
    }
}
