//! The answer for a load: rate, busy parts, the part that binds, and what that rests on.

use serde::Serialize;
use units::{Bytes, Nanos};

use crate::design::{Assumption, Design};
use crate::drive::Op;
use crate::error::LoadError;
use crate::load::Load;
use crate::network::solve;
use crate::parameter::{End, Origin, PerSecond};
use crate::path::{LOCK, Path, STAGES, Spread, Stage, line, way};

/// Changes of the rate below this share are none.
const NOTICEABLE: f64 = 0.01;

/// What a design does under a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Requests per second.
    pub rate: f64,
    /// Bytes of requests per second.
    pub bandwidth: PerSecond,
    /// From start to end of a request, mean.
    pub response: Nanos,
    /// Each part that requests pass, in that order.
    pub parts: Vec<PartAnswer>,
    /// The part that limits the rate: the busiest where more requests are in flight than the parts
    /// serve at once without waiting, else the one in which a request spends most of its time.
    pub binding: Stage,
    /// Assumed values that move the rate by 1 % or more, or make another part bind.
    pub rests_on: Vec<Dependence>,
}

/// One part's share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartAnswer {
    /// Which one.
    pub stage: Stage,
    /// Share of the time that it is busy, 0 to 1: its busiest queue, the mean of equal servers.
    pub busy: f64,
    /// Of the response time, waiting for it included.
    pub time: Nanos,
    /// Rate if this part alone were twice as fast, over the rate as it is: 1 to 2. For the file lock: with twice as many files.
    pub gain: f64,
}

/// How the answer depends on an assumed value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dependence {
    /// Which value.
    pub assumption: Assumption,
    /// Requests per second with the least that it may be.
    pub rate_low: f64,
    /// With the most.
    pub rate_high: f64,
    /// Parts that bind then, with the least and the most.
    pub binding: [Stage; 2],
}

/// A design with all that its assumptions may be.
#[derive(Clone, Debug)]
pub struct Model {
    design: Design,
    variants: Vec<(Assumption, [Design; 2])>,
}

/// Rate and times for one set of parameters.
struct Outcome {
    rate: f64,
    binding: Stage,
    busy: [f64; Stage::ALL.len()],
    times: [f64; Stage::ALL.len()],
}

impl Model {
    /// Prepares a design for any number of loads.
    pub fn new(design: Design) -> Self {
        let assumptions = design.parameters_of(Origin::Assumed).into_iter();
        let variants = assumptions
            .map(|one| {
                let ends = [End::Low, End::High].map(|end| design.at(&one, end));
                (one, ends)
            })
            .collect();
        Self { design, variants }
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// What it does under a load, once that is steady.
    ///
    /// * Exact for exponential times; see [`solve`](crate::network::solve). Writes under an
    ///   exclusive lock hold it for the time that they take when alone.
    /// * Members of a RAID that serve one request are taken to finish together.
    ///
    /// # Errors
    ///
    /// A load of a size or share that is not reckoned with.
    pub fn answer(&self, load: &Load) -> Result<Answer, LoadError> {
        load.check()?;
        let spread = Spread::of(&self.design, load);
        let now = Outcome::of(&self.design, load, &spread, None);
        let passed = |at: &usize| now.times[*at] >= 1e-9 || now.busy[*at] > 0.0;
        let parts = Stage::ALL.iter().enumerate().filter(|(at, _)| passed(at));
        let parts = parts.map(|(at, &stage)| PartAnswer {
            stage,
            busy: now.busy[at],
            time: Nanos::from_secs_f64(now.times[at]),
            gain: Outcome::of(&self.design, load, &spread, Some(stage)).rate / now.rate,
        });
        Ok(Answer {
            rate: now.rate,
            bandwidth: PerSecond(Bytes::new((now.rate * load.block.get() as f64) as u64)),
            response: Nanos::from_secs_f64(f64::from(load.in_flight()) / now.rate),
            parts: parts.collect(),
            binding: now.binding,
            rests_on: self.rests_on(load, &spread, &now),
        })
    }

    fn rests_on(&self, load: &Load, spread: &Spread, now: &Outcome) -> Vec<Dependence> {
        let all = self.variants.iter().map(|(assumption, ends)| {
            let [low, high] = ends.each_ref().map(|end| Outcome::of(end, load, spread, None));
            Dependence {
                assumption: assumption.clone(),
                rate_low: low.rate,
                rate_high: high.rate,
                binding: [low.binding, high.binding],
            }
        });
        let moves = |rate: f64| (rate / now.rate - 1.0).abs() >= NOTICEABLE;
        all.filter(|one| {
            moves(one.rate_low) || moves(one.rate_high) || one.binding != [now.binding; 2]
        })
        .collect()
    }
}

impl Outcome {
    /// * `faster`: a part to reckon with as twice as fast.
    fn of(design: &Design, load: &Load, spread: &Spread, faster: Option<Stage>) -> Self {
        let shares = [(Op::Read, load.read_share), (Op::Write, 1.0 - load.read_share)];
        let ways = shares
            .into_iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(op, share)| (share, way(design, load, spread, op, faster)));
        let mut path = Path::default();
        let mut under_lock = Path::default();
        let (mut behind, mut submit_locked) = (0.0, 0.0);
        for (share, way) in ways {
            let into = if way.is_held { &mut under_lock } else { &mut path };
            into.iter_mut().zip(&way.path).for_each(|(sum, visit)| sum.add(share, visit));
            behind += share * way.behind;
            submit_locked += share * way.submit_locked;
        }
        let held: f64 = under_lock.iter().map(|visit| visit.time).sum();
        let locks = f64::from(load.files) * if faster == Some(Stage::FileLock) { 2.0 } else { 1.0 };
        line(&mut path, LOCK, held, locks);

        let solution = solve(&path, load.in_flight());
        let rate = if behind > 0.0 { solution.rate.min(1.0 / behind) } else { solution.rate };
        let mut busy = [0.0f64; Stage::ALL.len()];
        let mut times = busy;
        for (at, stage) in STAGES.iter().enumerate() {
            let part = *stage as usize;
            let queue = solution.busy[at] * rate / solution.rate;
            busy[part] = busy[part].max(queue).max(rate * under_lock[at].demand);
            times[part] += solution.times[at] + under_lock[at].time;
        }
        // The lock's own time is waiting for it: what is done under it belongs to who does it.
        let cores = f64::from(design.host.part.cores.value.max(1));
        times[Stage::FileLock as usize] -= held + submit_locked;
        times[Stage::Host as usize] += submit_locked;
        busy[Stage::Host as usize] += rate * submit_locked / cores;
        times[Stage::Drives as usize] += f64::from(load.in_flight()) / rate - solution.response();
        busy[Stage::Drives as usize] = busy[Stage::Drives as usize].max(rate * behind);
        let binding = if rate < solution.rate {
            Stage::Drives
        } else {
            binding(&path, load.in_flight(), &times)
        };
        Self { rate, binding, busy, times }
    }
}

/// The busiest part where more requests are in flight than all parts serve at once without
/// waiting; else the part in which a request spends most of its time.
fn binding(path: &Path, in_flight: u32, times: &[f64; Stage::ALL.len()]) -> Stage {
    let alone: f64 = path.iter().map(|visit| visit.time).sum();
    let busiest = STAGES.iter().zip(path).max_by(|a, b| a.1.demand.total_cmp(&b.1.demand));
    match busiest {
        Some((stage, visit)) if visit.demand * f64::from(in_flight) > alone => *stage,
        _ => {
            let longest = Stage::ALL.iter().zip(times).max_by(|a, b| a.1.total_cmp(b.1));
            longest.map_or(Stage::Host, |(stage, _)| *stage)
        }
    }
}
