//! The way to a load line: which rate is offered next, as a function of the visits made.
//!
//! The *load line* is the highest Poisson arrival rate of a mix at which the share of late requests
//! stays within the allowance of every limit. It is found from both sides (*bracket*, *narrow*), then
//! by rounds of five rates around the estimate in random order, which follow it; a curve of the late
//! share gives the line and its interval ([`stats::curve`]). Then the rate from which a backlog grows
//! is looked for, which is another figure, and at the low end the load is *held*.

use stats::Random;
use stats::curve::{Curve, Late, Root, fit, root};
use units::Nanos;

/// Nominal, so that 95 % and more of planted lines are covered where visits are alike.
const CONFIDENCE: f64 = 0.99;
/// Half-width in ln rate that is enough.
const PRECISION: f64 = 0.048_79;
/// Rounds at least, and at most.
pub const ROUNDS: (u32, u32) = (8, 24);
/// Fewer show no interval, and after so much time no more than these are made.
const ROUNDS_SHOWN: u32 = 3;
const SPENT_MAX: Nanos = Nanos::secs(480);
/// Where so many rounds would be needed, no more than half as many as at least are made beside those.
const HOPELESS: f64 = 3.0 * ROUNDS.1 as f64;
/// Distances from the estimate in a round, in steps of a hundredth of ln rate.
const RUNGS: [i32; 5] = [-6, -3, 0, 3, 6];
/// Steps that the estimate may move between rounds.
const MOVE_MAX: i32 = 9;
/// An estimate that still moves so far is not at rest.
const AT_REST: f64 = 0.06;
/// Steps between passed and failed that are narrow enough to begin.
const NARROW: i32 = 14;
/// The same, for the rate from which a backlog grows.
const NARROW_CAPACITY: i32 = 3;
/// Doubling, and a fourth root of it.
const OCTAVE: i32 = 69;
const QUARTER: i32 = 17;
/// Of a visit the last requests may yet be in time when it ends: it is so many times as long.
const WITHINS: u64 = 10;
/// A longer limit would take longer visits than are made.
pub const WITHIN_MAX: Nanos = Nanos::secs(VISIT_MAX.get() / 1_000_000_000 / WITHINS);
/// The first rate, and that beyond which nobody asks.
const FIRST: f64 = 20.0;
const LAST: f64 = 2e6;
/// A backlog grows if requests are later by more than this share of the time, twice.
pub const GROWTH: f64 = 0.01;
/// Pieces of a hold, and how many in a row over the level break it.
pub const PIECE: Nanos = Nanos::secs(2);
const PIECES_IN_A_ROW: usize = 10;
const PROBE: Nanos = Nanos::secs(1);
const VISIT: Nanos = Nanos::secs(2);
const VISIT_MAX: Nanos = Nanos::secs(30);
const RAMP: Nanos = Nanos::millis(500);

/// Transactions per second that are offered, to four digits: as text it stays what it is.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Load(f64);

impl Load {
    /// The load nearest to a rate; `None` for what is no rate.
    pub fn new(per_second: f64) -> Option<Self> {
        if !(per_second > 0.0 && per_second <= LAST) {
            return None;
        }
        let unit = 10f64.powi(3 - per_second.log10().floor() as i32);
        Some(Self((per_second * unit).round() / unit))
    }

    fn of_ln(ln: f64) -> Self {
        let rate = ln.exp().clamp(1e-3, LAST);
        Self::new(rate).unwrap_or(Self(rate))
    }

    /// Per second.
    pub const fn per_second(self) -> f64 {
        self.0
    }

    /// Natural logarithm of the rate.
    pub fn ln(self) -> f64 {
        self.0.ln()
    }

    /// On the grid of hundredths of ln rate, so that later rounds meet the rates of earlier ones.
    fn by(self, steps: i32) -> Self {
        Self::of_ln(((self.ln() * 100.0).round() + f64::from(steps)) / 100.0)
    }

    /// Steps of a hundredth between two.
    fn steps_to(self, other: Self) -> i32 {
        ((other.ln() - self.ln()) * 100.0).round() as i32
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A limit as far as the way depends on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowed {
    /// Share of requests that may be late, in `0.0..1.0`.
    pub allowance: f64,
    /// Requests of its stream by transaction.
    pub requests: f64,
    /// What is later is late.
    pub within: Nanos,
}

/// What a visit is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOf {
    /// To find rates on both sides of the line.
    Bracket,
    /// To bring them closer together.
    Narrow,
    /// To count: the round, from 1.
    Round(u32),
    /// To find from where a backlog grows.
    Capacity,
    /// To see whether it holds.
    Hold,
}

/// A visit to be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// What is offered.
    pub load: Load,
    /// Measured part.
    pub time: Nanos,
    /// Before it.
    pub ramp: Nanos,
    /// What for.
    pub of: StepOf,
}

/// What a visit saw.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// By limit: requests due, and the late ones among them.
    pub counts: Vec<(f64, f64)>,
    /// How much later requests were at its end than at its start, as a share of the time between.
    pub growth: f64,
}

/// What is known of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Transactions per second, the estimate and its interval.
    pub rate: f64,
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// The limit that breaks first.
    pub first: usize,
    /// By limit its own line; `None` where it is far above.
    pub each: Vec<Option<Root>>,
    /// Rounds it is from.
    pub rounds: u32,
    /// The interval is narrow enough, and the estimate at rest.
    pub converged: bool,
}

/// How far it is known where the line is.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// By rounds.
    Line(Line),
    /// Every rate breaks the level, down to this one.
    None(Load),
    /// No rate did, up to this one.
    Above(Load),
    /// Between the highest that passed and the lowest that failed, by single visits.
    Between(Option<Load>, Option<Load>),
}

/// Where a ladder is.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Bracket { at: Load, again: bool },
    Down { at: Load },
    Narrow,
    Round { left: Vec<Load> },
    Capacity { low: Load, high: Option<Load>, at: Load, again: bool },
    Hold(Load),
    Done,
}

/// The way to a line, with the visits made along it.
#[derive(Clone, Debug)]
pub struct Ladder {
    bounds: Vec<Allowed>,
    hold: Nanos,
    random: Random,
    place: Place,
    passed: Option<Load>,
    failed: Option<Load>,
    /// The lowest rate at which a backlog grew.
    grew: Option<Load>,
    centre: Load,
    round: u32,
    /// By limit, of all rounds.
    visits: Vec<Vec<Late>>,
    curves: Vec<Curve>,
    /// Time of all visits so far.
    spent: Nanos,
    found: Option<Found>,
    capacity: Option<(Load, Load)>,
}

impl Ladder {
    /// * `bounds`: one for each limit, at least one.
    /// * `hold`: how long the low end is held; 0 for not at all.
    pub fn new(bounds: Vec<Allowed>, seed: u64, hold: Nanos) -> Self {
        let first = Load::of_ln(FIRST.ln());
        let start = Curve { root: first.ln(), slope: 20.0 };
        Self {
            hold,
            random: Random::new(stats::random::derive_seed(seed, &[0x6c61_6464_6572])),
            place: Place::Bracket { at: first, again: false },
            passed: None,
            failed: None,
            grew: None,
            centre: first,
            round: 0,
            visits: vec![Vec::new(); bounds.len()],
            curves: vec![start; bounds.len()],
            spent: Nanos::ZERO,
            found: None,
            capacity: None,
            bounds,
        }
    }

    /// Only a hold at that load.
    pub fn only_hold(bounds: Vec<Allowed>, load: Load, hold: Nanos) -> Self {
        Self { place: Place::Hold(load), ..Self::new(bounds, 0, hold) }
    }

    /// The visit that comes next; `None` when all is done.
    pub fn next(&self) -> Option<Step> {
        let within = self.bounds.iter().map(|bound| bound.within).max().unwrap_or_default();
        let least = Nanos::new(within.get().saturating_mul(WITHINS)).min(VISIT_MAX);
        let step = |load, time: Nanos, of| Step { load, time: time.max(least), ramp: RAMP, of };
        Some(match &self.place {
            Place::Bracket { at, .. } | Place::Down { at } => {
                step(*at, PROBE.max(self.long_enough(*at, 3.0)), StepOf::Bracket)
            }
            Place::Narrow => {
                let at = self.middle();
                step(at, VISIT.max(self.long_enough(at, 3.0)), StepOf::Narrow)
            }
            Place::Round { left } => {
                let time = VISIT.max(self.long_enough(self.centre, 0.0));
                let ramp = if time > VISIT { RAMP.max(Nanos::new(time.get() / 4)) } else { RAMP };
                Step { ramp, ..step(*left.first()?, time, StepOf::Round(self.round)) }
            }
            Place::Capacity { at, .. } => step(*at, VISIT, StepOf::Capacity),
            Place::Hold(load) => step(*load, self.hold, StepOf::Hold),
            Place::Done => return None,
        })
    }

    /// Long enough for some late requests at the allowance: 20, of rarer ones 40, or `fewer`.
    fn long_enough(&self, at: Load, fewer: f64) -> Nanos {
        let seconds = self.bounds.iter().map(|bound| {
            let least = if bound.allowance < 0.005 { 40.0 } else { 20.0 };
            let least = if fewer > 0.0 { fewer } else { least };
            least / bound.allowance / bound.requests / at.per_second()
        });
        let longest = if fewer > 0.0 { VISIT } else { VISIT_MAX };
        Nanos::from_secs_f64(seconds.fold(0.0, f64::max).min(longest.as_secs_f64()))
    }

    /// The visit that came next was made, and has to be made again.
    pub fn again(&mut self) {
        self.spent += self.next().map_or(Nanos::ZERO, |step| step.time + step.ramp);
    }

    /// The visit that came next was made.
    pub fn add(&mut self, seen: &Seen) {
        let Some(step) = self.next() else { return };
        self.again();
        // By more than chance: one late request of forty says little.
        let over = |(bound, (due, late)): (&Allowed, &(f64, f64))| {
            let allowed = bound.allowance * due;
            *late > allowed + 2.0 * allowed.sqrt()
        };
        let fails = self.bounds.iter().zip(&seen.counts).any(over);
        let grows = seen.growth > GROWTH;
        if grows && self.grew.is_none_or(|grew| step.load < grew) {
            self.grew = Some(step.load);
        }
        match self.place.clone() {
            Place::Bracket { at, again } => self.bracket(at, again, fails, grows),
            Place::Down { at } => self.go_down(at, fails),
            Place::Narrow => {
                *if fails { &mut self.failed } else { &mut self.passed } = Some(step.load);
                self.narrow();
            }
            Place::Round { left } => {
                // What passed once, and fails here, holds no level.
                if fails {
                    self.failed =
                        self.failed.filter(|failed| *failed < step.load).or(Some(step.load));
                    self.passed = self.passed.filter(|passed| *passed < step.load);
                }
                self.rung(left, seen);
            }
            Place::Capacity { .. } => self.look_for_capacity(grows),
            Place::Hold(_) => self.place = Place::Done,
            Place::Done => {}
        }
    }

    /// Upwards: a failure must repeat. Failures before the first pass are passed over, since devices
    /// that sleep are late at low rates, as long as no backlog grows.
    fn bracket(&mut self, at: Load, again: bool, fails: bool, grows: bool) {
        if !fails {
            self.passed = Some(at);
            self.failed = None;
        } else if !again {
            self.place = Place::Bracket { at, again: true };
            return;
        } else if self.passed.is_some() {
            // What is late now and then is so at twice the rate no more often; load is.
            let next = at.by(OCTAVE);
            if self.failed.is_none() && !grows && next.per_second() < LAST {
                self.failed = Some(at);
                self.place = Place::Bracket { at: next, again: true };
                return;
            }
            self.failed = self.failed.or(Some(at));
            return self.narrow();
        } else if grows {
            self.failed = Some(at);
            self.place = Place::Down { at: at.by(-QUARTER) };
            return;
        }
        if at.per_second() * 2.0 > LAST {
            let lowest = Found::None(Load::of_ln(FIRST.ln()));
            return self.end(self.passed.map_or(lowest, Found::Above));
        }
        self.place = Place::Bracket { at: at.by(OCTAVE), again: false };
    }

    /// Downwards from the first rate with a backlog, in small steps.
    fn go_down(&mut self, at: Load, fails: bool) {
        if !fails {
            self.passed = Some(at);
            return self.narrow();
        }
        self.failed = Some(at);
        let next = at.by(-QUARTER);
        match next.per_second() < FIRST / 4.0 {
            true => self.end(Found::None(at)),
            false => self.place = Place::Down { at: next },
        }
    }

    fn middle(&self) -> Load {
        match (self.passed, self.failed) {
            (Some(low), Some(high)) => low.by(low.steps_to(high) / 2),
            _ => self.centre,
        }
    }

    fn narrow(&mut self) {
        let (Some(low), Some(high)) = (self.passed, self.failed) else { return };
        self.place = Place::Narrow;
        if low.steps_to(high) <= NARROW {
            self.centre = self.middle();
            let start = Curve { root: self.centre.ln(), slope: 20.0 };
            self.curves.fill(start);
            self.begin_round();
        }
    }

    fn begin_round(&mut self) {
        self.round += 1;
        let mut left = RUNGS.map(|by| self.centre.by(by)).to_vec();
        self.random.shuffle(&mut left);
        self.place = Place::Round { left };
    }

    fn rung(&mut self, mut left: Vec<Load>, seen: &Seen) {
        let load = left.remove(0);
        for (visits, (due, late)) in self.visits.iter_mut().zip(&seen.counts) {
            let late = late.min(*due);
            visits.push(Late { ln_rate: load.ln(), due: *due, late, round: self.round });
        }
        if !left.is_empty() {
            self.place = Place::Round { left };
            return;
        }
        let at = self.centre.ln();
        for ((visits, curve), bound) in self.visits.iter().zip(&mut self.curves).zip(&self.bounds) {
            let root = if (curve.root - at).abs() < 0.3 { curve.root } else { at };
            *curve = fit(visits, bound.allowance, Curve { root, ..*curve });
        }
        let lowest = self.curves.iter().map(|curve| curve.root).fold(f64::INFINITY, f64::min);
        let moved = (lowest - at).abs();
        let steps = ((lowest - at) * 100.0).round() as i32;
        self.centre = self.centre.by(steps.clamp(-MOVE_MAX, MOVE_MAX));
        let is_long = self.round >= ROUNDS_SHOWN && self.spent > SPENT_MAX;
        if self.round >= ROUNDS.0 || is_long {
            let line = self.line(moved);
            let converged = line.as_ref().is_some_and(|line| line.converged);
            let is_hopeless =
                self.rounds_wanted() > HOPELESS && self.round >= ROUNDS.0 + ROUNDS.0 / 2;
            if converged || is_hopeless || is_long || self.round >= ROUNDS.1 {
                let between = Found::Between(self.passed, self.failed);
                return self.end(line.map_or(between, Found::Line));
            }
        }
        self.begin_round();
    }

    /// The line by the rounds so far. Of several limits those count that are a third used up at the
    /// lowest line; the line and both its ends are the least of theirs.
    fn line(&self, moved: f64) -> Option<Line> {
        let roots = self.curves.iter().map(|curve| curve.root);
        let (lowest, at) = roots.enumerate().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let near = |late: &&Late| (late.ln_rate - at).abs() <= 0.045;
        let is_used = |k: usize| {
            let sums = self.visits[k].iter().filter(near);
            let (due, late) = sums.fold((0.0, 0.0), |(d, l), v| (d + v.due, l + v.late));
            k == lowest || late > self.bounds[k].allowance / 3.0 * due
        };
        let of = |k: usize| {
            let found = root(&self.visits[k], self.bounds[k].allowance, self.curves[k], CONFIDENCE);
            found.filter(|_| is_used(k))
        };
        let each: Vec<Option<Root>> = (0..self.bounds.len()).map(of).collect();
        let known = || each.iter().enumerate().filter_map(|(k, one)| Some((k, (*one)?)));
        let (first, _) = known().min_by(|a, b| a.1.root.total_cmp(&b.1.root))?;
        let least =
            |of: fn(&Root) -> f64| known().map(|(_, r)| of(&r)).fold(f64::INFINITY, f64::min);
        let (rate, low, high) = (least(|r| r.root), least(|r| r.low), least(|r| r.high));
        let converged = (high - low) / 2.0 <= PRECISION && moved < AT_REST;
        let rounds = self.visits[lowest].last().map_or(0, |visit| visit.round);
        let (rate, low, high) = (rate.exp(), low.exp(), high.exp());
        Some(Line { rate, low, high, first, each, rounds, converged })
    }

    /// What comes after the line: from where a backlog grows, and the hold.
    fn end(&mut self, found: Found) {
        self.place = match &found {
            Found::Line(line) => {
                let low = Load::of_ln(line.rate.ln());
                let high = self.grew.filter(|grew| *grew > low);
                let at = high.map_or(low.by(QUARTER), |high| low.by(low.steps_to(high) / 2));
                Place::Capacity { low, high, at, again: false }
            }
            _ => Place::Done,
        };
        self.found = Some(found);
    }

    fn look_for_capacity(&mut self, grows: bool) {
        let Place::Capacity { low, high, at, again } = &mut self.place else { return };
        if grows && !*again {
            *again = true;
            return;
        }
        *again = false;
        if grows {
            *high = Some(*at);
        } else {
            *low = *at;
        }
        let (low, high) = (*low, *high);
        match high {
            None if low.per_second() * 2.0 < LAST => *at = low.by(QUARTER),
            Some(high) if low.steps_to(high) > NARROW_CAPACITY => {
                *at = low.by(low.steps_to(high) / 2);
            }
            _ => {
                self.capacity = high.map(|high| (low, high));
                self.place = self.held_at().map_or(Place::Done, Place::Hold);
            }
        }
    }

    /// The low end of the line.
    fn held_at(&self) -> Option<Load> {
        let Some(Found::Line(line)) = &self.found else { return None };
        Some(Load::of_ln(line.low.ln())).filter(|_| self.hold > Nanos::ZERO)
    }

    /// What is known of the line.
    pub fn found(&self) -> Found {
        let so_far = || self.line(0.0).map(|line| Line { converged: false, ..line });
        let between = || Found::Between(self.passed, self.failed);
        self.found.clone().unwrap_or_else(|| so_far().map_or_else(between, Found::Line))
    }

    /// A backlog grows from between these two rates; `None` where it was not found.
    pub const fn capacity(&self) -> Option<(Load, Load)> {
        self.capacity
    }

    /// Rounds until the interval is narrow enough, by how wide it is after those so far.
    fn rounds_wanted(&self) -> f64 {
        let line = self.line(0.0).filter(|line| line.rounds >= ROUNDS_SHOWN);
        line.map_or(0.0, |line| {
            let half = (line.high / line.low).ln() / 2.0;
            f64::from(line.rounds) * (half / PRECISION).powi(2)
        })
    }

    /// What it will take, as it stands.
    pub fn left(&self) -> Nanos {
        let each = |step: Step| step.time + step.ramp;
        let now = self.next().map_or(Nanos::ZERO, each);
        let times = |n: u32, time: Nanos| Nanos::new(time.get().saturating_mul(n.into()));
        let visit = VISIT.max(self.long_enough(self.centre, 0.0)) + RAMP;
        let rounds = |left: u32| times(5 * left, visit);
        let capacity = times(12, VISIT + RAMP);
        match &self.place {
            Place::Bracket { .. } | Place::Down { .. } | Place::Narrow => {
                times(8, now) + times(5 * ROUNDS.0, VISIT + RAMP) + capacity + self.hold
            }
            Place::Round { left } => {
                let wanted = match self.rounds_wanted() {
                    wanted if wanted > HOPELESS => ROUNDS.0 + ROUNDS.0 / 2,
                    wanted => (wanted.ceil() as u32).clamp(ROUNDS.0, ROUNDS.1),
                };
                let whole = rounds(wanted.saturating_sub(self.round));
                let whole = whole.min(SPENT_MAX.saturating_sub(self.spent));
                times(left.len() as u32, now) + whole + capacity + self.hold
            }
            Place::Capacity { .. } => times(4, now) + self.hold,
            Place::Hold(_) => now,
            Place::Done => Nanos::ZERO,
        }
    }
}

/// The piece from which on a hold was over the level for too long, if it was.
///
/// * `over`: of each [`PIECE`], whether it was over the level.
pub fn breaks(over: &[bool]) -> Option<usize> {
    over.windows(PIECES_IN_A_ROW).position(|row| row.iter().all(|over| *over))
}
