//! What decays or fails outside of crashes: bits, blocks, requests.

use stats::random::Random;

use super::{
    BLOCK, Life, Size, Step, WriteHistory, at, bytes, compare, contents, id_of, open, recover,
};
use crate::{BlockAction, BlockDevice, BlockMemory, CrashLoss, LayerError, LogVolume};

const SIZE: Size = Size { segment: 8, segments: 19, logical: 24 };

/// A volume in use, all flushed, with a log behind its checkpoint.
fn flushed() -> Result<Life, String> {
    let mut random = Random::new(5);
    let mut steps = vec![Step::Write(0, 24)];
    for _ in 0..40 {
        steps.push(Step::Write(random.below(22) as u32, 2));
    }
    steps.extend([Step::Reopen, Step::Write(3, 4), Step::Flush, Step::Trim(8, 2)]);
    steps.extend([Step::Write(12, 5), Step::Flush, Step::Write(1, 1), Step::Flush]);
    Life::first(SIZE, &steps)
}

/// Opens and reads all. What can be read must be the last state. Returns how many blocks are right;
/// `None` if the volume does not open.
fn read_each(device: &mut BlockMemory, history: &WriteHistory) -> Result<Option<usize>, String> {
    let Ok(mut volume) = LogVolume::open(device) else { return Ok(None) };
    let last = &history.states[history.len()];
    let mut right = 0;
    let mut data = vec![0; BLOCK];
    for (block, &wanted) in (0..).zip(last) {
        match volume.read(at(block), &mut data) {
            Ok(()) if id_of(&data) == Some(wanted) => right += 1,
            Ok(()) => return Err(format!("block {block} shows {:?}, not {wanted}", id_of(&data))),
            Err(LayerError::BlockDamaged { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(Some(right))
}

/// Flips bits in every block of the device, most at its front, where headers are.
pub fn flips() -> Result<(), String> {
    let Life { mut device, history, .. } = flushed()?;
    // All is flushed, so the crash loses nothing; clones without a journal are cheap.
    let device = device.crash(device.changes(), CrashLoss::Subset(0));
    let mut random = Random::new(6);
    let (mut refused, mut damaged) = (0, 0);
    for block in 0..(device.size().get() / BLOCK as u64) as u32 {
        for n in 0..80 {
            let within = if n < 60 { random.below(200) } else { random.below(BLOCK as u64) };
            let place = units::ByteOffset::new(at(block).get() + within);
            let bit = random.below(8) as u32;
            let mut flipped = device.clone();
            flipped.flip(place, bit);
            let fault = |fault| format!("{place}, bit {bit}: {fault}");
            match read_each(&mut flipped, &history).map_err(fault)? {
                None => refused += 1,
                Some(right) => damaged += usize::from(right < SIZE.logical as usize),
            }
        }
    }
    println!("{refused} flips refused, {damaged} make a block unreadable");
    // Only the map cannot be mended: 24 entries of 8 bytes in a block.
    let is_plausible = (50..150).contains(&refused) && damaged > 500;
    is_plausible.then_some(()).ok_or(format!("{refused} refused, {damaged} unreadable"))
}

#[test]
fn a_flipped_bit_gives_right_data_or_an_error() {
    flips().unwrap();
}

/// Wipes headers of flushed groups; four groups fill a segment, and a block that is written again goes
/// into another stream. Only the last group cannot be told from one that a crash has torn: nothing after
/// it says that it was flushed.
pub fn a_group_is_lost() -> Result<(), String> {
    let blocks = [6, 6, 0, 7, 7, 4, 2, 3, 0, 5];
    let steps: Vec<Step> =
        blocks.iter().flat_map(|&block| [Step::Write(block, 1), Step::Flush]).collect();
    let life = Life::first(SIZE, &steps)?;
    for (sequence, block) in [(2, 6), (5, 7), (6, 4), (7, 2), (8, 3), (9, 0), (10, 5)] {
        let mut device = life.device.clone();
        device
            .write(find(&device, &life.history, block), &[0; BLOCK])
            .map_err(|e| e.to_string())?;
        let seen = LogVolume::open(&mut device).map(|volume| volume.recovered().groups);
        let wanted = if sequence < 10 { Err(LayerError::LogDamaged { sequence }) } else { Ok(9) };
        if seen != wanted {
            return Err(format!("without group {sequence}: {seen:?}, wanted {wanted:?}"));
        }
    }
    Ok(())
}

#[test]
fn a_flushed_group_that_is_lost_is_no_end_of_the_log() {
    a_group_is_lost().unwrap();
}

/// A checkpoint that ends with the fourth group after its begin. Each of them must be there, the last too,
/// although no group after it says that it was flushed: the map may know of it.
pub fn a_group_of_a_checkpoint_is_lost() -> Result<(), String> {
    let mut steps = vec![Step::Write(0, 3), Step::Flush, Step::Begin];
    steps.extend((10..14).flat_map(|block| [Step::Write(block, 1), Step::Flush]));
    let life = Life::first(SIZE, &steps)?;
    let open = |device: &mut BlockMemory| LogVolume::open(device).map(|v| v.recovered().groups);
    if open(&mut life.device.clone()) != Ok(4) {
        return Err("the checkpoint is not in force".to_owned());
    }
    for (sequence, block) in (2..).zip(10..14) {
        let mut device = life.device.clone();
        let header = find(&device, &life.history, block);
        device.write(header, &[0; BLOCK]).map_err(|error| error.to_string())?;
        let seen = open(&mut device);
        if seen != Err(LayerError::LogDamaged { sequence }) {
            return Err(format!("without group {sequence}: {seen:?}"));
        }
    }
    // Damage of its data is an error of reading.
    let mut device = life.device.clone();
    let data = find(&device, &life.history, 13).get() + BLOCK as u64;
    device.write(units::ByteOffset::new(data), &[1; BLOCK]).map_err(|error| error.to_string())?;
    let right = read_each(&mut device, &life.history)?;
    let wanted = Some(SIZE.logical as usize - 1);
    (right == wanted).then_some(()).ok_or(format!("{right:?} blocks are right, not {wanted:?}"))
}

#[test]
fn a_log_that_ends_before_the_end_of_its_checkpoint_is_damaged() {
    a_group_of_a_checkpoint_is_lost().unwrap();
}

/// Wipes the data of a group that nothing was written behind. It looks torn, as do all since the flush before,
/// unless the log was settled: then it is an error of who reads it.
pub fn the_last_data_are_lost() -> Result<(), String> {
    let steps =
        [Step::Write(0, 3), Step::Flush, Step::Write(10, 1), Step::Write(11, 1), Step::Flush];
    for settled in [0, 1, 2] {
        let settle = std::iter::repeat_n(Step::Settle, settled);
        let steps: Vec<Step> = steps.iter().copied().chain(settle).collect();
        let life = Life::first(SIZE, &steps)?;
        let mut device = life.device.clone();
        let data = find(&device, &life.history, 10).get() + BLOCK as u64;
        device.write(units::ByteOffset::new(data), &[1; BLOCK]).map_err(|e| e.to_string())?;
        let right = read_each(&mut device, &life.history);
        let wanted = (settled > 0).then_some(Some(SIZE.logical as usize - 1));
        if right.clone().ok() != wanted {
            return Err(format!("settled {settled} times: {right:?}, not {wanted:?}"));
        }
        let groups = LogVolume::open(&mut life.device.clone()).map(|v| v.recovered().groups);
        if groups != Ok(2 + u64::from(settled > 0)) {
            return Err(format!("settled {settled} times: {groups:?} groups"));
        }
    }
    Ok(())
}

#[test]
fn damage_of_what_was_flushed_last_is_an_error_once_the_log_is_settled() {
    the_last_data_are_lost().unwrap();
}

/// One superblock that cannot be read is as good as none: the other counts.
#[test]
fn one_superblock_that_cannot_be_read_is_no_end() {
    let Life { device, history, .. } = flushed().unwrap();
    for number in [0, 1] {
        let mut device = device.clone();
        device.fail(BlockAction::Read, number);
        assert_eq!(read_each(&mut device, &history), Ok(Some(SIZE.logical as usize)), "{number}");
    }
}

/// Where the header is of the group whose first data block is the last write of `block`.
fn find(device: &BlockMemory, history: &WriteHistory, block: u32) -> units::ByteOffset {
    let wanted = history.states[history.len()][block as usize];
    let mut data = vec![0; BLOCK];
    let mut device = device.clone();
    let blocks = 0..(device.size().get() / BLOCK as u64) as u32;
    let mut holds = |&place: &u32| {
        device.read(at(place), &mut data).unwrap();
        id_of(&data) == Some(wanted)
    };
    at(blocks.into_iter().find(|place| holds(place)).unwrap() - 1)
}

#[test]
fn a_damaged_block_survives_collections_as_an_error() {
    let Life { mut device, history, .. } = flushed().unwrap();
    let place = find(&device, &history, 3).get() + BLOCK as u64;
    device.flip(units::ByteOffset::new(place + 9), 3);
    let mut volume = open(&mut device).unwrap();
    let mut random = Random::new(7);
    let mut data = vec![0; BLOCK];
    for _ in 0..2000 {
        let block = 4 + random.below(20) as u32;
        volume.write(at(block), &contents(block)).unwrap();
        volume.read(at(block), &mut data).unwrap();
        assert_eq!(id_of(&data), Some(block));
    }
    assert!(volume.counts().copied > 300, "{:?}", volume.counts());
    let error = volume.read(at(3), &mut data).unwrap_err();
    assert_eq!(error, LayerError::BlockDamaged { at: at(3) });
    assert_eq!(volume.audit(), [""; 0]);
}

/// Fails each write and each flush of a run in turn, and lets the device crash afterwards.
#[test]
fn a_failed_write_or_flush_makes_the_volume_read_only() {
    failures().unwrap();
}

pub fn failures() -> Result<(), String> {
    for action in [BlockAction::Write, BlockAction::Flush] {
        for after in 0..40 {
            let mut device = SIZE.create().journaled();
            let mut history = WriteHistory::new(SIZE.logical);
            let mut volume = open(&mut device)?;
            volume.device.fail(action, after);
            let safe = write_until_failure(&mut volume, &mut history, action)?;
            drop(volume);
            for seed in 0..5 {
                let mut crashed = device.crash(device.changes(), CrashLoss::Random(seed));
                recover(&mut crashed, &history, safe..=history.len())?;
            }
        }
    }
    Ok(())
}

/// Writes and flushes until a request of the device fails; nothing is written after that, all is read.
/// Returns how much of the history is safe.
fn write_until_failure(
    volume: &mut LogVolume<&mut BlockMemory>,
    history: &mut WriteHistory,
    action: BlockAction,
) -> Result<usize, String> {
    let mut safe = 0;
    let cause = loop {
        let block = history.len() as u32 % 20;
        let id = history.write(block);
        let mut result = volume.write(at(block), &contents(id));
        if result.is_ok() && id.is_multiple_of(3) {
            result = volume.flush();
            safe = if result.is_ok() { history.len() } else { safe };
        }
        match result {
            Ok(()) => {}
            Err(LayerError::Device(cause)) => break cause,
            Err(error) => return Err(error.to_string()),
        }
    };
    // The next flush of the device would succeed, and must not be believed.
    let is_cause = cause.action == action;
    let refused = Err(LayerError::ReadOnly { cause });
    let later = [
        volume.flush(),
        volume.write(at(0), &contents(9)),
        volume.trim(at(0), bytes(1)),
        volume.collect().map(drop),
    ];
    if !is_cause || later.iter().any(|result| *result != refused) {
        return Err(format!("after a failed {action}: {later:?}"));
    }
    // What was acknowledged is still read, from memory if need be; not so the write that failed.
    compare(volume, history, history.len() - 1..=history.len())?;
    Ok(safe)
}

#[test]
fn a_read_only_volume_says_why() {
    let mut device = SIZE.create();
    let mut volume = open(&mut device).unwrap();
    volume.device.fail(BlockAction::Flush, 0);
    volume.write(at(0), &contents(1)).unwrap();
    assert!(volume.flush().is_err());
    let message = volume.flush().unwrap_err().to_string();
    assert_eq!(message, "the volume is read-only since a flush of its device failed");
}

#[test]
fn a_failed_read_of_the_caller_leaves_the_volume_as_it_is() {
    let Life { mut device, history, .. } = flushed().unwrap();
    let mut volume = open(&mut device).unwrap();
    let mut data = vec![0; BLOCK];
    volume.device.fail(BlockAction::Read, 0);
    assert!(matches!(volume.read(at(3), &mut data), Err(LayerError::Device(_))));
    volume.read(at(3), &mut data).unwrap();
    assert_eq!(id_of(&data), Some(history.states[history.len()][3]));
    volume.write(at(3), &data).unwrap();
    volume.flush().unwrap();
}

/// The log is cut off, then the same group is written once more: what followed it the first time
/// must not follow it the second time.
pub fn a_group_repeats() -> Result<(), String> {
    let mut device = SIZE.create();
    let first = contents(1).repeat(7);
    let second = contents(2).repeat(7);
    device = device.journaled();
    let mut volume = open(&mut device)?;
    let before = volume.device.changes();
    for (block, data) in [(0, &first), (7, &second), (14, &contents(3))] {
        volume.write(at(block), data).map_err(|error| error.to_string())?;
    }
    if volume.device.changes() != before + 2 {
        return Err("wanted two groups".to_owned());
    }
    let end = device.changes();
    // The first of the two is lost, the second is on the device.
    let mut device = device.crash(end, CrashLoss::Subset(0b10)).journaled();
    let mut volume = open(&mut device)?;
    volume.write(at(0), &first).map_err(|error| error.to_string())?;
    volume.flush().map_err(|error| error.to_string())?;
    let end = device.changes();
    let mut device = device.crash(end, CrashLoss::Subset(0));
    let mut data = vec![0; 14 * BLOCK];
    open(&mut device)?.read(at(0), &mut data).map_err(|error| error.to_string())?;
    match [0, 7].map(|block| id_of(&data[block * BLOCK..][..BLOCK])) {
        [Some(1), Some(0)] => Ok(()),
        other => Err(format!("shows {other:?}, not what was written last")),
    }
}

#[test]
fn a_group_that_repeats_is_not_followed_by_the_old_log() {
    a_group_repeats().unwrap();
}
