//! Throwaway servers in directories of their own.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use db::{DbError, Engine, Plan, Server, look};
use units::Bytes;

pub const KEY: u64 = 0xfeed_0001;

/// A directory that the user of a server can pass.
pub fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    directory
}

pub fn plan(engine: Engine, on: &Path) -> Plan {
    Plan {
        engine,
        on: on.into(),
        log_on: None,
        memory: Bytes::mib(32),
        data: Bytes::ZERO,
        key: KEY,
    }
}

/// A running server; `None` where it is not installed.
pub fn started(plan: &Plan) -> Option<Server> {
    let ready = match look(plan) {
        Err(DbError::NoProgram { program, .. }) => {
            println!("skipped: no {program}");
            return None;
        }
        Err(DbError::NoRoom { .. }) => {
            println!("skipped: no room");
            return None;
        }
        ready => ready.unwrap(),
    };
    let since = Instant::now();
    let server = ready.start(8, &|| false).unwrap().unwrap();
    println!("{} ready after {:?}", plan.engine, since.elapsed());
    Some(server)
}
