//! A list of suites, ready to be looked at or played: every part found and worked in.

use std::fmt::Write;

use serde::Serialize;
use suite::model::Suite;
use suite::{CheckContext, Parts, SuiteSource};
use units::{Bytes, Nanos};

use crate::commands::suites::{at_least, counted, duration};
use crate::failure::Failure;
use crate::options::SuiteOptions;
use crate::order;

/// A list with every part's suite.
#[derive(Debug)]
pub struct List {
    parts: Parts,
    quick: bool,
    /// In the order of the parts, with what the part and the user set.
    sources: Vec<SuiteSource>,
}

/// One run of a list: a part, or one repeat of it.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// From 1, over all parts.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// Which part, from 0.
    pub part: usize,
    /// From 1.
    pub repeat: u32,
    pub repeats: u32,
    pub pause: Nanos,
    pub source: &'a SuiteSource,
}

impl Item<'_> {
    /// `part 3 of 8: bm-flash, 2 of 3`.
    pub fn title(&self) -> String {
        let repeat = match self.repeats {
            1 => String::new(),
            repeats => format!(", {} of {repeats}", self.repeat),
        };
        let name = report::plain(self.source.name());
        format!("part {} of {}: {name}{repeat}", self.number, self.of)
    }
}

/// What `--set` says is for every part, and a name of one part's phase means nothing in others.
fn of_part(failure: Failure, suite: &str, options: &SuiteOptions) -> Failure {
    let is_unknown = |assignment: &&String| {
        let name = assignment.split_once('.').map_or("", |(name, _)| name);
        !name.is_empty() && failure.says(&format!("unknown key `{name}`"))
    };
    let hint = options.set.iter().find(is_unknown).map(|assignment| {
        format!(
            "`--set` is for every part of a list: what is for one goes into its `set`, there \
             `{assignment}`"
        )
    });
    let failure = failure.of(format!("part {suite} cannot be played"));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl List {
    /// Finds the parts' suites and works everything in.
    ///
    /// * `found`: the list, and where its paths begin.
    pub fn new(found: (Parts, order::Base), options: &SuiteOptions) -> Result<Self, Failure> {
        let (parts, base) = found;
        let mut sources = Vec::with_capacity(parts.parts().len());
        for part in parts.parts() {
            let mut source = order::part(&parts, part, &base)?;
            parts.set(part, &mut source)?;
            order::work_in(&mut source, options)
                .map_err(|failure| of_part(failure, &part.suite, options))?;
            sources.push(source);
        }
        order::list_in_rounds(parts.name(), &sources, options)?;
        for (part, source) in parts.parts().iter().zip(&mut sources) {
            if source.in_rounds() {
                order::work_in_rounds(source, options)?;
            }
            parts.keep_phases(part, source)?;
        }
        Ok(Self { parts, quick: options.quick, sources })
    }

    /// The list's name.
    pub fn name(&self) -> &str {
        self.parts.name()
    }

    /// One line about it.
    pub fn title(&self) -> &str {
        self.parts.title()
    }

    /// Its text, as written.
    pub fn text(&self) -> &str {
        self.parts.text()
    }

    /// Every run in order; in the short form each part once and without a pause.
    pub fn items(&self) -> Vec<Item<'_>> {
        let repeats = |part: &suite::Part| if self.quick { 1 } else { part.repeats };
        let of = self.parts.parts().iter().map(repeats).sum();
        let mut items = Vec::new();
        for (index, (part, source)) in self.parts.parts().iter().zip(&self.sources).enumerate() {
            for repeat in 1..=repeats(part) {
                items.push(Item {
                    number: u32::try_from(items.len()).unwrap_or(u32::MAX).saturating_add(1),
                    of,
                    part: index,
                    repeat,
                    repeats: repeats(part),
                    pause: if self.quick { Nanos::ZERO } else { part.pause },
                    source,
                });
            }
        }
        items
    }

    /// Each part's suite, checked.
    fn checked(&self) -> Result<Vec<Suite>, Failure> {
        let suites = self.sources.iter().map(|source| {
            suite::check(source, &CheckContext::default()).map_err(|e| {
                Failure::from(e).of(format!("part {} cannot be played", source.name()))
            })
        });
        suites.collect()
    }

    /// Each part's suite with what it is in the list.
    pub fn titled(&self) -> Result<Vec<(String, Suite)>, Failure> {
        let items = self.items();
        let titled = self.checked()?.into_iter().enumerate().map(|(index, suite)| {
            let times = items.iter().filter(|item| item.part == index).count() as u64;
            let title = format!("{}: {}{}", suite.name, suite.title, times_text(times));
            (crate::output::lines(&title), suite)
        });
        Ok(titled.collect())
    }

    /// What the parts do, for who looks before playing.
    pub fn summary(&self) -> Result<String, Failure> {
        let suites = self.checked()?;
        let mut out = format!("{}: {}\n", self.name(), crate::output::lines(self.title()));
        let description = crate::output::lines(self.parts.description());
        // Writing to a string cannot fail.
        if !description.is_empty() {
            let _ = write!(out, "\n{description}\n");
        }
        let items = self.items();
        let _ = writeln!(out, "\n{} of {}:", counted(items.len() as u64, "run"), self.list_parts());
        for (index, (part, suite)) in self.parts.parts().iter().zip(&suites).enumerate() {
            let of_part: Vec<_> = items.iter().filter(|item| item.part == index).collect();
            let times = of_part.len() as u64;
            let numbers = match (of_part.first(), of_part.last()) {
                (Some(first), Some(last)) if first.number != last.number => {
                    format!("{}-{}", first.number, last.number)
                }
                (Some(first), _) => first.number.to_string(),
                (None, _) => String::new(),
            };
            let _ = writeln!(out, "\n{numbers:>5}  {}{}", part.suite, times_text(times));
            let mut say = |label: &str, text: &str| {
                let _ = writeln!(out, "       {label:<7} {text}");
            };
            if let Some(first) = of_part.first().filter(|item| item.pause > Nanos::ZERO) {
                say("after", &format!("a pause of {}", duration(first.pause)));
            }
            for (label, text) in facts(suite) {
                say(label, &text);
            }
        }
        let totals = Totals::of(&items, &suites);
        let _ = writeln!(
            out,
            "\nIn all {}, {} written at least, {} of files at a time at most.",
            at_least(totals.time),
            totals.written,
            totals.files
        );
        Ok(out)
    }

    fn list_parts(&self) -> String {
        counted(self.parts.parts().len() as u64, "part")
    }

    /// The same as a document.
    pub fn document(&self) -> Result<serde_json::Value, Failure> {
        let suites = self.checked()?;
        let items = self.items();
        let totals = Totals::of(&items, &suites);
        let parts = self.parts.parts().iter().zip(&suites).enumerate();
        let parts = parts.map(|(index, (part, suite))| PartDocument {
            suite: &part.suite,
            repeats: items.iter().filter(|item| item.part == index).count(),
            pause_ns: part.pause.get(),
            least_duration_ns: suite.least_duration().get(),
            bytes_written_least: suite.bytes_written_least().get(),
            plan: suite,
        });
        let document = ListDocument {
            schema: "plimsoll.parts/1",
            name: self.name(),
            least_duration_ns: totals.time.get(),
            bytes_written_least: totals.written.get(),
            parts: parts.collect(),
        };
        serde_json::to_value(&document).map_err(|error| {
            Failure::caused(crate::exit::ExitCode::Unexpected, "cannot write JSON", error)
        })
    }
}

#[derive(Serialize)]
struct ListDocument<'a> {
    schema: &'static str,
    name: &'a str,
    least_duration_ns: u64,
    bytes_written_least: u64,
    parts: Vec<PartDocument<'a>>,
}

#[derive(Serialize)]
struct PartDocument<'a> {
    suite: &'a str,
    repeats: usize,
    pause_ns: u64,
    least_duration_ns: u64,
    bytes_written_least: u64,
    plan: &'a Suite,
}

/// Of all runs of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Totals {
    time: Nanos,
    written: Bytes,
    files: Bytes,
}

impl Totals {
    /// * `suites`: of the parts.
    fn of(items: &[Item<'_>], suites: &[Suite]) -> Self {
        let mut totals = Self { time: Nanos::ZERO, written: Bytes::ZERO, files: Bytes::ZERO };
        for (at, item) in items.iter().enumerate() {
            let Some(suite) = suites.get(item.part) else { continue };
            let pause = if at == 0 { Nanos::ZERO } else { item.pause };
            totals.time += pause + suite.least_duration();
            let written = suite.bytes_written_least().get();
            totals.written = Bytes::new(totals.written.get().saturating_add(written));
            totals.files = totals.files.max(suite.files.total());
        }
        totals
    }
}

fn times_text(times: u64) -> String {
    if times == 1 { String::new() } else { format!(", {times} times") }
}

/// Label and text.
fn facts(suite: &Suite) -> Vec<(&'static str, String)> {
    use crate::commands::suites::{files, scaled, time, visits, writes};
    let mut facts = vec![("files", files(suite))];
    facts.extend(scaled(suite).map(|text| ("scale", text)));
    facts.push(("visits", visits(suite)));
    facts.push(("time", time(suite)));
    facts.push(("writes", writes(suite)));
    facts
}
