//! The seam over SQLite, and a place for bugs between the transactions and the database.

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, params_from_iter};
use tpcc::{
    Cents, Datum, Dialect, ErrorClass, FieldKind, Fields, Flight, Intent, Population, Reply,
    Seconds, Session, SessionError, Statement, Table, TenThousandths,
};

/// What a bug makes of a call.
pub enum Call {
    /// Executes it, with parameters that the bug may have changed.
    Do,
    /// Does nothing and says that one row was changed.
    Skip,
    /// Does nothing and says that no row was changed.
    Miss,
    /// Fails.
    Fail(ErrorClass),
}

/// Looks at a call's text and parameters.
pub type Bug = Box<dyn FnMut(&str, &mut Fields) -> Call>;

pub struct Sqlite {
    pub connection: Connection,
    statements: Vec<Statement>,
    /// Replacements in the text of statements.
    edits: Vec<(&'static str, &'static str)>,
    bug: Option<Bug>,
    /// Commits where it should roll back.
    pub keeps: bool,
    pub rolled_back: u32,
}

impl Sqlite {
    pub fn new(connection: Connection) -> Self {
        connection.set_prepared_statement_cache_capacity(100);
        let (statements, edits, bug) = (Vec::new(), Vec::new(), None);
        let mut session = Self { connection, statements, edits, bug, keeps: false, rolled_back: 0 };
        session.prepare(&tpcc::statements(Dialect::Sqlite)).unwrap();
        session
    }

    /// Replaces text in the statement that has it.
    pub fn edit(&mut self, from: &'static str, to: &'static str) {
        self.edits.push((from, to));
        self.prepare(&tpcc::statements(Dialect::Sqlite)).unwrap();
    }

    pub fn plant(&mut self, bug: impl FnMut(&str, &mut Fields) -> Call + 'static) {
        self.bug = Some(Box::new(bug));
    }

    pub fn count(&self, sql: &str) -> i64 {
        let count = self.connection.query_row(sql, [], |row| row.get(0));
        count.unwrap_or_else(|error| panic!("{error}: {sql}"))
    }

    fn call(&self, statement: &Statement, fields: &[Datum]) -> rusqlite::Result<Reply> {
        let mut prepared = self.connection.prepare_cached(&statement.text)?;
        let parameters = params_from_iter(fields.iter().map(value));
        if statement.columns.is_empty() {
            let affected = prepared.execute(parameters)? as u64;
            return Ok(Reply { rows: Vec::new(), affected });
        }
        let mut rows = prepared.query(parameters)?;
        let mut reply = Reply::default();
        while let Some(row) = rows.next()? {
            let fields = statement.columns.iter().enumerate();
            reply.rows.push(
                fields
                    .map(|(at, kind)| Ok(datum(row.get_ref(at)?, *kind)))
                    .collect::<rusqlite::Result<_>>()?,
            );
        }
        Ok(reply)
    }
}

impl Session for Sqlite {
    fn prepare(&mut self, statements: &[Statement]) -> Result<(), SessionError> {
        self.statements = statements.to_vec();
        for (from, to) in &self.edits {
            let mut edited = 0;
            for statement in &mut self.statements {
                edited += statement.text.matches(from).count();
                statement.text = statement.text.replace(from, to);
            }
            assert_eq!(edited, 1, "`{from}` stands in {edited} places");
        }
        self.statements
            .iter()
            .try_for_each(|statement| self.connection.prepare_cached(&statement.text).map(drop))
            .map_err(said)
    }

    fn begin(&mut self, intent: Intent) -> Result<(), SessionError> {
        let begin = match intent {
            Intent::Read => "begin",
            Intent::Write => "begin immediate",
        };
        self.connection.execute_batch(begin).map_err(said)
    }

    fn fly(&mut self, flight: &Flight, replies: &mut Vec<Reply>) -> Result<(), SessionError> {
        for (place, fields) in flight.calls() {
            let mut fields = fields.to_vec();
            let text = &self.statements[place].text;
            let call = self.bug.as_mut().map_or(Call::Do, |bug| bug(text, &mut fields));
            replies.push(match call {
                Call::Do => self.call(&self.statements[place], &fields).map_err(said)?,
                Call::Skip => Reply { affected: 1, ..Reply::default() },
                Call::Miss => Reply::default(),
                Call::Fail(class) => {
                    return Err(SessionError { class, message: "planted".to_owned() });
                }
            });
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), SessionError> {
        self.connection.execute_batch("commit").map_err(said)
    }

    fn rollback(&mut self) -> Result<(), SessionError> {
        self.rolled_back += 1;
        if self.connection.is_autocommit() {
            return Ok(());
        }
        let end = if self.keeps { "commit" } else { "rollback" };
        self.connection.execute_batch(end).map_err(said)
    }
}

fn said(error: rusqlite::Error) -> SessionError {
    let class = match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            ErrorClass::Busy
        }
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

fn datum(value: ValueRef<'_>, kind: FieldKind) -> Datum {
    match (value, kind) {
        (ValueRef::Integer(n), FieldKind::Int) => Datum::Int(n),
        (ValueRef::Integer(n), FieldKind::Money) => Datum::Money(Cents(n)),
        (ValueRef::Integer(n), FieldKind::Rate) => Datum::Rate(TenThousandths(n)),
        (ValueRef::Integer(n), FieldKind::Date) => Datum::Date(Seconds(n)),
        (ValueRef::Text(text), FieldKind::Text) => Datum::from(std::str::from_utf8(text).unwrap()),
        (ValueRef::Null, _) => Datum::Null,
        other => panic!("{other:?}"),
    }
}

/// Creates the tables and fills them.
pub fn load(connection: &Connection, population: Population) {
    connection.execute_batch("begin").unwrap();
    for table in Table::ALL {
        connection.execute_batch(&table.text().create(Dialect::Sqlite)).unwrap();
        let mut insert = connection.prepare(&table.text().insert(Dialect::Sqlite)).unwrap();
        for warehouse in 1..=population.scale().warehouses() {
            for row in population.rows(table, warehouse) {
                insert.execute(params_from_iter(row.iter().map(value))).unwrap();
            }
        }
        table
            .text()
            .finish(Dialect::Sqlite)
            .iter()
            .for_each(|sql| connection.execute_batch(sql).unwrap());
    }
    connection.execute_batch("commit").unwrap();
}
