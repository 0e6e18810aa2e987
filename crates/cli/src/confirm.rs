//! The question before something is removed for good.

use std::io::{self, BufRead, IsTerminal};

use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::Output;

/// Asks whether to remove something; says so if the answer is not yes.
///
/// * `names`: what it is, in short.
/// * `describe`: what it is, in lines, for somebody who is asked.
/// * Errors: nobody can be asked.
pub fn confirmed(
    names: &str,
    describe: impl FnOnce() -> Result<String, Failure>,
    output: &Output,
) -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        let message = format!("removing {names} needs confirmation");
        return Err(Failure::new(ExitCode::Refused, message).hint("add `--yes`"));
    }
    output.notes(&describe()?);
    output.note("remove for good? [y/N]");
    let mut answer = String::new();
    // What cannot be read is no yes.
    let _ = io::stdin().lock().read_line(&mut answer);
    let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !is_yes {
        output.note("nothing was removed");
    }
    Ok(is_yes)
}
