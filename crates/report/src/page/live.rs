//! The contract `plimsoll.live/1`: what a server tells of the runs in its store, at first and
//! whenever something changes.

use schemars::JsonSchema;
use serde::Serialize;

use crate::json::{self, PartOf};
use crate::table::Listed;

/// The name of the contract.
pub const LIVE_SCHEMA: &str = "plimsoll.live/1";

/// Runs as they stand, newest last.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.live/1")]
pub struct Live {
    /// Always `plimsoll.live/1`.
    #[schemars(extend("const" = LIVE_SCHEMA))]
    pub schema: String,
    /// Version of the program that serves.
    pub program: String,
    /// The file that the runs are in.
    pub store: String,
    /// Rises with every change that is told.
    pub version: u64,
    /// Whether these are all runs; else only those that changed, and the others are as before.
    pub whole: bool,
    /// Why the store cannot be read now; null where it can.
    pub trouble: Option<Trouble>,
    /// The runs.
    pub runs: Vec<LiveRun>,
}

/// Something that keeps an answer back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Trouble {
    /// What is wrong.
    pub error: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A run on one line.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LiveRun {
    /// Its id in its store.
    pub id: String,
    /// The suite's name.
    pub suite: String,
    /// What was measured, as the user named it.
    pub target: String,
    /// The tool that made it, if it was imported.
    pub imported: Option<String>,
    /// Wall clock at the start, ns since 1970; null where nobody tells.
    pub started_unix_ns: Option<i64>,
    /// How it stands, in the word of all heads: `running` while a process works on it, else `killed`,
    /// `complete`, `out of time`, `interrupted`, `failed` or `imported`; `damaged` of one that cannot be
    /// read, of which only the id is known.
    pub standing: String,
    /// How many visits count, as `plimsoll list` says.
    pub visits_made: u32,
    /// How many there were to be.
    pub visits_planned: u32,
    /// How many warnings it has, its visits' included.
    pub warnings: u32,
    /// Its place in a list of suites.
    pub part: Option<PartOf>,
    /// The [`Live::version`] with which it changed last.
    pub version: u64,
}

impl LiveRun {
    /// * `version`: the one with which it changed.
    pub fn new(listed: &Listed, version: u64) -> Self {
        let Listed { run: summary, standing, visits } = listed;
        Self {
            id: summary.id.clone(),
            suite: summary.suite.clone(),
            target: summary.target.clone(),
            imported: summary.imported.clone(),
            started_unix_ns: summary.started_unix_ns,
            standing: standing.clone(),
            visits_made: visits.made,
            visits_planned: visits.planned,
            warnings: summary.warnings,
            part: summary.part.as_ref().map(json::part),
            version,
        }
    }
}

/// The JSON schema of [`Live`], draft 2020-12.
pub fn live_schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Live>()
}
