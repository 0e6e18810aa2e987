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
            "vgcreate --config backup/backup=0 backup/archive=0 --physicalextentsize 4096k plimsoll-k \
             /dev/md/plimsoll-k-leg0 /dev/md/plimsoll-k-leg1",
            "lvcreate --config backup/backup=0 backup/archive=0 --yes --type striped --stripes 2 --stripesize 512k --extents \
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
            "vgremove --config backup/backup=0 backup/archive=0 --yes --force plimsoll-k",
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

fn in_state(maker: Maker, level: Level, spare: &str, state: ArrayState) -> Vec<String> {
    let kind = match maker {
        Maker::Btrfs => FileSystemKind::Btrfs,
        Maker::Zfs => FileSystemKind::Zfs,
        _ => FileSystemKind::Ext4,
    };
    let leg = Leg { spares: devices(spare), ..leg(maker, level, "abcd") };
    let stack = StackSpec { state, ..with(kind, vec![leg]) };
    let steps = built(&stack);
    let late = steps.iter().filter(|step| step.stage == layout::Stage::State);
    late.map(|step| line(&step.action)).collect()
}

#[test]
fn a_failed_member_is_filled_anew() {
    let array = "/dev/md/plimsoll-k-leg0";
    assert_eq!(
        in_state(Maker::Md, Level::Raid5, "", ArrayState::Rebuilding),
        [
            format!("mdadm --manage {array} --fail /dev/sdd"),
            format!("mdadm --manage {array} --remove /dev/sdd"),
            "mdadm --zero-superblock /dev/sdd".to_owned(),
            format!("mdadm --manage {array} --add /dev/sdd"),
        ]
    );
    // The kernel would take the spare at once, and the array would not stay degraded.
    assert_eq!(
        in_state(Maker::Md, Level::Raid6, "e", ArrayState::Degraded),
        [
            format!("mdadm --manage {array} --remove /dev/sde"),
            format!("mdadm --manage {array} --fail /dev/sdd"),
            format!("mdadm --manage {array} --remove /dev/sdd"),
        ]
    );
    let halves = in_state(Maker::Md, Level::Raid01, "", ArrayState::Degraded);
    assert_eq!(halves[0], format!("mdadm --manage {array} --fail {array}b"));
    assert_eq!(
        in_state(Maker::Lvm, Level::Raid5, "", ArrayState::Rebuilding),
        ["lvchange --config backup/backup=0 backup/archive=0 --yes --rebuild /dev/sdd \
          plimsoll-k-leg0/data"]
    );
    assert_eq!(
        in_state(Maker::Zfs, Level::Raid5, "e", ArrayState::Rebuilding),
        ["zpool offline plimsoll-k /dev/sdd", "zpool replace plimsoll-k /dev/sdd /dev/sde",]
    );
}

#[test]
fn a_member_is_filled_once_more_and_nothing_is_erased_while_it_runs() {
    let names = Names::new("k").unwrap();
    let leg = Leg { spares: devices("e"), ..leg(Maker::Md, Level::Raid6, "abcd") };
    let stack =
        StackSpec { state: ArrayState::Rebuilding, ..with(FileSystemKind::Ext4, vec![leg]) };
    let array = "/dev/md/plimsoll-k-leg0";
    assert_eq!(
        commands(&steps::refill(&stack, &names).unwrap()),
        [
            format!("mdadm --manage {array} --fail /dev/sde"),
            format!("mdadm --manage {array} --remove /dev/sde"),
            "mdadm --zero-superblock /dev/sde".to_owned(),
            format!("mdadm --manage {array} --add /dev/sde"),
        ],
        "the spare is the member that is filled"
    );
    let undo = undone(&steps::teardown(&built(&stack)));
    let stop = undo.iter().position(|line| line.starts_with("mdadm --stop")).unwrap();
    let erased = undo.iter().position(|line| line.contains("--zero-superblock")).unwrap();
    assert!(stop < erased, "{undo:?}");
    for member in ["/dev/sda", "/dev/sdd", "/dev/sde"] {
        let line = format!("mdadm --zero-superblock {member}");
        assert_eq!(undo.iter().filter(|known| **known == line).count(), 1, "{member}");
    }
}

#[test]
fn what_was_made_is_undone_in_reverse() {
    let stack = with(FileSystemKind::Ext4, vec![leg(Maker::Md, Level::Raid1, "ab")]);
    assert_eq!(
        undone(&steps::teardown(&built(&stack))),
        [
            "umount /run/plimsoll/k/data",
            "- /run/plimsoll/k/data",
            "- /run/plimsoll/k",
            "wipefs --all --quiet --types ext2,ext3,ext4,ext4dev /dev/md/plimsoll-k-leg0",
            "mdadm --stop /dev/md/plimsoll-k-leg0",
            "mdadm --zero-superblock /dev/sda",
            "mdadm --zero-superblock /dev/sdb",
        ]
    );
    // A mark is erased only where it is ours.
    for undo in steps::teardown(&built(&stack)) {
        if line(&undo.action).contains("/dev/sd") {
            let ours = matches!(&undo.only_if, Some(layout::Made::Signature { name: Some(name), .. })
                if name == "plimsoll-k-leg0");
            assert!(ours, "{undo:?}");
        }
    }
}

#[test]
fn settings_are_written_and_put_back() {
    let mut stack = with(FileSystemKind::Ext4, vec![leg(Maker::Md, Level::Raid0, "ab")]);
    stack.settings.scheduler = Some("none".to_owned());
    stack.settings.read_ahead = Some(Bytes::mib(1));
    let steps = built(&stack);
    let lines = commands(&steps);
    assert_eq!(lines[0], "/sys/block/sda/queue/scheduler < none");
    assert!(lines.contains(&"blockdev --setra 2048 /dev/md/plimsoll-k-leg0".to_owned()));
    let back = undone(&steps::teardown(&steps));
    assert_eq!(back.last().unwrap(), "/sys/block/sda/queue/scheduler < before");
    // Two partitions of one disk share its queue.
    let fact = |queue: &str| layout::DeviceFact {
        size: Bytes::gib(1),
        logical_sector: Bytes::new(512),
        physical_sector: Bytes::kib(4),
        queue: Some(queue.to_owned()),
    };
    let facts: DeviceFacts =
        devices("ab").into_iter().map(|device| (device, fact("sda"))).collect();
    let steps = steps::build(&stack, &Names::new("k").unwrap(), &facts).unwrap();
    let written = steps.iter().filter(|step| step.stage == layout::Stage::Settings).count();
    assert_eq!(written, 1);
}

#[test]
fn ours_and_theirs_for_ext_are_one() {
    let mut stack = with(FileSystemKind::Ext4, vec![leg(Maker::Md, Level::Raid0, "ab")]);
    stack.file_system.as_mut().unwrap().options =
        ["-b", "1024", "-E", "nodiscard", "-Ediscard"].map(str::to_owned).to_vec();
    let lines = commands(&built(&stack));
    let make = lines.iter().find(|line| line.starts_with("mkfs")).unwrap();
    assert_eq!(
        make,
        "mkfs.ext4 -q -F -L plimsoll -E stride=128,stripe_width=256,lazy_itable_init=0,\
         lazy_journal_init=0,nodiscard,discard -b 1024 /dev/md/plimsoll-k-leg0"
    );
}
