//! The rate at which a share of late requests reaches its allowance, with an interval.
//!
//! Near the line the logit of the late share is nearly straight in the logarithm of the rate. It is
//! fitted by quasi-likelihood: a visit of `n` requests whose share is `p` has the variance
//! `10 / n + p (1 - p) / 4`. The first part says that late requests come in clumps, the second that
//! visits differ by more than counting, so that no overloaded visit decides alone. The error of the
//! root is the jackknife's (leave out a round, leave out a visit; Efron, *The Jackknife, the
//! Bootstrap and Other Resampling Plans*, 1982): nothing is assumed about what visits of a round have
//! in common.

use crate::interval::student_quantile;

/// Variance of a share times requests.
const CLUMPS: f64 = 10.0;
/// Variance of visits' shares by `p (1 - p)`.
const VISITS: f64 = 0.25;
/// Visits that far from the root, in ln rate, do not count.
const WINDOW: f64 = 0.12;
/// The window becomes wider until so many do.
const VISITS_MIN: usize = 4;
/// The root moves at most so far in a step.
const STEP: f64 = 0.15;
/// Logits beyond say no more.
const LOGIT_MAX: f64 = 30.0;

/// What one visit saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Late {
    /// Natural logarithm of the rate that was offered.
    pub ln_rate: f64,
    /// Requests that were due.
    pub due: f64,
    /// Of those, the late ones.
    pub late: f64,
    /// The round it was made in.
    pub round: u32,
}

/// The logit of the late share as a straight line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// ln of the rate at which the share is the allowance.
    pub root: f64,
    /// Logit of the share by ln rate.
    pub slope: f64,
}

/// The root with its interval, all in ln rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Root {
    /// The curve of all visits.
    pub curve: Curve,
    /// The root, less its bias.
    pub root: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
}

impl Late {
    /// The share that was late.
    pub fn share(&self) -> f64 {
        self.late / self.due.max(1.0)
    }
}

/// The curve through the shares of visits.
///
/// * `allowance`: the share at the root, in `0.0..1.0`.
/// * `start`: where to look first.
pub fn fit(visits: &[Late], allowance: f64, start: Curve) -> Curve {
    fit_without(visits, allowance, start, |_| false)
}

fn fit_without(
    visits: &[Late],
    allowance: f64,
    start: Curve,
    skip: impl Fn(usize) -> bool,
) -> Curve {
    let logit = (allowance / (1.0 - allowance)).ln();
    let kept = visits.iter().enumerate().filter(|(k, _)| !skip(*k));
    let kept: Vec<Late> = kept.map(|(_, visit)| *visit).collect();
    let mut curve = Curve { slope: start.slope.max(1.0), ..start };
    for _ in 0..8 {
        let (at, slope) = line_around(&kept, curve, logit);
        let root = (curve.root + (logit - at) / slope).clamp(curve.root - STEP, curve.root + STEP);
        let moved = (root - curve.root).abs();
        curve = Curve { root, slope };
        if moved < 2e-4 {
            break;
        }
    }
    curve
}

/// Logit at the curve's root, and slope, of the visits around it: Fisher's scoring.
fn line_around(visits: &[Late], curve: Curve, logit: f64) -> (f64, f64) {
    let mut window = WINDOW;
    let near =
        |window: f64| visits.iter().filter(move |v| (v.ln_rate - curve.root).abs() <= window);
    while near(window).count() < VISITS_MIN.min(visits.len()) {
        window *= 1.5;
    }
    let (mut at, mut slope) = (logit, curve.slope);
    for _ in 0..40 {
        let (mut g0, mut g1, mut h00, mut h01, mut h11) = (0.0, 0.0, 1e-9, 0.0, 1e-6);
        for visit in near(window) {
            let d = visit.ln_rate - curve.root;
            let p = expit((at + slope * d).clamp(-LOGIT_MAX, LOGIT_MAX));
            let binomial = p * (1.0 - p);
            let variance = CLUMPS / visit.due.max(1.0) + VISITS * binomial;
            let score = (visit.share() - p) / variance;
            let weight = binomial / variance;
            g0 += score;
            g1 += score * d;
            h00 += weight;
            h01 += weight * d;
            h11 += weight * d * d;
        }
        let det = f64::max(h00 * h11 - h01 * h01, 1e-12);
        let da = ((h11 * g0 - h01 * g1) / det).clamp(-2.0, 2.0);
        let db = ((h00 * g1 - h01 * g0) / det).clamp(-10.0, 10.0);
        at += da;
        // A share that does not rise with the rate has no root; the bounds keep one.
        slope = (slope + db).clamp(3.0, 300.0);
        if da.abs() < 1e-5 && db.abs() < 1e-3 {
            break;
        }
    }
    (at, slope)
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The root with its interval: the wider of the two jackknives, Student's t, with the low end
/// further down by as much as one more visit as bad as the worst would move it.
///
/// * `confidence`: nominal; 0.99 covers 92 to 100 % of planted lines, since visits are few and alike.
/// * `None`: fewer than three rounds near the root.
pub fn root(visits: &[Late], allowance: f64, start: Curve, confidence: f64) -> Option<Root> {
    let curve = fit(visits, allowance, start);
    let is_near = |visit: &Late| (visit.ln_rate - curve.root).abs() <= WINDOW;
    let near: Vec<usize> = (0..visits.len()).filter(|&k| is_near(&visits[k])).collect();
    let mut rounds: Vec<u32> = near.iter().map(|&k| visits[k].round).collect();
    rounds.sort_unstable();
    rounds.dedup();
    let without = |skip: &dyn Fn(usize) -> bool| fit_without(visits, allowance, curve, skip).root;
    let of_rounds = rounds.iter().map(|&round| without(&|k| visits[k].round == round)).collect();
    let of_visits = near.iter().map(|&out| without(&|k| k == out)).collect();
    let by_round = jackknife(curve.root, of_rounds, confidence)?;
    let by_visit = jackknife(curve.root, of_visits, confidence)?;
    let (middle, half) = if by_round.1 >= by_visit.1 { by_round } else { by_visit };
    let expected = |visit: &Late| {
        let logit = (allowance / (1.0 - allowance)).ln();
        expit((logit + curve.slope * (visit.ln_rate - curve.root)).clamp(-LOGIT_MAX, LOGIT_MAX))
    };
    let excess = |&&k: &&usize| visits[k].share() / expected(&visits[k]);
    let worst = near.iter().max_by(|a, b| excess(a).total_cmp(&excess(b)))?;
    let mut more = visits.to_vec();
    more.push(visits[*worst]);
    let lower = (curve.root - fit(&more, allowance, curve).root).max(0.0);
    Some(Root { curve, root: middle, low: middle - half - lower, high: middle + half })
}

/// The root less its bias, and the half-width, from roots that each leave something out.
fn jackknife(root: f64, without: Vec<f64>, confidence: f64) -> Option<(f64, f64)> {
    let n = without.len() as f64;
    if without.len() < 3 {
        return None;
    }
    let mean = without.iter().sum::<f64>() / n;
    let squares = without.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    let half =
        student_quantile(0.5 + confidence / 2.0, n - 1.0)? * ((n - 1.0) / n * squares).sqrt();
    let bias = ((n - 1.0) * (mean - root)).clamp(-half / 2.0, half / 2.0);
    Some((root - bias, half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    /// Visits whose mean share is a curve with the given root and slope; each visit is off by a
    /// log-normal factor.
    fn drawn(truth: Curve, rounds: u32, seed: u64) -> Vec<Late> {
        let mut random = Random::new(seed);
        let mut visit = |round: u32, at: f64| {
            let logit = (0.01_f64 / 0.99).ln() + truth.slope * (at - truth.root);
            let share = expit(logit) * (0.5 * random.normal() - 0.125).exp();
            Late { ln_rate: at, due: 8000.0, late: (8000.0 * share).round().min(8000.0), round }
        };
        let rates = |k: u32| [-0.06, -0.03, 0.0, 0.03, 0.06].map(|by| (k, truth.root + 0.01 + by));
        (0..rounds).flat_map(rates).map(|(round, at)| visit(round, at)).collect()
    }

    #[test]
    fn the_planted_root_is_within_its_interval() {
        let truth = Curve { root: 8.4, slope: 30.0 };
        let start = Curve { root: 8.3, slope: 20.0 };
        let found: Vec<Root> =
            (0..200).filter_map(|seed| root(&drawn(truth, 8, seed), 0.01, start, 0.99)).collect();
        assert_eq!(found.len(), 200);
        let covers = |one: &&Root| (one.low..=one.high).contains(&truth.root);
        let covered = found.iter().filter(covers).count();
        assert!(covered >= 190, "{covered} of 200");
        let width = found.iter().map(|one| one.high - one.low).sum::<f64>() / 200.0;
        assert!((0.01..0.08).contains(&width), "{width}");
    }

    #[test]
    fn one_overloaded_visit_does_not_decide() {
        let truth = Curve { root: 8.4, slope: 30.0 };
        let mut visits = drawn(truth, 8, 5);
        let sound = root(&visits, 0.01, truth, 0.99).unwrap();
        let share = |visit: &mut Late| visit.late = visit.due;
        share(visits.last_mut().unwrap());
        let with = root(&visits, 0.01, truth, 0.99).unwrap();
        assert!((with.low..with.high).contains(&truth.root), "{with:?} {sound:?}");
        assert!((with.root - sound.root).abs() < 0.02, "{with:?} {sound:?}");
    }

    #[test]
    fn two_rounds_are_no_interval() {
        let truth = Curve { root: 8.4, slope: 30.0 };
        assert_eq!(root(&drawn(truth, 2, 1), 0.01, truth, 0.99), None);
        assert_eq!(root(&[], 0.01, truth, 0.99), None);
    }
}
