//! One program run once, pinned, with what it used by the kernel's account.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::rows::{Cpus, Figure, Row};
use super::summary::median;

/// Where and with what visits are made.
#[derive(Debug)]
pub struct Bench {
    /// The program that measures others.
    pub bare: PathBuf,
    pub cpu: u32,
    /// Where it writes what it measured.
    pub out: PathBuf,
    /// Where programs are started.
    pub directory: PathBuf,
}

/// One visit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Visit {
    /// In the row's unit.
    pub figure: f64,
    /// Processor time per I/O, start and end taken off; where I/Os are counted.
    pub user_ns: Option<f64>,
    pub system_ns: Option<f64>,
    /// What others used of the chosen processors' time, in `0.0..=1.0`.
    pub others_share: f64,
}

/// What a program's start and end cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle {
    user_ns: f64,
    system_ns: f64,
}

/// As `bench-bare measure` writes it.
#[derive(Debug, Deserialize)]
struct Measured {
    wall_ns: f64,
    user_ns: f64,
    system_ns: f64,
    rss_bytes_max: f64,
    others_ns: f64,
    cpus: f64,
}

/// How often the start and end are measured; the median counts.
const IDLE_REPEATS: usize = 3;

impl Bench {
    /// What starting and ending the contender costs.
    pub fn idle(&self, cpus: Cpus, contender: &Contender) -> Result<Idle> {
        let Some(command) = &contender.idle else { return Ok(Idle::default()) };
        let mut user = Vec::new();
        let mut system = Vec::new();
        for _ in 0..IDLE_REPEATS {
            let (measured, _) = self.run(cpus, command)?;
            user.push(measured.user_ns);
            system.push(measured.system_ns);
        }
        let middle = |values: &[f64]| median(values).unwrap_or(0.0);
        Ok(Idle { user_ns: middle(&user), system_ns: middle(&system) })
    }

    pub fn visit(&self, row: &Row, contender: &Contender, idle: Idle) -> Result<Visit> {
        if let Some(path) = &row.warm {
            let mut file =
                File::open(path).with_context(|| format!("opening {}", path.display()))?;
            std::io::copy(&mut file, &mut std::io::sink())
                .with_context(|| format!("reading {}", path.display()))?;
        }
        let (measured, text) = self.run(row.cpus, &contender.command)?;
        let user_ns = (measured.user_ns - idle.user_ns).max(0.0);
        let system_ns = (measured.system_ns - idle.system_ns).max(0.0);
        let (figure, ios) = match row.figure {
            Figure::Iops { seconds } => {
                let iops = contender.prints.iops(&text)?;
                (iops, Some(iops * contender.prints.seconds(&text).unwrap_or(seconds)))
            }
            Figure::RequestsPerCoreSecond { operations } => {
                (operations / ((user_ns + system_ns) / 1e9), Some(operations))
            }
            Figure::WallMilliseconds => (measured.wall_ns / 1e6, None),
            Figure::MemoryMib { buffers } => {
                ((measured.rss_bytes_max - buffers) / (1 << 20) as f64, None)
            }
        };
        Ok(Visit {
            figure,
            user_ns: ios.map(|ios| user_ns / ios),
            system_ns: ios.map(|ios| system_ns / ios),
            others_share: measured.others_ns / (measured.wall_ns * measured.cpus).max(1.0),
        })
    }

    fn run(&self, cpus: Cpus, command: &[String]) -> Result<(Measured, String)> {
        let mut stopwatch = Command::new(&self.bare);
        stopwatch.current_dir(&self.directory).arg("measure").arg("--out").arg(&self.out);
        if cpus == Cpus::Pinned {
            stopwatch.arg("--cpus").arg(self.cpu.to_string());
        }
        let output = stopwatch.arg("--").args(command).output().context("starting bench-bare")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let said = errors.lines().chain(text.lines()).find(|line| !line.trim().is_empty());
            bail!("`{}` failed: {}", command.join(" "), said.unwrap_or("it said nothing"));
        }
        let measured =
            fs::read(&self.out).with_context(|| format!("reading {}", self.out.display()))?;
        Ok((serde_json::from_slice(&measured).context("reading what bench-bare wrote")?, text))
    }
}
