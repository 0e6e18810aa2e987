//! Settings that change nothing: fields of a stream that others leave no room for.
//!
//! Who sets such a field believes to have asked for something. What is set on top of a suite is
//! refused where it changes nothing; of what a suite's own text says there are doubts
//! ([`crate::doubts`]), since a text may be older than what is said here, or written for others.

use crate::emit;
use crate::error::Problem;
use crate::model::{Access, Backend, Operation, Pacing, Stream, SyncAtEnd};
use crate::node::{At, Node, Table, Value};
use crate::raw::{self, RawClass, RawStream};
use crate::resolve::{Layered, displaces};
use crate::source::{AxisSource, Override, Setting, SuiteSource};
use crate::stream::moves_range;
use units::Nanos;

/// Fields that may change nothing.
const FIELDS: [&str; 20] = [
    "access",
    "random_share",
    "operation",
    "read_share",
    "classes",
    "copy_to",
    "directory",
    "transactions",
    "direct",
    "choice",
    "block_size",
    "block_sizes",
    "align",
    "region",
    "spread",
    "sync",
    "queue_depth",
    "burst",
    "write_through",
    "commit_writes",
];

/// Of these, those that say how blocks are read and written.
const OF_BLOCKS: [&str; 10] = [
    "block_size",
    "block_sizes",
    "align",
    "region",
    "spread",
    "access",
    "random_share",
    "direct",
    "sync",
    "write_through",
];

/// Why a field changes nothing, and what to do instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    why: &'static str,
    instead: &'static str,
}

const fn because(why: &'static str, instead: &'static str) -> Option<Idle> {
    Some(Idle { why, instead })
}

/// The same of what is for databases alone, or for all else.
fn idle_of_database(field: &str, stream: &Stream) -> Option<Idle> {
    let of_blocks = OF_BLOCKS.contains(&field);
    match stream.transactions().is_some() {
        true if of_blocks => because("the database does its own I/O", "leave it out"),
        false if field == "transactions" => {
            because("there are none", "set `operation=transaction` too, or leave it out")
        }
        _ => None,
    }
}

/// Why a field changes nothing in a stream, whatever it is set to; `None` where it does, or may.
///
/// * `raw`: what the checked `stream` was made of.
pub(crate) fn idle(field: &str, raw: &RawStream, stream: &Stream) -> Option<Idle> {
    if let Some(idle) = idle_of_database(field, stream) {
        return Some(idle);
    }
    let replays = matches!(stream.access, Access::Replay { .. });
    let in_directory = stream.directory().is_some();
    let each_has = |own: fn(&RawClass) -> bool| {
        let mut moving = raw.classes.iter().flatten().filter(|class| moves(class)).peekable();
        !replays && moving.peek().is_some() && moving.all(own)
    };
    let never_copies = |op: Operation| !matches!(op, Operation::Copy | Operation::CopyRange);
    let mut ops = stream.mix.classes.iter().map(|class| class.op);
    let whole = "files are made, looked at and removed whole";
    match field {
        "operation" | "read_share" | "classes" | "choice" if replays => because(
            "a list of requests is replayed, and each says what it does",
            "change the list, or take another `access`",
        ),
        "block_size" | "block_sizes" if replays => because(
            "a list of requests is replayed, each as long as it says",
            "change the list, or take another `access`",
        ),
        "block_size" | "block_sizes" if in_directory => because(whole, "set `directory.file_size`"),
        "align" | "region" | "spread" | "access" | "random_share" if in_directory => {
            because(whole, "leave it out")
        }
        "block_size" | "block_sizes" if each_has(|class| class.block_size.is_some()) => because(
            "every class has a `block_size` of its own",
            "set `classes`, each with its `block_size`",
        ),
        "align" if each_has(|class| class.align.is_some()) => {
            because("every class has an `align` of its own", "set `classes`, each with its `align`")
        }
        "access" | "random_share" if each_has(|class| class.random_share.is_some()) => because(
            "every class has a `random_share` of its own",
            "set `classes`, each with its `random_share`",
        ),
        "choice" if stream.mix.classes.len() == 1 => because(
            "all requests are of one kind",
            "set `read_share` or `classes` for it to choose from",
        ),
        "queue_depth" if stream.backend == Backend::Mmap => because(
            "loads and stores through a mapping block: each worker has one in flight",
            "set `threads`, or take another `backend`",
        ),
        "copy_to" if ops.all(never_copies) => {
            because("nothing is copied", "set `operation=copy` too, or leave it out")
        }
        "directory" if !in_directory => because(
            "no file is made, looked at or removed as a whole",
            "set `operation` to `create`, `stat` or `delete` too, or leave it out",
        ),
        "burst" if matches!(stream.pacing, Pacing::Closed { think: Nanos::ZERO, .. }) => {
            because("there is no pause after it", "set `think` too, or leave it out")
        }
        "commit_writes" if !stream.commits() => {
            because("nothing is committed", "leave it out, or set `operation=commit` too")
        }
        "write_through" if !stream.modifies() => {
            because("nothing is written", "leave it out, or set `operation=write` too")
        }
        "sync" if !stream.modifies() && stream.sync.is_none_or(|s| s.at_end == SyncAtEnd::No) => {
            because(
                "nothing is written, so nothing is flushed",
                "leave it out, or set `operation=write` too",
            )
        }
        _ => None,
    }
}

/// Whether requests of a class have an offset and a length.
fn moves(class: &RawClass) -> bool {
    class.operation.is_none_or(moves_range)
}

/// Whether a field set so is as good as not set.
fn is_off(field: &str, node: &Node) -> bool {
    match (&node.value, field) {
        (Value::String(word), "choice") => word == "dice",
        (Value::String(word), "write_through") => word == "no",
        (Value::String(word), field) => raw::unset_word(field) == Some(word),
        (Value::Integer(n), "queue_depth" | "burst" | "commit_writes") => *n == 1,
        _ => false,
    }
}

/// What a field does in the cells looked at so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Does {
    #[default]
    NotMet,
    Nothing(Idle),
    Something,
}

/// What the fields of each stream of a phase do, over its cells.
#[derive(Clone, Debug)]
pub(crate) struct Effects {
    /// By stream of the phase; last the one before each visit.
    streams: Vec<[Does; FIELDS.len()]>,
}

impl Effects {
    /// * `streams`: how many the phase has.
    pub(crate) fn new(streams: usize) -> Self {
        Self { streams: vec![[Does::NotMet; FIELDS.len()]; streams + 1] }
    }

    /// Of a stream in one more cell.
    ///
    /// * `index`: of the stream in its phase; beyond its last for the one before each visit.
    pub(crate) fn note(&mut self, index: usize, raw: &RawStream, stream: &Stream) {
        let Some(met) = self.streams.get_mut(index) else { return };
        for (does, field) in met.iter_mut().zip(FIELDS).filter(|(d, _)| **d != Does::Something) {
            *does = idle(field, raw, stream).map_or(Does::Something, Does::Nothing);
        }
    }

    /// Why a field changes nothing in any of these streams, if so.
    fn why(&self, field: &str, streams: impl Iterator<Item = usize>) -> Option<Idle> {
        let place = FIELDS.iter().position(|known| *known == field)?;
        let met = streams.filter_map(|index| self.streams.get(index)?.get(place));
        let mut why = None;
        for does in met {
            match does {
                Does::Something => return None,
                Does::Nothing(idle) => why = why.or(Some(*idle)),
                Does::NotMet => {}
            }
        }
        why
    }
}

/// Which streams a field is for: all, the one before each visit among them, or one.
fn meant(phase: &Layered, stream: Option<usize>) -> std::ops::RangeInclusive<usize> {
    stream.map_or(0..=phase.streams.len(), |index| index..=index)
}

/// Something that was set and changes nothing.
pub(crate) type Vain = (At, Problem);

fn vain(at: At, path: &[String], why: Idle) -> Vain {
    let (why, hint) = (why.why.to_owned(), why.instead.to_owned());
    (at, Problem::NoEffect { field: path.join("."), why, hint })
}

/// What was set on top of the suite and changes nothing in any stream that it is for.
pub(crate) fn overrides(
    source: &SuiteSource,
    phases: &[Layered],
    effects: &[Effects],
) -> Vec<Vain> {
    let all = source.overrides.iter().enumerate();
    let stands = |(at, over): &(usize, &Override)| {
        let later = source.overrides.get(at + 1..).unwrap_or_default();
        !is_off_value(over) && !later.iter().any(|later| is_replaced(over, later))
    };
    let looked_at = all.filter(stands);
    looked_at.filter_map(|(_, over)| of_override(source, over, phases, effects)).collect()
}

/// Whether a later override leaves nothing of an earlier one.
fn is_replaced(over: &Override, later: &Override) -> bool {
    let covers = |wide: &Option<String>, narrow: &Option<String>| wide.is_none() || wide == narrow;
    over.path.starts_with(&later.path)
        && covers(&later.phase, &over.phase)
        && covers(&later.stream, &over.stream)
}

fn is_off_value(over: &Override) -> bool {
    match (&over.value, over.path.as_slice()) {
        (Setting::Value(node), [field]) => is_off(field, node),
        _ => false,
    }
}

fn of_override(
    source: &SuiteSource,
    over: &Override,
    phases: &[Layered],
    effects: &[Effects],
) -> Option<Vain> {
    let field = over.path.first()?;
    let mut found = None;
    for ((phase, effects), written) in phases.iter().zip(effects).zip(&source.phases) {
        if over.phase.as_ref().is_some_and(|name| *name != phase.name) {
            continue;
        }
        let index = |name: &String| phase.streams.iter().position(|s| s.name == *name);
        let stream = match &over.stream {
            None => None,
            Some(name) => match index(name) {
                Some(index) => Some(index),
                None => continue,
            },
        };
        // One value instead of an axis leaves fewer cells, which is something.
        let collapses = matches!(over.value, Setting::Value(_))
            && written.axes.iter().any(|axis| displaces(&over.path, &axis.path));
        match effects.why(field, meant(phase, stream)) {
            Some(why) if !collapses => found = found.or(Some(why)),
            _ => return None,
        }
    }
    found.map(|why| vain(over.at, &over.path, why))
}

/// Axes of a suite's text along which all cells ask for the same.
pub(crate) fn axes(phases: &[Layered], effects: &[Effects]) -> Vec<Vain> {
    let mut found = Vec::new();
    for (phase, effects) in phases.iter().zip(effects) {
        for axis in phase.axes.iter().filter(|axis| is_of_text(axis)) {
            let why = axis.path.first().and_then(|f| effects.why(f, meant(phase, axis.stream)));
            found.extend(why.map(|why| vain(axis.at, &axis.path, why)));
        }
    }
    found
}

fn is_of_text(axis: &AxisSource) -> bool {
    matches!(axis.at, At::Text(_)) && axis.values.len() > 1
}

/// Fields of phases and streams of a suite's text that change nothing. What `[defaults]` says is
/// for whom it fits, and a default that is spelled out deceives nobody.
pub(crate) fn fields(source: &SuiteSource, phases: &[Layered], effects: &[Effects]) -> Vec<Vain> {
    let mut found = Vec::new();
    for ((written, phase), effects) in source.phases.iter().zip(phases).zip(effects) {
        let mut look = |table: &Table, stream: Option<usize>| {
            for entry in &table.entries {
                let field = entry.key.as_str();
                if is_off(field, &entry.node) || emit::is_default(field, &entry.node) {
                    continue;
                }
                let why = effects.why(field, meant(phase, stream));
                let path = std::slice::from_ref(&entry.key);
                found.extend(why.map(|why| vain(entry.at, path, why)));
            }
        };
        look(&written.fields, None);
        for (index, stream) in written.streams.iter().enumerate() {
            look(&stream.fields, Some(index));
        }
    }
    found
}
