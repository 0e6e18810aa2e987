//! What an engine is given to make a server of, and what it gives back.

use std::path::PathBuf;

use units::Bytes;

use crate::place::Place;
use crate::process::{Spawned, User};
use crate::server::Base;

/// The programs of a server and whom they run as.
#[derive(Debug)]
pub(crate) struct Kit {
    /// `PostgreSQL 15.18`.
    pub program: String,
    pub server: PathBuf,
    /// Makes an empty database.
    pub maker: PathBuf,
    pub setpriv: PathBuf,
    pub user: Option<User>,
}

/// A server that answers, unless the operator stopped it.
pub(crate) type Started = Option<(Spawned, Box<dyn Base>)>;

/// Where a server is made, and of what.
pub(crate) struct Site<'a> {
    pub kit: &'a Kit,
    pub place: &'a Place,
    pub data: PathBuf,
    pub socket: PathBuf,
    /// Of WAL or redo, if it lies elsewhere.
    pub log: Option<PathBuf>,
    /// Where it writes what it has to say.
    pub words: PathBuf,
    pub memory: Bytes,
    pub sessions: u32,
}
