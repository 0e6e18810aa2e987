//! Blocks of A against itself among those of a comparison: how often they alarm for nothing, and
//! what they find.
//!
//! A block is two visits, one after the other, in an order that a coin gives to two blocks at a time,
//! the second being the mirror of the first. Noise of a visit is 3 %, and so 4.2 % of a block.

use explain::compare::CONTROL_LEVEL;
use stats::Random;
use stats::control::{Block, Blocks, label, label_of_all, second};
use stats::multiple::holm;

use crate::Bound::{AtLeast, AtMost, Within};
use crate::processes::Autoregressive;
use crate::{Claim, Lot, Proof};

/// See [`crate::items`].
pub const PROOFS: &[Proof] = &[
    Proof {
        name: "control-false-alarms",
        about: "every tenth block A against A: how often that alarms although nothing is wrong",
        run: false_alarms,
    },
    Proof {
        name: "control-finds",
        about: "a label that is slower by itself, and a second visit that is slower than the first",
        run: finds,
    },
];

/// Standard deviation of one visit's logarithm.
const NOISE: f64 = 0.03;

/// What a session does to the visits.
#[derive(Clone, Copy, Debug)]
struct Disturbance {
    /// Growth of all logarithms over the session.
    drift: f64,
    /// Standard deviation of a slow environment.
    slow: f64,
    /// Share of visits at half speed.
    bad: f64,
    /// Standard deviation of A's and of B's visits.
    noise: (f64, f64),
    /// What the second label has more than the first, whatever it stands for.
    label: f64,
    /// What a visit has more for being the second of its block.
    second: f64,
}

const QUIET: Disturbance =
    Disturbance { drift: 0.0, slow: 0.0, bad: 0.0, noise: (NOISE, NOISE), label: 0.0, second: 0.0 };

/// A cell of so many blocks of A and B, B being better by 5 %, and every tenth A against A.
fn cell(session: Disturbance, others: u32, random: &mut Random) -> Blocks {
    let controls = (others - 1) / 9;
    let all = others + controls;
    let mut slow = Autoregressive::new(0.9, random);
    let mut blocks = Blocks::default();
    let mut coins = [false, false];
    for number in 0..all {
        let again = number % 10 == 9;
        let before = if again { blocks.again.len() } else { blocks.others.len() };
        let coin = &mut coins[usize::from(again)];
        // A coin for the first of two, and its mirror for the second.
        *coin = if before.is_multiple_of(2) { random.below(2) == 0 } else { !*coin };
        let order = if *coin { 1.0 } else { -1.0 };
        let mut visit = |place: u32, noise: f64| {
            let at = f64::from(2 * number + place) / f64::from(2 * all - 1);
            let bad = if random.unit() < session.bad { 0.5_f64.ln() } else { 0.0 };
            let slow = session.slow * slow.next(random);
            let second = session.second * f64::from(place);
            noise * random.normal() + session.drift * at + slow + bad + second
        };
        let (a, b) = (session.noise.0, if again { session.noise.0 } else { session.noise.1 });
        let difference = if *coin {
            let first = visit(0, a);
            visit(1, b) - first
        } else {
            let first = visit(0, b);
            first - visit(1, a)
        };
        let effect = if again { 0.0 } else { 1.05_f64.ln() };
        let block = Block { number, difference: difference + effect + session.label, order };
        if again { blocks.again.push(block) } else { blocks.others.push(block) }
    }
    blocks
}

fn of_label(blocks: &Blocks) -> bool {
    label(blocks).is_some_and(|found| found.p_beyond(0.0) <= CONTROL_LEVEL)
}

fn of_order(blocks: &Blocks) -> bool {
    second(std::slice::from_ref(blocks)).is_some_and(|found| found.p_beyond(0.0) <= CONTROL_LEVEL)
}

/// What one might do without a fit: is A against A further apart than the blocks' own scatter?
fn by_scatter(blocks: &Blocks) -> bool {
    let values: Vec<f64> = blocks.others.iter().map(|b| b.difference).collect();
    let Some(mean) = stats::interval::plain(&values, 1.0 - CONTROL_LEVEL) else { return false };
    let n = blocks.again.len() as f64;
    let again = blocks.again.iter().map(|b| b.difference).sum::<f64>() / n;
    // The interval is of the mean of all blocks; these are fewer.
    again.abs() > mean.half_width * (values.len() as f64 / n).sqrt()
}

fn share(lot: &Lot, label: u64, tries: usize, mut so: impl FnMut(&mut Random) -> bool) -> usize {
    (0..tries).filter(|&k| so(&mut lot.random(&[label, k as u64]))).count()
}

fn false_alarms(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(40_000, 4_000);
    let sessions = [
        ("quiet", QUIET, 0.012),
        ("drift 5 %", Disturbance { drift: 0.05, ..QUIET }, 0.012),
        ("slow AR(0.9)", Disturbance { slow: 0.03, ..QUIET }, 0.012),
        ("B twice as noisy", Disturbance { noise: (NOISE, 2.0 * NOISE), ..QUIET }, 0.012),
        ("A twice as noisy", Disturbance { noise: (2.0 * NOISE, NOISE), ..QUIET }, 0.04),
        ("10 % bad runs", Disturbance { bad: 0.1, ..QUIET }, 0.06),
    ];
    let mut claims = Vec::new();
    for (k, (name, session, most)) in (0u64..).zip(sessions) {
        for blocks in [10, 20] {
            let label = 100 * k + u64::from(blocks);
            let wrong = share(lot, label, tries, |r| of_label(&cell(session, blocks, r)));
            let what = format!("A differs from itself, {name}, {blocks} blocks");
            claims.push(Claim::share(what, AtMost(most), wrong, tries));
        }
        let wrong = share(lot, 1_000 + k, tries, |r| of_order(&cell(session, 10, r)));
        let what = format!("the second visit differs from the first, {name}, 10 blocks");
        claims.push(Claim::share(what, AtMost(0.012), wrong, tries));
    }
    let tries = lot.effort.times(2_000, 200);
    let grid = |r: &mut Random| {
        let cells: Vec<Blocks> = (0..84).map(|_| cell(QUIET, 10, r)).collect();
        let p: Vec<f64> = cells.iter().filter_map(label).map(|found| found.p_beyond(0.0)).collect();
        let all = label_of_all(&cells).is_some_and(|found| found.p_beyond(0.0) <= CONTROL_LEVEL);
        let order = second(&cells).is_some_and(|found| found.p_beyond(0.0) <= CONTROL_LEVEL);
        (p.len(), all || holm(&p).into_iter().any(|p| p <= CONTROL_LEVEL), order, p)
    };
    let wrong = share(lot, 2_000, tries, |r| grid(r).1);
    let what = "A differs from itself, 84 cells, over all or in any";
    claims.push(Claim::share(what, AtMost(0.022), wrong, tries));
    let wrong = share(lot, 2_001, tries, |r| grid(r).2);
    let what = "the second visit differs from the first, 84 cells";
    claims.push(Claim::share(what, AtMost(0.012), wrong, tries));
    let wrong = share(lot, 2_000, tries, |r| grid(r).3.iter().any(|p| *p <= CONTROL_LEVEL));
    let what = "A differs from itself, 84 cells, each by itself";
    claims.push(Claim::share(what, AtMost(0.022), wrong, tries).of_broken());
    claims
}

fn finds(lot: &Lot) -> Vec<Claim> {
    let tries = lot.effort.times(10_000, 1_000);
    let mut claims = Vec::new();
    let biased = |label: f64| Disturbance { label, ..QUIET };
    for (k, (bias, blocks, bound)) in (0u64..).zip([
        (0.05, 10, Within(0.02, 0.10)),
        (0.10, 10, Within(0.12, 0.25)),
        (0.20, 10, AtLeast(0.70)),
        (0.10, 20, AtLeast(0.58)),
        (0.20, 20, AtLeast(0.99)),
        (0.10, 60, AtLeast(0.99)),
    ]) {
        let session = biased(-f64::ln_1p(bias));
        let found = share(lot, k, tries, |r| of_label(&cell(session, blocks, r)));
        let what = format!("a label slower by {:.0} %, {blocks} blocks", bias * 100.0);
        claims.push(Claim::share(what, bound, found, tries));
    }
    for (k, (slower, blocks, bound)) in (100u64..).zip([
        (0.05, 10, AtLeast(0.60)),
        (0.10, 10, AtLeast(0.99)),
        (0.05, 20, AtLeast(0.97)),
    ]) {
        let session = Disturbance { second: -f64::ln_1p(slower), ..QUIET };
        let found = share(lot, k, tries, |r| of_order(&cell(session, blocks, r)));
        let what = format!("a second visit slower by {:.0} %, {blocks} blocks", slower * 100.0);
        claims.push(Claim::share(what, bound, found, tries));
        // The coin has put it into the scatter of all blocks, those of A and A among them.
        let found = share(lot, k, tries, |r| by_scatter(&cell(session, blocks, r)));
        let what = format!("the same, by A against A beside the scatter, {blocks} blocks");
        claims.push(Claim::share(what, bound, found, tries).of_broken());
        let wrong = share(lot, k, tries, |r| of_label(&cell(session, blocks, r)));
        let what = format!("the same, taken for a label's, {blocks} blocks");
        claims.push(Claim::share(what, AtMost(0.012), wrong, tries));
    }
    claims
}
