//! `plimsoll compare --group`: lists of suites that were played again, part by part.

use std::collections::{BTreeMap, BTreeSet};

use explain::compare::{Against, Comparison, Verdict};
use record::Run;
use serde::Serialize;
use store::Store;

use super::{CompareArgs, code, comparison, text};
use crate::commands::explain::of_group;
use crate::commands::suites::counted;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

/// The runs of a group by the number of their part; of a part that was played again the last.
struct Group {
    name: String,
    list: String,
    runs: BTreeMap<u32, Run>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    list: String,
    groups: Vec<String>,
    parts: Vec<Part>,
    /// Numbers of parts that not every group has.
    lonely: Vec<u32>,
    counts: Counts,
    exit_code: u8,
}

/// A part that every group has.
#[derive(Serialize)]
struct Part {
    number: u32,
    suite: String,
    comparison: Comparison,
    #[serde(skip)]
    runs: Vec<Run>,
}

/// How many comparisons of parts came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counts {
    worse: usize,
    different: usize,
    same: usize,
    inconclusive: usize,
    nothing_compared: usize,
}

impl Counts {
    fn of(against: &[Against]) -> Self {
        let mut counts = Self::default();
        for one in against {
            let count = match one.verdict {
                _ if !one.is_compared() => &mut counts.nothing_compared,
                _ if one.is_worse() => &mut counts.worse,
                Verdict::Different => &mut counts.different,
                Verdict::Same => &mut counts.same,
                Verdict::Inconclusive => &mut counts.inconclusive,
            };
            *count += 1;
        }
        counts
    }
}

/// Compares each part of the first group with the same part of the others, and prints what came of it.
pub fn groups(args: &CompareArgs, store: &Store, output: &Output) -> Result<ExitCode, Failure> {
    let (code, document) = document(args, store, output)?;
    if args.json {
        output.print(&json(&document)?)?;
    } else {
        let parts = document.parts.iter().map(|part| of_part(part, args.cells));
        output.print(&(parts.collect::<String>() + &summary(&document)))?;
    }
    Ok(if args.exit_code.is_some() { code } else { ExitCode::Ok })
}

fn document(
    args: &CompareArgs,
    store: &Store,
    output: &Output,
) -> Result<(ExitCode, Document), Failure> {
    let mut groups: Vec<Group> = Vec::new();
    for word in &args.runs {
        let group = load(store, word, output)?;
        if groups.iter().any(|known| known.name == group.name) {
            let message = format!("group {} is named twice", group.name);
            let hint = "a group is always the same as itself; `plimsoll list` shows the others";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        groups.push(group);
    }
    same_list(&groups)?;
    let (mut parts, mut lonely) = (Vec::new(), Vec::new());
    let numbers: BTreeSet<u32> =
        groups.iter().flat_map(|group| group.runs.keys().copied()).collect();
    for number in numbers {
        let runs: Option<Vec<Run>> =
            groups.iter_mut().map(|group| group.runs.remove(&number)).collect();
        let Some(runs) = runs.filter(|runs| same_suite(runs)) else {
            lonely.push(number);
            continue;
        };
        let comparison = comparison(args, store, &runs, output)?;
        let suite = runs.first().map_or_else(String::new, |run| run.header.suite.clone());
        parts.push(Part { number, suite, comparison, runs });
    }
    let against: Vec<Against> =
        parts.iter().flat_map(|part| part.comparison.against.iter().cloned()).collect();
    if against.is_empty() {
        let message = "the groups have no part in common";
        let hint = "`plimsoll list` shows which runs belong to which group";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    let code = match code(&against, args.exit_code.unwrap_or_default()) {
        // What was not compared is not as good as before.
        ExitCode::Ok | ExitCode::CannotTell if !lonely.is_empty() => ExitCode::NothingCompared,
        code => code,
    };
    let document = Document {
        schema: "plimsoll.comparisons/1",
        list: groups.first().map_or_else(String::new, |group| group.list.clone()),
        groups: groups.into_iter().map(|group| group.name).collect(),
        counts: Counts::of(&against),
        exit_code: code.number(),
        parts,
        lonely,
    };
    Ok((code, document))
}

fn of_part(part: &Part, cells: bool) -> String {
    let title = report::plain(&format!("{}  {}", part.number, part.suite));
    let line = "=".repeat(title.chars().count());
    format!("{title}\n{line}\n{}\n", text(&part.comparison, &part.runs, cells))
}

fn load(store: &Store, word: &str, output: &Output) -> Result<Group, Failure> {
    let mut group = Group { name: word.to_owned(), list: String::new(), runs: BTreeMap::new() };
    let ids = of_group(store, word, output)?;
    for run in order::load_group(store, &ids, output)? {
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
fn summary(document: &Document) -> String {
    let Document { parts, lonely, counts, .. } = document;
    let Counts { worse, different, same, inconclusive, nothing_compared } = counts;
    let mut out = format!(
        "{}: {worse} different for the worse, {different} different, {same} the same, \
         {inconclusive} inconclusive",
        counted((parts.len() + lonely.len()) as u64, "part")
    );
    if *nothing_compared > 0 {
        out.push_str(&format!(", {nothing_compared} with nothing to compare"));
    }
    if !lonely.is_empty() {
        let lonely: Vec<String> = lonely.iter().map(u32::to_string).collect();
        out.push_str(&format!("; not in every group: {}", lonely.join(", ")));
    }
    out + ".\n"
}
