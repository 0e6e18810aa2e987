//! Loads and stores through a shared mapping, as LMDB and its kind do.
//!
//! A page that cannot be had (I/O error, file truncated under us) is a `SIGBUS`, not an errno.
//! A handler that knows our mappings puts a page of zeroes in its place, so that the copy goes
//! on, and notes the address; the request then completes with `EIO` and the file's page is put
//! back. What remains: one handler for the whole process, and a write that failed this way has
//! stored nothing of that page.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use device::{Completion, Device, DeviceError, Errno, Full, Op, Request, Slot};
use units::Instant;

use crate::buffers::Buffers;
use crate::clock::MonotonicClock;
use crate::files::{FileSet, Kind, OpenFile};
use crate::{BackendError, BackendReport, Requested, ops};

/// Mapped files of one worker; requests are carried out by `reap`, one after the other.
#[derive(Debug)]
pub struct Mapped {
    maps: Vec<Map>,
    queue: VecDeque<Request>,
    busy: Box<[bool]>,
    files: Arc<FileSet>,
    buffers: Buffers,
    report: BackendReport,
    thread: PhantomData<*const ()>,
}

impl Mapped {
    pub(crate) fn open(files: Arc<FileSet>, requested: &Requested) -> Result<Self, BackendError> {
        let mut report = BackendReport::new("mmap", &files);
        report.direct = false;
        if requested.depth > 1 {
            report.reason("loads and stores block: the depth is 1 in effect");
        }
        install_handler().map_err(|errno| BackendError::NoMapping {
            path: files.files().first().map_or_else(Default::default, |f| f.path().to_path_buf()),
            reason: format!("sigaction failed: {errno}"),
        })?;
        let maps = files
            .files()
            .iter()
            .map(|file| Map::new(file, files.writable()))
            .collect::<Result<_, _>>()?;
        let slots = requested.depth as usize;
        Ok(Self {
            maps,
            queue: VecDeque::with_capacity(slots),
            busy: vec![false; slots].into(),
            buffers: requested.buffers()?,
            files,
            report,
            thread: PhantomData,
        })
    }

    pub(crate) const fn report(&self) -> &BackendReport {
        &self.report
    }

    fn carry_out(&mut self, request: &Request) -> Completion {
        let failed = |errno| Completion::failed(request.slot, errno);
        let index = request.file.0 as usize;
        let (Some(map), Some(file)) = (self.maps.get(index), self.files.get(request.file)) else {
            return failed(Errno(libc::EBADF));
        };
        let result = match request.op {
            Op::Read | Op::Write if request.length as usize > self.buffers.length() => {
                Err(Errno::EINVAL)
            }
            Op::Read | Op::Write => {
                // SAFETY: the slot exists and `self` is borrowed; its buffer is long enough.
                unsafe { map.copy(file, request, self.buffers.at(request.slot)) }
            }
            Op::Fsync | Op::Fdatasync => map.sync(0, map.length),
            Op::SyncRange => map.sync_range(request),
            Op::Trim => {
                ops::trim(file.as_fd(), file.kind, request.offset.get(), u64::from(request.length))
                    .map_err(|e| Errno(e.raw_os_error()))
            }
            Op::Create | Op::Stat | Op::Delete => Err(Errno(libc::ENOTDIR)),
            Op::CopyRange | Op::Commit => Err(Errno::EOPNOTSUPP),
        };
        match result {
            Ok(moved) => Completion::moved(request.slot, moved as u32),
            Err(errno) => failed(errno),
        }
    }
}

impl Device for Mapped {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        if self.queue.len() == self.busy.len() {
            return Err(Full);
        }
        if let Some(busy) = self.busy.get_mut(request.slot.0 as usize) {
            *busy = true;
        }
        self.queue.push_back(request);
        Ok(())
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        if self.queue.is_empty() && min > 0 && until != Instant::MAX {
            MonotonicClock::sleep_until(until);
        }
        let room = done.capacity() - done.len();
        for _ in 0..min.max(1).min(room) {
            let Some(request) = self.queue.pop_front() else { break };
            let completion = match self.busy.get_mut(request.slot.0 as usize) {
                Some(busy) => {
                    *busy = false;
                    self.carry_out(&request)
                }
                None => Completion::failed(request.slot, Errno::EINVAL),
            };
            done.push(completion);
            if until != Instant::MAX && MonotonicClock::read() >= until {
                break;
            }
        }
        Ok(())
    }

    fn now(&self) -> Instant {
        MonotonicClock::read()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        match self.busy.get(slot.0 as usize) {
            // SAFETY: requests are carried out inside `reap` only, and `self` is borrowed.
            Some(false) => unsafe { self.buffers.slice(slot) },
            _ => &mut [],
        }
    }
}

/// One file's mapping.
#[derive(Debug)]
struct Map {
    base: NonNull<u8>,
    /// Of the file when it was mapped.
    length: usize,
    writable: bool,
    /// Its place in the handler's table.
    guard: usize,
}

impl Map {
    fn new(file: &OpenFile, writable: bool) -> Result<Self, BackendError> {
        let refused =
            |reason: String| BackendError::NoMapping { path: file.path().to_path_buf(), reason };
        if file.kind == Kind::Character {
            return Err(refused("it is a character device".into()));
        }
        if file.direct.in_force() {
            return Err(refused("a mapping is the page cache: direct I/O does not go".into()));
        }
        let length = file.size.map_or(0, units::Bytes::get);
        let length = usize::try_from(length).map_err(|_| refused("too long to map".into()))?;
        if length == 0 {
            return Err(refused("it is empty".into()));
        }
        let guard = guard_free().ok_or_else(|| {
            refused(format!("{GUARDS} mappings are in use, the most at one time"))
        })?;
        let mut prot = rustix::mm::ProtFlags::READ;
        if writable {
            prot |= rustix::mm::ProtFlags::WRITE;
        }
        let flags = rustix::mm::MapFlags::SHARED;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapped =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), length, prot, flags, file.as_fd(), 0) };
        let base = mapped.ok().and_then(|base| NonNull::new(base.cast::<u8>()));
        let Some(base) = base else {
            guard_release(guard);
            let error = mapped.err().map_or(libc::ENOMEM, rustix::io::Errno::raw_os_error);
            return Err(refused(format!("mmap failed: {}", Errno(error))));
        };
        guard_set(guard, base.as_ptr() as usize, length);
        Ok(Self { base, length, writable, guard })
    }

    /// Copies between the mapping and `buffer`; less than asked at the end of the file.
    ///
    /// # Safety
    /// `buffer` is valid for reads and writes of the request's length and nobody else uses it.
    unsafe fn copy(
        &self,
        file: &OpenFile,
        request: &Request,
        buffer: *mut u8,
    ) -> Result<usize, Errno> {
        if request.op == Op::Write && !self.writable {
            return Err(Errno(libc::EBADF));
        }
        let start = usize::try_from(request.offset.get()).map_err(|_| Errno::EINVAL)?;
        let length = (request.length as usize).min(self.length.saturating_sub(start));
        if length == 0 && request.length > 0 {
            // As read does at the end of a file. A mapping cannot grow its file.
            let grows = request.op == Op::Write;
            return if grows { Err(Errno(libc::EFBIG)) } else { Ok(0) };
        }
        let place = self.base.as_ptr().wrapping_add(start);
        FAULTS[self.guard].store(0, Ordering::Relaxed);
        // SAFETY: `start + length` is inside the mapping; the buffer is the caller's promise.
        // Pages that cannot be had are replaced by the handler. Other processes may change the
        // mapped bytes meanwhile: they are only copied, as bytes.
        unsafe {
            match request.op {
                Op::Write => std::ptr::copy_nonoverlapping(buffer, place, length),
                _ => std::ptr::copy_nonoverlapping(place, buffer, length),
            }
        }
        // Both are on this thread: only the compiler could reorder them.
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
        if FAULTS[self.guard].load(Ordering::Relaxed) == 0 {
            return Ok(length);
        }
        self.restore(file, start, length);
        Err(Errno::EIO)
    }

    /// Maps the file's pages again over what the handler put there.
    #[cold]
    fn restore(&self, file: &OpenFile, start: usize, length: usize) {
        let page = rustix::param::page_size();
        let first = start / page * page;
        let end = (start + length).next_multiple_of(page);
        let mut prot = rustix::mm::ProtFlags::READ;
        if self.writable {
            prot |= rustix::mm::ProtFlags::WRITE;
        }
        let flags = rustix::mm::MapFlags::SHARED | rustix::mm::MapFlags::FIXED;
        // SAFETY: whole pages of our own mapping, replaced by the same pages of the same file.
        // If that fails the zeroes stay and later requests read them; there is no address space
        // left for anything then.
        let _ = unsafe {
            rustix::mm::mmap(
                self.base.as_ptr().wrapping_add(first).cast(),
                end - first,
                prot,
                flags,
                file.as_fd(),
                first as u64,
            )
        };
    }

    fn sync_range(&self, request: &Request) -> Result<usize, Errno> {
        let page = rustix::param::page_size();
        let start = usize::try_from(request.offset.get()).map_err(|_| Errno::EINVAL)?;
        let end = start.saturating_add(request.length as usize).min(self.length);
        let first = start / page * page;
        self.sync(first.min(end), end)
    }

    fn sync(&self, start: usize, end: usize) -> Result<usize, Errno> {
        if start >= end {
            return Ok(0);
        }
        let place = self.base.as_ptr().wrapping_add(start).cast();
        rustix::io::retry_on_intr(|| {
            // SAFETY: inside our mapping, from a page's start.
            unsafe { rustix::mm::msync(place, end - start, rustix::mm::MsyncFlags::SYNC) }
        })
        .map(|()| 0)
        .map_err(|e| Errno(e.raw_os_error()))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        guard_release(self.guard);
        // SAFETY: our own mapping; no request is being carried out.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

// The table of mappings is the one global state of this crate: a signal handler takes no argument.

/// Mappings at one time: workers times files.
const GUARDS: usize = 4096;

/// First address, 0 when the place is free, 1 when it is taken and not yet set.
static STARTS: [AtomicUsize; GUARDS] = [const { AtomicUsize::new(0) }; GUARDS];
/// One past the last address.
static ENDS: [AtomicUsize; GUARDS] = [const { AtomicUsize::new(0) }; GUARDS];
/// Address of the last fault since it was set to 0.
static FAULTS: [AtomicUsize; GUARDS] = [const { AtomicUsize::new(0) }; GUARDS];
/// What was there before our handler.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());
static PAGE: AtomicUsize = AtomicUsize::new(4096);

fn guard_free() -> Option<usize> {
    STARTS
        .iter()
        .position(|start| start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok())
}

fn guard_set(guard: usize, start: usize, length: usize) {
    ENDS[guard].store(start + length, Ordering::Release);
    STARTS[guard].store(start, Ordering::Release);
}

fn guard_release(guard: usize) {
    ENDS[guard].store(0, Ordering::Release);
    STARTS[guard].store(0, Ordering::Release);
}

fn install_handler() -> Result<(), Errno> {
    static INSTALLED: OnceLock<Result<(), Errno>> = OnceLock::new();
    *INSTALLED.get_or_init(|| {
        PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
        // SAFETY: all-zero is a valid sigaction.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        action.sa_sigaction = on_sigbus as *const () as usize;
        // SAFETY: all-zero is a valid sigaction.
        let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: both are valid sigactions; the handler does only what handlers may.
        if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) } != 0 {
            let raw = std::io::Error::last_os_error().raw_os_error();
            return Err(Errno(raw.unwrap_or(libc::EINVAL)));
        }
        // Kept for ever: the handler is.
        PREVIOUS.store(Box::leak(Box::new(previous)), Ordering::Release);
        Ok(())
    })
}

/// Async-signal-safe: atomics, `mmap` and `sigaction` only.
extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel gives a valid siginfo; SIGBUS has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    let guard = (0..GUARDS).find(|&guard| {
        let start = STARTS[guard].load(Ordering::Acquire);
        start > 1 && address >= start && address < ENDS[guard].load(Ordering::Acquire)
    });
    let Some(guard) = guard else { return pass_on(signal, info, context) };
    let page = PAGE.load(Ordering::Relaxed);
    // SAFETY: a page of one of our own mappings, replaced by a page of zeroes.
    let mapped = unsafe {
        libc::mmap(
            (address / page * page) as *mut libc::c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return pass_on(signal, info, context);
    }
    FAULTS[guard].store(address, Ordering::Relaxed);
}

/// Not ours: as if we had never been there.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
    let previous = PREVIOUS.load(Ordering::Acquire);
    // SAFETY: leaked once set, so valid for ever; null before it is set.
    let Some(previous) = (unsafe { previous.as_ref() }) else { return };
    match previous.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            // On return the access is repeated and meets the old disposition.
            // SAFETY: a sigaction that the kernel itself gave us.
            unsafe { libc::sigaction(signal, previous, std::ptr::null_mut()) };
        }
        handler => {
            // SAFETY: a handler somebody installed for this signal. Handlers without
            // SA_SIGINFO take one argument and ignore the others on all our architectures.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
    }
}
