//! What a calibration's own visits saw that is no noise.
//!
//! A floor is made of differences between visits that follow each other, so a slow drift is hardly in it
//! (a coin takes it out). A change that came once, or a freeze, is in one of them, and in a short
//! calibration that one is the floor.

use crate::drift::{self, CellDrift};
use crate::freeze::{self, Freeze};
use crate::interval::Standstills;
use crate::view::View;
use crate::words::{count, iops, list, percent, seconds};

/// Cells named by themselves before the rest is counted.
const NAMED: usize = 3;

/// Each without a full stop, those of all cells first.
pub(super) fn events(view: &View<'_>) -> Vec<String> {
    let drifts = drift::drift(view);
    let mut told = Vec::new();
    let mut shared: Vec<&str> = Vec::new();
    for part in drifts.parts.iter().filter(|part| !part.steps.is_empty()) {
        shared.extend(part.phases.iter().map(String::as_str));
        let of = match drifts.parts.len() {
            1 => String::new(),
            _ => format!(" of {}", list(&part.phases)),
        };
        told.extend(part.steps.iter().map(|step| {
            let (when, ratio) = (step.when(""), percent(step.ratio()));
            format!(
                "all cells{of} changed together {when} into the run, to {ratio} of the rate before"
            )
        }));
    }
    // What a cell shares with all the others is told above.
    let is_alone = |found: &&CellDrift| {
        let of = |cell: &&record::CellRecord| cell.index == found.cell;
        let phase = view.run.cells.iter().find(of).map(|cell| cell.phase.as_str());
        phase.is_none_or(|phase| !shared.contains(&phase))
    };
    let alone: Vec<&CellDrift> = drifts.cells.iter().filter(is_alone).collect();
    told.extend(alone.iter().take(NAMED).filter_map(|cell| {
        let step = cell.steps.first()?;
        let (before, after) = (iops(step.before), iops(step.after));
        let when = step.when("");
        Some(format!(
            "`{}` changed from {before} to {after} IOPS {when} into the run",
            cell.cell_name
        ))
    }));
    if alone.len() > NAMED {
        told.push(format!("so did {} more", count((alone.len() - NAMED) as u64, "cell")));
    }
    told.extend(standstills(view));
    told
}

/// Those that took a good part of a visit; whose they were is told elsewhere.
fn standstills(view: &View<'_>) -> Option<String> {
    let events = freeze::freezes(view).events;
    let of_visit = |event: &Freeze| {
        let visit = view.run.visits.iter().find(|visit| visit.order == event.order);
        visit.map_or(0, record::VisitRecord::rated_ns)
    };
    let large =
        |event: &&Freeze| event.length_ns as f64 >= Standstills::SHARE_MIN * of_visit(event) as f64;
    let found: Vec<&Freeze> = events.iter().filter(large).collect();
    let longest = found.iter().max_by_key(|event| event.length_ns)?;
    let place = format!(
        "`{}`, visit {}, {} into the run",
        longest.cell_name,
        u64::from(longest.repeat) + 1,
        seconds(longest.start_in_run_ns as f64 / 1e9)
    );
    let length = seconds(longest.length_ns as f64 / 1e9);
    Some(match found.len() {
        1 => format!("nothing came back for {length} ({place})"),
        n => format!("nothing came back for a while {n} times, for {length} at most ({place})"),
    })
}
