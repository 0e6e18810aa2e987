//! Runs as an address names them: `r17` or `r17,r18`.

/// Runs that one page may have: each is loaded whole.
pub const RUNS_MAX: usize = 64;

/// Ids of one run or more, each once, as a store gives them. What is made of them never reaches a
/// file system: they are looked for among the store's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ids(Vec<String>);

/// Why a text names no runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotIds {
    /// Not of the form.
    #[error("no run has such a name, wanted r17, or r17,r18 for several")]
    Form,
    /// One run twice.
    #[error("{0} is named twice")]
    Twice(String),
    /// Too many for one page.
    #[error("{0} runs are too many for one page, wanted at most {RUNS_MAX}")]
    TooMany(usize),
}

impl Ids {
    /// * `text`: as it stands in an address, decoded.
    pub fn parse(text: &str) -> Result<Self, NotIds> {
        let count = text.split(',').count();
        if count > RUNS_MAX {
            return Err(NotIds::TooMany(count));
        }
        let mut ids: Vec<String> = Vec::with_capacity(count);
        for word in text.split(',') {
            let id = id(word).ok_or(NotIds::Form)?;
            if ids.contains(&id) {
                return Err(NotIds::Twice(id));
            }
            ids.push(id);
        }
        Ok(Self(ids))
    }

    /// In the order given.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

fn id(word: &str) -> Option<String> {
    let digits = word.strip_prefix('r')?;
    // A sign or a zero in front would be another name for the same run.
    let canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
    let number: u64 = digits.parse().ok().filter(|_| canonical)?;
    Some(format!("r{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_are_ids() {
        assert_eq!(Ids::parse("r17,r2").unwrap().as_slice(), ["r17", "r2"]);
        for bad in [
            "",
            "17",
            "r",
            "r0",
            "r01",
            "r+1",
            "r-1",
            "R1",
            "r1,",
            ",r1",
            "r1;r2",
            "r1/..",
            "../r1",
            "r1%2fr2",
            "r1 ",
            "last",
            "r99999999999999999999",
            "r１",
            "r1\0",
            "etc/passwd",
        ] {
            assert_eq!(Ids::parse(bad), Err(NotIds::Form), "{bad}");
        }
        assert_eq!(Ids::parse("r1,r1"), Err(NotIds::Twice("r1".into())));
        let many = (1..=65).map(|n| format!("r{n}")).collect::<Vec<_>>().join(",");
        assert_eq!(Ids::parse(&many), Err(NotIds::TooMany(65)));
        assert!(Ids::parse(&many[..many.len() - 4]).is_ok());
    }
}
