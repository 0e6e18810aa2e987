//! What a volume lives on.

use std::fmt;

use units::{ByteOffset, Bytes};

/// A device that reads and writes blocks, one request at a time.
///
/// Requests of a volume begin and end on multiples of 4 KiB. A write is safe only when a later
/// flush has returned: until then any part of it may be lost, in any order.
pub trait BlockDevice {
    /// The whole length.
    fn size(&self) -> Bytes;
    /// Fills `into` from the position `at`.
    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError>;
    /// Writes `from` to the position `at`.
    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError>;
    /// Makes all completed writes durable.
    fn flush(&mut self) -> Result<(), BlockError>;
    /// Tells the device that the contents are not needed. One that cannot trim does nothing.
    fn trim(&mut self, at: ByteOffset, length: Bytes) -> Result<(), BlockError>;
}

/// What a device was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockAction {
    /// [`BlockDevice::read`].
    Read,
    /// [`BlockDevice::write`].
    Write,
    /// [`BlockDevice::flush`].
    Flush,
    /// [`BlockDevice::trim`].
    Trim,
}

impl fmt::Display for BlockAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Trim => "trim",
        })
    }
}

/// A device did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{action} of the device at {at} failed: {reason}")]
pub struct BlockError {
    /// What it was asked.
    pub action: BlockAction,
    /// Where; 0 for a flush.
    pub at: ByteOffset,
    /// In the device's words.
    pub reason: String,
}

impl<D: BlockDevice + ?Sized> BlockDevice for &mut D {
    fn size(&self) -> Bytes {
        (**self).size()
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        (**self).read(at, into)
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        (**self).write(at, from)
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        (**self).flush()
    }

    fn trim(&mut self, at: ByteOffset, length: Bytes) -> Result<(), BlockError> {
        (**self).trim(at, length)
    }
}
