//! Finds the program that draws `plimsoll report`'s page, if `make` has built it.

use std::path::Path;

fn main() {
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
