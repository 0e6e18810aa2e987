//! `plimsoll __generate`: the pages under docs/ that the program itself knows best.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::args;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::json;

/// Columns of the help texts, whatever terminal they are generated on.
const WIDTH: usize = 100;

/// Write the generated pages into a directory
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Where to
    dir: PathBuf,
}

pub fn generate(args: &GenerateArgs) -> Result<(), Failure> {
    put(&args.dir, "cli.md", &cli_page())?;
    put(&args.dir, "suite.schema.json", &json(&suite::json_schema())?)
}

fn put(dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let path = dir.join(name);
    fs::create_dir_all(dir).and_then(|()| fs::write(&path, text)).map_err(|error| {
        let message = format!("cannot write {}", path.display());
        Failure::caused(ExitCode::Unexpected, message, error)
    })
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
