//! What a stored visit means for the visits to come.

use explain::view::is_data;
use explain::{drift, freeze};
use plan::{Made, Veto, VisitKey};
use record::{OpRecord, Purpose, VisitEnd, VisitRecord};
use units::{Bytes, Nanos};

/// What [`plan::Course`] is told of a visit. A function of what is stored, so that a resumed run
/// is told the same.
///
/// * `twin`: the ledger is that of a simulated device, layer by layer.
pub(crate) fn made(visit: &VisitRecord, twin: bool) -> Made {
    let ok = matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging);
    let pilot = visit.purpose == Purpose::Pilot;
    let took = visit.waited_ns.saturating_add(visit.ramp_ns).saturating_add(visit.elapsed_ns);
    Made {
        key: VisitKey { cell: visit.cell, repeat: visit.repeat },
        purpose: visit.purpose,
        ok,
        ln_rate: ln_rate(visit),
        veto: if pilot { None } else { veto(visit) },
        took: Nanos::new(took),
        written: written(visit, twin),
        ramp: if pilot { pilot_ramp(visit).and_then(Result::ok) } else { None },
    }
}

/// The operations that rates are about: those that move data, or all where none does.
fn counted(visit: &VisitRecord) -> impl Iterator<Item = &OpRecord> {
    let ops = || visit.streams.iter().flat_map(|stream| &stream.ops);
    let has_data = ops().any(|op| is_data(&op.op));
    ops().filter(move |op| !has_data || is_data(&op.op))
}

fn ln_rate(visit: &VisitRecord) -> Option<f64> {
    let requests = counted(visit).fold(0u64, |sum, op| sum.saturating_add(op.requests));
    let rate = requests as f64 * 1e9 / visit.elapsed_ns as f64;
    (requests > 0 && visit.elapsed_ns > 0).then(|| rate.ln())
}

fn veto(visit: &VisitRecord) -> Option<Veto> {
    if freeze::stalled(visit) || visit.end == VisitEnd::Hanging {
        Some(Veto::Stall)
    } else {
        drift::changed(visit).then_some(Veto::Change)
    }
}

/// A pilot whose rate never came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Drifts;

/// How long the rate of a pilot took to come to rest; `None` where it was too short to tell.
pub(crate) fn pilot_ramp(visit: &VisitRecord) -> Option<Result<Nanos, Drifts>> {
    let interval = counted(visit).map(|op| op.series.interval_ns).max().filter(|&ns| ns > 0)?;
    let mut rates: Vec<f64> = Vec::new();
    for op in counted(visit).filter(|op| op.series.interval_ns == interval) {
        for (index, row) in op.series.rows.iter().enumerate() {
            if rates.len() <= index {
                rates.resize(index + 1, 0.0);
            }
            rates[index] += row.requests as f64;
        }
    }
    // The last interval may be cut short.
    rates.truncate((visit.elapsed_ns / interval) as usize);
    let found = stats::ramp::mser5(&rates)?;
    if found.is_drift {
        return Some(Err(Drifts));
    }
    Some(Ok(Nanos::new((found.cut as u64).saturating_mul(interval))))
}

/// Bytes written as they reached the device: at the device under the file system, at the last
/// layer of a twin, by the requests themselves where nobody counts.
fn written(visit: &VisitRecord, twin: bool) -> Bytes {
    let depths = || visit.ledger.iter().map(|entry| entry.depth);
    let depth = if twin { depths().max() } else { depths().min() };
    let Some(depth) = depth else {
        let writes = counted(visit).filter(|op| op.op == "write");
        return Bytes::new(writes.fold(0, |sum, op| sum.saturating_add(op.bytes)));
    };
    let there = visit.ledger.iter().filter(|entry| entry.depth == depth);
    Bytes::new(there.fold(0, |sum, entry| sum.saturating_add(entry.write_bytes)))
}
