//! The schema's versions. `user_version` is the number of the last migration applied; `application_id`
//! marks the file as ours.

use rusqlite::{Connection, TransactionBehavior};

use crate::{Store, StoreError, seal};

/// In order; only ever added to.
const MIGRATIONS: [&str; 19] = [
    include_str!("../migrations/0001_runs.sql"),
    include_str!("../migrations/0002_rounds.sql"),
    include_str!("../migrations/0003_looks.sql"),
    include_str!("../migrations/0004_alignment.sql"),
    include_str!("../migrations/0005_imported.sql"),
    include_str!("../migrations/0006_parts.sql"),
    include_str!("../migrations/0007_targets.sql"),
    include_str!("../migrations/0008_controls.sql"),
    include_str!("../migrations/0009_closing_sync.sql"),
    include_str!("../migrations/0010_studies.sql"),
    include_str!("../migrations/0011_stack.sql"),
    include_str!("../migrations/0012_models.sql"),
    include_str!("../migrations/0013_stack_once.sql"),
    include_str!("../migrations/0014_load.sql"),
    include_str!("../migrations/0015_checksums.sql"),
    include_str!("../migrations/0016_seals.sql"),
    include_str!("../migrations/0017_marks.sql"),
    include_str!("../migrations/0018_no_mark.sql"),
    include_str!("../migrations/0019_counters.sql"),
];
/// The schema this program reads and writes.
pub(crate) const KNOWN: i64 = MIGRATIONS.len() as i64;
/// From this schema on runs have seals.
const SEALED: i64 = 16;
/// "PLIM".
pub(crate) const APPLICATION_ID: i64 = 0x504c_494d;

impl Store {
    /// Schema of the file: 0 for a new, empty one. Refuses files of others and of later versions.
    pub(crate) fn schema(&self) -> Result<i64, StoreError> {
        // In one snapshot: another process may be making the store just now.
        let snapshot = self.connection.unchecked_transaction().map_err(|e| self.sql(e))?;
        let found = |name| integer(&snapshot, name).map_err(|e| self.sql(e));
        let version = found("PRAGMA user_version")?;
        let is_blank = || Ok(found("SELECT count(*) FROM sqlite_schema")? == 0);
        match found("PRAGMA application_id")? {
            // Tables and version come in one transaction: who has only one of them is not ours.
            APPLICATION_ID if version > 0 || (version == 0 && is_blank()?) => {}
            0 if version == 0 && is_blank()? => return Ok(0),
            _ => return Err(StoreError::NotAStore(self.path.clone())),
        }
        if version > KNOWN {
            return Err(StoreError::Newer {
                path: self.path.clone(),
                found: version,
                known: KNOWN,
            });
        }
        Ok(version)
    }

    /// Applies what is missing, all in one transaction.
    ///
    /// * `found`: the schema before anything was written.
    pub(crate) fn migrate(&mut self, found: i64) -> Result<(), StoreError> {
        if found == KNOWN {
            return Ok(());
        }
        let path = self.path.clone();
        let failed = |error| StoreError::sql(&path, error);
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        // Again, now that nobody else can write: another process may have been faster.
        let version = integer(&transaction, "PRAGMA user_version").map_err(failed)?;
        if version >= KNOWN {
            return Ok(());
        }
        for migration in MIGRATIONS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.execute_batch(migration).map_err(failed)?;
        }
        if version < SEALED {
            seal_all(&transaction).map_err(failed)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
        transaction.pragma_update(None, "user_version", KNOWN).map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

/// Seals what was stored before there were seals.
fn seal_all(connection: &Connection) -> rusqlite::Result<()> {
    let mut runs = connection.prepare("SELECT number FROM run")?;
    let runs = runs.query_map([], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    runs.into_iter().try_for_each(|run| seal::seal_as_found(connection, run))?;
    seal::seal_calibrations(connection)
}

fn integer(connection: &Connection, query: &str) -> rusqlite::Result<i64> {
    connection.query_row(query, [], |row| row.get(0))
}
