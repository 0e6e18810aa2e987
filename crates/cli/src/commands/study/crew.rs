//! Makes a study's runs, and tells how far it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use record::{Run, RunState, Warning};
use runner::study::{Crew, Measured, Moments, Part, PlayError};
use runner::{Order, Outcome, RunError, Settings};
use store::Store;
use units::Nanos;

use super::Prepared;
use crate::order;
use crate::output::Output;
use crate::progress::Progress;
use crate::signals::SignalWatch;

/// As `run` waits for requests that do not come back.
const HANG_LIMIT: Nanos = Nanos::secs(30);

pub struct Measurer<'a> {
    prepared: &'a Prepared,
    store: &'a mut Store,
    store_path: PathBuf,
    output: Output,
    signals: &'a SignalWatch,
    /// Ids of the runs that were made.
    pub done: Vec<String>,
}

impl<'a> Measurer<'a> {
    pub fn new(
        prepared: &'a Prepared,
        store: &'a mut Store,
        store_path: &Path,
        output: Output,
        signals: &'a SignalWatch,
    ) -> Self {
        let store_path = store_path.to_path_buf();
        Self { prepared, store, store_path, output, signals, done: Vec::new() }
    }

    /// The run at that place that did not come to its end.
    fn begun(&self, group: &str, number: u32) -> Result<Option<Run>, RunError> {
        let runs = order::readable(self.store, &self.output)?;
        let of_place = runs.iter().rev().find(|run| {
            let here = run.part.as_ref().filter(|p| p.group == group && p.number == number);
            here.is_some() && run.state != RunState::Complete && !run.live
        });
        let Some(run) = of_place else { return Ok(None) };
        Ok(order::unless_damaged(&run.id, self.store.load(&run.id), &self.output)?)
    }
}

/// How the runs of a study are made.
pub fn settings(consent: stack::Consent, store: &Path) -> Settings {
    Settings {
        consent,
        verify: false,
        keep: false,
        cpus: Vec::new(),
        hang_limit: HANG_LIMIT,
        failures: 0,
        cache: None,
        command_line: order::command_line(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        store_path: store.to_path_buf(),
    }
}

impl Crew for Measurer<'_> {
    fn tell(&mut self, line: &str) {
        self.output.notes(line);
    }

    fn stops(&self) -> bool {
        self.signals.interrupt().stops()
    }

    fn complete(&self, key: &str) -> Result<BTreeSet<u32>, RunError> {
        let runs = order::readable(self.store, &self.output)?;
        let complete = runs.iter().filter(|run| run.state == RunState::Complete);
        let parts = complete.filter_map(|run| run.part.as_ref());
        Ok(parts.filter(|part| part.group == key).map(|part| part.number).collect())
    }

    fn measure(
        &mut self,
        part: Part<'_>,
        moments: &mut dyn Moments,
    ) -> Result<Measured, PlayError> {
        let so_far = self.begun(&part.part.group, part.part.number)?;
        let prepared = self.prepared_run(&part, so_far.as_ref())?;
        if let Some(outcome) = self.play(prepared, so_far.as_ref(), moments)? {
            return Ok(Measured { outcome });
        }
        // Its files are there and closed.
        let warning = moments.enter()?;
        let so_far = self.begun(&part.part.group, part.part.number)?;
        if let Some((warning, run)) = warning.zip(so_far.as_ref()) {
            self.note(&run.header.id, &warning)?;
        }
        let mut prepared = self.prepared_run(&part, so_far.as_ref())?;
        prepared.was_put_off();
        match self.play(prepared, so_far.as_ref(), moments)? {
            Some(outcome) => Ok(Measured { outcome }),
            None => Err(PlayError::NothingToResume { file: part.part.list }),
        }
    }

    fn note(&mut self, run: &str, warning: &Warning) -> Result<(), RunError> {
        Ok(self.store.add_warning(run, warning)?)
    }
}

impl Measurer<'_> {
    /// The run of that part, ready to be started or gone on with.
    fn prepared_run(
        &self,
        part: &Part<'_>,
        so_far: Option<&Run>,
    ) -> Result<runner::Prepared, PlayError> {
        let settings = settings(part.consent.clone(), &self.store_path);
        let source = self.prepared.suites.get(part.suite).cloned();
        let Some(source) = source else {
            return Err(PlayError::NothingToResume { file: part.part.list.clone() });
        };
        let anew = |settings| {
            runner::prepare(&Order {
                source,
                targets: part.targets.clone(),
                seed: Some(part.seed),
                size_given: self.prepared.study.measure.size.is_some(),
                settings,
            })
        };
        let mut prepared = match so_far {
            Some(run) => match runner::prepare_resume(run, settings.clone(), None) {
                Ok(prepared) => prepared,
                Err(error) => {
                    self.output.note(&format!("{} begins anew: {error}", run.header.id));
                    anew(settings)?
                }
            },
            None => anew(settings)?,
        };
        prepared.as_part(part.part.clone());
        Ok(prepared)
    }

    /// Plays it to its end; `None` where it has to be ended first, so that its files are closed.
    fn play(
        &mut self,
        prepared: runner::Prepared,
        so_far: Option<&Run>,
        moments: &mut dyn Moments,
    ) -> Result<Option<Outcome>, PlayError> {
        let interrupt = self.signals.interrupt();
        let mut progress = Progress::new(self.output, so_far, interrupt.clone());
        let played = (|| {
            let mut running = prepared.begin(self.store, &mut progress, interrupt)?;
            if !self.done.iter().any(|id| id == running.id()) {
                self.done.push(running.id().to_owned());
            }
            while running.is_filling() && running.step() {}
            let goes_on = running.next_visit().is_some() && !interrupt.stops();
            if goes_on && moments.closes_files() {
                running.end()?;
                return Ok(None);
            }
            let told = (|| {
                if goes_on && let Some(warning) = moments.enter()? {
                    running.doubt(warning);
                }
                while running.next_visit().is_some() {
                    moments.keep()?;
                    if !running.step() {
                        break;
                    }
                }
                Ok(())
            })();
            if let Err(error) = told {
                // It is stored as interrupted; why is what to tell.
                let _ = running.end();
                return Err(error);
            }
            while running.step() {}
            Ok(Some(running.end()?))
        })();
        progress.finish();
        played
    }
}
