//! What a scenario is: a file in `lab/scenarios/`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::check::Check;
use crate::repo::{Repo, find_program};

/// Where the kernel's modules are, by its version.
const MODULES: &str = "/usr/lib/uml/modules";

/// One machine, what is done in it, and what must come out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// One line.
    pub title: String,
    /// What is planted, and why it must be found.
    pub why: String,
    /// Part of the short form.
    #[serde(default)]
    pub short: bool,
    /// Played only where it is named: it takes long.
    #[serde(default)]
    pub by_hand: bool,
    /// Memory of the machine, `1200M`, where its drives need more than others.
    pub memory: Option<String>,
    /// Seconds after which the machine is stopped.
    pub seconds_max: u64,
    /// Programs of the host that it calls.
    #[serde(default)]
    pub programs: Vec<String>,
    /// Kernel modules that it loads.
    #[serde(default)]
    pub modules: Vec<String>,
    /// What is done inside, in bash, with the words of `lab/guest/tools.sh`.
    pub script: String,
    /// What must be true afterwards.
    #[serde(rename = "check")]
    pub checks: Vec<Check>,
}

impl Scenario {
    /// All scenarios, by name.
    pub fn all(repo: &Repo) -> Result<Vec<Self>> {
        let folder = repo.path("lab/scenarios");
        let entries = std::fs::read_dir(&folder)
            .with_context(|| format!("reading {}", folder.display()))?
            .map(|entry| Ok(entry?.path()))
            .collect::<Result<Vec<PathBuf>>>()?;
        let is_one = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "toml");
        let mut found = entries
            .iter()
            .filter(is_one)
            .map(|path| Self::read(path))
            .collect::<Result<Vec<_>>>()?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        Self::parse(name, &text).with_context(|| format!("in {shown}"))
    }

    fn parse(name: &str, text: &str) -> Result<Self> {
        let mut scenario: Self = toml::from_str(text)?;
        name.clone_into(&mut scenario.name);
        if scenario.checks.is_empty() {
            bail!("no check: whatever happens would pass");
        }
        for check in &scenario.checks {
            check.is_sound().with_context(|| format!("check `{}`", check.what))?;
        }
        Ok(scenario)
    }

    /// Why it cannot be played here.
    pub fn missing(&self) -> Option<String> {
        let loads = (!self.modules.is_empty()).then_some("modprobe");
        let needed = self.programs.iter().map(String::as_str).chain(loads);
        let programs: Vec<&str> = needed.filter(|name| program(name).is_none()).collect();
        if !programs.is_empty() {
            return Some(format!("no {} here", programs.join(", ")));
        }
        let known = modules();
        let absent = |name: &&String| !known.contains(&name.replace('-', "_"));
        let modules: Vec<&str> = self.modules.iter().filter(absent).map(String::as_str).collect();
        (!modules.is_empty()).then(|| format!("its kernel has no module {}", modules.join(", ")))
    }
}

/// Where a program is; those of administrators are not in everybody's PATH.
pub fn program(name: &str) -> Option<PathBuf> {
    let places = ["/usr/sbin", "/sbin"].iter().map(|place| Path::new(place).join(name));
    find_program(name).or_else(|| places.into_iter().find(|path| path.is_file()))
}

/// The names of all modules of the kernels that are there, with underscores.
fn modules() -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    let mut open = vec![PathBuf::from(MODULES)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(path);
            } else if let Some((name, _)) = name.split_once(".ko") {
                names.insert(name.replace('-', "_"));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "
        title = 't'
        why = 'w'
        seconds_max = 10
        script = 'true'
        [[check]]
        what = 'it ends'
        note = 'exit.a'
        is = 0
    ";

    #[test]
    fn a_scenario_must_check_something_it_can_check() {
        assert_eq!(Scenario::parse("a", SMALL).unwrap().name, "a");
        let (without, _) = SMALL.split_once("[[check]]").unwrap();
        assert!(Scenario::parse("a", &format!("{without}check = []")).is_err());
        assert!(Scenario::parse("a", &SMALL.replace("is = 0", "")).is_err());
        assert!(Scenario::parse("a", &format!("shrt = true\n{SMALL}")).is_err());
    }

    #[test]
    fn every_scenario_of_the_repository_can_be_read() {
        let all = Scenario::all(&Repo::here()).unwrap();
        assert!(all.iter().any(|scenario| scenario.short));
    }

    #[test]
    fn what_is_missing_is_named() {
        let text = format!("programs = ['no-such-program-anywhere']\n{SMALL}");
        let missing = Scenario::parse("a", &text).unwrap().missing();
        assert_eq!(missing.as_deref(), Some("no no-such-program-anywhere here"));
        let text = format!("modules = ['no_such_module']\n{SMALL}");
        let missing = Scenario::parse("a", &text).unwrap().missing().unwrap();
        assert!(missing.contains("no_such_module"), "{missing}");
    }
}
