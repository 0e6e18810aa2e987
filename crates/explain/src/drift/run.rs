//! What all cells of a run share.
//!
//! One value a visit, its cell's: streams of a cell share the device and are no evidence of
//! their own. Cells differ in noise by a factor of ten and more, and three visits do not tell a
//! cell's noise, so no formula with a pooled spread holds its level. What holds it is that, were
//! nothing to change, the visits of a cell could change places: whatever is said of the run must
//! be rarer than that among the same rates dealt out anew, each within its cell.

use std::collections::BTreeMap;

use stats::Random;
use stats::paired::Estimate;
use stats::trend::theil_sen;

use super::levels::{Fit, SEGMENT_RUN, cells_min};
use super::{
    CONFIDENCE, POINTS_MIN, Point, RunDrift, Slope, Step, by_cell, is_at_break, range, thinned,
};

/// A device's noise commonly lasts from tens of milliseconds to some tenths of a second.
const VISIT_MIN_NS: u64 = 200_000_000;
/// The same where visits of a cell follow each other without others between: then what disturbs one
/// has no time to pass.
const VISIT_MIN_ADJACENT_NS: u64 = 1_000_000_000;
/// Rates dealt out anew, so often.
const DEALS: usize = 999;
/// Fewer ways to deal leave more than one in twenty to chance, or nearly: ten cells of two
/// visits, four of three, two of five and one of seven have enough.
const WAYS_MIN: f64 = 1000.0;
/// Of runs without a change one in a hundred is said to have one: half of these a change that stays, the
/// others one that ends.
const STEP_CHANCE: f64 = 0.005;
/// More changes than this in one run are no levels.
const STEPS_MAX: usize = 12;
/// So many steps that a straight line says as well are a drift: more of them would not make it none.
const STAIRS: usize = 4;
/// So many first visits of a level that ends are tried, and so many pairs of a first and a last one: the
/// rest of a long run goes without.
const STARTS_MAX: usize = 120;
const PAIRS_MAX: usize = 30_000;
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
    };
    if told.too_short {
        return Some(told);
    }
    let fit = changes(points).filter(|fit| !is_slow(points, fit));
    let cuts = fit.as_ref().map_or(&[][..], Fit::cuts);
    let last = cuts.last().copied().unwrap_or(0);
    let rest = points.get(last..).unwrap_or_default();
    let is_stair = is_stair(rest);
    let slope = common_slope(rest, |point| point.hours);
    Some(RunDrift {
        breaks: parts(rest),
        steps: fit.iter().flat_map(|fit| steps(points, fit)).collect(),
        per_hour: slope.map(|slope| if is_stair { slope.or_none() } else { slope }),
        ..told
    })
}

/// Changes that all cells share, each by the levels next to it.
fn steps(points: &[Point], fit: &Fit) -> Vec<Step> {
    let step = |at: usize| {
        // It may have come within the last visit of before, or within the first one of after.
        let start = |point: &Point| (point.hours * 3.6e12) as u64;
        let (low, high) = fit.bounds(at);
        let (last, first) = (points.get(low.checked_sub(1)?)?, points.get(high)?);
        let at_ns = start(first).saturating_add(first.elapsed_ns);
        let at_break = (low..=high).any(|place| is_at_break(points, place, 2));
        let size = fit.size(at);
        Some(Step {
            from_ns: start(last),
            at_ns,
            before: 1.0,
            after: size.middle.exp(),
            ratio_low: Some(size.low.exp()),
            ratio_high: Some(size.high.exp()),
            at_break,
        })
    };
    (0..fit.cuts().len()).filter_map(step).collect()
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

    /// First visit of a level that ends within the run, and the first after it, where one such level
    /// explains most, and how much. A level of fewer cells than are said to be all is none.
    fn best_window(&self) -> Option<(usize, usize, f64)> {
        let n = self.y.len();
        let last = n.checked_sub(2 * SEGMENT_RUN)?;
        let starts = last.checked_sub(SEGMENT_RUN)? + 1;
        let every = starts.div_ceil(STARTS_MAX);
        let longest = PAIRS_MAX / starts.div_ceil(every);
        let cells_min = cells_min(self.places.len());
        let mut within = vec![0usize; self.places.len()];
        let mut best: Option<(usize, usize, f64)> = None;
        for start in (SEGMENT_RUN..=last).step_by(every) {
            within.fill(0);
            let (mut products, mut squares, mut cells) = (0.0, 0.0, 0);
            for place in start..(n - SEGMENT_RUN).min(start + longest) {
                let cell = self.cell[place];
                let (all, weight) = (self.places[cell].len() as f64, self.weight[cell]);
                let of = |within: usize| within as f64 * (all - within as f64) / all;
                squares += weight * (of(within[cell] + 1) - of(within[cell]));
                products += weight * self.y[place];
                cells += usize::from(within[cell] == 0);
                within[cell] += 1;
                let short = place + 1 - start < SEGMENT_RUN || cells < cells_min;
                if short || squares <= 1e-9 * weight {
                    continue;
                }
                let gain = products * products / squares;
                if best.is_none_or(|(_, _, most)| gain > most) {
                    best = Some((start, place + 1, gain));
                }
            }
        }
        best
    }

    /// Whether so much is rare among the same rates dealt out anew.
    fn is_rare(&self, gain: f64, most: impl Fn(&Self) -> Option<f64>) -> bool {
        let allowed = (STEP_CHANCE * (DEALS + 1) as f64) as usize;
        let mut random = Random::new(SEED);
        let mut as_large = 1;
        (0..DEALS).all(|_| {
            let chance = most(&self.anew(&mut random));
            as_large += usize::from(chance.is_some_and(|chance| chance >= gain * (1.0 - 1e-9)));
            as_large <= allowed
        })
    }

    /// Sums of weighted products of x and y.
    fn products(&self, x: &[f64]) -> f64 {
        let each = x.iter().zip(&self.y).zip(&self.cell);
        each.map(|((x, y), &cell)| self.weight[cell] * x * y).sum()
    }
}

/// Levels that all cells share: changes are looked for in what those found before leave, and sizes are
/// those of all changes together.
fn changes(points: &[Point]) -> Option<Fit> {
    let mut fit: Option<Fit> = None;
    for _ in 0..STEPS_MAX {
        let known = fit.as_ref().map_or(&[][..], Fit::cuts);
        let stairs = fit.as_ref().map_or_else(|| vec![0.0; points.len()], Fit::stairs);
        let rest: Vec<Point> = points
            .iter()
            .zip(&stairs)
            .map(|(point, level)| Point { ln_rate: point.ln_rate - level, ..*point })
            .collect();
        let mut cuts = known.to_vec();
        for cut in next_cuts(&rest) {
            if cuts.iter().all(|known| known.abs_diff(cut) >= SEGMENT_RUN) {
                cuts.push(cut);
            }
        }
        let grown = Fit::settled(points, cuts).filter(|grown| grown.cuts().len() > known.len());
        let Some(grown) = grown else { break };
        let is_drift = grown.cuts().len() >= STAIRS && is_slow(points, &grown);
        fit = Some(grown);
        if is_drift {
            break;
        }
    }
    fit
}

/// Where one more change that stays, or one that ends, explains most, if it is none by chance.
fn next_cuts(points: &[Point]) -> Vec<usize> {
    let Some(deal) = Deal::of(points) else { return Vec::new() };
    let (one, two) = (deal.best_cut(), deal.best_window());
    let stays = || {
        let (place, gain) = one?;
        let most = |dealt: &Deal| dealt.best_cut().map(|(_, most)| most);
        deal.is_rare(gain, most).then(|| vec![place])
    };
    let until = || {
        let (from, to, gain) = two?;
        let most = |dealt: &Deal| dealt.best_window().map(|(_, _, most)| most);
        deal.is_rare(gain, most).then(|| vec![from, to])
    };
    // Two numbers more have to be worth it.
    let left = squares(&deal, &vec![0.0; points.len()]);
    let gains = [one.map_or(0.0, |(_, gain)| gain), two.map_or(0.0, |(.., gain)| gain)];
    let penalty = penalty((left - gains[0].max(gains[1])).max(0.0), &deal);
    let found = match gains[1] - gains[0] > penalty {
        true => until().or_else(stays),
        false => stays().or_else(until),
    };
    found.unwrap_or_default()
}

/// Whether a straight line over time, or over what was written, says it as well: a slow drift is cut
/// into stairs by whoever looks for steps only.
fn is_slow(points: &[Point], fit: &Fit) -> bool {
    let Some(deal) = Deal::of(points) else { return false };
    let stairs = squares(&deal, &fit.stairs());
    let Some(line) = line(points, &deal) else { return false };
    let penalty = penalty(line.min(stairs), &deal);
    line + penalty <= stairs + fit.cuts().len() as f64 * penalty
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
    use super::super::Drifts;
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
            let at_break = told.steps[0].at_break;
            let found = Drifts { parts: vec![told], ..Drifts::default() };
            (at_break, found.findings()[0].text())
        };
        for after in [23, 24, 25] {
            let (at_break, said) = resumed(after);
            assert!(
                at_break && said.contains("The run was interrupted and resumed there"),
                "{said}"
            );
        }
        let (at_break, said) = resumed(10);
        assert!(!at_break && said.contains("Something outside the cells changed then"), "{said}");
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
        let found = Drifts { parts, ..Drifts::default() };
        found.findings().iter().map(finding::Finding::text).collect()
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
            said[0].starts_with("`write`: all cells changed together at 5050 s [4980, 5050] into"),
            "{said:#?}"
        );
        assert!(said[0].contains("by 48 visits of 12 cells"), "{said:#?}");
        assert!(said[1].starts_with("`read`: no drift over the run"), "{said:#?}");
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
            assert_eq!(parts[1].steps, [], "{per_gib}");
            // 12 GiB from the first to the last visit.
            let slope = parts[1].per_hour.unwrap();
            let planted = (-per_gib * 47.0 / 4.0).exp_m1();
            let (low, high) = (slope.over_all_low, slope.over_all_high);
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
        let drifts = Drifts { parts, cliffs: 1, ..Drifts::default() };
        assert_eq!(drifts.findings(), []);
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

    /// Thirty cells in six rounds, with this common level from visit to visit.
    fn grid(seed: u64, level: impl Fn(u32) -> f64) -> Vec<Point> {
        let mut random = Random::new(seed);
        let mut order: Vec<usize> = (0..30).collect();
        let mut points = Vec::new();
        for number in 0..180u32 {
            if number % 30 == 0 {
                random.shuffle(&mut order);
            }
            let cell = order[(number % 30) as usize];
            let ln_rate = 9.0 + cell as f64 / 10.0 + level(number) + 0.03 * random.normal();
            let hours = f64::from(number) / 1200.0;
            let elapsed_ns = 2_000_000_000;
            points.push(Point {
                cell,
                order: number,
                elapsed_ns,
                hours,
                gib: 0.0,
                ln_rate,
                part: 0,
            });
        }
        points
    }

    fn ratios(points: &[Point]) -> Vec<f64> {
        of(points).steps.iter().map(|step| step.ratio().ln()).collect()
    }

    #[test]
    fn a_fall_that_comes_back_has_the_size_of_both() {
        let low = 0.35f64.ln();
        for (seed, (from, to)) in (0..).zip([(20, 30), (60, 80), (90, 100), (30, 150), (150, 160)])
        {
            let points = grid(seed, |n| if (from..to).contains(&n) { low } else { 0.0 });
            let found = ratios(&points);
            let near = |wanted: f64| move |seen: &f64| (seen - wanted).abs() < 0.05;
            let [fall, rise] = found[..] else { panic!("{from} to {to}: {found:?}") };
            assert!(near(low)(&fall) && near(-low)(&rise), "{from} to {to}: {found:?}");
            for step in of(&points).steps {
                let (low, high) = (step.ratio_low.unwrap(), step.ratio_high.unwrap());
                assert!(low < step.ratio() && step.ratio() < high, "{step:?}");
            }
        }
    }

    #[test]
    fn two_changes_close_together_are_two() {
        let points = grid(3, |n| match n {
            0..80 => 0.0,
            80..92 => -0.7,
            _ => -1.2,
        });
        let found = ratios(&points);
        let [first, second] = found[..] else { panic!("{found:?}") };
        assert!((first + 0.7).abs() < 0.06 && (second + 0.5).abs() < 0.06, "{found:?}");
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
