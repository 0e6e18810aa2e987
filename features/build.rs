//! Nothing to build: cargo looks at build dependencies of crates with a build script only.

fn main() {}
