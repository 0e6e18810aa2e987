//! A suite as a job file of fio: what fio can say as options, the rest as comments.

use std::collections::BTreeSet;
use std::fmt::Write;

use units::{Bytes, Nanos};

use crate::model::{
    Access, Arrivals, Backend, CacheStep, Cell, Choice, Class, Data, Method, Operation, Pacing,
    Phase, Spread, StartFile, Stream, Suite, SyncAtEnd, SyncPolicy, Work, WriteThrough,
};

/// A section of the file.
#[derive(Default)]
struct Job {
    options: Vec<(&'static str, String)>,
    /// What fio cannot do, or does otherwise.
    otherwise: BTreeSet<&'static str>,
}

impl Job {
    fn set(&mut self, option: &'static str, value: impl ToString) {
        self.options.push((option, value.to_string()));
    }

    fn otherwise(&mut self, what: &'static str) {
        self.otherwise.insert(what);
    }
}

/// A name that a job file cannot hold: fio would take it for another, and write there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a job file of fio cannot name the file `{}`: {why}", file.escape_debug())]
pub struct FioNameError {
    file: String,
    why: String,
}

impl FioNameError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "name a symbolic link to it, or a place without that in its path"
    }
}

/// Words that fio takes for their values: `$ncpus` is a number.
const KEYWORDS: [&str; 8] =
    ["${", "$ncpus", "$pagesize", "$mb_memory", "$jobname", "$jobnum", "$filenum", "$clientuid"];
/// Longest value of an option; fio reads no further.
const VALUE_MAX: usize = 4095;

/// A file, as it may be named on one line: what it is called without what fio would read as something
/// else.
///
/// Method: fio's `strip_blank_end`, `fio_keyword_replace`, `option_dup_subs` and `get_next_str`, each
/// tried with fio 3.33.
fn nameable(file: &str) -> Result<String, FioNameError> {
    let no = |why: String| Err(FioNameError { file: file.to_owned(), why });
    if file.is_empty() {
        return no("it is empty".to_owned());
    }
    if let Some(comment) = file.chars().find(|c| matches!(c, ';' | '#')) {
        return no(format!("`{comment}` begins a comment there, wherever it stands"));
    }
    if let Some(odd) = file.chars().find(|c| c.is_control()) {
        return no(format!("`{}` ends a line or stands for nothing there", odd.escape_debug()));
    }
    if file.ends_with(char::is_whitespace) {
        return no("blanks at a line's end do not count there".to_owned());
    }
    if let Some(keyword) = KEYWORDS.iter().find(|keyword| file.contains(**keyword)) {
        return no(format!("`{keyword}` is replaced there"));
    }
    if file.len() > VALUE_MAX - 16 {
        return no(format!("it has {} bytes, and no line may have more than 4096", file.len()));
    }
    // Standard input, and blanks at a value's begin.
    let odd = file == "-" || file.starts_with(char::is_whitespace);
    Ok(if odd { format!("./{file}") } else { file.to_owned() })
}

/// The job file that comes closest.
///
/// * `file`: the file or device to name in it.
///
/// One job a cell and stream, the cells one after the other. Above each job stands, as comments,
/// what fio cannot say or does otherwise; what holds for all stands at the top.
///
/// # Errors
///
/// A file whose name fio would read as another.
pub fn fio_job(suite: &Suite, file: &str) -> Result<String, FioNameError> {
    let file = &nameable(file)?;
    let mut text = String::new();
    let _ = writeln!(text, "; {}: {}", one_line(&suite.name), one_line(&suite.title));
    for line in of_all(suite) {
        let _ = writeln!(text, "; {line}");
    }
    text.push_str("\n[global]\n");
    write_options(&mut text, &global(suite, file));
    write_jobs(&mut text, suite, file);
    Ok(text)
}

/// Text as it may stand in a job file: a line that begins in it would be an option, and fio has
/// options that run programs.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if units::is_unseen(c) { ' ' } else { c }).collect()
}

/// The job file that comes closest to suites played one after the other, each with a title.
///
/// It has no section for all: what one sets would hold for the jobs of those after it, too.
///
/// # Errors
///
/// As of [`fio_job`].
pub fn fio_jobs(suites: &[(String, Suite)], file: &str) -> Result<String, FioNameError> {
    let file = &nameable(file)?;
    let mut text = String::new();
    for (number, (title, suite)) in (1..).zip(suites) {
        let between = if number == 1 { "" } else { "\n" };
        let _ = writeln!(text, "{between}; {}", one_line(title));
        for line in of_all(suite) {
            let _ = writeln!(text, "; {line}");
        }
        let mut own = String::new();
        write_options(&mut own, &global(suite, file));
        let mut jobs = String::new();
        write_jobs(&mut jobs, suite, file);
        for line in jobs.lines() {
            match line.strip_prefix('[') {
                Some(name) => {
                    let _ = write!(text, "[{number}-{name}\n{own}");
                }
                None => {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
    }
    Ok(text)
}

fn write_jobs(text: &mut String, suite: &Suite, file: &str) {
    let mut removes = may_remove(suite).into_iter();
    for phase in &suite.phases {
        for cell in &phase.cells {
            let removes = removes.next().unwrap_or(false);
            let mut first = true;
            for stream in &cell.streams {
                let part = Part::of(suite, stream).within_a_line(file);
                match no_job(stream, part) {
                    Some(why) => {
                        let name = name(phase, cell, stream);
                        let _ = writeln!(text, "\n; {name}: no job, since {why}");
                    }
                    None => {
                        let job = Place { part, first, removes };
                        write_job(text, (suite, file), (phase, cell), stream, job);
                        first = false;
                    }
                }
            }
        }
    }
}

/// Why fio has nothing that does the same, if that is so.
fn no_job(stream: &Stream, part: Part) -> Option<&'static str> {
    if stream.transactions().is_some() {
        return Some("it asks a database for transactions, and fio has none");
    }
    if stream.directory().is_some() {
        return Some(
            "it makes, looks at or removes files: fio's filecreate, filestat and filedelete have \
             names, an order and flushes of their own, and lay out the files of all jobs first",
        );
    }
    match part {
        Part::TooMany => Some(
            "the names of the files that its region lies in make more than one line of fio holds",
        ),
        Part::Torn => Some(
            "its region begins or ends within a file of several, and fio has one offset for all of \
             them",
        ),
        _ => None,
    }
}

/// Which cells' jobs may remove the files once they are done: those that begin with empty ones, where
/// no job behind them reads what is gone. fio lays files out once, before the first job.
fn may_remove(suite: &Suite) -> Vec<bool> {
    let cells: Vec<&Cell> = suite.cells().collect();
    let mut may = true;
    let removes = cells.iter().rev().map(|cell| {
        // What no job is made of needs no file.
        if cell.streams.iter().all(|stream| stream.work != Work::Blocks) {
            return false;
        }
        let begins_empty = cell.start_file() != StartFile::Keep;
        let removes = begins_empty && may;
        // The one before may leave none where this one makes them whole again.
        may = begins_empty && (may || cell.streams.iter().any(|stream| fills(suite, stream)));
        removes
    });
    let mut removes: Vec<bool> = removes.collect();
    removes.reverse();
    removes
}

/// Whether a stream writes all of the files, whatever the device does.
fn fills(suite: &Suite, stream: &Stream) -> bool {
    let whole = stream.stop.bytes.is_some_and(|bytes| bytes >= suite.files.total());
    let cut = stream.stop.time.is_some() || stream.stop.operations.is_some();
    let in_order = stream.access == Access::Sequential { shared: false } && stream.threads == 1;
    let writes = stream.mix.classes.iter().all(|class| class.op == Operation::Write);
    whole && !cut && in_order && writes
}

/// Where a job stands among the others.
#[derive(Clone, Copy)]
struct Place {
    part: Part,
    /// It is the first of its cell.
    first: bool,
    /// It may remove its files once it is done.
    removes: bool,
}

/// Which of the files a region lies in, as fio can say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The same part of every file.
    OfEach { start: Bytes },
    /// So many whole files from this one on.
    Files { first: u64, count: u64 },
    /// A part of one file.
    OfOne { file: u64, start: Bytes },
    /// More whole files than one line can name.
    TooMany,
    /// None of these.
    Torn,
}

/// More names than this make no line that anybody reads.
const NAMES_MAX: u64 = 64;

/// Names of several files on a line.
fn names(file: &str, first: u64, count: u64) -> String {
    let each = (first..first + count).map(|number| escaped(&format!("{file}.{number}")));
    each.collect::<Vec<_>>().join(":")
}

impl Part {
    fn of(suite: &Suite, stream: &Stream) -> Self {
        let region = &stream.region;
        let (count, size) = (u64::from(suite.files.count), suite.files.size.get().max(1));
        let (start, length) = (region.start.get(), extent(stream).get());
        let end = start.saturating_add(length);
        match region.spread {
            _ if count == 1 => Self::OfEach { start: region.start },
            Spread::FilePerWorker => Self::OfEach { start: region.start },
            Spread::Striped { .. } => Self::OfEach { start: Bytes::new(start / count) },
            Spread::Concatenated if start == 0 && end == count.saturating_mul(size) => {
                Self::OfEach { start: Bytes::ZERO }
            }
            Spread::Concatenated if start / size == end.saturating_sub(1) / size => {
                Self::OfOne { file: start / size, start: Bytes::new(start % size) }
            }
            Spread::Concatenated if start.is_multiple_of(size) && end.is_multiple_of(size) => {
                match length / size {
                    count @ ..=NAMES_MAX => Self::Files { first: start / size, count },
                    _ => Self::TooMany,
                }
            }
            Spread::Concatenated => Self::Torn,
        }
    }

    /// The same, where a line holds the names.
    fn within_a_line(self, file: &str) -> Self {
        match self {
            Self::Files { first, count } if names(file, first, count).len() > VALUE_MAX => {
                Self::TooMany
            }
            other => other,
        }
    }

    /// Whether requests go to more than one file.
    fn is_of_several(self, files: u32) -> bool {
        match self {
            Self::OfEach { .. } => files > 1,
            Self::Files { count, .. } => count > 1,
            Self::OfOne { .. } | Self::TooMany | Self::Torn => false,
        }
    }
}

/// How much of its region a stream goes over.
fn extent(stream: &Stream) -> Bytes {
    match stream.access {
        Access::Same => stream.block_size_max(),
        _ => stream.region.length,
    }
}

/// A file's name where a colon parts names. A backslash is one, unless a colon follows.
fn escaped(file: &str) -> String {
    file.replace(':', "\\:")
}

/// What holds for the whole file.
fn of_all(suite: &Suite) -> Vec<String> {
    let mut said = Vec::new();
    match suite.method {
        Method::Rounds => said.push(
            "cells are visited here once and in this order; the suite visits them in rounds of \
             random order until each is known"
                .to_owned(),
        ),
        Method::Classic if suite.repeats > 1 => {
            said.push(format!(
                "the suite visits each cell {} times: repeat this file",
                suite.repeats
            ));
        }
        Method::Classic => {}
    }
    if suite.files.fill {
        said.push(
            "the suite writes every byte first; fio lays a file out only if it is not there"
                .to_owned(),
        );
    }
    if !suite.files.precondition.is_empty() {
        said.push("preconditioning before the first phase is not in here".to_owned());
    }
    for phase in &suite.phases {
        said.extend(of_phase(suite, phase).map(|what| format!("phase {}: {what}", phase.name)));
    }
    for step in &suite.caches {
        match step {
            CacheStep::Flush | CacheStep::Purge => {}
            CacheStep::Drop => said.push(
                "dropping the machine's caches: exec_prerun needs root and a shell".to_owned(),
            ),
            CacheStep::Reopen => {}
            CacheStep::Remount => said.push("no remounting before each visit".to_owned()),
        }
    }
    if suite.files.data == Data::SelfDescribing {
        said.push("data that describes itself: fio's verify has a format of its own".to_owned());
    }
    said
}

/// What a phase has for itself and fio cannot.
fn of_phase(suite: &Suite, phase: &Phase) -> impl Iterator<Item = &'static str> {
    let before = phase.cells.iter().any(|cell| cell.before.is_some());
    let said = [
        (!phase.precondition.is_empty(), "preconditioning before it is not in here"),
        (before, "what is played before each visit is not in here"),
        (phase.caches != suite.caches, "it handles caches in its own way, which is not in here"),
        (phase.settle != suite.settle, "its own pause before each visit is not in here"),
    ];
    said.into_iter().filter_map(|(is, what)| is.then_some(what))
}

fn global(suite: &Suite, file: &str) -> Vec<(&'static str, String)> {
    let mut job = Job::default();
    if suite.files.count == 1 {
        job.set("filename", escaped(file));
    } else {
        // One name: a colon is a colon here.
        job.set("filename_format", format!("{file}.$filenum"));
        job.set("nrfiles", suite.files.count);
        job.set("filesize", suite.files.size.get());
    }
    job.set("thread", 1);
    job.set("group_reporting", 1);
    let purges = suite.caches.contains(&CacheStep::Purge);
    job.set("invalidate", u8::from(purges));
    if suite.caches.contains(&CacheStep::Flush) {
        job.set("exec_prerun", "sync");
    }
    match suite.files.data {
        Data::Incompressible | Data::SelfDescribing => job.set("refill_buffers", 1),
        Data::Zero => job.set("zero_buffers", 1),
        Data::Pattern { byte } => job.set("buffer_pattern", format!("0x{byte:02x}")),
        Data::Compressible { random_share } => {
            job.set("refill_buffers", 1);
            job.set("buffer_compress_percentage", percent(1.0 - random_share));
            job.set("buffer_compress_chunk", 4096);
        }
    }
    if suite.settle > Nanos::ZERO {
        job.set("startdelay", seconds(suite.settle));
    }
    job.options
}

fn write_job(
    text: &mut String,
    (suite, file): (&Suite, &str),
    (phase, cell): (&Phase, &Cell),
    stream: &Stream,
    Place { part, first, removes }: Place,
) {
    let mut job = Job::default();
    if first {
        job.set("stonewall", 1);
    }
    if phase.steady.is_some() {
        job.otherwise(
            "played until it is steady: see fio's steadystate, which stops by another rule",
        );
    }
    mix(&mut job, stream);
    access(&mut job, stream, part.is_of_several(suite.files.count));
    place(&mut job, (suite, file), stream, part);
    load(&mut job, stream);
    if let Some(policy) = &stream.sync {
        syncs(&mut job, policy, suite.files.count);
    }
    stops(&mut job, stream);
    start(&mut job, stream, removes);
    text.push('\n');
    for what in &job.otherwise {
        let _ = writeln!(text, "; {what}");
    }
    let _ = writeln!(text, "[{}]", name(phase, cell, stream));
    write_options(text, &job.options);
}

fn write_options(text: &mut String, options: &[(&'static str, String)]) {
    for (option, value) in options {
        let _ = writeln!(text, "{option}={value}");
    }
}

/// `read-block_size=4KiB-threads=10`, as fio allows it.
fn name(phase: &Phase, cell: &Cell, stream: &Stream) -> String {
    let mut parts = vec![phase.name.clone()];
    if cell.streams.len() > 1 {
        parts.push(stream.name.clone());
    }
    for (axis, &place) in phase.axes.iter().zip(&cell.coordinates) {
        let value = axis.values.get(place).map_or("", String::as_str);
        parts.push(format!("{}={value}", axis.field));
    }
    let joined = parts.join("-");
    joined.chars().map(|c| if "[];#".contains(c) || c.is_whitespace() { '_' } else { c }).collect()
}

/// What requests are.
fn mix(job: &mut Job, stream: &Stream) {
    let random = !matches!(
        stream.access,
        Access::Sequential { .. }
            | Access::Backward { .. }
            | Access::Stride { .. }
            | Access::Staggered
            | Access::Same
    );
    let classes = &stream.mix.classes;
    let weight = |wanted: fn(Operation) -> bool| -> f64 {
        classes.iter().filter(|class| wanted(class.op)).map(|class| class.weight).sum()
    };
    let reads = weight(|op| matches!(op, Operation::Read));
    let writes = weight(|op| matches!(op, Operation::Write));
    let trims = weight(|op| matches!(op, Operation::Trim));
    let both =
        weight(|op| matches!(op, Operation::Update | Operation::Copy | Operation::CopyRange));
    let flushes =
        weight(|op| matches!(op, Operation::Fsync | Operation::Fdatasync | Operation::SyncRange));
    if both > 0.0 {
        job.otherwise("reads that are written back, or elsewhere: fio reads and writes apart");
    }
    if flushes > 0.0 {
        job.otherwise("flushes as requests of their own: fio flushes after writes only");
    }
    let (reads, writes) = (reads + both, writes + both);
    let way = match (reads > 0.0, writes > 0.0, trims > 0.0) {
        (true, true, _) => "rw",
        (_, true, _) => "write",
        (_, false, true) => "trim",
        _ => "read",
    };
    if trims > 0.0 && (reads > 0.0 || writes > 0.0) {
        job.otherwise("discards among reads and writes: left out");
    }
    let random_word = if random { "rand" } else { "" };
    job.set("rw", format!("{random_word}{way}{}", step(stream)));
    if reads > 0.0 && writes > 0.0 {
        job.set("rwmixread", percent(reads / (reads + writes)));
        match stream.mix.choice {
            Choice::Dice => {}
            Choice::Interleave | Choice::Shared | Choice::Ratio => {
                job.otherwise("reads and writes alternate in a fixed pattern: fio throws dice");
            }
        }
    }
    if classes.iter().any(|class| class.line.is_some()) {
        job.otherwise("each kind of request has its own randomness, alignment and pauses");
    }
    sizes(job, stream);
}

/// Bytes per request, apart for reads and writes where they differ.
fn sizes(job: &mut Job, stream: &Stream) {
    let of = |wanted: fn(Operation) -> bool| -> Vec<&Class> {
        let classes = stream.mix.classes.iter();
        classes.filter(|class| wanted(class.op) && class.block_size > Bytes::ZERO).collect()
    };
    let reads = of(|op| op != Operation::Write);
    let writes = of(|op| !matches!(op, Operation::Read | Operation::Trim));
    let split = |classes: &[&Class]| -> String {
        let total: f64 = classes.iter().map(|class| class.weight).sum();
        let parts: Vec<String> = classes
            .iter()
            .map(|class| {
                let share = if total > 0.0 { class.weight / total } else { 0.0 };
                format!("{}/{}", class.block_size.get(), percent(share))
            })
            .collect();
        parts.join(":")
    };
    let largest = stream.block_size_max();
    if stream.mix.block_size().is_some() || largest == Bytes::ZERO {
        // Flushes alone have no size.
        job.set("bs", if largest == Bytes::ZERO { 512 } else { largest.get() });
        return;
    }
    let (reads, writes) = (split(&reads), split(&writes));
    job.set(
        "bssplit",
        match (reads.is_empty(), writes.is_empty()) {
            (false, false) => format!("{reads},{writes}"),
            (true, _) => writes,
            (_, true) => reads,
        },
    );
    job.set("bs_unaligned", 0);
}

/// What follows `rw=read` where offsets go by steps.
fn step(stream: &Stream) -> String {
    let block = stream.block_size_max().get();
    match &stream.access {
        Access::Backward { .. } => format!(":-{}", block.saturating_mul(2)),
        Access::Stride { step } => format!(":{}", block.saturating_mul(step.saturating_sub(1))),
        Access::Staggered => {
            let count = stream.stop.operations.unwrap_or(1).max(1);
            format!(":{}", (stream.region.length.get() / count).saturating_sub(block))
        }
        _ => String::new(),
    }
}

/// Where requests go.
///
/// * `several`: they go to more than one file.
fn access(job: &mut Job, stream: &Stream, several: bool) {
    match &stream.access {
        Access::Sequential { shared } | Access::Backward { shared } => {
            let alone = stream.threads == 1;
            if !alone && *shared {
                job.otherwise("one cursor for all threads: fio's jobs each have their own");
            } else if !alone && several {
                job.otherwise("threads begin at equal parts of the files: here all at the start");
            } else if !alone {
                job.set("offset_increment", stream.region.length.get() / u64::from(stream.threads));
            }
        }
        Access::Stride { .. } => {
            job.otherwise("strides wrap until every block was met: fio starts over");
        }
        Access::Staggered | Access::Same => {}
        Access::Uniform => job.set("norandommap", 1),
        // Its map of blocks, which is so by default. Its lfsr knows no order of some few blocks.
        Access::UniformOnce => {}
        Access::Permutation => {
            job.set("randrepeat", 1);
            job.otherwise("one order for reads and writes: fio draws one for each");
        }
        Access::Zipf { theta } => {
            job.set("norandommap", 1);
            job.set("random_distribution", format!("zipf:{theta}"));
        }
        Access::Hot { zones } => {
            let zone = |zone: &crate::model::Zone| {
                format!("{}/{}", percent(zone.access_share), percent(zone.space_share))
            };
            let zones: Vec<String> = zones.iter().map(zone).collect();
            job.set("norandommap", 1);
            job.set("random_distribution", format!("zoned:{}", zones.join(":")));
        }
        Access::Mixed { random_share } => {
            job.set("norandommap", 1);
            job.set("percentage_random", percent(*random_share));
        }
        Access::Replay { .. } => job.otherwise("a list of requests: fio has read_iolog"),
    }
    let usual = stream.mix.block_size().is_some_and(|block| block == stream.align);
    if !usual && stream.align > Bytes::ZERO {
        job.set("blockalign", stream.align.get());
    }
}

/// Which part of the files.
fn place(job: &mut Job, (suite, file): (&Suite, &str), stream: &Stream, part: Part) {
    let start = match part {
        Part::OfEach { start } => start,
        Part::OfOne { file: number, start } => {
            job.set("filename", names(file, number, 1));
            start
        }
        Part::Files { first, count } => {
            job.set("filename", names(file, first, count));
            Bytes::ZERO
        }
        Part::TooMany | Part::Torn => return,
    };
    if start > Bytes::ZERO {
        job.set("offset", start.get());
    }
    job.set("size", extent(stream).get());
    if part.is_of_several(suite.files.count) {
        match stream.region.spread {
            Spread::Concatenated => {
                let random = !matches!(stream.access, Access::Sequential { .. });
                job.set("file_service_type", if random { "random" } else { "sequential" });
                job.otherwise(
                    "files are one space: fio chooses the file first, then the place in it",
                );
            }
            Spread::FilePerWorker => {
                job.otherwise("each thread has a file of its own: give each job its filename");
            }
            Spread::Striped { .. } => job.otherwise("files are striped as one space: fio cannot"),
        }
    }
    if stream.copy_to.is_some() {
        job.otherwise("copies from one place to another");
    }
}

/// Of a stream that reads and writes.
fn share_of_reads(stream: &Stream) -> Option<f64> {
    let of = |wanted: fn(Operation) -> bool| -> f64 {
        let classes = stream.mix.classes.iter().filter(|class| wanted(class.op));
        classes.map(|class| class.weight).sum()
    };
    let reads = of(|op| op == Operation::Read);
    let writes = of(|op| op == Operation::Write);
    (reads > 0.0 && writes > 0.0).then(|| reads / (reads + writes))
}

/// How many at once, when, through what.
fn load(job: &mut Job, stream: &Stream) {
    job.set("numjobs", stream.threads);
    job.set("iodepth", stream.queue_depth);
    let engine = match stream.backend {
        Backend::IoUring | Backend::IoUringSqpoll | Backend::IoUringIopoll => "io_uring",
        Backend::Libaio => "libaio",
        Backend::Blocking => "psync",
        Backend::Mmap => "mmap",
        Backend::Auto if stream.queue_depth > 1 => "io_uring",
        Backend::Auto => "psync",
    };
    if stream.backend == Backend::Blocking && stream.queue_depth > 1 {
        job.otherwise("blocking calls on as many threads as requests in flight: raise numjobs");
    }
    job.set("ioengine", engine);
    match stream.backend {
        Backend::IoUringSqpoll => job.set("sqthread_poll", 1),
        Backend::IoUringIopoll => job.set("hipri", 1),
        _ => {}
    }
    job.set("direct", u8::from(stream.direct));
    match stream.write_through {
        WriteThrough::No => {}
        WriteThrough::Data => job.set("sync", "dsync"),
        WriteThrough::DataAndMeta => job.set("sync", "sync"),
    }
    match stream.pacing {
        Pacing::Closed { think, burst } if think > Nanos::ZERO => {
            job.set("thinktime", think.get().div_ceil(1000));
            job.set("thinktime_blocks", burst);
        }
        Pacing::Closed { .. } => {}
        Pacing::Open { rate, arrivals } => {
            // fio takes whole requests per second and job.
            let each = rate / f64::from(stream.threads.max(1));
            let whole = |rate: f64| format!("{:.0}", rate.round().max(1.0));
            if share_of_reads(stream).is_some() {
                job.otherwise(
                    "one rate of reads and writes together: fio paces each by itself, so where one \
                     lags the shares change",
                );
            }
            // One number would be the most of reads, and of writes beside them.
            job.set(
                "rate_iops",
                match share_of_reads(stream) {
                    Some(reads) => {
                        format!("{},{}", whole(each * reads), whole(each * (1.0 - reads)))
                    }
                    None => whole(each),
                },
            );
            if arrivals == Arrivals::Poisson {
                job.set("rate_process", "poisson");
            }
            job.otherwise("latency counts from when a request was due: fio counts from its issue");
            job.otherwise(
                "a device that cannot keep up ends the visit: fio goes on at what it gets, and \
                 rate_iops_min would end the job without a result",
            );
        }
    }
    if stream.duty.is_some() {
        job.otherwise("works and rests by turns: fio has no clock for that");
    }
}

fn syncs(job: &mut Job, policy: &SyncPolicy, files: u32) {
    if let Some(every) = policy.every {
        match policy.op {
            Operation::Fdatasync => job.set("fdatasync", every),
            Operation::SyncRange => job.set("sync_file_range", format!("write:{every}")),
            _ => job.set("fsync", every),
        }
        if policy.shared {
            job.otherwise("flushes after so many requests of all threads: fio counts each job's");
        }
        if policy.each_file && files > 1 {
            job.otherwise("each file is flushed in turn: fio flushes the one just written");
        }
    }
    match policy.at_end {
        SyncAtEnd::No => {}
        SyncAtEnd::Timed => job.set("end_fsync", 1),
        SyncAtEnd::Untimed => {
            job.set("end_fsync", 1);
            job.otherwise("the flush at the end is not in the suite's time");
        }
    }
}

fn stops(job: &mut Job, stream: &Stream) {
    let stop = &stream.stop;
    let threads = u64::from(stream.threads.max(1));
    if stop.ramp > Nanos::ZERO {
        job.set("ramp_time", seconds(stop.ramp));
    }
    if let Some(time) = stop.time {
        job.set("runtime", seconds(time));
        job.set("time_based", 1);
    }
    if let Some(bytes) = stop.bytes {
        job.set("io_size", bytes.get() / threads);
    }
    if let Some(operations) = stop.operations {
        job.set("number_ios", operations / threads);
    }
    if threads > 1 && (stop.bytes.is_some() || stop.operations.is_some()) {
        job.otherwise("totals are of all threads together: fio's jobs have equal parts");
    }
    if stop.until == crate::model::Until::FirstWorker {
        job.set("exitall", 1);
    }
}

/// What becomes of the files before a visit.
///
/// * `removes`: nobody misses them once the job is done.
fn start(job: &mut Job, stream: &Stream, removes: bool) {
    if stream.start_file == StartFile::Keep {
        return;
    }
    job.set("overwrite", 0);
    if removes {
        job.set("unlink", 1);
    }
    job.otherwise(
        "files begin empty: fio extends them only where they are not there, and lays out first of \
         all what any job reads",
    );
}

/// Whole percent, as fio takes it.
fn percent(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

/// Seconds, or the next smaller unit that is whole.
fn seconds(time: Nanos) -> String {
    let ns = time.get();
    match (ns % 1_000_000_000, ns % 1_000_000) {
        (0, _) => format!("{}s", ns / 1_000_000_000),
        (_, 0) => format!("{}ms", ns / 1_000_000),
        _ => format!("{}us", ns.div_ceil(1000)),
    }
}
