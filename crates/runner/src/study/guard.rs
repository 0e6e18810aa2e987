//! What is looked at right before each step: devices were judged when the study and its stack began,
//! and somebody may have taken one into use since, by its own name or by another of the same bytes.

use layout::{DeviceId, Step};
use stack::RefusalReason;

use crate::study::PlayError;
use crate::study::builder::{Builder, PAUSE, TRIES};
use crate::study::ours::told;

impl Builder<'_> {
    /// Whether a step finds its devices as the study left them, and nobody else at them. To be asked
    /// before the step is in the journal: what was not begun is not taken for the study's.
    pub fn may_be_done(&self, step: &Step) -> Result<(), PlayError> {
        self.are_free(&step.what, &self.ours().worked_on(step))?;
        match self.ours().is_anothers_file_system(step) {
            Some(why) => Err(PlayError::InTheWay { step: step.what.clone(), whys: vec![why] }),
            None => Ok(()),
        }
    }

    /// Whether devices are what they were, and nobody else uses them or the same bytes by another
    /// name: looked at right before each step that works on them, since they were judged long ago.
    ///
    /// Monitors of drives open a device for writing for a moment: such a use is waited for. What a
    /// device bears is looked at each time, so that nothing is lost that was written meanwhile.
    pub fn are_free(&self, step: &str, devices: &[DeviceId]) -> Result<(), PlayError> {
        self.ours().are_the_same(devices)?;
        for device in devices {
            let whys = patiently(|| self.ours().why_not(device));
            if !whys.is_empty() {
                return Err(PlayError::InTheWay { step: step.to_owned(), whys: told(&whys) });
            }
        }
        Ok(())
    }

    /// Writes into the journal what these devices bear that nobody else uses: what others write is
    /// not to be taken for the study's own.
    pub fn note_unshared(&mut self, devices: &[DeviceId]) -> Result<(), PlayError> {
        devices.iter().try_for_each(|device| {
            // Of what a run of ours was writing to it nothing tells but this.
            let whys = patiently(|| self.ours().who_else(device));
            if whys.is_empty() { self.note(std::slice::from_ref(device), false) } else { Ok(()) }
        })
    }
}

/// Asks again for a while where somebody only has a device open for writing.
pub(super) fn patiently(ask: impl Fn() -> Vec<RefusalReason>) -> Vec<RefusalReason> {
    let mut whys = ask();
    for _ in 1..TRIES {
        let is_moment = |why: &RefusalReason| matches!(why, RefusalReason::InUse { .. });
        if whys.is_empty() || !whys.iter().all(is_moment) {
            break;
        }
        std::thread::sleep(PAUSE);
        whys = ask();
    }
    whys
}
