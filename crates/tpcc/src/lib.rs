//! TPC-C and other database loads as rules: what a database holds, what its users type, which statements
//! follow, and what must be true afterwards.
//!
//! Nothing here talks to a database. A driver implements one trait for its engine; tests do so for SQLite.
//! Figures of this load are not audited results, so they are never called tpmC.
//!
//! Source: TPC Benchmark C, revision 5.11; comments give its clauses.

mod input;
mod mix;
mod random;
mod scale;
mod value;

pub use input::{Input, OrderedLine, Terminal, Turn, Who};
pub use mix::{DELIVERY_LIMIT, Deck, KITS, Kit, Rules, Transaction};
pub use random::{Skew, Skews, last_name};
pub use scale::{CustomerId, DISTRICTS, DistrictId, Scale, ScaleError};
pub use value::{Cents, Datum, FieldKind, Seconds, TenThousandths};
