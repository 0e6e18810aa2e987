//! `plimsoll layer`: the write-optimising layer.

use std::path::Path;

use clap::{Args, Subcommand};
use explain::view::View;
use explain::worth::{LayerWorth, SUITE, worth};
use report::Columns;
use units::Nanos;

use crate::args::Common;
use crate::commands::crash::{self, CrashTestArgs, CrashWriterArgs};
use crate::commands::live::{self, LiveArgs, SideFile};
use crate::commands::volume::{self, CreateArgs, DestroyArgs, LookArgs, ServeVolumeArgs};
use crate::commands::which::refuse_unfit;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::PlaceOptions;
use crate::order;
use crate::output::{Output, json};

pub const EXAMPLES: &str = "\
Examples:
  plimsoll layer worth /ssd                     # measures two minutes: would the layer make it faster?
  plimsoll layer worth /ssd --for innodb        # pages of 16 KiB
  plimsoll layer worth last                     # from a stored run, such as one of bm-flash
  plimsoll layer worth array:gp3-alone          # a simulated device
  plimsoll layer create /ssd/v --size 10GiB     # a volume that stays
  plimsoll layer serve /ssd/v --socket /run/v   # as a block device (NBD), until Ctrl-C
  plimsoll layer check /ssd/v                   # is all that was written there
  plimsoll layer crash-test /ssd                # a volume whose writer is killed ten times";

/// Visits of each cell.
const BLOCKS: u32 = 10;
const CELLS: f64 = 4.0;
/// Of each visit, before its measured part.
const RAMP_S: f64 = 0.3;
/// Shorter visits are decided by their start and end.
const VISIT_S_MIN: f64 = 0.5;

/// The write-optimising layer: random writes made sequential
///
/// It gathers random writes into a log, which makes drives faster that write slowly at random, and drives
/// slower that do not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct LayerArgs {
    #[command(subcommand)]
    command: LayerCommand,
}

#[derive(Debug, Subcommand)]
enum LayerCommand {
    Worth(Box<WorthArgs>),
    Create(CreateArgs),
    Serve(ServeVolumeArgs),
    /// Say what a volume is and how full, without a change to it
    Status(LookArgs),
    /// Read all of a volume and hold it against its checksums, without a change to it
    ///
    /// Exit code 7 if anything is not what was written.
    Check(LookArgs),
    Destroy(DestroyArgs),
    CrashTest(CrashTestArgs),
    #[command(hide = true)]
    CrashWriter(CrashWriterArgs),
}

/// Would the layer make random writes faster here, and by how much
///
/// Measures random writes and reads of a database's pages and pieces of 2 MiB, and computes what the layer
/// would make of them at fills of 40 to 90 %, its own cleaning included. Of a stored run its own cells are
/// taken: random writes, and reads and writes of 256 KiB and more, such as bm-flash has.
///
/// In a directory a file is made for that and removed afterwards.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorthArgs {
    /// A directory, file, device or simulated device (`model:FILE`, `array:ARRAY`), or a stored run
    #[arg(value_name = "PLACE|RUN")]
    place: String,
    /// How long to measure in all, without the time to fill the file
    #[arg(long, value_name = "N", default_value_t = 2)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    #[command(flatten)]
    of: PlaceOptions,
}

pub fn layer(args: &LayerArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        LayerCommand::Worth(args) => ask_worth(args, common, output),
        LayerCommand::Create(args) => volume::create(args, output),
        LayerCommand::Serve(args) => volume::serve(args, output),
        LayerCommand::Status(args) => volume::status(args, output),
        LayerCommand::Check(args) => volume::check(args, output),
        LayerCommand::Destroy(args) => volume::destroy(args, output),
        LayerCommand::CrashTest(args) => crash::test(args, output),
        LayerCommand::CrashWriter(args) => crash::write(args),
    }
}

fn ask_worth(args: &WorthArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    let output = &output.quiet(args.of.ask.quiet);
    // A run is named by a word; what is there, or looks like a path or a kind of target, is a place.
    let is_place = args.place.contains(['/', ':']) || Path::new(&args.place).exists();
    let (id, code) = match is_place {
        true => match measured(args, common, output)? {
            Some(measured) => measured,
            None => return Ok(ExitCode::Ok),
        },
        false => {
            let store = order::store_to_read(common)?;
            (order::resolve(&store, &args.place, output)?, ExitCode::Ok)
        }
    };
    let run = order::store_to_read(common)?.load(&id)?;
    let view = View::new(&run);
    let block = args.of.database.page();
    let found = worth(&view, block).map_err(|gap| {
        let message = format!("run {id} does not tell: it has no {}", gap.text());
        let hint =
            "`plimsoll layer worth PLACE` measures what it takes; of stored runs take bm-flash";
        Failure::new(ExitCode::Usage, message).hint(hint)
    })?;
    output.print(&if args.of.ask.json { json(&found)? } else { text(&found) })?;
    if is_place {
        output.note(&format!("stored as {id}: `plimsoll layer worth {id}` says it again"));
    }
    Ok(code)
}

/// Measures the place; `None` where it was only to be said what would be done.
fn measured(
    args: &WorthArgs,
    common: &Common,
    output: &Output,
) -> Result<Option<(String, ExitCode)>, Failure> {
    refuse_unfit(&args.place)?;
    let visits = f64::from(BLOCKS) * CELLS;
    let time = args.minutes as f64 * 60.0 / visits - RAMP_S;
    let set = args.of.database.set(["writes", "reads"], []);
    let side = SideFile {
        suite: SUITE.to_owned(),
        target: args.place.clone(),
        size: args.of.size.map(|size| size.exact()),
        time: Some(Nanos::from_secs_f64(time.max(VISIT_S_MIN)).exact()),
        set: set
            .into_iter()
            .map(|(key, text)| (key, toml::Value::String(text.to_owned())))
            .collect(),
        ..SideFile::default()
    };
    let told = LiveArgs::in_blocks(BLOCKS, &args.of.ask);
    let sides = [(args.place.clone(), side)];
    let played = live::measure(&told, None, &sides, common, output)?;
    Ok(played.and_then(|played| {
        let code = played.code().unwrap_or(ExitCode::Ok);
        played.outcomes.first().map(|outcome| (outcome.run.clone(), code))
    }))
}

/// The answer, then every fill.
fn text(found: &LayerWorth) -> String {
    let lines = found.answer.sentences();
    let mut out: String =
        lines.iter().map(|line| report::wrapped("", &report::plain(line))).collect();
    let mixes = found.fills.first().map_or(&[][..], |one| &one.mixes);
    let mut columns = Columns::new(vec![true; 4 + mixes.len()]);
    let heads = ["fill", "written for each", "random writes/s", "of the place alone"];
    let mut heads: Vec<String> = heads.map(str::to_owned).into();
    let share = |share| finding::numbers::percent(share);
    heads.extend(mixes.iter().map(|mix| format!("with {} reads", share(mix.read_share))));
    columns.row(heads);
    for one in &found.fills {
        let mut row = vec![
            share(one.fill),
            format!("{:.2}", one.write_amplification),
            finding::text::shown(&one.writes),
            finding::text::shown(&one.gain),
        ];
        let ratio = |gain| finding::numbers::ratio(gain, None);
        row.extend(one.mixes.iter().map(|mix| ratio(mix.gain)));
        columns.row(row);
    }
    out.push('\n');
    out.push_str(&columns.print());
    out
}
