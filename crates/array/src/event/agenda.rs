//! What is to happen, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What is due. The number is that of its own kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The host has submitted a request.
    Submitted(u32),
    /// The next step of what one leg does.
    Portion(u32),
    /// A request is done.
    Done(u32),
    /// The next step of filling the spare.
    Rebuild,
}

/// A heap of what is due, and when in ns. Of two at the same time the first that was pushed comes
/// first.
#[derive(Debug)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(u64, u32, Due)>>,
    pushed: u32,
}

impl Agenda {
    /// For so many entries at a time.
    pub(super) fn new(capacity: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(capacity), pushed: 0 }
    }

    pub(super) fn push(&mut self, at: u64, due: Due) {
        self.pushed = self.pushed.wrapping_add(1);
        self.heap.push(Reverse((at, self.pushed, due)));
    }

    /// The next, if it is not later than `until`.
    pub(super) fn pop_until(&mut self, until: u64) -> Option<(u64, Due)> {
        self.heap.peek().filter(|next| next.0.0 <= until)?;
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }
}
