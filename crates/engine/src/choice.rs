//! Which class the next request of a mix is of.

use stats::Random;
use suite::model::{Choice, Mix};

use crate::shared::StreamShared;

/// One worker's chooser.
#[derive(Debug)]
pub(crate) enum Chooser {
    Dice {
        /// Sums of shares up to and with each class.
        cumulative: Box<[f64]>,
    },
    Interleave {
        shares: Box<[f64]>,
        /// How much of a request each class is owed.
        credits: Box<[f64]>,
    },
    Shared {
        /// Sums of weights up to and with each class.
        ends: Box<[u64]>,
        /// Of a worker that has the stream to itself; else the workers count together.
        alone: Option<u64>,
    },
    Ratio {
        ratio: f64,
        counts: [u64; 2],
    },
}

impl Chooser {
    /// * `alone`: no other worker plays the stream.
    pub(crate) fn new(mix: &Mix, alone: bool) -> Self {
        let weights = || mix.classes.iter().map(|class| class.weight);
        let total: f64 = weights().sum();
        let shares = || weights().map(|weight| weight / total);
        match mix.choice {
            Choice::Dice => {
                let sums = shares().scan(0.0, |sum, share| {
                    *sum += share;
                    Some(*sum)
                });
                Self::Dice { cumulative: sums.collect() }
            }
            Choice::Interleave => {
                let credits = vec![0.0; mix.classes.len()].into_boxed_slice();
                Self::Interleave { shares: shares().collect(), credits }
            }
            Choice::Shared => {
                let ends = weights().scan(0, |sum, weight| {
                    *sum += (weight as u64).max(1);
                    Some(*sum)
                });
                Self::Shared { ends: ends.collect(), alone: alone.then_some(0) }
            }
            Choice::Ratio => {
                let mut weights = weights();
                let (first, second) = (weights.next(), weights.next());
                let ratio = first.unwrap_or(1.0) / second.unwrap_or(1.0);
                Self::Ratio { ratio, counts: [0; 2] }
            }
        }
    }

    /// The index of the class of the next request.
    pub(crate) fn choose(&mut self, random: &mut Random, shared: &StreamShared) -> usize {
        match self {
            Self::Dice { cumulative } => {
                let dice = random.unit();
                let last = cumulative.len() - 1;
                cumulative.iter().position(|sum| dice < *sum).unwrap_or(last)
            }
            Self::Interleave { shares, credits } => deal(shares, credits),
            Self::Shared { ends, alone } => {
                let ticket = match alone {
                    Some(next) => {
                        *next += 1;
                        *next - 1
                    }
                    None => shared.take_ticket(),
                };
                let within = ends.last().map_or(0, |&end| ticket % end);
                ends.iter().position(|&end| within < end).unwrap_or(0)
            }
            Self::Ratio { ratio, counts: [firsts, seconds] } => {
                let first = (*firsts + 1) as f64 / ((*seconds + 1) as f64) < *ratio;
                *(if first { firsts } else { seconds }) += 1;
                usize::from(!first)
            }
        }
    }
}

/// Of the classes owed enough, the one that would first be owed too much: whoever is owed most,
/// the plain rule, lets classes wait for each other until one is more than a request behind.
/// Within `1 - 1/(2k - 2)` for k classes (Tijdeman 1980, The chairman assignment problem).
fn deal(shares: &[f64], credits: &mut [f64]) -> usize {
    if let [_] = shares {
        return 0;
    }
    let enough = 1.0 / (2.0 * (shares.len() - 1) as f64);
    let (mut chosen, mut soonest) = (0, f64::INFINITY);
    for (index, (credit, share)) in credits.iter_mut().zip(shares).enumerate() {
        *credit += share;
        let left = (1.0 - enough - *credit) / share;
        // A tenth of a millionth against decisions by rounding.
        if *credit >= enough - 1e-7 && left < soonest - 1e-7 {
            (chosen, soonest) = (index, left);
        }
    }
    credits[chosen] -= 1.0;
    chosen
}
