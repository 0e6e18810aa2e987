//! Bytes that the devices moved, by bytes that were asked for.
//!
//! Entries of depth 0 are the devices right under the file system (or the target): what they did
//! not move was answered above them. The disks further down are looked at too, where every one of
//! them was counted: what a loop device moved and its file's disk did not was answered between.

use std::collections::BTreeSet;

use record::{LedgerEntry, Run, StreamRecord, TargetKind, VisitRecord};
use suite::model::Class;

use super::plan::Plan;
use super::{CacheFinding, Verdict, Witness};
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

/// Sigmas that the chance in a ramp is given: one cell in 16 000 goes beyond.
const SIGMAS: f64 = 4.0;

/// How far off what was asked for may be: of a ramp the number of requests is stored, and not how
/// many of them were reads, nor how large they were.
#[derive(Clone, Copy, Debug, Default)]
struct Doubt {
    read: Off,
    written: Off,
    /// All requests of a stream are of one size: what was asked for in all is known.
    total_known: bool,
}

/// Bytes by which one of them may be off.
#[derive(Clone, Copy, Debug, Default)]
struct Off {
    /// Square of the standard error, over all visits.
    variance: f64,
    /// What is in flight at the ramp's end is more of what takes long.
    edge: f64,
}

impl Off {
    fn bytes(self) -> u64 {
        (SIGMAS * self.variance.sqrt() + self.edge) as u64
    }

    fn add(&mut self, other: Self) {
        self.variance += other.variance;
        self.edge += other.edge;
    }
}

impl Doubt {
    fn of(plan: &Plan, cell: &CellView<'_>) -> Self {
        let mut doubt = Self { total_known: true, ..Self::default() };
        for visit in &cell.visits {
            for (position, stream) in visit.visit.streams.iter().enumerate() {
                let planned = plan.cell(cell.cell).and_then(|cell| cell.streams.get(position));
                let classes = planned.map_or(&[][..], |stream| &stream.mix.classes);
                doubt.total_known &= stream.ramp_requests == 0 || one_size(stream, classes);
                doubt.read.add(off(stream, classes, "read", visit.visit.elapsed_ns));
                doubt.written.add(off(stream, classes, "write", visit.visit.elapsed_ns));
            }
        }
        doubt
    }
}

fn one_size(stream: &StreamRecord, classes: &[Class]) -> bool {
    let sized = |class: &&Class| class.op.reads() || class.op.writes();
    let mut sizes = classes.iter().filter(sized).map(|class| class.block_size);
    match sizes.next() {
        Some(first) => sizes.all(|size| size == first),
        // A plan that cannot be read back: one operation of one size is all that is sure.
        None => stream.ops.len() < 2,
    }
}

/// Chance in what a stream's ramp moved by one operation, as drawn from the classes of its mix,
/// and in the share of it that is taken from the measured part.
fn off(stream: &StreamRecord, classes: &[Class], name: &str, elapsed_ns: u64) -> Off {
    let ramp = stream.ramp_requests as f64;
    let counted: f64 = stream.ops.iter().map(|op| op.requests as f64).sum();
    if ramp <= 0.0 || counted <= 0.0 {
        return Off::default();
    }
    let of = |class: &Class| if name == "read" { class.op.reads() } else { class.op.writes() };
    let weight: f64 = classes.iter().map(|class| class.weight).sum();
    let op = stream.ops.iter().find(|op| op.op == name);
    let size = op.map_or(0.0, |op| op.bytes as f64 / op.requests.max(1) as f64);
    let share = op.map_or(0.0, |op| op.requests as f64 / counted);
    let (mean, square) = if weight > 0.0 {
        classes.iter().filter(|class| of(class)).fold((0.0, 0.0), |(mean, square), class| {
            let (part, bytes) = (class.weight / weight, class.block_size.get() as f64);
            (mean + part * bytes, square + part * bytes * bytes)
        })
    } else {
        (share * size, share * size * size)
    };
    let in_flight = |ns: u128| ns as f64 / elapsed_ns.max(1) as f64;
    let all = in_flight(stream.ops.iter().fold(0, |sum, op| sum + op.latency_ns_sum));
    let own = in_flight(op.map_or(0, |op| op.latency_ns_sum));
    // Those of it in flight are as large as all are, or larger as far as large ones take longer.
    let in_proportion = if mean > 0.0 { square / mean } else { size };
    let beyond = |size: f64| (own * size - all * mean).abs();
    Off {
        variance: ramp * (1.0 + ramp / counted) * (square - mean * mean).max(0.0),
        edge: beyond(size).max(beyond(in_proportion)),
    }
}

/// Bytes of one operation, asked for and moved.
#[derive(Clone, Copy, Debug)]
struct Direction {
    asked: u64,
    moved: u64,
    off: u64,
    /// Bytes of all operations that were asked for and not moved, where that is known.
    short: Option<u64>,
}

impl Direction {
    /// What was asked for, as near to what moved as chance allows.
    fn nearest(self) -> u64 {
        let (least, most) =
            (self.asked.saturating_sub(self.off), self.asked.saturating_add(self.off));
        self.moved.clamp(least, most)
    }

    /// Bytes moved by bytes asked for, as near to 1 as chance allows; why it is not known, if
    /// chance could hide as much as a cache that would be told.
    fn ratio(self) -> Result<f64, String> {
        let (plain, nearest) = (by(self.moved, self.asked), by(self.moved, self.nearest()));
        let least = by(self.moved, self.asked.saturating_add(self.off));
        let is_told = |ratio: f64| ratio < PARTLY;
        let all_there =
            self.short.is_some_and(|short| short as f64 <= (1.0 - PARTLY) * self.asked as f64);
        if !is_told(nearest) && is_told(least) && !all_there {
            return Err(format!(
                "of the ramp only the number of requests is stored, not how many were reads or \
                 writes or how large, so what was asked for may be {} off, and a cache could hide \
                 in that; visits that are long against their ramp tell (--set time=...)",
                crate::words::percent(self.off as f64 / self.asked.max(1) as f64)
            ));
        }
        Ok(if is_told(plain) || plain > MORE { nearest } else { plain })
    }
}

fn by(moved: u64, asked: u64) -> f64 {
    if asked == 0 { 1.0 } else { moved as f64 / asked as f64 }
}

pub(super) fn findings(view: &View<'_>, plan: &Plan, cell: &CellView<'_>) -> Vec<CacheFinding> {
    let finding = |verdict| CacheFinding { witness: Witness::Ledger, verdict };
    if let Some(what) = no_device(view.run) {
        return vec![finding(Verdict::NoDevice { what })];
    }
    if let Some(why) = unknown(view.run, cell) {
        // With every page there before, zeros are what to expect.
        let cached =
            all_resident(cell) && asks_reads(cell) && plan.asks_direct(cell.cell) == Some(false);
        let verdict = if cached { Verdict::InPageCache } else { Verdict::Unknown { why } };
        return vec![finding(verdict)];
    }
    let devices = &view.run.header.target.devices;
    let moved = sum(cell.visits.iter().map(|v| moved(v.visit, devices)));
    let top = top_names(cell);
    let doubt = Doubt::of(plan, cell);
    let all = moved.asked_read.saturating_add(moved.asked_written);
    let short = all.saturating_sub(moved.read.saturating_add(moved.written));
    let short = doubt.total_known.then_some(short);
    let reads =
        Direction { asked: moved.asked_read, moved: moved.read, off: doubt.read.bytes(), short };
    let writes = Direction {
        asked: moved.asked_written,
        moved: moved.written,
        off: doubt.written.bytes(),
        short,
    };
    let mut found = Vec::new();
    read_findings(&moved, [reads, writes], &top, &mut found);
    write_findings(writes, plan.asks_direct(cell.cell), &top, &mut found);
    if found.is_empty() {
        found.push(Verdict::Unknown { why: too_little(all, cell) });
    }
    if let Some(why) = compressed(view.run, plan) {
        let is_short = |verdict: &Verdict| {
            matches!(
                verdict,
                Verdict::WriteLag { .. } | Verdict::PartlyCached { .. } | Verdict::Cached { .. }
            )
        };
        if found.iter().any(is_short) {
            found.retain(|verdict| !is_short(verdict));
            found.push(Verdict::Unknown { why });
        }
    }
    found.into_iter().map(finding).collect()
}

/// Why devices may have moved less than was asked for without any cache: of ZFS the kernel does not tell
/// whether it compresses, so it may.
pub(super) fn compressed(run: &Run, plan: &Plan) -> Option<String> {
    if !plan.is_compressible() {
        return None;
    }
    let how = run.header.target.remarks.iter().find_map(|remark| {
        let known = remark.strip_prefix("compressed (").and_then(|rest| rest.split_once("): "));
        let perhaps = || remark.split_once(": may be compressed");
        known
            .map(|(how, _)| format!("the file system compresses ({how})"))
            .or_else(|| perhaps().map(|(name, _)| format!("{name} may compress (nobody can see)")))
    })?;
    Some(format!(
        "{how} and the data can be compressed, so the devices move less than is asked for, cache or not; \
         a suite with `data = \"incompressible\"` tells"
    ))
}

/// Why what was asked for is not to be compared with counters.
fn too_little(asked: u64, cell: &CellView<'_>) -> String {
    if asked > 0 {
        let size = crate::words::size(asked);
        return format!("the visits asked for {size} only: too little to compare with counters");
    }
    let streams = cell.visits.iter().flat_map(|v| &v.visit.streams);
    let ops: BTreeSet<String> = streams
        .flat_map(|stream| &stream.ops)
        .filter(|op| op.requests > 0)
        .map(|op| format!("`{}`", op.op))
        .collect();
    match ops.len() {
        0 => "no request completed".to_owned(),
        _ => {
            let ops: Vec<String> = ops.into_iter().collect();
            format!(
                "counters are compared with reads and writes, and the requests are {}",
                crate::words::list(&ops)
            )
        }
    }
}

/// What the target is, if no device is below it.
fn no_device(run: &Run) -> Option<String> {
    let target = &run.header.target;
    let counted = run.visits.iter().any(|visit| !visit.ledger.is_empty());
    match target.kind {
        // Its log and its collector move other bytes than were asked for.
        _ if target.is_layer() => Some(format!("a log ({})", target.given)),
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

fn top_names(cell: &CellView<'_>) -> Vec<String> {
    let ledger = cell.visits.iter().flat_map(|v| &v.visit.ledger);
    let top: BTreeSet<&str> = ledger.filter(|e| e.depth == 0).map(|e| e.device.as_str()).collect();
    top.into_iter().map(str::to_owned).collect()
}

fn read_findings(
    moved: &Moved,
    [reads, writes]: [Direction; 2],
    top: &[String],
    found: &mut Vec<Verdict>,
) {
    if reads.asked < ASKED_MIN {
        if writes.asked >= ASKED_MIN {
            foreign("read", reads.moved, reads.nearest(), writes.asked, found);
        }
        return;
    }
    let asked = reads.nearest();
    let ratio = match reads.ratio() {
        Ok(ratio) => ratio,
        Err(why) => return found.push(Verdict::Unknown { why }),
    };
    match ratio {
        r if r < PARTLY => found.push(answered("read", r, (top, false))),
        r if r > MORE => {
            foreign("read", reads.moved, asked, asked, found);
            found.push(device("read", ratio));
        }
        _ => found.push(device("read", ratio)),
    }
    if writes.asked < ASKED_MIN {
        foreign("write", writes.moved, writes.nearest(), reads.asked, found);
    }
    let below = moved.bottom_read.map(|bytes| Direction { moved: bytes, short: None, ..reads });
    if let Some(bottom) = below.map(|below| by(below.moved, below.nearest()))
        && ratio >= PARTLY
        && bottom < PARTLY
    {
        found.push(answered("read", bottom, (top, true)));
    }
}

fn device(op: &str, ratio: f64) -> Verdict {
    Verdict::Device { op: op.to_owned(), ratio }
}

/// * `place`: the devices on top, and whether it is below these.
fn answered(op: &str, ratio: f64, place: (&[String], bool)) -> Verdict {
    let (op, share) = (op.to_owned(), 1.0 - ratio);
    let (devices, between) = (place.0.to_vec(), place.1);
    if ratio < FULLY {
        Verdict::Cached { op, share, devices, between }
    } else {
        Verdict::PartlyCached { op, share, devices, between }
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

fn write_findings(
    writes: Direction,
    direct: Option<bool>,
    top: &[String],
    found: &mut Vec<Verdict>,
) {
    if writes.asked < ASKED_MIN {
        return;
    }
    let asked = writes.nearest();
    let ratio = match writes.ratio() {
        Ok(ratio) => ratio,
        Err(why) => return found.push(Verdict::Unknown { why }),
    };
    match ratio {
        r if r < PARTLY && direct == Some(true) => {
            found.push(answered("write", r, (top, false)));
        }
        r if r < PARTLY => found.push(Verdict::WriteLag {
            missing_bytes: asked.saturating_sub(writes.moved),
            share: 1.0 - r,
        }),
        r if r > MORE => {
            foreign("write", writes.moved, asked, asked, found);
            found.push(device("write", ratio));
        }
        _ => found.push(device("write", ratio)),
    }
}
