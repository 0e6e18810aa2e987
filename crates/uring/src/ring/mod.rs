//! io_uring: one ring per worker, one system call per batch.

mod sys;

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use device::{Completion, Device, DeviceError, Errno, FileIndex, Full, Op, Request, Slot};
use units::{ByteOffset, Instant, Nanos};

use crate::buffers::Buffers;
use crate::clock::{MonotonicClock, timespec};
use crate::files::{FileSet, Kind, queue_attribute};
use crate::host::kernel_version;
use crate::{Allow, BackendError, BackendReport, Requested, ops};
use sys::{Cqe, GetEvents, RawRing, Sqe, Timespec};

/// How submissions reach the kernel and completions come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One system call submits a batch and waits for completions.
    Plain,
    /// A kernel thread takes submissions.
    Sqpoll,
    /// The waiting call polls the device's queue.
    Iopoll,
}

/// How data requests name their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// Registered: pinned and translated once.
    Registered,
    /// By address.
    Address,
    /// By vector: Linux before 5.6 has nothing else without registration.
    Vector,
}

/// How waits end at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timeout {
    /// `io_uring_enter` takes an instant (Linux 6.12): no clock need be read.
    Absolute,
    /// It takes a duration (5.11).
    Relative,
    /// It takes none: the ring's descriptor is polled.
    Poll,
}

/// A ring. Bound to the thread that made it: the kernel is promised a single issuer.
pub struct Ring {
    // The counters and pointers of the hot path first: two cache lines.
    sqes: *mut Sqe,
    cqes: *const Cqe,
    sq_mask: u32,
    cq_mask: u32,
    /// Next free submission entry; published to the kernel at `reap`.
    sq_tail: u32,
    /// Entries written and not yet taken by the kernel.
    queued: u32,
    cq_head: u32,
    /// Requests accepted and not yet handed back.
    in_flight: u32,
    depth: u32,
    /// Waits to come before the next try without one; see `expects_inline`.
    tries_in: u8,
    /// Longest transfer: one buffer.
    length_max: u32,
    sqe_flags: u8,
    read_code: u8,
    write_code: u8,
    memory: Memory,
    timeout: Timeout,
    mode: Mode,
    /// Completions appear only in calls that ask for them.
    asks_for_events: bool,
    enter_fd: i32,
    enter_flags: u32,
    /// Which slots are in flight.
    busy: Box<[bool]>,
    /// Per file: index if registered, else descriptor.
    fds: Box<[i32]>,
    /// Reads and writes in flight, by slot: the kernel may want them again.
    sent: Box<[Request]>,
    /// Slots of those that it got again.
    again: Vec<Slot>,
    /// Requests that never reached the ring, with their result.
    local: Vec<Completion>,
    vectors: Box<[libc::iovec]>,
    fallocate: bool,
    discard_command: bool,
    registered_ring: Option<i32>,
    raw: ManuallyDrop<RawRing>,
    buffers: ManuallyDrop<Buffers>,
    files: Arc<FileSet>,
    report: BackendReport,
    thread: PhantomData<*const ()>,
}

/// The most that a ring holds (`IORING_MAX_ENTRIES`).
const DEPTH_MAX: u32 = 32768;

/// So many requests are handed over at once to a device that completes them later. A batch as
/// large as the queue would be one call, but its completions come back together too, and between
/// two batches the device runs dry: on a virtio disk the rate at depth 32 was 14 % (reads) and
/// 24 % (writes) below that of single submissions. Where requests complete within the call there
/// is nothing to keep busy, and the whole batch goes at once.
const TRICKLE: u32 = 4;

/// Waits between two tries without one.
const TRY_EVERY: u8 = 64;

/// A request that was never sent.
const NOTHING: Request = Request {
    offset: ByteOffset::ZERO,
    length: 0,
    slot: Slot(0),
    file: FileIndex(0),
    op: Op::Read,
};

/// `user_data` of our own requests.
const OURS: u64 = u64::MAX;

/// With these, completions appear only in calls into the kernel.
const ASKED: u32 = sys::SETUP_DEFER_TASKRUN | sys::SETUP_COOP_TASKRUN | sys::SETUP_IOPOLL;

/// How long dropping a ring waits for requests still in flight.
const GRACE: Nanos = Nanos::secs(2);

/// How long a submission thread spins without work before it sleeps.
const SQPOLL_IDLE_MS: u32 = 100;

impl Ring {
    pub(crate) fn open(
        files: Arc<FileSet>,
        requested: &Requested,
        mode: Mode,
    ) -> Result<Self, BackendError> {
        let mut report = BackendReport::new("io_uring", &files);
        if requested.depth > DEPTH_MAX {
            return Err(BackendError::Depth { depth: requested.depth, limit: DEPTH_MAX });
        }
        if mode == Mode::Iopoll {
            can_poll(&files)?;
        }
        if let Some(file) = files.files().iter().find(|file| file.nowait == Some(false)) {
            report.reason(format!(
                "{} takes no request without waiting: the ring hands each to a kernel worker \
                 thread, at most 4 per processor at a time",
                file.path().display()
            ));
        }
        let (raw, flags) = setup(requested, mode, &mut report)?;
        let buffers = requested.buffers()?;
        let ring = Self::assemble(raw, flags, files, buffers, requested, mode, report);
        Ok(ring)
    }

    fn assemble(
        raw: RawRing,
        flags: u32,
        files: Arc<FileSet>,
        buffers: Buffers,
        requested: &Requested,
        mode: Mode,
        mut report: BackendReport,
    ) -> Self {
        let allow = &requested.allow;
        let fds: Box<[i32]> = files.files().iter().map(|file| file.as_fd().as_raw_fd()).collect();
        let fixed_files = register_files(&raw, &fds, allow, &mut report);
        let registered = register_buffers(&raw, &buffers, allow, &mut report);
        let have = raw.probe();
        let has = |op| have.as_ref().is_some_and(|have| have.has(op));
        let memory = match (registered, has(sys::OP_READ)) {
            (true, _) => Memory::Registered,
            (false, true) => Memory::Address,
            (false, false) => Memory::Vector,
        };
        let (read_code, write_code) = match memory {
            Memory::Registered => (sys::OP_READ_FIXED, sys::OP_WRITE_FIXED),
            Memory::Address => (sys::OP_READ, sys::OP_WRITE),
            Memory::Vector => (sys::OP_READV, sys::OP_WRITEV),
        };
        let registered_ring = register_ring(&raw, allow, &mut report);
        let (enter_fd, mut enter_flags) = match registered_ring {
            Some(index) => (index, sys::ENTER_REGISTERED_RING),
            None => (raw.fd.as_raw_fd(), 0),
        };
        if raw.features & sys::FEAT_NO_IOWAIT != 0 && allow.no_iowait {
            enter_flags |= sys::ENTER_NO_IOWAIT;
            report.flag("no-iowait");
        }
        let timeout = if !allow.timed_wait || raw.features & sys::FEAT_EXT_ARG == 0 {
            report.reason(
                "waits end by polling the ring: no timeout in io_uring_enter (before Linux 5.11)",
            );
            Timeout::Poll
        } else if raw.features & sys::FEAT_MIN_TIMEOUT != 0 {
            Timeout::Absolute
        } else {
            Timeout::Relative
        };
        let depth = requested.depth;
        Self {
            sqes: raw.sqes.as_ptr(),
            cqes: raw.cqes.as_ptr(),
            sq_mask: raw.sq_mask,
            cq_mask: raw.cq_mask,
            sq_tail: 0,
            queued: 0,
            cq_head: 0,
            in_flight: 0,
            depth,
            tries_in: 0,
            length_max: u32::try_from(buffers.length()).unwrap_or(u32::MAX),
            sqe_flags: if fixed_files { sys::SQE_FIXED_FILE } else { 0 },
            read_code,
            write_code,
            memory,
            timeout,
            mode,
            asks_for_events: flags & ASKED != 0,
            enter_fd,
            enter_flags,
            busy: vec![false; depth as usize].into(),
            fds: if fixed_files { (0..fds.len() as i32).collect() } else { fds },
            sent: vec![NOTHING; depth as usize].into(),
            again: Vec::new(),
            local: Vec::new(),
            vectors: if memory == Memory::Vector { buffers.iovecs().into() } else { [].into() },
            fallocate: has(sys::OP_FALLOCATE) && mode != Mode::Iopoll,
            discard_command: has(sys::OP_URING_CMD)
                && kernel_version() >= (6, 12)
                && mode != Mode::Iopoll,
            registered_ring,
            raw: ManuallyDrop::new(raw),
            buffers: ManuallyDrop::new(buffers),
            files,
            report,
            thread: PhantomData,
        }
    }

    pub(crate) const fn report(&self) -> &BackendReport {
        &self.report
    }

    pub(crate) fn add_reason(&mut self, reason: &str) {
        self.report.reason(reason);
    }

    /// Takes the slot, if there is such a slot and it is free.
    #[inline]
    fn take(&mut self, request: &Request) -> bool {
        match self.busy.get_mut(request.slot.0 as usize) {
            Some(busy) if !*busy => {
                *busy = true;
                self.in_flight += 1;
                true
            }
            _ => false,
        }
    }

    /// Writes one entry at the tail. There is room: at most `depth` requests are in flight.
    #[inline]
    fn push(&mut self, sqe: Sqe) {
        let place = (self.sq_tail & self.sq_mask) as usize;
        // SAFETY: the mask keeps `place` inside the entries; the kernel has taken what was there,
        // since no more than `depth` (<= entries) are written and not completed.
        unsafe { self.sqes.add(place).write(sqe) };
        self.sq_tail = self.sq_tail.wrapping_add(1);
        self.queued += 1;
    }

    /// The entry of a read or a write, whose slot was taken.
    #[inline]
    fn entry(&mut self, request: &Request, fd: i32, opcode: u8) -> Sqe {
        let mut sqe = Sqe {
            opcode,
            flags: self.sqe_flags,
            ioprio: 0,
            fd,
            off: request.offset.get(),
            addr: self.buffers.at(request.slot) as u64,
            len: request.length,
            op_flags: 0,
            user_data: u64::from(request.slot.0),
            // Ignored unless the buffers are registered: up to 65535 slots, as many as fit.
            buf_index: request.slot.0 as u16,
            ..Sqe::default()
        };
        if self.memory != Memory::Registered {
            sqe.buf_index = 0;
            if self.memory == Memory::Vector {
                let vector = &mut self.vectors[request.slot.0 as usize];
                vector.iov_len = request.length as usize;
                (sqe.addr, sqe.len) = (std::ptr::from_mut(vector) as u64, 1);
            }
        }
        sqe
    }

    /// Sends again what the kernel handed back with EAGAIN, and takes it out of `done[from..]`.
    ///
    /// The kernel first tries every request without waiting. Where a control group's limit holds an
    /// array's requests back, they are handed down later, still so marked; if the queue of a member
    /// is full then, the request comes back (seen on md RAID 0, Linux 6.1). Blocking calls would
    /// just wait there. So it is sent once more, to a thread of the kernel that may wait; its
    /// latency is that of both tries. What is handed back a second time is an error.
    #[cold]
    fn send_again(&mut self, done: &mut Vec<Completion>, from: usize) {
        let mut kept = from;
        for at in from..done.len() {
            let completion = done[at];
            let slot = completion.slot;
            let tried = self.again.iter().position(|&sent| sent == slot);
            if let Some(place) = tried {
                self.again.swap_remove(place);
            }
            let refused = completion.result() == Err(Errno::EAGAIN);
            let sent = self.sent.get(slot.0 as usize).copied();
            let known = sent.filter(|sent| sent.slot == slot && sent.length > 0);
            if let (true, None, Some(request)) = (refused, tried, known)
                && let Some(&fd) = self.fds.get(request.file.0 as usize)
            {
                let opcode = if request.op == Op::Read { self.read_code } else { self.write_code };
                let sqe = self.entry(&request, fd, opcode);
                self.busy[slot.0 as usize] = true;
                self.in_flight += 1;
                self.again.push(slot);
                self.push(Sqe { flags: sqe.flags | sys::SQE_ASYNC, ..sqe });
                continue;
            }
            done[kept] = completion;
            kept += 1;
        }
        done.truncate(kept);
    }

    /// A request that is refused here: no such slot or file, slot in use, longer than a buffer.
    #[cold]
    fn refuse(&mut self, request: &Request, errno: Errno) -> Result<(), Full> {
        if self.in_flight >= self.depth {
            return Err(Full);
        }
        self.in_flight += 1;
        self.local.push(Completion::failed(request.slot, errno));
        Ok(())
    }

    /// Everything but reads and writes.
    #[inline(never)]
    fn submit_other(&mut self, request: &Request, fd: i32) {
        self.sent[request.slot.0 as usize] = NOTHING;
        let base = Sqe {
            flags: self.sqe_flags,
            fd,
            user_data: u64::from(request.slot.0),
            ..Sqe::default()
        };
        let offset = request.offset.get();
        let length = u64::from(request.length);
        let kind = self.files.get(request.file).map_or(Kind::Regular, |file| file.kind);
        let sqe = match request.op {
            // A polled ring takes nothing but reads and writes.
            _ if self.mode == Mode::Iopoll => None,
            Op::Fsync => Some(Sqe { opcode: sys::OP_FSYNC, ..base }),
            Op::Fdatasync => {
                Some(Sqe { opcode: sys::OP_FSYNC, op_flags: sys::FSYNC_DATASYNC, ..base })
            }
            Op::SyncRange => Some(Sqe {
                opcode: sys::OP_SYNC_FILE_RANGE,
                off: offset,
                len: request.length,
                op_flags: ops::SYNC_RANGE_FLAGS,
                ..base
            }),
            Op::Trim if kind == Kind::Block => self.discard_command.then_some(Sqe {
                opcode: sys::OP_URING_CMD,
                off: sys::BLOCK_URING_CMD_DISCARD,
                addr: offset,
                addr3: length,
                ..base
            }),
            Op::Trim => self.fallocate.then_some(Sqe {
                opcode: sys::OP_FALLOCATE,
                off: offset,
                addr: length,
                len: ops::PUNCH_HOLE as u32,
                ..base
            }),
            // Handled by `submit`.
            Op::Read | Op::Write => None,
            Op::Create | Op::Stat | Op::Delete | Op::CopyRange | Op::Commit => None,
        };
        match sqe {
            Some(sqe) => self.push(sqe),
            None => self.carry_out(request, kind),
        }
    }

    /// What this ring cannot do is done here and now by a blocking call.
    fn carry_out(&mut self, request: &Request, kind: Kind) {
        let result = match self.files.get(request.file) {
            // SAFETY: not a data operation: the buffer is not touched.
            Some(file) => unsafe {
                ops::perform(file.as_fd(), kind, request, std::ptr::null_mut())
            },
            None => -libc::EBADF,
        };
        self.busy[request.slot.0 as usize] = false;
        self.local.push(Completion::from_raw(request.slot, result));
    }

    /// Moves what has completed to `done`, at most `room`.
    #[inline]
    fn drain(&mut self, done: &mut Vec<Completion>, room: usize) -> usize {
        // SAFETY: the kernel's counter, mapped as long as `raw` lives.
        let tail = unsafe { self.raw.cq_tail.as_ref() }.load(Ordering::Acquire);
        let ready = tail.wrapping_sub(self.cq_head) as usize;
        let take = ready.min(room);
        if take == 0 {
            return 0;
        }
        let at = done.len();
        let mut refused = false;
        let spare = &mut done.spare_capacity_mut()[..take];
        for (i, place) in spare.iter_mut().enumerate() {
            let index = (self.cq_head.wrapping_add(i as u32) & self.cq_mask) as usize;
            // SAFETY: the mask keeps `index` inside the entries; those before `tail` are written.
            let cqe = unsafe { self.cqes.add(index).read() };
            let slot = cqe.user_data as u32;
            if let Some(busy) = self.busy.get_mut(slot as usize) {
                *busy = false;
            }
            refused |= cqe.res == -libc::EAGAIN;
            place.write(Completion::from_raw(Slot(slot), cqe.res));
        }
        // SAFETY: `take` places after `at` have just been written.
        unsafe { done.set_len(at + take) };
        self.cq_head = self.cq_head.wrapping_add(take as u32);
        // SAFETY: as for the tail.
        unsafe { self.raw.cq_head.as_ref() }.store(self.cq_head, Ordering::Release);
        self.in_flight -= take as u32;
        if refused || !self.again.is_empty() {
            self.send_again(done, at);
            return done.len() - at;
        }
        take
    }

    /// Moves requests that never reached the ring to `done`.
    #[cold]
    fn drain_local(&mut self, done: &mut Vec<Completion>, room: usize) -> usize {
        let take = self.local.len().min(room);
        done.extend(self.local.drain(..take));
        self.in_flight -= take as u32;
        take
    }

    /// Whether to submit without a wait first. Targets in memory complete what is submitted
    /// before the call returns, and a call with a timeout costs 160 ns more than one without:
    /// 5 ns per request at depth 32. Where it does not succeed it is not tried again for a while.
    #[inline]
    fn expects_inline(&mut self) -> bool {
        if self.queued == 0 {
            return false;
        }
        if self.tries_in > 0 {
            self.tries_in -= 1;
            return false;
        }
        true
    }

    /// Shows the kernel what is queued and waits for `wait_for` completions or `until`.
    #[inline]
    fn enter(&mut self, wait_for: u32, until: Instant) -> Result<(), DeviceError> {
        // SAFETY: the kernel's counter, mapped as long as `raw` lives.
        unsafe { self.raw.sq_tail.as_ref() }.store(self.sq_tail, Ordering::Release);
        let mut flags = self.enter_flags;
        let mut submit = self.queued;
        if wait_for > 0 || self.asks_for_events {
            flags |= sys::ENTER_GETEVENTS;
        }
        if self.mode == Mode::Sqpoll {
            self.queued = 0;
            submit = 0;
            // The kernel sets the flag, then looks at the tail; we set the tail, then look at
            // the flag: with full barriers between, one of us sees the other.
            fence(Ordering::SeqCst);
            // SAFETY: the kernel's flags, mapped as long as `raw` lives.
            let state = unsafe { self.raw.sq_flags.as_ref() }.load(Ordering::Relaxed);
            if state & sys::SQ_NEED_WAKEUP != 0 {
                flags |= sys::ENTER_SQ_WAKEUP;
            } else if wait_for == 0 {
                return Ok(());
            }
        }
        let timed = wait_for > 0 && until != Instant::MAX;
        let result = match (timed, self.timeout) {
            // SAFETY: the ring is open; all entries name our buffers, which outlive them.
            (false, _) => unsafe { sys::enter(self.enter_fd, submit, wait_for, flags, None) },
            (true, Timeout::Poll) => self.enter_and_poll(submit, flags, until),
            (true, _) => self.enter_timed(submit, wait_for, flags, until),
        };
        match result {
            Ok(taken) => {
                if self.mode != Mode::Sqpoll {
                    self.queued -= taken.min(self.queued);
                }
                Ok(())
            }
            // The caller looks at what has come and at the clock, and enters again. EAGAIN and
            // EBUSY: the kernel is out of requests for the moment and wants us to reap.
            Err(Errno(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY)) => {
                self.count_taken();
                Ok(())
            }
            Err(errno) => Err(DeviceError::Call { call: "io_uring_enter", errno }),
        }
    }

    /// Gives what is queued to the kernel without waiting for anything; see [`TRICKLE`].
    #[inline(never)]
    fn hand_over(&mut self) {
        if self.mode != Mode::Plain {
            return;
        }
        // SAFETY: the kernel's counter, mapped as long as `raw` lives.
        unsafe { self.raw.sq_tail.as_ref() }.store(self.sq_tail, Ordering::Release);
        // SAFETY: the ring is open; all entries name our buffers, which outlive them.
        match unsafe { sys::enter(self.enter_fd, self.queued, 0, self.enter_flags, None) } {
            Ok(taken) => self.queued -= taken.min(self.queued),
            // The next reap enters again, and says what is wrong if it still is.
            Err(_) => self.count_taken(),
        }
    }

    /// After a call that failed: how many entries the kernel has left.
    #[cold]
    fn count_taken(&mut self) {
        if self.mode != Mode::Sqpoll {
            // SAFETY: the kernel's counter, mapped as long as `raw` lives.
            let head = unsafe { self.raw.sq_head.as_ref() }.load(Ordering::Acquire);
            self.queued = self.sq_tail.wrapping_sub(head);
        }
    }

    #[inline]
    fn enter_timed(
        &self,
        submit: u32,
        wait_for: u32,
        flags: u32,
        until: Instant,
    ) -> Result<u32, Errno> {
        let (at, flags) = match self.timeout {
            Timeout::Absolute => (until, flags | sys::ENTER_ABS_TIMER),
            _ => (Instant::new(until.since(MonotonicClock::read()).get()), flags),
        };
        let at = Timespec {
            seconds: (at.get() / 1_000_000_000) as i64,
            nanos: (at.get() % 1_000_000_000) as i64,
        };
        let arg = GetEvents {
            sigmask: 0,
            sigmask_size: 0,
            min_wait_us: 0,
            timeout: (&raw const at) as u64,
        };
        let flags = flags | sys::ENTER_EXT_ARG;
        // SAFETY: the ring is open; all entries name our buffers, which outlive them; `at` lives
        // through the call.
        unsafe { sys::enter(self.enter_fd, submit, wait_for, flags, Some(&arg)) }
    }

    /// Before Linux 5.11: submit, then wait for the descriptor, which is readable while there
    /// are completions. Wakes for each completion, not for a batch.
    #[cold]
    fn enter_and_poll(&self, submit: u32, flags: u32, until: Instant) -> Result<u32, Errno> {
        let flags = if self.asks_for_events { flags } else { flags & !sys::ENTER_GETEVENTS };
        // SAFETY: the ring is open; all entries name our buffers, which outlive them.
        let taken = unsafe { sys::enter(self.enter_fd, submit, 0, flags, None) }?;
        let left = timespec(Instant::new(until.since(MonotonicClock::read()).get()));
        let mut poll =
            libc::pollfd { fd: self.raw.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one pollfd, one timespec, no signal mask. Its failures (EINTR) need no answer:
        // the caller looks again.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const left, std::ptr::null()) };
        Ok(taken)
    }

    /// CPU time of kernel threads that work for this ring: submission thread and io-wq workers
    /// of this thread.
    pub(crate) fn helper_usage(&self) -> crate::ThreadUsage {
        let worker = format!("iou-wrk-{}", crate::thread_id());
        let poller = format!("iou-sqp-{}", crate::thread_id());
        crate::host::usage_of_threads(|_, name| {
            name == worker || (self.mode == Mode::Sqpoll && name == poller)
        })
    }

    /// Asks the kernel to give up what is in flight and waits a while.
    fn wind_down(&mut self) {
        let mut done = Vec::with_capacity(self.depth as usize + 1);
        // What is queued goes first: the entries may all be taken, and the cancellation needs one.
        let started = self.enter(0, Instant::MAX).is_ok() && self.queued <= self.sq_mask;
        if started && self.in_flight > self.local.len() as u32 {
            self.push(Sqe {
                opcode: sys::OP_ASYNC_CANCEL,
                fd: -1,
                op_flags: sys::ASYNC_CANCEL_ALL_ANY,
                user_data: OURS,
                ..Sqe::default()
            });
            // The cancellation itself; on a ring that does not know it, it fails, which is one
            // completion all the same.
            self.in_flight += 1;
        }
        let until = MonotonicClock::read() + GRACE;
        while self.in_flight > 0 && MonotonicClock::read() < until {
            done.clear();
            if self.reap(1, until, &mut done).is_err() {
                return;
            }
        }
    }
}

impl Device for Ring {
    #[inline]
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        let Some(&fd) = self.fds.get(request.file.0 as usize) else {
            return self.refuse(&request, Errno(libc::EBADF));
        };
        let opcode = match request.op {
            Op::Read => self.read_code,
            Op::Write => self.write_code,
            _ => {
                if !self.take(&request) {
                    return self.refuse(&request, Errno::EINVAL);
                }
                self.submit_other(&request, fd);
                return Ok(());
            }
        };
        if request.length > self.length_max || !self.take(&request) {
            return self.refuse(&request, Errno::EINVAL);
        }
        self.sent[request.slot.0 as usize] = request;
        let sqe = self.entry(&request, fd, opcode);
        self.push(sqe);
        if self.queued >= TRICKLE && self.tries_in > 0 {
            self.hand_over();
        }
        Ok(())
    }

    #[inline]
    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let mut room = done.capacity() - done.len();
        let before = done.len();
        let mut min = min.min(room);
        if !self.local.is_empty() {
            let got = self.drain_local(done, room);
            (room, min) = (room - got, min.saturating_sub(got));
        }
        let got = self.drain(done, room);
        (room, min) = (room - got, min.saturating_sub(got));
        if self.queued == 0 && min == 0 {
            // Nothing to start and enough is here. Only if nothing is here and completions do
            // not appear by themselves is a call worth it.
            if got > 0 || self.in_flight == 0 || !self.asks_for_events || room == 0 {
                return Ok(());
            }
        }
        loop {
            if self.in_flight == 0 {
                if min > 0 && done.len() == before && until != Instant::MAX {
                    MonotonicClock::sleep_until(until);
                }
                return Ok(());
            }
            // Waiting for more than is in flight would be for ever.
            let want = min.min(self.in_flight as usize) as u32;
            let tries = want > 0 && until != Instant::MAX && self.expects_inline();
            self.enter(if tries { 0 } else { want }, until)?;
            let got = self.drain(done, room);
            (room, min) = (room - got, min.saturating_sub(got));
            if tries && min > 0 {
                self.tries_in = TRY_EVERY;
                continue;
            }
            if min == 0 && self.queued == 0 {
                return Ok(());
            }
            if min == 0 && got == 0 {
                // The kernel would not take all and nothing has come: not ours to wait for.
                return Ok(());
            }
            if until != Instant::MAX && min > 0 && MonotonicClock::read() >= until {
                return Ok(());
            }
        }
    }

    #[inline]
    fn now(&self) -> Instant {
        MonotonicClock::read()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        match self.busy.get(slot.0 as usize) {
            // SAFETY: the slot is not in flight, and will not be while `self` is borrowed.
            Some(false) => unsafe { self.buffers.slice(slot) },
            _ => &mut [],
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.wind_down();
        if let Some(index) = self.registered_ring {
            self.raw.unregister_ring(index);
        }
        let stuck = self.in_flight > 0;
        if !stuck && self.sqe_flags & sys::SQE_FIXED_FILE != 0 {
            self.raw.unregister_files();
        }
        // SAFETY: dropped once, here; not used afterwards.
        unsafe { ManuallyDrop::drop(&mut self.raw) };
        if !stuck {
            // SAFETY: dropped once, here; nothing is in flight any more. With requests stuck in
            // the kernel the memory is left to them: it may still be written.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("depth", &self.depth)
            .field("in_flight", &self.in_flight)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}

/// Sets of flags from most to least, with the kernel that first has them.
const LADDER: [(u32, &str); 6] = [
    (
        sys::SETUP_SUBMIT_ALL
            | sys::SETUP_SINGLE_ISSUER
            | sys::SETUP_DEFER_TASKRUN
            | sys::SETUP_NO_SQARRAY,
        "6.6",
    ),
    (sys::SETUP_SUBMIT_ALL | sys::SETUP_SINGLE_ISSUER | sys::SETUP_DEFER_TASKRUN, "6.1"),
    (sys::SETUP_SUBMIT_ALL | sys::SETUP_SINGLE_ISSUER | sys::SETUP_COOP_TASKRUN, "6.0"),
    (sys::SETUP_SUBMIT_ALL | sys::SETUP_COOP_TASKRUN, "5.19"),
    (sys::SETUP_SUBMIT_ALL, "5.18"),
    (0, "5.1"),
];

const SETUP_NAMES: [(u32, &str); 7] = [
    (sys::SETUP_SINGLE_ISSUER, "single-issuer"),
    (sys::SETUP_DEFER_TASKRUN, "defer-taskrun"),
    (sys::SETUP_COOP_TASKRUN, "coop-taskrun"),
    (sys::SETUP_SUBMIT_ALL, "submit-all"),
    (sys::SETUP_NO_SQARRAY, "no-sqarray"),
    (sys::SETUP_SQPOLL, "sqpoll"),
    (sys::SETUP_IOPOLL, "iopoll"),
];

/// Makes the ring with the most flags that the kernel takes.
fn setup(
    requested: &Requested,
    mode: Mode,
    report: &mut BackendReport,
) -> Result<(RawRing, u32), BackendError> {
    if !requested.allow.io_uring {
        return Err(BackendError::IoUringDenied { errno: Errno(libc::EPERM), reason: TAKEN_AWAY });
    }
    let mut entries = requested.depth.max(1).next_power_of_two();
    let (extra, idle) = match mode {
        Mode::Plain => (0, 0),
        // A submission thread publishes the head after a batch: up to twice the depth is between.
        Mode::Sqpoll => {
            entries = (entries * 2).min(DEPTH_MAX);
            (sys::SETUP_SQPOLL, SQPOLL_IDLE_MS)
        }
        Mode::Iopoll => (sys::SETUP_IOPOLL, 0),
    };
    let mut refused = None;
    for (flags, since) in LADDER {
        let flags = without(flags, &requested.allow, mode) | extra;
        match RawRing::new(entries, flags, idle) {
            Ok(raw) => {
                if mode == Mode::Sqpoll && raw.features & sys::FEAT_SQPOLL_NONFIXED == 0 {
                    report.reason("before Linux 5.11 sqpoll needs registered files");
                }
                for (bit, name) in SETUP_NAMES {
                    if flags & bit != 0 {
                        report.flag(name);
                    }
                }
                if let Some(wanted) = refused {
                    report.reason(format!(
                        "flags of Linux {wanted} and later refused (EINVAL): older kernel"
                    ));
                }
                return Ok((raw, flags));
            }
            Err(Errno::EINVAL) => refused = Some(since),
            Err(errno) => return Err(BackendError::denied(errno)),
        }
    }
    Err(BackendError::denied(Errno::EINVAL))
}

const TAKEN_AWAY: &str = "taken away by the caller";

fn without(mut flags: u32, allow: &Allow, mode: Mode) -> u32 {
    if !allow.defer_taskrun {
        flags &= !sys::SETUP_DEFER_TASKRUN;
    }
    if !allow.coop_taskrun {
        flags &= !sys::SETUP_COOP_TASKRUN;
    }
    if !allow.no_sqarray {
        flags &= !sys::SETUP_NO_SQARRAY;
    }
    if mode == Mode::Sqpoll {
        // The kernel refuses these together: completions are run by the thread.
        flags &= !(sys::SETUP_DEFER_TASKRUN | sys::SETUP_COOP_TASKRUN);
    }
    flags
}

fn register_files(raw: &RawRing, fds: &[i32], allow: &Allow, report: &mut BackendReport) -> bool {
    if !allow.registered_files {
        return false;
    }
    match raw.register_files(fds) {
        Ok(()) => {
            report.flag("registered-files");
            true
        }
        Err(errno) => {
            report.reason(format!("{} files not registered: {errno}", fds.len()));
            false
        }
    }
}

/// The most that one ring registers: `buf_index` reaches no further and the kernel less
/// (`IORING_MAX_REG_BUFFERS`; 1024 before 5.13).
const REGISTERED_MAX: usize = 1 << 14;

fn register_buffers(
    raw: &RawRing,
    buffers: &Buffers,
    allow: &Allow,
    report: &mut BackendReport,
) -> bool {
    if !allow.registered_buffers {
        return false;
    }
    let vectors = buffers.iovecs();
    if vectors.len() > REGISTERED_MAX {
        report.reason(format!(
            "buffers not registered: {} of them, the kernel takes {REGISTERED_MAX}",
            vectors.len()
        ));
        return false;
    }
    // SAFETY: our own mapping, unmapped only when nothing is in flight.
    match unsafe { raw.register_buffers(&vectors) } {
        Ok(()) => {
            report.flag("registered-buffers");
            true
        }
        Err(Errno(libc::ENOMEM)) => {
            report.reason(format!(
                "buffers not registered: ENOMEM: {} bytes are more than the limit of locked memory (ulimit -l)",
                buffers.total()
            ));
            false
        }
        Err(errno) => {
            report.reason(format!("buffers not registered: {errno}"));
            false
        }
    }
}

fn register_ring(raw: &RawRing, allow: &Allow, report: &mut BackendReport) -> Option<i32> {
    if !allow.registered_ring {
        return None;
    }
    match raw.register_ring() {
        Ok(index) => {
            report.flag("registered-ring");
            Some(index)
        }
        // Before 5.18, or 16 rings on this thread already.
        Err(errno) => {
            report.reason(format!("ring descriptor not registered: {errno}"));
            None
        }
    }
}

/// Polled completion needs direct I/O and queues that poll.
fn can_poll(files: &FileSet) -> Result<(), BackendError> {
    for (index, file) in files.files().iter().enumerate() {
        let refused = |reason: String| BackendError::NoPolling {
            file: FileIndex(index as u32),
            path: file.path().to_path_buf(),
            reason,
        };
        if !file.direct.in_force() {
            return Err(refused("it is not opened for direct I/O".into()));
        }
        let (major, minor) = file.device;
        match queue_attribute(file.device, "io_poll").as_deref() {
            Some("1") => {}
            Some(_) => {
                return Err(refused(format!(
                    "the queue of device {major}:{minor} does not poll (queue/io_poll is 0)"
                )));
            }
            None => {
                return Err(refused(format!("device {major}:{minor} has no request queue")));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
