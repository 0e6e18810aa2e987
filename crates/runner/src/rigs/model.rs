//! `model:FILE.toml`: a simulated device, on a clock of its own.

use std::path::{Path, PathBuf};

use device::{Device, Faulty, Model, TwinSpec};
use record::TargetRecord;
use suite::SuiteSource;
use suite::model::{Cell, Stream, WriteThrough};
use units::{Bytes, Nanos};

use crate::array_text::text_file;
use crate::find::Found;
use crate::layers::Snapshot;
use crate::rig::{Entering, Kind, Rig, Seat, Site, Twin};
use crate::rigs::files::slots;
use crate::turn::{Part, Turn};
use crate::{Order, RunError};

pub(crate) const KIND: Kind = Kind {
    name: "model",
    rest: |rest| match rest {
        "" => Err("`model:` needs a file after the colon".to_owned()),
        path => Ok(path.to_owned()),
    },
    find,
    own_clock: |_| true,
};

fn find(rest: &str, _: &Order, _: &mut SuiteSource) -> Result<Found, RunError> {
    let (spec, text) = read_model(Path::new(rest))?;
    // Files that do not fit on the device it stands for would not on that device either.
    let capacity = Some(spec.model.size);
    let found = Found::twin(Box::new(spec), &format!("model:{rest}"), Bytes::ZERO);
    let record = TargetRecord { model: Some(text), ..found.record };
    Ok(Found { record, capacity, ..found })
}

/// A model, and the text that it is from.
fn read_model(path: &Path) -> Result<(TwinSpec, String), RunError> {
    let bad = |why: String| RunError::Model { path: path.to_path_buf(), why };
    let text = text_file(path).map_err(|e| bad(e.to_string()))?;
    let spec: TwinSpec = toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        bad(format!("line {}: {}", 1 + before.matches('\n').count(), error.message()))
    })?;
    spec.check().map_err(|e| bad(e.to_string()))?;
    Ok((spec, text))
}

impl Site for TwinSpec {
    fn remembers_writes(&self) -> bool {
        self.model.remembers_writes()
    }

    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        let device = self.open(slots(entry.cells), entry.seed).map_err(|error| {
            RunError::Model { path: PathBuf::from(&self.name), why: error.to_string() }
        })?;
        Ok(Twin::of(device))
    }
}

impl Seat for Faulty<Model> {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        turn.on_twin(self, "model", true)
    }

    fn as_device(&mut self) -> Option<&mut dyn Device> {
        Some(self)
    }

    fn begin(&mut self, cell: &Cell, seed: u64) {
        self.begin_visit(seed);
        let through = |stream: &Stream| stream.write_through != WriteThrough::No;
        self.write_through(cell.streams.iter().any(through));
    }

    fn simulated_now(&self) -> Option<Nanos> {
        Some(Nanos::new(self.now().get()))
    }

    fn passes(&mut self, span: Nanos) -> bool {
        let until = self.now() + span;
        // Nothing is in flight between visits, so nothing comes back, nor fails.
        self.reap(1, until, &mut Vec::with_capacity(1)).is_ok()
    }

    fn layers(&self) -> Option<Snapshot> {
        Some(Snapshot::of(self.inner()))
    }
}
