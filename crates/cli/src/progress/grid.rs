//! The grid as it fills in: a line per row, said when the row is complete; and, where lines can
//! change, the rows that are not, as they stand.

use std::collections::BTreeSet;

use explain::view::{Counting, Counts, rated};
use record::{CellRecord, OpRecord, Purpose, VisitEnd, VisitRecord};

use super::text;

/// Cells ordered into rows: the last axis goes across.
#[derive(Debug, Default)]
pub struct Grid {
    phases: Vec<Phase>,
    /// `places[cell]`.
    places: Vec<Place>,
    ready: Vec<String>,
    /// Rows are said when their phase ends, in their order.
    by_phase: bool,
    /// Index of the phase whose heading was said last.
    said: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    phase: usize,
    row: usize,
    square: usize,
}

#[derive(Debug)]
struct Phase {
    name: String,
    /// Field that goes across and its values; empty for a phase of one cell.
    across: String,
    columns: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    label: String,
    squares: Vec<Square>,
    said: bool,
}

#[derive(Debug)]
struct Square {
    impossible: bool,
    visits_wanted: u32,
    /// What counts in each of its streams.
    counts: Vec<Counts>,
    visits: u32,
    requests: u64,
    elapsed_ns: u64,
    is_bad: bool,
    /// Of its interval, in ln rate.
    half_width: Option<f64>,
    /// Requests per second now, of the visit under way.
    now: Option<f64>,
}

/// Rows of one phase that are not said yet.
#[derive(Debug, Default)]
pub struct Open {
    pub lines: Vec<String>,
    /// Which line the cell is in.
    pub at: usize,
}

/// Width of a number's column, and of a row's label.
const COLUMN: usize = 13;
const LABEL: usize = 16;

impl Grid {
    /// * `visits_planned`: of all possible cells together.
    /// * `suite`: text of the suite that is played.
    pub fn new(visits_planned: u32, cells: &[CellRecord], suite: &str) -> Self {
        let possible = |fill: bool| {
            cells.iter().filter(|c| c.impossible.is_none() && is_fill(c) == fill).count() as u32
        };
        let measured = visits_planned.saturating_sub(possible(true));
        let repeats = measured.div_ceil(possible(false).max(1)).max(1);
        let counting = Counting::of_suite(suite);
        let mut grid = Self::default();
        for cell in cells {
            let wanted = if is_fill(cell) { 1 } else { repeats };
            let place = grid.place(cell, wanted, counting.in_cell(cell));
            grid.places.push(place);
        }
        grid
    }

    fn place(&mut self, cell: &CellRecord, visits_wanted: u32, counts: Vec<Counts>) -> Place {
        let phase = self.phases.iter().position(|phase| phase.name == cell.phase);
        let phase = phase.unwrap_or_else(|| {
            self.phases.push(Phase::new(&cell.phase));
            self.phases.len() - 1
        });
        let square = Square {
            impossible: cell.impossible.is_some(),
            visits_wanted,
            counts,
            visits: 0,
            requests: 0,
            elapsed_ns: 0,
            is_bad: false,
            half_width: None,
            now: None,
        };
        let (row, square) = match self.phases.get_mut(phase) {
            Some(phase) => phase.place(&cell.coordinates, square),
            None => (0, 0),
        };
        Place { phase, row, square }
    }

    /// Counts a visit in.
    ///
    /// * `half_width`: of its cell's interval since, in ln rate.
    pub fn add(&mut self, visit: &VisitRecord, half_width: Option<f64>) {
        let Some(&place) = self.places.get(visit.cell as usize) else { return };
        let Some(phase) = self.phases.get_mut(place.phase) else { return };
        let (heading, widths) = (phase.heading(), phase.widths());
        let Some(row) = phase.rows.get_mut(place.row) else { return };
        if let Some(square) = row.squares.get_mut(place.square) {
            square.add(visit, half_width);
        }
        if self.by_phase || row.said || !row.squares.iter().all(Square::is_done) {
            return;
        }
        row.said = true;
        let line = row.line(widths);
        if self.said != Some(place.phase) {
            self.said = Some(place.phase);
            self.ready.extend(heading);
        }
        self.ready.push(line);
    }

    /// Cells are visited in rounds: no row is complete before its phase is.
    pub const fn wait_for_phases(&mut self) {
        self.by_phase = true;
    }

    /// No more visits of a phase will come: its rows are as complete as they will be.
    pub fn end_phase(&mut self, name: &str) {
        let Some(index) = self.phases.iter().position(|phase| phase.name == name) else { return };
        let phase = &mut self.phases[index];
        let (heading, widths) = (phase.heading(), phase.widths());
        let begun = |row: &&mut Row| !row.said && row.squares.iter().any(|s| s.visits > 0);
        let rows = phase.rows.iter_mut().filter(begun).map(|row| {
            row.said = true;
            row.line(widths)
        });
        let rows: Vec<String> = rows.collect();
        if !rows.is_empty() && self.said != Some(index) {
            self.said = Some(index);
            self.ready.extend(heading);
        }
        self.ready.extend(rows);
    }

    /// Lines of rows that became complete, each once.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ready)
    }

    /// What the visit under way makes now, in requests per second.
    pub fn now(&mut self, cell: u32, iops: f64) {
        let square = self.places.get(cell as usize).and_then(|place| {
            self.phases.get_mut(place.phase)?.rows.get_mut(place.row)?.squares.get_mut(place.square)
        });
        if let Some(square) = square {
            square.now = Some(iops);
        }
    }

    /// What is still to be said of a cell's phase, as it stands.
    pub fn open(&self, cell: u32) -> Open {
        let Some(place) = self.places.get(cell as usize) else { return Open::default() };
        let Some(phase) = self.phases.get(place.phase) else { return Open::default() };
        let mut open = Open::default();
        if self.said != Some(place.phase) {
            open.lines.extend(phase.heading().iter().flat_map(|h| h.lines()).map(str::to_owned));
        }
        for (index, row) in phase.rows.iter().enumerate().filter(|(_, row)| !row.said) {
            if index <= place.row {
                open.at = open.lines.len();
            }
            open.lines.push(row.line(phase.widths()));
        }
        open
    }
}

fn is_fill(cell: &CellRecord) -> bool {
    cell.phase == "fill"
}

impl Phase {
    fn new(name: &str) -> Self {
        Self { name: name.to_owned(), across: String::new(), columns: Vec::new(), rows: Vec::new() }
    }

    /// Row and position in it.
    fn place(&mut self, coordinates: &[(String, String)], square: Square) -> (usize, usize) {
        let down = match coordinates.split_last() {
            Some(((field, value), down)) => {
                self.across = report::plain(field);
                let value = report::plain(value);
                if !self.columns.contains(&value) {
                    self.columns.push(value);
                }
                down
            }
            None => coordinates,
        };
        let label: Vec<_> = down.iter().map(|(_, value)| report::plain(value)).collect();
        let label = if label.is_empty() { report::plain(&self.name) } else { label.join(" ") };
        let row = self.rows.iter().position(|row| row.label == label).unwrap_or_else(|| {
            self.rows.push(Row { label, squares: Vec::new(), said: false });
            self.rows.len() - 1
        });
        let squares = self.rows.get_mut(row).map_or(0, |row| {
            row.squares.push(square);
            row.squares.len() - 1
        });
        (row, squares)
    }

    fn heading(&self) -> Option<String> {
        if self.columns.is_empty() {
            return None;
        }
        let Widths { label, column } = self.widths();
        let columns = self.columns.iter();
        let columns = columns.map(|c| format!("{:>column$}", text::cut(c, column - 1)));
        let name = report::plain(&self.name);
        let columns: String = columns.collect();
        Some(format!("{name}: IOPS by {}\n{:<label$}{columns}", self.across, ""))
    }

    fn widths(&self) -> Widths {
        let labels = self.rows.iter().map(|row| row.label.as_str()).collect();
        let columns = self.columns.iter().map(String::as_str).collect();
        Widths { label: told_apart(labels, LABEL), column: told_apart(columns, COLUMN) }
    }
}

/// Of a row's label and of a number's column.
#[derive(Clone, Copy, Debug)]
struct Widths {
    label: usize,
    column: usize,
}

/// The least width from `least` on at which no two of the texts are cut to the same.
fn told_apart(texts: Vec<&str>, least: usize) -> usize {
    let longest = texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    let all = texts.iter().collect::<BTreeSet<_>>().len();
    let differ = |width: &usize| {
        let cut = texts.iter().map(|text| text::cut(text, width - 1));
        cut.collect::<BTreeSet<_>>().len() == all
    };
    (least..=longest).find(differ).unwrap_or(least.max(longest + 1))
}

impl Row {
    fn line(&self, Widths { label, column }: Widths) -> String {
        let squares: String = self.squares.iter().map(|square| square.text(column)).collect();
        format!("{:<label$}{squares}", text::cut(&self.label, label - 1))
    }
}

impl Square {
    fn add(&mut self, visit: &VisitRecord, half_width: Option<f64>) {
        self.now = None;
        // What was cut short is made again when the run goes on; pilots are in no figure.
        if visit.end == VisitEnd::Interrupted || visit.purpose == Purpose::Pilot {
            return;
        }
        // As in the tables: flushes beside data are in no rate, and a read with the write that goes
        // with it is one.
        let requests = rated(visit, None, &self.counts, OpRecord::requests_rated);
        self.visits += 1;
        self.requests = self.requests.saturating_add(requests);
        self.elapsed_ns = self.elapsed_ns.saturating_add(visit.rated_ns());
        self.is_bad |= visit.end != VisitEnd::Complete;
        self.half_width = half_width;
    }

    fn is_done(&self) -> bool {
        self.impossible || self.visits >= self.visits_wanted
    }

    /// `17.9k ±11%`; `!` where a visit failed; `17.9k...` while it is visited.
    fn text(&self, column: usize) -> String {
        let rate = self.requests as f64 * 1e9 / self.elapsed_ns as f64;
        let text = match (self.impossible, self.now, self.elapsed_ns) {
            (true, ..) => "not here".to_owned(),
            (false, Some(now), _) => text::count(now) + "...",
            (false, None, 0) => "-".to_owned(),
            (false, None, _) => match self.half_width {
                Some(half) => text::known_to(rate, half),
                None => text::count(rate),
            },
        };
        let mark = if self.is_bad { "!" } else { "" };
        format!("{:>column$}", text + mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Bitmap, Series, StreamPlan, StreamRecord};

    fn cell(index: u32, phase: &str, coordinates: &[(&str, &str)]) -> CellRecord {
        let coordinates = coordinates.iter().map(|&(f, v)| (f.to_owned(), v.to_owned())).collect();
        let streams = Vec::new();
        CellRecord { index, phase: phase.to_owned(), coordinates, streams, impossible: None }
    }

    fn visit(cell: u32, end: VisitEnd) -> VisitRecord {
        VisitRecord {
            cell,
            repeat: 0,
            order: 0,
            started_unix_ns: 0,
            elapsed_ns: 1_000_000_000,
            load_ns: None,
            end,
            purpose: record::Purpose::Measure,
            ramp_ns: 0,
            waited_ns: 0,
            quiet: None,
            resident_before: None,
            resident_after: None,
            streams: Vec::new(),
            completions: Bitmap::default(),
            counters: Vec::new(),
            ledger: Vec::new(),
            host_stalls: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn op(op: &str, requests: u64) -> OpRecord {
        OpRecord {
            op: op.to_owned(),
            requests,
            bytes: 0,
            errors: Vec::new(),
            short: 0,
            latency: stats::LatencyHistogram::new(),
            latency_ns_min: 0,
            latency_ns_max: 0,
            latency_ns_sum: 0,
            series: Series { interval_ns: 100_000_000, rows: Vec::new() },
            slow: Vec::new(),
            slow_dropped: 0,
            late_requests: 0,
            late_bytes: 0,
            reported: None,
        }
    }

    #[test]
    fn rows_are_said_once_when_they_are_complete() {
        let mut cells = vec![
            cell(0, "read", &[("block_size", "4KiB"), ("threads", "1")]),
            cell(1, "read", &[("block_size", "4KiB"), ("threads", "10")]),
            cell(2, "read", &[("block_size", "8KiB"), ("threads", "1")]),
            cell(3, "read", &[("block_size", "8KiB"), ("threads", "10")]),
        ];
        cells[3].impossible = Some("no".to_owned());
        let mut grid = Grid::new(6, &cells, "");
        grid.add(&visit(0, VisitEnd::Complete), None);
        grid.add(&visit(1, VisitEnd::Failed), None);
        grid.add(&visit(0, VisitEnd::Complete), None);
        grid.add(&visit(1, VisitEnd::Interrupted), None);
        assert_eq!(grid.take_lines(), [""; 0], "two visits each are planned");
        let open = grid.open(1);
        assert_eq!(open.lines.len(), 4, "a heading of two lines, two rows: {open:?}");
        assert_eq!(open.at, 2);
        assert_eq!(open.lines[2].trim_end(), "4KiB                        0           0!");
        grid.add(&visit(1, VisitEnd::Complete), None);
        let lines = grid.take_lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[0].starts_with("read: IOPS by threads\n"), "{lines:?}");
        assert_eq!(grid.open(2).lines.len(), 1, "the first row and the heading were said");
        grid.add(&visit(2, VisitEnd::Complete), None);
        grid.add(&visit(2, VisitEnd::Complete), None);
        assert_eq!(grid.take_lines(), ["8KiB                        0     not here"]);
        grid.add(&visit(99, VisitEnd::Complete), None);
    }

    #[test]
    fn a_square_has_its_interval_and_what_it_makes_now() {
        let cells = [
            cell(0, "read", &[("block_size", "4KiB"), ("threads", "1")]),
            cell(1, "read", &[("block_size", "8KiB"), ("threads", "1")]),
        ];
        let mut grid = Grid::new(2, &cells, "");
        grid.wait_for_phases();
        grid.add(&visit(0, VisitEnd::Complete), Some(0.104));
        grid.now(1, 17_940.0);
        let open = grid.open(1);
        assert_eq!(
            open.lines[2..],
            ["4KiB                   0 ±11%", "8KiB                 17.9k..."]
        );
        assert_eq!(open.at, 3);
        grid.add(&visit(1, VisitEnd::Interrupted), Some(0.3));
        assert_eq!(grid.open(1).lines[3], "8KiB                        -", "it counts for nothing");
        assert_eq!(grid.open(7).lines, [""; 0]);
    }

    #[test]
    fn a_phase_that_ends_says_the_rows_that_ended_early() {
        let cells = [
            cell(0, "read", &[("block_size", "4KiB"), ("threads", "1")]),
            cell(1, "read", &[("block_size", "8KiB"), ("threads", "1")]),
        ];
        let mut grid = Grid::new(2, &cells, "");
        grid.wait_for_phases();
        grid.add(&visit(0, VisitEnd::Complete), None);
        let pilot = VisitRecord { purpose: Purpose::Pilot, ..visit(1, VisitEnd::Complete) };
        grid.add(&pilot, None);
        assert_eq!(grid.take_lines(), [""; 0]);
        grid.end_phase("read");
        let lines = grid.take_lines();
        assert_eq!(lines.len(), 2, "a heading and the one row that has a visit: {lines:?}");
        grid.end_phase("read");
        assert_eq!(grid.take_lines(), [""; 0]);
    }

    #[test]
    fn flushes_are_in_no_rate_and_no_two_headings_are_alike() {
        let values = ["none", "fdatasync every=1", "fdatasync every=8"];
        let cells: Vec<CellRecord> = (0..)
            .zip(values)
            .map(|(index, value)| cell(index, "single", &[("block_size", "8KiB"), ("sync", value)]))
            .collect();
        let mut grid = Grid::new(3, &cells, "");
        let streams = streams(vec![op("write", 200), op("fdatasync", 200)]);
        grid.add(&VisitRecord { streams, ..visit(1, VisitEnd::Complete) }, None);
        let open = grid.open(1);
        assert!(open.lines[1].ends_with("fdatasync every=1 fdatasync every=8"), "{open:?}");
        assert_eq!(open.lines[2].split_whitespace().collect::<Vec<_>>(), ["8KiB", "-", "200", "-"]);
        assert_eq!(open.lines[1].len(), open.lines[2].len(), "{open:?}");
    }

    fn streams(ops: Vec<OpRecord>) -> Vec<StreamRecord> {
        vec![StreamRecord {
            name: "single".to_owned(),
            backend: record::BackendRecord::default(),
            ops,
            workers: Vec::new(),
            ramp_requests: 0,
            backlog: 0,
        }]
    }

    #[test]
    fn a_read_and_the_write_that_goes_with_it_are_one() {
        let of = |kind: &str, classes: &str| {
            let plan = StreamPlan {
                name: "single".to_owned(),
                op: kind.to_owned(),
                block_bytes: Some(4096),
                threads: 1,
                queue_depth: 1,
            };
            let suite = format!(
                "schema = 1\nname = \"t\"\n[[phase]]\nname = \"single\"\ntime = \"1s\"\n{classes}\n"
            );
            let cell = CellRecord { streams: vec![plan], ..cell(0, "single", &[]) };
            let mut grid = Grid::new(1, &[cell], &suite);
            let streams = streams(vec![op("read", 1000), op("write", 100), op("fsync", 7)]);
            grid.add(&VisitRecord { streams, ..visit(0, VisitEnd::Complete) }, None);
            let line = grid.take_lines().pop().unwrap();
            line.split_whitespace().next_back().unwrap().to_owned()
        };
        assert_eq!(of("update", "operation = \"update\""), "100");
        let tenth = "classes = [{ weight = 9, operation = \"read\" }, { operation = \"update\" }]";
        assert_eq!(of("mixed", tenth), "1000");
        assert_eq!(of("mixed", "read_share = 0.9"), "1100");
    }

    #[test]
    fn a_phase_of_one_cell_has_its_name_for_a_label() {
        let mut grid = Grid::new(1, &[cell(0, "measure", &[])], "");
        grid.add(&visit(0, VisitEnd::Complete), None);
        assert_eq!(grid.take_lines(), ["measure                     0"]);
    }
}
