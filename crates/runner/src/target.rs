//! What a target's name means.

use std::path::PathBuf;

use crate::RunError;
use crate::rig::Kind;
use crate::rigs::{KINDS, layer};

/// A word so like the name of a kind of target (Jaro and Winkler) is a slip.
const LIKE: f64 = 0.8;

/// A target as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A file, a directory for a scratch file, or a device.
    Path(PathBuf),
    /// Something else.
    Kind {
        /// What: null, memory, a model.
        kind: &'static Kind,
        /// What is behind the colon.
        rest: String,
    },
}

impl TargetName {
    /// From the command line: `null:`, `memory:SIZE`, `model:FILE.toml` and so on, else a path.
    pub fn parse(text: &std::ffi::OsStr) -> Result<Self, RunError> {
        let Some(known) = text.to_str() else { return Ok(Self::Path(text.into())) };
        let bad = |why: &str| RunError::TargetName { text: known.to_owned(), why: why.to_owned() };
        if known.is_empty() {
            return Err(bad("it is empty"));
        }
        let Some((name, rest)) = known.split_once(':') else { return Ok(Self::Path(known.into())) };
        if let Some(kind) = KINDS.iter().find(|kind| kind.name == name) {
            let rest = (kind.rest)(rest).map_err(|why| bad(&why))?;
            return Ok(Self::Kind { kind, rest });
        }
        match near(name).filter(|_| !name.contains('/')) {
            None => Ok(Self::Path(known.into())),
            Some(near) => Err(bad(&format!(
                "no such kind of target; did you mean `{near}:`? a file named like that is `./{known}`"
            ))),
        }
    }

    /// As it is stored, and read back by [`Self::parse`].
    pub fn text(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Kind { kind, rest } => format!("{}:{rest}", kind.name),
        }
    }

    /// What it is on, of a volume of the layer; else itself.
    pub fn below_layer(self) -> Self {
        match &self {
            Self::Kind { kind, rest } if **kind == layer::KIND => {
                layer::below(rest).unwrap_or(self)
            }
            _ => self,
        }
    }

    /// Whether time there is its own, so that however long a visit is, it is over once played.
    pub fn has_own_clock(&self) -> bool {
        matches!(self, Self::Kind { kind, rest } if (kind.own_clock)(rest))
    }
}

/// The kind of target that was meant by a word like it: else the word would name a file, which is made
/// and measured.
fn near(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let score = |known: &&str| strsim::jaro_winkler(&word, known);
    let names = KINDS.iter().map(|kind| kind.name);
    names.max_by(|a, b| score(a).total_cmp(&score(b))).filter(|known| score(known) >= LIKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (text, stored) in [
            ("null:", "null:"),
            ("memory:64M", "memory:64MiB"),
            ("model:a/b.toml", "model:a/b.toml"),
            ("/ssd/test.dat", "/ssd/test.dat"),
            ("./null:", "./null:"),
        ] {
            let name = TargetName::parse(text.as_ref()).unwrap();
            assert_eq!(name.text(), stored);
            assert_eq!(TargetName::parse(stored.as_ref()).unwrap(), name);
            let is_path = matches!(name, TargetName::Path(_));
            assert_eq!(is_path, text.contains('/') && !text.starts_with("model"), "{text}");
        }
    }

    #[test]
    fn a_slip_in_the_kind_names_no_file() {
        for (text, meant) in [
            ("modle:x.toml", "model:"),
            ("mem:1GiB", "memory:"),
            ("nul:", "null:"),
            ("NULL:", "null:"),
        ] {
            let told = TargetName::parse(text.as_ref()).unwrap_err().to_string();
            let wanted = format!("did you mean `{meant}`? a file named like that is `./{text}`");
            assert!(told.contains(&wanted), "{told}");
        }
        for path in [
            "./modle:x",
            "./model:x",
            "/data/modle:x",
            "nvme0:a",
            "media:x",
            "m:x",
            "db-2024:01.dat",
        ] {
            assert_eq!(TargetName::parse(path.as_ref()).unwrap(), TargetName::Path(path.into()));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "null:x", "memory:", "memory:0", "memory:many", "model:"] {
            assert!(TargetName::parse(text.as_ref()).is_err(), "{text}");
        }
    }
}
