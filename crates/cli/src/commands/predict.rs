//! `plimsoll predict`: what an array that nobody has built would do.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use array::{ArrayDesign, Fill, TextError, builtin};
use clap::{Args, ValueEnum};
use explain::predict::{Prediction, part, predict as predicted};
use report::Columns;
use suite::CheckContext;
use units::Bytes;

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::SuiteOptions;
use crate::order;
use crate::output::{Output, json};

const EXAMPLES: &str = "\
Examples:
  plimsoll predict --list                       # the arrays and parts that come with the program
  plimsoll predict areca-raid5x4                # bm-flash on it: the rate, and the part that limits it
  plimsoll predict my-array.toml --suite random-read --json";

/// What would an array do that nobody has built, and which part would limit it
///
/// An array is a file that names parts: host, file system, link, controller, RAID level, drives. Every value
/// of a part says where it comes from. The rates follow from them by exact mean value analysis, in
/// milliseconds; nothing is measured. docs/predict.md says what is reckoned with and what is not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PredictArgs {
    /// A name from --list, or a file; parts are looked for beside it, in ../parts, and among the program's own
    #[arg(value_name = "ARRAY|FILE.toml", required_unless_present = "list")]
    array: Option<OsString>,
    /// The suite whose cells are predicted
    #[arg(long, value_name = "SUITE|FILE.toml", default_value = "bm-flash")]
    suite: OsString,
    /// Set a field of the suite; a list makes it an axis of the grid: `--set queue_depth=1,4,16`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Size of each file
    #[arg(long, value_name = "SIZE")]
    size: Option<Bytes>,
    /// Whether writes find room in the controllers' caches, or wait for the drives
    #[arg(long, value_enum, default_value_t = CacheState::Full)]
    cache: CacheState,
    /// List the arrays and parts that come with the program
    #[arg(long, conflicts_with_all = ["array", "json"])]
    list: bool,
    /// Print a JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CacheState {
    Full,
    Room,
}

impl CacheState {
    const fn fill(self) -> Fill {
        match self {
            Self::Full => Fill::Full,
            Self::Room => Fill::Room,
        }
    }
}

pub fn predict(args: &PredictArgs, output: &Output) -> Result<(), Failure> {
    let Some(named) = args.array.as_ref().filter(|_| !args.list) else { return list(output) };
    let (name, design) = design(named)?;
    let options =
        SuiteOptions { set: args.set.clone(), size: args.size, ..SuiteOptions::default() };
    let source = order::suite(&args.suite, &options)?;
    let suite = suite::check(&source, &CheckContext::default())?;
    let found = predicted(&name, design, &suite, args.cache.fill());
    if let Some(why) = found.cells.iter().find_map(|cell| cell.left_out.as_ref())
        && found.cells.iter().all(|cell| cell.answer.is_none())
    {
        let message = format!("no cell of `{}` can be predicted: {why}", found.suite);
        let hint = "take reads and writes around the page cache, such as bm-flash or random-read";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    output.print(&if args.json { json(&found)? } else { text(&found) })
}

fn list(output: &Output) -> Result<(), Failure> {
    let mut columns = Columns::new(vec![true, true]);
    for (name, _) in builtin::arrays() {
        let why = builtin::design(name).map_err(unread)?.why;
        columns.row(vec![(*name).to_owned(), why]);
    }
    let mut parts = Columns::new(vec![true, true, true]);
    for (name, text) in builtin::parts() {
        let said = text.parse::<toml::Table>().unwrap_or_default();
        let word = |key| said.get(key).and_then(toml::Value::as_str).unwrap_or_default().to_owned();
        parts.row(vec![(*name).to_owned(), word("kind"), word("why")]);
    }
    output.print(&format!("Arrays\n\n{}\nParts\n\n{}", columns.print(), parts.print()))
}

fn unread(error: TextError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(ExitCode::Usage, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// A design with its name: what the program has, or a file.
fn design(named: &OsString) -> Result<(String, ArrayDesign), Failure> {
    let path = Path::new(named);
    let shown = path.display().to_string();
    if builtin::arrays().iter().any(|(name, _)| *name == shown) {
        return Ok((shown.clone(), builtin::design(&shown).map_err(unread)?));
    }
    let text = std::fs::read_to_string(path).map_err(|error| {
        let hint = "`plimsoll predict --list` has the arrays that come with the program";
        Failure::caused(ExitCode::Usage, format!("no array `{shown}`"), error).hint(hint)
    })?;
    let parts = parts_beside(path);
    let find = |name: &str| parts.get(name).map(String::as_str).or_else(|| builtin::part(name));
    let design = ArrayDesign::parse(&shown, &text, find).map_err(unread)?;
    let name = path.file_stem().unwrap_or(named).to_string_lossy().into_owned();
    Ok((name, design))
}

/// Texts in the folder of an array's file and in `parts` beside that folder, the nearer first.
fn parts_beside(path: &Path) -> BTreeMap<String, String> {
    let folder = path.parent().unwrap_or(Path::new("")).join(".");
    let mut all = BTreeMap::new();
    for folder in [folder.join("../parts"), folder] {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "toml")
                && let (Some(name), Ok(text)) = (path.file_stem(), std::fs::read_to_string(&path))
            {
                all.insert(name.to_string_lossy().into_owned(), text);
            }
        }
    }
    all
}

/// The answer, then every cell.
fn text(found: &Prediction) -> String {
    let answer = found.answer.sentences();
    let mut out: String =
        answer.iter().map(|line| report::wrapped("", &report::plain(line))).collect();
    let mut columns = Columns::new(vec![true; 8]);
    let heads = [
        "phase",
        "cell",
        "requests/s",
        "bandwidth",
        "response",
        "limited by",
        "busy",
        "twice as fast",
    ];
    columns.row(heads.map(str::to_owned).to_vec());
    for cell in &found.cells {
        let Some(answer) = &cell.answer else { continue };
        let limit = answer.parts.iter().find(|one| one.component == answer.binding);
        columns.row(vec![
            cell.phase.clone(),
            cell.cell.clone(),
            finding::numbers::iops(answer.rate),
            finding::numbers::bandwidth(answer.bandwidth.0.get() as f64),
            finding::numbers::seconds(answer.response.as_secs_f64()),
            part(answer.binding).to_owned(),
            limit.map_or(String::new(), |one| finding::numbers::percent(one.busy)),
            limit.map_or(String::new(), |one| finding::numbers::ratio(one.gain, None)),
        ]);
    }
    out.push('\n');
    out.push_str(&columns.print());
    out
}
