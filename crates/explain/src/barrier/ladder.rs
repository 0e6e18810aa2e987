//! What a block size says by itself, where there are too few of them for the law.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::student_quantile;

use super::fit::{Point, Ranged};
use super::{NEAR, OneAtATime, OneNumber, error, mean};

/// Fewest numbers in flight.
const LOADS_MIN: usize = 3;

/// Whether more in flight still add to the rate, at one block size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ladder {
    /// Bytes per request.
    pub block_bytes: u64,
    /// The most requests in flight.
    pub most: u64,
    /// The highest rate, requests per second.
    pub rate: Ranged,
    /// From so many in flight on it is reached: twice as many and more add less than 5 %. `None` where
    /// it still rises with the most in flight.
    pub from: Option<u64>,
    /// Where it still rises, but next to nothing: what the most add, mostly waiting.
    pub nearly: Option<Gain>,
}

/// What the most in flight add to the next fewer, where that is too uncertain for a [`Ladder`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gain {
    /// Bytes per request.
    pub block_bytes: u64,
    /// Fewer requests in flight.
    pub from: u64,
    /// The most.
    pub to: u64,
    /// Rate with the most by rate with fewer.
    pub ratio: Ranged,
}

/// More in flight help next to nothing, if so many times as many raise the rate by less than the cube root of
/// that.
const NEARLY: f64 = 1.0 / 3.0;

impl Gain {
    /// Whether the rate is nearly as high as it gets, however uncertain the gain is.
    pub fn is_nearly_saturated(&self) -> bool {
        let more = (self.to as f64 / self.from.max(1) as f64).ln();
        self.ratio.high.ln() < NEARLY * more
    }

    /// How many times as long a request takes with the most, by Little's law.
    pub fn slower(&self) -> Ranged {
        let more = self.to as f64 / self.from.max(1) as f64;
        let Ranged { value, low, high } = self.ratio;
        Ranged { value: more / value, low: more / high, high: more / low }
    }
}

/// Of every block size with numbers in flight enough for a ladder, and visits that say how much they differ.
pub(super) fn gains(points: &[Point]) -> Vec<Gain> {
    by_block(points).into_iter().filter_map(|(block, points)| gain(block, &points)).collect()
}

fn gain(block_bytes: u64, points: &[&Point]) -> Option<Gain> {
    let points: BTreeMap<u64, &Point> =
        points.iter().map(|point| (point.in_flight, *point)).collect();
    let mut down = points.values().rev();
    let (most, fewer) = (down.next()?, down.next()?);
    let (middle, half) = difference(most, fewer)?;
    let [value, low, high] = [middle, middle - half, middle + half].map(f64::exp);
    let ratio = Ranged { value, low, high };
    let (from, to) = (fewer.in_flight, most.in_flight);
    (points.len() >= LOADS_MIN).then_some(Gain { block_bytes, from, to, ratio })
}

/// ln of the ratio of two rates, and half of its 95 % interval. Cells of a run are visited in turn, so what
/// disturbs a round disturbs both.
fn difference(one: &Point, other: &Point) -> Option<(f64, f64)> {
    let middle = mean(&one.ln_rates) - mean(&other.ln_rates);
    let n = one.ln_rates.len();
    let (error, free) = if n == other.ln_rates.len() {
        let pairs = one.ln_rates.iter().zip(&other.ln_rates).map(|(a, b)| a - b).collect();
        (error(&Point { ln_rates: pairs, ..*one })?, n as f64 - 1.0)
    } else {
        let least = n.min(other.ln_rates.len());
        (error(one)? + error(other)?, least as f64 - 1.0)
    };
    Some((middle, student_quantile(0.975, free)? * error.sqrt()))
}

fn by_block(points: &[Point]) -> BTreeMap<u64, Vec<&Point>> {
    let mut blocks: BTreeMap<u64, Vec<&Point>> = BTreeMap::new();
    for point in points.iter().filter(|point| !point.ln_rates.is_empty()) {
        blocks.entry(point.block_bytes).or_default().push(point);
    }
    blocks
}

/// Of every block size with three numbers in flight and more.
pub(super) fn ladders(points: &[Point]) -> Vec<Ladder> {
    by_block(points).into_iter().filter_map(|(block, points)| ladder(block, &points)).collect()
}

fn ladder(block_bytes: u64, points: &[&Point]) -> Option<Ladder> {
    let loads: BTreeSet<u64> = points.iter().map(|point| point.in_flight).collect();
    let most = *loads.last().filter(|_| loads.len() >= LOADS_MIN)?;
    let best = points.iter().max_by(|a, b| mean(&a.ln_rates).total_cmp(&mean(&b.ln_rates)))?;
    let highest = mean(&best.ln_rates);
    // Cells that their visits do not know well enough tell no five per cent, unless they are far below.
    let is_told = |point: &&Point| {
        difference(best, point).is_some_and(|(below, half)| half <= NEAR || below - half > NEAR)
    };
    if !points.iter().all(|point| std::ptr::eq(*point, *best) || is_told(point)) {
        return None;
    }
    let top: Vec<&&Point> = points.iter().filter(|p| mean(&p.ln_rates) >= highest - NEAR).collect();
    let from = top.iter().map(|point| point.in_flight).min()?;
    let middles: Vec<f64> = top.iter().map(|point| mean(&point.ln_rates)).collect();
    let middle = mean(&middles);
    // What cells at the top differ by, and what each is not known by, are both in it.
    let half = top
        .iter()
        .zip(&middles)
        .map(|(point, x)| (x - middle).abs() + 2.0 * error(point).unwrap_or(0.0).sqrt())
        .fold(0.0, f64::max);
    let [value, low, high] = [middle, middle - half, middle + half].map(f64::exp);
    let reached = most >= from.saturating_mul(2);
    let rate = Ranged { value, low, high };
    let nearly = gain(block_bytes, points).filter(|gain| !reached && gain.is_nearly_saturated());
    Some(Ladder { block_bytes, most, rate, from: reached.then_some(from), nearly })
}

/// How long a request takes where one alone is in flight throughout.
pub(super) fn one_at_a_time(points: &[Point]) -> Option<OneAtATime> {
    times(points).filter(|(in_flight, _)| *in_flight == 1).map(|(_, times)| times)
}

/// The same where as many are in flight in all cells, but more than one.
pub(super) fn one_number(points: &[Point]) -> Option<OneNumber> {
    let (in_flight, times) = times(points).filter(|(in_flight, _)| *in_flight > 1)?;
    Some(OneNumber { in_flight, smallest: times.smallest, largest: times.largest })
}

/// How many are in flight in all of these, and how long one takes.
fn times(points: &[Point]) -> Option<(u64, OneAtATime)> {
    let in_flight = points.first()?.in_flight;
    if points.iter().any(|point| point.in_flight != in_flight) {
        return None;
    }
    let each = (in_flight as f64).ln();
    let time = |point: &Point| (point.block_bytes, (each - mean(&point.ln_rates)).exp());
    let smallest = points.iter().min_by_key(|point| point.block_bytes).map(time)?;
    let largest = points.iter().max_by_key(|point| point.block_bytes).map(time)?;
    Some((in_flight, OneAtATime { smallest, largest }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(in_flight: u64, rate: f64) -> Point {
        let ln_rates = [-0.004, 0.0, 0.004].map(|off| rate.ln() + off).to_vec();
        Point { block_bytes: 8192, in_flight, ln_rates }
    }

    #[test]
    fn one_block_size_tells_from_how_many_in_flight_on_more_add_nothing() {
        let rates = [(1, 1000.0), (4, 3900.0), (16, 8000.0), (32, 8100.0), (64, 8050.0)];
        let found = ladders(&rates.map(|(n, rate)| point(n, rate)));
        assert_eq!((found.len(), found[0].from), (1, Some(16)), "{found:?}");
        let rate = found[0].rate;
        assert!(rate.low < 8000.0 && 8100.0 < rate.high, "{rate:?}");
        // It still rises, two are no ladder, and what visits do not know tells nothing.
        let rises = ladders(&[point(1, 1000.0), point(4, 3900.0), point(16, 14_000.0)]);
        assert_eq!((rises[0].from, rises[0].nearly), (None, None));
        // Four times as many raise the rate by a quarter: they mostly wait.
        let ends = ladders(&[point(1, 1000.0), point(16, 8000.0), point(64, 10_000.0)]);
        let nearly = ends[0].nearly.unwrap();
        assert_eq!((ends[0].from, nearly.from, nearly.to), (None, 16, 64));
        assert!((nearly.slower().value - 3.2).abs() < 0.01, "{nearly:?}");
        assert!(ladders(&[point(1, 1000.0), point(64, 1000.0)]).is_empty());
        let mut vague = [point(1, 1000.0), point(4, 1000.0), point(16, 1000.0)];
        vague[1].ln_rates[0] += 0.5;
        assert!(ladders(&vague).is_empty());
        // As noisy, but far from each other.
        let noisy = |in_flight: u64, rate: f64, off: [f64; 3]| {
            let ln_rates = off.map(|off| rate.ln() + off).to_vec();
            Point { block_bytes: 8192, in_flight, ln_rates }
        };
        let ways = [[-0.06, 0.0, 0.06], [0.06, -0.06, 0.0], [0.0, 0.06, -0.06]];
        let of = |rates: [f64; 3]| {
            [1, 16, 128]
                .map(|n| noisy(n, rates[n.ilog2() as usize / 3], ways[n.ilog2() as usize / 3]))
        };
        let rises = ladders(&of([20_700.0, 94_000.0, 160_000.0]));
        assert_eq!(rises.first().map(|ladder| ladder.from), Some(None), "{rises:?}");
        let near = of([20_700.0, 94_000.0, 97_000.0]);
        assert!(ladders(&near).is_empty(), "{near:?}");
        let gain = gains(&near)[0];
        assert_eq!((gain.from, gain.to), (16, 128));
        assert!(gain.ratio.low < 1.0 && 1.0 < gain.ratio.high, "{gain:?}");
        assert!(gain.is_nearly_saturated(), "8 times as many give 1.3 times the rate at most");
        let ratio = Ranged { high: 2.1, ..gain.ratio };
        assert!(!Gain { ratio, ..gain }.is_nearly_saturated());
    }

    #[test]
    fn what_disturbs_a_round_disturbs_all_its_cells() {
        let point = |in_flight, rate: f64, own: f64| {
            let round = [-0.7, 0.9, 0.1, -0.3, 0.6];
            let off = [own, -own, 0.0, own, -own];
            let ln_rates = round.iter().zip(off).map(|(a, b)| rate.ln() + a + b).collect();
            Point { block_bytes: 8192, in_flight, ln_rates }
        };
        let found =
            ladders(&[point(1, 400.0, 0.01), point(8, 1900.0, -0.01), point(64, 1920.0, 0.004)]);
        assert_eq!(found.first().map(|ladder| ladder.from), Some(Some(8)), "{found:?}");
    }

    /// Noise of its own and of the round, drawn at random with the number of visits. A gain of the cube root and a
    /// little more may be called next to nothing in one of 40; none at all is seen as such in most.
    #[test]
    fn a_gain_is_seldom_called_next_to_nothing() {
        const RUNS: u32 = 2000;
        let mut random = stats::Random::new(17);
        let mut called = |gain: f64| {
            let is_called = |_: &u32| {
                let (own, shared) = (0.03 + 0.3 * random.unit(), random.unit());
                let visits = 3 + random.below(6);
                let mut point = |in_flight, rate: f64, round: &[f64]| {
                    let off = |shared: &f64| rate.ln() + shared + own * random.normal();
                    Point {
                        block_bytes: 8192,
                        in_flight,
                        ln_rates: round.iter().map(off).collect(),
                    }
                };
                let round: Vec<f64> = (0..visits).map(|k| shared * (k as f64).sin()).collect();
                let most = point(64, 1000.0 * gain, &round);
                let all = [point(1, 300.0, &round), point(8, 1000.0, &round), most];
                gains(&all).first().is_some_and(Gain::is_nearly_saturated)
            };
            f64::from((0..RUNS).filter(is_called).count() as u32) / f64::from(RUNS)
        };
        let (false_ones, true_ones) = (called(2.02), called(1.0));
        assert!(false_ones < 0.05, "{false_ones}");
        assert!(true_ones > 0.75, "{true_ones}");
    }

    #[test]
    fn one_at_a_time_takes_its_time() {
        let found = one_at_a_time(&[point(1, 1000.0)]).unwrap();
        assert!((found.largest.1 - 1e-3).abs() < 1e-9);
        assert_eq!(one_at_a_time(&[point(1, 1000.0), point(2, 2000.0)]), None);
        assert_eq!(
            (one_number(&[point(1, 1000.0)]), one_at_a_time(&[point(8, 1000.0)])),
            (None, None)
        );
        let found = one_number(&[point(8, 1000.0)]).unwrap();
        assert_eq!(found.in_flight, 8);
        assert!((found.smallest.1 - 8e-3).abs() < 1e-9, "{found:?}");
    }
}
