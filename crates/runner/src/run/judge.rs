//! What a visit means for the run, and doubts that only this level can have.

use device::Errno;
use record::{VisitEnd, VisitRecord, Warning};
use suite::model::Cell;

use super::{Next, Running, ends_early};

/// So many failed visits in a row end a run: nothing better is to be expected.
const FAILURES_IN_A_ROW: u32 = 5;

/// A share of cached pages that says something.
const CACHED: f64 = 0.05;

impl Running<'_> {
    /// What the visit means for the run; adds doubts that only this level can have.
    pub(super) fn judge(&mut self, cell: &Cell, record: &mut VisitRecord) -> Next {
        self.doubt_direct(cell, record);
        let code = |code: &str| record.warnings.iter().any(|w| w.code == code);
        if code("verify-mismatch") {
            self.outcome.mismatches = true;
        }
        let gone = if code("device-failed") {
            Some("the device failed".to_owned())
        } else if code("target-gone") {
            Some("what is measured has no name any more, and others cannot see it".to_owned())
        } else if let Some(errno) = lost_device(record) {
            Some(format!("{errno} leaves nothing to measure"))
        } else {
            // A twin whose thread never came back is lost.
            (!self.can_go_on()).then(|| "the twin did not come back from its visit".to_owned())
        };
        match record.end {
            VisitEnd::Complete => self.in_a_row = 0,
            VisitEnd::Interrupted => return Next::Interrupted,
            VisitEnd::Hanging => {
                self.outcome.hanging_visits += 1;
                self.rig.hangs();
                self.in_a_row += 1;
            }
            VisitEnd::Failed => {
                self.outcome.failed_visits += 1;
                self.in_a_row += 1;
            }
        }
        if self.interrupt.stops() {
            return Next::Interrupted;
        }
        match gone {
            Some(why) => ends_early(format!("the run ends here: {why}")),
            None if self.in_a_row >= FAILURES_IN_A_ROW => {
                ends_early(format!("the run ends here: {FAILURES_IN_A_ROW} visits in a row failed"))
            }
            None => Next::On,
        }
    }

    fn can_go_on(&self) -> bool {
        self.rig.is_whole()
    }

    /// Direct I/O is a request: says so where it was not granted, or granted and not done.
    fn doubt_direct(&self, cell: &Cell, record: &mut VisitRecord) {
        if !self.rig.has_page_cache() {
            return;
        }
        let mut doubts = Vec::new();
        for (plan, stream) in cell.streams.iter().zip(&record.streams) {
            // Workers that are all stuck in the kernel have not said what they were given.
            let known = !stream.backend.name.is_empty();
            if known && plan.direct && !stream.backend.direct {
                let why = stream.backend.reasons.join("; ");
                doubts.push(Warning::new(
                    "buffered-fallback",
                    format!(
                        "stream `{}` asked for direct I/O and went through the page cache: {why}",
                        plan.name
                    ),
                ));
            }
        }
        let all_direct = record.streams.iter().all(|s| s.backend.direct);
        if all_direct && let (Some(before), Some(after)) = self.rig.cached_shares() {
            // Pages that were there before mean nothing if the device moved what was asked: our own
            // look at a killed run's file leaves some.
            let suspicious = after - before > CACHED || (after > CACHED && !device_moved(record));
            doubts.extend(suspicious.then(|| {
                Warning::new(
                    "buffered-fallback",
                    format!(
                        "direct I/O was accepted, yet {:.0} % of the file's first 64 MiB are in \
                         the page cache: the file system may have gone through it",
                        after * 100.0
                    ),
                )
            }));
        }
        record.warnings.extend(doubts);
    }
}

/// Errors after which the device is not coming back, or no write will succeed.
fn lost_device(record: &VisitRecord) -> Option<Errno> {
    let lost = [Errno::ENODEV, Errno::ENXIO, Errno::ENOSPC, Errno::EROFS];
    let errors = record.streams.iter().flat_map(|s| &s.ops).flat_map(|op| &op.errors);
    errors.map(|(code, _)| Errno(*code)).find(|errno| lost.contains(errno))
}

/// Whether the devices right below moved at least half of what was asked; not where none is known.
fn device_moved(record: &VisitRecord) -> bool {
    let asked: u64 = record.streams.iter().flat_map(|s| &s.ops).map(|op| op.bytes).sum();
    let top = record.ledger.iter().filter(|entry| entry.depth == 0);
    let moved: u64 = top.map(|entry| entry.read_bytes + entry.write_bytes).sum();
    moved > 0 && moved >= asked / 2
}
