//! Plays one visit: a thread per seat of its stage. The calling thread watches: progress, requests
//! that hang, the user's wish to stop.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use device::DeviceError;
use engine::{Limits, Shared, Visit};
use meter::{OpId, Pulse, Tally, WorkerId, WorkerResult};
use units::{Instant, Nanos};
use uring::{BackendReport, Cpu, MonotonicClock};

use crate::events::Waiting;
use crate::rig::{Seat, Stage};
use crate::turn::{Part, Turn};
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
    /// Seats come back, but those whose threads did not.
    pub seats: Vec<Box<dyn Seat>>,
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
    pub done: Vec<(usize, &'static str, Tally)>,
    pub waiting: Vec<Waiting>,
}

/// What playing a visit needs besides the stage.
pub(crate) struct Play<'a> {
    pub visit: Arc<Visit>,
    pub limits: Limits,
    pub cpus: Vec<Cpu>,
    pub interrupt: &'a Interrupt,
    /// Names of what is counted.
    pub operations: &'static [&'static str],
    /// When the visit should be over, ramp included, if its length is known.
    pub planned: Option<Nanos>,
    /// The device keeps our time: how long a request has been out can be told from outside.
    pub real: bool,
}

impl Play<'_> {
    fn name(&self, op: OpId) -> &'static str {
        self.operations.get(usize::from(op.0)).copied().unwrap_or_default()
    }
}

/// A thread's report.
enum Message {
    Ready,
    Refused(RunError),
    Done(Part, Box<dyn Seat>),
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
    let groups: Vec<(Vec<WorkerId>, Box<dyn Seat>)> = match stage {
        Stage::Each(seats) => workers.into_iter().map(|id| vec![id]).zip(seats).collect(),
        Stage::Whole(seat) => vec![(workers, seat)],
    };
    let wanted = groups.len();
    let mut ids = Vec::with_capacity(wanted);
    for (index, (group, seat)) in groups.into_iter().enumerate() {
        let (gate, ready) = (Arc::clone(gate), sender.clone());
        let turn = Turn {
            ids: group.clone(),
            visit: Arc::clone(&play.visit),
            shared: Arc::clone(shared),
            limits: play.limits,
            ready: Box::new(move || {
                ready.send((index, Message::Ready)).ok().and_then(|()| gate.wait())
            }),
        };
        let cpu = (!play.cpus.is_empty()).then(|| play.cpus[index % play.cpus.len()]);
        let sender = sender.clone();
        let body = move || {
            if let Some(cpu) = cpu {
                // Pinning is a wish; where it fails the run is no less true.
                let _ = uring::set_affinity(&[cpu]);
            }
            // Nobody listening: the visit was given up.
            let _ = play_on(seat, &turn).map(|message| sender.send((index, message)));
        };
        std::thread::Builder::new()
            .name(format!("worker-{index}"))
            .stack_size(STACK)
            .spawn(body)
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

/// What a thread does; `None` where the visit was called off.
fn play_on(mut seat: Box<dyn Seat>, turn: &Turn) -> Option<Message> {
    match seat.play(turn) {
        Ok(part) => part.map(|part| Message::Done(part, seat)),
        Err(error) => Some(Message::Refused(error)),
    }
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
        seats: Vec::new(),
    };
    let mut missing: Vec<Option<Vec<WorkerId>>> = groups.into_iter().map(Some).collect();
    let mut stop_asked: Option<Instant> = None;
    let mut next_tick = begin + TICK;
    while missing.iter().any(Option::is_some) {
        let now = MonotonicClock::read();
        let wait = next_tick.since(now);
        match receiver.recv_timeout(wait.as_std()) {
            Ok((index, Message::Done(part, seat))) => {
                missing[index] = None;
                played.take(part, seat);
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
    let done = done.filter(|(_, _, tally)| tally.requests > 0);
    let done = done.map(|(stream, op, tally)| (stream, play.name(op), tally)).collect();
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
        what: engine::described(play.name(oldest.op), oldest.place),
        age: now.since(oldest.start),
    })
}

impl Played {
    fn take(&mut self, part: Part, seat: Box<dyn Seat>) {
        self.results.extend(part.results);
        for (stream, report) in part.backends {
            let place = &mut self.backends[stream as usize];
            if place.name.is_empty() {
                *place = report;
            }
        }
        self.device_error = self.device_error.take().or(part.device_error);
        self.seats.push(seat);
    }
}
