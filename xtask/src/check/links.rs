//! Links in the pages lead to files that exist.

use std::path::Path;

use anyhow::Result;

use super::Verdict;
use crate::repo::Repo;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let mut faults = Vec::new();
    for page in repo.files(&["md"])? {
        let directory = page.parent().unwrap_or(Path::new(""));
        for (line, target) in links_in(&repo.read(&page)?) {
            // A leading slash is the top of the repository.
            let path = match target.strip_prefix('/') {
                Some(from_top) => repo.path(from_top),
                None => repo.path(directory.join(&target)),
            };
            if !path.exists() {
                faults.push(format!("{}:{line}: `{target}` leads nowhere", page.display()));
            }
        }
    }
    Ok(Verdict::faults(faults))
}

/// Links to files, with their lines (from 1); addresses elsewhere and places on the same page
/// are left out, as is everything in code.
fn links_in(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    let mut in_fence = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let prose = without_code_spans(line);
        let inline = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        let definition = prose
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]: "))
            .map(|(_, target)| target.trim());
        for target in inline.chain(definition) {
            let path = target.split(['#', ' ']).next().unwrap_or("");
            if !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:") {
                links.push((number + 1, path.to_owned()));
            }
        }
    }
    links
}

fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("``")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::scratch::Scratch;

    #[test]
    fn a_link_to_nothing_is_found() {
        let page = "[there](docs/b.md#part) [web](https://x.y/z) [here](#a)\n\
                    `[code](no.md)`\n```\n[fenced](no.md)\n```\n[gone](docs/c.md)\n[ref]: gone.md\n";
        let scratch = Scratch::with(&[("a.md", page), ("docs/b.md", "[up](../a.md) [top](/a.md)")]);
        let faults = look(&scratch.repo).unwrap().faults;
        assert_eq!(
            faults,
            ["a.md:6: `docs/c.md` leads nowhere", "a.md:7: `gone.md` leads nowhere"]
        );
    }
}
