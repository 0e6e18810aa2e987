//! The rules, one after the other: pure functions over facts.

use units::Bytes;

use super::facts::{
    BlockFacts, DeviceUse, Facts, FileFacts, Lease, Place, Process, Subject, Users,
};
use super::refusal::RefusalReason;
use super::space::{OWN_RESERVE, space_reserve, suggest_scratch_size};
use crate::mark::Mark;
use crate::signature::{Family, Signature};
use crate::target::Space;

pub(super) fn judge_read(facts: &Facts, reasons: &mut Vec<RefusalReason>) {
    let path = facts.resolved.display().to_string();
    match &facts.subject {
        Subject::File(_) | Subject::Block(_) | Subject::Character => {}
        Subject::NewFile(_) if is_device_name(facts) => {
            reasons.push(RefusalReason::NoSuchDevice { path });
        }
        Subject::NewFile(_) => reasons.push(RefusalReason::NothingToRead { path }),
        Subject::Directory(_) => {
            reasons.push(RefusalReason::WrongKind { path, kind: "directory".to_owned() });
        }
        Subject::Other { name } => {
            reasons.push(RefusalReason::WrongKind { path, kind: name.clone() });
        }
    }
}

pub(super) fn judge_write(
    facts: &Facts,
    size: Bytes,
    also: Bytes,
    reasons: &mut Vec<RefusalReason>,
) {
    let path = facts.resolved.display().to_string();
    match &facts.subject {
        Subject::File(file) => judge_file(&path, file, size, also, reasons),
        Subject::NewFile(_) if is_device_name(facts) => {
            reasons.push(RefusalReason::NoSuchDevice { path });
        }
        Subject::NewFile(place) | Subject::Directory(place) => {
            judge_place(&path, place, reasons);
            judge_space(&path, place, (size, also), Taken::default(), reasons);
        }
        Subject::Block(block) => judge_block(&path, block, size, reasons),
        Subject::Character => reasons.push(RefusalReason::CharacterDevice { path }),
        Subject::Other { name } => {
            reasons.push(RefusalReason::WrongKind { path, kind: name.clone() });
        }
    }
}

/// Whether what is not there would be a device, by its place.
fn is_device_name(facts: &Facts) -> bool {
    let path = &facts.resolved;
    path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

fn judge_place(path: &str, place: &Place, reasons: &mut Vec<RefusalReason>) {
    let path = path.to_owned();
    if let Some(where_) = &place.not_storage {
        reasons.push(RefusalReason::NotStorage { path: path.clone(), place: where_.clone() });
    }
    if place.read_only {
        reasons.push(RefusalReason::ReadOnly { path, what: "file system" });
    }
}

/// What an existing file takes of its file system already.
#[derive(Clone, Copy, Default)]
struct Taken {
    allocated: Bytes,
    /// A write to this part takes new space all the same.
    shared: Bytes,
}

fn judge_space(
    path: &str,
    place: &Place,
    (size, also): (Bytes, Bytes),
    taken: Taken,
    reasons: &mut Vec<RefusalReason>,
) {
    // A total of 0 is a file system that does not tell (some FUSE).
    let Some(space) = place.space.filter(|s| s.total.get() > 0) else { return };
    let holes = size.get().saturating_sub(taken.allocated.get());
    let anew = taken.shared.min(size).get();
    let needed = holes.saturating_add(anew).saturating_add(also.get());
    let reserve = match place.is_own {
        // Nobody else's data wait for room there; file systems want some for themselves.
        true => Bytes::new(space.total.get().div_ceil(OWN_RESERVE)),
        false => space_reserve(space.total),
    };
    let left = space.free.get().saturating_sub(needed);
    if needed > 0 && left < reserve.get() {
        let kept = taken.allocated.get().saturating_sub(anew);
        let room = Space { free: Bytes::new(space.free.get().saturating_add(kept)), ..space };
        reasons.push(RefusalReason::NoSpace {
            path: path.to_owned(),
            needed: Bytes::new(needed),
            left: Bytes::new(left),
            reserve,
            total: space.total,
            fits: suggest_scratch_size(room, size).filter(|_| also == Bytes::ZERO),
        });
    }
}

/// Who uses it, in words.
pub(crate) fn in_use_by(all: &[Process]) -> String {
    if all.is_empty() {
        return "a process that is not visible from here, a memory map, or the kernel".to_owned();
    }
    all.iter().map(Process::to_string).collect::<Vec<_>>().join(", ")
}

fn judge_users(path: &str, users: &Users, reasons: &mut Vec<RefusalReason>) {
    if !users.by.is_empty() || users.lease == Lease::Taken {
        reasons.push(RefusalReason::InUse { path: path.to_owned(), by: in_use_by(&users.by) });
    }
}

fn judge_unchecked(
    path: &str,
    users: &Users,
    unchecked: &[String],
    allowed: bool,
    reasons: &mut Vec<RefusalReason>,
) {
    let blind = blind(users);
    if allowed || (unchecked.is_empty() && blind.is_none()) {
        return;
    }
    let what = unchecked.iter().cloned().chain(blind).collect::<Vec<_>>().join("; ");
    reasons.push(RefusalReason::Unchecked { path: path.to_owned(), what });
}

/// Who may use it unseen: of a device, and of a file without leases, the kernel says nothing.
fn blind(users: &Users) -> Option<String> {
    if users.lease != Lease::Unknown {
        return None;
    }
    let unseen = match users.unseen {
        0 => None,
        1 => Some("1 process could not be examined".to_owned()),
        count => Some(format!("{count} processes could not be examined")),
    };
    let hidden = users.may_be_hidden.then(|| {
        "/proc does not show all processes (another PID namespace, such as a container's, or hidepid)"
            .to_owned()
    });
    let all: Vec<String> = unseen.into_iter().chain(hidden).collect();
    (!all.is_empty()).then(|| format!("who else has it open ({})", all.join("; ")))
}

fn judge_file(
    path: &str,
    file: &FileFacts,
    size: Bytes,
    also: Bytes,
    reasons: &mut Vec<RefusalReason>,
) {
    let owned = || path.to_owned();
    judge_place(path, &file.place, reasons);
    if let Some(what) = &file.own {
        reasons.push(RefusalReason::Own { path: owned(), what: what.clone() });
    }
    if file.swap {
        reasons.push(RefusalReason::Swap { path: owned(), device: owned() });
    }
    for device in &file.loops {
        let device = format!("/dev/{device}");
        reasons.push(RefusalReason::LoopFile { path: owned(), device });
    }
    if !file.swap && file.loops.is_empty() {
        judge_users(path, &file.users, reasons);
    }
    judge_unchecked(path, &file.users, &file.unchecked, file.even_though_unchecked, reasons);
    if file.links > 1 {
        reasons.push(RefusalReason::HardLinks { path: owned(), links: file.links });
    }
    if !file.named
        && let Some(mark) = foreign(&file.mark)
    {
        if !file.named_others.is_empty() {
            let named = file.named_others.join(", ");
            reasons.push(RefusalReason::NamedOther { path: owned(), flag: "--overwrite", named });
        }
        reasons.push(RefusalReason::NotOurs { path: owned(), size: file.size, mark });
    }
    let taken = Taken { allocated: file.allocated.min(file.size), shared: file.shared };
    judge_space(path, &file.place, (size, also), taken, reasons);
}

/// Why a mark does not make the file ours; `None` if it does.
fn foreign(mark: &Mark) -> Option<String> {
    Some(match mark {
        Mark::Ours => return None,
        Mark::None => "it has no mark".to_owned(),
        Mark::Stale { why } => why.clone(),
        Mark::Unsupported => {
            "its file system keeps no extended attributes, so that no file on it has a mark"
                .to_owned()
        }
        Mark::Unreadable { why } => format!("its mark cannot be read ({why})"),
    })
}

fn judge_block(path: &str, block: &BlockFacts, size: Bytes, reasons: &mut Vec<RefusalReason>) {
    let owned = || path.to_owned();
    for DeviceUse { device, by } in &block.system {
        let (device, what) = (device.clone(), by.clone());
        reasons.push(RefusalReason::System { path: owned(), device, what });
    }
    for DeviceUse { device, by } in &block.mounts {
        let (device, at) = (device.clone(), by.clone());
        reasons.push(RefusalReason::Mounted { path: owned(), device, at });
    }
    for device in &block.swaps {
        let device = format!("/dev/{device}");
        reasons.push(RefusalReason::Swap { path: owned(), device });
    }
    for DeviceUse { device, by } in &block.holders {
        let (device, by) = (device.clone(), by.clone());
        reasons.push(RefusalReason::Held { path: owned(), device, by });
    }
    judge_users(path, &block.users, reasons);
    judge_unchecked(path, &block.users, &block.unchecked, block.even_though_unchecked, reasons);
    if block.read_only {
        reasons.push(RefusalReason::ReadOnly { path: owned(), what: "device" });
    }
    if !block.named {
        if block.named_others.is_empty() {
            let summary = block.summary.clone();
            reasons.push(RefusalReason::NotNamed { path: owned(), summary });
        } else {
            let named = block.named_others.join(", ");
            reasons.push(RefusalReason::NamedOther { path: owned(), flag: "--destroy", named });
        }
    }
    judge_contents(path, block, reasons);
    if size > block.size {
        reasons.push(RefusalReason::TooSmall { path: owned(), size: block.size, wanted: size });
    }
}

fn judge_contents(path: &str, block: &BlockFacts, reasons: &mut Vec<RefusalReason>) {
    let path = path.to_owned();
    let signatures = match &block.signatures {
        Ok(signatures) => signatures,
        Err(why) => {
            reasons.push(RefusalReason::CannotProbe { path, why: why.clone() });
            return;
        }
    };
    let mut found: Vec<String> = signatures.iter().map(Signature::to_string).collect();
    if !block.partitions.is_empty() {
        found.push(format!("partitions {}", block.partitions.join(", ")));
    }
    if found.is_empty() {
        return;
    }
    let zfs = signatures.iter().any(|s| s.family == Family::Member && s.name.starts_with("zfs"));
    if zfs && block.zfs_pools {
        let (device, by) = (block.name.clone(), "zfs, which has pools imported".to_owned());
        reasons.push(RefusalReason::Held { path: path.clone(), device, by });
    }
    if !block.system_unseen.is_empty() {
        let unseen = block.system_unseen.join("; ");
        reasons.push(RefusalReason::SystemUnseen { path: path.clone(), unseen });
    }
    if !block.even_though_signature {
        reasons.push(RefusalReason::Signature { path, found: found.join(", ") });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_taken_for_absent_who_could_not_be_seen() {
        let users = |unseen, may_be_hidden, lease| Users {
            unseen,
            may_be_hidden,
            lease,
            ..Users::default()
        };
        let is_blind = |unseen, hidden, lease| blind(&users(unseen, hidden, lease)).is_some();
        assert!(!is_blind(0, false, Lease::Unknown), "all were seen");
        assert!(is_blind(1, false, Lease::Unknown));
        assert!(is_blind(0, true, Lease::Unknown));
        // The kernel's word counts more than any look.
        assert!(!is_blind(9, true, Lease::Free));
        // Another writer than this process is a reason of its own.
        assert!(!is_blind(9, true, Lease::Taken));
        let said = blind(&users(7, true, Lease::Unknown)).unwrap();
        assert!(said.contains("7 processes could not") && said.contains("container"), "{said}");
        assert!(blind(&users(1, false, Lease::Unknown)).unwrap().contains("1 process could"));
    }

    #[test]
    fn who_insists_may_write_unseen() {
        let users = Users { unseen: 3, ..Users::default() };
        let judged = |unchecked: &[String], allowed| {
            let mut reasons = Vec::new();
            judge_unchecked("/x", &users, unchecked, allowed, &mut reasons);
            reasons
        };
        assert!(judged(&[], true).is_empty());
        let both = judged(&["what is mounted".to_owned()], false);
        let [RefusalReason::Unchecked { what, .. }] = &both[..] else { unreachable!("{both:?}") };
        assert!(what.starts_with("what is mounted; who else has it open (3 "), "{what}");
    }
}
