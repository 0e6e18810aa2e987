//! The reference held against itself, in blocks among those of the comparison.
//!
//! The two differ by noise alone, unless something hangs on the label: another file, another place,
//! what a neighbour leaves behind. What they differ by checks the comparison, and is no part of it.

use schemars::JsonSchema;
use serde::Serialize;
use stats::control::{Block, Blocks, label, label_of_all, second};
use stats::multiple::holm;
use stats::paired::Contrast;

use super::pairs::{Matched, matched};
use super::{Drift, Floor, Ratio, Row, row_of};
use crate::ends;
use crate::view::{CellView, View};
use crate::words::{self, count, list, percent};

/// How likely a finding is where there is none: for the whole, for the cells together, and for the
/// order.
pub const LEVEL: f64 = 0.01;
/// Cells that a sentence names one by one.
const NAMED_MAX: usize = 5;

/// What blocks of the reference against itself say about a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Control {
    /// How many such blocks were made to all cells.
    pub blocks: u32,
    /// Blocks in all: these, and those of the comparison.
    pub of: u32,
    /// Whether the reference is as far from itself as noise allows.
    pub finding: Finding,
    /// The reference under another label by itself, over all cells, with its interval of 99 %.
    pub ratio: Option<Ratio>,
    /// How far they may lie apart by noise, as a share: 99 of 100 lie no further.
    pub noise: Option<f64>,
    /// How likely they lie so far apart by noise.
    pub p: Option<f64>,
    /// The machine's own floor, as a share, where it was measured.
    pub floor: Option<f64>,
    /// Cells that lie further apart than noise allows, all cells looked at together.
    pub cells: Vec<ControlCell>,
    /// Cells whose ratio lies beyond the machine's floor; of so few blocks some do.
    pub beyond_floor: Option<u32>,
    /// The visit that comes second in a block by the first one, over all blocks, with its interval
    /// of 99 %.
    pub second: Option<Ratio>,
    /// How likely that is by noise.
    pub second_p: Option<f64>,
}

/// Whether the reference is as far from itself as noise allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Too little was made to judge by, or the runs it takes are not there.
    Unknown,
    /// No further than noise.
    Noise,
    /// Further than noise, and the sides differ by more.
    Beyond,
    /// Further than noise, and the sides differ by no more: nothing can be said of them.
    BeyondTheDifference,
}

/// A cell in which the reference is further from itself than noise allows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ControlCell {
    /// Phase and place in the grid.
    pub cell: String,
    /// Under another label by itself.
    pub ratio: Ratio,
    /// How likely that is by noise, all cells looked at together (Holm).
    pub p: f64,
}

/// What a control says, and how far the margins have to reach for it.
pub(super) struct Checked {
    pub control: Control,
    /// Where it is beyond noise.
    pub far: Option<Drift>,
}

impl Checked {
    /// * `reference`: the first side of the group, and `again` that once more; `None` where the
    ///   run is not there.
    /// * `compared`: the two sides whose comparison is checked.
    pub fn of(
        reference: &View<'_>,
        again: Option<&View<'_>>,
        compared: &Matched<'_>,
        floor: Option<&Floor>,
    ) -> Self {
        let own = again.map(|again| matched(reference, again));
        let cells = cells(compared, own.as_ref());
        let blocks: Vec<Blocks> = cells.iter().map(|cell| cell.blocks.clone()).collect();
        // One cell is all there is: one answer, not two ways to the same.
        let each: Vec<Option<Contrast>> = match blocks.len() {
            0 | 1 => vec![None; blocks.len()],
            _ => cells.iter().map(|cell| Some(label(&cell.blocks)?.off_by(cell.offset))).collect(),
        };
        let offset = ends::of_mean(cells.iter().map(|cell| cell.grain));
        let overall = label_of_all(&blocks).map(|found| found.off_by(offset));
        let found = beyond(&cells, &each);
        let p = overall.map(|contrast| contrast.p_beyond(0.0));
        let is_beyond = p.is_some_and(|p| p <= LEVEL) || !found.is_empty();
        let order = second(&blocks);
        let count = |of: fn(&Blocks) -> usize| {
            let least = blocks.iter().map(of).filter(|&n| n > 0).min().unwrap_or(0);
            u32::try_from(least).unwrap_or(u32::MAX)
        };
        let made = count(|b| b.again.len());
        let difference = compared.overall().middle().map_or(0.0, f64::abs);
        let own_far = overall.filter(|_| p.is_some_and(|p| p <= LEVEL)).map(|c| c.middle.abs());
        let finding = match (overall.is_some(), is_beyond) {
            (false, _) => Finding::Unknown,
            (true, false) => Finding::Noise,
            (true, true) if own_far.is_some_and(|far| far >= difference) => {
                Finding::BeyondTheDifference
            }
            (true, true) => Finding::Beyond,
        };
        let interval = |contrast: &Contrast| contrast.interval(1.0 - LEVEL);
        let control = Control {
            blocks: made,
            of: made.saturating_add(count(|b| b.others.len())),
            finding,
            ratio: overall.as_ref().and_then(interval).map(Ratio::of),
            noise: overall.as_ref().and_then(interval).map(|e| e.half_width().exp_m1()),
            p,
            floor: floor.map(|floor| floor.overall),
            beyond_floor: floor.map(|floor| beyond_floor(&cells, floor)),
            cells: found.iter().map(|(cell, _)| cell.clone()).collect(),
            second: order.as_ref().and_then(interval).map(Ratio::of),
            second_p: order.map(|contrast| contrast.p_beyond(0.0)),
        };
        let far = is_beyond.then(|| Drift {
            overall: own_far.unwrap_or(0.0),
            cells: found.into_iter().map(|(_, far)| far).collect(),
        });
        Self { control, far }
    }
}

/// A cell's blocks of both kinds.
struct Cell {
    row: Row,
    name: String,
    load: Option<crate::view::Load>,
    /// By how much the start and the end of visits may move it from itself.
    offset: f64,
    /// The same by a single request or burst.
    grain: f64,
    blocks: Blocks,
}

fn cells(compared: &Matched<'_>, own: Option<&Matched<'_>>) -> Vec<Cell> {
    let same = |a: &CellView<'_>, b: &CellView<'_>| {
        (a.cell.index, a.stream_name()) == (b.cell.index, b.stream_name())
    };
    let again = |cell: &CellView<'_>| {
        let pairs = own.into_iter().flat_map(|own| &own.pairs);
        pairs.filter(|pair| same(&pair.a, cell)).flat_map(|p| blocks(&p.a, &p.b)).collect()
    };
    let each = compared.pairs.iter().map(|pair| Cell {
        row: row_of(&pair.a),
        name: pair.a.name(),
        load: pair.a.load(),
        offset: ends::between([&pair.a, &pair.a], [None, None]),
        grain: ends::grain(&pair.a) * std::f64::consts::SQRT_2,
        blocks: Blocks { others: blocks(&pair.a, &pair.b), again: again(&pair.a) },
    });
    each.collect()
}

/// Blocks in which something completed on either side.
fn blocks(first: &CellView<'_>, second: &CellView<'_>) -> Vec<Block> {
    let in_both = first.visits.iter().filter_map(|a| {
        let b = second.visits.iter().find(|b| b.visit.repeat == a.visit.repeat)?;
        let difference = b.requests_per_second.ln() - a.requests_per_second.ln();
        let order = if b.visit.started_unix_ns >= a.visit.started_unix_ns { 1.0 } else { -1.0 };
        let number = a.visit.repeat;
        difference.is_finite().then_some(Block { number, difference, order })
    });
    in_both.collect()
}

/// Cells that are further apart than noise allows, each with how far.
fn beyond(cells: &[Cell], labels: &[Option<Contrast>]) -> Vec<(ControlCell, (Row, f64))> {
    let known: Vec<(&Cell, Contrast)> =
        cells.iter().zip(labels).filter_map(|(cell, found)| Some((cell, (*found)?))).collect();
    let p: Vec<f64> = known.iter().map(|(_, contrast)| contrast.p_beyond(0.0)).collect();
    let found = known.iter().zip(holm(&p)).filter(|(_, p)| *p <= LEVEL);
    let named = found.filter_map(|((cell, contrast), p)| {
        let ratio = Ratio::of(contrast.interval(1.0 - LEVEL)?);
        let named = ControlCell { cell: cell.name.clone(), ratio, p };
        Some((named, (cell.row, contrast.middle.abs())))
    });
    named.collect()
}

fn beyond_floor(cells: &[Cell], floor: &Floor) -> u32 {
    let beyond = |cell: &&Cell| {
        let again = &cell.blocks.again;
        let mean = again.iter().map(|b| b.difference).sum::<f64>() / again.len() as f64;
        mean.abs().exp_m1() > floor.of(cell.load.as_ref())
    };
    u32::try_from(cells.iter().filter(beyond).count()).unwrap_or(u32::MAX)
}

impl Control {
    /// Plain English: what the check says, on what evidence, what to do next.
    ///
    /// * `label`: of the side whose comparison is checked.
    pub fn sentences(&self, label: &str) -> Vec<String> {
        let mut out = vec![self.verdict(label)];
        out.extend(self.floor_told());
        out.extend(self.order());
        out
    }

    fn verdict(&self, label: &str) -> String {
        let made = match self.blocks {
            0 => return "Not checked: no block held A against itself to its end.".to_owned(),
            1 => format!("Of {} 1 was A against A", count(self.of.into(), "block")),
            n => format!("Of {} {n} were A against A", count(self.of.into(), "block")),
        };
        let (Some(ratio), Some(noise)) = (self.ratio, self.noise) else {
            return format!("{made}: too few to judge noise by.");
        };
        let far = percent(ratio.ratio.ln().abs().exp_m1());
        let noise = percent(noise);
        let cells = self.cells_named();
        match self.finding {
            Finding::Noise | Finding::Unknown => {
                format!("{made}: they differ by {far}, within the noise (up to {noise}).")
            }
            Finding::BeyondTheDifference => format!(
                "{made}: they differ by {far}, more than noise does ({noise}), and no less than A \
                 and {label} do: do not trust this comparison.{cells} {NEXT}"
            ),
            Finding::Beyond if self.p.is_some_and(|p| p <= LEVEL) => format!(
                "{made}: they differ by {far}, more than noise does ({noise}): no difference up to \
                 that is claimed.{cells} {NEXT}"
            ),
            Finding::Beyond => format!(
                "{made}: over all cells they differ by {far}, within the noise (up to {noise}), \
                 but not in each.{cells} {NEXT}"
            ),
        }
    }

    fn cells_named(&self) -> String {
        if self.cells.is_empty() {
            return String::new();
        }
        let named: Vec<String> = self
            .cells
            .iter()
            .take(NAMED_MAX)
            .map(|cell| format!("{} ({})", cell.cell, cell.ratio.text()))
            .collect();
        let more = self.cells.len().saturating_sub(NAMED_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!(" A is far from itself in {}{rest}.", list(&named))
    }

    fn floor_told(&self) -> Option<String> {
        let (floor, beyond) = (self.floor?, self.beyond_floor.filter(|&n| n > 0)?);
        (self.blocks > 0).then(|| {
            format!(
                "In {} A is further from itself than the machine's floor ({}): a floor is of \
                 more blocks than {}.",
                count(beyond.into(), "cell"),
                percent(floor),
                self.blocks
            )
        })
    }

    fn order(&self) -> Option<String> {
        let (second, p) = (self.second?, self.second_p?);
        (p <= LEVEL).then(|| {
            format!(
                "Who is visited second in a block is {} as fast as who is first: something that \
                 the first leaves behind (a warm cache, writes not yet out) reaches the second. The \
                 coin gives every side the same share of it, but only if all leave the same behind. \
                 Empty the caches or let the device rest between visits.",
                words::ratio(second.ratio, second.low.zip(second.high))
            )
        })
    }
}

/// What to do about a reference that is not itself.
const NEXT: &str = "Something other than the configuration moves the figures: look for other load, \
                    for places on the disk, for what one visit leaves to the next; then measure again.";
