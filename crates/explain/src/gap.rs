//! Gaps in a sweep: cells far below what their neighbours promise.
