//! Every suite has its page in docs/suites, and every page its suite.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;

use super::Verdict;
use crate::repo::Repo;

/// Suites of one cell share a page.
const SINGLE_CELL: &[&str] =
    &["random-read", "random-write", "sequential-read", "sequential-write"];
const SINGLE_CELL_PAGE: &str = "single-cell";

/// A page about all suites, not one.
const OVERVIEW: &[&str] = &["README", "index", "format"];

pub fn look(repo: &Repo) -> Result<Verdict> {
    let stems = |directory: &str, ending: &str| -> Result<BTreeSet<String>> {
        let files = repo.files(&[ending])?;
        let here = files.iter().filter(|path| path.parent() == Some(Path::new(directory)));
        Ok(here
            .filter_map(|path| path.file_stem().and_then(OsStr::to_str))
            .map(str::to_owned)
            .collect())
    };
    let suites = stems("suites", "toml")?;
    let pages = stems("docs/suites", "md")?;
    let mut faults = Vec::new();
    for suite in &suites {
        let page = page_of(suite);
        if !pages.contains(page) {
            faults.push(format!("suites/{suite}.toml has no page docs/suites/{page}.md"));
        }
    }
    for page in pages.iter().filter(|page| !OVERVIEW.contains(&page.as_str())) {
        if !suites.iter().any(|suite| page_of(suite) == page) {
            faults.push(format!("docs/suites/{page}.md is about no suite in suites/"));
        }
    }
    Ok(Verdict::faults(faults))
}

fn page_of(suite: &str) -> &str {
    if SINGLE_CELL.contains(&suite) { SINGLE_CELL_PAGE } else { suite }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn a_suite_without_a_page_is_found() {
        let scratch = Scratch::with(&[
            ("suites/bm-flash.toml", ""),
            ("suites/random-read.toml", ""),
            ("suites/orion.toml", ""),
            ("docs/suites/bm-flash.md", ""),
            ("docs/suites/single-cell.md", ""),
            ("docs/suites/gone.md", ""),
            ("docs/suites/README.md", ""),
        ]);
        let faults = look(&scratch.repo).unwrap().faults;
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("orion") && faults[1].contains("gone"), "{faults:?}");
    }
}
