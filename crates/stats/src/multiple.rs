//! Many tests at once.

/// Holm's adjusted p: a test may be called significant at level `alpha` when its adjusted p is
/// at most `alpha`, and then the chance of even one false call among all of them is at most
/// `alpha`, whatever their dependence.
///
/// * `p`: one a test; what is not a number counts as 1, and is returned as 1.
/// * Returns one for each, in the same order, in `0.0..=1.0`.
///
/// Method: Holm 1979: the k-th smallest of m is multiplied by `m - k + 1`, and none may be less
/// than the one before.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let clean = |p: f64| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| clean(p[a]).total_cmp(&clean(p[b])));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &test) in order.iter().enumerate() {
        largest = largest.max((clean(p[test]) * (p.len() - rank) as f64).min(1.0));
        adjusted[test] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_steps_down() {
        // As R's p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm").
        let seen = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (seen, wanted) in seen.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((seen - wanted).abs() < 1e-12, "{seen} instead of {wanted}");
        }
    }

    #[test]
    fn one_test_pays_nothing_and_odd_values_are_no_evidence() {
        assert_eq!(holm(&[0.04]), [0.04]);
        assert_eq!(holm(&[]), [0.0; 0]);
        assert_eq!(holm(&[f64::NAN, -1.0, 7.0]), [1.0, 0.0, 1.0]);
    }
}
