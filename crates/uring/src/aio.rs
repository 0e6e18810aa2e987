//! libaio's system calls: for hosts that disable io_uring. Asynchronous only with direct I/O.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use device::{Completion, Device, DeviceError, Errno, Full, Op, Request, Slot};
use units::{Instant, Nanos};

use crate::buffers::Buffers;
use crate::clock::{MonotonicClock, timespec};
use crate::files::FileSet;
use crate::{BackendError, BackendReport, Requested, ops};

/// `struct iocb` of `include/uapi/linux/aio_abi.h`, little-endian field order.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Iocb {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    rw_flags: i32,
    #[cfg(target_endian = "big")]
    key: u32,
    opcode: u16,
    reqprio: i16,
    fd: u32,
    buf: u64,
    nbytes: u64,
    offset: i64,
    reserved2: u64,
    flags: u32,
    resfd: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64);

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    obj: u64,
    res: i64,
    res2: i64,
}

const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// How long dropping a context waits for requests still in flight. After that the buffers are
/// left to the kernel and the context to the end of the process: `io_destroy` would wait for ever.
const GRACE: Nanos = Nanos::secs(2);

/// An aio context.
pub struct Aio {
    context: libc::c_ulong,
    /// One control block per slot.
    blocks: Box<[Iocb]>,
    /// Slots accepted and not yet submitted, in order.
    queued: Vec<u32>,
    pointers: Vec<*mut Iocb>,
    events: Box<[Event]>,
    busy: Box<[bool]>,
    in_flight: usize,
    local: Vec<Completion>,
    buffers: ManuallyDrop<Buffers>,
    files: Arc<FileSet>,
    report: BackendReport,
    thread: PhantomData<*const ()>,
}

fn last_errno() -> Errno {
    Errno(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

impl Aio {
    pub(crate) fn open(
        files: Arc<FileSet>,
        requested: &Requested,
        reasons: Vec<String>,
    ) -> Result<Self, BackendError> {
        let depth = requested.depth;
        let mut report = BackendReport::new("libaio", &files);
        report.reasons.extend(reasons);
        if !report.direct {
            report.reason("without direct I/O io_submit blocks: the depth is 1 in effect");
        }
        let denied = |errno| BackendError::LibaioDenied { depth, errno };
        if !requested.allow.libaio {
            return Err(denied(Errno(libc::ENOSYS)));
        }
        let buffers = requested.buffers()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word to `context`, which is zero as it wants.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, depth, &raw mut context) };
        if result < 0 {
            return Err(denied(last_errno()));
        }
        let slots = depth as usize;
        Ok(Self {
            context,
            blocks: vec![Iocb::default(); slots].into(),
            queued: Vec::with_capacity(slots),
            pointers: Vec::with_capacity(slots),
            events: vec![Event::default(); slots].into(),
            busy: vec![false; slots].into(),
            in_flight: 0,
            local: Vec::new(),
            buffers: ManuallyDrop::new(buffers),
            files,
            report,
            thread: PhantomData,
        })
    }

    pub(crate) const fn report(&self) -> &BackendReport {
        &self.report
    }

    fn prepare(&mut self, request: &Request) -> Result<(), Completion> {
        let refused = |errno| Err(Completion::failed(request.slot, errno));
        let slot = request.slot.0 as usize;
        if self.busy.get(slot) != Some(&false) {
            return refused(Errno::EINVAL);
        }
        let Some(file) = self.files.get(request.file) else {
            return refused(Errno(libc::EBADF));
        };
        let opcode = match request.op {
            Op::Read => PREAD,
            Op::Write => PWRITE,
            Op::Fsync => FSYNC,
            Op::Fdatasync => FDSYNC,
            Op::SyncRange
            | Op::Trim
            | Op::Create
            | Op::Stat
            | Op::Delete
            | Op::CopyRange
            | Op::Commit => {
                // The interface has no such thing: a blocking call, here and now.
                // SAFETY: not a data operation: the buffer is not touched.
                let result =
                    unsafe { ops::perform(file.as_fd(), file.kind, request, std::ptr::null_mut()) };
                return Err(Completion::from_raw(request.slot, result));
            }
        };
        let moves = request.op.moves_data();
        if moves && request.length as usize > self.buffers.length() {
            return refused(Errno::EINVAL);
        }
        let Ok(offset) = i64::try_from(request.offset.get()) else {
            return refused(Errno::EINVAL);
        };
        self.blocks[slot] = Iocb {
            data: u64::from(request.slot.0),
            opcode,
            fd: file.as_fd().as_raw_fd() as u32,
            // The kernel refuses syncs with anything in these.
            buf: if moves { self.buffers.at(request.slot) as u64 } else { 0 },
            nbytes: if moves { u64::from(request.length) } else { 0 },
            offset: if moves { offset } else { 0 },
            ..Iocb::default()
        };
        self.busy[slot] = true;
        self.queued.push(request.slot.0);
        Ok(())
    }

    /// Submits what is queued, as one call if the kernel takes it all. A request that the kernel
    /// refuses outright is completed with the refusal.
    fn start(&mut self) -> Result<(), DeviceError> {
        while !self.queued.is_empty() {
            let blocks = self.blocks.as_mut_ptr();
            self.pointers.clear();
            // SAFETY: queued slots are slots: each has a control block.
            self.pointers
                .extend(self.queued.iter().map(|&slot| unsafe { blocks.add(slot as usize) }));
            // SAFETY: an array of pointers to control blocks, which the kernel copies; they name
            // our buffers, which outlive the requests.
            let result = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context,
                    self.pointers.len() as libc::c_long,
                    self.pointers.as_mut_ptr(),
                )
            };
            if result > 0 {
                self.queued.drain(..(result as usize).min(self.queued.len()));
                continue;
            }
            match last_errno() {
                _ if result == 0 => return Ok(()),
                Errno(libc::EINTR) => {}
                // Out of requests for the moment: those in flight give theirs back.
                Errno(libc::EAGAIN) => return Ok(()),
                errno @ (Errno(libc::ENOSYS) | Errno(libc::EFAULT)) => {
                    return Err(DeviceError::Call { call: "io_submit", errno });
                }
                errno => {
                    let slot = self.queued.remove(0);
                    self.busy[slot as usize] = false;
                    self.local.push(Completion::failed(Slot(slot), errno));
                }
            }
        }
        Ok(())
    }

    /// Moves refused requests to `done`.
    fn drain_local(&mut self, done: &mut Vec<Completion>, room: usize) -> usize {
        let take = self.local.len().min(room);
        done.extend(self.local.drain(..take));
        self.in_flight -= take;
        take
    }

    /// One `io_getevents`.
    fn collect(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
        room: usize,
    ) -> Result<usize, DeviceError> {
        let left = match (min, until) {
            (0, _) => Some(Nanos::ZERO),
            (_, Instant::MAX) => None,
            (_, until) => Some(until.since(MonotonicClock::read())),
        };
        let left = left.map(|left| timespec(Instant::new(left.get())));
        let pointer = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let most = room.min(self.events.len());
        // SAFETY: room for `most` events; a timespec that lives through the call, or none.
        let result = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                min as libc::c_long,
                most as libc::c_long,
                self.events.as_mut_ptr(),
                pointer,
            )
        };
        if result < 0 {
            return match last_errno() {
                Errno(libc::EINTR) => Ok(0),
                errno => Err(DeviceError::Call { call: "io_getevents", errno }),
            };
        }
        let got = result as usize;
        for event in &self.events[..got] {
            let slot = Slot(event.data as u32);
            self.busy[slot.0 as usize] = false;
            done.push(Completion::from_raw(slot, event.res as i32));
        }
        self.in_flight -= got;
        Ok(got)
    }
}

impl Device for Aio {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.in_flight == self.busy.len() {
            return Err(Full);
        }
        self.in_flight += 1;
        if let Err(completion) = self.prepare(&request) {
            self.local.push(completion);
        }
        Ok(())
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        if self.in_flight == 0 {
            if min > 0 && until != Instant::MAX {
                MonotonicClock::sleep_until(until);
            }
            return Ok(());
        }
        let mut room = done.capacity() - done.len();
        let mut min = min.min(room);
        loop {
            self.start()?;
            let got = self.drain_local(done, room);
            (room, min) = (room - got, min.saturating_sub(got));
            let started = self.in_flight - self.queued.len() - self.local.len();
            let want = min.min(started);
            let got =
                if room > 0 && started > 0 { self.collect(want, until, done, room)? } else { 0 };
            (room, min) = (room - got, min.saturating_sub(got));
            // More than is in flight never comes; what the kernel would not take is not waited for.
            let nothing_to_wait_for = started == got && self.local.is_empty();
            if min == 0 || nothing_to_wait_for && self.queued.is_empty() {
                return Ok(());
            }
            if until != Instant::MAX && MonotonicClock::read() >= until {
                return Ok(());
            }
        }
    }

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

impl Drop for Aio {
    fn drop(&mut self) {
        // Never started, so nothing to wait for.
        self.in_flight -= self.queued.len() + self.local.len();
        self.queued.clear();
        self.local.clear();
        let until = MonotonicClock::read() + GRACE;
        let mut done = Vec::with_capacity(self.busy.len());
        while self.in_flight > 0 && MonotonicClock::read() < until {
            done.clear();
            if self.reap(1, until, &mut done).is_err() {
                break;
            }
        }
        if self.in_flight == 0 {
            // SAFETY: our context, not used afterwards.
            unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
            // SAFETY: dropped once, here; nothing is in flight any more.
            unsafe { ManuallyDrop::drop(&mut self.buffers) };
        }
    }
}

impl std::fmt::Debug for Aio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aio")
            .field("depth", &self.busy.len())
            .field("in_flight", &self.in_flight)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
