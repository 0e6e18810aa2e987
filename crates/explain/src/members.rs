//! Devices side by side under one array: whether one of them is slower than its siblings or has
//! more to do, and what a write costs them.
//!
//! An array goes at the pace of its slowest member, and no figure of the array shows which that
//! is. The kernel counts requests and the time spent in them for each device; siblings are asked
//! for alike, so they are held against each other and not against a table of what drives can do.

use std::collections::{BTreeMap, BTreeSet};

use finding::{Code, Finding, Number, Subject, Value};
use record::LedgerEntry;
use schemars::JsonSchema;
use serde::Serialize;

use crate::view::{CellView, View, VisitView};

/// In a visit that says something of a device it completed so many requests.
const REQUESTS_MIN: u64 = 10;
/// Visits that make a verdict.
const VISITS_MIN: usize = 4;
/// Slower than this many times its siblings' time, or busier than so many times their requests, is
/// told; less is what chance and alignment make.
const APART: f64 = 1.5;
/// In this share of the visits it must be so.
const SHARE_MIN: f64 = 0.8;
/// Bytes read for each byte written from which writes are said to need reads.
const READ_BEFORE_WRITE: f64 = 0.1;

/// What devices side by side did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Members {
    /// Layers with several devices, from the top down.
    pub layers: Vec<MemberLayer>,
    /// Cells that only write, and what that cost the lowest of these layers.
    pub writes: Vec<WriteCost>,
}

/// Devices at one distance from the target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MemberLayer {
    /// Distance from the target: 0 is right under the file system.
    pub depth: u32,
    /// Visits that were looked at.
    pub visits: u32,
    /// They were so loaded that each device had a request to do on average.
    pub loaded: bool,
    /// By name.
    pub devices: Vec<Member>,
}

/// One device among its siblings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Member {
    /// Kernel name.
    pub device: String,
    /// Requests that it completed in these visits.
    pub requests: u64,
    /// Mean time of a request in it, queue included.
    pub time_ns: u64,
    /// That by the middle of its siblings' times: the middle of the visits.
    pub time_ratio: f64,
    /// Its requests by the middle of its siblings', likewise.
    pub requests_ratio: f64,
    /// Visits in which it was slower than its siblings by more than half.
    pub slower_in: u32,
    /// What sets it apart.
    pub standing: Standing,
}

/// How a device stands among its siblings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// As the others, within half as much again.
    Alike,
    /// Its requests take longer, and it has no more of them.
    Slow,
    /// It has more requests: the layout or the load sends them there.
    Busier,
    /// Too few visits or requests.
    Unknown,
}

/// What writes of one cell cost the members.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WriteCost {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// Bytes that members read for each byte that was written.
    pub read_per_written: f64,
    /// Bytes that members wrote for each byte that was written.
    pub written_per_written: f64,
}

/// What the members did.
pub fn members(view: &View<'_>) -> Members {
    // Several devices right under several files may have nothing to do with each other.
    let several = view.run.header.target.files > 1;
    let related = |visit: &&VisitView<'_>| !several || at(visit, 0).count() < 2;
    let mut visits: BTreeMap<u32, Vec<&VisitView<'_>>> = BTreeMap::new();
    for visit in view.grid().flat_map(|cell| &cell.visits).filter(related) {
        for depth in depths(visit) {
            visits.entry(depth).or_default().push(visit);
        }
    }
    let layers: Vec<MemberLayer> =
        visits.iter().filter_map(|(&depth, visits)| layer(depth, visits)).collect();
    let lowest = layers.last().map(|layer| layer.depth);
    let writes = lowest.map_or_else(Vec::new, |depth| {
        view.grid().filter_map(|cell| write_cost(cell, depth)).collect()
    });
    Members { layers, writes }
}

/// Depths at which a visit has several devices.
fn depths(visit: &VisitView<'_>) -> Vec<u32> {
    let ledger = &visit.visit.ledger;
    let all: BTreeSet<u32> = ledger.iter().map(|entry| entry.depth).collect();
    all.into_iter().filter(|&depth| at(visit, depth).count() > 1).collect()
}

fn at<'v>(visit: &'v VisitView<'_>, depth: u32) -> impl Iterator<Item = &'v LedgerEntry> {
    visit.visit.ledger.iter().filter(move |entry| entry.depth == depth)
}

fn requests(entry: &LedgerEntry) -> u64 {
    entry.reads.saturating_add(entry.writes).saturating_add(entry.discards)
}

/// One device in one visit, beside the middle of its siblings.
#[derive(Clone, Copy, Debug)]
struct Beside {
    requests: u64,
    queue_ms: u64,
    time_ratio: Option<f64>,
    requests_ratio: f64,
}

fn layer(depth: u32, visits: &[&VisitView<'_>]) -> Option<MemberLayer> {
    // Where a device has nothing to wait for, it cannot show that it is slow.
    let is_loaded = |visit: &&&VisitView<'_>| {
        let counted = visit.visit.elapsed_ns.saturating_add(visit.visit.ramp_ns);
        let queue_ms: u64 = at(visit, depth).map(|entry| entry.queue_ms).sum();
        queue_ms as f64 * 1e6 >= counted as f64 * at(visit, depth).count() as f64
    };
    let under_load: Vec<&VisitView<'_>> = visits.iter().filter(is_loaded).copied().collect();
    let loaded = under_load.len() >= VISITS_MIN;
    let looked_at = if loaded { under_load.as_slice() } else { visits };
    let mut devices: BTreeMap<&str, Vec<Beside>> = BTreeMap::new();
    for visit in looked_at {
        for (entry, beside) in besides(visit, depth) {
            devices.entry(entry).or_default().push(beside);
        }
    }
    (devices.len() > 1).then(|| MemberLayer {
        depth,
        visits: u32::try_from(looked_at.len()).unwrap_or(u32::MAX),
        loaded,
        devices: devices.into_iter().map(|(name, seen)| member(name, &seen)).collect(),
    })
}

/// Every device of a layer in a visit, held against the middle of the others.
fn besides<'v>(visit: &'v VisitView<'_>, depth: u32) -> Vec<(&'v str, Beside)> {
    let entries: Vec<&LedgerEntry> = at(visit, depth).collect();
    let time = |entry: &LedgerEntry| {
        let requests = requests(entry);
        (requests >= REQUESTS_MIN).then(|| entry.queue_ms as f64 / requests as f64)
    };
    let beside = |(position, entry): (usize, &&'v LedgerEntry)| {
        let others = || entries.iter().enumerate().filter(|(other, _)| *other != position);
        let time_of_others = middle(others().filter_map(|(_, other)| time(other)));
        let requests_of_others = middle(others().map(|(_, other)| requests(other) as f64));
        let mine = time(entry).zip(time_of_others).filter(|(_, others)| *others > 0.0);
        let beside = Beside {
            requests: requests(entry),
            queue_ms: entry.queue_ms,
            time_ratio: mine.map(|(mine, others)| mine / others),
            requests_ratio: requests(entry) as f64 / requests_of_others.unwrap_or(0.0).max(1.0),
        };
        (entry.device.as_str(), beside)
    };
    entries.iter().enumerate().map(beside).collect()
}

fn member(device: &str, seen: &[Beside]) -> Member {
    let requests = seen.iter().fold(0u64, |sum, one| sum.saturating_add(one.requests));
    let queue_ms = seen.iter().fold(0u64, |sum, one| sum.saturating_add(one.queue_ms));
    let times: Vec<f64> = seen.iter().filter_map(|one| one.time_ratio).collect();
    let slower = times.iter().filter(|ratio| **ratio > APART).count();
    let busier = seen.iter().filter(|one| one.requests_ratio > APART).count();
    let enough = |count: usize| count as f64 >= SHARE_MIN * seen.len() as f64;
    let time_ratio = middle(times.iter().copied()).unwrap_or(1.0);
    let requests_ratio = middle(seen.iter().map(|one| one.requests_ratio)).unwrap_or(1.0);
    let standing = if seen.len() < VISITS_MIN {
        Standing::Unknown
    } else if enough(busier) {
        Standing::Busier
    } else if times.len() < VISITS_MIN {
        Standing::Unknown
    } else if enough(slower) {
        Standing::Slow
    } else {
        Standing::Alike
    };
    Member {
        device: device.to_owned(),
        requests,
        time_ns: ((queue_ms as f64 * 1e6) / requests.max(1) as f64) as u64,
        time_ratio,
        requests_ratio,
        slower_in: u32::try_from(slower).unwrap_or(u32::MAX),
        standing,
    }
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    Some(if values.len() % 2 == 1 { upper } else { (upper + values[half - 1]) / 2.0 })
}

fn write_cost(cell: &CellView<'_>, depth: u32) -> Option<WriteCost> {
    let only_writes = !cell.cell.streams.is_empty()
        && cell.cell.streams.iter().all(|stream| stream.op == "write");
    // Each layer's own counters, over the ramp as well.
    let sum = |depth: u32, of: fn(&LedgerEntry) -> u64| -> f64 {
        let entries = cell.visits.iter().flat_map(|visit| at(visit, depth));
        entries.map(|entry| of(entry) as f64).sum()
    };
    let written = sum(0, |entry| entry.write_bytes);
    (only_writes && depth > 0 && written > 0.0).then(|| WriteCost {
        cell: cell.cell.index,
        cell_name: cell.name(),
        read_per_written: sum(depth, |entry| entry.read_bytes) / written,
        written_per_written: sum(depth, |entry| entry.write_bytes) / written,
    })
}

impl Members {
    /// Who is apart from its siblings, on what evidence, what to do next; then what writes cost.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = self.layers.iter().flat_map(MemberLayer::busier).collect();
        // What is slow makes everything above it slow: the lowest is the cause.
        let slow = self.layers.iter().rev().find_map(|layer| match layer.slow() {
            slow if slow.is_empty() => None,
            slow => Some((layer, slow)),
        });
        match (slow, self.layers.last()) {
            (Some((layer, slow)), _) => {
                found.extend(slow.iter().map(|one| layer.slow_finding(one)));
            }
            (None, Some(layer)) => found.extend(layer.alike()),
            (None, None) => {}
        }
        found.extend(self.of_writes());
        found
    }

    fn of_writes(&self) -> Option<Finding> {
        let (needs, free): (Vec<&WriteCost>, Vec<&WriteCost>) =
            self.writes.iter().partition(|cost| cost.read_per_written >= READ_BEFORE_WRITE);
        let worst =
            needs.iter().max_by(|a, b| a.read_per_written.total_cmp(&b.read_per_written))?;
        let free = free.iter().map(|cost| cost.cell_name.as_str());
        let free = (needs.len() < self.writes.len()).then(|| Value::names(free));
        let subject = |cost: &&WriteCost| Subject::new(cost.cell, None, &cost.cell_name);
        let found = Finding::new(Code::MembersReadToWrite)
            .on_all(needs.iter().map(subject), self.writes.len())
            .with("worst", Value::name(&worst.cell_name))
            .with("read", Number::ratio(worst.read_per_written))
            .with("written", Number::ratio(worst.written_per_written));
        Some(found.with_some("free", free))
    }
}

impl MemberLayer {
    /// Those that are slower than their siblings.
    pub fn slow(&self) -> Vec<&Member> {
        self.devices.iter().filter(|member| member.standing == Standing::Slow).collect()
    }

    fn of(&self, code: Code, member: &Member) -> Finding {
        Finding::new(code)
            .with("device", Value::name(&member.device))
            .with("depth", self.depth)
            .with("visits", self.visits)
            .with("loaded", self.loaded)
    }

    fn slow_finding(&self, slow: &Member) -> Finding {
        let others = self.devices.iter().filter(|member| member.device != slow.device);
        let others = middle(others.map(|member| member.time_ns as f64)).unwrap_or(0.0);
        self.of(Code::MemberSlow, slow)
            .with("time", Number::ns(slow.time_ns))
            .with("others", Number::seconds(others / 1e9))
            .with("ratio", Number::ratio(slow.time_ratio))
            .with("slower_in", slow.slower_in)
    }

    fn busier(&self) -> Vec<Finding> {
        let busier = self.devices.iter().filter(|member| member.standing == Standing::Busier);
        let all: f64 = self.devices.iter().map(|member| member.requests as f64).sum();
        let finding = |member: &Member| {
            self.of(Code::MemberBusier, member)
                .with("share", Number::share(member.requests as f64 / all.max(1.0)))
                .with("ratio", Number::ratio(member.requests_ratio))
        };
        busier.map(finding).collect()
    }

    fn alike(&self) -> Option<Finding> {
        let known = self.devices.iter().all(|member| member.standing == Standing::Alike);
        let slowest = self.devices.iter().max_by(|a, b| a.time_ratio.total_cmp(&b.time_ratio))?;
        let found = self.of(Code::MembersAlike, slowest);
        known.then(|| found.with("ratio", Number::ratio(slowest.time_ratio)))
    }
}

#[cfg(test)]
mod tests;
