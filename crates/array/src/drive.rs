//! How long one drive takes for one request.

use units::{Bytes, Nanos};

use crate::cleaning::write_amplification;
use crate::network::Visit;
use crate::parameter::{Parameter, PerSecond};
use crate::part::{BlockMapped, Drive, LogLayer, Mechanical, PageMapped, Volume};

const PAGE: f64 = 4096.0;

/// Of the mean seek, what even the shortest takes: heads settle.
pub(crate) const SETTLE: f64 = 0.1;

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Read,
    Write,
}

/// What one request does to a drive, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stay {
    /// What requests pass one by one before `inside`.
    pub front: f64,
    /// The medium.
    pub inside: Visit,
    /// Seconds of the medium's work after the answer.
    pub behind: f64,
}

pub(crate) fn seconds(parameter: &Parameter<Nanos>) -> f64 {
    parameter.value.as_secs_f64()
}

/// Seconds for so many bytes.
pub(crate) fn transfer(bytes: f64, rate: PerSecond) -> f64 {
    bytes / rate.over(Bytes::new(1))
}

fn alone(time: f64) -> Stay {
    Stay { inside: Visit::constant(1.0, time), ..Stay::default() }
}

/// In sequence: reading and writing.
pub(crate) fn rates(drive: &Drive) -> (PerSecond, PerSecond) {
    match drive {
        Drive::Mechanical(drive) => (drive.media_rate.value, drive.media_rate.value),
        Drive::PageMapped(drive) => (drive.read_rate.value, drive.write_rate.value),
        Drive::BlockMapped(drive) => (drive.read_rate.value, drive.write_rate.value),
        Drive::Volume(drive) => (drive.rate.value, drive.rate.value),
    }
}

/// Seconds of each request, however short, at what a drive has for all of them: its processor, or
/// a quota.
pub(crate) fn front(drive: &Drive) -> f64 {
    match drive {
        Drive::PageMapped(drive) => seconds(&drive.request_time),
        Drive::Volume(drive) => seconds(&drive.request_time),
        Drive::Mechanical(_) | Drive::BlockMapped(_) => 0.0,
    }
}

/// * `reach`: share of the drive over which requests are spread; `None` if they come in sequence.
/// * `bytes`: of the request, on this drive.
pub(crate) fn stay(
    drive: &Drive,
    layer: Option<&LogLayer>,
    op: Op,
    reach: Option<f64>,
    bytes: f64,
) -> Stay {
    let (read_rate, write_rate) = rates(drive);
    let rate = if op == Op::Read { read_rate } else { write_rate };
    let Some(reach) = reach else { return alone(transfer(bytes, rate)) };
    match (op, layer, drive) {
        (Op::Write, Some(layer), _) => {
            let written = write_amplification(layer.live_share.value.0);
            let time = transfer(bytes * written, write_rate)
                + transfer(bytes * (written - 1.0), read_rate);
            alone(time)
        }
        (_, _, Drive::Mechanical(drive)) => mechanical(drive, op, bytes, reach),
        (_, _, Drive::PageMapped(drive)) => page_mapped(drive, op, bytes),
        (_, _, Drive::BlockMapped(drive)) => block_mapped(drive, op, bytes),
        (_, _, Drive::Volume(drive)) => volume(drive, op, bytes),
    }
}

/// Seek, half a turn, transfer. A seek takes what heads need to settle, and a time that grows with
/// the root of the distance.
fn mechanical(drive: &Mechanical, op: Op, bytes: f64, reach: f64) -> Stay {
    let seek = seconds(if op == Op::Read { &drive.seek_read } else { &drive.seek_write });
    let seek = seek * (SETTLE + (1.0 - SETTLE) * reach.sqrt());
    let half_turn = 30.0 / f64::from(drive.rpm.value);
    let rest = seconds(&drive.command_time) + half_turn + transfer(bytes, drive.media_rate.value);
    let reorder = drive.reorder.value;
    let inside = Visit { seek, reorder, ..Visit::constant(1.0, seek + rest) };
    Stay { inside, ..Stay::default() }
}

/// Reads spread over the channels; writes are answered from a buffer and written where there is
/// room, and cleaning follows.
fn page_mapped(drive: &PageMapped, op: Op, bytes: f64) -> Stay {
    let front = seconds(&drive.request_time);
    if op == Op::Write {
        let written = bytes.max(PAGE) * write_amplification(drive.live_share.value.0);
        let inside = Visit::delay(seconds(&drive.write_time));
        return Stay { front, inside, behind: transfer(written, drive.write_rate.value) };
    }
    let channels = drive.channels.value.max(1.0);
    let pages = (bytes / PAGE).ceil();
    let one = seconds(&drive.channel_time);
    let time = one * (pages / channels).ceil();
    Stay {
        front: front.max(transfer(bytes, drive.read_rate.value)),
        inside: Visit { demand: one * pages / channels, ..Visit::constant(1.0, time) },
        ..Stay::default()
    }
}

/// Each request goes to one of the servers by chance, whether it is free or not. A quota hands out
/// tokens: it delays nobody until it is used up.
fn volume(drive: &Volume, op: Op, bytes: f64) -> Stay {
    let least = seconds(if op == Op::Read { &drive.read_time } else { &drive.write_time });
    let time = least + transfer(bytes, drive.server_rate.value);
    let servers = drive.servers.value.max(1.0);
    let quota = seconds(&drive.request_time).max(transfer(bytes, drive.rate.value));
    Stay {
        inside: Visit::one_of(servers, time),
        // Together with the servers' own work it is the greater of the two.
        behind: (quota - time / servers).max(0.0),
        ..Stay::default()
    }
}

/// A write that is less than an erase unit rewrites the unit.
fn block_mapped(drive: &BlockMapped, op: Op, bytes: f64) -> Stay {
    let (least, rate) = match op {
        Op::Read => (&drive.read_time, drive.read_rate.value),
        Op::Write => (&drive.merge_time, drive.write_rate.value),
    };
    alone(seconds(least).max(transfer(bytes, rate)))
}
