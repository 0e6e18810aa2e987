//! One visit: played, put together, judged, stored.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::{Limits, Visit};
use plan::PlannedVisit;
use record::{BackendRecord, CellRecord, Purpose, StreamPlan, VisitEnd, VisitRecord, Warning};
use suite::PILOT;
use suite::model::{Cell, Operation, Stop};
use units::{Bytes, Nanos};
use uring::BackendReport;

use super::{Next, Running, own_seed, room};
use crate::RunError;
use crate::events::{Event, Tick};
use crate::made::made;
use crate::quiet::Waited;
use crate::visit::{Play, Played, Stage, Standing, Stuck, play};
use crate::watchdog::Watchdog;

impl Running<'_> {
    pub(super) fn visit(&mut self, planned: &PlannedVisit) -> Result<Next, RunError> {
        let index = planned.cell as usize;
        let cell = as_planned(&self.played[index], planned);
        let seed = planned.seed;
        let lost = || Warning::new("twin-lost", "the twin did not come back from its visit");
        let mut doubts = Vec::new();
        if let Some(before) = &cell.before {
            match self.play_before(before, seed)? {
                Some(warnings) => doubts = warnings,
                None => return Ok(Next::Failed(lost())),
            }
            if self.interrupt.stops() {
                return Ok(Next::Interrupted);
            }
        }
        let Some(stage) = self.field.stage(&cell, own_seed(seed, self.sides.as_ref()))? else {
            return Ok(Next::Failed(lost()));
        };
        let visit = self.visit_of(&cell, seed);
        let real = !matches!(stage, Stage::Model(_));
        self.watcher.event(Event::VisitBegins {
            cell: &self.cells[index],
            order: self.visits,
            planned: crate::prepare::planned(&cell),
            bytes: cell.streams.iter().map(|s| s.stop.bytes).sum_options(),
        });
        let mut record = self.play(&visit, &cell, planned, stage, real)?;
        record.warnings.extend(doubts);
        self.forgive_trim(&mut record)?;
        if record.end == VisitEnd::Complete {
            self.field.made_files(&cell, &record);
            record.warnings.extend(self.field.doubts_of_copies(&cell));
        }
        let next = self.judge(&cell, &mut record);
        self.store.add_visit(&self.outcome.run, &record)?;
        self.visits += 1;
        if record.end != VisitEnd::Interrupted {
            let lead = self.leads.get(index).copied().unwrap_or_default();
            self.course.add(&made(&record, lead, self.field.is_twin()));
        }
        if let Some(quiet) = &mut self.quiet {
            quiet.after(&record, cell.streams.iter().any(|stream| stream.modifies()));
        }
        let left = self.course.left();
        let half_width = self.course.half_width(record.cell);
        let cell = &self.cells[index];
        self.watcher.event(Event::VisitEnds { cell, visit: &record, half_width, left });
        self.doubt_pilot(&record)?;
        Ok(next)
    }

    pub(super) fn visit_of(&self, cell: &Cell, seed: u64) -> Arc<Visit> {
        Arc::new(Visit {
            streams: cell.streams.clone(),
            files: self.suite.files.count,
            file_size: self.suite.files.size,
            data: self.suite.files.data,
            seed,
            run_seed: self.seed,
            verify: self.verifier.clone(),
        })
    }

    pub(super) fn limits(&self) -> Limits {
        Limits { hang: self.settings.hang_limit, failures: self.settings.failures }
    }

    fn play(
        &mut self,
        visit: &Arc<Visit>,
        cell: &Cell,
        planned: &PlannedVisit,
        stage: Stage,
        real: bool,
    ) -> Result<VisitRecord, RunError> {
        let order = Play {
            visit: Arc::clone(visit),
            limits: self.limits(),
            cpus: &self.settings.cpus,
            interrupt: self.interrupt,
            planned: cell.longest_duration().filter(|_| real),
            real,
        };
        let watchdog = Watchdog::start();
        let mut started = 0;
        let mut rate = Rate::default();
        let record = &self.cells[planned.cell as usize];
        let watcher = &mut *self.watcher;
        self.field.mark_before(Some(&stage));
        let simulated = self.epoch.zip(stage.simulated_now());
        let simulated = simulated.map(|(epoch, now)| epoch.saturating_add(signed(now)));
        let mut played = play(
            &order,
            stage,
            || started = unix_now(),
            |standing| watcher.event(Event::Tick(rate.tick(record, standing))),
        )?;
        self.field.give_back(played.stage.take());
        let results = std::mem::take(&mut played.results);
        let found = engine::merge(visit, results);
        let (ledger, unknown) = self.field.ledger();
        let (resident_before, resident_after) = self.field.resident();
        // What was waited for is this visit's alone.
        let none = Waited { waited: Nanos::ZERO, quiet: None, busy: None };
        let waited = std::mem::replace(&mut self.waited, none);
        for warning in unknown {
            self.warn(warning)?;
        }
        let host_stalls = if real { watchdog.finish(found.begin) } else { Vec::new() };
        let mut streams = found.streams;
        for (stream, report) in streams.iter_mut().zip(&played.backends) {
            stream.backend = backend(report);
        }
        let mut warnings = found.warnings;
        warnings.extend(played.stuck.iter().map(stuck_warning));
        warnings.extend(
            played
                .device_error
                .as_ref()
                .map(|error| Warning::new("device-failed", error.to_string())),
        );
        let end = end_of(&played, found.hanging, found.failed, self.interrupt.stops());
        if end != VisitEnd::Hanging {
            let mut ops = cell.streams.iter().flat_map(|stream| &stream.mix.classes);
            warnings.extend(self.field.changes(ops.any(|class| class.op == Operation::Trim)));
            self.field.end_anew()?;
        }
        // What was measured during the ramp began earlier on the wall clock too.
        let ramp = cell.streams.iter().map(|s| s.stop.ramp).min().unwrap_or_default();
        Ok(VisitRecord {
            cell: planned.cell,
            repeat: planned.repeat,
            order: self.visits,
            started_unix_ns: simulated.unwrap_or(started).saturating_add(signed(ramp)),
            elapsed_ns: found.elapsed.get(),
            load_ns: found.load.map(Nanos::get),
            end,
            purpose: planned.purpose,
            ramp_ns: ramp.get(),
            waited_ns: waited.waited.get(),
            quiet: waited.quiet,
            resident_before,
            resident_after,
            streams,
            completions: found.completions,
            ledger,
            host_stalls,
            warnings,
        })
    }
}

/// The cell as this visit plays it: a pilot from its first request on, others with the ramp that
/// the pilots ask for, and measured for as long as there is time.
fn as_planned(cell: &Cell, planned: &PlannedVisit) -> Cell {
    let mut cell = cell.clone();
    let whole_turns = cell.rests();
    for stop in cell.streams.iter_mut().map(|stream| &mut stream.stop).filter(|s| s.by_time()) {
        match (planned.purpose, planned.ramp) {
            (Purpose::Pilot, _) => {
                *stop = Stop { ramp: Nanos::ZERO, time: Some(PILOT), extend: None, ..*stop };
            }
            (Purpose::Measure, ramp) => {
                stop.ramp = stop.ramp.max(ramp.unwrap_or(Nanos::ZERO));
                if !whole_turns {
                    room::shorten(stop, planned.time_permille);
                }
            }
        }
    }
    cell
}

/// How many requests an operation is: an update or a copy is a read and a write. Mixed ones cannot
/// be told apart while they are under way.
fn halves(cell: &CellRecord) -> f64 {
    let is_pair = |stream: &StreamPlan| matches!(stream.op.as_str(), "update" | "copy");
    let all = !cell.streams.is_empty() && cell.streams.iter().all(is_pair);
    if all { 2.0 } else { 1.0 }
}

/// Operations per second between ticks.
#[derive(Default)]
struct Rate {
    requests: u64,
    elapsed: Nanos,
}

impl Rate {
    fn tick<'a>(&mut self, cell: &'a CellRecord, standing: Standing) -> Tick<'a> {
        let Standing { elapsed, requests, bytes, waiting } = standing;
        let seconds = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        let new = requests.saturating_sub(self.requests) as f64;
        let iops = if seconds > 0.0 { new / halves(cell) / seconds } else { 0.0 };
        (self.requests, self.elapsed) = (requests, elapsed);
        Tick { cell, elapsed, requests, bytes, iops, waiting }
    }
}

fn end_of(played: &Played, hanging: bool, failed: bool, interrupted: bool) -> VisitEnd {
    if played.device_error.is_some() || failed {
        VisitEnd::Failed
    } else if hanging || !played.stuck.is_empty() {
        VisitEnd::Hanging
    } else if interrupted {
        VisitEnd::Interrupted
    } else {
        VisitEnd::Complete
    }
}

fn backend(report: &BackendReport) -> BackendRecord {
    let BackendReport { name, flags, reasons, direct } = report.clone();
    BackendRecord { name, flags, reasons, direct }
}

fn stuck_warning(stuck: &Stuck) -> Warning {
    let place = match &stuck.waiting {
        Some(waiting) => {
            format!("its {} had not come back after {}", waiting.op.at(waiting.offset), waiting.age)
        }
        None => "it did not say at what".to_owned(),
    };
    Warning::new(
        "hanging",
        format!(
            "worker {} of stream {} is stuck in the kernel: {place}; the {} requests it completed \
             are not in the figures",
            stuck.worker.worker, stuck.worker.stream, stuck.completed
        ),
    )
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.get()).unwrap_or(i64::MAX)
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The sum if all are known.
trait SumOptions {
    fn sum_options(self) -> Option<Bytes>;
}

impl<I: Iterator<Item = Option<Bytes>>> SumOptions for I {
    fn sum_options(mut self) -> Option<Bytes> {
        self.try_fold(Bytes::ZERO, |sum, item| {
            item.map(|bytes| Bytes::new(sum.get().saturating_add(bytes.get())))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_and_the_write_that_goes_with_it_are_one() {
        let of = |op: &str| {
            let plan = StreamPlan {
                name: "main".to_owned(),
                op: op.to_owned(),
                block_bytes: Some(4096),
                threads: 1,
                queue_depth: 1,
            };
            let cell = CellRecord {
                index: 0,
                phase: "main".to_owned(),
                coordinates: Vec::new(),
                streams: vec![plan],
                impossible: None,
            };
            let (elapsed, bytes) = (Nanos::secs(2), Bytes::kib(400));
            let standing = Standing { elapsed, requests: 200, bytes, waiting: Vec::new() };
            Rate::default().tick(&cell, standing).iops
        };
        assert_eq!(["read", "update", "copy", "copy-range"].map(of), [100.0, 50.0, 50.0, 100.0]);
    }
}
