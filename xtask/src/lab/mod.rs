//! The lab: real arrays in User-Mode Linux, with truths planted in them that the program must find.

mod check;
mod machine;
mod scenario;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;

use self::check::{Checked, Harvest};
use self::machine::End;
use self::scenario::Scenario;
use crate::repo::Repo;

/// What the JSON document is.
const SCHEMA: &str = "plimsoll.lab/1";

#[derive(Args, Debug)]
pub struct Options {
    /// Which scenarios; all when none is named
    names: Vec<String>,
    /// Only those of the short form: a few minutes
    #[arg(long)]
    short: bool,
    /// Names the scenarios and what each plants
    #[arg(long)]
    list: bool,
    /// The plimsoll that measures inside and answers outside; the release build when not given,
    /// else the debug build
    #[arg(long)]
    plimsoll: Option<PathBuf>,
    /// Multiplies the time limits, for slow machines
    #[arg(long, default_value_t = 1.0)]
    patience: f64,
    /// How many scenarios at a time: each keeps one processor busy for a part of its time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
}

/// How a scenario ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Passed,
    Failed,
    Skipped,
}

/// What came of a scenario.
#[derive(Debug, Serialize)]
struct Outcome {
    name: String,
    title: String,
    state: State,
    seconds: f64,
    /// Why it was skipped, or why its script did not end well.
    reason: Option<String>,
    checks: Vec<Checked>,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'a str,
    scenarios: &'a [Outcome],
}

/// Whether none failed.
pub fn run(repo: &Repo, options: &Options) -> Result<bool> {
    let scenarios = choose(Scenario::all(repo)?, options)?;
    if options.list {
        for scenario in &scenarios {
            println!("{:20} {}", scenario.name, scenario.title);
            for line in scenario.why.trim().lines() {
                println!("  {line}");
            }
        }
        return Ok(true);
    }
    let plimsoll = plimsoll(repo, options.plimsoll.as_deref());
    let folder = repo.target_directory().join("lab");
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    let folder = fs::canonicalize(folder)?;
    let lab = Lab {
        home: fs::canonicalize(repo.path("lab"))?,
        preload: wide_registers(repo, &folder),
        folder,
        plimsoll,
        patience: options.patience.max(0.0),
        short: options.short,
    };
    let outcomes = lab.outcomes(&scenarios, options.jobs)?;
    if options.json {
        let document = Document { schema: SCHEMA, scenarios: &outcomes };
        println!("{}", serde_json::to_string_pretty(&document)?);
    } else {
        print!("{}", table(&outcomes));
    }
    Ok(outcomes.iter().all(|outcome| outcome.state != State::Failed))
}

fn choose(all: Vec<Scenario>, options: &Options) -> Result<Vec<Scenario>> {
    let names = &options.names;
    let known = |name: &&String| all.iter().any(|scenario| scenario.name == **name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        bail!("no scenario `{unknown}`; --list names them");
    }
    let named = |scenario: &Scenario| match names.is_empty() {
        true => !scenario.by_hand || options.list,
        false => names.contains(&scenario.name),
    };
    let wanted = |scenario: &Scenario| named(scenario) && (!options.short || scenario.short);
    Ok(all.into_iter().filter(wanted).collect())
}

fn plimsoll(repo: &Repo, given: Option<&Path>) -> Option<PathBuf> {
    let built = [repo.release_binary("plimsoll"), repo.debug_binary("plimsoll")];
    let found = match given {
        Some(path) => Some(path.to_owned()),
        None => built.into_iter().find(|path| path.is_file()),
    };
    found.and_then(|path| fs::canonicalize(path).ok())
}

/// Compiles `lab/registers.c` where the processor has AMX; without a compiler machines go down at once.
fn wide_registers(repo: &Repo, folder: &Path) -> Option<PathBuf> {
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if !processor.contains("amx_tile") {
        return None;
    }
    let library = folder.join("registers.so");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library);
    let made = compiler.arg(repo.path("lab/registers.c")).status();
    made.is_ok_and(|status| status.success()).then_some(library)
}

/// Where scenarios are played, and with what.
#[derive(Debug)]
struct Lab {
    home: PathBuf,
    folder: PathBuf,
    /// A library that the kernel needs on this processor.
    preload: Option<PathBuf>,
    plimsoll: Option<PathBuf>,
    patience: f64,
    short: bool,
}

impl Lab {
    /// What comes of each, in their order; those that may take longest are begun first.
    fn outcomes(&self, scenarios: &[Scenario], jobs: usize) -> Result<Vec<Outcome>> {
        let mut order: Vec<usize> = (0..scenarios.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(scenarios[at].seconds_max));
        let next = AtomicUsize::new(0);
        let found: Vec<Mutex<Option<Result<Outcome>>>> =
            scenarios.iter().map(|_| Mutex::default()).collect();
        // A machine is told when the thread that started it ends: each stays for its machines.
        std::thread::scope(|scope| {
            for _ in 0..jobs.clamp(1, scenarios.len().max(1)) {
                scope.spawn(|| {
                    while let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let outcome = self.outcome(&scenarios[at]);
                        if let Ok(mut place) = found[at].lock() {
                            *place = Some(outcome);
                        }
                    }
                });
            }
        });
        let taken = found.into_iter().map(|one| one.into_inner().ok().flatten());
        taken.map(|one| one.context("a scenario ended without an outcome")?).collect()
    }

    fn outcome(&self, scenario: &Scenario) -> Result<Outcome> {
        let start = Instant::now();
        let mut outcome = Outcome {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            state: State::Skipped,
            seconds: 0.0,
            reason: None,
            checks: Vec::new(),
        };
        let kernel = scenario::program(machine::KERNEL).is_some();
        let kernel =
            (!kernel).then(|| format!("no {} here; package user-mode-linux", machine::KERNEL));
        let Some(plimsoll) = &self.plimsoll else {
            bail!("no plimsoll is built; `cargo build --release --package plimsoll` makes it");
        };
        outcome.reason = kernel.or_else(|| scenario.missing());
        if let Some(reason) = &outcome.reason {
            eprintln!("{}: skipped: {reason}", scenario.name);
            return Ok(outcome);
        }
        self.play(scenario, plimsoll, &mut outcome)
            .with_context(|| format!("scenario {}", scenario.name))?;
        outcome.seconds = start.elapsed().as_secs_f64();
        let passed = outcome.reason.is_none() && outcome.checks.iter().all(|check| check.passed);
        outcome.state = if passed { State::Passed } else { State::Failed };
        let word = if passed { "passed" } else { "failed" };
        eprintln!("{}: {word} after {:.0} s", scenario.name, outcome.seconds);
        Ok(outcome)
    }

    fn play(&self, scenario: &Scenario, plimsoll: &Path, outcome: &mut Outcome) -> Result<()> {
        let folder = self.folder.join(&scenario.name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("removing {}", folder.display()))?;
        }
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let seconds = (scenario.seconds_max as f64 * self.patience).ceil() as u64;
        let place = machine::Place {
            home: &self.home,
            folder: &folder,
            plimsoll,
            preload: self.preload.as_deref(),
            memory: scenario.memory.as_deref().unwrap_or(machine::MEMORY),
            short: self.short,
        };
        let mut said = |line: &str| eprintln!("{}: {line}", scenario.name);
        let end = machine::play(&scenario.script, &place, seconds, &mut said)?;
        let console = folder.join("console");
        let console = console.display();
        outcome.reason = match end {
            End::Script(Some(0)) => None,
            End::Script(Some(code)) => {
                Some(format!("its script ended with code {code}; all it said is in {console}"))
            }
            End::Script(None) => {
                Some(format!("the machine went down before its script ended; see {console}"))
            }
            End::TimeLimit(last) => Some(format!(
                "not done after {seconds} s, while: {last}; see {console}, and --patience"
            )),
        };
        let notes = notes(&folder);
        let mut harvest = Harvest::new(plimsoll, &folder, &notes);
        outcome.checks = scenario.checks.iter().map(|check| harvest.check(check)).collect();
        Ok(())
    }
}

/// What the script noted; the last of a name counts.
fn notes(folder: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(folder.join("notes")).unwrap_or_default();
    let note = |line: &str| {
        let (name, value) = line.split_once('\t')?;
        Some((name.to_owned(), value.to_owned()))
    };
    text.lines().filter_map(note).collect()
}

fn table(outcomes: &[Outcome]) -> String {
    let mut out = String::new();
    for outcome in outcomes {
        let word = match outcome.state {
            State::Passed => "passed",
            State::Failed => "FAILED",
            State::Skipped => "skipped",
        };
        let Outcome { name, seconds, title, .. } = outcome;
        out.push_str(&format!("{word:8} {name:20} {seconds:>5.0} s  {title}\n"));
        if let Some(reason) = &outcome.reason {
            out.push_str(&format!("           {reason}\n"));
        }
        for check in outcome.checks.iter().filter(|check| !check.passed) {
            out.push_str(&format!("           not so: {}\n", check.what));
            out.push_str(&format!("             wanted {}\n", check.wanted));
            out.push_str(&format!("             seen   {}\n", check.seen));
        }
    }
    let of = |state| outcomes.iter().filter(|outcome| outcome.state == state).count();
    let (passed, failed, skipped) = (of(State::Passed), of(State::Failed), of(State::Skipped));
    out.push_str(&format!("lab: {passed} passed, {failed} failed, {skipped} skipped\n"));
    // Whoever reads only the end of a long output must not take nothing for everything.
    let mut reasons: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.state == State::Skipped)
        .filter_map(|outcome| outcome.reason.as_deref())
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        out.push_str(&format!("lab: skipped, so nothing is shown there: {reason}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_what_was_seen_instead() {
        let check = |passed| Checked {
            what: "it is the members".to_owned(),
            passed,
            wanted: "members".to_owned(),
            seen: "unknown".to_owned(),
        };
        let outcome = |state, checks| Outcome {
            name: "scaling".to_owned(),
            title: "t".to_owned(),
            state,
            seconds: 1.0,
            reason: None,
            checks,
        };
        let text = table(&[
            outcome(State::Passed, vec![check(true)]),
            outcome(State::Failed, vec![check(true), check(false)]),
            outcome(State::Skipped, vec![]),
        ]);
        assert_eq!(text.matches("not so").count(), 1, "{text}");
        assert!(text.contains("seen   unknown"), "{text}");
        assert!(text.ends_with("lab: 1 passed, 1 failed, 1 skipped\n"), "{text}");
        let skipped = Outcome {
            reason: Some("no linux.uml here".to_owned()),
            ..outcome(State::Skipped, vec![])
        };
        let text = table(&[skipped]);
        assert!(text.ends_with("nothing is shown there: no linux.uml here\n"), "{text}");
    }
}
