//! Which factor matters.

use explain::factor::{Factors, Observation, Refusal, factors};
use stats::Random;
use stats::design::{self, Planned};

use crate::{Bound, Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "factors-effects",
        about: "2^4 runs twice, noise 4 %, effects of 8 %, 3 %, 0 and 0",
        run: effects,
    },
    Proof {
        name: "factors-interaction",
        about: "the same where one factor does x1.5, but only with another",
        run: interaction,
    },
    Proof {
        name: "factors-aliased",
        about: "two factors that always change together",
        run: aliased,
    },
    Proof {
        name: "factors-fraction",
        about: "7 factors in 16 of 128 combinations and the base as every fifth run, noise 4 %, drift 5 %",
        run: fraction,
    },
];

const NOISE: f64 = 0.04;

/// A full factorial of four factors in two blocks. `mean` is of the four levels, each 0 or 1.
fn factorial(random: &mut Random, mean: impl Fn([usize; 4]) -> f64) -> Vec<Observation> {
    let mut design = Vec::new();
    for block in 0..2 {
        for bits in 0..16usize {
            let levels = [0, 1, 2, 3].map(|factor| bits >> factor & 1);
            design.push(Observation {
                levels: levels
                    .iter()
                    .enumerate()
                    .map(|(factor, level)| (format!("f{factor}"), level.to_string()))
                    .collect(),
                block: Some(block),
                ln_value: 11.0 + mean(levels) + 0.05 * f64::from(block) + NOISE * random.normal(),
            });
        }
    }
    design
}

fn called(found: &Factors, factor: &str) -> bool {
    found.effects.iter().any(|effect| effect.factor == factor && effect.matters)
}

/// What a reader of one-factor-at-a-time means does: the base, each change once, the largest
/// difference wins.
fn one_at_a_time(design: &[Observation]) -> Option<usize> {
    let value = |wanted: usize| {
        let found = design.iter().find(|o| {
            o.levels
                .iter()
                .enumerate()
                .all(|(at, (_, level))| level == if at == wanted { "1" } else { "0" })
        });
        found.map(|o| o.ln_value)
    };
    let base = value(usize::MAX)?;
    let change = |factor: usize| value(factor).map_or(0.0, |v| (v - base).abs());
    (0..4).max_by(|&a, &b| change(a).total_cmp(&change(b)))
}

fn effects(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(2000, 150);
    let (mut first, mut null, mut small, mut naive, mut depends) = (0, 0, 0, 0, 0);
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[trial]);
        let truth = |levels: [usize; 4]| {
            1.08_f64.ln() * levels[1] as f64 + 1.03_f64.ln() * levels[3] as f64
        };
        let design = factorial(&mut random, truth);
        let found = factors(&design);
        first += usize::from(found.effects.first().is_some_and(|effect| effect.factor == "f1"));
        null += usize::from(called(&found, "f0") || called(&found, "f2"));
        small += usize::from(called(&found, "f3"));
        depends += usize::from(found.effects.iter().any(|effect| !effect.interactions.is_empty()));
        naive += usize::from(one_at_a_time(&design) == Some(1));
    }
    let found = Bound::AtLeast(0.99);
    vec![
        Claim::share("8 % ranked first", found, first, trials),
        Claim::share("a null factor called", Bound::AtMost(0.05), null, trials),
        Claim::share("3 % called", Bound::Within(0.2, 0.7), small, trials),
        Claim::share(
            "an interaction called where there is none",
            Bound::AtMost(0.05),
            depends,
            trials,
        ),
        Claim::share("8 % ranked first by one change at a time", found, naive, trials).of_broken(),
    ]
}

fn interaction(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(1000, 100);
    let mut flagged = 0;
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[trial]);
        let truth = |levels: [usize; 4]| 1.5_f64.ln() * (levels[0] * levels[2]) as f64;
        let found = factors(&factorial(&mut random, truth));
        flagged += usize::from(found.effects.iter().any(|effect| {
            effect.factor == "f0" && effect.interactions.iter().any(|i| i.with == "f2")
        }));
    }
    vec![Claim::share("flagged, with the right partner", Bound::AtLeast(0.95), flagged, trials)]
}

fn aliased(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(1000, 100);
    let (mut refused, mut others) = (0, 0);
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[trial]);
        let mut design = factorial(&mut random, |levels| 0.3 * levels[0] as f64);
        design.retain(|o| o.levels[0].1 == o.levels[1].1);
        let found = factors(&design);
        let together = Refusal::Inseparable(vec!["f0".to_owned(), "f1".to_owned()]);
        let credited = called(&found, "f0") || called(&found, "f1");
        refused += usize::from(found.refused.contains(&together) && !credited);
        others += usize::from(found.effects.len() == 2);
    }
    vec![
        Claim::share("refused by name", Bound::AtLeast(1.0), refused, trials),
        Claim::share("the two others still judged", Bound::AtLeast(1.0), others, trials),
    ]
}

/// Growth of all logarithms over a session.
const DRIFT: f64 = 0.05;

/// What planned runs come to, one after the other. `mean` is of the levels, each 0 or 1.
fn made(runs: &[Planned], random: &mut Random, mean: impl Fn(&[usize]) -> f64) -> Vec<Observation> {
    let each = runs.iter().enumerate().map(|(at, run)| Observation {
        levels: run
            .levels
            .iter()
            .enumerate()
            .map(|(factor, level)| (format!("f{factor}"), level.to_string()))
            .collect(),
        block: None,
        ln_value: 11.0
            + mean(&run.levels)
            + DRIFT * at as f64 / runs.len() as f64
            + NOISE * random.normal(),
    });
    each.collect()
}

/// 15 % of one factor, 10 % of another, and two that do 25 % where they are alike.
fn planted(levels: &[usize]) -> f64 {
    let alike = if levels[0] == levels[2] { 0.0 } else { -1.25_f64.ln() };
    1.15_f64.ln() * levels[1] as f64 + 1.10_f64.ln() * levels[4] as f64 + alike
}

fn fraction(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(10_000, 1_000);
    let Some(plan) = design::Fraction::resolution_iv(7) else { return Vec::new() };
    let pair = ("f0".to_owned(), "f2".to_owned());
    let mut seen = [0usize; 7];
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[trial]);
        let nothing = factors(&made(&plan.planned(trial), &mut random, |_| 0.0));
        let whole = factors(&made(&plan.planned(trial), &mut random, planted));
        let (Some(nothing), Some(whole)) = (nothing.fraction, whole.fraction) else { continue };
        let matters = |factor: &str| {
            let mut called = whole.effects.iter().filter(|effect| effect.matters);
            called.any(|effect| effect.factors == [factor] && effect.pairs.is_empty())
        };
        let of_pair = whole.effects.iter().find(|effect| effect.pairs.contains(&pair));
        seen[0] += usize::from(nothing.effects.iter().any(|effect| effect.matters));
        seen[1] += usize::from(["f0", "f2", "f3", "f5", "f6"].iter().any(|factor| matters(factor)));
        seen[2] += usize::from(matters("f1"));
        seen[3] += usize::from(matters("f4"));
        seen[4] += usize::from(of_pair.is_some_and(|effect| effect.matters));
        // Of seven factors every pair is mixed up with two others.
        seen[5] += usize::from(of_pair.is_some_and(|e| e.factors.is_empty() && e.pairs.len() == 3));
        // No run made again: noise is from the effects.
        let bare: Vec<Planned> = plan.planned(trial).into_iter().filter(|run| !run.again).collect();
        let bare = factors(&made(&bare, &mut random, |_| 0.0)).fraction;
        seen[6] += usize::from(bare.is_some_and(|f| f.effects.iter().any(|e| e.matters)));
    }
    let share = |k: usize, what: &str, bound| Claim::share(what, bound, seen[k], trials);
    let mut claims = vec![
        share(0, "anything called where there is nothing", Bound::AtMost(0.05)),
        share(1, "a factor called that does nothing by itself", Bound::AtMost(0.05)),
        share(2, "15 % called", Bound::AtLeast(0.78)),
        share(3, "10 % called", Bound::Within(0.3, 0.6)),
        share(4, "two that work together (25 %) called, whoever they are", Bound::AtLeast(0.98)),
        share(5, "those named as one of three pairs, and as no factor", Bound::AtLeast(1.0)),
        share(6, "anything called where there is nothing, no run made twice", Bound::AtMost(0.05)),
    ];
    claims.extend(resolution_three(lot));
    claims
}

/// Seven factors in eight runs, each run three times: every factor is mixed up with three pairs.
fn resolution_three(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(2000, 200);
    let (mut credited, mut told, mut naive) = (0, 0, 0);
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[1, trial]);
        let runs: Vec<Planned> = (0..24u32)
            .map(|number| {
                let parity = |column: u32| (column & (number % 8)).count_ones() as usize & 1;
                Planned { levels: (1..8).map(parity).collect(), again: false }
            })
            .collect();
        // f0 and f1 work together; f2 has just their column.
        let alike = |levels: &[usize]| if levels[0] == levels[1] { 0.0 } else { 1.25_f64.ln() };
        let found = factors(&made(&runs, &mut random, alike));
        let called = |of: &dyn Fn(&explain::factor::FractionEffect) -> bool| {
            let effects = found.fraction.iter().flat_map(|fraction| &fraction.effects);
            effects.filter(|effect| effect.matters).any(of)
        };
        let pair = ("f0".to_owned(), "f1".to_owned());
        credited += usize::from(called(&|e| e.pairs.is_empty() && !e.factors.is_empty()));
        told += usize::from(called(&|e| e.pairs.contains(&pair) && e.factors == ["f2"]));
        // Who only looks at the factor sees its column.
        naive += usize::from(called(&|e| e.factors.iter().any(|factor| factor == "f2")));
    }
    let none = Bound::AtMost(0.05);
    vec![
        Claim::share(
            "resolution III: a factor credited with what a pair does",
            none,
            credited,
            trials,
        ),
        Claim::share("resolution III: both named", Bound::AtLeast(0.9), told, trials),
        Claim::share("resolution III: credited without the alias check", none, naive, trials)
            .of_broken(),
    ]
}
