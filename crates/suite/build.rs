//! Makes the lists of built-in suites from the files in `suites/`: a new suite is a new file.
#![expect(clippy::expect_used, reason = "a build that cannot go on ends with the reason")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

fn main() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the crate's folder");
    let folder = Path::new(&root).join("../../suites");
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(&folder).expect("the folder of suites");
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry of the folder of suites").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort_by(|one, other| one.file_stem().cmp(&other.file_stem()));
    let is_list = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).expect("a suite that can be read");
        text.lines().any(|line| line.trim() == "[[part]]")
    };
    let (lists, suites): (Vec<PathBuf>, Vec<PathBuf>) = files.into_iter().partition(is_list);
    let mut source = String::new();
    for (name, files) in [("BUILTIN", suites), ("LISTS", lists)] {
        writeln!(source, "const {name}: &[Builtin] = &[").expect("room in memory");
        for file in &files {
            let suite = file.file_stem().and_then(|name| name.to_str()).expect("a name in UTF-8");
            let path = file.display();
            let title = format!("suite {suite}");
            writeln!(
                source,
                "Builtin {{ name: {suite:?}, file: {title:?}, text: include_str!(r\"{path}\") }},"
            )
            .expect("room in memory");
        }
        source.push_str("];\n");
    }
    let out = std::env::var_os("OUT_DIR").expect("cargo names a folder for what is made");
    std::fs::write(Path::new(&out).join("builtin.rs"), source).expect("room for the lists");
}
