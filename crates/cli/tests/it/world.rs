//! A directory, a home and a store of its own for every test.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Removed when dropped.
pub struct World {
    pub dir: PathBuf,
}

/// What a command did.
#[derive(Debug)]
pub struct Done {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl World {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("plimsoll-cli-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(dir.join("home")).unwrap();
        Self { dir }
    }

    /// With the runs r1 and r2 in its store, alike but for their seeds.
    pub fn with_two_runs() -> Self {
        let world = Self::new();
        for seed in ["1", "2"] {
            let words = ["run", "random-read", "--target", "null:", "--time", "50ms", "--classic"];
            world.ok(&[&words[..], &["--seed", seed]].concat());
        }
        world
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub fn command<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(words).current_dir(&self.dir).stdin(Stdio::null());
        command.env_clear().env("HOME", self.dir.join("home")).env("PATH", "/usr/bin:/bin");
        command
    }

    pub fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Done {
        Done::from(self.command(words).output().unwrap())
    }

    /// As [`Self::run`], for what must go well.
    pub fn ok<W: AsRef<OsStr> + std::fmt::Debug>(&self, words: &[W]) -> Done {
        let done = self.run(words);
        assert_eq!(done.code, 0, "{words:?}: {done:#?}");
        done
    }

    pub fn store(&self) -> PathBuf {
        self.path("home/.local/share/plimsoll/plimsoll.db")
    }

    /// A model twin: a drive of 100 us.
    pub fn model(&self) -> String {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
        format!("model:{}", models.join("nvme.toml").display())
    }

    /// What lies in the directory itself.
    pub fn files(&self) -> Vec<String> {
        let names = std::fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl From<Output> for Done {
    fn from(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let signal = output.status.signal().unwrap_or(0);
        Self {
            code: output.status.code().unwrap_or(-signal),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Starts a run and waits until it is in its first visit.
pub fn start(world: &World, words: &[&str]) -> Child {
    let mut command = world.command(words);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut err = BufReader::with_capacity(1, child.stderr.take().unwrap());
    err.read_line(&mut line).unwrap();
    assert!(line.contains("to make"), "{line}");
    child.stderr = Some(err.into_inner());
    child
}
