//! Where each sentence of a verdict can be seen: its figure, and the cells that it names.

use explain::gap;
use explain::view::View;

use super::{Evidence, Named};

/// What advice begins with: it shows nothing.
const ADVICE: &str = "Next:";

/// Words of a sentence, and the figure that shows best what it says, whatever its question. The
/// first that is found counts.
const BEST: [(&str, &str); 9] = [
    ("the queue is at", "stack"),
    ("layer", "stack"),
    ("the model fits", "roofline"),
    (" end at ", "roofline"),
    (" ends at ", "roofline"),
    ("from blocks of about", "roofline"),
    ("Transient:", "order"),
    ("write cliff", "written"),
    ("percentile", "distribution"),
];

/// What cells of a run are called in sentences, the longest names first: one may be the beginning of
/// another.
#[derive(Debug, Default)]
pub struct Names(Vec<Named>);

impl Names {
    /// * `key`: of a row, by its cell's index and the stream's position.
    pub fn new(view: &View<'_>, key: impl Fn(u32, usize) -> String) -> Self {
        let mut all: Vec<Named> = Vec::new();
        for row in &view.rows {
            let cell = key(row.cell.index, row.stream.unwrap_or(0));
            for words in std::iter::once(row.name()).chain(gap::spoken(row)) {
                // Phases of one word would be found in every other sentence.
                let is_clear = words.contains(' ') && all.iter().all(|one| one.words != words);
                if is_clear {
                    all.push(Named { words, cell: cell.clone() });
                }
            }
        }
        all.sort_by(|a, b| b.words.len().cmp(&a.words.len()).then_with(|| a.words.cmp(&b.words)));
        Self(all)
    }

    /// The cells that a sentence names, in its order, each once.
    fn within(&self, sentence: &str) -> Vec<Named> {
        let mut taken: Vec<(usize, usize)> = Vec::new();
        let mut found: Vec<(usize, &Named)> = Vec::new();
        for named in &self.0 {
            let free = |&(at, _): &(usize, &str)| {
                let end = at + named.words.len();
                stands_alone(sentence, at, end) && taken.iter().all(|t| end <= t.0 || at >= t.1)
            };
            if let Some((at, words)) = sentence.match_indices(&named.words).find(free) {
                taken.push((at, at + words.len()));
                found.push((at, named));
            }
        }
        found.sort_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, named)| named.clone()).collect()
    }
}

/// Whether what stands there is no part of a longer word, number or name: cells of several streams
/// are called `log+reads`.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "+-_/".contains(c));
    let before = text.get(..start).and_then(|before| before.chars().next_back());
    let after = text.get(end..).and_then(|after| after.chars().next());
    !inner(before) && !inner(after)
}

/// What each sentence is about.
///
/// * `figures`: those of the question, the best first.
pub fn of(sentences: &[String], figures: &[&str], names: &Names) -> Vec<Evidence> {
    let one = |sentence: &String| {
        let cells = names.within(sentence);
        if sentence.starts_with(ADVICE) {
            return Evidence { figures: Vec::new(), cells };
        }
        let best = BEST.iter().find(|(words, _)| sentence.contains(words)).map(|(_, best)| *best);
        let mut ordered: Vec<String> = best.into_iter().map(str::to_owned).collect();
        ordered.extend(figures.iter().filter(|f| Some(**f) != best).map(|&f| f.to_owned()));
        Evidence { figures: ordered, cells }
    };
    sentences.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[(&str, &str)]) -> Names {
        let named = |(words, cell): &(&str, &str)| Named {
            words: (*words).to_owned(),
            cell: (*cell).to_owned(),
        };
        let mut all: Vec<Named> = all.iter().map(named).collect();
        all.sort_by_key(|named| std::cmp::Reverse(named.words.len()));
        Names(all)
    }

    #[test]
    fn cells_are_found_by_whole_names() {
        let names = names(&[
            ("read 4KiB 1", "0.0"),
            ("read 4KiB 10", "1.0"),
            ("read 1 MiB 1 thread", "2.0"),
        ]);
        let found = |text: &str| {
            let all = names.within(text);
            all.into_iter().map(|named| named.cell).collect::<Vec<_>>()
        };
        assert_eq!(found("`read 4KiB 10` and `read 4KiB 1`: 8 s"), ["1.0", "0.0"]);
        assert_eq!(found("read 4KiB 100, spread 4KiB 1"), [""; 0]);
        assert_eq!(found("gap: read 1 MiB 1 thread (39 %)"), ["2.0"]);
        assert_eq!(found("read 1 MiB 1 threads"), [""; 0]);
        assert_eq!(
            found("read 4KiB 1+writes, over-read 4KiB 1, a/read 4KiB 1, read 4KiB 1_b"),
            [""; 0]
        );
        assert_eq!(found("é read 4KiB 1é, read 4KiB 1"), ["0.0"]);
        assert_eq!(found(""), [""; 0]);
    }

    #[test]
    fn sentences_lead_where_they_can_be_seen() {
        let sentences = ["write: bandwidth ends at 4 GiB/s".to_owned(), "Next: wait".to_owned()];
        let found = of(&sentences, &["stack", "roofline"], &Names::default());
        assert_eq!(found[0].figures, ["roofline", "stack"]);
        assert_eq!(found[1].figures, [""; 0]);
    }
}
