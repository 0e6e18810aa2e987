//! Makes a study's runs, and tells how far it is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use record::{Run, RunState};
use runner::study::{Crew, Measured, Part, PlayError, Ready};
use runner::{Order, RunError, Settings};
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
        let runs = self.store.list()?;
        let of_place = runs.iter().rev().find(|run| {
            let here = run.part.as_ref().filter(|p| p.group == group && p.number == number);
            here.is_some() && run.state != RunState::Complete && !run.live
        });
        of_place.map(|run| Ok(self.store.load(&run.id)?)).transpose()
    }

    fn settings(&self, consent: stack::Consent) -> Settings {
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
            store_path: self.store_path.clone(),
        }
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
        let runs = self.store.list()?;
        let complete = runs.iter().filter(|run| run.state == RunState::Complete);
        let parts = complete.filter_map(|run| run.part.as_ref());
        Ok(parts.filter(|part| part.group == key).map(|part| part.number).collect())
    }

    fn measure(&mut self, part: Part<'_>, ready: Ready<'_>) -> Result<Measured, PlayError> {
        let so_far = self.begun(&part.part.group, part.part.number)?;
        let settings = self.settings(part.consent.clone());
        let source = self.prepared.suites.get(part.suite).cloned();
        let (source, size) = match source {
            Some(source) => (source, self.prepared.study.measure.size),
            None => return Err(PlayError::NothingToResume { file: part.part.list }),
        };
        let anew = |settings| {
            runner::prepare(&Order {
                source,
                targets: vec![part.target.clone()],
                seed: Some(part.seed),
                size_given: size.is_some(),
                settings,
            })
        };
        let mut prepared = match &so_far {
            Some(run) => match runner::prepare_resume(run, settings.clone(), None) {
                Ok(prepared) => prepared,
                Err(error) => {
                    self.output.note(&format!("{} begins anew: {error}", run.header.id));
                    anew(settings)?
                }
            },
            None => anew(settings)?,
        };
        prepared.as_part(part.part);
        let interrupt = self.signals.interrupt();
        let mut progress = Progress::new(self.output, so_far.as_ref(), interrupt.clone());
        let played = (|| {
            let mut running = prepared.begin(self.store, &mut progress, interrupt)?;
            self.done.push(running.id().to_owned());
            while running.is_filling() && running.step() {}
            if let Err(error) = ready() {
                // It is stored as interrupted; why is what to tell.
                let _ = running.end();
                return Err(error);
            }
            while running.step() {}
            Ok(running.end()?)
        })();
        progress.finish();
        Ok(Measured { outcome: played? })
    }
}
