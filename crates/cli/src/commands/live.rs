//! `plimsoll compare --live`: measure the sides in turn, then compare them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use explain::compare::{Comparison, Verdict};
use explain::view::is_preparation;
use record::{Blocks, Run, RunState};
use runner::{Event, Order, Outcome, Prepared, RunError, Running, TargetName, TurnClock, Watcher};
use serde::Deserialize;
use stats::Random;
use stats::paired::BLOCKS_MIN;
use stats::random::derive_seed;
use store::Store;
use suite::SuiteSource;
use units::{Bytes, Nanos};

use crate::args::Common;
use crate::commands::compare::{self, CompareArgs};
use crate::commands::run;
use crate::commands::suites::{at_least, counted, duration};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::input;
use crate::options::{AskOptions, ConsentOptions, MannerOptions, SuiteOptions};
use crate::order;
use crate::output::Output;
use crate::signals::SignalWatch;

/// Blocks, if nobody says otherwise.
const BLOCKS: u32 = 10;
/// One of so many blocks holds the first side against itself, if nobody says otherwise.
const CONTROL_EVERY: u32 = 10;
/// The first side once more.
const AGAIN: &str = "A'";
/// A plan with this many blocks may be looked at half way.
const TWO_LOOKS: u32 = 20;
/// Keeps the coins apart from everything else that the seed decides.
const TURN: u64 = 0x7475_726e;
/// Keeps the coins of blocks that hold a side against itself apart from the others'.
const TURN_AGAIN: u64 = 0x6167_6169;
/// Between two lines about requests that do not come back.
const WAITING_EVERY: Duration = Duration::from_secs(5);
/// Between two lines about a block that takes long.
const PROGRESS_EVERY: Duration = Duration::from_secs(8);

/// Measuring instead of looking up.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Live")]
pub struct LiveArgs {
    /// Measure the sides now, in turn: name a file for each instead of a run
    ///
    /// A side is a TOML file: `suite = "random-read"`, `target = "/ssd/a.dat"` and, if wanted,
    /// `set = { queue_depth = 4 }`, `size`, `time`, `backend`, `quick = true`, as for `run`. In
    /// every block each cell is visited once on every side, in random order.
    #[arg(long)]
    pub live: bool,
    /// How many blocks; with 20, stop after 10 if all is decided [default: 10]
    #[arg(long, value_name = "N", requires = "live")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=5000))]
    pub blocks: Option<u32>,
    /// Compare the first side with itself in every N-th block, 0 for never [default: 10]
    ///
    /// This checks the comparison: such blocks come on top of --blocks, between the others and in
    /// random order as well. They are excluded from the ratio; their spread is shown beside it.
    #[arg(long, value_name = "N", requires = "live", value_parser = every)]
    pub aa_every: Option<u32>,
    /// Where all randomness comes from; drawn and stored if not given
    #[arg(long, value_name = "N", requires = "live")]
    pub seed: Option<u64>,
    /// Say what would be read, written, made and removed, and stop
    #[arg(long, requires = "live", conflicts_with = "json")]
    pub dry_run: bool,
    /// No progress and no notes on stderr; errors still are
    #[arg(long, short, requires = "live")]
    pub quiet: bool,
    #[command(flatten)]
    pub consent: ConsentOptions,
    #[command(flatten)]
    pub manner: MannerOptions,
}

/// A side as its file has it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SideFile {
    pub suite: String,
    pub target: String,
    pub size: Option<String>,
    pub time: Option<String>,
    pub backend: Option<String>,
    #[serde(default)]
    pub quick: bool,
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
}

/// A side, and what it is called in messages: its file, or the place that was named.
pub type NamedSide = (String, SideFile);

/// What came of measuring sides in turn.
pub struct PlayedSides {
    /// How each ended.
    pub outcomes: Vec<Outcome>,
    /// Of the first one's second self.
    again: Option<Outcome>,
    signal: Option<ExitCode>,
}

impl PlayedSides {
    /// The worst of how sides ended; `None` if all is well.
    pub fn code(&self) -> Option<ExitCode> {
        let all = self.outcomes.iter().chain(&self.again);
        let codes = all.map(|outcome| run::code(outcome, self.signal));
        codes.filter(|code| *code != ExitCode::Ok).max_by_key(|code| code.number())
    }
}

/// A side, ready to be played.
struct Side {
    label: String,
    file: String,
    prepared: Prepared,
}

/// What is played: the blocks that hold the first side against itself are numbers among the others.
struct Plan {
    sides: Vec<Side>,
    /// The first side once more, which those blocks are made with.
    again: Option<Side>,
    /// Blocks of the comparison, others not counted.
    blocks: u32,
    controls: Vec<u32>,
    /// Why there are none, where some were wanted.
    unchecked: Option<String>,
}

/// Measures the sides that `args` names, in blocks, and compares what came of it.
pub fn live(args: &CompareArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    let output = &output.quiet(args.live.quiet);
    let sides = args.runs.iter().map(|file| Ok((file.clone(), read(Path::new(file))?)));
    let sides = sides.collect::<Result<Vec<NamedSide>, Failure>>()?;
    let Some(measured) = measure(&args.live, Some(args), &sides, common, output)? else {
        return Ok(ExitCode::Ok);
    };
    let code = measured.code();
    let PlayedSides { outcomes, again, signal } = measured;
    let reader = order::store_to_read(common)?;
    let runs = outcomes.iter().map(|outcome| Ok(reader.load(&outcome.run)?));
    let runs = runs.collect::<Result<Vec<Run>, Failure>>()?;
    let ids: Vec<&str> = outcomes.iter().map(|outcome| outcome.run.as_str()).collect();
    let told = compare::conclude(args, &reader, &runs, output)?;
    let also = again.as_ref().map(|again| format!("; {} is A once more, to check it", again.run));
    output.note(&format!(
        "stored as {}: `plimsoll compare {}`{}",
        ids.join(", "),
        ids.join(" "),
        also.unwrap_or_default()
    ));
    let own = |run: &&Run| run.header.warnings.iter().all(|w| w.code != record::SIDE_FAILED);
    let own: BTreeSet<&str> = runs.iter().filter(own).map(|run| run.header.id.as_str()).collect();
    for outcome in outcomes.iter().filter(|outcome| own.contains(outcome.run.as_str())) {
        if outcome.state == RunState::Failed {
            run::tell_trouble(outcome, run::code(outcome, signal), output);
        }
    }
    Ok(code.unwrap_or(told))
}

impl LiveArgs {
    /// Of a command that asks in so many blocks, none of which hold a side against itself.
    pub fn in_blocks(blocks: u32, ask: &AskOptions) -> Self {
        Self {
            live: true,
            blocks: Some(blocks),
            aa_every: Some(0),
            seed: ask.seed,
            dry_run: ask.dry_run,
            quiet: ask.quiet,
            consent: ask.consent.clone(),
            manner: ask.manner.clone(),
        }
    }
}

/// Measures sides in turn, in blocks; `None` where it was only to be said what would be done.
///
/// * `compare`: where a comparison may end the blocks early.
pub fn measure(
    args: &LiveArgs,
    compare: Option<&CompareArgs>,
    sides: &[NamedSide],
    common: &Common,
    output: &Output,
) -> Result<Option<PlayedSides>, Failure> {
    let plan = plan(args, sides, common)?;
    if args.dry_run {
        return describe(&plan, output).map(|()| None);
    }
    if let Some(why) = &plan.unchecked {
        output.note(&report::plain(&unchecked(why)));
    }
    if (plan.blocks as usize) < BLOCKS_MIN {
        output.warning(&few(plan.blocks));
    }
    output.note(&in_all(&plan));
    let signals = SignalWatch::start()?;
    let early = compare.filter(|_| has_two_looks(&plan.sides, plan.blocks));
    let looks = Looks { early, common, output };
    let (outcomes, again) = play(plan, common, output, &signals, &looks)?;
    let again = keep(again, common)?;
    Ok(Some(PlayedSides { outcomes, again, signal: signals.code() }))
}

/// Removes the run that checks a comparison if it came to nothing: it ended before its first block.
fn keep(again: Option<Outcome>, common: &Common) -> Result<Option<Outcome>, Failure> {
    let Some(again) = again else { return Ok(None) };
    let path = order::store_path(common)?;
    let mut store = Store::open(&path)?;
    if store.load(&again.run)?.visits.is_empty() {
        store.remove(std::slice::from_ref(&again.run))?;
        return Ok(None);
    }
    Ok(Some(again))
}

/// Whether the comparison is looked at before its end.
struct Looks<'a> {
    /// Where it is, how it is judged.
    early: Option<&'a CompareArgs>,
    common: &'a Common,
    output: &'a Output,
}

impl Looks<'_> {
    /// Whether the first look settles everything.
    fn settled(&self, ids: &[String]) -> Result<bool, Failure> {
        let Some(args) = self.early else { return Ok(false) };
        let reader = order::store_to_read(self.common)?;
        let runs =
            ids.iter().map(|id| Ok(reader.load(id)?)).collect::<Result<Vec<_>, Failure>>()?;
        Ok(decided(&compare::comparison(args, &reader, &runs, self.output)?))
    }
}

fn has_two_looks(sides: &[Side], blocks: u32) -> bool {
    // Phases follow each other: half way through the blocks of the first, the second has none.
    let one_phase = sides.iter().all(|side| {
        let mut phases = measured(&side.prepared).map(|cell| &cell.phase);
        phases.next().is_some_and(|first| phases.all(|phase| phase == first))
    });
    blocks == TWO_LOOKS && one_phase
}

fn decided(comparison: &Comparison) -> bool {
    comparison.against.iter().filter(|against| !against.bracket).all(|against| {
        let cells = against.cells.iter().map(|cell| cell.outcome.verdict);
        cells.chain([against.overall.verdict]).all(|verdict| verdict != Verdict::Inconclusive)
    })
}

/// `--aa-every`: every second block at most, or there would be none of the comparison.
fn every(text: &str) -> Result<u32, String> {
    let every = text.parse().ok().filter(|every| *every == 0 || (2..=5000).contains(every));
    every.ok_or_else(|| "wanted 0 (never) or 2 to 5000".to_owned())
}

/// Numbers of the blocks that hold the first side against itself, if each `every`-th is one of
/// them; the last block is one of the comparison.
fn controls(blocks: u32, every: u32) -> Vec<u32> {
    let Some(between) = every.checked_sub(1).filter(|&between| between > 0) else {
        return Vec::new();
    };
    (1..=blocks.saturating_sub(1) / between).map(|k| k * every - 1).collect()
}

fn plan(args: &LiveArgs, sides: &[NamedSide], common: &Common) -> Result<Plan, Failure> {
    let blocks = args.blocks.unwrap_or(BLOCKS);
    let wanted = controls(blocks, args.aa_every.unwrap_or(CONTROL_EVERY));
    let (mut prepared, mut again, why) = prepare(args, sides, common, blocks, &wanted)?;
    let controls = if why.is_some() { Vec::new() } else { wanted };
    if let Some(why) = &why {
        if args.aa_every.is_some() {
            let message = format!("A cannot be held against itself: {why}");
            let hint = "leave --aa-every out, or give 0: the comparison is then not checked";
            return Err(Failure::new(ExitCode::Refused, message).hint(hint));
        }
        (prepared, again, _) = prepare(args, sides, common, blocks, &controls)?;
    }
    let group = group(&prepared);
    // Stored, so that whoever compares these runs later holds them against the same level.
    let looks = if has_two_looks(&prepared, blocks) { 2 } else { 1 };
    let clock = TurnClock::default();
    for side in prepared.iter_mut().chain(&mut again) {
        let blocks = Blocks {
            group: group.clone(),
            side: side.label.clone(),
            looks,
            controls: controls.clone(),
            is_control: side.label == AGAIN,
        };
        side.prepared.as_side(blocks, clock.clone());
    }
    Ok(Plan { sides: prepared, again, blocks, controls, unchecked: why })
}

/// The sides; the first once more, if it is to be held against itself; and why that cannot be.
type PreparedSides = (Vec<Side>, Option<Side>, Option<String>);

fn prepare(
    args: &LiveArgs,
    named: &[NamedSide],
    common: &Common,
    blocks: u32,
    controls: &[u32],
) -> Result<PreparedSides, Failure> {
    let store_path = order::store_path(common)?;
    let settings = order::settings(&args.consent, &args.manner, store_path);
    let mut seed = args.seed;
    let mut side = |(file, read): &NamedSide, label: String, visits: u32| {
        let (source, size_given) = source(read, file, visits)?;
        let prepared = runner::prepare(&Order {
            source,
            targets: vec![TargetName::parse(OsStr::new(&read.target))?],
            seed,
            size_given,
            settings: settings.clone(),
        })?;
        // The same for all: their schedules and addresses agree.
        seed = Some(prepared.header().seed);
        Ok::<_, Failure>(Side { label, file: file.clone(), prepared })
    };
    let mut sides: Vec<Side> = Vec::new();
    let count = u32::try_from(controls.len()).unwrap_or(u32::MAX);
    for (file, label) in named.iter().zip('A'..='Z') {
        let more = if sides.is_empty() { count } else { 0 };
        sides.push(side(file, label.to_string(), blocks.saturating_add(more))?);
    }
    let again = named.first().filter(|_| count > 0);
    let again = again.map(|file| side(file, AGAIN.to_owned(), count)).transpose()?;
    have_the_same_cells(&sides)?;
    share_targets(&mut sides)?;
    let Some(mut again) = again else { return Ok((sides, None, None)) };
    let shared = sides.first().map_or(Ok(()), |first| share(&mut again, first));
    Ok(match shared {
        Ok(()) => (sides, Some(again), None),
        Err(why) => (sides, None, Some(why.to_owned())),
    })
}

/// Different for every comparison: of the seed and the time.
fn group(sides: &[Side]) -> String {
    let labels = sides.iter().map(|side| side.prepared.header().started_unix_ns.cast_unsigned());
    let seed = sides.first().map_or(0, |side| side.prepared.header().seed);
    format!("{:016x}", derive_seed(seed, &labels.collect::<Vec<_>>()))
}

/// Longest file of a side, which has a few lines.
const SIDE_BYTES_MAX: u64 = 1 << 20;

fn read(path: &Path) -> Result<SideFile, Failure> {
    let text = input::read_text(path, SIDE_BYTES_MAX).map_err(|error| {
        let message = format!("cannot read the side {}", path.display());
        Failure::caused(ExitCode::Usage, message, error)
            .hint("with --live every side is a file; without it, a run")
    })?;
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        let message = format!("{}:{line}: {}", path.display(), error.message());
        Failure::new(ExitCode::Usage, message).hint(
            "a side has `suite`, `target` and, if wanted, `set`, `size`, `time`, `backend`, `quick`",
        )
    })
}

/// The side's suite, every cell of which has as many visits as there are blocks.
fn source(side: &SideFile, file: &str, blocks: u32) -> Result<(SuiteSource, bool), Failure> {
    let mut set = Vec::new();
    for (key, value) in &side.set {
        assignments(key, value, &mut set);
    }
    let options = SuiteOptions {
        set,
        size: parsed::<Bytes>(side.size.as_deref(), file, "size")?,
        time: parsed::<Nanos>(side.time.as_deref(), file, "time")?,
        quick: side.quick,
        backend: side.backend.clone(),
        ..SuiteOptions::default()
    };
    let mut source = order::suite(&OsString::from(&side.suite), &options)?;
    let checked = suite::check(&source, &suite::CheckContext::default())?;
    let steady = checked.phases.iter().any(|phase| phase.steady.is_some());
    if steady || !source.in_rounds() {
        let message =
            format!("{file}: suite `{}` cannot be played in blocks: its order matters", side.suite);
        let hint = "measure the sides one after the other with `run`, then `compare` the runs";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    order::exactly(&mut source, blocks)?;
    Ok((source, order::size_given(&options)))
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    text: Option<&str>,
    file: &str,
    field: &str,
) -> Result<Option<T>, Failure> {
    let parse = |text: &str| {
        text.parse::<T>().map_err(|error| {
            Failure::new(ExitCode::Usage, format!("{file}: `{field} = \"{text}\"`: {error}"))
        })
    };
    text.map(parse).transpose()
}

/// As `--set` takes them: tables become dotted keys.
fn assignments(key: &str, value: &toml::Value, into: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (below, value) in table {
                assignments(&format!("{key}.{below}"), value, into);
            }
        }
        toml::Value::String(text) => into.push(format!("{key}={text}")),
        other => into.push(format!("{key}={other}")),
    }
}

fn measured(prepared: &Prepared) -> impl Iterator<Item = &record::CellRecord> {
    prepared.cells().iter().filter(|cell| !is_preparation(&cell.phase))
}

/// Refuses sides whose cells nothing could be held against.
fn have_the_same_cells(sides: &[Side]) -> Result<(), Failure> {
    let Some((first, others)) = sides.split_first() else { return Ok(()) };
    let grid = |side: &Side| {
        let cells = measured(&side.prepared);
        cells.map(|cell| (cell.phase.clone(), cell.coordinates.clone())).collect::<Vec<_>>()
    };
    if let Some(other) = others.iter().find(|other| grid(first) != grid(other)) {
        let message = format!(
            "{} and {} have other cells: nothing could be held against anything",
            first.file, other.file
        );
        let hint = "sides have the same phases and grid; what differs is set to one value in each \
                    file, and is no axis in either";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    Ok(())
}

/// Sides that write to one file or device take turns on it: what differs between them is then what
/// the files say, and not where the data lies.
fn share_targets(sides: &mut [Side]) -> Result<(), Failure> {
    for at in 1..sides.len() {
        let (before, rest) = sides.split_at_mut(at);
        let Some(side) = rest.first_mut() else { continue };
        let target = |side: &Side| side.prepared.header().target.resolved.clone();
        let Some(first) = before.iter().find(|first| target(first) == target(side)) else {
            continue;
        };
        share(side, first).map_err(|why| {
            let message = format!(
                "{} and {} cannot take turns on {}: {why}",
                first.file,
                side.file,
                target(side)
            );
            let hint = "name a file of its own in each; sides that only read may share one that is \
                        there already";
            Failure::new(ExitCode::Refused, message).hint(hint)
        })?;
    }
    Ok(())
}

/// Has `side` take turns with `first` on their one target, if either writes to it.
fn share(side: &mut Side, first: &Side) -> Result<(), &'static str> {
    if side.prepared.writes() || first.prepared.writes() {
        return side.prepared.share(&first.prepared);
    }
    Ok(())
}

fn unchecked(why: &str) -> String {
    format!("no block holds A against itself, so nothing checks the comparison: {why}")
}

fn few(blocks: u32) -> String {
    format!("{} decide nothing: it takes {BLOCKS_MIN} (--blocks)", counted(blocks.into(), "block"))
}

/// How long all sides take together.
fn in_all(plan: &Plan) -> String {
    let sides = plan.sides.iter().chain(&plan.again);
    let times = sides.map(|side| side.prepared.least_duration().get());
    let time = Nanos::new(times.fold(0, u64::saturating_add));
    format!("takes {} in all, and the time to fill files", at_least(time))
}

fn describe(plan: &Plan, output: &Output) -> Result<(), Failure> {
    let (sides, blocks) = (&plan.sides, plan.blocks);
    let mut lines = Vec::new();
    for side in sides.iter().chain(&plan.again) {
        lines.push(format!("Side {}, {}:", side.label, side.file));
        lines.extend(side.prepared.describe().iter().map(|line| format!("  {line}")));
    }
    lines.push(format!(
        "Takes the sides in turn, in {} blocks: each cell once on every side, one right after the \
         other, in random order.",
        blocks
    ));
    match plan.controls.len() {
        0 => lines.extend(plan.unchecked.as_deref().map(|why| {
            let said = unchecked(why);
            said.replacen("no block", "No block", 1) + "."
        })),
        n => lines.push(format!(
            "Between those, {} with A in both places ({AGAIN} is A once more), to check the \
             comparison: they are in no ratio.",
            counted(n as u64, "block")
        )),
    }
    if (blocks as usize) < BLOCKS_MIN {
        lines.push(few(blocks) + ".");
    }
    lines.push(in_all(plan).replacen('t', "T", 1) + ".");
    if has_two_looks(sides, blocks) {
        lines.push("Looks at it after 10 blocks, and ends there if all is decided.".to_owned());
    }
    output.print(&lines.iter().map(|line| report::plain(line) + "\n").collect::<String>())
}

/// Plays all sides, block by block; how each ended, and the first one's second self.
fn play(
    plan: Plan,
    common: &Common,
    output: &Output,
    signals: &SignalWatch,
    looks: &Looks<'_>,
) -> Result<(Vec<Outcome>, Option<Outcome>), Failure> {
    let path = order::store_path(common)?;
    let seed = plan.sides.first().map_or(0, |side| side.prepared.header().seed);
    let turns = Turns { seed, sides: plan.sides.len(), controls: plan.controls };
    let has_again = plan.again.is_some();
    let sides: Vec<Side> = plan.sides.into_iter().chain(plan.again).collect();
    let panel = RefCell::new(Panel::new(*output));
    let mut stores = sides.iter().map(|_| Store::open(&path)).collect::<Result<Vec<Store>, _>>()?;
    let labelled: Vec<String> = sides.iter().map(|side| side.label.clone()).collect();
    let labels = labelled.iter().cloned();
    let mut ears: Vec<Ear<'_>> = labels.map(|label| Ear { label, panel: &panel }).collect();
    let mut running: Vec<Running<'_>> = Vec::new();
    for ((side, store), ear) in sides.into_iter().zip(&mut stores).zip(&mut ears) {
        match side.prepared.begin(store, ear, signals.interrupt()) {
            Ok(begun) => running.push(begun),
            Err(error) => {
                take_back(running, &path);
                return Err(no_resume(error));
            }
        }
    }
    let complete = play_turns(&mut running, &turns, &panel, looks)?;
    let failed = failed_side(&running, &labelled);
    let mut ended = running
        .into_iter()
        .map(|side| match (complete, &failed) {
            (true, _) => side.end_as_complete(),
            (false, Some((label, why))) => side.end_with(label, why),
            (false, None) => side.end(),
        })
        .map(|ended| ended.map_err(no_resume))
        .collect::<Result<Vec<Outcome>, _>>()?;
    let again = if has_again { ended.pop() } else { None };
    Ok((ended, again))
}

/// The side that failed, by label, and why: the others end with it, and nobody interrupted them.
fn failed_side(running: &[Running<'_>], labels: &[String]) -> Option<(String, String)> {
    let each = labels.iter().zip(running);
    let mut failed = each.filter_map(|(label, side)| Some((label.clone(), side.failure()?)));
    failed.next()
}

/// A side does not go on alone: what is said of other runs is not to be said of it.
fn no_resume(error: RunError) -> Failure {
    let failure = Failure::from(error);
    if failure.hints_at("plimsoll resume") {
        return failure.hint(
            "what was stored before is safe, and `plimsoll compare` makes of it what can be made; \
             free some space and measure anew for more",
        );
    }
    failure
}

/// The other side could not begin: those that did were nothing yet.
fn take_back(running: Vec<Running<'_>>, store: &Path) {
    let ended = running.into_iter().filter_map(|side| side.end().ok());
    let ids: Vec<String> = ended.map(|outcome| outcome.run).collect();
    // What cannot be removed is an interrupted run without visits; the error itself is to be told.
    let _ = Store::open(store).and_then(|mut store| store.remove(&ids));
}

/// Who is visited in a block, and in which order.
struct Turns {
    seed: u64,
    /// Of the comparison: the first one's second self comes after them.
    sides: usize,
    /// Blocks that hold the first side against itself.
    controls: Vec<u32>,
}

impl Turns {
    /// How many blocks of the comparison come before this one.
    fn before(&self, block: u32) -> u32 {
        let others = self.controls.iter().filter(|&&control| control < block).count();
        block.saturating_sub(u32::try_from(others).unwrap_or(u32::MAX))
    }

    /// In which order the sides visit a cell. A coin decides for the first of two blocks, and the
    /// second is its mirror: what the first visit of a block does to the second then falls on all
    /// sides alike.
    fn of(&self, cell: u32, block: u32) -> Vec<usize> {
        match self.controls.iter().position(|&control| control == block) {
            Some(number) => {
                let number = u32::try_from(number).unwrap_or(u32::MAX);
                let order = turn(derive_seed(self.seed, &[TURN_AGAIN]), cell, number, 2);
                order.into_iter().map(|place| place * self.sides).collect()
            }
            None => turn(self.seed, cell, self.before(block), self.sides),
        }
    }
}

/// A visit on every side, again and again; whether the plan is done, or decided before.
fn play_turns(
    running: &mut [Running<'_>],
    turns: &Turns,
    panel: &RefCell<Panel>,
    looks: &Looks<'_>,
) -> Result<bool, Failure> {
    for side in running.iter_mut() {
        while side.is_filling() {
            if !side.step() {
                return Ok(false);
            }
        }
    }
    panel.borrow_mut().begin();
    let mut looked = looks.early.is_none();
    loop {
        let Some(next) = running.iter_mut().find_map(Running::next_visit) else {
            // The step after the last visit says how a side ended.
            return Ok(running.iter_mut().fold(true, |well, side| {
                while side.step() {}
                well && !side.is_cut_short()
            }));
        };
        let measures = next.purpose == record::Purpose::Measure;
        if measures && turns.before(next.repeat) >= TWO_LOOKS / 2 && !looked {
            looked = true;
            let ids: Vec<String> =
                running.iter().take(turns.sides).map(|side| side.id().to_owned()).collect();
            if looks.settled(&ids)? {
                panel.borrow().say("decided after 10 blocks");
                return Ok(true);
            }
        }
        let order = match measures {
            true => turns.of(next.cell, next.repeat),
            false => turn(turns.seed, next.cell, next.repeat, running.len()),
        };
        for at in order {
            let (before, rest) = running.split_at_mut(at.min(running.len()));
            let Some(side) = rest.first_mut() else { continue };
            // A once more is on the device of A, be it simulated: another one would not have been written to.
            let goes_on = match before.first_mut().filter(|_| measures && at == turns.sides) {
                Some(first) => side.step_on_model_of(first),
                None => side.step(),
            };
            if !goes_on && side.is_cut_short() {
                return Ok(false);
            }
        }
    }
}

fn turn(seed: u64, cell: u32, repeat: u32, sides: usize) -> Vec<usize> {
    let coin = derive_seed(seed, &[TURN, u64::from(cell), u64::from(repeat / 2)]);
    let mut order: Vec<usize> = (0..sides).collect();
    Random::new(coin).shuffle(&mut order);
    if repeat % 2 == 1 {
        order.reverse();
    }
    order
}

/// Listens to one side.
struct Ear<'a> {
    label: String,
    panel: &'a RefCell<Panel>,
}

impl Watcher for Ear<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.panel.borrow_mut().event(&self.label, &event);
    }
}

/// What is told of all sides.
struct Panel {
    output: Output,
    /// Since the first visit after the fill.
    begun: Option<Instant>,
    made: u32,
    /// By side: visits left.
    left: BTreeMap<String, u32>,
    blocks: u32,
    /// The last line about how far it is.
    told: Instant,
    waiting: Option<Instant>,
    /// Doubts that were told.
    warned: BTreeSet<String>,
}

impl Panel {
    fn new(output: Output) -> Self {
        let left = BTreeMap::new();
        let warned = BTreeSet::new();
        let told = Instant::now();
        Self { output, begun: None, made: 0, left, blocks: 0, told, waiting: None, warned }
    }

    fn say(&self, line: &str) {
        self.output.notes(line);
    }

    fn begin(&mut self) {
        self.begun = Some(Instant::now());
        self.made = 0;
    }

    fn event(&mut self, label: &str, event: &Event<'_>) {
        match event {
            Event::Begins { header, left, .. } => {
                self.left.insert(label.to_owned(), left.visits);
                self.say(&report::plain(&format!(
                    "{label}  {} {} on {}, {} to make, {}",
                    header.id,
                    header.suite,
                    header.target.resolved,
                    counted(u64::from(left.visits), "visit"),
                    at_least(left.time)
                )));
            }
            Event::VisitEnds { cell, visit, left, .. } => {
                self.left.insert(label.to_owned(), left.visits);
                self.made += 1;
                if self.begun.is_some() && visit.purpose == record::Purpose::Measure {
                    self.block(&cell.phase, visit.repeat);
                }
                for warning in &visit.warnings {
                    self.warn(label, &warning.text);
                }
            }
            Event::Warning(warning) => self.warn(label, &warning.text),
            Event::Tick(tick) => self.hangs(label, &tick.waiting),
            _ => {}
        }
    }

    /// A doubt that every visit has is told once; `plimsoll show` has them all.
    fn warn(&mut self, label: &str, text: &str) {
        let line = report::plain(&format!("{label}: {text}"));
        if !self.warned.contains(&line) {
            self.output.warning(&line);
            self.warned.insert(line);
        }
    }

    /// Says so when a block is the first of its number, or a phase begins anew; and now and then.
    /// Never what was found: who sees it stops when it pleases.
    fn block(&mut self, phase: &str, repeat: u32) {
        let is_new = repeat != self.blocks;
        if !is_new && self.told.elapsed() < PROGRESS_EVERY {
            return;
        }
        self.blocks = repeat;
        let Some(begun) = self.begun.filter(|_| !is_new || repeat > 0) else { return };
        self.told = Instant::now();
        let each = begun.elapsed().as_secs_f64() / f64::from(self.made.max(1));
        let left: u32 = self.left.values().sum();
        let time = duration(Nanos::from_secs_f64(each * f64::from(left)));
        let phase = report::plain(phase);
        let made = counted(u64::from(repeat), "block");
        let visits = counted(u64::from(left), "visit");
        self.say(&format!("{phase}: {made} made, {visits} left, about {time}"));
    }

    fn hangs(&mut self, label: &str, waiting: &[runner::Waiting]) {
        let Some(longest) = waiting.first() else {
            self.waiting = None;
            return;
        };
        if self.waiting.is_none_or(|at| at.elapsed() >= WAITING_EVERY) {
            self.waiting = Some(Instant::now());
            self.say(&report::plain(&format!(
                "{label}: the {} of {} has been out for {}",
                longest.what, longest.worker, longest.age
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_side_is_first_as_often_as_any() {
        for cell in 0..50 {
            let first = (0..10).filter(|&repeat| turn(7, cell, repeat, 2) == [0, 1]).count();
            assert_eq!(first, 5, "cell {cell}");
        }
        let coins = (0..400).filter(|&cell| turn(7, cell, 0, 2) == [0, 1]).count();
        assert!((150..250).contains(&coins), "{coins} of 400, seed 7");
    }

    #[test]
    fn every_tenth_block_holds_the_first_side_against_itself() {
        assert_eq!(controls(9, 10), [0u32; 0]);
        assert_eq!(controls(10, 10), [9]);
        assert_eq!(controls(18, 10), [9]);
        assert_eq!(controls(20, 10), [9, 19]);
        assert_eq!(controls(4, 2), [1, 3, 5]);
        assert_eq!(controls(1000, 0), [0u32; 0]);
        assert!(every("0") == Ok(0) && every("2") == Ok(2) && every("1").is_err());
        let turns = Turns { seed: 7, sides: 3, controls: controls(20, 10) };
        assert_eq!([8, 9, 10, 20].map(|block| turns.before(block)), [8, 9, 9, 18]);
        for cell in 0..50 {
            let with = |block| turns.of(cell, block);
            let mut sides = [with(9), with(19)];
            // Mirrored as others are; only the first and its second self.
            assert_eq!(sides[0].iter().rev().copied().collect::<Vec<_>>(), sides[1]);
            sides[0].sort_unstable();
            assert_eq!(sides[0], [0, 3]);
            // A block of another kind between two does not part them.
            assert_eq!(with(8).into_iter().rev().collect::<Vec<_>>(), with(10));
        }
    }

    #[test]
    fn tables_become_keys() {
        let set: BTreeMap<String, toml::Value> = toml::from_str(
            "queue_depth = 4\nblock_size = \"8KiB\"\nread.time = \"1s\"\nx = [1, 2]",
        )
        .unwrap();
        let mut said = Vec::new();
        for (key, value) in &set {
            assignments(key, value, &mut said);
        }
        assert_eq!(said, ["block_size=8KiB", "queue_depth=4", "read.time=1s", "x=[1, 2]"]);
    }
}
