//! fio's JSON and json+, alone or behind its normal output.
//!
//! Jobs of one group ran at the same time: they are the streams of one cell. Version 3 counts
//! latencies in ns and has `io_kbytes`; before it, latencies are in us and `io_bytes` is in KiB.
//! With `group_reporting` one entry stands for all clones of a job.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::draft::{Cell, Draft, Figure, Latency, Stream, axis, size_axis};
use crate::text::{self, END, Fault, Found, Text};

type Object = Map<String, Value>;

/// fio's own defaults, in force where the options are recorded and name no other.
const BLOCK: u64 = 4096;
const ENGINE: &str = "psync";

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let start = text.lines.iter().position(|line| line.text.trim_end() == "{");
    let start =
        start.or_else(|| text.lines.iter().position(|l| l.text.trim_start().starts_with('{')));
    let Some(start) = start else { return Err(text.ended("a JSON object, `{`")) };
    let body: String = text.raw.split_inclusive('\n').skip(start).collect();
    let mut values = serde_json::Deserializer::from_str(&body).into_iter::<Value>();
    let at = |line: usize| Some(start + line);
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) if error.is_eof() => {
            let line = at(error.line());
            return Err(Fault { line, seen: END.into(), wanted: "the rest of the JSON".into() });
        }
        Some(Err(error)) => {
            let line = at(error.line());
            return Err(Fault { line, seen: error.to_string(), wanted: "JSON".into() });
        }
        None => return Err(text.ended("JSON")),
    };
    let first = start + 1;
    let wanted = |what: &str| Fault {
        line: Some(first),
        seen: "JSON without it".into(),
        wanted: what.to_owned(),
    };
    let root = value.as_object().ok_or_else(|| wanted("an object with `jobs`"))?;
    let jobs = root.get("jobs").and_then(Value::as_array);
    let jobs = jobs.filter(|jobs| !jobs.is_empty()).ok_or_else(|| wanted("a list `jobs`"))?;
    let global = root.get("global options").and_then(Value::as_object);
    let mut found = Vec::new();
    for (k, job) in jobs.iter().enumerate() {
        let job = job.as_object().ok_or_else(|| wanted("jobs that are objects"))?;
        let place = |what: &str| wanted(&format!("{what} of job {}", k + 1));
        found.push(Job::new(job, global, &place)?);
    }
    Ok(vec![draft(root, found)])
}

/// One entry of `jobs`.
struct Job {
    group: u64,
    name: String,
    /// The job's own and the global ones.
    options: Option<Object>,
    figures: Vec<Figure>,
    elapsed_ns: Option<u64>,
    error: u64,
    percentiles_of_completion: bool,
}

impl Job {
    fn new(job: &Object, global: Option<&Object>, missing: &dyn Fn(&str) -> Fault) -> Found<Self> {
        let name =
            job.get("jobname").and_then(Value::as_str).ok_or_else(|| missing("`jobname`"))?;
        let own = job.get("job options").and_then(Value::as_object);
        let options = own.map(|own| {
            let mut all = global.cloned().unwrap_or_default();
            all.extend(own.iter().map(|(k, v)| (k.clone(), v.clone())));
            all
        });
        let mut found = Self {
            group: whole(job.get("groupid")).unwrap_or(0),
            name: name.to_owned(),
            options,
            figures: Vec::new(),
            elapsed_ns: None,
            error: whole(job.get("error")).unwrap_or(0),
            percentiles_of_completion: false,
        };
        let mut known = false;
        for op in ["read", "write", "trim", "mixed"] {
            let Some(direction) = job.get(op).and_then(Value::as_object) else { continue };
            known = true;
            found.direction(op, direction, missing)?;
        }
        if !known {
            return Err(missing("`read`, `write` or `trim`"));
        }
        found.syncs(job);
        let percent = |name: &str| real(job.get(name));
        if let (Some(user), Some(system), [only]) =
            (percent("usr_cpu"), percent("sys_cpu"), found.figures.as_mut_slice())
        {
            only.cpu_percent = Some(user + system);
        }
        Ok(found)
    }

    fn direction(
        &mut self,
        op: &str,
        object: &Object,
        missing: &dyn Fn(&str) -> Fault,
    ) -> Found<()> {
        let need = |name: &str| {
            real(object.get(name)).ok_or_else(|| missing(&format!("`{op}.{name}`, a number")))
        };
        let (iops, runtime) = (need("iops")?, need("runtime")?);
        let kibibytes = need("bw")?;
        let requests = whole(object.get("total_ios"));
        let exact = object.contains_key("io_kbytes");
        let moved = whole(object.get("io_bytes"));
        let bytes = if exact { moved } else { moved.and_then(|n| n.checked_mul(1024)) };
        if requests.unwrap_or(0) == 0 && bytes.unwrap_or(0) == 0 && iops == 0.0 {
            return Ok(());
        }
        let rate = real(object.get("bw_bytes")).unwrap_or(kibibytes * 1024.0);
        let (latency, of_completion) = latency(object);
        self.percentiles_of_completion |= of_completion;
        self.elapsed_ns = self.elapsed_ns.max(text::ns(runtime * 1e6));
        self.figures.push(Figure {
            requests,
            bytes,
            iops: Some(iops),
            bytes_per_s: Some(rate),
            latency,
            ..Figure::of(op)
        });
        Ok(())
    }

    /// Syncs are counted with their latency; fio prints no rate for them.
    fn syncs(&mut self, job: &Object) {
        let Some(sync) = job.get("sync").and_then(Value::as_object) else { return };
        let requests = whole(sync.get("total_ios")).filter(|&n| n > 0);
        if requests.is_some() {
            let latency = latency(sync).0;
            self.figures.push(Figure { requests, latency, ..Figure::of("fsync") });
        }
    }

    fn option(&self, name: &str) -> Option<&str> {
        self.options.as_ref()?.get(name)?.as_str()
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

    fn depth(&self) -> Option<u32> {
        self.option_or(&["iodepth"], 1, |value| value.parse().ok())
    }

    fn op(&self) -> String {
        let data: Vec<_> = self.figures.iter().filter(|f| f.op != "fsync").collect();
        match (data.as_slice(), self.option("rw").or(self.option("readwrite"))) {
            ([only], _) => only.op.clone(),
            ([], Some(rw)) if rw.contains("read") => "read".to_owned(),
            ([], Some(rw)) if rw.contains("write") => "write".to_owned(),
            _ => "mixed".to_owned(),
        }
    }
}

/// Latency in ns, and whether its percentiles are of completion while the rest is of the whole.
fn latency(object: &Object) -> (Latency, bool) {
    let part = |names: [&str; 2]| {
        let [nano, micro] = names.map(|name| object.get(name).and_then(Value::as_object));
        nano.map(|o| (o, 1.0)).or(micro.map(|o| (o, 1e3)))
    };
    let (whole_of, completion) = (part(["lat_ns", "lat"]), part(["clat_ns", "clat"]));
    let mut latency = Latency::default();
    let Some((main, scale)) = whole_of.or(completion) else { return (latency, false) };
    let value = |name: &str| real(main.get(name)).map(|v| v * scale);
    latency.min = value("min").and_then(text::ns);
    latency.max = value("max").and_then(text::ns);
    latency.mean = value("mean");
    latency.sd = value("stddev");
    let listed = |found: Option<(&'_ Object, f64)>, name: &str| {
        let (object, scale) = found?;
        let map = object.get(name)?.as_object().filter(|map| !map.is_empty())?;
        Some((map.clone(), scale))
    };
    let own = listed(whole_of, "percentile");
    let of_completion = own.is_none() && whole_of.is_some();
    let percentiles = own.or_else(|| listed(completion, "percentile"));
    let told = percentiles.is_some();
    for (share, value, scale) in pairs(percentiles) {
        let share = text::number(&share).filter(|share| *share > 0.0);
        if let (Some(share), Some(ns)) = (share, text::ns(value * scale)) {
            latency.quantiles.push((share / 100.0, ns));
        }
    }
    let bins = listed(whole_of, "bins").or_else(|| listed(completion, "bins"));
    for (at, count, scale) in pairs(bins) {
        if let Some(ns) = text::number(&at).and_then(|at| text::ns(at * scale)) {
            latency.buckets.push((ns, count as u64));
        }
    }
    latency.quantiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    latency.buckets.sort_unstable();
    (latency, of_completion && told)
}

fn pairs(found: Option<(Object, f64)>) -> Vec<(String, f64, f64)> {
    let Some((map, scale)) = found else { return Vec::new() };
    let pair = |(key, value): (String, Value)| Some((key, real(Some(&value))?, scale));
    map.into_iter().filter_map(pair).collect()
}

fn real(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|v| (0.0..=text::NUMBER_MAX).contains(v))
}

fn whole(value: Option<&Value>) -> Option<u64> {
    value?.as_u64()
}

fn draft(root: &Object, jobs: Vec<Job>) -> Draft {
    let string = |name: &str| root.get(name).and_then(Value::as_str).map(str::to_owned);
    let millis = root.get("timestamp_ms").and_then(Value::as_i64);
    let seconds = root.get("timestamp").and_then(Value::as_i64);
    let started = millis.and_then(|ms| ms.checked_mul(1_000_000));
    let mut draft = Draft {
        suite: "fio".to_owned(),
        version: string("fio version").map(|v| v.trim_start_matches("fio-").to_owned()),
        started_unix_ns: started.or_else(|| seconds?.checked_mul(1_000_000_000)),
        ..Draft::default()
    };
    draft.target = common(&jobs, "filename").or_else(|| common(&jobs, "directory"));
    draft.size = common(&jobs, "size").and_then(|size| text::bytes(&size));
    let mut told = BTreeSet::new();
    for job in &jobs {
        for (name, value) in job.options.iter().flatten() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let name = if jobs.len() > 1 { format!("{}.{name}", job.name) } else { name.clone() };
            if told.insert((name.clone(), value.clone())) {
                draft.settings.push((name, value));
            }
        }
    }
    if jobs.iter().any(|job| job.percentiles_of_completion) {
        draft.remarks.push(
            "Percentiles are of completion latency, mean and extremes of the whole: fio was not \
             asked for other percentiles."
                .to_owned(),
        );
    }
    draft.cells = cells(&jobs);
    draft
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
            cell.streams.push(Stream {
                name: job.name.clone(),
                op: job.op(),
                block: job.block(),
                threads,
                queue_depth: job.depth(),
                engine: job.option_or(&["ioengine"], ENGINE.to_owned(), |v| Some(v.to_owned())),
                direct: job.option("direct").is_some_and(|v| v == "1"),
                ops: job.figures.clone(),
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
            if let Some(clones) = only.clones().filter(|_| by_clones) {
                cell.coordinates.push(axis("threads", clones));
            }
        }
        cell
    };
    groups.values().map(of_group).collect()
}
