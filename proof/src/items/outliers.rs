//! Odd repeats.

use stats::Random;
use stats::interval::pooled_scale;
use stats::outlier::{Verdict, alone, in_grid, robust_score};

use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "outliers-alone",
        about: "3 to 14 repeats of one configuration, clean or with values at 42 %",
        run: repeats,
    },
    Proof {
        name: "outliers-grid",
        about: "84 cells of 3 visits, one of them with a value at 42 %",
        run: grid,
    },
    Proof {
        name: "outliers-fsync",
        about: "the five fsync rates of the PostgreSQL disk study",
        run: fsync,
    },
];

/// Scatter of ln rate: the study's, its odd value left out.
const SCATTER: f64 = 0.04;
/// The study's odd value is 42 % of the others' median.
const ODD: f64 = 0.42;
const CELLS: usize = 84;

fn repeats(lot: &Lot) -> Vec<Claim> {
    let sets = lot.effort.times(40_000, 10_000);
    let mut claims = Vec::new();
    for n in (3..=10).chain([12, 14]) {
        let clean = count(lot, sets, n, 0, |values, _| is_flagged(values));
        let text = format!("{n} clean values: a set flagged");
        claims.push(Claim::share(text, AtMost(0.05), clean, sets));
    }
    for n in [3, 5, 10] {
        let textbook = |values: &[f64], _: usize| robust_score(values).is_some_and(|m| m > 3.5);
        let text = format!("{n} clean values, cut 3.5: a set flagged");
        let flagged = count(lot, sets, n, 0, textbook);
        claims.push(Claim::share(text, AtMost(0.05), flagged, sets).of_broken());
    }
    for (n, bad, bound) in [(5, 1, 0.98), (4, 1, 0.85), (7, 2, 0.88)] {
        let found = count(lot, sets, n, bad, are_found);
        let text = format!("{bad} of {n} at 42 %: found");
        claims.push(Claim::share(text, AtLeast(bound), found, sets));
    }
    // Three sigmas cannot be exceeded by ten values or fewer: (n - 1) / sqrt(n) is the limit.
    let three_sigmas = |values: &[f64], _: usize| {
        stats::outlier::grubbs_score(values).is_some_and(|score| score > 3.0)
    };
    let found = count(lot, sets, 10, 1, three_sigmas);
    let text = "1 of 10 at 42 %, 3 sigmas: found";
    claims.push(Claim::share(text, AtLeast(0.05), found, sets).of_broken());
    claims
}

/// In how many sets of `n` values, the first `bad` of them odd, something is so.
fn count(
    lot: &Lot,
    sets: usize,
    n: usize,
    bad: usize,
    is_so: impl Fn(&[f64], usize) -> bool,
) -> usize {
    let set = |set: usize| {
        let mut random = lot.random(&[1, n as u64, bad as u64, set as u64]);
        let odd = |i: usize| if i < bad { ODD.ln() } else { 0.0 };
        let values: Vec<f64> = (0..n).map(|i| odd(i) + SCATTER * random.normal()).collect();
        is_so(&values, bad)
    };
    (0..sets).filter(|&number| set(number)).count()
}

fn is_flagged(values: &[f64]) -> bool {
    matches!(alone(values, 0.0), Verdict::Flagged { .. })
}

/// Whether all the odd ones are among the flagged.
fn are_found(values: &[f64], bad: usize) -> bool {
    match alone(values, 0.0) {
        Verdict::Flagged { indices, .. } => (0..bad).all(|i| indices.contains(&i)),
        Verdict::Clean | Verdict::TooFew => false,
    }
}

fn grid(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(5000, 500);
    let mut claims = Vec::new();
    for (unequal, false_flags) in [(0.0, 0.005), (0.5, 0.035)] {
        let (mut found, mut wrong) = (0, 0);
        for run in 0..runs {
            let mut random = lot.random(&[2, run as u64]);
            let mut cells = clean_grid(unequal, &mut random);
            cells[0][0] += ODD.ln();
            let s0 = pooled_scale(&cells).unwrap_or(f64::NAN);
            found += usize::from(in_grid(&cells[0], s0).contains(&0));
            wrong += cells[1..].iter().filter(|cell| !in_grid(cell, s0).is_empty()).count();
        }
        let name = format!("3 visits, noise of cells unequal by {unequal}");
        let text = format!("{name}: value at 42 % found");
        claims.push(Claim::share(text, AtLeast(0.98), found, runs));
        let text = format!("{name}: other cells flagged");
        claims.push(Claim::share(text, AtMost(false_flags), wrong, runs * (CELLS - 1)));
    }
    claims
}

fn clean_grid(unequal: f64, random: &mut Random) -> Vec<Vec<f64>> {
    let mut cell = || {
        let scatter = SCATTER * (unequal * random.normal()).exp();
        (0..3).map(|_| scatter * random.normal()).collect()
    };
    (0..CELLS).map(|_| cell()).collect()
}

fn fsync(_: &Lot) -> Vec<Claim> {
    let values = [3170.57f64, 7606.69, 8379.83, 7627.63, 7523.14].map(f64::ln);
    let flagged = match alone(&values, 0.0) {
        Verdict::Flagged { indices, strong: true } => indices,
        _ => Vec::new(),
    };
    let exactly = flagged == [0];
    let middle = stats::outlier::median(&values).unwrap_or(f64::NAN);
    let others: Vec<f64> = values.iter().map(|v| (v - middle).abs()).collect();
    let scale = stats::outlier::median(&others).unwrap_or(f64::NAN) / 0.6745;
    let textbook = values.iter().filter(|&&value| (value - middle).abs() > 3.5 * scale).count();
    vec![
        Claim::share("3170.57 alone flagged, strongly", AtLeast(1.0), usize::from(exactly), 1),
        Claim::number("values flagged by cut 3.5", AtMost(1.0), textbook as f64).of_broken(),
    ]
}
