//! Slow visits in the order in which they were made.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Context, Fill, Found, Kind, Neighbours, SweepCell};

/// Two amounts agree within this ratio.
const SAME_AMOUNT: f64 = 1.25;

/// Slow visits one right after the other: something that happened at a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// In the order made.
    pub visits: Vec<EventVisit>,
    /// Sum over the visits.
    pub lost_ns: u64,
    /// The same cells were fast at other times. Without that, only the order speaks for it.
    pub confirmed: bool,
    /// It began with the first visit of the run.
    pub first_of_run: bool,
    /// The fill that came before it, which may still have been written: of one at the start of the run.
    pub fill: Option<Fill>,
}

/// A slow visit.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EventVisit {
    /// Index of the cell in the run.
    pub cell: u32,
    /// As in [`SweepCell::group`].
    pub group: String,
    /// `read`, `write`, ...
    pub op: String,
    /// Bytes per request.
    pub block_bytes: u64,
    /// Workers.
    pub threads: u32,
    /// Requests in flight.
    pub in_flight: u64,
    /// When, among all visits of the run.
    pub order: u32,
    /// Rate by what is usual there.
    pub ratio: f64,
    /// Time in which nothing was done, measured by what is usual there.
    pub lost_ns: u64,
}

/// As much had been written as a cache holds, about: a question, not a finding.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FullCache {
    /// Bytes written by the phase until then.
    pub written_bytes: u64,
    /// Bytes of cache as declared, or what the run touches.
    pub cache_bytes: u64,
}

/// All visits in the order made: orders need not be without holes.
pub(super) struct Sequence {
    orders: Vec<u32>,
}

impl Sequence {
    pub(super) fn of(cells: &[SweepCell]) -> Self {
        let mut orders: Vec<u32> =
            cells.iter().flat_map(|cell| cell.visits.iter().map(|v| v.order)).collect();
        orders.sort_unstable();
        orders.dedup();
        Self { orders }
    }

    /// Place among the visits of the sweep, from 0.
    pub(super) fn rank(&self, order: u32) -> usize {
        self.orders.partition_point(|&known| known < order)
    }

    /// Whether no visit lies between any of these.
    pub(super) fn contiguous(&self, orders: &[u32]) -> bool {
        let ranks = || orders.iter().map(|&order| self.rank(order));
        let distinct: std::collections::BTreeSet<usize> = ranks().collect();
        match (distinct.first(), distinct.last()) {
            (Some(first), Some(last)) => last - first + 1 == distinct.len(),
            _ => false,
        }
    }

    /// Cuts slow visits (index of the found cell, order) into runs without another between.
    fn runs(&self, mut visits: Vec<(usize, u32)>) -> Vec<Vec<(usize, u32)>> {
        visits.sort_by_key(|&(_, order)| order);
        let mut runs: Vec<Vec<(usize, u32)>> = Vec::new();
        for visit in visits {
            match runs.last_mut() {
                Some(run)
                    if run
                        .last()
                        .is_some_and(|&(_, last)| self.rank(visit.1) <= self.rank(last) + 1) =>
                {
                    run.push(visit);
                }
                _ => runs.push(vec![visit]),
            }
        }
        runs
    }
}

/// Makes transients of unconfirmed cells whose slow visits are the first of the run, or that ran
/// one after the other although they are not neighbours, nor joined by other flagged cells.
pub(super) fn reclassify(found: &mut [Found], sequence: &Sequence, neighbours: &Neighbours) {
    let regions = regions(found, neighbours);
    let slow = |(i, f): (usize, &Found)| {
        f.slow.iter().map(move |&(order, ..)| (i, order)).collect::<Vec<_>>()
    };
    let open = found
        .iter()
        .enumerate()
        .filter(|(_, f)| !matches!(f.kind, Kind::Reproducible | Kind::StoodStill));
    for run in sequence.runs(open.flat_map(slow).collect()) {
        let first = run.first().is_some_and(|&(_, order)| sequence.rank(order) == 0);
        let in_run = |index: usize| run.iter().any(|&(i, _)| i == index);
        let strangers = run.windows(2).any(|pair| regions[pair[0].0] != regions[pair[1].0]);
        let whole = |region: usize| (0..regions.len()).all(|i| regions[i] != region || in_run(i));
        for &(index, _) in &run {
            let of_the_moment = first || (strangers && whole(regions[index]));
            if of_the_moment && found[index].kind == Kind::Unconfirmed {
                found[index].kind = Kind::Transient;
            }
        }
    }
}

/// Per found cell the number of the region it is in: cells that touch share one.
fn regions(found: &[Found], neighbours: &Neighbours) -> Vec<usize> {
    let mut regions: Vec<usize> = (0..found.len()).collect();
    for a in 0..found.len() {
        for b in 0..a {
            if neighbours.touch(found[a].cell, found[b].cell) {
                let (from, to) = (regions[a], regions[b]);
                regions.iter_mut().filter(|region| **region == from).for_each(|r| *r = to);
            }
        }
    }
    regions
}

/// The transients, joined in time.
pub(super) fn events(
    cells: &[SweepCell],
    found: &[Found],
    sequence: &Sequence,
    context: &Context,
) -> Vec<Event> {
    let transient = found.iter().enumerate().filter(|(_, f)| f.kind == Kind::Transient);
    let visits: Vec<(usize, u32)> =
        transient.flat_map(|(i, f)| f.slow.iter().map(move |&(order, ..)| (i, order))).collect();
    let mut events = Vec::new();
    for run in sequence.runs(visits) {
        let show = |&(index, order): &(usize, u32)| {
            let found = &found[index];
            let cell = &cells[found.cell];
            let &(_, ratio, lost_ns) = found.slow.iter().find(|slow| slow.0 == order)?;
            Some(EventVisit {
                cell: cell.cell,
                group: cell.group.clone(),
                op: cell.op.clone(),
                block_bytes: cell.block_bytes,
                threads: cell.threads,
                in_flight: cell.in_flight,
                order,
                ratio,
                lost_ns,
            })
        };
        let visits: Vec<EventVisit> = run.iter().filter_map(show).collect();
        let lost_ns = visits.iter().map(|v| v.lost_ns).fold(0, u64::saturating_add);
        let first_of_run = visits.first().is_some_and(|v| sequence.rank(v.order) == 0);
        let confirmed =
            run.iter().all(|&(i, _)| cells[found[i].cell].visits.len() > found[i].slow.len());
        let fill =
            context.fill.filter(|fill| first_of_run && fill.bytes > 0 && fill.elapsed_ns > 0);
        events.push(Event { visits, lost_ns, confirmed, first_of_run, fill });
    }
    events
}

fn within(a: f64, b: f64, ratio: f64) -> bool {
    a <= b * ratio && b <= a * ratio
}

/// Whether a region of writes began when about a cache had been written.
pub(super) fn full_cache(
    cells: &[SweepCell],
    region: &[usize],
    slow: &[u32],
    context: &Context,
) -> Option<FullCache> {
    let first = *slow.iter().min()?;
    let group = &cells.get(*region.first()?)?.group;
    let writes = cells.iter().filter(|cell| cell.group == *group && cell.op == "write");
    let before: Vec<_> = writes
        .flat_map(|cell| cell.visits.iter().map(move |visit| (cell, visit)))
        .filter(|(_, visit)| visit.order < first)
        .collect();
    // What another tool measured need not have a time, and so no bytes.
    if before.iter().any(|(_, visit)| visit.elapsed_ns == 0) {
        return None;
    }
    let before = before.into_iter().map(|(cell, v)| {
        v.requests_per_second * cell.block_bytes as f64 * v.elapsed_ns as f64 / 1e9
    });
    let written_bytes = before.sum::<f64>() as u64;
    let cache_bytes = context.cache_bytes.or(context.working_set_bytes)?;
    within(written_bytes as f64, cache_bytes as f64, SAME_AMOUNT)
        .then_some(FullCache { written_bytes, cache_bytes })
}
