//! Requests that failed and were passed over: they are in no rate, so no ratio of rates knows of
//! them, and a database would have met each.

use super::Against;
use crate::whole::Whole;
use crate::words::{count, percent};

/// Standard errors that two counts of the same chance lie apart by luck.
const CHANCE: f64 = 3.0;

impl Against {
    /// How many failed on either side, before the verdict on what did not; `None` where none did.
    pub(super) fn failing(&self) -> Option<String> {
        let (a, b) = (&self.reference_whole, &self.other_whole);
        if a.failed_requests == 0 && b.failed_requests == 0 {
            return None;
        }
        let told = |whole: &Whole, label: &str| match whole.failed_requests {
            0 => format!("none of {label}"),
            n => format!(
                "{} of {label} ({})",
                count(n, "request"),
                percent(share(whole).unwrap_or(1.0))
            ),
        };
        let not = if self.fails_unlike() { "Not the same: " } else { "" };
        let failed = format!("{} and {} failed", told(b, &self.label), told(a, "A"));
        Some(format!("{not}{failed}, and are in no rate. Of the others:"))
    }

    /// Whether one side had more of its requests fail than chance explains.
    pub fn fails_unlike(&self) -> bool {
        let (a, b) = (&self.reference_whole, &self.other_whole);
        let [of_a, of_b] = [a, b].map(|whole| whole.requests as f64 + whole.failed_requests as f64);
        if of_a <= 0.0 || of_b <= 0.0 {
            return false;
        }
        let (a, b) = (a.failed_requests as f64, b.failed_requests as f64);
        let scale = of_b / of_a;
        (b - a * scale).powi(2) > CHANCE * CHANCE * (b + a * scale * scale)
    }

    /// Whether more of this side's requests fail than of the reference's.
    pub fn fails_more(&self) -> bool {
        let [a, b] = [&self.reference_whole, &self.other_whole].map(share);
        self.fails_unlike() && b > a
    }
}

fn share(whole: &Whole) -> Option<f64> {
    let all = whole.requests as f64 + whole.failed_requests as f64;
    (all > 0.0).then(|| whole.failed_requests as f64 / all)
}
