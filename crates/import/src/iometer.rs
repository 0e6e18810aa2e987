//! IOMeter's results file: each block of results is a cell, by its row `ALL`.
//!
//! `MiBps (Binary)`, and the plain `MBps` of versions before 1.1, are of 2^20 bytes.

use std::collections::BTreeMap;

use crate::csv;
use crate::draft::{Cell, Draft, Figure, Latency, Stream, axis};
use crate::text::{Found, Line, Text, ns};

const MIB: f64 = 1024.0 * 1024.0;

/// A row `ALL`, by the heads of its columns.
struct Row<'a> {
    line: &'a Line,
    heads: &'a [String],
    fields: Vec<String>,
}

/// Lines of an access specification: size and share of reads.
type Lines = Vec<(u64, u64)>;

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut draft = Draft { suite: "iometer".to_owned(), ..Draft::default() };
    let specs = specs(text, &mut draft)?;
    let mut heads: Vec<String> = Vec::new();
    let mut cells: Vec<(Cell, [String; 3])> = Vec::new();
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
        } else if open && (row.starts_with("ALL,")) {
            let row = Row { line, heads: &heads, fields: csv::fields(row) };
            cells.push(cell(&row, &specs)?);
            has_row = true;
        }
    }
    if open || cells.is_empty() {
        return Err(text.ended("`'Time Stamp` below the results"));
    }
    // Only what differs between the cells names them.
    for (k, name) in ["workers", "disks", "queue_depth"].into_iter().enumerate() {
        let first = cells.first().map(|(_, at)| at[k].clone());
        if cells.iter().any(|(_, at)| Some(&at[k]) != first.as_ref()) {
            for (cell, at) in &mut cells {
                cell.coordinates.push(axis(name, &at[k]));
            }
        }
    }
    draft.cells = cells.into_iter().map(|(cell, _)| cell).collect();
    Ok(vec![draft])
}

/// The head of the file: version, description, access specifications.
fn specs(text: &Text, draft: &mut Draft) -> Found<BTreeMap<String, Lines>> {
    let mut specs: Vec<(String, Lines)> = Vec::new();
    let mut lines = text.lines.iter().peekable();
    let mut in_lines = false;
    while let Some(line) = lines.next() {
        let row = line.text.trim();
        let mut below = || lines.peek().map(|line| line.text.trim().to_owned()).unwrap_or_default();
        if row == "'Version" {
            draft.version = Some(below());
        } else if row == "'Time Stamp" && draft.settings.iter().all(|(n, _)| n != "time stamp") {
            draft.settings.push(("time stamp".to_owned(), below()));
        } else if row.starts_with("'Test Type,") {
            draft.settings.push(("test type, description".to_owned(), below()));
        } else if row.starts_with("'Access specification name") {
            let fields = csv::fields(&below());
            specs.push((fields.first().cloned().unwrap_or_default(), Vec::new()));
            in_lines = false;
        } else if row.starts_with("'size,") {
            in_lines = true;
        } else if row.starts_with('\'') {
            in_lines = false;
        } else if in_lines && let Some((_, all)) = specs.last_mut() {
            let fields = csv::fields(row);
            let field = |k: usize| fields.get(k).map_or("", String::as_str);
            if fields.len() < 8 {
                return Err(line.unfit("8 fields of an access specification"));
            }
            all.push((line.whole(field(0), "a size")?, line.whole(field(2), "a share of reads")?));
        }
    }
    // Of several of one name the first.
    Ok(specs.into_iter().rev().collect())
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

    /// Counts are whole; blank where a version does not tell.
    fn count(&self, name: &str) -> Found<Option<u64>> {
        match self.word(&[name]) {
            None | Some("") => Ok(None),
            Some(word) => self.line.whole(word, name).map(Some),
        }
    }
}

/// The cell, and workers, disks and queue depth as printed.
fn cell(row: &Row, specs: &BTreeMap<String, Lines>) -> Found<(Cell, [String; 3])> {
    if row.fields.len() < row.heads.len() {
        let wanted =
            format!("{} fields, as there are heads, of {}", row.heads.len(), row.fields.len());
        return Err(row.line.unfit(wanted));
    }
    let spec = row.want(&["Access Specification Name"])?.to_owned();
    let lines = specs.get(&spec).map(Vec::as_slice);
    let sizes: Vec<u64> = lines.unwrap_or_default().iter().map(|(size, _)| *size).collect();
    let block = sizes.first().copied().filter(|first| sizes.iter().all(|size| size == first));
    let mut ops = Vec::new();
    for (op, title, moved) in [("read", "Read", "Bytes Read"), ("write", "Write", "Bytes Written")]
    {
        let iops = row.number(&[&format!("{title} IOps")])?;
        let rate = row.number(&[
            &format!("{title} MiBps (Binary)"),
            &format!("{title} MBps (Binary)"),
            &format!("{title} MBps"),
        ])?;
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
    let depth = row.want(&["Queue Depth"])?.to_owned();
    let workers = row.want(&["# Workers"])?.to_owned();
    let disks = row.want(&["# Disks"])?.to_owned();
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
    let cell = Cell { phase: spec, streams: vec![stream], ..Cell::default() };
    Ok((cell, [workers, disks, depth]))
}
