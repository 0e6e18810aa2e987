//! Random 4 KiB writes per second on a device in memory: `cargo run --release -p plimsoll-layer
//! --example rate`.

#![expect(clippy::print_stdout, reason = "its output is all it is for")]

use std::time::Instant;

use layer::{BlockMemory, CreateOptions, LogVolume, VolumeId};
use stats::random::Random;
use units::{ByteOffset, Bytes};

fn main() -> Result<(), layer::LayerError> {
    let device = Bytes::mib(512);
    for share in [10, 50, 60, 70, 80] {
        let logical = Bytes::mib(device.get() / (1 << 20) * share / 100);
        let options = CreateOptions { logical, segment: Bytes::mib(1), id: VolumeId(1) };
        let mut volume = LogVolume::create(BlockMemory::new(device), &options)?;
        let blocks = logical.get() / 4096;
        let mut random = Random::new(1);
        let mut data = vec![0; 4096];
        random.fill(&mut data);
        let mut write = |volume: &mut LogVolume<BlockMemory>, count: u64| {
            (0..count)
                .try_for_each(|_| volume.write(ByteOffset::new(4096 * random.below(blocks)), &data))
        };
        write(&mut volume, 4 * blocks)?;
        let (before, begun) = (volume.counts(), Instant::now());
        write(&mut volume, 4 * blocks)?;
        let seconds = begun.elapsed().as_secs_f64();
        let copied = (volume.counts().copied - before.copied) as f64;
        let written = (4 * blocks) as f64;
        println!(
            "live {share} %: {:.0} writes/s, {:.2} data blocks per write, {:.0} blocks/s, {} of memory for {logical}",
            written / seconds,
            1.0 + copied / written,
            (written + copied) / seconds,
            volume.memory(),
        );
    }
    Ok(())
}
