//! Which factor matters, over several runs.
