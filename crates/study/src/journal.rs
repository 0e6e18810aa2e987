//! The journal: what was done, so that a killed study goes on, and everything it did can be undone.
//!
//! One entry a line, in JSON. An entry is on disk before what it announces is done. A last line
//! that was cut off by a crash counts as not written: what it would have announced was not begun.

use std::collections::BTreeMap;

use layout::{Action, DeviceId, Made, Step, Undo};
use serde::{Deserialize, Serialize};

use crate::marks::Marks;

/// The version of the entries: since 2 they say what was left on each device, since 3 which file a
/// loop device shows, whatever its name, since 4 from which byte of it. Of 5 only the place is another.
pub const VERSION: u32 = 5;
/// The first that is still understood.
const FIRST: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Entry {
    /// The first line.
    Begins(Box<Begins>),
    /// A device as it was found before anything was written to it.
    Device(Box<Found>),
    /// A step is about to be done.
    Doing {
        /// Of which stack of the plan.
        stack: u32,
        /// From 0, in the order of the stack's steps.
        number: u32,
        /// All of it.
        step: Box<Step>,
    },
    /// Devices are about to be written by a run itself.
    Writes {
        /// Which.
        devices: Vec<DeviceId>,
    },
    /// What a setting was before it was changed for the first time.
    Was {
        /// Below /sys.
        path: String,
        /// As it is written to put it back.
        value: String,
    },
    /// A step was done.
    Done {
        /// Of which stack.
        stack: u32,
        /// Which.
        number: u32,
    },
    /// All steps were done, and what was planned was found.
    Built {
        /// Which stack.
        stack: u32,
    },
    /// A stack could not be built, or was not what was planned; it is not tried again.
    Failed {
        /// Which stack.
        stack: u32,
        /// Why.
        why: String,
    },
    /// A run came to its end.
    Measured {
        /// Its place in the plan.
        number: u32,
        /// Its id in the store.
        run: String,
        /// How it ended.
        state: String,
    },
    /// A replaced member was filled.
    Rebuilt {
        /// Of which stack.
        stack: u32,
        /// How long that took.
        #[serde(flatten)]
        of: Rebuild,
    },
    /// One undo of a step was done, or had nothing to do.
    Undone {
        /// Of which stack.
        stack: u32,
        /// Which step.
        number: u32,
        /// Which of its undos, from 0.
        undo: u32,
    },
    /// A setting is again what it was.
    Back {
        /// Below /sys.
        path: String,
    },
    /// A device that was blank is blank again; or somebody else put something on it, and it is
    /// left alone.
    Blank {
        /// Which.
        device: DeviceId,
    },
    /// What a device bears that nothing of ours uses now.
    Ends {
        /// Which.
        device: DeviceId,
        /// Its first and last MiB.
        marks: Marks,
        /// Blocks from which a tool is about to take a signature.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        erased: Vec<u64>,
    },
    /// What a step has put on a device, by the number that it was given when it was made.
    Bears {
        /// Which.
        device: DeviceId,
        /// As `blkid` names it.
        kind: String,
        /// As `blkid` shows it.
        uuid: String,
    },
    /// Nothing is left of it: it came to its end, or was cleaned up.
    Ended {
        /// Whether every run was made.
        complete: bool,
    },
}

impl Entry {
    /// Whether it only tells what was done or taken back. It has to be written then, and is never
    /// the last before something new: that finds no room any more, and is not begun.
    pub fn is_afterwards(&self) -> bool {
        matches!(
            self,
            Self::Done { .. }
                | Self::Undone { .. }
                | Self::Back { .. }
                | Self::Blank { .. }
                | Self::Ends { .. }
                | Self::Bears { .. }
                | Self::Ended { .. }
        )
    }
}

/// The longest line of a device's ends, where no block of them is zero, rounded up.
const ENDS_BYTES: u64 = 16 << 10;
/// A line that says that something was taken back, and by what.
const LINE_BYTES: u64 = 1 << 10;

/// A replaced member that was filled, from the command to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// All of it.
    pub took_ns: u64,
    /// The part of it during which a run was going on.
    #[serde(default)]
    pub measured_ns: u64,
    /// Bytes of the member that were filled, where that is known: arrays that know what is stored
    /// fill only that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

impl Rebuild {
    /// Bytes per second, where they are known.
    pub fn rate(&self) -> Option<f64> {
        let seconds = self.took_ns as f64 / 1e9;
        self.bytes.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 / seconds)
    }
}

/// What a study is, for whoever finds its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begins {
    /// [`VERSION`].
    pub version: u32,
    /// The same for all of its runs, and in all names that it gives: 8 hex digits.
    pub key: String,
    /// The study's name.
    pub name: String,
    /// The file, absolute.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The text of each of its suites, in their order; journals of before have none.
    #[serde(default)]
    pub suites: Vec<String>,
    /// Where all order comes from.
    pub seed: u64,
    /// Wall clock, ns since 1970.
    pub started_unix_ns: i64,
    /// Version of the program.
    pub program: String,
}

/// A device before anything was written to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// As the file names it.
    pub device: DeviceId,
    /// By what it is known again, also after a restart.
    pub identity: Identity,
    /// Its first and last MiB were all zero.
    pub blank: bool,
    /// Which refusals the operator overrode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overridden: Vec<String>,
}

/// By what a device is known again. Names and numbers may be another device's after a restart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Bytes on it.
    pub size: u64,
    /// What the drive says it is, where it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// World-wide name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wwid: Option<String>,
    /// The file of a loop device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// That file's inode: another of the same name has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inode: Option<u64>,
    /// The device that the file lies on, as major and minor number, good until the next restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_on: Option<String>,
    /// The byte of that file with which the device begins; how far it goes is told by its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Major and minor number: all there is for some devices.
    pub number: String,
    /// When the machine was started: the number is good for no longer.
    pub boot: String,
}

impl Identity {
    /// Why the device found now is not this one; `None` if it is.
    pub fn differs(&self, now: &Self) -> Option<String> {
        let option = |of: &Option<String>| of.clone().unwrap_or_else(|| "none".to_owned());
        let pairs = [
            ("size", self.size.to_string(), now.size.to_string()),
            ("serial", option(&self.serial), option(&now.serial)),
            ("world-wide name", option(&self.wwid), option(&now.wwid)),
            ("file", option(&self.file), option(&now.file)),
        ];
        for (what, then, now) in pairs {
            if then != now {
                return Some(format!("its {what} is {now}, and was {then}"));
            }
        }
        // Journals of before do not say which file it was.
        if self.inode.is_some() && self.inode != now.inode
            || self.boot == now.boot && self.file_on.is_some() && self.file_on != now.file_on
        {
            let file = option(&self.file);
            return Some(format!("its file {file} is another file of that name now"));
        }
        if let (Some(then), now) = (self.offset, now.offset.unwrap_or(0))
            && then != now
        {
            let file = option(&self.file);
            return Some(format!("it begins at byte {now} of {file}, and began at byte {then}"));
        }
        let known = self.serial.is_some() || self.wwid.is_some() || self.file.is_some();
        if !known && self.boot != now.boot {
            return Some(
                "the machine was restarted, and it has neither serial nor world-wide name to be \
                 known by"
                    .to_owned(),
            );
        }
        if self.boot == now.boot && self.number != now.number {
            return Some(format!("its number is {}, and was {}", now.number, self.number));
        }
        None
    }
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Not one of ours.
    #[error("line {line} is no entry of a journal: {why}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// It has no bytes.
    #[error("it is empty, so nobody knows which study it was of, or what that left")]
    Empty,
    /// The first line is cut off or another.
    #[error("it does not say which study it is of")]
    NoBeginning,
    /// Of a later program.
    #[error("it is of version {0}, and this program knows {VERSION}")]
    Version(u32),
}

/// A step that was begun and is not undone.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// Of which stack.
    pub stack: u32,
    /// Which step.
    pub number: u32,
    /// All of it.
    pub step: Step,
    /// It came to its end.
    pub done: bool,
    /// Which of its undos are done.
    undone: Vec<u32>,
}

/// What is to be undone next.
#[derive(Clone, Debug, PartialEq)]
pub struct ToUndo<'a> {
    /// Of which stack.
    pub stack: u32,
    /// Which step.
    pub number: u32,
    /// Which of its undos.
    pub undo: u32,
    /// What to do.
    pub what: &'a Undo,
    /// The step itself.
    pub step: &'a Step,
    /// Whether the step came to its end: if not, there may be nothing to undo.
    pub done: bool,
}

/// How a study stands, from its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// What it is.
    pub begins: Begins,
    /// Its devices, as they were found.
    pub devices: Vec<Found>,
    open: Vec<Open>,
    settings: BTreeMap<String, String>,
    /// Runs that came to their end: place in the plan, id and state.
    pub measured: BTreeMap<u32, (String, String)>,
    /// Stacks that could not be built, and why.
    pub failed: BTreeMap<u32, String>,
    /// Devices that may have been written, and were not made blank since.
    written: Vec<DeviceId>,
    /// What each bears that nothing uses, and blocks from which a signature may be gone.
    ends: BTreeMap<DeviceId, (Marks, Vec<u64>)>,
    /// Numbers of what was put on a device, by its kind.
    bears: BTreeMap<(DeviceId, String), String>,
    /// Members that were filled, by stack.
    pub rebuilt: BTreeMap<u32, Vec<Rebuild>>,
    /// Nothing is left of it; whether every run was made.
    pub ended: Option<bool>,
}

impl State {
    /// At the first line.
    pub fn new(begins: Begins) -> Self {
        Self {
            begins,
            devices: Vec::new(),
            open: Vec::new(),
            settings: BTreeMap::new(),
            measured: BTreeMap::new(),
            failed: BTreeMap::new(),
            written: Vec::new(),
            ends: BTreeMap::new(),
            bears: BTreeMap::new(),
            rebuilt: BTreeMap::new(),
            ended: None,
        }
    }

    /// From the text of a journal; with how many bytes of it count. The rest was cut off by a
    /// crash, and has to go before anything is added.
    pub fn read(text: &str) -> Result<(Self, usize), JournalError> {
        if text.is_empty() {
            return Err(JournalError::Empty);
        }
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let mut state: Option<Self> = None;
        for (at, line) in text.get(..whole).unwrap_or_default().lines().enumerate() {
            let entry: Entry = serde_json::from_str(line)
                .map_err(|error| JournalError::Line { line: at + 1, why: error.to_string() })?;
            match (&mut state, entry) {
                (None, Entry::Begins(begins)) if (FIRST..=VERSION).contains(&begins.version) => {
                    state = Some(Self::new(*begins));
                }
                (None, Entry::Begins(begins)) => return Err(JournalError::Version(begins.version)),
                (None, _) => return Err(JournalError::NoBeginning),
                (Some(state), entry) => state.apply(&entry),
            }
        }
        state.map(|state| (state, whole)).ok_or(JournalError::NoBeginning)
    }

    /// What a line changes.
    pub fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Begins(_) => {}
            Entry::Device(found) => {
                if self.found(&found.device).is_none() {
                    self.devices.push((**found).clone());
                }
            }
            Entry::Doing { stack, number, step } => {
                self.written.extend(step.writes_to.iter().cloned());
                // What is made anew has another number, which is not known before it is noted.
                for made in &step.makes {
                    if let Made::Signature { device, kind, .. } = made {
                        self.bears.remove(&(device.clone(), kind.clone()));
                    }
                }
                let (stack, number, step) = (*stack, *number, (**step).clone());
                self.open.push(Open { stack, number, step, done: false, undone: Vec::new() });
            }
            Entry::Was { path, value } => {
                self.settings.entry(path.clone()).or_insert_with(|| value.clone());
            }
            Entry::Done { stack, number } => {
                if let Some(open) = self.open_mut(*stack, *number) {
                    open.done = true;
                }
            }
            Entry::Undone { stack, number, undo } => {
                if let Some(open) = self.open_mut(*stack, *number) {
                    open.undone.push(*undo);
                }
                self.open.retain(|open| open.undone.len() < open.step.undo.len());
            }
            Entry::Back { path } => drop(self.settings.remove(path)),
            Entry::Measured { number, run, state } => {
                self.measured.insert(*number, (run.clone(), state.clone()));
            }
            Entry::Failed { stack, why } => drop(self.failed.insert(*stack, why.clone())),
            Entry::Rebuilt { stack, of } => self.rebuilt.entry(*stack).or_default().push(*of),
            Entry::Writes { devices } => self.written.extend(devices.iter().cloned()),
            Entry::Blank { device } => {
                self.written.retain(|written| written != device);
                self.ends.remove(device);
            }
            Entry::Ends { device, marks, erased } => {
                self.ends.insert(device.clone(), (marks.clone(), erased.clone()));
            }
            Entry::Bears { device, kind, uuid } => {
                self.bears.insert((device.clone(), kind.clone()), uuid.clone());
            }
            Entry::Built { .. } => {}
            Entry::Ended { complete } => self.ended = Some(*complete),
        }
    }

    /// The newest of that number: a stack may be built again.
    fn open_mut(&mut self, stack: u32, number: u32) -> Option<&mut Open> {
        self.open.iter_mut().rev().find(|open| open.stack == stack && open.number == number)
    }

    /// A device as it was found.
    pub fn found(&self, device: &DeviceId) -> Option<&Found> {
        self.devices.iter().find(|found| found.device == *device)
    }

    /// What is to be undone next: the newest step first, of a step its undos in their order.
    pub fn next_undo(&self) -> Option<ToUndo<'_>> {
        self.undos().next()
    }

    /// All that is to be undone, in order.
    pub fn undos(&self) -> impl Iterator<Item = ToUndo<'_>> {
        self.open.iter().rev().flat_map(|open| {
            let undos = open.step.undo.iter().zip(0u32..);
            undos.filter(|(_, at)| !open.undone.contains(at)).map(|(what, undo)| ToUndo {
                stack: open.stack,
                number: open.number,
                undo,
                what,
                step: &open.step,
                done: open.done,
            })
        })
    }

    /// Settings that are not what they were, path and what it was, in the order in which they have to
    /// be put back: a scheduler that changes sets the queue's depth, and the depth what is its own.
    pub fn settings(&self) -> impl Iterator<Item = (&String, &String)> {
        let mut all: Vec<(&String, &String)> = self.settings.iter().collect();
        all.sort_by_key(|(path, _)| match path {
            path if path.ends_with("/scheduler") => 0,
            path if path.contains("/iosched/") => 2,
            _ => 1,
        });
        all.into_iter()
    }

    /// The same, to have while they are put back.
    pub fn to_put_back(&self) -> Vec<(String, String)> {
        self.settings().map(|(path, value)| (path.clone(), value.clone())).collect()
    }

    /// Bytes of lines that taking back everything adds at most, if each goes well at once, also
    /// what an entry announces that is not applied yet.
    pub fn bytes_to_take_back(&self, next: &Entry) -> u64 {
        let devices = self.devices.len() as u64;
        let of_undo = |undo: &Undo| {
            let words = match &undo.action {
                Action::Run { argv } => argv.as_slice(),
                _ => &[],
            };
            let is_named = |found: &&Found| words.iter().any(|word| word == found.device.as_str());
            let named = self.devices.iter().filter(is_named).count() as u64;
            let members = if matches!(undo.only_if, Some(Made::Pool { .. })) { devices } else { 0 };
            // What is named before and after, and the members of a pool when it is taken apart.
            (2 * named + members) * ENDS_BYTES + LINE_BYTES
        };
        let begun = match next {
            Entry::Doing { step, .. } => step.undo.as_slice(),
            _ => &[],
        };
        let undos = self.undos().map(|undo| undo.what).chain(begun).map(of_undo).sum::<u64>();
        let settings = self.settings.len() as u64 + 1;
        // What a step itself notes of each device before and after it, and that it is blank again.
        undos + 2 * devices * ENDS_BYTES + (devices + settings + 4) * LINE_BYTES
    }

    /// What a setting was before it was changed.
    pub fn setting(&self, path: &str) -> Option<&String> {
        self.settings.get(path)
    }

    /// Devices that were blank, may have been written, and are not blank again.
    pub fn to_blank(&self) -> Vec<&Found> {
        let blank = |found: &&Found| found.blank && self.written.contains(&found.device);
        self.devices.iter().filter(blank).collect()
    }

    /// Whether anything was ever written to a device since it was found, or made blank.
    pub fn has_written(&self, device: &DeviceId) -> bool {
        self.written.contains(device)
    }

    /// Whether a device that nothing of ours uses bears what the study left there, or what it bore
    /// when it began; `None` where the journal does not say.
    pub fn is_as_left(&self, device: &DeviceId, now: &Marks) -> Option<bool> {
        if now.is_blank() {
            return Some(true);
        }
        match self.ends.get(device) {
            Some((marks, erased)) => Some(marks.may_become(now, erased)),
            None if self.found(device)?.blank => Some(false),
            None => None,
        }
    }

    /// The number of what the study put on a device, where it was noted.
    pub fn uuid(&self, device: &DeviceId, kind: &str) -> Option<&String> {
        self.bears.get(&(device.clone(), kind.to_owned()))
    }

    /// Whether nothing was done to any device yet.
    pub fn is_untouched(&self) -> bool {
        self.written.is_empty()
            && self.open.is_empty()
            && self.settings.is_empty()
            && self.measured.is_empty()
            && self.failed.is_empty()
    }

    /// Whether nothing is left on the machine.
    pub fn is_clean(&self) -> bool {
        self.undos().next().is_none() && self.settings.is_empty() && self.to_blank().is_empty()
    }

    /// Everything that names of ours on the machine may be in, for messages.
    pub fn made(&self) -> impl Iterator<Item = &Step> {
        self.open.iter().map(|open| &open.step)
    }
}

/// Whether an action only puts a setting back.
pub fn is_put_back(action: &Action) -> bool {
    matches!(action, Action::PutBack { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use layout::Stage;

    fn begins() -> Begins {
        Begins {
            suites: Vec::new(),
            version: VERSION,
            key: "0123abcd".into(),
            name: "s".into(),
            file: "/s.toml".into(),
            text: "x\n\"y\"".into(),
            seed: 7,
            started_unix_ns: 5,
            program: "0".into(),
        }
    }

    fn run(word: &str) -> Action {
        Action::Run { argv: vec![word.into()] }
    }

    fn step(name: &str, undos: &[&str]) -> Box<Step> {
        Box::new(Step {
            what: name.into(),
            stage: Stage::Arrays,
            action: run(name),
            writes_to: vec![DeviceId::new("/dev/a")],
            makes: vec![],
            undo: undos.iter().map(|undo| Undo { action: run(undo), only_if: None }).collect(),
            waits_for: None,
            expect: vec![],
        })
    }

    fn found() -> Found {
        Found {
            device: DeviceId::new("/dev/a"),
            identity: Identity::default(),
            blank: true,
            overridden: vec![],
        }
    }

    fn whole() -> Vec<Entry> {
        vec![
            Entry::Begins(Box::new(begins())),
            Entry::Device(Box::new(found())),
            Entry::Was { path: "/sys/x".into(), value: "none".into() },
            Entry::Doing { stack: 1, number: 0, step: step("make", &["stop", "erase"]) },
            Entry::Done { stack: 1, number: 0 },
            Entry::Doing { stack: 1, number: 1, step: step("mount", &["umount"]) },
            Entry::Done { stack: 1, number: 1 },
            Entry::Built { stack: 1 },
            Entry::Measured { number: 1, run: "r1".into(), state: "complete".into() },
            Entry::Undone { stack: 1, number: 1, undo: 0 },
            Entry::Undone { stack: 1, number: 0, undo: 0 },
            Entry::Undone { stack: 1, number: 0, undo: 1 },
            Entry::Back { path: "/sys/x".into() },
            Entry::Blank { device: DeviceId::new("/dev/a") },
            Entry::Ended { complete: true },
        ]
    }

    fn text(entries: &[Entry]) -> String {
        entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect()
    }

    fn undos(state: &State) -> Vec<String> {
        let word = |action: &Action| match action {
            Action::Run { argv } => argv[0].clone(),
            other => format!("{other:?}"),
        };
        state.undos().map(|undo| word(&undo.what.action)).collect()
    }

    #[test]
    fn a_journal_cut_anywhere_says_what_is_left_to_undo() {
        let entries = whole();
        let wanted: [&[&str]; 15] = [
            &[],
            &[],
            &[],
            &["stop", "erase"],
            &["stop", "erase"],
            &["umount", "stop", "erase"],
            &["umount", "stop", "erase"],
            &["umount", "stop", "erase"],
            &["umount", "stop", "erase"],
            &["stop", "erase"],
            &["erase"],
            &[],
            &[],
            &[],
            &[],
        ];
        for lines in 1..=entries.len() {
            let (state, bytes) = State::read(&text(&entries[..lines])).unwrap();
            assert_eq!(undos(&state), wanted[lines - 1], "after {lines} lines");
            let clean = lines <= 2 || lines >= 14;
            assert_eq!(state.is_clean(), clean, "after {lines} lines");
            assert_eq!(bytes, text(&entries[..lines]).len());
        }
        // Cut in the middle of a line: as if the line were not there.
        let all = text(&entries);
        let first = text(&entries[..1]).len();
        for cut in (first..all.len()).filter(|at| all.is_char_boundary(*at)) {
            let (state, bytes) = State::read(&all[..cut]).unwrap();
            let lines = all[..cut].matches('\n').count();
            assert_eq!(state, State::read(&text(&entries[..lines])).unwrap().0, "cut at {cut}");
            assert_eq!(bytes, text(&entries[..lines]).len());
        }
    }

    #[test]
    fn until_the_first_step_nothing_was_touched() {
        let entries = whole();
        for lines in 1..=entries.len() {
            let (state, _) = State::read(&text(&entries[..lines])).unwrap();
            // Afterwards the run that was made tells that it was.
            assert_eq!(state.is_untouched(), lines <= 2, "after {lines} lines");
        }
    }

    #[test]
    fn a_device_that_is_written_again_is_not_blank() {
        let mut state = State::new(begins());
        state.apply(&Entry::Device(Box::new(found())));
        assert!(state.to_blank().is_empty(), "nothing was written yet");
        state.apply(&Entry::Writes { devices: vec![DeviceId::new("/dev/a")] });
        assert_eq!(state.to_blank().len(), 1);
        state.apply(&Entry::Blank { device: DeviceId::new("/dev/a") });
        assert!(state.to_blank().is_empty());
        state.apply(&Entry::Doing { stack: 2, number: 0, step: step("mkfs", &[]) });
        assert_eq!(state.to_blank().len(), 1);
    }

    #[test]
    fn the_first_value_of_a_setting_is_the_one_to_put_back() {
        let mut state = State::new(begins());
        for value in ["none", "bfq"] {
            state.apply(&Entry::Was { path: "/sys/x".into(), value: value.into() });
        }
        assert_eq!(state.setting("/sys/x").map(String::as_str), Some("none"));
        state.apply(&Entry::Back { path: "/sys/x".into() });
        assert!(state.setting("/sys/x").is_none());
    }

    #[test]
    fn a_scheduler_is_put_back_before_what_it_resets() {
        let mut state = State::new(begins());
        let files = ["iosched/read_expire", "nr_requests", "read_ahead_kb", "scheduler"];
        for file in files {
            let path = format!("/sys/block/sda/queue/{file}");
            state.apply(&Entry::Was { path, value: "1".into() });
        }
        let order: Vec<&str> =
            state.settings().map(|(path, _)| &path["/sys/block/sda/queue/".len()..]).collect();
        assert_eq!(order, ["scheduler", "nr_requests", "read_ahead_kb", "iosched/read_expire"]);
    }

    #[test]
    fn there_is_room_for_taking_everything_back_before_it_is_begun() {
        let mut state = State::new(begins());
        state.apply(&Entry::Device(Box::new(found())));
        state.apply(&Entry::Was { path: "/sys/x".into(), value: "none".into() });
        let mut mkfs = step("mkfs", &["umount"]);
        let argv = ["wipefs", "--all", "/dev/a"].map(str::to_owned).to_vec();
        mkfs.undo.push(Undo { action: Action::Run { argv }, only_if: None });
        let doing = Entry::Doing { stack: 1, number: 0, step: mkfs };
        // The longest that a device can bear: no block of its ends is zero.
        let device = DeviceId::new("/dev/a");
        let blocks = (0..256).chain(u64::from(u32::MAX) - 256..u64::from(u32::MAX));
        let marks = Marks::new(blocks.map(|block| (block, u64::MAX)).collect());
        let ends = Entry::Ends { device: device.clone(), marks, erased: vec![16; 8] };
        let undone = |undo| Entry::Undone { stack: 1, number: 0, undo };
        let lines = [
            ends.clone(),
            Entry::Done { stack: 1, number: 0 },
            undone(0),
            ends.clone(),
            ends,
            undone(1),
            Entry::Back { path: "/sys/x".into() },
            Entry::Blank { device },
            Entry::Ended { complete: false },
        ];
        assert!(lines.iter().all(Entry::is_afterwards) && !doing.is_afterwards());
        let least = text(&lines).len() as u64;
        let room = state.bytes_to_take_back(&doing);
        assert!(room >= least && room < 4 * least, "{room} for {least}");
        state.apply(&doing);
        assert_eq!(state.bytes_to_take_back(&lines[1]), room);
    }

    #[test]
    fn what_is_no_journal_is_refused() {
        assert!(matches!(State::read(""), Err(JournalError::Empty)));
        assert!(matches!(State::read("{\"is\":\"ended\""), Err(JournalError::NoBeginning)));
        assert!(matches!(State::read("hello\n"), Err(JournalError::Line { line: 1, .. })));
        let ended = text(&[Entry::Ended { complete: true }]);
        assert!(matches!(State::read(&ended), Err(JournalError::NoBeginning)));
        let later = Begins { version: 9, ..begins() };
        let later = text(&[Entry::Begins(Box::new(later))]);
        assert!(matches!(State::read(&later), Err(JournalError::Version(9))));
    }

    #[test]
    fn what_was_left_on_a_device_is_told_from_anything_else() {
        let marks = |sum| Marks::new([(0, sum)].into());
        let device = DeviceId::new("/dev/a");
        let mut state = State::new(begins());
        state.apply(&Entry::Device(Box::new(found())));
        assert_eq!(state.is_as_left(&device, &Marks::default()), Some(true));
        assert_eq!(state.is_as_left(&device, &marks(1)), Some(false), "it was blank");
        let ends = |sum, erased: &[u64]| Entry::Ends {
            device: device.clone(),
            marks: marks(sum),
            erased: erased.to_vec(),
        };
        state.apply(&ends(1, &[]));
        assert_eq!(state.is_as_left(&device, &marks(1)), Some(true));
        assert_eq!(state.is_as_left(&device, &marks(2)), Some(false));
        state.apply(&ends(1, &[0]));
        assert_eq!(state.is_as_left(&device, &marks(2)), Some(true), "a signature was taken off");
        state.apply(&Entry::Blank { device: device.clone() });
        assert_eq!(state.is_as_left(&device, &marks(1)), Some(false), "it is blank again");
        let bears = Entry::Bears { device, kind: "xfs".into(), uuid: "77".into() };
        let line = serde_json::to_string(&bears).unwrap();
        state.apply(&serde_json::from_str(&line).unwrap());
        assert_eq!(state.uuid(&DeviceId::new("/dev/a"), "xfs").map(String::as_str), Some("77"));
        assert_eq!(state.uuid(&DeviceId::new("/dev/a"), "ext4"), None);
        // Killed while it makes the next one, it must know that again.
        let (device, kind) = (DeviceId::new("/dev/a"), "xfs".to_owned());
        let makes = vec![Made::Signature { device: device.clone(), kind, name: None }];
        let step = Box::new(Step { makes, ..*step("mkfs", &[]) });
        state.apply(&Entry::Doing { stack: 2, number: 0, step });
        assert_eq!(state.uuid(&device, "xfs"), None);
    }

    #[test]
    fn journals_of_earlier_programs_are_understood() {
        let first = text(&[Entry::Begins(Box::new(Begins { version: 1, ..begins() }))]);
        assert!(State::read(&first).is_ok());
        // Of what is not blank they do not say what it bore.
        let (mut state, _) = State::read(&first).unwrap();
        state.apply(&Entry::Device(Box::new(Found { blank: false, ..found() })));
        let now = Marks::new([(0, 1)].into());
        assert_eq!(state.is_as_left(&DeviceId::new("/dev/a"), &now), None);
    }

    #[test]
    fn a_device_is_known_by_more_than_its_name() {
        let then = Identity {
            size: 8,
            serial: Some("S1".into()),
            number: "8:0".into(),
            boot: "b1".into(),
            ..Identity::default()
        };
        assert_eq!(then.differs(&then), None);
        let moved = Identity { number: "8:16".into(), boot: "b2".into(), ..then.clone() };
        assert_eq!(then.differs(&moved), None, "another name after a restart is the same drive");
        let other = Identity { serial: Some("S2".into()), ..then.clone() };
        assert!(then.differs(&other).unwrap().contains("serial is S2"));
        let bare = Identity { serial: None, ..then.clone() };
        assert_eq!(bare.differs(&bare), None);
        let restarted = Identity { boot: "b2".into(), ..bare.clone() };
        assert!(bare.differs(&restarted).unwrap().contains("restarted"));
        // Journals of before do not say by which inode the file of a loop device is known.
        let of_file = |inode, file_on: Option<&str>| Identity {
            file: Some("/a.img".into()),
            inode,
            file_on: file_on.map(Into::into),
            ..bare.clone()
        };
        let now = of_file(Some(5), Some("254:0"));
        let old = r#"{"size":8,"file":"/a.img","number":"8:0","boot":"b1"}"#;
        let old: Identity = serde_json::from_str(old).unwrap();
        assert_eq!(old.differs(&now), None);
        assert_eq!(now.differs(&now), None);
        for other in [of_file(Some(6), Some("254:0")), of_file(None, None)] {
            assert!(now.differs(&other).unwrap().contains("another file of that name"));
        }
        let part = |offset| Identity { offset, ..now.clone() };
        assert!(part(Some(0)).differs(&part(Some(4096))).unwrap().contains("byte 4096 of /a.img"));
        assert_eq!(part(Some(4096)).differs(&part(Some(4096))), None);
        assert_eq!(part(None).differs(&part(Some(4096))), None, "journals of before do not say");
        let moved = of_file(Some(5), Some("254:16"));
        assert!(now.differs(&moved).is_some());
        let restarted_too = Identity { boot: "b2".into(), ..moved };
        assert_eq!(now.differs(&restarted_too), None, "disks are numbered anew at a restart");
        let swapped = Identity { number: "8:16".into(), ..bare.clone() };
        assert!(bare.differs(&swapped).unwrap().contains("number"));
    }
}
