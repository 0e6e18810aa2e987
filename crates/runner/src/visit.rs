//! Plays one visit: a thread per worker on files and on the null twin, one thread with the whole
//! device on the other twins. The calling thread watches: progress, requests that hang, the
//! user's wish to stop.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use device::{Device, DeviceError, Faulty, Memory, Model, Null, Op};
use engine::{
    Drive, DriveError, Limits, Observer, Pulse, Shared, Tally, Visit, WorkerId, WorkerResult,
};
use units::{Instant, Nanos};
use uring::{BackendReport, Cpu, FileSet, MonotonicClock, Requested, ThreadUsage, Visitor};

use crate::events::Waiting;
use crate::{Interrupt, RunError, thread_limit};

/// Workers need little stack; there can be thousands of them.
const STACK: usize = 256 << 10;
/// How often the watching thread looks up.
const TICK: Nanos = Nanos::millis(100);
/// A request out for longer is named.
const WAITING: Nanos = Nanos::secs(1);
/// Beyond the hang limit, a worker that does not even say so is stuck in the kernel.
const STUCK_GRACE: Nanos = Nanos::secs(2);
/// The same once the user wants to leave at once: enough for workers that can still answer.
const LEAVE_GRACE: Nanos = Nanos::millis(300);

/// What a visit is played on. Twins are handed to the playing thread and come back.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Per stream its files and how to open a back end on them.
    Files(Vec<(Arc<FileSet>, Requested)>),
    Null,
    Memory(Box<Memory<MonotonicClock>>),
    Model(Box<Faulty<Model>>),
}

impl Stage {
    /// What the clock of a device that keeps its own says, from when it was made.
    pub(crate) fn simulated_now(&self) -> Option<Nanos> {
        match self {
            Self::Model(device) => Some(Nanos::new(device.now().get())),
            Self::Files(_) | Self::Null | Self::Memory(_) => None,
        }
    }

    /// Lets time pass on such a clock; false where it is not in our hands.
    pub(crate) fn passes(&mut self, span: Nanos) -> bool {
        match self {
            Self::Model(device) => {
                let until = device.now() + span;
                // Nothing is in flight between visits, so nothing comes back, nor fails.
                device.reap(1, until, &mut Vec::with_capacity(1)).is_ok()
            }
            Self::Files(_) | Self::Null | Self::Memory(_) => false,
        }
    }
}

/// What was played.
#[derive(Debug)]
pub(crate) struct Played {
    pub results: Vec<WorkerResult>,
    /// Per stream, from its first worker.
    pub backends: Vec<BackendReport>,
    /// The device as a whole failed.
    pub device_error: Option<DeviceError>,
    /// Workers stuck in the kernel: their threads were left behind, and requests that they
    /// completed are counted nowhere.
    pub stuck: Vec<Stuck>,
    /// Twins come back; `None` if their thread did not.
    pub stage: Option<Stage>,
}

/// A worker that never answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stuck {
    pub worker: WorkerId,
    pub completed: u64,
    pub waiting: Option<Waiting>,
}

/// How a visit stands, for [`crate::Tick`].
#[derive(Debug)]
pub(crate) struct Standing {
    pub elapsed: Nanos,
    /// What completed: by stream and operation, a part for each worker.
    pub done: Vec<(usize, Op, Tally)>,
    pub waiting: Vec<Waiting>,
}

/// What playing a visit needs besides the stage.
pub(crate) struct Play<'a> {
    pub visit: Arc<Visit>,
    pub limits: Limits,
    pub cpus: &'a [Cpu],
    pub interrupt: &'a Interrupt,
    /// When the visit should be over, ramp included, if its length is known.
    pub planned: Option<Nanos>,
    /// The device keeps our time: how long a request has been out can be told from outside.
    pub real: bool,
}

/// A thread's report.
enum Message {
    Ready,
    Refused(RunError),
    Done(Box<Finished>),
}

struct Finished {
    results: Vec<WorkerResult>,
    backends: Vec<(u32, BackendReport)>,
    device_error: Option<DeviceError>,
    stage: Option<Stage>,
}

/// Holds the workers back until all are ready: a worker that is still opening its device while
/// others measure would measure something else.
#[derive(Default)]
struct Gate {
    state: Mutex<Option<Option<Instant>>>,
    opened: Condvar,
}

impl Gate {
    /// `None`: go home, there will be no visit.
    fn open(&self, begin: Option<Instant>) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = Some(begin);
        self.opened.notify_all();
    }

    fn wait(&self) -> Option<Instant> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(begin) = *state {
                return begin;
            }
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Plays the visit. `on_begin` is called when everybody is ready, right before the start;
/// `on_tick` ten times a second.
pub(crate) fn play(
    play: &Play<'_>,
    stage: Stage,
    mut on_begin: impl FnMut(),
    mut on_tick: impl FnMut(Standing),
) -> Result<Played, RunError> {
    let shared = Arc::new(Shared::new(&play.visit.streams));
    let gate = Arc::new(Gate::default());
    let (sender, receiver) = channel();
    let groups = spawn_all(play, stage, &shared, &gate, &sender);
    drop(sender);
    let groups = match groups {
        Ok(groups) => groups,
        Err(error) => {
            gate.open(None);
            return Err(error);
        }
    };
    if let Err(error) = all_ready(&receiver, groups.len()) {
        gate.open(None);
        return Err(error);
    }
    on_begin();
    let begin = MonotonicClock::read();
    gate.open(Some(begin));
    Ok(watch(play, &shared, &receiver, groups, begin, &mut on_tick))
}

/// One thread per group of workers.
fn spawn_all(
    play: &Play<'_>,
    stage: Stage,
    shared: &Arc<Shared>,
    gate: &Arc<Gate>,
    sender: &Sender<(usize, Message)>,
) -> Result<Vec<Vec<WorkerId>>, RunError> {
    let workers = play.visit.workers();
    let groups: Vec<(Vec<WorkerId>, GroupStage)> = match stage {
        Stage::Files(streams) => workers
            .iter()
            .map(|&id| {
                let (files, requested) = &streams[id.stream as usize];
                (vec![id], GroupStage::Files(Arc::clone(files), *requested))
            })
            .collect(),
        Stage::Null => workers.iter().map(|&id| (vec![id], GroupStage::Null)).collect(),
        Stage::Memory(device) => vec![(workers, GroupStage::Memory(device))],
        Stage::Model(device) => vec![(workers, GroupStage::Model(device))],
    };
    let wanted = groups.len();
    let mut ids = Vec::with_capacity(wanted);
    for (index, (group, stage)) in groups.into_iter().enumerate() {
        let body = Body {
            index,
            ids: group.clone(),
            visit: Arc::clone(&play.visit),
            shared: Arc::clone(shared),
            gate: Arc::clone(gate),
            limits: play.limits,
            sender: sender.clone(),
            cpu: (!play.cpus.is_empty()).then(|| play.cpus[index % play.cpus.len()]),
        };
        std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .stack_size(STACK)
            .spawn(move || body.run(stage))
            .map_err(|source| RunError::Threads {
                streams: play.visit.streams.iter().map(|stream| stream.name.clone()).collect(),
                started: index,
                wanted,
                limits: thread_limit::limits(),
                source,
            })?;
        ids.push(group);
    }
    Ok(ids)
}

fn all_ready(receiver: &Receiver<(usize, Message)>, groups: usize) -> Result<(), RunError> {
    for _ in 0..groups {
        match receiver.recv() {
            Ok((_, Message::Refused(error))) => return Err(error),
            Ok(_) => {}
            // A worker that panicked sends nothing; its part shows up as missing below.
            Err(_) => break,
        }
    }
    Ok(())
}

/// Waits for the workers and looks after the world meanwhile.
fn watch(
    play: &Play<'_>,
    shared: &Shared,
    receiver: &Receiver<(usize, Message)>,
    groups: Vec<Vec<WorkerId>>,
    begin: Instant,
    on_tick: &mut impl FnMut(Standing),
) -> Played {
    let mut played = Played {
        results: Vec::new(),
        backends: vec![BackendReport::default(); play.visit.streams.len()],
        device_error: None,
        stuck: Vec::new(),
        stage: None,
    };
    let mut missing: Vec<Option<Vec<WorkerId>>> = groups.into_iter().map(Some).collect();
    let mut stop_asked: Option<Instant> = None;
    let mut next_tick = begin + TICK;
    while missing.iter().any(Option::is_some) {
        let now = MonotonicClock::read();
        let wait = next_tick.since(now);
        match receiver.recv_timeout(wait.as_std()) {
            Ok((index, Message::Done(finished))) => {
                missing[index] = None;
                played.take(*finished);
                continue;
            }
            Ok(_) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let now = MonotonicClock::read();
        next_tick = now + TICK;
        on_tick(standing(play, shared, begin, now));
        if play.interrupt.stops() && stop_asked.is_none() {
            shared.stop();
            stop_asked = Some(now);
        }
        if play.interrupt.now() {
            shared.abandon();
        }
        if gives_up(play, stop_asked, begin, now) {
            break;
        }
    }
    let pulses = shared.pulses();
    for id in missing.into_iter().flatten().flatten() {
        let pulse = pulse_of(&play.visit, pulses, id);
        let waiting = pulse.and_then(|p| waiting(play, id, p, MonotonicClock::read()));
        let completed = pulse.map_or(0, Pulse::completed);
        played.stuck.push(Stuck { worker: id, completed, waiting });
    }
    played
}

/// Whether workers that have not answered are stuck in the kernel for good.
fn gives_up(play: &Play<'_>, stop_asked: Option<Instant>, begin: Instant, now: Instant) -> bool {
    let planned_end = play.planned.map_or(Instant::MAX, |planned| begin + planned);
    let end = stop_asked.unwrap_or(Instant::MAX).min(planned_end);
    let patience = if play.interrupt.now() { LEAVE_GRACE } else { play.limits.hang + STUCK_GRACE };
    // A twin's virtual clock says nothing about ours: only the user ends it early.
    end != Instant::MAX && now > end + patience
}

fn standing(play: &Play<'_>, shared: &Shared, begin: Instant, now: Instant) -> Standing {
    let pulses = shared.pulses();
    let workers = play.visit.workers();
    let done = workers
        .iter()
        .zip(pulses)
        .flat_map(|(id, pulse)| pulse.done().map(|(op, tally)| (id.stream as usize, op, tally)));
    let done = done.filter(|(_, _, tally)| tally.requests > 0).collect();
    let mut waits: Vec<Waiting> = workers
        .into_iter()
        .zip(pulses)
        .filter(|_| play.real)
        .filter_map(|(id, pulse)| waiting(play, id, pulse, now))
        .filter(|waiting| waiting.age > WAITING)
        .collect();
    waits.sort_by_key(|waiting| std::cmp::Reverse(waiting.age));
    Standing { elapsed: now.since(begin), done, waiting: waits }
}

fn pulse_of<'a>(visit: &Visit, pulses: &'a [Pulse], id: WorkerId) -> Option<&'a Pulse> {
    visit.workers().iter().position(|&other| other == id).and_then(|index| pulses.get(index))
}

fn waiting(play: &Play<'_>, id: WorkerId, pulse: &Pulse, now: Instant) -> Option<Waiting> {
    let oldest = pulse.oldest()?;
    let stream = &play.visit.streams[id.stream as usize].name;
    Some(Waiting {
        worker: format!("{stream} {}", id.worker),
        op: oldest.op,
        offset: oldest.offset,
        age: now.since(oldest.start),
    })
}

impl Played {
    fn take(&mut self, finished: Finished) {
        self.results.extend(finished.results);
        for (stream, report) in finished.backends {
            let place = &mut self.backends[stream as usize];
            if place.name.is_empty() {
                *place = report;
            }
        }
        self.device_error = self.device_error.take().or(finished.device_error);
        self.stage = self.stage.take().or(finished.stage);
    }
}

/// What one thread plays on.
enum GroupStage {
    Files(Arc<FileSet>, Requested),
    Null,
    Memory(Box<Memory<MonotonicClock>>),
    Model(Box<Faulty<Model>>),
}

/// One thread.
struct Body {
    index: usize,
    ids: Vec<WorkerId>,
    visit: Arc<Visit>,
    shared: Arc<Shared>,
    gate: Arc<Gate>,
    limits: Limits,
    sender: Sender<(usize, Message)>,
    cpu: Option<Cpu>,
}

impl Body {
    fn run(self, stage: GroupStage) {
        if let Some(cpu) = self.cpu {
            // Pinning is a wish; where it fails the run is no less true.
            let _ = uring::set_affinity(&[cpu]);
        }
        let index = self.index;
        let sender = self.sender.clone();
        let message = match self.play(stage) {
            Ok(Some(finished)) => Message::Done(Box::new(finished)),
            Ok(None) => return,
            Err(error) => Message::Refused(error),
        };
        // Nobody listening: the visit was given up.
        let _ = sender.send((index, message));
    }

    fn play(&self, stage: GroupStage) -> Result<Option<Finished>, RunError> {
        match stage {
            GroupStage::Files(files, requested) => self.on_files(&files, &requested),
            GroupStage::Null => {
                let depth = self.depth();
                let mut device = Null::new(MonotonicClock, Nanos::ZERO, depth);
                self.on_twin(&mut device, Clocked::Real, "null").map(|f| f.map(|f| f.with(None)))
            }
            GroupStage::Memory(mut device) => {
                let played = self.on_twin(device.as_mut(), Clocked::Real, "memory")?;
                Ok(played.map(|f| f.with(Some(Stage::Memory(device)))))
            }
            GroupStage::Model(mut device) => {
                let played = self.on_twin(device.as_mut(), Clocked::Virtual, "model")?;
                Ok(played.map(|f| f.with(Some(Stage::Model(device)))))
            }
        }
    }

    fn depth(&self) -> u32 {
        self.ids.iter().map(|id| self.visit.streams[id.stream as usize].requests_max()).sum()
    }

    fn on_files(
        &self,
        files: &Arc<FileSet>,
        requested: &Requested,
    ) -> Result<Option<Finished>, RunError> {
        let mut backend = uring::open(files, requested)?;
        let report = backend.report().clone();
        let before = backend.helper_usage();
        let played = backend.visit(Thread { body: self, clocked: Clocked::Real })?;
        let helpers = backend.helper_usage().since(&before);
        let Some(mut finished) = played else { return Ok(None) };
        for result in &mut finished.results {
            // CPU that others spent for this worker is part of what its I/O cost.
            if let Some((user, system)) = &mut result.cpu {
                *user += helpers.user;
                *system += helpers.system;
            }
        }
        if finished.results.iter().any(|r| r.left || !r.hanging.is_empty()) {
            // Closing a back end waits for its requests, and these do not come back, or not at once.
            std::mem::forget(backend);
        }
        finished.backends = self.ids.iter().map(|id| (id.stream, report.clone())).collect();
        Ok(Some(finished))
    }

    fn on_twin<D: Device>(
        &self,
        device: &mut D,
        clocked: Clocked,
        name: &str,
    ) -> Result<Option<Finished>, RunError> {
        let Some(mut finished) = (Thread { body: self, clocked }).visit(device)? else {
            return Ok(None);
        };
        let report = BackendReport {
            name: name.to_owned(),
            flags: Vec::new(),
            reasons: vec!["a twin".to_owned()],
            direct: false,
        };
        finished.backends = self.ids.iter().map(|id| (id.stream, report.clone())).collect();
        Ok(Some(finished))
    }
}

impl Finished {
    fn with(mut self, stage: Option<Stage>) -> Self {
        self.stage = stage;
        self
    }
}

/// Whose time a device keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clocked {
    Real,
    Virtual,
}

/// The generic part of a thread, compiled once per kind of device.
struct Thread<'a> {
    body: &'a Body,
    clocked: Clocked,
}

impl Visitor for Thread<'_> {
    type Output = Result<Option<Finished>, DriveError>;

    fn visit<D: Device>(self, device: &mut D) -> Self::Output {
        let Body { visit, ids, shared, gate, limits, sender, index, .. } = self.body;
        let mut drive = Drive::new(visit, ids, shared, *limits)?;
        drive.prepare(device);
        if sender.send((*index, Message::Ready)).is_err() {
            return Ok(None);
        }
        let Some(begin) = gate.wait() else { return Ok(None) };
        let begin = if self.clocked == Clocked::Virtual { device.now() } else { begin };
        let mut usage = Usage::default();
        let device_error = drive.run(device, begin, &mut usage).err();
        let mut results = drive.finish();
        // On a twin's thread the twin itself works too: its CPU is not the workers'.
        if let ([result], Clocked::Real) = (results.as_mut_slice(), self.clocked) {
            let used = usage.used();
            result.cpu = Some((used.user, used.system));
            result.switches = Some((used.voluntary_switches, used.involuntary_switches));
        }
        Ok(Some(Finished { results, backends: Vec::new(), device_error, stage: None }))
    }
}

/// CPU of the thread over the measured part of its one worker.
#[derive(Default)]
struct Usage {
    begin: ThreadUsage,
    end: Option<ThreadUsage>,
}

impl Usage {
    fn used(&self) -> ThreadUsage {
        self.end.unwrap_or_else(uring::thread_usage).since(&self.begin)
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
