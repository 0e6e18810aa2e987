use crate::read::DamagedRun;
use crate::{Store, StoreError};

impl Store {
    /// The id of the run that a person means by `r17`, `17`, `last`, `last-1` (the one before)
    /// or by the beginning of a suite's name that fits one run only. Runs that only check a
    /// comparison are no newest ones.
    ///
    /// A damaged run that may be the one meant fails it: for what cannot be taken back.
    pub fn resolve(&self, text: &str) -> Result<String, StoreError> {
        let (id, damaged) = self.resolve_past(text)?;
        first(damaged).map_or(Ok(id), Err)
    }

    /// The same among the runs whose headers can be read, and the damaged ones that were passed over and
    /// may be the one meant.
    pub fn resolve_past(&self, text: &str) -> Result<(String, Vec<DamagedRun>), StoreError> {
        let text = text.trim();
        let is_number = matches!(meaning(text), Meaning::Number(_));
        let mut damaged = if is_number { Vec::new() } else { self.damaged_headers(0)? };
        let mut runs = self.names()?;
        runs.retain(|(number, _)| !damaged.iter().any(|(id, _)| *id == format!("r{number}")));
        let found = match meaning(text) {
            Meaning::Number(n) => {
                let id = format!("r{n}");
                if self.lost_number(&id)?.is_some() {
                    return Ok((id, damaged));
                }
                runs.iter().find(|(number, _)| *number == n)
            }
            Meaning::Last(before) => {
                let controls = self.controls()?;
                let found =
                    runs.iter().rev().filter(|(number, _)| !controls.contains(number)).nth(before);
                // Which is the last depends on those after it.
                let after = found.map_or(0, |(number, _)| *number);
                damaged.retain(|(id, _)| is_after(id, after));
                found
            }
            Meaning::Suite => {
                let fit: Vec<_> =
                    runs.iter().filter(|(_, suite)| suite.starts_with(text)).collect();
                if fit.len() > 1 {
                    let found = fit.iter().map(|(number, _)| format!("r{number}")).collect();
                    return Err(StoreError::Ambiguous { wanted: text.to_owned(), found });
                }
                fit.into_iter().next()
            }
        };
        match found {
            Some((number, _)) => Ok((format!("r{number}"), damaged)),
            None => Err(first(damaged).unwrap_or_else(|| self.no_such_run(text))),
        }
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
    /// Damaged runs are passed over, and are the second of what is returned: one may be it.
    ///
    /// * `group`: as in [`record::Blocks::group`].
    pub fn control_of(&self, group: &str) -> Result<(Option<String>, Vec<DamagedRun>), StoreError> {
        let damaged = self.damaged_headers(0)?;
        let failed = |error| self.sql(error);
        let query = "SELECT id FROM run WHERE blocks_group = ?1 AND blocks_is_control <> 0
             ORDER BY number";
        let mut statement = self.connection.prepare(query).map_err(failed)?;
        let ids = statement.query_map([group], |row| row.get(0)).map_err(failed)?;
        let ids: Vec<String> = ids.collect::<rusqlite::Result<_>>().map_err(failed)?;
        let is_whole = |id: &String| !damaged.iter().any(|(bad, _)| bad == id);
        Ok((ids.into_iter().find(is_whole), damaged))
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
            .query_map([], |row| {
                // Of a damaged run it may be no text.
                let suite = row.get_ref(1)?.as_str().unwrap_or_default().to_owned();
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), suite))
            })
            .map_err(failed)?;
        rows.collect::<rusqlite::Result<_>>().map_err(failed)
    }
}

/// What is wrong with the first of them.
fn first(damaged: Vec<DamagedRun>) -> Option<StoreError> {
    damaged.into_iter().map(|(_, error)| error).next()
}

fn is_after(id: &str, number: u64) -> bool {
    id.strip_prefix('r').and_then(|n| n.parse().ok()).is_none_or(|n: u64| n > number)
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
