//! Rounds as a run plays them: what the schedule does with visits whose truth is known.

use std::collections::{BTreeMap, BTreeSet};

use plan::{Made, Schedule, Standing, Veto, Why};
use record::Purpose;
use stats::Random;
use stats::interval::plain;
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
        name: "rounds-budget",
        about: "84 noisy cells in two phases and time for four rounds and a half",
        run: budget,
    },
];

const CELLS: u32 = 84;
const VISITS_MAX: u32 = 10;
const CONFIDENCE: f64 = 0.95;
const VISIT: Nanos = Nanos::millis(2_500);

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
