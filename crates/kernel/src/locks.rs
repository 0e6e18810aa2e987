//! Locks and leases of files, as the kernel lists them for all processes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;

/// The list of all locks and leases.
const LIST: &str = "/proc/locks";
/// Shorter lists come in one part, if so much is asked for at once. The kernel hands longer ones out in parts of a page: while locks come and go, a
/// lock can move from a part that is not read yet into one that was, and is missed.
const ONE_PART: usize = 2048;
/// Readings of a longer list, until two are the same.
const READINGS: usize = 16;

/// A lock or a lease that a process has on a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    /// Of `fcntl`, of `flock`, or a lease.
    pub kind: LockKind,
    /// The process. Below 1 where it is not seen from here.
    pub process: i64,
    /// `st_dev` of the file.
    pub device: u64,
    /// `st_ino` of the file.
    pub inode: u64,
    /// Nobody else may have one.
    pub exclusive: bool,
    /// A lease that its holder was asked to give back.
    pub ending: bool,
}

/// What kind of lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockKind {
    /// A range of a file, of a process: `fcntl(2)`.
    Posix,
    /// Of an open file: `flock(2)`.
    Flock,
    /// `F_SETLEASE`.
    Lease,
}

/// Who else may have a lock of `fcntl(2)` beside one that there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAccess {
    /// Everybody who wants a shared one.
    Shared,
    /// Nobody.
    Exclusive,
}

/// What lock of `fcntl(2)` another process, in whatever PID namespace and on whatever file system, has on a
/// part of a file. Takes none.
pub fn others_lock(file: &File, start: i64, length: i64) -> io::Result<Option<LockAccess>> {
    let mut asked = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    };
    // SAFETY: the kernel reads and writes one `flock` through the pointer, which is valid for that long.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut asked) };
    match (answer, libc::c_int::from(asked.l_type)) {
        (0, libc::F_UNLCK) => Ok(None),
        (0, libc::F_RDLCK) => Ok(Some(LockAccess::Shared)),
        (0, _) => Ok(Some(LockAccess::Exclusive)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// All locks that processes have; not those that processes wait for.
pub fn locks() -> io::Result<BTreeSet<Lock>> {
    let (mut found, mut before) = (BTreeSet::new(), None);
    for _ in 0..READINGS {
        let text = read()?;
        found.extend(text.lines().filter_map(Lock::of));
        if text.len() < ONE_PART || before.as_ref() == Some(&text) {
            break;
        }
        before = Some(text);
    }
    Ok(found)
}

/// `std::fs::read_to_string` would begin with a part of 32 bytes.
fn read() -> io::Result<String> {
    let mut text = String::with_capacity(16 << 10);
    std::fs::File::open(LIST)?.read_to_string(&mut text)?;
    Ok(text)
}

impl Lock {
    /// `1: POSIX  ADVISORY  READ 4312 fd:01:1835 128 128`: device numbers are hexadecimal. Who only waits has an
    /// arrow in front of the kind.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        let kind = match words.next()? {
            "POSIX" | "OFDLCK" => LockKind::Posix,
            "FLOCK" => LockKind::Flock,
            "LEASE" => LockKind::Lease,
            _ => return None,
        };
        let (state, access) = (words.next()?, words.next()?);
        let process = words.next()?.parse().ok()?;
        let mut of = words.next()?.split(':');
        let mut number = || u32::from_str_radix(of.next()?, 16).ok();
        let device = libc::makedev(number()?, number()?);
        let inode = of.next()?.parse().ok()?;
        let ending = kind == LockKind::Lease && state != "ACTIVE";
        Some(Self { kind, process, device, inode, exclusive: access == "WRITE", ending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(LockKind, i64, u64, bool, bool)> {
        let found = Lock::of(line)?;
        assert_eq!(found.device, 0xfd0a);
        Some((found.kind, found.process, found.inode, found.exclusive, found.ending))
    }

    #[test]
    fn lines_of_the_kernels_are_read() {
        use LockKind::{Flock, Lease, Posix};
        let posix = read("12: POSIX  ADVISORY  READ 4312 fd:0a:1835 128 128");
        assert_eq!(posix, Some((Posix, 4312, 1835, false, false)));
        let open_file = read("12: OFDLCK ADVISORY  WRITE -1 fd:0a:1835 0 EOF");
        assert_eq!(open_file, Some((Posix, -1, 1835, true, false)));
        let flock = read("3: FLOCK  ADVISORY  WRITE 902 fd:0a:77 0 EOF");
        assert_eq!(flock, Some((Flock, 902, 77, true, false)));
        let lease = read("4: LEASE  ACTIVE    READ  903 fd:0a:77 0 EOF");
        assert_eq!(lease, Some((Lease, 903, 77, false, false)));
        let ending = read("4: LEASE  BREAKING  READ  905 fd:0a:78 0 EOF");
        assert_eq!(ending, Some((Lease, 905, 78, false, true)));
        assert_eq!(read("2: -> FLOCK  ADVISORY  WRITE 900 fd:0a:77 0 EOF"), None);
        assert_eq!(read("4: FLOCK"), None);
        assert_eq!(read(""), None);
    }

    /// Others come and go in the parts before and after.
    #[test]
    fn a_lock_that_stays_is_seen_while_others_come_and_go() {
        use std::os::unix::fs::MetadataExt;
        use std::sync::atomic::{AtomicBool, Ordering};
        let directory = tempfile();
        let file = |n: usize| std::fs::File::create(directory.join(n.to_string())).unwrap();
        let kept = file(0);
        kept.lock().unwrap();
        let inode = kept.metadata().unwrap().ino();
        let is_seen = || locks().unwrap().iter().any(|lock| lock.inode == inode);
        if !locks().is_ok_and(|_| is_seen()) {
            return eprintln!("skipped: {LIST} does not show the lock");
        }
        let others: Vec<_> = (1..400).map(file).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    others.iter().for_each(|file| file.lock().unwrap());
                    others.iter().for_each(|file| file.unlock().unwrap());
                }
            });
            let missed = (0..2000).filter(|_| !is_seen()).count();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(missed, 0);
        });
        std::fs::remove_dir_all(&directory).unwrap();
    }

    fn tempfile() -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("plimsoll-locks-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        path
    }
}
