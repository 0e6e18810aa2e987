//! `plimsoll compare --format junit`: a test suite for each side, a test case for each cell.

use std::fmt::Write;

use explain::compare::Comparison;

use super::gate::{Case, Ruling, Strictness, cases};

/// The report, in the subset of JUnit's XML that Jenkins, GitLab and GitHub actions read.
pub fn junit(comparison: &Comparison, how: Strictness) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let reference = comparison.sides.first();
    for (against, side) in comparison.against.iter().zip(comparison.sides.iter().skip(1)) {
        let cases = cases(against);
        let elements: Vec<_> = cases.iter().map(|case| element(case, how)).collect();
        let count = |name: &str| elements.iter().filter(|element| **element == name).count();
        let run = reference.map_or("", |reference| &reference.run);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
            escaped(&format!("{} {} against A {run}", side.label, side.run)),
            cases.len(),
            count("failure"),
            count("error"),
            count("skipped"),
        );
        for (case, element) in cases.iter().zip(&elements) {
            out.push_str(&testcase(case, element, &side.suite));
        }
        out.push_str("  </testsuite>\n");
    }
    out + "</testsuites>\n"
}

/// Which element says how a case came out; a case that passed says it in its output.
const fn element(case: &Case, how: Strictness) -> &'static str {
    match (case.ruling, how) {
        (Ruling::Worse, _) => "failure",
        (Ruling::NotCompared, _) | (Ruling::Open, Strictness::Strict) => "error",
        (Ruling::Open, Strictness::Worse) => "skipped",
        (Ruling::Passed, _) => "system-out",
    }
}

fn testcase(case: &Case, element: &str, suite: &str) -> String {
    let (told, behind) = (escaped(&case.told), escaped(&case.behind));
    let message = match element {
        "system-out" => String::new(),
        _ => format!(" message=\"{told}\""),
    };
    format!(
        "    <testcase classname=\"{}\" name=\"{}\">\n      <{element}{message}>{}</{element}>\n    </testcase>\n",
        escaped(suite),
        escaped(&case.name),
        format!("{told}\n{behind}").trim_end(),
    )
}

/// Text for an element or an attribute. XML allows no control characters, however they are written.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.split('\n').map(report::plain).collect::<Vec<_>>().join("\n").chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        let odd = "a<b> & \"c\" ]]>\u{1b}[2J\u{0}\u{ffff}\nd";
        let wanted = "a&lt;b&gt; &amp; &quot;c&quot; ]]&gt;\\u{1b}[2J\\u{0}\u{fffd}\nd";
        assert_eq!(escaped(odd), wanted);
    }

    #[test]
    fn what_cannot_be_told_is_an_error_where_that_fails() {
        let case = |ruling| Case { name: "a".into(), ruling, told: "x".into(), behind: "y".into() };
        let of =
            |ruling| [Strictness::Worse, Strictness::Strict].map(|how| element(&case(ruling), how));
        assert_eq!(of(Ruling::Worse), ["failure"; 2]);
        assert_eq!(of(Ruling::NotCompared), ["error"; 2]);
        assert_eq!(of(Ruling::Open), ["skipped", "error"]);
        assert_eq!(of(Ruling::Passed), ["system-out"; 2]);
    }
}
