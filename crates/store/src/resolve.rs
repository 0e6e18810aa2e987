use rusqlite::OptionalExtension;

use crate::{Store, StoreError};

impl Store {
    /// The id of the run that a person means by `r17`, `17`, `last`, `last-1` (the one before)
    /// or by the beginning of a suite's name that fits one run only. Runs that only check a
    /// comparison are no newest ones.
    pub fn resolve(&self, text: &str) -> Result<String, StoreError> {
        let text = text.trim();
        let runs = self.names()?;
        let controls = self.controls()?;
        let found = match meaning(text) {
            Meaning::Number(n) => runs.iter().find(|(number, _)| *number == n),
            Meaning::Last(before) => {
                let found =
                    runs.iter().rev().filter(|(number, _)| !controls.contains(number)).nth(before);
                // Which is the last depends on those after it.
                self.check_headers(found.map_or(0, |(number, _)| number.cast_signed()))?;
                found
            }
            Meaning::Suite => {
                self.check_headers(0)?;
                let fit: Vec<_> =
                    runs.iter().filter(|(_, suite)| suite.starts_with(text)).collect();
                if fit.len() > 1 {
                    let found = fit.iter().map(|(number, _)| format!("r{number}")).collect();
                    return Err(StoreError::Ambiguous { wanted: text.to_owned(), found });
                }
                fit.into_iter().next()
            }
        };
        found.map(|(number, _)| format!("r{number}")).ok_or_else(|| self.no_such_run(text))
    }

    pub(crate) fn no_such_run(&self, wanted: &str) -> StoreError {
        let suggestion = match self.names().unwrap_or_default().as_slice() {
            [] => Some("the store is empty; `plimsoll run` adds the first run".to_owned()),
            [(number, suite)] => Some(format!("the only run is r{number} ({suite})")),
            [(first, _), .., (last, suite)] => Some(format!(
                "the oldest run is r{first}, the newest r{last} ({suite}); `plimsoll list` shows all"
            )),
        };
        StoreError::NoSuchRun { path: self.path.clone(), wanted: wanted.to_owned(), suggestion }
    }

    /// The run that is the reference of a comparison in blocks once more, and checks it; the oldest
    /// if several are.
    ///
    /// * `group`: as in [`record::Blocks::group`].
    pub fn control_of(&self, group: &str) -> Result<Option<String>, StoreError> {
        self.check_headers(0)?;
        let query = "SELECT id FROM run WHERE blocks_group = ?1 AND blocks_is_control <> 0
             ORDER BY number LIMIT 1";
        let found = self.connection.query_row(query, [group], |row| row.get(0)).optional();
        found.map_err(|error| self.sql(error))
    }

    fn controls(&self) -> Result<Vec<u64>, StoreError> {
        let failed = |error| self.sql(error);
        let query = "SELECT number FROM run WHERE blocks_is_control <> 0";
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let rows = statement.query_map([], |row| row.get::<_, i64>(0)).map_err(failed)?;
        rows.map(|number| number.map(i64::cast_unsigned).map_err(failed)).collect()
    }

    /// Number and suite of every run, oldest first.
    fn names(&self) -> Result<Vec<(u64, String)>, StoreError> {
        let failed = |error| self.sql(error);
        let mut statement = self
            .connection
            .prepare("SELECT number, suite FROM run ORDER BY number")
            .map_err(failed)?;
        let rows = statement
            .query_map([], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?)))
            .map_err(failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
    }
}

enum Meaning {
    Number(u64),
    /// How many runs before the newest.
    Last(usize),
    Suite,
}

fn meaning(text: &str) -> Meaning {
    if let Ok(n) = text.strip_prefix('r').unwrap_or(text).parse() {
        return Meaning::Number(n);
    }
    match text.strip_prefix("last") {
        Some("") => Meaning::Last(0),
        Some(rest) => match rest.strip_prefix('-').and_then(|n| n.parse().ok()) {
            Some(before) => Meaning::Last(before),
            None => Meaning::Suite,
        },
        // Everything begins with nothing.
        None if text.is_empty() => Meaning::Number(0),
        None => Meaning::Suite,
    }
}
