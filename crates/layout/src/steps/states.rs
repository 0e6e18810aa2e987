//! A member fails, and is replaced.

use super::file_system::mount_words;
use super::words::{run, step};
use super::{Expectation, Made, Stage, Step, StepsError, Undo, Wait, lvm, md};
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

/// What fills the replacement once more, after [`rebuild`] has come to its end; empty where that
/// cannot be done while it is in use.
///
/// # Errors
///
/// As [`degrade`].
pub fn refill(stack: &StackSpec, names: &Names) -> Result<Vec<Step>, StepsError> {
    let (leg, victim) = victim(stack, ArrayState::Rebuilding)?;
    Ok(match leg.maker {
        Maker::Md => {
            let member = replacement(leg, victim, names);
            let failed = fail_member(leg, &member, names);
            failed.into_iter().chain(fill_md(leg, victim, names)).collect()
        }
        Maker::Lvm => vec![fill_lvm(victim, names)],
        Maker::Device | Maker::Btrfs | Maker::Zfs => Vec::new(),
    })
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
    let take = |spare: &DeviceId| {
        manage(&array, format!("take spare {spare} out of {array}"), "--remove", spare)
    };
    let spares = leg.spares.iter().map(take);
    spares.chain(fail_member(leg, &member_of(leg, victim, names), names)).collect()
}

fn manage(array: &DeviceId, what: String, option: &str, device: &DeviceId) -> Step {
    let words = ["mdadm", "--manage", array.as_str(), option, device.as_str()];
    step(Stage::State, what, run(words))
}

fn fail_member(leg: &Leg, member: &DeviceId, names: &Names) -> Vec<Step> {
    let array = md::path(&names.md_leg(0));
    let fail = manage(&array, format!("fail {member} in {array}"), "--fail", member);
    let remove = manage(&array, format!("take {member} out of {array}"), "--remove", member);
    vec![fail, Step { expect: vec![in_state(leg, &array, ArrayState::Degraded)], ..remove }]
}

fn in_state(leg: &Leg, array: &DeviceId, state: ArrayState) -> Expectation {
    let members = match leg.level {
        // The mirror of the two halves is what lost one.
        Some(Level::Raid01) => 2,
        _ => u32::try_from(leg.members.len()).unwrap_or(u32::MAX),
    };
    Expectation::Array {
        path: array.as_str().to_owned(),
        level: match leg.level {
            Some(Level::Raid01) | None => Level::Raid1,
            Some(level) => level,
        },
        members,
        chunk: None,
        state,
    }
}

/// The member that is filled: the spare where there is one, else the one that failed.
fn replacement(leg: &Leg, victim: &DeviceId, names: &Names) -> DeviceId {
    leg.spares.first().cloned().unwrap_or_else(|| member_of(leg, victim, names))
}

/// Nothing of it has an undo: the step that made the array stops it, and takes its mark off every
/// member and spare. Before that no mark can be erased.
fn fill_md(leg: &Leg, victim: &DeviceId, names: &Names) -> Vec<Step> {
    let array = md::path(&names.md_leg(0));
    let member = replacement(leg, victim, names);
    // A member that is known would be brought up to date, not filled.
    let erase = ["mdadm", "--zero-superblock", member.as_str()];
    let erase = Step {
        writes_to: written(leg, &member),
        ..step(Stage::State, format!("erase the array's mark on {member}"), run(erase))
    };
    let what = format!("add {member} to {array}, which begins to fill it");
    let add = Step {
        writes_to: written(leg, &member),
        waits_for: Some(Wait::MdSync { path: array.as_str().to_owned() }),
        expect: vec![in_state(leg, &array, ArrayState::Rebuilding)],
        ..manage(&array, what, "--add", &member)
    };
    vec![erase, add]
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
    Ok(vec![Step {
        writes_to: vec![spare.clone()],
        waits_for: Some(Wait::ZfsResilver { pool: pool.clone() }),
        ..step(Stage::State, what, run(words))
    }])
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
    // By name: without one it forgets everybody's that are not mounted.
    let forget = ["btrfs", "device", "scan", "--forget", victim.as_str()];
    vec![
        step(Stage::State, format!("unmount {path}"), run(["umount", &path])),
        Step {
            writes_to: vec![victim.clone()],
            ..step(Stage::State, format!("erase the mark of btrfs on {victim}"), run(erase))
        },
        step(Stage::State, format!("let btrfs forget {victim}"), run(forget)),
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
    let what = format!("fill {victim} in {path} anew");
    Step {
        writes_to: vec![victim.clone()],
        waits_for: Some(Wait::BtrfsReplace { path: path.clone() }),
        ..step(Stage::State, what, run(words))
    }
}
