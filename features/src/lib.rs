//! No code: see the list of dependencies in `Cargo.toml`.
