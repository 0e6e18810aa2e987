//! Carries a prepared run out: fill, visits in the plan's order, each stored when it ends.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use device::Errno;
use engine::verify::Verifier;
use engine::{Limits, Visit};
use plan::{Plan, PlannedVisit, VisitKey};
use record::{BackendRecord, CellRecord, RunState, VisitEnd, VisitRecord, Warning};
use store::Store;
use suite::model::{Cell, Suite};
use units::{Bytes, Nanos};
use uring::BackendReport;

use crate::events::{Event, Tick, Watcher};
use crate::fill::Pass;
use crate::ground::Field;
use crate::prepare::{Ground, Prepared, impossible, planned, smallest_unit, verifies};
use crate::visit::{Play, Played, Stage, Standing, Stuck, play};
use crate::watchdog::Watchdog;
use crate::{Interrupt, RunError, Settings};

/// So many failed visits in a row end a run: nothing better is to be expected.
const FAILURES_IN_A_ROW: u32 = 5;

/// A share of cached pages that says something.
const CACHED: f64 = 0.05;

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The run's id in the store.
    pub run: String,
    /// How it ended.
    pub state: RunState,
    /// Visits that ended by an error.
    pub failed_visits: u32,
    /// Visits in which requests did not come back.
    pub hanging_visits: u32,
    /// Reads found something else than was written.
    pub mismatches: bool,
    /// Cells that cannot be measured here.
    pub impossible_cells: u32,
}

impl Prepared {
    /// Carries it out. Every visit is in the store when the next begins; an error leaves all
    /// visits before it there.
    pub fn run(
        self,
        store: &mut Store,
        watcher: &mut dyn Watcher,
        interrupt: &Interrupt,
    ) -> Result<Outcome, RunError> {
        let Self { mut header, cells, suite, ground, passes, settings, resumes } = self;
        let makes_files = matches!(&ground, Ground::Paths(paths) if paths.makes_files());
        let played: Vec<Cell> =
            suite.cells().cloned().chain(passes.iter().map(Pass::as_cell)).collect();
        let everything: Vec<&Cell> = played.iter().collect();
        let is_new = resumes.is_none();
        // First of all: a store that takes nothing must not cost a file its content.
        let (id, done, visits, filled) = match resumes {
            Some(resumed) => (resumed.id, resumed.done, resumed.visits, resumed.filled),
            None => (store.create_run(&header, &cells)?, HashSet::new(), 0, false),
        };
        let claim = store.claim(&id)?;
        header.id.clone_from(&id);
        store.set_state(&id, RunState::Running)?;
        let field = Field::enter(ground, &suite, &everything, header.seed, settings.keep);
        let field = match field {
            Ok(field) => field,
            Err(error) => {
                drop(claim);
                // It has not begun. The error itself is what to tell, whatever the store says.
                let _ = if is_new {
                    store.remove(std::slice::from_ref(&id))
                } else {
                    store.set_state(&id, RunState::Failed)
                };
                return Err(error);
            }
        };
        let mut run = Running {
            verifier: verifier(&suite, header.seed, !passes.is_empty()),
            seed: header.seed,
            field,
            cells,
            played,
            suite,
            settings,
            store,
            watcher,
            interrupt,
            visits,
            warned: HashSet::new(),
            in_a_row: 0,
            outcome: Outcome {
                run: id,
                state: RunState::Running,
                failed_visits: 0,
                hanging_visits: 0,
                mismatches: false,
                impossible_cells: 0,
            },
        };
        if makes_files && let Err(error) = run.look_again() {
            return run.end(Err(error));
        }
        let plan = run.plan();
        let left = plan.remaining(&done);
        run.watcher.event(Event::Begins {
            header: &header,
            cells: &run.cells,
            done: plan.visits.len() - left.len(),
            least: plan::least_duration(&run.suite, &left),
        });
        let passes = if filled { 0 } else { passes.len() };
        let ended = run.everything(passes, &left);
        run.end(ended)
    }
}

/// Data that reads can be held against, if the suite wants that.
fn verifier(suite: &Suite, seed: u64, filled: bool) -> Option<Arc<Verifier>> {
    verifies(suite).then(|| {
        // The seed is the run's own and stays with it over a resume.
        let run = stats::random::mix(seed);
        let (files, size) = (suite.files.count, suite.files.size);
        Arc::new(Verifier::new(run, !filled, smallest_unit(suite), files, size))
    })
}

struct Running<'a> {
    seed: u64,
    field: Field,
    cells: Vec<CellRecord>,
    played: Vec<Cell>,
    suite: Suite,
    settings: Settings,
    store: &'a mut Store,
    watcher: &'a mut dyn Watcher,
    interrupt: &'a Interrupt,
    verifier: Option<Arc<Verifier>>,
    /// Visits stored so far.
    visits: u32,
    /// Warnings about the run that were given already.
    warned: HashSet<(String, String)>,
    in_a_row: u32,
    outcome: Outcome,
}

/// Whether to go on after a visit.
enum Next {
    On,
    /// The user wants to stop.
    Interrupted,
    /// There is no point in going on, for this reason.
    Failed(Warning),
}

/// Why a run ends before its plan does.
fn ends_early(why: impl Into<String>) -> Next {
    Next::Failed(Warning::new("ended-early", why))
}

impl Running<'_> {
    /// Files that were just made tell their unit of direct I/O only now.
    fn look_again(&mut self) -> Result<(), RunError> {
        let grid = self.suite.cell_count();
        for index in 0..grid {
            if self.cells[index].impossible.is_some() {
                continue;
            }
            let Some(unit) = self.field.direct_unit(&self.played[index])? else { continue };
            if let Some(why) = impossible(&self.played[index], unit) {
                self.store.set_impossible(&self.outcome.run, index as u32, &why)?;
                self.cells[index].impossible = Some(why);
            }
        }
        Ok(())
    }

    /// The plan over the cells that are possible here.
    fn plan(&mut self) -> Plan {
        let impossible: BTreeSet<u32> =
            self.cells.iter().filter(|c| c.impossible.is_some()).map(|c| c.index).collect();
        self.outcome.impossible_cells = impossible.len() as u32;
        Plan::new(&self.suite, self.seed).without_cells(&impossible)
    }

    fn everything(&mut self, passes: usize, visits: &[PlannedVisit]) -> Result<Next, RunError> {
        let grid = self.suite.cell_count() as u32;
        for index in 0..passes as u32 {
            let cell = grid + index;
            let seed = stats::random::derive_seed(self.seed, &[9, u64::from(cell)]);
            match self.visit(VisitKey { cell, repeat: 0 }, seed)? {
                Next::On => {}
                Next::Failed(_) => return Ok(not_filled()),
                Next::Interrupted => return Ok(Next::Interrupted),
            }
            if self.in_a_row > 0 {
                return Ok(not_filled());
            }
        }
        for visit in visits {
            let steps = self.suite.caches.clone();
            if !steps.is_empty() {
                self.watcher.event(Event::Step("handling caches"));
                self.field.caches(&steps)?;
            }
            if !self.settle() {
                return Ok(Next::Interrupted);
            }
            match self.visit(visit.key(), visit.seed)? {
                Next::On => {}
                other => return Ok(other),
            }
        }
        Ok(Next::On)
    }

    /// The pause before a visit; false if the user wants to stop.
    fn settle(&self) -> bool {
        const STEP: Nanos = Nanos::millis(50);
        let mut left = self.suite.settle;
        while left > Nanos::ZERO && !self.interrupt.stops() {
            let step = left.min(STEP);
            std::thread::sleep(step.as_std());
            left = left.saturating_sub(step);
        }
        !self.interrupt.stops()
    }

    fn visit(&mut self, key: VisitKey, seed: u64) -> Result<Next, RunError> {
        let cell = self.played[key.cell as usize].clone();
        let Some(stage) = self.field.stage(&cell, seed)? else {
            let lost = Warning::new("twin-lost", "the twin did not come back from its visit");
            return Ok(Next::Failed(lost));
        };
        let visit = Arc::new(Visit {
            streams: cell.streams.clone(),
            files: self.suite.files.count,
            file_size: self.suite.files.size,
            data: self.suite.files.data,
            seed,
            run_seed: self.seed,
            verify: self.verifier.clone(),
        });
        let real = !matches!(stage, Stage::Model(_));
        self.watcher.event(Event::VisitBegins {
            cell: &self.cells[key.cell as usize],
            order: self.visits,
            planned: planned(&cell),
            bytes: cell.streams.iter().map(|s| s.stop.bytes).sum_options(),
        });
        let mut record = self.play(&visit, &cell, key, stage, real)?;
        let next = self.judge(&cell, &mut record);
        self.store.add_visit(&self.outcome.run, &record)?;
        self.visits += 1;
        self.watcher
            .event(Event::VisitEnds { cell: &self.cells[key.cell as usize], visit: &record });
        Ok(next)
    }

    fn play(
        &mut self,
        visit: &Arc<Visit>,
        cell: &Cell,
        key: VisitKey,
        stage: Stage,
        real: bool,
    ) -> Result<VisitRecord, RunError> {
        let limits = Limits { hang: self.settings.hang_limit, failures: self.settings.failures };
        let order = Play {
            visit: Arc::clone(visit),
            limits,
            cpus: &self.settings.cpus,
            interrupt: self.interrupt,
            planned: planned(cell).filter(|_| real),
            real,
        };
        let watchdog = Watchdog::start();
        let mut started = 0;
        let mut rate = Rate::default();
        let record = &self.cells[key.cell as usize];
        let watcher = &mut *self.watcher;
        self.field.mark_before(Some(&stage));
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
        // What was measured during the ramp began earlier on the wall clock too.
        let ramp = cell.streams.iter().map(|s| s.stop.ramp).min().unwrap_or_default();
        Ok(VisitRecord {
            cell: key.cell,
            repeat: key.repeat,
            order: self.visits,
            started_unix_ns: started + i64::try_from(ramp.get()).unwrap_or(0),
            elapsed_ns: found.elapsed.get(),
            end,
            purpose: record::Purpose::Measure,
            ramp_ns: ramp.get(),
            waited_ns: 0,
            quiet: None,
            resident_before: None,
            resident_after: None,
            streams,
            completions: found.completions,
            ledger,
            host_stalls,
            warnings,
        })
    }

    /// What the visit means for the run; adds doubts that only this level can have.
    fn judge(&mut self, cell: &Cell, record: &mut VisitRecord) -> Next {
        self.doubt_direct(cell, record);
        let code = |code: &str| record.warnings.iter().any(|w| w.code == code);
        if code("verify-mismatch") {
            self.outcome.mismatches = true;
        }
        let gone = if code("device-failed") {
            Some("the device failed".to_owned())
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
                self.field.hangs();
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
        !matches!(&self.field, Field::Twin(None, _))
    }

    /// Direct I/O is a request: says so where it was not granted, or granted and not done.
    fn doubt_direct(&self, cell: &Cell, record: &mut VisitRecord) {
        if !self.field.has_page_cache() {
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
        if all_direct && let Some((before, after)) = self.field.cached_shares() {
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

    fn warn(&mut self, warning: Warning) -> Result<(), RunError> {
        if self.warned.insert((warning.code.clone(), warning.text.clone())) {
            self.store.add_warning(&self.outcome.run, &warning)?;
            self.watcher.event(Event::Warning(&warning));
        }
        Ok(())
    }

    /// Says in the store how it ended, whatever that was.
    fn end(mut self, ended: Result<Next, RunError>) -> Result<Outcome, RunError> {
        let state = match &ended {
            Ok(Next::On) => RunState::Complete,
            Ok(Next::Interrupted) => RunState::Interrupted,
            Ok(Next::Failed(_)) | Err(_) => RunState::Failed,
        };
        let warned = match &ended {
            Ok(Next::Failed(why)) => self.warn(why.clone()),
            // The caller tells the error; the store may be what failed.
            Err(error) => {
                let why = Warning::new("ended", error.to_string());
                let _ = self.store.add_warning(&self.outcome.run, &why);
                Ok(())
            }
            Ok(_) => Ok(()),
        };
        let stored = self.store.set_state(&self.outcome.run, state);
        ended?;
        warned?;
        stored?;
        self.outcome.state = state;
        Ok(self.outcome)
    }
}

/// Requests per second between ticks.
#[derive(Default)]
struct Rate {
    requests: u64,
    elapsed: Nanos,
}

impl Rate {
    fn tick<'a>(&mut self, cell: &'a CellRecord, standing: Standing) -> Tick<'a> {
        let Standing { elapsed, requests, bytes, waiting } = standing;
        let seconds = elapsed.saturating_sub(self.elapsed).as_secs_f64();
        let new = requests.saturating_sub(self.requests);
        let iops = if seconds > 0.0 { new as f64 / seconds } else { 0.0 };
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
        Some(waiting) => format!(
            "its {} at byte {} had not come back after {}",
            waiting.op, waiting.offset, waiting.age
        ),
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

/// Errors after which the device is not coming back, or no write will succeed.
fn lost_device(record: &VisitRecord) -> Option<Errno> {
    let lost = [Errno::ENODEV, Errno::ENXIO, Errno::ENOSPC, Errno::EROFS];
    let errors = record.streams.iter().flat_map(|s| &s.ops).flat_map(|op| &op.errors);
    errors.map(|(code, _)| Errno(*code)).find(|errno| lost.contains(errno))
}

fn not_filled() -> Next {
    let why = "the files could not be written to the end: nothing was measured";
    Next::Failed(Warning::new("not-filled", why))
}

/// Whether the devices right below moved at least half of what was asked; not where none is known.
fn device_moved(record: &VisitRecord) -> bool {
    let asked: u64 = record.streams.iter().flat_map(|s| &s.ops).map(|op| op.bytes).sum();
    let top = record.ledger.iter().filter(|entry| entry.depth == 0);
    let moved: u64 = top.map(|entry| entry.read_bytes + entry.write_bytes).sum();
    moved > 0 && moved >= asked / 2
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
