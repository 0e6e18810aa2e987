//! Read-ahead that is shorter than a stripe, or so long that it reads what nobody wants.

use finding::{Code, Number};
use record::stack::{StackTree, What};

use super::geometry::{device_of, stripe_under};
use super::{Advice, Use, set_queue};

/// More than so much, and more than two stripes, is more than any sequential scan needs.
const MUCH: u64 = 4 << 20;

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let file_systems = tree.layers.iter().filter(|layer| matches!(layer.what, What::FileSystem(_)));
    let found = file_systems.filter_map(|layer| {
        // Only the device right under the file system counts: those below are never asked.
        let device = device_of(tree, layer)?;
        // A partition has its disk's.
        let device = match (&device.what, device.below.as_slice()) {
            (What::Partition(_), [disk]) => tree.layer(disk)?,
            _ => device,
        };
        let now = device.queue.as_ref()?.read_ahead_bytes?;
        let width = stripe_under(tree, device).map_or(0, |stripe| stripe.width);
        let wanted = width.checked_mul(2)?;
        let value = match now {
            now if now < width => wanted,
            now if now > MUCH.max(wanted) => wanted.max(1 << 20),
            _ => return None,
        };
        let advice = Advice::new(Code::ReadAhead, &device.id)
            .with("read_ahead", Number::bytes(now))
            .with_some("stripe", (now < width).then_some(Number::bytes(width)))
            .with("kib", now >> 10);
        Some(advice.command(set_queue(&device.id, "read_ahead_kb", &(value >> 10).to_string())))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, fs, md, tree};
    use super::*;

    fn with(kib: u64) -> Vec<Advice> {
        let mut array = md("md0", "raid5", 512, &["a", "b", "c", "d", "e"]);
        array.queue.as_mut().unwrap().read_ahead_bytes = Some(kib << 10);
        look(&tree(vec![fs("xfs", "md0", "rw"), array]), Use::default())
    }

    #[test]
    fn less_than_a_stripe_is_too_little() {
        assert_eq!(with(128)[0].commands, ["echo 4096 > /sys/block/md0/queue/read_ahead_kb"]);
        assert!(with(2048).is_empty() && with(4096).is_empty());
    }

    #[test]
    fn many_mebibytes_on_a_disk_are_too_many() {
        let with = |bytes| {
            let mut disk = disk("sda", "");
            disk.queue.as_mut().unwrap().read_ahead_bytes = Some(bytes);
            look(&tree(vec![fs("xfs", "sda", "rw"), disk]), Use::default())
        };
        assert_eq!(with(8 << 20)[0].commands, ["echo 1024 > /sys/block/sda/queue/read_ahead_kb"]);
        assert!(with(128 << 10).is_empty() && with(0).is_empty());
    }
}
