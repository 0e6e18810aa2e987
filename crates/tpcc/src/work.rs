//! The inside of a transaction: calls that fly together, replies that are taken one by one and checked.

use crate::dialect::Query;
use crate::session::{ErrorClass, Flight, Reply, Session, SessionError};
use crate::value::{Cents, Datum, FieldKind, Fields, TenThousandths};

/// Why a transaction did not end as planned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransactionError {
    /// The driver reports an error.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Another session delivered the order first: repeat. One queue of deliveries per warehouse avoids it.
    #[error("the oldest undelivered order is gone, another session delivered it")]
    Raced,
    /// A statement found or changed another number of rows than it must.
    #[error("`{statement}`: {seen} rows, wanted {wanted}")]
    Rows {
        /// The statement.
        statement: &'static str,
        /// How many rows it had.
        seen: u64,
        /// How many it must have.
        wanted: &'static str,
    },
    /// A column is of another kind than its statement declares.
    #[error("{0:?} in a column, wanted {1:?}")]
    Kind(Datum, FieldKind),
}

impl TransactionError {
    /// What follows from it.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Session(error) => error.class,
            Self::Raced => ErrorClass::Serialization,
            Self::Rows { .. } | Self::Kind(..) => ErrorClass::Other,
        }
    }
}

/// What a step of a transaction yields, or why the transaction cannot go on.
pub(crate) type Tried<T> = Result<T, TransactionError>;

/// Collects calls, lets them fly, and hands out the replies in order.
pub(crate) struct Calls<'a> {
    session: &'a mut dyn Session,
    queries: &'static [Query],
    flight: Flight,
    replies: std::vec::IntoIter<(&'static str, Reply)>,
}

impl<'a> Calls<'a> {
    pub fn new(session: &'a mut dyn Session, queries: &'static [Query]) -> Self {
        Self { session, queries, flight: Flight::default(), replies: Vec::new().into_iter() }
    }

    pub fn add<const N: usize>(&mut self, step: impl Into<usize>, parameters: [Datum; N]) {
        self.flight.add(step.into(), parameters);
    }

    /// The same with parameters that were drawn before.
    pub fn add_all(&mut self, step: impl Into<usize>, parameters: &[Datum]) {
        self.flight.add_all(step.into(), parameters);
    }

    /// Sends what was added. Replies that nobody took are dropped.
    pub fn fly(&mut self) -> Tried<()> {
        let mut replies = Vec::new();
        self.session.fly(&self.flight, &mut replies)?;
        let texts = self.flight.calls().map(|(statement, _)| self.queries[statement].text);
        self.replies = texts.zip(replies).collect::<Vec<_>>().into_iter();
        self.flight.clear();
        Ok(())
    }

    /// The next reply, with the text of its statement.
    fn reply(&mut self) -> Tried<(&'static str, Reply)> {
        let (statement, wanted) = ("a flight", "a reply to each call");
        self.replies.next().ok_or(TransactionError::Rows { statement, seen: 0, wanted })
    }

    /// The rows of the next reply.
    pub fn rows(&mut self) -> Tried<Vec<Fields>> {
        self.reply().map(|(_, reply)| reply.rows)
    }

    /// The row of the next reply, if there is one.
    pub fn row_if_any(&mut self) -> Tried<Option<Row>> {
        self.rows().map(|mut rows| rows.pop().map(Row::from))
    }

    /// The one row of the next reply.
    pub fn row(&mut self) -> Tried<Row> {
        let (statement, mut reply) = self.reply()?;
        let seen = reply.rows.len() as u64;
        let row = reply.rows.pop().filter(|_| seen == 1).map(Row::from);
        row.ok_or(TransactionError::Rows { statement, seen, wanted: "one" })
    }

    /// How many rows the next reply's statement affected.
    pub fn affected(&mut self) -> Tried<u64> {
        self.reply().map(|(_, reply)| reply.affected)
    }

    /// Takes the next reply, whose statement must have affected exactly one row.
    pub fn one(&mut self) -> Tried<()> {
        match self.reply()? {
            (_, Reply { affected: 1, .. }) => Ok(()),
            (statement, Reply { affected: seen, .. }) => {
                Err(TransactionError::Rows { statement, seen, wanted: "one" })
            }
        }
    }
}

/// A row that is read column by column.
pub(crate) struct Row(std::vec::IntoIter<Datum>);

impl From<Fields> for Row {
    fn from(fields: Fields) -> Self {
        Self(fields.into_iter())
    }
}

/// Readers of the next column, each for one kind.
macro_rules! readers {
    ($($name:ident: $kind:ident => $type:ty;)*) => {$(
        pub fn $name(&mut self) -> Tried<$type> {
            match self.next() {
                Datum::$kind(value) => Ok(value),
                seen => Err(TransactionError::Kind(seen, FieldKind::$kind)),
            }
        }
    )*};
}

impl Row {
    fn next(&mut self) -> Datum {
        self.0.next().unwrap_or(Datum::Null)
    }

    readers! {
        money: Money => Cents;
        rate: Rate => TenThousandths;
        text: Text => String;
        wide: Int => i64;
    }

    /// The next column, an integer of 32 bits without a sign.
    pub fn int(&mut self) -> Tried<u32> {
        let wide = self.wide()?;
        let wrong = TransactionError::Kind(Datum::Int(wide), FieldKind::Int);
        u32::try_from(wide).map_err(|_| wrong)
    }

    /// The same, or NULL.
    pub fn int_if_any(&mut self) -> Tried<Option<u32>> {
        match self.0.as_slice() {
            [Datum::Null, ..] => Ok(None),
            _ => self.int().map(Some),
        }
    }
}
