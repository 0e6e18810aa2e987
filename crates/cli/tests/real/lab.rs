//! A directory, loop devices and mounts for one test; all gone with it, also after a panic.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

pub const PLIMSOLL: &str = env!("CARGO_BIN_EXE_plimsoll");
/// A suite that makes files in a directory of its own, and looks at them until it is ended.
pub const FILES: &str = r#"
schema = 1
name = "files"
title = "files made and looked at"
file_size = "64KiB"
fill = false
method = "classic"

[defaults]
directory = { files = 500 }

[[phase]]
name = "make"
operation = "create"

[[phase]]
name = "look"
operation = "stat"
time = "1h"
"#;

/// Nothing here takes so long, however busy the machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a test undoes, last made first.
#[derive(Debug)]
enum Undo {
    Loop(String),
    Mount(PathBuf),
    Swap(PathBuf),
}

#[derive(Debug)]
pub struct Lab {
    pub dir: PathBuf,
    undo: Vec<Undo>,
    /// Of loop devices.
    numbers: Vec<u32>,
    /// Kept from its first device to its end.
    turn: Option<Arc<File>>,
}

/// Numbers of loop devices that tests which are under way have.
static NUMBERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());
/// `losetup --find` takes lower ones.
const FIRST: u32 = 64;

thread_local! {
    static TURN: RefCell<Weak<File>> = const { RefCell::new(Weak::new()) };
}

/// Tests with devices take turns, those of other programs too: whoever looks at all devices keeps each open
/// for a moment, and what is open then is not detached, claimed or formatted.
fn turn() -> Arc<File> {
    TURN.with_borrow_mut(|kept| {
        // A test may have two labs.
        kept.upgrade().unwrap_or_else(|| {
            let path = std::env::temp_dir().join("plimsoll-tests-with-devices.lock");
            let file = Arc::new(File::create(path).unwrap());
            file.lock().unwrap();
            *kept = Arc::downgrade(&file);
            file
        })
    })
}

fn number_of_its_own(own: &mut Vec<u32>) -> String {
    let mut taken = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_free = |number: &u32| {
        let in_use = Path::new(&format!("/sys/block/loop{number}/loop/backing_file")).exists();
        !taken.contains(number) && !in_use
    };
    let number = (FIRST..).find(is_free).unwrap();
    taken.insert(number);
    own.push(number);
    format!("/dev/loop{number}")
}

/// Gives up the test unless this is root and the tools are there.
macro_rules! needs_root {
    ($($tool:literal),*) => {
        if let Some(why) = crate::lab::lacking(&[$($tool),*]) {
            eprintln!("skipped: {why}");
            return;
        }
    };
}
pub(crate) use needs_root;

pub fn lacking(tools: &[&str]) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("needs root".to_owned());
    }
    let found = |tool: &&&str| {
        let places =
            ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];
        places.iter().any(|place| Path::new(place).join(tool).exists())
    };
    let missing = tools.iter().find(|tool| !found(tool));
    missing.map(|tool| format!("needs {tool}")).or_else(|| {
        let loops = tools.contains(&"losetup") && !Path::new("/dev/loop-control").exists();
        loops.then(|| "needs loop devices".to_owned())
    })
}

impl Lab {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("real-{name}-{}-{count}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&dir).unwrap();
        Self { dir, undo: Vec::new(), numbers: Vec::new(), turn: None }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A sparse file.
    pub fn sparse(&self, name: &str, mib: u64) -> PathBuf {
        let path = self.path(name);
        File::create(&path).unwrap().set_len(mib << 20).unwrap();
        path
    }

    /// A loop device over a file. Its number is this lab's until the end of its test: one that is detached and
    /// attached again, or that a program of another test looks for, is met by nobody.
    pub fn attach(&mut self, file: &Path, options: &[&str]) -> String {
        self.turn.get_or_insert_with(turn);
        let file = file.to_str().unwrap();
        for _ in 0..20 {
            let device = number_of_its_own(&mut self.numbers);
            let words = [options, &[&device, file]].concat();
            if quietly("losetup", &words) {
                self.undo.push(Undo::Loop(device.clone()));
                return device;
            }
        }
        let words = [options, &["-f", "--show", file]].concat();
        let device = tool("losetup", &words).trim().to_owned();
        assert!(device.starts_with("/dev/loop"), "{device}");
        self.undo.push(Undo::Loop(device.clone()));
        device
    }

    pub fn detach(&mut self, device: &str) {
        self.undo.retain(|undo| !matches!(undo, Undo::Loop(d) if d == device));
        tool("losetup", &["-d", device]);
    }

    /// A file system of its own: the loop device and where it is mounted.
    pub fn ext4(&mut self, options: &str) -> (String, PathBuf) {
        let image = self.sparse("fs.img", 3 << 10);
        let device = self.attach(&image, &[]);
        tool("mkfs.ext4", &["-q", &device]);
        let point = self.mount(&["-o", options, &device], "m");
        (device, point)
    }

    pub fn mount(&mut self, words: &[&str], name: &str) -> PathBuf {
        let point = self.path(name);
        fs::create_dir_all(&point).unwrap();
        let mut all = words.to_vec();
        all.push(point.to_str().unwrap());
        tool("mount", &all);
        self.undo.push(Undo::Mount(point.clone()));
        point
    }

    /// Unmounts what [`Self::mount`] or [`Self::mounted`] named.
    pub fn unmount(&mut self, name: &str, options: &[&str]) {
        let point = self.path(name);
        tool("umount", &[options, &[point.to_str().unwrap()]].concat());
        self.unmounted(name);
    }

    /// Something that was unmounted by whom a test has started.
    pub fn unmounted(&mut self, name: &str) {
        let point = self.path(name);
        self.undo.retain(|undo| !matches!(undo, Undo::Mount(path) if *path == point));
    }

    /// Something that a test mounted itself.
    pub fn mounted(&mut self, name: &str) {
        self.undo.push(Undo::Mount(self.path(name)));
    }

    pub fn swap_on(&mut self, what: &Path) {
        tool("swapon", &[what.to_str().unwrap()]);
        self.undo.push(Undo::Swap(what.to_owned()));
    }

    pub fn swap_off(&mut self, what: &Path) {
        self.undo.retain(|undo| !matches!(undo, Undo::Swap(path) if path == what));
        tool("swapoff", &[what.to_str().unwrap()]);
    }

    /// The words of a command, apart by blanks, with this lab's directory and store.
    ///
    /// A run is one in the suite's own order, whose visits can be counted, unless the words say
    /// how its rounds end.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(PLIMSOLL);
        command.args(words.split_whitespace());
        if !words.contains("--store") {
            command.args(["--store", "store.db"]);
        }
        let rounds = ["--precision", "--max-time", "--classic", "--help"];
        if words.starts_with("run ") && !rounds.iter().any(|word| words.contains(word)) {
            command.arg("--classic");
        }
        command.current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    pub fn run(&self, words: &str) -> Said {
        self.start(words).end()
    }

    /// As [`Self::run`]; it must end well.
    pub fn ok(&self, words: &str) -> Said {
        let said = self.run(words);
        assert_eq!(said.code, Some(0), "{words}\n{said}");
        said
    }

    pub fn start(&self, words: &str) -> Running {
        Running::start(self.command(words), &self.dir)
    }

    /// A stored run as JSON, held against the schema.
    pub fn export(&self, run: &str) -> Value {
        let said = self.ok(&format!("export {run} --format json"));
        let document = serde_json::from_str(&said.out).unwrap();
        crate::schema::check(&document);
        document
    }

    pub fn list(&self) -> Vec<Value> {
        let said = self.ok("list --json");
        let list: Value = serde_json::from_str(&said.out).unwrap();
        list["runs"].as_array().unwrap().clone()
    }

    /// Every file below the directory, with a hash of its content; the store is left out.
    pub fn everything(&self) -> BTreeMap<PathBuf, u64> {
        let mut found = BTreeMap::new();
        let mut directories = vec![self.dir.clone()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let path = entry.path();
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type().unwrap().is_dir() {
                    directories.push(path);
                } else if !name.starts_with("store.db") && !name.starts_with("said-") {
                    // Behind a link to a directory is nothing that is not found anyway.
                    let content = if path.is_dir() { 0 } else { hash(&path) };
                    found.insert(path.clone(), content);
                }
            }
        }
        found
    }
}

pub fn hash(path: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&fs::read(path).unwrap());
    hasher.finish()
}

impl Drop for Lab {
    fn drop(&mut self) {
        for undo in self.undo.drain(..).rev() {
            // Frozen or still held by a program that is being killed: tried again for a while.
            for _ in 0..50 {
                let done = match &undo {
                    Undo::Loop(device) => quietly("losetup", &["-d", device]),
                    Undo::Mount(point) => {
                        let _ = quietly("fsfreeze", &["-u", point.to_str().unwrap_or_default()]);
                        quietly("umount", &[point.to_str().unwrap_or_default()])
                    }
                    Undo::Swap(what) => quietly("swapoff", &[what.to_str().unwrap_or_default()]),
                };
                if done {
                    break;
                }
                sleep(Duration::from_millis(100));
            }
        }
        let _ = fs::remove_dir_all(&self.dir);
        let mut taken = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|number| !self.numbers.contains(number));
    }
}

/// Runs a tool that must work; its standard output.
pub fn tool(name: &str, words: &[&str]) -> String {
    let said = Command::new(name).args(words).stdin(Stdio::null()).output().unwrap();
    assert!(said.status.success(), "{name} {words:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap()
}

pub fn quietly(name: &str, words: &[&str]) -> bool {
    let said = Command::new(name).args(words).stdin(Stdio::null()).output();
    said.is_ok_and(|said| said.status.success())
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{:?}]\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}

impl Said {
    /// Ended with that code, saying all of these on stderr.
    #[track_caller]
    pub fn is(&self, code: i32, parts: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self}");
        for part in parts {
            assert!(self.err.contains(part), "`{part}` is not said: {self}");
        }
        assert!(!self.err.contains("panicked"), "{self}");
        self
    }

    pub fn document(&self) -> Value {
        let document = serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self}"));
        crate::schema::check(&document);
        document
    }
}

/// A program under way.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
    out: PathBuf,
    err: PathBuf,
}

impl Running {
    pub fn start(mut command: Command, dir: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let out = dir.join(format!("said-{count}.out"));
        let err = dir.join(format!("said-{count}.err"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        Self { child: Some(command.spawn().unwrap()), out, err }
    }

    pub fn out(&self) -> String {
        String::from_utf8(fs::read(&self.out).unwrap()).unwrap()
    }

    pub fn err(&self) -> String {
        String::from_utf8(fs::read(&self.err).unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        let id = self.child.as_ref().unwrap().id();
        let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until it has said that on stderr.
    pub fn until_it_says(&mut self, part: &str) {
        self.until(part, |running| running.err().contains(part));
    }

    pub fn until(&mut self, what: &str, mut holds: impl FnMut(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            let late = begun.elapsed() > PATIENCE;
            if ended.is_some() && !holds(self) || late {
                let (out, err) = (self.out(), self.err());
                panic!("waited in vain for {what} ({ended:?})\n{out}\n{err}");
            }
            sleep(Duration::from_millis(5));
        }
    }

    pub fn end(mut self) -> Said {
        let begun = Instant::now();
        let mut child = self.child.take().unwrap();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                self.child = Some(child);
                panic!("did not end\n{}\n{}", self.out(), self.err());
            }
            sleep(Duration::from_millis(5));
        };
        Said { code: status.code(), out: self.out(), err: self.err() }
    }

    pub fn kill(self) -> Said {
        self.signal(Signal::KILL);
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Not waited for: it may be stuck until the lab is cleared.
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
    }
}

/// A file next to the target that nobody may touch.
#[derive(Debug)]
pub struct Neighbour {
    path: PathBuf,
    before: u64,
}

impl Neighbour {
    pub fn new(directory: &Path) -> Self {
        let path = directory.join("neighbour.db");
        let content: Vec<u8> =
            (0..1u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(&path, content).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let before = hash(&path);
        Self { path, before }
    }

    pub fn untouched(&self) {
        assert_eq!(hash(&self.path), self.before, "{} was touched", self.path.display());
    }
}

/// All visits of a run, each with its cell's phase in front.
pub fn visits(document: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for cell in document["cells"].as_array().unwrap() {
        for visit in cell["visits"].as_array().unwrap() {
            found.push((cell["phase"].as_str().unwrap().to_owned(), visit.clone()));
        }
    }
    found.sort_by_key(|(_, visit)| visit["started_unix_ns"].as_i64());
    found
}

/// Visits of the suite's own phases: without fill.
pub fn measured(document: &Value) -> Vec<Value> {
    let all = visits(document).into_iter();
    all.filter(|(phase, _)| phase != "fill").map(|(_, visit)| visit).collect()
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// How visits ended.
pub fn ends(document: &Value) -> Vec<String> {
    measured(document).iter().map(|visit| text(&visit["end"])).collect()
}
