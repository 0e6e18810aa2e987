//! What cleaning costs a log of pages in flash.

/// Times that each page is written until its space is free again, for uniform writes and a cleaner
/// that takes the unit with the fewest live pages.
///
/// * `live`: share of the flash that holds data, 0 to 1. At least 1 comes back; from 0.99 on the
///   answer is that for 0.99, where it is 51.
/// * A victim's live share v solves live = (v - 1) / ln v; then 1 / (1 - v). For large units: Bux
///   and Iliadis, Performance Evaluation 67 (2010); Desnoyers, ACM Transactions on Storage 10 (2014).
pub fn write_amplification(live: f64) -> f64 {
    let live = live.min(0.99);
    let (mut low, mut high) = (0.0, 1.0);
    // 50 halvings leave nothing of a double's precision to find.
    for _ in 0..50 {
        let v: f64 = f64::midpoint(low, high);
        if (v - 1.0) / v.ln() < live { low = v } else { high = v }
    }
    1.0 / (1.0 - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_published() {
        // 2.36 for 30 % spare: Xiang and Kurkoski, arXiv 1210.5975. The others by Newton's method.
        for (live, wanted) in [(1.0 / 1.3, 2.36), (0.5, 1.255), (0.8, 2.69), (0.95, 10.2)] {
            let found = write_amplification(live);
            assert!((found / wanted - 1.0).abs() < 0.01, "{live}: {found}, wanted {wanted}");
        }
        assert_eq!(write_amplification(0.0), 1.0);
        assert!(write_amplification(1.0) < 60.0);
    }
}
