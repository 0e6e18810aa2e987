//! Which cells of several runs are one place: by what they ask for, however their plans say it.
//!
//! What one run varies along an axis another may have set once: its cells then lie where the
//! first one's axis has that value. What no run varies is no coordinate at all; where it differs,
//! it is a difference between the runs ([`crate::differ`]).

use std::collections::{BTreeMap, BTreeSet};

use record::{CellRecord, Run, StreamPlan};
use suite::{AskedCell, AskedStream};
use units::Bytes;

use crate::view::is_preparation;

/// The axis of which streams run.
const STREAMS: &str = "streams";
/// All of them.
const ALL: &str = "all";

/// A run with what its cells ask for, as far as its plan can be read.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    /// The run.
    pub run: &'a Run,
    asked: Vec<AskedCell>,
}

/// A phase and its place on every axis that any of the runs varies; `None` where it has none, or
/// that is not known.
pub(crate) type Place = (String, Vec<Option<String>>);

/// A field that is varied: of one stream, or of all of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Axis {
    stream: Option<String>,
    path: String,
}

/// By phase.
type Axes = BTreeMap<String, BTreeSet<Axis>>;

impl<'a> Told<'a> {
    /// Reads a run's plan.
    pub fn new(run: &'a Run) -> Self {
        let header = &run.header;
        let source = suite::parse(&header.suite_text, &header.id).ok();
        let asked = source.and_then(|source| suite::asked(&source).ok());
        Self { run, asked: asked.unwrap_or_default() }
    }

    /// What a cell asks for.
    pub fn asked(&self, cell: &CellRecord) -> Option<&AskedCell> {
        let asked = self.asked.get(cell.index as usize);
        asked.filter(|a| a.phase == cell.phase && a.coordinates == cell.coordinates)
    }

    /// Cells of the grid.
    pub fn grid(&self) -> impl Iterator<Item = &'a CellRecord> {
        self.run.cells.iter().filter(|cell| !is_preparation(&cell.phase))
    }

    /// A coordinate's field: dotted paths may begin with the name of a stream.
    fn axis(&self, phase: &str, field: &str) -> Axis {
        let of_phase = self.grid().filter(|cell| cell.phase == phase);
        let mut streams = of_phase.flat_map(|cell| &cell.streams);
        let split = field.split_once('.').filter(|(name, _)| streams.any(|s| s.name == *name));
        match split {
            Some((name, path)) => Axis { stream: Some(name.to_owned()), path: path.to_owned() },
            None => Axis { stream: None, path: field.to_owned() },
        }
    }

    /// Every axis along which cells of a phase differ. Of other tools' runs all are, and so are
    /// streams: another stream is another thing.
    fn varied(&self) -> Axes {
        let mut values: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
        for cell in self.grid() {
            for (field, value) in &cell.coordinates {
                values.entry((&cell.phase, field)).or_default().insert(value);
            }
        }
        let imported = self.run.header.imported.is_some();
        let mut axes = Axes::new();
        for ((phase, field), values) in values {
            if values.len() > 1 || imported || field == STREAMS {
                axes.entry(phase.to_owned()).or_default().insert(self.axis(phase, field));
            }
        }
        axes
    }

    fn value(&self, cell: &CellRecord, axis: &Axis) -> Option<String> {
        let own = |stream: &Option<String>| {
            let mut found = cell.coordinates.iter().filter(|(field, _)| {
                let other = self.axis(&cell.phase, field);
                other.path == axis.path && other.stream == *stream
            });
            found.next().map(|(_, value)| value.clone())
        };
        let found = own(&axis.stream).or_else(|| own(&None));
        if found.is_none() && axis.path == STREAMS {
            return Some(ALL.to_owned());
        }
        found.or_else(|| self.effective(cell, axis))
    }

    /// What all streams that the axis is of have alike.
    fn effective(&self, cell: &CellRecord, axis: &Axis) -> Option<String> {
        let is_meant = |name: &String| axis.stream.as_ref().is_none_or(|only| only == name);
        let values: BTreeSet<Option<String>> = match self.asked(cell) {
            Some(asked) => {
                let streams = asked.streams.iter().filter(|stream| is_meant(&stream.name));
                streams.map(|stream| AskedStream::value(stream, &axis.path)).collect()
            }
            None => {
                let plans = cell.streams.iter().filter(|plan| is_meant(&plan.name));
                plans.map(|plan| recorded(plan, &axis.path)).collect()
            }
        };
        match values.len() {
            1 => values.into_iter().next().flatten(),
            _ => None,
        }
    }
}

/// What a record itself tells of a stream, as axes tell it.
pub(crate) fn recorded(plan: &StreamPlan, path: &str) -> Option<String> {
    let known = |n: u32| (n > 0).then(|| n.to_string());
    match (path, plan.op.as_str()) {
        ("block_size", _) => plan.block_bytes.map(|bytes| Bytes::new(bytes).exact()),
        ("threads", _) => known(plan.threads),
        ("queue_depth", _) => known(plan.queue_depth),
        ("operation", op) => Some(op.to_owned()),
        ("read_share", "read") => Some("1".to_owned()),
        ("read_share", "write") => Some("0".to_owned()),
        _ => None,
    }
}

/// The place of every cell of the grids of these runs, by the cell's index.
pub(crate) fn places(runs: &[&Told<'_>]) -> Vec<BTreeMap<u32, Place>> {
    let mut axes = Axes::new();
    for (phase, varied) in runs.iter().flat_map(|told| told.varied()) {
        axes.entry(phase).or_default().extend(varied);
    }
    let of_run = |told: &&Told<'_>| -> BTreeMap<u32, Place> {
        let place = |cell: &CellRecord| {
            let axes = axes.get(&cell.phase).into_iter().flatten();
            let values = axes.map(|axis| told.value(cell, axis)).collect();
            (cell.index, (cell.phase.clone(), values))
        };
        told.grid().map(place).collect()
    };
    runs.iter().map(of_run).collect()
}

/// Cells of two runs that are one place, in the order of the first.
pub(crate) fn pairs<'a>(
    left: &Told<'a>,
    right: &Told<'a>,
) -> Vec<(&'a CellRecord, &'a CellRecord)> {
    let [ours, theirs] = <[_; 2]>::try_from(places(&[left, right])).unwrap_or_default();
    let mut by_place = BTreeMap::new();
    for cell in right.grid() {
        if let Some(place) = theirs.get(&cell.index) {
            by_place.entry(place).or_insert(cell);
        }
    }
    let pair = |cell: &'a CellRecord| Some((cell, by_place.remove(ours.get(&cell.index)?)?));
    left.grid().filter_map(pair).collect()
}
