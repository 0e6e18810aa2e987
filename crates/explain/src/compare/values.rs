//! Published or typed-in values: repeats of two configurations, without the runs behind them.

use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::{moderated, plain};
use stats::outlier;

use super::judge::{Evidence, Side, judge};
use super::{MarginFrom, Outcome, Terms, margin, words};

/// Two sets of repeats compared.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ValuesComparison {
    /// The reference's values, as given.
    pub reference: Vec<f64>,
    /// The other side's.
    pub other: Vec<f64>,
    /// By all values.
    pub all: Outcome,
    /// Values that are odd among the others of their side.
    pub flagged: Vec<FlaggedValue>,
    /// Without those; null when there are none, or too few are left.
    pub without: Option<Outcome>,
    /// The floor's source, if the margin is that.
    pub floor: Option<String>,
}

/// A value that is odd among the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlaggedValue {
    /// `A` the reference, `B` the other.
    pub side: char,
    /// The value.
    pub value: f64,
}

/// Compares repeats of two configurations that were measured one after the other.
///
/// * `reference`, `other`: rates, of any unit that is alike on both sides; those that are not
///   positive are in no mean.
/// * A value that is odd for its side is not dropped: both answers are given.
///
/// Method: Welch's t on logarithms; oddness by [`outlier::alone`].
pub fn compare_values(reference: &[f64], other: &[f64], terms: &Terms) -> ValuesComparison {
    let (a, b) = (logarithms(reference), logarithms(other));
    // How many repeats a stated floor is of nobody says.
    let margin = margin(terms, (None, 0), None);
    let outcome = |a: &[f64], b: &[f64]| {
        let side = |values: &[f64]| Side::of(values, plain(values, terms.confidence));
        let evidence = Evidence::of_means(&side(a), &side(b));
        judge(&[evidence], &[margin], terms.confidence).pop().unwrap_or_else(Outcome::unknown)
    };
    let (odd_a, odd_b) = (odd(&a), odd(&b));
    let values = |side: char, all: &[f64], odd: &[usize]| {
        let each = odd.iter().filter_map(|&k| all.get(k));
        each.map(|ln| FlaggedValue { side, value: nearest(reference, other, ln.exp()) })
            .collect::<Vec<_>>()
    };
    let mut flagged = values('A', &a, &odd_a);
    flagged.extend(values('B', &b, &odd_b));
    let without = (!flagged.is_empty()).then(|| outcome(&rest(&a, &odd_a), &rest(&b, &odd_b)));
    let from_floor = margin.1 == MarginFrom::Floor;
    ValuesComparison {
        all: outcome(&a, &b),
        reference: reference.to_vec(),
        other: other.to_vec(),
        flagged,
        without,
        floor: terms.floor.as_ref().filter(|_| from_floor).map(|floor| floor.from.clone()),
    }
}

/// The verdict on one comparison measured in blocks.
///
/// * `differences[block]`: `ln(b) - ln(a)`, finite.
pub fn compare_blocks(differences: &[f64], terms: &Terms) -> Outcome {
    compare_grid(&[differences.to_vec()], terms).pop().unwrap_or_else(Outcome::unknown)
}

/// Verdicts on the cells of one phase measured in blocks, `cells[cell][block]` being
/// `ln(b) - ln(a)`: variances moderated across them, Holm's correction over all of them.
pub fn compare_grid(cells: &[Vec<f64>], terms: &Terms) -> Vec<Outcome> {
    let means = moderated(cells, terms.confidence);
    let evidence: Vec<_> =
        cells.iter().zip(means).map(|(d, mean)| Evidence::of_blocks(d.clone(), mean)).collect();
    judge(&evidence, &vec![margin(terms, (None, 0), None); cells.len()], terms.confidence)
}

impl ValuesComparison {
    /// Plain English: the verdict, on what evidence, what to do next.
    pub fn sentences(&self) -> Vec<String> {
        words::values(self)
    }
}

fn logarithms(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|v| v.is_finite() && *v > 0.0).map(f64::ln).collect()
}

fn odd(values: &[f64]) -> Vec<usize> {
    match outlier::alone(values, 0.0) {
        outlier::Verdict::Flagged { indices, .. } => indices,
        _ => Vec::new(),
    }
}

fn rest(values: &[f64], odd: &[usize]) -> Vec<f64> {
    let kept = values.iter().enumerate().filter(|(k, _)| !odd.contains(k));
    kept.map(|(_, value)| *value).collect()
}

/// The value as it was given: logarithm and back loses the last digits.
fn nearest(reference: &[f64], other: &[f64], value: f64) -> f64 {
    let far = |given: &f64| (given - value).abs();
    let all = reference.iter().chain(other).copied();
    all.min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(value)
}
