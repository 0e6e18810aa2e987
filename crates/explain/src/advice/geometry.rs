//! Where a stack has stripes, and where a layer's beginning lies in them. What stripes there are
//! and what they cost is `layout`'s to reckon.

use layout::{Geometry, MeanCost, Seen};
use record::stack::{Layer, Mapper, Queue, StackTree, What};
use units::{ByteOffset, Bytes};

use super::Predicted;

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
    /// The array, where more is known than its stripes.
    seen: Option<Seen>,
}

impl<'a> Stripe<'a> {
    fn new(layer: &'a Layer, seen: Seen, level: &str) -> Self {
        let parity = seen.level().parity() > 0;
        let mut stripe = Self::of_geometry(layer, seen.geometry(), level);
        (stripe.parity, stripe.seen) = (parity, Some(seen));
        stripe
    }

    fn of_geometry(layer: &'a Layer, geometry: Geometry, level: &str) -> Self {
        let (unit, width) = (geometry.unit.get(), geometry.width().get());
        Self { layer, unit, width, parity: false, level: level.to_owned(), seen: None }
    }

    /// As `layout` has it.
    pub(super) fn geometry(&self) -> Geometry {
        let count = self.width.checked_div(self.unit).and_then(|count| u32::try_from(count).ok());
        Geometry { unit: Bytes::new(self.unit), count: count.unwrap_or(1) }
    }

    /// What writes of a size cost the members of an array with parity, where the data that is
    /// written to begins `start` bytes behind the first full stripe.
    pub(super) fn write_cost(&self, start: u64, size: u64) -> Option<MeanCost> {
        let seen = self.seen.filter(|_| self.parity && size > 0)?;
        seen.mean_write_cost(ByteOffset::new(start), Bytes::new(size))
    }

    /// What is lost by data that begins `start` bytes behind the first full stripe: for requests
    /// and for whole stripes.
    pub(super) fn off_by(&self, start: u64, request: u64) -> Vec<Predicted> {
        let mut sizes = vec![request, self.width];
        sizes.dedup();
        let of = |size| {
            let (now, then) = (self.write_cost(start, size)?, self.write_cost(0, size)?);
            Predicted::of(&now, &then)
        };
        sizes.into_iter().filter_map(of).collect()
    }

    /// The same array with another chunk.
    pub(super) fn with_chunk(&self, chunk: u64) -> Option<Self> {
        let seen = self.seen?.with_chunk(Bytes::new(chunk))?;
        Some(Self::new(self.layer, seen, &self.level))
    }
}

/// The stripe of a layer, if it has one and it is known.
pub(super) fn stripe(layer: &Layer) -> Option<Stripe<'_>> {
    match &layer.what {
        What::Md(md) => Some(Stripe::new(layer, md.stripes()?, &md.level)),
        What::Mapper(mapper) if mapper.segments.is_some() => {
            let (seen, level) = of_mapper(mapper)?;
            Some(Stripe::new(layer, seen, level))
        }
        What::Mapper(_) => {
            let geometry = of_hints(layer.queue.as_ref()?)?;
            Some(Stripe::of_geometry(layer, geometry, "striped"))
        }
        _ => None,
    }
}

/// A volume is one stripe if all its parts are alike.
fn of_mapper(mapper: &Mapper) -> Option<(Seen, &str)> {
    let of = |segment: &record::stack::Segment| {
        let members = u32::try_from(segment.on.len()).ok()?;
        Seen::new(word(segment), members, Bytes::new(segment.chunk_bytes?), None)
    };
    let segments = mapper.segments.as_deref()?;
    let first = segments.first()?;
    let seen = of(first)?;
    segments.iter().all(|segment| of(segment) == Some(seen)).then_some((seen, word(first)))
}

fn word(segment: &record::stack::Segment) -> &str {
    segment.level.as_deref().unwrap_or(&segment.target)
}

/// A volume whose table only root may read still says its chunk and its full stripe. One that lies
/// on an array as it is says those of the array.
fn of_hints(queue: &Queue) -> Option<Geometry> {
    let (unit, width) = (queue.minimum_io_bytes?, queue.optimal_io_bytes?);
    let count = width.checked_div(unit).filter(|&data| data > 1 && width.is_multiple_of(unit))?;
    Some(Geometry { unit: Bytes::new(unit), count: u32::try_from(count).ok()? })
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
