//! Room in the file systems that hold the files of loop devices: writing to such a device fills
//! the holes of its file.

use std::path::PathBuf;

use units::Bytes;

use crate::block::BlockKind;
use crate::gather;
use crate::host::Host;
use crate::mounts::{DeviceNumber, Mount, mounts};
use crate::overlays::Overlays;
use crate::safety::{Below, Refusal, judge_below};
use crate::shared::{self, Loop};
use crate::target::{FileId, PathKind, Space, Target, inspect};
use crate::users::all_mounts;

/// Whether the file systems below loop devices have room for what a run writes, through all layers.
/// Gives a sentence for each in which the run may take space.
///
/// * `written`: each target, and at most how much of it is written.
pub fn room_below(host: &Host, written: &[(&Target, Bytes)]) -> Result<Vec<String>, Refusal> {
    let is_loop = |target: &Target| target.devices.iter().any(|d| is_over_file(&d.kind));
    if !host.is_this() || !written.iter().any(|(target, _)| is_loop(target)) {
        return Ok(Vec::new());
    }
    let overlays = Overlays::of(host, &all_mounts(host));
    let loops = shared::loops(host, &overlays);
    let mut seen: Vec<FileId> = Vec::new();
    let mut found: Vec<Below> = Vec::new();
    for (target, bytes) in written {
        for device in target.devices.iter().filter(|device| is_over_file(&device.kind)) {
            let Some(below) = loops.iter().find(|one| one.name == device.name) else { continue };
            let Some(at) = backing(host, below, device.size, *bytes) else { continue };
            // Two devices over one file.
            if below.id.is_none_or(|id| !seen.contains(&id)) && at.takes > Bytes::ZERO {
                seen.extend(below.id);
                add(&mut found, at, target, &below.name);
            }
        }
    }
    // What the run takes there itself.
    for (target, bytes) in written {
        let of = target.mount.as_ref().map(|mount| mount.device);
        for one in found.iter_mut().filter(|one| Some(one.number) == of) {
            one.takes = sum(one.takes, takes(target, *bytes, target.path.size));
        }
    }
    judge_below(&found)
}

const fn is_over_file(kind: &BlockKind) -> bool {
    matches!(kind, BlockKind::Loop { file: Some(_) })
}

const fn sum(one: Bytes, other: Bytes) -> Bytes {
    Bytes::new(one.get().saturating_add(other.get()))
}

/// Where the file of a loop device is.
struct Backing {
    number: DeviceNumber,
    point: PathBuf,
    space: Option<Space>,
    takes: Bytes,
}

fn add(found: &mut Vec<Below>, at: Backing, target: &Target, device: &str) {
    let Some(space) = at.space.filter(|space| space.total > Bytes::ZERO) else { return };
    let device = format!("/dev/{device}");
    if let Some(known) = found.iter_mut().find(|known| known.number == at.number) {
        known.takes = sum(known.takes, at.takes);
        known.devices.push(device);
        return;
    }
    let path = target.path.resolved.display().to_string();
    let point = at.point.display().to_string();
    let (number, takes) = (at.number, at.takes);
    found.push(Below { path, devices: vec![device], point, number, space, takes });
}

/// The file of a loop device; of one that no name leads to, its file system, and all that the device
/// shows may be holes. `None` where that cannot be seen either.
fn backing(host: &Host, below: &Loop, shown: Bytes, written: Bytes) -> Option<Backing> {
    let name = crate::block::loop_file(host, &below.name)?;
    let file = inspect(host, &name).ok().filter(|file| match file.path.kind {
        PathKind::File { id, .. } => below.id.is_none_or(|known| known == id),
        _ => false,
    });
    if let Some(file) = file {
        let mount = file.mount.as_ref()?;
        return Some(Backing {
            number: mount.device,
            point: mount.point.clone(),
            space: gather::space(host, &file),
            takes: takes(&file, written.min(shown), file.path.size),
        });
    }
    let number = below.id?.device;
    let mounts = mounts(host).ok()?;
    let on = |mount: &&Mount| mount.device == number;
    let place = inspect(host, &mounts.iter().find(on)?.point).ok()?;
    let point = place.mount.as_ref()?.point.clone();
    let space = gather::space(host, &place);
    Some(Backing { number, point, space, takes: written.min(shown) })
}

/// At most how much space a file takes when `written` bytes of it are written, wherever they lie.
///
/// * `length`: how long it is meanwhile.
fn takes(file: &Target, written: Bytes, length: Bytes) -> Bytes {
    let PathKind::File { allocated, .. } = file.path.kind else { return written };
    let length = length.max(written);
    let holes = length.get().saturating_sub(allocated.get());
    let anew = holes.saturating_add(file.shared_within(length).get());
    written.min(Bytes::new(anew))
}
