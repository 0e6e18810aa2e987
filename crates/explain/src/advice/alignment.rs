//! Partitions and volumes whose data do not begin where a sector, a page or a stripe of what they lie
//! on begins.

use finding::{Code, Number};
use record::stack::{Layer, StackTree, What};
use units::Bytes;

use super::geometry::stripe_under;
use super::{Advice, Use, quoted};

/// Pages of flash and sectors of large drives are at least so long, whatever they say.
const PAGE: u64 = 4096;

pub(super) fn look(tree: &StackTree, purpose: Use) -> Vec<Advice> {
    let partitions = tree.layers.iter().filter_map(|layer| partition(tree, layer, purpose));
    let volumes = tree.layers.iter().filter_map(|layer| volume(tree, layer, purpose));
    partitions.chain(volumes).collect()
}

fn partition(tree: &StackTree, layer: &Layer, purpose: Use) -> Option<Advice> {
    let What::Partition(found) = &layer.what else { return None };
    let disk = tree.below(layer).next()?;
    let sector = disk.queue.as_ref().and_then(|queue| queue.physical_sector_bytes);
    let page = sector.unwrap_or(PAGE).max(PAGE);
    let (advice, unit) =
        off(Code::PartitionAlignment, tree, layer, (disk, found.start_bytes?), page, purpose)?;
    let first = layout::lvm::data_start(unit).get();
    let device = quoted(&format!("/dev/{}", disk.id));
    Some(advice.command(format!("parted {device} mkpart data {first}B 100%")))
}

/// Of a volume the first place that is off; the others are off for the same reason.
fn volume(tree: &StackTree, layer: &Layer, purpose: Use) -> Option<Advice> {
    let What::Mapper(found) = &layer.what else { return None };
    let is_lvm = found.maker.as_deref() == Some("LVM");
    let segments = found.segments.iter().flatten().filter(|_| is_lvm);
    let ((advice, unit), below) = segments.flat_map(|segment| &segment.on).find_map(|extent| {
        let (below, start) = (tree.layer(&extent.layer)?, extent.offset_bytes?);
        Some((off(Code::LvmAlignment, tree, layer, (below, start), PAGE, purpose)?, below))
    })?;
    let device = quoted(&format!("/dev/{}", below.id));
    let alignment = layout::lvm::data_alignment(Some(unit));
    let extent = layout::lvm::extent_size(alignment, None).get();
    let advice = advice
        .with("volume", &found.name)
        .command(format!("pvcreate --dataalignment {}b {device}", alignment.get()))
        .command(format!("vgcreate --physicalextentsize {extent}b VG {device}"));
    Some(advice)
}

/// Advice on a layer whose data begin off a boundary of what is below, and the bytes from one boundary
/// to the next; `None` where they begin on one.
///
/// * `at`: what it lies on, and the first byte there.
/// * `page`: bytes of a page or sector, which count where no stripe is.
fn off(
    code: Code,
    tree: &StackTree,
    layer: &Layer,
    at: (&Layer, u64),
    page: u64,
    purpose: Use,
) -> Option<(Advice, Bytes)> {
    let (below, start) = at;
    let stripe = stripe_under(tree, below);
    let unit = stripe.as_ref().map_or(page, |stripe| stripe.width);
    // A stripe on one kind of boundary and not on the other is still a loss, of the smaller.
    let over = start.checked_rem(unit).filter(|&over| over != 0)?;
    let advice = Advice::new(code, &layer.id)
        .with("over", Number::bytes(over))
        .with("unit", Number::bytes(unit))
        .with("start", start)
        .with("device", &below.id);
    let advice = match &stripe {
        Some(stripe) => advice
            .with("stripe", &stripe.layer.id)
            .with("level", &stripe.level)
            .with("parity", stripe.parity),
        None => advice.with("page", Number::bytes(unit)),
    };
    let own = stripe.filter(|stripe| stripe.layer.id == below.id);
    let predicted = own.map(|stripe| stripe.off_by(start, purpose.request_bytes));
    Some((advice.predicting(predicted.into_iter().flatten()), Bytes::new(unit)))
}

#[cfg(test)]
mod tests {
    use finding::Value;

    use super::super::example::{disk, md, partition, tree, volume};
    use super::*;

    fn at(start: u64) -> Vec<Advice> {
        look(&tree(vec![partition("sda1", "sda", start), disk("sda", "")]), Use::default())
    }

    fn on_array(start: u64) -> Vec<Advice> {
        let array = md("md0", "raid5", 128, &["a", "b", "c"]);
        look(&tree(vec![partition("md0p1", "md0", start), array]), Use::default())
    }

    #[test]
    fn the_63_sectors_of_old_are_found_and_whole_mebibytes_are_fine() {
        let found = at(63 * 512);
        assert_eq!(found.len(), 1);
        let seen = [found[0].finding.value("over"), found[0].finding.value("unit")];
        let wanted = [63 * 512 % 4096, 4096].map(|bytes| Value::from(Number::bytes(bytes)));
        assert_eq!(seen, wanted.each_ref().map(Some));
        assert!(found[0].commands[0].contains("1048576B"));
        assert!(at(1 << 20).is_empty() && at(2048 * 512 * 3).is_empty());
    }

    #[test]
    fn on_an_array_the_stripe_counts() {
        assert_eq!(on_array(128 << 10).len(), 1);
        assert!(on_array(1 << 20).is_empty());
    }

    #[test]
    fn what_it_will_cost_is_foretold() {
        // Of three members two hold data. Half a chunk off, a write of a whole stripe has one and
        // a half chunks of one stripe, for which half a chunk is read, and half a chunk of the next,
        // for which old data and old parity are, or what is not written of the stripe: both are a chunk.
        let found = on_array(64 << 10);
        let whole = found[0].predicts.iter().find(|one| one.request_bytes == 256 << 10).unwrap();
        assert_eq!((whole.now.read, whole.then.read), (0.5, 0.0));
        assert_eq!(whole.then.written, 1.5);
        // A page is read for and written as well anywhere.
        assert!(!found[0].predicts.iter().any(|one| one.request_bytes == 16 << 10), "{found:?}");
        assert!(found[0].sentences().iter().any(|text| text.contains("read 0.5 and")), "{found:?}");
        // Copies cost the same anywhere.
        let mirror = md("md0", "raid10", 128, &["a", "b", "c", "d"]);
        let plain = tree(vec![partition("md0p1", "md0", 64 << 10), mirror]);
        assert!(look(&plain, Use::default())[0].predicts.is_empty());
    }

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
        // The default of today fits widths that are powers of two.
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
            let linear = volume("dm-0", None, &[("sda", offset)]);
            look(&tree(vec![linear, disk("sda", "")]), Use::default()).len()
        };
        assert_eq!((on(1 << 20), on(512)), (0, 1));
    }
}
