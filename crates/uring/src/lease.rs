//! Whether a file is open anywhere else, as the kernel counts it.

use std::os::fd::{AsFd, AsRawFd};

/// `F_SETSIG` of Linux, which libc does not name on every platform.
const F_SETSIG: libc::c_int = 10;

/// Whether no other descriptor, mapping, loop device or namespace has the file open in any way:
/// then the kernel grants a lease for writing, which is given back at once. False if one has, and
/// where leases are not granted: to others than the owner, on many network file systems.
///
/// * `file`: open for reading, and the only descriptor of this process.
pub fn nobody_else_has_open(file: impl AsFd) -> bool {
    let raw = file.as_fd().as_raw_fd();
    // SAFETY: `raw` is open as long as `file` is borrowed; these calls take integers only. Who
    // opens the file while it is leased has the kernel send a signal, by default one that ends
    // the process: SIGURG is ignored unless somebody wants it.
    unsafe {
        if libc::fcntl(raw, F_SETSIG, libc::SIGURG) != 0
            || libc::fcntl(raw, libc::F_SETLEASE, libc::F_WRLCK) != 0
        {
            return false;
        }
        libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs::{File, OpenOptions};

    use super::nobody_else_has_open;

    #[test]
    fn other_descriptors_of_a_file_are_seen() {
        let path = std::env::temp_dir().join(format!("plimsoll-lease-{}", std::process::id()));
        std::fs::write(&path, "data").unwrap();
        let file = File::open(&path).unwrap();
        if !nobody_else_has_open(&file) {
            println!("skipped: no leases on {}", path.display());
            std::fs::remove_file(&path).unwrap();
            return;
        }
        assert!(nobody_else_has_open(&file), "given back");
        let writer = OpenOptions::new().write(true).open(&path).unwrap();
        assert!(!nobody_else_has_open(&file), "a writer");
        drop(writer);
        assert!(nobody_else_has_open(&file));
        std::fs::remove_file(&path).unwrap();
    }
}
