//! The ceiling, and the stopwatch.
//!
//! `ring` and `pread` are the least code that keeps a target busy: what a benchmark costs more
//! than these, it costs for what it records. `measure` runs any program pinned and says what it
//! used, by the kernel's own account.

mod blocking;
mod measure;
mod ring;
mod usage;

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use serde::Serialize;

#[derive(Parser)]
#[command(about = "Bare read loops, and a stopwatch for other programs")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Random reads through a ring; records nothing
    Ring {
        #[command(flatten)]
        load: Load,
        /// Requests in flight
        #[arg(long, default_value_t = 32)]
        depth: u32,
        /// Requests per system call at most
        #[arg(long, default_value_t = 32)]
        batch: u32,
    },
    /// Random reads by pread, each with its latency in a histogram
    Pread {
        #[command(flatten)]
        load: Load,
        /// Threads
        #[arg(long, default_value_t = 1)]
        threads: u32,
    },
    /// Runs a program on chosen processors and writes what it used
    Measure {
        /// Processors, such as `1` or `0,1`; all when not given
        #[arg(long, value_delimiter = ',')]
        cpus: Vec<u32>,
        /// Where to write it, as JSON
        #[arg(long)]
        out: PathBuf,
        /// The program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

#[derive(Args)]
struct Load {
    /// File or device, opened for reading only
    target: PathBuf,
    /// Bytes per request
    #[arg(long, default_value_t = 4096)]
    block: u32,
    /// How long; 0 for one request
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Around the page cache
    #[arg(long)]
    direct: bool,
}

/// What a loop did, before it is set against what it used.
struct Tally {
    ios: u64,
    elapsed: Duration,
    /// Highest latency, where latencies were taken.
    latency_ns_max: Option<u64>,
}

/// What is printed.
#[derive(Serialize)]
struct Report {
    ios: u64,
    elapsed_ns: u64,
    iops: f64,
    user_ns_per_io: f64,
    system_ns_per_io: f64,
    latency_ns_max: Option<u64>,
}

fn main() -> Result<()> {
    match Arguments::parse().what {
        What::Ring { load, depth, batch } => {
            let target = Target::open(&load)?;
            report(|| ring::run(&target, depth, batch, duration(&load)))
        }
        What::Pread { load, threads } => {
            let target = Target::open(&load)?;
            report(|| blocking::run(&target, threads, duration(&load)))
        }
        What::Measure { cpus, out, command } => measure::run(&cpus, &out, &command),
    }
}

fn duration(load: &Load) -> Duration {
    Duration::from_secs_f64(load.seconds.max(0.0))
}

fn report(run: impl FnOnce() -> Result<Tally>) -> Result<()> {
    let before = usage::of_self();
    let tally = run()?;
    let used = usage::of_self().since(&before);
    let per_io = |ns: u64| ns as f64 / tally.ios.max(1) as f64;
    let report = Report {
        ios: tally.ios,
        elapsed_ns: u64::try_from(tally.elapsed.as_nanos()).unwrap_or(u64::MAX),
        iops: tally.ios as f64 / tally.elapsed.as_secs_f64(),
        user_ns_per_io: per_io(used.user_ns),
        system_ns_per_io: per_io(used.system_ns),
        latency_ns_max: tally.latency_ns_max,
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

/// An open target, counted in blocks.
struct Target {
    file: File,
    block: u32,
    /// At least 1.
    blocks: u64,
}

impl Target {
    /// Devices without a size, such as /dev/zero, are read as if they had 1 GiB.
    fn open(load: &Load) -> Result<Self> {
        let flags = if load.direct { libc::O_DIRECT } else { 0 };
        let file = File::options()
            .read(true)
            .custom_flags(flags)
            .open(&load.target)
            .with_context(|| format!("opening {}", load.target.display()))?;
        let bytes = size_of(&file, &load.target)?;
        if load.block == 0 || bytes < u64::from(load.block) {
            bail!("{} holds {bytes} bytes, no block of {}", load.target.display(), load.block);
        }
        Ok(Self { file, block: load.block, blocks: bytes / u64::from(load.block) })
    }
}

fn size_of(mut file: &File, path: &Path) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    let kind = file.metadata()?.file_type();
    if kind.is_char_device() {
        return Ok(1 << 30);
    }
    // Block devices have no length in their metadata.
    let end = file.seek(SeekFrom::End(0)).with_context(|| format!("sizing {}", path.display()))?;
    file.seek(SeekFrom::Start(0))?;
    Ok(end)
}

/// Random block numbers: a 64-bit LCG's upper half, spread over the range by multiplication.
struct Blocks {
    state: u64,
    count: u64,
}

impl Blocks {
    fn new(seed: u64, count: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, count }
    }

    #[inline]
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((u128::from(self.state) * u128::from(self.count)) >> 64) as u64
    }
}

/// Page-aligned memory of `blocks` blocks.
struct Buffers {
    memory: Vec<u8>,
    start: usize,
    block: usize,
}

const PAGE: usize = 4096;

impl Buffers {
    fn new(block: u32, blocks: u32) -> Self {
        // Blocks smaller than a page get a page each, so that none straddles two.
        let block = (block as usize).next_multiple_of(PAGE);
        let memory = vec![1u8; block * blocks as usize + PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        Self { memory, start, block }
    }

    fn get(&mut self, number: u32) -> &mut [u8] {
        let from = self.start + self.block * number as usize;
        &mut self.memory[from..from + self.block]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_numbers_cover_the_range() {
        let mut blocks = Blocks::new(7, 10);
        let mut seen = [0u32; 10];
        for _ in 0..10_000 {
            seen[blocks.next() as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (800..1200).contains(&n)), "{seen:?}");
    }

    #[test]
    fn buffers_are_aligned_and_apart() {
        let mut buffers = Buffers::new(512, 3);
        let first = buffers.get(0).as_ptr() as usize;
        let last = buffers.get(2).as_ptr() as usize;
        assert_eq!(first % PAGE, 0);
        assert_eq!(last - first, 2 * PAGE);
    }

    #[test]
    fn both_loops_read_the_kernels_null() {
        let load = Load { target: "/dev/zero".into(), block: 4096, seconds: 0.01, direct: false };
        let target = Target::open(&load).unwrap();
        assert!(blocking::run(&target, 2, duration(&load)).unwrap().ios > 2);
        match ring::run(&target, 8, 4, duration(&load)) {
            Ok(tally) => assert!(tally.ios > 8),
            Err(error) => eprintln!("skipped: {error:#}"),
        }
    }
}
