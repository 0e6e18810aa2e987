//! `plimsoll which`: which of several places a database should run on.

use std::ffi::OsStr;

use clap::Args;
use explain::compare::Terms;
use explain::view::View;
use explain::which::{PlaceFigure, PlaceFigures, PlaceRatio, SUITE, Which, which as decide};
use record::Run;
use report::Columns;
use runner::TargetName;
use units::Nanos;

use crate::args::Common;
use crate::commands::calibrate;
use crate::commands::live::{self, LiveArgs, NamedSide, SideFile};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{Database, PlaceOptions, Share};
use crate::order;
use crate::output::{Output, json};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll which /ssd /san              # two directories: which of them for a database
  plimsoll which /ssd                   # what one place carries
  plimsoll which /ssd /san --for innodb # pages of 16 KiB, fsync
  plimsoll which /ssd /san --minutes 10 # surer, and more figures
  plimsoll which /dev/sdb --destroy /dev/sdb   # an empty device";

/// From so many minutes on all is played that the suite has.
const MINUTES_ALL: u64 = 5;
const BLOCKS: u32 = 10;
/// Of each visit, before its measured part.
const RAMP_S: f64 = 0.3;
/// Shorter visits are decided by their start and end.
const VISIT_S_MIN: f64 = 0.5;
/// One for each letter.
const PLACES_MAX: usize = 26;

/// Which place should a database run on, and how much does it carry
///
/// Names directories, files, devices or simulated devices. Each is asked what a database asks:
/// commits by one session and by sixteen that share flushes, page reads 16 deep, and both
/// together with a checkpoint; in blocks that take the places in random order, about two minutes
/// after the files are filled. In a directory a file is made for that and removed afterwards.
///
/// Sessions wait for their commits here. What a place carries of transactions that arrive whether
/// earlier ones are done or not tells `plimsoll line`, which may rank places in another order.
///
/// The answer has five lines: which place, how much, what limits it, how sure that is, what
/// disturbed it. Differences up to `--margin` count as none.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WhichArgs {
    /// Directories, files, devices or simulated devices (`model:FILE`, `array:ARRAY`)
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<String>,
    /// How long to measure in all, without the time to fill files
    ///
    /// From 5 on also commits by 8 and 64 sessions, page reads 128 deep, and a scan.
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// Differences up to this count as none
    #[arg(long, value_name = "SHARE", default_value = "10%", allow_hyphen_values = true)]
    margin: Share,
    #[command(flatten)]
    of: PlaceOptions,
}

pub fn which(args: &WhichArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    if args.places.len() > PLACES_MAX {
        let message =
            format!("{} places are named, at most {PLACES_MAX} can be", args.places.len());
        return Err(Failure::new(ExitCode::Usage, message).hint("each has a letter"));
    }
    if let Some(twice) = twice(&args.places) {
        let message = format!("{twice} is named twice");
        let hint = "a place is always as good as itself; name each once";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    for place in &args.places {
        refuse_unfit(place)?;
    }
    let output = &output.quiet(args.of.ask.quiet);
    let sides: Vec<NamedSide> =
        args.places.iter().map(|place| (place.clone(), args.side(place))).collect();
    // The places are compared with each other, and two minutes are short.
    let told = LiveArgs::in_blocks(BLOCKS, &args.of.ask);
    let Some(measured) = live::measure(&told, None, &sides, common, output)? else {
        return Ok(ExitCode::Ok);
    };
    let store = order::store_to_read(common)?;
    let ids: Vec<&str> = measured.outcomes.iter().map(|outcome| outcome.run.as_str()).collect();
    let runs = ids.iter().map(|id| Ok(store.load(id)?)).collect::<Result<Vec<Run>, Failure>>()?;
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let floor = calibrate::floor_of(&store, &runs, output)?;
    let terms = Terms { margin: args.margin.0, floor, confidence: 0.95 };
    let found = decide(&views, &terms, args.minutes);
    output.print(&if args.of.ask.json { json(&found)? } else { text(&found) })?;
    let more = match ids.as_slice() {
        [only] => format!("`plimsoll table {only}`"),
        _ => format!("`plimsoll compare {} --cells`", ids.join(" ")),
    };
    output.note(&format!("stored as {}: {more} shows every figure", ids.join(", ")));
    output.note("how much of it within a response time: `plimsoll line PLACE`");
    Ok(measured.code().unwrap_or(ExitCode::Ok))
}

/// The answer, then every figure.
fn text(found: &Which) -> String {
    let lines = found.answer.sentences();
    let mut out: String =
        lines.iter().map(|line| report::wrapped("", &report::plain(line))).collect();
    let Some(chosen) = found.chosen() else { return out };
    let others: Vec<&PlaceFigures> =
        found.places.iter().filter(|place| place.run != chosen.run).collect();
    let each = |of: &dyn Fn(&PlaceFigures) -> String| -> Vec<String> {
        others.iter().map(|place| of(place)).collect()
    };
    let mut columns = Columns::new((0..2 + 2 * others.len()).map(|k| k == 0).collect());
    let heads = [String::new(), chosen.label.clone()].into_iter();
    let heads = heads.chain(each(&|place| place.label.clone()));
    columns
        .row(heads.chain(each(&|place| format!("{} / {}", chosen.label, place.label))).collect());
    for PlaceFigure { what, rate, .. } in &chosen.figures {
        let theirs = each(&|place| {
            let own = place.figures.iter().find(|figure| figure.what == *what);
            own.map_or_else(|| "-".to_owned(), |figure| finding::text::shown(&figure.rate))
        });
        let ratios = each(&|place| {
            let is_it = |one: &&PlaceRatio| one.what == *what && one.of == place.label;
            let own = found.ratios.iter().find(is_it);
            own.map_or_else(|| "-".to_owned(), |one| finding::text::shown(&one.ratio))
        });
        let own = [what.clone(), finding::text::shown(rate)];
        columns.row(own.into_iter().chain(theirs).chain(ratios).collect());
    }
    out.push('\n');
    out.push_str(&columns.print());
    out
}

/// A place that is not there would be made, on another disk than was meant; one whose files are in
/// memory would win against every disk, and keeps nothing.
pub fn refuse_unfit(place: &str) -> Result<(), Failure> {
    let target = TargetName::parse(OsStr::new(place))?.below_layer();
    let TargetName::Path(path) = target else { return Ok(()) };
    if !path.exists() {
        let message = format!("{place} is not there");
        let hint = "name a directory, a file or a device that exists, or `model:FILE`";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    if path.is_file() && path.extension().is_some_and(|one| one == "toml") {
        let message = format!("{place} is a file of text");
        let hint = format!("a simulated device is named `model:{place}`");
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    // Where `/dev` is a tmpfs, as in containers, its devices are none the less.
    if !(path.is_dir() || path.is_file()) {
        return Ok(());
    }
    let all = stack::mounts(&stack::Host::this()).unwrap_or_default();
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let mount = stack::mount_of(&all, &path, None);
    let Some(mount) = mount.filter(|m| matches!(m.file_system.as_str(), "tmpfs" | "ramfs")) else {
        return Ok(());
    };
    let kind = &mount.file_system;
    let message = format!("{place} is in {kind}: memory, which loses everything with the power");
    let hint = "name a directory on a disk; `plimsoll run` measures memory, too";
    Err(Failure::new(ExitCode::Refused, message).hint(hint))
}

/// The same place named twice, under one name or two.
fn twice(places: &[String]) -> Option<&String> {
    let real = |place: &String| std::fs::canonicalize(place).unwrap_or_else(|_| place.into());
    let before = |at: usize, place: &String| {
        places.iter().take(at).any(|one| one == place || real(one) == real(place))
    };
    places.iter().enumerate().find(|(at, place)| before(*at, place)).map(|(_, place)| place)
}

impl WhichArgs {
    /// What is played on a place.
    fn side(&self, place: &str) -> SideFile {
        let of_all = self.minutes as f64 * 60.0;
        let is_all = self.minutes >= MINUTES_ALL;
        // Of SQLite no other session may write meanwhile.
        let is_one = self.of.database == Database::Sqlite;
        let commits = if is_one { "commit" } else { "commits" };
        let mut cells = vec!["commit", "reads"];
        if !is_one {
            cells.push("commits");
        }
        if is_all {
            cells.extend(["reads-deep", "scan"]);
        }
        if is_all && !is_one {
            cells.extend(["commits-8", "commits-64"]);
        }
        let visits = f64::from(BLOCKS) * (cells.len() + 1) as f64 * self.places.len() as f64;
        let time = Nanos::from_secs_f64((of_all / visits - RAMP_S).max(VISIT_S_MIN));
        let pages = ["reads", "checkpoint"].into_iter().chain(is_all.then_some("reads-deep"));
        let logs = cells.iter().copied().filter(|name| name.starts_with("commit"));
        let set = self.of.database.set(pages, logs);
        let streams: Vec<String> = cells.iter().map(|name| format!("\"{name}\"")).collect();
        let together = format!("[\"{commits}\",\"reads\",\"checkpoint\"]");
        let streams = ("streams".to_owned(), format!("[{},{together}]", streams.join(",")));
        let value = |text: &str| toml::Value::String(text.to_owned());
        SideFile {
            suite: SUITE.to_owned(),
            target: place.to_owned(),
            size: self.of.size.map(|size| size.exact()),
            time: Some(time.exact()),
            set: set
                .iter()
                .map(|(key, text)| (key.clone(), value(text)))
                .chain([(streams.0, value(&streams.1))])
                .collect(),
            ..SideFile::default()
        }
    }
}
