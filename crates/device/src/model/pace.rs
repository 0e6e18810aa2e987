//! How fast the device works at each moment.
//!
//! Requests are timed on the device's own *work*, in ns at full speed. Wall time is where work
//! passes at a speed that is constant between breaks (a noise step, a switch of regime, the
//! start or end of a freeze). So noise, regimes and freezes act on what is in flight exactly,
//! and cost a request one division.

use units::Nanos;

use super::spec::{ModelSpec, NoiseSpec, RegimeSpec};
use crate::rng::Rng;

/// The noise's step.
const STEP: u64 = 100_000_000;

#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// Start of the present stretch of constant speed.
    wall: u64,
    work: f64,
    /// Work a ns.
    speed: f64,
    /// Wall time of the next break; it belongs to the next stretch.
    pub(super) end: u64,
    frozen_until: u64,
    visit: f64,
    visit_shift: f64,
    noise: Option<Noise>,
    regime: Option<Regime>,
    freezes: Freezes,
}

impl Pace {
    pub(super) fn new(spec: &ModelSpec, seed: u64) -> Self {
        let mut pace = Self {
            wall: 0,
            work: 0.0,
            speed: 1.0,
            end: 0,
            frozen_until: 0,
            visit: 1.0,
            visit_shift: spec.noise.visit_shift,
            noise: Noise::new(&spec.noise, seed),
            regime: spec.regime.as_ref().map(|regime| Regime::new(regime, seed)),
            freezes: Freezes::new(spec, seed),
        };
        pace.begin_stretch();
        pace
    }

    /// Work done by `now`, which is in the present stretch.
    #[inline]
    pub(super) fn work_at(&self, now: u64) -> f64 {
        self.work + now.saturating_sub(self.wall) as f64 * self.speed
    }

    /// Wall time at which `work` is done, if the present stretch goes on; `u64::MAX` for never.
    #[inline]
    pub(super) fn due(&self, work: f64) -> u64 {
        if self.speed == 0.0 {
            // What is due at the very start of a freeze is held.
            return if work < self.work { self.wall } else { u64::MAX };
        }
        // `as` takes the negative for zero.
        self.wall.saturating_add(((work - self.work) / self.speed) as u64)
    }

    #[inline]
    pub(super) const fn speed(&self) -> f64 {
        self.speed
    }

    /// Enters the next stretch. `head` is the earliest work not yet done.
    pub(super) fn step(&mut self, head: Option<f64>) {
        let mut work = self.work_at(self.end);
        // Rounding must not put before the break what was due at or after it.
        if let Some(head) = head
            && head < work
            && self.due(head) >= self.end
        {
            work = head;
        }
        self.work = work;
        self.wall = self.end;
        self.begin_stretch();
    }

    /// Breaks the present stretch at `now`.
    fn cut(&mut self, now: u64) {
        self.work = self.work_at(now);
        self.wall = now;
        self.begin_stretch();
    }

    pub(super) fn freeze(&mut self, now: u64, length: Nanos) {
        self.frozen_until = self.frozen_until.max(now.saturating_add(length.get()));
        self.cut(now);
    }

    pub(super) fn begin_visit(&mut self, now: u64, seed: u64) {
        self.visit = (self.visit_shift * Rng::new(seed, 4).normal()).exp();
        self.cut(now);
    }

    fn begin_stretch(&mut self) {
        let now = self.wall;
        while self.freezes.start <= now {
            let until = self.freezes.start.saturating_add(self.freezes.length);
            self.frozen_until = self.frozen_until.max(until);
            self.freezes.advance();
        }
        let mut end = self.freezes.start;
        let mut speed = self.visit;
        if let Some(noise) = &mut self.noise {
            if noise.next <= now {
                noise.advance();
            }
            speed *= noise.speed;
            end = end.min(noise.next);
        }
        if let Some(regime) = &mut self.regime {
            while regime.next <= now {
                regime.advance();
            }
            speed *= if regime.second { regime.ratio } else { 1.0 };
            end = end.min(regime.next);
        }
        if now < self.frozen_until {
            speed = 0.0;
            end = end.min(self.frozen_until);
        }
        self.speed = speed;
        self.end = end;
    }
}

/// AR(1) log rate.
#[derive(Clone, Debug)]
struct Noise {
    rng: Rng,
    rho: f64,
    sd: f64,
    log: f64,
    speed: f64,
    next: u64,
}

impl Noise {
    fn new(spec: &NoiseSpec, seed: u64) -> Option<Self> {
        if spec.cv <= 0.0 {
            return None;
        }
        let mut rng = Rng::new(seed, 1);
        // The coefficient of variation of a lognormal is sqrt(exp(sd^2) - 1).
        let sd = (spec.cv * spec.cv).ln_1p().sqrt();
        let log = sd * rng.normal();
        let mut noise = Self { rng, rho: spec.rho, sd, log, speed: 1.0, next: STEP };
        noise.set_speed();
        Some(noise)
    }

    fn advance(&mut self) {
        let innovation = self.sd * (1.0 - self.rho * self.rho).sqrt();
        self.log = self.rho * self.log + innovation * self.rng.normal();
        self.next = self.next.saturating_add(STEP);
        self.set_speed();
    }

    fn set_speed(&mut self) {
        // Mean 1, so that the mean rate stays the law's.
        self.speed = (self.log - self.sd * self.sd / 2.0).exp();
    }
}

#[derive(Clone, Debug)]
struct Regime {
    rng: Rng,
    ratio: f64,
    dwell: [f64; 2],
    second: bool,
    next: u64,
}

impl Regime {
    fn new(spec: &RegimeSpec, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 2);
        let first = spec.dwell.get() as f64;
        let second = spec.dwell_second.unwrap_or(spec.dwell).get() as f64;
        let starts_second = rng.uniform() <= second / (first + second);
        let mut regime =
            Self { rng, ratio: spec.ratio, dwell: [first, second], second: starts_second, next: 0 };
        regime.draw();
        regime
    }

    fn advance(&mut self) {
        self.second = !self.second;
        self.draw();
    }

    fn draw(&mut self) {
        let dwell = self.rng.exponential(self.dwell[usize::from(self.second)]);
        // At least a ns, or a tiny dwell would never end.
        self.next = self.next.saturating_add((dwell as u64).max(1));
    }
}

/// The next freeze of those planted and those by chance.
#[derive(Clone, Debug)]
struct Freezes {
    start: u64,
    length: u64,
    /// Start and length, latest first.
    planted: Vec<(u64, u64)>,
    random: Option<RandomFreezes>,
}

#[derive(Clone, Debug)]
struct RandomFreezes {
    rng: Rng,
    gap: f64,
    start: u64,
    length: u64,
}

impl RandomFreezes {
    fn draw(&mut self, from: u64) {
        let gap = self.rng.exponential(self.gap) as u64;
        self.start = from.saturating_add(gap.max(1));
    }
}

impl Freezes {
    fn new(spec: &ModelSpec, seed: u64) -> Self {
        let mut planted: Vec<_> =
            spec.freezes.iter().map(|f| (f.start.get(), f.length.get())).collect();
        planted.sort_unstable_by(|a, b| b.cmp(a));
        let random = spec.random_freezes.filter(|random| random.per_hour > 0.0).map(|random| {
            let mut freezes = RandomFreezes {
                rng: Rng::new(seed, 3),
                gap: 3600e9 / random.per_hour,
                start: 0,
                length: random.length.get(),
            };
            freezes.draw(0);
            freezes
        });
        let mut freezes = Self { start: 0, length: 0, planted, random };
        freezes.advance();
        freezes
    }

    fn advance(&mut self) {
        let planted = self.planted.last().map_or(u64::MAX, |freeze| freeze.0);
        if let Some(random) = &mut self.random
            && random.start < planted
        {
            (self.start, self.length) = (random.start, random.length);
            random.draw(random.start.saturating_add(random.length));
        } else {
            (self.start, self.length) = self.planted.pop().unwrap_or((u64::MAX, 0));
        }
    }
}
