//! What stood still, as findings.

use finding::{Code, Finding, Number, Subject, Value};

use super::{CellFreezes, Freeze, Freezes, Frequency, HICCUP, Source, StuckWorkers, Tally, Tier};
use crate::interval::Standstills;

/// A list longer than this is not read.
const EVENTS_MAX: usize = 12;
/// Cells that lost less of their time are not worth a word.
const LOST_TOLD: f64 = 0.01;
/// A flush at the end that took less of the measured time decides no rate.
const FLUSH_TOLD: f64 = 0.1;
/// What follows writes by less than this may come of them.
const AFTER_WRITES_NS: u64 = 60_000_000_000;

impl Freezes {
    /// The verdict first, then the events, then the cause of the longest.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        // The worst there is, and in none of the counts.
        if self.lost_visits > 0 {
            found.push(
                Finding::new(Code::StallsLostVisits)
                    .with("visits", self.lost_visits)
                    .with("one", self.lost_visits == 1),
            );
        }
        found.push(self.verdict());
        let mut longest: Vec<&Freeze> = self.events.iter().collect();
        longest.sort_by_key(|event| (std::cmp::Reverse(event.length_ns), event.order));
        longest.truncate(EVENTS_MAX);
        longest.sort_by_key(|event| (event.order, event.start_ns));
        found.extend(longest.into_iter().map(Freeze::finding));
        if let Some(more @ 1..) = self.events.len().checked_sub(EVENTS_MAX) {
            found.push(Finding::new(Code::StallsMore).with("more", more));
        }
        found.extend(self.one_late_request());
        let lossy = self.cells.iter().filter(|cell| cell.tally.lost_share >= LOST_TOLD);
        found.extend(lossy.map(CellFreezes::finding));
        found.extend(self.stuck.iter().take(EVENTS_MAX).map(StuckWorkers::finding));
        if let Some(more @ 1..) = self.stuck.len().checked_sub(EVENTS_MAX) {
            found.push(Finding::new(Code::WorkersStalledMore).with("times", more));
        }
        found.extend(self.cells.iter().filter_map(CellFreezes::closing_flush).take(EVENTS_MAX));
        if self.unknown_visits > 0 {
            found.push(Finding::new(Code::StallsUnknownVisits).with("visits", self.unknown_visits));
        }
        found.extend(self.cause());
        found
    }

    fn verdict(&self) -> Finding {
        let all = &self.all;
        let watched_ns = all.load_ns();
        if all.visits == 0 && self.few_requests_visits > 0 {
            return Finding::new(Code::StallsUnknownFew);
        }
        let Some(often) = all.per_hour.filter(|_| all.visits > 0 && watched_ns > 0) else {
            return Finding::new(Code::StallsUnknown).with("visits", all.visits);
        };
        let of = |code| Finding::new(code).with("watched", Number::ns(watched_ns));
        match all.events() {
            0 if watched_ns < HICCUP.get() => of(Code::StallsUnknownShort),
            0 => often
                .at_most(of(Code::StallsNone).with("lost_visits", self.lost_visits), watched_ns),
            events => {
                let alone = all.of_host == 0 && self.events.iter().all(|event| event.one_at_a_time);
                let found = of(Code::StallsSeen)
                    .with("one_in_flight", alone)
                    .with("of_host", all.of_host)
                    .with("only_host", all.of_host == events);
                often.on(all.counted(found), watched_ns)
            }
        }
    }

    /// What nobody can tell where a single request is in flight.
    fn one_late_request(&self) -> Option<Finding> {
        let alone = |event: &&Freeze| event.one_at_a_time && event.source != Source::Host;
        let mut cells: Vec<Subject> = Vec::new();
        for event in self.events.iter().filter(alone) {
            if cells.iter().all(|cell| cell.cell != event.cell) {
                cells.push(Subject::new(event.cell, None, &event.cell_name));
            }
        }
        let is_any = !cells.is_empty();
        is_any.then(|| Finding::new(Code::StallOrLateRequest).on_all(cells, self.cells.len()))
    }

    /// What the longest came of, as far as anyone can tell, and so what to do.
    fn cause(&self) -> Option<Finding> {
        let worst = self.events.iter().max_by_key(|event| event.length_ns)?;
        let since_write = worst.since_write_ns.filter(|ns| *ns < AFTER_WRITES_NS);
        let code = match (worst.source, since_write) {
            (Source::Host, _) => Code::StallCauseHost,
            (Source::AboveBlockLayer, _) => Code::StallCauseAbove,
            (Source::Device, Some(0)) if worst.reads => Code::StallCauseMixed,
            (Source::Device, Some(_)) => Code::StallCauseWrites,
            (Source::Device | Source::Unknown, _) => Code::StallCauseUnknown,
        };
        let since_write = since_write.filter(|ns| *ns > 0).map(Number::ns);
        Some(
            Finding::new(code)
                .on(Subject::new(worst.cell, None, &worst.cell_name))
                .with("length", Number::ns(worst.length_ns))
                .with_some("since_write", since_write),
        )
    }
}

impl Tally {
    fn counted(&self, found: Finding) -> Finding {
        found
            .with("events", self.events())
            .with("once", self.events() == 1)
            .with("freezes", self.freezes)
            .with("stalls", self.stalls)
            .with("hiccups", self.hiccups)
            .with("lost", Number::ns(self.lost_ns))
            .with("lost_share", Number::share(self.lost_share))
    }
}

impl Frequency {
    /// How often, and within what interval.
    fn on(self, found: Finding, watched_ns: u64) -> Finding {
        let times = Number::times(self.rate).within(self.low, self.high);
        let once_in =
            Number::seconds(once_in(self.rate)).within(once_in(self.high), once_in(self.low));
        Self::with(found, watched_ns, times, once_in)
    }

    /// What it does not exceed.
    fn at_most(self, found: Finding, watched_ns: u64) -> Finding {
        let once_in = Number::seconds(once_in(self.high));
        Self::with(found, watched_ns, Number::times(self.high), once_in)
    }

    /// By the hour, and of less than that was watched by the time between two: nobody who looked for
    /// seconds knows of hours.
    fn with(found: Finding, watched_ns: u64, per_hour: Number, once_in: Number) -> Finding {
        const HOURLY_FROM_NS: u64 = 1_200_000_000_000;
        found
            .with("hourly", watched_ns >= HOURLY_FROM_NS)
            .with("per_hour", per_hour)
            .with("once_in", once_in)
    }
}

/// Mean seconds between two, to two digits.
fn once_in(per_hour: f64) -> f64 {
    let seconds = 3600.0 / per_hour;
    let scale = 10f64.powf(seconds.log10().floor() - 1.0);
    (seconds / scale).round() * scale
}

impl Freeze {
    /// What happened, when, to whom, whose it was.
    pub fn finding(&self) -> Finding {
        let is_host = self.source == Source::Host;
        let clock = (!self.simulated_clock).then(|| Value::words(clock(self.start_unix_ns)));
        let since_write = self.since_write_ns.filter(|ns| *ns > 0).map(Number::ns);
        let in_writes = self.since_write_ns == Some(0);
        Finding::new(if is_host { Code::HostStalled } else { Code::Stalled })
            .on(Subject::new(self.cell, None, &self.cell_name))
            .with("freeze", self.tier == Tier::Freeze)
            .with("stall", self.tier == Tier::Stall)
            .with("length", Number::ns(self.length_ns))
            .with("at_least", self.at_least)
            .with("visit", u64::from(self.repeat) + 1)
            .with("at", Number::ns(self.start_ns))
            .with("in_run", Number::ns(self.start_in_run_ns))
            .with_some("clock", clock)
            .with("only_request", self.one_at_a_time && self.workers == 1)
            .with("workers", self.workers)
            .with("workers_all", self.workers_all)
            .with("while_writing", in_writes)
            .with("while_mixed", in_writes && self.reads)
            .with_some("since_write", since_write)
            .with("at_device", self.source == Source::Device)
            .with("above", self.source == Source::AboveBlockLayer)
            .with("evidence", Value::words(&self.evidence))
    }
}

impl StuckWorkers {
    fn finding(&self) -> Finding {
        let in_turn = self.workers >= self.workers_all;
        Finding::new(if in_turn { Code::WorkersStalledInTurn } else { Code::WorkersStalled })
            .on(Subject::new(self.cell, None, &self.cell_name))
            .with("workers", self.workers)
            .with("workers_all", self.workers_all)
            .with("length", Number::ns(self.length_ns))
            .with("at", Number::ns(self.start_ns))
    }
}

impl CellFreezes {
    /// What of its time nothing but flushes at the end was under way, if that is a good part.
    fn closing_flush(&self) -> Option<Finding> {
        let share = self.tally.closing_ns as f64 / self.tally.watched_ns.max(1) as f64;
        (share >= FLUSH_TOLD).then(|| {
            Finding::new(Code::ClosingFlush)
                .on(Subject::new(self.cell, None, &self.cell_name))
                .with("share", Number::share(share))
        })
    }

    /// The tables' figure, and what is behind it: that of a mean of visits where it is another than that
    /// of all the time.
    fn finding(&self) -> Finding {
        const SAME: f64 = 0.01;
        let tally = &self.tally;
        let is_other = |mean: &f64| (mean / tally.rate).ln().abs() > SAME;
        let has_run = 1.0 - tally.lost_share >= Standstills::RAN_MIN;
        Finding::new(Code::StallLostRate)
            .on(Subject::new(self.cell, None, &self.cell_name))
            .with("rate", Number::iops(tally.rate))
            .with_some("mean", self.mean.filter(is_other).map(Number::iops))
            .with_some("between", has_run.then(|| Number::iops(tally.rate_between)))
            .with("lost_share", Number::share(tally.lost_share))
    }
}

/// Time of day of a wall clock.
fn clock(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
