//! Every suite has its page in docs/suites, every page its suite and its line in the overview. That the
//! program ships it needs no check: its list is made from the files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::Result;

use super::Verdict;
use crate::repo::Repo;

/// Pages that several suites share: each suite by its name, or all whose names begin so if it ends
/// with a hyphen.
const FAMILIES: &[(&str, &[&str])] = &[
    ("single-cell", &["random-read", "random-write", "sequential-read", "sequential-write"]),
    ("dd", &["dd-", "copy-40g"]),
    ("iometer", &["iometer-"]),
    ("iozone", &["iozone-"]),
    ("orion", &["orion-"]),
    ("snia", &["snia-"]),
    ("studies", &["one-dvd-per-second", "100k-iops", "postgresql-disks", "sara-ssd", "mysql-mft"]),
    ("sysbench", &["sysbench-"]),
];

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
    let overview = repo.read(Path::new("docs/suites/README.md"))?;
    for page in pages.iter().filter(|page| !OVERVIEW.contains(&page.as_str())) {
        if !overview.contains(&format!("({page}.md)")) {
            faults.push(format!("docs/suites/README.md has no line for docs/suites/{page}.md"));
        }
    }
    Ok(Verdict::faults(faults))
}

fn page_of(suite: &str) -> &str {
    let belongs =
        |member: &&str| *member == suite || (member.ends_with('-') && suite.starts_with(member));
    let family = FAMILIES.iter().find(|(_, members)| members.iter().any(&belongs));
    family.map_or(suite, |(page, _)| page)
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
            ("suites/peace.toml", ""),
            ("suites/orion-simple.toml", ""),
            ("suites/copy-40g.toml", ""),
            ("docs/suites/bm-flash.md", ""),
            ("docs/suites/single-cell.md", ""),
            ("docs/suites/orion.md", ""),
            ("docs/suites/dd.md", ""),
            ("docs/suites/gone.md", ""),
            ("docs/suites/README.md", "[a](single-cell.md) [b](orion.md) [c](dd.md) [d](gone.md)"),
        ]);
        let faults = look(&scratch.repo).unwrap().faults;
        assert_eq!(faults.len(), 3, "{faults:?}");
        assert!(faults[0].contains("peace") && faults[1].contains("gone"), "{faults:?}");
        assert!(faults[2].contains("bm-flash"), "{faults:?}");
    }
}
