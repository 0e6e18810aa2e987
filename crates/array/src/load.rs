//! Loads: what is asked of an array.

use serde::{Deserialize, Serialize};
use units::Bytes;

use crate::error::LoadError;

/// More requests at a time than any kernel queues for one device.
const IN_FLIGHT_MAX: u32 = 4096;

/// Where requests go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addressing {
    /// Anywhere, at multiples of the block size.
    Random,
    /// One after the other.
    Sequential,
}

/// How far a write-back cache has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fill {
    /// There is room: it takes writes at its own pace.
    Room,
    /// It is full: writes come in as fast as the drives take others.
    Full,
}

/// What threads ask for, each in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Share of reads among the requests, 0 to 1.
    pub read_share: f64,
    /// Where they go.
    pub access: Addressing,
    /// Bytes of each request.
    pub block: Bytes,
    /// How many loops.
    pub threads: u32,
    /// Requests that each keeps in flight.
    pub depth: u32,
    /// Bytes that are addressed, all files together.
    pub size: Bytes,
    /// Equal files, over which the threads are spread.
    pub files: u32,
    /// Of the controllers' caches.
    pub cache: Fill,
}

impl Load {
    /// Random reads of one file, one request in flight per thread: what most benchmarks begin with.
    pub fn random_reads(block: Bytes, threads: u32, size: Bytes) -> Self {
        Self {
            read_share: 1.0,
            access: Addressing::Random,
            block,
            threads,
            depth: 1,
            size,
            files: 1,
            cache: Fill::Full,
        }
    }

    /// Requests in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.threads.saturating_mul(self.depth)
    }

    pub(crate) fn check(&self) -> Result<(), LoadError> {
        let outside = |key, seen: String, wanted| Err(LoadError::Outside { key, seen, wanted });
        if !(0.0..=1.0).contains(&self.read_share) {
            return outside("read_share", self.read_share.to_string(), "0 to 1");
        }
        if !(512..=1 << 30).contains(&self.block.get()) {
            return outside("block", self.block.exact(), "512B to 1GiB");
        }
        if self.size < self.block {
            return outside("size", self.size.exact(), "at least one block");
        }
        if !(1..=IN_FLIGHT_MAX).contains(&self.in_flight()) {
            let seen = format!("{} x {}", self.threads, self.depth);
            return outside("threads x depth", seen, "1 to 4096 in flight");
        }
        if self.files == 0 {
            return outside("files", self.files.to_string(), "at least one");
        }
        Ok(())
    }
}
