//! The same barrier over several runs: which layer does it sit in?
//!
//! A cap belongs to a layer whose size moves it. For each factor the slope of ln cap over ln level
//! is taken among runs in which all other factors are the same; near 1 the factor is the limit,
//! near 0 it is acquitted.

use std::collections::{BTreeMap, BTreeSet};

use finding::{Code, Finding, Number, Value};
use schemars::JsonSchema;
use serde::Serialize;
use stats::interval::student_quantile;

use super::{Barrier, Cap, Ranged, barriers};
use crate::view::View;

/// An interval within this on both sides of 0 is an acquittal.
const ACQUITS: f64 = 0.15;
/// An interval within these says that the factor is the limit, as far apart from 1 to both sides: an
/// interval about a true slope of 1 is on both.
const FOLLOWS: (f64, f64) = (0.7, 1.3);
/// Above this no cap grows by more of one layer alone.
const MORE_THAN_ALL: f64 = 1.1;
/// A wider interval says nothing.
const WIDTH_MAX: f64 = 0.5;
/// Degrees of freedom from which the scatter about the line is its own witness.
const DF_MIN: usize = 2;

/// Which cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CapKind {
    /// `A`: requests per second.
    Iops,
    /// `W`: bytes per second.
    Bandwidth,
}

impl CapKind {
    fn of(self, barrier: &Barrier) -> Option<Cap> {
        match self {
            Self::Iops => barrier.iops,
            Self::Bandwidth => barrier.bandwidth,
        }
    }

    /// A rate of its kind.
    pub(super) const fn number(self, rate: f64) -> Number {
        match self {
            Self::Iops => Number::iops(rate),
            Self::Bandwidth => Number::bandwidth(rate),
        }
    }
}

/// How a cap follows a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Follows {
    /// The interval lies in -0.15 to 0.15: it does not.
    No,
    /// The interval lies in 0.7 to 1.3, and not above 1.1: it does, this factor is the limit.
    Yes,
    /// Neither, but the interval is narrow: in part.
    Partly,
    /// The interval is too wide.
    Inconclusive,
    /// No two runs differ in this factor alone.
    Inseparable,
    /// The cap was not reached in two runs that could be compared.
    NotReached,
}

/// A cap of one run. The level is of the factors, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct CapOfRun {
    /// Requests or bytes per second; `None` where it was not reached.
    pub rate: Option<Ranged>,
    /// One for each factor, above 0.
    pub levels: Vec<f64>,
}

/// How one cap follows one factor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Elasticity {
    /// The factor.
    pub factor: String,
    /// The verdict.
    pub follows: Follows,
    /// d ln cap / d ln level; `None` where it could not be had.
    pub slope: Option<Ranged>,
    /// The slope is the mean of each level's runs; with two levels: the cap at the upper by that
    /// at the lower.
    pub ratio: Option<Ranged>,
    /// (level, geometric mean of the cap), levels rising.
    pub points: Vec<(f64, f64)>,
    /// Factors that changed whenever this one did.
    pub together_with: Vec<String>,
    /// Whether nothing else that is recorded differs between some two of the runs.
    pub alone: bool,
}

/// Where a cap sits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Seat {
    /// In the layer of this factor.
    In(String),
    /// In none of the layers whose factors were changed, so above them or in what they share.
    NoneOf(Vec<String>),
    /// It cannot be told.
    Unknown,
}

/// One cap of one phase over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The phase.
    pub group: String,
    /// Which cap.
    pub cap: CapKind,
    /// Where it sits.
    pub seat: Seat,
    /// Factors that it does not follow.
    pub acquitted: Vec<String>,
    /// One per factor.
    pub elasticities: Vec<Elasticity>,
}

/// Barriers over several runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Elasticities {
    /// By phase, requests before bytes.
    pub verdicts: Vec<Verdict>,
    /// Of some run: the generator itself is the limit, so all of this is about the generator.
    pub generator_limited: bool,
    /// Every run was held against a null target.
    pub generator_ruled_out: bool,
    /// In some run the file fits in the declared cache.
    pub inside_cache: bool,
}

/// Barriers of several runs over factors.
///
/// * `levels`: (factor, its level in each run, in the order of `views`): numbers above 0, such as
///   how many disks. Factors whose lists have another length are left out.
/// * `null_rate`: as in [`barriers`].
pub fn across(
    views: &[&View<'_>],
    levels: &[(String, Vec<f64>)],
    null_rate: Option<f64>,
) -> Elasticities {
    let levels: Vec<&(String, Vec<f64>)> =
        levels.iter().filter(|(_, values)| values.len() == views.len()).collect();
    let names: Vec<String> = levels.iter().map(|(name, _)| name.clone()).collect();
    let runs: Vec<Vec<Barrier>> =
        views.iter().map(|view| barriers(view, null_rate).barriers).collect();
    let groups: BTreeSet<&str> = runs.iter().flatten().map(|b| b.group.as_str()).collect();
    let mut verdicts = Vec::new();
    for group in groups {
        for kind in [CapKind::Iops, CapKind::Bandwidth] {
            let caps: Vec<CapOfRun> = runs
                .iter()
                .enumerate()
                .map(|(run, barriers)| CapOfRun {
                    rate: barriers
                        .iter()
                        .find(|barrier| barrier.group == group)
                        .and_then(|barrier| kind.of(barrier))
                        .filter(|cap| cap.reached)
                        .map(|cap| cap.rate),
                    levels: levels.iter().map(|(_, values)| values[run]).collect(),
                })
                .collect();
            verdicts.push(elasticities(group, kind, &names, &caps));
        }
    }
    let all = || runs.iter().flatten();
    let ruled_out = |b: &Barrier| matches!(b.generator, super::Generator::RuledOut { .. });
    let inside = |view: &&View<'_>| {
        let target = &view.run.header.target;
        let size = target.size_bytes.saturating_mul(u64::from(target.files));
        target.cache_bytes.is_some_and(|cache| size > 0 && size <= cache)
    };
    Elasticities {
        verdicts,
        generator_limited: all().any(|b| b.generator.is_limit()),
        generator_ruled_out: !runs.is_empty() && all().all(ruled_out),
        inside_cache: views.iter().any(inside),
    }
}

impl Elasticities {
    /// Takes back what is credited to a factor that never changed alone.
    pub(crate) fn tell_alone(&mut self, alone: impl Fn(&str) -> bool) {
        for verdict in &mut self.verdicts {
            for elasticity in &mut verdict.elasticities {
                elasticity.alone = alone(&elasticity.factor);
            }
            if verdict.elasticities.iter().any(|elasticity| !elasticity.alone) {
                verdict.seat = Seat::Unknown;
                let alone = |name: &String| {
                    verdict.elasticities.iter().any(|e| e.alone && e.factor == *name)
                };
                verdict.acquitted.retain(alone);
            }
        }
    }
}

impl Elasticities {
    /// Where each barrier sits, on what evidence, what to change next.
    pub fn findings(&self) -> Vec<Finding> {
        let by_generator = self.generator_limited.then(|| Finding::new(Code::LimitsOfGenerator));
        let mut found: Vec<Finding> = by_generator.into_iter().collect();
        found.extend(self.verdicts.iter().flat_map(|verdict| verdict.findings(self)));
        let is_none = |verdict: &Verdict| matches!(verdict.seat, Seat::NoneOf(_));
        let open = !self.generator_ruled_out && self.verdicts.iter().any(is_none);
        found.extend(open.then(|| Finding::new(Code::LimitsGeneratorPossible)));
        found.extend(self.verdicts.is_empty().then(|| Finding::new(Code::LimitsUnfitted)));
        found.extend(self.inside_cache.then(|| Finding::new(Code::LimitsInCache)));
        found
    }
}

impl Verdict {
    fn findings(&self, all: &Elasticities) -> Vec<Finding> {
        let (code, seat) = match &self.seat {
            Seat::In(factor) => (Code::LimitInFactor, Some(factor)),
            Seat::NoneOf(_) => (Code::LimitInNoFactor, None),
            Seat::Unknown => (Code::LimitFactorUnknown, None),
        };
        let excluded = Some(self.acquitted.as_slice()).filter(|all| !all.is_empty());
        let head = Finding::new(code)
            .with("group", &self.group)
            .with("bandwidth", self.cap == CapKind::Bandwidth)
            .with_some("factor", seat)
            .with_some("excluded", excluded)
            .with("several", self.acquitted.len() > 1)
            .with("none", self.elasticities.is_empty())
            .with("generator_excluded", all.generator_ruled_out);
        let each = self.elasticities.iter().map(|one| one.finding(&self.group, self.cap));
        std::iter::once(head).chain(each).collect()
    }
}

impl Elasticity {
    fn finding(&self, group: &str, cap: CapKind) -> Finding {
        let code = match (self.follows, self.slope) {
            (Follows::Inseparable, None) => Code::ElasticityInseparable,
            (Follows::Inconclusive, None) => Code::ElasticityConstant,
            (_, None) => Code::ElasticityNotReached,
            _ if !self.alone => Code::ElasticityNotAlone,
            (Follows::No, _) => Code::ElasticityNone,
            (Follows::Yes, _) => Code::ElasticityFull,
            (Follows::Partly, _) => Code::ElasticityPartial,
            _ => Code::ElasticityUncertain,
        };
        let others = Some(self.together_with.as_slice()).filter(|all| !all.is_empty());
        let level = |level: f64| match level.fract() == 0.0 {
            true => Value::Count(level as u64),
            false => Number::plain(level).into(),
        };
        let levels = self.points.iter().map(|(of, _)| level(*of));
        let limits = self.points.iter().map(|(_, rate)| cap.number(*rate));
        let ranged =
            |number: fn(f64) -> Number, of: Ranged| number(of.value).within(of.low, of.high);
        Finding::new(code)
            .with("group", group)
            .with("factor", &self.factor)
            .with("bandwidth", cap == CapKind::Bandwidth)
            .with("alone", self.alone)
            .with_some("others", others)
            .with("levels", levels.collect::<Vec<_>>())
            .with("limits", limits.collect::<Vec<_>>())
            .with_some("slope", self.slope.map(|slope| ranged(Number::exponent, slope)))
            .with_some("ratio", self.ratio.map(|ratio| ranged(Number::ratio, ratio)))
    }
}

/// How one cap follows each factor, and where it sits.
///
/// * `factors`: names; `caps[run].levels` has one level for each.
pub fn elasticities(group: &str, cap: CapKind, factors: &[String], caps: &[CapOfRun]) -> Verdict {
    let usable: Vec<&CapOfRun> = caps
        .iter()
        .filter(|cap| {
            cap.levels.len() == factors.len()
                && cap.levels.iter().all(|&level| level > 0.0 && level.is_finite())
        })
        .collect();
    let elasticities: Vec<Elasticity> =
        (0..factors.len()).map(|at| elasticity(at, factors, &usable)).collect();
    let of = |wanted: Follows| -> Vec<String> {
        let found = elasticities.iter().filter(|e| e.follows == wanted);
        found.map(|e| e.factor.clone()).collect()
    };
    let acquitted = of(Follows::No);
    let open = elasticities.iter().any(|e| !matches!(e.follows, Follows::No | Follows::Yes));
    let seat = match (of(Follows::Yes).as_slice(), acquitted.as_slice()) {
        ([only], _) => Seat::In(only.clone()),
        ([], [_, ..]) if !open => Seat::NoneOf(acquitted.clone()),
        _ => Seat::Unknown,
    };
    Verdict { group: group.to_owned(), cap, seat, acquitted, elasticities }
}

fn elasticity(at: usize, factors: &[String], caps: &[&CapOfRun]) -> Elasticity {
    let mut result = Elasticity {
        factor: factors[at].clone(),
        follows: Follows::NotReached,
        slope: None,
        ratio: None,
        points: Vec::new(),
        together_with: Vec::new(),
        alone: true,
    };
    let varies = |cap: &&CapOfRun| caps.iter().any(|other| other.levels[at] != cap.levels[at]);
    let comparable = same_otherwise(at, caps);
    if comparable.is_empty() {
        result.follows =
            if caps.iter().any(varies) { Follows::Inseparable } else { Follows::Inconclusive };
        result.together_with = (0..factors.len())
            .filter(|&other| other != at && moves_with(at, other, caps))
            .map(|other| factors[other].clone())
            .collect();
        return result;
    }
    let groups: Vec<Vec<(f64, Ranged)>> = comparable
        .into_iter()
        .map(|group| group.into_iter().filter_map(|c| Some((c.levels[at], c.rate?))).collect())
        .filter(|group: &Vec<(f64, Ranged)>| group.iter().any(|(level, _)| *level != group[0].0))
        .collect();
    let Some(slope) = slope(&groups) else { return result };
    result.points = points(&groups);
    if let ([(low, _), (high, _)], true) = (result.points.as_slice(), groups.len() == 1) {
        let doublings = (high / low).ln();
        let power = |e: f64| (e * doublings).exp();
        result.ratio = Some(Ranged {
            value: power(slope.value),
            low: power(slope.low),
            high: power(slope.high),
        });
    }
    result.follows = judge(&slope);
    result.slope = Some(slope);
    result
}

fn judge(slope: &Ranged) -> Follows {
    if -ACQUITS < slope.low && slope.high < ACQUITS {
        Follows::No
    } else if FOLLOWS.0 < slope.low && slope.high < FOLLOWS.1 && slope.low < MORE_THAN_ALL {
        Follows::Yes
    } else if slope.high - slope.low < WIDTH_MAX && slope.low > 0.0 && slope.high < 1.0 {
        Follows::Partly
    } else {
        Follows::Inconclusive
    }
}

/// Runs with the same levels of all other factors, where this one varies.
fn same_otherwise<'a>(at: usize, caps: &[&'a CapOfRun]) -> Vec<Vec<&'a CapOfRun>> {
    let key = |cap: &CapOfRun| -> Vec<u64> {
        let others = cap.levels.iter().enumerate().filter(|&(i, _)| i != at);
        others.map(|(_, level)| level.to_bits()).collect()
    };
    let mut groups: BTreeMap<Vec<u64>, Vec<&CapOfRun>> = BTreeMap::new();
    for cap in caps {
        groups.entry(key(cap)).or_default().push(cap);
    }
    let varies =
        |group: &Vec<&CapOfRun>| group.iter().any(|cap| cap.levels[at] != group[0].levels[at]);
    groups.into_values().filter(varies).collect()
}

/// Whether `other` changes whenever `at` does.
fn moves_with(at: usize, other: usize, caps: &[&CapOfRun]) -> bool {
    caps.iter().enumerate().all(|(i, a)| {
        caps[..i].iter().all(|b| a.levels[at] == b.levels[at] || a.levels[other] != b.levels[other])
    })
}

/// Least squares of ln cap over ln level, each group about its own mean.
///
/// The interval is by the scatter about the line with two degrees of freedom and more; below that
/// by what is known of each cap. Never narrower than the latter.
fn slope(groups: &[Vec<(f64, Ranged)>]) -> Option<Ranged> {
    let runs: usize = groups.iter().map(Vec::len).sum();
    if runs < 2 {
        return None;
    }
    let mut sums = [0.0; 3];
    let mut known = 0.0;
    for group in groups {
        let n = group.len() as f64;
        let x_mean = group.iter().map(|(x, _)| x.ln()).sum::<f64>() / n;
        let y_mean = group.iter().map(|(_, y)| y.value.ln()).sum::<f64>() / n;
        for (level, cap) in group {
            let (x, y) = (level.ln() - x_mean, cap.value.ln() - y_mean);
            sums[0] += x * x;
            sums[1] += x * y;
            sums[2] += y * y;
            let half = (cap.high / cap.low).ln() / 2.0;
            known += x * x * half * half;
        }
    }
    let [xx, xy, yy] = sums;
    let value = xy / xx;
    let by_caps = known.sqrt() / xx;
    let df = runs.saturating_sub(groups.len() + 1);
    let mut half = by_caps;
    if df >= DF_MIN {
        let variance = (yy - value * xy).max(0.0) / df as f64;
        half = half.max(student_quantile(0.975, df as f64)? * (variance / xx).sqrt());
    }
    let slope = Ranged { value, low: value - half, high: value + half };
    (slope.low.is_finite() && slope.high.is_finite()).then_some(slope)
}

fn points(groups: &[Vec<(f64, Ranged)>]) -> Vec<(f64, f64)> {
    let mut levels: Vec<f64> = groups.iter().flatten().map(|(level, _)| *level).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let of = |level: f64| {
        let caps = || groups.iter().flatten().filter(move |(l, _)| *l == level);
        let sum: f64 = caps().map(|(_, cap)| cap.value.ln()).sum();
        (level, (sum / caps().count() as f64).exp())
    };
    levels.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_about_one_says_that_the_factor_is_the_limit() {
        for (low, high, wanted) in [
            (-0.10, 0.14, Follows::No),
            (0.95, 1.05, Follows::Yes),
            (0.97, 1.13, Follows::Yes),
            (0.75, 1.25, Follows::Yes),
            (0.40, 0.80, Follows::Partly),
            (0.60, 1.20, Follows::Inconclusive),
            (0.90, 1.40, Follows::Inconclusive),
            (1.12, 1.28, Follows::Inconclusive),
        ] {
            let slope = Ranged { value: f64::midpoint(low, high), low, high };
            assert_eq!(judge(&slope), wanted, "{low} to {high}");
        }
    }
}
