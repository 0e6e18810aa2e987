//! Whose a gap was: the host's, the device's, or of what lies between.

use record::{Gap, TargetKind, VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use units::Nanos;

use super::detect::{DeviceGap, overlap};
use crate::words;

/// Whose fault a gap was, as far as the evidence goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The measuring process itself did not run: nothing is known of the device.
    Host,
    /// The requests were with the block device: its driver, its link, the drive.
    Device,
    /// The requests had not reached the block device: file system, page cache, or a layer
    /// without counters.
    AboveBlockLayer,
    /// Nothing tells.
    Unknown,
}

/// The block layer's share of a cell's latency while nothing is held up: its queue time by the
/// time all requests took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Usual(pub Option<f64>);

impl Usual {
    /// From the cell's visits without gaps.
    pub(super) fn of<'a>(quiet: impl Iterator<Item = &'a VisitRecord>) -> Self {
        let (mut queue, mut latency) = (0.0, 0.0);
        for visit in quiet {
            if let Some(below) = queue_ns(visit) {
                queue += below;
                latency += latency_ns(visit);
            }
        }
        Self((latency > 0.0).then(|| queue / latency))
    }
}

/// What the record says of a gap: whose it was, and by what evidence.
pub(super) fn source(
    visit: &VisitRecord,
    gap: DeviceGap,
    all: &[DeviceGap],
    host: Host,
    usual: Usual,
) -> (Source, String) {
    let stalled = stalled_ns(visit, gap);
    if stalled >= gap.length_ns / 2 {
        let text =
            format!("the measuring process itself did not run for {} of it", Nanos::new(stalled));
        return (Source::Host, text);
    }
    if host.kind == TargetKind::Twin {
        return of_twin(visit);
    }
    let ran = host.ran(visit);
    let Some(entry) = visit.ledger.iter().find(|entry| entry.depth == 0) else {
        let text = format!("{ran}; no block device below the target has counters");
        return (Source::Unknown, text);
    };
    if visit.end == VisitEnd::Hanging && gap.open_end {
        return match entry.in_flight_end {
            0 => (
                Source::AboveBlockLayer,
                format!("at its end {} had nothing in flight", entry.device),
            ),
            n => (
                Source::Device,
                format!("at its end {} still had {}", entry.device, words::count(n, "request")),
            ),
        };
    }
    by_queue_time(visit, all, usual, (&entry.device, ran))
}

/// A twin on a virtual clock stands still only where its model does. One in real time has
/// nothing that could: what held up its workers is the machine that they run on.
fn of_twin(visit: &VisitRecord) -> (Source, String) {
    let mut streams = visit.streams.iter();
    if streams.any(|stream| matches!(stream.backend.name.as_str(), "null" | "memory")) {
        let text = "the target is simulated in real time and has nothing that could stand still: \
                    its workers had no processor";
        return (Source::Host, text.to_owned());
    }
    (Source::Device, "the target is a simulated device on a clock of its own".to_owned())
}

/// Where the measuring process ran.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    /// What it measured.
    pub kind: TargetKind,
    /// Processors it could use; 0 if nobody knows.
    pub processors: u32,
}

/// Workers that used more of all processors than this may have waited for one.
const BUSY: f64 = 0.8;

const BUSY_TEXT: &str = "the processors were busy, so the workers may have had none";

impl Host {
    /// What is known of the host in a gap in which the watching thread was woken in time. Where
    /// the workers used all processors that says nothing of theirs.
    fn ran(self, visit: &VisitRecord) -> &'static str {
        let workers = visit.streams.iter().flat_map(|stream| &stream.workers);
        let cpu = workers.flat_map(|worker| [worker.cpu_user_ns, worker.cpu_system_ns]);
        let used: f64 = cpu.flatten().map(|ns| ns as f64).sum();
        let all = f64::from(self.processors) * visit.elapsed_ns as f64;
        if all > 0.0 && used >= BUSY * all { BUSY_TEXT } else { "the host ran" }
    }
}

/// Requests that wait in the block device add to its queue time, others do not. So of the time
/// that held-up requests took, the share that the device's queue time has beyond its usual part
/// says where they were.
fn by_queue_time(
    visit: &VisitRecord,
    all: &[DeviceGap],
    usual: Usual,
    (device, ran): (&str, &str),
) -> (Source, String) {
    let unknown = |why: &str| (Source::Unknown, format!("{ran}; {why}"));
    let Some(queue) = queue_ns(visit) else {
        return unknown("the block device's queue time is not known");
    };
    let held = held_ns(visit, all);
    let dropped = visit.streams.iter().flat_map(|s| &s.ops).any(|op| op.slow_dropped > 0);
    if held <= 0.0 || dropped {
        return unknown("the requests it held up are not all listed");
    }
    let rest = (latency_ns(visit) - held).max(0.0);
    let share = |usual: f64| (queue - usual * rest) / held;
    // Without a visit to learn from, the usual part is somewhere between none and all.
    let (low, high) = match usual.0 {
        Some(usual) => (share(usual), share(usual)),
        None => (share(1.05), share(0.0)),
    };
    if low >= 0.6 {
        return (
            Source::Device,
            format!("the held-up requests were in {device}'s queue meanwhile"),
        );
    }
    if high <= 0.3 && ran == BUSY_TEXT {
        return unknown(&format!("{device} did not have the held-up requests"));
    }
    if high <= 0.3 {
        return (
            Source::AboveBlockLayer,
            format!("the host ran, and {device} did not have the held-up requests"),
        );
    }
    unknown(&format!("{device}'s queue time fits both the device and the layers above it"))
}

/// How much of a gap the host itself stood still.
fn stalled_ns(visit: &VisitRecord, gap: DeviceGap) -> u64 {
    let parts = visit.host_stalls.iter().filter_map(|&stall: &Gap| overlap(stall, gap));
    parts.fold(0, |sum, (start, end)| sum.saturating_add(end - start))
}

fn queue_ns(visit: &VisitRecord) -> Option<f64> {
    let entry = visit.ledger.iter().find(|entry| entry.depth == 0)?;
    // A device that does not count has moved requests and no time.
    (entry.queue_ms > 0).then_some(entry.queue_ms as f64 * 1e6)
}

fn latency_ns(visit: &VisitRecord) -> f64 {
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops);
    ops.map(|op| op.latency_ns_sum as f64).sum()
}

/// Time that requests spent in the gaps: of those that came back right after one and had taken
/// about as long.
fn held_ns(visit: &VisitRecord, gaps: &[DeviceGap]) -> f64 {
    const NEAR: u64 = 5_000_000;
    let slow = || visit.streams.iter().flat_map(|s| &s.ops).flat_map(|op| &op.slow);
    let of = |gap: &DeviceGap| -> f64 {
        let held = slow().filter(|request| {
            request.at_ns.abs_diff(gap.end_ns()) <= NEAR
                && request.latency_ns.saturating_add(NEAR) >= gap.length_ns
        });
        held.map(|request| request.latency_ns.min(gap.length_ns) as f64).sum()
    };
    gaps.iter().map(of).sum()
}
