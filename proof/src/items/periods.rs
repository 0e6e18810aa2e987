//! What comes by the clock, in series of visits.

use stats::Random;
use stats::period::{LONGEST, SHORTEST, Visit, find};

use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "periods-found",
        about: "runs of 30 to 120 visits of 2 s, and of 6 to 20 of a minute, on devices that are slower by 30 to 100 % for \
                5 to 35 % of each 0.5 to 10 s, and at least 0.1 s, drawn at random; rows of 100 ms scatter by 2 to 15 %",
        run: found,
    },
    Proof {
        name: "periods-false",
        about: "the same runs on devices without a period: noise with a memory of 0.1 to 30 s, two speeds that change at \
                random, pauses at random moments, slow starts of visits, drift, drawn at random",
        run: not_there,
    },
];

/// Length of a row.
const ROW: f64 = 0.1;

/// Starts and lengths of visits.
struct Times(Vec<(f64, usize)>);

impl Times {
    fn draw(random: &mut Random, long: bool) -> Self {
        let (visits, rows) = match long {
            true => (6 + random.below(15), 600),
            false => (30 + random.below(91), 20),
        };
        let mut at = 0.0;
        let times = (0..visits).map(|_| {
            // As the runner's ramps: half a second, longer by a random time.
            at += 0.5 + 0.5 * random.unit();
            let start = at;
            at += rows as f64 * ROW;
            (start, rows)
        });
        Self(times.collect())
    }

    /// * `rate`: of a row that begins then, so many rows after the visit's start, by the usual one.
    fn play(
        &self,
        random: &mut Random,
        rate: &mut dyn FnMut(f64, usize, &mut Random) -> f64,
    ) -> Vec<Visit> {
        let cells = 1 + random.below(12) as u32;
        let visit = |(number, &(start, rows)): (usize, &(f64, usize))| {
            let cell = number as u32 % cells;
            let requests = 20.0 * f64::from(cell + 1);
            let row = |row: usize| rate(start + row as f64 * ROW, row, random).max(0.0) * requests;
            Visit { cell, start, counts: (0..rows).map(row).collect() }
        };
        self.0.iter().enumerate().map(visit).collect()
    }
}

/// Slower for a part of every period.
struct Clock {
    period: f64,
    pause: f64,
    deep: f64,
    phase: f64,
    noise: f64,
}

impl Clock {
    fn draw(random: &mut Random) -> Self {
        let period = 0.5 * (20.0 * 0.999f64).powf(random.unit());
        let pause = (period * (0.05 + 0.3 * random.unit())).max(0.1);
        let (deep, phase) = (0.3 + 0.7 * random.unit(), period * random.unit());
        Self { period, pause, deep, phase, noise: 0.02 + 0.13 * random.unit() }
    }

    fn is_right(&self, seconds: f64) -> bool {
        (seconds / self.period).ln().abs() < 0.02
    }

    fn rate(&self, start: f64, random: &mut Random) -> f64 {
        let paused = |at: f64| {
            let periods = (at + self.phase) / self.period;
            periods.floor() * self.pause + (periods.fract() * self.period).min(self.pause)
        };
        let share = (paused(start + ROW) - paused(start)) / ROW;
        (1.0 - self.deep * share) * (1.0 + self.noise * random.normal())
    }
}

fn found(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(2_000, 100);
    let mut claims = Vec::new();
    for (row, long) in (0u64..).zip([false, true]) {
        let (mut right, mut other, mut sized) = (0, 0, 0);
        for number in 0..runs as u64 {
            let mut random = lot.random(&[row, number]);
            let times = Times::draw(&mut random, long);
            let clock = Clock::draw(&mut random);
            let visits = times.play(&mut random, &mut |at, _, random| clock.rate(at, random));
            let ours = find(&visits, ROW);
            right += usize::from(ours.is_some_and(|ours| clock.is_right(ours.seconds)));
            other += usize::from(ours.is_some_and(|ours| !clock.is_right(ours.seconds)));
            sized += usize::from(
                ours.is_some_and(|ours| (ours.ratio - (1.0 - clock.deep)).abs() < 0.25),
            );
        }
        let what = if long { "a minute" } else { "2 s" };
        claims.push(Claim::share(
            format!("visits of {what}: found, and right to 2 %"),
            AtLeast(0.93),
            right,
            runs,
        ));
        claims.push(Claim::share(
            format!("visits of {what}: another period said"),
            AtMost(0.05),
            other,
            runs,
        ));
        claims.push(Claim::share(
            format!("visits of {what}: the rate in it right to a quarter"),
            AtLeast(0.8),
            sized,
            runs,
        ));
    }
    claims.push(exchanged(lot, runs));
    claims
}

/// Without knowing when each visit began, its phase says nothing.
fn exchanged(lot: &Lot, runs: usize) -> Claim {
    let mut right = 0;
    for number in 0..runs as u64 {
        let mut random = lot.random(&[2, number]);
        let times = Times::draw(&mut random, false);
        let clock = Clock::draw(&mut random);
        let mut visits = times.play(&mut random, &mut |at, _, random| clock.rate(at, random));
        let starts: Vec<f64> = visits.iter().map(|visit| visit.start).collect();
        for visit in &mut visits {
            visit.start = starts[random.below(starts.len() as u64) as usize] + random.unit();
        }
        right += usize::from(find(&visits, ROW).is_some_and(|ours| clock.is_right(ours.seconds)));
    }
    let text = "visits of 2 s, starts exchanged: found, and right to 2 %";
    Claim::share(text, AtLeast(0.93), right, runs).of_broken()
}

/// What a device without a clock does.
struct Unclocked {
    memory: f64,
    spread: f64,
    level: f64,
    dwell: [f64; 2],
    slow: f64,
    until: f64,
    is_slow: bool,
    pauses: f64,
    start: f64,
    drift: f64,
    before: f64,
}

impl Unclocked {
    fn draw(random: &mut Random) -> Self {
        let mut or_none = |value: f64| if random.below(2) == 0 { value } else { 0.0 };
        let (wanders, speeds, pauses, start, drift) =
            (or_none(1.0), or_none(1.0), or_none(1.0), or_none(1.0), or_none(1.0));
        Self {
            memory: 0.1 * 300.0f64.powf(random.unit()),
            spread: wanders * 0.3 * random.unit(),
            level: 0.0,
            dwell: [1.0 + 9.0 * random.unit(), 0.5 + 5.0 * random.unit()],
            slow: 1.0 - speeds * (0.2 + 0.6 * random.unit()),
            until: 0.0,
            is_slow: false,
            pauses: pauses * 0.05 * random.unit(),
            start: start * random.unit(),
            drift: drift * (random.unit() - 0.5),
            before: 0.0,
        }
    }

    fn rate(&mut self, at: f64, row: usize, random: &mut Random) -> f64 {
        let kept = (-(at - self.before) / self.memory).exp();
        self.before = at;
        self.level = self.level * kept + (1.0 - kept * kept).sqrt() * self.spread * random.normal();
        while self.until < at {
            self.is_slow = !self.is_slow;
            let dwell = self.dwell[usize::from(self.is_slow)];
            self.until += -dwell * (1.0 - random.unit()).ln();
        }
        let speed = if self.is_slow { self.slow } else { 1.0 };
        let begun = 1.0 - self.start * (-(row as f64) / 3.0).exp();
        let paused = if random.unit() < self.pauses { 0.0 } else { 1.0 };
        let drifted = (self.drift * at / 300.0).exp();
        speed * begun * paused * drifted * self.level.exp() * (1.0 + 0.05 * random.normal())
    }
}

fn not_there(lot: &Lot) -> Vec<Claim> {
    let runs = lot.effort.times(5_000, 200);
    let mut claims = Vec::new();
    for (row, long) in (0u64..).zip([false, true]) {
        let mut said = 0;
        for number in 0..runs as u64 {
            let mut random = lot.random(&[row, number]);
            let times = Times::draw(&mut random, long);
            let mut device = Unclocked::draw(&mut random);
            let visits =
                times.play(&mut random, &mut |at, row, random| device.rate(at, row, random));
            said += usize::from(find(&visits, ROW).is_some());
        }
        let what = if long { "a minute" } else { "2 s" };
        let text = format!("visits of {what}: a period said between {SHORTEST} s and {LONGEST} s");
        claims.push(Claim::share(text, AtMost(0.01), said, runs));
    }
    claims
}
