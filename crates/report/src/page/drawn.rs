//! What is drawn: courses over time in as many points as can be seen, latencies as curves.

use std::collections::BTreeMap;

use explain::view::whole;
use record::{OpRecord, SeriesRow, VisitRecord};
use stats::{LatencyHistogram, exposure};
use units::Nanos;

use super::{PageHeat, PageSeries};
use crate::figures::{Figures, StreamOfCell, is_data, total};
use crate::json::{tail_bounds, tail_quantile};

/// Points of a course that a visit keeps however many there are in all.
const POINTS_MIN: usize = 8;
/// Eighths of an octave in a band of heat.
const BUCKETS_PER_BAND: u16 = 2;
/// Shares below the first nine that a distribution is drawn at.
const LOWER: [f64; 5] = [0.001, 0.01, 0.05, 0.1, 0.15];
/// Points of a distribution for each nine of its share.
const POINTS_PER_NINE: u32 = 8;
/// A share of more nines needs more requests than a run has.
const NINES_MAX: u32 = 9;
/// Steps of a decade at which an exposure is drawn.
const STEPS: [u64; 8] = [10, 13, 18, 24, 32, 42, 56, 75];

/// How many intervals a point of a course stands for, so that all of them are about so many points.
///
/// * `lengths`: intervals of each course.
pub fn merged(lengths: impl Iterator<Item = usize>, points_max: usize) -> usize {
    lengths.sum::<usize>().div_ceil(points_max.max(1)).max(1)
}

/// Rows of a visit's courses: every operation that counts, added up.
fn rows(stream: &StreamOfCell<'_>, visit: &VisitRecord) -> Option<(u64, Vec<SeriesRow>)> {
    let ops = whole(&visit.streams.get(stream.position)?.ops);
    let has_data = ops.clone().any(|op| is_data(&op.op));
    let drawn = |op: &&OpRecord| {
        !op.series.rows.is_empty() && (!has_data || is_data(&op.op)) && stream.counts.takes(&op.op)
    };
    let ops: Vec<&OpRecord> = ops.filter(drawn).collect();
    let interval = ops.first()?.series.interval_ns;
    if interval == 0 || ops.iter().any(|op| op.series.interval_ns != interval) {
        return None;
    }
    let length = ops.iter().map(|op| op.series.rows.len()).max()?;
    let mut rows = vec![SeriesRow::default(); length];
    for op in ops {
        for (sum, row) in rows.iter_mut().zip(&op.series.rows) {
            *sum = together([&*sum, row].into_iter());
        }
    }
    Some((interval, rows))
}

fn together<'a>(rows: impl Iterator<Item = &'a SeriesRow>) -> SeriesRow {
    let mut sum = SeriesRow::default();
    let mut tail: BTreeMap<u16, u64> = BTreeMap::new();
    for row in rows {
        sum.requests = sum.requests.saturating_add(row.requests);
        sum.bytes = sum.bytes.saturating_add(row.bytes);
        for &(bucket, count) in &row.tail {
            let known = tail.entry(bucket).or_default();
            *known = known.saturating_add(count);
        }
    }
    sum.tail = tail.into_iter().collect();
    sum
}

/// How many intervals the course of a visit has.
pub fn intervals(stream: &StreamOfCell<'_>, visit: &VisitRecord) -> usize {
    let ops = visit.streams.get(stream.position).into_iter().flat_map(|s| &s.ops);
    ops.map(|op| op.series.rows.len()).max().unwrap_or(0)
}

/// Cuts a course to the intervals that the load filled, of which rates are. After the load there is
/// only what was still in flight, of this stream or of others, and an interval that is not full
/// holds some of that. A stream that completed nothing while the load went on has rows of nothing.
///
/// * `rows`: left as they are where no interval was filled but the first.
fn cut_to_load(rows: &mut Vec<SeriesRow>, visit: &VisitRecord, interval: u64) {
    let whole = usize::try_from(visit.rated_ns() / interval).unwrap_or(usize::MAX).max(1);
    let streams = visit.streams.iter().flat_map(|stream| &stream.ops);
    let longest = streams.map(|op| op.series.rows.len()).max().unwrap_or(0);
    // A stream that ended by itself did not stand still.
    if visit.load_ns.is_some() && rows.len() < longest {
        rows.resize(longest, SeriesRow::default());
    }
    rows.truncate(whole);
}

/// The course of a visit, `merged` intervals to a point; the extremes of each point are kept.
pub fn series(stream: &StreamOfCell<'_>, visit: &VisitRecord, merged: usize) -> Option<PageSeries> {
    let (interval, mut rows) = rows(stream, visit)?;
    cut_to_load(&mut rows, visit, interval);
    let end = visit.elapsed_ns.max(visit.rated_ns());
    let length = |k: usize| {
        let start = (k as u64).saturating_mul(interval);
        end.saturating_sub(start).min(interval)
    };
    let merged = merged.min((rows.len() / POINTS_MIN).max(1));
    let rate = |requests: u64, ns: u64| match ns {
        0 => 0.0,
        ns => five_digits(requests as f64 * 1e9 / ns as f64),
    };
    let step_ns = interval.saturating_mul(merged as u64);
    let mut out = PageSeries {
        step_ns,
        merged: u32::try_from(merged).unwrap_or(u32::MAX),
        rate: Vec::new(),
        low: Vec::new(),
        high: Vec::new(),
        p99_ns: Vec::new(),
        max_ns: Vec::new(),
    };
    for (at, chunk) in rows.chunks(merged).enumerate() {
        let first = at * merged;
        let each = || chunk.iter().zip(first..).map(|(row, k)| rate(row.requests, length(k)));
        let sum = together(chunk.iter());
        let time = total((first..first + chunk.len()).map(length));
        out.rate.push(rate(sum.requests, time));
        if merged > 1 {
            out.low.push(each().fold(f64::INFINITY, f64::min));
            out.high.push(each().fold(0.0, f64::max));
        }
        out.p99_ns.push(tail_quantile(&sum.tail, 99));
        let longest = sum.tail.iter().rfind(|(_, n)| *n > 0);
        out.max_ns.push(longest.map(|&(bucket, _)| tail_bounds(bucket).1));
    }
    Some(out)
}

/// Bands of latency of a cell: quarters of an octave, from the shortest to the longest of its visits.
pub fn bands(stream: &StreamOfCell<'_>) -> std::ops::Range<u16> {
    let mut found: Option<(u16, u16)> = None;
    for visit in &stream.visits {
        let rows = rows(stream, visit).map(|(_, rows)| rows).unwrap_or_default();
        for &(bucket, _) in rows.iter().flat_map(|row| &row.tail).filter(|(_, count)| *count > 0) {
            let band = bucket / BUCKETS_PER_BAND;
            let (low, high) = found.unwrap_or((band, band));
            found = Some((low.min(band), high.max(band)));
        }
    }
    found.map_or(0..0, |(low, high)| low..high.saturating_add(1))
}

/// Shortest and longest latency of a band.
pub fn band_bounds(band: u16) -> (u64, u64) {
    let first = band.saturating_mul(BUCKETS_PER_BAND);
    let last = first.saturating_add(BUCKETS_PER_BAND - 1);
    (tail_bounds(first).0, tail_bounds(last).1)
}

/// Latencies over the time of a visit, `merged` intervals to a column. Every request is counted.
///
/// * `bands`: those of the cell.
pub fn heat(
    stream: &StreamOfCell<'_>,
    visit: &VisitRecord,
    bands: &std::ops::Range<u16>,
    merged: usize,
) -> Option<PageHeat> {
    let (interval, rows) = rows(stream, visit)?;
    if bands.is_empty() {
        return None;
    }
    let merged = merged.min((rows.len() / POINTS_MIN).max(1));
    let column = |rows: &[SeriesRow]| {
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        for &(bucket, count) in rows.iter().flat_map(|row| &row.tail) {
            let band = (bucket / BUCKETS_PER_BAND).saturating_sub(bands.start);
            let known = counts.entry(band).or_default();
            *known = known.saturating_add(count);
        }
        counts.into_iter().filter(|(_, count)| *count > 0).collect()
    };
    Some(PageHeat {
        step_ns: interval.saturating_mul(merged as u64),
        columns: rows.chunks(merged).map(column).collect(),
    })
}

/// More than can be drawn, and half the bytes.
fn five_digits(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.clamp(-20, 20));
    (value * scale).round() / scale
}

/// (share, latency that so many did not exceed): as far as the requests carry it.
pub fn quantiles(figures: &Figures) -> Vec<(f64, u64)> {
    let upper = (1..=NINES_MAX * POINTS_PER_NINE)
        .map(|k| 1.0 - 10f64.powf(-f64::from(k) / f64::from(POINTS_PER_NINE)));
    let shares = LOWER.into_iter().chain(upper);
    let known = |share: f64| Some(((share * 1e9).round() / 1e9, figures.latency_ns(share)?));
    shares.map_while(known).collect()
}

/// What another tool told of a distribution, where one visit and operation did.
pub fn told<'a>(stream: &StreamOfCell<'a>) -> Option<&'a record::ReportedLatency> {
    let [visit] = stream.counted()[..] else { return None };
    let [op] = visit.streams.get(stream.position)?.ops.as_slice() else { return None };
    op.reported.as_ref().map(|told| &told.latency)
}

/// (wait, chance of waiting longer), from where it is 1 to where it is nothing.
pub fn exposures(latencies: &LatencyHistogram) -> Vec<(u64, f64)> {
    let decades = (3..11).map(|power| 10u64.pow(power));
    let waits = decades.flat_map(|decade| STEPS.map(|step| decade / 10 * step));
    let at = |wait: u64| Some((wait, exposure::from_histogram(latencies, Nanos::new(wait))?));
    let mut points: Vec<(u64, f64)> = Vec::new();
    for (wait, share) in waits.filter_map(at) {
        if share > 0.999 {
            points.clear();
        }
        points.push((wait, share));
        if share < 1e-7 {
            break;
        }
    }
    points
}

/// Latencies in eighths of an octave: (from, to, how many).
pub fn histogram(latencies: &LatencyHistogram) -> Vec<(u64, u64, u64)> {
    let mut coarse: BTreeMap<u16, u64> = BTreeMap::new();
    for (bucket, count) in latencies.sparse() {
        let known = coarse.entry((bucket / 16) as u16).or_default();
        *known = known.saturating_add(count);
    }
    let bar = |(bucket, count): (u16, u64)| {
        let (from, to) = tail_bounds(bucket);
        (from, to, count)
    };
    coarse.into_iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_digits_stay() {
        for (value, kept) in
            [(0.0, 0.0), (123_456.7, 123_460.0), (1.234_567, 1.2346), (f64::NAN, 0.0)]
        {
            assert_eq!(five_digits(value), kept);
        }
    }

    #[test]
    fn the_points_of_all_courses_are_bounded() {
        assert_eq!(merged([10, 20].into_iter(), 100), 1);
        assert_eq!(merged([600_000, 400_000].into_iter(), 40_000), 25);
        assert_eq!(merged(std::iter::empty(), 0), 1);
    }

    #[test]
    fn bands_follow_each_other_by_a_quarter_of_an_octave() {
        for band in 40..130u16 {
            let ((from, to), (next, _)) = (band_bounds(band), band_bounds(band + 1));
            assert!(from < to && to < next && next - to <= 1, "{band}: {from} {to} {next}");
            let octaves = (next as f64 / from as f64).log2();
            assert!((0.15..0.35).contains(&octaves), "{band}: {octaves}");
        }
        assert!(band_bounds(u16::MAX).0 <= band_bounds(u16::MAX).1);
    }

    #[test]
    fn an_exposure_falls_from_one() {
        let mut latencies = LatencyHistogram::new();
        for latency in [80_000, 90_000, 2_000_000_000] {
            latencies.record(Nanos::new(latency));
        }
        let points = exposures(&latencies);
        assert!(points[0].1 > 0.999, "{points:?}");
        assert!(points.windows(2).all(|p| p[0].1 >= p[1].1 && p[0].0 < p[1].0), "{points:?}");
        assert!(points.last().is_some_and(|p| p.1 < 1e-6));
        assert!(exposures(&LatencyHistogram::new()).is_empty());
    }
}
