//! Below a phase's table: each stream beside others against the same stream alone.

use explain::View;
use explain::interference::{Interference, interference};
use record::Run;

use crate::text::{Columns, cut, known, plain, three_digits, wrapped};

/// Longest name in a column.
const TEXT: usize = 24;

/// Rates and 99th percentiles of the streams of a phase beside others, alone, and their ratios;
/// `None` where no stream ran both ways.
pub(crate) fn table(run: &Run, phase: &str) -> Option<String> {
    let all = interference(&View::new(run)).found;
    let of_phase: Vec<&Interference> = all.iter().filter(|one| one.phase == phase).collect();
    let first = of_phase.first()?;
    let fields: Vec<&str> = first.place.iter().map(|(field, _)| field.as_str()).collect();
    let text = 3 + fields.len();
    let mut columns = Columns::new((0..text + 7).map(|column| column < text).collect());
    let longest = of_phase.iter().filter_map(|one| one.p99_ns.max(one.p99_alone_ns)).max();
    let (unit, scale) = if longest.unwrap_or(0) < 10_000_000 { ("us", 1e3) } else { ("ms", 1e6) };
    let heads = ["rate", "alone", "ratio", "95 %", "p99", "alone", "ratio"];
    let units = ["1/s", "1/s", "", "", unit, unit, ""];
    let about = |names: [&str; 3]| {
        let shown = fields.iter().map(|field| match names[0] {
            "" => String::new(),
            _ => cut(&plain(field), TEXT),
        });
        names.map(str::to_owned).into_iter().chain(shown).collect::<Vec<_>>()
    };
    let owned = |words: [&str; 7]| words.map(str::to_owned).to_vec();
    columns.row([about(["stream", "operation", "beside"]), owned(heads)].concat());
    columns.row([about(["", "", ""]), owned(units)].concat());
    for one in &of_phase {
        columns.row(line(one, scale));
    }
    let mut out = columns.print();
    let mut told: Vec<String> = Vec::new();
    for one in &of_phase {
        let not_reached = one.not_reached();
        if not_reached.is_empty() {
            continue;
        }
        let beside = one.beside.iter().chain([&one.stream]);
        let mut all: Vec<String> = beside.map(|name| cut(&plain(name), TEXT)).collect();
        all.sort();
        for found in not_reached {
            let text = format!("{}: {}", all.join("+"), plain(&found.text()));
            if !told.contains(&text) {
                told.push(text);
            }
        }
    }
    out.extend(told.iter().map(|text| wrapped("", text)));
    Some(out)
}

fn line(one: &Interference, scale: f64) -> Vec<String> {
    let name = |text: &str| cut(&plain(text), TEXT);
    let time = |ns: Option<u64>| known(ns.map(|ns| ns as f64 / scale));
    let ends = one.rate_ratio_ends.map(|(low, high)| {
        let end =
            |value: f64| if value > 1000.0 { ">1000".to_owned() } else { three_digits(value) };
        format!("{} to {}", end(low), end(high))
    });
    let mut cells = vec![name(&one.stream), name(&one.operation), name(&one.beside.join("+"))];
    cells.extend(one.place.iter().map(|(_, value)| name(value)));
    cells.extend([
        three_digits(one.rate),
        three_digits(one.rate_alone),
        three_digits(one.rate_ratio),
        ends.unwrap_or_else(|| "-".to_owned()),
        time(one.p99_ns),
        time(one.p99_alone_ns),
        known(one.p99_ratio),
    ]);
    cells
}
