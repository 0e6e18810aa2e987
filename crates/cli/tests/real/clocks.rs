//! Steps of the wall clock cannot be tried on a machine that others use. What can be held: nothing
//! that measures reads it.

use std::fs;
use std::path::Path;

/// Where the wall clock may be read: only to say when something began.
const ALLOWED: &[(&str, &str)] =
    &[("runner", "fn unix_now() -> i64 {"), ("runner", "let started = ")];

#[test]
fn nothing_that_measures_reads_the_wall_clock() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut read = 0;
    for room in ["units", "stats", "device", "engine", "plan", "uring", "runner"] {
        for entry in fs::read_dir(crates.join(room).join("src")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "rs") {
                continue;
            }
            read += 1;
            let source = fs::read_to_string(&path).unwrap();
            let lines: Vec<&str> = source.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                let wall =
                    ["SystemTime::now", "CLOCK_REALTIME", "ClockId::Realtime", "gettimeofday"];
                if !wall.iter().any(|word| line.contains(word)) {
                    continue;
                }
                let near = lines[number.saturating_sub(2)..=number].join("\n");
                let fine = ALLOWED.iter().any(|(r, word)| *r == room && near.contains(word));
                if !fine {
                    found.push(format!("{}:{}: {line}", path.display(), number + 1));
                }
            }
        }
    }
    assert!(read > 30, "the sources are elsewhere now: {read}");
    assert!(found.is_empty(), "{}", found.join("\n"));
}
