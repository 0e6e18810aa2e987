//! The twins' generator: small, fast, and the same for ever, since stored runs replay by seed.

/// `SplitMix64` (Steele, Lea, Flood 2014) with the draws the twins need.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: u64,
    spare: Option<f64>,
}

impl Rng {
    /// Stream number `stream` of `seed`: what one process draws does not move another's.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed ^ mix(stream.wrapping_add(0x9e37_79b9_7f4a_7c15))), spare: None }
    }

    #[inline]
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// In (0, 1]: never zero, so that its logarithm is finite.
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Below `bound`; 0 for a bound of 0. The bias is below 2^-32 for bounds below 2^32.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Standard normal, by Marsaglia's polar method: two for one logarithm.
    #[inline]
    pub(crate) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * scale);
                return x * scale;
            }
        }
    }

    /// Exponential with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -self.uniform().ln() * mean
    }
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_their_moments() {
        let mut rng = Rng::new(7, 0);
        let n = 200_000;
        let (mut sum, mut square, mut exponential) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            let x = rng.normal();
            sum += x;
            square += x * x;
            exponential += rng.exponential(3.0);
        }
        let n = f64::from(n);
        assert!((sum / n).abs() < 0.01, "mean {}", sum / n);
        assert!((square / n - 1.0).abs() < 0.02, "variance {}", square / n);
        assert!((exponential / n - 3.0).abs() < 0.05, "exponential {}", exponential / n);
    }

    #[test]
    fn streams_of_one_seed_differ() {
        assert_ne!(Rng::new(1, 0).next_u64(), Rng::new(1, 1).next_u64());
        assert_eq!(Rng::new(1, 2).next_u64(), Rng::new(1, 2).next_u64());
    }
}
