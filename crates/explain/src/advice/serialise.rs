//! File systems that let direct reads of one file pass one at a time.

use finding::Code;
use record::stack::{StackTree, What};

use super::{Advice, Use};

/// Of the "simple locking" kind in `fs/direct-io.c` of Linux: every direct read of a file takes the
/// file's lock for itself while blocks are looked up and requests are sent. ext3 was one until
/// ext4 took it over; ext2 until 6.5.
const ONE_AT_A_TIME: [&str; 10] =
    ["jfs", "nilfs2", "reiserfs", "vfat", "msdos", "exfat", "hfs", "hfsplus", "udf", "affs"];

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let kernel = tree.host.kernel.as_deref().and_then(version);
    let found = tree.layers.iter().filter_map(|layer| {
        let What::FileSystem(found) = &layer.what else { return None };
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
                .command(format!("mkfs.xfs {}", super::quoted(&found.source)))
        })
    });
    found.collect()
}

/// `6.1.0-18-amd64` as 6 and 1.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut words = text.split(['.', '-', '+']);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, fs, tree};
    use super::*;

    fn with(kind: &str, kernel: &str) -> Vec<Advice> {
        let mut tree = tree(vec![fs(kind, "sda", "rw,noatime"), disk("sda", "")]);
        tree.host.kernel = Some(kernel.to_owned());
        look(&tree, Use::default())
    }

    #[test]
    fn jfs_is_found() {
        assert_eq!(with("jfs", "6.1.176").len(), 1);
        assert_eq!(with("ext2", "6.1.0-18-amd64").len(), 1);
    }

    #[test]
    fn those_that_let_readers_pass_are_left_alone() {
        assert!(with("xfs", "2.6.26").is_empty() && with("ext4", "6.1").is_empty());
        assert!(with("ext2", "6.6.1").is_empty() && with("ext2", "odd").is_empty());
    }
}
