//! Virtual disks: equal servers behind a quota.

use stats::Random;

use super::station::{Station, byte_time, span};
use crate::part;

/// The servers of all virtual disks.
#[derive(Debug)]
pub(super) struct Volumes {
    /// Of each disk, one after the other.
    servers: Station,
    count: f64,
    /// Mean of a read and of a write, but for its bytes: ns.
    least: [u64; 2],
    byte: f64,
}

impl Volumes {
    pub(super) fn new(part: &part::Volume, disks: usize) -> Self {
        let count = part.servers.value.max(1.0);
        Self {
            servers: Station::new(disks * count.ceil() as usize),
            count,
            least: [&part.read_time, &part.write_time].map(|one| one.value.get()),
            byte: byte_time(part.server_rate.value),
        }
    }

    /// When one of the servers, taken by chance, is done. Times vary as exponential ones do. A part
    /// of a server gets its part of the requests.
    ///
    /// * `kind`: 0 of a read, 1 of a write.
    pub(super) fn serve(
        &mut self,
        disk: usize,
        kind: usize,
        bytes: u64,
        now: u64,
        random: &mut Random,
    ) -> u64 {
        let mean = self.least[kind] + span(bytes, self.byte);
        let server = disk * self.count.ceil() as usize + (random.unit() * self.count) as usize;
        self.servers.serve(server, now, (mean as f64 * random.exponential()).round() as u64)
    }

    /// Mean work of a server so far, in ns.
    pub(super) fn busy(&self) -> u64 {
        (self.servers.busy() as f64 * self.count.ceil() / self.count) as u64
    }
}
