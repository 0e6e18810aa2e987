//! bonnie++'s CSV, 1.03 to 2.00, and its text table.
//!
//! `+++++` stands where a phase took less than half a second: its rate is not known. The latency
//! of a phase is its largest single operation. K is 1024 everywhere.
//!
//! Phases are named as in our suite `bonnie`, and what has a rate is what has one there: rewriting
//! reads and writes every block, a seek reads one and every tenth writes it back. The rate that
//! bonnie++ prints for these is kept as well, under a name that is in no rate.

use crate::csv;
use crate::draft::{CELLS_MAX, Cell, Draft, Drafts, Figure, Latency, Stream};
use crate::text::{self, Found, LINE_BYTES_MAX, Line, Reader, Text};

/// Without a size of its own a request has 8 KiB.
const CHUNK: u64 = 8192;

/// Our phase, operation, and whether its rate is in KiB a second.
const PHASES: [(&str, &str, bool); 12] = [
    ("write-byte", "write", true),
    ("write-block", "write", true),
    ("rewrite", "rewrite", true),
    ("read-byte", "read", true),
    ("read-block", "read", true),
    ("seek", "seek", false),
    ("create-in-order", "create", false),
    ("stat-in-order", "stat", false),
    ("delete-in-order", "delete", false),
    ("create-at-random", "create", false),
    ("stat-at-random", "stat", false),
    ("delete-at-random", "delete", false),
];
/// The first of them that is about files.
const FIRST_OF_FILES: usize = 6;
/// Of so many seeks one writes back what it read.
const SEEKS_PER_UPDATE: f64 = 10.0;

/// What one run's lines hold, as text.
struct Row<'a> {
    line: &'a Line<'a>,
    name: String,
    size: String,
    chunk: String,
    seekers: Option<String>,
    files: Option<String>,
    /// Rate, CPU and latency of each phase; empty where there is none.
    phases: Vec<[String; 3]>,
}

pub(crate) fn is_it(text: &str) -> bool {
    text.contains("Sequential Output------")
        || text
            .lines()
            .filter(|line| is_short(line) && has_fields(line))
            .any(|l| kind(&csv::fields(l)).is_some())
}

/// A line of CSV has some hundred characters.
fn is_short(line: &str) -> bool {
    line.len() <= LINE_BYTES_MAX
}

/// The shortest line has fourteen of them.
fn has_fields(line: &str) -> bool {
    line.bytes().filter(|byte| *byte == b',').count() >= 13
}

/// How the fields of a CSV line are laid out.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// 1.03: no version, no latency.
    Old,
    /// 1.9x: 48 fields.
    Versioned,
    /// 1.98 of 2.00: with the number of seeks and seekers.
    Seekers,
}

fn kind(fields: &[String]) -> Option<Kind> {
    let field = |k: usize| fields.get(k).map_or("", String::as_str);
    if field(0).starts_with("1.9") && field(0).len() <= 6 && field(1).starts_with(['1', '2']) {
        return Some(if field(0).starts_with("1.98") || field(0).starts_with("1.99") {
            Kind::Seekers
        } else {
            Kind::Versioned
        });
    }
    let is_figure =
        |text: &String| text.is_empty() || text.starts_with('+') || text::number(text).is_some();
    let fits = fields.len() >= 14
        && !field(0).is_empty()
        && is_size(field(1))
        && fields[2..14].iter().all(is_figure)
        && fields[2..14].iter().any(|f| !f.is_empty());
    fits.then_some(Kind::Old)
}

/// A line of so many figures that is none of bonnie++'s was one: to pass over it would leave a part
/// that looks whole. The line of names that stands above has no figures.
fn is_bent_row(fields: &[String]) -> bool {
    let is_figure = |field: &&String| field.starts_with(|c: char| c.is_ascii_digit() || c == '+');
    fields.len() >= 14 && fields.iter().filter(is_figure).count() >= 6
}

fn is_size(text: &str) -> bool {
    let size = text.split(':').next().unwrap_or_default();
    size.ends_with(['K', 'M', 'G', 'k', 'm', 'g']) && text::bytes(size).is_some()
}

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    // More lines of one machine and size may be repeats (`-x`), or set-ups that differ in what no line
    // tells, such as the controller.
    let mut add =
        |row: &Row, version: Option<String>, settings: Vec<(String, String)>| -> Found<()> {
            drafts.push(draft(row, version, settings)?);
            Ok(())
        };
    let mut rows = 0usize;
    // Numbers of the lines of CSV, and what they say.
    let mut told: Vec<(usize, Vec<[String; 3]>)> = Vec::new();
    for line in &text.lines {
        let fields = csv::fields(&line.text);
        if let Some(kind) = kind(&fields) {
            let (row, version, settings) = of_csv(line, &fields, kind)?;
            add(&row, version, settings)?;
            rows += 1;
            if rows <= CELLS_MAX {
                told.push((line.number, row.phases));
            }
        } else if is_bent_row(&fields) {
            return Err(line.unfit("a line of CSV as bonnie++ prints it"));
        }
    }
    // The table says the same as the line below it, rounded.
    let mut reader = text.reader();
    let has_rows = rows > 0;
    while !has_rows && has_table(&reader) {
        let (row, version, settings) = of_table(&mut reader)?;
        add(&row, version, settings)?;
    }
    while has_rows && let Some(head) = reader.rest().iter().find(|line| is_head(line)) {
        let mut ahead = reader.clone();
        // Where blanks were collapsed only its place tells whose it is.
        let table = of_table(&mut ahead).ok().map(|(row, ..)| row.phases);
        reader.find(head.text.trim())?;
        let next = reader.rest().iter().find(|line| is_head(line)).map_or(usize::MAX, |l| l.number);
        let is_told = told.iter().any(|(number, row)| match &table {
            Some(table) => is_same(table, row),
            None => (head.number..next).contains(number),
        });
        if !is_told {
            return Err(head.unfit("the line of CSV of this table, too, or the tables alone"));
        }
    }
    let mut all =
        drafts.all().ok_or_else(|| text.ended("a line of CSV, or the table under `Version`"))?;
    for draft in &mut all {
        remarks(draft, has_rows, rows);
    }
    Ok(all)
}

/// What nobody can see from the output alone.
fn remarks(draft: &mut Draft, has_rows: bool, rows: usize) {
    if has_rows {
        draft.remark(crate::draft::no_end_mark(rows, "line of CSV", "lines of CSV"));
    }
    if !has_rows {
        draft.remark(
            "Read from the table, which rounds; the line of CSV that bonnie++ prints as well is not \
             in the file.",
        );
    }
    let phases = PHASES.iter().skip(FIRST_OF_FILES).map(|(phase, ..)| *phase).collect::<Vec<_>>();
    if !has_rows && !draft.cells.iter().any(|cell| phases.contains(&cell.phase.as_str())) {
        draft.remark(
            "It has no part about files: bonnie++ was told to make none (-n 0), or the table was cut \
             there.",
        );
    }
}

/// Whether a table and a line of CSV say the same. Of rates a table may print fewer digits,
/// with a unit; that of 2.00 prints others, so that where there are latencies these tell.
fn is_same(table: &[[String; 3]], row: &[[String; 3]]) -> bool {
    let is_rate = |a: &str, b: &str| a == b || a.ends_with(|c: char| c.is_ascii_alphabetic());
    let is_phase = |(a, b): (&[String; 3], &[String; 3])| {
        (is_rate(&a[0], &b[0]) || !a[2].is_empty()) && a[1] == b[1] && a[2] == b[2]
    };
    table.len() == row.len() && table.iter().zip(row).all(is_phase)
}

fn is_head(line: &Line) -> bool {
    line.text.contains("Sequential Output------")
}

fn has_table(reader: &Reader) -> bool {
    reader.rest().iter().any(|line| line.text.contains("Sequential Output------"))
}

type Told<'a> = (Row<'a>, Option<String>, Vec<(String, String)>);

fn of_csv<'a>(line: &'a Line<'a>, fields: &[String], kind: Kind) -> Found<Told<'a>> {
    let field = |k: usize| fields.get(k).cloned().unwrap_or_default();
    let old = kind == Kind::Old;
    let wanted = match kind {
        Kind::Old => fields.len(),
        Kind::Versioned => 48,
        Kind::Seekers => 50,
    };
    if fields.len() != wanted || old && !matches!(fields.len(), 14 | 15 | 27) {
        let wanted = if old { "14 or 27".to_owned() } else { wanted.to_string() };
        return Err(line.unfit(format!("{wanted} fields, of {}", fields.len())));
    }
    let rates = match kind {
        Kind::Old => 2,
        Kind::Versioned => 7,
        Kind::Seekers => 9,
    };
    // Behind the six rates of the file come its number of files, and what they are like.
    let files = rates + 12;
    let metadata = if old { files + 1 } else { files + 5 };
    let latencies = metadata + 12;
    let mut phases = Vec::new();
    for k in 0..12 {
        let at = if k < 6 { rates + 2 * k } else { metadata + 2 * (k - 6) };
        let latency = if old { String::new() } else { field(latencies + k) };
        phases.push([field(at), field(at + 1), latency]);
    }
    let (name, size) = if old { (field(0), field(1)) } else { (field(2), field(5)) };
    let (size, mut chunk) = match size.split_once(':') {
        Some((size, chunk)) => (size.to_owned(), chunk.to_owned()),
        None => (size, String::new()),
    };
    if !old {
        chunk = field(6);
    }
    let seekers = (kind == Kind::Seekers).then(|| field(8));
    let files = Some(field(files)).filter(|n| !n.is_empty());
    let mut settings = Vec::new();
    if !old {
        settings.push(("concurrency".to_owned(), field(3)));
        settings.push(("seed".to_owned(), field(4)));
    }
    let version = (!old).then(|| field(1));
    Ok((Row { line, name, size, chunk, seekers, files, phases }, version, settings))
}

fn of_table<'a>(reader: &mut Reader<'a>) -> Found<Told<'a>> {
    let line = loop {
        let line = reader.find("Version")?;
        if line.text.contains("Sequential Output------") {
            break line;
        }
    };
    let version = line.text.split_whitespace().nth(1).unwrap_or_default().to_owned();
    if !version.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(line.unfit("`Version` and its number"));
    }
    let mut settings = Vec::new();
    let Some(line) = reader.next() else { return Err(reader.ended("`-Per Chr- --Block-- ...`")) };
    if !line.text.contains("-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--") {
        return Err(line.unfit("`-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--`"));
    }
    if let Some(rest) = line.after("Concurrency") {
        let count = rest.split_whitespace().next().unwrap_or_default();
        settings.push(("concurrency".to_owned(), count.to_owned()));
    }
    let head = heads(reader)?;
    let Some(line) = reader.next() else { return Err(reader.ended("a line of figures")) };
    let mut words = line.text.split_whitespace();
    let (name, size) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let size_of = size.split(':').next().unwrap_or_default();
    if text::bytes(size_of).is_none() || !size_of.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(line.unfit("a name and a size, `db01 62G`"));
    }
    let after = line.text.find(size).map_or(0, |at| at + size.len());
    let mut phases = columns(line, after, head)?;
    let with_latency = !version.starts_with("1.0");
    latency(reader, with_latency, &mut phases)?;
    let (size, chunk) = size.split_once(':').unwrap_or((size, ""));
    let mut row = Row {
        line,
        name: name.to_owned(),
        size: size.to_owned(),
        chunk: chunk.to_owned(),
        seekers: None,
        files: None,
        phases,
    };
    let mut ahead = reader.clone();
    if ahead.next().is_some_and(|line| line.text.contains("-Sequential Create-")) {
        *reader = ahead;
        files(reader, with_latency, &mut row)?;
    }
    row.phases.resize(12, [const { String::new() }; 3]);
    Ok((row, Some(version), settings))
}

/// The second part: creating, looking up and deleting files.
fn files(reader: &mut Reader, with_latency: bool, row: &mut Row) -> Found<()> {
    let Some(line) = reader.next() else {
        return Err(reader.ended("`-Create-- --Read--- -Delete--`"));
    };
    if !line.text.contains("-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--") {
        return Err(line.unfit("`-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--`"));
    }
    let head = heads(reader)?;
    let Some(line) = reader.next() else { return Err(reader.ended("a line of figures")) };
    let files = line.text.split_whitespace().next().unwrap_or_default();
    line.whole(files.split(':').next().unwrap_or_default(), "a number of files")?;
    let after = line.text.find(files).map_or(0, |at| at + files.len());
    let mut phases = columns(line, after, head)?;
    latency(reader, with_latency, &mut phases)?;
    row.files = Some(files.to_owned());
    row.phases.extend(phases);
    Ok(())
}

/// Where the six columns end.
#[derive(Clone, Copy)]
struct Heads {
    ends: [usize; 6],
    /// False where blanks were collapsed, as by a page: the figures that are left may be of any column.
    has_blanks: bool,
}

/// The line with the units.
fn heads(reader: &mut Reader) -> Found<Heads> {
    let Some(line) = reader.next() else { return Err(reader.ended("`/sec %CP` six times")) };
    let mut ends = [0; 6];
    let mut found = line.text.match_indices("/sec %CP");
    for end in &mut ends {
        let Some((at, mark)) = found.next() else { return Err(line.unfit("`/sec %CP` six times")) };
        *end = at + mark.len();
    }
    // Before the first of them there is room for names.
    Ok(Heads { ends, has_blanks: line.text.contains("  ") })
}

/// Pairs of rate and CPU under their heads. Numbers too wide for their column push those behind
/// them to the right.
fn columns(line: &Line, after: usize, heads: Heads) -> Found<Vec<[String; 3]>> {
    let ends = heads.ends;
    let mut pairs = Vec::new();
    let mut at = after;
    let mut half: Option<&str> = None;
    for word in line.text.get(after..).unwrap_or_default().split_whitespace() {
        at += line.text.get(at..).and_then(|rest| rest.find(word)).unwrap_or(0) + word.len();
        match half.take() {
            None => half = Some(word),
            Some(rate) => pairs.push((rate, word, at)),
        }
    }
    if half.is_some() || pairs.is_empty() || pairs.len() > 6 {
        return Err(line.unfit("up to six pairs of rate and CPU"));
    }
    let mut phases = vec![[const { String::new() }; 3]; 6];
    let mut drift = 0isize;
    let mut next = 0;
    let all = pairs.len() == 6;
    if !all && !heads.has_blanks {
        return Err(line.unfit("figures under their heads: blanks are missing"));
    }
    for (k, (rate, cpu, end)) in pairs.into_iter().enumerate() {
        let off = |column: usize| end as isize - ends[column] as isize - drift;
        let column = if all {
            Some(k)
        } else {
            (next..6).min_by_key(|&c| off(c).abs()).filter(|&c| off(c).abs() <= 3)
        };
        let column =
            column.ok_or_else(|| line.unfit("figures under their heads: blanks are missing"))?;
        drift += off(column);
        next = column + 1;
        phases[column][0] = rate.to_owned();
        phases[column][1] = cpu.to_owned();
    }
    Ok(phases)
}

/// `Latency`, and a value for each phase that has figures.
fn latency(reader: &mut Reader, wanted: bool, phases: &mut [[String; 3]]) -> Found<()> {
    if !wanted {
        return Ok(());
    }
    let (line, rest) = reader.want("Latency")?;
    let mut values = rest.split_whitespace();
    for phase in phases.iter_mut().filter(|phase| !phase[0].is_empty()) {
        let value =
            values.next().ok_or_else(|| line.unfit("a latency for each phase that has figures"))?;
        phase[2] = value.to_owned();
    }
    if values.next().is_some() {
        return Err(line.unfit("a latency for each phase that has figures"));
    }
    Ok(())
}

fn draft(row: &Row, version: Option<String>, settings: Vec<(String, String)>) -> Found<Draft> {
    let line = row.line;
    let size = text::bytes(&row.size).filter(|size| *size > 0);
    let size = size.ok_or_else(|| line.unfit_word(&row.size, "a size, `62G`"))?;
    let chunk = match row.chunk.as_str() {
        "" => CHUNK,
        chunk => text::bytes(chunk).ok_or_else(|| line.unfit_word(chunk, "a request size"))?,
    };
    let mut draft = Draft {
        suite: "bonnie".to_owned(),
        version,
        host: Some(row.name.clone()),
        size: Some(size),
        settings,
        ..Draft::default()
    };
    if let Some(files) = &row.files {
        draft.set("files (x 1024)", files.clone());
    }
    for ((phase, op, in_kib), told) in PHASES.iter().zip(&row.phases) {
        if told[0].is_empty() {
            if !told[1].is_empty() {
                return Err(line.unfit_word(&told[1], format!("a rate of {phase} before its CPU")));
            }
            continue;
        }
        let block = match *phase {
            "write-byte" | "read-byte" => Some(1),
            _ if *in_kib || *phase == "seek" => Some(chunk),
            _ => None,
        };
        let mut cell = cell(line, phase, op, *in_kib, told)?;
        for stream in &mut cell.streams {
            stream.block = block;
            stream.threads = match (*phase, &row.seekers) {
                ("seek", Some(count)) => {
                    u32::try_from(line.whole(count, "a number of seekers")?).ok()
                }
                ("seek", None) => None,
                _ => Some(1),
            };
            stream.queue_depth = stream.threads.map(|_| 1);
        }
        draft.push(cell);
    }
    if draft.cells.iter().any(|cell| cell.phase == "seek") {
        draft.remark(
            "bonnie++ does not count the blocks that its seeks write back: taken as every tenth, as \
             it does them.",
        );
    }
    if draft.cells.is_empty() {
        return Err(line.unfit("figures of one phase at least"));
    }
    Ok(draft)
}

fn cell(line: &Line, phase: &str, op: &str, in_kib: bool, told: &[String; 3]) -> Found<Cell> {
    let mut figure = Figure::of(op);
    let mut cell = Cell { phase: phase.to_owned(), ..Cell::default() };
    if told[0].starts_with('+') {
        if told[0].bytes().any(|b| b != b'+') {
            return Err(line.unfit_word(&told[0], "a rate, or `+++++`"));
        }
        let text = format!("{phase} took less than half a second, and bonnie++ printed no rate");
        cell.warnings.push(("too-short".to_owned(), text));
    } else {
        let found = text::split_unit(&told[0]);
        let (rate, unit) = found.ok_or_else(|| line.unfit_word(&told[0], "a rate, or `+++++`"))?;
        // 2.00 prints units in its table; everyone else means KiB.
        let scale = match (unit, in_kib) {
            ("", true) => Some(1024.0),
            ("", false) => Some(1.0),
            (unit, _) => text::binary(unit).filter(|_| unit.len() == 1).map(|n| n as f64),
        };
        let scale = scale.ok_or_else(|| line.unfit_word(&told[0], "a rate"))?;
        if in_kib {
            figure.bytes_per_s = Some(rate * scale);
        } else {
            figure.iops = Some(rate * scale);
        }
    }
    if !told[1].starts_with('+') && !told[1].is_empty() {
        figure.cpu_percent = Some(line.number(&told[1], "CPU in percent")?);
    } else if told[1].bytes().any(|b| b != b'+') {
        return Err(line.unfit_word(&told[1], "CPU in percent, or `+++`"));
    }
    if !told[2].is_empty() {
        let found =
            text::split_unit(&told[2]).and_then(|(v, unit)| text::ns(v * text::time_unit(unit)?));
        let max = found.ok_or_else(|| line.unfit_word(&told[2], "a latency, `1646ms`"))?;
        figure.latency = Latency { max: Some(max).filter(|max| *max > 0), ..Latency::default() };
    }
    let parts = parts(&figure);
    // As our suite calls it.
    let of_stream = match op {
        "rewrite" => "update",
        "seek" => "mixed",
        op => op,
    };
    let ops = std::iter::once(figure).chain(parts).collect();
    cell.streams = vec![Stream { name: phase.to_owned(), ops, ..Stream::of(of_stream) }];
    Ok(cell)
}

/// The requests that an operation of several is made of, as far as a rate was printed.
fn parts(whole: &Figure) -> Vec<Figure> {
    match (whole.op.as_str(), whole.bytes_per_s, whole.iops) {
        ("rewrite", Some(rate), _) => ["read", "write"]
            .map(|op| Figure { bytes_per_s: Some(rate), ..Figure::of(op) })
            .to_vec(),
        ("seek", _, Some(rate)) => [("read", rate), ("write", rate / SEEKS_PER_UPDATE)]
            .map(|(op, rate)| Figure { iops: Some(rate), ..Figure::of(op) })
            .to_vec(),
        _ => Vec::new(),
    }
}
