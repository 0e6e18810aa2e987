//! The rows of docs/performance.md: who is measured on what, and what is wanted.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

use super::contender::{Contender, Prints};
use super::peers::{Load, Peers, STATIC};
use crate::repo::Repo;

/// One target and load, and everyone who is measured on it.
#[derive(Debug)]
pub struct Row {
    pub name: &'static str,
    pub title: String,
    pub figure: Figure,
    pub cpus: Cpus,
    pub contenders: Vec<Contender>,
    pub wants: Vec<Want>,
    /// Read whole before every visit, so that it is in the page cache whoever came before.
    pub warm: Option<PathBuf>,
    /// Where the usual number of rounds is more than is needed.
    pub rounds: Option<usize>,
    /// Why it cannot be measured here.
    pub skipped: Option<String>,
    pub notes: Vec<String>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Reads per second of a run of so many seconds.
    Iops { seconds: f64 },
    /// Requests per second of processor time, of a run of so many requests.
    RequestsPerCoreSecond { operations: f64 },
    /// From start to end of the process.
    WallMilliseconds,
    /// The most memory held, so many bytes of I/O buffers taken off.
    MemoryMib { buffers: f64 },
}

impl Figure {
    /// Whether others on the processor change it.
    pub fn is_disturbed_by_others(self) -> bool {
        !matches!(self, Self::MemoryMib { .. })
    }
}

/// Where contenders run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cpus {
    /// On the one chosen processor.
    Pinned,
    /// On all.
    All,
}

/// What is wanted of our figure.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Want {
    /// Ours over that of this contender.
    RatioAtLeast(&'static str, f64),
    RatioAtMost(&'static str, f64),
    UserNsAtMost(f64),
    FigureAtLeast(f64),
    FigureAtMost(f64),
}

/// The file in the page cache: small enough to stay there.
const CACHED_BYTES: u64 = 256 << 20;
const CACHED_SIZE: &str = "256M";

/// Virtual requests per visit of the model, at the wanted rate about as long as other visits.
const MODEL_REQUESTS: u64 = 10_000_000;

/// bm-flash at its widest: 40 workers with blocks of 4 MiB.
const BM_FLASH_BUFFERS: f64 = 40.0 * (4 << 20) as f64;

pub fn all(repo: &Repo, peers: &Peers, directory: &Path, ram_device: Option<&Path>) -> Vec<Row> {
    let mut rows = vec![null(peers, 32), null(peers, 128), null_blocking(peers)];
    rows.extend([32, 128].map(|depth| ram(peers, ram_device, depth)));
    rows.extend([1, 10, 40].map(|threads| cached(peers, directory, threads)));
    rows.extend([
        model(repo, peers),
        once(peers),
        memory(peers, directory),
        memory_flash(peers, directory),
    ]);
    rows.iter_mut().for_each(|row| add_static(row, peers));
    rows
}

/// The static build beside ours, where its allocator, its way to copy or its start may differ.
fn add_static(row: &mut Row, peers: &Peers) {
    let want = match row.name {
        "null-32" | "model" => Want::RatioAtMost(STATIC, 1.02),
        "once" => Want::RatioAtLeast(STATIC, 0.98),
        _ => return,
    };
    if let Some(other) = row.contenders.first().and_then(|ours| peers.statically(ours)) {
        row.contenders.push(other);
        row.wants.push(want);
    }
}

/// Without the contenders that are not installed.
fn row(
    name: &'static str,
    title: String,
    figure: Figure,
    cpus: Cpus,
    contenders: Vec<Option<Contender>>,
) -> Row {
    Row {
        name,
        title,
        figure,
        cpus,
        contenders: contenders.into_iter().flatten().collect(),
        wants: Vec::new(),
        warm: None,
        rounds: None,
        skipped: None,
        notes: Vec::new(),
    }
}

fn iops(peers: &Peers) -> Figure {
    Figure::Iops { seconds: f64::from(peers.seconds) }
}

fn null(peers: &Peers, queue_depth: u32) -> Row {
    let load = Load { target: "/dev/zero".into(), queue_depth, threads: 1, direct: false };
    let name = if queue_depth == 32 { "null-32" } else { "null-128" };
    let mut row = row(
        name,
        format!("/dev/zero, 4 KiB random reads, 1 thread, queue depth {queue_depth}"),
        iops(peers),
        Cpus::Pinned,
        vec![
            Some(peers.plimsoll_load(&load)),
            Some(peers.bare_ring(&load)),
            peers.io_uring(&load),
            peers.fio_best(&load),
            peers.fio_one_latency(&load),
            peers.fio_plain(&load),
            peers.elbencho(&load),
        ],
    );
    row.wants = vec![
        Want::RatioAtLeast("t/io_uring", 0.9),
        Want::RatioAtLeast("bare ring", 0.9),
        Want::RatioAtLeast("fio best", 1.4),
        Want::UserNsAtMost(45.0),
    ];
    row
}

fn null_blocking(peers: &Peers) -> Row {
    let load = Load { target: "/dev/zero".into(), queue_depth: 1, threads: 1, direct: false };
    let mut row = row(
        "null-1",
        "/dev/zero, 4 KiB random reads, 1 thread, blocking".into(),
        iops(peers),
        Cpus::Pinned,
        vec![
            Some(peers.plimsoll_load(&load)),
            Some(peers.bare_pread(&load)),
            peers.fio_psync(&load),
            peers.elbencho(&load),
        ],
    );
    row.wants = vec![
        Want::RatioAtLeast("fio psync", 1.6),
        Want::RatioAtLeast("elbencho", 1.1),
        Want::UserNsAtMost(100.0),
    ];
    row
}

fn ram(peers: &Peers, device: Option<&Path>, queue_depth: u32) -> Row {
    let target = device.unwrap_or(Path::new("/dev/zram0")).to_owned();
    let load = Load { target, queue_depth, threads: 1, direct: true };
    let mut row = row(
        if queue_depth == 32 { "ram-32" } else { "ram-128" },
        format!("RAM block device, 4 KiB random direct reads, 1 thread, queue depth {queue_depth}"),
        iops(peers),
        Cpus::Pinned,
        vec![
            Some(peers.plimsoll_load(&load)),
            Some(peers.bare_ring(&load)),
            peers.io_uring(&load),
            peers.fio_best(&load),
            peers.fio_one_latency(&load),
            peers.elbencho(&load),
        ],
    );
    row.wants = vec![Want::RatioAtLeast("t/io_uring", 1.0)];
    row.skipped = match device {
        None => Some("name an unused one with --ram-device".into()),
        Some(device) => unusable(device),
    };
    row
}

/// Why a block device should not be measured, if anything holds it.
fn unusable(device: &Path) -> Option<String> {
    let shown = device.display();
    let Ok(real) = device.canonicalize() else { return Some(format!("{shown} is not there")) };
    let name = real.file_name()?.to_string_lossy().into_owned();
    let size = fs::read_to_string(format!("/sys/class/block/{name}/size")).unwrap_or_default();
    if size.trim().parse().unwrap_or(0u64) == 0 {
        return Some(format!("{shown} has no size"));
    }
    for table in ["/proc/mounts", "/proc/swaps"] {
        let text = fs::read_to_string(table).unwrap_or_default();
        if text.lines().any(|line| line.split_whitespace().next() == real.to_str()) {
            return Some(format!("{shown} is in {table}"));
        }
    }
    None
}

fn cached(peers: &Peers, directory: &Path, threads: u32) -> Row {
    // Named as sysbench wants it; all read the same file.
    let file = directory.join("test_file.0");
    let load = Load { target: file.clone(), queue_depth: 1, threads, direct: false };
    let (name, cpus) = match threads {
        1 => ("cached-1", Cpus::Pinned),
        10 => ("cached-10", Cpus::All),
        _ => ("cached-40", Cpus::All),
    };
    let mut row = row(
        name,
        format!(
            "page cache, file of 256 MiB, 4 KiB random buffered reads, threads: {threads}, blocking"
        ),
        iops(peers),
        cpus,
        vec![
            Some(peers.plimsoll_load(&load)),
            Some(peers.bare_pread(&load)),
            peers.fio_psync(&load),
            peers.io_uring(&load),
            peers.elbencho(&load),
            peers.sysbench(&load, CACHED_SIZE),
        ],
    );
    row.wants = ["fio psync", "t/io_uring", "elbencho", "sysbench"]
        .map(|peer| Want::RatioAtLeast(peer, 1.0))
        .to_vec();
    row.skipped = fill(&file).err().map(|error| format!("{error:#}"));
    row.warm = Some(file);
    row
}

/// Makes the file where it is not there yet.
fn fill(path: &Path) -> Result<()> {
    if !path.metadata().is_ok_and(|found| found.len() == CACHED_BYTES) {
        let mut file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        // Different in every block, so that nothing below can share or shrink them.
        let mut chunk = vec![0u8; 1 << 20];
        let mut state = 1u64;
        for _ in 0..CACHED_BYTES >> 20 {
            for word in chunk.chunks_exact_mut(8) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                word.copy_from_slice(&state.to_le_bytes());
            }
            file.write_all(&chunk).with_context(|| format!("filling {}", path.display()))?;
        }
        file.sync_all()?;
    }
    Ok(())
}

fn model(repo: &Repo, peers: &Peers) -> Row {
    let file = repo.path("models/nvme.toml");
    let operations = format!("operations={MODEL_REQUESTS}");
    let target = format!("model:{}", file.display());
    let settings = ["block_size=4K", "queue_depth=32", "threads=1", "time=1h", &operations];
    let mut row = row(
        "model",
        "model twin on the virtual clock, queue depth 32: requests per second of processor time"
            .into(),
        Figure::RequestsPerCoreSecond { operations: MODEL_REQUESTS as f64 },
        Cpus::Pinned,
        vec![Some(peers.plimsoll(&target, &settings, Some("operations=1")))],
    );
    row.wants = vec![Want::FigureAtLeast(3e6)];
    row.skipped = (!file.is_file()).then(|| format!("no {}", file.display()));
    row
}

fn once(peers: &Peers) -> Row {
    let load = Load { target: "/dev/zero".into(), queue_depth: 1, threads: 1, direct: false };
    let settings = ["block_size=4K", "queue_depth=1", "threads=1", "operations=1"];
    let mut row = row(
        "once",
        "the whole process for one read of /dev/zero: wall time in ms".into(),
        Figure::WallMilliseconds,
        Cpus::Pinned,
        vec![Some(peers.plimsoll("/dev/zero", &settings, None)), peers.fio_once(&load)],
    );
    row.wants = vec![Want::RatioAtMost("fio", 0.1)];
    row
}

fn memory(peers: &Peers, directory: &Path) -> Row {
    let file = directory.join("test_file.0");
    let load = Load { target: file, queue_depth: 1, threads: 40, direct: false };
    let mut row = row(
        "memory",
        "40 threads, 4 KiB reads from the page cache: most memory held, buffers taken off, in MiB"
            .into(),
        Figure::MemoryMib { buffers: f64::from(40 * 4096) },
        Cpus::All,
        vec![Some(peers.plimsoll_load(&load)), peers.fio_psync(&load)],
    );
    row.wants = vec![Want::FigureAtMost(32.0)];
    row.rounds = Some(1);
    row.skipped = fill(&load.target).err().map(|error| format!("{error:#}"));
    row
}

fn memory_flash(peers: &Peers, directory: &Path) -> Row {
    let scratch = directory.join("bm-flash.dat");
    let mut row = row(
        "memory-bm-flash",
        "bm-flash --quick, up to 40 workers of 4 MiB: most memory held, 160 MiB of buffers taken off, in MiB".into(),
        Figure::MemoryMib { buffers: BM_FLASH_BUFFERS },
        Cpus::All,
        vec![Some(bm_flash(peers, &scratch))],
    );
    row.wants = vec![Want::FigureAtMost(32.0)];
    row.rounds = Some(1);
    row
}

fn bm_flash(peers: &Peers, scratch: &Path) -> Contender {
    let mut contender = peers.plimsoll("", &[], None);
    let program = contender.command.swap_remove(0);
    contender.command = vec![
        program,
        "run".into(),
        "bm-flash".into(),
        "--quick".into(),
        "--classic".into(),
        "--target".into(),
        scratch.to_string_lossy().into_owned(),
        "--json".into(),
        "--store".into(),
        peers.store.to_string_lossy().into_owned(),
    ];
    contender.prints = Prints::Plimsoll;
    contender
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_is_not_there_is_named() {
        assert!(
            unusable(Path::new("/dev/no-such-device")).is_some_and(|why| why.contains("not there"))
        );
        assert!(unusable(Path::new("/dev/zero")).is_some_and(|why| why.contains("no size")));
    }

    #[test]
    fn wants_name_contenders_that_exist() {
        let peers = Peers {
            plimsoll: "/bin/true".into(),
            bare: "/bin/true".into(),
            statically: "/bin/true".into(),
            searched: Vec::new(),
            store: "/tmp/none".into(),
            seconds: 1,
        };
        let mut row = null(&peers, 32);
        add_static(&mut row, &peers);
        assert!(row.contenders.iter().any(|contender| contender.name == "bare ring"));
        let ours = &row.contenders[0];
        assert_eq!(ours.name, "plimsoll");
        assert!(
            ours.command.join(" ").contains("--set queue_depth=32 --set threads=1 --set time=1s")
        );
        let other = row.contenders.last().unwrap();
        assert_eq!((&*other.name, &other.command[1..]), (STATIC, &row.contenders[0].command[1..]));
    }
}
