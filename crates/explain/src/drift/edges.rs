//! Visits at the beginning of a run that are faster than all later ones of their cells, and visits at its
//! end that are slower than all earlier ones: too few to be a level of their own.

use finding::{Code, Finding, Number, Subject};
use schemars::JsonSchema;
use serde::Serialize;
use stats::outlier::median;

use super::{Point, by_cell};

/// Visits are faster or slower than others of their cells from this factor on, and from so many times what
/// seven in ten visits differ by at most: of normal noise 3.1 standard deviations.
const APART: f64 = 1.3;
const USUAL: f64 = 0.7;
const USUAL_TIMES: f64 = 3.0;
/// From this factor on the very first and the very last visits need no other proof.
const FAR: f64 = 2.0;
/// Odd visits that lie anywhere are all next to one end in one of ten runs at most.
const CHANCE_MAX: f64 = 0.1;

/// Visits of the first or last quarter of a run that alone are faster or slower than others of their cells.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Edge {
    /// Which end of the run.
    pub end: End,
    /// How many visits.
    pub visits: u32,
    /// Their cells, in the order of their visits.
    pub cells: Vec<u32>,
    /// The same as people know them.
    #[serde(skip)]
    pub subjects: Vec<Subject>,
    /// Since the start of the run: the end of the last of them at its beginning, the start of the first of
    /// them at its end.
    pub at_ns: u64,
    /// Their rate by that of the others: the middle one of them.
    pub ratio: f64,
}

/// An end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Its visits are faster than others.
    Beginning,
    /// Its visits are slower than others.
    End,
}

/// * `points`: visits in the order made.
/// * `subject`: the cell at a place.
pub(super) fn edges(points: &[Point], subject: &dyn Fn(usize) -> Option<Subject>) -> Vec<Edge> {
    let excess = excess(points);
    let mut turned = excess.clone();
    turned.reverse();
    turned.iter_mut().flatten().for_each(|x| *x = -*x);
    let made = |end: End, places: Vec<usize>| {
        let odd: Vec<&Point> = places.iter().filter_map(|&at| points.get(at)).collect();
        let sizes: Vec<f64> = places.iter().filter_map(|&at| *excess.get(at)?).collect();
        let start = |point: &Point| (point.hours * 3.6e12) as u64;
        let at_ns = match end {
            End::Beginning => odd.last().map(|last| start(last).saturating_add(last.elapsed_ns))?,
            End::End => odd.first().map(|first| start(first))?,
        };
        let subjects: Vec<Subject> = odd.iter().filter_map(|point| subject(point.cell)).collect();
        Some(Edge {
            end,
            visits: u32::try_from(odd.len()).unwrap_or(u32::MAX),
            cells: subjects.iter().map(|subject| subject.cell).collect(),
            subjects,
            at_ns,
            ratio: median(&sizes)?.exp(),
        })
    };
    let last = points.len().wrapping_sub(1);
    let at_end = odd(&turned).into_iter().rev().map(|at| last - at).collect();
    [(End::Beginning, odd(&excess)), (End::End, at_end)]
        .into_iter()
        .filter_map(|(end, places)| made(end, places))
        .collect()
}

/// The places of visits that are much faster than others of their cells, if all are among the first.
fn odd(excess: &[Option<f64>]) -> Vec<usize> {
    let mut sizes: Vec<f64> = excess.iter().flatten().map(|x| x.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let Some(usual) = sizes.get((sizes.len() as f64 * USUAL) as usize) else { return Vec::new() };
    let least = APART.ln().max(USUAL_TIMES * usual);
    let fast = excess.iter().enumerate().filter(|(_, x)| x.is_some_and(|x| x >= least));
    let (places, sizes): (Vec<usize>, Vec<f64>) =
        fast.filter_map(|(at, x)| Some((at, (*x)?))).unzip();
    // Cells that what was used up does not limit are among the first, too, and not faster.
    let (until, of) = (places.last().map_or(0, |last| last + 1), excess.len());
    if 4 * until > of {
        return Vec::new();
    }
    let ratio = median(&sizes).map_or(1.0, f64::exp);
    // Were they anywhere, each would be among the first by chance.
    let chance: f64 = (0..places.len()).map(|k| (until - k) as f64 / (of - k) as f64).product();
    let is_far = ratio >= FAR && until == places.len();
    if is_far || chance <= CHANCE_MAX { places } else { Vec::new() }
}

/// By how much each visit is faster than the others of its cell, as ln; `None` where there is no other.
fn excess(points: &[Point]) -> Vec<Option<f64>> {
    let cells = by_cell(points);
    let of = |point: &Point| {
        let own = cells.get(&point.cell).into_iter().flatten();
        let others = own.filter(|other| other.order != point.order).map(|other| other.ln_rate);
        Some(point.ln_rate - median(&others.collect::<Vec<_>>())?)
    };
    points.iter().map(of).collect()
}

impl Edge {
    pub(super) fn finding(&self) -> Finding {
        let code = match self.end {
            End::Beginning => Code::FirstVisitsFaster,
            End::End => Code::LastVisitsSlower,
        };
        let mut cells = self.subjects.clone();
        cells.sort_by_key(|cell| cell.cell);
        cells.dedup();
        Finding::new(code)
            .on_all(cells, 0)
            .with("visits", self.visits)
            .with("several", self.visits > 1)
            .with("at", Number::ns(self.at_ns))
            .with("ratio", Number::ratio(self.ratio))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(order: u32, cell: usize, rate: f64) -> Point {
        let hours = f64::from(order) * 2.5 / 3_600.0;
        let elapsed_ns = 2_000_000_000;
        Point { cell, order, elapsed_ns, hours, gib: 0.0, ln_rate: rate.ln(), part: 0 }
    }

    /// Four cells in so many rounds; a factor for each visit.
    fn found(rounds: u32, factor: impl Fn(u32) -> f64) -> Vec<Edge> {
        let rate =
            |order: u32| 1_000.0 * f64::from(order % 4 + 1) * (1.0 + f64::from(order % 3) / 200.0);
        let points: Vec<Point> = (0..4 * rounds)
            .map(|order| point(order, (order % 4) as usize, rate(order) * factor(order)))
            .collect();
        edges(&points, &|place| Some(Subject::new(place as u32, None, format!("c{place}"))))
    }

    #[test]
    fn the_first_visits_may_be_faster_and_the_last_ones_slower() {
        assert!(found(5, |_| 1.0).is_empty());
        let first = found(5, |order| if order < 2 { 10.0 } else { 1.0 });
        let [edge] = first.as_slice() else { panic!("{first:?}") };
        assert_eq!((edge.end, edge.visits, &*edge.cells), (End::Beginning, 2, &[0, 1][..]));
        assert_eq!(edge.at_ns, 4_500_000_000);
        assert!((9.0..11.0).contains(&edge.ratio), "{edge:?}");
        let text = edge.finding().text();
        assert!(text.starts_with("2 visits in the first 4.5 s of the run were x"), "{text}");
        let last = found(5, |order| if order == 19 { 0.25 } else { 1.0 });
        let [edge] = last.as_slice() else { panic!("{last:?}") };
        assert_eq!((edge.end, edge.visits, &*edge.cells), (End::End, 1, &[3][..]));
        let text = edge.finding().text();
        assert!(
            text.starts_with("1 visit from 47.5 s into the run on was x0.25 as fast"),
            "{text}"
        );
        assert!(text.contains("(`c3`)"), "{text}");
    }

    #[test]
    fn visits_anywhere_else_and_small_ones_are_no_edge() {
        assert!(found(5, |order| if order == 9 { 10.0 } else { 1.0 }).is_empty());
        assert!(found(5, |order| if order == 0 || order == 9 { 10.0 } else { 1.0 }).is_empty());
        assert!(found(5, |order| if order == 0 { 1.2 } else { 1.0 }).is_empty());
        // Slow at first is a cold cache: that has findings of its own.
        assert!(found(5, |order| if order == 0 { 0.1 } else { 1.0 }).is_empty());
        // One of ten visits, by a little: chance has the first one so in a tenth of such runs.
        assert!(found(2, |order| if order == 0 { 1.5 } else { 1.0 }).is_empty());
    }
}
