//! Bytes, byte offsets and time; and which characters nobody sees.
//!
//! No function of the workspace takes two bare integers that could be swapped: lengths are
//! [`Bytes`], positions are [`ByteOffset`], points in time are [`Instant`] and spans are
//! [`Nanos`]. Storage keeps the integers inside (bytes and ns); scaling happens only in print.

mod bytes;
mod text;
mod time;

pub use bytes::{ByteOffset, Bytes, ParseBytesError, bandwidth};
pub use text::is_unseen;
pub use time::{Instant, Nanos, ParseNanosError};
