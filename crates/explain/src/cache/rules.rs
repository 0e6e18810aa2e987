//! Residency, direct I/O, sizes and links: what is known without counting bytes.

use record::VisitRecord;

use super::plan::Plan;
use super::{CacheFinding, Verdict, Witness};
use crate::view::{CellView, View};

/// More than this many thousandths resident is not cold.
pub const RESIDENT_MAX: u32 = 50;
/// The working set is so many times the caches, or too small.
pub const SIZE_MIN: u64 = 4;
/// A rate above this share of the link is the link's.
pub const LINK_SHARE: f64 = 0.95;

/// Before a visit that goes through the page cache the files must not be in it; around one that
/// does not, they must not come into it.
pub(super) fn residency(plan: &Plan, cell: &CellView<'_>) -> Option<CacheFinding> {
    let finding = |verdict| Some(CacheFinding { witness: Witness::Residency, verdict });
    let reads = plan.reads_buffered(cell.cell);
    if plan.asks_direct(cell.cell) == Some(true) {
        let rise = |v: &VisitRecord| Some(v.resident_after?.saturating_sub(v.resident_before?));
        let most = cell.visits.iter().filter_map(|v| rise(v.visit)).max()?;
        let why = format!(
            "{} of the files came into the page cache during a visit",
            crate::words::percent(f64::from(most) / 1000.0)
        );
        return if most > RESIDENT_MAX { finding(Verdict::Buffered { why }) } else { None };
    }
    let most = cell.visits.iter().filter_map(|v| v.visit.resident_before).max()?;
    if !reads || most <= RESIDENT_MAX {
        return None;
    }
    finding(Verdict::NotCold { share: (f64::from(most) / 1000.0).min(1.0) })
}

/// Whether direct I/O was asked for and not given.
pub(super) fn direct(view: &View<'_>, plan: &Plan, cell: &CellView<'_>) -> Option<CacheFinding> {
    // A twin has no page cache to go around.
    if view.run.header.target.kind == record::TargetKind::Twin {
        return None;
    }
    let warnings = cell.visits.iter().flat_map(|v| &v.visit.warnings);
    let said = warnings.filter(|w| w.code == "buffered-fallback").map(|w| w.text.clone()).next();
    let streams = || cell.visits.iter().flat_map(|v| &v.visit.streams);
    let not_given = plan.asks_direct(cell.cell) == Some(true)
        && streams().any(|stream| !stream.backend.name.is_empty() && !stream.backend.direct);
    let why = said.or_else(|| {
        let reasons = || streams().flat_map(|s| &s.backend.reasons).cloned().collect::<Vec<_>>();
        not_given.then(|| reasons().first().cloned().unwrap_or_default())
    })?;
    Some(CacheFinding { witness: Witness::Direct, verdict: Verdict::Buffered { why } })
}

/// The working set against the memory of the machine (where the page cache was in use) and the
/// declared caches. Uniform requests over `W` hit a cache of `C` with probability `min(1, C / W)`.
///
/// Streams that only write and flush are left out: a log is small on purpose.
///
/// * `device`: the ledger showed that the devices moved what was asked for, so that the page
///   cache had no part in it, however large it is.
pub(super) fn size(
    view: &View<'_>,
    plan: &Plan,
    cell: &CellView<'_>,
    device: bool,
) -> Option<CacheFinding> {
    let header = &view.run.header;
    let looked_at = |k: usize| plan.can_be_flattered(cell.cell, k);
    let is_direct = |k: usize| {
        let in_visit = |v: &VisitRecord| v.streams.get(k).is_none_or(|s| s.backend.direct);
        cell.visits.iter().all(|v| in_visit(v.visit))
    };
    let through_memory = |k: usize| looked_at(k) && !is_direct(k);
    let direct = !(0..cell.cell.streams.len()).any(through_memory);
    // A twin has no page cache: what its model says it has is among the declared ones.
    let twin = header.target.kind == record::TargetKind::Twin;
    let without_memory = direct || device || twin;
    let memory = if without_memory { 0 } else { header.machine.memory_bytes };
    let cache_bytes = memory.saturating_add(header.target.cache_bytes.unwrap_or(0));
    let of = |k: usize| if without_memory { looked_at(k) } else { through_memory(k) };
    let working_set_bytes = plan.working_set(cell.cell, &of);
    if cache_bytes == 0 || working_set_bytes == 0 {
        return None;
    }
    let hit_rate = (cache_bytes as f64 / working_set_bytes as f64).min(1.0);
    let verdict = if working_set_bytes < cache_bytes.saturating_mul(SIZE_MIN) {
        Verdict::TooSmall { working_set_bytes, cache_bytes, hit_rate }
    } else {
        Verdict::LargeEnough { working_set_bytes, cache_bytes, hit_rate }
    };
    Some(CacheFinding { witness: Witness::Size, verdict })
}

/// The rate of one direction against what the links can carry: of the fastest visit.
pub(super) fn link(view: &View<'_>, cell: &CellView<'_>) -> Option<CacheFinding> {
    let link = view.run.header.target.link.as_ref().filter(|link| link.bytes_per_second > 0)?;
    let rates = cell.visits.iter().flat_map(|v| ["read", "write"].map(|op| rate_of(v.visit, op)));
    let share = rates.fold(0.0, f64::max) / link.bytes_per_second as f64;
    let verdict = match share {
        s if s > 1.0 => Verdict::AboveLink { share },
        s if s > LINK_SHARE => Verdict::AtLink { share },
        _ => return None,
    };
    Some(CacheFinding { witness: Witness::Link, verdict })
}

fn rate_of(visit: &VisitRecord, op: &str) -> f64 {
    let ops = visit.streams.iter().flat_map(|stream| &stream.ops).filter(|o| o.op == op);
    let bytes = ops.map(record::OpRecord::bytes_rated).fold(0u64, u64::saturating_add);
    let rated = visit.rated_ns();
    if rated == 0 { 0.0 } else { bytes as f64 / (rated as f64 / 1e9) }
}
