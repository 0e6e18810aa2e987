//! What stood still, in words.

use units::Nanos;

use super::{CellFreezes, Freeze, Freezes, HICCUP, Source, StuckWorkers};
use crate::closing::ClosingSync;
use crate::interval::Standstills;
use crate::words;

/// A list longer than this is not read.
const EVENTS_MAX: usize = 12;

impl Freezes {
    /// The verdict first, then the events, then what to do.
    pub fn sentences(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.never_came_back().into_iter().collect();
        lines.push(self.verdict());
        let mut longest: Vec<&Freeze> = self.events.iter().collect();
        longest.sort_by_key(|event| (std::cmp::Reverse(event.length_ns), event.order));
        longest.truncate(EVENTS_MAX);
        longest.sort_by_key(|event| (event.order, event.start_ns));
        lines.extend(longest.iter().map(|event| event.sentence()));
        if self.events.len() > EVENTS_MAX {
            let more = (self.events.len() - EVENTS_MAX) as u64;
            lines
                .push(format!("{} more, all shorter, are in the data.", words::count(more, "gap")));
        }
        lines.extend(self.one_late_request());
        for cell in self.cells.iter().filter(|cell| cell.tally.lost_share >= 0.01) {
            lines.push(lost(cell));
        }
        lines.extend(self.stuck.iter().take(EVENTS_MAX).map(StuckWorkers::sentence));
        if self.stuck.len() > EVENTS_MAX {
            let more = (self.stuck.len() - EVENTS_MAX) as u64;
            lines.push(format!("Workers were held up alone {more} more times."));
        }
        lines.extend(self.closing.iter().filter_map(ClosingSync::sentence).take(EVENTS_MAX));
        if self.unknown_visits > 0 {
            let visits = words::count(u64::from(self.unknown_visits), "visit");
            lines.push(format!("Unknown for {visits}: no record of when requests completed."));
        }
        lines.extend(self.advice());
        lines
    }

    /// The worst there is, and in none of the counts.
    fn never_came_back(&self) -> Option<String> {
        (self.lost_visits > 0).then(|| {
            format!(
                "In {} requests never came back while they were waited for, and what those visits \
                 had measured is lost: what follows is about the others. The warnings of the run \
                 name the requests and their age.",
                words::count(u64::from(self.lost_visits), "visit")
            )
        })
    }

    fn verdict(&self) -> String {
        let all = &self.all;
        let load_ns = all.load_ns();
        let watched = Nanos::new(load_ns);
        if all.visits == 0 && self.few_requests_visits > 0 {
            return "Whether the device stood still for less than 5 s is unknown: every visit has few \
                    requests for each one in flight."
                .to_owned();
        }
        if all.visits == 0 {
            return "Whether the device ever stood still is unknown: no visit tells.".to_owned();
        }
        let Some(often) = all.per_hour.filter(|_| load_ns > 0) else {
            return "Whether the device ever stood still is unknown: nothing was measured."
                .to_owned();
        };
        if all.events() == 0 && watched < HICCUP {
            return format!(
                "Whether the device stalls for 100 ms or more is unknown: {watched} of measuring is less \
                 than that."
            );
        }
        if all.events() == 0 {
            return format!(
                "{} never stalled for 100 ms or more in {watched} of measuring. At 95 % confidence, such \
                 stalls occur no more often than {}.",
                match (self.no_device, self.lost_visits) {
                    (true, _) => "There is no device; this machine and the load generator",
                    (false, 0) => "The device",
                    (false, _) => "Otherwise the device",
                },
                frequency(often.high, load_ns)
            );
        }
        let kinds = [(all.freezes, "freeze"), (all.stalls, "stall"), (all.hiccups, "hiccup")];
        let kinds: Vec<String> = kinds
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|&(n, noun)| words::count(u64::from(n), noun))
            .collect();
        let host = match all.of_host {
            0 => String::new(),
            n if n == all.events() => String::new(),
            n => format!("; {n} of these were the host's own"),
        };
        let alone = self.events.iter().all(|event| event.one_at_a_time);
        let who = match all.of_host {
            0 if alone => "With one request in flight nothing came back for a while",
            0 if self.no_device => "This machine or the load generator stood still",
            0 => "The device stood still",
            n if n == all.events() => "The host, not the device, stood still",
            _ => "Nothing came back for a while",
        };
        format!(
            "{who} {} in {watched} of measuring: {} (100 ms, 1 s and 5 s are the \
             limits). {} were lost, {} of the time{host}. By this count it happens \
             {} of load, 95 % interval {} to {}.",
            occasions(all.events()),
            words::list(&kinds),
            Nanos::new(all.lost_ns),
            words::percent(all.lost_share),
            frequency(often.rate, load_ns),
            frequency(often.low, load_ns),
            frequency(often.high, load_ns)
        )
    }

    /// What nobody can tell where a single request is in flight.
    fn one_late_request(&self) -> Option<String> {
        const NAMED: usize = 3;
        let alone = |event: &&Freeze| event.one_at_a_time && event.source != Source::Host;
        let mut names: Vec<String> = Vec::new();
        for event in self.events.iter().filter(alone) {
            let name = format!("`{}`", event.cell_name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        (!names.is_empty()).then(|| {
            format!(
                "One request was in flight in {} when nothing came back: whether the device stood still \
                 there or that one request was late, nobody can tell.",
                words::list(&names)
            )
        })
    }

    fn advice(&self) -> Option<String> {
        let worst = self.events.iter().max_by_key(|event| event.length_ns)?;
        let text = match worst.source {
            Source::Host => {
                "Next: measure again on a host with nothing else to do; what paused the process \
                 (suspended, no processor, memory short) says nothing about the device."
            }
            Source::AboveBlockLayer => {
                "Next: measure the block device or a preallocated file directly; if the gaps go, \
                 they are the file system's (journal, allocation, write-back)."
            }
            Source::Device if worst.since_write_ns == Some(0) && worst.reads => {
                "Next: repeat the cell with its reads alone; if the gaps go, they came of its writes \
                 (a cache that was written back, or a drive that tidied up)."
            }
            Source::Device if worst.since_write_ns.is_some_and(|ns| ns < 60_000_000_000) => {
                "Next: repeat the cell after a minute without writes; if the gaps go, a cache \
                 was writing back what had been written before."
            }
            Source::Device | Source::Unknown => {
                "Next: repeat the cell several times; look at the device's error log and at the \
                 kernel log at the times above."
            }
        };
        Some(text.to_owned())
    }
}

impl Freeze {
    /// What happened, when, to whom, whose it was.
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "{} of {}{} in `{}`, visit {}, at {} ({} into the run{})",
            words::capital(self.tier.name()),
            if self.at_least { "at least " } else { "" },
            Nanos::new(self.length_ns),
            self.cell_name,
            u64::from(self.repeat) + 1,
            Nanos::new(self.start_ns),
            Nanos::new(self.start_in_run_ns),
            match self.simulated_clock {
                true => String::new(),
                false => format!(", {} UTC", clock(self.start_unix_ns)),
            },
        );
        if self.before_ns > 0 {
            text.push_str(&format!(", begun {} before", Nanos::new(self.before_ns)));
        }
        text.push_str(&match (self.workers, self.workers_all) {
            (_, 0) => String::new(),
            (1, _) if self.one_at_a_time => ", the only request in flight".to_owned(),
            (1, 1) => ", its only worker".to_owned(),
            (some, all) if some == all => {
                format!(", all {}", words::count(u64::from(all), "worker"))
            }
            (some, all) => format!(", {some} of {}", words::count(u64::from(all), "worker")),
        });
        match (self.since_write_ns, &self.written_by) {
            (Some(0), _) if self.reads => text.push_str(", while reading and writing"),
            (Some(0), _) => text.push_str(", while writing"),
            (Some(ns), Some(cell)) => {
                text.push_str(&format!(", {} after the writes of `{cell}`", Nanos::new(ns)));
            }
            (Some(ns), None) => text.push_str(&format!(", {} after writes", Nanos::new(ns))),
            (None, _) => {}
        }
        let whose = match self.source {
            Source::Host => "the host, not the device",
            Source::Device if self.one_at_a_time => "at the device",
            Source::Device => "the device",
            Source::AboveBlockLayer => "above the block device",
            Source::Unknown => "where is unknown",
        };
        format!("{text}: {whose}; {}.", self.evidence)
    }
}

impl StuckWorkers {
    fn sentence(&self) -> String {
        if self.workers >= self.workers_all {
            return format!(
                "Each of {} stood still within {} in `{}` at {}, but all at once for less than counts \
                 as a gap: single requests were held up, not the device.",
                words::count(u64::from(self.workers_all), "worker"),
                Nanos::new(self.length_ns),
                self.cell_name,
                Nanos::new(self.start_ns)
            );
        }
        format!(
            "{} of {} stood still for {} in `{}` at {} while the others went on: single requests \
             were held up, not the device.",
            self.workers,
            words::count(u64::from(self.workers_all), "worker"),
            Nanos::new(self.length_ns),
            self.cell_name,
            Nanos::new(self.start_ns)
        )
    }
}

/// The tables' figure, and what is behind it: that of a mean of visits where it is another than that
/// of all the time.
fn lost(cell: &CellFreezes) -> String {
    const SAME: f64 = 0.01;
    let tally = &cell.tally;
    let same = |mean: &f64| (mean / tally.rate).ln().abs() <= SAME;
    let rate = words::iops(tally.rate);
    let rates = match cell.mean.filter(|mean| !same(mean)) {
        Some(mean) => format!(
            "{} IOPS by the mean of its visits, as in tables, {rate} by all its time",
            words::iops(mean)
        ),
        None => format!("{rate} IOPS"),
    };
    let between = match 1.0 - tally.lost_share >= Standstills::RAN_MIN {
        true => format!("{} between the gaps", words::iops(tally.rate_between)),
        false => "too little time between the gaps to tell a rate".to_owned(),
    };
    format!(
        "`{}`: {rates}, {between}; {} of its time was lost.",
        cell.cell_name,
        words::percent(tally.lost_share)
    )
}

fn occasions(n: u32) -> String {
    match n {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// `12 times an hour`, and of less than that was watched `once in 2 s`: nobody who looked for
/// seconds knows of hours.
fn frequency(per_hour: f64, watched_ns: u64) -> String {
    const HOURLY_FROM_NS: u64 = 1_200_000_000_000;
    match per_hour {
        x if !x.is_finite() => "unknown".to_owned(),
        x if x <= 0.0 => "never".to_owned(),
        x if watched_ns < HOURLY_FROM_NS => format!("once in {}", roughly(3600.0 / x)),
        x if x >= 9.95 => format!("{x:.0} times an hour"),
        x => format!("{x:.1} times an hour"),
    }
}

/// Two digits of a time in seconds.
fn roughly(seconds: f64) -> String {
    let scale = 10f64.powf(seconds.log10().floor() - 1.0);
    words::seconds((seconds / scale).round() * scale)
}

/// Time of day of a wall clock.
fn clock(unix_ns: i64) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000).rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}
