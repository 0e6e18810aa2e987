//! The members of all legs: when a drive is done with what it was given.

use stats::Random;

use super::flash::Flash;
use super::placement::MemberWork;
use super::station::{Station, byte_time, span};
use super::volume::Volumes;
use crate::cleaning::write_amplification;
use crate::design::ArrayDesign;
use crate::drive::{Op, SETTLE, rates};
use crate::part::{Drive, Mechanical};

/// Sequences of one kind that a drive tells apart.
const STREAMS: usize = 4;

/// Of the shortest requests, how many a quota lets pass at once: it delays nobody who stays below it.
const TOKENS: u64 = 32;

/// One over the mean root of the distance of two uniform places, as a share of all.
const SCALE: f64 = 15.0 / 8.0;

/// Where the latest sequences of a drive or a leg ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams<const N: usize> {
    ends: [u64; N],
    oldest: usize,
}

impl<const N: usize> Streams<N> {
    pub(super) const NONE: Self = Self { ends: [u64::MAX; N], oldest: 0 };

    /// Whether it goes on where one ended.
    pub(super) fn follow(&mut self, work: MemberWork) -> bool {
        let found = self.ends.iter().position(|end| *end == work.start);
        let at = found.unwrap_or(self.oldest);
        self.ends[at] = work.start + work.bytes;
        if found.is_none() {
            self.oldest = (at + 1) % N;
        }
        found.is_some()
    }
}

/// Arms of disks.
#[derive(Debug)]
struct Arms {
    /// Mean seek of a read and of a write, in ns.
    seek: [f64; 2],
    /// In ns.
    turn: u64,
    command: u64,
    reorder: f64,
    size: f64,
    /// ns of a byte that passes.
    byte: f64,
    /// Where the head of each disk is.
    heads: Vec<u64>,
}

#[derive(Debug)]
enum Medium {
    Mechanical(Arms),
    PageMapped(Flash),
    /// Least time of a read and of a write, in ns.
    BlockMapped([u64; 2]),
    Volume(Volumes),
}

/// All drives.
#[derive(Debug)]
pub(super) struct Drives {
    /// What requests pass one by one.
    station: Station,
    /// Of reads, and of writes.
    streams: Vec<[Streams<STREAMS>; 2]>,
    /// Nanoseconds of a byte in sequence, read and written.
    byte_times: [f64; 2],
    /// The same for a write anywhere, where a layer makes a sequence of it.
    layered: Option<f64>,
    request: u64,
    medium: Medium,
    /// Bytes read and written.
    pub(super) moved: [u64; 2],
}

impl Drives {
    /// * `pages`: see [`super::page_map`].
    pub(super) fn new(design: &ArrayDesign, pages: u32, seed: u64) -> Self {
        let count = design.drives() as usize;
        let part = &design.drive.part;
        let (read, write) = rates(part);
        let byte_times = [read, write].map(byte_time);
        let layered = design.layer.as_ref().map(|layer| {
            let written = write_amplification(layer.part.live_share.value.0);
            written * byte_times[1] + (written - 1.0) * byte_times[0]
        });
        let (request, medium) = match part {
            Drive::Mechanical(disk) => (0, Medium::Mechanical(Arms::new(disk, count))),
            Drive::PageMapped(flash) => {
                let medium = Medium::PageMapped(Flash::new(flash, count, pages, seed));
                (flash.request_time.value.get(), medium)
            }
            Drive::BlockMapped(drive) => {
                let least = [&drive.read_time, &drive.merge_time].map(|one| one.value.get());
                (0, Medium::BlockMapped(least))
            }
            Drive::Volume(disk) => {
                (disk.request_time.value.get(), Medium::Volume(Volumes::new(disk, count)))
            }
        };
        Self {
            station: Station::new(count),
            streams: vec![[Streams::NONE; 2]; count],
            byte_times,
            layered,
            request,
            medium,
            moved: [0; 2],
        }
    }

    /// When the drive answers. Requests of a drive must come in the order of their arrival.
    pub(super) fn serve(
        &mut self,
        drive: usize,
        op: Op,
        work: MemberWork,
        arrival: u64,
        random: &mut Random,
    ) -> u64 {
        let kind = usize::from(op == Op::Write);
        self.moved[kind] += work.bytes;
        let is_next = self.streams[drive][kind].follow(work);
        let transfer = span(work.bytes, self.byte_times[kind]);
        if let (Op::Write, Some(layered)) = (op, self.layered) {
            let time = if is_next { transfer } else { span(work.bytes, layered) };
            return self.station.serve(drive, arrival, time);
        }
        match &mut self.medium {
            Medium::Mechanical(arms) => {
                let others = self.station.waiting(drive, arrival);
                let mut time = transfer + arms.position(drive, kind, work, others, random);
                let idle = arrival.saturating_sub(self.station.free_at(drive));
                if op == Op::Write && time == transfer && idle > 0 {
                    // The place has gone by meanwhile.
                    time += arms.turn - idle % arms.turn;
                }
                self.station.serve(drive, arrival, time)
            }
            Medium::PageMapped(flash) if op == Op::Read => {
                let front = self.request.max(transfer);
                let at = self.station.serve(drive, arrival, front);
                flash.read(drive, work.bytes, at, random)
            }
            Medium::PageMapped(flash) => {
                let at = self.station.serve(drive, arrival, self.request);
                flash.write(drive, (work.start, work.bytes), at)
            }
            Medium::BlockMapped(least) => {
                let time = if is_next { transfer } else { least[kind].max(transfer) };
                self.station.serve(drive, arrival, time)
            }
            Medium::Volume(disks) => {
                let quota = self.request.max(transfer);
                let spent = self.station.serve(drive, arrival, quota);
                let at = spent.saturating_sub(TOKENS * self.request).max(arrival);
                disks.serve(drive, kind, work.bytes, at, random)
            }
        }
    }

    /// Which of several copies a read takes: where a sequence goes on, else that of the drive which is
    /// free first. Of drives that do several requests at a time any, since there that says little.
    ///
    /// * `base`: drive of the first member.
    /// * `at`: byte of the members.
    /// * `lost`: the drive that is not there.
    pub(super) fn choose(
        &self,
        base: usize,
        members: &[usize],
        at: u64,
        lost: Option<usize>,
        random: &mut Random,
    ) -> usize {
        let any = random.below(members.len() as u64) as usize;
        let is_wide = matches!(self.medium, Medium::PageMapped(_) | Medium::Volume(_));
        let cost = |copy: &usize| {
            let drive = base + members[*copy];
            let is_next = !is_wide && self.streams[drive][0].ends.contains(&at);
            let free = if is_wide { 0 } else { self.station.free_at(drive) };
            (Some(drive) == lost, !is_next, free)
        };
        (any..members.len()).chain(0..any).min_by_key(cost).unwrap_or(any)
    }

    /// Mean work of a drive so far, in ns: of what is busier in it.
    pub(super) fn busy(&self) -> u64 {
        let inside = match &self.medium {
            Medium::PageMapped(flash) => flash.busy(),
            Medium::Volume(disks) => disks.busy(),
            _ => 0,
        };
        self.station.busy().max(inside)
    }

    pub(super) fn visits(&self) -> u64 {
        self.station.visits()
    }
}

impl Arms {
    fn new(disk: &Mechanical, count: usize) -> Self {
        Self {
            seek: [&disk.seek_read, &disk.seek_write].map(|one| one.value.get() as f64),
            turn: 60_000_000_000 / u64::from(disk.rpm.value),
            command: disk.command_time.value.get(),
            reorder: disk.reorder.value,
            size: disk.size.value.get().max(1) as f64,
            byte: byte_time(disk.media_rate.value),
            heads: vec![0; count],
        }
    }

    /// Command, seek and rotation, in ns; nothing where the head is already. Of what is read the
    /// disk has what comes within a turn when it is asked for, such as what lies behind a chunk of
    /// parity.
    ///
    /// A seek takes a + b sqrt(distance), which is the mean seek on average over uniform places, and
    /// shrinks with the number that waits as [`crate::network::Visit::reorder`] says.
    fn position(
        &mut self,
        drive: usize,
        kind: usize,
        work: MemberWork,
        others: f64,
        random: &mut Random,
    ) -> u64 {
        let head = std::mem::replace(&mut self.heads[drive], work.start + work.bytes);
        let gap = span(work.start.saturating_sub(head), self.byte);
        if head == work.start || kind == 0 && (1..self.turn).contains(&gap) {
            return gap;
        }
        let distance = (head.abs_diff(work.start) as f64 / self.size).min(1.0);
        let seek = self.seek[kind] * (SETTLE + (1.0 - SETTLE) * SCALE * distance.sqrt());
        let seek = seek * (3.0 / (others + 3.0)).powf(self.reorder);
        self.command + seek.round() as u64 + random.below(self.turn)
    }
}
