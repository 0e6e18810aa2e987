//! What may be written, rule by rule, on facts made by hand.

use stack::{
    Access, Action, BlockFacts, DeviceNumber, DeviceUse, Facts, Family, FileFacts, FileId, Lease,
    Mark, Permit, Place, Process, RefusalReason, Signature, Space, Subject, Users, decide,
    space_reserve, suggest_scratch_size,
};
use units::{ByteOffset, Bytes};

const WRITE: Access = Access::Write { size: Bytes::gib(4), also: Bytes::ZERO };

fn place() -> Place {
    Place {
        file_system: "ext4".to_owned(),
        space: Some(Space { free: Bytes::gib(50), total: Bytes::gib(100) }),
        ..Place::default()
    }
}

/// A file that may be overwritten.
fn file() -> FileFacts {
    FileFacts {
        place: place(),
        id: FileId { device: DeviceNumber { major: 8, minor: 1 }, inode: 12 },
        size: Bytes::gib(4),
        allocated: Bytes::gib(4),
        shared: Bytes::ZERO,
        links: 1,
        mark: Mark::Ours,
        named: false,
        named_others: Vec::new(),
        own: None,
        swap: false,
        loops: Vec::new(),
        users: Users::default(),
        unchecked: Vec::new(),
        even_though_unchecked: false,
    }
}

/// A device that may be destroyed.
fn block() -> BlockFacts {
    BlockFacts {
        name: "sdb".to_owned(),
        number: DeviceNumber { major: 8, minor: 16 },
        size: Bytes::gib(100),
        summary: "sdb: disk, 100 GiB".to_owned(),
        read_only: false,
        named: true,
        named_others: Vec::new(),
        even_though_signature: false,
        mounts: Vec::new(),
        swaps: Vec::new(),
        holders: Vec::new(),
        system: Vec::new(),
        system_unseen: Vec::new(),
        zfs_pools: false,
        signatures: Ok(Vec::new()),
        partitions: Vec::new(),
        users: Users::default(),
        unchecked: Vec::new(),
        even_though_unchecked: false,
    }
}

fn facts(access: Access, subject: Subject) -> Facts {
    Facts { given: "/srv/link".into(), resolved: "/srv/target".into(), access, subject }
}

fn refused(access: Access, subject: Subject) -> Vec<RefusalReason> {
    match decide(&facts(access, subject)) {
        Ok(permit) => panic!("allowed: {permit:?}"),
        Err(refusal) => refusal.reasons().cloned().collect(),
    }
}

fn allowed(access: Access, subject: Subject) -> Permit {
    decide(&facts(access, subject)).unwrap_or_else(|refusal| panic!("refused: {refusal}"))
}

/// The one reason for which a file is refused after a change.
fn file_reason(change: impl FnOnce(&mut FileFacts)) -> RefusalReason {
    let mut facts = file();
    change(&mut facts);
    one(refused(WRITE, Subject::File(Box::new(facts))))
}

/// The one reason for which a device is refused after a change, with and without
/// `--even-though signature`, which must not matter.
fn block_reason(change: impl Fn(&mut BlockFacts)) -> RefusalReason {
    let reasons = [false, true].map(|even_though_signature| {
        let mut facts = BlockFacts { even_though_signature, ..block() };
        change(&mut facts);
        one(refused(WRITE, Subject::Block(Box::new(facts))))
    });
    let [without, with] = reasons;
    assert_eq!(without, with);
    with
}

fn one(mut reasons: Vec<RefusalReason>) -> RefusalReason {
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    reasons.remove(0)
}

fn process() -> Process {
    Process { id: 4711, name: "postgres".to_owned() }
}

fn uses(device: &str, by: &str) -> Vec<DeviceUse> {
    vec![DeviceUse { device: device.to_owned(), by: by.to_owned() }]
}

fn signature(name: &str, family: Family) -> Signature {
    Signature { name: name.to_owned(), family, at: ByteOffset::new(1080) }
}

#[test]
fn our_own_file_is_overwritten() {
    let permit = allowed(WRITE, Subject::File(Box::new(file())));
    assert_eq!(permit.action, Action::Overwrite);
    assert_eq!(permit.describe()[0], "/srv/link is /srv/target.");
    assert!(permit.describe()[1].contains("which plimsoll made"), "{permit:?}");
}

#[test]
fn a_file_without_a_good_mark_is_not_ours() {
    for mark in [
        Mark::None,
        Mark::Unsupported,
        Mark::Stale { why: "a copy".to_owned() },
        Mark::Unreadable { why: "EIO".to_owned() },
    ] {
        let reason = file_reason(|f| f.mark = mark.clone());
        assert!(matches!(reason, RefusalReason::NotOurs { .. }), "{mark:?}: {reason:?}");
        assert!(reason.hint().unwrap().contains("--overwrite /srv/target"));
        let named = FileFacts { mark, named: true, ..file() };
        let permit = allowed(WRITE, Subject::File(Box::new(named)));
        assert!(permit.describe()[1].contains("as --overwrite says"), "{permit:?}");
    }
}

#[test]
fn naming_another_file_is_not_naming_this() {
    let facts = FileFacts { mark: Mark::None, named_others: vec!["/x".to_owned()], ..file() };
    let reasons = refused(WRITE, Subject::File(Box::new(facts)));
    assert!(matches!(&reasons[0], RefusalReason::NamedOther { named, .. } if named == "/x"));
    assert!(matches!(&reasons[1], RefusalReason::NotOurs { .. }));
}

#[test]
fn a_file_in_other_use_is_refused_whatever_is_said() {
    let reason = |change: fn(&mut FileFacts)| {
        file_reason(|f| {
            f.named = true;
            change(f);
        })
    };
    assert!(matches!(reason(|f| f.links = 2), RefusalReason::HardLinks { links: 2, .. }));
    assert!(matches!(reason(|f| f.swap = true), RefusalReason::Swap { .. }));
    assert!(matches!(
        reason(|f| f.loops = vec!["loop3".to_owned()]),
        RefusalReason::LoopFile { device, .. } if device == "/dev/loop3"
    ));
    assert!(matches!(
        reason(|f| f.users.by = vec![process()]),
        RefusalReason::InUse { by, .. } if by == "postgres (pid 4711)"
    ));
    assert!(matches!(
        reason(|f| f.users.lease = Lease::Taken),
        RefusalReason::InUse { by, .. } if by.contains("not visible")
    ));
    assert!(matches!(
        reason(|f| f.own = Some("the store of results".to_owned())),
        RefusalReason::Own { .. }
    ));
    assert!(matches!(reason(|f| f.place.read_only = true), RefusalReason::ReadOnly { .. }));
    assert!(matches!(
        reason(|f| f.place.not_storage = Some("sysfs".to_owned())),
        RefusalReason::NotStorage { .. }
    ));
}

#[test]
fn what_cannot_be_checked_is_refused_until_that_is_waived() {
    let unchecked = || vec!["which processes use it".to_owned()];
    assert!(matches!(
        file_reason(|f| f.unchecked = unchecked()),
        RefusalReason::Unchecked { what, .. } if what == "which processes use it"
    ));
    assert!(matches!(block_reason(|b| b.unchecked = unchecked()), RefusalReason::Unchecked { .. }));
    let waived = FileFacts { unchecked: unchecked(), even_though_unchecked: true, ..file() };
    allowed(WRITE, Subject::File(Box::new(waived)));
    let waived = BlockFacts { unchecked: unchecked(), even_though_unchecked: true, ..block() };
    allowed(WRITE, Subject::Block(Box::new(waived)));
}

#[test]
fn what_could_not_be_seen_is_said() {
    let users = Users { unseen: 5, ..Users::default() };
    let insisted = FileFacts { users, even_though_unchecked: true, ..file() };
    let permit = allowed(WRITE, Subject::File(Box::new(insisted)));
    assert!(permit.describe().iter().any(|s| s.contains("5 other processes")), "{permit:?}");
}

#[test]
fn a_file_that_is_cut_is_said_to_be() {
    let larger = || FileFacts { size: Bytes::gib(8), allocated: Bytes::gib(8), ..file() };
    let permit = allowed(WRITE, Subject::File(Box::new(larger())));
    let cut = "Cuts it to 4 GiB: what lies beyond is lost.";
    assert!(permit.cuts() && permit.describe().iter().any(|s| s == cut), "{permit:?}");
    let two = [permit.clone(), permit];
    let said = stack::describe_all(&two);
    assert!(said.iter().any(|s| s.starts_with("Cuts those that are longer")), "{said:?}");
    // Another's file keeps its length.
    let others = FileFacts { mark: Mark::None, named: true, ..larger() };
    let permit = allowed(WRITE, Subject::File(Box::new(others)));
    assert!(!permit.cuts() && !permit.describe().iter().any(|s| s.contains("Cuts")), "{permit:?}");
    assert!(!allowed(WRITE, Subject::File(Box::new(file()))).cuts(), "its length stays");
}

#[test]
fn new_files_and_scratch_files_are_made() {
    let permit = allowed(WRITE, Subject::NewFile(place()));
    assert_eq!(permit.action, Action::Create);
    assert!(permit.describe().iter().any(|s| s == "Leaves 46 GiB free of 100 GiB."));
    let permit = allowed(WRITE, Subject::Directory(place()));
    assert_eq!(permit.action, Action::ScratchInside);
    assert!(permit.describe()[1].contains("removes it afterwards"));
    let place = Place { not_storage: Some("/dev".to_owned()), ..place() };
    let reasons = refused(WRITE, Subject::NewFile(place));
    assert!(matches!(one(reasons), RefusalReason::NotStorage { .. }));
}

#[test]
fn reading_needs_no_consent_but_something_to_read() {
    let file = FileFacts { mark: Mark::None, links: 3, ..file() };
    let block = BlockFacts { named: false, mounts: uses("sdb", "/"), ..block() };
    for subject in
        [Subject::File(Box::new(file)), Subject::Block(Box::new(block)), Subject::Character]
    {
        assert_eq!(allowed(Access::Read, subject).action, Action::Read);
    }
    let reason = one(refused(Access::Read, Subject::NewFile(place())));
    assert!(matches!(reason, RefusalReason::NothingToRead { .. }));
    for subject in [Subject::Directory(place()), Subject::Other { name: "pipe".to_owned() }] {
        assert!(matches!(one(refused(Access::Read, subject)), RefusalReason::WrongKind { .. }));
    }
}

#[test]
fn character_devices_and_pipes_are_not_written() {
    let reason = one(refused(WRITE, Subject::Character));
    assert!(matches!(reason, RefusalReason::CharacterDevice { .. }));
    let reason = one(refused(WRITE, Subject::Other { name: "socket".to_owned() }));
    assert!(matches!(reason, RefusalReason::WrongKind { .. }));
}

#[test]
fn a_blank_named_device_is_destroyed() {
    let permit = allowed(WRITE, Subject::Block(Box::new(block())));
    assert_eq!(permit.action, Action::Destroy);
    assert!(permit.describe()[1].contains("sdb: disk, 100 GiB"), "{permit:?}");
    assert!(permit.describe()[2].contains("Found nothing"), "{permit:?}");
}

#[test]
fn a_device_must_be_named() {
    let reason = block_reason(|b| b.named = false);
    assert!(matches!(reason, RefusalReason::NotNamed { .. }));
    assert!(reason.hint().unwrap().contains("--destroy /srv/target"));
    let reason = block_reason(|b| {
        b.named = false;
        b.named_others = vec!["/dev/sdc".to_owned()];
    });
    assert!(matches!(reason, RefusalReason::NamedOther { named, .. } if named == "/dev/sdc"));
}

#[test]
fn a_device_in_use_is_never_written() {
    assert!(matches!(
        block_reason(|b| b.mounts = uses("sdb1", "/srv")),
        RefusalReason::Mounted { device, at, .. } if device == "sdb1" && at == "/srv"
    ));
    assert!(matches!(
        block_reason(|b| b.swaps = vec!["sdb2".to_owned()]),
        RefusalReason::Swap { device, .. } if device == "/dev/sdb2"
    ));
    assert!(matches!(
        block_reason(|b| b.holders = uses("sdb", "md0")),
        RefusalReason::Held { by, .. } if by == "md0"
    ));
    assert!(matches!(block_reason(|b| b.users.by = vec![process()]), RefusalReason::InUse { .. }));
    assert!(matches!(block_reason(|b| b.read_only = true), RefusalReason::ReadOnly { .. }));
    assert!(matches!(
        block_reason(|b| b.signatures = Err("EIO".to_owned())),
        RefusalReason::CannotProbe { .. }
    ));
    assert!(matches!(block_reason(|b| b.size = Bytes::gib(3)), RefusalReason::TooSmall { .. }));
}

#[test]
fn the_systems_disk_is_never_written() {
    let reason = block_reason(|b| b.system = uses("sdb1", "/, /usr"));
    assert!(matches!(reason, RefusalReason::System { .. }));
    assert_eq!(reason.to_string(), "/srv/target is never written: sdb1 is under /, /usr");
    // The hint must not tell how to go on all the same.
    assert_eq!(reason.hint().as_deref(), Some("name a file on it instead"));
}

#[test]
fn a_signature_must_be_waved_through_by_name() {
    for change in [
        (|b: &mut BlockFacts| b.signatures = Ok(vec![signature("ext4", Family::FileSystem)]))
            as fn(&mut _),
        |b| b.signatures = Ok(vec![signature("LVM physical volume", Family::Member)]),
        |b| b.signatures = Ok(vec![signature("unknown data", Family::UnknownData)]),
        |b| b.signatures = Ok(vec![signature("zfs member", Family::Member)]),
        |b| b.partitions = vec!["sdb1".to_owned()],
    ] {
        let mut facts = block();
        change(&mut facts);
        let reason = one(refused(WRITE, Subject::Block(Box::new(facts.clone()))));
        assert!(matches!(reason, RefusalReason::Signature { .. }));
        facts.even_though_signature = true;
        let permit = allowed(WRITE, Subject::Block(Box::new(facts)));
        assert!(permit.describe()[2].starts_with("On it there is: "), "{permit:?}");
    }
}

#[test]
fn a_zfs_member_is_held_while_pools_are_imported() {
    let facts = BlockFacts {
        signatures: Ok(vec![signature("zfs member", Family::Member)]),
        zfs_pools: true,
        even_though_signature: true,
        ..block()
    };
    let reason = one(refused(WRITE, Subject::Block(Box::new(facts))));
    assert!(matches!(reason, RefusalReason::Held { .. }));
}

#[test]
fn where_the_system_is_cannot_be_seen_only_blank_devices_are_written() {
    let unseen = BlockFacts { system_unseen: vec!["overlay".to_owned()], ..block() };
    allowed(WRITE, Subject::Block(Box::new(unseen.clone())));
    let facts = BlockFacts {
        signatures: Ok(vec![signature("xfs", Family::FileSystem)]),
        even_though_signature: true,
        ..unseen
    };
    let reason = one(refused(WRITE, Subject::Block(Box::new(facts))));
    assert!(matches!(reason, RefusalReason::SystemUnseen { .. }));
}

#[test]
fn the_gravest_reason_comes_first() {
    let facts = BlockFacts {
        named: false,
        system: uses("sdb", "/"),
        mounts: uses("sdb", "/"),
        signatures: Ok(vec![signature("xfs", Family::FileSystem)]),
        ..block()
    };
    let reasons = refused(WRITE, Subject::Block(Box::new(facts)));
    assert!(matches!(reasons[0], RefusalReason::System { .. }));
    assert_eq!(reasons.len(), 4);
}

#[test]
fn the_reserve_is_five_percent_or_a_gib() {
    assert_eq!(space_reserve(Bytes::gib(100)), Bytes::gib(5));
    assert_eq!(space_reserve(Bytes::gib(20)), Bytes::gib(1));
    assert_eq!(space_reserve(Bytes::gib(1)), Bytes::gib(1));
    assert_eq!(space_reserve(Bytes::gib(160)), Bytes::gib(8));
    assert_eq!(space_reserve(Bytes::new(u64::MAX)), Bytes::gib(8));
}

#[test]
fn a_file_must_leave_the_reserve() {
    let refused_at = |free: Bytes, total: Bytes, size: Bytes| {
        let place = Place { space: Some(Space { free, total }), ..place() };
        let access = Access::Write { size, also: Bytes::ZERO };
        decide(&facts(access, Subject::NewFile(place))).err()
    };
    assert!(refused_at(Bytes::gib(9), Bytes::gib(100), Bytes::gib(4)).is_none(), "to the byte");
    let one_more = Bytes::new(Bytes::gib(4).get() + 1);
    assert!(refused_at(Bytes::gib(9), Bytes::gib(100), one_more).is_some());
    assert!(refused_at(Bytes::gib(4), Bytes::gib(10), Bytes::gib(3)).is_none());
    let refusal = refused_at(Bytes::gib(4), Bytes::gib(10), Bytes::gib(4)).unwrap();
    assert_eq!(
        refusal.to_string(),
        "/srv/target: 4 GiB more would leave 0 B free of 10 GiB; at least 1 GiB must stay free \
         (5 %, at least 1 GiB, at most 8 GiB)"
    );
    assert_eq!(refusal.hint().as_deref(), Some("--size 3GiB would fit"));
    let refusal = refused_at(Bytes::mib(10), Bytes::gib(10), Bytes::gib(4)).unwrap();
    assert!(refusal.hint().unwrap().starts_with("make room"));
    // A file system that does not tell.
    assert!(refused_at(Bytes::ZERO, Bytes::ZERO, Bytes::gib(4)).is_none());
}

#[test]
fn what_a_file_has_already_is_not_needed_again() {
    let full =
        Place { space: Some(Space { free: Bytes::ZERO, total: Bytes::gib(100) }), ..place() };
    allowed(WRITE, Subject::File(Box::new(FileFacts { place: full.clone(), ..file() })));
    // A file of holes has nothing yet.
    let holes = FileFacts { place: full.clone(), allocated: Bytes::ZERO, ..file() };
    let reason = one(refused(WRITE, Subject::File(Box::new(holes))));
    assert!(matches!(reason, RefusalReason::NoSpace { needed, .. } if needed == Bytes::gib(4)));
    // The set's other files count.
    let access = Access::Write { size: Bytes::gib(4), also: Bytes::gib(45) };
    let reason = one(refused(access, Subject::NewFile(place())));
    assert!(matches!(reason, RefusalReason::NoSpace { fits: None, .. }));
}

#[test]
fn scratch_files_are_cut_to_the_room() {
    let space = |free, total| Space { free, total };
    let suggest = |free, total| suggest_scratch_size(space(free, total), Bytes::gib(4));
    assert_eq!(suggest(Bytes::gib(50), Bytes::gib(100)), Some(Bytes::gib(4)));
    assert_eq!(suggest(Bytes::gib(7), Bytes::gib(100)), Some(Bytes::gib(2)));
    let odd = Bytes::new(Bytes::gib(7).get() + 1234);
    assert_eq!(suggest(odd, Bytes::gib(100)), Some(Bytes::gib(2)));
    assert_eq!(suggest(Bytes::gib(5), Bytes::gib(100)), None);
    assert_eq!(suggest(Bytes::ZERO, Bytes::gib(100)), None);
    // What is suggested is accepted.
    for free in [1500, 2047, 5000, 9000].map(Bytes::mib) {
        let room = space(free, Bytes::gib(10));
        let size = suggest_scratch_size(room, Bytes::gib(4)).unwrap();
        let place = Place { space: Some(room), ..place() };
        allowed(Access::Write { size, also: Bytes::ZERO }, Subject::Directory(place));
    }
}

#[test]
fn every_refusal_is_a_sentence_with_a_path_and_a_hint() {
    let all = [
        refused(
            WRITE,
            Subject::Block(Box::new(BlockFacts {
                named: false,
                read_only: true,
                mounts: uses("sdb1", "/srv"),
                swaps: vec!["sdb2".to_owned()],
                holders: uses("sdb3", "md0"),
                system: uses("sdb", "/"),
                signatures: Ok(vec![signature("xfs", Family::FileSystem)]),
                system_unseen: vec!["overlay".to_owned()],
                size: Bytes::new(1),
                ..block()
            })),
        ),
        refused(
            WRITE,
            Subject::File(Box::new(FileFacts {
                mark: Mark::None,
                named_others: vec!["/x".to_owned()],
                links: 2,
                swap: true,
                own: Some("the store".to_owned()),
                loops: vec!["loop0".to_owned()],
                unchecked: vec!["which processes use it".to_owned()],
                place: Place { read_only: true, not_storage: Some("proc".to_owned()), ..place() },
                ..file()
            })),
        ),
    ];
    let reasons: Vec<_> = all.into_iter().flatten().collect();
    assert_eq!(reasons.len(), 18, "{reasons:#?}");
    for reason in reasons {
        let text = reason.to_string();
        assert!(text.starts_with("/srv/target ") && !text.ends_with('.'), "{text}");
        assert!(reason.hint().is_some_and(|h| !h.ends_with('.')), "{text}");
    }
}
