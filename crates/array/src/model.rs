//! The answer for a load: rate, busy parts, the part that binds, and what that rests on.

use serde::Serialize;
use units::{Bytes, Nanos};

use crate::design::ArrayDesign;
use crate::drive::Op;
use crate::error::LoadError;
use crate::load::Load;
use crate::network::solve;
use crate::parameter::{End, ParameterName, PerSecond, Provenance};
use crate::path::{COMPONENTS, Component, DRIVES, Footprint, LOCK_QUEUE, Path, route};

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
    pub binding: Component,
    /// Assumed values that move the rate by 1 % or more, or make another part bind.
    pub rests_on: Vec<Dependence>,
}

/// One part's share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PartAnswer {
    /// Which one.
    pub component: Component,
    /// Share of the time that it is busy, 0 to 1: its busiest queue, the mean of equal servers.
    pub busy: f64,
    /// Of the response time, waiting for it included.
    pub time: Nanos,
    /// Rate if this part alone were twice as fast, over the rate as it is: 1 to 2. For the file
    /// lock: with twice as many files.
    pub gain: f64,
}

/// How the answer depends on an assumed value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dependence {
    /// Which value.
    pub assumption: ParameterName,
    /// Requests per second with the least that it may be.
    pub rate_low: f64,
    /// With the most.
    pub rate_high: f64,
    /// Parts that bind then, with the least and the most.
    pub binding: [Component; 2],
}

/// A design with all that its assumptions may be.
#[derive(Clone, Debug)]
pub struct Model {
    design: ArrayDesign,
    variants: Vec<(ParameterName, [ArrayDesign; 2])>,
}

/// Rate and times for one set of parameters.
struct Outcome {
    rate: f64,
    binding: Component,
    busy: [f64; Component::ALL.len()],
    times: [f64; Component::ALL.len()],
}

impl Model {
    /// Prepares a design for any number of loads.
    pub fn new(design: ArrayDesign) -> Self {
        let assumptions = design.parameters_of(Provenance::Assumed).into_iter();
        let variants = assumptions
            .map(|one| {
                let ends = [End::Low, End::High].map(|end| design.at(&one, end));
                (one, ends)
            })
            .collect();
        Self { design, variants }
    }

    /// As [`Model::new`], but answers do not say which assumptions they rest on: for many designs.
    pub fn without_ranges(design: ArrayDesign) -> Self {
        Self { design, variants: Vec::new() }
    }

    /// The design, when nothing more is asked.
    pub fn into_design(self) -> ArrayDesign {
        self.design
    }

    /// The design.
    pub fn design(&self) -> &ArrayDesign {
        &self.design
    }

    /// What it does under a load, once that is steady.
    ///
    /// * Locks that are held by writes, quotas, and what caches leave to the drives limit the rate,
    ///   but delay no request before that. For the rest see [`solve`](crate::network::solve).
    /// * Members of a RAID that serve one request are taken to finish together.
    ///
    /// # Errors
    ///
    /// A load of a size or share that is not reckoned with.
    pub fn answer(&self, load: &Load) -> Result<Answer, LoadError> {
        load.check()?;
        if !self.design.state.is_whole() {
            return Err(LoadError::NotWhole);
        }
        let footprint = Footprint::of(&self.design, load);
        let now = Outcome::of(&self.design, load, &footprint, None);
        let passed = |at: &usize| now.times[*at] >= 1e-9 || now.busy[*at] > 0.0;
        let parts = Component::ALL.iter().enumerate().filter(|(at, _)| passed(at));
        let parts = parts.map(|(at, &component)| PartAnswer {
            component,
            busy: now.busy[at],
            time: Nanos::from_secs_f64(now.times[at]),
            // Of two that overlap the other one may begin to queue, by less than the error of that.
            gain: (Outcome::of(&self.design, load, &footprint, Some(component)).rate / now.rate)
                .max(1.0),
        });
        Ok(Answer {
            rate: now.rate,
            bandwidth: PerSecond(Bytes::new((now.rate * load.block.get() as f64) as u64)),
            response: Nanos::from_secs_f64(f64::from(load.in_flight()) / now.rate),
            parts: parts.collect(),
            binding: now.binding,
            rests_on: self.rests_on(load, &footprint, &now),
        })
    }

    fn rests_on(&self, load: &Load, footprint: &Footprint, now: &Outcome) -> Vec<Dependence> {
        let all = self.variants.iter().map(|(assumption, ends)| {
            let [low, high] = ends.each_ref().map(|end| Outcome::of(end, load, footprint, None));
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
    fn of(
        design: &ArrayDesign,
        load: &Load,
        footprint: &Footprint,
        faster: Option<Component>,
    ) -> Self {
        let shares = [(Op::Read, load.read_share), (Op::Write, 1.0 - load.read_share)];
        let routes = shares
            .into_iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(op, share)| (share, route(design, load, footprint, op, faster)));
        let locks =
            load.files.saturating_mul(if faster == Some(Component::FileLock) { 2 } else { 1 });
        let mut path = Path::default();
        let (mut behind, mut submit_locked, mut held) = (0.0, 0.0, 0.0);
        for (share, route) in routes {
            path.iter_mut().zip(&route.path).for_each(|(sum, visit)| sum.add(share, visit));
            behind += share * route.behind;
            submit_locked += share * route.submit_locked;
            if route.is_held {
                // As many as there are locks are on their way together.
                held = share * solve(&route.path, load.in_flight().min(locks)).response();
            }
        }
        let solution = solve(&path, load.in_flight());
        // What one request takes of each queue, waited for in the network or not.
        let taken: Vec<f64> = (0..COMPONENTS.len())
            .map(|at| {
                let more = match at {
                    DRIVES => behind,
                    LOCK_QUEUE => held / f64::from(locks),
                    _ => 0.0,
                };
                solution.busy[at] / solution.rate + more
            })
            .collect();
        let most = (0..taken.len()).max_by(|&a, &b| taken[a].total_cmp(&taken[b])).unwrap_or(0);
        let rate = solution.rate.min(1.0 / taken[most]);
        // One writer alone is as fast as its lock.
        let is_capped = rate < solution.rate * (1.0 - 1e-9);
        let mut busy = [0.0f64; Component::ALL.len()];
        let mut times = busy;
        for (at, component) in COMPONENTS.iter().enumerate() {
            let part = *component as usize;
            busy[part] = busy[part].max(rate * taken[at]);
            // Requests wait for what caps the rate, and hardly for anything else.
            times[part] += if is_capped { path[at].time } else { solution.times[at] };
        }
        let rest = f64::from(load.in_flight()) / rate - times.iter().sum::<f64>();
        times[COMPONENTS[most] as usize] += rest;
        // The lock's own time is waiting for it: what is done under it belongs to who does it.
        times[Component::FileLock as usize] -= submit_locked;
        times[Component::Host as usize] += submit_locked;
        let binding =
            if is_capped { COMPONENTS[most] } else { binding(&path, load.in_flight(), &times) };
        Self { rate, binding, busy, times }
    }
}

/// Requests per second.
pub(crate) fn rate(design: &ArrayDesign, load: &Load, footprint: &Footprint) -> f64 {
    Outcome::of(design, load, footprint, None).rate
}

/// The busiest part where more requests are in flight than all parts serve at once without
/// waiting; else the part in which a request spends most of its time.
fn binding(path: &Path, in_flight: u32, times: &[f64; Component::ALL.len()]) -> Component {
    let alone: f64 = path.iter().map(|visit| visit.time).sum();
    let busiest = COMPONENTS.iter().zip(path).max_by(|a, b| a.1.demand.total_cmp(&b.1.demand));
    match busiest {
        Some((component, visit)) if visit.demand * f64::from(in_flight) > alone => *component,
        _ => {
            let longest = Component::ALL.iter().zip(times).max_by(|a, b| a.1.total_cmp(b.1));
            longest.map_or(Component::Host, |(component, _)| *component)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Visit;

    #[test]
    fn the_busiest_binds_from_where_requests_queue() {
        let place = |part| COMPONENTS.iter().position(|one| *one == part).unwrap();
        let (delay, queue) = (place(Component::Controller), place(Component::Link));
        let mut path = Path::default();
        path[delay] = Visit::delay(100.0);
        path[queue] = Visit::one_of(1.0, 10.0);
        // Eleven fit in without waiting. With twelve most of the time is still the delay's; but to
        // halve that gains less.
        for (in_flight, wanted) in [(10, Component::Controller), (12, Component::Link)] {
            let solution = solve(&path, in_flight);
            let mut times = [0.0; Component::ALL.len()];
            for (time, part) in solution.times.iter().zip(COMPONENTS) {
                times[part as usize] += time;
            }
            assert!(times[Component::Controller as usize] > times[Component::Link as usize]);
            assert_eq!(binding(&path, in_flight, &times), wanted);
        }
        let faster = |at: usize, visit| {
            let mut path = path;
            path[at] = visit;
            solve(&path, 12).rate
        };
        assert!(faster(queue, Visit::one_of(1.0, 5.0)) > faster(delay, Visit::delay(50.0)));
    }
}
