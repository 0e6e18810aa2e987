//! Files and devices: made, opened, held, counted, left.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use device::{FileIndex, Op};
use record::{LedgerEntry, VisitRecord, Warning};
use rustix::fs::FlockOperation;
use stack::{Action, DeviceCounters, Host, Ledger, Mount, Permit, Target};
use suite::model::{
    Access, Backend, CacheStep, Cell, Operation, StartFile, Stream, Suite, WriteThrough,
};
use units::{ByteOffset, Bytes};
use uring::{Allow, Choice, Create, DirectWish, FileSet, Fill, OpenSpec, Requested, Spot};

use crate::anew::{self, Anew};
use crate::directory::Directories;
use crate::fill::Pass;
use crate::own::{self, Identity, Own, own};
use crate::prepare::{Paths, buffers, buffers_fit, copies_in_kernel};
use crate::quiet::Level;
use crate::rig::{Entering, Rig, Seat, Site, Stage};
use crate::turn::{Part, Turn};
use crate::watch::Watch;
use crate::{RunError, directory, left_behind, taken};

#[derive(Debug)]
struct Files {
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

impl Site for Paths {
    fn paths(&self) -> Option<&Paths> {
        Some(self)
    }

    fn paths_mut(&mut self) -> Option<&mut Paths> {
        Some(self)
    }

    fn targets(&self) -> &[Target] {
        Paths::targets(self)
    }

    fn holds_data(&self) -> bool {
        true
    }

    fn remembers_writes(&self) -> bool {
        true
    }

    fn fits(
        &self,
        suite: &Suite,
        passes: &[Pass],
        available: Option<Bytes>,
    ) -> Result<(), RunError> {
        buffers_fit(buffers(suite, passes, false), available).map(drop)
    }

    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        let mut files = Files::enter(*self, entry.suite, entry.keep, entry.key)?;
        if directory::wanted(entry.suite).next().is_some() {
            let beside = &files.paths.target.path.resolved;
            match Directories::enter(beside, entry.key) {
                Ok(entered) => files.leaving.directories = Some(entered),
                Err(error) => {
                    files.leaving.undo();
                    return Err(error);
                }
            }
        }
        Ok(Box::new(files))
    }
}

/// Where a worker plays: on files, through a back end of its own.
#[derive(Clone, Debug)]
struct Opened {
    files: Arc<FileSet>,
    requested: Requested,
}

impl Seat for Opened {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        turn.on_files(&self.files, &self.requested)
    }
}

impl Rig for Files {
    fn stage(&mut self, cell: &Cell, seed: u64) -> Result<Option<Stage>, RunError> {
        let mut seats: Vec<Box<dyn Seat>> = Vec::new();
        for stream in &cell.streams {
            let opened = self.opened_for(stream, seed)?;
            seats.extend((0..stream.threads).map(|_| Box::new(opened.clone()) as Box<dyn Seat>));
        }
        Ok(Some(Stage::Each(seats)))
    }

    fn is_twin(&self) -> bool {
        false
    }

    fn mark_before(&mut self) {
        self.cached_before = self.cached_share();
        self.before = self.ledger.snapshot();
    }

    fn ledger(&self) -> (Vec<LedgerEntry>, Vec<Warning>) {
        counted(&self.ledger, &self.before)
    }

    fn make_ready(
        &mut self,
        cell: &Cell,
        stops: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<bool, RunError> {
        tell("making files");
        match &mut self.leaving.directories {
            Some(directories) => directories.get_ready(cell, stops),
            None => Ok(true),
        }
    }

    fn made_files(&mut self, cell: &Cell, visit: &VisitRecord) {
        let Some(directories) = &mut self.leaving.directories else { return };
        for (stream, record) in cell.streams.iter().zip(&visit.streams) {
            let own = record.ops.iter().filter(|op| op.op == Op::Create.name());
            directories.made(stream, own.map(|op| op.requests).sum());
        }
    }

    fn doubts_of_copies(&mut self, cell: &Cell) -> Vec<Warning> {
        self.shared_copies(cell)
    }

    fn changes(&mut self, trims: bool) -> Vec<Warning> {
        // Nothing is asked of a place where requests hang.
        match self.leaving.hangs {
            true => Vec::new(),
            false => self.watch.look(trims, self.growing.is_some()),
        }
    }

    fn begin_anew(&mut self, how: StartFile, size: Bytes) -> Result<(), RunError> {
        if how == StartFile::Keep { Ok(()) } else { self.empty(how, size) }
    }

    fn end_anew(&mut self) -> Result<(), RunError> {
        // Where requests hang, so might we.
        if self.leaving.hangs { Ok(()) } else { self.fill_up() }
    }

    fn leave(&mut self) -> Vec<Warning> {
        if self.leaving.hangs {
            // What is asked of a place where requests hang may hang, too: it is done at the end.
            return Vec::new();
        }
        self.opened.clear();
        self.leaving.leave()
    }

    fn hangs(&mut self) {
        self.leaving.hangs = true;
    }

    fn opened(&mut self, stream: &Stream) -> Result<Option<Arc<FileSet>>, RunError> {
        self.open(stream).map(Some)
    }

    fn direct_unit(&mut self, cell: &Cell) -> Result<Option<Bytes>, RunError> {
        let Some(stream) = cell.streams.iter().find(|s| s.direct) else { return Ok(None) };
        Ok(self.open(stream)?.offset_alignment())
    }

    fn alignment(&self) -> Option<u32> {
        let units = self.paths.targets().iter().zip(self.firsts());
        let units =
            units.map(|(target, path)| stack::direct_alignment(path, &target.devices).unit());
        let unit = units.collect::<Option<Vec<Bytes>>>()?.into_iter().max()?;
        u32::try_from(unit.get()).ok()
    }

    fn caches(&mut self, steps: &[CacheStep]) -> Result<(), RunError> {
        steps.iter().try_for_each(|&step| self.cache_step(step))
    }

    fn has_page_cache(&self) -> bool {
        !self.paths.character
    }

    fn cached_shares(&self) -> (Option<f64>, Option<f64>) {
        (self.cached_before, self.cached_share())
    }

    fn levels(&self) -> Option<Vec<Level>> {
        levels(&self.ledger)
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

    fn empty(&mut self, how: StartFile, size: Bytes) -> Result<(), RunError> {
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

    fn fill_up(&mut self) -> Result<(), RunError> {
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

    fn opened_for(&mut self, stream: &Stream, seed: u64) -> Result<Opened, RunError> {
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
            fill: if stream.modifies() { Fill::Incompressible { seed } } else { Fill::Untouched },
            allow: Allow::default(),
        };
        Ok(Opened { files, requested })
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

/// What the devices counted since then, and what is not known of them.
pub(crate) fn counted(
    ledger: &Ledger,
    before: &[DeviceCounters],
) -> (Vec<LedgerEntry>, Vec<Warning>) {
    let found = stack::difference(before, &ledger.snapshot());
    let unknown = found
        .unknown
        .iter()
        .map(|(name, why)| Warning::new("ledger-unknown", format!("counters of {name}: {why}")));
    let unknown = unknown.collect();
    (found.entries, unknown)
}

/// Of every device; `None` where one is not counted.
pub(crate) fn levels(ledger: &Ledger) -> Option<Vec<Level>> {
    let level = |found: DeviceCounters| {
        let counters = found.counters.ok()?;
        let written = Bytes::new(counters.write_sectors.saturating_mul(512));
        Some(Level { device: found.device, written, in_flight: counters.in_flight })
    };
    ledger.snapshot().into_iter().map(level).collect()
}

/// Requests in flight while these streams are played together.
pub(crate) fn in_flight(streams: &[Stream]) -> u64 {
    streams.iter().map(|s| u64::from(s.threads) * u64::from(s.requests_max())).sum()
}

/// Slots of a device on which any of these is played.
pub(crate) fn slots(cells: &[&Cell]) -> u32 {
    let most = cells.iter().map(|cell| in_flight(&cell.streams)).max().unwrap_or(1);
    u32::try_from(most).unwrap_or(u32::MAX)
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
