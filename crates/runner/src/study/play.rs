//! The loop: build, verify, measure, tear down.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use layout::capacity::{smallest_member, used_of_member};
use layout::steps::{build, top_device};
use layout::{ArrayState, DeviceId, Maker, Names, StackSpec, Stage, Step};
use record::{OfStudy, PartOf, RunState, Warning};
use stack::{Consent, Host};
use study::journal::{Begins, Entry, Found, Rebuild, VERSION};
use study::{On, PlannedStack, Stack, Study};

use crate::several::Identity;
use crate::study::builder::{Builder, Listener, NotBuilt, allowed};
use crate::study::clean::remove_directories;
use crate::study::devices::{facts_of, hold};
use crate::study::ours::{self, Ours};
use crate::study::states::{Moments, Place, States};
use crate::study::{Device, JournalFile, Known, Override, PlayError, judge};
use crate::{Outcome, RunError, TargetName};

/// The file that suites use on a file system of ours.
const DATA: &str = "plimsoll.dat";
/// The file of the log, of suites that have files for both.
const LOG: &str = "plimsoll-log.dat";

/// A run that is to be made.
pub struct Part<'a> {
    /// On which stack.
    pub stack: &'a PlannedStack,
    /// Which of the study's suites, from 0.
    pub suite: usize,
    /// What to measure, all at once.
    pub targets: Vec<TargetName>,
    /// What may be written there besides what any run may.
    pub consent: Consent,
    /// Where the run's randomness comes from.
    pub seed: u64,
    /// Its place in the study.
    pub part: PartOf,
}

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
    ///
    /// * `moments`: is told when its files are there, and before each visit.
    fn measure(&mut self, part: Part<'_>, moments: &mut dyn Moments)
    -> Result<Measured, PlayError>;
    /// Stores something besides with a run.
    fn note(&mut self, run: &str, warning: &Warning) -> Result<(), RunError>;
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
    /// Its suites in their order: name and text.
    pub suites: Vec<(String, String)>,
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
    /// Members that were filled anew, by stack.
    pub rebuilt: Vec<(u32, Vec<Rebuild>)>,
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
        let _held = self.hold()?;
        let devices = self.look(&|_| Known::No)?;
        self.can_build(&devices, key)?;
        let begins = Begins {
            version: VERSION,
            key: key.to_owned(),
            name: self.study.name.clone(),
            file: self.file.display().to_string(),
            text: self.text.to_owned(),
            suites: self.suites.iter().map(|(_, text)| text.clone()).collect(),
            seed: self.study.seed,
            started_unix_ns: now,
            program: self.program.clone(),
        };
        let mut journal = JournalFile::create(&crate::study::directory(&self.store), begins)?;
        for device in &devices {
            self.note(&mut journal, device)?;
        }
        self.play(&mut journal, &devices, crew)
    }

    /// Notes a device as it is before anything is written to it.
    fn note(&self, journal: &mut JournalFile, device: &Device) -> Result<(), PlayError> {
        journal.add(&noted(device))?;
        if device.blank {
            return Ok(());
        }
        ours::note(&self.host, journal, &DeviceId::new(&device.path), false)
    }

    /// Goes on with one that was broken off: what it left is taken back, and built again.
    pub fn resume(&self, path: &Path, crew: &mut dyn Crew) -> Result<Ended, PlayError> {
        let mut journal = JournalFile::open(path)?;
        let _held = self.hold()?;
        if journal.state().begins.text != self.text {
            return Err(PlayError::Changed { file: self.file.display().to_string() });
        }
        let then = &journal.state().begins.suites;
        let changed = self.suites.iter().zip(then).find(|((_, now), then)| now != *then);
        if let Some(((name, _), _)) = changed {
            return Err(PlayError::Changed { file: format!("suite {name}") });
        }
        let key = journal.state().begins.key.clone();
        let allowed = allowed(&self.host, &journal.state().devices, &names(&key)?);
        if !journal.state().is_clean() {
            crew.tell("taking back what was left when it was broken off");
        }
        let mut builder = Builder::new(self.host.clone(), allowed, &mut journal);
        builder.undo_all(&mut Through(crew))?;
        let known = journal.state().devices.clone();
        let devices =
            self.look(&|path| Ours { host: &self.host, state: journal.state() }.known_as(path))?;
        for device in &devices {
            let found = known.iter().find(|found| found.device.as_str() == device.path);
            if found.is_none() && journal.state().is_untouched() {
                // Killed while its devices were noted, before anything was done to any.
                self.note(&mut journal, device)?;
                continue;
            }
            let why = match found {
                None => Some("the study began without it".to_owned()),
                Some(found) => found.identity.differs(&device.known_by()),
            };
            if let Some(why) = why {
                return Err(PlayError::Exchanged { device: device.path.clone(), why });
            }
            // What the operator gives away is as if the study had left it there.
            if !device.overridden.is_empty() {
                ours::note(&self.host, &mut journal, &DeviceId::new(&device.path), false)?;
            }
        }
        self.can_build(&devices, &key)?;
        self.play(&mut journal, &devices, crew)
    }

    /// Its devices, held against other studies.
    fn hold(&self) -> Result<Vec<std::fs::File>, PlayError> {
        if !self.study.builds() {
            return Ok(Vec::new());
        }
        hold(&self.host, self.study.devices.all().map(String::as_str))
    }

    /// Whether every command of every stack is one that will be done, whether no two of its
    /// targets are one, and whether its files can fit.
    pub fn check_plan(&self, devices: &[Device], key: &str) -> Result<(), PlayError> {
        one_target_each(self.study)?;
        let paths = devices.iter().map(|device| device.path.clone()).collect();
        let queues = devices.iter().map(|device| device.identity.disk.clone()).collect();
        let allowed = stack::build::Allowed::new(paths, queues, key, Names::MOUNT_ROOT);
        for (number, steps) in steps_of(self.study, devices, key)? {
            for step in &steps {
                allowed.check(&step.action).map_err(|error| PlayError::Words {
                    number,
                    title: step.what.clone(),
                    why: error.to_string(),
                })?;
            }
        }
        let size = |path: &str| {
            let device = devices.iter().find(|device| device.path == path);
            device.map(|device| device.identity.size)
        };
        self.study.too_small(size).map_or(Ok(()), |found| Err(PlayError::TooSmall(found)))
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
            return one_target_each(self.study);
        }
        let user = rustix::process::geteuid();
        if !user.is_root() {
            return Err(PlayError::NotRoot(user.as_raw()));
        }
        self.check_plan(devices, key)?;
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
            // What was broken for one suite is made whole for the next: each has files that were
            // written to a healthy array.
            let ground = Ground { steps, devices };
            let at_once = if state_of(one).is_healthy() { suites.len() } else { 1 };
            for suites in suites.chunks(at_once.max(1)) {
                let went = self.stack(journal, one, ground, suites, &mut ended, crew);
                // However that ended: nothing of the stack stays. Where nothing new can be written
                // down there is room to write what is taken back; what lost its journal has none.
                let is_at_end = matches!(&went, Err(NotBuilt::End(PlayError::Journal { .. })));
                let host = self.host.clone();
                let allowed = allowed(&host, &journal.state().devices, &names(&key)?);
                let mut builder = Builder::new(host, allowed, &mut *journal);
                match (builder.tear_down(is_at_end, &mut Through(crew)), &went) {
                    (Ok(()), _) => {}
                    // It is in the way of taking back as well: what comes first tells most.
                    (Err(error), Err(NotBuilt::End(PlayError::InTheWay { .. })))
                        if !matches!(error, PlayError::Journal { .. }) =>
                    {
                        crew.tell(&error.to_string());
                    }
                    (Err(error), _) => return Err(error),
                }
                match went {
                    Ok(made) => complete.extend(made),
                    Err(NotBuilt::Stopped) => ended.interrupted = true,
                    Err(NotBuilt::Failed(why)) => {
                        crew.tell(&format!("stack {} is left out: {why}", one.number));
                        journal.add(&Entry::Failed { stack: one.number, why: why.clone() })?;
                        ended.failed.push((one.number, why));
                        break;
                    }
                    Err(NotBuilt::End(error)) => return Err(error),
                }
                if ended.interrupted {
                    break;
                }
            }
            if ended.interrupted {
                break;
            }
        }
        ended.complete = u32::try_from(crew.complete(&key)?.len()).unwrap_or(u32::MAX);
        ended.rebuilt = journal.state().rebuilt.clone().into_iter().collect();
        if !ended.interrupted {
            let host = self.host.clone();
            let allowed = allowed(&host, &journal.state().devices, &names(&key)?);
            let mut builder = Builder::new(host, allowed, &mut *journal);
            builder.tear_down(true, &mut Through(crew))?;
            // What becomes blank again is as it was; all else is worth a word.
            builder.told.iter().filter(|line| line.contains("left alone")).for_each(|line| {
                crew.tell(line);
            });
            remove_directories(&names(&key)?).iter().for_each(|why| crew.tell(why));
            journal.add(&Entry::Ended { complete: ended.complete == ended.of })?;
        }
        Ok(ended)
    }

    /// Builds a stack and makes its runs; places of those that came to their end.
    fn stack(
        &self,
        journal: &mut JournalFile,
        one: &PlannedStack,
        Ground { steps, devices }: Ground<'_>,
        suites: &[usize],
        ended: &mut Ended,
        crew: &mut dyn Crew,
    ) -> Result<Vec<u32>, NotBuilt> {
        let key = journal.state().begins.key.clone();
        let names = names(&key)?;
        let allowed = allowed(&self.host, &journal.state().devices, &names);
        let spec = match &one.stack {
            Stack::Built(spec) => Some(spec.as_ref()),
            Stack::Plain(_) => None,
        };
        // The state to measure in comes last, when there are files.
        let healthy =
            steps.iter().position(|step| step.stage == Stage::State).unwrap_or(steps.len());
        let (first, state) = steps.split_at(healthy);
        if spec.is_some() {
            let mut builder = Builder::new(self.host.clone(), allowed.clone(), &mut *journal);
            builder.build(one.number, first, 0, true, &mut Through(crew))?;
            let odd = builder.check(first);
            if !odd.is_empty() {
                return Err(NotBuilt::Failed(format!("not what was planned: {}", odd.join("; "))));
            }
        }
        journal.add(&Entry::Built { stack: one.number })?;
        let place = Place {
            host: &self.host,
            allowed: &allowed,
            names: &names,
            stack: one.number,
            spec,
            steps: state,
            first: healthy,
            bytes: spec.and_then(|spec| filled(spec, devices)),
        };
        let mut made = Vec::new();
        for &suite in suites {
            if crew.stops() {
                return Err(NotBuilt::Stopped);
            }
            if spec.is_some() && Some(&suite) != suites.first() {
                let builder = Builder::new(self.host.clone(), allowed.clone(), &mut *journal);
                let odd = builder.check(first);
                if !odd.is_empty() {
                    let odd = odd.join("; ");
                    return Err(NotBuilt::Failed(format!("not what was built any more: {odd}")));
                }
            }
            if let Some(spec) = spec {
                let devices: Vec<DeviceId> = spec.devices().into_iter().cloned().collect();
                let builder = Builder::new(self.host.clone(), allowed.clone(), &mut *journal);
                builder.are_free("measure", &devices)?;
            }
            let part = self.part(one, suite, &names, journal)?;
            let number = part.part.number;
            let mut states = States::new(place, &mut *journal);
            let measured = crew.measure(part, &mut states);
            // A device that was written itself has no signature that tells whose bytes these are.
            if let Some(spec) = spec.filter(|spec| spec.file_system.is_none()) {
                let devices: Vec<DeviceId> = spec.devices().into_iter().cloned().collect();
                let allowed = allowed.clone();
                let mut builder = Builder::new(self.host.clone(), allowed, states.journal);
                builder.note_unshared(&devices)?;
            }
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
            states.journal.add(&Entry::Measured {
                number,
                run: outcome.run.clone(),
                state: outcome.state.name().to_owned(),
            })?;
            made.push(number);
            // The next thing to write to them is what takes the stack apart.
            if let Some(spec) = spec {
                let devices: Vec<DeviceId> = spec.devices().into_iter().cloned().collect();
                let allowed = allowed.clone();
                let builder = Builder::new(self.host.clone(), allowed, states.journal);
                builder.are_free("go on after the run", &devices)?;
            }
            for rebuild in states.end(&mut Through(crew))? {
                let warning = Warning::new("rebuilt", told(&rebuild));
                crew.note(&outcome.run, &warning).map_err(PlayError::from)?;
            }
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
        let targets = match &one.stack {
            Stack::Plain(target) => vec![TargetName::parse(target.as_ref())?],
            Stack::Built(spec) if spec.file_system.is_some() => {
                let mount = PathBuf::from(names.mount_point());
                consent.own_mounts = vec![mount.clone()];
                let log = spec.wal.as_ref().map(|_| PathBuf::from(names.wal().mount_point()));
                consent.own_mounts.extend(log.clone());
                let log = log.as_ref().unwrap_or(&mount);
                let paths = match self.study.measure.suites.get(suite).map(|suite| suite.on) {
                    Some(On::Wal) => vec![log.join(DATA)],
                    Some(On::WalAndData) => vec![log.join(LOG), mount.join(DATA)],
                    Some(On::Data) | None => vec![mount.join(DATA)],
                };
                paths.into_iter().map(TargetName::Path).collect()
            }
            Stack::Built(spec) => {
                let top = top_device(spec, names).map(|device| PathBuf::from(device.as_str()));
                let path = top.unwrap_or_default();
                consent.destroy = vec![path.clone()];
                consent.even_though_signature = true;
                let devices = spec.devices().into_iter().cloned().collect();
                journal.add(&Entry::Writes { devices })?;
                vec![TargetName::Path(path)]
            }
        };
        let number = self.study.run_number(one, suite);
        Ok(Part {
            stack: one,
            suite,
            targets,
            consent,
            seed: self.study.seed_of_run(number),
            part: PartOf {
                group: names.key().to_owned(),
                list: self.study.name.clone(),
                number,
                of: self.study.runs(),
                study: Some(OfStudy {
                    stack: one.number,
                    levels: one.levels.clone(),
                    again: one.again,
                    state: Some(state_of(one))
                        .filter(|state| !state.is_healthy())
                        .map(|state| state.name().to_owned()),
                }),
            },
        })
    }
}

/// One file, directory or device by two names would be measured as if it were two.
fn one_target_each(study: &Study) -> Result<(), PlayError> {
    let mut seen: Vec<(Option<Identity>, Option<PathBuf>, &str)> = Vec::new();
    for one in &study.stacks {
        let Stack::Plain(target) = &one.stack else { continue };
        let text: &str = target.as_ref();
        let identity = Identity::of(Path::new(text)).ok().flatten();
        let path = std::fs::canonicalize(text).ok();
        let is_one = |(known, place, other): &&(Option<Identity>, Option<PathBuf>, &str)| {
            let same = identity.is_some() && *known == identity || path.is_some() && *place == path;
            same && *other != text
        };
        if let Some((_, _, other)) = seen.iter().find(is_one) {
            return Err(PlayError::OneTarget { one: (*other).to_owned(), other: text.to_owned() });
        }
        seen.push((identity, path, text));
    }
    Ok(())
}

/// What a stack is built of, and how.
#[derive(Clone, Copy)]
struct Ground<'a> {
    steps: &'a [Step],
    devices: &'a [Device],
}

/// A device as it is before anything is written to it.
fn noted(device: &Device) -> Entry {
    Entry::Device(Box::new(Found {
        device: DeviceId::new(&device.path),
        identity: device.known_by(),
        blank: device.blank,
        overridden: device.overridden.clone(),
    }))
}

fn state_of(one: &PlannedStack) -> ArrayState {
    match &one.stack {
        Stack::Built(spec) => spec.state,
        Stack::Plain(_) => ArrayState::Healthy,
    }
}

/// Bytes of a member that a rebuild fills; `None` for makers that fill only what is stored.
fn filled(spec: &StackSpec, devices: &[Device]) -> Option<u64> {
    let whole = |leg: &layout::Leg| matches!(leg.maker, Maker::Md | Maker::Lvm);
    let leg = spec.legs.first().filter(|leg| whole(leg))?;
    let (_, member) = smallest_member(spec, &facts_of(devices))?;
    let of_member = used_of_member(spec, member).get();
    let members = match leg.level {
        // A whole half is filled.
        Some(layout::Level::Raid01) => leg.members.len() / 2,
        _ => 1,
    };
    Some(of_member.saturating_mul(members as u64)).filter(|bytes| *bytes > 0)
}

/// A rebuild in words: its time, its rate, and how much of it was measured.
pub fn told(rebuild: &Rebuild) -> String {
    let seconds = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
    let rate = match (rebuild.bytes, rebuild.rate()) {
        (Some(bytes), Some(rate)) => {
            format!(", {} at {:.1} MB/s", units::Bytes::new(bytes), rate / 1e6)
        }
        _ => String::new(),
    };
    let share = if rebuild.measured_ns >= rebuild.took_ns {
        "all of that while this run was measured".to_owned()
    } else {
        format!("{} of that while this run was measured", seconds(rebuild.measured_ns))
    };
    format!("its member was filled in {}{rate}; {share}", seconds(rebuild.took_ns))
}
