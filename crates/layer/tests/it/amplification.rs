//! The collector against the closed form, and against SepBIT on writes that prefer some blocks.

use layer::{CreateOptions, LiveShare, LogVolume, VolumeId};
use stats::random::{Random, Zipf};
use units::Bytes;

use crate::sparse::SparseDevice;
use crate::{BLOCK, at};

/// Which blocks are written.
#[derive(Clone, Copy, Debug)]
enum Skew {
    Uniform,
    /// This share of the writes goes to the rest of the blocks.
    Hot(f64),
    /// Zipf's law with exponent 1.
    Zipf,
}

impl Skew {
    /// Draws blocks of so many.
    fn draw(self, blocks: u64) -> Box<dyn FnMut(&mut Random) -> u64> {
        match self {
            Self::Uniform => Box::new(move |random| random.below(blocks)),
            Self::Hot(hot) => Box::new(move |random| {
                let few = (blocks as f64 * (1.0 - hot)) as u64;
                match random.unit() < hot {
                    true => random.below(few),
                    false => few + random.below(blocks - few),
                }
            }),
            Self::Zipf => {
                let zipf = Zipf::new(blocks, 1.0);
                Box::new(move |random| zipf.sample(random) - 1)
            }
        }
    }
}

/// Segments, and blocks of each.
#[derive(Clone, Copy)]
struct Pool {
    segments: u64,
    segment: u64,
}

/// Blocks that were written for each block of the caller.
#[derive(Clone, Copy)]
struct Amplification {
    data: f64,
    headers: f64,
    maps: f64,
}

impl Pool {
    /// The short test's, or that of the published figures' size.
    fn of_test() -> Self {
        match std::env::var_os("PLIMSOLL_CRASHES") {
            None => Self { segments: 512, segment: 128 },
            Some(_) => Self { segments: 1024, segment: 512 },
        }
    }

    /// Data blocks of the segments that the collector can choose from: without headers, without the
    /// two segments of each stream and the eleven that are kept clean.
    fn data(&self) -> f64 {
        let headers = self.segment.div_ceil(251);
        ((self.segments - 19) * (self.segment - headers)) as f64
    }

    /// After `volumes` of writes.
    fn amplification(&self, skew: Skew, live: f64, volumes: u64) -> Amplification {
        let blocks = (live * self.data()) as u64;
        let (logical, segment) = (Bytes::new(blocks * BLOCK), Bytes::new(self.segment * BLOCK));
        let map = logical.get() / 256 + 2 * segment.get();
        let size = Bytes::new(segment.get() * self.segments + map);
        let device = SparseDevice::new(size);
        let options = CreateOptions { logical, segment, id: VolumeId(1) };
        let mut volume = LogVolume::create(device, &options).unwrap();
        let mut random = Random::new(11);
        let mut draw = skew.draw(blocks);
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
            volume.write(at(draw(&mut random)), &data).unwrap();
        }
        let after = volume.counts();
        let written = (after.written - before.written) as f64;
        let maps = (after.checkpoints - before.checkpoints) * blocks.div_ceil(512);
        Amplification {
            data: 1.0 + (after.copied - before.copied) as f64 / written,
            headers: (after.headers - before.headers) as f64 / written,
            maps: maps as f64 / written,
        }
    }
}

/// Measured: within 2 % from 0.5 to 0.8. Below the closed form, which is for segments without end: the
/// smaller they are, the more they differ, and the better a choice among them.
#[test]
fn uniform_writes_cost_what_the_closed_form_says() {
    for share in [0.5, 0.6, 0.7, 0.8] {
        let wanted = LiveShare::new(share).unwrap().write_amplification();
        let seen = Pool::of_test().amplification(Skew::Uniform, share, 6);
        let off = seen.data / wanted - 1.0;
        let Amplification { data, headers, maps } = seen;
        println!(
            "{share}: {data:.3}, closed form {wanted:.3}, {:+.1} %; headers {headers:.3}, maps {maps:.3}",
            100.0 * off
        );
        assert!(off.abs() < 0.03, "{share}: {data}, closed form {wanted}");
    }
}

/// SepBIT (Wang et al. 2022) has six streams. Its figures are of a simulation of 2048 segments of 512
/// blocks. Zipf's law is another one in a small pool: there SepBIT too needs 1.31, 1.91 and 2.98. In the large
/// one the volume needs 4.55 at 0.9 where SepBIT needs 4.37, and is not above it elsewhere.
#[test]
fn writes_that_prefer_blocks_cost_about_as_much_as_under_sepbit() {
    let table = [
        (Skew::Hot(0.8), [1.45, 2.39, 4.37]),
        (Skew::Hot(0.9), [1.27, 1.82, 3.01]),
        (Skew::Zipf, [1.30, 1.88, 3.07]),
    ];
    for (skew, wanted) in table {
        for (share, wanted) in [0.6, 0.8, 0.9].into_iter().zip(wanted) {
            let seen = Pool::of_test().amplification(skew, share, 10);
            let Amplification { data, headers, maps } = seen;
            println!(
                "{skew:?} {share}: {data:.3}, SepBIT {wanted:.2}; headers {headers:.3}, maps {maps:.3}"
            );
            assert!(data <= wanted * 1.05 + 0.005, "{skew:?} {share}: {data}, SepBIT {wanted}");
        }
    }
}
