//! A program that is measured, and how to read what it prints.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::Value;

/// A program that is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Contender {
    pub name: String,
    pub command: Vec<String>,
    /// The same with next to nothing to do: what its start and end cost.
    pub idle: Option<Vec<String>>,
    pub prints: Prints,
}

/// What a program prints.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prints {
    /// `plimsoll run --json`.
    Plimsoll,
    /// A JSON object with `iops`.
    Bare,
    /// `fio --output-format=json`.
    Fio,
    /// fio's `t/io_uring`: a line with the rate of each second.
    IoUring,
    /// elbencho's table.
    Elbencho,
    /// `sysbench fileio`.
    Sysbench,
}

impl Prints {
    /// The measured time where the program took another than it was told.
    pub fn seconds(self, text: &str) -> Option<f64> {
        match self {
            Self::Elbencho => elbencho_seconds(text),
            _ => None,
        }
    }

    /// Reads per second, as the program itself says.
    pub fn iops(self, text: &str) -> Result<f64> {
        let iops = match self {
            Self::Plimsoll => plimsoll(text)?,
            Self::Bare => {
                let value: Value = serde_json::from_str(text).context("no JSON")?;
                value["iops"].as_f64()
            }
            Self::Fio => fio(text)?,
            Self::IoUring => io_uring(text),
            Self::Elbencho => elbencho(text),
            Self::Sysbench => sysbench(text),
        };
        match iops {
            Some(iops) if iops.is_finite() && iops > 0.0 => Ok(iops),
            _ => {
                bail!("no rate in what it printed: {}", text.chars().take(200).collect::<String>())
            }
        }
    }
}

fn plimsoll(text: &str) -> Result<Option<f64>> {
    let value: Value = serde_json::from_str(text).context("no JSON")?;
    if value["schema"] != "plimsoll.run/1" {
        bail!("schema {} instead of plimsoll.run/1", value["schema"]);
    }
    Ok(value["cells"][0]["iops"].as_f64())
}

fn fio(text: &str) -> Result<Option<f64>> {
    // Notes may stand before the object.
    let start = text.find('{').context("no JSON")?;
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let value = values.next().context("no JSON")?.context("no JSON")?;
    let jobs = value["jobs"].as_array().context("no jobs")?;
    Ok(Some(jobs.iter().filter_map(|job| job["read"]["iops"].as_f64()).sum()))
}

/// The median of the seconds: `IOPS=3.04M, BW=...`.
fn io_uring(text: &str) -> Option<f64> {
    let rates = text.lines().filter_map(|line| line.strip_prefix("IOPS=")).filter_map(|rest| {
        let word = rest.split(',').next()?.trim();
        match word.strip_suffix(['K', 'M']) {
            Some(number) => {
                let factor = if word.ends_with('M') { 1e6 } else { 1e3 };
                Some(number.parse::<f64>().ok()? * factor)
            }
            None => word.parse().ok(),
        }
    });
    super::summary::median(&rates.collect::<Vec<_>>())
}

/// `READ      IOPS             :       832764       832700`: first done, last done.
fn elbencho(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| {
        let mut words = line.split_whitespace();
        words.any(|word| word == "IOPS") && line.contains(':')
    })?;
    line.rsplit(':').next()?.split_whitespace().next_back()?.parse().ok()
}

/// `READ   Elapsed time     :      2.003s      2.003s`: it looks at its limit now and then only.
fn elbencho_seconds(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains("Elapsed time"))?;
    line.split_whitespace().next_back()?.strip_suffix('s')?.parse().ok()
}

/// `    reads/s:                      703433.06`.
fn sysbench(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("reads/s:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_found() {
        for (prints, text, iops) in [
            (Prints::Plimsoll, r#"{"schema":"plimsoll.run/1","cells":[{"iops":5.5}]}"#, 5.5),
            (Prints::Bare, r#"{"ios":3,"iops":7.0}"#, 7.0),
            (
                Prints::Fio,
                "note\n{\"jobs\":[{\"read\":{\"iops\":2.0}},{\"read\":{\"iops\":1.0}}]}\n",
                3.0,
            ),
            (
                Prints::IoUring,
                "x\nIOPS=1.5M, BW=1\nIOPS=900K, BW=1\nIOPS=2M, BW=2\nMaximum IOPS=9M\n",
                1_500_000.0,
            ),
            (Prints::Elbencho, "READ   IOPS         :     832764     832700\n", 832_700.0),
            (
                Prints::Sysbench,
                "File operations:\n    reads/s:   703433.06\n    writes/s: 0.00\n",
                703_433.06,
            ),
        ] {
            assert_eq!(prints.iops(text).unwrap(), iops, "{prints:?}");
        }
    }

    #[test]
    fn elbenchos_own_time_is_found() {
        let text = "READ   Elapsed time     :      2.003s      2.004s\n";
        assert_eq!(Prints::Elbencho.seconds(text), Some(2.004));
        assert_eq!(Prints::Elbencho.seconds("READ"), None);
        assert_eq!(Prints::Fio.seconds(text), None);
    }

    #[test]
    fn silence_and_zero_are_errors() {
        for prints in
            [Prints::IoUring, Prints::Elbencho, Prints::Sysbench, Prints::Fio, Prints::Bare]
        {
            assert!(prints.iops("nothing here").is_err(), "{prints:?}");
        }
        assert!(Prints::Bare.iops(r#"{"iops":0.0}"#).is_err());
        assert!(
            Prints::Plimsoll.iops(r#"{"schema":"plimsoll.run/9","cells":[{"iops":5}]}"#).is_err()
        );
    }
}
