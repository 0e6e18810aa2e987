//! Which factor matters.

use explain::factor::{Factors, Observation, Refusal, factors};
use stats::Random;

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
