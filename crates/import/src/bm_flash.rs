//! bm-flash: two tables, 14 block sizes down and thread counts across, `IOPS` and `BW` in each
//! cell; a cell in which nothing usable completed is blank.
//!
//! Read as a stream of words, so that a table survives the ways in which pages lose its blanks
//! and line ends: the bars keep the columns apart. `BW` has one decimal and `K` or `M`; a row's
//! label is a whole number with `B`, `K` or `M` before a bar.

use crate::draft::{Cell, Draft, Drafts, Figure, Stream, axis, size_axis};
use crate::text::{self, Fault, Found, Line, Text};

/// 512 B to 4 MiB.
const ROWS: u32 = 14;
/// bm-flash has three; its source can be changed.
const COLUMNS_MAX: usize = 64;
/// A pair of its tables has some 300 words, the page around it some thousand.
const WORDS_MAX: usize = 1 << 20;
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

struct Words<'a> {
    words: Vec<(&'a str, &'a Line<'a>)>,
    at: usize,
    text: &'a Text<'a>,
}

/// Every pair of tables in the text is a run.
pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut words = Vec::new();
    for line in &text.lines {
        for (k, part) in line.text.split('|').enumerate() {
            if k > 0 {
                words.push(("|", line));
            }
            words.extend(part.split_whitespace().map(|word| (word, line)));
        }
        if words.len() > WORDS_MAX {
            let what = format!("more than {WORDS_MAX} words");
            return Err(Fault::TooMuch { line: Some(line.number), what });
        }
    }
    let mut words = Words { words, at: 0, text };
    let mut drafts = Drafts::default();
    while let Some(start) = words.find(&["Read", "Tests:"]) {
        let mut draft = Draft::of("bm-flash");
        draft.cells.extend(words.fill(start)?);
        words.at = start + 2;
        words.table("read", &mut draft)?;
        let Some(start) = words.find(&["Write", "Tests:"]) else {
            return Err(text.ended("`Write Tests:` and its table"));
        };
        if let Some(&(_, line)) = words.find(&["Read", "Tests:"]).and_then(|at| words.words.get(at))
            && line.number < words.words.get(start).map_or(0, |(_, line)| line.number)
        {
            return Err(line.unfit("`Write Tests:` and its table before it"));
        }
        words.at = start + 2;
        words.table("write", &mut draft)?;
        let blank: Vec<_> = draft.cells.iter().filter(|cell| cell.blank).map(name).collect();
        if !blank.is_empty() {
            let text = format!(
                "bm-flash left cells blank, as it does where nothing usable completed: {}",
                blank.join(", ")
            );
            draft.warnings.push(("blank-cells".to_owned(), text));
        }
        drafts.push(draft);
    }
    // A write table without a read table before it.
    match words.find(&["Write", "Tests:"]).and_then(|at| words.words.get(at)) {
        Some((_, line)) => Err(line.unfit("`Read Tests:` and its table before it")),
        None => drafts.all().ok_or_else(|| text.ended("`Read Tests:` and its table")),
    }
}

fn name(cell: &Cell) -> String {
    let values = cell.coordinates.iter().map(|(_, value)| value.as_str());
    std::iter::once(cell.phase.as_str()).chain(values).collect::<Vec<_>>().join(" ")
}

impl<'a> Words<'a> {
    fn find(&self, wanted: &[&str]) -> Option<usize> {
        let starts = self.at..self.words.len();
        starts.into_iter().find(|&k| {
            let here = self.words.get(k..k + wanted.len());
            here.is_some_and(|here| here.iter().map(|(word, _)| *word).eq(wanted.iter().copied()))
        })
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(|(word, _)| *word)
    }

    fn second(&self) -> Option<&'a str> {
        self.words.get(self.at + 1).map(|(word, _)| *word)
    }

    fn unfit(&self, wanted: &str) -> Fault {
        match self.words.get(self.at) {
            Some((word, line)) => line.unfit_word(word, wanted),
            None => self.text.ended(wanted),
        }
    }

    fn take(&mut self, wanted: &str) -> Found<(&'a str, &'a Line<'a>)> {
        let found = self.words.get(self.at).copied().ok_or_else(|| self.unfit(wanted))?;
        self.at += 1;
        Ok(found)
    }

    fn expect(&mut self, word: &str) -> Found<()> {
        if self.peek() != Some(word) {
            return Err(self.unfit(&format!("`{word}`")));
        }
        self.at += 1;
        Ok(())
    }

    /// `Filling 4G before testing ... 4096 MB done in 3 seconds (1365 MB/sec).`, if it stands
    /// before word `until`.
    fn fill(&mut self, until: usize) -> Found<Option<Cell>> {
        let range = self.at..until;
        let begins = ["Filling", "done"];
        let told =
            range.clone().any(|k| self.words.get(k).is_some_and(|(w, _)| begins.contains(w)));
        if !told {
            return Ok(None);
        }
        let start = self.find(&["done", "in"]).filter(|&k| k < until && k >= self.at + 2);
        let Some(start) = start else {
            self.at = range.start;
            return Err(self.unfit("`... MB done in ... seconds (... MB/sec)`"));
        };
        let word = |k: usize| self.words.get(k).copied().unwrap_or(("", &self.text.lines[0]));
        let (megabytes, line) = word(start - 2);
        let bytes = line.whole(megabytes, "megabytes written")?.saturating_mul(1 << 20);
        let seconds = line.whole(word(start + 2).0, "seconds")?;
        let rate = line.whole(word(start + 4).0.trim_start_matches('('), "megabytes a second")?;
        let figure = Figure {
            bytes: Some(bytes),
            bytes_per_s: Some(rate as f64 * MIB),
            ..Figure::of("write")
        };
        let stream = Stream { name: "fill".into(), ops: vec![figure], ..Stream::of("write") };
        Ok(Some(Cell {
            phase: "fill".into(),
            streams: vec![stream],
            elapsed_ns: seconds.checked_mul(1_000_000_000),
            ..Cell::default()
        }))
    }

    fn table(&mut self, op: &str, draft: &mut Draft) -> Found<()> {
        let threads = self.head()?;
        let mut size = 512u64;
        for _ in 0..ROWS {
            self.row(op, size, &threads, draft)?;
            size *= 2;
        }
        Ok(())
    }

    /// `Block | 1 thread | 10 threads | ...  Size | IOPS BW | ...`: the thread counts.
    fn head(&mut self) -> Found<Vec<u32>> {
        self.expect("Block")?;
        let mut threads = Vec::new();
        while self.peek() == Some("|") {
            self.at += 1;
            // Some pages close their lines with a bar.
            if self.peek() == Some("Size") {
                break;
            }
            let (word, line) = self.take("a number of threads")?;
            let count = u32::try_from(line.whole(word, "a number of threads")?).ok();
            let count = count.ok_or_else(|| line.unfit_word(word, "a number of threads"))?;
            threads.push(count);
            match self.take("`threads`")? {
                ("thread" | "threads", _) => {}
                (word, line) => return Err(line.unfit_word(word, "`threads`")),
            }
        }
        if threads.is_empty() || threads.len() > COLUMNS_MAX {
            return Err(self.unfit("`|` and some thread counts"));
        }
        self.expect("Size")?;
        for _ in &threads {
            for word in ["|", "IOPS", "BW"] {
                self.expect(word)?;
            }
        }
        while self.peek() == Some("|") {
            self.at += 1;
        }
        Ok(threads)
    }

    fn row(&mut self, op: &str, size: u64, threads: &[u32], draft: &mut Draft) -> Found<()> {
        let wanted = format!("the row of {}", label(size));
        let (word, line) = self.take(&wanted)?;
        if word != label(size) {
            return Err(line.unfit_word(word, wanted));
        }
        // A row may end early: what follows is blank.
        for (k, &count) in threads.iter().enumerate() {
            let figure = match self.peek() {
                Some("|") => {
                    self.at += 1;
                    self.cell()?
                }
                _ if k > 0 => None,
                _ => return Err(self.unfit("`|`")),
            };
            draft.cells.push(cell(op, size, count, figure));
        }
        // Rows are drawn with a bar at their end by some pages.
        if self.peek() == Some("|") && self.second().is_none_or(is_label) {
            self.at += 1;
        }
        Ok(())
    }

    /// What stands between two bars: IOPS and bandwidth, or nothing.
    fn cell(&mut self) -> Found<Option<(f64, f64)>> {
        let Some((word, line)) = self.words.get(self.at).copied() else { return Ok(None) };
        let begins_row = is_label(word) && self.second() == Some("|");
        if word == "|" || begins_row || !word.starts_with(|c: char| c.is_ascii_digit()) {
            // Blank. Words behind the table are not of it, words in it are a fault.
            // The words of a line stand together.
            let is_last = !is_bar(line) || begins_row || word == "|";
            return if is_last { Ok(None) } else { Err(line.unfit_word(word, "IOPS")) };
        }
        self.at += 1;
        let iops = line.whole(word, "IOPS")? as f64;
        let (word, line) = self.take("a bandwidth")?;
        let bandwidth = bandwidth(word)
            .ok_or_else(|| line.unfit_word(word, "a bandwidth with one decimal and `K` or `M`"))?;
        Ok(Some((iops, bandwidth)))
    }
}

fn is_bar(line: &Line) -> bool {
    line.text.contains('|')
}

fn is_label(word: &str) -> bool {
    let digits = word.trim_end_matches(['B', 'K', 'M']);
    digits.len() + 1 == word.len() && digits.bytes().all(|b| b.is_ascii_digit())
}

fn label(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{}K", bytes >> 10),
        _ => format!("{}M", bytes >> 20),
    }
}

/// `5.5M`: bytes per second.
fn bandwidth(word: &str) -> Option<f64> {
    let (digits, unit) = word.split_at_checked(word.len().checked_sub(1)?)?;
    let (whole, tenth) = digits.split_once('.')?;
    let is_number =
        !whole.is_empty() && whole.bytes().chain(tenth.bytes()).all(|b| b.is_ascii_digit());
    if !is_number || tenth.len() != 1 {
        return None;
    }
    let scale = match unit {
        "K" => KIB,
        "M" => MIB,
        _ => return None,
    };
    Some(text::number(digits)? * scale)
}

fn cell(op: &str, size: u64, threads: u32, found: Option<(f64, f64)>) -> Cell {
    let ops = found.map(|(iops, bytes_per_s)| Figure {
        iops: Some(iops),
        bytes_per_s: Some(bytes_per_s),
        ..Figure::of(op)
    });
    let stream = Stream {
        block: Some(size),
        threads: Some(threads),
        queue_depth: Some(1),
        ops: ops.into_iter().collect(),
        ..Stream::of(op)
    };
    Cell {
        phase: op.to_owned(),
        coordinates: vec![size_axis("block_size", size), axis("threads", threads)],
        streams: vec![stream],
        blank: found.is_none(),
        ..Cell::default()
    }
}
