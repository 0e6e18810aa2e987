//! What going on means, in sentences.

use std::path::Path;

use units::Bytes;

use super::facts::{Access, Facts, FileFacts, Subject, Users};
use super::permit::{Action, Identity, Permit, Told};
use crate::held::Held;
use crate::mark::Mark;
use crate::signature::Signature;
use crate::target::Space;

/// Of a file that is there and stays.
pub(super) const REMOVES_NOTHING: &str = "Creates and removes nothing.";

pub(super) fn permit(facts: &Facts) -> Permit {
    let mut sentences = Vec::new();
    if facts.given != facts.resolved {
        sentences.push(is_at(facts));
    }
    let (action, identity) = match (facts.access, &facts.subject) {
        (Access::Read, subject) => {
            sentences.push(format!("Reads {}.", facts.resolved.display()));
            sentences.push("Writes, creates and removes nothing there.".to_owned());
            (Action::Read, identity(subject))
        }
        (Access::Write { size, .. }, subject) => {
            let action = describe_write(facts, size, &mut sentences);
            (action, identity(subject))
        }
    };
    let contents = match &facts.subject {
        Subject::Block(block) => block.signatures.clone().ok(),
        _ => None,
    };
    let (path, told, held) = (facts.resolved.clone(), told(facts), Held::default());
    Permit { path, action, sentences, identity, told, held, contents }
}

fn told(facts: &Facts) -> Told {
    let link = (facts.given != facts.resolved).then(|| is_at(facts));
    let size = match facts.access {
        Access::Read => Bytes::ZERO,
        Access::Write { size, .. } => size,
    };
    let told = Told { link, size, ..Told::default() };
    match &facts.subject {
        Subject::NewFile(place) | Subject::Directory(place) => Told { space: place.space, ..told },
        Subject::File(file) => Told {
            grows: size > file.size,
            shrinks: facts.access != Access::Read && shrinks(file, size),
            why: may_be_written(file),
            blind: blind(&file.users),
            ..told
        },
        _ => told,
    }
}

fn is_at(facts: &Facts) -> String {
    format!("{} is {}.", facts.given.display(), facts.resolved.display())
}

/// A file of ours gets exactly the length that is wanted; others are only ever made longer.
fn shrinks(file: &FileFacts, size: Bytes) -> bool {
    file.mark == Mark::Ours && size < file.size
}

fn may_be_written(file: &FileFacts) -> &'static str {
    match file.mark {
        Mark::Ours => "which plimsoll made",
        _ => "as --overwrite says",
    }
}

/// What will be read, written, created and removed of the files of one target, which are numbered:
/// as [`Permit::describe`] where there is one; of those that are treated alike in a row together.
pub fn describe_all(permits: &[Permit]) -> Vec<String> {
    if let [one] = permits {
        return one.sentences.clone();
    }
    let mut said: Vec<String> = permits.iter().filter_map(|one| one.told.link.clone()).collect();
    let alike = |a: &Permit, b: &Permit| a.action == b.action && a.told.why == b.told.why;
    for row in permits.chunk_by(alike) {
        said.extend(describe_row(row));
    }
    let made: Vec<&Permit> = permits.iter().filter(|one| one.told.space.is_some()).collect();
    if let Some(space) = made.first().and_then(|one| one.told.space) {
        let all = made.iter().fold(0, |sum: u64, one| sum.saturating_add(one.told.size.get()));
        said.extend(room(Some(space), Bytes::new(all)));
    }
    said.extend(permits.iter().find_map(|one| one.told.blind.clone()));
    said
}

fn describe_row(row: &[Permit]) -> Vec<String> {
    let paths: Vec<&Path> = row.iter().map(|one| one.path.as_path()).collect();
    let (first, size) = (row.first(), row.first().map_or(Bytes::ZERO, |one| one.told.size));
    let why = first.map_or("", |one| one.told.why);
    let names = match row.len() {
        1 => format!("{} ({size})", row_of(&paths)),
        files => format!("{} ({files} files of {size})", row_of(&paths)),
    };
    match first.map(|one| &one.action) {
        None => Vec::new(),
        Some(Action::Read) => vec![
            format!("Reads {}.", row_of(&paths)),
            "Writes, creates and removes nothing there.".to_owned(),
        ],
        Some(Action::Create | Action::ScratchInside) => {
            vec![format!("Creates {names}, marks each as plimsoll's, and writes it.")]
        }
        Some(Action::Overwrite) => {
            let mut said = vec![format!("Overwrites {names}, {why}.")];
            if row.iter().any(|one| one.told.grows) {
                said.push(format!("Extends those that are shorter than {size}."));
            }
            if row.iter().any(|one| one.told.shrinks) {
                said.push(format!(
                    "Cuts those that are longer to {size}: what lies beyond is lost."
                ));
            }
            said
        }
        // A device is one, whatever else there is.
        Some(Action::Destroy) => row.iter().flat_map(|one| one.sentences.clone()).collect(),
    }
}

/// Names of files in a row: `NAME.0 .. NAME.127`.
pub fn row_of(paths: &[&Path]) -> String {
    match paths {
        [] => String::new(),
        [one] => one.display().to_string(),
        [first, .., last] => format!("{} .. {}", first.display(), last.display()),
    }
}

fn identity(subject: &Subject) -> Option<Identity> {
    match subject {
        Subject::File(file) => Some(Identity::File(file.id)),
        Subject::Block(block) => Some(Identity::Device(block.number)),
        _ => None,
    }
}

fn describe_write(facts: &Facts, size: Bytes, sentences: &mut Vec<String>) -> Action {
    let path = facts.resolved.display();
    match &facts.subject {
        Subject::NewFile(place) => {
            sentences
                .push(format!("Creates {path} ({size}), marks it as plimsoll's, and writes it."));
            sentences.extend(room(place.space, size));
            Action::Create
        }
        Subject::Directory(place) => {
            sentences.push(format!(
                "Creates a scratch file of {size} in {path}, writes it, and removes it afterwards."
            ));
            sentences.extend(room(place.space, size));
            Action::ScratchInside
        }
        Subject::File(file) => {
            let why = may_be_written(file);
            sentences.push(format!("Overwrites {path} ({}), {why}.", file.size));
            if size > file.size {
                sentences.push(format!("Extends it to {size}."));
            }
            if shrinks(file, size) {
                sentences.push(format!("Cuts it to {size}: what lies beyond is lost."));
            }
            sentences.push(REMOVES_NOTHING.to_owned());
            sentences.extend(blind(&file.users));
            Action::Overwrite
        }
        Subject::Block(block) => {
            sentences
                .push(format!("Destroys what {path} holds, as --destroy says: {}.", block.summary));
            if let Ok(signatures) = &block.signatures {
                let found: Vec<String> = signatures.iter().map(Signature::to_string).collect();
                sentences.push(if found.is_empty() && block.partitions.is_empty() {
                    "Found nothing in its first and last MiB.".to_owned()
                } else {
                    let parts = block.partitions.iter().map(|p| format!("partition {p}"));
                    let all: Vec<String> = found.into_iter().chain(parts).collect();
                    format!("On it there is: {}.", all.join(", "))
                });
            }
            sentences.extend(blind(&block.users));
            Action::Destroy
        }
        // Refused before.
        Subject::Character | Subject::Other { .. } => Action::Read,
    }
}

fn room(space: Option<Space>, size: Bytes) -> Option<String> {
    let Some(space) = space.filter(|s| s.total.get() > 0) else {
        return Some("How much is free there is not known.".to_owned());
    };
    let left = Bytes::new(space.free.get().saturating_sub(size.get()));
    Some(format!("Leaves {left} free of {}.", space.total))
}

fn blind(users: &Users) -> Option<String> {
    (users.unseen > 0).then(|| {
        format!(
            "Could not check whether {} other processes have it open (not enough rights).",
            users.unseen
        )
    })
}
