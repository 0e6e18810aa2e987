//! `plimsoll compare`

mod gate;
mod groups;
mod junit;
mod markdown;

use std::fmt::Write;

use clap::{Args, ValueEnum};
use explain::compare::{
    Against, CellComparison, Comparison, Direction, Doubt, Method, Outcome, Stalls, Terms, Verdict,
};
use explain::view::View;
use explain::visits::head;
use record::{Run, RunSummary};
use report::Columns;
use store::Store;

use crate::args::Common;
use crate::commands::calibrate;
use crate::commands::live::{self, LiveArgs};
use crate::commands::suites::counted;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::options::Share;
use crate::order;
use crate::output::{Output, json};
use gate::{Strictness, code};

const EXAMPLES: &str = "\
Examples:
  plimsoll compare r17 r18              # is r18 faster than r17, and by how much
  plimsoll compare r17 r18 r19          # r18 and r19 against r17; a repeat of r17 shows drift
  plimsoll compare last-1 last --cells  # every figure behind the verdicts
  plimsoll compare r17 r18 --margin 5%  # differences up to 5 % do not matter
  plimsoll compare r17 r18 --json       # one document (plimsoll.comparison/1)
  plimsoll compare --group 5fe1 last    # the parts of a list that was played again
  plimsoll compare r1 last --exit-code=strict --format junit
                                        # a gate for CI: fails where it cannot tell, too
  plimsoll compare --live a.toml b.toml # measure both now, in turn, then compare";

/// One for each letter.
const RUNS_MAX: usize = 26;
/// Earlier runs that are looked at: of a device that has two speeds nearly always one had the other.
const EARLIER_MAX: usize = 8;

/// Compare runs: is the difference real, how large, and what can have made it
///
/// The first run is the reference. Differences between the stacks and plans come first: where
/// several things changed together, the cause cannot be attributed to one of them. Then each cell
/// and the whole get a ratio with its confidence interval, and a verdict: different, same, or
/// inconclusive, with the number of measurements that would decide it.
///
/// Runs measured one after the other also differ by drift. A repeat of the first run, given as the
/// third, shows how much. `--live` measures the sides in turn, which cancels drift. A difference
/// within the noise that `plimsoll calibrate` found on this machine does not count.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Two runs or more, the reference first: r17, 17, last, last-1, or the beginning of a
    /// suite's name; with --live, a file for each side
    #[arg(required = true, num_args = 2.., value_name = "RUN|FILE")]
    pub runs: Vec<String>,
    /// Differences up to this do not matter; where the machine's own A/A floor is larger, that
    #[arg(long, value_name = "SHARE", default_value = "3%", allow_hyphen_values = true)]
    pub margin: Share,
    /// Confidence of the intervals
    #[arg(long, value_name = "SHARE", default_value = "95%", value_parser = confidence)]
    #[arg(allow_hyphen_values = true)]
    pub confidence: Share,
    /// Compare lists of suites that were played again, part by part: the words are groups as
    /// `plimsoll list` shows them, the reference first
    #[arg(long, conflicts_with = "live")]
    pub group: bool,
    /// Show what is behind each cell's verdict: counts, method, p, latencies, stalls
    #[arg(long, conflicts_with = "json")]
    pub cells: bool,
    /// Print one JSON document (plimsoll.comparison/1; with `--group` plimsoll.comparisons/1)
    #[arg(long)]
    pub json: bool,
    /// Print a report for a CI system instead
    #[arg(long, value_enum, conflicts_with_all = ["json", "group", "cells"])]
    pub format: Option<CiFormat>,
    /// Exit with 8 if a run is worse than the first, over all cells or in any of them; else with 9 if
    /// a run has no measured cell in common with the first; else, with `strict`, with 10 if a run may
    /// be worse, or lacks a cell of the first
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "worse")]
    pub exit_code: Option<Strictness>,
    #[command(flatten)]
    pub live: LiveArgs,
}

/// In which form a CI system reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CiFormat {
    /// JUnit XML: a test case for each cell
    Junit,
    /// A table for comments and summaries of jobs, the worst cell first
    Markdown,
}

pub fn compare(args: &CompareArgs, common: &Common, output: &Output) -> Result<ExitCode, Failure> {
    if args.runs.len() > RUNS_MAX {
        let message = format!("{} runs are named, at most {RUNS_MAX} can be", args.runs.len());
        let hint = "each has a letter; compare the others with the same reference, too";
        return Err(Failure::new(ExitCode::Usage, message).hint(hint));
    }
    if args.live.live {
        return live::live(args, common, output);
    }
    let consent = &args.live.consent;
    if !(consent.overwrite.is_empty() && consent.destroy.is_empty()) {
        let message = "stored runs are compared without writing to anything";
        return Err(Failure::new(ExitCode::Usage, message).hint("`--live` measures first"));
    }
    let store = order::store_to_read(common)?;
    if args.group {
        return groups::groups(args, &store, output);
    }
    let runs = load(args, &store, output)?;
    conclude(args, &store, &runs, output)
}

/// Compares runs and prints what came of it; the exit code that says so.
pub fn conclude(
    args: &CompareArgs,
    store: &Store,
    runs: &[Run],
    output: &Output,
) -> Result<ExitCode, Failure> {
    let comparison = comparison(args, store, runs, output)?;
    output.print(&match args.format {
        Some(CiFormat::Junit) => junit::junit(&comparison, args.exit_code.unwrap_or_default()),
        Some(CiFormat::Markdown) => markdown::markdown(&comparison),
        None if args.json => json(&comparison)?,
        None => text(&comparison, runs, args.cells),
    })?;
    Ok(args.exit_code.map_or(ExitCode::Ok, |how| code(&comparison.against, how)))
}

/// Holds runs against the first, and against what this machine's noise was found to be.
pub fn comparison(
    args: &CompareArgs,
    store: &Store,
    runs: &[Run],
    output: &Output,
) -> Result<Comparison, Failure> {
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let floor = calibrate::floor_of(store, runs, output)?;
    let terms = Terms { margin: args.margin.0, floor, confidence: args.confidence.0 };
    let again = again(store, runs, output)?;
    let again = again.as_ref().map(View::new);
    let earlier = earlier(store, runs, output)?;
    let earlier: Vec<View<'_>> = earlier.iter().map(View::new).collect();
    Ok(explain::compare::compare_beside(&views, again.as_ref(), &earlier, &terms))
}

/// The newest runs of the suite and on the target of one of these, made before it: how far they are
/// from it shows how far a run tells of the next. Blocks need no such.
fn earlier(store: &Store, runs: &[Run], output: &Output) -> Result<Vec<Run>, Failure> {
    if runs.iter().any(|run| run.header.blocks.is_some() || run.header.imported.is_some()) {
        return Ok(Vec::new());
    }
    let (lines, _) = store.readable()?;
    let is_like = |line: &&RunSummary| {
        let mut of = runs.iter().map(|run| &run.header);
        of.clone().all(|header| header.id != line.id)
            && of.any(|header| {
                line.suite == header.suite
                    && line.target == header.target.given
                    && line.started_unix_ns.is_some_and(|at| at < header.started_unix_ns)
            })
    };
    let newest = lines.iter().rev().filter(is_like).take(EARLIER_MAX);
    let read =
        |line: &RunSummary| Ok(order::unless_damaged(&line.id, store.load(&line.id), output)?);
    newest.filter_map(|line| read(line).transpose()).collect()
}

/// The run that holds the first of these against itself, if one does and is still there.
fn again(store: &Store, runs: &[Run], output: &Output) -> Result<Option<Run>, Failure> {
    let blocks = runs.first().and_then(|run| run.header.blocks.as_ref());
    let Some(blocks) = blocks.filter(|blocks| !blocks.controls.is_empty()) else { return Ok(None) };
    let Some(id) = order::control_of(store, &blocks.group, output)? else { return Ok(None) };
    Ok(order::unless_damaged(&id, store.load(&id), output)?)
}

fn load(args: &CompareArgs, store: &Store, output: &Output) -> Result<Vec<Run>, Failure> {
    let mut ids: Vec<String> = Vec::new();
    for word in &args.runs {
        let id = order::resolve(store, word, output)?;
        if ids.contains(&id) {
            let message = format!("{id} is named twice, the second time as `{word}`");
            let hint = "a run is always the same as itself; `plimsoll list` shows the others";
            return Err(Failure::new(ExitCode::Usage, message).hint(hint));
        }
        ids.push(id);
    }
    let runs = ids.iter().map(|id| Ok(store.load(id)?)).collect::<Result<Vec<Run>, Failure>>()?;
    Ok(without_checks(runs))
}

/// Leaves out runs that hold the first against itself, if there is more to compare: they are looked
/// up anyway, and are no side.
fn without_checks(runs: Vec<Run>) -> Vec<Run> {
    let blocks = |run: &Run| run.header.blocks.clone();
    let group = runs.first().and_then(blocks).map(|blocks| blocks.group);
    let checks = |run: &Run| blocks(run).is_some_and(|b| b.is_control && Some(b.group) == group);
    let sides = runs.iter().filter(|run| !checks(run)).count();
    if sides < 2 { runs } else { runs.into_iter().filter(|run| !checks(run)).collect() }
}

fn confidence(text: &str) -> Result<Share, String> {
    let share = text.parse::<Share>().ok().filter(|share| (0.5..=0.9999).contains(&share.0));
    share.ok_or_else(|| "wanted 50% to 99.99%".to_owned())
}

fn text(comparison: &Comparison, runs: &[Run], details: bool) -> String {
    let mut out = String::new();
    for (side, run) in comparison.sides.iter().zip(runs) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{}  {}  {}: {}",
            side.label,
            side.run,
            order::on(&side.suite, &side.target),
            head(run),
        );
    }
    for against in &comparison.against {
        out.push('\n');
        let differences = if against.bracket { vec![] } else { against.differences.sentences() };
        paragraph(&mut out, &differences);
        paragraph(&mut out, &[against.headline()]);
        if !against.cells.is_empty() {
            out.push('\n');
            out.push_str(&table(against, details));
            out.push('\n');
        }
        if !against.bracket {
            paragraph(&mut out, &against.evidence(comparison));
        }
    }
    out
}

fn paragraph(out: &mut String, sentences: &[String]) {
    for sentence in sentences {
        out.push_str(&report::plain(sentence));
        out.push('\n');
    }
}

/// A line per cell.
fn table(against: &Against, details: bool) -> String {
    let label = against.label.as_str();
    let mut head = vec!["cell", "A", label, "ratio", "verdict"];
    let visits = format!("visits A/{label}");
    let stalls = format!("stalls A/{label}");
    if details {
        head.extend([
            visits.as_str(),
            "by",
            "p",
            "other way",
            "mean",
            "p50",
            "p99",
            "p99.9",
            stalls.as_str(),
        ]);
    }
    let mut rows = vec![head.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(against.cells.iter().map(|cell| row(cell, label, details)));
    // Text, that may be folded, are the cell, the verdict and the method.
    let count = rows.first().map_or(0, Vec::len);
    let mut columns = Columns::new((0..count).map(|k| matches!(k, 0 | 4 | 6)).collect());
    rows.into_iter().for_each(|row| columns.row(row));
    columns.print()
}

fn row(cell: &CellComparison, label: &str, details: bool) -> Vec<String> {
    let outcome = &cell.outcome;
    let ratio = |ratio: Option<explain::compare::Ratio>| {
        ratio.map_or_else(|| "-".to_owned(), |ratio| ratio.text())
    };
    let mut row = vec![
        report::plain(&cell.cell),
        cell.reference.text(),
        cell.other.text(),
        outcome.ratio.map_or_else(|| "-".to_owned(), |_| outcome.ratio_told()),
        match cell.not_on_one_level(label).filter(|_| !outcome.is_of_cache()) {
            Some(who) => format!("{}, {who} not on one level", verdict(outcome)),
            None => match cell.whose_cache(label).filter(|_| outcome.is_of_cache()) {
                Some(whose) => format!("not comparable: a cache's figure on {whose}"),
                None => verdict(outcome),
            },
        },
    ];
    if details {
        let (a, b) = (&cell.reference, &cell.other);
        let latency = cell.latency.as_ref();
        let mean = latency.map_or_else(|| "-".to_owned(), |of| format!("x{:.2}", of.mean_ratio));
        let tail = |percentile: f64| {
            let mut all = latency.into_iter().flat_map(|of| &of.percentiles);
            let own = all.find(|one| one.percentile == percentile);
            own.map_or_else(|| "-".to_owned(), explain::compare::PercentileRatio::text)
        };
        row.extend([
            format!("{}/{}", a.visits, b.visits),
            method(outcome.method).to_owned(),
            outcome.p.map_or_else(|| "-".to_owned(), chance),
            ratio(outcome.twin),
            mean,
            tail(50.0),
            tail(99.0),
            tail(99.9),
            format!("{}/{}", stalls(a.stalls), stalls(b.stalls)),
        ]);
    }
    row
}

/// How many; `-` where no visit knows.
fn stalls(of: Stalls) -> String {
    if of.measured_ns == 0 { "-".to_owned() } else { of.count.to_string() }
}

fn verdict(outcome: &Outcome) -> String {
    let way = outcome.direction.map(|way| match way {
        Direction::Faster => "faster",
        Direction::Slower => "slower",
    });
    match outcome.verdict {
        Verdict::Different => way.unwrap_or("different").to_owned(),
        Verdict::Same => "same".to_owned(),
        Verdict::Inconclusive => {
            let unit = match outcome.method {
                Method::SignedRank | Method::PairedT => "block",
                Method::Welch | Method::None => "visit",
            };
            let more = match outcome.more {
                Some(n) => format!(", about {} more", counted(n.into(), unit)),
                None if outcome.doubts.contains(&Doubt::AtTheMargin) => {
                    ", too near the margin".to_owned()
                }
                None if outcome.doubts.contains(&Doubt::FewRequests) => {
                    ", too few requests a visit".to_owned()
                }
                None if outcome.doubts.contains(&Doubt::Standstills) => ", standstills".to_owned(),
                None if outcome.doubts.contains(&Doubt::Levels) => ", levels".to_owned(),
                None if outcome.doubts.contains(&Doubt::Single) => {
                    return "no verdict: single values".to_owned();
                }
                None => String::new(),
            };
            // The margin is within its interval: it may be by next to nothing, or by much.
            let way = way.map(|way| format!(", {way}, by how much is open")).unwrap_or_default();
            format!("inconclusive{way}{more}")
        }
    }
}

/// A p; zeros would promise too much.
fn chance(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

const fn method(method: Method) -> &'static str {
    match method {
        Method::SignedRank => "signed ranks",
        Method::PairedT => "paired t",
        Method::Welch => "Welch",
        Method::None => "-",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_is_not_for_sale() {
        assert_eq!(confidence("95%"), Ok(Share(0.95)));
        for bad in ["100%", "1", "99.999%", "20%", "-5%", "nan%", "95", ""] {
            assert!(confidence(bad).is_err(), "{bad}");
        }
    }
}
