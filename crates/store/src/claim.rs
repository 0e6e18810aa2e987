//! Who works on a run now.
//!
//! A claim is a lock of the kernel's on a file beside the store, `STORE-r17.lock`, not a row in
//! it: the kernel lets go of it when the process ends, however it ends, so there is no stale
//! owner to detect by guessing from process ids (which containers and reboots use again). The
//! text in the file only says who, for messages.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{StoreError, beside, names};

/// How often and how long a claim waits for one who only looks (see [`is_claimed`]).
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(5);

/// The right to go on with a run, held until dropped.
#[derive(Debug)]
pub struct Claim {
    store: PathBuf,
    run: String,
    path: PathBuf,
    file: File,
}

impl Claim {
    /// Makes the file of the lock again if somebody removed it meanwhile: without it another process
    /// may take the run for a killed one. An error if another process has the run by now.
    pub fn renew(&mut self) -> Result<(), StoreError> {
        if !beside::is_still(&self.path, &self.file) {
            *self = claim(&self.store, &self.run)?;
        }
        Ok(())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while still locked, so nobody can have it open and locked: whoever opened it
        // before finds it is no longer the file of that name. Left behind it does no harm.
        if beside::is_still(&self.path, &self.file) {
            let _ = std::fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

pub(crate) fn lock_path(store: &Path, run: &str) -> PathBuf {
    // One store has one lock, however it is named: relative, absolute or through a link.
    let store = names::real(store);
    let mut name = store.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{run}.lock"));
    store.with_file_name(name)
}

pub(crate) fn claim(store: &Path, run: &str) -> Result<Claim, StoreError> {
    let path = lock_path(store, run);
    let failed = |source| StoreError::CannotClaim { path: path.clone(), source };
    for _ in 0..LOOKS {
        let mut file = beside::open(&path, store)?;
        match file.try_lock() {
            Ok(()) if beside::is_still(&path, &file) => {
                if !is_signed(&mut file).map_err(failed)? {
                    let why = "it holds something other than a lock".to_owned();
                    return Err(beside::not_beside(path, why));
                }
                // Who it is, is only for messages: a full disk keeps nobody from a run.
                let _ = sign(&mut file);
                let (store, run) = (store.to_owned(), run.to_owned());
                return Ok(Claim { store, run, path, file });
            }
            // The holder before us removed the file between our open and our lock.
            Ok(()) => continue,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOOK),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(StoreError::Claimed { run: run.to_owned(), holder: holder(&path) })
}

/// Whether someone holds the run. `false` also where that cannot be known.
pub(crate) fn is_claimed(store: &Path, run: &str) -> bool {
    let Ok(file) = beside::read(&lock_path(store, run)) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

const SIGNED: &str = "process ";

/// Whether a file is empty or was signed by a holder that did not come to remove it. Anything else
/// was put there under the name of a lock, and is not cut.
fn is_signed(file: &mut File) -> io::Result<bool> {
    let mut text = Vec::new();
    file.take(SIGNED.len() as u64).read_to_end(&mut text)?;
    // A full disk lets only the beginning be written.
    Ok(SIGNED.as_bytes().starts_with(&text))
}

fn sign(file: &mut File) -> io::Result<()> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "{SIGNED}{} on {}", std::process::id(), host.trim())
}

fn holder(path: &Path) -> Option<String> {
    let mut text = String::new();
    beside::read(path).ok()?.take(256).read_to_string(&mut text).ok()?;
    let text = text.trim();
    (!text.is_empty() && !text.contains(char::is_control)).then(|| text.to_owned())
}
