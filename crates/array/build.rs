//! Makes the lists of built-in arrays and parts: a new one is a new file.
#![expect(clippy::expect_used, reason = "a build that cannot go on ends with the reason")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let mut source = String::new();
    for (list, name) in [("ARRAYS", "arrays"), ("PARTS", "parts")] {
        let folder = Path::new(&root).join("../..").join(name);
        println!("cargo::rerun-if-changed={}", folder.display());
        let entries = std::fs::read_dir(&folder).expect("the folder of arrays or parts");
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("an entry of the folder").path()).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
        files.sort();
        writeln!(source, "const {list}: &[(&str, &str)] = &[").expect("room in memory");
        for file in &files {
            let stem = file.file_stem().and_then(|stem| stem.to_str()).expect("a name in UTF-8");
            let path = file.display();
            writeln!(source, "({stem:?}, include_str!(r\"{path}\")),").expect("room in memory");
        }
        source.push_str("];\n");
    }
    let out = std::env::var_os("OUT_DIR").expect("cargo names a folder for what is made");
    std::fs::write(Path::new(&out).join("builtin.rs"), source).expect("room for the lists");
}
