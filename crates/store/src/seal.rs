//! Checksums over rows. SQLite keeps none: a flipped bit in a number would be read as another number,
//! and a row whose page lost it as none at all.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use xxhash_rust::xxh3::xxh3_64;

use crate::read::DamagedRun;
use crate::{Store, StoreError};

/// What is summed up by itself, since it is read by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Header,
    Imported,
    Cells,
    Plans,
    Warnings,
    Visits,
    Measured,
}

const PARTS: [(Part, &str); 7] = [
    (Part::Header, "header"),
    (Part::Imported, "import"),
    (Part::Cells, "cells"),
    (Part::Plans, "streams of the cells"),
    (Part::Warnings, "warnings"),
    (Part::Visits, "visits"),
    (Part::Measured, "measurements"),
];

/// A table, as far as it is sealed: columns that later migrations add are not, until the seals get a
/// version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    name: &'static str,
    columns: usize,
    part: Part,
}

const fn table(name: &'static str, columns: usize, part: Part) -> Table {
    Table { name, columns, part }
}

pub(crate) const RUN: Table = table("run", 43, Part::Header);
pub(crate) const IMPORTED: Table = table("imported", 8, Part::Imported);
pub(crate) const CELL: Table = table("cell", 5, Part::Cells);
pub(crate) const CELL_STREAM: Table = table("cell_stream", 8, Part::Plans);
pub(crate) const RUN_WARNING: Table = table("warning", 5, Part::Warnings);
pub(crate) const VISIT: Table = table("visit", 17, Part::Visits);
pub(crate) const VISIT_STREAM: Table = table("visit_stream", 9, Part::Measured);
pub(crate) const OP: Table = table("op", 19, Part::Measured);
pub(crate) const REPORTED: Table = table("reported", 14, Part::Measured);
pub(crate) const WORKER: Table = table("worker", 13, Part::Measured);
pub(crate) const LEDGER: Table = table("ledger", 13, Part::Measured);
pub(crate) const COUNTER: Table = table("counter", 5, Part::Measured);
pub(crate) const WARNING: Table = table("warning", 5, Part::Measured);
const CALIBRATION: Table = table("calibration", 5, Part::Header);

/// Which warnings are of the run as a whole.
const OF_RUN: &str = "run = ?1 AND visit IS NULL";

/// All that hangs on a visit by its key.
const OF_VISIT: [Table; 7] = [VISIT_STREAM, OP, REPORTED, WORKER, LEDGER, COUNTER, WARNING];

/// The binary columns of a visit, which are measured; the others say which visit it is.
const VISIT_BLOBS: [usize; 2] = [8, 9];

/// The sum of each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums([u64; PARTS.len()]);

impl Sums {
    /// Adds a row of `SELECT *`.
    pub(crate) fn add(&mut self, table: Table, row: &Row) -> rusqlite::Result<()> {
        if table.part != Part::Visits {
            self.put(table.part, of_columns(table.name, row, 0..table.columns)?);
            return Ok(());
        }
        let plain = (0..table.columns).filter(|column| !VISIT_BLOBS.contains(column));
        self.put(Part::Visits, of_columns(table.name, row, plain)?);
        Ok(())
    }

    /// Adds the binary columns of a visit.
    pub(crate) fn add_blobs(&mut self, row: &Row) -> rusqlite::Result<()> {
        let key_and_blobs = [0].into_iter().chain(VISIT_BLOBS);
        self.put(Part::Measured, of_columns("completions", row, key_and_blobs)?);
        Ok(())
    }

    fn put(&mut self, part: Part, sum: u64) {
        if let Some(slot) = self.0.get_mut(part as usize) {
            *slot = slot.wrapping_add(sum);
        }
    }

    fn plus(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(slot, more)| *slot = slot.wrapping_add(more));
        self
    }

    fn minus(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(slot, less)| *slot = slot.wrapping_sub(less));
        self
    }

    /// Adds all rows of a table that `which` picks.
    pub(crate) fn add_all(
        &mut self,
        connection: &Connection,
        table: Table,
        which: &str,
        keys: &[i64],
    ) -> rusqlite::Result<()> {
        let query = format!("SELECT * FROM {} WHERE {which}", table.name);
        let mut statement = connection.prepare_cached(&query)?;
        let mut rows = statement.query(rusqlite::params_from_iter(keys))?;
        while let Some(row) = rows.next()? {
            self.add(table, row)?;
            if table.part == Part::Visits {
                self.add_blobs(row)?;
            }
        }
        Ok(())
    }
}

/// Of the table's name and of what the columns hold, types included.
fn of_columns(
    table: &str,
    row: &Row,
    columns: impl Iterator<Item = usize>,
) -> rusqlite::Result<u64> {
    let mut bytes = Vec::with_capacity(512);
    bytes.extend_from_slice(table.as_bytes());
    for column in columns {
        match row.get_ref(column)? {
            ValueRef::Null => bytes.push(0),
            ValueRef::Integer(n) => {
                bytes.push(1);
                bytes.extend_from_slice(&n.to_le_bytes());
            }
            ValueRef::Real(x) => {
                bytes.push(2);
                bytes.extend_from_slice(&x.to_bits().to_le_bytes());
            }
            ValueRef::Text(text) => with_length(&mut bytes, 3, text),
            ValueRef::Blob(blob) => with_length(&mut bytes, 4, blob),
        }
    }
    Ok(xxh3_64(&bytes))
}

fn with_length(bytes: &mut Vec<u8>, kind: u8, more: &[u8]) {
    bytes.push(kind);
    bytes.extend_from_slice(&(more.len() as u64).to_le_bytes());
    bytes.extend_from_slice(more);
}

/// Of one visit with all that hangs on it.
fn of_visit(connection: &Connection, key: i64) -> rusqlite::Result<Sums> {
    let mut sums = Sums::default();
    sums.add_all(connection, VISIT, "visit = ?1", &[key])?;
    for table in OF_VISIT {
        sums.add_all(connection, table, "visit = ?1", &[key])?;
    }
    Ok(sums)
}

fn of_run(connection: &Connection, run: i64) -> rusqlite::Result<Sums> {
    let mut sums = Sums::default();
    sums.add_all(connection, RUN, "number = ?1", &[run])?;
    for table in [IMPORTED, CELL, CELL_STREAM] {
        sums.add_all(connection, table, "run = ?1", &[run])?;
    }
    sums.add_all(connection, RUN_WARNING, OF_RUN, &[run])?;
    let mut visits = connection.prepare_cached("SELECT visit FROM visit WHERE run = ?1")?;
    let keys = visits.query_map([run], |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
    for key in keys {
        sums = sums.plus(of_visit(connection, key)?);
    }
    Ok(sums)
}

/// What is stored about a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seal {
    is_sealed: bool,
    sums: Sums,
    /// As `list` counts them.
    made: i64,
    warned: i64,
}

/// Visits and warnings of a run, as `list` counts them.
fn counts(connection: &Connection, run: i64) -> rusqlite::Result<(i64, i64)> {
    let query = "SELECT
        (SELECT count(DISTINCT cell || '/' || repeat) FROM visit
             WHERE run = ?1 AND end <> 'interrupted' AND purpose = 'measure'),
        (SELECT count(*) FROM warning WHERE run = ?1)";
    connection.prepare_cached(query)?.query_row([run], |row| Ok((row.get(0)?, row.get(1)?)))
}

impl Seal {
    /// Of a run as it is.
    fn of(connection: &Connection, run: i64) -> rusqlite::Result<Self> {
        let sums = of_run(connection, run)?;
        let (made, warned) = counts(connection, run)?;
        Ok(Self { is_sealed: true, sums, made, warned })
    }

    fn own(&self, run: i64) -> i64 {
        let numbers = [run, i64::from(self.is_sealed), self.made, self.warned];
        let sums = self.sums.0.map(u64::cast_signed);
        let all = numbers.into_iter().chain(sums);
        let bytes: Vec<u8> = all.flat_map(i64::to_le_bytes).collect();
        xxh3_64(&bytes).cast_signed()
    }

    fn write(&self, connection: &Connection, run: i64) -> rusqlite::Result<()> {
        let s = self.sums.0.map(u64::cast_signed);
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO run_seal
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                run,
                self.is_sealed,
                s[0],
                s[1],
                s[2],
                s[3],
                s[4],
                s[5],
                s[6],
                self.made,
                self.warned,
                self.own(run)
            ])
            .map(|_| ())
    }

    /// What is stored; the reason why it cannot be used, if that is so.
    fn read(connection: &Connection, run: i64) -> rusqlite::Result<Result<Self, &'static str>> {
        let mut statement = connection.prepare_cached("SELECT * FROM run_seal WHERE run = ?1")?;
        let found = statement.query_row([run], |row| {
            let mut sums = Sums::default();
            for (column, slot) in (2..).zip(&mut sums.0) {
                *slot = row.get::<_, i64>(column)?.cast_unsigned();
            }
            let (made, warned) = (row.get(9)?, row.get(10)?);
            let seal = Self { is_sealed: row.get::<_, i64>(1)? != 0, sums, made, warned };
            Ok((seal, row.get::<_, i64>(11)?))
        });
        Ok(match found.optional()? {
            None => Err("there is none"),
            Some((seal, own)) if seal.own(run) == own => Ok(seal),
            Some(_) => Err("it was changed itself"),
        })
    }
}

/// Seals a run as it is now; where it cannot be read it stays without.
pub(crate) fn seal_as_found(connection: &Connection, run: i64) -> rusqlite::Result<()> {
    Seal::of(connection, run).unwrap_or_default().write(connection, run)
}

/// Seals a run that was just stored.
pub(crate) fn seal_new(connection: &Connection, run: i64) -> rusqlite::Result<()> {
    Seal::of(connection, run)?.write(connection, run)
}

/// The rows that one change of a run is about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Touched {
    Header,
    Warnings,
    Cell(u32),
    /// With all that hangs on it, by its place among the visits.
    Visit(u32),
}

impl Touched {
    fn sums(self, connection: &Connection, run: i64) -> rusqlite::Result<Sums> {
        let mut sums = Sums::default();
        match self {
            Self::Header => sums.add_all(connection, RUN, "number = ?1", &[run])?,
            Self::Warnings => sums.add_all(connection, RUN_WARNING, OF_RUN, &[run])?,
            Self::Cell(cell) => {
                let keys = [run, i64::from(cell)];
                for table in [CELL, CELL_STREAM] {
                    sums.add_all(connection, table, "run = ?1 AND cell = ?2", &keys)?;
                }
            }
            Self::Visit(order) => {
                let query = "SELECT visit FROM visit WHERE run = ?1 AND position = ?2";
                let mut key = connection.prepare_cached(query)?;
                if let Some(key) =
                    key.query_row([run, i64::from(order)], |r| r.get(0)).optional()?
                {
                    sums = of_visit(connection, key)?;
                }
            }
        }
        Ok(sums)
    }
}

/// Changes a run, and its seal by as much. What was another before stays another: a row that was
/// garbled is not sealed by the next change.
pub(crate) fn changing<T>(
    connection: &Connection,
    run: i64,
    rows: Touched,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let state = || rows.sums(connection, run).and_then(|sums| Ok((sums, counts(connection, run)?)));
    let (before, (made_before, warned_before)) = state()?;
    let done = work()?;
    let (after, (made_after, warned_after)) = state()?;
    if let Ok(seal) = Seal::read(connection, run)? {
        let sums = seal.sums.plus(after).minus(before);
        let made = seal.made.saturating_add(made_after).saturating_sub(made_before);
        let warned = seal.warned.saturating_add(warned_after).saturating_sub(warned_before);
        Seal { sums, made, warned, ..seal }.write(connection, run)?;
    }
    Ok(done)
}

/// The numbers of all calibrations, and whether each is what was written.
fn calibrations(connection: &Connection) -> rusqlite::Result<Vec<(i64, bool)>> {
    let query = "SELECT calibration.*, seal FROM calibration
                 LEFT JOIN calibration_seal USING (number)";
    let mut statement = connection.prepare_cached(query)?;
    let found = statement.query_map([], |row| {
        let sum = of_columns(CALIBRATION.name, row, 0..CALIBRATION.columns)?;
        let written: Option<i64> = row.get(CALIBRATION.columns)?;
        Ok((row.get(0)?, written == Some(sum.cast_signed())))
    })?;
    found.collect()
}

/// Removes calibrations that are not what was written, and seals of lost ones.
pub(crate) fn remove_damaged_calibrations(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM calibration_seal WHERE number NOT IN (SELECT number FROM calibration)",
        [],
    )?;
    for (number, _) in calibrations(connection)?.into_iter().filter(|(_, is_whole)| !is_whole) {
        connection.execute("DELETE FROM calibration WHERE number = ?1", [number])?;
    }
    Ok(())
}

/// Seals calibrations that have none.
pub(crate) fn seal_calibrations(connection: &Connection) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT * FROM calibration WHERE number NOT IN (SELECT number FROM calibration_seal)",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let sum = of_columns(CALIBRATION.name, row, 0..CALIBRATION.columns)?;
        let own = params![row.get::<_, i64>(0)?, sum.cast_signed()];
        connection.execute("INSERT INTO calibration_seal VALUES (?1, ?2)", own)?;
    }
    Ok(())
}

impl Store {
    /// Compares what was read of a run with its seal.
    pub(crate) fn check_parts(
        &self,
        (id, run): (&str, i64),
        found: &Sums,
        parts: &[Part],
    ) -> Result<(), StoreError> {
        let seal = self.seal(id, run)?;
        if !seal.is_sealed {
            return Ok(());
        }
        for ((part, what), (found, written)) in PARTS.iter().zip(found.0.iter().zip(seal.sums.0)) {
            if parts.contains(part) && *found != written {
                let why = format!("their checksum is {found:016x}, but {written:016x} was written");
                return Err(StoreError::bad(&self.path, what, id, why));
            }
        }
        Ok(())
    }

    /// Compares what is counted of a run with its seal.
    pub(crate) fn check_counts(
        &self,
        (id, run): (&str, i64),
        found: (i64, i64),
    ) -> Result<(), StoreError> {
        let seal = self.seal(id, run)?;
        let written = (seal.made, seal.warned);
        if !seal.is_sealed || found == written {
            return Ok(());
        }
        let count = |(made, warned)| format!("{made} visits and {warned} warnings");
        let why = format!("there are {}, but {} were written", count(found), count(written));
        Err(StoreError::bad(&self.path, "number of visits", id, why))
    }

    fn seal(&self, id: &str, run: i64) -> Result<Seal, StoreError> {
        Seal::read(&self.connection, run)
            .map_err(|error| self.sql(error))?
            .map_err(|why| StoreError::bad(&self.path, "checksum", id, why.to_owned()))
    }

    /// Compares the headers of all runs from that number on with their seals, before anything is
    /// concluded from which runs there are: those that are not as they were written, and those that are
    /// lost.
    pub(crate) fn damaged_headers(&self, from: i64) -> Result<Vec<DamagedRun>, StoreError> {
        let failed = |error| self.sql(error);
        let mut statement = self
            .connection
            .prepare_cached("SELECT * FROM run WHERE number >= ?1 ORDER BY number")
            .map_err(failed)?;
        let mut rows = statement.query([from]).map_err(failed)?;
        let mut damaged = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let number: i64 = row.get(0).map_err(failed)?;
            let id = format!("r{number}");
            let mut sums = Sums::default();
            sums.add(RUN, row).map_err(failed)?;
            match self.check_parts((&id, number), &sums, &[Part::Header]) {
                Err(error @ StoreError::BadValue { .. }) => damaged.push((id, error)),
                checked => checked?,
            }
        }
        for number in self.lost()?.into_iter().filter(|run| *run >= from) {
            let id = format!("r{number}");
            damaged.push((id.clone(), self.row_is_lost(&id)));
        }
        Ok(damaged)
    }

    /// The numbers of runs whose rows are lost, and of which something else is left.
    pub(crate) fn lost(&self) -> Result<Vec<i64>, StoreError> {
        let query = "SELECT run FROM run_seal
                     WHERE run NOT IN (SELECT number FROM run) ORDER BY run";
        let failed = |error| self.sql(error);
        let mut statement = self.connection.prepare_cached(query).map_err(failed)?;
        let found = statement.query_map([], |row| row.get(0)).map_err(failed)?;
        found.collect::<Result<_, _>>().map_err(failed)
    }

    /// The number of such a run.
    pub(crate) fn lost_number(&self, id: &str) -> Result<Option<i64>, StoreError> {
        Ok(self.lost()?.into_iter().find(|run| format!("r{run}") == id))
    }

    pub(crate) fn row_is_lost(&self, id: &str) -> StoreError {
        StoreError::bad(&self.path, "header", id, "its row is lost".to_owned())
    }

    /// Compares all calibrations with their seals.
    pub(crate) fn check_calibrations(&self) -> Result<(), StoreError> {
        let failed = |error| self.sql(error);
        let bad = |number: i64, why: &str| {
            Err(StoreError::bad(&self.path, "calibration", &format!("number {number}"), why.into()))
        };
        let found = calibrations(&self.connection).map_err(failed)?;
        if let Some((number, _)) = found.iter().find(|(_, is_whole)| !is_whole) {
            return bad(*number, "its checksum differs from the one that was written");
        }
        let query = "SELECT count(*) FROM calibration_seal";
        let written: i64 =
            self.connection.query_row(query, [], |row| row.get(0)).map_err(failed)?;
        let seen = found.len() as i64;
        if seen == written { Ok(()) } else { bad(seen, "its row is lost") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A migration that adds a column has to give the seals a version.
    #[test]
    fn every_column_is_sealed() {
        let folder = std::env::temp_dir().join(format!("plimsoll-seal-{}", std::process::id()));
        let store = Store::open(&folder.join("plimsoll.db")).unwrap();
        let others = [RUN, IMPORTED, CELL, CELL_STREAM, VISIT, CALIBRATION];
        for table in OF_VISIT.into_iter().chain(others) {
            let query = format!("SELECT * FROM {}", table.name);
            let columns = store.connection.prepare(&query).unwrap().column_count();
            assert_eq!(columns, table.columns, "{}", table.name);
        }
        drop(store);
        let _ = std::fs::remove_dir_all(folder);
    }
}
