//! The fields of rounds and of steady phases: defaults, bounds, and what a visit in rounds plays.

use units::{Bytes, Nanos};

use crate::check::{TIME_MAX, VISIT_TIME_MAX, in_range};
use crate::error::Problem;
use crate::model::{
    Cell, Duty, Extend, Method, Phase, Rounds, Spread, Steady, Stop, Stream, Suite,
};
use crate::node::{At, Table};
use crate::raw::{RawRounds, RawSteady, Time};
use crate::source::{Located, out_of_range};

/// What is not set, but for what depends on the suite.
pub(crate) const DEFAULT: Rounds = Rounds {
    precision: 0.05,
    visits_min: 3,
    visits_max: 10,
    visit_time: Nanos::secs(2),
    ramp: Nanos::millis(500),
    least_operations: 400,
    visit_time_max: VISIT_TIME_MAX,
    time_max: Nanos::secs(60),
    pilot: false,
};

const STEADY: Steady = Steady { round: Nanos::secs(10), rounds_max: 25, volume: 2.0, track: 0 };

/// A pilot watches a cell for so long.
pub const PILOT: Nanos = Nanos::secs(10);

/// So many cells of a phase are watched by pilots.
pub const PILOTS: usize = 3;

/// Nobody waits for visits that know a rate better.
const PRECISION_MIN: f64 = 0.001;
const RAMP_MAX: Nanos = Nanos::secs(3600);
const PILOT_CELLS: usize = 12;
const PILOT_VISIT: Nanos = Nanos::secs(1);
/// The stretch in which a device must be quiet to be idle.
const WAIT: Nanos = Nanos::secs(1);
const SECOND: Nanos = Nanos::secs(1);
const VISITS_MAX: u32 = 10_000;
const VOLUME_MAX: f64 = 1000.0;

/// Sets the rounds of a suite that is whole but for them: the table, with what it leaves out.
pub(crate) fn set_rounds(suite: &mut Suite, raw: &RawRounds, head: &Table) -> Located<()> {
    let at = |field: &str| {
        let table = head.get("rounds");
        let own = table.and_then(|node| node.as_table()).and_then(|table| table.get(field));
        own.or(table).map_or(At::Text(0), |node| node.at)
    };
    let precision = raw.precision.unwrap_or(DEFAULT.precision);
    if !(PRECISION_MIN..=1.0).contains(&precision) {
        let wanted = format!("{PRECISION_MIN} to 1: 0.1 % to 100 %");
        return Err((at("precision"), out_of_range("precision", precision, &wanted)));
    }
    let visits_max = raw.visits_max.unwrap_or(DEFAULT.visits_max.max(raw.visits_min.unwrap_or(0)));
    let visits_max = in_range("visits_max", visits_max, 1, VISITS_MAX, at("visits_max"))?;
    let visits_min = raw.visits_min.unwrap_or(DEFAULT.visits_min.min(visits_max));
    let visits_min = in_range("visits_min", visits_min, 1, visits_max, at("visits_min"))?;
    let time = |field: &str, set: Option<Time>, default: Nanos, zero: bool| {
        let seen = set.map_or(default, |time| time.0);
        if seen > TIME_MAX || (seen == Nanos::ZERO && !zero) {
            let wanted = if zero { "at most a year" } else { "more than 0, at most a year" };
            return Err((at(field), out_of_range(field, seen.exact(), wanted)));
        }
        Ok(seen)
    };
    let visit_time = time("visit_time", raw.visit_time, DEFAULT.visit_time, false)?;
    let longest = visit_time.max(DEFAULT.visit_time_max);
    let visit_time_max = time("visit_time_max", raw.visit_time_max, longest, false)?;
    if visit_time_max < visit_time {
        let wanted = format!("at least `visit_time`, {}", visit_time.exact());
        let problem = out_of_range("visit_time_max", visit_time_max.exact(), &wanted);
        return Err((at("visit_time_max"), problem));
    }
    let ramp = time("ramp", raw.ramp, DEFAULT.ramp, true)?;
    if ramp > RAMP_MAX {
        return Err((at("ramp"), out_of_range("ramp", ramp.exact(), "at most an hour")));
    }
    suite.rounds = Rounds {
        precision,
        visits_min,
        visits_max,
        visit_time,
        ramp,
        least_operations: raw.least_operations.unwrap_or(DEFAULT.least_operations),
        visit_time_max,
        time_max: Nanos::ZERO,
        pilot: raw.pilot.unwrap_or(suite.cell_count() >= PILOT_CELLS && visit_time >= PILOT_VISIT),
    };
    let time_max = match raw.time_max {
        Some(_) => time("time_max", raw.time_max, Nanos::ZERO, false)?,
        None => default_time_max(suite),
    };
    suite.rounds.time_max = time_max;
    let once = suite.duration_of_rounds(1);
    if suite.method == Method::Rounds && time_max < once {
        let wanted = format!("at least {}: one visit to every cell", once.exact());
        return Err((at("time_max"), out_of_range("time_max", time_max.exact(), &wanted)));
    }
    Ok(())
}

/// A tenth less than what the suite's own order and times would take, so that nobody waits longer
/// than for those, where the least number of visits and a quarter more for slow ramps and waits fit
/// into that; else as much as it, or they, take.
fn default_time_max(suite: &Suite) -> Nanos {
    let classic = suite.classic_duration().max(DEFAULT.time_max);
    let visits = suite.duration_of_rounds(suite.rounds.visits_min) + waits(suite);
    let roomy = Nanos::new(visits.get().saturating_add(visits.get() / 4));
    let within = Nanos::new(classic.get() - classic.get() / 10).max(DEFAULT.time_max);
    let time = if roomy <= within { within } else { classic.max(roomy) };
    whole_seconds(time).min(TIME_MAX)
}

/// Up to the next: nobody writes such a limit in ns.
fn whole_seconds(span: Nanos) -> Nanos {
    Nanos::new(span.get().div_ceil(SECOND.get()).saturating_mul(SECOND.get()))
}

/// Before a visit after one that wrote, the device is waited for to be idle: so long at least, in
/// the least number of rounds.
fn waits(suite: &Suite) -> Nanos {
    let each = Nanos::new(suite.rounds.visit_time.get() / 2).min(WAIT);
    let in_rounds = suite.phases.iter().filter(|phase| phase.steady.is_none());
    let writing = in_rounds.flat_map(|phase| &phase.cells);
    let writing = writing.filter(|cell| cell.streams.iter().any(Stream::modifies)).count() as u64;
    let visits = writing.saturating_mul(suite.rounds.visits_min.into());
    Nanos::new(each.get().saturating_mul(visits))
}

/// * `track`: the cell that decides, as an index into the phase's cells.
pub(crate) fn steady(raw: &RawSteady, track: usize, at: At) -> Located<Steady> {
    let round = raw.round.map_or(STEADY.round, |time| time.0);
    if round == Nanos::ZERO || round > TIME_MAX {
        let problem = out_of_range("steady.round", round.exact(), "more than 0, at most a year");
        return Err((at, problem));
    }
    let rounds_max = raw.rounds_max.unwrap_or(STEADY.rounds_max);
    let rounds_max = in_range("steady.rounds_max", rounds_max, 1, VISITS_MAX, at)?;
    let volume = raw.volume.unwrap_or(STEADY.volume);
    if !(0.0..=VOLUME_MAX).contains(&volume) {
        return Err((at, out_of_range("steady.volume", volume, "from 0 to 1000")));
    }
    Ok(Steady { round, rounds_max, volume: volume.abs(), track })
}

/// The fields of a steady phase, all of them.
pub(crate) fn steady_whole(raw: &RawSteady) -> RawSteady {
    RawSteady {
        round: raw.round.or(Some(Time(STEADY.round))),
        rounds_max: raw.rounds_max.or(Some(STEADY.rounds_max)),
        volume: raw.volume.or(Some(STEADY.volume)),
        track: raw.track.clone(),
    }
}

/// The table of rounds, all of it.
pub(crate) fn rounds_whole(rounds: &Rounds) -> RawRounds {
    RawRounds {
        precision: Some(rounds.precision),
        visits_min: Some(rounds.visits_min),
        visits_max: Some(rounds.visits_max),
        visit_time: Some(Time(rounds.visit_time)),
        ramp: Some(Time(rounds.ramp)),
        least_operations: Some(rounds.least_operations),
        visit_time_max: Some(Time(rounds.visit_time_max)),
        time_max: Some(Time(rounds.time_max)),
        pilot: Some(rounds.pilot),
    }
}

impl Phase {
    /// Bytes that writes of its cells go to: the largest of their ranges.
    pub fn active_range(&self) -> Bytes {
        self.cells.iter().map(Cell::active_range).max().unwrap_or(Bytes::ZERO)
    }

    /// Its cells as a visit plays them by a method: what a cell asks for, but that in rounds and
    /// until steady the time is that of a visit. One after the other: there may be many.
    fn as_played(&self, method: Method, rounds: Rounds) -> impl Iterator<Item = Cell> {
        self.cells.iter().map(move |cell| match (self.steady, method) {
            (Some(steady), _) => cell.for_steady(&steady),
            (None, Method::Rounds) => cell.for_rounds(&rounds),
            (None, Method::Classic) => cell.clone(),
        })
    }
}

impl Duty {
    /// Of work and rest.
    pub fn turn(&self) -> Nanos {
        self.on + self.off
    }

    /// The time, and what is missing to whole turns of work and rest.
    pub fn whole_turns(&self, time: Nanos) -> Nanos {
        if self.off == Nanos::ZERO {
            return time;
        }
        let turn = self.turn().get().max(1);
        Nanos::new(time.get().div_ceil(turn).max(1).saturating_mul(turn))
    }
}

/// A phase whose measured time ends within a turn of work and rest: what its rate is depends on
/// how much of the rest is in it.
pub(crate) fn torn_turn(suite: &Suite, phase: &Phase) -> Option<Problem> {
    let played = phase.as_played(suite.method, suite.rounds);
    played.flat_map(|cell| cell.streams).find_map(|stream| {
        let duty = stream.duty.filter(|_| stream.stop.by_time())?;
        let time = stream.stop.time?;
        let whole = duty.whole_turns(time);
        (whole != time).then(|| Problem::TornTurn {
            phase: phase.name.as_str().into(),
            field: if phase.steady.is_some() { "steady.round" } else { "time" },
            time: time.exact().into(),
            turn: duty.turn().exact().into(),
            whole: whole.exact().into(),
        })
    })
}

impl Stop {
    /// Whether time ends it and nothing else.
    pub fn by_time(&self) -> bool {
        self.time.is_some() && self.bytes.is_none() && self.operations.is_none()
    }
}

impl Cell {
    /// Bytes that its writes go to: the largest region of a stream that writes; 0 if none does.
    pub fn active_range(&self) -> Bytes {
        let writing = self.streams.iter().filter(|stream| stream.modifies());
        let ranges = writing.map(|stream| match stream.region.spread {
            Spread::Concatenated | Spread::Striped { .. } => stream.region.length,
            Spread::FilePerWorker => {
                Bytes::new(stream.region.length.get().saturating_mul(u64::from(stream.threads)))
            }
        });
        ranges.max().unwrap_or(Bytes::ZERO)
    }

    fn for_steady(&self, steady: &Steady) -> Self {
        let mut cell = self.clone();
        for stream in cell.streams.iter_mut().filter(|stream| stream.stop.by_time()) {
            stream.stop = Stop { ramp: Nanos::ZERO, time: Some(steady.round), ..stream.stop };
        }
        cell
    }

    fn for_rounds(&self, rounds: &Rounds) -> Self {
        let mut cell = self.clone();
        // A rate over work and rest is one of whole turns only, and of those beside it, too.
        let turns = |time: Nanos| {
            let timed = self.streams.iter().filter(|stream| stream.stop.by_time());
            let duties = timed.filter_map(|stream| stream.duty);
            duties.map(|duty| duty.whole_turns(time)).max().unwrap_or(time)
        };
        let visit_time = turns(rounds.visit_time);
        for stream in cell.streams.iter_mut().filter(|stream| stream.stop.by_time()) {
            let duty = stream.duty;
            let stop = &mut stream.stop;
            stop.ramp = stop.ramp.max(rounds.ramp);
            stop.time = stop.time.map(|time| {
                let time = time.min(visit_time);
                duty.map_or(time, |duty| duty.whole_turns(time))
            });
        }
        if cell.rests() {
            return cell;
        }
        // One end for all that last longest: what stops earlier by its own time is not stretched.
        let longest = cell.longest_duration_of_timed();
        for stream in cell.streams.iter_mut().filter(|stream| stream.stop.by_time()) {
            let stop = &mut stream.stop;
            let time = stop.time.unwrap_or(Nanos::ZERO);
            if stop.ramp + time == longest && rounds.least_operations > 0 {
                let time_max = rounds.visit_time_max.max(time);
                stop.extend = Some(Extend { operations: rounds.least_operations, time_max });
            }
        }
        cell
    }

    /// Whether any of its streams works and rests by turns, so that its time is one of whole turns.
    pub fn rests(&self) -> bool {
        self.streams.iter().any(|stream| stream.duty.is_some_and(|duty| duty.off > Nanos::ZERO))
    }

    fn longest_duration_of_timed(&self) -> Nanos {
        let timed = self.streams.iter().filter(|stream| stream.stop.by_time());
        let ends = timed.filter_map(|stream| Some(stream.stop.ramp + stream.stop.time?));
        ends.max().unwrap_or(Nanos::ZERO)
    }
}

impl Suite {
    /// Every cell as a visit plays it, in the suite's order.
    pub fn cells_as_played(&self) -> Vec<Cell> {
        let phases = self.phases.iter();
        phases.flat_map(|phase| phase.as_played(self.method, self.rounds)).collect()
    }

    /// Time that `visits` visits to every cell take at least, by the suite's method, with pilots
    /// and the rounds of steady phases: of those, as many as are needed to be steady.
    pub fn duration_of_rounds(&self, visits: u32) -> Nanos {
        self.duration_by(self.method, visits)
    }

    /// The same by one method or the other.
    pub(crate) fn duration_by(&self, method: Method, visits: u32) -> Nanos {
        let phases = self.phases.iter().map(|phase| {
            let cells = phase.as_played(method, self.rounds);
            let (times, pilots) = match (phase.steady, method) {
                (Some(steady), _) => (STEADY_ROUNDS.min(steady.rounds_max), 0),
                (None, Method::Rounds) => (visits, self.pilots(phase).len() as u64),
                (None, Method::Classic) => (visits, 0),
            };
            let once = cells.fold(0u64, |sum, cell| {
                sum.saturating_add(cell.least_duration().get()).saturating_add(phase.settle.get())
            });
            let pilots = pilots.saturating_mul(PILOT.get());
            once.saturating_mul(u64::from(times)).saturating_add(pilots)
        });
        Nanos::new(phases.fold(0, u64::saturating_add))
    }

    /// Which cells of a phase pilots watch, as indices into its cells: the smallest load, the one
    /// in the middle, the largest; of those that end by time.
    pub fn pilots(&self, phase: &Phase) -> Vec<usize> {
        if !self.rounds.pilot || self.method != Method::Rounds || phase.steady.is_some() {
            return Vec::new();
        }
        let load = |cell: &Cell| {
            cell.streams.iter().fold(0u64, |sum, stream| {
                let requests = u64::from(stream.threads) * u64::from(stream.queue_depth);
                sum.saturating_add(requests.saturating_mul(stream.block_size_max().get()))
            })
        };
        // Of one that rests, a course shows its turns and no ramp.
        let timed =
            |cell: &Cell| !cell.rests() && cell.streams.iter().all(|stream| stream.stop.by_time());
        let indexed = phase.cells.iter().enumerate().filter(|(_, cell)| timed(cell));
        let mut by_load: Vec<(u64, usize)> = indexed.map(|(i, cell)| (load(cell), i)).collect();
        by_load.sort_unstable();
        let Some(last) = by_load.len().checked_sub(1) else { return Vec::new() };
        let mut chosen: Vec<usize> =
            [0, last / 2, last].iter().filter_map(|&i| Some(by_load.get(i)?.1)).collect();
        chosen.dedup();
        debug_assert!(chosen.len() <= PILOTS, "as many as there are places");
        chosen
    }
}

/// The test of the last half wants ten rounds.
pub(crate) const STEADY_ROUNDS: u32 = 10;
