//! How queues of block devices are set: schedulers, lengths, and caches that flushes do not reach.

use finding::Code;
use record::stack::{Disk, Layer, Queue, StackTree, What};

use super::{Advice, Weight, quoted, set_queue};

/// Commands that SATA takes at a time.
const TAGS: u32 = 31;
/// A queue of the kernel shorter than this is short for anything that does not turn.
const REQUESTS: u32 = 32;

/// An I/O scheduler that does not fit the medium.
pub(super) fn scheduler(layer: &Layer, disk: &Disk, queue: &Queue) -> Option<Advice> {
    let now = queue.scheduler.as_deref()?;
    let is_nvme = disk.transport.as_deref() == Some("nvme");
    // Who knows where the heads of a virtual disk are, if there are any, is the host.
    let wanted: &[&str] = match (disk.known_as.is_some() || is_nvme, queue.rotational) {
        (true, _) => &["none", "mq-deadline"],
        (false, Some(true)) => &["mq-deadline", "bfq"],
        (false, Some(false)) => &["none", "mq-deadline", "kyber"],
        (false, None) => return None,
    };
    let best = wanted.iter().find(|name| queue.schedulers.iter().any(|there| there == *name))?;
    (!wanted.contains(&now)).then(|| {
        Advice::new(Code::Scheduler, &layer.id)
            .with("now", now)
            .with_some("known_as", disk.known_as.as_ref())
            .with("nvme", is_nvme)
            .with("rotational", queue.rotational == Some(true))
            .with("available", queue.schedulers.as_slice())
            .command(set_queue(&layer.id, "scheduler", best))
    })
}

/// A drive that takes few commands at a time.
pub(super) fn tags(layer: &Layer, disk: &Disk, _: &Queue) -> Option<Advice> {
    let depth = disk.queue_depth.filter(|&depth| depth < TAGS / 2)?;
    let path = quoted(&format!("/sys/block/{}/device/queue_depth", layer.id));
    let advice = Advice::new(Code::SmallQueue, &layer.id).with("depth", depth);
    Some(advice.command(format!("echo {TAGS} > {path}")))
}

/// A queue of the kernel too short to keep the device busy. Without a scheduler it is the
/// hardware's own, and cannot be longer.
pub(super) fn requests(layer: &Layer, _: &Disk, queue: &Queue) -> Option<Advice> {
    let is_own = queue.scheduler.as_deref() != Some("none") && queue.rotational == Some(false);
    let requests = queue.requests.filter(|&requests| requests < REQUESTS && is_own)?;
    let advice = Advice::new(Code::SmallQueue, &layer.id)
        .weighing(Weight::Hint)
        .with("kernel", true)
        .with("requests", requests);
    Some(advice.command(set_queue(&layer.id, "nr_requests", "256")))
}

fn cache(layer: &Layer) -> Option<&str> {
    layer.queue.as_ref()?.write_cache.as_deref()
}

fn unsafe_cache(layer: &Layer) -> Advice {
    let command = set_queue(&layer.id, "write_cache", "'write back'");
    Advice::new(Code::WriteCacheUnsafe, &layer.id).command(command)
}

/// The drive says that it has a cache, and the kernel was told that it has none.
pub(super) fn cache_denied(layer: &Layer, disk: &Disk, queue: &Queue) -> Option<Advice> {
    let own = disk.cache.as_deref().filter(|own| own.starts_with("write back"))?;
    let lies = queue.write_cache.as_deref() == Some("write through");
    lies.then(|| unsafe_cache(layer).with("cache", own))
}

/// A layer says that nothing below it has a cache, and something has. Through a loop device flushes
/// become calls of fsync on its file.
pub(super) fn cache_hidden(tree: &StackTree, layer: &Layer) -> Option<Advice> {
    let flushes = matches!(layer.what, What::Disk(_) | What::Loop(_) | What::Memory { .. });
    if flushes || cache(layer)? != "write through" {
        return None;
    }
    let mut below = tree.under(layer).into_iter().skip(1);
    let cached = below.find(|below| cache(below) == Some("write back"))?;
    Some(unsafe_cache(layer).with("cached", &cached.id))
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, disk_with, md, told, tree};
    use super::*;

    fn with(code: Code, change: impl FnOnce(&mut Disk, &mut Queue)) -> Vec<Advice> {
        told(code, &tree(vec![disk_with("sda", change)]))
    }

    #[test]
    fn bfq_on_flash_and_none_on_heads_are_found() {
        let found = with(Code::Scheduler, |_, queue| queue.scheduler = Some("bfq".into()));
        assert_eq!(found[0].commands, ["echo none > /sys/block/sda/queue/scheduler"]);
        let found = with(Code::Scheduler, |_, queue| queue.rotational = Some(true));
        assert_eq!(found[0].commands, ["echo mq-deadline > /sys/block/sda/queue/scheduler"]);
    }

    #[test]
    fn a_scheduler_that_fits_or_cannot_be_changed_is_left_alone() {
        let is_quiet = |change: fn(&mut Disk, &mut Queue)| with(Code::Scheduler, change).is_empty();
        assert!(is_quiet(|_, _| {}));
        assert!(is_quiet(|_, queue| queue.scheduler = Some("mq-deadline".into())));
        // Virtual disks often say that they turn.
        assert!(is_quiet(|disk, queue| {
            disk.known_as = Some("virtual disk".into());
            queue.rotational = Some(true);
        }));
        assert!(is_quiet(|_, queue| {
            (queue.scheduler, queue.schedulers) = (Some("bfq".into()), vec!["bfq".into()]);
        }));
        assert!(is_quiet(|_, queue| (queue.scheduler, queue.rotational) = (None, None)));
    }

    #[test]
    fn short_queues_are_found_and_usual_ones_left_alone() {
        let found = with(Code::SmallQueue, |disk, _| disk.queue_depth = Some(1));
        assert_eq!(found[0].commands, ["echo 31 > /sys/block/sda/device/queue_depth"]);
        let found = with(Code::SmallQueue, |_, queue| {
            (queue.requests, queue.scheduler) = (Some(4), Some("mq-deadline".into()));
        });
        assert_eq!(found[0].commands, ["echo 256 > /sys/block/sda/queue/nr_requests"]);
        assert!(with(Code::SmallQueue, |_, _| {}).is_empty());
        assert!(with(Code::SmallQueue, |disk, _| disk.queue_depth = None).is_empty());
        assert!(with(Code::SmallQueue, |_, queue| queue.requests = Some(16)).is_empty());
    }

    #[test]
    fn a_drive_whose_cache_is_denied_is_found() {
        let denied = |cache: &str, kernel: Option<&str>| {
            let found = with(Code::WriteCacheUnsafe, |disk, queue| {
                disk.cache = Some(cache.into());
                queue.write_cache = kernel.map(str::to_owned);
            });
            found.len()
        };
        assert_eq!(denied("write back", Some("write through")), 1);
        assert_eq!(denied("write back", Some("write back")), 0);
        assert_eq!(denied("write through", Some("write through")), 0);
        assert_eq!(denied("write back", None), 0);
    }

    #[test]
    fn an_array_that_swallows_flushes_is_found() {
        let with = |mode: &str| {
            let mut array = md("md0", "raid0", 64, &["sda", "sdb"]);
            array.queue.as_mut().unwrap().write_cache = Some(mode.into());
            let tree = tree(vec![array, disk("sda", ""), disk("sdb", "")]);
            told(Code::WriteCacheUnsafe, &tree).len()
        };
        assert_eq!((with("write through"), with("write back")), (1, 0));
    }
}
