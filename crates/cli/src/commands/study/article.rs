//! `plimsoll study report`: what a study found, told from its question to its recommendation.

use std::fmt::Write;

use explain::explanation::{Context, Explanation, OfRun, Together};
use explain::factor::{Effect, Factors, Refusal};
use explain::view::View;
use record::Run;

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
    depends_on: Vec<&'a str>,
}

impl Told<'_> {
    fn is_acquitted(&self) -> bool {
        let within = |(low, high): (f64, f64)| low > 1.0 - NOTHING && high < 1.0 / (1.0 - NOTHING);
        !self.matters && self.depends_on.is_empty() && self.range.is_some_and(within)
    }

    fn better(&self) -> &str {
        if self.ratio < 1.0 { self.from } else { self.to }
    }

    fn text(&self) -> String {
        let range = match self.range {
            Some((low, high)) => format!(" [{low:.2}, {high:.2}]"),
            None => String::new(),
        };
        format!("{} from {} to {}: x{:.2}{range}", self.factor, self.from, self.to, self.ratio)
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
            depends_on: effect.interactions.iter().map(|with| with.with.as_str()).collect(),
        })
        .collect()
}

/// The whole article.
///
/// * `runs`: of one study, by their place in it.
pub fn article(prepared: &Prepared, runs: &[Run], context: &Context) -> String {
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let explanation = Explanation::of_group(&views, context);
    let mut out = heading(prepared);
    section(&mut out, "The stacks", &stacks(prepared));
    section(&mut out, "The method", &method(prepared, runs));
    for suite in suites(runs) {
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
    section(&mut out, "Remarks", &odd(&explanation, runs));
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

fn method(prepared: &Prepared, runs: &[Run]) -> Vec<String> {
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
    said.extend(study.tells());
    if let Some(header) = runs.first().map(|run| &run.header) {
        let machine = &header.machine;
        said.push(format!(
            "Machine: {} x {}, Linux {}; plimsoll {}.",
            machine.processors, machine.processor, machine.kernel, header.program
        ));
    }
    let made = runs.len();
    if made < study.runs() as usize {
        said.push(format!("{made} of {} runs were made: what follows is of these.", study.runs()));
    }
    said
}

/// In the order in which they first come.
fn suites(runs: &[Run]) -> Vec<&str> {
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
    let rates: Vec<f64> = view
        .grid_rows()
        .filter_map(|row| {
            let rates = row.ln_rates();
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
        })
        .collect();
    (!rates.is_empty()).then(|| (rates.iter().sum::<f64>() / rates.len() as f64).exp())
}

/// One line a run: its stack, the levels, and each cell's rate with its interval.
fn table(runs: &[(&View<'_>, &OfRun)]) -> String {
    let Some((first, _)) = runs.first() else { return String::new() };
    let mut head: Vec<String> = vec!["stack".to_owned(), "run".to_owned()];
    head.extend(levels(first.run).iter().map(|(factor, _)| (*factor).to_owned()));
    let cells = first.grid_rows().count();
    let shown = if cells <= CELLS_SHOWN { cells } else { 0 };
    head.extend(first.grid_rows().take(shown).map(|row| format!("{} IOPS", row.name())));
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
                None => "-".to_owned(),
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
    let all = told(factors);
    let matter: Vec<String> = all
        .iter()
        .filter(|one| one.matters || !one.depends_on.is_empty())
        .map(|one| {
            let on = if one.depends_on.is_empty() {
                String::new()
            } else {
                format!(" It depends on {}.", one.depends_on.join(" and "))
            };
            format!("{}.{on}", one.text())
        })
        .collect();
    let matter = if matter.is_empty() { vec!["None is shown to.".to_owned()] } else { matter };
    section(out, "Which factors matter", &matter);
    section(out, "Which work together", &interactions(factors));
    let acquitted: Vec<String> = all
        .iter()
        .filter(|one| one.is_acquitted())
        .map(|one| format!("{}: whatever it does is less than 5 %.", one.text()))
        .collect();
    section(out, "Acquitted", &acquitted);
    section(out, "What could not be told", &unknown(prepared, factors, &all));
    section(out, "Recommendation", &recommendation(&all, runs));
}

fn interactions(factors: &Factors) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(fraction) = &factors.fraction {
        for effect in fraction.effects.iter().filter(|e| e.matters && !e.pairs.is_empty()) {
            let pairs: Vec<String> =
                effect.pairs.iter().map(|(a, b)| format!("{a} with {b}")).collect();
            said.push(format!(
                "{}: x{:.2} [{:.2}, {:.2}] where both are at their first or both at their other \
                 level, by where they are not.",
                pairs.join(" or "),
                effect.ratio,
                effect.low,
                effect.high
            ));
        }
    }
    for effect in &factors.effects {
        for with in &effect.interactions {
            let ratios: Vec<String> = with
                .ratios
                .iter()
                .map(|(level, ratio)| format!("x{ratio:.2} with {} {level}", with.with))
                .collect();
            said.push(format!("{}: {}.", effect.factor, ratios.join(", ")));
        }
    }
    said
}

fn unknown(prepared: &Prepared, factors: &Factors, all: &[Told<'_>]) -> Vec<String> {
    let mut said: Vec<String> = all
        .iter()
        .filter(|one| !one.matters && one.depends_on.is_empty() && !one.is_acquitted())
        .map(|one| format!("{}: not shown to matter, and not shown to be nothing.", one.text()))
        .collect();
    for refusal in &factors.refused {
        said.push(match refusal {
            Refusal::Inseparable(names) => {
                format!("{} changed together: no one of them can be credited.", names.join(", "))
            }
            Refusal::Constant(name) => format!("{name}: one level of it is left."),
            Refusal::NoPairs(name) => format!("{name}: no two runs differ in it alone."),
        });
    }
    for left in &prepared.study.left_out {
        let levels: Vec<String> = left.levels.iter().map(|(f, l)| format!("{f} {l}")).collect();
        said.push(format!("{}: cannot be built: {}.", levels.join(", "), left.why));
    }
    let detectable =
        factors.fraction.as_ref().map_or(factors.detectable, |fraction| fraction.detectable);
    said.push(match detectable {
        Some(ratio) => format!(
            "Effects below {:.0} % would have been missed more than once in five times.",
            (ratio - 1.0) * 100.0
        ),
        None => "How small an effect would have been found is unknown: too little was repeated."
            .to_owned(),
    });
    said
}

fn recommendation(all: &[Told<'_>], runs: &[(&View<'_>, &OfRun)]) -> Vec<String> {
    let mut said = Vec::new();
    let choose: Vec<String> = all
        .iter()
        .filter(|one| one.matters && one.depends_on.is_empty())
        .map(|one| format!("{} {}", one.factor, one.better()))
        .collect();
    if !choose.is_empty() {
        said.push(format!("Take {}.", choose.join(", ")));
    }
    let joint: Vec<&str> =
        all.iter().filter(|one| !one.depends_on.is_empty()).map(|one| one.factor).collect();
    if !joint.is_empty() {
        said.push(format!(
            "{} work together: choose them together, from the rows of the table.",
            joint.join(" and ")
        ));
    }
    let free: Vec<&str> = all.iter().filter(|one| one.is_acquitted()).map(|o| o.factor).collect();
    if !free.is_empty() {
        said.push(format!(
            "For speed it is all one what {} is: choose by cost, safety and habit.",
            free.join(" or ")
        ));
    }
    let rated = || runs.iter().filter_map(|(view, run)| Some((mean(view)?, *view, *run)));
    let best = rated().max_by(|a, b| a.0.total_cmp(&b.0));
    let bases: Vec<f64> =
        rated().filter(|(_, view, _)| is_base(view)).map(|(r, ..)| r.ln()).collect();
    if let Some((rate, view, run)) = best.filter(|_| !bases.is_empty()) {
        let base = (bases.iter().sum::<f64>() / bases.len() as f64).exp();
        let what: Vec<String> =
            levels(view.run).iter().map(|(factor, level)| format!("{factor} {level}")).collect();
        said.push(format!(
            "The fastest that was measured is {} ({}): {rate:.0} IOPS, x{:.2} of the base. The \
             fastest of many is a little lucky; the effects above are not.",
            run.run,
            what.join(", "),
            rate / base
        ));
    }
    if said.is_empty() {
        said.push("None: nothing is known that would speak for one of them.".to_owned());
    }
    said
}

fn is_base(view: &View<'_>) -> bool {
    let part = view.run.header.part.as_ref();
    part.and_then(|part| part.study.as_ref()).is_some_and(|study| study.again)
}

/// What was marked or doubted, so that nobody takes the table for more than it is.
fn odd(explanation: &Explanation, runs: &[Run]) -> Vec<String> {
    let mut said = explanation.group.as_ref().map(|group| group.common.clone()).unwrap_or_default();
    for run in runs {
        let rebuilt = run.header.warnings.iter().filter(|warning| warning.code == "rebuilt");
        said.extend(rebuilt.map(|warning| format!("{}: {}.", run.header.id, warning.text)));
    }
    said
}
