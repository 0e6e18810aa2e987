//! Names that are a store's: its own, and those that follow from it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::{beside, look};

/// Why nothing else may be written under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is a store.
    Store,
    /// SQLite, or a lock of ours, has it beside the store of that name, or will have it.
    Beside(PathBuf),
}

/// Whether a name is a store's, whatever is there now.
///
/// * `in_use`: a store that counts also while it is not there yet.
pub fn taken(path: &Path, in_use: Option<&Path>) -> Option<Taken> {
    let path = real(path);
    let in_use = in_use.map(real);
    let is_store = |path: &Path| in_use.as_deref() == Some(path) || look::is_store(path);
    if is_store(&path) {
        return Some(Taken::Store);
    }
    let store = path.with_file_name(beside_what(path.file_name()?)?);
    // SQLite puts its own beside what a link leads to, and that may have another name.
    is_store(&store).then_some(Taken::Beside(store))
}

/// The path with no link in it; of what is not there yet, in the directory as it is.
fn real(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new(".")).canonicalize();
    match (parent, path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// The name of the file that one of this name would lie beside.
fn beside_what(name: &OsStr) -> Option<OsString> {
    let bytes = name.as_bytes();
    let ends = beside::SIDES.iter();
    let lock = bytes.strip_suffix(b".lock").and_then(|rest| {
        let digits = rest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = rest.get(..rest.len() - digits)?;
        rest.strip_suffix(b"-r").filter(|_| digits > 0)
    });
    let store = ends.filter_map(|end| bytes.strip_suffix(end.as_bytes())).next().or(lock);
    store.filter(|store| !store.is_empty()).map(|store| OsString::from_vec(store.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_lies_beside() {
        let of = |name: &str| beside_what(OsStr::new(name)).map(|of| of.into_string().unwrap());
        for name in ["s.db-wal", "s.db-shm", "s.db-journal", "s.db-r1.lock", "s.db-r170.lock"] {
            assert_eq!(of(name).as_deref(), Some("s.db"), "{name}");
        }
        for name in ["s.db", "-wal", "s.db-wal2", "s.db-r.lock", "s.db-x1.lock", "s.db-r1.locks"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
