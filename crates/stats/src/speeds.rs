//! A device that has a second speed for seconds at a time: what a grid knows of it, for each of its cells.
//!
//! Throttling, burst credits, and neighbours on a shared device slow some visits of some cells. A cell whose
//! three visits all fell between agrees with itself, and its interval would be that of one of two
//! speeds. With a second speed of 0.3 to 0.8 for 1 to 10 s, 3 to 40 % of the time, Student's t of three
//! visits holds the truth in 71 to 76 % of cases, and with this variance 94 to 98 % (proof `rounds-speeds`).

use crate::outlier::{MAD_OF_NORMAL, far_in_grid, median};

/// A visit at another speed differs by this share at least.
const SHARE: f64 = 0.02;
/// The other visits of its cell lie as close to their median as this, in the usual scatter of the grid. Cells that are
/// noisier than the rest have odd visits, too, but no quiet ones.
const QUIET: f64 = 3.0;
/// Scatter below which nothing is told apart: of grids without noise, as on a virtual clock.
const SCATTER_MIN: f64 = 0.004;
/// Share of the cells with odd visits that makes a second speed. With 0.02, two noisy cells of 84 were enough:
/// 4.5 visits a cell instead of 3.7 (proof `rounds-grid`).
const CELLS: f64 = 0.03;
/// One in so many of them may be odd in the other direction: a second speed is either slower or faster,
/// and mere noise is as often one as the other.
const OTHER: usize = 4;
/// Cells that are odd all over are no more than so many times these.
const NOISY: usize = 2;

/// The variance that a visit of any cell has at least, in squares of ln rate; `None` if there is no second
/// speed.
///
/// * `cells`: for each cell ln rate by visit.
///
/// Method: the usual scatter is the median distance of a visit from the median of its cell. Not
/// [`crate::interval::pooled_scale`]: the variance of a cell with one odd visit is nearly all that visit's, so in
/// a grid of which half the cells met the second speed nothing would be far from anything.
///
/// A cell speaks for a second speed if some of its visits are far from the others
/// ([`crate::outlier::GRID_SCORE`] scales) and the others agree. If enough cells do, and in one direction, every
/// visit could have met that speed: its variance is then the mean over all cells, not the median that hides it.
pub fn least_variance(cells: &[&[f64]]) -> Option<f64> {
    let all: Vec<Vec<f64>> = cells.iter().map(|cell| finite(cell)).collect();
    let known: Vec<&Vec<f64>> = all.iter().filter(|cell| cell.len() >= 2).collect();
    let usual = usual_scatter(&known)?;
    let shows: Vec<Shows> = known.iter().map(|cell| shows(cell, usual)).collect();
    let count = |what| shows.iter().filter(|&&one| one == what).count();
    let (slower, faster) = (count(Shows::Slower), count(Shows::Faster));
    let (most, fewest) = (slower.max(faster), slower.min(faster));
    let enough = (known.len() as f64 * CELLS).max(1.0);
    let is_one_way = OTHER * fewest <= most && count(Shows::Noise) <= NOISY * most;
    if known.len() < 2 || (most as f64) < enough || !is_one_way {
        return None;
    }
    let squares = |cell: &&Vec<f64>| {
        let mean = cell.iter().sum::<f64>() / cell.len() as f64;
        cell.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let df: usize = known.iter().map(|cell| cell.len() - 1).sum();
    Some(known.iter().map(squares).sum::<f64>() / df as f64)
}

/// Standard deviation of a visit that met nothing odd, as long as most visits did not. `None` if no cell has
/// two visits.
fn usual_scatter(cells: &[&Vec<f64>]) -> Option<f64> {
    let away = cells.iter().flat_map(|cell| {
        let middle = median(cell).unwrap_or(f64::NAN);
        let mut away: Vec<f64> = cell.iter().map(|value| (value - middle).abs()).collect();
        away.sort_by(f64::total_cmp);
        // The median is one of the visits: no distance.
        away.into_iter().skip(1)
    });
    median(&away.collect::<Vec<f64>>()).map(|away| away / MAD_OF_NORMAL)
}

/// What the visits of a cell show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// All are alike.
    One,
    /// Some are slower than the others, which agree.
    Slower,
    /// Some are faster.
    Faster,
    /// They are odd, and the others do not agree either.
    Noise,
}

fn finite(values: &[f64]) -> Vec<f64> {
    values.iter().copied().filter(|value| value.is_finite()).collect()
}

fn shows(cell: &[f64], usual_scatter: f64) -> Shows {
    let odd = far_in_grid(cell, usual_scatter, SHARE);
    if odd.is_empty() {
        return Shows::One;
    }
    let usual = (0..).zip(cell).filter(|(at, _)| !odd.contains(at)).map(|(_, value)| *value);
    let usual: Vec<f64> = usual.collect();
    let Some(middle) = median(&usual) else { return Shows::Noise };
    let far = usual.iter().map(|value| (value - middle).abs()).fold(0.0, f64::max);
    if far > QUIET * usual_scatter.max(SCATTER_MIN) || odd.len() > usual.len() {
        return Shows::Noise;
    }
    let below = odd.iter().filter(|&&at| cell.get(at).is_some_and(|&value| value < middle)).count();
    match (2 * below).cmp(&odd.len()) {
        std::cmp::Ordering::Greater => Shows::Slower,
        std::cmp::Ordering::Less => Shows::Faster,
        std::cmp::Ordering::Equal => Shows::Noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;
    use crate::interval::moderated;

    fn least(cells: &[Vec<f64>]) -> Option<f64> {
        let all: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        least_variance(&all)
    }

    /// Cells of so many visits with so much noise; every `each`-th visit is slower by half.
    fn grid(
        cells: usize,
        visits: usize,
        each: usize,
        noise: impl Fn(usize) -> f64,
    ) -> Vec<Vec<f64>> {
        let mut random = Random::new(4);
        let mut visit = |cell: usize, n: usize| {
            let slow = (visits * cell + n + 1).is_multiple_of(each);
            noise(cell) * random.normal() + if slow { 0.5f64.ln() } else { 0.0 }
        };
        (0..cells).map(|cell| (0..visits).map(|n| visit(cell, n)).collect()).collect()
    }

    #[test]
    fn a_cell_of_one_speed_has_the_width_of_both() {
        let cells = grid(20, 3, 7, |_| 0.01);
        let variance = least(&cells).unwrap();
        // One in seven visits at -0.69: a variance of 0.06.
        assert!((0.04..0.12).contains(&variance), "{variance}");
        let quiet = cells.iter().position(|cell| cell.iter().all(|v| v.abs() < 0.1)).unwrap();
        let found = moderated(&cells, 0.95)[quiet].unwrap();
        assert!(found.mean - found.half_width < -0.1, "{found:?}");
        let alone = moderated(&grid(20, 3, usize::MAX, |_| 0.01), 0.95)[quiet].unwrap();
        assert!(alone.half_width < 0.03, "{alone:?}");
    }

    /// Three of four cells met a speed of 0.7 in two of ten visits: the variance of the usual cell is that of
    /// both speeds, and five times its root is more than the speeds differ by.
    #[test]
    fn a_speed_that_most_cells_met_does_not_hide_itself() {
        let mut cells = grid(4, 10, usize::MAX, |_| 0.02);
        for cell in &mut cells[1..] {
            cell[3] += 0.7f64.ln();
            cell[8] += 0.7f64.ln();
        }
        let variance = least(&cells).unwrap();
        // 15 % of visits at -0.36: a variance of 0.016.
        assert!((0.01..0.03).contains(&variance), "{variance}");
        let found = moderated(&cells, 0.95)[0].unwrap();
        assert!(found.mean - found.half_width < 0.15 * 0.7f64.ln(), "{found:?}");
    }

    #[test]
    fn noise_is_no_second_speed() {
        assert_eq!(least(&grid(84, 3, usize::MAX, |_| 0.02)), None);
        // Some cells are noisier than others.
        let unequal = |cell: usize| if cell.is_multiple_of(6) { 0.2 } else { 0.01 };
        assert_eq!(least(&grid(84, 6, usize::MAX, unequal)), None);
        assert_eq!(least(&[]), None);
        assert_eq!(least(&[vec![1.0, 2.0, 1.0]]), None, "a cell alone");
        assert_eq!(least(&vec![vec![f64::NAN; 3]; 5]), None);
    }

    #[test]
    fn a_grid_without_noise_has_one_too() {
        let mut cells = vec![vec![3.0; 3]; 12];
        assert_eq!(least(&cells), None);
        cells[4][1] = 2.5;
        assert!(least(&cells).is_some_and(|variance| variance > 0.0));
    }
}
