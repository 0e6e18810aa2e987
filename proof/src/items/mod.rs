//! The proofs, a file for each method.

use crate::Proof;

mod barriers;
mod buckets;
mod cache;
mod changes;
mod compare;
mod control;
mod credits;
mod factors;
mod freezes;
mod gaps;
mod histograms;
mod imports;
mod levels;
mod outliers;
mod periods;
mod rounds;
mod speeds;
mod steady;
mod visits;

/// Lists of every file, in the order of the table.
pub const ALL: &[&[Proof]] = &[
    visits::PROOFS,
    rounds::PROOFS,
    steady::PROOFS,
    outliers::PROOFS,
    compare::PROOFS,
    credits::PROOFS,
    buckets::PROOFS,
    control::PROOFS,
    speeds::PROOFS,
    periods::PROOFS,
    freezes::PROOFS,
    gaps::PROOFS,
    barriers::PROOFS,
    imports::PROOFS,
    factors::PROOFS,
    cache::PROOFS,
    changes::PROOFS,
    levels::PROOFS,
    histograms::PROOFS,
];
