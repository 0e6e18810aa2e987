//! Taking back what a study left that was killed.

use std::path::{Path, PathBuf};

use layout::{Action, DeviceId, Names};
use stack::Host;
use stack::build::{Allowed, Way, is_there};
use study::journal::{Entry, ToUndo, is_put_back};

use crate::study::builder::{
    Builder, Listener, Stays, allowed, is_so, queue_of, stays_above, to_blank,
};
use crate::study::devices::hold;
use crate::study::file::{JournalFile, Unfinished, journals_of};
use crate::study::ours::{Ours, writes_below};
use crate::study::{PlayError, directory};

/// Within this time an action is done that starts no program.
const SOON: std::time::Duration = std::time::Duration::from_secs(10);

/// What became of one study's leftovers.
#[derive(Debug)]
pub struct Cleaned {
    /// The study's name and key.
    pub study: String,
    /// The journal.
    pub journal: PathBuf,
    /// What was taken back, and what was not and why, in order.
    pub undone: Vec<String>,
    /// Why something is still there.
    pub trouble: Option<PlayError>,
}

/// What would be taken back.
#[derive(Debug)]
pub struct Left {
    /// The study's name and key.
    pub study: String,
    /// What would be done, in order.
    pub lines: Vec<String>,
}

/// Studies that did not come to their end, by their journals.
pub fn unfinished(store: &Path) -> Vec<Result<Unfinished, PlayError>> {
    let all = journals_of(store).into_iter();
    let found = all.map(|(path, state)| Ok(Unfinished { path, state: state? }));
    let open = |one: &Result<Unfinished, PlayError>| {
        one.as_ref().map_or(true, |one| one.state.ended.is_none() || !one.state.is_clean())
    };
    found.filter(open).collect()
}

impl Unfinished {
    /// Its name and key.
    pub fn title(&self) -> String {
        title(&self.state)
    }

    /// What would be taken back, and what not and why, as far as that shows before.
    pub fn left(&self) -> Left {
        let host = Host::this();
        let ours = Ours { host: &host, state: &self.state };
        let mut lines = settings_left(ours);
        let (undos, touched) = undos_left(ours);
        lines.extend(undos);
        for found in self.state.to_blank() {
            let line = to_blank(&found.device);
            let is_kept = || touched.kept.contains(&found.device);
            let is_free = ours.is_the_same(found).and_then(|()| match is_kept() {
                true => Err(stays_above(&found.device)),
                false => Ok(()),
            });
            lines.push(match is_free {
                Err(why) => not_done(&line, &why),
                // What is on it then does not show yet.
                Ok(()) if touched.done.contains(&found.device) => line,
                Ok(()) => ours.bears_anothers(&found.device).unwrap_or(line),
            });
        }
        // Those that stayed at the last try, since something was in them.
        let made = Names::new(&self.state.begins.key).map(|names| directories(&names));
        for path in made.unwrap_or_default().into_iter().filter(|path| Path::new(path).is_dir()) {
            let line = action_text(&Action::RemoveDirectory { path });
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        Left { study: self.title(), lines }
    }
}

/// Settings that would be put back.
fn settings_left(ours: Ours<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut schedulers = Vec::new();
    for (path, value) in ours.state.settings().filter(|(path, value)| !is_so(path, value)) {
        let line = format!("write {value} to {path}");
        match ours.has_queue(path) {
            Err(why) => lines.push(not_done(&line, &why)),
            Ok(false) => {}
            Ok(true) if schedulers.contains(&queue_of(path)) => {
                lines.push(format!("{line}, where its scheduler has not brought that back"));
            }
            Ok(true) => lines.push(line),
        }
        if path.ends_with("/scheduler") {
            schedulers.push(queue_of(path));
        }
    }
    lines
}

/// Devices that what would be taken back concerns.
#[derive(Default)]
struct Touched {
    done: Vec<DeviceId>,
    kept: Vec<DeviceId>,
}

/// What would be taken back besides settings.
fn undos_left(ours: Ours<'_>) -> (Vec<String>, Touched) {
    let all = ours.state.undos().filter(|undo| !is_put_back(&undo.what.action));
    let all: Vec<ToUndo<'_>> = all.collect();
    let actions: Vec<&Action> = all.iter().map(|undo| &undo.what.action).collect();
    let (mut lines, mut touched) = (Vec::new(), Touched::default());
    let mut in_the_way: Option<String> = None;
    for (at, next) in all.iter().enumerate() {
        let line = action_text(&next.what.action);
        if !layout::steps::does_it(&actions, at) {
            continue;
        }
        if let Some(before) = &in_the_way {
            lines.push(not_done(&line, &format!("`{before}` comes first")));
            continue;
        }
        let of_it = ours.touched_by(next.what, next.step);
        match outlook(ours, next, &of_it, &touched) {
            Outlook::Done => {
                touched.done.extend(of_it);
                lines.push(line);
            }
            Outlook::Gone => {}
            Outlook::Anothers(why) => lines.push(not_done(&line, &why)),
            Outlook::Kept(why) => {
                touched.kept.extend(of_it);
                lines.push(not_done(&line, &why));
            }
            Outlook::InTheWay(why) => {
                lines.push(not_done(&line, &why));
                in_the_way = Some(line);
            }
        }
    }
    (lines, touched)
}

/// What would become of one thing that is to be taken back.
enum Outlook {
    Done,
    /// It is not there.
    Gone,
    /// What is there is somebody else's.
    Anothers(String),
    /// A device is another by now.
    Kept(PlayError),
    /// Nothing that comes after it would be done either.
    InTheWay(String),
}

/// * `of_it`: the devices that it touches; `touched`: those that what comes before it does.
fn outlook(ours: Ours<'_>, next: &ToUndo<'_>, of_it: &[DeviceId], touched: &Touched) -> Outlook {
    let named = ours.named_by(next.what);
    if let Err(why) = ours.are_the_same(&named) {
        return Outlook::Kept(why);
    }
    if let Action::RemoveDirectory { path } = &next.what.action {
        return if Path::new(path).is_dir() { Outlook::Done } else { Outlook::Gone };
    }
    if let Some(made) = &next.what.only_if {
        // What cannot be told is told by whoever does it.
        if is_there(ours.host, made).is_ok_and(|there| !there) {
            return Outlook::Gone;
        }
        if let Some(why) = ours.is_anothers(made) {
            return Outlook::Anothers(why);
        }
        if let Some(why) = ours.is_anothers_mount(made) {
            return Outlook::InTheWay(why);
        }
    }
    if let Err(why) = ours.are_the_same(of_it) {
        return Outlook::Kept(why);
    }
    if let Some(device) = of_it.iter().find(|device| touched.kept.contains(device)) {
        return Outlook::Kept(stays_above(device));
    }
    let writes = writes_below(&next.what.action);
    let used = writes.then(|| ours.is_used_besides(of_it)).flatten();
    used.map_or(Outlook::Done, Outlook::InTheWay)
}

fn title(state: &study::journal::State) -> String {
    format!("{} {}", state.begins.name, state.begins.key)
}

/// What is not taken back.
pub(super) fn not_done(what: &str, why: &dyn std::fmt::Display) -> String {
    format!("not done: {what}: {why}")
}

/// A command as people read it.
pub(super) fn action_text(action: &Action) -> String {
    match action {
        Action::Run { argv } => argv.join(" "),
        Action::WriteFile { path, value } => format!("write {value} to {path}"),
        Action::PutBack { path } => format!("put {path} back to what it was"),
        Action::MakeDirectory { path } => format!("mkdir -p {path}"),
        Action::RemoveDirectory { path } => format!("rmdir {path}"),
    }
}

/// Takes back what studies left that nobody plays any more, and ends them.
///
/// * `tell`: is given a line about what takes long.
pub fn clean(store: &Path, tell: &mut dyn FnMut(&str)) -> Vec<Cleaned> {
    unfinished(store)
        .into_iter()
        .map(|found| match found {
            Ok(found) => clean_one(&found, tell),
            Err(error) => Cleaned {
                study: name_in(&error),
                journal: directory(store),
                undone: Vec::new(),
                trouble: Some(error),
            },
        })
        .collect()
}

/// The study's name and key, as its journal's file is called.
fn name_in(error: &PlayError) -> String {
    let path = match error {
        PlayError::Journal { path, .. }
        | PlayError::Damaged { path, .. }
        | PlayError::Untrusted { path, .. } => path,
        _ => return "a study".to_owned(),
    };
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-').map_or(name.to_string(), |(name, key)| format!("{name} {key}"))
}

/// What is mounted where a study mounts.
fn mounted(host: &Host, names: &Names) -> Vec<String> {
    let point = PathBuf::from(names.mount_point());
    let below = point.parent().unwrap_or(&point);
    let points = stack::mounts(host).unwrap_or_default().into_iter().map(|mount| mount.point);
    points.filter(|point| point.starts_with(below)).map(|p| p.display().to_string()).collect()
}

/// The directories that a study makes, those in others first.
fn directories(names: &Names) -> Vec<String> {
    let (data, wal) = (names.mount_point(), names.wal().mount_point());
    let above = data.rsplit_once('/').map(|(above, _)| above.to_owned());
    [data, wal].into_iter().chain(above).collect()
}

/// Removes the directories of a study that are still there; of those that stay, why.
pub(super) fn remove_directories(names: &Names) -> Vec<String> {
    let allowed = Allowed::new(Vec::new(), Vec::new(), names.key(), Names::MOUNT_ROOT);
    let remove = |path| {
        let action = Action::RemoveDirectory { path };
        let mut way = Way { limit: SOON, held: None, named: &[], waits: &mut |_, _, _| {} };
        stack::build::act(&action, &allowed, None, &mut way).err()
    };
    directories(names).into_iter().filter_map(remove).map(|error| error.to_string()).collect()
}

/// Tells somebody who cannot stop it.
struct Telling<'a>(&'a mut dyn FnMut(&str));

impl Listener for Telling<'_> {
    fn tell(&mut self, line: &str) {
        (self.0)(line);
    }

    fn stops(&self) -> bool {
        false
    }
}

fn clean_one(found: &Unfinished, tell: &mut dyn FnMut(&str)) -> Cleaned {
    let mut cleaned = Cleaned {
        study: title(&found.state),
        journal: found.path.clone(),
        undone: Vec::new(),
        trouble: None,
    };
    cleaned.trouble = take_back(&found.path, &mut cleaned.undone, tell).err();
    cleaned
}

fn take_back(
    path: &Path,
    undone: &mut Vec<String>,
    tell: &mut dyn FnMut(&str),
) -> Result<(), PlayError> {
    let mut journal = JournalFile::open(path)?;
    let Ok(names) = Names::new(&journal.state().begins.key) else { return Ok(()) };
    let host = Host::this();
    let devices = journal.state().devices.clone();
    let _held = hold(&host, devices.iter().map(|found| found.device.as_str()))?;
    let allowed = allowed(&host, &devices, &names);
    let mut builder = Builder::new(host, allowed, &mut journal);
    let ended = builder.tear_down(true, &mut Telling(tell));
    undone.append(&mut builder.told);
    ended?;
    let things = mounted(&Host::this(), &names);
    if !things.is_empty() {
        return Err(PlayError::StillThere { things });
    }
    let stay = remove_directories(&names);
    if !stay.is_empty() {
        return Err(PlayError::DirectoriesStay { whys: stay });
    }
    journal.add(&Entry::Ended { complete: false })
}

/// Puts back settings of queues that a killed study changed: harmless, so it is done at the next
/// start of any study. What was done, and what was not and why.
pub fn put_settings_back(store: &Path) -> Vec<String> {
    let mut told = Vec::new();
    for found in unfinished(store).into_iter().flatten() {
        if found.state.settings().next().is_none() {
            continue;
        }
        match settings_back(&found, &mut told) {
            // By whoever plays it now.
            Ok(()) | Err(PlayError::InUse { .. }) => {}
            Err(error) => told.push(stays(&found, &error)),
        }
    }
    told
}

fn settings_back(found: &Unfinished, told: &mut Vec<String>) -> Result<(), PlayError> {
    // A tool that it was killed in the midst of may take long, and has nothing to do with them.
    let mut journal = JournalFile::open_beside_tools(&found.path)?;
    let Ok(names) = Names::new(&journal.state().begins.key) else { return Ok(()) };
    let host = Host::this();
    let devices = journal.state().devices.clone();
    let _held = hold(&host, devices.iter().map(|found| found.device.as_str()))?;
    let allowed = allowed(&host, &devices, &names);
    let mut builder = Builder::new(host, allowed, &mut journal);
    let stay = builder.settings_back(&mut Telling(&mut |_| {}));
    let lines = builder.told.drain(..);
    told.extend(lines.map(|line| format!("{line}, as it was before study {}", found.title())));
    let stay = stay?;
    let lines = stay.iter().filter_map(Stays::told);
    told.extend(lines.map(|(line, why)| stays(found, &format!("{line}: {why}"))));
    Ok(())
}

fn stays(found: &Unfinished, why: &dyn std::fmt::Display) -> String {
    format!("a setting that study {} changed is not put back: {why}", found.title())
}
