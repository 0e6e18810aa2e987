//! Where requests go: the kinds of access with their details.

use units::Bytes;

use crate::check::{needs, share};
use crate::error::Problem;
use crate::model::{Access, Operation, ReplayRequest, Zone};
use crate::node::At;
use crate::raw::{AccessKind, RawAccess, RawRequest, RawZone};
use crate::resolve::THETA;
use crate::source::{Located, out_of_range};
use crate::stream::moves_range;

const ZONES_MAX: usize = 1000;
const THETA_MAX: f64 = 100.0;
/// How far shares may miss 1: people write three thirds as 0.333333.
const SHARE_SLACK: f64 = 1e-5;

/// Refuses details that another kind of access has.
pub(crate) fn refuse_details(raw: &RawAccess, kind: AccessKind, at: At) -> Located<()> {
    use AccessKind::{Backward, Hot, Mixed, Replay, Sequential, Stride, Zipf};
    let details: [(&str, bool, &[AccessKind]); 6] = [
        ("shared", raw.shared.is_some(), &[Sequential, Backward]),
        ("step", raw.step.is_some(), &[Stride]),
        ("theta", raw.theta.is_some(), &[Zipf]),
        ("zones", raw.zones.is_some(), &[Hot]),
        ("random_share", raw.random_share.is_some(), &[Mixed]),
        ("requests", raw.requests.is_some(), &[Replay]),
    ];
    match details.iter().find(|(_, set, kinds)| *set && !kinds.contains(&kind)) {
        Some((field, _, _)) => {
            let of = format!("access `{}`", kind.word());
            Err((at, Problem::Meaningless { field: (*field).to_owned(), of }))
        }
        None => Ok(()),
    }
}

pub(crate) fn access(raw: &RawAccess, kind: AccessKind, at: At) -> Located<Access> {
    let lacks = |what: &str| (at, needs(&format!("access `{}`", kind.word()), what));
    Ok(match kind {
        AccessKind::Sequential => Access::Sequential { shared: raw.shared.unwrap_or(false) },
        AccessKind::Backward => Access::Backward { shared: raw.shared.unwrap_or(false) },
        AccessKind::Stride => {
            let step = raw.step.ok_or_else(|| lacks("a `step`"))?;
            if step == 0 {
                return Err((at, out_of_range("step", step, "at least 1")));
            }
            Access::Stride { step }
        }
        AccessKind::Staggered => Access::Staggered,
        AccessKind::Same => Access::Same,
        AccessKind::Uniform => Access::Uniform,
        AccessKind::UniformOnce => Access::UniformOnce,
        AccessKind::Permutation => Access::Permutation,
        AccessKind::Zipf => {
            let theta = raw.theta.unwrap_or(THETA);
            if !(theta > 0.0 && theta <= THETA_MAX) {
                return Err((at, out_of_range("theta", theta, "more than 0, at most 100")));
            }
            Access::Zipf { theta }
        }
        AccessKind::Hot => Access::Hot { zones: zones(raw, at)? },
        AccessKind::Mixed => {
            let seen = raw.random_share.ok_or_else(|| lacks("a `random_share`"))?;
            Access::Mixed { random_share: share("random_share", seen, at)? }
        }
        AccessKind::Replay => Access::Replay { requests: replay(raw, at)? },
    })
}

fn zones(raw: &RawAccess, at: At) -> Located<Vec<Zone>> {
    let zones = raw.zones.as_deref().unwrap_or_default();
    if zones.is_empty() {
        return Err((at, needs("access `hot`", "`zones`")));
    }
    if zones.len() > ZONES_MAX {
        return Err((at, out_of_range("zones", zones.len(), "at most 1000")));
    }
    for zone in zones {
        share("access_share", zone.access_share, at)?;
        if !(zone.space_share > 0.0 && zone.space_share <= 1.0) {
            let problem = out_of_range("space_share", zone.space_share, "more than 0, at most 1");
            return Err((at, problem));
        }
    }
    check_sum("zones' shares of space", zones.iter().map(|zone| zone.space_share), at)?;
    check_sum("zones' shares of accesses", zones.iter().map(|zone| zone.access_share), at)?;
    let zone =
        |raw: &RawZone| Zone { space_share: raw.space_share, access_share: raw.access_share.abs() };
    Ok(zones.iter().map(zone).collect())
}

fn check_sum(what: &'static str, shares: impl Iterator<Item = f64>, at: At) -> Located<()> {
    let sum: f64 = shares.sum();
    if (sum - 1.0).abs() <= SHARE_SLACK {
        return Ok(());
    }
    // Nobody wants to read 0.8999999999999999.
    let sum = (sum * 1e6).round() / 1e6;
    Err((at, Problem::Shares { what, sum }))
}

fn replay(raw: &RawAccess, at: At) -> Located<Vec<ReplayRequest>> {
    let requests = raw.requests.as_deref().unwrap_or_default();
    if requests.is_empty() {
        return Err((at, needs("access `replay`", "`requests`")));
    }
    let request = |raw: &RawRequest| match (moves_range(raw.op), raw.length.0) {
        _ if raw.op.is_pair() || raw.op == Operation::CopyRange => {
            let wanted = "a single request: write it as a read and a write";
            Err((at, out_of_range("op", raw.op.name(), wanted)))
        }
        (true, Bytes::ZERO) => Err((at, out_of_range("length", "0B", "1B to 1GiB"))),
        (true, length) => Ok(ReplayRequest { op: raw.op, offset: raw.offset.0, length }),
        (false, _) => Ok(ReplayRequest { op: raw.op, offset: raw.offset.0, length: Bytes::ZERO }),
    };
    requests.iter().map(request).collect()
}

impl AccessKind {
    fn word(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Backward => "backward",
            Self::Stride => "stride",
            Self::Staggered => "staggered",
            Self::Same => "same",
            Self::Uniform => "uniform",
            Self::UniformOnce => "uniform-once",
            Self::Permutation => "permutation",
            Self::Zipf => "zipf",
            Self::Hot => "hot",
            Self::Mixed => "mixed",
            Self::Replay => "replay",
        }
    }
}
