//! Closed loops on a simulation.

use array::{
    Addressing, ArrayDesign, ArrayOp, ArrayRequest, Component, ComponentUse, Load, Simulation,
    SimulationOptions,
};

/// What comes of a loop.
pub struct Played {
    /// Requests per second, without the first quarter.
    pub rate: f64,
    pub usage: [ComponentUse; Component::ALL.len()],
    /// Sum of all response times, and the time at the end, in ns.
    #[allow(dead_code, reason = "not all tests look at it")]
    pub response: u64,
    #[allow(dead_code, reason = "not all tests look at it")]
    pub end: u64,
    /// Of all times and tokens.
    pub digest: u64,
}

/// Requests of a load, one after the other.
pub struct Loop {
    load: Load,
    random: stats::Random,
    next: u64,
}

impl Loop {
    pub fn of(load: &Load, seed: u64) -> Self {
        Self { load: *load, random: stats::Random::new(seed), next: 0 }
    }

    pub fn request(&mut self, token: u32) -> ArrayRequest {
        let Load { block, size, access, read_share, files, .. } = self.load;
        let blocks = size.get() / block.get();
        let at = match access {
            Addressing::Random => self.random.below(blocks),
            Addressing::Sequential => self.next % blocks,
        };
        self.next += 1;
        let is_read = self.random.unit() < read_share;
        ArrayRequest {
            op: if is_read { ArrayOp::Read } else { ArrayOp::Write },
            offset: at * block.get(),
            length: block.get() as u32,
            file: token % files,
        }
    }
}

/// A simulation that can take the load.
pub fn begin(load: &Load) -> SimulationOptions {
    SimulationOptions {
        slots: load.threads * load.depth,
        files: load.files,
        cache: load.cache,
        ..SimulationOptions::default()
    }
}

/// So many requests of a load, as a closed loop.
pub fn loaded(design: &ArrayDesign, load: &Load, requests: u32) -> Played {
    play(design, &begin(load), &mut Loop::of(load, 3), requests)
}

pub fn play(
    design: &ArrayDesign,
    options: &SimulationOptions,
    requests: &mut Loop,
    count: u32,
) -> Played {
    let mut simulation = Simulation::new(design, options).unwrap();
    let mut asked = vec![0; options.slots as usize];
    (0..options.slots).for_each(|n| simulation.submit(requests.request(n), n).unwrap());
    let (mut response, mut digest) = (0, 0u64);
    let mut warm = (0, 0);
    for done in 0..count {
        let (at, token) = simulation.advance(u64::MAX).unwrap();
        response += at - asked[token as usize];
        digest = digest.rotate_left(5) ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(token);
        if done == count / 4 {
            warm = (done, at);
        }
        asked[token as usize] = at;
        simulation.submit(requests.request(token), token).unwrap();
    }
    let end = simulation.now();
    let rate = f64::from(count - 1 - warm.0) / ((end - warm.1).max(1) as f64 / 1e9);
    Played { rate, usage: simulation.usage(), response, end, digest }
}
