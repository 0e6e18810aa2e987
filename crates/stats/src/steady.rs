//! Whether a device has come to rest: SNIA's rule and the last-half rule.
