//! Other names for the same bytes, other ways to use them, and views of the machine that lack
//! something: none of them may hide a use.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::common::Scratch;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
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
        matches!(reason, R::Mounted { .. } | R::Held { .. } | R::Swap { .. } | R::OpenWriter { .. })
    })
}

pub fn is_written(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| matches!(reason, RefusalReason::OpenWriter { .. }))
}

pub fn is_mapped(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| matches!(reason, RefusalReason::Mapped { .. }))
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

    /// Not again when the test ends: by then another test may have that loop device.
    pub fn detach(&mut self, device: &Path) {
        let name = device.display().to_string();
        self.undo.0.retain(|(tool, arguments)| tool != "losetup" || !arguments.contains(&name));
        run("losetup", &["-d".as_ref(), device]);
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

/// A process that maps a file and has said `ready`.
fn mapping(path: &Path, how: &str) -> Option<Elsewhere> {
    let script = format!(
        "import mmap,os,sys,time\nf=os.open(sys.argv[1],os.O_RDWR)\n\
         m=mmap.mmap(f,4096,mmap.{how})\nos.close(f)\nprint('ready',flush=True)\ntime.sleep(600)"
    );
    python(&script, &[path])
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
fn a_file_under_a_loop_device_of_another_namespace_is_that_devices() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("loop-elsewhere");
    fs::create_dir(lab.path("hidden")).unwrap();
    fs::create_dir(lab.path("seen")).unwrap();
    let disk = lab.disk("seen/disk");
    // The same file has another name there, which means nothing here.
    let script = "mount --bind seen hidden; losetup --find --show --read-only hidden/disk > device";
    let Some(elsewhere) = lab.elsewhere(script) else { return };
    let device = PathBuf::from(fs::read_to_string(lab.path("device")).unwrap().trim());
    lab.undo.later("losetup", &["-d".as_ref(), &device]);
    let found = reasons(&disk);
    assert!(
        found.iter().any(|reason| matches!(reason, RefusalReason::LoopFile { .. })),
        "{found:?}"
    );
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
    assert!(is_written(&reasons(&two)), "opened by a link that is gone");
    drop(writer);

    let renamed = lab.path("renamed");
    let writer = process("exec 3>>\"$1\"; mv \"$1\" \"$2\"", &[&fresh("before"), &renamed]);
    assert!(is_written(&reasons(&renamed)), "opened by its old name");
    drop(writer);
}

#[test]
fn a_file_made_without_a_name_is_its_makers() {
    let lab = Lab::new("unnamed");
    let script = "import ctypes,os,sys,time\nf=os.open(sys.argv[1],os.O_TMPFILE|os.O_RDWR)\n\
                  os.write(f,b'x'*4096)\nctypes.CDLL(None).linkat(-100,b'/proc/self/fd/%d'%f,-100,sys.argv[2].encode(),0x400)\n\
                  print('ready',flush=True)\ntime.sleep(600)";
    let named = lab.path("named");
    let child = Command::new("python3")
        .args(["-c", script])
        .arg(&lab.scratch.0)
        .arg(&named)
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { return println!("skipped: no python3") };
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    let _child = Elsewhere(child);
    if line.trim() != "ready" || !named.exists() {
        return println!("skipped: no files without names here");
    }
    assert!(is_written(&reasons(&named)));
}

#[test]
fn bind_mounts_hide_no_writer_and_no_map() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("bind");
    let file = lab.scratch.file("file", &[7; 8192]);
    let other = lab.scratch.file("other", b"");
    if run("mount", &["--bind".as_ref(), &file, &other]).is_none() {
        return;
    }
    lab.undo.later("umount", &[&other]);
    let writer = process("exec 3>>\"$1\"", &[&other]);
    assert!(is_written(&reasons(&file)));
    drop(writer);
    for how in ["MAP_SHARED", "MAP_PRIVATE"] {
        let Some(mapper) = mapping(&other, how) else { return };
        assert!(is_mapped(&reasons(&file)), "{how}");
        drop(mapper);
    }
    assert!(settled(&file).is_empty());
}

#[test]
fn an_overlay_and_the_file_under_it_are_one_file() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("overlay");
    // An upper directory must not be on an overlay itself.
    let base = lab.path("base");
    fs::create_dir(&base).unwrap();
    if run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), &base]).is_none() {
        return;
    }
    lab.undo.later("umount", &[&base]);
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    fs::create_dir(base.join("upper/d")).unwrap();
    fs::write(base.join("upper/d/file"), vec![7; 8192]).unwrap();
    let at = |name: &str| base.join(name).display().to_string();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", at("lower"), at("upper"), at("work"));
    let merged = base.join("merged");
    let words: [&Path; 6] = [
        "-t".as_ref(),
        "overlay".as_ref(),
        "none".as_ref(),
        "-o".as_ref(),
        options.as_ref(),
        &merged,
    ];
    if run("mount", &words).is_none() {
        return;
    }
    lab.undo.later("umount", &[&merged]);
    let (above, below) = (merged.join("d/file"), base.join("upper/d/file"));
    assert_ne!(
        fs::metadata(&above).unwrap().dev(),
        fs::metadata(&below).unwrap().dev(),
        "else there is nothing to test"
    );
    let writer = process("exec 3>>\"$1\"", &[&above]);
    assert!(is_written(&reasons(&below)), "the upper file");
    drop(writer);
    let writer = process("exec 3>>\"$1\"", &[&below]);
    assert!(is_written(&reasons(&above)), "the file that the overlay shows");
    drop(writer);
    let Some(mapper) = mapping(&above, "MAP_SHARED") else { return };
    assert!(is_mapped(&reasons(&below)), "mapped through the overlay");
    drop(mapper);
    // A loop device over what the overlay shows has the file below.
    if lab.attach(&above).is_some() {
        let found = reasons(&below);
        assert!(found.iter().any(|r| matches!(r, RefusalReason::LoopFile { .. })), "{found:?}");
    }
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
    assert!(is_written(&reasons(&device)), "open");
    drop(writer);
    let Some(mapper) = mapping(&node, "MAP_SHARED") else { return };
    assert!(is_mapped(&reasons(&device)), "mapped");
    drop(mapper);
    let writer = process("exec 3>>\"$1\"", &[&disk]);
    assert!(is_written(&reasons(&device)), "the file under it is open");
    drop(writer);
}

#[test]
fn a_writer_that_no_process_shows_is_found() {
    let lab = Lab::new("hidden");
    let file = lab.scratch.file("file", &[7; 4096]);
    // An open file that is in no process's table: under way between two sockets.
    let script = "import os,socket,sys,time,array\n\
                  a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_STREAM)\n\
                  f=os.open(sys.argv[1],os.O_RDWR)\n\
                  a.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[f]))])\n\
                  os.close(f)\nprint('ready',flush=True)\ntime.sleep(600)";
    let child =
        Command::new("python3").args(["-c", script]).arg(&file).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return println!("skipped: no python3") };
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    assert_eq!(line.trim(), "ready");
    let child = Elsewhere(child);
    let opened = rustix::fs::open(&file, OFlags::RDONLY, Mode::empty()).unwrap();
    assert!(rustix::fs::statat(CWD, &file, AtFlags::empty()).is_ok());
    let has_leases = kernel_has_leases(&lab);
    drop(opened);
    if has_leases {
        assert!(is_written(&reasons(&file)));
        drop(child);
        assert!(settled(&file).is_empty());
    }
}

/// Network and FUSE file systems have none.
fn kernel_has_leases(lab: &Lab) -> bool {
    let file = lab.scratch.file("lease", b"x");
    let has = kernel::has_writer(&File::open(file).unwrap()).is_ok();
    if !has {
        println!("skipped: no leases on this file system");
    }
    has
}

#[test]
fn our_own_open_file_is_no_others() {
    let lab = Lab::new("own");
    let file = lab.scratch.file("file", &[7; 4096]);
    let _held = OpenOptions::new().write(true).open(&file).unwrap();
    assert!(settled(&file).is_empty());
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
