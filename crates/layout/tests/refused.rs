//! Stacks that cannot be, and what is said of them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use layout::{
    ArrayState, DeviceFacts, DeviceId, FileSystem, FileSystemKind, Leg, Level, Maker, Names,
    StackSpec, Stripe, steps,
};
use units::Bytes;

fn leg(maker: Maker, level: Level, letters: &str) -> Leg {
    let free = matches!(maker, Maker::Md | Maker::Lvm) && level.has_chunk();
    let path = |letter| DeviceId::new(format!("/dev/sd{letter}"));
    Leg {
        maker,
        level: Some(level),
        chunk: free.then_some(Bytes::kib(128)),
        members: letters.chars().map(path).collect(),
        spares: Vec::new(),
    }
}

fn with(kind: FileSystemKind, legs: Vec<Leg>) -> StackSpec {
    let file_system = Some(FileSystem { kind, options: Vec::new() });
    StackSpec { file_system, ..StackSpec::of(legs) }
}

fn joined(maker: Maker, chunk: Option<u64>, by: [Leg; 2]) -> StackSpec {
    let stripe = Some(Stripe { maker, level: Level::Raid0, chunk: chunk.map(Bytes::kib) });
    StackSpec { stripe, ..StackSpec::of(by.to_vec()) }
}

fn refused(stack: &StackSpec) -> String {
    let facts = DeviceFacts::assumed(stack.devices(), Bytes::gib(1));
    let error = steps::build(stack, &Names::new("k").unwrap(), &facts).unwrap_err();
    format!("{error} | {}", error.hint().unwrap_or_default())
}

#[test]
fn legs_that_cannot_be() {
    use Level::{Linear, Raid0, Raid01, Raid1, Raid5, Raid6, Raid10};
    let one = |leg| refused(&StackSpec::of(vec![leg]));
    let md = |level, letters| leg(Maker::Md, level, letters);
    assert_eq!(
        refused(&StackSpec::of(Vec::new())),
        "a stack without legs | name at least one device"
    );
    assert_eq!(
        one(md(Raid5, "ab")),
        "leg 0: raid5 needs 3 members or more, found 2 | with two members raid1 keeps the same \
         amount without parity"
    );
    assert_eq!(
        one(md(Raid01, "abcde")),
        "leg 0: raid01 is two stripes of equal size: it needs an even number of members, found 5 | \
         raid10 takes odd numbers"
    );
    assert_eq!(
        one(Leg { chunk: Some(Bytes::kib(100)), ..md(Raid6, "abcd") }),
        "leg 0: chunk 100KiB of raid6 is not a power of two | use 64KiB or 128KiB"
    );
    assert_eq!(
        one(Leg { chunk: Some(Bytes::new(512)), ..md(Raid0, "ab") }),
        "leg 0: chunk 512B of raid0 is not between 4KiB and 1GiB | use 4KiB"
    );
    assert_eq!(
        one(Leg { chunk: None, ..md(Raid0, "ab") }),
        "leg 0: raid0 needs a chunk size | 128KiB is usual"
    );
    assert_eq!(
        one(Leg { spares: vec![DeviceId::new("/dev/z")], ..md(Linear, "ab") }),
        "leg 0: md cannot make spares for linear, which cannot lose a member | "
    );
    assert_eq!(
        one(Leg { level: None, ..md(Raid1, "ab") }),
        "leg 0: an array by md needs a level | "
    );
    assert_eq!(one(md(Raid1, "aa")), "/dev/sda is named twice in one stack | ");
    assert_eq!(
        one(Leg::device(DeviceId::new("-rf"))),
        "`-rf` is not the path of a device | paths of devices begin with `/`"
    );
    for (maker, level, letters) in [
        (Maker::Lvm, Raid6, "abcd"),
        (Maker::Lvm, Raid10, "abc"),
        (Maker::Lvm, Raid01, "abcd"),
        (Maker::Zfs, Linear, "ab"),
        (Maker::Zfs, Raid10, "abc"),
        (Maker::Btrfs, Raid01, "abcd"),
        (Maker::Btrfs, Raid1, "abcde"),
    ] {
        let text = one(leg(maker, level, letters));
        assert!(text.starts_with(&format!("leg 0: {maker} cannot make ")), "{text}");
    }
}

#[test]
fn legs_that_cannot_be_joined() {
    let md = || [leg(Maker::Md, Level::Raid5, "abcd"), leg(Maker::Md, Level::Raid5, "efgh")];
    let lvm = || [leg(Maker::Lvm, Level::Raid5, "abcd"), leg(Maker::Lvm, Level::Raid5, "efgh")];
    assert_eq!(
        refused(&StackSpec::of(md().to_vec())),
        "2 legs, and nothing joins them | join them by md or lvm"
    );
    assert_eq!(
        refused(&joined(Maker::Lvm, Some(384), md())),
        "lvm cannot join legs by md: its stripes are powers of two | "
    );
    assert_eq!(
        refused(&joined(Maker::Lvm, None, lvm())),
        "lvm cannot join legs by lvm: it does not look for its members among its own volumes | \
         join them by md"
    );
    assert_eq!(
        refused(&joined(Maker::Zfs, None, md())),
        "zfs cannot join legs by md: it does not lie over that | "
    );
    // What md takes of the same: a piece that is a full stripe of three chunks.
    assert_eq!(joined(Maker::Md, Some(384), md()).check(), Ok(()));
    assert_eq!(joined(Maker::Md, None, lvm()).check(), Ok(()));
}

#[test]
fn file_systems_and_settings_that_cannot_be() {
    let md = || vec![leg(Maker::Md, Level::Raid1, "ab")];
    assert_eq!(
        refused(&with(FileSystemKind::Xfs, vec![leg(Maker::Btrfs, Level::Raid1, "ab")])),
        "legs by btrfs need btrfs as file system, found xfs | other file systems want arrays by md \
         or lvm under them"
    );
    let mut mounted = StackSpec::of(md());
    mounted.mount_options = vec!["noatime".to_owned()];
    assert!(refused(&mounted).starts_with("mount options without a file system"));
    let mut two = with(FileSystemKind::Ext4, md());
    two.mount_options = vec!["noatime,nobarrier".to_owned()];
    assert!(refused(&two).contains("is not one option"));
    let mut ahead = with(FileSystemKind::Btrfs, md());
    ahead.settings.read_ahead = Some(Bytes::mib(1));
    assert!(refused(&ahead).starts_with("read-ahead has no effect on btrfs"));
    let mut odd = with(FileSystemKind::Ext4, md());
    odd.settings.scheduler = Some("../x".to_owned());
    assert!(refused(&odd).contains("is not a name such as none"));
    let mut log = with(FileSystemKind::Ext4, md());
    log.wal = Some(Box::new(StackSpec::of(vec![Leg::device(DeviceId::new("/dev/w"))])));
    assert_eq!(refused(&log), "a write-ahead log without a file system | name one for it");
    log.wal = Some(Box::new(with(FileSystemKind::Xfs, md())));
    assert_eq!(refused(&log), "/dev/sda is named twice in one stack | ");
}

#[test]
fn states_that_cannot_be() {
    let degraded =
        |leg, kind| refused(&StackSpec { state: ArrayState::Degraded, ..with(kind, vec![leg]) });
    assert_eq!(
        degraded(leg(Maker::Md, Level::Raid0, "ab"), FileSystemKind::Ext4),
        "state degraded needs a first leg that can lose a member, found raid0 | raid1, raid10, \
         raid5 and raid6 can"
    );
    assert_eq!(
        degraded(leg(Maker::Lvm, Level::Raid5, "abcd"), FileSystemKind::Ext4),
        "lvm cannot be told to be degraded: it has no command that fails a member | md arrays can \
         be brought into every state"
    );
    let zfs = vec![leg(Maker::Zfs, Level::Raid5, "abcd")];
    let state = ArrayState::Rebuilding;
    assert_eq!(
        refused(&StackSpec { state, ..with(FileSystemKind::Zfs, zfs) }),
        "zfs cannot be told to be rebuilding: it fills no member that it knows, and there is no \
         spare | give the leg a spare"
    );
}

#[test]
fn what_nobody_looked_at_is_not_touched() {
    let stack = StackSpec::of(vec![leg(Maker::Md, Level::Raid1, "ab")]);
    let names = Names::new("k").unwrap();
    let error = steps::build(&stack, &names, &DeviceFacts::default()).unwrap_err();
    assert_eq!(error.to_string(), "nothing is known of /dev/sda");
}

#[test]
fn devices_without_room() {
    let stack = with(FileSystemKind::Xfs, vec![leg(Maker::Md, Level::Raid1, "ab")]);
    let facts = DeviceFacts::assumed(stack.devices(), Bytes::mib(300));
    let error = steps::build(&stack, &Names::new("k").unwrap(), &facts).unwrap_err();
    assert_eq!(error.to_string(), "xfs needs 300 MiB or more, found 299 MiB");
}
