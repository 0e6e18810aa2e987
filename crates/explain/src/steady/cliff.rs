//! Where the rate of writes falls, in bytes that the program wrote.
//!
//! What the device wrote is another matter: its counters may count twice what goes through a cache, and
//! parity, and what a file system adds.

use finding::{Code, Finding, Number, Subject};
use record::{VisitEnd, VisitRecord};
use schemars::JsonSchema;
use serde::Serialize;
use stats::steady::{self, Piece};

use super::Series;
use crate::closing::load_ns;
use crate::view::{View, VisitView};
use crate::{drift, freeze};

/// A piece has so many requests: the rate of fewer is chance.
const PIECE_REQUESTS: f64 = 50.0;
/// Nor is a piece longer.
const PIECE_NS_MAX: f64 = 6e10;
/// At the start of a visit nothing has come back yet, and at its end nothing is asked any more.
/// Where a request takes less than this share of a piece, that is no matter.
const LATENCY_SHARE: f64 = 0.1;
/// What was slow for fewer seconds may have been slow for a while only.
const LASTS: f64 = 60.0;
/// What rises later than so many seconds after it began may be another story.
const SOON: i64 = 600;
/// A rise takes a fall back that is so much of it, in logarithms.
const TAKEN_BACK: f64 = 0.5;

/// A fall of the write rate that stayed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WriteCliff {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// Which visit of the run the series of writes began with.
    pub order_first: u32,
    /// Written in the run before that: by other cells, the fill and preconditioning. As all here it is
    /// what the program wrote, not what the device did.
    pub earlier_bytes: u64,
    /// Written since that began, as near as can be told.
    pub at_bytes: u64,
    /// The same, where the last observation of the old rate began, as far as noise lets tell.
    pub at_bytes_low: u64,
    /// The same, where the first observation of the new rate ended.
    pub at_bytes_high: u64,
    /// Bytes per second before.
    pub before: f64,
    /// Bytes per second after.
    pub after: f64,
    /// Written after it in the series.
    pub after_bytes: u64,
}

/// Writes that were watched for a cliff, and none came.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NoCliff {
    /// Index of the cell.
    pub cell: u32,
    /// The cell as people say it.
    pub cell_name: String,
    /// Which visit of the run the series of writes began with.
    pub order_first: u32,
    /// Written in it before there was a rate to fall from: what fell sooner is not seen.
    pub from_bytes: u64,
    /// Written in it by the program: nothing is known of what comes after more.
    pub written_bytes: u64,
    /// Where in one of its visits the writes fell all the same, as a write cache that fills makes them.
    pub cache_at_bytes: Option<u64>,
}

/// The cliffs in all series, and those in which none came.
pub(super) fn cliffs(view: &View<'_>, all: &[Series<'_>]) -> (Vec<WriteCliff>, Vec<NoCliff>) {
    let pieces: Vec<Vec<Piece>> = all.iter().map(pieces_of).collect();
    let (mut found, mut none) = (Vec::new(), Vec::new());
    let caches = crate::cache::write_caches(view);
    for (place, (series, own)) in all.iter().zip(&pieces).enumerate() {
        let same = |other: &usize| all[*other].cell.cell.index == series.cell.cell.index;
        let rates_of = |places: std::ops::Range<usize>| -> Vec<f64> {
            places.filter(same).flat_map(|other| &pieces[other]).filter_map(rate).collect()
        };
        let (early, late) = (rates_of(0..place), rates_of(place + 1..all.len()));
        let mut cliffs = steady::cliffs(own);
        // What is as fast in a later visit was a cache that fills again, not a cliff.
        cliffs.retain(|cliff| {
            let middle = (cliff.before * cliff.after).sqrt();
            let again = all
                .iter()
                .zip(&pieces)
                .skip(place + 1)
                .filter(|(other, _)| other.cell.cell.index == series.cell.cell.index);
            let begins = |pieces: &[Piece]| pieces.iter().find_map(rate);
            let refills = again.filter_map(|(_, own)| begins(own)).any(|rate| rate > middle);
            // Nor was what a later visit, of whatever cell, saw end soon after.
            let fall = (cliff.before / cliff.after).ln();
            let begun = series.visits.first().map_or(0, |visit| visit.visit.started_unix_ns);
            let until = begun.saturating_add(SOON * 1_000_000_000);
            let rises = |visit: &VisitView<'_>| {
                visit.visit.started_unix_ns < until
                    && drift::risen(visit.visit) >= TAKEN_BACK * fall
            };
            let mut next = all.iter().skip(place + 1).flat_map(|other| &other.visits);
            let ended = !lasts(own, cliff) && next.any(rises);
            !refills
                && !ended
                && mostly(&early, |rate| rate > middle)
                && mostly(&late, |rate| rate < middle)
        });
        let cell_name = series.cell.name();
        let (cell, order_first) = (series.cell.cell.index, series.order_first());
        let written = series.visits.iter().map(|visit| asked_bytes(visit.visit));
        let written = written.fold(0u64, u64::saturating_add);
        if cliffs.is_empty() {
            let seen: f64 = own.iter().filter(|p| rate(p).is_some()).map(|p| p.bytes).sum();
            // Of a cell that takes turns with others each series is too short to say anything.
            let only = all.iter().filter(|other| other.cell.cell.index == cell).count() == 1;
            if only && written > 0 && seen >= written as f64 / 2.0 {
                let from_bytes = begun_bytes(own) as u64;
                let written_bytes = written;
                let fall = caches.iter().find(|cache| cache.cell == cell);
                let cache_at_bytes = fall.map(|cache| cache.at_bytes);
                none.push(NoCliff {
                    cell,
                    cell_name,
                    order_first,
                    from_bytes,
                    written_bytes,
                    cache_at_bytes,
                });
            }
            continue;
        }
        let earlier = view.run.visits.iter().filter(|visit| visit.order < order_first);
        let earlier = earlier.fold(0u64, |sum, v| sum.saturating_add(asked_bytes(v)));
        let slack = in_flight_bytes(series) as f64;
        found.extend(cliffs.into_iter().map(|cliff| WriteCliff {
            cell,
            cell_name: cell_name.clone(),
            order_first,
            earlier_bytes: earlier,
            at_bytes: cliff.at_bytes as u64,
            at_bytes_low: (cliff.low_bytes - slack).max(0.0) as u64,
            at_bytes_high: (cliff.high_bytes + slack) as u64,
            before: cliff.before,
            after: cliff.after,
            after_bytes: written.saturating_sub(cliff.at_bytes as u64),
        }));
    }
    (found, none)
}

/// Written when the first two pieces that have a rate were: a fall before leaves nothing to tell it by.
fn begun_bytes(pieces: &[Piece]) -> f64 {
    let rated = pieces.iter().enumerate().filter(|(_, piece)| rate(piece).is_some());
    let second = rated.map(|(place, _)| place).nth(1);
    let end = second.map_or(pieces.len(), |place| place + 1);
    pieces[..end].iter().map(|piece| piece.bytes).sum()
}

/// Whether the slow rate was seen for so long that it is no passing one.
fn lasts(own: &[Piece], cliff: &steady::Cliff) -> bool {
    let written: f64 = own.iter().map(|piece| piece.bytes).sum();
    written - cliff.at_bytes >= LASTS * cliff.after
}

fn mostly(rates: &[f64], is: impl Fn(f64) -> bool) -> bool {
    let astray = rates.iter().filter(|rate| !is(**rate)).count();
    astray as f64 <= 0.2 * rates.len() as f64
}

fn rate(piece: &Piece) -> Option<f64> {
    (piece.seconds > 0.0 && piece.bytes > 0.0).then(|| piece.bytes / piece.seconds)
}

/// Completions are counted, and a drive counts what it was given.
fn in_flight_bytes(series: &Series<'_>) -> u64 {
    let each = series.cell.cell.streams.iter().map(|stream| {
        let requests = u64::from(stream.threads).saturating_mul(stream.queue_depth.into());
        requests.saturating_mul(stream.block_bytes.unwrap_or(0))
    });
    each.fold(0, u64::saturating_add)
}

/// All of a series, cut as finely as its requests allow.
fn pieces_of(series: &Series<'_>) -> Vec<Piece> {
    let mut needs: Vec<f64> = series.visits.iter().map(|visit| needed_ns(visit.visit)).collect();
    needs.sort_unstable_by(f64::total_cmp);
    let Some(&needed) = needs.get(needs.len() / 2) else { return Vec::new() };
    series.visits.iter().flat_map(|visit| pieces(visit.visit, needed)).collect()
}

/// Time in which enough requests come back.
fn needed_ns(visit: &VisitRecord) -> f64 {
    let requests: u64 = writes(visit).map(|op| op.requests).fold(0, u64::saturating_add);
    PIECE_REQUESTS * visit.elapsed_ns as f64 / requests.max(1) as f64
}

fn writes(visit: &VisitRecord) -> impl Iterator<Item = &record::OpRecord> {
    visit.streams.iter().flat_map(|stream| &stream.ops).filter(|op| op.op == "write")
}

/// What the program wrote in a visit, its ramp included.
fn asked_bytes(visit: &VisitRecord) -> u64 {
    let bytes = writes(visit).map(|op| op.bytes).fold(0, u64::saturating_add);
    bytes.saturating_add(ramp_bytes(visit) as u64)
}

/// Bytes written before the measured part. Of a ramp only the number of requests is known.
fn ramp_bytes(visit: &VisitRecord) -> f64 {
    let of = |stream: &record::StreamRecord| {
        let all: u64 = stream.ops.iter().map(|op| op.requests).fold(0, u64::saturating_add);
        let own = stream.ops.iter().filter(|op| op.op == "write");
        let bytes: u64 = own.map(|op| op.bytes).fold(0, u64::saturating_add);
        stream.ramp_requests as f64 * bytes as f64 / all.max(1) as f64
    };
    visit.streams.iter().map(of).sum()
}

/// Bytes written and time taken, piece by piece, time in which the device stood still taken off.
///
/// * `needed_ns`: a piece is so long at least.
fn pieces(visit: &VisitRecord, needed_ns: f64) -> Vec<Piece> {
    let series: Vec<&record::Series> = writes(visit).map(|op| &op.series).collect();
    let Some(interval) = series.iter().map(|s| s.interval_ns).max().filter(|&ns| ns > 0) else {
        return Vec::new();
    };
    if visit.end == VisitEnd::Hanging {
        return Vec::new();
    }
    let rows_of_piece = (needed_ns.min(PIECE_NS_MAX) / interval as f64).ceil().max(1.0) as u64;
    let step = interval.saturating_mul(rows_of_piece);
    let rows =
        series.iter().map(|s| (s.rows.len() as u64).saturating_mul(s.interval_ns) / step + 1).max();
    let mut bytes = vec![0.0; usize::try_from(rows.unwrap_or(0)).unwrap_or(0)];
    for series in &series {
        for (row, place) in series.rows.iter().zip(0u64..) {
            let piece = usize::try_from(place.saturating_mul(series.interval_ns) / step);
            if let Some(sum) = piece.ok().and_then(|piece| bytes.get_mut(piece)) {
                *sum += row.bytes as f64;
            }
        }
    }
    let gaps = freeze::gaps(visit);
    let load_ns = load_ns(visit);
    let unsure = unsure_ns(visit, step);
    let time = |piece: usize| {
        let start = (piece as u64).saturating_mul(step);
        let end = start.saturating_add(step).min(load_ns);
        if start < unsure || end > load_ns.saturating_sub(unsure) {
            return 0.0;
        }
        let lost =
            gaps.iter().map(|gap| gap.end_ns().min(end).saturating_sub(gap.start_ns.max(start)));
        let left = end.saturating_sub(start).saturating_sub(lost.sum());
        // A piece of which little is left says little about its rate.
        if left >= step.min(load_ns) / 2 { left as f64 / 1e9 } else { 0.0 }
    };
    let before = Piece { bytes: ramp_bytes(visit), seconds: 0.0 };
    let all = bytes.into_iter().enumerate();
    let all = all.map(|(piece, bytes)| Piece { bytes, seconds: time(piece) });
    std::iter::once(before).chain(all).collect()
}

/// So long after its start and before its end the rate of a visit is not that of its load.
fn unsure_ns(visit: &VisitRecord, step: u64) -> u64 {
    let (sum, requests) = writes(visit).fold((0u128, 0u64), |(sum, requests), op| {
        (sum.saturating_add(op.latency_ns_sum), requests.saturating_add(op.requests))
    });
    let mean = sum as f64 / requests.max(1) as f64;
    if mean >= LATENCY_SHARE * step as f64 { mean as u64 } else { 0 }
}

impl WriteCliff {
    /// Where, from what to what.
    pub fn finding(&self) -> Finding {
        let between = (self.at_bytes_low as f64, self.at_bytes_high as f64);
        let earlier = (self.earlier_bytes > 0).then(|| Number::bytes(self.earlier_bytes));
        Finding::new(Code::WriteCliff)
            .on(Subject::new(self.cell, None, &self.cell_name))
            .with("at", Number::bytes(self.at_bytes).within(between.0, between.1))
            .with_some("earlier", earlier)
            .with("before", Number::bandwidth(self.before))
            .with("after", Number::bandwidth(self.after))
            .with("seen", Number::bytes(self.after_bytes))
            .with("lasts", self.after_bytes as f64 >= LASTS * self.after)
    }
}

impl NoCliff {
    /// How far nothing fell.
    pub fn finding(&self) -> Finding {
        Finding::new(Code::WriteCliffNone)
            .on(Subject::new(self.cell, None, &self.cell_name))
            .with("written", Number::bytes(self.written_bytes))
            .with("from", Number::bytes(self.from_bytes))
            .with_some("cache_at", self.cache_at_bytes.map(Number::bytes))
    }
}
