//! No file grew too large to be one thing. Only warns.

use anyhow::Result;

use super::Verdict;
use crate::repo::Repo;

const LINES_MAX: usize = 1200;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let mut warnings = Vec::new();
    for path in repo.files(&["rs"])? {
        warnings.extend(warning_on(&path.to_string_lossy(), &repo.read(&path)?));
    }
    Ok(Verdict::warnings(warnings))
}

fn warning_on(path: &str, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines > LINES_MAX).then(|| format!("{path} has {lines} lines; is it still one thing?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_is_named() {
        assert!(warning_on("a.rs", &"x\n".repeat(LINES_MAX + 1)).is_some());
        assert!(warning_on("a.rs", &"x\n".repeat(LINES_MAX)).is_none());
    }
}
