//! Volumes as bytes: requests of any length, a look without a change, what older programs wrote.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use layer::{
    BlockDevice, BlockError, CreateOptions, LayerError, LiveShare, LogVolume, Untouched, VolumeId,
    is_volume,
};
use stats::random::Random;
use units::{ByteOffset, Bytes};

use crate::{BLOCK, at, block};

const SEGMENT: Bytes = Bytes::kib(32);
const LOGICAL: Bytes = Bytes::kib(256);

/// What is on a device.
#[derive(Clone, Debug, PartialEq)]
struct Image(Vec<u8>);

impl BlockDevice for Image {
    fn size(&self) -> Bytes {
        Bytes::new(self.0.len() as u64)
    }

    fn read(&mut self, at: ByteOffset, into: &mut [u8]) -> Result<(), BlockError> {
        into.copy_from_slice(&self.0[at.get() as usize..][..into.len()]);
        Ok(())
    }

    fn write(&mut self, at: ByteOffset, from: &[u8]) -> Result<(), BlockError> {
        self.0[at.get() as usize..][..from.len()].copy_from_slice(from);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), BlockError> {
        Ok(())
    }

    fn trim(&mut self, _: ByteOffset, _: Bytes) -> Result<(), BlockError> {
        Ok(())
    }
}

fn created() -> LogVolume<Image> {
    let options = CreateOptions { logical: LOGICAL, segment: SEGMENT, id: VolumeId(5) };
    let size = options.device_size(LiveShare::new(0.6).unwrap());
    LogVolume::create(Image(vec![0; size.get() as usize]), &options).unwrap()
}

/// Twice around, trims among the writes; then, behind the checkpoint, some more that are only flushed.
fn filled() -> LogVolume<Image> {
    let mut volume = created();
    let blocks = LOGICAL.get() / BLOCK;
    for number in 0..2 * blocks {
        volume.write(at(number * 7 % blocks), &block(number)).unwrap();
    }
    volume.trim(at(3), Bytes::new(2 * BLOCK)).unwrap();
    let mut volume = LogVolume::open(volume.close().unwrap()).unwrap();
    volume.write(at(9), &block(1000)).unwrap();
    volume.flush().unwrap();
    volume
}

fn contents(volume: &mut LogVolume<impl BlockDevice>) -> Vec<u8> {
    let mut bytes = vec![0; LOGICAL.get() as usize];
    volume.read(at(0), &mut bytes).unwrap();
    bytes
}

#[test]
fn requests_of_any_length_are_as_of_a_file() {
    let (mut volume, mut file) = (created(), vec![0u8; LOGICAL.get() as usize]);
    let mut random = Random::new(4);
    for number in 0..3000u64 {
        let start = random.below(LOGICAL.get());
        let length = random.below((LOGICAL.get() - start).min(20_000));
        let (place, range) = (ByteOffset::new(start), start as usize..(start + length) as usize);
        match random.below(4) {
            0 => {
                volume.zero_bytes(place, Bytes::new(length)).unwrap();
                file[range].fill(0);
            }
            1 => {
                let mut seen = vec![1; length as usize];
                volume.read_bytes(place, &mut seen).unwrap();
                assert_eq!(seen, file[range]);
            }
            _ => {
                file[range.clone()].fill(number as u8);
                volume.write_bytes(place, &file[range]).unwrap();
            }
        }
    }
    assert_eq!(contents(&mut volume), file);
    // Of a part of a block nothing is trimmed.
    volume.trim_within(ByteOffset::new(1), Bytes::new(2 * BLOCK - 2)).unwrap();
    assert_eq!(contents(&mut volume), file);
}

#[test]
fn a_look_changes_nothing_and_finds_damage() {
    let image = filled().device().clone();
    let mut looked_at = image.clone();
    let mut volume = LogVolume::open(Untouched::new(&mut looked_at)).unwrap();
    assert_eq!(volume.recovered().groups, 1);
    let mut told = 0;
    let mut tell = |done: u64, _: u64| {
        told = done;
        true
    };
    let found = volume.scrub(&mut tell).unwrap();
    let live = volume.live().get() / BLOCK;
    assert_eq!((found.live, told), (live, live));
    assert_eq!((found.damaged.len(), found.faults.len()), (0, 0));
    // What is written is read, and is not on the device.
    volume.write(at(20), &block(77)).unwrap();
    volume.flush().unwrap();
    let mut seen = vec![0; BLOCK as usize];
    volume.read(at(20), &mut seen).unwrap();
    assert_eq!(seen, block(77));
    drop(volume);
    assert!(looked_at == image);
    // A byte of a block that a checkpoint covers.
    let mut damaged = image;
    let data = block(114);
    let places = damaged.0.windows(data.len()).enumerate().filter(|(_, window)| *window == data);
    let places: Vec<usize> = places.map(|(place, _)| place).collect();
    for place in places {
        damaged.0[place + 77] ^= 0x11;
    }
    let mut volume = LogVolume::open(Untouched::new(damaged)).unwrap();
    let found = volume.scrub(&mut |_, _| true).unwrap();
    assert_eq!(found.damaged, [at(114 * 7 % 64)], "{found:?}");
}

#[test]
fn nothing_is_taken_for_a_volume() {
    let mut image = Image(vec![0; 1 << 20]);
    assert_eq!(is_volume(&mut image), Err(LayerError::NoVolume));
    assert_eq!(is_volume(&mut filled().device().clone()), Ok(()));
}

fn stored(version: u64) -> std::path::PathBuf {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    data.join(format!("volume-{version}.gz"))
}

/// `PLIMSOLL_WRITE_VOLUME=1` writes that of the present version, which must be a new one.
#[test]
fn volumes_of_all_versions_open() {
    if std::env::var_os("PLIMSOLL_WRITE_VOLUME").is_some() {
        let file = std::fs::File::create_new(stored(2)).unwrap();
        let mut packed = GzEncoder::new(file, Compression::best());
        packed.write_all(&filled().device().0).unwrap();
        packed.finish().unwrap();
    }
    let wanted = contents(&mut filled());
    let mut image = Vec::new();
    GzDecoder::new(std::fs::File::open(stored(2)).unwrap()).read_to_end(&mut image).unwrap();
    let mut volume = LogVolume::open(Image(image)).unwrap();
    assert_eq!(contents(&mut volume), wanted);
    assert_eq!(volume.recovered().groups, 1);
}
