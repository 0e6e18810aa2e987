//! Reads that write.

use finding::Code;
use record::stack::{StackTree, What};

use super::{Advice, Use, quoted};

/// Those that keep a time of the last read at all.
const KEEP: [&str; 10] =
    ["ext2", "ext3", "ext4", "xfs", "jfs", "btrfs", "f2fs", "nilfs2", "reiserfs", "bcachefs"];

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let found = tree.layers.iter().filter_map(|layer| {
        let What::FileSystem(found) = &layer.what else { return None };
        let has = |option: &str| found.options.iter().any(|there| there == option);
        // `relatime` writes once a day and file: nothing for the few files of a database.
        let quiet = has("noatime") || has("relatime") || has("ro") || found.options.is_empty();
        let of_pool = found.pool.iter().flat_map(|pool| &pool.settings);
        let zfs = of_pool.clone().any(|set| set.name == "atime" && set.value == "on");
        if !(zfs || KEEP.contains(&found.kind.as_str()) && !quiet) {
            return None;
        }
        let command = if zfs {
            format!("zfs set atime=off {}", quoted(&found.source))
        } else {
            format!("mount -o remount,noatime {}", quoted(&found.point))
        };
        Some(
            Advice::new(Code::Atime, &layer.id)
                .with("options", &found.options.join(","))
                .command(command),
        )
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, fs, tree};
    use super::*;

    fn with(kind: &str, options: &str) -> Vec<Advice> {
        look(&tree(vec![fs(kind, "sda", options), disk("sda", "")]), Use::default())
    }

    #[test]
    fn a_strict_atime_is_found() {
        assert_eq!(with("ext4", "rw,data=ordered")[0].commands, ["mount -o remount,noatime /db"]);
    }

    #[test]
    fn others_are_left_alone() {
        for options in ["rw,noatime", "rw,relatime", "ro"] {
            assert!(with("xfs", options).is_empty(), "{options}");
        }
        assert!(with("tmpfs", "rw").is_empty());
    }
}
