//! Files that other processes use: what is in use stays.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use record::RunHeader;
use runner::RunError;
use rustix::fs::XattrFlags;

use crate::help::{Place, go, order};

const SMALL: [&str; 2] = ["file_size=1MiB", "operations=64"];

const LOCK: &str = "fd = os.open(sys.argv[1], os.O_RDONLY)\n\
                    fcntl.flock(fd, fcntl.LOCK_EX)\n";
const WRITER: &str = "fd = os.open(sys.argv[1], os.O_WRONLY)\n";
const MAPPER: &str = "fd = os.open(sys.argv[1], os.O_RDONLY)\n\
                      memory = mmap.mmap(fd, 4096, prot=mmap.PROT_READ)\n\
                      os.close(fd)\n";

/// Another process that uses a file. Ended when dropped.
struct User(Child);

impl User {
    /// `None` (with the reason printed) where that cannot be had.
    fn of(path: &Path, how: &str) -> Option<Self> {
        let script = format!(
            "import fcntl, mmap, os, sys, time\n{how}print('ready', flush=True)\ntime.sleep(60)\n"
        );
        let child = Command::new("python3")
            .args(["-c", &script])
            .arg(path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = child else {
            println!("skipped: no python3");
            return None;
        };
        let mut user = Self(child);
        let said = user.0.stdout.as_mut().unwrap().read_exact(&mut [0; 5]);
        if said.is_err() {
            println!("skipped: python3 ended");
            return None;
        }
        Some(user)
    }

    #[track_caller]
    fn is_named_and_alive(&mut self, error: &RunError) {
        // The signal takes a moment.
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(self.0.try_wait().unwrap().is_none(), "it was ended: {error}");
        assert_eq!(error.kind(), runner::ErrorKind::Refused, "{error}");
        let who = format!("(pid {})", self.0.id());
        assert!(error.to_string().contains(&who), "{error}");
        assert!(error.hint().is_some(), "{error}");
    }

    /// A scratch file that a killed run left is not removed.
    #[track_caller]
    fn keeps(&mut self, header: &RunHeader, scratch: &Path) {
        let found = runner::remove_left_behind(header);
        assert!(found.removed.is_empty(), "{found:?}");
        assert_eq!(found.troubles.len(), 1, "{found:?}");
        self.is_named_and_alive(&found.troubles[0]);
        assert!(scratch.exists());
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A scratch file as the killed run of that header would leave it; `None` where there are no marks.
fn leave(header: &RunHeader, path: &Path) -> Option<()> {
    let key = stats::random::derive_seed(header.seed, &[header.started_unix_ns as u64]);
    let file =
        OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path).unwrap();
    file.set_len(1 << 20).unwrap();
    let mark = stack::mark_of_scratch(stack::mark_value(&file).unwrap(), key);
    let marked = rustix::fs::fsetxattr(&file, stack::MARK_NAME, &mark, XattrFlags::empty());
    if marked.is_err() {
        println!("skipped: no extended attributes");
    }
    marked.ok()
}

/// A run in a directory, and the name of its scratch file, which is gone.
fn ran_in_a_directory(place: &Place) -> (RunHeader, PathBuf) {
    let directory = place.join("d");
    fs::create_dir(&directory).unwrap();
    let order = order(place, "random-write", directory.to_str().unwrap(), &SMALL);
    let (_, run) = go(place, &order).unwrap();
    let scratch = PathBuf::from(&run.header.target.resolved);
    assert!(!scratch.exists());
    (run.header, scratch)
}

#[test]
fn a_scratch_file_that_is_left_and_used_is_not_removed() {
    let place = Place::new("used-scratch");
    let (header, scratch) = ran_in_a_directory(&place);
    for how in [WRITER, MAPPER] {
        let Some(()) = leave(&header, &scratch) else { return };
        let Some(user) = User::of(&scratch, how) else { return };
        let found = runner::remove_left_behind(&header);
        assert!(found.removed.is_empty() && found.troubles.len() == 1, "{found:?}");
        assert!(found.troubles[0].to_string().contains(" is in use by "), "{found:?}");
        drop(user);
        assert_eq!(runner::remove_left_behind(&header).removed, std::slice::from_ref(&scratch));
    }
}

#[test]
fn who_has_locked_a_target_is_named_and_is_no_run() {
    let place = Place::new("locked");
    let target = place.join("t.dat");
    let ours = order(&place, "random-write", target.to_str().unwrap(), &SMALL);
    go(&place, &ours).unwrap();
    let (header, scratch) = ran_in_a_directory(&place);
    let Some(mut user) = User::of(&target, LOCK) else { return };
    let error = go(&place, &ours).unwrap_err();
    user.is_named_and_alive(&error);
    assert!(!error.to_string().contains("another run"), "{error}");
    drop(user);
    go(&place, &ours).unwrap();
    let Some(()) = leave(&header, &scratch) else { return };
    let Some(mut user) = User::of(&scratch, LOCK) else { return };
    user.keeps(&header, &scratch);
    drop(user);
    assert_eq!(runner::remove_left_behind(&header).removed, std::slice::from_ref(&scratch));
}
