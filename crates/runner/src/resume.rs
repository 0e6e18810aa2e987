//! Going on with a run that was interrupted.

use std::collections::BTreeSet;
use std::path::PathBuf;

use plan::Made;
use record::{Run, RunState, StackTree, TargetKind, TargetRecord, VisitEnd, VisitRecord, Warning};
use stack::{Action, PathKind, Permit};
use units::Nanos;

use crate::made::{leads, made};
use crate::prepare::{Paths, Prepared, SCRATCH, prepare};
use crate::{Order, RunError, Settings, TargetName};

/// What is already there.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub id: String,
    /// Visits that need not be made again, in the order they were made.
    pub made: Vec<Made>,
    /// How many visits are stored.
    pub visits: u32,
    /// Passes over the files that need not be made again.
    pub passes: BTreeSet<u32>,
    /// That and where it was broken off: what was measured before is older than it looks.
    pub broken: Option<Warning>,
    /// Where the clock of a simulated device goes on: when the last stored visit ended on it.
    pub ended_unix_ns: i64,
    /// What lay below its targets as its first visit began.
    pub stack: Option<StackTree>,
}

/// Decides how to go on with `run`. What the user must allow anew (`--destroy`) is in
/// `settings`: leave to destroy is not kept.
///
/// * `time_max`: longest time of all visits together, where it is not to be what it was.
pub fn prepare_resume(
    run: &Run,
    settings: Settings,
    time_max: Option<Nanos>,
) -> Result<Prepared, RunError> {
    let header = &run.header;
    let no = |why: &str| RunError::Resume { run: header.id.clone(), why: why.to_owned() };
    if header.state == RunState::Complete {
        return Err(no("it has ended"));
    }
    if header.blocks.is_some() {
        return Err(no("it is one side of a comparison, whose sides have to take turns"));
    }
    if explain::line::looks_for_line(run) {
        return Err(no("it looks for a load line, which is of the moment: begin it anew"));
    }
    if header.target.is_layer() {
        return Err(no("its volume was made for it: begin it anew"));
    }
    let mut source = suite::parse(&header.suite_text, &format!("suite of run {}", header.id))?;
    if let Some(time) = time_max {
        if !source.in_rounds() {
            return Err(no("a longest time says how rounds end, and it is not played in rounds"));
        }
        source.set_time_max(time)?;
    }
    let targets = targets_of(run)?;
    if let Some(first) = header.targets.first() {
        // The suite was stored with the files of all targets.
        source.set(&format!("file_count={}", first.files))?;
    }
    let order = Order { source, targets, seed: Some(header.seed), size_given: true, settings };
    let mut prepared = prepare(&order)?;
    let grid = prepared.suite.cell_count() as u32;
    let changed = take_over(&mut prepared, run, grid as usize);
    changed.map_or(Ok(()), |why| Err(no(why)))?;
    // An interrupted or failed visit is made again; the fill always is, unless the file is
    // still the one it filled.
    let twin = header.target.kind == TargetKind::Twin;
    let leads = leads(&prepared.suite);
    let made: Vec<Made> = run
        .visits
        .iter()
        .filter(|visit| matches!(visit.end, VisitEnd::Complete | VisitEnd::Hanging))
        .filter(|visit| visit.cell < grid)
        .map(|visit| {
            let lead = leads.get(visit.cell as usize).copied().unwrap_or_default();
            made(visit, lead, twin)
        })
        .collect();
    prepared.header.id.clone_from(&header.id);
    let broken = Some(broken(run, prepared.header.started_unix_ns));
    prepared.header.started_unix_ns = header.started_unix_ns;
    let whole = run.visits.iter().filter(|visit| visit.end == VisitEnd::Complete);
    let passes = whole.filter_map(|visit| visit.cell.checked_sub(grid));
    let passes =
        if still_there(prepared.site.paths()) { passes.collect() } else { BTreeSet::new() };
    let visits = run.visits.len() as u32;
    let ended_unix_ns = run.visits.iter().map(ended).max().unwrap_or(header.started_unix_ns);
    let (id, stack) = (header.id.clone(), header.stack.clone());
    prepared.resumes = Some(Resumed { id, made, visits, passes, broken, ended_unix_ns, stack });
    Ok(prepared)
}

/// Takes what is known of the run's cells; says what makes it another run, if anything does.
fn take_over(prepared: &mut Prepared, run: &Run, grid: usize) -> Option<&'static str> {
    let (now, then) = (&prepared.cells, &run.cells);
    let same = now
        .iter()
        .zip(then)
        .take(grid)
        .all(|(now, then)| now.phase == then.phase && now.coordinates == then.coordinates);
    if !same || then.len() < now.len() {
        return Some("the target is not what it was");
    }
    let models = [&prepared.header.target, &run.header.target].map(|t| t.model.as_ref());
    if let [Some(now), Some(then)] = models
        && now != then
    {
        return Some("the model's file was changed since");
    }
    // Files that are to be made anew do not tell it yet, and it was stored once.
    for (now, then) in prepared.cells.iter_mut().zip(then) {
        now.impossible = now.impossible.take().or_else(|| then.impossible.clone());
    }
    // A file that was made then is there now and need not be written again.
    let extra = then.iter().skip(prepared.cells.len()).cloned();
    prepared.cells.extend(extra.collect::<Vec<_>>());
    None
}

/// When a visit ended, ns since 1970.
fn ended(visit: &VisitRecord) -> i64 {
    let elapsed = i64::try_from(visit.elapsed_ns).unwrap_or(i64::MAX);
    visit.started_unix_ns.saturating_add(elapsed)
}

/// Between which visits a run was broken off, and for how long where the clock tells.
fn broken(run: &Run, now_unix_ns: i64) -> Warning {
    let last = run.visits.iter().map(ended).max();
    let idle = last.map(|last| now_unix_ns.saturating_sub(last));
    // A simulated device is made anew, and its clock is none of ours.
    let real = run.header.target.kind != TargetKind::Twin;
    let idle = idle.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| real && *ns > 0);
    let after = idle.map(|ns| {
        // To the second: no clock is set more surely than that.
        let whole = ns.div_ceil(1_000_000_000).saturating_mul(1_000_000_000);
        format!(", {} after the last of them ended", Nanos::new(whole))
    });
    let text = format!(
        "broken off after {} stored visits and resumed{}: what differs before and after may be \
         from that break",
        run.visits.len(),
        after.unwrap_or_default()
    );
    Warning::new("resumed", text)
}

/// Whether what was once written is there to be read: reads of a file made anew, or of its holes,
/// would never reach a device. A twin is made anew, without what was written to it.
fn still_there(paths: Option<&Paths>) -> bool {
    let Some(paths) = paths else { return false };
    let made = |permit: &Permit| matches!(permit.action, Action::Create | Action::ScratchInside);
    let hollow = paths.targets().iter().any(|target| {
        matches!(target.path.kind, PathKind::File { allocated, .. }
            if allocated < target.path.size)
    });
    !hollow && !paths.permits.iter().any(made)
}

/// Where the run was: the path it resolved to, since the directory may be another today. A
/// scratch file is found by its directory.
fn targets_of(run: &Run) -> Result<Vec<TargetName>, RunError> {
    let header = &run.header;
    match header.targets.as_slice() {
        [] => Ok(vec![target_of(&header.target)?]),
        several => several.iter().map(target_of).collect(),
    }
}

fn target_of(target: &TargetRecord) -> Result<TargetName, RunError> {
    match target.kind {
        TargetKind::Twin => return TargetName::parse(target.given.as_ref()),
        TargetKind::Database => return TargetName::parse(target.resolved.as_ref()),
        _ => {}
    }
    let path = PathBuf::from(&target.resolved);
    let scratch = path.file_name().is_some_and(|name| name == SCRATCH);
    Ok(TargetName::Path(match path.parent() {
        Some(directory) if scratch => directory.to_path_buf(),
        _ => path,
    }))
}
