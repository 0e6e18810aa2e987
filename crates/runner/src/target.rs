//! What a target's name means.

use std::path::PathBuf;

use units::Bytes;

use crate::RunError;

/// A word so like the name of a kind of target (Jaro and Winkler) is a slip.
const LIKE: f64 = 0.8;

/// A target as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A file, a directory for a scratch file, or a device.
    Path(PathBuf),
    /// The null twin on the real clock: our own overhead.
    Null,
    /// The memory twin: so many bytes of this process's memory.
    Memory(Bytes),
    /// The model twin on a virtual clock, from a TOML file.
    Model(PathBuf),
}

impl TargetName {
    /// From the command line: `null:`, `memory:SIZE`, `model:FILE.toml`, else a path.
    pub fn parse(text: &std::ffi::OsStr) -> Result<Self, RunError> {
        let Some(known) = text.to_str() else { return Ok(Self::Path(text.into())) };
        let bad = |why: &str| RunError::TargetName { text: known.to_owned(), why: why.to_owned() };
        if known.is_empty() {
            return Err(bad("it is empty"));
        }
        match known.split_once(':') {
            Some(("null", "")) => Ok(Self::Null),
            Some(("null", _)) => Err(bad("`null:` takes nothing after the colon")),
            Some(("memory", size)) => match size.parse::<Bytes>() {
                Ok(size) if size > Bytes::ZERO => Ok(Self::Memory(size)),
                Ok(_) => Err(bad("a memory of no size")),
                Err(error) => Err(bad(&error.to_string())),
            },
            Some(("model", "")) => Err(bad("`model:` needs a file after the colon")),
            Some(("model", path)) => Ok(Self::Model(path.into())),
            Some((kind, _)) if let Some(near) = near(kind).filter(|_| !kind.contains('/')) => {
                Err(bad(&format!(
                    "no such kind of target; did you mean `{near}:`? a file named like that is `./{known}`"
                )))
            }
            _ => Ok(Self::Path(known.into())),
        }
    }

    /// As it is stored, and read back by [`Self::parse`].
    pub fn text(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Null => "null:".to_owned(),
            Self::Memory(size) => format!("memory:{}", size.exact()),
            Self::Model(path) => format!("model:{}", path.display()),
        }
    }
}

/// The kind of target that was meant by a word like it: else the word would name a file, which is made
/// and measured.
fn near(kind: &str) -> Option<&'static str> {
    let kind = kind.to_ascii_lowercase();
    let score = |known: &&str| strsim::jaro_winkler(&kind, known);
    let best = ["null", "memory", "model"].into_iter().max_by(|a, b| score(a).total_cmp(&score(b)));
    best.filter(|known| score(known) >= LIKE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in [
            TargetName::Null,
            TargetName::Memory(Bytes::mib(64)),
            TargetName::Model("a/b.toml".into()),
            TargetName::Path("/ssd/test.dat".into()),
            TargetName::Path("./null:".into()),
        ] {
            assert_eq!(TargetName::parse(name.text().as_ref()).unwrap(), name);
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
