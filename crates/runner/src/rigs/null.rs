//! `null:`: nothing is done, on the real clock: our own overhead.

use device::Null;
use suite::model::Cell;
use units::{Bytes, Nanos};
use uring::MonotonicClock;

use crate::RunError;
use crate::find::Found;
use crate::rig::{Entering, Kind, Rig, Seat, Site, Stage};
use crate::turn::{Part, Turn};

pub(crate) const KIND: Kind = Kind {
    name: "null",
    rest: |rest| match rest {
        "" => Ok(String::new()),
        _ => Err("`null:` takes nothing after the colon".to_owned()),
    },
    find: |_, _, _| Ok(Found::twin(Box::new(Nothing), "null:", Bytes::ZERO)),
    own_clock: |_| false,
};

#[derive(Debug)]
struct Nothing;

impl Site for Nothing {
    fn enter(self: Box<Self>, _entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        Ok(self)
    }
}

impl Rig for Nothing {
    fn stage(&mut self, cell: &Cell, _seed: u64) -> Result<Option<Stage>, RunError> {
        let workers = cell.streams.iter().map(|stream| stream.threads).sum();
        let seat = |_| Box::new(Self) as Box<dyn Seat>;
        Ok(Some(Stage::Each((0u32..workers).map(seat).collect())))
    }
}

impl Seat for Nothing {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        turn.on_twin(&mut Null::new(MonotonicClock, Nanos::ZERO, turn.depth()), "null", false)
    }
}
