//! The command line's grammar. Help, man pages, completions and docs/cli.md all come from it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::commands::{
    calibrate, compare, completions, db, explain, export, generate, import, layer, layout, line,
    list, man, path, predict, probe, report, resume, rm, run, study,
};
use crate::commands::{serve, show, suites, table, which};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::{ColorWish, Output};

/// With what it was built from and for.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("PLIMSOLL_BUILD"), ")");

const EXAMPLES: &str = "\
Examples:
  plimsoll run bm-flash --target /ssd/test.dat
        make a file on the disk in question, measure it for about 13 minutes, show the tables
  plimsoll run bm-flash --quick
        the same in about a minute, on a scratch file in this directory
  plimsoll run random-read --target /dev/nvme0n1 --set queue_depth=1,4,16,64
        read a device; nothing is written to it
  plimsoll suite show bm-flash
        what that suite would do, before it does
  plimsoll list
        what was measured so far";

const ENVIRONMENT: &str = "\
Environment:
  PLIMSOLL_STORE       as --store
  XDG_DATA_HOME, HOME  where the store is: see `plimsoll path`
  NO_COLOR             if set and not empty, nothing is coloured
  TERM                 if `dumb`, nothing is coloured and no line is drawn twice";

/// How fast is the storage under a database, really.
///
/// Plimsoll measures a file, a block device or a simulated device by the methods of the field
/// (`plimsoll suite list`), stores everything it sees, and prints the tables.
///
/// It writes only to files that it made itself, unless `--overwrite` or `--destroy` names what
/// may be lost.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, long_version = LONG_VERSION)]
#[command(max_term_width = 100, after_help = EXAMPLES)]
#[command(disable_help_subcommand = true, subcommand_value_name = "COMMAND")]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Keep results in this file instead of the usual one (see `plimsoll path`)
    #[arg(long, value_name = "FILE", global = true, help_heading = "Everywhere")]
    #[arg(env = "PLIMSOLL_STORE", hide_env = true)]
    pub store: Option<PathBuf>,
    /// Colour messages
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Everywhere")]
    #[arg(value_enum, default_value_t, hide_possible_values = true)]
    #[arg(help = "Colour messages: auto, always or never")]
    pub color: ColorWish,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Which(Box<which::WhichArgs>),
    Line(Box<line::LineArgs>),
    Db(db::DbArgs),
    Predict(Box<predict::PredictArgs>),
    Layer(layer::LayerArgs),
    Run(Box<run::RunArgs>),
    Resume(Box<resume::ResumeArgs>),
    Study(Box<study::StudyArgs>),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Table(table::TableArgs),
    Compare(compare::CompareArgs),
    Explain(explain::ExplainArgs),
    Report(report::ReportArgs),
    Serve(serve::ServeArgs),
    Calibrate(Box<calibrate::CalibrateArgs>),
    Import(import::ImportArgs),
    Export(export::ExportArgs),
    Probe(probe::ProbeArgs),
    Rm(rm::RmArgs),
    Path(path::PathArgs),
    Suite(suites::SuiteArgs),
    Layout(Box<layout::LayoutArgs>),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    #[command(name = "__generate", hide = true)]
    Generate(generate::GenerateArgs),
}

/// Options of `compare` that say how to measure.
const ONLY_LIVE: [&str; 7] =
    ["even_though", "verify", "keep", "cpus", "hang_limit", "tolerate", "cache_size"];

/// The grammar, with what is worked out at run time.
pub fn grammar() -> clap::Command {
    let codes = ExitCode::table();
    Cli::command()
        .after_long_help(format!("{EXAMPLES}\n\n{codes}\n\n{ENVIRONMENT}"))
        .mut_subcommand("run", |c| c.after_long_help(format!("{}\n\n{codes}", run::EXAMPLES)))
        .mut_subcommand("line", |c| c.after_long_help(format!("{}\n\n{codes}", line::EXAMPLES)))
        .mut_subcommand("calibrate", |c| {
            c.after_long_help(format!("{}\n\n{codes}", calibrate::EXAMPLES))
        })
        .mut_subcommand("compare", |mut c| {
            for option in ONLY_LIVE {
                c = c.mut_arg(option, |arg| arg.requires("live"));
            }
            c
        })
        .mut_subcommand("serve", |c| c.after_long_help(format!("{}\n\n{codes}", serve::EXAMPLES)))
        .mut_subcommand("resume", |c| c.after_long_help(format!("{}\n\n{codes}", resume::EXAMPLES)))
}

/// Reads the words of a command line, the program first.
pub fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let mut grammar = grammar();
    let matches = grammar.try_get_matches_from_mut(help_as_option(words))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut grammar))
}

/// `help run` is `run --help`. A command of clap's own would be listed once for every command that
/// it explains, in every page that is made of the grammar.
fn help_as_option(words: &[OsString]) -> Vec<OsString> {
    match words {
        [program, help, command @ ..] if help == "help" => {
            let program = std::iter::once(program).chain(command).cloned();
            program.chain([OsString::from("--help")]).collect()
        }
        _ => words.to_vec(),
    }
}

/// Says what clap has to say: help that was asked for, or what is wrong with the arguments.
pub fn explain(error: &clap::Error, output: &Output) -> ExitCode {
    let text = error.render();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = styled(&text, output.out_color());
            let printed = output.print_bytes(text.as_bytes());
            printed.map_or_else(|failure| failure.tell(output), |()| ExitCode::Ok)
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            output.notes(text.to_string().trim_end());
            ExitCode::Usage
        }
        _ => {
            complain(&text.to_string(), meant(error), output);
            ExitCode::Usage
        }
    }
}

/// What somebody meant who wrote a suite's field as an option, or a target without its option.
fn meant(error: &clap::Error) -> Option<String> {
    let invalid =
        error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    let Some(ContextValue::String(word)) = invalid else { return None };
    let Some(option) = word.strip_prefix("--") else {
        let is_path = word.contains('/') && !word.starts_with('-');
        return is_path.then(|| format!("a target is named with `--target {word}`"));
    };
    let field = option.split('=').next().unwrap_or(option).replace('-', "_");
    let schema = serde_json::to_string(&suite::json_schema()).unwrap_or_default();
    let is_field = !field.is_empty() && schema.contains(&format!("\"{field}\":{{"));
    is_field.then(|| format!("a field of the suite is set with `--set {field}=VALUE`"))
}

/// Short help: what `plimsoll` alone says.
pub fn short_help(output: &Output) -> Result<(), Failure> {
    output.print_bytes(styled(&grammar().render_help(), output.out_color()).as_bytes())
}

fn styled(text: &StyledStr, color: bool) -> String {
    if color { text.ansi().to_string() } else { text.to_string() }
}

/// Clap's message in our form: `error:`, then `hint:`.
///
/// * `meant`: a better hint than clap's guess.
fn complain(text: &str, meant: Option<String>, output: &Output) {
    let mut message = Vec::new();
    let mut hints = Vec::new();
    for line in text.lines().map(str::trim_end) {
        if let Some(tip) = line.trim_start().strip_prefix("tip: ") {
            hints.push(meant.clone().unwrap_or_else(|| tip.to_owned()));
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            hints.push(format!("usage: {usage}"));
        } else if let Some(more) = line.strip_prefix("For more information, ") {
            hints.push(more.to_owned());
        } else if !line.is_empty() {
            message.push(line.strip_prefix("error: ").unwrap_or(line).to_owned());
        }
    }
    output.errors(message.iter().map(String::as_str));
    if let Some(meant) = meant.filter(|meant| !hints.contains(meant)) {
        hints.insert(0, meant);
    }
    for hint in hints {
        output.hint(&hint);
    }
}

/// What the words say about colour, before they are read properly: a complaint about them
/// should have it right, too.
pub fn color_wish(words: &[OsString]) -> ColorWish {
    let mut wish = ColorWish::default();
    let mut words = words.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        if let Some(known) = value.and_then(|v| ColorWish::from_str(v, false).ok()) {
            wish = known;
        }
    }
    wish
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }

    fn commands(parent: &clap::Command, all: &mut Vec<clap::Command>) {
        all.push(parent.clone());
        for command in parent.get_subcommands() {
            commands(command, all);
        }
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        let mut all = Vec::new();
        commands(&grammar(), &mut all);
        for command in all.iter().filter(|c| !c.is_hide_set()) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<_> =
                help.lines().filter(|line| line.starts_with("  plimsoll ")).collect();
            assert!(!examples.is_empty(), "`{}` has no example", command.get_name());
            for example in examples {
                let line = example.split(['|', '>', '#']).next().unwrap();
                let words = line.split_whitespace().map(|word| word.trim_matches('\''));
                let words: Vec<OsString> = words.map(OsString::from).collect();
                assert!(parse(&words).is_ok(), "{example}: {:?}", parse(&words).err());
            }
        }
    }

    #[test]
    fn the_wish_for_colour_is_heard_early() {
        let wish =
            |words: &[&str]| color_wish(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(wish(&["plimsoll", "--color", "never", "x"]), ColorWish::Never);
        assert_eq!(wish(&["plimsoll", "x", "--color=always"]), ColorWish::Always);
        assert_eq!(wish(&["plimsoll", "--color"]), ColorWish::Auto);
        assert_eq!(wish(&["plimsoll", "--color", "blue"]), ColorWish::Auto);
    }
}
