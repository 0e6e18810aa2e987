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
    /// Reads several parts, which a device may do together. After an error nothing is known of any.
    fn read_each(&mut self, parts: &mut [ReadPart<'_>]) -> Result<(), BlockError> {
        parts.iter_mut().try_for_each(|part| self.read(part.at, part.into))
    }
    /// Writes `from` to the position `at`. An error may be reported by a later
    /// write or flush.
    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError>;
    /// Makes all completed writes durable.
    fn flush(&mut self) -> Result<(), BlockError>;
    /// Tells the device that the contents are not needed. One that cannot trim does nothing.
    fn trim(&mut self, at: ByteOffset, length: Bytes) -> Result<(), BlockError>;
}

/// A part of a read.
#[derive(Debug)]
pub struct ReadPart<'a> {
    /// From where.
    pub at: ByteOffset,
    /// To where.
    pub into: &'a mut [u8],
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

    fn read_each(&mut self, parts: &mut [ReadPart<'_>]) -> Result<(), BlockError> {
        (**self).read_each(parts)
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
