//! Latency over the size of the working set: where it rises a cache ends.
//!
//! With a cache of `C` bytes uniform random reads over `W` hit with probability `min(1, C / W)`,
//! so their mean latency is `L(W) = t_m - (t_m - t_h) min(1, C / W)`. The fit tries every `C` on
//! a grid and takes the times of a hit and a miss by weighted least squares. It sees through any
//! controller, since it needs nothing but latencies; what it cannot see is a cache that is hardly
//! faster than what lies behind (below some 15 %).
//!
//! Of a cache smaller than every set the latencies are `t_m - k / W`: they tell `k`, the size times
//! what a hit saves, and neither of the two by itself. Then the size has bounds and the time of a
//! hit is not known. So too of a cache into which all sets but the largest fit: what a miss takes
//! is not known.

use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::student_quantile;
use suite::model::{Access, Operation, Pacing};

use super::plan::Plan;
use crate::view::{CellView, View};

/// Fewest sizes that are fitted: three parameters and something to judge them by.
pub const SIZES_MIN: usize = 5;
/// `C` is tried at steps of this ratio.
const STEP: f64 = 1.02;
/// Where no set shows a hit, the fastest must take less than this of the slowest.
const NOTABLE: f64 = 0.97;
/// Only one in a thousand of caches that are smaller than all sets is given a size.
const WITHIN: f64 = 0.9995;
/// What a miss takes is known where all sizes that fit as well agree on it within this ratio.
const MISS_AGREED: f64 = 1.5;
/// The published bound of F for seven sizes. Trying many `C` and demanding that hits be the faster
/// ones, it lets 1.1 % of flat series pass.
pub const F_OF_SEVEN: f64 = 10.6;

/// Cells that differ only in the part of the files that they read at random.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Sweep {
    /// Cells, in the order of their sizes.
    pub cells: Vec<u32>,
    /// Bytes and mean latency (ns) of each.
    pub points: Vec<(u64, f64)>,
    /// What was fitted; `None` where nothing could be.
    pub fit: Option<SweepFit>,
    /// Whether the page cache was in use, so that a cache found may be the machine's memory.
    pub buffered: bool,
}

/// A fitted cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SweepFit {
    /// Whether there is a cache: F above its bound, and where none of the sets shows a hit, the smallest
    /// is faster than the largest by 3 % at least.
    pub found: bool,
    /// Bytes, as they fit best; where `at_most`, no more than a place between the bounds.
    pub cache_bytes: f64,
    /// Sizes that fit as well, at 95 %. Where `at_most`: a smaller cache could not save so much, even
    /// if a hit took no time.
    pub cache_bytes_low: f64,
    /// As above.
    pub cache_bytes_high: f64,
    /// Mean latency of a hit, ns; null where no set was seen to fit into the cache.
    pub hit_ns: Option<f64>,
    /// Mean latency of a miss, ns; null where too few sets are larger than the cache to tell.
    pub miss_ns: Option<f64>,
    /// Mean latency over the smallest set, ns: a hit takes no longer.
    pub fastest_ns: f64,
    /// Mean latency over the largest set, ns: a miss takes no less.
    pub slowest_ns: f64,
    /// How much better than one latency for all sizes.
    pub f: f64,
    /// What F must exceed.
    pub f_min: f64,
    /// No set was seen to fit into the cache.
    pub at_most: bool,
}

/// The bound of F for so many sizes: 2 and `n - 3` degrees of freedom at the level that 10.6 is
/// for seven.
///
/// With 2 degrees above, the tail is `(1 + 2 F / d)^(-d / 2)`: no table is needed. `None` below
/// four sizes.
pub fn f_bound(sizes: usize) -> Option<f64> {
    let d = sizes.checked_sub(3).filter(|&d| d > 0)? as f64;
    let level = (1.0f64 + 2.0 * F_OF_SEVEN / 4.0).powf(-2.0);
    Some(d / 2.0 * (level.powf(-2.0 / d) - 1.0))
}

/// Fits a cache to mean latencies.
///
/// * `points`: bytes addressed and mean latency in ns; any order. Weights are `1 / L^2`: noise is
///   a share of the latency.
/// * `None` below [`SIZES_MIN`] different sizes, or where a value is not above 0.
pub fn fit(points: &[(u64, f64)]) -> Option<SweepFit> {
    let mut points: Vec<Point> =
        points.iter().map(|&(bytes, latency)| Point { bytes: bytes as f64, latency }).collect();
    let odd = |p: &Point| !(p.bytes > 0.0 && p.latency.is_finite() && p.latency > 0.0);
    if points.iter().any(odd) {
        return None;
    }
    points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let distinct = 1 + points.windows(2).filter(|pair| pair[0].bytes < pair[1].bytes).count();
    if points.len() < SIZES_MIN || distinct < SIZES_MIN {
        return None;
    }
    let (first, last) = (*points.first()?, *points.last()?);
    let steps = ((last.bytes / first.bytes).ln() / STEP.ln()).floor().min(5000.0) as i32;
    let tried: Vec<Line> = (0..=steps)
        .filter_map(|step| Line::of(&points, first.bytes * STEP.powi(step)))
        .filter(|line| line.miss > line.hit && line.hit > 0.0)
        .collect();
    let flat = flat_rss(&points);
    let f_min = f_bound(points.len())?;
    let d = (points.len() - 3) as f64;
    let none = SweepFit {
        found: false,
        cache_bytes: 0.0,
        cache_bytes_low: 0.0,
        cache_bytes_high: 0.0,
        hit_ns: None,
        miss_ns: None,
        fastest_ns: first.latency,
        slowest_ns: last.latency,
        f: 0.0,
        f_min,
        at_most: false,
    };
    let Some(best) = tried.iter().min_by(|a, b| a.rss.total_cmp(&b.rss)) else {
        // Latency does not rise with the size, wherever one looks.
        return Some(none);
    };
    // No noise at all would divide by nothing.
    let rss = best.rss.max(1e-12);
    let f = ((flat - rss) / 2.0) / (rss / d);
    let fits_as_well = |line: &Line, t: f64| line.rss <= rss * (1.0 + t * t / d);
    let (t, t_within) = (student_quantile(0.975, d)?, student_quantile(WITHIN, d)?);
    let as_good: Vec<&Line> = tried.iter().filter(|line| fits_as_well(line, t)).collect();
    let (low, high) = range(as_good.iter().map(|line| line.cache));
    // The first of the grid is a cache of the smallest set, and any smaller one fits as that does.
    let smallest = Line::of(&points, first.bytes);
    let at_most = smallest.as_ref().is_none_or(|line| fits_as_well(line, t_within));
    let (miss_low, miss_high) = range(as_good.iter().map(|line| line.miss));
    Some(SweepFit {
        // So little, and no set that shows a hit: any cache would do, of any size.
        found: f > f_min && !(at_most && first.latency > NOTABLE * last.latency),
        cache_bytes: best.cache,
        cache_bytes_low: match smallest.filter(|_| at_most) {
            Some(line) => line.least_cache(&points).min(low),
            None => low / STEP,
        },
        // Between two that were tried nobody looked.
        cache_bytes_high: high * STEP,
        hit_ns: (!at_most).then_some(best.hit),
        miss_ns: (miss_high <= MISS_AGREED * miss_low).then_some(best.miss),
        f,
        at_most,
        ..none
    })
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
}

#[derive(Clone, Copy)]
struct Point {
    bytes: f64,
    latency: f64,
}

impl Point {
    fn weight(&self) -> f64 {
        self.latency.powi(-2)
    }
}

/// The best line for one cache size.
struct Line {
    cache: f64,
    hit: f64,
    miss: f64,
    rss: f64,
    /// Of the difference between the two, ns.
    slope_error: f64,
}

impl Line {
    /// `L = miss - (miss - hit) h`, weighted. `None` where all sizes have one hit rate.
    fn of(points: &[Point], cache: f64) -> Option<Self> {
        let hits = |p: &Point| (cache / p.bytes).min(1.0);
        let total: f64 = points.iter().map(Point::weight).sum();
        let mean = |of: &dyn Fn(&Point) -> f64| {
            points.iter().map(|p| p.weight() * of(p)).sum::<f64>() / total
        };
        let (mean_h, mean_l) = (mean(&hits), mean(&|p| p.latency));
        let spread = mean(&|p| (hits(p) - mean_h).powi(2));
        if spread < 1e-12 {
            return None;
        }
        let slope = mean(&|p| (hits(p) - mean_h) * (p.latency - mean_l)) / spread;
        let at = |h: f64| mean_l + slope * (h - mean_h);
        let rss = total * mean(&|p| (p.latency - at(hits(p))).powi(2));
        let slope_variance = rss / (points.len().saturating_sub(2).max(1) as f64 * total * spread);
        let slope_error = slope_variance.sqrt();
        Some(Self { cache, hit: at(1.0), miss: at(0.0), rss, slope_error })
    }

    /// A cache that saves as much, at 95 %, with hits that take no time at all.
    fn least_cache(&self, points: &[Point]) -> f64 {
        let t = student_quantile(0.975, points.len().saturating_sub(2).max(1) as f64);
        let saved = self.miss - self.hit - t.unwrap_or(f64::INFINITY) * self.slope_error;
        (self.cache * saved / self.miss).max(0.0)
    }
}

fn flat_rss(points: &[Point]) -> f64 {
    let total: f64 = points.iter().map(Point::weight).sum();
    let mean = points.iter().map(|p| p.weight() * p.latency).sum::<f64>() / total;
    points.iter().map(|p| p.weight() * (p.latency - mean).powi(2)).sum()
}

/// Every group of cells that read uniformly, one at a time alike, over regions of different
/// sizes.
pub(super) fn sweeps(view: &View<'_>, plan: &Plan) -> Vec<Sweep> {
    let mut groups: Vec<(suite::model::Stream, Vec<(u64, &CellView<'_>)>)> = Vec::new();
    for cell in view.grid().filter(|cell| !cell.visits.is_empty()) {
        let Some([stream]) = plan.cell(cell.cell).map(|c| c.streams.as_slice()) else { continue };
        let reads = stream.mix.classes.iter().all(|class| class.op == Operation::Read);
        let closed = matches!(stream.pacing, Pacing::Closed { .. });
        if !reads || !closed || stream.access != Access::Uniform {
            continue;
        }
        let size = plan.working_set(cell.cell, &|_| true);
        let mut kind = stream.clone();
        // A stream is called as its phase, and each size may be a phase.
        kind.name.clear();
        kind.region.start = units::Bytes::ZERO;
        kind.region.length = units::Bytes::ZERO;
        match groups.iter_mut().find(|(other, _)| *other == kind) {
            Some((_, cells)) => cells.push((size, cell)),
            None => groups.push((kind, vec![(size, cell)])),
        }
    }
    let found = groups.into_iter().filter_map(|(stream, cells)| sweep(stream.direct, cells));
    let pages = super::has_page_cache(view);
    found.map(|found| Sweep { buffered: found.buffered && pages, ..found }).collect()
}

fn sweep(direct: bool, mut cells: Vec<(u64, &CellView<'_>)>) -> Option<Sweep> {
    cells.sort_by_key(|(size, cell)| (*size, cell.cell.index));
    cells.dedup_by_key(|(size, _)| *size);
    let points: Vec<(u64, f64)> =
        cells.iter().filter_map(|(size, cell)| Some((*size, mean_latency(cell)?))).collect();
    if points.len() < SIZES_MIN {
        return None;
    }
    let granted = |cell: &CellView<'_>| {
        cell.visits.iter().all(|v| v.visit.streams.iter().all(|s| s.backend.direct))
    };
    Some(Sweep {
        cells: cells.iter().map(|(_, cell)| cell.cell.index).collect(),
        fit: fit(&points),
        points,
        buffered: !direct || !cells.iter().all(|(_, cell)| granted(cell)),
    })
}

/// Mean over the visits of the mean latency of their reads, ns.
fn mean_latency(cell: &CellView<'_>) -> Option<f64> {
    let means: Vec<f64> = cell
        .visits
        .iter()
        .flat_map(|v| v.visit.streams.iter().flat_map(|stream| &stream.ops))
        .filter(|op| op.op == "read")
        .filter_map(record::OpRecord::latency_ns_mean)
        .collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}
