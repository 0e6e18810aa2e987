//! PostgreSQL's connection for transactions: a round trip for each statement, as applications do.

use std::error::Error;

use bytes::BytesMut;
use chrono::NaiveDateTime;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::error::SqlState;
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Row};
use rust_decimal::Decimal;
use tpcc::{
    Datum, Dialect, ErrorClass, FieldKind, Fields, Flight, Intent, Reply, Session, SessionError,
    Statement, TableText,
};

use super::{LoadClient, exact};
use crate::error::with_causes;

pub(crate) struct PostgresLoad {
    client: Client,
    statements: Vec<(postgres::Statement, &'static [FieldKind])>,
}

impl PostgresLoad {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, statements: Vec::new() }
    }

    fn call(&mut self, statement: usize, fields: &[Datum]) -> Result<Reply, postgres::Error> {
        let Some((statement, columns)) = self.statements.get(statement) else {
            return Ok(Reply::default());
        };
        let values: Vec<Parameter<'_>> = fields.iter().map(Parameter).collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        if columns.is_empty() {
            let affected = self.client.execute(statement, &values)?;
            return Ok(Reply { rows: Vec::new(), affected });
        }
        let found = self.client.query(statement, &values)?;
        let rows = found.iter().map(|row| {
            let fields = columns.iter().enumerate().map(|(at, kind)| datum(row, at, *kind));
            fields.collect::<Result<Fields, postgres::Error>>()
        });
        Ok(Reply { rows: rows.collect::<Result<_, _>>()?, affected: 0 })
    }
}

impl Session for PostgresLoad {
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        let prepare = |statement: &Statement| {
            Ok((self.client.prepare(&statement.text).map_err(said)?, statement.columns))
        };
        self.statements = statements.iter().map(prepare).collect::<Result<_, SessionError>>()?;
        Ok(())
    }

    fn begin(&mut self, intent: Intent) -> Result<(), SessionError> {
        self.batch(match intent {
            Intent::Read => "begin read only",
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

impl LoadClient for PostgresLoad {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn batch(&mut self, sql: &str) -> Result<(), SessionError> {
        self.client.batch_execute(sql).map_err(said)
    }

    fn count(&mut self, sql: &str) -> Result<i64, SessionError> {
        self.client.query_one(sql, &[]).and_then(|row| row.try_get(0)).map_err(said)
    }

    fn insert(
        &mut self,
        table: &TableText,
        rows: &mut dyn Iterator<Item = Fields>,
    ) -> Result<(), SessionError> {
        let name = table.name;
        let like = self.client.prepare(&format!("select * from {name}")).map_err(said)?;
        let types: Vec<Type> = like.columns().iter().map(|column| column.type_().clone()).collect();
        let copy = format!("copy {name} from stdin (format binary)");
        let mut writer = BinaryCopyInWriter::new(self.client.copy_in(&copy).map_err(said)?, &types);
        for row in rows {
            let values: Vec<Parameter<'_>> = row.iter().map(Parameter).collect();
            writer.write_raw(&values).map_err(said)?;
        }
        writer.finish().map(drop).map_err(said)
    }
}

fn said(error: postgres::Error) -> SessionError {
    let class = match error.code() {
        Some(&SqlState::T_R_DEADLOCK_DETECTED) => ErrorClass::Deadlock,
        // Also of a row that another session has deleted and inserted meanwhile.
        Some(&SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::UNIQUE_VIOLATION) => {
            ErrorClass::Serialization
        }
        Some(&SqlState::ADMIN_SHUTDOWN | &SqlState::CRASH_SHUTDOWN) => ErrorClass::Gone,
        None if error.is_closed() => ErrorClass::Gone,
        _ => ErrorClass::Other,
    };
    SessionError { class, message: with_causes(&error) }
}

/// A field as the type that the server expects.
#[derive(Debug)]
struct Parameter<'a>(&'a Datum);

impl ToSql for Parameter<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            Datum::Null => Ok(IsNull::Yes),
            Datum::Int(n) if *ty == Type::INT4 => i32::try_from(*n)?.to_sql(ty, out),
            Datum::Int(n) if *ty == Type::NUMERIC => Decimal::from(*n).to_sql(ty, out),
            Datum::Int(n) if *ty == Type::INT8 => n.to_sql(ty, out),
            Datum::Money(money) if *ty == Type::NUMERIC => exact::money(*money).to_sql(ty, out),
            Datum::Rate(rate) if *ty == Type::NUMERIC => exact::rate(*rate).to_sql(ty, out),
            Datum::Date(date) if *ty == Type::TIMESTAMP => exact::date(*date).to_sql(ty, out),
            Datum::Text(text) if <&str as ToSql>::accepts(ty) => text.to_sql(ty, out),
            other => Err(format!("{other:?} for a parameter of type {ty}").into()),
        }
    }

    fn accepts(_ty: &Type) -> bool {
        // By value: see above.
        true
    }

    to_sql_checked!();
}

fn datum(row: &Row, at: usize, kind: FieldKind) -> Result<Datum, postgres::Error> {
    fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<Option<T>, postgres::Error> {
        row.try_get(at)
    }
    let ty = row.columns()[at].type_();
    Ok(match kind {
        FieldKind::Text => get::<String>(row, at)?.into(),
        FieldKind::Date => get::<NaiveDateTime>(row, at)?.map_or(Datum::Null, exact::from_date),
        FieldKind::Int if *ty == Type::INT4 => {
            get::<i32>(row, at)?.map_or(Datum::Null, |n| Datum::Int(n.into()))
        }
        FieldKind::Int if *ty == Type::INT8 => get::<i64>(row, at)?.map_or(Datum::Null, Datum::Int),
        FieldKind::Int | FieldKind::Money | FieldKind::Rate => get::<Decimal>(row, at)?
            .and_then(|decimal| exact::from_decimal(decimal, kind))
            .unwrap_or(Datum::Null),
    })
}
