//! Numbers as sentences show them.

pub(crate) use finding::numbers::*;
