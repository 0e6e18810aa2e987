//! sysbench fileio on one file.

use anyhow::Result;

use super::{Peer, number_after, rate};
use crate::agree::figures::{Kind, Values};
use crate::agree::pattern::{Compares, Pattern, Setting};

#[derive(Debug)]
pub struct Sysbench;

impl Peer for Sysbench {
    fn name(&self) -> &'static str {
        "sysbench"
    }

    fn package(&self) -> &'static str {
        "sysbench"
    }

    fn links(&self) -> &'static [&'static str] {
        &["test_file.0"]
    }

    fn words(&self, words: &[&str], setting: &Setting, seed: u32) -> Vec<String> {
        let mut all = vec![
            "fileio".to_owned(),
            "--file-num=1".to_owned(),
            format!("--file-total-size={}M", setting.size.mebibytes),
            format!("--time={}", setting.seconds),
            "--events=0".to_owned(),
            // It takes no more than 31 bits.
            format!("--rand-seed={}", seed >> 1),
        ];
        all.extend(words.iter().map(|&word| word.to_owned()));
        all.push("run".to_owned());
        all
    }

    fn read(&self, pattern: &Pattern, text: &str) -> Result<Values> {
        let rates = number_after(text, "reads/s:")? + number_after(text, "writes/s:")?;
        let mut values = vec![rate(Kind::Iops, "", rates)?];
        if let Compares::Syncs(_) = pattern.compares {
            values.push(rate(Kind::Syncs, "", number_after(text, "fsyncs/s:")?)?);
        }
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agree::pattern;

    const SAID: &str = "
File operations:
    reads/s:                      41932.98
    writes/s:                     27955.32
    fsyncs/s:                     2796.98
";

    #[test]
    fn reads_and_writes_are_added_and_flushes_are_apart() {
        let of = |name: &str| {
            let pattern = pattern::ALL.iter().find(|pattern| pattern.name == name).unwrap();
            let values = Sysbench.read(pattern, SAID).unwrap();
            values
                .into_iter()
                .map(|(figure, value)| (figure.to_string(), value))
                .collect::<Vec<_>>()
        };
        let total = ("IOPS".to_owned(), Some(69_888.3));
        assert_eq!(of("sysbench-rndrd"), std::slice::from_ref(&total));
        assert_eq!(of("sysbench-rndrw"), [total, ("flushes/s".to_owned(), Some(2796.98))]);
    }

    #[test]
    fn what_says_nothing_is_an_error() {
        let pattern = pattern::ALL.iter().find(|p| p.name == "sysbench-rndrd").unwrap();
        for text in ["", "reads/s: 0\nwrites/s: 0", "reads/s: many\nwrites/s: 1"] {
            assert!(Sysbench.read(pattern, text).is_err(), "{text}");
        }
    }
}
