//! Steady state and write cliffs.

use stats::Random;
use stats::changepoint::changes;
use stats::steady::{Volume, cliffs, last_half, snia};
use units::Bytes;

use crate::Bound::{AtLeast, AtMost, Within};
use crate::processes::Autoregressive;
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "steady-decay",
        about: "rounds that decay to their rest, with noise of 2 %",
        run: decay,
    },
    Proof {
        name: "steady-plateau",
        about: "a plateau before a cliff, which no window shows: only what was written does",
        run: plateau,
    },
    Proof {
        name: "steady-cliff",
        about: "a fall to half at 40 % of what is written, noise of 3 %",
        run: cliff,
    },
];

/// As long as a series may become.
const ROUNDS_MAX: usize = 100;

/// First round count at which `accepts`, and how much the mean of the last five is above rest.
fn accepted(
    level: impl Fn(usize) -> f64,
    noise: f64,
    random: &mut Random,
    accepts: impl Fn(&[f64]) -> bool,
) -> Option<(usize, f64)> {
    let mut rounds = Vec::new();
    for round in 0..ROUNDS_MAX {
        rounds.push(level(round) * (noise * random.normal()).exp());
        if accepts(&rounds) {
            let n = rounds.len();
            let truth = (n - 5..n).map(&level).sum::<f64>() / 5.0;
            return Some((n, truth - 1.0));
        }
    }
    None
}

fn by_snia(rounds: &[f64]) -> bool {
    snia(rounds).is_some_and(|test| test.holds())
}

fn by_both(rounds: &[f64]) -> bool {
    by_snia(rounds) && last_half(rounds).is_some_and(|test| test.holds())
}

fn decay(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 1_000);
    let mut claims = Vec::new();
    for (row, (height, tau)) in (0u64..).zip([(4.0, 2.0), (4.0, 5.0), (1.0, 10.0), (0.5, 20.0)]) {
        let level = |round: usize| 1.0 + height * (-(round as f64) / tau).exp();
        let (mut alone, mut both) = (Accepted::default(), Accepted::default());
        for time in 0..times as u64 {
            let mut random = lot.random(&[1, row, time]);
            alone.add(accepted(level, 0.02, &mut random, by_snia));
            both.add(accepted(level, 0.02, &mut random, by_both));
        }
        let of = |what: &str| format!("decay of {height}, {tau} rounds: {what}");
        if tau <= 5.0 {
            claims.push(Claim::number(of("bias left"), AtMost(0.02), both.bias()));
            let naive = Claim::number(of("SNIA alone, bias left"), AtMost(0.02), alone.bias());
            claims.push(naive.of_broken());
            claims.push(Claim::number(of("rounds needed"), AtMost(45.0), both.rounds()));
        } else {
            // What is slower than the window no window excludes: these are what is printed as
            // the horizon, not what is prevented.
            let bias = both.bias();
            claims.push(Claim::number(of("bias left"), AtMost(0.35), bias));
            let naive = Claim::number(of("SNIA alone, bias left"), AtMost(0.35), alone.bias());
            claims.push(naive.of_broken());
        }
    }
    let (mut at_rest, mut noisy) = (0, 0);
    for time in 0..times as u64 {
        let mut random = lot.random(&[2, time]);
        let both = accepted(|_| 1.0, 0.02, &mut random, by_both);
        at_rest += usize::from(both.is_some_and(|(rounds, _)| rounds <= 12));
        let rounds: Vec<f64> = (0..5).map(|_| 1.0 + 0.10 * random.normal()).collect();
        noisy += usize::from(by_snia(&rounds));
    }
    claims.push(Claim::share(
        "at rest, noise of 2 %: accepted by round 12",
        AtLeast(0.95),
        at_rest,
        times,
    ));
    claims.push(Claim::share(
        "at rest, noise of 10 %: five rounds accepted by SNIA's test, which is one of noise too",
        Within(0.24, 0.34),
        noisy,
        times,
    ));
    claims
}

#[derive(Default)]
struct Accepted {
    times: usize,
    rounds: usize,
    bias: f64,
}

impl Accepted {
    fn add(&mut self, accepted: Option<(usize, f64)>) {
        if let Some((rounds, bias)) = accepted {
            self.times += 1;
            self.rounds += rounds;
            self.bias += bias;
        }
    }

    fn bias(&self) -> f64 {
        self.bias / self.times.max(1) as f64
    }

    fn rounds(&self) -> f64 {
        self.rounds as f64 / self.times.max(1) as f64
    }
}

/// A drive of 64 GiB, a round writes 2 GiB before its clean space is used up and half after it.
fn plateau(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 1_000);
    let active = Bytes::gib(64);
    let (mut ours, mut windows) = (0, 0);
    for time in 0..times as u64 {
        let mut random = lot.random(&[time]);
        // A drive's spare space and its caches: up to twice over, never beyond.
        let cliff = 64.0 * (0.5 + 1.49 * random.unit());
        let early = |volume_rule: bool, random: &mut Random| {
            let (mut rounds, mut written) = (Vec::new(), 0.0);
            for _ in 0..ROUNDS_MAX {
                let rate = if written < cliff { 2.0 } else { 1.0 };
                rounds.push(rate * (0.02 * random.normal()).exp());
                written += rate;
                let volume =
                    Volume { written: Bytes::new((written * 1.073_741_824e9) as u64), active };
                if by_both(&rounds) && (volume.holds() || !volume_rule) {
                    return written < cliff;
                }
            }
            false
        };
        ours += usize::from(early(true, &mut random));
        windows += usize::from(early(false, &mut random));
    }
    vec![
        Claim::share("accepted before the cliff", AtMost(0.0), ours, times),
        Claim::share("windows alone: accepted before the cliff", AtMost(0.0), windows, times)
            .of_broken(),
    ]
}

fn cliff(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 500);
    let mut claims = Vec::new();
    for (row, rho) in (0u64..).zip([0.0, 0.5]) {
        let (mut near, mut by_time, mut once, mut none) = (0, 0, 0, 0);
        for time in 0..times as u64 {
            let mut random = lot.random(&[row, time]);
            let pieces = writes(rho, Some(0.4), &mut random);
            let total: f64 = pieces.iter().map(|piece| piece.0).sum();
            let found = cliffs(&pieces);
            once += usize::from(found.len() == 1);
            near +=
                usize::from(found.len() == 1 && (found[0].at_bytes / total - 0.4).abs() <= 0.02);
            by_time += usize::from(by_clock(&pieces).is_some_and(|at| (at - 0.4).abs() <= 0.02));
            none += usize::from(cliffs(&writes(rho, None, &mut random)).is_empty());
        }
        let of = |what: &str| format!("rho {rho}: {what}");
        claims.push(Claim::share(of("found once"), AtLeast(0.95), once, times));
        claims.push(Claim::share(
            of("located within 2 % of the bytes"),
            AtLeast(0.95),
            near,
            times,
        ));
        claims.push(Claim::share(of("no cliff, none called"), AtLeast(0.99), none, times));
        claims.push(
            Claim::share(of("located by the clock"), AtLeast(0.95), by_time, times).of_broken(),
        );
    }
    claims
}

/// The same change point against seconds: the share of the run at which it comes.
fn by_clock(pieces: &[(f64, f64)]) -> Option<f64> {
    let ln_rates: Vec<f64> = pieces.iter().map(|(bytes, seconds)| (bytes / seconds).ln()).collect();
    let point = changes(&ln_rates, 5)?.points().next()?;
    Some(point as f64 / pieces.len() as f64)
}

/// Seconds of writes, as (bytes, seconds), with a fall to half at a share of all bytes.
fn writes(rho: f64, fall: Option<f64>, random: &mut Random) -> Vec<(f64, f64)> {
    const TOTAL: f64 = 100.0;
    let mut process = Autoregressive::new(rho, random);
    let (mut written, mut pieces) = (0.0, Vec::new());
    while written < TOTAL {
        let after = fall.is_some_and(|share| written >= share * TOTAL);
        let rate = if after { 0.5 } else { 1.0 };
        // A second in which the fall comes is partly fast.
        let mut bytes = rate * (0.03 * process.next(random)).exp();
        if let Some(edge) = fall.map(|share| share * TOTAL).filter(|edge| written < *edge)
            && written + bytes > edge
        {
            bytes = (edge - written) + (bytes - (edge - written)) / 2.0;
        }
        pieces.push((bytes, 1.0));
        written += bytes;
    }
    pieces
}
