//! Freezes: when nothing came back, how long, from where.
