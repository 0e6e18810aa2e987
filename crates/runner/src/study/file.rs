//! The journal on disk: lines that are there before what they announce is done.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use study::journal::{Begins, Entry, State};

use crate::study::PlayError;

/// How a journal's name ends.
const ENDING: &str = "journal";
/// How it ends before it has its first line.
const BEGINNING: &str = "beginning";
/// How the file is called beside it that tools have open as long as they live.
const TOOLS: &str = "tools";
/// The largest that is read: thousands of builds of dozens of devices.
const BYTES_MAX: u64 = 256 << 20;
/// A tool that a killed study has started is waited for that long.
const TOOLS_END: Duration = Duration::from_secs(20);
/// A killed study's child has the journal's lock until it has become the tool that it is to be.
const CHILD_BECOMES: Duration = Duration::from_secs(1);
/// Between looks at it.
const LOOK: Duration = Duration::from_millis(50);

/// Where journals are: beside the store itself, by whatever name or link it is given. Another
/// store beside it has another directory: its whole name is in that of the directory.
pub fn directory(store: &Path) -> PathBuf {
    let mut name = itself(store).into_os_string();
    name.push(".studies");
    PathBuf::from(name)
}

/// Journals of a store with how each stands.
pub(super) fn journals_of(store: &Path) -> Vec<(PathBuf, Result<State, PlayError>)> {
    let all = journals(&directory(store)).into_iter();
    all.map(|path| (path.clone(), peek(&path))).collect()
}

/// The path of a file without links, whether it is there yet or not.
fn itself(path: &Path) -> PathBuf {
    if let Ok(found) = std::fs::canonicalize(path) {
        return found;
    }
    let place = |path: &Path| match path.parent() {
        Some(place) if !place.as_os_str().is_empty() => place.to_path_buf(),
        _ => PathBuf::from("."),
    };
    // A link to what is made later.
    let path = match std::fs::read_link(path) {
        Ok(to) => place(path).join(to),
        Err(_) => path.to_path_buf(),
    };
    match (std::fs::canonicalize(place(&path)), path.file_name()) {
        (Ok(place), Some(name)) => place.join(name),
        _ => path,
    }
}

/// How a study stood when it was last written of, by its name and key; `None` without a journal that
/// can be believed.
pub fn played(store: &Path, name: &str, key: &str) -> Option<State> {
    let path = directory(store).join(format!("{name}-{key}.{ENDING}"));
    peek(&path).ok().filter(|state| state.begins.key == key)
}

/// What announces nothing.
const NOTHING: Entry = Entry::Ended { complete: false };

/// A journal that this process holds.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    file: File,
    state: State,
    /// Locked; tools inherit it.
    tools: File,
    /// It cannot be written any more: what is taken back is known to this process only.
    is_lost: bool,
}

/// A journal of a study that did not come to its end.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Where it is.
    pub path: PathBuf,
    /// How it stands.
    pub state: State,
}

impl Unfinished {
    /// Whether a process is at it at this moment. Not known counts as no.
    pub fn is_playing(&self) -> bool {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let Ok(file) = rustix::fs::open(&self.path, flags, Mode::empty()) else { return false };
        let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        lock == Err(rustix::io::Errno::WOULDBLOCK)
    }
}

fn failed(what: &'static str, path: &Path) -> impl Fn(Error) -> PlayError {
    move |source| PlayError::Journal { what, path: path.to_path_buf(), source }
}

impl JournalFile {
    /// A new one, on disk with its first line when this returns.
    pub fn create(directory: &Path, begins: Begins) -> Result<Self, PlayError> {
        let path = directory.join(format!("{}-{}.{ENDING}", begins.name, begins.key));
        let cannot = failed("make", &path);
        std::fs::create_dir_all(directory).map_err(&cannot)?;
        // It has its name when it has its first line: without one nobody knows whose it is.
        let unnamed = path.with_extension(BEGINNING);
        let (place, first) = held(&unnamed)?;
        let file = open_own(&unnamed, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
        lock(&file, &begins.name)?;
        let tools = hold_tools(&path, Duration::ZERO)?;
        let state = State::new(begins.clone());
        let mut journal = Self { state, path: path.clone(), file, tools, is_lost: false };
        let begun = journal.add(&Entry::Begins(Box::new(begins))).and_then(|()| {
            // Nothing has that name: the key is drawn anew each time.
            let last = path.file_name().unwrap_or_default();
            let named = rustix::fs::renameat(&place, first, &place, last);
            named.map_err(|error| cannot(error.into()))
        });
        if let Err(error) = begun {
            remove(&unnamed);
            remove(&path.with_extension(TOOLS));
            return Err(error);
        }
        rustix::fs::fsync(&place).map_err(|errno| cannot(errno.into()))?;
        Ok(journal)
    }

    /// One that is there, held against others. What a crash cut off of its last line goes. Tools
    /// that a killed study has started are waited for.
    pub fn open(path: &Path) -> Result<Self, PlayError> {
        Self::open_within(path, TOOLS_END)
    }

    /// The same; tools are waited for that long.
    fn open_within(path: &Path, patience: Duration) -> Result<Self, PlayError> {
        Self::open_with(path, Duration::ZERO, |path| hold_tools(path, patience))
    }

    /// The same, beside tools that are still at work: for what cannot be in their way.
    pub(super) fn open_beside_tools(path: &Path) -> Result<Self, PlayError> {
        Self::open_with(path, CHILD_BECOMES, tools_of)
    }

    /// * `patience`: who has it locked is waited for that long.
    fn open_with(
        path: &Path,
        patience: Duration,
        tools: impl FnOnce(&Path) -> Result<File, PlayError>,
    ) -> Result<Self, PlayError> {
        let cannot = failed("open", path);
        let mut file = open_own(path, OFlags::RDWR)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let begun = Instant::now();
        while let Err(error) = lock(&file, &name) {
            if begun.elapsed() >= patience {
                return Err(error);
            }
            std::thread::sleep(LOOK);
        }
        let tools = tools(path)?;
        let text = read(&file, path)?;
        let (state, whole) = State::read(&text)
            .map_err(|source| PlayError::Damaged { path: path.to_path_buf(), source })?;
        // Also to the same length this would give back what is kept for it.
        if whole < text.len() {
            file.set_len(whole as u64).map_err(&cannot)?;
        }
        file.seek(SeekFrom::End(0)).map_err(&cannot)?;
        let journal = Self { path: path.to_path_buf(), file, state, tools, is_lost: false };
        // What is to be taken back is so with as much room as there is.
        let _ = journal.keep_room(whole as u64, journal.state.bytes_to_take_back(&NOTHING));
        Ok(journal)
    }

    /// What tools are given to hold as long as they live.
    pub(super) fn tools(&self) -> &File {
        &self.tools
    }

    /// From now on nothing is written: what there is to take back is taken back all the same.
    pub(super) fn go_on_without(&mut self) {
        self.is_lost = true;
    }

    /// How the study stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps room on the disk for so much more: what other files take is not of this.
    ///
    /// File systems that cannot are believed to have it.
    fn keep_room(&self, written: u64, more: u64) -> Result<(), Error> {
        use rustix::fs::FallocateFlags;
        use rustix::io::Errno;
        let length = written.saturating_add(more);
        match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, length) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG | Errno::IO)) => {
                Err(error.into())
            }
            _ => Ok(()),
        }
    }

    /// Adds a line; it is on disk when this returns.
    ///
    /// One that announces something is added only where there is room for all the lines by which
    /// that and everything before it is taken back.
    pub fn add(&mut self, entry: &Entry) -> Result<(), PlayError> {
        if self.is_lost {
            self.state.apply(entry);
            return Ok(());
        }
        let cannot = failed("write", &self.path);
        let mut line = serde_json::to_vec(entry).map_err(|error| cannot(error.into()))?;
        line.push(b'\n');
        let before = self.file.metadata().map_err(&cannot)?;
        if before.nlink() == 0 {
            // Nobody would find it: what is done from here on could not be taken back.
            return Err(failed("find", &self.path)(ErrorKind::NotFound.into()));
        }
        if !entry.is_afterwards() {
            let more = self.state.bytes_to_take_back(entry).saturating_add(line.len() as u64);
            self.keep_room(before.len(), more).map_err(&cannot)?;
        }
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Half a line would spoil the next one.
            if self.file.metadata().is_ok_and(|now| now.len() > before.len()) {
                let _ = self.file.set_len(before.len());
            }
            let _ = self.file.seek(SeekFrom::End(0));
            return Err(cannot(error));
        }
        self.state.apply(entry);
        if matches!(entry, Entry::Ended { .. }) {
            // Of no use any more; the next one makes its own.
            remove(&self.path.with_extension(TOOLS));
            // Nor is the room that it kept.
            let _ = self.file.set_len(before.len().saturating_add(line.len() as u64));
        }
        Ok(())
    }
}

/// The directory that a journal is in, held open, and its name there. The directory of journals has
/// its name beside the store, and whoever makes a link of that name means another place: refused.
fn held(path: &Path) -> Result<(OwnedFd, &OsStr), PlayError> {
    let nowhere = || failed("open", path)(ErrorKind::NotFound.into());
    let (place, name) = path.parent().zip(path.file_name()).ok_or_else(nowhere)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::open(place, flags, Mode::empty()) {
        Ok(open) => Ok((open, name)),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            let why = "it is a link, or no directory".to_owned();
            Err(PlayError::Untrusted { path: place.to_path_buf(), why })
        }
        Err(errno) => Err(failed("open", path)(errno.into())),
    }
}

/// Removes a file of ours beside a journal; one that stays is of no use to anybody.
fn remove(path: &Path) {
    if let Ok((place, name)) = held(path) {
        let _ = rustix::fs::unlinkat(place, name, AtFlags::empty());
    }
}

/// Opens a file of ours: neither a link, nor a pipe, nor one that somebody else could have written,
/// nor one that has another name besides.
fn open_own(path: &Path, flags: OFlags) -> Result<File, PlayError> {
    let (place, name) = held(path)?;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place, name, flags, Mode::RUSR | Mode::WUSR);
    let file = File::from(file.map_err(|errno| failed("open", path)(errno.into()))?);
    let metadata = file.metadata().map_err(failed("open", path))?;
    let user = rustix::process::geteuid().as_raw();
    let refused =
        |why: &str| Err(PlayError::Untrusted { path: path.to_path_buf(), why: why.to_owned() });
    if !metadata.is_file() {
        return refused("it is no regular file");
    }
    if metadata.nlink() > 1 {
        return refused("it has a second name");
    }
    if metadata.len() > BYTES_MAX {
        return refused("it is longer than any journal");
    }
    if metadata.uid() != user && metadata.uid() != 0 {
        return refused(&format!("it is user {}'s, and this is user {user}", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        return refused("others may write to it");
    }
    Ok(file)
}

fn read(file: &File, path: &Path) -> Result<String, PlayError> {
    let mut text = String::new();
    file.take(BYTES_MAX).read_to_string(&mut text).map_err(failed("read", path))?;
    Ok(text)
}

/// The file that tools hold.
fn tools_of(journal: &Path) -> Result<File, PlayError> {
    open_own(&journal.with_extension(TOOLS), OFlags::RDWR | OFlags::CREATE)
}

/// The same, locked. Whoever had it locked has ended, and all that it started.
fn hold_tools(journal: &Path, patience: Duration) -> Result<File, PlayError> {
    let file = tools_of(journal)?;
    let begun = Instant::now();
    while let Err(error) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if matches!(error, Errno::NOTSUP | Errno::NOLCK) {
            break;
        }
        if begun.elapsed() >= patience {
            return Err(PlayError::ToolsAtWork { file: journal.with_extension(TOOLS) });
        }
        std::thread::sleep(LOOK);
    }
    Ok(file)
}

fn lock(file: &File, name: &str) -> Result<(), PlayError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        // Without locks nobody can tell; two at once are then the operator's to avoid.
        Ok(()) | Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK) => Ok(()),
        Err(_) => Err(PlayError::InUse { name: name.to_owned() }),
    }
}

/// Journals in a directory, oldest name first; those that cannot be read are told apart.
fn journals(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
        .collect();
    found.sort();
    found
}

/// How a journal stands, without holding it.
fn peek(path: &Path) -> Result<State, PlayError> {
    let file = open_own(path, OFlags::RDONLY)?;
    let text = read(&file, path)?;
    State::read(&text)
        .map(|(state, _)| state)
        .map_err(|source| PlayError::Damaged { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(key: &str) -> Begins {
        Begins {
            suites: Vec::new(),
            version: study::journal::VERSION,
            key: key.into(),
            name: "s".into(),
            file: "/s.toml".into(),
            text: String::new(),
            seed: 1,
            started_unix_ns: 0,
            program: "0".into(),
        }
    }

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("journal-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        place
    }

    #[test]
    fn pipes_links_and_files_that_others_may_write_are_no_journals() {
        use std::os::unix::fs::PermissionsExt;
        let place = place("odd");
        let mut journal = JournalFile::create(&place, begins("00000002")).unwrap();
        let path = journal.path().to_path_buf();
        journal.add(&Entry::Built { stack: 1 }).unwrap();
        drop(journal);
        let pipe = place.join("p.journal");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let link = place.join("l.journal");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for odd in [&pipe, &link] {
            assert!(peek(odd).is_err() && JournalFile::open(odd).is_err(), "{}", odd.display());
        }
        assert!(matches!(peek(&pipe), Err(PlayError::Untrusted { .. })));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(matches!(peek(&path), Err(PlayError::Untrusted { .. })));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        assert!(peek(&path).is_ok() && JournalFile::open(&path).is_ok());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let root =
                PlayError::Untrusted { path: path.clone(), why: "it is user 65534's".into() };
            let error = peek(&path).unwrap_err().to_string();
            assert!(error.starts_with(&root.to_string()), "{error}");
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        }
        // Nobody reads for minutes what no study has written.
        std::fs::File::options().write(true).open(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(matches!(peek(&path), Err(PlayError::Untrusted { .. })));
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_journal_with_a_second_name_and_one_reached_by_a_link_are_left_alone() {
        let place = place("links");
        let real = place.join("real.studies");
        let link = place.join("link.studies");
        std::fs::create_dir_all(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let refused =
            |error: PlayError| assert!(matches!(error, PlayError::Untrusted { .. }), "{error}");
        refused(JournalFile::create(&link, begins("00000005")).unwrap_err());
        assert_eq!(std::fs::read_dir(&real).unwrap().count(), 0, "nothing is made behind a link");
        let journal = JournalFile::create(&real, begins("00000005")).unwrap();
        let path = journal.path().to_path_buf();
        drop(journal);
        let before = std::fs::read(&path).unwrap();
        let through = link.join(path.file_name().unwrap());
        refused(peek(&through).unwrap_err());
        refused(JournalFile::open(&through).unwrap_err());
        let second = place.join("second");
        std::fs::hard_link(&path, &second).unwrap();
        refused(peek(&path).unwrap_err());
        refused(JournalFile::open(&path).unwrap_err());
        assert_eq!(std::fs::read(&second).unwrap(), before);
        std::fs::remove_file(&second).unwrap();
        // What the tools hold is no other way in.
        let tools = path.with_extension(TOOLS);
        let _ = std::fs::remove_file(&tools);
        std::fs::write(place.join("foreign"), "x").unwrap();
        std::fs::hard_link(place.join("foreign"), &tools).unwrap();
        // A child of another test may have the lock until it becomes a program: waited for.
        refused(JournalFile::open_beside_tools(&path).unwrap_err());
        std::fs::remove_file(&tools).unwrap();
        JournalFile::open_beside_tools(&path).unwrap();
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn every_store_has_its_own_journals_by_whatever_name_it_goes() {
        let place = place("stores");
        std::fs::create_dir_all(&place).unwrap();
        let place = std::fs::canonicalize(place).unwrap();
        let of = |name: &str| directory(&place.join(name));
        for name in ["s", "s.", "s.db", "s.db2", "s.x"] {
            assert_eq!(of(name), place.join(format!("{name}.studies")));
        }
        std::os::unix::fs::symlink("there.db", place.join("link.db")).unwrap();
        for _ in 0..2 {
            assert_eq!(of("link.db"), place.join("there.db.studies"));
            std::fs::write(place.join("there.db"), "").unwrap();
        }
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_journal_that_was_removed_is_written_no_more() {
        let place = place("removed");
        let mut journal = JournalFile::create(&place, begins("00000003")).unwrap();
        std::fs::remove_file(journal.path()).unwrap();
        let entry = Entry::Built { stack: 1 };
        assert!(matches!(journal.add(&entry), Err(PlayError::Journal { what: "find", .. })));
        journal.go_on_without();
        journal.add(&entry).unwrap();
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_tool_that_outlived_its_study_is_waited_for() {
        let place = place("tools");
        let journal = JournalFile::create(&place, begins("00000004")).unwrap();
        let path = journal.path().to_path_buf();
        let held = journal.tools().try_clone().unwrap();
        let mut tool = std::process::Command::new("sleep").arg("60").stdin(held).spawn().unwrap();
        drop(journal);
        // A child that another test is starting has all files for a moment, with their locks.
        let mut opened = JournalFile::open_within(&path, Duration::from_millis(100));
        for _ in 0..50 {
            match &opened {
                Err(PlayError::ToolsAtWork { .. }) => break,
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
            opened = JournalFile::open_within(&path, Duration::from_millis(100));
        }
        assert!(matches!(opened, Err(PlayError::ToolsAtWork { .. })));
        tool.kill().unwrap();
        tool.wait().unwrap();
        let opens = || {
            std::thread::sleep(Duration::from_millis(20));
            JournalFile::open(&path).is_ok()
        };
        assert!((0..50).any(|_| opens()));
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_journal_goes_on_after_a_line_that_was_cut_off() {
        let place = std::env::temp_dir().join(format!("journal-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        let mut journal = JournalFile::create(&place, begins("00000001")).unwrap();
        let path = journal.path().to_path_buf();
        journal.add(&Entry::Built { stack: 1 }).unwrap();
        let held = JournalFile::open(&path).unwrap_err();
        assert!(matches!(held, PlayError::InUse { .. }), "{held}");
        let found = Unfinished { path: path.clone(), state: journal.state().clone() };
        assert!(found.is_playing());
        drop(journal);
        // A child that another test is starting has all files for a moment, with their locks.
        let is_free = || {
            std::thread::sleep(Duration::from_millis(20));
            !found.is_playing()
        };
        assert!((0..50).any(|_| is_free()));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"is\":\"bui"].concat()).unwrap();
        let mut journal = JournalFile::open_with(&path, Duration::from_secs(5), tools_of).unwrap();
        journal.add(&Entry::Ended { complete: true }).unwrap();
        drop(journal);
        assert_eq!(peek(&path).unwrap().ended, Some(true));
        assert_eq!(journals(&place), [path]);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
