//! Who else has a file of a store open, by the locks that SQLite has on it.

use std::fs;

use crate::FileId;

/// Whether another process has a lock on that file. `false` where that cannot be known.
pub(crate) fn others_have(file: FileId) -> bool {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let own = i64::from(std::process::id());
    locks.lines().filter_map(Lock::of).any(|lock| lock.file == file && lock.process != own)
}

#[derive(Debug, PartialEq, Eq)]
struct Lock {
    /// Below 1 where it is not seen from here.
    process: i64,
    file: FileId,
}

impl Lock {
    /// `1: POSIX  ADVISORY  READ 4312 fd:01:1835 128 128`: device numbers are hexadecimal.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next()? != "POSIX" {
            return None;
        }
        let process = words.nth(2)?.parse().ok()?;
        let mut file = words.next()?.split(':');
        let mut device = || u64::from_str_radix(file.next()?, 16).ok();
        let device = device_number(device()?, device()?);
        Some(Self { process, file: (device, file.next()?.parse().ok()?) })
    }
}

/// As `stat` has it on Linux.
const fn device_number(major: u64, minor: u64) -> u64 {
    (major & 0xfff) << 8 | (major & !0xfff) << 32 | minor & 0xff | (minor & !0xff) << 12
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_is_read() {
        let lock = Lock::of("12: POSIX  ADVISORY  READ 4312 fd:01:1835 128 128").unwrap();
        assert_eq!(lock, Lock { process: 4312, file: (0xfd01, 1835) });
        assert_eq!(Lock::of("1: FLOCK  ADVISORY  WRITE 4312 fd:01:1835 0 EOF"), None);
        assert_eq!(Lock::of("1: -> POSIX  ADVISORY  WRITE 4312 fd:01:1835 0 EOF"), None);
    }
}
