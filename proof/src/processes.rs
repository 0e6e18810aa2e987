//! Random processes with known truth.

use stats::Random;

/// First-order autoregressive noise of standard deviation 1: each value is `rho` times the one
/// before plus what is new, started in its stationary state.
#[derive(Clone, Debug)]
pub struct Autoregressive {
    rho: f64,
    state: f64,
}

impl Autoregressive {
    /// `rho`: correlation of neighbours, in `(-1.0, 1.0)`.
    pub fn new(rho: f64, random: &mut Random) -> Self {
        Self { rho, state: random.normal() }
    }

    /// The next value.
    pub fn next(&mut self, random: &mut Random) -> f64 {
        let value = self.state;
        self.state = self.rho * self.state + (1.0 - self.rho * self.rho).sqrt() * random.normal();
        value
    }
}
