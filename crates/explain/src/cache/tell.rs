//! What is told of caches, as findings.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use finding::{Code, Finding, Number, Subject, Value};

use super::{CacheFinding, Caches, CellCaches, Reread, Sweep, Verdict, WriteCache};

/// Bounds this near to each other are told as one.
const ONE_PLACE: f64 = 1.1;
/// Bounds below this are nothing.
const LEAST_BYTES: f64 = 512.0;
/// Ratios that differ by less are told as one.
const SAME: f64 = 0.005;

impl Caches {
    /// One finding for the cells of one verdict, worst first; then what the run as a whole shows.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let kinds: BTreeSet<_> = self.cells.iter().map(kind).collect();
        for wanted in kinds {
            let alike: Vec<&CellCaches> =
                self.cells.iter().filter(|cell| kind(cell) == wanted).collect();
            let worst =
                alike.iter().max_by(|a, b| a.verdict.extent().total_cmp(&b.verdict.extent()));
            let Some(worst) = worst else { continue };
            let is_one = alike.iter().all(|cell| cell.verdict.is_as(&worst.verdict));
            let example = (!is_one).then(|| Value::name(&worst.name));
            let verdict = worst.verdict.finding().with_some("worst", example);
            found.push(self.on(verdict, &alike));
        }
        found.extend(self.besides());
        found.extend(self.rereads.iter().map(Reread::finding));
        let of_sweep = |sweep: &Sweep| {
            let is_in = |cell: &&CellCaches| sweep.cells.contains(&cell.cell);
            sweep.finding().on_all(self.cells.iter().filter(is_in).map(CellCaches::subject), 0)
        };
        found.extend(self.sweeps.iter().map(of_sweep));
        found.extend(self.clearest_write_cache().into_iter().flat_map(WriteCache::findings));
        let blind = self.blind.iter();
        found.extend(blind.map(|why| because(Finding::new(Code::CacheSizeUnknown), why)));
        found.extend(self.unseen_below());
        found
    }

    /// About these of all cells.
    fn on(&self, verdict: Finding, cells: &[&CellCaches]) -> Finding {
        verdict.on_all(cells.iter().map(|cell| cell.subject()), self.cells.len())
    }

    /// Findings that are not the worst of any cell, and must be known all the same.
    fn besides(&self) -> Vec<Finding> {
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
            let found: Vec<(&CellCaches, &CacheFinding)> = others(kind).collect();
            if let Some((_, first)) = found.first() {
                let alike: Vec<&CellCaches> = found.iter().map(|(cell, _)| *cell).collect();
                said.push(self.on(first.verdict.finding().with("besides", true), &alike));
            }
        }
        said
    }

    /// The drop that is seen most clearly, of those that are told nowhere else.
    fn clearest_write_cache(&self) -> Option<&WriteCache> {
        let steep = |cache: &WriteCache| cache.before / cache.after.max(1.0);
        let own = self.write_caches.iter().filter(|cache| !cache.is_cliff);
        own.max_by(|a, b| steep(a).total_cmp(&steep(b)))
    }

    /// That caches further down were not looked for, where the devices' counters are all there is.
    fn unseen_below(&self) -> Option<Finding> {
        let looked_below =
            self.declared_bytes.is_some() || !self.sweeps.is_empty() || !self.rereads.is_empty();
        let is_device = |cell: &&CellCaches| matches!(cell.verdict, Verdict::Device { .. });
        let cells: Vec<&CellCaches> = self.cells.iter().filter(is_device).collect();
        let is_unseen = !looked_below && !cells.is_empty();
        is_unseen.then(|| self.on(Finding::new(Code::CacheBelowUnseen), &cells))
    }
}

/// How bad, and of which bytes: what is said of reads is said of no cell that only writes.
fn kind(cell: &CellCaches) -> (Reverse<u8>, Option<&str>) {
    (Reverse(cell.verdict.severity()), cell.verdict.op())
}

impl CellCaches {
    fn subject(&self) -> Subject {
        Subject::new(self.cell, None, &self.name)
    }

    /// The verdict on this cell, then what the other witnesses say.
    pub fn findings(&self) -> Vec<Finding> {
        let others = self.findings.iter().skip(1).map(|found| &found.verdict);
        let all = std::iter::once(&self.verdict).chain(others);
        all.map(|verdict| verdict.finding().on_all([self.subject()], 1)).collect()
    }
}

impl Verdict {
    /// How far it goes, to name the worst of several alike.
    fn extent(&self) -> f64 {
        match self {
            Self::Device { ratio, .. } => -ratio,
            Self::AtLink { share }
            | Self::AboveLink { share }
            | Self::NotCold { share }
            | Self::WriteLag { share, .. }
            | Self::PartlyCached { share, .. }
            | Self::Cached { share, .. } => *share,
            Self::TooSmall { hit_rate, .. } | Self::LargeEnough { hit_rate, .. } => *hit_rate,
            Self::Foreign { device_bytes, asked_bytes, .. } => {
                *device_bytes as f64 / (*asked_bytes).max(1) as f64
            }
            Self::Unknown { .. }
            | Self::Buffered { .. }
            | Self::InPageCache
            | Self::NoDevice { .. } => 0.0,
        }
    }

    /// Whether the figures of one hold for the other of its kind.
    fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Device { ratio, .. }, Self::Device { ratio: other, .. }) => {
                (ratio - other).abs() < SAME
            }
            _ => self == other,
        }
    }

    /// What it is and on what evidence, about no cell yet.
    pub fn finding(&self) -> Finding {
        let of = Finding::new(self.code()).with("writes", self.op() == Some("write"));
        let sizes = |working_set: u64, caches: u64, hits: f64| {
            [
                ("working_set", Number::bytes(working_set)),
                ("caches", Number::bytes(caches)),
                ("hits", Number::share(hits)),
            ]
        };
        match self {
            Self::Device { ratio, .. } => of.with("ratio", Number::share(*ratio)),
            Self::LargeEnough { working_set_bytes, cache_bytes, hit_rate }
            | Self::TooSmall { working_set_bytes, cache_bytes, hit_rate } => {
                let sizes = sizes(*working_set_bytes, *cache_bytes, *hit_rate);
                sizes.into_iter().fold(of, |of, (name, value)| of.with(name, value))
            }
            Self::Foreign { device_bytes, asked_bytes, .. } => {
                let asked = Some(*asked_bytes).filter(|bytes| *bytes > 0);
                let times = asked.map(|asked| Number::times(*device_bytes as f64 / asked as f64));
                of.with("device", Number::bytes(*device_bytes))
                    .with_some("asked", asked.map(Number::bytes))
                    .with_some("times", times)
            }
            Self::AtLink { share } | Self::AboveLink { share } | Self::NotCold { share } => {
                of.with("share", Number::share(*share))
            }
            Self::Unknown { why } | Self::Buffered { why } => because(of, why),
            Self::WriteLag { missing_bytes, share } => of
                .with("missing", Number::bytes(*missing_bytes))
                .with("share", Number::share(*share)),
            Self::PartlyCached { share, devices, between, .. }
            | Self::Cached { share, devices, between, .. } => of
                .with("share", Number::share(*share))
                .with("devices", Value::names(devices.clone()))
                .with("between", *between),
            Self::InPageCache => of,
            Self::NoDevice { what } => of.with("what", Value::words(what)),
        }
    }

    /// The same as a mark says it, after a name.
    pub fn evidence(&self) -> String {
        let text = self.finding().text();
        let mut letters = text.chars();
        let first = letters.next().map(|first| first.to_lowercase().to_string());
        first.unwrap_or_default() + letters.as_str()
    }

    fn code(&self) -> Code {
        match self {
            Self::Device { .. } => Code::FromDevice,
            Self::LargeEnough { .. } => Code::LargeEnough,
            Self::Foreign { .. } => Code::ForeignTraffic,
            Self::AtLink { .. } => Code::AtLink,
            Self::Unknown { .. } => Code::CacheUnknown,
            Self::TooSmall { .. } => Code::TooSmall,
            Self::NotCold { .. } => Code::NotCold,
            Self::Buffered { .. } => Code::BufferedFallback,
            Self::WriteLag { .. } => Code::WriteLag,
            Self::PartlyCached { .. } => Code::PartlyCached,
            Self::Cached { .. } => Code::Cached,
            Self::InPageCache => Code::InPageCache,
            Self::AboveLink { .. } => Code::AboveLink,
            Self::NoDevice { .. } => Code::NoDevice,
        }
    }
}

/// With the reason as somebody else gives it, who may end it by a full stop.
fn because(found: Finding, why: &str) -> Finding {
    found.with("why", Value::words(why.trim_end_matches('.')))
}

impl Reread {
    /// What the second pass says.
    pub fn finding(&self) -> Finding {
        let (first, second) = &self.names;
        let ratio = self.ratio.zip(self.low).zip(self.high);
        let code = match (ratio, self.found) {
            (None, _) => Code::RereadUnknown,
            (Some(_), true) => Code::RereadCache,
            (Some(_), false) => Code::RereadNone,
        };
        let times = ratio.map(|((ratio, low), high)| Number::times(ratio).within(low, high));
        Finding::new(code)
            .on(Subject::new(self.first, None, first))
            .on(Subject::new(self.second, None, second))
            .with("bytes", Number::bytes(self.bytes))
            .with_some("ratio", times)
            .with("buffered", self.buffered)
    }
}

impl Sweep {
    /// What the latencies over the sizes say, about no cells yet.
    pub fn finding(&self) -> Finding {
        let of = |code| {
            let size = |point: Option<&(u64, f64)>| point.map(|(bytes, _)| Number::bytes(*bytes));
            Finding::new(code)
                .with_some("smallest", size(self.points.first()))
                .with_some("largest", size(self.points.last()))
                .with("buffered", self.buffered)
        };
        let Some(fit) = &self.fit else { return of(Code::SweepUnknown) };
        let code = match (fit.found, fit.hit_ns) {
            (false, _) if fit.f > fit.f_min => Code::SweepSlight,
            (false, _) => Code::SweepNone,
            (true, Some(_)) => Code::SweepCache,
            (true, None) => Code::SweepCacheSmall,
        };
        let ns = |ns: f64| Number::seconds(ns / 1e9);
        let bytes = |bytes: f64| Number::bytes(bytes as u64);
        let of = of(code)
            .with("fastest", ns(fit.fastest_ns))
            .with("slowest", ns(fit.slowest_ns))
            .with("f", Number::plain(fit.f))
            .with("f_min", Number::plain(fit.f_min));
        let (low, high) = (fit.cache_bytes_low, fit.cache_bytes_high);
        match code {
            Code::SweepCache => of
                .with("size", bytes(fit.cache_bytes).within(low, high))
                .with_some("hit", fit.hit_ns.map(ns))
                .with_some("miss", fit.miss_ns.map(ns)),
            // What it saves may be so little that any size would do.
            Code::SweepCacheSmall => of
                .with("most", bytes(high))
                .with_some("least", (low >= LEAST_BYTES).then(|| bytes(low)))
                .with_some("miss", fit.miss_ns.map(ns)),
            _ => of,
        }
    }
}

impl WriteCache {
    /// What the drop was, and what it may come of.
    pub fn findings(&self) -> Vec<Finding> {
        let cell = || Subject::new(self.cell, None, &self.name);
        let size = Number::bytes;
        let is_apart = self.at_bytes_high as f64 > ONE_PLACE * self.at_bytes_low as f64;
        let has_stopped = self.after <= 0.0;
        // What is full goes on, slowly; seldom it does not.
        let after = (!has_stopped).then(|| Number::bandwidth(self.after));
        let drop = Finding::new(Code::WritesSlowed)
            .on(cell())
            .with("visit", u64::from(self.repeat) + 1)
            .with("before", Number::bandwidth(self.before))
            .with("before_is_least", self.before_is_least)
            .with_some("after", after)
            .with("at", size(self.at_bytes))
            .with_some("at_low", is_apart.then(|| size(self.at_bytes_low)))
            .with_some("at_high", is_apart.then(|| size(self.at_bytes_high)));
        let (code, visits) = match (self.refills, self.stayed, self.slow_after) {
            (true, ..) => (Code::WriteCache, 0),
            (false, 0, 0) => (Code::WriteCacheOrWear, 0),
            (false, 0, slow) => (Code::WriteCacheUndrained, slow),
            (false, stayed, _) => (Code::WritesSlowSince, stayed),
        };
        let cause = Finding::new(code)
            .on(cell())
            .with("size", size(self.size_bytes))
            .with("buffered", self.buffered)
            .with("stopped", has_stopped)
            .with("visits", visits)
            .with("one", visits == 1);
        vec![drop, cause]
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
            sweep.finding().text()
        };
        assert!(said(0.0).contains(", with no lower bound: none of the sets"), "{}", said(0.0));
        assert!(said(1e5).contains(" and at least 97.7 KiB: none"), "{}", said(1e5));
    }
}
