//! The channels of flash drives that map pages.

use stats::Random;

use super::page_map::{PAGES_MIN, PageMap};
use super::station::Station;
use crate::part::PageMapped;

/// Bytes of a page, one of which keeps a channel.
const PAGE: u64 = 4096;

/// Bytes that a drive takes before they are programmed. No datasheet says it. More would only shift the
/// time at which writes begin to wait.
const BUFFER: f64 = 4.0 * 1024.0 * 1024.0;

/// The flash of all drives.
///
/// Programming is suspended for reads, and goes to any channel that is free: so reads wait for reads
/// alone, and writes for all that the channels of their drive have to do, together.
#[derive(Debug)]
pub(super) struct Flash {
    /// Of each drive, one after the other: reads.
    channels: Station,
    /// Of each drive: reads and programming, as if all channels were one so much faster.
    work: Station,
    count: f64,
    /// Of each drive.
    maps: Vec<PageMap>,
    /// Reading a page in a channel, programming one in all, the answer to a write, what the buffer
    /// holds: in ns.
    read: u64,
    program: f64,
    answer: u64,
    buffer: u64,
}

impl Flash {
    pub(super) fn new(part: &PageMapped, drives: usize, pages: u32, seed: u64) -> Self {
        let count = part.channels.value.max(1.0);
        let byte = 1e9 / part.write_rate.value.0.get() as f64;
        let pages = (pages / drives as u32).max(PAGES_MIN);
        // All begin alike, and go apart from then on.
        let map = PageMap::new(part.live_share.value.0, pages, seed);
        Self {
            channels: Station::new(drives * count.ceil() as usize),
            work: Station::new(drives),
            count,
            maps: vec![map; drives],
            read: part.channel_time.value.get(),
            program: PAGE as f64 * byte,
            answer: part.write_time.value.get(),
            buffer: (BUFFER * byte) as u64,
        }
    }

    /// When the drive has read so many bytes: pages in channels one after the other, the first of
    /// which is any. A part of a channel gets its part of the pages.
    pub(super) fn read(&mut self, drive: usize, bytes: u64, now: u64, random: &mut Random) -> u64 {
        let pages = bytes.div_ceil(PAGE);
        let work = (pages * self.read) as f64 / self.count;
        self.work.serve(drive, now, work.round() as u64);
        let base = drive * self.count.ceil() as usize;
        let mut place = random.unit() * self.count;
        let mut end = now;
        for _ in 0..pages {
            end = end.max(self.channels.serve(base + place as usize, now, self.read));
            place += 1.0;
            if place >= self.count {
                place -= self.count;
            }
        }
        end
    }

    /// When the drive answers a write: there is room in its buffer by then. Programming, and cleaning
    /// for it, follow.
    pub(super) fn write(&mut self, drive: usize, (start, bytes): (u64, u64), now: u64) -> u64 {
        let first = start / PAGE;
        let pages = first..first + bytes.div_ceil(PAGE);
        let map = &mut self.maps[drive];
        let programmed: f64 = pages.map(|page| map.write(page)).sum();
        let work = (programmed * self.program).round() as u64;
        let done = self.work.serve(drive, now, work);
        done.saturating_sub(self.buffer).max(now + self.answer)
    }

    /// Mean work of a drive so far, in ns.
    pub(super) fn busy(&self) -> u64 {
        self.work.busy()
    }
}
