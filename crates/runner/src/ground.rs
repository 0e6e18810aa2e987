//! What a run stands on while it runs: files made and opened, twins built, counters read.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use device::{FileIndex, Memory, MemoryShape, Op};
use record::{LedgerEntry, VisitRecord, Warning};
use rustix::fs::FlockOperation;
use stack::{Action, DeviceCounters, Host, Ledger, Mount, Permit};
use suite::model::{
    Access, Backend, CacheStep, Cell, Operation, StartFile, Stream, Suite, WriteThrough,
};
use units::{ByteOffset, Bytes, Nanos};
use uring::{
    Allow, Choice, Create, DirectWish, FileSet, Fill, MonotonicClock, OpenSpec, Requested, Spot,
};

use crate::anew::{self, Anew};
use crate::directory::Directories;
use crate::own::{self, Identity, Own, own};
use crate::prepare::{Ground, Paths, copies_in_kernel};
use crate::quiet::Level;
use crate::visit::Stage;
use crate::watch::Watch;
use crate::{RunError, directory, layers, left_behind, taken};

/// The ground, ready to be played on.
#[derive(Debug)]
pub(crate) enum Field {
    Files(Box<Files>),
    /// A twin, and its counters before the visit.
    Twin(Option<Stage>, Option<Box<layers::Snapshot>>),
}

#[derive(Debug)]
pub(crate) struct Files {
    paths: Paths,
    names: Vec<PathBuf>,
    /// Of each.
    file_size: Bytes,
    opened: HashMap<OpenKey, Arc<FileSet>>,
    ledger: Ledger,
    before: Vec<DeviceCounters>,
    cached_before: Option<f64>,
    /// After the files were closed, before the locks are let go.
    leaving: Leaving,
    /// Whether others leave the files alone.
    watch: Watch,
    /// Holds block devices and locks files for us alone as long as the run lasts; one a file where
    /// they are written.
    guards: Vec<File>,
    /// What each name stood for when the run took it, where it is written.
    identities: Vec<Option<Identity>>,
    /// How long each is to be, while they begin empty and grow.
    growing: Option<Bytes>,
}

/// What a run has taken of its files so far.
#[derive(Debug, Default)]
struct Taken {
    leaving: Leaving,
    guards: Vec<File>,
    identities: Vec<Option<Identity>>,
}

impl Taken {
    /// Makes or opens a file, and locks it.
    ///
    /// * `owner`: of one that goes with the run, the run's own number.
    fn take(
        &mut self,
        permit: &Permit,
        paths: &Paths,
        size: Bytes,
        owner: Option<u64>,
    ) -> Result<(), RunError> {
        let path = permit.path.as_path();
        let mut identity = None;
        match permit.action {
            Action::Read => {}
            // Held by the first side; if it made the file there was nothing to confirm.
            _ if paths.shared => identity = Some(taken::shared(permit)?),
            Action::Create | Action::ScratchInside => {
                let (directory, name) = taken::directory(permit)?;
                let file = anew::make(&directory, name, path, size, owner)?;
                let own = own(path, &file, owner)?;
                identity = Some(own.identity);
                self.leaving.made.push(own.clone());
                self.leaving.of(owner.is_some()).push(own);
                self.guards.push(file);
            }
            Action::Overwrite => {
                let (file, ours) = taken::overwritten(permit, paths)?;
                give_length(&file, path, size, ours, owner)?;
                let own = own(path, &file, owner)?;
                identity = Some(own.identity);
                if ours {
                    self.leaving.of(owner.is_some()).push(own);
                }
                self.guards.push(file);
            }
            Action::Destroy => {
                let file = taken::destroyed(permit, paths)?;
                identity = Some(own(path, &file, None)?.identity);
                self.guards.push(file);
            }
        }
        // What was taken is known by its descriptor from here on.
        permit.held().let_go();
        self.identities.push(identity);
        Ok(())
    }
}

/// Streams that open their files alike share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OpenKey {
    direct: bool,
    write_through: u8,
    write: bool,
}

/// So much of a copy is looked at.
const COPY_SAMPLE: Bytes = Bytes::mib(64);

/// How long that is waited for where requests did not come back: it may not come back either, and
/// the results are not printed yet.
const LEAVING: Duration = Duration::from_secs(2);

/// What is done to our own files when the run has done with them, however it ends: scratch files
/// go, others are marked as released.
#[derive(Debug, Default)]
struct Leaving {
    scratch: Vec<Own>,
    kept: Vec<Own>,
    /// Those of both that this run made.
    made: Vec<Own>,
    /// Goes when it is dropped.
    directories: Option<Directories>,
    hangs: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let (scratch, kept) = (std::mem::take(&mut self.scratch), std::mem::take(&mut self.kept));
        let directories = self.directories.take();
        let nothing = scratch.is_empty() && kept.is_empty() && directories.is_none();
        if !self.hangs || nothing {
            // Nobody is left to tell. What stays has its mark, and `rm` of the run finds it.
            leave(&scratch, &kept);
            return;
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        let leaving = move || {
            leave(&scratch, &kept);
            drop(directories);
            let _ = sender.send(());
        };
        // Without a thread the files stay as they are; they carry the mark of a run under way.
        if std::thread::Builder::new().name("leaving".to_owned()).spawn(leaving).is_ok() {
            let _ = receiver.recv_timeout(LEAVING);
        }
    }
}

impl Leaving {
    /// A file that is ours, and so in either list.
    fn known(&self, path: &Path) -> Option<&Own> {
        self.scratch.iter().chain(&self.kept).find(|known| known.path == path)
    }

    /// Removes what was made for a run that cannot begin.
    fn undo(&mut self) {
        for made in self.made.drain(..) {
            // Why it cannot begin is what to tell.
            let _ = made.remove();
        }
    }

    /// Does it now, and says what could not be done.
    fn leave(&mut self) -> Vec<Warning> {
        let (scratch, kept) = (std::mem::take(&mut self.scratch), std::mem::take(&mut self.kept));
        let mut troubles = leave(&scratch, &kept);
        if let Some(Err(trouble)) = self.directories.take().map(Directories::leave) {
            troubles.push(trouble);
        }
        let told = |trouble: RunError| Warning::new("left-behind", trouble.to_string());
        troubles.into_iter().map(told).collect()
    }

    /// A file of ours is another one by the same name now.
    fn renew(&mut self, path: &Path, identity: Identity) {
        let all = self.scratch.iter_mut().chain(&mut self.kept);
        for known in all.filter(|known| known.path == path) {
            known.identity = identity;
        }
    }

    /// The list of those that go, or of those that stay.
    fn of(&mut self, goes: bool) -> &mut Vec<Own> {
        if goes { &mut self.scratch } else { &mut self.kept }
    }
}

/// What could not be removed.
fn leave(scratch: &[Own], kept: &[Own]) -> Vec<RunError> {
    kept.iter().for_each(Own::release);
    let remove = |own: &Own| own.remove().map_err(file_error("remove", &own.path)).err();
    scratch.iter().filter_map(remove).collect()
}

impl Field {
    /// Makes files, builds twins. From here on things outside change.
    ///
    /// * `key`: the run's own number, by which what it leaves is known.
    pub(crate) fn enter(
        ground: Ground,
        suite: &Suite,
        cells: &[&Cell],
        seed: u64,
        keep: bool,
        key: u64,
    ) -> Result<Self, RunError> {
        let slots = cells.iter().map(|cell| in_flight(&cell.streams)).max().unwrap_or(1);
        let slots = u32::try_from(slots).unwrap_or(u32::MAX);
        let stage = match ground {
            Ground::Paths(paths) => {
                let mut files = Files::enter(*paths, suite, keep, key)?;
                if directory::wanted(suite).next().is_some() {
                    let beside = &files.paths.target.path.resolved;
                    match Directories::enter(beside, key) {
                        Ok(entered) => files.leaving.directories = Some(entered),
                        Err(error) => {
                            files.leaving.undo();
                            return Err(error);
                        }
                    }
                }
                return Ok(Self::Files(Box::new(files)));
            }
            Ground::Null => Stage::Null,
            Ground::Memory => {
                Stage::Memory(Box::new(Memory::new(
                    MonotonicClock,
                    MemoryShape {
                        files: suite.files.count,
                        file_size: suite.files.size,
                        slots,
                        // Each visit has its own.
                        buffer: Bytes::ZERO,
                        tick: Nanos::ZERO,
                    },
                )))
            }
            Ground::Model(spec) => {
                let device = spec.open(slots, seed).map_err(|error| RunError::Model {
                    path: PathBuf::from(&spec.name),
                    why: error.to_string(),
                })?;
                Stage::Model(Box::new(device))
            }
        };
        Ok(Self::Twin(Some(stage), None))
    }

    /// The stage for a visit to `cell`; `None` if a twin was lost in an earlier visit.
    pub(crate) fn stage(&mut self, cell: &Cell, seed: u64) -> Result<Option<Stage>, RunError> {
        match self {
            Self::Files(files) => files.stage(cell, seed).map(Some),
            Self::Twin(stage, _) => {
                match stage {
                    Some(Stage::Model(model)) => {
                        model.begin_visit(seed);
                        let through = |s: &Stream| s.write_through != WriteThrough::No;
                        model.write_through(cell.streams.iter().any(through));
                    }
                    Some(Stage::Memory(memory)) => memory.set_buffer(twin_buffer(&cell.streams)),
                    _ => {}
                }
                Ok(match stage {
                    Some(Stage::Null) => Some(Stage::Null),
                    other => other.take(),
                })
            }
        }
    }

    /// Makes what a visit to `cell` finds in its directories, before its time begins. False if the
    /// user wants to stop.
    pub(crate) fn make_files(
        &mut self,
        cell: &Cell,
        stops: &dyn Fn() -> bool,
    ) -> Result<bool, RunError> {
        match self {
            Self::Files(files) => match &mut files.leaving.directories {
                Some(directories) => directories.get_ready(cell, stops),
                None => Ok(true),
            },
            Self::Twin(..) => Ok(true),
        }
    }

    /// What a visit to `cell` made in its directories.
    pub(crate) fn made_files(&mut self, cell: &Cell, visit: &VisitRecord) {
        let Self::Files(files) = self else { return };
        let Some(directories) = &mut files.leaving.directories else { return };
        for (stream, record) in cell.streams.iter().zip(&visit.streams) {
            let own = record.ops.iter().filter(|op| op.op == Op::Create.name());
            directories.made(stream, own.map(|op| op.requests).sum());
        }
    }

    /// What is to be doubted of the copies of a visit.
    pub(crate) fn doubts_of_copies(&mut self, cell: &Cell) -> Vec<Warning> {
        match self {
            Self::Files(files) => files.shared_copies(cell),
            Self::Twin(..) => Vec::new(),
        }
    }

    /// Lets a pause pass on a simulated clock; false where there is none, and it must be waited.
    pub(crate) fn passes(&mut self, pause: Nanos) -> bool {
        match self {
            Self::Twin(Some(stage), _) => stage.passes(pause),
            Self::Files(_) | Self::Twin(None, _) => false,
        }
    }

    /// Has each play on the simulated device of the other from now on; nothing where either has none.
    pub(crate) fn exchange_models(&mut self, other: &mut Self) {
        if let (Self::Twin(ours, _), Self::Twin(theirs, _)) = (self, other)
            && matches!((&ours, &theirs), (Some(Stage::Model(_)), Some(Stage::Model(_))))
        {
            std::mem::swap(ours, theirs);
        }
    }

    /// A twin comes back from its visit.
    pub(crate) fn give_back(&mut self, back: Option<Stage>) {
        if let Self::Twin(stage, _) = self
            && back.is_some()
        {
            *stage = back;
        }
    }

    /// Reads the counters before a visit.
    pub(crate) fn mark_before(&mut self, stage: Option<&Stage>) {
        match self {
            Self::Files(files) => {
                files.cached_before = files.cached_share();
                files.before = files.ledger.snapshot();
            }
            Self::Twin(_, before) => *before = stage.and_then(layers::Snapshot::of).map(Box::new),
        }
    }

    /// The kernel's counters since [`Self::mark_before`], and what is not known of them.
    pub(crate) fn ledger(&self) -> (Vec<LedgerEntry>, Vec<Warning>) {
        match self {
            Self::Files(files) => {
                let found = stack::difference(&files.before, &files.ledger.snapshot());
                let warnings = found
                    .unknown
                    .iter()
                    .map(|(name, why)| {
                        Warning::new("ledger-unknown", format!("counters of {name}: {why}"))
                    })
                    .collect();
                (found.entries, warnings)
            }
            Self::Twin(stage, before) => {
                let after = stage.as_ref().and_then(layers::Snapshot::of);
                let entries = match (before, after) {
                    (Some(before), Some(after)) => after.since(before),
                    _ => Vec::new(),
                };
                (entries, Vec::new())
            }
        }
    }

    /// What others did to the files since the last visit; nothing is asked of a place where
    /// requests hang.
    pub(crate) fn changes(&mut self, trims: bool) -> Vec<Warning> {
        match self {
            Self::Files(files) if !files.leaving.hangs => {
                files.watch.look(trims, files.growing.is_some())
            }
            _ => Vec::new(),
        }
    }

    /// Lets the files begin empty, before a visit.
    ///
    /// * `size`: how long each is otherwise.
    pub(crate) fn begin_anew(&mut self, how: StartFile, size: Bytes) -> Result<(), RunError> {
        match self {
            Self::Files(files) if how != StartFile::Keep => files.begin_anew(how, size),
            // A twin has no length that writes could extend.
            _ => Ok(()),
        }
    }

    /// Gives files that began empty their length again, after the visit.
    pub(crate) fn end_anew(&mut self) -> Result<(), RunError> {
        match self {
            // Where requests hang, so might we.
            Self::Files(files) if !files.leaving.hangs => files.end_anew(),
            _ => Ok(()),
        }
    }

    /// Removes what goes with the run and lets go of the rest, before the run is said to be over:
    /// killed meanwhile it can be resumed. What could not be removed is a warning.
    pub(crate) fn leave(&mut self) -> Vec<Warning> {
        match self {
            Self::Files(files) if !files.leaving.hangs => {
                files.opened.clear();
                files.leaving.leave()
            }
            // What is asked of a place where requests hang may hang, too: it is done at the end.
            _ => Vec::new(),
        }
    }

    /// Requests did not come back: nor may what else is asked of the same place.
    pub(crate) fn hangs(&mut self) {
        if let Self::Files(files) = self {
            files.leaving.hangs = true;
        }
    }

    /// The smallest unit of direct I/O as the opened files have it.
    pub(crate) fn direct_unit(&mut self, cell: &Cell) -> Result<Option<Bytes>, RunError> {
        let Self::Files(files) = self else { return Ok(None) };
        let Some(stream) = cell.streams.iter().find(|s| s.direct) else { return Ok(None) };
        Ok(files.open(stream)?.offset_alignment())
    }

    /// The unit of direct I/O on files that are there now, for who reads the figures.
    pub(crate) fn alignment(&self) -> Option<u32> {
        let Self::Files(files) = self else { return None };
        let units = files.paths.targets().iter().zip(files.firsts());
        let units =
            units.map(|(target, path)| stack::direct_alignment(path, &target.devices).unit());
        let unit = units.collect::<Option<Vec<Bytes>>>()?.into_iter().max()?;
        u32::try_from(unit.get()).ok()
    }

    /// Cache handling before a visit.
    pub(crate) fn caches(&mut self, steps: &[CacheStep]) -> Result<(), RunError> {
        let Self::Files(files) = self else { return Ok(()) };
        for &step in steps {
            files.cache_step(step)?;
        }
        Ok(())
    }

    /// Whether there is a page cache that direct I/O could go around.
    pub(crate) fn has_page_cache(&self) -> bool {
        matches!(self, Self::Files(files) if !files.paths.character)
    }

    /// Thousandths of the files' first 64 MiB that are in the page cache, before the visit and
    /// now; `None` where there is no such cache or the kernel does not tell.
    pub(crate) fn resident(&self) -> (Option<u32>, Option<u32>) {
        let Self::Files(files) = self else { return (None, None) };
        let thousandths = |share: f64| (share * 1000.0).round() as u32;
        (files.cached_before.map(thousandths), files.cached_share().map(thousandths))
    }

    /// The counters of every device below, to see whether it is idle; `None` on twins and where
    /// one of them is not counted.
    pub(crate) fn levels(&self) -> Option<Vec<Level>> {
        let Self::Files(files) = self else { return None };
        let level = |found: DeviceCounters| {
            let counters = found.counters.ok()?;
            let written = Bytes::new(counters.write_sectors.saturating_mul(512));
            Some(Level { device: found.device, written, in_flight: counters.in_flight })
        };
        files.ledger.snapshot().into_iter().map(level).collect()
    }

    /// Whether it is a simulated device with layers of its own.
    pub(crate) fn is_twin(&self) -> bool {
        matches!(self, Self::Twin(..))
    }

    /// Share of the files' first 64 MiB that was in the page cache before the visit and is now,
    /// where I/O goes around it.
    pub(crate) fn cached_shares(&self) -> Option<(f64, f64)> {
        let Self::Files(files) = self else { return None };
        Some((files.cached_before?, files.cached_share()?))
    }
}

impl Files {
    /// The first file of every target.
    fn firsts(&self) -> impl Iterator<Item = &PathBuf> {
        let each = self.names.len() / self.paths.targets().len().max(1);
        self.names.iter().step_by(each.max(1))
    }

    fn cached_share(&self) -> Option<f64> {
        // The same files, however they were opened.
        let set = self.opened.values().next()?;
        let file = set.files().first()?;
        let sample = file.current_size().ok()??.min(Bytes::mib(64));
        uring::residency(file, ByteOffset::ZERO, sample).ok().map(|found| found.cached)
    }

    fn enter(paths: Paths, suite: &Suite, keep: bool, key: u64) -> Result<Self, RunError> {
        let names: Vec<PathBuf> = paths.permits.iter().map(|p| p.path.clone()).collect();
        let mut taken = Taken::default();
        for permit in &paths.permits {
            let owner = (paths.is_scratch(&permit.path) && !keep).then_some(key);
            if let Err(error) = taken.take(permit, &paths, suite.files.size, owner) {
                taken.leaving.undo();
                return Err(error);
            }
        }
        for (path, owner) in &paths.stale {
            // Nothing depends on it, and whoever removes that run is told.
            let _ = left_behind::remove(path, *owner);
        }
        // Open files keep their file systems mounted.
        for target in paths.targets().iter().chain([&paths.target]) {
            target.path.held.let_go();
        }
        let Taken { leaving, guards, identities } = taken;
        let ledger = Ledger::new(&Host::this(), &paths.target.devices);
        let before = ledger.snapshot();
        let watch = Watch::of(&names);
        Ok(Self {
            paths,
            names,
            file_size: suite.files.size,
            opened: HashMap::new(),
            ledger,
            before,
            cached_before: None,
            leaving,
            watch,
            guards,
            identities,
            growing: None,
        })
    }

    fn begin_anew(&mut self, how: StartFile, size: Bytes) -> Result<(), RunError> {
        // What is open keeps the space of a file that is removed.
        self.opened.clear();
        self.watch.let_go();
        self.growing = Some(size);
        let held = self.paths.permits.iter().zip(&mut self.guards);
        for ((permit, guard), identity) in held.zip(&mut self.identities) {
            let path = permit.path.as_path();
            let anew = Anew { path, ours: self.leaving.known(path), size };
            match how {
                StartFile::Keep => {}
                StartFile::Truncate => anew.truncate(guard)?,
                StartFile::Remove => {
                    *guard = anew.remake(guard)?;
                    let now = own(path, guard, None)?.identity;
                    *identity = Some(now);
                    self.leaving.renew(path, now);
                }
            }
        }
        self.watch = Watch::of(&self.names);
        Ok(())
    }

    fn end_anew(&mut self) -> Result<(), RunError> {
        let Some(size) = self.growing.take() else { return Ok(()) };
        for (permit, guard) in self.paths.permits.iter().zip(&self.guards) {
            let path = permit.path.as_path();
            Anew { path, ours: self.leaving.known(path), size }.restore(guard)?;
        }
        self.watch = Watch::of(&self.names);
        Ok(())
    }

    /// Takes the locks that had to be let go.
    fn guard_again(&mut self) -> Result<(), RunError> {
        if self.paths.shared {
            return Ok(());
        }
        for (permit, identity) in self.paths.permits.iter().zip(&self.identities) {
            if !matches!(permit.action, Action::Read | Action::Destroy) {
                let Some(identity) = identity else { continue };
                let held = identity.hold(&permit.path)?;
                let file = own::open_held(&held, &permit.path)
                    .map_err(file_error("open for writing", &permit.path))?;
                identity.confirm(&file, &permit.path)?;
                lock(&file, &permit.path)?;
                self.guards.push(file);
            }
        }
        Ok(())
    }

    fn open(&mut self, stream: &Stream) -> Result<Arc<FileSet>, RunError> {
        let direct = stream.direct && !self.paths.character;
        let key = OpenKey {
            direct,
            write_through: stream.write_through as u8,
            write: stream.modifies() && self.paths.writes,
        };
        if let Some(set) = self.opened.get(&key) {
            return Ok(Arc::clone(set));
        }
        let spec = OpenSpec {
            files: self.names.clone(),
            read: true,
            write: key.write,
            direct: if direct { DirectWish::Prefer } else { DirectWish::No },
            write_through: match stream.write_through {
                WriteThrough::No => uring::WriteThrough::No,
                WriteThrough::Data => uring::WriteThrough::Data,
                WriteThrough::DataAndMeta => uring::WriteThrough::DataAndMeta,
            },
            exclusive: false,
            create: Create::No,
        };
        // A name can have been given to another file since: that is not even opened for writing.
        let names = self.names.iter().zip(&self.identities);
        let held = names.map(|(path, identity)| identity.map(|id| id.hold(path)).transpose());
        let held = held.collect::<Result<Vec<Option<OwnedFd>>, RunError>>()?;
        let set = Arc::new(FileSet::open_held(&spec, &held)?);
        for ((path, file), identity) in self.names.iter().zip(set.files()).zip(&self.identities) {
            if let Some(identity) = identity {
                identity.confirm(file, path)?;
            }
        }
        self.opened.insert(key, Arc::clone(&set));
        Ok(set)
    }

    fn stage(&mut self, cell: &Cell, seed: u64) -> Result<Stage, RunError> {
        let mut streams = Vec::with_capacity(cell.streams.len());
        for stream in &cell.streams {
            let directories = self.leaving.directories.as_mut();
            let (files, choice) = match directories.and_then(|all| all.stage(stream)) {
                Some(directory) => (directory?, Choice::Blocking),
                None if copies_in_kernel(stream) => {
                    let files = self.open(stream)?;
                    let (from, to) = self.copied(stream);
                    files.prepare_copies(from, to)?;
                    (files, Choice::Blocking)
                }
                None => (self.open(stream)?, choice(stream.backend)),
            };
            let requested = Requested {
                choice,
                depth: stream.requests_max(),
                buffer_len: buffer_of(stream),
                // The engine fills what is written; what is only read into stays as it is.
                fill: if stream.modifies() {
                    Fill::Incompressible { seed }
                } else {
                    Fill::Untouched
                },
                allow: Allow::default(),
            };
            streams.push((files, requested));
        }
        Ok(Stage::Files(streams))
    }

    /// Where the first copy of a stream comes from, and where it goes.
    fn copied(&self, stream: &Stream) -> (Spot, Spot) {
        let spot = |linear: u64| {
            let size = self.file_size.get().max(1);
            let last = self.names.len().saturating_sub(1) as u64;
            let file = (linear / size).min(last);
            let offset = ByteOffset::new(linear - file * size);
            Spot { file: FileIndex(file as u32), offset }
        };
        let to = stream.copy_to.unwrap_or(Bytes::ZERO);
        (spot(stream.region.start.get()), spot(to.get()))
    }

    /// Whether copies of the visit share blocks with what they were made of, in a sample of them.
    fn shared_copies(&mut self, cell: &Cell) -> Vec<Warning> {
        let mut found = Vec::new();
        for stream in cell.streams.iter().filter(|stream| copies_in_kernel(stream)) {
            let Ok(files) = self.open(stream) else { continue };
            let (_, to) = self.copied(stream);
            let length = stream.region.length.min(COPY_SAMPLE);
            if files.is_shared(to, length) == Some(true) {
                found.push(Warning::new(
                    "reflinked",
                    format!(
                        "stream `{}`: the file system let the copy share blocks with what was \
                         copied: this is no rate of copying",
                        stream.name
                    ),
                ));
            }
        }
        found
    }

    fn cache_step(&mut self, step: CacheStep) -> Result<(), RunError> {
        let failed = |step: &'static str, why: String| RunError::Caches { step, why };
        match step {
            CacheStep::Flush => self.firsts().try_for_each(|first| {
                uring::sync_file_system(first)
                    .map_err(|error| failed("flushing the file system", error.to_string()))
            }),
            CacheStep::Purge => {
                for set in self.opened.values() {
                    uring::purge(set)
                        .map_err(|error| failed("dropping the files' pages", error.to_string()))?;
                }
                Ok(())
            }
            CacheStep::Drop => uring::drop_caches()
                .map_err(|error| failed("dropping the machine's caches", error.to_string())),
            CacheStep::Reopen => {
                self.opened.clear();
                Ok(())
            }
            CacheStep::Remount => {
                self.opened.clear();
                // An open file keeps a file system mounted.
                self.guards.clear();
                self.watch.let_go();
                if let Some(directories) = &mut self.leaving.directories {
                    directories.let_go();
                }
                remount(&self.paths).map_err(|why| failed("mounting anew", why))?;
                self.watch = Watch::of(&self.names);
                if let Some(directories) = &mut self.leaving.directories {
                    directories.hold_again()?;
                }
                self.guard_again()
            }
        }
    }
}

/// Requests in flight while these streams are played together.
pub(crate) fn in_flight(streams: &[Stream]) -> u64 {
    streams.iter().map(|s| u64::from(s.threads) * u64::from(s.requests_max())).sum()
}

/// Length of each buffer of the memory twin, which is one device for all streams.
pub(crate) fn twin_buffer(streams: &[Stream]) -> Bytes {
    streams.iter().map(buffer_of).max().unwrap_or(Bytes::ZERO)
}

/// Bytes of the longest request that has data; a discard has none.
fn buffer_of(stream: &Stream) -> Bytes {
    let classes = stream.mix.classes.iter().filter(|class| class.op != Operation::Trim);
    match &stream.access {
        Access::Replay { .. } => stream.block_size_max(),
        _ if stream.commits() => stream.block_size_max(),
        _ => classes.map(|class| class.block_size).max().unwrap_or(Bytes::ZERO),
    }
}

const fn choice(backend: Backend) -> Choice {
    match backend {
        Backend::Auto => Choice::Auto,
        Backend::IoUring => Choice::IoUring,
        Backend::IoUringSqpoll => Choice::IoUringSqpoll,
        Backend::IoUringIopoll => Choice::IoUringIopoll,
        Backend::Libaio => Choice::Libaio,
        Backend::Blocking => Choice::Blocking,
        Backend::Mmap => Choice::Mmap,
    }
}

pub(crate) fn file_error(
    what: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> RunError {
    move |source| RunError::File { what, path: path.to_path_buf(), source }
}

/// One run at a time writes to a file: the second would measure the first, and neither would know.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), RunError> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).or_else(|error| match error {
        rustix::io::Errno::WOULDBLOCK => Err(RunError::locked(path, stack::lock_holder(file))),
        // No locks on this file system: the check for open writers has to do.
        _ => Ok(()),
    })
}

/// Gives a file its length: exactly if it is ours, which then says so on its mark; another's
/// is only ever made longer.
pub(crate) fn give_length(
    file: &File,
    path: &Path,
    size: Bytes,
    ours: bool,
    owner: Option<u64>,
) -> Result<(), RunError> {
    let now = file.metadata().map_err(file_error("examine", path))?.len();
    if now < size.get() || (ours && now != size.get()) {
        if ours {
            // Killed in between, it is ours at both lengths.
            let most = Bytes::new(now).max(size);
            let value =
                stack::mark_value_growing(file, most).map_err(file_error("examine", path))?;
            own::mark(file, value, owner);
        }
        file.set_len(size.get()).map_err(file_error("give its length to", path))?;
    }
    if ours {
        let value = stack::mark_value(file).map_err(file_error("examine", path))?;
        own::mark(file, value, owner);
    }
    Ok(())
}

/// Unmounts and mounts the targets' file systems as they were, each once.
fn remount(paths: &Paths) -> Result<(), String> {
    let mut done: Vec<&Path> = Vec::new();
    for target in paths.targets() {
        let Some(mount) = &target.mount else {
            return Err("the target is not on a mounted file system".to_owned());
        };
        if !done.contains(&mount.point.as_path()) {
            remount_one(mount)?;
            done.push(&mount.point);
        }
    }
    Ok(())
}

fn remount_one(mount: &Mount) -> Result<(), String> {
    let point = mount.point.display().to_string();
    let call = |program: &str, arguments: &[&str]| {
        let said = std::process::Command::new(program)
            .args(arguments)
            .output()
            .map_err(|error| format!("{program}: {error}"))?;
        if said.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&said.stderr);
        Err(format!("{program} {}: {}", arguments.join(" "), words.trim()))
    };
    if point == "/" {
        return Err("the root file system cannot be unmounted".to_owned());
    }
    call("umount", &[&point])?;
    let options = mount.options.join(",");
    let again = ["-t", &mount.file_system, "-o", &options, &mount.source, &point];
    call("mount", &again).map_err(|why| format!("{point} is NOT mounted any more: {why}"))
}
