//! Files that are made, looked at and removed by number in a directory of their own.
//!
//! All calls go through the directory's descriptor and never follow a link, and only names that a
//! [`FileNames`] can have given are ever removed.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use device::{Errno, Op, Request};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno as Raw;

use crate::buffers::splitmix64;

/// Letters and digits of the part of a name that is drawn.
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Hexadecimal digits of the part that counts.
const DIGITS: usize = 10;
/// The drawn part is of 0 to so many letters.
const DRAWN_MAX: usize = 12;
/// Longest name, and the zero that ends it.
const NAME_MAX: usize = DIGITS + DRAWN_MAX + 1;

/// Names of numbered files, as bonnie++ has them: ten hexadecimal digits, and up to twelve letters
/// that depend on the number and the seed alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileNames {
    /// Same seed, same letters.
    pub seed: u64,
    /// The letters come before the digits, so that names that follow each other have nothing in
    /// common.
    pub letters_first: bool,
}

/// A name with room for the longest.
#[derive(Clone, Copy, Debug)]
pub struct FileName([u8; NAME_MAX]);

impl FileName {
    /// As system calls take it.
    pub fn as_c_str(&self) -> &CStr {
        // The last byte is never written to.
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

impl FileNames {
    /// The name of a file.
    pub fn name(&self, number: u64) -> FileName {
        let mut name = [0; NAME_MAX];
        let mut state = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let drawn = (splitmix64(&mut state) % (DRAWN_MAX as u64 + 1)) as usize;
        let (letters_at, digits_at) = if self.letters_first { (0, drawn) } else { (DIGITS, 0) };
        for byte in &mut name[letters_at..letters_at + drawn] {
            *byte = LETTERS[(splitmix64(&mut state) % LETTERS.len() as u64) as usize];
        }
        for (place, byte) in name[digits_at..digits_at + DIGITS].iter_mut().rev().enumerate() {
            *byte = b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
        }
        FileName(name)
    }

    /// The number of the file of that name, if it is one of these.
    pub fn number(&self, name: &CStr) -> Option<u64> {
        let bytes = name.to_bytes();
        let start = if self.letters_first { bytes.len().checked_sub(DIGITS)? } else { 0 };
        let digits = std::str::from_utf8(bytes.get(start..start + DIGITS)?).ok()?;
        let number = u64::from_str_radix(digits, 16).ok()?;
        (self.name(number).as_c_str() == name).then_some(number)
    }
}

/// An open directory with such files. Requests name files by number; in one that is `listed`
/// [`Op::Stat`] and [`Op::Delete`] go to the next file as the directory lists them instead, from
/// its first one on, whatever the number.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    fd: OwnedFd,
    names: FileNames,
    listing: Option<Mutex<Listing>>,
    /// Its files hold something, so that there is more to flush than the directory.
    holds_data: bool,
}

impl Directory {
    /// Opens the directory at `path`, which is no link.
    ///
    /// * `holds_data`: a flush is to flush what files hold, too.
    pub fn open(
        path: &Path,
        names: FileNames,
        listed: bool,
        holds_data: bool,
    ) -> Result<Self, Errno> {
        Self::open_in(rustix::fs::CWD, path, path, names, (listed, holds_data))
    }

    /// The same, by its name in a directory that is held: `.` for that very directory.
    ///
    /// * `path`: what it is called to people.
    /// * `kind`: `listed` and `holds_data` of [`Self::open`].
    pub fn open_in(
        parent: impl AsFd,
        name: &Path,
        path: &Path,
        names: FileNames,
        (listed, holds_data): (bool, bool),
    ) -> Result<Self, Errno> {
        let fd = open_directory(parent, name)?;
        let listing = listed.then(|| Listing::of(&fd)).transpose()?.map(Mutex::new);
        Ok(Self { path: path.to_path_buf(), fd, names, listing, holds_data })
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a file that was not there, and closes it.
    pub fn create(&self, number: u64, content: &[u8]) -> Result<(), Errno> {
        self.create_raw(number, content).map_err(errno)
    }

    fn create_raw(&self, number: u64, content: &[u8]) -> Result<(), Raw> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let name = self.names.name(number);
        let file = rustix::fs::openat(&self.fd, name.as_c_str(), flags, mode)?;
        let mut rest = content;
        while !rest.is_empty() {
            match rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))? {
                0 => return Err(Raw::IO),
                written => rest = rest.get(written..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    fn stat(&self, number: u64, into: &mut [u8]) -> Result<(), Raw> {
        let name = self.place(number)?;
        let name = name.as_c_str();
        let found = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if found.st_size > 0 && !into.is_empty() {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.fd, name, flags, Mode::empty())?;
            rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut *into))?;
        }
        Ok(())
    }

    fn delete(&self, number: u64) -> Result<(), Raw> {
        let name = self.place(number)?;
        rustix::fs::unlinkat(&self.fd, name.as_c_str(), AtFlags::empty())
    }

    /// The name of the file that a request is about.
    fn place(&self, number: u64) -> Result<FileName, Raw> {
        let Some(listing) = &self.listing else { return Ok(self.names.name(number)) };
        listing.lock().unwrap_or_else(PoisonError::into_inner).next(&self.names)
    }

    fn flush(&self, data_only: bool) -> Result<(), Raw> {
        match (self.holds_data, data_only) {
            (true, _) => rustix::fs::syncfs(&self.fd),
            (false, true) => rustix::fs::fdatasync(&self.fd),
            (false, false) => rustix::fs::fsync(&self.fd),
        }
    }

    /// Carries out a request that is about files of the directory, or a flush of it, and answers
    /// as the kernel does.
    ///
    /// * `buffer`: of the request's slot; no longer than that is written or read.
    pub(crate) fn perform(&self, request: &Request, buffer: &mut [u8]) -> i32 {
        let number = request.offset.get();
        let Some(buffer) = buffer.get_mut(..request.length as usize) else {
            return -Raw::INVAL.raw_os_error();
        };
        let result = match request.op {
            Op::Create => self.create_raw(number, buffer),
            Op::Stat => self.stat(number, buffer),
            Op::Delete => self.delete(number),
            Op::Fsync => self.flush(false),
            Op::Fdatasync => self.flush(true),
            Op::Read | Op::Write | Op::SyncRange | Op::Trim | Op::CopyRange | Op::Commit => {
                Err(Raw::INVAL)
            }
        };
        match result {
            Ok(()) => 0,
            Err(error) => -error.raw_os_error(),
        }
    }

    /// Removes every file whose name is one of these; what else there is stays. How many were
    /// removed.
    pub fn clear(&self) -> Result<u64, Errno> {
        let mut removed = 0;
        // Some file systems leave entries out of a listing while others are removed.
        loop {
            let found = self.clear_once().map_err(errno)?;
            if found == 0 {
                return Ok(removed);
            }
            removed += found;
        }
    }

    fn clear_once(&self) -> Result<u64, Raw> {
        let mut removed = 0;
        let mut listing = Dir::read_from(&self.fd)?;
        while let Some(entry) = listing.read() {
            let entry = entry?;
            if self.names.number(entry.file_name()).is_some() {
                rustix::fs::unlinkat(&self.fd, entry.file_name(), AtFlags::empty())?;
                removed += 1;
            }
        }
        Ok(removed)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a directory that is not reached by a link in the last step.
fn open_directory(parent: impl AsFd, name: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(errno)
}

/// A walk over a directory's files in its own order, over and over.
struct Listing {
    entries: Dir,
    /// A file was found since the listing began.
    any: bool,
}

impl Listing {
    fn of(directory: &OwnedFd) -> Result<Self, Errno> {
        Ok(Self { entries: Dir::read_from(directory).map_err(errno)?, any: false })
    }

    fn next(&mut self, names: &FileNames) -> Result<FileName, Raw> {
        loop {
            match self.entries.read() {
                Some(entry) => {
                    let entry = entry?;
                    if let Some(number) = names.number(entry.file_name()) {
                        self.any = true;
                        return Ok(names.name(number));
                    }
                }
                None if self.any => {
                    self.any = false;
                    self.entries.rewind();
                }
                None => {
                    self.entries.rewind();
                    return Err(Raw::NOENT);
                }
            }
        }
    }
}

impl std::fmt::Debug for Listing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listing").field("any", &self.any).finish_non_exhaustive()
    }
}

fn errno(error: Raw) -> Errno {
    Errno(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn names_are_read_back_and_others_are_not() {
        for letters_first in [false, true] {
            let names = FileNames { seed: 7, letters_first };
            let mut seen = std::collections::HashSet::new();
            let mut lengths = [0; DRAWN_MAX + 1];
            let mut shared = 0;
            for number in (0..10_000).chain([(1 << 40) - 1]) {
                let name = names.name(number);
                let text = name.as_c_str().to_str().unwrap().to_owned();
                assert_eq!(names.number(name.as_c_str()), Some(number), "{text}");
                // Another run's names are others, but for those that chance gave the same letters.
                let other = FileNames { seed: 8, ..names };
                let same = other.name(number).as_c_str() == name.as_c_str();
                assert_eq!(other.number(name.as_c_str()).is_some(), same, "{text}");
                shared += usize::from(same);
                lengths[text.len() - DIGITS] += 1;
                let digits = format!("{number:010x}");
                let whole =
                    if letters_first { text.ends_with(&digits) } else { text.starts_with(&digits) };
                assert!(whole, "{text}");
                assert!(seen.insert(text), "{number}");
            }
            assert!(shared < 200, "{shared} of 10,000 names are both runs': seeds 7, 8");
            assert!(lengths.iter().all(|&n| (600..950).contains(&n)), "{lengths:?}: seed 7");
        }
        let names = FileNames { seed: 7, letters_first: false };
        for foreign in ["", "..", "letter.txt", "0000000001zz", "00000000g1", "+000000001"] {
            assert_eq!(names.number(&CString::new(foreign).unwrap()), None, "{foreign}");
        }
    }
}
