//! Steady state and write cliffs.

use stats::Random;
use stats::changepoint::changes;
use stats::steady::{Cliff, Piece, Volume, cliffs, last_half, snia};
use units::Bytes;

use crate::Bound::{AtLeast, AtMost, Within};
use crate::processes::{Autoregressive, Process};
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
    Proof {
        name: "steady-cliff-early",
        about: "a fall to 0.35 after 2.05 to 50 tenths of a second of a run of 2 to 10 s",
        run: early_cliff,
    },
    Proof {
        name: "steady-no-cliff",
        about: "rates that never fall for good: drift, two states, stutters, noise that lasts",
        run: no_cliff,
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
        let (mut near, mut inside, mut by_time, mut once, mut none) = (0, 0, 0, 0, 0);
        for time in 0..times as u64 {
            let mut random = lot.random(&[row, time]);
            let pieces = writes(rho, Some(0.4), &mut random);
            let total: f64 = pieces.iter().map(|piece| piece.bytes).sum();
            let found = cliffs(&pieces);
            once += usize::from(found.len() == 1);
            let is_near = |cliff: &Cliff| (cliff.at_bytes / total - 0.4).abs() <= 0.02;
            near += usize::from(found.len() == 1 && is_near(&found[0]));
            inside += usize::from(found.len() == 1 && holds(&found[0], 0.4 * TOTAL));
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
        claims.push(Claim::share(of("the bounds hold the place"), AtLeast(0.95), inside, times));
        claims.push(Claim::share(of("no cliff, none called"), AtLeast(0.99), none, times));
        claims.push(
            Claim::share(of("located by the clock"), AtLeast(0.95), by_time, times).of_broken(),
        );
    }
    claims
}

fn holds(cliff: &Cliff, truth: f64) -> bool {
    (cliff.low_bytes..=cliff.high_bytes).contains(&truth)
}

/// As a short form has it: rounds of tenths of a second, and the first of them see all there is
/// to be seen of the old rate.
fn early_cliff(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 500);
    let mut claims = Vec::new();
    for (row, (fast, slow, noise)) in (0u64..).zip([
        (2.05, 18, 0.02),
        (2.5, 18, 0.05),
        (10.3, 10, 0.02),
        (10.3, 10, 0.05),
        (50.5, 50, 0.1),
    ]) {
        let (mut found, mut inside, mut levels, mut width, mut coarse) = (0, 0, 0, 0.0, 0);
        for time in 0..times as u64 {
            let mut random = lot.random(&[row, time]);
            let pieces = fall(fast, slow, noise, &mut random);
            // Seconds of it, as one would take them for a run of minutes.
            let whole = |ten: &[Piece]| Piece {
                bytes: ten.iter().map(|piece| piece.bytes).sum(),
                seconds: ten.iter().map(|piece| piece.seconds).sum(),
            };
            let seconds: Vec<Piece> = pieces.chunks(10).map(whole).collect();
            coarse += usize::from(!cliffs(&seconds).is_empty());
            let [cliff] = cliffs(&pieces)[..] else { continue };
            found += 1;
            inside += usize::from(holds(&cliff, fast));
            let is_near = |seen: f64, truth: f64| (seen / truth - 1.0).abs() <= 0.1;
            levels += usize::from(is_near(cliff.before, 1.0) && is_near(cliff.after, 0.35));
            width += (cliff.high_bytes - cliff.low_bytes) / fast;
        }
        let of = |what: &str| format!("after {fast} pieces, noise {noise}: {what}");
        // Two and a half pieces of some noise are the least that can tell anything.
        let least = if fast == 2.5 { 0.8 } else { 0.95 };
        claims.push(Claim::share(of("found once"), AtLeast(least), found, times));
        claims.push(Claim::share(of("the bounds hold the place"), AtLeast(0.95), inside, found));
        claims.push(Claim::share(of("both levels within 10 %"), AtLeast(0.9), levels, found));
        let mean = width / found.max(1) as f64;
        claims.push(Claim::number(of("width of the bounds, by the place"), AtMost(0.6), mean));
        if fast < 20.0 {
            let naive = of("found in seconds");
            claims.push(Claim::share(naive, AtLeast(0.95), coarse, times).of_broken());
        }
    }
    claims
}

/// Rate 1 for so many pieces' bytes, then 0.35.
fn fall(fast: f64, slow: usize, noise: f64, random: &mut Random) -> Vec<Piece> {
    let mut process = Autoregressive::new(0.3, random);
    let (mut written, mut pieces) = (0.0, Vec::new());
    while pieces.len() < fast.ceil() as usize + slow {
        let speed = (noise * process.next(random)).exp();
        let time = ((fast - written) / speed).clamp(0.0, 1.0);
        let bytes = speed * (time + 0.35 * (1.0 - time));
        pieces.push(Piece { bytes, seconds: 1.0 });
        written += bytes;
    }
    pieces
}

fn no_cliff(lot: &Lot) -> Vec<Claim> {
    let times = lot.effort.times(4_000, 400);
    let mut claims = Vec::new();
    let named = [
        ("white noise of 5 %", Process::Red(0.0)),
        ("noise with rho 0.8", Process::Red(0.8)),
        ("noise with rho 0.95", Process::Red(0.95)),
        ("two states a few percent apart", Process::Regimes),
        ("a part that moves slowly", Process::Mixture),
    ];
    let falsely = |row: u64, make: &dyn Fn(&mut Random) -> Vec<f64>| {
        let called = (0..times as u64).filter(|&time| {
            let rates = make(&mut lot.random(&[row, time]));
            let piece = |rate: &f64| Piece { bytes: rate.max(0.0), seconds: 1.0 };
            !cliffs(&rates.iter().map(piece).collect::<Vec<_>>()).is_empty()
        });
        called.count()
    };
    for (row, (name, process)) in (10u64..).zip(named) {
        for n in [20, 600] {
            let called = falsely(row * 1000 + n as u64, &|random| process.visit(n, random));
            let name = format!("{name}, {n} pieces: one called");
            claims.push(Claim::share(name, AtMost(0.005), called, times));
        }
    }
    let drift = |per_piece: f64| {
        move |random: &mut Random| -> Vec<f64> {
            let mut process = Autoregressive::new(0.3, random);
            let level = |k: u32| (-per_piece * f64::from(k) + 0.02 * process.next(random)).exp();
            (0..100).map(level).collect()
        }
    };
    // The last ends at a twentieth of its rate: as deep as any cliff, and hardly less steep.
    for (row, per_piece, most) in [(2u64, 0.002, 0.005), (3, 0.01, 0.005), (9, 0.03, 0.05)] {
        let name = format!("a drift of {per_piece} a piece: one called");
        claims.push(Claim::share(name, AtMost(most), falsely(row, &drift(per_piece)), times));
    }
    // Half as fast for one to eight pieces, every 30 in the mean, as where a drive tidies up.
    let stutter = |random: &mut Random| -> Vec<f64> {
        let mut left = 0.0;
        let mut next = || {
            if left <= 0.0 && random.unit() < 1.0 / 30.0 {
                left = 1.0 + (8.0 * random.unit()).floor();
            }
            left -= 1.0;
            let level = if left >= 0.0 { 0.5 } else { 1.0 };
            level * (0.03 * random.normal()).exp()
        };
        (0..200).map(|_| next()).collect()
    };
    let called = falsely(8, &stutter);
    // The last one may still last, or the first have been the last.
    claims.push(Claim::share("stutters: one called", AtMost(0.05), called, times));
    claims
}

/// The same change point against seconds: the share of the run at which it comes.
fn by_clock(pieces: &[Piece]) -> Option<f64> {
    let ln_rates: Vec<f64> =
        pieces.iter().map(|piece| (piece.bytes / piece.seconds).ln()).collect();
    let point = changes(&ln_rates, 5)?.points().next()?;
    Some(point as f64 / pieces.len() as f64)
}

const TOTAL: f64 = 100.0;

/// Seconds of writes with a fall to half at a share of all bytes.
fn writes(rho: f64, fall: Option<f64>, random: &mut Random) -> Vec<Piece> {
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
        pieces.push(Piece { bytes, seconds: 1.0 });
        written += bytes;
    }
    pieces
}
