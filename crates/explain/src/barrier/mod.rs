//! Where the rate ends, which limit binds where, and in which layer the limit sits.

mod across;
mod fit;
mod generator;
mod ladder;
mod queue;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

pub use self::across::{
    CapKind, CapOfRun, Elasticities, Elasticity, Follows, Seat, Verdict, across, elasticities,
};
pub use self::fit::{Fit, Law, NoFit, Point, Ranged, Term, fit};
pub use self::generator::{Generator, generator};
pub use self::ladder::{Gain, Ladder};
use self::queue::copied;
pub use self::queue::{
    BlockQueue, LayerQueue, Place, PlaceShare, QueueCell, QueueVerdict, is_paced, queues,
    where_is_the_queue,
};
use crate::gap::{self, Kind, SweepCell};
use crate::view::View;

/// Above this mean error the law does not describe the grid and nothing is said.
pub const ERROR_MAX: f64 = 0.10;
/// A cell this near to a cap is at it; doubling the load adds less than this at a cap.
const NEAR: f64 = 0.05;
/// Of smaller blocks nobody asks how many in flight help.
const KNEE_BLOCK: u64 = 4096;
/// Cells at a cap that make it reached, and their block sizes: at a single one another limit may be as
/// near, and nothing tells the two apart.
const CELLS_MIN: usize = 3;
const BLOCK_SIZES_MIN: usize = 2;
/// Of what was asked to be in flight, so much has to be.
const IN_FLIGHT_MIN: f64 = 0.7;
/// A fall with more in flight that counts: with visits, and without.
const FALLS: [f64; 2] = [0.05, 0.15];

/// A cap of the law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Cap {
    /// Requests or bytes per second.
    pub rate: Ranged,
    /// Cells within 5 % of it.
    pub cells: u32,
    /// Block sizes of those cells.
    pub block_sizes: u32,
    /// It was reached, not only extrapolated.
    pub reached: bool,
    /// The highest of a cell.
    pub highest: f64,
    /// What that cell makes at least, as far as noise lets tell (97.5 % on this side): a cap that was
    /// not reached is above it.
    pub highest_low: f64,
}

/// What ends a cell's rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BoundCell {
    /// Bytes per request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// The limit that binds.
    pub term: Term,
}

/// A fall of the rate with more in flight.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Retrograde {
    /// Bytes per request.
    pub block_bytes: u64,
    /// Fewer requests in flight.
    pub from: u64,
    /// More.
    pub to: u64,
    /// Rate with more by rate with fewer.
    pub ratio: f64,
}

/// Where the rate of one phase ends.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Barrier {
    /// The phase, and its other axes.
    pub group: String,
    /// `read`, `write`, ...
    pub op: String,
    /// The fitted law; `None` where there is none, or where it does not describe the grid.
    pub fit: Option<Fit>,
    /// Why there is none.
    pub no_fit: Option<NoFit>,
    /// Without a fit: what each block size says by itself.
    pub ladders: Vec<Ladder>,
    /// All requests came one at a time: then nothing but the time of a request limits.
    pub one_at_a_time: Option<OneAtATime>,
    /// All cells had the same number of requests in flight, more than one: whether more would raise the rate
    /// does not show.
    pub one_number: Option<OneNumber>,
    /// The suite sets a rate or pauses in every cell, so no limit shows.
    pub paced: bool,
    /// Without a ladder: what the most in flight add, of block sizes with three numbers in flight whose
    /// visits differ too much to tell.
    pub gains: Vec<Gain>,
    /// Cells that are in none of this: far fewer were in flight than asked for.
    pub few_in_flight: u32,
    /// Mean error of a fit that was withheld for it.
    pub withheld: Option<f64>,
    /// `A`: requests per second.
    pub iops: Option<Cap>,
    /// `W`: bytes per second.
    pub bandwidth: Option<Cap>,
    /// `b* = W/A`: block size from which bandwidth is the limit.
    pub knee_bytes: Option<u64>,
    /// `n* = A t(b)` at the smallest block size from 4 KiB on: requests in flight from which more
    /// do not help.
    pub knee_in_flight: Option<f64>,
    /// One in flight is already at the limits: requests are served one at a time.
    pub serial: bool,
    /// Which limit binds in each cell.
    pub bound: Vec<BoundCell>,
    /// Cells that are in none of this: too few requests for so many in flight.
    pub few_requests: u32,
    /// Where more in flight gives less.
    pub retrograde: Vec<Retrograde>,
    /// Where requests waited.
    pub queue: QueueVerdict,
    /// Whether the load generator itself is the limit.
    pub generator: Generator,
}

/// How long requests take that come one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OneAtATime {
    /// The smallest block size, and the seconds that one takes.
    pub smallest: (u64, f64),
    /// The largest, likewise.
    pub largest: (u64, f64),
}

/// How long requests take where as many are in flight all the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OneNumber {
    /// How many.
    pub in_flight: u64,
    /// The smallest block size, and the seconds that one takes.
    pub smallest: (u64, f64),
    /// The largest, likewise.
    pub largest: (u64, f64),
}

/// The barriers of a run, phase by phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Barriers {
    /// In alphabetical order of the phases.
    pub barriers: Vec<Barrier>,
}

/// A group of cells: name, operation, and its points.
struct Group {
    name: String,
    op: String,
    points: Vec<Point>,
    /// Cells left out, since the start and the end of a visit decide their rates.
    few_requests: u32,
}

/// The barriers of a run.
///
/// * `null_rate`: requests per second of the same grid against a null target on this machine, if
///   that was measured. Without it the generator cannot be ruled out.
pub fn barriers(view: &View<'_>, null_rate: Option<f64>) -> Barriers {
    let seed = view.run.header.seed;
    let mut queues = queues(view);
    let list = groups(view).into_iter().map(|group| {
        let cells = queues.remove(&group.name).unwrap_or_default();
        let (points, few) = in_flight_as_asked(group.points, &cells);
        let mut barrier = of_points(&group.name, &group.op, &points, seed);
        barrier.few_in_flight = few;
        barrier.paced = !cells.is_empty() && cells.iter().all(|cell| cell.paced);
        barrier.few_requests = group.few_requests;
        barrier.queue = where_is_the_queue(&cells);
        barrier.queue.copied = copied(view).filter(|_| barrier.queue.place == Some(Place::Above));
        barrier.generator =
            generator(view, &group.op, barrier.iops.map(|cap| cap.rate.value), null_rate);
        barrier
    });
    Barriers { barriers: list.collect() }
}

/// Without points where far fewer were in flight than asked for: what more of them do, they cannot say.
/// A synchronous engine is like that, and any that waits for each request. How many were left out.
fn in_flight_as_asked(points: Vec<Point>, cells: &[QueueCell]) -> (Vec<Point>, u32) {
    let far = |point: &Point| {
        let is_it = |cell: &&QueueCell| {
            (cell.block_bytes, cell.in_flight) == (point.block_bytes, point.in_flight)
        };
        let cell = cells.iter().find(is_it);
        cell.is_some_and(|cell| !cell.paced && cell.seen < IN_FLIGHT_MIN * cell.in_flight as f64)
    };
    let all = points.len();
    let points: Vec<Point> = points.into_iter().filter(|point| !far(point)).collect();
    let few = u32::try_from(all - points.len()).unwrap_or(u32::MAX);
    (points, few)
}

/// The points of a run, group by group, gaps left out.
fn groups(view: &View<'_>) -> Vec<Group> {
    let (cells, context) = gap::of_view(view);
    let few = gap::few_requests(view);
    let enough: Vec<SweepCell> =
        cells.iter().filter(|cell| !few.contains(&cell.place())).cloned().collect();
    let gaps = gap::sweep(&enough, &context);
    let mut groups: BTreeMap<(String, String), (Vec<Point>, u32)> = BTreeMap::new();
    for cell in &cells {
        let flag = gaps.flagged.iter().find(|flag| {
            flag.group == cell.group
                && flag.block_bytes == cell.block_bytes
                && flag.in_flight == cell.in_flight
                && flag.threads == cell.threads
        });
        let slow: &[u32] = flag.map_or(&[], |flag| &flag.orders);
        if flag.is_some_and(|flag| flag.kind != Kind::Transient) {
            continue;
        }
        let visits = cell.visits.iter().filter(|visit| !slow.contains(&visit.order));
        let ln_rates: Vec<f64> = visits
            .filter(|visit| visit.requests_per_second > 0.0)
            .map(|visit| visit.requests_per_second.ln())
            .collect();
        if !ln_rates.is_empty() {
            let (block_bytes, in_flight) = (cell.block_bytes, cell.in_flight);
            let key = (cell.group.clone(), cell.op.clone());
            let (points, left_out) = groups.entry(key).or_default();
            if few.contains(&cell.place()) {
                *left_out += 1;
            } else {
                points.push(Point { block_bytes, in_flight, ln_rates });
            }
        }
    }
    let group = |((name, op), (points, few_requests))| Group { name, op, points, few_requests };
    groups.into_iter().map(group).collect()
}

/// The barrier that points show, without queues and generator.
fn of_points(group: &str, op: &str, points: &[Point], seed: u64) -> Barrier {
    let mut barrier = Barrier {
        group: group.to_owned(),
        op: op.to_owned(),
        fit: None,
        no_fit: None,
        ladders: Vec::new(),
        one_at_a_time: None,
        one_number: None,
        paced: false,
        gains: Vec::new(),
        few_in_flight: 0,
        withheld: None,
        iops: None,
        bandwidth: None,
        knee_bytes: None,
        knee_in_flight: None,
        serial: false,
        bound: Vec::new(),
        few_requests: 0,
        retrograde: retrograde(points),
        queue: QueueVerdict::default(),
        generator: Generator::Unknown,
    };
    match fit(points, seed) {
        Err(why) => {
            barrier.no_fit = Some(why);
            barrier.ladders = ladder::ladders(points);
            if barrier.ladders.is_empty() {
                barrier.gains = ladder::gains(points);
            }
            barrier.one_at_a_time = ladder::one_at_a_time(points);
            barrier.one_number = ladder::one_number(points);
        }
        Ok(fit) if fit.error_mean > ERROR_MAX => barrier.withheld = Some(fit.error_mean),
        Ok(fit) => {
            let (iops, bandwidth) = caps(points, &fit);
            barrier.iops = Some(iops);
            barrier.bandwidth = Some(bandwidth);
            let waits = |p: &&Point| fit.law.shares(p.block_bytes, p.in_flight)[2] > 0.5;
            if iops.reached && points.iter().any(|p| waits(&p)) {
                let blocks = points.iter().map(|p| p.block_bytes);
                let smallest = blocks.filter(|&block| block >= KNEE_BLOCK).min();
                barrier.knee_in_flight = smallest.map(|block| fit.law.iops * fit.law.alone(block));
            }
            // Of more than one at the limit nobody knows how few would have been enough.
            let alone = points.iter().any(|point| point.in_flight == 1);
            barrier.serial = iops.reached && alone && !points.iter().any(|p| waits(&p));
            if iops.reached && bandwidth.reached {
                barrier.knee_bytes = Some((fit.law.bandwidth / fit.law.iops) as u64);
            }
            barrier.bound = points
                .iter()
                .map(|p| BoundCell {
                    block_bytes: p.block_bytes,
                    in_flight: p.in_flight,
                    term: fit.law.binds(p.block_bytes, p.in_flight),
                })
                .collect();
            barrier.fit = Some(fit);
        }
    }
    barrier
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// `A` and `W`: each is reached if three cells of two block sizes are within 5 % of it, or if doubling
/// what is in flight adds less than 5 % where it is the largest term.
fn caps(points: &[Point], fit: &Fit) -> (Cap, Cap) {
    let near = |ratio: f64| ratio.ln().abs() <= NEAR;
    let down = (-unsure(points)).exp();
    let cap = |at: usize, rate: Ranged, seen: &dyn Fn(&Point) -> f64| {
        let at_it: Vec<u64> = points
            .iter()
            .filter(|point| near(seen(point) / rate.value))
            .map(|point| point.block_bytes)
            .collect();
        let block_sizes = at_it.iter().collect::<BTreeSet<_>>().len();
        let saturates = points.iter().any(|few| {
            points.iter().any(|more| {
                let doublings = (more.in_flight as f64 / few.in_flight.max(1) as f64).log2();
                let shares = fit.law.shares(few.block_bytes, few.in_flight);
                more.block_bytes == few.block_bytes
                    && doublings >= 1.0
                    && shares[at] > 0.5
                    && ((seen(more) / seen(few)).ln() / doublings) < NEAR
            })
        });
        let stands = at_it.len() >= CELLS_MIN && block_sizes >= BLOCK_SIZES_MIN;
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Cap {
            rate,
            cells: count(at_it.len()),
            block_sizes: count(block_sizes),
            reached: stands || saturates,
            highest: points.iter().map(seen).fold(0.0, f64::max),
            highest_low: points.iter().map(|p| seen(p) * down).fold(0.0, f64::max),
        }
    };
    let iops = |point: &Point| mean(&point.ln_rates).exp();
    let bytes = |point: &Point| iops(point) * point.block_bytes as f64;
    (cap(0, fit.iops, &iops), cap(1, fit.bandwidth, &bytes))
}

/// Falls between neighbouring numbers in flight: 5 % and beyond two standard errors where there
/// are visits, 15 % where there are none.
fn retrograde(points: &[Point]) -> Vec<Retrograde> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_by_key(|point| (point.block_bytes, point.in_flight));
    let mut falls = Vec::new();
    for pair in sorted.windows(2) {
        let [few, more] = pair else { continue };
        if few.block_bytes != more.block_bytes || few.in_flight >= more.in_flight {
            continue;
        }
        let change = mean(&more.ln_rates) - mean(&few.ln_rates);
        let clear = match (error(few), error(more)) {
            (Some(a), Some(b)) => change < -FALLS[0] && change < -2.0 * (a + b).sqrt(),
            _ => change < -FALLS[1],
        };
        if clear {
            falls.push(Retrograde {
                block_bytes: few.block_bytes,
                from: few.in_flight,
                to: more.in_flight,
                ratio: change.exp(),
            });
        }
    }
    falls
}

/// So far may the mean of any one of the cells lie above what it is, as ln: the highest of many is the
/// one that chance made high. Where no cell was visited twice nothing tells, and it is what is near.
fn unsure(points: &[Point]) -> f64 {
    let several = || points.iter().map(|p| &p.ln_rates).filter(|own| own.len() > 1);
    let squares = |own: &Vec<f64>| own.iter().map(|x| (x - mean(own)).powi(2)).sum::<f64>();
    let free: usize = several().map(|own| own.len() - 1).sum();
    if free == 0 {
        return NEAR;
    }
    let sigma = (several().map(squares).sum::<f64>() / free as f64).sqrt();
    let fewest = points.iter().map(|p| p.ln_rates.len()).min().unwrap_or(1).max(1);
    let chance = 0.025 / points.len().max(1) as f64;
    let student = stats::interval::student_quantile(1.0 - chance, free as f64);
    student.map_or(NEAR, |student| student * sigma / (fewest as f64).sqrt())
}

/// Squared standard error of the mean; `None` below three visits.
fn error(point: &Point) -> Option<f64> {
    let n = point.ln_rates.len();
    let middle = mean(&point.ln_rates);
    let squares: f64 = point.ln_rates.iter().map(|x| (x - middle).powi(2)).sum();
    (n >= 3).then(|| squares / (n as f64 - 1.0) / n as f64)
}
