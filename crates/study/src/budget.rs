//! What a study costs: stacks, builds, hours.

use layout::{Leg, Level, Maker, Pace, StackSpec, capacity};
use units::{Bytes, Nanos};

use crate::design::Study;
use crate::stacks::Stack;
use crate::text::On;

/// What is taken for granted where nobody has measured yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// Bytes per second at which a member comes into step.
    pub sync: Bytes,
    /// For the tools that build and tear down one stack.
    pub tools: Nanos,
}

impl Default for Assumed {
    fn default() -> Self {
        Self { sync: Bytes::new(150_000_000), tools: Nanos::secs(10) }
    }
}

/// What a suite takes on one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuiteTime {
    /// At least.
    pub least: Nanos,
    /// At most, where its rounds have an end.
    pub most: Option<Nanos>,
    /// Bytes that it writes at least.
    pub written: Bytes,
}

/// What a study costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Stacks that differ.
    pub different: usize,
    /// Stacks that are built and torn down, repeats counted.
    pub builds: usize,
    /// Runs that are stored.
    pub runs: u32,
    /// For building, arrays coming into step included.
    pub building: Nanos,
    /// The part of it in which arrays come into step.
    pub in_step: Nanos,
    /// All together at least.
    pub least: Nanos,
    /// All together at most, where suites have an end.
    pub most: Option<Nanos>,
    /// Bytes that the suites write at least.
    pub written: Bytes,
}

impl Study {
    /// What it costs.
    ///
    /// * `suites`: of each suite in the file's order.
    /// * `size`: bytes on a device, where that is known.
    pub fn budget(
        &self,
        suites: &[SuiteTime],
        size: impl Fn(&str) -> Option<Bytes>,
        assumed: Assumed,
    ) -> Budget {
        let built = || {
            self.stacks.iter().filter_map(|one| match &one.stack {
                Stack::Plain(_) => None,
                Stack::Built(spec) => Some(spec),
            })
        };
        let in_step = built().fold(Nanos::ZERO, |sum, spec| sum + in_step(spec, &size, assumed));
        let building = built().fold(in_step, |sum, _| sum + assumed.tools);
        let times = u64::try_from(self.stacks.len()).unwrap_or(u64::MAX);
        let all = |of: &dyn Fn(&SuiteTime) -> u64| {
            let once = suites.iter().fold(0u64, |sum, suite| sum.saturating_add(of(suite)));
            once.saturating_mul(times)
        };
        let least = Nanos::new(all(&|suite| suite.least.get()));
        let ends = suites.iter().all(|suite| suite.most.is_some());
        let most = Nanos::new(all(&|suite| suite.most.unwrap_or(suite.least).get()));
        Budget {
            different: self.different(),
            builds: built().count(),
            runs: self.runs(),
            building,
            in_step,
            least: building + least,
            most: ends.then_some(building + most),
            written: Bytes::new(all(&|suite| suite.written.get())),
        }
    }
}

/// A stack that cannot hold what the study's `size` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// Its place in the plan.
    pub stack: u32,
    /// Its levels.
    pub title: String,
    /// What it can hold at most.
    pub holds: Bytes,
    /// What was asked for.
    pub wanted: Bytes,
}

impl Study {
    /// The first stack that can never hold as much as the study's `size`, where it has one.
    ///
    /// * `size`: bytes on a device, where that is known.
    ///
    /// A file system needs some room itself: what is not found here may still not fit.
    pub fn too_small(&self, size: impl Fn(&str) -> Option<Bytes>) -> Option<TooSmall> {
        let wanted = self.measure.size?;
        // What is linear, or spreads by itself, uses more of the larger members than of the smallest.
        let holds = |spec: &StackSpec| {
            let members = spec.legs.iter().flat_map(|leg| &leg.members);
            let largest = members.filter_map(|device| size(device.as_str())).max()?;
            Some(capacity::of_stack(spec, largest))
        };
        let on = |place: fn(On) -> bool| self.measure.suites.iter().any(|suite| place(suite.on));
        self.stacks.iter().find_map(|one| {
            let Stack::Built(spec) = &one.stack else { return None };
            let wal = spec.wal.as_deref();
            let data = (on(|on| on != On::Wal) || wal.is_none()).then_some(&**spec);
            let log = wal.filter(|_| on(|on| on != On::Data));
            let places = data.into_iter().chain(log);
            let least = places.filter_map(holds).min().filter(|holds| *holds < wanted)?;
            Some(TooSmall { stack: one.number, title: one.title(), holds: least, wanted })
        })
    }
}

/// How long the arrays of a stack take to come into step: members are filled side by side, legs one
/// after the other, and a mirror of them when they are there.
fn in_step(spec: &StackSpec, size: &impl Fn(&str) -> Option<Bytes>, assumed: Assumed) -> Nanos {
    let pace = Pace { member: Some(assumed.sync), ..Pace::default() };
    let smallest = |leg: &Leg| leg.members.iter().filter_map(|device| size(device.as_str())).min();
    let of_leg = |leg: &Leg| {
        let syncs = matches!(leg.maker, Maker::Md | Maker::Lvm);
        let array = leg.array().ok().flatten().filter(|_| syncs)?;
        Some(array.first_sync(smallest(leg)?, &pace)?.idle)
    };
    let legs = spec.legs.iter().filter_map(of_leg).fold(Nanos::ZERO, |sum, one| sum + one);
    let mirror = || {
        spec.stripe.as_ref().filter(|stripe| stripe.level == Level::Raid1)?;
        let first = spec.legs.first()?;
        let size = capacity::of_leg(spec, spec.legs.iter().filter_map(smallest).min()?);
        Some(pace.mirror(first.array().ok().flatten(), size).idle)
    };
    legs + mirror().unwrap_or(Nanos::ZERO)
}

impl Budget {
    /// For people.
    ///
    /// * `time`: how a time is written.
    pub fn sentences(&self, time: impl Fn(Nanos) -> String) -> Vec<String> {
        let several = |n: usize, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        let mut said = vec![format!(
            "{} that differ, {}, {} in the store.",
            several(self.different, "stack"),
            several(self.builds, "build"),
            several(self.runs as usize, "run")
        )];
        let span = match self.most {
            Some(most) if most > self.least => {
                format!("{} at least, {} at most", time(self.least), time(most))
            }
            _ => format!("{} at least", time(self.least)),
        };
        let building = match self.builds {
            0 => String::new(),
            _ => {
                let arrays = match self.in_step {
                    Nanos::ZERO => "",
                    _ => " and arrays come into step at 150 MB/s a member",
                };
                let building = time(self.building);
                format!(
                    ", of which building takes {building} if the tools take 10 s a stack{arrays}"
                )
            }
        };
        said.push(format!("Takes {span}{building}; writing the files comes on top."));
        if self.written > Bytes::ZERO {
            said.push(format!("The suites write {} at least.", self.written));
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    #[test]
    fn stacks_builds_and_hours_are_counted() {
        let text = "[devices]\npool = [\"/dev/a\", \"/dev/b\", \"/dev/c\"]\n[stack]\n\
                    level = [\"raid5\", \"raid0\"]\nmembers = 3\nfile_system = [\"xfs\", \"ext4\"]\n\
                    [measure]\nsuites = [\"x\", \"y\"]";
        let study = parse(text, "s.toml").unwrap().plan(1).unwrap();
        let suite = SuiteTime {
            least: Nanos::secs(60),
            most: Some(Nanos::secs(90)),
            written: Bytes::gib(1),
        };
        let size = |_: &str| Some(Bytes::new(15_000_000_000));
        let budget = study.budget(&[suite, suite], size, Assumed::default());
        assert_eq!((budget.different, budget.builds, budget.runs), (3, 4, 8));
        // Base, two changes, base: three of the four are raid5 and take 100 s to come into step.
        assert_eq!(budget.building, Nanos::secs(4 * 10 + 3 * 100));
        assert_eq!(budget.least, Nanos::secs(340 + 4 * 120));
        assert_eq!(budget.most, Some(Nanos::secs(340 + 4 * 180)));
        assert_eq!(budget.written, Bytes::gib(8));
        let said = budget.sentences(|time| time.exact());
        assert_eq!(said[0], "3 stacks that differ, 4 builds, 8 runs in the store.");
        assert!(said[1].contains("10 s a stack and arrays come into step"), "{}", said[1]);
    }

    #[test]
    fn a_size_that_no_stack_can_hold_is_found() {
        let found = |stack: &str, on: &str, gib: u64| {
            let text = format!(
                "[devices]\npool = [\"/dev/a\", \"/dev/b\"]\nwal = [\"/dev/log\"]\n[stack]\n{stack}\n\
                 [measure]\nsuites = [{{ suite = \"x\", on = {on} }}]\n\
                 size = \"{gib}GiB\""
            );
            let study = parse(&text, "s.toml").unwrap().plan(1).unwrap();
            let size = |device: &str| match device {
                "/dev/log" => Some(Bytes::gib(2)),
                "/dev/b" => Some(Bytes::gib(5)),
                _ => Some(Bytes::gib(4)),
            };
            study.too_small(size).map(|found| (found.stack, found.holds, found.wanted))
        };
        let one = "members = 1\nfile_system = \"xfs\"";
        assert_eq!(found(one, "\"data\"", 4), None);
        assert_eq!(found(one, "\"data\"", 5), Some((1, Bytes::gib(4), Bytes::gib(5))));
        // Only the second of the two levels is too small.
        let two = "members = 2\nlevel = [\"raid0\", \"raid1\"]\nfile_system = \"xfs\"";
        assert_eq!(found(two, "\"data\"", 7).map(|found| found.0), Some(2));
        let pool = "members = 2\nlevel = \"raid1\"\nfile_system = \"btrfs\"";
        // Of members of two sizes nobody knows before how much is used of the larger.
        assert_eq!(found(pool, "\"data\"", 5), None);
        // The log's device is asked only where something is on it.
        let own = "members = 1\nfile_system = \"xfs\"\nwal = \"own\"";
        assert_eq!(found(own, "\"data\"", 3), None);
        for on in ["\"wal\"", "[\"wal\", \"data\"]"] {
            assert_eq!(found(own, on, 3), Some((1, Bytes::gib(2), Bytes::gib(3))), "{on}");
        }
        assert_eq!(found(own, "\"wal\"", 2), None);
    }

    #[test]
    fn only_arrays_come_into_step_and_a_mirror_of_legs_does() {
        let budget = |stack: &str| {
            let text = format!(
                "[devices]\npool = [\"/dev/a\", \"/dev/b\", \"/dev/c\", \"/dev/d\"]\n[stack]\n\
                 {stack}\n[measure]\nsuites = [\"x\"]"
            );
            let study = parse(&text, "s.toml").unwrap().plan(1).unwrap();
            study.budget(&[], |_| Some(Bytes::new(15_000_000_000)), Assumed::default())
        };
        let one = budget("members = 1\nfile_system = \"xfs\"");
        assert_eq!((one.building, one.in_step), (Nanos::secs(10), Nanos::ZERO));
        let said = one.sentences(|time| time.exact()).join(" ");
        assert!(!said.contains("into step"), "{said}");
        // Halves of two members: 30 GB at the limit of one array, 204.8 MB/s.
        let halves = budget("members = 4\nlevel = \"raid01\"");
        assert_eq!(halves.in_step.as_secs_f64().round(), 146.0);
        let legs = "legs = 2\nmembers = 2\nlevel = \"raid0\"\nstripe_by = \"md\"\n";
        assert_eq!(budget(legs).in_step, Nanos::ZERO);
        let mirror = budget(&format!("{legs}stripe_level = \"raid1\""));
        assert_eq!(mirror.in_step.as_secs_f64().round(), 146.0);
    }
}
