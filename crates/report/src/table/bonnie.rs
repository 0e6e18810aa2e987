//! bonnie++'s table: of 1.97 for our own runs, of their own version for imported ones.
//!
//! K is 1024 bytes, rates and CPU are cut to whole numbers, a phase of less than half a second
//! has plus signs, the latency is the largest single operation and the closing flush is not in it.

use std::fmt::Write;

use record::Run;

use super::layout::Misfit;
use super::shape;
use crate::figures::{Figures, StreamOfCell};
use crate::text::plain;

/// Below this a phase has plus signs.
const SECONDS_MIN: f64 = 0.5;
/// Without a size of its own a request has 8 KiB, and the header does not say so.
const CHUNK: u64 = 8192;
/// Files are counted in so many.
const FILES_UNIT: u64 = 1024;

/// What a column's rate is of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    /// Bytes, in KiB.
    Bytes,
    /// Seeks, with one decimal below 1000.
    Seeks,
    /// Files.
    Files,
}

/// A column: names of its phase, the operations that count, the first that was done, and what of
/// them. An update is a read and a write and counts once.
struct Column {
    phases: [&'static str; 2],
    ops: &'static [&'static str],
    of: Of,
}

const fn column(
    ours: &'static str,
    imported: &'static str,
    ops: &'static [&'static str],
    of: Of,
) -> Column {
    Column { phases: [ours, imported], ops, of }
}

const FILE: [Column; 6] = [
    column("write-byte", "per-char-write", &["write"], Of::Bytes),
    column("write-block", "block-write", &["write"], Of::Bytes),
    column("rewrite", "rewrite", &["rewrite", "write"], Of::Bytes),
    column("read-byte", "per-char-read", &["read"], Of::Bytes),
    column("read-block", "block-read", &["read"], Of::Bytes),
    column("seek", "seeks", &["seek", "read"], Of::Seeks),
];

const FILES: [Column; 6] = [
    column("create-in-order", "sequential-create", &["create"], Of::Files),
    column("stat-in-order", "sequential-stat", &["stat"], Of::Files),
    column("delete-in-order", "sequential-delete", &["delete"], Of::Files),
    column("create-at-random", "random-create", &["create"], Of::Files),
    column("stat-at-random", "random-stat", &["stat"], Of::Files),
    column("delete-at-random", "random-delete", &["delete"], Of::Files),
];

/// How the versions differ.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    /// 1.0x: no latency, no version above the files.
    Old,
    /// 1.9x: the concurrency, K/sec.
    Middle,
    /// 2.0x: rates with units.
    New,
}

/// What stands in a column.
struct Cell {
    rate: String,
    cpu: String,
    latency: String,
}

pub fn print(run: &Run) -> Result<String, Misfit> {
    let streams = shape::single(run)?;
    let name = run.header.imported.as_ref().and_then(|i| i.version.as_deref());
    let version = match (run.header.imported.is_some(), name) {
        (false, _) => Version::Middle,
        (true, None) => Version::Old,
        (true, Some(name)) if name.starts_with("1.0") => Version::Old,
        (true, Some(name)) if name.starts_with('1') => Version::Middle,
        (true, Some(_)) => Version::New,
    };
    let printed = match version {
        Version::Old => name.unwrap_or("1.03"),
        _ => name.unwrap_or("1.97"),
    };
    let found = |columns: &[Column]| -> Vec<Option<Cell>> {
        columns.iter().map(|column| cell(&streams, column, version)).collect()
    };
    let (file, files) = (found(&FILE), found(&FILES));
    let any = |cells: &[Option<Cell>]| cells.iter().any(Option::is_some);
    if !any(&file) && !any(&files) {
        return Err(Misfit::new("it has none of bonnie++'s phases, such as write-block or seek"));
    }
    let mut out = String::new();
    let table = Table { run, streams: &streams, version, printed: plain(printed) };
    if any(&file) {
        table.file(&mut out, &file);
    }
    if any(&files) {
        table.files(&mut out, &files);
    }
    let no_cpu = file.iter().chain(&files).flatten().any(|cell| cell.cpu.is_empty());
    if no_cpu {
        out.push_str("(%CP is blank where the threads' CPU is not known.)\n");
    }
    Ok(out)
}

fn find<'a, 'b>(streams: &'b [StreamOfCell<'a>], column: &Column) -> Option<&'b StreamOfCell<'a>> {
    let mut of_phase = streams.iter().filter(|s| column.phases.contains(&s.cell.phase.as_str()));
    of_phase.find(|stream| !stream.counted().is_empty())
}

/// The operation of a column that a stream did.
fn figures(stream: &StreamOfCell, column: &Column) -> Option<Figures> {
    let done = stream.op_names();
    let op = column.ops.iter().find(|op| done.contains(op))?;
    Some(stream.figures_of(|name| name == *op))
}

/// A column; `None` where its phase was not played.
fn cell(streams: &[StreamOfCell], column: &Column, version: Version) -> Option<Cell> {
    let stream = find(streams, column)?;
    let figures = figures(stream, column)?;
    let visits = stream.counted().len().max(1) as f64;
    let short = match shape::elapsed_ns(stream) {
        Some(ns) if !figures.is_told() => ns as f64 / 1e9 / visits < SECONDS_MIN,
        _ => false,
    };
    let rate = match column.of {
        Of::Bytes => figures.bytes_per_second_of_visits().map(|rate| rate / 1024.0),
        Of::Seeks | Of::Files => figures.iops_of_visits(),
    };
    let latency = shape::ops(stream)
        .iter()
        .filter(|op| !shape::is_sync(&op.op))
        .map(|op| match &op.reported {
            Some(told) => told.latency.max.unwrap_or(0),
            None => op.latency_ns_max,
        })
        .max();
    let latency = latency.filter(|&ns| ns > 0).map(latency_text).unwrap_or_default();
    let Some(rate) = rate.filter(|_| !short) else {
        return Some(Cell { rate: "+++++".to_owned(), cpu: "+++".to_owned(), latency });
    };
    // bonnie++ adds the CPU of the whole process once for each of the threads that seek.
    let times = match (column.of, figures.is_told()) {
        (Of::Seeks, false) => f64::from(stream.plan.threads.max(1)),
        _ => 1.0,
    };
    let cpu = shape::cpu_percent(stream).map(|cpu| shape::cut(cpu * times).to_string());
    Some(Cell { rate: rate_text(rate, column.of, version), cpu: cpu.unwrap_or_default(), latency })
}

fn rate_text(rate: f64, of: Of, version: Version) -> String {
    match of {
        Of::Seeks if rate >= 1000.0 => format!("{rate:.0}"),
        Of::Seeks => format!("{rate:.1}"),
        Of::Bytes if version == Version::New => with_unit(rate),
        Of::Bytes | Of::Files => shape::cut(rate).to_string(),
    }
}

/// As 2.00 prints KiB a second in five columns: `1045k`, `15.8m`, `728m`, `1.1g`.
fn with_unit(kib: f64) -> String {
    let (mib, gib) = (kib / 1024.0, kib / 1024.0 / 1024.0);
    match () {
        () if kib < 10_000.0 => format!("{}k", shape::cut(kib)),
        () if mib < 99.95 => format!("{mib:.1}m"),
        () if mib < 999.5 => format!("{mib:.0}m"),
        () => format!("{gib:.1}g"),
    }
}

/// Cut: us to a tenth of a second, ms to 100 s, then s.
fn latency_text(ns: u64) -> String {
    match ns {
        0..=99_999_999 => format!("{}us", ns / 1000),
        100_000_000..=99_999_999_999 => format!("{}ms", ns / 1_000_000),
        _ => format!("{}s", ns / 1_000_000_000),
    }
}

struct Table<'a, 'b> {
    run: &'a Run,
    streams: &'b [StreamOfCell<'a>],
    version: Version,
    printed: String,
}

// Writing to a string cannot fail, hence `let _`.
impl Table<'_, '_> {
    fn file(&self, out: &mut String, cells: &[Option<Cell>]) {
        let _ = writeln!(
            out,
            "Version {:>5}       ------Sequential Output------ --Sequential Input- --Random-",
            self.printed
        );
        let left = match self.version {
            Version::Middle => format!("Concurrency {:>3}     ", self.concurrency()),
            Version::Old | Version::New => " ".repeat(20),
        };
        let _ = writeln!(out, "{left}-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--");
        let chunk = self.chunk().filter(|&chunk| chunk != CHUNK);
        let head = match (self.version, chunk) {
            (Version::New, _) => {
                "Name:Size etc        /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP"
            }
            (_, None) => {
                "Machine        Size K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP"
            }
            (_, Some(_)) => {
                "Machine   Size:chnk K/sec %CP K/sec %CP K/sec %CP K/sec %CP K/sec %CP  /sec %CP"
            }
        };
        let _ = writeln!(out, "{head}");
        let target = &self.run.header.target;
        let bytes = target.size_bytes.saturating_mul(u64::from(target.files.max(1)));
        let mut size = shape::whole_unit(bytes >> 20, &["M", "G"]);
        if let Some(chunk) = chunk {
            let _ = write!(size, ":{}", shape::whole_unit(chunk, &["", "k", "m"]));
        }
        let room = 18usize.saturating_sub(size.chars().count());
        let name: String = self.name().chars().take(room).collect();
        let _ = writeln!(out, "{}", line(format!("{name:<room$} {size}"), cells));
        self.latency(out, cells);
    }

    fn files(&self, out: &mut String, cells: &[Option<Cell>]) {
        let heads = "------Sequential Create------ --------Random Create--------";
        let kinds = "-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--";
        let _ = match self.version {
            Version::Old => {
                writeln!(out, "{:20}{heads}\n{:20}{kinds}", "", "")
            }
            _ => {
                let name: String = self.name().chars().take(19).collect();
                writeln!(out, "Version {:>5}       {heads}\n{name:<19} {kinds}", self.printed)
            }
        };
        out.push_str(
            "              files  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP  /sec %CP\n",
        );
        let _ = writeln!(out, "{}", line(format!("{:>19}", self.file_count()), cells));
        self.latency(out, cells);
    }

    fn latency(&self, out: &mut String, cells: &[Option<Cell>]) {
        if self.version == Version::Old {
            return;
        }
        let mut text = format!("{:<17}", "Latency");
        for cell in cells {
            let latency = cell.as_ref().map_or("", |cell| cell.latency.as_str());
            let _ = write!(text, " {latency:>9}");
        }
        let _ = writeln!(out, "{}", text.trim_end());
    }

    fn name(&self) -> String {
        plain(&self.run.header.machine.host)
    }

    /// In 1.9x the load does not depend on it.
    fn concurrency(&self) -> String {
        plain(shape::setting(self.run, "concurrency").filter(|c| !c.is_empty()).unwrap_or("1"))
    }

    fn chunk(&self) -> Option<u64> {
        let block = |column: &Column| find(self.streams, column)?.plan.block_bytes;
        FILE.iter().filter(|c| !c.phases[0].ends_with("byte")).find_map(block)
    }

    /// In units of 1024, as it was told or from what was made.
    fn file_count(&self) -> String {
        if let Some(told) = shape::setting(self.run, "files (x 1024)") {
            return plain(told);
        }
        let count = FILES.iter().find_map(|column| {
            let stream = find(self.streams, column)?;
            let made = figures(stream, column)?.requests_known()?;
            made.checked_div(stream.counted().len() as u64)
        });
        match count {
            Some(count) if count.is_multiple_of(FILES_UNIT) => (count / FILES_UNIT).to_string(),
            Some(count) => format!("{count}/{FILES_UNIT}"),
            None => String::new(),
        }
    }
}

fn line(start: String, cells: &[Option<Cell>]) -> String {
    let mut out = start;
    for cell in cells {
        let _ = match cell {
            Some(cell) => write!(out, " {:>5} {:>3}", cell.rate, cell.cpu),
            None => write!(out, "{:10}", ""),
        };
    }
    out.trim_end().to_owned()
}
