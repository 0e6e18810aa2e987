//! One visit: played, put together, judged, stored.

use std::sync::Arc;

use device::Op;
use engine::{Limits, Visit};
use explain::view::{Counts, is_data, is_rated};
use plan::PlannedVisit;
use record::{BackendRecord, CellRecord, Purpose, VisitEnd, VisitRecord, Warning};
use store::Change;
use suite::PILOT;
use suite::model::{Cell, Operation, Stop};
use units::{Bytes, Nanos};
use uring::BackendReport;

use super::{Next, Running, own_seed, room};
use crate::RunError;
use crate::clock::{signed, unix_now};
use crate::events::{Event, Tick};
use crate::made::made;
use crate::quiet::Waited;
use crate::rig::Stage;
use crate::visit::{Play, Played, Standing, Stuck, play};
use crate::watchdog::Watchdog;

impl<'a> Running<'a> {
    /// Makes a visit and stores it; `None` where it could not be made.
    pub(super) fn visit(
        &mut self,
        planned: &PlannedVisit,
    ) -> Result<(Option<VisitRecord>, Next), RunError> {
        let index = planned.cell as usize;
        let cell = self.rig.as_played(as_planned(&self.played[index], planned));
        let seed = planned.seed;
        let lost = || Warning::new("twin-lost", "the twin did not come back from its visit");
        let mut doubts = Vec::new();
        if let Some(before) = &cell.before {
            match self.play_before(before, seed)? {
                Some(warnings) => doubts = warnings,
                None => return Ok((None, Next::Failed(lost()))),
            }
            if self.interrupt.stops() {
                return Ok((None, Next::Interrupted));
            }
        }
        let Some(stage) = self.rig.stage(&cell, own_seed(seed, self.sides.as_ref()))? else {
            return Ok((None, Next::Failed(lost())));
        };
        let visit = self.visit_of(&cell, seed);
        let real = stage.simulated_now().is_none();
        self.watcher.event(Event::VisitBegins {
            cell: &self.cells[index],
            order: self.visits,
            planned: crate::prepare::planned(&cell),
            bytes: cell.streams.iter().map(|s| s.stop.bytes).sum_options(),
        });
        let mut record = self.play(&visit, &cell, planned, stage, real)?;
        record.warnings.extend(doubts);
        self.forgive_trim(&mut record);
        if record.end == VisitEnd::Complete {
            self.rig.made_files(&cell, &record);
            record.warnings.extend(self.rig.doubts_of_copies(&cell));
        }
        let next = self.judge(&cell, &mut record);
        self.claim.renew()?;
        self.late.push(Change::Visit(Box::new(record.clone())));
        self.store_late()?;
        self.visits += 1;
        if record.end != VisitEnd::Interrupted {
            let lead = self.leads.get(index).copied().unwrap_or_default();
            self.course.add(&made(&record, lead, self.rig.is_twin()));
        }
        if let Some(quiet) = &mut self.quiet {
            quiet.after(&record, cell.streams.iter().any(|stream| stream.modifies()));
        }
        let left = self.course.left();
        let half_width = self.course.half_width(record.cell);
        let cell = &self.cells[index];
        self.watcher.event(Event::VisitEnds { cell, visit: &record, half_width, left });
        self.doubt_pilot(&record);
        Ok((Some(record), next))
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

    /// How a visit to `cell` is to be played.
    pub(super) fn order(&self, visit: &Arc<Visit>, cell: &Cell, real: bool) -> Play<'a> {
        Play {
            visit: Arc::clone(visit),
            limits: Limits { hang: self.settings.hang_limit, failures: self.settings.failures },
            cpus: self.settings.cpus.clone(),
            interrupt: self.interrupt,
            operations: self.rig.operations(),
            planned: cell.longest_duration().filter(|_| real),
            real,
        }
    }

    /// Looks at what the visit left.
    ///
    /// * `left`: requests are still in flight.
    fn after_visit(
        &mut self,
        cell: &Cell,
        left: bool,
        end: VisitEnd,
    ) -> Result<Vec<Warning>, RunError> {
        if left {
            self.rig.hangs();
        }
        if end == VisitEnd::Hanging {
            return Ok(Vec::new());
        }
        let mut ops = cell.streams.iter().flat_map(|stream| &stream.mix.classes);
        let changes = self.rig.changes(ops.any(|class| class.op == Operation::Trim));
        self.rig.end_anew().map(|()| changes)
    }

    fn play(
        &mut self,
        visit: &Arc<Visit>,
        cell: &Cell,
        planned: &PlannedVisit,
        stage: Stage,
        real: bool,
    ) -> Result<VisitRecord, RunError> {
        let order = self.order(visit, cell, real);
        let watchdog = Watchdog::start();
        let mut started = 0;
        let mut rate = Rate::new(cell);
        let record = &self.cells[planned.cell as usize];
        let watcher = &mut *self.watcher;
        self.rig.mark_before();
        let simulated = stage.simulated_now();
        let mut played = play(
            &order,
            stage,
            || started = unix_now(),
            |standing| watcher.event(Event::Tick(rate.tick(record, standing))),
        )?;
        let simulated =
            simulated.map(|start| (start, played.seats.first().and_then(|s| s.simulated_now())));
        let started = self.clock.began(started, simulated);
        self.rig.give_back(std::mem::take(&mut played.seats));
        let results = std::mem::take(&mut played.results);
        let found = meter::merge(&engine::loads(visit), self.rig.operations(), results);
        let (ledger, unknown) = self.rig.ledger();
        let thousandths = |share: f64| (share * 1000.0).round() as u32;
        let (before, after) = self.rig.cached_shares();
        let (resident_before, resident_after) = (before.map(thousandths), after.map(thousandths));
        // What was waited for is this visit's alone.
        let waited = std::mem::replace(&mut self.waited, Waited::NONE);
        for warning in unknown {
            self.warn(warning);
        }
        let host_stalls = if real { watchdog.finish(found.begin) } else { Vec::new() };
        let mut streams = found.streams;
        for (stream, report) in streams.iter_mut().zip(&played.backends) {
            stream.backend = backend(report);
        }
        let mut warnings = found.warnings;
        warnings.extend(troubles(&played, real));
        let end = end_of(&played, found.hanging, found.failed, self.interrupt.stops());
        warnings.extend(self.after_visit(cell, found.left, end)?);
        // What was measured during the ramp began earlier on the wall clock too.
        let ramp = cell.streams.iter().map(|s| s.stop.ramp).min().unwrap_or_default();
        Ok(VisitRecord {
            cell: planned.cell,
            repeat: planned.repeat,
            order: self.visits,
            started_unix_ns: started.saturating_add(signed(ramp)),
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
            counters: self.rig.counters(),
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

/// Operations per second between ticks, of those that the tables count.
struct Rate {
    /// Of each stream.
    counts: Vec<Counts>,
    operations: u64,
    elapsed: Nanos,
}

impl Rate {
    fn new(cell: &Cell) -> Self {
        let counts = cell.streams.iter().map(|stream| Counts::of_classes(&stream.mix.classes));
        Self { counts: counts.collect(), operations: 0, elapsed: Nanos::ZERO }
    }

    fn tick<'a>(&mut self, cell: &'a CellRecord, standing: Standing) -> Tick<'a> {
        let Standing { elapsed, done, waiting } = standing;
        let has_data = done.iter().any(|(_, op, _)| is_data(op));
        let commit = Op::Commit.name();
        let commits = |stream| done.iter().any(|&(of, op, _)| of == stream && op == commit);
        let takes = |stream: usize, op: &str| {
            let counts = self.counts.get(stream).copied().unwrap_or_default();
            let part = op != commit && commits(stream);
            !part && is_rated(has_data, counts, op)
        };
        let (operations, bytes) = done
            .iter()
            .filter(|&&(stream, op, _)| takes(stream, op))
            .fold((0, 0), |(n, bytes), (_, _, tally)| (n + tally.requests, bytes + tally.bytes));
        let seconds = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        let new = operations.saturating_sub(self.operations) as f64;
        let iops = if seconds > 0.0 { new / seconds } else { 0.0 };
        (self.operations, self.elapsed) = (operations, elapsed);
        Tick { cell, elapsed, operations, bytes: Bytes::new(bytes), iops, waiting }
    }
}

/// What kept workers, or all of them, from playing to the end.
fn troubles(played: &Played, real: bool) -> Vec<Warning> {
    let stuck = match real {
        true => played.stuck.iter().map(stuck_warning).collect(),
        false => unplayed_warning(&played.stuck).into_iter().collect::<Vec<_>>(),
    };
    let failed = played.device_error.as_ref();
    let failed = failed.map(|error| Warning::new("device-failed", error.to_string()));
    stuck.into_iter().chain(failed).collect()
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
            format!("its {} had not come back after {}", waiting.what, waiting.age)
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

/// The same of a model: it has no kernel to be stuck in, only more to play than there was time for.
fn unplayed_warning(stuck: &[Stuck]) -> Option<Warning> {
    let completed = stuck.iter().fold(0u64, |sum, one| sum.saturating_add(one.completed));
    (!stuck.is_empty()).then(|| {
        Warning::new(
            "hanging",
            format!(
                "the model was not played to its end: {} workers were left, and the {completed} \
                 requests that they completed are not in the figures; fewer workers or requests at \
                 once take less time to play",
                stuck.len()
            ),
        )
    })
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
    use meter::{Tally, WorkerId};

    use super::*;

    #[test]
    fn a_model_is_not_stuck_in_a_kernel() {
        let stuck = |worker| {
            let worker = WorkerId { stream: 0, worker };
            Stuck { worker, completed: 20, waiting: None }
        };
        let told = unplayed_warning(&[stuck(0), stuck(1)]).unwrap().text;
        assert!(told.contains("2 workers") && told.contains("the 40 requests"), "{told}");
        assert!(!told.contains("kernel"), "{told}");
        assert!(stuck_warning(&stuck(0)).text.contains("in the kernel"));
        assert_eq!(unplayed_warning(&[]), None);
    }

    #[test]
    fn a_tick_counts_what_the_tables_count() {
        let cell = CellRecord {
            index: 0,
            phase: "main".to_owned(),
            coordinates: Vec::new(),
            streams: Vec::new(),
            impossible: None,
        };
        // 100 of each in 2 s; writes of 4 KiB.
        let of = |counts: Counts, ops: &[Op]| {
            let tally = |op: &Op| Tally {
                requests: 100,
                bytes: if op.moves_data() { 100 * 4096 } else { 0 },
            };
            let done = ops.iter().map(|op| (0, op.name(), tally(op))).collect();
            let standing = Standing { elapsed: Nanos::secs(2), done, waiting: Vec::new() };
            let mut rate = Rate { counts: vec![counts], operations: 0, elapsed: Nanos::ZERO };
            let tick = rate.tick(&cell, standing);
            (tick.iops, tick.bytes.get() / tick.operations.max(1))
        };
        assert_eq!(of(Counts::All, &[Op::Read, Op::Write]), (100.0, 4096));
        assert_eq!(of(Counts::NotReads, &[Op::Read, Op::Write]), (50.0, 4096), "an update is one");
        assert_eq!(
            of(Counts::All, &[Op::Write, Op::Fsync]),
            (50.0, 4096),
            "flushes are in no rate"
        );
        let commits = [Op::Commit, Op::Write, Op::Fdatasync];
        assert_eq!(of(Counts::All, &commits).0, 50.0, "parts of a commit are in no rate");
        assert_eq!(of(Counts::All, &[Op::Fdatasync]), (50.0, 0), "unless there is nothing else");
        assert_eq!(of(Counts::All, &[]), (0.0, 0));
    }
}
