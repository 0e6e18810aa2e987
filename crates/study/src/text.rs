//! The study file: TOML to values, with a place in every message.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use units::{Bytes, Nanos};

use crate::design::Design;
use crate::factor::{self, Factor};

/// Longest text that is read as a study.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Levels of one factor.
const LEVELS_MAX: usize = 64;
/// How often a whole design may be repeated.
const REPEATS_MAX: u32 = 100;

/// Why a study file makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}")]
pub struct StudyError {
    /// `study.toml:14`, or the file alone.
    place: String,
    /// What, seen, wanted.
    what: String,
    hint: Option<String>,
}

impl StudyError {
    /// What would work instead.
    pub fn hint(&self) -> Option<String> {
        self.hint.clone()
    }

    pub(crate) fn of_file(file: &str, what: impl Into<String>, hint: Option<String>) -> Self {
        Self { place: file.to_owned(), what: what.into(), hint }
    }
}

/// The devices that a study may write; nothing else is ever touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Devices {
    /// Members, legs and spares are taken from these, in this order.
    pub pool: Vec<String>,
    /// For the write-ahead log.
    pub wal: Vec<String>,
}

impl Devices {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.pool.iter().chain(&self.wal)
    }
}

/// A suite that is measured on every stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteRef {
    /// Name of one that comes with the program, or path of a file.
    pub suite: String,
    /// As `--set` takes it: `queue_depth=1,4`.
    pub set: Vec<String>,
    /// Where its files are.
    pub on: On,
}

/// Where a suite's files are. What is the log's is beside the data where the stack has no device for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    /// With the data.
    #[default]
    Data,
    /// On the device of the write-ahead log.
    Wal,
    /// A set of files on each, at the same time: the log's come first.
    WalAndData,
}

impl On {
    fn parse(value: &toml::Value) -> Option<Self> {
        let words: Vec<&str> = match value {
            toml::Value::Array(all) => all.iter().filter_map(toml::Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        match (words.as_slice(), value.is_array()) {
            (["data"], false) => Some(Self::Data),
            (["wal"], false) => Some(Self::Wal),
            // In this order only: it is that of the files, which regions count by.
            (["wal", "data"], true) => Some(Self::WalAndData),
            _ => None,
        }
    }
}

/// How stacks are measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// In the order they are played on each stack.
    pub suites: Vec<SuiteRef>,
    /// Which stacks.
    pub design: Design,
    /// How often the whole design is measured, each time in another order.
    pub repeats: u32,
    /// Where all order and randomness come from, if the file says.
    pub seed: Option<u64>,
    /// Size of the files, or how much of a device is used.
    pub size: Option<Bytes>,
    /// Measured time of every visit.
    pub time: Option<Nanos>,
    /// Longest time of a suite on one stack.
    pub max_time: Option<Nanos>,
    /// Short forms of the suites.
    pub quick: bool,
}

/// A study as written: read, and each value by itself in order.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyText {
    /// For messages.
    pub file: String,
    /// The text.
    pub text: String,
    /// The study's name.
    pub name: String,
    /// One line about it; may be empty.
    pub title: String,
    /// Its question, in paragraphs; may be empty.
    pub description: String,
    /// What may be written.
    pub devices: Devices,
    /// Every key of `[stack]`, in the order of factors.
    pub keys: Vec<Factor>,
    /// How stacks are measured.
    pub measure: Measure,
    /// Line of each key.
    pub(crate) lines: BTreeMap<&'static str, usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: Option<Spanned<String>>,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    devices: RawDevices,
    stack: Spanned<BTreeMap<Spanned<String>, Spanned<toml::Value>>>,
    measure: Spanned<RawMeasure>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawDevices {
    pool: Vec<Spanned<String>>,
    wal: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMeasure {
    suites: Spanned<Vec<Spanned<toml::Value>>>,
    design: Option<Spanned<String>>,
    repeats: Option<Spanned<u32>>,
    seed: Option<u64>,
    size: Option<Spanned<String>>,
    time: Option<Spanned<String>>,
    max_time: Option<Spanned<String>>,
    #[serde(default)]
    quick: bool,
}

/// Text with the name to use in messages.
struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text.get(..at).unwrap_or_default().matches('\n').count()
    }

    fn wrong(&self, at: usize, what: impl Into<String>, hint: Option<&str>) -> StudyError {
        StudyError {
            place: format!("{}:{}", self.file, self.line(at)),
            what: what.into(),
            hint: hint.map(str::to_owned),
        }
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &self,
        key: &str,
        value: Option<&Spanned<String>>,
    ) -> Result<Option<T>, StudyError> {
        let parse = |value: &Spanned<String>| {
            let text = value.get_ref();
            text.parse::<T>().map_err(|error| {
                self.wrong(value.span().start, format!("`{key} = \"{text}\"`: {error}"), None)
            })
        };
        value.map(parse).transpose()
    }
}

/// Reads a study. `file` is only for messages; without a name in the text it gives the name.
pub fn parse(text: &str, file: &str) -> Result<StudyText, StudyError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(StudyError::of_file(file, "longer than 1 MiB, which is no study", None));
    }
    let source = Source { text, file };
    let raw: Raw = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.wrong(at, error.message().trim(), Some(HEAD))
    })?;
    let name = name(&source, raw.name)?;
    let devices = devices(&source, raw.devices)?;
    let (keys, lines) = keys(&source, raw.stack.into_inner())?;
    let measure = measure(&source, raw.measure, &keys)?;
    Ok(StudyText {
        file: file.to_owned(),
        text: text.to_owned(),
        name,
        title: raw.title,
        description: raw.description,
        devices,
        keys,
        measure,
        lines,
    })
}

const HEAD: &str = "a study has `[stack]` (what is built or measured), `[measure]` with `suites`, and \
                    `[devices]` where stacks are built; docs/studies.md has examples";

fn name(source: &Source<'_>, given: Option<Spanned<String>>) -> Result<String, StudyError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if let Some(name) = given {
        let text = name.get_ref();
        if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
            let what =
                format!("name `{text}`, wanted 1 to 64 of letters, digits, `-`, `_` and `.`");
            return Err(source.wrong(name.span().start, what, None));
        }
        return Ok(name.into_inner());
    }
    let last = source.file.rsplit('/').next().unwrap_or_default();
    let stem = last.strip_suffix(".toml").unwrap_or(last);
    let name: String = stem.chars().filter(|c| plain(*c)).take(64).collect();
    Ok(if name.is_empty() { "study".to_owned() } else { name })
}

fn devices(source: &Source<'_>, raw: RawDevices) -> Result<Devices, StudyError> {
    let mut seen: Vec<&String> = Vec::new();
    for device in raw.pool.iter().chain(&raw.wal) {
        let (path, at) = (device.get_ref(), device.span().start);
        let odd = |c: char| c.is_whitespace() || c.is_control() || ",=".contains(c);
        let is_odd = path.split('/').skip(1).any(|part| matches!(part, "" | "." | ".."));
        if path.starts_with("/dev/") && is_odd {
            let what =
                format!("device `{path}`, wanted its plain path: no `..`, `.` or `//` in it");
            return Err(source.wrong(at, what, Some("/dev/disk/by-id has stable names")));
        }
        if !path.starts_with("/dev/") {
            let what = format!("device `{path}`, wanted a device's path, which begins with /dev/");
            let hint = "/dev/disk/by-id has stable names; a file becomes a device by `losetup --find \
                        --show FILE`";
            return Err(source.wrong(at, what, Some(hint)));
        }
        if path.chars().any(odd) {
            let what = format!("device `{path}` has a character in it that tools would not take");
            return Err(source.wrong(at, what, None));
        }
        if seen.contains(&path) {
            let what = format!("device `{path}` is named twice");
            return Err(source.wrong(at, what, Some("name each device once")));
        }
        seen.push(path);
    }
    let all = |list: Vec<Spanned<String>>| list.into_iter().map(Spanned::into_inner).collect();
    Ok(Devices { pool: all(raw.pool), wal: all(raw.wal) })
}

type Keys = (Vec<Factor>, BTreeMap<&'static str, usize>);

fn keys(
    source: &Source<'_>,
    raw: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
) -> Result<Keys, StudyError> {
    let (mut keys, mut lines) = (Vec::new(), BTreeMap::new());
    for (key, value) in raw {
        let at = key.span().start;
        let texts = texts(source, key.get_ref(), &value)?;
        let mut levels: Vec<String> = Vec::new();
        let mut known = None;
        for text in texts {
            let Some((name, level)) = factor::read(key.get_ref(), &text) else {
                let all: Vec<&str> = factor::names().collect();
                let hint = format!("known are {}", all.join(", "));
                let what = format!("`[stack]` has no `{}`", key.get_ref());
                return Err(source.wrong(at, what, Some(&hint)));
            };
            known = Some(name);
            let level = level.map_err(|wanted| {
                let at = value.span().start;
                source.wrong(at, format!("`{name}` is `{text}`, wanted {wanted}"), None)
            })?;
            if levels.contains(&level) {
                let what = format!("`{name}` has the level `{level}` twice");
                return Err(source.wrong(value.span().start, what, Some("name each level once")));
            }
            levels.push(level);
        }
        match known {
            Some(name) if levels.len() <= LEVELS_MAX => {
                lines.insert(name, source.line(at));
                keys.push(Factor { name, levels });
            }
            _ => {
                let what = format!("`{}` has no level, or too many", key.get_ref());
                return Err(source.wrong(at, what, Some("name 1 to 64 levels, the base's first")));
            }
        }
    }
    if keys.is_empty() {
        return Err(StudyError::of_file(source.file, "`[stack]` is empty", Some(HEAD.to_owned())));
    }
    keys.sort_by_key(|key| factor::rank(key.name));
    Ok((keys, lines))
}

/// One value or a list of them, as text.
fn texts(
    source: &Source<'_>,
    key: &str,
    value: &Spanned<toml::Value>,
) -> Result<Vec<String>, StudyError> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let found: Option<Vec<String>> = match value.get_ref() {
        toml::Value::Array(all) => all.iter().map(text).collect(),
        one => text(one).map(|one| vec![one]),
    };
    found.ok_or_else(|| {
        let what = format!("`{key}` has a level that is neither text nor a whole number");
        source.wrong(value.span().start, what, None)
    })
}

fn measure(
    source: &Source<'_>,
    raw: Spanned<RawMeasure>,
    keys: &[Factor],
) -> Result<Measure, StudyError> {
    let raw = raw.into_inner();
    let design = match &raw.design {
        None => Design::OneFactorAtATime,
        Some(text) => Design::parse(text.get_ref()).ok_or_else(|| {
            let what = format!("`design` is `{}`", text.get_ref());
            let hint = "known are one-factor-at-a-time, full and fraction";
            source.wrong(text.span().start, what, Some(hint))
        })?,
    };
    let repeats = match &raw.repeats {
        None => 1,
        Some(n) if (1..=REPEATS_MAX).contains(n.get_ref()) => *n.get_ref(),
        Some(n) => {
            let what = format!("`repeats` is {}, wanted 1 to {REPEATS_MAX}", n.get_ref());
            return Err(source.wrong(n.span().start, what, None));
        }
    };
    let mut suites = Vec::new();
    for entry in raw.suites.get_ref() {
        let suite = suite(source, entry)?;
        if suite.on == On::WalAndData && !all_mounted(keys) {
            let what = format!(
                "`{}` is to have files on log and data, and not every stack has a file system",
                suite.suite
            );
            let hint = "name `file_system` in `[stack]`, without `none`";
            return Err(source.wrong(entry.span().start, what, Some(hint)));
        }
        suites.push(suite);
    }
    if suites.is_empty() {
        let hint = "`plimsoll suite list` names those that there are";
        return Err(source.wrong(raw.suites.span().start, "`suites` is empty", Some(hint)));
    }
    Ok(Measure {
        suites,
        design,
        repeats,
        seed: raw.seed,
        size: source.parsed("size", raw.size.as_ref())?,
        time: source.parsed("time", raw.time.as_ref())?,
        max_time: source.parsed("max_time", raw.max_time.as_ref())?,
        quick: raw.quick,
    })
}

/// Whether every stack has a file system of the study's, where files of two kinds can be side by side.
fn all_mounted(keys: &[Factor]) -> bool {
    let levels = keys.iter().find(|key| key.name == "file_system").map(|key| &key.levels);
    levels.is_some_and(|levels| levels.iter().all(|level| level != factor::NONE))
}

fn suite(source: &Source<'_>, entry: &Spanned<toml::Value>) -> Result<SuiteRef, StudyError> {
    let wrong = |what: &str| {
        let hint = "a suite is its name, or { suite = \"name\", set = { queue_depth = 4 } }";
        source.wrong(entry.span().start, what, Some(hint))
    };
    match entry.get_ref() {
        toml::Value::String(name) if !name.trim().is_empty() => {
            Ok(SuiteRef { suite: name.trim().to_owned(), set: Vec::new(), on: On::Data })
        }
        toml::Value::Table(table) => {
            let name = table.get("suite").and_then(toml::Value::as_str);
            let name = name.ok_or_else(|| wrong("a suite without a name"))?;
            if let Some(key) =
                table.keys().find(|key| !["suite", "set", "on"].contains(&key.as_str()))
            {
                return Err(wrong(&format!("a suite has no `{key}` here")));
            }
            let mut set = Vec::new();
            match table.get("set") {
                None => {}
                Some(toml::Value::Table(fields)) => {
                    for (key, value) in fields {
                        assignments(key, value, &mut set);
                    }
                }
                Some(_) => return Err(wrong("`set` is no table")),
            }
            // What is set for one phase or stream counts more than the same for all of them.
            set.sort_by_key(|one| one.split('=').next().map_or(0, |key| key.matches('.').count()));
            let on = match table.get("on") {
                None => On::Data,
                Some(value) => On::parse(value).ok_or_else(|| {
                    let what = format!(
                        "`on` is `{value}`, wanted \"data\", \"wal\" or [\"wal\", \"data\"]"
                    );
                    let hint = "where the suite's files are: with the data, on the log's device, or a \
                                set on each at the same time, the log's first";
                    source.wrong(entry.span().start, what, Some(hint))
                })?,
            };
            Ok(SuiteRef { suite: name.to_owned(), set, on })
        }
        _ => Err(wrong("a suite is neither text nor a table")),
    }
}

/// As `--set` takes them: tables become dotted keys, lists have commas.
fn assignments(key: &str, value: &toml::Value, into: &mut Vec<String>) {
    let plain = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        toml::Value::Table(table) => {
            for (below, value) in table {
                assignments(&format!("{key}.{below}"), value, into);
            }
        }
        toml::Value::Array(all) => {
            let all: Vec<String> = all.iter().map(plain).collect();
            into.push(format!("{key}={}", all.join(",")));
        }
        other => into.push(format!("{key}={}", plain(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
name = "legs"
title = "one leg against two"
[devices]
pool = ["/dev/loop1", "/dev/loop2"]
[stack]
file_system = ["xfs", "ext4"]
legs = [1, 2]
chunk = "64KiB"
[measure]
suites = ["bm-flash", { suite = "random-read", set = { queue_depth = [1, 4], access.kind = "random" } }]
design = "full"
repeats = 2
size = "1GiB"
time = "2s"
seed = 7
"#;

    #[test]
    fn a_whole_study_is_read() {
        let study = parse(WHOLE, "x/legs.toml").unwrap();
        assert_eq!((study.name.as_str(), study.devices.pool.len()), ("legs", 2));
        let names: Vec<&str> = study.keys.iter().map(|key| key.name).collect();
        assert_eq!(names, ["legs", "chunk", "file_system"], "in the order of factors");
        assert_eq!(study.keys[0].levels, ["1", "2"]);
        let measure = &study.measure;
        assert_eq!((measure.design, measure.repeats, measure.seed), (Design::Full, 2, Some(7)));
        assert_eq!(measure.suites[1].set, ["queue_depth=1,4", "access.kind=random"]);
        assert_eq!(measure.time, Some(Nanos::secs(2)));
    }

    #[test]
    fn log_and_data_at_once_need_file_systems() {
        let suite = "{ suite = \"a\", on = [\"wal\", \"data\"], set = { region.start = \"50%\", log.region.start = \"0B\" } }";
        let both = WHOLE.replace("\"bm-flash\"", suite);
        let found = &parse(&both, "s.toml").unwrap().measure.suites[0];
        assert_eq!(found.on, On::WalAndData);
        assert_eq!(found.set, ["region.start=50%", "log.region.start=0B"], "the narrower one last");
        for (from, to) in [("\"ext4\"", "\"none\""), ("file_system = [\"xfs\", \"ext4\"]\n", "")] {
            let error = parse(&both.replace(from, to), "s.toml").unwrap_err().to_string();
            assert!(error.contains("`a` is to have files on log and data"), "{to}: {error}");
        }
    }

    #[test]
    fn the_file_gives_the_name_that_is_missing() {
        let text = WHOLE.replace("name = \"legs\"\n", "");
        assert_eq!(parse(&text, "a/b/two legs.toml").unwrap().name, "twolegs");
    }

    #[test]
    fn every_fault_has_its_line() {
        for (from, to, wanted) in [
            ("legs = [1, 2]", "legs = [0]", "s.toml:8: `legs` is `0`, wanted 1 to 256"),
            ("legs = [1, 2]", "legs = [2, 2]", "s.toml:8: `legs` has the level `2` twice"),
            ("legs = [1, 2]", "legs = []", "s.toml:8: `legs` has no level, or too many"),
            ("legs = [1, 2]", "leg = [1, 2]", "s.toml:8: `[stack]` has no `leg`"),
            ("legs = [1, 2]", "legs = [1.5]", "s.toml:8: `legs` has a level that is neither"),
            ("\"full\"", "\"all\"", "s.toml:12: `design` is `all`"),
            ("repeats = 2", "repeats = 0", "s.toml:13: `repeats` is 0, wanted 1 to 100"),
            ("\"2s\"", "\"two\"", "s.toml:15: `time = \"two\"`"),
            ("\"/dev/loop2\"", "\"/home/x\"", "s.toml:5: device `/home/x`, wanted a device's path"),
            ("\"/dev/loop2\"", "\"/dev\"", "s.toml:5: device `/dev`, wanted a device's path"),
            (
                "\"/dev/loop2\"",
                "\"/dev/../etc/x\"",
                "s.toml:5: device `/dev/../etc/x`, wanted its plain path",
            ),
            ("\"/dev/loop2\"", "\"/dev/loop1\"", "s.toml:5: device `/dev/loop1` is named twice"),
            ("\"/dev/loop2\"", "\"/dev/a,b\"", "s.toml:5: device `/dev/a,b` has a character"),
            (
                "\"bm-flash\"",
                "{ suite = \"a\", on = 1 }",
                "s.toml:11: `on` is `1`, wanted \"data\", \"wal\" or [\"wal\", \"data\"]",
            ),
            (
                "\"bm-flash\"",
                "{ suite = \"a\", on = [\"data\", \"wal\"] }",
                "s.toml:11: `on` is `[\"data\", \"wal\"]`, wanted \"data\"",
            ),
            ("\"bm-flash\"", "{ suite = \"a\", on = [] }", "s.toml:11: `on` is `[]`, wanted"),
            (
                "legs = [1, 2]",
                "mount = [\"defaults\", \",,\"]",
                "s.toml:8: `mount` is `,,`, wanted mount options",
            ),
            ("\"bm-flash\"", "17", "s.toml:11: a suite is neither text nor a table"),
            ("seed = 7", "sed = 7", "s.toml:16: unknown field `sed`"),
            ("name = \"legs\"", "name = \"../x\"", "s.toml:2: name `../x`"),
        ] {
            let error = parse(&WHOLE.replace(from, to), "s.toml").unwrap_err();
            assert!(error.to_string().starts_with(wanted), "{to}: {error}");
        }
        assert!(parse("", "s.toml").unwrap_err().hint().is_some());
    }

    #[test]
    fn the_hint_of_a_place_for_files_is_about_places() {
        let text = WHOLE.replace("\"bm-flash\"", "{ suite = \"a\", on = \"log\" }");
        let hint = parse(&text, "s.toml").unwrap_err().hint().unwrap();
        assert!(hint.contains("the log's first"), "{hint}");
    }
}
