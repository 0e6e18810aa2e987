//! TPC-C and other database loads as rules: what a database holds, what its users type, which statements
//! follow, and what must be true afterwards.
//!
//! Nothing here talks to a database. A driver implements one trait for its engine; tests do so for SQLite.
//! Figures of this load are not audited results, so they are never called tpmC.
//!
//! Source: TPC Benchmark C, revision 5.11; comments give its clauses.

mod conditions;
mod dialect;
mod execute;
mod input;
mod mix;
mod oltp;
mod population;
mod random;
mod scale;
mod schema;
mod session;
mod statements;
mod tpcb;
mod transactions;
mod value;
mod work;
mod workload;

pub use conditions::{Condition, conditions, prepare_conditions};
pub use dialect::{Dialect, Statement};
pub use execute::{Ending, Execution, Repeats, execute, statements};
pub use input::{Carrier, Input, OrderedLine, Terminal, Turn, Who};
pub use mix::{DELIVERY_LIMIT, Deck, KITS, Kit, Rules, Transaction};
pub use oltp::{Oltp, OltpScript, RowLaw};
pub use population::Population;
pub use random::{Skew, Skews, last_name};
pub use scale::{CustomerId, DISTRICTS, DistrictId, Scale, ScaleError};
pub use schema::{Table, TableText};
pub use session::{ErrorClass, Flight, Intent, Reply, Session, SessionError};
pub use tpcb::Tpcb;
pub use transactions::Shown;
pub use value::{Cents, Datum, FieldKind, Fields, Seconds, TenThousandths};
pub use work::TransactionError;
pub use workload::{PlayedTransaction, Player, Tpcc, Workload};
