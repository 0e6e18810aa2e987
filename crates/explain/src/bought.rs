//! Whether a volume gives what was paid for.

use std::str::FromStr;

use finding::{Code, Finding, Number, Subject};
use units::Bytes;

use crate::findings::Findings;
use crate::view::{CellView, View};

/// A quota holds to a hundredth.
const AT_IT: f64 = 0.01;

/// What was bought: at least one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bought {
    /// Requests a second.
    pub iops: Option<f64>,
    /// Bytes a second.
    pub bandwidth: Option<Bytes>,
}

impl FromStr for Bought {
    type Err = String;

    /// `iops=3000,bandwidth=125MiB/s`
    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("`{text}` is not iops=NUMBER or bandwidth=BYTES/s, or both");
        let mut bought = Self::default();
        for part in text.split(',') {
            match part.trim().split_once('=') {
                Some(("iops", rate)) if bought.iops.is_none() => {
                    let rate =
                        rate.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
                    bought.iops = Some(rate.ok_or_else(wanted)?);
                }
                Some(("bandwidth", rate)) if bought.bandwidth.is_none() => {
                    let rate = rate.strip_suffix("/s").unwrap_or(rate).parse().ok();
                    let rate = rate.filter(|&rate| rate > Bytes::ZERO);
                    bought.bandwidth = Some(rate.ok_or_else(wanted)?);
                }
                _ => return Err(wanted()),
            }
        }
        Ok(bought)
    }
}

/// The best that one cell had, as a 95 % interval.
struct Best {
    cell: Subject,
    value: f64,
    low: f64,
    high: f64,
}

/// One finding for each figure that was bought.
pub(crate) fn findings(bought: Bought, view: &View<'_>, findings: &Findings) -> Vec<Finding> {
    let iops = bought.iops.map(|wanted| {
        of(wanted, best(view, findings, false), Number::iops).with("bandwidth", false)
    });
    let bandwidth = bought.bandwidth.map(|wanted| {
        let best = best(view, findings, true);
        of(wanted.get() as f64, best, Number::bandwidth).with("bandwidth", true)
    });
    iops.into_iter().chain(bandwidth).collect()
}

/// * `bytes`: bytes a second, else requests.
fn best(view: &View<'_>, findings: &Findings, bytes: bool) -> Option<Best> {
    let of_row = |row: &CellView<'_>| {
        let known = findings.interval_of(view, row)?;
        let visits = row.visits.iter();
        let [sum, requests] = visits.fold([0.0, 0.0], |[bytes, requests], visit| {
            [bytes + visit.bytes_per_second, requests + visit.requests_per_second]
        });
        let each = if bytes { sum / requests } else { 1.0 };
        let [value, low, high] = [known.mean, known.low, known.high].map(|rate| rate * each);
        Some(Best { cell: row.subject(), value, low, high })
    };
    view.grid().filter_map(of_row).max_by(|a, b| a.value.total_cmp(&b.value))
}

fn of(wanted: f64, best: Option<Best>, number: impl Fn(f64) -> Number) -> Finding {
    let Some(best) = best else {
        return Finding::new(Code::BoughtUnknown).with("bought", number(wanted));
    };
    let at_it = |rate: f64| (rate / wanted - 1.0).abs() <= AT_IT;
    let code = if at_it(best.low) && at_it(best.high) {
        Code::BoughtCapped
    } else if best.low >= wanted {
        Code::BoughtReached
    } else if best.high < wanted {
        Code::BoughtNotReached
    } else {
        Code::BoughtUnknown
    };
    Finding::new(code)
        .on(best.cell)
        .with("bought", number(wanted))
        .with("seen", number(best.value).within(best.low, best.high))
        .with("share", Number::share(best.value / wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_reaches_misses_or_is_at_what_was_bought() {
        let of = |low: f64, high: f64| {
            let cell = Subject::new(0, None, "read");
            let best = Best { cell, value: f64::midpoint(low, high), low, high };
            let found = of(3_000.0, Some(best), Number::iops).with("bandwidth", false);
            (found.code, found.text())
        };
        assert_eq!(of(2_990.0, 3_010.0).0, Code::BoughtCapped);
        assert_eq!(of(3_100.0, 3_500.0).0, Code::BoughtReached);
        assert_eq!(of(2_500.0, 3_500.0).0, Code::BoughtUnknown);
        let (code, said) = of(1_400.0, 1_600.0);
        assert_eq!(code, Code::BoughtNotReached);
        assert!(said.starts_with("3 K requests/s were bought and are not reached"), "{said}");
        assert!(said.contains("which is 50 % of it"), "{said}");
    }

    #[test]
    fn what_was_bought_is_read() {
        let both = Bought { iops: Some(3_000.0), bandwidth: Some(Bytes::mib(125)) };
        assert_eq!("iops=3000,bandwidth=125MiB/s".parse(), Ok(both));
        for bad in ["", "iops", "iops=0", "iops=3000,iops=4000", "bandwidth=0", "size=1GiB"] {
            assert!(bad.parse::<Bought>().is_err(), "{bad}");
        }
    }
}
