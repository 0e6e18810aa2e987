//! `plimsoll resume`

use clap::Args;
use explain::whole::resumable;
use record::{RunHeader, RunState};
use store::Store;
use units::Nanos;

use crate::args::Common;
use crate::commands::{run, sequence};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::{ConsentOptions, MannerOptions, TalkOptions};
use crate::order;
use crate::output::Output;

pub const EXAMPLES: &str = "\
Examples:
  plimsoll resume      # the newest run that did not come to its end
  plimsoll resume r17";

/// Go on with a run that was interrupted or killed
///
/// Makes the visits that are missing, of the same plan on the same target. Permissions are not
/// stored: what `run` was allowed to overwrite or destroy must be named again.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ResumeArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    run: Option<String>,
    /// Time limit for all measurements, from the first visit on; replaces the limit given
    /// to `run`
    #[arg(long, value_name = "TIME")]
    max_time: Option<Nanos>,
    #[command(flatten)]
    consent: ConsentOptions,
    #[command(flatten)]
    manner: MannerOptions,
    #[command(flatten)]
    talk: TalkOptions,
}

pub fn resume(args: &ResumeArgs, common: &Common, output: Output) -> Result<ExitCode, Failure> {
    let output = output.quiet(args.talk.quiet);
    let path = order::store_path(common)?;
    // Looked up first: a store that is not there is not to be made.
    let id = {
        let store = order::store_to_read(common)?;
        match &args.run {
            Some(run) => order::resolve(&store, run, &output)?,
            None => newest_unfinished(&store, &output)?,
        }
    };
    let mut store = Store::open(&path)?;
    let so_far = store.load(&id)?;
    if let Some(imported) = &so_far.header.imported {
        let message =
            format!("run {id} cannot be resumed: it was imported, {} made it", imported.tool);
        let hint = format!("`plimsoll run` measures anew; `plimsoll show {id}` has its settings");
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    if so_far.header.blocks.is_some() {
        let message = format!(
            "run {id} cannot be resumed: it is one side of a comparison, whose sides have to take \
             turns"
        );
        let hint = "`plimsoll compare` makes what can be made of the blocks that are there; \
                    `compare --live` measures anew";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    let settings = order::settings(&args.consent, &args.manner, path);
    let prepared = runner::prepare_resume(&so_far, settings, args.max_time)?;
    let code = run::play(prepared, &mut store, &args.talk, &output, Some(&so_far))?;
    if matches!(code, ExitCode::Ok | ExitCode::Incomplete) {
        tell_next(&so_far.header, &output);
    }
    Ok(code)
}

/// How to go on with the list of suites that the run is a part of.
fn tell_next(header: &RunHeader, output: &Output) {
    let Some(part) = header.part.as_ref().filter(|part| part.number < part.of) else { return };
    if part.study.is_some() {
        output.note(&format!(
            "run {} of {} of study {}: `plimsoll study FILE --resume` makes the others",
            part.number, part.of, part.list
        ));
        return;
    }
    let next = part.number + 1;
    output.note(&format!(
        "part {} of {} of {}: `{}` goes on with part {next}, unless that was played",
        part.number,
        part.of,
        part.list,
        sequence::continued(&header.command_line, next, Some(&part.group)),
    ));
}

fn newest_unfinished(store: &Store, output: &Output) -> Result<String, Failure> {
    let runs = order::readable(store, output)?;
    let mut found: Vec<&str> = Vec::new();
    for run in runs.iter().rev().filter(|run| run.state != RunState::Complete && !run.live) {
        // What cannot go on must not stand before what can.
        let read = order::unless_damaged(&run.id, store.load(&run.id), output)?;
        if read.is_some_and(|run| resumable(&run)) {
            found.push(&run.id);
        }
    }
    if let Some((newest, others)) = found.split_first() {
        output.note(&match others {
            [] => format!("resuming {newest}"),
            _ => format!(
                "resuming {newest}, the newest that did not come to its end; {} did not either: \
                 `plimsoll resume {}` takes that one",
                others.join(", "),
                others[0]
            ),
        });
        return Ok((*newest).to_owned());
    }
    Err(Failure::new(ExitCode::Usage, "there is no run to resume")
        .hint("`plimsoll list` shows their states"))
}
