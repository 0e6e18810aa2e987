//! A write cache that flushes do not reach.

use finding::Code;
use record::stack::{Layer, StackTree, What};

use super::{Advice, Use, set_queue};

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let mut found: Vec<Advice> = tree.layers.iter().filter_map(of_drive).collect();
    found.extend(tree.layers.iter().filter_map(|layer| of_layers(tree, layer)));
    found
}

fn mode(layer: &Layer) -> Option<&str> {
    layer.queue.as_ref()?.write_cache.as_deref()
}

/// The drive says that it has a cache, and the kernel was told that it has none.
fn of_drive(layer: &Layer) -> Option<Advice> {
    let What::Disk(disk) = &layer.what else { return None };
    let cache = disk.cache.as_deref()?;
    let lies = cache.starts_with("write back") && mode(layer)? == "write through";
    lies.then(|| {
        Advice::new(Code::WriteCacheUnsafe, &layer.id).with("cache", cache).command(set_queue(
            &layer.id,
            "write_cache",
            "'write back'",
        ))
    })
}

/// A layer says that nothing below it has a cache, and something has.
fn of_layers(tree: &StackTree, layer: &Layer) -> Option<Advice> {
    if matches!(layer.what, What::Disk(_)) || mode(layer)? != "write through" {
        return None;
    }
    // Through a loop device flushes become calls of fsync on its file.
    let mut below = tree.under(layer).into_iter().skip(1);
    let cached = below.find(|below| mode(below) == Some("write back"))?;
    if matches!(layer.what, What::Loop(_) | What::Memory { .. }) {
        return None;
    }
    Some(
        Advice::new(Code::WriteCacheUnsafe, &layer.id)
            .with("cached", &cached.id)
            .command(set_queue(&layer.id, "write_cache", "'write back'")),
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, disk_with, md, tree};
    use super::*;

    #[test]
    fn a_drive_whose_cache_is_denied_is_found() {
        let with = |cache: &str, kernel: &str| {
            let drive = disk_with("sda", |disk, queue| {
                disk.cache = Some(cache.into());
                queue.write_cache = Some(kernel.into());
            });
            look(&tree(vec![drive]), Use::default()).len()
        };
        assert_eq!(with("write back", "write through"), 1);
        assert_eq!(with("write back", "write back"), 0);
        assert_eq!(with("write through", "write through"), 0);
    }

    #[test]
    fn an_array_that_swallows_flushes_is_found() {
        let with = |mode: &str| {
            let mut array = md("md0", "raid0", 64, &["sda", "sdb"]);
            array.queue.as_mut().unwrap().write_cache = Some(mode.into());
            let tree = tree(vec![array, disk("sda", ""), disk("sdb", "")]);
            look(&tree, Use::default()).len()
        };
        assert_eq!((with("write through"), with("write back")), (1, 0));
    }

    #[test]
    fn what_is_not_known_is_left_alone() {
        let drive = disk_with("sda", |_, queue| queue.write_cache = None);
        assert!(look(&tree(vec![drive]), Use::default()).is_empty());
    }
}
