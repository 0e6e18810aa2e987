//! Runs of a study know themselves what was varied: nobody has to name factors and levels, and what
//! a stack brings with it (a device's name, a mount point) is no factor of its own.

use crate::differ::{Differences, Factor, Kind};
use crate::view::View;
use crate::words::list;

/// Whether a run is one of a study's.
pub(crate) fn is_of(view: &View<'_>) -> bool {
    view.run.header.part.as_ref().is_some_and(|part| part.study.is_some())
}

/// Which stack it was made on, as a sentence.
pub(crate) fn stack(view: &View<'_>) -> Option<String> {
    let study = view.run.header.part.as_ref()?.study.as_ref()?;
    let levels: Vec<String> =
        study.levels.iter().map(|(factor, level)| format!("{factor} {level}")).collect();
    let again = if study.again { ", the base again" } else { "" };
    let levels = if levels.is_empty() { "nothing is varied".to_owned() } else { levels.join(", ") };
    Some(format!("Stack {}{again}: {levels}.", study.stack))
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

/// What the study varied, and what changed besides that no study varies: machine, program, plan.
pub(crate) fn differs(
    levels: &[(String, Vec<String>)],
    differences: &[Differences],
) -> Vec<String> {
    let names: Vec<String> = levels
        .iter()
        .map(|(name, levels)| {
            let mut known: Vec<&str> = Vec::new();
            for level in levels {
                if !known.contains(&level.as_str()) {
                    known.push(level);
                }
            }
            format!("{name} ({})", known.join(", "))
        })
        .collect();
    let mut said = vec![format!("The study varied {}.", list(&names))];
    let mut besides: Vec<(&Factor, &Differences)> = Vec::new();
    for found in differences {
        for factor in found.factors.iter().filter(|factor| factor.kind != Kind::Stack) {
            if !besides.iter().any(|(known, _)| known.name == factor.name) {
                besides.push((factor, found));
            }
        }
    }
    for (factor, between) in besides {
        said.push(format!(
            "Besides, {} changed: {} in {}, {} in {}. What it does cannot be told from the factors.",
            factor.name, factor.left, between.left, factor.right, between.right
        ));
    }
    said
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
        let study = Some(OfStudy { stack: number, levels, again: false });
        let (list, of) = ("s".to_owned(), 3);
        run.header.part = Some(PartOf { group: group.to_owned(), list, number, of, study });
        run
    }

    #[test]
    fn factors_of_a_study_are_those_it_varied() {
        let runs = [run(1, "g", "ext4"), run(2, "g", "xfs"), run(3, "g", "ext4")];
        let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
        let all: Vec<&View<'_>> = views.iter().collect();
        let wanted = vec!["ext4".to_owned(), "xfs".to_owned(), "ext4".to_owned()];
        assert_eq!(levels(&all), [("fs".to_owned(), wanted)]);
        let told = Explanation::of(&views, &Context::default());
        let said = &told.together.unwrap().sections[0].sentences;
        assert_eq!(
            *said,
            ["The study varied fs (ext4, xfs)."],
            "devices and mounts are no factors"
        );
        let other = [runs[0].clone(), run(2, "other", "xfs")];
        let views: Vec<View<'_>> = other.iter().map(View::new).collect();
        assert!(levels(&views.iter().collect::<Vec<_>>()).is_empty(), "two studies are not one");
    }
}
