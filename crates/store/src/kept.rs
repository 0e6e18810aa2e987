//! Whether what was committed can be read by whoever opens the store next.
//!
//! SQLite answers from its memory and from the log's index, and does not read the log again. So a log that
//! somebody cuts, changes or removes meanwhile goes unnoticed until the process ends, and a checkpoint
//! would put what it finds there into the file. The index says how many frames were committed, and
//! the checksum of the last one: that is compared with the log itself.

use std::path::Path;
use std::time::Duration;

use crate::beside::NAMES;
use crate::held::{self, Looked};
use crate::log::{self, FRAME, HEADER, big_endian};
use crate::moved::Opened;
use crate::{Store, StoreError, file_id, log_path};

/// So often it is looked at again: another process may be writing just now.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(10);

/// What the log's index says of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Index {
    page: u64,
    /// Committed frames.
    frames: u32,
    /// The checksum of the last of them.
    sum: [u32; 2],
    salts: [u8; 8],
    /// So many of the frames are in the file.
    put: u32,
}

impl Index {
    /// `None` where it cannot be read, or is written just now: both copies of its head are the same otherwise.
    fn read(index: &Looked) -> Option<Self> {
        let mut head = [0; 100];
        index.read_at(&mut head, 0).ok()?;
        let (one, two) = (head.get(..48)?, head.get(48..96)?);
        let word = |at: usize| Some(u32::from_ne_bytes(*head.get(at..)?.first_chunk()?));
        let page = u16::from_ne_bytes(*head.get(14..)?.first_chunk()?);
        let is_set_up = head.get(12) == Some(&1);
        (one == two && is_set_up).then_some(Self {
            // 65536 does not fit: SQLite stores 1.
            page: if page == 1 { 1 << 16 } else { u64::from(page) },
            frames: word(16)?,
            sum: [word(24)?, word(28)?],
            salts: *head.get(32..)?.first_chunk()?,
            put: word(96)?,
        })
    }

    /// Why the log does not have what the index says.
    fn fault(&self, log: &Looked) -> Option<String> {
        let step = FRAME as u64 + self.page;
        let wanted = HEADER as u64 + u64::from(self.frames) * step;
        let length = log.metadata().map_or(0, |found| found.len());
        if length < wanted {
            return Some(format!("it was cut: it has {length} bytes, wanted {wanted}"));
        }
        let mut last = [0; FRAME];
        if let Err(error) = log.read_at(&mut last, wanted - step) {
            return Some(format!("it cannot be read: {error}"));
        }
        let taken = log::taken(log);
        if taken < self.frames {
            let (bad, all) = (taken.saturating_add(1), self.frames);
            return Some(format!("frame {bad} of {all} was changed after it was written"));
        }
        let sum = [16, 20].map(|at| big_endian(&last, at).unwrap_or_default());
        let is_last = sum == self.sum && last.get(8..16) == Some(&self.salts[..]);
        (!is_last).then(|| "another log was written over it".to_owned())
    }
}

impl Opened {
    /// Why not all that was committed can be read from file and log. `None` also where that cannot be known.
    pub(crate) fn lacks(&self) -> Option<String> {
        for _ in 0..LOOKS {
            let before = Index::read(&self.index)?;
            if before.frames <= before.put {
                return None;
            }
            let why = before.fault(&self.log)?;
            // Another process may have put it into the file, and begun it anew.
            if Index::read(&self.index) == Some(before) {
                return Some(why);
            }
            std::thread::sleep(LOOK);
        }
        None
    }

    /// Whether all that was committed is in the file.
    pub(crate) fn is_put(&self) -> bool {
        Index::read(&self.index).is_some_and(|index| index.frames <= index.put)
    }

    /// Whether the log has that name.
    pub(crate) fn is_log_at(&self, name: &Path) -> bool {
        let named = std::fs::symlink_metadata(name).map(|found| held::id(&found));
        let own = self.log.metadata().map(|found| held::id(&found));
        matches!((named, own), (Ok(named), Ok(own)) if named == own)
    }

    /// How many names the log has.
    pub(crate) fn log_names(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        self.log.metadata().map_or(0, |found| found.nlink())
    }
}

impl Store {
    /// Refuses to call something stored that nobody could read. What can be saved is put into the file.
    ///
    /// * `at_end`: nothing is added after it, so that a second name of the log is not removed in time.
    pub(crate) fn kept(&self, at_end: bool) -> Result<(), StoreError> {
        let Some(opened) = &self.opened else { return Ok(()) };
        if self.file != file_id(&self.path) {
            return self.is_there();
        }
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let log = log_path(&real);
        let names = opened.log_names();
        let (why, stays) = if let Some(why) = opened.lacks() {
            (why, false)
        } else if !opened.is_log_at(&log) {
            match log.symlink_metadata() {
                Ok(_) => ("another file has its name".to_owned(), false),
                Err(_) => ("it was removed".to_owned(), false),
            }
        } else if at_end && names > 1 && !opened.is_put() {
            (format!("it has {names} {NAMES}"), true)
        } else {
            return Ok(());
        };
        let is_saved = self.save();
        if !stays {
            // Whoever opens the store next has another log: nothing more goes to this one.
            self.lost.replace(Some((why.clone(), is_saved)));
        }
        if is_saved && at_end {
            return Ok(());
        }
        Err(self.log_lost(why, is_saved))
    }

    pub(crate) fn log_lost(&self, why: String, is_saved: bool) -> StoreError {
        let log = log_path(&self.path.canonicalize().unwrap_or_else(|_| self.path.clone()));
        let has_names = self.opened.as_ref().is_some_and(|opened| opened.is_log_at(&log));
        let is_whole = has_names && self.opened.as_ref().is_some_and(|o| o.lacks().is_none());
        StoreError::LogLost { path: self.path.clone(), log, why, is_saved, is_whole }
    }

    /// The same error, unless the log is why: SQLite calls that an error of the device, or damage.
    pub(crate) fn blame(&self, error: StoreError) -> StoreError {
        if !matches!(error, StoreError::Io { .. } | StoreError::Damaged { .. }) {
            return error;
        }
        self.kept(false).err().unwrap_or(error)
    }
}
