//! File systems whose times have whole seconds only.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::help::{Place, go, order};

const SMALL: [&str; 2] = ["file_size=1MiB", "operations=64"];

/// A file system that keeps whole seconds only, mounted over a loop device. Goes with the test.
struct Seconds {
    point: PathBuf,
}

impl Seconds {
    fn mount(place: &Place) -> Option<Self> {
        let (image, point) = (place.join("fs.img"), place.join("mnt"));
        fs::File::create(&image).unwrap().set_len(2 << 30).unwrap();
        fs::create_dir(&point).unwrap();
        let run = |program: &str, words: &[&str]| {
            let done = Command::new(program).args(words).output();
            done.is_ok_and(|done| done.status.success())
        };
        let (image, at) = (image.to_str().unwrap(), point.to_str().unwrap());
        let made = run("mkfs.ext4", &["-q", "-F", "-I", "128", image])
            && run("mount", &["-o", "loop", image, at]);
        if !made {
            println!("skipped: cannot make and mount ext4 with short inodes");
        }
        made.then(|| Self { point })
    }
}

impl Drop for Seconds {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.point).output();
    }
}

/// What comes within the same second has the same time.
#[test]
fn what_is_written_right_after_a_run_is_not_ours_where_times_are_whole_seconds() {
    let place = Place::new("whole-seconds");
    let Some(mounted) = Seconds::mount(&place) else { return };
    let target = mounted.point.join("t.dat");
    let order = order(&place, "random-write", target.to_str().unwrap(), &SMALL);
    go(&place, &order).unwrap();
    if stack::mark_of(&target) == stack::Mark::Unsupported {
        println!("skipped: no extended attributes");
        return;
    }
    assert_eq!(stack::mark_of(&target), stack::Mark::Ours);
    for _ in 0..3 {
        go(&place, &order).unwrap();
        fs::write(&target, vec![0x5a; 1 << 20]).unwrap();
        let found = stack::mark_of(&target);
        assert!(matches!(found, stack::Mark::Stale { .. }), "{found:?}");
        fs::remove_file(&target).unwrap();
    }
}
