//! The directory of a run whose suite makes, looks at and removes whole files: a new one of our
//! own beside what is measured, which goes with the run.
//!
//! Its name follows from what is stored of the run, so that one that a killed run left is found
//! again by `resume` and `rm`; a file in it says whose it is. Nothing in it is ever removed but
//! that file and files whose names only this run can have given.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use record::RunHeader;
use suite::model::{Cell, Directory, Names, Operation, Stream, Suite};
use units::Bytes;
use uring::{FileNames, FileSet};

use crate::prepare::Paths;
use crate::{RunError, own};

/// What every directory of ours is called, before the run's own part.
pub(crate) const PREFIX: &str = "plimsoll-files-";
/// The file in it that says whose it is.
const MARKER: &str = ".plimsoll";
/// What that is called until it is whole.
const MARKER_NEW: &str = ".plimsoll-new";
/// What it says is shorter.
const MARK_MAX: u64 = 255;
const SETS: [Names; 2] = [Names::Sequential, Names::Random];
/// A file of no length takes about as much: an inode and an entry.
const OVERHEAD: u64 = 512;

/// The directory of a run. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    key: u64,
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
    suite.cells().flat_map(|cell| &cell.streams).filter_map(|stream| stream.directory)
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
    Ok(remove(&root, key)?.then_some(root))
}

impl Directories {
    /// Makes the run's directory beside `target`, or takes the one that it left when it was
    /// killed. Whatever else has the name is refused.
    pub(crate) fn enter(target: &Path, key: u64) -> Result<Self, RunError> {
        let root = root(target, key).ok_or_else(|| {
            failed("make a directory beside", target)(Error::from(ErrorKind::NotADirectory))
        })?;
        match DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => mark(&root, key).inspect_err(|_| {
                // Nothing is in it yet. One that stays is the run's all the same.
                let _ = std::fs::remove_file(root.join(MARKER_NEW));
                let _ = std::fs::remove_dir(&root);
            })?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                confirm(&root, key)?;
                no_strangers(&root, remove_sets(&root, key)?)?;
                mark(&root, key)?;
            }
            Err(error) => return Err(failed("create", &root)(error)),
        }
        Ok(Self { root, key, standing: BTreeMap::new(), left: false })
    }

    /// Removes it. What stays of it, because somebody put something into it or because it cannot be
    /// removed, the next `resume` or `rm` of the run finds.
    pub(crate) fn leave(mut self) -> Result<(), RunError> {
        self.left = true;
        remove(&self.root, self.key).map(|_| ())
    }

    /// Makes of the files of each stream what it needs: a new directory for files to be made in,
    /// all of them for who looks at them or removes them. Where the visit before left that,
    /// nothing is done. False if the user wants to stop.
    pub(crate) fn get_ready(
        &mut self,
        cell: &Cell,
        stops: &dyn Fn() -> bool,
    ) -> Result<bool, RunError> {
        for stream in &cell.streams {
            let Some(wanted) = stream.directory else { continue };
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
            renew(&place, names(self.key, wanted.names))?;
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
        let names = names(self.key, wanted.names);
        let open = uring::Directory::open(&self.place(wanted.names), names, false, false);
        let open = open.map_err(raw)?;
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
        let wanted = stream.directory?;
        if creates(stream) || deletes(stream) {
            // Whatever the visit comes to, it is not what it was any more.
            self.standing.insert(wanted.names, Standing::Unknown);
        }
        let place = self.place(wanted.names);
        let listed = wanted.names == Names::Sequential && !creates(stream);
        let holds_data = wanted.file_size > Bytes::ZERO;
        let names = names(self.key, wanted.names);
        let open = uring::Directory::open(&place, names, listed, holds_data);
        Some(match open {
            Ok(directory) => Ok(Arc::new(FileSet::of_directory(directory))),
            Err(errno) => Err(failed("open", &place)(raw(errno))),
        })
    }

    /// A visit is over in which a stream completed so many requests of its own.
    pub(crate) fn made(&mut self, stream: &Stream, requests: u64) {
        let Some(directory) = stream.directory else { return };
        if creates(stream) && requests == u64::from(directory.files) {
            self.standing.insert(directory.names, Standing::Whole(directory));
        }
    }

    fn place(&self, names: Names) -> PathBuf {
        self.root.join(set_name(names))
    }
}

impl Drop for Directories {
    fn drop(&mut self) {
        if !self.left {
            // Nothing can be done about a failure; the next `resume` or `rm` of the run tries again.
            let _ = remove(&self.root, self.key);
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

/// The directory of a set, made anew: one that held many files is not what a new one is.
fn renew(place: &Path, names: FileNames) -> Result<(), RunError> {
    no_strangers(place, remove_set(place, names)?)?;
    DirBuilder::new().mode(0o700).create(place).map_err(failed("make anew", place))
}

/// Removes our files in a set's directory, and it if nothing else is in it. Names of what else is.
fn remove_set(place: &Path, names: FileNames) -> Result<Vec<OsString>, RunError> {
    match std::fs::symlink_metadata(place) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Ok(found) if !found.is_dir() => {
            return Ok(place.file_name().map(OsString::from).into_iter().collect());
        }
        _ => {}
    }
    let cannot = || failed("clear", place);
    let open = uring::Directory::open(place, names, false, false);
    let open = open.map_err(raw).map_err(cannot())?;
    match open.clear().map_err(raw) {
        // A directory by the name of a file of ours is somebody else's, as is what is found below.
        Err(error) if error.kind() != ErrorKind::IsADirectory => return Err(cannot()(error)),
        _ => {}
    }
    match std::fs::remove_dir(place) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => entries(place),
        done => done.map(|()| Vec::new()).map_err(failed("remove", place)),
    }
}

/// Removes both sets. What else was found in them, each with the name of its set.
fn remove_sets(root: &Path, key: u64) -> Result<Vec<OsString>, RunError> {
    let mut strangers = Vec::new();
    for set in SETS {
        let name = set_name(set);
        for stranger in remove_set(&root.join(name), names(key, set))? {
            let whole = Path::new(name).join(&stranger).into_os_string();
            strangers.push(if stranger == name { stranger } else { whole });
        }
    }
    Ok(strangers)
}

/// Removes a directory of ours; false where there was none. Its files go first and what says whose
/// it is goes last, so that a removal that was cut short at any moment can be finished. It stays,
/// with its mark, if somebody put something into it.
fn remove(root: &Path, key: u64) -> Result<bool, RunError> {
    match std::fs::symlink_metadata(root) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        _ => confirm(root, key)?,
    }
    let mut strangers = remove_sets(root, key)?;
    let is_ours = |name: &OsString| {
        let known = [MARKER, MARKER_NEW].into_iter().chain(SETS.map(set_name));
        known.into_iter().any(|known| name == known)
    };
    strangers.extend(entries(root)?.into_iter().filter(|name| !is_ours(name)));
    no_strangers(root, strangers)?;
    for name in [MARKER_NEW, MARKER] {
        match std::fs::remove_file(root.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", &root.join(name))(error));
            }
            _ => {}
        }
    }
    match std::fs::remove_dir(root) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => {
            // It is still ours, with somebody's things in it.
            let _ = mark(root, key);
            Err(failed("remove", root)(error))
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
fn entries(place: &Path) -> Result<Vec<OsString>, RunError> {
    let names = std::fs::read_dir(place)
        .and_then(|all| all.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>());
    names.map_err(failed("examine", place))
}

/// Names the inode, so that a copy of the directory is nobody's of ours.
fn mark_text(root: &Path, key: u64) -> Result<String, Error> {
    let inode = std::fs::symlink_metadata(root)?.ino();
    Ok(format!("plimsoll 1 key={key:016x} inode={inode}\n"))
}

/// Says whose the directory is, at one stroke: there is no time at which that is half written.
fn mark(root: &Path, key: u64) -> Result<(), RunError> {
    let (new, whole) = (root.join(MARKER_NEW), root.join(MARKER));
    let write = || {
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(mark_text(root, key)?.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, &whole)
    };
    write().map_err(failed("mark", root))
}

/// What stands in the place of a directory's mark.
#[derive(Debug, PartialEq, Eq)]
enum Marker {
    Nothing,
    Text(Vec<u8>),
    /// No mark of ours, for this reason.
    Foreign(&'static str),
}

/// Reads a mark. Whatever has its name is neither followed nor waited for.
fn marker(path: &Path) -> Result<Marker, Error> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Marker::Nothing),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Ok(Marker::Foreign("is no regular file")),
        Ok(_) => {}
    }
    let file = own::open_calmly(path, OpenOptions::new().read(true))?;
    if !file.metadata()?.is_file() {
        return Ok(Marker::Foreign("is no regular file"));
    }
    let mut text = Vec::new();
    file.take(MARK_MAX + 1).read_to_end(&mut text)?;
    Ok(match text.len() as u64 {
        0..=MARK_MAX => Marker::Text(text),
        _ => Marker::Foreign("is longer than a mark"),
    })
}

/// Refuses a directory that is not the run's. One without a whole mark is, if it is empty but for
/// that: its run was killed before it could say so, and there is nothing in it to lose.
fn confirm(root: &Path, key: u64) -> Result<(), RunError> {
    let refuse = |why: String| Err(RunError::NotOurs { path: root.to_path_buf(), why });
    let examine = || failed("examine", root);
    if !std::fs::symlink_metadata(root).map_err(examine())?.is_dir() {
        return refuse("it is no directory".to_owned());
    }
    let whole = mark_text(root, key).map_err(examine())?.into_bytes();
    let is_cut = |found: &Marker| match found {
        Marker::Nothing => true,
        Marker::Text(text) => whole.starts_with(text),
        Marker::Foreign(_) => false,
    };
    let found = marker(&root.join(MARKER)).map_err(examine())?;
    match &found {
        Marker::Text(text) if *text == whole => return Ok(()),
        Marker::Foreign(why) => return refuse(format!("its {MARKER} {why}")),
        Marker::Text(_) if !is_cut(&found) => {
            return refuse(format!("its {MARKER} names another one"));
        }
        _ => {}
    }
    let new = marker(&root.join(MARKER_NEW)).map_err(examine())?;
    let others = entries(root)?.into_iter().filter(|name| name != MARKER && name != MARKER_NEW);
    match others.count() {
        0 if is_cut(&new) => Ok(()),
        _ => refuse(format!("it has no {MARKER} and is not empty")),
    }
}

fn raw(errno: device::Errno) -> Error {
    Error::from_raw_os_error(errno.0)
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(Error) -> RunError {
    let path = path.to_path_buf();
    move |source| RunError::File { what, path, source }
}
