//! Where requests wait, by Little's law at every layer: requests in a layer are its rate times
//! the time spent in it, whatever the layer is.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use suite::model::{Pacing, Stream};
use units::Nanos;

use crate::ends::{SHARE_MIN, ends, latencies_ns, seen as in_flight, slots};
use crate::gap;
use crate::view::{CellView, View, VisitView};

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
    /// Requests in flight on average over all the time that the counters of the layers run over: the
    /// ramp, the load, and the end in which what is in flight runs dry.
    #[serde(skip)]
    pub held: f64,
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

/// How much of the waiting that was added is in one place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceShare {
    /// Where.
    pub place: Place,
    /// Of the added waiting.
    pub share: f64,
}

/// Where requests of one block size wait.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BlockQueue {
    /// Bytes per request.
    pub block_bytes: u64,
    /// Places with a tenth of the added waiting and more, the largest first.
    pub shares: Vec<PlaceShare>,
}

impl BlockQueue {
    /// The place that has most of it, if one has.
    pub fn place(&self) -> Option<&Place> {
        self.shares.first().filter(|one| one.share >= HOLDS).map(|one| &one.place)
    }
}

/// Where the queue is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct QueueVerdict {
    /// The layer in which most of the waiting is that was added with what was added in flight;
    /// `None` if none has it, nothing waits, or nobody counted.
    pub place: Option<Place>,
    /// Where no single layer has it: what waits where, by block size. Two limits in two layers look
    /// like this, as of requests in one and of bytes in another.
    pub by_block: Vec<BlockQueue>,
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
    /// Of a run on the write-optimising layer, where the queue is above the devices: blocks that its
    /// collector copied for each that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied: Option<f64>,
}

/// What waited where, by the groups of [`gap::of_view`].
pub fn queues(view: &View<'_>) -> BTreeMap<String, Vec<QueueCell>> {
    let mut groups: BTreeMap<String, Vec<QueueCell>> = BTreeMap::new();
    for cell in view.grid() {
        let (Some(load), Some(group)) = (cell.load(), gap::group_of(cell)) else { continue };
        // Sessions wait for each other's flush, which is no request of theirs in any layer.
        if load.op == "commit" {
            continue;
        }
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
        let pacing = || planned(view, cell);
        let open = pacing().any(|stream| matches!(stream.pacing, Pacing::Open { .. }));
        // What waits for its turn is in no layer. Only while all places are taken does anything.
        let most = if open { load.in_flight as f64 } else { f64::INFINITY };
        let seen = seen.min(most);
        let held = middle(cell.visits.iter().map(|visit| held(visit, slots(cell)))).min(most);
        groups.entry(group).or_default().push(QueueCell {
            block_bytes: load.block_bytes,
            in_flight: load.in_flight,
            seen,
            rate: middle(cell.visits.iter().map(|visit| visit.requests_per_second)),
            held,
            above: (held - top).max(0.0),
            ends: ends(cell).map_or(0.0, |found| found.share),
            paced: pacing().any(sets_its_rate),
            open,
            layers,
        });
    }
    groups
}

/// Blocks that the collector of the write-optimising layer copied for each that was written, if the run was
/// on one.
pub fn copied(view: &View<'_>) -> Option<f64> {
    let sum = |name| {
        let counters = view.run.visits.iter().flat_map(|visit| &visit.counters);
        counters.filter(|one| one.name == name).map(|one| one.value).sum::<u64>() as f64
    };
    let (written, copied) = (sum("blocks written"), sum("blocks copied"));
    (view.run.header.target.is_layer() && written > 0.0).then(|| copied / written)
}

/// The streams of a row as the suite has them.
fn planned<'v>(view: &'v View<'_>, row: &CellView<'_>) -> impl Iterator<Item = &'v Stream> {
    let cell = view.suite().and_then(|suite| suite.cells().nth(row.cell.index as usize));
    cell.into_iter().flat_map(|cell| &cell.streams)
}

/// Whether the suite asks for pauses or a rate in any stream of a row.
pub fn is_paced(view: &View<'_>, row: &CellView<'_>) -> bool {
    planned(view, row).filter(|stream| row.has_stream(&stream.name)).any(sets_its_rate)
}

/// Whether the suite itself asks for pauses or a rate.
fn sets_its_rate(stream: &Stream) -> bool {
    let free = matches!(stream.pacing, Pacing::Closed { think, .. } if think == Nanos::ZERO);
    !free || stream.duty.is_some()
}

fn waiting(visit: &VisitView<'_>, depth: u32) -> f64 {
    let layer = visit.visit.ledger.iter().filter(|entry| entry.depth == depth);
    layer.map(|entry| entry.queue_ms as f64 * 1e6).sum::<f64>() / counted_ns(visit)
}

/// The time that the counters run over: from the start of the ramp until the last request is done.
fn counted_ns(visit: &VisitView<'_>) -> f64 {
    visit.visit.elapsed_ns.saturating_add(visit.visit.ramp_ns) as f64
}

/// Requests in flight over the same time as the counters. A mean over the load alone is higher, since
/// fewer are in flight while a visit runs dry: the difference is no waiting in any layer.
fn held(visit: &VisitView<'_>, slots: f64) -> f64 {
    let measured = latencies_ns(visit);
    let in_flight = measured / visit.visit.rated_ns() as f64;
    // Requests that were done in the ramp are in no sum, but as many were in flight as later.
    let ramped = in_flight.min(if slots > 0.0 { slots } else { in_flight });
    (measured + ramped * visit.visit.ramp_ns as f64) / counted_ns(visit)
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
    // Where visits have few requests for so many in flight, most of what counters see is how a visit
    // fills up and runs dry.
    let enough: Vec<&QueueCell> = counted.into_iter().filter(|c| c.ends < SHARE_MIN).collect();
    let blocks: BTreeSet<u64> = enough.iter().map(|cell| cell.block_bytes).collect();
    let growths: Vec<Growth> =
        blocks.into_iter().filter_map(|block| Growth::of(block, &enough)).collect();
    let Some(all) = Growth::sum(&growths) else { return verdict };
    verdict.compared = Some(all.compared);
    let is_open = enough.iter().any(|cell| cell.open);
    if let Some((share, place)) = all.waits().then(|| all.most()).flatten() {
        verdict.share = share;
        let found = share >= HOLDS;
        verdict.open_loop = found && place == Place::Above && is_open;
        verdict.place = (found && !verdict.open_loop).then_some(place);
    }
    if is_open {
        return verdict;
    }
    let by_block: Vec<BlockQueue> =
        growths.iter().filter(|one| one.waits()).map(Growth::shares).collect();
    // One place for all, unless some block size has another one of its own.
    let elsewhere = by_block
        .iter()
        .filter_map(BlockQueue::place)
        .any(|place| verdict.place.as_ref() != Some(place));
    if verdict.place.is_none() || elsewhere {
        verdict.place = None;
        verdict.by_block = by_block;
    }
    verdict
}

/// What was added in flight at one block size, and how much of it waits where.
struct Growth {
    block_bytes: u64,
    compared: (u64, u64),
    in_all: f64,
    added: f64,
    /// By distance from the target; `None` is above all of them.
    places: BTreeMap<Option<u32>, (f64, Vec<String>)>,
}

impl Growth {
    /// `None` where one request alone is all there was: it is served, and waits nowhere.
    fn of(block_bytes: u64, cells: &[&QueueCell]) -> Option<Self> {
        let of_block = || cells.iter().filter(|cell| cell.block_bytes == block_bytes);
        let few = of_block().min_by_key(|cell| cell.in_flight)?;
        let most = of_block().max_by_key(|cell| cell.in_flight)?;
        if most.in_flight <= 1 {
            return None;
        }
        let alone = few.in_flight == most.in_flight;
        let faster = most.rate / few.rate;
        let faster = if faster.is_finite() && faster > 0.0 { faster } else { 1.0 };
        let base = |value: f64| if alone { 0.0 } else { value * faster };
        let above = most.above - base(few.above);
        let mut places = BTreeMap::from([(None, (above, Vec::new()))]);
        for layer in &most.layers {
            let before = few.layers.iter().find(|l| l.depth == layer.depth);
            let own = layer.own - base(before.map_or(0.0, |l| l.own));
            places.insert(Some(layer.depth), (own, layer.devices.clone()));
        }
        Some(Self {
            block_bytes,
            compared: (few.in_flight, most.in_flight),
            in_all: most.held,
            added: most.held - base(few.held),
            places,
        })
    }

    /// Over all block sizes.
    fn sum(growths: &[Self]) -> Option<Self> {
        let last = growths.last()?;
        let mut all = Self { in_all: 0.0, added: 0.0, places: BTreeMap::new(), ..*last };
        for one in growths {
            all.in_all += one.in_all;
            all.added += one.added;
            for (depth, (own, devices)) in &one.places {
                all.places.entry(*depth).or_insert((0.0, devices.clone())).0 += own;
            }
        }
        Some(all)
    }

    /// Whether anything waits that is worth a word.
    fn waits(&self) -> bool {
        self.added > 0.5 && self.added >= WAITS * self.in_all
    }

    fn place(&self, depth: Option<u32>, devices: &[String]) -> Place {
        let Some(depth) = depth else { return Place::Above };
        let has_members = self.places.keys().next_back() != Some(&Some(depth));
        Place::Devices { depth, devices: devices.to_vec(), has_members }
    }

    /// Where most of it is, and its share.
    fn most(&self) -> Option<(f64, Place)> {
        let most = self.places.iter().max_by(|a, b| a.1.0.total_cmp(&b.1.0));
        most.map(|(depth, (own, devices))| (own / self.added, self.place(*depth, devices)))
    }

    /// All places with a share worth a word, the largest first.
    fn shares(&self) -> BlockQueue {
        let mut shares: Vec<PlaceShare> = self
            .places
            .iter()
            .map(|(depth, (own, devices))| PlaceShare {
                place: self.place(*depth, devices),
                share: own / self.added,
            })
            .filter(|one| one.share >= WAITS)
            .collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        BlockQueue { block_bytes: self.block_bytes, shares }
    }
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
            held: above + own.iter().sum::<f64>(),
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
    fn two_limits_in_two_layers_are_both_named() {
        // Small requests wait in the array, large ones at its member.
        let of = |block_bytes: u64, in_flight, own: &[f64]| QueueCell {
            block_bytes,
            ..cell(in_flight, 0.2, own)
        };
        let verdict = where_is_the_queue(&[
            of(4096, 1, &[0.3, 0.5]),
            of(4096, 40, &[37.0, 2.0]),
            of(1 << 20, 1, &[0.1, 0.7]),
            of(1 << 20, 40, &[1.0, 38.0]),
        ]);
        assert_eq!(verdict.place, None);
        let depths: Vec<Option<u32>> = verdict
            .by_block
            .iter()
            .map(|one| match one.place() {
                Some(Place::Devices { depth, .. }) => Some(*depth),
                _ => None,
            })
            .collect();
        assert_eq!(depths, [Some(0), Some(1)], "{verdict:?}");
        // Both in one block size: neither has most, and both are named.
        let verdict =
            where_is_the_queue(&[cell(1, 0.2, &[0.3, 0.5]), cell(40, 0.5, &[21.0, 18.5])]);
        assert_eq!((verdict.place.as_ref(), verdict.by_block.len()), (None, 1));
        assert_eq!(verdict.by_block[0].shares.len(), 2, "{verdict:?}");
    }

    #[test]
    fn visits_with_few_requests_for_so_many_in_flight_decide_no_layer() {
        let few =
            |in_flight, above, own: &[f64]| QueueCell { ends: 1.0, ..cell(in_flight, above, own) };
        let verdict = where_is_the_queue(&[few(1, 0.2, &[0.8]), few(40, 32.0, &[8.0])]);
        assert_eq!((verdict.place, verdict.by_block.len()), (None, 0));
        assert_eq!(verdict.cells.len(), 2);
    }

    #[test]
    fn the_time_in_which_a_visit_runs_dry_is_no_waiting_above_the_device() {
        use record::{LedgerEntry, TargetKind};
        // 40 in flight for 10 s and then a second with half of them: 430 request seconds in 11 s, all of
        // them in the device, of which a mean over the 10 s makes 43.
        let visit = |order: u32| {
            let mut visit = crate::freeze::tests::visit(order, "read", &[]);
            (visit.ramp_ns, visit.elapsed_ns) = (0, 11_000_000_000);
            visit.load_ns = Some(10_000_000_000);
            let op = &mut visit.streams[0].ops[0];
            (op.requests, op.latency_ns_sum) = (100_000, 430_000_000_000);
            let entry = LedgerEntry { device: "sda".into(), queue_ms: 430_000, ..<_>::default() };
            visit.ledger = vec![entry];
            visit
        };
        let mut run = crate::freeze::tests::run(TargetKind::File, vec![visit(0), visit(1)]);
        run.cells[0].streams[0].queue_depth = 40;
        let groups = queues(&View::new(&run));
        let cell = &groups.values().next().unwrap()[0];
        assert!((cell.held - 430.0 / 11.0).abs() < 1e-6, "{cell:?}");
        assert!(cell.above < 1e-6, "{cell:?}");
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
