//! Runs of a study know themselves what was varied: nobody has to name factors and levels, and what
//! a stack brings with it (a device's name, a mount point) is no factor of its own.

use finding::{Code, Finding, Value};
use record::RunHeader;

use crate::differ::{Differences, Factor, Kind};
use crate::view::View;

/// Whether a run is one of a study's.
pub(crate) fn is_of(view: &View<'_>) -> bool {
    view.run.header.part.as_ref().is_some_and(|part| part.study.is_some())
}

/// Which stack it was made on.
pub(crate) fn stack(view: &View<'_>) -> Option<Finding> {
    let study = view.run.header.part.as_ref()?.study.as_ref()?;
    let level = |(factor, level): &(String, String)| {
        Value::record([("factor", factor.into()), ("level", level.into())])
    };
    // Where the state is a factor it is among the levels.
    let named = study.levels.iter().any(|(factor, _)| factor == "state");
    let found = Finding::new(Code::PartStack)
        .with("stack", study.stack)
        .with("again", study.again)
        .with_some("state", study.state.as_ref().filter(|_| !named))
        .with("levels", study.levels.iter().map(level).collect::<Vec<_>>());
    Some(found)
}

/// (factor, its level in each run), if all runs are of one study; of factors that vary among them.
///
/// Empty where a run is of none, or of another.
pub(crate) fn levels(views: &[&View<'_>]) -> Vec<(String, Vec<String>)> {
    let parts = || views.iter().map(|view| view.run.header.part.as_ref());
    let Some(Some(first)) = parts().next() else { return Vec::new() };
    let Some(study) = &first.study else { return Vec::new() };
    let one = parts().all(|part| part.is_some_and(|part| part.group == first.group));
    if !one {
        return Vec::new();
    }
    let level_in = |name: &str, view: &View<'_>| -> Option<String> {
        let study = view.run.header.part.as_ref()?.study.as_ref()?;
        study.levels.iter().find(|(known, _)| known == name).map(|(_, level)| level.clone())
    };
    let each = study.levels.iter().filter_map(|(name, _)| {
        let levels: Option<Vec<String>> = views.iter().map(|view| level_in(name, view)).collect();
        Some((name.clone(), levels?))
    });
    each.filter(|(_, levels)| levels.iter().any(|level| *level != levels[0])).collect()
}

/// Names by which a stack is known; each of a study's has others.
pub(crate) const NAMES: [&str; 4] = ["devices", "mount point", "file", "target"];

/// (factor, level left, level right) of what differs between two stacks of one study; `None` where
/// the runs are not of one study.
pub(crate) fn varied(left: &RunHeader, right: &RunHeader) -> Option<Vec<(String, String, String)>> {
    let (left, right) = (left.part.as_ref()?, right.part.as_ref()?);
    let (of_left, of_right) = (left.study.as_ref()?, right.study.as_ref()?);
    if left.group != right.group {
        return None;
    }
    let pairs = of_left.levels.iter().filter_map(|(name, level)| {
        let (_, other) = of_right.levels.iter().find(|(known, _)| known == name)?;
        (level != other).then(|| (name.clone(), level.clone(), other.clone()))
    });
    Some(pairs.collect())
}

/// What the study varied, and what changed besides that no study varies: machine, program, plan.
pub(crate) fn differs(
    levels: &[(String, Vec<String>)],
    differences: &[Differences],
) -> Vec<Finding> {
    let mut said = vec![factors(Code::StudyVaried, levels)];
    let mut besides: Vec<(&Factor, &Differences)> = Vec::new();
    for found in differences {
        for factor in found.factors.iter().filter(|factor| factor.kind != Kind::Stack) {
            if !besides.iter().any(|(known, _)| known.name == factor.name) {
                besides.push((factor, found));
            }
        }
    }
    let besides = besides.into_iter();
    said.extend(besides.map(|(factor, between)| between.thing(Code::StudyChangedBesides, factor)));
    said
}

/// Factors with their levels, each level once.
pub(crate) fn factors(code: Code, levels: &[(String, Vec<String>)]) -> Finding {
    let factor = |(name, levels): &(String, Vec<String>)| {
        let mut known: Vec<String> = Vec::new();
        for level in levels {
            if !known.contains(level) {
                known.push(level.clone());
            }
        }
        Value::record([("factor", name.into()), ("levels", known.as_slice().into())])
    };
    Finding::new(code).with("factors", levels.iter().map(factor).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use record::{OfStudy, PartOf};

    use super::*;
    use crate::explanation::{Context, Explanation};

    fn run(number: u32, group: &str, file_system: &str) -> record::Run {
        let mut run = crate::freeze::tests::run(record::TargetKind::File, vec![]);
        run.header.id = format!("r{number}");
        run.header.target.file_system = Some(file_system.to_owned());
        run.header.target.devices = vec![format!("dm-{number}")];
        let levels = vec![("fs".into(), file_system.into()), ("legs".into(), "1".into())];
        let study = Some(OfStudy { stack: number, levels, again: false, state: None });
        let (list, of) = ("s".to_owned(), 3);
        run.header.part = Some(PartOf { group: group.to_owned(), list, number, of, study });
        run
    }

    #[test]
    fn between_two_stacks_of_a_study_their_levels_differ() {
        let [mut healthy, mut degraded] = [run(1, "g", "xfs"), run(2, "g", "xfs")];
        let state = |run: &mut record::Run, state: &str| {
            let study = run.header.part.as_mut().unwrap().study.as_mut().unwrap();
            study.levels.push(("state".into(), state.into()));
            study.state = (state != "healthy").then(|| state.to_owned());
        };
        state(&mut healthy, "healthy");
        state(&mut degraded, "degraded");
        let found = crate::differ::differences(&healthy, &degraded);
        let said = found.sentences().join(" ");
        assert!(
            said.contains("One thing differs: state (healthy in r1, degraded in r2)"),
            "{said}"
        );
        // The base and the base again have other names, and nothing else.
        let found = crate::differ::differences(&run(1, "g", "xfs"), &run(2, "g", "xfs"));
        assert!(found.is_none(), "{found:?}");
        // Where every stack is degraded the state is no level, and told all the same.
        let mut alike = run(1, "g", "xfs");
        alike.header.part.as_mut().unwrap().study.as_mut().unwrap().state =
            Some("degraded".to_owned());
        let said = |run: &record::Run| stack(&View::new(run)).unwrap().text();
        assert_eq!(said(&alike), "Stack 1, degraded: fs xfs; legs 1.");
        assert_eq!(said(&degraded), "Stack 2: fs xfs; legs 1; state degraded.");
    }

    #[test]
    fn factors_of_a_study_are_those_it_varied() {
        let runs = [run(1, "g", "ext4"), run(2, "g", "xfs"), run(3, "g", "ext4")];
        let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
        let all: Vec<&View<'_>> = views.iter().collect();
        let wanted = vec!["ext4".to_owned(), "xfs".to_owned(), "ext4".to_owned()];
        assert_eq!(levels(&all), [("fs".to_owned(), wanted)]);
        let told = Explanation::of(&views, &Context::default());
        let said = &told.together.unwrap().sections[0].sentences();
        assert_eq!(
            *said,
            ["The study varied fs (ext4 and xfs)."],
            "devices and mounts are no factors"
        );
        let other = [runs[0].clone(), run(2, "other", "xfs")];
        let views: Vec<View<'_>> = other.iter().map(View::new).collect();
        assert!(levels(&views.iter().collect::<Vec<_>>()).is_empty(), "two studies are not one");
    }
}
