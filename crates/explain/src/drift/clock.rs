//! What comes by the clock: every so many seconds, whichever cell is measured.

use finding::{Code, Finding, Number};
use schemars::JsonSchema;
use serde::Serialize;
use stats::period::{self, Visit};

use crate::interference::keeps_its_rate;
use crate::places::Told;
use crate::view::{CellView, View, VisitView};

/// A smaller share of the rate is not worth telling.
const SHARE_MIN: f64 = 0.01;

/// A change of the rate that comes back after the same time, over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Clock {
    /// From one to the next.
    pub period_ns: u64,
    /// The part of that time in which the rate is another, as a share.
    pub share: f64,
    /// The rate in that part by the rate in the rest.
    pub ratio: f64,
    /// Visits that it was looked for in.
    pub visits: u32,
    /// How likely one that strong is in a run without any.
    pub chance: f64,
}

/// Looks for it in the series of all visits.
pub(super) fn clock(view: &View<'_>) -> Option<Clock> {
    let told = Told::new(view.run);
    // What the suite itself does by the clock says nothing of the device.
    let is_free = |cell: &&CellView<'_>| {
        cell.bursts.iter().all(Option::is_none) && !keeps_its_rate(&told, cell)
    };
    let of_cell = |cell: &CellView<'_>| {
        cell.visits.iter().map(|visit| series(visit, cell.cell.index)).collect::<Vec<_>>()
    };
    let all: Vec<(u64, i64, Visit)> =
        view.grid().filter(is_free).flat_map(of_cell).flatten().collect();
    let interval_ns = all.iter().map(|(interval, ..)| *interval).min()?;
    let first = all.iter().map(|(_, start, _)| *start).min()?;
    let visits: Vec<Visit> = all
        .into_iter()
        .filter(|(interval, ..)| *interval == interval_ns)
        .map(|(_, start, visit)| Visit { start: start.abs_diff(first) as f64 / 1e9, ..visit })
        .collect();
    let found = period::find(&visits, interval_ns as f64 / 1e9)?;
    let lost = found.share * (1.0 - found.ratio).abs();
    (lost >= SHARE_MIN).then(|| Clock {
        period_ns: (found.seconds * 1e9) as u64,
        share: found.share,
        ratio: found.ratio,
        visits: u32::try_from(visits.len()).unwrap_or(u32::MAX),
        chance: found.chance,
    })
}

/// Length of an interval, wall clock of the start, and the requests in each whole interval.
fn series(visit: &VisitView<'_>, cell: u32) -> Option<(u64, i64, Visit)> {
    let interval_ns = visit.counted().map(|op| op.series.interval_ns).max().filter(|&ns| ns > 0)?;
    let all = visit.counted().map(|op| op.series.rows.len()).max().unwrap_or(0);
    let whole = usize::try_from(visit.visit.rated_ns() / interval_ns).unwrap_or(usize::MAX);
    let mut counts = vec![0.0; all.min(whole)];
    for op in visit.counted().filter(|op| op.series.interval_ns == interval_ns) {
        for (count, row) in counts.iter_mut().zip(&op.series.rows) {
            *count += row.requests as f64;
        }
    }
    Some((interval_ns, visit.visit.started_unix_ns, Visit { cell, start: 0.0, counts }))
}

impl Clock {
    pub(super) fn finding(&self) -> Finding {
        let period = Number::ns(self.period_ns);
        Finding::new(Code::RatePeriodic)
            .with("period", period)
            .with("part", Number::seconds(period.value * self.share))
            .with("falls", self.ratio < 1.0)
            .with("ratio", Number::share(self.ratio))
            .with("visits", self.visits)
            .with("chance", Number::share(self.chance))
    }
}

#[cfg(test)]
mod tests {
    use record::{Run, Series, SeriesRow, TargetKind};

    use super::*;
    use crate::freeze::tests::{run, suite_text, visit};

    /// Visits of 10 s, each a while after the one before, whose rate falls to a fifth for half a second of
    /// every period.
    fn played(period: f64, plan: &str) -> Run {
        let mut start_ns = 0i64;
        let mut one = |order: u32| {
            let mut visit = visit(order, "read", &[]);
            start_ns += 10_500_000_000 + i64::from(order * order % 7) * 90_000_000;
            visit.started_unix_ns = start_ns;
            let requests = |row: u32| {
                let at = (start_ns as f64 / 1e9 + f64::from(row) / 10.0) % period;
                let usual = 100 + u64::from((row * 37 + order * 11) % 5);
                if at < 0.5 { usual / 5 } else { usual }
            };
            let row = |row| SeriesRow { requests: requests(row), ..SeriesRow::default() };
            let series = Series { interval_ns: 100_000_000, rows: (0..100).map(row).collect() };
            visit.streams[0].ops[0].series = series;
            visit
        };
        let mut run = run(TargetKind::Twin, (0..12).map(&mut one).collect());
        run.header.suite_text = suite_text("", plan);
        run
    }

    #[test]
    fn a_rate_that_falls_by_the_clock_is_named() {
        let run = played(2.5, "[[phase]]\nname = \"read\"\noperation = \"read\"");
        let found = clock(&View::new(&run)).unwrap();
        assert!(found.period_ns.abs_diff(2_500_000_000) < 10_000_000, "{found:?}");
        let said = finding::texts(&crate::drift::drift(&View::new(&run)).findings()).concat();
        assert!(said.contains("the rate falls to") && said.contains("by the clock"), "{said}");
        assert!(!said.contains("No drift"), "{said}");
    }

    #[test]
    fn what_the_suite_does_by_the_clock_is_not() {
        let plan = "[[phase]]\nname = \"read\"\n[[phase.stream]]\nname = \"s\"\noperation = \"read\"\nthink = \"2s\"\nburst = 10";
        assert_eq!(clock(&View::new(&played(2.5, plan))), None);
        // It would be named otherwise.
        let plan = plan.split("\nthink").next().unwrap_or_default();
        assert!(clock(&View::new(&played(2.5, plan))).is_some());
    }
}
