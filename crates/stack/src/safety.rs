//! What may be written, decided on gathered facts alone.
//!
//! Nothing is written that the operator did not name. Every rule has its own
//! [`RefusalReason`]; all that apply are reported at once, so that nobody has to find them one
//! by one.

mod describe;
mod facts;
mod judge;
mod permit;
mod refusal;
pub(crate) mod same;
mod space;

pub use describe::{describe_all, row_of};
pub use facts::{
    Access, BlockFacts, Consent, DeviceUse, Facts, FileFacts, Lease, Place, Process, Subject, Users,
};
pub(crate) use judge::in_use_by;
pub use permit::{Action, ConfirmError, Permit};
pub use refusal::{Refusal, RefusalReason};
pub use space::{space_reserve, suggest_scratch_size};

/// Whether the target may be used as wanted. Pure: the same facts, the same answer.
pub fn decide(facts: &Facts) -> Result<Permit, Refusal> {
    let mut reasons = Vec::new();
    match facts.access {
        Access::Read => judge::judge_read(facts, &mut reasons),
        Access::Write { size, also } => judge::judge_write(facts, size, also, &mut reasons),
    }
    Refusal::new(reasons).map_or_else(|| Ok(describe::permit(facts)), Err)
}
