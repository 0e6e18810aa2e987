use explain::visits::Visits;
use record::{PartOf, Run, RunState, RunSummary};
use serde::{Serialize, Serializer};

use crate::text::{Columns, cut, plain, utc};

/// A run in a listing.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    /// What is stored of it.
    pub run: RunSummary,
    /// How it stands, in the word of its heads.
    pub standing: String,
    /// What became of its visits.
    pub visits: Visits,
}

impl Listed {
    /// A run by what the store says of it on a line, and by its outline at least.
    pub fn new(summary: RunSummary, run: &Run) -> Self {
        let visits = Visits::of(run);
        let standing = visits.standing(&run.header).to_owned();
        Self { run: summary, standing, visits }
    }

    /// A run of which no more can be read than the line that the store has of it.
    pub fn unread(summary: RunSummary) -> Self {
        let standing = if summary.imported.is_some() { "imported" } else { summary.state.name() };
        let (made, planned) = (summary.visits_made, summary.visits_planned);
        let visits = Visits { made, planned, ..Visits::default() };
        Self { run: summary, standing: standing.to_owned(), visits }
    }

    /// A run of which nothing can be read.
    pub fn damaged(id: String) -> Self {
        let run = RunSummary {
            id,
            suite: String::new(),
            target: String::new(),
            imported: None,
            started_unix_ns: None,
            state: RunState::Failed,
            live: false,
            visits_made: 0,
            visits_planned: 0,
            warnings: 0,
            part: None,
        };
        Self { run, standing: "damaged".to_owned(), visits: Visits::default() }
    }
}

impl Serialize for Listed {
    /// What is stored, but for the state: that is the word of the heads, `standing`, under its old
    /// name too, so that nobody reads `complete` of a run that is out of time.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Line<'a> {
            id: &'a str,
            suite: &'a str,
            target: &'a str,
            imported: &'a Option<String>,
            started_unix_ns: Option<i64>,
            state: &'a str,
            live: bool,
            visits_made: u32,
            visits_planned: u32,
            warnings: u32,
            #[serde(skip_serializing_if = "Option::is_none")]
            part: &'a Option<PartOf>,
            standing: &'a str,
            visits: &'a Visits,
        }
        let run = &self.run;
        Line {
            id: &run.id,
            suite: &run.suite,
            target: &run.target,
            imported: &run.imported,
            started_unix_ns: run.started_unix_ns,
            state: &self.standing,
            live: run.live,
            visits_made: run.visits_made,
            visits_planned: run.visits_planned,
            warnings: run.warnings,
            part: &run.part,
            standing: &self.standing,
            visits: &self.visits,
        }
        .serialize(serializer)
    }
}

/// One line per run, in the order given.
pub fn list(runs: &[Listed]) -> String {
    if runs.is_empty() {
        return "no runs\n".to_owned();
    }
    let parts = runs.iter().any(|listed| listed.run.part.is_some());
    let mut left = vec![true, true, true, false, false, true, true];
    let mut head = vec!["run", "started (UTC)", "state", "visits", "warnings", "suite", "target"];
    if parts {
        left.insert(6, true);
        head.insert(6, "part of");
    }
    let mut table = Columns::new(left);
    table.row(head.into_iter().map(str::to_owned).collect());
    for Listed { run, standing, visits } in runs {
        let mut row = vec![
            plain(&run.id),
            run.started_unix_ns.map_or_else(|| "-".to_owned(), utc),
            standing.clone(),
            format!("{}/{}", visits.made, visits.planned),
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
