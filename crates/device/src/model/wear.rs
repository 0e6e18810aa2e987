//! What the bytes written do to the speed, and a trim undoes.

use units::Bytes;

use super::spec::{CliffSpec, DriftSpec, ModelSpec};
use crate::Request;

/// Files beyond so many count as one.
const FILES_MAX: usize = 1 << 16;

/// Bytes written since the device was fresh.
///
/// What is given back is clean again: of what was written, the share that trims since the last write
/// are of all that holds data. Trims are taken to be of different places until something is written
/// again.
#[derive(Clone, Debug)]
pub(super) struct Wear {
    written: u64,
    /// Of it, what the cliff does not count any more.
    forgotten: u64,
    drift: Option<DriftSpec>,
    cliff: Option<CliffSpec>,
    /// End of what was written, by file.
    ends: Vec<u64>,
    /// What was written before the trims that are under way, and how much they gave back.
    trims: Option<(u64, u64)>,
}

impl Wear {
    pub(super) fn new(spec: &ModelSpec) -> Self {
        Self {
            written: 0,
            forgotten: 0,
            drift: spec.drift.clone().filter(|drift| drift.per_gib > 0.0),
            cliff: spec.write_cliff.clone(),
            ends: Vec::new(),
            trims: None,
        }
    }

    fn remembers(&self) -> bool {
        self.drift.is_some() || self.cliff.is_some()
    }

    /// A cliff that refills does so while no request comes.
    #[inline]
    pub(super) fn rest(&mut self, idle: Option<u64>) {
        let refill = self.cliff.as_ref().and_then(|cliff| cliff.refill);
        if refill.zip(idle).is_some_and(|(refill, idle)| idle >= refill.get()) {
            self.forgotten = self.written;
        }
    }

    /// By how much longer a request takes.
    #[inline]
    pub(super) fn slowness(&self, writes: bool) -> f64 {
        let mut slowness = 1.0;
        if let Some(drift) = &self.drift
            && (writes || drift.reads)
        {
            let gib = self.written as f64 / Bytes::gib(1).get() as f64;
            slowness *= (-gib * (-drift.per_gib).ln_1p()).exp();
        }
        if let Some(cliff) = &self.cliff
            && (writes || cliff.reads)
            && self.written.saturating_sub(self.forgotten) >= cliff.after.get()
        {
            slowness /= cliff.factor;
        }
        slowness
    }

    #[inline]
    pub(super) fn write(&mut self, request: &Request) {
        if !self.remembers() {
            return;
        }
        let file = place(request);
        if self.ends.len() <= file {
            self.ends.resize(file + 1, 0);
        }
        let end = &mut self.ends[file];
        *end = (*end).max(request.offset.get().saturating_add(request.length.into()));
        self.written = self.written.saturating_add(request.length.into());
        self.trims = None;
    }

    pub(super) fn trim(&mut self, request: &Request) {
        let end = self.ends.get(place(request)).copied().unwrap_or(0);
        let given = end.saturating_sub(request.offset.get()).min(request.length.into());
        let held = self.ends.iter().copied().fold(0, u64::saturating_add);
        if given == 0 || held == 0 {
            return;
        }
        let (before, so_far) = self.trims.unwrap_or((self.written, 0));
        let all = so_far.saturating_add(given);
        self.trims = Some((before, all));
        let left = held.saturating_sub(all);
        self.written = (u128::from(before) * u128::from(left) / u128::from(held)) as u64;
    }
}

fn place(request: &Request) -> usize {
    usize::try_from(request.file.0).unwrap_or(FILES_MAX).min(FILES_MAX)
}
