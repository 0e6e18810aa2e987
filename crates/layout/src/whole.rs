//! What the layers of a stack make together.

use schemars::JsonSchema;
use serde::Serialize;
use units::{ByteOffset, Bytes};

use crate::array::{Array, Geometry, Level, Tolerance};
use crate::cost::{Cost, Ways};
use crate::stack::{Maker, StackSpec, Stripe};

/// Where a stripe over legs without stripes of their own is cut; and over devices that may be arrays
/// of a controller, whose stripes cannot be known here.
const STRIPE_DEFAULT: Bytes = Bytes::kib(64);

/// Positions that an average is taken over at most.
const POSITIONS_MAX: u64 = 2048;

/// The chunk of the stripe over the legs: as asked for, or the data width of a leg, so that one
/// piece is one full stripe. LVM's are powers of two: there it is the next one. 64 KiB over legs
/// that have no stripes, or none that are known.
///
/// `None` for a mirror, and for a pool.
pub fn stripe_chunk(stack: &StackSpec, stripe: &Stripe) -> Option<Bytes> {
    if !stripe.level.has_chunk() || stripe.maker == Maker::Zfs {
        return stripe.chunk;
    }
    stripe.chunk.or_else(|| {
        let leg = stack.legs.first()?;
        let width = leg.array().ok()?.and_then(|array| array.data_width());
        let width = width.unwrap_or(STRIPE_DEFAULT);
        Some(match stripe.maker {
            Maker::Lvm => Bytes::new(width.get().checked_next_power_of_two()?),
            _ => width,
        })
    })
}

/// The array over the legs; `None` where there is one leg, or a pool.
pub fn top_array(stack: &StackSpec) -> Option<Array> {
    let stripe = stack.stripe.as_ref().filter(|stripe| stripe.maker != Maker::Zfs)?;
    let legs = u32::try_from(stack.legs.len()).ok()?;
    Array::new(stripe.level, legs, stripe_chunk(stack, stripe)).ok()
}

/// What the topmost device tells a file system. `None` without stripes, and for btrfs and zfs,
/// which make their own.
///
/// Over legs that are joined by a stripe it is the stripe's: a piece for one leg, so that a file
/// system fills full stripes of a leg. Over a mirror of legs it is a leg's.
pub fn geometry(stack: &StackSpec) -> Option<Geometry> {
    let leg = stack.legs.first()?;
    if matches!(leg.maker, Maker::Btrfs | Maker::Zfs) {
        return None;
    }
    match top_array(stack) {
        Some(top) if top.level() == Level::Raid0 => top.geometry(),
        _ => leg.array().ok()?.and_then(|array| array.geometry()),
    }
}

/// Legs that are all alike, and what joins them: the arithmetic of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Whole {
    leg: Option<Array>,
    legs: u32,
    top: Option<Array>,
    start: ByteOffset,
}

/// What writes of one size cost, over all places that are a multiple of that size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeanCost {
    /// Bytes of one write.
    #[schemars(with = "u64")]
    pub size: Bytes,
    /// Requests to read, all members together; the mean.
    pub reads: f64,
    /// Requests to write.
    pub writes: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written, redundancy included.
    pub written_bytes: f64,
    /// Share of the writes that read nothing, 0 to 1.
    pub without_reads: f64,
    /// Which ways were gone.
    pub ways: Ways,
}

impl MeanCost {
    /// Bytes that members move for each byte written.
    pub fn amplification(&self) -> f64 {
        (self.read_bytes + self.written_bytes) / (self.size.get().max(1) as f64)
    }
}

impl Whole {
    /// The arithmetic of a stack; of its first leg, if they differ.
    ///
    /// * `start`: where its data begins on each leg, counted from a full stripe of the leg:
    ///   0 where all is aligned.
    pub fn of(stack: &StackSpec, start: ByteOffset) -> Self {
        Self {
            leg: stack.legs.first().and_then(|leg| leg.array().ok().flatten()),
            legs: u32::try_from(stack.legs.len()).unwrap_or(u32::MAX),
            top: top_array(stack),
            start,
        }
    }

    /// The arithmetic of one array alone.
    ///
    /// * `start`: where its data begins, counted from a full stripe.
    pub const fn of_array(array: Array, start: ByteOffset) -> Self {
        Self { leg: Some(array), legs: 1, top: None, start }
    }

    /// The first leg as an array; `None` for a device as it is.
    pub const fn leg(&self) -> Option<Array> {
        self.leg
    }

    /// The array over the legs.
    pub const fn top(&self) -> Option<Array> {
        self.top
    }

    /// Bytes of data from which the pattern of the whole repeats.
    pub fn width(&self) -> Option<Bytes> {
        let leg = self.leg.and_then(|leg| leg.data_width());
        let top = self.top.filter(|top| top.level() == Level::Raid0);
        match (top.and_then(|top| top.chunk()), leg) {
            (Some(piece), leg) => {
                let row = piece.get().saturating_mul(u64::from(self.legs));
                // Pieces that are no full stripes shift the pattern from row to row.
                let on_leg = leg.map_or(1, |leg| {
                    crate::lvm::multiple_of_both(piece.get(), leg.get()) / piece.get()
                });
                Some(Bytes::new(row.saturating_mul(on_leg)))
            }
            (None, leg) => leg,
        }
    }

    /// Bytes that can be stored where each member gives `member` bytes.
    pub fn capacity(&self, member: Bytes) -> Bytes {
        let leg = self.leg.map_or(member, |leg| leg.capacity(member));
        match self.top {
            Some(top) => top.capacity(leg),
            None => Bytes::new(leg.get().saturating_mul(u64::from(self.legs))),
        }
    }

    /// How many members of all legs may be lost before data is.
    pub fn tolerance(&self) -> Tolerance {
        let leg = self.leg.map_or(Tolerance { sure: 0, at_best: 0 }, |leg| leg.tolerance());
        let members = self.leg.map_or(1, |leg| leg.members());
        if self.top.is_some_and(|top| top.level() == Level::Raid1) {
            // All legs have to be lost, each by one more than it can bear.
            return Tolerance {
                sure: (leg.sure + 1).saturating_mul(self.legs).saturating_sub(1),
                at_best: self.legs.saturating_sub(1).saturating_mul(members) + leg.at_best,
            };
        }
        Tolerance { sure: leg.sure, at_best: leg.at_best.saturating_mul(self.legs) }
    }

    /// What one write to the topmost device costs all members.
    pub fn write_cost(&self, offset: ByteOffset, size: Bytes) -> Cost {
        let parts = self.parts(offset.get().min(1 << 61), size.get().min(1 << 61));
        let mut cost = parts.into_iter().fold(Cost::default(), |cost, (start, end)| {
            let start = start.saturating_add(self.start.get());
            let size = Bytes::new(end.saturating_add(self.start.get()) - start);
            cost.and(self.leg_cost(ByteOffset::new(start), size))
        });
        let mirrored = self.top.is_some_and(|top| top.level() == Level::Raid1);
        if mirrored && cost.writes > 0 {
            cost.ways = Ways { once: false, copies: true, ..cost.ways };
        }
        cost
    }

    fn leg_cost(&self, offset: ByteOffset, size: Bytes) -> Cost {
        match self.leg {
            Some(leg) => leg.write_cost(offset, size),
            None => Cost {
                writes: u64::from(size.get() > 0),
                written_bytes: size,
                ways: Ways { once: true, ..Ways::default() },
                ..Cost::default()
            },
        }
    }

    /// What each leg gets of a write: from, to before. On a leg it is in one piece.
    fn parts(&self, start: u64, size: u64) -> Vec<(u64, u64)> {
        let end = start.saturating_add(size);
        if size == 0 {
            return Vec::new();
        }
        let Some(top) = self.top else { return vec![(start, end)] };
        let Some(piece) = top.chunk().map(Bytes::get) else {
            return vec![(start, end); self.legs as usize];
        };
        let legs = u64::from(self.legs);
        // Bytes of the first `at` bytes that are on leg `leg`.
        let before = |leg: u64, at: u64| {
            let (row, within) = (at / (piece * legs), at % (piece * legs));
            row * piece + within.saturating_sub(leg * piece).min(piece)
        };
        (0..legs)
            .map(|leg| (before(leg, start), before(leg, end)))
            .filter(|(start, end)| start < end)
            .collect()
    }

    /// Whether every write of so many bytes is in one chunk of one leg: then all cost the same.
    fn is_within_chunks(&self, length: u64) -> bool {
        let chunk =
            |array: Option<Array>| array.and_then(|array| array.geometry()).map(|at| at.unit);
        let units = [chunk(self.leg), chunk(self.top), Some(Bytes::new(self.start.get()))];
        chunk(self.leg).is_some()
            && units.into_iter().flatten().all(|unit| unit.get() % length == 0)
    }

    /// What writes of a size cost, wherever they are, at multiples of their size: how benchmarks
    /// choose random places, and databases their pages.
    pub fn mean_write_cost(&self, size: Bytes) -> MeanCost {
        let length = size.get().max(1);
        let width = self.width().map_or(length, Bytes::get).max(1);
        let places = match self.is_within_chunks(length) {
            true => 1,
            false => (crate::lvm::multiple_of_both(length, width) / length).max(1),
        };
        let step = places.div_ceil(POSITIONS_MAX);
        let mut sums = [0u64; 5];
        let mut ways = Ways::default();
        let mut taken = 0u64;
        for place in (0..places).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let cost = self.write_cost(ByteOffset::new(place.saturating_mul(length)), size);
            let read = cost.read_bytes.get();
            let parts =
                [cost.reads, cost.writes, read, cost.written_bytes.get(), u64::from(read == 0)];
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = sum.saturating_add(part);
            }
            ways = ways.and(cost.ways);
            taken += 1;
        }
        let mean = sums.map(|sum| sum as f64 / taken.max(1) as f64);
        let [reads, writes, read_bytes, written_bytes, without_reads] = mean;
        MeanCost { size, reads, writes, read_bytes, written_bytes, without_reads, ways }
    }
}
