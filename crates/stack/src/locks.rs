//! Who holds the lock of a file.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

use crate::safety::Process;

/// The process that holds the `flock` lock of an open file, as far as the kernel tells: not where
/// the lock is another machine's, or this process sees another list of processes.
pub fn lock_holder(file: &File) -> Option<Process> {
    let metadata = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let id = holder(&std::fs::read_to_string("/proc/locks").ok()?, &wanted)?;
    let name = std::fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
    Some(Process { id, name: name.trim_end().to_owned() })
}

/// * `file`: device and inode, as the kernel writes them.
fn holder(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        // Who only waits has an arrow in front of the kind.
        let kind = words.next()?;
        let (id, of) = (words.nth(2)?, words.next()?);
        (kind == "FLOCK" && of == file).then(|| id.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_and_not_who_waits() {
        let locks = "1: FLOCK  ADVISORY  WRITE 708 00:17:1234 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 900 fd:00:77 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 901 fd:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 902 fd:00:77 0 EOF\n";
        assert_eq!(holder(locks, "fd:00:77"), Some(902));
        assert_eq!(holder(locks, "00:17:1234"), Some(708));
        assert_eq!(holder(locks, "fd:00:7"), None);
        assert_eq!(holder("4: FLOCK\n\nodd", "fd:00:77"), None);
    }

    #[test]
    fn a_lock_of_our_own_is_ours() {
        let path = std::env::temp_dir().join(format!("plimsoll-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        assert_eq!(lock_holder(&file), None);
        file.lock().unwrap();
        // Containers may hide the list.
        if let Some(holder) = lock_holder(&file) {
            assert_eq!(holder.id, std::process::id());
        }
        std::fs::remove_file(&path).unwrap();
    }
}
