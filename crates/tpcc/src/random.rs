//! The random values of TPC-C: the skewed numbers, names and strings (clauses 2.1.6 and 4.3.2).

use std::ops::RangeInclusive;

use stats::Random;
use stats::random::derive_seed;

use crate::scale::Scale;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A non-uniform number, called NURand in the specification: the bits of two uniform numbers, one of
/// them the wanted range, are joined by OR, and the result is turned by a constant C.
///
/// Numbers with many set bits are hot. Source: TPC-C 5.11, clause 2.1.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skew {
    /// A of the specification, a power of two less one.
    mask: u32,
    first: u32,
    last: u32,
    /// C of the specification, `0..=mask`.
    turn: u32,
}

/// The three skewed numbers of a run. Their constants are drawn once and kept: a constant drawn at each
/// call makes the numbers uniform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skews {
    /// Numbers of last names, from 0.
    pub names: Skew,
    /// Numbers of customers in their district, from 1.
    pub customers: Skew,
    /// Numbers of items, from 1.
    pub items: Skew,
}

impl Skew {
    /// With another constant C; only its bits within A count.
    pub const fn turned(self, turn: u32) -> Self {
        Self { turn: turn & self.mask, ..self }
    }

    /// The constant C.
    pub const fn turn(self) -> u32 {
        self.turn
    }

    /// One number.
    #[inline]
    pub fn draw(self, random: &mut Random) -> u32 {
        self.place(within(random, 0..=self.mask) | within(random, self.first..=self.last))
    }

    const fn place(self, joined: u32) -> u32 {
        (joined + self.turn) % (self.last - self.first + 1) + self.first
    }

    /// The exact law: how many of the `(A + 1) * (last - first + 1)` equally likely pairs give each
    /// number, `weights[number - first]`.
    ///
    /// Joining by OR is a product after summing over subsets of bits, so this takes `n log n` steps.
    pub fn weights(self) -> Vec<u64> {
        let width = ((self.last | self.mask) as usize + 1).next_power_of_two();
        let mut pairs = vec![0u64; width];
        pairs[self.first as usize..=self.last as usize].fill(1);
        let bits = || (0..width.trailing_zeros()).map(|bit| 1usize << bit);
        for bit in bits() {
            (0..width).filter(|set| set & bit != 0).for_each(|set| pairs[set] += pairs[set ^ bit]);
        }
        for (set, pair) in pairs.iter_mut().enumerate() {
            *pair <<= (set as u32 & self.mask).count_ones();
        }
        for bit in bits() {
            (0..width).filter(|set| set & bit != 0).for_each(|set| pairs[set] -= pairs[set ^ bit]);
        }
        let mut weights = vec![0; (self.last - self.first + 1) as usize];
        for (joined, pair) in pairs.into_iter().enumerate() {
            weights[(self.place(joined as u32) - self.first) as usize] += pair;
        }
        weights
    }
}

impl Skews {
    /// With every constant 0.
    pub fn plain(scale: Scale) -> Self {
        Self {
            names: Skew { mask: 255, first: 0, last: scale.names() - 1, turn: 0 },
            customers: Skew { mask: 1023, first: 1, last: scale.customers(), turn: 0 },
            items: Skew { mask: 8191, first: 1, last: scale.items(), turn: 0 },
        }
    }

    /// Of the load: it draws names only.
    pub fn at_load(scale: Scale, seed: u64) -> Self {
        let plain = Self::plain(scale);
        let mut random = Random::new(derive_seed(seed, &[0]));
        Self { names: plain.names.turned(within(&mut random, 0..=255)), ..plain }
    }

    /// Of a run on what was loaded with these. The constant of names keeps the distance from the load's
    /// that clause 2.1.6.1 asks for: 65 to 119, but neither 96 nor 112.
    pub fn at_run(self, seed: u64) -> Self {
        let mut random = Random::new(derive_seed(seed, &[1]));
        let names = loop {
            let turn = within(&mut random, 0..=255);
            match turn.abs_diff(self.names.turn) {
                96 | 112 => {}
                65..=119 => break turn,
                _ => {}
            }
        };
        Self {
            names: self.names.turned(names),
            customers: self.customers.turned(within(&mut random, 0..=1023)),
            items: self.items.turned(within(&mut random, 0..=8191)),
        }
    }
}

/// Uniform in a range that is not empty.
#[inline]
pub(crate) fn within(random: &mut Random, range: RangeInclusive<u32>) -> u32 {
    let (first, last) = range.into_inner();
    first + random.below(u64::from(last - first) + 1) as u32
}

/// The last name of a number below 1000: a syllable for each of its three digits.
pub fn last_name(number: u32) -> String {
    [number / 100, number / 10, number].map(|digit| SYLLABLES[digit as usize % 10]).concat()
}

/// Random letters and digits, as many as a number drawn from `length`.
pub(crate) fn letters(random: &mut Random, length: RangeInclusive<u32>) -> String {
    let length = within(random, length);
    (0..length).map(|_| char::from(ALPHANUMERIC[random.below(62) as usize])).collect()
}

/// `length` random digits.
pub(crate) fn digits(random: &mut Random, length: u32) -> String {
    (0..length).map(|_| char::from(b'0' + random.below(10) as u8)).collect()
}

/// Letters and digits of 26 to 50 characters; a tenth of them have `ORIGINAL` at a random place.
pub(crate) fn data(random: &mut Random) -> String {
    let mut data = letters(random, 26..=50);
    if random.below(10) == 0 {
        let at = random.below(data.len() as u64 - 7) as usize;
        data.replace_range(at..at + 8, "ORIGINAL");
    }
    data
}
