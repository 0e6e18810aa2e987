//! Change points and drift.

use explain::{View, drift};
use record::{
    Bitmap, CellRecord, Machine, OpRecord, Purpose, Run, RunHeader, RunState, Series, SeriesRow,
    StreamPlan, StreamRecord, TargetKind, TargetRecord, VisitEnd, VisitRecord,
};
use stats::changepoint::{Noise, changes, noise, partition};
use stats::history::history;
use stats::{LatencyHistogram, Random};

use crate::Bound::{AtLeast, AtMost, Within};
use crate::processes::Autoregressive;
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "changes-table",
        about: "two minutes of seconds with correlated noise, with and without a step of 3 sigma",
        run: table,
    },
    Proof {
        name: "changes-visit",
        about: "records of visits with steps, stalls and nothing in them",
        run: visits,
    },
    Proof {
        name: "changes-run",
        about: "grids of 30 cells in four rounds: drift and steps of the whole run",
        run: runs,
    },
    Proof {
        name: "changes-few",
        about: "ten cells in three rounds, noise from 1 to 40 %: what is said of the whole run",
        run: uneven,
    },
    Proof {
        name: "changes-history",
        about: "one value a run, noise of 5 % from run to run: at which run the level changed",
        run: histories,
    },
];

const SECONDS: usize = 120;
const SEGMENT: usize = 5;
/// Of ln rate: a device with 5 % of noise from second to second.
const SIGMA: f64 = 0.05;

fn series(rho: f64, levels: &[(f64, usize)], random: &mut Random) -> Vec<f64> {
    let mut process = Autoregressive::new(rho, random);
    let level = levels.iter().flat_map(|&(level, n)| std::iter::repeat_n(level, n));
    level.map(|level| 10.0 + SIGMA * (level + process.next(random))).collect()
}

fn table(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 600);
    let mut claims = Vec::new();
    for (row, rho) in (0u64..).zip([0.0, 0.3, 0.5, 0.7, 0.9]) {
        let (mut ours, mut plain, mut best) = (0, 0, 0);
        let (mut found, mut two) = (0, 0);
        for time in 0..times as u64 {
            let mut random = lot.random(&[row, time]);
            let flat = series(rho, &[(0.0, SECONDS)], &mut random);
            ours += usize::from(cuts(&flat) > 0);
            plain += usize::from(plain_penalty(&flat));
            best += usize::from(best_split(&flat));
            let step = series(rho, &[(0.0, 60), (-3.0, 60)], &mut random);
            found += usize::from(found_at(&step, &[60]));
            let steps = series(rho, &[(0.0, 40), (-3.0, 40), (0.0, 40)], &mut random);
            two += usize::from(found_at(&steps, &[40, 80]));
        }
        let of = |what: &str| format!("rho {rho}: {what}");
        // Where a second tells nine tenths of the next, noise and steps are hard to tell apart.
        let bound = if rho > 0.7 { 0.12 } else { 0.05 };
        claims.push(Claim::share(of("false alarms"), AtMost(bound), ours, times));
        if rho > 0.0 {
            let plain = Claim::share(of("2 s^2 ln n, false alarms"), AtMost(0.05), plain, times);
            claims.push(plain.of_broken());
            let best = Claim::share(of("best split by t, false alarms"), AtMost(0.05), best, times);
            claims.push(best.of_broken());
        }
        // At 0.7 three standard deviations are but one of what neighbours share.
        let (bound_found, bound_two) = match rho {
            r if r <= 0.3 => (0.95, Some(0.85)),
            r if r <= 0.5 => (0.85, None),
            r if r <= 0.7 => (0.50, None),
            _ => (0.25, None),
        };
        claims.push(Claim::share(
            of("a step of 3 sigma found within 5 s"),
            AtLeast(bound_found),
            found,
            times,
        ));
        if let Some(bound) = bound_two {
            claims.push(Claim::share(of("two steps found as two"), AtLeast(bound), two, times));
        }
    }
    claims
}

fn cuts(series: &[f64]) -> usize {
    changes(series, SEGMENT).map_or(0, |found| found.segments.len() - 1)
}

fn found_at(series: &[f64], wanted: &[usize]) -> bool {
    let Some(found) = changes(series, SEGMENT) else { return false };
    let points: Vec<usize> = found.points().collect();
    points.len() == wanted.len()
        && points.iter().zip(wanted).all(|(seen, wanted)| seen.abs_diff(*wanted) <= 5)
}

/// The usual penalty, which takes neighbours as independent.
fn plain_penalty(series: &[f64]) -> bool {
    let Some(Noise { sigma, rho }) = noise(series) else { return false };
    // Sigma of the differences alone, as one who knows of no correlation takes it.
    let sigma = sigma * (1.0 - rho).sqrt();
    let penalty = 2.0 * sigma.powi(2) * (series.len() as f64).ln();
    !partition(series, SEGMENT, penalty).is_empty()
}

/// The split with the largest t, called where its own p is below 0.001.
fn best_split(series: &[f64]) -> bool {
    // Student's t of 0.001 on both sides at 118 degrees of freedom.
    const LIMIT: f64 = 3.377;
    let n = series.len();
    (SEGMENT..=n - SEGMENT).any(|cut| {
        let (a, b) = series.split_at(cut);
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let square = |part: &[f64], m: f64| part.iter().map(|x| (x - m).powi(2)).sum::<f64>();
        let (ma, mb) = (mean(a), mean(b));
        let pooled = (square(a, ma) + square(b, mb)) / (n - 2) as f64;
        let error = (pooled * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
        (ma - mb).abs() > LIMIT * error
    })
}

/// Histories of runs: short, and each value apart from the next.
fn histories(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 600);
    let mut claims = Vec::new();
    let points =
        |values: &[f64]| history(values, 0.001, 3).iter().map(|c| c.at).collect::<Vec<_>>();
    for (row, runs) in (0u64..).zip([12, 30, 50]) {
        let (mut false_alarms, mut weak) = (0, 0);
        for time in 0..times as u64 {
            let mut random = lot.random(&[row, time]);
            let flat = series(0.0, &[(0.0, runs)], &mut random);
            false_alarms += usize::from(!points(&flat).is_empty());
            weak += usize::from(!history(&flat, 0.05, 3).is_empty());
        }
        let of = |what: &str| format!("{runs} runs: {what}");
        claims.push(Claim::share(
            of("a change where there is none"),
            AtMost(0.05),
            false_alarms,
            times,
        ));
        claims.push(Claim::share(of("p of 0.05, the same"), AtMost(0.05), weak, times).of_broken());
    }
    let (mut step, mut two, mut odd) = (0, 0, 0);
    let mut least_squares = 0;
    let near = |found: &[usize], wanted: &[usize]| {
        found.len() == wanted.len()
            && found.iter().zip(wanted).all(|(seen, wanted)| seen.abs_diff(*wanted) <= 2)
    };
    for time in 0..times as u64 {
        let mut random = lot.random(&[9, time]);
        let one = series(0.0, &[(0.0, 15), (-3.0, 15)], &mut random);
        step += usize::from(near(&points(&one), &[15]));
        let levels = [(0.0, 10), (-3.0, 10), (0.0, 10)];
        let both = series(0.0, &levels, &mut random);
        two += usize::from(near(&points(&both), &[10, 20]));
        let mut values = series(0.0, &[(0.0, 30)], &mut random);
        values[random.below(30) as usize] += 0.42_f64.ln();
        odd += usize::from(!points(&values).is_empty());
        least_squares += usize::from(changes(&values, 3).is_some_and(|f| f.segments.len() > 1));
    }
    let claim = |what: &str, bound, seen| Claim::share(what.to_owned(), bound, seen, times);
    claims.push(claim("a step of 3 sigma in 30 runs, found within 2", AtLeast(0.95), step));
    claims.push(claim("two steps in 30 runs, found as two", AtLeast(0.85), two));
    claims.push(claim("one odd run of 30 at 42 %: a change called", AtMost(0.05), odd));
    let broken = claim("least squares, one odd run: a change called", AtMost(0.05), least_squares);
    claims.push(broken.of_broken());
    claims
}

/// What one second of a record holds.
#[derive(Clone, Copy)]
pub(super) enum Second {
    /// A rate, in requests.
    Rate(f64),
    /// Nothing completed.
    Stalled,
}

fn visits(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(2_000, 200);
    let (mut stall_event, mut stall_only, mut zeros, mut constant) = (0, 0, 0, 0);
    let (mut minute, mut minutes) = (0, 0);
    for time in 0..times as u64 {
        let mut random = lot.random(&[time]);
        let rates = |ratio: f64, half: usize, random: &mut Random| -> Vec<Second> {
            let levels = [(0.0, half), (ratio.ln() / SIGMA, half)];
            let rate = |x: &f64| Second::Rate(10_000.0 * (x - 10.0).exp());
            series(0.3, &levels, random).iter().map(rate).collect()
        };
        let mut with_stall = rates(1.0, 30, &mut random);
        let at = 5 + random.below(50) as usize;
        with_stall[at..at + 2].fill(Second::Stalled);
        let record = visit(0, 0, 0, &with_stall);
        stall_event += usize::from(explain::freeze::stalled(&record));
        stall_only += usize::from(!drift::changed(&record));
        let stepped = |half, random: &mut Random| {
            usize::from(drift::changed(&visit(0, 0, 0, &rates(0.8, half, random))))
        };
        minute += stepped(30, &mut random);
        minutes += stepped(60, &mut random);
        if time < 20 {
            let nothing = visit(0, 0, 0, &[Second::Stalled; 60]);
            let _ = drift::changed(&nothing);
            let half: Vec<Second> = (0..60)
                .map(|s| if s % 2 == 0 { Second::Rate(0.0) } else { Second::Rate(9.0) })
                .collect();
            let _ = drift::changed(&visit(0, 0, 0, &half));
            zeros += 1;
            constant += usize::from(!drift::changed(&visit(0, 0, 0, &[Second::Rate(500.0); 60])));
        }
    }
    vec![
        Claim::share("a stall of 2 s is an event", AtLeast(1.0), stall_event, times),
        // Noise alone is cut in about one series in a hundred.
        Claim::share("a stall of 2 s is no change of level", AtLeast(0.98), stall_only, times),
        // What a minute tells of its correlation is too little to be sure of the penalty.
        Claim::share("a step to 80 % in a minute is found", AtLeast(0.90), minute, times),
        Claim::share("a step to 80 % in two minutes is found", AtLeast(0.95), minutes, times),
        Claim::number(
            "records of nothing and of zeros that were survived",
            AtLeast(20.0),
            zeros as f64,
        ),
        Claim::number("constant records without a change", AtLeast(20.0), constant as f64),
    ]
}

pub(super) const CELLS: usize = 30;
const ROUNDS: usize = 4;

fn runs(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(2_000, 150);
    let (mut covered, mut quiet, mut found, mut stepped, mut false_steps) = (0, 0, 0, 0, 0);
    for time in 0..times as u64 {
        let mut random = lot.random(&[time]);
        // Over the 72 minutes of the run that is eight times a visit's noise.
        let slope = -0.20f64;
        let drifting = run(&mut random, |hours| slope * hours);
        if let Some(hour) = drifting.as_ref().and_then(|run| run.per_hour) {
            let within = |low: f64, high: f64| low <= slope.exp_m1() && slope.exp_m1() <= high;
            covered += usize::from(hour.low.zip(hour.high).is_some_and(|(l, h)| within(l, h)));
            found += usize::from(hour.is_real() && hour.over_all < 0.0);
        }
        let flat = run(&mut random, |_| 0.0);
        if let Some(flat) = &flat {
            quiet += usize::from(flat.per_hour.is_some_and(|slope| !slope.is_real()));
            false_steps += usize::from(!flat.steps.is_empty());
        }
        let step = run(&mut random, |hours| if hours > 0.6 { -0.10 } else { 0.0 });
        let near = |ratio: f64| (ratio / (-0.10f64).exp() - 1.0).abs() < 0.03;
        stepped += usize::from(step.is_some_and(|run| {
            run.steps.len() == 1
                && near(run.steps[0].ratio())
                && (run.steps[0].at_ns as f64 / 3.6e12 - 0.6).abs() < 0.1
        }));
    }
    vec![
        Claim::share("drift of -20 % an hour: interval covers", AtLeast(0.92), covered, times),
        Claim::share("drift of -20 % an hour: called", AtLeast(0.95), found, times),
        Claim::share("no drift: none called", AtLeast(0.92), quiet, times),
        Claim::share("no drift: steps called", AtMost(0.05), false_steps, times),
        Claim::share("a shared step to 90 %: found, once, in place", AtLeast(0.95), stepped, times),
        Claim::number("visits a run", Within(120.0, 120.0), (CELLS * ROUNDS) as f64),
    ]
}

/// Runs in which nothing changes, of few visits and cells of very different noise: a server whose
/// quietest stream has 1 % and whose noisiest has 40 %.
fn uneven(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(2_000, 250);
    let (mut told, mut stepped, mut halved) = (0, 0, 0);
    for time in 0..times as u64 {
        let mut random = lot.random(&[time]);
        if let Some(run) = few(&mut random, |_| 0.0) {
            stepped += usize::from(!run.steps.is_empty());
            let slope = run.per_hour.is_some_and(|s| s.is_real() && s.over_all.abs() >= 0.02);
            told += usize::from(slope || !run.steps.is_empty());
        }
        let half = few(&mut random, |visit| if visit < 15 { 0.0 } else { -0.7 });
        halved += usize::from(half.is_some_and(|run| {
            !run.steps.is_empty() || run.per_hour.is_some_and(|slope| slope.is_real())
        }));
    }
    vec![
        Claim::share("few visits, uneven noise: change or drift told", AtMost(0.08), told, times),
        Claim::share("few visits, uneven noise: steps told", AtMost(0.03), stepped, times),
        Claim::share(
            "few visits, uneven noise: half the rate is told",
            AtLeast(0.90),
            halved,
            times,
        ),
    ]
}

/// Ten cells in three rounds. A visit lasts until so many requests were made, so a slow one ends
/// late: of one stream at most 0.2 s, and the next one begins after it.
fn few(random: &mut Random, effect: impl Fn(u32) -> f64) -> Option<drift::RunDrift> {
    let noise = [0.01, 0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.20, 0.30, 0.40];
    let mut visits: Vec<VisitRecord> = Vec::new();
    let mut now = 0i64;
    for round in 0..3 {
        let mut order: Vec<usize> = (0..noise.len()).collect();
        random.shuffle(&mut order);
        for cell in order {
            let number = visits.len() as u32;
            let ln = effect(number) + noise[cell] * random.normal();
            let rate = 50_000.0 * ln.exp();
            let mut made = visit(cell as u32, round, number, &[Second::Rate(rate); 1]);
            let took = 1e9 / ln.exp();
            made.streams[0].ops[0].requests = (rate * took / 1e9) as u64;
            made.elapsed_ns = took as u64;
            // As evenly to its end, or a slow visit would stand still from the first second on.
            let ticks = made.elapsed_ns / 10_000_000;
            made.completions = Bitmap::zeros(ticks * 10);
            (0..ticks).for_each(|tick| made.completions.set(tick * 10));
            made.started_unix_ns = now;
            now += 200_000_000;
            visits.push(made);
        }
    }
    drift::drift(&View::new(&record(visits))).parts.into_iter().next()
}

/// Visits of 2 s every 36 s: 72 minutes.
fn run(random: &mut Random, effect: impl Fn(f64) -> f64) -> Option<drift::RunDrift> {
    let levels: Vec<f64> = (0..CELLS).map(|_| 8.0 + 2.0 * random.normal()).collect();
    let mut visits = Vec::new();
    for round in 0..ROUNDS {
        let mut order: Vec<usize> = (0..CELLS).collect();
        random.shuffle(&mut order);
        for cell in order {
            let number = visits.len() as u32;
            let hours = f64::from(number) / 100.0;
            let ln_rate = levels[cell] + effect(hours) + 0.03 * random.normal();
            let seconds = [Second::Rate(ln_rate.exp()); 2];
            visits.push(visit(cell as u32, round as u32, number, &seconds));
        }
    }
    drift::drift(&View::new(&record(visits))).parts.into_iter().next()
}

pub(super) fn visit(cell: u32, repeat: u32, order: u32, seconds: &[Second]) -> VisitRecord {
    let mut completions = Bitmap::zeros(seconds.len() as u64 * 1_000);
    let mut rows = Vec::new();
    let mut requests = 0;
    for (second, what) in (0u64..).zip(seconds) {
        let rate = match what {
            Second::Rate(rate) => rate.round() as u64,
            Second::Stalled => 0,
        };
        requests += rate;
        for row in 0..10 {
            let n = rate * (row + 1) / 10 - rate * row / 10;
            rows.push(SeriesRow { requests: n, bytes: n * 4096, tail: Vec::new() });
        }
        if let Second::Rate(_) = what {
            // Evenly, at least one each 10 ms, so that only a stall is one.
            (0..100).for_each(|tick| completions.set(second * 1_000 + tick * 10));
        }
    }
    let mut latency = LatencyHistogram::new();
    latency.record(units::Nanos::micros(100));
    let op = OpRecord {
        op: "read".to_owned(),
        requests,
        bytes: requests * 4096,
        errors: Vec::new(),
        short: 0,
        latency,
        latency_ns_min: 100_000,
        latency_ns_max: 100_000,
        latency_ns_sum: 100_000,
        series: Series { interval_ns: 100_000_000, rows },
        slow: Vec::new(),
        slow_dropped: 0,
        late_requests: 0,
        late_bytes: 0,
        reported: None,
    };
    VisitRecord {
        cell,
        repeat,
        order,
        started_unix_ns: i64::from(order) * 36_000_000_000,
        elapsed_ns: seconds.len() as u64 * 1_000_000_000,
        load_ns: None,
        end: VisitEnd::Complete,
        purpose: Purpose::Measure,
        ramp_ns: 0,
        waited_ns: 0,
        quiet: None,
        resident_before: None,
        resident_after: None,
        streams: vec![StreamRecord {
            name: "load".to_owned(),
            backend: record::BackendRecord::default(),
            ops: vec![op],
            workers: Vec::new(),
            ramp_requests: 0,
            backlog: 0,
        }],
        completions,
        counters: Vec::new(),
        ledger: Vec::new(),
        host_stalls: Vec::new(),
        warnings: Vec::new(),
    }
}

pub(super) fn record(visits: Vec<VisitRecord>) -> Run {
    let cells = (0..CELLS as u32).map(|index| CellRecord {
        index,
        phase: "read".to_owned(),
        coordinates: vec![("number".to_owned(), index.to_string())],
        streams: vec![StreamPlan {
            name: "load".to_owned(),
            op: "read".to_owned(),
            block_bytes: Some(4096),
            threads: 1,
            queue_depth: 1,
        }],
        impossible: None,
    });
    Run { header: header(), cells: cells.collect(), visits }
}

fn header() -> RunHeader {
    RunHeader {
        id: "proof".to_owned(),
        version: record::VERSION,
        suite: "proof".to_owned(),
        suite_text: String::new(),
        target: TargetRecord {
            given: "model".to_owned(),
            resolved: "model".to_owned(),
            kind: TargetKind::Twin,
            size_bytes: 1 << 30,
            files: 1,
            file_system: None,
            mount: None,
            devices: Vec::new(),
            direct_alignment: None,
            link: None,
            cache_bytes: None,
            model: None,
            remarks: Vec::new(),
        },
        seed: 1,
        command_line: Vec::new(),
        program: "proof".to_owned(),
        stack: None,
        machine: Machine {
            host: String::new(),
            kernel: String::new(),
            architecture: String::new(),
            processor: String::new(),
            processors: 1,
            memory_bytes: 0,
        },
        started_unix_ns: 0,
        state: RunState::Complete,
        visits_planned: (CELLS * ROUNDS) as u32,
        blocks: None,
        targets: Vec::new(),
        part: None,
        imported: None,
        warnings: Vec::new(),
    }
}
