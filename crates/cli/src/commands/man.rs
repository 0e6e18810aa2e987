//! `plimsoll man`

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;

use crate::args;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::Output;
use crate::result_file;

const EXAMPLES: &str = "\
Examples:
  plimsoll man | man -l -
  plimsoll man --dir ~/.local/share/man/man1
  plimsoll man --dir ~/.local/share/man/man1 --force  # after an update";

/// Print the man page, or write a page for every command
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Write plimsoll.1, plimsoll-run.1, ... into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Replace the pages that are there
    #[arg(long, requires = "dir")]
    force: bool,
}

pub fn man(args: &ManArgs, output: &Output) -> Result<(), Failure> {
    let Some(dir) = &args.dir else {
        return output.print_bytes(&rendered(&Man::new(args::grammar()))?);
    };
    result_file::put_all(dir, &pages()?, args.force)
}

/// A page for every command that is shown: its file's name, and what is in it.
fn pages() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let mut grammar = args::grammar().disable_help_subcommand(true);
    grammar.build();
    let mut pages = Vec::new();
    add_pages(grammar, &mut pages)?;
    Ok(pages)
}

fn add_pages(command: Command, pages: &mut Vec<(String, Vec<u8>)>) -> Result<(), Failure> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        add_pages(below.clone(), pages)?;
    }
    let man = Man::new(command);
    pages.push((man.get_filename(), rendered(&man)?));
    Ok(())
}

fn rendered(man: &Man) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    man.render(&mut page)
        .map_err(|e| Failure::caused(ExitCode::Unexpected, "cannot write the man page", e))?;
    Ok(page)
}
