//! What lies on the device: superblocks and group headers, as rows of 64-bit little-endian words.
//!
//! ```text
//! superblock  magic, version, volume, logical blocks, segment blocks, segments, generation,
//!             CRC of the checkpoint, log position (sequence, chain; of each stream: segment,
//!             within, next), end
//! group       magic, volume, sequence, durable, chain, entries; of each stream: part and next
//! entry       logical block and run or stream, CRC and sum of the block
//! ```
//!
//! Both are one block long and end in a [`Checksum`] of all before it. A group has a part in each
//! stream that it has data for: the header, the same in all parts, and the data blocks of that stream
//! behind it, in the order of their entries. So one header holds the order of all writes, whichever
//! stream they are in, and a group counts only as a whole.

use crate::BLOCK_LEN;
use crate::checksum::{Checksum, Difference};
use crate::planted::{PlantedBug, planted};
use crate::shape::{
    GROUP_ENTRIES, LogStream, Logical, Physical, SEGMENT_BLOCKS, STREAMS, SegmentNumber, VolumeId,
    VolumeShape, Within,
};

/// Of the format. A volume of another version is refused.
pub(crate) const VERSION: u64 = 2;

const SUPERBLOCK_MAGIC: u64 = u64::from_le_bytes(*b"PlimSupr");
const GROUP_MAGIC: u64 = u64::from_le_bytes(*b"PlimGrup");

/// Where the checksum of a block starts.
const CHECKED: usize = BLOCK_LEN - 8;

/// Words of a group header before its entries.
const GROUP_WORDS: usize = 6 + STREAMS;

/// Words of a superblock before the streams' heads.
const SUPERBLOCK_WORDS: usize = 10;

/// The word of a superblock behind the heads.
const SUPERBLOCK_END: usize = SUPERBLOCK_WORDS + 3 * STREAMS;

/// What stands for a run in the entry of a write, less its stream. No run is as long.
const WRITE: u32 = u32::MAX - STREAMS as u32 + 1;

/// A block as words.
type Words = [u64; BLOCK_LEN / 8];

/// Where the log goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogPosition {
    /// Of each stream.
    pub heads: [Head; STREAMS],
    /// Number of the last group.
    pub sequence: u64,
    /// Hash of the last group's header; after recovery, of the volume and the generation.
    pub chain: u32,
}

/// Where a stream goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub segment: SegmentNumber,
    pub within: Within,
    /// The stream's segment after this one.
    pub next: SegmentNumber,
}

/// What a group has in one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupPart {
    /// Its header; the data are behind. [`Physical::NONE`] if there is no such part.
    pub block: Physical,
    /// The stream's segment after this one.
    pub next: SegmentNumber,
}

/// The root: which map is in force, and where the log goes on from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub volume: VolumeId,
    pub shape: VolumeShape,
    /// Counts checkpoints.
    pub generation: u64,
    pub map_crc: u32,
    pub position: LogPosition,
    /// Number of the last group that the map may know of; all up to it are durable. One that is not above
    /// the position's says nothing.
    pub end: u64,
}

/// What a group says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub volume: VolumeId,
    pub sequence: u64,
    /// The last group that was flushed before this one was written.
    pub durable: u64,
    pub chain: u32,
    pub parts: [GroupPart; STREAMS],
    pub entries: Vec<LogEntry>,
}

/// One change of the map, in the order in which it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogEntry {
    /// The next data block of the group in this stream.
    Write(Logical, Checksum, LogStream),
    /// So many blocks from here on read as zeroes.
    Trim(Logical, u32),
}

impl GroupHeader {
    /// The blocks that it writes in a stream, in the order of its data.
    pub fn writes(&self, stream: LogStream) -> impl Iterator<Item = (Logical, Checksum)> {
        self.entries.iter().filter_map(move |entry| match *entry {
            LogEntry::Write(at, sum, of) if of == stream => Some((at, sum)),
            _ => None,
        })
    }

    /// Its number of data blocks in a stream.
    pub fn data(&self, stream: LogStream) -> u32 {
        self.writes(stream).count() as u32
    }

    /// The parts that there are.
    pub fn parts(&self) -> impl Iterator<Item = (LogStream, GroupPart)> {
        let parts = LogStream::all().zip(self.parts);
        parts.filter(|(_, part)| part.block != Physical::NONE)
    }

    /// Whether it may stand in a volume: its parts end in their segments, all data have a part, and
    /// it names blocks and segments that there are.
    pub fn fits(&self, shape: VolumeShape) -> bool {
        let end = |entry: &LogEntry| match *entry {
            LogEntry::Write(at, ..) => u64::from(at.0) + 1,
            LogEntry::Trim(at, run) => u64::from(at.0) + u64::from(run),
        };
        LogStream::all().zip(self.parts).all(|(stream, part)| match self.data(stream) {
            0 if part.block == Physical::NONE => true,
            data => data < shape.left(part.block) && part.next.0 < shape.segments,
        }) && self.entries.iter().all(|entry| end(entry) <= u64::from(shape.logical))
    }

    /// Writes it into `block`; returns the hash for the chain.
    pub fn encode(&self, block: &mut [u8]) -> u32 {
        let mut words = [0; BLOCK_LEN / 8];
        let head = [
            GROUP_MAGIC,
            self.volume.0,
            self.sequence,
            self.durable,
            u64::from(self.chain),
            self.entries.len() as u64,
        ];
        words[..head.len()].copy_from_slice(&head);
        for (word, part) in words[head.len()..].iter_mut().zip(self.parts) {
            *word = joined(part.block.0, part.next.0);
        }
        for (pair, entry) in words[GROUP_WORDS..].as_chunks_mut().0.iter_mut().zip(&self.entries) {
            *pair = match *entry {
                LogEntry::Write(at, sum, stream) => {
                    [joined(at.0, WRITE + u32::from(stream.0)), joined(sum.crc, sum.sum)]
                }
                LogEntry::Trim(at, run) => [joined(at.0, run), 0],
            };
        }
        seal(&words, checked(true), block).crc
    }

    /// Whether a block begins like a header of the volume: for a look at many blocks.
    pub fn seems_in(block: &[u8], volume: VolumeId) -> bool {
        block[..8] == GROUP_MAGIC.to_le_bytes() && block[8..16] == volume.0.to_le_bytes()
    }

    /// The group whose header is in `block`, with the hash for the chain; `None` if there is none
    /// of this volume. One flipped bit is mended.
    pub fn decode(block: &mut [u8], volume: VolumeId) -> Option<(Self, u32)> {
        let sum = unseal(block, checked(true))?;
        let words = words(block);
        let count = words[5] as usize;
        if words[0] != GROUP_MAGIC || words[1] != volume.0 || count > GROUP_ENTRIES {
            return None;
        }
        let entry = |&[place, sums]: &[u64; 2]| match split(place) {
            (at, run) if run < WRITE => LogEntry::Trim(Logical(at), run),
            (at, stream) => {
                let (crc, sum) = split(sums);
                let stream = LogStream((stream - WRITE) as u8);
                LogEntry::Write(Logical(at), Checksum { crc, sum }, stream)
            }
        };
        let part = |stream: usize| {
            let (block, next) = split(words[6 + stream]);
            GroupPart { block: Physical(block), next: SegmentNumber(next) }
        };
        let header = Self {
            volume,
            sequence: words[2],
            durable: words[3],
            chain: words[4] as u32,
            parts: std::array::from_fn(part),
            entries: words[GROUP_WORDS..].as_chunks().0[..count].iter().map(entry).collect(),
        };
        Some((header, sum.crc))
    }
}

impl Superblock {
    pub fn encode(&self, block: &mut [u8]) {
        let mut words = [0; BLOCK_LEN / 8];
        let position = self.position;
        let head = [
            SUPERBLOCK_MAGIC,
            VERSION,
            self.volume.0,
            u64::from(self.shape.logical),
            u64::from(self.shape.segment),
            u64::from(self.shape.segments),
            self.generation,
            u64::from(self.map_crc),
            position.sequence,
            u64::from(position.chain),
        ];
        words[..head.len()].copy_from_slice(&head);
        let heads = words[SUPERBLOCK_WORDS..].as_chunks_mut().0.iter_mut();
        for (three, head) in heads.zip(position.heads) {
            *three = [head.segment.0, head.within.0, head.next.0].map(u64::from);
        }
        words[SUPERBLOCK_END] = self.end;
        seal(&words, CHECKED, block);
    }

    /// The superblock in `block`: `None` if there is none, its version if that is not ours.
    pub fn decode(block: &mut [u8]) -> Option<Result<Self, u64>> {
        unseal(block, CHECKED)?;
        let words = words(block);
        if words[0] != SUPERBLOCK_MAGIC {
            return None;
        }
        if words[1] != VERSION {
            return Some(Err(words[1]));
        }
        let shape = VolumeShape {
            logical: words[3] as u32,
            segment: words[4] as u32,
            segments: words[5] as u32,
        };
        let head = |stream: usize| {
            let [segment, within, next] = words[SUPERBLOCK_WORDS..].as_chunks().0[stream];
            let segments = [segment, next].map(|word| SegmentNumber(word as u32));
            Head { segment: segments[0], within: Within(within as u32), next: segments[1] }
        };
        let heads = std::array::from_fn(head);
        let position = LogPosition { heads, sequence: words[8], chain: words[9] as u32 };
        let is_within = heads.iter().all(|head| {
            head.segment.max(head.next).0 < shape.segments && head.within.0 <= shape.segment
        });
        if !SEGMENT_BLOCKS.contains(&shape.segment) || !is_within {
            return None;
        }
        let (volume, generation, map_crc) = (VolumeId(words[2]), words[6], words[7] as u32);
        let end = words[SUPERBLOCK_END];
        Some(Ok(Self { volume, shape, generation, map_crc, position, end }))
    }
}

/// How many bytes of a header its checksum covers.
fn checked(is_header: bool) -> usize {
    if is_header && planted(PlantedBug::ShortHeaderCheck) { GROUP_WORDS * 8 } else { CHECKED }
}

fn joined(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn split(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

fn words(block: &[u8]) -> Words {
    let mut words = [0; BLOCK_LEN / 8];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

fn seal(words: &Words, checked: usize, block: &mut [u8]) -> Checksum {
    for (bytes, word) in block.as_chunks_mut().0.iter_mut().zip(words) {
        *bytes = word.to_le_bytes();
    }
    let sum = Checksum::of(&block[..checked]);
    block[CHECKED..].copy_from_slice(&joined(sum.crc, sum.sum).to_le_bytes());
    sum
}

/// The checksum of a block that is as it was sealed, but for at most one bit, which is mended.
fn unseal(block: &mut [u8], checked: usize) -> Option<Checksum> {
    let (bytes, stored) = block.split_at_mut(CHECKED);
    let (crc, sum) = split(u64::from_le_bytes(*stored.as_chunks().0.first()?));
    let bytes = &mut bytes[..checked];
    match (Checksum { crc, sum }).difference(bytes) {
        Difference::None => {}
        Difference::Other => return None,
        _ if planted(PlantedBug::NoMending) => return None,
        Difference::InChecksum => {}
        Difference::Bit(bit) => bytes[bit / 8] ^= 1 << (bit % 8),
    }
    Some(Checksum::of(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::random::Random;

    fn header() -> GroupHeader {
        let sum = Checksum { crc: 7, sum: 9 };
        let mut entries = vec![
            LogEntry::Write(Logical(3), sum, LogStream(1)),
            LogEntry::Trim(Logical(8), 70_000),
        ];
        entries.resize(GROUP_ENTRIES, LogEntry::Write(Logical(u32::MAX), sum, LogStream::OLD));
        let part = |n| GroupPart { block: Physical(n + 40), next: SegmentNumber(n) };
        let parts = [0, 1, 2, 3].map(part);
        GroupHeader { volume: VolumeId(5), sequence: 11, durable: 10, chain: 12, parts, entries }
    }

    fn superblock() -> Superblock {
        Superblock {
            volume: VolumeId(1),
            shape: VolumeShape { logical: 2, segment: 8, segments: 4 },
            generation: 5,
            map_crc: 6,
            position: LogPosition {
                heads: [1, 2, 3, 0].map(|n| Head {
                    segment: SegmentNumber(n),
                    within: Within(n + 4),
                    next: SegmentNumber(3 - n),
                }),
                sequence: 10,
                chain: 11,
            },
            end: 12,
        }
    }

    #[test]
    fn what_is_written_is_read_whichever_bit_flips() {
        let mut block = [0; BLOCK_LEN];
        let chain = header().encode(&mut block);
        for bit in (0..BLOCK_LEN * 8).step_by(11) {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(GroupHeader::decode(&mut flipped, VolumeId(5)), Some((header(), chain)));
        }
        superblock().encode(&mut block);
        for bit in (0..BLOCK_LEN * 8).step_by(11) {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Superblock::decode(&mut flipped), Some(Ok(superblock())));
        }
    }

    #[test]
    fn strangers_are_no_groups() {
        let mut block = [0; BLOCK_LEN];
        assert_eq!(GroupHeader::decode(&mut block, VolumeId(0)), None);
        header().encode(&mut block);
        assert_eq!(GroupHeader::decode(&mut block, VolumeId(6)), None);
        assert_eq!(Superblock::decode(&mut block), None);
        superblock().encode(&mut block);
        let mut words = words(&block);
        words[1] = 1;
        seal(&words, CHECKED, &mut block);
        assert_eq!(Superblock::decode(&mut block), Some(Err(1)));
        let mut random = Random::new(3);
        for _ in 0..1000 {
            random.fill(&mut block);
            assert_eq!(GroupHeader::decode(&mut block, VolumeId(5)), None);
        }
    }
}
