//! Files that are read to their end: suites and their parts, sides of comparisons, what other
//! tools printed.

use std::io::{self, Read};
use std::path::Path;

/// All of a text file of at most `most` bytes: of a longer one nothing.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let mut text = String::new();
    stack::open_regular(path)?.take(most.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        let why = format!("it is longer than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(text)
}

/// Whether an error of [`stack::open_regular`] is about what kind of file it is.
pub fn is_about_kind(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}
