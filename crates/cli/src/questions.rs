//! Suites by the question that each answers: for listings, and for who does not know a name.

use serde::Deserialize;

use crate::exit::ExitCode;
use crate::failure::Failure;

/// Suites that answer one question.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub title: String,
    pub suites: Vec<Member>,
}

/// A suite of a group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    pub name: String,
    /// What may be typed instead of its name, parted by spaces.
    words: String,
}

/// Most names in a hint.
const NEAR_MAX: usize = 3;

/// Every suite that comes with the program, those to start with first.
pub fn groups() -> Result<Vec<Group>, Failure> {
    #[derive(Deserialize)]
    struct File {
        group: Vec<Group>,
    }
    toml::from_str::<File>(include_str!("questions.toml"))
        .map(|file| file.group)
        .map_err(|e| Failure::caused(ExitCode::Unexpected, "the table of suites is broken", e))
}

/// Names of suites that somebody may mean by a word, or by its beginning: those that answer the
/// question, or the one that is spelled nearly so.
pub fn near(groups: &[Group], word: &str) -> Vec<String> {
    let all = || groups.iter().flat_map(|group| &group.suites);
    let is_meant = |known: &str| word.len() > 2 && known.starts_with(word);
    let answers = |one: &&Member| one.words.split(' ').any(is_meant);
    let meant: Vec<String> =
        all().filter(answers).take(NEAR_MAX).map(|one| one.name.clone()).collect();
    if !meant.is_empty() {
        return meant;
    }
    let spelled = all().map(|one| (strsim::jaro_winkler(word, &one.name), one));
    let nearest = spelled.filter(|(score, _)| *score >= 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.map(|(_, one)| one.name.clone()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_in_one_group() {
        let groups = groups().unwrap();
        let mut listed: Vec<&str> =
            groups.iter().flat_map(|group| &group.suites).map(|one| one.name.as_str()).collect();
        listed.sort_unstable();
        let all = suite::builtin().iter().chain(suite::builtin_lists());
        let mut known: Vec<&str> = all.map(|suite| suite.name).collect();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    #[test]
    fn a_question_finds_its_suites() {
        let groups = groups().unwrap();
        let near = |word: &str| near(&groups, word).join(" ");
        assert_eq!(near("commits"), "commits wal pg-test-fsync");
        assert_eq!(near("bm-flsh"), "bm-flash");
        assert_eq!(near("cach"), "reread working-set");
        assert_eq!(near("zzz"), "");
    }
}
