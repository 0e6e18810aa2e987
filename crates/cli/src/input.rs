//! Files that are read to their end: suites and their parts, sides of comparisons, what other
//! tools printed.

use std::fs::{File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it.
///
/// Everything else is refused, and not even opened: a pipe holds whoever opens or reads it until
/// somebody writes, a device may have no end, and some do something when they are opened. The
/// error of those is of the kind [`io::ErrorKind::InvalidInput`].
pub fn open(path: &Path) -> io::Result<File> {
    regular(std::fs::metadata(path)?.file_type())?;
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // Another may have taken the name since it was looked at; hence no waiting above.
    regular(file.metadata()?.file_type())?;
    Ok(file)
}

/// All of a text file of at most `most` bytes: of a longer one nothing.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let why = format!("it is longer than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// Whether an error of [`open`] is about what kind of file it is.
pub fn is_about_kind(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

fn regular(found: FileType) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let kind = match () {
        () if found.is_dir() => "a directory",
        () if found.is_fifo() => "a pipe",
        () if found.is_socket() => "a socket",
        () if found.is_block_device() || found.is_char_device() => "a device",
        () => "something else",
    };
    let text = format!("it is {kind}, wanted a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}
