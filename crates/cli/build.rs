//! Finds the program that draws `plimsoll report`'s page, if `make` has built it, and what
//! `plimsoll --version` says of the build.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=PLIMSOLL_BUILD");
    let build = std::env::var("PLIMSOLL_BUILD").unwrap_or_else(|_| "built from source".to_owned());
    println!("cargo::rustc-env=PLIMSOLL_BUILD={build}");
    // A directory that is always there: a missing file would have this crate built every time.
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", built.display());
    println!("cargo::rustc-check-cfg=cfg(page)");
    let page = built.join("page.html");
    if page.is_file() {
        println!("cargo::rustc-cfg=page");
        println!("cargo::rustc-env=PLIMSOLL_PAGE={}", page.display());
    }
}
