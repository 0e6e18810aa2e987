//! What goes into statements and comes out of them: exact, and typed.

use std::ops::{Add, Mul};

/// Money, in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cents(pub i64);

/// A tax or a discount, in ten-thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenThousandths(pub i64);

/// A date with its time, in whole seconds since 1970 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub i64);

/// One field: a parameter of a statement, or a column of a row.
///
/// PostgreSQL and MariaDB hold money and rates as `numeric` with two and four decimals, dates as dates.
/// SQLite holds all three as the integer inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Datum {
    /// No value.
    Null,
    /// A number that counts or names something.
    Int(i64),
    /// Money.
    Money(Cents),
    /// A tax or a discount.
    Rate(TenThousandths),
    /// A date with its time.
    Date(Seconds),
    /// Characters, all ASCII.
    Text(String),
}

/// A row, in the order of the columns of its table or its statement.
pub type Fields = Vec<Datum>;

/// What a column of an answer is, so that a driver knows what to make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// [`Datum::Int`]; also a count or a sum of integers, of whatever width the engine has.
    Int,
    /// [`Datum::Money`].
    Money,
    /// [`Datum::Rate`].
    Rate,
    /// [`Datum::Date`].
    Date,
    /// [`Datum::Text`].
    Text,
}

impl Cents {
    /// What is left to pay after a discount and with taxes, rounded half up to a hundredth.
    ///
    /// Clause 2.4.2.2: the sum times (1 - discount) times (1 + the taxes of warehouse and district).
    pub fn due(self, discount: TenThousandths, taxes: [TenThousandths; 2]) -> Self {
        let factor = i128::from(10_000 - discount.0) * i128::from(10_000 + taxes[0].0 + taxes[1].0);
        Self(((i128::from(self.0) * factor + 50_000_000).div_euclid(100_000_000)) as i64)
    }
}

impl Add for Cents {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Mul<u32> for Cents {
    type Output = Self;

    fn mul(self, quantity: u32) -> Self {
        Self(self.0 * i64::from(quantity))
    }
}

impl std::fmt::Display for Cents {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (self.0.unsigned_abs() / 100, self.0.unsigned_abs() % 100);
        write!(out, "{sign}{whole}.{part:02}")
    }
}

macro_rules! datum_from {
    ($($from:ty, $value:ident => $datum:expr;)*) => {$(
        impl From<$from> for Datum {
            fn from($value: $from) -> Self {
                $datum
            }
        }
    )*};
}

datum_from! {
    u32, number => Self::Int(number.into());
    i32, number => Self::Int(number.into());
    Cents, money => Self::Money(money);
    TenThousandths, rate => Self::Rate(rate);
    Seconds, date => Self::Date(date);
    String, text => Self::Text(text);
    &str, text => Self::Text(text.to_owned());
}

impl<T: Into<Self>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// Fields from values of different types.
macro_rules! fields {
    ($($value:expr),* $(,)?) => { [$($crate::value::Datum::from($value)),*] };
}
pub(crate) use fields;
