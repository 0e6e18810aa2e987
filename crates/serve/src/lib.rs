//! HTTP for the page: the runs of a store, live.
//!
//! Three parts. [`Guard`] decides who is answered, from the head of a request alone. The keeper, a
//! thread of its own, is the only one that reads the store, so however many ask, one page is made at
//! a time, and each costs the machine a bounded share of its time: a run may be going on beside it.
//! The rest hands out what the keeper made. Nothing of a request is ever the name of a file.

mod events;
mod guard;
mod http;
mod ids;
mod keeper;
mod places;
mod server;
mod token;

use report::page::{Terms, Trouble};
use store::Store;

pub use crate::guard::{Guard, Refused};
pub use crate::ids::{Ids, NotIds};
pub use crate::server::{Running, ServeError, Server, Setup};
pub use crate::token::{Token, TokenError};

/// How runs are judged, given the store that they are in: the terms of their page.
pub type MakeTerms = Box<dyn Fn(&Store, &[record::Run]) -> Result<Terms, Trouble> + Send>;

/// The tables of a run as text.
pub type MakeTables = Box<dyn Fn(&record::Run) -> String + Send>;

/// What only the program knows how to make of runs.
pub struct Makers {
    /// The terms that runs are judged by.
    pub terms: MakeTerms,
    /// A run's tables.
    pub tables: MakeTables,
}

impl std::fmt::Debug for Makers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Makers")
    }
}
