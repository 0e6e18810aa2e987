//! Seeded random numbers. Every choice of the program comes from here and from a stored seed.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;

/// A seeded generator: the same seed gives the same numbers on every machine and version.
///
/// PCG64-MCG (O'Neill 2014): a named algorithm, since a "default" one may change under a stored
/// seed.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

/// Mixes a seed with labels into a seed for something else: splitmix64's finaliser over a chain.
/// So run, cell, visit and worker each have their own stream of numbers, and a resumed run
/// replays them.
pub fn derive_seed(seed: u64, labels: &[u64]) -> u64 {
    labels.iter().fold(mix(seed), |state, &label| mix(state ^ mix(label)))
}

/// Finaliser of splitmix64 (Steele, Lea, Flood 2014): every input bit changes half the output.
#[inline]
pub const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// From a seed; near seeds give unrelated streams.
    pub fn new(seed: u64) -> Self {
        let wide = (u128::from(mix(seed)) << 64) | u128::from(mix(!seed));
        Self(Pcg64Mcg::new(wide))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..n`; 0 for `n = 0`.
    ///
    /// Multiply and shift (Lemire 2019) without the rejection step: a value's probability is off
    /// by less than `n / 2^64`, which no test of a feasible length can see.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in `[0, 1)`, 53 bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        -(1.0 - self.unit()).ln()
    }

    /// Standard normal (Box and Muller 1958; one of the pair is thrown away).
    pub fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Fills `bytes` with random ones.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.bits().to_le_bytes());
        }
        let rest = chunks.into_remainder();
        let last = self.bits().to_le_bytes();
        for (byte, random) in rest.iter_mut().zip(last) {
            *byte = random;
        }
    }

    /// Puts `items` into a uniformly random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// A fixed random order of `0..n` that needs no memory: position to element.
///
/// A four-round Feistel network over the smallest even number of bits that holds `n`, walked
/// along its cycle until it lands inside (Black and Rogaway 2002): at most four times as large a
/// domain, so fewer than four steps on average.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    /// The order of `0..n` that belongs to `seed`.
    pub fn new(n: u64, seed: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        let half_bits = bits.div_ceil(2).max(1);
        let keys = [0, 1, 2, 3].map(|round| derive_seed(seed, &[round]));
        Self { n, half_bits, keys }
    }

    /// How many elements.
    pub const fn len(&self) -> u64 {
        self.n
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The element at `position`, which wraps at `n`; 0 when there are none.
    pub fn at(&self, position: u64) -> u64 {
        if self.n <= 1 {
            return 0;
        }
        let mut value = position % self.n;
        loop {
            value = self.encrypt(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for key in self.keys {
            (left, right) = (right, left ^ (mix(right ^ key) & mask));
        }
        (left << self.half_bits) | right
    }
}

/// Ranks `1..=n` with probability proportional to `1 / rank^theta`.
///
/// Rejection-inversion (Hoermann and Derflinger 1996): constant memory and time for any `n`.
#[derive(Clone, Copy, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    area_first: f64,
    area_last: f64,
    accept: f64,
}

impl Zipf {
    /// `theta` above 0.
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self { n: n.max(1), theta, area_first: 0.0, area_last: 0.0, accept: 0.0 };
        zipf.area_first = zipf.area(1.5) - 1.0;
        zipf.area_last = zipf.area(zipf.n as f64 + 0.5);
        zipf.accept = 2.0 - zipf.area_inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank in `1..=n`.
    pub fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let u = self.area_last + random.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(u);
            let rank = x.round().clamp(1.0, self.n as f64);
            if rank - x <= self.accept || u >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u64;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// Integral of the weight, written so that theta = 1 needs no case of its own.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        exp_minus_one_by_x((1.0 - self.theta) * log) * log
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        (log_one_plus_by_x(t) * area).exp()
    }
}

fn exp_minus_one_by_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

fn log_one_plus_by_x(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_on_every_version() {
        let mut random = Random::new(1);
        let first = [random.bits(), random.bits()];
        assert_eq!(first, [5_008_804_015_799_018_935, 1_997_891_166_926_688_489]);
        assert_eq!(derive_seed(1, &[2, 3]), 105_800_997_263_431_414);
    }

    #[test]
    fn below_is_uniform() {
        let mut random = Random::new(7);
        let mut counts = [0u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        let chi_square: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi_square < 27.9, "chi-square {chi_square} with 9 df, 0.1 % limit 27.9");
    }

    #[test]
    fn normal_has_its_moments() {
        let mut random = Random::new(3);
        let values: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.015 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn a_permutation_meets_everything_once() {
        for n in [1u64, 2, 3, 10, 100, 1000, 4097] {
            let order = Permutation::new(n, 42);
            let mut seen: Vec<u64> = (0..n).map(|i| order.at(i)).collect();
            if n > 100 {
                assert_ne!(seen, (0..n).collect::<Vec<_>>());
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..n).collect::<Vec<_>>(), "n = {n}");
        }
    }

    #[test]
    fn zipf_has_its_weights() {
        for theta in [0.5, 0.99, 1.0, 1.5] {
            let (n, draws) = (100u64, 200_000);
            let zipf = Zipf::new(n, theta);
            let mut random = Random::new(11);
            let mut counts = vec![0u32; n as usize + 1];
            for _ in 0..draws {
                counts[zipf.sample(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|r| (r as f64).powf(-theta)).sum();
            for rank in [1u64, 2, 10, 100] {
                let expected = f64::from(draws) * (rank as f64).powf(-theta) / total;
                let seen = f64::from(counts[rank as usize]);
                assert!(
                    (seen - expected).abs() < 5.0 * expected.sqrt() + 1.0,
                    "theta {theta} rank {rank}: {seen} for {expected}"
                );
            }
        }
    }
}
