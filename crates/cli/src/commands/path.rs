//! `plimsoll path`

use std::os::unix::ffi::OsStrExt;

use clap::Args;

use crate::args::Common;
use crate::failure::Failure;
use crate::order;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  plimsoll path
  plimsoll path --store ./results.db";

/// Print where the results are kept
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PathArgs {}

pub fn path(common: &Common, output: &Output) -> Result<(), Failure> {
    let mut line = order::store_path(common)?.into_os_string();
    line.push("\n");
    output.print_bytes(line.as_bytes())
}
