//! Unsafe code is where it may be, and says why it is sound.

use anyhow::Result;

use super::Verdict;
use crate::repo::Repo;
use crate::source::{code_only, lines_with};

/// The back ends, the system calls that no library wraps, and the bare loops for comparison.
const MAY: &[&str] = &["crates/uring/", "crates/kernel/", "bench/bare/"];

/// How many lines above a block its reason may stand.
const REACH: usize = 8;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let mut faults = Vec::new();
    for path in repo.files(&["rs"])? {
        let text = repo.read(&path)?;
        faults.extend(faults_in(&path.to_string_lossy(), &text));
    }
    Ok(Verdict::faults(faults))
}

fn faults_in(path: &str, text: &str) -> Vec<String> {
    let may = MAY.iter().any(|room| path.starts_with(room));
    let lines: Vec<_> = text.lines().collect();
    let mut faults = Vec::new();
    for line in lines_with(&code_only(text), "unsafe") {
        let above = &lines[line.saturating_sub(REACH + 1)..line];
        if !may {
            faults.push(format!("{path}:{line}: unsafe code; only {} may", MAY.join(" and ")));
        } else if !above.iter().any(|l| l.contains("SAFETY:") || l.contains("# Safety")) {
            faults.push(format!("{path}:{line}: unsafe code without `// SAFETY:` above it"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_in_another_room_is_found() {
        let text = "// SAFETY: none\nfn a() { unsafe { b() } }";
        assert_eq!(faults_in("crates/engine/src/lib.rs", text).len(), 1);
        assert_eq!(faults_in("crates/uring/src/lib.rs", text), [""; 0]);
    }

    #[test]
    fn a_block_without_its_reason_is_found() {
        assert_eq!(faults_in("crates/uring/src/lib.rs", "fn a() { unsafe { b() } }").len(), 1);
        assert_eq!(
            faults_in("crates/uring/src/lib.rs", "#![deny(unsafe_code)] // unsafe"),
            [""; 0]
        );
    }
}
