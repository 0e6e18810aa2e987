//! `plimsoll db`: the same questions asked by a database.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use explain::compare::Terms;
use explain::database::{DatabaseCommits, SUITE, SessionFigure, commits};
use explain::view::View;
use report::Columns;
use units::{Bytes, Nanos};

use crate::args::Common;
use crate::commands::calibrate;
use crate::commands::compare::CompareArgs;
use crate::commands::live::{self, LiveArgs, NamedSide, SideFile};
use crate::commands::which::refuse_unfit;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{ConsentOptions, MannerOptions, Share};
use crate::order;
use crate::output::{Output, json};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll db commit --on /ssd                      # SQLite: nothing to install
  plimsoll db commit --on /ssd --engine postgres    # a server that is started and removed again
  plimsoll db commit --on /hdd --log-on /nvme --engine mariadb
  plimsoll db commit --on /ssd --engine postgres --dry-run";

/// Blocks in which database and place take turns.
const BLOCKS: u32 = 8;
/// Of each visit, before its measured part.
const RAMP_S: f64 = 0.5;
/// Shorter visits are decided by their start and end.
const VISIT_S_MIN: f64 = 0.5;

/// Ask a database what its storage carries
///
/// Plimsoll starts a database of its own in a directory that it makes, asks it and removes it. It never
/// touches a database that is there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    Commit(Box<CommitArgs>),
}

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DatabaseEngine {
    #[value(alias = "postgresql")]
    Postgres,
    #[value(alias = "mysql", alias = "innodb")]
    Mariadb,
    Sqlite,
}

impl DatabaseEngine {
    const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Mariadb => "mariadb",
            Self::Sqlite => "sqlite",
        }
    }
}

/// How many commits a second does a database make on a place, and what limits it
///
/// 1, 8 and 64 sessions each insert a row of 100 bytes and wait until it is durable. The same sessions
/// then commit to the place itself, without a database, in turns with it: what the database makes of
/// that, and how busy the processors were, says what limits it.
///
/// PostgreSQL and MariaDB are started from the installed programs, in a directory that Plimsoll makes
/// under the path, reachable through a socket in it alone, as the package's own user where Plimsoll runs as
/// root. The directory is removed afterwards. SQLite is built in.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CommitArgs {
    /// Directory on the storage in question
    #[arg(long, value_name = "DIRECTORY")]
    on: PathBuf,
    /// Which database: postgres, mariadb or sqlite
    #[arg(long, value_name = "NAME", value_enum, default_value_t = DatabaseEngine::Sqlite)]
    #[arg(hide_possible_values = true)]
    engine: DatabaseEngine,
    /// Directory for the log (WAL, redo), on other storage; not for SQLite
    #[arg(long, value_name = "DIRECTORY")]
    log_on: Option<PathBuf>,
    /// Cache of the database: shared_buffers, innodb_buffer_pool_size
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    memory: Bytes,
    /// Numbers of sessions [default: 1,8,64; 1 for SQLite, which has one writer at a time]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    sessions: Vec<u32>,
    /// How long to measure, without the time to start the database
    #[arg(long, value_name = "N", default_value = "2", value_parser = minutes)]
    minutes: f64,
    /// Where all randomness comes from; drawn and stored if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Say what would be made, started and removed, and stop
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,
    /// Print one JSON document (plimsoll.database/1)
    #[arg(long)]
    json: bool,
    /// No progress and no notes on stderr; errors still are
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    consent: ConsentOptions,
    #[command(flatten)]
    manner: MannerOptions,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes| (0.1..=1440.0).contains(minutes));
    minutes.ok_or_else(|| "wanted minutes from 0.1 to 1440".to_owned())
}

pub fn db(args: &DbArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        DbCommand::Commit(args) => commit(args, common, output),
    }
}

fn commit(args: &CommitArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    let output = &output.quiet(args.quiet);
    for place in std::iter::once(&args.on).chain(&args.log_on) {
        refuse_unfit(&place.display().to_string())?;
    }
    let sides = args.sides();
    let told = args.as_comparison(&sides);
    let Some(measured) = live::measure(&told, &sides, common, output)? else {
        return Ok(ExitCode::Ok);
    };
    let store = order::store_to_read(common)?;
    let ids: Vec<&str> = measured.outcomes.iter().map(|outcome| outcome.run.as_str()).collect();
    let runs = ids.iter().map(|id| store.load(id)).collect::<Result<Vec<_>, _>>()?;
    let floor = calibrate::floor_of(&store, &runs, output)?;
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    if let [database, place] = views.as_slice() {
        let terms = Terms { floor, ..Terms::default() };
        let found = commits(database, place, &terms);
        output.print(&if args.json { json(&found)? } else { text(&found) })?;
    }
    output.note(&format!(
        "stored as {}: `plimsoll compare {}` shows every figure",
        ids.join(", "),
        ids.join(" ")
    ));
    Ok(measured.code().unwrap_or(ExitCode::Ok))
}

/// The answer, then every figure.
fn text(found: &DatabaseCommits) -> String {
    let lines = found.answer.sentences();
    let out: String = lines.iter().map(|line| report::wrapped("", &report::plain(line))).collect();
    if found.figures.is_empty() {
        return out;
    }
    let mut columns = Columns::new(vec![true; 6]);
    let heads = ["sessions", "database", "place", "database / place", "processors", "per flush"];
    columns.row(heads.map(str::to_owned).to_vec());
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let shown =
        |number: &Option<finding::Number>| or_dash(number.as_ref().map(finding::text::shown));
    for figure in &found.figures {
        let SessionFigure { sessions, commits, place, ratio, busy, commits_per_flush, .. } = figure;
        columns.row(vec![
            sessions.to_string(),
            finding::text::shown(commits),
            shown(place),
            shown(ratio),
            or_dash(busy.map(|busy| format!("{busy:.2} of {}", found.processors))),
            or_dash(commits_per_flush.map(|each| format!("{each:.1}"))),
        ]);
    }
    format!("{out}\n{}", columns.print())
}

impl CommitArgs {
    /// The database, and the place that its log is on.
    fn sides(&self) -> Vec<NamedSide> {
        let name = self.engine.name();
        let log = self.log_on.as_ref().map(|log| format!(",log={}", log.display()));
        let log = log.unwrap_or_default();
        let database = format!("{name}:{}{log},memory={}", self.on.display(), self.memory.exact());
        let place = self.log_on.as_ref().unwrap_or(&self.on).display().to_string();
        let sessions = match self.sessions.as_slice() {
            [] if self.engine == DatabaseEngine::Sqlite => vec![1],
            [] => vec![1, 8, 64],
            given => given.to_vec(),
        };
        let visits = f64::from(BLOCKS) * sessions.len() as f64 * 2.0;
        let time = (self.minutes * 60.0 / visits - RAMP_S).max(VISIT_S_MIN);
        let depths: Vec<_> = sessions.iter().map(|&n| toml::Value::Integer(n.into())).collect();
        let side = |target: &str| SideFile {
            suite: SUITE.to_owned(),
            target: target.to_owned(),
            time: Some(Nanos::from_secs_f64(time).exact()),
            set: [("queue_depth".to_owned(), toml::Value::Array(depths.clone()))].into(),
            ..SideFile::default()
        };
        let (database, other) = (side(&database), side(&place));
        vec![(format!("{name} on {}", self.on.display()), database), (place, other)]
    }

    /// The same as a comparison that measures first.
    fn as_comparison(&self, sides: &[NamedSide]) -> CompareArgs {
        CompareArgs {
            runs: sides.iter().map(|(name, _)| name.clone()).collect(),
            margin: Share(explain::which::MARGIN),
            confidence: Share(0.95),
            group: false,
            cells: false,
            json: self.json,
            format: None,
            exit_code: None,
            live: LiveArgs {
                live: true,
                blocks: Some(BLOCKS),
                aa_every: Some(0),
                seed: self.seed,
                dry_run: self.dry_run,
                quiet: self.quiet,
                consent: self.consent.clone(),
                manner: self.manner.clone(),
            },
        }
    }
}
