//! Visits, rounds and stopping.

use stats::Random;
use stats::interval::{BORROWED_DF, Interval, moderated, plain, pooled_scale, student_quantile};
use stats::memory::{Rows, half_width};
use stats::ramp::mser5;
use stats::within::{SAMPLE, looks, within};
use units::Nanos;

use crate::Bound::{AtLeast, AtMost, Within};
use crate::processes::{Autoregressive, Lasting, Process};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "one-visit",
        about: "a visit ended as soon as its own samples' interval is narrow enough",
        run: one_visit,
    },
    Proof {
        name: "visits-coverage",
        about: "a cell of visits of 2 s, 3 to 10, ended when its interval is within 5 %",
        run: visits_coverage,
    },
    Proof {
        name: "visits-memory",
        about: "one cell visited again and again, on devices whose noise lasts 0.1 to 10 s, drawn at \
                random with its size and its share of white noise; every visit 0.5 s after the last",
        run: memory,
    },
    Proof {
        name: "visits-grid",
        about: "84 cells of unequal noise, each borrowing the grid's usual noise",
        run: grid,
    },
    Proof {
        name: "visits-small-grid",
        about: "how few cells may lend each other their noise",
        run: small_grid,
    },
    Proof {
        name: "visits-order",
        about: "cells under a drift of 10 %: in rounds, and each in one go",
        run: order,
    },
    Proof { name: "ramp", about: "transients that end, and one that does not", run: ramp },
];

const CONFIDENCE: f64 = 0.95;
const VISITS_MIN: usize = 3;
const VISITS_MAX: usize = 10;
/// Samples of a visit of 2 s.
const SAMPLES: usize = 20;
const RHOS: [f64; 5] = [0.0, 0.5, 0.8, 0.9, 0.95];

/// An interval from samples of one visit: mean and half-width, in the samples' unit, and whether
/// it may end the visit.
type Method = fn(&[f64]) -> Option<(f64, f64, bool)>;

fn one_visit(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(10_000, 1000);
    let mut claims = Vec::new();
    let of_red = |method: Method, rho: f64, tight: bool| {
        let (cap, share) = if tight { (10, 0.02) } else { (20, 0.05) };
        one_visit_coverage(lot, Process::Red(rho), method, Nanos::secs(cap), share, runs)
    };
    for (tight, name) in [(true, "to 10 s, +-2 %"), (false, "to 20 s, +-5 %")] {
        for rho in RHOS {
            let seen = of_red(ours, rho, tight);
            let name = format!("one visit {name}, rho {rho}");
            // A correlation over as long as the visit leaves it nothing to say.
            let enough = if tight && rho > 0.8 { 0.3 } else { 0.95 };
            claims.push(Claim::share(
                format!("{name}: truth inside"),
                AtLeast(0.915),
                seen.held,
                seen.given,
            ));
            claims.push(Claim::share(
                format!("{name}: has an interval"),
                AtLeast(enough),
                seen.given,
                runs,
            ));
            if rho >= 0.95 {
                // Showing only what seems settled selects the runs that look quieter than they are.
                let text = format!("{name}, only where settled: truth inside");
                let claim = Claim::share(text, AtLeast(0.915), seen.settled_held, seen.settled);
                claims.push(claim.of_broken());
            }
        }
    }
    let broken: [(&str, Method, f64, f64); 7] = [
        ("naive t", naive, 0.5, 0.80),
        ("naive t", naive, 0.8, 0.80),
        ("10 batches", ten_batches, 0.8, 0.915),
        ("10 batches", ten_batches, 0.95, 0.915),
        ("root n batches", root_batches, 0.8, 0.915),
        ("root n batches", root_batches, 0.95, 0.915),
        ("Geyer's sum", geyer, 0.95, 0.915),
    ];
    for (name, method, rho, bound) in broken {
        let text = format!("{name}, one visit to 10 s, +-2 %, rho {rho}: truth inside");
        let seen = of_red(method, rho, true);
        claims.push(Claim::share(text, AtLeast(bound), seen.held, seen.given).of_broken());
    }
    // What no single visit can see, however careful.
    let blind = [
        ("slow part of 30 %", Process::Mixture),
        ("levels by visit", Process::Shift),
        ("two levels", Process::Regimes),
        ("stalls", Process::Stalls),
    ];
    for (name, process) in blind {
        let seen = one_visit_coverage(lot, process, ours, Nanos::secs(20), 0.05, runs);
        let text = format!("one visit to 20 s, +-5 %, {name}: truth inside");
        claims.push(Claim::share(text, AtLeast(0.915), seen.held, seen.given).of_broken());
    }
    claims
}

/// Of runs of one visit.
#[derive(Clone, Copy, Debug, Default)]
struct OneVisit {
    /// There is an interval at the end.
    given: usize,
    /// And it holds the truth.
    held: usize,
    /// It may end the visit.
    settled: usize,
    /// And it holds the truth.
    settled_held: usize,
}

/// Visits that end when the interval is narrow enough, or at `cap`.
fn one_visit_coverage(
    lot: &Lot,
    process: Process,
    method: Method,
    cap: Nanos,
    share: f64,
    runs: usize,
) -> OneVisit {
    let mut seen = OneVisit::default();
    for run in 0..runs {
        let mut random = lot.random(&[1, run as u64]);
        let samples = process.visit((cap.get() / SAMPLE.get()) as usize, &mut random);
        let mut last = None;
        for look in looks(cap) {
            last = method(&samples[..(look.get() / SAMPLE.get()) as usize]);
            if let Some((mean, half_width, true)) = last
                && half_width <= share * mean
            {
                break;
            }
        }
        let Some((mean, half_width, settled)) = last else { continue };
        let held = (mean - process.truth()).abs() <= half_width;
        seen.given += 1;
        seen.held += usize::from(held);
        seen.settled += usize::from(settled);
        seen.settled_held += usize::from(settled && held);
    }
    seen
}

fn ours(samples: &[f64]) -> Option<(f64, f64, bool)> {
    let found = within(samples, CONFIDENCE)?;
    Some((found.mean, found.half_width, found.is_settled()))
}

fn naive(samples: &[f64]) -> Option<(f64, f64, bool)> {
    batches(samples, samples.len())
}

fn ten_batches(samples: &[f64]) -> Option<(f64, f64, bool)> {
    batches(samples, 10)
}

fn root_batches(samples: &[f64]) -> Option<(f64, f64, bool)> {
    batches(samples, (samples.len() as f64).sqrt() as usize)
}

fn batches(samples: &[f64], n: usize) -> Option<(f64, f64, bool)> {
    let size = samples.len() / n;
    let means: Vec<f64> =
        samples.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64).collect();
    let found = plain(&means, CONFIDENCE)?;
    Some((found.mean, found.half_width, true))
}

/// Effective sample size from Geyer's initial positive sequence.
fn geyer(samples: &[f64]) -> Option<(f64, f64, bool)> {
    let n = samples.len();
    let mean = samples.iter().sum::<f64>() / n as f64;
    let lag = |k: usize| -> f64 {
        (0..n - k).map(|i| (samples[i] - mean) * (samples[i + k] - mean)).sum::<f64>() / n as f64
    };
    let variance = lag(0);
    let mut sum = -variance;
    for pair in 0..n / 2 {
        let both = lag(2 * pair) + lag(2 * pair + 1);
        if both <= 0.0 {
            break;
        }
        sum += 2.0 * both;
    }
    let worth = (n as f64 * variance / sum.max(variance / n as f64)).clamp(2.0, n as f64);
    let t = student_quantile(f64::midpoint(1.0, CONFIDENCE), worth - 1.0)?;
    Some((mean, t * (variance / worth).sqrt(), true))
}

fn visits_coverage(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(10_000, 2000);
    let mut claims = Vec::new();
    let cases = [
        ("rho 0", Process::Red(0.0), 0.915),
        ("rho 0.5", Process::Red(0.5), 0.915),
        ("rho 0.8", Process::Red(0.8), 0.915),
        ("rho 0.95", Process::Red(0.95), 0.915),
        ("slow part of 30 %", Process::Mixture, 0.915),
        ("levels by visit", Process::Shift, 0.915),
        ("two levels", Process::Regimes, 0.80),
    ];
    for (name, process, bound) in cases {
        let counts = cells_alone(lot, process, runs);
        let text = format!("visits, {name}: truth inside");
        claims.push(Claim::share(text, AtLeast(bound), counts.held, runs));
        let text = format!("visits, {name}: seconds measured, mean");
        claims.push(Claim::number(
            text,
            Within(6.0, 12.0),
            counts.visits as f64 * 2.0 / runs as f64,
        ));
    }
    // Why stalls veto an early end, and why their unseen rate is printed.
    let counts = cells_alone(lot, Process::Stalls, runs);
    let text = "visits, stalls, no veto: truth inside";
    claims.push(Claim::share(text, AtLeast(0.915), counts.held, runs).of_broken());
    claims
}

/// How a cell that is alone in its suite is measured.
#[derive(Clone, Copy)]
struct Alone {
    name: &'static str,
    /// Half-width to end at.
    share: f64,
    /// Of 100 ms, in a visit.
    rows: usize,
}

fn memory(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(10_000, 400);
    let mut claims = Vec::new();
    let ways = [
        Alone { name: "+-5 %", share: 0.05, rows: SAMPLES },
        Alone { name: "+-2 %", share: 0.02, rows: SAMPLES },
        Alone { name: "visits of 200 ms", share: 0.05, rows: 2 },
    ];
    for way in ways {
        let [ours, broken] =
            [true, false].map(|widened| of_memory(lot, way, (0.1, 10.0), widened, runs));
        let text = format!("memory of 0.1 to 10 s, {}: truth inside", way.name);
        claims.push(Claim::share(text, AtLeast(0.93), ours.held, runs));
        let text = format!("memory of 0.1 to 10 s, {}: visits, mean", way.name);
        claims.push(Claim::number(text, AtMost(9.8), ours.visits_mean()));
        let text = format!("memory of 0.1 to 10 s, {}, plain t: truth inside", way.name);
        claims.push(Claim::share(text, AtLeast(0.93), broken.held, runs).of_broken());
        let long = of_memory(lot, way, (3.0, 10.0), true, runs);
        let text = format!("memory of 3 to 10 s, {}: truth inside", way.name);
        claims.push(Claim::share(text, AtLeast(0.93), long.held, runs));
    }
    let white = of_memory(lot, ways[0], (0.001, 0.002), true, runs);
    let text = "no memory, +-5 %: visits, mean";
    claims.push(Claim::number(text, AtMost(4.8), white.visits_mean()));
    claims
}

/// Cells alone on devices drawn at random: memory (evenly in its logarithm, within these bounds),
/// scatter of 100 ms (2 to 10 %), and the share of it that is white.
fn of_memory(
    lot: &Lot,
    way: Alone,
    (least, most): (f64, f64),
    widened: bool,
    runs: usize,
) -> Counts {
    const PAUSE: f64 = 0.5;
    let mut counts = Counts::default();
    for run in 0..runs {
        let mut random = lot.random(&[6, run as u64]);
        let seconds = least * (most / least).powf(random.unit());
        let (white, scatter) = (0.9 * random.unit(), 0.02 * 5f64.powf(random.unit()));
        let mut noise = Lasting::new(seconds, &mut random);
        let (mut values, mut visits, mut now) = (Vec::new(), Vec::new(), 0.0);
        let interval = |values: &[f64], visits: &[Rows]| {
            let least = half_width(visits, CONFIDENCE).filter(|_| widened);
            Some(plain(values, CONFIDENCE)?.no_narrower(least))
        };
        while values.len() < VISITS_MAX {
            let mut row = || {
                let own = white.sqrt() * random.normal();
                1.0 + scatter * ((1.0 - white).sqrt() * noise.mean(0.1, &mut random) + own)
            };
            let rates: Vec<f64> = (0..way.rows).map(|_| row()).collect();
            values.push((rates.iter().sum::<f64>() / rates.len() as f64).ln());
            visits.push(Rows::new(now, 0.1, &rates));
            now += 0.1 * way.rows as f64 + PAUSE;
            noise.pass(PAUSE, &mut random);
            let found = interval(&values, &visits).filter(|_| values.len() >= VISITS_MIN);
            if found.is_some_and(|found| found.is_within(way.share)) {
                break;
            }
        }
        counts.add(interval(&values, &visits), 0.0, VISITS_MAX);
    }
    counts
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    cells: usize,
    visits: usize,
    held: usize,
    early: usize,
    early_held: usize,
}

/// Cells on their own with plain t.
fn cells_alone(lot: &Lot, process: Process, runs: usize) -> Counts {
    let truth = process.truth().ln();
    let mut counts = Counts::default();
    for run in 0..runs {
        let mut random = lot.random(&[2, run as u64]);
        let mut values = Vec::new();
        while values.len() < VISITS_MAX {
            let samples = process.visit(SAMPLES, &mut random);
            values.push((samples.iter().sum::<f64>() / SAMPLES as f64).ln());
            if values.len() >= VISITS_MIN
                && plain(&values, CONFIDENCE).is_some_and(|found| found.is_within(0.05))
            {
                break;
            }
        }
        counts.add(plain(&values, CONFIDENCE), truth, VISITS_MAX);
    }
    counts
}

impl Counts {
    fn visits_mean(&self) -> f64 {
        self.visits as f64 / self.cells as f64
    }

    fn add(&mut self, interval: Option<Interval>, truth: f64, visits_max: usize) {
        let Some(found) = interval else { return };
        let held = (found.mean - truth).abs() <= found.half_width;
        let early = found.visits < visits_max;
        self.cells += 1;
        self.visits += found.visits;
        self.held += usize::from(held);
        self.early += usize::from(early);
        self.early_held += usize::from(early && held);
    }
}

/// How a grid's intervals are made.
type GridMethod = fn(&[Vec<f64>]) -> Vec<Option<Interval>>;

/// A grid to simulate.
#[derive(Clone, Copy)]
struct Grid {
    cells: usize,
    /// Scatter of a visit's ln rate in the median cell.
    scatter: f64,
    /// Scatter, over cells, of the logarithm of that.
    unequal: f64,
    /// Half-width to end a cell at.
    share: f64,
    visits_max: usize,
}

const GRID: Grid =
    Grid { cells: 84, scatter: 0.03, unequal: 0.5, share: 0.05, visits_max: VISITS_MAX };

fn grid(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(400, 40);
    let mut claims = Vec::new();
    for (unequal, most) in [(0.0, 3.5), (0.5, 4.0), (1.0, 4.8)] {
        let counts = rounds(lot, Grid { unequal, ..GRID }, pooled, runs);
        let name = format!("84 cells, noise unequal by {unequal}, +-5 %");
        claims.extend(coverage(&name, counts, 0.93));
        let text = format!("{name}: visits, mean");
        claims.push(Claim::number(text, AtMost(most), counts.visits_mean()));
        let counts = rounds(lot, Grid { unequal, ..GRID }, each_alone, runs);
        let text = format!("{name}, plain t: visits, mean");
        claims.push(Claim::number(text, AtMost(most), counts.visits_mean()).of_broken());
    }
    // A width that few cells reach before the cap: luck decides who ends early.
    for (unequal, bound) in [(0.0, 0.90), (0.5, 0.93), (1.0, 0.93)] {
        let hard = Grid { unequal, share: 0.02, ..GRID };
        let name = format!("84 cells, noise unequal by {unequal}, +-2 %");
        claims.extend(coverage(&name, rounds(lot, hard, pooled, runs), bound));
        let counts = rounds(lot, hard, each_alone, runs);
        let text = format!("{name}, plain t: truth inside, of cells ended early");
        let claim = Claim::share(text, AtLeast(0.93), counts.early_held, counts.early);
        claims.push(claim.of_broken());
    }
    let quiet = Grid { scatter: 0.01, unequal: 0.0, share: 0.02, visits_max: 5, ..GRID };
    let counts = rounds(lot, quiet, pooled, runs);
    let text = "84 cells, white noise of 1 %, +-2 %: ended within 4 visits";
    claims.push(Claim::share(text, AtLeast(0.98), counts.early, counts.cells));
    claims
}

fn small_grid(lot: &Lot) -> Vec<Claim> {
    let mut claims = Vec::new();
    let trials = lot.effort.times(60_000, 5000);
    for cells in [2, 3, 4, 6, 12] {
        for unequal in [0.0, 0.5, 1.0] {
            let grid = Grid { cells, unequal, ..GRID };
            let name = format!("{cells} cells, noise unequal by {unequal}, +-5 %");
            claims.extend(coverage(&name, rounds(lot, grid, pooled, trials / cells), 0.93));
        }
    }
    let three = Grid { cells: 3, unequal: 1.0, ..GRID };
    let counts = rounds(lot, three, borrowed, trials / 3);
    let text = "3 cells lend four degrees of freedom: truth inside, of cells ended early";
    let claim = Claim::share(text, AtLeast(0.93), counts.early_held, counts.early);
    claims.push(claim.of_broken());
    claims
}

/// Claims of how often intervals hold the truth: all, and of cells ended early.
fn coverage(name: &str, counts: Counts, bound: f64) -> [Claim; 2] {
    let all = format!("{name}: truth inside");
    let early = format!("{name}: truth inside, of cells ended early");
    [
        Claim::share(all, AtLeast(0.93), counts.held, counts.cells),
        Claim::share(early, AtLeast(bound), counts.early_held, counts.early),
    ]
}

/// Rounds until every cell is narrow enough or has had its visits.
fn rounds(lot: &Lot, grid: Grid, method: GridMethod, runs: usize) -> Counts {
    let mut counts = Counts::default();
    for run in 0..runs {
        let mut random = lot.random(&[3, run as u64]);
        let scatters: Vec<f64> = (0..grid.cells)
            .map(|_| grid.scatter * (grid.unequal * random.normal()).exp())
            .collect();
        let mut values: Vec<Vec<f64>> = vec![Vec::new(); grid.cells];
        let mut open = vec![true; grid.cells];
        for round in 1..=grid.visits_max {
            for cell in (0..grid.cells).filter(|&cell| open[cell]) {
                values[cell].push(scatters[cell] * random.normal());
            }
            if round >= VISITS_MIN {
                let found = method(&values);
                for (open, found) in open.iter_mut().zip(found) {
                    *open &= !found.is_some_and(|found| found.is_within(grid.share));
                }
            }
        }
        for found in method(&values) {
            counts.add(found, 0.0, grid.visits_max);
        }
    }
    counts
}

fn pooled(cells: &[Vec<f64>]) -> Vec<Option<Interval>> {
    moderated(cells, CONFIDENCE)
}

fn each_alone(cells: &[Vec<f64>]) -> Vec<Option<Interval>> {
    cells.iter().map(|cell| plain(cell, CONFIDENCE)).collect()
}

/// Borrowing as if from a large grid, however few cells there are.
fn borrowed(cells: &[Vec<f64>]) -> Vec<Option<Interval>> {
    let Some(s0) = pooled_scale(cells) else { return vec![None; cells.len()] };
    let lend = |cell: &Vec<f64>| {
        let own = plain(cell, CONFIDENCE)?;
        let df = own.df + BORROWED_DF;
        let variance = (BORROWED_DF * s0 * s0 + own.df * own.variance) / df;
        let t = student_quantile(f64::midpoint(1.0, CONFIDENCE), df)?;
        let half_width = t * (variance / own.visits as f64).sqrt();
        Some(Interval { half_width, variance, df, ..own })
    };
    cells.iter().map(lend).collect()
}

/// A device that loses 10 % from the first visit to the last: does a cell's interval hold the
/// mean over the run?
fn order(lot: &Lot) -> Vec<Claim> {
    const CELLS: usize = 20;
    const VISITS: usize = 3;
    let runs = lot.effort.times(500, 50);
    let (mut in_rounds, mut in_one_go) = (0, 0);
    for run in 0..runs {
        let mut random = lot.random(&[4, run as u64]);
        let last = (CELLS * VISITS - 1) as f64;
        let visit = |at: usize, random: &mut Random| {
            0.10 * (0.5 - at as f64 / last) + 0.01 * random.normal()
        };
        let mut cells = vec![Vec::new(); CELLS];
        for round in 0..VISITS {
            let mut turn: Vec<usize> = (0..CELLS).collect();
            random.shuffle(&mut turn);
            for (position, cell) in turn.into_iter().enumerate() {
                cells[cell].push(visit(round * CELLS + position, &mut random));
            }
        }
        in_rounds += hold_zero(&cells);
        let mut go = |cell: usize| -> Vec<f64> {
            (0..VISITS).map(|repeat| visit(cell * VISITS + repeat, &mut random)).collect()
        };
        in_one_go += hold_zero(&(0..CELLS).map(&mut go).collect::<Vec<_>>());
    }
    let trials = runs * CELLS;
    let text = "drift of 10 %, rounds in random order: mean over the run inside";
    let good = Claim::share(text, AtLeast(0.93), in_rounds, trials);
    let text = "drift of 10 %, each cell in one go: mean over the run inside";
    vec![good, Claim::share(text, AtLeast(0.93), in_one_go, trials).of_broken()]
}

fn hold_zero(cells: &[Vec<f64>]) -> usize {
    let found = moderated(cells, CONFIDENCE).into_iter().flatten();
    found.filter(|interval| interval.mean.abs() <= interval.half_width).count()
}

fn ramp(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(5000, 1000);
    let mut claims = Vec::new();
    for rho in [0.0, 0.5, 0.8] {
        let (before, after, _) = transient(lot, -0.9, 0.5, rho, runs);
        let name = |what: &str| format!("ramp {what}, rho {rho}");
        let text = name("of -90 %, 0.5 s: bias uncut");
        claims.push(Claim::number(text, Within(-0.055, -0.045), before));
        let text = name("of -90 %, 0.5 s: bias cut");
        claims.push(Claim::number(text, Within(-0.005, 0.005), after));
        let (before, after, _) = transient(lot, -0.5, 2.0, rho, runs);
        let text = name("of -50 %, 2 s: bias uncut");
        claims.push(Claim::number(text, Within(-0.105, -0.095), before));
        let text = name("of -50 %, 2 s: bias cut");
        claims.push(Claim::number(text, Within(-0.025, 0.0), after));
        let (_, after, drifts) = transient(lot, 1.0, 6.0, rho, runs);
        let text = name("of +100 %, 6 s: bias cut");
        claims.push(Claim::number(text, Within(0.25, 0.35), after));
        let text = name("of +100 %, 6 s: called drift");
        claims.push(Claim::share(text, AtLeast(0.80), drifts, runs));
        let (_, after, drifts) = transient(lot, 0.0, 1.0, rho, runs);
        let text = name("where there is none: bias cut");
        claims.push(Claim::number(text, Within(-0.002, 0.002), after));
        let text = name("where there is none: called drift");
        claims.push(Claim::share(text, AtMost(0.10), drifts, runs));
    }
    claims
}

/// Mean bias of 10 s without and with the cut, and in how many runs it is called drift. The rate
/// starts off by `size` and nears its level with time constant `seconds`.
fn transient(lot: &Lot, size: f64, seconds: f64, rho: f64, runs: usize) -> (f64, f64, usize) {
    let (mut before, mut after, mut drifts) = (0.0, 0.0, 0);
    let mean = |samples: &[f64]| samples.iter().sum::<f64>() / samples.len() as f64;
    for run in 0..runs {
        let mut random = lot.random(&[5, run as u64]);
        let mut noise = Autoregressive::new(rho, &mut random);
        let level = |i: usize| 1.0 + size * (-(i as f64) / (10.0 * seconds)).exp();
        let samples: Vec<f64> =
            (0..100).map(|i| level(i) * (1.0 + 0.05 * noise.next(&mut random))).collect();
        let Some(found) = mser5(&samples) else { continue };
        before += mean(&samples) - 1.0;
        after += mean(&samples[found.cut..]) - 1.0;
        drifts += usize::from(found.is_drift);
    }
    (before / runs as f64, after / runs as f64, drifts)
}
