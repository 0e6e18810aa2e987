//! Writing the files before the first phase and before a phase: the fill, and preconditioning.
//! Played by the same engine as everything else and stored as visits of cells of their own.

use record::CellRecord;
use suite::model::{
    Access, Backend, Cell, Choice, Class, Last, Mix, Operation, Pacing, Precondition, Region,
    Spread, StartFile, Stop, Stream, Suite, SyncAtEnd, SyncPolicy, Until, WriteThrough,
};
use units::{Bytes, Nanos};

use crate::prepare::{SIZE_UNIT, stream_plan};

/// Requests of the fill: large enough for any device's full bandwidth.
const FILL_BLOCK: u64 = 1 << 20;
const FILL_DEPTH: u32 = 8;
/// Discards: of so much at once that a whole drive is not many of them.
const TRIM_BLOCK: u64 = 64 << 20;

/// The phase that a fill is stored as.
const FILL: &str = "fill";

/// One pass over the files.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub phase: String,
    /// The phase that it comes right before, as an index; `None` before all.
    pub before: Option<usize>,
    pub stream: Stream,
    pub volume: Bytes,
}

impl Pass {
    pub(crate) fn cell(&self, index: u32) -> CellRecord {
        CellRecord {
            index,
            phase: self.phase.clone(),
            coordinates: Vec::new(),
            streams: vec![stream_plan(&self.stream)],
            impossible: None,
        }
    }

    /// As the engine wants it.
    pub(crate) fn as_cell(&self) -> Cell {
        Cell { coordinates: Vec::new(), streams: vec![self.stream.clone()], before: None }
    }

    /// Whether it gives back what is there instead of writing.
    pub(crate) fn trims(&self) -> bool {
        self.stream.mix.classes.iter().any(|class| class.op == Operation::Trim)
    }

    /// Whether it only makes data that is missing.
    pub(crate) fn is_fill(&self) -> bool {
        self.phase == FILL
    }

    /// In a word, for who is told that it is left out.
    pub(crate) fn name(&self) -> String {
        let how = match (self.trims(), &self.stream.access) {
            (true, _) => "trim",
            (false, Access::Uniform) => "random writes",
            (false, _) => "writes in order",
        };
        format!("{}: {how}", self.phase)
    }

    pub(crate) fn describe(&self, suite: &Suite) -> String {
        let when = match self.before.and_then(|phase| suite.phases.get(phase)) {
            Some(phase) => format!("before the first visit of phase {}", phase.name),
            None => "before the first visit".to_owned(),
        };
        if self.trims() {
            return format!("Gives all {} back (trim) {when} ({}).", self.volume, self.phase);
        }
        let how = if self.stream.access == Access::Uniform { "at random" } else { "in order" };
        format!("Writes {} {how} {when} ({}).", self.volume, self.phase)
    }
}

/// The fill and the preconditioning that the suite asks for, in the order in which they come.
pub(crate) fn passes(suite: &Suite) -> Vec<Pass> {
    let mut passes = Vec::new();
    if suite.files.fill {
        let (size, volume) = (suite.files.size, suite.files.total());
        // Of one file the last request may be as long as what is left; several take whole blocks.
        let odd = suite.files.count == 1 && !size.is_multiple_of(Bytes::new(SIZE_UNIT));
        let block = if odd { size.min(Bytes::new(FILL_BLOCK)) } else { block_for(size) };
        let mut stream = writes(suite, block, Access::Sequential { shared: true }, volume);
        if odd {
            (stream.stop.last, stream.direct) = (Last::Short, false);
        }
        passes.push(Pass { phase: FILL.to_owned(), before: None, stream, volume });
    }
    for (wish, number) in suite.files.precondition.iter().zip(1..) {
        passes.push(pass(suite, wish, format!("precondition-{number}"), None));
    }
    for (index, phase) in suite.phases.iter().enumerate() {
        for (wish, number) in phase.precondition.iter().zip(1..) {
            let name = format!("precondition-{}-{number}", phase.name);
            passes.push(pass(suite, wish, name, Some(index)));
        }
    }
    passes
}

fn pass(suite: &Suite, wish: &Precondition, phase: String, before: Option<usize>) -> Pass {
    let total = suite.files.total();
    match *wish {
        Precondition::Write { random, block_size, volume } => {
            let volume = Bytes::new((total.get() as f64 * volume) as u64);
            let access = match random {
                true => Access::Uniform,
                false => Access::Sequential { shared: true },
            };
            let stream = writes(suite, block_size, access, volume);
            Pass { phase, before, stream, volume }
        }
        Precondition::Trim => Pass { phase, before, stream: trims(suite), volume: total },
    }
}

/// The largest power of two up to 1 MiB that divides the file's size.
fn block_for(size: Bytes) -> Bytes {
    Bytes::new((1u64 << size.get().trailing_zeros().min(63)).min(FILL_BLOCK))
}

fn writes(suite: &Suite, block: Bytes, access: Access, volume: Bytes) -> Stream {
    let direct = suite.cells().flat_map(|cell| &cell.streams).any(|stream| stream.direct);
    Stream {
        access,
        sync: Some(SyncPolicy {
            op: Operation::Fsync,
            every: None,
            shared: false,
            each_file: true,
            at_end: SyncAtEnd::Timed,
        }),
        queue_depth: FILL_DEPTH,
        // Odd sizes have a tail that direct I/O cannot reach.
        direct: direct && block.get() >= 4096,
        ..over_all(suite, Operation::Write, block, volume)
    }
}

/// Every block once, one discard after the other.
fn trims(suite: &Suite) -> Stream {
    let size = suite.files.size;
    let mut stream = match suite.files.count {
        // The last one ends with the file.
        1 => over_all(suite, Operation::Trim, size.min(Bytes::new(TRIM_BLOCK)), size),
        _ => over_all(suite, Operation::Trim, block_for(size), suite.files.total()),
    };
    if suite.files.count == 1 {
        stream.stop.last = Last::Short;
    }
    stream
}

fn over_all(suite: &Suite, op: Operation, block: Bytes, volume: Bytes) -> Stream {
    Stream {
        name: op.name().to_owned(),
        access: Access::Sequential { shared: false },
        mix: Mix {
            classes: vec![Class { weight: 1.0, op, block_size: block, line: None }],
            choice: Choice::Dice,
        },
        align: block,
        copy_to: None,
        work: suite::model::Work::Blocks,
        region: Region {
            start: Bytes::ZERO,
            length: suite.files.total(),
            spread: Spread::Concatenated,
        },
        sync: None,
        threads: 1,
        queue_depth: 1,
        pacing: Pacing::Closed { think: Nanos::ZERO, burst: 1 },
        duty: None,
        direct: false,
        write_through: WriteThrough::No,
        commit_writes: 1,
        backend: Backend::Auto,
        stop: Stop {
            ramp: Nanos::ZERO,
            time: None,
            bytes: Some(volume),
            operations: None,
            until: Until::All,
            last: Last::Whole,
            extend: None,
        },
        start_file: StartFile::Keep,
    }
}
