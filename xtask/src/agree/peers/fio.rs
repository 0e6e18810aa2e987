//! fio: the same pattern as a job on its command line.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Peer;
use crate::agree::figures::{Values, iops, pair};
use crate::agree::pattern::{Compares, Pattern, Setting};

#[derive(Debug)]
pub struct Fio;

/// As many at once as there are, on either way.
pub const BATCHED: [&str; 3] = [
    "--iodepth_batch_submit=32",
    "--iodepth_batch_complete_min=1",
    "--iodepth_batch_complete_max=32",
];

impl Peer for Fio {
    fn name(&self) -> &'static str {
        "fio"
    }

    fn package(&self) -> &'static str {
        "fio"
    }

    fn words(&self, words: &[&str], setting: &Setting, seed: u32) -> Vec<String> {
        let mut all = vec![
            "--name=agree".to_owned(),
            format!("--filename={}", setting.file.display()),
            format!("--size={}M", setting.size.mebibytes),
            "--time_based".to_owned(),
            format!("--runtime={}", setting.seconds),
            format!("--randseed={seed}"),
            "--lat_percentiles=1".to_owned(),
            "--output-format=json".to_owned(),
        ];
        all.extend(words.iter().map(|&word| word.to_owned()));
        all
    }

    fn read(&self, pattern: &Pattern, text: &str) -> Result<Values> {
        let Compares::Latencies(operations) = pattern.compares else {
            bail!("fio is compared by its latencies");
        };
        // Notes may stand before the object.
        let start = text.find('{').context("no JSON")?;
        let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let document = documents.next().context("no JSON")?.context("no JSON")?;
        let job = &document["jobs"][0];
        if job["error"] != 0 {
            bail!("fio's job ended with error {}", job["error"]);
        }
        let rates = ["read", "write"].iter().filter_map(|way| job[way]["iops"].as_f64());
        let mut values = vec![iops(Some(rates.sum()))?];
        for &operation in operations {
            let part = if operation == "fdatasync" { "sync" } else { operation };
            let percentile = &job[part]["lat_ns"]["percentile"];
            let (p50, p99) = (percentile["50.000000"].as_f64(), percentile["99.000000"].as_f64());
            values.extend(pair(operations, operation, p50, p99));
        }
        Ok(values)
    }
}
