//! What is refused, one by one, with nothing changed: no file, no store, no byte of a device.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use crate::lab::{Lab, hash, needs_root, tool};

const WRITE: &str = "run random-write --time 50ms --size 1MiB --target";

/// Refused with exit code 3, saying all of that, and nothing is changed.
#[track_caller]
fn refused(lab: &Lab, words: &str, parts: &[&str]) {
    let store = lab.path("store.db");
    let (before, stored) = (lab.everything(), store.exists());
    let said = lab.run(&format!("{WRITE} {words}"));
    said.is(3, parts);
    assert!(said.err.starts_with("error: ") && said.out.is_empty(), "{said}");
    assert!(said.err.contains("\nhint: "), "no way out is named: {said}");
    assert_eq!(lab.everything(), before, "something was changed");
    assert_eq!(store.exists(), stored, "nothing is stored of what was refused");
}

#[test]
fn a_file_that_is_not_ours() {
    let lab = Lab::new("foreign");
    fs::write(lab.path("payroll.db"), vec![7; 2 << 20]).unwrap();
    refused(
        &lab,
        "payroll.db",
        &[
            "payroll.db exists (2 MiB) and was not created by plimsoll: it has no mark",
            "add --overwrite",
        ],
    );
    fs::write(lab.path("other.db"), "x").unwrap();
    refused(
        &lab,
        "payroll.db --overwrite other.db",
        &["--overwrite names", "check which one is meant"],
    );
    // A copy that took the mark along is not ours either.
    lab.ok(&format!("{WRITE} ours"));
    let copied = std::process::Command::new("cp")
        .args(["-a", "ours", "copy"])
        .current_dir(&lab.dir)
        .status();
    assert!(copied.unwrap().success());
    refused(&lab, "copy", &["was not created by plimsoll"]);
    // Naming it is enough, and what is beyond the size stays.
    lab.ok(&format!("{WRITE} payroll.db --overwrite payroll.db"));
    let content = fs::read(lab.path("payroll.db")).unwrap();
    assert_eq!(content.len(), 2 << 20);
    assert!(content[1 << 20..].iter().all(|&b| b == 7));
}

#[test]
fn a_file_with_two_names() {
    let lab = Lab::new("hard-link");
    lab.ok(&format!("{WRITE} ours"));
    fs::hard_link(lab.path("ours"), lab.path("theirs")).unwrap();
    refused(&lab, "ours", &["ours has 2 hard links, wanted 1"]);
    refused(&lab, "ours --overwrite ours", &["2 hard links"]);
}

#[test]
fn a_symbolic_link_is_shown_resolved() {
    let lab = Lab::new("symlink");
    fs::write(lab.path("payroll.db"), "x").unwrap();
    symlink("payroll.db", lab.path("link")).unwrap();
    refused(&lab, "link", &["/payroll.db exists (1 B)"]);
    lab.ok(&format!("{WRITE} ours"));
    symlink("ours", lab.path("to-ours")).unwrap();
    let said = lab.ok(&format!("{WRITE} to-ours --dry-run"));
    assert!(said.out.starts_with("to-ours is ") && said.out.contains("/ours.\n"), "{said}");
}

#[test]
fn a_file_that_somebody_writes() {
    let lab = Lab::new("open");
    lab.ok(&format!("{WRITE} ours"));
    let _writer = fs::OpenOptions::new().write(true).open(lab.path("ours")).unwrap();
    refused(&lab, "ours", &["ours is in use by "]);
    refused(&lab, "ours --overwrite ours", &["ours is in use by "]);
}

#[test]
fn a_link_is_named_as_it_was_given() {
    let lab = Lab::new("two-names");
    fs::write(lab.path("n1"), vec![7; 1 << 20]).unwrap();
    symlink("n1", lab.path("n2")).unwrap();
    refused(&lab, "n1 --target n2 --overwrite n1", &["n2 is the same as n1"]);
}

#[test]
fn the_store_itself() {
    let lab = Lab::new("own-store");
    lab.ok("run random-read --target null: --time 20ms");
    let before = hash(&lab.path("store.db"));
    let said = lab.run(&format!("{WRITE} store.db --overwrite store.db"));
    said.is(3, &["the store of results"]);
    assert_eq!(hash(&lab.path("store.db")), before);
}

/// Journals of studies are in that directory.
#[test]
fn what_lies_in_the_directory_of_a_stores_studies() {
    let lab = Lab::new("own-studies");
    lab.ok("run random-read --target null: --time 20ms");
    lab.ok("run random-read --target null: --time 20ms --store other.db");
    for name in ["store.db", "other.db"] {
        let place = format!("{name}.studies");
        fs::create_dir_all(lab.path(&place).join("deep")).unwrap();
        symlink(&place, lab.path("link")).unwrap();
        for target in [&place, &format!("{place}/new"), &format!("{place}/deep/new"), "link/new"] {
            let what = format!("/{name}");
            refused(&lab, target, &["a name of the store of results", &what]);
        }
        fs::remove_file(lab.path("link")).unwrap();
    }
    fs::create_dir(lab.path("any.studies")).unwrap();
    lab.ok(&format!("{WRITE} any.studies/new"));
}

#[test]
fn a_file_under_a_loop_device_and_a_swap_file() {
    needs_root!("losetup", "mkswap", "swapon");
    let mut lab = Lab::new("loop-file");
    lab.ok(&format!("{WRITE} ours"));
    let device = lab.attach(&lab.path("ours"), &[]);
    refused(&lab, "ours --overwrite ours", &["ours is the file of the loop device", "losetup -d"]);
    lab.detach(&device);

    let swap = lab.path("swap");
    fs::write(&swap, vec![0; 8 << 20]).unwrap();
    fs::set_permissions(&swap, fs::Permissions::from_mode(0o600)).unwrap();
    tool("mkswap", &[swap.to_str().unwrap()]);
    let on = std::process::Command::new("swapon").arg(&swap).output().unwrap();
    if !on.status.success() {
        eprintln!("skipped: no swap file on this file system");
        return;
    }
    tool("swapoff", &[swap.to_str().unwrap()]);
    lab.swap_on(&swap);
    refused(&lab, "swap --overwrite swap", &["swap is in use as swap", "swapoff"]);
    lab.swap_off(&swap);
}

#[test]
fn more_than_the_file_system_can_spare() {
    let lab = Lab::new("space");
    let before = lab.everything();
    let said = lab.run("run random-write --target data --size 900TiB --time 50ms");
    said.is(3, &["must stay free", "hint: --size", "would fit"]);
    assert_eq!(lab.everything(), before);
}

#[test]
fn less_than_a_gib_left() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("reserve");
    let image = lab.sparse("fs.img", 512);
    let device = lab.attach(&image, &[]);
    tool("mkfs.ext4", &["-q", &device]);
    lab.mount(&[&device], "m");
    let said = lab.run(&format!("{WRITE} m/data"));
    said.is(3, &["at least 1 GiB must stay free (5 %, at least 1 GiB, at most 8 GiB)"]);
    assert!(!lab.path("m/data").exists());
    // A directory gets a scratch file, which must fit as well.
    lab.run(&format!("{WRITE} m")).is(3, &["no room for a scratch file in"]);
}

/// A scratch file that has less than it was to have is told, and leaves room for what the suite
/// makes beside it.
#[test]
fn less_room_than_a_suite_wants() {
    needs_root!("mount");
    let mut lab = Lab::new("small");
    lab.mount(&["-t", "tmpfs", "-o", "size=1200m", "none"], "m");
    let told = "scratch file has ";
    let plan = lab.ok("run bonnie --set direct=false --target m --dry-run");
    assert!(plan.out.contains(told) && plan.out.contains("makes and removes"), "{plan}");
    // One that cannot be played on less is not said to be wrong itself.
    let said = lab.run("run working-set --set direct=false --target m --dry-run");
    said.is(3, &["no room in", "suite `working-set`: its files have 32 GiB", "--scale 0.1"]);
    let run = "run random-read --set direct=false --time 50ms --target m";
    let plan = lab.ok(&format!("{run} --size 64MiB --dry-run"));
    assert!(!plan.out.contains(told), "{plan}");
    lab.ok(run);
    let table = lab.ok("table last");
    assert!(table.out.contains("scratch-smaller") || table.out.contains(told), "{table}");
}

#[test]
fn a_read_only_file_system() {
    needs_root!("mount");
    let mut lab = Lab::new("ro");
    lab.mount(&["-t", "tmpfs", "-o", "ro", "none"], "m");
    refused(&lab, "m/data", &["read-only"]);
}

#[test]
fn a_dry_run_writes_nothing_at_all() {
    let lab = Lab::new("dry");
    fs::create_dir(lab.path("d")).unwrap();
    let before = lab.everything();
    let said = lab.ok(&format!("{WRITE} new --dry-run"));
    assert!(said.out.contains("Creates ") && said.out.contains("/new (1 MiB)"), "{said}");
    let said = lab.ok("run bm-flash --quick --size 4MiB --target d --dry-run");
    assert!(said.out.contains("plimsoll-scratch.dat afterwards."), "{said}");
    lab.ok("run bm-flash --target memory:4MiB --dry-run");
    lab.run("run bm-flash --dry-run --target no/such/place").is(5, &["hint: create no/such first"]);
    assert_eq!(lab.everything(), before);
    assert!(!lab.path("store.db").exists(), "not even a store");
    assert_eq!(fs::read_dir(lab.path("d")).unwrap().count(), 0);
}

#[test]
fn a_device_that_nobody_named() {
    needs_root!("losetup");
    let mut lab = Lab::new("unnamed");
    let image = lab.sparse("disk.img", 16);
    let other = lab.sparse("other.img", 16);
    let device = lab.attach(&image, &[]);
    let other = lab.attach(&other, &[]);
    refused(
        &lab,
        &device,
        &["is a block device: writing it destroys what it holds", "add --destroy"],
    );
    refused(&lab, &format!("{device} --destroy {other}"), &["--destroy names", &other]);
    refused(&lab, &format!("{device} --overwrite {device}"), &["add --destroy"]);
    // Reads need no leave.
    lab.ok(&format!("run random-read --time 50ms --target {device}"));
    // Another path to the same device is the same device.
    symlink(&device, lab.path("by-name")).unwrap();
    lab.ok(&format!("{WRITE} by-name --destroy {device}"));
}

#[test]
fn the_root_disk() {
    needs_root!("losetup");
    let lab = Lab::new("root");
    let root = tool("findmnt", &["-n", "-o", "SOURCE", "/"]);
    let root = root.trim();
    if !root.starts_with("/dev/") || !Path::new(root).exists() {
        eprintln!("skipped: the root file system `{root}` is not on a device that can be named");
        return;
    }
    // Were it not refused, a dry run still writes nothing.
    for more in ["", "--even-though signature"] {
        let words = format!("{root} --destroy {root} {more} --dry-run");
        refused(&lab, &words, &["is never written: ", "is under /", "name a file on it instead"]);
    }
}

/// Name, what is said of it, how it gets there.
type Signature<'a> = (&'a str, &'a str, &'a dyn Fn(&str));

/// Signatures as the tools write them, or by hand where the tool needs a kernel's driver.
#[test]
fn signatures_need_to_be_named_and_then_pass() {
    needs_root!("losetup", "mkfs.ext4", "mkswap");
    let cases: &[Signature<'_>] = &[
        ("ext4", "ext2/ext3/ext4 at byte 1080", &|d| drop(tool("mkfs.ext4", &["-q", d]))),
        ("swap", "swap at byte 4086", &|d| drop(tool("mkswap", &[d]))),
        ("gpt", "GPT partition table at byte 512", &|d| by_sgdisk(d)),
        ("lvm", "LVM physical volume", &|d| by_pvcreate(d)),
        ("md", "md member (1.2) at byte 4096", &|d| {
            let file = fs::OpenOptions::new().write(true).open(d).unwrap();
            file.write_all_at(&0xa92b_4efc_u32.to_le_bytes(), 4096).unwrap();
            file.sync_all().unwrap();
        }),
        ("unknown", "unknown data", &|d| {
            let file = fs::OpenOptions::new().write(true).open(d).unwrap();
            file.write_all_at(b"precious", 3000).unwrap();
            file.sync_all().unwrap();
        }),
    ];
    for (name, said, write) in cases {
        let mut lab = Lab::new(name);
        let image = lab.sparse("disk.img", 64);
        let device = lab.attach(&image, &[]);
        write(&device);
        if fs::metadata(&image)
            .is_ok_and(|found| std::os::unix::fs::MetadataExt::blocks(&found) == 0)
        {
            eprintln!("skipped: no tool to write {name}");
            continue;
        }
        let named = format!("{device} --destroy {device}");
        refused(&lab, &named, &["is not blank: ", said, "add --even-though signature"]);
        refused(&lab, &format!("{device} --even-though signature"), &["add --destroy"]);
        lab.ok(&format!("{WRITE} {named} --even-though signature"));
    }
}

fn by_sgdisk(device: &str) {
    if crate::lab::lacking(&["sgdisk"]).is_none() {
        tool("sgdisk", &["-n", "1:0:0", device]);
    }
}

fn by_pvcreate(device: &str) {
    if crate::lab::lacking(&["pvcreate"]).is_none() {
        tool("pvcreate", &["-q", device]);
    }
}

#[test]
fn devices_in_use_are_refused_whatever_is_said() {
    needs_root!("losetup", "mkfs.ext4", "mkswap", "swapon", "blockdev");
    let mut lab = Lab::new("in-use");
    let image = lab.sparse("disk.img", 64);
    let device = lab.attach(&image, &[]);
    let all = format!("{device} --destroy {device} --even-though signature");

    // Nothing for the kernel to finish later: while it is mounted no one else may write either.
    let at_once = "lazy_itable_init=0,lazy_journal_init=0";
    tool("mkfs.ext4", &["-q", "-E", at_once, &device]);
    lab.mount(&[&device], "m");
    refused(&lab, &all, &["is in use: ", "is mounted at", "unmount it if that is meant"]);
    tool("umount", &[lab.path("m").to_str().unwrap()]);

    tool("mkswap", &["-f", &device]);
    lab.swap_on(Path::new(&device));
    refused(&lab, &all, &["is in use as swap", "swapoff"]);
    lab.swap_off(Path::new(&device));

    let over = lab.attach(Path::new(&device), &[]);
    refused(&lab, &all, &[over.trim_start_matches("/dev/")]);
    lab.detach(&over);

    let writer = fs::OpenOptions::new().write(true).open(&device).unwrap();
    refused(&lab, &all, &["is in use by "]);
    drop(writer);

    tool("blockdev", &["--setro", &device]);
    refused(&lab, &all, &["read-only device"]);
    tool("blockdev", &["--setrw", &device]);
    lab.ok(&format!("{WRITE} {all}"));
}

/// In a mount namespace where something else is mounted over a directory.
fn hidden(lab: &Lab, directory: &str, words: &str) -> std::process::Output {
    let script = format!(
        "mount -t tmpfs none {directory} && exec {} {words} --store store.db",
        crate::lab::PLIMSOLL
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(&lab.dir).output().unwrap()
}

#[test]
fn nothing_is_written_where_nobody_can_see_who_uses_it() {
    needs_root!("losetup", "mount", "unshare");
    let mut lab = Lab::new("blind");
    fs::write(lab.path("theirs"), vec![7; 2 << 20]).unwrap();
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    for (directory, missing) in [("/proc", "no procfs at /proc"), ("/sys", "no sysfs at /sys")] {
        let before = lab.everything();
        for named in
            ["theirs --overwrite theirs".to_owned(), format!("{device} --destroy {device}")]
        {
            let said = hidden(&lab, directory, &format!("{WRITE} {named}"));
            let text = String::from_utf8_lossy(&said.stderr);
            assert_eq!(said.status.code(), Some(3), "{directory} {named}: {text}");
            assert!(text.contains(missing), "{text}");
            assert!(text.contains("\nhint: "), "{text}");
        }
        assert_eq!(lab.everything(), before, "something was changed");
        // Who insists is heard, for a file; a new one is nobody's.
        let named = "theirs --overwrite theirs --even-though unchecked";
        let said = hidden(&lab, directory, &format!("{WRITE} {named}"));
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        let said = hidden(&lab, directory, &format!("{WRITE} new{}", &directory[1..]));
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        fs::remove_file(lab.path("theirs")).unwrap();
        fs::write(lab.path("theirs"), vec![7; 2 << 20]).unwrap();
    }
}

/// Where processes, or the rights to look into them, are lacking.
fn blind(lab: &Lab, how: &[&str], words: &str) -> std::process::Output {
    let (tool, options) = how.split_first().unwrap();
    let mut command = std::process::Command::new(tool);
    command.args(options).arg(crate::lab::PLIMSOLL).args(WRITE.split(' '));
    command.args(words.split(' ')).args(["--classic", "--store", "store.db"]);
    command.current_dir(&lab.dir).output().unwrap()
}

#[test]
fn processes_out_of_sight_may_use_a_device() {
    needs_root!("losetup", "unshare", "setpriv");
    let mut lab = Lab::new("out-of-sight");
    fs::write(lab.path("theirs"), vec![7; 2 << 20]).unwrap();
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &[]);
    let all = format!("{device} --destroy {device}");
    let _other = fs::OpenOptions::new().read(true).open(&device).unwrap();
    let namespace = ["unshare", "--pid", "--fork", "--mount", "--mount-proc"];
    let rights = ["setpriv", "--bounding-set", "-sys_ptrace"];
    let user = ["unshare", "--user", "--map-root-user"];
    let ways: [(&[&str], &str); 3] = [
        (&namespace, "does not show all processes"),
        (&rights, "could not be examined"),
        (&user, "could not be examined"),
    ];
    for (how, wanted) in ways {
        let able = std::process::Command::new(how[0]).args(&how[1..]).arg("true").status();
        if !able.is_ok_and(|status| status.success()) {
            eprintln!("skipped: {how:?}");
            continue;
        }
        let before = lab.everything();
        let said = blind(&lab, how, &all);
        let text = String::from_utf8_lossy(&said.stderr);
        assert_eq!(said.status.code(), Some(3), "{how:?}: {text}");
        assert!(text.contains(wanted) && text.contains("--even-though unchecked"), "{text}");
        assert_eq!(lab.everything(), before, "something was changed");
        // Of a file of our own the kernel knows whether anybody writes it.
        let said = blind(&lab, how, "theirs --overwrite theirs");
        assert!(said.status.success(), "{how:?}: {}", String::from_utf8_lossy(&said.stderr));
        fs::write(lab.path("theirs"), vec![7; 2 << 20]).unwrap();
    }
    lab.ok(&format!("{WRITE} {all}"));
}

/// Where a loop device has no node, as in a container.
fn without_node(lab: &Lab, device: &str, words: &str) -> std::process::Output {
    let script = format!(
        "mount --bind /dev/null {device} && exec {} {WRITE} {words} --classic --store store.db",
        crate::lab::PLIMSOLL
    );
    let mut command = std::process::Command::new("unshare");
    command
        .args(["-m", "--propagation", "slave", "sh", "-c", &script])
        .current_dir(&lab.dir)
        .output()
        .unwrap()
}

#[test]
fn a_loop_device_over_a_file_unseen_may_be_over_that_one() {
    needs_root!("losetup", "mount", "unshare");
    let mut lab = Lab::new("no-node");
    let image = lab.sparse("disk.img", 16);
    let link = lab.path("link.img");
    fs::hard_link(&image, &link).unwrap();
    let device = lab.attach(&image, &[]);
    let twin = lab.attach(&link, &[]);
    fs::remove_file(&link).unwrap();
    let all = format!("{device} --destroy {device}");
    let said = without_node(&lab, &twin, &all);
    let text = String::from_utf8_lossy(&said.stderr);
    assert_eq!(said.status.code(), Some(3), "{text}");
    let name = twin.trim_start_matches("/dev/");
    assert!(text.contains(&format!("which file {name} lies on")), "{text}");
    assert!(text.contains("--even-though unchecked"), "{text}");
    // Of a file the kernel knows that it is under none.
    let said = without_node(&lab, &twin, "new");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
