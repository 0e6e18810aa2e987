//! What the cells ask for, from the suite's text as it was played.

use record::CellRecord;
use suite::model::{Cell, Data, Operation, Spread, Stream, Suite, SyncAtEnd, Work, WriteThrough};

use crate::view::View;

/// The suite of a run; empty where its text cannot be read back.
pub(super) struct Plan<'v> {
    suite: Option<&'v Suite>,
    files_bytes: u64,
}

impl<'v> Plan<'v> {
    pub(super) fn of(view: &'v View<'_>) -> Self {
        let target = &view.run.header.target;
        let files_bytes = target.size_bytes.saturating_mul(target.files.into());
        Self { suite: view.suite(), files_bytes }
    }

    /// What a cell of the grid asks for.
    pub(super) fn cell(&self, record: &CellRecord) -> Option<&Cell> {
        let suite = self.suite.as_ref()?;
        let cell = suite.cells().nth(record.index as usize)?;
        let same = cell.streams.len() == record.streams.len()
            && cell.streams.iter().zip(&record.streams).all(|(a, b)| a.name == b.name);
        same.then_some(cell)
    }

    /// Bytes that the cell's streams address: the longest region, or all files; 0 where they are
    /// about whole files, which have no blocks to be met again.
    ///
    /// * `of`: which streams are looked at, by their position.
    pub(super) fn working_set(&self, record: &CellRecord, of: &dyn Fn(usize) -> bool) -> u64 {
        let Some(cell) = self.cell(record) else { return self.files_bytes };
        let files = self.suite.as_ref().map_or(1, |suite| suite.files.count);
        let looked_at = cell.streams.iter().enumerate().filter(|(position, _)| of(*position));
        let regions = looked_at.map(|(_, stream)| {
            if stream.work != Work::Blocks {
                return 0;
            }
            let of_each = match stream.region.spread {
                Spread::FilePerWorker => stream.threads.min(files),
                Spread::Concatenated | Spread::Striped { .. } => 1,
            };
            stream.region.length.get().saturating_mul(of_each.into())
        });
        regions.max().unwrap_or(0)
    }

    /// Whether a file system that compresses can make what is written smaller, as far as is known.
    pub(super) fn is_compressible(&self) -> bool {
        let data = self.suite.as_ref().map(|suite| suite.files.data);
        !matches!(data, Some(Data::Incompressible | Data::SelfDescribing))
    }

    /// Whether all streams asked for direct I/O; `None` if nobody knows.
    pub(super) fn asks_direct(&self, record: &CellRecord) -> Option<bool> {
        Some(self.cell(record)?.streams.iter().all(|stream| stream.direct))
    }

    /// Whether memory can make a stream look better than it is: not where it only writes and waits
    /// until that is durable, which no memory answers, however small the file.
    pub(super) fn can_be_flattered(&self, record: &CellRecord, position: usize) -> bool {
        let stream = self.cell(record).and_then(|cell| cell.streams.get(position));
        stream.is_none_or(|stream| !only_commits(stream))
    }

    /// Whether a cell is about whole files alone, which have no blocks that a cache could hold.
    pub(super) fn only_whole_files(&self, record: &CellRecord) -> bool {
        self.cell(record).is_some_and(|cell| cell.streams.iter().all(|s| s.work != Work::Blocks))
    }

    /// Whether a cell reads blocks of the files through the page cache.
    pub(super) fn reads_buffered(&self, record: &CellRecord) -> bool {
        match self.cell(record) {
            None => record.streams.iter().any(|s| s.op == "read" || s.op == "mixed"),
            Some(cell) => cell.streams.iter().any(|stream| {
                let blocks = !stream.direct && stream.work == Work::Blocks;
                blocks && stream.mix.classes.iter().any(|class| class.op.reads())
            }),
        }
    }
}

/// Nothing but writes that are flushed: each, every so many, or all of them in the time.
fn only_commits(stream: &Stream) -> bool {
    let is_sync = |op| matches!(op, Operation::Fsync | Operation::Fdatasync);
    let ops = || stream.mix.classes.iter().map(|class| class.op);
    let flushed = stream.write_through != WriteThrough::No
        || ops().any(is_sync)
        || stream.sync.is_some_and(|s| s.every.is_some() || s.at_end == SyncAtEnd::Timed);
    stream.commits() || (flushed && ops().all(|op| op == Operation::Write || is_sync(op)))
}
