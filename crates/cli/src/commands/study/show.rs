//! What a study would do, and what came of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use layout::steps::{does_it, teardown};
use layout::{Action, Step};
use runner::TargetName;
use runner::study::{Device, Ended, Known, Left, Play, PlayError, steps_of};
use schemars::JsonSchema;
use serde::Serialize;
use store::Store;
use study::journal::Rebuild;
use study::{Assumed, Budget, PlannedStack, Stack};
use units::Nanos;

use super::Prepared;
use super::crew::settings;
use crate::commands::suites::duration;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::order;
use crate::output::{Output, json};

/// In the commands of a plan, where the key of the study will be.
const KEY: &str = "key";

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    schema: &'static str,
    name: &'a str,
    title: &'a str,
    file: String,
    design: &'static str,
    repeats: u32,
    seed: u64,
    /// What varies.
    factors: Vec<FactorOf<'a>>,
    /// What does not.
    fixed: BTreeMap<&'a str, &'a str>,
    /// What the design can tell, and what not.
    tells: Vec<String>,
    budget: BudgetOf,
    suites: Vec<&'a str>,
    devices: Vec<DeviceOf<'a>>,
    stacks: Vec<StackOf<'a>>,
    left_out: Vec<LeftOutOf<'a>>,
    /// The same for all runs; null for a plan.
    group: Option<&'a str>,
    /// `planned`, `complete`, `interrupted` or `incomplete`.
    state: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct FactorOf<'a> {
    name: &'a str,
    levels: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct BudgetOf {
    different_stacks: usize,
    builds: usize,
    runs: u32,
    building_ns: u64,
    least_ns: u64,
    most_ns: Option<u64>,
    bytes_written_least: u64,
}

#[derive(Serialize, JsonSchema)]
struct DeviceOf<'a> {
    path: &'a str,
    size: u64,
    serial: Option<&'a str>,
    /// Whether any stack is built on it: what is on it is then lost.
    in_stacks: bool,
    blank: bool,
    overridden: &'a [String],
}

#[derive(Serialize, JsonSchema)]
struct StackOf<'a> {
    number: u32,
    again: bool,
    levels: BTreeMap<&'a str, &'a str>,
    /// What is there already.
    target: Option<&'a str>,
    /// What is built.
    spec: Option<&'a layout::StackSpec>,
    steps: Option<&'a [Step]>,
    runs: Vec<RunOf>,
    failed: Option<&'a str>,
    /// Replaced members that were filled.
    rebuilds: Vec<RebuildOf>,
}

#[derive(Serialize, JsonSchema)]
struct RebuildOf {
    /// From the command to its end.
    took_ns: u64,
    /// The part of it during which a run was going on.
    measured_ns: u64,
    /// Bytes that were filled; null for makers that fill only what is stored.
    bytes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct RunOf {
    number: u32,
    suite: String,
    run: String,
    state: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct LeftOutOf<'a> {
    levels: BTreeMap<&'a str, &'a str>,
    why: &'a str,
}

fn pairs(levels: &[(String, String)]) -> BTreeMap<&str, &str> {
    levels.iter().map(|(name, level)| (name.as_str(), level.as_str())).collect()
}

/// Tells what would be done.
pub fn plan(
    prepared: &Prepared,
    play: &Play<'_>,
    is_json: bool,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let (devices, refused) = match play.look(&|_| Known::No) {
        Ok(devices) => (devices, None),
        // What would be built can be told all the same.
        Err(error @ PlayError::Refused(_)) => (Vec::new(), Some(error)),
        Err(error) => return Err(error.into()),
    };
    if refused.is_none() {
        play.check_plan(&devices, KEY)?;
    }
    let steps = match &refused {
        None => steps_of(&prepared.study, &devices, KEY)?,
        Some(_) => Vec::new(),
    };
    let mut tells = prepared.study.tells();
    tells.extend(lacking(play, &steps));
    tells.extend(not_installed(&steps));
    for source in &prepared.suites {
        let suite = suite::check(source, &suite::CheckContext::default())?;
        let said = suite::laps(source, &suite);
        tells.extend(said.iter().map(|text| format!("Suite {}, phase {text}.", source.name())));
    }
    tells.extend(not_measured(prepared, play)?);
    if is_json {
        let mut document = document(prepared, &devices, &steps, None, Vec::new());
        document.tells = tells;
        output.print(&json(&document)?)?;
    } else {
        output.print(&plan_text(prepared, &devices, &steps, &tells))?;
    }
    match refused {
        None => Ok(ExitCode::Ok),
        Some(error) => Err(error.into()),
    }
}

/// What the kernel is not seen to have: the stacks that need it cannot be built.
fn lacking(play: &Play<'_>, steps: &[(u32, Vec<Step>)]) -> Vec<String> {
    let lacks = stack::build::lacks(&play.host, steps.iter().flat_map(|(_, steps)| steps));
    let told = lacks.iter().map(|name| {
        format!(
            "This kernel has no {name}, and no module of it is seen: every stack that needs it would be \
             left out."
        )
    });
    told.collect()
}

/// Programs without which the study does not begin.
fn not_installed(steps: &[(u32, Vec<Step>)]) -> Option<String> {
    let missing = stack::build::missing_programs(steps.iter().flat_map(|(_, steps)| steps));
    (!missing.is_empty()).then(|| {
        format!(
            "Not installed here: {}. The study would not begin: install their packages, or take what \
             needs them out of it.",
            missing.join(", ")
        )
    })
}

/// Targets that a run would refuse, or could not use: each is left out when it is played.
fn not_measured(prepared: &Prepared, play: &Play<'_>) -> Result<Vec<String>, Failure> {
    let study = &prepared.study;
    let mut told = Vec::new();
    let mut seen: Vec<&Stack> = Vec::new();
    for one in &study.stacks {
        let Stack::Plain(target) = &one.stack else { continue };
        if seen.contains(&&one.stack) {
            continue;
        }
        seen.push(&one.stack);
        for source in &prepared.suites {
            let order = runner::Order {
                source: source.clone(),
                targets: vec![TargetName::parse(target.as_ref())?],
                seed: Some(study.seed),
                size_given: study.measure.size.is_some(),
                settings: settings(stack::Consent::default(), &play.store),
            };
            if let Err(error) = runner::prepare(&order) {
                let (number, suite) = (one.number, source.name());
                told.push(format!("Stack {number} would be left out of {suite}: {error}."));
            }
        }
    }
    Ok(told)
}

fn budget(prepared: &Prepared, devices: &[Device]) -> Budget {
    let size = |path: &str| {
        let found = devices.iter().find(|device| device.path == path);
        found.map(|device| device.identity.size)
    };
    prepared.study.budget(&prepared.times, size, Assumed::default())
}

fn plan_text(
    prepared: &Prepared,
    devices: &[Device],
    steps: &[(u32, Vec<Step>)],
    tells: &[String],
) -> String {
    let study = &prepared.study;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let title = if study.title.is_empty() { "a study" } else { &study.title };
    let _ = writeln!(out, "{}: {}\n", study.name, report::plain(title));
    say(&mut out, "What it tells", tells);
    say(&mut out, "What it costs", &budget(prepared, devices).sentences(time));
    let suites: Vec<String> = study.measure.suites.iter().map(|s| s.suite.clone()).collect();
    let fixed: Vec<String> = study.fixed.iter().map(|(k, v)| format!("{k} {v}")).collect();
    let mut same = vec![format!("Suites: {}.", suites.join(", "))];
    if !fixed.is_empty() {
        same.push(format!("The same in all: {}.", fixed.join(", ")));
    }
    say(&mut out, "What is measured", &same);
    let (used, idle): (Vec<&Device>, Vec<&Device>) =
        devices.iter().partition(|device| is_used(study, &device.path));
    if !used.is_empty() {
        let lines: Vec<String> = used.into_iter().map(device_line).collect();
        say(&mut out, "What is destroyed: all that is on", &lines);
    }
    if !idle.is_empty() {
        let lines: Vec<String> = idle.into_iter().map(device_line).collect();
        say(&mut out, "What is named and in no stack", &lines);
    }
    if !study.left_out.is_empty() {
        let lines: Vec<String> = study
            .left_out
            .iter()
            .map(|left| format!("{}: {}.", listed(&left.levels), left.why))
            .collect();
        say(&mut out, "What cannot be built, and is left out", &lines);
    }
    let _ = writeln!(out, "Stacks in their order");
    let mut shown: Vec<&PlannedStack> = Vec::new();
    for one in &study.stacks {
        let _ = writeln!(out, "\n{:>4}  {}", one.number, report::plain(&one.title()));
        if let Some(first) = shown.iter().find(|first| first.stack == one.stack) {
            let _ = writeln!(out, "      as stack {}", first.number);
            continue;
        }
        shown.push(one);
        match &one.stack {
            Stack::Plain(target) => {
                let _ = writeln!(out, "      {}", report::plain(&measures(target)));
            }
            Stack::Built(_) => {
                let of = steps.iter().find(|(number, _)| *number == one.number);
                let steps = of.map(|(_, steps)| steps.as_slice()).unwrap_or_default();
                steps.iter().for_each(|step| commands(&mut out, step));
                taken_down(&mut out, steps);
            }
        }
    }
    let is_blanked = |device: &&Device| device.blank && is_used(study, &device.path);
    let blanked: Vec<&str> =
        devices.iter().filter(is_blanked).map(|device| device.path.as_str()).collect();
    if !blanked.is_empty() {
        let _ = writeln!(out, "\nAt the end");
        let line = format!("The first and last MiB are zeroed of {}.", blanked.join(", "));
        out.push_str(&report::wrapped("  - ", &report::plain(&line)));
    }
    out
}

/// What becomes of a target that is not built.
fn measures(target: &str) -> String {
    match TargetName::parse(target.as_ref()) {
        Ok(TargetName::Path(path)) => match std::fs::metadata(&path) {
            Ok(found) if found.is_dir() => format!("measures a scratch file in {target}"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                format!("makes the file {target} and measures it: it does not exist")
            }
            _ => format!("measures {target}"),
        },
        _ if ["postgres:", "mariadb:", "sqlite:"].iter().any(|kind| target.starts_with(kind)) => {
            format!("makes a database, measures and removes it: {target}")
        }
        _ => format!("measures {target}, a simulated device"),
    }
}

/// What takes a stack down again: settings first, as it is done.
fn taken_down(out: &mut String, steps: &[Step]) {
    let undos = teardown(steps);
    let all: Vec<&Action> = undos.iter().map(|undo| &undo.action).collect();
    let once = all.iter().enumerate().filter(|(at, _)| does_it(&all, *at));
    let (settings, rest): (Vec<&Action>, Vec<&Action>) =
        once.map(|(_, action)| *action).partition(|one| matches!(one, Action::PutBack { .. }));
    if !all.is_empty() {
        let _ = writeln!(out, "      take it down again");
    }
    for one in settings.into_iter().chain(rest) {
        let _ = writeln!(out, "        {}", report::plain(&action(one)));
    }
}

fn commands(out: &mut String, step: &Step) {
    let _ = writeln!(out, "      {}", report::plain(&step.what));
    let _ = writeln!(out, "        {}", report::plain(&action(&step.action)));
    if step.waits_for.is_some() {
        let _ = writeln!(out, "        and waits for it to come into step");
    }
}

fn action(action: &Action) -> String {
    match action {
        Action::Run { argv } => {
            argv.iter().map(|word| layout::shell_word(word)).collect::<Vec<_>>().join(" ")
        }
        Action::WriteFile { path, value } => format!("write {value} to {path}"),
        Action::PutBack { path } => format!("put {path} back to what it was"),
        Action::MakeDirectory { path } => format!("mkdir -p {path}"),
        Action::RemoveDirectory { path } => format!("rmdir {path}"),
    }
}

/// Whether a stack is built on a device.
fn is_used(study: &study::Study, path: &str) -> bool {
    study.stacks.iter().any(|one| match &one.stack {
        Stack::Plain(_) => false,
        Stack::Built(spec) => spec.devices().iter().any(|device| device.as_str() == path),
    })
}

fn device_line(device: &Device) -> String {
    let serial = device.identity.serial.as_ref();
    let serial = serial.map_or(String::new(), |serial| format!(", serial {serial}"));
    let bears = match device.bears.as_slice() {
        [] => "blank".to_owned(),
        all => format!("NOT blank: {}", all.join(", ")),
    };
    format!("{} ({}{serial}): {bears}.", device.path, device.summary)
}

fn listed(levels: &[(String, String)]) -> String {
    let all: Vec<String> = levels.iter().map(|(name, level)| format!("{name} {level}")).collect();
    all.join(", ")
}

fn time(time: Nanos) -> String {
    duration(time)
}

fn say(out: &mut String, title: &str, sentences: &[String]) {
    let _ = writeln!(out, "{title}");
    for sentence in sentences {
        out.push_str(&report::wrapped("  - ", &report::plain(sentence)));
    }
    out.push('\n');
}

/// What a killed study left.
pub fn left(out: &mut String, left: &Left) {
    let _ = writeln!(out, "study {}", left.study);
    if left.lines.is_empty() {
        let _ = writeln!(
            out,
            "  nothing but files that its runs left, if any; it could still be resumed"
        );
    }
    for line in &left.lines {
        let _ = writeln!(out, "  {}", report::plain(line));
    }
}

/// Tells what came of it.
pub fn ended(
    prepared: &Prepared,
    ended: &Ended,
    store: &Store,
    is_json: bool,
    output: &Output,
) -> Result<(), Failure> {
    let made = made(ended, store, output)?;
    if is_json {
        let document = document(prepared, &[], &[], Some(ended), made);
        return output.print(&json(&document)?);
    }
    let study = &prepared.study;
    let mut out = format!("{}, group {}\n\n", study.name, ended.key);
    for one in &study.stacks {
        let of_stack = made.iter().filter(|(stack, _)| *stack == one.number);
        for (_, RunOf { run, state, suite, .. }) in of_stack {
            let title = report::plain(&one.title());
            let _ = writeln!(out, "{:>4}  {run:<6} {state:<12} {suite:<20} {title}", one.number);
        }
        if let Some((_, why)) = ended.failed.iter().find(|(stack, _)| *stack == one.number) {
            let _ = writeln!(out, "{:>4}  left out: {}", one.number, report::plain(why));
        }
        let rebuilt = ended.rebuilt.iter().filter(|(stack, _)| *stack == one.number);
        for rebuild in rebuilt.flat_map(|(_, all)| all) {
            let _ = writeln!(out, "{:>4}  {}", one.number, runner::study::told(rebuild));
        }
    }
    output.print(&out)?;
    let Ended { complete, of, key, .. } = ended;
    output.note(&format!("{complete} of {of} runs are complete"));
    if ended.interrupted {
        let file = prepared.text.file.as_str();
        output.hint(&format!("`plimsoll study {file} --resume` goes on"));
    }
    if *complete > 1 {
        output.hint(&format!("`plimsoll explain --group {key}` says what the factors do"));
    }
    Ok(())
}

/// The runs of the study by stack, in their order.
fn made(ended: &Ended, store: &Store, output: &Output) -> Result<Vec<(u32, RunOf)>, Failure> {
    let mut found: BTreeMap<u32, (u32, RunOf)> = BTreeMap::new();
    for run in order::readable(store, output)? {
        let Some(part) = run.part.as_ref().filter(|part| part.group == ended.key) else { continue };
        let stack = part.study.as_ref().map_or(0, |study| study.stack);
        let number = part.number;
        let of = RunOf { number, suite: run.suite.clone(), run: run.id, state: run.state.name() };
        found.insert(number, (stack, of));
    }
    Ok(found.into_values().collect())
}

fn rebuild_of(rebuild: &Rebuild) -> RebuildOf {
    let Rebuild { took_ns, measured_ns, bytes } = *rebuild;
    RebuildOf { took_ns, measured_ns, bytes }
}

/// The JSON schema of what `study --json` prints, draft 2020-12.
#[cfg(test)]
fn schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Document<'_>>()
}

fn document<'a>(
    prepared: &'a Prepared,
    devices: &'a [Device],
    steps: &'a [(u32, Vec<Step>)],
    ended: Option<&'a Ended>,
    made: Vec<(u32, RunOf)>,
) -> Document<'a> {
    let study = &prepared.study;
    let costs = budget(prepared, devices);
    let mut runs: BTreeMap<u32, Vec<RunOf>> = BTreeMap::new();
    for (stack, run) in made {
        runs.entry(stack).or_default().push(run);
    }
    let of = |one: &'a PlannedStack| StackOf {
        number: one.number,
        again: one.again,
        levels: pairs(&one.levels),
        target: match &one.stack {
            Stack::Plain(target) => Some(target.as_str()),
            Stack::Built(_) => None,
        },
        spec: match &one.stack {
            Stack::Built(spec) => Some(spec.as_ref()),
            Stack::Plain(_) => None,
        },
        steps: steps.iter().find(|(n, _)| *n == one.number).map(|(_, steps)| steps.as_slice()),
        runs: runs.remove(&one.number).unwrap_or_default(),
        failed: ended.and_then(|ended| {
            let of = ended.failed.iter().find(|(stack, _)| *stack == one.number);
            of.map(|(_, why)| why.as_str())
        }),
        rebuilds: ended.map_or(Vec::new(), |ended| {
            let of = ended.rebuilt.iter().filter(|(stack, _)| *stack == one.number);
            of.flat_map(|(_, all)| all).map(rebuild_of).collect()
        }),
    };
    Document {
        schema: "plimsoll.study/1",
        name: &study.name,
        title: &study.title,
        file: prepared.file.display().to_string(),
        design: study.measure.design.name(),
        repeats: study.measure.repeats,
        seed: study.seed,
        factors: study
            .factors
            .iter()
            .map(|factor| FactorOf { name: factor.name, levels: &factor.levels })
            .collect(),
        fixed: pairs(&study.fixed),
        tells: study.tells(),
        budget: BudgetOf {
            different_stacks: costs.different,
            builds: costs.builds,
            runs: costs.runs,
            building_ns: costs.building.get(),
            least_ns: costs.least.get(),
            most_ns: costs.most.map(Nanos::get),
            bytes_written_least: costs.written.get(),
        },
        suites: study.measure.suites.iter().map(|suite| suite.suite.as_str()).collect(),
        devices: devices
            .iter()
            .map(|device| DeviceOf {
                path: &device.path,
                size: device.identity.size.get(),
                serial: device.identity.serial.as_deref(),
                in_stacks: is_used(study, &device.path),
                blank: device.blank,
                overridden: &device.overridden,
            })
            .collect(),
        stacks: study.stacks.iter().map(of).collect(),
        left_out: study
            .left_out
            .iter()
            .map(|left| LeftOutOf { levels: pairs(&left.levels), why: &left.why })
            .collect(),
        group: ended.map(|ended| ended.key.as_str()),
        state: match ended {
            None => "planned",
            Some(ended) if ended.interrupted => "interrupted",
            Some(ended) if ended.complete < ended.of => "incomplete",
            Some(_) => "complete",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_missing_are_named() {
        let step = |program: &str| Step {
            what: "do it".to_owned(),
            stage: layout::Stage::FileSystem,
            action: Action::Run { argv: vec![program.to_owned(), "-x".to_owned()] },
            writes_to: vec![],
            makes: vec![],
            undo: vec![],
            waits_for: None,
            expect: vec![],
        };
        let here = [(1, vec![step("sh")])];
        assert_eq!(not_installed(&here), None);
        let lacks = [(1, vec![step("sh"), step("mkfs.nowhere")]), (2, vec![step("mkfs.nowhere")])];
        let said = not_installed(&lacks).unwrap();
        assert!(said.contains("Not installed here: mkfs.nowhere. "), "{said}");
    }

    #[test]
    fn the_committed_schema_is_the_current_one() {
        crate::commands::assert_committed("plimsoll.study-1.schema.json", &super::schema());
    }
}
