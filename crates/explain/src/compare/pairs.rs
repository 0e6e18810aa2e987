//! Which cells belong together, and what each pair has to say.

use std::collections::BTreeMap;

use record::Run;
use stats::interval::{Interval, moderated_among, plain};

use super::judge::{Evidence, Side};
use super::stalls::Stalls;
use super::{Design, Rate, Row, row_of};
use crate::cache;
use crate::ends;
use crate::interval::{self, Basis, Standstills};
use crate::places::{Told, places};
use crate::view::{CellView, View};

/// Confidence of a side's own rate.
const RATE_CONFIDENCE: f64 = 0.95;

/// Shares that caches answered are as good as the same up to this.
const CACHED_ALIKE: f64 = 0.05;

/// Two runs, cell by cell.
pub(super) struct Matched<'a> {
    pub design: Design,
    pub pairs: Vec<Pair<'a>>,
    pub only_reference: Vec<String>,
    pub only_other: Vec<String>,
    own: [Own; 2],
}

/// Intervals of a run by itself, as tables and explanations show them: by cell and stream, visits
/// and ends.
type Own = BTreeMap<Row, (usize, f64, f64)>;

/// A cell of both, or one stream of it.
pub(super) struct Pair<'a> {
    pub a: CellView<'a>,
    pub b: CellView<'a>,
    /// Shares of requests that a cache answered, of the reference and the other.
    pub cached: [Option<f64>; 2],
    /// Rounds in which both were visited: number, and ln rate on either side.
    rounds: Vec<(u32, f64, f64)>,
}

/// Brings the cells of two runs together: by phase, place and streams; where a plan differs
/// within one suite, by phase and place.
pub(super) fn matched<'a>(reference: &View<'a>, other: &View<'a>) -> Matched<'a> {
    let (ours, others) = (Told::new(reference.run), Told::new(other.run));
    let mut places = places(&[&ours, &others]).into_iter();
    let (ours, others) = (places.next().unwrap_or_default(), places.next().unwrap_or_default());
    let design = design(reference, other);
    let measured = |view: &View<'a>| -> Vec<CellView<'a>> {
        let mut cells: Vec<CellView<'a>> = view.grid().cloned().collect();
        if design == Design::Blocks {
            // Blocks of a side against itself check the comparison, and are no part of it.
            let takes = |run: &Run, repeat| {
                run.header.blocks.as_ref().is_none_or(|blocks| blocks.takes_part(repeat))
            };
            let both = |repeat| takes(reference.run, repeat) && takes(other.run, repeat);
            cells.iter_mut().for_each(|cell| cell.visits.retain(|v| both(v.visit.repeat)));
        }
        cells.retain(|cell| !cell.visits.is_empty());
        cells
    };
    let mut theirs = BTreeMap::new();
    for cell in measured(other) {
        if let Some(place) = others.get(&cell.cell.index) {
            theirs.entry(place).or_insert(cell);
        }
    }
    let cached = (cache::answered(reference), cache::answered(other));
    let one_suite = reference.run.header.suite == other.run.header.suite;
    let mut pairs = Vec::new();
    let mut only_reference = Vec::new();
    for a in measured(reference) {
        let fits = |b: &CellView<'_>| {
            let streams = (&a.cell.streams, &b.cell.streams);
            streams.0 == streams.1 || one_suite && streams.0.len() == streams.1.len()
        };
        let place = ours.get(&a.cell.index).filter(|place| theirs.get(place).is_some_and(fits));
        match place.and_then(|place| theirs.remove(place)) {
            Some(b) => {
                pairs.extend(Pair::by_stream(&a, &b).into_iter().map(|pair| Pair {
                    cached: [(cached.0)(&pair.a), (cached.1)(&pair.b)],
                    ..pair
                }))
            }
            None => only_reference.push(a.name()),
        }
    }
    let mut left: Vec<_> = theirs.into_values().collect();
    left.sort_by_key(|cell| cell.cell.index);
    let only_other = left.iter().map(CellView::name).collect();
    let own = [own(reference), own(other)];
    Matched { design, pairs, only_reference, only_other, own }
}

fn own(view: &View<'_>) -> Own {
    let cells = view
        .cells
        .iter()
        .zip(interval::cells(view))
        .filter(|(cell, _)| cell.cell.streams.len() < 2);
    let streams =
        view.rows.iter().zip(interval::rows(view)).filter(|(row, _)| row.stream.is_some());
    let known = cells.chain(streams).filter_map(|(row, found)| {
        let found = found.filter(|found| found.basis == Basis::Visits)?;
        Some((row_of(row), (row.visits.len(), found.low, found.high)))
    });
    known.collect()
}

fn design(reference: &View<'_>, other: &View<'_>) -> Design {
    let group = |view: &View<'_>| view.run.header.blocks.as_ref().map(|b| b.group.clone());
    match (group(reference), group(other)) {
        (Some(a), Some(b)) if a == b => Design::Blocks,
        _ => Design::Apart,
    }
}

fn rounds(a: &CellView<'_>, b: &CellView<'_>) -> Vec<(u32, f64, f64)> {
    let by_repeat = |cell: &CellView<'_>| -> BTreeMap<u32, f64> {
        let rates = cell.visits.iter().map(|v| (v.visit.repeat, v.requests_per_second));
        rates.filter(|(_, rate)| *rate > 0.0).map(|(repeat, rate)| (repeat, rate.ln())).collect()
    };
    let theirs = by_repeat(b);
    let both = by_repeat(a).into_iter().filter_map(|(k, a)| Some((k, a, *theirs.get(&k)?)));
    both.collect()
}

/// One side of a pair.
pub(super) type CellOf = for<'p, 'a> fn(&'p Pair<'a>) -> &'p CellView<'a>;

impl Matched<'_> {
    /// Of every pair, variances moderated across those of its phase that are alike; none where a cache
    /// answered on one side.
    pub fn evidence(&self) -> Vec<Evidence> {
        let all = self.evidence_of_all().into_iter().zip(&self.pairs);
        all.map(|(evidence, pair)| match pair.is_comparable() {
            true => evidence,
            false => Evidence::of_blocks(Vec::new(), None),
        })
        .collect()
    }

    fn evidence_of_all(&self) -> Vec<Evidence> {
        match self.design {
            Design::Blocks => {
                let all: Vec<Vec<f64>> = self
                    .pairs
                    .iter()
                    .map(|pair| pair.differences().map(|(_, d)| d).collect())
                    .collect();
                let means = self.moderated(&all);
                let offsets: Vec<f64> =
                    self.pairs.iter().zip(self.deviations()).map(|(p, d)| p.offset(d)).collect();
                let each = all.into_iter().zip(means).zip(self.pairs.iter().zip(offsets));
                each.map(|((d, mean), (pair, offset))| {
                    let nothing = d.is_empty() || pair.has_nothing();
                    Evidence { nothing, ..Evidence::of_blocks(d, mean) }.off_by(offset)
                })
                .collect()
            }
            Design::Apart => {
                let (left, right) = (self.sides(|p| &p.a), self.sides(|p| &p.b));
                let sides = left.iter().zip(&right).zip(&self.pairs);
                sides
                    .map(|((a, b), pair)| {
                        let evidence = Evidence::of_means(
                            &a.no_narrower(interval::memory(&pair.a)),
                            &b.no_narrower(interval::memory(&pair.b)),
                        );
                        let evidence = evidence.off_by(pair.offset([a, b].map(Side::deviation)));
                        Evidence { nothing: evidence.nothing || pair.has_nothing(), ..evidence }
                    })
                    .collect()
            }
        }
    }

    /// Of the geometric mean over all cells: one value a block, or one a round and side.
    ///
    /// Cells are not independent of one another: what moves one in a round moves its neighbours.
    /// So the spread between rounds is the error, not that between cells. The mean is that of the cells'
    /// ratios, each over all its visits: rounds that some cells lack tell of the spread alone.
    pub fn overall(&self) -> Evidence {
        self.overall_of(&|row| self.pairs.get(row).is_some_and(Pair::is_comparable))
    }

    /// The same over the rows that `counts` names by their position, of which there must be one.
    pub fn overall_of(&self, counts: &dyn Fn(usize) -> bool) -> Evidence {
        let pairs = || {
            let counted = self.pairs.iter().enumerate().filter(|(row, _)| counts(*row));
            counted.map(|(_, pair)| pair)
        };
        let counted = self.pairs.iter().zip(self.deviations()).enumerate();
        let counted = counted.filter(|(row, _)| counts(*row)).map(|(_, row)| row);
        let offset = ends::of_mean(counted.map(|(pair, deviations)| pair.grain_left(deviations)));
        let evidence = match self.design {
            Design::Blocks => {
                let blocks = mean_by_round(
                    pairs().map(|p| p.rounds.iter().map(|&(round, a, b)| (round, b - a)).collect()),
                );
                let mean = plain(&blocks, RATE_CONFIDENCE);
                Evidence::of_blocks(blocks, mean)
            }
            Design::Apart => {
                let side = |of: fn(&(u32, f64, f64)) -> f64, row: CellOf| {
                    let cells = pairs()
                        .map(|p| p.rounds.iter().map(|round| (round.0, of(round))).collect());
                    let rounds = mean_by_round(cells);
                    let alone = Side::of(&rounds, plain(&rounds, RATE_CONFIDENCE));
                    alone.no_narrower(interval::memory_of_all(pairs().map(row)))
                };
                let (a, b) = (self.sides(|p| &p.a), self.sides(|p| &p.b));
                let rows = a.iter().zip(&b).enumerate().filter(|(row, _)| counts(*row));
                let middles: Option<Vec<f64>> =
                    rows.map(|(_, (a, b))| Some(b.bare? - a.bare?)).collect();
                let evidence =
                    Evidence::of_means(&side(|r| r.1, |p| &p.a), &side(|r| r.2, |p| &p.b));
                match middles {
                    Some(all) if !all.is_empty() => {
                        evidence.about(all.iter().sum::<f64>() / all.len() as f64)
                    }
                    _ => evidence,
                }
            }
        };
        evidence.off_by(offset)
    }

    /// [`Pair::standstill_reach`] of the mean over the rows that `counts` names: standstills of one
    /// row are not those of the next.
    pub fn standstill_reach_of(&self, counts: &dyn Fn(usize) -> bool) -> f64 {
        let counted = self.pairs.iter().enumerate().filter(|(row, _)| counts(*row));
        let each: Vec<f64> = counted.map(|(_, pair)| pair.standstill_reach().powi(2)).collect();
        each.iter().sum::<f64>().sqrt() / each.len().max(1) as f64
    }

    /// The reference's own rates.
    pub fn rates_reference(&self) -> Vec<Rate> {
        self.rates(|p| &p.a, &self.own[0])
    }

    /// The other side's.
    pub fn rates_other(&self) -> Vec<Rate> {
        self.rates(|p| &p.b, &self.own[1])
    }

    fn rates(&self, of: CellOf, own: &Own) -> Vec<Rate> {
        let sides = self.sides(of);
        let each = self.pairs.iter().zip(sides);
        each.map(|(pair, side)| {
            let visits = of(pair).visits.len();
            // The run's own, unless blocks that only check the comparison are left out here.
            let of_run = own.get(&row_of(of(pair))).filter(|(all, ..)| *all == visits);
            let known = !Standstills::are_all(of(pair));
            let of_these = || side.mean.filter(|_| known).map(|mean| (mean.low(), mean.high()));
            let ends = of_run.map(|&(_, low, high)| (low, high)).or_else(of_these);
            Rate {
                per_second: side.bare.map(f64::exp),
                low: ends.map(|(low, _)| low),
                high: ends.map(|(_, high)| high),
                visits: u32::try_from(visits).unwrap_or(u32::MAX),
                stalls: Stalls::of(of(pair)),
            }
        })
        .collect()
    }

    fn sides(&self, of: CellOf) -> Vec<Side> {
        let all: Vec<Vec<f64>> = self.pairs.iter().map(|p| of(p).ln_rates()).collect();
        let means = self.moderated(&all);
        all.iter().zip(means).map(|(values, mean)| Side::of(values, mean)).collect()
    }

    /// Of both sides of every pair, between visits.
    fn deviations(&self) -> Vec<[Option<f64>; 2]> {
        let (a, b) = (self.sides(|p| &p.a), self.sides(|p| &p.b));
        a.iter().zip(&b).map(|(a, b)| [a, b].map(|side| side.deviation())).collect()
    }

    /// Means of the pairs' values, variances moderated across those of a phase whose streams have
    /// the same names.
    fn moderated(&self, all: &[Vec<f64>]) -> Vec<Option<Interval>> {
        let mut out = vec![None; all.len()];
        let mut groups: BTreeMap<(&str, Vec<&str>), Vec<usize>> = BTreeMap::new();
        for (k, pair) in self.pairs.iter().enumerate() {
            groups.entry(pair.a.alike()).or_default().push(k);
        }
        for members in groups.values() {
            let cells: Vec<_> = members.iter().map(|&k| all[k].clone()).collect();
            // What a cell scatters by standing still is not usual.
            let alike: Vec<bool> = members.iter().map(|&k| !self.pairs[k].stood_still()).collect();
            let means = moderated_among(&cells, &|k| alike[k], RATE_CONFIDENCE);
            for (&k, mean) in members.iter().zip(means) {
                out[k] = mean;
            }
        }
        out
    }
}

impl<'a> Pair<'a> {
    /// Of cells that belong together: their streams by name, by place where names differ.
    fn by_stream(a: &CellView<'a>, b: &CellView<'a>) -> Vec<Self> {
        let (ours, mut theirs) = (a.by_stream(), b.by_stream());
        let place = |b: &CellView<'a>| ours.iter().position(|a| a.stream_name() == b.stream_name());
        if theirs.iter().all(|b| place(b).is_some()) {
            theirs.sort_by_key(&place);
        }
        let both = ours.into_iter().zip(theirs);
        both.map(|(a, b)| Self { rounds: rounds(&a, &b), cached: [None; 2], a, b }).collect()
    }
}

impl Pair<'_> {
    /// Whether both rates are of one thing: of devices, or of caches that answered as large a share.
    pub fn is_comparable(&self) -> bool {
        match self.cached {
            [None, None] => true,
            [Some(a), Some(b)] => (a - b).abs() <= CACHED_ALIKE,
            _ => false,
        }
    }

    /// Whether a side stood still for a good part of a visit, and its own interval, which holds
    /// what that leaves open, meets the other's. That of a side that did not by chance reaches as
    /// far down as if it had. Where both did for nearly all of each visit, neither is known.
    pub fn may_be_standstills(&self, a: &Rate, b: &Rate) -> bool {
        if self.sides().into_iter().all(Standstills::are_all) {
            return true;
        }
        let [of_a, of_b] = [&self.a, &self.b].map(Standstills::of);
        let Some(mean_ns) = of_a.iter().chain(&of_b).map(|found| found.mean_ns).max() else {
            return false;
        };
        let low = |cell: &CellView<'_>, own: &Option<Standstills>, rate: &Rate| match own {
            Some(_) => rate.low,
            None => Some(rate.low? * Standstills::unseen(cell, mean_ns)?),
        };
        let meet = |low: Option<f64>, high: Option<f64>| low.zip(high).is_some_and(|(l, h)| l <= h);
        meet(low(&self.a, &of_a, a), b.high) && meet(low(&self.b, &of_b, b), a.high)
    }

    /// How far, in logarithms, the ratio reaches at least where a side stood still for a good part of
    /// a visit: how often that comes is known as well as its number tells, however much alike visits
    /// were. 0 where neither did.
    pub fn standstill_reach(&self) -> f64 {
        let sides = [&self.a, &self.b].map(|side| (side, Standstills::of(side)));
        let lengths = sides.iter().filter_map(|(_, found)| Some(found.as_ref()?.mean_ns));
        let Some(mean_ns) = lengths.max() else { return 0.0 };
        let reach = |(side, found): &(&CellView<'_>, Option<Standstills>)| match found {
            Some(found) => found.higher.ln().max(-found.lower.ln()),
            None => -Standstills::unseen(side, mean_ns).unwrap_or(1.0).ln(),
        };
        sides.iter().map(|side| reach(side).powi(2)).sum::<f64>().sqrt()
    }

    /// Whether either side stood still for a good part of a visit.
    fn stood_still(&self) -> bool {
        self.sides().into_iter().any(Standstills::are_any)
    }

    fn sides(&self) -> [&CellView<'_>; 2] {
        [&self.a, &self.b]
    }

    /// By how much the start and the end of visits may move the difference of the two.
    fn offset(&self, deviations: [Option<f64>; 2]) -> f64 {
        ends::between(self.sides(), deviations)
    }

    /// What either side may be off by, by one request or burst, together.
    fn grain_left(&self, [a, b]: [Option<f64>; 2]) -> f64 {
        ends::grain_left(&self.a, a).hypot(ends::grain_left(&self.b, b))
    }

    /// Whether a single request or burst more or less would be a good part of the rate of either.
    pub fn is_of_one_request(&self) -> bool {
        self.sides().into_iter().any(ends::is_of_one)
    }

    /// Block by block, each with its number.
    pub fn differences(&self) -> impl Iterator<Item = (u32, f64)> {
        self.rounds.iter().map(|(block, a, b)| (*block, b - a))
    }

    /// Whether a visit of either side completed nothing: no logarithm shows that.
    fn has_nothing(&self) -> bool {
        let mut visits = self.a.visits.iter().chain(&self.b.visits);
        visits.any(|v| v.requests_per_second <= 0.0)
    }
}

/// Means over cells, one for every round that all cells with most rounds in common have.
///
/// Cells that were visited less than twice say nothing about a spread and are left out, if that
/// leaves any. A round counts when every other cell has it: else the mix of cells would differ
/// from round to round.
fn mean_by_round(cells: impl Iterator<Item = Vec<(u32, f64)>>) -> Vec<f64> {
    let all: Vec<Vec<(u32, f64)>> = cells.filter(|cell| !cell.is_empty()).collect();
    let often: Vec<_> = all.iter().filter(|cell| cell.len() >= 2).collect();
    let used: Vec<_> = if often.is_empty() { all.iter().collect() } else { often };
    let mut rounds: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for &(round, value) in used.iter().copied().flatten() {
        let entry = rounds.entry(round).or_default();
        *entry = (entry.0 + 1, entry.1 + value);
    }
    let whole = rounds.into_values().filter(|(n, _)| *n == used.len());
    whole.map(|(n, sum)| sum / n as f64).collect()
}
