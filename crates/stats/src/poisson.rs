//! Rates of rare events with exact intervals.
