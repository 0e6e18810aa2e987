//! Which factor matters: designs of several runs, and what may be said from them.
//!
//! First what cannot be said: factors that changed together. Then, for each other factor, pairs
//! of runs that differ in it alone.

mod design;
mod fraction;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use stats::Random;
use stats::interval::student_quantile;
use stats::multiple::holm;
use stats::random::derive_seed;

pub use self::fraction::{Fraction, FractionEffect, NoiseFrom};

use self::design::{Table, residual_error};
use crate::places::{Place, Told, places};
use crate::view::View;

/// Adjusted p at which an effect is called.
const ALPHA: f64 = 0.05;
/// Signs are drawn, not all tried, beyond this many pairs.
const EXACT_PAIRS: usize = 12;
const DRAWS: usize = 4000;
/// Degrees of freedom that a line over the levels must leave.
const TREND_DF_MIN: f64 = 2.0;
const SEED: u64 = 0xfac7;
/// 97.5 % of the normal distribution and 80 % of it: an effect of so many standard errors is found
/// four times in five.
const FOUND: f64 = 1.96 + 0.84;

/// A run of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// (factor, level). Every observation has the same factors.
    pub levels: Vec<(String, String)>,
    /// Measured close in time with the others of this number.
    pub block: Option<u32>,
    /// ln of what was measured.
    pub ln_value: f64,
}

/// Why a factor is not judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refusal {
    /// These changed together: whatever the difference is, no single one can be credited.
    Inseparable(Vec<String>),
    /// It has one level only.
    Constant(String),
    /// No two runs differ in it alone.
    NoPairs(String),
}

/// How a factor works depends on another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Interaction {
    /// The other factor.
    pub with: String,
    /// (level of the other, ratio there), in the order of the levels.
    pub ratios: Vec<(String, f64)>,
    /// Adjusted p.
    pub p: f64,
}

/// What an effect is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JudgedBy {
    /// All other ways to lay the factor's labels: nothing is assumed of the noise.
    Labels,
    /// How repeats of one combination differ among each other, by Student's t. Where there are too
    /// few runs for the labels: a base that comes again, and each other level once.
    Repeats,
    /// How far runs are from a power of the level, where it is a number and each was measured too
    /// rarely for the labels to show anything.
    Trend,
}

/// What one factor does.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// The factor.
    pub factor: String,
    /// From this level ...
    pub from: String,
    /// ... to this one. With more than two levels: the two that are furthest apart.
    pub to: String,
    /// Mean ratio of the pairs, upper level by lower.
    pub ratio: f64,
    /// Lower end of its 95 % interval; `None` with one pair.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Median |ln ratio|'s relatives: mean of |ln ratio| over all pairs (Morris' mu*).
    pub mu_star: f64,
    /// Standard deviation of ln ratio over the pairs.
    pub sigma: f64,
    /// Pairs of these two levels that differ in this factor alone.
    pub pairs: u32,
    /// Chance of so large an effect if the factor did nothing; see `judged_by`.
    pub p: f64,
    /// What the effect is held against.
    pub judged_by: JudgedBy,
    /// The least `p` that so few runs could have shown, however large the effect.
    pub p_least: f64,
    /// Adjusted for the number of factors.
    pub p_adjusted: f64,
    /// Adjusted p is at most 0.05.
    pub matters: bool,
    /// The ratio depends on other factors.
    pub interactions: Vec<Interaction>,
    /// Share of the variance, in a full factorial.
    pub share: Option<f64>,
}

/// What a design says about its factors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Factors {
    /// What cannot be said.
    pub refused: Vec<Refusal>,
    /// Largest effect first.
    pub effects: Vec<Effect>,
    /// What runs say together that are a fraction of all combinations of two levels each, where no
    /// two differ in one factor alone.
    pub fraction: Option<Fraction>,
    /// Effects from this ratio on would be found four times in five; `None` where the noise is not
    /// known.
    pub detectable: Option<f64>,
    /// In a full factorial: share of the variance in all interactions together.
    pub share_interactions: Option<f64>,
    /// How many observations counted.
    pub observations: u32,
}

/// A place, and which of several streams there.
type Row = (Place, Option<String>);

/// The observations that runs are: one each, the mean of ln rate over the cells that all of them
/// have. Ratios are then geometric means over the grid.
///
/// * `levels`: (factor, its level in each run, in the order of `views`).
pub fn from_views(views: &[&View<'_>], levels: &[(String, Vec<String>)]) -> Vec<Observation> {
    let told: Vec<Told<'_>> = views.iter().map(|view| Told::new(view.run)).collect();
    let places = places(&told.iter().collect::<Vec<_>>());
    let rows_of = |(view, places): (&&View<'_>, &BTreeMap<u32, Place>)| {
        let mut rows: BTreeMap<Row, f64> = BTreeMap::new();
        for row in view.grid_rows() {
            let (rates, stream) = (row.ln_rates(), row.stream_name().map(str::to_owned));
            if let (false, Some(place)) = (rates.is_empty(), places.get(&row.cell.index)) {
                rows.entry((place.clone(), stream)).or_insert(mean(&rates));
            }
        }
        rows
    };
    let runs: Vec<BTreeMap<Row, f64>> = views.iter().zip(&places).map(rows_of).collect();
    let Some(first) = runs.first() else { return Vec::new() };
    let common: Vec<&Row> =
        first.keys().filter(|row| runs.iter().all(|run| run.contains_key(*row))).collect();
    if common.is_empty() {
        return Vec::new();
    }
    let observe = |(index, run): (usize, &BTreeMap<Row, f64>)| Observation {
        levels: levels
            .iter()
            .filter_map(|(name, values)| Some((name.clone(), values.get(index)?.clone())))
            .collect(),
        block: None,
        ln_value: common.iter().filter_map(|row| run.get(*row)).sum::<f64>() / common.len() as f64,
    };
    runs.iter().enumerate().map(observe).collect()
}

/// What a design says about its factors.
///
/// Observations whose factors are not those of the first, or whose value is not finite, are left
/// out. Everything random is from a fixed seed.
pub fn factors(design: &[Observation]) -> Factors {
    let table = Table::new(design);
    let mut refused = table.constants();
    let (groups, estimable) = table.aliases();
    refused.extend(groups.into_iter().map(Refusal::Inseparable));
    let noise = residual_error(&table);
    let mut effects = Vec::new();
    for factor in estimable {
        let pairs = table.pairs(factor);
        let effect = effect(&table, factor, &pairs);
        let effect = effect
            .map(|effect| by_repeats(&table, &pairs, noise, effect))
            .map(|effect| by_trend(&table, factor, effect));
        match effect {
            Some(effect) => effects.push((factor, pairs, effect)),
            None => refused.push(Refusal::NoPairs(table.names[factor].clone())),
        }
    }
    // Where pairs tell, they do so without any assumption.
    let fraction = if effects.is_empty() { fraction::of(&table) } else { None };
    if let Some(fraction) = &fraction {
        refused.retain(|r| !matches!(r, Refusal::NoPairs(factor) if fraction.tells(factor)));
    }
    let adjusted = holm(&effects.iter().map(|(_, _, effect)| effect.p).collect::<Vec<_>>());
    for ((.., effect), p) in effects.iter_mut().zip(adjusted) {
        effect.p_adjusted = p;
        effect.matters = p <= ALPHA;
    }
    interactions(&table, noise, &mut effects);
    let shares = table.shares();
    let detectable = noise.and_then(|(sd, _)| {
        let n = table.values.len() as f64;
        (n > 0.0).then(|| (FOUND * 2.0 * sd / n.sqrt()).exp())
    });
    let mut effects: Vec<Effect> = effects
        .into_iter()
        .map(|(factor, _, mut effect)| {
            effect.share = shares.as_ref().map(|(shares, _)| shares[factor]);
            effect
        })
        .collect();
    effects.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    Factors {
        refused,
        effects,
        fraction,
        detectable,
        share_interactions: shares.map(|(_, rest)| rest),
        observations: u32::try_from(table.values.len()).unwrap_or(u32::MAX),
    }
}

/// What effects are ranked by. Noise alone gives every factor a mean of |ln ratio|, so that counts
/// only where the ratio is known to depend on others; elsewhere the ratio itself does.
fn weight(effect: &Effect) -> f64 {
    if effect.interactions.is_empty() { effect.ratio.ln().abs() } else { effect.mu_star }
}

/// Two observations that differ in one factor alone, and in nothing else.
#[derive(Clone, Copy, Debug)]
struct Pair {
    /// Of the lower level.
    a: usize,
    /// Of the upper level.
    b: usize,
    /// Place of the lower level.
    from: usize,
    /// Place of the upper level.
    to: usize,
}

fn effect(table: &Table, factor: usize, pairs: &[Pair]) -> Option<Effect> {
    let steps: BTreeSet<(usize, usize)> = pairs.iter().map(|pair| (pair.from, pair.to)).collect();
    let differences = |step: (usize, usize)| -> Vec<f64> {
        let of = pairs.iter().filter(|pair| (pair.from, pair.to) == step);
        of.map(|pair| table.values[pair.b] - table.values[pair.a]).collect()
    };
    let furthest = steps
        .into_iter()
        .max_by(|&x, &y| mean(&differences(x)).abs().total_cmp(&mean(&differences(y)).abs()))?;
    let chosen = differences(furthest);
    let all: Vec<f64> =
        pairs.iter().map(|pair| table.values[pair.b] - table.values[pair.a]).collect();
    let middle = mean(&chosen);
    let sigma = deviation(&chosen);
    let half = (chosen.len() >= 2)
        .then(|| student_quantile(0.975, chosen.len() as f64 - 1.0))
        .flatten()
        .map(|t| t * sigma / (chosen.len() as f64).sqrt());
    let p = permutation(table, factor);
    Some(Effect {
        factor: table.names[factor].clone(),
        from: table.levels[factor][furthest.0].clone(),
        to: table.levels[factor][furthest.1].clone(),
        ratio: middle.exp(),
        low: half.map(|half| (middle - half).exp()),
        high: half.map(|half| (middle + half).exp()),
        mu_star: mean(&all.iter().map(|d| d.abs()).collect::<Vec<_>>()),
        sigma,
        pairs: u32::try_from(chosen.len()).unwrap_or(u32::MAX),
        p,
        judged_by: JudgedBy::Labels,
        p_least: least(table, factor),
        p_adjusted: 1.0,
        matters: false,
        interactions: Vec::new(),
        share: None,
    })
}

/// Holds an effect against the noise that repeats show, where the labels could show nothing.
///
/// Its pairs share runs, so its error is that of the weights with which each run counts. Of several
/// levels the furthest was picked, which counts for as many looks.
fn by_repeats(table: &Table, pairs: &[Pair], noise: Option<(f64, f64)>, effect: Effect) -> Effect {
    let combinations: BTreeSet<&Vec<usize>> = table.rows.iter().collect();
    let has_repeats = combinations.len() < table.rows.len();
    let Some((sd, df)) = noise.filter(|_| has_repeats && effect.p_least > ALPHA) else {
        return effect;
    };
    let factor = table.names.iter().position(|name| *name == effect.factor);
    let Some(levels) = factor.and_then(|factor| table.levels.get(factor)) else { return effect };
    let place = |level: &String| levels.iter().position(|known| known == level);
    let (from, to) = (place(&effect.from), place(&effect.to));
    let mut weights = vec![0.0; table.values.len()];
    let of = || pairs.iter().filter(|pair| (Some(pair.from), Some(pair.to)) == (from, to));
    let each = 1.0 / of().count().max(1) as f64;
    for pair in of() {
        weights[pair.b] += each;
        weights[pair.a] -= each;
    }
    let error = sd * weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
    let Some(t) = student_quantile(0.975, df).filter(|_| error > 0.0) else { return effect };
    let ln = effect.ratio.ln();
    let steps: BTreeSet<(usize, usize)> = pairs.iter().map(|pair| (pair.from, pair.to)).collect();
    let p = 2.0 * design::student_tail(ln.abs() / error, df) * steps.len() as f64;
    Effect {
        p: p.min(1.0),
        p_least: 0.0,
        judged_by: JudgedBy::Repeats,
        low: Some((ln - t * error).exp()),
        high: Some((ln + t * error).exp()),
        ..effect
    }
}

/// Judges a factor whose levels are numbers by the line of ln value over ln level, where neither labels nor
/// repeats could show anything: four runs with 1, 2, 4 and 8 disks tell that more disks are faster.
fn by_trend(table: &Table, factor: usize, effect: Effect) -> Effect {
    let numbers: Option<Vec<f64>> = table.levels[factor]
        .iter()
        .map(|level| level.parse().ok().filter(|x: &f64| x.is_finite() && *x > 0.0))
        .collect();
    let Some(numbers) = numbers.filter(|_| effect.p_least > ALPHA) else { return effect };
    let contexts = table.contexts(factor);
    let (mut xx, mut xy, mut yy, mut runs) = (0.0, 0.0, 0.0, 0);
    for context in &contexts {
        let x: Vec<f64> =
            context.iter().map(|&run| numbers[table.rows[run][factor]].ln()).collect();
        let y: Vec<f64> = context.iter().map(|&run| table.values[run]).collect();
        let (x_mean, y_mean) = (mean(&x), mean(&y));
        for (x, y) in x.iter().zip(&y) {
            let (x, y) = (x - x_mean, y - y_mean);
            (xx, xy, yy) = (xx + x * x, xy + x * y, yy + y * y);
        }
        runs += context.len();
    }
    let df = runs as f64 - contexts.len() as f64 - 1.0;
    let Some(t) = student_quantile(0.975, df).filter(|_| df >= TREND_DF_MIN && xx > 0.0) else {
        return effect;
    };
    let slope = xy / xx;
    let error = ((yy - slope * xy).max(0.0) / df / xx).sqrt();
    let ends = numbers.first().zip(numbers.last()).map_or(0.0, |(first, last)| (last / first).ln());
    let levels = &table.levels[factor];
    let (Some(from), Some(to)) = (levels.first(), levels.last()) else { return effect };
    let p = if error > 0.0 { 2.0 * design::student_tail(slope.abs() / error, df) } else { 0.0 };
    // No line is no acquittal: so few runs say nothing then.
    if p > ALPHA {
        return effect;
    }
    Effect {
        from: from.clone(),
        to: to.clone(),
        ratio: (slope * ends).exp(),
        low: Some(((slope - t * error) * ends).exp()),
        high: Some(((slope + t * error) * ends).exp()),
        p,
        p_least: 0.0,
        judged_by: JudgedBy::Trend,
        ..effect
    }
}

/// Chance of so large an effect if the labels of this factor meant nothing: they are shuffled among
/// runs that are alike in everything else, block included. All ways are tried where each such set
/// is one pair and there are at most 12; otherwise 4000 are drawn.
fn permutation(table: &Table, factor: usize) -> f64 {
    let sets = table.contexts(factor);
    let levels = table.levels[factor].len();
    let labels = |sets: &[Vec<usize>]| -> Vec<Vec<usize>> {
        sets.iter().map(|set| set.iter().map(|&row| table.rows[row][factor]).collect()).collect()
    };
    let values: Vec<Vec<f64>> =
        sets.iter().map(|set| set.iter().map(|&row| table.values[row]).collect()).collect();
    // Spread of the level means about their sets' means.
    let statistic = |labels: &[Vec<usize>]| {
        let mut sums = vec![(0.0, 0.0); levels];
        for (labels, values) in labels.iter().zip(&values) {
            let middle = mean(values);
            for (&label, value) in labels.iter().zip(values) {
                sums[label].0 += value - middle;
                sums[label].1 += 1.0;
            }
        }
        sums.iter().filter(|(_, n)| *n > 0.0).map(|(sum, n)| sum * sum / n).sum::<f64>()
    };
    let mut labels = labels(&sets);
    let seen = statistic(&labels) * (1.0 - 1e-9);
    let pairs = labels.iter().all(|set| set.len() == 2);
    if pairs && sets.len() <= EXACT_PAIRS {
        let ways = 1usize << sets.len();
        let mut as_far = 0;
        for way in 0..ways {
            let swapped: Vec<Vec<usize>> = labels
                .iter()
                .enumerate()
                .map(|(i, set)| {
                    let mut set = set.clone();
                    if way >> i & 1 == 1 {
                        set.reverse();
                    }
                    set
                })
                .collect();
            as_far += usize::from(statistic(&swapped) >= seen);
        }
        return as_far as f64 / ways as f64;
    }
    let mut random = Random::new(derive_seed(SEED, &[factor as u64]));
    let mut as_far = 1;
    for _ in 0..DRAWS {
        for set in &mut labels {
            random.shuffle(set);
        }
        as_far += usize::from(statistic(&labels) >= seen);
    }
    as_far as f64 / (DRAWS + 1) as f64
}

/// The share of all ways to lay the labels that must do as well as the best: what [`permutation`]
/// cannot go below.
fn least(table: &Table, factor: usize) -> f64 {
    let levels = table.levels[factor].len();
    let (mut ln_ways, mut even) = (0.0, true);
    let contexts = table.contexts(factor);
    // Where each level is there once in a single set, any order of the labels has the same spread.
    if let [only] = contexts.as_slice()
        && only.len()
            == only.iter().map(|&row| table.rows[row][factor]).collect::<BTreeSet<_>>().len()
    {
        return 1.0;
    }
    for set in contexts {
        let mut counts = vec![0u32; levels];
        for &row in &set {
            counts[table.rows[row][factor]] += 1;
        }
        ln_ways += ln_factorial(set.len() as u32);
        ln_ways -= counts.iter().map(|&count| ln_factorial(count)).sum::<f64>();
        even &= counts.iter().all(|&count| count == counts[0]);
    }
    // Two levels that came equally often may change places.
    let alike = if levels == 2 && even { 2.0 } else { 1.0 };
    (alike / ln_ways.exp()).min(1.0)
}

fn ln_factorial(n: u32) -> f64 {
    (2..=n).map(|k| f64::from(k).ln()).sum()
}

/// A factor works differently at another factor's levels: the spread of its pairs is more than half
/// their mean, and the difference between the levels is beyond noise.
fn interactions(
    table: &Table,
    noise: Option<(f64, f64)>,
    effects: &mut [(usize, Vec<Pair>, Effect)],
) {
    let Some((sd, df)) = noise else { return };
    let mut found = Vec::new();
    for (place, (factor, pairs, _)) in effects.iter().enumerate() {
        for other in (0..table.names.len()).filter(|other| other != factor) {
            if let Some((ratios, p)) = contrast(table, pairs, other, sd, df) {
                found.push((place, other, ratios, p));
            }
        }
    }
    let adjusted = holm(&found.iter().map(|(.., p)| *p).collect::<Vec<_>>());
    for ((place, other, ratios, _), p) in found.into_iter().zip(adjusted) {
        let effect = &mut effects[place].2;
        if p <= ALPHA && effect.sigma > effect.mu_star / 2.0 {
            effect.interactions.push(Interaction { with: table.names[other].clone(), ratios, p });
        }
    }
}

/// The factor's ratio at each level of another, and the p of the largest difference between them.
fn contrast(
    table: &Table,
    pairs: &[Pair],
    other: usize,
    sd: f64,
    df: f64,
) -> Option<(Vec<(String, f64)>, f64)> {
    let mut by_level: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let first = pairs.first()?;
    for pair in pairs.iter().filter(|pair| (pair.from, pair.to) == (first.from, first.to)) {
        let level = table.rows[pair.a][other];
        by_level.entry(level).or_default().push(table.values[pair.b] - table.values[pair.a]);
    }
    let means: Vec<(usize, f64, f64)> =
        by_level.iter().map(|(&level, d)| (level, mean(d), d.len() as f64)).collect();
    let low = means.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let high = means.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    if low.0 == high.0 {
        return None;
    }
    // A difference of two runs has twice the variance of one.
    let error = sd * (2.0 / low.2 + 2.0 / high.2).sqrt();
    let p = 2.0 * design::student_tail((high.1 - low.1) / error, df);
    // The two levels are the extremes of so many.
    let choices = (means.len() * (means.len() - 1) / 2) as f64;
    let name = |(level, middle, _): &(usize, f64, f64)| {
        (table.levels[other][*level].clone(), middle.exp())
    };
    Some((means.iter().map(name).collect(), (p * choices).min(1.0)))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|v| (v - middle).powi(2)).sum();
    (squares / (values.len() as f64 - 1.0)).sqrt()
}
