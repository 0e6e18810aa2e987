//! No marks of unfinished work.

use anyhow::Result;

use super::Verdict;
use crate::repo::Repo;
use crate::source::{code_only, lines_with};

/// Anywhere in the text, comments included. Written in two parts so that this file passes.
const IN_TEXT: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// In code.
const IN_CODE: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimplement", "ed!("),
    concat!("db", "g!("),
    concat!("#[ign", "ore]"),
];

pub fn look(repo: &Repo) -> Result<Verdict> {
    let mut faults = Vec::new();
    for path in repo.files(&["rs", "ts"])? {
        faults.extend(faults_in(&path.to_string_lossy(), &repo.read(&path)?));
    }
    Ok(Verdict::faults(faults))
}

fn faults_in(path: &str, text: &str) -> Vec<String> {
    let code = code_only(text);
    let in_text = IN_TEXT.iter().map(|word| (*word, lines_with(text, word)));
    let in_code = IN_CODE.iter().map(|word| (*word, lines_with(&code, word)));
    let found = in_text.chain(in_code);
    found
        .flat_map(|(word, lines)| {
            lines.into_iter().map(move |line| format!("{path}:{line}: `{word}` is left over"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_over_marks_are_found() {
        let text = format!("// {} later\nfn a() {{ {}) }}\n", IN_TEXT[0], IN_CODE[0]);
        assert_eq!(faults_in("a.rs", &text).len(), 2);
        assert_eq!(faults_in("a.rs", &format!("// not a {}) in code", IN_CODE[0])), [""; 0]);
        assert_eq!(faults_in("a.rs", "fn a() {}"), [""; 0]);
    }
}
