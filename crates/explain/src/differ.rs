//! What differs between two runs: machine, stack, plan, program.
//!
//! A comparison of rates says that something made a difference; only this says what it can have
//! been. When several things changed together, none of them can be credited.

mod layers;
mod load;
mod plan;

use std::collections::BTreeMap;

use finding::{Code, Finding, Value};
use record::{Run, RunHeader, TargetKind, TargetRecord};
use schemars::JsonSchema;
use serde::Serialize;
use units::Bytes;

use crate::places::Told;
use crate::view::is_preparation;

/// What differs between two runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Differences {
    /// The first run's id.
    pub left: String,
    /// The second run's id.
    pub right: String,
    /// Everything recorded that differs and could make a difference: stack, machine, plan,
    /// program. The seed and how often a cell is visited are none.
    pub factors: Vec<Factor>,
    /// The back end in force, where it was left to us in both runs and followed from something
    /// among the factors.
    pub followed: Option<Factor>,
    /// Which of the two another tool made: of those only what that tool said is held against the
    /// other.
    pub imported: Vec<String>,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Factor {
    /// Where it belongs.
    pub kind: Kind,
    /// What it is: `file system`, `mount options`, or a field of the suite with the phase it
    /// belongs to: `phase.read.access.kind`; `phase.*` where all phases changed alike.
    pub name: String,
    /// In the first run; `none` where it has no such thing.
    pub left: String,
    /// In the second run.
    pub right: String,
}

/// Where a factor belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The target and everything below it.
    Stack,
    /// The host: processors, memory, kernel.
    Machine,
    /// What was asked for.
    Plan,
    /// Plimsoll itself.
    Program,
}

/// A longer list of factors is not read; of such the [`TELLING`] first are shown.
const LIST_MAX: usize = 8;
const TELLING: usize = 5;
/// Fields that say how requests reach the kernel.
const OF_KERNEL: [&str; 3] = ["backend", "direct", "write_through"];
/// Value of what is not there.
const NONE: &str = "none";

/// What differs between two runs, as far as it was recorded.
pub fn differences(a: &Run, b: &Run) -> Differences {
    between(&Told::new(a), &Told::new(b))
}

/// What differs between two runs whose plans were read already.
pub(crate) fn between(a: &Told<'_>, b: &Told<'_>) -> Differences {
    let (left, right) = (&a.run.header, &b.run.header);
    if left.imported.is_some() || right.imported.is_some() {
        return of_imported(a, b);
    }
    let mut factors = stack(&left.target, &right.target);
    factors.extend(machine(left, right));
    if let (Some(left), Some(right)) = (&left.stack, &right.stack) {
        factors.extend(layers::layers(left, right));
    }
    if let Some(varied) = crate::study::varied(left, right) {
        // What a stack brings with it follows from its levels; names are given anew with each.
        factors.retain(|factor| {
            factor.kind != Kind::Stack
                || varied.is_empty() && !crate::study::NAMES.contains(&factor.name.as_str())
        });
        let level = |(name, left, right): (String, String, String)| Factor {
            kind: Kind::Stack,
            name,
            left,
            right,
        };
        factors.extend(varied.into_iter().map(level));
    }
    let sized = |name: &str| factors.iter().any(|factor| factor.name == name);
    let (size, files) = (sized("size"), sized("files"));
    let mut plan = plan::plan(a, b);
    // The same fact once: the suite's wish, or what came of it.
    plan.retain(|f| !(size && f.name == "file_size" || files && f.name == "file_count"));
    let twins = [left, right].map(|header| header.target.kind == TargetKind::Twin);
    if twins == [true, true] {
        // A twin has no kernel that would mind.
        plan.retain(|f| !OF_KERNEL.iter().any(|key| ends(&f.name, key)));
    }
    let asked = plan.iter().any(|f| ["backend", "direct"].iter().any(|key| ends(&f.name, key)));
    factors.extend(plan);
    let mut met = if asked || twins != [false, false] { None } else { back_ends(a.run, b.run) };
    // Nobody chose it, so it changed because something else did; if nothing did, it is a factor.
    let automatic = [left, right].iter().all(|header| is_automatic(header));
    let followed = met.take_if(|_| automatic && !factors.is_empty());
    factors.extend(met);
    factors.extend(manner(left, right));
    factors.extend(factor(Kind::Program, "version", &left.program, &right.program));
    factors.sort();
    let (left, right) = (left.id.clone(), right.id.clone());
    Differences { left, right, factors, followed, imported: Vec::new() }
}

/// How the two were told to play: what the command says of it and the suite does not.
fn manner(left: &RunHeader, right: &RunHeader) -> Vec<Factor> {
    const OPTIONS: [(&str, &str, &str); 3] = [
        ("--tolerate", "errors tolerated", "0"),
        ("--cpus", "processors of workers", "any"),
        ("--hang-limit", "longest wait for requests that do not come back", "30s"),
    ];
    let of = |header: &RunHeader, option: &str, usual: &str| {
        let mut words = header.command_line.iter();
        let value = words.find_map(|word| match word.strip_prefix(option)? {
            "" => Some(None),
            rest => rest.strip_prefix('=').map(|value| Some(value.to_owned())),
        });
        // The value is the word after, unless it stood behind `=`.
        let value = value.and_then(|value| value.or_else(|| words.next().cloned()));
        value.unwrap_or_else(|| usual.to_owned())
    };
    let differs = |(option, name, usual): &(&str, &str, &str)| {
        let name = format!("{name} ({option})");
        factor(Kind::Plan, &name, &of(left, option, usual), &of(right, option, usual))
    };
    OPTIONS.iter().filter_map(differs).collect()
}

/// What differs by what both tell: of the plan no more than that, and no back end, since another
/// tool's words for it are not ours.
fn of_imported(a: &Told<'_>, b: &Told<'_>) -> Differences {
    let (left, right) = (&a.run.header, &b.run.header);
    let nothing = ["", "0", NONE, kind_name(TargetKind::Unknown)];
    let zero = [Bytes::new(0).exact(), Bytes::new(0).to_string()];
    let told = |header: &RunHeader, value: &str| {
        header.imported.is_none()
            || !(nothing.contains(&value) || zero.iter().any(|zero| zero == value))
    };
    let mut factors = stack(&left.target, &right.target);
    factors.extend(machine(left, right));
    factors.retain(|f| told(left, &f.left) && told(right, &f.right));
    let places = ["devices", "mount point", "file", "target"];
    if !factors.iter().any(|f| places.contains(&f.name.as_str())) {
        // What only one of them tells of its kind or place names neither: the label does.
        let named = |header: &RunHeader| match &header.target {
            target if target.resolved.is_empty() => target.given.clone(),
            target => target.resolved.clone(),
        };
        let found = factor(Kind::Stack, "target", &named(left), &named(right));
        factors.extend(found.filter(|f| !f.left.is_empty() && !f.right.is_empty()));
    }
    factors.extend(factor(Kind::Plan, "suite", &left.suite, &right.suite));
    factors.extend(load::loads(a, b));
    factors.extend(plan::not_shared(a, b));
    factors.extend(factor(Kind::Program, "tool", &tool(left), &tool(right)));
    factors.sort();
    let imported = [left, right].into_iter().filter(|header| header.imported.is_some());
    Differences {
        left: left.id.clone(),
        right: right.id.clone(),
        factors,
        followed: None,
        imported: imported.map(|header| header.id.clone()).collect(),
    }
}

fn tool(header: &RunHeader) -> String {
    match &header.imported {
        None => format!("plimsoll {}", header.program),
        Some(imported) => {
            let version = imported.version.as_ref().map(|version| format!(" {version}"));
            imported.tool.clone() + &version.unwrap_or_default()
        }
    }
}

impl Differences {
    /// Whether nothing that is recorded differs.
    pub fn is_none(&self) -> bool {
        self.factors.is_empty()
    }

    /// How much can be concluded about causes, then what differs.
    pub fn findings(&self) -> Vec<Finding> {
        let runs = [self.left.clone(), self.right.clone()];
        let mut found = vec![match self.factors.as_slice() {
            [] if !self.imported.is_empty() => {
                Finding::new(Code::NothingSharedDiffers).with("runs", runs.as_slice())
            }
            [] => return vec![Finding::new(Code::NothingDiffers).with("runs", runs.as_slice())],
            [one] => self.thing(Code::OneThingDiffers, one),
            many => {
                let mut telling: Vec<&Factor> = many.iter().collect();
                if many.len() > LIST_MAX {
                    telling.sort_by_key(|factor| factor.rank());
                    telling.truncate(TELLING);
                }
                let more = many.len() - telling.len();
                let things = telling.iter().map(|one| {
                    let (name, left, right) = (&one.name, &one.left, &one.right);
                    Value::record([
                        ("name", name.into()),
                        ("from", left.into()),
                        ("to", right.into()),
                    ])
                });
                self.of_runs(Code::SeveralThingsDiffer)
                    .with("n", many.len())
                    .with("things", things.collect::<Vec<_>>())
                    .with("more", more)
            }
        }];
        found.extend(self.followed.iter().map(|one| self.thing(Code::BackEndFollowed, one)));
        found.extend((!self.imported.is_empty()).then(|| {
            Finding::new(Code::RunsImported)
                .with("runs", self.imported.as_slice())
                .with("several", self.imported.len() > 1)
        }));
        let plans = self.factors.iter().any(|factor| factor.kind == Kind::Plan);
        found.extend(plans.then(|| Finding::new(Code::PlansDiffer)));
        found
    }

    /// The same as text.
    pub fn sentences(&self) -> Vec<String> {
        finding::texts(&self.findings())
    }

    /// One thing that differs between the two.
    pub(crate) fn thing(&self, code: Code, factor: &Factor) -> Finding {
        let found = self.of_runs(code).with("name", &factor.name);
        found.with("from", &factor.left).with("to", &factor.right)
    }

    fn of_runs(&self, code: Code) -> Finding {
        Finding::new(code).with("left", &self.left).with("right", &self.right)
    }
}

impl Factor {
    /// How much a factor tells by itself: small first.
    fn rank(&self) -> (usize, Kind) {
        const FIRST: [&str; 8] = [
            "suite",
            "kind of target",
            "devices",
            "target",
            "file system",
            "size",
            "host",
            "file_size",
        ];
        let place = FIRST.iter().position(|name| *name == self.name);
        (place.unwrap_or(FIRST.len()), self.kind)
    }
}

fn factor(kind: Kind, name: &str, left: &str, right: &str) -> Option<Factor> {
    (left != right).then(|| Factor {
        kind,
        name: name.to_owned(),
        left: left.to_owned(),
        right: right.to_owned(),
    })
}

fn option(kind: Kind, name: &str, left: Option<String>, right: Option<String>) -> Option<Factor> {
    let or_none = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
    factor(kind, name, &or_none(left), &or_none(right))
}

fn stack(left: &TargetRecord, right: &TargetRecord) -> Vec<Factor> {
    let mut out = Vec::new();
    let mut add = |name: &str, of: &dyn Fn(&TargetRecord) -> Option<String>| {
        let found = option(Kind::Stack, name, of(left), of(right));
        let differs = found.is_some();
        out.extend(found);
        differs
    };
    let chain = |t: &TargetRecord| (!t.devices.is_empty()).then(|| t.devices.join(" > "));
    let bytes = |n: u64| Bytes::new(n).exact();
    let mut elsewhere = add("kind of target", &|t| Some(kind_name(t.kind).to_owned()));
    elsewhere |= add("devices", &chain);
    add("file system", &|t| t.file_system.clone());
    add("link", &|t| t.link.as_ref().map(|l| l.name.clone()));
    add("declared cache", &|t| t.cache_bytes.map(bytes));
    add("size", &|t| Some(bytes(t.size_bytes)));
    add("files", &|t| Some(t.files.to_string()));
    if !elsewhere {
        // A run that made its file had none to ask: what nobody recorded is no difference.
        if left.direct_alignment.is_some() && right.direct_alignment.is_some() {
            add("unit of direct I/O", &|t| t.direct_alignment.map(|n| bytes(n.into())));
        }
        // Another device has another place anyway: only on the same one is the place a factor.
        elsewhere = add("mount point", &|t| mount(t).map(|(point, _)| point));
    }
    if !elsewhere {
        let name = if left.kind == TargetKind::File { "file" } else { "target" };
        elsewhere = add(name, &|t| Some(t.resolved.clone()));
    }
    if !elsewhere {
        out.extend(models(left, right));
    }
    out.extend(mount_options(left, right));
    out.extend(remarks(left, right));
    out
}

pub(crate) fn kind_name(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::CharacterDevice => "character device",
        TargetKind::Twin => "simulated",
        TargetKind::Database => "database",
        TargetKind::Unknown => "unknown",
    }
}

/// Mount point and options of `/srv (rw,noatime)`.
fn mount(target: &TargetRecord) -> Option<(String, Vec<String>)> {
    let text = target.mount.as_deref()?;
    let Some((point, options)) = text.rsplit_once(" (") else {
        return Some((text.to_owned(), Vec::new()));
    };
    let mut options: Vec<String> =
        options.trim_end_matches(')').split(',').map(str::to_owned).collect();
    options.sort();
    Some((point.to_owned(), options))
}

/// Only the options that one side has and the other has not.
fn mount_options(left: &TargetRecord, right: &TargetRecord) -> Option<Factor> {
    let options = |t| mount(t).map(|(_, options)| options).unwrap_or_default();
    let (left, right) = (options(left), options(right));
    only_in_one(Kind::Stack, "mount options", &left, &right, ",")
}

fn only_in_one(
    kind: Kind,
    name: &str,
    left: &[String],
    right: &[String],
    with: &str,
) -> Option<Factor> {
    let only = |mine: &[String], theirs: &[String]| {
        let mine: Vec<_> = mine.iter().filter(|word| !theirs.contains(word)).cloned().collect();
        (!mine.is_empty()).then(|| mine.join(with))
    };
    option(kind, name, only(left, right), only(right, left))
}

/// Words in a model, about it.
const OF_MODEL: [&str; 3] = ["schema", "name", "why"];

/// What a simulated device was told to do, field by field, where one place was edited between two
/// runs.
fn models(left: &TargetRecord, right: &TargetRecord) -> Vec<Factor> {
    let (Some(ours), Some(theirs)) = (&left.model, &right.model) else { return Vec::new() };
    let fields = |text: &str| {
        let mut fields = plan::fields(text)?;
        fields.retain(|path, _| !OF_MODEL.contains(&path.as_str()));
        Some(fields)
    };
    match (fields(ours), fields(theirs)) {
        (Some(ours), Some(theirs)) => by_key(Kind::Stack, &ours, &theirs),
        // Text that cannot be read any more is held against the other as it is.
        _ => factor(Kind::Stack, "model", ours.trim(), theirs.trim()).into_iter().collect(),
    }
}

/// Remarks of the form `scheduler: none` are facts with a name; others are compared whole.
fn remarks(left: &TargetRecord, right: &TargetRecord) -> Vec<Factor> {
    let named = |t: &TargetRecord| {
        let pairs = t.remarks.iter().filter_map(|r| r.split_once(": "));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let (named_left, named_right): (BTreeMap<_, _>, BTreeMap<_, _>) = (named(left), named(right));
    let plain = |t: &TargetRecord| {
        t.remarks.iter().filter(|r| !r.contains(": ")).cloned().collect::<Vec<_>>()
    };
    let mut out = by_key(Kind::Stack, &named_left, &named_right);
    out.extend(only_in_one(Kind::Stack, "remark", &plain(left), &plain(right), "; "));
    out
}

fn by_key(
    kind: Kind,
    left: &BTreeMap<String, String>,
    right: &BTreeMap<String, String>,
) -> Vec<Factor> {
    let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    let value = |of: &BTreeMap<String, String>, key: &String| of.get(key).cloned();
    keys.into_iter().filter_map(|k| option(kind, k, value(left, k), value(right, k))).collect()
}

fn machine(left: &RunHeader, right: &RunHeader) -> Vec<Factor> {
    let (a, b) = (&left.machine, &right.machine);
    let memory = |n: u64| Bytes::new(n).to_string();
    let found = [
        factor(Kind::Machine, "host", &a.host, &b.host),
        factor(Kind::Machine, "kernel", &a.kernel, &b.kernel),
        factor(Kind::Machine, "architecture", &a.architecture, &b.architecture),
        factor(Kind::Machine, "processor", &a.processor, &b.processor),
        factor(Kind::Machine, "processors", &a.processors.to_string(), &b.processors.to_string()),
        // Kernels of one machine keep different amounts for themselves: three digits are enough.
        factor(Kind::Machine, "memory", &memory(a.memory_bytes), &memory(b.memory_bytes)),
    ];
    found.into_iter().flatten().collect()
}

fn ends(path: &str, key: &str) -> bool {
    path.rsplit('.').next() == Some(key)
}

/// Whether no phase and no stream of a suite names a back end.
fn is_automatic(header: &RunHeader) -> bool {
    let named = |(path, value): (&String, &String)| ends(path, "backend") && value != "auto";
    plan::fields(&header.suite_text).is_some_and(|fields| !fields.iter().any(named))
}

/// Which back ends were in force, where the plan does not already say why they differ.
fn back_ends(a: &Run, b: &Run) -> Option<Factor> {
    let met = |run: &Run| {
        // A fill has a back end of its own, and one of two may have found its file full.
        // Cells of phases that only one has are in no comparison.
        let counts = |cell: &&record::CellRecord| {
            let both = [a, b].iter().all(|run| run.cells.iter().any(|c| c.phase == cell.phase));
            both && !is_preparation(&cell.phase)
        };
        let counted: std::collections::BTreeSet<u32> =
            run.cells.iter().filter(counts).map(|cell| cell.index).collect();
        let measured = run.visits.iter().filter(|visit| counted.contains(&visit.cell));
        let streams = measured.flat_map(|visit| &visit.streams);
        let name = |s: &record::StreamRecord| {
            format!("{} {}", s.backend.name, if s.backend.direct { "direct" } else { "buffered" })
        };
        let all: std::collections::BTreeSet<_> = streams.map(name).collect();
        (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(" and "))
    };
    let (left, right) = (met(a)?, met(b)?);
    factor(Kind::Plan, "back end", &left, &right)
}
