//! Zfs pools.

use super::words::{paths, run, signature, step, wipe};
use super::{Expectation, Made, Stage, Step, Undo, top_device};
use crate::array::Level;
use crate::names::Names;
use crate::stack::{DeviceId, FileSystem, FileSystemKind, Leg, Maker, StackSpec};

/// As `blkid` calls a member.
const SIGNATURE: &str = "zfs_member";

/// A pool, mounted.
pub fn pool(stack: &StackSpec, fs: &FileSystem, names: &Names) -> Step {
    let pool = names.pool();
    let path = names.mount_point();
    let mut argv: Vec<String> =
        ["zpool", "create", "-f", "-m", &path].map(ToOwned::to_owned).to_vec();
    argv.extend(fs.options.iter().cloned());
    argv.push(pool.clone());
    let devices = devices(stack, names);
    if stack.legs.iter().any(|leg| leg.maker == Maker::Zfs) {
        argv.extend(stack.legs.iter().flat_map(vdevs));
        let spares = paths(stack.legs.iter().flat_map(|leg| &leg.spares));
        if !spares.is_empty() {
            argv.push("spare".to_owned());
            argv.extend(spares);
        }
    } else {
        argv.extend(paths(&devices));
    }
    let made = Made::Pool { name: pool.clone() };
    let mount = Made::Mount { path: path.clone() };
    let mut undo = vec![Undo::where_is(made.clone(), run(["zpool", "destroy", "-f", &pool]))];
    undo.extend(devices.iter().map(|device| wipe(device, SIGNATURE, Some(&pool))));
    let mut makes = vec![made, mount];
    makes.extend(devices.iter().map(|device| signature(device, SIGNATURE, Some(&pool))));
    Step {
        writes_to: stack.legs.iter().flat_map(Leg::devices).cloned().collect(),
        makes,
        undo,
        expect: vec![
            Expectation::FileSystem {
                path: path.clone(),
                kind: FileSystemKind::Zfs,
                device: pool.clone(),
                options: Vec::new(),
                unit: None,
                count: None,
            },
            Expectation::Members { of: pool.clone(), devices },
        ],
        ..step(Stage::FileSystem, format!("make zfs pool {pool}, mounted on {path}"), run(argv))
    }
}

/// Members and spares, or the one device under the pool.
fn devices(stack: &StackSpec, names: &Names) -> Vec<DeviceId> {
    if stack.legs.iter().any(|leg| leg.maker == Maker::Zfs) {
        return stack.legs.iter().flat_map(Leg::devices).cloned().collect();
    }
    top_device(stack, names).into_iter().collect()
}

/// A leg's words in `zpool create`: raid10 is several mirrors, raid0 is bare devices.
fn vdevs(leg: &Leg) -> Vec<String> {
    let grouped = |word: &str, members: &[DeviceId]| {
        std::iter::once(word.to_owned()).chain(paths(members)).collect::<Vec<_>>()
    };
    match leg.level {
        Some(Level::Raid1) => grouped("mirror", &leg.members),
        Some(Level::Raid5) => grouped("raidz1", &leg.members),
        Some(Level::Raid6) => grouped("raidz2", &leg.members),
        Some(Level::Raid10) => {
            leg.members.chunks(2).flat_map(|pair| grouped("mirror", pair)).collect()
        }
        _ => paths(&leg.members),
    }
}
