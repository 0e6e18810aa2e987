//! A store that gets another name while it is open.
//!
//! SQLite goes on with file and log, whatever their names are. But the log stays under the old name, and
//! nobody finds it beside the new one. So it is put into the file through the open connection.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::held::{self, Looked};
use crate::log::{self, START};
use crate::{ALONE_TIMEOUT, BUSY_TIMEOUT, Store, StoreError, beside, log_path, look};

/// File and log as they were opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: Looked,
    pub(crate) log: Looked,
    pub(crate) index: Looked,
}

impl Opened {
    /// `None` where one of them cannot be opened to be looked at, or is not there.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let real = path.canonicalize().ok()?;
        let index = beside::look_at(&beside::side(&real, "-shm")).ok()?;
        let file = beside::look_through(&real).ok()?.hold().ok()?;
        let log = beside::look_at(&log_path(&real)).ok()?;
        Some(Self { file, log, index })
    }

    /// Whether the file has a name, any: what is stored in it can be found again.
    pub(crate) fn is_linked(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }

    /// Whether the log may be put into the file: it is the file's own, and nobody uses the file with
    /// another log, as whoever opens it under its new name does.
    fn is_sound(&self) -> bool {
        let id = |of: &Looked| of.metadata().ok().map(|found| held::id(&found));
        let others = id(&self.file)
            .zip(id(&self.index))
            .and_then(|(file, index)| held::has_other_log(file, index));
        others == Some(false) && look::is_own(&self.file, &self.log)
    }

    /// What the file begins with.
    pub(crate) fn first(&self) -> Option<[u8; START]> {
        let mut first = [0; START];
        self.file.read_at(&mut first, 0).ok().map(|()| first)
    }

    /// The beginnings of page 1 that were committed to the log.
    pub(crate) fn logged(&self) -> Vec<[u8; START]> {
        log::patient_of(&self.log).marks.firsts.into_iter().collect()
    }

    pub(crate) fn log_length(&self) -> u64 {
        self.log.metadata().map_or(0, |found| found.len())
    }

    /// Page 1 as the first frame behind that length has it: it is the first page of a transaction. `None`
    /// where another frame is there, or none.
    pub(crate) fn first_at(&self, before: u64) -> Option<[u8; START]> {
        let (mut frame, mut first) = ([0; log::FRAME], [0; START]);
        let at = before.max(log::HEADER as u64);
        self.log.read_at(&mut frame, at).ok()?;
        self.log.read_at(&mut first, at + log::FRAME as u64).ok()?;
        (log::big_endian(&frame, 0) == Some(1)).then_some(first)
    }

    fn is_empty(&self) -> bool {
        self.log.metadata().is_ok_and(|found| found.len() == 0)
    }
}

impl Store {
    /// What to say if the file has another name by now. Before that, all that is stored goes into it.
    pub(crate) fn moved(&self) -> Option<StoreError> {
        let opened = self.opened.as_ref()?;
        let to = opened.file.name()?;
        let log = match self.save() {
            true => None,
            // A log without a name cannot be brought along. One that has the new name was, as when the
            // directory is renamed.
            false => Some(opened.log.name()?).filter(|log| *log != log_path(&to)),
        };
        Some(StoreError::Moved { path: self.path.clone(), to, log })
    }

    /// Puts the log into the file that it is of, whatever their names are; whether the file has all then.
    pub(crate) fn save(&self) -> bool {
        let Some(opened) = &self.opened else { return false };
        // What is not there any more cannot be put anywhere, and what is there instead must not be.
        if opened.lacks().is_some() {
            return false;
        }
        if opened.is_empty() || opened.is_put() {
            return true;
        }
        let keeps = self.reads_only || self.keeps_log || self.is_hurt.get();
        if keeps || !opened.is_sound() || self.connection.busy_timeout(ALONE_TIMEOUT).is_err() {
            return false;
        }
        // Frames in the log, and how many of them are in the file.
        let counts = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?));
        // A second name of the log is somebody's copy of it: that is not cut.
        let mode = if opened.log_names() > 1 { "FULL" } else { "TRUNCATE" };
        let put = format!("PRAGMA wal_checkpoint({mode})");
        let done = self.connection.query_row(&put, [], counts);
        let _ = self.connection.busy_timeout(BUSY_TIMEOUT);
        done.is_ok_and(|(logged, put)| logged >= 0 && logged == put)
    }
}
