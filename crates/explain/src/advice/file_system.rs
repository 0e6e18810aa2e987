//! What a file system was told, or cannot do: reads that write, flushes that are left out, reads that
//! pass one at a time.

use finding::Code;
use record::stack::{FileSystem, Layer, StackTree};

use super::{Advice, quoted};

/// Those that keep a time of the last read at all.
const KEEP_ATIME: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "jfs", "btrfs", "f2fs", "nilfs2", "reiserfs", "bcachefs"];
/// Of the "simple locking" kind in `fs/direct-io.c` of Linux: every direct read of a file takes the
/// file's lock for itself while blocks are looked up and requests are sent. ext3 was one until
/// ext4 took it over; ext2 until 6.5.
const ONE_AT_A_TIME: [&str; 10] =
    ["jfs", "nilfs2", "reiserfs", "vfat", "msdos", "exfat", "hfs", "hfsplus", "udf", "affs"];

/// Whether a data set of ZFS is set so.
fn is_set(found: &FileSystem, name: &str, value: &str) -> bool {
    let mut settings = found.pool.iter().flat_map(|pool| &pool.settings);
    settings.any(|set| set.name == name && set.value == value)
}

pub(super) fn atime(_: &StackTree, layer: &Layer, found: &FileSystem) -> Option<Advice> {
    let has = |option: &str| found.options.iter().any(|there| there == option);
    // `relatime` writes once a day and file: nothing for the few files of a database.
    let quiet = has("noatime") || has("relatime") || has("ro") || found.options.is_empty();
    let zfs = is_set(found, "atime", "on");
    if !zfs && (quiet || !KEEP_ATIME.contains(&found.kind.as_str())) {
        return None;
    }
    let command = match zfs {
        true => format!("zfs set atime=off {}", quoted(&found.source)),
        false => format!("mount -o remount,noatime {}", quoted(&found.point)),
    };
    let advice = Advice::new(Code::Atime, &layer.id);
    Some(advice.with("options", &found.options.join(",")).command(command))
}

pub(super) fn barriers(_: &StackTree, layer: &Layer, found: &FileSystem) -> Option<Advice> {
    let (option, command) = match is_set(found, "sync", "disabled") {
        true => ("sync=disabled", format!("zfs set sync=standard {}", quoted(&found.source))),
        false => {
            let option = found.options.iter().find(|option| match option.as_str() {
                "nobarrier" | "barrier=0" | "barrier=none" => true,
                // f2fs: `fsync_mode=nobarrier` still orders, but does not flush.
                "fsync_mode=nobarrier" => found.kind == "f2fs",
                _ => false,
            })?;
            let back = match (found.kind.as_str(), option.as_str()) {
                ("f2fs", "fsync_mode=nobarrier") => "fsync_mode=posix",
                ("ext3" | "ext4" | "reiserfs", _) => "barrier=1",
                _ => "barrier",
            };
            (option.as_str(), format!("mount -o remount,{back} {}", quoted(&found.point)))
        }
    };
    let advice = Advice::new(Code::BarriersOff, &layer.id)
        .with("kind", &found.kind)
        .with("option", option)
        .with("options", &found.options.join(","));
    Some(advice.command(command))
}

pub(super) fn serialised(tree: &StackTree, layer: &Layer, found: &FileSystem) -> Option<Advice> {
    let kernel = tree.host.kernel.as_deref().and_then(version);
    let old = |first: (u32, u32)| kernel.is_some_and(|kernel| kernel < first);
    let one_at_a_time = match found.kind.as_str() {
        "ext2" => old((6, 5)),
        "ext3" => old((4, 3)),
        kind => ONE_AT_A_TIME.contains(&kind),
    };
    one_at_a_time.then(|| {
        Advice::new(Code::SerialisedReads, &layer.id)
            .with("kind", &found.kind)
            .with("point", &found.point)
            .command(format!("mkfs.xfs {}", quoted(&found.source)))
    })
}

/// `6.1.0-18-amd64` as 6 and 1.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split(['.', '-', '+']);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, fs, told, tree};
    use super::*;

    #[test]
    fn each_kind_is_told_what_it_does() {
        for (code, kind, options, kernel, wanted) in [
            (Code::Atime, "ext4", "rw,data=ordered", "6.1", 1),
            (Code::Atime, "xfs", "rw,noatime", "6.1", 0),
            (Code::Atime, "xfs", "rw,relatime", "6.1", 0),
            (Code::Atime, "xfs", "ro", "6.1", 0),
            (Code::Atime, "tmpfs", "rw", "6.1", 0),
            (Code::BarriersOff, "ext4", "rw,nobarrier", "6.1", 1),
            (Code::BarriersOff, "ext3", "rw,barrier=0", "6.1", 1),
            (Code::BarriersOff, "xfs", "rw,nobarrier", "6.1", 1),
            (Code::BarriersOff, "f2fs", "rw,fsync_mode=nobarrier", "6.1", 1),
            (Code::BarriersOff, "ext4", "rw,noatime", "6.1", 0),
            (Code::BarriersOff, "ext4", "rw,barrier=1", "6.1", 0),
            (Code::BarriersOff, "ext4", "rw,fsync_mode=posix", "6.1", 0),
            (Code::SerialisedReads, "jfs", "rw", "6.1.176", 1),
            (Code::SerialisedReads, "ext2", "rw", "6.1.0-18-amd64", 1),
            (Code::SerialisedReads, "xfs", "rw", "2.6.26", 0),
            (Code::SerialisedReads, "ext4", "rw", "6.1", 0),
            (Code::SerialisedReads, "ext2", "rw", "6.6.1", 0),
            (Code::SerialisedReads, "ext2", "rw", "odd", 0),
        ] {
            let mut tree = tree(vec![fs(kind, "sda", options), disk("sda", "")]);
            tree.host.kernel = Some(kernel.to_owned());
            assert_eq!(told(code, &tree).len(), wanted, "{code:?} of {kind} {options} {kernel}");
        }
    }

    #[test]
    fn flushes_left_out_are_a_danger_and_each_has_its_command() {
        let tree = tree(vec![fs("ext4", "sda", "rw,nobarrier"), disk("sda", "")]);
        let found = told(Code::BarriersOff, &tree);
        assert_eq!(found[0].weight(), super::super::Weight::Danger);
        assert_eq!(found[0].commands, ["mount -o remount,barrier=1 /db"]);
        assert_eq!(told(Code::Atime, &tree)[0].commands, ["mount -o remount,noatime /db"]);
    }
}
