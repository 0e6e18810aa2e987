//! From levels to a stack.

use std::collections::BTreeMap;
use std::str::FromStr;

use layout::{
    ArrayState, DeviceId, FileSystem, FileSystemKind, Leg, Level, Maker, Settings, StackSpec,
    Stripe,
};
use units::Bytes;

use crate::factor::{DEFAULTS, NONE};
use crate::text::Devices;

/// Where the file names no chunk.
const CHUNK: Bytes = Bytes::kib(128);

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stack {
    /// What is there already: a path, a device, a twin.
    Plain(String),
    /// To be built.
    Built(Box<StackSpec>),
}

/// Why levels make no stack, with what would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoStack {
    pub what: String,
    pub hint: Option<String>,
}

impl NoStack {
    fn new(what: impl Into<String>, hint: &str) -> Self {
        Self { what: what.into(), hint: Some(hint.to_owned()) }
    }
}

/// The level of every key.
pub(crate) struct Levels<'a>(pub BTreeMap<&'a str, &'a str>);

impl Levels<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).copied()
    }

    fn read<T: FromStr>(&self, key: &str) -> Option<T> {
        self.text(key)?.parse().ok()
    }

    fn count(&self, key: &str, otherwise: usize) -> usize {
        self.read(key).unwrap_or(otherwise)
    }
}

/// The stack of these levels over these devices.
pub(crate) fn stack(levels: &Levels<'_>, devices: &Devices) -> Result<Stack, NoStack> {
    if let Some(target) = levels.text("target") {
        return plain(levels, target);
    }
    if levels.text("memory").is_some() {
        let hint = "name databases, such as mariadb:/ssd, as `target`";
        return Err(NoStack::new("`memory` needs `target`: it is the cache of a database", hint));
    }
    let mut spec = StackSpec::of(legs(levels, devices)?);
    spec.stripe = (spec.legs.len() > 1).then(|| stripe(levels)).filter(|_| !is_pool(&spec));
    spec.file_system = file_system(levels, levels.text("file_system"));
    if spec.file_system.is_some() {
        spec.mount_options = options(levels);
    }
    spec.settings = Settings {
        scheduler: levels.text("scheduler").map(str::to_owned),
        read_ahead: levels.read::<Bytes>("read_ahead"),
        nr_requests: levels.read("nr_requests"),
    };
    spec.state = match levels.text("state") {
        Some("degraded") => ArrayState::Degraded,
        Some("rebuilding") => ArrayState::Rebuilding,
        _ => ArrayState::Healthy,
    };
    if levels.text("wal") == Some("own") {
        spec.wal = Some(Box::new(wal(levels, devices)?));
    }
    spec.check().map_err(|error| NoStack { what: error.to_string(), hint: error.hint() })?;
    Ok(Stack::Built(Box::new(spec)))
}

/// A pool stripes over its legs by itself.
fn is_pool(spec: &StackSpec) -> bool {
    spec.legs.iter().all(|leg| leg.maker == Maker::Zfs)
}

fn plain(levels: &Levels<'_>, target: &str) -> Result<Stack, NoStack> {
    if let Some(other) = levels.0.keys().find(|key| !["target", "memory"].contains(key)) {
        return Err(NoStack::new(
            format!("`target` is measured as it is, and `{other}` is of stacks that are built"),
            "leave one of them out",
        ));
    }
    let Some(memory) = levels.text("memory") else { return Ok(Stack::Plain(target.to_owned())) };
    let is_database =
        ["sqlite:", "postgres:", "mariadb:"].iter().any(|kind| target.starts_with(kind));
    if !is_database || target.contains("://") || target.contains(",memory=") {
        return Err(NoStack::new(
            format!("`memory` is the cache of a database that is made, and `{target}` is none"),
            "name targets such as mariadb:/ssd, without memory of their own",
        ));
    }
    Ok(Stack::Plain(format!("{target},memory={memory}")))
}

fn legs(levels: &Levels<'_>, devices: &Devices) -> Result<Vec<Leg>, NoStack> {
    let legs = levels.count("legs", 1);
    let spares = levels.count("spares", 0);
    let pool = devices.pool.len();
    let taken = legs.saturating_mul(spares);
    let members = levels.count("members", pool.saturating_sub(taken) / legs.max(1));
    let needed = legs.saturating_mul(members).saturating_add(taken);
    if pool == 0 {
        return Err(NoStack::new("no device is named", "name them as `pool` of `[devices]`"));
    }
    if needed > pool || members == 0 {
        let each = if spares == 0 { String::new() } else { format!(" and {spares} spares") };
        return Err(NoStack::new(
            format!("{legs} legs of {members} members{each} need {needed} devices, found {pool}"),
            "name more of them as `pool` of `[devices]`, or ask for fewer",
        ));
    }
    let take = |from: usize, n: usize| -> Vec<DeviceId> {
        devices.pool.iter().skip(from).take(n).map(DeviceId::new).collect()
    };
    let level = levels.text("level").unwrap_or(NONE);
    // Arrays and file systems in one need no other to say who makes them.
    let of_file_system = match levels.text("file_system") {
        Some("btrfs") => Maker::Btrfs,
        Some("zfs") => Maker::Zfs,
        _ => Maker::Md,
    };
    let maker = levels.read::<Maker>("by").unwrap_or(of_file_system);
    (0..legs)
        .map(|leg| {
            let own = take(leg * members, members);
            if level == NONE {
                return match own.as_slice() {
                    [only] if spares == 0 => Ok(Leg::device(only.clone())),
                    _ => Err(NoStack::new(
                        format!("level none of {members} members and {spares} spares"),
                        "several members need a `level`; without one a leg is one device",
                    )),
                };
            }
            let level = Level::from_str(level).unwrap_or(Level::Raid0);
            let chosen = !matches!(maker, Maker::Btrfs | Maker::Zfs);
            Ok(Leg {
                maker,
                level: Some(level),
                chunk: Some(levels.read::<Bytes>("chunk").unwrap_or(CHUNK))
                    .filter(|_| level.has_chunk() && chosen),
                members: own,
                spares: take(legs * members + leg * spares, spares),
            })
        })
        .collect()
}

fn stripe(levels: &Levels<'_>) -> Stripe {
    let level = levels.read::<Level>("stripe_level").unwrap_or(Level::Raid0);
    Stripe {
        maker: levels.read::<Maker>("stripe_by").unwrap_or(Maker::Md),
        level,
        chunk: levels.read::<Bytes>("stripe_chunk").filter(|_| level.has_chunk()),
    }
}

fn file_system(levels: &Levels<'_>, name: Option<&str>) -> Option<FileSystem> {
    let kind: FileSystemKind = name.filter(|name| *name != NONE)?.parse().ok()?;
    let words = levels.text("mkfs").filter(|words| *words != NONE).unwrap_or_default();
    let options = words.split_whitespace().map(str::to_owned).collect();
    Some(FileSystem { kind, options })
}

fn options(levels: &Levels<'_>) -> Vec<String> {
    let text = levels.text("mount").filter(|text| *text != DEFAULTS).unwrap_or_default();
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect()
}

/// The log's own device with a file system like that of the data.
fn wal(levels: &Levels<'_>, devices: &Devices) -> Result<StackSpec, NoStack> {
    let Some(device) = devices.wal.first() else {
        let hint = "name it as `wal` of `[devices]`";
        return Err(NoStack::new("`wal` is own, and no device is named for it", hint));
    };
    let mut spec = StackSpec::of(vec![Leg::device(DeviceId::new(device))]);
    spec.file_system = file_system(levels, levels.text("file_system"));
    spec.mount_options = options(levels);
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices(n: usize) -> Devices {
        Devices {
            pool: (1..=n).map(|k| format!("/dev/loop{k}")).collect(),
            wal: vec!["/dev/loop90".into()],
        }
    }

    fn of<'a>(levels: &[(&'a str, &'a str)]) -> Levels<'a> {
        Levels(levels.iter().copied().collect())
    }

    fn built(levels: &[(&str, &str)], n: usize) -> StackSpec {
        match stack(&of(levels), &devices(n)).unwrap() {
            Stack::Built(spec) => *spec,
            Stack::Plain(target) => panic!("{target}"),
        }
    }

    #[test]
    fn devices_go_to_legs_in_their_order() {
        let levels = [
            ("legs", "2"),
            ("members", "3"),
            ("spares", "1"),
            ("level", "raid5"),
            ("chunk", "128KiB"),
            ("stripe_by", "lvm"),
            ("file_system", "xfs"),
            ("mount", "noatime,nodiratime"),
            ("wal", "own"),
        ];
        let spec = built(&levels, 8);
        let paths = |leg: &Leg| leg.devices().map(|d| d.as_str().to_owned()).collect::<Vec<_>>();
        assert_eq!(paths(&spec.legs[0]), ["/dev/loop1", "/dev/loop2", "/dev/loop3", "/dev/loop7"]);
        assert_eq!(paths(&spec.legs[1]), ["/dev/loop4", "/dev/loop5", "/dev/loop6", "/dev/loop8"]);
        assert_eq!(spec.stripe.as_ref().unwrap().maker, Maker::Lvm);
        assert_eq!(spec.mount_options, ["noatime", "nodiratime"]);
        assert_eq!(spec.wal.unwrap().devices()[0].as_str(), "/dev/loop90");
    }

    #[test]
    fn a_leg_without_level_is_a_device() {
        let spec = built(&[("legs", "2"), ("members", "1"), ("stripe_by", "md")], 2);
        assert!(spec.legs.iter().all(|leg| leg.maker == Maker::Device));
        assert!(spec.file_system.is_none() && spec.stripe.is_some());
        let btrfs = built(&[("members", "2"), ("level", "raid1"), ("file_system", "btrfs")], 2);
        assert_eq!(btrfs.legs[0].maker, Maker::Btrfs);
        // However many members: what makes an array is no part of what their number does.
        let alone = built(&[("members", "1"), ("level", "raid0"), ("file_system", "btrfs")], 2);
        assert_eq!(alone.legs[0].maker, Maker::Btrfs);
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        for (levels, wanted) in [
            (&[("members", "4"), ("level", "raid6")][..], "need 4 devices, found 3"),
            (&[("members", "3")], "level none of 3 members"),
            (&[("members", "2"), ("level", "raid6")], "leg 0"),
            (&[("target", "/x"), ("level", "raid0")], "`level` is of stacks that are built"),
            (&[("target", "/x"), ("memory", "1GiB")], "`/x` is none"),
            (&[("target", "mariadb:/x,memory=1GiB"), ("memory", "1GiB")], "is none"),
            (&[("target", "postgres://joe@db1/app"), ("memory", "1GiB")], "is none"),
            (&[("memory", "1GiB"), ("level", "raid0")], "`memory` needs `target`"),
            (&[("state", "degraded"), ("members", "2"), ("level", "raid0")], "state degraded"),
        ] {
            let error = stack(&of(levels), &devices(3)).unwrap_err();
            assert!(error.what.contains(wanted), "{levels:?}: {}", error.what);
        }
        let none = Devices::default();
        assert!(stack(&of(&[("legs", "1")]), &none).unwrap_err().what.contains("no device"));
    }

    #[test]
    fn a_database_has_the_memory_of_its_level() {
        let levels = [("target", "mariadb:/ssd,log=/nvme"), ("memory", "64MiB")];
        let wanted = Stack::Plain("mariadb:/ssd,log=/nvme,memory=64MiB".to_owned());
        assert_eq!(stack(&of(&levels), &Devices::default()).unwrap(), wanted);
    }

    #[test]
    fn only_named_devices_are_used() {
        let named = devices(8);
        for legs in ["1", "2"] {
            for level in ["raid0", "raid1", "raid10", "raid5", "raid6"] {
                let spec = built(&[("legs", legs), ("members", "4"), ("level", level)], 8);
                for device in spec.devices() {
                    assert!(named.all().any(|path| path == device.as_str()), "{device}");
                }
            }
        }
    }
}
