//! A fraction of all combinations: no two runs differ in one factor alone, and yet each factor's
//! effect is told, since all others are balanced against it.

use schemars::JsonSchema;
use serde::Serialize;
use stats::design::{self, detectable, lenth, noise_of_repeats};
use stats::multiple::holm;
use stats::paired::Contrast;

use super::ALPHA;
use super::design::Table;
use crate::words::{self, count, list, percent};

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
    pub fn sentences(&self) -> Vec<String> {
        let mut out = vec![self.headline()];
        out.extend(self.effects.iter().filter(|effect| effect.matters).map(FractionEffect::told));
        let others: Vec<String> = self
            .effects
            .iter()
            .filter(|effect| !effect.matters && !effect.factors.is_empty())
            .map(|effect| {
                let ratio = words::ratio(effect.ratio, Some((effect.low, effect.high)));
                format!("{} ({ratio})", effect.factors.join(" and "))
            })
            .collect();
        if !others.is_empty() {
            out.push(format!("Not shown to matter: {}.", list(&others)));
        }
        if let Some(ratio) = self.detectable {
            out.push(format!(
                "With this noise, effects from {} on would be found four times in five; smaller ones \
                 may be there.",
                percent(ratio - 1.0)
            ));
        }
        if self.noise_from == NoiseFrom::Effects {
            out.push(
                "Nothing was measured twice: noise is taken from the effects, as if most were of \
                 nothing. Run the base at least 3 times."
                    .to_owned(),
            );
        }
        out
    }

    fn headline(&self) -> String {
        let mixed = match self.resolution {
            3 => "factors are mixed up with pairs of others: what is said of one may be theirs",
            4 => "no factor is mixed up with another or with a pair; pairs are, with pairs",
            _ => "neither factors nor pairs of them are mixed up",
        };
        let all = 2f64.powi(self.factors as i32);
        format!(
            "{} of the {all:.0} combinations of {} (resolution {}): {mixed}.",
            self.combinations,
            count(self.factors.into(), "factor"),
            ["III", "IV"].get(self.resolution as usize - 3).unwrap_or(&"V or more"),
        )
    }
}

impl FractionEffect {
    fn told(&self) -> String {
        let ratio = words::ratio(self.ratio, Some((self.low, self.high)));
        let p = match self.p_adjusted {
            p if p < 0.001 => "<0.001".to_owned(),
            p => format!("{p:.3}"),
        };
        let pairs: Vec<String> = self.pairs.iter().map(|(a, b)| format!("{a} with {b}")).collect();
        let named = || self.factors.iter().chain(&pairs).cloned().collect::<Vec<_>>().join(", or ");
        match (self.factors.as_slice(), pairs.as_slice(), &self.from, &self.to) {
            ([factor], [], Some(from), Some(to)) => {
                format!("{factor}: it matters. From {from} to {to} it is {ratio} (adjusted p {p}).")
            }
            ([], [pair], ..) => format!(
                "{pair}: what one does depends on the other. Where both are at their lower or both at \
                 their upper level it is {ratio} of where they are not (adjusted p {p})."
            ),
            ([], ..) => format!(
                "Two factors work together, {ratio} (adjusted p {p}), and this design cannot tell \
                 which: {}. Measure the four combinations of one of these pairs, all else as in the \
                 base.",
                named()
            ),
            _ => format!(
                "Something matters, {ratio} (adjusted p {p}), and this design cannot tell what: {}. \
                 Measure more combinations.",
                named()
            ),
        }
    }
}
