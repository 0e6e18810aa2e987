//! From layered text to the checked [`Suite`].

use units::{Bytes, Nanos};

use crate::directory;
use crate::effect::{self, Effects, Vain};
use crate::error::{Problem, SuiteError};
use crate::layer;
use crate::model::{
    Axis, CacheStep, Cell, Data, FileSet, Method, Operation, Order, Phase, StartFile, Stream,
    Suite, TableLayout,
};
use crate::node::{At, Node, Table};
use crate::phase;
use crate::raw::{DataKind, RawData, RawStream};
use crate::resolve::{Layered, LayeredStream, read, value_text};
use crate::rounds;
use crate::source::{AxisSource, Located, SuiteSource, out_of_range};
use crate::steady;
use crate::stream::{IN_FLIGHT_MAX, Space, stream};

/// Streams in all cells of a suite together.
const STREAMS_MAX: u64 = 100_000;
const REPEATS_MAX: u32 = 10_000;
const FILES_MAX: u32 = 100_000;
/// Longest time of anything.
pub(crate) const TIME_MAX: Nanos = Nanos::secs(366 * 24 * 3600);
/// Longest request: what the seam's requests can say.
pub(crate) const BLOCK_MAX: Bytes = Bytes::gib(1);

/// How long a visit in rounds is stretched at most, if nobody says otherwise.
pub(crate) const VISIT_TIME_MAX: Nanos = Nanos::secs(10);

/// What the checker must know besides the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckContext {
    /// Direct I/O comes in multiples of this, whatever the device. Devices with larger sectors
    /// make cells impossible, not suites wrong.
    pub sector: Bytes,
    /// Bytes of the target, where it has a size of its own (a block device).
    pub capacity: Option<Bytes>,
}

impl Default for CheckContext {
    /// 512-byte sectors, no limit of size.
    fn default() -> Self {
        Self { sector: Bytes::new(512), capacity: None }
    }
}

/// Checks a suite with its overrides and expands its grids.
pub fn check(source: &SuiteSource, context: &CheckContext) -> Result<Suite, SuiteError> {
    checked(source, context).map_err(|(at, problem)| source.error(at, problem))
}

/// What is no reason to refuse a suite, although its author meant something else: what its own
/// text sets although it changes nothing, phases that can never be steady, and those that are
/// measured for part of a turn of work and rest. Nothing of a suite
/// that [`check`] refuses.
pub fn doubts(source: &SuiteSource) -> Vec<SuiteError> {
    let Ok(found) = looked_at(source, &CheckContext::default()) else { return Vec::new() };
    let vain = found.in_vain(source).into_iter().filter(|(at, _)| matches!(at, At::Text(_)));
    let doubts = vain.chain(found.never_steady()).chain(found.torn_turns());
    doubts.map(|(at, problem)| source.error(at, problem)).collect()
}

pub(crate) fn checked(source: &SuiteSource, context: &CheckContext) -> Located<Suite> {
    let found = looked_at(source, context).map_err(|error| blame_the_size(source, error))?;
    match found.refused(source) {
        Some(vain) => Err(vain),
        None => Ok(found.suite),
    }
}

/// What the text asks for fits its own files: if it does not fit those that were set on top of it, the
/// size that was set is to be told.
fn blame_the_size(source: &SuiteSource, (at, problem): (At, Problem)) -> (At, Problem) {
    let of_files = ["the file's", "the files'", "what the files have left"];
    let too_large =
        matches!(&problem, Problem::TooLarge { container, .. } if of_files.contains(container));
    let size = place(&source.head, "file_size", at);
    let is_on_top = matches!((at, size), (At::Text(_), At::Override(_)));
    (if too_large && is_on_top { size } else { at }, problem)
}

/// A suite that can be played, and what was found on the way there.
pub(crate) struct LookedAt {
    pub suite: Suite,
    pub phases: Vec<Layered>,
    /// One for each phase.
    effects: Vec<Effects>,
}

impl LookedAt {
    /// All that changes nothing: overrides, axes of the text, its fields.
    fn in_vain(&self, source: &SuiteSource) -> Vec<Vain> {
        let (phases, effects) = (&self.phases, &self.effects);
        let mut vain = effect::overrides(source, phases, effects);
        vain.extend(effect::axes(phases, effects));
        vain.extend(effect::fields(source, phases, effects));
        vain
    }

    /// Steady phases that cannot end as such, and volumes of what writes nothing.
    fn never_steady(&self) -> Vec<Vain> {
        let phases = self.suite.phases.iter().zip(&self.phases);
        let doubts = phases.flat_map(|(phase, layered)| {
            let at = |field| layered.own.place_of_steady(field);
            let asked = layered.own.raw().ok().and_then(|own| own.steady?.volume);
            let idle = steady::idle_volume(phase, asked).map(|problem| (at("volume"), problem));
            idle.into_iter().chain(steady::never(phase).map(|problem| (at("rounds_max"), problem)))
        });
        doubts.collect()
    }

    /// Phases that are measured for part of a turn of work and rest.
    fn torn_turns(&self) -> impl Iterator<Item = Vain> {
        let phases = self.suite.phases.iter().zip(&self.phases);
        phases.filter_map(|(phase, layered)| {
            Some((layered.at, rounds::torn_turn(&self.suite, phase)?))
        })
    }

    /// The first of what was set on top of the text and changes nothing, or leaves nothing for
    /// an axis of the text to change.
    fn refused(&self, source: &SuiteSource) -> Option<Vain> {
        let overrides = effect::overrides(source, &self.phases, &self.effects);
        let is_on_top = |(at, _): &Vain| matches!(at, At::Override(_));
        if let Some(vain) = overrides.into_iter().find(is_on_top) {
            return Some(vain);
        }
        let axes = effect::axes(&self.phases, &self.effects);
        if axes.is_empty() || source.overrides.is_empty() {
            return None;
        }
        let mut text = source.clone();
        text.overrides.clear();
        let before = looked_at(&text, &CheckContext::default());
        let before = before.map(|text| effect::axes(&text.phases, &text.effects));
        let before = before.unwrap_or_default();
        axes.into_iter().find(|(at, _)| !before.iter().any(|(other, _)| other == at))
    }
}

pub(crate) fn looked_at(source: &SuiteSource, context: &CheckContext) -> Located<LookedAt> {
    let found = looked_at_with(source, context, None)?;
    let (size, unit) = (found.suite.files.size.get(), found.suite.size_unit().get());
    match Bytes::new(size / unit * unit) {
        // Of what is smaller than a unit nothing would be left.
        Bytes::ZERO => Ok(found),
        whole if whole == found.suite.files.size => Ok(found),
        whole => looked_at_with(source, context, Some(whole)).map_err(|(at, mut problem)| {
            if let Problem::TooLarge { hint: hint @ None, .. } = &mut problem {
                let of = Bytes::new(size).exact();
                let whole = whole.exact();
                *hint = Some(format!("of a file of `{of}` direct I/O and the like use `{whole}`"));
            }
            (at, problem)
        }),
    }
}

/// * `cut`: the size of the files, if it is not the one asked for.
fn looked_at_with(
    source: &SuiteSource,
    context: &CheckContext,
    cut: Option<Bytes>,
) -> Located<LookedAt> {
    let raw = &source.raw_head;
    let at = |field: &str| place(&source.head, field, At::Text(0));
    let files = file_set(source, context, cut)?;
    let repeats = in_range("repeats", raw.repeats.unwrap_or(1), 1, REPEATS_MAX, at("repeats"))?;
    let settle = raw.settle.map_or(Nanos::ZERO, |time| time.0);
    if settle > TIME_MAX {
        return Err((at("settle"), out_of_range("settle", settle.exact(), "at most a year")));
    }
    let layered = source.layered()?;
    limit_cells(&layered)?;
    let space = Space { files: &files, sector: context.sector };
    let caches = raw.caches.clone().unwrap_or_default();
    let otherwise = BeforeVisits { settle, caches: &caches };
    let (mut phases, mut effects) = (Vec::new(), Vec::new());
    for phase in &layered {
        let mut of_phase = Effects::new(phase.streams.len());
        phases.push(expand(phase, &space, &otherwise, &mut of_phase)?);
        effects.push(of_phase);
    }
    let mut suite = Suite {
        name: raw.name.clone().unwrap_or_default(),
        title: source.title().to_owned(),
        description: source.description().to_owned(),
        scaled: raw.scaled,
        level: raw.level.clone(),
        phases,
        method: raw.method.unwrap_or(Method::Rounds),
        rounds: rounds::DEFAULT,
        repeats,
        order: raw.order.unwrap_or(Order::AsWritten),
        settle,
        caches,
        table: raw.table.unwrap_or(TableLayout::Plain),
        files,
    };
    let table = raw.rounds.clone().unwrap_or_default();
    rounds::set_rounds(&mut suite, &table, &source.head)?;
    Ok(LookedAt { suite, phases: layered, effects })
}

/// Where a field was set, else `otherwise`.
pub(crate) fn place(table: &Table, field: &str, otherwise: At) -> At {
    table.get(field).map_or(otherwise, |node| node.at)
}

pub(crate) fn in_range(field: &str, seen: u32, low: u32, high: u32, at: At) -> Located<u32> {
    if (low..=high).contains(&seen) {
        return Ok(seen);
    }
    Err((at, out_of_range(field, seen, &format!("{low} to {high}"))))
}

/// Many streams may ask for as much together as no single one could.
fn check_in_flight(streams: &[Stream], at: At) -> Located<()> {
    let each = streams.iter().map(|s| u64::from(s.threads) * u64::from(s.queue_depth));
    let all: u64 = each.sum();
    if all > IN_FLIGHT_MAX {
        let wanted = format!("at most {IN_FLIGHT_MAX}");
        return Err((at, out_of_range("threads x queue_depth of all streams", all, &wanted)));
    }
    Ok(())
}

pub(crate) fn share(field: &str, seen: f64, at: At) -> Located<f64> {
    if (0.0..=1.0).contains(&seen) {
        // Minus zero is a zero that does not print as one.
        return Ok(seen.abs());
    }
    Err((at, out_of_range(field, seen, "a share from 0 to 1")))
}

fn file_set(source: &SuiteSource, context: &CheckContext, cut: Option<Bytes>) -> Located<FileSet> {
    let raw = &source.raw_head;
    let at = |field: &str| place(&source.head, field, At::Text(0));
    let count = raw.file_count.unwrap_or(1);
    let count = in_range("file_count", count, 1, FILES_MAX, at("file_count"))?;
    let asked = raw.file_size.map_or(Bytes::gib(1), |size| size.0);
    let size = cut.unwrap_or(asked);
    let total = size.get().checked_mul(u64::from(count)).filter(|&n| i64::try_from(n).is_ok());
    if size == Bytes::ZERO || total.is_none() {
        let problem = out_of_range("file_size", size.exact(), "1B to 8EiB in all files together");
        return Err((at("file_size"), problem));
    }
    if let Some(capacity) = context.capacity
        && total.is_some_and(|total| total > capacity.get())
    {
        let total = Bytes::new(total.unwrap_or(u64::MAX));
        let hint = Some(format!("use `--size {}`", capacity.exact()));
        return Err((
            at("file_size"),
            too_large("file set", total, "the target's", capacity, hint),
        ));
    }
    let precondition = raw.precondition.iter().flatten();
    let precondition = precondition
        .map(|raw| phase::pass(raw, size, context.sector, at("precondition")))
        .collect::<Located<_>>()?;
    let data = data(raw.data.as_ref(), at("data"))?;
    let asked = cut.map(|_| asked);
    Ok(FileSet { count, size, asked, fill: raw.fill.unwrap_or(true), data, precondition })
}

/// Whether requests of this size can be made in files of that one.
pub(crate) fn check_block(block: Bytes, file: Bytes, sector: Option<Bytes>, at: At) -> Located<()> {
    if block == Bytes::ZERO {
        return Err((at, out_of_range("block_size", block.exact(), "1B to 1GiB")));
    }
    if let Some(sector) = sector.filter(|&sector| !block.is_multiple_of(sector)) {
        return Err((at, not_multiple("block size", block, sector)));
    }
    if block > BLOCK_MAX {
        return Err((at, out_of_range("block_size", block.exact(), "1B to 1GiB")));
    }
    if block > file {
        return Err((at, too_large("block size", block, "the file's", file, None)));
    }
    Ok(())
}

pub(crate) fn not_multiple(what: &'static str, seen: Bytes, sector: Bytes) -> Problem {
    Problem::NotMultiple { what, seen: seen.get(), unit: "sector", multiple: sector.get() }
}

pub(crate) fn too_large(
    what: &'static str,
    seen: Bytes,
    container: &'static str,
    limit: Bytes,
    hint: Option<String>,
) -> Problem {
    Problem::TooLarge { what, seen, container, limit, hint }
}

fn data(raw: Option<&RawData>, at: At) -> Located<Data> {
    let Some(raw) = raw else { return Ok(Data::Incompressible) };
    let Some(kind) = raw.kind else {
        return Err((at, needs("a table of `data`", "a `kind`")));
    };
    let details = [("byte", raw.byte.is_some()), ("random_share", raw.random_share.is_some())];
    let (data, own) = match kind {
        DataKind::Incompressible => (Data::Incompressible, ""),
        DataKind::Zero => (Data::Zero, ""),
        DataKind::SelfDescribing => (Data::SelfDescribing, ""),
        DataKind::Pattern => {
            let byte = raw.byte.ok_or((at, needs("data `pattern`", "a `byte`")))?;
            (Data::Pattern { byte }, "byte")
        }
        DataKind::Compressible => {
            let share_of = raw.random_share;
            let seen = share_of.ok_or((at, needs("data `compressible`", "a `random_share`")))?;
            let random_share = share("random_share", seen, at)?;
            (Data::Compressible { random_share }, "random_share")
        }
    };
    match details.iter().find(|(name, set)| *set && *name != own) {
        Some((name, _)) => {
            let of = "this kind of data".to_owned();
            Err((at, Problem::Meaningless { field: (*name).to_owned(), of }))
        }
        None => Ok(data),
    }
}

pub(crate) fn needs(what: &str, needs: &str) -> Problem {
    Problem::Needs { what: what.to_owned(), needs: needs.to_owned() }
}

fn limit_cells(phases: &[Layered]) -> Located<()> {
    let mut total: u128 = 0;
    for phase in phases {
        let axes = phase.axes.iter();
        let cells = axes.fold(1u128, |n, axis| n.saturating_mul(axis.values.len() as u128));
        total = total.saturating_add(cells.saturating_mul(phase.streams.len() as u128));
        if total > u128::from(STREAMS_MAX) {
            let at = phase.axes.first().map_or(phase.at, |axis| axis.at);
            return Err((at, Problem::TooManyCells { seen: total, limit: STREAMS_MAX }));
        }
    }
    Ok(())
}

/// What is done before each visit where a phase says nothing.
struct BeforeVisits<'a> {
    settle: Nanos,
    caches: &'a [CacheStep],
}

fn expand(
    phase: &Layered,
    space: &Space<'_>,
    otherwise: &BeforeVisits<'_>,
    effects: &mut Effects,
) -> Located<Phase> {
    let lengths: Vec<usize> = phase.axes.iter().map(|axis| axis.values.len()).collect();
    let count: usize = lengths.iter().product();
    let mut cells = Vec::with_capacity(count);
    for index in 0..count {
        let coordinates = coordinates(index, &lengths);
        let drawn = streams_at(phase, &coordinates, space)?;
        for Drawn { index, raw, stream } in &drawn {
            effects.note(*index, raw, stream);
        }
        // Not in the room of what they were drawn from, which is several times as large.
        let mut streams = Vec::with_capacity(drawn.len());
        streams.extend(drawn.into_iter().map(|drawn| drawn.stream));
        directory::check_together(&streams, phase.at)?;
        check_in_flight(&streams, phase.at)?;
        let before = before_at(phase, &coordinates, space)?;
        if let Some((raw, stream)) = &before {
            effects.note(phase.streams.len(), raw, stream);
        }
        let before = before.map(|(_, stream)| stream);
        directory::check_before(before.as_ref(), phase.at)?;
        cells.push(Cell { coordinates, streams, before });
    }
    let axes = phase.axes.iter().map(|axis| Axis {
        field: phase.field_text(axis),
        values: match axis.is_of_streams() {
            true => axis.values.iter().map(phase::selection_text).collect(),
            false => axis.values.iter().map(value_text).collect(),
        },
    });
    let own = phase.own.raw()?;
    Ok(Phase {
        name: phase.name.clone(),
        axes: axes.collect(),
        steady: phase::steady(phase, &own, &cells)?,
        settle: phase::settle(&phase.own, &own)?.unwrap_or(otherwise.settle),
        caches: own.caches.clone().unwrap_or_else(|| otherwise.caches.to_vec()),
        precondition: phase::passes(&phase.own, &own, space)?,
        cells,
    })
}

/// The place of the `index`-th cell on each axis, the last axis fastest.
pub(crate) fn coordinates(index: usize, lengths: &[usize]) -> Vec<usize> {
    let mut rest = index;
    let mut reversed: Vec<usize> = Vec::with_capacity(lengths.len());
    for &length in lengths.iter().rev() {
        reversed.push(rest % length);
        rest /= length;
    }
    reversed.reverse();
    reversed
}

/// A stream of a cell, with what it was made of.
pub(crate) struct Drawn {
    /// Of the stream in its phase.
    pub index: usize,
    pub raw: RawStream,
    pub stream: Stream,
}

/// The streams that run in a cell.
pub(crate) fn streams_at(phase: &Layered, at: &[usize], space: &Space<'_>) -> Located<Vec<Drawn>> {
    let plays = |stream: &LayeredStream| {
        let mut of_streams = chosen(&phase.axes, at).filter(|(axis, _)| axis.is_of_streams());
        of_streams.next().is_none_or(|(_, value)| phase::plays(value, &stream.name))
    };
    let playing = phase.streams.iter().enumerate().filter(|(_, stream)| plays(stream));
    let streams = playing.map(|(index, layered)| {
        let mut fields = layered.fields.clone();
        for (axis, value) in chosen(&phase.axes, at) {
            if axis.stream.is_none_or(|only| only == index) && !axis.is_of_streams() {
                layer::apply_path(&mut fields, &axis.path, value);
            }
        }
        layer::drop_unset(&mut fields);
        let raw = read(&fields, layered.at)?;
        let stream = stream(&layered.name, &raw, &fields, layered.at, space)?;
        Ok(Drawn { index, raw, stream })
    });
    let streams: Vec<Drawn> = streams.collect::<Located<_>>()?;
    all_write_if_begun_anew(&streams, phase.at)?;
    Ok(streams)
}

/// The stream before each visit to a cell, with what it was made of.
pub(crate) fn before_at(
    phase: &Layered,
    at: &[usize],
    space: &Space<'_>,
) -> Located<Option<(RawStream, Stream)>> {
    let before = phase.before.as_ref();
    before.map(|before| before.stream(chosen(&phase.axes, at), space)).transpose()
}

/// Files that are cut to nothing are so for every stream of the cell.
fn all_write_if_begun_anew(streams: &[Drawn], at: At) -> Located<()> {
    let anew = |drawn: &Drawn| drawn.stream.start_file != StartFile::Keep;
    let reads = |drawn: &&Drawn| {
        let classes = &drawn.stream.mix.classes;
        classes.iter().any(|class| class.op.reads() || class.op == Operation::Trim)
    };
    match streams.iter().find(reads) {
        Some(reader) if streams.iter().any(anew) => {
            let what = format!("`start_file` beside stream `{}`", reader.stream.name);
            Err((at, needs(&what, "only streams that write: the files begin empty for all")))
        }
        _ => Ok(()),
    }
}

/// Each axis with its value at a cell.
fn chosen<'a>(
    axes: &'a [AxisSource],
    at: &'a [usize],
) -> impl Iterator<Item = (&'a AxisSource, &'a Node)> {
    axes.iter().zip(at).filter_map(|(axis, &index)| Some((axis, axis.values.get(index)?)))
}
