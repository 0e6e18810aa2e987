//! One client and what it is served.

use units::Bytes;

use crate::connection::Connection;

/// One client and what it is served.
#[derive(Debug)]
pub struct ClientSession<'a, S, E: ?Sized> {
    pub connection: Connection<S>,
    pub name: &'a str,
    pub export: &'a E,
    /// The export's, as the client is told it.
    pub size: Bytes,
    /// The export's unit of requests.
    pub block: Bytes,
}
