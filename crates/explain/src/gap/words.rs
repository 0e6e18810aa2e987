//! Gaps in sentences.

use super::{Event, FlaggedCell, Gaps, Kind, Region, Suspect, group_of};
use crate::view::CellView;
use crate::words::{bandwidth, count, list, percent, seconds, size};

impl Gaps {
    /// What was found, on what evidence, what to do next.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        // What may be a property of the cells stays; what happened at a moment comes after it.
        for region in &self.regions {
            sentences.extend(region_words(region));
        }
        for event in &self.events {
            sentences.extend(event_words(event));
        }
        sentences.extend(self.stood_still());
        if !self.low.is_empty() {
            let cells: Vec<String> = self
                .low
                .iter()
                .map(|cell| format!("{} ({})", name_of(cell), percent(cell.ratio)))
                .collect();
            sentences.push(format!(
                "Low, but no gap by itself: {}, measured by what the neighbours promise; one visit \
                 or two cannot say more.",
                list(&cells)
            ));
        }
        if self.flagged.is_empty() {
            sentences.push(match self.judged {
                0 => "Gaps: unknown. No column of block sizes has enough cells for its neighbours \
                      to be a measure."
                    .to_owned(),
                judged => format!(
                    "No gap found: none of {} is far below what its neighbours in block size \
                     promise.",
                    count(u64::from(judged), "cell")
                ),
            });
        }
        if self.unjudged > 0 && self.judged > 0 {
            sentences.push(format!(
                "{} could not be judged: too few neighbours in block size.",
                count(u64::from(self.unjudged), "cell")
            ));
        }
        sentences
    }

    /// Cells that are slow by standing still; `None` where there are none.
    fn stood_still(&self) -> Option<String> {
        let measured = |by_neighbours: bool, by: &str| {
            let cells = self.flagged.iter().filter(|cell| {
                cell.kind == Kind::StoodStill && cell.by_neighbours == by_neighbours
            });
            let cells: Vec<String> = cells.map(cell_words).collect();
            (!cells.is_empty()).then(|| format!("{}, measured by {by}", list(&cells)))
        };
        let both = [
            measured(true, "what the neighbours promise"),
            measured(false, "what is usual in their other visits"),
        ];
        let cells: Vec<String> = both.into_iter().flatten().collect();
        let often = match self.stood_still {
            0 | 1 => String::new(),
            n => format!(
                " That was so in {n} of {} visits of this sweep: it comes back, and whether a cell \
                 met it once, more often or never is chance.",
                self.visits
            ),
        };
        (!cells.is_empty()).then(|| {
            format!(
                "Standstills, no gap: {}. In their slow visits nothing came back for a while (see \
                 the freezes), and that is what they lack: it says nothing of a block size or a \
                 number of threads.{often} How often it comes there takes longer visits or more of \
                 them to know.",
                cells.join("; ")
            )
        })
    }
}

/// What another tool measured need not have a time.
fn lost(ns: u64) -> String {
    if ns == 0 { String::new() } else { format!("; {} lost", seconds(ns as f64 / 1e9)) }
}

fn event_words(event: &Event) -> Vec<String> {
    let mut cells: Vec<(String, u64, f64)> = Vec::new();
    for visit in &event.visits {
        let name = name(&visit.group, visit.block_bytes, visit.threads, visit.in_flight);
        match cells.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, visits, least)) => (*visits, *least) = (*visits + 1, least.min(visit.ratio)),
            None => cells.push((name, 1, visit.ratio)),
        }
    }
    let cells: Vec<String> = cells.into_iter().map(event_cell_words).collect();
    let lost = lost(event.lost_ns);
    let n = event.visits.len() as u64;
    let place = match (event.first_of_run, n) {
        (true, 1) => "the first visit of the run".to_owned(),
        (true, n) => format!("the first {n} visits of the run"),
        (false, 1) => "one visit".to_owned(),
        (false, n) => format!("{n} visits one right after the other"),
    };
    let what = if n == 1 { "was" } else { "were" };
    let evidence = if event.confirmed {
        "The same cells were fast at other times, so this happened at that time and is no \
         property of the cells."
    } else {
        "Order in time speaks for something that happened then, not for a property of the cells; \
         each was visited at that time only, so this is not confirmed."
    };
    let mut sentences =
        vec![format!("Transient: {place} {what} slow: {}{lost}. {evidence}", list(&cells))];
    sentences.extend(event.suspect.as_ref().map(suspect_words));
    if !event.confirmed {
        sentences.push(
            "Next: measure again in random order with at least 3 visits a cell; wait until the \
             device is idle after the fill."
                .to_owned(),
        );
    }
    sentences
}

fn region_words(region: &Region) -> Vec<String> {
    let missing = region.cells.iter().filter(|cell| cell.missing).count() as u64;
    let cells: Vec<String> = region.cells.iter().map(cell_words).collect();
    let lost = lost(region.lost_ns);
    let head = match region.kind {
        Kind::Reproducible => "Reproducible gap",
        _ => "Gap, not confirmed",
    };
    let n = region.cells.len() as u64;
    let blank = match missing {
        0 => String::new(),
        missing => format!(" {missing} of them have no value at all."),
    };
    let mut sentences = vec![format!(
        "{head}: {} below what the neighbours promise: {}{lost}.{blank}",
        count(n, "cell"),
        list(&cells)
    )];
    sentences.push(match (region.kind, region.contiguous_in_time) {
        (Kind::Reproducible, _) => "Visits apart in time agree, so it is a property of these \
                                    cells: look for what begins at this block size."
            .to_owned(),
        (_, true) => "The cells ran one right after the other, so this may be a moment as well as \
                      a property of the cells: measure again in random order with at least 3 \
                      visits a cell."
            .to_owned(),
        (_, false) => "Each cell was visited at one time only: measure again in random order with \
                       at least 3 visits a cell before blaming the block size."
            .to_owned(),
    });
    sentences.extend(region.suspect.as_ref().map(suspect_words));
    sentences
}

fn suspect_words(suspect: &Suspect) -> String {
    match *suspect {
        Suspect::FlushAfterFill { fill_bytes, fill_rate, drain_rate, write_rate, agrees } => {
            let head = format!(
                "Candidate: the flush after the fill. {} were taken at {}",
                size(fill_bytes),
                bandwidth(fill_rate)
            );
            let drain = format!(
                "if the rest was written while these visits waited, it went at {}",
                bandwidth(drain_rate)
            );
            match (write_rate, agrees) {
                (None, _) => {
                    format!("{head}; {drain}. No large writes were measured to hold this against.")
                }
                (Some(rate), true) => format!(
                    "{head}, faster than the {} of large writes later, so into a cache; {drain}, \
                     which fits.",
                    bandwidth(rate)
                ),
                (Some(rate), false) => format!(
                    "{head}, faster than the {} of large writes later, so into a cache; but \
                     {drain}, which does not fit.",
                    bandwidth(rate)
                ),
            }
        }
        Suspect::FullWriteCache { written_bytes, cache_bytes, declared } => format!(
            "Candidate: a write cache that was full. {} had been written by this phase when it \
             began; {} {}.",
            size(written_bytes),
            if declared {
                "the declared cache is"
            } else {
                "the file, of which a cache may hold all, is"
            },
            size(cache_bytes)
        ),
    }
}

/// A cell of an event: its name, how many of its visits, and the least that one made of what is usual.
fn event_cell_words((name, visits, least): (String, u64, f64)) -> String {
    let least = percent(least);
    match visits {
        1 => format!("{name} ({least} of what is usual there)"),
        n => format!("{name} ({n} visits, down to {least} of what is usual there)"),
    }
}

fn cell_words(cell: &FlaggedCell) -> String {
    if cell.missing {
        return format!("{} (no value)", name_of(cell));
    }
    format!("{} ({})", name_of(cell), percent(cell.ratio))
}

/// What sentences about gaps call a cell: `write 512 KiB 10 threads`. `None` for one that they never
/// name.
pub fn spoken(cell: &CellView<'_>) -> Option<String> {
    let load = cell.load()?;
    Some(name(&group_of(cell)?, load.block_bytes, load.threads, load.in_flight))
}

fn name_of(cell: &FlaggedCell) -> String {
    name(&cell.group, cell.block_bytes, cell.threads, cell.in_flight)
}

fn name(group: &str, block_bytes: u64, threads: u32, in_flight: u64) -> String {
    let load = count(u64::from(threads), "thread");
    let depth = in_flight.checked_div(u64::from(threads)).unwrap_or(0);
    let load = if depth > 1 { format!("{load} of depth {depth}") } else { load };
    format!("{group} {} {load}", size(block_bytes))
}
