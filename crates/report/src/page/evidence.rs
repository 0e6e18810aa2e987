//! Where each sentence of a verdict can be seen: its figure, and the cells that it names.

use finding::{Finding, Section};

use super::{Evidence, Named};

/// What each sentence of a section shows, in the order of [`Section::sentences`].
///
/// * `figures`: those of the question, the best first.
pub fn of(section: &Section, figures: &[&str]) -> Vec<Evidence> {
    let shown = section.findings.iter().map(|finding| of_finding(finding, figures));
    // Advice shows nothing.
    let none = std::iter::repeat_with(|| Evidence { figures: Vec::new(), cells: Vec::new() });
    shown.chain(none).take(section.sentences().len()).collect()
}

fn of_finding(finding: &Finding, figures: &[&str]) -> Evidence {
    let own = finding.code.about().figures().iter().copied();
    let mut ordered: Vec<String> = Vec::new();
    for figure in own.chain(figures.iter().copied()) {
        if !ordered.iter().any(|known| known == figure) {
            ordered.push(figure.to_owned());
        }
    }
    let cells: Vec<Named> = finding
        .cells
        .iter()
        .map(|cell| Named { words: cell.name.clone(), cell: cell.key() })
        .collect();
    Evidence { figures: ordered, cells }
}

#[cfg(test)]
mod tests {
    use finding::{Code, Question, Subject};

    use super::*;

    #[test]
    fn sentences_lead_where_they_can_be_seen() {
        let cell = Subject::new(3, None, "read 4KiB 1");
        let findings = vec![
            Finding::new(Code::Queue),
            Finding::new(Code::WaitsUnknown).on(cell),
            Finding::new(Code::VisitsLost),
        ];
        let section = Section::new(Question::Limits, findings).unwrap();
        let found = of(&section, &["roofline", "bars"]);
        assert_eq!(found[0].figures, ["stack", "roofline", "size", "bars"]);
        assert_eq!(found[1].cells[0].cell, "3.0");
        let advice = found.last().unwrap();
        assert_eq!((found.len(), advice.figures.len()), (4, 0), "what to do shows nothing");
    }
}
