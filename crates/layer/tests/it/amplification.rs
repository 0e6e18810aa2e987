//! The collector against the closed form.

use std::collections::HashMap;

use layer::{BlockDevice, BlockError, CreateOptions, LiveShare, LogVolume, VolumeId};
use stats::random::Random;
use units::{ByteOffset, Bytes};

use crate::{BLOCK, at};

/// A device that keeps only blocks with something in them: here headers and maps.
struct SparseDevice {
    size: Bytes,
    blocks: HashMap<u64, Box<[u8]>>,
}

impl BlockDevice for SparseDevice {
    fn size(&self) -> Bytes {
        self.size
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        for (block, bytes) in (at.get() / BLOCK..).zip(into.chunks_mut(BLOCK as usize)) {
            match self.blocks.get(&block) {
                Some(kept) => bytes.copy_from_slice(kept),
                None => bytes.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        for (block, bytes) in (at.get() / BLOCK..).zip(from.chunks(BLOCK as usize)) {
            match bytes.iter().all(|&byte| byte == 0) {
                true => drop(self.blocks.remove(&block)),
                false => drop(self.blocks.insert(block, bytes.into())),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn trim(&mut self, _: ByteOffset, _: Bytes) -> Result<(), BlockError> {
        Ok(())
    }
}

/// Segments, and blocks of each.
struct Pool {
    segments: u64,
    segment: u64,
}

impl Pool {
    /// Data blocks of the segments that the collector can choose from: without headers, without the
    /// log's two segments and the ten that are kept clean.
    fn data(&self) -> f64 {
        let headers = self.segment.div_ceil(252);
        ((self.segments - 12) * (self.segment - headers)) as f64
    }

    /// Data blocks of log per written block under uniform writes, after `volumes` of them.
    fn amplification(&self, live: LiveShare, volumes: u64) -> f64 {
        let blocks = (live.get() * self.data()) as u64;
        let (logical, segment) = (Bytes::new(blocks * BLOCK), Bytes::new(self.segment * BLOCK));
        let map = logical.get() / 256 + 2 * segment.get();
        let size = Bytes::new(segment.get() * self.segments + map);
        let device = SparseDevice { size, blocks: HashMap::new() };
        let options = CreateOptions { logical, segment, id: VolumeId(1) };
        let mut volume = LogVolume::create(device, &options).unwrap();
        let mut random = Random::new(11);
        let data = vec![0; BLOCK as usize];
        for n in 0..blocks {
            volume.write(at(n), &data).unwrap();
        }
        let mut before = volume.counts();
        for n in 0..volumes * blocks {
            // The second half counts: the first forgets the order of filling.
            if n == volumes * blocks / 2 {
                before = volume.counts();
            }
            volume.write(at(random.below(blocks)), &data).unwrap();
        }
        let after = volume.counts();
        1.0 + (after.copied - before.copied) as f64 / (after.written - before.written) as f64
    }
}

/// Measured: within 2 % from 0.5 to 0.8. Below the closed form, which is for segments without end: the
/// smaller they are, the more they differ, and the better a choice among them.
#[test]
fn uniform_writes_cost_what_the_closed_form_says() {
    let pool = match std::env::var_os("PLIMSOLL_CRASHES") {
        None => Pool { segments: 512, segment: 128 },
        Some(_) => Pool { segments: 1024, segment: 512 },
    };
    for share in [0.5, 0.6, 0.7, 0.8] {
        let live = LiveShare::new(share).unwrap();
        let wanted = live.write_amplification();
        let seen = pool.amplification(live, 6);
        let off = seen / wanted - 1.0;
        println!("{share}: {seen:.3}, closed form {wanted:.3}, {:+.1} %", 100.0 * off);
        assert!(off.abs() < 0.03, "{share}: {seen}, closed form {wanted}");
    }
}
