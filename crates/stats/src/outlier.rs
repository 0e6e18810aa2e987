//! Odd repeats: against the noise of a grid, or alone.
