//! IOMeter's results file: each block of results is a cell, by its row `ALL`.
//!
//! `MiBps (Binary)`, and the plain `MBps` of versions before 1.1, are of 2^20 bytes.
//!
//! Specifications with the sizes and shares of one of our suites `iometer-...` become a run of that
//! suite; all others together one of `iometer`.

use std::collections::BTreeMap;

use crate::csv;
use crate::draft::{CELLS_MAX, Cell, Copies, Draft, Figure, Latency, Stream, axis, no_end_mark};
use crate::text::{Found, Line, Text, ns};

const MIB: f64 = 1024.0 * 1024.0;
/// Of 2^20 bytes; its name differs between versions.
const BANDWIDTH: [&str; 3] = ["MiBps (Binary)", "MBps (Binary)", "MBps"];
/// A setting that is not the same for all managers, workers or disks.
const MANY: &str = "-1";
/// By how much a printed sum may be off those that it is of: six digits are printed.
const ROUNDED: f64 = 1e-4;

/// A row `ALL`, by the heads of its columns.
struct Row<'a> {
    line: &'a Line<'a>,
    heads: &'a [String],
    fields: Vec<String>,
}

/// A line of an access specification: bytes, and shares in percent.
#[derive(Clone, Copy, PartialEq)]
struct SpecLine {
    size: u64,
    share: u64,
    reads: u64,
    random: u64,
    align: u64,
}

/// Lines of an access specification.
type Lines = Vec<SpecLine>;

/// A suite of ours: sizes with their shares, share of reads and of random requests, place on the
/// axis of reads if it has one, alignment.
struct Known {
    suite: &'static str,
    sizes: &'static [(u64, u64)],
    reads: u64,
    random: u64,
    read_share: Option<&'static str>,
    align: u64,
}

const fn known(
    suite: &'static str,
    sizes: &'static [(u64, u64)],
    reads: u64,
    random: u64,
) -> Known {
    Known { suite, sizes, reads, random, read_share: None, align: 512 }
}

const fn of_4k(reads: u64, read_share: &'static str) -> Known {
    Known {
        read_share: Some(read_share),
        align: 4096,
        ..known("iometer-4k", &[(4096, 100)], reads, 100)
    }
}

const FILES: [(u64, u64); 8] =
    [(512, 10), (1024, 5), (2048, 5), (4096, 60), (8192, 2), (16384, 4), (32768, 4), (65536, 10)];
const WEB: [(u64, u64); 10] = [
    (512, 22),
    (1024, 15),
    (2048, 8),
    (4096, 23),
    (8192, 15),
    (16384, 2),
    (32768, 6),
    (65536, 7),
    (131_072, 1),
    (524_288, 1),
];
const STREAMS: [(u64, u64); 3] = [(65536, 34), (131_072, 33), (262_144, 33)];
const SUITES: [Known; 9] = [
    known("iometer-file-server", &FILES, 80, 100),
    known("iometer-web-server", &WEB, 100, 100),
    known("iometer-database", &[(8192, 100)], 67, 100),
    known("iometer-workstation", &[(8192, 100)], 80, 80),
    known("iometer-streaming-read", &STREAMS, 100, 0),
    known("iometer-streaming-write", &STREAMS, 0, 0),
    of_4k(100, "1"),
    of_4k(50, "0.5"),
    of_4k(0, "0"),
];

impl Known {
    fn of(lines: &[SpecLine]) -> Option<&'static Self> {
        let fits = |known: &&Self| {
            lines.len() == known.sizes.len()
                && lines.iter().zip(known.sizes).all(|(line, (size, share))| {
                    (line.size, line.share) == (*size, *share)
                        && (line.reads, line.random) == (known.reads, known.random)
                })
        };
        SUITES.iter().find(fits)
    }

    /// 0 is the sector's size.
    fn aligned(&self, lines: &[SpecLine]) -> bool {
        lines.iter().all(|line| line.align == self.align || line.align == 0 && self.align == 512)
    }
}

/// A cell, how it was asked for, and which of our suites that is.
struct Measured {
    cell: Cell,
    /// Queue depth, workers and disks, as printed.
    at: [String; 3],
    known: Option<&'static Known>,
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut draft = Draft::of("iometer");
    let specs = specs(text, &mut draft)?;
    let mut heads: Vec<String> = Vec::new();
    let mut cells: Vec<Measured> = Vec::new();
    let mut copies = Copies::default();
    // A block of results is whole when the time stamp below it is there.
    let mut open = false;
    let mut has_row = false;
    for line in &text.lines {
        let row = line.text.trim();
        if row.starts_with("'Target Type,") {
            if open {
                return Err(line.unfit("`'Time Stamp` below the results before"));
            }
            heads = csv::fields(row.trim_start_matches('\''));
            (open, has_row) = (true, false);
        } else if row.starts_with("'Time Stamp") && open {
            if !has_row {
                return Err(line.unfit("a row `ALL` before it"));
            }
            open = false;
        } else if open && row.starts_with("ALL,") && cells.len() <= CELLS_MAX {
            let row = Row { line, heads: &heads, fields: csv::fields(row) };
            let cell = cell(&row, &specs)?;
            if !copies.have(&line.text) {
                cells.push(cell);
            }
            has_row = true;
        }
    }
    if open || cells.is_empty() {
        return Err(text.ended("`'Time Stamp` below the results"));
    }
    draft.remark(no_end_mark(cells.len(), "block of results", "blocks of results"));
    for spec in cells.iter().filter_map(|c| c.known).map(|known| known.suite) {
        let lines =
            specs.values().filter(|lines| Known::of(lines).is_some_and(|k| k.suite == spec));
        let odd = lines.filter(|lines| Known::of(lines).is_some_and(|k| !k.aligned(lines)));
        for line in odd.flatten().take(1) {
            let text = format!(
                "Requests were aligned to {} bytes, other than those of {spec}.",
                line.align
            );
            if !draft.remarks.contains(&text) {
                draft.remarks.push(text);
            }
        }
    }
    let mut drafts = by_suite(&draft, cells);
    if let Some(first) = drafts.first_mut() {
        first.warnings.extend(copies.warning());
    }
    Ok(drafts)
}

/// A run for each suite. Beside the axes of that only what differs between its cells names them.
fn by_suite(head: &Draft, cells: Vec<Measured>) -> Vec<Draft> {
    let suite_of = |cell: &Measured| cell.known.map_or("iometer", |known| known.suite);
    let mut suites: Vec<(&str, Vec<Measured>)> = Vec::new();
    for cell in cells {
        let suite = suite_of(&cell);
        match suites.iter_mut().find(|(name, _)| *name == suite) {
            Some((_, cells)) => cells.push(cell),
            None => suites.push((suite, vec![cell])),
        }
    }
    let of_suite = |(suite, mut cells): (&str, Vec<Measured>)| {
        let is_known = suite != head.suite;
        for (k, name) in ["queue_depth", "workers", "disks"].into_iter().enumerate() {
            let at = |cell: &Measured| cell.at[k].clone();
            let first = cells.first().map(at);
            let differs = cells.iter().any(|cell| Some(at(cell)) != first);
            if differs || is_known && name == "queue_depth" {
                for cell in &mut cells {
                    cell.cell.coordinates.push(axis(name, &cell.at[k]));
                }
            }
        }
        let mut draft = Draft { suite: suite.to_owned(), ..head.clone() };
        // What is told of both alike need not have been alike: they are no repeats.
        if cells.iter().filter(|cell| cell.at.iter().any(|at| at == MANY)).count() > 1 {
            for (number, cell) in (1..).zip(&mut cells) {
                cell.cell.coordinates.push(axis("results", number));
            }
            draft.remark(
                "A queue depth, or a number of workers or disks, of -1 is not the same for all: blocks \
                 of results are told apart by their number.",
            );
        }
        draft.cells = cells.into_iter().map(|cell| cell.cell).collect();
        draft
    };
    suites.into_iter().map(of_suite).collect()
}

/// The head of the file: version, description, access specifications.
fn specs(text: &Text, draft: &mut Draft) -> Found<BTreeMap<String, Lines>> {
    let mut specs: Vec<(String, &Line, Lines)> = Vec::new();
    let mut lines = text.lines.iter().peekable();
    let mut in_lines = false;
    while let Some(line) = lines.next() {
        let row = line.text.trim();
        let mut below = || lines.peek().map(|line| line.text.trim().to_owned()).unwrap_or_default();
        if row == "'Version" {
            draft.version = Some(below());
        } else if row == "'Time Stamp" && draft.settings.iter().all(|(n, _)| n != "time stamp") {
            draft.set("time stamp", below());
        } else if row.starts_with("'Test Type,") {
            draft.set("test type, description", below());
        } else if row.starts_with("'Access specification name") {
            let fields = csv::fields(&below());
            specs.push((fields.first().cloned().unwrap_or_default(), line, Vec::new()));
            in_lines = false;
        } else if row.starts_with("'size,") {
            in_lines = true;
        } else if row.starts_with('\'') {
            in_lines = false;
        } else if in_lines && let Some((.., all)) = specs.last_mut() {
            let fields = csv::fields(row);
            let field = |k: usize| fields.get(k).map_or("", String::as_str);
            if fields.len() < 8 {
                return Err(line.unfit("8 fields of an access specification"));
            }
            all.push(SpecLine {
                size: line.whole(field(0), "a size")?,
                share: line.whole(field(1), "a share of the requests")?,
                reads: line.whole(field(2), "a share of reads")?,
                random: line.whole(field(3), "a share of random requests")?,
                align: line.whole(field(6), "an alignment")?,
            });
        }
    }
    let mut known = BTreeMap::new();
    for (name, line, lines) in specs {
        // Results tell the name only.
        if known.get(&name).is_some_and(|before| *before != lines) {
            return Err(line.unfit_word(&name, "the lines of that name before it"));
        }
        known.insert(name, lines);
    }
    Ok(known)
}

impl Row<'_> {
    fn word(&self, names: &[&str]) -> Option<&str> {
        let at = names.iter().find_map(|name| self.heads.iter().position(|head| head == name))?;
        self.fields.get(at).map(String::as_str)
    }

    fn want(&self, names: &[&str]) -> Found<&str> {
        let name = names.first().copied().unwrap_or_default();
        self.word(names).ok_or_else(|| self.line.unfit(format!("a column `{name}`")))
    }

    fn number(&self, names: &[&str]) -> Found<f64> {
        self.line.number(self.want(names)?, names.first().copied().unwrap_or_default())
    }

    /// A whole number, or -1 where it is not the same for all.
    fn setting(&self, name: &str) -> Found<String> {
        let word = self.want(&[name])?;
        if word != MANY {
            self.line.whole(word, name)?;
        }
        Ok(word.to_owned())
    }

    /// That of the reads or the writes.
    fn number_of(&self, title: &str, names: &[&str]) -> Found<f64> {
        let names: Vec<String> = names.iter().map(|name| format!("{title} {name}")).collect();
        self.number(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// That a rate is the sum of those of reads and writes.
    fn adds_up(&self, names: &[&str]) -> Found<()> {
        let sum = self.number_of("Read", names)? + self.number_of("Write", names)?;
        if (self.number(names)? - sum).abs() <= ROUNDED * sum.max(1.0) {
            return Ok(());
        }
        let wanted = format!("the sum of those of reads and writes, {sum:.6}");
        Err(self.line.unfit_word(self.want(names)?, wanted))
    }

    /// Counts are whole; blank where a version does not tell.
    fn count(&self, name: &str) -> Found<Option<u64>> {
        match self.word(&[name]) {
            None | Some("") => Ok(None),
            Some(word) => self.line.whole(word, name).map(Some),
        }
    }
}

fn cell(row: &Row, specs: &BTreeMap<String, Lines>) -> Found<Measured> {
    if row.fields.len() < row.heads.len() {
        let wanted =
            format!("{} fields, as there are heads, of {}", row.heads.len(), row.fields.len());
        return Err(row.line.unfit(wanted));
    }
    // Of a decimal comma, or one in a name, all figures behind it are of another column.
    if row.fields.iter().skip(row.heads.len()).any(|field| !field.is_empty()) {
        let wanted = format!("{} fields, as there are heads", row.heads.len());
        return Err(row.line.unfit(format!("{wanted}, of {}", row.fields.len())));
    }
    let spec = row.want(&["Access Specification Name"])?.to_owned();
    let lines = specs.get(&spec).map(Vec::as_slice);
    let known = lines.and_then(Known::of);
    let sizes: Vec<u64> = lines.unwrap_or_default().iter().map(|line| line.size).collect();
    let block = sizes.first().copied().filter(|first| sizes.iter().all(|size| size == first));
    row.adds_up(&["IOps"])?;
    row.adds_up(&BANDWIDTH)?;
    let mut ops = Vec::new();
    for (op, title, moved) in [("read", "Read", "Bytes Read"), ("write", "Write", "Bytes Written")]
    {
        let iops = row.number_of(title, &["IOps"])?;
        let rate = row.number_of(title, &BANDWIDTH)?;
        let mean = row.number(&[&format!("Average {title} Response Time")])?;
        let max = row.number(&[&format!("Maximum {title} Response Time")])?;
        let requests = row.count(&format!("{title} I/Os"))?;
        if iops == 0.0 && requests.unwrap_or(0) == 0 {
            continue;
        }
        ops.push(Figure {
            requests,
            bytes: row.count(moved)?,
            errors: row.count(&format!("{title} Errors"))?.unwrap_or(0),
            iops: Some(iops),
            bytes_per_s: Some(rate * MIB),
            latency: Latency { mean: Some(mean * 1e6), max: ns(max * 1e6), ..Latency::default() },
            ..Figure::of(op)
        });
    }
    if let [only] = ops.as_mut_slice() {
        only.cpu_percent = Some(row.number(&["% CPU Utilization", "% CPU Utilization (total)"])?);
    }
    let op = match ops.as_slice() {
        [only] => only.op.clone(),
        _ => "mixed".to_owned(),
    };
    let depth = row.setting("Queue Depth")?;
    let workers = row.setting("# Workers")?;
    let disks = row.setting("# Disks")?;
    let stream = Stream {
        name: spec.clone(),
        op,
        block,
        threads: workers.parse().ok(),
        queue_depth: depth.parse().ok(),
        ops,
        // IOMeter goes around the page cache on every system.
        direct: true,
        ..Stream::default()
    };
    let phase = if known.is_some() { "levels".to_owned() } else { spec };
    let share = known.and_then(|known| known.read_share).map(|share| axis("read_share", share));
    let coordinates = share.into_iter().collect();
    let cell = Cell { phase, coordinates, streams: vec![stream], ..Cell::default() };
    Ok(Measured { cell, at: [depth, workers, disks], known })
}
