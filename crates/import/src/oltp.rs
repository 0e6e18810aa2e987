//! sysbench OLTP, 0.4 to 1.x: one operation, the transaction. Statements are settings of the
//! result: they differ between versions, so that only transactions compare.

use crate::draft::{Cell, Draft, Drafts, Figure, RESULT, Stream};
use crate::sysbench::{head, histogram, outputs, tail, threads};
use crate::text::{Found, Line, Reader, Text};

const OTHERS: [&str; 6] = [
    "deadlocks:",
    "read/write requests:",
    "other operations:",
    "queries:",
    "ignored errors:",
    "reconnects:",
];
const TITLES: [&str; 2] = ["General statistics:", "Test execution summary:"];

pub(crate) fn read(text: &Text) -> Found<Vec<Draft>> {
    let mut drafts = Drafts::default();
    for output in outputs(text) {
        let draft = one(&output)?;
        drafts.push(draft);
    }
    drafts.all().ok_or_else(|| text.ended("the output of a run"))
}

fn one(text: &Text) -> Found<Draft> {
    let head = head(text)?;
    let mut draft =
        Draft { suite: "sysbench-oltp".to_owned(), version: head.version, ..Draft::default() };
    for line in &text.lines {
        if let Some((name, value)) = setting(line)? {
            draft.set(name, value);
        }
    }
    let mut reader = text.reader();
    reader.find("queries performed:")?;
    let mut sum = 0u64;
    for label in ["read:", "write:", "other:"] {
        let (line, word) = reader.want(label)?;
        let count = line.whole(word, "a count")?;
        sum = sum.saturating_add(count);
        draft.settings.push((
            format!("result statements {}", label.trim_end_matches(':')),
            count.to_string(),
        ));
    }
    let (line, word) = reader.want("total:")?;
    if line.whole(word, "a count")? != sum {
        return Err(line.unfit_word(word, format!("the sum of the counts, {sum}")));
    }
    let (requests, rate) = paired(&mut reader, "transactions:")?;
    draft.settings.extend(others(&mut reader)?);
    let tail = tail(&mut reader, histogram(text)?)?;
    let threads = threads(&mut draft, head.threads, &tail);
    draft.settings.extend(tail.told);
    let figure = Figure {
        requests: Some(requests),
        iops: Some(rate),
        latency: tail.latency,
        ..Figure::of("transaction")
    };
    let stream = Stream {
        threads,
        queue_depth: threads.map(|_| 1),
        ops: vec![figure],
        ..Stream::of("transaction")
    };
    draft.cells.push(Cell {
        phase: "oltp".to_owned(),
        streams: vec![stream],
        elapsed_ns: tail.elapsed_ns,
        ..Cell::default()
    });
    Ok(draft)
}

/// The one place where 0.4 says how many requests it was to make.
const LIMIT: &str = "Maximum number of requests for OLTP test is limited to ";

/// What a line above the results says of how the test was set: name and value.
fn setting<'a>(line: &'a Line<'a>) -> Found<Option<(&'static str, &'a str)>> {
    let text = line.text.trim();
    if let Some(most) = text.strip_prefix(LIMIT) {
        line.whole(most, "a number of requests")?;
        return Ok(Some(("max-requests", most)));
    }
    let is_test = text.starts_with("Doing ")
        || text.starts_with("Running ") && !text.starts_with("Running the test");
    if is_test {
        return Ok(Some(("test", text)));
    }
    let using = text.strip_prefix("Using ").or_else(|| text.strip_prefix("Not using "));
    let Some(rest) = using else { return Ok(None) };
    let parts = [
        ("distribution", "distribution"),
        ("starting transactions", "transactions begin with"),
        ("auto_inc", "auto_inc"),
        ("test tables", "tables"),
    ];
    let found = parts.iter().find(|(mark, _)| rest.contains(mark));
    Ok(Some((found.map_or("option", |(_, name)| *name), text)))
}

/// The counts below the transactions, in the words of the version. Of them the errors are told:
/// deadlocks and the like, which the database raised, and no device.
fn others(reader: &mut Reader) -> Found<Vec<(String, String)>> {
    let mut errors = Vec::new();
    let mut labels = Vec::new();
    loop {
        let Some(line) = reader.next() else { return Err(reader.ended("`total time:`")) };
        if TITLES.iter().any(|title| line.text.trim() == *title) {
            let old = ["read/write requests:", "other operations:"];
            let new = ["queries:", "ignored errors:", "reconnects:"];
            let all = |wanted: &[&str]| wanted.iter().all(|w| labels.contains(w));
            return if all(&old) || all(&new) {
                Ok(errors)
            } else {
                Err(line.unfit("counts of requests before it"))
            };
        }
        let label = OTHERS.into_iter().find(|label| line.after(label).is_some());
        let label = label.ok_or_else(|| line.unfit("a count of the result"))?;
        let (count, _) = pair(line, label)?;
        labels.push(label);
        if matches!(label, "ignored errors:" | "deadlocks:") {
            let name = format!("{RESULT}{}", label.trim_end_matches(':'));
            errors.push((name, count.to_string()));
        }
    }
}

fn paired(reader: &mut Reader, label: &str) -> Found<(u64, f64)> {
    let (line, _) = reader.want(label)?;
    pair(line, label)
}

/// `50007 (131.93 per sec.)`.
fn pair(line: &Line, label: &str) -> Found<(u64, f64)> {
    let rest = line.after(label).unwrap_or_default();
    let words: Vec<_> = rest.split_whitespace().collect();
    let [count, rate, "per", "sec.)"] = words.as_slice() else {
        return Err(line.unfit("a count and a rate, `1784 (592.21 per sec.)`"));
    };
    let count = line.whole(count, "a count")?;
    Ok((count, line.number(rate.trim_start_matches('('), "a rate")?))
}
