//! `plimsoll db profile`: what a server in use asks of its storage, as a suite.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use db::{Engine, ServedLoad, ServerUrl};
use runner::RunError;
use serde::Serialize;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{Output, json};
use crate::result_file;
use crate::signals::SignalWatch;

const EXAMPLES: &str = "\
Examples:
  plimsoll db profile --server postgres://joe@db1/app --seconds 600 --out app.toml
  plimsoll line /ssd --like app.toml    # how many times that load does the place carry";

/// The name of the contract.
const SCHEMA: &str = "plimsoll.profile/1";
/// How often the operator is asked whether to stop, and told how far it is.
const LOOK: Duration = Duration::from_millis(100);
const TELL: Duration = Duration::from_secs(5);
/// More bytes of log are no transaction's.
const LOG_MAX: f64 = (8 << 20) as f64;
/// Rarer requests than this a second are left out.
const RATE_MIN: f64 = 0.01;

/// What does a server in use ask of its storage
///
/// Reads the server's counters, twice, and changes nothing. The difference is what it asks for a
/// transaction that writes: bytes of log, page reads, page writes. That is written as a suite:
/// `plimsoll line PLACE --like FILE` says how much of such a load a place carries.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ProfileArgs {
    /// The server: postgres://USER@HOST/DATABASE or mysql://...; password: PGPASSWORD, MYSQL_PWD
    #[arg(long, value_name = "URL", value_parser = super::db::server_url)]
    server: ServerUrl,
    /// How long to watch it: longer than the time between two checkpoints, or page writes are missing
    #[arg(long, value_name = "N", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Where the suite is written
    #[arg(long, value_name = "FILE", default_value = "profile.toml")]
    out: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    force: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

/// What a server asks of its storage, a second.
#[derive(Debug, Serialize)]
pub struct StorageProfile {
    /// Always `plimsoll.profile/1`.
    schema: &'static str,
    /// `PostgreSQL 15.18`.
    program: String,
    /// As it was named.
    server: String,
    /// How long it was watched.
    seconds: f64,
    /// Transactions that wrote, a second.
    commits: f64,
    /// Bytes of log, a second.
    log_bytes: f64,
    /// Pages that were not in the server's cache, a second.
    reads: f64,
    /// Pages written, a second.
    writes: f64,
    /// Bytes of a page.
    page: u64,
    /// Bytes of the databases.
    size: u64,
    /// What is missing in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
}

pub fn profile(args: &ProfileArgs, output: &Output) -> Result<ExitCode, Failure> {
    result_file::check(&args.out, args.force)?;
    let mut server = db::observe(&args.server).map_err(RunError::from)?;
    let Some(found) = watch(args, &mut server, output)? else { return Ok(ExitCode::Interrupted) };
    if found.commits < RATE_MIN {
        let message = format!("{} wrote nothing in {:.0} s", found.program, found.seconds);
        let hint = "profile it while it works, or for longer with --seconds";
        return Err(Failure::new(ExitCode::Target, message).hint(hint));
    }
    output.print(&if args.json { json(&found)? } else { text(&found) })?;
    if found.log_bytes / found.commits > LOG_MAX {
        let each = finding::numbers::size((found.log_bytes / found.commits) as u64);
        let message =
            format!("each transaction logs {each}: a bulk load, which is written as no suite");
        return Err(Failure::new(ExitCode::Target, message)
            .hint("profile the server while it has its usual transactions"));
    }
    result_file::put(&args.out, suite(&found, args.server.engine).as_bytes(), args.force)?;
    let out = args.out.display();
    output.note(&format!(
        "written to {out}: `plimsoll line PLACE --like {out}` says how much of it a place carries"
    ));
    Ok(ExitCode::Ok)
}

/// `None` where the operator stopped it.
fn watch(
    args: &ProfileArgs,
    server: &mut ServedLoad,
    output: &Output,
) -> Result<Option<StorageProfile>, Failure> {
    let signals = SignalWatch::start()?;
    let before = server.counters().map_err(RunError::from)?;
    let (begin, mut told) = (Instant::now(), Instant::now());
    let time = Duration::from_secs(args.seconds);
    while begin.elapsed() < time {
        std::thread::sleep(LOOK.min(time.saturating_sub(begin.elapsed())));
        if signals.code().is_some() {
            return Ok(None);
        }
        if told.elapsed() >= TELL {
            told = Instant::now();
            let left = time.saturating_sub(begin.elapsed()).as_secs();
            output.notes(&format!("watching {}, {left} s left", server.program));
        }
    }
    let after = server.counters().map_err(RunError::from)?;
    let seconds = begin.elapsed().as_secs_f64();
    let value = |of: &[db::ServerCounter], name: &str| {
        of.iter().find(|counter| counter.name == name).map_or(0, |counter| counter.value)
    };
    let rate =
        |name: &str| value(&after, name).saturating_sub(value(&before, name)) as f64 / seconds;
    let remark = (rate("pages written") < RATE_MIN).then(|| {
        format!(
            "No page was written in these {seconds:.0} s, as no checkpoint fell into them: page writes are missing, \
             and log. Watch it for longer than the time between two checkpoints (--seconds 600)."
        )
    });
    Ok(Some(StorageProfile {
        schema: SCHEMA,
        program: server.program.clone(),
        server: args.server.text(),
        seconds,
        commits: rate("commits"),
        log_bytes: rate("log bytes"),
        reads: rate("pages read"),
        writes: rate("pages written"),
        page: server.page.get(),
        size: server.size.get(),
        remark,
    }))
}

fn text(found: &StorageProfile) -> String {
    let StorageProfile {
        program,
        server,
        seconds,
        commits,
        log_bytes,
        reads,
        writes,
        page,
        size,
        ..
    } = found;
    let each = |rate: f64| finding::numbers::digits(rate / commits);
    let bytes = |bytes: f64| finding::numbers::size(bytes as u64);
    let line = format!(
        "{program} ({server}) makes {} transactions/s that write, in {seconds:.0} s. Each asks its \
         storage for {} page reads, {} page writes of {} and {} of log. Its databases have {}.",
        finding::numbers::iops(*commits),
        each(*reads),
        each(*writes),
        bytes(*page as f64),
        bytes(log_bytes / commits),
        bytes(*size as f64),
    );
    let lines = [Some(&line), found.remark.as_ref()].into_iter().flatten();
    lines.map(|line| report::wrapped("", &report::plain(line))).collect()
}

/// The same requests as a suite, at the rate that was seen.
fn suite(found: &StorageProfile, engine: Engine) -> String {
    let StorageProfile {
        program, server, seconds, commits, log_bytes, reads, writes, page, ..
    } = found;
    let remark = found.remark.as_deref().unwrap_or_default();
    let about = format!("{program}, {server}, watched for {seconds:.0} s. {remark}");
    let about = toml::Value::from(about.trim_end());
    let log = ((log_bytes / commits / 1024.0).ceil() as u64).max(1);
    let page = page / 1024;
    let sync = if engine == Engine::Postgres { "fdatasync" } else { "fsync" };
    let stream = |operation: &str, rate: f64| match rate < RATE_MIN {
        true => String::new(),
        false => format!(
            "\n[[phase.stream]]\nname = \"{operation}s\"\noperation = \"{operation}\"\n\
             queue_depth = 256\nrate = {rate:.3}\n"
        ),
    };
    let (reads, writes) = (stream("read", *reads), stream("write", *writes));
    let level = match reads.is_empty() {
        true => "commits p99<5ms",
        false => "reads p99<2ms, commits p99<5ms",
    };
    format!(
        "schema = 1\nname = \"profile\"\ntitle = \"What a database asks of its storage\"\n\
         description = {about}\n\n\
         file_size = \"2GiB\"\nfill = true\nlevel = \"{level}\"\n\
         rounds = {{ visit_time = \"2s\", ramp = \"500ms\", least_operations = 0, pilot = false, \
         visits_max = 10 }}\n\n\
         [defaults]\nregion = {{ start = \"12.5%\", length = \"rest\" }}\nblock_size = \"{page}KiB\"\n\
         direct = true\narrivals = \"poisson\"\ntime = \"2s\"\nramp = \"500ms\"\n\n\
         [[phase]]\nname = \"line\"\n\n\
         [[phase.stream]]\nname = \"commits\"\noperation = \"commit\"\naccess = \"sequential\"\n\
         region = {{ start = \"0B\", length = \"12.5%\" }}\nblock_size = \"{log}KiB\"\n\
         sync = \"{sync}\"\nqueue_depth = 64\ndirect = false\nrate = {commits:.3}\n{reads}{writes}\n\
         [quick]\nfile_size = \"64MiB\"\ntime = \"100ms\"\nramp = \"10ms\"\n\n\
         [quick.rounds]\nvisit_time = \"100ms\"\nramp = \"10ms\"\nvisits_max = 4\n"
    )
}
