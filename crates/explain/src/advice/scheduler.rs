//! An I/O scheduler that does not fit the medium.

use finding::Code;
use record::stack::{Disk, Layer, Queue, StackTree, What};

use super::{Advice, Use, set_queue};

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let disks = tree.layers.iter().filter_map(|layer| match (&layer.what, &layer.queue) {
        (What::Disk(disk), Some(queue)) => Some((layer, disk, queue)),
        _ => None,
    });
    disks.filter_map(|(layer, disk, queue)| of_disk(layer, disk, queue)).collect()
}

fn of_disk(layer: &Layer, disk: &Disk, queue: &Queue) -> Option<Advice> {
    let now = queue.scheduler.as_deref()?;
    let is_nvme = disk.transport.as_deref() == Some("nvme");
    let rotational = queue.rotational;
    // Who knows where the heads of a virtual disk are, if there are any, is the host.
    let wanted: &[&str] = match (disk.known_as.is_some() || is_nvme, rotational) {
        (true, _) => &["none", "mq-deadline"],
        (false, Some(true)) => &["mq-deadline", "bfq"],
        (false, Some(false)) => &["none", "mq-deadline", "kyber"],
        (false, None) => return None,
    };
    let best = wanted.iter().find(|name| queue.schedulers.iter().any(|there| there == *name))?;
    if wanted.contains(&now) {
        return None;
    }
    Some(
        Advice::new(Code::Scheduler, &layer.id)
            .with("now", now)
            .with_some("known_as", disk.known_as.as_ref())
            .with("nvme", is_nvme)
            .with("rotational", rotational == Some(true))
            .with("available", queue.schedulers.as_slice())
            .command(set_queue(&layer.id, "scheduler", best)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk_with, tree};
    use super::*;

    fn with(change: impl FnOnce(&mut Disk, &mut Queue)) -> Vec<Advice> {
        look(&tree(vec![disk_with("sda", change)]), Use::default())
    }

    #[test]
    fn bfq_on_flash_and_none_on_heads_are_found() {
        let found = with(|_, queue| queue.scheduler = Some("bfq".into()));
        assert_eq!(found[0].commands, ["echo none > /sys/block/sda/queue/scheduler"]);
        let found = with(|_, queue| queue.rotational = Some(true));
        assert_eq!(found[0].commands, ["echo mq-deadline > /sys/block/sda/queue/scheduler"]);
    }

    #[test]
    fn what_fits_or_cannot_be_changed_is_left_alone() {
        assert!(with(|_, _| {}).is_empty());
        assert!(with(|_, queue| queue.scheduler = Some("mq-deadline".into())).is_empty());
        // Virtual disks often say that they turn.
        let virtual_disk = |disk: &mut Disk, queue: &mut Queue| {
            disk.known_as = Some("virtual disk".into());
            queue.rotational = Some(true);
        };
        assert!(with(virtual_disk).is_empty());
        let only_bfq = |_: &mut Disk, queue: &mut Queue| {
            queue.scheduler = Some("bfq".into());
            queue.schedulers = vec!["bfq".into()];
        };
        assert!(with(only_bfq).is_empty());
        assert!(with(|_, queue| (queue.scheduler, queue.rotational) = (None, None)).is_empty());
    }
}
