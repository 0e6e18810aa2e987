//! What a machine's noise floor makes of a run's own intervals.

use finding::{Code, Finding, Number};

use crate::compare::Floor;
use crate::interval;
use crate::view::View;
use crate::words::percent;

/// Intervals that are narrower than the floor hold within the run, and promise nothing of the next one.
/// `None` where no cell has an interval.
pub fn beside(floor: &Floor, view: &View<'_>) -> Option<Finding> {
    let of_row = |row: &crate::CellView<'_>| floor.of_visits(row.load().as_ref(), row.visits.len());
    let intervals = interval::rows(view);
    let widths: Vec<(f64, f64)> = intervals
        .iter()
        .zip(&view.rows)
        .filter_map(|(found, row)| Some((found.as_ref()?.half_width, of_row(row))))
        .collect();
    let narrow = widths.iter().filter(|(width, floor)| width < floor).count();
    let least = widths.iter().map(|(_, floor)| *floor).reduce(f64::min)?;
    let most = widths.iter().map(|(_, floor)| *floor).reduce(f64::max)?;
    let visits = view.rows.iter().map(|row| row.visits.len()).filter(|&n| n > 0).min();
    let one = percent(least) == percent(most);
    let found = Finding::new(Code::NoiseFloor)
        .with_some("least", (!one).then_some(Number::share(least)))
        .with("most", Number::share(most))
        .with("from", &floor.from)
        .with_some("few", visits.filter(|&n| n < floor.blocks as usize))
        .with("none", narrow == 0)
        .with("one", (narrow, widths.len()) == (1, 1))
        .with("several", narrow > 1);
    Some(found.with("n", narrow).with("of", widths.len()))
}
