//! fio's JSON and json+, alone or behind its normal output.
//!
//! Jobs of one group ran at the same time: they are the streams of one cell. Version 3 counts
//! latencies in ns and has `io_kbytes`; before it, latencies are in us and `io_bytes` is in KiB.
//! With `group_reporting` one entry stands for all clones of a job.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::draft::{Cell, Draft, Drafts, Figure, Latency, SETTINGS_MAX, Stream, axis, size_axis};
use crate::fio_json::{self, Count, Direction, Number, Options, Root, Times};
use crate::fio_terse;
use crate::text::{self, END, Fault, Found};

/// Reads of a job that writes and then verifies what it wrote.
const READ_BACK: &str = "read-back";
/// The same together with the reads of its mix: fio counts both as one.
const READ_AND_BACK: &str = "read+read-back";
/// Operations that are no part of what a job was to move.
const NO_DATA: [&str; 3] = ["fsync", READ_BACK, READ_AND_BACK];
/// Of rates of both where nobody tells whether reads are those of `verify`.
pub(crate) const BOTH: &str = "No options are told. Where a job with reads and writes had `verify`, \
    reads are also of what it read back, and the sum of both rates is none that it ever had.";
/// fio's own defaults, in force where the options are recorded and name no other.
const BLOCK: u64 = 4096;
const ENGINE: &str = "psync";
/// Engines that return when a request is done: fio caps their `iodepth` at one. Not those that are
/// flagged as such in its source and queue all the same, as `libiscsi`.
const SYNCHRONOUS: [&str; 32] = [
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "mmap",
    "splice",
    "falloc",
    "ftruncate",
    "e4defrag",
    "filecreate",
    "filestat",
    "filedelete",
    "dircreate",
    "dirstat",
    "dirdelete",
    "ime_sync",
    "ime_psync",
    "ime_psyncv",
    "dev-dax",
    "libpmem",
    "pmemblk",
    "gfapi",
    "http",
    "libhdfs",
    "libcufile",
    "libhipfile",
    "libzbc",
    "mtd",
    "net",
    "netsplice",
    "page_fault",
];
/// Where `iodepth` counts whatever the engine: threads of their own submit.
const OFFLOAD: &str = "offload";
/// The group of what was put together with another job: -1 in 32 bits.
const NO_GROUP: u64 = u32::MAX as u64;

/// * `alone`: terse lines beside it need not be of the same run.
pub(crate) fn read(raw: &str, alone: bool) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    // Jobs by name and group.
    let mut told: BTreeMap<(String, String), Vec<Done>> = BTreeMap::new();
    let mut rest = Some((1, raw));
    // The latest, and how many before it told of the same execution.
    let mut latest: Option<(Output, usize)> = None;
    while let Some((line, start)) = rest.and_then(|(line, text)| begin(line, text)) {
        let (mut output, end) = one(line, start)?;
        for (job, done) in output.done.drain(..) {
            told.entry(job).or_default().push(done);
        }
        latest = Some(match latest.take() {
            Some((before, snapshots)) if output.goes_on_from(&before) => (output, snapshots + 1),
            Some((before, snapshots)) => {
                drafts.push(before.last_of(snapshots));
                (output, 0)
            }
            None => (output, 0),
        });
        // Outputs of several runs may stand one behind the other.
        let lines = start.get(..end).unwrap_or_default().matches('\n').count();
        rest = start.get(end..).filter(|t| t.contains("\"jobs\"")).map(|t| (line + lines, t));
    }
    if let Some((last, snapshots)) = latest {
        drafts.push(last.last_of(snapshots));
    }
    let is_known = |name: &str, group: &str, figures: &[Figure]| {
        let jobs = told.get(&(name.to_owned(), group.to_owned()));
        jobs.into_iter().flatten().any(|done| done.is_told_by(figures))
    };
    if !alone && let Some(line) = fio_terse::first_other(raw, is_known)? {
        return Err(Fault::OtherRun { line });
    }
    let lines = raw.lines().count();
    drafts.all().ok_or_else(|| Fault::ended(Some(lines), "a JSON object, `{`"))
}

/// One JSON object, and what tells whether the next one is of the same execution.
struct Output {
    draft: Draft,
    /// When it was printed, ns since 1970; with how much is missing behind the last digit.
    printed: Option<(i64, i64)>,
    /// Run time of all groups, one after the other, in ns.
    ran: i64,
    /// Requests of each job.
    requests: Vec<u64>,
    /// Each job's name and group, and what it did.
    done: Vec<((String, String), Done)>,
}

/// What a job did: the operation, KiB, and the mean latency in ns.
struct Done(Vec<(String, Option<u64>, Option<f64>)>);

impl Done {
    fn of(figures: &[Figure]) -> Self {
        let one = |figure: &Figure| {
            (figure.op.clone(), figure.bytes.map(|bytes| bytes >> 10), figure.latency.mean)
        };
        Self(figures.iter().map(one).collect())
    }

    /// Whether these are figures of the same run, in another form: what is rounded there is as near
    /// as that. Some forms have no trims, and none but JSON has syncs.
    fn is_told_by(&self, figures: &[Figure]) -> bool {
        let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
            // A latency that was not timed is told as 0.
            (Some(a), Some(b)) => a == 0.0 || b == 0.0 || (a - b).abs() <= NEAR_NS,
            _ => true,
        };
        let Self(others) = Self::of(figures);
        others.iter().all(|(op, kib, mean)| {
            let mut known = self.0.iter().filter(|known| known.0 == *op || known.0 == "mixed");
            known.any(|known| known.1 == *kib && near(known.2, *mean))
        }) && (!others.is_empty()
            || self.0.iter().all(|(op, ..)| ["trim", "fsync"].contains(&op.as_str())))
    }
}

/// Means are told to a hundredth of a microsecond or better.
const NEAR_NS: f64 = 10.0;

impl Output {
    /// Whether this is a later snapshot of what `before` is one of, as `--status-interval` makes them:
    /// the same jobs, which had begun before that one was printed, and have done no less.
    fn goes_on_from(&self, before: &Self) -> bool {
        let (Some((now, _)), Some((then, unsure))) = (self.printed, before.printed) else {
            return false;
        };
        let jobs = |output: &Self| -> Vec<_> {
            let cells = output.draft.cells.iter();
            cells
                .map(|c| (c.phase.clone(), c.coordinates.clone(), c.streams.len()))
                .collect::<Vec<_>>()
        };
        let done = self.requests.iter().zip(&before.requests);
        now > then
            && now.saturating_sub(self.ran).saturating_add(unsure) < then
            && self.draft.settings == before.draft.settings
            && jobs(self) == jobs(before)
            && self.requests.len() == before.requests.len()
            && done.into_iter().all(|(now, then)| now >= then)
    }

    /// The run; `snapshots` came before it.
    fn last_of(self, snapshots: usize) -> Draft {
        let mut draft = self.draft;
        if snapshots > 0 {
            let (n, were) = match snapshots {
                1 => ("One output".to_owned(), "was"),
                n => (format!("{n} outputs"), "were"),
            };
            let text = format!(
                "{n} before the last of an execution of fio {were} left out: they count from its \
                 beginning, as `--status-interval` prints them, and the last one has all."
            );
            draft.warnings.push(("snapshots".to_owned(), text));
        }
        draft
    }
}

/// Where the next object begins: number of the line, and the text from there on.
fn begin(first: usize, text: &str) -> Option<(usize, &str)> {
    let mut found = None;
    let mut at = 0;
    for (number, line) in (first..).zip(text.split_inclusive('\n')) {
        if line.trim_end() == "{" {
            found = Some((number, at));
            break;
        }
        if found.is_none() && line.trim_start().starts_with('{') {
            found = Some((number, at));
        }
        at += line.len();
    }
    found.and_then(|(number, at)| Some((number, text.get(at..)?)))
}

/// A run, and how many bytes of the text it took.
fn one(first: usize, body: &str) -> Found<(Output, usize)> {
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<Root<Job>>();
    let unfit = |line: usize, seen: String, wanted: &str| {
        Err(Fault::Unfit { line: Some(line), seen, wanted: wanted.to_owned() })
    };
    let root = match values.next() {
        Some(Ok(root)) => root,
        Some(Err(error)) => {
            let line = first + error.line().saturating_sub(1);
            return match error.is_eof() {
                true => unfit(line, END.into(), "the rest of the JSON"),
                false => unfit(line, told(body, &error), "JSON as fio writes it"),
            };
        }
        None => return Err(Fault::ended(Some(first), "JSON")),
    };
    let missing = |what: &str| unfit(first, "JSON without it".into(), what);
    let line_of = |job: usize| first + line_of_job(body, job);
    if root.jobs.odd {
        return missing("jobs that are objects");
    }
    if root.jobs.all.is_empty() {
        return missing("a list `jobs`");
    }
    let Root { version, timestamp, timestamp_ms, options, jobs } = root;
    let global = Rc::new(options.0.unwrap_or_default().0);
    let mut found = jobs.all;
    for (k, job) in found.iter_mut().enumerate() {
        if let Some(what) = &job.missing {
            let seen = match job.is_nobody {
                true => {
                    "a job without name and figures, as where `group_reporting` is set in the last \
                         job alone: those before it are printed as one with its options"
                        .to_owned()
                }
                false => "JSON without it".to_owned(),
            };
            return unfit(line_of(k), seen, &format!("{what} of job {}", k + 1));
        }
        job.global = Rc::clone(&global);
    }
    let head = Head { version: version.0, seconds: timestamp, millis: timestamp_ms };
    Ok((output(head, found), values.byte_offset()))
}

/// How many lines of an object stand before the `index`-th of its `jobs`: the first list of objects
/// in it.
fn line_of_job(body: &str, index: usize) -> usize {
    let (mut lines, mut depth, mut jobs, mut quoted, mut escaped) = (0, 0u32, 0, false, false);
    for byte in body.bytes() {
        match byte {
            b'\n' => lines += 1,
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' if depth == 2 && jobs == index => return lines,
            b'{' if depth == 2 => (jobs, depth) = (jobs + 1, depth + 1),
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    0
}

/// What stands before the place of an error, which is behind a field's name and value, and what is
/// wrong with it.
fn told(body: &str, error: &serde_json::Error) -> String {
    // Lines here are counted from the object's own.
    let said = error.to_string();
    let why = said.rsplit_once(" at line ").map_or(said.as_str(), |(why, _)| why);
    let line = body.lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    // Columns count bytes.
    let end = (0..=error.column().min(line.len())).rev().find(|&at| line.is_char_boundary(at));
    let before = line.get(..end.unwrap_or(0)).unwrap_or_default();
    let start = before.char_indices().rev().nth(text::SEEN - 1).map_or(0, |(at, _)| at);
    format!("{}: {why}", text::quote(before.get(start..).unwrap_or_default()))
}

/// What is told of all jobs.
struct Head {
    version: Option<String>,
    seconds: Count,
    millis: Count,
}

/// One entry of `jobs`.
#[derive(Default)]
struct Job {
    group: u64,
    name: String,
    /// The job's own options, where they were recorded.
    options: Option<BTreeMap<String, String>>,
    /// Those of all jobs, in force where its own do not say otherwise.
    global: Rc<BTreeMap<String, String>>,
    /// Until they are given to a cell.
    figures: RefCell<Vec<Figure>>,
    elapsed_ns: Option<u64>,
    error: u64,
    percentiles_of_completion: bool,
    /// What it should have and has not.
    missing: Option<String>,
    /// It has neither a name nor a group that fio numbers.
    is_nobody: bool,
}

impl From<fio_json::Job> for Job {
    fn from(job: fio_json::Job) -> Self {
        let mut found = Self {
            group: job.groupid.0.unwrap_or(0),
            options: job.options.0.map(|Options(own)| own),
            error: job.error.0.unwrap_or(0),
            ..Self::default()
        };
        match job.jobname.0 {
            Some(name) => found.name = name,
            None => {
                found.missing = Some("`jobname`".to_owned());
                found.is_nobody = found.group == NO_GROUP;
            }
        }
        let directions =
            [("read", job.read), ("write", job.write), ("trim", job.trim), ("mixed", job.mixed)];
        let mut known = false;
        for (op, direction) in directions {
            let Some(direction) = direction.0 else { continue };
            known = true;
            if let Err(what) = found.direction(op, direction) {
                found.missing = found.missing.or(Some(what));
                return found;
            }
        }
        if !known && found.missing.is_none() {
            found.missing = Some("`read`, `write` or `trim`".to_owned());
        }
        if let Err(what) = found.syncs(job.sync.0) {
            found.missing = found.missing.or(Some(what));
        }
        if let (Some(user), Some(system), [only]) =
            (job.usr_cpu.0, job.sys_cpu.0, found.figures.get_mut().as_mut_slice())
        {
            only.cpu_percent = Some(user + system);
        }
        found
    }
}

impl Job {
    /// What is missing, where something is.
    fn direction(&mut self, op: &str, told: Direction) -> Result<(), String> {
        let need =
            |name: &str, number: Number| number.0.ok_or_else(|| format!("`{op}.{name}`, a number"));
        let (iops, runtime) = (need("iops", told.iops)?, need("runtime", told.runtime)?);
        let kibibytes = need("bw", told.bw)?;
        let requests = told.total_ios.0;
        let moved = told.io_bytes.0;
        let exact = told.io_kbytes.0.is_some();
        let bytes = match moved {
            Some(kibibytes) if !exact => Some(
                kibibytes
                    .checked_mul(1024)
                    .ok_or_else(|| format!("`{op}.io_bytes`, in KiB, of less than 16 EiB"))?,
            ),
            bytes => bytes,
        };
        if requests.unwrap_or(0) == 0 && bytes.unwrap_or(0) == 0 && iops == 0.0 {
            return Ok(());
        }
        let rate = told.bw_bytes.0.unwrap_or(kibibytes * 1024.0);
        // Of what took less than a millisecond, or was never done, the rate is told as 0.
        let timed = runtime > 0.0 || iops > 0.0;
        let (latency, of_completion) = latency(op, told)?;
        self.percentiles_of_completion |= of_completion;
        self.elapsed_ns = self.elapsed_ns.max(text::ns(runtime * 1e6));
        self.figures.get_mut().push(Figure {
            requests,
            bytes,
            iops: Some(iops).filter(|_| timed),
            bytes_per_s: Some(rate).filter(|_| timed),
            latency,
            ..Figure::of(op)
        });
        Ok(())
    }

    /// Syncs are counted with their latency; fio prints no rate for them.
    fn syncs(&mut self, sync: Option<Direction>) -> Result<(), String> {
        let Some(sync) = sync else { return Ok(()) };
        let requests = sync.total_ios.0.filter(|&n| n > 0);
        if requests.is_some() {
            let latency = latency("sync", sync)?.0;
            self.figures.get_mut().push(Figure { requests, latency, ..Figure::of("fsync") });
        }
        Ok(())
    }

    /// Every option in force, where they were recorded.
    fn all(&self) -> impl Iterator<Item = (&String, &String)> {
        let own = self.options.as_ref();
        let known = own.into_iter().flatten();
        let is_own = move |name: &String| own.is_some_and(|own| own.contains_key(name));
        let global = self.global.iter().filter(move |(name, _)| own.is_some() && !is_own(name));
        let mut all: Vec<_> = known.chain(global).collect();
        all.sort_unstable();
        all.into_iter()
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.options.as_ref()?.get(name).or_else(|| self.global.get(name)).map(String::as_str)
    }

    /// As named, or fio's default where the options are recorded.
    fn option_or<T>(&self, names: &[&str], default: T, read: fn(&str) -> Option<T>) -> Option<T> {
        self.options.as_ref()?;
        match names.iter().find_map(|name| self.option(name)) {
            Some(value) => read(value),
            None => Some(default),
        }
    }

    fn block(&self) -> Option<u64> {
        if ["bssplit", "bsrange", "blocksize_range"].iter().any(|o| self.option(o).is_some()) {
            return None;
        }
        self.option_or(&["bs", "blocksize"], BLOCK, |value| {
            let parts: Vec<_> =
                value.split(',').filter(|p| !p.is_empty()).map(text::bytes).collect();
            let first = *parts.first()?;
            parts.iter().all(|part| *part == first).then_some(first)?
        })
    }

    fn clones(&self) -> Option<u32> {
        self.option_or(&["numjobs"], 1, |value| value.parse().ok())
    }

    /// What `iodepth` asks for.
    fn asked_depth(&self) -> Option<u32> {
        self.option_or(&["iodepth"], 1, |value| value.parse().ok())
    }

    fn engine(&self) -> Option<String> {
        self.option_or(&["ioengine"], ENGINE.to_owned(), |value| Some(value.to_owned()))
    }

    fn is_synchronous(&self) -> bool {
        let is_on = |name: &str| self.option(name).is_some_and(|value| value != "0");
        let waits = |engine: String| match engine.as_str() {
            // Of a character device; of a block device it always does.
            "sg" => is_on("direct") || is_on("sync"),
            engine => SYNCHRONOUS.contains(&engine),
        };
        self.option("io_submit_mode") != Some(OFFLOAD) && self.engine().is_some_and(waits)
    }

    /// Requests that a worker has in flight: of a synchronous engine fio caps them at one, whatever
    /// `iodepth` asks for.
    fn depth(&self) -> Option<u32> {
        if self.is_synchronous() { self.asked_depth().map(|_| 1) } else { self.asked_depth() }
    }

    /// That more was asked for than the engine does.
    fn capped(&self) -> Option<String> {
        let asked = self.asked_depth().filter(|&asked| asked > 1 && self.is_synchronous())?;
        Some(format!(
            "job {}: engine `{}` is synchronous, so fio had 1 request in flight per job, not \
             iodepth={asked}; for more use an asynchronous engine (libaio, io_uring)",
            self.name,
            self.engine()?
        ))
    }

    /// Sets reads of `verify` apart: they are in no rate of what the job was to do.
    ///
    /// Of a job that only writes all its reads are such, and come after the writes. In a mix they are
    /// counted among its own reads, of which then neither number nor time is known. With `verify_only` no
    /// writes are made, and what fio tells of them is nothing.
    ///
    /// * Returns what is to be said about it.
    fn set_read_back_apart(&self) -> Option<String> {
        let verifies = self.option("verify").is_some_and(|how| how != "0")
            && self.option("do_verify").is_none_or(|how| how != "0");
        let rw = self.option("rw").or(self.option("readwrite")).unwrap_or("read");
        let kind = rw.split(':').next().unwrap_or(rw);
        if !verifies || ["read", "randread"].contains(&kind) {
            return None;
        }
        let mut figures = self.figures.borrow_mut();
        let before = figures.len();
        figures.retain(|f| f.op != "write" || f.iops.is_some() || f.requests.unwrap_or(0) == 0);
        let none_written = figures.len() < before;
        let is_mix = ["rw", "readwrite", "randrw"].contains(&kind);
        let read = figures.iter().position(|figure| figure.op == "read");
        if let Some(reads) = read.and_then(|at| figures.get_mut(at)) {
            match (is_mix, none_written) {
                // It is what the job did.
                (false, true) => {}
                (false, false) => reads.op = READ_BACK.to_owned(),
                (true, _) => {
                    reads.op = READ_AND_BACK.to_owned();
                    figures.insert(0, Figure::of("read"));
                }
            }
        }
        let name = &self.name;
        match (none_written, is_mix && read.is_some()) {
            (true, _) => Some(format!(
                "Writes of job {name} took no time by fio's own figures, as with `verify_only`, which \
                 makes none: they are left out."
            )),
            (false, true) => Some(format!(
                "Reads of job {name} are those of its mix and those of `verify`, which fio counts as \
                 one: how fast the mix read is not known."
            )),
            (false, false) => None,
        }
    }

    fn op(&self) -> String {
        let figures = self.figures.borrow();
        let data: Vec<_> = figures.iter().filter(|f| !NO_DATA.contains(&f.op.as_str())).collect();
        match (data.as_slice(), self.option("rw").or(self.option("readwrite"))) {
            ([only], _) => only.op.clone(),
            ([], Some(rw)) if rw.contains("read") => "read".to_owned(),
            ([], Some(rw)) if rw.contains("write") => "write".to_owned(),
            _ => "mixed".to_owned(),
        }
    }
}

/// Latency in ns, and whether its percentiles are of completion while the rest is of the whole; what
/// is missing, where something is.
fn latency(op: &str, told: Direction) -> Result<(Latency, bool), String> {
    let part = |nano: Option<Times>, micro: Option<Times>| {
        nano.map(|times| (times, 1.0)).or(micro.map(|times| (times, 1e3)))
    };
    let timed = |part: &(Times, f64)| part.0.any();
    let whole_of = part(told.lat_ns.0, told.lat.0).filter(timed);
    let completion = part(told.clat_ns.0, told.clat.0).filter(timed);
    let mut latency = Latency::default();
    let Some((main, scale)) = whole_of.as_ref().or(completion.as_ref()) else {
        return Ok((latency, false));
    };
    let ns = |value: f64| {
        text::ns(value).ok_or_else(|| format!("latencies of `{op}` of less than 292 years"))
    };
    let value = |number: Number| number.0.map(|v| v * scale);
    latency.min = value(main.min).map(ns).transpose()?;
    latency.max = value(main.max).map(ns).transpose()?;
    latency.mean = value(main.mean);
    latency.sd = value(main.stddev);
    let listed = |part: &'_ Option<(Times, f64)>, of: fn(&Times) -> &[(f64, f64)]| {
        let (times, scale) = part.as_ref()?;
        let pairs = of(times);
        let scaled = |(at, value): &(f64, f64)| (*at, *value, *scale);
        (!pairs.is_empty()).then(|| pairs.iter().map(scaled).collect::<Vec<_>>())
    };
    let own = listed(&whole_of, |times| &times.percentile.all);
    let of_completion = own.is_none() && whole_of.is_some();
    let percentiles = own.or_else(|| listed(&completion, |times| &times.percentile.all));
    let told = percentiles.is_some();
    // Places of the list that fio was not asked to fill are 0.
    for (share, value, scale) in percentiles.unwrap_or_default().into_iter().filter(|p| p.0 > 0.0) {
        latency.quantiles.push((share / 100.0, ns(value * scale)?));
    }
    let bins = listed(&whole_of, |times| &times.bins.all);
    let bins = bins.or_else(|| listed(&completion, |times| &times.bins.all));
    for (at, count, scale) in bins.unwrap_or_default() {
        latency.buckets.push((ns(at * scale)?, count as u64));
    }
    latency.quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    latency.buckets.sort_unstable();
    Ok((latency, of_completion && told))
}

fn output(head: Head, jobs: Vec<Job>) -> Output {
    let nanos = |Count(n): Count, scale: i64| {
        n.and_then(|n| Some((i64::try_from(n).ok()?.checked_mul(scale)?, scale)))
    };
    let done = jobs
        .iter()
        .map(|job| ((job.name.clone(), job.group.to_string()), Done::of(&job.figures.borrow())));
    let done = done.collect();
    let said: Vec<String> = jobs.iter().filter_map(Job::set_read_back_apart).collect();
    let printed = nanos(head.millis, 1_000_000).or_else(|| nanos(head.seconds, 1_000_000_000));
    let requests = jobs.iter().map(|job| {
        let figures = job.figures.borrow();
        figures.iter().fold(0u64, |sum, f| sum.saturating_add(f.requests.unwrap_or(0)))
    });
    let requests = requests.collect();
    let mut draft = Draft {
        version: head.version.map(|v| v.trim_start_matches("fio-").to_owned()),
        ..Draft::of("fio")
    };
    draft.target = common(&jobs, "filename").or_else(|| common(&jobs, "directory"));
    draft.size = common(&jobs, "size").and_then(|size| text::bytes(&size));
    let mut told = BTreeSet::new();
    for (job, (name, value)) in jobs.iter().flat_map(|job| job.all().map(move |o| (job, o))) {
        if told.len() > SETTINGS_MAX {
            break;
        }
        let name = if jobs.len() > 1 { format!("{}.{name}", job.name) } else { name.clone() };
        if told.insert((name.clone(), value.clone())) {
            draft.set(name, value);
        }
    }
    if jobs.iter().any(|job| job.percentiles_of_completion) {
        draft.remark(
            "Percentiles are of completion latency, mean and extremes of the whole: fio was not \
             asked for other percentiles.",
        );
    }
    said.into_iter().for_each(|text| draft.remark(text));
    let both = |job: &Job| reads_and_writes(&job.figures.borrow());
    if jobs.iter().any(|job| job.options.is_none() && both(job)) {
        draft.remark(BOTH);
    }
    cells(&jobs).into_iter().for_each(|cell| draft.push(cell));
    // fio tells when it printed. Between groups it may have laid out files.
    if let ([only], Some((printed, _))) = (draft.cells.as_slice(), printed) {
        let ran = only.elapsed_ns.filter(|&ns| ns > 0).and_then(|ns| i64::try_from(ns).ok());
        draft.started_unix_ns = ran.and_then(|ran| printed.checked_sub(ran));
    }
    let ran = draft.cells.iter().filter_map(|cell| i64::try_from(cell.elapsed_ns?).ok());
    let ran = ran.fold(0i64, i64::saturating_add);
    Output { draft, printed, ran, requests, done }
}

/// Whether some of the reads of a job may be those of `verify`.
pub(crate) fn reads_and_writes(figures: &[Figure]) -> bool {
    ["read", "write"].iter().all(|op| figures.iter().any(|figure| figure.op == *op))
}

/// The value of an option that all jobs share.
fn common(jobs: &[Job], name: &str) -> Option<String> {
    let first = jobs.first()?.option(name)?;
    jobs.iter().all(|job| job.option(name) == Some(first)).then(|| first.to_owned())
}

fn cells(jobs: &[Job]) -> Vec<Cell> {
    // fio numbers its groups in their order.
    let mut groups: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        groups.entry(job.group).or_default().push(job);
    }
    let varies = |of: fn(&Job) -> Option<String>| {
        jobs.first().is_some_and(|first| jobs.iter().any(|job| of(job) != of(first)))
    };
    let by_block = varies(|job| job.block().map(|b| b.to_string()));
    let by_depth = varies(|job| job.depth().map(|d| d.to_string()));
    // Asked for and not done: an axis of its own, so that no such cell is taken for one with so many
    // in flight.
    let is_capped = jobs.iter().any(|job| job.capped().is_some());
    let by_asked = is_capped && varies(|job| job.asked_depth().map(|d| d.to_string()));
    let by_clones = varies(|job| job.clones().map(|n| n.to_string()));
    let of_group = |group: &Vec<&Job>| {
        let mut cell = Cell::default();
        let mut names: Vec<&str> = Vec::new();
        let mut entries: BTreeMap<&str, u32> = BTreeMap::new();
        for job in group {
            let entries = entries.entry(&job.name).or_default();
            *entries += 1;
            if *entries == 1 {
                names.push(&job.name);
            }
        }
        for job in group {
            // Clones listed one by one are workers of their own.
            let is_one_by_one = entries.get(job.name.as_str()).is_some_and(|n| *n > 1);
            let threads = if is_one_by_one { Some(1) } else { job.clones() };
            cell.elapsed_ns = cell.elapsed_ns.max(job.elapsed_ns);
            if job.error != 0 {
                cell.failed = true;
                let text = format!("job {} ended with error {}", job.name, job.error);
                cell.warnings.push(("fio-error".to_owned(), text));
            }
            if let Some(text) = job.capped() {
                cell.warnings.push(("depth-capped".to_owned(), text));
            }
            cell.streams.push(Stream {
                name: job.name.clone(),
                op: job.op(),
                block: job.block(),
                threads,
                queue_depth: job.depth(),
                engine: job.engine(),
                direct: job.option("direct").is_some_and(|v| v == "1"),
                ops: job.figures.take(),
            });
        }
        cell.phase = names.join("+");
        if let [only] = group.as_slice() {
            if let Some(block) = only.block().filter(|_| by_block) {
                cell.coordinates.push(size_axis("block_size", block));
            }
            if let Some(depth) = only.depth().filter(|_| by_depth) {
                cell.coordinates.push(axis("queue_depth", depth));
            }
            let asked = only.asked_depth().filter(|_| by_asked && only.is_synchronous());
            if let Some(asked) = asked {
                cell.coordinates.push(axis("iodepth", asked));
            }
            if let Some(clones) = only.clones().filter(|_| by_clones) {
                cell.coordinates.push(axis("threads", clones));
            }
        }
        cell
    };
    groups.values().map(of_group).collect()
}
