//! A file system that was told of another stripe than it is on, or of none.

use finding::{Code, Number};
use record::stack::{FileSystem, StackTree, What};
use units::Bytes;

use super::geometry::{device_of, stripe_under};
use super::{Advice, Use, Weight, quoted};

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
        // Without parity there is little to gain but the spread of its own structures.
        let weight = if stripe.parity || told != 0 { Weight::Warning } else { Weight::Hint };
        let advice = Advice::new(Code::StripeHints, &layer.id)
            .weighing(weight)
            .with("kind", &found.kind)
            .with_some("assumed", (told != 0).then_some(Number::bytes(told)))
            .with_some(
                "assumed_unit",
                found.stripe_unit_bytes.filter(|&n| n > 0).map(Number::bytes),
            )
            .with("array", &stripe.layer.id)
            .with("level", &stripe.level)
            .with("parity", stripe.parity)
            .with("chunk", Number::bytes(stripe.unit))
            .with("width", Number::bytes(stripe.width));
        Some(commands(advice, found, &stripe))
    });
    found.collect()
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
        return advice.with("unfit", true);
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
        assert_eq!(found[0].weight(), Weight::Warning);
        assert!(found[0].commands[1].contains("sunit=256,swidth=512"), "{found:?}");
        let found = on_raid5("ext4", None, Some(0));
        assert!(found[0].commands[0].contains("stride=32,stripe_width=64"), "{found:?}");
    }

    #[test]
    fn one_that_was_told_something_else_is_found() {
        let found = on_raid5("xfs", Some(64 * KIB), Some(192 * KIB));
        let said = found[0].finding.text();
        assert!(said.contains("192 KiB in units of 64 KiB"), "{said}");
    }

    #[test]
    fn what_is_not_known_or_not_striped_is_left_alone() {
        assert!(on_raid5("xfs", None, None).is_empty());
        assert!(on_raid5("btrfs", Some(0), Some(0)).is_empty());
        let plain = tree(vec![fs_with_stripe("xfs", "sda", Some(0), Some(0)), disk("sda", "")]);
        assert!(look(&plain, Use::default()).is_empty());
    }
}
