//! Slopes: least squares and Theil-Sen.
