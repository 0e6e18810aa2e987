//! `plimsoll line`: how many transactions a second a place carries within a service level.

use std::ffi::{OsStr, OsString};
use std::time::{Duration, Instant};

use clap::Args;
use explain::line::{LoadLine, SUITE, Standing, line as found};
use explain::view::View;
use plan::ladder::{Load, PIECE};
use record::RunState;
use report::Columns;
use runner::{Event, LineGoal, Order, TargetName, Watcher};
use store::Store;
use suite::Level;
use units::Nanos;

use crate::args::Common;
use crate::commands::run;
use crate::commands::which::refuse_unfit;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{Database, PlaceOptions, SuiteOptions};
use crate::order;
use crate::output::{Output, json};
use crate::signals::SignalWatch;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll line /ssd                     # transactions/s within the usual level
  plimsoll line /ssd --level 'p99<10ms'  # commits and reads
  plimsoll line /ssd --level 'p99<5ms,p99.9<20ms'
  plimsoll line /ssd --at 2000           # does it carry 2000/s? exit code 0, 8 or 10
  plimsoll line /ssd --hold 10min        # burst credits of ten minutes would show
  plimsoll line model:models/nvme.toml   # a simulated device";

/// Between two lines about how far it is.
const PROGRESS_EVERY: Duration = Duration::from_secs(8);
/// Rates in the table; the JSON document has all.
const RATES_MAX: usize = 12;
/// Pieces that a verdict on a hold needs.
const PIECES_MIN: u64 = 10;

/// How many transactions a second does a place carry within a service level
///
/// Plays a database's transactions, each a commit, four page reads and a page write in the
/// background, which arrive at random whatever the storage does, and raises their rate until
/// requests are late more often than the level allows. Late counts from the moment when a request
/// was due. The answer is the *load line* with its 95 % interval, what breaks first, the rate from
/// which a backlog grows, and whether the low end of the line holds for a minute.
///
/// Transactions come whether earlier ones are done or not, as from many clients. `which` has a few
/// sessions that each wait for their commit, so it may rank places in another order.
///
/// Takes three to eight minutes after the file is filled, longer where others use the device. In a
/// directory a file is made for that and removed afterwards.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LineArgs {
    /// A directory, file, device or simulated device (`model:FILE`, `array:ARRAY`)
    place: String,
    /// The service level: limits such as `p99<10ms`, of commits and reads or of one stream
    ///
    /// `reads p99<2ms` is kept if at most 1 % of the reads come back later than 2 ms after they
    /// were due. Not given: `reads p99<2ms, commits p99<5ms`.
    #[arg(long, value_name = "LIMITS", value_parser = str::parse::<Level>)]
    level: Option<Level>,
    /// Transactions as in this suite instead: what `plimsoll db profile` writes
    ///
    /// Any suite of one cell whose streams have rates will do. The first stream with a rate is what is
    /// counted as transactions; all rates are raised together.
    #[arg(long, value_name = "FILE", conflicts_with = "database")]
    like: Option<OsString>,
    /// Only hold this rate, in transactions/s: is it carried (exit code 0), is it not (8), or
    /// can neither be said (10)
    #[arg(long, value_name = "RATE", value_parser = load)]
    at: Option<Load>,
    /// How long the low end of the line is held, 0s for not at all
    #[arg(long, value_name = "TIME", default_value = "60s")]
    hold: Nanos,
    #[command(flatten)]
    of: PlaceOptions,
}

fn load(text: &str) -> Result<Load, String> {
    let (number, unit) = match text.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
    };
    let rate = number.parse().ok().and_then(|rate: f64| Load::new(rate * unit));
    rate.ok_or_else(|| "wanted transactions per second, such as 2000 or 2K, at most 2M".to_owned())
}

pub fn line(args: &LineArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    let output = &output.quiet(args.of.ask.quiet);
    refuse_unfit(&args.place)?;
    let goal = match args.at {
        None => LineGoal::Line(args.hold),
        Some(_) if args.hold.get() < PIECE.get() * PIECES_MIN => {
            let message = format!("a hold of {} says nothing", args.hold);
            return Err(Failure::new(ExitCode::Usage, message).hint("give --hold 20s at least"));
        }
        Some(load) => LineGoal::Hold(load, args.hold),
    };
    let mut set = args.of.database.set(["reads", "writes"], ["commits"]);
    if args.of.database == Database::Sqlite {
        set.push(("commits.queue_depth".to_owned(), "1"));
    }
    let set = set.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    let set = if args.like.is_none() { set } else { Vec::new() };
    let options = SuiteOptions { set, size: args.of.size, ..SuiteOptions::default() };
    let suite = args.like.as_deref().unwrap_or(OsStr::new(SUITE));
    let mut source = order::suite(suite, &options)?;
    if let Some(level) = &args.level {
        source.set_level(level)?;
    }
    let store_path = order::store_path(common)?;
    let prepared = runner::prepare(&Order {
        source,
        targets: vec![TargetName::parse(OsStr::new(&args.place))?],
        seed: args.of.ask.seed,
        size_given: args.of.size.is_some(),
        settings: order::settings(&args.of.ask.consent, &args.of.ask.manner, store_path.clone()),
    })?;
    if args.of.ask.dry_run {
        let lines = prepared.describe_effects().into_iter();
        let lines = lines.map(|line| report::plain(&line) + "\n").collect::<String>();
        let time = "Takes three to eight minutes, and the time to write the file first.\n";
        output.print(&(lines + time))?;
        return Ok(ExitCode::Ok);
    }
    let mut store = Store::open(&store_path)?;
    let signals = SignalWatch::start()?;
    let mut panel = Panel { output, told: None };
    let outcome = prepared.run_line(goal, &mut store, &mut panel, signals.interrupt())?;
    let run = store.load(&outcome.run)?;
    let view = View::new(&run);
    let Some(found) = found(&view) else {
        let message = format!("run {} ended before its first rate was played", outcome.run);
        return Err(Failure::new(run::code(&outcome, signals.code()), message));
    };
    output.print(&if args.of.ask.json { json(&found)? } else { text(&found) })?;
    let id = &outcome.run;
    output.note(&format!("stored as {id}: `plimsoll explain {id}` says it again"));
    Ok(match (outcome.state, found.standing) {
        (RunState::Complete, Standing::NotCarried) => ExitCode::Slower,
        (RunState::Complete, Standing::CannotTell) => ExitCode::CannotTell,
        _ => run::code(&outcome, signals.code()),
    })
}

/// The answer, then what was seen at some of the rates.
fn text(found: &LoadLine) -> String {
    let lines = found.answer.sentences();
    let out: String = lines.iter().map(|line| report::wrapped("", &report::plain(line))).collect();
    if found.rates.len() < 2 {
        return out;
    }
    let mut columns = Columns::new(vec![true; 1 + 2 * found.limits.len()]);
    let mut heads = vec!["transactions/s".to_owned()];
    for limit in &found.limits {
        let within = Nanos::new(limit.within_ns);
        heads.push(format!("{} p99", limit.stream));
        heads.push(format!("over {within}"));
    }
    columns.row(heads);
    let step = found.rates.len().div_ceil(RATES_MAX);
    for rate in found.rates.iter().step_by(step) {
        let mut row = vec![finding::numbers::iops(rate.load)];
        for (p99, share) in rate.p99_ns.iter().zip(&rate.late_shares) {
            row.push(p99.map_or_else(|| "-".to_owned(), |ns| Nanos::new(ns).to_string()));
            row.push(format!("{:.2} %", share * 100.0));
        }
        columns.row(row);
    }
    format!("{out}\n{}", columns.print())
}

/// Tells how far it is.
struct Panel<'a> {
    output: &'a Output,
    told: Option<Instant>,
}

impl Watcher for Panel<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Begins { header, .. } => {
                let on = &header.target.resolved;
                self.output.notes(&report::plain(&format!("{} load line of {on}", header.id)));
            }
            Event::Step(step) => {
                let is_due = self.told.is_none_or(|told| told.elapsed() >= PROGRESS_EVERY);
                if is_due {
                    self.output.notes(&report::plain(step));
                    self.told = Some(Instant::now());
                }
            }
            Event::Warning(warning) => self.output.warning(&report::plain(&warning.text)),
            _ => {}
        }
    }
}
