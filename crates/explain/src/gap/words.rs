//! Gaps as findings.

use finding::{Code, Finding, Number, Subject, Value};

use super::{Event, FlaggedCell, Gaps, Kind, Region};
use crate::words::{count, size};

impl Gaps {
    /// What was found, on what evidence, what to do next.
    pub fn findings(&self) -> Vec<Finding> {
        // What may be a property of the cells stays; what happened at a moment comes after it.
        let regions = self.regions.iter().map(Region::finding);
        let mut found: Vec<Finding> =
            regions.chain(self.events.iter().map(Event::finding)).collect();
        found.extend([true, false].into_iter().filter_map(|by| self.stood_still(by)));
        if self.flagged.is_empty() {
            found.push(match self.judged {
                0 => Finding::new(Code::GapsUnknown),
                judged => Finding::new(Code::GapsNone).with("judged", judged),
            });
        }
        if self.unjudged > 0 && self.judged > 0 {
            found.push(Finding::new(Code::GapsUnjudged).with("unjudged", self.unjudged));
        }
        found
    }

    /// Cells that are slow by standing still; `None` where there are none.
    fn stood_still(&self, by_neighbours: bool) -> Option<Finding> {
        let is_it = |cell: &&FlaggedCell| {
            cell.kind == Kind::StoodStill && cell.by_neighbours == by_neighbours
        };
        let cells: Vec<Subject> =
            self.flagged.iter().filter(is_it).map(FlaggedCell::subject).collect();
        let often = (self.stood_still > 1).then_some(self.stood_still);
        (!cells.is_empty()).then(|| {
            Finding::new(Code::GapStall)
                .on_all(cells, 0)
                .with("by_neighbours", by_neighbours)
                .with_some("often", often)
                .with("visits", self.visits)
        })
    }
}

/// What another tool measured need not have a time.
fn lost(ns: u64) -> Option<Number> {
    (ns > 0).then_some(Number::ns(ns))
}

impl Event {
    fn finding(&self) -> Finding {
        let mut cells: Vec<(Subject, u64, f64)> = Vec::new();
        for visit in &self.visits {
            let name = name(&visit.group, visit.block_bytes, visit.threads, visit.in_flight);
            match cells.iter_mut().find(|(known, ..)| known.name == name) {
                Some((_, visits, least)) => {
                    (*visits, *least) = (*visits + 1, least.min(visit.ratio));
                }
                None => cells.push((Subject::new(visit.cell, None, name), 1, visit.ratio)),
            }
        }
        let slow = cells.iter().map(|(cell, visits, least)| {
            Value::record([
                ("name", Value::name(&cell.name)),
                ("n", (*visits).into()),
                ("several", (*visits > 1).into()),
                ("least", Number::share(*least).into()),
            ])
        });
        let slow: Vec<Value> = slow.collect();
        let fill_rate = |fill: super::Fill| fill.bytes as f64 / (fill.elapsed_ns as f64 / 1e9);
        Finding::new(Code::GapTransient)
            .on_all(cells.into_iter().map(|(cell, ..)| cell), 0)
            .with("first", self.first_of_run)
            .with("visits", self.visits.len())
            .with("one", self.visits.len() == 1)
            .with("slow", slow)
            .with("confirmed", self.confirmed)
            .with_some("fill", self.fill.map(|fill| Number::bytes(fill.bytes)))
            .with_some("fill_rate", self.fill.map(|fill| Number::bandwidth(fill_rate(fill))))
            .with_some("lost", lost(self.lost_ns))
    }
}

impl Region {
    fn finding(&self) -> Finding {
        let code = match self.kind {
            Kind::Reproducible => Code::GapReproducible,
            _ => Code::GapUnconfirmed,
        };
        Finding::new(code)
            .on_all(self.cells.iter().map(FlaggedCell::subject), 0)
            .with("n", self.cells.len())
            .with("missing", self.cells.iter().filter(|cell| cell.missing).count())
            .with("contiguous", self.contiguous_in_time)
            .with_some("written", self.full_cache.map(|full| Number::bytes(full.written_bytes)))
            .with_some("cache", self.full_cache.map(|full| Number::bytes(full.cache_bytes)))
            .with_some("lost", lost(self.lost_ns))
    }
}

impl FlaggedCell {
    /// It, with what it makes of what is promised.
    fn subject(&self) -> Subject {
        let name = name(&self.group, self.block_bytes, self.threads, self.in_flight);
        let cell = Subject::new(self.cell, None, name);
        match self.missing {
            true => cell.with("no value"),
            false => cell.with(Number::share(self.ratio)),
        }
    }
}

/// What people call a cell of a sweep: `write 512 KiB 10 threads`.
fn name(group: &str, block_bytes: u64, threads: u32, in_flight: u64) -> String {
    let load = count(u64::from(threads), "thread");
    let depth = in_flight.checked_div(u64::from(threads)).unwrap_or(0);
    let load = if depth > 1 { format!("{load} of depth {depth}") } else { load };
    format!("{group} {} {load}", size(block_bytes))
}
