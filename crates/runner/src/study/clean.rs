//! Taking back what a study left that was killed.

use std::path::{Path, PathBuf};

use layout::Names;
use stack::Host;
use study::journal::Entry;

use crate::study::builder::{Builder, Quietly, allowed};
use crate::study::file::{JournalFile, Unfinished, journals, peek};
use crate::study::{PlayError, directory};

/// What became of one study's leftovers.
#[derive(Debug)]
pub struct Cleaned {
    /// The study's name and key.
    pub study: String,
    /// The journal.
    pub journal: PathBuf,
    /// What was there to take back, in order.
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
    let found = journals(&directory(store)).into_iter().map(|path| {
        let state = peek(&path)?;
        Ok(Unfinished { path, state })
    });
    let open = |one: &Result<Unfinished, PlayError>| {
        one.as_ref().map_or(true, |one| one.state.ended.is_none() || !one.state.is_clean())
    };
    found.filter(open).collect()
}

impl Unfinished {
    /// What would be taken back.
    pub fn left(&self) -> Left {
        let state = &self.state;
        let mut lines: Vec<String> = state
            .undos()
            .filter(|undo| !study::journal::is_put_back(&undo.what.action))
            .map(|undo| action_text(&undo.what.action))
            .collect();
        for (path, value) in state.settings() {
            lines.push(format!("write {value} to {path}"));
        }
        for found in state.to_blank() {
            lines.push(format!("zero the first and last MiB of {}", found.device));
        }
        Left { study: title(state), lines }
    }
}

fn title(state: &study::journal::State) -> String {
    format!("{} {}", state.begins.name, state.begins.key)
}

/// A command as people read it.
pub(super) fn action_text(action: &layout::Action) -> String {
    use layout::Action;
    match action {
        Action::Run { argv } => argv.join(" "),
        Action::WriteFile { path, value } => format!("write {value} to {path}"),
        Action::PutBack { path } => format!("put {path} back to what it was"),
        Action::MakeDirectory { path } => format!("mkdir -p {path}"),
        Action::RemoveDirectory { path } => format!("rmdir {path}"),
    }
}

/// Takes back what studies left that nobody plays any more, and ends them.
pub fn clean(store: &Path) -> Vec<Cleaned> {
    unfinished(store)
        .into_iter()
        .map(|found| match found {
            Ok(found) => clean_one(&found),
            Err(error) => Cleaned {
                study: "a study".to_owned(),
                journal: directory(store),
                undone: Vec::new(),
                trouble: Some(error),
            },
        })
        .collect()
}

fn clean_one(found: &Unfinished) -> Cleaned {
    let mut cleaned = Cleaned {
        study: title(&found.state),
        journal: found.path.clone(),
        undone: Vec::new(),
        trouble: None,
    };
    cleaned.trouble = take_back(&found.path, &mut cleaned.undone).err();
    cleaned
}

fn take_back(path: &Path, undone: &mut Vec<String>) -> Result<(), PlayError> {
    let mut journal = JournalFile::open(path)?;
    // Read again: until it was held another process may have gone on.
    let now = Unfinished { path: path.to_path_buf(), state: journal.state().clone() };
    *undone = now.left().lines;
    let Ok(names) = Names::new(&now.state.begins.key) else { return Ok(()) };
    let host = Host::this();
    let allowed = allowed(&host, &now.state.devices, &names);
    let mut builder = Builder { host, allowed, journal: &mut journal };
    builder.undo_all(&mut Quietly)?;
    builder.blank()?;
    journal.add(&Entry::Ended { complete: false })
}

/// Puts back settings of queues that a killed study changed: harmless, so it is done at the next
/// start of any study; what was.
pub fn put_settings_back(store: &Path) -> Vec<String> {
    let mut told = Vec::new();
    for found in unfinished(store).into_iter().flatten() {
        if found.state.settings().next().is_none() {
            continue;
        }
        // Held by whoever plays it now.
        let Ok(mut journal) = JournalFile::open(&found.path) else { continue };
        let settings: Vec<(String, String)> =
            journal.state().settings().map(|(p, v)| (p.clone(), v.clone())).collect();
        let Ok(names) = Names::new(&journal.state().begins.key) else { continue };
        let host = Host::this();
        let allowed = allowed(&host, &journal.state().devices, &names);
        for (path, value) in settings {
            let action = layout::Action::PutBack { path: path.clone() };
            let limit = std::time::Duration::from_secs(10);
            let done = stack::build::act(&action, &allowed, Some(&value), limit);
            if done.is_ok() && journal.add(&Entry::Back { path: path.clone() }).is_ok() {
                told.push(format!("{path} is {value} again, as before study {}", found.name()));
            }
        }
    }
    told
}

impl Unfinished {
    fn name(&self) -> String {
        title(&self.state)
    }
}
