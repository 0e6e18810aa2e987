//! Cells with their intervals.
