//! Steps and commands put together.

use units::Bytes;

use super::{Action, Made, Stage, Step, Undo};
use crate::stack::DeviceId;

/// A command of these words.
pub fn run<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Action {
    Action::Run { argv: words.into_iter().map(|word| word.as_ref().to_owned()).collect() }
}

/// A step with nothing but what it does.
pub fn step(stage: Stage, what: String, action: Action) -> Step {
    Step {
        what,
        stage,
        action,
        writes_to: Vec::new(),
        makes: Vec::new(),
        undo: Vec::new(),
        waits_for: None,
        expect: Vec::new(),
    }
}

impl Undo {
    /// Done whatever is there.
    pub fn always(action: Action) -> Self {
        Self { action, only_if: None }
    }

    /// Done where that is there.
    pub fn where_is(made: Made, action: Action) -> Self {
        Self { action, only_if: Some(made) }
    }
}

/// Signature of a kind on a device, with the name that it bears.
pub fn signature(device: &DeviceId, kind: &str, name: Option<&str>) -> Made {
    Made::Signature {
        device: device.clone(),
        kind: kind.to_owned(),
        name: name.map(ToOwned::to_owned),
    }
}

/// Erases what we wrote of that kind, nothing else.
pub fn wipe(device: &DeviceId, kind: &str, name: Option<&str>) -> Undo {
    // By its features `blkid` may take one of these for another, and `wipefs` looks with its eyes.
    let types = match kind {
        "ext2" | "ext3" | "ext4" => "ext2,ext3,ext4,ext4dev",
        kind => kind,
    };
    let words = ["wipefs", "--all", "--quiet", "--types", types, device.as_str()];
    Undo::where_is(signature(device, kind, name), run(words))
}

/// Paths as words.
pub fn paths<'a>(devices: impl IntoIterator<Item = &'a DeviceId>) -> Vec<String> {
    devices.into_iter().map(|device| device.as_str().to_owned()).collect()
}

/// `4 members`, `1 member`.
pub fn counted(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

/// In KiB, as most tools want sizes. Ours are multiples of it.
pub fn in_kib(size: Bytes) -> String {
    (size.get() >> 10).to_string()
}
