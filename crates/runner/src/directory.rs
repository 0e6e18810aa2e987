//! The directory of a run whose suite makes, looks at and removes whole files: a new one of our
//! own beside what is measured, which goes with the run.
//!
//! Its name follows from what is stored of the run, so that one that a killed run left is found
//! again by `resume` and `rm`; a file in it says whose it is. Nothing in it is ever removed but
//! that file and files whose names only this run can have given.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use record::RunHeader;
use suite::model::{Cell, Directory, Names, Operation, Stream, Suite};
use units::Bytes;
use uring::{FileNames, FileSet};

use crate::RunError;
use crate::prepare::Paths;

/// What every directory of ours is called, before the run's own part.
pub(crate) const PREFIX: &str = "plimsoll-files-";
/// The file in it that says whose it is.
const MARKER: &str = ".plimsoll";
/// `O_NOFOLLOW`.
const O_NOFOLLOW: i32 = 0o400_000;
/// A file of no length takes about as much: an inode and an entry.
const OVERHEAD: u64 = 512;

/// The directory of a run. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    key: u64,
    /// What is known of the files of each kind of names.
    standing: BTreeMap<Names, Standing>,
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
    let both = [Names::Sequential, Names::Random].map(most).into_iter().flatten();
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
/// that only this run can have given. False where there was none.
pub fn remove_left_behind(header: &RunHeader) -> Result<bool, RunError> {
    let key = key(header);
    let Some(root) = root(Path::new(&header.target.resolved), key) else { return Ok(false) };
    match is_ours(&root, key) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("examine", &root)(error)),
        Ok(false) => Err(RunError::NotOurs { path: root }),
        Ok(true) => remove(&root, key).map(|()| true).map_err(failed("remove", &root)),
    }
}

impl Directories {
    /// Makes the run's directory beside `target`, or takes the one that it left when it was
    /// killed. Whatever else has the name is refused.
    pub(crate) fn enter(target: &Path, key: u64) -> Result<Self, RunError> {
        let root = root(target, key).ok_or_else(|| {
            failed("make a directory beside", target)(Error::from(ErrorKind::NotADirectory))
        })?;
        match DirBuilder::new().mode(0o700).create(&root) {
            Ok(()) => mark(&root, key).map_err(failed("mark", &root))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !is_ours(&root, key).map_err(failed("examine", &root))? {
                    return Err(RunError::NotOurs { path: root });
                }
                remove_sets(&root, key).map_err(failed("clear", &root))?;
                mark(&root, key).map_err(failed("mark", &root))?;
            }
            Err(error) => return Err(failed("create", &root)(error)),
        }
        Ok(Self { root, key, standing: BTreeMap::new() })
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
            renew(&place, names(self.key, wanted.names)).map_err(failed("make anew", &place))?;
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
        // Nothing can be done about a failure; the next `resume` or `rm` of the run tries again.
        let _ = remove(&self.root, self.key);
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
fn renew(place: &Path, names: FileNames) -> Result<(), Error> {
    remove_set(place, names)?;
    DirBuilder::new().mode(0o700).create(place)
}

/// Removes our files in a set's directory, and it if nothing else is in it.
fn remove_set(place: &Path, names: FileNames) -> Result<(), Error> {
    match uring::Directory::open(place, names, false, false) {
        Ok(open) => open.clear().map_err(raw)?,
        Err(errno) if raw(errno).kind() == ErrorKind::NotFound => return Ok(()),
        Err(errno) => return Err(raw(errno)),
    };
    std::fs::remove_dir(place)
}

fn remove_sets(root: &Path, key: u64) -> Result<(), Error> {
    for set in [Names::Sequential, Names::Random] {
        remove_set(&root.join(set_name(set)), names(key, set))?;
    }
    Ok(())
}

/// Removes a directory of ours; it stays if somebody put something into it.
fn remove(root: &Path, key: u64) -> Result<(), Error> {
    if !is_ours(root, key)? {
        return Err(Error::other("it is not the run's own"));
    }
    remove_sets(root, key)?;
    match std::fs::remove_file(root.join(MARKER)) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::remove_dir(root).inspect_err(|_| {
        // It is still ours, with somebody's things in it.
        let _ = mark(root, key);
    })
}

/// Names the inode, so that a copy of the directory is nobody's of ours.
fn mark_text(root: &Path, key: u64) -> Result<String, Error> {
    let inode = std::fs::symlink_metadata(root)?.ino();
    Ok(format!("plimsoll 1 key={key:016x} inode={inode}\n"))
}

fn mark(root: &Path, key: u64) -> Result<(), Error> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(O_NOFOLLOW);
    let mut file = options.open(root.join(MARKER))?;
    file.write_all(mark_text(root, key)?.as_bytes())
}

/// Whether a directory is the run's. An empty one is, too: its run was killed before it could say
/// so, and there is nothing in it to lose.
fn is_ours(root: &Path, key: u64) -> Result<bool, Error> {
    if !std::fs::symlink_metadata(root)?.is_dir() {
        return Ok(false);
    }
    let mut options = OpenOptions::new();
    match options.read(true).custom_flags(O_NOFOLLOW).open(root.join(MARKER)) {
        Ok(file) => Ok(text_of(file)? == mark_text(root, key)?),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(std::fs::read_dir(root)?.next().is_none())
        }
        Err(error) => Err(error),
    }
}

fn text_of(file: File) -> Result<String, Error> {
    let mut bytes = Vec::new();
    file.take(256).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn raw(errno: device::Errno) -> Error {
    Error::from_raw_os_error(errno.0)
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(Error) -> RunError {
    let path = path.to_path_buf();
    move |source| RunError::File { what, path, source }
}
