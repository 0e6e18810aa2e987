//! The layers of a simulated device as a ledger: what passed each, and how long it was there.

use array::{Component, ComponentUse};
use device::model::{Counters, StageCounters};
use device::{Model, Op};
use record::LedgerEntry;

/// What a model counted so far.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    whole: Counters,
    stages: Vec<StageCounters>,
}

impl Snapshot {
    pub(crate) fn of(model: &Model) -> Self {
        Self { whole: model.counters(), stages: model.stages() }
    }

    /// * `whole`: what came back.
    pub(crate) fn of_array(whole: Counters, usage: &[ComponentUse]) -> Self {
        let stages = usage.iter().map(|part| StageCounters {
            name: name(part.component).to_owned(),
            requests: part.requests,
            read: part.read,
            written: part.written,
            weighted_time: part.time,
            in_flight: 0,
        });
        Self { whole, stages: stages.collect() }
    }

    /// An entry for each layer from the host down. Bytes are those that reached it: what a cache
    /// above answered is not in it. Flushes and discards are the last layer's.
    pub(crate) fn since(&self, before: &Self) -> Vec<LedgerEntry> {
        let whole = |op| {
            let (now, then) = (self.whole.of(op), before.whole.of(op));
            let bytes = now.bytes.get().saturating_sub(then.bytes.get());
            (now.requests.saturating_sub(then.requests), bytes)
        };
        let (reads, writes) = (whole(Op::Read).0, whole(Op::Write).0);
        let mut entries: Vec<LedgerEntry> = (0u32..)
            .zip(self.stages.iter().zip(&before.stages))
            .map(|(depth, (now, then))| {
                let passed = now.requests.saturating_sub(then.requests);
                // A layer counts requests of all kinds together: shared out as they were made.
                let data = passed.min(reads.saturating_add(writes));
                let share = reads as f64 / (reads as f64 + writes as f64).max(1.0);
                let read = (data as f64 * share).round() as u64;
                let spent = now.weighted_time.saturating_sub(then.weighted_time);
                LedgerEntry {
                    device: now.name.clone(),
                    depth,
                    reads: read,
                    read_bytes: now.read.get().saturating_sub(then.read.get()),
                    writes: data.saturating_sub(read),
                    write_bytes: now.written.get().saturating_sub(then.written.get()),
                    queue_ms: spent.get() / 1_000_000,
                    in_flight_end: u64::from(now.in_flight),
                    ..LedgerEntry::default()
                }
            })
            .collect();
        // As the kernel counts: a request that waits in a layer waits in those above it, too.
        for above in (1..entries.len()).rev() {
            let below = entries[above].queue_ms;
            let entry = &mut entries[above - 1];
            entry.queue_ms = entry.queue_ms.saturating_add(below);
        }
        if let Some(last) = entries.last_mut() {
            last.flushes = whole(Op::Fsync).0 + whole(Op::Fdatasync).0;
            (last.discards, last.discard_bytes) = whole(Op::Trim);
        }
        entries
    }
}

const fn name(component: Component) -> &'static str {
    match component {
        Component::Host => "host",
        Component::FileLock => "file lock",
        Component::Link => "link",
        Component::Controller => "controller",
        Component::Drives => "drives",
    }
}
