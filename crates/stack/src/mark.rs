use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use serde::Serialize;
use units::Bytes;

use crate::held::Handle;
use crate::signature::{Family, LAYER_VOLUME, probe};

/// The extended attribute by which Plimsoll knows its own files.
pub const MARK_NAME: &str = "user.plimsoll";

/// What an existing file's mark says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Mark {
    /// Plimsoll made this very file, and nobody else has written to it since.
    Ours,
    /// There is none.
    None,
    /// There is one, of another file or another length: a copy, or someone wrote since.
    Stale {
        /// Seen and wanted, for people.
        why: String,
    },
    /// The file system keeps no such attributes, so that no file on it can be known as ours.
    Unsupported,
    /// It could not be read.
    Unreadable {
        /// The kernel's words.
        why: String,
    },
}

/// The value that marks an open file as Plimsoll's while a run writes to it, to be set by whoever
/// made the file: after it got its length and before it gets data.
///
/// It names inode and length, so that neither a copy of the file nor other data put into it by
/// `cp` (which keeps inode and attributes) passes for ours.
pub fn mark_value(file: &File) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    Ok(value(&metadata).into_bytes())
}

/// The value for a file that a run has done with: it also names when the file was last written,
/// so that what somebody makes of the file afterwards (a file system, an image) is theirs.
///
/// A run that was killed leaves the value of [`mark_value`]; its file is ours as long as no
/// signature of anything else is found on it.
///
/// Waits some ms until a later write gets another time.
pub fn mark_value_released(file: &File) -> io::Result<Vec<u8>> {
    let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
    std::thread::sleep(TICK.saturating_sub(age));
    Ok(released(&file.metadata()?).into_bytes())
}

/// How long the kernel's clock of files may stand still.
const TICK: Duration = Duration::from_millis(20);
/// The value for a file that a run cuts to nothing and lets its writes extend again: set before it
/// is cut, since a run can be killed at any moment, and its file is ours at every length up to
/// `size`, as long as no signature of anything else is found on it.
pub fn mark_value_growing(file: &File, size: Bytes) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    Ok(format!("{}{}", growing(&metadata), size.get()).into_bytes())
}

/// What stands between a mark and the number of the run that made the file for itself alone.
const OWNER: &[u8] = b" scratch=";
/// Hexadecimal digits of that number.
const OWNER_DIGITS: usize = 16;

/// Any mark but a released one, of a file that goes with the run that made it. By its number, which
/// follows from what is stored of the run, whoever removes the run knows what it left behind.
pub fn mark_of_scratch(mut mark: Vec<u8>, owner: u64) -> Vec<u8> {
    mark.extend_from_slice(OWNER);
    mark.extend_from_slice(format!("{owner:016x}").as_bytes());
    mark
}

/// The number of the run that made the file at `path` for itself alone; `None` where no mark says
/// so. Whether the mark is still true [`mark_of`] tells.
pub fn scratch_owner(path: &Path) -> Option<u64> {
    let mut buffer = [0; 256];
    let length = rustix::fs::lgetxattr(path, MARK_NAME, &mut buffer).ok()?;
    parts(buffer.get(..length)?).1
}

/// The same of an open file.
pub fn scratch_owner_of_open(file: &File) -> Option<u64> {
    parts(&value_of(file).ok()?).1
}

/// A mark without its owner, and the owner if it names one.
fn parts(mark: &[u8]) -> (&[u8], Option<u64>) {
    let at = mark.len().saturating_sub(OWNER.len() + OWNER_DIGITS);
    let (rest, end) = mark.split_at(at);
    let owner = end.strip_prefix(OWNER).and_then(|digits| {
        let text = std::str::from_utf8(digits).ok()?;
        let owner = u64::from_str_radix(text, 16).ok()?;
        (format!("{owner:016x}") == text).then_some(owner)
    });
    if owner.is_some() { (rest, owner) } else { (mark, None) }
}

fn growing(metadata: &Metadata) -> String {
    format!("1 inode={} size<=", metadata.ino())
}

/// Whether a mark is one of [`mark_value_growing`] that this file meets.
fn is_growing(answer: &[u8], metadata: &Metadata) -> bool {
    let most = answer.strip_prefix(growing(metadata).as_bytes());
    let most = most.and_then(|most| std::str::from_utf8(most).ok()?.parse::<u64>().ok());
    most.is_some_and(|most| metadata.len() <= most)
}

fn value(metadata: &Metadata) -> String {
    format!("1 inode={} size={}", metadata.ino(), metadata.len())
}

fn released(metadata: &Metadata) -> String {
    let (seconds, ns) = (metadata.mtime(), metadata.mtime_nsec());
    format!("{} written={seconds}.{ns:09}", value(metadata))
}

/// What the mark of the file at `path` says. Reads the file's ends if a run did not end in order.
///
/// All of it is read from one descriptor: another file that gets the name meanwhile lends it
/// nothing.
pub fn mark_of(path: &Path) -> Mark {
    let held = std::fs::canonicalize(path).and_then(|resolved| Handle::open(&resolved));
    match held {
        Ok(handle) => mark_of_held(&handle),
        Err(error) => Mark::Unreadable { why: error.to_string() },
    }
}

/// The same of what is held.
pub fn mark_of_held(handle: &Handle) -> Mark {
    match (handle.to_read(), handle.metadata()) {
        (Some(file), _) => mark_of_open(&file),
        (None, Ok(metadata)) if metadata.is_file() || metadata.is_dir() => {
            let denied = io::Error::from(Errno::ACCESS);
            Mark::Unreadable { why: denied.to_string() }
        }
        (None, Ok(_)) => Mark::None,
        (None, Err(error)) => Mark::Unreadable { why: error.to_string() },
    }
}

/// The same of a file that is open for reading.
pub fn mark_of_open(file: &File) -> Mark {
    let answer = value_of(file);
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(error) => return Mark::Unreadable { why: error.to_string() },
    };
    let answer = answer.as_ref().map(|mark| parts(mark).0).map_err(|&errno| errno);
    if answer.is_ok_and(|mark| is_growing(mark, &metadata)) {
        return foreign_content(file);
    }
    let marks = (value(&metadata), released(&metadata));
    match judge(answer, &marks) {
        Found::Released => Mark::Ours,
        Found::Unfinished => foreign_content(file),
        Found::Other(mark) => mark,
    }
}

/// The mark as it is written.
pub(crate) fn value_of(file: &File) -> Result<Vec<u8>, Errno> {
    let mut buffer = [0; 256];
    let length = rustix::fs::fgetxattr(file, MARK_NAME, &mut buffer)?;
    Ok(buffer.get(..length).unwrap_or_default().to_vec())
}

/// Whether files in a directory can have a mark; where that cannot be told, they can.
pub fn keeps_marks(directory: &Path) -> bool {
    let answer = rustix::fs::getxattr(directory, MARK_NAME, &mut [0; 256]);
    !matches!(answer, Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Whether something else than our data was put into a file that a killed run left.
fn foreign_content(file: &File) -> Mark {
    let found = probe(file);
    match found {
        Err(error) => Mark::Unreadable { why: error.to_string() },
        Ok(signatures) => signatures
            .iter()
            // In a file of ours only a run of ours makes one: `layer create` takes no file that is there.
            .filter(|signature| signature.name != LAYER_VOLUME)
            .find(|signature| signature.family != Family::UnknownData)
            .map_or(Mark::Ours, |signature| Mark::Stale { why: format!("it holds {signature}") }),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Released,
    Unfinished,
    Other(Mark),
}

/// * `marks`: what a file that is being written, and one that was released, would say.
fn judge(answer: Result<&[u8], Errno>, (unfinished, released): &(String, String)) -> Found {
    Found::Other(match answer {
        Ok(seen) if seen == released.as_bytes() => return Found::Released,
        Ok(seen) if seen == unfinished.as_bytes() => return Found::Unfinished,
        Ok(seen) => {
            let seen = String::from_utf8_lossy(seen);
            Mark::Stale { why: format!("its mark is `{seen}`, the file has `{released}`") }
        }
        Err(Errno::NODATA) => Mark::None,
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Mark::Unsupported,
        Err(Errno::RANGE) => {
            Mark::Stale { why: "its mark is too long to be one of ours".to_owned() }
        }
        Err(error) => Mark::Unreadable { why: error.to_string() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_grows_is_ours_up_to_its_size() {
        let name = format!("plimsoll-mark-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).unwrap();
        let mark = mark_value_growing(&file, Bytes::new(4096)).unwrap();
        for (length, ours) in [(0, true), (4095, true), (4096, true), (4097, false)] {
            file.set_len(length).unwrap();
            assert_eq!(is_growing(&mark, &file.metadata().unwrap()), ours, "{length}");
        }
        file.set_len(0).unwrap();
        let other = File::create(path.with_extension("other")).unwrap();
        assert!(!is_growing(&mark, &other.metadata().unwrap()), "another inode");
        for odd in [&b"1 inode=7 size<="[..], b"", b"1 inode=7 size=0", b"\xff"] {
            assert!(!is_growing(odd, &file.metadata().unwrap()), "{odd:?}");
        }
        std::fs::remove_file(path.with_extension("other")).unwrap();
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_mark_says_whose_scratch_file_it_is() {
        let mark = b"1 inode=7 size=4096";
        let owned = mark_of_scratch(mark.to_vec(), 0x00ab);
        assert_eq!(owned, b"1 inode=7 size=4096 scratch=00000000000000ab");
        assert_eq!(parts(&owned), (&mark[..], Some(0xab)));
        for other in [
            &b"1 inode=7 size=4096"[..],
            b"",
            b"1 inode=7 size=4096 scratch=ab",
            b"1 inode=7 size=4096 scratch=00000000000000AB",
            b"1 inode=7 size=4096 scratch=+0000000000000ab",
            b"1 inode=7 size=4096 scratch=00000000000000ab ",
        ] {
            assert_eq!(parts(other), (other, None), "{}", String::from_utf8_lossy(other));
        }
    }

    #[test]
    fn only_the_exact_mark_is_ours() {
        let marks = (
            "1 inode=7 size=4096".to_owned(),
            "1 inode=7 size=4096 written=5.000000006".to_owned(),
        );
        assert_eq!(judge(Ok(marks.0.as_bytes()), &marks), Found::Unfinished);
        assert_eq!(judge(Ok(marks.1.as_bytes()), &marks), Found::Released);
        for other in [
            "1 inode=8 size=4096",
            "1 inode=7 size=4097",
            "",
            "1 inode=7 size=4096 ",
            "1 inode=7 size=4096 written=5.000000007",
        ] {
            let found = judge(Ok(other.as_bytes()), &marks);
            assert!(matches!(found, Found::Other(Mark::Stale { .. })), "{other}");
        }
        let of = |errno| judge(Err(errno), &marks);
        assert_eq!(of(Errno::NODATA), Found::Other(Mark::None));
        assert_eq!(of(Errno::OPNOTSUPP), Found::Other(Mark::Unsupported));
        assert!(matches!(of(Errno::ACCESS), Found::Other(Mark::Unreadable { .. })));
    }
}
