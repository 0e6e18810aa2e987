//! What a block size says by itself, where there are too few of them for the law.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

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
}

/// Of every block size with three numbers in flight and more.
pub(super) fn ladders(points: &[Point]) -> Vec<Ladder> {
    let mut blocks: BTreeMap<u64, Vec<&Point>> = BTreeMap::new();
    for point in points.iter().filter(|point| !point.ln_rates.is_empty()) {
        blocks.entry(point.block_bytes).or_default().push(point);
    }
    blocks.into_iter().filter_map(|(block, points)| ladder(block, &points)).collect()
}

fn ladder(block_bytes: u64, points: &[&Point]) -> Option<Ladder> {
    let loads: BTreeSet<u64> = points.iter().map(|point| point.in_flight).collect();
    let most = *loads.last().filter(|_| loads.len() >= LOADS_MIN)?;
    // Cells that their visits do not know well enough tell no five per cent.
    if points.iter().any(|point| error(point).is_none_or(|squared| squared.sqrt() > NEAR / 2.0)) {
        return None;
    }
    let highest = points.iter().map(|p| mean(&p.ln_rates)).fold(f64::MIN, f64::max);
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
    Some(Ladder { block_bytes, most, rate, from: reached.then_some(from) })
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
        assert_eq!(rises[0].from, None);
        assert!(ladders(&[point(1, 1000.0), point(64, 1000.0)]).is_empty());
        let mut vague = [point(1, 1000.0), point(4, 1000.0), point(16, 1000.0)];
        vague[1].ln_rates[0] += 0.5;
        assert!(ladders(&vague).is_empty());
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
