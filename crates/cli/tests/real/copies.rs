//! Copies that the kernel makes, on file systems that copy and on such that would rather share.

use std::fs;
use std::path::Path;

use crate::lab::{Lab, measured, needs_root, text, tool};

const COPY: &str = "run copy-40g --set file_size=8MiB --set bytes=8MiB";

/// The back end's flags and the marks of the visit in which the kernel copied.
fn in_kernel(lab: &Lab, run: &str) -> (String, String) {
    let document = lab.export(run);
    let visits = measured(&document);
    assert_eq!(visits.len(), 2);
    let visit = &visits[1];
    assert_eq!(text(&visit["ops"][0]["op"]), "copy-range", "{visit}");
    assert_eq!(visit["bytes"], 8 << 20, "a byte counts once");
    (visit["backend"].to_string(), visit["warnings"].to_string())
}

fn same(point: &Path) {
    let read = |index: u32| fs::read(point.join(format!("data.{index}"))).unwrap();
    assert!(read(0) == read(1), "the copy is the same");
}

#[test]
fn where_blocks_cannot_be_shared_it_is_said() {
    let lab = Lab::new("copy-plain");
    lab.ok(&format!("{COPY} --target data"));
    let (backend, warnings) = in_kernel(&lab, "r1");
    if !backend.contains("reflink-refused") {
        assert!(backend.contains("cannot share blocks"), "{backend}");
    }
    assert!(!warnings.contains("reflinked"), "{warnings}");
    same(&lab.dir);
}

#[test]
fn where_blocks_could_be_shared_they_are_copied() {
    needs_root!("losetup", "mkfs.xfs", "mkfs.btrfs", "mount", "umount", "filefrag");
    for (kind, words) in [("xfs", ["-q", "-f"]), ("btrfs", ["-q", "-f"])] {
        let mut lab = Lab::new("copy-apart");
        let image = lab.sparse("fs.img", 3 << 10);
        let device = lab.attach(&image, &[]);
        tool(&format!("mkfs.{kind}"), &[&words[..], &[&device]].concat());
        let known = fs::read_to_string("/proc/filesystems").unwrap();
        if !known.split_whitespace().any(|word| word == kind) {
            eprintln!("skipped: the kernel does not know {kind}");
            continue;
        }
        let point = lab.mount(&[&device], "m");
        lab.ok(&format!("{COPY} --target {}", point.join("data").display()));
        let (backend, warnings) = in_kernel(&lab, "r1");
        assert!(backend.contains("reflink-refused"), "{kind}: {backend}");
        assert!(!warnings.contains("reflinked"), "{kind}: {warnings}");
        same(&point);
        tool("sync", &[]);
        let extents = tool("filefrag", &["-v", point.join("data.1").to_str().unwrap()]);
        assert!(!extents.contains("shared"), "{kind}: {extents}");
        // The same question asked plainly is answered by sharing: what is refused is real.
        let pair = ["data.0", "plain"].map(|name| point.join(name).display().to_string());
        tool("cp", &["--reflink=always", &pair[0], &pair[1]]);
        assert!(tool("filefrag", &["-v", &pair[1]]).contains("shared"), "{kind}");
    }
}

#[test]
fn two_file_systems_and_devices_are_refused() {
    needs_root!("losetup");
    let mut lab = Lab::new("copy-device");
    let image = lab.sparse("disk.img", 64);
    let device = lab.attach(&image, &[]);
    let said = lab.run(&format!(
        "{COPY} --set file_count=1 --set file_size=16MiB --target {device} --destroy {device}"
    ));
    said.is(3, &["has the kernel copy from file to file", "block device"]);
    let said = lab.run("run copy-40g --target memory:16MiB --set bytes=8MiB");
    said.is(0, &[]);
}
