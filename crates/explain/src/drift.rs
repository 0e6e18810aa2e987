//! Changes of level and drift within and over visits.
