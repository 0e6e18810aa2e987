//! Whether the difference between runs is real, and how large.
