//! Transactions: what sessions of a database do, and how large it is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::check::{in_range, needs};
use crate::model::{Access, Mix, Operation, Pacing, Stream, TransactionLoad, Transactions};
use crate::node::At;
use crate::source::Located;

/// So many warehouses are 10 TB.
const SCALE_MAX: u32 = 100_000;

/// Transactions as they are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "\"none\" or a table such as { load = \"tpcc\", scale = 10 }"
)]
pub(crate) struct RawTransactions {
    /// Which: "tpcc", "tpcb" (as pgbench), "tpcb-select", or "oltp-..." (as sysbench).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<TransactionLoad>,
    /// How large the database is: of TPC-C in warehouses, about 110 MB each, of TPC-B in branches, 15 MB each, of sysbench in 100 000 rows, 24 MB. 1 if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<u32>,
}

/// The transactions of a stream whose operation needs them.
///
/// * `whole_operation`: where `operation` was set; `at`: where the transactions were.
pub(crate) fn transactions(
    raw: Option<&RawTransactions>,
    mix: &mut Mix,
    access: &Access,
    (whole_operation, at): (At, At),
) -> Located<Option<Transactions>> {
    if !mix.classes.iter().any(|class| class.op == Operation::Transaction) {
        return Ok(None);
    }
    let what = "operation `transaction`";
    if mix.classes.len() > 1 || matches!(access, Access::Replay { .. }) {
        return Err((whole_operation, needs(what, "a stream of its own")));
    }
    let wanted = "`transactions`, such as { load = \"tpcc\", scale = 10 }";
    let raw = raw.ok_or((whole_operation, needs(what, wanted)))?;
    let load = raw.load.ok_or((at, needs("`transactions`", "a `load`: \"tpcc\"")))?;
    let scale = in_range("transactions.scale", raw.scale.unwrap_or(1), 1, SCALE_MAX, at)?;
    for class in &mut mix.classes {
        (class.block_size, class.line) = (Bytes::ZERO, None);
    }
    Ok(Some(Transactions { load, scale }))
}

/// Checks a stream of transactions; others pass.
///
/// * `place`: where a field was set.
pub(crate) fn check(stream: &Stream, place: impl Fn(&str) -> At) -> Located<()> {
    let what = "operation `transaction`";
    let refused = |field: &str, wanted: &str| Err((place(field), needs(what, wanted)));
    if stream.transactions().is_none() {
        return Ok(());
    }
    if stream.threads > 1 {
        return refused("threads", "one thread: its sessions are its `queue_depth`");
    }
    let pauses = matches!(stream.pacing, Pacing::Closed { think, .. } if think > Nanos::ZERO);
    if pauses || stream.duty.is_some() {
        let field = if pauses { "think" } else { "duty" };
        return refused(field, "sessions without a pause, or a `rate`");
    }
    Ok(())
}
