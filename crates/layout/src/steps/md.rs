//! Arrays by mdadm.

use units::Bytes;

use super::words::{counted, in_kib, paths, run, signature, step};
use super::{DeviceFacts, Expectation, Made, Stage, Step, Undo, Wait, device_of_leg};
use crate::array::Level;
use crate::names::Names;
use crate::stack::{ArrayState, DeviceId, Leg, StackSpec};
use crate::whole;

/// As `blkid` calls a member.
pub const SIGNATURE: &str = "linux_raid_member";

/// From here on mdadm keeps a bitmap of what is not in step unless told otherwise. It is said
/// aloud: a bitmap costs writes, and whether there is one must not depend on the version.
const BITMAP_FROM: Bytes = Bytes::gib(100);

/// Where the array of that name is.
pub fn path(name: &str) -> DeviceId {
    DeviceId::new(format!("/dev/md/{name}"))
}

/// What mdadm is to make.
struct Create<'a> {
    name: String,
    level: Level,
    chunk: Option<Bytes>,
    members: Vec<DeviceId>,
    spares: &'a [DeviceId],
    /// Of the smallest member.
    size: Bytes,
    /// The operator's devices under the members.
    below: Vec<DeviceId>,
}

/// A leg: one array, or three for a mirror of two stripes.
pub fn leg(number: usize, leg: &Leg, names: &Names, facts: &DeviceFacts) -> Vec<Step> {
    let Some(level) = leg.level else { return Vec::new() };
    let size = smallest(leg.devices(), facts);
    let name = names.md_leg(number);
    let create = |name, level, members: &[DeviceId]| Create {
        name,
        level,
        chunk: leg.chunk.filter(|_| level != Level::Raid1),
        members: members.to_vec(),
        spares: &[],
        size,
        below: members.to_vec(),
    };
    if level != Level::Raid01 {
        let whole = create(name, level, &leg.members);
        let below = leg.devices().cloned().collect();
        return vec![Create { spares: &leg.spares, below, ..whole }.step()];
    }
    let (left, right) = leg.members.split_at(leg.members.len() / 2);
    let halves = [('a', left), ('b', right)]
        .map(|(half, members)| create(names.md_half(number, half), Level::Raid0, members));
    let over = Create {
        members: halves.iter().map(|half| path(&half.name)).collect(),
        below: leg.members.clone(),
        size: Bytes::new(size.get().saturating_mul(left.len() as u64)),
        ..create(name, Level::Raid1, &[])
    };
    halves.iter().chain([&over]).map(Create::step).collect()
}

/// The array over the legs.
pub fn top(stack: &StackSpec, names: &Names, facts: &DeviceFacts) -> Step {
    let legs = stack.legs.iter().enumerate();
    let members = legs.filter_map(|(number, leg)| device_of_leg(number, leg, names)).collect();
    let top = whole::top_array(stack);
    let below: Vec<DeviceId> = stack.legs.iter().flat_map(Leg::devices).cloned().collect();
    let size = stack.legs.iter().filter_map(|leg| {
        let member = smallest(leg.members.iter(), facts);
        Some(leg.array().ok()?.map_or(member, |array| array.capacity(member)))
    });
    let create = Create {
        name: names.md_top(),
        level: top.map_or(Level::Raid0, |top| top.level()),
        chunk: top.and_then(|top| top.chunk()),
        members,
        spares: &[],
        size: size.min().unwrap_or(Bytes::ZERO),
        below,
    };
    create.step()
}

fn smallest<'a>(devices: impl Iterator<Item = &'a DeviceId>, facts: &DeviceFacts) -> Bytes {
    devices
        .filter_map(|device| facts.get(device))
        .map(|fact| fact.size)
        .min()
        .unwrap_or(Bytes::ZERO)
}

impl Create<'_> {
    fn argv(&self) -> Vec<String> {
        let mut argv: Vec<String> = ["mdadm", "--create"].map(ToOwned::to_owned).to_vec();
        argv.push(path(&self.name).as_str().to_owned());
        // Without --run it asks questions; without --homehost=any the name would have this
        // host's in it.
        argv.extend(["--run", "--homehost=any", "--metadata=1.2"].map(ToOwned::to_owned));
        let level = self.level.name().trim_start_matches("raid");
        argv.push(format!("--level={level}"));
        argv.push(format!("--raid-devices={}", self.members.len()));
        if self.members.len() == 1 {
            argv.push("--force".to_owned());
        }
        if self.level == Level::Raid10 {
            argv.push("--layout=n2".to_owned());
        }
        if let Some(chunk) = self.chunk {
            argv.push(format!("--chunk={}", in_kib(chunk)));
        }
        if self.level.is_redundant() {
            let bitmap = if self.size > BITMAP_FROM { "internal" } else { "none" };
            argv.push(format!("--bitmap={bitmap}"));
        }
        if !self.spares.is_empty() {
            argv.push(format!("--spare-devices={}", self.spares.len()));
        }
        argv.extend(paths(self.members.iter().chain(self.spares)));
        argv
    }

    fn what(&self) -> String {
        let chunk = self.chunk.map_or(String::new(), |c| format!(", chunk {}", c.exact()));
        let members = counted(self.members.len(), "member");
        let spares = match self.spares.len() {
            0 => String::new(),
            n => format!(" and {}", counted(n, "spare")),
        };
        format!("make md {} {} of {members}{chunk}{spares}", self.level, self.name)
    }

    fn step(&self) -> Step {
        let array = path(&self.name).as_str().to_owned();
        let made = Made::Array { path: array.clone() };
        let stop = run(["mdadm", "--stop", &array]);
        let mut undo = vec![Undo::where_is(made.clone(), stop)];
        let all = self.members.iter().chain(self.spares);
        undo.extend(all.clone().map(|device| erase(device, &self.name)));
        let mut makes = vec![made];
        makes.extend(all.map(|device| signature(device, SIGNATURE, Some(&self.name))));
        Step {
            writes_to: self.below.clone(),
            makes,
            undo,
            waits_for: self.level.is_redundant().then(|| Wait::MdSync { path: array.clone() }),
            expect: vec![Expectation::Array {
                path: array,
                level: self.level,
                members: u32::try_from(self.members.len()).unwrap_or(u32::MAX),
                chunk: self.chunk,
                state: ArrayState::Healthy,
            }],
            ..step(Stage::Arrays, self.what(), run(self.argv()))
        }
    }
}

/// Takes the array's mark off a member.
pub fn erase(device: &DeviceId, name: &str) -> Undo {
    let words = ["mdadm", "--zero-superblock", device.as_str()];
    Undo::where_is(signature(device, SIGNATURE, Some(name)), run(words))
}
