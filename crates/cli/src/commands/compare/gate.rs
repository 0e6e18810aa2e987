//! What a comparison means to a gate: whether the change may pass. The exit code and the JUnit report
//! are made of the same rulings.

use clap::ValueEnum;
use explain::compare::{Against, CellComparison, Direction, Outcome, Verdict};

use super::verdict;
use crate::exit::ExitCode;

/// What `--exit-code` fails on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Strictness {
    /// What is worse, and where nothing can be compared
    #[default]
    Worse,
    /// Also what cannot be told
    Strict,
}

/// What a gate makes of a cell, or of all of them; what is worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ruling {
    /// Slower beyond the margin, or failing more.
    Worse,
    /// Nothing in common.
    NotCompared,
    /// It may be slower beyond the margin.
    Open,
    Passed,
}

/// A cell, or all of them, with what a gate makes of it.
pub struct Case {
    pub name: String,
    pub ruling: Ruling,
    /// In one line: verdict and ratio.
    pub told: String,
    /// What that is from.
    pub behind: String,
}

impl Ruling {
    /// Of a cell by itself. What certainly is faster need not be told how much.
    pub fn of(cell: &CellComparison) -> Self {
        match (cell.outcome.verdict, cell.outcome.direction) {
            // Both kept up with the rate of the suite: nothing else was asked.
            _ if !cell.counts && !cell.is_of_storage() => Self::Passed,
            (Verdict::Different, Some(Direction::Slower)) if cell.counts => Self::Worse,
            (Verdict::Different, Some(Direction::Slower)) => Self::Open,
            _ => Self::unless_open(&cell.outcome),
        }
    }

    /// Of a side as a whole.
    fn of_all(against: &Against) -> Self {
        match () {
            () if against.is_worse() => Self::Worse,
            () if !against.is_compared() => Self::NotCompared,
            () if against.bracket => Self::Passed,
            () => Self::unless_open(&against.overall),
        }
    }

    fn unless_open(outcome: &Outcome) -> Self {
        let is_faster = outcome.direction == Some(Direction::Faster);
        let is_open = outcome.verdict == Verdict::Inconclusive && !is_faster;
        if is_open { Self::Open } else { Self::Passed }
    }
}

/// A side as a whole, then its cells. A repeat of the reference is no side to be judged: of that
/// only the whole.
pub fn cases(against: &Against) -> Vec<Case> {
    let whole = Case {
        name: "over all cells".to_owned(),
        ruling: Ruling::of_all(against),
        told: against.headline(),
        behind: against.differences.sentences().join("\n"),
    };
    let cells = against.cells.iter().map(|cell| Case {
        name: cell.cell.clone(),
        ruling: Ruling::of(cell),
        told: format!("{}: {}", verdict(&cell.outcome), cell.outcome.ratio_told()),
        behind: format!("A {}, {} {}", cell.reference.text(), against.label, cell.other.text()),
    });
    let lost = against.only_reference.iter().map(|cell| Case {
        name: cell.clone(),
        ruling: Ruling::Open,
        told: "only A has this cell".to_owned(),
        behind: String::new(),
    });
    let each = cells.chain(lost).filter(|_| !against.bracket);
    [whole].into_iter().chain(each).collect()
}

/// What scripts are to know: what was not compared is not as good as before.
pub fn code(against: &[Against], how: Strictness) -> ExitCode {
    match against.iter().flat_map(cases).map(|case| case.ruling).min() {
        Some(Ruling::Worse) => ExitCode::Slower,
        Some(Ruling::NotCompared) => ExitCode::NothingCompared,
        Some(Ruling::Open) if how == Strictness::Strict => ExitCode::CannotTell,
        _ => ExitCode::Ok,
    }
}
