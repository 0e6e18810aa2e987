//! What a target's name means.

use std::path::PathBuf;

use units::Bytes;

use crate::RunError;

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
    fn nonsense_is_refused() {
        for text in ["", "null:x", "memory:", "memory:0", "memory:many", "model:"] {
            assert!(TargetName::parse(text.as_ref()).is_err(), "{text}");
        }
    }
}
