//! Files of fio as people have them: synchronous engines, jobs with names of their own.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use explain::barrier::{Barrier, Law, barriers};
use explain::{View, gap, interval};
use finding::{Code, Finding};
use import::Origin;
use record::Run;
use stats::Random;

use crate::Bound::{AtLeast, AtMost};
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "fio-engines",
        about: "files of fio with iodepth 1 to 64 on devices of 20 us to 5 ms, drawn at random: synchronous \
                engines, asynchronous ones, both in one file, and clones of synchronous jobs",
        run: engines,
    },
    Proof {
        name: "fio-names",
        about: "files of fio with 8 to 32 jobs in 3 to 5 repeats, noise 1 to 6 %, each job of a name of its own; \
                clean, or one cell at a third of its rate",
        run: names,
    },
];

/// The default of fio, which is not written, and others that wait for each request.
const SYNCHRONOUS: [Option<&str>; 8] = [
    None,
    Some("psync"),
    Some("sync"),
    Some("pvsync2"),
    Some("mmap"),
    Some("libpmem"),
    Some("libhdfs"),
    Some("gfapi"),
];
const ASYNCHRONOUS: [Option<&str>; 3] = [Some("libaio"), Some("io_uring"), Some("posixaio")];
const BLOCKS_KIB: [u64; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1024];
const DEPTHS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// A job of a file.
#[derive(Clone, Debug)]
struct Job {
    name: String,
    engine: Option<&'static str>,
    kib: u64,
    iodepth: u64,
    numjobs: u64,
    /// A thread of its own submits, so `iodepth` counts whatever the engine.
    offload: bool,
    /// Slower than its neighbours promise.
    gap: f64,
}

impl Job {
    fn waits(&self) -> bool {
        SYNCHRONOUS.contains(&self.engine) && !self.offload
    }

    /// Requests that fio has in flight.
    fn in_flight(&self) -> u64 {
        self.numjobs * if self.waits() { 1 } else { self.iodepth }
    }
}

/// A file, and what it is of.
struct File {
    law: Law,
    jobs: Vec<Job>,
    operation: &'static str,
    noise: f64,
    /// Whether it tells latencies.
    timed: bool,
    repeats: u64,
}

impl File {
    fn run(&self, random: &mut Random) -> Option<Run> {
        let texts: Vec<String> = (0..self.repeats).map(|at| self.text(at, random)).collect();
        read(&texts)
    }

    fn text(&self, repeat: u64, random: &mut Random) -> String {
        let op = if self.operation.contains("read") { "read" } else { "write" };
        let mut jobs = Vec::new();
        for (group, job) in self.jobs.iter().enumerate() {
            let bytes = job.kib << 10;
            let rate = self.law.rate(bytes, job.in_flight()) * job.gap;
            let rate = rate * (self.noise * random.normal()).exp();
            let ios = (rate * 10.0) as u64;
            let mut options = format!(
                r#""name":"{}","bs":"{}k","iodepth":"{}","stonewall":"""#,
                job.name, job.kib, job.iodepth
            );
            let add = |options: &mut String, name: &str, value: &str| {
                let _ = write!(options, r#","{name}":"{value}""#);
            };
            if let Some(engine) = job.engine {
                add(&mut options, "ioengine", engine);
            }
            if job.numjobs > 1 {
                add(&mut options, "numjobs", &job.numjobs.to_string());
                add(&mut options, "group_reporting", "");
            }
            if job.offload {
                add(&mut options, "io_submit_mode", "offload");
            }
            let mean = job.in_flight() as f64 / rate * 1e9;
            let times = match self.timed {
                true => format!(
                    r#","lat_ns":{{"min":1000,"max":{:.0},"mean":{mean},"stddev":{},"N":{ios}}}"#,
                    5.0 * mean,
                    mean / 3.0
                ),
                false => String::new(),
            };
            jobs.push(format!(
                r#"{{"jobname":"{}","groupid":{group},"error":0,"job options":{{{options}}},
                "{op}":{{"io_bytes":{},"io_kbytes":{},"bw":{},"bw_bytes":{},"iops":{rate},"runtime":10000,
                "total_ios":{ios}{times}}}}}"#,
                job.name,
                ios * bytes,
                ios * job.kib,
                rate * job.kib as f64,
                rate * bytes as f64,
            ));
        }
        format!(
            r#"{{"fio version":"fio-3.36","timestamp":{},
            "global options":{{"rw":"{}","direct":"1","filename":"/dev/x"}},"jobs":[{}]}}"#,
            1_700_000_000 + 1000 * repeat,
            self.operation,
            jobs.join(",")
        )
    }
}

/// Repeats as one run.
fn read(texts: &[String]) -> Option<Run> {
    let mut runs = Vec::new();
    for text in texts {
        runs.extend(import::read(text.as_bytes(), None, &Origin::default()).ok()?);
    }
    if runs.len() == 1 { runs.pop() } else { import::together(runs).ok() }
}

fn between(random: &mut Random, low: f64, high: f64) -> f64 {
    low * (high / low).powf(random.unit())
}

/// So many of them, in their order.
fn some<T: Copy>(random: &mut Random, all: &[T], least: usize) -> Vec<T> {
    let mut at: Vec<usize> = (0..all.len()).collect();
    random.shuffle(&mut at);
    at.truncate(least + random.below((all.len() - least + 1) as u64) as usize);
    at.sort_unstable();
    at.into_iter().map(|at| all[at]).collect()
}

fn one<T: Copy>(random: &mut Random, all: &[T]) -> T {
    all[random.below(all.len() as u64) as usize]
}

/// Four block sizes and more, each twice the one before: of sizes far apart a third of a rate is no gap
/// that anyone could tell.
fn doubling(random: &mut Random) -> Vec<u64> {
    let count = 4 + random.below(5) as usize;
    let start = random.below((BLOCKS_KIB.len() - count + 1) as u64) as usize;
    BLOCKS_KIB[start..start + count].to_vec()
}

/// A device whose limits are seen with 64 in flight: four to forty times what one request at a time
/// makes.
fn any_law(random: &mut Random) -> Law {
    let latency_seconds = between(random, 20e-6, 5e-3);
    let iops = between(random, 4.0, 40.0) / latency_seconds;
    let bandwidth = iops * between(random, 16e3, 256e3);
    Law {
        iops,
        bandwidth,
        latency_seconds,
        request_bandwidth: bandwidth * between(random, 0.3, 2.0),
        sharpness: between(random, 3.0, 10.0),
    }
}

/// Which jobs a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// All wait for each request.
    Waiting,
    /// None does.
    Asynchronous,
    /// Some do, some do not: each depth with both, or each with one of them.
    Mixed,
    /// They wait, and there are more and more of them.
    Clones,
    /// They wait, but threads of their own submit.
    Offloaded,
}

fn any_file(kind: Kind, random: &mut Random) -> File {
    let law = any_law(random);
    let blocks = some(random, &BLOCKS_KIB, 1);
    let depths = some(random, &DEPTHS, 3);
    let [waiting, other] = [one(random, &SYNCHRONOUS), one(random, &ASYNCHRONOUS)];
    let (own_names, both, asked) =
        (random.below(3) > 0, random.below(2) == 0, one(random, &DEPTHS));
    let mut jobs = Vec::new();
    for (kib, depth) in blocks.iter().flat_map(|kib| depths.iter().map(move |depth| (*kib, *depth)))
    {
        let engines = match kind {
            Kind::Waiting | Kind::Clones | Kind::Offloaded => vec![waiting],
            Kind::Asynchronous => vec![other],
            Kind::Mixed if both => vec![waiting, other],
            Kind::Mixed => vec![one(random, &[waiting, other])],
        };
        for engine in engines {
            let number = jobs.len();
            let (iodepth, numjobs) = if kind == Kind::Clones { (asked, depth) } else { (depth, 1) };
            jobs.push(Job {
                name: if own_names { format!("job{number}-{kib}k") } else { "j".to_owned() },
                engine,
                kib,
                iodepth,
                numjobs,
                offload: kind == Kind::Offloaded,
                gap: 1.0,
            });
        }
    }
    File {
        law,
        jobs,
        operation: one(random, &["randread", "randwrite", "read"]),
        noise: between(random, 0.003, 0.05),
        timed: random.below(4) > 0,
        repeats: 1 + random.below(5),
    }
}

/// What a file was said to be limited by.
#[derive(Default)]
struct Said {
    /// Of a limit that is none, or at another rate than it is.
    wrong: bool,
    /// Limits that are some.
    right: usize,
    /// A lock.
    lock: bool,
    /// One request at a time.
    one_at_a_time: bool,
}

impl Said {
    /// * `by`: what asynchronous jobs run into; `None` where there are none.
    fn of(run: &Run, by: Option<&Law>) -> Self {
        let mut said = Self::default();
        for barrier in barriers(&View::new(run), None).barriers {
            let is_lock = |found: &Finding| found.code == Code::LimitSerial;
            said.lock |= barrier.findings().iter().any(is_lock);
            said.one_at_a_time |= barrier.one_at_a_time.is_some();
            let limits = limits(&barrier);
            let is_it = |limit: &(u64, f64, f64)| {
                let near = |law: &Law| (limit.1..=limit.2).contains(&law.rate(limit.0, 1 << 20));
                by.is_some_and(near)
            };
            said.right += limits.iter().filter(|limit| is_it(limit)).count();
            said.wrong |= limits.iter().any(|limit| !is_it(limit));
        }
        said
    }
}

/// Where requests or bytes are said to end: block size, and rate from, to, a quarter wider.
fn limits(barrier: &Barrier) -> Vec<(u64, f64, f64)> {
    const NEAR: f64 = 1.25;
    let mut found = Vec::new();
    if let Some(cap) = barrier.iops.filter(|cap| cap.reached) {
        found.push((512, cap.rate.low, cap.rate.high));
    }
    if let Some(cap) = barrier.bandwidth.filter(|cap| cap.reached) {
        let per_second = |bytes: f64| bytes / (1 << 30) as f64;
        found.push((1 << 30, per_second(cap.rate.low), per_second(cap.rate.high)));
    }
    let ladders = barrier.ladders.iter().filter(|ladder| ladder.from.is_some());
    found.extend(ladders.map(|one| (one.block_bytes, one.rate.low, one.rate.high)));
    found.into_iter().map(|(block, low, high)| (block, low / NEAR, high * NEAR)).collect()
}

/// As it was imported before: the depth that was asked for, and no times to tell better.
fn as_asked(file: &File) -> String {
    let jobs = file.jobs.iter().map(|job| Job { name: job.name.clone(), ..job.clone() });
    let untimed = File { jobs: jobs.collect(), timed: false, noise: 0.0, ..file.copy() };
    let text = untimed.text(0, &mut Random::new(1));
    let named = SYNCHRONOUS.iter().flatten().fold(text, |text, engine| {
        text.replace(&format!(r#""ioengine":"{engine}""#), r#""ioengine":"libaio""#)
    });
    named.replace(r#""rw":"#, r#""ioengine":"libaio","rw":"#)
}

impl File {
    fn copy(&self) -> Self {
        Self { jobs: self.jobs.clone(), ..*self }
    }
}

fn engines(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(1000, 30);
    let mut claims = Vec::new();
    let kinds = [
        (Kind::Waiting, "synchronous"),
        (Kind::Mixed, "both kinds in one file"),
        (Kind::Clones, "clones of synchronous jobs"),
        (Kind::Offloaded, "synchronous, submitted by threads"),
        (Kind::Asynchronous, "asynchronous"),
    ];
    for (label, (kind, name)) in (0u64..).zip(kinds) {
        let (mut wrong, mut locks, mut one_at_a_time, mut found, mut naive) = (0, 0, 0, 0, 0);
        let (mut read_all, mut files) = (0, 0);
        for trial in 0..trials as u64 {
            let mut random = lot.random(&[label, trial]);
            let file = any_file(kind, &mut random);
            files += 1;
            let Some(run) = file.run(&mut random) else { continue };
            read_all += 1;
            let by = (kind != Kind::Waiting).then_some(&file.law);
            let said = Said::of(&run, by);
            wrong += usize::from(said.wrong);
            locks += usize::from(said.lock);
            one_at_a_time += usize::from(said.one_at_a_time);
            found += usize::from(said.right > 0);
            if kind == Kind::Waiting {
                let old = read(&[as_asked(&file)]).map(|run| Said::of(&run, by));
                naive += usize::from(old.is_some_and(|said| said.wrong || said.lock));
            }
        }
        let share =
            |what: &str, bound, yes| Claim::share(format!("{name}: {what}"), bound, yes, files);
        claims.push(share("read", AtLeast(1.0), read_all));
        claims.push(share("a limit that is none, or elsewhere", AtMost(0.05), wrong));
        claims.push(share("a lock is named", AtMost(0.01), locks));
        if kind == Kind::Waiting {
            claims.push(share("one request at a time is said", AtLeast(0.93), one_at_a_time));
            let text = "a limit that is none, by the depth that was asked for";
            claims.push(share(text, AtMost(0.05), naive).of_broken());
        } else {
            claims.push(share("a limit that is one, found", AtLeast(0.6), found));
        }
    }
    claims
}

/// Files whose jobs make one grid, each with a name of its own.
struct Grid {
    file: File,
    gap: Option<(u64, u64)>,
}

impl Grid {
    fn any(with_gap: bool, random: &mut Random) -> Self {
        let blocks = doubling(random);
        let mut depths = some(random, &DEPTHS, 2);
        depths.truncate(4);
        let cells: Vec<(u64, u64)> =
            blocks.iter().flat_map(|kib| depths.iter().map(move |depth| (*kib, *depth))).collect();
        // The largest blocks have no neighbours on one side, and bandwidth alone promises them.
        let inner: Vec<(u64, u64)> =
            cells.iter().filter(|cell| cell.0 < cells[cells.len() - 1].0).copied().collect();
        let gap = with_gap.then(|| one(random, &inner));
        let engine = one(random, &ASYNCHRONOUS);
        let style = random.below(4);
        let jobs = cells.iter().enumerate().map(|(at, &(kib, depth))| Job {
            name: match style {
                0 => format!("rr-{kib}k-d{depth}"),
                1 => format!("test.{at}"),
                2 => format!("{:x}", random.bits()),
                _ => format!("bs{kib} qd={depth}"),
            },
            engine,
            kib,
            iodepth: depth,
            numjobs: 1,
            offload: false,
            gap: if gap == Some((kib, depth)) { 1.0 / 3.0 } else { 1.0 },
        });
        let file = File {
            jobs: jobs.collect(),
            law: any_law(random),
            operation: one(random, &["randread", "randwrite"]),
            noise: between(random, 0.01, 0.06),
            timed: random.below(2) == 0,
            repeats: 3 + random.below(3),
        };
        Self { file, gap }
    }

    /// All jobs of one name, as few do.
    fn of_one_name(&self) -> File {
        let jobs = self.file.jobs.iter().map(|job| Job { name: "j".to_owned(), ..job.clone() });
        File { jobs: jobs.collect(), ..self.file.copy() }
    }
}

/// Cells that are called slow by themselves.
fn gaps(run: &Run) -> BTreeSet<(u64, u64)> {
    let found = gap::gaps(&View::new(run)).flagged;
    found.iter().map(|cell| (cell.block_bytes >> 10, cell.in_flight)).collect()
}

fn has_outlier(run: &Run) -> bool {
    interval::cells(&View::new(run)).iter().flatten().any(|cell| !cell.outliers.is_empty())
}

/// As one who takes each name for a phase of its own.
fn by_name_alone(run: &Run) -> Run {
    let mut run = run.clone();
    run.header.imported.iter_mut().for_each(|imported| imported.tool = "unknown".to_owned());
    run
}

fn names(lot: &Lot) -> Vec<Claim> {
    let trials = lot.effort.times(2000, 400);
    let (mut found, mut same, mut others, mut found_alone) = (0, 0, 0, 0);
    let (mut clean_gap, mut odd, mut odd_alone) = (0, 0, 0);
    for trial in 0..trials as u64 {
        let mut random = lot.random(&[1, trial]);
        let grid = Grid::any(true, &mut random);
        let noise = random.bits();
        let [own, regular] =
            [grid.file.copy(), grid.of_one_name()].map(|file| file.run(&mut Random::new(noise)));
        let (Some(own), Some(regular)) = (own, regular) else { continue };
        let (seen, wanted) = (gaps(&own), grid.gap.into_iter().collect::<BTreeSet<_>>());
        found += usize::from(seen.is_superset(&wanted));
        others += usize::from(seen.difference(&wanted).next().is_some());
        same += usize::from(seen == gaps(&regular));
        found_alone += usize::from(gaps(&by_name_alone(&own)).is_superset(&wanted));
        let mut random = lot.random(&[2, trial]);
        let Some(clean) = Grid::any(false, &mut random).file.run(&mut random) else { continue };
        clean_gap += usize::from(!gaps(&clean).is_empty());
        odd += usize::from(has_outlier(&clean));
        odd_alone += usize::from(has_outlier(&by_name_alone(&clean)));
    }
    let share = |what: &str, bound, yes| Claim::share(what, bound, yes, trials);
    vec![
        share("a cell at a third of its rate: found", AtLeast(0.93), found),
        share("the same cells as with one name for all jobs", AtLeast(0.98), same),
        share("another cell called slow", AtMost(0.05), others),
        share("clean: a cell called slow", AtMost(0.05), clean_gap),
        share("clean: a file with a visit that lies apart", AtMost(0.05), odd),
        share("each name for itself: the cell is found", AtLeast(0.93), found_alone).of_broken(),
        share("each name for itself, clean: a visit lies apart", AtMost(0.05), odd_alone)
            .of_broken(),
    ]
}
