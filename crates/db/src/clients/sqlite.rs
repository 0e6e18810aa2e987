//! SQLite's connection for transactions. Who writes waits for its turn before it begins: SQLite has one
//! writer at a time.

use std::sync::Arc;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode, params_from_iter};
use tpcc::{
    Cents, Datum, Dialect, ErrorClass, FieldKind, Fields, Flight, Intent, Reply, Seconds, Session,
    SessionError, Statement, TableText, TenThousandths,
};

use super::LoadClient;
use crate::turns::{Served, Turns};

/// Statements of the five transactions, and some.
const PREPARED: usize = 100;

pub(crate) struct SqliteLoad {
    database: Connection,
    turns: Arc<Turns>,
    /// While it writes.
    turn: Option<Served>,
    statements: Vec<Statement>,
}

impl SqliteLoad {
    pub(crate) fn new(database: Connection, turns: Arc<Turns>) -> Self {
        database.set_prepared_statement_cache_capacity(PREPARED);
        Self { database, turns, turn: None, statements: Vec::new() }
    }

    fn call(&self, statement: &Statement, fields: &[Datum]) -> rusqlite::Result<Reply> {
        let mut prepared = self.database.prepare_cached(&statement.text)?;
        let parameters = params_from_iter(fields.iter().map(value));
        if statement.columns.is_empty() {
            let affected = prepared.execute(parameters)? as u64;
            return Ok(Reply { rows: Vec::new(), affected });
        }
        let mut found = prepared.query(parameters)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            let field = |(at, kind): (usize, &FieldKind)| {
                let value = row.get_ref(at)?;
                let wrong =
                    || rusqlite::Error::InvalidColumnType(at, String::new(), value.data_type());
                datum(value, *kind).ok_or_else(wrong)
            };
            let fields = statement.columns.iter().enumerate().map(field);
            rows.push(fields.collect::<rusqlite::Result<_>>()?);
        }
        Ok(Reply { rows, affected: 0 })
    }

    fn end(&mut self, how: &str) -> Result<(), SessionError> {
        let done = match self.database.is_autocommit() {
            true => Ok(()),
            false => self.database.execute_batch(how).map_err(said),
        };
        // A commit that failed is rolled back next, in the same turn.
        if self.database.is_autocommit() {
            self.turn = None;
        }
        done
    }
}

impl Session for SqliteLoad {
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        self.statements = statements.to_vec();
        for statement in statements {
            self.database.prepare_cached(&statement.text).map_err(said)?;
        }
        Ok(())
    }

    fn begin(&mut self, intent: Intent) -> Result<(), SessionError> {
        let how = match intent {
            Intent::Read => "begin",
            Intent::Write => {
                self.turn = Some(self.turns.wait());
                "begin immediate"
            }
        };
        self.database.execute_batch(how).map_err(said)
    }

    fn fly(&mut self, flight: &Flight, replies: &mut Vec<Reply>) -> Result<(), SessionError> {
        for (statement, fields) in flight.calls() {
            let Some(statement) = self.statements.get(statement) else { break };
            replies.push(self.call(statement, fields).map_err(said)?);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.end("commit")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        let done = self.end("rollback");
        self.turn = None;
        done
    }
}

impl LoadClient for SqliteLoad {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn batch(&mut self, sql: &str) -> Result<(), SessionError> {
        self.database.execute_batch(sql).map_err(said)
    }

    fn count(&mut self, sql: &str) -> Result<i64, SessionError> {
        self.database.query_row(sql, [], |row| row.get(0)).map_err(said)
    }

    fn insert(
        &mut self,
        table: &TableText,
        rows: &mut dyn Iterator<Item = Fields>,
    ) -> Result<(), SessionError> {
        let mut insert = self.database.prepare(&table.insert(Dialect::Sqlite)).map_err(said)?;
        for row in rows {
            insert.execute(params_from_iter(row.iter().map(value))).map_err(said)?;
        }
        Ok(())
    }
}

fn said(error: rusqlite::Error) -> SessionError {
    let class = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorClass::Busy,
        _ => ErrorClass::Other,
    };
    SessionError { class, message: error.to_string() }
}

fn value(field: &Datum) -> Value {
    match field {
        Datum::Null => Value::Null,
        Datum::Int(n) => Value::Integer(*n),
        Datum::Money(money) => Value::Integer(money.0),
        Datum::Rate(rate) => Value::Integer(rate.0),
        Datum::Date(date) => Value::Integer(date.0),
        Datum::Text(text) => Value::Text(text.clone()),
    }
}

fn datum(value: ValueRef<'_>, kind: FieldKind) -> Option<Datum> {
    Some(match (value, kind) {
        (ValueRef::Null, _) => Datum::Null,
        (ValueRef::Integer(n), FieldKind::Int) => Datum::Int(n),
        (ValueRef::Integer(n), FieldKind::Money) => Datum::Money(Cents(n)),
        (ValueRef::Integer(n), FieldKind::Rate) => Datum::Rate(TenThousandths(n)),
        (ValueRef::Integer(n), FieldKind::Date) => Datum::Date(Seconds(n)),
        (ValueRef::Text(text), FieldKind::Text) => Datum::from(std::str::from_utf8(text).ok()?),
        _ => return None,
    })
}
