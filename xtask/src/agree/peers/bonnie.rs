//! bonnie++: its block phases and its seeks.

use anyhow::{Context, Result, bail};

use super::{Peer, rate};
use crate::agree::figures::{Figure, Kind, Values};
use crate::agree::pattern::{Compares, Pattern, Setting};

/// Where a phase's rate stands in the line that it prints with `-q`, version 1.9x and 2.0x.
const COLUMNS: [(&str, usize); 4] =
    [("write K/s", 11), ("rewrite K/s", 13), ("read K/s", 17), ("seeks/s", 19)];

#[derive(Debug)]
pub struct Bonnie;

impl Peer for Bonnie {
    fn name(&self) -> &'static str {
        "bonnie++"
    }

    fn package(&self) -> &'static str {
        "bonnie++"
    }

    fn places(&self) -> &'static [&'static str] {
        &["/usr/sbin", "/usr/local/sbin"]
    }

    /// It has none; what it says instead begins with an error.
    fn version_word(&self) -> &'static str {
        "-h"
    }

    /// It makes and removes a file of its own, which cannot be named: beside ours.
    fn words(&self, words: &[&str], setting: &Setting, seed: u32) -> Vec<String> {
        let directory = setting.file.parent().map(|path| path.display().to_string());
        let mut all = vec!["-q".to_owned(), "-d".to_owned(), directory.unwrap_or_default()];
        all.extend(["-s".to_owned(), format!("{}:8k", setting.size.mebibytes)]);
        // The memory's size as it is to believe it: none, or it refuses so small a file.
        all.extend(["-r", "0", "-n", "0", "-u", "0:0", "-z"].map(str::to_owned));
        all.push((seed >> 1).to_string());
        all.extend(words.iter().map(|&word| word.to_owned()));
        all
    }

    fn read(&self, pattern: &Pattern, text: &str) -> Result<Values> {
        let Compares::Phases(phases) = pattern.compares else { bail!("it has one rate a phase") };
        let line = text.lines().find(|line| line.starts_with("1.9")).context("no line of CSV")?;
        let fields: Vec<&str> = line.split(',').collect();
        let of = |label: &'static str| {
            let column = COLUMNS.iter().find(|(name, _)| *name == label);
            let &(_, column) = column.with_context(|| format!("no column `{label}`"))?;
            let field = fields.get(column).with_context(|| format!("no field {column}"))?;
            // It says nothing of what took less than half a second.
            if field.starts_with('+') {
                return Ok((Figure { kind: Kind::Iops, operation: label }, None));
            }
            rate(Kind::Iops, label, field.parse().with_context(|| format!("`{field}`"))?)
        };
        phases.iter().map(|phase| of(phase.label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agree::pattern;

    const SAID: &str = "1.98,2.00a,vm,1,1795234805,256M,,8192,5,1045,97,901234,30,567890,25,1564,93,\
        2345678,60,+++++,+++,,,,,,,,,,,,,,,,,,,12181us,6331us,4094us,10156us,1287us,10921us,,,,,,\n";

    #[test]
    fn each_phase_is_found_and_what_was_too_short_is_nothing() {
        let pattern = pattern::ALL.iter().find(|p| p.name == "bonnie").unwrap();
        let values = Bonnie.read(pattern, SAID).unwrap();
        let of = |label: &str| values.iter().find(|v| v.0.operation == label).unwrap().1;
        assert_eq!(of("write K/s"), Some(901_234.0));
        assert_eq!(of("rewrite K/s"), Some(567_890.0));
        assert_eq!(of("read K/s"), Some(2_345_678.0));
        assert_eq!(of("seeks/s"), None);
        assert!(Bonnie.read(pattern, "").is_err());
        assert!(Bonnie.read(pattern, "1.98,2.00a,vm").is_err());
    }
}
