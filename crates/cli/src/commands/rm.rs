//! `plimsoll rm`

use std::collections::BTreeMap;

use clap::Args;
use store::{Claim, Store, StoreError};

use crate::args::Common;
use crate::commands::list;
use crate::confirm::confirmed;
use crate::failure::Failure;
use crate::order;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  plimsoll rm r17
  plimsoll rm r3 r4 last --yes";

/// Remove runs from the store, for good
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct RmArgs {
    /// r17, 17, last, last-1, or the beginning of a suite's name
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub fn rm(args: &RmArgs, common: &Common, output: &Output) -> Result<(), Failure> {
    let ids = {
        let store = order::store_to_read(common)?;
        let ids: Result<Vec<_>, _> = args.runs.iter().map(|run| store.resolve(run)).collect();
        let ids = ids?;
        let of_ids = || list::of(&store, &ids);
        if !args.yes && !confirmed(&ids.join(", "), of_ids, output)? {
            return Ok(());
        }
        ids
    };
    let mut store = Store::open(&order::store_path(common)?).map_err(no_room)?;
    let mut runs = Vec::with_capacity(ids.len());
    for id in &ids {
        match store.load(id) {
            // A damaged one has to go, too; what it says of files is not believed.
            Err(error @ StoreError::BadValue { .. }) => {
                output.warning(&error.to_string());
                output.note(&format!(
                    "files that {id} may have left outside the store are not removed"
                ));
            }
            run => runs.push(run?),
        }
    }
    remove_files(&store, &runs, output)?;
    store.remove(&ids).map_err(no_room)?;
    output.note(&format!("removed {}", ids.join(", ")));
    Ok(())
}

/// What is removed is written down first, in the store's journal.
fn no_room(error: StoreError) -> Failure {
    let is_full = matches!(error, StoreError::DiskFull { .. });
    let failure = Failure::from(error);
    if !is_full {
        return failure;
    }
    failure.hint(
        "nothing was removed: that needs a little space for the store's journal; free some elsewhere on \
         that disk, then do it again",
    )
}

/// Removes what killed runs left outside the store. Before they are removed themselves: only by
/// what is stored of them is it known as theirs, so that this can be cut short and done again.
pub fn remove_files(store: &Store, runs: &[record::Run], output: &Output) -> Result<(), Failure> {
    // None of them may be under way, nor begin again meanwhile.
    let mut claims: BTreeMap<&str, Claim> = BTreeMap::new();
    for run in runs {
        let id = run.header.id.as_str();
        if !claims.contains_key(id) {
            claims.insert(id, store.claim(id)?);
        }
    }
    for run in runs {
        let left = runner::remove_left_behind(&run.header);
        if !left.removed.is_empty() {
            let names: Vec<_> =
                left.removed.iter().map(|path| path.display().to_string()).collect();
            output.note(&format!("removed what {} left: {}", run.header.id, names.join(", ")));
        }
        for path in &left.missing {
            output.note(&format!(
                "the scratch file of {}, {}, is not there: its file system is not mounted, or the file \
                 was removed already",
                run.header.id,
                path.display()
            ));
        }
        // What is not ours, or cannot be removed, is left and told; the run goes all the same.
        for trouble in &left.troubles {
            output.warning(&trouble.to_string());
            if let Some(hint) = trouble.hint() {
                output.hint(&hint);
            }
        }
    }
    Ok(())
}
