//! How long it takes until an array is whole.

use schemars::JsonSchema;
use serde::Serialize;
use units::{Bytes, Nanos};

use crate::array::{Array, Level};

/// What md may use of a member for putting an array in step, in bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pace {
    /// `dev.raid.speed_limit_max`: never more, even when nobody else wants the members.
    #[schemars(with = "u64")]
    pub most: Bytes,
    /// `dev.raid.speed_limit_min`: below this md does not give way to others.
    #[schemars(with = "u64")]
    pub least: Bytes,
    /// What a member reads and writes in sequence, where that is known.
    #[schemars(with = "Option<u64>")]
    pub member: Option<Bytes>,
}

impl Default for Pace {
    /// What the kernel comes with.
    fn default() -> Self {
        Self { most: Bytes::kib(200_000), least: Bytes::kib(1000), member: None }
    }
}

/// How much has to be done, and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Estimate {
    /// Bytes that the kernel counts until it is done.
    #[schemars(with = "u64")]
    pub bytes: Bytes,
    /// Bytes per second while nobody else uses the members.
    #[schemars(with = "u64")]
    pub speed: Bytes,
    /// Then.
    #[schemars(with = "u64")]
    pub idle: Nanos,
    /// While others want all that the members give. The largest number that there is stands for
    /// 584 years and more.
    #[schemars(with = "u64")]
    pub busy: Nanos,
    /// Whether the kernel's limit is what holds it back, rather than the member.
    pub at_limit: bool,
}

impl Array {
    /// Filling what the loss of a member takes; `None` where none can be lost.
    ///
    /// Of 0+1 that is a whole half: one member of a stripe is all of it.
    ///
    /// * `used`: bytes of a member that the array uses.
    pub fn rebuild(&self, used: Bytes, pace: &Pace) -> Option<Estimate> {
        match self.level() {
            level if !level.is_redundant() => None,
            Level::Raid01 => Some(estimate(self.capacity(used), &pace.of(self.streams()))),
            _ => Some(estimate(used, pace)),
        }
    }

    /// The first pass over a new array; `None` where there is nothing to be in step.
    ///
    /// Raid10 and 0+1 count bytes of the array in it, the others those of a member.
    pub fn first_sync(&self, used: Bytes, pace: &Pace) -> Option<Estimate> {
        if self.level() != Level::Raid10 {
            return self.rebuild(used, pace);
        }
        // All pairs work at once.
        Some(estimate(self.capacity(used), &pace.of(self.streams())))
    }
}

impl Pace {
    /// Of what is as fast as so many members. The kernel's limits are for an array, however many
    /// it has.
    fn of(&self, members: u32) -> Self {
        let times = u64::from(members);
        let member = self.member.map(|one| Bytes::new(one.get().saturating_mul(times)));
        Self { member, ..*self }
    }

    /// Filling a mirror of legs: the first pass over it, or a leg that was lost.
    ///
    /// * `leg`: its arithmetic; `None` for a device as it is.
    /// * `size`: bytes of a leg.
    pub fn mirror(&self, leg: Option<Array>, size: Bytes) -> Estimate {
        estimate(size, &self.of(leg.map_or(1, |leg| leg.streams())))
    }
}

fn estimate(bytes: Bytes, pace: &Pace) -> Estimate {
    let member = pace.member.unwrap_or(pace.most);
    let speed = member.min(pace.most);
    let least = pace.least.min(speed);
    Estimate {
        bytes,
        speed,
        idle: time(bytes, speed),
        busy: time(bytes, least),
        at_limit: member >= pace.most,
    }
}

fn time(bytes: Bytes, per_second: Bytes) -> Nanos {
    Nanos::from_secs_f64(bytes.get() as f64 / per_second.get().max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_of_member_and_limit_counts() {
        let five = Array::new(Level::Raid5, 4, Some(Bytes::kib(64))).unwrap();
        let slow = Pace { member: Some(Bytes::kib(100_000)), ..Pace::default() };
        let used = Bytes::kib(200_000_000);
        assert_eq!(five.rebuild(used, &Pace::default()).unwrap().idle, Nanos::secs(1000));
        let slow = five.rebuild(used, &slow).unwrap();
        assert_eq!((slow.idle, slow.busy), (Nanos::secs(2000), Nanos::secs(200_000)));
        assert!(!slow.at_limit);
    }

    #[test]
    fn pairs_of_raid10_are_brought_in_step_at_once() {
        let ten = Array::new(Level::Raid10, 8, Some(Bytes::kib(64))).unwrap();
        let slow = Pace { member: Some(Bytes::kib(20_000)), ..Pace::default() };
        let used = Bytes::kib(20_000_000).get() / 65_536 * 65_536;
        let sync = ten.first_sync(Bytes::new(used), &slow).unwrap();
        assert_eq!((sync.speed, sync.at_limit), (Bytes::kib(80_000), false));
        assert_eq!(sync.idle, ten.rebuild(Bytes::new(used), &slow).unwrap().idle);
    }

    #[test]
    fn a_mirror_of_stripes_fills_a_whole_half() {
        let halves = Array::new(Level::Raid01, 6, Some(Bytes::kib(128))).unwrap();
        let used = Bytes::kib(200_000_000);
        let used = Bytes::new(used.get() / (128 << 10) * (128 << 10));
        // Three members' worth, at the limit of one array.
        let sync = halves.first_sync(used, &Pace::default()).unwrap();
        assert_eq!((sync.bytes.get(), sync.at_limit), (3 * used.get(), true));
        assert!((sync.idle.as_secs_f64() - 3000.0).abs() < 1.0, "{sync:?}");
        assert_eq!(halves.rebuild(used, &Pace::default()), Some(sync));
        // Slow members work side by side.
        let slow = Pace { member: Some(Bytes::kib(20_000)), ..Pace::default() };
        let sync = halves.first_sync(used, &slow).unwrap();
        assert_eq!((sync.speed, sync.at_limit), (Bytes::kib(60_000), false));
    }

    #[test]
    fn a_mirror_of_legs_is_as_fast_as_a_leg() {
        let leg = Array::new(Level::Raid5, 4, Some(Bytes::kib(64))).unwrap();
        let slow = Pace { member: Some(Bytes::kib(20_000)), ..Pace::default() };
        let found = slow.mirror(Some(leg), Bytes::kib(600_000));
        assert_eq!((found.speed, found.idle), (Bytes::kib(60_000), Nanos::secs(10)));
        assert_eq!(slow.mirror(None, Bytes::kib(600_000)).idle, Nanos::secs(30));
        assert_eq!(Pace::default().mirror(None, Bytes::kib(600_000)).idle, Nanos::secs(3));
    }

    #[test]
    fn what_cannot_lose_a_member_is_never_filled() {
        let zero = Array::new(Level::Raid0, 4, Some(Bytes::kib(64))).unwrap();
        assert_eq!(zero.rebuild(Bytes::gib(1), &Pace::default()), None);
        assert_eq!(zero.first_sync(Bytes::gib(1), &Pace::default()), None);
    }

    #[test]
    fn a_pace_of_nothing_is_no_panic() {
        let one = Array::new(Level::Raid1, 2, None).unwrap();
        let stands = Pace { member: Some(Bytes::ZERO), ..Pace::default() };
        assert_eq!(one.rebuild(Bytes::new(u64::MAX), &stands).unwrap().idle, Nanos::MAX);
    }
}
