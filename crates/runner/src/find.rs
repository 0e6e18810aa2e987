//! Targets looked at and judged: which files, how large, whether they may be written.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use record::{TargetKind, TargetRecord};
use rustix::fs::OFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use stack::{Access, Alignment, Host, Mark, Own, PathKind, Permit, Space, Subject, Target};
use suite::SuiteSource;
use suite::model::Suite;
use units::Bytes;

use crate::prepare::{Paths, SIZE_UNIT, begins_empty, verifies};
use crate::rig::Site;
use crate::several::{are_distinct, together};
use crate::{Order, RunError, directory, left_behind, taken};

/// A scratch file that takes all there is leaves one part of so many.
const SPARE_PART: u64 = 64;

/// The targets of a run, looked at.
pub(crate) struct Found {
    pub site: Box<dyn Site>,
    /// Of all targets together.
    pub record: TargetRecord,
    /// Of each of several.
    pub records: Vec<TargetRecord>,
    /// Limit of the files' size, for the checker.
    pub capacity: Option<Bytes>,
    /// Offsets and lengths of direct I/O are multiples of this.
    pub unit: Option<Bytes>,
    /// What is there is read, not written first.
    pub as_it_is: bool,
    /// The size of a scratch file that the suite asks for, where there is less room.
    pub asked: Option<Bytes>,
    /// The size of a file that the suite asks for, where one that is read as it is has less.
    pub shorter: Option<Bytes>,
}

impl Found {
    pub(crate) fn twin(site: Box<dyn Site>, name: &str, size: Bytes) -> Self {
        let record = TargetRecord {
            given: name.to_owned(),
            resolved: name.to_owned(),
            kind: TargetKind::Twin,
            size_bytes: size.get(),
            files: 1,
            file_system: None,
            mount: None,
            devices: Vec::new(),
            direct_alignment: None,
            link: None,
            cache_bytes: None,
            model: None,
            remarks: vec!["simulated: no real device was measured".to_owned()],
        };
        let capacity = (size > Bytes::ZERO).then_some(size);
        let records = Vec::new();
        let (unit, asked, shorter, as_it_is) = (None, None, None, true);
        Self { site, record, records, capacity, unit, as_it_is, asked, shorter }
    }
}

/// A target as it is now.
pub(crate) struct Seen {
    /// As the user named it.
    given: PathBuf,
    /// A scratch file in it, if it is a directory.
    target: Target,
    /// The directory of a scratch file.
    directory: Option<Target>,
}

impl Seen {
    /// * `scratch`: what its scratch file is called.
    pub(crate) fn of(host: &Host, path: &Path, scratch: &str) -> Result<Self, RunError> {
        let given = path.to_path_buf();
        let found = stack::inspect(host, path)?;
        if !matches!(found.path.kind, PathKind::Directory) {
            return Ok(Self { given, target: found, directory: None });
        }
        let scratch = found.path.resolved.join(scratch);
        is_no_link(&scratch)?;
        let target = stack::inspect(host, &scratch)?;
        if target.path.resolved != scratch {
            // It became a link just now.
            let to = target.path.resolved;
            return Err(RunError::ScratchIsLink { path: scratch, to });
        }
        Ok(Self { given, target, directory: Some(found) })
    }

    /// What a file has of its file system.
    fn allocated(&self) -> Bytes {
        match self.target.path.kind {
            PathKind::File { allocated, .. } => allocated,
            _ => Bytes::ZERO,
        }
    }

    /// The smallest unit of direct I/O.
    fn unit(&self) -> Option<Bytes> {
        let sector = || self.target.top().and_then(|device| device.logical_sector);
        alignment(&self.target).unit().or_else(sector)
    }

    fn is_device(&self) -> bool {
        matches!(self.target.path.kind, PathKind::BlockDevice { .. })
    }

    fn is_character(&self) -> bool {
        matches!(self.target.path.kind, PathKind::CharacterDevice { .. })
    }

    fn is_file(&self) -> bool {
        matches!(self.target.path.kind, PathKind::File { .. })
    }

    fn exists(&self) -> bool {
        self.is_device() || self.is_character() || self.is_file()
    }

    /// Length of a device; `None` of files, and where nothing is known of the device.
    pub(crate) fn device_size(&self) -> Option<Bytes> {
        self.target.top().filter(|_| self.is_device()).map(|device| device.size)
    }

    /// Bytes that are there.
    fn there(&self) -> Bytes {
        let size = match self.is_device() {
            true => self.device_size(),
            false => Some(self.target.path.size),
        };
        size.filter(|_| self.exists() && !self.is_character()).unwrap_or(Bytes::ZERO)
    }
}

pub(crate) fn checked(source: &SuiteSource, capacity: Option<Bytes>) -> Result<Suite, RunError> {
    let context = suite::CheckContext { capacity, ..suite::CheckContext::default() };
    Ok(suite::check(source, &context)?)
}

/// Sets the size of the files, cut to whole units.
///
/// * `unit`: see [`Suite::size_unit`].
pub(crate) fn set_size(source: &mut SuiteSource, size: Bytes, unit: Bytes) -> Result<(), RunError> {
    let whole = size.get() / unit.get() * unit.get();
    Ok(source.fit_size(if whole == 0 { size } else { Bytes::new(whole) })?)
}

/// Lets this process open as many files as the system allows: a set of files takes several
/// descriptors a file, and the usual soft limit of 1024 is for programs that use `select`.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Without it the kernel says which file is one too many.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Sizes scratch files to the room there; what the suite asks for, where there is less.
fn size_all(
    seen: &[Seen],
    order: &Order,
    source: &mut SuiteSource,
) -> Result<Option<Bytes>, RunError> {
    let mut asked = None;
    for one in seen {
        let Some(directory) = &one.directory else { continue };
        let cut = size_scratch(directory, one.allocated(), source, order.size_given)?;
        asked = asked.or(cut);
    }
    Ok(asked)
}

/// Refuses targets that do not go together, or not with the suite.
fn are_of_a_kind(seen: &[Seen], wanted: &Suite) -> Result<(), RunError> {
    if let Some(one) = seen.iter().find(|one| one.is_character()) {
        of_characters(one, seen, wanted)?;
    }
    match seen.iter().find(|one| one.is_device() && begins_empty(wanted)) {
        Some(one) => {
            let target = one.given.display().to_string();
            Err(RunError::NotAFile { suite: wanted.name.clone(), target })
        }
        None => Ok(()),
    }
}

/// What may be done to each file of each target.
fn permitted(
    host: &Host,
    order: &Order,
    seen: &[Seen],
    files: &[Vec<PathBuf>],
    wanted: &Suite,
    as_it_is: bool,
) -> Result<Vec<Permit>, RunError> {
    let mut permits = Vec::new();
    for (one, paths) in seen.iter().zip(files) {
        if one.directory.is_some() {
            paths.iter().try_for_each(|path| is_no_link(path))?;
        }
        let sharing = seen.iter().filter(|other| shares_space(one, other)).count() as u64;
        let beside = sharing.saturating_mul(paths.len() as u64).saturating_sub(1);
        let judged = judge(host, order, &one.target, paths, wanted, (beside, as_it_is))?;
        let goes = one.directory.is_some() && !order.settings.keep;
        let of_run = |permit: Permit| if goes { permit.removed_afterwards() } else { permit };
        permits.extend(judged.into_iter().map(of_run));
    }
    Ok(permits)
}

/// Files, directories, devices. Each has the suite's files; together they are the files of the
/// run.
///
/// * `scratch`: what a scratch file is called; it ends in [`SCRATCH`](crate::prepare::SCRATCH).
pub(crate) fn find_paths(
    host: &Host,
    order: &Order,
    (paths, scratch): (&[PathBuf], &str),
    source: &mut SuiteSource,
) -> Result<Found, RunError> {
    allow_open_files();
    let seen = paths.iter().map(|path| Seen::of(host, path, scratch));
    let seen = seen.collect::<Result<Vec<Seen>, RunError>>()?;
    let asked = size_all(&seen, order, source)?;
    let wanted = checked(source, None)?;
    let character = seen.iter().find(|one| one.is_character());
    are_of_a_kind(&seen, &wanted)?;
    let as_it_is = are_read_as_they_are(host, order, &seen, &wanted)?;
    fit_size(order, &seen, source, &wanted, as_it_is)?;
    let is_short = as_it_is && !order.size_given && seen.iter().any(|one| is_shorter(one, &wanted));
    let shorter = is_short.then_some(wanted.files.size);
    let each = wanted.files.count;
    let files: Vec<Vec<PathBuf>> =
        seen.iter().map(|one| file_paths(&one.target.path.resolved, each)).collect();
    if seen.len() > 1 {
        let targets: Vec<Target> = seen.iter().map(|one| one.target.clone()).collect();
        are_distinct(&targets, &files)?;
        let all = u64::from(each).saturating_mul(seen.len() as u64);
        source.set(&format!("file_count={all}"))?;
    }
    let smallest = seen.iter().filter_map(Seen::device_size).min();
    let capacity = smallest.map(|there| Bytes::new(there.get().saturating_mul(seen.len() as u64)));
    let wanted = checked(source, capacity)?;
    let permits = permitted(host, order, &seen, &files, &wanted, as_it_is)?;
    let unit = seen.iter().filter_map(Seen::unit).max();
    let record_of = |(one, permits): (&Seen, &[Permit])| {
        let mut record = record(host, one, &wanted, each, as_it_is);
        if permits.iter().any(Permit::cuts) {
            let size = wanted.files.size;
            record.remarks.push(format!("cut to {size} for this run: what lay beyond is lost"));
        }
        record
    };
    let of_each = seen.iter().zip(permits.chunks(each.max(1) as usize));
    let records: Vec<TargetRecord> = of_each.map(record_of).collect();
    let targets: Vec<Target> = seen.iter().map(|one| one.target.clone()).collect();
    let Some((target, record)) = together(&targets).zip(record_of_all(&records)) else {
        return Err(stack::TargetError::Empty.into());
    };
    let several = seen.len() > 1;
    let link = several.then(|| stack::slowest_link(host, &target)).flatten();
    let record = if several { TargetRecord { link, ..record } } else { record };
    let scratch = seen.iter().filter(|one| one.directory.is_some());
    let scratch: Vec<PathBuf> = scratch.map(|one| one.target.path.resolved.clone()).collect();
    let wanted_files = files.concat();
    let stale = scratch.iter().flat_map(|base| left_behind::stale(base, &wanted_files)).collect();
    let paths = Paths {
        target,
        each: if several { targets } else { Vec::new() },
        permits,
        consent: order.settings.consent.clone(),
        own: Own::of_this_process(Some(order.settings.store_path.clone())),
        writes: !as_it_is,
        scratch,
        stale,
        character: character.is_some(),
        shared: false,
    };
    let site = Box::new(paths);
    let records = if several { records } else { Vec::new() };
    Ok(Found { site, record, records, capacity, unit, as_it_is, asked, shorter })
}

/// A scratch file goes with the run. Under a link it would be a file elsewhere that goes, maybe one
/// of ours that is to be kept.
fn is_no_link(scratch: &Path) -> Result<(), RunError> {
    let Ok(to) = std::fs::read_link(scratch) else { return Ok(()) };
    let path = scratch.to_path_buf();
    Err(RunError::ScratchIsLink { path, to })
}

fn alignment(target: &Target) -> Alignment {
    match target.path.kind {
        PathKind::Missing => Alignment::Unknown,
        _ => stack::direct_alignment(&target.path.resolved, &target.devices),
    }
}

fn of_characters(one: &Seen, seen: &[Seen], wanted: &Suite) -> Result<(), RunError> {
    let target = one.given.display().to_string();
    if wanted.writes() {
        let suite = wanted.name.clone();
        return Err(RunError::NotWritable { suite, target, kind: "character device" });
    }
    if seen.len() > 1 {
        return Err(RunError::Alone { target, kind: "character device" });
    }
    Ok(())
}

/// What is there is only read if the suite only reads; a scratch file is ours to write.
fn are_read_as_they_are(
    host: &Host,
    order: &Order,
    seen: &[Seen],
    wanted: &Suite,
) -> Result<bool, RunError> {
    let verified = if verifies(wanted) { wanted.files.count } else { 0 };
    if wanted.writes() || !seen.iter().all(|one| one.exists() && one.directory.is_none()) {
        return Ok(false);
    }
    for one in seen {
        if !reads_as_it_is(host, order, &one.target, verified)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is stored of one target.
fn record(host: &Host, one: &Seen, wanted: &Suite, each: u32, as_it_is: bool) -> TargetRecord {
    let target = &one.target;
    let mut record = target.record(wanted.files.size, each, &alignment(target));
    record.given = one.given.display().to_string();
    record.link = stack::slowest_link(host, target);
    if as_it_is && !one.is_character() {
        record.remarks.push("read as it is, not written first".to_owned());
        if let PathKind::File { allocated, .. } = target.path.kind
            && allocated < target.path.size
        {
            record.remarks.push(format!(
                "sparse: {allocated} of {} are allocated; reads of the rest never reach a device",
                target.path.size
            ));
        }
    }
    if let Some(directory) = &one.directory {
        record.remarks.push("a scratch file, made for this run".to_owned());
        if !stack::keeps_marks(&directory.path.resolved) {
            record.remarks.push(
                "its file system keeps no extended attributes: a scratch file that a killed run \
                 leaves there is not known as plimsoll's, and must be removed by hand"
                    .to_owned(),
            );
        }
    }
    record
}

/// All targets as one: names in a row, every device and remark once.
fn record_of_all(records: &[TargetRecord]) -> Option<TargetRecord> {
    let (first, others) = records.split_first()?;
    let mut all = first.clone();
    if others.is_empty() {
        return Some(all);
    }
    let words = |of: fn(&TargetRecord) -> Option<String>| {
        let mut met: Vec<String> = Vec::new();
        for word in records.iter().filter_map(of) {
            if !met.contains(&word) {
                met.push(word);
            }
        }
        met
    };
    let joined = |words: Vec<String>| (!words.is_empty()).then(|| words.join(", "));
    all.given = words(|record| Some(record.given.clone())).join(", ");
    all.resolved = words(|record| Some(record.resolved.clone())).join(", ");
    all.file_system = joined(words(|record| record.file_system.clone()));
    all.mount = joined(words(|record| record.mount.clone()));
    let units = records.iter().map(|record| record.direct_alignment);
    all.direct_alignment = units.collect::<Option<Vec<u32>>>().and_then(|u| u.into_iter().max());
    for other in others {
        all.files = all.files.saturating_add(other.files);
        let new = |known: &[String], word: &&String| !known.contains(word);
        let devices: Vec<_> =
            other.devices.iter().filter(|d| new(&all.devices, d)).cloned().collect();
        all.devices.extend(devices);
        let remarks: Vec<_> =
            other.remarks.iter().filter(|r| new(&all.remarks, r)).cloned().collect();
        all.remarks.extend(remarks);
    }
    all.remarks.push(format!("{} targets together", records.len()));
    Some(all)
}

/// Whether what one takes the other has no longer.
fn shares_space(one: &Seen, other: &Seen) -> bool {
    match (&one.target.mount, &other.target.mount) {
        (Some(ours), Some(theirs)) => ours.device == theirs.device,
        _ => std::ptr::eq(one, other),
    }
}

/// Whether an existing target's content will do for a suite that only reads. A file of ours whose
/// fill was cut short is filled again: reads of its holes would never reach the device. `verified`
/// is in how many files reads are verified.
fn reads_as_it_is(
    host: &Host,
    order: &Order,
    target: &Target,
    verified: u32,
) -> Result<bool, RunError> {
    let paths = file_paths(&target.path.resolved, verified);
    let content_will_do = paths.iter().all(|path| describes_itself(path));
    let PathKind::File { allocated, .. } = target.path.kind else {
        return match !content_will_do {
            true => Err(not_ours(target)),
            false => Ok(true),
        };
    };
    let hollow = allocated < target.path.size;
    if content_will_do && !hollow {
        return Ok(true);
    }
    let own = Own::of_this_process(Some(order.settings.store_path.clone()));
    let facts = stack::gather(host, target, Access::Read, &order.settings.consent, &own);
    let ours = matches!(&facts.subject, Subject::File(file) if file.mark == Mark::Ours);
    match (ours, content_will_do) {
        (true, _) => Ok(false),
        (false, true) => Ok(true),
        (false, false) => Err(not_ours(target)),
    }
}

fn not_ours(target: &Target) -> RunError {
    let what = target.path.given.display();
    RunError::Verify { why: format!("{what} does not hold data that a verifying run wrote") }
}

/// Whether the target begins with a sector that a verifying run wrote.
fn describes_itself(path: &Path) -> bool {
    let mut sector = [0; engine::verify::SECTOR];
    // Whatever has the name by now must not be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let read = opened.and_then(|mut file| file.read_exact(&mut sector));
    read.is_ok() && engine::verify::describes_itself(&sector)
}

/// A scratch file takes what the suite wants, or what the file system can give beside the files
/// that the suite makes in a directory. Gives the size of a file as it was asked for, if it is less.
///
/// * `there`: what a scratch file that was left behind has, which is used again.
fn size_scratch(
    directory: &Target,
    there: Bytes,
    source: &mut SuiteSource,
    size_given: bool,
) -> Result<Option<Bytes>, RunError> {
    let suite = checked(source, None)?;
    let files = &suite.files;
    let Some(space) = directory.path.space else { return Ok(None) };
    let beside = directory::needs(&suite).map_or(Bytes::ZERO, |(bytes, _)| bytes);
    let free = space.free.get().saturating_add(there.get()).saturating_sub(beside.get());
    let left = Space { free: Bytes::new(free), ..space };
    let Some(most) = stack::suggest_scratch_size(left, files.total()) else {
        return Err(RunError::NoRoom {
            directory: directory.path.resolved.clone(),
            free: space.free,
            total: space.total,
            reserve: stack::space_reserve(space.total),
        });
    };
    if most >= files.total() || size_given {
        return Ok(None);
    }
    // What others write until it is made must not make it too large after all.
    let most = most.get() - most.get() / SPARE_PART;
    set_size(source, Bytes::new(most / u64::from(files.count)), Bytes::new(SIZE_UNIT))?;
    // What the suite needs at least is more: there is nothing wrong with the suite.
    checked(source, None).map_err(|_| RunError::NoRoomForSuite {
        suite: suite.name.clone(),
        directory: directory.path.resolved.clone(),
        wanted: files.total(),
        room: Bytes::new(most),
        reserve: stack::space_reserve(space.total),
    })?;
    Ok(Some(files.size))
}

/// Takes existing files or devices whole where only reads are made of them and nobody said how
/// much, as much of each as the smallest has.
fn fit_size(
    order: &Order,
    seen: &[Seen],
    source: &mut SuiteSource,
    wanted: &Suite,
    as_it_is: bool,
) -> Result<(), RunError> {
    let smallest = seen.iter().map(Seen::there).min().unwrap_or(Bytes::ZERO);
    let device = seen.iter().filter_map(Seen::device_size).min();
    let whole = as_it_is && smallest > Bytes::ZERO && wanted.files.count == 1;
    if whole && !order.size_given {
        return set_size(source, smallest, wanted.size_unit());
    }
    if let Some(device) = device.filter(|&d| d < wanted.files.size && !order.size_given) {
        return set_size(source, device, wanted.size_unit());
    }
    for one in seen {
        let there = one.there();
        let empty = there == Bytes::ZERO && one.is_file();
        let missing_part = (there > Bytes::ZERO || empty) && there < wanted.files.size;
        if as_it_is && missing_part && wanted.files.count == 1 {
            return Err(RunError::TooShort {
                path: one.target.path.resolved.clone(),
                size: there,
                wanted: wanted.files.size,
            });
        }
    }
    Ok(())
}

/// Whether an existing file has less than the suite asks for.
fn is_shorter(one: &Seen, wanted: &Suite) -> bool {
    one.is_file() && wanted.files.count == 1 && one.there() < wanted.files.size
}

/// Each file of a target judged by itself.
///
/// * `how`: how many files the file system has to take besides; whether they are only read.
fn judge(
    host: &Host,
    order: &Order,
    target: &Target,
    paths: &[PathBuf],
    suite: &Suite,
    how: (u64, bool),
) -> Result<Vec<Permit>, RunError> {
    let own = Own::of_this_process(Some(order.settings.store_path.clone()));
    let (beside, as_it_is) = how;
    let size = suite.files.size;
    let also = Bytes::new(size.get().saturating_mul(beside));
    let access = if as_it_is { Access::Read } else { Access::Write { size, also } };
    let mut permits = Vec::with_capacity(paths.len());
    for path in paths {
        let other;
        let this = if *path == target.path.resolved {
            target
        } else {
            other = stack::inspect(host, path)?;
            &other
        };
        if matches!(this.path.kind, PathKind::Directory) {
            // A file made in there would be none that the run knows again.
            let why = "it is a directory, wanted a file".to_owned();
            return Err(RunError::NotOurs { path: this.path.resolved.clone(), why });
        }
        if !as_it_is {
            spare_stores(&this.path.resolved, &order.settings.store_path)?;
        }
        can_be_opened(&this.path.resolved, !as_it_is)?;
        let judge = || {
            let facts = stack::gather(host, this, access, &order.settings.consent, &own);
            Ok(stack::decide(&facts)?)
        };
        permits.push(taken::patiently(judge)?.holding(&this.path));
    }
    Ok(permits)
}

/// Refuses a file or device, before a run is stored, that this user cannot open.
fn can_be_opened(path: &Path, writes: bool) -> Result<(), RunError> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let can = |access| accessat(CWD, path, access, AtFlags::EACCESS);
    let denied = |what| {
        move |errno: rustix::io::Errno| {
            let (path, source) = (path.to_path_buf(), errno.into());
            RunError::File { what, path, source }
        }
    };
    if can(Access::EXISTS).is_err() {
        return Ok(());
    }
    can(Access::READ_OK).map_err(denied("read"))?;
    match can(Access::WRITE_OK) {
        // A file system that is mounted read-only is refused by the rules, which have a hint.
        Err(errno) if writes && errno != rustix::io::Errno::ROFS => Err(denied("write to")(errno)),
        _ => Ok(()),
    }
}

/// What SQLite finds beside a store it takes for its own, and removes it. A store that is not in use is
/// data like any other, which only `--overwrite` gives up.
fn spare_stores(path: &Path, in_use: &Path) -> Result<(), RunError> {
    let what = match store::taken(path, Some(in_use)) {
        Some(store::Taken::Beside(store)) => {
            format!("a name of the store of results {}", store.display())
        }
        // One that is there is refused by what it is.
        Some(store::Taken::Store) if !path.exists() => "the store of results".to_owned(),
        _ => return Ok(()),
    };
    let path = path.display().to_string();
    Err(stack::Refusal::from(stack::RefusalReason::Own { path, what }).into())
}

/// One file is the path itself; of several each gets its number.
fn file_paths(path: &Path, count: u32) -> Vec<PathBuf> {
    if count == 1 {
        return vec![path.to_path_buf()];
    }
    let numbered = |index| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{index}"));
        PathBuf::from(name)
    };
    (0..count).map(numbered).collect()
}
