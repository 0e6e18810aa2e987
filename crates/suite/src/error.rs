//! What can be wrong with a suite, where, and what to do about it.

use std::fmt;

use units::Bytes;

use crate::builtin::{builtin, builtin_lists};
use crate::hint;
use crate::node::At;

/// Why a suite was refused: the place, what is wrong there, and a [`hint`](Self::hint).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct SuiteError {
    // Boxed, since every function of this room returns one and hardly ever does.
    place: Box<Place>,
    problem: Box<Problem>,
}

impl SuiteError {
    pub(crate) fn new(place: Place, problem: Problem) -> Self {
        Self { place: Box::new(place), problem: Box::new(problem) }
    }

    /// Where it is wrong.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What to do about it, if that can be told.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

/// Where a suite is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of the text, from 1.
    Line {
        /// The name the text was given when it was read.
        file: String,
        /// From 1.
        line: usize,
    },
    /// An override, as typed: `--set threads=0`.
    Override(String),
}

impl Place {
    /// * `overrides`: their texts.
    pub(crate) fn of(file: &str, text: &str, overrides: &[String], at: At) -> Self {
        match at {
            At::Text(offset) => {
                let before = text.bytes().take(offset);
                let line = 1 + before.filter(|&byte| byte == b'\n').count();
                Self::Line { file: file.to_owned(), line }
            }
            At::Override(number) => {
                Self::Override(overrides.get(number).cloned().unwrap_or_default())
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Nobody has its text.
            Self::Line { file, .. }
                if builtin().iter().chain(builtin_lists()).any(|suite| suite.file == file) =>
            {
                f.write_str(file)
            }
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Override(text) => f.write_str(text),
        }
    }
}

/// What is wrong with a suite.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Not TOML.
    #[error("{0}")]
    Syntax(String),
    /// More than is read of a suite.
    #[error("a suite of `{}` is too long, wanted at most `{}`", .seen.exact(), .limit.exact())]
    TooLong {
        /// How long it is.
        seen: Bytes,
        /// How long it may be.
        limit: Bytes,
    },
    /// A value that is no TOML: a text without quotes.
    #[error("`{key}` is {value}, wanted a number, or text in quotes")]
    Bare {
        /// The field, as far as that can be told.
        key: String,
        /// As written.
        value: String,
    },
    /// A key that means nothing here.
    #[error("unknown key `{key}`")]
    UnknownKey {
        /// As written.
        key: String,
        /// What could have stood here.
        known: Vec<String>,
    },
    /// A field in the wrong part of the suite.
    #[error("`{key}` cannot stand here")]
    Misplaced {
        /// The field.
        key: String,
        /// Where it belongs.
        belongs: &'static str,
    },
    /// The name of a phase or stream where a field was wanted.
    #[error("`{0}` is the name of a phase or stream, not a field")]
    NotAField(String),
    /// A word that is none of those a field takes.
    #[error("`{field}` is `{seen}`, wanted {}", one_of(.known))]
    UnknownWord {
        /// The field.
        field: String,
        /// As written.
        seen: String,
        /// The words it takes.
        known: Vec<String>,
    },
    /// A value of another type.
    #[error("`{field}` is {seen}, wanted {wanted}")]
    WrongType {
        /// The field.
        field: String,
        /// What was found.
        seen: String,
        /// What it takes.
        wanted: String,
    },
    /// A text that could not be read as what the field takes.
    #[error("`{field}`: {message}")]
    Unreadable {
        /// The field.
        field: String,
        /// Why not.
        message: String,
    },
    /// Something that must be there is not.
    #[error("{of} has no `{field}`")]
    Missing {
        /// The field.
        field: String,
        /// What should have it.
        of: String,
    },
    /// A name or value that comes twice.
    #[error("{what} `{name}` comes twice")]
    Duplicate {
        /// What kind of thing.
        what: String,
        /// Its name.
        name: String,
    },
    /// A name that cannot be one.
    #[error("`{name}` cannot be the name of a {of}")]
    BadName {
        /// As written.
        name: String,
        /// Suite, phase or stream.
        of: &'static str,
    },
    /// A number outside its bounds.
    #[error("`{field}` is `{seen}`, wanted {wanted}")]
    OutOfRange {
        /// The field.
        field: String,
        /// As written.
        seen: String,
        /// The bounds in words.
        wanted: String,
    },
    /// A length that does not divide evenly.
    #[error("{what} `{seen}` is not a multiple of {unit} `{multiple}`")]
    NotMultiple {
        /// What was measured.
        what: &'static str,
        /// Its bytes.
        seen: u64,
        /// What it must be a multiple of.
        unit: &'static str,
        /// The bytes of that.
        multiple: u64,
    },
    /// Two fields of which only one can be.
    #[error("`{first}` and `{second}` exclude each other")]
    Conflict {
        /// One.
        first: String,
        /// The other.
        second: String,
        /// Which to take.
        hint: Option<String>,
    },
    /// Shares that are not a whole.
    #[error("the {what} sum to `{sum}`, wanted `1`")]
    Shares {
        /// Which shares.
        what: &'static str,
        /// Their sum.
        sum: f64,
    },
    /// Something larger than what it must fit into.
    #[error("{what} `{}` is more than {container} `{}`", .seen.exact(), .limit.exact())]
    TooLarge {
        /// What does not fit.
        what: &'static str,
        /// Its size.
        seen: Bytes,
        /// What it must fit into.
        container: &'static str,
        /// The size of that.
        limit: Bytes,
        /// What to change.
        hint: Option<String>,
    },
    /// Nothing ends the stream.
    #[error("nothing ends stream `{stream}`")]
    NoStop {
        /// Its name.
        stream: String,
    },
    /// An axis without values.
    #[error("the grid's axis `{field}` is empty")]
    EmptyAxis {
        /// The field it varies.
        field: String,
    },
    /// The grid is out of hand.
    #[error("the grids have `{seen}` streams in all their cells, wanted at most `{limit}`")]
    TooManyCells {
        /// How many there would be.
        seen: u128,
        /// How many there can be.
        limit: u64,
    },
    /// A part of a value that its kind does not have.
    #[error("`{field}` means nothing for {of}")]
    Meaningless {
        /// The part.
        field: String,
        /// What it was given to.
        of: String,
    },
    /// A field that changes nothing where it is set, whatever it is set to.
    #[error("`{field}` changes nothing here: {why}")]
    NoEffect {
        /// The field.
        field: String,
        /// What leaves no room for it.
        why: String,
        /// What to do instead.
        hint: String,
    },
    /// Rounds that end as not steady, whatever is measured.
    #[error("phase `{phase}` can never be called steady: {why}")]
    NeverSteady {
        /// The phase.
        phase: String,
        /// What keeps it from that.
        why: String,
        /// What to change.
        hint: String,
    },
    /// A value that makes sense only with another.
    #[error("{what} needs {needs}")]
    Needs {
        /// What was asked for.
        what: String,
        /// What it needs.
        needs: String,
    },
    /// Not `key=value`.
    #[error("`{0}` is not of the form key=value")]
    NotAnAssignment(String),
    /// Arrivals by chance of a stream without a rate.
    #[error("`arrivals = \"poisson\"` needs a `rate`, which `{stream}` has not")]
    NoRate {
        /// The stream, or its phase where that is the only one.
        stream: String,
    },
    /// A measured time that ends within a turn of work and rest.
    #[error(
        "phase `{phase}`: `{field}` is {time}, which is no whole number of turns of `duty` of \
         {turn} each: its rate depends on how much of a rest is in it"
    )]
    TornTurn {
        /// The phase.
        phase: Box<str>,
        /// What sets its time.
        field: &'static str,
        /// What that is.
        time: Box<str>,
        /// Of work and rest.
        turn: Box<str>,
        /// The next longer time that has whole turns.
        whole: Box<str>,
    },
    /// An axis of a detail beside one of the whole field.
    #[error("the grid varies `{field}`, and its values say what `{detail}` is")]
    VariedWithin {
        /// The field of the wider axis.
        field: String,
        /// That of the other.
        detail: String,
    },
    /// One stream's field, varied for all of them.
    #[error("the grid varies `{field}` for all streams of phase `{phase}` together")]
    VariedForAll {
        /// The field.
        field: String,
        /// The phase.
        phase: String,
    },
    /// A list of suites where one suite was wanted.
    #[error("`{name}` is a list of suites, not one")]
    IsAList {
        /// The list's name.
        name: String,
    },
    /// A part of a list that is a list.
    #[error("part `{suite}` is a list of suites itself")]
    Nested {
        /// The part's suite.
        suite: String,
    },
    /// Sizes that cannot be multiplied so.
    #[error("the scale is `{0}`, wanted more than 0, at most 1000")]
    Scale(String),
    /// No `[quick]` table.
    #[error("the suite has no `[quick]` table, so nobody knows what its short form is")]
    NoQuick,
}

impl Problem {
    /// What to do about it, if that can be told.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownKey { key, known } => Some(hint::of_key(key, known)),
            Self::UnknownWord { field, seen, known } => hint::of_word(field, seen, known),
            Self::WrongType { field, seen, wanted } => hint::of_type(field, seen, wanted),
            Self::OutOfRange { field, seen, .. } => hint::of_range(field, seen),
            Self::Duplicate { what, name } => hint::of_duplicate(what, name),
            Self::Bare { key, value } => Some(hint::of_bare(key, value)),
            Self::NeverSteady { hint, .. } => Some(hint.clone()),
            Self::Misplaced { belongs, .. } => Some(format!("it belongs {belongs}")),
            Self::Meaningless { field, .. } => hint::of_meaningless(field),
            Self::TooLong { .. } => Some("put its phases into several suites".to_owned()),
            Self::NotAField(name) => Some(format!("for example `{name}.threads=4`")),
            Self::NotMultiple { seen, multiple, .. } => multiple_hint(*seen, *multiple),
            Self::Conflict { hint, .. } | Self::TooLarge { hint, .. } => hint.clone(),
            Self::NoEffect { hint, .. } => Some(hint.clone()),
            Self::NoStop { .. } => Some("set `time`, `bytes` or `operations`".to_owned()),
            Self::NotAnAssignment(_) => Some("for example `block_size=8KiB`".to_owned()),
            Self::TornTurn { field, whole, .. } => Some(format!("set `{field}` to `{whole}`")),
            Self::NoRate { stream } => Some(format!(
                "say both of them for those that have a rate, or `arrivals = \"fixed\"` for \
                 `{stream}`"
            )),
            Self::VariedWithin { field, .. } if field == "sync" => Some(
                "vary `sync.op` and `sync.every`, or have a table for each cell as a value of \
                 `sync`"
                    .to_owned(),
            ),
            Self::VariedWithin { field, .. } => {
                Some(format!("have a table for each cell as a value of `{field}`"))
            }
            Self::VariedForAll { field, .. } => Some(format!("set `{field}` itself")),
            Self::IsAList { .. } => {
                Some("`plimsoll run` plays lists; here take the suite of one part".to_owned())
            }
            Self::Nested { .. } => Some("name its parts here instead".to_owned()),
            Self::NoQuick => Some("shorten the cells with `--time`".to_owned()),
            Self::EmptyAxis { .. } => Some("leave the axis out or give it values".to_owned()),
            Self::BadName { name, of } => Some(bad_name_hint(name, of)),
            Self::Shares { .. } => Some("each share is a part of 1, not a percentage".to_owned()),
            _ => None,
        }
    }
}

fn bad_name_hint(name: &str, of: &str) -> String {
    if of == "suite" {
        "names are 1 to 64 lower-case letters, digits and hyphens, no hyphen first".to_owned()
    } else if crate::raw::is_field(name) {
        format!("`{name}` is the name of a field; overrides could not tell them apart")
    } else {
        "names are 1 to 64 lower-case letters, digits and hyphens, a letter first".to_owned()
    }
}

/// The neighbours of `seen` that would do.
fn multiple_hint(seen: u64, multiple: u64) -> Option<String> {
    let below = seen.checked_div(multiple)?.checked_mul(multiple)?;
    match (below, below.checked_add(multiple)) {
        (0, Some(above)) => Some(format!("use `{above}`")),
        (below, Some(above)) => Some(format!("use `{below}` or `{above}`")),
        (below, None) => Some(format!("use `{below}`")),
    }
}

fn one_of(known: &[String]) -> String {
    let quoted: Vec<String> = known.iter().map(|word| format!("`{word}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
    }
}
