//! The sentences of calibrations.

use super::{Calibration, HostStalls, Noise, VALUES_MIN};
use crate::compare::{BlockClass, ClassName, Floor, InFlightClass};
use crate::interval;
use crate::view::View;
use crate::words::{count, iops, percent, seconds, up_to};

/// A floor above this is worth a word.
const NOISY: f64 = 0.1;

impl Calibration {
    /// Plain English: the floor, what it is from, what it means.
    pub fn sentences(&self) -> Vec<String> {
        let mut out = self.floor_told();
        out.extend(self.events_told());
        out.extend(self.overhead_told());
        out.extend(self.clock.map(|clock| {
            format!(
                "The clock tells times of {} apart, and reading it takes {}.",
                seconds(clock.resolution_ns as f64 / 1e9),
                seconds(clock.reading_ns / 1e9),
            )
        }));
        out.push(self.stalls.sentence());
        out
    }

    fn floor_told(&self) -> Vec<String> {
        let Some(floor) = self.overall.floor else {
            return vec![
                "Unknown: no cell was measured twice, so nothing can be said about this machine's \
                 noise. Calibrate again."
                    .to_owned(),
            ];
        };
        let values = self.overall.values;
        let which = match values as usize {
            n if n >= VALUES_MIN => format!("95 of 100 of the {n} means"),
            n => format!("all of {}", count(n as u64, "mean")),
        };
        let mut out = vec![format!(
            "The same, measured twice on this machine, differs by {}: no smaller difference \
             between two runs is a difference.",
            up_to(floor)
        )];
        out.push(format!(
            "That is what {which} of {} keep within, over {}.",
            count(u64::from(self.group), "block"),
            count(u64::from(self.overall.cells), "cell"),
        ));
        let known = self.classes.iter().filter(|c| c.noise.values as usize >= VALUES_MIN).count();
        out.push(match known {
            0 => "No class of cells has values enough for a floor of its own: this one holds for \
                  all. `plimsoll calibrate --long`, over a night, tells them apart."
                .to_owned(),
            n if n < self.classes.len() => format!(
                "{n} of {} classes of cells have a floor of their own; it holds for the others.",
                self.classes.len()
            ),
            _ => "Every class of cells has a floor of its own.".to_owned(),
        });
        if floor > NOISY {
            out.push(
                "That is much. Something else uses this machine or its disks, or they are \
                 virtual: calibrate when it is quiet, or expect to see only large differences."
                    .to_owned(),
            );
        }
        if (self.group as usize) < 6 {
            out.push(
                "So few blocks say little: comparisons have ten. Give it more time (--blocks)."
                    .to_owned(),
            );
        }
        out
    }

    fn events_told(&self) -> Vec<String> {
        let first = "Its own visits saw more than noise. That is in the floor as if it came every time, so \
                     the floor may be too large: calibrate again. What is seen again belongs to this \
                     machine.";
        let first = (!self.events.is_empty()).then(|| first.to_owned());
        first.into_iter().chain(self.events.iter().cloned()).collect()
    }

    fn overhead_told(&self) -> Option<String> {
        let one = self.overhead.iter().find(|o| o.threads == 1 && o.queue_depth == 1)?;
        let most = self.null_rate()?;
        Some(format!(
            "Plimsoll itself takes {} per request with one in flight, and reaches {} IOPS against \
             a target that does nothing: storage that comes within a third of that is limited by \
             us.",
            seconds(one.ns_per_request / 1e9),
            iops(most),
        ))
    }

    /// A table: the head, a row for every class, one for all cells.
    pub fn rows(&self) -> Vec<[String; 5]> {
        let head = ["class", "cells", "means", "floor", "cv of a visit"].map(str::to_owned);
        let classes = self.classes.iter().map(|found| row(class(&found.class), &found.noise));
        let all = row("all".to_owned(), &self.overall);
        std::iter::once(head).chain(classes).chain([all]).collect()
    }

    /// `21 November 2026`, UTC.
    pub fn day(&self) -> String {
        let (year, month, day) = civil(self.started_unix_ns.div_euclid(86_400_000_000_000));
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        let month = usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).copied();
        format!("{day} {} {year}", month.unwrap_or_default())
    }
}

impl Floor {
    /// What it makes of a run's own intervals: those that are narrower hold within the run, and
    /// promise nothing of the next one. `None` where no cell has an interval.
    pub fn beside(&self, view: &View<'_>) -> Option<String> {
        let intervals = interval::rows(view);
        let floors =
            view.rows.iter().map(|row| self.of_visits(row.load().as_ref(), row.visits.len()));
        let widths: Vec<(f64, f64)> = intervals
            .iter()
            .zip(floors)
            .filter_map(|(found, floor)| Some((found.as_ref()?.half_width, floor)))
            .collect();
        let narrow = widths.iter().filter(|(width, floor)| width < floor).count();
        let least = widths.iter().map(|(_, floor)| *floor).reduce(f64::min)?;
        let most = widths.iter().map(|(_, floor)| *floor).reduce(f64::max)?;
        let visits = view.rows.iter().map(|row| row.visits.len()).filter(|&n| n > 0).min();
        let few = visits.filter(|&n| n < self.blocks as usize);
        let differs = match percent(least) == percent(most) {
            true => up_to(most),
            false => format!("up to {} to {}, by class of cell", percent(least), percent(most)),
        };
        let so = match (narrow, widths.len()) {
            (0, _) => "No interval here is narrower.".to_owned(),
            (1, 1) => "The interval here is narrower: it holds within this run.".to_owned(),
            (n, all) => format!(
                "{n} of {all} intervals here {} narrower: such hold within this run.",
                if n == 1 { "is" } else { "are" }
            ),
        };
        Some(format!(
            "The same, measured twice on this machine, differs by {differs} ({}{}). {so}",
            self.from,
            few.map_or_else(String::new, |n| {
                format!("; here are cells of {}", count(n as u64, "visit"))
            })
        ))
    }
}

fn row(name: String, noise: &Noise) -> [String; 5] {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), percent);
    let of_few = (noise.values as usize) < VALUES_MIN && noise.floor.is_some();
    let floor = share(noise.floor) + if of_few { " (largest)" } else { "" };
    [name, noise.cells.to_string(), noise.values.to_string(), floor, share(noise.cv)]
}

impl HostStalls {
    fn sentence(&self) -> String {
        let Some(per_hour) = self.per_hour else {
            return "Unknown how often the host stops this program: nobody could look, the clock \
                    was a simulated one."
                .to_owned();
        };
        let watched = seconds(self.watched_ns as f64 / 1e9);
        let interval = format!("{} to {} an hour", short(per_hour.low), short(per_hour.high));
        match self.count {
            0 => format!(
                "The host never stopped this program for 50 ms or more in {watched}: at most {} \
                 an hour.",
                short(per_hour.high)
            ),
            n => format!(
                "The host stopped this program {} in {watched}, for {} at most: {interval}.",
                if n == 1 { "once".to_owned() } else { format!("{n} times") },
                seconds(self.longest_ns as f64 / 1e9),
            ),
        }
    }
}

/// Two digits.
fn short(rate: f64) -> String {
    match rate {
        x if x >= 9.95 => format!("{x:.0}"),
        x => format!("{x:.1}"),
    }
}

fn class(name: &ClassName) -> String {
    let block = match name.block {
        BlockClass::Page => "to 16 KiB",
        BlockClass::Large => "over 16 KiB",
    };
    let in_flight = match name.in_flight {
        InFlightClass::One => "1",
        InFlightClass::Few => "2 to 16",
        InFlightClass::Many => "over 16",
    };
    format!("{} {block}, {in_flight} in flight", name.op)
}

/// Day, month and year of a day since 1970 (Hinnant's days-to-civil, public domain).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_have_dates() {
        for (days, date) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_778, (2026, 11, 21)),
            (-1, (1969, 12, 31)),
        ] {
            assert_eq!(civil(days), date);
        }
    }
}
