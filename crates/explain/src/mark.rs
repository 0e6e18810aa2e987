//! Marks: reasons to look twice, each with a sentence and its evidence.
