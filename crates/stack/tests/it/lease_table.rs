//! Rule 8: the kernel's answer to who asks for a write lease, in every way to use a file that was
//! ever a way round the guards.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use stack::Lease;

use crate::same_bytes::{Elsewhere, Lab, is_root, process, python, run};

/// What a run would be told of the file, asked as it asks.
fn asked(path: &Path) -> Lease {
    stack::lease(&File::open(path).unwrap())
}

/// Used by somebody, and by nobody once what `_user` is has gone.
#[track_caller]
fn refused<T>(what: &str, path: &Path, user: T) {
    assert_eq!(asked(path), Lease::Taken, "{what}");
    drop(user);
    // A process ends, and a loop device goes, a moment later.
    assert_eq!(asked(path), Lease::Free, "{what}: nobody any more");
}

fn map(path: &Path, how: &str) -> Option<Elsewhere> {
    let script = format!(
        "import mmap,os,sys,time\nf=os.open(sys.argv[1],os.O_RDWR)\n\
         m=mmap.mmap(f,4096,mmap.{how})\nos.close(f)\nprint('ready',flush=True)\ntime.sleep(600)"
    );
    python(&script, &[path])
}

/// A process in namespaces of its own that has `file` open for writing.
fn apart(lab: &Lab, flags: &[&str], script: &str) -> Option<Elsewhere> {
    let mut command = Command::new("unshare");
    command.args(flags).args(["sh", "-ec", &format!("{script}; echo ready; exec sleep 600")]);
    let child = command.current_dir(&lab.scratch.0).stdout(Stdio::piped()).spawn().ok()?;
    let mut child = Elsewhere(child);
    let mut said = [0; 5];
    let ready = std::io::Read::read_exact(child.0.stdout.as_mut()?, &mut said);
    if ready.is_err() {
        println!("skipped: unshare {flags:?}");
        return None;
    }
    Some(child)
}

#[test]
fn every_use_of_a_file_is_known_to_the_kernel() {
    let lab = Lab::new("lease-table");
    let file = lab.scratch.file("file", &[7; 8192]);
    if asked(&file) == Lease::Unknown {
        return println!("skipped: no leases on this file system");
    }
    assert_eq!(asked(&file), Lease::Free, "nobody");
    let held = rustix::fs::open(&file, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
    assert_eq!(asked(&file), Lease::Free, "held without being opened");
    drop(held);
    refused("a reader", &file, File::open(&file).unwrap());
    refused("a writer", &file, OpenOptions::new().write(true).open(&file).unwrap());
    refused("a reader elsewhere", &file, process("exec 3<\"$1\"", &[&file]));
    let link = lab.path("link");
    fs::hard_link(&file, &link).unwrap();
    refused("a writer by a hard link", &file, process("exec 3>>\"$1\"", &[&link]));
    for how in ["MAP_SHARED", "MAP_PRIVATE"] {
        let Some(mapper) = map(&file, how) else { break };
        refused(how, &file, mapper);
    }
    let program = lab.path("program");
    fs::copy("/bin/sleep", &program).unwrap();
    let running = Command::new(&program).arg("600").spawn().map(Elsewhere).unwrap();
    refused("a running program", &program, running);
}

#[test]
fn the_kernel_and_other_namespaces_are_users_too() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("lease-kernel");
    let file = lab.disk("file");
    fs::create_dir(lab.path("b")).unwrap();
    let bound = "mount --bind . b && exec 3<>b/file";
    if let Some(writer) = apart(&lab, &["--mount", "--propagation", "private"], bound) {
        refused("a bind mount of another mount namespace", &file, writer);
    }
    if let Some(writer) = apart(&lab, &["--pid", "--fork", "--kill-child"], "exec 3<>file") {
        refused("another PID namespace", &file, writer);
    }
    for words in [&["--find", "--show"][..], &["--find", "--show", "--read-only"]] {
        let mut words: Vec<&Path> = words.iter().map(Path::new).collect();
        words.push(&file);
        let Some(device) = run("losetup", &words).map(PathBuf::from) else { return };
        assert_eq!(asked(&file), Lease::Taken, "{words:?}");
        run("losetup", &["-d".as_ref(), &device]);
        assert_eq!(asked(&file), Lease::Free, "the loop device is gone");
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&file, vec![0; 8 << 20]).unwrap();
    if run("mkswap", &[&file]).and_then(|_| run("swapon", &[&file])).is_some() {
        let swap = asked(&file);
        run("swapoff", &[&file]);
        assert_eq!(swap, Lease::Taken, "swap");
    }
    let Some(device) = lab.attach(&file) else { return };
    if run("mkfs.ext4", &["-q".as_ref(), &device]).and_then(|_| lab.mounted(&device, "m")).is_some()
    {
        assert_eq!(asked(&file), Lease::Taken, "a mounted image");
    }
}

/// What an overlay's opener has open is the file in the upper or lower directory.
#[test]
fn an_overlay_s_user_is_one_of_the_file_below() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("lease-overlay");
    let base = lab.path("base");
    fs::create_dir(&base).unwrap();
    if run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), &base]).is_none() {
        return;
    }
    lab.undo.later("umount", &[&base]);
    for name in ["l", "u", "w", "m"] {
        fs::create_dir(base.join(name)).unwrap();
    }
    fs::write(base.join("l/lower"), [7; 8192]).unwrap();
    fs::write(base.join("u/upper"), [7; 8192]).unwrap();
    let at = |name: &str| base.join(name).display().to_string();
    let options = format!("lowerdir={},upperdir={},workdir={}", at("l"), at("u"), at("w"));
    let (merged, options) = (base.join("m"), PathBuf::from(options));
    let words = ["-t", "overlay", "none", "-o"].map(Path::new);
    if run("mount", &[&words[..], &[&options, &merged]].concat()).is_none() {
        return;
    }
    lab.undo.later("umount", &[&merged]);
    let (shown, upper) = (merged.join("upper"), base.join("u/upper"));
    assert_eq!((asked(&shown), asked(&upper)), (Lease::Free, Lease::Free), "nobody");
    refused("through the overlay", &upper, process("exec 3>>\"$1\"", &[&shown]));
    refused("its own name", &shown, process("exec 3>>\"$1\"", &[&shown]));
    let lower = base.join("l/lower");
    refused("a lower file", &lower, process("exec 3<\"$1\"", &[&merged.join("lower")]));
    if let Some(mapper) = map(&shown, "MAP_SHARED") {
        refused("mapped through the overlay", &upper, mapper);
    }
}

/// Who has a lease is not waited for, and the file is in use.
#[test]
fn a_lease_of_another_process_is_a_use() {
    let lab = Lab::new("lease-foreign");
    let file = lab.scratch.file("file", &[7; 8192]);
    // One that expects the signal by which the kernel asks for it.
    let script = "import fcntl,os,signal,sys,time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n\
                  f=os.open(sys.argv[1],os.O_RDWR)\n\
                  fcntl.fcntl(f,fcntl.F_SETLEASE,fcntl.F_WRLCK)\n\
                  print('ready',flush=True)\ntime.sleep(600)";
    let Some(holder) = python(script, &[&file]) else { return };
    let found = crate::same_bytes::reasons(&file);
    assert!(crate::same_bytes::is_used(&found), "{found:?}");
    let error = stack::open_regular(&file).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy, "{error}");
    drop(holder);
    assert!(crate::same_bytes::reasons(&file).is_empty());
}
