//! Users by an overlay that cannot be followed by names: it is mounted no more, or its directories
//! have other names by now.

use std::path::{Path, PathBuf};

use rustix::fs::Statx;

use crate::born::{Born, Likeness, may_have_number};
use crate::mounts::DeviceNumber;
use crate::overlays::{Alike, Hides, Mounted, On, Overlays};
use crate::target::FileId;
use crate::users::id_of;

/// The files that are looked for, by what an overlay passes on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Elsewhere {
    files: Vec<Wanted>,
    mounted: Mounted,
}

#[derive(Clone, Debug)]
struct Wanted {
    /// Its numbers; other numbers of one file system are other files.
    ids: Vec<FileId>,
    born: Born,
    /// Where its length can be looked at again.
    path: Option<PathBuf>,
    /// The file that holds the bytes is not known: it may be any.
    is_vague: bool,
}

impl Elsewhere {
    /// * `files`: with a path of each, if one is known.
    pub fn of<'a>(
        files: impl Iterator<Item = (&'a Alike, Option<PathBuf>)>,
        overlays: &Overlays,
    ) -> Self {
        let files = files.filter_map(|(alike, path)| {
            let ids = alike.ids.iter().copied().chain([alike.holds]).collect();
            Some(Wanted { ids, born: alike.born?, path, is_vague: alike.is_vague })
        });
        Self { files: files.collect(), mounted: overlays.mounted() }
    }

    /// Whether a file with that number of a file system may be one of them.
    pub fn may_be_on(&self, device: DeviceNumber) -> bool {
        let is_vague = || self.files.iter().any(|file| file.is_vague);
        !self.files.is_empty() && (self.mounted.on(device) != On::Other || is_vague())
    }

    /// Whether what has such a number is an overlay; `None` where the file system has to be asked.
    pub fn is_overlay(&self, device: DeviceNumber) -> Option<bool> {
        match self.mounted.on(device) {
            On::Overlay { .. } => Some(true),
            On::Other => Some(false),
            On::Unknown => None,
        }
    }

    /// Where the data may be of what an overlay shows.
    pub fn hides(&self, overlay: DeviceNumber) -> Hides {
        match self.mounted.on(overlay) {
            On::Overlay { hides } => hides,
            On::Other => Hides::No,
            On::Unknown => Hides::Anywhere,
        }
    }

    /// Whether an overlay shows under that name a file without data of a lower directory.
    pub fn is_unlike(&self, overlay: DeviceNumber, path: &Path) -> bool {
        self.mounted.is_unlike(overlay, path)
    }

    /// Whether a file is one of them.
    ///
    /// * `found`: asked for what `Born` needs, and for its number.
    /// * `hides`: where its data may be in a file that was made at another moment.
    /// * `is_unlike`: nothing but the length of such a file is passed on.
    pub fn has(&self, found: &Statx, is_overlay: bool, hides: &Hides, is_unlike: bool) -> Likeness {
        let id = id_of(found);
        let born = Born::seen(found);
        let likeness = |file: &Wanted| {
            if file.ids.iter().any(|own| own.device == id.device) {
                return Likeness::No;
            }
            if !is_overlay && !file.is_vague {
                return Likeness::No;
            }
            let is_hidden = || file.ids.iter().any(|own| hides.may_be_on(own.device));
            if is_overlay && file.born.length == born.length && is_hidden() {
                let has_number = |own: &FileId| may_have_number(id.inode, own.inode);
                if is_unlike || file.ids.iter().any(has_number) {
                    return Likeness::Yes;
                }
            }
            match file.born.like(&born) {
                Likeness::No if file.born.at.is_some() && file.born.has_birth_of(&born) => {
                    // It may have grown meanwhile.
                    let now = file.path.as_ref().and_then(|path| Born::of(path));
                    now.map_or(Likeness::No, |now| now.like(&born))
                }
                likeness => likeness,
            }
        };
        self.files.iter().map(likeness).max().unwrap_or(Likeness::No)
    }
}
