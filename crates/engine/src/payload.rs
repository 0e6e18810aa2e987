//! What is in the buffers that writes write.

use std::sync::Arc;

use device::Op;
use stats::Random;
use stats::random::{derive_seed, mix};
use suite::model::{Access, Data, Stream};

use crate::source::Next;
use crate::verify::{Floors, Mismatch, Verifier};
use crate::{Visit, WorkerId};

/// Storage that compresses or deduplicates works on pieces of this size or more.
const PIECE: usize = 4096;
/// Random bytes that pieces are made from.
const POOL: usize = 16 * PIECE;
/// Requests up to this long get fresh bytes all over. Of longer ones only a stamp in each piece
/// changes: a compressor sees one of them at most, and fresh bytes would take time that the next
/// request is charged for.
const FRESH_MAX: usize = 128 << 10;

/// How buffers are filled once and made up per write.
#[derive(Debug)]
pub(crate) enum Payload {
    /// Always the same. `overwritten`: reads may come between two writes and leave their data in
    /// the buffer.
    Fixed { fill: Fill, overwritten: bool },
    /// Random content that never comes again: every piece is a part of the pool under a key of
    /// its own, so that no two pieces have anything in common that a compressor finds. One pass
    /// over the buffer, many times faster than fresh random numbers.
    Stamped { fill: Fill, sequence: u64, pool: Box<[u8]>, share: f64, overwritten: bool },
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
    /// `first`: any worker of the drive it is for, so that drives do not write alike.
    pub(crate) fn new(visit: &Visit, first: Option<WorkerId>) -> Self {
        if let Some(verifier) = &visit.verify {
            return Self::SelfDescribing { verifier: Arc::clone(verifier) };
        }
        if !visit.streams.iter().any(Stream::modifies) {
            return Self::Fixed { fill: Fill::Untouched, overwritten: false };
        }
        let overwritten = visit.streams.iter().any(|s| reads(s) && s.modifies());
        let (stream, worker) = first.map_or((0, 0), |id| (id.stream, id.worker));
        let seed = derive_seed(visit.seed, &[3, u64::from(stream), u64::from(worker)]);
        let byte = |byte| Self::Fixed { fill: Fill::Byte(byte), overwritten };
        let random = |share| {
            let mut pool = vec![0; POOL].into_boxed_slice();
            Random::new(derive_seed(seed, &[4])).fill(&mut pool);
            Self::Stamped {
                fill: Fill::Random { seed, share },
                sequence: seed,
                pool,
                share,
                overwritten,
            }
        };
        match visit.data {
            Data::Zero => byte(0),
            Data::Pattern { byte: value } => byte(value),
            Data::Incompressible | Data::SelfDescribing => random(1.0),
            Data::Compressible { random_share } => random(random_share),
        }
    }

    /// Whether anything is to be done per write.
    pub(crate) fn stamps(&self) -> bool {
        !matches!(self, Self::Fixed { overwritten: false, .. })
    }

    /// Fills a buffer before the clock runs; `label` tells buffers apart.
    pub(crate) fn fill(&self, buffer: &mut [u8], label: u64) {
        let fill = match self {
            Self::Fixed { fill, .. } | Self::Stamped { fill, .. } => *fill,
            Self::SelfDescribing { .. } => Fill::Untouched,
        };
        match fill {
            Fill::Untouched => {}
            Fill::Byte(byte) => buffer.fill(byte),
            Fill::Random { seed, share } => {
                let mut random = Random::new(derive_seed(seed, &[label]));
                for piece in buffer.chunks_mut(PIECE) {
                    let (noise, zeros) = split(piece, share);
                    random.fill(noise);
                    zeros.fill(0);
                }
            }
        }
    }

    /// Makes the first `length` bytes of `buffer` what is to be written; with verification that
    /// is [`Self::describe`]'s work.
    pub(crate) fn stamp(&mut self, buffer: &mut [u8], length: u32) {
        let Some(buffer) = buffer.get_mut(..length as usize) else { return };
        match self {
            Self::Fixed { fill: Fill::Byte(byte), overwritten: true } => buffer.fill(*byte),
            Self::Fixed { .. } | Self::SelfDescribing { .. } => {}
            Self::Stamped { sequence, pool, share, overwritten, .. } => {
                let fresh = *overwritten || buffer.len() <= FRESH_MAX;
                for piece in buffer.chunks_mut(PIECE) {
                    *sequence = sequence.wrapping_add(1);
                    let key = mix(*sequence);
                    if fresh {
                        let part = (*sequence as usize % (POOL / PIECE)) * PIECE;
                        let (noise, zeros) = split(piece, *share);
                        scramble(noise, &pool[part..], key);
                        if *overwritten {
                            zeros.fill(0);
                        }
                    }
                    for (byte, value) in piece.iter_mut().zip(key.to_le_bytes()) {
                        *byte = value;
                    }
                }
            }
        }
    }

    /// A request is about to be issued under verification: what must at least be found when it
    /// is a read; what is written when it is a write.
    pub(crate) fn describe(&self, floors: &mut Floors, next: Next, buffer: &mut [u8]) {
        let Self::SelfDescribing { verifier } = self else { return };
        let Next { op, file, offset, length } = next;
        match op {
            Op::Read => verifier.read_begins(floors, file, offset, length),
            Op::Write => {
                verifier.write_begins(floors, file, offset, length);
                if let Some(buffer) = buffer.get_mut(..length as usize) {
                    verifier.stamp(floors, buffer, file, offset);
                }
            }
            Op::Trim => verifier.trim_begins(file, offset, length),
            Op::Fsync | Op::Fdatasync | Op::SyncRange => {}
            // Nobody looks at what whole files hold.
            Op::Create | Op::Stat | Op::Delete => {}
            // Refused: what a copy holds would say that it lies elsewhere.
            Op::CopyRange => {}
            // Played as a write and a flush.
            Op::Commit => {}
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
                verifier.trim_ends(next.file, next.offset, next.length);
                (Vec::new(), 0)
            }
            _ => (Vec::new(), 0),
        }
    }
}

/// Whether the stream brings data into its buffers.
fn reads(stream: &Stream) -> bool {
    match &stream.access {
        Access::Replay { requests } => requests.iter().any(|r| r.op.reads()),
        _ => stream.mix.classes.iter().any(|c| c.op.reads()),
    }
}

/// The random and the zero part of a piece.
fn split(piece: &mut [u8], share: f64) -> (&mut [u8], &mut [u8]) {
    let random = (piece.len() as f64 * share).round() as usize;
    piece.split_at_mut(random.min(piece.len()))
}

/// `pool` under `key`, as long as `bytes`, which is no longer than it.
fn scramble(bytes: &mut [u8], pool: &[u8], key: u64) {
    let (words, rest) = bytes.as_chunks_mut::<8>();
    let (from, from_rest) = pool.split_at(words.len() * 8);
    for (to, from) in words.iter_mut().zip(from.as_chunks::<8>().0) {
        *to = (u64::from_ne_bytes(*from) ^ key).to_ne_bytes();
    }
    for ((to, from), key) in rest.iter_mut().zip(from_rest).zip(key.to_ne_bytes()) {
        *to = from ^ key;
    }
}
