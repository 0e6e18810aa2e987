//! The ladder on devices whose load line is known, on a virtual clock.
//!
//! `PLIMSOLL_LINES=100 cargo test -p plimsoll-plan --test ladder -- --nocapture` is the long form.

#![expect(clippy::print_stdout, reason = "what a proof found")]

use plan::ladder::{Allowed, PIECE};
use plan::ladder::{Found, Ladder, Line, Load, Seen, StepOf, breaks};
use stats::Random;
use units::Nanos;

/// A device of four servers, its times in seconds.
#[derive(Clone, Copy, Debug)]
struct Spec {
    mean: f64,
    cv: f64,
    /// Share of slow requests, and their mean.
    slow: (f64, f64),
    /// Speed of its other state, and mean times in the first and in that one.
    other: (f64, f64, f64),
    /// Log-sd of speed from visit to visit.
    shift: f64,
    /// Requests that it serves at full speed, refill a second.
    bucket: Option<(f64, f64)>,
    /// Sleeps when idle for so long, and needs so long to wake.
    sleeps: Option<(f64, f64)>,
}

const PLAIN: Spec = Spec {
    mean: 0.8e-3,
    cv: 0.5,
    slow: (0.0, 0.0),
    other: (1.0, 1e18, 0.0),
    shift: 0.0,
    bucket: None,
    sleeps: None,
};

struct Device {
    spec: Spec,
    random: Random,
    now: f64,
    free: [f64; 4],
    last: f64,
    speed: f64,
    is_other: bool,
    until: f64,
    tokens: (f64, f64),
    spent: f64,
}

impl Device {
    fn new(spec: Spec, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (_, first, second) = spec.other;
        let is_other = random.unit() < second / (first + second);
        let until = random.exponential() * if is_other { second } else { first };
        let tokens = (spec.bucket.map_or(0.0, |bucket| bucket.0), 0.0);
        let (free, speed) = ([0.0; 4], 1.0);
        Self { spec, random, now: 0.0, free, last: 0.0, speed, is_other, until, tokens, spent: 0.0 }
    }

    /// When a request that comes at `t` is done.
    fn serve(&mut self, t: f64) -> f64 {
        let server = (0..4).min_by(|a, b| self.free[*a].total_cmp(&self.free[*b])).unwrap_or(0);
        let mut start = self.free[server].max(t);
        if let Some((size, refill)) = self.spec.bucket {
            let (tokens, at) = self.tokens;
            let have = (tokens + (start - at).max(0.0) * refill).min(size);
            start = start.max(at);
            self.tokens = (have - 1.0, start);
            if have < 1.0 {
                start += (1.0 - have) / refill;
                self.tokens = (0.0, start);
            }
        }
        if let Some((_, wake)) = self.spec.sleeps.filter(|(idle, _)| t > self.last + idle) {
            start = start.max(t + wake);
            // All of them wake together.
            self.free.iter_mut().for_each(|free| *free = free.max(t + wake));
        }
        while start >= self.until {
            self.is_other = !self.is_other;
            let (_, first, second) = self.spec.other;
            self.until += self.random.exponential() * if self.is_other { second } else { first };
        }
        let (share, mean) = self.spec.slow;
        let is_slow = share > 0.0 && self.random.unit() < share;
        let (mean, cv) = if is_slow { (mean, 0.1) } else { (self.spec.mean, self.spec.cv) };
        let sd = (1.0 + cv * cv).ln().sqrt();
        let time = mean * (sd * self.random.normal() - sd * sd / 2.0).exp();
        let other = if self.is_other { self.spec.other.0 } else { 1.0 };
        let end = start + time / self.speed / other;
        self.free[server] = end;
        self.last = self.last.max(end);
        end
    }

    /// Latencies of what is due in `time` after a ramp, with when it was due.
    fn visit(&mut self, rate: f64, ramp: f64, time: f64) -> Vec<(f64, f64)> {
        let shift = self.spec.shift;
        self.speed = (shift * self.random.normal() - shift * shift / 2.0).exp();
        let begin = self.free.iter().fold(self.now, |a, b| a.max(*b)) + 0.05;
        let (mut t, mut all) = (begin, Vec::new());
        loop {
            t += self.random.exponential() / rate;
            if t >= begin + ramp + time {
                break;
            }
            let latency = self.serve(t) - t;
            if t >= begin + ramp {
                all.push((t - begin - ramp, latency));
            }
        }
        self.now = begin + ramp + time;
        self.spent += ramp + time + 0.05;
        all
    }

    fn seen(&mut self, rate: f64, ramp: f64, time: f64, limits: &[Limit]) -> Seen {
        let all = self.visit(rate, ramp, time);
        let late = |limit: &Limit| all.iter().filter(|(_, latency)| *latency > limit.0).count();
        let counts = limits.iter().map(|limit| (all.len() as f64, late(limit) as f64)).collect();
        let mean = |from: f64, to: f64| {
            let part = all.iter().filter(|(at, _)| (from * time..to * time).contains(at));
            let (n, sum) = part.fold((0.0, 0.0), |(n, sum), (_, latency)| (n + 1.0, sum + latency));
            sum / f64::max(n, 1.0)
        };
        Seen { counts, growth: (mean(0.75, 1.0) - mean(0.0, 0.25)) / (0.75 * time) }
    }
}

/// Time in seconds, and the share that may take longer.
type Limit = (f64, f64);

const P99: Limit = (5e-3, 0.01);
const P999: Limit = (15e-3, 0.001);

struct Played {
    found: Found,
    capacity: Option<(Load, Load)>,
    spent: f64,
    /// The hold, in pieces: which were over.
    held: Vec<bool>,
}

fn play(spec: Spec, limits: &[Limit], seed: u64, hold: Nanos) -> Played {
    let mut device = Device::new(spec, 7919 * seed + 11);
    let bounds = limits.iter().map(|limit| Allowed {
        allowance: limit.1,
        requests: 1.0,
        within: Nanos::ZERO,
    });
    let mut ladder = Ladder::new(bounds.collect(), seed, hold);
    let (mut held, mut spent) = (Vec::new(), 0.0);
    while let Some(step) = ladder.next() {
        let (rate, ramp, time) =
            (step.load.per_second(), step.ramp.as_secs_f64(), step.time.as_secs_f64());
        if step.of == StepOf::Hold {
            let piece = PIECE.as_secs_f64();
            let all = device.visit(rate, ramp, time);
            let over = |k: usize| {
                let from = k as f64 * piece;
                let part = all.iter().filter(|(at, _)| (from..from + piece).contains(at));
                let (n, late) = part.fold((0, 0), |(n, late), (_, latency)| {
                    (n + 1, late + u32::from(*latency > limits[0].0))
                });
                f64::from(late) > limits[0].1 * f64::from(n)
            };
            held = (0..(time / piece) as usize).map(over).collect();
            ladder.add(&Seen { counts: Vec::new(), growth: 0.0 });
            continue;
        }
        let seen = device.seen(rate, ramp, time, limits);
        ladder.add(&seen);
        if matches!(ladder.found(), Found::Line(Line { converged: true, .. })) && spent == 0.0 {
            spent = device.spent;
        }
    }
    let spent = if spent > 0.0 { spent } else { device.spent };
    Played { found: ladder.found(), capacity: ladder.capacity(), spent, held }
}

/// The rate at which a long run has the allowed share: several devices, by halving.
fn truth(spec: Spec, limit: Limit, seconds: f64) -> f64 {
    let share = |rate: f64| {
        let (mut due, mut late) = (0, 0);
        for seed in 0..4 {
            let mut device = Device::new(spec, seed);
            // With a shift of speed many visits, otherwise one long one.
            let (visits, time) =
                if spec.shift > 0.0 { (seconds / 2.0, 2.0) } else { (1.0, seconds) };
            for _ in 0..visits as u32 {
                let all = device.visit(rate, 1.0, time);
                due += all.len();
                late += all.iter().filter(|(_, latency)| *latency > limit.0).count();
            }
        }
        late as f64 / due as f64
    };
    let (mut low, mut high) = (500.0_f64, 12_000.0_f64);
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        *if share(middle) > limit.1 { &mut high } else { &mut low } = middle;
    }
    (low * high).sqrt()
}

/// How many runs of a proof: the short form's, unless `PLIMSOLL_LINES` says otherwise.
fn runs(short: u64) -> u64 {
    std::env::var("PLIMSOLL_LINES").ok().and_then(|n| n.parse().ok()).unwrap_or(short)
}

fn line(played: &Played) -> Option<&Line> {
    match &played.found {
        Found::Line(line) => Some(line),
        _ => None,
    }
}

/// Plays runs and holds them against the truth: covered, device seconds, ln of line by truth.
fn cover(name: &str, spec: Spec, line_of: f64, short: u64) {
    let n = runs(short);
    let (mut covered, mut broken, mut capacity, mut spent, mut off) = (0, 0, 0, vec![], vec![]);
    let mut half = vec![];
    for seed in 0..n {
        let played = play(spec, &[P99], seed, Nanos::secs(60));
        let Some(line) = line(&played) else {
            println!("{name}, run {seed}: {:?}", played.found);
            continue;
        };
        covered += u64::from((line.low..=line.high).contains(&line_of));
        broken += u64::from(breaks(&played.held).is_some());
        capacity += u64::from(played.capacity.is_some_and(|(low, _)| low.per_second() > line.low));
        spent.push(played.spent);
        off.push((line.rate / line_of).ln());
        half.push((line.high / line.low).ln() / 2.0);
    }
    let median = |all: &mut Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let sd = (off.iter().map(|x| x * x).sum::<f64>() / n as f64).sqrt();
    let (spent, off, half) = (median(&mut spent), median(&mut off), median(&mut half));
    println!(
        "{name}: line {line_of:.0}/s, {n} runs: covered {:.0} %, bias {:+.1} %, scatter {:.1} %, \
         half-width {:.1} %, {spent:.0} s of device time, holds broken {:.0} %, capacity found {:.0} %",
        100.0 * covered as f64 / n as f64,
        100.0 * off,
        100.0 * sd,
        100.0 * half,
        100.0 * broken as f64 / n as f64,
        100.0 * capacity as f64 / n as f64,
    );
    assert!(covered * 100 >= n * 88, "{name}: {covered} of {n} covered");
    assert!(broken * 20 <= n, "{name}: {broken} of {n} holds broken");
    assert!(capacity * 10 >= n * 9, "{name}: capacity of {capacity} of {n}");
    assert!(spent <= 200.0, "{name}: {spent} s");
    // A median of a few runs scatters as they do.
    let bias = if n < 50 { 0.05 } else { 0.02 };
    assert!(off.abs() < bias && half < 0.06, "{name}: bias {off}, half-width {half}");
}

const SPECS: [(&str, Spec, f64); 4] = [
    ("M/G/4", PLAIN, 4354.0),
    ("bimodal", Spec { mean: 0.5e-3, cv: 0.3, slow: (0.015, 4.5e-3), ..PLAIN }, 6009.0),
    ("two speeds", Spec { other: (0.8, 10.0, 5.0), ..PLAIN }, 3487.0),
    ("shift of 3 %", Spec { shift: 0.03, ..PLAIN }, 4286.0),
];

#[test]
fn the_planted_line_is_covered() {
    for (name, spec, line) in SPECS {
        cover(name, spec, line, 4);
    }
}

#[test]
fn the_lines_are_those_of_long_runs() {
    if std::env::var_os("PLIMSOLL_LINES").is_none() {
        return println!("skipped: 16 000 s of each device; PLIMSOLL_LINES=100");
    }
    for (name, spec, line) in SPECS {
        let found = truth(spec, P99, 4000.0);
        assert!((found / line).ln().abs() < 0.01, "{name}: {found}, planted {line}");
    }
}

#[test]
fn a_bucket_never_gets_a_sharp_line_that_holds() {
    // 2000/s for good, more while a credit lasts: 20 k, 150 k and 600 k requests.
    for size in [20e3, 150e3, 600e3] {
        let spec = Spec { bucket: Some((size, 2000.0)), ..PLAIN };
        let n = runs(3);
        let mut caught = 0;
        for seed in 0..n {
            let played = play(spec, &[P99], seed, Nanos::secs(300));
            let is_sharp = line(&played).is_some_and(|line| line.converged && line.low > 2000.0);
            caught += u64::from(!is_sharp || breaks(&played.held).is_some());
        }
        println!("bucket of {size}: {caught} of {n} caught");
        assert!(caught * 100 >= n * 95, "{size}: {caught} of {n}");
    }
}

#[test]
fn a_device_that_sleeps_has_its_line_and_no_rate_is_an_answer() {
    let spec = Spec { sleeps: Some((2e-3, 6e-3)), ..PLAIN };
    let played = play(spec, &[P99], 1, Nanos::ZERO);
    let found = line(&played).unwrap();
    assert!((4200.0..4500.0).contains(&found.rate), "{found:?}");
    // Half of the requests take longer than this, at any rate.
    let played = play(PLAIN, &[(0.7e-3, 0.01)], 1, Nanos::ZERO);
    assert!(matches!(played.found, Found::None(_)), "{:?}", played.found);
    // And nothing is late.
    let played = play(Spec { mean: 1e-7, ..PLAIN }, &[(1.0, 0.5)], 1, Nanos::ZERO);
    assert!(matches!(played.found, Found::Above(_)), "{:?}", played.found);
}

#[test]
fn the_limit_that_binds_is_named() {
    let n = runs(3);
    let mut right = 0;
    for seed in 0..n {
        // The second is far away.
        let played = play(PLAIN, &[P99, (50e-3, 0.001)], seed, Nanos::ZERO);
        let first = line(&played).map(|line| line.first);
        // The first is.
        let other = play(PLAIN, &[(50e-3, 0.01), P999], seed, Nanos::ZERO);
        right += u64::from(first == Some(0) && line(&other).map(|line| line.first) == Some(1));
    }
    println!("the limit that binds: {right} of {n} named");
    assert!(right * 100 >= n * 75, "{right} of {n}");
}

#[test]
fn a_visit_is_ten_times_as_long_as_the_longest_limit() {
    let bounds = |within| vec![Allowed { allowance: 0.01, requests: 1.0, within }];
    let time = |within| Ladder::new(bounds(within), 3, Nanos::ZERO).next().unwrap().time;
    assert_eq!(time(Nanos::secs(1)), Nanos::secs(10));
    assert!(time(Nanos::millis(5)) < Nanos::secs(10));
}

#[test]
fn where_nothing_holds_the_lowest_rate_is_named() {
    let bounds = vec![Allowed { allowance: 0.01, requests: 1.0, within: Nanos::ZERO }];
    let mut ladder = Ladder::new(bounds, 3, Nanos::ZERO);
    while ladder.next().is_some() {
        ladder.add(&Seen { counts: vec![(100.0, 100.0)], growth: 0.0 });
    }
    let Found::None(load) = ladder.found() else { panic!("{:?}", ladder.found()) };
    assert!(load.per_second() < 21.0, "{load}");
}

#[test]
fn the_same_visits_give_the_same_way() {
    let bounds = vec![Allowed { allowance: 0.01, requests: 1.0, within: Nanos::ZERO }];
    let way = || {
        let mut device = Device::new(PLAIN, 1);
        let mut ladder = Ladder::new(bounds.clone(), 3, Nanos::ZERO);
        let mut steps = Vec::new();
        while let Some(step) = ladder.next().filter(|_| steps.len() < 60) {
            steps.push(step);
            let time = step.time.as_secs_f64();
            ladder.add(&device.seen(step.load.per_second(), 0.5, time, &[P99]));
        }
        (steps, ladder.found())
    };
    assert_eq!(way(), way());
    let load = Load::new(4265.4321).unwrap();
    assert_eq!(load.to_string().parse().ok().and_then(Load::new), Some(load));
}
