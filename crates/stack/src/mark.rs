use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use serde::Serialize;
use units::Bytes;

/// The extended attribute by which Plimsoll knows its own files.
pub const MARK_NAME: &str = "user.plimsoll";

/// What an existing file's mark says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Mark {
    /// Plimsoll made this very file, and its length is still the one that it was given.
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

/// The value that marks an open file as Plimsoll's, to be written by whoever made the file:
/// `fsetxattr(file, MARK_NAME, value)` after the file got its length and before it gets data.
///
/// It names inode and length, so that neither a copy of the file nor other data put into it by
/// `cp` (which keeps inode and attributes) passes for ours.
pub fn mark_value(file: &File) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    Ok(value(metadata.ino(), Bytes::new(metadata.len())).into_bytes())
}

fn value(inode: u64, size: Bytes) -> String {
    format!("1 inode={inode} size={}", size.get())
}

/// The mark of the file at `path`.
pub(crate) fn read(path: &Path, inode: u64, size: Bytes) -> Mark {
    let mut buffer = [0; 256];
    let answer = rustix::fs::getxattr(path, MARK_NAME, &mut buffer);
    judge(answer.map(|n| buffer.get(..n).unwrap_or_default()), inode, size)
}

fn judge(answer: Result<&[u8], Errno>, inode: u64, size: Bytes) -> Mark {
    match answer {
        Ok(seen) if seen == value(inode, size).as_bytes() => Mark::Ours,
        Ok(seen) => {
            let seen = String::from_utf8_lossy(seen);
            Mark::Stale {
                why: format!("its mark is `{seen}`, the file has `{}`", value(inode, size)),
            }
        }
        Err(Errno::NODATA) => Mark::None,
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Mark::Unsupported,
        Err(Errno::RANGE) => {
            Mark::Stale { why: "its mark is too long to be one of ours".to_owned() }
        }
        Err(error) => Mark::Unreadable { why: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_mark_is_ours() {
        let size = Bytes::new(4096);
        assert_eq!(judge(Ok(b"1 inode=7 size=4096"), 7, size), Mark::Ours);
        for other in ["1 inode=8 size=4096", "1 inode=7 size=4097", "", "1 inode=7 size=4096 "] {
            assert!(matches!(judge(Ok(other.as_bytes()), 7, size), Mark::Stale { .. }), "{other}");
        }
        assert_eq!(judge(Err(Errno::NODATA), 7, size), Mark::None);
        assert_eq!(judge(Err(Errno::OPNOTSUPP), 7, size), Mark::Unsupported);
        assert!(matches!(judge(Err(Errno::ACCESS), 7, size), Mark::Unreadable { .. }));
    }
}
