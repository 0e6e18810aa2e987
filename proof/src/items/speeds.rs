//! Comparisons of devices that have two speeds: throttling, neighbours, burst credits.

use explain::View;
use explain::compare::{Direction, Terms, Verdict, compare};
use record::{Blocks, Run};
use stats::Random;
use stats::interval::plain;
use stats::paired::{paired_t, welch};

use super::changes::{CELLS, Second, record, visit};
use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[Proof {
    name: "compare-speeds",
    about: "grids of 1 to 30 cells on a device with two speeds of 5 to 90 s each, drawn at random, held against the \
            same device later, and live against another one of the kind",
    run: speeds,
}];

/// A visit of 2 s begins so long after the one before.
const EVERY_S: f64 = 2.5;

/// A run that is shorter at a speed has not seen it.
const SEEN_S: f64 = 5.0;

/// A device with two speeds.
#[derive(Clone, Copy, Debug)]
struct Device {
    /// Rate at the lower speed, by that at the other.
    slow: f64,
    /// Means of the seconds at the lower speed and at the other.
    dwells: [f64; 2],
    /// Whether a change is as likely at any time, however long the last is ago; else each time is from
    /// half to one and a half of its mean.
    by_chance: bool,
}

/// What is measured: cells of a noise each.
struct Grid {
    cells: usize,
    rounds: usize,
    base: Vec<f64>,
    noise: Vec<f64>,
}

/// When the device goes to its other speed, and whether it begins at the lower one.
struct Course {
    begins_slow: bool,
    changes: Vec<f64>,
}

impl Device {
    fn drawn(dwell: [f64; 2], random: &mut Random) -> Self {
        let drawn = |random: &mut Random| dwell[0] * (dwell[1] / dwell[0]).powf(random.unit());
        let slow = 0.3 + 0.5 * random.unit();
        let dwells = [drawn(random), drawn(random)];
        Self { slow, dwells, by_chance: random.below(2) == 0 }
    }

    fn cycle(&self) -> f64 {
        self.dwells[0] + self.dwells[1]
    }

    /// The beginning is somewhere within.
    fn course(&self, seconds: f64, random: &mut Random) -> Course {
        let begins_slow = random.unit() < self.dwells[0] / self.cycle();
        let (mut is_slow, mut now) = (begins_slow, -self.cycle() * 20.0);
        let mut changes = Vec::new();
        // From long before, so that the beginning of the run is at no special place.
        is_slow ^= random.below(2) == 0;
        let first = is_slow;
        while now < seconds {
            let share = if self.by_chance { random.exponential() } else { 0.5 + random.unit() };
            now += self.dwells[usize::from(!is_slow)] * share;
            is_slow = !is_slow;
            changes.push(now);
        }
        let before = changes.iter().filter(|&&at| at < 0.0).count();
        let begins_slow = first ^ (before % 2 == 1);
        Course { begins_slow, changes: changes.split_off(before) }
    }
}

impl Course {
    /// Whether a run of so many seconds has both speeds, each for as many seconds at least.
    fn is_mixed(&self, seconds: f64) -> bool {
        let (mut is_slow, mut from, mut spent) = (self.begins_slow, 0.0, [0.0, 0.0]);
        for at in self.changes.iter().map(|at| at.min(seconds)).chain([seconds]) {
            spent[usize::from(is_slow)] += at - from;
            (is_slow, from) = (!is_slow, at);
        }
        spent.iter().all(|&spent| spent >= SEEN_S)
    }

    /// Mean rate of a second from here on, of 1 at the higher speed.
    fn rate(&self, from: f64, slow: f64) -> f64 {
        let at = |time: f64| {
            let changed = self.changes.iter().filter(|&&change| change <= time).count() % 2 == 1;
            if self.begins_slow ^ changed { slow } else { 1.0 }
        };
        (0..10).map(|part| at(from + (f64::from(part) + 0.5) / 10.0)).sum::<f64>() / 10.0
    }
}

impl Grid {
    /// Of so many rounds that the run lasts half a cycle of the device at least, and ten at most.
    fn drawn(device: &Device, least: usize, random: &mut Random) -> Self {
        loop {
            let cells = (CELLS as f64).powf(random.unit()) as usize;
            let rounds = (least as f64 * (60.0 / least as f64).powf(random.unit())) as usize;
            let cycles = (cells * rounds) as f64 * EVERY_S / device.cycle();
            if !(0.5..10.0).contains(&cycles) {
                continue;
            }
            let base = (0..cells).map(|_| 8.0 + random.unit() * 3.0).collect();
            let noise = (0..cells).map(|_| 0.005 * 10f64.powf(random.unit())).collect();
            return Self { cells, rounds, base, noise };
        }
    }

    fn seconds(&self) -> f64 {
        (self.cells * self.rounds) as f64 * EVERY_S
    }

    /// Two runs; `live` in blocks, each on a course of its own.
    fn play(
        &self,
        device: &Device,
        ratio: f64,
        live: bool,
        random: &mut Random,
    ) -> ([Run; 2], bool) {
        let each = if live { 2.0 } else { 1.0 };
        let courses = [0, 1].map(|_| device.course(self.seconds() * each + 10.0, random));
        let mut visits = [Vec::new(), Vec::new()];
        let mut slots = [0_u32; 2];
        for round in 0..self.rounds {
            let mut order: Vec<usize> = (0..self.cells).collect();
            random.shuffle(&mut order);
            for cell in order {
                let first = random.below(2) as usize;
                for side in [first, 1 - first] {
                    let slot = if live { slots[0] + slots[1] } else { slots[side] };
                    slots[side] += 1;
                    let start = f64::from(slot) * EVERY_S;
                    let of_b = if side == 1 { ratio } else { 1.0 };
                    let own = (self.base[cell] + self.noise[cell] * random.normal()).exp() * of_b;
                    let at = |second: f64| courses[side].rate(start + second, device.slow);
                    let seconds = [0.0, 1.0].map(|second| Second::Rate(own * at(second)));
                    let number = visits[side].len() as u32;
                    let mut made = visit(cell as u32, round as u32, number, &seconds);
                    made.started_unix_ns = (start * 1e9) as i64;
                    visits[side].push(made);
                }
            }
        }
        let seen = courses.iter().any(|course| course.is_mixed(self.seconds() * each));
        let mut side = 0;
        let runs = visits.map(|visits| {
            let mut run = record(visits);
            run.cells.truncate(self.cells);
            run.header.id = format!("r{side}");
            run.header.blocks = live.then(|| Blocks {
                group: "g".to_owned(),
                side: if side == 0 { "A" } else { "B" }.to_owned(),
                looks: 1,
                controls: Vec::new(),
                is_control: false,
            });
            side += 1;
            run
        });
        (runs, seen)
    }
}

/// What the means of all visits say by themselves, as one who knows of no levels.
fn by_means([a, b]: &[Run; 2], live: bool) -> bool {
    let rounds = |run: &Run| -> Vec<f64> {
        let of = |round: u32| {
            let visits = run.visits.iter().filter(move |visit| visit.repeat == round);
            let rates: Vec<f64> =
                visits.map(|visit| (visit.streams[0].ops[0].requests as f64).ln()).collect();
            rates.iter().sum::<f64>() / rates.len() as f64
        };
        let last = run.visits.iter().map(|visit| visit.repeat).max().unwrap_or(0);
        (0..=last).map(of).collect()
    };
    let (a, b) = (rounds(a), rounds(b));
    let margin = explain::compare::MARGIN.ln_1p();
    if live {
        let differences: Vec<f64> = a.iter().zip(&b).map(|(a, b)| b - a).collect();
        return paired_t(&differences, 0.95).is_some_and(|found| found.is_beyond(margin));
    }
    let (Some(a), Some(b)) = (plain(&a, 0.95), plain(&b, 0.95)) else { return false };
    welch(&a, &b).interval(0.95).is_some_and(|found| found.is_beyond(margin))
}

fn verdict(runs: &[Run; 2]) -> (Verdict, Option<Direction>) {
    let seen = compare(&[View::new(&runs[0]), View::new(&runs[1])], &Terms::default());
    let against = &seen.against[0];
    (against.verdict, against.overall.direction)
}

/// What was counted of pairs of runs.
#[derive(Default)]
struct Counts {
    pairs: usize,
    different: usize,
    by_means: usize,
    found: usize,
    backwards: usize,
}

fn speeds(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(400, 30) as u64;
    let kinds =
        [("5 to 15 s", [5.0, 15.0]), ("15 to 40 s", [15.0, 40.0]), ("40 to 90 s", [40.0, 90.0])];
    let of_kind = |label: u64, dwell: &str, range, live: bool| {
        let mut counts = Counts::default();
        for time in 0..times {
            counts.count(range, live, &mut lot.random(&[label, u64::from(live), time]));
        }
        let how = if live { "two devices, live" } else { "one device, one after the other" };
        counts.claims(&format!("{how}, {dwell} at a speed"), label == 2)
    };
    let of_kind = &of_kind;
    // This is the longest of the proofs: all of its kinds side by side.
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (label, (dwell, range)) in (0_u64..).zip(kinds) {
            for live in [false, true] {
                threads.push(scope.spawn(move || of_kind(label, dwell, range, live)));
            }
        }
        // A panic is passed on.
        threads
            .into_iter()
            .flat_map(|thread| {
                thread.join().unwrap_or_else(|cause| std::panic::resume_unwind(cause))
            })
            .collect()
    })
}

impl Counts {
    fn count(&mut self, dwells: [f64; 2], live: bool, random: &mut Random) {
        let device = Device::drawn(dwells, random);
        // Fewer than six blocks make no claim.
        let grid = Grid::drawn(&device, if live { 10 } else { 3 }, random);
        let (runs, seen) = grid.play(&device, 1.0, live, random);
        // Of two runs that met one speed each nobody can tell that the device has both.
        if !seen {
            return;
        }
        self.pairs += 1;
        self.different += usize::from(verdict(&runs).0 == Verdict::Different);
        self.by_means += usize::from(by_means(&runs, live));
        let (runs, _) = grid.play(&device, 10.0, live, random);
        match verdict(&runs) {
            (Verdict::Different, Some(Direction::Faster)) => self.found += 1,
            (Verdict::Different, Some(Direction::Slower)) => self.backwards += 1,
            _ => {}
        }
    }

    /// `long`: a speed lasts so many visits that their number says nothing of how much is known.
    fn claims(&self, of: &str, long: bool) -> Vec<Claim> {
        let share =
            |what: &str, bound, yes| Claim::share(format!("{of}: {what}"), bound, yes, self.pairs);
        let mut claims = vec![
            share("the same device called different", AtMost(0.05), self.different),
            share("ten times as fast, found", AtLeast(0.93), self.found),
            share("ten times as fast, found the wrong way", AtMost(0.0), self.backwards),
        ];
        if long {
            let by_means = share(
                "called different by the means of the rounds alone",
                AtMost(0.05),
                self.by_means,
            );
            claims.push(by_means.of_broken());
        }
        claims
    }
}
