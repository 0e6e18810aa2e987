//! Where a stack has stripes, and where a layer's beginning lies in them.

use record::stack::{Layer, Mapper, Queue, StackTree, What};

/// A layer that spreads data over several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stripe<'a> {
    /// The layer.
    pub layer: &'a Layer,
    /// Bytes on one member before the next.
    pub unit: u64,
    /// Bytes of data in a full stripe: the data width.
    pub width: u64,
    /// Whether small writes have to read first.
    pub parity: bool,
    /// `raid5`, `striped`.
    pub level: String,
}

/// The stripe of a layer, if it has one and it is known.
pub(super) fn stripe(layer: &Layer) -> Option<Stripe<'_>> {
    let (unit, data, level) = match &layer.what {
        What::Md(md) => (md.chunk_bytes?, md.data_members()?, md.level.clone()),
        What::Mapper(mapper) if mapper.segments.is_some() => of_mapper(mapper)?,
        What::Mapper(_) => of_hints(layer.queue.as_ref()?)?,
        _ => return None,
    };
    let width = unit.checked_mul(data.into()).filter(|&width| width > 0)?;
    let parity = matches!(level.as_str(), "raid4" | "raid5" | "raid6");
    Some(Stripe { layer, unit, width, parity, level })
}

/// A volume is one stripe if all its parts are alike.
fn of_mapper(mapper: &Mapper) -> Option<(u64, u32, String)> {
    let of = |segment: &record::stack::Segment| {
        let members = u32::try_from(segment.on.len()).ok()?;
        let level = segment.level.clone().unwrap_or_else(|| segment.target.clone());
        let data = match level.as_str() {
            "striped" | "raid0" => members,
            "raid4" | "raid5" => members.checked_sub(1)?,
            "raid6" => members.checked_sub(2)?,
            "raid10" => members / 2,
            _ => return None,
        };
        Some((segment.chunk_bytes?, data, level))
    };
    let segments = mapper.segments.as_deref()?;
    let first = of(segments.first()?)?;
    segments.iter().all(|segment| of(segment).as_ref() == Some(&first)).then_some(first)
}

/// A volume whose table only root may read still says its chunk and its full stripe. One that lies
/// on an array as it is says those of the array.
fn of_hints(queue: &Queue) -> Option<(u64, u32, String)> {
    let (unit, width) = (queue.minimum_io_bytes?, queue.optimal_io_bytes?);
    let data = width.checked_div(unit).filter(|&data| data > 1 && width.is_multiple_of(unit))?;
    Some((unit, u32::try_from(data).ok()?, "striped".to_owned()))
}

/// The first stripe at or below a layer, through layers that stand on one other: what a file
/// system or a volume lies on.
pub(super) fn stripe_under<'a>(tree: &'a StackTree, layer: &'a Layer) -> Option<Stripe<'a>> {
    let mut here = layer;
    // Layers in a circle end it.
    for _ in 0..tree.layers.len() {
        if let Some(found) = stripe(here) {
            return Some(found);
        }
        let [below] = here.below.as_slice() else { return None };
        here = tree.layer(below)?;
    }
    None
}

/// The block device right under a file system that is on one alone.
pub(super) fn device_of<'a>(tree: &'a StackTree, layer: &'a Layer) -> Option<&'a Layer> {
    match (&layer.what, layer.below.as_slice()) {
        (What::FileSystem(_), [below]) => tree.layer(below),
        _ => None,
    }
}

/// Disks at the bottom of a layer, each once.
pub(super) fn disks<'a>(tree: &'a StackTree, layer: &'a Layer) -> Vec<&'a Layer> {
    let mut found = tree.under(layer);
    found.retain(|layer| matches!(layer.what, What::Disk(_)));
    found
}

/// What a part of a stack can do by its links: the narrowest on the way.
pub(super) fn narrowest<'a>(
    tree: &'a StackTree,
    layer: &'a Layer,
) -> Option<(&'a str, &'a record::Link)> {
    let links = tree.under(layer).into_iter().filter_map(|layer| {
        let wire = match &layer.what {
            What::Disk(disk) => disk.wire.as_ref(),
            What::Controller(controller) => controller.wire.as_ref(),
            _ => None,
        };
        wire.map(|wire| (layer.id.as_str(), &wire.now))
    });
    links.min_by_key(|(_, link)| link.bytes_per_second)
}

#[cfg(test)]
mod tests {
    use super::super::example::{disk, md, tree, volume};
    use super::*;

    #[test]
    fn stripes_of_arrays_and_volumes() {
        let raid6 = md("md0", "raid6", 128, &["a", "b", "c", "d", "e", "f"]);
        let found = stripe(&raid6).unwrap();
        assert_eq!((found.unit, found.width, found.parity), (128 << 10, 512 << 10, true));
        let striped = volume("dm-0", Some(512), &[("md0", 0), ("md1", 0)]);
        assert_eq!(stripe(&striped).unwrap().width, 1 << 20);
        assert_eq!(stripe(&volume("dm-0", None, &[("md0", 0)])), None);
        assert_eq!(stripe(&disk("sda", "")), None);
        let mut hidden = striped.clone();
        if let What::Mapper(mapper) = &mut hidden.what {
            mapper.segments = None;
        }
        assert_eq!(stripe(&hidden), None);
        if let Some(queue) = &mut hidden.queue {
            (queue.minimum_io_bytes, queue.optimal_io_bytes) = (Some(512 << 10), Some(1 << 20));
        }
        assert_eq!(stripe(&hidden).unwrap().width, 1 << 20);
    }

    #[test]
    fn the_first_stripe_below_counts() {
        let linear = volume("dm-0", None, &[("md0", 0)]);
        let tree = tree(vec![linear, md("md0", "raid5", 64, &["a", "b", "c"])]);
        assert_eq!(stripe_under(&tree, &tree.layers[0]).unwrap().layer.id, "md0");
    }
}
