//! Findings by question, as text and as JSON.

use schemars::JsonSchema;
use serde::Serialize;

use crate::code::{Code, Question, Severity};
use crate::found::{Finding, Subject};
use crate::value::Value;

/// Findings as people read them: what was found, then what to do, each said once.
pub fn texts(findings: &[Finding]) -> Vec<String> {
    let mut said: Vec<String> = findings.iter().map(Finding::text).collect();
    for next in findings.iter().filter_map(Finding::next) {
        if !said.contains(&next) {
            said.push(next);
        }
    }
    said
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// What is answered.
    pub question: Question,
    /// The verdict first, then what it rests on.
    pub findings: Vec<Finding>,
}

impl Section {
    /// The findings of a question; `None` if there are none.
    pub fn new(question: Question, findings: Vec<Finding>) -> Option<Self> {
        (!findings.is_empty()).then_some(Self { question, findings })
    }

    /// How much the worst of its findings matters.
    pub fn severity(&self) -> Severity {
        self.findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Unknown)
    }

    /// As people read it: what was found, then what to do, each said once.
    pub fn sentences(&self) -> Vec<String> {
        texts(&self.findings)
    }
}

/// How many sentences sections have.
pub fn sentences(sections: &[Section]) -> usize {
    sections.iter().map(|section| section.sentences().len()).sum()
}

/// The findings that matter most, in the order of their sections. The answer is always there.
///
/// * `lines`: of `width` letters, for all sections but the answer, with a heading and an empty line for each.
pub fn shortened(sections: &[Section], lines: usize, width: usize) -> Vec<Section> {
    const HEADING: usize = 2;
    let height = |text: &str| text.chars().count().div_ceil(width.max(1));
    let mut ranked: Vec<(usize, usize, usize)> = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        let ranks = section.findings.iter().map(|finding| rank(section.question, finding));
        ranked.extend(ranks.enumerate().map(|(place, rank)| (rank, at, place)));
    }
    ranked.sort_unstable();
    let mut kept: Vec<Vec<usize>> = vec![Vec::new(); sections.len()];
    let mut left = lines;
    for (rank, at, place) in ranked {
        let Some((section, kept)) = sections.get(at).zip(kept.get_mut(at)) else { continue };
        let Some(finding) = section.findings.get(place) else { continue };
        let heading = if kept.is_empty() { HEADING } else { 0 };
        let next = finding.next().map_or(0, |next| height(&next));
        let cost = heading + height(&finding.text()) + next;
        if rank == 0 {
            kept.push(place);
        } else if cost <= left {
            left -= cost;
            kept.push(place);
        } else {
            // What matters less does not come before what matters more.
            left = 0;
        }
    }
    let parts = sections.iter().zip(kept).filter_map(|(section, mut kept)| {
        kept.sort_unstable();
        let findings = kept.into_iter().filter_map(|at| section.findings.get(at).cloned());
        Section::new(section.question, findings.collect())
    });
    parts.collect()
}

/// The lower, the sooner a person has to know it.
const fn rank(question: Question, finding: &Finding) -> usize {
    match (question, finding.severity) {
        (Question::Answer, _) => 0,
        (_, Severity::Failure) => 1,
        (_, Severity::Warning) => 2,
        (Question::Limits, Severity::Info) => 3,
        (_, Severity::Unknown) => 4,
        (_, Severity::Info) => 5,
        (_, Severity::Good) => 6,
    }
}

/// A section as JSON has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Section")]
struct SectionJson {
    /// What is answered.
    question: Question,
    /// `Stalls`, `Caches`, ...
    title: String,
    /// The text of all: what was found, then what to do.
    sentences: Vec<String>,
    /// The same as values.
    findings: Vec<FindingJson>,
}

/// A finding as JSON has it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingJson {
    /// What it is.
    code: Code,
    /// How much it matters.
    severity: Severity,
    /// In words.
    text: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// The cells that it is about.
    cells: Vec<Subject>,
    /// The numbers and names in it.
    values: std::collections::BTreeMap<String, Value>,
}

impl Serialize for Section {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SectionJson::from(self).serialize(serializer)
    }
}

impl JsonSchema for Section {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        SectionJson::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        SectionJson::json_schema(generator)
    }
}

impl From<&Section> for SectionJson {
    fn from(section: &Section) -> Self {
        let entry = |finding: &Finding| FindingJson {
            code: finding.code,
            severity: finding.severity,
            text: finding.text(),
            next: finding.next(),
            values: finding
                .values
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            cells: finding.cells.clone(),
        };
        Self {
            question: section.question,
            title: section.question.title().to_owned(),
            sentences: section.sentences(),
            findings: section.findings.iter().map(entry).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(question: Question, codes: &[Code]) -> Section {
        let finding = |code: &Code| Finding::said(*code, "w".repeat(50));
        Section::new(question, codes.iter().map(finding).collect()).unwrap()
    }

    #[test]
    fn what_matters_most_is_kept_and_the_answer_always() {
        let all = [
            section(Question::Answer, &[Code::Limit, Code::Limit]),
            section(Question::Run, &[Code::UnderWay, Code::VisitsLost]),
            section(Question::Limits, &[Code::Limit, Code::LimitsUnknown]),
        ];
        let lines = |budget| {
            let kept = shortened(&all, budget, 100);
            kept.iter().map(|section| section.findings.len()).collect::<Vec<_>>()
        };
        assert_eq!(lines(100), [2, 2, 2]);
        assert_eq!(lines(0), [2]);
        // A heading, an empty line, two lines of the finding and its advice.
        assert_eq!(lines(5), [2, 1]);
        assert_eq!(lines(8), [2, 1, 1]);
        let kept = shortened(&all, 5, 100);
        assert_eq!(kept[1].findings[0].code, Code::VisitsLost);
    }
}
