//! `array:ARRAY|FILE.toml`: the array of `plimsoll predict`, request by request, on a clock of its own.

use std::path::Path;

use array::{ArrayDesign, ArrayOp, ArrayRequest, Drive, Simulation, SimulationOptions};
use device::model::Counters;
use device::{Completion, Device, DeviceError, Errno, Full, Op, Request, Slot};
use record::TargetRecord;
use suite::SuiteSource;
use suite::model::Cell;
use units::{Bytes, Instant, Nanos};

use crate::array_text::{ArrayText, array_hint};
use crate::find::Found;
use crate::layers::Snapshot;
use crate::rig::{Entering, Kind, Rig, Seat, Site, Twin};
use crate::rigs::files::slots;
use crate::turn::{Part, Turn};
use crate::{Order, RunError};

pub(crate) const KIND: Kind = Kind {
    name: "array",
    rest: |rest| match rest {
        "" => Err("`array:` needs a name or a file after the colon".to_owned()),
        name => Ok(name.to_owned()),
    },
    find,
    own_clock: |_| true,
};

fn find(rest: &str, _: &Order, _: &mut SuiteSource) -> Result<Found, RunError> {
    let bad = |why: String, hint| RunError::Array { why, hint };
    let text = ArrayText::of(Path::new(rest))
        .map_err(|error| bad(format!("{rest}: {error}"), Some(array_hint(rest))))?;
    let design = text.design().map_err(|error| bad(error.to_string(), error.hint()))?;
    // All of it, so that the run says what it was of, whatever becomes of the files.
    let whole = toml::to_string(&design).map_err(|error| bad(error.to_string(), None))?;
    let capacity = Some(design.capacity());
    let site = Box::new(ArraySite { design });
    let found = Found::twin(site, &format!("array:{rest}"), Bytes::ZERO);
    let record = TargetRecord { model: Some(whole), ..found.record };
    Ok(Found { record, capacity, ..found })
}

#[derive(Debug)]
struct ArraySite {
    design: ArrayDesign,
}

impl Site for ArraySite {
    fn remembers_writes(&self) -> bool {
        let is_cleaned = matches!(self.design.drive.part, Drive::PageMapped(_));
        self.design.controller.part.write_back.value || is_cleaned
    }

    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        let slots = slots(entry.cells);
        let files = &entry.suite.files;
        let options =
            SimulationOptions { seed: entry.seed, slots, files: files.count, ..Default::default() };
        let simulation = Simulation::new(&self.design, &options)
            .map_err(|error| RunError::Array { why: error.to_string(), hint: None })?;
        let idle = Request {
            offset: units::ByteOffset::ZERO,
            length: 0,
            slot: Slot(0),
            file: device::FileIndex(0),
            op: Op::Read,
        };
        Ok(Twin::of(SimulatedArray {
            simulation,
            file_size: files.size.get(),
            requests: vec![idle; slots as usize],
            in_flight: 0,
            counters: Counters::default(),
            refused: Vec::with_capacity(slots as usize),
        }))
    }
}

/// The simulation behind the seam.
#[derive(Debug)]
struct SimulatedArray {
    simulation: Simulation,
    /// Files lie one behind the other.
    file_size: u64,
    /// By slot: what is in flight.
    requests: Vec<Request>,
    in_flight: u32,
    counters: Counters,
    /// What an array does not do, to be told at the next call.
    refused: Vec<Slot>,
}

impl SimulatedArray {
    fn done(&mut self, token: u32) -> Completion {
        self.in_flight -= 1;
        let request = &self.requests[token as usize];
        self.counters.add(request.op, request.length);
        let bytes = if request.op.moves_data() { request.length } else { 0 };
        Completion::moved(request.slot, bytes)
    }
}

impl Device for SimulatedArray {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        let op = match request.op {
            Op::Read => ArrayOp::Read,
            Op::Write | Op::Commit => ArrayOp::Write,
            Op::Fsync | Op::Fdatasync | Op::SyncRange => ArrayOp::Flush,
            Op::Trim | Op::Create | Op::Stat | Op::Delete | Op::CopyRange => {
                self.refused.push(request.slot);
                return Ok(());
            }
        };
        let file = request.file.0;
        let offset = u64::from(file).saturating_mul(self.file_size) + request.offset.get();
        let asked = ArrayRequest { op, offset, length: request.length, file };
        self.simulation.submit(asked, request.slot.0).map_err(|_| Full)?;
        self.requests[request.slot.0 as usize] = request;
        self.in_flight += 1;
        Ok(())
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let until = until.get();
        let mut got = 0;
        while done.len() < done.capacity() {
            if let Some(slot) = self.refused.pop() {
                done.push(Completion::failed(slot, Errno::EOPNOTSUPP));
            } else {
                // What is due now comes along; time passes only for what is waited for.
                let now = self.simulation.now();
                let ends = match (got < min, self.in_flight) {
                    (true, 1..) => until.max(now),
                    (true, 0) if until != u64::MAX => until.max(now),
                    _ => now,
                };
                let Some((_, token)) = self.simulation.advance(ends) else { break };
                done.push(self.done(token));
            }
            got += 1;
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        Instant::new(self.simulation.now())
    }

    fn buffer(&mut self, _: Slot) -> &mut [u8] {
        &mut []
    }
}

impl Seat for SimulatedArray {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        turn.on_twin(self, "array", true)
    }

    fn as_device(&mut self) -> Option<&mut dyn Device> {
        Some(self)
    }

    fn begin(&mut self, cell: &Cell, _: u64) {
        self.simulation.submit_by(cell.streams.iter().map(|stream| stream.threads).sum());
        // What the visit before left in flight is nobody's any more.
        self.refused.clear();
        while self.in_flight > 0 && self.simulation.advance(u64::MAX).is_some() {
            self.in_flight -= 1;
        }
    }

    fn simulated_now(&self) -> Option<Nanos> {
        Some(Nanos::new(self.simulation.now()))
    }

    fn passes(&mut self, span: Nanos) -> bool {
        let until = self.simulation.now().saturating_add(span.get());
        while self.simulation.advance(until).is_some() {
            self.in_flight -= 1;
        }
        true
    }

    fn layers(&self) -> Option<Snapshot> {
        Some(Snapshot::of_array(self.counters, &self.simulation.usage()))
    }
}
