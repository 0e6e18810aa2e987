//! A build of one crate uses what a build of all has compiled: every dependency has the same
//! features in both. The list that makes it so is `features/Cargo.toml`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

use super::Verdict;
use crate::repo::Repo;

/// Of a dependency and its version, the sets of features that it is built with: procedural macros
/// and the programs themselves may need different ones.
type Features = BTreeMap<String, BTreeSet<String>>;

pub fn look(repo: &Repo) -> Result<Verdict> {
    let of_all = features(repo, &["--workspace"])?;
    let metadata = repo.metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut faults = Vec::new();
    for name in packages.iter().filter_map(|package| package["name"].as_str()) {
        // The bare loop is built by itself only, for speed.
        if name != "bench-bare" {
            faults.extend(missing(name, &features(repo, &["--package", name])?, &of_all));
        }
    }
    Ok(Verdict::faults(faults))
}

fn missing(name: &str, own: &Features, of_all: &Features) -> Vec<String> {
    let differs = |(dependency, sets): (&String, &BTreeSet<String>)| {
        let known = of_all.get(dependency)?;
        let other = sets.difference(known).next()?;
        Some(format!(
            "{name} is built with {dependency} ({other}), the workspace with ({}): name it in \
             features/Cargo.toml",
            known.iter().map(String::as_str).collect::<Vec<_>>().join(") and (")
        ))
    };
    own.iter().filter_map(differs).collect()
}

fn features(repo: &Repo, of: &[&str]) -> Result<Features> {
    let output = repo
        .cargo()
        .args(["tree", "--edges", "normal,build,dev", "--no-dedupe", "--prefix", "none"])
        .args(["--format", "{p}|{f}"])
        .args(of)
        .output()
        .context("starting cargo tree")?;
    if !output.status.success() {
        bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(read(&String::from_utf8_lossy(&output.stdout)))
}

fn read(text: &str) -> Features {
    let mut found = Features::new();
    for (package, features) in text.lines().filter_map(|line| line.split_once('|')) {
        let package = package.split(" (").next().unwrap_or(package);
        found.entry(package.to_owned()).or_default().insert(features.to_owned());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_with_other_features_is_found() {
        let all = read("a v1 (/r)|\nserde v1|alloc,std\nserde v1|std\n");
        assert_eq!(missing("a", &read("a v1 (/r)|\nserde v1|std\n"), &all), Vec::<String>::new());
        let found = missing("a", &read("serde v1|\n"), &all);
        assert!(found[0].contains("serde v1") && found.len() == 1, "{found:?}");
    }
}
