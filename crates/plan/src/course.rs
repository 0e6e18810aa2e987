//! A run's way along its schedule.

use std::collections::{BTreeMap, BTreeSet};

use record::Purpose;
use stats::Random;
use stats::interval::{Interval, moderated, pooled_scale};
use stats::memory::{self, Rows};
use stats::{outlier, steady};
use suite::PILOT;
use suite::model::Steady;
use units::{Bytes, Nanos};

use crate::room::{LEAST, WHOLE, part};
use crate::schedule::{PhaseSchedule, Way};
use crate::{CellStanding, Left, Made, PlannedVisit, Schedule, Standing, Veto, VisitKey, Why};

/// Of the intervals that decide.
const CONFIDENCE: f64 = 0.95;

/// Share of the time to spare that longer ramps may take; waits for an idle device need some, too.
const FOR_RAMPS: (u64, u64) = (3, 4);

/// A schedule with the visits made along it so far.
///
/// What comes next depends on nothing but those visits and their order: a course that was fed the
/// visits of a stored run goes on exactly as the run would have.
#[derive(Clone, Debug)]
pub struct Course {
    pub(crate) schedule: Schedule,
    /// Every possible cell.
    pub(crate) cells: BTreeMap<u32, Cell>,
    pub(crate) phase: usize,
    /// Rounds begun in the phase under way; `None` before its pilots.
    round: Option<u32>,
    /// What is left of the round under way, first first.
    queue: Vec<Due>,
    /// Longest ramp that the pilots of the phase under way ask for, and whether one did.
    pub(crate) ramp: Option<Nanos>,
    /// What the pilots asked for where there was no time for it.
    ramp_wanted: Option<Nanos>,
    /// Thousandths of their measured time that visits of the round under way have.
    time_permille: u32,
    /// Waits before visits, pilots included, and how many visits those were.
    pub(crate) waits: (Nanos, u32),
    /// Of all cells, as [`Cell::extra`]: a hundred thousand of them are not gone over for each.
    pub(crate) extra: (Nanos, u32),
    pub(crate) elapsed: Nanos,
    visits: u32,
}

/// Where a course is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Index of the phase.
    pub phase: usize,
    /// What the round is of.
    pub of: RoundOf,
    /// From 1 in its phase; 0 for pilots.
    pub number: u32,
    /// Cells that are open in the phase.
    pub open: u32,
    /// Cells that are possible in it.
    pub cells: u32,
}

/// What a round is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundOf {
    /// The suite's own order.
    Classic,
    /// Cells watched to find the ramp.
    Pilots,
    /// Every open cell once.
    Visits,
    /// Every cell of a steady phase once.
    Steady,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    key: VisitKey,
    purpose: Purpose,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// Repeats that were made.
    repeats: BTreeSet<u32>,
    piloted: bool,
    failed: u32,
    /// Stream by stream.
    ln_rates: Vec<Vec<f64>>,
    /// The same visits from inside.
    rows: Vec<Vec<Rows>>,
    /// Stream by stream the least half-width of its interval, as its visits have something in common.
    least: Vec<Option<f64>>,
    vetoes: BTreeSet<Veto>,
    took: Nanos,
    /// What its visits took that cannot be shortened.
    pub(crate) beside: Nanos,
    /// What slow requests added to the measured parts of visits that were not shortened, and how
    /// many those were.
    pub(crate) extra: (Nanos, u32),
    written: Bytes,
    standing: Option<Standing>,
}

/// What is known of the rate of one stream of a cell.
#[derive(Clone, Copy, Debug)]
struct Known {
    interval: Option<Interval>,
    /// Visits in which it completed anything.
    rates: usize,
    /// Whether one of them lies far from the others.
    is_odd: bool,
}

impl Cell {
    fn add_rates(&mut self, made: &Made) {
        if self.ln_rates.len() < made.ln_rates.len() {
            self.ln_rates.resize(made.ln_rates.len(), Vec::new());
        }
        for (rates, rate) in self.ln_rates.iter_mut().zip(&made.ln_rates) {
            rates.extend(rate.filter(|rate| made.ok && rate.is_finite()));
        }
        self.rows.resize(made.rows.len().max(self.rows.len()), Vec::new());
        for ((own, rows), rate) in self.rows.iter_mut().zip(&made.rows).zip(&made.ln_rates) {
            own.extend((made.ok && rate.is_some()).then(|| rows.clone()));
        }
        self.least = self.rows.iter().map(|rows| memory::half_width(rows, CONFIDENCE)).collect();
    }

    pub(crate) fn visits(&self) -> u32 {
        u32::try_from(self.repeats.len()).unwrap_or(u32::MAX)
    }

    /// The first from this number on that was not made: a failed visit that is made again keeps its
    /// number, and so its seed.
    fn next_repeat(&self, from: u32) -> u32 {
        (from..).find(|repeat| !self.repeats.contains(repeat)).unwrap_or(u32::MAX)
    }

    fn is_open(&self) -> bool {
        self.standing.is_none()
    }

    /// What its next visit will take.
    fn expected(&self, least: Nanos) -> Nanos {
        self.took.get().checked_div(u64::from(self.visits())).map_or(least, Nanos::new)
    }
}

impl Course {
    pub(crate) fn new(schedule: Schedule) -> Self {
        let cells = schedule.phases.iter().flat_map(|phase| &phase.cells);
        let cells = cells.map(|&cell| (cell, Cell::default())).collect();
        Self {
            schedule,
            cells,
            phase: 0,
            round: None,
            queue: Vec::new(),
            ramp: None,
            ramp_wanted: None,
            time_permille: WHOLE,
            waits: (Nanos::ZERO, 0),
            extra: (Nanos::ZERO, 0),
            elapsed: Nanos::ZERO,
            visits: 0,
        }
    }

    /// A visit was made. One of a cell that the schedule does not know changes nothing.
    pub fn add(&mut self, made: &Made) {
        self.advance();
        let Some(cell) = self.cells.get_mut(&made.key.cell) else { return };
        self.visits = self.visits.saturating_add(1);
        self.elapsed += made.took;
        self.waits = (self.waits.0 + made.waited, self.waits.1.saturating_add(1));
        cell.written = Bytes::new(cell.written.get().saturating_add(made.written.get()));
        if made.purpose == Purpose::Pilot {
            cell.piloted = true;
            self.ramp = self.ramp.max(made.ramp);
        } else {
            cell.repeats.insert(made.key.repeat);
            cell.failed = cell.failed.saturating_add(u32::from(!made.ok));
            cell.took += made.took;
            let timed = self.schedule.timed_of(made.key.cell);
            let planned = part(timed, self.time_permille).min(made.measured);
            cell.beside += made.took.saturating_sub(planned);
            if self.time_permille == WHOLE && timed > Nanos::ZERO {
                let extra = made.measured.saturating_sub(planned);
                cell.beside = cell.beside.saturating_sub(extra);
                for sum in [&mut cell.extra, &mut self.extra] {
                    *sum = (sum.0 + extra, sum.1.saturating_add(1));
                }
            }
            cell.add_rates(made);
            cell.vetoes.extend(made.veto);
        }
        let classic = self.schedule.phases.get(self.phase).map(|phase| &phase.way);
        let classic = matches!(classic, Some(Way::Classic(_)));
        let same = |due: &Due| {
            let visit = if classic { due.key == made.key } else { due.key.cell == made.key.cell };
            visit && due.purpose == made.purpose
        };
        if let Some(place) = self.queue.iter().position(same) {
            self.queue.remove(place);
        }
    }

    /// The visit that comes next; `None` when all is done.
    #[expect(
        clippy::should_implement_trait,
        reason = "it does not consume: asked again it says the same"
    )]
    pub fn next(&mut self) -> Option<PlannedVisit> {
        self.advance();
        let due = *self.queue.first()?;
        let seed = match due.purpose {
            Purpose::Measure => self.schedule.visit_seed(due.key),
            Purpose::Pilot => self.schedule.pilot_seed(due.key.cell),
        };
        Some(PlannedVisit {
            order: self.visits,
            cell: due.key.cell,
            repeat: due.key.repeat,
            purpose: due.purpose,
            seed,
            ramp: match due.purpose {
                Purpose::Measure => self.schedule.ramp_of(due.key, self.ramp),
                Purpose::Pilot => None,
            },
            time_permille: (due.purpose == Purpose::Measure && self.time_permille < WHOLE)
                .then_some(self.time_permille),
        })
    }

    /// Where it is; `None` when all is done.
    pub fn round(&mut self) -> Option<Round> {
        self.advance();
        let phase = self.schedule.phases.get(self.phase)?;
        let first = self.queue.first()?;
        let of = match (&phase.way, first.purpose) {
            (Way::Classic(_), _) => RoundOf::Classic,
            (Way::Steady { .. }, _) => RoundOf::Steady,
            (Way::Rounds { .. }, Purpose::Pilot) => RoundOf::Pilots,
            (Way::Rounds { .. }, Purpose::Measure) => RoundOf::Visits,
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let number = if of == RoundOf::Pilots { 0 } else { self.round.unwrap_or(0) };
        Some(Round {
            phase: self.phase,
            of,
            number,
            open: count(self.open(phase).len()),
            cells: count(phase.cells.len()),
        })
    }

    /// In the phase under way: the ramp that the pilots asked for and the shorter one that there is
    /// time for.
    pub fn ramp_cut(&self) -> Option<(Nanos, Nanos)> {
        self.ramp_wanted.zip(self.ramp)
    }

    /// What it goes along.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// In the round under way: thousandths of their measured time that visits have, where there is
    /// no time for all of it.
    pub fn time_cut(&self) -> Option<u32> {
        Some(self.time_permille).filter(|&permille| permille < WHOLE)
    }

    /// Visits made to be counted.
    pub fn visits_counted(&self) -> u32 {
        self.cells.values().map(Cell::visits).fold(0, u32::saturating_add)
    }

    /// How every possible cell stands, in the suite's order.
    pub fn standing(&mut self) -> Vec<CellStanding> {
        self.advance();
        let mut all: Vec<CellStanding> = Vec::with_capacity(self.cells.len());
        for phase in &self.schedule.phases {
            for (index, known) in self.known(phase) {
                let Some(cell) = self.cells.get(&index) else { continue };
                all.push(CellStanding {
                    cell: index,
                    standing: cell.standing.unwrap_or(Standing::Open),
                    visits: cell.visits(),
                    half_width: widest(&known).map(|interval| interval.half_width),
                    vetoes: cell.vetoes.iter().copied().collect(),
                });
            }
        }
        all
    }

    /// As [`CellStanding::half_width`], of one cell as it stands now.
    pub fn half_width(&self, cell: u32) -> Option<f64> {
        let phase = self.schedule.phases.iter().find(|phase| phase.cells.contains(&cell))?;
        let (_, known) = self.known(phase).into_iter().find(|(index, _)| *index == cell)?;
        widest(&known).map(|interval| interval.half_width)
    }

    /// What is left, by the intervals as they stand.
    pub fn left(&mut self) -> Left {
        self.advance();
        let (mut left, mut in_rounds) = (Left::default(), Left::default());
        let phases = self.schedule.phases.iter().enumerate().skip(self.phase);
        for (index, phase) in phases {
            let under_way = index == self.phase;
            match &phase.way {
                Way::Classic(order) => left.add(self.left_of_classic(order)),
                Way::Rounds { pilots } => {
                    in_rounds.add(self.left_of_rounds(phase, pilots, under_way));
                }
                Way::Steady { steady, tracked, .. } => {
                    left.add(self.left_of_steady(phase, steady, *tracked, under_way));
                }
            }
        }
        left.add(self.within_time(in_rounds));
        left
    }

    /// What is left of rounds, as far as the longest time allows: visits are shortened first, then
    /// there are fewer. The first round of each phase is made in any case.
    fn within_time(&self, left: Left) -> Left {
        let (mut first, mut least) = (Nanos::ZERO, Nanos::ZERO);
        let (mut wanted, visits_min) = (0u32, self.schedule.rounds.visits_min);
        for index in self.schedule.in_rounds_from(self.phase) {
            let Some(cell) = self.cells.get(&index).filter(|cell| cell.is_open()) else { continue };
            if cell.visits() == 0 {
                first += self.parts(index).at(LEAST);
            }
            let missing = visits_min.saturating_sub(cell.visits());
            let each = self.parts(index).at(LEAST).get();
            wanted = wanted.saturating_add(missing);
            least += Nanos::new(each.saturating_mul(missing.into()));
        }
        let longest = self.schedule.rounds.time_max.saturating_sub(self.elapsed).max(first);
        if left.time <= longest || longest == Nanos::ZERO {
            return left;
        }
        let share = |time: Nanos| longest.as_secs_f64() / time.as_secs_f64();
        let as_meant = (f64::from(left.visits) * share(left.time)).ceil();
        let shortened = f64::from(wanted) * share(least.max(longest));
        let visits = as_meant.max(shortened.floor()) as u32;
        Left { visits: visits.min(left.visits), time: longest, ends_by_time: true, ..left }
    }

    /// Begins rounds until there is something to do, or nothing left.
    fn advance(&mut self) {
        while self.queue.is_empty()
            && let Some(phase) = self.schedule.phases.get(self.phase).cloned()
        {
            let goes_on = match &phase.way {
                Way::Classic(order) => self.begin_classic(&phase, order),
                Way::Rounds { pilots } => self.begin_round(&phase, pilots),
                Way::Steady { steady, tracked, volume } => {
                    self.begin_steady(&phase, steady, *tracked, *volume)
                }
            };
            if !goes_on {
                self.phase += 1;
                self.round = None;
                self.ramp = None;
                self.ramp_wanted = None;
                self.time_permille = WHOLE;
            }
        }
    }

    /// All of the phase at once; false when it is done.
    fn begin_classic(&mut self, phase: &PhaseSchedule, order: &[VisitKey]) -> bool {
        let made = |key: &VisitKey| {
            self.cells.get(&key.cell).is_some_and(|cell| cell.repeats.contains(&key.repeat))
        };
        let due = order.iter().filter(|&key| !made(key));
        self.queue = due.map(|&key| Due { key, purpose: Purpose::Measure }).collect();
        self.round = Some(1);
        if !self.queue.is_empty() {
            return true;
        }
        self.end_all(phase, Standing::Made);
        false
    }

    /// The pilots, then a round; false when no cell is open, or there is no time.
    fn begin_round(&mut self, phase: &PhaseSchedule, pilots: &[u32]) -> bool {
        let Some(round) = self.round else {
            self.round = Some(0);
            let due = pilots.iter().filter(|&cell| !self.cells.get(cell).is_none_or(|c| c.piloted));
            self.queue = due
                .map(|&cell| Due { key: VisitKey { cell, repeat: 0 }, purpose: Purpose::Pilot })
                .collect();
            return true;
        };
        if round > 0 {
            self.close(phase);
        } else {
            self.cut_ramp();
        }
        let open = self.open(phase);
        self.time_permille = self.time_permille_for(&open);
        let mut chosen = self.that_fit(&open, round);
        if chosen.is_empty() {
            self.end_all(phase, Standing::NotConverged(Why::Time));
            return false;
        }
        // Sides of a comparison pass over each other's blocks, and stay in step.
        let Some(number) = self.schedule.round_from_number(round) else {
            self.end_all(phase, Standing::NotConverged(Why::Cap));
            return false;
        };
        let first = if self.schedule.blocks.is_some() { number } else { 0 };
        Random::new(self.schedule.round_seed(self.phase, number)).shuffle(&mut chosen);
        let due = chosen.into_iter().filter_map(|cell| {
            let repeat = self.cells.get(&cell)?.next_repeat(first);
            Some(Due { key: VisitKey { cell, repeat }, purpose: Purpose::Measure })
        });
        self.queue = due.collect();
        self.round = Some(number + 1);
        true
    }

    /// Ramps that would leave no time for as many visits as an interval needs are shortened.
    fn cut_ramp(&mut self) {
        let rounds = &self.schedule.rounds;
        let Some(ramp) = self.ramp.filter(|&ramp| ramp > rounds.ramp) else { return };
        let cells: u64 = self.in_rounds(self.phase).map(|(cells, _)| cells).sum();
        let visits = cells.saturating_mul(u64::from(rounds.visits_min)).max(1);
        let left = rounds.time_max.saturating_sub(self.elapsed);
        let left = left.saturating_sub(self.kept(self.phase, rounds.visits_min, WHOLE));
        let left = left.saturating_sub(self.pilots_after(self.phase));
        let each = Nanos::new((left.get() / visits).saturating_mul(FOR_RAMPS.0) / FOR_RAMPS.1);
        let longest = rounds.ramp + each;
        if ramp > longest {
            self.ramp_wanted = Some(ramp);
            self.ramp = Some(longest);
        }
    }

    /// How many cells and pilots the phases from `phase` on have that are played in rounds.
    pub(crate) fn in_rounds(&self, phase: usize) -> impl Iterator<Item = (u64, u64)> {
        self.schedule.phases.iter().skip(phase).filter_map(|phase| match &phase.way {
            Way::Rounds { pilots } => Some((phase.cells.len() as u64, pilots.len() as u64)),
            _ => None,
        })
    }

    pub(crate) fn pilots_after(&self, phase: usize) -> Nanos {
        self.pilots_from(phase + 1)
    }

    pub(crate) fn pilots_from(&self, phase: usize) -> Nanos {
        let pilots = self.in_rounds(phase).map(|(_, pilots)| pilots).sum();
        Nanos::new(PILOT.get().saturating_mul(pilots))
    }

    /// Those of the open cells that the next round visits: all, if there is time for it and for as
    /// many rounds of the later phases; else those with too few visits, if the later phases can
    /// still have enough; else none. The first round is made in any case: a cell without a visit is
    /// no result at all.
    fn that_fit(&self, open: &[u32], round: u32) -> Vec<u32> {
        let rounds = &self.schedule.rounds;
        let permille = self.time_permille;
        let fits = |cells: &[u32], later: u32| {
            let kept = self.kept(self.phase + 1, later, permille) + self.pilots_after(self.phase);
            let times = cells.iter().map(|&cell| self.parts(cell).at(permille).get());
            let needed = times.fold(kept.get(), u64::saturating_add);
            self.elapsed.get().saturating_add(needed) <= rounds.time_max.get()
        };
        if round == 0 || fits(open, round + 1) {
            return open.to_vec();
        }
        let few =
            |cell: &u32| self.cells.get(cell).is_some_and(|cell| cell.visits() < rounds.visits_min);
        let needy: Vec<u32> = open.iter().copied().filter(few).collect();
        if fits(&needy, (round + 1).min(rounds.visits_min)) { needy } else { Vec::new() }
    }

    /// Ends the cells of the phase that are known well enough, or had all the visits they may.
    fn close(&mut self, phase: &PhaseSchedule) {
        let rounds = self.schedule.rounds;
        for (index, known) in self.known(phase) {
            let Some(cell) = self.cells.get_mut(&index).filter(|cell| cell.is_open()) else {
                continue;
            };
            if known.iter().any(|stream| stream.is_odd) {
                cell.vetoes.insert(Veto::Outlier);
            }
            let narrow = widest(&known).is_some_and(|widest| widest.is_within(rounds.precision));
            let rates = known.iter().map(|stream| stream.rates).min().unwrap_or(0);
            if cell.failed >= rounds.visits_min {
                cell.standing = Some(Standing::NotConverged(Why::Failed));
            } else if cell.visits() >= rounds.visits_max {
                let cap = Standing::NotConverged(Why::Cap);
                cell.standing = Some(if narrow { Standing::Converged } else { cap });
            } else if narrow && rates >= rounds.visits_min as usize && cell.vetoes.is_empty() {
                cell.standing = Some(Standing::Converged);
            }
        }
    }

    /// One more round of a steady phase, in the order of its grid; false when it is steady, or
    /// given up.
    fn begin_steady(
        &mut self,
        phase: &PhaseSchedule,
        steady: &Steady,
        tracked: Option<u32>,
        volume: Bytes,
    ) -> bool {
        let made = self.rounds_made(phase, tracked);
        let is_steady = tracked.and_then(|index| self.cells.get(&index)).is_some_and(|cell| {
            let of_phase = phase.cells.iter().filter_map(|index| self.cells.get(index));
            let written = of_phase.fold(0u64, |sum, cell| sum.saturating_add(cell.written.get()));
            let streams = &cell.ln_rates;
            let rest = !streams.is_empty() && streams.iter().all(|ln_rates| holds(ln_rates));
            written >= volume.get() && rest
        });
        // Without the cell that decides nothing can be found out by going on.
        let most = if tracked.is_some() { steady.rounds_max } else { steady.rounds_max.min(BLIND) };
        if is_steady || made >= most {
            let end = if is_steady { Standing::Steady } else { Standing::NotSteady };
            self.end_all(phase, end);
            return false;
        }
        let due = phase.cells.iter().filter_map(|&cell| {
            let repeat = self.cells.get(&cell)?.next_repeat(0);
            Some(Due { key: VisitKey { cell, repeat }, purpose: Purpose::Measure })
        });
        self.queue = due.collect();
        self.round = Some(made.saturating_add(1));
        !self.queue.is_empty()
    }

    /// How many rounds of a steady phase were made.
    fn rounds_made(&self, phase: &PhaseSchedule, tracked: Option<u32>) -> u32 {
        let counts = tracked.or_else(|| phase.cells.last().copied());
        counts.and_then(|index| self.cells.get(&index)).map_or(0, Cell::visits)
    }

    fn end_all(&mut self, phase: &PhaseSchedule, standing: Standing) {
        for index in &phase.cells {
            if let Some(cell) = self.cells.get_mut(index) {
                cell.standing.get_or_insert(standing);
            }
        }
    }

    fn open(&self, phase: &PhaseSchedule) -> Vec<u32> {
        let is_open = |index: &u32| self.cells.get(index).is_some_and(Cell::is_open);
        phase.cells.iter().copied().filter(is_open).collect()
    }

    /// What is known of each cell of a phase, stream by stream. Streams of one name lend each other
    /// their usual noise: a log's is not that of page reads beside it.
    fn known(&self, phase: &PhaseSchedule) -> Vec<(u32, Vec<Known>)> {
        let mut groups: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        let mut rates: Vec<Vec<Vec<f64>>> = Vec::with_capacity(phase.cells.len());
        for (place, &index) in phase.cells.iter().enumerate() {
            let names = self.schedule.streams.get(index as usize).map_or(&[][..], Vec::as_slice);
            for (stream, name) in names.iter().enumerate() {
                groups.entry(name).or_default().push((place, stream));
            }
            let own = self.cells.get(&index).map(|cell| cell.ln_rates.clone());
            let mut own = own.unwrap_or_default();
            own.resize(names.len(), Vec::new());
            rates.push(own);
        }
        let unknown = Known { interval: None, rates: 0, is_odd: false };
        let mut known: Vec<Vec<Known>> =
            rates.iter().map(|streams| vec![unknown; streams.len()]).collect();
        for members in groups.values() {
            let of_name: Vec<Vec<f64>> =
                members.iter().map(|&(place, stream)| rates[place][stream].clone()).collect();
            let scale = pooled_scale(&of_name);
            let found = moderated(&of_name, CONFIDENCE).into_iter().zip(&of_name);
            for (&(place, stream), (interval, rates)) in members.iter().zip(found) {
                let is_odd = scale.is_some_and(|s| !outlier::in_grid(rates, s).is_empty());
                let least = phase.cells.get(place).and_then(|index| self.cells.get(index));
                let least = least.and_then(|cell| *cell.least.get(stream)?);
                let interval = interval.map(|found| found.no_narrower(least));
                known[place][stream] = Known { interval, rates: rates.len(), is_odd };
            }
        }
        phase.cells.iter().copied().zip(known).collect()
    }

    fn expected(&self, index: u32) -> Nanos {
        let least = self.schedule.least_of(index);
        self.cells.get(&index).map_or(least, |cell| cell.expected(least))
    }

    fn left_of_classic(&self, order: &[VisitKey]) -> Left {
        let made = |key: &&VisitKey| {
            self.cells.get(&key.cell).is_some_and(|cell| cell.repeats.contains(&key.repeat))
        };
        let mut left = Left::default();
        for key in order.iter().filter(|key| !made(key)) {
            left.visits += 1;
            left.visits_most += 1;
            left.time += self.expected(key.cell);
        }
        left
    }

    fn left_of_steady(
        &self,
        phase: &PhaseSchedule,
        steady: &Steady,
        tracked: Option<u32>,
        under_way: bool,
    ) -> Left {
        let most = if tracked.is_some() { steady.rounds_max } else { steady.rounds_max.min(BLIND) };
        // The rule about the last half wants so many; how many more, nobody knows.
        let enough = u32::try_from(steady::LAST_HALF_ROUNDS_MIN).unwrap_or(u32::MAX);
        let made = self.rounds_made(phase, tracked);
        let rounds = enough.max(made.saturating_add(1)).min(most);
        let mut left = Left::default();
        for &index in &phase.cells {
            let Some(cell) = self.cells.get(&index).filter(|cell| cell.is_open()) else { continue };
            let due = under_way && self.queue.iter().any(|due| due.key.cell == index);
            let visits = rounds.saturating_sub(cell.visits()).max(u32::from(due));
            left.visits = left.visits.saturating_add(visits);
            let most = most.saturating_sub(cell.visits());
            left.visits_most = left.visits_most.saturating_add(most);
            let each = self.expected(index).get();
            left.time += Nanos::new(each.saturating_mul(u64::from(visits)));
        }
        left
    }

    fn left_of_rounds(&self, phase: &PhaseSchedule, pilots: &[u32], under_way: bool) -> Left {
        let rounds = &self.schedule.rounds;
        let mut left = Left::default();
        let pilots = pilots.iter().filter(|&cell| !self.cells.get(cell).is_none_or(|c| c.piloted));
        for _ in pilots {
            left.visits += 1;
            left.time += PILOT;
        }
        for (index, known) in self.known(phase) {
            let Some(cell) = self.cells.get(&index).filter(|cell| cell.is_open()) else { continue };
            let made = cell.visits();
            let most = rounds.visits_max.saturating_sub(made);
            let due = under_way && self.queue.iter().any(|due| due.key.cell == index);
            let wanted = wanted(cell, widest(&known), rounds.precision, rounds.visits_max);
            let wanted = wanted.max(rounds.visits_min).saturating_sub(made);
            let visits = wanted.max(u32::from(due)).min(most);
            left.visits = left.visits.saturating_add(visits);
            left.visits_most = left.visits_most.saturating_add(most);
            let each = self.expected(index).get();
            left.time += Nanos::new(each.saturating_mul(u64::from(visits)));
        }
        left
    }
}

/// The interval of the stream that is known least; `None` if one has none.
fn widest(known: &[Known]) -> Option<Interval> {
    let all: Option<Vec<Interval>> = known.iter().map(|stream| stream.interval).collect();
    all?.into_iter().max_by(|a, b| a.half_width.total_cmp(&b.half_width))
}

/// How many visits the cell will have had when its interval is narrow enough.
fn wanted(cell: &Cell, interval: Option<Interval>, precision: f64, most: u32) -> u32 {
    if !cell.vetoes.is_empty() {
        return most;
    }
    interval.map_or(0, |interval| {
        let times = interval.half_width / precision.ln_1p();
        // `as` saturates: a half-width that is no number asks for nothing.
        (interval.visits as f64 * times * times).ceil().min(f64::from(most)) as u32
    })
}

/// So many rounds of a steady phase are made where the cell that decides cannot be measured.
const BLIND: u32 = 5;

/// SNIA's rule, and the rule about the last half.
fn holds(ln_rates: &[f64]) -> bool {
    let rates: Vec<f64> = ln_rates.iter().map(|rate| rate.exp()).collect();
    steady::last_half(&rates).is_some_and(|half| half.holds())
        && steady::snia(&rates).is_some_and(|snia| snia.holds())
}
