//! What is set on top of stripes: a file system that was told of another one than it is on, or of none;
//! read-ahead that is shorter than one, or so long that it reads what nobody wants.

use finding::{Code, Number};
use record::stack::{FileSystem, Layer, StackTree, What};
use units::Bytes;

use super::geometry::{Stripe, stripe_under};
use super::{Advice, Weight, quoted, set_queue};

/// More than so much, and more than two stripes, is more than any sequential scan needs.
const MUCH: u64 = 4 << 20;

/// The block device right under a file system that is on one alone.
fn device_of<'a>(tree: &'a StackTree, layer: &Layer) -> Option<&'a Layer> {
    match layer.below.as_slice() {
        [below] => tree.layer(below),
        _ => None,
    }
}

pub(super) fn read_ahead(tree: &StackTree, layer: &Layer, _: &FileSystem) -> Option<Advice> {
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
}

pub(super) fn hints(tree: &StackTree, layer: &Layer, found: &FileSystem) -> Option<Advice> {
    if !matches!(found.kind.as_str(), "xfs" | "ext4") {
        return None;
    }
    let stripe = stripe_under(tree, device_of(tree, layer)?)?;
    let (told, told_unit) = (found.stripe_width_bytes?, found.stripe_unit_bytes);
    let unit_fits =
        told_unit.is_none_or(|unit| unit == 0 && told != 0 || unit != 0 && stripe.unit % unit == 0);
    // A stripe of whole legs: the whole of all legs is as good a width as that of one.
    let is_multiple = told != 0 && told % stripe.width == 0;
    if is_multiple && unit_fits {
        return None;
    }
    // Without parity there is little to gain but the spread of its own structures.
    let weight = if stripe.parity || told != 0 { Weight::Warning } else { Weight::Hint };
    let advice = Advice::new(Code::StripeHints, &layer.id)
        .weighing(weight)
        .with("kind", &found.kind)
        .with_some("assumed", (told != 0).then_some(Number::bytes(told)))
        .with_some("assumed_unit", told_unit.filter(|&n| n > 0).map(Number::bytes))
        .with("array", &stripe.layer.id)
        .with("level", &stripe.level)
        .with("parity", stripe.parity)
        .with("chunk", Number::bytes(stripe.unit))
        .with("width", Number::bytes(stripe.width));
    Some(commands(advice, found, &stripe))
}

fn commands(advice: Advice, found: &FileSystem, stripe: &Stripe<'_>) -> Advice {
    let block = found.block_bytes.filter(|&bytes| bytes > 0).unwrap_or(4096);
    let source = quoted(&found.source);
    let point = quoted(&found.point);
    if found.kind == "xfs" {
        let (unit, width) = (stripe.unit / 512, stripe.width / 512);
        return advice
            .command(format!("umount {point}"))
            .command(format!("mount -o sunit={unit},swidth={width} {source} {point}"));
    }
    let words = layout::mkfs::stripe_words(
        layout::FileSystemKind::Ext4,
        Some(stripe.geometry()),
        Bytes::new(block),
    );
    if words.is_empty() {
        return advice.with("unfit", true);
    }
    advice
        .command(format!("tune2fs {} {source}", words.join(" ")))
        .command(format!("umount {point}"))
        .command(format!("mount {source} {point}"))
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, fs, fs_with_stripe, md, told, tree};
    use super::*;

    const KIB: u64 = 1 << 10;

    fn on_raid5(kind: &str, unit: Option<u64>, width: Option<u64>) -> Vec<Advice> {
        let array = md("md0", "raid5", 128, &["a", "b", "c"]);
        told(Code::StripeHints, &tree(vec![fs_with_stripe(kind, "md0", unit, width), array]))
    }

    #[test]
    fn a_file_system_that_knows_its_stripe_needs_nothing() {
        assert!(on_raid5("xfs", Some(128 * KIB), Some(256 * KIB)).is_empty());
        assert!(on_raid5("ext4", None, Some(256 * KIB)).is_empty());
        // As wide as two full stripes.
        assert!(on_raid5("xfs", Some(128 * KIB), Some(512 * KIB)).is_empty());
    }

    #[test]
    fn one_that_was_told_nothing_is_found() {
        let found = on_raid5("xfs", Some(0), Some(0));
        assert_eq!(found[0].weight(), Weight::Warning);
        assert!(found[0].commands[1].contains("sunit=256,swidth=512"), "{found:?}");
        let found = on_raid5("ext4", None, Some(0));
        assert!(found[0].commands[0].contains("stride=32,stripe_width=64"), "{found:?}");
    }

    #[test]
    fn one_that_was_told_something_else_is_found() {
        let found = on_raid5("xfs", Some(64 * KIB), Some(192 * KIB));
        assert_eq!(found[0].finding.value("assumed"), Some(&Number::bytes(192 * KIB).into()));
    }

    #[test]
    fn what_is_not_known_or_not_striped_is_left_alone() {
        assert!(on_raid5("xfs", None, None).is_empty());
        assert!(on_raid5("btrfs", Some(0), Some(0)).is_empty());
        let plain = tree(vec![fs_with_stripe("xfs", "sda", Some(0), Some(0)), disk("sda", "")]);
        assert!(told(Code::StripeHints, &plain).is_empty());
    }

    fn with(kib: u64) -> Vec<Advice> {
        let mut array = md("md0", "raid5", 512, &["a", "b", "c", "d", "e"]);
        array.queue.as_mut().unwrap().read_ahead_bytes = Some(kib << 10);
        told(Code::ReadAhead, &tree(vec![fs("xfs", "md0", "rw"), array]))
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
            told(Code::ReadAhead, &tree(vec![fs("xfs", "sda", "rw"), disk]))
        };
        assert_eq!(with(8 << 20)[0].commands, ["echo 1024 > /sys/block/sda/queue/read_ahead_kb"]);
        assert!(with(128 << 10).is_empty() && with(0).is_empty());
    }
}
