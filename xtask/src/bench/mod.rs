//! Plimsoll beside a bare loop and the peers that are installed: A B C A B C ... on the same
//! target and processor, so that what the machine does meanwhile falls on all alike.

mod contender;
mod peers;
mod rows;
mod summary;
mod visit;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::instructions;
use crate::repo::Repo;
use contender::Contender;
use peers::Peers;
use rows::Row;
use summary::Summary;
use visit::{Bench, Idle, Visit};

#[derive(Args, Debug)]
pub struct Options {
    /// Clean rounds per row; one more goes before them and is dropped
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measured seconds per visit
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// The processor that all are pinned to; the last one when not given
    #[arg(long)]
    cpu: Option<u32>,
    /// Where peers are looked for before PATH: fio, io_uring (fio's t/io_uring), elbencho, sysbench
    #[arg(long)]
    peer_dir: Vec<PathBuf>,
    /// Only these rows
    #[arg(long = "row")]
    rows: Vec<String>,
    /// A RAM block device that nothing uses, such as /dev/zram0; it is only read
    #[arg(long)]
    ram_device: Option<PathBuf>,
    /// Drop a visit when others used more than this share of the processor meanwhile, in percent
    #[arg(long, default_value_t = 12.0)]
    tolerate: f64,
    /// The plimsoll to measure; the release build when not given
    #[arg(long)]
    plimsoll: Option<PathBuf>,
    /// Names the rows and ends
    #[arg(long)]
    list: bool,
}

/// How many rounds are tried for each that is wanted, before the machine is called too busy.
const TRIES: usize = 3;

pub fn run(repo: &Repo, options: &Options) -> Result<()> {
    let directory = repo.target_directory().join("bench");
    fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    let plimsoll = options.plimsoll.clone().unwrap_or_else(|| repo.release_binary("plimsoll"));
    let peers = Peers {
        plimsoll,
        bare: repo.release_binary("bench-bare"),
        statically: repo.path(format!("dist/plimsoll-{}-linux", std::env::consts::ARCH)),
        searched: options.peer_dir.clone(),
        store: directory.join("store"),
        seconds: options.seconds,
    };
    let rows = rows::all(repo, &peers, &directory, options.ram_device.as_deref());
    if options.list {
        for row in &rows {
            println!("{:18} {}", row.name, row.title);
        }
        return Ok(());
    }
    let chosen = choose(rows, &options.rows)?;
    require(&peers.bare)?;
    let bench = Bench {
        bare: peers.bare.clone(),
        cpu: match options.cpu {
            Some(cpu) => cpu,
            None => last_cpu()?,
        },
        out: directory.join("visit.json"),
        directory: directory.clone(),
    };
    println!(
        "processor {}, {} rounds of {} s, one dropped before",
        bench.cpu, options.rounds, options.seconds
    );
    for (name, version) in peers.versions() {
        println!("{name}: {version}");
    }
    let mut summaries = Vec::new();
    for row in chosen {
        let summary = measure(&bench, row, options)?;
        println!("\n{summary}");
        summaries.push(summary);
    }
    if options.rows.is_empty() {
        println!("\ninstructions per I/O on the null twin");
        match instructions::count(&peers.plimsoll, &directory) {
            Ok(count) => println!("  {count:.1} (wanted at most {})", instructions::LIMIT),
            Err(error) => println!("  not counted: {error:#}"),
        }
    }
    write(&directory, &peers, &summaries)
}

fn require(binary: &Path) -> Result<()> {
    if !binary.is_file() {
        bail!("{} is not there; `make bench` builds it", binary.display());
    }
    Ok(())
}

fn choose(rows: Vec<Row>, names: &[String]) -> Result<Vec<Row>> {
    if let Some(unknown) = names.iter().find(|name| rows.iter().all(|row| row.name != **name)) {
        bail!("no row `{unknown}`; --list names them");
    }
    let wanted = |row: &Row| names.is_empty() || names.iter().any(|name| name == row.name);
    Ok(rows.into_iter().filter(wanted).collect())
}

/// Rounds of one visit each, until every contender has enough clean ones.
fn measure(bench: &Bench, mut row: Row, options: &Options) -> Result<Summary> {
    let mut notes = std::mem::take(&mut row.notes);
    if let Some(why) = row.skipped.take() {
        notes.push(format!("skipped: {why}"));
        row.contenders.clear();
        return Ok(Summary::new(row, Vec::new(), Vec::new(), notes));
    }
    let mut idle = Vec::new();
    for contender in std::mem::take(&mut row.contenders) {
        match warm_up(bench, &row, &contender) {
            Ok(measured) => {
                idle.push(measured);
                row.contenders.push(contender);
            }
            Err(error) => notes.push(format!("{} left out: {error:#}", contender.name)),
        }
    }
    let mut visits: Vec<Vec<Option<Visit>>> = Vec::new();
    let mut dropped = vec![0; row.contenders.len()];
    let wanted = row.rounds.unwrap_or(options.rounds);
    for _ in 0..wanted * TRIES {
        let mut round = Vec::new();
        for (n, contender) in row.contenders.iter().enumerate() {
            let visit = bench
                .visit(&row, contender, idle[n])
                .with_context(|| format!("{} on {}", contender.name, row.name))?;
            let clean = visit.others_share * 100.0 <= options.tolerate
                || !row.figure.is_disturbed_by_others();
            dropped[n] += usize::from(!clean);
            round.push(clean.then_some(visit));
        }
        visits.push(round);
        let clean_of = |n: usize| visits.iter().filter(|round| round[n].is_some()).count();
        if (0..row.contenders.len()).all(|n| clean_of(n) >= wanted) {
            break;
        }
    }
    Ok(Summary::new(row, visits, dropped, notes))
}

/// The dropped first round: shows that the contender works here, and what its start and end cost.
fn warm_up(bench: &Bench, row: &Row, contender: &Contender) -> Result<Idle> {
    let idle = bench.idle(row.cpus, contender)?;
    bench.visit(row, contender, idle)?;
    Ok(idle)
}

fn last_cpu() -> Result<u32> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online")
        .context("reading which processors are online")?;
    let last = online.trim().rsplit(['-', ',']).next().unwrap_or_default();
    last.parse().with_context(|| format!("no number at the end of `{}`", online.trim()))
}

fn write(directory: &Path, peers: &Peers, summaries: &[Summary]) -> Result<()> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let path = directory.join(format!("bench-{seconds}.json"));
    let text = serde_json::to_string_pretty(&serde_json::json!({
        "unix_seconds": seconds,
        "versions": peers.versions(),
        "rows": summaries,
    }))?;
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    println!("\nwritten: {}", path.display());
    Ok(())
}
