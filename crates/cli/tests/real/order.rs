//! In which order a run judges a target and opens it for writing, as the kernel sees it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::lab::{Lab, Running, Said, needs_root, tool};

const WRITE: &str = "run random-write --time 50ms --size 1MiB --target";
/// `?`: a call that not every processor has.
const CALLS: &str = "trace=?open,openat,?openat2,fcntl,ioctl,flock,?unlink,unlinkat,?rename,\
                     ?renameat,renameat2,?setxattr,?lsetxattr,fsetxattr,?truncate,ftruncate,\
                     fallocate,?pwrite64,write,?io_uring_setup";

/// One call of the program: its name, and the line that says all of it.
struct Call {
    name: String,
    line: String,
}

impl Call {
    fn opens_for_writing(&self, target: &str) -> bool {
        let writes = ["O_WRONLY", "O_RDWR", "O_TRUNC", "O_CREAT"];
        self.name.starts_with("open")
            && self.is_of(target)
            && writes.iter().any(|flag| self.line.contains(flag))
    }

    /// What `-y` adds to a descriptor is `<path>`, what is given as a path is in quotes.
    fn is_of(&self, target: &str) -> bool {
        [format!("<{target}>"), format!("\"{target}\"")].iter().any(|name| self.line.contains(name))
    }

    /// Changes the target or its name.
    fn changes(&self, target: &str) -> bool {
        let changing = ["unlink", "rename", "truncate", "fallocate", "pwrite", "write"];
        let attribute = self.name.ends_with("setxattr") || self.name.ends_with("ftruncate");
        let changes = attribute || changing.iter().any(|name| self.name.starts_with(name));
        changes && self.is_of(target)
    }

    /// A lease that only a file gets that nobody else has open, asked for before it is open for
    /// writing; or the descriptors of another process.
    fn judges(&self) -> bool {
        let lease = self.line.contains("F_SETLEASE, F_WRLCK");
        lease || self.name.starts_with("open") && is_of_another_process(&self.line)
    }
}

fn is_of_another_process(line: &str) -> bool {
    let number = line.split("\"/proc/").nth(1).and_then(|rest| rest.split('/').next());
    let other = number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    other && line.contains("/fd\"")
}

/// Runs it under `strace`. Calls that another thread's cut in two are put together where they
/// ended.
fn traced(lab: &Lab, words: &str) -> (Said, Vec<Call>) {
    let plain = lab.command(words);
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "4096", "-o", "said-trace", "-e", CALLS]);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(&lab.dir);
    let said = Running::start(command, &lab.dir).end();
    let mut begun = std::collections::BTreeMap::new();
    let mut calls = Vec::new();
    let trace = fs::read(lab.path("said-trace")).unwrap();
    for line in String::from_utf8_lossy(&trace).lines() {
        let Some((thread, call)) = line.split_once(char::is_whitespace) else { continue };
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread.to_owned(), first.to_owned());
            continue;
        }
        let resumed = call.split_once("resumed>").map(|(_, rest)| rest);
        let line = match resumed {
            Some(rest) => begun.remove(thread).unwrap_or_default() + rest,
            None => call.to_owned(),
        };
        let name = line.split('(').next().unwrap_or_default().to_owned();
        calls.push(Call { name, line });
    }
    assert!(calls.len() > 20, "nothing was traced: {said}");
    (said, calls)
}

/// Its name as the kernel says it.
fn real(path: &Path) -> String {
    fs::canonicalize(path).unwrap().to_str().unwrap().to_owned()
}

#[track_caller]
fn refused_unopened(lab: &Lab, words: &str, target: &Path) {
    let target = real(target);
    let (said, calls) = traced(lab, &format!("{WRITE} {words}"));
    said.is(3, &[]);
    for call in calls {
        let touches = call.opens_for_writing(&target) || call.changes(&target);
        assert!(!touches, "{words} is refused, and yet: {}\n{said}", call.line);
    }
}

/// The first open for writing comes after the last look at who uses it.
#[track_caller]
fn judged_first(lab: &Lab, words: &str, target: &Path) {
    let target = real(target);
    let (said, calls) = traced(lab, &format!("{WRITE} {words}"));
    assert_eq!(said.code, Some(0), "{said}");
    let opened = calls.iter().position(|call| call.opens_for_writing(&target));
    let opened = opened.unwrap_or_else(|| panic!("{words}: never opened for writing\n{said}"));
    let judged = calls[..opened].iter().filter(|call| call.judges()).count();
    assert!(judged > 1, "{words}: nobody looked twice who uses it\n{said}");
    // The kernel is asked once more of the file that is open, before it is changed.
    let late = |call: &&Call| call.judges() && !call.line.contains("F_SETLEASE");
    let late = calls[opened..].iter().find(late);
    assert!(late.is_none(), "{}\ncomes before a look", calls[opened].line);
    let changed = calls.iter().position(|call| call.changes(&target)).unwrap_or(calls.len());
    assert!(opened < changed, "{}", calls[changed].line);
}

#[test]
fn a_file_is_opened_for_writing_after_the_last_check() {
    needs_root!("strace");
    let lab = Lab::new("order-file");
    fs::write(lab.path("payroll.db"), vec![7; 2 << 20]).unwrap();
    judged_first(&lab, "payroll.db --overwrite payroll.db", &lab.path("payroll.db"));
    lab.ok(&format!("{WRITE} ours"));
    judged_first(&lab, "ours", &lab.path("ours"));
    symlink("ours", lab.path("link")).unwrap();
    judged_first(&lab, "link", &lab.path("ours"));
}

#[test]
fn a_device_is_opened_for_writing_after_the_last_check() {
    needs_root!("strace", "losetup");
    let mut lab = Lab::new("order-device");
    let image = lab.sparse("image", 16);
    let device = lab.attach(&image, &[]);
    judged_first(&lab, &format!("{device} --destroy {device}"), Path::new(&device));
}

#[test]
fn what_is_refused_is_never_opened_for_writing() {
    needs_root!("strace", "losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("order-refused");
    let foreign = lab.path("payroll.db");
    fs::write(&foreign, vec![7; 2 << 20]).unwrap();
    refused_unopened(&lab, "payroll.db", &foreign);
    refused_unopened(&lab, "payroll.db --overwrite other.db", &foreign);
    let writer = fs::OpenOptions::new().write(true).open(&foreign).unwrap();
    refused_unopened(&lab, "payroll.db --overwrite payroll.db", &foreign);
    drop(writer);
    let link = lab.path("second");
    fs::hard_link(&foreign, &link).unwrap();
    refused_unopened(&lab, "payroll.db --overwrite payroll.db", &foreign);
    fs::remove_file(&link).unwrap();

    // Mounted, the file under it, and another loop device over that file.
    let image = lab.sparse("fs.img", 64);
    let device = lab.attach(&image, &[]);
    refused_unopened(&lab, "fs.img --overwrite fs.img", &image);
    tool("mkfs.ext4", &["-q", &device]);
    refused_unopened(&lab, &device, Path::new(&device));
    lab.mount(&[&device], "m");
    let named = format!("{device} --destroy {device} --even-though signature");
    refused_unopened(&lab, &named, Path::new(&device));
    let twin = lab.attach(&image, &[]);
    let named = format!("{twin} --destroy {twin} --even-though signature");
    refused_unopened(&lab, &named, Path::new(&twin));
}
