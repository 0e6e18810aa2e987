//! Rooms depend downwards only, and pure rooms on nothing that acts.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Verdict;
use crate::repo::Repo;

/// The rooms, lowest level first. A room may depend on every room of a lower level; rooms of one
/// level do not know each other.
const LEVELS: &[&[Room]] = &[
    &[pure("units"), edge("kernel")],
    &[pure("stats"), pure("finding")],
    &[pure("device"), pure("layout"), pure("layer"), pure("nbd"), pure("tpcc")],
    &[pure("suite"), pure("array")],
    &[pure("record")],
    &[pure("plan"), pure("meter")],
    &[pure("engine")],
    &[pure("explain")],
    &[pure("study"), pure("predict")],
    &[pure("report"), pure("import"), edge("store"), edge("stack"), edge("uring"), edge("db")],
    &[edge("runner"), edge("serve"), edge("volume")],
    &[edge("cli")],
];

/// Packages that are no rooms: nothing of ours may depend on them, they may on anything.
const NO_ROOMS: &[&str] = &["xtask", "bench-bare", "plimsoll-proof", FEATURES];

/// Has no code: tests depend on it for one set of features everywhere.
const FEATURES: &str = "plimsoll-features";

/// Crates that act on the machine: not for pure rooms.
const ACTING: &[&str] =
    &["rusqlite", "rustix", "libc", "io-uring", "tokio", "hyper", "axum", "mysql", "postgres"];

/// A crate of this workspace that ships.
#[derive(Debug)]
pub struct Room {
    pub name: &'static str,
    pub pure: bool,
}

const fn pure(name: &'static str) -> Room {
    Room { name, pure: true }
}

const fn edge(name: &'static str) -> Room {
    Room { name, pure: false }
}

/// Every room that decides and never acts.
pub fn pure_rooms() -> impl Iterator<Item = &'static str> {
    LEVELS.iter().flat_map(|level| level.iter()).filter(|room| room.pure).map(|room| room.name)
}

pub fn look(repo: &Repo) -> Result<Verdict> {
    faults(&repo.metadata(&["--no-deps"])?).map(Verdict::faults)
}

/// The room that a package is: `plimsoll-units` is `units`, `plimsoll` is `cli`.
fn room_of(package: &str) -> Option<&str> {
    if package == "plimsoll" { Some("cli") } else { package.strip_prefix("plimsoll-") }
}

fn place(room: &str) -> Option<(usize, &'static Room)> {
    LEVELS.iter().enumerate().find_map(|(level, rooms)| {
        rooms.iter().find(|candidate| candidate.name == room).map(|found| (level, found))
    })
}

fn faults(metadata: &Value) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let packages = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    for package in packages {
        let name = package["name"].as_str().context("a package without a name")?;
        if NO_ROOMS.contains(&name) {
            continue;
        }
        let Some(room) = room_of(name) else {
            faults.push(format!(
                "package `{name}` is neither a room (plimsoll-...) nor in the list of packages that are none"
            ));
            continue;
        };
        let Some((level, room)) = place(room) else {
            faults.push(format!("room `{room}` has no level in xtask/src/check/arrows.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let on = dependency["name"].as_str().context("a dependency without a name")?;
            let is_for_tests = dependency["kind"] == "dev";
            faults.extend(fault_of(level, room, on, is_for_tests));
        }
    }
    Ok(faults)
}

fn fault_of(level: usize, room: &Room, on: &str, is_for_tests: bool) -> Option<String> {
    let name = room.name;
    if on == FEATURES && is_for_tests {
        return None;
    }
    if NO_ROOMS.contains(&on) {
        return Some(format!("`{name}` depends on `{on}`, which is no room"));
    }
    if room.pure && !is_for_tests && ACTING.contains(&on) {
        return Some(format!("pure room `{name}` depends on `{on}`, which acts on the machine"));
    }
    let on = room_of(on)?;
    let Some((other, below)) = place(on) else {
        return Some(format!("`{name}` depends on `{on}`, which has no level"));
    };
    if is_for_tests {
        return (on == "cli").then(|| format!("tests of `{name}` depend on `cli`"));
    }
    if room.pure && !below.pure {
        return Some(format!("pure room `{name}` depends on edge room `{on}`"));
    }
    (other >= level).then(|| format!("`{name}` depends on `{on}`, which is not below it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(package: &str, on: &str, kind: Option<&str>) -> Vec<String> {
        let metadata = json!({"packages": [
            {"name": package, "dependencies": [{"name": on, "kind": kind}]}
        ]});
        faults(&metadata).unwrap()
    }

    #[test]
    fn downwards_is_allowed() {
        assert_eq!(found("plimsoll-engine", "plimsoll-device", None), [""; 0]);
        assert_eq!(found("plimsoll", "plimsoll-runner", None), [""; 0]);
        assert_eq!(found("plimsoll-store", "rusqlite", None), [""; 0]);
        assert_eq!(found("plimsoll-device", "plimsoll-engine", Some("dev")), [""; 0]);
        assert_eq!(found("bench-bare", "libc", None), [""; 0]);
        assert_eq!(found("plimsoll-units", FEATURES, Some("dev")), [""; 0]);
    }

    #[test]
    fn upwards_and_sideways_are_found() {
        assert_eq!(found("plimsoll-units", "plimsoll-stats", None).len(), 1);
        assert_eq!(found("plimsoll-store", "plimsoll-stack", None).len(), 1);
        assert_eq!(found("plimsoll-stats", "plimsoll-stats", Some("build")).len(), 1);
        assert_eq!(found("plimsoll-engine", "plimsoll", Some("dev")).len(), 1);
        assert_eq!(found("plimsoll-units", FEATURES, None).len(), 1);
    }

    #[test]
    fn a_pure_room_that_acts_is_found() {
        assert_eq!(found("plimsoll-engine", "libc", None).len(), 1);
        assert_eq!(found("plimsoll-engine", "libc", Some("build")).len(), 1);
        assert_eq!(found("plimsoll-report", "plimsoll-store", None).len(), 1);
        assert_eq!(found("plimsoll-engine", "rustix", Some("dev")), [""; 0]);
    }

    #[test]
    fn strangers_are_found() {
        assert_eq!(found("plimsoll-cellar", "serde", None).len(), 1);
        assert_eq!(found("cellar", "serde", None).len(), 1);
        assert_eq!(found("plimsoll-engine", "bench-bare", None).len(), 1);
    }
}
