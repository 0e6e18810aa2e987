//! Uses of a device that are a study's own: what it built there itself is nobody else's.

use layout::Made;

use crate::block;
use crate::build::there::array_named;
use crate::host::Host;
use crate::mounts::{Mount, mounts};
use crate::safety::{BlockFacts, DeviceUse};

/// A service that has the members of pools open for writing, and goes on by itself.
const POOL_SERVICE: &str = "zfs-fuse";

/// What a study has built and not taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    arrays: Vec<String>,
    groups: Vec<String>,
    mount_points: Vec<String>,
    has_pool: bool,
    is_open: bool,
}

impl Built {
    /// By what its journal says was made.
    pub fn of<'a>(made: impl IntoIterator<Item = &'a Made>) -> Self {
        let mut built = Self::default();
        for made in made {
            match made {
                Made::Array { path } => built.arrays.push(path.clone()),
                Made::Group { name } => built.groups.push(name.clone()),
                Made::Mount { path } => built.mount_points.push(path.clone()),
                Made::Pool { .. } => built.has_pool = true,
                Made::Volume { .. } | Made::Signature { .. } | Made::Directory { .. } => {}
            }
        }
        built
    }

    /// With devices that this process itself has open, and nobody else can have claimed then.
    #[must_use]
    pub fn and_open(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    /// Takes out of the facts what is the study's own. Uses of other devices with the same bytes stay:
    /// nothing of the study lies on those.
    pub fn leave_out(&self, host: &Host, facts: &mut BlockFacts) {
        let above = block::built_on(host, &facts.name);
        let is_above = |of: &DeviceUse| above.contains(&of.device);
        let held_by_kernel = self.has_pool || self.is_open;
        facts.holders.retain(|of| {
            let is_ours = self.is_holder(host, &of.by) || held_by_kernel && is_unnamed(&of.by);
            !(is_above(of) && is_ours)
        });
        // A block device has one file system: where ours is mounted, all its mounts are of ours.
        facts.mounts.retain(|of| !(is_above(of) && self.is_mounted(host, &of.device)));
        if self.has_pool {
            facts.zfs_pools = false;
            facts.users.by.retain(|process| process.name != POOL_SERVICE);
        }
    }

    /// Whether something that holds a device, as [`BlockFacts::holders`] names it, is ours.
    fn is_holder(&self, host: &Host, by: &str) -> bool {
        if let Some(uuid) = by.strip_prefix("the mounted btrfs ") {
            let all = self.own_mounts(host);
            let of = |mount: &Mount| block::btrfs_of(host, &block::named(host, &mount.source)?);
            return all.iter().any(|mount| of(mount).as_deref() == Some(uuid));
        }
        let directory = block::class(by);
        if host.exists(directory.join("md")) {
            return self.arrays.iter().any(|path| kernel_name(host, path).as_deref() == Some(by));
        }
        let mapped = host.line(directory.join("dm/name")).unwrap_or_default();
        self.groups.iter().any(|group| is_of_group(&mapped, group))
    }

    fn own_mounts(&self, host: &Host) -> Vec<Mount> {
        let mut all = mounts(host).unwrap_or_default();
        all.retain(|mount| {
            self.mount_points.iter().any(|point| mount.point.as_os_str() == &**point)
        });
        all
    }

    fn is_mounted(&self, host: &Host, device: &str) -> bool {
        self.own_mounts(host).iter().any(|mount| {
            block::number_of(host, device) == Some(mount.device)
                || block::named(host, &mount.source).as_deref() == Some(device)
        })
    }
}

/// The kernel's name of an array of ours.
fn kernel_name(host: &Host, path: &str) -> Option<String> {
    let found = std::fs::canonicalize(host.path(path)).ok();
    let found = found.or_else(|| std::fs::canonicalize(array_named(host, path)?).ok())?;
    Some(found.file_name()?.to_str()?.to_owned())
}

/// Whether the kernel does not say what holds a device: neither a device's name nor a file system.
fn is_unnamed(by: &str) -> bool {
    by.contains(' ') && !by.starts_with("the mounted ")
}

/// Whether a name of device mapper is of a volume, or of a part of one, of that group. LVM doubles
/// the hyphens of a name, and puts one between the two.
fn is_of_group(mapped: &str, group: &str) -> bool {
    mapped.starts_with(&format!("{}-", group.replace('-', "--")))
        && !mapped.starts_with(&format!("{}--", group.replace('-', "--")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use units::Bytes;

    use super::*;
    use crate::safety::{Process, Users};

    /// A tree of sysfs and procfs that goes with it.
    struct Tree(PathBuf);

    impl Tree {
        /// A loop device 7:1 in an array md127 of a study, and that in a volume of its group, mounted.
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("built-{name}-{}", std::process::id()));
            let tree = Self(root);
            let class = "sys/class/block";
            for (device, number) in [
                ("loop1", "7:1"),
                ("loop2", "7:2"),
                ("md127", "9:127"),
                ("md5", "9:5"),
                ("dm-0", "253:0"),
            ] {
                tree.put(&format!("{class}/{device}/dev"), number);
            }
            for holder in ["loop1/holders/md127", "md127/holders/dm-0", "md127/md", "md5/md"] {
                std::fs::create_dir_all(tree.0.join(class).join(holder)).unwrap();
            }
            tree.put(&format!("{class}/dm-0/dm/name"), "plimsoll--0a-data");
            tree.put("dev/md127", "");
            std::fs::create_dir_all(tree.0.join("dev/md")).unwrap();
            symlink("../md127", tree.0.join("dev/md/plimsoll-0a-leg0")).unwrap();
            let mount = "30 1 253:0 / /run/plimsoll/0a/data rw - xfs /dev/dm-0 rw";
            tree.put("proc/self/mountinfo", mount);
            tree
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn uses(all: &[(&str, &str)]) -> Vec<DeviceUse> {
        let of = |(device, by): &(&str, &str)| DeviceUse {
            device: (*device).to_owned(),
            by: (*by).to_owned(),
        };
        all.iter().map(of).collect()
    }

    fn facts(mounts: &[(&str, &str)], holders: &[(&str, &str)]) -> BlockFacts {
        BlockFacts {
            unchecked: Vec::new(),
            even_though_unchecked: false,
            name: "loop1".into(),
            number: "7:1".parse().unwrap(),
            size: Bytes::mib(64),
            summary: String::new(),
            read_only: false,
            named: true,
            named_others: Vec::new(),
            even_though_signature: false,
            mounts: uses(mounts),
            swaps: Vec::new(),
            holders: uses(holders),
            system: Vec::new(),
            system_unseen: Vec::new(),
            zfs_pools: true,
            signatures: Ok(Vec::new()),
            partitions: Vec::new(),
            users: Users {
                by: vec![Process { id: 7, name: POOL_SERVICE.into() }],
                ..Users::default()
            },
        }
    }

    const POINT: &str = "/run/plimsoll/0a/data";
    const UNNAMED: &str = "something that the kernel does not name";

    fn made() -> [Made; 3] {
        [
            Made::Array { path: "/dev/md/plimsoll-0a-leg0".into() },
            Made::Group { name: "plimsoll-0a".into() },
            Made::Mount { path: POINT.into() },
        ]
    }

    #[test]
    fn what_a_study_built_is_no_use_by_others() {
        let tree = Tree::new("own");
        let host = Host::captured(&tree.0);
        // The same file system elsewhere as well, as copies of the mount table have it.
        let mounts = [("dm-0", POINT), ("dm-0", "/host/data (as process 9 sees it)")];
        let all = facts(&mounts, &[("loop1", "md127"), ("md127", "dm-0")]);
        let mut left = all.clone();
        Built::of(&made()).leave_out(&host, &mut left);
        assert_eq!((left.mounts, left.holders), (Vec::new(), Vec::new()));
        // Nothing of it is the study's that has not built it yet.
        let mut left = all.clone();
        Built::default().leave_out(&host, &mut left);
        assert_eq!(left, all);
        // An array without what lies on it.
        let mut left = all.clone();
        Built::of(&made()[..1]).leave_out(&host, &mut left);
        assert_eq!(left.holders, uses(&[("md127", "dm-0")]));
        assert_eq!(left.mounts, all.mounts);
    }

    #[test]
    fn what_others_did_stays_beside_it() {
        let tree = Tree::new("others");
        let host = Host::captured(&tree.0);
        let mounts = [("loop2", "/theirs"), ("loop1", "/theirs too")];
        // Of a twin, whatever holds it, even what is called like ours.
        let holders =
            [("loop1", "md5"), ("loop1", "loop3"), ("loop2", "md127"), ("loop1", UNNAMED)];
        let all = facts(&mounts, &holders);
        let mut left = all.clone();
        Built::of(&made()).leave_out(&host, &mut left);
        assert_eq!(left, all);
    }

    #[test]
    fn a_pool_and_an_open_device_are_not_named_by_the_kernel() {
        let tree = Tree::new("pool");
        let host = Host::captured(&tree.0);
        let all = facts(&[], &[("loop1", UNNAMED), ("loop1", "the mounted btrfs 1-2")]);
        let pool = [Made::Pool { name: "plimsoll-0a".into() }];
        for built in [Built::of(&pool), Built::default().and_open(true)] {
            let mut left = all.clone();
            built.leave_out(&host, &mut left);
            assert_eq!(left.holders, uses(&[("loop1", "the mounted btrfs 1-2")]));
            assert_eq!(left.zfs_pools, !built.has_pool);
            assert_eq!(left.users.by.is_empty(), built.has_pool);
        }
    }

    #[test]
    fn volumes_are_of_the_group_that_is_in_their_name() {
        let group = "plimsoll-0a-leg0";
        for (mapped, wanted) in [
            ("plimsoll--0a--leg0-data", true),
            ("plimsoll--0a--leg0-data_rimage_1", true),
            ("plimsoll--0a--leg01-data", false),
            ("plimsoll--0a--leg0--x-data", false),
            ("plimsoll--0b--leg0-data", false),
            ("vg-data", false),
            ("", false),
        ] {
            assert_eq!(is_of_group(mapped, group), wanted, "{mapped}");
        }
    }
}
