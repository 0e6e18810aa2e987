//! Writes down every request that passes to another device, and what became of it.

use std::collections::BTreeMap;

use units::{ByteOffset, Instant};

use crate::{Completion, Device, DeviceError, Errno, FileIndex, Full, Op, Request, Slot};

/// One request as the device saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// What was asked for.
    pub request: Request,
    /// Where a copy goes.
    pub to: Option<(FileIndex, ByteOffset)>,
    /// Device clock at submission.
    pub submitted: Instant,
    /// Device clock when it was handed back; `None` if never.
    pub completed: Option<Instant>,
    /// Bytes moved, or why not; `None` if it was never handed back.
    pub result: Option<Result<u32, Errno>>,
}

/// Wraps any device and keeps everything that passes, in the order of submission.
///
/// For tests: a suite played on a twin inside of it is a list of requests, exact to the byte. The
/// list grows without bound. Which worker a request belongs to is told by its slot: a drive gives
/// its workers slots in their order, as many to each as its queue is deep.
#[derive(Debug)]
pub struct Recording<D> {
    /// The device that does the work.
    pub inner: D,
    /// Every request so far.
    pub log: Vec<RecordedRequest>,
    /// What writes wrote, as submitted and in their order; kept only if there is a list to begin
    /// with.
    pub contents: Option<Vec<Vec<u8>>>,
    /// Largest number of completions handed over at once.
    pub batch_max: usize,
    open: BTreeMap<Slot, usize>,
    aims: BTreeMap<Slot, (FileIndex, ByteOffset)>,
}

impl<D: Device> Recording<D> {
    /// An empty list around `inner`.
    pub fn new(inner: D) -> Self {
        Self {
            inner,
            log: Vec::new(),
            contents: None,
            batch_max: 0,
            open: BTreeMap::new(),
            aims: BTreeMap::new(),
        }
    }

    /// Every request, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.log.iter().map(|entry| entry.request).collect()
    }

    /// Requests of an operation as (file, offset, length), in order.
    pub fn places(&self, op: Op) -> Vec<(u32, u64, u32)> {
        let of = self.log.iter().filter(|entry| entry.request.op == op).map(|entry| entry.request);
        of.map(|r| (r.file.0, r.offset.get(), r.length)).collect()
    }

    /// How many requests of an operation there were.
    pub fn count(&self, op: Op) -> usize {
        self.log.iter().filter(|entry| entry.request.op == op).count()
    }
}

impl<D: Device> Device for Recording<D> {
    fn submit(&mut self, request: Request) -> Result<(), Full> {
        let submitted = self.inner.now();
        let wanted = self.contents.is_some() && request.op == Op::Write;
        let content = wanted.then(|| {
            let buffer = self.inner.buffer(request.slot);
            buffer[..buffer.len().min(request.length as usize)].to_vec()
        });
        self.inner.submit(request)?;
        let open = self.open.insert(request.slot, self.log.len());
        debug_assert!(open.is_none(), "slot {:?} is in flight twice", request.slot);
        let to = self.aims.get(&request.slot).copied().filter(|_| request.op == Op::CopyRange);
        self.log.push(RecordedRequest { request, to, submitted, completed: None, result: None });
        if let Some(contents) = &mut self.contents {
            contents.extend(content);
        }
        Ok(())
    }

    fn aim(&mut self, slot: Slot, file: FileIndex, offset: ByteOffset) {
        self.aims.insert(slot, (file, offset));
        self.inner.aim(slot, file, offset);
    }

    fn reap(
        &mut self,
        min: usize,
        until: Instant,
        done: &mut Vec<Completion>,
    ) -> Result<(), DeviceError> {
        let before = done.len();
        let result = self.inner.reap(min, until, done);
        let now = self.inner.now();
        for completion in &done[before..] {
            let entry = self.open.remove(&completion.slot).and_then(|i| self.log.get_mut(i));
            debug_assert!(entry.is_some(), "{completion:?} was never submitted");
            if let Some(entry) = entry {
                entry.completed = Some(now);
                entry.result = Some(completion.result());
            }
        }
        self.batch_max = self.batch_max.max(done.len() - before);
        result
    }

    fn now(&self) -> Instant {
        self.inner.now()
    }

    fn buffer(&mut self, slot: Slot) -> &mut [u8] {
        self.inner.buffer(slot)
    }
}
