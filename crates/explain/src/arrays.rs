//! The state that arrays were measured in: a rate of a degraded array is no rate of that array.

use finding::{Code, Finding, Value};
use record::Run;
use record::stack::{Condition, Unwell};
use schemars::JsonSchema;
use serde::Serialize;

use crate::words::list;

/// The state of all arrays below a run's targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Arrays {
    /// The worst of them; null where all were whole and at rest, or there was none.
    pub condition: Option<Condition>,
    /// Those that were not whole and at rest as the first visit began.
    pub unwell: Vec<Unwell>,
}

impl Arrays {
    /// `None` where nothing is known of what lay below: imported runs, twins, runs of before.
    ///
    /// What a study says that it brought its stack into counts as well: nothing in the system tells of
    /// a member that btrfs or zfs lacks, and a small array is full again before anybody looks.
    pub fn of(run: &Run) -> Option<Self> {
        let seen = run.header.stack.as_ref().map(|stack| stack.unwell());
        let planned = planned(run);
        if seen.is_none() && planned.is_none() {
            return None;
        }
        let mut unwell = seen.unwrap_or_default();
        unwell.extend(planned.filter(|one| unwell.iter().all(|o| o.condition != one.condition)));
        let condition = unwell.iter().map(|one| one.condition).min();
        Some(Self { condition, unwell })
    }

    /// `whole`, `degraded`, ...
    pub fn word(&self) -> &'static str {
        self.condition.map_or("whole", Condition::word)
    }

    /// `md0 lacks 1 of 4 members`, for each that was not whole.
    fn each(&self) -> Vec<String> {
        self.unwell.iter().map(|one| format!("{} {}", one.layer, one.how)).collect()
    }
}

/// The state that a study brought its stack into.
fn planned(run: &Run) -> Option<Unwell> {
    let study = run.header.part.as_ref()?.study.as_ref()?;
    let (condition, how) = match study.state.as_deref()? {
        "degraded" => (Condition::Degraded, "that lost a member before its first visit"),
        "rebuilding" => (Condition::Rebuilding, "a member of which was being filled"),
        _ => return None,
    };
    Some(Unwell { layer: "the study's stack".to_owned(), condition, how: how.to_owned() })
}

/// What is to be said of a run by itself.
pub(crate) fn findings(run: &Run) -> Vec<Finding> {
    let arrays = Arrays::of(run);
    let unwell = arrays.as_ref().and_then(|arrays| Some((arrays.condition?, arrays)));
    let unwell = unwell.map(|(condition, arrays)| {
        let each = arrays.each().into_iter().map(Value::words).collect();
        Finding::new(Code::ArrayNotWhole)
            .with("state", Value::words(condition.word()))
            .with("arrays", Value::List(each))
    });
    let changes = run.header.warnings.iter().filter(|warning| warning.code == "array-changed");
    let changes = changes.map(|warning| {
        let how = warning.text.trim_end_matches('.');
        Finding::new(Code::ArrayChanged).with("how", Value::words(how))
    });
    unwell.into_iter().chain(changes).collect()
}

/// What is to be said of two runs held against each other; nothing where both were whole, or
/// nothing is known of either.
///
/// * `label`: of the other side; the reference is A.
pub(crate) fn between(
    reference: Option<&Arrays>,
    other: Option<&Arrays>,
    label: &str,
) -> Option<String> {
    let state = |arrays: Option<&Arrays>| arrays.map_or("of unknown state", Arrays::word);
    let sides = [("A", reference), (label, other)];
    let unwell = sides.iter().filter_map(|(name, arrays)| {
        let arrays = arrays.filter(|arrays| arrays.condition.is_some())?;
        Some(format!("{name}: {}", list(&arrays.each())))
    });
    let unwell: Vec<String> = unwell.collect();
    if unwell.is_empty() {
        return None;
    }
    let (a, b) = (state(reference), state(other));
    let evidence = unwell.join("; ");
    Some(if a == b {
        format!("Both were measured on arrays that were {a} ({evidence}).")
    } else {
        format!(
            "The arrays were not in the same state: A's {a}, {label}'s {b} ({evidence}). The ratio \
             says what that state costs, with whatever else differs; it is none of two whole stacks."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(condition: Option<Condition>) -> Arrays {
        let one = |condition| Unwell {
            layer: "md0".into(),
            condition,
            how: "lacks 1 of 4 members".into(),
        };
        Arrays { condition, unwell: condition.map(one).into_iter().collect() }
    }

    #[test]
    fn a_state_that_a_study_planned_is_that_of_its_arrays() {
        let mut run = crate::freeze::tests::run(record::TargetKind::File, vec![]);
        assert_eq!(Arrays::of(&run), None);
        let study = |state: Option<&str>| record::PartOf {
            group: "g".into(),
            list: "s".into(),
            number: 1,
            of: 2,
            study: Some(record::OfStudy { state: state.map(Into::into), ..Default::default() }),
        };
        run.header.part = Some(study(Some("degraded")));
        assert_eq!(Arrays::of(&run).unwrap().condition, Some(Condition::Degraded));
        let said = findings(&run)[0].text();
        assert!(said.contains("an array that was degraded: the study's stack that lost"), "{said}");
        // Nothing in the tree tells of it: the study's word counts.
        run.header.stack = Some(crate::advice::example::tree(vec![]));
        assert_eq!(Arrays::of(&run).unwrap().word(), "degraded");
        run.header.part = Some(study(Some("rebuilding")));
        assert_eq!(Arrays::of(&run).unwrap().unwell.len(), 1);
        assert_eq!(Arrays::of(&run).unwrap().word(), "rebuilding");
        run.header.part = Some(study(None));
        assert_eq!(Arrays::of(&run).unwrap().word(), "whole");
    }

    #[test]
    fn whole_against_degraded_is_never_silent() {
        let (whole, degraded) = (arrays(None), arrays(Some(Condition::Degraded)));
        let of = |a: Option<&Arrays>, b: Option<&Arrays>| between(a, b, "B");
        let told = of(Some(&whole), Some(&degraded)).unwrap();
        assert!(told.contains("A's whole, B's degraded (B: md0 lacks 1 of 4 members)"), "{told}");
        assert!(of(Some(&degraded), Some(&whole)).unwrap().contains("A's degraded, B's whole"));
        let unknown = of(None, Some(&degraded)).unwrap();
        assert!(unknown.contains("A's of unknown state, B's degraded"), "{unknown}");
        let rebuilding = arrays(Some(Condition::Rebuilding));
        assert!(of(Some(&degraded), Some(&rebuilding)).unwrap().contains("not in the same state"));
        assert!(of(Some(&degraded), Some(&degraded)).unwrap().starts_with("Both were measured"));
        assert_eq!((of(Some(&whole), Some(&whole)), of(None, None)), (None, None));
        assert_eq!(of(None, Some(&whole)), None);
    }
}
