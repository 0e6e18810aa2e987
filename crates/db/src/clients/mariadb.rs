//! MariaDB's connection for transactions: a round trip for each statement, which is all its protocol has.

use std::fmt::Write as _;

use chrono::NaiveDateTime;
use mysql::prelude::Queryable;
use mysql::{Conn, Params, Row, Value};
use rust_decimal::Decimal;
use tpcc::{
    Datum, Dialect, ErrorClass, FieldKind, Fields, Flight, Intent, Reply, Session, SessionError,
    Statement, TableText,
};

use super::{LoadClient, exact};
use crate::error::with_causes;

/// Bytes of a statement that inserts many rows; a server takes 16 MiB as it comes.
const STATEMENT_BYTES: usize = 256 << 10;

pub(crate) struct MariadbLoad {
    conn: Conn,
    statements: Vec<(mysql::Statement, &'static [FieldKind])>,
}

impl MariadbLoad {
    /// * `conn`: counts the rows that an update found, whether or not they changed.
    pub(crate) fn new(conn: Conn) -> Self {
        Self { conn, statements: Vec::new() }
    }

    fn call(&mut self, statement: usize, fields: &[Datum]) -> Result<Reply, mysql::Error> {
        let Some((statement, columns)) = self.statements.get(statement) else {
            return Ok(Reply::default());
        };
        let parameters = Params::Positional(fields.iter().map(value).collect());
        let mut found = self.conn.exec_iter(statement, parameters)?;
        if columns.is_empty() {
            return Ok(Reply { rows: Vec::new(), affected: found.affected_rows() });
        }
        let rows = found.by_ref().map(|row| {
            let row = row?;
            let fields = columns.iter().enumerate().map(|(at, kind)| datum(&row, at, *kind));
            Ok(fields.collect())
        });
        Ok(Reply { rows: rows.collect::<Result<_, mysql::Error>>()?, affected: 0 })
    }
}

impl Session for MariadbLoad {
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        let prepare = |statement: &Statement| {
            Ok((self.conn.prep(&statement.text).map_err(said)?, statement.columns))
        };
        self.statements = statements.iter().map(prepare).collect::<Result<_, SessionError>>()?;
        Ok(())
    }

    fn begin(&mut self, intent: Intent) -> Result<(), SessionError> {
        self.batch(match intent {
            Intent::Read => "start transaction read only",
            Intent::Write => "begin",
        })
    }

    fn fly(&mut self, flight: &Flight, replies: &mut Vec<Reply>) -> Result<(), SessionError> {
        for (statement, fields) in flight.calls() {
            replies.push(self.call(statement, fields).map_err(said)?);
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.batch("commit")
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.batch("rollback")
    }
}

impl LoadClient for MariadbLoad {
    fn dialect(&self) -> Dialect {
        Dialect::MariaDb
    }

    fn batch(&mut self, sql: &str) -> Result<(), SessionError> {
        // It has no empty statement.
        if sql.is_empty() {
            return Ok(());
        }
        self.conn.query_drop(sql).map_err(said)
    }

    fn count(&mut self, sql: &str) -> Result<i64, SessionError> {
        let found: Option<i64> = self.conn.query_first(sql).map_err(said)?;
        Ok(found.unwrap_or(0))
    }

    fn insert(
        &mut self,
        table: &TableText,
        rows: &mut dyn Iterator<Item = Fields>,
    ) -> Result<(), SessionError> {
        let head = format!("insert into {} values ", table.name);
        let mut sql = head.clone();
        for row in rows {
            let before = if sql.len() == head.len() { "(" } else { ",(" };
            sql.push_str(before);
            for (at, field) in row.iter().enumerate() {
                sql.push_str(if at == 0 { "" } else { "," });
                literal(field, &mut sql);
            }
            sql.push(')');
            if sql.len() > STATEMENT_BYTES {
                self.batch(&sql)?;
                sql.truncate(head.len());
            }
        }
        if sql.len() > head.len() { self.batch(&sql) } else { Ok(()) }
    }
}

/// Rows of the population have letters and digits alone.
fn literal(field: &Datum, sql: &mut String) {
    // Writing to a string does not fail.
    let _ = match field {
        Datum::Null => write!(sql, "null"),
        Datum::Int(n) => write!(sql, "{n}"),
        Datum::Money(money) => write!(sql, "{money}"),
        Datum::Rate(rate) => write!(sql, "{}", exact::rate(*rate)),
        Datum::Date(date) => write!(sql, "'{}'", exact::date(*date)),
        Datum::Text(text) => write!(sql, "'{}'", text.replace(['\'', '\\'], "")),
    };
}

fn said(error: mysql::Error) -> SessionError {
    let class = match &error {
        mysql::Error::MySqlError(error) => match error.code {
            1213 => ErrorClass::Deadlock,
            // Waited too long for a row.
            1205 => ErrorClass::Busy,
            1053 | 1927 => ErrorClass::Gone,
            _ => ErrorClass::Other,
        },
        mysql::Error::IoError(_) | mysql::Error::DriverError(_) => ErrorClass::Gone,
        _ => ErrorClass::Other,
    };
    SessionError { class, message: with_causes(&error) }
}

fn value(field: &Datum) -> Value {
    match field {
        Datum::Null => Value::NULL,
        Datum::Int(n) => Value::Int(*n),
        Datum::Money(money) => exact::money(*money).into(),
        Datum::Rate(rate) => exact::rate(*rate).into(),
        Datum::Date(date) => exact::date(*date).into(),
        Datum::Text(text) => Value::from(text),
    }
}

fn datum(row: &Row, at: usize, kind: FieldKind) -> Datum {
    fn get<T: mysql::prelude::FromValue>(row: &Row, at: usize) -> Option<T> {
        row.get_opt(at)?.ok()
    }
    let decimal = |kind| get::<Decimal>(row, at).and_then(|n| exact::from_decimal(n, kind));
    match kind {
        FieldKind::Text => get::<String>(row, at).into(),
        FieldKind::Date => get::<NaiveDateTime>(row, at).map_or(Datum::Null, exact::from_date),
        // A sum of integers is a decimal there.
        FieldKind::Int => match get::<i64>(row, at) {
            Some(n) => Datum::Int(n),
            None => decimal(kind).unwrap_or(Datum::Null),
        },
        FieldKind::Money | FieldKind::Rate => decimal(kind).unwrap_or(Datum::Null),
    }
}
