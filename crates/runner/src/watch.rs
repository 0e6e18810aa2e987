//! Whether the files that are measured stay what they were: others may remove, exchange or cut them.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use record::Warning;
use units::Bytes;

/// `O_PATH`: a handle on the file, not on its data. Nothing is read, and no device is asked.
const O_PATH: i32 = 0o10_000_000;
/// A file that others punched holes into or cut has lost at least this share of what it took;
/// file systems that compress or clean up as they go take away less in a visit.
const LOST: f64 = 0.125;

/// The regular files of a run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    files: Vec<Watched>,
}

#[derive(Debug)]
struct Watched {
    path: PathBuf,
    handle: File,
    size: u64,
    allocated: u64,
}

impl Watch {
    /// Holds on to what is there now. What is no regular file, or cannot be held, is not watched.
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        Self { files: paths.iter().filter_map(|path| Watched::of(path)).collect() }
    }

    /// Lets go of all files: an open one keeps its file system mounted.
    pub(crate) fn let_go(&mut self) {
        self.files.clear();
    }

    /// What became of them since the last look; each change is told once.
    ///
    /// * `trims`: the visit itself gave space back.
    /// * `grows`: its writes extend the files.
    pub(crate) fn look(&mut self, trims: bool, grows: bool) -> Vec<Warning> {
        self.files.iter_mut().filter_map(|file| file.look(trims, grows)).collect()
    }
}

const UNMOUNTED: &str = "is out of reach: its file system was unmounted";

impl Watched {
    fn of(path: &Path) -> Option<Self> {
        let mut options = OpenOptions::new();
        let handle = options.read(true).custom_flags(O_PATH).open(path).ok()?;
        let found = handle.metadata().ok().filter(Metadata::is_file)?;
        let (size, allocated) = (found.len(), allocated(&found));
        Some(Self { path: path.to_owned(), handle, size, allocated })
    }

    fn look(&mut self, trims: bool, grows: bool) -> Option<Warning> {
        let name = self.path.display();
        let held = self.handle.metadata().ok()?;
        let named = std::fs::metadata(&self.path);
        let id = |found: &Metadata| (found.dev(), found.ino());
        let gone = match &named {
            // Its name leads to what the mount has covered, or to nothing.
            Err(_) if stack::is_unmounted(&self.handle) => Some(UNMOUNTED),
            Ok(named) if id(named) != id(&held) && stack::is_unmounted(&self.handle) => {
                Some(UNMOUNTED)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("was removed"),
            Ok(named) if id(named) != id(&held) => Some("was exchanged for another file"),
            _ => None,
        };
        if let Some(gone) = gone {
            return Some(Warning::new(
                "target-gone",
                format!("{name} {gone} while it was measured"),
            ));
        }
        let (size, now) = (held.len(), allocated(&held));
        let (size_before, before) = (self.size, self.allocated);
        (self.size, self.allocated) = (size, now);
        let lost = (before as f64) * LOST;
        let what = if size != size_before && !(grows && size > size_before) {
            format!("it was {} long and is {}", exact(size_before), exact(size))
        } else if !trims && before.saturating_sub(now) as f64 > lost {
            format!("{} were allocated and {} are", exact(before), exact(now))
        } else {
            return None;
        };
        Some(Warning::new(
            "target-changed",
            format!("{name} was changed by someone else while it was measured: {what}"),
        ))
    }
}

fn allocated(found: &Metadata) -> u64 {
    found.blocks().saturating_mul(512)
}

fn exact(bytes: u64) -> String {
    Bytes::new(bytes).exact()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(watch: &mut Watch) -> Vec<String> {
        watch.look(false, false).into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn what_others_do_to_a_file_is_seen() {
        let name = format!("plimsoll-watch-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let mut watch = Watch::of(std::slice::from_ref(&path));
        assert_eq!(watch.files.len(), 1);
        assert!(codes(&mut watch).is_empty(), "nothing was done");
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(4096).unwrap();
        assert_eq!(codes(&mut watch), ["target-changed"], "cut");
        assert!(codes(&mut watch).is_empty(), "told once");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        file.sync_all().unwrap();
        watch.look(false, false);
        file.set_len(0).unwrap();
        file.set_len(1 << 20).unwrap();
        assert_eq!(codes(&mut watch), ["target-changed"], "cut and grown again");
        file.set_len(2 << 20).unwrap();
        assert!(watch.look(false, true).is_empty(), "its own writes extend it");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(codes(&mut watch), ["target-gone"], "removed");
        std::fs::write(&path, vec![7; 1 << 20]).unwrap();
        assert_eq!(codes(&mut watch), ["target-gone"], "another file of that name");
        std::fs::remove_file(&path).unwrap();
    }
}
