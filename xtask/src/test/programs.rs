//! The test programs that cargo builds: found, played, and those of their tests that failed played
//! once more by themselves.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repo::Repo;

/// A program that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

/// One test program.
#[derive(Clone, Debug)]
pub struct Program {
    /// As `explain lib` or `plimsoll real`.
    pub name: String,
    path: PathBuf,
    /// Where its crate is; tests open files by names relative to that.
    directory: PathBuf,
}

/// A test that failed, and is to be played by itself.
#[derive(Clone, Debug)]
pub struct Again {
    program: Program,
    test: String,
}

/// What came of one or several programs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
    /// Neither passed nor failed so far.
    pub again: Vec<Again>,
    /// Tests that failed, and passed when they were played by themselves.
    pub flaky: Vec<String>,
    /// What failed, for the end of the output.
    pub faults: Vec<String>,
}

impl Outcome {
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.again.extend(other.again);
        self.flaky.extend(other.flaky);
        self.faults.extend(other.faults);
    }
}

/// Compiles all test programs of the workspace, or their part named by `kinds`.
pub fn compile(repo: &Repo, kinds: &[&str]) -> Result<Vec<Program>> {
    let output = repo
        .cargo()
        .args(["test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"])
        .args(kinds)
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo test")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect())
}

/// What cargo says of an artifact, if that is a test program.
fn program(message: &Value) -> Option<Program> {
    let is_test = message["profile"]["test"].as_bool()?;
    let path = message["executable"].as_str().filter(|_| is_test)?;
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
    let target = &message["target"];
    let of_crate = directory.file_name()?.to_str()?;
    let kind = target["kind"][0].as_str()?;
    let name = match kind {
        "test" => target["name"].as_str()?,
        _ => kind,
    };
    Some(Program {
        name: format!("{of_crate} {name}"),
        path: path.into(),
        directory: directory.to_owned(),
    })
}

impl Program {
    /// Plays all its tests, so many at a time. Those that fail are left to be played by themselves.
    ///
    /// * `logs`: a directory for what it prints.
    pub fn play(&self, threads: usize, logs: &Path) -> Result<Outcome> {
        let log = logs.join(format!("{}.log", self.name.replace(' ', "-")));
        let status = self.start(&["--test-threads", &threads.to_string()], &log)?;
        let said =
            fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
        let mut outcome = Outcome::default();
        if !count(&said, &mut outcome) {
            let why = status.map_or("did not end".to_owned(), |status| status.to_string());
            outcome.failed += 1;
            outcome.faults.push(format!(
                "{}: {why}; all it said is in {}",
                self.name,
                log.display()
            ));
        }
        let failed: Vec<&str> = failures(&said).collect();
        outcome.failed = outcome.failed.saturating_sub(failed.len());
        let again = |test: &&str| Again { program: self.clone(), test: (*test).to_owned() };
        outcome.again = failed.iter().map(again).collect();
        Ok(outcome)
    }

    /// How it ended; `None` if it had to be killed.
    fn start(&self, arguments: &[&str], log: &Path) -> Result<Option<ExitStatus>> {
        let out = File::create(log).with_context(|| format!("making {}", log.display()))?;
        let mut command = Command::new(&self.path);
        command.args(arguments).current_dir(&self.directory).stdin(Stdio::null());
        command.env("CARGO_MANIFEST_DIR", &self.directory);
        command.stderr(out.try_clone()?).stdout(out);
        let child = command.spawn().with_context(|| format!("starting {}", self.path.display()))?;
        wait(child)
    }
}

impl Again {
    /// Plays the test, when nothing else does.
    pub fn play(&self, logs: &Path) -> Result<Outcome> {
        let Self { program, test } = self;
        let log = logs.join(format!("{}.again.log", program.name.replace(' ', "-")));
        let status = program.start(&["--exact", test], &log)?;
        let name = format!("{}: {test}", program.name);
        if status.is_some_and(|status| status.success()) {
            return Ok(Outcome { passed: 1, flaky: vec![name], ..Outcome::default() });
        }
        let said = fs::read_to_string(&log).unwrap_or_default();
        let faults = vec![format!("{name}\n{}", said.trim())];
        Ok(Outcome { failed: 1, faults, ..Outcome::default() })
    }
}

fn wait(mut child: Child) -> Result<Option<ExitStatus>> {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Adds what the line `test result:` says; whether there is one.
fn count(said: &str, outcome: &mut Outcome) -> bool {
    let Some(line) = said.lines().rfind(|line| line.starts_with("test result:")) else {
        return false;
    };
    let of = |what: &str| {
        let before = line.split(what).next()?;
        before.split_whitespace().last()?.parse().ok()
    };
    let [passed, failed, ignored] = [" passed", " failed", " ignored"].map(of);
    outcome.passed += passed.unwrap_or(0);
    outcome.failed += failed.unwrap_or(0);
    outcome.ignored += ignored.unwrap_or(0);
    passed.is_some()
}

/// The names in the last list of failures.
fn failures(said: &str) -> impl Iterator<Item = &str> {
    let list = said.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
    list.lines().map_while(|line| line.strip_prefix("    ")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "running 3 tests\ntest a ... ok\ntest b::c ... FAILED\n\nfailures:\n\n\
        ---- b::c stdout ----\n    failures:\nno\n\nfailures:\n    b::c\n    b::d\n\n\
        test result: FAILED. 11 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out\n";

    #[test]
    fn what_failed_is_read() {
        assert_eq!(failures(SAID).collect::<Vec<_>>(), ["b::c", "b::d"]);
        let mut outcome = Outcome { passed: 1, ..Outcome::default() };
        assert!(count(SAID, &mut outcome));
        assert_eq!((outcome.passed, outcome.failed, outcome.ignored), (12, 2, 1));
        assert!(!count("running 3 tests\n", &mut outcome), "it was killed");
        assert_eq!(failures("test result: ok. 1 passed; 0 failed").count(), 0);
    }

    /// A program that fails at its first start only, and one that always fails.
    #[test]
    fn a_test_that_passes_by_itself_is_flaky_and_one_that_fails_again_is_a_fault() {
        let directory = std::env::temp_dir().join(format!("xtask-flaky-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let list = "printf 'x\\nfailures:\\n    t\\n\\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\\n'";
        for (name, again, flaky) in [("once", "exit 0", 1), ("always", "exit 1", 0)] {
            let path = directory.join(name);
            let text = format!(
                "#!/bin/sh\n[ \"$1\" = --exact ] && {{ echo again; {again}; }}\n{list}\nexit 101\n"
            );
            fs::write(&path, text).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&path, mode).unwrap();
            let program = Program { name: name.to_owned(), path, directory: directory.clone() };
            let first = program.play(2, &directory).unwrap();
            assert_eq!(
                (first.again.len(), first.failed, first.faults.len()),
                (1, 0, 0),
                "{first:?}"
            );
            let outcome = first.again[0].play(&directory).unwrap();
            assert_eq!((outcome.flaky.len(), outcome.failed), (flaky, 1 - flaky), "{outcome:?}");
            assert_eq!(outcome.faults.len(), 1 - flaky, "{outcome:?}");
        }
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn test_programs_are_found_among_what_cargo_builds() {
        let message = serde_json::json!({
            "profile": { "test": true }, "executable": "/t/it-1",
            "manifest_path": "/r/crates/stack/Cargo.toml",
            "target": { "kind": ["test"], "name": "it" },
        });
        assert_eq!(program(&message).unwrap().name, "stack it");
        let mut lib = message.clone();
        lib["target"] = serde_json::json!({ "kind": ["lib"], "name": "stack" });
        assert_eq!(program(&lib).unwrap().name, "stack lib");
        lib["profile"]["test"] = false.into();
        assert!(program(&lib).is_none());
    }
}
