//! Sizes of changes and the levels between them, on devices drawn at random.

use explain::{View, drift};
use record::{Run, VisitRecord};
use stats::Random;

use super::changes::{CELLS, Second, record, visit};
use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "levels-run",
        about: "grids of 8 to 30 cells in 4 to 12 rounds on a device that changes its level once to three times, for \
                10 visits at least, by drawn ratios and with drawn noise: sizes of changes, levels of single cells",
        run: runs,
    },
    Proof {
        name: "levels-drift",
        about: "the same grids on a device whose rate moves evenly from the beginning to the end",
        run: drifts,
    },
];

/// A level told may be so far from one that was, as a ratio: noise of a few visits.
const NEAR: f64 = 1.1;
/// A visit of 2 s begins so much after the one before, ns.
const EVERY_NS: u64 = 3_000_000_000;

/// What a run goes through: (ln of the common level, from which second on), the first from 0.
struct Device {
    levels: Vec<(f64, f64)>,
    /// ln of the common rate by the second.
    slope: f64,
}

impl Device {
    fn at(&self, second: f64) -> f64 {
        let level = self.levels.iter().rev().find(|(_, from)| *from <= second);
        level.map_or(0.0, |(level, _)| *level) + self.slope * second
    }

    /// Mean rate within a second, of 1 without a change.
    fn mean(&self, from: f64) -> f64 {
        (0..20).map(|part| self.at(from + (f64::from(part) + 0.5) / 20.0).exp()).sum::<f64>() / 20.0
    }
}

/// A grid with a noise of its own for each cell.
struct Grid {
    cells: usize,
    rounds: usize,
    base: Vec<f64>,
    noise: Vec<f64>,
    tails: bool,
}

impl Grid {
    fn drawn(random: &mut Random) -> Self {
        let cells = 8 + random.below((CELLS - 7) as u64) as usize;
        let rounds = 4 + random.below(9) as usize;
        let base = (0..cells).map(|_| 8.0 + random.unit() * 3.0).collect();
        let noise = (0..cells).map(|_| 0.005 * 10f64.powf(random.unit())).collect();
        Self { cells, rounds, base, noise, tails: random.below(3) == 0 }
    }

    fn visits(&self) -> usize {
        self.cells * self.rounds
    }

    fn play(&self, device: &Device, random: &mut Random) -> Run {
        let mut visits: Vec<VisitRecord> = Vec::new();
        for round in 0..self.rounds {
            let mut order: Vec<usize> = (0..self.cells).collect();
            random.shuffle(&mut order);
            for cell in order {
                let number = visits.len() as u32;
                let start = f64::from(number) * EVERY_NS as f64 / 1e9;
                let wide = if self.tails && random.below(20) == 0 { 4.0 } else { 1.0 };
                let own = (self.base[cell] + wide * self.noise[cell] * random.normal()).exp();
                let seconds = [0.0, 1.0].map(|at| Second::Rate(own * device.mean(start + at)));
                let mut made = visit(cell as u32, round as u32, number, &seconds);
                made.started_unix_ns = i64::from(number) * EVERY_NS as i64;
                visits.push(made);
            }
        }
        record(visits)
    }
}

/// Levels of 10 visits and more, each by a ratio from the one before, the last one of two and of three
/// back at the first in half of the cases.
fn changing(grid: &Grid, random: &mut Random) -> Device {
    let changes = (1 + random.below(3) as usize).min(grid.visits() / 10 - 1);
    let room = grid.visits() - 10 * (changes + 1);
    let mut cuts: Vec<usize> =
        (0..changes).map(|_| random.below(room as u64 + 1) as usize).collect();
    cuts.sort_unstable();
    let mut levels = vec![(0.0, 0.0)];
    for (place, cut) in cuts.into_iter().enumerate() {
        let before = levels.last().map_or(0.0, |(level, _)| *level);
        let size = 0.25 + random.unit() * 1.1;
        let down = if before < 0.0 { random.below(4) == 0 } else { random.below(4) > 0 };
        let back = place == 1 && random.below(2) == 0;
        let level = if back { 0.0 } else { before + if down { -size } else { size } };
        let visits = (cut + 10 * (place + 1)) as f64 + random.unit();
        levels.push((level, visits * EVERY_NS as f64 / 1e9));
    }
    Device { levels, slope: 0.0 }
}

#[derive(Default)]
struct Counts {
    runs: usize,
    planted: usize,
    found: usize,
    steps: usize,
    sized: usize,
    covered: usize,
    before_after: usize,
    cell_levels: usize,
    existed: usize,
    cell_steps: usize,
    nowhere: usize,
}

fn runs(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(1_000, 60);
    let mut counts = Counts::default();
    for time in 0..times as u64 {
        let mut random = lot.random(&[time]);
        let grid = Grid::drawn(&mut random);
        let device = changing(&grid, &mut random);
        let run = grid.play(&device, &mut random);
        let told = drift::drift(&View::new(&run));
        counts.runs += 1;
        counts.of_shared(&device, &run, &told);
        counts.of_cells(&device, &grid, &told);
    }
    counts.claims()
}

/// The change of a device that is told as this one: it lies within its bounds, or next to them.
fn planted<'d>(device: &'d Device, step: &drift::Step) -> Option<(f64, &'d [(f64, f64)])> {
    let slack = 2.0 * EVERY_NS as f64 / 1e9;
    let from = step.from_ns as f64 / 1e9 - slack;
    let to = step.at_ns as f64 / 1e9 + slack;
    let pair = device.levels.windows(2).find(|pair| from <= pair[1].1 && pair[1].1 <= to)?;
    Some((pair[1].0 - pair[0].0, pair))
}

impl Counts {
    fn of_shared(&mut self, device: &Device, run: &Run, told: &drift::Drifts) {
        let steps: Vec<&drift::Step> = told.parts.iter().flat_map(|part| &part.steps).collect();
        self.planted += device.levels.len() - 1;
        for step in steps {
            self.steps += 1;
            let Some((size, _)) = planted(device, step) else { continue };
            self.found += 1;
            let near = |ratio: f64| (ratio.ln() - size).abs() <= NEAR.ln();
            self.sized += usize::from(near(step.ratio()));
            let ends = step.ratio_low.zip(step.ratio_high);
            let covers = |(low, high): (f64, f64)| low.ln() <= size && size <= high.ln();
            self.covered += usize::from(ends.is_some_and(covers));
            self.before_after += usize::from(near(all_before_to_all_after(run, step)));
        }
    }

    fn of_cells(&mut self, device: &Device, grid: &Grid, told: &drift::Drifts) {
        for cell in &told.cells {
            let index = cell.cell as usize;
            let noise = 3.0 * grid.noise[index] + NEAR.ln();
            for step in &cell.steps {
                self.cell_steps += 1;
                self.nowhere += usize::from((step.ratio().ln()).abs() < 1.02f64.ln());
                for level in [step.before, step.after] {
                    let ln = level.ln() - grid.base[index];
                    let is = |planted: &(f64, f64)| (planted.0 - ln).abs() <= noise;
                    self.cell_levels += 1;
                    self.existed += usize::from(device.levels.iter().any(is));
                }
            }
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let (steps, planted) = (self.steps, self.planted);
        vec![
            Claim::share("changes that are found", AtLeast(0.93), self.found.min(planted), planted),
            Claim::share("changes told that were none", AtMost(0.05), steps - self.found, steps),
            Claim::share("intervals of sizes cover", AtLeast(0.93), self.covered, self.found),
            Claim::share("sizes within 10 %", AtLeast(0.93), self.sized, self.found),
            Claim::share(
                "all before by all after: sizes within 10 %",
                AtLeast(0.93),
                self.before_after,
                self.found,
            )
            .of_broken(),
            Claim::share(
                "levels told of single cells that were",
                AtLeast(0.95),
                self.existed,
                self.cell_levels,
            ),
            Claim::share(
                "changes of single cells from a level to itself",
                AtMost(0.0),
                self.nowhere,
                self.cell_steps,
            ),
        ]
    }
}

/// The size of a change as one takes it who knows of no other.
fn all_before_to_all_after(run: &Run, step: &drift::Step) -> f64 {
    let middle = step.from_ns.midpoint(step.at_ns) as i64;
    let rate = |visit: &VisitRecord| (visit.streams[0].ops[0].requests as f64).ln();
    let mean = |cell: u32, after: bool| {
        let own =
            run.visits.iter().filter(|v| v.cell == cell && (v.started_unix_ns > middle) == after);
        let own: Vec<f64> = own.map(rate).collect();
        (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
    };
    let cells = 0..run.cells.len() as u32;
    let moved = cells.filter_map(|cell| Some(mean(cell, true)? - mean(cell, false)?));
    let mut moved: Vec<f64> = moved.collect();
    moved.sort_unstable_by(f64::total_cmp);
    moved.get(moved.len() / 2).map_or(1.0, |middle| middle.exp())
}

fn drifts(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(1_000, 60);
    let (mut cells, mut told, mut shared) = (0, 0, 0);
    for time in 0..times as u64 {
        let mut random = lot.random(&[time]);
        let grid = Grid::drawn(&mut random);
        let seconds = grid.visits() as f64 * EVERY_NS as f64 / 1e9;
        let size = 0.15 + random.unit() * 0.6;
        let size = if random.below(2) == 0 { size } else { -size };
        let device = Device { levels: vec![(0.0, 0.0)], slope: size / seconds };
        let found = drift::drift(&View::new(&grid.play(&device, &mut random)));
        cells += grid.cells;
        told += found.cells.len();
        shared += usize::from(found.parts.iter().any(|part| !part.steps.is_empty()));
    }
    vec![
        Claim::share("an even drift: single cells said to change level", AtMost(0.05), told, cells),
        Claim::share(
            "an even drift: said to be a change of all cells",
            AtMost(0.05),
            shared,
            times,
        ),
    ]
}
