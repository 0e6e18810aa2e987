//! How often something rare happens.

use serde::Serialize;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// A rate of events, in events per unit of the exposure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Count by exposure.
    pub rate: f64,
    /// Lower end of the interval; 0 when nothing was counted.
    pub low: f64,
    /// Upper end. When nothing was counted, the bound that a rate keeps below with the whole
    /// confidence: about 3 by the exposure at 0.95 (the rule of three).
    pub high: f64,
}

/// Rate of independent events with its exact interval.
///
/// * `count`: how many were seen.
/// * `exposure`: for how long was looked, in any unit.
/// * `confidence`: wanted level, `0.95` for instance; the interval has at least this.
/// * `None` when the exposure is not above 0 or the level not in `0.0..1.0`.
///
/// Method: Garwood 1936, by the chi-square distribution.
pub fn rate(count: u64, exposure: f64, confidence: f64) -> Option<Rate> {
    if !(exposure > 0.0 && exposure.is_finite() && (0.0..1.0).contains(&confidence)) {
        return None;
    }
    let per = |mean: f64| mean / exposure;
    if count == 0 {
        return Some(Rate { rate: 0.0, low: 0.0, high: per(-(1.0 - confidence).ln()) });
    }
    let k = count as f64;
    let tail = (1.0 - confidence) / 2.0;
    let low = chi_square(tail, 2.0 * k)? / 2.0;
    let high = chi_square(1.0 - tail, 2.0 * k + 2.0)? / 2.0;
    Some(Rate { rate: per(k), low: per(low), high: per(high) })
}

/// Beyond this many degrees of freedom Wilson and Hilferty's form is exact to six digits, and
/// an incomplete gamma function is not worth its time.
const DEGREES_EXACT_MAX: f64 = 20_000.0;

fn chi_square(probability: f64, degrees: f64) -> Option<f64> {
    if degrees <= DEGREES_EXACT_MAX {
        return Some(ChiSquared::new(degrees).ok()?.inverse_cdf(probability));
    }
    let z = statrs::distribution::Normal::standard().inverse_cdf(probability);
    let part = 2.0 / (9.0 * degrees);
    Some(degrees * (1.0 - part + z * part.sqrt()).powi(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garwoods_table_is_reproduced() {
        // 95 % limits of a Poisson mean, Garwood 1936: 1: 0.0253..5.572, 3: 0.619..8.767,
        // 10: 4.795..18.39, 50: 37.11..65.92.
        for (count, low, high) in
            [(1, 0.0253, 5.572), (3, 0.6187, 8.767), (10, 4.795, 18.39), (50, 37.11, 65.92)]
        {
            let seen = rate(count, 1.0, 0.95).unwrap();
            assert!((seen.low / low - 1.0).abs() < 1e-3, "{count}: {seen:?}");
            assert!((seen.high / high - 1.0).abs() < 1e-3, "{count}: {seen:?}");
        }
    }

    #[test]
    fn nothing_seen_is_the_rule_of_three() {
        let none = rate(0, 60.0, 0.95).unwrap();
        assert_eq!((none.rate, none.low), (0.0, 0.0));
        assert!((none.high - 3.0 / 60.0).abs() < 0.0001);
    }

    #[test]
    fn odd_questions_have_no_answer() {
        for exposure in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(rate(1, exposure, 0.95), None);
        }
        assert_eq!(rate(1, 1.0, 1.0), None);
        let huge = rate(u64::MAX, 1.0, 0.95).unwrap();
        assert!(huge.low <= huge.rate && huge.rate <= huge.high);
        // Both forms agree where they meet.
        let (below, above) = (rate(9_998, 1.0, 0.95).unwrap(), rate(10_001, 1.0, 0.95).unwrap());
        assert!((above.high - below.high - 3.0).abs() < 0.1, "{below:?} {above:?}");
    }
}
