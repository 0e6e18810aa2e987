//! What drives do when nobody waits for it: emptying caches, filling a spare.

use layout::{Estimate, Pace, Whole};
use units::{ByteOffset, Bytes, Nanos};

use crate::design::ArrayDesign;
use crate::drive::rates;
use crate::parameter::PerSecond;

impl ArrayDesign {
    /// How fast full caches are emptied of blocks that lie in sequence: what all drives write, less
    /// copies and parity, or what the controllers move.
    pub fn drain_rate(&self) -> PerSecond {
        let stripe = self.array.data_width().unwrap_or(Bytes::mib(1));
        let cost = Whole::of_array(self.array, ByteOffset::ZERO).mean_write_cost(stripe);
        let (_, write) = rates(&self.drive.part);
        let drives = write.over(Bytes::new(1)) * f64::from(self.array.members());
        let leg = (drives / cost.amplification())
            .min(self.controller.part.write_rate.value.over(Bytes::new(1)));
        PerSecond(Bytes::new((leg * f64::from(self.legs())) as u64))
    }

    /// How long a controller answers nothing that begins with `backlog` to write and stops for all
    /// of it.
    pub fn freeze(&self, backlog: Bytes) -> Nanos {
        Nanos::from_secs_f64(1.0 / self.drain_rate().over(backlog))
    }

    /// Filling a spare in one leg while the array is used; `None` without redundancy.
    pub fn rebuild(&self) -> Option<Estimate> {
        let (read, write) = rates(&self.drive.part);
        let slower = read.min(write).over(Bytes::new(1));
        let share = self.controller.part.rebuild_share.value.0;
        let speed = Bytes::new((slower * share) as u64);
        let pace = Pace { most: speed, least: speed, member: None };
        self.array.rebuild(self.drive.part.size().value, &pace)
    }
}
