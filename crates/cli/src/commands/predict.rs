//! `plimsoll predict`: what an array that nobody has built would do.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use array::{Fill, LoadError, TextError, builtin};
use clap::{Args, ValueEnum};
use explain::view::View;
use finding::Section;
use predict::{
    ArrayChoice, Candidate, ChooseError, ComparedCell, DriveFit, FitFailure, Goal, Prediction,
    PredictionCheck, Variation, Variations, choose, compare, fit, part, vary,
};
use report::Columns;
use runner::{ArrayText, array_hint};
use suite::CheckContext;
use suite::model::Suite;
use units::Bytes;

use crate::args::Common;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::SuiteOptions;
use crate::order;
use crate::output::{Output, json};
use crate::result_file;

/// Arrays of a choice that are printed.
const LISTED: usize = 20;

const EXAMPLES: &str = "\
Examples:
  plimsoll predict --list                       # the arrays and parts that come with the program
  plimsoll predict --list pm9a3                 # the text of one of them, to begin a file of one's own with
  plimsoll predict areca-raid5x4                # bm-flash on it: the rate, and the part that limits it
  plimsoll predict my-array.toml --suite random-read --json
  plimsoll predict nvme-raid10x4 --suite random-read --set queue_depth=64 --vary members=4..16,level=raid0,raid10
  plimsoll predict my-array.toml --against last # how far off that is from what was measured
  plimsoll predict nvme-alone --fit r12 r13 --out my-ssd.toml   # a part from runs on your own drive";

/// What would an array do that nobody has built, and which part would limit it
///
/// An array is a file that names parts: host, file system, link, controller, RAID level, drives. Every value
/// of a part says where it comes from. The rates follow from them by mean value analysis, in milliseconds;
/// nothing is measured. docs/predict.md says what is reckoned with and what is not.
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
    /// Compare arrays that differ: keys of the array's file with lists or ranges of values,
    /// `members=4..16,level=raid0,raid10,chunk=8K..512K`
    #[arg(long, value_name = "KEY=VALUES", conflicts_with_all = ["fit", "against", "list"])]
    vary: Vec<Variations>,
    /// What an array must do, `rate=20000,response=5ms`: the cheapest one that does, by the prices of
    /// its parts or by the number of drives
    #[arg(long, value_name = "GOAL", conflicts_with_all = ["fit", "against", "list"])]
    goal: Option<Goal>,
    /// Predict the cells of these runs, and say how far off the prediction is
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["fit", "list", "suite", "set", "size"])]
    against: Vec<String>,
    /// Fit the drive to these runs, which were measured on one such drive, instead of predicting
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["list", "suite", "set", "size"])]
    fit: Vec<String>,
    /// Write the fitted drive as the file of a part
    #[arg(long, value_name = "FILE", requires = "fit")]
    out: Option<PathBuf>,
    /// Replace a file that is there
    #[arg(long, requires = "out")]
    force: bool,
    /// List the arrays and parts that come with the program; with a name, print the text of that one
    #[arg(long, conflicts_with = "json")]
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

pub fn predict(args: &PredictArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let Some(named) = &args.array else { return list(output) };
    if args.list {
        return print_builtin(named, output);
    }
    let array = array_text(named)?;
    if !args.fit.is_empty() || !args.against.is_empty() {
        return measured(args, &array, common, output);
    }
    let options =
        SuiteOptions { set: args.set.clone(), size: args.size, ..SuiteOptions::default() };
    let source = order::suite(&args.suite, &options)?;
    let suite = suite::check(&source, &CheckContext::default())?;
    if !args.vary.is_empty() || args.goal.is_some() {
        return chosen(args, &array, &suite, output);
    }
    let design = array.design().map_err(unread)?;
    if !design.state.is_whole() {
        let hint = format!("play it: `plimsoll run {} --target array:{}`", suite.name, array.file);
        return Err(Failure::new(ExitCode::Usage, LoadError::NotWhole).hint(hint));
    }
    let found = predict::predict(&array.name, design, &suite, args.cache.fill());
    if let Some(why) = found.cells.iter().find_map(|cell| cell.left_out.as_ref())
        && found.cells.iter().all(|cell| cell.answer.is_none())
    {
        let message = format!("no cell of `{}` can be predicted: {why}", found.suite);
        let hint = "take reads and writes around the page cache, such as bm-flash or random-read";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    output.print(&if args.json { json(&found)? } else { text(&found) })
}

/// Many arrays under one load.
fn chosen(
    args: &PredictArgs,
    array: &ArrayText,
    suite: &Suite,
    output: &Output,
) -> Result<(), Failure> {
    let usage = |error: &dyn std::fmt::Display| Failure::new(ExitCode::Usage, error.to_string());
    let variations: Vec<Variation> = args.vary.iter().flat_map(|one| one.0.clone()).collect();
    let designs = vary(&array.file, &array.text, &variations, |name| array.part(name))
        .map_err(|error| usage(&error))?;
    let goal = args.goal.unwrap_or_default();
    let found = choose(&array.name, &variations, designs, suite, goal, args.cache.fill())
        .map_err(|error| {
            let failure = usage(&error);
            match error {
                ChooseError::Cells(..) => failure.hint(
                    "take one load, such as --suite random-read --set block_size=8K --set queue_depth=32",
                ),
                _ => failure,
            }
        })?;
    output.print(&if args.json { json(&found)? } else { choice_text(&found) })
}

/// The answer, then the arrays, the best first.
fn choice_text(found: &ArrayChoice) -> String {
    let has_prices = found.arrays.iter().any(|one| one.price.is_some());
    let has_goal = found.goal != Goal::default();
    let mut heads = found.keys.clone();
    heads.push("drives".to_owned());
    heads.extend(has_prices.then(|| "price".to_owned()));
    heads.extend(["holds", "requests/s", "bandwidth", "response", "limited by"].map(str::to_owned));
    heads.extend(has_goal.then(|| "short of the goal".to_owned()));
    let mut columns = Columns::new(vec![true; heads.len()]);
    columns.row(heads);
    // Of what makes no difference the best array's values stand for all.
    let is_shown = |one: &&Candidate| {
        let mut all = found.keys.iter().zip(one.values.iter().zip(&found.arrays[0].values));
        all.all(|(key, (own, best))| own == best || !found.idle_keys.contains(key))
    };
    let shown: Vec<&Candidate> = found.arrays.iter().filter(is_shown).take(LISTED).collect();
    for one in &shown {
        let mut row = one.values.clone();
        row.push(one.drives.to_string());
        let price = one.price.map_or_else(|| "unknown".to_owned(), |price| format!("{price:.0}"));
        row.extend(has_prices.then_some(price));
        row.push(one.capacity.to_string());
        row.push(finding::numbers::iops(one.rate));
        row.push(one.bandwidth.to_string());
        row.push(finding::numbers::seconds(one.response.as_secs_f64()));
        row.push(part(one.limited_by).to_owned());
        row.extend(has_goal.then(|| one.short_of.join(", ")));
        columns.row(row);
    }
    let mut out = answer(&found.answer);
    out.push('\n');
    out.push_str(&columns.print());
    let more = found.arrays.len() - shown.len();
    if more > 0 {
        out.push_str(&format!("and {more} more: --json has them all\n"));
    }
    out
}

/// What needs stored runs.
fn measured(
    args: &PredictArgs,
    array: &ArrayText,
    common: &Common,
    output: &Output,
) -> Result<(), Failure> {
    if let Some(path) = &args.out {
        result_file::check(path, args.force)?;
    }
    let store = order::store_to_read(common)?;
    let words = if args.fit.is_empty() { &args.against } else { &args.fit };
    let ids = words.iter().map(|word| order::resolve(&store, word, output));
    let ids = ids.collect::<Result<Vec<String>, _>>()?;
    let runs = ids.iter().map(|id| store.load(id)).collect::<Result<Vec<_>, _>>()?;
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let (name, design, cache) = (&array.name, array.design().map_err(unread)?, args.cache.fill());
    if args.fit.is_empty() {
        let found = compare(name, design, &views, cache).map_err(unfit)?;
        return output.print(&if args.json { json(&found)? } else { compared_text(&found) });
    }
    let found = fit(name, &design, &views, cache).map_err(unfit)?;
    if let Some(path) = &args.out {
        result_file::put(path, found.part.as_bytes(), args.force)?;
    }
    output.print(&if args.json { json(&found)? } else { fit_text(&found) })
}

fn unfit(error: FitFailure) -> Failure {
    let hint = match error {
        FitFailure::Elsewhere(_) => {
            "take an array in which only the drive is slow, such as nvme-alone, or smaller blocks"
        }
        _ => {
            "measure random reads and writes of several sizes and depths around the page cache, such as bm-flash"
        }
    };
    Failure::new(ExitCode::Usage, error).hint(hint)
}

fn compared_text(found: &PredictionCheck) -> String {
    let mut out = answer(&found.answer);
    out.push('\n');
    out.push_str(&cells(&found.cells));
    out
}

/// The answer, then values and cells.
fn fit_text(found: &DriveFit) -> String {
    let mut out = answer(&found.answer);
    let mut columns = Columns::new(vec![true; 3]);
    columns.row(["value", "fitted", "of what it was"].map(str::to_owned).to_vec());
    for (value, now) in &found.values {
        let ends = Some((value.factor_low, value.factor_high));
        let factor = finding::numbers::ratio(value.factor, ends);
        columns.row(vec![value.name.key.to_owned(), now.clone(), factor]);
    }
    out.push('\n');
    out.push_str(&columns.print());
    out.push('\n');
    out.push_str(&cells(&found.cells));
    out
}

fn answer(section: &Section) -> String {
    section.sentences().iter().map(|line| report::wrapped("", &report::plain(line))).collect()
}

fn cells(cells: &[ComparedCell]) -> String {
    let mut columns = Columns::new(vec![true; 5]);
    let heads = ["cell", "measured", "predicted", "off by", "limited by"];
    columns.row(heads.map(str::to_owned).to_vec());
    for cell in cells {
        columns.row(vec![
            cell.cell.clone(),
            finding::numbers::iops(cell.measured),
            finding::numbers::iops(cell.predicted),
            finding::numbers::change(cell.error),
            part(cell.limited_by).to_owned(),
        ]);
    }
    columns.print()
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

/// The text of an array or a part that comes with the program.
fn print_builtin(named: &OsString, output: &Output) -> Result<(), Failure> {
    let name = named.to_string_lossy();
    let mut texts = builtin::arrays().iter().chain(builtin::parts());
    match texts.find(|(own, _)| *own == name) {
        Some((_, text)) => output.print(text),
        None => {
            let message = format!("no array or part `{name}` comes with the program");
            Err(Failure::new(ExitCode::Usage, message).hint(array_hint(&name)))
        }
    }
}

fn unread(error: TextError) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(ExitCode::Usage, error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn array_text(named: &OsString) -> Result<ArrayText, Failure> {
    let path = Path::new(named);
    ArrayText::of(path).map_err(|error| {
        let hint = array_hint(&named.to_string_lossy());
        let message = format!("no array `{}`", path.display());
        Failure::caused(ExitCode::Usage, message, error).hint(hint)
    })
}

/// The answer, then every cell.
fn text(found: &Prediction) -> String {
    let mut out = answer(&found.answer);
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
