//! Stacks to commands and back.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use layout::steps::{self, Action, Step, Undo};
use layout::{
    ArrayState, DeviceFacts, DeviceId, FileSystem, FileSystemKind, Leg, Level, Maker, Names,
    StackSpec, Stripe,
};
use units::Bytes;

fn devices(letters: &str) -> Vec<DeviceId> {
    letters.chars().map(|letter| DeviceId::new(format!("/dev/sd{letter}"))).collect()
}

fn leg(maker: Maker, level: Level, letters: &str) -> Leg {
    let free = matches!(maker, Maker::Md | Maker::Lvm) && level.has_chunk();
    Leg {
        maker,
        level: Some(level),
        chunk: free.then_some(Bytes::kib(128)),
        members: devices(letters),
        spares: Vec::new(),
    }
}

fn with(kind: FileSystemKind, legs: Vec<Leg>) -> StackSpec {
    let file_system = Some(FileSystem { kind, options: Vec::new() });
    StackSpec { file_system, ..StackSpec::of(legs) }
}

fn built(stack: &StackSpec) -> Vec<Step> {
    let facts = DeviceFacts::assumed(stack.devices(), Bytes::new(160_000_000_000));
    steps::build(stack, &Names::new("k").unwrap(), &facts).unwrap()
}

fn line(action: &Action) -> String {
    match action {
        Action::Run { argv } => argv.join(" "),
        Action::WriteFile { path, value } => format!("{path} < {value}"),
        Action::PutBack { path } => format!("{path} < before"),
        Action::MakeDirectory { path } => format!("+ {path}"),
        Action::RemoveDirectory { path } => format!("- {path}"),
    }
}

fn commands(steps: &[Step]) -> Vec<String> {
    steps.iter().map(|step| line(&step.action)).collect()
}

fn undone(undo: &[Undo]) -> Vec<String> {
    undo.iter().map(|undo| line(&undo.action)).collect()
}

#[test]
fn two_legs_of_md_under_lvm_and_xfs() {
    let legs = vec![leg(Maker::Md, Level::Raid5, "abcde"), leg(Maker::Md, Level::Raid5, "fghij")];
    let stack = StackSpec {
        stripe: Some(Stripe { maker: Maker::Lvm, level: Level::Raid0, chunk: None }),
        mount_options: vec!["noatime".to_owned()],
        ..with(FileSystemKind::Xfs, legs)
    };
    let steps = built(&stack);
    let md = "mdadm --create /dev/md/plimsoll-k-leg";
    let how = "--run --homehost=any --metadata=1.2 --level=5 --raid-devices=5 --chunk=128 \
               --bitmap=internal";
    assert_eq!(
        commands(&steps),
        [
            &format!("{md}0 {how} /dev/sda /dev/sdb /dev/sdc /dev/sdd /dev/sde"),
            &format!("{md}1 {how} /dev/sdf /dev/sdg /dev/sdh /dev/sdi /dev/sdj"),
            "pvcreate --yes --dataalignment 1024k /dev/md/plimsoll-k-leg0 \
             /dev/md/plimsoll-k-leg1",
            "vgcreate --autobackup n --physicalextentsize 4096k plimsoll-k \
             /dev/md/plimsoll-k-leg0 /dev/md/plimsoll-k-leg1",
            "lvcreate --yes --autobackup n --type striped --stripes 2 --stripesize 512k --extents \
             100%PVS --name data plimsoll-k /dev/md/plimsoll-k-leg0 /dev/md/plimsoll-k-leg1",
            "mkfs.xfs -f -L plimsoll -d su=524288,sw=2 /dev/plimsoll-k/data",
            "+ /run/plimsoll/k/data",
            "mount -t xfs -o noatime /dev/plimsoll-k/data /run/plimsoll/k/data",
        ]
    );
    assert_eq!(
        undone(&steps::teardown(&steps))[..5],
        [
            "umount /run/plimsoll/k/data",
            "- /run/plimsoll/k/data",
            "- /run/plimsoll/k",
            "wipefs --all --quiet --types xfs /dev/plimsoll-k/data",
            "vgremove --yes --force --autobackup n plimsoll-k",
        ]
    );
}

#[test]
fn a_stack_survives_being_written_down() {
    let mut stack = with(FileSystemKind::Ext4, vec![leg(Maker::Md, Level::Raid10, "abcd")]);
    stack.state = ArrayState::Rebuilding;
    stack.wal = Some(Box::new(with(FileSystemKind::Xfs, vec![Leg::device(DeviceId::new("/w"))])));
    let text = serde_json::to_string(&stack).unwrap();
    assert_eq!(serde_json::from_str::<StackSpec>(&text).unwrap(), stack);
    let steps = built(&stack);
    let text = serde_json::to_string(&steps).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Step>>(&text).unwrap(), steps);
}

#[test]
fn every_write_is_to_a_device_that_was_named() {
    for maker in [Maker::Md, Maker::Lvm, Maker::Btrfs, Maker::Zfs] {
        for level in Level::ALL {
            let kind = match maker {
                Maker::Btrfs => FileSystemKind::Btrfs,
                Maker::Zfs => FileSystemKind::Zfs,
                _ => FileSystemKind::Xfs,
            };
            let stack = with(kind, vec![leg(maker, level, "abcdef")]);
            if stack.check().is_err() {
                continue;
            }
            let named = stack.devices();
            for step in built(&stack) {
                assert!(step.writes_to.iter().all(|device| named.contains(&device)), "{step:?}");
            }
        }
    }
}
