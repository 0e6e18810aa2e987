//! Blocking system calls: on the worker's own thread at depth 1, on a pool of threads above.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use device::{Completion, Device, DeviceError, Errno, FileIndex, Full, Op, Request, Slot};
use units::{ByteOffset, Instant};

use crate::buffers::Buffers;
use crate::clock::MonotonicClock;
use crate::copy::Spot;
use crate::files::FileSet;
use crate::{BackendError, BackendReport, Requested, ThreadUsage, ops};

/// Whether `request` is one that this device can try at all, else the errno that says why not.
#[inline]
fn admissible(request: &Request, files: &FileSet, buffers: &Buffers) -> Result<(), Errno> {
    if files.get(request.file).is_none() && request.file != FileIndex::DIRECTORY {
        return Err(Errno(libc::EBADF));
    }
    if request.op.moves_data() && request.length as usize > buffers.length() {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

/// Carries out an admissible request.
///
/// # Safety
/// The request's slot exists and nobody else uses its buffer meanwhile.
#[inline]
unsafe fn carry_out(
    request: &Request,
    files: &FileSet,
    buffers: &Buffers,
    aim: impl FnOnce() -> Option<Spot>,
) -> Completion {
    if let Err(errno) = admissible(request, files, buffers) {
        return Completion::failed(request.slot, errno);
    }
    let Some(file) = files.get(request.file) else {
        // SAFETY: the slot exists and nobody else uses its buffer.
        return unsafe { in_directory(request, files, buffers) };
    };
    if request.op == Op::CopyRange {
        return Completion::from_raw(request.slot, files.copy(request, aim()));
    }
    // SAFETY: the slot exists, its buffer is at least as long as the request, and nobody else
    // uses it.
    let result =
        unsafe { ops::perform(file.as_fd(), file.kind, request, buffers.at(request.slot)) };
    Completion::from_raw(request.slot, result)
}

/// Carries out a request that is about whole files.
///
/// # Safety
/// The request's slot exists and nobody else uses its buffer meanwhile.
unsafe fn in_directory(request: &Request, files: &FileSet, buffers: &Buffers) -> Completion {
    let Some(directory) = files.directory() else {
        return Completion::failed(request.slot, Errno(libc::EBADF));
    };
    // SAFETY: the slot exists, its buffer is that long, and nobody else uses it.
    let buffer =
        unsafe { std::slice::from_raw_parts_mut(buffers.at(request.slot), buffers.length()) };
    Completion::from_raw(request.slot, directory.perform(request, buffer))
}

/// One request at a time, carried out by the call to `reap`.
///
/// A call cannot be given up: `reap` returns when the kernel does, however late, and it runs a
/// queued request even when `min` is 0.
#[derive(Debug)]
pub struct Single {
    pending: Option<Request>,
    /// Where its copy goes.
    aim: Option<Spot>,
    files: Arc<FileSet>,
    buffers: Buffers,
    report: BackendReport,
    thread: PhantomData<*const ()>,
}

impl Single {
    pub(crate) fn open(
        files: Arc<FileSet>,
        requested: &Requested,
        reasons: Vec<String>,
    ) -> Result<Self, BackendError> {
        let mut report = BackendReport::new("blocking", &files);
        report.reasons.extend(reasons);
        let buffers = requested.buffers()?;
        Ok(Self { pending: None, aim: None, files, buffers, report, thread: PhantomData })
    }

    pub(crate) const fn report(&self) -> &BackendReport {
        &self.report
    }
}

impl Device for Single {
    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.pending.is_some() {
            return Err(Full);
        }
        self.pending = Some(request);
        Ok(())
    }

    fn aim(&mut self, _slot: Slot, file: FileIndex, offset: ByteOffset) {
        self.aim = Some(Spot { file, offset });
    }

    #[inline]
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        if done.len() == done.capacity() {
            return Ok(());
        }
        let Some(request) = self.pending.take() else {
            if min > 0 && until != Instant::MAX {
                MonotonicClock::sleep_until(until);
            }
            return Ok(());
        };
        if request.slot.0 != 0 {
            done.push(Completion::failed(request.slot, Errno::EINVAL));
            return Ok(());
        }
        // SAFETY: slot 0 exists; `self` is borrowed, so nobody else uses its buffer.
        done.push(unsafe { carry_out(&request, &self.files, &self.buffers, || self.aim) });
        Ok(())
    }

    #[inline]
    fn now(&self) -> Instant {
        MonotonicClock::read()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        if self.pending.is_some_and(|request| request.slot == slot) {
            return &mut [];
        }
        // SAFETY: requests are carried out inside `reap` only, and `self` is borrowed.
        unsafe { self.buffers.slice(slot) }
    }
}

/// What the worker and the pool's threads share.
struct Shared {
    state: Mutex<State>,
    /// Work has come, or the end.
    work: Condvar,
    /// A request has finished, or a thread has ended.
    finished: Condvar,
    files: Arc<FileSet>,
    buffers: Buffers,
    /// By slot, where copies go.
    aims: Mutex<Box<[Option<Spot>]>>,
}

struct State {
    queue: VecDeque<Request>,
    done: VecDeque<Completion>,
    /// Completions that the worker waits for; 0 when it does not wait.
    wanted: usize,
    stop: bool,
    /// Threads that have not ended.
    alive: u32,
    ids: Vec<u32>,
}

impl Shared {
    /// A thread that panicked while holding the lock cannot have left the state half changed:
    /// nothing under the lock can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn aim(&self, slot: Slot) -> Option<Spot> {
        let aims = self.aims.lock().unwrap_or_else(PoisonError::into_inner);
        aims.get(slot.0 as usize).copied().flatten()
    }

    fn work(&self) {
        let mut state = self.lock();
        state.ids.push(crate::thread_id());
        loop {
            if let Some(request) = state.queue.pop_front() {
                drop(state);
                // SAFETY: slots are checked and marked busy by `submit`; a busy slot belongs to
                // the one thread that took its request.
                let completion = unsafe {
                    carry_out(&request, &self.files, &self.buffers, || self.aim(request.slot))
                };
                state = self.lock();
                state.done.push_back(completion);
                if state.wanted > 0 && state.done.len() >= state.wanted {
                    self.finished.notify_one();
                }
            } else if state.stop {
                break;
            } else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        state.alive -= 1;
        self.finished.notify_one();
    }
}

/// A thread per request in flight, each in a blocking call.
pub struct Pool {
    shared: Arc<Shared>,
    /// Accepted by `submit`, handed to the threads by `reap`.
    queued: Vec<Request>,
    local: Vec<Completion>,
    busy: Box<[bool]>,
    in_flight: usize,
    handles: Vec<thread::JoinHandle<()>>,
    report: BackendReport,
    thread: PhantomData<*const ()>,
}

/// More threads than this are a mistake, not a measurement.
const THREADS_MAX: u32 = 4096;

/// How long dropping a pool waits for threads in the kernel before it leaves them alone.
const GRACE: Duration = Duration::from_secs(2);

/// The threads run one system call each time.
const STACK_BYTES: usize = 64 << 10;

impl Pool {
    pub(crate) fn open(
        files: Arc<FileSet>,
        requested: &Requested,
        reasons: Vec<String>,
    ) -> Result<Self, BackendError> {
        let depth = requested.depth;
        if depth > THREADS_MAX {
            return Err(BackendError::Depth { depth, limit: THREADS_MAX });
        }
        let mut report = BackendReport::new("blocking", &files);
        report.flag("thread-pool");
        report.reasons.extend(reasons);
        report.reason(format!("{depth} threads, one per request in flight"));
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                queue: VecDeque::with_capacity(depth as usize),
                done: VecDeque::with_capacity(depth as usize),
                wanted: 0,
                stop: false,
                alive: 0,
                ids: Vec::with_capacity(depth as usize),
            }),
            work: Condvar::new(),
            finished: Condvar::new(),
            buffers: requested.buffers()?,
            aims: Mutex::new(vec![None; depth as usize].into()),
            files,
        });
        let mut pool = Self {
            shared,
            handles: Vec::with_capacity(depth as usize),
            queued: Vec::with_capacity(depth as usize),
            local: Vec::new(),
            busy: vec![false; depth as usize].into(),
            in_flight: 0,
            report,
            thread: PhantomData,
        };
        // From here on dropping `pool` ends the threads started so far.
        for _ in 0..depth {
            let shared = Arc::clone(&pool.shared);
            pool.shared.lock().alive += 1;
            let started = thread::Builder::new()
                .name("plimsoll-io".into())
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work());
            match started {
                Ok(handle) => pool.handles.push(handle),
                Err(error) => {
                    pool.shared.lock().alive -= 1;
                    let errno = Errno(error.raw_os_error().unwrap_or(libc::EAGAIN));
                    return Err(BackendError::Threads { wanted: depth, errno });
                }
            }
        }
        Ok(pool)
    }

    pub(crate) const fn report(&self) -> &BackendReport {
        &self.report
    }

    pub(crate) fn helper_usage(&self) -> ThreadUsage {
        let ids = self.shared.lock().ids.clone();
        crate::host::usage_of_threads(|id, _| ids.contains(&id))
    }

    /// Hands the threads what is queued.
    fn start(&mut self) {
        let started = self.queued.len();
        if started == 0 {
            return;
        }
        self.shared.lock().queue.extend(self.queued.drain(..));
        if started == self.busy.len() {
            self.shared.work.notify_all();
        } else {
            (0..started).for_each(|_| self.shared.work.notify_one());
        }
    }

    /// Waits until `want` have finished or the clock reaches `until`.
    fn wait(&self, want: usize, until: Instant) -> MutexGuard<'_, State> {
        let mut state = self.shared.lock();
        state.wanted = want;
        while state.done.len() < want {
            if until == Instant::MAX {
                state = self.shared.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let left = until.since(MonotonicClock::read());
            if left == units::Nanos::ZERO {
                break;
            }
            let waited = self.shared.finished.wait_timeout(state, left.as_std());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wanted = 0;
        state
    }
}

impl Device for Pool {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.in_flight == self.busy.len() {
            return Err(Full);
        }
        self.in_flight += 1;
        match self.busy.get_mut(request.slot.0 as usize) {
            Some(busy) if !*busy => {
                *busy = true;
                self.queued.push(request);
            }
            _ => self.local.push(Completion::failed(request.slot, Errno::EINVAL)),
        }
        Ok(())
    }

    fn aim(&mut self, slot: Slot, file: FileIndex, offset: ByteOffset) {
        let mut aims = self.shared.aims.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(aim) = aims.get_mut(slot.0 as usize) {
            *aim = Some(Spot { file, offset });
        }
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        self.start();
        if self.in_flight == 0 {
            if min > 0 && until != Instant::MAX {
                MonotonicClock::sleep_until(until);
            }
            return Ok(());
        }
        let mut room = done.capacity() - done.len();
        let refused = self.local.len().min(room);
        done.extend(self.local.drain(..refused));
        self.in_flight -= refused;
        room -= refused;
        let want = min.saturating_sub(refused).min(room).min(self.in_flight);
        let mut state = self.wait(want, until);
        let take = state.done.len().min(room);
        let at = done.len();
        done.extend(state.done.drain(..take));
        drop(state);
        for completion in &done[at..] {
            self.busy[completion.slot.0 as usize] = false;
        }
        self.in_flight -= take;
        Ok(())
    }

    fn now(&self) -> Instant {
        MonotonicClock::read()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        let index = slot.0 as usize;
        if self.busy.get(index) != Some(&false) {
            return &mut [];
        }
        let at = self.shared.buffers.at(slot);
        // SAFETY: the slot exists and is not in flight: no thread uses its buffer, none will
        // while `self` is borrowed, and the memory lives as long as `self.shared`.
        unsafe { std::slice::from_raw_parts_mut(at, self.shared.buffers.length()) }
    }
}

impl Drop for Pool {
    /// Threads stuck in the kernel are left to it, with the buffers and files that they use.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stop = true;
        state.queue.clear();
        self.shared.work.notify_all();
        let end = std::time::Instant::now() + GRACE;
        while state.alive > 0 {
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.shared.finished.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(state);
        // They have ended but may still hold the files: a device opened exclusively must be free
        // when the pool is gone.
        for handle in self.handles.drain(..) {
            let _ = handle.join();
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("threads", &self.busy.len())
            .field("in_flight", &self.in_flight)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
