//! What the neighbours of a cell promise: lower bounds from the shape of healthy storage.
//!
//! Along block sizes, everything else equal, in logarithms:
//!
//! 1. requests per second never rise with block size;
//! 2. bytes per second never fall with block size;
//! 3. ln(requests per second) over ln(block size) is concave: a cell is on or above the chord of
//!    any two around it.
//!
//! All three follow from `min(A, W/b, n/(t0 + b/w))`. One neighbour alone may be wrong itself, so
//! the bound is the highest that two of them reach which have no cell in common.

/// Chords reach this many steps to each side.
const CHORD_STEPS: usize = 4;

/// Below this block size single reads get slower again on real arrays, by up to a quarter.
const SMALL: u64 = 4096;

/// A cell's healthy level: mean of ln rate, and the variance of that mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) ln_rate: f64,
    pub(super) variance: f64,
}

/// A lower bound on ln rate, and the variance of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) ln_rate: f64,
    pub(super) variance: f64,
}

/// What a cell's neighbours promise.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    /// By all that holds for this block size.
    pub(super) firm: Option<Bound>,
    /// Below 4 KiB with law 1 too, which healthy storage keeps only by half there.
    pub(super) loose: Option<Bound>,
}

#[derive(Clone, Copy, Debug)]
struct Witness {
    bound: Bound,
    cells: [usize; 2],
}

/// Bounds of cell `at` of a column.
///
/// * `column`: (block size, level if the cell has one), block sizes rising.
pub(super) fn bounds(column: &[(u64, Option<Level>)], at: usize) -> Bounds {
    let Some(&(block, _)) = column.get(at) else { return Bounds::default() };
    let mut firm = chords(column, at);
    let ln_block = (block.max(1) as f64).ln();
    for (index, &(other, level)) in column.iter().enumerate().take(at) {
        if let Some(level) = level {
            let ln_rate = level.ln_rate + (other.max(1) as f64).ln() - ln_block;
            firm.push(witness(ln_rate, level.variance, [index, index]));
        }
    }
    let mut all = firm.clone();
    for (index, &(_, level)) in column.iter().enumerate().skip(at + 1) {
        if let Some(level) = level {
            all.push(witness(level.ln_rate, level.variance, [index, index]));
        }
    }
    if block >= SMALL {
        return Bounds { firm: second(all), loose: None };
    }
    Bounds { firm: second(firm), loose: second(all) }
}

fn witness(ln_rate: f64, variance: f64, cells: [usize; 2]) -> Witness {
    Witness { bound: Bound { ln_rate, variance }, cells }
}

fn chords(column: &[(u64, Option<Level>)], at: usize) -> Vec<Witness> {
    let x = |index: usize| (column[index].0.max(1) as f64).ln();
    let mut chords = Vec::new();
    for below in at.saturating_sub(CHORD_STEPS)..at {
        let Some(low) = column[below].1 else { continue };
        for (above, &(_, level)) in column.iter().enumerate().skip(at + 1).take(CHORD_STEPS) {
            let Some(high) = level else { continue };
            let share = (x(at) - x(below)) / (x(above) - x(below));
            let ln_rate = low.ln_rate + share * (high.ln_rate - low.ln_rate);
            let variance = (1.0 - share).powi(2) * low.variance + share.powi(2) * high.variance;
            chords.push(witness(ln_rate, variance, [below, above]));
        }
    }
    chords
}

/// The highest bound that two witnesses without a common cell both reach.
///
/// Taking the best of those apart from the very best would be simpler, but at a knee the best
/// chord uses up both near neighbours, although two others side by side promise nearly as much.
fn second(mut witnesses: Vec<Witness>) -> Option<Bound> {
    witnesses.retain(|witness| witness.bound.ln_rate.is_finite());
    witnesses.sort_by(|a, b| b.bound.ln_rate.total_cmp(&a.bound.ln_rate));
    let apart = |a: &Witness, b: &Witness| a.cells.iter().all(|cell| !b.cells.contains(cell));
    let seconded = |&(at, lower): &(usize, &Witness)| {
        witnesses.iter().take(at).any(|higher| apart(higher, lower))
    };
    witnesses.iter().enumerate().find(seconded).map(|(_, lower)| lower.bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(rates: &[f64]) -> Vec<(u64, Option<Level>)> {
        let level = |&rate: &f64| (rate > 0.0).then(|| Level { ln_rate: rate.ln(), variance: 0.0 });
        rates.iter().enumerate().map(|(i, rate)| (4096 << i, level(rate))).collect()
    }

    #[test]
    fn one_high_neighbour_promises_nothing() {
        // The middle one is twice as high as it can be: nobody is measured by it alone.
        let column = column(&[100.0, 100.0, 200.0, 100.0, 100.0]);
        let bound = bounds(&column, 1).firm.unwrap();
        assert!((bound.ln_rate.exp() - 100.0).abs() < 1e-9, "{bound:?}");
    }

    #[test]
    fn a_bandwidth_plateau_is_held_from_below_and_above() {
        let column = column(&[800.0, 400.0, 50.0, 100.0, 50.0]);
        let bound = bounds(&column, 2).firm.unwrap();
        assert!((bound.ln_rate.exp() - 200.0).abs() < 1e-6, "{bound:?}");
    }

    #[test]
    fn a_column_of_one_or_two_has_no_second_witness() {
        assert!(bounds(&column(&[5.0]), 0).firm.is_none());
        assert!(bounds(&column(&[5.0, 4.0]), 0).firm.is_none());
        assert!(bounds(&[], 0).firm.is_none());
    }
}
