//! An I/O scheduler that does not fit the medium.

use record::stack::{Disk, Layer, Queue, StackTree, What};

use super::{Advice, UNTIL_RESTART, Use, Weight, set_queue};

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let disks = tree.layers.iter().filter_map(|layer| match (&layer.what, &layer.queue) {
        (What::Disk(disk), Some(queue)) => Some((layer, disk, queue)),
        _ => None,
    });
    disks.filter_map(|(layer, disk, queue)| of_disk(layer, disk, queue)).collect()
}

fn of_disk(layer: &Layer, disk: &Disk, queue: &Queue) -> Option<Advice> {
    let now = queue.scheduler.as_deref()?;
    let (wanted, reason) = if disk.known_as.is_some() {
        // Who knows where the heads are, if there are any, is the host.
        (
            ["none", "mq-deadline"].as_slice(),
            "the host orders requests itself; doing it twice costs time of the processor",
        )
    } else if disk.transport.as_deref() == Some("nvme") {
        (
            ["none", "mq-deadline"].as_slice(),
            "the drive takes requests in many queues and has no way to travel; ordering them costs time of the processor and a lock",
        )
    } else if queue.rotational? {
        (
            ["mq-deadline", "bfq"].as_slice(),
            "heads travel; without an order by place and a deadline, random reads wait behind writes",
        )
    } else {
        (
            ["none", "mq-deadline", "kyber"].as_slice(),
            "flash has no way to travel; fairness between processes costs IOPS of one database",
        )
    };
    let best = wanted.iter().find(|name| queue.schedulers.iter().any(|there| there == *name))?;
    if wanted.contains(&now) {
        return None;
    }
    let medium = match (disk.known_as.as_deref(), queue.rotational) {
        (Some(name), _) => name.to_owned(),
        (None, Some(true)) => "a drive that turns".to_owned(),
        (None, _) => "flash".to_owned(),
    };
    Some(
        Advice::new(Weight::Hint, "scheduler", &layer.id, format!("scheduler {now} on {medium}"))
            .because(reason)
            .seen(format!("queue/scheduler is {now}, of {}", queue.schedulers.join(", ")))
            .command(set_queue(&layer.id, "scheduler", best))
            .mind(UNTIL_RESTART),
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
