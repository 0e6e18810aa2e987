//! Writing the files before the first phase: the fill, and preconditioning. Played by the same
//! engine as everything else and stored as visits of cells of their own.

use record::CellRecord;
use suite::model::{
    Access, Backend, Cell, Choice, Class, Last, Mix, Operation, Pacing, Region, Spread, Stop,
    Stream, Suite, SyncAtEnd, SyncPolicy, Until, WriteThrough,
};
use units::{Bytes, Nanos};

use crate::prepare::stream_plan;

/// Requests of the fill: large enough for any device's full bandwidth.
const FILL_BLOCK: u64 = 1 << 20;
const FILL_DEPTH: u32 = 8;

/// One pass over the files.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    pub phase: String,
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
        Cell { coordinates: Vec::new(), streams: vec![self.stream.clone()] }
    }

    pub(crate) fn describe(&self) -> String {
        let how = if self.stream.access == Access::Uniform { "at random" } else { "in order" };
        format!("Writes {} {how} before the first visit ({}).", self.volume, self.phase)
    }
}

/// The fill and the preconditioning that the suite asks for.
pub(crate) fn passes(suite: &Suite) -> Vec<Pass> {
    let total = suite.files.total();
    let direct = suite.cells().flat_map(|c| &c.streams).any(|s| s.direct);
    let mut passes = Vec::new();
    if suite.files.fill {
        let block = block_for(suite.files.size);
        passes.push(Pass {
            phase: "fill".to_owned(),
            stream: stream(suite, block, Access::Sequential { shared: true }, direct, total),
            volume: total,
        });
    }
    for (index, wish) in suite.files.precondition.iter().enumerate() {
        let access =
            if wish.random { Access::Uniform } else { Access::Sequential { shared: true } };
        let volume = Bytes::new((total.get() as f64 * wish.volume) as u64);
        passes.push(Pass {
            phase: format!("precondition-{}", index + 1),
            stream: stream(suite, wish.block_size, access, direct, volume),
            volume,
        });
    }
    passes
}

/// The largest power of two up to 1 MiB that divides the file's size.
fn block_for(size: Bytes) -> Bytes {
    Bytes::new((1u64 << size.get().trailing_zeros().min(63)).min(FILL_BLOCK))
}

fn stream(suite: &Suite, block: Bytes, access: Access, direct: bool, volume: Bytes) -> Stream {
    Stream {
        name: "write".to_owned(),
        access,
        mix: Mix {
            classes: vec![Class {
                weight: 1.0,
                op: Operation::Write,
                block_size: block,
                line: None,
            }],
            choice: Choice::Dice,
        },
        align: block,
        copy_to: None,
        region: Region {
            start: Bytes::ZERO,
            length: suite.files.total(),
            spread: Spread::Concatenated,
        },
        sync: Some(SyncPolicy {
            op: Operation::Fsync,
            every: None,
            shared: false,
            each_file: true,
            at_end: SyncAtEnd::Timed,
        }),
        threads: 1,
        queue_depth: FILL_DEPTH,
        pacing: Pacing::Closed { think: Nanos::ZERO, burst: 1 },
        duty: None,
        // Odd sizes have a tail that direct I/O cannot reach.
        direct: direct && block.get() >= 4096,
        write_through: WriteThrough::No,
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
    }
}
