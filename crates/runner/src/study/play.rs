//! The loop: build, verify, measure, tear down.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use layout::steps::{build, top_device};
use layout::{ArrayState, DeviceId, Names, Stage, Step, Wait};
use record::{OfStudy, PartOf, RunState};
use stack::{Consent, Host};
use study::journal::{Begins, Entry, Found, VERSION};
use study::{PlannedStack, Stack, Study};

use crate::study::builder::{Builder, Listener, NotBuilt, allowed};
use crate::study::devices::facts_of;
use crate::study::{Device, JournalFile, Known, Override, PlayError, judge};
use crate::{Outcome, RunError, TargetName};

/// The file that suites use on a file system of ours.
const DATA: &str = "plimsoll.dat";

/// A run that is to be made.
pub struct Part<'a> {
    /// On which stack.
    pub stack: &'a PlannedStack,
    /// Which of the study's suites, from 0.
    pub suite: usize,
    /// What to measure.
    pub target: TargetName,
    /// What may be written there besides what any run may.
    pub consent: Consent,
    /// Where the run's randomness comes from.
    pub seed: u64,
    /// Its place in the study.
    pub part: PartOf,
}

/// What is to be done when the run's files are there, before its first visit.
pub type Ready<'r> = &'r mut dyn FnMut() -> Result<(), PlayError>;

/// What came of a run.
#[derive(Debug)]
pub struct Measured {
    /// How it ended.
    pub outcome: Outcome,
}

/// Who makes the runs and tells the user.
pub trait Crew {
    /// A line about what goes on.
    fn tell(&mut self, line: &str);
    /// Whether the user wants to stop.
    fn stops(&self) -> bool;
    /// Places in the plan whose runs are complete, as the store knows them.
    fn complete(&self, key: &str) -> Result<BTreeSet<u32>, RunError>;
    /// Makes a run, or goes on with the one that the store has at that place.
    fn measure(&mut self, part: Part<'_>, ready: Ready<'_>) -> Result<Measured, PlayError>;
}

struct Through<'a>(&'a mut dyn Crew);

impl Listener for Through<'_> {
    fn tell(&mut self, line: &str) {
        self.0.tell(line);
    }

    fn stops(&self) -> bool {
        self.0.stops()
    }
}

/// A study that is to be played.
pub struct Play<'a> {
    /// What.
    pub study: &'a Study,
    /// Its text, for the journal.
    pub text: &'a str,
    /// Its file, absolute.
    pub file: PathBuf,
    /// Where results go; journals are beside it.
    pub store: PathBuf,
    /// What the operator overrides.
    pub overrides: Vec<Override>,
    /// Version of the program.
    pub program: String,
    /// The machine.
    pub host: Host,
}

/// How a study ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The same for all of its runs.
    pub key: String,
    /// Runs that are complete.
    pub complete: u32,
    /// Runs in all.
    pub of: u32,
    /// Stacks that could not be built or measured, and why.
    pub failed: Vec<(u32, String)>,
    /// The user ended it.
    pub interrupted: bool,
    /// Seconds that arrays took to be filled again, by stack.
    pub rebuilt: Vec<(u32, u64)>,
    /// The worst of the runs: visits that failed, data that changed.
    pub troubled: bool,
    /// Reads found other data than was written.
    pub mismatches: bool,
}

/// The steps of every stack that is built, with its place in the plan.
pub fn steps_of(
    study: &Study,
    devices: &[Device],
    key: &str,
) -> Result<Vec<(u32, Vec<Step>)>, PlayError> {
    let names = names(key)?;
    let facts = facts_of(devices);
    let mut all = Vec::new();
    for one in &study.stacks {
        let Stack::Built(spec) = &one.stack else { continue };
        let steps = build(spec, &names, &facts).map_err(|source| PlayError::Steps {
            number: one.number,
            title: one.title(),
            source,
        })?;
        all.push((one.number, steps));
    }
    Ok(all)
}

fn names(key: &str) -> Result<Names, PlayError> {
    Names::new(key).map_err(|error| PlayError::Exchanged {
        device: format!("study {key}"),
        why: error.to_string(),
    })
}

impl Play<'_> {
    /// Begins it anew: all that can be refused is refused before the first line of its journal.
    ///
    /// * `key`: 8 hex digits that no other study has; `now`: ns since 1970.
    pub fn begin(&self, key: &str, now: i64, crew: &mut dyn Crew) -> Result<Ended, PlayError> {
        let devices = self.look(&|_| Known::No)?;
        self.can_build(&devices, key)?;
        let begins = Begins {
            version: VERSION,
            key: key.to_owned(),
            name: self.study.name.clone(),
            file: self.file.display().to_string(),
            text: self.text.to_owned(),
            seed: self.study.seed,
            started_unix_ns: now,
            program: self.program.clone(),
        };
        let mut journal = JournalFile::create(&crate::study::directory(&self.store), begins)?;
        for device in &devices {
            journal.add(&Entry::Device(Box::new(Found {
                device: DeviceId::new(&device.path),
                identity: device.known_by(),
                blank: device.blank,
                overridden: device.overridden.clone(),
            })))?;
        }
        self.play(&mut journal, &devices, crew)
    }

    /// Goes on with one that was broken off: what it left is taken back, and built again.
    pub fn resume(&self, path: &Path, crew: &mut dyn Crew) -> Result<Ended, PlayError> {
        let mut journal = JournalFile::open(path)?;
        if journal.state().begins.text != self.text {
            return Err(PlayError::Changed { file: self.file.display().to_string() });
        }
        let key = journal.state().begins.key.clone();
        let allowed = allowed(&self.host, &journal.state().devices, &names(&key)?);
        if !journal.state().is_clean() {
            crew.tell("taking back what was left when it was broken off");
        }
        let mut builder = Builder { host: self.host.clone(), allowed, journal: &mut journal };
        builder.undo_all(&mut Through(crew))?;
        let known = journal.state().devices.clone();
        let devices = self.look(&|path| known_as(&journal, path))?;
        for device in &devices {
            let found = known.iter().find(|found| found.device.as_str() == device.path);
            let why = match found {
                None => Some("the study began without it".to_owned()),
                Some(found) => found.identity.differs(&device.known_by()),
            };
            if let Some(why) = why {
                return Err(PlayError::Exchanged { device: device.path.clone(), why });
            }
        }
        self.can_build(&devices, &key)?;
        self.play(&mut journal, &devices, crew)
    }

    /// Judges the study's devices.
    ///
    /// * `known`: what its journal says of each.
    pub fn look(&self, known: &dyn Fn(&str) -> Known) -> Result<Vec<Device>, PlayError> {
        if !self.study.builds() {
            return Ok(Vec::new());
        }
        let paths: Vec<String> = self.study.devices.all().cloned().collect();
        judge(&self.host, &paths, &self.overrides, known, &self.store)
    }

    /// Whether every stack can be built, as far as that can be told before.
    fn can_build(&self, devices: &[Device], key: &str) -> Result<(), PlayError> {
        if !self.study.builds() {
            return Ok(());
        }
        let user = rustix::process::geteuid();
        if !user.is_root() {
            return Err(PlayError::NotRoot(user.as_raw()));
        }
        let steps = steps_of(self.study, devices, key)?;
        let missing = stack::build::missing_programs(steps.iter().flat_map(|(_, steps)| steps));
        if missing.is_empty() { Ok(()) } else { Err(PlayError::NotInstalled(missing)) }
    }

    fn play(
        &self,
        journal: &mut JournalFile,
        devices: &[Device],
        crew: &mut dyn Crew,
    ) -> Result<Ended, PlayError> {
        let key = journal.state().begins.key.clone();
        let mut complete = crew.complete(&key)?;
        let mut ended = Ended { key: key.clone(), of: self.study.runs(), ..Ended::default() };
        let all = steps_of(self.study, devices, &key)?;
        for one in &self.study.stacks {
            let failed = journal.state().failed.get(&one.number).cloned();
            if let Some(why) = failed {
                ended.failed.push((one.number, why));
                continue;
            }
            let suites: Vec<usize> = (0..self.study.measure.suites.len())
                .filter(|suite| !complete.contains(&self.study.run_number(one, *suite)))
                .collect();
            if suites.is_empty() {
                continue;
            }
            if crew.stops() {
                ended.interrupted = true;
                break;
            }
            crew.tell(&format!(
                "stack {} of {}: {}",
                one.number,
                self.study.stacks.len(),
                one.title()
            ));
            let steps = all.iter().find(|(number, _)| *number == one.number);
            let steps = steps.map(|(_, steps)| steps.as_slice()).unwrap_or_default();
            let went = self.stack(journal, one, steps, &suites, &mut ended, crew);
            // However that ended: nothing of the stack stays.
            let host = self.host.clone();
            let allowed = allowed(&host, &journal.state().devices, &names(&key)?);
            Builder { host, allowed, journal }.undo_all(&mut Through(crew))?;
            match went {
                Ok(made) => complete.extend(made),
                Err(NotBuilt::Stopped) => {
                    ended.interrupted = true;
                    break;
                }
                Err(NotBuilt::Failed(why)) => {
                    crew.tell(&format!("stack {} is left out: {why}", one.number));
                    journal.add(&Entry::Failed { stack: one.number, why: why.clone() })?;
                    ended.failed.push((one.number, why));
                }
                Err(NotBuilt::End(error)) => return Err(error),
            }
            if ended.interrupted {
                break;
            }
        }
        ended.complete = u32::try_from(crew.complete(&key)?.len()).unwrap_or(u32::MAX);
        ended.rebuilt =
            journal.state().rebuilt.iter().map(|(k, ns)| (*k, ns / 1_000_000_000)).collect();
        if !ended.interrupted {
            let host = self.host.clone();
            let allowed = allowed(&host, &journal.state().devices, &names(&key)?);
            Builder { host, allowed, journal }.blank()?;
            journal.add(&Entry::Ended { complete: ended.complete == ended.of })?;
        }
        Ok(ended)
    }

    /// Builds a stack and makes its runs; places of those that came to their end.
    fn stack(
        &self,
        journal: &mut JournalFile,
        one: &PlannedStack,
        steps: &[Step],
        suites: &[usize],
        ended: &mut Ended,
        crew: &mut dyn Crew,
    ) -> Result<Vec<u32>, NotBuilt> {
        let key = journal.state().begins.key.clone();
        let names = names(&key)?;
        let allowed = allowed(&self.host, &journal.state().devices, &names);
        // The state to measure in comes last, when there are files.
        let healthy =
            steps.iter().position(|step| step.stage == Stage::State).unwrap_or(steps.len());
        let (first, state) = steps.split_at(healthy);
        if !steps.is_empty() {
            // Somebody may have mounted one meanwhile.
            self.look(&|path| known_as(journal, path))?;
            let mut builder = Builder {
                host: self.host.clone(),
                allowed: allowed.clone(),
                journal: &mut *journal,
            };
            builder.build(one.number, first, 0, true, &mut Through(crew))?;
            let odd = builder.check(first);
            if !odd.is_empty() {
                return Err(NotBuilt::Failed(format!("not what was planned: {}", odd.join("; "))));
            }
        }
        journal.add(&Entry::Built { stack: one.number })?;
        let mut made = Vec::new();
        let mut filling: Option<(Wait, Instant)> = None;
        let mut is_in_state = state.is_empty();
        for &suite in suites {
            if crew.stops() {
                return Err(NotBuilt::Stopped);
            }
            let part = self.part(one, suite, &names, journal)?;
            let number = part.part.number;
            let mut ready = || {
                if std::mem::replace(&mut is_in_state, true) {
                    return Ok(());
                }
                let mut builder = Builder {
                    host: self.host.clone(),
                    allowed: allowed.clone(),
                    journal: &mut *journal,
                };
                let begun = Instant::now();
                let mut nobody = crate::study::builder::Quietly;
                let built = builder.build(one.number, state, healthy, false, &mut nobody);
                let wait = state.iter().rev().find_map(|step| step.waits_for.clone());
                filling = wait.map(|wait| (wait, begun));
                built.map_err(|error| match error {
                    NotBuilt::End(error) => error,
                    NotBuilt::Failed(why) => PlayError::Undo { what: "the state".to_owned(), why },
                    NotBuilt::Stopped => PlayError::Undo {
                        what: "the state".to_owned(),
                        why: "it was ended".to_owned(),
                    },
                })
            };
            let measured = crew.measure(part, &mut ready);
            let outcome = match measured {
                Ok(measured) => measured.outcome,
                Err(PlayError::Run(error)) if error.kind() != crate::ErrorKind::Store => {
                    return Err(NotBuilt::Failed(error.to_string()));
                }
                Err(PlayError::Undo { what, why }) => {
                    return Err(NotBuilt::Failed(format!("{what}: {why}")));
                }
                Err(error) => return Err(error.into()),
            };
            ended.mismatches |= outcome.mismatches;
            ended.troubled |= outcome.failed_visits > 0
                || outcome.hanging_visits > 0
                || outcome.state == RunState::Failed;
            if outcome.state == RunState::Interrupted {
                return Err(NotBuilt::Stopped);
            }
            journal.add(&Entry::Measured {
                number,
                run: outcome.run.clone(),
                state: outcome.state.name().to_owned(),
            })?;
            made.push(number);
        }
        if let Some((wait, begun)) = filling.filter(|_| is_rebuilding(one)) {
            crew.tell("measured; waiting for the rebuild to come to its end");
            let mut builder = Builder { host: self.host.clone(), allowed, journal: &mut *journal };
            builder.wait(&wait, &mut Through(crew))?;
            let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            journal.add(&Entry::Rebuilt { stack: one.number, took_ns })?;
        }
        Ok(made)
    }

    /// What the run of a suite on a stack is.
    fn part<'s>(
        &self,
        one: &'s PlannedStack,
        suite: usize,
        names: &Names,
        journal: &mut JournalFile,
    ) -> Result<Part<'s>, PlayError> {
        let mut consent = Consent::default();
        let target = match &one.stack {
            Stack::Plain(target) => TargetName::parse(target.as_ref())?,
            Stack::Built(spec) if spec.file_system.is_some() => {
                let mount = PathBuf::from(names.mount_point());
                consent.own_mounts = vec![mount.clone()];
                if spec.wal.is_some() {
                    consent.own_mounts.push(PathBuf::from(names.wal().mount_point()));
                }
                TargetName::Path(mount.join(DATA))
            }
            Stack::Built(spec) => {
                let top = top_device(spec, names).map(|device| PathBuf::from(device.as_str()));
                let path = top.unwrap_or_default();
                consent.destroy = vec![path.clone()];
                consent.even_though_signature = true;
                let devices = spec.devices().into_iter().cloned().collect();
                journal.add(&Entry::Writes { devices })?;
                TargetName::Path(path)
            }
        };
        Ok(Part {
            stack: one,
            suite,
            target,
            consent,
            seed: self.study.seed_of_suite(suite),
            part: PartOf {
                group: names.key().to_owned(),
                list: self.study.name.clone(),
                number: self.study.run_number(one, suite),
                of: self.study.runs(),
                study: Some(OfStudy {
                    stack: one.number,
                    levels: one.levels.clone(),
                    again: one.again,
                }),
            },
        })
    }
}

/// What a journal says of a device.
fn known_as(journal: &JournalFile, path: &str) -> Known {
    let device = DeviceId::new(path);
    match journal.state().found(&device) {
        Some(found) if !found.overridden.is_empty() => Known::Overridden,
        Some(_) if journal.state().has_written(&device) => Known::Ours,
        _ => Known::No,
    }
}

fn is_rebuilding(one: &PlannedStack) -> bool {
    matches!(&one.stack, Stack::Built(spec) if spec.state == ArrayState::Rebuilding)
}
