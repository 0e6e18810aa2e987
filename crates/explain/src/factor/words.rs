//! Factors in sentences.

use super::{ALPHA, Effect, Factors, Fraction, JudgedBy, Refusal};
use crate::words::{count, list, percent};

impl Factors {
    /// What may be said about each factor, and first what may not.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = self.refused_words();
        sentences.extend(self.fraction.iter().flat_map(Fraction::sentences));
        sentences.extend(self.effects.iter().flat_map(effect_words));
        // One factor has nothing to work together with.
        if let Some(share) = self.share_interactions.filter(|_| self.effects.len() > 1) {
            sentences.push(format!(
                "Interactions between factors have {} of the variance together.",
                percent(share)
            ));
        }
        match self.detectable {
            Some(ratio) if !self.effects.is_empty() => sentences.push(format!(
                "With this noise and {}, effects from {} on would be found four times in five; \
                 smaller ones may be there.",
                count(u64::from(self.observations), "run"),
                percent(ratio - 1.0)
            )),
            None if !self.effects.is_empty() => sentences.push(
                "How large an effect would be found is unknown: too little was repeated. Repeat the \
                 base at least 3 times."
                    .to_owned(),
            ),
            _ => {}
        }
        if sentences.is_empty() {
            sentences.push(
                "Factors: unknown. The runs differ in nothing, or have no cell in common.".into(),
            );
        }
        sentences
    }
}

impl Factors {
    /// Refusals of one kind are one sentence: many factors that nothing is known of are no more
    /// news than one.
    fn refused_words(&self) -> Vec<String> {
        let aliased = self.refused.iter().filter_map(|refusal| match refusal {
            Refusal::Inseparable(factors) => Some(format!(
                "Refused: {} changed together, so no single one can be credited. Measure again \
                 with one of them changed alone.",
                list(factors)
            )),
            _ => None,
        });
        let mut sentences: Vec<String> = aliased.collect();
        let named = |of: fn(&Refusal) -> Option<&String>| -> Vec<String> {
            self.refused.iter().filter_map(of).cloned().collect()
        };
        let constant = named(|refusal| match refusal {
            Refusal::Constant(factor) => Some(factor),
            _ => None,
        });
        if let [first, rest @ ..] = constant.as_slice() {
            let it = if rest.is_empty() { "It" } else { "Each" };
            let names = listed(first, rest);
            sentences.push(format!("{names}: unknown. {it} has the same level in all runs."));
        }
        let unpaired = named(|refusal| match refusal {
            Refusal::NoPairs(factor) => Some(factor),
            _ => None,
        });
        if let [first, rest @ ..] = unpaired.as_slice() {
            let names = listed(first, rest);
            sentences.push(match rest.is_empty() {
                true => format!(
                    "{names}: unknown. No two runs differ in it alone; measure one more run with \
                     only this changed."
                ),
                false => format!(
                    "{names}: unknown. No two runs differ in one of them alone; measure one more \
                     run for each, with only that changed."
                ),
            });
        }
        sentences
    }
}

/// All of a few, the first of many.
fn listed(first: &str, rest: &[String]) -> String {
    const NAMED: usize = 5;
    let mut names: Vec<String> = vec![first.to_owned()];
    names.extend(rest.iter().take(NAMED - 1).cloned());
    if rest.len() >= NAMED {
        names.push(format!("{} more", rest.len() + 1 - NAMED));
    }
    list(&names)
}

impl Effect {
    /// Why nothing can be said of it: so few runs that no effect, however large, could have been told from
    /// chance; `None` where there are enough.
    pub fn too_few(&self) -> Option<String> {
        let is_open = !self.matters && self.interactions.is_empty() && self.p_least > ALPHA;
        is_open.then(|| {
            format!(
                "however large that were, shuffled runs would do as well in {} of cases",
                percent(self.p_least)
            )
        })
    }
}

/// Whether the whole interval is within 5 % of nothing.
fn within(effect: &Effect) -> bool {
    matches!((effect.low, effect.high), (Some(low), Some(high)) if low > 0.95 && high < 1.0 / 0.95)
}

fn effect_words(effect: &Effect) -> Vec<String> {
    let Effect { factor, from, to, ratio, .. } = effect;
    let range = match (effect.low, effect.high) {
        (Some(low), Some(high)) => format!(" [{low:.2}, {high:.2}]"),
        _ => String::new(),
    };
    if let Some(why) = effect.too_few() {
        return vec![format!(
            "{factor}: too few runs to say. From {from} to {to} it is x{ratio:.2}{range} over {}, and \
             {why}. Measure each level several times, in random order; for two runs alone there is \
             `plimsoll compare`.",
            count(u64::from(effect.pairs), "pair")
        )];
    }
    let verdict = match (effect.matters, effect.interactions.is_empty()) {
        (true, true) => "it matters",
        (_, false) => "it depends on others",
        (false, true) if within(effect) => "acquitted, whatever it does is less than 5 %",
        (false, true) => "not shown to matter",
    };
    let by = match effect.judged_by {
        JudgedBy::Labels => "",
        JudgedBy::Repeats => ", held against how repeats of one combination differ",
        JudgedBy::Trend => ", by how far the runs are from a line over the levels",
    };
    let share =
        effect.share.map_or(String::new(), |share| format!(", {} of the variance", percent(share)));
    let over = match effect.judged_by {
        JudgedBy::Trend => "all levels".to_owned(),
        _ => count(u64::from(effect.pairs), "pair"),
    };
    let mut sentences = vec![format!(
        "{factor}: {verdict}. From {from} to {to} it is x{ratio:.2}{range} over {over} (adjusted p \
         {:.3}{by}{share}).",
        effect.p_adjusted
    )];
    for interaction in &effect.interactions {
        let ratios: Vec<String> = interaction
            .ratios
            .iter()
            .map(|(level, ratio)| format!("x{ratio:.2} with {} {level}", interaction.with))
            .collect();
        sentences.push(format!(
            "{factor} works differently with {}: {}. Judge it for the combination you mean to use.",
            interaction.with,
            list(&ratios)
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::super::{Observation, factors};

    fn runs(levels: &[&str], values: &[f64]) -> Vec<Observation> {
        let of = |(level, value): (&&str, &f64)| Observation {
            levels: vec![("depth".to_owned(), (*level).to_owned())],
            block: None,
            ln_value: value.ln(),
        };
        levels.iter().zip(values).map(of).collect()
    }

    #[test]
    fn one_factor_at_a_time_is_held_against_the_base_that_comes_again() {
        // Five times the base, and each of three factors once: no swap of labels could show it.
        let values = [
            ("1", "a", "x", 1.00),
            ("2", "a", "x", 1.50),
            ("1", "b", "x", 1.005),
            ("1", "a", "x", 1.01),
            ("1", "a", "y", 0.90),
            ("1", "a", "x", 0.99),
            ("1", "a", "x", 1.005),
            ("1", "a", "x", 0.995),
        ];
        let of = |(legs, fs, mount, value): &(&str, &str, &str, f64)| Observation {
            levels: [("legs", legs), ("fs", fs), ("mount", mount)]
                .map(|(name, level)| (name.to_owned(), (*level).to_owned()))
                .to_vec(),
            block: None,
            ln_value: value.ln(),
        };
        let found = factors(&values.iter().map(of).collect::<Vec<_>>());
        let by = |name: &str| found.effects.iter().find(|effect| effect.factor == name).unwrap();
        assert!(by("legs").matters && by("mount").matters, "{:#?}", found.effects);
        assert!(!by("fs").matters, "{:#?}", found.effects);
        assert!((by("legs").ratio - 1.5).abs() < 0.01);
        let said = found.sentences().join("\n");
        assert!(said.contains("fs: acquitted, whatever it does is less than 5 %"), "{said}");
        assert!(said.contains("held against how repeats of one combination differ"), "{said}");
    }

    #[test]
    fn four_runs_at_four_numbers_tell_a_trend_and_noise_is_none() {
        let levels = ["1", "2", "4", "8"];
        let found = factors(&runs(&levels, &[1.0, 2.01, 3.98, 8.03]));
        let effect = &found.effects[0];
        assert!(effect.matters && effect.low.unwrap() > 7.0, "{effect:?}");
        let said = found.sentences().join("\n");
        assert!(said.contains("depth: it matters. From 1 to 8 it is x8.0"), "{said}");
        // No trend, so none is said to matter, nor is anything excluded that four runs cannot exclude.
        let found = factors(&runs(&levels, &[1.0, 1.2, 0.9, 1.05]));
        assert!(!found.effects[0].matters, "{found:?}");
        // Names have no order: in a single run of each nothing could show.
        let found = factors(&runs(&["a", "b", "c", "d"], &[1.0, 2.0, 4.0, 8.0]));
        assert!(found.sentences()[0].contains("too few runs to say"), "{found:?}");
    }

    #[test]
    fn pairs_are_those_of_the_two_levels_that_are_told() {
        // Two of the base, one of each other level: furthest apart are levels seen once.
        let found = factors(&runs(&["1", "2", "4", "1"], &[1.0, 0.8, 1.52, 1.01]));
        let said = found.sentences().join(" ");
        assert!(said.contains("From 2 to 4 it is x1.90 over 1 pair,"), "{said}");
    }

    #[test]
    fn so_few_runs_that_nothing_could_show_are_called_too_few() {
        for (levels, values, least) in [
            (&["1", "4"][..], &[1.0, 2.4][..], 1.0),
            (&["1", "4", "1"], &[1.0, 2.4, 1.01], 1.0 / 3.0),
        ] {
            let found = factors(&runs(levels, values));
            assert!((found.effects[0].p_least - least).abs() < 1e-9, "{:?}", found.effects);
            assert!(found.sentences()[0].contains("too few runs to say"));
        }
        // One factor works together with nothing.
        let one = factors(&runs(&["1", "4", "1", "4"], &[1.0, 2.4, 1.01, 2.3])).sentences();
        assert!(!one.join(" ").contains("Interactions"), "{one:?}");
        // Four of each: 2 of 70 ways are as far apart.
        let levels = ["1", "4", "1", "4", "1", "4", "1", "4"];
        let values = [1.0, 2.4, 1.02, 2.3, 0.98, 2.5, 1.01, 2.4];
        let found = factors(&runs(&levels, &values));
        assert!((found.effects[0].p_least - 2.0 / 70.0).abs() < 1e-9);
        assert!(found.effects[0].matters, "{:?}", found.sentences());
    }
}
