//! Steady state and the write cliff.
