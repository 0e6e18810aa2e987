//! From arguments to suites, settings and stores.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use record::{Run, RunSummary};
use runner::Settings;
use store::{Store, StoreError};
use suite::{Found, Part, Parts, SuiteSource};
use units::Nanos;

use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::input;
use crate::options::{ConsentOptions, Exception, MannerOptions, SuiteOptions};
use crate::output::Output;
use crate::parts::List;
use crate::questions;

/// Longest suite file that is read: the suite reader takes less, and `/dev/zero` has no end.
const SUITE_BYTES_MAX: u64 = 64 << 20;

/// Visits that must all be made may take so many times as long as they take on a fast and idle
/// device.
const WAITS: u64 = 100;

/// What a name or a file of the command line is.
#[derive(Debug)]
pub enum Ordered {
    /// One suite.
    One(Box<SuiteSource>),
    /// A list of them.
    Many(List),
}

/// Where the paths in a list begin; nowhere in one that comes with the program.
pub type Base = Option<PathBuf>;

/// The suite or list of suites of that name or in that file, with the options worked in.
pub fn ordered(name: &OsStr, options: &SuiteOptions) -> Result<Ordered, Failure> {
    match find(name, Path::new(""))? {
        (Found::Suite(mut source), _) => {
            work_in(&mut source, options)?;
            rounds(&mut source, options)?;
            Ok(Ordered::One(source))
        }
        (Found::Parts(parts), base) => Ok(Ordered::Many(List::new((parts, base), options)?)),
    }
}

/// The suite of that name or in that file, with the options worked in; lists are refused.
pub fn suite(name: &OsStr, options: &SuiteOptions) -> Result<SuiteSource, Failure> {
    match ordered(name, options)? {
        Ordered::One(source) => Ok(*source),
        Ordered::Many(list) => {
            let message = format!("`{}` is a list of suites, not one", list.name());
            let hint = "`plimsoll run` plays lists; here take the suite of one part";
            Err(Failure::new(ExitCode::Usage, message).hint(hint))
        }
    }
}

/// The suite that a part of a list names.
pub fn part(list: &Parts, part: &Part, base: &Base) -> Result<SuiteSource, Failure> {
    let name = OsStr::new(&part.suite);
    let found = match base {
        Some(base) => find(name, base),
        None => find_builtin(name).unwrap_or_else(|| Err(no_such_suite(&part.suite))),
    };
    match found.map_err(|failure| failure.at(list.place_of(part)))? {
        (Found::Suite(source), _) => Ok(*source),
        (Found::Parts(_), _) => Err(list.nested(part).into()),
    }
}

/// Works options into a suite, but for those that say how rounds end.
pub fn work_in(source: &mut SuiteSource, options: &SuiteOptions) -> Result<(), Failure> {
    if options.quick {
        source.quick()?;
    }
    if let Some(scale) = options.scale {
        source.set_scale(scale)?;
    }
    if let Some(size) = options.size {
        source.set_size(size)?;
    }
    if let Some(time) = options.time {
        source.set_time(time)?;
    }
    if let Some(backend) = &options.backend {
        source.set(&format!("backend={backend}"))?;
    }
    for assignment in &options.set {
        source.set(assignment)?;
    }
    if options.classic {
        source.set_classic()?;
    }
    Ok(())
}

fn rounds(source: &mut SuiteSource, options: &SuiteOptions) -> Result<(), Failure> {
    if !source.in_rounds() {
        in_rounds_only(source.name(), options)?;
    }
    work_in_rounds(source, options)
}

/// Works options into a suite that say how rounds end.
pub fn work_in_rounds(source: &mut SuiteSource, options: &SuiteOptions) -> Result<(), Failure> {
    if let Some(share) = options.precision {
        source.set_precision(share.0)?;
    }
    if let Some(time) = options.max_time {
        source.set_time_max(time)?;
    }
    Ok(())
}

/// Refuses what says how rounds end where no part of a list is played in rounds.
pub fn list_in_rounds(
    name: &str,
    parts: &[SuiteSource],
    options: &SuiteOptions,
) -> Result<(), Failure> {
    if parts.iter().any(SuiteSource::in_rounds) {
        return Ok(());
    }
    in_rounds_only(name, options)
}

/// Has every cell visited so often, neither more nor less, however long that takes.
pub fn exactly(source: &mut SuiteSource, visits: u32) -> Result<(), Failure> {
    for field in ["visits_min", "visits_max"] {
        source.set(&format!("rounds.{field}={visits}"))?;
    }
    let suite = suite::check(source, &suite::CheckContext::default())?;
    // Waits for an idle device come on top, and may well take longer than the visits.
    let time = suite.duration_of_rounds(visits).get().saturating_mul(WAITS);
    Ok(source.set_time_max(Nanos::new(time))?)
}

/// Refuses what says how rounds end where there are none.
fn in_rounds_only(name: &str, options: &SuiteOptions) -> Result<(), Failure> {
    let given =
        [("--precision", options.precision.is_some()), ("--max-time", options.max_time.is_some())];
    let Some((option, _)) = given.iter().find(|(_, given)| *given) else { return Ok(()) };
    let message =
        format!("{option} says how rounds end, but suite `{name}` is not played in rounds");
    let hint =
        "leave it out, or add `--set method=rounds` where cells may be repeated and reordered";
    Err(Failure::new(ExitCode::Usage, message).hint(hint))
}

/// * `base`: where a path begins.
fn find(name: &OsStr, base: &Path) -> Result<(Found, Base), Failure> {
    if let Some(found) = find_builtin(name) {
        return found;
    }
    let path = base.join(name);
    let named = Path::new(name);
    let is_path = named.components().count() != 1 || named.extension().is_some() || path.exists();
    if !is_path {
        return Err(no_such_suite(&name.to_string_lossy()));
    }
    let found = suite::read(&read(&path)?, &path.to_string_lossy())?;
    Ok((found, path.parent().map(Path::to_path_buf)))
}

/// The suite of that name that comes with the program, as it is.
pub fn builtin(name: &str) -> Result<Found, Failure> {
    find_builtin(OsStr::new(name)).unwrap_or_else(|| Err(no_such_suite(name))).map(|found| found.0)
}

fn find_builtin(name: &OsStr) -> Option<Result<(Found, Base), Failure>> {
    let name = name.to_str()?;
    let found = suite::find_builtin(name).or_else(|| suite::find_list(name))?;
    Some(suite::read(found.text, found.file).map(|found| (found, None)).map_err(Failure::from))
}

fn no_such_suite(name: &str) -> Failure {
    let near = questions::groups().map(|groups| questions::near(&groups, name));
    let hint = match near.unwrap_or_default().as_slice() {
        [] => "`plimsoll suite list` has them by question; a suite of your own is a FILE.toml"
            .to_owned(),
        near => format!("did you mean `{}`?", near.join("` or `")),
    };
    Failure::new(ExitCode::Usage, format!("no suite `{name}`")).hint(hint)
}

fn read(path: &Path) -> Result<String, Failure> {
    let failed = |error| {
        let message = format!("cannot read the suite {}", path.display());
        Failure::caused(ExitCode::Usage, message, error)
    };
    input::read_text(path, SUITE_BYTES_MAX).map_err(failed)
}

/// Says what a suite's own text sets although it changes nothing.
pub fn tell_doubts(source: &SuiteSource, output: &Output) {
    for doubt in suite::doubts(source) {
        output.warning(&doubt.to_string());
        if let Some(hint) = doubt.hint().filter(|_| !output.is_quiet()) {
            output.hint(&hint);
        }
    }
}

/// Whether the user said how much of the target is to be used.
pub fn size_given(options: &SuiteOptions) -> bool {
    let sets_size = |assignment: &String| {
        assignment.split_once('=').is_some_and(|(key, _)| key.trim() == "file_size")
    };
    options.size.is_some() || options.scale.is_some() || options.set.iter().any(sets_size)
}

/// The runner's settings.
pub fn settings(consent: &ConsentOptions, manner: &MannerOptions, store_path: PathBuf) -> Settings {
    Settings {
        consent: stack::Consent {
            overwrite: consent.overwrite.clone(),
            destroy: consent.destroy.clone(),
            even_though_signature: consent.even_though.contains(&Exception::Signature),
            even_though_unchecked: consent.even_though.contains(&Exception::Unchecked),
            own_mounts: Vec::new(),
        },
        verify: manner.verify,
        keep: manner.keep,
        cpus: manner.cpus.clone().unwrap_or_default().0,
        hang_limit: manner.hang_limit,
        failures: manner.tolerate,
        cache: manner.cache_size,
        command_line: command_line(),
        program: env!("CARGO_PKG_VERSION").to_owned(),
        store_path,
    }
}

/// The words of this command, the program first.
pub fn command_line() -> Vec<String> {
    std::env::args_os().map(text).collect()
}

fn text(word: OsString) -> String {
    word.to_string_lossy().into_owned()
}

/// Whether a file of that name would lie in the memory of `/dev`, as one of a mistyped device does.
fn is_in_dev(path: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let there = absolute.ancestors().find_map(|path| path.canonicalize().ok());
    there.is_some_and(|there| there.starts_with("/dev") && !there.starts_with("/dev/shm"))
}

/// Where the store is.
pub fn store_path(common: &Common) -> Result<PathBuf, Failure> {
    if let Some(path) = &common.store {
        if is_in_dev(path) {
            let message = format!("no store is kept in /dev: {} is in memory", path.display());
            return Err(Failure::new(ExitCode::Store, message)
                .hint("what is there is gone after a restart; name a file in another directory"));
        }
        return Ok(path.clone());
    }
    store::default_path(|name| std::env::var_os(name)).ok_or_else(|| {
        let message = "nowhere to keep results: neither XDG_DATA_HOME nor HOME is a directory";
        Failure::new(ExitCode::Store, message).hint("name a file with `--store FILE`")
    })
}

/// A suite and what it was played on, where that is known: another tool need not tell.
pub fn on(suite: &str, target: &str) -> String {
    match target {
        "" => report::plain(suite),
        target => format!("{} on {}", report::plain(suite), report::plain(target)),
    }
}

/// The damaged runs that this command has named.
static NAMED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn name_damaged(id: &str, error: &StoreError, output: &Output) {
    let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
    if named.insert(id.to_owned()) {
        output.warning(&format!("{id} is left out: {error}"));
        output.hint(&format!("`plimsoll rm {id}` removes it; other runs are read as before"));
    }
}

/// Every run that can be read, newest last; the others are named, once in a command.
pub fn readable(store: &Store, output: &Output) -> Result<Vec<RunSummary>, StoreError> {
    let (runs, damaged) = store.readable()?;
    damaged.iter().for_each(|(id, error)| name_damaged(id, error, output));
    Ok(runs)
}

/// The run that somebody means. Damaged ones that it may be are named and passed over.
pub fn resolve(store: &Store, word: &str, output: &Output) -> Result<String, StoreError> {
    let (id, damaged) = store.resolve_past(word)?;
    damaged.iter().for_each(|(id, error)| name_damaged(id, error, output));
    Ok(id)
}

/// The run that checks a comparison in blocks, in the same way.
pub fn control_of(
    store: &Store,
    group: &str,
    output: &Output,
) -> Result<Option<String>, StoreError> {
    let (id, damaged) = store.control_of(group)?;
    damaged.iter().for_each(|(id, error)| name_damaged(id, error, output));
    Ok(id)
}

/// What somebody wants of a run among others; `None` of one that is damaged, which is named.
pub fn unless_damaged<T>(
    id: &str,
    read: Result<T, StoreError>,
    output: &Output,
) -> Result<Option<T>, StoreError> {
    match read {
        Err(error @ StoreError::BadValue { .. }) => {
            name_damaged(id, &error, output);
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// Runs of a group, but for those that are damaged.
pub fn load_group(store: &Store, ids: &[String], output: &Output) -> Result<Vec<Run>, StoreError> {
    let load = |id: &String| unless_damaged(id, store.load(id), output).transpose();
    let runs: Vec<Run> = ids.iter().filter_map(load).collect::<Result<_, _>>()?;
    match ids.first() {
        Some(first) if runs.is_empty() => Ok(vec![store.load(first)?]),
        _ => Ok(runs),
    }
}

/// The store for looking things up; brought up to date if it is an old one.
pub fn store_to_read(common: &Common) -> Result<Store, Failure> {
    let path = store_path(common)?;
    match path.try_exists() {
        Ok(false) => {
            let message = format!("there is no store {} yet", path.display());
            Err(Failure::new(ExitCode::Usage, message).hint("`plimsoll run` makes it"))
        }
        _ => match Store::open_read_only(&path) {
            Err(StoreError::Older { .. }) => Ok(Store::open(&path)?),
            opened => Ok(opened?),
        },
    }
}
