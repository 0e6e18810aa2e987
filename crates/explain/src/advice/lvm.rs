//! A volume whose data do not begin where a stripe of what it lies on begins.

use finding::Code;
use record::stack::{Layer, Mapper, StackTree, What};
use units::Bytes;

use super::geometry::{off_boundary, stripe_under};
use super::{Advice, Use, quoted};

/// As for partitions: flash has no smaller pages.
const PAGE: u64 = 4096;

pub(super) fn look(tree: &StackTree, purpose: Use) -> Vec<Advice> {
    let volumes = tree.layers.iter().filter_map(|layer| match &layer.what {
        What::Mapper(mapper) if mapper.maker.as_deref() == Some("LVM") => Some((layer, mapper)),
        _ => None,
    });
    volumes.filter_map(|(layer, mapper)| of_volume(tree, layer, mapper, purpose)).collect()
}

/// The first place that is off; the others are off for the same reason.
fn of_volume(tree: &StackTree, layer: &Layer, mapper: &Mapper, purpose: Use) -> Option<Advice> {
    let extents = mapper.segments.iter().flatten().flat_map(|segment| &segment.on);
    let mut off = extents.filter_map(|extent| {
        let below = tree.layer(&extent.layer)?;
        let offset = extent.offset_bytes?;
        let stripe = stripe_under(tree, below);
        let unit = stripe.as_ref().map_or(PAGE, |stripe| stripe.width);
        let over = offset.checked_rem(unit).filter(|&over| over != 0)?;
        Some((below, offset, unit, over, stripe))
    });
    let (below, offset, unit, over, stripe) = off.next()?;
    let device = quoted(&format!("/dev/{}", below.id));
    let alignment = layout::lvm::data_alignment(Some(Bytes::new(unit)));
    let extent = layout::lvm::extent_size(alignment, None).get();
    let predicted = stripe.as_ref().filter(|stripe| stripe.layer.id == below.id);
    let predicted = predicted.map(|stripe| stripe.off_by(offset, purpose.request_bytes));
    Some(
        off_boundary(Code::LvmAlignment, layer, [over, unit], stripe.as_ref())
            .with("volume", &mapper.name)
            .with("start", offset)
            .with("device", &below.id)
            .predicting(predicted.into_iter().flatten())
            .command(format!("pvcreate --dataalignment {}b {device}", alignment.get()))
            .command(format!("vgcreate --physicalextentsize {extent}b VG {device}")),
    )
}

#[cfg(test)]
mod tests {
    use finding::{Number, Value};

    use super::super::example::{disk, md, tree, volume};
    use super::*;

    fn on_legs(offset: u64) -> Vec<Advice> {
        let stripe = volume("dm-0", Some(512), &[("md0", offset), ("md1", offset)]);
        let raid6 = |id| md(id, "raid6", 128, &["a", "b", "c", "d", "e", "f"]);
        look(&tree(vec![stripe, raid6("md0"), raid6("md1")]), Use::default())
    }

    #[test]
    fn the_192_kib_of_the_study_are_found() {
        let found = on_legs(192 << 10);
        assert_eq!(found.len(), 1);
        let found_at = [found[0].finding.value("over"), found[0].finding.value("unit")];
        let wanted = [192, 512].map(|kib| Value::from(Number::bytes(kib << 10)));
        assert_eq!(found_at, wanted.each_ref().map(Some));
        assert_eq!(found[0].commands[0], "pvcreate --dataalignment 1048576b /dev/md0");
        assert!(found[0].commands[1].contains("4194304b"));
    }

    #[test]
    fn the_default_of_today_fits_widths_that_are_powers_of_two() {
        assert!(on_legs(1 << 20).is_empty());
    }

    #[test]
    fn three_data_members_do_not_fit_the_default() {
        let linear = volume("dm-0", None, &[("md0", 1 << 20)]);
        let raid5 = md("md0", "raid5", 128, &["a", "b", "c", "d"]);
        let found = look(&tree(vec![linear, raid5]), Use::default());
        assert!(found[0].commands[0].contains("393216b"), "{found:?}");
        let whole = found[0].predicts.iter().find(|one| one.request_bytes == 384 << 10).unwrap();
        assert!(whole.now.read > 0.0 && whole.then.read == 0.0, "{found:?}");
    }

    #[test]
    fn on_a_plain_disk_pages_count() {
        let on = |offset| {
            look(
                &tree(vec![volume("dm-0", None, &[("sda", offset)]), disk("sda", "")]),
                Use::default(),
            )
        };
        assert!(on(1 << 20).is_empty());
        assert_eq!(on(512).len(), 1);
    }
}
