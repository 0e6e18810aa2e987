//! An interval from one visit: what its own samples can say of it.
