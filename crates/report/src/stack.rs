//! A stack as a tree of text.

use std::collections::BTreeSet;

use explain::advice::Advice;
use record::stack::{
    Controller, Disk, FileSystem, Layer, LoopDevice, Mapper, Md, Partition, Pool, Queue, Segment,
    Setting, StackHost, StackTree, Throttle, What, Wire,
};
use schemars::JsonSchema;
use serde::Serialize;
use units::Bytes;

use crate::text::plain;

/// The name of the contract.
pub const PROBE_SCHEMA: &str = "plimsoll.probe/1";

/// What `plimsoll probe --json` prints. Bytes and ns are integers; what is not known is null or
/// empty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "plimsoll.probe/1")]
pub struct ProbeDocument {
    /// Always `plimsoll.probe/1`.
    #[schemars(extend("const" = PROBE_SCHEMA))]
    pub schema: String,
    /// The stack.
    pub stack: StackTree,
    /// What is wrong with it, what matters most first.
    pub advice: Vec<Advice>,
}

/// A stack and the advice on it, as a document.
pub fn document(stack: StackTree, advice: Vec<Advice>) -> ProbeDocument {
    ProbeDocument { schema: PROBE_SCHEMA.to_owned(), stack, advice }
}

/// The contract itself.
pub fn probe_schema() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<ProbeDocument>()
}

/// How much of a tree is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A line a layer.
    Brief,
    /// The settings of each layer, the machine around, and what was not seen.
    Full,
}

/// The tree, line by line, ends of lines included. Names that somebody may have made up for a
/// terminal are made harmless.
pub fn stack(tree: &StackTree, detail: Detail) -> String {
    let mut writer = Writer { tree, detail, told: BTreeSet::new(), out: Vec::new() };
    for target in &tree.targets {
        if tree.targets.len() > 1 || detail == Detail::Full {
            let is = (target.given != target.resolved).then(|| format!(" is {}", target.resolved));
            writer.out.push(format!("{}{}", target.given, is.unwrap_or_default()));
        }
        if target.on.is_empty() {
            writer.out.push("   nothing is known of what is below".to_owned());
        }
        for (position, id) in target.on.iter().enumerate() {
            writer.layer(id, "", position + 1 == target.on.len());
        }
    }
    if detail == Detail::Full {
        writer.out.extend(host(&tree.host));
        writer.out.extend(tree.throttles.iter().map(throttle));
        if !tree.unseen.is_empty() {
            writer.out.push("not seen".to_owned());
            let unseen = tree.unseen.iter();
            writer.out.extend(unseen.map(|one| format!("   {}: {}", one.what, one.why)));
        }
    }
    writer.out.iter().map(|line| plain(line) + "\n").collect()
}

struct Writer<'a> {
    tree: &'a StackTree,
    detail: Detail,
    told: BTreeSet<String>,
    out: Vec<String>,
}

impl Writer<'_> {
    fn layer(&mut self, id: &str, indent: &str, is_last: bool) {
        let (branch, further) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let Some(layer) = self.tree.layer(id) else {
            self.out.push(format!("{indent}{branch}{id}: not seen"));
            return;
        };
        if !self.told.insert(layer.id.clone()) {
            self.out.push(format!("{indent}{branch}{id}: see above"));
            return;
        }
        self.out.push(format!("{indent}{branch}{}", head(layer)));
        let indent = format!("{indent}{further}");
        let rail = if layer.below.is_empty() { " " } else { "│" };
        if self.detail == Detail::Full {
            let details =
                details(layer).into_iter().map(|text| format!("{indent}{rail}    {text}"));
            self.out.extend(details.collect::<Vec<_>>());
        }
        for (position, below) in layer.below.iter().enumerate() {
            self.layer(below, &indent, position + 1 == layer.below.len());
        }
    }
}

fn size(bytes: u64) -> String {
    Bytes::new(bytes).to_string()
}

/// Parts that are there, with commas.
fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// A layer on one line: `md127: raid5, 4 members, chunk 64 KiB, 2.73 TiB`.
pub fn head(layer: &Layer) -> String {
    let what = match &layer.what {
        What::FileSystem(found) => file_system(found),
        What::Mapper(found) => mapper(found),
        What::Md(found) => md(found),
        What::Partition(found) => partition(found),
        What::Loop(found) => loop_device(found),
        What::Disk(found) => disk(found, layer.queue.as_ref()),
        What::Controller(found) => controller(found),
        What::Memory { name } => format!("memory ({name})"),
        _ => layer.kind().to_owned(),
    };
    let bytes = layer.size_bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
    format!("{}: {what}{bytes}", layer.id)
}

fn file_system(found: &FileSystem) -> String {
    let stripe = match (found.stripe_unit_bytes, found.stripe_width_bytes) {
        (Some(0), _) | (_, Some(0)) | (None, None) => None,
        (Some(unit), Some(width)) => Some(format!("stripe {} of {}", size(unit), size(width))),
        (Some(unit), None) => Some(format!("stripe unit {}", size(unit))),
        (None, Some(width)) => Some(format!("stripe width {}", size(width))),
    };
    joined([
        Some(found.kind.clone()),
        found.pool.as_ref().map(pool),
        found.block_bytes.map(|bytes| format!("blocks of {}", size(bytes))),
        stripe,
        found.journal.as_ref().map(|journal| format!("journal on {journal}")),
    ])
}

fn pool(found: &Pool) -> String {
    let list = |what: &str, parts: &[String]| {
        (!parts.is_empty()).then(|| format!("{what} {}", parts.join(" + ")))
    };
    joined([
        found.name.as_ref().map(|name| format!("pool {name}")),
        found.state.clone(),
        list("data", &found.data),
        list("metadata", &found.metadata),
        list("beside", &found.beside),
    ])
}

fn mapper(found: &Mapper) -> String {
    let maker = match found.maker.as_deref() {
        Some("LVM") => "LVM volume",
        Some("CRYPT") => "encrypted (dm-crypt)",
        Some("mpath") => "multipath",
        _ => "device mapper",
    };
    let layout = match found.segments.as_deref() {
        Some([one]) => Some(segment(one)),
        Some(many) if many.len() > 1 => {
            let mut kinds: Vec<String> = many.iter().map(segment).collect();
            kinds.dedup();
            Some(format!("{} parts: {}", many.len(), kinds.join("; ")))
        }
        _ => None,
    };
    joined([Some(format!("{maker} {}", found.name)), layout])
}

fn segment(found: &Segment) -> String {
    let chunk = found.chunk_bytes.map(|bytes| format!(", chunk {}", size(bytes)));
    let what = found.level.clone().unwrap_or_else(|| found.target.clone());
    let over = if found.on.len() > 1 { format!(" over {}", found.on.len()) } else { String::new() };
    format!("{what}{over}{}", chunk.unwrap_or_default())
}

fn md(found: &Md) -> String {
    let level = if found.level.is_empty() { "not running" } else { &found.level };
    let missing = found.missing.filter(|&n| n > 0).map(|n| format!("{n} missing"));
    let spares = found.members.iter().filter(|member| member.slot.is_none()).count();
    joined([
        Some(format!("md {level}")),
        found.wanted.map(|n| format!("{n} members")),
        missing,
        (spares > 0).then(|| format!("{spares} spare or failed")),
        found.chunk_bytes.map(|bytes| format!("chunk {}", size(bytes))),
        found.sync.clone().filter(|sync| sync != "idle"),
    ])
}

fn partition(found: &Partition) -> String {
    let start = found.start_bytes.map(|bytes| format!(" from byte {bytes}"));
    format!("partition{}", start.unwrap_or_default())
}

fn loop_device(found: &LoopDevice) -> String {
    let how = match found.direct {
        Some(true) => ", direct",
        Some(false) => ", through the page cache",
        None => "",
    };
    match &found.file {
        Some(file) => format!("loop over {file}{how}"),
        None => "loop, unattached".to_owned(),
    }
}

fn disk(found: &Disk, queue: Option<&Queue>) -> String {
    let name: Vec<&str> =
        [&found.vendor, &found.model].into_iter().filter_map(|part| part.as_deref()).collect();
    let turns = match queue.and_then(|queue| queue.rotational) {
        Some(true) => Some("rotational"),
        Some(false) => Some("not rotational"),
        None => None,
    };
    let name = if name.is_empty() { "disk".to_owned() } else { name.join(" ") };
    joined([
        Some(name),
        found.known_as.clone(),
        found.transport.clone(),
        found.wire.as_ref().map(wire),
        turns.map(str::to_owned),
    ])
}

fn wire(found: &Wire) -> String {
    match &found.capable {
        Some(capable) if capable.name != found.now.name => {
            format!("{} (could {})", found.now.name, capable.name)
        }
        _ => found.now.name.clone(),
    }
}

fn controller(found: &Controller) -> String {
    joined([
        Some(format!("{} {}", found.bus, found.class.as_deref().unwrap_or("device"))),
        found.device.clone(),
        found.driver.as_ref().map(|driver| format!("driver {driver}")),
        found.slot.as_ref().map(|slot| format!("slot {slot}")),
        found.wire.as_ref().map(wire),
        found.numa_node.map(|node| format!("NUMA node {node}")),
        found.emulated.then(|| "emulated".to_owned()),
    ])
}

/// The settings of a layer, some to a line.
fn details(layer: &Layer) -> Vec<String> {
    let mut out = match &layer.what {
        What::FileSystem(found) => {
            let pool = found.pool.iter().flat_map(|pool| &pool.settings);
            let settings: Vec<String> =
                pool.map(|set| format!("{}={}", set.name, set.value)).collect();
            vec![found.options.join(","), found.features.join(" "), settings.join(" ")]
        }
        What::Md(found) => vec![md_details(found)],
        What::Disk(found) => vec![disk_details(found), found.known_limits.join("; ")],
        _ => Vec::new(),
    };
    out.extend(layer.queue.as_ref().map(limits));
    out.extend(layer.queue.as_ref().map(settings));
    out.retain(|line| !line.is_empty());
    out
}

fn md_details(found: &Md) -> String {
    joined([
        found.state.clone(),
        found.metadata.as_ref().map(|version| format!("metadata {version}")),
        found.bitmap.as_ref().map(|kind| format!("bitmap {kind}")),
        found.stripe_cache_pages.map(|pages| format!("stripe cache {pages} pages")),
        found.data_width_bytes().map(|bytes| format!("data width {}", size(bytes))),
    ])
}

fn disk_details(found: &Disk) -> String {
    joined([
        found.firmware.as_ref().map(|version| format!("firmware {version}")),
        found.serial.as_ref().map(|serial| format!("serial {serial}")),
        found.driver.as_ref().map(|driver| format!("driver {driver}")),
        found.queue_depth.map(|n| format!("queue depth {n}")),
        found.queues.filter(|&n| n > 1).map(|n| format!("{n} queues")),
        found.cache.as_ref().map(|cache| format!("its own cache {cache}")),
    ])
}

fn limits(queue: &Queue) -> String {
    let sectors = queue.logical_sector_bytes.zip(queue.physical_sector_bytes);
    let optimal = queue.optimal_io_bytes.filter(|&bytes| bytes > 0);
    let zoned = queue.zoned.clone().filter(|kind| kind != "none");
    joined([
        sectors.map(|(logical, physical)| format!("sectors {logical}/{physical}")),
        queue.minimum_io_bytes.map(|bytes| format!("minimum I/O {}", size(bytes))),
        optimal.map(|bytes| format!("optimal I/O {}", size(bytes))),
        queue.request_bytes_max.map(|bytes| format!("requests up to {}", size(bytes))),
        zoned.map(|kind| format!("zoned {kind}")),
    ])
}

fn settings(queue: &Queue) -> String {
    let discard = match queue.discard_bytes_max {
        Some(0) => Some("no discard".to_owned()),
        Some(_) => Some("discard".to_owned()),
        None => None,
    };
    joined([
        queue.scheduler.as_ref().map(|name| format!("scheduler {name}")),
        queue.requests.map(|n| format!("{n} requests")),
        queue.read_ahead_bytes.map(|bytes| format!("read-ahead {}", size(bytes))),
        queue.write_cache.as_ref().map(|mode| format!("cache {mode}")),
        discard,
        queue.io_poll.filter(|&can| can).map(|_| "can be polled".to_owned()),
        queue.read_only.then(|| "read-only".to_owned()),
    ])
}

fn host(found: &StackHost) -> Vec<String> {
    let list = |what: &str, words: &[String]| {
        (!words.is_empty()).then(|| format!("{what} {}", words.join(" ")))
    };
    let named = |pairs: &[Setting], between: &str| {
        let pairs = pairs.iter().map(|set| format!("{}{between}{}", set.name, set.value));
        pairs.collect::<Vec<_>>().join("; ")
    };
    let settings = named(&found.settings, " ");
    let faults = named(&found.vulnerabilities, ": ");
    let lines = [
        joined([
            found.kernel.as_ref().map(|version| format!("kernel {version}")),
            found.product.clone(),
            found.within.as_ref().map(|within| format!("within {within}")),
            found.numa_nodes.filter(|&n| n > 1).map(|n| format!("{n} NUMA nodes")),
            list("governor", &found.governors),
            list("with", &found.mitigations),
        ]),
        settings,
        faults,
    ];
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    let mut out: Vec<String> = lines.map(|line| format!("   {line}")).collect();
    if !out.is_empty() {
        out.insert(0, "around".to_owned());
    }
    out
}

fn throttle(found: &Throttle) -> String {
    let value = match found.of.as_str() {
        "bytes read" | "bytes written" => size(found.per_second),
        _ => found.per_second.to_string(),
    };
    format!("   limit of group {}: {} {value} a second on {}", found.group, found.of, found.device)
}
