//! Random processes with known truth.

use stats::Random;

/// First-order autoregressive noise of standard deviation 1: each value is `rho` times the one
/// before plus what is new, started in its stationary state.
#[derive(Clone, Debug)]
pub struct Autoregressive {
    rho: f64,
    state: f64,
}

impl Autoregressive {
    /// `rho`: correlation of neighbours, in `(-1.0, 1.0)`.
    pub fn new(rho: f64, random: &mut Random) -> Self {
        Self { rho, state: random.normal() }
    }

    /// The next value.
    pub fn next(&mut self, random: &mut Random) -> f64 {
        let value = self.state;
        self.state = self.rho * self.state + (1.0 - self.rho * self.rho).sqrt() * random.normal();
        value
    }
}

/// Noise of standard deviation 1 that lasts, in continuous time: after its memory 1 / e of a deviation
/// is left. Goes on between visits.
#[derive(Clone, Debug)]
pub struct Lasting {
    memory: f64,
    state: f64,
}

impl Lasting {
    /// * `memory`: in seconds.
    pub fn new(memory: f64, random: &mut Random) -> Self {
        Self { memory, state: random.normal() }
    }

    /// Lets time pass.
    pub fn pass(&mut self, seconds: f64, random: &mut Random) {
        let keeps = (-seconds / self.memory).exp();
        self.state = keeps * self.state + (1.0 - keeps * keeps).sqrt() * random.normal();
    }

    /// Its mean over the next seconds, of five moments.
    pub fn mean(&mut self, seconds: f64, random: &mut Random) -> f64 {
        let mut sum = 0.0;
        for _ in 0..5 {
            self.pass(seconds / 5.0, random);
            sum += self.state;
        }
        sum / 5.0
    }
}

/// How the rate of a storage device moves in samples of 100 ms, relative to its level. The scatter
/// of single samples is 5 % in all of them, stalls and shifts apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// Autoregressive with this correlation of neighbours.
    Red(f64),
    /// 30 % of the variance moves slowly (correlation 0.97), the rest is white.
    Mixture,
    /// White, and every visit has a level of its own: scatter 3 %.
    Shift,
    /// Two levels, 2 s in each in the mean, 90 % of the variance; the rest is white.
    Regimes,
    /// White, and every 10 s in the mean nothing for 300 ms.
    Stalls,
}

/// Scatter of a sample.
const SCATTER: f64 = 0.05;
/// Probability, per sample, that a stall starts: one every 10 s.
const STALL_START: f64 = 0.01;
const STALL_SAMPLES: u32 = 3;

impl Process {
    /// Mean of a sample over all time.
    pub fn truth(self) -> f64 {
        match self {
            // A stall starts after a geometric number of good samples, 1 / p - 1 in the mean.
            Self::Stalls => {
                let good = 1.0 / STALL_START - 1.0;
                good / (good + f64::from(STALL_SAMPLES))
            }
            _ => 1.0,
        }
    }

    /// `n` samples from a visit at a random time.
    pub fn visit(self, n: usize, random: &mut Random) -> Vec<f64> {
        let white = |random: &mut Random, share: f64| SCATTER * share.sqrt() * random.normal();
        match self {
            Self::Red(rho) => {
                let mut noise = Autoregressive::new(rho, random);
                (0..n).map(|_| 1.0 + SCATTER * noise.next(random)).collect()
            }
            Self::Mixture => {
                let mut slow = Autoregressive::new(0.97, random);
                let mut next = |random: &mut Random| SCATTER * 0.3f64.sqrt() * slow.next(random);
                (0..n).map(|_| 1.0 + next(random) + white(random, 0.7)).collect()
            }
            Self::Shift => {
                let level = 1.0 + 0.03 * random.normal();
                (0..n).map(|_| level + white(random, 1.0)).collect()
            }
            Self::Regimes => {
                let mut side = if random.unit() < 0.5 { 1.0 } else { -1.0 };
                let mut next = |random: &mut Random| {
                    if random.unit() < 0.05 {
                        side = -side;
                    }
                    SCATTER * 0.9f64.sqrt() * side
                };
                (0..n).map(|_| 1.0 + next(random) + white(random, 0.1)).collect()
            }
            Self::Stalls => stalls(n, random),
        }
    }
}

fn stalls(n: usize, random: &mut Random) -> Vec<f64> {
    // Before the visit long enough to have forgotten that it began without a stall.
    const BEFORE: usize = 50;
    let mut left = 0;
    let mut next = || {
        if left == 0 && random.unit() < STALL_START {
            left = STALL_SAMPLES;
        }
        if left > 0 {
            left -= 1;
            return 0.0;
        }
        1.0 + SCATTER * random.normal()
    };
    (0..BEFORE + n).map(|_| next()).skip(BEFORE).collect()
}
