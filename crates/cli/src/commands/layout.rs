//! `plimsoll layout`

use std::fmt::Write;

use clap::Args;
use layout::sheet::Question;
use layout::steps::{self, Action, Undo};
use layout::{
    ArrayState, DeviceFacts, DeviceId, Estimate, FileSystem, FileSystemKind, Leg, Level, Maker,
    MeanCost, Names, Pace, Settings, Sheet, StackSpec, Stripe, shell_word, spaced,
};
use report::{Columns, plain, three_digits, wrapped};
use stack::build::Allowed;
use units::{ByteOffset, Bytes, Nanos};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll layout raid5 --members 4                       # what it is worth, what writes cost
  plimsoll layout raid6 --members 6 --legs 2 --stripe lvm --file-system xfs
  plimsoll layout raid10 --members 8 --chunk 64KiB --member-size 146GB --member-rate 120MB
  plimsoll layout raid5 --members 5 --file-system ext4 --device /dev/sdb --device /dev/sdc
        --device /dev/sdd --device /dev/sde --device /dev/sdf --commands
  plimsoll layout device --legs 2 --stripe lvm --stripe-chunk 512KiB --file-system xfs
  plimsoll layout raid5 --members 5 --misaligned-by 192KiB  # what an old LVM header costs
  plimsoll layout raidz1 --members 4 --maker zfs --json | jq .capacity";

/// Chunk where nothing else is said: what the published studies used most.
const CHUNK: &str = "128KiB";

/// Work out an array: capacity, widths, what writes cost, and the exact commands
///
/// Nothing is looked at and nothing is run. The commands are for today's mdadm, LVM and mkfs; with
/// --device they name your devices and are ready to be copied, each with what it destroys.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LayoutArgs {
    /// linear, raid0, raid1, raid10, raid01, raid5, raid6 (or raidz1, raidz2), or `device` for
    /// legs that are devices already, such as arrays of a controller
    #[arg(value_name = "LEVEL")]
    level: String,
    /// Devices in each leg, spares not counted
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// Bytes on one member before the next
    #[arg(long, value_name = "SIZE", help = format!("Bytes on one member before the next [default: {CHUNK}]"))]
    chunk: Option<Bytes>,
    /// What makes the array: md, lvm, btrfs or zfs
    #[arg(long, value_name = "NAME", default_value = "md")]
    maker: String,
    /// Hot spares of each leg
    #[arg(long, value_name = "N", default_value_t = 0)]
    spares: usize,
    /// Arrays like this side by side, joined by --stripe
    #[arg(long, value_name = "N", default_value_t = 1)]
    legs: usize,
    /// What joins the legs: md, lvm or zfs
    #[arg(long, value_name = "NAME")]
    stripe: Option<String>,
    /// How legs are joined: raid0, or raid1 for a mirror of them
    #[arg(long, value_name = "LEVEL", default_value = "raid0", requires = "stripe")]
    stripe_level: String,
    /// Bytes on one leg before the next [default: the data width of a leg; 64KiB over legs without
    /// stripes and over devices, whose stripes are not known]
    #[arg(long, value_name = "SIZE", requires = "stripe")]
    stripe_chunk: Option<Bytes>,
    /// ext2, ext3, ext4, xfs, jfs, btrfs, nilfs2, f2fs or zfs
    #[arg(long, value_name = "NAME")]
    file_system: Option<String>,
    /// Options to mount with: noatime,nobarrier
    #[arg(long, value_name = "OPTIONS", value_delimiter = ',', requires = "file_system")]
    mount: Vec<String>,
    /// Another word for mkfs; may be repeated
    #[arg(long, value_name = "WORD", requires = "file_system", allow_hyphen_values = true)]
    mkfs_option: Vec<String>,
    /// I/O scheduler of the members
    #[arg(long, value_name = "NAME", help_heading = "Settings")]
    scheduler: Option<String>,
    /// Read-ahead of the topmost device
    #[arg(long, value_name = "SIZE", help_heading = "Settings")]
    read_ahead: Option<Bytes>,
    /// Requests that a member's scheduler may hold
    #[arg(long, value_name = "N", help_heading = "Settings")]
    nr_requests: Option<u32>,
    /// Bytes of each device
    #[arg(long, value_name = "SIZE", default_value = "1TB", help_heading = "The devices")]
    member_size: Bytes,
    /// What a device reads and writes in sequence, per second: 120MB; for rebuild times
    #[arg(long, value_name = "SIZE", help_heading = "The devices")]
    member_rate: Option<Bytes>,
    /// The devices, leg by leg, spares of a leg after its members; without them names are made up
    #[arg(long, value_name = "PATH", help_heading = "The devices")]
    device: Vec<String>,
    /// Sizes of writes to cost; a list: 4KiB,8KiB [default: 512B to 4MiB]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Output")]
    write: Vec<Bytes>,
    /// How far behind a full stripe of a leg data begins
    #[arg(long, value_name = "SIZE", default_value = "0", help_heading = "Output")]
    misaligned_by: Bytes,
    /// Print the commands alone
    #[arg(long, conflicts_with_all = ["json", "undo"], help_heading = "Output")]
    commands: bool,
    /// Print the commands that take it down again, alone
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    undo: bool,
    /// Print one JSON document (plimsoll.layout/1)
    #[arg(long, help_heading = "Output")]
    json: bool,
}

pub fn layout(args: &LayoutArgs, output: &Output) -> Result<(), Failure> {
    let stack = stack(args)?;
    let facts = DeviceFacts::assumed(stack.devices(), args.member_size);
    let names = Names::new("layout").map_err(|error| usage(&error, error.hint()))?;
    check_words(&stack, &names)?;
    let mut question = Question {
        misaligned_by: ByteOffset::new(args.misaligned_by.get()),
        pace: Pace { member: args.member_rate, ..Pace::default() },
        ..Question::default()
    };
    if !args.write.is_empty() {
        question.writes.clone_from(&args.write);
    }
    let sheet = Sheet::of(&stack, &names, &facts, &question)
        .map_err(|error| usage(&error, error.hint()))?;
    output.print(&match (args.json, args.commands, args.undo) {
        (true, ..) => json(&sheet)?,
        (_, true, _) => commands(&sheet),
        (_, _, true) => take_down(&steps::teardown(&sheet.steps)),
        _ => text(&sheet, args),
    })
}

fn usage(error: &impl std::fmt::Display, hint: Option<String>) -> Failure {
    let failure = Failure::new(ExitCode::Usage, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn stack(args: &LayoutArgs) -> Result<StackSpec, Failure> {
    let per_leg = legs_of(args)?;
    let file_system = match &args.file_system {
        Some(name) => {
            let kind: FileSystemKind = name
                .parse()
                .map_err(|error: layout::stack::ParseNameError| usage(&error, error.hint()))?;
            Some(FileSystem { kind, options: args.mkfs_option.clone() })
        }
        None => None,
    };
    let stripe = match &args.stripe {
        Some(name) => Some(Stripe {
            maker: maker(name)?,
            level: level(&args.stripe_level)?,
            chunk: args.stripe_chunk,
        }),
        None => None,
    };
    Ok(StackSpec {
        legs: per_leg,
        stripe,
        file_system,
        mount_options: args.mount.clone(),
        settings: Settings {
            scheduler: args.scheduler.clone(),
            read_ahead: args.read_ahead,
            nr_requests: args.nr_requests,
        },
        wal: None,
        state: ArrayState::Healthy,
    })
}

/// Whether a study would give its words to mkfs, too: none names another device or a file, another
/// label or another kind.
fn check_words(stack: &StackSpec, names: &Names) -> Result<(), Failure> {
    let Some(file_system) = &stack.file_system else { return Ok(()) };
    let program = match file_system.kind {
        FileSystemKind::Zfs => "zpool".to_owned(),
        kind => format!("mkfs.{kind}"),
    };
    let argv = std::iter::once(program).chain(file_system.options.iter().cloned()).collect();
    let devices = stack.devices().iter().map(|device| device.as_str().to_owned()).collect();
    let allowed = Allowed::new(devices, Vec::new(), names.key(), Names::MOUNT_ROOT);
    let hint = "`--mkfs-option` is for what a file system is like; devices are named by `--device`";
    let checked = allowed.check(&Action::Run { argv });
    checked.map_err(|error| usage(&error, Some(hint.to_owned())))
}

fn maker(name: &str) -> Result<Maker, Failure> {
    name.parse().map_err(|error: layout::stack::ParseNameError| usage(&error, error.hint()))
}

fn level(name: &str) -> Result<Level, Failure> {
    name.parse().map_err(|error: layout::array::ParseLevelError| usage(&error, error.hint()))
}

fn legs_of(args: &LayoutArgs) -> Result<Vec<Leg>, Failure> {
    let plain = args.level == "device";
    let level = if plain { None } else { Some(level(&args.level)?) };
    if args.legs == 0 || args.legs > LEGS_MAX {
        let message = format!("--legs {} is not 1 to {LEGS_MAX}", args.legs);
        return Err(Failure::new(ExitCode::Usage, message));
    }
    if plain && (args.members.is_some() || args.chunk.is_some() || args.spares > 0) {
        let message = "a device as it is has no members, chunk or spares to choose";
        let hint = "name the level of the array, or leave them out";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    let members = match (plain, args.members) {
        (true, _) => 1,
        (false, Some(members)) => members,
        (false, None) => {
            let message = format!("how many members has each {} leg?", args.level);
            return Err(Failure::new(ExitCode::Usage, message).hint("say `--members N`"));
        }
    };
    let each = members.saturating_add(args.spares);
    if each > MEMBERS_MAX {
        let message = format!("{each} devices in a leg are more than {MEMBERS_MAX}");
        return Err(Failure::new(ExitCode::Usage, message));
    }
    let devices = devices(args, each)?;
    let maker = if plain { Maker::Device } else { maker(&args.maker)? };
    let usual = || CHUNK.parse().ok().filter(|_| matches!(maker, Maker::Md | Maker::Lvm));
    let chunk = match level {
        Some(level) if level.has_chunk() => args.chunk.or_else(usual),
        _ => args.chunk,
    };
    let leg = |devices: &[DeviceId]| {
        let (members, spares) = devices.split_at(members.min(devices.len()));
        Leg { maker, level, chunk, members: members.to_vec(), spares: spares.to_vec() }
    };
    Ok(devices.chunks(each.max(1)).map(leg).collect())
}

const LEGS_MAX: usize = 64;
const MEMBERS_MAX: usize = 384;

/// The devices named, or made up.
fn devices(args: &LayoutArgs, each: usize) -> Result<Vec<DeviceId>, Failure> {
    let wanted = each * args.legs;
    if args.device.is_empty() {
        // Nothing that exists: the commands might be copied.
        return Ok((0..wanted).map(|k| DeviceId::new(format!("/dev/member{k}"))).collect());
    }
    if args.device.len() != wanted {
        let message = format!("devices named: {}, wanted {wanted}", args.device.len());
        let hint = format!("legs: {}, each of {each} devices, spares included", args.legs);
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    Ok(args.device.iter().map(|path| DeviceId::new(path.as_str())).collect())
}

fn text(sheet: &Sheet, args: &LayoutArgs) -> String {
    let mut out = heading(sheet);
    out += "\n\n";
    out += &facts(sheet);
    if !sheet.writes.is_empty() {
        out += "\nWhat a write costs the members, at places that are multiples of its size\n";
        out += &writes(&sheet.writes);
    }
    if !sheet.remarks.is_empty() {
        out += "\nWorth knowing\n";
        for remark in &sheet.remarks {
            out += &wrapped("  - ", remark);
        }
    }
    out += "\nCommands";
    out += if args.device.is_empty() { ", on devices with made-up names\n" } else { "\n" };
    out += &commands(sheet);
    out
}

fn heading(sheet: &Sheet) -> String {
    let stack = &sheet.stack;
    let legs = stack.legs.len();
    let mut parts = Vec::new();
    if let Some(leg) = stack.legs.first() {
        let what = match sheet.leg {
            Some(array) => {
                let chunk =
                    array.chunk.map_or(String::new(), |chunk| format!(", chunk {}", spaced(chunk)));
                format!("{} {} of {} members{chunk}", leg.maker, array.level, array.members)
            }
            None => "a device as it is".to_owned(),
        };
        let spares = match leg.spares.len() {
            0 => String::new(),
            n => format!(" + {n} spare{}", if n == 1 { "" } else { "s" }),
        };
        parts.push(format!("{what}{spares}"));
    }
    if legs > 1 {
        parts.push(match (&sheet.stack.stripe, sheet.top) {
            (Some(stripe), Some(top)) => format!(
                "{legs} legs, {} stripe{}",
                stripe.maker,
                top.chunk.map_or(String::new(), |chunk| format!(" of {}", spaced(chunk)))
            ),
            (Some(stripe), None) => format!("{legs} legs, {} {}", stripe.maker, stripe.level),
            (None, _) => format!("{legs} legs"),
        });
    }
    parts.extend(stack.file_system.as_ref().map(|fs| fs.kind.to_string()));
    parts.join("; ")
}

fn facts(sheet: &Sheet) -> String {
    let mut rows = Columns::new(vec![true, true]);
    let mut row = |name: &str, value: String| rows.row(vec![format!("  {name}"), value]);
    let raw = sheet.member_size.get() as f64 * f64::from(sheet.members);
    let share = 100.0 * sheet.capacity.get() as f64 / raw.max(1.0);
    let of = format!("{} members of {}", sheet.members, sheet.member_size);
    row("capacity", format!("{} ({share:.0} % of {of})", sheet.capacity));
    let (sure, best) = (sheet.tolerance.sure, sheet.tolerance.at_best);
    row(
        "may be lost",
        match (sure, best) {
            (0, 0) if sheet.leg.is_none() => "no leg; what a leg bears is not known".to_owned(),
            (0, 0) => "no member".to_owned(),
            _ if sure == best => format!("any {sure}"),
            _ => format!("any {sure}, {best} at best"),
        },
    );
    if let Some((leg, width)) = sheet.leg.and_then(|leg| Some((leg, leg.data_width?))) {
        let chunk = leg.chunk.map_or(String::new(), spaced);
        row("data width", format!("{} = {} x {chunk}", spaced(width), leg.data_chunks));
        if let Some(full) = leg.full_stripe.filter(|full| *full != width) {
            row("full stripe", format!("{} with its redundancy", spaced(full)));
        }
    }
    if let Some((top, width)) = sheet.top.and_then(|top| Some((top, top.data_width?))) {
        let chunk = top.chunk.map_or(String::new(), spaced);
        row("over the legs", format!("{} = {} x {chunk}", spaced(width), top.members));
    }
    let at = &sheet.alignment;
    if let (Some(data), Some(start), Some(extent)) = (at.volume_data, at.volume_start, at.extent) {
        let by = if data == start {
            String::new()
        } else {
            format!(" ({} x {})", start.get() / data.get().max(1), spaced(data))
        };
        row("LVM data from", format!("{}{by}, extents of {}", spaced(start), spaced(extent)));
    }
    row("partitions at", format!("multiples of {}", spaced(at.partition)));
    if let Some(told) = sheet.told {
        let kind = sheet.stack.file_system.as_ref().map_or(String::new(), |fs| fs.kind.to_string());
        row("told to mkfs", format!("{kind}: {} x {}", told.count, spaced(told.unit)));
    }
    let several = sheet.stack.legs.len() > 1;
    if let Some(sync) = sheet.first_sync {
        row(if several { "sync of a leg" } else { "first sync" }, pace(&sync));
    }
    if let Some(sync) = sheet.mirror_sync {
        row("sync of legs", pace(&sync));
    }
    if let Some(rebuild) = sheet.rebuild {
        row("rebuild", pace(&rebuild));
    }
    rows.print()
}

fn pace(estimate: &Estimate) -> String {
    let by = if estimate.at_limit { "the kernel's limit" } else { "the member" };
    let speed = estimate.speed;
    let idle = span(estimate.idle);
    format!("{idle} at {speed}/s ({by}); up to {} under load", span(estimate.busy))
}

/// `47 min`, `3.1 h`, `11 days`.
fn span(time: Nanos) -> String {
    if time == Nanos::MAX {
        return "more than 500 years".to_owned();
    }
    let seconds = time.as_secs_f64();
    match seconds {
        ..120.0 => format!("{} s", three_digits(seconds)),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

fn writes(costs: &[MeanCost]) -> String {
    let mut rows = Columns::new(vec![false, false, false, false, false, true]);
    let head = ["size", "reads", "writes", "bytes per byte", "reading none", "how"];
    rows.row(head.map(ToOwned::to_owned).to_vec());
    for cost in costs {
        rows.row(vec![
            format!("  {}", spaced(cost.size)),
            number(cost.reads),
            number(cost.writes),
            number(cost.amplification()),
            format!("{:.0} %", 100.0 * cost.without_reads),
            cost.ways.words(),
        ]);
    }
    rows.print()
}

/// Whole where it is, else with three digits.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { three_digits(value) }
}

fn commands(sheet: &Sheet) -> String {
    let mut out = String::new();
    for step in &sheet.steps {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "# {}", plain(&step.what));
        if !step.writes_to.is_empty() {
            let on: Vec<_> = step.writes_to.iter().map(|device| plain(device.as_str())).collect();
            let _ = writeln!(out, "#   writes to {}", on.join(" "));
        }
        let _ = writeln!(out, "{}", line(&step.action));
        if step.waits_for.is_some() {
            let _ = writeln!(out, "#   then wait until it is in step: cat /proc/mdstat, or lvs");
        }
    }
    out
}

fn take_down(undo: &[Undo]) -> String {
    undo.iter().map(|undo| format!("{}\n", line(&undo.action))).collect()
}

/// An action as a shell would be told.
fn line(action: &Action) -> String {
    match action {
        Action::Run { argv } => {
            argv.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
        }
        Action::WriteFile { path, value } => {
            format!("echo {} > {}", shell_word(value), shell_word(path))
        }
        Action::PutBack { path } => format!("# write what was there before to {}", plain(path)),
        Action::MakeDirectory { path } => format!("mkdir -p {}", shell_word(path)),
        Action::RemoveDirectory { path } => format!("rmdir {}", shell_word(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_safe_to_print_is_printed_as_it_is() {
        // All that a terminal must not be given: every character, alone in a word.
        for c in (0..=0x3000_u32).chain(0xfe00..0x1_0000).filter_map(char::from_u32) {
            let word = shell_word(&format!("/dev/{c}vdc"));
            assert_eq!(plain(&word), word, "{c:?}");
        }
    }

    #[test]
    fn spans_are_readable() {
        for (seconds, text) in
            [(3, "3.00 s"), (900, "15 min"), (10_800, "3.0 h"), (864_000, "10 days")]
        {
            assert_eq!(span(Nanos::secs(seconds)), text);
        }
    }
}
