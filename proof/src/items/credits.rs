//! Volumes with I/O credits: fast until a bucket is empty, then at a lower rate for good.

use explain::{View, drift};
use record::Run;
use stats::Random;

use super::changes::{CELLS, Second, record, visit};
use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[Proof {
    name: "credits",
    about: "grids of 1 to 30 cells on volumes with I/O credits, drawn at random, that are used up within the first \
            tenth of the run, later, or not at all",
    run: credits,
}];

const VISIT_S: f64 = 2.0;
const EVERY_S: f64 = 2.5;
const STEPS: usize = 20;
/// A cell whose visits the lack of credits slows by less is not counted.
const SLOWED: f64 = 1.5;

/// When the bucket is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Early,
    Later,
    Never,
}

/// The volume and what is measured on it.
struct Grid {
    /// Requests per second for good, and with credits.
    limits: [f64; 2],
    /// What each cell would do without a limit, and its noise as ln.
    cells: Vec<[f64; 2]>,
    /// Cells in the order of their visits.
    order: Vec<usize>,
    rounds: usize,
}

/// The mean rate of each visit, and how much of it was without credits.
struct Played {
    rates: Vec<f64>,
    slow: Vec<f64>,
}

impl Grid {
    fn drawn(random: &mut Random) -> Self {
        let drawn =
            |low: f64, high: f64, random: &mut Random| low * (high / low).powf(random.unit());
        let lasting = drawn(100.0, 3_000.0, random);
        let limits = [lasting, lasting * drawn(2.0, 20.0, random)];
        let number = drawn(1.0, CELLS as f64 + 0.99, random) as usize;
        let least = if number < 4 { 7 } else { 3 };
        let rounds = drawn(f64::from(least), 12.0, random) as usize;
        let cells = (0..number)
            .map(|_| [drawn(limits[0], 4.0 * limits[1], random), drawn(0.005, 0.05, random)])
            .collect();
        let mut order = Vec::new();
        for _ in 0..rounds {
            let mut round: Vec<usize> = (0..number).collect();
            random.shuffle(&mut round);
            order.extend(round);
        }
        Self { limits, cells, order, rounds }
    }

    /// * `credits`: requests above the lasting rate.
    fn play(&self, credits: f64) -> Played {
        let [lasting, burst] = self.limits;
        let mut left = credits;
        let step = VISIT_S / STEPS as f64;
        let mut played = Played { rates: Vec::new(), slow: Vec::new() };
        for &cell in &self.order {
            let (mut sum, mut slow) = (0.0, 0.0);
            for _ in 0..STEPS {
                let limit = if left > 0.0 { burst } else { lasting };
                let rate = self.cells[cell][0].min(limit);
                left = (left - (rate - lasting) * step).min(credits);
                sum += rate;
                slow += f64::from(u8::from(limit == lasting));
            }
            left = (left + lasting * (EVERY_S - VISIT_S)).min(credits);
            played.rates.push(sum / STEPS as f64);
            played.slow.push(slow / STEPS as f64);
        }
        played
    }

    /// Credits that last for a part of the run.
    fn credits(&self, part: f64) -> f64 {
        let most = self.cells.iter().map(|cell| cell[0].min(self.limits[1])).sum::<f64>();
        let (mut low, mut high) = (0.0, most * VISIT_S * self.rounds as f64);
        let wanted = part * self.order.len() as f64;
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            let slow = self.play(middle).slow;
            let begun = slow.iter().position(|&slow| slow > 0.0).unwrap_or(slow.len());
            if (begun as f64) < wanted { low = middle } else { high = middle }
        }
        high
    }

    fn record(&self, played: &Played, random: &mut Random) -> Run {
        let mut seen = vec![0_u32; self.cells.len()];
        let visits =
            (0_u32..).zip(&self.order).zip(&played.rates).map(|((number, &cell), &rate)| {
                let own = rate * (self.cells[cell][1] * random.normal()).exp();
                let mut made = visit(cell as u32, seen[cell], number, &[Second::Rate(own); 2]);
                seen[cell] += 1;
                made.started_unix_ns = (f64::from(number) * EVERY_S * 1e9) as i64;
                made
            });
        let mut run = record(visits.collect());
        run.cells.truncate(self.cells.len());
        run
    }

    /// Whether most cells have visits that are slowed by the lack of credits, and some visit of these cells is not.
    fn is_shown(&self, played: &Played) -> bool {
        let of = |cell: usize| {
            let visits = self.order.iter().zip(played.rates.iter().zip(&played.slow));
            visits.filter(move |(own, _)| **own == cell).map(|(_, (&rate, &slow))| (rate, slow))
        };
        // Between visits a little is saved up, so none is slow from its beginning to its end.
        let lasts = |cell: usize| {
            of(cell).filter(|(_, slow)| *slow >= 0.5).map(|(rate, _)| rate).reduce(f64::max)
        };
        let full = |cell: usize| self.cells[cell][0].min(self.limits[1]);
        let slowed = |cell: &usize| lasts(*cell).is_some_and(|rate| full(*cell) >= SLOWED * rate);
        let slowed: Vec<usize> = (0..self.cells.len()).filter(slowed).collect();
        let has_fast = |cell: &usize| of(*cell).any(|(_, slow)| slow == 0.0);
        2 * slowed.len() > self.cells.len() && slowed.iter().any(has_fast)
    }
}

/// What is said of a run.
#[derive(Default)]
struct Said {
    runs: usize,
    edges: usize,
    levels: usize,
    /// An edge, a level or a drift.
    changed: usize,
    /// That nothing drifted.
    nothing: usize,
    /// The same by a slope alone.
    nothing_by_slope: usize,
}

impl Said {
    fn add(&mut self, run: &Run) {
        let found = drift::drift(&View::new(run));
        let slopes = || found.parts.iter().filter_map(|part| part.per_hour);
        let is_edge = !found.edges.is_empty();
        let is_level =
            !found.cells.is_empty() || found.parts.iter().any(|part| !part.steps.is_empty());
        let is_drift = slopes().any(|slope| slope.is_real());
        // A slope that may hide a tenth is said to be unknown.
        let is_known = slopes().any(|slope| slope.over_all_low > -0.1 && slope.over_all_high < 0.1);
        self.runs += 1;
        self.edges += usize::from(is_edge);
        self.levels += usize::from(is_level);
        self.changed += usize::from(is_edge || is_level || is_drift);
        self.nothing += usize::from(is_known && !is_edge && !is_level && !is_drift);
        self.nothing_by_slope += usize::from(is_known && !is_drift);
    }
}

fn credits(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(2_000, 150);
    let mut claims = Vec::new();
    for (label, when, name) in [
        (0, When::Early, "used up within the first tenth"),
        (1, When::Later, "used up later"),
        (2, When::Never, "not used up"),
    ] {
        let mut said = Said::default();
        for time in 0..times as u64 {
            let mut random = lot.random(&[label, time]);
            let grid = Grid::drawn(&mut random);
            let part = match when {
                When::Early => 0.1 * random.unit(),
                When::Later => 0.1 + 0.8 * random.unit(),
                When::Never => 2.0,
            };
            let played = grid.play(grid.credits(part));
            if when == When::Never || grid.is_shown(&played) {
                said.add(&grid.record(&played, &mut random));
            }
        }
        let share =
            |what: &str, bound, yes| Claim::share(format!("{name}: {what}"), bound, yes, said.runs);
        if when == When::Never {
            claims.push(share("first or last visits called apart", AtMost(0.02), said.edges));
            claims.push(share("a change of level called", AtMost(0.05), said.levels));
            continue;
        }
        // Of the others nearly all are said to be unknown.
        claims.push(share("a change is said", AtLeast(0.90), said.changed));
        claims.push(share("no drift is said", AtMost(0.05), said.nothing));
        if when == When::Early {
            let by_slope =
                share("no drift by the slope alone", AtMost(0.05), said.nothing_by_slope);
            claims.push(by_slope.of_broken());
        }
    }
    claims
}
