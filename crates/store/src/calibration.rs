//! What a machine's own noise is, as `calibrate` found it.

use rusqlite::{OptionalExtension, params};

use crate::{Store, StoreError, seal};

/// A stored calibration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCalibration {
    /// Which machine it holds for: words that the caller chose.
    pub machine: String,
    /// Wall clock at the start, ns since 1970.
    pub started_unix_ns: i64,
    /// Version of the body.
    pub version: u32,
    /// JSON.
    pub body: String,
}

impl Store {
    /// Adds one. Older ones of the same machine stay; those that are damaged go, since nobody can
    /// use them.
    pub fn add_calibration(&mut self, calibration: &StoredCalibration) -> Result<(), StoreError> {
        self.transaction(|t| {
            seal::remove_damaged_calibrations(t)?;
            t.execute(
                "INSERT INTO calibration (machine, started_unix_ns, version, body)
                 VALUES (?1, ?2, ?3, ?4)",
                params![
                    calibration.machine,
                    calibration.started_unix_ns,
                    calibration.version,
                    calibration.body
                ],
            )?;
            seal::seal_calibrations(t)
        })
    }

    /// The newest of a machine.
    pub fn calibration(&self, machine: &str) -> Result<Option<StoredCalibration>, StoreError> {
        // Not by the index: one flipped bit in that would hide a calibration. Its rows are checked.
        self.newest("+machine = ?1", machine)
    }

    /// The newest of all machines whose words begin so.
    pub fn calibration_of_any(&self, start: &str) -> Result<Option<StoredCalibration>, StoreError> {
        self.newest("substr(machine, 1, length(?1)) = ?1", start)
    }

    fn newest(&self, which: &str, words: &str) -> Result<Option<StoredCalibration>, StoreError> {
        self.check_calibrations()?;
        self.connection
            .query_row(
                &format!(
                    "SELECT machine, started_unix_ns, version, body FROM calibration NOT INDEXED
                     WHERE {which} ORDER BY number DESC LIMIT 1"
                ),
                [words],
                |row| {
                    Ok(StoredCalibration {
                        machine: row.get(0)?,
                        started_unix_ns: row.get(1)?,
                        version: row.get(2)?,
                        body: row.get(3)?,
                    })
                },
            )
            .optional()
            .map_err(|e| self.sql(e))
    }
}
