//! What is wrong with a stack, or could be better: advice with its reason, its evidence, and the
//! command that changes it. Nothing is ever changed by itself.
//!
//! Each piece of advice looks at the tree alone, so that a captured tree is a test, and says nothing
//! where it does not know: a stack without advice is not a stack without faults.

mod alignment;
mod chunk;
mod file_system;
mod geometry;
mod link;
mod log_device;
mod member;
mod queue;
mod stripe;
mod throttle;

#[cfg(test)]
pub(crate) mod example;

use std::collections::BTreeMap;

use finding::{Code, Finding, Number, Severity, Value};
use layout::shell_word as quoted;
use record::stack::{Disk, FileSystem, Layer, Queue, StackTree, What};
use schemars::JsonSchema;
use serde::Serialize;

/// A piece of advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What it is, with what was read that says so. Its code does not change between versions.
    pub finding: Finding,
    /// Id of the layer that it is about.
    pub layer: String,
    /// What it predicts of writes, as `members.writes` of an explained run measures it; perhaps
    /// nothing.
    pub predicts: Vec<Predicted>,
    /// Commands that change it, as a shell takes them; perhaps none.
    pub commands: Vec<String>,
}

/// A piece of advice as JSON has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Advice")]
struct AdviceJson {
    /// How much it matters.
    weight: Weight,
    /// Which piece of advice: `partition-alignment`; does not change between versions.
    name: &'static str,
    /// Id of the layer that it is about.
    layer: String,
    /// What it is.
    finding: String,
    /// Why that matters.
    reason: String,
    /// What was read, and where.
    evidence: Vec<String>,
    /// What it foretells of writes, as `members.writes` of an explained run has measured it;
    /// perhaps nothing.
    predicts: Vec<Predicted>,
    /// Commands that change it, as a shell takes them; perhaps none.
    commands: Vec<String>,
    /// What to mind before.
    caution: Option<String>,
    /// The numbers and names in it.
    values: BTreeMap<&'static str, Value>,
}

impl Serialize for Advice {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { finding, layer, predicts, commands } = self.clone();
        let json = AdviceJson {
            weight: self.weight(),
            name: finding.code.name(),
            layer,
            finding: finding.text(),
            reason: finding.why().unwrap_or_default(),
            evidence: finding.evidence(),
            predicts,
            commands,
            caution: finding.caution(),
            values: finding.values.into_iter().collect(),
        };
        json.serialize(serializer)
    }
}

impl JsonSchema for Advice {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        AdviceJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        AdviceJson::json_schema(generator)
    }
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

    fn finding(&self) -> Finding {
        let Self { request_bytes, now, then } = self;
        Finding::new(Code::WriteCostPredicted)
            .with("request", Number::bytes(*request_bytes))
            .with("read", Number::plain(now.read))
            .with("written", Number::plain(now.written))
            .with("read_then", Number::plain(then.read))
            .with("written_then", Number::plain(then.written))
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

    const fn severity(self) -> Severity {
        match self {
            Self::Danger => Severity::Failure,
            Self::Warning => Severity::Warning,
            Self::Hint => Severity::Info,
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

/// What is asked of each layer of a kind, or once of the whole stack.
enum Adviser {
    Disk(fn(&Layer, &Disk, &Queue) -> Option<Advice>),
    FileSystem(fn(&StackTree, &Layer, &FileSystem) -> Option<Advice>),
    Layer(fn(&StackTree, &Layer) -> Option<Advice>),
    Stack(fn(&StackTree, Use) -> Vec<Advice>),
}

/// In the order in which they are told.
const ADVISERS: [Adviser; 17] = [
    Adviser::Disk(queue::cache_denied),
    Adviser::Layer(queue::cache_hidden),
    Adviser::FileSystem(file_system::barriers),
    Adviser::Stack(throttle::look),
    Adviser::Stack(alignment::look),
    Adviser::FileSystem(stripe::hints),
    Adviser::Stack(chunk::look),
    Adviser::Layer(link::trained_down),
    Adviser::Layer(link::unequal_legs),
    Adviser::Stack(member::look),
    Adviser::FileSystem(file_system::serialised),
    Adviser::Stack(log_device::look),
    Adviser::Disk(queue::scheduler),
    Adviser::Disk(queue::tags),
    Adviser::Disk(queue::requests),
    Adviser::FileSystem(stripe::read_ahead),
    Adviser::FileSystem(file_system::atime),
];

impl Adviser {
    fn of(&self, tree: &StackTree, purpose: Use) -> Vec<Advice> {
        let of_layer = |layer: &Layer| match (self, &layer.what, &layer.queue) {
            (Self::Disk(of), What::Disk(disk), Some(queue)) => of(layer, disk, queue),
            (Self::FileSystem(of), What::FileSystem(found), _) => of(tree, layer, found),
            (Self::Layer(of), ..) => of(tree, layer),
            _ => None,
        };
        match self {
            Self::Stack(of) => of(tree, purpose),
            _ => tree.layers.iter().filter_map(of_layer).collect(),
        }
    }
}

/// All advice on a stack, what matters most first.
pub fn advise(tree: &StackTree, purpose: Use) -> Vec<Advice> {
    let mut found: Vec<Advice> = ADVISERS.iter().flat_map(|one| one.of(tree, purpose)).collect();
    found.sort_by_key(Advice::weight);
    found
}

impl Advice {
    fn new(code: Code, layer: &str) -> Self {
        Self {
            finding: Finding::new(code).with("layer", layer),
            layer: layer.to_owned(),
            predicts: Vec::new(),
            commands: Vec::new(),
        }
    }

    fn with(self, name: &'static str, value: impl Into<Value>) -> Self {
        Self { finding: self.finding.with(name, value), ..self }
    }

    fn with_some(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        Self { finding: self.finding.with_some(name, value), ..self }
    }

    fn weighing(mut self, weight: Weight) -> Self {
        self.finding.severity = weight.severity();
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

    /// How much it matters.
    pub const fn weight(&self) -> Weight {
        match self.finding.severity {
            Severity::Failure => Weight::Danger,
            Severity::Warning => Weight::Warning,
            _ => Weight::Hint,
        }
    }

    /// As people read it: what, why, on what evidence, what it predicts, what to mind. The commands stand
    /// apart.
    pub fn sentences(&self) -> Vec<String> {
        let finding = &self.finding;
        let mut out = vec![finding.text()];
        out.extend(finding.why());
        out.extend(finding.evidence());
        out.extend(self.predicts.iter().map(|one| one.finding().text()));
        out.extend(finding.caution());
        out
    }
}

/// The command that writes a value into a setting of a block device's queue.
fn set_queue(device: &str, setting: &str, value: &str) -> String {
    let path = format!("/sys/block/{}/queue/{setting}", device.replace('/', "!"));
    format!("echo {value} > {}", quoted(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dangers_come_first_and_all_have_their_parts() {
        let tree = example::everything_wrong();
        let found = advise(&tree, Use::default());
        assert!(found.is_sorted_by_key(Advice::weight));
        assert_eq!(found[0].weight(), Weight::Danger);
        for advice in &found {
            let finding = &advice.finding;
            assert!(finding.why().is_some() && !finding.evidence().is_empty(), "{advice:?}");
            for sentence in advice.sentences() {
                assert!(!sentence.contains("..") && !sentence.contains("  "), "{sentence}");
                assert!(!sentence.contains("unknown"), "a value is missing: {sentence}");
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
