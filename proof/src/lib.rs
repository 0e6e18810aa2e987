//! Planted truths that every statistic must find, and broken methods that must not pass.
//!
//! A [`Proof`] simulates what a method has to cope with, thousands of times from a fixed seed,
//! and counts. Its [`Claim`]s say what the count must be. Some claims are about a *broken twin*:
//! a method known to be wrong, put to the same test. Such a claim must fail; if it does not, the
//! test has no teeth.
//!
//! Each runs in two sizes: short in the tests, where a bound is eased by two standard errors of
//! the smaller count, and full behind `make proof`, where it is not.

use stats::Random;
use stats::random::derive_seed;

pub mod items;
pub mod processes;

/// Everything here starts from this seed.
pub const SEED: u64 = 20_081_121;

/// How much to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For the tests: all proofs together in minutes on two processors.
    Short,
    /// The whole count.
    Full,
}

impl Effort {
    /// Repetitions: `full`, or `short` in the short form.
    pub fn times(self, full: usize, short: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Short => short,
        }
    }
}

/// A simulation and what it must show.
#[derive(Clone, Copy)]
pub struct Proof {
    /// In the tests' names and the table: `visits-coverage`.
    pub name: &'static str,
    /// What is simulated, in a sentence.
    pub about: &'static str,
    /// Simulates. All randomness comes from the [`Lot`].
    pub run: fn(&Lot) -> Vec<Claim>,
}

/// What a proof is given.
#[derive(Clone, Copy, Debug)]
pub struct Lot {
    /// How much to do.
    pub effort: Effort,
    /// Where its randomness comes from.
    pub seed: u64,
}

impl Lot {
    /// A generator of its own for one of many repetitions.
    pub fn random(&self, labels: &[u64]) -> Random {
        Random::new(derive_seed(self.seed, labels))
    }
}

/// What must be so.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Of what: `coverage at rho 0.8`.
    pub what: String,
    /// The bound.
    pub wanted: Bound,
    /// What was counted, in the bound's unit.
    pub seen: f64,
    /// How many independent trials a share was counted over; 0 when `seen` is no share.
    pub trials: usize,
    /// About a broken method: it must fail.
    pub broken: bool,
}

/// A bound on a number. Shares are in `0.0..=1.0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// No less than this.
    AtLeast(f64),
    /// No more than this.
    AtMost(f64),
    /// Within these, ends included.
    Within(f64, f64),
}

impl Claim {
    /// A share of so many trials that were so.
    pub fn share(what: impl Into<String>, wanted: Bound, yes: usize, trials: usize) -> Self {
        let seen = yes as f64 / trials.max(1) as f64;
        Self { what: what.into(), wanted, seen, trials, broken: false }
    }

    /// A number that is no share: a mean, an error.
    pub fn number(what: impl Into<String>, wanted: Bound, seen: f64) -> Self {
        Self { what: what.into(), wanted, seen, trials: 0, broken: false }
    }

    /// The claim as one about a broken method.
    #[must_use]
    pub fn of_broken(self) -> Self {
        Self { broken: true, ..self }
    }

    /// Whether the bound holds.
    ///
    /// In the short form shares are eased by two standard errors of their count.
    pub fn holds(&self, effort: Effort) -> bool {
        let slack = match effort {
            Effort::Short if self.trials > 0 && !self.broken => {
                let bound = match self.wanted {
                    Bound::AtLeast(b) | Bound::AtMost(b) | Bound::Within(b, _) => b,
                };
                2.0 * (bound * (1.0 - bound) / self.trials as f64).sqrt()
            }
            _ => 0.0,
        };
        match self.wanted {
            Bound::AtLeast(low) => self.seen >= low - slack,
            Bound::AtMost(high) => self.seen <= high + slack,
            Bound::Within(low, high) => (low - slack..=high + slack).contains(&self.seen),
        }
    }

    /// Whether it is as it must be: a claim holds, one about a broken method does not.
    pub fn is_right(&self, effort: Effort) -> bool {
        self.holds(effort) != self.broken
    }
}

/// Every proof, in the order of the table.
pub fn proofs() -> Vec<Proof> {
    items::ALL.iter().flat_map(|list| list.iter().copied()).collect()
}

/// Runs one.
pub fn run(proof: &Proof, effort: Effort) -> Vec<Claim> {
    let label = proof.name.bytes().fold(0u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte));
    (proof.run)(&Lot { effort, seed: derive_seed(SEED, &[label]) })
}
