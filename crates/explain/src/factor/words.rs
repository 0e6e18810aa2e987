//! Factors in sentences.

use super::{Effect, Factors, Refusal};
use crate::words::{count, list, percent};

impl Factors {
    /// What may be said about each factor, and first what may not.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences: Vec<String> = self.refused.iter().map(refusal_words).collect();
        sentences.extend(self.effects.iter().flat_map(effect_words));
        if let Some(share) = self.share_interactions {
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
                "How large an effect would be found is unknown: nothing was repeated. Repeat the \
                 base at least 3 times."
                    .to_owned(),
            ),
            _ => {}
        }
        if sentences.is_empty() {
            sentences.push("Factors: unknown. No runs that differ in anything were given.".into());
        }
        sentences
    }
}

fn refusal_words(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Inseparable(factors) => format!(
            "Refused: {} changed together, so no single one can be credited. Measure again with \
             one of them changed alone.",
            list(factors)
        ),
        Refusal::Constant(factor) => {
            format!("{factor}: unknown. It has the same level in all runs.")
        }
        Refusal::NoPairs(factor) => format!(
            "{factor}: unknown. No two runs differ in it alone; measure one more run with only \
             this changed."
        ),
    }
}

fn effect_words(effect: &Effect) -> Vec<String> {
    let Effect { factor, from, to, ratio, .. } = effect;
    let range = match (effect.low, effect.high) {
        (Some(low), Some(high)) => format!(" [{low:.2}, {high:.2}]"),
        _ => String::new(),
    };
    let verdict = match (effect.matters, effect.interactions.is_empty()) {
        (true, true) => "it matters",
        (_, false) => "it depends on others",
        (false, true) => "not shown to matter",
    };
    let share =
        effect.share.map_or(String::new(), |share| format!(", {} of the variance", percent(share)));
    let mut sentences = vec![format!(
        "{factor}: {verdict}. From {from} to {to} it is x{ratio:.2}{range} over {} (adjusted p \
         {:.3}{share}).",
        count(u64::from(effect.pairs), "pair"),
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
