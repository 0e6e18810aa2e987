//! What all cells of a run share.
//!
//! One value a visit, its cell's: streams of a cell share the device and are no evidence of
//! their own. Cells differ in noise by a factor of ten and more, and three visits do not tell a
//! cell's noise, so no formula with a pooled spread holds its level. What holds it is that, were
//! nothing to change, the visits of a cell could change places: whatever is said of the run must
//! be rarer than that among the same rates dealt out anew, each within its cell.

use std::collections::{BTreeMap, BTreeSet};

use stats::Random;
use stats::paired::Estimate;
use stats::trend::theil_sen;

use super::{
    CONFIDENCE, POINTS_MIN, Point, RunDrift, Slope, Step, by_cell, is_at_break, range, thinned,
};

/// Fewest visits of a level over the run.
const SEGMENT_RUN: usize = 5;
/// So many of the cells must have moved the same way for a change to be the run's.
const SHARED_MIN: f64 = 0.8;
/// As many of all cells must have visits on both sides.
const ON_BOTH_SIDES_MIN: f64 = 0.5;
/// A device's noise commonly lasts from tens of milliseconds to some tenths of a second.
const VISIT_MIN_NS: u64 = 200_000_000;
/// The same where visits of a cell follow each other without others between: then what disturbs one
/// has no time to pass.
const VISIT_MIN_ADJACENT_NS: u64 = 1_000_000_000;
/// Levels closer than this ratio are one.
const RATIO_MIN: f64 = 1.03;
/// Rates dealt out anew, so often.
const DEALS: usize = 999;
/// Fewer ways to deal leave more than one in twenty to chance, or nearly: ten cells of two
/// visits, four of three, two of five and one of seven have enough.
const WAYS_MIN: f64 = 1000.0;
/// Of runs without a change one in a hundred is said to have one.
const STEP_CHANCE: f64 = 0.01;
/// No cell is quieter than this, as a share of its rate: its weight would be without end.
const SIGMA_MIN: f64 = 1e-4;
/// What the other cells say of a cell's noise weighs as much as so many visits of its own.
const VISITS_OF_OTHERS: f64 = 2.0;
/// Any will do; the same one gives the same report.
const SEED: u64 = 0x0064_7269_6674;

/// What the rates of all cells have in common, for each part of the run: phases that were played one
/// after the other are parts of their own where each has enough visits to tell. None when no cell
/// was visited twice.
///
/// * `phase`: the phase of the cell at a place.
pub(super) fn run_drifts<'n>(points: &[Point], phase: &dyn Fn(usize) -> &'n str) -> Vec<RunDrift> {
    let mut parts: Vec<Vec<Point>> = Vec::new();
    for apart in apart(points, phase) {
        match parts.last_mut() {
            Some(last) if Deal::of(last).is_none() => last.extend(apart),
            _ => parts.push(apart),
        }
    }
    if parts.len() > 1
        && let Some(last) = parts.pop_if(|last| Deal::of(last).is_none())
        && let Some(before) = parts.last_mut()
    {
        before.extend(last);
    }
    let found = parts.iter().filter_map(|part| {
        let mut phases: Vec<&str> = Vec::new();
        for name in part.iter().map(|point| phase(point.cell)) {
            if !phases.contains(&name) {
                phases.push(name);
            }
        }
        run_drift(part, phases.into_iter().map(str::to_owned).collect())
    });
    found.collect()
}

/// Points of phases of which no visit lies among those of others, in the order made.
fn apart<'n>(points: &[Point], phase: &dyn Fn(usize) -> &'n str) -> Vec<Vec<Point>> {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, point) in points.iter().enumerate() {
        last.insert(phase(point.cell), place);
    }
    let (mut found, mut own, mut until) = (Vec::new(), Vec::new(), 0);
    for (place, point) in points.iter().enumerate() {
        if place > until && !own.is_empty() {
            found.push(std::mem::take(&mut own));
        }
        until = until.max(last.get(phase(point.cell)).copied().unwrap_or(place));
        own.push(*point);
    }
    found.push(own);
    found
}

/// What the rates of these cells have in common; `None` when no cell was visited twice.
fn run_drift(points: &[Point], phases: Vec<String>) -> Option<RunDrift> {
    let cells = by_cell(points).len();
    if cells == 0 {
        return None;
    }
    let told = RunDrift {
        phases,
        visits: u32::try_from(points.len()).unwrap_or(u32::MAX),
        cells: u32::try_from(cells).unwrap_or(u32::MAX),
        too_short: too_short(points),
        breaks: parts(points),
        steps: Vec::new(),
        per_hour: None,
        per_gib_written: None,
    };
    if told.too_short {
        return Some(told);
    }
    let mut cuts = Vec::new();
    cut(points, 0, &mut cuts);
    cuts.sort_by_key(|&(place, _)| place);
    if !cuts.is_empty() && is_slow(points, &cuts) {
        cuts.clear();
    }
    let step = |&(place, ratio): &(usize, f64)| {
        // It may have come within the last visit of before, or within the first one of after.
        let start = |point: &Point| (point.hours * 3.6e12) as u64;
        let (last, first) = (points.get(place.checked_sub(1)?)?, points.get(place)?);
        let at_ns = start(first).saturating_add(first.elapsed_ns);
        let at_break = is_at_break(points, place, 2);
        Some(Step { from_ns: start(last), at_ns, before: 1.0, after: ratio, at_break })
    };
    let last = cuts.last().map_or(0, |&(place, _)| place);
    let rest = points.get(last..).unwrap_or_default();
    let is_stair = is_stair(rest);
    let slope = |of: &dyn Fn(&Point) -> f64| {
        common_slope(rest, of).map(|slope| if is_stair { slope.or_none() } else { slope })
    };
    Some(RunDrift {
        breaks: parts(rest),
        steps: cuts.iter().filter_map(step).collect(),
        per_hour: slope(&|point| point.hours),
        per_gib_written: slope(&|point| point.gib),
        ..told
    })
}

/// How often the run was broken off between the first and the last of these.
fn parts(points: &[Point]) -> u32 {
    let ends = points.first().zip(points.last());
    ends.map_or(0, |(first, last)| last.part.saturating_sub(first.part))
}

/// Whether what disturbs one visit is still there in the next: then visits are not there to be
/// dealt anew.
pub(super) fn too_short(points: &[Point]) -> bool {
    let mut lasted: Vec<u64> = points.iter().map(|point| point.elapsed_ns).collect();
    lasted.sort_unstable();
    let adjacent = points.windows(2).filter(|pair| pair[0].cell == pair[1].cell).count();
    let least = if 2 * adjacent > points.len() { VISIT_MIN_ADJACENT_NS } else { VISIT_MIN_NS };
    lasted.get(lasted.len() / 2).is_some_and(|&middle| middle < least)
}

/// Visits as those of their cells, each rate against its cell's mean and with the weight of its
/// cell's noise.
#[derive(Clone)]
struct Deal {
    /// Which cell a visit is of.
    cell: Vec<usize>,
    /// Its ln rate, less the cell's mean.
    y: Vec<f64>,
    /// For each cell its visits' places.
    places: Vec<Vec<usize>>,
    /// For each cell, 1 by the square of its noise.
    weight: Vec<f64>,
}

impl Deal {
    /// `None` where there are too few ways to deal the rates out anew.
    fn of(points: &[Point]) -> Option<Self> {
        let mut by_name: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, point) in points.iter().enumerate() {
            by_name.entry(point.cell).or_default().push(place);
        }
        let places: Vec<Vec<usize>> = by_name.into_values().collect();
        let ways = |n: usize| (2..=n).map(|k| (k as f64).ln()).sum::<f64>();
        if places.iter().map(|own| ways(own.len())).sum::<f64>() < WAYS_MIN.ln() {
            return None;
        }
        let (mut cell, mut y) = (vec![0; points.len()], vec![0.0; points.len()]);
        let mut squares = Vec::with_capacity(places.len());
        for (index, own) in places.iter().enumerate() {
            let mean = own.iter().map(|&k| points[k].ln_rate).sum::<f64>() / own.len() as f64;
            for &place in own {
                cell[place] = index;
                y[place] = points[place].ln_rate - mean;
            }
            squares.push(own.iter().map(|&k| y[k] * y[k]).sum::<f64>());
        }
        let free = |index: usize| places[index].len() as f64 - 1.0;
        let several = (0..places.len()).filter(|&index| places[index].len() > 1);
        let mut variances: Vec<f64> = several.map(|index| squares[index] / free(index)).collect();
        variances.sort_unstable_by(f64::total_cmp);
        let usual = variances.get(variances.len() / 2)?.max(SIGMA_MIN * SIGMA_MIN);
        // A cell's own spread is the same however its rates are dealt, so the weights are too.
        let weight = |index: usize| {
            let worth = free(index) + VISITS_OF_OTHERS;
            worth / (squares[index] + VISITS_OF_OTHERS * usual)
        };
        let weight = (0..places.len()).map(weight).collect();
        Some(Self { cell, y, places, weight })
    }

    /// The same rates in other places, each within its cell.
    fn anew(&self, random: &mut Random) -> Self {
        let mut dealt = self.clone();
        for own in &self.places {
            let mut from = own.clone();
            random.shuffle(&mut from);
            for (&to, &from) in own.iter().zip(&from) {
                dealt.y[to] = self.y[from];
            }
        }
        dealt
    }

    /// The place at which one common step explains most, and how much in weighted squares.
    fn best_cut(&self) -> Option<(usize, f64)> {
        let n = self.y.len();
        let mut before = vec![0usize; self.places.len()];
        // Of an indicator of "after", each cell about its own mean.
        let (mut products, mut squares) = (0.0, 0.0);
        let mut best: Option<(usize, f64)> = None;
        for place in 0..n.saturating_sub(SEGMENT_RUN) {
            let cell = self.cell[place];
            let (all, weight) = (self.places[cell].len() as f64, self.weight[cell]);
            let of = |before: usize| before as f64 * (all - before as f64) / all;
            squares += weight * (of(before[cell] + 1) - of(before[cell]));
            products -= weight * self.y[place];
            before[cell] += 1;
            if place + 1 < SEGMENT_RUN || squares <= 1e-9 * weight {
                continue;
            }
            let gain = products * products / squares;
            if best.is_none_or(|(_, most)| gain > most) {
                best = Some((place + 1, gain));
            }
        }
        best
    }

    /// Sums of weighted products of x and y.
    fn products(&self, x: &[f64]) -> f64 {
        let each = x.iter().zip(&self.y).zip(&self.cell);
        each.map(|((x, y), &cell)| self.weight[cell] * x * y).sum()
    }
}

/// Steps that all cells share, from the largest on: place of the first visit after, and ratio.
fn cut(points: &[Point], first: usize, cuts: &mut Vec<(usize, f64)>) {
    let Some(deal) = Deal::of(points) else { return };
    let Some((place, gain)) = deal.best_cut() else { return };
    let Some(ratio) = shared(&points[..place], &points[place..]) else { return };
    if ratio.ln().abs() < RATIO_MIN.ln() {
        return;
    }
    let mut random = Random::new(SEED);
    let as_large = |_: &usize| {
        deal.anew(&mut random).best_cut().is_some_and(|(_, chance)| chance >= gain * (1.0 - 1e-9))
    };
    let as_large = (0..DEALS).filter(as_large).count();
    if (as_large + 1) as f64 > STEP_CHANCE * (DEALS + 1) as f64 {
        return;
    }
    cuts.push((first + place, ratio));
    cut(&points[..place], first, cuts);
    cut(&points[place..], first + place, cuts);
}

/// Ratio of the rates in two parts of the run, if most cells that are in both moved that way.
fn shared(before: &[Point], after: &[Point]) -> Option<f64> {
    let (before, after) = (by_cell(before), by_cell(after));
    let mean = |own: &[Point]| own.iter().map(|p| p.ln_rate).sum::<f64>() / own.len() as f64;
    let mut moved: Vec<f64> =
        before.iter().filter_map(|(cell, own)| Some(mean(after.get(cell)?) - mean(own))).collect();
    // Phases that came one after the other have few cells on both sides of a moment.
    let all = before.keys().chain(after.keys()).collect::<BTreeSet<_>>().len();
    if (moved.len() as f64) < ON_BOTH_SIDES_MIN * all as f64 {
        return None;
    }
    moved.sort_unstable_by(f64::total_cmp);
    let middle = *moved.get(moved.len() / 2)?;
    let same = moved.iter().filter(|m| m.signum() == middle.signum()).count();
    (same as f64 >= SHARED_MIN * moved.len() as f64).then(|| middle.exp())
}

/// Whether a straight line over time, or over what was written, says it as well: a slow drift is cut
/// into stairs by whoever looks for steps only.
fn is_slow(points: &[Point], cuts: &[(usize, f64)]) -> bool {
    let Some(deal) = Deal::of(points) else { return false };
    let mut stairs = vec![0.0; points.len()];
    for &(place, ratio) in cuts {
        stairs[place..].iter_mut().for_each(|level| *level += ratio.ln());
    }
    let stairs = squares(&deal, &stairs);
    let Some(line) = line(points, &deal) else { return false };
    let penalty = penalty(line.min(stairs), &deal);
    line + penalty <= stairs + cuts.len() as f64 * penalty
}

/// Whether one step says clearly more than any straight line, although not of most cells: a line
/// through that is no drift of the whole.
fn is_stair(points: &[Point]) -> bool {
    let Some(deal) = Deal::of(points) else { return false };
    let Some((_, gain)) = deal.best_cut() else { return false };
    let Some(line) = line(points, &deal) else { return false };
    let stair = (squares(&deal, &vec![0.0; points.len()]) - gain).max(0.0);
    stair + penalty(stair, &deal) < line
}

/// What a straight line leaves in weighted squares: over time or over what was written, the less.
fn line(points: &[Point], deal: &Deal) -> Option<f64> {
    let left = |of: &dyn Fn(&Point) -> f64| {
        let slope = common_slope(points, of)?;
        let per_unit = slope.over_all.ln_1p() / range(points.iter().map(of));
        let line: Vec<f64> = points.iter().map(|point| per_unit * of(point)).collect();
        Some(squares(deal, &line))
    };
    let both = [left(&|point| point.hours), left(&|point| point.gib)];
    both.into_iter().flatten().min_by(f64::total_cmp)
}

/// What one more number to fit has to be worth, in weighted squares.
fn penalty(left: f64, deal: &Deal) -> f64 {
    let n = deal.y.len();
    let free = n.saturating_sub(deal.places.len()).max(1) as f64;
    stats::changepoint::PENALTY * left / free * (n as f64).ln()
}

/// Weighted squared distance of the rates to what all cells are said to share, each cell about
/// its own mean.
fn squares(deal: &Deal, common: &[f64]) -> f64 {
    let of = |(own, weight): (&Vec<usize>, &f64)| {
        let rest: Vec<f64> = own.iter().map(|&k| deal.y[k] - common[k]).collect();
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        weight * rest.iter().map(|rest| (rest - mean).powi(2)).sum::<f64>()
    };
    deal.places.iter().zip(&deal.weight).map(of).sum()
}

/// Slope that the cells share: each visit against its cell's mean, in x as in y.
///
/// The interval is that of all pairs of visits. Pairs of noisy cells make it narrower than it is,
/// so whether it may leave out zero is not its own to say: the slope has to be rarer than one in
/// twenty among the same rates dealt out anew.
fn common_slope(points: &[Point], of: impl Fn(&Point) -> f64) -> Option<Slope> {
    let deal = Deal::of(points)?;
    let mut x: Vec<f64> = points.iter().map(&of).collect();
    for own in &deal.places {
        let mean = own.iter().map(|&k| x[k]).sum::<f64>() / own.len() as f64;
        own.iter().for_each(|&k| x[k] -= mean);
    }
    let several = deal.places.iter().filter(|own| own.len() > 1).count();
    if points.len() < POINTS_MIN + several || x.iter().all(|x| *x == 0.0) {
        return None;
    }
    // A mean is taken out of each cell, so n points are worth n less the cells.
    let in_several = deal.places.iter().map(Vec::len).filter(|&n| n > 1).sum::<usize>();
    let wider = (in_several as f64 / (in_several - several) as f64).sqrt();
    let shares = |k: &usize| deal.places[deal.cell[*k]].len() > 1;
    let (in_x, in_y) = (0..x.len()).filter(shares).map(|k| (x[k], deal.y[k])).unzip();
    let (in_x, in_y) = thinned(in_x, in_y);
    let slope = theil_sen(&in_x, &in_y, CONFIDENCE)?;
    let low = slope.middle - (slope.middle - slope.low) * wider;
    let high = slope.middle + (slope.high - slope.middle) * wider;

    let found = deal.products(&x).abs();
    let mut random = Random::new(SEED);
    let as_large = |_: &usize| deal.anew(&mut random).products(&x).abs() >= found * (1.0 - 1e-9);
    let as_large = (0..DEALS).filter(as_large).count();
    let is_rare = (as_large + 1) as f64 <= (1.0 - CONFIDENCE) * (DEALS + 1) as f64;
    let (low, high) = if is_rare { (low, high) } else { (low.min(0.0), high.max(0.0)) };
    Slope::of(Estimate { low, high, ..slope }, range(points.iter().map(&of)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve cells in four rounds; from the middle on all have half the rate.
    fn halved(elapsed_ns: u64) -> Vec<Point> {
        let mut random = Random::new(7);
        (0..48u32)
            .map(|order| Point {
                cell: (order % 12) as usize,
                order,
                elapsed_ns,
                hours: f64::from(order) / 3600.0,
                gib: 0.0,
                ln_rate: if order < 24 { 9.0 } else { 8.3 } + 0.03 * random.normal(),
                part: 0,
            })
            .collect()
    }

    fn of(points: &[Point]) -> RunDrift {
        run_drifts(points, &|_| "p").remove(0)
    }

    #[test]
    fn a_change_where_the_run_was_broken_off_is_told_as_such() {
        let resumed = |after: u32| {
            let mut points = halved(1_000_000_000);
            points.iter_mut().for_each(|point| point.part = u32::from(point.order >= after));
            let told = of(&points);
            let said = super::super::Drifts {
                visits: vec![],
                cells: vec![],
                parts: vec![told.clone()],
                cliffs: 0,
                long_visits: 0,
                kept: None,
            };
            (told.steps[0].at_break, said.sentences()[0].clone())
        };
        for after in [23, 24, 25] {
            let (at_break, said) = resumed(after);
            assert!(
                at_break && said.contains("where the run was broken off and resumed"),
                "{said}"
            );
        }
        let (at_break, said) = resumed(10);
        assert!(!at_break && said.contains("Something outside the cells happened then"), "{said}");
    }

    /// Twelve cells of reads in four rounds, as ever, and then twelve of writes.
    fn reads_then_writes(ln_rate: impl Fn(f64) -> f64) -> Vec<Point> {
        let mut random = Random::new(3);
        let point = |order: u32| {
            let (is_write, cell) = (order >= 48, (order % 12 + order / 48 * 12) as usize);
            let gib = if is_write { f64::from(order - 48) / 4.0 } else { 0.0 };
            let common = if is_write { ln_rate(gib) } else { 0.0 };
            let ln_rate = 9.0 + common + 0.01 * random.normal();
            let hours = f64::from(order) / 60.0;
            Point { cell, order, elapsed_ns: 10_000_000_000, hours, gib, ln_rate, part: 0 }
        };
        (0..96).map(point).collect()
    }

    fn phase(cell: usize) -> &'static str {
        if cell < 12 { "read" } else { "write" }
    }

    fn said(parts: Vec<RunDrift>) -> Vec<String> {
        let (visits, cells) = (vec![], vec![]);
        super::super::Drifts { visits, cells, parts, cliffs: 0, long_visits: 0, kept: None }
            .sentences()
    }

    #[test]
    fn phases_one_after_the_other_are_told_each_for_itself() {
        // After the first round of three of the writes.
        let points = reads_then_writes(|gib| if gib < 9.0 { 0.0 } else { -0.5 });
        let parts = run_drifts(&points, &phase);
        let steps: Vec<usize> = parts.iter().map(|part| part.steps.len()).collect();
        assert_eq!(steps, [0, 1], "{parts:#?}");
        let said = said(parts);
        // The change first.
        assert!(
            said[0].starts_with("write: all cells changed together between 4980 s and 5050 s into"),
            "{said:#?}"
        );
        assert!(said[0].contains("by 48 visits of 12 cells"), "{said:#?}");
        assert!(said[1].starts_with("read: no drift over the run"), "{said:#?}");
        // Too few of a phase to tell by itself go with the next.
        let few: Vec<Point> = points.iter().copied().filter(|p| p.cell % 12 < 2).collect();
        let parts = run_drifts(&few, &phase);
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].phases, ["read", "write"]);
    }

    #[test]
    fn what_changes_with_each_gib_is_a_drift_and_no_stair() {
        for per_gib in [0.02, 0.05, 0.15] {
            let parts = run_drifts(&reads_then_writes(|gib| -per_gib * gib), &phase);
            let write = &parts[1];
            assert_eq!(write.steps, [], "{per_gib}");
            let slope = write.per_gib_written.unwrap();
            let (low, high) = (slope.low.unwrap(), slope.high.unwrap());
            let planted = (-per_gib).exp_m1();
            assert!(low <= planted && planted <= high, "{per_gib}: {slope:?}");
        }
    }

    #[test]
    fn noise_that_could_hide_a_tenth_hides_a_drift() {
        let unknown = |seed: u64| {
            let mut random = Random::new(seed);
            let mut points = reads_then_writes(|_| 0.0);
            points.iter_mut().for_each(|point| point.ln_rate += 0.4 * random.normal());
            let said = said(run_drifts(&points, &|_| "p"));
            assert!(!said[0].starts_with("No drift"), "{said:?}");
            said[0].starts_with("Whether rates drifted over the run is unknown: ")
                && said[0].ends_with("and so much could hide in their noise.")
        };
        // One in twenty is said to have drifted.
        let unknown = (100..120).filter(|seed| unknown(*seed)).count();
        assert!(unknown >= 17, "{unknown} of 20");
    }

    #[test]
    fn a_step_of_one_cell_is_no_drift_of_the_whole() {
        // Fifteen rounds of one cell, which fell at the eighth, and three each of two others.
        let run = |seed: u64, falls: bool| {
            let mut random = Random::new(seed);
            let point = |order: u32| Point {
                cell: if order < 6 { 1 + (order % 2) as usize } else { 0 },
                order,
                elapsed_ns: 2_000_000_000,
                hours: f64::from(order) / 600.0,
                gib: f64::from(order),
                ln_rate: if falls && order >= 14 { 8.0 } else { 9.0 } + 0.02 * random.normal(),
                part: 0,
            };
            said(run_drifts(&(0..21).map(point).collect::<Vec<_>>(), &|_| "p"))
        };
        let drifted = |seed: &u64| run(*seed, true)[0].starts_with("The whole run drifted");
        assert_eq!((0..20).filter(drifted).count(), 0, "{:?}", run(0, true));
        assert!(run(0, false)[0].starts_with("No drift"), "{:?}", run(0, false));
    }

    #[test]
    fn nobody_says_no_drift_beside_a_change() {
        let parts = run_drifts(&reads_then_writes(|_| 0.0), &|_| "p");
        assert!(said(parts.clone())[0].starts_with("No drift over the run"));
        let drifts = super::super::Drifts {
            visits: vec![],
            cells: vec![],
            parts,
            cliffs: 1,
            long_visits: 0,
            kept: None,
        };
        assert_eq!(drifts.sentences(), [""; 0]);
    }

    #[test]
    fn visits_that_share_their_noise_say_nothing_of_the_run() {
        let long = of(&halved(1_000_000_000));
        assert_eq!((long.steps.len(), long.too_short), (1, false), "{long:?}");
        let short = of(&halved(50_000_000));
        assert_eq!((short.steps.len(), short.per_hour, short.too_short), (0, None, true));
        // One cell visited again and again: rounds until it is steady.
        let alone = |elapsed_ns: u64| {
            let mut points = halved(elapsed_ns);
            points.iter_mut().for_each(|point| point.cell = 0);
            of(&points).too_short
        };
        assert!(alone(500_000_000) && !alone(1_000_000_000) && !of(&halved(500_000_000)).too_short);
    }

    #[test]
    fn what_phases_one_after_the_other_do_is_not_of_all_cells() {
        let mut points = halved(1_000_000_000);
        for point in &mut points {
            // Four visits of each cell, then the next one's: only one has both levels.
            point.cell = (point.order / 5) as usize;
        }
        let run = of(&points);
        assert_eq!(run.steps, [], "a cell of ten changed");
    }
}
