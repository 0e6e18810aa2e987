//! Connections that play transactions, what is loaded before, and what must hold afterwards.

mod mariadb;
mod postgres;
mod sqlite;

use tpcc::{Dialect, Fields, SessionError, TableText, Workload};

pub(crate) use self::mariadb::MariadbLoad;
pub(crate) use self::postgres::PostgresLoad;
pub(crate) use self::sqlite::SqliteLoad;
use crate::DbError;

/// A connection for transactions.
pub trait LoadClient: tpcc::Session + Send {
    /// The language of its database.
    fn dialect(&self) -> Dialect;

    /// Executes statements without parameters, one or several.
    fn batch(&mut self, sql: &str) -> Result<(), SessionError>;

    /// The integer that a query answers.
    fn count(&mut self, sql: &str) -> Result<i64, SessionError>;

    /// Inserts rows of a table, by the fastest means of the engine, into the open transaction.
    fn insert(
        &mut self,
        table: &TableText,
        rows: &mut dyn Iterator<Item = Fields>,
    ) -> Result<(), SessionError>;
}

/// A consistency condition of a load that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name: the number in TPC-C's specification.
    pub condition: &'static str,
    /// What it demands.
    pub demand: &'static str,
    /// How many rows break it.
    pub rows: i64,
}

/// Rows between two looks at the operator.
const ROWS: u64 = 2000;

/// Makes the tables and fills them; false if it was stopped.
///
/// * `tell`: is given the rows that are in and those that there will be; false stops.
pub(crate) fn load(
    client: &mut dyn LoadClient,
    workload: &dyn Workload,
    tell: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<bool, DbError> {
    let failed = || DbError::query("load the database");
    let dialect = client.dialect();
    let all = workload.count();
    let (mut done, mut goes_on) = (0, true);
    client.batch(before(dialect)).map_err(failed())?;
    for (at, table) in workload.tables().iter().enumerate() {
        // PostgreSQL writes no log of what is copied into a table of the same transaction. In MariaDB a
        // new table ends the transaction.
        let [first, second] = match dialect {
            Dialect::Postgres => ["begin".to_owned(), table.create(dialect)],
            _ => [table.create(dialect), "begin".to_owned()],
        };
        client.batch(&first).map_err(failed())?;
        client.batch(&second).map_err(failed())?;
        for part in 1..=workload.parts() {
            let mut rows = workload.rows(at, part).take_while(|_| {
                done += 1;
                goes_on = goes_on && (done % ROWS > 0 || tell(done, all));
                goes_on
            });
            client.insert(table, &mut rows).map_err(failed())?;
            if !goes_on {
                client.batch("rollback").map_err(failed())?;
                return Ok(false);
            }
        }
        client.batch("commit").map_err(failed())?;
        for sql in table.finish(dialect) {
            client.batch(&sql).map_err(failed())?;
        }
    }
    client.batch(&after(dialect, &workload.tables())).map_err(failed())?;
    Ok(tell(all, all))
}

/// A load that ends early is begun anew: nothing of it need be durable before its end.
const fn before(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "pragma synchronous = off",
        Dialect::Postgres | Dialect::MariaDb => "",
    }
}

/// Statistics for who plans queries, and nothing of the load left to be written later.
fn after(dialect: Dialect, tables: &[TableText]) -> String {
    match dialect {
        Dialect::Sqlite => {
            "analyze; pragma wal_checkpoint(truncate); pragma synchronous = full".to_owned()
        }
        Dialect::Postgres => "vacuum analyze".to_owned(),
        Dialect::MariaDb => {
            let names: Vec<_> = tables.iter().map(|table| table.name).collect();
            format!("analyze table {}", names.join(", "))
        }
    }
}

/// The conditions that do not hold; no transaction may be open.
pub(crate) fn violations(
    client: &mut dyn LoadClient,
    workload: &dyn Workload,
) -> Result<Vec<Violation>, DbError> {
    let failed = || DbError::query("check the database");
    let dialect = client.dialect();
    for sql in workload.prepare_conditions(dialect) {
        client.batch(&sql).map_err(failed())?;
    }
    let mut found = Vec::new();
    for condition in workload.conditions(dialect) {
        let rows = client.count(&condition.sql).map_err(failed())?;
        if rows != 0 {
            let tpcc::Condition { name, demand, .. } = condition;
            found.push(Violation { condition: name, demand, rows });
        }
    }
    Ok(found)
}

/// What the two servers speak of in decimals and dates.
mod exact {
    use chrono::{DateTime, NaiveDateTime};
    use rust_decimal::Decimal;
    use rust_decimal::prelude::ToPrimitive;
    use tpcc::{Cents, Datum, FieldKind, Seconds, TenThousandths};

    pub(super) fn money(money: Cents) -> Decimal {
        Decimal::new(money.0, 2)
    }

    pub(super) fn rate(rate: TenThousandths) -> Decimal {
        Decimal::new(rate.0, 4)
    }

    pub(super) fn date(date: Seconds) -> NaiveDateTime {
        DateTime::from_timestamp(date.0, 0).unwrap_or_default().naive_utc()
    }

    pub(super) fn from_date(date: NaiveDateTime) -> Datum {
        Datum::Date(Seconds(date.and_utc().timestamp()))
    }

    /// A column of that kind; none if it does not hold so much.
    pub(super) fn from_decimal(mut decimal: Decimal, kind: FieldKind) -> Option<Datum> {
        let digits = match kind {
            FieldKind::Money => 2,
            FieldKind::Rate => 4,
            FieldKind::Int | FieldKind::Date | FieldKind::Text => 0,
        };
        decimal.rescale(digits);
        let mantissa = decimal.mantissa().to_i64()?;
        Some(match kind {
            FieldKind::Money => Datum::Money(Cents(mantissa)),
            FieldKind::Rate => Datum::Rate(TenThousandths(mantissa)),
            FieldKind::Int | FieldKind::Date | FieldKind::Text => Datum::Int(mantissa),
        })
    }
}
