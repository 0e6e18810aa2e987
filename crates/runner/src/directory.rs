//! The directory of a run whose suite makes, looks at and removes whole files: a new one of our
//! own beside what is measured, which goes with the run.
//!
//! Its name follows from what is stored of the run, so that one that a killed run left is found
//! again by `resume` and `rm`; a file in it says whose it is. Nothing in it is ever removed but
//! that file and files whose names only this run can have given.
//!
//! It is held open, and all that is done in it goes through its descriptor: what gets its name
//! meanwhile is not ours to make files in, or to remove.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use record::RunHeader;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use suite::model::{Cell, Directory, Names, Operation, Stream, Suite};
use units::Bytes;
use uring::{FileNames, FileSet};

use crate::RunError;
use crate::own::Identity;
use crate::prepare::Paths;

/// What every directory of ours is called, before the run's own part.
pub(crate) const PREFIX: &str = "plimsoll-files-";
/// The file in it that says whose it is.
const MARKER: &str = ".plimsoll";
/// What it says is shorter.
const MARK_MAX: u64 = 255;
const SETS: [Names; 2] = [Names::Sequential, Names::Random];
/// A file of no length takes about as much: an inode and an entry.
const OVERHEAD: u64 = 512;

/// The directory of a run. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Directories {
    root: Root,
    key: u64,
    /// The directories of the sets.
    sets: BTreeMap<Names, OwnedFd>,
    /// What is known of the files of each kind of names.
    standing: BTreeMap<Names, Standing>,
    /// It was removed, or that was tried.
    left: bool,
}

/// What there is of a set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Nobody can tell.
    Unknown,
    /// The directory is new and empty.
    New,
    /// All of them.
    Whole(Directory),
}

/// The part of a run's directory that is its own: told from what is stored of the run.
pub(crate) fn key(header: &RunHeader) -> u64 {
    let side = header.blocks.as_ref().map(|blocks| blocks.side.bytes().map(u64::from));
    let mut labels = vec![header.started_unix_ns as u64];
    labels.extend(side.into_iter().flatten());
    stats::random::derive_seed(header.seed, &labels)
}

/// Where a run's directory is: beside the target.
fn root(target: &Path, key: u64) -> Option<PathBuf> {
    Some(target.parent()?.join(format!("{PREFIX}{key:016x}")))
}

/// The directories of all streams of a suite.
pub(crate) fn wanted(suite: &Suite) -> impl Iterator<Item = Directory> {
    suite.cells().flat_map(|cell| &cell.streams).filter_map(Stream::directory)
}

/// Bytes and inodes that the files of a suite take at most: those of both kinds of names.
pub(crate) fn needs(suite: &Suite) -> Option<(Bytes, u64)> {
    let of = |names| {
        let sets = wanted(suite).filter(move |directory| directory.names == names);
        sets.map(|directory| {
            let files = u64::from(directory.files);
            let each = directory.file_size.get().div_ceil(4096) * 4096 + OVERHEAD;
            (files.saturating_mul(each), files)
        })
    };
    let most = |names| of(names).reduce(|(a, b), (c, d)| (a.max(c), b.max(d)));
    let both = SETS.map(most).into_iter().flatten();
    let sum = both.reduce(|(a, b), (c, d)| (a.saturating_add(c), b.saturating_add(d)))?;
    Some((Bytes::new(sum.0), sum.1))
}

/// Inodes that are left where `target` is; `None` where the file system does not count them.
pub(crate) fn inodes_left(target: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(target.parent()?).ok()?;
    (found.f_files > 0).then_some(found.f_favail)
}

/// What is made and removed, as a sentence.
pub(crate) fn describe(paths: &Paths, suite: &Suite) -> Option<String> {
    let (_, files) = needs(suite)?;
    let beside = paths.target.path.resolved.parent()?.display();
    Some(format!(
        "Makes a directory {PREFIX}* in {beside}, makes and removes up to {files} files in it, and \
         removes it afterwards."
    ))
}

/// Removes what a killed run left of the directory in which it made files: it and files of names
/// that only this run can have given. What there was, if there was anything.
pub(crate) fn remove_left_behind(header: &RunHeader) -> Result<Option<PathBuf>, RunError> {
    let key = key(header);
    let Some(root) = root(Path::new(&header.target.resolved), key) else { return Ok(None) };
    match Root::open(&root)? {
        Some(held) => remove(&held, key).map(|()| Some(root)),
        None => Ok(None),
    }
}

impl Directories {
    /// Makes the run's directory beside `target`, or takes the one that it left when it was
    /// killed. Whatever else has the name is refused.
    pub(crate) fn enter(target: &Path, key: u64) -> Result<Self, RunError> {
        let root = root(target, key).ok_or_else(|| {
            failed("make a directory beside", target)(Error::from(ErrorKind::NotADirectory))
        })?;
        let (parent, name) = parent_of(&root)?;
        match rustix::fs::mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed("create", &root)(errno.into())),
        }
        let root = match Root::open(&root)? {
            Some(held) => held,
            None => return Err(failed("open", &root)(ErrorKind::NotFound.into())),
        };
        confirm(&root, key)?;
        no_strangers(&root.path, remove_sets(&root, key)?)?;
        // One that stays is the run's all the same.
        mark(&root, key).inspect_err(|_| drop(remove(&root, key)))?;
        Ok(Self { root, key, sets: BTreeMap::new(), standing: BTreeMap::new(), left: false })
    }

    /// Closes what keeps the file system mounted.
    pub(crate) fn let_go(&mut self) {
        self.root.held = None;
        self.sets.clear();
    }

    /// Opens that again, if it is still marked as the run's.
    pub(crate) fn hold_again(&mut self) -> Result<(), RunError> {
        self.hold_root()?;
        for names in self.standing.keys() {
            let name = set_name(*names);
            let open = open_directory(self.root.held()?, OsStr::new(name));
            let open = open.map_err(failed("open", &self.root.path.join(name)))?;
            self.sets.insert(*names, open);
        }
        Ok(())
    }

    fn hold_root(&mut self) -> Result<(), RunError> {
        let again = Root::open(&self.root.path)?;
        let nothing = || failed("open", &self.root.path)(ErrorKind::NotFound.into());
        self.root = again.ok_or_else(nothing)?;
        confirm(&self.root, self.key)
    }

    /// Removes it. What stays of it, because somebody put something into it or because it cannot be
    /// removed, the next `resume` or `rm` of the run finds.
    pub(crate) fn leave(mut self) -> Result<(), RunError> {
        self.left = true;
        self.remove()
    }

    /// Makes of the files of each stream what it needs: a new directory for files to be made in,
    /// all of them for who looks at them or removes them. Where the visit before left that,
    /// nothing is done. False if the user wants to stop.
    pub(crate) fn get_ready(
        &mut self,
        cell: &Cell,
        stops: &dyn Fn() -> bool,
    ) -> Result<bool, RunError> {
        // Moved away it is still ours, and nothing is made elsewhere.
        let _is_there = self.root.is_at_its_name()?;
        for stream in &cell.streams {
            let Some(wanted) = stream.directory() else { continue };
            let known = *self.standing.get(&wanted.names).unwrap_or(&Standing::Unknown);
            let done = match creates(stream) {
                true => known == Standing::New,
                false => known == Standing::Whole(wanted),
            };
            if done {
                continue;
            }
            self.standing.insert(wanted.names, Standing::Unknown);
            let place = self.place(wanted.names);
            let make = failed("make files in", &place);
            self.sets.remove(&wanted.names);
            self.sets.insert(wanted.names, renew(&self.root, self.key, wanted.names)?);
            if creates(stream) {
                self.standing.insert(wanted.names, Standing::New);
                continue;
            }
            if !self.fill(wanted, stops).map_err(make)? {
                return Ok(false);
            }
            self.standing.insert(wanted.names, Standing::Whole(wanted));
        }
        Ok(true)
    }

    fn fill(&self, wanted: Directory, stops: &dyn Fn() -> bool) -> Result<bool, Error> {
        let open = self.open(wanted.names, false, false).map_err(raw)?;
        let content = vec![0x5a; wanted.file_size.get() as usize];
        for number in 0..u64::from(wanted.files) {
            if number.is_multiple_of(256) && stops() {
                return Ok(false);
            }
            open.create(number, &content).map_err(raw)?;
        }
        Ok(true)
    }

    /// The stage for a stream that has a directory; none for one that has not.
    pub(crate) fn stage(&mut self, stream: &Stream) -> Option<Result<Arc<FileSet>, RunError>> {
        let wanted = stream.directory()?;
        if creates(stream) || deletes(stream) {
            // Whatever the visit comes to, it is not what it was any more.
            self.standing.insert(wanted.names, Standing::Unknown);
        }
        let place = self.place(wanted.names);
        let listed = wanted.names == Names::Sequential && !creates(stream);
        let holds_data = wanted.file_size > Bytes::ZERO;
        let open = self.open(wanted.names, listed, holds_data);
        Some(match open {
            Ok(directory) => Ok(Arc::new(FileSet::of_directory(directory))),
            Err(errno) => Err(failed("open", &place)(raw(errno))),
        })
    }

    /// A visit is over in which a stream completed so many requests of its own.
    pub(crate) fn made(&mut self, stream: &Stream, requests: u64) {
        let Some(directory) = stream.directory() else { return };
        if creates(stream) && requests == u64::from(directory.files) {
            self.standing.insert(directory.names, Standing::Whole(directory));
        }
    }

    fn remove(&mut self) -> Result<(), RunError> {
        if self.root.held.is_none() {
            self.hold_root()?;
        }
        remove(&self.root, self.key)
    }

    fn place(&self, names: Names) -> PathBuf {
        self.root.path.join(set_name(names))
    }

    /// The directory of a set, whatever has its name by now.
    fn open(
        &self,
        set: Names,
        listed: bool,
        holds_data: bool,
    ) -> Result<uring::Directory, device::Errno> {
        let held = self.sets.get(&set).ok_or(device::Errno(Errno::BADF.raw_os_error()))?;
        let (here, place) = (Path::new("."), self.place(set));
        let kind = (listed, holds_data);
        uring::Directory::open_in(held, here, &place, names(self.key, set), kind)
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        if !self.left {
            // Nothing can be done about a failure; the next `resume` or `rm` of the run tries again.
            let _ = self.remove();
        }
    }
}

fn creates(stream: &Stream) -> bool {
    stream.mix.classes.iter().any(|class| class.op == Operation::Create)
}

fn deletes(stream: &Stream) -> bool {
    stream.mix.classes.iter().any(|class| class.op == Operation::Delete)
}

const fn set_name(names: Names) -> &'static str {
    match names {
        Names::Sequential => "in-order",
        Names::Random => "at-random",
    }
}

fn names(key: u64, names: Names) -> FileNames {
    let letters_first = names == Names::Random;
    FileNames { seed: stats::random::mix(key), letters_first }
}

/// A run's directory, held open, and what it is in.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    name: OsString,
    /// The directory above, and the one itself; `None` while it is let go.
    held: Option<(OwnedFd, OwnedFd)>,
}

impl Root {
    /// `None` where nothing has its name. What is no directory is refused.
    fn open(path: &Path) -> Result<Option<Self>, RunError> {
        let (parent, name) = match parent_of(path) {
            Err(RunError::File { source, .. }) if source.kind() == ErrorKind::NotFound => {
                return Ok(None);
            }
            found => found?,
        };
        let open = match open_directory(&parent, name) {
            Ok(open) => open,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if [Errno::NOTDIR, Errno::LOOP].iter().any(|e| raw_is(&error, *e)) => {
                let why = "it is no directory".to_owned();
                return Err(RunError::NotOurs { path: path.to_path_buf(), why });
            }
            Err(error) => return Err(failed("open", path)(error)),
        };
        let name = name.to_owned();
        Ok(Some(Self { path: path.to_path_buf(), name, held: Some((parent, open)) }))
    }

    fn both(&self) -> Result<&(OwnedFd, OwnedFd), RunError> {
        let gone = || failed("hold", &self.path)(Errno::BADF.into());
        self.held.as_ref().ok_or_else(gone)
    }

    fn held(&self) -> Result<&OwnedFd, RunError> {
        self.both().map(|(_, held)| held)
    }

    /// Whether it has its name; false where nothing has. Refuses to go on where something else has.
    fn is_at_its_name(&self) -> Result<bool, RunError> {
        let (parent, held) = self.both()?;
        let own = Identity::of(held).map_err(failed("examine", &self.path))?;
        match own.confirm_in(parent, &self.name, &self.path) {
            Err(RunError::File { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(false),
            confirmed => confirmed.map(|()| true),
        }
    }
}

/// What a directory is in, and its name there.
fn parent_of(path: &Path) -> Result<(OwnedFd, &OsStr), RunError> {
    let nowhere = || failed("open what holds", path)(ErrorKind::NotADirectory.into());
    let (parent, name) = path.parent().zip(path.file_name()).ok_or_else(nowhere)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::open(parent, flags, Mode::empty());
    Ok((open.map_err(|errno| failed("open what holds", path)(errno.into()))?, name))
}

/// Opens a directory that is no link.
fn open_directory(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(parent, name, flags, Mode::empty())?)
}

/// What kind of thing has a name; `None` where nothing has.
fn kind_of(directory: impl AsFd, name: &str) -> Result<Option<FileType>, Error> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(FileType::from_raw_mode(found.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The directory of a set, made anew: one that held many files is not what a new one is.
fn renew(root: &Root, key: u64, set: Names) -> Result<OwnedFd, RunError> {
    let name = set_name(set);
    let place = root.path.join(name);
    no_strangers(&place, remove_set(root, key, set)?)?;
    let held = root.held()?;
    let made = rustix::fs::mkdirat(held, name, Mode::RWXU).map_err(Error::from);
    let open = made.and_then(|()| open_directory(held, OsStr::new(name)));
    open.map_err(failed("make anew", &place))
}

/// Removes our files in a set's directory, and it if nothing else is in it. Names of what else is.
fn remove_set(root: &Root, key: u64, set: Names) -> Result<Vec<OsString>, RunError> {
    let (held, name) = (root.held()?, set_name(set));
    let place = root.path.join(name);
    let cannot = || failed("clear", &place);
    match kind_of(held, name).map_err(cannot())? {
        None => return Ok(Vec::new()),
        Some(FileType::Directory) => {}
        Some(_) => return Ok(vec![OsString::from(name)]),
    }
    let names = names(key, set);
    let open = uring::Directory::open_in(held, Path::new(name), &place, names, (false, false));
    let open = open.map_err(raw).map_err(cannot())?;
    match open.clear().map_err(raw) {
        // A directory by the name of a file of ours is somebody else's, as is what is found below.
        Err(error) if error.kind() != ErrorKind::IsADirectory => return Err(cannot()(error)),
        _ => {}
    }
    match rustix::fs::unlinkat(held, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => entries(&open, &place),
        done => done.map(|()| Vec::new()).map_err(|e| failed("remove", &place)(e.into())),
    }
}

/// Removes both sets. What else was found in them, each with the name of its set.
fn remove_sets(root: &Root, key: u64) -> Result<Vec<OsString>, RunError> {
    let mut strangers = Vec::new();
    for set in SETS {
        let name = set_name(set);
        for stranger in remove_set(root, key, set)? {
            let whole = Path::new(name).join(&stranger).into_os_string();
            strangers.push(if stranger == name { stranger } else { whole });
        }
    }
    Ok(strangers)
}

/// Removes a directory of ours. Its files go first and what says whose it is goes last, so that a
/// removal that was cut short at any moment can be finished. It stays, with its mark, if somebody
/// put something into it or gave its name to something else.
fn remove(root: &Root, key: u64) -> Result<(), RunError> {
    // What was moved away is left to whoever did that.
    if !root.is_at_its_name()? {
        return Ok(());
    }
    confirm(root, key)?;
    let mut strangers = remove_sets(root, key)?;
    let is_ours =
        |name: &OsString| [MARKER].into_iter().chain(SETS.map(set_name)).any(|known| name == known);
    let (parent, held) = root.both()?;
    let all = entries(held, &root.path)?;
    strangers.extend(all.into_iter().filter(|name| !is_ours(name)));
    no_strangers(&root.path, strangers)?;
    match rustix::fs::unlinkat(held, MARKER, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(failed("remove", &root.path.join(MARKER))(errno.into())),
    }
    match rustix::fs::unlinkat(parent, &root.name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => {
            // It is still ours, with somebody's things in it.
            let _ = mark(root, key);
            Err(failed("remove", &root.path)(errno.into()))
        }
    }
}

/// Refuses to go on in a directory in which something was found that the run did not make.
fn no_strangers(place: &Path, mut strangers: Vec<OsString>) -> Result<(), RunError> {
    strangers.sort();
    let Some(first) = strangers.first() else { return Ok(()) };
    let (path, name) = (place.to_path_buf(), first.to_string_lossy().into_owned());
    Err(RunError::Strangers { path, name, others: strangers.len() - 1 })
}

/// Names of everything in a directory.
fn entries(open: impl AsFd, place: &Path) -> Result<Vec<OsString>, RunError> {
    let read = || -> Result<Vec<OsString>, Errno> {
        let mut found = Vec::new();
        for entry in Dir::read_from(open)? {
            let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
            if name != "." && name != ".." {
                found.push(name);
            }
        }
        Ok(found)
    };
    read().map_err(|errno| failed("examine", place)(errno.into()))
}

/// Names the inode, so that a copy of the directory is nobody's of ours.
fn mark_text(held: impl AsFd, key: u64) -> Result<String, Error> {
    let inode = rustix::fs::fstat(held)?.st_ino;
    Ok(format!("plimsoll 1 key={key:016x} inode={inode}\n"))
}

/// Says whose the directory is. Nothing else is in it then: half of that will do.
fn mark(root: &Root, key: u64) -> Result<(), RunError> {
    let held = root.held()?;
    let write = || -> Result<(), Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        let mut file = File::from(rustix::fs::openat(held, MARKER, flags | OFlags::CLOEXEC, mode)?);
        file.write_all(mark_text(held, key)?.as_bytes())?;
        file.sync_all()
    };
    write().map_err(failed("mark", &root.path))
}

/// Reads a mark; nothing where there is none. Whatever has its name is neither followed nor waited for.
fn marker(held: impl AsFd) -> Result<Vec<u8>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut text = Vec::new();
    match rustix::fs::openat(&held, MARKER, flags, Mode::empty()) {
        Ok(open) => File::from(open).take(MARK_MAX).read_to_end(&mut text)?,
        Err(Errno::NOENT) => 0,
        Err(errno) => return Err(errno.into()),
    };
    Ok(text)
}

/// Refuses a directory that is not the run's. One without a whole mark is, if it is empty but for
/// that: its run was killed before it could say so, and there is nothing in it to lose.
fn confirm(root: &Root, key: u64) -> Result<(), RunError> {
    let refuse = |why: String| Err(RunError::NotOurs { path: root.path.clone(), why });
    let examine = || failed("examine", &root.path);
    let held = root.held()?;
    let whole = mark_text(held, key).map_err(examine())?.into_bytes();
    let found = marker(held).map_err(examine())?;
    if found == whole {
        return Ok(());
    }
    if !whole.starts_with(&found) {
        return refuse(format!("its {MARKER} names another one"));
    }
    match entries(held, &root.path)?.iter().any(|name| name != MARKER) {
        true => refuse(format!("it has no whole {MARKER} and is not empty")),
        false => Ok(()),
    }
}

fn raw_is(error: &Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

fn raw(errno: device::Errno) -> Error {
    Error::from_raw_os_error(errno.0)
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(Error) -> RunError {
    let path = path.to_path_buf();
    move |source| RunError::File { what, path, source }
}
