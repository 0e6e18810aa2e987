//! `plimsoll suite list` and `plimsoll suite show`

use std::ffi::OsString;
use std::fmt::Write;

use clap::{Args, Subcommand, ValueEnum};
use report::Columns;
use serde::Serialize;
use suite::model::{Cell, Method, Order, Phase, Stream, Suite};
use suite::{CheckContext, Found};
use units::{Bytes, Nanos};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::SuiteOptions;
use crate::order::{self, Ordered};
use crate::output::{Output, json};
use crate::parts::List;
use crate::questions;

const EXAMPLES: &str = "\
Examples:
  plimsoll suite list
  plimsoll suite show bm-flash --quick";

const LIST_EXAMPLES: &str = "\
Examples:
  plimsoll suite list
  plimsoll suite list --json";

const SHOW_EXAMPLES: &str = "\
Examples:
  plimsoll suite show bm-flash
  plimsoll suite show random-read --set queue_depth=1,8,64 --time 5s
  plimsoll suite show bm-flash --toml > mine.toml
  plimsoll suite show bm-flash --format fio > bm-flash.fio
  plimsoll suite show xdd --scale 0.01 --format list > places.toml";

/// Look at suites: what is measured, how, for how long
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct SuiteArgs {
    #[command(subcommand)]
    command: SuiteCommand,
}

#[derive(Debug, Subcommand)]
enum SuiteCommand {
    List(ListArgs),
    Show(ShowArgs),
}

/// List the suites that come with the program, by the question that they answer
#[derive(Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
struct ListArgs {
    /// Print a JSON document (plimsoll.suites/1)
    #[arg(long)]
    json: bool,
}

/// Show what a suite would do, with every default
#[derive(Debug, Args)]
#[command(after_help = SHOW_EXAMPLES)]
struct ShowArgs {
    /// A name from `plimsoll suite list`, or a file
    #[arg(value_name = "SUITE|FILE.toml")]
    suite: OsString,
    #[command(flatten)]
    options: SuiteOptions,
    /// Print the checked plan as JSON (plimsoll.suite/1), every cell written out
    #[arg(long, conflicts_with = "toml", help_heading = "Output")]
    json: bool,
    /// Print the suite as TOML with every default filled in
    #[arg(long, help_heading = "Output")]
    toml: bool,
    /// Print it as another program's input, with what that cannot say as comments
    #[arg(long, value_enum, conflicts_with_all = ["toml", "json"], help_heading = "Output")]
    format: Option<Format>,
    /// The file or device to name in `--format fio`
    #[arg(
        long,
        value_name = "PATH",
        requires = "format",
        default_value = "plimsoll.dat",
        help_heading = "Output"
    )]
    file: String,
    /// What the places in `--format list` are drawn from
    #[arg(
        long,
        value_name = "N",
        requires = "format",
        default_value_t = 1,
        help_heading = "Output"
    )]
    seed: u64,
}

/// Whose input.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A job file
    Fio,
    /// A suite of ours that has every request in a list, to be played again as it is
    List,
}

pub fn suite(args: &SuiteArgs, output: &Output) -> Result<(), Failure> {
    match &args.command {
        SuiteCommand::List(args) => list(args, output),
        SuiteCommand::Show(args) => show(args, output),
    }
}

#[derive(Serialize)]
struct Suites {
    schema: &'static str,
    suites: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    name: String,
    title: String,
    /// The question that it answers.
    group: String,
    has_quick: bool,
    /// Of a list of suites.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<String>,
}

fn list(args: &ListArgs, output: &Output) -> Result<(), Failure> {
    let groups = questions::groups()?;
    let members = groups.iter().flat_map(|group| group.suites.iter().map(move |one| (group, one)));
    let lines = members.map(|(group, one)| line(&one.name, &group.title));
    let mut suites = lines.collect::<Result<Vec<Line>, Failure>>()?;
    if args.json {
        suites.sort_by(|one, other| one.name.cmp(&other.name));
        return output.print(&json(&Suites { schema: "plimsoll.suites/1", suites })?);
    }
    let width = suites.iter().map(|suite| suite.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for group in suites.chunk_by(|one, other| one.group == other.group) {
        let title = group.first().map_or("", |suite| suite.group.as_str());
        text.push_str(&format!("{}{title}\n", if text.is_empty() { "" } else { "\n" }));
        let mut columns = Columns::new(vec![true, true]);
        for Line { name, title, .. } in group {
            columns.row(vec![format!("  {name:<width$}"), title.clone()]);
        }
        text.push_str(&columns.print());
    }
    output.print(&text)
}

fn line(name: &str, group: &str) -> Result<Line, Failure> {
    let (title, has_quick, parts) = match order::builtin(name)? {
        Found::Suite(source) => (source.title().to_owned(), source.has_quick(), Vec::new()),
        Found::Parts(list) => {
            let parts: Vec<_> = list.parts().iter().map(|part| part.suite.clone()).collect();
            (list.title().to_owned(), true, parts)
        }
    };
    Ok(Line { name: name.to_owned(), title, group: group.to_owned(), has_quick, parts })
}

#[derive(Serialize)]
struct Plan<'a> {
    schema: &'static str,
    least_duration_ns: u64,
    bytes_written_least: u64,
    suite: &'a Suite,
}

fn show(args: &ShowArgs, output: &Output) -> Result<(), Failure> {
    let source = match order::ordered(&args.suite, &args.options)? {
        Ordered::One(source) => source,
        Ordered::Many(list) => return show_list(&list, args, output),
    };
    let checked = suite::check(&source, &CheckContext::default())?;
    order::tell_doubts(&source, output);
    match args.format {
        Some(Format::Fio) => return output.print(&suite::fio_job(&checked, &args.file)?),
        Some(Format::List) => {
            return output.print(&crate::requests::listed(&checked, args.seed)?);
        }
        None => {}
    }
    if args.toml {
        return output.print(&suite::resolved_text(&source)?);
    }
    if args.json {
        return output.print_json(&Plan {
            schema: "plimsoll.suite/1",
            least_duration_ns: checked.least_duration().get(),
            bytes_written_least: checked.bytes_written_least().get(),
            suite: &checked,
        });
    }
    let text = suite::resolved_text(&source)?;
    // What it is about stands above, wrapped as its author did. Only the head has this field.
    let fields = text.rfind("\nfile_size = ").and_then(|at| text.get(at..)).unwrap_or(&text);
    output.print(&format!("{}{fields}", summary(&checked)))
}

fn show_list(list: &List, args: &ShowArgs, output: &Output) -> Result<(), Failure> {
    match args.format {
        Some(Format::Fio) => return output.print(&suite::fio_jobs(&list.titled()?, &args.file)?),
        Some(Format::List) => {
            let message = format!("`{}` is a list of suites already", list.name());
            let hint = "write out the requests of one of its parts";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        None => {}
    }
    if args.toml {
        return output.print(&crate::output::lines(list.text()));
    }
    if args.json {
        return output.print(&json(&list.document()?)?);
    }
    output.print(&list.summary()?)
}

/// What the sizes were multiplied by, if they were.
pub fn scaled(suite: &Suite) -> Option<String> {
    let factor = suite.scaled?;
    Some(format!("sizes and totals are {factor} times the suite's"))
}

fn summary(suite: &Suite) -> String {
    let mut out = String::new();
    let mut say = |text: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", text.trim_end());
    };
    say(&format!("{}: {}", suite.name, crate::output::lines(&suite.title)));
    let description = crate::output::lines(suite.description.trim());
    if !description.is_empty() {
        say(&format!("\n{description}"));
    }
    say("");
    say(&format!("files    {}", files(suite)));
    if let Some(scaled) = scaled(suite) {
        say(&format!("scale    {scaled}"));
    }
    for phase in &suite.phases {
        say(&format!("phase    {}", phase_line(phase)));
        for (label, line) in steady_lines(phase) {
            say(&report::wrapped(&format!("           {label:<9}"), &line));
        }
    }
    say(&format!("visits   {}", visits(suite)));
    say(&format!("time     {}", time(suite)));
    say(&format!("writes   {}", writes(suite)));
    out
}

pub fn files(suite: &Suite) -> String {
    let files = &suite.files;
    let fill = if files.fill { ", filled before the first phase" } else { "" };
    let passes = match files.precondition.len() {
        0 => String::new(),
        n => format!(", {n} preconditioning {}", if n == 1 { "pass" } else { "passes" }),
    };
    let asked = files.asked.map(|asked| format!(" (whole 4 KiB of {})", asked.exact()));
    let asked = asked.unwrap_or_default();
    match files.count {
        1 => format!("1 of {}{asked}{fill}{passes}", files.size),
        n => format!("{n} of {}{asked}, {} in all{fill}{passes}", files.size, files.total()),
    }
}

fn phase_line(phase: &Phase) -> String {
    let axes = phase.axes.iter().map(|axis| format!("{} {}", axis.values.len(), axis.field));
    let axes = axes.collect::<Vec<_>>().join(" x ");
    let cells = counted(phase.cells.len() as u64, "cell");
    let name = report::plain(&phase.name);
    let steady = if phase.steady.is_some() { ", until it is steady" } else { "" };
    let axes = if axes.is_empty() { axes } else { format!(" ({axes})") };
    let passes = match phase.precondition.len() {
        0 => String::new(),
        1 => ", after a preconditioning pass".to_owned(),
        n => format!(", after {n} preconditioning passes"),
    };
    let before = if phase.cells.iter().any(|cell| cell.before.is_some()) {
        ", a stream before each visit"
    } else {
        ""
    };
    format!("{name}: {cells}{axes}{passes}{before}{steady}")
}

/// How a phase is played until it is steady: its rounds, what decides, and when it is given up.
fn steady_lines(phase: &Phase) -> Vec<(&'static str, String)> {
    use stats::steady::{
        LAST_HALF_RISE_MAX, LAST_HALF_ROUNDS_MIN, SNIA_RANGE_MAX, SNIA_RISE_MAX, SNIA_ROUNDS,
    };
    let Some(steady) = phase.steady else { return Vec::new() };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let cells = phase.cells.len() as u64;
    let whole = Nanos::new(steady.round.get().saturating_mul(cells));
    let length = match cells {
        1 => duration(steady.round),
        _ => format!("{} for each cell, {} in all", duration(steady.round), duration(whole)),
    };
    let decides = match phase.cells.get(steady.track).filter(|_| cells > 1) {
        None => "its rate".to_owned(),
        Some(cell) => format!("the rate of {}", report::plain(&phase.place_text(cell))),
    };
    let longest = Nanos::new(whole.get().saturating_mul(steady.rounds_max.into()));
    let volume = volume_line(phase, steady.volume, longest);
    let rounds = counted(u64::from(steady.rounds_max), "round");
    vec![
        ("rounds", format!("{length}, one right after the other, without a ramp")),
        (
            "window",
            format!(
                "the last {SNIA_ROUNDS} rounds, and the last half of at least \
                 {LAST_HALF_ROUNDS_MIN}"
            ),
        ),
        (
            "rule",
            format!(
                "{decides}: in the last {SNIA_ROUNDS} highest and lowest at most {} apart, their \
                 line at most {} up or down; in the last half the line at most {}{volume}",
                percent(SNIA_RANGE_MAX),
                percent(SNIA_RISE_MAX),
                percent(LAST_HALF_RISE_MAX)
            ),
        ),
        ("cap", format!("{rounds}, {}; then it is marked as not steady", duration(longest))),
    ]
}

/// What must have been written first, and how fast that would have to be.
fn volume_line(phase: &Phase, times: f64, longest: Nanos) -> String {
    let range = phase.active_range();
    if times <= 0.0 || range == Bytes::ZERO {
        return String::new();
    }
    let wanted = range.get() as f64 * times;
    let rate = Bytes::new((wanted / longest.as_secs_f64()) as u64);
    format!(
        "; and {times} times the range written to was written in this phase: {}, {rate}/s at least",
        Bytes::new(wanted as u64)
    )
}

pub fn visits(suite: &Suite) -> String {
    let (least, most) = (suite.visits_least(), suite.visits_most());
    let count = match least == most {
        true => counted(u64::from(most), "visit"),
        false => format!("{least} to {most} visits"),
    };
    let steady: Vec<&str> = suite.phases.iter().filter_map(steady_name).collect();
    if steady.len() == suite.phases.len() {
        return format!("{count}, in rounds until it is steady, see above");
    }
    let how = match (suite.method, suite.order) {
        (Method::Rounds, _) if suite.rounds.visits_min == suite.rounds.visits_max => {
            "in rounds of random order".to_owned()
        }
        (Method::Rounds, _) => {
            let percent = (suite.rounds.precision * 1e4).round() / 1e2;
            format!("in rounds of random order, until each cell is known to {percent} %")
        }
        (Method::Classic, Order::AsWritten) => "in the order written".to_owned(),
        (Method::Classic, Order::Shuffled) => "in random order".to_owned(),
    };
    match steady.as_slice() {
        [] => format!("{count}, {how}"),
        names => {
            let names = report::plain(&names.join(", "));
            let phases = if steady.len() == 1 { "phase" } else { "phases" };
            format!("{count}, {how}; {phases} {names} until steady, see above")
        }
    }
}

fn steady_name(phase: &Phase) -> Option<&str> {
    phase.steady.is_some().then_some(phase.name.as_str())
}

pub fn time(suite: &Suite) -> String {
    let known = suite.least_duration();
    let least = duration(known);
    let steady = suite.phases.iter().filter_map(steady_name).count();
    // A limit of rounds to a precision is none for rounds until it is steady.
    let in_rounds = suite.method == Method::Rounds && steady < suite.phases.len();
    if known == Nanos::ZERO {
        let what = "nothing but amounts ends it, so that depends on the target";
        return if in_rounds {
            let most = duration(suite.rounds.time_max);
            format!("{what}; no round begins that would end after {most}")
        } else {
            what.to_owned()
        };
    }
    if in_rounds {
        let most = duration(suite.rounds.time_max);
        return format!("at least {least}; no round begins that would end after {most}");
    }
    if steady > 0 {
        return format!("at least {least}, plus fill and flushes; until it is steady, see above");
    }
    if suite.cells().all(|cell: &Cell| cell.longest_duration().is_some()) {
        format!("{least}, plus fill and flushes")
    } else {
        format!("at least {least}; the rest depends on the target")
    }
}

pub fn writes(suite: &Suite) -> String {
    let least = suite.bytes_written_least();
    match (suite.writes(), least.get()) {
        (false, 0) => "nothing".to_owned(),
        (false, _) => {
            format!("{least} to fill the files of its own; nothing to a target that is there")
        }
        (true, _) if suite.cells().flat_map(Cell::all_streams).any(is_timed_write) => {
            format!("at least {least}, and for as long as its timed writes last")
        }
        (true, _) => format!("at least {least}"),
    }
}

fn is_timed_write(stream: &Stream) -> bool {
    stream.modifies() && stream.stop.time.is_some()
}

/// A length of time as people say it: `14 min 20 s`.
pub fn duration(span: units::Nanos) -> String {
    let seconds = span.as_secs_f64().round();
    if seconds < 60.0 {
        return span.to_string();
    }
    let seconds = seconds as u64;
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// How long what ends by time alone takes; where nothing does, 0 would be no answer.
pub fn at_least(span: Nanos) -> String {
    if span == Nanos::ZERO {
        "as long as the target takes".to_owned()
    } else {
        format!("at least {}", duration(span))
    }
}

/// `1 visit`, `2 visits`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::duration;
    use units::Nanos;

    #[test]
    fn times_are_said_as_people_do() {
        for (seconds, text) in
            [(5, "5 s"), (60, "1 min"), (860, "14 min 20 s"), (7200, "2 h"), (5460, "1 h 31 min")]
        {
            assert_eq!(duration(Nanos::secs(seconds)), text);
        }
    }
}
