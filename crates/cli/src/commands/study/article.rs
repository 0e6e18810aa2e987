//! `plimsoll study report`: what a study found, told from its question to its recommendation.

use std::collections::BTreeMap;
use std::fmt::Write;

use explain::explanation::{Context, Explanation, OfRun, Together};
use explain::factor::{Effect, Factors};
use explain::view::{CellView, View};
use finding::{Code, Finding, Number, Value, texts};
use record::{Run, RunState};

use super::Prepared;

/// More cells than this are told by their mean alone.
const CELLS_SHOWN: usize = 4;
/// An effect within this of nothing, with its whole interval, is none.
const NOTHING: f64 = 0.05;

/// What is known of one factor, whatever the design.
struct Told<'a> {
    factor: &'a str,
    from: &'a str,
    to: &'a str,
    ratio: f64,
    range: Option<(f64, f64)>,
    matters: bool,
    /// The least p that so few runs could show; `None` where there are enough.
    too_few: Option<f64>,
    depends_on: Vec<&'a str>,
}

impl Told<'_> {
    fn is_acquitted(&self) -> bool {
        let within = |(low, high): (f64, f64)| low > 1.0 - NOTHING && high < 1.0 / (1.0 - NOTHING);
        !self.matters && self.depends_on.is_empty() && self.range.is_some_and(within)
    }

    /// Told from the base to what was tried in its place, whatever order the levels have elsewhere.
    fn seen_from_base(self, factors: &[study::Factor]) -> Self {
        let factor = factors.iter().find(|factor| factor.name == self.factor);
        let place = |level: &str| factor?.levels.iter().position(|known| known == level);
        if place(self.from) <= place(self.to) {
            return self;
        }
        Self {
            from: self.to,
            to: self.from,
            ratio: 1.0 / self.ratio,
            range: self.range.map(|(low, high)| (1.0 / high, 1.0 / low)),
            ..self
        }
    }

    fn better(&self) -> &str {
        if self.ratio < 1.0 { self.from } else { self.to }
    }

    fn finding(&self, code: Code, tried: &[Tried<'_>]) -> Finding {
        let ratio = Number::ratio(self.ratio);
        let ratio = self.range.map_or(ratio, |(low, high)| ratio.within(low, high));
        let base = base_level(self, tried);
        let others = other_levels(self, tried).into_iter().map(|(level, ratio)| {
            let base = Value::words(base.unwrap_or_default());
            let ratio = Number::ratio(ratio).into();
            Value::record([("level", level.into()), ("ratio", ratio), ("base", base)])
        });
        let others: Vec<Value> = others.collect();
        Finding::new(code)
            .with("factor", self.factor)
            .with("from", self.from)
            .with("to", self.to)
            .with("ratio", ratio)
            .with("depends", self.depends_on.clone())
            .with_some("p_least", self.too_few.map(Number::share))
            .with_some("others", Some(others).filter(|others| !others.is_empty()))
    }
}

fn told(factors: &Factors) -> Vec<Told<'_>> {
    if let Some(fraction) = &factors.fraction {
        let alone = fraction.effects.iter().filter(|effect| effect.factors.len() == 1);
        return alone
            .filter_map(|effect| {
                let factor = effect.factors.first()?;
                let pairs = fraction.effects.iter().filter(|other| {
                    other.matters && other.factors.is_empty() && other.pairs.len() == 1
                });
                let depends_on = pairs.flat_map(|other| &other.pairs).filter_map(|(a, b)| {
                    let other = if a == factor { b } else { a };
                    (a == factor || b == factor).then_some(other.as_str())
                });
                Some(Told {
                    factor,
                    from: effect.from.as_deref()?,
                    to: effect.to.as_deref()?,
                    ratio: effect.ratio,
                    range: Some((effect.low, effect.high)),
                    matters: effect.matters,
                    too_few: None,
                    depends_on: depends_on.collect(),
                })
            })
            .collect();
    }
    let of = |effect: &'_ Effect| -> Option<(f64, f64)> { effect.low.zip(effect.high) };
    factors
        .effects
        .iter()
        .map(|effect| Told {
            factor: &effect.factor,
            from: &effect.from,
            to: &effect.to,
            ratio: effect.ratio,
            range: of(effect),
            matters: effect.matters,
            too_few: effect.is_of_too_few().then_some(effect.p_least),
            depends_on: effect.interactions.iter().map(|with| with.with.as_str()).collect(),
        })
        .collect()
}

/// The whole article.
///
/// * `runs`: of one study, by their place in it.
/// * `failed`: stacks that were left out while it was played, and why.
pub fn article(
    prepared: &Prepared,
    runs: &[Run],
    failed: &BTreeMap<u32, String>,
    context: &Context,
) -> String {
    // Of a run that was broken off some cells were measured and others were not: its means are of
    // other work than those of the rest.
    let (whole, broken): (Vec<&Run>, Vec<&Run>) =
        runs.iter().partition(|run| run.header.state == RunState::Complete);
    let views: Vec<View<'_>> = whole.iter().map(|run| View::new(run)).collect();
    let explanation = Explanation::of_group(&views, context);
    let mut out = heading(prepared);
    section(&mut out, "The stacks", &stacks(prepared));
    section(&mut out, "The method", &method(prepared, &whole, &broken, failed));
    for suite in suites(&whole) {
        let of_suite: Vec<(&View<'_>, &OfRun)> = views
            .iter()
            .zip(&explanation.runs)
            .filter(|(view, _)| view.run.header.suite == suite)
            .collect();
        let _ = writeln!(out, "Results: {suite}\n");
        out.push_str(&table(&of_suite));
        out.push('\n');
        let together = explanation.by_suite.iter().find(|together| {
            of_suite.first().is_some_and(|(_, run)| together.runs.contains(&run.run))
        });
        match together {
            Some(together) => conclusions(&mut out, prepared, together, &of_suite),
            None => section(
                &mut out,
                "What it tells",
                &["Too few runs are there to say anything of factors.".to_owned()],
            ),
        }
    }
    section(&mut out, "Remarks", &odd(&explanation, &whole));
    out
}

fn heading(prepared: &Prepared) -> String {
    let title = match prepared.text.title.as_str() {
        "" => &prepared.text.name,
        title => title,
    };
    let title = report::plain(title);
    let mut out = format!("{title}\n{}\n\n", "=".repeat(title.chars().count()));
    for paragraph in prepared.text.description.trim().split("\n\n") {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        if !words.is_empty() {
            out.push_str(&report::wrapped("", &report::plain(&words)));
            out.push('\n');
        }
    }
    out
}

fn section(out: &mut String, title: &str, sentences: &[String]) {
    if sentences.is_empty() {
        return;
    }
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{title}\n");
    for sentence in sentences {
        out.push_str(&report::wrapped("- ", &report::plain(sentence)));
    }
    out.push('\n');
}

fn stacks(prepared: &Prepared) -> Vec<String> {
    let study = &prepared.study;
    let mut said = Vec::new();
    for factor in &study.factors {
        let levels = factor.levels.join(", ");
        said.push(format!("{}: {levels}; the first is the base's.", factor.name));
    }
    let same: Vec<String> =
        study.fixed.iter().map(|(key, level)| format!("{key} {level}")).collect();
    if !same.is_empty() {
        said.push(format!("The same in all: {}.", same.join(", ")));
    }
    said
}

/// * `broken`: runs that did not come to their end.
/// * `failed`: stacks that were left out, and why.
fn method(
    prepared: &Prepared,
    runs: &[&Run],
    broken: &[&Run],
    failed: &BTreeMap<u32, String>,
) -> Vec<String> {
    let study = &prepared.study;
    let suites: Vec<&str> = study.measure.suites.iter().map(|suite| suite.suite.as_str()).collect();
    let suites = suites.join(", ");
    let how = if study.builds() {
        format!("built, checked against the plan, measured by {suites}, and taken down")
    } else {
        format!("measured by {suites}")
    };
    let mut said = vec![format!(
        "Design {}: {} stacks that differ, {} measured one after the other in an order drawn from \
         seed {}. Each was {}.",
        study.measure.design.name(),
        study.different(),
        study.stacks.len(),
        study.seed,
        how,
    )];
    said.extend(measured_of(study, runs).tells());
    for one in &study.stacks {
        if let Some(why) = failed.get(&one.number) {
            said.push(format!("Stack {} ({}) was left out: {why}.", one.number, one.title()));
        }
    }
    if let Some(header) = runs.iter().chain(broken).next().map(|run| &run.header) {
        let machine = &header.machine;
        said.push(format!(
            "Machine: {} x {}, Linux {}; plimsoll {}.",
            machine.processors, machine.processor, machine.kernel, header.program
        ));
    }
    let made = runs.len();
    if made < study.runs() as usize {
        let runs = study.runs();
        said.push(format!("{made} of {runs} runs are complete: what follows is of these."));
    }
    for run in broken {
        let (id, state) = (&run.header.id, run.header.state.name());
        said.push(format!("{id} is {state}: nothing of it is told here."));
    }
    said
}

/// The study with those of its stacks of which there is a run: what was never measured tells nothing.
fn measured_of(study: &study::Study, runs: &[&Run]) -> study::Study {
    let mut measured = study.clone();
    let parts = || runs.iter().filter_map(|run| run.header.part.as_ref()?.study.as_ref());
    if parts().next().is_some() {
        measured.stacks.retain(|one| parts().any(|part| part.stack == one.number));
    }
    measured
}

/// In the order in which they first come.
fn suites<'a>(runs: &[&'a Run]) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for run in runs {
        if !found.contains(&run.header.suite.as_str()) {
            found.push(&run.header.suite);
        }
    }
    found
}

fn levels(run: &Run) -> Vec<(&str, &str)> {
    let study = run.header.part.as_ref().and_then(|part| part.study.as_ref());
    let levels = study.map(|study| study.levels.as_slice()).unwrap_or_default();
    levels.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect()
}

/// Geometric mean of all cells of a run, in requests per second.
fn mean(view: &View<'_>) -> Option<f64> {
    geometric(&view.grid_rows().filter_map(rate_of).map(f64::ln).collect::<Vec<_>>())
}

/// Geometric mean of a cell's visits, in requests per second.
fn rate_of(row: &CellView<'_>) -> Option<f64> {
    geometric(&row.ln_rates())
}

fn geometric(ln_rates: &[f64]) -> Option<f64> {
    let mean = ln_rates.iter().sum::<f64>() / ln_rates.len() as f64;
    (!ln_rates.is_empty()).then(|| mean.exp())
}

/// What a cell is called at the head of its column. A bare number tells nothing without its axis.
fn column(row: &CellView<'_>) -> String {
    let place = row.cell.coordinates.iter().map(|(axis, value)| match value.parse::<f64>() {
        Ok(_) => format!("{} {value}", axis.replace('_', " ")),
        Err(_) => value.clone(),
    });
    let words = std::iter::once(row.cell.phase.clone()).chain(place);
    let words = words.chain(row.stream_name().map(str::to_owned));
    words.collect::<Vec<_>>().join(" ")
}

/// One line a run: its stack, the levels, and each cell's rate with its interval.
fn table(runs: &[(&View<'_>, &OfRun)]) -> String {
    let Some((first, _)) = runs.first() else { return String::new() };
    let mut head: Vec<String> = vec!["stack".to_owned(), "run".to_owned()];
    head.extend(levels(first.run).iter().map(|(factor, _)| (*factor).to_owned()));
    let cells = first.grid_rows().count();
    let shown = if cells <= CELLS_SHOWN { cells } else { 0 };
    head.extend(first.grid_rows().take(shown).map(|row| format!("{} IOPS", column(row))));
    if shown != 1 {
        head.push("mean IOPS".to_owned());
    }
    let mut rows = vec![head];
    for (view, run) in runs {
        let part = view.run.header.part.as_ref();
        let study = part.and_then(|part| part.study.as_ref());
        let base = if study.is_some_and(|study| study.again) { " base" } else { "" };
        let stack = study.map_or(0, |study| study.stack);
        let mut row = vec![format!("{stack}{base}"), run.run.clone()];
        row.extend(levels(view.run).iter().map(|(_, level)| (*level).to_owned()));
        for cell in view.grid_rows().take(shown) {
            row.push(match run.findings.interval_of(view, cell) {
                Some(found) => {
                    format!("{:.0} [{:.0}, {:.0}]", found.mean, found.low, found.high)
                }
                // One visit has no interval.
                None => rate_of(cell).map_or("-".to_owned(), |rate| format!("{rate:.0}")),
            });
        }
        if shown != 1 {
            row.push(mean(view).map_or("-".to_owned(), |rate| format!("{rate:.0}")));
        }
        rows.push(row);
    }
    aligned(&rows)
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{:width$}  ", report::plain(cell));
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn conclusions(
    out: &mut String,
    prepared: &Prepared,
    together: &Together,
    runs: &[(&View<'_>, &OfRun)],
) {
    let factors = &together.factors;
    let told = told(factors).into_iter();
    let all: Vec<Told<'_>> = told.map(|one| one.seen_from_base(&prepared.study.factors)).collect();
    let tried = tried(runs);
    let matter = all.iter().filter(|one| one.matters || !one.depends_on.is_empty());
    let mut matter: Vec<Finding> =
        matter.map(|one| one.finding(Code::StudyFactor, &tried)).collect();
    if matter.is_empty() {
        matter.push(Finding::new(Code::StudyFactorNone));
    }
    matter.splice(..0, cached(Code::StudyCached, &tried));
    let acquitted = all.iter().filter(|one| one.is_acquitted());
    let acquitted: Vec<Finding> =
        acquitted.map(|one| one.finding(Code::StudyFactorNoEffect, &[])).collect();
    let mut section = |title, found: Vec<Finding>| section(out, title, &texts(&found));
    section("Which factors matter", matter);
    section("Which work together", interactions(factors));
    section("Acquitted", acquitted);
    section("What could not be told", unknown(prepared, factors, &all, &tried));
    section("Recommendation", recommendation(&all, &tried));
}

fn interactions(factors: &Factors) -> Vec<Finding> {
    let mut found = factors.findings();
    found.retain(|one| {
        matches!(one.code, Code::FractionPair | Code::FractionPairsMixed | Code::FactorInteraction)
    });
    found
}

fn unknown(
    prepared: &Prepared,
    factors: &Factors,
    all: &[Told<'_>],
    tried: &[Tried<'_>],
) -> Vec<Finding> {
    let open =
        all.iter().filter(|one| !one.matters && one.depends_on.is_empty() && !one.is_acquitted());
    let mut said: Vec<Finding> = open
        .map(|one| {
            let few = one.too_few.is_some();
            let code = if few { Code::StudyFactorTooFew } else { Code::StudyFactorOpen };
            one.finding(code, tried)
        })
        .collect();
    let (mut refused, mut detectable) = (factors.findings(), factors.findings());
    refused.retain(|one| {
        matches!(one.code, Code::FactorsInseparable | Code::FactorsConstant | Code::FactorsUnpaired)
    });
    said.extend(refused);
    said.extend(prepared.study.left_out.iter().map(|left| {
        let levels = left.levels.iter().map(|(f, l)| (f.as_str(), l.as_str()));
        let found = Finding::new(Code::StudyLeftOut).with("levels", levels_of(levels));
        found.with("why", &left.why)
    }));
    detectable
        .retain(|one| matches!(one.code, Code::EffectsDetectable | Code::EffectsDetectableUnknown));
    said.extend(detectable.into_iter().next());
    said
}

fn levels_of<'a>(levels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    let one = |(factor, level): (&str, &str)| {
        Value::record([("factor", factor.into()), ("level", level.into())])
    };
    levels.into_iter().map(one).collect()
}

/// A run as the recommendation sees it.
struct Tried<'a> {
    run: &'a str,
    levels: Vec<(&'a str, &'a str)>,
    /// Requests per second, geometric mean of its cells.
    rate: f64,
    is_base: bool,
    /// Some of it was answered by a cache.
    is_cached: bool,
}

fn tried<'a>(runs: &'a [(&View<'_>, &OfRun)]) -> Vec<Tried<'a>> {
    let mut all = Vec::new();
    for (view, run) in runs {
        let Some(rate) = mean(view) else { continue };
        all.push(Tried {
            run: &run.run,
            levels: levels(view.run),
            rate,
            is_base: is_base(view),
            is_cached: run.marks.iter().any(|mark| mark.code == Code::Cached),
        });
    }
    all
}

/// The level of a factor in the base.
fn base_level<'a>(told: &Told<'_>, runs: &[Tried<'a>]) -> Option<&'a str> {
    let base = runs.iter().find(|one| one.is_base)?;
    let of_base = base.levels.iter().find(|(factor, _)| *factor == told.factor);
    of_base.map(|(_, level)| *level)
}

/// What the other levels of a factor are to the base where all else is the base's, by the means of the
/// table: only the two furthest apart are judged. Empty where there are none.
fn other_levels<'a>(told: &Told<'_>, runs: &[Tried<'a>]) -> Vec<(&'a str, f64)> {
    let bases: Vec<&Tried<'_>> = runs.iter().filter(|one| one.is_base).collect();
    let (Some(base), Some(from)) = (bases.first(), base_level(told, runs)) else {
        return Vec::new();
    };
    let mean =
        |runs: &[&Tried<'_>]| geometric(&runs.iter().map(|r| r.rate.ln()).collect::<Vec<_>>());
    let mut by_level: BTreeMap<&'a str, Vec<&Tried<'_>>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.levels.len() == base.levels.len()) {
        let apart: Vec<_> =
            run.levels.iter().zip(&base.levels).filter(|(own, base)| own != base).collect();
        if let [((factor, level), _)] = apart.as_slice()
            && *factor == told.factor
            && (told.from != from || told.to != *level)
        {
            by_level.entry(level).or_default().push(run);
        }
    }
    let ratio =
        |(level, own): (&'a str, Vec<&Tried<'_>>)| Some((level, mean(&own)? / mean(&bases)?));
    by_level.into_iter().filter_map(ratio).collect()
}

/// That some runs measured a cache; `None` where none did.
fn cached(code: Code, runs: &[Tried<'_>]) -> Option<Finding> {
    let all: Vec<&str> = runs.iter().filter(|one| one.is_cached).map(|one| one.run).collect();
    (!all.is_empty()).then(|| {
        let found = Finding::new(code).with("n", all.len()).with("of", runs.len());
        found.with("runs", all)
    })
}

/// Only what is shown is recommended: effects, never the luckiest row of the table; and nothing of
/// drives from what a cache answered.
fn recommendation(all: &[Told<'_>], runs: &[Tried<'_>]) -> Vec<Finding> {
    if let Some(cached) = cached(Code::StudyNoneCached, runs) {
        return vec![cached];
    }
    let mut said = Vec::new();
    let choose: Vec<(&str, &str)> = all
        .iter()
        .filter(|one| one.matters && one.depends_on.is_empty())
        .map(|one| (one.factor, one.better()))
        .collect();
    let joint: Vec<&str> =
        all.iter().filter(|one| !one.depends_on.is_empty()).map(|one| one.factor).collect();
    if !choose.is_empty() {
        said.push(Finding::new(Code::StudyTake).with("levels", levels_of(choose.iter().copied())));
    }
    let is_joint = !joint.is_empty();
    said.extend(is_joint.then(|| Finding::new(Code::StudyTakeTogether).with("factors", joint)));
    if said.is_empty() {
        said.push(Finding::new(Code::StudyNone));
    } else {
        said.extend(measured(&choose, is_joint, runs));
    }
    let free: Vec<&str> = all.iter().filter(|one| one.is_acquitted()).map(|o| o.factor).collect();
    said.extend((!free.is_empty()).then(|| {
        let several = free.len() > 1;
        Finding::new(Code::StudyChooseFreely).with("factors", free).with("several", several)
    }));
    said
}

/// Which stack with the levels chosen was the fastest.
fn measured(choose: &[(&str, &str)], is_joint: bool, runs: &[Tried<'_>]) -> Option<Finding> {
    let has_all = |one: &&Tried<'_>| choose.iter().all(|level| one.levels.contains(level));
    let bases: Vec<&Tried<'_>> = runs.iter().filter(|one| one.is_base).collect();
    let base = bases.first()?;
    if !is_joint && has_all(base) {
        return Some(Finding::new(Code::StudyBaseAlready));
    }
    let best = runs.iter().filter(|one| !one.is_base).filter(has_all);
    let Some(best) = best.max_by(|a, b| a.rate.total_cmp(&b.rate)) else {
        return Some(Finding::new(Code::StudyNotMeasured));
    };
    let of_base = bases.iter().map(|one| one.rate.ln()).sum::<f64>() / bases.len() as f64;
    let times = best.rate / of_base.exp();
    (times > 1.0).then(|| {
        Finding::new(Code::StudyFastest)
            .with("run", best.run)
            .with("levels", levels_of(best.levels.iter().copied()))
            .with("rate", Number::iops(best.rate))
            .with("ratio", Number::ratio(times))
    })
}

fn is_base(view: &View<'_>) -> bool {
    let part = view.run.header.part.as_ref();
    part.and_then(|part| part.study.as_ref()).is_some_and(|study| study.again)
}

/// What was marked or doubted, so that nobody takes the table for more than it is.
fn odd(explanation: &Explanation, runs: &[&Run]) -> Vec<String> {
    let mut said = explanation.group.as_ref().map(|group| group.common.clone()).unwrap_or_default();
    for run in runs {
        let rebuilt = run.header.warnings.iter().filter(|warning| warning.code == "rebuilt");
        said.extend(rebuilt.map(|warning| format!("{}: {}.", run.header.id, warning.text)));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told<'a>(factor: &'a str, [from, to]: [&'a str; 2], ratio: f64, matters: bool) -> Told<'a> {
        let range = Some((ratio * 0.9, ratio * 1.1));
        Told { factor, from, to, ratio, range, matters, too_few: None, depends_on: Vec::new() }
    }

    fn run<'a>(run: &'a str, fs: &'a str, mount: &'a str, rate: f64) -> Tried<'a> {
        let is_base = (fs, mount) == ("ext4", "defaults");
        let levels = vec![("fs", fs), ("mount", mount)];
        Tried { run, levels, rate, is_base, is_cached: false }
    }

    fn codes(all: &[Told<'_>], runs: &[Tried<'_>]) -> Vec<Code> {
        recommendation(all, runs).iter().map(|finding| finding.code).collect()
    }

    fn three() -> Vec<Tried<'static>> {
        vec![
            run("r1", "ext4", "defaults", 100.0),
            run("r2", "xfs", "defaults", 150.0),
            run("r3", "ext4", "noatime", 170.0),
            run("r4", "ext4", "defaults", 101.0),
        ]
    }

    #[test]
    fn levels_that_are_not_judged_are_told_all_the_same() {
        let mut runs = three();
        runs.push(run("r5", "jfs", "defaults", 50.25));
        // Two things differ.
        runs.push(run("r6", "jfs", "noatime", 500.0));
        let base = (100f64 * 101.0).sqrt();
        let fs = told("fs", ["ext4", "xfs"], 1.5, false);
        let rounded = |said: Vec<(&'static str, f64)>| -> Vec<(&str, f64)> {
            said.into_iter().map(|(level, ratio)| (level, (ratio * 1e3).round())).collect()
        };
        let of_base = |rate: f64| (rate / base * 1e3).round();
        assert_eq!(rounded(other_levels(&fs, &runs)), [("jfs", of_base(50.25))]);
        // Where the base is none of the two, they are not told against it.
        let said = other_levels(&told("fs", ["jfs", "xfs"], 3.0, false), &runs);
        assert_eq!(rounded(said), [("jfs", of_base(50.25)), ("xfs", of_base(150.0))]);
        let said = told("fs", ["jfs", "xfs"], 3.0, false).finding(Code::StudyFactorOpen, &runs);
        let wanted = " By the means in the table jfs is x0.50 of ext4; xfs is x1.49 of ext4.";
        assert!(said.text().ends_with(wanted), "{said:?}");
        let mount = told("mount", ["defaults", "noatime"], 1.7, false);
        assert_eq!(other_levels(&mount, &runs), []);
    }

    #[test]
    fn where_nothing_is_shown_nothing_is_recommended() {
        let all = [
            told("fs", ["ext4", "xfs"], 1.5, false),
            told("mount", ["defaults", "noatime"], 1.7, false),
        ];
        assert_eq!(codes(&all, &three()), [Code::StudyNone]);
        assert_eq!(codes(&[], &[]), [Code::StudyNone]);
    }

    #[test]
    fn what_a_cache_answered_is_no_reason() {
        let all = [told("fs", ["ext4", "xfs"], 1.5, true)];
        let mut runs = three();
        runs[1].is_cached = true;
        assert_eq!(codes(&all, &runs), [Code::StudyNoneCached]);
        let said = recommendation(&all, &runs)[0].text();
        assert!(said.starts_with("None: 1 of 4 runs measured a cache (r2)"), "{said}");
    }

    #[test]
    fn the_fastest_is_one_with_what_is_shown_and_never_the_base() {
        let all = [
            told("fs", ["ext4", "xfs"], 1.5, true),
            told("mount", ["defaults", "noatime"], 1.7, false),
        ];
        let said = recommendation(&all, &three());
        assert_eq!(said[0].text(), "Take fs xfs.");
        assert_eq!(said[1].code, Code::StudyFastest);
        assert_eq!(said[1].value("run"), Some(&"r2".into()));
        // The base is better.
        let all = [told("fs", ["ext4", "xfs"], 0.5, true)];
        let said = recommendation(&all, &three());
        assert_eq!(texts(&said), ["Take fs ext4.", "The base is that already."]);
        // Both alone, never together.
        let all = [
            told("fs", ["ext4", "xfs"], 1.5, true),
            told("mount", ["defaults", "noatime"], 1.7, true),
        ];
        assert_eq!(codes(&all, &three()), [Code::StudyTake, Code::StudyNotMeasured]);
    }
}
