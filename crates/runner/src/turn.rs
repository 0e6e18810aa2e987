//! A thread's part in a visit.

use std::sync::Arc;

use device::{Device, DeviceError};
use engine::{Drive, DriveError, Limits, Shared, Visit};
use meter::{Done, Meter, Observer, OpId, Orders, SessionWork, WorkerId, WorkerResult};
use units::Instant;
use uring::{BackendReport, FileSet, MonotonicClock, Requested, ThreadUsage, Visitor};

use crate::RunError;

/// What was played on a seat.
pub(crate) struct Part {
    pub results: Vec<WorkerResult>,
    pub backends: Vec<(u32, BackendReport)>,
    pub device_error: Option<DeviceError>,
}

/// A thread's part in a visit.
pub(crate) struct Turn {
    pub ids: Vec<WorkerId>,
    pub visit: Arc<Visit>,
    pub shared: Arc<Shared>,
    pub limits: Limits,
    /// Says that it is ready, and waits; when the visit begins, and `None` where it is called off.
    pub ready: Box<dyn Fn() -> Option<Instant> + Send>,
}

impl Turn {
    /// Slots that its workers need.
    pub(crate) fn depth(&self) -> u32 {
        self.ids.iter().map(|id| self.visit.streams[id.stream as usize].requests_max()).sum()
    }

    /// Plays on files, through a back end.
    pub(crate) fn on_files(
        &self,
        files: &Arc<FileSet>,
        requested: &Requested,
    ) -> Result<Option<Part>, RunError> {
        let mut backend = uring::open(files, requested)?;
        let report = backend.report().clone();
        let before = backend.helper_usage();
        let played = backend.visit(Thread { turn: self, report, own_clock: false })?;
        let helpers = backend.helper_usage().since(&before);
        let Some(mut part) = played else { return Ok(None) };
        for result in &mut part.results {
            // CPU that others spent for this worker is part of what its I/O cost.
            if let Some((user, system)) = &mut result.cpu {
                *user += helpers.user.get();
                *system += helpers.system.get();
            }
        }
        if part.results.iter().any(|r| r.left || r.hangs) {
            // Closing a back end waits for its requests, and these do not come back, or not at once.
            std::mem::forget(backend);
        }
        Ok(Some(part))
    }

    /// Plays on a device of this process.
    ///
    /// * `own_clock`: it keeps its own time.
    pub(crate) fn on_twin<D: Device>(
        &self,
        device: &mut D,
        name: &str,
        own_clock: bool,
    ) -> Result<Option<Part>, RunError> {
        let report = BackendReport {
            name: name.to_owned(),
            flags: Vec::new(),
            reasons: vec!["a twin".to_owned()],
            direct: false,
        };
        Ok(Thread { turn: self, report, own_clock }.visit(device)?)
    }

    /// Plays a session: its only worker, one operation after the other.
    ///
    /// * `name`: of what it is a session of.
    pub(crate) fn on_session<S: SessionPart>(
        &self,
        name: &str,
        ops: &[OpId],
        session: &mut S,
    ) -> Option<Part> {
        let id = *self.ids.first()?;
        let stream = &self.visit.streams[id.stream as usize];
        let index = self.visit.workers().iter().position(|&other| other == id)?;
        let pulse = self.shared.pulses().get(index)?;
        let meter = Meter::new(&engine::load(stream), id, ops, false, pulse);
        let begin = (self.ready)()?;
        let orders = Orders {
            stop: &stream.stop,
            shared: &self.shared,
            quota: self.shared.quota(id.stream),
            begin,
            failures: self.limits.failures,
            seed: stats::random::derive_seed(self.visit.seed, &[u64::from(id.worker)]),
        };
        let mut usage = Usage::default();
        let mut result = meter::play(meter, &orders, &mut Timed(session), &mut usage);
        usage.charge(&mut result);
        let report = BackendReport {
            name: name.to_owned(),
            flags: Vec::new(),
            reasons: Vec::new(),
            direct: false,
        };
        let backends = vec![(id.stream, report)];
        Some(Part { results: vec![result], backends, device_error: None })
    }
}

/// What a session does, in the time of this machine.
pub(crate) trait SessionPart {
    /// What the next operation is.
    fn next(&mut self) -> OpId;
    /// Plays it.
    fn play(&mut self, op: OpId) -> Done;
}

struct Timed<'a, S>(&'a mut S);

impl<S: SessionPart> SessionWork for Timed<'_, S> {
    fn now(&mut self) -> Instant {
        MonotonicClock::read()
    }

    fn wait_until(&mut self, until: Instant) {
        std::thread::sleep(until.since(MonotonicClock::read()).as_std());
    }

    fn next(&mut self) -> OpId {
        self.0.next()
    }

    fn play(&mut self, op: OpId) -> Done {
        self.0.play(op)
    }
}

/// The generic part of a thread, compiled once per kind of device.
struct Thread<'a> {
    turn: &'a Turn,
    report: BackendReport,
    own_clock: bool,
}

impl Visitor for Thread<'_> {
    type Output = Result<Option<Part>, DriveError>;

    fn visit<D: Device>(self, device: &mut D) -> Self::Output {
        let Turn { visit, ids, shared, limits, .. } = self.turn;
        let mut drive = Drive::new(visit, ids, shared, *limits)?;
        drive.prepare(device);
        let Some(begin) = (self.turn.ready)() else { return Ok(None) };
        let begin = if self.own_clock { device.now() } else { begin };
        let mut usage = Usage::default();
        let device_error = drive.run(device, begin, &mut usage).err();
        let mut results: Vec<WorkerResult> = drive.finish().into_iter().map(Into::into).collect();
        // On a twin's thread the twin itself works too: its CPU is not the workers'.
        if let ([result], false) = (results.as_mut_slice(), self.own_clock) {
            usage.charge(result);
        }
        let backends = ids.iter().map(|id| (id.stream, self.report.clone())).collect();
        Ok(Some(Part { results, backends, device_error }))
    }
}

/// CPU of the thread over the measured part of its one worker.
#[derive(Default)]
struct Usage {
    begin: ThreadUsage,
    end: Option<ThreadUsage>,
}

impl Usage {
    fn charge(&self, result: &mut WorkerResult) {
        let used = self.end.unwrap_or_else(uring::thread_usage).since(&self.begin);
        result.cpu = Some((used.user.get(), used.system.get()));
        result.switches = Some((used.voluntary_switches, used.involuntary_switches));
    }
}

impl Observer for Usage {
    fn measured_begins(&mut self, _worker: WorkerId) {
        self.begin = uring::thread_usage();
    }
    fn measured_ends(&mut self, _worker: WorkerId) {
        self.end = Some(uring::thread_usage());
    }
}
