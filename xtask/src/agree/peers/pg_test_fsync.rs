//! pg_test_fsync: commits per second by each method.

use anyhow::{Context, Result, bail};

use super::{Peer, rate};
use crate::agree::figures::{Kind, Values};
use crate::agree::pattern::{Compares, Pattern, Setting};

#[derive(Debug)]
pub struct PgTestFsync;

impl Peer for PgTestFsync {
    fn name(&self) -> &'static str {
        "pg_test_fsync"
    }

    fn package(&self) -> &'static str {
        "postgresql"
    }

    fn places(&self) -> &'static [&'static str] {
        &[
            "/usr/lib/postgresql/17/bin",
            "/usr/lib/postgresql/16/bin",
            "/usr/lib/postgresql/15/bin",
            "/usr/lib/postgresql/14/bin",
        ]
    }

    /// It removes the file it was given.
    fn links(&self) -> &'static [&'static str] {
        &["pg_test_fsync.out"]
    }

    fn words(&self, words: &[&str], setting: &Setting, _: u32) -> Vec<String> {
        let mut all = vec!["-f".to_owned(), "pg_test_fsync.out".to_owned()];
        all.extend(["-s".to_owned(), setting.seconds.to_string()]);
        all.extend(words.iter().map(|&word| word.to_owned()));
        all
    }

    fn read(&self, pattern: &Pattern, text: &str) -> Result<Values> {
        let Compares::Phases(phases) = pattern.compares else { bail!("it has one rate a method") };
        let of = |label: &'static str| {
            let (section, method) = label.split_once(' ').context("a label is two words")?;
            let heading = match section {
                "one" => "using one 8kB write",
                "two" => "using two 8kB writes",
                _ => bail!("no part `{section}`"),
            };
            let after = text.split_once(heading).with_context(|| format!("no `{heading}`"))?.1;
            let lines = after.lines().map(str::trim).take(8);
            let line = lines.into_iter().find_map(|line| {
                let rest = line.strip_prefix(method)?;
                rest.starts_with(' ').then_some(rest)
            });
            let line = line.with_context(|| format!("no `{method}` below `{heading}`"))?;
            let word = line.split_whitespace().next().unwrap_or_default();
            rate(Kind::Iops, label, word.parse().with_context(|| format!("`{word}`"))?)
        };
        phases.iter().map(|phase| of(phase.label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agree::pattern;

    const SAID: &str = "\
Compare file sync methods using one 8kB write:
(in wal_sync_method preference order, except fdatasync is Linux's default)
        open_datasync                      5910.119 ops/sec     169 usecs/op
        fdatasync                          5312.405 ops/sec     188 usecs/op
        fsync                              3449.052 ops/sec     290 usecs/op
        fsync_writethrough                              n/a
        open_sync                           300.817 ops/sec    3324 usecs/op

Compare file sync methods using two 8kB writes:
        open_datasync                       245.760 ops/sec    4069 usecs/op
        fdatasync                           269.416 ops/sec    3712 usecs/op
        fsync                               288.154 ops/sec    3470 usecs/op
        fsync_writethrough                              n/a
        open_sync                           130.826 ops/sec    7644 usecs/op
";

    #[test]
    fn each_method_is_found_in_its_part() {
        let pattern = pattern::ALL.iter().find(|p| p.name == "pg-test-fsync").unwrap();
        let values = PgTestFsync.read(pattern, SAID).unwrap();
        let of = |label: &str| values.iter().find(|v| v.0.operation == label).unwrap().1;
        assert_eq!(of("one fsync"), Some(3449.052));
        assert_eq!(of("two open_sync"), Some(130.826));
        assert_eq!(values.len(), 8);
        assert!(PgTestFsync.read(pattern, &SAID.replace("5312.405", "n/a")).is_err());
    }
}
