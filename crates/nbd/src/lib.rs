//! The server's side of the protocol of network block devices (NBD), over any stream.
//!
//! [`serve`] greets one client, agrees with it on an [`Export`] and answers its requests until it
//! leaves. It opens nothing and starts no thread: the caller accepts connections and calls it once for
//! each. Several may serve one export at the same time, which therefore takes `&self`.
//!
//! What it speaks: fixed newstyle handshake; simple replies, in the order of the requests; reads,
//! writes, flushes, trims, writes of zeroes, with forced unit access. What it does not: encryption,
//! structured replies, block status. Such options are refused, and clients go on without them.
//!
//! Requests that a client has sent ahead are answered together: replies leave when the next request
//! is not there in whole yet, or when 160 KiB of them have gathered.
//!
//! A client is not trusted. Of what it sends, no length is believed beyond [`MAX_REQUEST`], and
//! memory for a write grows only as its data arrive. A connection takes at most twice
//! [`MAX_REQUEST`], and a few bytes.

mod connection;
mod error;
mod export;
mod handshake;
mod session;
mod transmission;
mod wire;

use std::io::{Read, Write};
use std::ops::ControlFlow;

use units::Bytes;

pub use error::{ExportError, NbdError};
pub use export::Export;

/// The longest read or write that is served; clients that ask are told so.
pub const MAX_REQUEST: Bytes = Bytes::mib(32);

/// What is read from a client at once, and how long its replies may wait for each other: 32 requests
/// of 4 KiB, and their headers.
const BATCH: Bytes = Bytes::kib(160);

/// How a client left that broke no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It chose no export.
    Aborted,
    /// It said that it was done.
    Disconnected,
    /// It closed the connection between two messages without a word.
    Closed,
}

/// Serves one client on `stream` until it leaves. The export answers to `name`, and to the empty name
/// that stands for the default.
///
/// Nothing is made durable at the end: a client that wants this flushes.
pub fn serve<S, E>(stream: S, name: &str, export: &E) -> Result<Departure, NbdError>
where
    S: Read + Write,
    E: Export + ?Sized,
{
    let (size, block) = (export.size(), export.block());
    let connection = connection::Connection::new(stream);
    let mut session = session::ClientSession { connection, name, export, size, block };
    let served = session.shake_hands().and_then(|agreed| match agreed {
        ControlFlow::Continue(()) => session.answer_requests(),
        ControlFlow::Break(departure) => Ok(departure),
    });
    // What was done is told, to a client that then broke a rule as well.
    let sent = session.connection.send();
    served.and_then(|departure| match departure {
        // It need not wait for the answer.
        Departure::Aborted => Ok(departure),
        _ => sent.map(|()| departure),
    })
}
