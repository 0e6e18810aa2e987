//! Whether Plimsoll and others agree: the same patterns on the same file in blocks of them, us and
//! us again, each block in its own random order. What drifts falls out of the differences, and
//! the two visits of ours say how far a program agrees with itself here.

mod compare;
mod figures;
mod pattern;
mod peers;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use stats::Random;
use stats::paired::{BLOCKS_MAX, BLOCKS_MIN};
use stats::random::derive_seed;

use crate::repo::Repo;
use compare::{Compared, Row};
use figures::Values;
use pattern::{FileSize, Pattern, Setting, Side};

#[derive(Args, Debug)]
pub struct Options {
    /// Blocks per pattern, 6 to 20; one more goes before them and is dropped
    #[arg(long, default_value_t = 10)]
    blocks: usize,
    /// Measured seconds per visit
    #[arg(long, default_value_t = 3)]
    seconds: u32,
    /// Where the file is made that both measure; target/agree when not given
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Size of that file, in MiB
    #[arg(long, default_value_t = 1024)]
    size: u32,
    /// Where orders and offsets come from; drawn and stored when not given
    #[arg(long)]
    seed: Option<u64>,
    /// Six blocks of 1 s on 256 MiB: shows that it works, and little more
    #[arg(long)]
    quick: bool,
    /// Only these patterns
    #[arg(long = "pattern")]
    patterns: Vec<String>,
    /// The processors that all are pinned to; the last one when not given
    #[arg(long, value_delimiter = ',')]
    cpus: Vec<u32>,
    /// The fio to compare with; the one in PATH when not given
    #[arg(long)]
    fio: Option<PathBuf>,
    /// The plimsoll to compare; the release build when not given
    #[arg(long)]
    plimsoll: Option<PathBuf>,
    /// Names the patterns and ends
    #[arg(long)]
    list: bool,
}

pub fn run(repo: &Repo, options: &Options) -> Result<()> {
    if options.list {
        for pattern in pattern::ALL {
            println!("{:18} {}", pattern.name, pattern.title);
        }
        return Ok(());
    }
    let bench = Bench::new(repo, options)?;
    let chosen = choose(&options.patterns)?;
    println!(
        "{} blocks of the other, fio batched, ours and ours again, {} s each, one dropped before; processors {:?}, seed {}",
        bench.blocks, bench.setting.seconds, bench.cpus, bench.seed
    );
    for (name, version) in &bench.versions {
        println!("{name}: {version}");
    }
    let made = bench.make_file()?;
    let (mut rows, mut records) = (Vec::new(), Vec::new());
    for pattern in chosen {
        let peer = pattern.peer;
        if !bench.setting.peers.contains_key(peer.name()) {
            let (name, package) = (peer.name(), peer.package());
            println!("\n{}: left out: no {name} here; package {package}", pattern.name);
            continue;
        }
        let load = load_average();
        let blocks = bench.measure(pattern).with_context(|| format!("pattern {}", pattern.name))?;
        let row = Row { name: pattern.name, title: pattern.title, figures: compared(&blocks) };
        let others = Others::of(&blocks);
        println!("\n{}", compare::table(std::slice::from_ref(&row)));
        println!("others used {others}; load average before {load}, after {}", load_average());
        records.push(serde_json::json!({
            "name": pattern.name,
            "title": pattern.title,
            "load_average": [load, load_average()],
            "commands": commands(pattern, &bench.setting)?,
            "blocks": blocks,
        }));
        rows.push(row);
    }
    drop(made);
    bench.write(&rows, &records)
}

fn choose(names: &[String]) -> Result<Vec<&'static Pattern>> {
    let known = |name: &String| pattern::ALL.iter().any(|pattern| pattern.name == *name);
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        bail!("no pattern `{unknown}`; --list names them");
    }
    let wanted = |p: &&Pattern| names.is_empty() || names.iter().any(|name| name == p.name);
    Ok(pattern::ALL.iter().filter(wanted).collect())
}

/// Those of the others that are here.
fn peers(fio: Option<&PathBuf>) -> BTreeMap<&'static str, PathBuf> {
    let mut found = BTreeMap::new();
    for peer in pattern::ALL.iter().map(|pattern| pattern.peer) {
        let given = fio.filter(|_| peer.name() == "fio").cloned();
        if let Some(path) = given.or_else(|| peers::find(peer)) {
            found.insert(peer.name(), path);
        }
    }
    found
}

/// Everything that stays the same from visit to visit.
#[derive(Debug)]
struct Bench {
    setting: Setting,
    /// The program that pins others and says what they used.
    bare: PathBuf,
    /// Where it writes that.
    measured: PathBuf,
    /// Where results go.
    directory: PathBuf,
    cpus: Vec<u32>,
    blocks: usize,
    seed: u64,
    versions: BTreeMap<&'static str, String>,
}

/// One program's turn.
#[derive(Clone, Debug, Serialize)]
struct Visit {
    side: Side,
    seed: u32,
    #[serde(serialize_with = "by_name")]
    values: Values,
    /// What others used of the chosen processors' time, in `0.0..=1.0`.
    others_share: f64,
}

fn by_name<S: serde::Serializer>(values: &Values, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(values.iter().map(|(figure, value)| (figure, value)))
}

/// The part of what `bench-bare measure` writes that is used here.
#[derive(Debug, Deserialize)]
struct Measured {
    wall_ns: f64,
    others_ns: f64,
    cpus: f64,
}

/// Removes what was made.
#[derive(Debug)]
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // It carries the mark of plimsoll, so whoever finds it knows what it is.
        let _ = fs::remove_file(&self.0);
    }
}

impl Bench {
    fn new(repo: &Repo, options: &Options) -> Result<Self> {
        let blocks = if options.quick { BLOCKS_MIN } else { options.blocks };
        if !(BLOCKS_MIN..=BLOCKS_MAX).contains(&blocks) {
            bail!("{blocks} blocks; intervals need {BLOCKS_MIN} to {BLOCKS_MAX}");
        }
        let directory = repo.target_directory().join("agree");
        fs::create_dir_all(&directory)
            .with_context(|| format!("making {}", directory.display()))?;
        let directory = fs::canonicalize(&directory)?;
        let place = options.dir.clone().unwrap_or_else(|| directory.clone());
        let place = fs::canonicalize(&place)
            .with_context(|| format!("looking for directory {}", place.display()))?;
        let setting = Setting {
            plimsoll: match &options.plimsoll {
                Some(path) => path.clone(),
                None => repo.release_binary("plimsoll"),
            },
            peers: peers(options.fio.as_ref()),
            file: place.join("plimsoll-agree.dat"),
            store: directory.join("store"),
            seconds: if options.quick { 1 } else { options.seconds.max(1) },
            size: FileSize { mebibytes: if options.quick { 256 } else { options.size.max(64) } },
        };
        let bare = repo.release_binary("bench-bare");
        for program in [&setting.plimsoll, &bare] {
            if !program.is_file() {
                bail!("{} is not there; `make agree` builds it", program.display());
            }
        }
        if setting.file.exists() {
            bail!("{} is there already; remove it first", setting.file.display());
        }
        let versions = versions(&setting)?;
        Ok(Self {
            bare,
            measured: directory.join("visit.json"),
            cpus: if options.cpus.is_empty() { vec![last_cpu()?] } else { options.cpus.clone() },
            blocks,
            seed: options.seed.unwrap_or_else(unix_seconds),
            versions,
            directory,
            setting,
        })
    }

    fn make_file(&self) -> Result<Made> {
        let made = Made(self.setting.file.clone());
        self.start(&pattern::making(&self.setting)).context("making the file")?;
        Ok(made)
    }

    /// `blocks[block][turn]`, turns as they came.
    fn measure(&self, pattern: &Pattern) -> Result<Vec<Vec<Visit>>> {
        let number = pattern.name.bytes().fold(0, |n, byte| derive_seed(n, &[byte.into()]));
        let mut blocks = Vec::new();
        for block in 0..=self.blocks {
            let label = [number, block as u64];
            let mut order = pattern.sides();
            Random::new(derive_seed(self.seed, &label)).shuffle(&mut order);
            let visits = (0..).zip(order).map(|(turn, side)| {
                let seed = derive_seed(self.seed, &[label[0], label[1], turn]);
                self.visit(pattern, side, (seed >> 32) as u32)
            });
            blocks.push(visits.collect::<Result<Vec<_>>>()?);
        }
        // The first has the file system's and the device's first times in it.
        blocks.remove(0);
        Ok(blocks)
    }

    fn visit(&self, pattern: &Pattern, side: Side, seed: u32) -> Result<Visit> {
        self.settle(pattern)?;
        let command = pattern.command(side, &self.setting, seed)?;
        let (measured, text) = self.start(&command)?;
        let values = figures::read(side, pattern, &text)
            .with_context(|| format!("what `{}` printed", command.join(" ")))?;
        let others_share = measured.others_ns / (measured.wall_ns * measured.cpus).max(1.0);
        Ok(Visit { side, seed, values, others_share })
    }

    /// What the visit before left to be written is written, and the cache is as it should be.
    fn settle(&self, pattern: &Pattern) -> Result<()> {
        let path = &self.setting.file;
        let mut file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        file.sync_all().with_context(|| format!("flushing {}", path.display()))?;
        for link in pattern.peer.links() {
            let link = self.directory.join(link);
            let _ = fs::remove_file(&link);
            std::os::unix::fs::symlink(path, &link)
                .with_context(|| format!("making {}", link.display()))?;
        }
        if pattern.cached {
            std::io::copy(&mut file, &mut std::io::sink())
                .with_context(|| format!("reading {}", path.display()))?;
        }
        Ok(())
    }

    fn start(&self, command: &[String]) -> Result<(Measured, String)> {
        let cpus: Vec<_> = self.cpus.iter().map(u32::to_string).collect();
        let output = Command::new(&self.bare)
            .current_dir(&self.directory)
            .args(["measure", "--cpus", &cpus.join(","), "--out"])
            .arg(&self.measured)
            .arg("--")
            .args(command)
            .output()
            .context("starting bench-bare")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let said = errors.lines().chain(text.lines()).find(|line| !line.trim().is_empty());
            bail!("`{}` failed: {}", command.join(" "), said.unwrap_or("it said nothing"));
        }
        let measured = fs::read(&self.measured)
            .with_context(|| format!("reading {}", self.measured.display()))?;
        Ok((serde_json::from_slice(&measured).context("reading what bench-bare wrote")?, text))
    }

    /// Everything as JSON, and the table with its circumstances as Markdown.
    fn write(&self, rows: &[Row], records: &[serde_json::Value]) -> Result<()> {
        let seconds = unix_seconds();
        let document = serde_json::json!({
            "unix_seconds": seconds,
            "versions": self.versions,
            "processors": self.cpus,
            "blocks": self.blocks,
            "seed": self.seed,
            "setting": self.setting,
            "rows": rows,
            "patterns": records,
        });
        let table = compare::table(rows);
        let mut words: Vec<String> = Vec::new();
        for (name, version) in &self.versions {
            words.push(format!("- {name}: {version}"));
        }
        words.push(format!(
            "- {} blocks, {} s a visit, file of {} MiB, processors {:?}, seed {}",
            self.blocks, self.setting.seconds, self.setting.size.mebibytes, self.cpus, self.seed
        ));
        let markdown = format!("{}\n\n{table}", words.join("\n"));
        for (ending, text) in [("json", serde_json::to_string_pretty(&document)?), ("md", markdown)]
        {
            let path = self.directory.join(format!("agree-{seconds}.{ending}"));
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            println!("\nwritten: {}", path.display());
        }
        println!("\n{table}");
        Ok(())
    }
}

/// What others used of the processors during the visits.
#[derive(Clone, Copy, Debug)]
struct Others {
    median: f64,
    max: f64,
}

impl Others {
    fn of(blocks: &[Vec<Visit>]) -> Self {
        let mut shares: Vec<f64> = blocks.iter().flatten().map(|v| v.others_share).collect();
        shares.sort_by(f64::total_cmp);
        let at = |index: usize| shares.get(index).copied().unwrap_or(0.0);
        Self { median: at(shares.len() / 2), max: at(shares.len().saturating_sub(1)) }
    }
}

impl std::fmt::Display for Others {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (median, max) = (self.median * 100.0, self.max * 100.0);
        write!(f, "{median:.0} % of the processors (median of the visits), {max:.0} % at most")
    }
}

/// Figure by figure, from the blocks.
fn compared(blocks: &[Vec<Visit>]) -> Vec<Compared> {
    let Some(first) = blocks.iter().flatten().next() else { return Vec::new() };
    let figures = first.values.iter().enumerate();
    let values = |index: usize, side: Side| -> Vec<Option<f64>> {
        let of = |block: &Vec<Visit>| {
            let visit = block.iter().find(|visit| visit.side == side)?;
            visit.values.get(index)?.1
        };
        blocks.iter().map(of).collect()
    };
    figures
        .map(|(index, &(figure, _))| {
            Compared::new(figure, &Side::ALL.map(|side| values(index, side)))
        })
        .collect()
}

fn commands(pattern: &Pattern, setting: &Setting) -> Result<Vec<String>> {
    let sides = pattern.sides().into_iter().filter(|&side| side != Side::OursAgain);
    sides.map(|side| Ok(pattern.command(side, setting, 1)?.join(" "))).collect()
}

fn versions(setting: &Setting) -> Result<BTreeMap<&'static str, String>> {
    let say = |program: &Path, argument: &str| -> Result<String> {
        let output = Command::new(program)
            .arg(argument)
            .output()
            .with_context(|| format!("starting {}", program.display()))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let version = version_in(&said(&output.stdout), &said(&output.stderr));
        version.with_context(|| format!("{} does not say its version", program.display()))
    };
    let mut versions = BTreeMap::from([
        ("plimsoll", say(&setting.plimsoll, "--version")?),
        ("kernel", say(Path::new("uname"), "-r")?),
        ("processor", processor()),
    ]);
    for peer in pattern::ALL.iter().map(|pattern| pattern.peer) {
        if let Some(path) = setting.peers.get(peer.name()) {
            versions.insert(peer.name(), say(path, peer.version_word())?);
        }
    }
    Ok(versions)
}

/// What a program says its version is: the line that says so, else its first. bonnie++ has it at
/// the end of how it is used, which goes to where errors go.
fn version_in(out: &str, err: &str) -> Option<String> {
    let lines = || out.lines().chain(err.lines()).map(str::trim);
    let told = lines().find_map(|line| line.strip_prefix("Version:"));
    let first = || out.lines().map(str::trim).find(|line| !line.is_empty());
    told.map(str::trim).or_else(first).map(str::to_owned)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    let count = text.lines().filter(|line| line.starts_with("processor")).count();
    format!("{} x {}", count.max(1), name.unwrap_or("unknown"))
}

fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

fn last_cpu() -> Result<u32> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online")
        .context("reading which processors are online")?;
    let last = online.trim().rsplit(['-', ',']).next().unwrap_or_default();
    last.parse().with_context(|| format!("no number at the end of `{}`", online.trim()))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use figures::{Figure, Kind};

    #[test]
    fn programs_say_their_version_where_they_like() {
        let usage = "usage:\nbonnie++ [-d scratch-dir]\n      [-D]\n\nVersion: 2.00a\n";
        assert_eq!(version_in("", usage).as_deref(), Some("2.00a"));
        assert_eq!(version_in("fio-3.33\n", "").as_deref(), Some("fio-3.33"));
        assert_eq!(
            version_in("\nsysbench 1.0.20\n", "warning").as_deref(),
            Some("sysbench 1.0.20")
        );
        assert_eq!(version_in("", "invalid option\n"), None);
    }

    #[test]
    fn each_side_is_found_wherever_its_turn_was() {
        let visit = |side, iops| Visit {
            side,
            seed: 1,
            values: vec![(Figure { kind: Kind::Iops, operation: "" }, Some(iops))],
            others_share: 0.0,
        };
        let block = |turn: usize| {
            let mut visits = vec![
                visit(Side::Peer, 100.0 + turn as f64),
                visit(Side::FioBatched, 50.0 + turn as f64),
                visit(Side::Ours, 200.0 + turn as f64),
                visit(Side::OursAgain, 400.0 + turn as f64),
            ];
            visits.rotate_left(turn % 4);
            visits
        };
        let compared = compared(&(0..6).map(block).collect::<Vec<_>>());
        let [only] = compared.as_slice() else { unreachable!("one figure") };
        let near = |ratio: Option<compare::Ratio>| (ratio.unwrap().rank.exp().middle - 2.0).abs();
        assert!(near(only.against_peer) < 0.1, "{only:?}");
        assert!(near(only.against_itself) < 0.1, "{only:?}");
        assert!(only.against_batched.unwrap().rank.exp().middle > 3.5, "{only:?}");
    }

    #[test]
    fn unknown_patterns_are_refused() {
        assert_eq!(choose(&[]).unwrap().len(), pattern::ALL.len());
        assert_eq!(choose(&["read-4k-1".to_owned()]).unwrap().len(), 1);
        assert!(choose(&["read-4k-2".to_owned()]).is_err());
    }
}
