//! Waiting until the device is idle: what an earlier visit left behind is not the next one's.

use std::collections::VecDeque;

use record::VisitRecord;
use units::{Bytes, Instant, Nanos};

/// Longest stretch that must be quiet, and how many of them are waited for at most.
const WINDOW_MAX: Nanos = Nanos::secs(1);
const WINDOWS: u64 = 30;
/// How long is waited once it is known that the device does not become idle.
const BUSY_LIMIT: Nanos = Nanos::secs(2);
/// So many waits that ran out say that.
const BUSY_AFTER: u32 = 2;
/// Looks at the counters in a window.
const LOOKS: u64 = 10;
/// Shortest time between two looks.
const LOOK_MIN: Nanos = Nanos::millis(10);
/// Bytes a second that a device may write and count as idle: journals and logs of others, and a
/// share of what the last visit moved.
const ALLOWED: u64 = 64 << 10;
const ALLOWED_SHARE: u64 = 100;

/// A device's counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    pub device: String,
    /// Since some moment in the past.
    pub written: Bytes,
    pub in_flight: u64,
}

/// What is remembered from visit to visit.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    window: Nanos,
    /// Longest wait that leaves time for the visits to come.
    most: Nanos,
    ran_out: u32,
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    modified: bool,
    /// Bytes a second, at the device that moved most.
    moved: u64,
    written: u64,
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    pub waited: Nanos,
    /// `None`: nobody could look.
    pub quiet: Option<bool>,
    /// The device that would not become idle, as often as to say so, and its bytes a second.
    pub busy: Option<(String, Bytes)>,
}

impl Waited {
    pub(crate) const NONE: Self = Self { waited: Nanos::ZERO, quiet: None, busy: None };
}

/// Who watches the counters, the clock and the user during a wait.
pub(crate) trait World {
    /// The counters of every device below; `None` where they cannot be had.
    fn levels(&mut self) -> Option<Vec<Level>>;
    fn now(&mut self) -> Instant;
    fn sleep(&mut self, span: Nanos);
    /// Whether the user wants to stop.
    fn stops(&mut self) -> bool;
    /// Why it waits.
    fn say(&mut self, why: &str);
}

impl Quiet {
    /// * `visit`: measured time of a visit; short ones are not waited for longer than they last.
    /// * `most`: longest wait before each that leaves time for those that are wanted.
    pub(crate) fn new(visit: Nanos, most: Nanos) -> Self {
        let window = Nanos::new(visit.get() / 2).min(WINDOW_MAX).max(LOOK_MIN);
        Self { window, most, ran_out: 0, last: None }
    }

    /// A visit was made; `modified`: it may have changed what is stored.
    pub(crate) fn after(&mut self, visit: &VisitRecord, modified: bool) {
        let ms = (visit.elapsed_ns.saturating_add(visit.ramp_ns) / 1_000_000).max(1);
        let rate = |bytes: u64| bytes.saturating_mul(1000) / ms;
        let moved = visit.ledger.iter().map(|e| e.read_bytes.saturating_add(e.write_bytes));
        let written = visit.ledger.iter().map(|e| e.write_bytes);
        self.last = Some(Last {
            modified,
            moved: rate(moved.max().unwrap_or(0)),
            written: rate(written.max().unwrap_or(0)),
        });
    }

    /// Bytes a second that count as idle.
    fn allowed(&self) -> u64 {
        self.last.map_or(0, |last| last.moved / ALLOWED_SHARE).max(ALLOWED)
    }

    /// Waits until every device below is idle: nothing in flight, next to nothing written for a
    /// window. After reads on a device that wrote nothing meanwhile there is nothing to wait for.
    pub(crate) fn wait(&mut self, world: &mut impl World) -> Waited {
        let begin = world.now();
        let unknown = Waited { waited: Nanos::ZERO, quiet: None, busy: None };
        let Some(levels) = world.levels().filter(|levels| !levels.is_empty()) else {
            return unknown;
        };
        let allowed = self.allowed();
        let idle = |levels: &[Level]| levels.iter().all(|level| level.in_flight == 0);
        let was_idle = self.last.is_some_and(|last| !last.modified && last.written <= allowed);
        if was_idle && idle(&levels) {
            return Waited { quiet: Some(true), ..unknown };
        }
        world.say("waiting for the device to be idle");
        let limit = if self.ran_out >= BUSY_AFTER {
            BUSY_LIMIT
        } else {
            Nanos::new(self.window.get().saturating_mul(WINDOWS))
        };
        // Less than a window shows nobody whether it is idle.
        let limit = limit.min(Nanos::new(self.window.get().saturating_mul(WINDOWS)));
        let limit = limit.min(self.most.max(self.window));
        let look = Nanos::new(self.window.get() / LOOKS).max(LOOK_MIN);
        // A window may be shorter than a second; the least that is let pass is not.
        let in_window = |bytes: u64| {
            let share = self.window.as_secs_f64();
            bytes > ALLOWED && bytes as f64 > allowed as f64 * share
        };
        let mut seen = VecDeque::from([(begin, levels)]);
        let mut told = begin;
        loop {
            world.sleep(look);
            let now = world.now();
            let waited = now.since(begin);
            let Some(levels) = world.levels() else { return Waited { waited, ..unknown } };
            seen.push_back((now, levels));
            // The youngest look that is a window old, and all after it.
            while seen.get(1).is_some_and(|(at, _)| now.since(*at) >= self.window) {
                seen.pop_front();
            }
            let (Some((from, first)), Some((_, last))) = (seen.front(), seen.back()) else {
                return unknown;
            };
            let writer = busiest(first, last);
            let wrote = writer.as_ref().map_or(0, |(_, bytes)| *bytes);
            if now.since(*from) >= self.window && idle(last) && !in_window(wrote) {
                return Waited { waited, quiet: Some(true), busy: None };
            }
            let span = now.since(*from).as_secs_f64().max(1e-9);
            let rate = Bytes::new((wrote as f64 / span) as u64);
            let name = writer.map_or_else(String::new, |(name, _)| name);
            if waited >= limit || world.stops() {
                let ran_out = waited >= limit;
                self.ran_out = self.ran_out.saturating_add(u32::from(ran_out));
                let busy = (ran_out && self.ran_out == BUSY_AFTER).then_some((name, rate));
                return Waited { waited, quiet: Some(false), busy };
            }
            if now.since(told) >= WINDOW_MAX {
                told = now;
                world.say(&match in_window(wrote) {
                    true => format!("waiting for {name} to be idle: it writes {rate}/s"),
                    false => "waiting for the device to be idle: requests are in flight".to_owned(),
                });
            }
        }
    }
}

/// The device that wrote most between two looks, and how much.
fn busiest(first: &[Level], last: &[Level]) -> Option<(String, u64)> {
    let wrote = last.iter().filter_map(|now| {
        let then = first.iter().find(|then| then.device == now.device)?;
        Some((now.device.clone(), now.written.get().saturating_sub(then.written.get())))
    });
    wrote.max_by_key(|(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Bitmap, LedgerEntry, Purpose, VisitEnd};

    const PLENTY: Nanos = Nanos::secs(1_000_000);

    /// A device that writes so many bytes a second until a moment.
    struct Device {
        now: Nanos,
        rate: u64,
        until: Nanos,
        in_flight_until: Nanos,
        known: bool,
        stops_at: Nanos,
        said: Vec<String>,
    }

    fn device(rate: u64, until: Nanos) -> Device {
        Device {
            now: Nanos::ZERO,
            rate,
            until,
            in_flight_until: Nanos::ZERO,
            known: true,
            stops_at: Nanos::secs(1_000_000),
            said: Vec::new(),
        }
    }

    impl World for Device {
        fn levels(&mut self) -> Option<Vec<Level>> {
            let written = self.rate as f64 * self.now.min(self.until).as_secs_f64();
            let in_flight = u64::from(self.now < self.in_flight_until);
            let device = "sda".to_owned();
            self.known
                .then(|| vec![Level { device, written: Bytes::new(written as u64), in_flight }])
        }
        fn now(&mut self) -> Instant {
            Instant::ZERO + self.now
        }
        fn sleep(&mut self, span: Nanos) {
            self.now += span;
        }
        fn stops(&mut self) -> bool {
            self.now >= self.stops_at
        }
        fn say(&mut self, why: &str) {
            self.said.push(why.to_owned());
        }
    }

    fn visit(read: u64, written: u64) -> VisitRecord {
        let entry =
            LedgerEntry { read_bytes: read, write_bytes: written, ..LedgerEntry::default() };
        VisitRecord {
            cell: 0,
            repeat: 0,
            order: 0,
            started_unix_ns: 0,
            elapsed_ns: 1_000_000_000,
            load_ns: None,
            end: VisitEnd::Complete,
            purpose: Purpose::Measure,
            ramp_ns: 0,
            waited_ns: 0,
            quiet: None,
            resident_before: None,
            resident_after: None,
            streams: Vec::new(),
            completions: Bitmap::default(),
            counters: Vec::new(),
            ledger: vec![entry],
            host_stalls: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_quiet_device_is_waited_for_one_window() {
        let mut quiet = Quiet::new(Nanos::secs(2), PLENTY);
        let found = quiet.wait(&mut device(0, Nanos::ZERO));
        assert_eq!(found, Waited { waited: Nanos::secs(1), quiet: Some(true), busy: None });
        let mut short = Quiet::new(Nanos::millis(200), PLENTY);
        assert_eq!(short.wait(&mut device(0, Nanos::ZERO)).waited, Nanos::millis(100));
    }

    #[test]
    fn what_is_still_written_is_waited_for() {
        let mut quiet = Quiet::new(Nanos::secs(2), PLENTY);
        let found = quiet.wait(&mut device(100 << 20, Nanos::secs(7)));
        assert_eq!(found.quiet, Some(true));
        assert!(found.waited >= Nanos::millis(7_900) && found.waited <= Nanos::millis(8_200));
    }

    #[test]
    fn after_reads_on_a_device_that_wrote_nothing_nothing_is_waited_for() {
        let mut quiet = Quiet::new(Nanos::secs(2), PLENTY);
        quiet.after(&visit(1 << 30, 4096), false);
        let found = quiet.wait(&mut device(0, Nanos::ZERO));
        assert_eq!(found, Waited { waited: Nanos::ZERO, quiet: Some(true), busy: None });
        quiet.after(&visit(1 << 20, 1 << 20), false);
        assert!(quiet.wait(&mut device(0, Nanos::ZERO)).waited > Nanos::ZERO, "it wrote");
        quiet.after(&visit(0, 1 << 30), true);
        assert!(quiet.wait(&mut device(0, Nanos::ZERO)).waited > Nanos::ZERO);
        quiet.after(&visit(1 << 30, 0), false);
        let mut busy = device(0, Nanos::ZERO);
        busy.in_flight_until = Nanos::secs(3);
        assert!(quiet.wait(&mut busy).waited >= Nanos::secs(3));
    }

    #[test]
    fn a_log_of_someone_else_is_no_reason_to_wait() {
        let mut quiet = Quiet::new(Nanos::secs(2), PLENTY);
        quiet.after(&visit(1 << 30, 1 << 30), true);
        // 1 % of 2 GiB/s are 20 MiB/s.
        let found = quiet.wait(&mut device(15 << 20, Nanos::secs(1000)));
        assert_eq!((found.waited, found.quiet), (Nanos::secs(1), Some(true)));
    }

    #[test]
    fn a_device_that_never_is_idle_is_waited_for_less_and_named_once() {
        let mut quiet = Quiet::new(Nanos::secs(2), PLENTY);
        let mut world = device(50 << 20, Nanos::secs(1_000_000));
        let waits: Vec<Waited> = (0..4).map(|_| quiet.wait(&mut world)).collect();
        let seconds: Vec<u64> = waits.iter().map(|w| w.waited.get() / 1_000_000_000).collect();
        assert_eq!(seconds, [30, 30, 2, 2]);
        assert!(waits.iter().all(|w| w.quiet == Some(false)));
        let named: Vec<bool> = waits.iter().map(|w| w.busy.is_some()).collect();
        assert_eq!(named, [false, true, false, false]);
        let (name, rate) = waits[1].busy.clone().unwrap();
        assert_eq!(name, "sda");
        assert!(rate.get().abs_diff(50 << 20) < 1 << 20, "{rate}");
        assert!(world.said.iter().any(|line| line.contains("sda") && line.contains("MiB/s")));
    }

    #[test]
    fn a_device_that_never_is_idle_leaves_time_for_the_visits() {
        let mut quiet = Quiet::new(Nanos::secs(2), Nanos::secs(5));
        let mut world = device(50 << 20, Nanos::secs(1_000_000));
        let waits: Vec<Waited> = (0..3).map(|_| quiet.wait(&mut world)).collect();
        let seconds: Vec<u64> = waits.iter().map(|w| w.waited.get() / 1_000_000_000).collect();
        assert_eq!(seconds, [5, 5, 2]);
        let mut none = Quiet::new(Nanos::secs(2), Nanos::ZERO);
        assert_eq!(none.wait(&mut world).waited, Nanos::secs(1), "a window is needed to see it");
        assert_eq!(none.wait(&mut device(0, Nanos::ZERO)).quiet, Some(true));
    }

    #[test]
    fn the_user_can_stop_it_and_nobody_need_be_able_to_look() {
        let mut quiet = Quiet::new(Nanos::secs(2), PLENTY);
        let mut world = device(50 << 20, Nanos::secs(1_000_000));
        world.stops_at = Nanos::secs(3);
        let found = quiet.wait(&mut world);
        assert!(found.waited <= Nanos::millis(3_100) && found.busy.is_none());
        let mut blind = device(0, Nanos::ZERO);
        blind.known = false;
        assert_eq!(quiet.wait(&mut blind).quiet, None);
    }
}
