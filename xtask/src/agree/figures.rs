//! The figures that are compared, as each program prints them.

use std::fmt;

use anyhow::{Context, Result, bail};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::pattern::{Compares, Pattern, Phase, Side};

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub kind: Kind,
    /// Whose latency; empty for the rate, and where a pattern has but one operation.
    pub operation: &'static str,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Iops,
    P50,
    P99,
    Mean,
    Syncs,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Iops, Self::P50, Self::P99, Self::Mean, Self::Syncs];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Iops => "IOPS",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Syncs => "flushes/s",
        })
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            "" => self.kind.fmt(f),
            operation => write!(f, "{} {operation}", self.kind),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A figure's value; `None` where the program gave none.
pub type Values = Vec<(Figure, Option<f64>)>;

/// The figures of one visit, of both sides the same in the same order; times in ns.
pub fn read(side: Side, pattern: &Pattern, text: &str) -> Result<Values> {
    match side {
        Side::Peer | Side::FioBatched => pattern.peer.read(pattern, text),
        Side::Ours | Side::OursAgain => ours(pattern, text),
    }
}

fn ours(pattern: &Pattern, text: &str) -> Result<Values> {
    let run: Value = serde_json::from_str(text).context("no JSON")?;
    if run["schema"] != "plimsoll.run/1" {
        bail!("schema {} instead of plimsoll.run/1", run["schema"]);
    }
    let cells = run["cells"].as_array().context("no cells")?;
    if let Compares::Phases(phases) = pattern.compares {
        let of = |phase: &Phase| {
            let cell = cells.iter().find(|cell| cell["phase"] == phase.name);
            let cell = cell.with_context(|| format!("no phase `{}`", phase.name))?;
            let rate = cell["iops"].as_f64().filter(|&rate| rate > 0.0);
            let rate = rate.with_context(|| format!("`{}` completed nothing", phase.name))?;
            Ok((Figure { kind: Kind::Iops, operation: phase.label }, Some(rate / phase.together)))
        };
        return phases.iter().map(of).collect();
    }
    let measured: Vec<&Value> = cells.iter().filter(|cell| cell["phase"] != "fill").collect();
    let [cell] = measured.as_slice() else { bail!("{} cells instead of one", measured.len()) };
    let of = |operation: &str| {
        let mut ops = cell["ops"].as_array().into_iter().flatten();
        let found = ops.find(|op| op["op"] == operation);
        found.with_context(|| format!("no `{operation}` in ours"))
    };
    let mut values = vec![iops(cell["iops"].as_f64())?];
    match pattern.compares {
        Compares::Latencies(operations) => {
            for &operation in operations {
                let latency = &of(operation)?["latency_ns"];
                let (p50, p99) = (latency["p50"].as_f64(), latency["p99"].as_f64());
                values.extend(pair(operations, operation, p50, p99));
            }
        }
        Compares::Mean(operation) => {
            let mean = of(operation)?["latency_ns"]["mean"].as_f64();
            values.push((Figure { kind: Kind::Mean, operation: "" }, mean));
        }
        Compares::Syncs(operation) => {
            let rate = of(operation)?["iops"].as_f64();
            values.push((Figure { kind: Kind::Syncs, operation: "" }, rate));
        }
        Compares::Rate | Compares::Phases(_) => {}
    }
    Ok(values)
}

/// The rate of the whole pattern.
pub fn iops(value: Option<f64>) -> Result<(Figure, Option<f64>)> {
    match value {
        Some(rate) if rate > 0.0 => Ok((Figure { kind: Kind::Iops, operation: "" }, value)),
        _ => bail!("nothing was completed"),
    }
}

/// Median and 99th percentile of one of `operations`, which is named where it is not the only one.
pub fn pair(
    operations: &[&str],
    operation: &'static str,
    p50: Option<f64>,
    p99: Option<f64>,
) -> [(Figure, Option<f64>); 2] {
    let operation = if operations.len() > 1 { operation } else { "" };
    [(Kind::P50, p50), (Kind::P99, p99)]
        .map(|(kind, value)| (Figure { kind, operation }, value.filter(|&ns| ns > 0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agree::pattern;

    fn pattern(name: &str) -> &'static Pattern {
        pattern::ALL.iter().find(|pattern| pattern.name == name).unwrap()
    }

    fn shown(values: Values) -> Vec<(String, Option<f64>)> {
        values.into_iter().map(|(figure, value)| (figure.to_string(), value)).collect()
    }

    #[test]
    fn both_programs_answers_are_found() {
        let ours = r#"{"schema":"plimsoll.run/1","cells":[{"iops":70.0,"ops":[
            {"op":"write","latency_ns":{"p50":10,"p99":20}},
            {"op":"fdatasync","latency_ns":{"p50":30,"p99":null}}]}]}"#;
        let fio = r#"note
            {"jobs":[{"error":0,"read":{"iops":0.0},
            "write":{"iops":70.0,"lat_ns":{"percentile":{"50.000000":10,"99.000000":20}}},
            "sync":{"lat_ns":{"percentile":{"50.000000":30,"99.000000":0}}}}]}"#;
        let wanted = [
            ("IOPS", Some(70.0)),
            ("p50 write", Some(10.0)),
            ("p99 write", Some(20.0)),
            ("p50 fdatasync", Some(30.0)),
            ("p99 fdatasync", None),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        let pattern = pattern("commit-4k-1");
        assert_eq!(shown(read(Side::OursAgain, pattern, ours).unwrap()), wanted);
        assert_eq!(shown(read(Side::Peer, pattern, fio).unwrap()), wanted);
    }

    #[test]
    fn the_rates_of_a_mix_are_added() {
        let fio = r#"{"jobs":[{"error":0,"read":{"iops":70.0},"write":{"iops":30.0}}]}"#;
        let values = read(Side::Peer, pattern("mix-8k-8"), fio).unwrap();
        assert_eq!(values[0].1, Some(100.0));
        assert_eq!(values[1].0.to_string(), "p50 read");
    }

    #[test]
    fn silence_failure_and_nothing_done_are_errors() {
        let pattern = pattern("read-4k-1");
        for text in [
            "",
            "{}",
            r#"{"jobs":[{"error":5,"read":{"iops":1.0}}]}"#,
            r#"{"jobs":[{"error":0,"read":{"iops":0.0}}]}"#,
        ] {
            assert!(read(Side::Peer, pattern, text).is_err(), "{text}");
        }
        for text in [
            "",
            "{}",
            r#"{"schema":"plimsoll.run/2"}"#,
            r#"{"schema":"plimsoll.run/1","cells":[]}"#,
            r#"{"schema":"plimsoll.run/1","cells":[{"iops":1.0,"ops":[]}]}"#,
        ] {
            assert!(read(Side::Ours, pattern, text).is_err(), "{text}");
        }
    }
}
