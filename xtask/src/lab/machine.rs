//! A machine of User-Mode Linux: an ordinary process, with drives in its own memory.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::scenario::program;

/// The kernel as a program.
pub const KERNEL: &str = "linux.uml";
pub const MEMORY: &str = "768M";
/// How long a machine has for going down after it was asked to.
const GOING_DOWN: Duration = Duration::from_secs(3);

/// How a machine ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The script's exit code; `None` when the machine went down before it ended.
    Script(Option<i32>),
    /// It was stopped after its time; what was being done.
    TimeLimit(String),
}

/// A running machine; none of its processes outlives it.
#[derive(Debug)]
struct Machine {
    process: Child,
    /// As long as this is open somebody watches; without it the guard ends the machine.
    _lifeline: ChildStdin,
    lines: Receiver<String>,
}

/// What of the host a machine has to do with.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// `lab/` of the checkout.
    pub home: &'a Path,
    /// The only folder that it can write to.
    pub folder: &'a Path,
    /// The program that it measures with.
    pub plimsoll: &'a Path,
    /// A library that the kernel is started with.
    pub preload: Option<&'a Path>,
    /// Its memory: `768M`.
    pub memory: &'a str,
    /// Whether the script is to leave out what takes long.
    pub short: bool,
}

/// Plays a scenario's script in a machine.
///
/// * `said`: is called with each line about progress.
pub fn play(
    script: &str,
    place: &Place<'_>,
    seconds_max: u64,
    said: &mut dyn FnMut(&str),
) -> Result<End> {
    let Place { home, folder, plimsoll, preload, memory, short } = *place;
    for path in [home, folder, plimsoll] {
        let text = path.to_str().unwrap_or_default();
        // The kernel's command line and mount options have no way to quote.
        if text.is_empty() || text.contains([' ', ',', '\'', '"', '\n', '$', '\\']) {
            bail!("the path {} has a character that a machine cannot be told", path.display());
        }
    }
    let settings = format!(
        "LAB_HOME={}\nLAB_PLIMSOLL={}\nLAB_SHORT={}\n",
        home.display(),
        plimsoll.display(),
        if short { "yes" } else { "" }
    );
    fs::write(folder.join("settings"), settings)?;
    fs::write(folder.join("scenario.sh"), script)?;
    let mut machine = Machine::start(home, folder, preload, memory)?;
    let mut log = File::create(folder.join("console"))?;
    let end = Instant::now() + Duration::from_secs(seconds_max);
    let mut last = "starting the machine".to_owned();
    loop {
        match machine.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                writeln!(log, "{line}")?;
                if let Some(step) = line.strip_prefix("lab: ") {
                    step.trim_end().clone_into(&mut last);
                    said(&last);
                }
            }
            Err(RecvTimeoutError::Timeout) => return Ok(End::TimeLimit(last)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    machine.wait(GOING_DOWN)?;
    let status = fs::read_to_string(folder.join("status")).ok();
    Ok(End::Script(status.and_then(|text| text.trim().parse().ok())))
}

impl Machine {
    fn start(home: &Path, folder: &Path, preload: Option<&Path>, memory: &str) -> Result<Self> {
        let kernel = program(KERNEL).with_context(|| format!("no {KERNEL} here"))?;
        let mut command = as_long_as_we_are(&kernel, home);
        command
            .args([&format!("mem={memory}"), "root=/dev/root", "rootfstype=hostfs"])
            .args(["rootflags=/", "ro", "quiet", "con=null", "con0=fd:0,fd:1"])
            .arg(format!("uml_dir={}/", folder.display()))
            .arg(format!("LAB_DIR={}", folder.display()))
            .arg(format!("init={}", home.join("guest/init.sh").display()));
        command.envs(preload.map(|library| ("LD_PRELOAD", library)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process =
            command.spawn().with_context(|| format!("starting {}", kernel.display()))?;
        let lifeline = process.stdin.take().context("the machine has no standard input")?;
        let console = process.stdout.take().context("the machine has no standard output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut console = BufReader::new(console);
            let mut line = Vec::new();
            while console.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
        Ok(Self { process, _lifeline: lifeline, lines })
    }

    /// Waits until it has ended.
    fn wait(&mut self, longest: Duration) -> Result<Option<ExitStatus>> {
        let end = Instant::now() + longest;
        loop {
            if let Some(status) = self.process.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= end {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        use rustix::process::{Pid, Signal, kill_process, kill_process_group};
        let Some(pid) = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw) else {
            return;
        };
        if matches!(self.process.try_wait(), Ok(Some(_))) {
            return;
        }
        // The guard ends the whole group; those that are traced would stay, stopped, after SIGKILL.
        let _ = kill_process(pid, Signal::TERM);
        if matches!(self.wait(GOING_DOWN), Ok(None)) {
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = self.process.wait();
        }
    }
}

/// A command that is told to end when we do, in a session of its own: without one the kernel stops
/// itself when it looks at the terminal.
fn as_long_as_we_are(kernel: &Path, home: &Path) -> Command {
    let mut words: Vec<PathBuf> = Vec::new();
    if let Some(setpriv) = program("setpriv") {
        words.extend([setpriv, "--pdeathsig".into(), "TERM".into(), "--".into()]);
    }
    words.extend(["setsid".into(), "sh".into(), home.join("guard.sh"), kernel.to_owned()]);
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}
