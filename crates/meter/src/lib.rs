//! Pacing, stop rules and accounting of operations of any kind.
//!
//! A block request, a database transaction and a request of a layer are measured alike: when one
//! may begin, when the load ends, what is counted of it, and how the counts of many workers become
//! the record of a visit. What an operation *does* is not known here: it is a name ([`OpId`]).
//!
//! Who plays operations keeps a [`Meter`] for each worker. The block loop of the crate `engine`
//! does so for many requests in flight; [`play`] is the loop of a session that waits for each of
//! its operations. What the workers of a visit share ([`VisitShared`]) is a few atomics.

mod merge;
mod op;
mod overload;
mod pace;
mod recorder;
mod result;
mod session;
mod shared;
mod worker;

pub use merge::{VisitResult, merge};
pub use op::{OPS_MAX, OpId, WorkerId};
pub use pace::{Load, Pace};
pub use recorder::{INTERVAL, Late, Recorder};
pub use result::{Ended, WorkerResult};
pub use session::{Done, Orders, SessionWork, play};
pub use shared::{Oldest, Pulse, Quota, Tally, VisitShared};
pub use worker::{Meter, Observer, State};
