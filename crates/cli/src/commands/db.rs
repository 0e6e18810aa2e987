//! `plimsoll db`: the same questions asked by a database.

use std::ffi::OsString;
use std::path::{Display, Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use db::{Engine, ServerUrl};
use explain::compare::Terms;
use explain::database::{DatabaseCommits, SUITE, SessionFigure, commits};
use explain::transactions::{
    self, DatabaseTransactions, DeviceFigure, TimeShares, TransactionFigure,
};
use explain::view::View;
use finding::Section;
use report::Columns;
use runner::{Order, TargetName};
use store::Store;
use suite::model::TransactionLoad;
use units::{Bytes, Nanos};

use crate::args::Common;
use crate::commands::calibrate;
use crate::commands::durability::{DurabilityArgs, durability};
use crate::commands::live::{self, LiveArgs, NamedSide, SideFile};
use crate::commands::profile::{ProfileArgs, profile};
use crate::commands::run;
use crate::commands::which::refuse_unfit;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{AskOptions, SuiteOptions};
use crate::order;
use crate::output::{Output, json};
use crate::signals::SignalWatch;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll db commit --on /ssd                      # SQLite: nothing to install
  plimsoll db commit --on /ssd --engine postgres    # a server that is started and removed again
  plimsoll db commit --on /hdd --log-on /nvme --engine mariadb
  plimsoll db commit --on /ssd --engine postgres --dry-run
  plimsoll db tpcc --on /ssd --warehouses 10 --engine mariadb
  plimsoll db tpcb --on /ssd --scale 50 --engine postgres
  plimsoll db oltp --on /ssd --scale 50 --engine mariadb --uniform
  PGPASSWORD=... plimsoll db tpcc --server postgres://joe@db1/postgres --warehouses 10
  plimsoll db profile --server postgres://joe@db1/app      # what it asks of its storage, as a suite
  plimsoll db durability --server postgres://joe@db1/app   # you cut its power, nothing may be missing";

/// Visits of each number of sessions; of commits, blocks in which database and place take turns.
const VISITS: u32 = 8;
/// Of each visit, before its measured part; it has another in the suite of transactions.
const RAMP_S: f64 = 0.5;
const TRANSACTIONS_RAMP_S: f64 = 1.0;
/// Shorter visits are decided by their start and end.
const VISIT_S_MIN: f64 = 0.5;
/// Cache of a database that commits: what each engine comes with.
const COMMIT_MEMORY: Bytes = Bytes::mib(128);
/// The cache of transactions is a quarter of the data, within these.
const TRANSACTIONS_MEMORY_MIN: Bytes = Bytes::mib(32);
const TRANSACTIONS_MEMORY_MAX: Bytes = Bytes::gib(1);

/// Ask a database what its storage carries
///
/// Plimsoll starts a database of its own in a directory that it makes, asks it and removes it. On a server
/// that you name it makes a database and drops it. It never touches a database that is there.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DbArgs {
    #[command(subcommand)]
    command: DbCommand,
}

#[derive(Debug, Subcommand)]
enum DbCommand {
    Commit(Box<CommitArgs>),
    Tpcc(Box<TpccArgs>),
    Tpcb(Box<TpcbArgs>),
    Oltp(Box<OltpArgs>),
    Profile(Box<ProfileArgs>),
    Durability(Box<DurabilityArgs>),
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
    #[command(flatten)]
    database: DatabaseOptions,
}

/// How many transactions of TPC-C does a database carry on a place
///
/// The database is made and loaded for it, about 110 MB for each warehouse. Its sessions play the five
/// transactions of TPC-C without keying and think times, and afterwards the specification's
/// consistency conditions are checked. The figure is New-Orders a minute, with how long they take and
/// what each transaction asks of the device.
///
/// SQLite is built in. PostgreSQL and MariaDB are started as for `plimsoll db commit`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TpccArgs {
    /// How large the database is, about 110 MB each
    #[arg(long, short = 'w', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    warehouses: u32,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// How many transactions of pgbench does a database carry on a place
///
/// The tables of pgbench are made and loaded, 15 MB for each branch, and its sessions play its
/// transaction: an account, a teller and a branch are changed, and a line of history is written. With
/// fewer branches than sessions they wait for each other's rows.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct TpcbArgs {
    /// How large the database is, in branches of 100 000 accounts
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20_000))]
    scale: u32,
    /// Only read an account each, as `pgbench -S`
    #[arg(long)]
    select_only: bool,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// How many transactions of sysbench's OLTP scripts does a database carry on a place
///
/// One table as sysbench 1.0 makes it, and the transaction of its script: 14 reads and 4 writes of
/// `oltp_read_write`. Three quarters of all rows are drawn from less than a hundredth of the table, as
/// sysbench does without being told; that hundredth is in memory soon. `--uniform` draws all rows alike.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct OltpArgs {
    /// How large the table is, in 100 000 rows of 240 bytes
    #[arg(long, short, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=20_000))]
    scale: u32,
    /// read-write, read-only, write-only or point-select
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Script::ReadWrite)]
    #[arg(hide_possible_values = true)]
    script: Script,
    /// Draw all rows alike, as `sysbench --rand-type=uniform`
    #[arg(long)]
    uniform: bool,
    #[command(flatten)]
    database: DatabaseOptions,
}

/// Which of sysbench's scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Script {
    ReadWrite,
    ReadOnly,
    WriteOnly,
    PointSelect,
}

impl OltpArgs {
    const fn load(&self) -> TransactionLoad {
        match (self.script, self.uniform) {
            (Script::ReadWrite, false) => TransactionLoad::OltpReadWrite,
            (Script::ReadOnly, false) => TransactionLoad::OltpReadOnly,
            (Script::WriteOnly, false) => TransactionLoad::OltpWriteOnly,
            (Script::PointSelect, false) => TransactionLoad::OltpPointSelect,
            (Script::ReadWrite, true) => TransactionLoad::OltpReadWriteUniform,
            (Script::ReadOnly, true) => TransactionLoad::OltpReadOnlyUniform,
            (Script::WriteOnly, true) => TransactionLoad::OltpWriteOnlyUniform,
            (Script::PointSelect, true) => TransactionLoad::OltpPointSelectUniform,
        }
    }
}

/// Which database, where, and how long.
#[derive(Debug, Args)]
struct DatabaseOptions {
    /// Directory on the storage in question
    #[arg(long, value_name = "DIRECTORY", required_unless_present = "server")]
    on: Option<PathBuf>,
    /// A server that is there, postgres://USER@HOST/DATABASE or mysql://...: a database of its own is made
    /// on it, and dropped at the end. Password: PGPASSWORD, MYSQL_PWD. Not for `commit`
    #[arg(long, value_name = "URL", value_parser = server_target)]
    #[arg(conflicts_with_all = ["on", "engine", "log_on", "memory"])]
    server: Option<String>,
    /// Which database: postgres, mariadb or sqlite
    #[arg(long, value_name = "NAME", value_enum, default_value_t = DatabaseEngine::Sqlite)]
    #[arg(hide_possible_values = true)]
    engine: DatabaseEngine,
    /// Directory for the log (WAL, redo), on other storage; not for SQLite
    #[arg(long, value_name = "DIRECTORY")]
    log_on: Option<PathBuf>,
    /// Cache of the database: shared_buffers, innodb_buffer_pool_size [default: 128MiB, and a
    /// quarter of what is loaded, up to 1 GiB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Numbers of sessions [default: 1, 8 and 64, of transactions 1 and 8; 1 for SQLite, which has one
    /// writer at a time]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    sessions: Vec<u32>,
    /// How long to measure, without the time to start the database
    ///
    /// Each of the eight visits to a number of sessions takes at least half a second, and what comes before it.
    #[arg(long, value_name = "N", default_value = "2", value_parser = minutes)]
    minutes: f64,
    #[command(flatten)]
    ask: AskOptions,
}

/// A URL as a target is named.
fn server_target(url: &str) -> Result<String, String> {
    match url.split_once(':') {
        Some(("postgres" | "postgresql", rest)) => Ok(format!("postgres:{rest}")),
        Some(("mysql" | "mariadb", rest)) => Ok(format!("mariadb:{rest}")),
        _ => Err("wanted postgres://USER@HOST/DATABASE or mysql://USER@HOST".to_owned()),
    }
}

/// A server that is asked without being measured.
pub fn server_url(url: &str) -> Result<ServerUrl, String> {
    let target = server_target(url)?;
    let (engine, rest) = target.split_once(':').unwrap_or_default();
    ServerUrl::parse(Engine::parse(engine).unwrap_or(Engine::Postgres), rest)
}

pub fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes| (0.1..=1440.0).contains(minutes));
    minutes.ok_or_else(|| "wanted minutes from 0.1 to 1440".to_owned())
}

pub fn db(args: &DbArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        DbCommand::Commit(args) => commit(&args.database, common, output),
        DbCommand::Tpcc(args) => {
            let load = ("tpcc", TransactionLoad::Tpcc, args.warehouses);
            play(load, &args.database, common, output)
        }
        DbCommand::Tpcb(args) => {
            let load = match args.select_only {
                false => TransactionLoad::Tpcb,
                true => TransactionLoad::TpcbSelect,
            };
            play(("tpcb", load, args.scale), &args.database, common, output)
        }
        DbCommand::Profile(args) => profile(args, output),
        DbCommand::Durability(args) => durability(args, output),
        DbCommand::Oltp(args) => {
            play(("oltp", args.load(), args.scale), &args.database, common, output)
        }
    }
}

fn commit(args: &DatabaseOptions, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    let output = &output.quiet(args.ask.quiet);
    if let Some(server) = &args.server {
        let why = "a server that is there has no place to take turns with";
        return Err(Failure::new(ExitCode::Usage, why)
            .hint(format!("`plimsoll run commits --target {server}` measures it alone")));
    }
    args.refuse_unfit()?;
    let sides = args.sides();
    let told = LiveArgs::in_blocks(VISITS, &args.ask);
    let Some(measured) = live::measure(&told, None, &sides, common, output)? else {
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
        output.print(&if args.ask.json { json(&found)? } else { text(&found) })?;
    }
    output.note(&format!(
        "stored as {}: `plimsoll compare {}` shows every figure",
        ids.join(", "),
        ids.join(" ")
    ));
    Ok(measured.code().unwrap_or(ExitCode::Ok))
}

/// Plays a suite of transactions, of one load and scale.
fn play(
    (suite, load, scale): (&str, TransactionLoad, u32),
    database: &DatabaseOptions,
    common: &Common,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let output = &output.quiet(database.ask.quiet);
    database.refuse_unfit()?;
    let sessions = database.sessions(&[1, 8]);
    let options = SuiteOptions {
        set: vec![
            format!("queue_depth={sessions:?}"),
            format!("transactions.load={}", load.name()),
            format!("transactions.scale={scale}"),
        ],
        time: Some(database.time(sessions.len(), TRANSACTIONS_RAMP_S)),
        ..SuiteOptions::default()
    };
    let mut source = order::suite(&OsString::from(suite), &options)?;
    order::exactly(&mut source, VISITS)?;
    // All of them are made, however early the rate is known.
    source.set_precision(1.0)?;
    let quarter = Bytes::mib((load.unit_bytes().get() >> 20) * u64::from(scale) / 4);
    let target = database.target(quarter.clamp(TRANSACTIONS_MEMORY_MIN, TRANSACTIONS_MEMORY_MAX));
    let store_path = order::store_path(common)?;
    let prepared = runner::prepare(&Order {
        source,
        targets: vec![TargetName::parse(target.as_ref())?],
        seed: database.ask.seed,
        size_given: false,
        settings: order::settings(&database.ask.consent, &database.ask.manner, store_path.clone()),
    })?;
    if database.ask.dry_run {
        let lines = prepared.describe().into_iter().map(|line| report::plain(&line) + "\n");
        output.print(&lines.collect::<String>())?;
        return Ok(ExitCode::Ok);
    }
    let mut store = Store::open(&store_path)?;
    let signals = SignalWatch::start()?;
    let measured = run::measure(prepared, &mut store, output, None, &signals, None);
    let outcome = measured.map_err(|broken| broken.failure)?;
    let played = store.load(&outcome.run)?;
    let found = transactions::transactions(&View::new(&played));
    output.print(&if database.ask.json { json(&found)? } else { transactions_text(&found) })?;
    output.note(&format!("stored as {}: `plimsoll show {0}` shows every figure", outcome.run));
    let code = run::code(&outcome, signals.code());
    run::tell_trouble(&outcome, code, output);
    Ok(if found.consistent == Some(false) { ExitCode::Mismatch } else { code })
}

fn sentences(answer: &Section) -> String {
    let lines = answer.sentences();
    lines.iter().map(|line| report::wrapped("", &report::plain(line))).collect()
}

/// The answer, then every kind of transaction.
fn transactions_text(found: &DatabaseTransactions) -> String {
    let out = sentences(&found.answer);
    if found.figures.is_empty() {
        return out;
    }
    let mut columns = Columns::new(vec![true, false, true, true, true, true, true]);
    let heads = ["sessions", "transaction", "share", "median", "90 %", "99 %", "99.9 %"];
    columns.row(heads.map(str::to_owned).to_vec());
    for figure in &found.figures {
        for kind in &figure.kinds {
            let time = |percentile: f64| {
                let told = kind.response_ns.iter().find(|(known, _)| *known == percentile);
                let shown = |(_, ns): &(f64, u64)| finding::numbers::seconds(*ns as f64 / 1e9);
                told.map_or("-".to_owned(), shown)
            };
            columns.row(vec![
                figure.sessions.to_string(),
                kind.kind.clone(),
                finding::numbers::percent(kind.share),
                time(50.0),
                time(90.0),
                time(99.0),
                time(99.9),
            ]);
        }
    }
    format!("{out}\n{}\n{}", columns.print(), costs_text(found))
}

/// Where the time of a transaction goes, and what it asks of the device.
fn costs_text(found: &DatabaseTransactions) -> String {
    let mut columns = Columns::new(vec![true; 9]);
    let heads = ["sessions", "commit", "locks", "reads", "other", "processors"];
    let asked = ["reads each", "writes each", "flushes each"];
    columns.row(heads.iter().chain(&asked).map(|&head| head.to_owned()).collect());
    for TransactionFigure { sessions, time, busy, device, .. } in &found.figures {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let share = |of: fn(&TimeShares) -> Option<f64>| {
            or_dash(time.as_ref().and_then(of).map(finding::numbers::percent))
        };
        let each = |of: fn(&DeviceFigure) -> f64| {
            or_dash(device.as_ref().map(of).map(finding::numbers::digits))
        };
        columns.row(vec![
            sessions.to_string(),
            share(|time| Some(time.commits)),
            share(|time| time.locks),
            share(|time| time.reads),
            share(|time| Some(time.other)),
            or_dash(busy.map(|busy| format!("{busy:.1} of {}", found.processors))),
            each(|device| device.reads),
            each(|device| device.writes),
            each(|device| device.flushes),
        ]);
    }
    columns.print()
}

/// The answer, then every figure.
fn text(found: &DatabaseCommits) -> String {
    let out = sentences(&found.answer);
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

impl DatabaseOptions {
    fn refuse_unfit(&self) -> Result<(), Failure> {
        let mut places = self.on.iter().chain(&self.log_on);
        places.try_for_each(|place| refuse_unfit(&place.display().to_string()))
    }

    fn place(&self) -> Display<'_> {
        self.on.as_deref().unwrap_or(Path::new("")).display()
    }

    /// As a target is named.
    fn target(&self, memory: Bytes) -> String {
        if let Some(server) = &self.server {
            return server.clone();
        }
        let log = self.log_on.as_ref().map(|log| format!(",log={}", log.display()));
        let log = log.unwrap_or_default();
        let (name, on) = (self.engine.name(), self.place());
        format!("{name}:{on}{log},memory={}", self.memory.unwrap_or(memory).exact())
    }

    fn sessions(&self, otherwise: &[u32]) -> Vec<u32> {
        match self.sessions.as_slice() {
            [] if self.server.is_none() && self.engine == DatabaseEngine::Sqlite => vec![1],
            [] => otherwise.to_vec(),
            given => given.to_vec(),
        }
    }

    /// Measured time of one of so many visits.
    fn time(&self, visits: usize, ramp_s: f64) -> Nanos {
        let each = self.minutes * 60.0 / (f64::from(VISITS) * visits as f64);
        Nanos::from_secs_f64((each - ramp_s).max(VISIT_S_MIN))
    }

    /// The database, and the place that its log is on.
    fn sides(&self) -> Vec<NamedSide> {
        let name = self.engine.name();
        let database = self.target(COMMIT_MEMORY);
        let log_on = self.log_on.as_ref().map(|log| log.display().to_string());
        let place = log_on.unwrap_or_else(|| self.place().to_string());
        let sessions = self.sessions(&[1, 8, 64]);
        let time = self.time(2 * sessions.len(), RAMP_S);
        let depths: Vec<_> = sessions.iter().map(|&n| toml::Value::Integer(n.into())).collect();
        let side = |target: &str| SideFile {
            suite: SUITE.to_owned(),
            target: target.to_owned(),
            time: Some(time.exact()),
            set: [("queue_depth".to_owned(), toml::Value::Array(depths.clone()))].into(),
            ..SideFile::default()
        };
        let (database, other) = (side(&database), side(&place));
        vec![(format!("{name} on {}", self.place()), database), (place, other)]
    }
}
