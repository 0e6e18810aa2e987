//! Volumes by LVM.

use units::Bytes;

use super::words::{counted, in_kib, paths, run, signature, step};
use super::{Expectation, Made, Stage, Step, Undo, Wait, device_of_leg};
use crate::array::{Array, Level};
use crate::lvm::{alignment_of_leg, alignment_of_legs, extent_size};
use crate::names::Names;
use crate::stack::{DeviceId, Leg, StackSpec};
use crate::whole;

/// As `blkid` calls a physical volume.
const SIGNATURE: &str = "LVM2_member";

/// Copies of its metadata would stay in /etc/lvm.
pub const NO_BACKUP: &str = "backup/backup=0 backup/archive=0";

/// Where the volume in that group is.
pub fn path(group: &str, names: &Names) -> DeviceId {
    DeviceId::new(format!("/dev/{group}/{}", names.volume()))
}

/// One volume over a group of its own.
struct Volume<'a> {
    group: String,
    array: Array,
    members: Vec<DeviceId>,
    spares: &'a [DeviceId],
    alignment: Bytes,
    below: Vec<DeviceId>,
}

/// A leg: the array is the volume's.
pub fn leg(number: usize, leg: &Leg, names: &Names) -> Vec<Step> {
    let Ok(Some(array)) = leg.array() else { return Vec::new() };
    let volume = Volume {
        group: names.group_of_leg(number),
        array,
        members: leg.members.clone(),
        spares: &leg.spares,
        alignment: alignment_of_leg(&array),
        below: leg.devices().cloned().collect(),
    };
    volume.steps(names)
}

/// The volume over the legs.
pub fn top(stack: &StackSpec, names: &Names) -> Vec<Step> {
    let Some(array) = whole::top_array(stack) else { return Vec::new() };
    let legs = stack.legs.iter().enumerate();
    let volume = Volume {
        group: names.group(),
        array,
        members: legs.filter_map(|(number, leg)| device_of_leg(number, leg, names)).collect(),
        spares: &[],
        alignment: alignment_of_legs(stack),
        below: stack.legs.iter().flat_map(Leg::devices).cloned().collect(),
    };
    volume.steps(names)
}

impl Volume<'_> {
    fn devices(&self) -> impl Iterator<Item = &DeviceId> {
        self.members.iter().chain(self.spares)
    }

    fn steps(&self, names: &Names) -> Vec<Step> {
        vec![self.mark(), self.gather(), self.cut(names)]
    }

    /// `pvcreate`: where data begins on each member.
    fn mark(&self) -> Step {
        let align = format!("{}k", in_kib(self.alignment));
        let mut argv: Vec<String> =
            ["pvcreate", "--yes", "--dataalignment", &align].map(ToOwned::to_owned).to_vec();
        argv.extend(paths(self.devices()));
        let what = format!(
            "mark {} for LVM, data aligned to {}",
            counted(self.devices().count(), "device"),
            self.alignment.exact()
        );
        let marks = |device| signature(device, SIGNATURE, None);
        Step {
            writes_to: self.below.clone(),
            makes: self.devices().map(marks).collect(),
            undo: self
                .devices()
                .map(|device| {
                    let words = ["pvremove", "--yes", device.as_str()];
                    Undo::where_is(marks(device), run(words))
                })
                .collect(),
            ..step(Stage::Arrays, what, run(argv))
        }
    }

    /// `vgcreate`: the size of the extents that volumes are made of.
    fn gather(&self) -> Step {
        let extent = extent_size(self.alignment, self.array.chunk());
        let size = format!("{}k", in_kib(extent));
        let mut argv: Vec<String> =
            ["vgcreate", "--config", NO_BACKUP, "--physicalextentsize", &size, &self.group]
                .map(ToOwned::to_owned)
                .to_vec();
        argv.extend(paths(self.devices()));
        let made = Made::Group { name: self.group.clone() };
        let words = ["vgremove", "--config", NO_BACKUP, "--yes", "--force", &self.group];
        Step {
            writes_to: self.below.clone(),
            makes: vec![made.clone()],
            undo: vec![Undo::where_is(made, run(words))],
            ..step(
                Stage::Arrays,
                format!("make volume group {}, extents of {}", self.group, extent.exact()),
                run(argv),
            )
        }
    }

    /// `lvcreate`: the array itself.
    fn cut(&self, names: &Names) -> Step {
        let array = &self.array;
        let segment = segment(array);
        let mut argv: Vec<String> = ["lvcreate", "--config", NO_BACKUP, "--yes", "--type", segment]
            .map(ToOwned::to_owned)
            .to_vec();
        match array.level() {
            Level::Raid1 => {
                argv.extend(["--mirrors".to_owned(), (array.members() - 1).to_string()]);
            }
            Level::Linear => {}
            _ => argv.extend(["--stripes".to_owned(), array.data_chunks().to_string()]),
        }
        if let Some(chunk) = array.chunk() {
            argv.extend(["--stripesize".to_owned(), format!("{}k", in_kib(chunk))]);
        }
        let words = ["--extents", "100%PVS", "--name", names.volume(), &self.group];
        argv.extend(words.map(ToOwned::to_owned));
        argv.extend(paths(&self.members));
        let path = path(&self.group, names).as_str().to_owned();
        let chunk = array.chunk().map_or(String::new(), |c| format!(", chunk {}", c.exact()));
        let members = counted(self.members.len(), "member");
        Step {
            writes_to: self.below.clone(),
            makes: vec![Made::Volume { path: path.clone() }],
            waits_for: array.level().is_redundant().then(|| Wait::LvmSync {
                group: self.group.clone(),
                volume: names.volume().to_owned(),
            }),
            expect: vec![Expectation::Volume {
                path: path.clone(),
                segment: segment.to_owned(),
                // A linear volume has no stripes, however many devices it is on.
                stripes: if array.level().has_chunk() || array.level().is_redundant() {
                    array.members()
                } else {
                    1
                },
                chunk: array.chunk(),
                aligned_to: self.alignment,
            }],
            ..step(
                Stage::Arrays,
                format!("make LVM {segment} volume {path} of {members}{chunk}"),
                run(argv),
            )
        }
    }
}

/// LVM's name of a level.
fn segment(array: &Array) -> &'static str {
    match array.level() {
        Level::Linear => "linear",
        Level::Raid0 => "striped",
        level => level.name(),
    }
}
