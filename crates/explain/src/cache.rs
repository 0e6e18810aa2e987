//! Whether it was the cache that was measured.
