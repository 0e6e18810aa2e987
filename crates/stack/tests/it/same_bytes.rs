//! Other names for the same bytes, other ways to use them, and views of the machine that lack
//! something: none of them may hide a use.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common::Scratch;
use rustix::fs::{CWD, Mode};
use stack::{Access, Consent, Host, Own, Refusal, RefusalReason, decide, gather, inspect};
use units::Bytes;

const WRITE: Access = Access::Write { size: Bytes::ZERO, also: Bytes::ZERO };

/// What speaks against writing a target that the user named in every way there is, if anything does.
pub fn refusal(path: &Path, own: &Own) -> Option<Refusal> {
    let consent = Consent {
        overwrite: vec![path.to_owned()],
        destroy: vec![path.to_owned()],
        even_though_signature: true,
        ..Consent::default()
    };
    let host = Host::this();
    let target = inspect(&host, path).unwrap();
    decide(&gather(&host, &target, WRITE, &consent, own)).err()
}

/// The reasons in it.
pub fn reasons(path: &Path) -> Vec<RefusalReason> {
    let refusal = refusal(path, &Own::default());
    refusal.iter().flat_map(|refusal| refusal.reasons().cloned()).collect()
}

/// Processes elsewhere open every loop device for a moment; those go away.
pub fn settled(path: &Path) -> Vec<RefusalReason> {
    for _ in 0..50 {
        let found = reasons(path);
        if found.is_empty() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    reasons(path)
}

pub fn is_held(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| {
        use RefusalReason as R;
        matches!(reason, R::Mounted { .. } | R::Held { .. } | R::Swap { .. } | R::InUse { .. })
    })
}

pub fn is_used(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| matches!(reason, RefusalReason::InUse { .. }))
}

/// Whether the machine can do it; says so where it cannot.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    root
}

/// What is undone when a test ends, last first.
#[derive(Default)]
pub struct Undo(Vec<(String, Vec<String>)>);

impl Undo {
    pub fn later(&mut self, tool: &str, arguments: &[&Path]) {
        let arguments = arguments.iter().map(|one| one.display().to_string()).collect();
        self.0.push((tool.to_owned(), arguments));
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for (tool, arguments) in self.0.drain(..).rev() {
            let done = || Command::new(&tool).args(&arguments).output();
            // A partition that another test looks at just now would stay, and be on the next file that gets
            // this loop device. Other tools are not asked twice: by then the name may be another test's.
            let is_busy =
                |done: std::io::Result<Output>| done.is_ok_and(|done| !done.status.success());
            for _ in 0..if tool == "partx" { 50 } else { 1 } {
                if !is_busy(done()) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

pub fn run(tool: &str, arguments: &[&Path]) -> Option<String> {
    let output = Command::new(tool).args(arguments).output();
    match output {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8(output.stdout).unwrap().trim().to_owned())
        }
        other => {
            println!("skipped: {tool} {arguments:?}: {other:?}");
            None
        }
    }
}

pub struct Lab {
    pub undo: Undo,
    pub scratch: Scratch,
}

impl Lab {
    pub fn new(name: &str) -> Self {
        Self { undo: Undo::default(), scratch: Scratch::new(name) }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.0.join(name)
    }

    pub fn disk(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        File::create(&path).unwrap().set_len(64 << 20).unwrap();
        path
    }

    pub fn attach(&mut self, file: &Path) -> Option<PathBuf> {
        let arguments: [&Path; 3] = ["--find".as_ref(), "--show".as_ref(), file];
        let device = PathBuf::from(run("losetup", &arguments)?);
        self.undo.later("losetup", &["-d".as_ref(), &device]);
        Some(device)
    }

    pub fn mounted(&mut self, device: &Path, at: &str) -> Option<PathBuf> {
        let point = self.path(at);
        fs::create_dir_all(&point).unwrap();
        run("mount", &[device, &point])?;
        self.undo.later("umount", &[&point]);
        Some(point)
    }

    /// Runs a script in a mount namespace of its own until it is dropped; it has said `ready`.
    fn elsewhere(&self, script: &str) -> Option<Elsewhere> {
        let script = format!("{script} && echo ready && exec sleep 600");
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-ec", &script])
            .current_dir(&self.scratch.0)
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        let elsewhere = Elsewhere(child);
        if line.trim() != "ready" {
            println!("skipped: {script}");
            return None;
        }
        Some(elsewhere)
    }
}

pub struct Elsewhere(pub Child);

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that runs a shell script and has said `ready`.
pub fn process(script: &str, arguments: &[&Path]) -> Elsewhere {
    let script = format!("{script}; echo ready; exec sleep 600");
    let mut child = Command::new("sh")
        .args(["-ec", &script, "sh"])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    assert_eq!(line.trim(), "ready");
    Elsewhere(child)
}

/// A process that runs a Python script and has said `ready`.
pub fn python(script: &str, arguments: &[&Path]) -> Option<Elsewhere> {
    let child =
        Command::new("python3").args(["-c", script]).args(arguments).stdout(Stdio::piped()).spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            println!("skipped: python3: {error}");
            return None;
        }
    };
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let child = Elsewhere(child);
    if line.trim() != "ready" {
        println!("skipped: {}", line.trim());
        return None;
    }
    Some(child)
}

#[test]
fn twins_of_a_mounted_device_are_that_device() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("twins");
    let disk = lab.disk("disk");
    let link = lab.path("link");
    fs::hard_link(&disk, &link).unwrap();
    let Some(first) = lab.attach(&disk) else { return };
    let Some(by_link) = lab.attach(&link) else { return };
    assert!(settled(&by_link).is_empty(), "nobody uses it: {:?}", settled(&by_link));
    let Some(stacked) = lab.attach(&first) else { return };
    assert!(is_held(&reasons(&by_link)), "a loop device is over the other");
    if run("mkfs.ext4", &["-q".as_ref(), &first]).is_none() {
        return;
    }
    let Some(_) = lab.mounted(&first, "mnt") else { return };
    assert!(is_held(&reasons(&by_link)), "by a hard link");
    assert!(is_held(&reasons(&stacked)), "by a loop device over it");
    // The names go, and with them what could be compared.
    fs::remove_file(&link).unwrap();
    assert!(is_held(&reasons(&by_link)), "its name is gone");
    fs::rename(&disk, lab.path("other")).unwrap();
    assert!(is_held(&reasons(&by_link)), "the other name has changed");
    let Some(renamed) = lab.attach(&lab.path("other")) else { return };
    assert!(is_held(&reasons(&renamed)), "by the new name");
    fs::remove_file(lab.path("other")).unwrap();
    assert!(is_held(&reasons(&by_link)) && is_held(&reasons(&renamed)), "no name is left");
}

#[test]
fn a_twin_mounted_in_another_namespace_is_mounted() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("namespace");
    let disk = lab.disk("disk");
    let link = lab.path("link");
    fs::hard_link(&disk, &link).unwrap();
    let Some(first) = lab.attach(&disk) else { return };
    let Some(twin) = lab.attach(&link) else { return };
    if run("mkfs.ext4", &["-q".as_ref(), &first]).is_none() {
        return;
    }
    fs::create_dir(lab.path("mnt")).unwrap();
    let Some(elsewhere) = lab.elsewhere(&format!("mount {} mnt", first.display())) else { return };
    assert!(is_held(&reasons(&twin)));
    assert!(is_held(&reasons(&first)));
    drop(elsewhere);
}

#[test]
fn a_writer_is_found_however_it_came_to_the_file() {
    let lab = Lab::new("writers");
    let fresh = |name: &str| lab.scratch.file(name, &[7; 4096]);
    let file = fresh("a");
    assert!(settled(&file).is_empty());

    let writer = process("exec 3>>\"$1\"; rm \"$1\"; : > \"$1\"", &[&fresh("gone")]);
    assert!(settled(&lab.path("gone")).is_empty(), "that is another file by now");
    drop(writer);

    let (one, two) = (fresh("one"), lab.path("two"));
    fs::hard_link(&one, &two).unwrap();
    let writer = process("exec 3>>\"$1\"; rm \"$1\"", &[&one]);
    assert!(is_used(&reasons(&two)), "opened by a link that is gone");
    drop(writer);

    let renamed = lab.path("renamed");
    let writer = process("exec 3>>\"$1\"; mv \"$1\" \"$2\"", &[&fresh("before"), &renamed]);
    assert!(is_used(&reasons(&renamed)), "opened by its old name");
    drop(writer);
}

#[test]
fn a_device_is_the_same_by_a_node_outside_of_dev() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("node");
    let disk = lab.disk("disk");
    let Some(device) = lab.attach(&disk) else { return };
    let node = lab.path("node");
    let number = fs::metadata(&device).unwrap().rdev();
    let made = rustix::fs::mknodat(
        CWD,
        &node,
        rustix::fs::FileType::BlockDevice,
        Mode::RUSR | Mode::WUSR,
        number,
    );
    if let Err(error) = made {
        return println!("skipped: mknod: {error}");
    }
    if OpenOptions::new().read(true).open(&node).is_err() {
        return println!("skipped: no devices on this file system");
    }
    assert!(settled(&device).is_empty());
    let writer = process("exec 3<>\"$1\"", &[&node]);
    assert!(is_used(&reasons(&device)), "open");
    drop(writer);
    let writer = process("exec 3>>\"$1\"", &[&disk]);
    assert!(is_used(&reasons(&device)), "the file under it is open");
    drop(writer);
}

#[test]
fn a_loop_device_over_one_partition_is_apart_from_what_is_beside_it() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("beside");
    let disk = lab.disk("disk");
    let Some(whole) = lab.attach(&disk) else { return };
    let script = "printf 'label: gpt\nstart=2048,size=40960\nstart=43008,size=40960\n' \
                  | sfdisk -q --no-reread --no-tell-kernel \"$0\" && partx -a \"$0\"";
    if run("sh", &["-c".as_ref(), script.as_ref(), &whole]).is_none() {
        return;
    }
    lab.undo.later("partx", &["-d".as_ref(), &whole]);
    let part = |number| PathBuf::from(format!("{}p{number}", whole.display()));
    if run("mkfs.ext4", &["-q".as_ref(), &part(2)]).is_none() {
        return;
    }
    let over = |offset: u64, size: u64| {
        let words = [
            "--find",
            "--show",
            &format!("--offset={}", offset * 512),
            &format!("--sizelimit={}", size * 512),
        ]
        .map(PathBuf::from);
        let words: Vec<&Path> = words.iter().map(PathBuf::as_path).chain([&*whole]).collect();
        run("losetup", &words).map(PathBuf::from)
    };
    let Some(_) = lab.mounted(&part(2), "mnt") else { return };
    let found = settled(&part(1));
    assert!(found.is_empty(), "a partition beside one that is mounted: {found:?}");
    let Some(first) = over(2048, 40960) else { return };
    lab.undo.later("losetup", &["-d".as_ref(), &first]);
    let found = settled(&first);
    assert!(found.is_empty(), "all of that partition: {found:?}");
    let Some(wider) = over(2048, 40968) else { return };
    lab.undo.later("losetup", &["-d".as_ref(), &wider]);
    let found = reasons(&wider);
    assert!(is_held(&found), "it reaches into the one that is mounted: {found:?}");
    let _writer = process("exec 3<>\"$1\"", &[&part(1)]);
    assert!(is_held(&reasons(&first)), "the partition is open for writing");
}
