//! `plimsoll man`

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::Args;
use clap_mangen::Man;

use crate::args;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  plimsoll man | man -l -
  plimsoll man --dir ~/.local/share/man/man1";

/// Print the man page, or write a page for every command
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ManArgs {
    /// Write plimsoll.1, plimsoll-run.1, ... into this directory
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub fn man(args: &ManArgs, output: &Output) -> Result<(), Failure> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(args::grammar())
            .render(&mut page)
            .map_err(|e| Failure::caused(ExitCode::Unexpected, "cannot write the man page", e))?;
        return output.print_bytes(&page);
    };
    let written = fs::create_dir_all(dir).and_then(|()| write_all(dir));
    written.map_err(|error| {
        let message = format!("cannot write man pages into {}", dir.display());
        Failure::caused(ExitCode::Unexpected, message, error)
    })
}

fn write_all(dir: &std::path::Path) -> io::Result<()> {
    clap_mangen::generate_to(args::grammar(), dir)
}
