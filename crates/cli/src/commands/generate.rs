//! `plimsoll __generate`: the pages under docs/ that the program itself knows best.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::args;
use crate::failure::Failure;
use crate::output::json;
use crate::result_file;

/// Columns of the help texts, whatever terminal they are generated on.
const WIDTH: usize = 100;

/// Write the generated pages into a directory
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Where to
    dir: PathBuf,
    /// Replace the pages that are there
    #[arg(long)]
    force: bool,
}

pub fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    let schema = json(&suite::json_schema())?;
    let pages = [
        ("cli.md".to_owned(), cli_page().into_bytes()),
        ("suite.schema.json".to_owned(), schema.into_bytes()),
    ];
    result_file::put_all(&args.dir, &pages, args.force)
}

fn cli_page() -> String {
    let mut page = String::from(
        "# The command line\n\n\
         Made from the program's own `--help` by `cargo xtask generate`; do not edit.\n",
    );
    let mut grammar = args::grammar().term_width(WIDTH).max_term_width(WIDTH);
    grammar.build();
    section(&mut page, &grammar, "plimsoll");
    page
}

fn section(page: &mut String, command: &Command, name: &str) {
    let help = command.clone().render_long_help().to_string();
    let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n"));
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        section(page, below, &format!("{name} {}", below.get_name()));
    }
}
