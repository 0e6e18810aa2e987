//! Whether the files that are measured stay what they were: others may remove, exchange or cut them.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use record::Warning;
use units::Bytes;

/// `O_PATH`: a handle on the file, not on its data. Nothing is read, and no device is asked.
const O_PATH: i32 = 0o10_000_000;
/// A file that others punched holes into or cut has lost at least this share of what it took;
/// file systems that compress or clean up as they go take away less in a visit.
const LOST: f64 = 0.125;

/// How often the files are looked at during a visit: writes that go on make a file that was cut
/// as long as it was, and fill it again.
const LOOK: Duration = Duration::from_millis(20);
/// With many files each is looked at less often.
const LOOK_EACH: Duration = Duration::from_millis(1);
/// A look that does not come back is not waited for: the place may hang.
const PATIENCE: Duration = Duration::from_secs(1);

/// The regular files of a run.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    files: Vec<Watched>,
    during: Option<During>,
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
        Self { files: paths.iter().filter_map(|path| Watched::of(path)).collect(), during: None }
    }

    /// Looks at them again and again until the next [`Self::look`].
    pub(crate) fn begin(&mut self) {
        self.during = During::start(&self.files);
    }

    /// Lets go of all files: an open one keeps its file system mounted.
    pub(crate) fn let_go(&mut self) {
        self.during = None;
        self.files.clear();
    }

    /// What became of them since the last look; each change is told once.
    ///
    /// * `trims`: the visit itself gave space back.
    /// * `grows`: its writes extend the files.
    pub(crate) fn look(&mut self, trims: bool, grows: bool) -> Vec<Warning> {
        let seen = self.during.take().and_then(During::finish).unwrap_or_default();
        let mut seen = seen.into_iter();
        let all = self.files.iter_mut().map(|file| (file, seen.next().unwrap_or_default()));
        all.filter_map(|(file, seen)| file.look(trims, grows, &seen)).collect()
    }
}

/// What was seen of a file during a visit.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// The first time that it became shorter: from and to.
    cut: Option<(u64, u64)>,
    /// The least that was allocated.
    least: Option<u64>,
}

/// A thread that looks at the files while they are measured. Dropped, it ends by itself.
#[derive(Debug)]
struct During {
    /// Dropped, it wakes the thread: the end of a visit does not wait for the next look.
    stop: Sender<()>,
    seen: Receiver<Vec<Seen>>,
}

impl During {
    /// `None` where there is nothing to look at, or no thread to be had.
    fn start(files: &[Watched]) -> Option<Self> {
        let handles: Vec<(File, u64)> = files
            .iter()
            .map(|file| Some((file.handle.try_clone().ok()?, file.size)))
            .collect::<Option<_>>()?;
        if handles.is_empty() {
            return None;
        }
        let (stop, stopped) = channel();
        let (sender, seen) = channel();
        let thread = std::thread::Builder::new().name("watch".to_owned()).stack_size(64 << 10);
        thread.spawn(move || look_on(&handles, &stopped, &sender)).ok()?;
        Some(Self { stop, seen })
    }

    fn finish(self) -> Option<Vec<Seen>> {
        drop(self.stop);
        self.seen.recv_timeout(PATIENCE).ok()
    }
}

fn look_on(handles: &[(File, u64)], stopped: &Receiver<()>, sender: &Sender<Vec<Seen>>) {
    let mut sizes: Vec<u64> = handles.iter().map(|(_, size)| *size).collect();
    let mut seen = vec![Seen::default(); handles.len()];
    let pause = LOOK.max(LOOK_EACH.saturating_mul(handles.len() as u32));
    loop {
        for (((handle, _), size), seen) in handles.iter().zip(&mut sizes).zip(&mut seen) {
            let Ok(found) = handle.metadata() else { continue };
            let before = std::mem::replace(size, found.len());
            if found.len() < before {
                seen.cut.get_or_insert((before, found.len()));
            }
            let now = allocated(&found);
            seen.least = Some(seen.least.map_or(now, |least| least.min(now)));
        }
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    // Who asked may have gone without waiting.
    let _ = sender.send(seen);
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

    fn look(&mut self, trims: bool, grows: bool, seen: &Seen) -> Option<Warning> {
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
        let lost_of = |now: u64| before.saturating_sub(now) as f64;
        let what = if size != size_before && !(grows && size > size_before) {
            format!("it was {} long and is {}", exact(size_before), exact(size))
        } else if !trims && lost_of(now) > lost {
            format!("{} were allocated and {} are", exact(before), exact(now))
        } else if let Some((from, to)) = seen.cut {
            format!("it was cut from {} to {} and has grown again since", exact(from), exact(to))
        } else if let Some(least) = seen.least.filter(|least| !trims && lost_of(*least) > lost) {
            format!("{} were allocated and {} for a while", exact(before), exact(least))
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

    /// A file that was cut under writes is as long and as full as before when the visit ends.
    #[test]
    fn a_file_that_was_cut_and_filled_again_during_a_visit_is_told() {
        let name = format!("plimsoll-watch-again-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let fill = || {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
            let file = file.unwrap();
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 1 << 20], 0).unwrap();
            file.sync_all().unwrap();
            file
        };
        let file = fill();
        let mut watch = Watch::of(std::slice::from_ref(&path));
        watch.begin();
        assert!(codes(&mut watch).is_empty(), "nothing was done");
        for grow in [0, 1 << 20] {
            watch.begin();
            std::thread::sleep(5 * LOOK);
            file.set_len(0).unwrap();
            // Longer again at once, as random writes make it, and then filled.
            file.set_len(grow).unwrap();
            std::thread::sleep(10 * LOOK);
            fill();
            assert_eq!(codes(&mut watch), ["target-changed"], "cut to {grow}");
        }
        watch.begin();
        fill();
        assert!(codes(&mut watch).is_empty(), "writes that stay within are no change");
        std::fs::remove_file(&path).unwrap();
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
