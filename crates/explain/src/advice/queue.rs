//! A queue too short to keep the device busy.

use finding::Code;
use record::stack::{StackTree, What};

use super::{Advice, Use, Weight, set_queue};

/// Commands that SATA takes at a time.
const TAGS: u32 = 31;
/// A queue of the kernel shorter than this is short for anything that does not turn.
const REQUESTS: u32 = 32;

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let mut found = Vec::new();
    for layer in &tree.layers {
        let (What::Disk(disk), Some(queue)) = (&layer.what, &layer.queue) else { continue };
        if let Some(depth) = disk.queue_depth.filter(|&depth| depth < TAGS / 2) {
            let path = super::quoted(&format!("/sys/block/{}/device/queue_depth", layer.id));
            found.push(
                Advice::new(Code::SmallQueue, &layer.id)
                    .with("depth", depth)
                    .command(format!("echo {TAGS} > {path}")),
            );
        }
        let short = queue.requests.filter(|&requests| requests < REQUESTS);
        let is_none = queue.scheduler.as_deref() == Some("none");
        // Without a scheduler it is the hardware's own, and cannot be longer.
        if let Some(requests) = short.filter(|_| !is_none && queue.rotational == Some(false)) {
            found.push(
                Advice::new(Code::SmallQueue, &layer.id)
                    .weighing(Weight::Hint)
                    .with("kernel", true)
                    .with("requests", requests)
                    .command(set_queue(&layer.id, "nr_requests", "256")),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk_with, tree};
    use super::*;
    use record::stack::{Disk, Queue};

    fn with(change: impl FnOnce(&mut Disk, &mut Queue)) -> Vec<Advice> {
        look(&tree(vec![disk_with("sda", change)]), Use::default())
    }

    #[test]
    fn a_drive_without_queueing_is_found() {
        let found = with(|disk, _| disk.queue_depth = Some(1));
        assert_eq!(found[0].commands, ["echo 31 > /sys/block/sda/device/queue_depth"]);
        let found = with(|_, queue| {
            (queue.requests, queue.scheduler) = (Some(4), Some("mq-deadline".into()));
        });
        assert_eq!(found[0].commands, ["echo 256 > /sys/block/sda/queue/nr_requests"]);
    }

    #[test]
    fn usual_queues_are_left_alone() {
        assert!(with(|_, _| {}).is_empty());
        assert!(with(|disk, _| disk.queue_depth = None).is_empty());
        assert!(with(|_, queue| queue.requests = Some(16)).is_empty());
    }
}
