//! ioping as fast as it goes: its seek rate.

use anyhow::{Context, Result};

use super::{Peer, rate};
use crate::agree::figures::{Kind, Values};
use crate::agree::pattern::{Pattern, Setting};

#[derive(Debug)]
pub struct Ioping;

impl Peer for Ioping {
    fn name(&self) -> &'static str {
        "ioping"
    }

    fn package(&self) -> &'static str {
        "ioping"
    }

    fn version_word(&self) -> &'static str {
        "-v"
    }

    fn words(&self, words: &[&str], setting: &Setting, _: u32) -> Vec<String> {
        let mut all: Vec<String> =
            ["-batch", "-interval", "0", "-size", "4k"].map(str::to_owned).into();
        all.extend(["-work-time".to_owned(), format!("{}s", setting.seconds)]);
        all.extend(["-work-size".to_owned(), format!("{}m", setting.size.mebibytes)]);
        all.extend(words.iter().map(|&word| word.to_owned()));
        all.push(setting.file.display().to_string());
        all
    }

    /// One line: requests, their time in ns, requests per second, bytes per second, least, mean and
    /// largest time in ns, ...
    fn read(&self, _: &Pattern, text: &str) -> Result<Values> {
        let line = text.lines().find(|line| !line.trim().is_empty()).context("it said nothing")?;
        let numbers: Vec<f64> = line.split_whitespace().map_while(|w| w.parse().ok()).collect();
        let per_second = numbers.get(2).context("no third number")?;
        let mean = numbers.get(5).context("no sixth number")?;
        Ok(vec![rate(Kind::Iops, "", *per_second)?, rate(Kind::Mean, "", *mean)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agree::pattern;

    #[test]
    fn rate_and_mean_are_the_third_and_the_sixth() {
        let pattern = pattern::ALL.iter().find(|p| p.name == "ioping-seek-rate").unwrap();
        let said = "4 706040 5665 23205484 140162 176510 222246 29633 5 400300436\n";
        let values = Ioping.read(pattern, said).unwrap();
        assert_eq!(values.iter().map(|v| v.1).collect::<Vec<_>>(), [Some(5665.0), Some(176_510.0)]);
        assert!(Ioping.read(pattern, "").is_err() && Ioping.read(pattern, "1 2 x").is_err());
    }
}
