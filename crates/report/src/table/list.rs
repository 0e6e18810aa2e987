use record::{RunState, RunSummary};

use crate::text::{Columns, cut, plain, utc};

/// One line per run, in the order given.
pub fn list(runs: &[RunSummary]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let mut table = Columns::new(vec![true, true, true, false, false, true, true]);
    let head = ["run", "started (UTC)", "state", "visits", "warnings", "suite", "target"];
    table.row(head.map(str::to_owned).to_vec());
    for run in runs {
        table.row(vec![
            plain(&run.id),
            run.started_unix_ns.map_or_else(|| "-".to_owned(), utc),
            state(run).to_owned(),
            format!("{}/{}", run.visits_made, run.visits_planned),
            run.warnings.to_string(),
            cut(&plain(&run.suite), 24),
            plain(&run.target),
        ]);
    }
    table.print()
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
