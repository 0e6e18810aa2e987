//! Where a ramp ends (MSER-5).
