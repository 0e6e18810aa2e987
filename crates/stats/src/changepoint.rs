//! Where a series changes its level.
