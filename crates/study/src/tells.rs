//! What a design will be able to tell, before anything is built. The judge is the one that will
//! judge the results.

use explain::factor::{Factors, Observation, Refusal, factors};
use stats::design::Fraction;

use crate::design::{Design, Study};

/// Beyond so many stacks the look at every pair of them takes too long.
const JUDGED_MAX: usize = 600;
/// Pairs of factors that are named before the rest is counted.
const NAMED_MAX: usize = 6;

impl Study {
    /// Sentences: which factors it can tell apart, and what it cannot tell.
    pub fn tells(&self) -> Vec<String> {
        let names: Vec<&str> = self.factors.iter().map(|factor| factor.name).collect();
        if names.is_empty() {
            return vec!["Nothing varies: it measures one stack.".to_owned()];
        }
        let (refused, untold) = self.refused();
        let told: Vec<&str> =
            names.iter().filter(|name| !untold.iter().any(|one| one == *name)).copied().collect();
        let mut said = match told.as_slice() {
            [] => Vec::new(),
            told => vec![self.what_it_tells(told)],
        };
        said.extend(refused);
        if self.measure.design == Design::Fraction {
            said.extend(mixed_up(&names));
        }
        said.push(self.of_noise());
        said.extend(self.doubts.iter().cloned());
        said
    }

    fn what_it_tells(&self, names: &[&str]) -> String {
        let all = listed(names);
        match self.measure.design {
            Design::OneFactorAtATime => {
                let alone = if names.len() == 1 { "does" } else { "do, each by itself" };
                let blind = if names.len() == 1 {
                    ""
                } else {
                    " It does not tell whether they work together: no stack differs from the base \
                     in two of them."
                };
                format!(
                    "Tells what {all} {alone}: held against the base.{}{blind}",
                    self.furthest()
                )
            }
            Design::Full if names.len() == 1 => match self.left_out.len() {
                0 => format!("Tells what {all} does: all levels are measured.{}", self.furthest()),
                n => format!("Tells what {all} does: {n} combinations cannot be built."),
            },
            Design::Full if !self.left_out.is_empty() => format!(
                "Tells what {all} do, and how two of them work together where all combinations of \
                 theirs are measured: {} cannot be built.{}",
                self.left_out.len(),
                self.furthest()
            ),
            Design::Full => format!(
                "Tells what {all} do, and how each works with every other: all combinations are \
                 measured.{}",
                self.furthest()
            ),
            Design::Fraction => format!(
                "Tells what {all} do: no factor is mixed up with another, or with a pair of them."
            ),
        }
    }

    /// What is judged of several levels.
    fn furthest(&self) -> String {
        let several = self.factors.iter().filter(|factor| factor.levels.len() > 2);
        let names: Vec<&str> = several.map(|factor| factor.name).collect();
        if names.is_empty() {
            return String::new();
        }
        format!(
            " Of the levels of {} the two that turn out furthest apart are judged against each other, \
             be the base one of them or not.",
            listed(&names)
        )
    }

    /// What the judge of the results would say of stacks that are all alike.
    fn judged(&self) -> Factors {
        let observe = |one: &crate::PlannedStack| Observation {
            levels: one.levels.clone(),
            block: None,
            ln_value: 0.0,
        };
        factors(&self.stacks.iter().map(observe).collect::<Vec<_>>())
    }

    /// Whether there are so few stacks that no effect could be told from chance, but for noise that is
    /// known.
    fn is_blind(&self) -> bool {
        if self.stacks.len() > JUDGED_MAX {
            return false;
        }
        let judged = self.judged();
        judged.fraction.is_none() && judged.effects.iter().all(|one| one.is_of_too_few())
    }

    /// What the judge of the results would refuse to judge: sentences, and the factors.
    fn refused(&self) -> (Vec<String>, Vec<String>) {
        if self.stacks.len() > JUDGED_MAX {
            return (Vec::new(), Vec::new());
        }
        let refusals = self.judged().refused.into_iter();
        let mut untold = Vec::new();
        let said = refusals
            .map(|refusal| match refusal {
                Refusal::Inseparable(names) => {
                    untold.extend(names.iter().cloned());
                    let names: Vec<&str> = names.iter().map(String::as_str).collect();
                    format!(
                        "Cannot tell {} apart: they change together in the stacks that are left.",
                        listed(&names)
                    )
                }
                Refusal::Constant(name) => {
                    let said = format!("Cannot tell what {name} does: one level of it is left.");
                    untold.push(name);
                    said
                }
                Refusal::NoPairs(name) => {
                    let said =
                        format!("Cannot tell what {name} does: no two stacks differ in it alone.");
                    untold.push(name);
                    said
                }
            })
            .collect();
        (said, untold)
    }

    fn of_noise(&self) -> String {
        let base = self.stacks.iter().filter(|one| one.again).count();
        match base {
            0 | 1 => "The base is measured once, so noise stays unknown: add `repeats`.".to_owned(),
            2 if self.is_blind() => "The base is measured twice: enough to see drift, too little to know \
                                     the noise. So no effect can be told from chance, however large: \
                                     `repeats = 2` makes that possible."
                .to_owned(),
            2 => "The base is measured twice: enough to see drift, too little to know the noise \
                  well. `repeats = 2` makes it surer."
                .to_owned(),
            n => format!(
                "The base is measured {n} times, first, last, and between after no more than four \
                 others: what it differs by from itself is noise and drift, and effects are held \
                 against that."
            ),
        }
    }
}

/// Which pairs of factors a fraction cannot tell from other pairs.
fn mixed_up(names: &[&str]) -> Vec<String> {
    let Some(fraction) = Fraction::resolution_iv(names.len()) else { return Vec::new() };
    let pair = |&(a, b): &(usize, usize)| match (names.get(a), names.get(b)) {
        (Some(a), Some(b)) => format!("{a} with {b}"),
        _ => String::new(),
    };
    let aliases = fraction.aliases().into_iter().filter(|alias| alias.pairs.len() > 1);
    let mut groups: Vec<String> =
        aliases.map(|alias| alias.pairs.iter().map(pair).collect::<Vec<_>>().join(" = ")).collect();
    if groups.is_empty() {
        return vec!["Every pair of factors is told from every other pair.".to_owned()];
    }
    let more = groups.len().saturating_sub(NAMED_MAX);
    groups.truncate(NAMED_MAX);
    let more = if more > 0 { format!("; and {more} more such groups") } else { String::new() };
    vec![format!(
        "Pairs of factors that cannot be told from each other: {}{more}. If one of them turns out \
         to matter, a full design of those factors says which.",
        groups.join("; ")
    )]
}

/// `a`, `a and b`, `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use crate::text::parse;

    fn tells(stack: &str, measure: &str) -> String {
        let pool: Vec<String> = (1..=8).map(|k| format!("\"/dev/loop{k}\"")).collect();
        let text = format!(
            "[devices]\npool = [{}]\n[stack]\n{stack}\n[measure]\nsuites = [\"a\"]\n{measure}",
            pool.join(", ")
        );
        parse(&text, "s.toml").unwrap().plan(1).unwrap().tells().join("\n")
    }

    #[test]
    fn each_design_says_what_it_can_tell() {
        let two = "file_system = [\"xfs\", \"ext4\"]\nmembers = [1, 4]\nlevel = \"raid0\"";
        let one = tells(two, "");
        assert!(one.contains("does not tell whether they work together"), "{one}");
        assert!(one.contains("measured twice"), "{one}");
        assert!(one.contains("no effect can be told from chance, however large"), "{one}");
        // Of four levels one can be so far from all others that chance seldom does it.
        let four = tells("members = 1\nfile_system = [\"xfs\", \"ext4\", \"jfs\", \"ext2\"]", "");
        assert!(four.contains("measured twice") && !four.contains("however large"), "{four}");
        assert!(!one.contains("furthest"), "{one}");
        let levels = tells(
            "members = 1\nfile_system = [\"xfs\", \"ext4\", \"jfs\", \"ext2\"]",
            "repeats = 2",
        );
        assert!(levels.contains("Of the levels of file_system the two that turn out"), "{levels}");
        assert!(levels.contains("measured 3 times, first, last, and between"), "{levels}");
        let full = tells(two, "design = \"full\"");
        assert!(full.contains("how each works with every other"), "{full}");
        assert!(!full.contains("Cannot"), "{full}");
        // What cannot be built is not measured, and what is left may differ in nothing alone.
        let left =
            "level = [\"none\", \"raid1\"]\nmembers = [1, 2]\nfile_system = [\"xfs\", \"ext4\"]";
        let left = tells(left, "design = \"full\"");
        assert!(!left.contains("all combinations are measured"), "{left}");
        assert!(left.contains("Tells what file_system does"), "{left}");
        assert!(left.contains("Cannot tell members and level apart"), "{left}");
        let five = "legs = [2, 1]\nmembers = [4, 2]\nlevel = [\"raid10\", \"raid0\"]\n\
                    file_system = [\"xfs\", \"ext4\"]\nscheduler = [\"none\", \"bfq\"]\n\
                    mount = [\"defaults\", \"noatime\"]";
        let fraction = tells(five, "design = \"fraction\"");
        assert!(fraction.contains("cannot be told from each other: "), "{fraction}");
        assert!(!fraction.contains("Cannot"), "{fraction}");
    }

    #[test]
    fn one_stack_tells_nothing_of_factors() {
        assert!(tells("members = 1", "").contains("Nothing varies"));
    }
}
