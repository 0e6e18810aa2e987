//! Outputs in, runs out: every sample, its figures to their printed digits, and broken copies.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail by panic, and say where"
)]

mod broken;
mod cut;
mod figures;
mod fuzz;
mod grids;
mod held;
mod layouts;
mod own_names;
mod suites;

use std::path::{Path, PathBuf};

use import::{ImportError, Origin, read};
use record::{OpRecord, Reported, Run};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

fn sample(name: &str) -> Vec<u8> {
    std::fs::read(data().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every sample's name, in order.
fn samples() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(data())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn try_import(name: &str, bytes: &[u8]) -> Result<Vec<Run>, ImportError> {
    read(bytes, None, &Origin { file: name.to_owned(), ..Origin::default() })
}

fn import(name: &str) -> Vec<Run> {
    try_import(name, &sample(name)).unwrap_or_else(|error| panic!("{error}"))
}

fn only(name: &str) -> Run {
    let mut runs = import(name);
    assert_eq!(runs.len(), 1, "{name}");
    runs.pop().unwrap()
}

/// The operations of a phase's cells, visit by visit.
fn ops<'a>(run: &'a Run, phase: &str) -> Vec<&'a OpRecord> {
    let cell = |index: u32| &run.cells[index as usize];
    let visits = run.visits.iter().filter(|v| cell(v.cell).phase == phase);
    visits.flat_map(|v| &v.streams).flat_map(|s| &s.ops).collect()
}

fn reported<'a>(run: &'a Run, phase: &str, op: &str) -> &'a Reported {
    let ops = ops(run, phase);
    let found = ops.iter().find(|o| o.op == op).unwrap_or_else(|| panic!("{phase} {op}: {run:#?}"));
    found.reported.as_ref().unwrap()
}
