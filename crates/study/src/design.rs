//! Which stacks are measured, in which order.

use std::collections::BTreeMap;

use stats::design::{
    FACTORIAL_MAX, FRACTION_FACTORS_MAX, FRACTION_FACTORS_MIN, Fraction, Planned, factorial,
    one_at_a_time,
};
use stats::random::derive_seed;

use crate::factor::{self, Factor};
use crate::stacks::{Levels, Stack, stack};
use crate::text::{Devices, Measure, StudyError, StudyText};

/// The key of what makes an array.
const BY: &str = "by";
/// More stacks than anybody waits for.
const STACKS_MAX: usize = 5000;
/// Keeps the order of each repeat apart.
const REPEAT: u64 = 0x7265_7065;
/// Keeps the seeds of runs apart from everything else.
const RUN: u64 = 0x7374_7564;

/// How stacks are chosen from all combinations of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// The base, and every other level of every factor alone.
    OneFactorAtATime,
    /// Every combination.
    Full,
    /// A fraction of all combinations of two levels each, of resolution IV.
    Fraction,
}

impl Design {
    /// From the file.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::OneFactorAtATime, Self::Full, Self::Fraction]
            .into_iter()
            .find(|design| design.name() == text)
    }

    /// As in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneFactorAtATime => "one-factor-at-a-time",
            Self::Full => "full",
            Self::Fraction => "fraction",
        }
    }
}

/// A stack in its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStack {
    /// From 1, in the order they are built.
    pub number: u32,
    /// For each factor its level's text.
    pub levels: Vec<(String, String)>,
    /// The base once more, only to see drift and noise.
    pub again: bool,
    /// What it is.
    pub stack: Stack,
}

impl PlannedStack {
    /// `legs 2, file_system xfs`; the whole is `the only stack` where nothing varies.
    pub fn title(&self) -> String {
        let levels: Vec<String> =
            self.levels.iter().map(|(factor, level)| format!("{factor} {level}")).collect();
        match (levels.is_empty(), self.again) {
            (true, _) => "the only stack".to_owned(),
            (false, true) => format!("the base: {}", levels.join(", ")),
            (false, false) => levels.join(", "),
        }
    }
}

/// A combination that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Which levels.
    pub levels: Vec<(String, String)>,
    /// Why.
    pub why: String,
}

/// A study, planned.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its name.
    pub name: String,
    /// One line; may be empty.
    pub title: String,
    /// The file, for messages.
    pub file: String,
    /// What may be written.
    pub devices: Devices,
    /// What varies.
    pub factors: Vec<Factor>,
    /// What does not: (key, level).
    pub fixed: Vec<(String, String)>,
    /// How stacks are measured.
    pub measure: Measure,
    /// Where all order comes from.
    pub seed: u64,
    /// In order.
    pub stacks: Vec<PlannedStack>,
    /// Combinations that no stack can have.
    pub left_out: Vec<LeftOut>,
    /// What is odd about it, in sentences.
    pub doubts: Vec<String>,
}

impl StudyText {
    /// The stacks of the study in order. The same text and seed give the same plan.
    ///
    /// * `seed`: used where the text has none.
    pub fn plan(&self, seed: u64) -> Result<Study, StudyError> {
        let seed = self.measure.seed.unwrap_or(seed);
        let (factors, fixed): (Vec<Factor>, Vec<Factor>) =
            self.keys.iter().cloned().partition(|key| key.levels.len() > 1);
        let mut planned: Vec<Planned> = Vec::new();
        for repeat in 0..self.measure.repeats {
            let seed = derive_seed(seed, &[REPEAT, u64::from(repeat)]);
            let mut once = self.combinations(&factors, seed)?;
            // The base that ends one repeat begins the next.
            if !planned.is_empty() {
                once.remove(0);
            }
            planned.extend(once);
        }
        if planned.len() > STACKS_MAX {
            let what = format!("{} stacks, wanted at most {STACKS_MAX}", planned.len());
            return Err(self.error(what, Some("take levels or repeats out".to_owned())));
        }
        let mut study = Study {
            name: self.name.clone(),
            title: self.title.clone(),
            file: self.file.clone(),
            devices: self.devices.clone(),
            fixed: fixed
                .iter()
                .filter_map(|key| Some((key.name.to_owned(), key.levels.first()?.clone())))
                .collect(),
            factors,
            measure: self.measure.clone(),
            seed,
            stacks: Vec::new(),
            left_out: Vec::new(),
            doubts: Vec::new(),
        };
        for one in &planned {
            self.place(&mut study, one)?;
        }
        self.doubt(&mut study)?;
        study.doubts.extend(self.odd_schedulers());
        let of_makers = self.name_makers(&mut study);
        study.doubts.extend(of_makers);
        Ok(study)
    }

    fn error(&self, what: impl Into<String>, hint: Option<String>) -> StudyError {
        StudyError::of_file(&self.file, what, hint)
    }

    fn combinations(&self, factors: &[Factor], seed: u64) -> Result<Vec<Planned>, StudyError> {
        let levels: Vec<usize> = factors.iter().map(|factor| factor.levels.len()).collect();
        if factors.is_empty() {
            return Ok(vec![Planned { levels: Vec::new(), again: false }]);
        }
        match self.measure.design {
            Design::OneFactorAtATime => Ok(one_at_a_time(&levels, seed)),
            Design::Full => factorial(&levels, seed).ok_or_else(|| {
                let what = format!("more than {FACTORIAL_MAX} combinations of all levels");
                let hint = "`design = \"one-factor-at-a-time\"`, or a fraction of two levels each";
                self.error(what, Some(hint.to_owned()))
            }),
            Design::Fraction => self.fraction(factors, seed),
        }
    }

    fn fraction(&self, factors: &[Factor], seed: u64) -> Result<Vec<Planned>, StudyError> {
        if let Some(many) = factors.iter().find(|factor| factor.levels.len() != 2) {
            let what = format!("`{}` has {} levels", many.name, many.levels.len());
            let hint = "a fraction has factors of two levels each";
            return Err(self.error(what, Some(hint.to_owned())));
        }
        let fraction = Fraction::resolution_iv(factors.len()).ok_or_else(|| {
            let (least, most) = (FRACTION_FACTORS_MIN, FRACTION_FACTORS_MAX);
            let what = format!("a fraction of {} factors, wanted {least} to {most}", factors.len());
            let hint = "with fewer, `design = \"full\"` costs little more and tells all";
            self.error(what, Some(hint.to_owned()))
        })?;
        Ok(fraction.planned(seed))
    }

    /// Puts a combination into the study, or among those left out.
    fn place(&self, study: &mut Study, planned: &Planned) -> Result<(), StudyError> {
        let chosen = study.factors.iter().zip(&planned.levels);
        let levels: Vec<(String, String)> = chosen
            .filter_map(|(factor, &at)| {
                Some((factor.name.to_owned(), factor.levels.get(at)?.clone()))
            })
            .collect();
        let all = levels.iter().chain(&study.fixed);
        let all: BTreeMap<&str, &str> =
            all.map(|(key, level)| (key.as_str(), level.as_str())).collect();
        match stack(&Levels(all), &self.devices) {
            Ok(stack) => {
                let number = u32::try_from(study.stacks.len()).unwrap_or(u32::MAX - 1) + 1;
                let again = planned.again;
                study.stacks.push(PlannedStack { number, levels, again, stack });
                Ok(())
            }
            Err(no) => {
                let is_base = planned.levels.iter().all(|level| *level == 0);
                if self.measure.design == Design::Full && !is_base {
                    if study.left_out.iter().all(|left| left.levels != levels) {
                        study.left_out.push(LeftOut { levels, why: no.what });
                    }
                    return Ok(());
                }
                let named: Vec<String> =
                    levels.iter().map(|(key, level)| format!("{key} {level}")).collect();
                let of = match (is_base, named.is_empty()) {
                    (_, true) => "the stack".to_owned(),
                    (true, _) => format!("the base ({})", named.join(", ")),
                    (false, _) => format!("the stack of {}", named.join(", ")),
                };
                Err(self.error(format!("{of} cannot be built: {}", no.what), no.hint))
            }
        }
    }

    /// Factors that change nothing: an error where they could not be measured at all.
    fn doubt(&self, study: &mut Study) -> Result<(), StudyError> {
        let Some(base) = study.stacks.iter().find(|one| self.is_base(study, one)).cloned() else {
            return Ok(());
        };
        let mut doubts = Vec::new();
        for (at, factor) in study.factors.iter().enumerate() {
            let differs = |one: &&PlannedStack| one.levels.get(at) != base.levels.get(at);
            // The same combination but for this factor.
            let twin = |one: &PlannedStack| {
                study.stacks.iter().find(|other| {
                    let others = other.levels.iter().enumerate();
                    others.clone().all(|(k, level)| k == at || one.levels.get(k) == Some(level))
                        && other.levels.get(at) == base.levels.get(at)
                })
            };
            let changed: Vec<&PlannedStack> = study.stacks.iter().filter(differs).collect();
            let same = changed
                .iter()
                .filter(|one| twin(one).is_some_and(|other| other.stack == one.stack))
                .count();
            if same == 0 {
                continue;
            }
            if self.measure.design == Design::OneFactorAtATime {
                let line = self.lines.get(factor.name).copied().unwrap_or(1);
                let file = format!("{}:{line}", self.file);
                let what = format!("`{}` changes nothing on the base", factor.name);
                let hint = "choose a base (the first level of each) in which it matters, such as \
                            `legs = [2, 1]` for what joins legs; or `design = \"full\"`";
                return Err(StudyError::of_file(&file, what, Some(hint.to_owned())));
            }
            doubts.push(format!(
                "`{}` changes nothing in {same} of the {} stacks that have another level of it: \
                 these repeat others.",
                factor.name,
                changed.len()
            ));
        }
        study.doubts = doubts;
        Ok(())
    }

    /// Says what makes the arrays where the file does not: among what is the same in all, or, where it
    /// follows from another factor, as a doubt.
    fn name_makers(&self, study: &mut Study) -> Option<String> {
        if self.keys.iter().any(|key| key.name == BY) {
            return None;
        }
        let mut makers: Vec<&'static str> = Vec::new();
        for one in &study.stacks {
            let Stack::Built(spec) = &one.stack else { continue };
            for leg in spec.legs.iter().filter(|leg| leg.level.is_some()) {
                if !makers.contains(&leg.maker.name()) {
                    makers.push(leg.maker.name());
                }
            }
        }
        match makers.as_slice() {
            [] => None,
            [only] => {
                study.fixed.push((BY.to_owned(), (*only).to_owned()));
                study.fixed.sort_by_key(|(key, _)| factor::rank(key));
                None
            }
            several => Some(format!(
                "What makes the arrays follows from file_system, since `by` is not said: {}. What                  file_system does has that in it.",
                several.join(" or ")
            )),
        }
    }

    /// Words that are most likely mistyped; only the kernel of the day knows all.
    fn odd_schedulers(&self) -> Option<String> {
        const KNOWN: [&str; 7] = ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq"];
        let levels = self.keys.iter().filter(|key| key.name == "scheduler");
        let odd: Vec<String> = levels
            .flat_map(|key| &key.levels)
            .filter(|level| !KNOWN.contains(&level.as_str()))
            .map(|level| format!("`{level}`"))
            .collect();
        (!odd.is_empty()).then(|| {
            format!(
                "No scheduler of Linux itself is named {}: those of today are none, mq-deadline, kyber \
                 and bfq. A stack whose kernel does not have it is left out.",
                odd.join(" or ")
            )
        })
    }

    fn is_base(&self, study: &Study, one: &PlannedStack) -> bool {
        let first = study.factors.iter().map(|factor| factor.levels.first());
        one.levels.iter().map(|(_, level)| Some(level)).eq(first)
    }
}

impl Study {
    /// How many runs it has: every suite on every stack.
    pub fn runs(&self) -> u32 {
        let runs = self.stacks.len().saturating_mul(self.measure.suites.len());
        u32::try_from(runs).unwrap_or(u32::MAX)
    }

    /// The number of a run, from 1: stacks in order, on each the suites in order.
    ///
    /// * `suite`: place among the study's suites, from 0.
    pub fn run_number(&self, stack: &PlannedStack, suite: usize) -> u32 {
        let suites = u32::try_from(self.measure.suites.len()).unwrap_or(u32::MAX);
        let before = stack.number.saturating_sub(1).saturating_mul(suites);
        before.saturating_add(u32::try_from(suite).unwrap_or(u32::MAX)).saturating_add(1)
    }

    /// The seed of a run. Each has its own, also of stacks that are measured one after the other.
    ///
    /// One seed for all stacks of a repeat would take what it does to all of them alike out of their
    /// differences. But effects are held against how far the base differs from itself, which comes
    /// several times in a repeat: asked the very same each time, it would not show what the choice of
    /// requests does to a stack, and every interval would lack that. On a model, where the seed is
    /// all noise that there is, it would have no width. What differs over time is taken out by order.
    ///
    /// * `number`: as [`Self::run_number`] gives it.
    pub fn seed_of_run(&self, number: u32) -> u64 {
        derive_seed(self.seed, &[RUN, u64::from(number)]) >> 16
    }

    /// Stacks that differ from each other.
    pub fn different(&self) -> usize {
        let mut seen: Vec<&Stack> = Vec::new();
        for one in &self.stacks {
            if !seen.contains(&&one.stack) {
                seen.push(&one.stack);
            }
        }
        seen.len()
    }

    /// Whether anything is built.
    pub fn builds(&self) -> bool {
        self.stacks.iter().any(|one| matches!(one.stack, Stack::Built(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::parse;

    fn study(stack: &str, measure: &str) -> Result<Study, StudyError> {
        let pool: Vec<String> = (1..=8).map(|k| format!("\"/dev/loop{k}\"")).collect();
        let text = format!(
            "[devices]\npool = [{}]\n[stack]\n{stack}\n[measure]\nsuites = [\"a\", \"b\"]\n{measure}",
            pool.join(", ")
        );
        parse(&text, "s.toml").unwrap().plan(11)
    }

    #[test]
    fn one_factor_at_a_time_has_the_base_every_fifth() {
        let found = study(
            "level = [\"raid10\", \"raid5\", \"raid6\"]\nmembers = [4, 6]\nfile_system = [\"xfs\", \"ext4\"]",
            "",
        )
        .unwrap();
        assert_eq!((found.stacks.len(), found.runs(), found.different()), (6, 12, 5));
        assert!(found.stacks[0].again && found.stacks[5].again);
        for one in &found.stacks[1..5] {
            let base = &found.stacks[0];
            let other = one.levels.iter().zip(&base.levels).filter(|(a, b)| a != b).count();
            assert_eq!(other, 1, "{}", one.title());
        }
        let again = study(
            "level = [\"raid10\", \"raid5\", \"raid6\"]\nmembers = [4, 6]\nfile_system = [\"xfs\", \"ext4\"]",
            "",
        );
        assert_eq!(Ok(found.clone()), again, "the same text, the same plan");
        assert_eq!(found.run_number(&found.stacks[2], 1), 6);
        let again = again.unwrap();
        let seeds: Vec<u64> = (1..=found.runs()).map(|run| found.seed_of_run(run)).collect();
        let same: Vec<u64> = (1..=found.runs()).map(|run| again.seed_of_run(run)).collect();
        assert_eq!(seeds, same, "resumed it goes on with the same");
        let different: std::collections::BTreeSet<u64> = seeds.iter().copied().collect();
        assert_eq!(
            different.len(),
            seeds.len(),
            "the base's and those of its neighbours: {seeds:?}"
        );
    }

    #[test]
    fn a_mistyped_scheduler_is_told_before_anything_is_built() {
        let doubts = |level: &str| {
            let stack = format!("members = 1\nscheduler = [\"none\", \"{level}\"]");
            study(&stack, "").unwrap().doubts
        };
        assert_eq!(doubts("bfq"), Vec::<String>::new());
        let said = doubts("mq-deadlin");
        assert!(
            said[0].starts_with("No scheduler of Linux itself is named `mq-deadlin`:"),
            "{said:?}"
        );
    }

    #[test]
    fn what_makes_the_arrays_is_said_where_the_file_does_not() {
        let fixed = |stack: &str| -> Vec<String> {
            let fixed = study(stack, "").unwrap().fixed.into_iter();
            fixed.map(|(key, level)| format!("{key} {level}")).collect()
        };
        let raid1 = "members = 2\nlevel = \"raid1\"\n";
        let by = |stack: &str| fixed(&format!("{raid1}{stack}"))[1].clone();
        assert_eq!(by("file_system = [\"xfs\", \"ext4\"]"), "by md");
        assert_eq!(by("file_system = \"btrfs\""), "by btrfs");
        assert_eq!(by("file_system = \"xfs\"\nby = \"lvm\""), "by lvm");
        let none = fixed("members = 1\nfile_system = \"xfs\"");
        assert_eq!(none, ["members 1", "file_system xfs"], "nothing makes an array");
        let mixed = study(&format!("{raid1}file_system = [\"xfs\", \"btrfs\"]"), "").unwrap();
        assert!(mixed.doubts[0].contains("`by` is not said: md or btrfs"), "{:?}", mixed.doubts);
        assert!(mixed.fixed.iter().all(|(key, _)| key != "by"));
        let held = study(&format!("{raid1}file_system = [\"xfs\", \"btrfs\"]\nby = \"md\""), "");
        assert_eq!(held.unwrap().doubts, Vec::<String>::new());
    }

    #[test]
    fn repeats_share_the_base_between_them() {
        let once = study("file_system = [\"xfs\", \"ext4\"]\nmembers = 1", "").unwrap();
        let thrice =
            study("file_system = [\"xfs\", \"ext4\"]\nmembers = 1", "repeats = 3").unwrap();
        assert_eq!((once.stacks.len(), thrice.stacks.len()), (3, 7));
        assert!(thrice.stacks.iter().step_by(2).all(|one| one.again));
    }

    #[test]
    fn a_full_design_leaves_out_what_cannot_be_built() {
        let found = study("level = [\"raid5\", \"raid6\"]\nmembers = [4, 3]", "design = \"full\"");
        let found = found.unwrap();
        assert_eq!(found.left_out.len(), 1);
        assert_eq!(found.left_out[0].levels[0], ("members".to_owned(), "3".to_owned()));
        let error = study("level = [\"raid5\", \"raid6\"]\nmembers = [3, 4]", "").unwrap_err();
        assert!(error.to_string().contains("the stack of members 3, level raid6"), "{error}");
        let error = study("level = [\"raid6\", \"raid5\"]\nmembers = [3, 4]", "").unwrap_err();
        assert!(error.to_string().contains("the base (members 3"), "{error}");
    }

    #[test]
    fn a_factor_that_changes_nothing_is_refused_or_told() {
        let stack = "legs = [1, 2]\nmembers = 2\nlevel = \"raid0\"\nstripe_by = [\"md\", \"lvm\"]";
        let error = study(stack, "").unwrap_err();
        assert_eq!(error.to_string(), "s.toml:7: `stripe_by` changes nothing on the base");
        let full = study(stack, "design = \"full\"").unwrap();
        assert_eq!(full.doubts.len(), 1, "{:?}", full.doubts);
        assert!(full.doubts[0].contains("1 of the 2 stacks"), "{:?}", full.doubts);
    }

    #[test]
    fn a_fraction_needs_five_factors_of_two_levels() {
        let five = "legs = [2, 1]\nmembers = [4, 2]\nlevel = [\"raid10\", \"raid0\"]\n\
                    file_system = [\"xfs\", \"ext4\"]\nscheduler = [\"none\", \"bfq\"]";
        let found = study(five, "design = \"fraction\"").unwrap();
        assert_eq!(found.stacks.len(), 16 + 5);
        for (stack, wanted) in [
            ("legs = [1, 2, 3]\nmembers = 1", "`legs` has 3 levels"),
            ("legs = [1, 2]\nmembers = 1", "a fraction of 1 factors"),
        ] {
            let error = study(stack, "design = \"fraction\"").unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }

    #[test]
    fn plain_targets_are_stacks() {
        let found = study("target = [\"/ssd/a\", \"/hdd/a\"]", "").unwrap();
        assert!(!found.builds());
        assert_eq!(found.stacks[0].stack, Stack::Plain("/ssd/a".into()));
        assert_eq!(found.stacks.len(), 3);
        let one = study("target = \"null:\"", "").unwrap();
        assert_eq!((one.stacks.len(), one.stacks[0].title()), (1, "the only stack".to_owned()));
    }
}
