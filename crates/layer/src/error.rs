//! Why a volume did not do what it was asked.

use units::{ByteOffset, Bytes};

use crate::device::BlockError;

/// Why a volume did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The device failed. After a failed write or flush the volume only reads.
    #[error(transparent)]
    Device(#[from] BlockError),
    /// An earlier write or flush failed, so it is unknown what is durable.
    #[error("the volume is read-only since a {} of its device failed", .cause.action)]
    ReadOnly {
        /// That failure.
        #[source]
        cause: BlockError,
    },
    /// A request is not made of whole blocks.
    #[error("request of {length} at {at} is not made of whole blocks of {}", crate::BLOCK)]
    Unaligned {
        /// Its position.
        at: ByteOffset,
        /// Its length.
        length: Bytes,
    },
    /// A request reaches beyond the end.
    #[error("request of {length} at {at} reaches beyond the volume's {size}")]
    OutOfRange {
        /// Its position.
        at: ByteOffset,
        /// Its length.
        length: Bytes,
        /// The volume's.
        size: Bytes,
    },
    /// A volume cannot be created like this.
    #[error("{what} is {seen}, wanted {wanted}")]
    Shape {
        /// What does not fit.
        what: &'static str,
        /// As it is.
        seen: Bytes,
        /// As it should be.
        wanted: String,
    },
    /// Neither superblock is valid.
    #[error("no volume on the device: neither superblock is valid")]
    NoVolume,
    /// Written by another version.
    #[error("the volume has format {seen}, wanted {wanted}")]
    Version {
        /// On the device.
        seen: u64,
        /// Of this program.
        wanted: u64,
    },
    /// The device became smaller.
    #[error("the device has {seen}, the volume on it needs {wanted}")]
    DeviceTooSmall {
        /// Its length.
        seen: Bytes,
        /// The length that the superblock implies.
        wanted: Bytes,
    },
    /// The map on the device is not what was written.
    #[error("checkpoint {generation} is damaged: its checksum does not match")]
    CheckpointDamaged {
        /// Its number.
        generation: u64,
    },
    /// A group is missing that is known to have been flushed.
    #[error("the log is damaged: group {sequence} was flushed and cannot be read")]
    LogDamaged {
        /// The group's number.
        sequence: u64,
    },
    /// A block's data are not what was written.
    #[error("block at {at} is damaged: its checksum does not match")]
    BlockDamaged {
        /// Its logical position.
        at: ByteOffset,
    },
    /// The collector finds nothing to free. Only damaged segments bring this about.
    #[error("no free segment, and none can be freed")]
    NoRoom,
}
