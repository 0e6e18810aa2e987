//! The law of a stack that ends somewhere, fitted to a grid.
//!
//! `X(b, n) = [A^-p + (W/b)^-p + (n / (t0 + b/w))^-p]^(-1/p)`: requests per second with blocks of
//! `b` bytes and `n` in flight. `A` ends the requests, `W` the bytes, and one request alone takes
//! `t0 + b/w` (asymptotic bounds: Menasce, Almeida and Dowdy; `p` rounds their corners).

use schemars::JsonSchema;
use serde::Serialize;
use stats::Random;
use stats::interval::student_quantile;
use stats::random::derive_seed;

/// A residual counts no more than this, so that gaps do not drag the fit.
const RESIDUAL_MAX: f64 = 0.5;
/// Below this block size single reads are slower than the law on real arrays.
const SMALL: u64 = 4096;
/// A term that is this much of the sum binds.
pub(super) const BINDS: f64 = 0.8;
const RESAMPLES: u64 = 24;
/// Sharpness of corners that intervals allow for, beside the fitted one and where the law fits as well;
/// logarithms.
const CORNERS: [f64; 6] = [-0.7, -0.3, -0.1, 0.1, 0.3, 0.7];
/// As well: by the likelihood ratio of 95 %, and where no more than so much of a rate is at stake.
const AS_WELL: f64 = 1.92;
const ERROR_MIN: f64 = 0.001;
/// Standard deviation of normal noise by the mean of its absolute values.
const OF_MEAN: f64 = 1.2533;
/// Standard error of a median by that of a mean.
const OF_MEDIAN: f64 = 1.2533;
/// Of the law.
const PARAMETERS: f64 = 5.0;
/// Step at which a descent ends, and that of one that only says whether a law fits as well.
const FINE: f64 = 2e-4;
const ROUGH: f64 = 4e-3;
/// Fewest points, block sizes and numbers in flight to tell five parameters apart.
const POINTS_MIN: usize = 8;
const BLOCKS_MIN: usize = 3;
const LOADS_MIN: usize = 2;

/// A cell to fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Bytes per request.
    pub block_bytes: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// ln(requests per second), one a visit.
    pub ln_rates: Vec<f64>,
}

/// The fitted law.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Law {
    /// `A`: requests per second end here.
    pub iops: f64,
    /// `W`: bytes per second end here.
    pub bandwidth: f64,
    /// `t0`: fixed part of one request alone, seconds.
    pub latency_seconds: f64,
    /// `w`: bytes per second of one request alone, beside the fixed part.
    pub request_bandwidth: f64,
    /// `p`: how sharp the corners are, 1 to 16.
    pub sharpness: f64,
}

/// What ends the rate of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Term {
    /// `A`.
    Iops,
    /// `W`.
    Bandwidth,
    /// `n / (t0 + b/w)`: the time of a request, so the number in flight.
    Latency,
    /// No single one.
    Mixed,
}

/// A number with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ranged {
    /// The number.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// A fit with its errors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fit {
    /// The law.
    pub law: Law,
    /// Mean of |ln(measured by law)| over the points that counted: 0.01 is 1 %.
    pub error_mean: f64,
    /// The largest of those.
    pub error_max: f64,
    /// How many points counted.
    pub points: u32,
    /// `A` with its interval.
    pub iops: Ranged,
    /// `W` with its interval.
    pub bandwidth: Ranged,
    /// Intervals are from visits drawn again; otherwise, without visits, from how far the points
    /// are from the law.
    pub from_visits: bool,
}

impl Law {
    /// Requests per second by the law.
    pub fn rate(&self, block_bytes: u64, in_flight: u64) -> f64 {
        Logs::of(self).ln_rate(&Spot::of(block_bytes, in_flight)).exp()
    }

    /// Time of one request alone, seconds.
    pub fn alone(&self, block_bytes: u64) -> f64 {
        self.latency_seconds + block_bytes as f64 / self.request_bandwidth
    }

    /// Which term binds there: the one with more than 80 % of the sum.
    pub fn binds(&self, block_bytes: u64, in_flight: u64) -> Term {
        let shares = Logs::of(self).shares(&Spot::of(block_bytes, in_flight));
        let terms = [Term::Iops, Term::Bandwidth, Term::Latency];
        let found = terms.into_iter().zip(shares).find(|&(_, share)| share > BINDS);
        found.map_or(Term::Mixed, |(term, _)| term)
    }

    /// Shares of the sum: `A`, `W`, latency.
    pub(super) fn shares(&self, block_bytes: u64, in_flight: u64) -> [f64; 3] {
        Logs::of(self).shares(&Spot::of(block_bytes, in_flight))
    }
}

/// Parameters in logarithms: `A`, `W`, `t0`, `w`, `p`.
#[derive(Clone, Copy, Debug)]
struct Logs([f64; 5]);

#[derive(Clone, Copy, Debug)]
struct Spot {
    block: f64,
    ln_block: f64,
    ln_load: f64,
}

impl Spot {
    fn of(block_bytes: u64, in_flight: u64) -> Self {
        let block = block_bytes.max(1) as f64;
        Self { block, ln_block: block.ln(), ln_load: (in_flight.max(1) as f64).ln() }
    }
}

impl Logs {
    fn of(law: &Law) -> Self {
        Self([
            law.iops.ln(),
            law.bandwidth.ln(),
            law.latency_seconds.ln(),
            law.request_bandwidth.ln(),
            law.sharpness.ln(),
        ])
    }

    fn law(&self) -> Law {
        let [iops, bandwidth, latency_seconds, request_bandwidth, sharpness] = self.0.map(f64::exp);
        Law { iops, bandwidth, latency_seconds, request_bandwidth, sharpness }
    }

    fn terms(&self, spot: &Spot) -> [f64; 3] {
        let [a, w, t0, per_byte, _] = self.0;
        let alone = (t0.exp() + spot.block * (-per_byte).exp()).ln();
        [a, w - spot.ln_block, spot.ln_load - alone]
    }

    fn ln_rate(&self, spot: &Spot) -> f64 {
        let terms = self.terms(spot);
        let p = self.0[4].exp();
        let least = terms.into_iter().fold(f64::INFINITY, f64::min);
        let sum: f64 = terms.into_iter().map(|term| (-p * (term - least)).exp()).sum();
        least - sum.ln() / p
    }

    fn shares(&self, spot: &Spot) -> [f64; 3] {
        let terms = self.terms(spot);
        let p = self.0[4].exp();
        let least = terms.into_iter().fold(f64::INFINITY, f64::min);
        let parts = terms.map(|term| (-p * (term - least)).exp());
        let sum: f64 = parts.iter().sum();
        parts.map(|part| part / sum)
    }
}

/// Points in the form in which they are compared.
struct Data {
    spots: Vec<Spot>,
    ln_rates: Vec<f64>,
}

impl Data {
    fn loss(&self, logs: &Logs) -> f64 {
        let residual =
            |(spot, ln_rate): (&Spot, &f64)| (ln_rate - logs.ln_rate(spot)).abs().min(RESIDUAL_MAX);
        let sum: f64 = self.spots.iter().zip(&self.ln_rates).map(residual).sum();
        // A weak pull to what the points show at most: where a cap was never near, nothing else
        // keeps it from running away.
        let far = self.bounds();
        let away = |at: usize| (logs.0[at] - far[at]).max(0.0);
        if sum.is_finite() { sum + 1e-4 * (away(0) + away(1)) } else { f64::INFINITY }
    }

    /// Highest ln IOPS and ln bandwidth seen.
    fn bounds(&self) -> [f64; 2] {
        let iops = self.ln_rates.iter().copied().fold(f64::MIN, f64::max);
        let bandwidth = self.spots.iter().zip(&self.ln_rates).map(|(s, x)| s.ln_block + x);
        [iops, bandwidth.fold(f64::MIN, f64::max)]
    }
}

/// Why there is no fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoFit {
    /// Fewer than 8 cells with a value.
    TooFewCells,
    /// Fewer than 3 block sizes.
    TooFewBlockSizes,
    /// One number of requests in flight: a cap cannot be told from the time of a request.
    OneLoad,
}

/// Fits the law.
///
/// * `points`: without gaps. Those below 4 KiB count only where the time of a request does not
///   matter.
/// * `seed`: of the visits drawn again for the intervals.
///
/// Minimises the sum of |ln residual|, each at most 0.5: a coarse grid, then descent along the
/// parameters and pairs of them. A fit of 42 points takes some ms.
pub fn fit(points: &[Point], seed: u64) -> Result<Fit, NoFit> {
    let usable: Vec<&Point> = points
        .iter()
        .filter(|point| point.block_bytes > 0 && mean(&point.ln_rates).is_finite())
        .collect();
    enough(&usable)?;
    let large: Vec<&Point> =
        usable.iter().copied().filter(|point| point.block_bytes >= SMALL).collect();
    let (counted, logs) = if enough(&large).is_err() {
        let data = data(&usable, |point| mean(&point.ln_rates));
        let logs = coarse_then_fine(&data);
        (usable, logs)
    } else {
        let logs = coarse_then_fine(&data(&large, |point| mean(&point.ln_rates)));
        let slow = |point: &Point| {
            logs.shares(&Spot::of(point.block_bytes, point.in_flight))[2] >= 1.0 - BINDS
        };
        let counted: Vec<&Point> =
            usable.into_iter().filter(|point| point.block_bytes >= SMALL || !slow(point)).collect();
        let data = data(&counted, |point| mean(&point.ln_rates));
        let logs = descend(&data, logs, 0.1, FINE, &DIRECTIONS);
        (counted, logs)
    };
    Ok(with_errors(&counted, logs, seed))
}

fn enough(points: &[&Point]) -> Result<(), NoFit> {
    let distinct = |of: fn(&Point) -> u64| {
        points.iter().map(|p| of(p)).collect::<std::collections::BTreeSet<_>>().len()
    };
    if distinct(|p| p.in_flight) < LOADS_MIN {
        return Err(NoFit::OneLoad);
    }
    if distinct(|p| p.block_bytes) < BLOCKS_MIN {
        return Err(NoFit::TooFewBlockSizes);
    }
    if points.len() < POINTS_MIN { Err(NoFit::TooFewCells) } else { Ok(()) }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn data(points: &[&Point], value: impl FnMut(&&Point) -> f64) -> Data {
    Data {
        spots: points.iter().map(|p| Spot::of(p.block_bytes, p.in_flight)).collect(),
        ln_rates: points.iter().map(value).collect(),
    }
}

fn coarse_then_fine(data: &Data) -> Logs {
    let [iops, bandwidth] = data.bounds();
    // Of one request alone: the shortest time, and the best bytes per second.
    let times = data.spots.iter().zip(&data.ln_rates).map(|(s, x)| s.ln_load - x);
    let t0 = times.fold(f64::INFINITY, f64::min);
    let alone = data.spots.iter().zip(&data.ln_rates).map(|(s, x)| s.ln_block + x - s.ln_load);
    let per_byte = alone.fold(f64::MIN, f64::max);
    let mut starts = Vec::new();
    for a in [0.0, 0.3] {
        for w in [0.0, 0.3] {
            for t in [-1.0, -0.3, 0.0] {
                for b in [0.0, 0.7, 2.0] {
                    for p in [1.0_f64, 2.0, 5.0] {
                        let logs = [iops + a, bandwidth + w, t0 + t, per_byte + b, p.ln()];
                        starts.push((data.loss(&Logs(logs)), logs));
                    }
                }
            }
        }
    }
    starts.sort_by(|x, y| x.0.total_cmp(&y.0));
    // The best start of each sharpness: they lead into different valleys.
    let mut best: Option<(f64, Logs)> = None;
    for p in [1.0_f64, 2.0, 5.0] {
        let Some(&(_, logs)) = starts.iter().find(|(_, logs)| logs[4] == p.ln()) else { continue };
        let logs = descend(data, Logs(logs), 0.3, ROUGH, &DIRECTIONS);
        let loss = data.loss(&logs);
        if best.is_none_or(|(least, _)| loss < least) {
            best = Some((loss, logs));
        }
    }
    let logs = best.map_or(Logs([iops, bandwidth, t0, per_byte, 0.0]), |(_, logs)| logs);
    descend(data, logs, ROUGH, FINE, &DIRECTIONS)
}

/// Descent along every parameter and every sum and difference of two: the sum of absolute values
/// has edges that no single parameter leads along.
///
/// * `along`: where to.
fn descend(data: &Data, mut logs: Logs, step: f64, finest: f64, along: &[Direction]) -> Logs {
    let mut least = data.loss(&logs);
    let mut step = step;
    while step > finest {
        let mut moved = false;
        for &(first, second, sign) in along {
            for forward in [step, -step] {
                let mut next = logs;
                next.0[first] += forward;
                if second != first {
                    next.0[second] += sign * forward;
                }
                next.0[4] = next.0[4].clamp(0.0, 16.0_f64.ln());
                let loss = data.loss(&next);
                if loss < least - 1e-9 {
                    (logs, least, moved) = (next, loss, true);
                }
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    logs
}

/// Two parameters, or one twice, and whether the second moves with the first.
type Direction = (usize, usize, f64);

const DIRECTIONS: [Direction; 15] = [
    (0, 0, 0.0),
    (1, 1, 0.0),
    (2, 2, 0.0),
    (3, 3, 0.0),
    (4, 4, 0.0),
    (0, 4, 1.0),
    (0, 4, -1.0),
    (1, 4, 1.0),
    (1, 4, -1.0),
    (2, 3, 1.0),
    (2, 3, -1.0),
    (2, 4, 1.0),
    (2, 4, -1.0),
    (3, 4, 1.0),
    (3, 4, -1.0),
];

/// Those that leave the corners as they are.
const BESIDE_CORNERS: [Direction; 6] =
    [(0, 0, 0.0), (1, 1, 0.0), (2, 2, 0.0), (3, 3, 0.0), (2, 3, 1.0), (2, 3, -1.0)];

fn with_errors(points: &[&Point], logs: Logs, seed: u64) -> Fit {
    let data_mean = data(points, |point| mean(&point.ln_rates));
    let residuals: Vec<f64> = data_mean
        .spots
        .iter()
        .zip(&data_mean.ln_rates)
        .map(|(spot, x)| (x - logs.ln_rate(spot)).abs())
        .collect();
    let error_mean = mean(&residuals);
    let replicated = points.iter().filter(|point| point.ln_rates.len() >= 2).count();
    let from_visits = replicated * 2 > points.len();
    let [iops, bandwidth] = if from_visits {
        wider(drawn_again(points, logs, seed), by_scatter(points, &logs, error_mean))
    } else {
        by_scatter(points, &logs, error_mean)
    };
    let [iops, bandwidth] = with_corners(&data_mean, logs, [iops, bandwidth]);
    Fit {
        law: logs.law(),
        error_mean,
        error_max: residuals.iter().copied().fold(0.0, f64::max),
        points: u32::try_from(points.len()).unwrap_or(u32::MAX),
        iops,
        bandwidth,
        from_visits,
    }
}

/// Intervals of `A` and `W` that hold those of other corners under which the law fits as well, each as wide as
/// that of the fitted one. Where a cap
/// is seen only beside another limit, as in a single block size, how round the corner between them is
/// decides what is taken for it, and no visit tells.
fn with_corners(data: &Data, logs: Logs, found: [Ranged; 2]) -> [Ranged; 2] {
    let points = data.spots.len().max(1) as f64;
    let limit = (data.loss(&logs) * (AS_WELL / points).exp()).max(ERROR_MIN * points);
    let mut wide = found;
    for corner in CORNERS {
        let mut other = logs;
        other.0[4] = (logs.0[4] + corner).clamp(0.0, 16.0_f64.ln());
        let other = descend(data, other, 0.1, ROUGH, &BESIDE_CORNERS);
        if data.loss(&other) > limit {
            continue;
        }
        for ((cap, own), ln) in wide.iter_mut().zip(&found).zip(other.0) {
            let half = (own.high / own.low).ln() / 2.0;
            cap.low = cap.low.min((ln - half).exp());
            cap.high = cap.high.max((ln + half).exp());
        }
    }
    wide
}

/// Intervals of `A` and `W` by fits to visits drawn again.
fn drawn_again(points: &[&Point], logs: Logs, seed: u64) -> [Ranged; 2] {
    let mut random = Random::new(derive_seed(seed, &[0xba]));
    let mut draws: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..RESAMPLES {
        let drawn = data(points, |point| {
            let visits = &point.ln_rates;
            let n = visits.len();
            let pick = |_| visits[random.below(n as u64) as usize];
            let drawn = (0..n).map(pick).sum::<f64>() / n as f64;
            // Draws from n values spread less than new values would, by (n - 1) / n.
            let wider = if n > 1 { (n as f64 / (n as f64 - 1.0)).sqrt() } else { 1.0 };
            mean(visits) + wider * (drawn - mean(visits))
        });
        // A step as wide as the noise would leave each draw where it began.
        let again = descend(&drawn, logs, 0.02, FINE, &DIRECTIONS);
        draws[0].push(again.0[0] - logs.0[0]);
        draws[1].push(again.0[1] - logs.0[1]);
    }
    [0, 1].map(|at| {
        let spread = mean(&draws[at].iter().map(|d| d * d).collect::<Vec<_>>()).sqrt();
        ranged(logs.0[at], 2.0 * spread)
    })
}

/// Of each cap the wider interval: visits drawn again know nothing of how far the law itself is off.
fn wider(one: [Ranged; 2], other: [Ranged; 2]) -> [Ranged; 2] {
    let width = |ranged: &Ranged| (ranged.high / ranged.low).ln();
    [0, 1].map(|at| if width(&one[at]) >= width(&other[at]) { one[at] } else { other[at] })
}

/// Without visits: how far the points are from the law, by the number of points that the cap
/// binds. The law was fitted to these points, so they are nearer to it than new ones would be. The fit makes
/// absolute residuals least, as a median does.
fn by_scatter(points: &[&Point], logs: &Logs, error_mean: f64) -> [Ranged; 2] {
    let n = points.len() as f64;
    let df = (n - PARAMETERS).max(1.0);
    let fitted = (n / df).sqrt();
    let quantile = student_quantile(0.975, df).unwrap_or(2.0);
    [0, 1].map(|at| {
        let binds = |p: &&&Point| logs.shares(&Spot::of(p.block_bytes, p.in_flight))[at] > BINDS;
        let m = points.iter().filter(binds).count().max(1) as f64;
        let scatter = OF_MEAN * error_mean * fitted;
        ranged(logs.0[at], quantile * OF_MEDIAN * scatter / m.sqrt())
    })
}

fn ranged(ln: f64, half_width: f64) -> Ranged {
    Ranged { value: ln.exp(), low: (ln - half_width).exp(), high: (ln + half_width).exp() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const LAW: Law = Law {
        iops: 50_000.0,
        bandwidth: 1e9,
        latency_seconds: 100e-6,
        request_bandwidth: 2e9,
        sharpness: 4.0,
    };

    /// One visit a cell, of nine block sizes and four numbers in flight.
    pub fn planted(law: &Law) -> Vec<Point> {
        let cells = (0..9).flat_map(|step| [1, 4, 16, 64].map(|n| (4096 << step, n)));
        let point = |(block_bytes, in_flight): (u64, u64)| {
            let ln_rates = vec![law.rate(block_bytes, in_flight).ln()];
            Point { block_bytes, in_flight, ln_rates }
        };
        cells.map(point).collect()
    }

    #[test]
    fn a_planted_law_is_found_again() {
        let (law, mut points) = (LAW, planted(&LAW));
        // A gap must not drag it.
        points[10].ln_rates[0] -= 3.0;
        let found = fit(&points, 1).unwrap().law;
        for (seen, wanted) in [
            (found.iops, law.iops),
            (found.bandwidth, law.bandwidth),
            (found.latency_seconds, law.latency_seconds),
        ] {
            assert!((seen / wanted - 1.0).abs() < 0.02, "{found:?}");
        }
        assert_eq!(found.binds(4096, 1), Term::Latency);
        assert_eq!(found.binds(4096, 64), Term::Iops);
        assert_eq!(found.binds(1 << 20, 64), Term::Bandwidth);
    }

    #[test]
    fn a_cap_that_is_seen_beside_another_only_is_as_sure_as_their_corner() {
        // At 4 KiB the bytes end at 3072 requests: how near either cap is nobody sees.
        let law = Law {
            iops: 3_000.0,
            bandwidth: 12.0 * 1024.0 * 1024.0,
            latency_seconds: 900e-6,
            request_bandwidth: 500e6,
            sharpness: 5.0,
        };
        let grid = |blocks: &[u64]| -> Vec<Point> {
            let cells = blocks.iter().flat_map(|&b| [1, 4, 16, 64].map(|n| (b, n)));
            let point = |(block_bytes, in_flight)| {
                let ln = law.rate(block_bytes, in_flight).ln();
                Point { block_bytes, in_flight, ln_rates: vec![ln - 0.001, ln + 0.001] }
            };
            cells.map(point).collect()
        };
        let near = fit(&grid(&[4 << 10, 64 << 10, 256 << 10]), 1).unwrap();
        assert!(near.iops.low <= 3_000.0 && 3_000.0 <= near.iops.high, "{near:?}");
        // Where it is seen by itself it is as sure as visits are.
        let apart = fit(&grid(&[512, 1 << 10, 2 << 10, 4 << 10, 64 << 10]), 1).unwrap();
        let [low, high] = [apart.iops.low, apart.iops.high].map(|end| (end / 3_000.0).ln());
        assert!(low <= 0.001 && high >= -0.001 && high - low < 0.05, "{apart:?}");
    }

    #[test]
    fn the_intervals_of_caps_are_as_wide_as_visits_are_noisy() {
        let held = |seed: u64| {
            let mut random = Random::new(seed);
            let mut points = planted(&LAW);
            for point in &mut points {
                let ln = point.ln_rates[0];
                point.ln_rates = (0..4).map(|_| ln + 0.004 * random.normal()).collect();
            }
            let found = fit(&points, seed).unwrap();
            let holds = |cap: Ranged, truth: f64| cap.low <= truth && truth <= cap.high;
            let width = |cap: Ranged| (cap.high / cap.low).ln();
            assert!(width(found.iops) > 0.0005 && width(found.bandwidth) > 0.0005, "{found:?}");
            assert!(width(found.iops) < 0.02 && width(found.bandwidth) < 0.02, "{found:?}");
            [holds(found.iops, LAW.iops), holds(found.bandwidth, LAW.bandwidth)]
        };
        let held = (0..20).flat_map(held).filter(|holds| *holds).count();
        assert!(held >= 36, "{held} of 40");
    }

    #[test]
    fn odd_points_give_no_fit_or_a_finite_one() {
        let point =
            |block_bytes, in_flight, ln: f64| Point { block_bytes, in_flight, ln_rates: vec![ln] };
        assert_eq!(fit(&[], 1), Err(NoFit::OneLoad));
        let one_load: Vec<Point> = (0..10).map(|i| point(512 << i, 1, 9.0)).collect();
        assert_eq!(fit(&one_load, 1), Err(NoFit::OneLoad));
        let odd: Vec<Point> = (0..40u64)
            .map(|i| {
                let ln = [f64::NAN, 700.0, -700.0, f64::INFINITY, 0.0][i as usize % 5];
                point(u64::MAX >> (i % 20), u64::MAX >> (i % 3), ln)
            })
            .collect();
        assert!(fit(&odd, 1).is_ok_and(|fit| !fit.law.iops.is_nan()));
    }
}
