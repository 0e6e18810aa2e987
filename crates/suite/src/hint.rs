//! What to do about a mistake: the word that was probably meant, where a field belongs, how a value
//! is written.

use crate::phase;
use crate::raw::{self, RawRounds, RawSteady};
use crate::reader::field_names;

/// What other tools, and other parts of a suite, call our words.
const SYNONYMS: [(&str, &str); 35] = [
    ("bs", "block_size"),
    ("iodepth", "queue_depth"),
    ("io_depth", "queue_depth"),
    ("qd", "queue_depth"),
    ("depth", "queue_depth"),
    ("numjobs", "threads"),
    ("jobs", "threads"),
    ("workers", "threads"),
    ("runtime", "time"),
    ("duration", "time"),
    ("ramp_time", "ramp"),
    ("warmup", "ramp"),
    ("size", "file_size"),
    ("filesize", "file_size"),
    ("nrfiles", "file_count"),
    ("ioengine", "backend"),
    ("rw", "operation"),
    ("op", "operation"),
    ("rate_iops", "rate"),
    ("iops", "rate"),
    ("random", "uniform"),
    ("rwmixread", "read_share"),
    ("write_share", "read_share"),
    ("fsync", "sync"),
    ("fdatasync", "sync"),
    ("repeat", "repeats"),
    ("loops", "repeats"),
    ("visits", "visits_max"),
    ("max_visits", "visits_max"),
    ("min_visits", "visits_min"),
    ("max_rounds", "rounds_max"),
    ("max_time", "time_max"),
    ("phases", "phase"),
    ("streams", "stream"),
    ("parts", "part"),
];

/// Words that say what a request does and where it goes at once, as other tools have them, with
/// what we say instead.
const MODES: [(&str, &str); 10] = [
    ("randread", "`operation = \"read\"` with `access = \"uniform\"`"),
    ("random-read", "`operation = \"read\"` with `access = \"uniform\"`"),
    ("randwrite", "`operation = \"write\"` with `access = \"uniform\"`"),
    ("random-write", "`operation = \"write\"` with `access = \"uniform\"`"),
    ("seqread", "`operation = \"read\"` with `access = \"sequential\"`"),
    ("seqwrite", "`operation = \"write\"` with `access = \"sequential\"`"),
    ("randrw", "`read_share = 0.5` with `access = \"uniform\"`"),
    ("rw", "`read_share = 0.5`"),
    ("readwrite", "`read_share = 0.5`"),
    ("mixed", "`read_share = 0.5`, or `classes`"),
];

/// Words that belong to the command.
const OF_THE_RUN: [(&str, &str); 4] = [
    ("seed", "--seed 42"),
    ("target", "--target PATH"),
    ("filename", "--target PATH"),
    ("scale", "--scale 0.1"),
];

/// Of a detail that the value beside it does not have.
pub(crate) fn of_meaningless(field: &str) -> Option<String> {
    let access = match field {
        "step" => "stride",
        "theta" => "zipf",
        "zones" => "hot",
        "random_share" => "mixed",
        "requests" => "replay",
        "shared" => "sequential",
        _ => return None,
    };
    Some(format!("it is a detail of `access = {{ kind = \"{access}\", {field} = ... }}`"))
}

/// Of a key that means nothing where it stands.
///
/// * `known`: what could have stood there.
pub(crate) fn of_key(key: &str, known: &[String]) -> String {
    if let Some((_, instead)) = OF_THE_RUN.iter().find(|(word, _)| *word == key) {
        return format!("that is of the run, and no part of its suite: `{instead}`");
    }
    let meant = synonym(key);
    if let Some(word) = known.iter().find(|word| meant == Some(word.as_str())) {
        let less = if key == "write_share" { " it is 1 less the share of writes" } else { "" };
        return format!("did you mean {}?{less}", shown(word));
    }
    if let Some(place) = belongs(key) {
        return format!("it belongs {place}");
    }
    if let Some((word, place)) = meant.and_then(|word| Some((word, belongs(word)?))) {
        return format!("did you mean {}? it belongs {place}", shown(word));
    }
    match similar(key, known) {
        Some(word) => format!("did you mean {}?", shown(word)),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// Of a word that a field does not take.
pub(crate) fn of_word(field: &str, seen: &str, known: &[String]) -> Option<String> {
    let mode = MODES.iter().find(|(word, _)| *word == seen && field == "operation");
    if let Some((_, instead)) = mode {
        return Some(format!("say {instead}"));
    }
    let meant = synonym(seen);
    let word = known.iter().find(|word| meant == Some(word.as_str())).map(String::as_str);
    word.or_else(|| similar(seen, known)).map(|word| format!("did you mean `{word}`?"))
}

/// Of a value of another type, by how it was described.
pub(crate) fn of_type(field: &str, seen: &str, wanted: &str) -> Option<String> {
    let text = seen.strip_prefix("the string \"").and_then(|rest| rest.strip_suffix('"'));
    let number = seen.strip_prefix("the number ").and_then(|rest| rest.parse::<f64>().ok());
    let field = field.rsplit('.').next().unwrap_or(field);
    match (field, text, number) {
        ("grid", ..) if seen == "a list" => Some(
            "a phase has one `[phase.grid]`, with a list of values for each field that varies"
                .to_owned(),
        ),
        ("steady", ..) => Some("for example `steady = { round = \"10s\", volume = 2 }`".to_owned()),
        ("block_size", ..) if seen == "a table" => {
            Some(format!("a mix of sizes goes to `block_sizes`: {SIZE_MIX}"))
        }
        ("block_sizes", ..) if wanted.contains("value") => Some(
            "for example `[[\"4KiB\", \"64KiB\"], { \"4KiB\" = 60, \"64KiB\" = 40 }]`".to_owned(),
        ),
        ("block_sizes", ..) => Some(format!("with weights it is one table: {SIZE_MIX}")),
        ("region" | "start" | "length" | "copy_to", _, Some(share))
            if (0.0..=1.0).contains(&share) =>
        {
            Some(format!("a share of the files is text: `\"{}%\"`", percent(share)))
        }
        (_, Some(text), _) if wanted.contains("number") => {
            if let Some(share) = text.strip_suffix('%') {
                return share_of(share.trim().parse().ok()?);
            }
            let bare = text.trim();
            bare.parse::<f64>().ok().map(|_| format!("without quotes: `{bare}`"))
        }
        (_, Some(text @ ("true" | "false")), _) if wanted == "true or false" => {
            Some(format!("without quotes: `{text}`"))
        }
        (_, Some("yes" | "on"), _) | (_, _, Some(1.0)) if wanted == "true or false" => {
            Some("say `true`".to_owned())
        }
        (_, Some("no" | "off"), _) | (_, _, Some(0.0)) if wanted == "true or false" => {
            Some("say `false`".to_owned())
        }
        _ => None,
    }
}

/// Block sizes with weights, as they are written.
pub(crate) const SIZE_MIX: &str = "`{ \"4KiB\" = 60, \"64KiB\" = 40 }`";

/// Of a number outside its bounds: how else one gets what is beyond the upper one.
pub(crate) fn of_range(field: &str, seen: &str) -> Option<String> {
    // 0, or less, is too few of anything.
    if seen == "0" || seen.starts_with('-') {
        return None;
    }
    let field = field.rsplit('.').next().unwrap_or(field);
    if field.ends_with("_share") || field == "precision" {
        return share_of(seen.parse().ok()?);
    }
    Some(
        match field {
            "threads" => "more requests at once: a `queue_depth` for each thread, or more streams",
            "queue_depth" => "more requests at once: more `threads`, each with its own queue",
            "[[part]]" | "repeats of all parts" => {
                "make several lists of it, and play them one after the other"
            }
            _ => return None,
        }
        .to_owned(),
    )
}

/// Of what stands twice.
pub(crate) fn of_duplicate(what: &str, name: &str) -> Option<String> {
    if what != "key" {
        return None;
    }
    Some(match name {
        "phase" | "part" => format!("several are written `[[{name}]]`"),
        "phase.stream" | "stream" => "several are written `[[phase.stream]]`".to_owned(),
        "phase.grid" | "grid" => "a phase has one grid: put the axes into one table".to_owned(),
        _ => "keep one of them".to_owned(),
    })
}

/// Of a value that is no TOML, being text without quotes.
pub(crate) fn of_bare(key: &str, value: &str) -> String {
    let field = key.rsplit('.').next().unwrap_or(key);
    let percent = value.strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok());
    match percent {
        Some(share) if !matches!(field, "region" | "start" | "length" | "copy_to") => {
            share_of(share).unwrap_or_else(|| quoted(value))
        }
        _ => match value.to_lowercase().as_str() {
            "yes" | "on" | "true" => "say `true`".to_owned(),
            "no" | "off" | "false" => "say `false`".to_owned(),
            _ => quoted(value),
        },
    }
}

fn quoted(value: &str) -> String {
    format!("put it in quotes: `\"{value}\"`")
}

/// How a percentage is written where a share is wanted.
fn share_of(percent: f64) -> Option<String> {
    (2.0..=100.0)
        .contains(&percent)
        .then(|| format!("a share is a part of 1: {percent} % is `{}`", rounded(percent / 100.0)))
}

fn percent(share: f64) -> f64 {
    rounded(share * 100.0)
}

/// Without the digits that only binary fractions have.
fn rounded(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// Where a word belongs that is known elsewhere in a suite.
pub(crate) fn belongs(key: &str) -> Option<&'static str> {
    Some(match key {
        "grid" => "in a phase: `[phase.grid]` below its `[[phase]]`",
        "stream" => "in a phase: `[[phase.stream]]` below its `[[phase]]`",
        "phase" => "at the top of the suite: `[[phase]]`",
        "part" => {
            "in a list of suites, which has `[[part]]` and no `[[phase]]`: make a file for each"
        }
        "defaults" => "at the top of the suite: `[defaults]`",
        "quick" => "at the top of the suite: `[quick]`",
        "volume" => "in a phase's `steady = { volume = 2 }` or in a pass of `precondition`",
        "rounds_max" => {
            "in a phase's `steady = { rounds_max = 50 }`; of `[rounds]` that is `visits_max`"
        }
        "weight" => "in `classes = [{ weight = 3, operation = \"read\" }]`",
        "kind" | "theta" | "step" | "zones" | "requests" => {
            "in a table: `access = { kind = \"zipf\", theta = 0.99 }`"
        }
        "every" | "each_file" | "at_end" => "in a table: `sync = { op = \"fsync\", every = 100 }`",
        "stripe" => "in a table: `spread = { stripe = \"1MiB\" }`",
        "on" | "off" => "in a table: `duty = { on = \"5s\", off = \"10s\" }`",
        "start" | "length" => "in a table: `region = { start = \"1GiB\", length = \"rest\" }`",
        _ if field_names::<RawSteady>().contains(&key) => {
            "in a phase's `steady = { round = \"10s\", volume = 2 }`"
        }
        _ if phase::own_fields().contains(&key) && raw::is_head_field(key) => {
            "in a phase, or at the top of the suite"
        }
        _ if phase::own_fields().contains(&key) => "in a phase, not in a stream or a grid",
        _ if raw::is_head_field(key) => "at the top of the suite",
        _ if raw::is_stream_field(key) => "in [defaults], a phase or a stream",
        _ if field_names::<RawRounds>().contains(&key) => {
            "in `[rounds]`, a table at the top of the suite"
        }
        _ => return None,
    })
}

/// A word as it is written: tables have brackets.
fn shown(word: &str) -> String {
    match word {
        "phase" | "part" => format!("`[[{word}]]`"),
        "stream" => "`[[phase.stream]]`".to_owned(),
        "grid" => "`[phase.grid]`".to_owned(),
        "defaults" | "quick" => format!("`[{word}]`"),
        _ => format!("`{word}`"),
    }
}

fn synonym(seen: &str) -> Option<&'static str> {
    SYNONYMS.iter().find(|(other, _)| *other == seen).map(|(_, ours)| *ours)
}

/// The known word that is most like `seen`, if one is.
fn similar<'a>(seen: &str, known: &'a [String]) -> Option<&'a str> {
    let plain = seen.to_lowercase().replace('-', "_");
    let score = |word: &str| {
        let word = word.to_lowercase().replace('-', "_");
        strsim::jaro_winkler(&plain, &word)
            .max(strsim::normalized_damerau_levenshtein(&plain, &word))
    };
    known
        .iter()
        .map(|word| (score(word), word.as_str()))
        .filter(|(score, _)| *score >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}
