//! Factors as findings.

use finding::{Code, Finding, Number, Value};

use super::{ALPHA, Effect, Factors, Interaction, JudgedBy, Refusal};

impl Factors {
    /// What may be said about each factor, and first what may not.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = self.refusals();
        found.extend(self.fraction.iter().flat_map(super::Fraction::findings));
        found.extend(self.effects.iter().flat_map(Effect::findings));
        // One factor has nothing to work together with.
        let share = self.share_interactions.filter(|_| self.effects.len() > 1);
        found.extend(share.map(|share| {
            Finding::new(Code::InteractionsShare).with("share", Number::share(share))
        }));
        found.extend((!self.effects.is_empty()).then(|| {
            match self.detectable {
                Some(ratio) => Finding::new(Code::EffectsDetectable)
                    .with("runs", self.observations)
                    .with("least", Number::share(ratio - 1.0)),
                None => Finding::new(Code::EffectsDetectableUnknown),
            }
        }));
        if found.is_empty() {
            found.push(Finding::new(Code::FactorsUnknown));
        }
        found
    }

    /// Refusals of one kind are one finding: many factors that nothing is known of are no more
    /// news than one.
    fn refusals(&self) -> Vec<Finding> {
        let of = |code, factors: &[String]| {
            let several = factors.len() > 1;
            Finding::new(code).with("factors", factors).with("several", several)
        };
        let mut found = Vec::new();
        let (mut constant, mut unpaired) = (Vec::new(), Vec::new());
        for refusal in &self.refused {
            match refusal {
                Refusal::Inseparable(names) => found.push(of(Code::FactorsInseparable, names)),
                Refusal::Constant(name) => constant.push(name.clone()),
                Refusal::NoPairs(name) => unpaired.push(name.clone()),
            }
        }
        for (code, names) in [(Code::FactorsConstant, constant), (Code::FactorsUnpaired, unpaired)]
        {
            found.extend((!names.is_empty()).then(|| of(code, &names)));
        }
        found
    }
}

/// A ratio with the ends of its interval, if it has one.
pub(super) fn ranged(ratio: f64, ends: Option<(f64, f64)>) -> Number {
    let ratio = Number::ratio(ratio);
    ends.map_or(ratio, |(low, high)| ratio.within(low, high))
}

impl Effect {
    /// Whether nothing can be said of it: so few runs that no effect, however large, could have been
    /// told from chance.
    pub fn is_of_too_few(&self) -> bool {
        !self.matters && self.interactions.is_empty() && self.p_least > ALPHA
    }

    /// Whether it is none: its whole interval is within 5 % of nothing.
    pub fn is_none(&self) -> bool {
        let near = |low: f64, high: f64| low > 0.95 && high < 1.0 / 0.95;
        let near = self.low.zip(self.high).is_some_and(|(low, high)| near(low, high));
        !self.matters && self.interactions.is_empty() && !self.is_of_too_few() && near
    }

    fn findings(&self) -> Vec<Finding> {
        let is_trend = self.judged_by == JudgedBy::Trend;
        let code = match (self.matters, self.interactions.is_empty()) {
            _ if self.is_of_too_few() => Code::FactorTooFew,
            (true, true) => Code::FactorMatters,
            (_, false) => Code::FactorDepends,
            (false, true) if self.is_none() => Code::FactorNoEffect,
            (false, true) => Code::FactorNotShown,
        };
        let effect = Finding::new(code)
            .with("factor", &self.factor)
            .with("from", &self.from)
            .with("to", &self.to)
            .with("ratio", ranged(self.ratio, self.low.zip(self.high)))
            .with("pairs", self.pairs)
            .with("p", Number::chance(self.p_adjusted))
            .with("p_least", Number::share(self.p_least))
            .with("repeats", self.judged_by == JudgedBy::Repeats)
            .with("trend", is_trend)
            .with_some("share", self.share.map(Number::share));
        let depends = |found: &Interaction| {
            let ratio = |(level, ratio): &(String, f64)| {
                Value::record([("level", level.into()), ("ratio", Number::ratio(*ratio).into())])
            };
            Finding::new(Code::FactorInteraction)
                .with("factor", &self.factor)
                .with("with", &found.with)
                .with("ratios", found.ratios.iter().map(ratio).collect::<Vec<_>>())
        };
        std::iter::once(effect).chain(self.interactions.iter().map(depends)).collect()
    }
}

#[cfg(test)]
mod tests {
    use finding::Code;

    use super::super::{Factors, Observation, factors};

    fn codes(found: &Factors) -> Vec<Code> {
        found.findings().iter().map(|finding| finding.code).collect()
    }

    fn text(found: &Factors) -> String {
        finding::texts(&found.findings()).join("\n")
    }

    fn runs(levels: &[&str], values: &[f64]) -> Vec<Observation> {
        let of = |(level, value): (&&str, &f64)| Observation {
            levels: vec![("depth".to_owned(), (*level).to_owned())],
            block: None,
            ln_value: value.ln(),
        };
        levels.iter().zip(values).map(of).collect()
    }

    #[test]
    fn one_factor_at_a_time_is_judged_by_the_base_that_comes_again() {
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
        assert_eq!(found.findings().len(), 4, "{found:?}");
        let fs = found.findings().into_iter().find(|one| one.code == Code::FactorNoEffect).unwrap();
        assert_eq!(fs.value("factor"), Some(&"fs".into()));
        assert_eq!(fs.value("repeats"), Some(&true.into()));
    }

    #[test]
    fn four_runs_at_four_numbers_tell_a_trend_and_noise_is_none() {
        let levels = ["1", "2", "4", "8"];
        let found = factors(&runs(&levels, &[1.0, 2.01, 3.98, 8.03]));
        let effect = &found.effects[0];
        assert!(effect.matters && effect.low.unwrap() > 7.0, "{effect:?}");
        let said = text(&found);
        assert!(said.contains("depth matters. From 1 to 8 the rate is x8.0"), "{said}");
        // No trend, so none is said to matter, nor is anything excluded that four runs cannot exclude.
        let found = factors(&runs(&levels, &[1.0, 1.2, 0.9, 1.05]));
        assert!(!found.effects[0].matters, "{found:?}");
        // Names have no order: in a single run of each nothing could show.
        let found = factors(&runs(&["a", "b", "c", "d"], &[1.0, 2.0, 4.0, 8.0]));
        assert_eq!(codes(&found)[0], Code::FactorTooFew, "{found:?}");
    }

    #[test]
    fn pairs_are_those_of_the_two_levels_that_are_told() {
        // Two of the base, one of each other level: furthest apart are levels seen once.
        let found = factors(&runs(&["1", "2", "4", "1"], &[1.0, 0.8, 1.52, 1.01]));
        let said = text(&found);
        assert!(said.contains("From 2 to 4 the rate is x1.90 over 1 pair;"), "{said}");
    }

    #[test]
    fn so_few_runs_that_nothing_could_show_are_called_too_few() {
        for (levels, values, least) in [
            (&["1", "4"][..], &[1.0, 2.4][..], 1.0),
            (&["1", "4", "1"], &[1.0, 2.4, 1.01], 1.0 / 3.0),
        ] {
            let found = factors(&runs(levels, values));
            assert!((found.effects[0].p_least - least).abs() < 1e-9, "{:?}", found.effects);
            assert_eq!(codes(&found)[0], Code::FactorTooFew);
        }
        // One factor works together with nothing.
        let one = codes(&factors(&runs(&["1", "4", "1", "4"], &[1.0, 2.4, 1.01, 2.3])));
        assert!(!one.contains(&Code::InteractionsShare), "{one:?}");
        // Four of each: 2 of 70 ways are as far apart.
        let levels = ["1", "4", "1", "4", "1", "4", "1", "4"];
        let values = [1.0, 2.4, 1.02, 2.3, 0.98, 2.5, 1.01, 2.4];
        let found = factors(&runs(&levels, &values));
        assert!((found.effects[0].p_least - 2.0 / 70.0).abs() < 1e-9);
        assert!(found.effects[0].matters, "{:?}", text(&found));
    }
}
