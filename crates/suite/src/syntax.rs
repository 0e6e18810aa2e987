//! What is wrong with a text that is no TOML, in words for who wrote it.

use crate::error::Problem;

/// Where the parser stopped, and why.
pub(crate) fn problem(text: &str, error: &toml::de::Error) -> (usize, Problem) {
    let span = error.span().unwrap_or(0..0);
    // The parser's message may have several lines; ours have one.
    let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
    let problem = match message.as_str() {
        "duplicate key" => text.get(span.clone()).map(|key| duplicate(key, text, span.start)),
        _ => bare(text, span.start),
    };
    (span.start, problem.unwrap_or(Problem::Syntax(message)))
}

/// * `key`: as it stands at `start`, quotes and all.
fn duplicate(key: &str, text: &str, start: usize) -> Problem {
    let line = line_at(text, start);
    // Of a table the parser names the last step only.
    let header = line.trim().strip_prefix('[').and_then(|rest| rest.split(']').next());
    let name = header.map(str::trim).filter(|header| header.ends_with(key)).unwrap_or(key);
    Problem::Duplicate { what: "key".to_owned(), name: name.trim_matches(['"', '\'']).to_owned() }
}

/// A word without quotes where a value is wanted, if that is what the parser stopped at.
fn bare(text: &str, start: usize) -> Option<Problem> {
    let begin = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = line_at(text, start);
    let place = start.checked_sub(begin)?;
    let delimiter = |c: char| "=,[]{}#\"'".contains(c);
    let from = line.get(..place)?.rfind(delimiter).map_or(0, |at| at + 1);
    let rest = line.get(from..)?;
    let value = rest.get(..rest.find(delimiter).unwrap_or(rest.len()))?.trim();
    let head = line.get(..from)?;
    let is_value = head.trim_end().ends_with(['=', ',', '[']) && head.contains('=');
    let is_word = |c: char| c.is_ascii_alphanumeric() || ".%+-_ :".contains(c);
    if !is_value || value.is_empty() || !value.chars().all(is_word) || value.parse::<f64>().is_ok()
    {
        return None;
    }
    // Another pair without a comma, not a value.
    if rest.get(value.len()..)?.trim_start().starts_with('=') {
        return None;
    }
    Some(Problem::Bare { key: key_before(head)?.to_owned(), value: value.to_owned() })
}

/// The last key in front of a value.
fn key_before(head: &str) -> Option<&str> {
    let (keys, _) = head.rsplit_once('=')?;
    let key = keys.trim_end();
    let key = key.get(key.rfind(['{', ',', ' ']).map_or(0, |at| at + 1)..)?;
    Some(key.trim_matches(['"', '\''])).filter(|key| !key.is_empty())
}

/// The line in which the byte at `offset` stands.
fn line_at(text: &str, offset: usize) -> &str {
    let begin = text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let rest = text.get(begin..).unwrap_or_default();
    rest.lines().next().unwrap_or_default()
}
