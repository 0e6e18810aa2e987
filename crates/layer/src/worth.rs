//! Whether the layer is worth it on a device: closed forms.
//!
//! Model: uniform random writes of one size, a greedy collector, large segments. With a live share
//! `u` of the space, a victim has the live share `v` where `u = (v - 1) / ln v`, and each written
//! block costs `1 / (1 - v)` blocks of log (Desnoyers 2014, doi 10.1145/2825236.2825261, in the limit
//! of large segments). The volume's own collector agrees within a few percent; its test says how many.
//! Writes that prefer some blocks cost less, since the volume keeps these apart.
//!
//! A victim's live blocks are read in spans, which go on over short gaps as the collector's do, or all of it is
//! read, whichever costs less. With `D` the longest such gap in writes, a write of the user causes
//! `v * (1 - v)^D` spans, and `(v + v^2 * sum of d * (1 - v)^d for d = 1..D) / (1 - v)` writes' lengths are read.

use std::str::FromStr;

use units::{Bytes, Nanos};

use crate::{BLOCK, GAP};

/// Share of the segments' space that is live, in `0.0..1.0`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct LiveShare(f64);

/// How full a volume is wanted: `60%` or `0.6`.
impl FromStr for LiveShare {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, scale) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        let share = number.parse::<f64>().ok().map(|number| number / scale);
        let share = share.filter(|share| (0.1..=0.9).contains(share));
        share.map(Self).ok_or("wanted a fill of 10% to 90%")
    }
}

/// What a device costs without the layer, as measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceCosts {
    /// One random write of `write` bytes: seconds of the device, one over its sustained rate.
    pub random_write: Nanos,
    /// Length of one random write.
    pub write: Bytes,
    /// One random read of that length, where it is known.
    pub random_read: Option<Nanos>,
    /// Reads of this length, one behind the other.
    pub sequential_read: Nanos,
    /// Writes of this length, one behind the other.
    pub sequential_write: Nanos,
    /// Length that the sequential times are for: a segment or a group.
    pub sequential: Bytes,
}

/// What the layer makes of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerForecast {
    /// Blocks of log per written block.
    pub write_amplification: f64,
    /// Random writes per second through the layer.
    pub writes_per_second: f64,
    /// That, as a multiple of the rate without the layer.
    pub gain: f64,
    /// The live share above which the layer slows the device down; `None` if it always does.
    pub break_even: Option<LiveShare>,
}

impl LiveShare {
    /// What the maker of the first such layer advised to stay below.
    pub const ADVISED: Self = Self(0.6);

    /// `None` outside of `0.0..1.0`: a full volume cannot be collected.
    pub fn new(share: f64) -> Option<Self> {
        (0.0..1.0).contains(&share).then_some(Self(share))
    }

    /// The share as a number.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The live share of a greedy collector's victims, to 1e-12.
    pub fn of_victims(self) -> Self {
        // `u(v)` rises from 0 to 1 with v, so halving an interval finds v.
        let (mut low, mut high) = (0.0, 1.0);
        while high - low > 1e-12 {
            let middle = 0.5 * (low + high);
            if Self::with_victims(middle) < self.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        Self(low)
    }

    /// The live share whose victims have the live share `v`.
    fn with_victims(v: f64) -> f64 {
        if v <= 0.0 { 0.0 } else { (v - 1.0) / v.ln() }
    }

    /// Blocks of log per written block, headers and checkpoints not counted.
    pub fn write_amplification(self) -> f64 {
        1.0 / (1.0 - self.of_victims().0)
    }
}

impl DeviceCosts {
    /// What the layer would make of the device at this live share. `None` if a time or a length is zero.
    pub fn forecast(&self, live: LiveShare) -> Option<LayerForecast> {
        let lengths = [self.write.get(), self.sequential.get()];
        let times = [self.random_write, self.sequential_read, self.sequential_write];
        if lengths.contains(&0) || times.contains(&Nanos::ZERO) {
            return None;
        }
        let cost = self.seconds_of_write(live);
        let bare = seconds(self.random_write);
        Some(LayerForecast {
            write_amplification: live.write_amplification(),
            writes_per_second: 1.0 / cost,
            gain: bare / cost,
            break_even: self.break_even(),
        })
    }

    /// The more is live, the more a write costs.
    fn break_even(&self) -> Option<LiveShare> {
        let bare = seconds(self.random_write);
        let (mut low, mut high) = (0.0, 1.0);
        if self.seconds_of_write(LiveShare(low)) >= bare {
            return None;
        }
        while high - low > 1e-9 {
            let middle = 0.5 * (low + high);
            match self.seconds_of_write(LiveShare(middle)) < bare {
                true => low = middle,
                false => high = middle,
            }
        }
        Some(LiveShare(low))
    }

    /// Seconds of the device for a write of the user, the collector's work for it included.
    fn seconds_of_write(&self, live: LiveShare) -> f64 {
        let share = self.write.get() as f64 / self.sequential.get() as f64;
        let read = seconds(self.sequential_read) * share;
        let write = seconds(self.sequential_write) * share;
        let v = live.of_victims().0;
        let written = 1.0 / (1.0 - v);
        let whole = if v > 0.0 { written * read } else { 0.0 };
        let spans = self.random_read.map(|random| {
            let longest = (u64::from(GAP) * BLOCK.get() / self.write.get()) as i32;
            let along: f64 = (1..=longest).map(|d| f64::from(d) * (1.0 - v).powi(d)).sum();
            let (spans, lengths) = (v * (1.0 - v).powi(longest), (v + v * v * along) * written);
            spans * seconds(random).max(read) + (lengths - spans) * read
        });
        written * write + spans.map_or(whole, |spans| spans.min(whole))
    }
}

fn seconds(time: Nanos) -> f64 {
    time.get() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(share: f64) -> LiveShare {
        LiveShare::new(share).unwrap()
    }

    #[test]
    fn amplification_is_that_of_the_published_table() {
        for (share, wanted) in [(0.5, 1.26), (0.6, 1.48), (0.7, 1.88), (0.8, 2.69), (0.9, 5.18)] {
            let seen = live(share).write_amplification();
            assert!((seen - wanted).abs() < 0.005, "{share}: {seen}, wanted {wanted}");
        }
        assert_eq!(live(0.0).write_amplification(), 1.0);
        assert_eq!((LiveShare::new(1.0), LiveShare::new(f64::NAN)), (None, None));
    }

    /// A cloud volume: 3000 requests and 125 MiB per second, either way. Wanted: what a volume made of it
    /// (`plimsoll run random-write --target layer:array:gp3-alone,fill=0.6 --set block_size=4KiB`).
    #[test]
    fn a_cloud_volume_gains_until_it_is_nine_tenths_full() {
        let request = Nanos::new(1_000_000_000 / 3000);
        let costs = DeviceCosts {
            random_write: request,
            write: Bytes::kib(4),
            random_read: Some(request),
            sequential_read: Nanos::millis(8),
            sequential_write: Nanos::millis(8),
            sequential: Bytes::mib(1),
        };
        for (share, rate) in [(0.4, 16_669.0), (0.6, 11_387.0), (0.8, 5_794.0)] {
            let seen = costs.forecast(live(share)).unwrap();
            let off = seen.writes_per_second / rate - 1.0;
            assert!(off.abs() < 0.06, "{share}: {seen:?}, {off:+.3}");
            let even = seen.break_even.unwrap();
            assert!((even.get() - 0.905).abs() < 0.005, "{even:?}");
            let there = costs.forecast(even).unwrap();
            assert!((there.gain - 1.0).abs() < 1e-6, "{there:?}");
        }
    }

    /// An old flash drive: 100 random writes of 16 KiB per second bare; 90 and 120 MB/s. Published for it: 30
    /// times at 0.6. The rates wanted are those if only live blocks were read, at full speed.
    #[test]
    fn an_old_flash_drive_gains_thirty_times() {
        let costs = DeviceCosts {
            random_write: Nanos::millis(10),
            write: Bytes::kib(16),
            random_read: Some(Nanos::new(136_533)),
            sequential_read: Nanos::new(1_000_000_000 / 120),
            sequential_write: Nanos::new(1_000_000_000 / 90),
            sequential: Bytes::new(1_000_000),
        };
        for (share, rate) in [(0.5, 3798.0), (0.6, 2986.0), (0.8, 1386.0), (0.9, 661.0)] {
            let seen = costs.forecast(live(share)).unwrap().writes_per_second / rate;
            assert!((0.92..1.0).contains(&seen), "{share}: {seen}");
            // Whoever does not know what a random read costs reads all of a victim.
            let blind = DeviceCosts { random_read: None, ..costs };
            let blind = blind.forecast(live(share)).unwrap().writes_per_second / rate;
            assert!((0.6..seen).contains(&blind), "{share}: {blind}");
        }
    }

    #[test]
    fn a_drive_as_fast_at_random_only_loses() {
        let costs = DeviceCosts {
            random_write: Nanos::micros(4),
            write: Bytes::kib(4),
            random_read: Some(Nanos::micros(4)),
            sequential_read: Nanos::micros(4),
            sequential_write: Nanos::micros(4),
            sequential: Bytes::kib(4),
        };
        let seen = costs.forecast(live(0.6)).unwrap();
        assert!(seen.gain < 0.6 && seen.break_even.is_none(), "{seen:?}");
        assert_eq!(DeviceCosts { write: Bytes::ZERO, ..costs }.forecast(live(0.6)), None);
    }
}
