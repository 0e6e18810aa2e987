//! What the cells ask for, from the suite's text as it was played.

use record::{CellRecord, Run};
use suite::model::{Cell, Spread, Suite};

/// The suite of a run; empty where its text cannot be read back.
pub(super) struct Plan {
    suite: Option<Suite>,
    files_bytes: u64,
}

impl Plan {
    pub(super) fn of(run: &Run) -> Self {
        let header = &run.header;
        let source = suite::parse(&header.suite_text, "the run's suite").ok();
        let context = suite::CheckContext::default();
        let suite = source.and_then(|source| suite::check(&source, &context).ok());
        let files_bytes = header.target.size_bytes.saturating_mul(header.target.files.into());
        Self { suite, files_bytes }
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
    pub(super) fn working_set(&self, record: &CellRecord) -> u64 {
        let Some(cell) = self.cell(record) else { return self.files_bytes };
        let files = self.suite.as_ref().map_or(1, |suite| suite.files.count);
        let regions = cell.streams.iter().map(|stream| {
            if stream.directory.is_some() {
                return 0;
            }
            let of_each = match stream.region.spread {
                Spread::FilePerWorker => stream.threads.min(files),
                Spread::Concatenated | Spread::Striped { .. } => 1,
            };
            stream.region.length.get().saturating_mul(of_each.into())
        });
        regions.max().unwrap_or(self.files_bytes)
    }

    /// Whether all streams asked for direct I/O; `None` if nobody knows.
    pub(super) fn asks_direct(&self, record: &CellRecord) -> Option<bool> {
        Some(self.cell(record)?.streams.iter().all(|stream| stream.direct))
    }
}
