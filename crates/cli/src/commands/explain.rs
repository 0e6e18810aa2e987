//! `plimsoll explain`

use clap::Args;
use explain::bought::Bought;
use explain::explanation::{Context, Explanation, OfRun};
use explain::group::{OfGroup, OfPart};
use explain::view::View;
use finding::numbers::count;
use finding::{Question, Section};
use record::Run;
use store::Store;

use crate::args::Common;
use crate::commands::calibrate::{calibration_of, floor_of};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll explain                     # what limits the newest run, and what disturbed it
  plimsoll explain r17 --all           # everything that was found
  plimsoll explain r17 --json          # one document (plimsoll.explanation/1)
  plimsoll explain --group last        # the runs of the newest list of suites, in short
  plimsoll explain --bought iops=3000,bandwidth=125MiB/s
                                       # does the volume give what was paid for
  plimsoll explain r4 r12 --factor disks=4,12
                                       # is the barrier the disks', or above them";

/// Explain runs: stalls, caches, gaps, bottlenecks, drift, each with its evidence
///
/// One run: what stalled and why, what a cache answered, which cells are far below their
/// neighbours, what the bottleneck is and where requests queue, what drifted. Several runs of one
/// suite: what differs between them, whether a bottleneck depends on a factor, and which factor
/// matters. The runs of a list of suites (`--group`): each part in short, then what they share.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExplainArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(default_value = "last", value_name = "RUN")]
    runs: Vec<String>,
    /// All runs of a list of suites: the group as `plimsoll list` shows it, or `last`
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["runs", "factor"])]
    group: Option<String>,
    /// What a factor's level was in each run, in their order
    ///
    /// A number for each (`disks=4,12`) also tells whether a barrier follows it. Without this the
    /// factors are what the runs themselves record as different. May be repeated.
    #[arg(long, value_name = "NAME=LEVEL,...", value_parser = factor)]
    factor: Vec<(String, Vec<String>)>,
    /// Check what was paid for: reached, missed, or the limit itself
    ///
    /// `iops` in requests a second, `bandwidth` in bytes a second; one of them, or both.
    #[arg(long, value_name = "iops=N,bandwidth=BYTES/s")]
    bought: Option<Bought>,
    /// Say everything: without it, the answer and the 25 lines of each run that matter most
    #[arg(long)]
    all: bool,
    /// Print one JSON document (plimsoll.explanation/1)
    #[arg(long)]
    json: bool,
}

/// Of each run beside the answer, unless somebody asks for all.
const LINES: usize = 25;
/// Letters of a line beside its mark.
const WIDTH: usize = 96;

pub fn explain(args: &ExplainArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let (runs, known) = load(args, common, output)?;
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let context = Context { factors: args.factor.clone(), bought: args.bought, ..known };
    let explanation = match args.group {
        Some(_) => Explanation::of_group(&views, &context),
        None => Explanation::of(&views, &context),
    };
    if args.json {
        return output.print(&json(&explanation)?);
    }
    output.print(&text(&explanation, args.all))
}

/// The answer of one run as it stands in its explanation, for the end of `run`.
pub fn answer(store: &Store, run: &Run, output: &Output) -> Result<String, Failure> {
    let context = context(store, std::slice::from_ref(run), output)?;
    let explanation = Explanation::of(&[View::new(run)], &context);
    let all = explanation.runs.iter().flat_map(|run| &run.sections);
    let mut out = String::new();
    for answer in all.filter(|section| section.question == Question::Answer) {
        section(&mut out, answer.question.title(), &answer.sentences());
    }
    Ok(out)
}

/// The runs, and what calibrations of their machines found.
fn load(
    args: &ExplainArgs,
    common: &Common,
    output: &Output,
) -> Result<(Vec<Run>, Context), Failure> {
    for (at, (name, levels)) in args.factor.iter().enumerate() {
        if args.factor.iter().take(at).any(|(before, _)| before == name) {
            let message = format!("factor `{name}` is given twice");
            let hint = "give each factor once, with a level per run";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        if args.runs.len() < 2 {
            let message =
                format!("factor `{name}` needs several runs to differ in, and one is named");
            let hint = "name two runs or more: `plimsoll explain r4 r12 --factor disks=4,12`";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        if levels.len() != args.runs.len() {
            let message =
                format!("factor `{name}` has {} levels for {} runs", levels.len(), args.runs.len());
            let hint = "give one level per run, in the order of the runs: `--factor disks=4,12`";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
    }
    let store = order::store_to_read(common)?;
    let ids = match &args.group {
        Some(group) => of_group(&store, group, output)?,
        None => named(&store, &args.runs, output)?,
    };
    let runs = match args.group {
        Some(_) => order::load_group(&store, &ids, output)?,
        None => ids.iter().map(|id| store.load(id)).collect::<Result<Vec<Run>, _>>()?,
    };
    let context = context(&store, &runs, output)?;
    Ok((runs, context))
}

/// What calibrations of the runs' machines found.
pub fn context(store: &Store, runs: &[Run], output: &Output) -> Result<Context, Failure> {
    let calibration = match runs.first() {
        Some(first) => calibration_of(store, &first.header, output)?,
        None => None,
    };
    let floors = runs.iter().map(|run| floor_of(store, std::slice::from_ref(run), output));
    Ok(Context {
        null_rate: calibration.and_then(|found| found.null_rate()),
        floors: floors.collect::<Result<_, _>>()?,
        ..Context::default()
    })
}

pub fn named(store: &Store, words: &[String], output: &Output) -> Result<Vec<String>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in words {
        let id = order::resolve(store, word, output)?;
        if ids.contains(&id) {
            let message = format!("{id} is named twice, the second time as `{word}`");
            return Err(Failure::new(ExitCode::Usage, message).hint("name each run once"));
        }
        ids.push(id);
    }
    Ok(ids)
}

/// The runs of a list of suites that can be read, by their place in it.
///
/// * `group`: as stored, or `last`: of the newest run that is part of a list.
pub fn of_group(store: &Store, group: &str, output: &Output) -> Result<Vec<String>, Failure> {
    let runs = order::readable(store, output)?;
    let parts = || runs.iter().filter_map(|run| Some((run.part.as_ref()?, &run.id)));
    let group = match group {
        "last" => parts().next_back().map_or(group, |(part, _)| part.group.as_str()),
        named => named,
    };
    let mut found: Vec<_> = parts().filter(|(part, _)| part.group == group).collect();
    if found.is_empty() {
        let message = match group {
            "last" => "no run belongs to a group".to_owned(),
            named => format!("no run belongs to the group {named}"),
        };
        let hint = "runs of a list of suites do; `plimsoll list` shows their groups";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    // A part that was played again comes after itself.
    found.sort_by_key(|(part, _)| part.number);
    Ok(found.into_iter().map(|(_, id)| id.clone()).collect())
}

fn factor(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, levels) = text.split_once('=').ok_or("wanted NAME=LEVEL,LEVEL,...")?;
    let levels: Vec<String> = levels.split(',').map(|level| level.trim().to_owned()).collect();
    if name.trim().is_empty() || levels.iter().any(String::is_empty) {
        return Err("wanted a name and no empty level".to_owned());
    }
    Ok((name.trim().to_owned(), levels))
}

fn text(explanation: &Explanation, all: bool) -> String {
    let mut out = String::new();
    if let Some(group) = &explanation.group {
        of_parts(&mut out, group, &explanation.runs);
    }
    // The parts of a group were told in short.
    for run in explanation.runs.iter().filter(|_| explanation.group.is_none()) {
        let (id, suite, target) = (&run.run, &run.suite, &run.target);
        title(&mut out, &format!("{id} {}", order::on(suite, target)));
        out.push_str(&format!("{}, {}\n", run.standing, run.visits.line()));
        if all {
            sections(&mut out, &run.sections);
            continue;
        }
        let most = finding::shortened(&run.sections, LINES, WIDTH);
        sections(&mut out, &most);
        let more = finding::sentences(&run.sections).saturating_sub(finding::sentences(&most));
        if more > 0 {
            let more = count(more as u64, "more line");
            out.push_str(&format!("\n{more}: `plimsoll explain {id} --all`\n"));
        }
    }
    if let Some(together) = &explanation.together {
        title(&mut out, "Together");
        sections(&mut out, &together.sections);
    }
    if let Some(apart) = &explanation.apart {
        title(&mut out, "Several suites");
        sections(&mut out, std::slice::from_ref(apart));
    }
    for together in &explanation.by_suite {
        let suite = explanation.runs.iter().find(|run| together.runs.contains(&run.run));
        let suite = suite.map_or("", |run| run.suite.as_str());
        title(&mut out, &format!("{suite}: {} together", together.runs.join(" ")));
        sections(&mut out, &together.sections);
    }
    out
}

/// Each part in short, and what is common.
fn of_parts(out: &mut String, group: &OfGroup, runs: &[OfRun]) {
    let OfGroup { list, of, .. } = group;
    let made = *of as usize - group.missing.len().min(*of as usize);
    let target = runs.first().map_or("", |run| run.target.as_str());
    let name = &group.group;
    title(out, &format!("{list} on {target}, group {name}: {made} of {of} parts"));
    for part in &group.parts {
        let OfPart { number, run, suite, sentences, .. } = part;
        section(out, &format!("{number}  {run}  {suite}"), sentences);
    }
    section(out, "What is common", &group.common);
    let example = group.parts.first().map_or("last", |part| part.run.as_str());
    let next = format!("`plimsoll explain {example}` tells all of one part.");
    section(out, "Next", std::slice::from_ref(&next));
}

fn title(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    let text = report::plain(text);
    out.push_str(&text);
    out.push('\n');
    out.push_str(&"=".repeat(text.chars().count()));
    out.push('\n');
}

fn sections(out: &mut String, sections: &[Section]) {
    for of in sections {
        section(out, of.question.title(), &of.sentences());
    }
}

fn section(out: &mut String, title: &str, sentences: &[String]) {
    out.push('\n');
    out.push_str(&report::plain(title));
    out.push('\n');
    for sentence in sentences {
        out.push_str(&report::wrapped("  - ", &report::plain(sentence)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_named_lists() {
        let disks = ("disks".to_owned(), vec!["4".to_owned(), "12".to_owned()]);
        assert_eq!(factor("disks=4, 12"), Ok(disks));
        for bad in ["", "disks", "=4", "disks=", "disks=4,,12"] {
            assert!(factor(bad).is_err(), "{bad}");
        }
    }
}
