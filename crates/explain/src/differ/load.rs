//! What differs between two runs' loads where at least one is another tool's: only what both
//! tell, in our words.

use std::collections::{BTreeMap, BTreeSet};

use record::{CellRecord, StreamPlan};

use super::{Factor, Kind, by_key, factor};
use crate::places::{Told, pairs, recorded};

/// What a load is told by.
const FACTS: [&str; 5] = ["operation", "access", "block_size", "threads", "queue_depth"];
/// The tool whose settings are its options, each by its name.
const OPTIONS_OF: &str = "fio";
/// Options that the facts above tell, that say where, and that change nothing that is measured.
const NO_OPTIONS: [&str; 14] = [
    "rw",
    "readwrite",
    "bs",
    "blocksize",
    "numjobs",
    "iodepth",
    "filename",
    "directory",
    "size",
    "name",
    "group_reporting",
    "write_lat_log",
    "write_bw_log",
    "write_iops_log",
];

/// What both runs tell of their loads and differs.
pub(super) fn loads(left: &Told<'_>, right: &Told<'_>) -> Vec<Factor> {
    let both = pairs(left, right);
    let mut out = Vec::new();
    for fact in FACTS {
        let values = |told: &Told<'_>, cells: &mut dyn Iterator<Item = &CellRecord>| {
            let mut values = BTreeSet::new();
            for cell in cells {
                for plan in &cell.streams {
                    values.insert(value(told, cell, plan, fact)?);
                }
            }
            (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(", "))
        };
        // Where no cell is the same place in both, all of one are held against all of the other.
        let (ours, theirs) = match both.is_empty() {
            true => (values(left, &mut left.grid()), values(right, &mut right.grid())),
            false => (
                values(left, &mut both.iter().map(|(cell, _)| *cell)),
                values(right, &mut both.iter().map(|(_, cell)| *cell)),
            ),
        };
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            out.extend(factor(Kind::Plan, fact, &ours, &theirs));
        }
    }
    out.extend(options(left, right));
    out
}

/// A fact about a stream of a cell; `None` where nobody tells it.
fn value(told: &Told<'_>, cell: &CellRecord, plan: &StreamPlan, fact: &str) -> Option<String> {
    if fact != "access" {
        return recorded(plan, fact);
    }
    let Some(imported) = &told.run.header.imported else {
        let asked = told.asked(cell)?.streams.iter().find(|stream| stream.name == plan.name)?;
        return Some(access_in_short(&asked.value("access.kind")?).to_owned());
    };
    if imported.tool != OPTIONS_OF || imported.settings.is_empty() {
        return None;
    }
    let names = ["rw", "readwrite"];
    let of_job = names.map(|name| format!("{}.{name}", plan.name));
    let is_it = |name: &String| names.contains(&name.as_str()) || of_job.contains(name);
    let option = imported.settings.iter().find(|(name, _)| is_it(name));
    // Without the option it reads in order.
    let random = option.is_some_and(|(_, rw)| rw.contains("rand"));
    Some(if random { "random" } else { "sequential" }.to_owned())
}

/// As coarse as other tools tell it.
fn access_in_short(kind: &str) -> &str {
    match kind {
        "uniform" | "uniform-once" | "permutation" | "zipf" | "hot" => "random",
        other => other,
    }
}

/// Options of two runs of a tool that records how it was called.
fn options(left: &Told<'_>, right: &Told<'_>) -> Vec<Factor> {
    let of = |told: &Told<'_>| -> Option<BTreeMap<String, String>> {
        let imported = told.run.header.imported.as_ref()?;
        let told = imported.tool == OPTIONS_OF && !imported.settings.is_empty();
        let counts = |(name, _): &&(String, String)| {
            let option = name.rsplit('.').next().unwrap_or(name);
            !NO_OPTIONS.contains(&option) && !name.starts_with("repeat ")
        };
        told.then(|| imported.settings.iter().filter(counts).cloned().collect())
    };
    match (of(left), of(right)) {
        (Some(left), Some(right)) => by_key(Kind::Plan, &left, &right),
        _ => Vec::new(),
    }
}
