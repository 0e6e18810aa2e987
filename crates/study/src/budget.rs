//! What a study costs: stacks, builds, hours.

use layout::{Leg, Level, Maker, StackSpec};
use units::{Bytes, Nanos};

use crate::design::Study;
use crate::stacks::Stack;

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
        let building = self.stacks.iter().fold(Nanos::ZERO, |sum, one| match &one.stack {
            Stack::Plain(_) => sum,
            Stack::Built(spec) => sum + assumed.tools + in_step(spec, &size, assumed),
        });
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
            builds: self.stacks.iter().filter(|one| matches!(one.stack, Stack::Built(_))).count(),
            runs: self.runs(),
            building,
            least: building + least,
            most: ends.then_some(building + most),
            written: Bytes::new(all(&|suite| suite.written.get())),
        }
    }
}

/// How long the arrays of a stack take to come into step: members are filled side by side, legs one
/// after the other.
fn in_step(spec: &StackSpec, size: &impl Fn(&str) -> Option<Bytes>, assumed: Assumed) -> Nanos {
    let of_leg = |leg: &Leg| {
        let syncs = matches!(leg.maker, Maker::Md | Maker::Lvm)
            && leg.level.is_some_and(Level::is_redundant);
        let smallest = leg.members.iter().filter_map(|device| size(device.as_str())).min();
        let bytes = smallest.filter(|_| syncs).unwrap_or(Bytes::ZERO);
        Nanos::from_secs_f64(bytes.get() as f64 / assumed.sync.get().max(1) as f64)
    };
    spec.legs.iter().fold(Nanos::ZERO, |sum, leg| sum + of_leg(leg))
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
            _ => format!(
                ", of which building takes {} if arrays come into step at 150 MB/s a member",
                time(self.building)
            ),
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
    }
}
