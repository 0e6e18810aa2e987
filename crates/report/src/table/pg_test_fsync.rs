//! pg_test_fsync's list, as PostgreSQL 13 and later print it: operations a second, and how many
//! microseconds one takes. An operation is a commit, whatever number of writes it has.

use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell};
use crate::text::plain;

const NOTE: &str = "(in wal_sync_method preference order, except fdatasync is Linux's default)\n";
const METHODS: [&str; 5] =
    ["open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync"];

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let list = List { run, streams };
    if METHODS.iter().all(|method| list.commit("one", method).is_none()) {
        return Err(Misfit::new(
            "it has none of pg_test_fsync's phases, such as one-fdatasync or one-open-sync",
        ));
    }
    Ok(list.print())
}

struct List<'a> {
    run: &'a Run,
    streams: Vec<StreamOfCell<'a>>,
}

// Writing to a string cannot fail, hence `let _`.
impl<'a> List<'a> {
    fn print(&self) -> String {
        let mut out = self.settings();
        let block = self.block();
        for (words, count) in [("one", "write"), ("two", "writes")] {
            let _ =
                write!(out, "\nCompare file sync methods using {words} {block}kB {count}:\n{NOTE}");
            for method in METHODS {
                row(&mut out, method, self.commit(words, method));
            }
        }
        out.push_str(
            "\nCompare open_sync with different write sizes:\n\
             (This is designed to compare the cost of writing 16kB in different write\n\
             open_sync sizes.)\n",
        );
        for count in [1u64, 2, 4, 8, 16] {
            let size = 16 / count;
            let plural = if count == 1 { "" } else { "s" };
            row(
                &mut out,
                &format!("{count:2} * {size:2}kB open_sync write{plural}"),
                self.split(count),
            );
        }
        out.push_str(
            "\nTest if fsync on non-write file descriptor is honored:\n\
             (If the times are similar, fsync() can sync data written on a different\n\
             descriptor.)\n",
        );
        for (label, method) in [
            ("write, fsync, close", "write-fsync-close"),
            ("write, close, fsync", "write-close-fsync"),
        ] {
            let found = self.find("other-descriptor", Some(("method", method)));
            row(&mut out, label, found.and_then(|stream| rate(stream, 1.0)));
        }
        let _ = write!(out, "\nNon-sync'ed {block}kB writes:\n");
        let plain = self.find("no-sync", None).or_else(|| self.find("unflushed", None));
        row(&mut out, "write", plain.and_then(|stream| rate(stream, 1.0)));
        out
    }

    /// Seconds a test, and whether the open methods go around the page cache.
    fn settings(&self) -> String {
        let seconds = shape::setting(self.run, "seconds per test").map(plain).or_else(|| {
            let visits = self.streams.iter().flat_map(StreamOfCell::counted);
            let longest = visits.map(|visit| visit.elapsed_ns).max().filter(|&ns| ns > 0)?;
            let seconds = longest as f64 / 1e9;
            Some(if seconds < 0.5 { shape::general(seconds, 1) } else { format!("{seconds:.0}") })
        });
        let direct = shape::setting(self.run, "direct").map(plain).or_else(|| {
            let stream = self.find("one-open-datasync", None)?;
            let visit = stream.counted().into_iter().next()?;
            let direct = stream.record(visit)?.backend.direct;
            Some(match direct {
                true => {
                    "O_DIRECT supported on this platform for open_datasync and open_sync.".into()
                }
                false => "Direct I/O is not supported on this platform.".into(),
            })
        });
        let plural = if seconds.as_deref() == Some("1") { "" } else { "s" };
        let mut out = String::new();
        if let Some(seconds) = seconds {
            let _ = writeln!(out, "{seconds} second{plural} per test");
        }
        if let Some(direct) = direct {
            let _ = writeln!(out, "{direct}");
        }
        out
    }

    /// KiB of a write.
    fn block(&self) -> u64 {
        let one = |s: &&StreamOfCell| s.cell.phase.starts_with("one");
        let found = self.streams.iter().find(one);
        found.and_then(|stream| stream.plan.block_bytes).unwrap_or(8192) >> 10
    }

    fn find(&self, phase: &str, at: Option<(&str, &str)>) -> Option<&StreamOfCell<'a>> {
        self.streams.iter().find(|stream| {
            let here = |(field, value): (&str, &str)| {
                stream.cell.coordinates.iter().any(|(f, v)| f == field && v == value)
            };
            stream.cell.phase == phase && at.is_none_or(here)
        })
    }

    /// Commits by a method: our phase `one-open-datasync`, the importer's `one-write` at it.
    fn commit(&self, words: &str, method: &str) -> Option<(f64, f64)> {
        let ours = format!("{words}-{}", method.replace('_', "-"));
        if let Some(stream) = self.find(&ours, None) {
            return rate(stream, if words == "one" { 1.0 } else { 2.0 });
        }
        let theirs = if words == "one" { "one-write" } else { "two-writes" };
        rate(self.find(theirs, Some(("method", method)))?, 1.0)
    }

    /// 16 KiB in so many writes.
    fn split(&self, count: u64) -> Option<(f64, f64)> {
        if let Some(stream) = self.find("split", Some(("commit_writes", &count.to_string()))) {
            return rate(stream, 1.0);
        }
        let size = format!("{}KiB", 16 / count);
        if let Some(stream) = self.find("split", Some(("block_size", &size))) {
            return rate(stream, count as f64);
        }
        rate(self.find("open-sync-sizes", Some(("writes", &count.to_string())))?, 1.0)
    }
}

/// Commits a second, and microseconds a commit; `None` where it was not measured.
///
/// * `writes`: in a commit, of runs that counted those.
fn rate(stream: &StreamOfCell, writes: f64) -> Option<(f64, f64)> {
    let figures: Figures = stream.figures();
    let rate = figures.iops_of_visits()? / if stream.commits() { 1.0 } else { writes };
    if rate <= 0.0 {
        return None;
    }
    // Of elapsed time, not of the latencies, unless it was told.
    let told = figures.latency_ns_mean().filter(|_| figures.is_told());
    Some((rate, told.map_or(1e6 / rate, |ns| ns / 1e3)))
}

fn row(out: &mut String, label: &str, figures: Option<(f64, f64)>) {
    let _ = match figures {
        Some((rate, us)) => {
            writeln!(out, "        {label:<30}{rate:13.3} ops/sec  {us:6.0} usecs/op")
        }
        None => writeln!(out, "        {label:<30}{:>21}", "n/a"),
    };
}
