//! Names that the kernel follows elsewhere than their words say: a link in `/proc` to a file of
//! another mount namespace, a descriptor, a working directory that something was mounted over.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::Scratch;
use crate::same_bytes::refusal;
use stack::{
    Access, Consent, Host, Own, PathKind, Permit, Refusal, RefusalReason, decide, gather, inspect,
};
use units::Bytes;

const WRITE: Access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };

fn judge(path: &Path, named: &Path) -> Result<Permit, Refusal> {
    let host = Host::this();
    let consent = Consent { overwrite: vec![named.to_owned()], ..Consent::default() };
    let target = inspect(&host, path).unwrap();
    decide(&gather(&host, &target, WRITE, &consent, &Own::default()))
}

#[track_caller]
fn leads_elsewhere(path: &Path) {
    let error = inspect(&Host::this(), path).map(|found| found.path.resolved).unwrap_err();
    assert!(error.to_string().contains("leads to something else"), "{}: {error}", path.display());
    assert!(error.hint().is_some());
}

/// A process in a mount namespace of its own, in which a file system in memory lies over a
/// directory: its working directory is there. It ends with the test.
struct Covering(Child);

impl Covering {
    fn new(directory: &Path) -> Option<Self> {
        let script = "mount -t tmpfs none \"$1\" && cd \"$1\" && echo theirs >f && mkdir only && \
                      echo && exec sleep 60";
        let child = Command::new("unshare")
            .args(["-m", "sh", "-c", script, "sh"])
            .arg(directory)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = Self(child.ok()?);
        let ready = child.0.stdout.as_mut()?.read_exact(&mut [0]);
        if ready.is_err() {
            println!("skipped: no mount namespaces here");
            return None;
        }
        Some(child)
    }

    fn see(&self, what: &str, path: &Path) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{what}{}", self.0.id(), path.display()))
    }
}

impl Drop for Covering {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn what_another_mount_namespace_has_at_a_path_is_not_taken_for_what_is_here() {
    let scratch = Scratch::new("namespace");
    let directory = scratch.0.join("d");
    fs::create_dir(&directory).unwrap();
    let here = scratch.file("d/f", b"ours");
    let beside = scratch.file("beside", b"ours");
    let Some(other) = Covering::new(&directory) else { return };
    leads_elsewhere(&other.see("root", &here));
    leads_elsewhere(&other.see("cwd", Path::new("/f")));
    // New files would be made in the directory that has the name here.
    leads_elsewhere(&other.see("root", &directory.join("new")));
    leads_elsewhere(&other.see("cwd", Path::new("/new")));
    leads_elsewhere(&other.see("root", &directory));
    // There is nothing here of that name.
    inspect(&Host::this(), &other.see("root", &directory.join("only"))).unwrap_err();
    inspect(&Host::this(), &other.see("root", &directory.join("only/new"))).unwrap_err();
    // A link to it is as bad.
    let link = scratch.0.join("link");
    symlink(other.see("root", &here), &link).unwrap();
    leads_elsewhere(&link);
    // The consent to write another file is none to write this one.
    let refusal = judge(&here, &other.see("root", &here)).unwrap_err();
    let mut reasons = refusal.reasons();
    assert!(reasons.any(|r| matches!(r, RefusalReason::NamedOther { .. })), "{refusal}");
    // What is not below the mount is another mount there, too: a copy with a number of its own.
    leads_elsewhere(&other.see("root", &beside));
}

#[test]
fn a_descriptor_whose_file_has_another_name_by_now_is_not_what_has_its_name() {
    let scratch = Scratch::new("descriptor");
    let (path, other) = (scratch.file("f", b"first"), scratch.file("g", b"second"));
    let open = File::open(&path).unwrap();
    let by_number = |place: &str| PathBuf::from(format!("{place}/{}", open.as_raw_fd()));
    for name in [by_number("/proc/self/fd"), by_number("/dev/fd")] {
        let found = inspect(&Host::this(), &name).unwrap();
        assert_eq!(found.path.resolved, path);
        judge(&name, &name).unwrap();
    }
    fs::rename(&other, &path).unwrap();
    let looks_gone = scratch.file("f (deleted)", b"third");
    for name in [by_number("/proc/self/fd"), by_number("/dev/fd")] {
        leads_elsewhere(&name);
        let refusal = judge(&looks_gone, &name).unwrap_err();
        let mut reasons = refusal.reasons();
        assert!(reasons.any(|r| matches!(r, RefusalReason::NamedOther { .. })), "{refusal}");
    }
}

#[test]
fn names_that_say_where_they_lead_go_on_working() {
    let scratch = Scratch::new("ordinary");
    fs::create_dir_all(scratch.0.join("a/b")).unwrap();
    let file = scratch.file("a/b/f", b"x");
    symlink("b", scratch.0.join("a/link")).unwrap();
    symlink(scratch.0.join("a/link/f"), scratch.0.join("to-file")).unwrap();
    let root = |path: &Path| PathBuf::from(format!("/proc/self/root{}", path.display()));
    let names = [
        file.clone(),
        scratch.0.join("a/link/f"),
        scratch.0.join("to-file"),
        scratch.0.join("a/link/../b/./f"),
        root(&file),
        root(&scratch.0.join("to-file")),
    ];
    for name in names {
        assert_eq!(inspect(&Host::this(), &name).unwrap().path.resolved, file);
        judge(&name, &name).unwrap();
        judge(&file, &name).unwrap();
    }
    for directory in ["a/b", "a/link", "a/b/", "a/link/", "a/link/."] {
        let found = inspect(&Host::this(), &scratch.0.join(directory)).unwrap();
        assert_eq!(
            (found.path.kind, found.path.resolved),
            (PathKind::Directory, scratch.0.join("a/b"))
        );
    }
    for new in [scratch.0.join("a/link/new"), root(&scratch.0.join("a/b/new"))] {
        let found = inspect(&Host::this(), &new).unwrap();
        assert_eq!(found.path.kind, PathKind::Missing);
        assert_eq!(found.path.resolved, scratch.0.join("a/b/new"));
    }
    // Relative to where cargo runs this, whatever it is called.
    let relative = inspect(&Host::this(), Path::new("Cargo.toml")).unwrap();
    assert_eq!(relative.path.resolved, std::env::current_dir().unwrap().join("Cargo.toml"));
    let by_cwd = inspect(&Host::this(), Path::new("/proc/self/cwd/Cargo.toml")).unwrap();
    assert_eq!(by_cwd.path.resolved, relative.path.resolved);
    assert_eq!(
        inspect(&Host::this(), Path::new("no-such-file")).unwrap().path.kind,
        PathKind::Missing
    );
    let Ok(by_id) = fs::read_dir("/dev/disk/by-id") else { return };
    for name in by_id.flatten().take(4) {
        let found = inspect(&Host::this(), &name.path()).unwrap();
        assert!(matches!(found.path.kind, PathKind::BlockDevice { .. }), "{found:?}");
    }
}

/// What a test mounts goes with it.
struct Mounted(PathBuf);

impl Mounted {
    fn new(words: &[&str], point: &Path) -> Option<Self> {
        fs::create_dir_all(point).unwrap();
        let done = Command::new("mount").args(words).arg(point).output();
        match done {
            Ok(done) if done.status.success() => Some(Self(point.to_owned())),
            other => {
                println!("skipped: mount {words:?}: {other:?}");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn files_of_bind_mounts_and_overlays_are_where_they_are() {
    let scratch = Scratch::new("mounts");
    let file = scratch.file("f", b"x");
    let text = |name: &str| scratch.0.join(name).display().to_string();
    let Some(memory) = Mounted::new(&["-t", "tmpfs", "none"], &scratch.0.join("t")) else { return };
    for name in ["l", "u", "w"] {
        fs::create_dir(memory.0.join(name)).unwrap();
    }
    fs::write(memory.0.join("l/below"), b"x").unwrap();
    let bound = Mounted::new(&["--bind", &text("")], &memory.0.join("bound"));
    let layers =
        format!("lowerdir={},upperdir={},workdir={}", text("t/l"), text("t/u"), text("t/w"));
    let over = Mounted::new(&["-t", "overlay", "none", "-o", &layers], &scratch.0.join("m"));
    if let Some(bound) = &bound {
        let name = bound.0.join("f");
        assert_eq!(inspect(&Host::this(), &name).unwrap().path.resolved, name);
        judge(&name, &name).unwrap();
    }
    if let Some(over) = &over {
        fs::write(over.0.join("above"), b"x").unwrap();
        for name in ["above", "below", "new"] {
            let name = over.0.join(name);
            assert_eq!(inspect(&Host::this(), &name).unwrap().path.resolved, name);
        }
        judge(&over.0.join("below"), &over.0.join("below")).unwrap();
    }
    drop((bound, over));
    judge(&file, &file).unwrap();
}

/// The store by another name of its bytes: an overlay above it or below, or a device over it.
#[test]
fn the_store_is_our_own_through_an_overlay_and_as_a_loop_device() {
    let scratch = Scratch::new("own-store");
    let text = |name: &str| scratch.0.join(name).display().to_string();
    let own = |store: PathBuf| Own { store: Some(store), ..Own::default() };
    let refused = |path: &Path, own: &Own| {
        let refusal = refusal(path, own).unwrap();
        assert!(refusal.to_string().contains("the store of results"), "{refusal}");
    };
    let store = scratch.file("st.db", &[7; 1 << 20]);
    let aside = scratch.file("st.db-wal", &[7; 1 << 20]);
    for file in [&store, &aside] {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output();
        let Some(made) = made.ok().filter(|made| made.status.success()) else {
            println!("skipped: no loop devices");
            break;
        };
        let device = PathBuf::from(String::from_utf8(made.stdout).unwrap().trim());
        let result = std::panic::catch_unwind(|| refused(&device, &own(store.clone())));
        let _ = Command::new("losetup").arg("-d").arg(&device).output();
        result.unwrap();
    }
    let Some(memory) = Mounted::new(&["-t", "tmpfs", "none"], &scratch.0.join("t")) else { return };
    for name in ["l", "u", "w"] {
        fs::create_dir(memory.0.join(name)).unwrap();
    }
    let layers =
        format!("lowerdir={},upperdir={},workdir={}", text("t/l"), text("t/u"), text("t/w"));
    let point = scratch.0.join("m");
    let Some(over) = Mounted::new(&["-t", "overlay", "none", "-o", &layers], &point) else {
        return;
    };
    for name in ["s.db", "s.db-wal", "s.db-journal"] {
        fs::write(over.0.join(name), [7; 4096]).unwrap();
        refused(&memory.0.join("u").join(name), &own(over.0.join("s.db")));
        refused(&over.0.join(name), &own(memory.0.join("u/s.db")));
    }
}
