//! `plimsoll compare --group`: lists of suites that were played again, part by part.

use std::collections::BTreeMap;

use explain::compare::{Against, Verdict};
use record::Run;
use store::Store;

use super::{CompareArgs, code, comparison, text};
use crate::commands::explain::of_group;
use crate::commands::suites::counted;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::Output;

/// The runs of a group by the number of their part; of a part that was played again the last.
struct Group {
    name: String,
    list: String,
    runs: BTreeMap<u32, Run>,
}

/// Compares each part of the first group with the same part of the others, and prints what came of it.
pub fn groups(args: &CompareArgs, store: &Store, output: &Output) -> Result<ExitCode, Failure> {
    if args.json {
        let message = "a comparison of groups is no single document";
        let hint = "leave `--json` out, or compare the runs of one part: `plimsoll compare r4 r12`";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    let mut groups: Vec<Group> = Vec::new();
    for word in &args.runs {
        let group = load(store, word)?;
        if groups.iter().any(|known| known.name == group.name) {
            let message = format!("group {} is named twice", group.name);
            let hint = "a group is always the same as itself; `plimsoll list` shows the others";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        groups.push(group);
    }
    same_list(&groups)?;
    let mut against = Vec::new();
    let mut out = String::new();
    let mut lonely = Vec::new();
    let numbers: Vec<u32> = groups.iter().flat_map(|group| group.runs.keys().copied()).collect();
    let numbers = std::collections::BTreeSet::from_iter(numbers);
    for number in &numbers {
        let runs: Option<Vec<Run>> =
            groups.iter_mut().map(|group| group.runs.remove(number)).collect();
        let Some(runs) = runs.filter(|runs| same_suite(runs)) else {
            lonely.push(number.to_string());
            continue;
        };
        let found = comparison(args, store, &runs)?;
        let suite = runs.first().map_or("", |run| run.header.suite.as_str());
        let title = report::plain(&format!("{number}  {suite}"));
        let line = "=".repeat(title.chars().count());
        out.push_str(&format!("{title}\n{line}\n"));
        out.push_str(&text(&found, store, &runs, args.cells));
        out.push('\n');
        against.extend(found.against);
    }
    if against.is_empty() {
        let message = "the groups have no part in common";
        let hint = "`plimsoll list` shows which runs belong to which group";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    out.push_str(&summary(&against, numbers.len(), &lonely));
    output.print(&out)?;
    let code = if lonely.is_empty() {
        code(&against)
    } else {
        // What was not compared is not as good as before.
        match code(&against) {
            ExitCode::Ok => ExitCode::NothingCompared,
            other => other,
        }
    };
    Ok(if args.exit_code { code } else { ExitCode::Ok })
}

fn load(store: &Store, word: &str) -> Result<Group, Failure> {
    let mut group = Group { name: word.to_owned(), list: String::new(), runs: BTreeMap::new() };
    for id in of_group(store, word)? {
        let run = store.load(&id)?;
        let Some(part) = run.header.part.clone() else { continue };
        group.name = part.group;
        group.list = part.list;
        group.runs.insert(part.number, run);
    }
    Ok(group)
}

fn same_list(groups: &[Group]) -> Result<(), Failure> {
    let Some((first, others)) = groups.split_first() else { return Ok(()) };
    match others.iter().find(|other| other.list != first.list) {
        Some(other) => {
            let message = format!(
                "group {} is of the list {}, group {} of {}",
                first.name, first.list, other.name, other.list
            );
            let hint = "parts are matched by their place in one list; compare single runs instead";
            Err(Failure::new(ExitCode::Usage, message).hint(hint))
        }
        None => Ok(()),
    }
}

fn same_suite(runs: &[Run]) -> bool {
    runs.windows(2).all(|pair| pair[0].header.suite == pair[1].header.suite)
}

/// How many parts came out how, in a few lines.
///
/// * `lonely`: parts that not every group has.
fn summary(against: &[Against], parts: usize, lonely: &[String]) -> String {
    let of = |wanted: fn(&Against) -> bool| against.iter().filter(|one| wanted(one)).count();
    let nothing = of(|one| !one.is_compared());
    let worse = of(|one| one.is_compared() && one.is_worse());
    let other = of(|one| one.is_compared() && !one.is_worse() && one.verdict == Verdict::Different);
    let same = of(|one| one.is_compared() && one.verdict == Verdict::Same);
    let open = against.len().saturating_sub(nothing + worse + other + same);
    let mut out = format!(
        "{}: {worse} different for the worse, {other} different, {same} the same, {open} \
         inconclusive",
        counted(parts as u64, "part")
    );
    if nothing > 0 {
        out.push_str(&format!(", {nothing} with nothing to compare"));
    }
    if !lonely.is_empty() {
        out.push_str(&format!("; not in every group: {}", lonely.join(", ")));
    }
    out + ".\n"
}
