//! The checkout: where it is, which files it has, its cargo.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The checkout that this program was built from, or a small one made by a test.
#[derive(Debug)]
pub struct Repo {
    root: PathBuf,
}

impl Repo {
    pub fn here() -> Self {
        let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self { root: xtask.parent().unwrap_or(xtask).to_owned() }
    }

    /// The files under a directory that is none of ours.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// Every file with one of these endings, relative to the root, sorted; build output, hidden
    /// directories and dependencies of the page are left out.
    pub fn files(&self, endings: &[&str]) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        let mut open = vec![PathBuf::new()];
        while let Some(directory) = open.pop() {
            let full = self.path(&directory);
            let entries =
                fs::read_dir(&full).with_context(|| format!("reading {}", full.display()))?;
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                let relative = directory.join(&name);
                if entry.file_type()?.is_dir() {
                    if !is_foreign(&name) {
                        open.push(relative);
                    }
                } else if relative
                    .extension()
                    .and_then(OsStr::to_str)
                    .is_some_and(|ending| endings.contains(&ending))
                {
                    found.push(relative);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    pub fn read(&self, relative: &Path) -> Result<String> {
        let full = self.path(relative);
        fs::read_to_string(&full).with_context(|| format!("reading {}", full.display()))
    }

    /// The cargo that started us, in the root.
    pub fn cargo(&self) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(&self.root);
        command
    }

    /// `cargo metadata`.
    pub fn metadata(&self, arguments: &[&str]) -> Result<Value> {
        let output = self
            .cargo()
            .args(["metadata", "--format-version", "1"])
            .args(arguments)
            .output()
            .context("starting cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).context("reading what cargo metadata printed")
    }

    /// Where cargo puts what it builds.
    pub fn target_directory(&self) -> PathBuf {
        std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| self.path("target"), |set| self.path(set))
    }

    /// The binary of this name that the tests use.
    pub fn debug_binary(&self, name: &str) -> PathBuf {
        self.target_directory().join("debug").join(name)
    }

    /// The built release binary of this name.
    pub fn release_binary(&self, name: &str) -> PathBuf {
        self.target_directory().join("release").join(name)
    }
}

fn is_foreign(directory: &OsStr) -> bool {
    directory.as_encoded_bytes().starts_with(b".")
        || directory == "target"
        || directory == "node_modules"
}

/// Whether this runs where every check must be made, so that a skip is a failure.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Whether a program of this name can be started.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
pub mod scratch {
    //! Small checkouts for tests, removed when dropped.

    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[derive(Debug)]
    pub struct Scratch {
        pub repo: Repo,
    }

    impl Scratch {
        /// A directory with these files in it.
        pub fn with(files: &[(&str, &str)]) -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let root =
                std::env::temp_dir().join(format!("xtask-test-{}-{number}", std::process::id()));
            for (name, text) in files {
                let path = root.join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self { repo: Repo::at(&root) }
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.repo.root);
        }
    }

    #[test]
    fn files_leave_out_build_output() {
        let scratch = Scratch::with(&[
            ("a.rs", ""),
            ("b/c.rs", ""),
            ("b/c.md", ""),
            ("target/d.rs", ""),
            (".git/e.rs", ""),
        ]);
        let files = scratch.repo.files(&["rs"]).unwrap();
        assert_eq!(files, [PathBuf::from("a.rs"), PathBuf::from("b/c.rs")]);
    }
}
