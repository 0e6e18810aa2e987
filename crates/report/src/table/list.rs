use record::{PartOf, RunState, RunSummary};

use crate::text::{Columns, cut, plain, utc};

/// One line per run, in the order given.
pub fn list(runs: &[RunSummary]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let parts = runs.iter().any(|run| run.part.is_some());
    let mut left = vec![true, true, true, false, false, true, true];
    let mut head = vec!["run", "started (UTC)", "state", "visits", "warnings", "suite", "target"];
    if parts {
        left.insert(6, true);
        head.insert(6, "part of");
    }
    let mut table = Columns::new(left);
    table.row(head.into_iter().map(str::to_owned).collect());
    for run in runs {
        let mut row = vec![
            plain(&run.id),
            run.started_unix_ns.map_or_else(|| "-".to_owned(), utc),
            state(run).to_owned(),
            format!("{}/{}", run.visits_made, run.visits_planned),
            run.warnings.to_string(),
            cut(&plain(&run.suite), 24),
            plain(&run.target),
        ];
        if parts {
            row.insert(6, run.part.as_ref().map(part).unwrap_or_default());
        }
        table.row(row);
    }
    table.print()
}

/// `one-dvd-per-second 3/8 1f2e3d4c`: the list, which of how many, the group.
fn part(part: &PartOf) -> String {
    let PartOf { group, list, number, of, .. } = part;
    plain(&format!("{list} {number}/{of} {group}"))
}

const fn state(run: &RunSummary) -> &'static str {
    match (run.state, run.live) {
        _ if run.imported.is_some() => "imported",
        (_, true) => "running",
        // Says running, but no process holds it.
        (RunState::Running, false) => "killed",
        (state, false) => state.name(),
    }
}
