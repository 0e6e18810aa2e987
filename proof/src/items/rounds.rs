//! Rounds as a run plays them: what the schedule does with visits whose truth is known.

use std::collections::{BTreeMap, BTreeSet};

use plan::{CellStanding, Made, Schedule, Standing, Veto, Why};
use record::Purpose;
use stats::Random;
use stats::interval::plain;
use stats::memory::Rows;
use suite::{CheckContext, check, parse};
use units::{Bytes, Nanos};

use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "rounds-grid",
        about: "84 cells of unequal noise, played by the schedule until each is known to 5 %",
        run: grid,
    },
    Proof {
        name: "rounds-stalls",
        about: "84 cells with stalls of 300 ms, one in 10 s, on a device that is quiet otherwise",
        run: stalls,
    },
    Proof {
        name: "rounds-quiet",
        about: "84 cells of white noise of 1 %, to be known to 2 %",
        run: quiet,
    },
    Proof {
        name: "rounds-speeds",
        about: "grids on a device with a second speed of 0.3 to 0.8 for 1 to 10 s in the mean, 3 to 40 % of \
                the time, drawn at random; cells of which any visit met it",
        run: speeds,
    },
    Proof {
        name: "rounds-in-step",
        about: "grids and a cell alone on a device that pauses as regularly as visits of 2.5 s begin, or twice, \
                three times or half as often, for 5 to 35 % of the time, drawn at random",
        run: in_step,
    },
    Proof {
        name: "rounds-budget",
        about: "84 noisy cells in two phases and time for four rounds and a half",
        run: budget,
    },
];

const CELLS: u32 = 84;
const VISITS_MAX: u32 = 10;
const CONFIDENCE: f64 = 0.95;
const VISIT: Nanos = Nanos::millis(2_500);

/// A phase of so many cells.
fn one_phase(cells: u32, rounds: &str, seed: u64) -> Option<Schedule> {
    let threads: Vec<String> = (1..=cells).map(|n| n.to_string()).collect();
    let text = format!(
        "schema = 1\nname = \"grid\"\n[rounds]\npilot = false\ntime_max = \"10h\"\n{rounds}\n[defaults]\ntime = 2\n\
         [[phase]]\nname = \"read\"\ngrid.threads = [{}]\n",
        threads.join(", ")
    );
    let suite = check(&parse(&text, "grid.toml").ok()?, &CheckContext::default()).ok()?;
    Some(Schedule::new(&suite, seed, &BTreeSet::new()))
}

/// Two phases of 42 cells, as bm-flash has them.
fn schedule(rounds: &str, seed: u64) -> Option<Schedule> {
    let threads: Vec<String> = (1..=CELLS / 2).map(|n| n.to_string()).collect();
    let threads = threads.join(", ");
    let text = format!(
        "schema = 1\nname = \"grid\"\n[rounds]\npilot = false\n{rounds}\n[defaults]\ntime = 10\n\
         [[phase]]\nname = \"read\"\ngrid.threads = [{threads}]\n\
         [[phase]]\nname = \"write\"\noperation = \"write\"\ngrid.threads = [{threads}]\n"
    );
    let suite = check(&parse(&text, "grid.toml").ok()?, &CheckContext::default()).ok()?;
    Some(Schedule::new(&suite, seed, &BTreeSet::new()))
}

/// One visit of a simulated device: ln rate, and whether it stalled.
type Device<'a> = &'a mut dyn FnMut(u32) -> (f64, bool);

/// What became of a cell.
struct Ended {
    standing: Standing,
    visits: u32,
    /// Of the visits' ln rates.
    mean: f64,
    half_width: f64,
    stalled: bool,
}

impl Ended {
    /// It had fewer visits than it might have had, since it was known well enough.
    fn early(&self) -> bool {
        self.standing == Standing::Converged && self.visits < VISITS_MAX
    }
}

/// Plays a schedule to its end. `tells`: stalls are told to it.
fn play(schedule: &Schedule, device: Device<'_>, tells: bool) -> (Vec<Ended>, Nanos) {
    let mut course = schedule.begin();
    let mut seen: BTreeMap<u32, (Vec<f64>, bool)> = BTreeMap::new();
    let mut took = Nanos::ZERO;
    while let Some(visit) = course.next() {
        let (ln_rate, stalled) = device(visit.cell);
        let (rates, any) = seen.entry(visit.cell).or_default();
        rates.push(ln_rate);
        *any |= stalled;
        took += VISIT;
        course.add(&Made {
            key: visit.key(),
            purpose: Purpose::Measure,
            ok: true,
            ln_rates: vec![Some(ln_rate)],
            rows: Vec::new(),
            veto: (stalled && tells).then_some(Veto::Stall),
            took: VISIT,
            waited: Nanos::ZERO,
            measured: VISIT,
            written: Bytes::ZERO,
            ramp: None,
        });
    }
    let ended = course.standing().into_iter().map(|cell| {
        let (rates, stalled) = seen.remove(&cell.cell).unwrap_or_default();
        Ended {
            standing: cell.standing,
            visits: cell.visits,
            mean: rates.iter().sum::<f64>() / rates.len() as f64,
            half_width: cell.half_width.unwrap_or(f64::INFINITY),
            stalled,
        }
    });
    (ended.collect(), took)
}

/// Truth and noise of each cell: rates over three decades, noise of median 3 % and log-sd 0.5.
fn unequal(random: &mut Random) -> Vec<(f64, f64)> {
    let cell = |random: &mut Random| {
        let truth = 7.0 + 7.0 * random.unit();
        (truth, 0.03 * (0.5 * random.normal()).exp())
    };
    (0..CELLS).map(|_| cell(random)).collect()
}

fn grid(lot: &Lot) -> Vec<Claim> {
    let grids = lot.effort.times(1000, 60);
    let (mut early, mut covered, mut visits, mut cells) = (0, 0, 0u64, 0u64);
    let (mut naive, mut naive_covered) = (0, 0);
    for number in 0..grids as u64 {
        let mut random = lot.random(&[number]);
        let truth = unequal(&mut random);
        let Some(schedule) = schedule("time_max = \"10h\"", random.bits()) else { continue };
        let mut draw = |cell: u32| {
            let (mean, sd) = truth[cell as usize];
            (mean + sd * random.normal(), false)
        };
        let (ended, _) = play(&schedule, &mut draw, true);
        for (cell, &(mean, _)) in ended.iter().zip(&truth) {
            visits += u64::from(cell.visits);
            cells += 1;
            early += usize::from(cell.early());
            covered += usize::from(cell.early() && (cell.mean - mean).abs() <= cell.half_width);
        }
        for (cell, &(mean, _)) in (0u32..).zip(&truth) {
            if let Some(is_covered) = ended_alone(cell, mean, &mut draw) {
                naive += 1;
                naive_covered += usize::from(is_covered);
            }
        }
    }
    let mean = visits as f64 / cells.max(1) as f64;
    vec![
        Claim::share("coverage of cells that ended early", AtLeast(0.93), covered, early),
        Claim::number("visits a cell", AtMost(4.0), mean),
        Claim::share(
            "coverage of cells ended from two visits on by their own scatter's error",
            AtLeast(0.93),
            naive_covered,
            naive,
        )
        .of_broken(),
    ]
}

/// A cell visited until its own standard error, not the t interval, is within 5 %; whether the
/// truth is then within two of them. `None` if it never ended early.
fn ended_alone(cell: u32, truth: f64, device: Device<'_>) -> Option<bool> {
    let mut rates = Vec::new();
    while rates.len() < VISITS_MAX as usize - 1 {
        rates.push(device(cell).0);
        let Some(own) = plain(&rates, CONFIDENCE) else { continue };
        let half = 1.96 * (own.variance / rates.len() as f64).sqrt();
        if half <= 0.05_f64.ln_1p() {
            return Some((own.mean - truth).abs() <= half);
        }
    }
    None
}

fn stalls(lot: &Lot) -> Vec<Claim> {
    let grids = lot.effort.times(400, 40);
    let mut claims = Vec::new();
    for tells in [true, false] {
        let (mut stalled, mut early) = (0, 0);
        for number in 0..grids as u64 {
            let mut random = lot.random(&[number]);
            let Some(schedule) = schedule("time_max = \"10h\"", random.bits()) else { continue };
            let mut draw = |_: u32| {
                // 2 s measured: a stall in one of five visits, of 300 ms.
                let stalls = random.unit() < 1.0 - (-0.2_f64).exp();
                let lost = if stalls { (1.0 - 0.15_f64).ln() } else { 0.0 };
                (9.0 + lost + 0.01 * random.normal(), stalls)
            };
            let (ended, _) = play(&schedule, &mut draw, tells);
            stalled += ended.iter().filter(|cell| cell.stalled).count();
            early += ended.iter().filter(|cell| cell.stalled && cell.early()).count();
        }
        let what = if tells { "cells with a stall that ended early" } else { "the same, unseen" };
        let claim = Claim::number(format!("{what}, of {stalled}"), AtMost(0.0), early as f64);
        claims.push(if tells { claim } else { claim.of_broken() });
    }
    claims
}

fn quiet(lot: &Lot) -> Vec<Claim> {
    let grids = lot.effort.times(400, 40);
    let (mut within, mut cells) = (0, 0);
    for number in 0..grids as u64 {
        let mut random = lot.random(&[number]);
        let rounds = "time_max = \"10h\"\nprecision = 0.02";
        let Some(schedule) = schedule(rounds, random.bits()) else { continue };
        let mut draw = |_: u32| (9.0 + 0.01 * random.normal(), false);
        let (ended, _) = play(&schedule, &mut draw, true);
        cells += ended.len();
        within += ended.iter().filter(|cell| cell.early() && cell.visits <= 4).count();
    }
    vec![Claim::share("cells that end within four visits", AtLeast(0.98), within, cells)]
}

/// Rates of 100 ms each over the measured part of a visit that begins at a moment, in seconds.
type Clocked<'a> = &'a mut dyn FnMut(f64, f64) -> Vec<f64>;

const TIMED: f64 = 2.0;

/// Plays a schedule on a device that has a clock. What became of each cell, with its visits' ln rates and rows.
///
/// * `random_ramps`: or all of one length.
fn play_clocked(
    schedule: &Schedule,
    device: Clocked<'_>,
    random_ramps: bool,
) -> Vec<(CellStanding, Vec<f64>)> {
    const RAMP: f64 = 0.5;
    let mut course = schedule.begin();
    let mut seen: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut now = 0.0;
    while let Some(visit) = course.next() {
        let asked = visit.ramp.filter(|_| random_ramps);
        let ramp = asked.map_or(RAMP, |ramp| ramp.get() as f64 / 1e9);
        let rates = device(now + ramp, TIMED);
        let ln_rate = (rates.iter().sum::<f64>() / rates.len() as f64).ln();
        let rows = vec![Rows::new(now + ramp, TIMED / rates.len() as f64, &rates)];
        seen.entry(visit.cell).or_default().push(ln_rate);
        now += ramp + TIMED;
        let nanos = |seconds: f64| Nanos::new((seconds * 1e9) as u64);
        course.add(&Made {
            key: visit.key(),
            purpose: Purpose::Measure,
            ok: true,
            ln_rates: vec![Some(ln_rate)],
            rows,
            veto: None,
            took: nanos(ramp + TIMED),
            waited: Nanos::ZERO,
            measured: nanos(TIMED),
            written: Bytes::ZERO,
            ramp: None,
        });
    }
    let standing = course.standing().into_iter();
    let with = |cell: CellStanding| {
        let rates = seen.remove(&cell.cell).unwrap_or_default();
        (cell, rates)
    };
    standing.map(with).collect()
}

/// How many intervals held, of how many, and visits made.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    cells: usize,
    held: usize,
    /// By Student's t on each cell's own visits.
    alone: usize,
    visits: usize,
}

impl Held {
    fn add(&mut self, cell: &CellStanding, ln_rates: &[f64], truth: f64) {
        let mean = ln_rates.iter().sum::<f64>() / ln_rates.len() as f64;
        let half = cell.half_width.unwrap_or(f64::INFINITY);
        let own = ln_rates.get(..3).and_then(|first| plain(first, CONFIDENCE));
        self.cells += 1;
        self.visits += ln_rates.len();
        self.held += usize::from((mean - truth).abs() <= half);
        self.alone += usize::from(own.is_none_or(|own| (own.mean - truth).abs() <= own.half_width));
    }

    fn visits_mean(&self) -> f64 {
        self.visits as f64 / self.cells as f64
    }
}

/// Works at one of two speeds, each for a random time.
struct TwoSpeeds {
    ratio: f64,
    slow: f64,
    fast: f64,
    is_slow: bool,
    left: f64,
    now: f64,
}

impl TwoSpeeds {
    fn new(random: &mut Random) -> Self {
        let (ratio, share) = (0.3 + 0.5 * random.unit(), 0.03 + 0.37 * random.unit());
        let slow = 10f64.powf(random.unit());
        let fast = slow * (1.0 - share) / share;
        let is_slow = random.unit() < share;
        let left = if is_slow { slow } else { fast } * random.exponential();
        Self { ratio, slow, fast, is_slow, left, now: 0.0 }
    }

    /// Its mean rate from a moment on.
    fn rate(&mut self, start: f64, seconds: f64, random: &mut Random) -> f64 {
        self.pass(start - self.now, random);
        let slow = self.pass(seconds, random) / seconds;
        1.0 - slow * (1.0 - self.ratio)
    }

    /// Seconds of so many in which it was slow.
    fn pass(&mut self, seconds: f64, random: &mut Random) -> f64 {
        self.now += seconds;
        let (mut rest, mut slow) = (seconds, 0.0);
        while rest > 0.0 {
            let part = rest.min(self.left);
            slow += if self.is_slow { part } else { 0.0 };
            rest -= part;
            self.left -= part;
            if self.left <= 0.0 {
                self.is_slow = !self.is_slow;
                self.left = if self.is_slow { self.slow } else { self.fast } * random.exponential();
            }
        }
        slow
    }

    /// What an endless row of visits comes to.
    fn truth(&self, random: &mut Random) -> f64 {
        const VISITS: u32 = 5_000;
        let mut same = Self { now: 0.0, ..*self };
        let mut visit = |n: u32| same.rate(f64::from(n) * 2.75, TIMED, random).ln();
        (0..VISITS).map(&mut visit).sum::<f64>() / f64::from(VISITS)
    }
}

fn speeds(lot: &Lot) -> Vec<Claim> {
    let mut claims = Vec::new();
    for cells in [4, 8, 12, 21, 84] {
        let runs = lot.effort.times(12_000, 1200) / cells as usize;
        let (mut all, mut clean) = (Held::default(), Held::default());
        for number in 0..runs as u64 {
            let mut random = lot.random(&[u64::from(cells), number]);
            let Some(schedule) = one_phase(cells, "", random.bits()) else { continue };
            let mut two = TwoSpeeds::new(&mut random);
            let truth = two.truth(&mut random);
            let mut met = false;
            let noisy =
                |random: &mut Random, rate: f64| vec![rate * (0.02 * random.normal()).exp()];
            let ended = play_clocked(
                &schedule,
                &mut |start, seconds| {
                    let rate = two.rate(start, seconds, &mut random);
                    met |= rate < 0.9;
                    noisy(&mut random, rate)
                },
                true,
            );
            for (cell, ln_rates) in ended.iter().filter(|_| met) {
                all.add(cell, ln_rates, truth);
            }
            let ended = play_clocked(&schedule, &mut |_, _| noisy(&mut random, 1.0), true);
            for (cell, ln_rates) in &ended {
                clean.add(cell, ln_rates, 0.0);
            }
        }
        let text = format!("{cells} cells, two speeds: truth inside");
        claims.push(Claim::share(text, AtLeast(0.93), all.held, all.cells));
        let text = format!("{cells} cells, two speeds, plain t of three visits: truth inside");
        claims.push(Claim::share(text, AtLeast(0.93), all.alone, all.cells).of_broken());
        let text = format!("{cells} cells, one speed: visits, mean");
        claims.push(Claim::number(text, AtMost(3.3), clean.visits_mean()));
    }
    claims
}

/// Stands still, or is slower, for a part of every period.
struct Periodic {
    period: f64,
    pause: f64,
    /// Share of its rate that a pause takes.
    deep: f64,
    phase: f64,
}

impl Periodic {
    fn in_step(random: &mut Random) -> Self {
        let times = [1.0, 2.0, 3.0, 0.5][random.below(4) as usize];
        let period = 2.5 / times;
        let pause = period * (0.05 + 0.3 * random.unit());
        let (deep, phase) = (0.3 + 0.7 * random.unit(), period * random.unit());
        Self { period, pause, deep, phase }
    }

    fn rate(&self, start: f64, seconds: f64) -> f64 {
        let paused = |at: f64| {
            let periods = (at + self.phase) / self.period;
            periods.floor() * self.pause + (periods.fract() * self.period).min(self.pause)
        };
        1.0 - self.deep * (paused(start + seconds) - paused(start)) / seconds
    }

    fn truth(&self) -> f64 {
        (1.0 - self.deep * self.pause / self.period).ln()
    }
}

fn in_step(lot: &Lot) -> Vec<Claim> {
    let mut claims = Vec::new();
    for cells in [1, 4, 21] {
        let runs = lot.effort.times(10_000, 600) / cells as usize;
        let [ours, fixed] = [true, false].map(|random_ramps| {
            let mut all = Held::default();
            for number in 0..runs as u64 {
                let mut random = lot.random(&[u64::from(cells), number]);
                let Some(schedule) = one_phase(cells, "", random.bits()) else { continue };
                let device = Periodic::in_step(&mut random);
                let rate = &mut |start: f64, seconds: f64| {
                    let row = seconds / 20.0;
                    let rate = |n: u32| device.rate(start + f64::from(n) * row, row);
                    (0..20).map(|n| rate(n) * (1.0 + 0.03 * random.normal())).collect()
                };
                for (cell, ln_rates) in play_clocked(&schedule, rate, random_ramps) {
                    all.add(&cell, &ln_rates, device.truth());
                }
            }
            all
        });
        let text = format!("{cells} cells, pauses in step with visits: truth inside");
        claims.push(Claim::share(text, AtLeast(0.93), ours.held, ours.cells));
        let text = format!("{cells} cells, the same, ramps of one length: truth inside");
        claims.push(Claim::share(text, AtLeast(0.93), fixed.held, fixed.cells).of_broken());
    }
    claims
}

fn budget(lot: &Lot) -> Vec<Claim> {
    let grids = lot.effort.times(200, 20);
    let limit = Nanos::new(VISIT.get() * u64::from(CELLS) * 9 / 2);
    let (mut over, mut few, mut wrong, mut cells) = (0, 0, 0, 0);
    for number in 0..grids as u64 {
        let mut random = lot.random(&[number]);
        let rounds = format!("time_max = \"{}\"", limit.exact());
        let Some(schedule) = schedule(&rounds, random.bits()) else { continue };
        let mut draw = |_: u32| (9.0 + 0.2 * random.normal(), false);
        let (ended, took) = play(&schedule, &mut draw, true);
        over += usize::from(took > limit);
        cells += ended.len();
        few += ended.iter().filter(|cell| cell.visits < 3).count();
        let wide = |cell: &&Ended| cell.half_width > 0.05_f64.ln_1p();
        let late = Standing::NotConverged(Why::Time);
        wrong += ended.iter().filter(wide).filter(|cell| cell.standing != late).count();
    }
    vec![
        Claim::number("runs that took longer than they might", AtMost(0.0), over as f64),
        Claim::number(
            format!("cells with fewer than three visits, of {cells}"),
            AtMost(0.0),
            few as f64,
        ),
        Claim::number("cells too wide and not said to be", AtMost(0.0), wrong as f64),
    ]
}
