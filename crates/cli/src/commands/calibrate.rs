//! `plimsoll calibrate`

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use explain::calibration::{Calibration, ClockFacts, VERSION, machine_key};
use explain::compare::Floor;
use record::{Run, RunHeader, RunState};
use report::Columns;
use runner::{Order, Outcome, Prepared, Settings, TargetName};
use store::{Store, StoreError, StoredCalibration};
use suite::SuiteSource;
use units::{Bytes, Nanos};
use uring::MonotonicClock;

use crate::args::Common;
use crate::commands::run;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{ConsentOptions, MannerOptions, SuiteOptions, TalkOptions};
use crate::order;
use crate::output::{Output, json};
use crate::progress::Progress;
use crate::signals::SignalWatch;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll calibrate                             # five minutes, on a scratch file in this directory
  plimsoll calibrate --target /ssd/test.dat --long
        a night; `--dry-run` says how long
  plimsoll calibrate --show                      # what was found last";

const SUITE: &str = "calibration";
/// So many blocks of each cell: short, and over a night.
const BLOCKS: u32 = 10;
const BLOCKS_LONG: u32 = 300;
/// Visits of the long form are as long as those of other suites.
const VISIT_LONG: Nanos = Nanos::secs(2);
/// How long our own overhead is looked at, for each number of requests in flight.
const NULL_TIME: &str = "1s";

/// Measure this machine against itself: how small a difference is still noise
///
/// Every cell of suite `calibration` is visited again and again, and visits that follow each
/// other are compared as if they were two configurations. Their spread is the machine's noise
/// floor, for each class of cells: `plimsoll compare` does not report a smaller difference as
/// real. It also measures Plimsoll's own overhead per request, the clock, and how often the host
/// stops this program.
///
/// Once for each machine, on the disk in question, when nothing else uses it. Stored for this
/// machine; the visits are stored as runs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CalibrateArgs {
    /// What to measure on: a file (made if it is not there), a directory, a device, or a simulated device
    ///
    /// Not given: a scratch file in the current directory, removed afterwards.
    #[arg(long, short, value_name = "TARGET")]
    target: Option<OsString>,
    /// A night instead of five minutes: a floor for each class of cells
    #[arg(long)]
    long: bool,
    /// Pairs of visits to each cell: 10, or 300 with --long
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=5000))]
    blocks: Option<u32>,
    /// Size of the file, or how much of a device is used
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Measured time of every visit: 800ms, or 2s with --long
    #[arg(long, value_name = "TIME")]
    time: Option<Nanos>,
    /// How requests reach the kernel, as for `run`
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Where all randomness comes from; drawn and stored if not given
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Say what would be read, written, made and removed, and stop
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,
    /// Take the visits of a run that `calibrate` began and `resume` completed
    #[arg(long, value_name = "RUN")]
    #[arg(conflicts_with_all = [
        "target", "long", "blocks", "size", "time", "backend", "seed", "dry_run", "show",
    ])]
    from: Option<String>,
    /// Print what this machine's last calibration found, and stop
    #[arg(long, conflicts_with_all = ["target", "long", "blocks", "dry_run"])]
    show: bool,
    #[command(flatten)]
    consent: ConsentOptions,
    #[command(flatten)]
    manner: MannerOptions,
    #[command(flatten)]
    talk: TalkOptions,
}

pub fn calibrate(
    args: &CalibrateArgs,
    common: &Common,
    output: Output,
) -> Result<ExitCode, Failure> {
    let output = output.quiet(args.talk.quiet);
    if args.show {
        return show_stored(args, common, &output);
    }
    let store_path = order::store_path(common)?;
    let settings = order::settings(&args.consent, &args.manner, store_path.clone());
    if let Some(word) = &args.from {
        let id = whole_run(&order::store_to_read(common)?, word, &output)?;
        let signals = SignalWatch::start()?;
        let mut store = Store::open(&store_path)?;
        let null = play(prepare_null(&settings)?, &mut store, &output.quiet(true), &signals)?;
        if null.state != RunState::Complete {
            return Ok(cut_short(&null, &output, &signals));
        }
        conclude(args, &mut store, &output, &id, &null)?;
        return Ok(ExitCode::Ok);
    }
    let target = args.target.as_deref().map(TargetName::parse).transpose()?;
    let prepared = runner::prepare(&Order {
        source: source(args)?,
        targets: target.into_iter().collect(),
        seed: args.seed,
        size_given: args.size.is_some(),
        settings: settings.clone(),
    })?;
    let null = prepare_null(&settings)?;
    if args.dry_run {
        return describe(&prepared, &output).map(|()| ExitCode::Ok);
    }
    let mut store = Store::open(&store_path)?;
    if !args.talk.quiet {
        for line in prepared.describe().iter().filter(|line| line.starts_with("Takes")) {
            output.note(&report::plain(line));
        }
    }
    let signals = SignalWatch::start()?;
    let null = play(null, &mut store, &output.quiet(true), &signals)?;
    if null.state != RunState::Complete {
        // Nothing of the target was touched yet, and nothing is.
        return Ok(cut_short(&null, &output, &signals));
    }
    let outcome = play(prepared, &mut store, &output, &signals)?;
    finish(args, &mut store, &output, &outcome, &null, &signals)
}

/// Stores and prints what came of it; half a calibration is none, but its visits are kept.
fn finish(
    args: &CalibrateArgs,
    store: &mut Store,
    output: &Output,
    outcome: &Outcome,
    null: &Outcome,
    signals: &SignalWatch,
) -> Result<ExitCode, Failure> {
    if outcome.state != RunState::Complete {
        output.note(&format!(
            "{}: no floor is stored; the visits made so far are run {id}: `plimsoll resume {id}` \
             goes on with them, and then `plimsoll calibrate --from {id}`",
            outcome.state.name(),
            id = outcome.run
        ));
        return Ok(run::code(outcome, signals.code()));
    }
    conclude(args, store, output, &outcome.run, null)?;
    Ok(run::code(outcome, signals.code()))
}

/// Stores and prints what the visits of a run say.
fn conclude(
    args: &CalibrateArgs,
    store: &mut Store,
    output: &Output,
    id: &str,
    null: &Outcome,
) -> Result<(), Failure> {
    let run = store.load(id)?;
    let null = store.load(&null.run)?;
    let found = Calibration::of(&run, Some(&null), Some(clock()));
    put(store, &run.header, &found)?;
    show(&found, args.talk.json, output)?;
    output.note(&format!("stored for this machine; the visits are run {id}"));
    Ok(())
}

/// Called off while our own overhead was looked at.
fn cut_short(null: &Outcome, output: &Output, signals: &SignalWatch) -> ExitCode {
    output.note(&format!("{}: no floor is stored", null.state.name()));
    run::code(null, signals.code())
}

/// The run that `word` names, if a calibration can be made of it.
fn whole_run(store: &Store, word: &str, output: &Output) -> Result<String, Failure> {
    let run = store.load(&order::resolve(store, word, output)?)?;
    let (id, header) = (run.header.id.clone(), &run.header);
    if header.suite != SUITE || header.blocks.is_some() {
        let message = format!("run {id} is of suite `{}`, wanted `{SUITE}`", header.suite);
        return Err(Failure::new(ExitCode::Usage, message));
    }
    if header.state != RunState::Complete {
        let message = format!("run {id} is not complete: it is {}", header.state.name());
        let hint = format!("`plimsoll resume {id}` goes on with it");
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    Ok(id)
}

/// The suite, as long as was asked for.
fn source(args: &CalibrateArgs) -> Result<SuiteSource, Failure> {
    let options = SuiteOptions {
        size: args.size,
        time: args.time.or(args.long.then_some(VISIT_LONG)),
        backend: args.backend.clone(),
        ..SuiteOptions::default()
    };
    let mut source = order::suite(SUITE.as_ref(), &options)?;
    let blocks = args.blocks.unwrap_or(if args.long { BLOCKS_LONG } else { BLOCKS });
    order::exactly(&mut source, 2 * blocks)?;
    Ok(source)
}

/// The null target under one and many requests in flight, and from every processor.
fn prepare_null(settings: &Settings) -> Result<Prepared, Failure> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut source = order::suite("random-read".as_ref(), &SuiteOptions::default())?;
    let threads =
        if processors > 1 { format!("threads=1,{processors}") } else { "threads=1".to_owned() };
    for assignment in ["method=classic", "queue_depth=1,32", &threads, &format!("time={NULL_TIME}")]
    {
        source.set(assignment)?;
    }
    Ok(runner::prepare(&Order {
        source,
        targets: vec![TargetName::parse("null:".as_ref())?],
        seed: Some(0),
        size_given: false,
        settings: settings.clone(),
    })?)
}

fn describe(prepared: &Prepared, output: &Output) -> Result<(), Failure> {
    let mut lines = prepared.describe();
    lines.push(format!(
        "Measures our own overhead first, {NULL_TIME} for each of up to 4 cells, on a target that \
         does nothing."
    ));
    output.print(&lines.iter().map(|line| report::plain(line) + "\n").collect::<String>())
}

fn play(
    prepared: Prepared,
    store: &mut Store,
    output: &Output,
    signals: &SignalWatch,
) -> Result<Outcome, Failure> {
    let mut progress = Progress::new(*output, None, signals.interrupt().clone());
    let played = prepared.run(store, &mut progress, signals.interrupt());
    progress.finish();
    played.map_err(|error| {
        let failure = Failure::from(error);
        if failure.hints_at("plimsoll resume") {
            return failure.hint(
                "visits stored before are safe; free some space, then `plimsoll resume` and \
                 `plimsoll calibrate --from RUN`, or calibrate anew",
            );
        }
        failure
    })
}

/// The clock that times of requests are taken by. The best of a few tries: others only make it
/// look worse.
fn clock() -> ClockFacts {
    const TRIES: usize = 20;
    const READINGS: u32 = 10_000;
    let (mut resolution, mut reading) = (u64::MAX, f64::INFINITY);
    for _ in 0..TRIES {
        let begin = MonotonicClock::read();
        let mut before = begin;
        for _ in 0..READINGS {
            let now = MonotonicClock::read();
            let step = now.since(before).get();
            if step > 0 {
                resolution = resolution.min(step);
            }
            before = now;
        }
        reading = reading.min(before.since(begin).get() as f64 / f64::from(READINGS));
    }
    ClockFacts { resolution_ns: resolution, reading_ns: reading }
}

fn put(store: &mut Store, header: &RunHeader, found: &Calibration) -> Result<(), Failure> {
    let body = serde_json::to_string(found)
        .map_err(|e| Failure::caused(ExitCode::Unexpected, "cannot write JSON", e))?;
    Ok(store.add_calibration(&StoredCalibration {
        machine: machine_key(header),
        started_unix_ns: found.started_unix_ns,
        version: VERSION,
        body,
    })?)
}

/// The newest calibration of the machine that a run was made on; twins have their own. `None` also
/// where it was stored by a later version of this program.
pub fn calibration_of(
    store: &Store,
    header: &RunHeader,
    output: &Output,
) -> Result<Option<Calibration>, Failure> {
    match undamaged(store.calibration(&machine_key(header)), output)? {
        None => Ok(None),
        Some(stored) => Ok(usable(read_stored(stored), output)),
    }
}

/// A damaged calibration is none: what it says is not needed to read runs.
fn undamaged(
    found: Result<Option<StoredCalibration>, StoreError>,
    output: &Output,
) -> Result<Option<StoredCalibration>, Failure> {
    match found {
        Err(error @ StoreError::BadValue { .. }) => Ok(usable(Err(error.into()), output)),
        found => Ok(found?),
    }
}

fn usable<T>(found: Result<Option<T>, Failure>, output: &Output) -> Option<T> {
    // Many runs ask for it.
    static SAID: AtomicBool = AtomicBool::new(false);
    found.unwrap_or_else(|failure| {
        if !SAID.swap(true, Ordering::Relaxed) {
            output.warning(&format!("{}; no calibration is used", failure.words().0));
            output.hint("`plimsoll calibrate` removes it and stores a new one");
        }
        None
    })
}

fn read_stored(stored: StoredCalibration) -> Result<Option<Calibration>, Failure> {
    if stored.version != VERSION {
        return Ok(None);
    }
    let found = serde_json::from_str(&stored.body).map_err(|error| {
        let message = format!("the calibration of {} in the store is damaged", stored.machine);
        Failure::caused(ExitCode::Store, message, error)
    })?;
    Ok(Some(found))
}

/// What runs may not be compared finer than: of the machine that they were all made on.
pub fn floor_of(store: &Store, runs: &[Run], output: &Output) -> Result<Option<Floor>, Failure> {
    let Some((first, others)) = runs.split_first() else { return Ok(None) };
    let key = machine_key(&first.header);
    if others.iter().any(|run| machine_key(&run.header) != key) {
        return Ok(None);
    }
    let found = calibration_of(store, &first.header, output)?;
    Ok(found.and_then(|found| found.floor(&first.header)))
}

fn show_stored(
    args: &CalibrateArgs,
    common: &Common,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let store = order::store_to_read(common)?;
    let settings = order::settings(&args.consent, &args.manner, order::store_path(common)?);
    // The null target's header has this machine in it, and a twin's key is the real one's and more.
    let header = prepare_null(&settings)?.header().clone();
    let real = RunHeader {
        target: record::TargetRecord { kind: record::TargetKind::File, ..header.target.clone() },
        ..header.clone()
    };
    let twins = || store.calibration_of_any(&format!("{} twin ", machine_key(&real)));
    let found = match calibration_of(&store, &real, output)? {
        Some(found) => Some(found),
        None => match undamaged(twins(), output)? {
            Some(stored) => usable(read_stored(stored), output),
            None => None,
        },
    };
    let Some(found) = found else {
        let message = format!("{} was not calibrated yet", header.machine.host);
        return Err(Failure::new(ExitCode::Usage, message).hint("`plimsoll calibrate` does it"));
    };
    show(&found, args.talk.json, output)?;
    Ok(ExitCode::Ok)
}

fn show(found: &Calibration, as_json: bool, output: &Output) -> Result<(), Failure> {
    if as_json {
        return output.print(&json(found)?);
    }
    output.print(&text(found))
}

fn text(found: &Calibration) -> String {
    let place = &found.place;
    let mut out = format!(
        "{}, calibrated {} on {}: {} blocks of every cell\n\n",
        place.host,
        found.day(),
        place.target,
        found.blocks
    );
    let rows = found.rows();
    let mut columns = Columns::new(vec![true; 5]);
    rows.into_iter().for_each(|row| columns.row(row.into()));
    out.push_str(&columns.print());
    out.push('\n');
    for sentence in found.sentences() {
        out.push_str(&sentence);
        out.push('\n');
    }
    out.split_inclusive('\n').map(|line| report::plain(line.trim_end()) + "\n").collect()
}
