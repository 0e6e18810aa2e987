//! `plimsoll study`: stacks by a design, each built, measured and torn down.

mod article;
mod crew;
mod show;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use runner::study::{Ended, Override, Play, PlayError, Unfinished, unfinished};
use stack::Host;
use stats::random::derive_seed;
use store::Store;
use study::{On, Study, StudyText, SuiteTime};
use suite::SuiteSource;
use suite::model::Method;
use units::Bytes;

use self::crew::Measurer;
use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::input;
use crate::options::SuiteOptions;
use crate::order::{self, Ordered};
use crate::output::Output;
use crate::signals::SignalWatch;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll study targets.toml --dry-run    # what it would do, what that tells, how long it takes
  plimsoll study targets.toml
  plimsoll study arrays.toml --resume      # go on after Ctrl-C, a crash, a restart
  plimsoll study clean                     # take back what a killed study left
  plimsoll study report arrays.toml        # what it found, as an article
  plimsoll explain --group last            # what the factors do";

const REPORT_EXAMPLES: &str = "\
Examples:
  plimsoll study report arrays.toml                     # of the newest time it was played
  plimsoll study report arrays.toml --group 1b509fe1";

const CLEAN_EXAMPLES: &str = "\
Examples:
  plimsoll study clean --dry-run    # what is left, and what would be done
  plimsoll study clean";

/// Longest text of a study.
const STUDY_BYTES_MAX: u64 = 1 << 20;

/// Measure stacks by a design: build each, measure it, tear it down, and the next
///
/// The file names what varies (RAID level, members, file system, scheduler ..., or just several
/// targets), which suites measure it, and in which design; docs/studies.md explains it. Every
/// stack is a run of each suite in the store, with the levels of its factors: `plimsoll explain
/// --group` says what each factor does.
///
/// Only devices that the file names under `[devices]` are ever written, and only if they are
/// blank and nobody uses them. All that is done is in a journal beside the store before it is
/// done, so that a study that was killed goes on where it was, and can be taken back.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true)]
pub struct StudyArgs {
    /// The study
    #[arg(value_name = "FILE.toml", required = true)]
    file: Option<PathBuf>,
    /// Print what would be built, destroyed, measured and reported, with every command, and stop
    #[arg(long)]
    dry_run: bool,
    /// Go on with a study that did not come to its end
    #[arg(long, conflicts_with = "dry_run")]
    resume: bool,
    /// Override one refusal of one device: `signature:` and the device's serial or path
    ///
    /// `signature` (something is written on it, which will be lost), `open` (a process has it
    /// open), `system-unseen` (whether the system is on it cannot be seen), `unchecked` (who uses
    /// it cannot be seen). That a device is mounted, held, or the system's cannot be overridden.
    /// May be repeated.
    #[arg(long = "override", value_name = "REFUSAL:DEVICE")]
    overrides: Vec<String>,
    /// Print one JSON document (plimsoll.study/1): the plan with --dry-run, else what came of it
    #[arg(long)]
    json: bool,
    /// No progress and no notes on stderr; errors still are
    #[arg(long, short)]
    quiet: bool,
    #[command(subcommand)]
    command: Option<StudyCommand>,
}

#[derive(Debug, Subcommand)]
enum StudyCommand {
    Clean(CleanArgs),
    Report(ReportArgs),
}

/// Report what a study found: question, stacks, method, results, which factors matter, recommendation
///
/// From the runs in the store and the study's file; nothing is measured or built.
#[derive(Debug, Args)]
#[command(after_help = REPORT_EXAMPLES)]
struct ReportArgs {
    /// The study
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Which time it was played: the group as `plimsoll list` shows it
    #[arg(long, value_name = "GROUP", default_value = "last")]
    group: String,
}

/// Clean up after killed studies: mounts, arrays, volumes, settings, signatures
///
/// Only what their journals record as made by them. Such a study cannot be resumed afterwards; its runs
/// stay in the store.
#[derive(Debug, Args)]
#[command(after_help = CLEAN_EXAMPLES)]
struct CleanArgs {
    /// Say what would be done, and stop
    #[arg(long)]
    dry_run: bool,
}

/// All that a study needs before it is played.
struct Prepared {
    text: StudyText,
    study: Study,
    /// Absolute.
    file: PathBuf,
    /// Of each suite, with what the study sets.
    suites: Vec<SuiteSource>,
    times: Vec<SuiteTime>,
}

pub fn study(args: &StudyArgs, common: &Common, output: Output) -> Result<ExitCode, Failure> {
    match &args.command {
        Some(StudyCommand::Clean(clean)) => return self::clean(clean, common, output),
        Some(StudyCommand::Report(report)) => return self::report(report, common, output),
        None => {}
    }
    let Some(file) = &args.file else { return Err(Failure::new(ExitCode::Usage, "no study")) };
    let output = output.quiet(args.quiet);
    let store_path = order::store_path(common)?;
    let prepared = prepare(file)?;
    let overrides = args.overrides.iter().map(|text| Override::parse(text));
    let play = Play {
        study: &prepared.study,
        text: &prepared.text.text,
        suites: prepared.suites.iter().map(text_of).collect(),
        file: prepared.file.clone(),
        store: store_path.clone(),
        overrides: overrides.collect::<Result<_, PlayError>>()?,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        host: Host::this(),
    };
    if args.dry_run {
        return show::plan(&prepared, &play, args.json, &output);
    }
    for line in runner::study::put_settings_back(&store_path) {
        output.note(&line);
    }
    let broken = broken_off(&store_path, &prepared.file, &output);
    let found = match (broken, args.resume) {
        (Some(found), true) => Some(found),
        (None, false) => None,
        (Some(found), false) => {
            if found.is_playing() {
                return Err(PlayError::InUse { name: prepared.study.name.clone() }.into());
            }
            let runs = prepared.study.runs();
            let made = found.state.measured.len();
            return Err(PlayError::Unfinished { file: shown(file), made, runs }.into());
        }
        (None, true) => {
            // It may be the one that cannot be read.
            let error = unfinished(&store_path).into_iter().find_map(Result::err);
            let nothing = PlayError::NothingToResume { file: shown(file) };
            return Err(error.unwrap_or(nothing).into());
        }
    };
    let mut store = Store::open(&store_path)?;
    let signals = SignalWatch::start()?;
    let mut crew = Measurer::new(&prepared, &mut store, &store_path, output, &signals);
    let played = match &found {
        Some(found) => play.resume(&found.path, &mut crew),
        None => play.begin(&key(prepared.study.seed), now(), &mut crew),
    };
    let done = std::mem::take(&mut crew.done);
    drop(crew);
    let ended = played.map_err(|error| told(error, &done, file))?;
    show::ended(&prepared, &ended, &store, args.json, &output)?;
    Ok(code(&ended, &signals))
}

fn shown(file: &Path) -> String {
    file.display().to_string()
}

/// With where the runs are that were made before it.
fn told(error: PlayError, done: &[String], file: &Path) -> Failure {
    let failure = of_study(Failure::from(error), file);
    match done {
        [] => failure,
        runs => failure.of(format!("the study ended early; stored so far: {}", runs.join(", "))),
    }
}

/// A run that cannot be stored is resumed with its study, not alone.
fn of_study(failure: Failure, file: &Path) -> Failure {
    if !failure.hints_at("plimsoll resume") {
        return failure;
    }
    let file = layout::shell_word(&shown(file));
    failure.hint(format!(
        "what was measured before is safe; free some space, then `plimsoll study {file} --resume`"
    ))
}

fn code(ended: &Ended, signals: &SignalWatch) -> ExitCode {
    match ended {
        _ if ended.mismatches => ExitCode::Mismatch,
        _ if ended.interrupted => signals.code().unwrap_or(ExitCode::Interrupted),
        _ if ended.troubled || ended.complete < ended.of => ExitCode::Incomplete,
        _ => ExitCode::Ok,
    }
}

/// The study of that file that did not come to its end.
fn broken_off(store: &Path, file: &Path, output: &Output) -> Option<Unfinished> {
    let mut found = None;
    for one in unfinished(store) {
        match one {
            Ok(one) if one.state.begins.file == file.display().to_string() => found = Some(one),
            // What one has that is being played is not left.
            Ok(one) if !one.state.is_clean() && !one.is_playing() => output.warning(&format!(
                "study {} of {} left things behind: `plimsoll study clean --dry-run` lists them",
                one.state.begins.name, one.state.begins.file
            )),
            Ok(_) => {}
            Err(error) => output.warning(&error.to_string()),
        }
    }
    found
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}

/// Different for every study, whatever its seed.
fn key(seed: u64) -> String {
    let drawn = derive_seed(seed, &[now().cast_unsigned(), u64::from(std::process::id())]);
    format!("{:08x}", drawn >> 32)
}

/// Reads the study, plans it, and finds its suites.
fn prepare(file: &Path) -> Result<Prepared, Failure> {
    let text = input::read_text(file, STUDY_BYTES_MAX).map_err(|error| {
        let message = format!("cannot read the study {}", file.display());
        Failure::caused(ExitCode::Usage, message, error)
    })?;
    // The same file has the same order, so that what a dry run shows is what will be done.
    let seed = text.bytes().fold(0x7374_7564, |seed, byte| derive_seed(seed, &[byte.into()]));
    let absolute = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    planned(&text, &shown(file), absolute, seed >> 16)
}

/// Plans a study, and finds its suites.
///
/// * `named`: its file, for messages and for its name; `file`: the same, absolute.
/// * `seed`: where the order comes from if the text names none.
fn planned(text: &str, named: &str, file: PathBuf, seed: u64) -> Result<Prepared, Failure> {
    let text = study::parse(text, named).map_err(PlayError::from)?;
    let study = text.plan(seed).map_err(PlayError::from)?;
    let suites = suites(&study, &file)?;
    let named = study.measure.suites.iter();
    let times = suites.iter().zip(named).map(|(source, named)| time(source, named.on));
    let times = times.collect::<Result<_, Failure>>()?;
    Ok(Prepared { text, study, file, suites, times })
}

fn suites(study: &Study, file: &Path) -> Result<Vec<SuiteSource>, Failure> {
    let measure = &study.measure;
    let mut found = Vec::new();
    for named in &measure.suites {
        let options = SuiteOptions {
            set: named.set.clone(),
            size: measure.size,
            time: measure.time,
            quick: measure.quick,
            ..SuiteOptions::default()
        };
        let is_path = named.suite.contains('/') || named.suite.ends_with(".toml");
        let name = match file.parent().filter(|_| is_path) {
            Some(base) => base.join(&named.suite).into_os_string(),
            None => OsString::from(&named.suite),
        };
        let at = |failure: Failure| failure.of(format!("suite {} of the study", named.suite));
        let mut source = match order::ordered(&name, &options).map_err(at)? {
            Ordered::One(source) => *source,
            Ordered::Many(list) => {
                let message = format!("`{}` is a list of suites, not one", list.name());
                let hint = "name its suites one by one in the study's `suites`";
                return Err(Failure::new(ExitCode::Usage, message).hint(hint));
            }
        };
        if let Some(time) = measure.max_time.filter(|_| source.in_rounds()) {
            source.set_time_max(time)?;
        }
        found.push(source);
    }
    Ok(found)
}

/// Name and text of a suite.
fn text_of(source: &SuiteSource) -> (String, String) {
    (source.name().to_owned(), source.text().to_owned())
}

fn time(source: &SuiteSource, on: On) -> Result<SuiteTime, Failure> {
    let suite = suite::check(source, &suite::CheckContext::default())?;
    let most = (suite.method == Method::Rounds).then_some(suite.rounds.time_max);
    let least = suite.least_duration();
    let once = suite.bytes_written_least();
    let written = match on {
        On::Data | On::Wal => once,
        On::WalAndData => Bytes::new(once.get().saturating_add(suite.bytes_prepared().get())),
    };
    Ok(SuiteTime { least, most: most.map(|most| most.max(least)), written })
}

fn report(args: &ReportArgs, common: &Common, output: Output) -> Result<ExitCode, Failure> {
    let prepared = prepare(&args.file)?;
    let store_path = order::store_path(common)?;
    let store = order::store_to_read(common)?;
    let name = prepared.study.name.clone();
    let all = order::readable(&store, &output)?;
    let parts = || {
        all.iter()
            .filter_map(|run| Some((run.part.as_ref()?, run)))
            .filter(|(part, _)| part.study.is_some() && part.list == name)
    };
    let mut groups: Vec<&str> = Vec::new();
    for (part, _) in parts() {
        if !groups.contains(&part.group.as_str()) {
            groups.push(&part.group);
        }
    }
    let played = |group: &str| runner::study::played(&store_path, &name, group);
    let group = match args.group.as_str() {
        "last" => newest(&groups, &prepared.file, &played),
        named => Some(named.to_owned()),
    };
    let mut found: Vec<_> =
        parts().filter(|(part, _)| Some(&part.group) == group.as_ref()).collect();
    if found.is_empty() {
        return Err(no_runs(args, &name, &groups));
    }
    found.sort_by_key(|(part, _)| part.number);
    let ids: Vec<String> = found.iter().map(|(_, run)| run.id.clone()).collect();
    let runs = order::load_group(&store, &ids, &output)?;
    let state = group.as_deref().and_then(played);
    let prepared = match &state {
        Some(state) => as_played(prepared, &state.begins, &output)?,
        None => {
            let group = group.unwrap_or_default();
            output.warning(&format!(
                "no journal beside the store says what was played in group {group}: stacks, design \
                 and seed are told as the file has them now"
            ));
            if !has_levels(&prepared.study, &runs) {
                output.warning(
                    "the file has other factors or levels than the runs: it was changed since, or \
                     they are of another file",
                );
            }
            prepared
        }
    };
    let context = explain::explanation::Context::default();
    let failed = state.map(|state| state.failed).unwrap_or_default();
    output.print(&article::article(&prepared, &runs, &failed, &context))?;
    Ok(ExitCode::Ok)
}

/// The newest time that this file was played; if it is not known that it ever was, the newest that
/// may have been.
///
/// * `groups`: oldest first; `played`: what the journal says of one.
fn newest(
    groups: &[&str],
    file: &Path,
    played: &dyn Fn(&str) -> Option<study::journal::State>,
) -> Option<String> {
    let mut unknown = None;
    for group in groups.iter().rev() {
        match played(group) {
            Some(state) if state.begins.file == shown(file) => return Some((*group).to_owned()),
            Some(_) => {}
            None => unknown = unknown.or(Some(*group)),
        }
    }
    unknown.or(groups.last().copied()).map(str::to_owned)
}

/// The study as it was when it was played, whatever its file says by now.
fn as_played(
    now: Prepared,
    then: &study::journal::Begins,
    output: &Output,
) -> Result<Prepared, Failure> {
    if then.file != shown(&now.file) {
        output.warning(&format!("it was played from {}, and this tells that", then.file));
    } else if then.text != now.text.text {
        output.warning("the file was changed since it was played: this tells what was played");
    }
    let file = Path::new(&then.file);
    let file = if file.exists() { file.to_path_buf() } else { now.file };
    let played = planned(&then.text, &then.file, file, then.seed)?;
    for (source, text) in played.suites.iter().zip(&then.suites) {
        if source.text() != text {
            let name = source.name();
            output.warning(&format!("suite {name} was changed since it was played"));
        }
    }
    Ok(played)
}

/// * `groups`: those that the study has.
fn no_runs(args: &ReportArgs, name: &str, groups: &[&str]) -> Failure {
    let message = format!("the store has no run of study {name}");
    match groups {
        [] => {
            let file = layout::shell_word(&shown(&args.file));
            Failure::new(ExitCode::Usage, message)
                .hint(format!("`plimsoll study {file}` makes them"))
        }
        known => Failure::new(ExitCode::Usage, format!("{message} in group {}", args.group)).hint(
            format!("its groups are {}; without `--group` it is the newest", known.join(", ")),
        ),
    }
}

/// Whether the runs are of levels that the study has.
fn has_levels(study: &Study, runs: &[record::Run]) -> bool {
    runs.iter().filter_map(|run| run.header.part.as_ref()?.study.as_ref()).all(|of| {
        of.levels.len() == study.factors.len()
            && of.levels.iter().all(|(name, level)| {
                let factor = study.factors.iter().find(|factor| factor.name == name);
                factor.is_some_and(|factor| factor.levels.contains(level))
            })
    })
}

fn clean(args: &CleanArgs, common: &Common, output: Output) -> Result<ExitCode, Failure> {
    let store = order::store_path(common)?;
    if args.dry_run {
        let mut text = String::new();
        let mut worst = ExitCode::Ok;
        for found in unfinished(&store) {
            match found {
                Ok(found) if found.is_playing() => {
                    let name = found.state.begins.name.clone();
                    worst = Failure::from(PlayError::InUse { name })
                        .of(format!("study {} would not be cleaned up", found.title()))
                        .tell(&output);
                }
                Ok(found) => show::left(&mut text, &found.left()),
                // What it left is not known: that is not nothing.
                Err(error) => worst = Failure::from(error).tell(&output),
            }
        }
        if text.is_empty() && worst == ExitCode::Ok {
            text.push_str("Nothing is left of any study.\n");
        }
        output.print(&text)?;
        return Ok(worst);
    }
    let mut worst = ExitCode::Ok;
    // While its journal says that there may be something: killed here, it is done again.
    for found in unfinished(&store).into_iter().flatten() {
        remove_scratch(&found, &store, &output)?;
    }
    let cleaned = runner::study::clean(&store, &mut |line| output.note(line));
    if cleaned.is_empty() {
        output.note("nothing is left of any study");
    }
    for one in cleaned {
        match one.trouble {
            None => {
                for line in &one.undone {
                    output.note(line);
                }
                output.note(&format!("study {} is cleaned up", one.study));
            }
            Some(error) => {
                for line in &one.undone {
                    output.note(line);
                }
                worst = Failure::from(error)
                    .of(format!("study {} is not cleaned up", one.study))
                    .tell(&output);
            }
        }
    }
    Ok(worst)
}

/// Removes the files that runs left of a study that builds nothing: what is built goes with its file
/// system.
fn remove_scratch(found: &Unfinished, store: &Path, output: &Output) -> Result<(), Failure> {
    if !found.state.devices.is_empty() || found.is_playing() || !store.exists() {
        return Ok(());
    }
    let store = Store::open(store)?;
    let key = found.state.begins.key.as_str();
    let of_it = order::readable(&store, output)?.into_iter().filter(|run| {
        let is_part = run.part.as_ref().is_some_and(|part| part.group == key);
        is_part && run.state != record::RunState::Complete && !run.live
    });
    let ids: Vec<String> = of_it.map(|run| run.id).collect();
    let runs = order::load_group(&store, &ids, output)?;
    super::rm::remove_files(&store, &runs, output)
}

impl From<PlayError> for Failure {
    fn from(error: PlayError) -> Self {
        let error = match error {
            PlayError::Run(error) => return error.into(),
            other => other,
        };
        let code = match &error {
            error if error.is_usage() => ExitCode::Usage,
            error if error.is_refusal() => ExitCode::Refused,
            PlayError::Journal { .. } | PlayError::Damaged { .. } => ExitCode::Store,
            _ => ExitCode::Target,
        };
        let hint = error.hint();
        let failure = Self::new(code, error);
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_is_no_reason_to_resume_a_run_of_a_study_alone() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = PlayError::Journal { what: "write", path: PathBuf::from("/j"), source: full };
        assert!(!told(error, &[], Path::new("a b.toml")).hints_at("--resume"));
        let failure = Failure::new(ExitCode::Store, "full").hint("then `plimsoll resume`");
        assert!(of_study(failure, Path::new("a b.toml")).hints_at("study 'a b.toml' --resume"));
    }
}
