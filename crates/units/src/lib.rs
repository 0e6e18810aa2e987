//! Bytes, byte offsets and time.
//!
//! No function of the workspace takes two bare integers that could be swapped: lengths are
//! [`Bytes`], positions are [`ByteOffset`], points in time are [`Instant`] and spans are
//! [`Nanos`]. Storage keeps the integers inside (bytes and ns); scaling happens only in print.

mod bytes;
mod time;

pub use bytes::{ByteOffset, Bytes, ParseBytesError, bandwidth};
pub use time::{Instant, Nanos, ParseNanosError};
