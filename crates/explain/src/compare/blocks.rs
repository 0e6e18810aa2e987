//! Differences of blocks without the runs behind them: what the proofs plant.

use stats::interval::moderated;

use super::judge::{Evidence, judge};
use super::{Outcome, Terms, margin};

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
