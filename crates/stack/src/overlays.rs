//! Overlays show files of other directories under numbers of their own: which of them are one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::thread::{CapabilitySet, capabilities};

use crate::born::{Born, Likeness, may_have_number};
use crate::host::Host;
use crate::mounts::{DeviceNumber, Mount, mount_of};
use crate::target::FileId;
use crate::users::{OVERLAY_MAGIC, SeenMount, file_at, id_of, reach, stat};

/// The magic numbers of btrfs and bcachefs for `statfs(2)`.
const SUBVOLUMES: [u64; 2] = [0x9123_683E, 0xCA45_1A4E];
/// Names of one file that are followed.
const NAMES_MAX: usize = 64;
/// Directories above a mount point in which the relative name of a layer is looked for.
const ABOVE_MAX: usize = 8;

/// A mount namespace: all of its mounts, and the process through whose root it is reached.
#[derive(Clone, Debug)]
struct Namespace {
    process: Option<u32>,
    mounts: Vec<Mount>,
}

/// A path of one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    /// Which of the namespaces.
    of: usize,
    path: PathBuf,
}

/// A directory of an overlay.
#[derive(Clone, Debug)]
struct Layer {
    name: Name,
    id: FileId,
    /// Its file system, and the path in that: mounts of parts of it (bind mounts) do not matter.
    place: Option<(DeviceNumber, PathBuf)>,
}

/// A mounted overlay.
#[derive(Clone, Debug)]
struct Overlay {
    device: DeviceNumber,
    /// Those that can be found, the upper one first.
    layers: Vec<Layer>,
    has_upper: bool,
    /// Where files may have their data that cannot be found by their names.
    hides: Hides,
    /// Where it is mounted.
    shown: Vec<(usize, Mount)>,
}

/// All overlays of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlays {
    namespaces: Vec<Namespace>,
    all: Vec<Overlay>,
}

/// Where the data of a file may be that an overlay shows by a file without data: in a file that was made
/// at another moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Hides {
    /// In the file of that name only.
    #[default]
    No,
    /// On file systems of the overlay's directories.
    On(Vec<Within>),
    /// A directory is not known.
    Anywhere,
}

/// A file system of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Within {
    Device(DeviceNumber),
    /// Its subvolumes have numbers of their own, which are of no block device.
    Subvolumes,
}

impl Hides {
    pub fn is_no(&self) -> bool {
        *self == Self::No
    }

    /// Whether the data may be in a file of that file system.
    pub fn may_be_on(&self, device: DeviceNumber) -> bool {
        match self {
            Self::No => false,
            Self::On(layers) => {
                layers.contains(&Within::Device(device))
                    || device.major == 0 && layers.contains(&Within::Subvolumes)
            }
            Self::Anywhere => true,
        }
    }

    /// In any place of either.
    fn join(&mut self, other: &Self) {
        match (&mut *self, other) {
            (_, Self::No) | (Self::Anywhere, _) => {}
            (Self::On(own), Self::On(others)) => others.iter().for_each(|one| push(own, *one)),
            (Self::No | Self::On(_), other) => *self = other.clone(),
        }
    }
}

/// What has the number of a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum On {
    Overlay {
        /// Where its files may have their data.
        hides: Hides,
    },
    /// Something else that is mounted.
    Other,
    /// Nothing that is mounted: an overlay until recently, a subvolume, a part of an overlay.
    Unknown,
}

/// What has which number, by the mount tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mounted {
    overlays: BTreeMap<DeviceNumber, Hides>,
    /// Of overlays with files without data: a mount's root and point, and a lower directory from here.
    lower: Vec<(DeviceNumber, (PathBuf, PathBuf), PathBuf)>,
    others: BTreeSet<DeviceNumber>,
}

impl Mounted {
    pub fn on(&self, device: DeviceNumber) -> On {
        match self.overlays.get(&device) {
            Some(hides) => On::Overlay { hides: hides.clone() },
            // Overlays are without a block device.
            None if device.major != 0 || self.others.contains(&device) => On::Other,
            None => On::Unknown,
        }
    }
}

impl Mounted {
    /// Whether an overlay shows under that name a file without data of a lower directory.
    pub fn is_unlike(&self, device: DeviceNumber, path: &Path) -> bool {
        let of = self.lower.iter().filter(|(overlay, ..)| *overlay == device);
        let mut below = of.filter_map(|(_, (root, point), layer)| {
            let rest = root.join(path.strip_prefix(point).ok()?);
            Some(layer.join(rest.strip_prefix("/").unwrap_or(&rest)))
        });
        below.any(|below| stat(&below).is_ok() && lacks_data(&below))
    }
}

/// The numbers of one file, by overlays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alike {
    /// Of the file that holds the bytes: the same for all names of them.
    pub holds: FileId,
    /// All under which it is seen when it is open.
    pub ids: Vec<FileId>,
    /// Those under which it may have been mapped before it was copied to an upper directory.
    pub once: Vec<FileId>,
    /// Names of the files in upper directories that hold the bytes.
    pub upper: Vec<PathBuf>,
    /// The number by which it was looked for.
    pub id: FileId,
    /// What it has under all names; `None` where it cannot be reached.
    pub born: Option<Born>,
    /// An overlay shows it, and the file that holds the bytes cannot be found.
    pub is_vague: bool,
    /// Where the data may be that it shows.
    pub hides: Hides,
    /// It shows them by a file of a lower directory, which gives it a number and a moment of its own.
    pub is_unlike: bool,
}

impl Alike {
    /// What is in no overlay.
    pub fn alone(id: FileId) -> Self {
        Self {
            holds: id,
            ids: vec![id],
            once: Vec::new(),
            upper: Vec::new(),
            id,
            born: None,
            is_vague: false,
            hides: Hides::No,
            is_unlike: false,
        }
    }

    /// Whether both are one file, or one has the data of the other.
    pub fn like(&self, other: &Self) -> Likeness {
        if self.holds == other.holds || self.ids.contains(&other.id) || other.ids.contains(&self.id)
        {
            return Likeness::Yes;
        }
        // Other numbers of one file system are other files.
        let (Some(born), Some(others)) = (self.born, other.born) else { return Likeness::No };
        if self.id.device == other.id.device {
            return Likeness::No;
        }
        let hides = (self.hides_in(other) || other.hides_in(self)) && born.length == others.length;
        match hides {
            true if may_have_number(self.id.inode, other.id.inode) => Likeness::Yes,
            // Nothing else of the data's file is passed on.
            true if self.is_unlike || other.is_unlike => Likeness::Unknown,
            _ if self.is_vague || other.is_vague => born.like(&others),
            _ => Likeness::No,
        }
    }

    /// Whether its data may be in the other.
    fn hides_in(&self, other: &Self) -> bool {
        let ids = other.ids.iter().chain([&other.holds]);
        ids.into_iter().any(|id| self.hides.may_be_on(id.device))
    }

    /// Takes the other's numbers for its own, since both are one file.
    pub fn join(&mut self, other: &Self) {
        self.holds = other.holds;
        other.ids.iter().for_each(|id| push(&mut self.ids, *id));
        other.once.iter().for_each(|id| push(&mut self.once, *id));
        other.upper.iter().for_each(|name| push(&mut self.upper, name.clone()));
    }
}

impl Overlays {
    pub fn of(host: &Host, mounts: &[SeenMount]) -> Self {
        // The files of a captured machine are not here.
        let mounts = if host.is_this() { mounts } else { &[] };
        let mut namespaces: Vec<Namespace> = Vec::new();
        // The mounts of a namespace follow each other.
        for seen in mounts {
            match namespaces.last_mut().filter(|last| last.process == seen.process) {
                Some(last) => last.mounts.push(seen.mount.clone()),
                None => namespaces
                    .push(Namespace { process: seen.process, mounts: vec![seen.mount.clone()] }),
            }
        }
        let mut found = Self { namespaces, all: Vec::new() };
        let mut all: Vec<Overlay> = Vec::new();
        for (of, namespace) in found.namespaces.iter().enumerate() {
            for mount in namespace.mounts.iter().filter(|mount| mount.file_system == "overlay") {
                let device = mount.device;
                match all.iter_mut().find(|known| known.device == device) {
                    Some(known) => known.shown.push((of, mount.clone())),
                    None => all.push(Overlay {
                        device,
                        layers: Vec::new(),
                        has_upper: false,
                        hides: Hides::No,
                        shown: vec![(of, mount.clone())],
                    }),
                }
            }
        }
        all.iter_mut().for_each(|overlay| found.find_layers(overlay));
        let overlays: Vec<DeviceNumber> = all.iter().map(|overlay| overlay.device).collect();
        for overlay in &mut all {
            // The data of an overlay's overlay are further below.
            let is_nested = overlay.layers.iter().any(|one| overlays.contains(&one.id.device));
            if is_nested && !overlay.hides.is_no() {
                overlay.hides = Hides::Anywhere;
            }
        }
        found.all = all;
        found
    }

    /// A layer is named as whoever mounted the overlay saw it.
    fn find_layers(&self, overlay: &mut Overlay) {
        let Some((_, first)) = overlay.shown.first() else { return };
        let upper = first.value("upperdir").map(PathBuf::from);
        overlay.has_upper = upper.is_some();
        let named = upper.into_iter().chain(lower_layers(first));
        overlay.layers = named.filter_map(|path| self.layer(&overlay.shown, &path)).collect();
        // Without the upper directory, the first that is found is a lower one.
        let upper = first.value("upperdir").map(PathBuf::from);
        let is_upper = |layer: &Layer| upper.as_ref().is_some_and(|u| layer.name.path.ends_with(u));
        overlay.has_upper &= overlay.layers.first().is_some_and(is_upper);
        let is_lost =
            overlay.layers.len() < lower_layers(first).len() + usize::from(upper.is_some());
        overlay.hides = match (is_lost, has_metacopy(first)) {
            (true, _) => Hides::Anywhere,
            (false, true) => {
                Hides::On(overlay.layers.iter().map(|layer| self.within(layer)).collect())
            }
            (false, false) => Hides::No,
        };
    }

    fn within(&self, layer: &Layer) -> Within {
        let found = rustix::fs::statfs(self.at(&layer.name));
        match found.is_ok_and(|found| SUBVOLUMES.contains(&(found.f_type as u64))) {
            true => Within::Subvolumes,
            false => Within::Device(layer.id.device),
        }
    }

    /// What has which number.
    pub fn mounted(&self) -> Mounted {
        let mut found = Mounted::default();
        for mount in self.namespaces.iter().flat_map(|namespace| &namespace.mounts) {
            found.others.insert(mount.device);
        }
        for overlay in self.all.iter().filter(|overlay| !overlay.hides.is_no()) {
            for layer in overlay.layers.iter().skip(usize::from(overlay.has_upper)) {
                let layer = self.at(&layer.name);
                found.lower.extend(overlay.shown.iter().map(|(_, mount)| {
                    (overlay.device, (mount.root.clone(), mount.point.clone()), layer.clone())
                }));
            }
        }
        found.overlays = self.all.iter().map(|one| (one.device, one.hides.clone())).collect();
        found
    }

    fn layer(&self, shown: &[(usize, Mount)], path: &Path) -> Option<Layer> {
        let others = (0..self.namespaces.len()).filter(|of| shown.iter().all(|(own, _)| own != of));
        for of in shown.iter().map(|(of, _)| *of).chain(others) {
            // Long lists of layers are given as names in the directory where `mount` ran.
            let points = shown.iter().filter(|(own, _)| path.is_relative() && *own == of);
            let above = points.flat_map(|(_, m)| m.point.ancestors().skip(1).take(ABOVE_MAX));
            let relative = above.map(|above| above.join(path));
            let absolute = path.is_absolute().then(|| path.to_owned());
            for path in absolute.into_iter().chain(relative) {
                let name = Name { of, path };
                if let Ok(found) = stat(&self.at(&name)) {
                    let place = self.place(&name);
                    return Some(Layer { id: id_of(&found), place, name });
                }
            }
        }
        None
    }

    /// Where it is reached from here.
    fn at(&self, name: &Name) -> PathBuf {
        reach(self.namespaces.get(name.of).and_then(|of| of.process), &name.path)
    }

    fn mount_of(&self, name: &Name) -> Option<&Mount> {
        mount_of(&self.namespaces.get(name.of)?.mounts, &name.path, None)
    }

    fn place(&self, name: &Name) -> Option<(DeviceNumber, PathBuf)> {
        let mount = self.mount_of(name)?;
        let rest = name.path.strip_prefix(&mount.point).ok()?;
        Some((mount.device, plain(mount.root.join(rest))))
    }

    /// The numbers of a file.
    ///
    /// * `path`: canonical, as this process sees it.
    pub fn alike(&self, path: &Path, id: FileId) -> Alike {
        let is_here = self.namespaces.first().is_some_and(|first| first.process.is_none());
        if !is_here {
            return Alike::alone(id);
        }
        self.alike_by(Name { of: 0, path: path.to_owned() }, id)
    }

    /// The numbers of a file whose path is of some namespace, such as that under a loop device; `None`
    /// where the path leads to no such file.
    pub fn alike_somewhere(&self, path: &Path, id: FileId) -> Option<Alike> {
        let names = (0..self.namespaces.len()).map(|of| Name { of, path: path.to_owned() });
        let name = names.into_iter().find(|name| file_at(&self.at(name)) == Some(id));
        name.map(|name| self.alike_by(name, id))
    }

    /// Whether a directory above a path shows that what has the number is no overlay: a subvolume, whose
    /// number is in no mount table.
    pub fn is_no_overlay(&self, device: DeviceNumber, path: &Path) -> bool {
        let has = |path: &Path| {
            let is_it = stat(path).is_ok_and(|found| id_of(&found).device == device);
            is_it
                && rustix::fs::statfs(path).is_ok_and(|found| found.f_type as u64 != OVERLAY_MAGIC)
        };
        let names = (0..self.namespaces.len())
            .flat_map(|of| path.ancestors().skip(1).map(move |above| (of, above)));
        let mut places = names.map(|(of, above)| self.at(&Name { of, path: above.to_owned() }));
        path.is_absolute() && places.any(|place| has(&place))
    }

    fn alike_by(&self, name: Name, id: FileId) -> Alike {
        let mut found = Alike::alone(id);
        found.born = Born::of(&self.at(&name));
        let mut names = vec![name];
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            if next > NAMES_MAX {
                break;
            }
            let overlay = self.overlay_of(&name);
            let below = overlay.and_then(|_| self.below(&name));
            let below = below.and_then(|(b, is_upper)| Some((file_at(&self.at(&b))?, b, is_upper)));
            found.is_vague |= overlay.is_some() && below.is_none();
            let lacks = below.as_ref().is_none_or(|(_, b, _)| lacks_data(&self.at(b)));
            if let Some(overlay) = overlay.filter(|overlay| lacks && !overlay.hides.is_no()) {
                found.hides.join(&overlay.hides);
                found.is_unlike |= below.as_ref().is_some_and(|(_, _, is_upper)| !is_upper);
            }
            if let Some((id, below, is_upper)) = below {
                if next == 0 {
                    found.holds = self.deepest(&below, id);
                }
                // Writing what is in a lower directory copies it first: others who have it there
                // lose nothing.
                if is_upper {
                    push(&mut found.upper, self.at(&below));
                    push(&mut found.ids, id);
                    push(&mut names, below);
                }
            }
            for (above, is_masked) in self.above(&name) {
                let Some(id) = file_at(&self.at(&above)) else { continue };
                if is_masked {
                    push(&mut found.once, id);
                } else {
                    push(&mut found.ids, id);
                    push(&mut names, above);
                }
            }
            next += 1;
        }
        found
    }

    /// The file that holds what an overlay shows, through overlays of overlays.
    fn deepest(&self, name: &Name, id: FileId) -> FileId {
        let (mut name, mut id) = (name.clone(), id);
        for _ in 0..ABOVE_MAX {
            let below = self.below(&name).map(|(below, _)| below);
            let Some((below, found)) =
                below.and_then(|b| Some((b.clone(), file_at(&self.at(&b))?)))
            else {
                break;
            };
            (name, id) = (below, found);
        }
        id
    }

    /// The file that an overlay shows under a name, and whether it is in the upper directory.
    fn below(&self, name: &Name) -> Option<(Name, bool)> {
        let overlay = self.overlay_of(name)?;
        let rest = self.in_overlay(name)?;
        let at = |layer: &Layer| Name { of: layer.name.of, path: layer.name.path.join(&rest) };
        let first = overlay.layers.iter().position(|layer| stat(&self.at(&at(layer))).is_ok())?;
        let below = at(overlay.layers.get(first)?);
        // By now another directory may have the name of the layer.
        let is_it = self.have_one_birth(name, &below);
        is_it.then_some((below, first == 0 && overlay.has_upper))
    }

    fn overlay_of(&self, name: &Name) -> Option<&Overlay> {
        let mount = self.mount_of(name).filter(|mount| mount.file_system == "overlay")?;
        self.all.iter().find(|overlay| overlay.device == mount.device)
    }

    /// Whether both may be one file by the time when they were made, which an overlay passes on.
    fn have_one_birth(&self, one: &Name, other: &Name) -> bool {
        match (Born::of(&self.at(one)), Born::of(&self.at(other))) {
            (Some(one), Some(other)) => one.has_birth_of(&other),
            _ => true,
        }
    }

    /// Whether two files that are to be made will be one: what is made in an overlay is made in its upper
    /// directory.
    ///
    /// * `one`, `other`: canonical paths, as this process sees them.
    pub fn make_one(&self, one: &Path, other: &Path) -> bool {
        let here = |path: &Path| Name { of: 0, path: path.to_owned() };
        let (one, other) = (here(one), here(other));
        let is_in_overlay = |name: &Name| self.overlay_of(name).is_some();
        if one.path.file_name() != other.path.file_name()
            || !(is_in_overlay(&one) || is_in_overlay(&other))
        {
            return false;
        }
        let (place, others) = (self.made_at(one.clone()), self.made_at(other.clone()));
        // Where the upper directory cannot be found, what it shows of itself is compared.
        let born = |name: &Name| {
            let above = self.at(&Name { of: name.of, path: name.path.parent()?.to_owned() });
            Some((Born::of(&above)?.at?, id_of(&stat(&above).ok()?).device))
        };
        let is_like = || match (born(&one), born(&other)) {
            (Some((at, device)), Some((others, other))) => at == others && device != other,
            _ => false,
        };
        match (place, others) {
            (Some(one), Some(other)) => one == other,
            _ => is_like(),
        }
    }

    /// The place where a file that is to be made has its bytes; `None` where that cannot be found.
    fn made_at(&self, name: Name) -> Option<(DeviceNumber, PathBuf)> {
        let above = |name: &Name| name.path.parent().map(Path::to_owned);
        let mut name = name;
        for _ in 0..ABOVE_MAX {
            let Some(overlay) = self.overlay_of(&name) else { break };
            let layer = &overlay.layers.first().filter(|_| overlay.has_upper)?.name;
            let below = Name { of: layer.of, path: layer.path.join(self.in_overlay(&name)?) };
            // The directory may be another one's by now. It is made if it is not there.
            let both = (above(&name)?, above(&below)?);
            let (shown, upper) =
                (Name { of: name.of, path: both.0 }, Name { of: below.of, path: both.1 });
            if !self.have_one_birth(&shown, &upper) {
                return None;
            }
            name = below;
        }
        self.place(&name)
    }

    /// The path below the root of the overlay that it is in.
    fn in_overlay(&self, name: &Name) -> Option<PathBuf> {
        let mount = self.mount_of(name)?;
        let rest = plain(mount.root.join(name.path.strip_prefix(&mount.point).ok()?));
        Some(rest.strip_prefix("/").map(Path::to_owned).unwrap_or(rest))
    }

    /// What overlays show of a file in one of their directories; and whether another of their
    /// directories has one in its place by now.
    fn above(&self, name: &Name) -> Vec<(Name, bool)> {
        let place = self.place(name);
        let mut ancestors: Option<Vec<(FileId, PathBuf)>> = None;
        let mut found = Vec::new();
        for overlay in &self.all {
            for (number, layer) in overlay.layers.iter().enumerate() {
                let by_place = rest_in(place.as_ref(), layer.place.as_ref());
                let rest = by_place.or_else(|| {
                    let ancestors = ancestors.get_or_insert_with(|| self.ancestors(name));
                    let above = ancestors.iter().find(|(id, _)| *id == layer.id)?;
                    Some(above.1.clone())
                });
                let Some(rest) = rest else { continue };
                let before = overlay.layers.iter().take(number);
                let has = |layer: &Layer| {
                    let path = layer.name.path.join(&rest);
                    stat(&self.at(&Name { of: layer.name.of, path })).is_ok()
                };
                let is_masked = before.into_iter().any(has);
                let shown = overlay.shown.iter().find_map(|(of, mount)| {
                    let root = mount.root.strip_prefix("/").unwrap_or(&mount.root);
                    let path = mount.point.join(rest.strip_prefix(root).ok()?);
                    let name = Name { of: *of, path };
                    file_at(&self.at(&name)).map(|_| name)
                });
                // Another directory of the overlay may have the name by now.
                let shown = shown.filter(|shown| is_masked || self.have_one_birth(name, shown));
                found.extend(shown.map(|shown| (shown, is_masked)));
            }
        }
        found
    }

    /// The directories above, each with what follows it.
    fn ancestors(&self, name: &Name) -> Vec<(FileId, PathBuf)> {
        let above = name.path.ancestors().skip(1);
        let known = |above: &Path| {
            let found = stat(&self.at(&Name { of: name.of, path: above.to_owned() })).ok()?;
            Some((id_of(&found), name.path.strip_prefix(above).ok()?.to_owned()))
        };
        above.filter_map(known).collect()
    }
}

/// Whether a file in a directory of an overlay has its data in a lower one, or this process may not know.
fn lacks_data(path: &Path) -> bool {
    let has = |name: &str| rustix::fs::lgetxattr(path, name, &mut [0_u8; 0]).is_ok();
    let may_ask =
        capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN));
    !may_ask || has("trusted.overlay.metacopy") || has("user.overlay.metacopy")
}

/// Whether upper files may be without data: by an option, or as the kernel does it without one.
fn has_metacopy(mount: &Mount) -> bool {
    let by_default = || std::fs::read("/sys/module/overlay/parameters/metacopy");
    match mount.value("metacopy") {
        Some(value) => value == "on",
        None => by_default().is_ok_and(|found| found.starts_with(b"Y")),
    }
}

fn push<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Without a slash at its end, which joining nothing leaves.
fn plain(path: PathBuf) -> PathBuf {
    path.components().collect()
}

/// What of a place comes after a directory of the same file system.
fn rest_in(
    place: Option<&(DeviceNumber, PathBuf)>,
    directory: Option<&(DeviceNumber, PathBuf)>,
) -> Option<PathBuf> {
    let ((device, path), (other, above)) = (place?, directory?);
    let rest = (device == other).then(|| path.strip_prefix(above).ok()).flatten()?;
    (!rest.as_os_str().is_empty()).then(|| rest.to_owned())
}

/// The lower directories of an overlay, the first one on top: `lowerdir=A:B::DATA`, where a colon in a
/// name has a backslash before it, or `lowerdir+=A` for each.
fn lower_layers(mount: &Mount) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for option in &mount.options {
        if let Some(list) = option.strip_prefix("lowerdir=") {
            found.extend(split(list));
        }
        let one = option.strip_prefix("lowerdir+=").or_else(|| option.strip_prefix("datadir+="));
        found.extend(one.map(PathBuf::from));
    }
    found
}

fn split(list: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut one = String::new();
    let mut letters = list.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => one.extend(letters.next()),
            ':' => found.push(std::mem::take(&mut one)),
            other => one.push(other),
        }
    }
    found.push(one);
    found.into_iter().filter(|one| !one.is_empty()).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_named_in_a_list_or_one_by_one() {
        let of = |options: &[&str]| {
            let options = options.iter().map(|one| (*one).to_owned()).collect();
            let text = b"30 1 0:40 / /m rw - overlay none rw";
            let mount = Mount { options, ..crate::mounts::parse(text).remove(0) };
            lower_layers(&mount)
        };
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(of(&["rw", "lowerdir=/a:/b::/c", "upperdir=/u"]), paths(&["/a", "/b", "/c"]));
        assert_eq!(of(&[r"lowerdir=/a\:b\\c:l/D"]), paths(&[r"/a:b\c", "l/D"]));
        assert_eq!(
            of(&["lowerdir+=/a:b", "lowerdir+=/c", "datadir+=/d"]),
            paths(&["/a:b", "/c", "/d"])
        );
        assert_eq!(of(&["upperdir=/u"]), paths(&[]));
    }

    #[test]
    fn a_place_is_below_a_directory_of_its_own_file_system_only() {
        let at = |minor, path: &str| Some((DeviceNumber { major: 8, minor }, PathBuf::from(path)));
        let rest = |one: &Option<_>, other: &Option<_>| rest_in(one.as_ref(), other.as_ref());
        assert_eq!(rest(&at(1, "/a/b/c"), &at(1, "/a")), Some("b/c".into()));
        assert_eq!(rest(&at(1, "/a/b/c"), &at(2, "/a")), None);
        assert_eq!(rest(&at(1, "/ab"), &at(1, "/a")), None);
        assert_eq!(rest(&at(1, "/a"), &at(1, "/a")), None);
        assert_eq!(rest(&None, &at(1, "/a")), None);
    }

    #[test]
    fn without_overlays_a_file_is_itself() {
        let id = FileId { device: DeviceNumber { major: 8, minor: 1 }, inode: 7 };
        assert_eq!(Overlays::of(&Host::this(), &[]).alike(Path::new("/a"), id), Alike::alone(id));
    }
}
