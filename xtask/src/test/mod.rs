//! `cargo xtask test`: everything that a change must pass, in stages, with the time of each.

mod programs;

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};

use self::programs::{Again, Outcome, Program};
use crate::check;
use crate::repo::Repo;

/// The long forms, for whoever has an hour: the whole lab takes half of it.
const SOAK: &[(&str, &str)] = &[
    ("packages", ".ci/packages soak"),
    ("cross", "cargo xtask check cross"),
    ("dist", ".ci/dist build && .ci/dist test"),
    ("release", "cargo build --release --package plimsoll --package bench-bare"),
    ("instructions", "cargo xtask instructions --check"),
    ("proofs", "cargo run --release --package plimsoll-proof -- --full"),
    ("kills", "PLIMSOLL_KILLS=1000 cargo test --package plimsoll-store --test it"),
    (
        "layer",
        "PLIMSOLL_CRASHES=1000000 cargo test --release --package plimsoll-layer -- --nocapture",
    ),
    ("volumes", "PLIMSOLL_KILLS=200 cargo test --package plimsoll --test it volume"),
    ("databases", "PLIMSOLL_KILLS=40 cargo test --package plimsoll-db --test kills -- --nocapture"),
    ("lab", "cargo xtask lab --patience 2"),
];

/// The first takes long, and the other needs the program.
const LATER: &[&str] = &["cross", "generated"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tier {
    /// Lints, and the tests that need no device: a few minutes
    Check,
    /// All of these, devices, the page in a browser, the short lab
    Test,
    /// Random kills, all proofs, the whole lab, aarch64: an hour
    Soak,
}

#[derive(Args, Debug)]
pub struct Options {
    /// How much
    #[arg(value_enum, default_value_t = Tier::Test)]
    tier: Tier,
}

/// Whether everything passed.
pub fn run(repo: &Repo, options: &Options) -> Result<bool> {
    let logs = repo.target_directory().join("test-logs");
    fs::create_dir_all(&logs).with_context(|| format!("making {}", logs.display()))?;
    let stages = Stages { repo, logs, done: Mutex::default() };
    let passed = match options.tier {
        Tier::Check => stages.check(),
        Tier::Test => stages.test(),
        Tier::Soak => SOAK.iter().fold(true, |passed, (name, line)| {
            stages.stage(name, || stages.shell(name, line)) && passed
        }),
    };
    stages.tell(passed);
    let tested = repo.target_directory().join("tested");
    if passed && options.tier == Tier::Test {
        note_tested(repo, &tested)?;
    }
    Ok(passed)
}

/// Notes the tree that passed, for hooks and for whoever merges; not if something is uncommitted.
fn note_tested(repo: &Repo, file: &std::path::Path) -> Result<()> {
    let git = |words: &[&str]| -> Option<String> {
        let said = Command::new("git").current_dir(repo.path("")).args(words).output().ok()?;
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    };
    if git(&["status", "--porcelain"]).is_none_or(|changes| !changes.is_empty()) {
        println!("something is not committed: {} is not written", file.display());
        return Ok(());
    }
    let Some(tree) = git(&["rev-parse", "HEAD^{tree}"]) else { return Ok(()) };
    fs::write(file, tree + "\n").with_context(|| format!("writing {}", file.display()))
}

/// A stage that is over.
#[derive(Debug)]
struct Done {
    name: String,
    time: Duration,
    outcome: Outcome,
}

struct Stages<'a> {
    repo: &'a Repo,
    /// Where the stages' output is.
    logs: PathBuf,
    done: Mutex<Vec<Done>>,
}

impl Stages<'_> {
    fn check(&self) -> bool {
        let lints = self.stage("checks", || self.checks(&early()));
        let Some(programs) = self.compile(&["--lib"]) else { return false };
        let tests = self.stage("tests", || self.play(&programs, cores()));
        self.again() && tests && lints
    }

    fn test(&self) -> bool {
        let packages = self.stage("packages", || self.shell("packages", ".ci/packages test"));
        let built = self.lanes(&[
            &|| self.stage("page", || self.shell("page", ".ci/page build && .ci/page check")),
            &|| self.stage("checks", || self.checks(&early())),
        ]);
        let Some(programs) = self.compile(&["--lib", "--bins", "--tests"]) else { return false };
        let current = self.stage("generated", || self.checks(&["generated".to_owned()]));
        // These wait for devices and processes more than they compute.
        let (real, others): (Vec<_>, Vec<_>) =
            programs.into_iter().partition(|program| program.name == "cli real");
        let program = self.repo.debug_binary("plimsoll");
        let page = format!("PLIMSOLL='{}' .ci/page test", program.display());
        let lab = format!("cargo xtask lab --patience 3 --plimsoll '{}'", program.display());
        // What fails because others play at the same time is played once more by itself.
        let tests = self.lanes(&[&|| self.stage("tests", || self.play(&others, cores())), &|| {
            self.stage("devices", || self.play(&real, 4 * cores()))
        }]);
        let again = self.again();
        let browser = self.stage("browser", || self.shell("browser", &page));
        let lab = self.stage("lab", || self.lab(&lab));
        let played = [tests, again, browser, lab].iter().all(|passed| *passed);
        let _ = self.shell("left", ".ci/packages left");
        print!("{}", fs::read_to_string(self.log("left")).unwrap_or_default());
        packages && built && current && played
    }

    /// Plays lanes at the same time; whether all passed.
    fn lanes(&self, lanes: &[&(dyn Fn() -> bool + Sync)]) -> bool {
        std::thread::scope(|scope| {
            let all: Vec<_> = lanes.iter().map(|lane| scope.spawn(lane)).collect();
            // Every one is waited for.
            let ended: Vec<bool> = all.into_iter().map(|one| one.join().unwrap_or(false)).collect();
            ended.into_iter().all(|passed| passed)
        })
    }

    /// Plays a stage and keeps its time; whether it passed.
    fn stage(&self, name: &str, play: impl FnOnce() -> Result<Outcome>) -> bool {
        println!("{name}: begins");
        let begun = Instant::now();
        let outcome = play().unwrap_or_else(|error| Outcome {
            faults: vec![format!("{name}: {error:#}")],
            ..Outcome::default()
        });
        let time = begun.elapsed();
        let passed = outcome.faults.is_empty();
        let again = outcome.again.len();
        let word = if passed { "passed" } else { "FAILED" };
        let tell = if again == 0 { String::new() } else { format!(", {again} to be played again") };
        println!("{name}: {word} after {}{tell}", duration(time));
        for fault in &outcome.faults {
            println!("{fault}\n");
        }
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.push(Done { name: name.to_owned(), time, outcome });
        passed
    }

    fn checks(&self, names: &[String]) -> Result<Outcome> {
        match check::run(self.repo, names)? {
            true => Ok(Outcome::default()),
            false => bail!("see above"),
        }
    }

    fn compile(&self, kinds: &[&str]) -> Option<Vec<Program>> {
        let mut programs = Vec::new();
        let passed = self.stage("compile", || {
            programs = programs::compile(self.repo, kinds)?;
            Ok(Outcome::default())
        });
        passed.then_some(programs)
    }

    fn play(&self, programs: &[Program], threads: usize) -> Result<Outcome> {
        let mut all = Outcome::default();
        for program in programs {
            let begun = Instant::now();
            let outcome = program.play(threads, &self.logs)?;
            if begun.elapsed() > Duration::from_secs(10) {
                println!("  {}: {}", program.name, duration(begun.elapsed()));
            }
            all.add(outcome);
        }
        Ok(all)
    }

    /// Plays what failed, one by one; whether all of it passes now.
    fn again(&self) -> bool {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let again: Vec<Again> = done.iter().flat_map(|stage| stage.outcome.again.clone()).collect();
        drop(done);
        again.is_empty()
            || self.stage("again", || {
                let mut all = Outcome::default();
                for test in &again {
                    all.add(test.play(&self.logs)?);
                }
                Ok(all)
            })
    }

    /// Plays the short lab, and what failed once more by itself.
    fn lab(&self, line: &str) -> Result<Outcome> {
        let Err(first) = self.shell("lab", &format!("{line} --short --jobs 2")) else {
            return Ok(Outcome::default());
        };
        let said = fs::read_to_string(self.log("lab")).unwrap_or_default();
        let failed = said.lines().filter_map(|line| line.strip_prefix("FAILED "));
        let names: Vec<&str> = failed.filter_map(|rest| rest.split_whitespace().next()).collect();
        if names.is_empty() {
            return Err(first);
        }
        self.shell("lab-again", &format!("{line} --short {}", names.join(" ")))?;
        let flaky = names.iter().map(|name| format!("lab {name}")).collect();
        Ok(Outcome { flaky, ..Outcome::default() })
    }

    fn log(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }

    /// Runs a line of shell; what it said is shown if it fails.
    fn shell(&self, name: &str, line: &str) -> Result<Outcome> {
        let log = self.log(name);
        let out = File::create(&log).with_context(|| format!("making {}", log.display()))?;
        let status = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.repo.path(""))
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .status()
            .with_context(|| format!("starting {line}"))?;
        if !status.success() {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let lines: Vec<&str> = said.lines().collect();
            bail!("{line}: {status}\n{}", lines[lines.len().saturating_sub(120)..].join("\n"));
        }
        Ok(Outcome::default())
    }

    /// The end of the output: times, flaky tests, counts.
    fn tell(&self, passed: bool) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        println!("\nstages");
        for stage in done.iter() {
            let word = if stage.outcome.faults.is_empty() { "" } else { "  FAILED" };
            println!("  {:12} {:>12}{word}", stage.name, duration(stage.time));
        }
        if let Some(time) = since_start() {
            println!("  {:12} {:>12}", "all", duration(time));
        }
        let mut sum = Outcome::default();
        for stage in done.iter() {
            let Outcome { passed, failed, ignored, flaky, .. } = &stage.outcome;
            sum.passed += passed;
            sum.failed += failed;
            sum.ignored += ignored;
            sum.flaky.extend(flaky.iter().cloned());
        }
        for test in &sum.flaky {
            println!("flaky: {test}: failed, and passed by itself");
        }
        println!("{}", if passed { "passed" } else { "FAILED" });
        println!("tests: {} passed, {} failed, {} skipped", sum.passed, sum.failed, sum.ignored);
    }
}

fn early() -> Vec<String> {
    check::names().filter(|name| !LATER.contains(name)).map(str::to_owned).collect()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Time since the command began that built this program: `make` says when, in seconds of Unix time.
fn since_start() -> Option<Duration> {
    let began = std::env::var("PLIMSOLL_TEST_BEGAN").ok()?.parse().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    now.checked_sub(Duration::from_secs(began))
}

fn duration(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=99 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}
