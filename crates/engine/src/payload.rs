//! What is in the buffers that writes write.

use std::sync::Arc;

use device::{FileIndex, Op};
use stats::Random;
use stats::random::{derive_seed, mix};
use suite::model::{Data, Stream};
use units::ByteOffset;

use crate::Visit;
use crate::source::Next;
use crate::verify::{Floors, Mismatch, Verifier};

/// Storage that compresses or deduplicates works on pieces of this size or more.
const PIECE: usize = 4096;

/// How buffers are filled once and stamped per write.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Nothing is done per write.
    Fixed(Fill),
    /// Random content, and in every piece a stamp that never comes again: no two pieces written
    /// are equal, at 16 bytes a piece instead of a whole buffer of fresh random bytes.
    Stamped { fill: Fill, sequence: u64 },
    /// Every sector describes itself.
    SelfDescribing { verifier: Arc<Verifier> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fill {
    /// As the device gave it.
    Untouched,
    Byte(u8),
    Random {
        seed: u64,
        share: f64,
    },
}

impl Payload {
    pub(crate) fn new(visit: &Visit) -> Self {
        if let Some(verifier) = &visit.verify {
            return Self::SelfDescribing { verifier: Arc::clone(verifier) };
        }
        if !visit.streams.iter().any(Stream::modifies) {
            return Self::Fixed(Fill::Untouched);
        }
        let seed = derive_seed(visit.seed, &[3]);
        match visit.data {
            Data::Zero => Self::Fixed(Fill::Byte(0)),
            Data::Pattern { byte } => Self::Fixed(Fill::Byte(byte)),
            Data::Incompressible | Data::SelfDescribing => {
                Self::Stamped { fill: Fill::Random { seed, share: 1.0 }, sequence: seed }
            }
            Data::Compressible { random_share } => {
                Self::Stamped { fill: Fill::Random { seed, share: random_share }, sequence: seed }
            }
        }
    }

    /// Fills a buffer before the clock runs; `label` tells buffers apart.
    pub(crate) fn fill(&self, buffer: &mut [u8], label: u64) {
        let fill = match self {
            Self::Fixed(fill) | Self::Stamped { fill, .. } => *fill,
            Self::SelfDescribing { .. } => Fill::Untouched,
        };
        match fill {
            Fill::Untouched => {}
            Fill::Byte(byte) => buffer.fill(byte),
            Fill::Random { seed, share } => {
                let mut random = Random::new(derive_seed(seed, &[label]));
                for piece in buffer.chunks_mut(PIECE) {
                    let random_bytes = (piece.len() as f64 * share).round() as usize;
                    let (noise, zeros) = piece.split_at_mut(random_bytes.min(piece.len()));
                    random.fill(noise);
                    zeros.fill(0);
                }
            }
        }
    }

    /// Makes the first `length` bytes of `buffer` what is to be written at that place.
    pub(crate) fn stamp(
        &mut self,
        buffer: &mut [u8],
        file: FileIndex,
        offset: ByteOffset,
        length: u32,
    ) {
        let Some(buffer) = buffer.get_mut(..length as usize) else { return };
        match self {
            Self::Fixed(_) => {}
            Self::Stamped { sequence, .. } => {
                for piece in buffer.chunks_mut(PIECE) {
                    *sequence = sequence.wrapping_add(1);
                    let stamp = mix(*sequence).to_le_bytes();
                    let place = (offset.get() ^ (u64::from(file.0) << 48)).to_le_bytes();
                    for (byte, value) in piece.iter_mut().zip(stamp.into_iter().chain(place)) {
                        *byte = value;
                    }
                }
            }
            Self::SelfDescribing { verifier } => {
                verifier.stamp(buffer, file, offset);
            }
        }
    }

    /// A request is about to be issued: what must at least be found when it is a read.
    pub(crate) fn note_issue(&self, floors: &mut Floors, next: Next) {
        let Self::SelfDescribing { verifier } = self else { return };
        match next.op {
            Op::Read => verifier.read_begins(floors, next.file, next.offset, next.length),
            Op::Write => verifier.write_begins(floors, next.file, next.offset, next.length),
            _ => {}
        }
    }

    /// A request came back: the mismatches found in it, and how many more there were.
    pub(crate) fn note_completion(
        &self,
        floors: &mut Floors,
        next: Next,
        whole: bool,
        buffer: &[u8],
    ) -> (Vec<Mismatch>, u64) {
        let Self::SelfDescribing { verifier } = self else { return (Vec::new(), 0) };
        match next.op {
            Op::Read if whole => {
                verifier.check(floors, next.file, next.offset, next.length, buffer)
            }
            Op::Write => {
                verifier.write_ends(floors, next.file, next.offset, next.length, whole);
                (Vec::new(), 0)
            }
            Op::Trim => {
                verifier.forget(next.file, next.offset, next.length);
                (Vec::new(), 0)
            }
            _ => (Vec::new(), 0),
        }
    }
}
