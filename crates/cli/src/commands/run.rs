//! `plimsoll run`

use std::ffi::OsString;

use clap::Args;
use explain::visits::Visits;
use record::RunState;
use runner::{Order, Outcome, Prepared, TargetName};
use store::Store;

use crate::args::Common;
use crate::commands::{self, sequence, table};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{ConsentOptions, MannerOptions, SuiteOptions, TalkOptions};
use crate::order::{self, Ordered};
use crate::output::{Output, json};
use crate::progress::{Later, Progress};
use crate::signals::SignalWatch;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll run bm-flash
        on a scratch file in this directory, which is removed afterwards
  plimsoll run bm-flash --target /ssd/test.dat --quick
  plimsoll run bm-flash --precision 2% --max-time 40min
        every cell to +-2 %, as far as 40 minutes allow
  plimsoll run bm-flash --classic
        in the original's order, 10 s a cell
  plimsoll run random-write --target /dev/sdx --destroy /dev/sdx --time 60s
  plimsoll run random-read --target /dev/zero --set block_size=4K --set queue_depth=32 --json
  plimsoll run ./mine.toml --target null: --dry-run
  plimsoll run one-dvd-per-second --target /ssd/ --scale 0.01
        a study's own sequence of suites at a hundredth of its sizes, a run for each";

/// Measure a target by a suite, store the results, print the tables
///
/// The suite's cells are visited in rounds of random order, each until it reaches the target
/// precision (`--precision`). Cells with anomalies are visited until the end. `--classic` runs
/// the suite in its own order instead. Before each visit Plimsoll waits until the device is idle.
///
/// Reads need no permission. Writes go to files that plimsoll made itself, unless `--overwrite`
/// or `--destroy` names what may be lost. Ctrl-C ends the visit under way, stores it and prints
/// what there is; pressed again it stops at once. `plimsoll resume` goes on.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RunArgs {
    /// A name from `plimsoll suite list`, or a file
    #[arg(value_name = "SUITE|FILE.toml")]
    pub suite: OsString,
    /// What to measure: a file (made if it is not there), a directory, a device, or a simulated device
    ///
    /// Not given: a scratch file in the current directory, sized to the free space and removed
    /// afterwards. Simulated: `null:` (our own overhead), `memory:SIZE`, `model:FILE.toml` (a
    /// simulated device on a virtual clock), `array:ARRAY` (an array of `plimsoll predict`).
    /// `layer:TARGET` is a volume of the write-optimising layer there, made for the run and filled to 60 %;
    /// `layer:TARGET,fill=80%` to more.
    ///
    /// May be repeated for files, directories and devices: each has the suite's files, and the
    /// suite's `spread` says how requests go over them.
    #[arg(long, short, value_name = "TARGET")]
    pub target: Vec<OsString>,
    /// Where all randomness comes from; drawn and stored if not given
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Say what would be read, written, made and removed, and stop
    #[arg(long, conflicts_with = "json")]
    pub dry_run: bool,
    /// Of a list of suites: begin with this run of it, counted from 1 over parts and repeats
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub from_part: Option<u32>,
    /// For a list of suites: add the new runs to this stored group (an interrupted list prints it)
    #[arg(long, value_name = "GROUP", requires = "from_part")]
    pub group: Option<String>,
    #[command(flatten)]
    pub suite_options: SuiteOptions,
    #[command(flatten)]
    pub consent: ConsentOptions,
    #[command(flatten)]
    pub manner: MannerOptions,
    #[command(flatten)]
    pub talk: TalkOptions,
}

pub fn run(args: &RunArgs, common: &Common, output: Output) -> Result<ExitCode, Failure> {
    let output = output.quiet(args.talk.quiet);
    let source = match order::ordered(&args.suite, &args.suite_options)? {
        Ordered::One(source) => *source,
        Ordered::Many(list) => return sequence::run(args, &list, common, output),
    };
    if args.from_part.is_some() {
        let message = format!("--from-part is for lists, and `{}` is one suite", source.name());
        let hint = "`plimsoll resume` goes on with a run that was interrupted";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    order::tell_doubts(&source, &output);
    let store_path = order::store_path(common)?;
    let prepared = runner::prepare(&Order {
        source,
        targets: targets(args)?,
        seed: args.seed,
        size_given: order::size_given(&args.suite_options),
        settings: order::settings(&args.consent, &args.manner, store_path.clone()),
    })?;
    if args.target.len() > 1 {
        output.note(
            "requests are spread over all targets, and there is one result; to compare places: \
             `plimsoll which A B`",
        );
    }
    if args.dry_run {
        let lines = prepared.describe().into_iter().map(|line| report::plain(&line) + "\n");
        output.print(&lines.collect::<String>())?;
        return Ok(ExitCode::Ok);
    }
    let mut store = Store::open(&store_path)?;
    let stays: Vec<String> = prepared.stays().iter().map(|p| p.display().to_string()).collect();
    let code = play(prepared, &mut store, &args.talk, &output, None)?;
    for path in stays {
        output.note(&report::plain(&format!("{path} was made, and stays")));
    }
    Ok(code)
}

/// What is to be measured.
pub fn targets(args: &RunArgs) -> Result<Vec<TargetName>, Failure> {
    args.target.iter().map(|target| Ok(TargetName::parse(target)?)).collect()
}

/// Runs what was prepared, and prints what came of it.
///
/// * `so_far`: the run as it is stored, if it goes on.
pub fn play(
    prepared: Prepared,
    store: &mut Store,
    talk: &TalkOptions,
    output: &Output,
    so_far: Option<&record::Run>,
) -> Result<ExitCode, Failure> {
    let signals = SignalWatch::start()?;
    let measured = measure(prepared, store, output, so_far, &signals, None);
    let outcome = measured.map_err(|broken| broken.failure)?;
    let shown = show(&outcome, store, talk, output);
    if signals.code() != Some(ExitCode::HungUp) {
        // With the terminal gone there is nowhere to show it, which is no news.
        shown?;
    }
    let code = code(&outcome, signals.code());
    tell_trouble(&outcome, code, output);
    Ok(code)
}

/// A run that ended by an error.
#[derive(Debug)]
pub struct Broken {
    /// Where what was measured is stored.
    pub run: Option<String>,
    pub failure: Failure,
}

/// Runs what was prepared, and shows meanwhile how far it is.
///
/// * `so_far`: the run as it is stored, if it goes on.
/// * `later`: what comes after it, if it is a part of a list.
pub fn measure(
    prepared: Prepared,
    store: &mut Store,
    output: &Output,
    so_far: Option<&record::Run>,
    signals: &SignalWatch,
    later: Option<Later>,
) -> Result<Outcome, Broken> {
    let mut progress = Progress::new(*output, so_far, signals.interrupt().clone()).before(later);
    let played = prepared.run(store, &mut progress, signals.interrupt());
    progress.finish();
    played.map_err(|error| {
        let run = progress.run_id().filter(|_| !error.lost_the_store()).map(str::to_owned);
        if let Some(id) = &run {
            output.note(&format!("what was measured is stored as {id}"));
        }
        Broken { run, failure: error.into() }
    })
}

/// Says why the exit code is not 0.
pub fn tell_trouble(outcome: &Outcome, code: ExitCode, output: &Output) {
    if let Some(trouble) = trouble(outcome, code) {
        output.error(&trouble);
        output.hint(&format!("`plimsoll show {}` has the warnings in full", outcome.run));
    }
}

/// Why the exit code is not 0, for those who see nothing else.
fn trouble(outcome: &Outcome, code: ExitCode) -> Option<String> {
    let run = &outcome.run;
    Some(match code {
        ExitCode::Mismatch => format!("run {run} found other data than was written"),
        ExitCode::Target => format!("run {run} ended early: the target failed"),
        ExitCode::Incomplete if outcome.failed_visits == 0 && outcome.hanging_visits == 0 => {
            format!(
                "run {run} had no time for {} of the visits that every cell needs at least",
                outcome.visits_without_time
            )
        }
        ExitCode::Incomplete => format!(
            "visits of run {run} that failed: {}, in which requests did not come back: {}",
            outcome.failed_visits, outcome.hanging_visits
        ),
        _ => return None,
    })
}

/// Prints what came of a run.
pub fn show(
    outcome: &Outcome,
    store: &Store,
    talk: &TalkOptions,
    output: &Output,
) -> Result<(), Failure> {
    let run = store.load(&outcome.run)?;
    if talk.json {
        output.print(&json(&report::document(&run))?)?;
    } else {
        let noise = table::noise(store, &run, output)?;
        let answer = commands::explain::answer(store, &run, output)?;
        output.print(&(table::both(&run) + &noise + &answer))?;
    }
    let id = &outcome.run;
    if let Some(missed) = Visits::of(&run)
        .finding(id)
        .filter(|_| outcome.state == RunState::Complete)
        .map(|found| found.text())
    {
        output.warning(missed.trim_end_matches('.'));
    }
    match outcome.state {
        RunState::Complete => output.note(&format!("stored as {id}: `plimsoll show {id}`")),
        state => output.note(&format!(
            "{}; stored as {id}: `plimsoll resume {id}` goes on from here",
            state.name()
        )),
    }
    Ok(())
}

/// The worst that happened. Data that changed is worse than not having come to the end.
pub fn code(outcome: &Outcome, signal: Option<ExitCode>) -> ExitCode {
    if outcome.mismatches {
        return ExitCode::Mismatch;
    }
    match (outcome.state, signal) {
        (RunState::Interrupted, signal) => signal.unwrap_or(ExitCode::Interrupted),
        (RunState::Failed, _) => ExitCode::Target,
        _ if outcome.failed_visits > 0
            || outcome.hanging_visits > 0
            || outcome.visits_without_time > 0 =>
        {
            ExitCode::Incomplete
        }
        _ => ExitCode::Ok,
    }
}
