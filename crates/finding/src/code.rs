//! Codes, and what is declared of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

include!(concat!(env!("OUT_DIR"), "/codes.rs"));

/// What is declared of a code, in `codes/`.
#[derive(Debug)]
pub struct About {
    /// In stores, JSON and tables.
    pub name: &'static str,
    /// What it answers.
    pub question: Question,
    /// How much it matters.
    pub severity: Severity,
    /// Template of its text: see [`crate::text`].
    pub text: &'static str,
    /// What the code means where a table shows it at a cell; `None` if no table does.
    pub mark: Option<&'static str>,
    /// Template of the advice.
    pub next: Option<&'static str>,
    /// Template of the reason why it matters.
    pub why: Option<&'static str>,
    /// Templates of what was read that shows it.
    pub evidence: &'static [&'static str],
    /// Template of what to mind before it is changed.
    pub caution: Option<&'static str>,
    /// Kinds of figures that show it, where they are not those of the question.
    own_figures: Option<&'static [&'static str]>,
}

impl About {
    /// Kinds of figures that show it, the best first.
    pub const fn figures(&self) -> &'static [&'static str] {
        match self.own_figures {
            Some(own) => own,
            None => self.question.figures(),
        }
    }
}

impl Code {
    /// In stores, JSON and tables.
    pub const fn name(self) -> &'static str {
        self.about().name
    }

    /// The code of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

/// How much a finding matters. Greater is worse.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Something was looked for and ruled out.
    Good,
    /// It could not be looked for.
    Unknown,
    /// A fact.
    Info,
    /// A figure needs care.
    Warning,
    /// Something failed.
    Failure,
}

/// What findings answer, in the order in which people ask.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// How fast is it, what limits it, what disturbed it, what comes next?
    Answer,
    /// Is the run whole?
    Run,
    /// How well are the figures known?
    Confidence,
    /// Did the device, a stream or a request stall?
    Stalls,
    /// Did a cache answer?
    Caches,
    /// Are cells below what their neighbours promise?
    Gaps,
    /// What is the bottleneck?
    Limits,
    /// Is one device of an array slower?
    Members,
    /// What do streams that run at the same time cost each other?
    Interference,
    /// Did rates change during the run?
    Drift,
    /// Was a steady state reached?
    Steady,
    /// How long do requests wait?
    Waits,
    /// What differs between runs?
    Differences,
    /// How do limits follow a factor?
    Elasticity,
    /// Which factor matters?
    Factors,
    /// How far do runs of one thing lie apart?
    Spread,
    /// At which run did a level change?
    History,
    /// What is common to the runs of a list of suites?
    Group,
    /// Is one faster than the other?
    Comparison,
    /// How noisy is the machine?
    Calibration,
    /// What is wrong with a stack?
    Advice,
}

impl Question {
    /// The heading of its section.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Answer => "The answer",
            Self::Run => "The run itself",
            Self::Confidence => "How sure",
            Self::Stalls => "Stalls",
            Self::Caches => "Caches",
            Self::Gaps => "Gaps",
            Self::Limits => "What limits",
            Self::Members => "Members",
            Self::Interference => "Streams beside each other",
            Self::Drift => "Changes and drift",
            Self::Steady => "Steady state",
            Self::Waits => "Waits",
            Self::Differences => "What differs",
            Self::Elasticity => "Which layer",
            Self::Factors => "Which factor matters",
            Self::Spread => "How alike",
            Self::History => "History",
            Self::Group => "What is common",
            Self::Comparison => "Comparison",
            Self::Calibration => "Calibration",
            Self::Advice => "Advice",
        }
    }

    /// Kinds of figures that show its answer, the best first.
    pub const fn figures(self) -> &'static [&'static str] {
        match self {
            Self::Answer => &["line", "roofline", "size", "bars"],
            Self::Run => &["order", "about"],
            Self::Confidence => &["size", "bars"],
            Self::Stalls => &["time", "latencies", "order"],
            Self::Caches => &["heat", "size", "bars"],
            Self::Gaps => &["heat", "size"],
            Self::Limits => &["roofline", "stack", "size"],
            Self::Members => &["stack", "bars"],
            Self::Interference => &["bars"],
            Self::Drift => &["order", "time"],
            Self::Steady => &["rounds", "written"],
            Self::Waits => &["exposure", "distribution", "latencies"],
            Self::Differences => &["compare", "about"],
            Self::Elasticity
            | Self::Factors
            | Self::Spread
            | Self::History
            | Self::Group
            | Self::Comparison => &["compare", "size", "bars"],
            Self::Calibration | Self::Advice => &[],
        }
    }
}
