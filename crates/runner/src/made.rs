//! What a stored visit means for the visits to come.

use explain::view::counted;
use explain::visits::within;
use explain::{closing, drift, freeze, halt};
use plan::{Made, Veto, VisitKey};
use record::{Purpose, VisitEnd, VisitRecord};
use stats::ramp::{BATCH, mser5};
use suite::model::{Cell, Phase, Stream, Suite};
use units::{Bytes, Nanos};

/// What [`plan::Course`] is told of a visit. A function of what is stored, so that a resumed run
/// is told the same.
///
/// * `lead`: what the suite spends before the visit by plan, see [`leads`]; it is not stored.
/// * `twin`: the ledger is that of a simulated device, layer by layer.
pub(crate) fn made(visit: &VisitRecord, lead: Nanos, twin: bool) -> Made {
    let ok = matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging);
    let pilot = visit.purpose == Purpose::Pilot;
    let parts = [visit.waited_ns, visit.ramp_ns, visit.elapsed_ns];
    let took = parts.into_iter().fold(lead.get(), u64::saturating_add);
    Made {
        key: VisitKey { cell: visit.cell, repeat: visit.repeat },
        purpose: visit.purpose,
        ok,
        ln_rates: (0..visit.streams.len()).map(|stream| ln_rate(visit, stream)).collect(),
        rows: (0..visit.streams.len()).map(|stream| within(visit, Some(stream))).collect(),
        veto: if pilot { None } else { veto(visit) },
        took: Nanos::new(took),
        waited: Nanos::new(visit.waited_ns),
        measured: Nanos::new(visit.rated_ns()),
        written: written(visit, twin),
        ramp: if pilot { pilot_ramp(visit).and_then(Result::ok) } else { None },
    }
}

/// Time that each visit to a cell of the suite takes by plan before its own begins: the phase's
/// pause, and the stream that is played before. Of a stream that no time ends nothing is known.
/// In the suite's order.
pub(crate) fn leads(suite: &Suite) -> Vec<Nanos> {
    let of_phase = |phase: &Phase| {
        // Rounds until it is steady follow each other without a pause.
        let pause = if phase.steady.is_some() { Nanos::ZERO } else { phase.settle };
        let of = move |cell: &Cell| {
            pause + cell.before.as_ref().map_or(Nanos::ZERO, Stream::least_duration)
        };
        phase.cells.iter().map(of).collect::<Vec<_>>()
    };
    suite.phases.iter().flat_map(of_phase).collect()
}

fn ln_rate(visit: &VisitRecord, stream: usize) -> Option<f64> {
    let requests =
        counted(visit, Some(stream)).fold(0u64, |sum, op| sum.saturating_add(op.requests_rated()));
    let rated = visit.rated_ns();
    (requests > 0 && rated > 0).then(|| (requests as f64 * 1e9 / rated as f64).ln())
}

fn veto(visit: &VisitRecord) -> Option<Veto> {
    if freeze::stalled(visit) || halt::any(visit) || visit.end == VisitEnd::Hanging {
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
    let interval =
        counted(visit, None).map(|op| op.series.interval_ns).max().filter(|&ns| ns > 0)?;
    let mut rates: Vec<f64> = Vec::new();
    for op in counted(visit, None).filter(|op| op.series.interval_ns == interval) {
        for (index, row) in op.series.rows.iter().enumerate() {
            if rates.len() <= index {
                rates.resize(index + 1, 0.0);
            }
            rates[index] += row.requests as f64;
        }
    }
    // The last interval may be cut short.
    rates.truncate((closing::load_ns(visit) / interval) as usize);
    let found = mser5(&rates)?;
    Some(match found.is_drift {
        // Noise alone has its best cut anywhere, also at the bound.
        true if halves_differ(&rates) => Err(Drifts),
        false if is_apart(&rates, found.cut) => {
            Ok(Nanos::new((found.cut as u64).saturating_mul(interval)))
        }
        _ => Ok(Nanos::ZERO),
    })
}

/// By so many standard errors what is cut off must differ from the rest: the cut was chosen among
/// ten or more, and batches of noise that lasts are not quite independent.
const APART: f64 = 4.0;

/// Whether what comes before the cut is another rate than what follows, and no noise.
fn is_apart(rates: &[f64], cut: usize) -> bool {
    let batches = |part: &[f64]| -> Vec<f64> {
        part.chunks_exact(BATCH).map(|batch| batch.iter().sum::<f64>() / BATCH as f64).collect()
    };
    let (start, rest) = rates.split_at(cut.min(rates.len()));
    let (start, rest) = (batches(start), batches(rest));
    if start.is_empty() || rest.len() < 2 {
        return false;
    }
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let (before, after) = (mean(&start), mean(&rest));
    let squares: f64 = rest.iter().map(|rate| (rate - after).powi(2)).sum();
    let variance = squares / (rest.len() - 1) as f64;
    let error = (variance * (1.0 / start.len() as f64 + 1.0 / rest.len() as f64)).sqrt();
    (before - after).abs() > APART * error
}

/// A drift of less is no reason to distrust a pilot.
const DRIFT_SHARE: f64 = 0.05;

fn halves_differ(rates: &[f64]) -> bool {
    let (first, second) = rates.split_at(rates.len() / 2);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    (mean(first) - mean(second)).abs() > DRIFT_SHARE * mean(rates)
}

/// Bytes written as they reached the device: at the device under the file system, at the last
/// layer of a twin, by the requests themselves where nobody counts.
fn written(visit: &VisitRecord, twin: bool) -> Bytes {
    let depths = || visit.ledger.iter().map(|entry| entry.depth);
    let depth = if twin { depths().max() } else { depths().min() };
    let Some(depth) = depth else {
        let writes = counted(visit, None).filter(|op| op.op == "write");
        return Bytes::new(writes.fold(0, |sum, op| sum.saturating_add(op.bytes)));
    };
    let there = visit.ledger.iter().filter(|entry| entry.depth == depth);
    Bytes::new(there.fold(0, |sum, entry| sum.saturating_add(entry.write_bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{BackendRecord, Bitmap, OpRecord, Series, SeriesRow, StreamRecord};
    use stats::{LatencyHistogram, Random};

    /// Ten seconds at this rate per 100 ms, with noise of 2 %.
    fn pilot(rate: impl Fn(usize) -> f64) -> VisitRecord {
        let mut random = Random::new(3);
        let noisy = |index| rate(index) * (1.0 + 0.02 * random.normal());
        pilot_of(&(0..100).map(noisy).collect::<Vec<_>>())
    }

    /// Ten seconds of these rates per 100 ms.
    fn pilot_of(rates: &[f64]) -> VisitRecord {
        let rows = rates.iter().map(|&rate| {
            let requests = rate as u64;
            SeriesRow { requests, bytes: requests * 4096, tail: Vec::new() }
        });
        let rows: Vec<SeriesRow> = rows.collect();
        let requests = rows.iter().map(|row| row.requests).sum();
        let op = OpRecord {
            op: "read".to_owned(),
            requests,
            bytes: requests * 4096,
            errors: Vec::new(),
            short: 0,
            latency: LatencyHistogram::new(),
            latency_ns_min: 0,
            latency_ns_max: 0,
            latency_ns_sum: 0,
            series: Series { interval_ns: 100_000_000, rows },
            slow: Vec::new(),
            slow_dropped: 0,
            late_requests: 0,
            late_bytes: 0,
            reported: None,
        };
        VisitRecord {
            cell: 3,
            repeat: 0,
            order: 0,
            started_unix_ns: 0,
            elapsed_ns: 10_000_000_000,
            load_ns: None,
            end: VisitEnd::Complete,
            purpose: Purpose::Pilot,
            ramp_ns: 0,
            waited_ns: 1_000_000_000,
            quiet: None,
            resident_before: None,
            resident_after: None,
            streams: vec![StreamRecord {
                name: "s".to_owned(),
                backend: BackendRecord::default(),
                ops: vec![op],
                workers: Vec::new(),
                ramp_requests: 0,
                backlog: 0,
            }],
            completions: Bitmap::default(),
            counters: Vec::new(),
            ledger: Vec::new(),
            host_stalls: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_pilot_finds_where_its_ramp_ends_and_no_ramp_in_a_drift() {
        let ramp = pilot_ramp(&pilot(|i| if i < 20 { 300.0 } else { 1000.0 })).unwrap().unwrap();
        assert!(ramp >= Nanos::secs(2) && ramp <= Nanos::millis(2_500), "{ramp}");
        assert_eq!(pilot_ramp(&pilot(|i| 1000.0 - 7.0 * i as f64)), Some(Err(Drifts)));
        let flat = pilot_ramp(&pilot(|_| 1000.0)).unwrap().unwrap();
        assert_eq!(flat, Nanos::ZERO);
        let short = VisitRecord { elapsed_ns: 500_000_000, ..pilot(|_| 1000.0) };
        assert_eq!(pilot_ramp(&short), None);
    }

    #[test]
    fn noise_is_no_ramp() {
        // Noise of 1 % that lasts some tenths of a second, as of shared devices.
        let ramps = |rho: f64, start: f64| {
            let of = |seed: u64| {
                let mut random = Random::new(seed);
                let mut noise = 0.0;
                let rates: Vec<f64> = (0..100)
                    .map(|i| {
                        noise = rho * noise + (1.0 - rho * rho).sqrt() * random.normal();
                        let level = if i < 15 { start } else { 1.0 };
                        1e6 * level * (1.0 + 0.01 * noise)
                    })
                    .collect();
                pilot_ramp(&pilot_of(&rates)).unwrap() != Ok(Nanos::ZERO)
            };
            (0..200).filter(|&seed| of(seed)).count()
        };
        let (white, lasting, found) = (ramps(0.0, 1.0), ramps(0.5, 1.0), ramps(0.5, 0.95));
        assert!(white <= 4 && lasting <= 10, "of 200: {white}, {lasting}");
        assert!(found >= 175, "of 200: {found}");
    }

    #[test]
    fn what_is_stored_is_what_the_schedule_is_told() {
        let visit = VisitRecord { purpose: Purpose::Measure, ..pilot(|_| 1000.0) };
        let told = made(&visit, Nanos::ZERO, false);
        assert_eq!(told.took, Nanos::secs(11));
        assert_eq!(made(&visit, Nanos::secs(5), false).took, Nanos::secs(16));
        assert!((told.ln_rates[0].unwrap() - 10_000.0_f64.ln()).abs() < 0.01);
        assert_eq!((told.ok, told.ramp, told.written), (true, None, Bytes::ZERO));
        let nothing = VisitRecord { streams: Vec::new(), ..visit };
        assert!(made(&nothing, Nanos::ZERO, false).ln_rates.is_empty());
    }
}
