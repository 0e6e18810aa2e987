//! Random 4 KiB writes per second of processor time on a device in memory: `cargo run --release -p plimsoll-layer
//! --example rate`.

#![expect(clippy::print_stdout, reason = "its output is all it is for")]

use layer::{BlockMemory, CreateOptions, LogVolume, VolumeId};
use rustix::time::{ClockId, clock_gettime};
use stats::random::Random;
use units::{ByteOffset, Bytes};

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

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
        // Once around the device: its pages are there, and the collector is at work.
        write(&mut volume, device.get() / 4096 + 2 * blocks)?;
        let (before, begun) = (volume.counts(), processor_seconds());
        write(&mut volume, 4 * blocks)?;
        let seconds = processor_seconds() - begun;
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
