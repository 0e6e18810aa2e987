//! Whole files instead of blocks: which one is next.

use device::{FileIndex, Op};
use stats::random::{Permutation, derive_seed};
use suite::model::{Directory, Names};
use units::ByteOffset;

use crate::shared::StreamShared;
use crate::source::Next;

/// One worker's numbers of files; all workers of the stream take theirs from one count.
#[derive(Debug)]
pub(crate) struct Numbers {
    files: u64,
    /// Each file once, then no more: it is made or gone.
    once: bool,
    /// The order, where it is not that of the numbers.
    order: Option<Order>,
    /// Of a worker that has the stream to itself; else the workers count together.
    alone: Option<u64>,
}

/// A new one for each time round.
#[derive(Debug)]
struct Order {
    seed: u64,
    round: u64,
    numbers: Permutation,
}

impl Numbers {
    /// * `seed`: the stream's, the same for all its workers.
    pub(crate) fn new(directory: Directory, op: Op, seed: u64, alone: bool) -> Self {
        let files = u64::from(directory.files.max(1));
        let shuffled = directory.names == Names::Random && op != Op::Create;
        let numbers = |_| Order { seed, round: 0, numbers: Permutation::new(files, seed) };
        Self {
            files,
            once: op != Op::Stat,
            order: shuffled.then_some(()).map(numbers),
            alone: alone.then_some(0),
        }
    }

    /// The next; `None` when all are made or removed.
    pub(crate) fn next(&mut self, shared: &StreamShared, op: Op, length: u32) -> Option<Next> {
        let ticket = match &mut self.alone {
            Some(next) => {
                *next += 1;
                *next - 1
            }
            None => shared.take_sequence(1),
        };
        let (round, place) = (ticket / self.files, ticket % self.files);
        if self.once && round > 0 {
            return None;
        }
        let number = match &mut self.order {
            Some(order) => order.at(round, place),
            None => place,
        };
        Some(Next { op, file: FileIndex::DIRECTORY, offset: ByteOffset::new(number), length })
    }
}

impl Order {
    fn at(&mut self, round: u64, place: u64) -> u64 {
        if round != self.round {
            self.round = round;
            let seed = derive_seed(self.seed, &[round]);
            self.numbers = Permutation::new(self.numbers.len(), seed);
        }
        self.numbers.at(place)
    }
}
