//! Is it the cache? Every witness is heard, and the worst verdict on a cell wins.
//!
//! 1. *Ledger*: what the devices' counters say moved, by what was asked for.
//! 2. *Residency*: pages of the files that were in the page cache before and after.
//! 3. *Direct I/O* is a request: whether it was granted, and done.
//! 4. *Size*: the working set against the caches that are known.
//! 5. *Link*: a rate that the links to the device cannot carry.
//! 6. *Re-read*: the same region in a random order, then again ([`Reread`]).
//! 7. *Working set*: where latency rises as the region grows ([`Sweep`]); finds a cache that
//!    nothing else sees.
//! 8. *Write cache*: where the rate falls as bytes are written ([`WriteCache`]).
//!
//! Witnesses 1 to 5 are about each cell, the others about the run.

pub mod ledger;
mod plan;
pub mod reread;
mod rules;
pub mod sweep;
mod tell;
pub mod write;

use finding::Code;
use schemars::JsonSchema;
use serde::Serialize;

pub use self::reread::Reread;
pub use self::sweep::{Sweep, SweepFit};
pub use self::write::WriteCache;
use crate::view::{CellView, View};

/// All that a run says about caches.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Caches {
    /// Cells that were visited, in the suite's order; without the fill.
    pub cells: Vec<CellCaches>,
    /// Pairs of cells that read the same region one after the other.
    pub rereads: Vec<Reread>,
    /// Cells that differ only in their region.
    pub sweeps: Vec<Sweep>,
    /// Visits in which writes became slower once so much had been written.
    pub write_caches: Vec<WriteCache>,
    /// Why the run cannot tell how large a cache is; then it names none above.
    pub blind: Option<String>,
    /// Bytes of cache in controllers and drives as the user declared them.
    pub declared_bytes: Option<u64>,
    /// What the links to the devices can carry, with its name.
    pub link: Option<(String, u64)>,
}

/// What is known about caches in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CellCaches {
    /// Index of the cell.
    pub cell: u32,
    /// As people say it: `read 4KiB 10`.
    pub name: String,
    /// The worst of the findings.
    pub verdict: Verdict,
    /// One for each witness that has something to say, worst first.
    pub findings: Vec<CacheFinding>,
}

/// What one witness says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CacheFinding {
    /// Who says it.
    pub witness: Witness,
    /// What.
    pub verdict: Verdict,
}

/// Where a finding is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// The devices' counters of bytes.
    Ledger,
    /// Pages in the page cache.
    Residency,
    /// Whether direct I/O was granted.
    Direct,
    /// Working set by known caches.
    Size,
    /// Rate by the slowest link.
    Link,
}

/// A verdict on a cell. Shares are in `0.0..=1.0`, ratios are by what was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "is", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Verdict {
    /// The devices moved what was asked for. Caches inside them are below these counters.
    Device {
        /// `read` or `write`: the bytes that it is about.
        op: String,
        /// Bytes moved by bytes asked for.
        ratio: f64,
    },
    /// The working set is large enough for the known caches.
    LargeEnough {
        /// Bytes that the cell addresses.
        working_set_bytes: u64,
        /// Bytes of the known caches.
        cache_bytes: u64,
        /// Share of random requests that these caches can answer all the same.
        hit_rate: f64,
    },
    /// The devices moved more than was asked for: read-ahead, journals, parity, or others.
    Foreign {
        /// `read` or `write`.
        op: String,
        /// Bytes moved.
        device_bytes: u64,
        /// Bytes asked for, ramp included.
        asked_bytes: u64,
    },
    /// The rate is what the link carries: the figure is the link's, not the media's.
    AtLink {
        /// Rate by what the link carries.
        share: f64,
    },
    /// A witness is missing.
    Unknown {
        /// Which, and why.
        why: String,
    },
    /// The working set is not large against the known caches.
    TooSmall {
        /// Bytes that the cell addresses.
        working_set_bytes: u64,
        /// Bytes of the known caches.
        cache_bytes: u64,
        /// Share of random requests that these caches can answer.
        hit_rate: f64,
    },
    /// The files were in the page cache before.
    NotCold {
        /// The largest share seen before a visit.
        share: f64,
    },
    /// Direct I/O was asked for; the page cache was used.
    Buffered {
        /// The kernel's or file system's word for it.
        why: String,
    },
    /// Less was written to the devices than was asked for: the rest is in memory.
    WriteLag {
        /// Bytes that had not reached a device when the visits ended.
        missing_bytes: u64,
        /// Share of what was written.
        share: f64,
    },
    /// So much was answered above the devices.
    PartlyCached {
        /// `read` or `write`: the bytes that it is about.
        op: String,
        /// At least this share.
        share: f64,
        /// The devices on top: who answered is above them.
        devices: Vec<String>,
        /// Who answered is below these, above the disks at the bottom.
        between: bool,
    },
    /// Nearly all was answered above the devices.
    Cached {
        /// `read` or `write`: the bytes that it is about.
        op: String,
        /// At least this share.
        share: f64,
        /// As above.
        devices: Vec<String>,
        /// As above.
        between: bool,
    },
    /// The files were in the page cache before, and no counter shows that a device moved anything.
    InPageCache,
    /// Faster than the link: what was measured did not cross it.
    AboveLink {
        /// Rate by what the link carries.
        share: f64,
    },
    /// There is no device: memory, a twin, a character device.
    NoDevice {
        /// What it is.
        what: String,
    },
}

impl Verdict {
    /// How bad: a larger number is worse.
    pub fn severity(&self) -> u8 {
        match self {
            Self::Device { .. } => 0,
            Self::LargeEnough { .. } => 1,
            Self::Foreign { .. } => 2,
            Self::AtLink { .. } => 3,
            Self::Unknown { .. } => 4,
            Self::TooSmall { .. } => 5,
            Self::NotCold { .. } => 6,
            Self::Buffered { .. } => 7,
            Self::WriteLag { .. } => 8,
            Self::PartlyCached { .. } => 9,
            Self::Cached { .. } | Self::InPageCache => 10,
            Self::AboveLink { .. } => 11,
            Self::NoDevice { .. } => 12,
        }
    }

    /// Its mark in a table; `None` where the figure is the device's as far as anyone can tell.
    pub fn mark(&self) -> Option<Code> {
        match self {
            Self::Device { .. } | Self::LargeEnough { .. } | Self::NoDevice { .. } => None,
            Self::Foreign { .. } => Some(Code::ForeignTraffic),
            Self::AtLink { .. } => Some(Code::AtLink),
            Self::Unknown { .. } => Some(Code::CacheUnknown),
            Self::TooSmall { .. } => Some(Code::TooSmall),
            Self::NotCold { .. } => Some(Code::NotCold),
            Self::Buffered { .. } => Some(Code::BufferedFallback),
            Self::WriteLag { .. } => Some(Code::WriteLag),
            Self::PartlyCached { .. } => Some(Code::PartlyCached),
            Self::Cached { .. } | Self::InPageCache | Self::AboveLink { .. } => Some(Code::Cached),
        }
    }

    /// Which of a cell's bytes it is about, where not about all of them: `read` or `write`.
    pub fn op(&self) -> Option<&str> {
        match self {
            Self::Device { op, .. }
            | Self::Foreign { op, .. }
            | Self::PartlyCached { op, .. }
            | Self::Cached { op, .. } => Some(op),
            Self::WriteLag { .. } => Some("write"),
            Self::InPageCache => Some("read"),
            _ => None,
        }
    }

    /// Share that a cache answered, or took and had not passed on; `None` where none is known to have.
    fn answered(&self) -> Option<f64> {
        match self {
            Self::Cached { share, .. }
            | Self::PartlyCached { share, .. }
            | Self::WriteLag { share, .. } => Some(*share),
            Self::InPageCache | Self::AboveLink { .. } => Some(1.0),
            _ => None,
        }
    }

    /// Whether it says that figures are a cache's, at least in part.
    pub fn is_cached(&self) -> bool {
        matches!(
            self,
            Self::PartlyCached { .. }
                | Self::Cached { .. }
                | Self::InPageCache
                | Self::AboveLink { .. }
        )
    }
}

/// Whether there is a page cache that could answer: a twin has none.
fn has_page_cache(view: &View<'_>) -> bool {
    view.run.header.target.kind != record::TargetKind::Twin
}

/// Visits in which writes became slower once so much had been written, unless that tells of no cache.
pub(crate) fn write_caches(view: &View<'_>) -> Vec<WriteCache> {
    match ledger::compressed(view.run, &plan::Plan::of(view)) {
        Some(_) => Vec::new(),
        None => write::write_caches(view),
    }
}

/// Largest share of a row's requests that a cache answered: each row of the grid where one did.
pub(crate) fn answered<'v>(view: &'v View<'_>) -> impl Fn(&CellView<'_>) -> Option<f64> + use<'v> {
    let plan = plan::Plan::of(view);
    let has_blocks = |cell: &&CellView<'_>| !plan.only_whole_files(cell.cell);
    let cells = view.grid().filter(|cell| !cell.visits.is_empty()).filter(has_blocks);
    let cells: Vec<CellCaches> = cells.map(|cell| judge(view, &plan, cell)).collect();
    move |row| {
        let found = cells.iter().find(|cell| cell.cell == row.cell.index)?.findings.iter();
        let moves = |op: &str| {
            let mut ops = row.visits.iter().flat_map(|visit| visit.streams()).flat_map(|s| &s.ops);
            ops.any(|one| one.op == op && one.requests > 0)
        };
        let own = found.filter(|found| found.verdict.op().is_none_or(moves));
        own.filter_map(|found| found.verdict.answered()).reduce(f64::max)
    }
}

/// What a run says about caches.
pub fn caches(view: &View<'_>) -> Caches {
    let plan = plan::Plan::of(view);
    let target = &view.run.header.target;
    // What a database asks of its files is its own affair: nothing to compare counters with.
    let is_database = target.kind == record::TargetKind::Database;
    let has_blocks = |cell: &&CellView<'_>| !is_database && !plan.only_whole_files(cell.cell);
    let cells = view.grid().filter(|cell| !cell.visits.is_empty()).filter(has_blocks);
    let cells = cells.map(|cell| judge(view, &plan, cell)).collect();
    let rereads = reread::rereads(view, &plan);
    let sweeps = sweep::sweeps(view, &plan);
    let mut write_caches = write::write_caches(view);
    let cliffs = crate::steady::write_cliffs(view);
    for cache in &mut write_caches {
        cache.is_cliff = !cache.refills && cliffs.iter().any(|cliff| cliff.cell == cache.cell);
    }
    // A cache below holds what was compressed, and a compressor has a speed of its own.
    let any = !(rereads.is_empty() && sweeps.is_empty() && write_caches.is_empty());
    let blind = ledger::compressed(view.run, &plan).filter(|_| any);
    let is_blind = blind.is_some();
    Caches {
        cells,
        rereads: if is_blind { Vec::new() } else { rereads },
        sweeps: if is_blind { Vec::new() } else { sweeps },
        write_caches: if is_blind { Vec::new() } else { write_caches },
        blind,
        declared_bytes: target.cache_bytes,
        link: target.link.as_ref().map(|link| (link.name.clone(), link.bytes_per_second)),
    }
}

fn judge(view: &View<'_>, plan: &plan::Plan, cell: &CellView<'_>) -> CellCaches {
    let mut findings = ledger::findings(view, plan, cell);
    let no_device = findings.iter().any(|f| matches!(f.verdict, Verdict::NoDevice { .. }));
    if !no_device {
        let is = |kind: fn(&Verdict) -> bool| findings.iter().any(|f| kind(&f.verdict));
        let device = is(|v| matches!(v, Verdict::Device { .. })) && !is(Verdict::is_cached);
        findings.extend(rules::residency(plan, cell));
        findings.extend(rules::direct(view, plan, cell));
        findings.extend(rules::size(view, plan, cell, device));
        // What was asked for is not what crossed the link.
        if ledger::compressed(view.run, plan).is_none() {
            findings.extend(rules::link(view, cell));
        }
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict.severity()));
    let verdict = findings.first().map_or_else(
        || Verdict::Unknown { why: "no witness has anything to say".to_owned() },
        |worst| worst.verdict.clone(),
    );
    CellCaches { cell: cell.cell.index, name: cell.name(), verdict, findings }
}
