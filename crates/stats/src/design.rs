//! Designs of experiments: which runs tell what each factor does, and what may be said from them.
//!
//! - *One factor at a time*: a base, and every other level of every factor alone. Cheap, and blind to
//!   factors that work together.
//! - *Fraction*: two levels of each of `k` factors in `2^(k-p)` of the `2^k` combinations. Of resolution
//!   IV no factor is mixed up with another or with a pair of factors; pairs may be mixed up with
//!   pairs, and which with which is known beforehand.
//! - *Factorial*: every combination.
//!
//! In each the base comes again as every fifth run: what it differs by from itself is noise and
//! drift. All else is in random order, so that drift falls on no factor.
//!
//! Method: Box and Hunter 1961; fractions of least aberration after Fries and Hunter 1980.

use crate::Random;
use crate::interval::student_quantile;
use crate::random::derive_seed;

/// The base is every run of this number.
pub const BASE_EVERY: usize = 5;
/// A fraction is worth its mixed-up pairs from so many factors on.
pub const FRACTION_FACTORS_MIN: usize = 5;
/// Most factors of a fraction: 32 runs hold no more.
pub const FRACTION_FACTORS_MAX: usize = 16;
/// Most combinations of a factorial.
pub const FACTORIAL_MAX: usize = 4096;
/// Keeps the order of runs apart from whatever else a seed decides.
const ORDER: u64 = 0x6465_7369;

/// A run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// For each factor the place of its level; 0 is the base's.
    pub levels: Vec<usize>,
    /// Made once more only to see drift and noise.
    pub again: bool,
}

/// The base, and every other level of every factor alone.
///
/// * `levels[factor]`: how many levels it has.
/// * In the order to be made; begins and ends with the base.
pub fn one_at_a_time(levels: &[usize], seed: u64) -> Vec<Planned> {
    let change = |factor: usize, level: usize| {
        let mut change = vec![0; levels.len()];
        change[factor] = level;
        change
    };
    let changes = levels.iter().enumerate();
    let changes = changes.flat_map(|(factor, &n)| (1..n).map(move |level| (factor, level)));
    let changes = changes.map(|(factor, level)| change(factor, level)).collect();
    with_base(changes, levels.len(), seed)
}

/// Every combination; `None` where there are more than [`FACTORIAL_MAX`], or a factor has no level.
pub fn factorial(levels: &[usize], seed: u64) -> Option<Vec<Planned>> {
    let all = levels.iter().try_fold(1usize, |all, &n| all.checked_mul(n))?;
    if all == 0 || all > FACTORIAL_MAX {
        return None;
    }
    let combination = |mut number: usize| -> Vec<usize> {
        levels
            .iter()
            .map(|&n| {
                let level = number % n;
                number /= n;
                level
            })
            .collect()
    };
    Some(with_base((0..all).map(combination).collect(), levels.len(), seed))
}

/// Shuffles runs and puts the base before the first, after the last and after every fourth between.
fn with_base(mut runs: Vec<Vec<usize>>, factors: usize, seed: u64) -> Vec<Planned> {
    Random::new(derive_seed(seed, &[ORDER])).shuffle(&mut runs);
    let base = || Planned { levels: vec![0; factors], again: true };
    let mut planned = vec![base()];
    for four in runs.chunks(BASE_EVERY - 1) {
        let each = four.iter().map(|levels| Planned { levels: levels.clone(), again: false });
        planned.extend(each);
        planned.push(base());
    }
    planned
}

/// A regular fraction of all combinations of two-level factors.
///
/// Its combinations are `origin` xor those that sums of the basis give: factor `f` has level
/// `origin_f + columns[f] . x` in combination `x`, all modulo 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fraction {
    /// A bit for each factor: its level in combination 0.
    origin: u64,
    /// For each factor: the bits of `x` that decide its level.
    columns: Vec<u32>,
    /// Bits of `x`.
    bits: u32,
}

/// What one contrast of a fraction is of: all of these together, and nobody can say which.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Alias {
    /// Factors by themselves.
    pub factors: Vec<usize>,
    /// Pairs of factors: what one does differently at the other's levels.
    pub pairs: Vec<(usize, usize)>,
    column: u32,
}

/// What a contrast came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// What it is of.
    pub of: Alias,
    /// Of a factor: mean at its level 1 less that at level 0. Of pairs, for the first of them: mean
    /// where both have the same number of level less that where they have not.
    pub effect: f64,
    /// Its standard error in standard deviations of a single run.
    pub error: f64,
}

impl Fraction {
    /// The smallest fraction of resolution IV or more, with as few pairs mixed up as can be.
    ///
    /// * `factors`: [`FRACTION_FACTORS_MIN`] to [`FRACTION_FACTORS_MAX`]; `None` outside of those.
    /// * Holds the base: all factors at level 0.
    ///
    /// Tries all sets of generators of three basic factors or more, and takes the first of those
    /// with the fewest words of three, then of four, then of five.
    pub fn resolution_iv(factors: usize) -> Option<Self> {
        if !(FRACTION_FACTORS_MIN..=FRACTION_FACTORS_MAX).contains(&factors) {
            return None;
        }
        // Half as many factors as runs is the most that resolution IV has room for.
        let bits = (2 * factors).next_power_of_two().trailing_zeros();
        let basic: Vec<u32> = (0..bits).map(|bit| 1 << bit).collect();
        let candidates: Vec<u32> = (1..1u32 << bits).filter(|v| v.count_ones() >= 3).collect();
        let wanted = factors - basic.len();
        let mut best: Option<((u32, u32, u32), Vec<u32>)> = None;
        each_subset(candidates.len(), wanted, &mut |chosen| {
            let generators = chosen.iter().map(|&k| candidates[k]);
            let columns: Vec<u32> = basic.iter().copied().chain(generators).collect();
            let (three, four) = words_of_three_and_four(&columns);
            let least = best.as_ref().map(|(least, _)| *least);
            if least.is_some_and(|least| (three, four) > (least.0, least.1)) {
                return;
            }
            let count = (three, four, words_of_five(&columns));
            if least.is_none_or(|least| count < least) {
                best = Some((count, columns));
            }
        });
        best.map(|(_, columns)| Self { origin: 0, columns, bits })
    }

    /// The fraction that these combinations are, if they are one: all of it, nothing beside it.
    ///
    /// * `combinations`: a bit for each factor; repeats count once.
    /// * `None` for fewer than two different, or more than 64 factors.
    pub fn of(combinations: &[u64], factors: usize) -> Option<Self> {
        let mut all = combinations.to_vec();
        all.sort_unstable();
        all.dedup();
        let origin = *all.first()?;
        if factors > 64 || all.len() < 2 || !all.len().is_power_of_two() {
            return None;
        }
        let mut basis: Vec<u64> = Vec::new();
        for combination in &all {
            let left = basis.iter().fold(combination ^ origin, |left, b| left.min(left ^ b));
            if left != 0 {
                basis.push(left);
                basis.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        // As many as their sums: then every sum is there.
        if all.len() != 1 << basis.len() {
            return None;
        }
        let column = |factor: usize| -> u32 {
            let bits = basis.iter().enumerate();
            bits.map(|(bit, b)| ((b >> factor & 1) as u32) << bit).sum()
        };
        let columns = (0..factors).map(column).collect();
        Some(Self { origin, columns, bits: basis.len() as u32 })
    }

    /// How many combinations it has.
    pub fn runs(&self) -> usize {
        1 << self.bits
    }

    /// How many factors it has.
    pub fn factors(&self) -> usize {
        self.columns.len()
    }

    /// Combination `number`: a bit for each factor.
    pub fn combination(&self, number: usize) -> u64 {
        let level = |column: u32| u64::from((column & number as u32).count_ones() & 1);
        let each = self.columns.iter().enumerate();
        self.origin ^ each.map(|(factor, &column)| level(column) << factor).sum::<u64>()
    }

    /// The runs in the order to be made, the base among them as every fifth.
    pub fn planned(&self, seed: u64) -> Vec<Planned> {
        let levels = |number: usize| -> Vec<usize> {
            let combination = self.combination(number);
            (0..self.factors()).map(|factor| (combination >> factor & 1) as usize).collect()
        };
        with_base((0..self.runs()).map(levels).collect(), self.factors(), seed)
    }

    /// The defining words: sets of factors, a bit for each, whose levels together never change.
    ///
    /// * `None` where there are more than 2^16.
    pub fn words(&self) -> Option<Vec<u64>> {
        words(&self.columns)
    }

    /// Length of the shortest word: III where a factor is mixed up with a pair of others, IV where
    /// pairs are with pairs, V where neither is. `None` for all combinations, which have no words.
    pub fn resolution(&self) -> Option<u32> {
        self.words()?.iter().map(|word| word.count_ones()).min()
    }

    /// What is mixed up with what: factors first, then pairs; all that changes at all.
    pub fn aliases(&self) -> Vec<Alias> {
        let mut aliases: Vec<Alias> = Vec::new();
        let mut at = |column: u32| -> Option<usize> {
            // What never changes has no contrast.
            (column != 0).then(|| {
                let known = aliases.iter().position(|alias| alias.column == column);
                known.unwrap_or_else(|| {
                    aliases.push(Alias { column, ..Alias::default() });
                    aliases.len() - 1
                })
            })
        };
        let factors = self.columns.iter().enumerate();
        let places: Vec<_> = factors.map(|(factor, &column)| (factor, at(column))).collect();
        let n = self.factors();
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let pairs: Vec<_> =
            pairs.map(|(a, b)| ((a, b), at(self.columns[a] ^ self.columns[b]))).collect();
        for (factor, place) in places {
            place.into_iter().for_each(|place| aliases[place].factors.push(factor));
        }
        for (pair, place) in pairs {
            place.into_iter().for_each(|place| aliases[place].pairs.push(pair));
        }
        aliases
    }

    /// What every contrast came to.
    ///
    /// * `values`: (combination, logarithm of a rate); repeats of one are averaged.
    /// * `None` unless each combination has a finite value.
    pub fn effects(&self, values: &[(u64, f64)]) -> Option<Vec<Effect>> {
        let mean = |number: usize| {
            let combination = self.combination(number);
            let of = values.iter().filter(|(c, v)| *c == combination && v.is_finite());
            let (n, sum) = of.fold((0.0, 0.0), |(n, sum), (_, value)| (n + 1.0, sum + value));
            (n > 0.0).then(|| (sum / n, 1.0 / n))
        };
        let means: Vec<(f64, f64)> = (0..self.runs()).map(mean).collect::<Option<_>>()?;
        let half = means.len() as f64 / 2.0;
        let variance: f64 = means.iter().map(|(_, variance)| variance).sum();
        let error = variance.sqrt() / half;
        let each = self.aliases().into_iter().map(|of| {
            let even = |number: usize| (of.column & number as u32).count_ones().is_multiple_of(2);
            let signed = means.iter().enumerate().map(|(x, (m, _))| if even(x) { *m } else { -m });
            let contrast = signed.sum::<f64>() / half;
            let bit = |factor: usize| self.origin >> factor & 1 == 1;
            let flips = match (of.factors.first(), of.pairs.first()) {
                (Some(&factor), _) => !bit(factor),
                (None, Some(&(a, b))) => bit(a) != bit(b),
                (None, None) => false,
            };
            Effect { of, effect: if flips { -contrast } else { contrast }, error }
        });
        Some(each.collect())
    }
}

/// Standard deviation of a single run and its degrees of freedom, from runs that were made again.
///
/// * `values`: (combination, value); `None` where nothing finite was made twice.
pub fn noise_of_repeats(values: &[(u64, f64)]) -> Option<(f64, f64)> {
    let finite: Vec<&(u64, f64)> = values.iter().filter(|(_, v)| v.is_finite()).collect();
    let mut kinds: Vec<u64> = finite.iter().map(|(combination, _)| *combination).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let (mut squares, mut df) = (0.0, 0.0);
    for kind in kinds {
        let of: Vec<f64> = finite.iter().filter(|(c, _)| *c == kind).map(|(_, v)| *v).collect();
        let mean = of.iter().sum::<f64>() / of.len() as f64;
        squares += of.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        df += of.len() as f64 - 1.0;
    }
    (df > 0.0).then(|| ((squares / df).sqrt(), df))
}

/// Standard error of contrasts where nothing was repeated, and its degrees of freedom: most of them
/// are of nothing, and their size is noise.
///
/// * `None` for fewer than seven, of which too many may be of something.
///
/// Method: Lenth 1989: 1.5 times the median size of those below 2.5 times 1.5 times the median
/// size; a third as many degrees of freedom as contrasts.
pub fn lenth(contrasts: &[f64]) -> Option<(f64, f64)> {
    const FEWEST: usize = 7;
    let sizes: Vec<f64> = contrasts.iter().map(|c| c.abs()).filter(|c| c.is_finite()).collect();
    let first = 1.5 * crate::outlier::median(&sizes)?;
    let small: Vec<f64> = sizes.iter().copied().filter(|&c| c < 2.5 * first).collect();
    let error = 1.5 * crate::outlier::median(&small)?;
    (sizes.len() >= FEWEST).then(|| (error, sizes.len() as f64 / 3.0))
}

/// The effect on a logarithm that is found four times in five: `(t + t') 2 s / sqrt(N)`.
///
/// * `noise`: standard deviation of a single run's logarithm and its degrees of freedom.
/// * `runs`: all of the fraction, repeats counted; `tests`: how many effects are looked at.
/// * `t` is Student's at a level of 5 % shared among the tests, `t'` that of 80 %.
/// * `None` where that makes no sense.
pub fn detectable((deviation, df): (f64, f64), runs: usize, tests: usize) -> Option<f64> {
    if runs == 0 || tests == 0 || !deviation.is_finite() {
        return None;
    }
    let t = student_quantile(1.0 - 0.025 / tests as f64, df)? + student_quantile(0.8, df)?;
    Some(t * 2.0 * deviation / (runs as f64).sqrt())
}

/// Calls `with` for every set of `wanted` of the numbers below `of`, in order.
fn each_subset(of: usize, wanted: usize, with: &mut impl FnMut(&[usize])) {
    let mut chosen: Vec<usize> = (0..wanted).collect();
    if wanted > of {
        return;
    }
    loop {
        with(&chosen);
        // The last that can still move on.
        let Some(at) = (0..wanted).rev().find(|&at| chosen[at] < of - wanted + at) else { return };
        chosen[at] += 1;
        for next in at + 1..wanted {
            chosen[next] = chosen[next - 1] + 1;
        }
    }
}

/// How many words of up to three factors there are, and of four, without listing all.
fn words_of_three_and_four(columns: &[u32]) -> (u32, u32) {
    let size = 1 + columns.iter().copied().fold(0, |all, column| all | column) as usize;
    // How many pairs have each sum.
    let mut pairs = vec![0u32; size];
    pair_sums(columns).for_each(|(_, _, sum)| pairs[sum as usize] += 1);
    // Each word of three is three times a pair with a third, each of four three pairs of pairs.
    let of_three = columns.iter().map(|&column| pairs[column as usize]).sum::<u32>() / 3;
    let of_four = pairs.iter().skip(1).map(|n| n * n.saturating_sub(1) / 2).sum::<u32>() / 3;
    (pairs[0] + of_three, of_four)
}

fn words_of_five(columns: &[u32]) -> u32 {
    let sums: Vec<(usize, usize, u32)> = pair_sums(columns).collect();
    let mut found = 0;
    for (k, &(a, b, first)) in sums.iter().enumerate() {
        for &(c, d, second) in &sums[k + 1..] {
            let apart = a != c && a != d && b != c && b != d;
            if apart {
                let after = columns.iter().skip(b.max(d) + 1);
                found += after.filter(|&&column| column == first ^ second).count() as u32;
            }
        }
    }
    // The four that come first make three pairs of pairs.
    found / 3
}

/// The sums of all pairs of columns, with whose they are.
fn pair_sums(columns: &[u32]) -> impl Iterator<Item = (usize, usize, u32)> + '_ {
    let n = columns.len();
    (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b, columns[a] ^ columns[b])))
}

fn words(columns: &[u32]) -> Option<Vec<u64>> {
    const FREE_MAX: usize = 16;
    // Gauss: which sums of columns are nothing.
    let mut basis: Vec<(u32, u64)> = Vec::new();
    let mut free: Vec<u64> = Vec::new();
    for (factor, &column) in columns.iter().enumerate() {
        let (mut left, mut word) = (column, 1u64 << factor);
        for &(known, of) in &basis {
            if left ^ known < left {
                (left, word) = (left ^ known, word ^ of);
            }
        }
        match left {
            0 => free.push(word),
            _ => {
                basis.push((left, word));
                basis.sort_unstable_by_key(|(left, _)| std::cmp::Reverse(*left));
            }
        }
    }
    if free.len() > FREE_MAX {
        return None;
    }
    let sum = |of: usize| {
        let chosen = free.iter().enumerate().filter(|(k, _)| of >> k & 1 == 1);
        chosen.fold(0, |sum, (_, word)| sum ^ word)
    };
    Some((1..1usize << free.len()).map(sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sum of the levels of some factors over a combination, modulo 2.
    fn parity(combination: u64, factors: &[usize]) -> u64 {
        factors.iter().map(|&factor| combination >> factor & 1).sum::<u64>() % 2
    }

    /// Whether two sets of factors make the same contrast, by looking at every combination.
    fn mixed_up(fraction: &Fraction, a: &[usize], b: &[usize]) -> bool {
        let mut same = (0..fraction.runs()).map(|x| {
            let combination = fraction.combination(x);
            parity(combination, a) ^ parity(combination, b)
        });
        let first = same.next().unwrap();
        same.all(|other| other == first)
    }

    #[test]
    fn no_factor_is_mixed_up_with_a_factor_or_a_pair() {
        let runs = [16, 16, 16, 16, 32, 32, 32, 32, 32, 32, 32, 32];
        for (k, runs) in (5..=16).zip(runs) {
            let fraction = Fraction::resolution_iv(k).unwrap();
            assert_eq!((fraction.runs(), fraction.factors()), (runs, k));
            for a in 0..k {
                let ones: u64 = (0..runs).map(|x| parity(fraction.combination(x), &[a])).sum();
                assert_eq!(ones, runs as u64 / 2, "{k} factors: {a} is balanced");
                for b in (0..k).filter(|&b| b != a) {
                    assert!(!mixed_up(&fraction, &[a], &[b]), "{k} factors: {a} and {b}");
                    for c in (b + 1..k).filter(|&c| c != a) {
                        assert!(!mixed_up(&fraction, &[a], &[b, c]), "{k}: {a} and {b} {c}");
                    }
                }
            }
            let expected = if k == 5 { 5 } else { 4 };
            assert_eq!(fraction.resolution(), Some(expected), "{k} factors");
            assert_eq!(fraction.combination(0), 0, "the base is one of them");
        }
        assert!(Fraction::resolution_iv(4).is_none() && Fraction::resolution_iv(17).is_none());
    }

    #[test]
    fn as_few_pairs_are_mixed_up_as_the_tables_have() {
        // Words of four and of five in the known designs of least aberration.
        let known =
            [(5, 0, 1), (6, 3, 0), (7, 7, 0), (8, 14, 0), (9, 6, 8), (10, 10, 16), (11, 25, 0)];
        for (k, four, five) in known {
            let fraction = Fraction::resolution_iv(k).unwrap();
            let words = fraction.words().unwrap();
            let of = |n: u32| words.iter().filter(|word| word.count_ones() == n).count() as u32;
            assert_eq!((of(4), of(5)), (four, five), "{k} factors");
            assert_eq!(words_of_three_and_four(&fraction.columns), (0, four));
            assert_eq!(words_of_five(&fraction.columns), five);
        }
    }

    #[test]
    fn words_are_sets_whose_levels_together_never_change() {
        for k in 5..=11 {
            let fraction = Fraction::resolution_iv(k).unwrap();
            let words = fraction.words().unwrap();
            assert_eq!(words.len(), (1 << (k as u32 - fraction.bits)) - 1);
            for word in words {
                let factors: Vec<usize> = (0..k).filter(|f| word >> f & 1 == 1).collect();
                let mut sums =
                    (0..fraction.runs()).map(|x| parity(fraction.combination(x), &factors));
                assert!(sums.all(|sum| sum == 0));
            }
            let aliases = fraction.aliases();
            let pairs: usize = aliases.iter().map(|alias| alias.pairs.len()).sum();
            assert_eq!(pairs, k * (k - 1) / 2, "every pair is in one");
            for alias in aliases.iter().filter(|alias| !alias.factors.is_empty()) {
                assert!(alias.factors.len() == 1 && alias.pairs.is_empty());
            }
            for alias in &aliases {
                for (a, b) in &alias.pairs {
                    let (c, d) = alias.pairs[0];
                    assert!(mixed_up(&fraction, &[*a, *b], &[c, d]));
                }
            }
        }
    }

    #[test]
    fn a_fraction_is_known_again() {
        for k in 5..=11 {
            let fraction = Fraction::resolution_iv(k).unwrap();
            for shift in [0, 0b10110] {
                let mut all: Vec<u64> =
                    (0..fraction.runs()).map(|x| fraction.combination(x) ^ shift).collect();
                all.push(all[3]);
                let found = Fraction::of(&all, k).unwrap();
                assert_eq!(found.resolution(), fraction.resolution());
                let mut again: Vec<u64> = (0..found.runs()).map(|x| found.combination(x)).collect();
                again.sort_unstable();
                all.sort_unstable();
                all.dedup();
                assert_eq!(again, all);
                // One less, one more, one other: none.
                assert!(Fraction::of(&all[1..], k).is_none());
                let other = (0..1 << k).find(|c| !all.contains(c)).unwrap();
                all[1] = other;
                assert!(Fraction::of(&all, k).is_none());
            }
        }
        let all: Vec<u64> = (0..8).collect();
        assert_eq!(Fraction::of(&all, 3).unwrap().resolution(), None, "all combinations");
        assert!(Fraction::of(&[], 3).is_none() && Fraction::of(&[5, 5], 3).is_none());
        assert_eq!(Fraction::of(&[0, 3], 2).unwrap().resolution(), Some(2), "changed together");
    }

    #[test]
    fn planted_effects_come_back_exactly() {
        for (k, shift) in [(5, 0), (7, 0), (7, 0b101), (11, 0b11_0101)] {
            let fraction = Fraction::resolution_iv(k).unwrap();
            let value = |c: u64| {
                let level = |f: usize| (c >> f & 1) as f64;
                let same = if parity(c, &[0, 3]) == 0 { 0.5 } else { -0.5 };
                9.0 + 0.3 * level(1) - 0.2 * level(4) + 0.4 * same
            };
            let runs = (0..fraction.runs()).map(|x| fraction.combination(x) ^ shift);
            let values: Vec<(u64, f64)> = runs.map(|c| (c, value(c))).collect();
            let combinations: Vec<u64> = values.iter().map(|(c, _)| *c).collect();
            let found = Fraction::of(&combinations, k).unwrap();
            for effect in found.effects(&values).unwrap() {
                let wanted = match (effect.of.factors.as_slice(), effect.of.pairs.as_slice()) {
                    ([1], _) => 0.3,
                    ([4], _) => -0.2,
                    ([], pairs) if pairs.contains(&(0, 3)) => {
                        let (a, b) = pairs[0];
                        // Mixed-up pairs agree up to the sign.
                        let c = combinations[0];
                        let sign =
                            if parity(c, &[0, 3]) == parity(c, &[a, b]) { 1.0 } else { -1.0 };
                        0.4 * sign
                    }
                    _ => 0.0,
                };
                assert!((effect.effect - wanted).abs() < 1e-9, "{k} factors: {effect:?}");
                assert!((effect.error - 2.0 / (found.runs() as f64).sqrt()).abs() < 1e-12);
            }
            assert!(found.effects(&values[1..]).is_none());
        }
    }

    #[test]
    fn the_base_comes_again_as_every_fifth_run() {
        let runs = one_at_a_time(&[2, 3, 2], 7);
        // Four changes, and the base about them.
        assert_eq!(runs.len(), 6);
        assert!(runs[0].again && runs[5].again && runs[1..5].iter().all(|run| !run.again));
        let mut changes: Vec<_> = runs[1..5].iter().map(|run| run.levels.clone()).collect();
        changes.sort();
        assert_eq!(changes, [[0, 0, 1], [0, 1, 0], [0, 2, 0], [1, 0, 0]]);
        assert_eq!(runs, one_at_a_time(&[2, 3, 2], 7));
        assert!((8..20).any(|seed| runs != one_at_a_time(&[2, 3, 2], seed)), "seeds 8 to 19");
        let fraction = Fraction::resolution_iv(6).unwrap().planned(3);
        assert_eq!(fraction.len(), 16 + 5);
        for (number, run) in fraction.iter().enumerate() {
            assert_eq!(run.again, number % BASE_EVERY == 0, "run {number}");
        }
        assert_eq!(factorial(&[2, 3], 1).unwrap().len(), 6 + 3);
        assert!(factorial(&[64, 65], 1).is_none() && factorial(&[0, 2], 1).is_none());
        assert_eq!(one_at_a_time(&[], 1).len(), 1);
    }

    #[test]
    fn noise_is_from_repeats_or_from_what_is_of_nothing() {
        let values = [(0, 1.0), (0, 1.2), (5, 2.0), (5, 2.0), (5, 2.3), (3, 9.0)];
        let (deviation, df) = noise_of_repeats(&values).unwrap();
        assert!((deviation - (0.08_f64 / 3.0).sqrt()).abs() < 1e-9 && df == 3.0, "{deviation}");
        assert!(noise_of_repeats(&values[4..]).is_none());
        let contrasts = [0.01, -0.02, 0.015, 0.9, 0.02, -0.01, 0.03];
        let (error, df) = lenth(&contrasts).unwrap();
        // The large one is of something, and in no median.
        assert!((error - 1.5 * 0.0175).abs() < 1e-9 && (df - 7.0 / 3.0).abs() < 1e-9, "{error}");
        assert!(lenth(&contrasts[..6]).is_none());
        // 2 * 0.04 / sqrt(32) = 1.4 % is the standard error; t of one test among very many runs.
        let found = detectable((0.04, 1e6), 32, 1).unwrap();
        assert!((found - (1.96 + 0.842) * 0.04 * 2.0 / 32_f64.sqrt()).abs() < 1e-4, "{found}");
        assert!(
            detectable((f64::NAN, 4.0), 16, 6).is_none() && detectable((0.1, 4.0), 0, 6).is_none()
        );
    }
}
