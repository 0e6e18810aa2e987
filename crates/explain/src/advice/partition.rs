//! A partition that does not begin where a sector, a page or a stripe begins.

use finding::Code;
use record::stack::{StackTree, What};
use units::Bytes;

use super::geometry::{off_boundary, stripe_under};
use super::{Advice, Use, quoted};

/// Pages of flash and sectors of large drives are at least so long, whatever they say.
const PAGE: u64 = 4096;

pub(super) fn look(tree: &StackTree, purpose: Use) -> Vec<Advice> {
    let partitions = tree.layers.iter().filter_map(|layer| match &layer.what {
        What::Partition(partition) => Some((layer, partition.start_bytes?)),
        _ => None,
    });
    let found = partitions.filter_map(|(layer, start)| {
        let disk = tree.below(layer).next()?;
        let sector = disk.queue.as_ref().and_then(|queue| queue.physical_sector_bytes);
        let stripe = stripe_under(tree, disk);
        let unit = stripe.as_ref().map_or(sector.unwrap_or(PAGE).max(PAGE), |one| one.width);
        // A stripe on one kind of boundary and not on the other is still a loss, of the smaller.
        let over = start.checked_rem(unit).filter(|&over| over != 0)?;
        let advice = off_boundary(Code::PartitionAlignment, layer, [over, unit], stripe.as_ref())
            .with("start", start)
            .with("device", &disk.id);
        let predicted = stripe.as_ref().filter(|stripe| stripe.layer.id == disk.id);
        let predicted = predicted.map(|stripe| stripe.off_by(start, purpose.request_bytes));
        let first = layout::lvm::data_start(Bytes::new(unit)).get();
        let device = quoted(&format!("/dev/{}", disk.id));
        Some(
            advice
                .predicting(predicted.into_iter().flatten())
                .command(format!("parted {device} mkpart data {first}B 100%")),
        )
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, md, partition, tree};
    use super::*;

    fn at(start: u64) -> Vec<Advice> {
        look(&tree(vec![partition("sda1", "sda", start), disk("sda", "")]), Use::default())
    }

    fn on_array(start: u64) -> Vec<Advice> {
        let array = md("md0", "raid5", 128, &["a", "b", "c"]);
        look(&tree(vec![partition("md0p1", "md0", start), array]), Use::default())
    }

    #[test]
    fn the_63_sectors_of_old_are_found() {
        let found = at(63 * 512);
        assert_eq!(found.len(), 1);
        let said = found[0].finding.text();
        assert_eq!(said, "sda1: the partition begins 3.5 KiB past a boundary of 4 KiB.");
        assert!(found[0].commands[0].contains("1048576B"));
    }

    #[test]
    fn whole_mebibytes_are_fine() {
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
}
