//! Overlays show files of other directories under numbers of their own: which of them are one file.

use std::path::{Path, PathBuf};

use crate::host::Host;
use crate::mounts::{DeviceNumber, Mount, mount_of};
use crate::target::FileId;
use crate::users::{SeenMount, file_at, id_of, reach, stat};

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
    /// Where it is mounted.
    shown: Vec<(usize, Mount)>,
}

/// All overlays of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overlays {
    namespaces: Vec<Namespace>,
    all: Vec<Overlay>,
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
}

impl Alike {
    /// What is in no overlay.
    pub fn alone(id: FileId) -> Self {
        Self { holds: id, ids: vec![id], once: Vec::new(), upper: Vec::new() }
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
                        shown: vec![(of, mount.clone())],
                    }),
                }
            }
        }
        all.iter_mut().for_each(|overlay| found.find_layers(overlay));
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
        if self.all.is_empty() || !is_here {
            return Alike::alone(id);
        }
        self.alike_by(Name { of: 0, path: path.to_owned() }, id)
    }

    /// The numbers of a file whose path is of some namespace, such as that under a loop device.
    pub fn alike_somewhere(&self, path: &Path, id: FileId) -> Alike {
        if self.all.is_empty() {
            return Alike::alone(id);
        }
        let names = (0..self.namespaces.len()).map(|of| Name { of, path: path.to_owned() });
        let name = names.into_iter().find(|name| file_at(&self.at(name)) == Some(id));
        name.map_or_else(|| Alike::alone(id), |name| self.alike_by(name, id))
    }

    fn alike_by(&self, name: Name, id: FileId) -> Alike {
        let mut found = Alike::alone(id);
        let mut names = vec![name];
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            if next > NAMES_MAX {
                break;
            }
            if let Some((below, is_upper)) = self.below(&name)
                && let Some(id) = file_at(&self.at(&below))
            {
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
        let mount = self.mount_of(name).filter(|mount| mount.file_system == "overlay")?;
        let overlay = self.all.iter().find(|overlay| overlay.device == mount.device)?;
        let rest = plain(mount.root.join(name.path.strip_prefix(&mount.point).ok()?));
        let rest = rest.strip_prefix("/").unwrap_or(&rest);
        let at = |layer: &Layer| Name { of: layer.name.of, path: layer.name.path.join(rest) };
        let first = overlay.layers.iter().position(|layer| stat(&self.at(&at(layer))).is_ok())?;
        Some((at(overlay.layers.get(first)?), first == 0 && overlay.has_upper))
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
