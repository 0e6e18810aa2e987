//! What a suite will cost, as far as its text tells.

use units::{Bytes, Nanos};

use crate::model::{
    Access, Cell, Class, Data, Method, Operation, PAGE, Pacing, Precondition, Steady, Stop, Stream,
    Suite, Until, Work,
};
use crate::rounds::STEADY_ROUNDS;

impl Suite {
    /// Cells of all phases.
    pub fn cell_count(&self) -> usize {
        self.phases.iter().map(|phase| phase.cells.len()).sum()
    }

    /// Cells of all phases in the suite's order, which is how plans and records count them.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.phases.iter().flat_map(|phase| &phase.cells)
    }

    /// What sizes of files are whole multiples of. Direct I/O has to reach a file's end, what
    /// describes itself does so in whole sectors, and several files are filled block by block; one
    /// file that is read and written through the page cache alone may be of any length.
    pub fn size_unit(&self) -> Bytes {
        let direct = |stream: &Stream| stream.direct && stream.work == Work::Blocks;
        let whole = self.files.count > 1
            || self.files.data == Data::SelfDescribing
            || self.cells().any(|cell| cell.all_streams().any(direct));
        if whole { PAGE } else { Bytes::new(1) }
    }

    /// Whether any stream can change what is stored. The fill before the first phase is apart:
    /// see [`crate::model::FileSet::fill`].
    pub fn writes(&self) -> bool {
        self.cells().any(|cell| cell.all_streams().any(Stream::modifies))
    }

    /// Time that all visits and the pauses before them take at least: what streams that end by
    /// time alone ask for. Fill, preconditioning and cache handling not counted.
    pub fn least_duration(&self) -> Nanos {
        match self.method {
            Method::Rounds => self.duration_of_rounds(self.rounds.visits_min),
            Method::Classic => self.duration_of_rounds(self.repeats),
        }
    }

    /// Time that the suite's own times, order and repeats ask for at least.
    pub(crate) fn classic_duration(&self) -> Nanos {
        let classic = self.duration_by(Method::Classic, self.repeats);
        let longest = self.phases.iter().filter_map(|phase| {
            // Until it is steady, or given up.
            let steady = phase.steady?;
            let rounds = steady.round.get().saturating_mul(u64::from(steady.rounds_max));
            Some(rounds.saturating_mul(phase.cells.len() as u64))
        });
        let steady = longest.fold(0, u64::saturating_add);
        Nanos::new(classic.get().saturating_add(steady))
    }

    /// The most visits there can be: of every cell and round.
    pub fn visits_most(&self) -> u32 {
        let times = match self.method {
            Method::Rounds => self.rounds.visits_max,
            Method::Classic => self.repeats,
        };
        self.visits(times, |steady| steady.rounds_max)
    }

    /// The fewest visits there can be, if nothing stops the run: of phases that become steady as
    /// soon as can be told.
    pub fn visits_least(&self) -> u32 {
        let times = match self.method {
            Method::Rounds => self.rounds.visits_min,
            Method::Classic => self.repeats,
        };
        self.visits(times, |steady| STEADY_ROUNDS.min(steady.rounds_max))
    }

    fn visits(&self, times: u32, of_steady: impl Fn(&Steady) -> u32) -> u32 {
        let phases = self.phases.iter().map(|phase| {
            let cells = u32::try_from(phase.cells.len()).unwrap_or(u32::MAX);
            cells.saturating_mul(phase.steady.as_ref().map_or(times, &of_steady))
        });
        phases.fold(0, u32::saturating_add)
    }

    /// Bytes that are written at least: fill, preconditioning, and streams of writes that end by
    /// bytes or requests alone. What timed streams write depends on the device.
    pub fn bytes_written_least(&self) -> Bytes {
        let once = self
            .cells()
            .flat_map(Cell::all_streams)
            .fold(0u64, |sum, stream| sum.saturating_add(stream.bytes_written_least().get()));
        let times = match self.method {
            Method::Rounds => self.rounds.visits_min,
            Method::Classic => self.repeats,
        };
        let visits = once.saturating_mul(u64::from(times));
        Bytes::new(self.bytes_prepared().get().saturating_add(visits))
    }

    /// Bytes of it that are written before the first visit: to each target, where there are several.
    pub fn bytes_prepared(&self) -> Bytes {
        let total = self.files.total().get();
        let fill = if self.files.fill { total } else { 0 };
        let of_phases = self.phases.iter().flat_map(|phase| &phase.precondition);
        let volumes: f64 =
            self.files.precondition.iter().chain(of_phases).map(Precondition::volume).sum();
        // `as` saturates, which is all that is asked of a lower bound this large.
        let precondition = (volumes * total as f64) as u64;
        Bytes::new(fill.saturating_add(precondition))
    }
}

impl Cell {
    /// Time that a visit takes at least: its longest stream's, after what comes before.
    pub fn least_duration(&self) -> Nanos {
        let before = self.before.as_ref().map_or(Nanos::ZERO, Stream::least_duration);
        before + self.streams.iter().map(Stream::least_duration).max().unwrap_or(Nanos::ZERO)
    }

    /// Time after which a visit ends whatever the device does, if every stream has a time.
    pub fn longest_duration(&self) -> Option<Nanos> {
        let longest = |s: &Stream| Some(s.stop.ramp + s.stop.time_longest()?);
        let ends = self.streams.iter().map(longest);
        ends.collect::<Option<Vec<_>>>()?.into_iter().max()
    }
}

impl Stop {
    /// Measured time after which it ends whatever the device does, if it has one.
    pub fn time_longest(&self) -> Option<Nanos> {
        let stretched = self.extend.map_or(Nanos::ZERO, |extend| extend.time_max);
        self.time.map(|time| time.max(stretched))
    }
}

impl Stream {
    /// Ramp and time, where nothing but time can end the stream; the ramp and what an open
    /// loop's rate dictates otherwise.
    pub fn least_duration(&self) -> Nanos {
        let operations = match (self.stop.operations, self.pacing) {
            (None, _) => None,
            (Some(count), Pacing::Open { rate, .. }) => {
                Some(Nanos::from_secs_f64(count.saturating_sub(1) as f64 / rate))
            }
            (Some(_), Pacing::Closed { .. }) => Some(Nanos::ZERO),
        };
        let bytes = self.stop.bytes.map(|_| Nanos::ZERO);
        let first = [self.stop.time, operations, bytes].into_iter().flatten().min();
        self.stop.ramp + first.unwrap_or(Nanos::ZERO)
    }

    /// Bytes that one visit writes at least, if the stream only writes and time cannot end it.
    pub fn bytes_written_least(&self) -> Bytes {
        if self.stop.time.is_some() {
            return Bytes::ZERO;
        }
        if let Access::Replay { requests } = &self.access {
            let played = requests.len() as u64;
            if self.stop.bytes.is_some() || self.stop.operations.is_some_and(|n| n < played) {
                return Bytes::ZERO;
            }
            let writes = requests.iter().filter(|r| r.op == Operation::Write);
            return Bytes::new(writes.fold(0, |sum, r| sum.saturating_add(r.length.get())));
        }
        let only_writes = self.mix.classes.iter().all(|class| class.op.writes());
        let smallest = self.mix.classes.iter().map(|class: &Class| class.block_size).min();
        let (true, Some(smallest)) = (only_writes, smallest) else { return Bytes::ZERO };
        let by_operations = self.stop.operations.map(|n| n.saturating_mul(smallest.get()));
        let by_bytes = self.stop.bytes.map(Bytes::get);
        let least = [by_operations, by_bytes].into_iter().flatten().min().unwrap_or(0);
        match self.stop.until {
            Until::All => Bytes::new(least),
            Until::FirstWorker => Bytes::new(least / u64::from(self.threads.max(1))),
        }
    }
}
