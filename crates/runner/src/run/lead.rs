//! What comes before visits and is no visit: passes over the files before a phase, files that
//! begin empty, a stream that is not counted.

use device::Errno;
use plan::PlannedVisit;
use record::{Purpose, VisitEnd, VisitRecord, Warning};
use suite::model::{Cell, Stream};

use super::{Next, Running, own_seed};
use crate::RunError;
use crate::events::Event;
use crate::visit::play;

/// Keeps the randomness of what comes before a visit apart from the visit's.
const BEFORE: u64 = 7;

/// What says that a discard is not to be had, rather than that something is broken: EPERM, EACCES,
/// EINVAL, ENOTTY, ENOSYS, EOPNOTSUPP.
const NO_DISCARD: [Errno; 6] =
    [Errno(1), Errno(13), Errno::EINVAL, Errno(25), Errno(38), Errno::EOPNOTSUPP];

impl Running<'_> {
    /// Makes a pass over the files; how the run ended if it did.
    pub(super) fn fill_by(&mut self, pass: u32) -> Result<Option<Next>, RunError> {
        let cell = self.suite.cell_count() as u32 + pass;
        let (_, next) = self.visit(&PlannedVisit {
            order: self.visits,
            cell,
            repeat: 0,
            purpose: Purpose::Measure,
            seed: stats::random::derive_seed(self.seed, &[9, u64::from(cell)]),
            ramp: None,
            time_permille: None,
        })?;
        Ok(match next {
            Next::On if self.in_a_row == 0 => None,
            Next::Interrupted => Some(Next::Interrupted),
            Next::On | Next::Failed(_) => Some(not_filled()),
        })
    }

    /// Makes the passes that a phase wants before its first visit; how the run ended if it did.
    pub(super) fn prepare_phase(&mut self, phase: Option<usize>) -> Result<Option<Next>, RunError> {
        while let Some(place) = self.of_phases.iter().position(|(of, _)| Some(*of) == phase) {
            let (_, pass) = self.of_phases.remove(place);
            if let Some(next) = self.fill_by(pass)? {
                return Ok(Some(next));
            }
            if self.interrupt.stops() {
                return Ok(Some(Next::Interrupted));
            }
        }
        Ok(None)
    }

    /// Lets the files begin empty where the cell's streams want that.
    pub(super) fn begin_files(&mut self, cell: u32) -> Result<(), RunError> {
        let how = self.played.get(cell as usize).map(Cell::start_file).unwrap_or_default();
        self.rig.begin_anew(how, self.suite.files.size)
    }

    /// A pass that trims where that cannot be done is over with a warning: what follows is as the
    /// suite wants it but for that.
    pub(super) fn forgive_trim(&mut self, record: &mut VisitRecord) {
        let Some(pass) = (record.cell as usize).checked_sub(self.suite.cell_count()) else {
            return;
        };
        if record.end != VisitEnd::Failed || !self.trims.contains(&(pass as u32)) {
            return;
        }
        let Some(first) = no_discard(record) else { return };
        record.end = VisitEnd::Complete;
        let what = &self.cells[record.cell as usize].phase;
        let text = format!(
            "{what}: nothing could be given back (trim): {first}; the target begins with what was \
             on it"
        );
        self.warn(Warning::new("not-trimmed", text));
    }

    /// Plays what comes before a visit. What went wrong is a warning of the visit; `None` if a twin
    /// was lost.
    pub(super) fn play_before(
        &mut self,
        before: &Stream,
        seed: u64,
    ) -> Result<Option<Vec<Warning>>, RunError> {
        self.watcher.event(Event::Step("playing what comes before the visit"));
        let cell = Cell { coordinates: Vec::new(), streams: vec![before.clone()], before: None };
        let seed = stats::random::derive_seed(seed, &[BEFORE]);
        let Some(stage) = self.rig.stage(&cell, own_seed(seed, self.sides.as_ref()))? else {
            return Ok(None);
        };
        let visit = self.visit_of(&cell, seed);
        let real = stage.simulated_now().is_none();
        let order = self.order(&visit, &cell, real);
        let mut played = play(&order, stage, || {}, |_| {})?;
        self.rig.give_back(std::mem::take(&mut played.seats));
        let found = meter::merge(
            &engine::loads(&visit),
            self.rig.operations(),
            std::mem::take(&mut played.results),
        );
        let hangs = found.hanging || found.left || !played.stuck.is_empty();
        if hangs {
            self.rig.hangs();
        }
        let failed = found.failed || played.device_error.is_some();
        let why = found.warnings.first().map(|warning| warning.text.clone());
        let why = played.device_error.map(|error| error.to_string()).or(why);
        let text = format!(
            "what is played before the visit did not come to its end: {}",
            why.unwrap_or_else(|| "requests did not come back".to_owned())
        );
        Ok(Some(if hangs || failed {
            vec![Warning::new("before-failed", text)]
        } else {
            Vec::new()
        }))
    }
}

fn not_filled() -> Next {
    let why = "the files could not be written to the end: nothing was measured";
    Next::Failed(Warning::new("not-filled", why))
}

/// The error with which discards were refused, if nothing else went wrong.
fn no_discard(record: &VisitRecord) -> Option<Errno> {
    let ops = record.streams.iter().flat_map(|stream| &stream.ops);
    let mut errors = ops.flat_map(|op| &op.errors).map(|(code, _)| Errno(*code));
    let first = errors.next()?;
    let refused = |errno: &Errno| NO_DISCARD.contains(errno);
    (refused(&first) && errors.all(|errno| refused(&errno))).then_some(first)
}

#[cfg(test)]
mod tests {
    use record::{BackendRecord, Bitmap, OpRecord, Purpose, Series, StreamRecord};
    use stats::LatencyHistogram;

    use super::*;

    fn trim(errors: &[(i32, u64)]) -> VisitRecord {
        let op = OpRecord {
            op: "trim".to_owned(),
            requests: 0,
            bytes: 0,
            errors: errors.to_vec(),
            short: 0,
            latency: LatencyHistogram::new(),
            latency_ns_min: 0,
            latency_ns_max: 0,
            latency_ns_sum: 0,
            series: Series { interval_ns: 0, rows: Vec::new() },
            slow: Vec::new(),
            slow_dropped: 0,
            late_requests: 0,
            late_bytes: 0,
            reported: None,
        };
        let stream = StreamRecord {
            name: "trim".to_owned(),
            backend: BackendRecord::default(),
            ops: vec![op],
            workers: Vec::new(),
            ramp_requests: 0,
            backlog: 0,
        };
        VisitRecord {
            cell: 0,
            repeat: 0,
            order: 0,
            started_unix_ns: 0,
            elapsed_ns: 1,
            load_ns: None,
            end: VisitEnd::Failed,
            purpose: Purpose::Measure,
            ramp_ns: 0,
            waited_ns: 0,
            quiet: None,
            resident_before: None,
            resident_after: None,
            streams: vec![stream],
            completions: Bitmap::default(),
            counters: Vec::new(),
            ledger: Vec::new(),
            host_stalls: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_discard_that_is_not_to_be_had_is_told_from_one_that_broke() {
        assert_eq!(no_discard(&trim(&[(95, 1)])), Some(Errno::EOPNOTSUPP));
        assert_eq!(no_discard(&trim(&[(22, 1), (95, 3)])), Some(Errno::EINVAL));
        assert_eq!(no_discard(&trim(&[(5, 1)])), None, "EIO is a fault");
        assert_eq!(no_discard(&trim(&[(95, 1), (19, 1)])), None, "and so is ENODEV beside it");
        assert_eq!(no_discard(&trim(&[])), None);
    }
}
