//! Throwaway database servers: made in a directory of their own, asked to commit one row at a time,
//! counted, and removed with everything that they wrote.
//!
//! [`look`] says what would be done and changes nothing. [`Ready::start`] makes a directory under the
//! one that the operator named, and a server in it that listens on a socket only. A [`DbSession`] commits
//! one row at a time. [`Server::stop`], or dropping it, removes the directory. A server does not
//! outlive the program: the kernel ends it. What a killed program leaves is the directory, which
//! [`left_behind`] finds by its mark and [`remove`] removes.

mod clients;
mod engine;
mod error;
mod lock_watch;
mod mariadb;
mod named;
mod place;
mod postgres;
mod process;
mod programs;
mod row;
mod server;
mod site;
mod sqlite;
mod turns;
mod witness;

pub use clients::{LoadClient, Violation};
pub use engine::{Engine, Plan, Ready, look, look_at_server, observe};
pub use error::{DbError, SessionError};
pub use named::{ServedLoad, ServerUrl};
pub use place::{LeftDatabase, left_behind, remove};
pub use server::{DbSession, Server, ServerCounter};
pub use witness::{CommitWitness, Surviving};
