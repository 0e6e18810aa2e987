//! A member fails, and is replaced.

use super::file_system::mount_words;
use super::words::{run, step};
use super::{Made, Stage, Step, StepsError, Undo, Wait, lvm, md};
use crate::array::Level;
use crate::names::Names;
use crate::stack::{ArrayState, DeviceId, FileSystemKind, Leg, Maker, StackSpec};

/// What takes the last member of the first leg out of it.
///
/// A hot spare is taken out first, so that the array stays degraded until [`rebuild`].
///
/// # Errors
///
/// The first leg is made by something that cannot be told to lose a member.
pub fn degrade(stack: &StackSpec, names: &Names) -> Result<Vec<Step>, StepsError> {
    let state = ArrayState::Degraded;
    let (leg, victim) = victim(stack, state)?;
    match leg.maker {
        Maker::Md => Ok(fail_md(leg, victim, names)),
        Maker::Zfs => Ok(vec![fail_zfs(victim, names)]),
        Maker::Btrfs => Ok(fail_btrfs(stack, leg, victim, names)),
        maker => Err(no_such(maker, state)),
    }
}

/// What fills a replacement: the spare where there is one, or the same device again, erased.
///
/// The first array of the stack must have been through [`degrade`]; an LVM volume must not. The
/// last step says what to wait for, should a caller want to see the end.
///
/// # Errors
///
/// As [`degrade`].
pub fn rebuild(stack: &StackSpec, names: &Names) -> Result<Vec<Step>, StepsError> {
    let state = ArrayState::Rebuilding;
    let (leg, victim) = victim(stack, state)?;
    match leg.maker {
        Maker::Md => Ok(fill_md(leg, victim, names)),
        Maker::Lvm => Ok(vec![fill_lvm(victim, names)]),
        Maker::Zfs => fill_zfs(leg, victim, names),
        Maker::Btrfs => Ok(vec![fill_btrfs(leg, victim, names)]),
        maker => Err(no_such(maker, state)),
    }
}

fn no_such(maker: Maker, state: ArrayState) -> StepsError {
    let why = match maker {
        Maker::Lvm => "it has no command that fails a member",
        _ => "there is nothing that could lose one",
    };
    StepsError::NoSuchState { maker, state, why }
}

fn victim(stack: &StackSpec, state: ArrayState) -> Result<(&Leg, &DeviceId), StepsError> {
    let leg = stack.legs.first().filter(|leg| leg.level.is_some_and(Level::is_redundant));
    let victim = leg.and_then(|leg| Some((leg, leg.members.last()?)));
    victim.ok_or_else(|| {
        let maker = stack.legs.first().map_or(Maker::Device, |leg| leg.maker);
        no_such(maker, state)
    })
}

/// Of a mirror of two stripes a whole half fails: a stripe that lost one is gone.
fn member_of(leg: &Leg, victim: &DeviceId, names: &Names) -> DeviceId {
    match leg.level {
        Some(Level::Raid01) => md::path(&names.md_half(0, 'b')),
        _ => victim.clone(),
    }
}

fn fail_md(leg: &Leg, victim: &DeviceId, names: &Names) -> Vec<Step> {
    let array = md::path(&names.md_leg(0));
    let member = member_of(leg, victim, names);
    let manage = |what: String, option: &str, device: &DeviceId| {
        let words = ["mdadm", "--manage", array.as_str(), option, device.as_str()];
        step(Stage::State, what, run(words))
    };
    let mut steps: Vec<Step> = leg
        .spares
        .iter()
        .map(|spare| manage(format!("take spare {spare} out of {array}"), "--remove", spare))
        .collect();
    steps.push(manage(format!("fail {member} in {array}"), "--fail", &member));
    steps.push(manage(format!("take {member} out of {array}"), "--remove", &member));
    steps
}

fn fill_md(leg: &Leg, victim: &DeviceId, names: &Names) -> Vec<Step> {
    let name = names.md_leg(0);
    let array = md::path(&name);
    let spare = leg.spares.first();
    let member = spare.cloned().unwrap_or_else(|| member_of(leg, victim, names));
    let mut steps = Vec::new();
    // A member that is known would be brought up to date, not filled.
    let erase = ["mdadm", "--zero-superblock", member.as_str()];
    steps.push(Step {
        writes_to: written(leg, &member),
        ..step(Stage::State, format!("erase the array's mark on {member}"), run(erase))
    });
    let add = ["mdadm", "--manage", array.as_str(), "--add", member.as_str()];
    steps.push(Step {
        writes_to: written(leg, &member),
        waits_for: Some(Wait::MdSync { path: array.as_str().to_owned() }),
        undo: vec![md::erase(&member, &name)],
        ..step(Stage::State, format!("add {member} to {array}, which begins to fill it"), run(add))
    });
    steps
}

/// The operator's devices under a member.
fn written(leg: &Leg, member: &DeviceId) -> Vec<DeviceId> {
    match leg.level {
        Some(Level::Raid01) => leg.members.iter().skip(leg.members.len() / 2).cloned().collect(),
        _ => vec![member.clone()],
    }
}

fn fill_lvm(victim: &DeviceId, names: &Names) -> Step {
    let group = names.group_of_leg(0);
    let volume = format!("{group}/{}", names.volume());
    let words =
        ["lvchange", "--config", lvm::NO_BACKUP, "--yes", "--rebuild", victim.as_str(), &volume];
    Step {
        writes_to: vec![victim.clone()],
        waits_for: Some(Wait::LvmSync { group, volume: names.volume().to_owned() }),
        ..step(Stage::State, format!("fill {victim} in {volume} anew"), run(words))
    }
}

fn fail_zfs(victim: &DeviceId, names: &Names) -> Step {
    let pool = names.pool();
    let words = ["zpool", "offline", &pool, victim.as_str()];
    step(Stage::State, format!("take {victim} out of pool {pool}"), run(words))
}

/// Zfs does not fill a member anew that it knows, however much of it is erased.
fn fill_zfs(leg: &Leg, victim: &DeviceId, names: &Names) -> Result<Vec<Step>, StepsError> {
    let pool = names.pool();
    let spare = leg.spares.first().ok_or(StepsError::NoSuchState {
        maker: Maker::Zfs,
        state: ArrayState::Rebuilding,
        why: "it fills no member that it knows, and there is no spare",
    })?;
    let words = ["zpool", "replace", &pool, victim.as_str(), spare.as_str()];
    let what = format!("fill {spare} in place of {victim} in pool {pool}");
    Ok(vec![Step { writes_to: vec![spare.clone()], ..step(Stage::State, what, run(words)) }])
}

/// Btrfs knows no failed member: one that is gone at the next mount.
fn fail_btrfs(stack: &StackSpec, leg: &Leg, victim: &DeviceId, names: &Names) -> Vec<Step> {
    let path = names.mount_point();
    let left: Vec<DeviceId> = leg.members.iter().filter(|m| *m != victim).cloned().collect();
    let Some(first) = left.first() else { return Vec::new() };
    let kind = FileSystemKind::Btrfs;
    let mount = mount_words(stack, kind, first, &left, &path, &["degraded"]);
    let made = Made::Mount { path: path.clone() };
    let erase = ["wipefs", "--all", "--quiet", "--types", kind.name(), victim.as_str()];
    let forget = ["btrfs", "device", "scan", "--forget"];
    vec![
        step(Stage::State, format!("unmount {path}"), run(["umount", &path])),
        Step {
            writes_to: vec![victim.clone()],
            ..step(Stage::State, format!("erase the mark of btrfs on {victim}"), run(erase))
        },
        step(Stage::State, "let btrfs forget devices that are not mounted".to_owned(), run(forget)),
        Step {
            makes: vec![made.clone()],
            undo: vec![Undo::where_is(made, run(["umount", &path]))],
            ..step(Stage::State, format!("mount {path} without {victim}"), run(mount))
        },
    ]
}

/// Members are numbered from 1 in the order in which they were given to `mkfs`.
fn fill_btrfs(leg: &Leg, victim: &DeviceId, names: &Names) -> Step {
    let path = names.mount_point();
    let number = leg.members.len().to_string();
    let words = ["btrfs", "replace", "start", "-f", &number, victim.as_str(), &path];
    Step {
        writes_to: vec![victim.clone()],
        ..step(Stage::State, format!("fill {victim} in {path} anew"), run(words))
    }
}
