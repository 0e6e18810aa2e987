//! Percentiles of latency on two sides, each visit with its own: the visit is the unit, since what
//! makes requests late comes in clumps.

use std::collections::BTreeMap;

use finding::Number;
use schemars::JsonSchema;
use serde::Serialize;
use stats::LatencyHistogram;
use stats::interval::plain;

use super::judge::{Evidence, Side, judge};
use super::pairs::Matched;
use super::{Design, Direction, MarginFrom, Outcome, Ratio, Verdict};
use crate::view::{CellView, VisitView};

/// What is compared.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];
/// Values of a visit that must lie above its percentile.
const ABOVE_MIN: u64 = 10;
/// Fewer visits on a side give no interval that says anything.
const VISITS_MIN: usize = 3;
/// A percentile is the middle of its bucket, which is so wide by its place, as a logarithm.
const BUCKET: f64 = 0.0078;

/// A percentile of latency on two sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PercentileRatio {
    /// Which, in per cent: 99.9.
    pub percentile: f64,
    /// The other side's by the reference's: above 1 is slower.
    pub ratio: Ratio,
    /// What may be said of it, over all cells and percentiles together.
    pub verdict: Verdict,
    /// Set if they differ.
    pub direction: Option<Direction>,
}

impl PercentileRatio {
    /// For tables: `x1.34 [1.2, 1.5] slower`.
    pub fn text(&self) -> String {
        let way = match (self.verdict, self.direction) {
            (Verdict::Different, Some(Direction::Faster)) => " faster",
            (Verdict::Different, Some(Direction::Slower)) => " slower",
            _ => "",
        };
        format!("{}{way}", self.ratio.text())
    }
}

/// Percentiles that enough visits of both sides have, pair by pair.
///
/// * `margins`: aligned with the pairs; logarithm and where it is from.
pub(super) fn percentiles(
    matched: &Matched<'_>,
    margins: &[(f64, MarginFrom)],
    confidence: f64,
) -> Vec<Vec<PercentileRatio>> {
    let mut places = Vec::new();
    let mut family = Vec::new();
    for (at, (pair, margin)) in matched.pairs.iter().zip(margins).enumerate() {
        for percentile in PERCENTILES {
            let evidence = evidence(matched.design, [&pair.a, &pair.b], percentile, confidence);
            if let Some(evidence) = evidence {
                places.push((at, percentile));
                family.push((evidence, *margin));
            }
        }
    }
    let (family, margins): (Vec<_>, Vec<_>) = family.into_iter().unzip();
    let mut found = vec![Vec::new(); matched.pairs.len()];
    for ((at, percentile), outcome) in places.into_iter().zip(judge(&family, &margins, confidence))
    {
        let (Some(ratio), Some(place)) = (outcome.ratio, found.get_mut(at)) else { continue };
        let Outcome { verdict, direction, .. } = outcome;
        place.push(PercentileRatio { percentile, ratio: ratio.inverse(), verdict, direction });
    }
    found
}

/// Of requests per second as a percentile allows them, so that more is better as it is for rates.
fn evidence(
    design: Design,
    sides: [&CellView<'_>; 2],
    percentile: f64,
    confidence: f64,
) -> Option<Evidence> {
    let [a, b] = sides.map(|side| speeds(side, percentile));
    if a.len().min(b.len()) < VISITS_MIN {
        return None;
    }
    let evidence = match design {
        Design::Blocks => {
            let both = a.iter().filter_map(|(block, a)| Some(b.get(block)? - a));
            let blocks: Vec<f64> = both.collect();
            let mean = plain(&blocks, confidence);
            Evidence::of_blocks(blocks, mean)
        }
        Design::Apart => {
            let side = |speeds: BTreeMap<u32, f64>| {
                let all: Vec<f64> = speeds.into_values().collect();
                Side::of(&all, plain(&all, confidence))
            };
            Evidence::of_means(&side(a), &side(b))
        }
    };
    Some(evidence.off_by(BUCKET))
}

/// Seconds of a percentile of latency with its 95 % interval, if three visits and more have it.
pub(crate) fn percentile(row: &CellView<'_>, percentile: f64) -> Option<Number> {
    let all: Vec<f64> = speeds(row, percentile).into_values().collect();
    let mean = plain(&all, 0.95).filter(|_| all.len() >= VISITS_MIN)?;
    let seconds = |speed: f64| (-speed).exp() / 1e9;
    let number = Number::seconds(seconds(mean.mean));
    let half = mean.half_width + BUCKET;
    Some(number.within(seconds(mean.mean + half), seconds(mean.mean - half)))
}

/// The logarithm of one by the percentile, of every visit that has it.
fn speeds(side: &CellView<'_>, percentile: f64) -> BTreeMap<u32, f64> {
    let of = |visit: &VisitView<'_>| {
        let mut all = LatencyHistogram::new();
        visit.counted().for_each(|op| all.merge(&op.latency));
        let time = all.quantile_with(percentile / 100.0, ABOVE_MIN)?;
        (time.get() > 0).then(|| -(time.get() as f64).ln())
    };
    side.visits.iter().filter_map(|visit| Some((visit.visit.repeat, of(visit)?))).collect()
}
