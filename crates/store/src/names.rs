//! Names that are a store's: its own, and those that follow from it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::{StoreError, beside, head};

/// Why nothing else may be written under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is a store.
    Store,
    /// SQLite, a lock of ours, or the journals of studies, have it beside the store of that name, or will have it.
    Beside(PathBuf),
}

/// Whether a name is a store's, whatever is there now.
///
/// * `in_use`: a store that counts also while it is not there yet.
pub fn taken(path: &Path, in_use: Option<&Path>) -> Option<Taken> {
    let path = real(path);
    let in_use = in_use.map(real);
    let is_store = |path: &Path| in_use.as_deref() == Some(path) || head::is_store(path);
    if is_store(&path) {
        return Some(Taken::Store);
    }
    // SQLite puts its own beside what a link leads to, and that may have another name.
    stores_of(&path).into_iter().find(|store| is_store(store)).map(Taken::Beside)
}

/// What a file of this name would lie beside, or in a directory that lies beside it, if that were a store.
///
/// * `path`: without links.
pub fn stores_of(path: &Path) -> Vec<PathBuf> {
    let before = |path: &Path| {
        // Earlier programs left the ending of a store's name out.
        let is_journals = path.extension().is_some_and(|ending| ending == "studies");
        is_journals.then(|| path.with_extension("db"))
    };
    let all = path.ancestors();
    all.flat_map(|path| beside_of(path).into_iter().chain(before(path))).collect()
}

/// What the file of this name would lie beside.
fn beside_of(path: &Path) -> Option<PathBuf> {
    Some(path.with_file_name(beside_what(path.file_name()?)?))
}

/// As long as a name may be on Linux, and the longest that is added to a store's: `-r4294967295.lock`.
const NAME_MAX: usize = 255;
const ADDED_MAX: usize = 17;

/// Refuses a name that no store can have.
pub(crate) fn check(path: &Path) -> Result<(), StoreError> {
    let bad = |why| Err(StoreError::BadName { path: path.to_owned(), why });
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return bad("it ends in a slash, as only a directory's does".to_owned());
    }
    let real = real(path);
    let length = real.file_name().unwrap_or_default().len();
    let most = NAME_MAX - ADDED_MAX;
    if length > most {
        return bad(format!(
            "it has {length} bytes, wanted at most {most}: the names of its journal and of its locks are \
             longer, and {NAME_MAX} is the most that a name may have"
        ));
    }
    match beside_of(&real).filter(|store| head::is_store(store)) {
        Some(store) => bad(format!("it is a name of the store of results {}", store.display())),
        None => Ok(()),
    }
}

/// The path with no link in it; of what is not there yet, in the directory as it is.
pub(crate) fn real(path: &Path) -> PathBuf {
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
    let journals = bytes.strip_suffix(b".studies");
    let side = ends.filter_map(|end| bytes.strip_suffix(end.as_bytes())).next();
    let store = side.or(lock).or(journals);
    store.filter(|store| !store.is_empty()).map(|store| OsString::from_vec(store.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_lies_beside() {
        let of = |name: &str| beside_what(OsStr::new(name)).map(|of| of.into_string().unwrap());
        for name in [
            "s.db-wal",
            "s.db-shm",
            "s.db-journal",
            "s.db-r1.lock",
            "s.db-r170.lock",
            "s.db.studies",
        ] {
            assert_eq!(of(name).as_deref(), Some("s.db"), "{name}");
        }
        for name in ["s.db", "-wal", "s.db-wal2", "s.db-r.lock", "s.db-x1.lock", "s.db-r1.locks"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn what_is_in_a_directory_beside_a_store_is_beside_it() {
        let of = |path: &str| stores_of(Path::new(path));
        assert_eq!(of("/a/s.db-wal"), [Path::new("/a/s.db")]);
        let both = [Path::new("/a/s.db"), Path::new("/a/s.db.db")];
        for path in ["/a/s.db.studies", "/a/s.db.studies/new", "/a/s.db.studies/b/c.log"] {
            assert_eq!(of(path), both, "{path}");
        }
        assert_eq!(of("/a/s.studies/new"), [Path::new("/a/s"), Path::new("/a/s.db")]);
        assert!(of("/a/s.db").is_empty() && of("/a/studies/new").is_empty());
    }
}
