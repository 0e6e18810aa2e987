//! `layer:PATH`, `layer:model:FILE`, `layer:array:NAME`: the write-optimising layer on what a run without it
//! would be played on: a volume that is made for the run. All that is asked of a path, and looked at, is
//! asked of this one.

mod blocks;
mod volume;

use std::sync::{Arc, Mutex, PoisonError};

use layer::{CreateOptions, LayerError, LiveShare, LogCounts, LogVolume, SEGMENT, VolumeId};
use record::{Counter, LedgerEntry, Warning};
use stack::{Host, Target};
use stats::random::derive_seed;
use suite::SuiteSource;
use suite::model::{CacheStep, Cell, Suite};
use units::{Bytes, Nanos};
use uring::{Allow, Choice, FileSet, Fill, Requested, Visitor};

use self::blocks::{OWN_SLOTS, PIECE, SeamBlocks};
use self::volume::VolumeDevice;
use crate::fill::Pass;
use crate::find::{Found, Seen, checked, find_paths};
use crate::layers::Snapshot;
use crate::prepare::{Paths, SCRATCH, buffers, buffers_fit, twin_fits};
use crate::quiet::Level;
use crate::rig::{Entering, Kind, Rig, Seat, Site, Stage};
use crate::rigs::files::slots;
use crate::target::TargetName;
use crate::turn::{Part, Turn};
use crate::{Order, RunError};

pub(crate) const KIND: Kind = Kind {
    name: "layer",
    rest: |rest| NamedVolume::parse(rest).map(|named| named.text()),
    find,
    own_clock: |rest| NamedVolume::parse(rest).is_ok_and(|named| named.below.has_own_clock()),
};

/// What is below, as a suite: it is all written.
const BELOW: &str = "schema = 1\nname = \"layer-below\"\nfile_size = \"1GiB\"\n[[phase]]\nname = \"write\"\n\
    operation = \"write\"\naccess = \"uniform\"\nblock_size = \"4KiB\"\nqueue_depth = 1\nthreads = 1\n\
    direct = true\ntime = \"1s\"\n";

/// What is behind the colon: `TARGET` or `TARGET,fill=SHARE`.
#[derive(Clone, Debug, PartialEq)]
struct NamedVolume {
    below: TargetName,
    fill: LiveShare,
}

impl NamedVolume {
    fn parse(rest: &str) -> Result<Self, String> {
        let (below, fill) = match rest.rsplit_once(",fill=") {
            None => (rest, LiveShare::ADVISED),
            Some((below, fill)) => (below, fill.parse()?),
        };
        let wanted =
            "`layer:` needs a directory, file or device, `array:` or `model:` after the colon";
        if below.is_empty() {
            return Err(wanted.to_owned());
        }
        let below = TargetName::parse(below.as_ref()).map_err(|error| error.to_string())?;
        match &below {
            TargetName::Kind { kind, .. } if **kind == KIND || !below.has_own_clock() => {
                Err(wanted.to_owned())
            }
            _ => Ok(Self { below, fill }),
        }
    }

    fn text(&self) -> String {
        let below = self.below.text();
        let is_usual = self.fill == LiveShare::ADVISED;
        if is_usual { below } else { format!("{below},fill={}", self.fill.get()) }
    }

    fn options(&self, logical: Bytes, seed: u64) -> CreateOptions {
        let id = VolumeId(derive_seed(seed, &[0x1a7e4]));
        CreateOptions { logical, segment: SEGMENT, id }
    }
}

/// What a volume is on.
pub(crate) fn below(rest: &str) -> Option<TargetName> {
    NamedVolume::parse(rest).ok().map(|named| named.below)
}

fn find(rest: &str, order: &Order, source: &mut SuiteSource) -> Result<Found, RunError> {
    let name = format!("layer:{rest}");
    let bad = |why: String| RunError::TargetName { text: name.clone(), why };
    let named = NamedVolume::parse(rest).map_err(bad)?;
    let logical = rounded(checked(source, None)?.files.total());
    let below = named.options(logical, 0).device_size(named.fill);
    let mut file = suite::parse(BELOW, "what is below the layer")?;
    file.set(&format!("file_size={}", below.exact()))?;
    let asked = Order { size_given: true, ..order.clone() };
    // So that the same directory may be measured without the layer in turns.
    let scratch = format!("layer-{SCRATCH}");
    let found = match &named.below {
        TargetName::Path(path) => {
            let there = Seen::of(&Host::this(), path, &scratch)?.device_size();
            if let Some(there) = there.filter(|there| *there < below) {
                let most = CreateOptions::largest(there, named.fill).exact();
                let why =
                    format!("{below} would lie on it, which has {there}: `--size {most}` fits");
                return Err(bad(why));
            }
            find_paths(&Host::this(), &asked, (std::slice::from_ref(path), &scratch), &mut file)?
        }
        TargetName::Kind { kind, rest } => (kind.find)(rest, &asked, &mut file)?,
    };
    let suite = checked(&file, found.capacity)?;
    let mut record = found.record;
    record.given.clone_from(&name);
    let share = (named.fill.get() * 1e3).round() / 10.0;
    record.remarks.push(format!("through the layer, filled to {share} %: {below} below"));
    let site = Box::new(LayerSite { below: found.site, suite, named });
    // Shorter requests are read, changed and written, which costs what it costs.
    Ok(Found { site, record, capacity: None, unit: Some(layer::BLOCK), as_it_is: false, ..found })
}

fn rounded(size: Bytes) -> Bytes {
    Bytes::new(size.get().next_multiple_of(layer::BLOCK.get()))
}

#[derive(Debug)]
struct LayerSite {
    below: Box<dyn Site>,
    /// Of what is below.
    suite: Suite,
    named: NamedVolume,
}

impl Site for LayerSite {
    fn paths(&self) -> Option<&Paths> {
        self.below.paths()
    }

    fn paths_mut(&mut self) -> Option<&mut Paths> {
        self.below.paths_mut()
    }

    fn targets(&self) -> &[Target] {
        self.below.targets()
    }

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
        // The map, and what writing a checkpoint of it takes; what a simulated device holds.
        let map = suite.files.total().get() / 256;
        let held = self.suite.files.total().get() * u64::from(self.paths().is_none());
        let taken = buffers_fit(buffers(suite, passes, true), available)?;
        twin_fits("layer:", Bytes::new(map + held), taken, available)
    }

    fn enter(self: Box<Self>, entry: &Entering<'_>) -> Result<Box<dyn Rig>, RunError> {
        let Self { below, suite, named } = *self;
        let cells: Vec<&Cell> = suite.cells().collect();
        let [cell] = cells[..] else { return Err(no_volume(&named, LayerError::NoVolume)) };
        let slots = slots(entry.cells);
        // Its own requests come to those of the cells.
        let mut deep = cell.clone();
        deep.streams.iter_mut().for_each(|stream| stream.queue_depth = slots + OWN_SLOTS);
        let entering = Entering { suite: &suite, cells: &[&deep], ..*entry };
        let mut rig = below.enter(&entering)?;
        let size = suite.files.total();
        let place = match cell.streams.first().map(|stream| rig.opened(stream)).transpose()? {
            Some(Some(files)) => VolumePlace::Files(files),
            _ => {
                let seat = rig.give_up().ok_or_else(|| no_volume(&named, LayerError::NoVolume))?;
                VolumePlace::Simulated {
                    seat,
                    held: vec![0; size.get() as usize],
                    cell: Box::new(cell.clone()),
                }
            }
        };
        let options = named.options(rounded(entry.suite.files.total()), entry.seed);
        let mut volume = MadeVolume {
            place,
            size,
            slots,
            file_size: entry.suite.files.size,
            at_rest: None,
            counts: LogCounts::default(),
        };
        volume.create(&options)?.map_err(|error| no_volume(&named, error))?;
        let volume = Arc::new(Mutex::new(volume));
        Ok(Box::new(LayerRig { below: rig, volume, before: LayerCounts::default() }))
    }
}

fn no_volume(named: &NamedVolume, error: LayerError) -> RunError {
    RunError::Layer { place: named.below.text(), error }
}

/// Where a volume is.
#[derive(Debug)]
enum VolumePlace {
    Files(Arc<FileSet>),
    /// A device on a clock of its own, and what is on it.
    Simulated {
        seat: Box<dyn Seat>,
        held: Vec<u8>,
        cell: Box<Cell>,
    },
}

/// A back end belongs to the thread that opened it, so each visit opens one.
#[derive(Debug)]
struct MadeVolume {
    place: VolumePlace,
    size: Bytes,
    slots: u32,
    file_size: Bytes,
    /// Between visits: without a handle of its device.
    at_rest: Option<LogVolume<()>>,
    counts: LogCounts,
}

impl MadeVolume {
    fn create(&mut self, options: &CreateOptions) -> Result<Result<(), LayerError>, RunError> {
        let mut made = Err(LayerError::NoVolume);
        self.with_blocks(&mut |blocks, at_rest| {
            let created = LogVolume::create(blocks, options);
            made = created.map(|volume| *at_rest = Some(volume.on(())));
            false
        })?;
        Ok(made)
    }

    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        let own_clock = self.simulated_now().is_some();
        let (shape, streams) = ((self.file_size, self.slots), turn.visit.streams.clone());
        let mut played = Ok(None);
        let mut counts = self.counts;
        self.with_blocks(&mut |blocks, at_rest| {
            let Some(volume) = at_rest.take() else { return false };
            let mut device = VolumeDevice::new(volume.on(blocks), shape, &streams);
            played = turn.on_twin(&mut device, "layer", own_clock);
            let mut volume = device.into_volume();
            counts = volume.counts();
            // What failed to be written unseen may be anything.
            if volume.device_mut().settle().is_ok() {
                *at_rest = Some(volume.on(()));
            }
            let results = played.iter().flatten().flat_map(|part| &part.results);
            results.into_iter().any(|result| result.left || result.hangs)
        })?;
        self.counts = counts;
        let mut part = played?;
        if let VolumePlace::Files(files) = &self.place {
            for (_, report) in part.iter_mut().flat_map(|part| &mut part.backends) {
                (report.direct, report.reasons) = (files.direct_in_force(), Vec::new());
            }
        }
        Ok(part)
    }

    /// * `work`: says whether requests did not come back.
    fn with_blocks(&mut self, work: &mut Work<'_>) -> Result<(), RunError> {
        let shape = (self.size, self.slots);
        match &mut self.place {
            VolumePlace::Simulated { seat, held, .. } => {
                if let Some(device) = seat.as_device() {
                    work(SeamBlocks::new(device, Some(held), shape), &mut self.at_rest);
                }
            }
            VolumePlace::Files(files) => {
                let requested = Requested {
                    choice: Choice::Auto,
                    depth: self.slots + OWN_SLOTS,
                    buffer_len: Bytes::new(PIECE as u64),
                    fill: Fill::Untouched,
                    allow: Allow::default(),
                };
                let mut backend = uring::open(files, &requested)?;
                let at_rest = &mut self.at_rest;
                if backend.visit(OnFiles { work, shape, at_rest }) {
                    // Closing a back end waits for its requests.
                    std::mem::forget(backend);
                }
            }
        }
        Ok(())
    }

    fn simulated_now(&self) -> Option<Nanos> {
        match &self.place {
            VolumePlace::Files(_) => None,
            VolumePlace::Simulated { seat, .. } => seat.simulated_now(),
        }
    }
}

type Work<'w> = dyn FnMut(SeamBlocks<'_>, &mut Option<LogVolume<()>>) -> bool + 'w;

struct OnFiles<'a, 'w> {
    work: &'a mut Work<'w>,
    shape: (Bytes, u32),
    at_rest: &'a mut Option<LogVolume<()>>,
}

impl Visitor for OnFiles<'_, '_> {
    type Output = bool;

    fn visit<D: device::Device>(self, device: &mut D) -> bool {
        (self.work)(SeamBlocks::new(device, None, self.shape), self.at_rest)
    }
}

#[derive(Debug, Default)]
struct LayerCounts {
    log: LogCounts,
    below: Option<Snapshot>,
}

/// What is below, and the volume on it.
#[derive(Debug)]
struct LayerRig {
    below: Box<dyn Rig>,
    volume: Arc<Mutex<MadeVolume>>,
    before: LayerCounts,
}

impl LayerRig {
    /// What was counted so far; `None` while a visit plays, whose requests never came back.
    fn counts(&self) -> Option<LayerCounts> {
        let volume = self.volume.try_lock().ok()?;
        let below = match &volume.place {
            VolumePlace::Simulated { seat, .. } => seat.layers(),
            VolumePlace::Files(_) => None,
        };
        Some(LayerCounts { log: volume.counts, below })
    }
}

impl Rig for LayerRig {
    fn stage(&mut self, _: &Cell, seed: u64) -> Result<Option<Stage>, RunError> {
        let Ok(mut volume) = self.volume.try_lock() else { return Ok(None) };
        if let VolumePlace::Simulated { seat, cell, .. } = &mut volume.place {
            seat.begin(cell, seed);
        }
        drop(volume);
        self.before = self.counts().unwrap_or_default();
        Ok(Some(Stage::Whole(Box::new(VolumeSeat(Arc::clone(&self.volume))))))
    }

    fn is_whole(&self) -> bool {
        self.volume.try_lock().is_ok_and(|volume| volume.at_rest.is_some())
    }

    fn is_twin(&self) -> bool {
        self.below.is_twin()
    }

    fn passes(&mut self, pause: Nanos) -> bool {
        let Ok(mut volume) = self.volume.try_lock() else { return false };
        match &mut volume.place {
            VolumePlace::Simulated { seat, .. } => seat.passes(pause),
            VolumePlace::Files(_) => false,
        }
    }

    fn mark_before(&mut self) {
        self.below.mark_before();
    }

    fn ledger(&self) -> (Vec<LedgerEntry>, Vec<Warning>) {
        let now = self.counts().and_then(|counts| counts.below);
        match self.before.below.as_ref().zip(now) {
            Some((before, now)) => (now.since(before), Vec::new()),
            None => self.below.ledger(),
        }
    }

    fn counters(&mut self) -> Vec<Counter> {
        let Some(LayerCounts { log: now, .. }) = self.counts() else { return Vec::new() };
        let before = self.before.log;
        let of =
            |name: &str, value: u64| Counter { name: name.to_owned(), unit: String::new(), value };
        vec![
            of("blocks written", now.written - before.written),
            of("blocks copied", now.copied - before.copied),
            of("groups", now.headers - before.headers),
            of("checkpoints", now.checkpoints - before.checkpoints),
        ]
    }

    fn changes(&mut self, trims: bool) -> Vec<Warning> {
        self.below.changes(trims)
    }

    fn leave(&mut self) -> Vec<Warning> {
        self.below.leave()
    }

    fn hangs(&mut self) {
        self.below.hangs();
    }

    fn alignment(&self) -> Option<u32> {
        self.below.alignment()
    }

    fn direct_unit(&mut self, _: &Cell) -> Result<Option<Bytes>, RunError> {
        Ok(Some(layer::BLOCK))
    }

    fn caches(&mut self, steps: &[CacheStep]) -> Result<(), RunError> {
        self.below.caches(steps)
    }

    fn levels(&self) -> Option<Vec<Level>> {
        self.below.levels()
    }
}

/// All workers play on the volume.
#[derive(Debug)]
struct VolumeSeat(Arc<Mutex<MadeVolume>>);

impl Seat for VolumeSeat {
    fn play(&mut self, turn: &Turn) -> Result<Option<Part>, RunError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).play(turn)
    }

    fn simulated_now(&self) -> Option<Nanos> {
        self.0.try_lock().ok()?.simulated_now()
    }
}
