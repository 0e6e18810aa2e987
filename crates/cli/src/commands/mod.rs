//! One module per command.

pub mod calibrate;
pub mod compare;
pub mod completions;
pub mod crash;
pub mod db;
pub mod durability;
pub mod explain;
pub mod export;
pub mod generate;
pub mod import;
pub mod layer;
pub mod layout;
pub mod line;
pub mod list;
pub mod live;
pub mod man;
pub mod path;
pub mod predict;
pub mod probe;
pub mod profile;
pub mod report;
pub mod resume;
pub mod rm;
pub mod run;
pub mod sequence;
pub mod serve;
pub mod show;
pub mod study;
pub mod suites;
pub mod table;
pub mod volume;
pub mod which;

use crate::args::{self, Cli, Command};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::output::Output;

/// Does what was asked.
pub fn dispatch(cli: Cli, output: Output) -> Result<ExitCode, Failure> {
    let (common, out) = (&cli.common, &output);
    let Some(command) = cli.command else {
        args::short_help(out)?;
        return Ok(ExitCode::Ok);
    };
    match command {
        Command::Which(args) => return which::which(&args, common, out),
        Command::Line(args) => return line::line(&args, common, out),
        Command::Db(args) => return db::db(&args, common, out),
        Command::Layer(args) => return layer::layer(&args, common, out),
        Command::Run(args) => return run::run(&args, common, output),
        Command::Study(args) => return study::study(&args, common, output),
        Command::Resume(args) => return resume::resume(&args, common, output),
        Command::Calibrate(args) => return calibrate::calibrate(&args, common, output),
        Command::List(args) => list::list(&args, common, out)?,
        Command::Show(args) => show::show(&args, common, out)?,
        Command::Table(args) => table::table(&args, common, out)?,
        Command::Compare(args) => return compare::compare(&args, common, out),
        Command::Explain(args) => explain::explain(&args, common, out)?,
        Command::Serve(args) => return serve::serve(&args, common, out),
        Command::Report(args) => report::report(&args, common, out)?,
        Command::Import(args) => import::import(&args, common, out)?,
        Command::Export(args) => export::export(&args, common, out)?,
        Command::Probe(args) => probe::probe(&args, out)?,
        Command::Rm(args) => rm::rm(&args, common, out)?,
        Command::Predict(args) => predict::predict(&args, common, out)?,
        Command::Path(_) => path::path(common, out)?,
        Command::Suite(args) => suites::suite(&args, out)?,
        Command::Layout(args) => layout::layout(&args, out)?,
        Command::Completions(args) => completions::completions(&args, out)?,
        Command::Man(args) => man::man(&args, out)?,
        Command::Generate(args) => generate::generate(&args)?,
    }
    Ok(ExitCode::Ok)
}

/// The schema in the file of this name is that of today's types, or becomes it.
#[cfg(test)]
fn assert_committed(file: &str, schema: &schemars::Schema) {
    let path = format!("{}/../../schema/{file}", env!("CARGO_MANIFEST_DIR"));
    let current = format!("{}\n", serde_json::to_string_pretty(schema).unwrap_or_default());
    if std::env::var_os("PLIMSOLL_WRITE_SCHEMA").is_some() {
        let _ = std::fs::write(&path, &current);
    }
    assert!(
        std::fs::read_to_string(&path).is_ok_and(|committed| committed == current),
        "schema/{file} is stale: run this test with PLIMSOLL_WRITE_SCHEMA=1"
    );
}
