//! `plimsoll compare --format markdown`: for comments on changes and summaries of jobs.

use std::fmt::Write;

use explain::compare::{Against, CellComparison, Comparison};

use super::gate::Ruling;
use super::verdict;

/// The headline of each side, its cells with the worst first, and what that rests on.
pub fn markdown(comparison: &Comparison) -> String {
    let mut out = String::new();
    for against in &comparison.against {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "**{}**\n", prose(&against.headline()));
        if !against.cells.is_empty() {
            out.push_str(&table(against));
        }
        out.push_str("<details><summary>What this rests on</summary>\n\n");
        for sentence in against.sentences(comparison).iter().skip(1) {
            let _ = writeln!(out, "- {}", prose(sentence));
        }
        out.push_str("\n</details>\n\n");
    }
    for side in &comparison.sides {
        let on = if side.target.is_empty() { "" } else { " on " };
        let (run, suite, target) = (code(&side.run), code(&side.suite), code(&side.target));
        let _ = writeln!(out, "- {}: {run}, {suite}{on}{target}", side.label);
    }
    out
}

fn table(against: &Against) -> String {
    let mut cells: Vec<&CellComparison> = against.cells.iter().collect();
    let ratio = |cell: &CellComparison| cell.outcome.ratio.map_or(0.0, |ratio| ratio.ratio);
    cells.sort_by(|a, b| Ruling::of(a).cmp(&Ruling::of(b)).then(ratio(a).total_cmp(&ratio(b))));
    let label = &against.label;
    let mut out = format!("| cell | A | {label} | ratio | verdict |\n|---|---:|---:|---|---|\n");
    for cell in cells {
        let told = [cell.reference.text(), cell.other.text(), cell.outcome.ratio_told()];
        let [a, b, ratio] = told.map(|text| prose(&text));
        let verdict = prose(&verdict(&cell.outcome));
        let _ = writeln!(out, "| {} | {a} | {b} | {ratio} | {verdict} |", code(&cell.cell));
    }
    out + "\n"
}

/// Text that is nothing but text.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in report::plain(text).chars() {
        if "\\`*_[]<>&|~$#".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A name between more backticks than it has; a table's bars are escaped even there. Nothing in it
/// is a link or calls anybody.
fn code(name: &str) -> String {
    if name.is_empty() {
        return String::new();
    }
    let name = report::plain(name).replace('|', "\\|");
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("{fence}{name}{fence}") } else { format!("{fence} {name} {fence}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_no_markup() {
        assert_eq!(prose("a|b <img> [c](d) `e`"), "a\\|b \\<img\\> \\[c\\](d) \\`e\\`");
        assert_eq!(code("read 1|2 @all"), "`read 1\\|2 @all`");
        assert_eq!(code("a``b\n"), "``` a``b\\n ```");
    }
}
