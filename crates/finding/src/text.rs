//! Findings as text. This is the only place that turns values into words.
//!
//! A template is a sentence with places for values:
//!
//! | in the template | gives |
//! |---|---|
//! | `{rate}` | the value `rate`: a number with its unit and, if it has one, its interval |
//! | `{range:over most}` | a share with the digits that show that it is more than the share `most` |
//! | `{visits:visit}` | a count with its noun: `1 visit`, `3 visits`; `{n:query/queries}` |
//! | `{cells}` | the names of the cells, the first few of many, each with its value |
//! | `{cells:all}`, `{names:all}` | all of them, however many |
//! | `{cells:count}` | how many of how many: `3 of 84 cells`, `all 84 cells` |
//! | `{cells:named}` | the same, and which where these are not all: ``2 of 84 cells (`a` and `b`)`` |
//! | `{things:each {name} ({size})}` | several records, each by the template: `a (1 B); b (2 B)` |
//! | `{known?if so\|if not}` | the first if the value is there, and neither `false` nor 0 |
//! | `[ ...]` | all of it, or nothing if a value in it is missing |
//! | `{@part}` | what several templates of a file share, from its table `parts` |
//!
//! A sentence begins with a capital letter, also where a number comes first.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::found::{Finding, Subject};
use crate::numbers;
use crate::value::{Number, Quantity, Value};

/// Cells and names that are listed before the rest is counted.
const LISTED: usize = 5;
/// Between the name of a list and the template of its records.
const EACH: &str = ":each ";

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// Words.
    Text(String),
    /// A name that somebody gave, to be shown as such.
    Name(String),
    /// A cell: its key and what it is called.
    Cell(String, String),
}

impl Finding {
    /// As plain text.
    pub fn text(&self) -> String {
        plain(&self.spans())
    }

    /// As text in which cells and names are apart.
    pub fn spans(&self) -> Vec<Span> {
        spans(self.code.about().text, self)
    }

    /// What to do next.
    pub fn next(&self) -> Option<String> {
        let next = self.code.about().next.map(|next| self.filled(next));
        next.filter(|next| !next.is_empty())
    }

    /// Why it matters.
    pub fn why(&self) -> Option<String> {
        self.code.about().why.map(|why| self.filled(why))
    }

    /// What was read that shows it; of each template that has its values.
    pub fn evidence(&self) -> Vec<String> {
        let known = |template: &&&str| filling(template, self).complete;
        let all = self.code.about().evidence.iter();
        all.filter(known).map(|template| self.filled(template)).collect()
    }

    /// What to mind before it is changed.
    pub fn caution(&self) -> Option<String> {
        let caution = self.code.about().caution.map(|caution| self.filled(caution));
        caution.filter(|caution| !caution.is_empty())
    }

    fn filled(&self, template: &str) -> String {
        plain(&spans(template, self))
    }
}

/// Spans as plain text, names and cells quoted.
pub fn plain(spans: &[Span]) -> String {
    let one = |span: &Span| match span {
        Span::Text(text) => text.clone(),
        Span::Name(name) | Span::Cell(_, name) => quoted(name),
    };
    spans.iter().map(one).collect()
}

/// A name between backquotes; between quotation marks if it has backquotes of its own, or nothing.
pub fn quoted(name: &str) -> String {
    match name.is_empty() || name.contains('`') {
        true => format!("\"{name}\""),
        false => format!("`{name}`"),
    }
}

/// Whether somebody else's words come first: the name of a run or a phase keeps its letters.
fn begins_with_words(template: &str, of: &Finding) -> bool {
    let first = |template| match pieces(template).into_iter().next() {
        Some(TemplatePart::Place(place)) => Some(place),
        _ => None,
    };
    let Some(place) = first(template) else { return false };
    let (name, each) = place.split_once(':').unwrap_or((place, ""));
    let value = match of.value(name) {
        Some(Value::List(all)) => all.first(),
        value => value,
    };
    match value {
        Some(Value::Record(record)) => {
            let inner = each.strip_prefix("each ").and_then(first);
            matches!(inner.and_then(|name| record.get(name)), Some(Value::Words(_)))
        }
        value => matches!(value, Some(Value::Words(_))),
    }
}

/// A template with the values of a finding.
pub fn spans(template: &str, of: &Finding) -> Vec<Span> {
    let spans = joined(filling(template, of).spans);
    if begins_with_words(template, of) { spans } else { capitalised(spans) }
}

fn filling<'f>(template: &str, of: &'f Finding) -> Filling<'f> {
    let mut writer = Filling { of, record: None, spans: Vec::new(), complete: true };
    writer.write(template);
    writer
}

/// The places of a template: what a test asks to be known.
pub fn places(template: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for piece in pieces(template) {
        match piece {
            TemplatePart::Text(_) => {}
            TemplatePart::Place(place) => {
                let end = place.find([':', '?']).unwrap_or(place.len());
                found.push(&place[..end]);
                if let Some((_, template)) = place.split_once(EACH) {
                    found.extend(places(template));
                } else if let Some((_, (then, or_else))) = choice(place) {
                    found.extend(places(then));
                    found.extend(places(or_else));
                }
            }
            TemplatePart::Optional(inner) => found.extend(places(inner)),
        }
    }
    found
}

enum TemplatePart<'t> {
    Text(&'t str),
    Place(&'t str),
    Optional(&'t str),
}

/// Cuts a template at its outermost braces and brackets. One that is not closed is text.
fn pieces(template: &str) -> Vec<TemplatePart<'_>> {
    let mut found = Vec::new();
    let mut rest = template;
    while let Some(at) = rest.find(['{', '[']) {
        let is_place = rest[at..].starts_with('{');
        let Some(end) = closing(&rest[at..]) else { break };
        if at > 0 {
            found.push(TemplatePart::Text(&rest[..at]));
        }
        let inner = &rest[at + 1..at + end];
        found.push(if is_place {
            TemplatePart::Place(inner)
        } else {
            TemplatePart::Optional(inner)
        });
        rest = &rest[at + end + 1..];
    }
    if !rest.is_empty() {
        found.push(TemplatePart::Text(rest));
    }
    found
}

/// Where the bracket closes that the text begins with.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0_u32;
    for (at, letter) in text.char_indices() {
        match letter {
            '{' | '[' => open += 1,
            '}' | ']' => {
                open -= 1;
                if open == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// `known?if so|if not` taken apart.
fn choice(place: &str) -> Option<(&str, (&str, &str))> {
    let (name, ways) = place.split_once('?').filter(|(name, _)| !name.contains(':'))?;
    let mut open = 0_u32;
    for (at, letter) in ways.char_indices() {
        match letter {
            '{' | '[' => open += 1,
            '}' | ']' => open = open.saturating_sub(1),
            '|' if open == 0 => return Some((name, (&ways[..at], &ways[at + 1..]))),
            _ => {}
        }
    }
    Some((name, (ways, "")))
}

struct Filling<'f> {
    of: &'f Finding,
    /// The one of several that is written, whose values come before the finding's.
    record: Option<&'f BTreeMap<String, Value>>,
    spans: Vec<Span>,
    /// Whether all values were there.
    complete: bool,
}

impl<'f> Filling<'f> {
    fn write(&mut self, template: &str) {
        for piece in pieces(template) {
            match piece {
                TemplatePart::Text(text) => self.spans.push(Span::Text(text.to_owned())),
                TemplatePart::Place(place) => self.place(place),
                TemplatePart::Optional(inner) => {
                    let (of, record) = (self.of, self.record);
                    let mut part = Filling { of, record, spans: Vec::new(), complete: true };
                    part.write(inner);
                    if part.complete {
                        self.spans.extend(part.spans);
                    }
                }
            }
        }
    }

    fn place(&mut self, place: &str) {
        if let Some((name, (then, or_else))) = choice(place) {
            let so = if name == "cells" {
                !self.of.cells.is_empty()
            } else {
                self.known(name).is_some_and(is_so)
            };
            return self.write(if so { then } else { or_else });
        }
        let (name, form) = place.split_once(':').map_or((place, None), |(n, f)| (n, Some(f)));
        if name == "cells" {
            self.complete &= !self.of.cells.is_empty();
            return match form {
                Some("count") => self.text(cells_counted(self.of)),
                Some("named") => self.cells_named(),
                Some("all") => self.cells(usize::MAX),
                _ => self.cells(LISTED),
            };
        }
        match (self.known(name), form) {
            (Some(Value::List(all)), Some("all")) => self.values(all, usize::MAX),
            (Some(Value::List(all)), Some(form)) => {
                self.each(all, form.strip_prefix("each ").unwrap_or(form));
            }
            (Some(Value::Count(count)), Some(noun)) => self.text(counted(*count, noun)),
            (Some(Value::Number(seen)), Some(form)) => self.text(self.over(seen, form)),
            (Some(value), _) => self.value(value),
            (None, _) => {
                self.complete = false;
                self.text("unknown".to_owned());
            }
        }
    }

    fn known(&self, name: &str) -> Option<&'f Value> {
        self.record.and_then(|record| record.get(name)).or_else(|| self.of.value(name))
    }

    /// Records by one template.
    fn each(&mut self, all: &'f [Value], template: &str) {
        self.list(all, usize::MAX, ["; ", "; "], |writer, one| {
            if let Value::Record(record) = one {
                let outer = writer.record.replace(record);
                writer.write(template);
                writer.record = outer;
            }
        });
    }

    /// A number with enough digits to show that it is more than another value.
    fn over(&self, seen: &Number, form: &str) -> String {
        let most = form.strip_prefix("over ").and_then(|most| self.known(most));
        let Some(Value::Number(most)) = most else { return shown(seen) };
        match seen.unit {
            Quantity::Change => numbers::change_over(seen.value, most.value),
            _ if seen.value > most.value => numbers::percents_apart(seen.value, most.value).0,
            _ => shown(seen),
        }
    }

    fn text(&mut self, text: String) {
        self.spans.push(Span::Text(text));
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Number(number) => self.text(shown(number)),
            Value::Count(count) => self.text(count.to_string()),
            Value::Flag(flag) => self.text(if *flag { "yes" } else { "no" }.to_owned()),
            Value::Name(name) => self.spans.push(Span::Name(name.clone())),
            Value::Words(words) => self.text(words.clone()),
            Value::List(all) => self.values(all, LISTED),
            Value::Record(record) => {
                let all: Vec<&Value> = record.values().collect();
                self.list(&all, usize::MAX, [", ", ", "], |writer, one| writer.value(one));
            }
        }
    }

    fn values(&mut self, all: &[Value], most: usize) {
        self.list(all, most, [", ", " and "], |writer, one| writer.value(one));
    }

    fn cells_named(&mut self) {
        self.text(cells_counted(self.of));
        if self.of.cells.len() < self.of.cells_all as usize {
            self.text(" (".to_owned());
            self.cells(LISTED);
            self.text(")".to_owned());
        }
    }

    fn cells(&mut self, most: usize) {
        let cells = &self.of.cells;
        self.list(cells, most, [", ", " and "], |writer, cell: &Subject| {
            writer.spans.push(Span::Cell(cell.key(), cell.name.clone()));
            if let Some(value) = &cell.value {
                writer.text(" (".to_owned());
                writer.value(value);
                writer.text(")".to_owned());
            }
        });
    }

    /// `a, b and 3 more`: those are no more than `most`.
    fn list<'t, T>(
        &mut self,
        all: &'t [T],
        most: usize,
        [comma, and]: [&str; 2],
        one: impl Fn(&mut Self, &'t T),
    ) {
        // One more takes no more room than to say so.
        let listed = if all.len() <= most.saturating_add(1) { all.len() } else { most };
        let more = all.len() - listed;
        for (at, item) in all.iter().take(listed).enumerate() {
            match (at, at + 1 == listed && more == 0) {
                (0, _) => {}
                (_, true) => self.text(and.to_owned()),
                (_, false) => self.text(comma.to_owned()),
            }
            one(self, item);
        }
        if more > 0 {
            self.text(format!("{and}{more} more"));
        }
    }
}

fn is_so(value: &Value) -> bool {
    match value {
        Value::Flag(flag) => *flag,
        Value::Count(count) => *count > 0,
        Value::List(all) => !all.is_empty(),
        Value::Name(text) | Value::Words(text) => !text.is_empty(),
        Value::Number(_) | Value::Record(_) => true,
    }
}

fn cells_counted(of: &Finding) -> String {
    let (some, all) = (of.cells.len() as u64, u64::from(of.cells_all));
    match (some, all) {
        (1, 0 | 1) => "the cell".to_owned(),
        (some, 0) => numbers::count(some, "cell"),
        (some, all) if some == all && all == 2 => "both cells".to_owned(),
        (some, all) if some == all => format!("all {all} cells"),
        (some, all) => format!("{some} of {}", numbers::count(all, "cell")),
    }
}

/// A count with a noun, or with its two forms: `query/queries`.
fn counted(count: u64, noun: &str) -> String {
    match noun.split_once('/') {
        Some((one, _)) if count == 1 => format!("1 {one}"),
        Some((_, several)) => format!("{count} {several}"),
        None => numbers::count(count, noun),
    }
}

/// A number with its unit; the ends of its interval share the unit if they can.
pub fn shown(number: &Number) -> String {
    let one = |value: f64| match number.unit {
        Quantity::Iops => numbers::iops(value),
        Quantity::BytesPerSecond => numbers::bandwidth(value),
        Quantity::Bytes => numbers::size(value.max(0.0) as u64),
        Quantity::Seconds => numbers::seconds(value),
        Quantity::Share => numbers::percent(value),
        Quantity::Reach => numbers::reach(value),
        Quantity::Ratio => numbers::ratio(value, None),
        Quantity::Change => numbers::change(value),
        Quantity::Times => format!("{} times", numbers::digits(value)),
        Quantity::Chance => numbers::chance(value),
        Quantity::Exponent => format!("{value:.3}"),
        Quantity::Plain => numbers::digits(value),
    };
    let (Some(low), Some(high)) = (number.low, number.high) else { return one(number.value) };
    if number.unit == Quantity::Ratio {
        return numbers::ratio(number.value, Some((low, high)));
    }
    let (middle, (low, high)) = match number.unit {
        Quantity::Bytes => (one(number.value), numbers::sizes_apart(low as u64, high as u64)),
        _ => (one(number.value), (one(low), one(high))),
    };
    let is_rate = matches!(number.unit, Quantity::Iops | Quantity::BytesPerSecond);
    let [middle, low, high] =
        [middle, low, high].map(|text| if is_rate { three_digits(text) } else { text });
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    if unit(&middle).is_some() && unit(&middle) == unit(&low) && unit(&low) == unit(&high) {
        let bare = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        return format!("{middle} [{}, {}]", bare(&low), bare(&high));
    }
    format!("{middle} [{low}, {high}]")
}

/// A short number with the zeros that show how exactly it is known: `1 K` as `1.00 K`.
fn three_digits(text: String) -> String {
    let (number, unit) = text.split_once(' ').map_or((text.as_str(), None), |(n, u)| (n, Some(u)));
    let is_short = number.len() < 4 && (number.len() == 1 || number.contains('.'));
    match (number.parse::<f64>(), unit) {
        (Ok(value), Some(unit)) if is_short => format!("{value:.2} {unit}"),
        _ => text,
    }
}

/// Texts that follow each other are one.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    for span in spans {
        match (all.last_mut(), span) {
            (Some(Span::Text(before)), Span::Text(text)) => before.push_str(&text),
            (_, Span::Text(text)) if text.is_empty() => {}
            (_, span) => all.push(span),
        }
    }
    all
}

fn capitalised(mut spans: Vec<Span>) -> Vec<Span> {
    if let Some(Span::Text(first)) = spans.first_mut() {
        *first = numbers::capital(first);
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code::Code;

    /// Codes without a template of their own. It only goes down.
    const OWN_WORDS: usize = 23;

    fn written(template: &str, of: &Finding) -> String {
        plain(&spans(template, of))
    }

    fn found() -> Finding {
        Finding::new(Code::NothingMeasured)
    }

    #[test]
    fn values_have_their_units_and_intervals() {
        let of = found()
            .with("rate", Number::iops(63_113.0).within(61_000.0, 65_000.0))
            .with("lost", Number::seconds(3.5))
            .with("n", 1_u64)
            .with("device", Value::name("vda"));
        assert_eq!(written("{rate} of {device}", &of), "63.1 K [61.0, 65.0] of `vda`");
        assert_eq!(written("in {n:visit}, {lost}", &of), "In 1 visit, 3.5 s");
        let wide = found().with("rate", Number::iops(1200.0).within(900.0, 1500.0));
        assert_eq!(written("{rate}", &wide), "1.20 K [900, 1.50 K]");
        let narrow = found().with("rate", Number::iops(1000.0).within(1000.0, 1001.0));
        assert_eq!(written("{rate}", &narrow), "1.00 K [1.00, 1.00]");
        let odd = found().with("a", Value::name("a`b")).with("b", Value::name(""));
        assert_eq!(written("{a} {b}", &odd), "\"a`b\" \"\"");
        let change = Number::change(-0.049).within(-0.089, 0.009);
        let of = found().with("seen", Number::share(0.2003)).with("most", Number::share(0.2));
        let of = of.with("change", change).with("size", Number::bytes(1 << 30).within(1e9, 1.2e9));
        assert_eq!(written("{seen:over most} of {most}", &of), "20.03 % of 20 %");
        assert_eq!(written("{change:over most}, {size}", &of), "-4.9 %, 1 GiB [954 MiB, 1.12 GiB]");
        assert_eq!(written("{change}", &of), "-4.9 % [-8.9, +0.9]");
        assert_eq!(written("{n:query/queries}", &found().with("n", 3_u64)), "3 queries");
    }

    #[test]
    fn what_is_missing_leaves_out_its_part() {
        let of = found().with("lost", Number::seconds(3.5)).with("once", false);
        assert_eq!(written("a dip[; {lost} lost][ at {when}].", &of), "A dip; 3.5 s lost.");
        assert_eq!(written("{once?once|often}, {lost?{lost} lost|}", &of), "Often, 3.5 s lost");
    }

    #[test]
    fn records_are_shown_alike() {
        let thing = |name: &str, size: u64| {
            Value::record([("name", name.into()), ("size", Number::bytes(size).into())])
        };
        let of = found().with("things", vec![thing("a", 1), thing("b", 1 << 10)]).with("on", "r1");
        let template = "{things:each {name} ({size?{size}|none} of {on}[, {no}])}.";
        assert_eq!(written(template, &of), "a (1 B of r1); b (1 KiB of r1).");
        assert_eq!(places(template), ["things", "name", "size", "size", "on", "no"]);
        let many = found().with("all", (0..8).map(Value::Count).collect::<Vec<_>>());
        assert_eq!(written("{all}", &many), "0, 1, 2, 3, 4 and 3 more");
        assert_eq!(written("{all:all}", &many), "0, 1, 2, 3, 4, 5, 6 and 7");
        assert_eq!(written("[with {none:each {name}}]", &many), "");
        let p = |value| written("{p}", &found().with("p", Number::chance(value)));
        assert_eq!([0.0123, 0.000_45, 1e-9].map(p), ["0.012", "0.0004", "<0.0001"]);
    }

    #[test]
    fn many_cells_are_counted() {
        let cell = |n: u32| Subject::new(n, None, format!("read {n}"));
        let of = found().on_all((0..9).map(cell), 84);
        let five = "In `read 0`, `read 1`, `read 2`, `read 3`, `read 4` and 4 more";
        assert_eq!(written("in {cells}", &of), five);
        assert_eq!(written("{cells:count}", &of), "9 of 84 cells");
        let of = found().on_all([cell(1), cell(2)], 84);
        assert_eq!(written("{cells:named}", &of), "2 of 84 cells (`read 1` and `read 2`)");
        let of = found().on_all([cell(1).with(Number::share(0.5)), cell(2)], 2);
        assert_eq!(
            written("{cells:count}: {cells}", &of),
            "Both cells: `read 1` (50 %) and `read 2`"
        );
    }

    #[test]
    fn fewer_and_fewer_verdicts_make_their_own_words() {
        let is_whole = |code: &&Code| ["{text}", "{evidence}"].contains(&code.about().text);
        let own = Code::ALL.iter().filter(is_whole).count();
        assert!(own <= OWN_WORDS, "{own}: give the new code a template with values");
        assert_eq!(own, OWN_WORDS, "fewer: lower OWN_WORDS");
    }

    #[test]
    fn every_template_can_be_read() {
        for code in Code::ALL {
            let about = code.about();
            let others = [about.mark, about.next, about.why, about.caution];
            let others = others.into_iter().flatten().chain(about.evidence.iter().copied());
            for template in others.chain([about.text]) {
                assert!(!template.is_empty(), "{}", about.name);
                let open = template.matches(['{', '[']).count();
                assert_eq!(open, template.matches(['}', ']']).count(), "{}", about.name);
                let named =
                    |place: &&str| place.chars().all(|c| c.is_ascii_lowercase() || c == '_');
                assert!(places(template).iter().all(named), "{}: {template}", about.name);
            }
        }
    }
}
