//! What a probe reads, as one text: a machine for the tests, or for a report of what is wrong.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use super::serial::{Serials, Shown};
use super::stack_tree;
use crate::host::{Host, Look};
use crate::target::{TargetError, inspect};

/// Why nothing was captured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The path cannot be looked at.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum Kept {
    Directory,
    Link(String),
    Text(String),
}

/// Longer files are cut: nothing that is looked at is longer and matters.
const TEXT_MAX: usize = 64 << 10;
/// Processors are all alike: the first is enough.
const CPUINFO_LINES: usize = 32;

/// Every file of procfs and sysfs, and every answer of a program, that the probe of a path reads.
///
/// Serial numbers are hashed; of the kernel's command line the words on mitigations are kept, of
/// the superblocks no uuid and no label. Mount points, names of volumes and host settings are as
/// they are.
///
/// Lines are `PATH = TEXT`, `PATH -> LINK`, `PATH/` for a directory, and `PATH <<` up to `>>`.
pub fn capture(path: &Path) -> Result<String, CaptureError> {
    let host = Host::watched();
    let target = inspect(&host, path)?;
    stack_tree(&host, &[target], Serials::Plain);
    let shown = Shown::new(&host, Serials::Hashed);
    let mut kept = BTreeMap::new();
    for look in host.looks() {
        match look {
            Look::At(path) => keep(&host, &shown, &path, &mut kept),
            Look::List(path) => list(&path, &mut kept),
            Look::Link(path) => {
                follow(&path, &mut kept);
            }
            Look::Answer(name, answer) => {
                kept.insert(PathBuf::from(name), Kept::Text(answer));
            }
        }
    }
    Ok(write(&kept))
}

/// Where a path leads, with every link on the way kept. `None` where it leads nowhere.
fn follow(path: &Path, kept: &mut BTreeMap<PathBuf, Kept>) -> Option<PathBuf> {
    let mut real = PathBuf::from("/");
    for part in path.components() {
        let Component::Normal(name) = part else { continue };
        let here = real.join(name);
        match std::fs::read_link(&here) {
            Ok(to) => {
                // `/proc/self` is another one each time.
                if real == Path::new("/proc") {
                    real = here;
                    continue;
                }
                real = std::fs::canonicalize(&here).unwrap_or_else(|_| here.clone());
                kept.insert(here, Kept::Link(to.display().to_string()));
            }
            Err(_) => real = here,
        }
    }
    real.symlink_metadata().is_ok().then_some(real)
}

fn keep(host: &Host, shown: &Shown, path: &Path, kept: &mut BTreeMap<PathBuf, Kept>) {
    let Some(real) = follow(path, kept) else { return };
    if real.is_dir() {
        kept.entry(real).or_insert(Kept::Directory);
    } else if !kept.contains_key(&real)
        && let Ok(bytes) = host.bytes(&real)
    {
        let text = String::from_utf8_lossy(&bytes);
        let text = without_secrets(shown, &real, text.trim_end_matches('\n'));
        kept.insert(real, Kept::Text(text.chars().take(TEXT_MAX).collect()));
    }
}

fn list(path: &Path, kept: &mut BTreeMap<PathBuf, Kept>) {
    let Some(real) = follow(path, kept) else { return };
    for entry in std::fs::read_dir(&real).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => {
                follow(&entry.path(), kept);
            }
            Ok(kind) if kind.is_dir() => {
                kept.entry(entry.path()).or_insert(Kept::Directory);
            }
            _ => {}
        }
    }
    kept.entry(real).or_insert(Kept::Directory);
}

fn without_secrets(shown: &Shown, path: &Path, text: &str) -> String {
    let hashed = |text: &str| shown.text(text).unwrap_or_default();
    match path.file_name().and_then(|name| name.to_str()) {
        _ if text.is_empty() => String::new(),
        Some("serial" | "wwid" | "wwn" | "nguid" | "eui" | "uuid") if !text.contains("LVM-") => {
            hashed(text)
        }
        // Four bytes of header first.
        Some("vpd_pg80") => hashed(text.get(4..).unwrap_or_default()),
        Some("cmdline") => {
            let words = text.split_whitespace().filter(|word| word.starts_with("mitigations="));
            words.collect::<Vec<_>>().join(" ")
        }
        Some("cpuinfo") => processor(text),
        _ => text.to_owned(),
    }
}

/// What names the first processor, and whether it is a guest's.
fn processor(text: &str) -> String {
    let lines = text.lines().take(CPUINFO_LINES).filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        match name.trim() {
            "vendor_id" | "model name" => Some(line.to_owned()),
            "flags" | "Features" => {
                let is_guest = value.split_whitespace().any(|word| word == "hypervisor");
                is_guest.then(|| format!("{name}: hypervisor"))
            }
            _ => None,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn write(kept: &BTreeMap<PathBuf, Kept>) -> String {
    let mut out = String::new();
    for (path, kept) in kept {
        let path = path.display();
        // Writing to a string cannot fail.
        let _ = match kept {
            Kept::Directory => writeln!(out, "{path}/"),
            Kept::Link(to) => writeln!(out, "{path} -> {to}"),
            Kept::Text(text) if text.contains('\n') => {
                writeln!(out, "{path} <<\n{}\n>>", text.trim_end_matches('\n'))
            }
            Kept::Text(text) => writeln!(out, "{path} = {text}"),
        };
    }
    out
}
