//! What is found on the machine that the tests run on: files, and loop devices where root may
//! make them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::Scratch;
use rustix::fs::XattrFlags;
use stack::build::EndsError;
use stack::{
    Access, Action, Consent, DeviceNumber, Host, Ledger, MARK_NAME, Mark, Own, PathKind, Permit,
    Refusal, RefusalReason, Subject, TargetError, decide, difference, gather, inspect, mark_value,
};
use units::Bytes;

/// No bytes, so that a full disk under the tests is no reason to refuse.
const WRITE: Access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };

fn facts(path: &Path, consent: &Consent) -> stack::Facts {
    let host = Host::this();
    let target = inspect(&host, path).unwrap();
    gather(&host, &target, WRITE, consent, &Own::of_this_process(None))
}

/// Writers that go away are not this test's: `losetup --find` elsewhere opens every loop device
/// for a moment, and a child of this very process has its open files until its `exec`.
fn judge(path: &Path, consent: &Consent) -> Result<Permit, Refusal> {
    let is_open = |refusal: &Refusal| {
        refusal.reasons().any(|reason| matches!(reason, RefusalReason::InUse { .. }))
    };
    for _ in 0..20 {
        let decision = decide(&facts(path, consent));
        if !decision.as_ref().is_err_and(is_open) {
            return decision;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    decide(&facts(path, consent))
}

fn overwrite(path: &Path) -> Consent {
    Consent { overwrite: vec![path.to_owned()], ..Consent::default() }
}

/// Marks a file; `false` (and a printed reason) where the file system keeps no attributes.
fn mark(path: &Path) -> bool {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let value = mark_value(&file).unwrap();
    let done = rustix::fs::fsetxattr(&file, MARK_NAME, &value, XattrFlags::empty());
    if let Err(error) = done {
        println!("skipped: no extended attributes on {}: {error}", path.display());
    }
    done.is_ok()
}

fn mark_of(path: &Path) -> Mark {
    let Subject::File(file) = facts(path, &Consent::default()).subject else { panic!() };
    file.mark
}

#[test]
fn a_marked_file_is_ours_until_someone_else_writes_it() {
    let scratch = Scratch::new("mark");
    let path = scratch.file("test.dat", &[7; 4096]);
    assert_eq!(mark_of(&path), Mark::None);
    if !mark(&path) {
        return;
    }
    assert_eq!(mark_of(&path), Mark::Ours);
    assert_eq!(judge(&path, &Consent::default()).unwrap().action, Action::Overwrite);
    // Other data of another length, in the same inode, with the attribute kept.
    fs::write(&path, b"the accounts of 2025").unwrap();
    assert!(matches!(mark_of(&path), Mark::Stale { .. }));
}

#[test]
fn a_copy_of_a_marked_file_is_not_ours() {
    let scratch = Scratch::new("copy");
    let path = scratch.file("test.dat", &[7; 4096]);
    if !mark(&path) {
        return;
    }
    let copy = scratch.0.join("copy.dat");
    let copied = Command::new("cp").args(["--preserve=all"]).arg(&path).arg(&copy).status();
    assert!(copied.unwrap().success());
    assert!(matches!(mark_of(&copy), Mark::Stale { .. }), "{:?}", mark_of(&copy));
}

#[test]
fn overwrite_names_a_file_by_any_path_that_leads_to_it() {
    let scratch = Scratch::new("named");
    let path = scratch.file("data", b"precious");
    let other = scratch.file("other", b"precious");
    let link = scratch.0.join("link");
    symlink(&path, &link).unwrap();
    for name in [&path, &link] {
        judge(&path, &overwrite(name)).unwrap();
        judge(&link, &overwrite(name)).unwrap();
    }
    let refusal = judge(&path, &overwrite(&other)).unwrap_err();
    assert!(matches!(refusal.reasons().next(), Some(RefusalReason::NamedOther { .. })));
    let permit = judge(&link, &overwrite(&path)).unwrap();
    assert_eq!(permit.path, path);
    assert!(permit.describe()[0].ends_with(&format!("is {}.", path.display())));
}

#[test]
fn hard_links_are_refused() {
    let scratch = Scratch::new("hard");
    let path = scratch.file("a", b"precious");
    fs::hard_link(&path, scratch.0.join("b")).unwrap();
    let refusal = judge(&path, &overwrite(&path)).unwrap_err();
    assert!(matches!(refusal.reasons().next(), Some(RefusalReason::HardLinks { links: 2, .. })));
}

#[test]
fn a_file_exchanged_after_the_check_is_noticed() {
    let scratch = Scratch::new("exchange");
    let path = scratch.file("a", b"mine");
    let permit = judge(&path, &overwrite(&path)).unwrap();
    permit.confirm(&File::open(&path).unwrap()).unwrap();
    let other = scratch.file("b", b"precious");
    fs::rename(&other, &path).unwrap();
    let error = permit.confirm(&File::open(&path).unwrap()).unwrap_err();
    assert!(error.to_string().contains("was exchanged"), "{error}");
}

/// A process that ends with the test, also when it panics.
struct Child(std::process::Child);

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A shell that says when it has done `script` and then waits.
fn shell(script: &str) -> Child {
    use std::io::Read;
    let mut child = Command::new("sh")
        .args(["-c", &format!("{script}; echo; read end")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    Child(child)
}

#[test]
fn whoever_has_it_open_is_named() {
    let scratch = Scratch::new("writer");
    let path = scratch.file("data", b"precious");
    for how in ["<", ">>"] {
        let user = shell(&format!("exec 3{how}'{}'", path.display()));
        let refusal = decide(&facts(&path, &overwrite(&path))).unwrap_err();
        let pid = format!("pid {}", user.0.id());
        assert!(refusal.to_string().contains(&pid), "{how}: {refusal}");
    }
    judge(&path, &overwrite(&path)).unwrap();
    // Who only looks is waited for.
    let reader = File::open(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(reader);
        });
        decide(&facts(&path, &overwrite(&path))).unwrap();
    });
}

#[test]
fn a_running_program_is_refused() {
    let scratch = Scratch::new("running");
    let path = scratch.0.join("sleep");
    fs::copy("/bin/sleep", &path).unwrap();
    let _child = Child(Command::new(&path).arg("60").spawn().unwrap());
    // The child may not have come to its `exec` yet.
    let refusal = (0..500).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        judge(&path, &overwrite(&path)).err()
    });
    let refusal = refusal.expect("refused within 5 s");
    assert!(matches!(refusal.reasons().next(), Some(RefusalReason::InUse { .. })), "{refusal}");
}

#[test]
fn a_file_with_the_name_of_a_running_program_is_not_that_program() {
    let scratch = Scratch::new("name");
    let path = scratch.file("sleep", b"another");
    let _child = Child(Command::new("sleep").arg("60").spawn().unwrap());
    // The child may not have come to its `exec` yet; a miss then is no failure.
    std::thread::sleep(std::time::Duration::from_millis(50));
    judge(&path, &overwrite(&path)).unwrap();
}

#[test]
fn the_program_and_the_store_are_our_own() {
    let scratch = Scratch::new("own");
    let host = Host::this();
    let store = scratch.file("runs.db", b"");
    for (path, own) in [
        (scratch.file("runs.db-wal", b""), Own { store: Some(store.clone()), program: None }),
        (store.clone(), Own { store: Some(store.clone()), program: None }),
        (store.clone(), Own { store: Some(scratch.0.clone()), program: None }),
        (std::env::current_exe().unwrap(), Own::of_this_process(None)),
    ] {
        let target = inspect(&host, &path).unwrap();
        let facts = gather(&host, &target, WRITE, &overwrite(&path), &own);
        let refusal = decide(&facts).unwrap_err();
        assert!(matches!(refusal.reasons().next(), Some(RefusalReason::Own { .. })), "{refusal}");
    }
}

#[test]
fn paths_are_what_they_are() {
    let scratch = Scratch::new("kinds");
    let kind = |path: &Path| inspect(&Host::this(), path).unwrap().path.kind;
    assert!(matches!(kind(&scratch.file("f", b"x")), PathKind::File { links: 1, .. }));
    assert_eq!(kind(&scratch.0), PathKind::Directory);
    assert_eq!(kind(&scratch.0.join("new")), PathKind::Missing);
    assert!(matches!(kind(Path::new("/dev/zero")), PathKind::CharacterDevice { .. }));
    let fifo = scratch.0.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(kind(&fifo), PathKind::Other { name: "pipe".to_owned() });

    let error = inspect(&Host::this(), &scratch.0.join("no/such")).unwrap_err();
    assert!(matches!(error, TargetError::NoParent { .. }) && error.hint().is_some());
    let dangling = scratch.0.join("dangling");
    symlink("nowhere", &dangling).unwrap();
    let error = inspect(&Host::this(), &dangling).unwrap_err();
    assert!(matches!(error, TargetError::DanglingLink { .. }) && error.hint().is_some());
    // A file is no directory.
    let error = inspect(&Host::this(), &scratch.0.join("f/below")).unwrap_err();
    assert!(!error.to_string().is_empty());
    assert!(matches!(inspect(&Host::this(), Path::new("")), Err(TargetError::Empty)));
    for odd in [".", "..", "/", "/.."] {
        let _ = inspect(&Host::this(), Path::new(odd));
    }
}

#[test]
fn a_missing_file_is_judged_by_its_directory() {
    let scratch = Scratch::new("missing");
    let target = inspect(&Host::this(), &scratch.0.join("new")).unwrap();
    assert_eq!(target.path.resolved, scratch.0.join("new"));
    assert!(target.mount.is_some() && target.path.space.is_some());
    let permit = judge(&scratch.0.join("new"), &Consent::default());
    if let Ok(permit) = permit {
        assert_eq!(permit.action, Action::Create);
    }
    assert!(!scratch.0.join("new").exists(), "nothing was made");
}

#[test]
fn a_mistyped_device_does_not_exist_and_that_is_all() {
    let refusal = judge(Path::new("/dev/sdmistyped"), &Consent::default()).unwrap_err();
    assert!(matches!(refusal.reasons().next(), Some(RefusalReason::NoSuchDevice { .. })));
    let said = refusal.to_string();
    assert!(said.contains("/dev/sdmistyped does not exist"), "{said}");
    assert!(!said.contains("storage"), "where it would be is no news: {said}");
    let error = inspect(&Host::this(), Path::new("/dev/mistyped/sda")).unwrap_err();
    assert!(error.to_string().contains("no device /dev/mistyped/sda"), "{error}");
    assert!(!error.hint().unwrap().contains("create"), "{error:?}");
}

#[test]
fn a_directory_that_does_not_exist_is_no_file() {
    let scratch = Scratch::new("directory");
    for name in ["bench/", "bench/.", "bench//"] {
        let path = scratch.0.join(name);
        let error = inspect(&Host::this(), &path).unwrap_err();
        assert!(matches!(error, TargetError::NoDirectory { .. }), "{name}: {error:?}");
        assert!(error.to_string().contains("does not exist"), "{error}");
    }
    assert!(!scratch.0.join("bench").exists(), "nothing was made");
    std::fs::create_dir(scratch.0.join("bench")).unwrap();
    let there = inspect(&Host::this(), &scratch.0.join("bench/")).unwrap();
    assert_eq!(there.path.kind, PathKind::Directory);
    // A slash behind a file's name is no directory either.
    std::fs::write(scratch.0.join("file"), "x").unwrap();
    assert!(inspect(&Host::this(), &scratch.0.join("file/")).is_err());
}

/// A loop device over a file in a scratch directory; both go with it.
struct LoopDevice {
    path: PathBuf,
    mounted: Option<PathBuf>,
    swap: bool,
    scratch: Scratch,
}

impl LoopDevice {
    /// `None`, and a printed reason, where there can be none.
    fn new(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: loop devices need root");
            return None;
        }
        let scratch = Scratch::new(name);
        let file = scratch.0.join("disk");
        File::create(&file).unwrap().set_len(64 << 20).unwrap();
        let made = Command::new("losetup").args(["--find", "--show"]).arg(&file).output();
        let path = match made {
            Ok(made) if made.status.success() => String::from_utf8(made.stdout).unwrap(),
            other => {
                println!("skipped: no loop device: {other:?}");
                return None;
            }
        };
        Some(Self { path: path.trim().into(), mounted: None, swap: false, scratch })
    }

    fn destroy(&self) -> Consent {
        Consent { destroy: vec![self.path.clone()], ..Consent::default() }
    }

    fn even_though(&self) -> Consent {
        Consent { even_though_signature: true, ..self.destroy() }
    }

    fn reasons(&self, consent: &Consent) -> Vec<RefusalReason> {
        match judge(&self.path, consent) {
            Ok(permit) => panic!("allowed: {permit:?}"),
            Err(refusal) => refusal.reasons().cloned().collect(),
        }
    }

    /// Runs a tool on the device; `false`, and a printed reason, where it is not to be had.
    fn make(&self, tool: &str, arguments: &[&str]) -> bool {
        let output = Command::new(tool).args(arguments).arg(&self.path).output();
        match output {
            Ok(output) if output.status.success() => true,
            other => {
                println!("skipped: {tool}: {other:?}");
                false
            }
        }
    }

    /// Refused for its signature, named `name`, and allowed if that is waved through.
    fn bears(&self, name: &str) {
        let reasons = self.reasons(&self.destroy());
        let [RefusalReason::Signature { found, .. }] = &reasons[..] else { panic!("{reasons:?}") };
        assert!(found.contains(name), "{found}");
        let permit = judge(&self.path, &self.even_though()).unwrap();
        assert_eq!(permit.action, Action::Destroy);
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let run = |tool: &str, argument: &Path| {
            let _ = Command::new(tool).arg(argument).output();
        };
        if let Some(mounted) = &self.mounted {
            run("umount", mounted);
        }
        if self.swap {
            run("swapoff", &self.path);
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.path).output();
    }
}

#[test]
fn a_blank_device_is_destroyed_only_when_named() {
    let Some(device) = LoopDevice::new("blank") else { return };
    let reasons = device.reasons(&Consent::default());
    assert!(matches!(reasons[..], [RefusalReason::NotNamed { .. }]), "{reasons:?}");
    let permit = judge(&device.path, &device.destroy()).unwrap();
    assert_eq!(permit.action, Action::Destroy);
    permit.confirm(&File::open(&device.path).unwrap()).unwrap();

    // Another name of the same device will do; another device will not.
    let link = device.scratch.0.join("by-id");
    symlink(&device.path, &link).unwrap();
    judge(&device.path, &Consent { destroy: vec![link.clone()], ..Consent::default() }).unwrap();
    judge(&link, &device.destroy()).unwrap();
    let Some(other) = LoopDevice::new("blank-other") else { return };
    let reasons = device.reasons(&other.destroy());
    assert!(matches!(reasons[..], [RefusalReason::NamedOther { .. }]), "{reasons:?}");
    permit.confirm(&File::open(&other.path).unwrap()).unwrap_err();

    // The file under a loop device is no target.
    let file = device.scratch.0.join("disk");
    let refusal = judge(&file, &overwrite(&file)).unwrap_err();
    assert!(matches!(refusal.reasons().next(), Some(RefusalReason::LoopFile { .. })), "{refusal}");
}

#[test]
fn a_mounted_device_is_refused_whatever_is_said() {
    let Some(mut device) = LoopDevice::new("mounted") else { return };
    if !device.make("mkfs.ext4", &["-q"]) {
        return;
    }
    device.bears("ext2/ext3/ext4");
    let point = device.scratch.0.join("a place with spaces");
    fs::create_dir(&point).unwrap();
    let mounted = Command::new("mount").arg(&device.path).arg(&point).output().unwrap();
    if !mounted.status.success() {
        println!("skipped: mount: {mounted:?}");
        return;
    }
    device.mounted = Some(point.clone());
    let reasons = device.reasons(&device.even_though());
    let [RefusalReason::Mounted { at, .. }] = &reasons[..] else { panic!("{reasons:?}") };
    assert_eq!(Path::new(at), point);

    // A file inside lies on the loop device, and that on a file.
    let inside = inspect(&Host::this(), &point.join("new")).unwrap();
    assert_eq!(inside.mount.as_ref().unwrap().file_system, "ext4");
    assert!(inside.devices[0].name.starts_with("loop"), "{inside:?}");
}

#[test]
fn ends_are_made_blank_of_the_device_that_was_meant_and_that_nobody_has() {
    let Some(device) = LoopDevice::new("ends") else { return };
    let file = OpenOptions::new().write(true).open(&device.path).unwrap();
    file.write_all_at(&[7; 512], 0).unwrap();
    file.sync_all().unwrap();
    drop(file);
    let number = stack::build::identity(&Host::this(), &device.path).unwrap().number;
    let blank = |number, is_ours: bool| {
        stack::build::blank_ends(&device.path, number, &|marks| {
            assert_eq!(marks.len(), 1);
            is_ours
        })
    };
    let bytes = || {
        let mut bytes = [1; 512];
        File::open(&device.path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let other = DeviceNumber { minor: number.minor + 1, ..number };
    assert!(matches!(blank(other, true), Err(EndsError::Exchanged { .. })));
    assert!(!blank(number, false).unwrap(), "somebody else's bytes");
    // As a mount or an array has it.
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::EXCL
        // A child of another test would keep the claim.
        | rustix::fs::OFlags::CLOEXEC;
    let held = rustix::fs::open(&device.path, flags, rustix::fs::Mode::empty()).unwrap();
    let error = blank(number, true).unwrap_err();
    assert!(matches!(&error, EndsError::System { .. }), "{error}");
    assert_eq!(bytes(), [7; 512]);
    drop(held);
    assert!(blank(number, true).unwrap());
    assert_eq!(bytes(), [0; 512]);
}

#[test]
fn swap_is_refused() {
    let Some(mut device) = LoopDevice::new("swap") else { return };
    if !device.make("mkswap", &[]) {
        return;
    }
    device.bears("swap");
    if !device.make("swapon", &[]) {
        return;
    }
    device.swap = true;
    let reasons = device.reasons(&device.even_though());
    assert!(matches!(reasons[..], [RefusalReason::Swap { .. }]), "{reasons:?}");
}

#[test]
fn an_lvm_physical_volume_is_refused() {
    let Some(device) = LoopDevice::new("lvm") else { return };
    if device.make("pvcreate", &["-qq", "-y"]) {
        device.bears("LVM physical volume");
    }
}

#[test]
fn a_partition_table_is_refused() {
    let Some(device) = LoopDevice::new("gpt") else { return };
    if device.make("sgdisk", &["--new=1:0:0"]) {
        device.bears("GPT partition table at byte 512");
        device.bears("GPT partition table (backup)");
    }
}

#[test]
fn an_md_member_is_refused() {
    use std::os::unix::fs::FileExt;
    // mdadm needs the kernel's md to make an array: the superblock's magic by hand.
    for (at, name) in [(4096, "md member (1.2)"), (64 << 20, "md member (0.90)")] {
        let Some(device) = LoopDevice::new("md") else { return };
        let file = OpenOptions::new().write(true).open(&device.path).unwrap();
        let at = if at == 4096 { at } else { at - 65536 };
        file.write_all_at(&0xa92b_4efc_u32.to_le_bytes(), at).unwrap();
        file.sync_all().unwrap();
        drop(file);
        device.bears(name);
    }
}

#[test]
fn other_file_systems_are_refused() {
    for (tool, arguments, name) in [
        ("mkfs.btrfs", &["-q", "--mixed"][..], "btrfs"),
        ("mkfs.vfat", &[], "vfat"),
        ("mkfs.exfat", &[], "exfat"),
        ("mkfs.ntfs", &["--quick", "--quiet"], "ntfs"),
        ("mkfs.f2fs", &["-q"], "f2fs"),
        ("mkfs.jfs", &["-q"], "jfs"),
        ("mkfs.nilfs2", &["-q", "-B", "16"], "nilfs2"),
        ("mkfs.reiserfs", &["-q", "-ff"], "reiserfs"),
        ("make-bcache", &["-B"], "bcache"),
    ] {
        let Some(device) = LoopDevice::new(tool) else { return };
        if device.make(tool, arguments) {
            device.bears(name);
        }
    }
}

/// Those that need a larger device, or end with other words than the device: made in a file,
/// which the prober reads alike.
#[test]
fn larger_formats_are_found_in_a_file() {
    let scratch = Scratch::new("formats");
    let file = scratch.0.join("disk");
    let path = file.to_str().unwrap();
    // A key that costs nothing to derive: the header is all that matters.
    let luks = |kind| {
        let key = ["--pbkdf=pbkdf2", "--pbkdf-force-iterations=1000", "--keyfile-size=32"];
        [&["luksFormat", "-q", kind][..], &key, &[path, "/dev/zero"]].concat()
    };
    for (tool, arguments, name) in [
        ("mkfs.xfs", vec!["-q", path], "xfs"),
        ("cryptsetup", luks("--type=luks1"), "LUKS"),
        ("cryptsetup", luks("--type=luks2"), "LUKS"),
    ] {
        File::create(&file).unwrap().set_len(320 << 20).unwrap();
        match Command::new(tool).args(&arguments).output() {
            Ok(output) if output.status.success() => {
                let found = stack::probe(&File::open(&file).unwrap()).unwrap();
                assert!(found.iter().any(|s| s.name == name), "{tool}: {found:?}");
            }
            other => println!("skipped: {tool}: {other:?}"),
        }
    }
}

#[test]
fn unknown_data_is_refused() {
    use std::os::unix::fs::FileExt;
    let Some(device) = LoopDevice::new("unknown") else { return };
    let file = OpenOptions::new().write(true).open(&device.path).unwrap();
    file.write_all_at(b"raw tables", 700_000).unwrap();
    file.sync_all().unwrap();
    drop(file);
    device.bears("unknown data at byte 700000");
}

#[test]
fn a_device_open_for_writing_elsewhere_is_refused() {
    let Some(device) = LoopDevice::new("open") else { return };
    let _writer = shell(&format!("exec 3>>'{}'", device.path.display()));
    let reasons = device.reasons(&device.even_though());
    assert!(matches!(reasons[..], [RefusalReason::InUse { .. }]), "{reasons:?}");
}

#[test]
fn the_ledger_counts_what_the_kernel_did() {
    use std::io::Read;
    let Some(device) = LoopDevice::new("ledger") else { return };
    let host = Host::this();
    let target = inspect(&host, &device.path).unwrap();
    let ledger = Ledger::new(&host, &target.devices[..1]);
    let before = ledger.snapshot();
    let mut bytes = vec![0; 1 << 20];
    File::open(&device.path).unwrap().read_exact(&mut bytes).unwrap();
    let found = difference(&before, &ledger.snapshot());
    assert!(found.unknown.is_empty(), "{found:?}");
    let entry = &found.entries[0];
    // Read-ahead may have taken more.
    assert!(entry.read_bytes >= 1 << 20 && entry.reads > 0 && entry.writes == 0, "{entry:?}");
}

#[test]
fn the_systems_disk_is_never_written() {
    let Ok(root) = inspect(&Host::this(), Path::new("/")) else { return };
    let Some(name) = root.top().map(|d| d.name.clone()) else {
        println!("skipped: the device under / is not visible");
        return;
    };
    let path = Path::new("/dev").join(name);
    if !path.exists() {
        println!("skipped: no {}", path.display());
        return;
    }
    let consent =
        Consent { destroy: vec![path.clone()], even_though_signature: true, ..Consent::default() };
    let refusal = judge(&path, &consent).unwrap_err();
    assert!(matches!(refusal.reasons().next(), Some(RefusalReason::System { .. })), "{refusal}");
}

#[test]
fn facts_are_of_the_file_that_was_looked_at_whatever_has_its_name_meanwhile() {
    let scratch = Scratch::new("lent");
    let (path, away) = (scratch.file("a", b"precious"), scratch.0.join("away"));
    let marked = scratch.file("b", b"of plimsoll");
    if !mark(&marked) {
        return;
    }
    let host = Host::this();
    let target = inspect(&host, &path).unwrap();
    // Our own file lends its mark for a moment, and the name is given back.
    fs::rename(&path, &away).unwrap();
    fs::rename(&marked, &path).unwrap();
    let consent = Consent::default();
    let facts = gather(&host, &target, WRITE, &consent, &Own::of_this_process(None));
    fs::rename(&path, &marked).unwrap();
    fs::rename(&away, &path).unwrap();
    let Subject::File(file) = &facts.subject else { panic!() };
    assert_eq!(file.mark, Mark::None);
    let refusal = decide(&facts).unwrap_err();
    assert!(refusal.reasons().any(|reason| matches!(reason, RefusalReason::NotOurs { .. })));
}

#[test]
fn what_is_on_a_device_is_read_from_the_device_that_was_looked_at() {
    let (Some(full), Some(blank)) = (LoopDevice::new("held-full"), LoopDevice::new("held-blank"))
    else {
        return;
    };
    let device = OpenOptions::new().write(true).open(&full.path).unwrap();
    device.write_all_at(b"somebody's", 4096).unwrap();
    device.sync_all().unwrap();
    drop(device);
    let node = full.scratch.0.join("node");
    let make = |device: &Path| {
        use std::os::unix::fs::MetadataExt;
        let number = fs::metadata(device).unwrap().rdev();
        let _ = fs::remove_file(&node);
        let (kind, mode) =
            (rustix::fs::FileType::BlockDevice, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(rustix::fs::CWD, &node, kind, mode, number).is_ok()
    };
    if !make(&full.path) || File::open(&node).is_err() {
        println!("skipped: no device nodes here");
        return;
    }
    let host = Host::this();
    let target = inspect(&host, &node).unwrap();
    assert!(make(&blank.path));
    let facts = gather(&host, &target, WRITE, &full.destroy(), &Own::of_this_process(None));
    let Subject::Block(block) = &facts.subject else { panic!() };
    assert!(!block.signatures.as_ref().unwrap().is_empty(), "{:?}", block.signatures);
}
