use units::Instant;

use crate::{Clock, Completion, Device, DeviceError, Full, Request, Slot};

/// Completes every request in full at once and holds no data: what is left is our own overhead.
///
/// On a virtual clock every reap takes one tick, so that loops that stop by time do stop.
#[derive(Debug)]
pub struct Null<C> {
    clock: C,
    tick: units::Nanos,
    queued: Vec<Completion>,
    capacity: usize,
}

impl<C: Clock> Null<C> {
    /// A device for `slots` requests in flight. `tick` is how long each reap makes the clock
    /// wait: zero on a real clock.
    pub fn new(clock: C, tick: units::Nanos, slots: u32) -> Self {
        let capacity = slots as usize;
        Self { clock, tick, queued: Vec::with_capacity(capacity), capacity }
    }
}

impl<C: Clock> Device for Null<C> {
    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.queued.len() == self.capacity {
            return Err(Full);
        }
        let bytes = if request.op.moves_data() { request.length } else { 0 };
        self.queued.push(Completion::moved(request.slot, bytes));
        Ok(())
    }

    #[inline]
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        if self.tick != units::Nanos::ZERO {
            self.clock.wait_until(self.clock.now() + self.tick);
        }
        let take = self.queued.len().min(done.capacity() - done.len());
        if take < min && until != Instant::MAX {
            self.clock.wait_until(until);
        }
        // From the front: first come, first served.
        done.extend(self.queued.drain(..take));
        Ok(())
    }

    #[inline]
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn buffer(&mut self, _slot: Slot) -> &mut [u8] {
        &mut []
    }
}
