//! A file system that was told not to flush.

use finding::Code;
use record::stack::{FileSystem, StackTree, What};

use super::{Advice, Use, quoted};

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let found = tree.layers.iter().filter_map(|layer| {
        let What::FileSystem(found) = &layer.what else { return None };
        let (option, command) = off(found)?;
        Some(
            Advice::new(Code::BarriersOff, &layer.id)
                .with("kind", &found.kind)
                .with("option", &option)
                .with("options", &found.options.join(","))
                .command(command),
        )
    });
    found.collect()
}

fn off(found: &FileSystem) -> Option<(String, String)> {
    let point = quoted(&found.point);
    let pool = found.pool.iter().flat_map(|pool| &pool.settings);
    if pool.clone().any(|set| set.name == "sync" && set.value == "disabled") {
        let command = format!("zfs set sync=standard {}", quoted(&found.source));
        return Some(("sync=disabled".to_owned(), command));
    }
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
    Some((option.clone(), format!("mount -o remount,{back} {point}")))
}

#[cfg(test)]
mod tests {
    use super::super::Weight;
    use super::super::example::{disk, fs, tree};
    use super::*;

    fn with(kind: &str, options: &str) -> Vec<Advice> {
        look(&tree(vec![fs(kind, "sda", options), disk("sda", "")]), Use::default())
    }

    #[test]
    fn all_ways_to_turn_them_off_are_found() {
        for (kind, options) in [
            ("ext4", "rw,nobarrier"),
            ("ext3", "rw,barrier=0"),
            ("xfs", "rw,nobarrier"),
            ("f2fs", "rw,fsync_mode=nobarrier"),
        ] {
            let found = with(kind, options);
            assert_eq!(found.len(), 1, "{kind} {options}");
            assert_eq!(found[0].weight(), Weight::Danger);
        }
    }

    #[test]
    fn defaults_are_left_alone() {
        for options in ["rw,noatime", "rw,barrier=1", "rw,fsync_mode=posix"] {
            assert!(with("ext4", options).is_empty(), "{options}");
        }
    }
}
