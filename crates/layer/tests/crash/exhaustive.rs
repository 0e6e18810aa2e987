//! All short sequences of operations, each crash point of each, each subset of what was pending.
//!
//! Most known crash bugs of file systems need three operations or fewer (Mohan et al. 2018,
//! CrashMonkey and ACE). The alphabet overlaps on purpose.

use super::{Life, Size, Step, recover};
use crate::{CrashLoss, CreateOptions, LayerError, LogVolume, VolumeId};

const ALPHABET: [&[Step]; 9] = [
    &[Step::Write(2, 1)],
    &[Step::Write(1, 3)],
    &[Step::Trim(2, 2)],
    &[Step::Flush],
    // A write that is durable once it returns.
    &[Step::Write(3, 1), Step::Flush],
    &[Step::Collect],
    &[Step::Checkpoint],
    // Its map has two chunks.
    &[Step::Begin],
    &[Step::Reopen],
];

/// The smallest: four blocks, two of them full from the start.
const SIZE: Size = Size { segment: 8, segments: 15, logical: 4 };

/// Pending changes of which all subsets are tried.
const PENDING_MAX: usize = 6;

#[test]
fn no_short_sequence_loses_anything() {
    let long = std::env::var_os("PLIMSOLL_CRASHES").is_some();
    let length = if long { 4 } else { 3 };
    let mut crashes = 0;
    for number in 0..ALPHABET.len().pow(length) {
        let digits = (0..length).map(|digit| number / ALPHABET.len().pow(digit) % ALPHABET.len());
        let steps: Vec<Step> = digits.flat_map(|digit| ALPHABET[digit]).copied().collect();
        crashes += crash_all(&steps).unwrap_or_else(|fault| panic!("{steps:?}: {fault}"));
    }
    println!("{crashes} crash points of all sequences of {length}");
}

/// A creation that is cut short leaves the old volume, none, or the new one; no mixture of them.
#[test]
fn a_crash_of_a_creation_leaves_no_mixture() {
    let steps = [Step::Write(0, 4), Step::Flush, Step::Write(1, 2), Step::Flush];
    let life = Life::first(SIZE, &steps).unwrap();
    let mut device = life.device.journaled();
    let options = CreateOptions { id: VolumeId(2), ..SIZE.options() };
    LogVolume::create(&mut device, &options).unwrap();
    let mut seen = [0; 3];
    for place in 0..=device.changes() {
        for seed in 0..50 {
            let mut crashed = device.crash(place, CrashLoss::Random(seed));
            if LogVolume::open(&mut crashed).map(drop) == Err(LayerError::NoVolume) {
                seen[1] += 1;
                continue;
            }
            let len = life.history.len();
            let shown = recover(&mut crashed, &life.history, 0..=len);
            match shown.unwrap_or_else(|fault| panic!("change {place}, {seed}: {fault}")) {
                0 => seen[2] += 1,
                shown => {
                    assert_eq!(shown, len);
                    seen[0] += 1;
                }
            }
        }
    }
    assert!(seen.iter().all(|&n| n > 20), "{seen:?}");
}

/// Returns the number of crash points.
fn crash_all(steps: &[Step]) -> Result<u64, String> {
    let aged = [Step::Write(0, 4), Step::Flush, Step::Trim(0, 1), Step::Flush];
    let steps: Vec<Step> = aged.iter().chain(steps).copied().collect();
    let mut life = Life::first(SIZE, &steps)?;
    let mut crashes = 0;
    for place in 0..=life.device.changes() {
        let pending = life.device.unflushed(place);
        // Without the last change this is a crash point of its own, which was tried before.
        let newest = 1 << pending.saturating_sub(1);
        let subsets = if pending <= PENDING_MAX { newest..1 << pending } else { 0..0 };
        let whole = subsets.map(CrashLoss::Subset);
        let torn = (0..2).map(|n| CrashLoss::Random(n + 2 * place as u64));
        for loss in whole.chain(torn) {
            let mut crashed = life.device.crash(place, loss);
            let fault = |fault| format!("change {place}, {loss:?}: {fault}");
            life.check(&mut crashed, place).map_err(fault)?;
            crashes += 1;
        }
    }
    Ok(crashes)
}
