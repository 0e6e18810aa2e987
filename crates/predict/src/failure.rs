//! Why runs tell nothing.

use array::{Component, FitError, LoadError};

use crate::part;

/// Why a drive cannot be fitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FitFailure {
    /// The model takes none of them.
    #[error("no cell of these runs can be predicted: {0}")]
    NoCells(String),
    /// A part other than the drive limits most cells, whatever the drive does.
    #[error("the cells say nothing of the drive: in this array {} limits them", part(*.0))]
    Elsewhere(Component),
    /// Of the search for values.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// Of a measured cell.
    #[error(transparent)]
    Load(#[from] LoadError),
}
