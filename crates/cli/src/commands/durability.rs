//! `plimsoll db durability`: whether a server keeps what it has acknowledged when it is killed or loses power.

use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use db::{CommitWitness, Server, ServerUrl};
use runner::RunError;
use serde::Serialize;
use stats::random::derive_seed;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{Output, json};
use crate::signals::SignalWatch;

const EXAMPLES: &str = "\
Examples:
  plimsoll db durability --server postgres://joe@db1/postgres    # then cut the power of db1
  plimsoll db durability --server mysql://joe@db1 --minutes 60 --json";

/// The name of the contract.
const SCHEMA: &str = "plimsoll.durability/1";
/// How often sessions and operator are looked at, and a server asked whether it is back.
const LOOK: Duration = Duration::from_millis(100);
/// How often the operator is told how far it is.
const TELL: Duration = Duration::from_secs(5);
/// A server without an answer for that long is gone: who loses power says no goodbye.
const SILENCE: Duration = Duration::from_secs(10);

/// Does a server keep its acknowledged commits when its power is cut
///
/// Sessions commit rows, and Plimsoll remembers which were acknowledged. Then you cut the power of the server's
/// machine, reset it or kill the server, and start it again. As soon as it answers, Plimsoll looks whether
/// a commit is missing. Run it on another machine than the server's.
///
/// It makes a database of its own on the server and drops it at the end. Do not do this to a server whose data
/// you need.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DurabilityArgs {
    /// The server: postgres://USER@HOST/DATABASE or mysql://...; password: PGPASSWORD, MYSQL_PWD
    #[arg(long, value_name = "URL", value_parser = super::db::server_url)]
    server: ServerUrl,
    /// How many sessions commit
    #[arg(long, value_name = "N", default_value_t = 8)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=512))]
    sessions: u32,
    /// How long to wait for the server to go away, and then for it to come back
    #[arg(long, value_name = "N", default_value_t = 15.0, value_parser = super::db::minutes)]
    minutes: f64,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Durability {
    schema: &'static str,
    program: String,
    server: String,
    sessions: u32,
    /// Commits.
    acknowledged: u64,
    /// Of these.
    missing: u64,
    /// Found, though the answer had not arrived.
    unanswered: u64,
    /// From the last answer to the first one afterwards.
    away_s: f64,
    /// Why commits may be lost, as far as the server's settings say so.
    remarks: Vec<String>,
}

pub fn durability(args: &DurabilityArgs, output: &Output) -> Result<ExitCode, Failure> {
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
    let key = derive_seed(now, &[u64::from(std::process::id())]);
    let ready = db::look_at_server(&args.server, key).map_err(RunError::from)?;
    if args.dry_run {
        return output.print(&(ready.says.join("\n") + "\n")).map(|()| ExitCode::Ok);
    }
    let (program, remarks) = (ready.program.clone(), ready.remarks.clone());
    ready.left.iter().for_each(|left| output.notes(left));
    let signals = SignalWatch::start()?;
    let started = ready.start(args.sessions, &|| signals.code().is_some());
    let Some(server) = started.map_err(RunError::from)? else { return Ok(ExitCode::Interrupted) };
    let witness = server.witness(args.sessions).map_err(RunError::from)?;
    output.notes(&format!(
        "{} commit to {program}. Now cut its power or kill it, and start it again; Ctrl-C stops.",
        finding::numbers::count(args.sessions.into(), "session")
    ));
    let experiment = Experiment { args, signals: &signals, output, server: &server };
    let ended = experiment.until_gone(&witness);
    witness.stop();
    let is_gone = matches!(ended, Ok(Ok(_)));
    let result = match ended {
        Ok(Ok(gone)) => experiment.until_back(&witness, gone),
        Ok(Err(code)) => Ok(Err(code)),
        Err(failure) => Err(failure),
    };
    // Who was told that it is still away was told what is left on it.
    let is_known = is_gone && !matches!(&result, Ok(Ok(_)));
    if let Err(error) = server.stop()
        && !is_known
    {
        output.warning(&format!("{error}; {}", error.hint().unwrap_or_default()));
    }
    let (found, away_s) = match result? {
        Ok(result) => result,
        Err(code) => return Ok(code),
    };
    let db::Surviving { acknowledged, missing, unanswered } = found;
    let shown = Durability {
        schema: SCHEMA,
        program,
        server: args.server.text(),
        sessions: args.sessions,
        acknowledged,
        missing,
        unanswered,
        away_s,
        remarks,
    };
    output.print(&if args.json { json(&shown)? } else { text(&shown) })?;
    Ok(match (acknowledged, missing) {
        (0, _) => ExitCode::CannotTell,
        (_, 0) => ExitCode::Ok,
        _ => ExitCode::Mismatch,
    })
}

/// What was wanted, or how to leave, as the operator stopped it.
type Stopped<T> = Result<Result<T, ExitCode>, Failure>;

struct Experiment<'a> {
    args: &'a DurabilityArgs,
    signals: &'a SignalWatch,
    output: &'a Output,
    server: &'a Server,
}

impl Experiment<'_> {
    fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.args.minutes * 60.0)
    }

    /// Waits until no session gets an answer any more; when the last one came.
    fn until_gone(&self, witness: &CommitWitness) -> Stopped<Instant> {
        let (begin, mut told, mut last) = (Instant::now(), Instant::now(), Instant::now());
        let mut count = 0;
        loop {
            std::thread::sleep(LOOK);
            if let Some(code) = self.signals.code() {
                self.output.note("stopped before the server went away: nothing was tested");
                return Ok(Err(code));
            }
            let now = witness.acknowledged();
            if now > count {
                (count, last) = (now, Instant::now());
            }
            if witness.is_over() || last.elapsed() > SILENCE {
                self.output.notes(&format!(
                    "the server is gone after {count} acknowledged commits; waiting until it is back"
                ));
                return Ok(Ok(last));
            }
            if begin.elapsed() > self.limit() {
                let minutes = self.args.minutes;
                let why = format!("the server was there for {minutes} min: nothing was tested");
                let hint = "cut its power or kill it while this command runs";
                return Err(Failure::new(ExitCode::CannotTell, why).hint(hint));
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                self.output.notes(&format!("{count} commits acknowledged, the server is there"));
            }
        }
    }

    /// Waits until the server answers again; what is there, and for how long it was away.
    fn until_back(&self, witness: &CommitWitness, gone: Instant) -> Stopped<(db::Surviving, f64)> {
        let mut told = Instant::now();
        loop {
            let why = match self.server.surviving(witness) {
                Ok(found) => return Ok(Ok((found, gone.elapsed().as_secs_f64()))),
                Err(error) => error,
            };
            let name = self.server.database();
            if let Some(code) = self.signals.code() {
                self.output.notes(&format!(
                    "stopped; the database {name} is on the server: `drop database {name}` removes it"
                ));
                return Ok(Err(code));
            }
            if gone.elapsed() > self.limit() {
                let minutes = self.args.minutes;
                let message =
                    format!("the server is not back after {minutes} min, with {name} on it: {why}");
                return Err(Failure::new(ExitCode::Target, message)
                    .hint(format!("`drop database {name}` removes it")));
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                let away = finding::numbers::seconds(gone.elapsed().as_secs_f64());
                self.output.notes(&format!("away for {away}: {why}"));
            }
            std::thread::sleep(LOOK);
        }
    }
}

fn text(found: &Durability) -> String {
    let Durability { program, server, acknowledged, missing, unanswered, remarks, .. } = found;
    let away = finding::numbers::seconds(found.away_s);
    let mut lines = Vec::new();
    if *acknowledged == 0 {
        lines.push(format!(
            "{program} acknowledged nothing before it went away: this says nothing."
        ));
    } else if *missing == 0 {
        lines.push(format!(
            "{program} ({server}) lost nothing: all {acknowledged} commits that it acknowledged are there. \
             It was away for {away}."
        ));
    } else {
        lines.push(format!(
            "{program} ({server}) lost {missing} of {acknowledged} commits that it had acknowledged. It \
             was away for {away}."
        ));
        if remarks.is_empty() {
            lines.push(
                "Its settings make commits durable, so something below it answers a flush too early: a cache \
                 of file system, hypervisor, controller or drive."
                    .to_owned(),
            );
        }
    }
    lines.extend(remarks.iter().map(|remark| finding::numbers::capital(remark) + "."));
    if *unanswered > 0 {
        let commits = finding::numbers::count(*unanswered, "commit");
        lines.push(format!("Also there, as is allowed: {commits} without an answer yet."));
    }
    lines.push(
        "Only a power cut tests caches: what a killed process wrote is still in the kernel's, and a server \
         that is stopped in order proves nothing."
            .to_owned(),
    );
    lines.iter().map(|line| report::wrapped("", &report::plain(line))).collect()
}
