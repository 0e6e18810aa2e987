//! Pages made by the program are today's.

use anyhow::Result;

use super::Verdict;
use crate::generate;
use crate::repo::Repo;

pub fn look(repo: &Repo) -> Result<Verdict> {
    generate::drift(repo).map(Verdict::faults)
}
