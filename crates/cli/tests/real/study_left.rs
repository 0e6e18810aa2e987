//! What is said to be left of a study is what is taken back; what is not is told, and why.

use crate::lab::{Lab, needs_root};
use crate::study::{EXT4, loops, strs, study};

fn queue(device: &str) -> String {
    format!("/sys/block/{}/queue", device.trim_start_matches("/dev/"))
}

#[test]
fn a_dry_run_lists_what_builds_and_what_takes_down() {
    needs_root!("losetup", "mkfs.ext4", "wipefs", "blkid");
    let mut lab = Lab::new("study-lists");
    let devices = loops(&mut lab, 1, 64);
    study(&lab, &strs(&devices), &format!("{EXT4}\nread_ahead = \"64KiB\""), "");
    let said = lab.ok("study s.toml --dry-run").out;
    let device = &devices[0];
    let down = [
        "      take it down again".to_owned(),
        format!("        put {}/read_ahead_kb back to what it was", queue(device)),
        "        umount /run/plimsoll/key/data".to_owned(),
        "        rmdir /run/plimsoll/key/data".to_owned(),
        "        rmdir /run/plimsoll/key".to_owned(),
        format!("        wipefs --all --quiet --types ext2,ext3,ext4,ext4dev {device}"),
    ];
    assert!(said.contains(&down.join("\n")), "{said}");
    assert!(said.contains(&format!("The first and last MiB are zeroed of {device}.")), "{said}");
}
