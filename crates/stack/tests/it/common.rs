//! Captured machines for the tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use stack::{DeviceNumber, FileId, Host, PathFacts, PathKind, Space, Target};
use units::Bytes;

/// A directory that goes away with it, also when the test panics.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plimsoll-{name}-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(fs::canonicalize(path).unwrap())
    }

    pub fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A captured machine, unpacked from `tests/data/NAME.tree`.
///
/// Lines are `PATH = TEXT`, `PATH/`, `PATH -> LINK`, `PATH <<` up to `>>`, and `block PLACE MAJ:MIN
/// SECTORS`, which makes the directory of a device below `/sys/devices` with its `dev` and
/// `size` and the two links to it.
pub struct Machine {
    pub host: Host,
    root: Scratch,
}

impl Machine {
    pub fn unpack(name: &str) -> Self {
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../stack/tests/data");
        let text = Path::new(data).join(format!("{name}.tree"));
        let text = fs::read_to_string(text).unwrap();
        let root = Scratch::new(name);
        let machine = Self { host: Host::captured(&root.0), root };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            } else if let Some(device) = line.strip_prefix("block ") {
                machine.block(device);
            } else if let Some(path) = line.strip_suffix(" <<") {
                let body: Vec<&str> = lines.by_ref().take_while(|l| *l != ">>").collect();
                machine.write(path, &body.join("\n"));
            } else if let Some(path) = line.strip_suffix('/').filter(|path| !path.contains(" = ")) {
                fs::create_dir_all(machine.at(path)).unwrap();
            } else if let Some((path, to)) = line.split_once(" -> ") {
                machine.link(path, to);
            } else {
                let (path, text) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
                machine.write(path, text);
            }
        }
        machine
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.root.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), format!("{text}\n")).unwrap();
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).unwrap();
    }

    pub fn link(&self, path: &str, to: &str) {
        symlink(to, self.at(path)).unwrap();
    }

    fn block(&self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [place, number, sectors] = words[..] else { panic!("{line}") };
        self.write(&format!("/sys/devices/{place}/dev"), number);
        self.write(&format!("/sys/devices/{place}/size"), sectors);
        let name = place.rsplit('/').next().unwrap();
        let to = format!("../../devices/{place}");
        self.link(&format!("/sys/class/block/{name}"), &to);
        self.link(&format!("/sys/dev/block/{number}"), &to);
    }

    /// What would be seen at a path of that machine.
    pub fn target(&self, path: &str, kind: PathKind) -> Target {
        let facts = PathFacts {
            given: path.into(),
            resolved: path.into(),
            kind,
            size: Bytes::mib(1),
            mount_id: None,
            space: Some(Space { free: Bytes::gib(500), total: Bytes::gib(1000) }),
            compressed: Some(false),
            no_cow: Some(false),
            held: stack::Held::default(),
        };
        Target::from_facts(&self.host, facts)
    }

    pub fn file(&self, path: &str) -> Target {
        let id = FileId { device: DeviceNumber::default(), inode: 17 };
        self.target(path, PathKind::File { id, links: 1, allocated: Bytes::mib(1) })
    }

    pub fn device(&self, path: &str, number: &str) -> Target {
        self.target(path, PathKind::BlockDevice { number: number.parse().unwrap() })
    }
}
