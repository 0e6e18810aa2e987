//! What is wrong with a stack, or could be better: advice with its reason, its evidence, and the
//! command that changes it. Nothing is ever changed by itself.
//!
//! One file a piece of advice. Each looks at the tree alone, so that a captured tree is a test,
//! and says nothing where it does not know: a stack without advice is not a stack without faults.

mod atime;
mod barriers;
mod chunk;
mod geometry;
mod legs;
mod link;
mod log_device;
mod lvm;
mod member;
mod partition;
mod queue;
mod read_ahead;
mod scheduler;
mod serialise;
mod stripe_hints;
mod throttle;
mod write_cache;

#[cfg(test)]
pub(crate) mod example;

use layout::shell_word as quoted;
use record::stack::StackTree;
use schemars::JsonSchema;
use serde::Serialize;

/// A piece of advice.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Advice {
    /// How much it matters.
    pub weight: Weight,
    /// Which piece of advice: `partition-alignment`; does not change between versions.
    pub name: String,
    /// Id of the layer that it is about.
    pub layer: String,
    /// What it is.
    pub finding: String,
    /// Why that matters.
    pub reason: String,
    /// What was read, and where.
    pub evidence: Vec<String>,
    /// What it foretells of writes, as `members.writes` of an explained run has measured it;
    /// perhaps nothing.
    pub predicts: Vec<Predicted>,
    /// Commands that change it, as a shell takes them; perhaps none.
    pub commands: Vec<String>,
    /// What to mind before.
    pub caution: Option<String>,
}

/// What writes of a size will cost the members of an array, at multiples of their size, nothing
/// of them being in memory.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Predicted {
    /// Bytes of a write.
    pub request_bytes: u64,
    /// As the stack is.
    pub now: PerByte,
    /// As it would be with the advice followed.
    pub then: PerByte,
}

/// What members do for each byte that is written to the array.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PerByte {
    /// Bytes that they read first.
    pub read: f64,
    /// Bytes that they write, redundancy included.
    pub written: f64,
}

impl PerByte {
    fn of(cost: &layout::MeanCost) -> Self {
        let size = (cost.size.get() as f64).max(1.0);
        Self { read: cost.read_bytes / size, written: cost.written_bytes / size }
    }
}

impl Predicted {
    /// `None` where the advice would not lessen what is moved.
    fn of(now: &layout::MeanCost, then: &layout::MeanCost) -> Option<Self> {
        let request_bytes = now.size.get();
        let (now, then) = (PerByte::of(now), PerByte::of(then));
        let less = then.read + then.written < now.read + now.written;
        less.then_some(Self { request_bytes, now, then })
    }

    fn sentence(&self) -> String {
        let Self { now, then, .. } = self;
        format!(
            "For each byte of a write of {} the members read {:.2} and write {:.2}, as reckoned \
             from the layout; with this changed {:.2} and {:.2}.",
            crate::words::size(self.request_bytes),
            now.read,
            now.written,
            then.read,
            then.written
        )
    }
}

/// How much a piece of advice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weight {
    /// Data that was acknowledged may be lost.
    Danger,
    /// It costs speed that the hardware has.
    Warning,
    /// It may be worth a try.
    Hint,
}

impl Weight {
    /// The word in front of it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Danger => "DANGER",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

/// What the stack is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// Bytes of the requests that matter: a database's page.
    pub request_bytes: u64,
}

impl Default for Use {
    /// Pages of 16 KiB: InnoDB's; PostgreSQL's are smaller and fit where these fit.
    fn default() -> Self {
        Self { request_bytes: 16 << 10 }
    }
}

type Look = fn(&StackTree, Use) -> Vec<Advice>;

/// In the order in which they are told.
const LOOKS: [Look; 16] = [
    write_cache::look,
    barriers::look,
    throttle::look,
    partition::look,
    lvm::look,
    stripe_hints::look,
    chunk::look,
    link::look,
    legs::look,
    member::look,
    serialise::look,
    log_device::look,
    scheduler::look,
    queue::look,
    read_ahead::look,
    atime::look,
];

/// All advice on a stack, what matters most first.
pub fn advise(tree: &StackTree, purpose: Use) -> Vec<Advice> {
    let mut found: Vec<Advice> = LOOKS.iter().flat_map(|look| look(tree, purpose)).collect();
    found.sort_by_key(|advice| advice.weight);
    found
}

impl Advice {
    fn new(weight: Weight, name: &str, layer: &str, finding: String) -> Self {
        Self {
            weight,
            name: name.to_owned(),
            layer: layer.to_owned(),
            finding,
            reason: String::new(),
            evidence: Vec::new(),
            predicts: Vec::new(),
            commands: Vec::new(),
            caution: None,
        }
    }

    fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    fn seen(mut self, evidence: impl Into<String>) -> Self {
        self.evidence.push(evidence.into());
        self
    }

    fn predicting(mut self, predicted: impl IntoIterator<Item = Predicted>) -> Self {
        self.predicts.extend(predicted);
        self
    }

    fn command(mut self, command: impl Into<String>) -> Self {
        self.commands.push(command.into());
        self
    }

    fn mind(self, caution: impl Into<String>) -> Self {
        Self { caution: Some(caution.into()), ..self }
    }

    /// Plain English: what, why, on what evidence, what it foretells, what to mind. The commands stand apart.
    pub fn sentences(&self) -> Vec<String> {
        let mut out =
            vec![format!("{}: {}.", self.layer, self.finding), capital(&self.reason) + "."];
        if !self.evidence.is_empty() {
            out.push(format!("Seen: {}.", self.evidence.join("; ")));
        }
        out.extend(self.predicts.iter().map(Predicted::sentence));
        out.extend(self.caution.as_ref().map(|caution| format!("Mind: {caution}.")));
        out
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    first + chars.as_str()
}

/// The command that writes a value into a setting of a block device's queue.
fn set_queue(device: &str, setting: &str, value: &str) -> String {
    let path = format!("/sys/block/{}/queue/{setting}", device.replace('/', "!"));
    format!("echo {value} > {}", quoted(&path))
}

/// What a setting of sysfs needs to outlive a restart.
const UNTIL_RESTART: &str = "it lasts until the next start; a udev rule makes it last";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangers_come_first_and_all_have_their_parts() {
        let tree = example::everything_wrong();
        let found = advise(&tree, Use::default());
        assert!(found.is_sorted_by_key(|advice| advice.weight));
        assert_eq!(found[0].weight, Weight::Danger);
        for advice in &found {
            assert!(!advice.reason.is_empty() && !advice.evidence.is_empty(), "{advice:?}");
            for sentence in advice.sentences() {
                assert!(!sentence.contains("..") && !sentence.contains("  "), "{sentence}");
            }
        }
    }

    #[test]
    fn a_sound_stack_has_no_advice() {
        let found = advise(&example::sound(), Use::default());
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn an_empty_tree_has_no_advice() {
        assert!(advise(&example::tree(vec![]), Use::default()).is_empty());
    }
}
