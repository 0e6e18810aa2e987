//! Grids whose cells have names of their own: jobs of fio.
//!
//! A job file of fio names each job as its author likes: `rr-4k`, `rr-8k`. So each is a phase, and no
//! cell would have a neighbour. What the jobs were asked for tells that they are one grid: the same
//! operation and access with all the same options, but for size and number of requests.

use std::collections::BTreeMap;

use record::{CellRecord, Run, StreamPlan};

/// The tool whose settings are its options, each by the name of its job.
const TOOL: &str = "fio";
/// Options that span the grid, that only name and order jobs, and that only say for how long and
/// where figures are written.
const NOT_OF_THE_GRID: [&str; 26] = [
    "bs",
    "blocksize",
    "iodepth",
    "numjobs",
    "name",
    "description",
    "stonewall",
    "wait_for",
    "new_group",
    "startdelay",
    "start_delay",
    "runtime",
    "timeout",
    "time_based",
    "ramp_time",
    "randseed",
    "group_reporting",
    "percentile_list",
    "write_lat_log",
    "write_bw_log",
    "write_iops_log",
    "write_hist_log",
    "log_avg_msec",
    "rw",
    "readwrite",
    "thread",
];

/// The grid that a cell is of.
#[derive(Clone, Debug)]
pub(crate) struct Grid<'a> {
    /// Its first cell, which stands for all of them.
    pub first: &'a CellRecord,
    /// What its cells do: `random read`.
    pub name: String,
}

/// What the cells of a grid have in common: operation, access, and all other options; and which of
/// several cells of the same place it is, since these are no neighbours of each other.
type Key<'a> = (&'a str, &'static str, Vec<(&'a str, &'a str)>, usize);

/// By index, the cells that are of a grid of several names.
pub(crate) fn grids(run: &Run) -> BTreeMap<u32, Grid<'_>> {
    let mut found: BTreeMap<Key<'_>, Vec<&CellRecord>> = BTreeMap::new();
    let mut places: BTreeMap<(Key<'_>, Place), usize> = BTreeMap::new();
    let options = options(run);
    for cell in run.cells.iter().filter(|_| !options.is_empty()) {
        let [stream] = cell.streams.as_slice() else { continue };
        let Some(place) = place(stream) else { continue };
        let mut own: Vec<_> = ["", stream.name.as_str()]
            .iter()
            .filter_map(|job| options.get(job))
            .flatten()
            .copied()
            .collect();
        own.sort_unstable();
        own.dedup();
        let access = access(&own);
        own.retain(|(name, _)| !NOT_OF_THE_GRID.contains(name));
        let key = (stream.op.as_str(), access, own, 0);
        let so_many = places.entry((key.clone(), place)).or_default();
        found.entry((key.0, key.1, key.2, *so_many)).or_default().push(cell);
        *so_many += 1;
    }
    named(found)
}

/// Gives each grid a name that no other has.
fn named<'a>(found: BTreeMap<Key<'a>, Vec<&'a CellRecord>>) -> BTreeMap<u32, Grid<'a>> {
    let mut taken: BTreeMap<String, u32> = BTreeMap::new();
    let mut out = BTreeMap::new();
    for ((op, access, ..), cells) in found {
        let Some(first) = cells.first() else { continue };
        // Of one name the phase tells.
        if cells.iter().all(|cell| cell.phase == first.phase) {
            continue;
        }
        let words = format!("{access} {op}");
        let before = taken.entry(words.clone()).or_default();
        *before += 1;
        let name = if *before == 1 { words } else { format!("{words} as `{}`", first.phase) };
        let grid = Grid { first, name };
        out.extend(cells.iter().map(|cell| (cell.index, grid.clone())));
    }
    out
}

/// Size and numbers of a cell's requests.
type Place = (u64, u32, u32);

/// `None` where the tool does not tell them.
fn place(stream: &StreamPlan) -> Option<Place> {
    let told = stream.threads > 0 && stream.queue_depth > 0;
    told.then_some((stream.block_bytes?, stream.threads, stream.queue_depth))
}

/// Options by job; those of an only job have no name before them.
fn options(run: &Run) -> BTreeMap<&str, Vec<(&str, &str)>> {
    let mut out: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let imported = run.header.imported.iter().filter(|imported| imported.tool == TOOL);
    for (name, value) in imported.flat_map(|imported| &imported.settings) {
        if name.starts_with("repeat ") {
            continue;
        }
        // Names of jobs may have points, those of options have none.
        let (job, option) = name.rsplit_once('.').unwrap_or(("", name));
        out.entry(job).or_default().push((option, value));
    }
    out
}

/// Without the option it goes in order.
fn access(options: &[(&str, &str)]) -> &'static str {
    let is_random = |(name, value): &(&str, &str)| {
        matches!(*name, "rw" | "readwrite") && value.contains("rand")
    };
    if options.iter().any(is_random) { "random" } else { "sequential" }
}
