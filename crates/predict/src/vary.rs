//! Designs that differ in keys of their text.

use std::str::FromStr;

use array::{ArrayDesign, TextError};
use units::Bytes;

/// More arrays than anybody looks through, a minute's work.
const DESIGNS_MAX: usize = 100_000;

/// A range of numbers has at most so many.
const RANGE_MAX: u32 = 256;

/// A key of an array's text, and what to put there, one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variation {
    /// As the text has it; `stripe.legs` for one within a table.
    pub key: String,
    /// As a text of TOML would have them, less the quotes.
    pub values: Vec<String>,
}

/// Variations as one word: `drives=4..16,level=raid5,raid10,chunk=8K..512K`. A range of numbers goes
/// in steps of one, a range of sizes doubles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variations(pub Vec<Variation>);

/// Why there are no designs to compare.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaryError {
    /// No key, or no values.
    #[error(
        "`{0}` varies nothing: wanted KEY=VALUE,... such as `members=4..16,level=raid5,raid10`"
    )]
    Word(String),
    /// Ends of a range.
    #[error(
        "`{0}` is no range: wanted two whole numbers at most 256 apart, or two sizes, the lower first"
    )]
    Range(String),
    /// One key, two lists.
    #[error("`{0}` varies twice")]
    Twice(String),
    /// What is before the dot is no table.
    #[error("`{0}` is no key of the array: what a part says is in the part's own file")]
    NoTable(String),
    /// Too much.
    #[error("{0} arrays, wanted at most 100000")]
    TooMany(usize),
    /// Of the array that all begin with.
    #[error(transparent)]
    Text(#[from] TextError),
}

impl FromStr for Variations {
    type Err = VaryError;

    fn from_str(text: &str) -> Result<Self, VaryError> {
        let mut all: Vec<Variation> = Vec::new();
        let wrong = || VaryError::Word(text.to_owned());
        for word in text.split(',') {
            let value = match word.split_once('=') {
                Some((key, value)) => {
                    let key = if key == "drives" { "members" } else { key };
                    all.push(Variation { key: key.to_owned(), values: Vec::new() });
                    value
                }
                None => word,
            };
            let last = all.last_mut().filter(|last| !last.key.is_empty()).ok_or_else(wrong)?;
            if value.is_empty() {
                return Err(wrong());
            }
            last.values.extend(range(value)?);
        }
        Ok(Self(all))
    }
}

/// The values that a word stands for.
fn range(word: &str) -> Result<Vec<String>, VaryError> {
    let Some((low, high)) = word.split_once("..") else { return Ok(vec![word.to_owned()]) };
    let wrong = || VaryError::Range(word.to_owned());
    if let (Ok(low), Ok(high)) = (low.parse::<u32>(), high.parse::<u32>()) {
        let is_short = high >= low && high - low < RANGE_MAX;
        return if is_short {
            Ok((low..=high).map(|n| n.to_string()).collect())
        } else {
            Err(wrong())
        };
    }
    let (Ok(low), Ok(high)) = (low.parse::<Bytes>(), high.parse::<Bytes>()) else {
        return Err(wrong());
    };
    if low == Bytes::ZERO || low > high {
        return Err(wrong());
    }
    let doubled = std::iter::successors(Some(low.get()), |size| size.checked_mul(2));
    Ok(doubled.take_while(|size| *size <= high.get()).map(|n| Bytes::new(n).exact()).collect())
}

/// A design that differs, with its values in the order of the variations.
#[derive(Clone, Debug)]
pub struct Varied {
    /// What was put in.
    pub values: Vec<String>,
    /// The array; an error says why there is none.
    pub design: Result<ArrayDesign, TextError>,
}

/// Every combination of values in the text of an array, the last key's changing first.
///
/// * `file`: name of the text, for messages.
/// * `part`: the text of a part by its name.
///
/// # Errors
///
/// The text as it is makes no array; too many combinations.
pub fn vary<'a>(
    file: &str,
    text: &str,
    variations: &[Variation],
    part: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<Varied>, VaryError> {
    ArrayDesign::parse(file, text, &part)?;
    let table: toml::Table = text.parse().unwrap_or_default();
    for (at, one) in variations.iter().enumerate() {
        if variations[..at].iter().any(|before| before.key == one.key) {
            return Err(VaryError::Twice(one.key.clone()));
        }
        let outer = one.key.split_once('.').and_then(|(outer, _)| table.get(outer));
        if outer.is_some_and(|outer| !outer.is_table()) {
            return Err(VaryError::NoTable(one.key.clone()));
        }
    }
    let count = variations.iter().map(|one| one.values.len());
    let count = count.fold(1usize, usize::saturating_mul);
    if count > DESIGNS_MAX {
        return Err(VaryError::TooMany(count));
    }
    let of = |mut at: usize| {
        let mut values = Vec::new();
        for one in variations.iter().rev() {
            values.push(one.values[at % one.values.len()].clone());
            at /= one.values.len();
        }
        values.reverse();
        let mut table = table.clone();
        for (one, value) in variations.iter().zip(&values) {
            put(&mut table, &one.key, value);
        }
        // Its lines are not those of the file.
        let design = ArrayDesign::parse(file, &table.to_string(), &part)
            .map_err(|error| TextError { line: None, ..error });
        Varied { values, design }
    };
    Ok((0..count).map(of).collect())
}

/// Puts a value into a table; `none` takes the key out.
fn put(table: &mut toml::Table, key: &str, value: &str) {
    if let Some((outer, inner)) = key.split_once('.') {
        let within = table.entry(outer).or_insert_with(|| toml::Table::new().into());
        if let toml::Value::Table(within) = within {
            put(within, inner, value);
        }
        return;
    }
    match value.parse::<i64>() {
        _ if value == "none" => drop(table.remove(key)),
        Ok(number) => drop(table.insert(key.to_owned(), number.into())),
        Err(_) => drop(table.insert(key.to_owned(), value.into())),
    }
}
