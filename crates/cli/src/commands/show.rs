//! `plimsoll show`

use std::fmt::Write;

use clap::Args;
use explain::view::is_preparation;
use record::{Imported, PartOf, Run, RunHeader, TargetKind};
use report::stack::Detail;
use suite::model::{Method, Suite};
use suite::{CheckContext, SuiteError};
use units::Bytes;

use crate::args::Common;
use crate::commands::suites::{at_least, counted};
use crate::commands::table;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll show             # everything about the newest run
  plimsoll show r17 --json  # the same document as `plimsoll export r17 --format json`";

/// Show a run: what was measured, where, how, and the tables
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShowArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(default_value = "last")]
    run: String,
    /// Print one JSON document (plimsoll.run/1)
    #[arg(long)]
    json: bool,
}

pub fn show(args: &ShowArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let store = order::store_to_read(common)?;
    let run = store.load(&order::resolve(&store, &args.run, output)?)?;
    if args.json {
        return output.print(&json(&report::document(&run))?);
    }
    output.print(&format!("{}\n{}", facts(&run), table::both(&run)))
}

/// The plan that a run played, checked anew from what was stored.
pub fn plan(run: &Run) -> Result<suite::model::Suite, SuiteError> {
    let source = suite::parse(&run.header.suite_text, &run.header.id)?;
    suite::check(&source, &CheckContext::default())
}

/// What stands above the tables: label and value, one a line.
fn facts(run: &Run) -> String {
    let header = &run.header;
    let mut out = String::new();
    let mut fact = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{label:<11}{}", report::plain(&value));
    };
    fact("run", header.id.clone());
    fact("state", explain::visits::head(run));
    fact("suite", header.suite.clone());
    if let Some(imported) = &header.imported {
        for (label, value) in origin(run, imported) {
            fact(label, value);
        }
        return out;
    }
    if let Some(part) = &header.part {
        let PartOf { group, list, number, of, study } = part;
        fact("part", format!("{number} of {of} of {list}, group {group}"));
        if let Some(study) = study {
            let levels: Vec<String> =
                study.levels.iter().map(|(factor, level)| format!("{factor} {level}")).collect();
            let again = if study.again { " (the base again)" } else { "" };
            fact("stack", format!("{}{again}: {}", study.stack, levels.join(", ")));
            if let Some(state) = &study.state {
                fact("arrays", format!("measured {state}"));
            }
        }
    }
    fact("plan", plan_text(run));
    fact("seed", header.seed.to_string());
    for (label, value) in target(header) {
        fact(label, value);
    }
    for (label, value) in machine(header) {
        fact(label, value);
    }
    let tree = header.stack.as_ref();
    let tree = tree.map(|tree| report::stack::stack(tree, Detail::Brief)).unwrap_or_default();
    for (line, label) in tree.lines().zip(std::iter::once("stack").chain(std::iter::repeat(""))) {
        fact(label, line.to_owned());
    }
    for backend in backends(run) {
        fact("back end", backend);
    }
    fact("command", header.command_line.join(" "));
    fact("program", format!("plimsoll {}", header.program));
    out
}

/// What is known of a run that another tool made: nothing that it did not say.
fn origin(run: &Run, imported: &Imported) -> Vec<(&'static str, String)> {
    let header = &run.header;
    let version = imported.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
    let mut facts = vec![
        ("tool", format!("{}{version}", imported.tool)),
        ("file", imported.file.clone()),
        ("", format!("{} bytes, XXH3 {}", imported.bytes, imported.xxh3)),
    ];
    let target = &header.target;
    if !target.given.is_empty() {
        facts.push(("target", target.given.clone()));
    }
    let size = (target.size_bytes > 0).then(|| Bytes::new(target.size_bytes).to_string());
    let size = size.map(|size| match target.files {
        0 | 1 => size,
        files => format!("{files} files of {size}"),
    });
    facts.extend(size.map(|size| ("size", size)));
    facts.extend(target.file_system.iter().map(|name| ("on", name.clone())));
    if !header.machine.host.is_empty() {
        facts.push(("machine", header.machine.host.clone()));
    }
    for (name, value) in &imported.settings {
        facts.push(("setting", format!("{name}: {value}")));
    }
    facts.extend(imported.remarks.iter().map(|remark| ("remark", remark.clone())));
    facts.push(("command", header.command_line.join(" ")));
    facts.push(("program", format!("plimsoll {}", header.program)));
    facts
}

fn plan_text(run: &Run) -> String {
    // What only prepares is in no phase of the plan.
    let is_measured = |cell: &&record::CellRecord| !is_preparation(&cell.phase);
    match plan(run) {
        Ok(plan) => format!(
            "{} in {}, {}",
            counted(run.cells.iter().filter(is_measured).count() as u64, "cell"),
            counted(plan.phases.len() as u64, "phase"),
            method(&plan),
        ),
        // Written by a version with other words: the cells are stored all the same.
        Err(error) => format!("{} cells; {error}", run.cells.len()),
    }
}

fn method(plan: &Suite) -> String {
    match plan.method {
        Method::Classic => format!(
            "{} each in the suite's order, {}",
            counted(plan.repeats.into(), "visit"),
            at_least(plan.least_duration())
        ),
        Method::Rounds if plan.rounds.visits_min == plan.rounds.visits_max => format!(
            "{} each in rounds of random order",
            counted(plan.rounds.visits_max.into(), "visit")
        ),
        Method::Rounds => format!(
            "{} to {} each in rounds of random order, until +-{} %",
            plan.rounds.visits_min,
            counted(plan.rounds.visits_max.into(), "visit"),
            (plan.rounds.precision * 1e4).round() / 1e2
        ),
    }
}

fn target(header: &RunHeader) -> Vec<(&'static str, String)> {
    let target = &header.target;
    let mut facts = vec![("target", target.given.clone())];
    for one in &header.targets {
        let devices = match one.devices.as_slice() {
            [] => String::new(),
            devices => format!(", {}", devices.join(" > ")),
        };
        facts.push(("", format!("{}{devices}", one.resolved)));
    }
    if header.targets.is_empty() && target.resolved != target.given {
        facts.push(("", format!("is {}", target.resolved)));
    }
    let size = Bytes::new(target.size_bytes);
    let files =
        if target.files > 1 { format!("{} files of ", target.files) } else { String::new() };
    if target.kind != TargetKind::Database {
        facts.push(("", format!("{files}{size}")));
    }
    let on = [target.file_system.as_deref(), target.mount.as_deref()];
    let on: Vec<_> = on.into_iter().flatten().collect();
    if !on.is_empty() {
        facts.push(("", on.join(" on ")));
    }
    if !target.devices.is_empty() {
        let between = if header.targets.is_empty() { " > " } else { ", " };
        facts.push(("devices", target.devices.join(between)));
    }
    facts.extend(target.remarks.iter().map(|remark| ("remark", remark.clone())));
    facts
}

fn machine(header: &RunHeader) -> Vec<(&'static str, String)> {
    let machine = &header.machine;
    let memory = Bytes::new(machine.memory_bytes);
    let processors = format!("{} x {}, {memory} memory", machine.processors, machine.processor);
    vec![
        ("machine", format!("{} ({})", machine.host, machine.architecture)),
        ("", processors),
        ("kernel", machine.kernel.clone()),
    ]
}

/// Every back end that was in force, once.
fn backends(run: &Run) -> Vec<String> {
    let mut met = Vec::new();
    for record in run.visits.iter().flat_map(|visit| &visit.streams) {
        let backend = &record.backend;
        let io = if backend.direct { "direct" } else { "buffered" };
        let mut text = match run.header.target.kind {
            TargetKind::Database => backend.name.clone(),
            _ => format!("{}, {io}", backend.name),
        };
        for word in backend.flags.iter().chain(&backend.reasons) {
            text.push_str(", ");
            text.push_str(word);
        }
        if !met.contains(&text) {
            met.push(text);
        }
    }
    met
}
