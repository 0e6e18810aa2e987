//! Files that people name to be read to their end: suites, models, what other tools printed.

use std::fs::{File, FileType, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a regular file to read it.
///
/// Everything else is refused, and not even opened: a pipe holds whoever opens or reads it until
/// somebody writes, a device may have no end, and some do something when they are opened. The
/// error of those is of the kind [`io::ErrorKind::InvalidInput`].
///
/// A process that has a lease of the file is not waited for: that error is of the kind
/// [`io::ErrorKind::ResourceBusy`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(std::fs::metadata(path)?.file_type())?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file =
        opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::WOULDBLOCK) => {
                io::Error::new(io::ErrorKind::ResourceBusy, "another process has a lease on it")
            }
            _ => error,
        })?;
    // Another may have taken the name since it was looked at; hence no waiting above.
    regular(file.metadata()?.file_type())?;
    Ok(file)
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
