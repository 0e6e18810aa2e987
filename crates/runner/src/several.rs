//! Several targets of one run: each judged by itself, what lies below them taken together.

use std::path::{Path, PathBuf};

use stack::{DeviceNumber, FileId, Host, PathKind, Target};

use crate::RunError;

/// What a path is the name of.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    File(FileId),
    /// A file to be made: its directory, and its name in it.
    New(FileId, std::ffi::OsString),
    Device(DeviceNumber),
}

impl Identity {
    /// `None` of what may be named twice: a directory, in which each has a file of its own.
    pub(crate) fn of(path: &Path) -> Result<Option<Self>, RunError> {
        let found = stack::look(path)?;
        let in_directory = || {
            let parent = found.resolved.parent()?;
            let metadata = std::fs::metadata(parent).ok()?;
            Some(Self::New(FileId::of(&metadata), found.resolved.file_name()?.to_owned()))
        };
        Ok(match found.kind {
            PathKind::File { id, .. } => Some(Self::File(id)),
            PathKind::BlockDevice { number } => Some(Self::Device(number)),
            PathKind::Missing => in_directory(),
            PathKind::Directory | PathKind::CharacterDevice { .. } | PathKind::Other { .. } => None,
        })
    }
}

/// Refuses targets of which two are one, by whatever names, or of which one holds another.
///
/// * `files`: of each target, all that it consists of.
pub(crate) fn are_distinct(targets: &[Target], files: &[Vec<PathBuf>]) -> Result<(), RunError> {
    let mut met: Vec<(Identity, &PathBuf)> = Vec::new();
    for (at, all) in files.iter().enumerate() {
        for path in all {
            let Some(identity) = Identity::of(path)? else { continue };
            // As it was given: by its own path a link would be the same as itself.
            let given = targets.get(at).map(|target| &target.path.given);
            let named = given.filter(|_| all.len() == 1).unwrap_or(path);
            if let Some((_, first)) = met.iter().find(|(known, _)| *known == identity) {
                return Err(same(first, named, "is the same as"));
            }
            met.push((identity, named));
        }
    }
    for (at, target) in targets.iter().enumerate() {
        let PathKind::BlockDevice { .. } = target.path.kind else { continue };
        let Some(top) = target.top() else { continue };
        let others = targets.iter().enumerate().filter(|(other, _)| *other != at);
        for (_, other) in others {
            if other.devices.iter().any(|device| device.name == top.name) {
                return Err(same(&target.path.given, &other.path.given, "lies on"));
            }
        }
    }
    if targets.len() < 2 {
        return Ok(());
    }
    let shared = stack::targets_that_share_bytes(&Host::this(), targets);
    match shared.and_then(|(one, other)| Some((targets.get(one)?, targets.get(other)?))) {
        Some((one, other)) => Err(same(&one.path.given, &other.path.given, "shares bytes with")),
        None => Ok(()),
    }
}

fn same(first: &Path, second: &Path, how: &'static str) -> RunError {
    RunError::SameTarget { first: first.to_path_buf(), second: second.to_path_buf(), how }
}

/// The first target with what lies below all of them: every device once, those on top first.
pub(crate) fn together(targets: &[Target]) -> Option<Target> {
    let (first, others) = targets.split_first()?;
    let mut all = first.clone();
    for other in others {
        for device in &other.devices {
            match all.devices.iter_mut().find(|known| known.name == device.name) {
                Some(known) => known.depth = known.depth.min(device.depth),
                None => all.devices.push(device.clone()),
            }
        }
        for nature in other.natures.iter().filter(|nature| !first.natures.contains(nature)) {
            all.natures.push(nature.clone());
        }
        all.unseen.extend(other.unseen.iter().cloned());
    }
    all.devices.sort_by_key(|device| device.depth);
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("several-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn distinct(&self, names: &[&str]) -> Result<(), RunError> {
            let files: Vec<Vec<PathBuf>> = names.iter().map(|n| vec![self.0.join(n)]).collect();
            let host = Host::this();
            let targets: Vec<Target> =
                files.iter().map(|path| stack::inspect(&host, &path[0]).unwrap()).collect();
            are_distinct(&targets, &files)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn one_file_by_two_names_is_one() {
        let place = Place::new("names");
        std::fs::write(place.0.join("a"), "a").unwrap();
        std::fs::write(place.0.join("b"), "b").unwrap();
        std::fs::hard_link(place.0.join("a"), place.0.join("hard")).unwrap();
        std::os::unix::fs::symlink(place.0.join("a"), place.0.join("soft")).unwrap();
        std::fs::create_dir(place.0.join("d")).unwrap();
        std::os::unix::fs::symlink(place.0.join("d"), place.0.join("e")).unwrap();
        for bad in
            [["a", "a"], ["a", "hard"], ["soft", "hard"], ["new", "d/../new"], ["d/x", "e/x"]]
        {
            let error = place.distinct(&bad).unwrap_err();
            assert!(matches!(error, RunError::SameTarget { .. }), "{bad:?}: {error}");
        }
        let error = place.distinct(&["a", "soft"]).unwrap_err().to_string();
        let both = ["soft", "a"].map(|name| place.0.join(name).display().to_string());
        assert!(error.starts_with(&both.join(" is the same as ")), "{error}");
        for good in [["a", "b"], ["a", "new"], ["d/x", "d/y"], ["x", "d/x"]] {
            place.distinct(&good).unwrap();
        }
    }
}
