//! What a file is, by one plain read before SQLite opens it: SQLite rolls back a journal and puts a log
//! into a database before anybody can ask whose it is.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::beside::{self, not_beside, side};
use crate::{FileId, StoreError, file_id, migrate, names};

/// The header of a database, and that of its first page.
const START: usize = 108;

/// Files that this process has open as stores. Closing any descriptor of a file ends all locks that the
/// process has on it (POSIX), so these are not opened a second time.
static OPEN: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

fn open_stores() -> MutexGuard<'static, Vec<FileId>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A store that is open; to be made before SQLite takes its first lock, and dropped after its last.
#[derive(Debug)]
pub(crate) struct Opened(pub(crate) FileId);

impl Opened {
    pub(crate) fn of(file: FileId) -> Self {
        open_stores().push(file);
        Self(file)
    }

    /// Whether this process has it open once.
    pub(crate) fn is_only(&self) -> bool {
        open_stores().iter().filter(|open| **open == self.0).count() == 1
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = open_stores();
        if let Some(at) = open.iter().position(|open| *open == self.0) {
            open.swap_remove(at);
        }
    }
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// There is none, or nothing is in it.
    Empty,
    /// It bears our mark, or is the first page of a database that nothing was put into: until schema 16 a
    /// store had its mark only in its log.
    Store {
        version: i64,
        is_wal: bool,
    },
    /// This process has it open.
    Open,
    Foreign,
}

impl Head {
    fn read(path: &Path) -> io::Result<Self> {
        let open = open_stores();
        let found = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Empty),
            found => found?,
        };
        if !found.is_file() {
            return Ok(Self::Foreign);
        }
        if open.contains(&(found.dev(), found.ino())) {
            return Ok(Self::Open);
        }
        let mut bytes = Vec::with_capacity(START);
        File::open(path)?.take(START as u64).read_to_end(&mut bytes)?;
        let journal = side(path, "-journal").metadata().is_ok_and(|journal| journal.len() > 0);
        Ok(Self::of(&bytes, found.len(), journal))
    }

    /// * `length`: of the file.
    /// * `has_journal`: the machine may have gone down as it was made. SQLite takes that back.
    fn of(bytes: &[u8], length: u64, has_journal: bool) -> Self {
        if has_journal && bytes.iter().all(|byte| *byte == 0) {
            return Self::Empty;
        }
        let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let (Some(mark), Some(version)) = (word(68), word(60)) else {
            return if bytes.is_empty() { Self::Empty } else { Self::Foreign };
        };
        let version = i64::from(version.cast_signed());
        // The table of tables has no row, and there is no other page.
        let has_no_table = bytes.get(100) == Some(&13) && bytes.get(103..105) == Some(&[0, 0]);
        let is_blank =
            mark == 0 && version == 0 && has_no_table && (has_journal || length <= 1 << 16);
        let is_ours = i64::from(mark) == migrate::APPLICATION_ID;
        if !bytes.starts_with(b"SQLite format 3\0") || !(is_ours || is_blank) || version < 0 {
            return Self::Foreign;
        }
        Self::Store { version, is_wal: bytes.get(18) == Some(&2) }
    }
}

/// Refuses what is no store, and a store beside which SQLite would use what is not its own. What cannot
/// be read SQLite cannot open either, and says why.
pub(crate) fn look(path: &Path) -> Result<Option<Head>, StoreError> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(StoreError::IsDirectory(path.to_owned())),
        // Opening a pipe waits for someone at its other end.
        Ok(found) if !found.is_file() => return Err(StoreError::NotAStore(path.to_owned())),
        _ => names::check(path)?,
    }
    let real = names::real(path);
    beside::check(&real)?;
    let Ok(head) = Head::read(&real) else { return Ok(None) };
    let log = side(&real, "-wal");
    match head {
        Head::Foreign => return Err(StoreError::NotAStore(path.to_owned())),
        Head::Store { version: found, .. } if found > migrate::KNOWN => {
            return Err(StoreError::Newer { path: path.to_owned(), found, known: migrate::KNOWN });
        }
        // SQLite would put it into the store, or remove it.
        Head::Empty | Head::Store { is_wal: false, .. } if log.symlink_metadata().is_ok() => {
            return Err(not_beside(log, "it is the log of another database".to_owned()));
        }
        _ => {}
    }
    Ok(Some(head))
}

/// Refuses to read a store of an earlier program that still has a log: reading that makes files beside it.
pub(crate) fn look_to_read(path: &Path) -> Result<(), StoreError> {
    let known = migrate::KNOWN;
    match look(path)? {
        Some(Head::Store { version: found, is_wal: true }) if found < known => {
            let has_log = side(&names::real(path), "-wal").metadata();
            match found {
                0 if !has_log.is_ok_and(|log| log.len() > 0) => {
                    Err(StoreError::Empty(path.to_owned()))
                }
                _ => Err(StoreError::Older { path: path.to_owned(), found, known }),
            }
        }
        _ => Ok(()),
    }
}

/// Whether a file is a store, as far as it bears our mark; what cannot be read is none.
pub(crate) fn is_store(path: &Path) -> bool {
    file_id(path).is_some() && matches!(Head::read(path), Ok(Head::Store { .. } | Head::Open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_a_file_is() {
        let page = |mark: u32, version: u32, mode: u8| {
            let mut bytes = [0; START];
            bytes[100] = 13;
            bytes[..16].copy_from_slice(b"SQLite format 3\0");
            bytes[18..20].fill(mode);
            bytes[60..64].copy_from_slice(&version.to_be_bytes());
            bytes[68..72].copy_from_slice(&mark.to_be_bytes());
            bytes
        };
        let ours = 0x504c_494d;
        assert_eq!(Head::of(&[], 0, false), Head::Empty);
        assert_eq!(Head::of(b"SQLite format 3\0", 16, false), Head::Foreign);
        assert_eq!(Head::of(&[0; START], 4096, false), Head::Foreign);
        let of = |bytes: &[u8]| Head::of(bytes, 40_960, false);
        assert_eq!(of(&page(ours, 3, 2)), Head::Store { version: 3, is_wal: true });
        assert_eq!(of(&page(ours, 3, 1)), Head::Store { version: 3, is_wal: false });
        assert_eq!(of(&page(0, 0, 2)), Head::Store { version: 0, is_wal: true });
        assert_eq!(Head::of(&page(0, 0, 2), 1 << 20, false), Head::Foreign);
        assert_eq!(Head::of(&[0; START], 8192, true), Head::Empty);
        assert!(matches!(Head::of(&page(0, 0, 1), 1 << 20, true), Head::Store { .. }));
        let mut table = page(0, 0, 2);
        table[104] = 1;
        assert_eq!(of(&table), Head::Foreign);
        for (mark, version) in [(0, 1), (77, 0), (ours, u32::MAX)] {
            assert_eq!(of(&page(mark, version, 1)), Head::Foreign, "{mark} {version}");
        }
    }
}
