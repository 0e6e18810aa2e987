//! What a volume remembers of a checkpoint that it writes little by little.

use crate::format::LogPosition;

/// A checkpoint that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Underway {
    /// Where it began.
    pub position: LogPosition,
    /// Segments that the log had entered by then, since the checkpoint in force.
    pub entered: u32,
    /// The first entry of the map that is not written.
    pub next: usize,
    pub crc: crc32fast::Hasher,
}
