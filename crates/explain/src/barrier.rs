//! Barriers: which cap binds where, and in which layer it sits.
