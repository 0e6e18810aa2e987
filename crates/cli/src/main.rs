//! The command line: arguments in, text and exit codes out.

mod args;
mod commands;
mod confirm;
mod exit;
mod failure;
mod input;
mod options;
mod order;
mod output;
mod parts;
mod progress;
mod questions;
mod requests;
mod result_file;
mod signals;

use std::process;

fn main() -> process::ExitCode {
    signals::outlive_file_limit();
    let words: Vec<_> = std::env::args_os().collect();
    let output = output::Output::new(args::color_wish(&words));
    let code = match args::parse(&words) {
        Ok(cli) => commands::dispatch(cli, output).unwrap_or_else(|failure| failure.tell(&output)),
        Err(error) => args::explain(&error, &output),
    };
    code.into()
}
