//! One line per visit, stream and operation.

use std::fmt::Write;

use record::Run;

use crate::rows::{self, Value, WIDTH};

/// The columns' names, in order; see `docs/formats.md`.
pub const COLUMNS: [&str; WIDTH] = {
    let mut names = [""; WIDTH];
    let mut k = 0;
    while k < WIDTH {
        names[k] = rows::COLUMNS[k].name;
        k += 1;
    }
    names
};

/// A header line, then one line per visit, stream and operation, in the order of the cells.
///
/// Quoting as in RFC 4180; lines end with a bare newline, which every reader takes and line
/// tools need. What is not known is empty. CPU is the stream's over all its operations, device
/// bytes are the visit's. No text is a formula for the spreadsheet that opens it.
pub fn csv(run: &Run) -> String {
    let mut out = COLUMNS.join(",");
    out.push('\n');
    for row in rows::rows(run) {
        line(&mut out, &row.map(field));
    }
    out
}

fn line(out: &mut String, fields: &[String]) {
    for (k, field) in fields.iter().enumerate() {
        if k > 0 {
            out.push(',');
        }
        if field.contains([',', '"', '\n', '\r']) || field.starts_with(' ') || field.ends_with(' ')
        {
            // Writing to a string cannot fail.
            let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

fn field(value: Option<Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Text(text)) => no_formula(crate::text::plain(&text)),
        Some(Value::Count(n)) => n.to_string(),
        Some(Value::Number(x)) => x.to_string(),
        Some(Value::Flag(yes)) => yes.to_string(),
        Some(Value::Time(ns)) => ns.to_string(),
    }
}

/// Spreadsheets work out what begins like a formula, and formulas can read files and send them away.
/// Names of targets, suites and streams are others'. A quote before it makes it text for all of them.
///
/// Method: OWASP, "CSV Injection"; its tabs and line ends are written out by [`crate::text::plain`].
fn no_formula(text: String) -> String {
    let begins_one = |c: char| "=+-@\u{ff1d}\u{ff0b}\u{ff0d}\u{ff20}".contains(c);
    // They pass over blanks before it.
    if text.trim_start().starts_with(begins_one) { format!("'{text}") } else { text }
}
