//! What lies below the targets while they are measured: looked at when the first visit begins,
//! since files are made before and an array may be brought into the state to measure in, and once
//! more at the end.

use record::stack::{Condition, Unwell};
use record::{StackTree, Warning};
use stack::{Host, Target};
use store::Change;

use super::Running;
use crate::prepare::below;

/// What is known of it.
#[derive(Debug, Default)]
pub(super) struct Below {
    /// Of twins none.
    targets: Vec<Target>,
    /// As the run was prepared, or as the store has it of a run that was resumed.
    known: Option<StackTree>,
    is_stored: bool,
    /// Arrays that were not whole and at rest when the first visit of this process began.
    at_first: Option<Vec<Unwell>>,
}

impl Below {
    /// * `prepared`: what was found when the run was prepared.
    /// * `stored`: what the store has of a run that goes on.
    pub(super) fn new(
        targets: &[Target],
        prepared: Option<StackTree>,
        stored: Option<StackTree>,
    ) -> Self {
        let targets = targets.to_vec();
        let is_stored = stored.is_some();
        Self { targets, known: stored.or(prepared), is_stored, at_first: None }
    }

    fn look(&self) -> Option<StackTree> {
        let host = Host::this();
        // Files and mounts may be others than they were.
        let anew = |target: &Target| {
            stack::inspect(&host, &target.path.given).unwrap_or_else(|_| target.clone())
        };
        let targets: Vec<Target> = self.targets.iter().map(anew).collect();
        (!targets.is_empty()).then(|| below(&host, &targets))
    }
}

impl Running<'_> {
    /// To be called before every visit; does something before the first.
    pub(super) fn look_below(&mut self) {
        if self.below.at_first.is_some() {
            return;
        }
        let now = self.below.look();
        let unwell = now.as_ref().map(StackTree::unwell).unwrap_or_default();
        self.below.at_first = Some(unwell.clone());
        if self.below.is_stored {
            let then = self.below.known.as_ref().map(StackTree::unwell).unwrap_or_default();
            if let Some(warning) = changed("in the visits before the break", &then, &unwell) {
                self.warn(warning);
            }
        } else if let Some(now) = now {
            self.late.push(Change::Stack(Box::new(now)));
            self.below.is_stored = true;
        }
        for one in &unwell {
            self.warn(label(one));
        }
    }

    /// What changed while it was measured; and where nothing was, what was found before.
    pub(super) fn look_below_again(&mut self) {
        if let Some(known) = self.below.known.as_ref().filter(|_| !self.below.is_stored) {
            self.late.push(Change::Stack(Box::new(known.clone())));
            self.below.is_stored = true;
        }
        let Some(then) = self.below.at_first.take() else { return };
        let now = self.below.look().as_ref().map(StackTree::unwell).unwrap_or_default();
        if let Some(warning) = changed("as the first visit began", &then, &now) {
            self.warn(warning);
        }
    }
}

/// What is measured on such an array, as a doubt.
fn label(unwell: &Unwell) -> Warning {
    let code = match unwell.condition {
        Condition::Degraded => "array-degraded",
        Condition::Rebuilding => "array-rebuilding",
        Condition::Busy => "array-busy",
    };
    let Unwell { layer, how, .. } = unwell;
    Warning::new(code, format!("{layer} {how}: what is measured is the speed of that state"))
}

/// Told by layer and condition: how far something has come changes all the time.
fn changed(when: &str, then: &[Unwell], now: &[Unwell]) -> Option<Warning> {
    let key = |one: &Unwell| (one.layer.clone(), one.condition);
    let keys = |all: &[Unwell]| all.iter().map(key).collect::<std::collections::BTreeSet<_>>();
    if keys(then) == keys(now) {
        return None;
    }
    let told = |all: &[Unwell]| match all {
        [] => "all arrays were whole and at rest".to_owned(),
        some => {
            let each: Vec<String> =
                some.iter().map(|one| format!("{} {}", one.layer, one.how)).collect();
            each.join(", ")
        }
    };
    let text = format!(
        "{when}: {}; now: {}; visits of one state and of another are in this run",
        told(then),
        told(now)
    );
    Some(Warning::new("array-changed", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwell(layer: &str, condition: Condition, how: &str) -> Unwell {
        Unwell { layer: layer.into(), condition, how: how.into() }
    }

    #[test]
    fn a_change_of_state_is_told_and_progress_is_not() {
        let fills = unwell("md0", Condition::Rebuilding, "is filling 1 of 4 members");
        let lacks = unwell("md0", Condition::Degraded, "lacks 1 of 4 members");
        assert_eq!(changed("then", &[], &[]), None);
        assert_eq!(
            changed(
                "then",
                std::slice::from_ref(&fills),
                &[Unwell { how: "x".into(), ..fills.clone() }]
            ),
            None
        );
        let told = changed("then", &[fills], &[]).unwrap();
        assert!(told.text.starts_with("then: md0 is filling 1 of 4"), "{told:?}");
        assert!(changed("then", &[], &[lacks]).unwrap().text.contains("now: md0 lacks 1 of 4"));
    }

    #[test]
    fn each_state_has_its_code() {
        let code = |condition| label(&unwell("md0", condition, "x")).code;
        assert_eq!(code(Condition::Degraded), "array-degraded");
        assert_eq!(code(Condition::Rebuilding), "array-rebuilding");
        assert_eq!(code(Condition::Busy), "array-busy");
    }
}
