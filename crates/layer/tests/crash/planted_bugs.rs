//! Each planted bug is caught. A proof that misses one proves less than it says.

use super::{damage, lives};
use crate::planted::{PlantedBug, plant};

/// What a proof says with a bug in the crate; `None` if it sees nothing.
fn fault_with(bug: PlantedBug, proof: fn() -> Result<(), String>) -> Option<String> {
    plant(Some(bug));
    let outcome = std::panic::catch_unwind(proof);
    plant(None);
    outcome.map_or(Some("a panic".to_owned()), Result::err)
}

fn assert_caught(bugs: &[PlantedBug], proof: fn() -> Result<(), String>) {
    for &bug in bugs {
        let fault = fault_with(bug, proof);
        println!("{bug:?}: {}", fault.as_deref().unwrap_or("NOT CAUGHT"));
        assert!(fault.is_some(), "{bug:?} is not caught");
    }
}

/// A fraction of the lives that the proof goes through by default: most bugs show in the first ten.
fn some_lives() -> Result<(), String> {
    (1..30).try_for_each(|seed| lives::crash_all(seed).map(drop))
}

#[test]
fn bugs_of_order_and_recovery_are_caught_by_crashes() {
    let bugs = [
        PlantedBug::NoFlushBeforeSuperblock,
        PlantedBug::FlushWithoutDevice,
        PlantedBug::FlushWithoutGroup,
        PlantedBug::FreeBeforeFlush,
        PlantedBug::FreeBeforeCheckpoint,
        PlantedBug::FreeBeforeSuperblock,
        PlantedBug::FreeBeforeChunks,
        PlantedBug::EndCovered,
        PlantedBug::PositionOfEnd,
        PlantedBug::ChunkSkipped,
        PlantedBug::ChunkBeforeGroup,
        PlantedBug::DurableTooEarly,
        PlantedBug::NoReserve,
        PlantedBug::NoDataCheck,
        PlantedBug::AcceptHole,
        PlantedBug::StaleCheckpoint,
        PlantedBug::OneArea,
        PlantedBug::OneSuperblock,
        PlantedBug::LaggingSuperblock,
        PlantedBug::CopyOfDead,
        PlantedBug::TrimInMemory,
        PlantedBug::OneStream,
        PlantedBug::OnePartGoesOn,
        PlantedBug::OnePartChecked,
        PlantedBug::PartWithoutHeader,
        PlantedBug::StreamByStream,
        PlantedBug::NextForgotten,
    ];
    assert_caught(&bugs, some_lives);
}

#[test]
fn bugs_of_checksums_are_caught_by_flipped_bits() {
    let bugs = [PlantedBug::NoReadCheck, PlantedBug::NoMending, PlantedBug::ShortHeaderCheck];
    assert_caught(&bugs, damage::flips);
}

#[test]
fn a_large_group_that_is_torn_and_accepted_is_caught() {
    assert_caught(&[PlantedBug::NoDataCheck], lives::torn_groups);
}

#[test]
fn damage_that_is_not_looked_for_everywhere_is_caught() {
    assert_caught(&[PlantedBug::DamageInOneStream], damage::a_group_is_lost);
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_caught() {
    assert_caught(&[PlantedBug::EndForgotten], damage::a_group_of_a_checkpoint_is_lost);
}

#[test]
fn a_failure_that_is_forgotten_is_caught() {
    assert_caught(&[PlantedBug::FailureForgotten], damage::failures);
}

#[test]
fn a_chain_that_is_ignored_or_goes_on_after_recovery_is_caught() {
    assert_caught(
        &[PlantedBug::SameChainAfterRecovery, PlantedBug::NoChain],
        damage::a_group_repeats,
    );
}
