//! Commits: sessions that append to a log and share flushes.

use units::{Bytes, Nanos};

use crate::check::needs;
use crate::error::Problem;
use crate::model::{Access, Last, Operation, Pacing, Spread, Stream, SyncAtEnd, SyncPolicy};
use crate::model::{Until, WriteThrough};
use crate::node::At;
use crate::source::{Located, out_of_range};

/// What all sessions together may write at once.
const GROUP_MAX: Bytes = Bytes::mib(64);

/// No write is shorter.
const SECTOR: u64 = 512;

/// What `sync = "fdatasync"` is.
const EACH: SyncPolicy = SyncPolicy {
    op: Operation::Fdatasync,
    every: Some(1),
    shared: false,
    each_file: false,
    at_end: SyncAtEnd::No,
};

/// Checks a stream of commits; others pass.
///
/// * `place`: where a field was set.
pub(crate) fn check(stream: &Stream, place: impl Fn(&str) -> At) -> Located<()> {
    let mut ops = stream.mix.classes.iter().map(|class| class.op);
    if !ops.any(|op| op == Operation::Commit) {
        return Ok(());
    }
    let what = "operation `commit`";
    let refused = |field: &str, wanted: &str| Err((place(field), needs(what, wanted)));
    if stream.mix.classes.len() > 1 || matches!(stream.access, Access::Replay { .. }) {
        return refused("operation", "a stream of its own");
    }
    if stream.threads > 1 {
        return refused("threads", "one thread: its sessions are its `queue_depth`");
    }
    if !matches!(stream.access, Access::Sequential { .. }) {
        return refused("access", "access `sequential`: a log is appended to");
    }
    // Commits that do not follow on each other could not share a write.
    if stream.align != stream.mix.block_size_max() {
        return refused("align", "an `align` of one commit, `block_size`: leave it out");
    }
    if matches!(stream.region.spread, Spread::Striped { .. }) {
        return refused("spread", "files one after the other");
    }
    let pauses = matches!(stream.pacing, Pacing::Closed { think, .. } if think > Nanos::ZERO);
    if pauses || stream.duty.is_some() {
        let field = if pauses { "think" } else { "duty" };
        return refused(field, "sessions that commit without a pause, or a `rate`");
    }
    if stream.stop.last == Last::Short || stream.stop.until == Until::FirstWorker {
        return refused("operation", "commits of one length, and no other end than the stream's");
    }
    let block = stream.mix.block_size_max();
    let writes = u64::from(stream.commit_writes);
    if writes == 0 || !block.get().is_multiple_of(writes * SECTOR) {
        let wanted = "a number of writes of whole 512 bytes, each as long as the others";
        return refused("commit_writes", wanted);
    }
    let group = Bytes::new(block.get().saturating_mul(stream.queue_depth.into()));
    let longest = GROUP_MAX.min(stream.region.length);
    if group > longest {
        let wanted = format!("at most {} for all sessions", longest.exact());
        let seen = group.exact();
        return Err((
            place("queue_depth"),
            out_of_range("queue_depth x block_size", seen, &wanted),
        ));
    }
    let through = stream.write_through != WriteThrough::No;
    match stream.sync {
        None if through => Ok(()),
        None => refused("operation", "`sync`, such as \"fdatasync\", or `write_through`"),
        Some(policy) if through => {
            let first = format!("sync = \"{}\"", policy.op.name());
            let hint = Some("leave `sync` out: each write is durable when it is back".to_owned());
            let second = "write_through".to_owned();
            Err((place("sync"), Problem::Conflict { first, second, hint }))
        }
        // After each write, of the file that was written, and nothing else.
        Some(policy) if (SyncPolicy { op: EACH.op, ..policy }) != EACH => {
            refused("sync", "a flush by name, such as \"fdatasync\": each commit waits for one")
        }
        Some(_) => Ok(()),
    }
}
