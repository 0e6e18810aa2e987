//! fio's terse lines, versions 2 to 5: one line a job, fields apart by `;`.
//!
//! All agree in the 41 fields of a direction that are kept here. Version 2 does not tell fio's own;
//! 3 has reads and writes, the others trims behind them; 5 has six more fields a direction.

use std::borrow::Cow;

use crate::draft::{CELLS_MAX, Cell, Copies, Draft, Figure, Latency, Stream, no_end_mark};
use crate::fio;
use crate::text::{self, Found, Line, Text};

/// Fields of one direction: totals, two latencies, 20 percentiles, the whole latency, bandwidth.
const DIRECTION: usize = 41;
/// Behind them in version 5: samples of bandwidth, requests a second and how they spread.
const MORE_OF_5: usize = 6;
/// Where the first percentile of a direction is.
const PERCENTILES: usize = 12;
/// Behind the directions come at least CPU and depths.
const REST: usize = 11;
/// Of a line that may be anything so many fields are looked at.
const LOOKED_AT: usize = 256;
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// Where a version has what.
#[derive(Clone, Copy)]
struct Layout {
    /// Where fio's version is.
    fio: Option<usize>,
    /// Where the job's name is; group and error follow.
    name: usize,
    /// Fields of a direction.
    direction: usize,
    /// How many directions there are: CPU, in percent, is behind the last.
    directions: usize,
}

impl Layout {
    fn of(fields: &[&str]) -> Option<Self> {
        let field = |k: usize| fields.get(k).copied().unwrap_or_default();
        let direction = if field(0) == "5" { DIRECTION + MORE_OF_5 } else { DIRECTION };
        let (fio, name) = match field(0) {
            "3" | "4" | "5" if field(1).starts_with("fio") => (Some(1), 2),
            "2" if field(1 + 3 + PERCENTILES).contains("%=") => (None, 1),
            _ => return None,
        };
        let begins = |n: &usize| field(name + 3 + n * direction);
        let directions = (2..DIRECTIONS.len()).find(|n| begins(n).contains('%'));
        let directions = directions.unwrap_or(if field(0) == "3" { 2 } else { 3 });
        Some(Self { fio, name, direction, directions })
    }

    fn first(self) -> usize {
        self.name + 3
    }

    fn wanted(self) -> usize {
        self.first() + self.directions * self.direction + REST
    }
}

/// Whether a line looks like one.
pub(crate) fn is_line(line: &str) -> bool {
    let line = line.trim();
    if !matches!(line.as_bytes(), [b'2'..=b'5', b';', ..]) {
        return false;
    }
    let fields: Vec<&str> = line.split(';').take(LOOKED_AT).collect();
    Layout::of(&fields).is_some_and(|layout| fields.len() > layout.first())
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut draft = Draft::of("fio");
    let mut jobs: Vec<Job> = Vec::new();
    for line in text.lines.iter().filter(|line| is_line(&line.text)) {
        let Some((job, fio)) = parsed(line)? else { continue };
        draft.version = fio;
        // Of too many one is kept, so that they can be told.
        if jobs.len() <= CELLS_MAX {
            jobs.push(job);
        }
    }
    if jobs.is_empty() {
        return Err(text.ended("a terse line, `3;fio-...`"));
    }
    let (mut copies, mut snapshots) = (Copies::default(), 0);
    let mut rest = jobs.into_iter();
    while !rest.as_slice().is_empty() {
        let (before, lines) = status(rest.as_slice());
        snapshots += before;
        for job in rest.by_ref().skip(before).take(lines) {
            if !copies.have(&job.line) {
                draft.push(job.cell);
            }
        }
    }
    draft.warnings.extend(copies.warning());
    if snapshots > 0 {
        let text = format!(
            "Lines left out: {snapshots}. They are of what the lines behind them are of, and count from \
             its beginning, as `--status-interval` prints them; the last ones have all."
        );
        draft.warnings.push(("snapshots".to_owned(), text));
    }
    draft.remark(no_end_mark(draft.cells.len(), "line of a job", "lines of jobs"));
    if draft.cells.iter().flat_map(|cell| &cell.streams).any(|s| fio::reads_and_writes(&s.ops)) {
        draft.remark(fio::BOTH);
    }
    draft.remarks.push(
        "Percentiles are of completion latency, mean and extremes of the whole; terse lines tell \
         neither the block size nor how many jobs and requests there were at once."
            .to_owned(),
    );
    Ok(vec![draft])
}

/// The first line of a job that is not known: not as it stands elsewhere in the text.
///
/// * `is_known`: of the job's name, the number of its group, and its figures.
pub(crate) fn first_other(
    raw: &str,
    is_known: impl Fn(&str, &str, &[Figure]) -> bool,
) -> Found<Option<usize>> {
    for (number, text) in (1..).zip(raw.lines()).filter(|(_, line)| is_line(line)) {
        let line = Line { number, text: Cow::Borrowed(text) };
        let Some((job, _)) = parsed(&line)? else { continue };
        let figures = job.cell.streams.first().map_or(&[][..], |stream| &stream.ops);
        if !is_known(&job.of[0], &job.of[1], figures) {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// A line's job, and which fio printed it, where the line tells.
fn parsed<'a>(line: &'a Line) -> Found<Option<(Job<'a>, Option<String>)>> {
    let fields: Vec<&str> = line.text.trim().split(';').collect();
    let Some(layout) = Layout::of(&fields) else { return Ok(None) };
    let wanted = layout.wanted();
    if fields.len() < wanted {
        return Err(line.unfit(format!("at least {wanted} fields, of {}", fields.len())));
    }
    let fio = layout.fio.and_then(|at| fields.get(at));
    let fio = fio.map(|version| version.trim_start_matches("fio-").to_owned());
    Ok(Some((job(line, &fields, layout)?, fio)))
}

/// A line.
struct Job<'a> {
    line: &'a str,
    /// The job's name and its group's number.
    of: [String; 2],
    /// Run time of each direction in ms; 0 where it did nothing.
    ran: [u64; 3],
    cell: Cell,
}

impl Job<'_> {
    /// Figures of a direction.
    fn figure(&self, direction: usize) -> Option<&Figure> {
        let ops = self.cell.streams.iter().flat_map(|stream| &stream.ops);
        ops.into_iter().find(|figure| figure.op == DIRECTIONS[direction])
    }

    fn ran(&self) -> u64 {
        self.ran.into_iter().max().unwrap_or(0)
    }

    /// Whether it may tell of the same job as `before` and of more of its time: nothing that counts
    /// from the beginning falls, no least latency rises, and no largest falls.
    fn may_go_on_from(&self, before: &Self) -> bool {
        let no_less = |k: usize| match (before.figure(k), self.figure(k)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(then), Some(now)) => {
                now.bytes >= then.bytes
                    && now.latency.min <= then.latency.min
                    && now.latency.max >= then.latency.max
            }
        };
        self.of == before.of
            && (0..DIRECTIONS.len()).all(|k| self.ran[k] >= before.ran[k] && no_less(k))
    }
}

/// Most jobs of an execution whose snapshots are looked for: each number of them is tried.
const JOBS_MAX: usize = 256;
/// The interval between two snapshots may be so many times that between the two before.
const UNEVEN: u64 = 2;
/// What ran for less than one part in so many longer is a repeat that took about as long.
const LONGER: u64 = 50;

/// How many lines at the beginning are snapshots of the lines that follow them, and how many these
/// are, one of each job: as `--status-interval` prints them.
fn status(lines: &[Job]) -> (usize, usize) {
    for jobs in 1..=JOBS_MAX.min(lines.len() / 2) {
        let rounds = rounds(lines, jobs);
        if rounds > 1 {
            return ((rounds - 1) * jobs, jobs);
        }
    }
    (0, 1)
}

/// How many times the lines of so many jobs come one behind the other, each of more of their time.
fn rounds(lines: &[Job], jobs: usize) -> usize {
    let mut rounds = lines.chunks_exact(jobs);
    let ran = |round: &[Job]| round.iter().map(Job::ran).max().unwrap_or(0);
    let Some(mut before) = rounds.next() else { return 0 };
    let (first, mut interval, mut count) = (ran(before), None, 1);
    for round in rounds {
        let pairs = round.iter().zip(before);
        let goes_on = || pairs.into_iter().all(|(now, then)| now.may_go_on_from(then));
        let longer = ran(round).saturating_sub(ran(before));
        let fits = match interval {
            None => longer > first / LONGER,
            // The first one comes after an interval, too, less what it took to begin.
            Some(interval) => longer > 0 && longer.max(first) <= interval * UNEVEN,
        };
        if !fits || !goes_on() {
            break;
        }
        count += 1;
        // The last one may come sooner: behind it there is no more.
        interval = interval.or(Some(longer));
        before = round;
    }
    count
}

fn job<'a>(line: &'a Line, fields: &[&str], layout: Layout) -> Found<Job<'a>> {
    let field = |k: usize| fields.get(k).copied().unwrap_or_default();
    let mut ran = [0; 3];
    let mut cell = Cell { phase: field(layout.name).to_owned(), ..Cell::default() };
    let mut ops = Vec::new();
    for (k, op) in DIRECTIONS.into_iter().take(layout.directions).enumerate() {
        let start = layout.first() + k * layout.direction;
        if let Some((figure, ms)) = direction(line, op, &|f| field(start + f))? {
            cell.elapsed_ns = cell.elapsed_ns.max(ms.checked_mul(1_000_000));
            ran[k] = ms;
            ops.push(figure);
        }
    }
    let error = line.whole(field(layout.name + 2), "the job's error")?;
    if error != 0 {
        cell.failed = true;
        cell.warnings.push(("fio-error".to_owned(), format!("the job ended with error {error}")));
    }
    let op = match ops.as_slice() {
        [only] => only.op.clone(),
        _ => "mixed".to_owned(),
    };
    cell.streams = vec![Stream { name: cell.phase.clone(), op, ops, ..Stream::default() }];
    let of = [layout.name, layout.name + 1].map(|k| field(k).to_owned());
    Ok(Job { line: &line.text, of, ran, cell })
}

/// What a direction did, and for how many ms; `None` if it did nothing.
fn direction<'a>(
    line: &Line,
    op: &str,
    field: &dyn Fn(usize) -> &'a str,
) -> Found<Option<(Figure, u64)>> {
    let kibibytes = line.whole(field(0), "KiB moved")?;
    let bandwidth = line.number(field(1), "KiB a second")?;
    let iops = line.number(field(2), "requests a second")?;
    let runtime = line.whole(field(3), "ms of run time")?;
    let mut latency = Latency::default();
    for k in PERCENTILES..PERCENTILES + 20 {
        let (share, value) = field(k)
            .split_once("%=")
            .ok_or_else(|| line.unfit_word(field(k), "a percentile, `99.000000%=329`"))?;
        let share = line.number(share, "a percentage")?;
        let value = line.number(value, "a latency in us")?;
        if let Some(ns) = text::ns(value * 1e3).filter(|_| share > 0.0) {
            latency.quantiles.push((share / 100.0, ns));
        }
    }
    let us = |k: usize, what: &str| line.number(field(k), what).map(|us| us * 1e3);
    latency.min = text::ns(us(32, "the least latency in us")?);
    latency.max = text::ns(us(33, "the largest latency in us")?);
    latency.mean = Some(us(34, "the mean latency in us")?);
    latency.sd = Some(us(35, "the deviation of latency in us")?);
    for k in 36..DIRECTION {
        line.number(field(k).trim_end_matches('%'), "a bandwidth")?;
    }
    if kibibytes == 0 && iops == 0.0 {
        return Ok(None);
    }
    let figure = Figure {
        bytes: kibibytes.checked_mul(1024),
        iops: Some(iops),
        bytes_per_s: Some(bandwidth * 1024.0),
        latency,
        ..Figure::of(op)
    };
    Ok(Some((figure, runtime)))
}
