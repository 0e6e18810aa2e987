//! From what a parser found to a record.

use std::collections::BTreeMap;

use record::{
    BackendRecord, Bitmap, CellRecord, Imported, Machine, OpRecord, Purpose, Reported,
    ReportedLatency, Run, RunHeader, RunState, Series, StreamPlan, StreamRecord, TargetKind,
    TargetRecord, VERSION, VisitEnd, VisitRecord, Warning,
};
use stats::LatencyHistogram;
use xxhash_rust::xxh3::xxh3_64;

use crate::draft::{CELLS_MAX, Cell, Draft, Figure, RESULT, SETTINGS_MAX, Stream};
use crate::error::{ImportError, Problem};
use crate::text;
use crate::tool::Tool;

/// What is to stand in a run about its import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The file, as the user named it; errors begin with it.
    pub file: String,
    /// What was measured, if the user says it.
    pub target: Option<String>,
    /// The words of the command, the program first.
    pub command_line: Vec<String>,
    /// Version of the program that imports.
    pub program: String,
}

/// Whether there is room for what was read.
pub(crate) fn limits(drafts: &[Draft]) -> Result<(), Problem> {
    let cells = || drafts.iter().flat_map(|draft| &draft.cells);
    let figures = cells().flat_map(|cell| &cell.streams).map(|s| s.ops.len()).sum::<usize>();
    // An operation of several has a figure of its own beside those of its parts.
    let most = [(cells().count(), CELLS_MAX, "cells"), (figures, 4 * CELLS_MAX, "figures")];
    let settings = drafts.iter().map(|draft| draft.settings.len()).max().unwrap_or(0);
    let found = most.into_iter().chain([(settings, SETTINGS_MAX, "settings")]);
    match found.into_iter().find(|(count, most, _)| count > most) {
        Some((_, most, what)) => Err(Problem::TooMuch(format!("more than {most} {what}"))),
        None => Ok(()),
    }
}

/// A cell's place: what repeats of it share.
type Place = (String, Vec<(String, String)>, Vec<StreamPlan>);

pub(crate) fn from(
    draft: Draft,
    tool: Tool,
    bytes: &[u8],
    origin: &Origin,
) -> Result<Run, Problem> {
    let mut places: Vec<Place> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let mut repeats: Vec<u32> = Vec::new();
    let mut run =
        Run { header: header(&draft, tool, bytes, origin), cells: Vec::new(), visits: Vec::new() };
    // Of several cells nobody tells which began when.
    let started = draft.started_unix_ns.filter(|_| draft.cells.len() == 1).unwrap_or(0);
    for cell in draft.cells {
        let streams = cell.streams.iter().map(plan).collect();
        let place = (cell.phase.clone(), cell.coordinates.clone(), streams);
        let index = *known.entry(format!("{place:?}")).or_insert_with(|| {
            places.push(place);
            repeats.push(0);
            places.len() - 1
        });
        if cell.blank {
            continue;
        }
        let counts = (number(index)?, repeats[index], number(run.visits.len())?);
        repeats[index] += 1;
        run.visits.push(visit(cell, started, counts));
    }
    for (index, (phase, coordinates, streams)) in places.into_iter().enumerate() {
        let index = number(index)?;
        run.cells.push(CellRecord { index, phase, coordinates, streams, impossible: None });
    }
    run.header.visits_planned = number(run.visits.len())?;
    if run.visits.is_empty() {
        return Err(Problem::NoRun("there is no figure in it".to_owned()));
    }
    Ok(run)
}

fn number(n: usize) -> Result<u32, Problem> {
    u32::try_from(n).map_err(|_| Problem::NoRun(format!("{n} are too many")))
}

fn header(draft: &Draft, tool: Tool, bytes: &[u8], origin: &Origin) -> RunHeader {
    let target = origin.target.clone().or_else(|| draft.target.clone());
    let kind = match &target {
        Some(name) if name.starts_with("/dev/") => TargetKind::BlockDevice,
        _ => TargetKind::Unknown,
    };
    let given = target.unwrap_or_default();
    let warnings = draft.warnings.iter().map(|(code, text)| Warning::new(code, text)).collect();
    RunHeader {
        id: String::new(),
        version: VERSION,
        suite: draft.suite.clone(),
        suite_text: String::new(),
        target: TargetRecord {
            resolved: given.clone(),
            given,
            kind,
            size_bytes: draft.size.unwrap_or(0),
            files: draft.files.unwrap_or(0),
            file_system: draft.file_system.clone(),
            mount: None,
            devices: Vec::new(),
            direct_alignment: None,
            link: None,
            cache_bytes: None,
            model: None,
            remarks: Vec::new(),
        },
        seed: 0,
        command_line: origin.command_line.clone(),
        program: origin.program.clone(),
        stack: None,
        machine: Machine {
            host: draft.host.clone().unwrap_or_default(),
            kernel: String::new(),
            architecture: String::new(),
            processor: String::new(),
            processors: 0,
            memory_bytes: 0,
        },
        started_unix_ns: draft.started_unix_ns.unwrap_or(0),
        state: RunState::Complete,
        visits_planned: 0,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: Some(Imported {
            tool: tool.name().to_owned(),
            version: draft.version.clone(),
            file: origin.file.clone(),
            bytes: bytes.len() as u64,
            xxh3: format!("{:016x}", xxh3_64(bytes)),
            settings: draft.settings.clone(),
            remarks: draft.remarks.clone(),
        }),
        warnings,
    }
}

fn plan(stream: &Stream) -> StreamPlan {
    StreamPlan {
        name: stream.name.clone(),
        op: stream.op.clone(),
        block_bytes: stream.block,
        threads: stream.threads.unwrap_or(0),
        queue_depth: stream.queue_depth.unwrap_or(0),
    }
}

/// `counts`: index of the cell, visits of it before, visits of the run before.
fn visit(cell: Cell, started: i64, (index, repeat, order): (u32, u32, u32)) -> VisitRecord {
    VisitRecord {
        cell: index,
        repeat,
        order,
        started_unix_ns: started,
        elapsed_ns: cell.elapsed_ns.unwrap_or(0),
        load_ns: None,
        end: if cell.failed { VisitEnd::Failed } else { VisitEnd::Complete },
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: cell.streams.into_iter().map(stream).collect(),
        completions: Bitmap::default(),
        counters: Vec::new(),
        ledger: Vec::new(),
        host_stalls: Vec::new(),
        warnings: cell.warnings.iter().map(|(code, text)| Warning::new(code, text)).collect(),
    }
}

fn stream(stream: Stream) -> StreamRecord {
    StreamRecord {
        name: stream.name,
        backend: BackendRecord {
            name: stream.engine.unwrap_or_default(),
            direct: stream.direct,
            ..BackendRecord::default()
        },
        ops: stream.ops.into_iter().map(op).collect(),
        workers: Vec::new(),
        ramp_requests: 0,
        backlog: 0,
    }
}

fn op(figure: Figure) -> OpRecord {
    let latency = figure.latency;
    OpRecord {
        op: figure.op,
        requests: figure.requests.unwrap_or(0),
        bytes: figure.bytes.unwrap_or(0),
        // The tools count errors and do not number them.
        errors: if figure.errors > 0 { vec![(0, figure.errors)] } else { Vec::new() },
        short: 0,
        latency: LatencyHistogram::new(),
        latency_ns_min: 0,
        latency_ns_max: 0,
        latency_ns_sum: 0,
        series: Series::default(),
        slow: Vec::new(),
        slow_dropped: 0,
        late_requests: 0,
        late_bytes: 0,
        reported: Some(Reported {
            requests: figure.requests,
            bytes: figure.bytes,
            iops: figure.iops,
            bytes_per_s: figure.bytes_per_s,
            cpu_percent: figure.cpu_percent,
            latency: ReportedLatency {
                min: latency.min,
                mean: latency.mean,
                max: latency.max,
                sd: latency.sd,
                quantiles: latency.quantiles,
                buckets: latency.buckets,
            },
        }),
    }
}

/// One run of several outputs of the same test: what each measured are repeats of the cells.
///
/// Refused where tool, its version, suite, target or host are known to differ, or where cells of
/// one are not in the other: then they are no repeats.
pub fn together(runs: Vec<Run>) -> Result<Run, ImportError> {
    let mut runs = runs.into_iter();
    let Some(mut whole) = runs.next() else {
        return Err(ImportError::new("-", None, Problem::Empty));
    };
    // As it was before it took anything of the others: of thousands each is held against it.
    let first = &whole.header.clone();
    let mut visits = vec![0_u32; whole.cells.len()];
    for visit in &whole.visits {
        visits.get_mut(visit.cell as usize).into_iter().for_each(|count| *count += 1);
    }
    for (k, mut run) in runs.enumerate() {
        let job = take_name(&whole, &mut run);
        let other = &run.header;
        let file = |h: &RunHeader| h.imported.as_ref().map_or_else(String::new, |i| i.file.clone());
        let fail =
            |what: String| Err(ImportError::new(&file(other), None, Problem::NoRepeat(what)));
        if tool_of(first) != tool_of(other) || first.suite != other.suite {
            return fail(format!(
                "no repeat of {}: {} against {}",
                file(first),
                other.suite,
                first.suite
            ));
        }
        if let Some((what, mine, theirs)) = elsewhere(first, other).or_else(|| asked(first, other))
        {
            return fail(format!(
                "no repeat of {}: {what} `{theirs}` against `{mine}`; an interval over both would be \
                 of neither",
                file(first)
            ));
        }
        if whole.cells != run.cells {
            return fail(format!("no repeat of {}: its cells or settings differ", file(first)));
        }
        if let (Some(mine), Some(theirs)) = (&mut whole.header.imported, &run.header.imported) {
            mine.settings.push((format!("repeat {}", k + 2), theirs.file.clone()));
            mine.settings.extend(job.map(|name| (format!("repeat {}: job", k + 2), name)));
            let results = theirs.settings.iter().filter(|(name, _)| name.starts_with(RESULT));
            let of_this = |(name, value): &(String, String)| {
                (format!("repeat {}: {name}", k + 2), value.clone())
            };
            mine.settings.extend(results.map(of_this));
        }
        whole.header.warnings.extend(run.header.warnings.iter().cloned());
        for mut visit in run.visits {
            if let Some(before) = visits.get_mut(visit.cell as usize) {
                visit.repeat = *before;
                *before += 1;
            }
            visit.order = u32::try_from(whole.visits.len()).unwrap_or(u32::MAX);
            whole.visits.push(visit);
        }
    }
    whole.header.visits_planned = u32::try_from(whole.visits.len()).unwrap_or(u32::MAX);
    Ok(whole)
}

/// How many of the runs of one output are of the same test as another of them: by all that it tells,
/// they may be repeats.
pub fn alike(runs: &[Run]) -> usize {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs.iter().filter(|_| runs.len() > 1) {
        let header = &run.header;
        let key = (tool_of(header), &header.suite, place(header), settings(header), &run.cells);
        *counts.entry(format!("{key:?}")).or_default() += 1;
    }
    counts.values().filter(|&&count| count > 1).sum()
}

/// Gives the only job of fio the name of the first's, if it differs in nothing else that its place
/// tells: the options say what it was. Returns its own name.
fn take_name(first: &Run, run: &mut Run) -> Option<String> {
    let tells_options = |run: &Run| {
        let settings = run.header.imported.as_ref().map_or(0, |imported| imported.settings.len());
        tool_of(&run.header) == Tool::Fio.name() && settings > 0
    };
    if !tells_options(first) || !tells_options(run) {
        return None;
    }
    let ([known], [cell]) = (first.cells.as_slice(), run.cells.as_mut_slice()) else { return None };
    let ([job], [stream]) = (known.streams.as_slice(), cell.streams.as_mut_slice()) else {
        return None;
    };
    if job.name == stream.name {
        return None;
    }
    cell.phase.clone_from(&known.phase);
    for stream in run.visits.iter_mut().flat_map(|visit| &mut visit.streams) {
        stream.name.clone_from(&job.name);
    }
    Some(std::mem::replace(&mut stream.name, job.name.clone()))
}

fn tool_of(header: &RunHeader) -> &str {
    header.imported.as_ref().map_or("", |imported| &imported.tool)
}

/// Where something was measured, and by which version: names and values, empty where unknown.
fn place(header: &RunHeader) -> [(&'static str, String); 6] {
    let target = &header.target;
    let version = header.imported.as_ref().and_then(|imported| imported.version.clone());
    let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
    [
        ("target", target.given.clone()),
        ("host", header.machine.host.clone()),
        ("file system", target.file_system.clone().unwrap_or_default()),
        ("size in bytes", number(target.size_bytes)),
        ("number of files", number(target.files.into())),
        ("version", version.unwrap_or_default()),
    ]
}

/// What is known of both and is not the same: its name, and both values.
fn elsewhere(first: &RunHeader, other: &RunHeader) -> Option<(String, String, String)> {
    let pairs = place(first).into_iter().zip(place(other));
    let known = pairs.filter(|((_, mine), (_, theirs))| !mine.is_empty() && !theirs.is_empty());
    let mut found = known.map(|((what, mine), (_, theirs))| (what.to_owned(), mine, theirs));
    found.find(|(_, a, b)| a != b)
}

/// What repeats of one test may be told differently: when it was made, what it is called, its random
/// numbers, where else it writes what it saw, and in how many pieces it tells it. Where the pieces are
/// others, so are the cells.
const OWN: [&str; 13] = [
    "seed",
    "randseed",
    "name",
    "description",
    "time stamp",
    "test type, description",
    "id for this run",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
    "group_reporting",
    "percentile_list",
];
/// Options of fio that are times, in seconds where no unit stands behind them.
const SECONDS: [&str; 5] = ["runtime", "timeout", "ramp_time", "startdelay", "start_delay"];
/// Options of fio that are sizes.
const SIZES: [&str; 7] =
    ["bs", "blocksize", "size", "filesize", "io_size", "offset", "offset_increment"];

/// What a setting says, however it was written: `1` and `1s`, `4k` and `4096`.
fn meant(name: &str, value: &str) -> Option<String> {
    if SECONDS.contains(&name) {
        let (number, unit) = text::split_unit(value.trim())?;
        let unit = text::time_unit(if unit.is_empty() { "s" } else { unit })?;
        return Some(text::ns(number * unit)?.to_string());
    }
    SIZES.contains(&name).then(|| text::bytes(value))?.map(|bytes| bytes.to_string())
}

/// Settings by name and meaning, as written.
type Settings = BTreeMap<(String, String), String>;

/// What a run was asked for.
fn settings(header: &RunHeader) -> Settings {
    let all = header.imported.iter().flat_map(|imported| imported.settings.iter().cloned());
    let is_fio = tool_of(header) == Tool::Fio.name();
    let is_result = |name: &str| name.starts_with(RESULT) || name.starts_with("repeat ");
    let known = all.filter_map(|(name, value)| {
        // fio has options of each of its jobs.
        let option = name.rsplit('.').next().unwrap_or(&name);
        if is_result(&name) || OWN.contains(&option) {
            return None;
        }
        let meant = meant(option, &value).filter(|_| is_fio);
        Some(((name, meant.unwrap_or_else(|| value.clone())), value))
    });
    known.collect()
}

/// A setting that is not the same, or that one has and the other has not: its name, and both values.
fn asked(first: &RunHeader, other: &RunHeader) -> Option<(String, String, String)> {
    let (mine, theirs) = (settings(first), settings(other));
    let odd = |settings: &Settings, other: &Settings| {
        settings.keys().find(|key| !other.contains_key(*key)).map(|(name, _)| name.clone())
    };
    let name = [odd(&mine, &theirs), odd(&theirs, &mine)].into_iter().flatten().min()?;
    let value = |settings: &Settings, other: &Settings| {
        let mut own = settings.iter().filter(|(key, _)| key.0 == name && !other.contains_key(*key));
        own.next().map_or_else(|| "nothing".to_owned(), |(_, value)| value.clone())
    };
    let (ours, others) = (value(&mine, &theirs), value(&theirs, &mine));
    Some((name, ours, others))
}
