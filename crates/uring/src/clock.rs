//! The clock of all kernel back ends.

use device::Clock;
use units::Instant;

/// `CLOCK_MONOTONIC`: one clock for the whole machine, so that instants of different workers
/// compare. Read through the vDSO (no system call where the clock source allows it). Not
/// `CLOCK_MONOTONIC_RAW`: that one is not slewed, but the kernel's own timeouts do not use it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl MonotonicClock {
    /// Time since an arbitrary start, usually that of the machine.
    #[inline]
    pub fn read() -> Instant {
        let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `at` is a valid place for one timespec; CLOCK_MONOTONIC always exists.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut at) };
        Instant::new(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
    }

    /// Sleeps until `until` (at least); returns at once if it is past.
    pub fn sleep_until(until: Instant) {
        let at = timespec(until);
        loop {
            // SAFETY: `at` is a valid timespec; no remainder is asked for with an absolute time.
            let error = unsafe {
                libc::clock_nanosleep(
                    libc::CLOCK_MONOTONIC,
                    libc::TIMER_ABSTIME,
                    &raw const at,
                    std::ptr::null_mut(),
                )
            };
            if error != libc::EINTR {
                return;
            }
        }
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Instant {
        Self::read()
    }
    fn wait_until(&mut self, until: Instant) {
        Self::sleep_until(until);
    }
}

/// In the kernel's form. Times beyond what it takes (2^63 s never comes up here) are far future
/// anyway.
pub(crate) fn timespec(at: Instant) -> libc::timespec {
    libc::timespec {
        tv_sec: (at.get() / 1_000_000_000) as libc::time_t,
        tv_nsec: (at.get() % 1_000_000_000) as _,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Nanos;

    #[test]
    fn never_goes_back_and_sleeps_long_enough() {
        let mut clock = MonotonicClock;
        let before = clock.now();
        clock.wait_until(before + Nanos::millis(2));
        let after = clock.now();
        assert!(after >= before + Nanos::millis(2), "{before:?} {after:?}");
        clock.wait_until(before);
        assert!(clock.now() >= after);
    }
}
