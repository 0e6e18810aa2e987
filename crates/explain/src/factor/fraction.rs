//! A fraction of all combinations: no two runs differ in one factor alone, and yet each factor's
//! effect is told, since all others are balanced against it.

use finding::{Code, Finding, Number, Value};
use schemars::JsonSchema;
use serde::Serialize;
use stats::design::{self, detectable, lenth, noise_of_repeats};
use stats::multiple::holm;
use stats::paired::Contrast;

use super::ALPHA;
use super::design::Table;
use super::words::ranged;

/// What a fraction says about its factors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Fraction {
    /// How many factors vary, each between two levels.
    pub factors: u32,
    /// How many different combinations were measured.
    pub combinations: u32,
    /// 3: factors are mixed up with pairs of others. 4: pairs with pairs. 5 and more: neither.
    pub resolution: u32,
    /// Where the noise is from.
    pub noise_from: NoiseFrom,
    /// Largest first.
    pub effects: Vec<FractionEffect>,
    /// Effects from this ratio on would be found four times in five.
    pub detectable: Option<f64>,
}

/// Where the noise of a fraction is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseFrom {
    /// Combinations that were measured more than once.
    Repeats,
    /// The effects themselves: most are of nothing (Lenth).
    Effects,
}

/// One effect of a fraction. Where it is of several things, they are mixed up: one of them, or
/// several together, and the design cannot tell which.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FractionEffect {
    /// Factors by themselves.
    pub factors: Vec<String>,
    /// Pairs that work together: what one does depends on the other's level.
    pub pairs: Vec<(String, String)>,
    /// Of a factor: from this level ...
    pub from: Option<String>,
    /// ... to this one.
    pub to: Option<String>,
    /// Of a factor: upper level by lower. Of pairs, for the first of them: where both are at their
    /// lower or both at their upper level, by where they are not.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// By Student's t.
    pub p: f64,
    /// Adjusted for the number of effects (Holm).
    pub p_adjusted: f64,
    /// Adjusted p is at most 0.05.
    pub matters: bool,
}

/// What a table says as a fraction, if it is one of two levels each.
pub(super) fn of(table: &Table) -> Option<Fraction> {
    let varying: Vec<usize> =
        (0..table.names.len()).filter(|&factor| table.levels[factor].len() > 1).collect();
    if varying.len() > 64 || varying.iter().any(|&factor| table.levels[factor].len() != 2) {
        return None;
    }
    let combination = |row: &Vec<usize>| -> u64 {
        varying.iter().enumerate().map(|(bit, &factor)| (row[factor] as u64) << bit).sum()
    };
    let combinations: Vec<u64> = table.rows.iter().map(combination).collect();
    let fraction = design::Fraction::of(&combinations, varying.len())?;
    let resolution = fraction.resolution().filter(|&resolution| resolution >= 3)?;
    let values: Vec<(u64, f64)> =
        combinations.into_iter().zip(table.values.iter().copied()).collect();
    let found = fraction.effects(&values)?;
    let sizes: Vec<f64> = found.iter().map(|effect| effect.effect).collect();
    let repeats = noise_of_repeats(&values).filter(|(_, df)| *df >= 2.0);
    let noise_from = if repeats.is_some() { NoiseFrom::Repeats } else { NoiseFrom::Effects };
    // Of a single run: Lenth's is of an effect.
    let by_effects = || {
        let (error, df) = lenth(&sizes)?;
        Some((error / found.first()?.error, df))
    };
    let noise = repeats.or_else(by_effects)?;
    let contrasts: Vec<Contrast> = found
        .iter()
        .map(|e| Contrast { middle: e.effect, error: e.error * noise.0, df: noise.1, offset: 0.0 })
        .collect();
    let p: Vec<f64> = contrasts.iter().map(|contrast| contrast.p_beyond(0.0)).collect();
    let name = |bit: usize| table.names[varying[bit]].clone();
    let level = |bits: &[usize], place: usize| {
        let [only] = bits else { return None };
        table.levels[varying[*only]].get(place).cloned()
    };
    let each = found.iter().zip(&contrasts).zip(p.iter().zip(holm(&p)));
    let effects = each.filter_map(|((effect, contrast), (&p, p_adjusted))| {
        let interval = contrast.interval(1.0 - ALPHA)?.exp();
        Some(FractionEffect {
            factors: effect.of.factors.iter().map(|&bit| name(bit)).collect(),
            pairs: effect.of.pairs.iter().map(|&(a, b)| (name(a), name(b))).collect(),
            from: level(&effect.of.factors, 0),
            to: level(&effect.of.factors, 1),
            ratio: interval.middle,
            low: interval.low,
            high: interval.high,
            p,
            p_adjusted,
            matters: p_adjusted <= ALPHA,
        })
    });
    let mut effects: Vec<FractionEffect> = effects.collect();
    effects.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    Some(Fraction {
        factors: u32::try_from(varying.len()).unwrap_or(u32::MAX),
        combinations: u32::try_from(fraction.runs()).unwrap_or(u32::MAX),
        resolution,
        noise_from,
        effects,
        detectable: detectable(noise, fraction.runs(), sizes.len()).map(f64::exp),
    })
}

impl Fraction {
    /// The factors whose effects it tells.
    pub(super) fn tells(&self, factor: &str) -> bool {
        self.effects.iter().any(|effect| effect.factors.iter().any(|name| name == factor))
    }

    /// What it says, and first how far that can go.
    pub fn findings(&self) -> Vec<Finding> {
        let number = ["III", "IV"].get(self.resolution as usize - 3).unwrap_or(&"V or more");
        let mut found = vec![
            Finding::new(Code::Fraction)
                .with("measured", self.combinations)
                .with("all", Value::Count(1_u64.checked_shl(self.factors).unwrap_or(u64::MAX)))
                .with("factors", self.factors)
                .with("resolution", *number)
                .with("factors_mixed", self.resolution == 3)
                .with("pairs_mixed", self.resolution == 4),
        ];
        found.extend(self.effects.iter().filter(|one| one.matters).map(FractionEffect::finding));
        let others = self.effects.iter().filter(|one| !one.matters && !one.factors.is_empty());
        let others = others.map(|one| {
            let (factors, ratio) = (one.factors.as_slice(), one.ranged());
            Value::record([("factors", factors.into()), ("ratio", ratio.into())])
        });
        let others: Vec<Value> = others.collect();
        found.extend(
            (!others.is_empty())
                .then(|| Finding::new(Code::FractionNotShown).with("effects", others)),
        );
        found.extend(self.detectable.map(|ratio| {
            Finding::new(Code::EffectsDetectable).with("least", Number::share(ratio - 1.0))
        }));
        let is_assumed = self.noise_from == NoiseFrom::Effects;
        found.extend(is_assumed.then(|| Finding::new(Code::FractionNoiseAssumed)));
        found
    }
}

impl FractionEffect {
    fn ranged(&self) -> Number {
        ranged(self.ratio, Some((self.low, self.high)))
    }

    fn finding(&self) -> Finding {
        let of = |code| {
            Finding::new(code)
                .with("ratio", self.ranged())
                .with("p", Number::chance(self.p_adjusted))
        };
        let pair =
            |(a, b): &(String, String)| Value::record([("first", a.into()), ("second", b.into())]);
        match (self.factors.as_slice(), self.pairs.as_slice()) {
            ([factor], []) => of(Code::FactorMatters)
                .with("factor", factor)
                .with_some("from", self.from.as_ref())
                .with_some("to", self.to.as_ref()),
            ([], [(a, b)]) => of(Code::FractionPair).with("first", a).with("second", b),
            ([], pairs) => {
                let pairs: Vec<Value> = pairs.iter().map(pair).collect();
                of(Code::FractionPairsMixed).with("pairs", pairs)
            }
            (factors, pairs) => {
                let factors = factors.iter().map(|name| Value::record([("factor", name.into())]));
                let all: Vec<Value> = factors.chain(pairs.iter().map(pair)).collect();
                of(Code::FractionMixed).with("sources", all)
            }
        }
    }
}
