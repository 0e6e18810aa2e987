//! What checkpoints cost while they are written, and what they leave to recovery.

use std::time::Instant;

use layer::{CreateOptions, LiveShare, LogVolume, VolumeId};
use stats::random::Random;
use units::Bytes;

use crate::sparse::SparseDevice;
use crate::{BLOCK, at};

/// How often the caller flushes.
#[derive(Clone, Copy, Debug)]
enum Flushes {
    /// After so many writes.
    Every(u64),
    Never,
}

/// A volume in use.
struct Used {
    volume: LogVolume<SparseDevice>,
    blocks: u64,
    random: Random,
    written: u64,
}

impl Used {
    /// Written full once, in sequence.
    fn new(logical: Bytes) -> Self {
        let options = CreateOptions { logical, segment: Bytes::mib(2), id: VolumeId(3) };
        let mut device = SparseDevice::new(options.device_size(LiveShare::new(0.6).unwrap()));
        device.maps_end = logical.get() / 256;
        let mut volume = LogVolume::create(device, &options).unwrap();
        let blocks = logical.get() / BLOCK;
        (0..blocks).for_each(|n| volume.write(at(n), &[0; BLOCK as usize]).unwrap());
        Self { volume, blocks, random: Random::new(8), written: 0 }
    }

    fn write(&mut self, flushes: Flushes) {
        let block = self.random.below(self.blocks);
        self.volume.write(at(block), &[0; BLOCK as usize]).unwrap();
        self.written += 1;
        if matches!(flushes, Flushes::Every(n) if self.written.is_multiple_of(n)) {
            self.volume.flush().unwrap();
        }
    }

    /// Writes until a checkpoint is done. Returns how many writes that took.
    fn until_checkpoint(&mut self, flushes: Flushes) -> u64 {
        let (before, begun) = (self.volume.counts().checkpoints, self.written);
        while self.volume.counts().checkpoints == before {
            self.write(flushes);
        }
        self.written - begun
    }
}

/// At most 1 MiB, though the map has 4.
#[test]
fn a_write_waits_for_a_part_of_the_map_at_most() {
    let mut used = Used::new(Bytes::gib(2));
    let (mut most, mut all) = (0, 0);
    let before = used.volume.counts();
    for _ in 0..2 * used.blocks {
        let written = used.volume.device().map_writes.bytes;
        used.write(Flushes::Every(1000));
        let written = used.volume.device().map_writes.bytes - written;
        (most, all) = (written.max(most), all + written);
    }
    let after = used.volume.counts();
    let log = after.written + after.copied + after.headers;
    let log = (log - before.written - before.copied - before.headers) * BLOCK;
    let (checkpoints, share) = (after.checkpoints - before.checkpoints, all as f64 / log as f64);
    println!("{most} bytes for one write, {checkpoints} checkpoints, {share:.4} of the log");
    assert!(most <= 1 << 20, "{most}");
    assert!(checkpoints > 5 && share < 0.035, "{checkpoints}, {share}");
}

/// The longest log: a crash just before a checkpoint is done. Its length is that of 32 maps or 512 MiB, and of the
/// groups that the chunks of one followed. By default of a small volume; `PLIMSOLL_CRASHES` has the large one.
#[test]
fn recovery_reads_little_of_a_log_of_bounded_length() {
    let gib = if std::env::var_os("PLIMSOLL_CRASHES").is_some() { 64 } else { 2 };
    let mut used = Used::new(Bytes::gib(gib));
    for flushes in [Flushes::Every(10_000), Flushes::Never, Flushes::Every(1)] {
        used.until_checkpoint(flushes);
        let writes = used.until_checkpoint(flushes);
        for _ in 0..writes * 99 / 100 {
            used.write(flushes);
        }
        let mut device = used.volume.device().clone();
        (device.reads, device.busy) = Default::default();
        let begun = Instant::now();
        let volume = LogVolume::open(device).unwrap();
        let (seconds, busy) = (begun.elapsed(), volume.device().busy);
        let (seen, reads) = (volume.recovered(), volume.device().reads);
        println!(
            "{gib} GiB, {flushes:?}: {seconds:.2?}, {busy:.2?} of it the device's; {seen:?}, {} reads of {} MiB",
            reads.requests,
            reads.bytes >> 20
        );
        // Of which the map is 2 MiB per GiB.
        let log = (seen.changes + seen.groups) * BLOCK;
        assert!(log <= (gib * (72 << 20)).max(520 << 20), "{seen:?}");
        assert_eq!(volume.audit(), [""; 0]);
    }
}
