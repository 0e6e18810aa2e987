//! A file system that was told of another stripe than it is on, or of none.

use record::stack::{FileSystem, StackTree, What};
use units::Bytes;

use super::geometry::{device_of, stripe_under};
use super::{Advice, Use, Weight, quoted};
use crate::words::size;

pub(super) fn look(tree: &StackTree, _: Use) -> Vec<Advice> {
    let file_systems = tree.layers.iter().filter_map(|layer| match &layer.what {
        What::FileSystem(found) if matches!(found.kind.as_str(), "xfs" | "ext4") => {
            Some((layer, found))
        }
        _ => None,
    });
    let found = file_systems.filter_map(|(layer, found)| {
        let stripe = stripe_under(tree, device_of(tree, layer)?)?;
        let told = found.stripe_width_bytes?;
        let unit_fits = found
            .stripe_unit_bytes
            .is_none_or(|unit| unit == 0 && told != 0 || unit != 0 && stripe.unit % unit == 0);
        if told == stripe.width && unit_fits {
            return None;
        }
        // A stripe of whole legs: the whole of all legs is as good a width as that of one.
        let is_multiple = told != 0 && told % stripe.width == 0;
        if is_multiple && unit_fits {
            return None;
        }
        let finding = match told {
            0 => format!("{} was told of no stripe, and lies on one", found.kind),
            told => format!(
                "{} takes a full stripe for {}, and it is {}",
                found.kind,
                unit_and_width(found.stripe_unit_bytes, told),
                unit_and_width(Some(stripe.unit), stripe.width)
            ),
        };
        // Without parity there is little to gain but the spread of its own structures.
        let weight = if stripe.parity || told != 0 { Weight::Warning } else { Weight::Hint };
        Some(
            commands(Advice::new(weight, "stripe-hints", &layer.id, finding), found, &stripe)
                .because(if stripe.parity {
                    "it does not line up new files and its log with stripes, so that the array \
                     reads old data and parity for writes that could have been whole stripes"
                } else {
                    "it may put the structures that it needs most onto the same member"
                })
                .seen(format!(
                    "{} is {} with a chunk of {} and a data width of {}",
                    stripe.layer.id,
                    stripe.level,
                    size(stripe.unit),
                    size(stripe.width)
                ))
                .mind("what is there already stays where it is; only new files are lined up"),
        )
    });
    found.collect()
}

fn unit_and_width(unit: Option<u64>, width: u64) -> String {
    match unit.filter(|&unit| unit > 0) {
        Some(unit) => format!("{} in units of {}", size(width), size(unit)),
        None => size(width),
    }
}

fn commands(advice: Advice, found: &FileSystem, stripe: &super::geometry::Stripe<'_>) -> Advice {
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
        return advice.mind("its blocks do not fit into that chunk: it cannot be told of it");
    }
    advice
        .command(format!("tune2fs {} {source}", words.join(" ")))
        .command(format!("umount {point}"))
        .command(format!("mount {source} {point}"))
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, fs_with_stripe, md, tree};
    use super::*;

    const KIB: u64 = 1 << 10;

    fn on_raid5(kind: &str, unit: Option<u64>, width: Option<u64>) -> Vec<Advice> {
        let array = md("md0", "raid5", 128, &["a", "b", "c"]);
        look(&tree(vec![fs_with_stripe(kind, "md0", unit, width), array]), Use::default())
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
        assert_eq!(found[0].weight, Weight::Warning);
        assert!(found[0].commands[1].contains("sunit=256,swidth=512"), "{found:?}");
        let found = on_raid5("ext4", None, Some(0));
        assert!(found[0].commands[0].contains("stride=32,stripe_width=64"), "{found:?}");
    }

    #[test]
    fn one_that_was_told_something_else_is_found() {
        let found = on_raid5("xfs", Some(64 * KIB), Some(192 * KIB));
        assert!(found[0].finding.contains("192 KiB in units of 64 KiB"), "{found:?}");
    }

    #[test]
    fn what_is_not_known_or_not_striped_is_left_alone() {
        assert!(on_raid5("xfs", None, None).is_empty());
        assert!(on_raid5("btrfs", Some(0), Some(0)).is_empty());
        let plain = tree(vec![fs_with_stripe("xfs", "sda", Some(0), Some(0)), disk("sda", "")]);
        assert!(look(&plain, Use::default()).is_empty());
    }
}
