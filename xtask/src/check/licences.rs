//! Dependencies may be used as we use them.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Verdict;
use crate::repo::Repo;

/// SPDX names that we accept.
const ACCEPTED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Unicode-3.0",
    "Zlib",
    "MPL-2.0",
    "0BSD",
    "Unlicense",
    "CC0-1.0",
    "BSL-1.0",
];

pub fn look(repo: &Repo) -> Result<Verdict> {
    faults(&repo.metadata(&[])?).map(Verdict::faults)
}

fn faults(metadata: &Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut faults = Vec::new();
    for package in packages {
        let name = format!(
            "{} {}",
            package["name"].as_str().unwrap_or("?"),
            package["version"].as_str().unwrap_or("?")
        );
        match package["license"].as_str() {
            None => faults.push(format!("{name} names no licence")),
            Some(expression) => match is_accepted(expression) {
                Ok(true) => {}
                Ok(false) => faults.push(format!("{name} is under `{expression}`")),
                Err(error) => faults.push(format!("{name}: `{expression}`: {error:#}")),
            },
        }
    }
    Ok(faults)
}

/// Whether a licence expression can be met with accepted licences alone.
///
/// `AND` binds tighter than `OR`; `/` is the old way to write `OR`. SPDX specification, annex D.
fn is_accepted(expression: &str) -> Result<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any_of(&mut rest)?;
    if !rest.is_empty() {
        bail!("`{}` is too much", rest.join(" "));
    }
    Ok(met)
}

fn any_of(rest: &mut &[&str]) -> Result<bool> {
    let mut met = all_of(rest)?;
    while take(rest, "OR") {
        met |= all_of(rest)?;
    }
    Ok(met)
}

fn all_of(rest: &mut &[&str]) -> Result<bool> {
    let mut met = one(rest)?;
    while take(rest, "AND") {
        met &= one(rest)?;
    }
    Ok(met)
}

fn one(rest: &mut &[&str]) -> Result<bool> {
    if take(rest, "(") {
        let met = any_of(rest)?;
        if !take(rest, ")") {
            bail!("a parenthesis stays open");
        }
        return Ok(met);
    }
    let mut name = next(rest)?.to_owned();
    if take(rest, "WITH") {
        name = format!("{name} WITH {}", next(rest)?);
    }
    Ok(ACCEPTED.contains(&name.as_str()))
}

fn next<'a>(rest: &mut &[&'a str]) -> Result<&'a str> {
    let (first, others) = rest.split_first().context("ends too early")?;
    *rest = others;
    Ok(first)
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    let found = rest.first() == Some(&word);
    if found {
        *rest = &rest[1..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn expressions_are_read() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR GPL-3.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(is_accepted(good).unwrap(), "{good}");
        }
        for bad in
            ["GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR MIT AND LGPL-2.1", "Apache-2.0 WITH X"]
        {
            assert!(!is_accepted(bad).unwrap(), "{bad}");
        }
        for broken in ["", "MIT OR", "(MIT", "MIT Apache-2.0"] {
            assert!(is_accepted(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_dependency_under_another_licence_is_found() {
        let metadata = json!({"packages": [
            {"name": "good", "version": "1.0.0", "license": "MIT"},
            {"name": "bad", "version": "1.0.0", "license": "AGPL-3.0"},
            {"name": "silent", "version": "1.0.0", "license": null},
        ]});
        assert_eq!(faults(&metadata).unwrap().len(), 2);
    }
}
