//! Histogram logs, read back with HdrHistogram's own reader.

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use record::{Purpose, Reported, ReportedLatency, Run, VisitEnd};
use report::{HlogError, hlog};

use crate::sample;

/// Tag, start and length in seconds, longest in ms, histogram.
fn read(log: &str) -> Vec<(String, f64, f64, f64, Histogram<u64>)> {
    let intervals =
        IntervalLogIterator::new(log.as_bytes()).filter_map(|entry| match entry.unwrap() {
            LogEntry::Interval(interval) => Some(interval),
            _ => None,
        });
    let read = intervals.map(|interval| {
        let encoded = interval.encoded_histogram();
        let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).unwrap();
        let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        (
            interval.tag().unwrap().as_str().to_owned(),
            interval.start_timestamp().as_secs_f64(),
            interval.duration().as_secs_f64(),
            interval.max(),
            histogram,
        )
    });
    read.collect()
}

#[test]
fn every_visit_stream_and_operation_is_an_interval() {
    let run = sample::rich();
    let log = hlog(&run).unwrap();
    let read = read(&log);
    let tags: Vec<_> = read.iter().map(|(tag, ..)| tag.as_str()).collect();
    assert_eq!(tags, EXPECTED);
    assert!(log.contains("#[StartTime: "), "{log}");
    assert_eq!(log, hlog(&run).unwrap());
}

const EXPECTED: [&str; 8] = [
    "2/read/block_size=4KiB/threads=1/main/read",
    "2/read/block_size=4KiB/threads=1/main/read",
    "2/read/block_size=4KiB/threads=1/main/read/interrupted",
    "3/read/block_size=4KiB/threads=10/main/read",
    "4/oltp/pages/read",
    "4/oltp/pages/write",
    "4/oltp/pages/fsync",
    "4/oltp/log/write",
];

#[test]
fn latencies_survive() {
    let run = sample::rich();
    let of_record: Vec<_> = run
        .visits
        .iter()
        .flat_map(|v| &v.streams)
        .flat_map(|s| &s.ops)
        .filter(|op| op.latency.count() > 0)
        .collect();
    let read = read(&hlog(&run).unwrap());
    assert_eq!(read.len(), of_record.len());
    for ((tag, _, _, max_ms, histogram), op) in read.iter().zip(of_record) {
        assert_eq!(histogram.len(), op.latency.count(), "{tag}");
        let close = |a: f64, b: f64, share: f64| (a / b - 1.0).abs() <= share;
        // Three digits.
        assert!(close(histogram.max() as f64, op.latency_ns_max as f64, 0.001), "{tag}");
        assert!(close(histogram.min() as f64, op.latency_ns_min as f64, 0.001), "{tag}");
        assert!(close(max_ms * 1e6, op.latency_ns_max as f64, 0.001) || *max_ms < 0.002, "{tag}");
        for q in [0.1, 0.5, 0.9, 0.99] {
            let Some(ours) = op.latency.quantile(q) else { continue };
            let theirs = histogram.value_at_quantile(q) as f64;
            assert!(close(theirs, ours.get() as f64, 0.01), "{tag} {q}: {theirs} {ours:?}");
        }
    }
}

#[test]
fn what_does_not_count_says_so_in_its_tag() {
    let mut run = sample::rich();
    run.visits[0].purpose = Purpose::Pilot;
    run.visits[1].end = VisitEnd::Failed;
    let read = read(&hlog(&run).unwrap());
    assert!(read[0].0.ends_with("/read/pilot"), "{}", read[0].0);
    assert!(read[1].0.ends_with("/read/failed"), "{}", read[1].0);
}

#[test]
fn tags_are_one_word() {
    let mut run = sample::rich();
    for cell in &mut run.cells {
        cell.phase = "a, b\nc\u{1b}".to_owned();
    }
    assert!(read(&hlog(&run).unwrap()).iter().all(|(tag, ..)| tag.contains("/a__b_c_/")));
}

/// As another tool's run: nothing is counted by us.
fn imported(latency: ReportedLatency) -> Run {
    let mut run = sample::rich();
    run.header.started_unix_ns = 0;
    run.header.imported = Some(record::Imported {
        tool: "fio".into(),
        version: None,
        file: "f".into(),
        bytes: 1,
        xxh3: "0".into(),
        settings: vec![],
        remarks: vec![],
    });
    for visit in &mut run.visits {
        (visit.started_unix_ns, visit.elapsed_ns) = (0, 0);
        for op in visit.streams.iter_mut().flat_map(|s| &mut s.ops) {
            op.latency = stats::LatencyHistogram::new();
            op.reported = Some(Reported { latency: latency.clone(), ..Reported::default() });
        }
    }
    run
}

#[test]
fn bins_of_another_tool_are_taken_as_they_are() {
    let buckets = vec![(0, 1), (45_440, 7), (1_000_000_000_000_000, 2)];
    let run = imported(ReportedLatency { buckets, ..ReportedLatency::default() });
    let log = hlog(&run).unwrap();
    assert!(log.contains("is not known") && !log.contains("StartTime"), "{log}");
    for (_, start, length, _, histogram) in read(&log) {
        assert_eq!((start, length, histogram.len()), (0.0, 0.0, 10));
        assert_eq!(histogram.count_at(45_440), 7);
    }
}

#[test]
fn without_any_histogram_there_is_no_log() {
    let quantiles = vec![(0.99, 5)];
    let run = imported(ReportedLatency { quantiles, ..ReportedLatency::default() });
    let error = hlog(&run).unwrap_err();
    assert!(matches!(error, HlogError::None(_)), "{error}");
    assert_eq!(error.to_string(), "run r17 has no latency histogram");
}
