//! What is said to people.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::{Caches, CellCaches, Finding, Reread, Sweep, Verdict, Witness, WriteCache};
use crate::words::{bandwidth, count, list, percent, seconds, size};

/// Cells named in a sentence before the rest is counted.
const NAMED: usize = 3;
/// Bounds this near to each other are told as one.
const ONE_PLACE: f64 = 1.1;

impl Caches {
    /// Cells of one verdict in one sentence, worst first; then what the run as a whole shows;
    /// then what to do.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        let kinds: BTreeSet<_> = self.cells.iter().map(kind).collect();
        for wanted in kinds {
            let alike: Vec<&CellCaches> =
                self.cells.iter().filter(|cell| kind(cell) == wanted).collect();
            let Some(worst) = alike.iter().max_by(|a, b| extent(a).total_cmp(&extent(b))) else {
                continue;
            };
            let sentence = worst.verdict.sentence();
            let is_one = alike.iter().all(|cell| cell.verdict.sentence() == sentence);
            let figures =
                if is_one { String::new() } else { format!(" (the figures: {})", worst.name) };
            said.push(format!("{}{figures}: {sentence}", cells(&alike, self.cells.len())));
        }
        said.extend(self.besides());
        said.extend(self.rereads.iter().flat_map(Reread::sentences));
        said.extend(self.sweeps.iter().flat_map(Sweep::sentences));
        said.extend(WriteCache::all(&self.write_caches));
        said.extend(
            self.blind.iter().map(|why| format!("How large a cache is, is unknown: {why}.")),
        );
        said.extend(self.what_next());
        said
    }

    /// Findings that are not the worst of any cell, and must be known all the same.
    fn besides(&self) -> Vec<String> {
        let others = |kind: fn(&Verdict) -> bool| {
            let all = self.cells.iter().filter(move |c| !kind(&c.verdict));
            all.filter_map(move |c| c.findings.iter().find(|f| kind(&f.verdict)).map(|f| (c, f)))
        };
        let mut said = Vec::new();
        let kinds: [fn(&Verdict) -> bool; 3] = [
            |v| matches!(v, Verdict::TooSmall { .. }),
            |v| matches!(v, Verdict::Foreign { .. }),
            |v| matches!(v, Verdict::LargeEnough { .. }),
        ];
        for kind in kinds {
            let found: Vec<(&CellCaches, &Finding)> = others(kind).collect();
            if let Some((_, first)) = found.first() {
                let alike: Vec<&CellCaches> = found.iter().map(|(cell, _)| *cell).collect();
                said.push(format!(
                    "Besides, {}: {}",
                    lower(&cells(&alike, self.cells.len())),
                    first.verdict.sentence()
                ));
            }
        }
        said
    }

    fn what_next(&self) -> Vec<String> {
        let any = |kind: fn(&Verdict) -> bool| self.cells.iter().any(|c| kind(&c.verdict));
        let mut said = Vec::new();
        if any(Verdict::is_cached) || any(|v| matches!(v, Verdict::TooSmall { .. })) {
            said.push(
                "Next: give the files eight times the size of the caches (--size), or say that it \
                 is the cache that you want to know."
                    .to_owned(),
            );
        }
        let looked_below =
            self.declared_bytes.is_some() || !self.sweeps.is_empty() || !self.rereads.is_empty();
        if any(|v| matches!(v, Verdict::Device { .. })) && !looked_below {
            said.push(
                "These counters do not see caches inside controllers and drives: give their size \
                 (--cache-size), or let `plimsoll run working-set` look for them."
                    .to_owned(),
            );
        }
        if any(|v| matches!(v, Verdict::Unknown { .. })) {
            said.push(
                "Unknown does not mean uncached: measure longer where too little was read or written, or \
                 on a block device whose counters can be read, or with files larger than all memory."
                    .to_owned(),
            );
        }
        said
    }
}

/// How bad, and of which bytes: what is said of reads is said of no cell that only writes.
fn kind(cell: &CellCaches) -> (Reverse<u8>, Option<&str>) {
    (Reverse(cell.verdict.severity()), cell.verdict.op())
}

/// `All 84 cells`, `2 of 84 cells (read 4KiB 1, read 4KiB 10)`.
fn cells(alike: &[&CellCaches], all: usize) -> String {
    if alike.len() == all && all == 2 {
        return "Both cells".to_owned();
    }
    if alike.len() == all && all > 1 {
        return format!("All {all} cells");
    }
    let mut names: Vec<String> = alike.iter().take(NAMED).map(|c| c.name.clone()).collect();
    if alike.len() > NAMED {
        names.push(format!("{} more", alike.len() - NAMED));
    }
    if all == 1 {
        return format!("Cell {}", list(&names));
    }
    format!("{} of {} ({})", alike.len(), count(all as u64, "cell"), list(&names))
}

fn lower(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// How far a verdict goes, to name the worst of several alike.
fn extent(cell: &CellCaches) -> f64 {
    match &cell.verdict {
        Verdict::Device { ratio, .. } => -ratio,
        Verdict::AtLink { share }
        | Verdict::AboveLink { share }
        | Verdict::NotCold { share }
        | Verdict::WriteLag { share, .. }
        | Verdict::PartlyCached { share, .. }
        | Verdict::Cached { share, .. } => *share,
        Verdict::TooSmall { hit_rate, .. } | Verdict::LargeEnough { hit_rate, .. } => *hit_rate,
        Verdict::Foreign { device_bytes, asked_bytes, .. } => {
            *device_bytes as f64 / (*asked_bytes).max(1) as f64
        }
        Verdict::Unknown { .. } | Verdict::Buffered { .. } | Verdict::NoDevice { .. } => 0.0,
    }
}

impl Verdict {
    /// What it is and on what evidence.
    pub fn sentence(&self) -> String {
        match self {
            Self::Device { op, ratio } => format!(
                "from the device, as far as its counters tell: it moved {} of the bytes {}.",
                percent(*ratio),
                done(op)
            ),
            Self::LargeEnough { working_set_bytes, cache_bytes, hit_rate } => format!(
                "large enough for the known caches, not free of them: up to {} of random requests over {} \
                 can still hit {} of cache.",
                percent(*hit_rate),
                size(*working_set_bytes),
                size(*cache_bytes)
            ),
            Self::Foreign { op, device_bytes, asked_bytes } => {
                foreign(op, *device_bytes, *asked_bytes)
            }
            Self::AtLink { share } => format!(
                "the link, not the device: the rate is {} of what the link can carry, so this says \
                 nothing about what lies behind it.",
                percent(*share)
            ),
            Self::Unknown { why } => {
                format!("unknown whether a cache answered: {}.", why.trim_end_matches('.'))
            }
            Self::TooSmall { working_set_bytes, cache_bytes, hit_rate } => format!(
                "too small to tell device from cache: {} are used, caches hold {}, so up to {} of \
                 random requests can be hits; wanted is four times the caches.",
                size(*working_set_bytes),
                size(*cache_bytes),
                percent(*hit_rate)
            ),
            Self::NotCold { share } => format!(
                "not cold: {} of the files were in the page cache before the visit.",
                percent(*share)
            ),
            Self::Buffered { why } => format!(
                "direct I/O was asked for and the page cache was used: {}.",
                why.trim_end_matches('.')
            ),
            Self::WriteLag { missing_bytes, share } => format!(
                "not yet on the device: {} ({} of what was written) were still in memory when the \
                 visits ended.",
                size(*missing_bytes),
                percent(*share)
            ),
            Self::PartlyCached { op, share, place } => format!(
                "partly cached: at least {} of the bytes {} were answered {place}.",
                percent(*share),
                done(op)
            ),
            Self::Cached { share, place, .. } if place.starts_with("the ") => {
                format!("cached: {} of the files were in {place} before.", percent(*share))
            }
            Self::Cached { op, share, place } => format!(
                "cached: {} of the bytes {} were answered {place}; the device was hardly asked for \
                 them.",
                percent(*share),
                done(op)
            ),
            Self::AboveLink { share } => format!(
                "cached: the rate is {} of what the link to the device can carry, so it was \
                 answered above the link.",
                percent(*share)
            ),
            Self::NoDevice { what } => {
                format!("no device: {what}. Nothing here is about a disk.")
            }
        }
    }
}

/// What was done with the bytes that a verdict is about.
fn done(op: &str) -> &'static str {
    if op == "write" { "written" } else { "read" }
}

fn foreign(op: &str, device: u64, asked: u64) -> String {
    let (verb, why) = match op {
        "read" => {
            ("read", "read-ahead, or others on the same device, whose reads could hide a cache")
        }
        _ => (
            "wrote",
            "earlier data written back, journals, parity or mirrors, or others on the same device",
        ),
    };
    if asked == 0 {
        return format!("the device {verb} {} that nobody asked for here: {why}.", size(device));
    }
    format!(
        "the device {verb} {:.2} times what was asked for ({} for {}): {why}.",
        device as f64 / asked as f64,
        size(device),
        size(asked)
    )
}

impl CellCaches {
    /// The verdict on this cell, then the other findings.
    pub fn sentences(&self) -> Vec<String> {
        let first = format!("Cell {}: {}", self.name, self.verdict.sentence());
        let others = self
            .findings
            .iter()
            .skip(1)
            .map(|f| format!("{}: {}", f.witness.name(), f.verdict.sentence()));
        std::iter::once(first).chain(others).collect()
    }
}

impl Witness {
    /// As a sentence begins.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ledger => "By the device's counters",
            Self::Residency => "By the pages in memory",
            Self::Direct => "By what the kernel granted",
            Self::Size => "By size",
            Self::Link => "By the link",
        }
    }
}

fn whose(buffered: bool) -> &'static str {
    if buffered {
        "the page cache was in use, so it may be this machine's memory"
    } else {
        "in the controller or the drive"
    }
}

impl Reread {
    /// What the second pass says.
    pub fn sentences(&self) -> Vec<String> {
        let Self { names: (first, second), bytes, .. } = self;
        let (Some(ratio), Some(low), Some(high)) = (self.ratio, self.low, self.high) else {
            return vec![format!(
                "Unknown whether reading {} again is faster: a pass was too short.",
                size(*bytes)
            )];
        };
        let numbers = format!(
            "reading {} again took {ratio:.2} times less per request [{low:.2}, {high:.2}] ({first}, then {second})",
            size(*bytes)
        );
        vec![if self.found {
            format!("A cache of {} or more: {numbers}; {}.", size(*bytes), whose(self.buffered))
        } else {
            format!(
                "No cache seen by reading again: {numbers}. One that held the region before the first \
                 pass cannot be seen like this."
            )
        }]
    }
}

impl Sweep {
    /// What the latencies over the sizes say.
    pub fn sentences(&self) -> Vec<String> {
        let range = match (self.points.first(), self.points.last()) {
            (Some((small, _)), Some((large, _))) => format!("{} to {}", size(*small), size(*large)),
            _ => "none".to_owned(),
        };
        let Some(fit) = &self.fit else {
            return vec![format!(
                "Unknown whether a cache shows over working sets of {range}: too few sizes."
            )];
        };
        if !fit.found && fit.f > fit.f_min {
            return vec![format!(
                "No cache visible over working sets of {range}: requests take {} over the smallest and {} \
                 over the largest, and so little may be anything (F = {:.0}).",
                seconds(fit.fastest_ns / 1e9),
                seconds(fit.slowest_ns / 1e9),
                fit.f
            )];
        }
        if !fit.found {
            return vec![format!(
                "No cache visible over working sets of {range} (F = {:.1}, wanted more than {:.1}): none in \
                 between, or its hits are less than some 15 % faster.",
                fit.f, fit.f_min
            )];
        }
        let bounds = [fit.cache_bytes_low, fit.cache_bytes_high].map(|bytes| size(bytes as u64));
        let miss = match fit.miss_ns {
            Some(ns) => format!("a miss takes {}", seconds(ns / 1e9)),
            None => format!(
                "a miss takes {} or more, and too few sets are larger than the cache to tell how \
                 much more",
                seconds(fit.slowest_ns / 1e9)
            ),
        };
        let seen = format!("working sets of {range}, F = {:.0}", fit.f);
        let whose = whose(self.buffered);
        let Some(hit) = fit.hit_ns else {
            // What it saves may be so little that any size would do.
            let least = match fit.cache_bytes_low >= 512.0 {
                true => format!(", and of {} at least, or it could not save so much", bounds[0]),
                false => ", how small nobody can tell".to_owned(),
            };
            return vec![
                format!(
                    "A cache of at most {}{least}: none of the sets was seen to fit into it, nor what a \
                     hit takes (a hit takes {} at most); {miss} ({seen}); {whose}.",
                    bounds[1],
                    seconds(fit.fastest_ns / 1e9)
                ),
                "Next: measure smaller sets as well, down to a quarter of that.".to_owned(),
            ];
        };
        vec![format!(
            "A cache of {} [{}, {}]: a hit takes {}, {miss} ({seen}); {whose}.",
            size(fit.cache_bytes as u64),
            bounds[0],
            bounds[1],
            seconds(hit / 1e9),
        )]
    }
}

impl WriteCache {
    /// One sentence, about the one seen most clearly.
    fn all(found: &[Self]) -> Vec<String> {
        let steep = |cache: &&Self| cache.before / cache.after.max(1.0);
        let Some(clear) = found.iter().max_by(|a, b| steep(a).total_cmp(&steep(b))) else {
            return Vec::new();
        };
        vec![clear.sentence()]
    }

    /// What the drop says.
    pub fn sentence(&self) -> String {
        let [low, high] = [self.at_bytes_low, self.at_bytes_high];
        let at = if high as f64 > ONE_PLACE * low as f64 {
            format!("between {} and {}", size(low), size(high))
        } else {
            size(self.at_bytes)
        };
        let (about, whose) = (size(self.size_bytes), whose(self.buffered));
        let visits = |n: u32| crate::words::count(u64::from(n), "later visit");
        let is = match (self.refills, self.stayed) {
            (true, _) => {
                format!(
                    "a write cache of about {about}, {whose}; it was there again after a pause, so it refills"
                )
            }
            (false, 0) if self.slow_after > 0 => format!(
                "clean space or I/O credits used up, or wear, or a cache of about {about} ({whose}) that had no time to drain: \
                 {} to the cell {} as slow; a visit after a pause of some minutes would tell which",
                visits(self.slow_after),
                if self.slow_after == 1 { "was" } else { "were" }
            ),
            (false, 0) => format!(
                "a write cache of about {about}, {whose}, or clean space or I/O credits used up, or wear: seen once; a second \
                 visit after a pause would show whether it refills"
            ),
            (false, n) => format!(
                "clean space or I/O credits used up, or wear, rather than a cache: it was not there again in {} that wrote \
                 as much",
                visits(n)
            ),
        };
        let before = bandwidth(self.before);
        let or_more = if self.before_is_least { " or more" } else { "" };
        // What is full goes on, slowly; seldom it does not.
        let (fell, is) = match self.after > 0.0 {
            true => (format!("fell from {before}{or_more} to {}", bandwidth(self.after)), is),
            false if self.refills => (format!("stopped after {before}{or_more}"), is),
            false => (format!("stopped after {before}{or_more}"), format!("a stall, or {is}")),
        };
        format!(
            "Writes {fell} once {at} were written ({}, visit {}): {is}.",
            self.name,
            u64::from(self.repeat) + 1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::sweep::SweepFit;

    #[test]
    fn a_least_size_of_nothing_is_none() {
        let said = |cache_bytes_low: f64| {
            let fit = SweepFit {
                found: true,
                cache_bytes: 1e6,
                cache_bytes_low,
                cache_bytes_high: 2e6,
                hit_ns: None,
                miss_ns: Some(2e5),
                fastest_ns: 1e5,
                slowest_ns: 2e5,
                f: 50.0,
                f_min: 10.0,
                at_most: true,
            };
            let sweep = Sweep { cells: vec![], points: vec![], fit: Some(fit), buffered: false };
            sweep.sentences().remove(0)
        };
        assert!(
            said(0.0).contains(", how small nobody can tell: none of the sets"),
            "{}",
            said(0.0)
        );
        assert!(said(1e5).contains(" at least, or it could"), "{}", said(1e5));
    }
}
