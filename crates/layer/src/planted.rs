//! Bugs that the tests plant. In other builds no bug is ever planted, and the questions vanish.

/// A way to lose data. Each is caught by the crash proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlantedBug {
    /// The superblock is written while the map is not durable.
    NoFlushBeforeSuperblock,
    /// `flush` writes the group and does not flush the device.
    FlushWithoutDevice,
    /// `flush` flushes the device and leaves the open group in memory.
    FlushWithoutGroup,
    /// A victim is free as soon as its blocks are copied.
    FreeBeforeFlush,
    /// A segment of the log since the checkpoint is free once nothing in it is live.
    FreeBeforeCheckpoint,
    /// Recovery does not compare the hash of the previous group.
    NoChain,
    /// Recovery keeps the chain of the log that it cut off.
    SameChainAfterRecovery,
    /// A group says that it was flushed before it was.
    DurableTooEarly,
    /// Writes leave no room for the collector.
    NoReserve,
    /// Recovery accepts a group whose data are torn.
    NoDataCheck,
    /// The checksum of a header does not cover its entries.
    ShortHeaderCheck,
    /// Recovery goes on behind a hole.
    AcceptHole,
    /// Recovery takes the map of the checkpoint before.
    StaleCheckpoint,
    /// A checkpoint frees segments before its superblock is written.
    FreeBeforeSuperblock,
    /// A checkpoint covers all groups before its end, not only those before its position.
    EndCovered,
    /// A superblock has the position of the end, with a map that is older.
    PositionOfEnd,
    /// The superblock does not say up to where the map is newer than its position.
    EndForgotten,
    /// Only the first chunk of a map is written.
    ChunkSkipped,
    /// A checkpoint is finished while the group that the map is ahead by is not written.
    ChunkBeforeGroup,
    /// A checkpoint frees segments when it begins.
    FreeBeforeChunks,
    /// Checkpoints do not alternate.
    OneArea,
    /// Only one superblock is written.
    OneSuperblock,
    /// A superblock that lags behind is not repaired when the volume is opened.
    LaggingSuperblock,
    /// A copy moves the map although the block was written since.
    CopyOfDead,
    /// A trim is not in the log.
    TrimInMemory,
    /// Reads do not compare checksums.
    NoReadCheck,
    /// A failed flush is forgotten.
    FailureForgotten,
    /// A flipped bit of a header looks like a torn write.
    NoMending,
    /// Recovery looks for groups in the first stream only.
    OneStream,
    /// Recovery goes on in the first part of a group only.
    OnePartGoesOn,
    /// Recovery does not check the data of a group in all its parts.
    OnePartChecked,
    /// Recovery accepts a group with a part whose header is torn.
    PartWithoutHeader,
    /// Recovery applies the entries of a group stream by stream, so a copy hides a newer write.
    StreamByStream,
    /// Damage is looked for in the first stream only.
    DamageInOneStream,
    /// The next segments of the streams are not set aside when the volume is opened.
    NextForgotten,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Option<PlantedBug>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in this thread, or none.
#[cfg(test)]
pub(crate) fn plant(bug: Option<PlantedBug>) {
    PLANTED.set(bug);
}

#[cfg(test)]
pub(crate) fn planted(bug: PlantedBug) -> bool {
    PLANTED.get() == Some(bug)
}

#[cfg(not(test))]
pub(crate) const fn planted(_: PlantedBug) -> bool {
    false
}
