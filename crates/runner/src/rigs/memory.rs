//! `memory:SIZE`: files in the memory of this process, on the real clock.

use device::{Memory, MemoryShape};
use suite::SuiteSource;
use suite::model::{Cell, Suite};
use units::{Bytes, Nanos};
use uring::MonotonicClock;

use crate::fill::Pass;
use crate::find::{Found, checked, set_size};
use crate::prepare::{buffers, buffers_fit, twin_fits};
use crate::rig::{Entering, Kind, Rig, Seat, Site, Twin};
use crate::rigs::files::{slots, twin_buffer};
use crate::turn::{Part, Turn};
use crate::{Order, RunError};

pub(crate) const KIND: Kind = Kind { name: "memory", rest, find, own_clock: |_| false };

fn rest(rest: &str) -> Result<String, String> {
    match rest.parse::<Bytes>() {
        Ok(size) if size > Bytes::ZERO => Ok(size.exact()),
        Ok(_) => Err("a memory of no size".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn find(rest: &str, order: &Order, source: &mut SuiteSource) -> Result<Found, RunError> {
    let size: Bytes = rest.parse().unwrap_or(Bytes::ZERO);
    if !order.size_given {
        let wanted = checked(source, None)?;
        let each = Bytes::new(size.get() / u64::from(wanted.files.count));
        set_size(source, each, wanted.size_unit())?;
    }
    let name = format!("memory:{rest}");
    let found = Found::twin(Box::new(Empty { name: name.clone() }), &name, size);
    Ok(Found { as_it_is: false, ..found })
}

/// Before it is there.
#[derive(Debug)]
struct Empty {
    name: String,
}

impl Site for Empty {
    fn holds_data(&self) -> bool {
        true
    }

    fn remembers_writes(&self) -> bool {
        true
    }

    fn fits(
        &self,
        suite: &Suite,
        passes: &[Pass],
        available: Option<Bytes>,
    ) -> Result<(), RunError> {
        let taken = buffers_fit(buffers(suite, passes, true), available)?;
        twin_fits(&self.name, suite.files.total(), taken, available)
    }

    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        let shape = MemoryShape {
            files: entry.suite.files.count,
            file_size: entry.suite.files.size,
            slots: slots(entry.cells),
            // Each visit has its own.
            buffer: Bytes::ZERO,
            tick: Nanos::ZERO,
        };
        Ok(Twin::of(Memory::new(MonotonicClock, shape)))
    }
}

impl Seat for Memory<MonotonicClock> {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        turn.on_twin(self, "memory", false)
    }

    fn begin(&mut self, cell: &Cell, _seed: u64) {
        self.set_buffer(twin_buffer(&cell.streams));
    }
}
