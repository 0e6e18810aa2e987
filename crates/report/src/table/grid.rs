//! Our own table: every cell with its rates, latency, cost and doubts.

use std::collections::BTreeSet;
use std::fmt::Write;

use explain::CellView;
use explain::cache::ledger;
use explain::interval::CellInterval;
use explain::view::View;
use explain::visits::head;
use record::{CellRecord, Run, Warning};

use crate::figures::{self, Figures, Judged, StreamOfCell, is_sync};
use crate::table::interference;
use crate::text::{Columns, cut, known, plain, wrapped};

/// Longest coordinate or name in a cell of a table.
const TEXT: usize = 32;
/// Longest name of an axis, which is broken into lines before it is cut.
const TEXT_HEAD: usize = 40;
/// Most cells whose evidence is printed for one mark; `explain` has all.
const EVIDENCE: usize = 4;
/// Most lines of warnings.
const WARNINGS: usize = 20;

/// A line of the table of one phase: what a stream did, or the syncs among it.
#[derive(Clone, Copy)]
struct Line<'a, 'b> {
    stream: &'b StreamOfCell<'a>,
    /// A sync that has a line of its own, below what it makes durable.
    sync: Option<&'a str>,
}

impl<'a, 'b> Line<'a, 'b> {
    /// Of streams, each followed by its syncs.
    fn all(streams: &'b [StreamOfCell<'a>]) -> Vec<Self> {
        let of = |stream: &'b StreamOfCell<'a>| {
            let syncs = stream.syncs_beside_data().into_iter().map(Some);
            std::iter::once(None).chain(syncs).map(move |sync| Self { stream, sync })
        };
        streams.iter().flat_map(of).collect()
    }

    fn figures(&self) -> Figures {
        match self.sync {
            None => self.stream.figures(),
            Some(sync) => self.stream.figures_of(|op| op == sync),
        }
    }

    fn op(&self) -> &'b str
    where
        'a: 'b,
    {
        self.sync.unwrap_or(&self.stream.plan.op)
    }
}

/// A column of the table of one phase.
struct Column {
    /// Several lines where a name was too long for one.
    head: String,
    unit: String,
    cells: Vec<String>,
    left: bool,
    /// Which go first when the lines are too long: the highest; 0 never goes.
    spare: u8,
}

/// The run's table: a line per cell and stream, phase by phase; the marks explained and the
/// warnings listed below it. No wider than there is room: what does not fit is left out, and said.
/// `-` is what is not known. Lengths of time share one unit, in the header.
pub fn grid(run: &Run) -> String {
    let mut out = heading(run);
    let judged = Judged::new(run);
    let streams = figures::streams_of(run);
    let mut notes = Notes::default();
    let mut left_out = Vec::new();
    for (phase, streams) in phases(&streams) {
        let _ = write!(out, "\n{}\n", plain(phase));
        let (text, without) = phase_table(&judged, streams, &mut notes);
        out.push_str(&text);
        if let Some(table) = operations_table(streams) {
            let _ = write!(out, "\n{}, operation by operation\n{table}", plain(phase));
        }
        if let Some(table) = interference::table(run, phase) {
            let _ = write!(out, "\n{}, together against alone\n{table}", plain(phase));
        }
        for head in without {
            if !left_out.contains(&head) {
                left_out.push(head);
            }
        }
    }
    out.push_str(&legend(&judged, &streams));
    if !left_out.is_empty() {
        let _ = write!(out, "\nleft out for width: {} (see export)\n", left_out.join(", "));
    }
    out.push_str(&notes.print());
    out.push_str(&warnings(run));
    out
}

/// IOPS of each phase that has exactly two axes and one stream: first axis down, second across.
/// `None` when no phase is like that.
pub fn matrix(run: &Run) -> Option<String> {
    let streams = figures::streams_of(run);
    let mut out = String::new();
    for (phase, streams) in phases(&streams) {
        let Some(table) = phase_matrix(streams) else { continue };
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = write!(out, "{}, IOPS\n{table}", plain(phase));
    }
    (!out.is_empty()).then_some(out)
}

/// What the figures are of: which mean, and what was added up.
fn legend(judged: &Judged, streams: &[StreamOfCell]) -> String {
    let shown: Vec<_> = streams.iter().filter(|stream| !stream.counted().is_empty()).collect();
    let mut said = Vec::new();
    let several = shown.iter().any(|stream| stream.counted().len() > 1);
    let known = shown.iter().filter(|stream| judged.interval(stream).is_some()).count();
    let total = "requests completed in all visits / their total time";
    said.push(match () {
        () if shown.is_empty() => return String::new(),
        () if judged.run.header.imported.is_some() => {
            "rates: as the tool told them; of several visits the geometric mean".to_owned()
        }
        () if !several => "rates: what completed in a visit, by its time".to_owned(),
        () if known > 0 => {
            let apart = match known == shown.len() {
                true => String::new(),
                false => format!("; where there is none: {total}"),
            };
            let mut intervals = shown.iter().filter_map(|stream| judged.interval(stream));
            let wide = match intervals.any(CellInterval::is_wide) {
                true => " (over 50 %: its bounds, in 1/s)",
                false => "",
            };
            format!(
                "rates: geometric mean of a cell's visits, +- its 95 % interval{wide}{apart}; \
                 latencies: of all requests of all visits"
            )
        }
        () => format!("rates: {total}"),
    });
    if shown.iter().any(|stream| stream.counts.has_pairs()) {
        said.push(
            "an update or a copy counts once, with its bytes; its mean latency is its read's and \
             its write's together, and operation by operation each is by itself"
                .to_owned(),
        );
    }
    if shown.iter().any(|stream| stream.commits()) {
        said.push(
            "a commit ends with the flush that it shares with all who wait: its latency is the \
             whole wait of a session, and the line of the flush is one flush"
                .to_owned(),
        );
    }
    if shown.iter().any(|stream| !stream.commits() && !stream.syncs_beside_data().is_empty()) {
        said.push(
            "a sync is a line of its own, and its latency is in no other: a write that is flushed \
             takes both"
                .to_owned(),
        );
    }
    let lines: String = said.iter().map(|text| wrapped("", text)).collect();
    format!("\n{lines}")
}

fn heading(run: &Run) -> String {
    let header = &run.header;
    let target = &header.target;
    let on = if target.given.is_empty() { "an unknown target" } else { target.given.as_str() };
    let mut out =
        format!("{} {} on {}, {}\n", plain(&header.id), plain(&header.suite), plain(on), head(run));
    if let Some(imported) = &header.imported {
        let version = imported.version.as_ref().map(|v| format!(" {v}")).unwrap_or_default();
        let tool = format!("{}{version}", imported.tool);
        let _ = writeln!(out, "imported: {} from {}", plain(&tool), plain(&imported.file));
        for remark in &imported.remarks {
            out.push_str(&wrapped("  ", &plain(remark)));
        }
    }
    for remark in &target.remarks {
        let _ = writeln!(out, "target: {}", plain(remark));
    }
    for one in header.stack.iter().flat_map(|tree| tree.unwell()) {
        let state = one.condition.word();
        let _ =
            writeln!(out, "state of arrays: {state}: {} {}", plain(&one.layer), plain(&one.how));
    }
    out
}

/// Runs of equal phases.
fn phases<'a, 'b>(
    streams: &'b [StreamOfCell<'a>],
) -> impl Iterator<Item = (&'a str, &'b [StreamOfCell<'a>])> {
    streams
        .chunk_by(|a, b| a.cell.phase == b.cell.phase)
        .filter_map(|chunk| chunk.first().map(|s| (s.cell.phase.as_str(), chunk)))
}

fn axis(stream: &StreamOfCell, field: &str) -> String {
    let found = stream.cell.coordinates.iter().find(|(name, _)| name == field);
    found.map_or_else(|| "-".to_owned(), |(_, value)| cut(&plain(value), TEXT))
}

fn fields<'a: 'b, 'b>(streams: impl Iterator<Item = &'b StreamOfCell<'a>>) -> Vec<&'a str> {
    let mut fields: Vec<&str> = Vec::new();
    for (field, _) in streams.flat_map(|s| &s.cell.coordinates) {
        if !fields.contains(&field.as_str()) {
            fields.push(field);
        }
    }
    fields
}

/// The lines of a phase, and the columns that had to go: figures that can be spared first, then
/// the ends of long names.
fn phase_table(
    judged: &Judged,
    streams: &[StreamOfCell],
    notes: &mut Notes,
) -> (String, Vec<String>) {
    let lines = Line::all(streams);
    let mark = |line: &Line| match line.sync {
        None => notes.of(judged, line.stream),
        Some(_) => String::new(),
    };
    let marks = lines.iter().map(mark).collect();
    let mut columns = figure_columns(judged, &lines);
    columns.push(Column {
        head: "marks".into(),
        unit: String::new(),
        cells: marks,
        left: true,
        spare: 0,
    });
    fit(coordinate_columns(&lines), columns)
}

/// The table in the width there is, and the heads of the columns that had to go.
///
/// * `about`: the columns that say what a line is about.
///
/// Names of axes are broken before anything has to go, and never cut; the last figures that can be
/// spared stay where it is enough to fold names.
fn fit(mut about: Vec<Column>, mut columns: Vec<Column>) -> (String, Vec<String>) {
    let mut without = Vec::new();
    let mut broken = false;
    loop {
        let table = table(about.iter().chain(&columns));
        let spare = columns.iter().enumerate().filter(|(_, c)| c.spare > 0);
        match spare.map(|(k, c)| (k, c.spare)).max_by_key(|(_, spare)| *spare) {
            _ if table.fits() => return (table.print(), without),
            _ if !broken => {
                about.iter_mut().for_each(Column::break_head);
                broken = true;
            }
            Some((k, spare)) if spare > 1 || !table.fits_folded() => {
                without.push(columns.remove(k).head);
            }
            _ => return (table.print_folded(), without),
        }
    }
}

/// A line per operation for streams that did several besides syncs: reads and writes apart.
/// `None` where no stream did.
fn operations_table(streams: &[StreamOfCell]) -> Option<String> {
    let data = |stream: &StreamOfCell<'_>| -> Vec<String> {
        let names = stream.op_names().into_iter().filter(|op| !is_sync(op));
        names.map(str::to_owned).collect()
    };
    let several = streams.iter().map(|stream| (stream, data(stream)));
    let (lines, names): (Vec<Line>, Vec<String>) = several
        .filter(|(_, ops)| ops.len() > 1)
        .flat_map(|(stream, ops)| ops.into_iter().map(move |op| (Line { stream, sync: None }, op)))
        .unzip();
    if lines.is_empty() {
        return None;
    }
    let of_each = lines.iter().zip(&names);
    let all: Vec<Figures> =
        of_each.map(|(line, name)| line.stream.figures_of(|op| op == name)).collect();
    let mut about = coordinate_columns(&lines);
    // A phase without axes has what the stream does there, which is what these lines take apart.
    about.retain(|column| column.head != "op");
    about.push(Column {
        head: "operation".into(),
        unit: String::new(),
        cells: names.iter().map(|name| cut(&plain(name), TEXT)).collect(),
        left: true,
        spare: 0,
    });
    let (unit, scale) = time_unit(&all);
    let number = |head: &str, unit: &str, spare, value: &dyn Fn(&Figures) -> Option<f64>| Column {
        head: head.into(),
        unit: unit.into(),
        cells: all.iter().map(|f| known(value(f))).collect(),
        left: false,
        spare,
    };
    let time = |ns: Option<u64>| ns.map(|ns| ns as f64 / scale);
    let columns = vec![
        number("rate", "1/s", 0, &Figures::iops),
        number("mean", unit, 0, &|f| f.latency_ns_mean().map(|ns| ns / scale)),
        number("p50", unit, 2, &|f| time(f.latency_ns(0.5))),
        number("p99", unit, 0, &|f| time(f.latency_ns(0.99))),
        number("p99.9", unit, 1, &|f| time(f.latency_ns(0.999))),
        number("max", unit, 0, &|f| time(f.latency_ns_max())),
    ];
    Some(fit(about, columns).0)
}

impl Column {
    /// Breaks the head behind dots, hyphens and underscores into lines no longer than what stands
    /// below, or than the longest piece.
    fn break_head(&mut self) {
        let pieces: Vec<&str> = self.head.split_inclusive(['.', '-', '_']).collect();
        let longest = pieces.iter().map(|piece| piece.chars().count()).max().unwrap_or(0);
        let below = self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        let width = longest.max(below);
        let mut lines: Vec<String> = Vec::new();
        for piece in pieces {
            match lines.last_mut() {
                Some(line) if line.chars().count() + piece.chars().count() <= width => {
                    line.push_str(piece);
                }
                _ => lines.push(piece.to_owned()),
            }
        }
        self.head = lines.join("\n");
    }

    /// Lines above the cells.
    fn heads(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.head.split('\n').collect();
        if !self.unit.is_empty() {
            lines.push(&self.unit);
        }
        lines
    }
}

fn table<'a>(columns: impl Iterator<Item = &'a Column>) -> Columns {
    let columns: Vec<_> = columns.collect();
    let mut table = Columns::new(columns.iter().map(|c| c.left).collect());
    let heads: Vec<_> = columns.iter().map(|column| column.heads()).collect();
    for row in 0..heads.iter().map(Vec::len).max().unwrap_or(0).max(2) {
        let head = |lines: &Vec<&str>| lines.get(row).copied().unwrap_or_default().to_owned();
        table.row(heads.iter().map(head).collect());
    }
    let rows = columns.iter().map(|c| c.cells.len()).max().unwrap_or(0);
    for row in 0..rows {
        let cell = |c: &&Column| c.cells.get(row).cloned().unwrap_or_default();
        table.row(columns.iter().map(cell).collect());
    }
    table
}

fn coordinate_columns(lines: &[Line]) -> Vec<Column> {
    let text = |head: &str, cells: Vec<String>| Column {
        head: cut(&plain(head), TEXT_HEAD),
        unit: String::new(),
        cells,
        left: true,
        spare: 0,
    };
    // What is in flight in a stream of commits or transactions are sessions.
    let sessions = lines.iter().all(|line| line.stream.commits() || line.stream.transacts());
    let named = |field: &str| match sessions {
        true => field.replace("queue_depth", "sessions"),
        false => field.to_owned(),
    };
    let values = |field: &str| lines.iter().map(|l| axis(l.stream, field)).collect();
    let fields = fields(lines.iter().map(|line| line.stream));
    let mut columns: Vec<_> =
        fields.iter().map(|field| text(&named(field), values(field))).collect();
    if lines.iter().any(|line| line.stream.cell.streams.len() > 1) {
        let names = lines.iter().map(|line| cut(&plain(&line.stream.plan.name), TEXT));
        columns.push(text("stream", names.collect()));
    }
    if columns.is_empty() || lines.iter().any(|line| line.sync.is_some()) {
        let ops = lines.iter().map(|line| cut(&plain(line.op()), TEXT));
        columns.push(text("op", ops.collect()));
    }
    columns
}

fn figure_columns(judged: &Judged, lines: &[Line]) -> Vec<Column> {
    let all: Vec<Figures> = lines.iter().map(Line::figures).collect();
    let streams: Vec<Option<&StreamOfCell>> =
        lines.iter().map(|line| line.sync.is_none().then_some(line.stream)).collect();
    let interval = |stream: &Option<&StreamOfCell>| judged.interval((*stream)?);
    let intervals: Vec<_> = streams.iter().map(interval).collect();
    let (unit, scale) = time_unit(&all);
    let number = |head: &str, unit: &str, spare: u8, cells: Vec<Option<f64>>| Column {
        head: head.into(),
        unit: unit.into(),
        cells: cells.into_iter().map(known).collect(),
        left: false,
        spare,
    };
    let of = |value: &dyn Fn(&Figures) -> Option<f64>| all.iter().map(value).collect::<Vec<_>>();
    let time = |value: &dyn Fn(&Figures) -> Option<f64>| of(&|f| value(f).map(|ns| ns / scale));
    let exact = |ns: Option<u64>| ns.map(|ns| ns as f64);
    let cpu: Vec<_> = streams.iter().map(|stream| stream.and_then(StreamOfCell::cpu)).collect();
    let ratios = |(stream, figures): (&Option<&StreamOfCell>, &Figures)| {
        stream.map_or((None, None), |stream| device_ratios(stream, figures))
    };
    let ratios: Vec<_> = streams.iter().zip(&all).map(ratios).collect();
    // The interval's own mean, where there is one: the ratio of the sums can lie outside it.
    let iops = |(f, i): (&Figures, &Option<&CellInterval>)| i.map_or(f.iops(), |i| Some(i.mean));
    let rates: Vec<_> = all.iter().zip(&intervals).map(iops).collect();
    let bandwidth = |((line, f), rate): ((&Line, &Figures), &Option<f64>)| {
        if line.sync.is_some() || line.stream.transacts() {
            return None;
        }
        if f.is_told() {
            return f.bytes_per_second().map(|bytes| bytes / 1_048_576.0);
        }
        (f.requests > 0).then_some((*rate)? * f.bytes as f64 / f.requests as f64 / 1_048_576.0)
    };
    let bandwidths = lines.iter().zip(&all).zip(&rates).map(bandwidth).collect();
    let head = match lines {
        _ if lines.iter().all(|line| line.stream.commits()) => "commits",
        _ if lines.iter().all(|line| line.stream.transacts()) => "transactions",
        _ => "IOPS",
    };
    let mut columns = vec![number(head, "1/s", 0, rates)];
    if intervals.iter().any(Option::is_some) {
        columns.push(Column {
            head: "+-".into(),
            unit: "%".into(),
            cells: intervals.iter().map(|interval| width(*interval)).collect(),
            left: false,
            spare: 0,
        });
    }
    columns.extend([
        number("bandwidth", "MiB/s", 1, bandwidths),
        number("mean", unit, 0, time(&Figures::latency_ns_mean)),
        number("p50", unit, 5, time(&|f| exact(f.latency_ns(0.5)))),
        number("p99", unit, 0, time(&|f| exact(f.latency_ns(0.99)))),
        number("p99.9", unit, 2, time(&|f| exact(f.latency_ns(0.999)))),
        number("max", unit, 0, time(&|f| exact(f.latency_ns_max()))),
        number("user", "ns/IO", 3, cpu.iter().map(|c| c.map(|c| c.user)).collect()),
        number("system", "ns/IO", 3, cpu.iter().map(|c| c.map(|c| c.system)).collect()),
    ]);
    let (reads, writes): (Vec<_>, Vec<_>) = ratios.into_iter().unzip();
    let both = |(read, write): (&Option<f64>, &Option<f64>)| read.is_some() && write.is_some();
    if reads.iter().zip(&writes).any(both) {
        let pair = |(read, write)| format!("{}/{}", known(read), known(write));
        columns.push(Column {
            head: "device".into(),
            unit: "rd/wr".into(),
            cells: reads.into_iter().zip(writes).map(pair).collect(),
            left: false,
            spare: 4,
        });
    } else {
        let one = reads.into_iter().zip(writes).map(|(read, write)| read.or(write));
        columns.push(number("device", "ratio", 4, one.collect()));
    }
    columns
}

/// Half-width in percent; of a wide one its ends, low to high.
fn width(interval: Option<&CellInterval>) -> String {
    match interval {
        Some(wide) if wide.is_wide() => {
            format!("{}-{}", known(Some(wide.low)), known(Some(wide.high)))
        }
        interval => known(interval.map(|interval| interval.half_width * 100.0)),
    }
}

/// The unit in which mean latencies of a phase have few digits, and how many ns it is.
fn time_unit(all: &[Figures]) -> (&'static str, f64) {
    let longest = all.iter().filter_map(Figures::latency_ns_mean).fold(0.0, f64::max);
    if longest < 10e6 { ("us", 1e3) } else { ("ms", 1e6) }
}

/// Bytes the devices read for each byte that the stream read, and wrote for each it wrote. Only for
/// cells of one stream: with several the kernel's counters cannot tell whose bytes they were.
fn device_ratios(stream: &StreamOfCell, figures: &Figures) -> (Option<f64>, Option<f64>) {
    if stream.cell.streams.len() != 1 || figures.bytes == 0 || stream.device_bytes().is_none() {
        return (None, None);
    }
    // The counters cover the ramp, so what is held against them does, too.
    let visits = stream.counted().into_iter().map(|visit| ledger::moved(visit, &[]));
    ledger::sum(visits).ratios()
}

fn phase_matrix(streams: &[StreamOfCell]) -> Option<String> {
    let fields = fields(streams.iter());
    let [down, across] = fields.as_slice() else { return None };
    if streams.iter().any(|s| s.cell.streams.len() != 1 || s.cell.coordinates.len() != 2) {
        return None;
    }
    let distinct = |field: &str| {
        let mut values = Vec::new();
        for value in streams.iter().map(|s| axis(s, field)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let (rows, columns) = (distinct(down), distinct(across));
    let mut left = vec![false; columns.len() + 1];
    left[0] = true;
    let mut table = Columns::new(left);
    let corner = format!("{} \\ {}", cut(&plain(down), TEXT), cut(&plain(across), TEXT));
    table.row([&[corner], columns.as_slice()].concat());
    for row in rows {
        let mut line = vec![row.clone()];
        for column in &columns {
            let found = streams
                .iter()
                .find(|s| axis(s, down) == row && axis(s, across) == *column)
                .and_then(|s| s.figures().iops());
            line.push(known(found));
        }
        table.row(line);
    }
    Some(table.print())
}

/// Marks met so far, with what they rest on; in the table stand their numbers.
#[derive(Default)]
struct Notes(Vec<(String, Vec<String>)>);

impl Notes {
    fn of(&mut self, judged: &Judged, stream: &StreamOfCell) -> String {
        let mut numbers = Vec::new();
        let place = place(stream);
        for mark in stream.marks() {
            numbers.push(self.number(mark, None));
        }
        for mark in judged.marks_of(stream) {
            let of = mark.stream.as_ref().map(|name| format!(" · {}", cut(&plain(name), TEXT)));
            let of = of.unwrap_or_default();
            let evidence = (!mark.evidence.is_empty())
                .then(|| format!("{place}{of}: {}", plain(&mark.evidence)));
            numbers.push(self.number(mark.code.name().to_owned(), evidence));
        }
        let mut seen = BTreeSet::new();
        numbers.retain(|number| seen.insert(*number));
        numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// From 1.
    fn number(&mut self, mark: String, evidence: Option<String>) -> usize {
        let known = self.0.iter().position(|(known, _)| *known == mark);
        let position = known.unwrap_or_else(|| {
            self.0.push((mark, Vec::new()));
            self.0.len() - 1
        });
        if let Some(evidence) = evidence.filter(|e| !self.0[position].1.contains(e)) {
            self.0[position].1.push(evidence);
        }
        position + 1
    }

    fn print(&self) -> String {
        let mut out = String::new();
        for (number, (mark, evidence)) in (1..).zip(&self.0) {
            if number == 1 {
                out.push_str("\nmarks\n");
            }
            let mark = plain(mark);
            let text = match explain::mark::meaning(&mark) {
                Some(why) => format!("{mark}: {why}"),
                None => mark,
            };
            out.push_str(&wrapped(&format!("{number:>3} "), &text));
            for line in evidence.iter().take(EVIDENCE) {
                out.push_str(&wrapped("      ", line));
            }
            if evidence.len() > EVIDENCE {
                let _ = writeln!(out, "      and {} more", evidence.len() - EVIDENCE);
            }
        }
        out
    }
}

/// Which cell, as a line of the table names it: phase and values.
fn place(stream: &StreamOfCell) -> String {
    let values = stream.cell.coordinates.iter().map(|(_, value)| cut(&plain(value), TEXT));
    let phase = cut(&plain(&stream.cell.phase), TEXT);
    std::iter::once(phase).chain(values).collect::<Vec<_>>().join(" ")
}

/// A cell's phase and values.
fn place_of(cell: &CellRecord) -> String {
    CellView::bare(cell).name()
}

/// What was due and not issued in the visits to a cell: a line for each stream, since the numbers of
/// its workers and visits differ by chance only.
fn backlogs(run: &Run) -> Vec<String> {
    let mut out = Vec::new();
    if run.visits.iter().flat_map(|visit| &visit.streams).all(|stream| stream.backlog == 0) {
        return out;
    }
    let view = View::new(run);
    let rows = &view.rows;
    for cell in &run.cells {
        let name = place_of(cell);
        for (position, plan) in cell.streams.iter().enumerate() {
            let of_cell = run.visits.iter().filter(|visit| visit.cell == cell.index);
            let left = of_cell.filter_map(|visit| visit.streams.get(position));
            let left: Vec<u64> = left.map(|s| s.backlog).filter(|&left| left > 0).collect();
            let Some(most) = left.iter().max() else { continue };
            let row = rows.iter().find(|row| {
                row.cell.index == cell.index && row.stream.is_none_or(|own| own == position)
            });
            // Arrivals by chance, and a stall near the end, leave some to a target that keeps up.
            let why = match row.is_some_and(|row| row.is_overloaded()) {
                true => "more was offered than was taken",
                false => "no more than chance, or a stall, leaves behind",
            };
            let text = format!(
                "backlog: {}, stream `{}`: {} not been issued when {} ended{}: {why}",
                plain(&name),
                plain(&plan.name),
                match left.iter().fold(0u64, |sum, &left| sum.saturating_add(left)) {
                    1 => "1 request that was due had".to_owned(),
                    n => format!("{n} requests that were due had"),
                },
                match left.len() {
                    1 => "a visit".to_owned(),
                    n => format!("{n} visits"),
                },
                match left.len() {
                    1 => String::new(),
                    _ => format!(" ({most} at most in one)"),
                },
            );
            out.push(text);
        }
    }
    out
}

/// The run's warnings, then the visits', each text once with how often it came.
fn warnings(run: &Run) -> String {
    // What makes two of them one, what is shown of it, how often it came.
    let mut met: Vec<(String, String, u64)> = Vec::new();
    let text = |warning: &Warning| format!("{}: {}", plain(&warning.code), plain(&warning.text));
    let as_it_is = |text: String| (text.clone(), text);
    let of_visits = run.visits.iter().flat_map(|v| v.warnings.iter().map(move |w| (v.cell, w)));
    let of_visits = of_visits.filter(|(_, warning)| warning.code != "backlog");
    let of_visits = of_visits.map(|(cell, warning)| match warning.code.as_str() {
        // Once a cell: the rates reached differ a little from visit to visit.
        "overloaded" => {
            let place = run.cells.iter().find(|known| known.index == cell).map(place_of);
            let place = place.unwrap_or_default();
            let stream = warning.stream().unwrap_or_default();
            let shown = format!("overloaded: {}, {}", plain(&place), plain(&warning.text));
            (format!("overloaded {cell} {stream}"), shown)
        }
        _ => as_it_is(text(warning)),
    });
    let of_run = figures::warnings_of(run);
    let of_run = of_run.iter().map(text).chain(backlogs(run)).map(as_it_is);
    for (key, text) in of_run.chain(of_visits) {
        match met.iter_mut().find(|(known, ..)| *known == key) {
            Some((.., times)) => *times += 1,
            None => met.push((key, text, 1)),
        }
    }
    let mut out = String::new();
    for (k, (_, text, times)) in met.iter().take(WARNINGS).enumerate() {
        if k == 0 {
            out.push_str("\nwarnings\n");
        }
        let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
        out.push_str(&wrapped("  ", &format!("{text}{times}")));
    }
    if met.len() > WARNINGS {
        let _ = writeln!(out, "  and {} more", met.len() - WARNINGS);
    }
    out
}
