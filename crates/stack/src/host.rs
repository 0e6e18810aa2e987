use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use units::Bytes;

/// The machine as its kernel tells it: everything read from `/proc`, `/sys` and `/etc` goes
/// through a root, so that captured trees stand for machines that are not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    root: PathBuf,
}

impl Default for Host {
    fn default() -> Self {
        Self::this()
    }
}

impl Host {
    /// The machine that this runs on.
    pub fn this() -> Self {
        Self { root: PathBuf::from("/") }
    }

    /// A captured tree.
    pub fn captured(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
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
        std::fs::read(self.path(path)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of a file.
    pub(crate) fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        std::fs::read(self.path(path))
    }

    /// A one-line attribute, trimmed; `None` if it is not there or empty.
    pub(crate) fn line(&self, path: impl AsRef<Path>) -> Option<String> {
        let text = self.text(path).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// A numeric attribute.
    pub(crate) fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.line(path)?.parse().ok()
    }

    pub(crate) fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    /// Names in a directory, sorted; none if it cannot be read.
    pub(crate) fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok().map(|e| e.file_name()))
            .filter_map(|name: OsString| name.into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// What a symbolic link says, unresolved.
    pub(crate) fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
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
