//! The kinds of what a run is played on.

pub(crate) mod array;
#[cfg(test)]
pub(crate) mod counter;
pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod layer;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod null;

use crate::rig::Kind;

/// Every kind of target that is not a path.
pub(crate) static KINDS: &[Kind] = &[
    null::KIND,
    memory::KIND,
    model::KIND,
    array::KIND,
    layer::KIND,
    database::POSTGRES,
    database::MARIADB,
    database::SQLITE,
    #[cfg(test)]
    counter::KIND,
];
