//! Bytes that the devices moved, by bytes that were asked for.
//!
//! Entries of depth 0 are the devices right under the file system (or the target): what they did
//! not move was answered above them. The disks further down are looked at too, where every one of
//! them was counted: what a loop device moved and its file's disk did not was answered between.

use std::collections::BTreeSet;

use record::{LedgerEntry, Run, StreamRecord, TargetKind, VisitRecord};

use super::plan::Plan;
use super::{Finding, Verdict, Witness};
use crate::view::{CellView, View};

/// Below this ratio something was answered above the device.
pub const PARTLY: f64 = 0.95;
/// Below this ratio nearly everything was.
pub const FULLY: f64 = 0.05;
/// Above this ratio the device did more than was asked for.
pub const MORE: f64 = 1.05;
/// Fewer bytes than this asked for say nothing: counters move in pages and superblocks.
pub const ASKED_MIN: u64 = 1 << 20;

/// Bytes of some visits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moved {
    /// Read by the program, ramp included.
    pub asked_read: u64,
    /// Written by the program, ramp included.
    pub asked_written: u64,
    /// Read by the devices on top.
    pub read: u64,
    /// Written by the devices on top.
    pub written: u64,
    /// Read by the disks at the bottom, where all of them were counted.
    pub bottom_read: Option<u64>,
}

pub(super) fn findings(view: &View<'_>, plan: &Plan, cell: &CellView<'_>) -> Vec<Finding> {
    let finding = |verdict| Finding { witness: Witness::Ledger, verdict };
    if let Some(what) = no_device(view.run) {
        return vec![finding(Verdict::NoDevice { what })];
    }
    if let Some(why) = unknown(view.run, cell) {
        // With every page there before, zeros are what to expect.
        let cached =
            all_resident(cell) && asks_reads(cell) && plan.asks_direct(cell.cell) == Some(false);
        let verdict = if cached {
            let place = "the page cache".to_owned();
            Verdict::Cached { op: "read".to_owned(), share: 1.0, place }
        } else {
            Verdict::Unknown { why }
        };
        return vec![finding(verdict)];
    }
    let devices = &view.run.header.target.devices;
    let moved = sum(cell.visits.iter().map(|v| moved(v.visit, devices)));
    let top = top_names(cell);
    let mut found = Vec::new();
    read_findings(&moved, &top, &mut found);
    write_findings(&moved, plan.asks_direct(cell.cell), &top, &mut found);
    if found.is_empty() {
        let why = format!(
            "the visits asked for {} only: too little to compare with counters",
            crate::words::size(moved.asked_read.saturating_add(moved.asked_written))
        );
        found.push(Verdict::Unknown { why });
    }
    found.into_iter().map(finding).collect()
}

/// What the target is, if no device is below it.
fn no_device(run: &Run) -> Option<String> {
    let target = &run.header.target;
    let counted = run.visits.iter().any(|visit| !visit.ledger.is_empty());
    match target.kind {
        TargetKind::Twin if !counted => Some(format!("a twin ({})", target.given)),
        TargetKind::CharacterDevice => Some(format!("a character device ({})", target.given)),
        _ => target.remarks.iter().find_map(|remark| {
            let (name, rest) = remark.split_once(": ")?;
            (rest == "memory, no device").then(|| format!("memory ({name})"))
        }),
    }
}

/// Why the counters of a cell's visits say nothing.
fn unknown(run: &Run, cell: &CellView<'_>) -> Option<String> {
    let entries = |visit: &VisitRecord| visit.ledger.iter().any(|entry| entry.depth == 0);
    if !cell.visits.iter().all(|v| entries(v.visit)) {
        let remark = run
            .header
            .target
            .remarks
            .iter()
            .find(|r| r.contains("on another machine") || r.starts_with("not seen"));
        let why = run.header.warnings.iter().find(|w| w.code == "ledger-unknown").map(|w| &w.text);
        return Some(match (why, remark) {
            (Some(text), _) | (None, Some(text)) => text.clone(),
            (None, None) if run.header.target.devices.is_empty() => {
                "no block device is known below the target".to_owned()
            }
            (None, None) => "the devices' counters were not read".to_owned(),
        });
    }
    // A counter that never moves in a whole run, fill included, does not count.
    let all = run.visits.iter().flat_map(|visit| &visit.ledger);
    let still = all.clone().all(|e| e.read_bytes == 0 && e.write_bytes == 0);
    still.then(|| "the devices' counters stood at zero through the whole run".to_owned())
}

fn all_resident(cell: &CellView<'_>) -> bool {
    cell.visits.iter().all(|v| v.visit.resident_before.is_some_and(|share| share >= 950))
}

fn asks_reads(cell: &CellView<'_>) -> bool {
    cell.cell.streams.iter().all(|stream| stream.op == "read")
}

/// What one visit asked for and what moved.
///
/// * `devices`: kernel names of all devices below the target; the bottom is looked at only where
///   each of them has an entry.
pub fn moved(visit: &VisitRecord, devices: &[String]) -> Moved {
    let mut found = Moved::default();
    for stream in &visit.streams {
        let with_ramp = ramp_factor(stream);
        for op in &stream.ops {
            let bytes = (op.bytes as f64 * with_ramp) as u64;
            match op.op.as_str() {
                "read" => found.asked_read = found.asked_read.saturating_add(bytes),
                "write" => found.asked_written = found.asked_written.saturating_add(bytes),
                _ => {}
            }
        }
    }
    let top = || visit.ledger.iter().filter(|entry| entry.depth == 0);
    let total = |of: fn(&LedgerEntry) -> u64| top().map(of).fold(0u64, u64::saturating_add);
    found.read = total(|entry| entry.read_bytes);
    found.written = total(|entry| entry.write_bytes);
    found.bottom_read = bottom(visit, devices);
    found
}

impl Moved {
    /// Bytes that the devices read by bytes read from them, and the same of bytes written: a cache
    /// of reads is not to be hidden behind writes. `None` where nothing was asked for.
    pub fn ratios(&self) -> (Option<f64>, Option<f64>) {
        let ratio = |moved: u64, asked: u64| (asked > 0).then(|| moved as f64 / asked as f64);
        (ratio(self.read, self.asked_read), ratio(self.written, self.asked_written))
    }
}

/// The counters cover the ramp, the figures do not.
fn ramp_factor(stream: &StreamRecord) -> f64 {
    let counted: u64 = stream.ops.iter().map(|op| op.requests).fold(0, u64::saturating_add);
    if counted == 0 { 1.0 } else { 1.0 + stream.ramp_requests as f64 / counted as f64 }
}

/// Bytes read by the disks at the bottom; `None` where there is nothing below the top, or not
/// every device was counted.
fn bottom(visit: &VisitRecord, devices: &[String]) -> Option<u64> {
    let counted: BTreeSet<&str> = visit.ledger.iter().map(|e| e.device.as_str()).collect();
    if !devices.iter().all(|name| counted.contains(name.as_str())) {
        return None;
    }
    let below: Vec<&LedgerEntry> =
        visit.ledger.iter().filter(|entry| entry.depth > 0 && is_bottom(entry, visit)).collect();
    // A disk on top beside others further down is its own bottom.
    let top = visit.ledger.iter().filter(|entry| entry.depth == 0 && is_bottom(entry, visit));
    let read = below.iter().copied().chain(top).map(|e| e.read_bytes).fold(0, u64::saturating_add);
    (!below.is_empty()).then_some(read)
}

/// Whether a device is no partition, volume, array or loop device.
fn is_bottom(entry: &LedgerEntry, visit: &VisitRecord) -> bool {
    let name = entry.device.as_str();
    let made_of_others =
        ["dm-", "md", "loop", "bcache", "drbd"].iter().any(|p| name.starts_with(p));
    let partition = visit.ledger.iter().any(|disk| {
        let rest = name.strip_prefix(disk.device.as_str()).filter(|_| disk.depth > entry.depth);
        rest.is_some_and(|rest| !rest.is_empty())
    });
    !made_of_others && !partition
}

/// Of several visits together.
pub fn sum(all: impl Iterator<Item = Moved>) -> Moved {
    all.reduce(|a, b| Moved {
        asked_read: a.asked_read.saturating_add(b.asked_read),
        asked_written: a.asked_written.saturating_add(b.asked_written),
        read: a.read.saturating_add(b.read),
        written: a.written.saturating_add(b.written),
        bottom_read: a.bottom_read.zip(b.bottom_read).map(|(a, b)| a.saturating_add(b)),
    })
    .unwrap_or_default()
}

fn top_names(cell: &CellView<'_>) -> String {
    let ledger = cell.visits.iter().flat_map(|v| &v.visit.ledger);
    let top: BTreeSet<&str> = ledger.filter(|e| e.depth == 0).map(|e| e.device.as_str()).collect();
    crate::words::list(&top.into_iter().map(str::to_owned).collect::<Vec<_>>())
}

fn read_findings(moved: &Moved, top: &str, found: &mut Vec<Verdict>) {
    if moved.asked_read < ASKED_MIN {
        if moved.asked_written >= ASKED_MIN {
            foreign("read", moved.read, moved.asked_read, moved.asked_written, found);
        }
        return;
    }
    let asked = moved.asked_read as f64;
    let ratio = moved.read as f64 / asked;
    match ratio {
        r if r < PARTLY => found.push(answered("read", r, format!("above {top}"))),
        r if r > MORE => {
            foreign("read", moved.read, moved.asked_read, moved.asked_read, found);
            found.push(device("read", ratio));
        }
        _ => found.push(device("read", ratio)),
    }
    if moved.asked_written < ASKED_MIN {
        foreign("write", moved.written, moved.asked_written, moved.asked_read, found);
    }
    if let Some(bottom) = moved.bottom_read.map(|bytes| bytes as f64 / asked)
        && ratio >= PARTLY
        && bottom < PARTLY
    {
        found.push(answered("read", bottom, format!("between {top} and the disks below")));
    }
}

fn device(op: &str, ratio: f64) -> Verdict {
    Verdict::Device { op: op.to_owned(), ratio }
}

fn answered(op: &str, ratio: f64, place: String) -> Verdict {
    let (op, share) = (op.to_owned(), 1.0 - ratio);
    if ratio < FULLY {
        Verdict::Cached { op, share, place }
    } else {
        Verdict::PartlyCached { op, share, place }
    }
}

/// More than a twentieth of all that was asked for moved without having been asked for.
fn foreign(op: &str, device: u64, asked: u64, all: u64, found: &mut Vec<Verdict>) {
    let extra = device.saturating_sub(asked);
    if extra >= ASKED_MIN && extra as f64 > (MORE - 1.0) * all as f64 {
        found.push(Verdict::Foreign {
            op: op.to_owned(),
            device_bytes: device,
            asked_bytes: asked,
        });
    }
}

fn write_findings(moved: &Moved, direct: Option<bool>, top: &str, found: &mut Vec<Verdict>) {
    if moved.asked_written < ASKED_MIN {
        return;
    }
    let ratio = moved.written as f64 / moved.asked_written as f64;
    match ratio {
        r if r < PARTLY && direct == Some(true) => {
            found.push(answered("write", r, format!("above {top}")));
        }
        r if r < PARTLY => found.push(Verdict::WriteLag {
            missing_bytes: moved.asked_written.saturating_sub(moved.written),
            share: 1.0 - r,
        }),
        r if r > MORE => {
            foreign("write", moved.written, moved.asked_written, moved.asked_written, found);
            found.push(device("write", ratio));
        }
        _ => found.push(device("write", ratio)),
    }
}
