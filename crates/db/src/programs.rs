//! Where the programs of a server are, and which version.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::DbError;

/// Who ships a program.
#[derive(Clone, Copy)]
pub(crate) struct Packages {
    pub debian: &'static str,
    pub rhel: &'static str,
}

/// The directories of `PATH`, then `besides`: where administrators' programs are.
pub(crate) fn places(besides: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|directory| directory.is_absolute()).collect();
    for place in besides.split_whitespace() {
        if !places.iter().any(|known| known == Path::new(place)) {
            places.push(place.into());
        }
    }
    places
}

/// The first of the directories that has one of the names.
pub(crate) fn find(
    names: &[&'static str],
    places: &[PathBuf],
    packages: Packages,
) -> Result<PathBuf, DbError> {
    let paths = names.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    paths.into_iter().find(|path| is_program(path)).ok_or_else(|| DbError::NoProgram {
        program: names.first().copied().unwrap_or_default(),
        debian: packages.debian,
        rhel: packages.rhel,
        looked: places.to_vec(),
    })
}

pub(crate) fn is_program(path: &Path) -> bool {
    std::fs::metadata(path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// What it prints when asked for its version.
pub(crate) fn version(path: &Path) -> Result<String, DbError> {
    let mut command = Command::new(path);
    let output = command.arg("--version").env_clear().env("LC_ALL", "C").output();
    let output = output.map_err(DbError::file("start", path))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(DbError::Failed {
        program: path.into(),
        how: format!("--version: {}", output.status),
        said: complaint,
    })
}

/// `setpriv` of util-linux: changes the user, and has the kernel end a server whose parent is gone.
/// Busybox has a program of the same name that can do neither.
pub(crate) fn setpriv() -> Result<PathBuf, DbError> {
    let places = places("/usr/bin /bin");
    let found = find(&["setpriv"], &places, Packages { debian: "util-linux", rhel: "util-linux" })?;
    let said = version(&found).unwrap_or_default();
    if said.contains("util-linux") {
        return Ok(found);
    }
    Err(DbError::NoProgram {
        program: "setpriv of util-linux",
        debian: "util-linux",
        rhel: "util-linux",
        looked: places,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package_and_where_it_was_looked_for() {
        let packages = Packages { debian: "postgresql", rhel: "postgresql-server" };
        let error = find(&["postgres"], &["/nowhere".into()], packages).unwrap_err();
        assert_eq!(error.to_string(), "`postgres` is not here: looked in /nowhere");
        let hint = error.hint().unwrap();
        assert!(hint.contains("`postgresql`") && hint.contains("`postgresql-server`"), "{hint}");
    }
}
