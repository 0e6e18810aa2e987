//! Comparisons: false alarms under drift, coverage, power, many cells, looking twice.
//!
//! A measurement is a logarithm: the truth, noise of 3 %, and what the session adds. Sequential
//! designs measure all of A, then all of B; blocks measure both, in the order of a coin.

use explain::compare::{Doubt, Method, Outcome, Terms, Verdict, compare_blocks, compare_grid};
use stats::Random;
use stats::interval::plain;
use stats::paired::{Contrast, hodges_lehmann, level_of_two_looks, paired_t, signed_rank_p, welch};

use crate::Bound::{AtLeast, AtMost, Within};
use crate::processes::Autoregressive;
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "compare-false-alarms",
        about: "A against A in blocks: how often the signed ranks reject, and cover a planted ratio",
        run: false_alarms,
    },
    Proof {
        name: "compare-sequential",
        about: "A against A, all of A first: what drift does to tests that ignore it",
        run: sequential,
    },
    Proof {
        name: "compare-power",
        about: "5 % planted: how often it is found, and how wide the interval is",
        run: power,
    },
    Proof {
        name: "compare-grid",
        about: "84 cells of A against A: at least one false difference in the grid",
        run: grid,
    },
    Proof { name: "compare-margin", about: "verdicts about a margin of 3 %", run: margins },
    Proof { name: "compare-peeking", about: "A against A, looked at more than once", run: peeking },
    Proof {
        name: "compare-bad-runs",
        about: "a few odd runs: whether it is said that they carry the difference",
        run: bad_runs,
    },
];

/// Standard deviation of one measurement's logarithm.
const NOISE: f64 = 0.03;
/// Growth of all logarithms over a whole session.
const DRIFT: f64 = 0.05;
/// Standard deviation of the slow environment, and its correlation from one slot to the next.
const SLOW: f64 = 0.03;
const SLOW_RHO: f64 = 0.9;
/// Share of runs that go badly, and what they make of a rate.
const BAD_SHARE: f64 = 0.10;
const BAD: (f64, f64) = (0.45, 0.60);
/// Resamples of a bootstrap.
const RESAMPLES: usize = 400;

/// What a session adds to the noise.
#[derive(Clone, Copy, Debug, Default)]
struct Session {
    drift: bool,
    slow: bool,
    bad: bool,
}

const QUIET: Session = Session { drift: false, slow: false, bad: false };
const DRIFTING: Session = Session { drift: true, ..QUIET };
const SLOWLY: Session = Session { slow: true, ..QUIET };
const ROUGH: Session = Session { drift: true, slow: true, bad: false };
const BAD_RUNS: Session = Session { bad: true, ..QUIET };

/// What is measured in the slots of a session, one after the other, if nothing else differs.
fn slots(session: Session, count: usize, random: &mut Random) -> Vec<f64> {
    let mut slow = Autoregressive::new(SLOW_RHO, random);
    let step = DRIFT / (count as f64 - 1.0);
    let each = (0..count).map(|k| {
        let mut value = NOISE * random.normal();
        if session.drift {
            value += step * k as f64;
        }
        if session.slow {
            value += SLOW * slow.next(random);
        }
        if session.bad && random.unit() < BAD_SHARE {
            value += (BAD.0 + (BAD.1 - BAD.0) * random.unit()).ln();
        }
        value
    });
    each.collect()
}

/// Differences of so many blocks, B being better by `effect`.
fn blocks(session: Session, n: usize, effect: f64, random: &mut Random) -> Vec<f64> {
    let slots = slots(session, 2 * n, random);
    let pairs = slots.chunks_exact(2);
    let signed = pairs.map(|pair| match random.below(2) {
        0 => pair[1] - pair[0],
        _ => pair[0] - pair[1],
    });
    signed.map(|d| d + effect).collect()
}

/// How often something is so in so many tries, each with a generator of its own.
fn share(lot: &Lot, label: u64, tries: usize, mut so: impl FnMut(&mut Random) -> bool) -> usize {
    (0..tries).filter(|&k| so(&mut lot.random(&[label, k as u64]))).count()
}

fn rank_rejects(d: &[f64]) -> bool {
    signed_rank_p(d).is_some_and(|p| p <= 0.05)
}

fn t_rejects(d: &[f64]) -> bool {
    paired_t(d, 0.95).is_some_and(|e| e.is_beyond(0.0))
}

fn false_alarms(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(8_000, 1_000);
    let truth = 1.05_f64.ln();
    let sessions =
        [("quiet", QUIET), ("drift", DRIFTING), ("slow", SLOWLY), ("bad runs", BAD_RUNS)];
    let mut claims = Vec::new();
    for (k, (name, session)) in sessions.into_iter().enumerate() {
        for n in [6, 8, 10] {
            let label = (k * 100 + n) as u64;
            let rejected = share(lot, label, tries, |r| rank_rejects(&blocks(session, n, 0.0, r)));
            let what = format!("signed ranks reject, {name}, {n} blocks");
            claims.push(Claim::share(what, Within(0.02, 0.06), rejected, tries));
            let covered = share(lot, 1_000 + label, tries, |r| {
                let e = hodges_lehmann(&blocks(session, n, truth, r), 0.95);
                e.is_some_and(|e| e.low <= truth && truth <= e.high)
            });
            let what = format!("coverage of the true ratio, {name}, {n} blocks");
            claims.push(Claim::share(what, AtLeast(0.94), covered, tries));
            // What the program decides by: the mean below ten blocks, ranks if one is odd.
            let terms = Terms { margin: 0.0, ..Terms::default() };
            let called = share(lot, 2_000 + label, tries, |r| {
                compare_blocks(&blocks(session, n, 0.0, r), &terms).verdict == Verdict::Different
            });
            let what = format!("called different as decided, {name}, {n} blocks");
            claims.push(Claim::share(what, AtMost(0.06), called, tries));
        }
        let n = 10;
        let t = share(lot, 3_000 + k as u64, tries, |r| t_rejects(&blocks(session, n, 0.0, r)));
        let what = format!("paired t rejects, {name}, {n} blocks");
        claims.push(Claim::share(what, AtMost(0.06), t, tries));
    }
    for (n, seen) in [(3, 0.20), (5, 0.12), (10, 0.08)] {
        let tries = lot.effort.times(4_000, 500);
        let label = 4_000 + n as u64;
        let wrong = share(lot, label, tries, |r| {
            let d = blocks(QUIET, n, 0.0, r);
            bootstrap_rejects(|r| resampled_mean(&d, r), r)
        });
        let what = format!("percentile bootstrap rejects, quiet, {n} blocks");
        claims.push(Claim::share(what.clone(), AtMost(0.06), wrong, tries).of_broken());
        claims.push(Claim::share(
            format!("{what}: as often as known"),
            AtLeast(seen),
            wrong,
            tries,
        ));
    }
    claims
}

fn resampled_mean(values: &[f64], random: &mut Random) -> f64 {
    let pick = |_| values[random.below(values.len() as u64) as usize];
    (0..values.len()).map(pick).sum::<f64>() / values.len() as f64
}

/// Whether the middle 95 % of resampled statistics leave out zero.
fn bootstrap_rejects(mut statistic: impl FnMut(&mut Random) -> f64, random: &mut Random) -> bool {
    let mut all: Vec<f64> = (0..RESAMPLES).map(|_| statistic(random)).collect();
    all.sort_by(f64::total_cmp);
    let tail = RESAMPLES / 40;
    all[tail] > 0.0 || all[RESAMPLES - 1 - tail] < 0.0
}

/// All of A, then all of B.
fn one_after_the_other(session: Session, n: usize, random: &mut Random) -> (Vec<f64>, Vec<f64>) {
    let mut a = slots(session, 2 * n, random);
    let b = a.split_off(n);
    (a, b)
}

fn welch_of(a: &[f64], b: &[f64]) -> Option<Contrast> {
    Some(welch(&plain(a, 0.95)?, &plain(b, 0.95)?))
}

/// Mann and Whitney's U at 10 and 10: the table's 5 % limit is 23.
fn mann_whitney_rejects(a: &[f64], b: &[f64]) -> bool {
    let wins = a.iter().flat_map(|x| b.iter().filter(move |y| x > *y)).count();
    wins.min(a.len() * b.len() - wins) <= 23
}

/// A test of two sets of values; the resampling ones need random numbers.
type Test = fn(&[f64], &[f64], &mut Random) -> bool;

fn sequential(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(8_000, 1_000);
    let mut claims = Vec::new();
    for (k, (name, session)) in
        [("quiet", QUIET), ("drift", DRIFTING), ("slow", SLOWLY)].into_iter().enumerate()
    {
        let rejects = |label: u64, test: Test| {
            share(lot, label + k as u64, tries, |r| {
                let (a, b) = one_after_the_other(session, 10, r);
                test(&a, &b, r)
            })
        };
        let welch = rejects(10, |a, b, _| welch_of(a, b).is_some_and(|c| c.p_beyond(0.0) <= 0.05));
        let ranks = rejects(20, |a, b, _| mann_whitney_rejects(a, b));
        let boot = rejects(30, |a, b, r| {
            bootstrap_rejects(|r| resampled_mean(b, r) - resampled_mean(a, r), r)
        });
        let broken = session.drift || session.slow;
        for (test, count, known) in
            [("Welch's t", welch, 0.25), ("Mann-Whitney", ranks, 0.22), ("bootstrap", boot, 0.30)]
        {
            let what = format!("{test} rejects, {name}, all of A first");
            let claim = Claim::share(what.clone(), AtMost(0.06), count, tries);
            match (broken, test) {
                (true, _) => {
                    claims.push(claim.of_broken());
                    let what = format!("{what}: guards the simulation");
                    claims.push(Claim::share(what, AtLeast(known), count, tries));
                }
                (false, "bootstrap") => claims.push(claim.of_broken()),
                (false, _) => claims.push(claim),
            }
        }
    }
    claims
}

fn power(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(8_000, 1_000);
    let effect = 1.05_f64.ln();
    let mut claims = Vec::new();
    let mut found =
        |label: u64, what: &str, session: Session, n: usize, bounds: [crate::Bound; 2]| {
            for (test, rejects, bound) in [
                ("signed ranks find it", rank_rejects as fn(&[f64]) -> bool, bounds[0]),
                ("paired t finds it", t_rejects as fn(&[f64]) -> bool, bounds[1]),
            ] {
                let yes = share(lot, label, tries, |r| rejects(&blocks(session, n, effect, r)));
                claims.push(Claim::share(format!("{test}, {what}, {n} blocks"), bound, yes, tries));
            }
        };
    found(1, "quiet", QUIET, 10, [AtLeast(0.87), AtLeast(0.88)]);
    found(2, "drift and slow", ROUGH, 10, [AtLeast(0.83), AtLeast(0.85)]);
    found(3, "bad runs", BAD_RUNS, 10, [AtLeast(0.34), AtMost(0.20)]);
    found(4, "bad runs", BAD_RUNS, 20, [AtLeast(0.65), AtMost(0.22)]);
    found(5, "quiet", QUIET, 6, [AtMost(0.52), AtLeast(0.60)]);
    let t = share(lot, 4, tries, |r| t_rejects(&blocks(BAD_RUNS, 20, effect, r)));
    let what = "the mean alone finds it among bad runs, 20 blocks";
    claims.push(Claim::share(what, AtLeast(0.65), t, tries).of_broken());
    let terms = Terms { margin: 0.0, ..Terms::default() };
    let decided = share(lot, 5, tries, |r| {
        compare_blocks(&blocks(QUIET, 6, effect, r), &terms).verdict == Verdict::Different
    });
    claims.push(Claim::share("found as decided, quiet, 6 blocks", AtLeast(0.60), decided, tries));
    for (label, what, session, bound) in [
        (6, "quiet", QUIET, Within(0.027, 0.033)),
        (7, "drift and slow", ROUGH, Within(0.028, 0.035)),
        (8, "bad runs", BAD_RUNS, Within(0.15, 0.23)),
    ] {
        let width = |k: usize| {
            let mut random = lot.random(&[label, k as u64]);
            let e = hodges_lehmann(&blocks(session, 10, effect, &mut random), 0.95);
            e.map_or(f64::NAN, |e| e.half_width())
        };
        let mean = (0..tries).map(width).sum::<f64>() / tries as f64;
        let what = format!("half-width of the signed ranks' interval, {what}, 10 blocks");
        claims.push(Claim::number(what, bound, mean));
    }
    claims
}

/// Differences of a grid's cells, block by block: the session moves all cells alike.
fn grid_blocks(n: usize, cells: usize, unequal: f64, random: &mut Random) -> Vec<Vec<f64>> {
    let of_cell: Vec<f64> = (0..cells).map(|_| (unequal * random.normal()).exp()).collect();
    let shared = blocks(Session { drift: true, slow: true, bad: false }, n, 0.0, random);
    let noise = NOISE * std::f64::consts::SQRT_2;
    let cell = |scale: &f64| {
        // What all cells share is small beside a cell's own noise, as between near visits.
        shared.iter().map(|s| 0.3 * s + noise * scale * random.normal()).collect()
    };
    of_cell.iter().map(cell).collect()
}

fn grid(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(3_000, 200);
    let terms = Terms { margin: 0.0, ..Terms::default() };
    let any = |outcomes: &[Outcome], so: fn(&Outcome) -> bool| outcomes.iter().any(so);
    let mut claims = Vec::new();
    for (label, what, unequal) in
        [(1, "equal noise", 0.0), (2, "log-sd 0.5", 0.5), (3, "log-sd 1", 1.0)]
    {
        let outcomes: Vec<Vec<Outcome>> = (0..tries)
            .map(|k| {
                let mut random = lot.random(&[label, k as u64]);
                compare_grid(&grid_blocks(10, 84, unequal, &mut random), &terms)
            })
            .collect();
        let wrong =
            outcomes.iter().filter(|all| any(all, |o| o.verdict == Verdict::Different)).count();
        let what = format!("a false difference among 84 cells, {what}");
        // Four borrowed degrees are too many where cells truly differ by factors of three.
        let bound = if unequal < 1.0 { AtMost(0.06) } else { AtMost(0.10) };
        claims.push(Claim::share(what.clone(), bound, wrong, tries));
        let by_t = outcomes.iter().flatten().all(|o| o.method == Method::PairedT);
        claims.push(Claim::share("ranks left aside in 84 cells", AtLeast(1.0), by_t.into(), 1));
        let naive = outcomes
            .iter()
            .filter(|all| {
                any(all, |o| {
                    // Uncorrected: the interval of the cell alone.
                    o.ratio.is_some_and(|r| r.low > Some(1.0) || r.high.is_some_and(|h| h < 1.0))
                })
            })
            .count();
        let what = format!("{what}, each by its own interval");
        claims.push(Claim::share(what, AtMost(0.06), naive, tries).of_broken());
    }
    // Holm over signed ranks: at ten blocks nothing could ever be found.
    let found = share(lot, 9, tries, |r| {
        let mut cells = grid_blocks(10, 84, 0.0, r);
        cells[7].iter_mut().for_each(|d| *d += 0.10);
        compare_grid(&cells, &terms)[7].verdict == Verdict::Different
    });
    claims.push(Claim::share("10 % in one of 84 cells is found", AtLeast(0.90), found, tries));
    let ranks = share(lot, 9, tries, |r| {
        let mut cells = grid_blocks(10, 84, 0.0, r);
        cells[7].iter_mut().for_each(|d| *d += 0.10);
        let p: Vec<f64> = cells.iter().map(|d| signed_rank_p(d).unwrap_or(1.0)).collect();
        stats::multiple::holm(&p)[7] <= 0.05
    });
    let what = "10 % in one of 84 cells is found by signed ranks";
    claims.push(Claim::share(what, AtLeast(0.90), ranks, tries).of_broken());
    claims
}

fn margins(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(8_000, 1_000);
    let terms = Terms::default();
    let count = |label: u64, n: usize, effect: f64, wanted: Verdict| {
        share(lot, label, tries, |r| {
            compare_blocks(&blocks(QUIET, n, effect.ln_1p(), r), &terms).verdict == wanted
        })
    };
    let claim = |what: &str, bound, yes| Claim::share(what, bound, yes, tries);
    vec![
        claim(
            "+1 % called different, 20 blocks",
            AtMost(0.01),
            count(1, 20, 0.01, Verdict::Different),
        ),
        claim("+1 % called the same, 20 blocks", AtLeast(0.55), count(1, 20, 0.01, Verdict::Same)),
        claim(
            "+1 % called the same, 10 blocks",
            Within(0.18, 0.30),
            count(2, 10, 0.01, Verdict::Same),
        ),
        claim(
            "+3 %, the margin itself, called different, 10 blocks",
            AtMost(0.035),
            count(3, 10, 0.03, Verdict::Different),
        ),
        claim(
            "+3 %, the margin itself, called the same, 20 blocks",
            AtMost(0.06),
            count(4, 20, 0.03, Verdict::Same),
        ),
        claim(
            "+10 % called different, 10 blocks",
            AtLeast(0.95),
            count(5, 10, 0.10, Verdict::Different),
        ),
        claim(
            "no difference called the same, 40 blocks",
            AtLeast(0.98),
            count(6, 40, 0.0, Verdict::Same),
        ),
    ]
}

fn peeking(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(8_000, 1_000);
    let all = |r: &mut Random| blocks(QUIET, 30, 0.0, r);
    let peeked = share(lot, 1, tries, |r| {
        let d = all(r);
        (6..=30).any(|n| t_rejects(&d[..n]))
    });
    let wide = share(lot, 2, tries, |r| {
        let d = all(r);
        let narrow = |n: &usize| paired_t(&d[..*n], 0.95).is_some_and(|e| e.half_width() <= 0.02);
        t_rejects(&d[..(6..=30).find(narrow).unwrap_or(30)])
    });
    let level = level_of_two_looks(0.95).unwrap_or(0.0);
    let twice = |rejects: fn(&[f64], f64) -> bool, label| {
        share(lot, label, tries, |r| {
            let d = blocks(QUIET, 20, 0.0, r);
            rejects(&d[..10], level) || rejects(&d, level)
        })
    };
    let ranks = twice(|d, level| signed_rank_p(d).is_some_and(|p| p <= level), 3);
    let means = twice(|d, level| paired_t(d, 1.0 - level).is_some_and(|e| e.is_beyond(0.0)), 4);
    let found = |label, first: usize| {
        share(lot, label, tries, |r| {
            let d = blocks(QUIET, 20, 1.05_f64.ln(), r);
            signed_rank_p(&d[..first]).is_some_and(|p| p <= level)
        })
    };
    vec![
        Claim::share("rejects at some look from 6 to 30", AtMost(0.06), peeked, tries).of_broken(),
        Claim::share("rejects at some look: as often as known", AtLeast(0.19), peeked, tries),
        Claim::share("rejects when stopped on a width of 2 %", AtMost(0.06), wide, tries)
            .of_broken(),
        Claim::share(
            "two looks at Pocock's level, signed ranks",
            Within(0.03, 0.055),
            ranks,
            tries,
        ),
        Claim::share("two looks at Pocock's level, mean", Within(0.03, 0.06), means, tries),
        Claim::share("5 % found at the first look of 10", AtLeast(0.75), found(5, 10), tries),
        Claim::share("5 % found at the second of 20", AtLeast(0.98), found(6, 20), tries),
    ]
}

fn bad_runs(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(8_000, 1_000);
    let says = |outcome: &Outcome| outcome.doubts.contains(&Doubt::FewBadRuns);
    let terms = Terms::default();
    let mut claims = Vec::new();
    for n in [6, 10, 20] {
        let clean = share(lot, n as u64, tries, |r| {
            says(&compare_blocks(&blocks(QUIET, n, 0.0, r), &terms))
        });
        let what = format!("said of clean runs, {n} blocks");
        claims.push(Claim::share(what, AtMost(0.02), clean, tries));
        let planted = share(lot, 100 + n as u64, tries, |r| {
            let mut d = blocks(QUIET, n, 0.0, r);
            d[n / 2] += (BAD.0 + (BAD.1 - BAD.0) * r.unit()).ln();
            says(&compare_blocks(&d, &terms))
        });
        let what = format!("said where one of B's {n} went badly");
        claims.push(Claim::share(what, AtLeast(0.85), planted, tries));
    }
    claims
}
