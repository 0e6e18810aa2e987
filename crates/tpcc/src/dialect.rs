//! The three dialects of SQL.

use crate::value::FieldKind;

/// A family of engines that read the same text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite 3.39 or later. Its one writer at a time needs no row locks.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB and MySQL, with InnoDB.
    MariaDb,
}

/// A statement to prepare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Its text in one dialect, with that dialect's place holders.
    pub text: String,
    /// The columns of its answer; none if it returns no rows.
    pub columns: &'static [FieldKind],
}

/// A statement of a program, in the words that all dialects share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub text: &'static str,
    pub columns: &'static [FieldKind],
}

/// Declares the statements of a program, and an enum that names them by their place.
macro_rules! queries {
    ($steps:ident, $all:ident: $($name:ident = $text:expr, [$($kind:ident),*];)*) => {
        #[derive(Clone, Copy)]
        pub(crate) enum $steps { $($name),* }

        impl From<$steps> for usize {
            fn from(step: $steps) -> Self {
                step as Self
            }
        }

        pub(crate) const $all: &[$crate::dialect::Query] = &[$($crate::dialect::Query {
            text: $text,
            columns: &[$($crate::value::FieldKind::$kind),*],
        }),*];
    };
}
pub(crate) use queries;

impl Dialect {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Postgres, Self::MariaDb];

    /// The statements of a program.
    pub(crate) fn statements(self, queries: &[Query]) -> Vec<Statement> {
        let statement =
            |query: &Query| Statement { text: self.text(query.text), columns: query.columns };
        queries.iter().map(statement).collect()
    }

    /// Rewrites a text with `?` place holders, `for update` and the comparison `<=>`, for which NULL is a
    /// value like others.
    pub(crate) fn text(self, canonical: &str) -> String {
        let standard = || canonical.replace("<=>", "is not distinct from");
        match self {
            Self::MariaDb => canonical.to_owned(),
            Self::Sqlite => standard().replace(" for update", ""),
            Self::Postgres => {
                let mut text = String::new();
                for (at, part) in standard().split('?').enumerate() {
                    let holder = if at == 0 { String::new() } else { format!("${at}") };
                    text.extend([holder.as_str(), part]);
                }
                text
            }
        }
    }

    /// The type of a column, from `int`, `money(digits)`, `rate`, `date`, `char(length)` or
    /// `varchar(length)`.
    ///
    /// Text compares byte by byte everywhere, so that customers of one name have one order.
    pub(crate) fn column(self, kind: &str) -> String {
        let (name, length) = kind.trim_end_matches(')').split_once('(').unwrap_or((kind, ""));
        match (self, name) {
            (_, "int") | (Self::Sqlite, "money" | "rate" | "date") => "integer".to_owned(),
            (_, "money") => format!("numeric({length}, 2)"),
            (_, "rate") => "numeric(4, 4)".to_owned(),
            (Self::Postgres, "date") => "timestamp".to_owned(),
            (Self::MariaDb, "date") => "datetime".to_owned(),
            (Self::Sqlite, _) => "text".to_owned(),
            (Self::Postgres, _) => format!("{kind} collate \"C\""),
            (Self::MariaDb, _) => format!("{kind} character set ascii collate ascii_bin"),
        }
    }
}
