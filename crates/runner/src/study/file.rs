//! The journal on disk: lines that are there before what they announce is done.

use std::fs::{File, OpenOptions};
use std::io::{Error, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use study::journal::{Begins, Entry, State};

use crate::study::PlayError;

/// How a journal's name ends.
const ENDING: &str = "journal";

/// Where journals are: beside the store.
pub fn directory(store: &Path) -> PathBuf {
    store.with_extension("studies")
}

/// A journal that this process holds.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    file: File,
    state: State,
}

/// A journal of a study that did not come to its end.
#[derive(Clone, Debug)]
pub struct Unfinished {
    /// Where it is.
    pub path: PathBuf,
    /// How it stands.
    pub state: State,
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
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(&cannot)?;
        lock(&file, &begins.name)?;
        let mut journal = Self { state: State::new(begins.clone()), path: path.clone(), file };
        journal.add(&Entry::Begins(Box::new(begins)))?;
        File::open(directory).and_then(|place| place.sync_all()).map_err(&cannot)?;
        Ok(journal)
    }

    /// One that is there, held against others. What a crash cut off of its last line goes.
    pub fn open(path: &Path) -> Result<Self, PlayError> {
        let cannot = failed("open", path);
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(&cannot)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        lock(&file, &name)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed("read", path))?;
        let (state, whole) = State::read(&text)
            .map_err(|source| PlayError::Damaged { path: path.to_path_buf(), source })?;
        file.set_len(whole as u64).map_err(&cannot)?;
        file.seek(SeekFrom::End(0)).map_err(&cannot)?;
        Ok(Self { path: path.to_path_buf(), file, state })
    }

    /// How the study stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line; it is on disk when this returns.
    pub fn add(&mut self, entry: &Entry) -> Result<(), PlayError> {
        let cannot = failed("write", &self.path);
        let mut line = serde_json::to_vec(entry).map_err(|error| cannot(error.into()))?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(&cannot)?;
        self.file.sync_data().map_err(&cannot)?;
        self.state.apply(entry);
        Ok(())
    }
}

fn lock(file: &File, name: &str) -> Result<(), PlayError> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        // Without locks nobody can tell; two at once are then the operator's to avoid.
        Ok(()) | Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOLCK) => Ok(()),
        Err(_) => Err(PlayError::InUse { name: name.to_owned() }),
    }
}

/// Journals in a directory, oldest name first; those that cannot be read are told apart.
pub(super) fn journals(directory: &Path) -> Vec<PathBuf> {
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
pub(super) fn peek(path: &Path) -> Result<State, PlayError> {
    let text = std::fs::read_to_string(path).map_err(failed("read", path))?;
    State::read(&text)
        .map(|(state, _)| state)
        .map_err(|source| PlayError::Damaged { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(key: &str) -> Begins {
        Begins {
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

    #[test]
    fn a_journal_goes_on_after_a_line_that_was_cut_off() {
        let place = std::env::temp_dir().join(format!("journal-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        let mut journal = JournalFile::create(&place, begins("00000001")).unwrap();
        let path = journal.path().to_path_buf();
        journal.add(&Entry::Built { stack: 1 }).unwrap();
        let held = JournalFile::open(&path).unwrap_err();
        assert!(matches!(held, PlayError::InUse { .. }), "{held}");
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"is\":\"bui"].concat()).unwrap();
        let mut journal = JournalFile::open(&path).unwrap();
        journal.add(&Entry::Ended { complete: true }).unwrap();
        drop(journal);
        assert_eq!(peek(&path).unwrap().ended, Some(true));
        assert_eq!(journals(&place), [path]);
        std::fs::remove_dir_all(&place).unwrap();
    }
}
