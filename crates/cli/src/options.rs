//! Groups of options that several commands share.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use units::{Bytes, Nanos};

/// Changes to a suite.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Changing the suite")]
pub struct SuiteOptions {
    /// Set a field of the suite; a list makes it an axis of the grid
    ///
    /// The key is a field's name (`plimsoll suite show SUITE --toml` shows them all), with dots
    /// for details (`access.theta`) and the name of a phase or stream in front (`read.time`).
    /// A comma between values varies the field: `--set queue_depth=1,4,16`. May be repeated; the
    /// last one wins.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Multiply the suite's sizes, and its totals of bytes and requests: 0.01, 10%
    ///
    /// Rounded to whole blocks, and at least one block for every worker. What `--size` and `--set`
    /// say is taken as it is. The tables say so.
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_hyphen_values = true)]
    pub scale: Option<f64>,
    /// Size of each file, or how much of a device is used: 4G, 512MiB, 100GB
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    /// Measured time of every visit: 10s, 500ms, 2min
    #[arg(long, value_name = "TIME")]
    pub time: Option<Nanos>,
    /// Target precision: visit each cell until its 95 % interval is this narrow: 5%, 2%, 0.05
    #[arg(long, value_name = "SHARE", conflicts_with = "classic", allow_hyphen_values = true)]
    pub precision: Option<Share>,
    /// Time limit for the measurements: no round begins that would exceed it: 20min
    #[arg(long, value_name = "TIME", conflicts_with = "classic")]
    pub max_time: Option<Nanos>,
    /// Run the suite in its own order, with its own times and repetitions
    ///
    /// Otherwise its cells are visited in rounds of random order, a few seconds each, until each
    /// reaches the target precision.
    #[arg(long)]
    pub classic: bool,
    /// The suite's short form: smaller files, shorter visits
    #[arg(long)]
    pub quick: bool,
    /// How requests reach the kernel: short for `--set backend=NAME`
    ///
    /// auto, io-uring, io-uring-sqpoll, io-uring-iopoll, libaio, blocking or mmap.
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
}

/// A factor as people write it: `0.01`, `1%`, `2`.
fn factor(text: &str) -> Result<f64, String> {
    let (number, percent) = match text.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text.trim(), 1.0),
    };
    let factor = number.parse::<f64>().ok().map(|number| number / percent);
    factor
        .filter(|&factor| factor > 0.0 && factor <= 1000.0)
        .ok_or_else(|| "wanted more than 0, at most 1000, such as 0.01 or 1%".to_owned())
}

/// A share as people write it: `5%` or `0.05`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, scale) = match text.trim().strip_suffix('%') {
            Some(number) => (number.trim_end(), 100.0),
            None => (text.trim(), 1.0),
        };
        let share = number.parse::<f64>().ok().map(|number| number / scale);
        match share.filter(|share| (0.001..=1.0).contains(share)) {
            Some(share) => Ok(Self(share)),
            None => Err("wanted 0.1% to 100%, such as 5% or 0.05".to_owned()),
        }
    }
}

/// What may be lost.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Safety")]
pub struct ConsentOptions {
    /// This file's content may be lost, although plimsoll did not make it
    #[arg(long, value_name = "FILE")]
    pub overwrite: Vec<PathBuf>,
    /// This block device's content may be lost
    ///
    /// Needed for every write to a block device. Devices in use (mounted, swap, part of an
    /// array or a volume) and the root's disk are refused all the same.
    #[arg(long, value_name = "DEVICE")]
    pub destroy: Vec<PathBuf>,
    /// Write the target although one check failed, or could not be made
    #[arg(long, value_name = "WHAT", value_enum)]
    pub even_though: Vec<Exception>,
}

/// Which check of a target is waived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Exception {
    /// The device bears a partition table, a file system or a RAID member that is not in use
    Signature,
    /// Users of the target cannot be determined, for lack of rights, /proc or /sys
    Unchecked,
}

/// How to run, apart from what.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Running")]
pub struct MannerOptions {
    /// Write blocks that identify themselves, and check them when they are read
    #[arg(long)]
    pub verify: bool,
    /// Keep the scratch file that the run made
    #[arg(long)]
    pub keep: bool,
    /// Bind workers to these processors in turn: 0-3,8
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<CpuList>,
    /// How long to wait for outstanding requests after the end of a visit
    #[arg(long, value_name = "TIME", default_value = "30s")]
    pub hang_limit: Nanos,
    /// Failed requests that each worker tolerates in a visit; one more ends the visit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub tolerate: u64,
    /// Bytes of cache in controllers and drives, if you know: 4GiB
    ///
    /// Controllers do not report it. Working sets that fit into such a cache are then flagged.
    #[arg(long, value_name = "SIZE")]
    pub cache_size: Option<Bytes>,
}

/// What `which` and `line` ask of a place.
#[derive(Clone, Debug, Args)]
pub struct PlaceOptions {
    /// Whose pages and flush: postgres (8 KiB, fdatasync), innodb (16 KiB, fsync) or sqlite (4 KiB,
    /// fdatasync, one writer at a time)
    #[arg(long = "for", value_name = "DATABASE", value_enum, default_value_t = Database::Postgres)]
    #[arg(hide_possible_values = true)]
    pub database: Database,
    /// Size of the file on each place
    #[arg(long, value_name = "SIZE")]
    pub size: Option<Bytes>,
    #[command(flatten)]
    pub ask: AskOptions,
}

/// How a command that answers a question is played and printed.
#[derive(Clone, Debug, Args)]
pub struct AskOptions {
    /// Where all randomness comes from; drawn and stored if not given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Say what would be read, written, made and removed, and stop
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// No progress and no notes on stderr; errors still are
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub consent: ConsentOptions,
    #[command(flatten)]
    pub manner: MannerOptions,
}

/// What is printed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct TalkOptions {
    /// Print one JSON document (plimsoll.run/1) instead of tables
    #[arg(long)]
    pub json: bool,
    /// No progress and no notes on stderr; errors still are
    #[arg(long, short)]
    pub quiet: bool,
}

/// Processors as people list them: `0-3,8`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(pub Vec<uring::Cpu>);

/// More than any kernel knows, so that a slip of the finger does not fill the memory.
const CPUS_MAX: u32 = 1 << 16;

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let known = text.trim().parse::<u32>().ok().filter(|&n| n < CPUS_MAX);
            known.ok_or_else(|| format!("`{text}` is not the number of a processor"))
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return Err(format!("`{part}` goes backwards"));
            }
            cpus.extend((first..=last).map(uring::Cpu));
        }
        Ok(Self(cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_written_in_percent_or_as_parts_of_one() {
        for (text, share) in
            [("5%", 0.05), ("0.05", 0.05), (" 2.5 % ", 0.025), ("0.1%", 0.001), ("100%", 1.0)]
        {
            assert_eq!(text.parse::<Share>(), Ok(Share(share)), "{text}");
        }
        for bad in ["", "5", "0", "-1%", "101%", "%", "nan", "few", "1e-30", "0.09%"] {
            assert!(bad.parse::<Share>().is_err(), "{bad}");
        }
    }

    #[test]
    fn factors_may_be_above_one() {
        for (text, wanted) in [("0.01", 0.01), ("1%", 0.01), (" 250 % ", 2.5), ("1000", 1000.0)] {
            assert_eq!(factor(text), Ok(wanted), "{text}");
        }
        for bad in ["", "0", "-1", "nan", "inf", "1001", "%", "half"] {
            assert!(factor(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn processors_are_listed_as_people_do() {
        let list = |text: &str| {
            text.parse::<CpuList>().map(|l| l.0.iter().map(|c| c.0).collect::<Vec<_>>())
        };
        assert_eq!(list("0-3,8"), Ok(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("5"), Ok(vec![5]));
        for bad in ["", "a", "3-1", "0-", "-1", "0,,1", "0-99999999"] {
            assert!(list(bad).is_err(), "{bad}");
        }
    }
}

/// Whose pages and flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Database {
    /// PostgreSQL on Linux as it comes.
    #[value(alias = "postgresql")]
    Postgres,
    /// MySQL and MariaDB as they come.
    #[value(alias = "mysql", alias = "mariadb")]
    Innodb,
    /// SQLite in WAL mode, flushed at each commit (synchronous=FULL): one writer at a time.
    Sqlite,
}

impl Database {
    /// Length of its pages.
    pub const fn page(self) -> Bytes {
        match self {
            Self::Postgres => Bytes::kib(8),
            Self::Innodb => Bytes::kib(16),
            Self::Sqlite => Bytes::kib(4),
        }
    }

    /// What is to be set in a suite, as keys and values.
    ///
    /// * `pages`: streams of pages; `commits`: streams of commits.
    pub fn set<'a>(
        self,
        pages: impl IntoIterator<Item = &'a str>,
        commits: impl IntoIterator<Item = &'a str>,
    ) -> Vec<(String, &'static str)> {
        // What stands in SQLite's log is whole pages.
        let (page, key, value) = match self {
            Self::Postgres => return Vec::new(),
            Self::Innodb => ("16KiB", "sync", "fsync"),
            Self::Sqlite => ("4KiB", "block_size", "4KiB"),
        };
        let pages = pages.into_iter().map(|name| (format!("{name}.block_size"), page));
        let commits = commits.into_iter().map(|name| (format!("{name}.{key}"), value));
        pages.chain(commits).collect()
    }
}
