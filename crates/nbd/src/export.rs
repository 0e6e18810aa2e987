//! What is served.

use units::{ByteOffset, Bytes};

use crate::error::ExportError;

/// A device that clients read and write.
///
/// Calls come from each connection's thread: what they share, the export locks itself. Requests lie
/// within [`Self::size`], have a length above 0 and are multiples of [`Self::block`]. Those of reads
/// and writes are at most [`MAX_REQUEST`](crate::MAX_REQUEST).
pub trait Export {
    /// The whole length. Asked once for each connection.
    fn size(&self) -> Bytes;

    /// What requests are multiples of: a power of 2, at most 64 KiB. Clients that do not care are
    /// answered with `EINVAL`.
    fn block(&self) -> Bytes {
        Bytes::new(1)
    }

    /// Whether a flush on one connection covers completed writes of all, so that a client may use
    /// several.
    fn can_multi_conn(&self) -> bool {
        false
    }

    /// Fills `into` from the position `at`. What it leaves unfilled has no meaning, but the client
    /// gets it.
    fn read(&self, at: ByteOffset, into: &mut [u8]) -> Result<(), ExportError>;

    /// Writes `from` to the position `at`. It need not be durable before a later flush.
    fn write(&self, at: ByteOffset, from: &[u8]) -> Result<(), ExportError>;

    /// Makes all completed writes, trims and zeroes durable.
    fn flush(&self) -> Result<(), ExportError>;

    /// The contents are not needed. It may do nothing.
    fn trim(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError>;

    /// The contents are to read as zeroes. Whether room is kept for them is its own choice, even where
    /// the client asks for it.
    fn zero(&self, at: ByteOffset, length: Bytes) -> Result<(), ExportError>;
}
