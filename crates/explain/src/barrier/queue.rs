//! Where requests wait, by Little's law at every layer: requests in a layer are its rate times
//! the time spent in it, whatever the layer is.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use suite::model::{Pacing, Stream};
use units::Nanos;

use crate::ends::{ends, seen as in_flight};
use crate::gap;
use crate::view::{View, VisitView};

/// Layers must hold this share of what was added for the queue to be there.
const HOLDS: f64 = 0.7;
/// Below this share of what is in flight nothing waits that is worth a word.
const WAITS: f64 = 0.1;
/// In a closed loop requests in flight agree with rate times time within this.
const AGREES: f64 = 0.05;

/// What waited in the block devices at one distance from the target.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LayerQueue {
    /// Distance from the target: 0 is right under the file system.
    pub depth: u32,
    /// Kernel names.
    pub devices: Vec<String>,
    /// Requests in them and below, on average.
    pub within: f64,
    /// Requests in them alone.
    pub own: f64,
}

/// What waited where in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueCell {
    /// Bytes per request.
    pub block_bytes: u64,
    /// Requests in flight that were asked for.
    pub in_flight: u64,
    /// Requests in flight that the measuring loop saw: rate times mean time. Of an open loop that time
    /// counts from when a request was due, so what waited for its turn is in it: there it is at most
    /// what may be in flight.
    pub seen: f64,
    /// Requests completed per second.
    #[serde(skip)]
    pub rate: f64,
    /// Of those, above all block devices.
    pub above: f64,
    /// By which share its visits' start and end may make rates wrong; 0 where visits are long.
    #[serde(skip)]
    pub ends: f64,
    /// The suite asks for pauses or a rate: then fewer are in flight than there are slots.
    #[serde(skip)]
    pub paced: bool,
    /// A rate is planned, so [`Self::seen`] is a bound only.
    #[serde(skip)]
    pub open: bool,
    /// From the top down; empty where the kernel counts nothing.
    pub layers: Vec<LayerQueue>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Above all block devices: file system, scheduler, limits of control groups, locks, the
    /// generator.
    Above,
    /// In block devices at this distance from the target.
    Devices {
        /// Distance.
        depth: u32,
        /// Kernel names.
        devices: Vec<String>,
        /// There are others below.
        has_members: bool,
    },
}

/// Where the queue is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueVerdict {
    /// The layer in which most of the waiting is that was added with what was added in flight;
    /// `None` if none has it, nothing waits, or nobody counted.
    pub place: Option<Place>,
    /// Its share of that waiting; with one number in flight, of all that was in flight.
    pub share: f64,
    /// Fewest and most in flight that were compared.
    pub compared: Option<(u64, u64)>,
    /// Requests in flight by rate times time are off by more than 5 % in these cells (block size,
    /// asked, seen): think time, an open loop, or a broken measurement.
    pub off: Vec<(u64, u64, f64)>,
    /// In all of those the visits are too short for so many in flight: that alone explains it.
    pub off_by_ends: bool,
    /// No device has it; but what waits above them in an open loop cannot be told from what waits for
    /// its turn.
    pub open_loop: bool,
    /// Every cell that has counters.
    pub cells: Vec<QueueCell>,
}

/// What waited where, by the groups of [`gap::of_view`].
pub fn queues(view: &View<'_>) -> BTreeMap<String, Vec<QueueCell>> {
    let mut groups: BTreeMap<String, Vec<QueueCell>> = BTreeMap::new();
    let plan = crate::findings::plan(view);
    for cell in view.grid() {
        let (Some(load), Some(group)) = (cell.load(), gap::group_of(cell)) else { continue };
        let seen = middle(cell.visits.iter().map(in_flight));
        if !seen.is_finite() || seen <= 0.0 {
            continue;
        }
        let entries = || cell.visits.iter().flat_map(|visit| &visit.visit.ledger);
        let depths: BTreeSet<u32> = entries().map(|entry| entry.depth).collect();
        let mut layers: Vec<LayerQueue> = depths
            .into_iter()
            .map(|depth| {
                let devices: BTreeSet<&str> = entries()
                    .filter(|entry| entry.depth == depth)
                    .map(|entry| entry.device.as_str())
                    .collect();
                let within = middle(cell.visits.iter().map(|visit| waiting(visit, depth)));
                let devices = devices.into_iter().map(str::to_owned).collect();
                LayerQueue { depth, devices, within, own: within }
            })
            .collect();
        for layer in 1..layers.len() {
            layers[layer - 1].own = (layers[layer - 1].within - layers[layer].within).max(0.0);
        }
        let top = layers.first().map_or(0.0, |layer| layer.within);
        let planned = plan.as_ref().and_then(|plan| plan.cells().nth(cell.cell.index as usize));
        let pacing = || planned.iter().flat_map(|cell| &cell.streams);
        let open = pacing().any(|stream| matches!(stream.pacing, Pacing::Open { .. }));
        // What waits for its turn is in no layer. Only while all places are taken does anything.
        let seen = if open { seen.min(load.in_flight as f64) } else { seen };
        groups.entry(group).or_default().push(QueueCell {
            block_bytes: load.block_bytes,
            in_flight: load.in_flight,
            seen,
            rate: middle(cell.visits.iter().map(|visit| visit.requests_per_second)),
            above: (seen - top).max(0.0),
            ends: ends(cell).map_or(0.0, |found| found.share),
            paced: pacing().any(is_paced),
            open,
            layers,
        });
    }
    groups
}

/// Whether the suite itself asks for pauses or a rate.
fn is_paced(stream: &Stream) -> bool {
    let free = matches!(stream.pacing, Pacing::Closed { think, .. } if think == Nanos::ZERO);
    !free || stream.duty.is_some()
}

fn waiting(visit: &VisitView<'_>, depth: u32) -> f64 {
    let layer = visit.visit.ledger.iter().filter(|entry| entry.depth == depth);
    // The counters run over the ramp, too.
    let counted = visit.visit.elapsed_ns.saturating_add(visit.visit.ramp_ns);
    layer.map(|entry| entry.queue_ms as f64 * 1e6).sum::<f64>() / counted as f64
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Which layer takes the requests that are added in flight.
///
/// * `cells`: of one group.
///
/// For each block size the cells of fewest and of most in flight are compared; growths add up
/// over the block sizes. Being served is not waiting: what a higher rate alone has in a layer, each
/// request as long there as with the fewest in flight, is no growth. With one number in flight only,
/// what is in a layer is taken instead of growth.
pub fn where_is_the_queue(cells: &[QueueCell]) -> QueueVerdict {
    let apart = |cell: &QueueCell| (cell.seen / cell.in_flight.max(1) as f64 - 1.0).abs();
    let mut off: Vec<&QueueCell> =
        cells.iter().filter(|cell| !cell.paced && apart(cell) > AGREES).collect();
    off.sort_by(|a, b| apart(b).total_cmp(&apart(a)));
    let off_by_ends = !off.is_empty() && off.iter().all(|cell| apart(cell) <= cell.ends);
    let off = off.iter().map(|c| (c.block_bytes, c.in_flight, c.seen)).collect();
    let counted: Vec<&QueueCell> = cells.iter().filter(|cell| !cell.layers.is_empty()).collect();
    let mut verdict = QueueVerdict {
        off,
        off_by_ends,
        cells: counted.iter().map(|cell| (*cell).clone()).collect(),
        ..QueueVerdict::default()
    };
    let blocks: BTreeSet<u64> = counted.iter().map(|cell| cell.block_bytes).collect();
    let mut above = 0.0;
    let mut layers: BTreeMap<u32, (f64, Vec<String>)> = BTreeMap::new();
    let (mut added, mut in_all) = (0.0, 0.0);
    for block in blocks {
        let of_block = || counted.iter().filter(|cell| cell.block_bytes == block);
        let few = of_block().min_by_key(|cell| cell.in_flight);
        let most = of_block().max_by_key(|cell| cell.in_flight);
        let (Some(few), Some(most)) = (few, most) else { continue };
        if most.in_flight <= 1 {
            // One alone is served, and waits nowhere.
            continue;
        }
        let alone = few.in_flight == most.in_flight;
        let faster = most.rate / few.rate;
        let faster = if faster.is_finite() && faster > 0.0 { faster } else { 1.0 };
        let base = |value: f64| if alone { 0.0 } else { value * faster };
        in_all += most.seen;
        above += most.above - base(few.above);
        added += most.seen - base(few.seen);
        for layer in &most.layers {
            let before = few.layers.iter().find(|l| l.depth == layer.depth);
            let sum = layers.entry(layer.depth).or_insert((0.0, layer.devices.clone()));
            sum.0 += layer.own - base(before.map_or(0.0, |l| l.own));
        }
        verdict.compared = Some((few.in_flight, most.in_flight));
    }
    if added.is_nan() || added <= 0.5 || added < WAITS * in_all {
        return verdict;
    }
    let deepest = layers.keys().next_back().copied();
    let mut places = vec![(above, Place::Above)];
    for (depth, (sum, devices)) in layers {
        let has_members = Some(depth) != deepest;
        places.push((sum, Place::Devices { depth, devices, has_members }));
    }
    if let Some((sum, place)) = places.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        verdict.share = sum / added;
        let found = verdict.share >= HOLDS;
        verdict.open_loop = found && place == Place::Above && counted.iter().any(|cell| cell.open);
        verdict.place = (found && !verdict.open_loop).then_some(place);
    }
    verdict
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_visits_explain_what_does_not_add_up_and_pauses_that_were_asked_for_need_no_word() {
        let short = QueueCell { ends: 0.4, ..cell(40, 33.7, &[]) };
        let paced = QueueCell { paced: true, ..cell(40, 3.0, &[]) };
        let verdict = where_is_the_queue(&[short.clone(), paced]);
        assert_eq!(
            (verdict.off.as_slice(), verdict.off_by_ends),
            ([(4096, 40, 33.7)].as_slice(), true)
        );
        let verdict = where_is_the_queue(&[short, cell(40, 20.0, &[])]);
        assert_eq!((verdict.off[0], verdict.off_by_ends), ((4096, 40, 20.0), false));
    }

    fn cell(in_flight: u64, above: f64, own: &[f64]) -> QueueCell {
        let layer = |depth: usize| LayerQueue {
            depth: depth as u32,
            devices: vec![["md0", "sda"][depth].to_owned()],
            within: own[depth..].iter().sum(),
            own: own[depth],
        };
        QueueCell {
            block_bytes: 4096,
            in_flight,
            seen: above + own.iter().sum::<f64>(),
            rate: 1000.0,
            above,
            ends: 0.0,
            paced: false,
            open: false,
            layers: (0..own.len()).map(layer).collect(),
        }
    }

    #[test]
    fn the_layer_that_grows_has_the_queue() {
        for (most, wanted) in [
            (cell(40, 37.0, &[1.0, 2.0]), Some(0)),
            (cell(40, 1.0, &[38.0, 1.0]), Some(1)),
            (cell(40, 1.0, &[1.0, 38.0]), Some(2)),
            (cell(40, 14.0, &[13.0, 13.0]), None),
        ] {
            let verdict = where_is_the_queue(&[cell(1, 0.2, &[0.3, 0.5]), most]);
            let place = verdict.place.map(|place| match place {
                Place::Above => 0,
                Place::Devices { depth, has_members, .. } => {
                    assert_eq!(has_members, depth == 0);
                    depth + 1
                }
            });
            assert_eq!(place, wanted);
            assert!(verdict.off.is_empty());
        }
    }

    #[test]
    fn what_waits_for_its_turn_in_an_open_loop_is_not_told_as_a_queue_of_the_host() {
        let open = QueueCell { open: true, ..cell(40, 38.0, &[1.0, 1.0]) };
        let verdict = where_is_the_queue(std::slice::from_ref(&open));
        assert_eq!((verdict.place, verdict.open_loop), (None, true));
        // What a device counted is in the device, however the requests were planned.
        let at_devices = QueueCell { open: true, ..cell(40, 1.0, &[1.0, 38.0]) };
        let verdict = where_is_the_queue(&[at_devices]);
        assert!(matches!(verdict.place, Some(Place::Devices { depth: 1, .. })), "{verdict:?}");
        assert!(!verdict.open_loop);
    }

    #[test]
    fn being_served_is_not_waiting() {
        // 80 us throughout: with 32 in flight 32 are served at a time, and none waits.
        let at = |in_flight: u64, rate: f64| QueueCell {
            rate,
            ..cell(in_flight, 0.0, &[in_flight as f64])
        };
        let served = where_is_the_queue(&[at(1, 12_500.0), at(8, 99_900.0), at(32, 400_000.0)]);
        assert_eq!(served.place, None, "{served:?}");
        // The same where no more than 100 K are taken: three quarters wait.
        let queued = where_is_the_queue(&[at(1, 12_500.0), at(32, 100_000.0)]);
        assert!(queued.place.is_some() && (queued.share - 1.0).abs() < 1e-9, "{queued:?}");
    }

    #[test]
    fn one_request_alone_is_no_queue() {
        let verdict = where_is_the_queue(&[cell(1, 0.1, &[0.2, 0.7])]);
        assert_eq!((verdict.place, verdict.share, verdict.compared), (None, 0.0, None));
        assert_eq!(verdict.cells.len(), 1);
        assert!(where_is_the_queue(&[cell(8, 0.5, &[0.5, 7.0])]).place.is_some());
    }

    #[test]
    fn without_counters_nothing_is_said_but_what_does_not_add_up() {
        let verdict = where_is_the_queue(&[cell(1, 1.0, &[]), cell(40, 30.0, &[])]);
        assert_eq!(verdict.place, None);
        assert_eq!(verdict.off, [(4096, 40, 30.0)]);
        assert_eq!(where_is_the_queue(&[]), QueueVerdict::default());
    }
}
