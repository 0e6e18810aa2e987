//! The arrays and parts that come with the program.

use crate::design::ArrayDesign;
use crate::error::TextError;

// `ARRAYS` and `PARTS`: names and texts, from `arrays/` and `parts/`, in order of their names.
include!(concat!(env!("OUT_DIR"), "/builtin.rs"));

/// Names and texts of the built-in arrays.
pub fn arrays() -> &'static [(&'static str, &'static str)] {
    ARRAYS
}

/// Names and texts of the built-in parts.
pub fn parts() -> &'static [(&'static str, &'static str)] {
    PARTS
}

/// The text of a built-in part.
pub fn part(name: &str) -> Option<&'static str> {
    PARTS.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// A built-in array.
///
/// # Errors
///
/// There is none of that name.
pub fn design(name: &str) -> Result<ArrayDesign, TextError> {
    let (_, text) = ARRAYS
        .iter()
        .find(|(own, _)| *own == name)
        .ok_or_else(|| TextError::known("arrays", "name", name, "a built-in array"))?;
    ArrayDesign::parse(&format!("arrays/{name}.toml"), text, part)
}
