use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use units::Bytes;

/// Longer files are cut: `/proc/PID/maps` of a large process has some MiB, attributes some bytes.
const FILE_MAX: u64 = 64 << 20;
/// Longer attributes are none.
const LINE_MAX: u64 = 64 << 10;
/// More names in a directory are not looked at.
const NAMES_MAX: usize = 1 << 16;
/// Where a captured tree keeps what was asked of programs and devices.
const ANSWERS: &str = "/answers";

/// One look at the machine, for a capture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Look {
    /// A file was read, or whether it is there.
    At(PathBuf),
    /// A directory was listed.
    List(PathBuf),
    /// A symbolic link was read.
    Link(PathBuf),
    /// A program or a device was asked: name of the question, and the answer.
    Answer(String, String),
}

type Looks = Arc<Mutex<Vec<Look>>>;

/// The machine as its kernel tells it: everything read from `/proc`, `/sys` and `/etc` goes
/// through a root, so that captured trees stand for machines that are not here.
#[derive(Clone, Debug)]
pub struct Host {
    root: PathBuf,
    /// What was looked at, where somebody wants to know.
    looks: Option<Looks>,
}

impl Default for Host {
    fn default() -> Self {
        Self::this()
    }
}

impl Host {
    /// The machine that this runs on.
    pub fn this() -> Self {
        Self { root: PathBuf::from("/"), looks: None }
    }

    /// A captured tree.
    pub fn captured(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), looks: None }
    }

    /// This machine, with every look written down.
    pub(crate) fn watched() -> Self {
        Self { looks: Some(Looks::default()), ..Self::this() }
    }

    /// What was looked at so far, in order.
    pub(crate) fn looks(&self) -> Vec<Look> {
        let looks = self.looks.as_ref().and_then(|looks| looks.lock().ok().map(|l| l.clone()));
        looks.unwrap_or_default()
    }

    fn note(&self, look: impl FnOnce() -> Look) {
        if let Some(mut looks) = self.looks.as_ref().and_then(|looks| looks.lock().ok()) {
            looks.push(look());
        }
    }

    /// Whether it is the machine that this runs on.
    pub fn is_this(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where an absolute path of the host lies for us.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The text of a file. `/proc` and `/sys` may hold bytes that are not UTF-8 (mount points
    /// are named by users); those become replacement characters.
    pub(crate) fn text(&self, path: impl AsRef<Path>) -> io::Result<String> {
        self.bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of a file, the first 64 MiB.
    pub(crate) fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        self.read(path.as_ref(), FILE_MAX)
    }

    /// Never waits: what is no regular file (a pipe in a captured tree) is refused after an open
    /// that does not block.
    fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        self.note(|| Look::At(path.to_owned()));
        let file = self.open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if !self.is_this() {
            // Links of a captured tree lead nowhere outside of it.
            let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let root = rustix::fs::openat(CWD, &self.root, directory, Mode::empty())?;
            let inside = path.strip_prefix("/").unwrap_or(path);
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(&root, inside, flags, Mode::empty(), resolve) {
                // Before Linux 5.6, or where a filter does not know it.
                Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
                opened => return Ok(File::from(opened?)),
            }
        }
        Ok(File::from(rustix::fs::openat(CWD, self.path(path), flags, Mode::empty())?))
    }

    /// A one-line attribute, trimmed; `None` if it is not there or empty.
    pub(crate) fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = self.read(path.as_ref(), LINE_MAX).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // Binary attributes are padded with zeros.
        let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A numeric attribute.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.note(|| Look::At(path.as_ref().to_owned()));
        self.path(path).exists()
    }

    /// What a program or a device says: asked here, looked up in a captured tree.
    ///
    /// * `name`: of the question, as a file name.
    pub(crate) fn answer(
        &self,
        name: &str,
        ask: impl FnOnce() -> io::Result<String>,
    ) -> io::Result<String> {
        if !self.is_this() {
            return self.text(Path::new(ANSWERS).join(name));
        }
        let answer = ask()?;
        self.note(|| Look::Answer(format!("{ANSWERS}/{name}"), answer.clone()));
        Ok(answer)
    }

    /// Names in a directory, sorted; none if it cannot be read.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        self.note(|| Look::List(path.as_ref().to_owned()));
        let Ok(entries) = std::fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .take(NAMES_MAX)
            .filter_map(|entry| entry.ok().map(|e| e.file_name()))
            .filter_map(|name: OsString| name.into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// What a symbolic link says, unresolved.
    pub(crate) fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        self.note(|| Look::Link(path.as_ref().to_owned()));
        std::fs::read_link(self.path(path)).ok()
    }

    /// What programs could still get without swapping; `None` if the kernel does not say.
    pub fn memory_available(&self) -> Option<Bytes> {
        self.memory().map(|(available, _)| Bytes::new(available))
    }

    /// Bytes that programs could still get without swapping (`MemAvailable`), and bytes in all.
    pub(crate) fn memory(&self) -> Option<(u64, u64)> {
        let text = self.text("/proc/meminfo").ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
        };
        let total = field("MemTotal")?;
        let available = field("MemAvailable").or_else(|| field("MemFree"))?;
        Some((available << 10, total << 10))
    }
}

/// Undoes the octal escapes (`\040`) of `/proc/*/mountinfo` and `/proc/swaps`.
pub(crate) fn unescape(text: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|d| {
            first == b'\\' && d[0] <= b'3' && d.iter().all(|c| (b'0'..=b'7').contains(c))
        });
        if let Some(digits) = digits {
            bytes.push(digits.iter().fold(0u8, |value, digit| (value << 3) | (digit - b'0')));
            rest = &tail[3..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_escapes_are_undone_and_nothing_else() {
        for (text, path) in [
            (r"/mnt/my\040disk", "/mnt/my disk"),
            (r"/a\011b\134c", "/a\tb\\c"),
            (r"/end\04", r"/end\04"),
            (r"/no\999", r"/no\999"),
            (r"/no\777", r"/no\777"),
            ("/\u{e4}", "/\u{e4}"),
            (r"\", r"\"),
        ] {
            assert_eq!(unescape(text.as_bytes()), Path::new(path), "{text}");
        }
    }

    #[test]
    fn paths_lie_below_the_root() {
        assert_eq!(Host::captured("/t").path("/sys/x"), Path::new("/t/sys/x"));
        assert_eq!(Host::this().path("/sys/x"), Path::new("/sys/x"));
    }
}
