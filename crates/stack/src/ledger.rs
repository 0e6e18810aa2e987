use std::path::{Path, PathBuf};

use record::LedgerEntry;
use units::Bytes;

use crate::block::{BlockDevice, KERNEL_SECTOR, disk_of};
use crate::host::Host;

/// Reads the kernel's counters of the devices below a target.
///
/// A snapshot is two small reads per device (some 10 us each), so that it can be taken around
/// every visit. Partitions count no flushes of their own: the kernel books those on the disk.
#[derive(Clone, Debug)]
pub struct Ledger {
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    device: String,
    depth: u32,
    stat: PathBuf,
    iostats: PathBuf,
}

/// One device's counters at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Kernel name.
    pub device: String,
    /// Distance from the target.
    pub depth: u32,
    /// What the kernel counted, or why that is not known.
    pub counters: Result<Counters, UnknownCounters>,
}

/// Sums since the device appeared, as the kernel keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests completed.
    pub reads: u64,
    /// In units of 512 bytes, on every device.
    pub read_sectors: u64,
    /// Sum over reads of their time in queue and device, ms.
    pub read_ms: u64,
    /// Requests completed.
    pub writes: u64,
    /// In units of 512 bytes.
    pub write_sectors: u64,
    /// Requests that are in flight now: a level, not a sum.
    pub in_flight: u64,
    /// Sum over requests of their time in queue and device, ms. The kernel keeps 32 bits.
    pub queue_ms: u64,
    /// Requests completed; Linux 4.18 and later.
    pub discards: Option<u64>,
    /// In units of 512 bytes.
    pub discard_sectors: Option<u64>,
    /// Requests completed; Linux 5.5 and later.
    pub flushes: Option<u64>,
}

/// Why a device's counters are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownCounters {
    /// It is not in sysfs (any more).
    #[error("the device is not there")]
    Gone,
    /// `queue/iostats` is 0.
    #[error("the kernel does not count on it (queue/iostats is 0)")]
    NotCounted,
    /// What the kernel wrote was not understood.
    #[error("its stat file is not understood")]
    Malformed,
    /// Counts went back: another device has taken the name.
    #[error("its counters went back: it was replaced during the visit")]
    WentBack,
    /// The two snapshots do not have it both.
    #[error("it is in one of the two snapshots only")]
    Unpaired,
    /// Some counts are missing; an entry exists all the same, with 0 in their place.
    #[error("this kernel does not count flushes (Linux 5.5 and later do)")]
    NoFlushes,
    /// As above.
    #[error("this kernel does not count discards (Linux 4.18 and later do)")]
    NoDiscards,
}

/// What happened between two snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Of the devices whose counters are known. Never zeros for want of knowledge, except for
    /// what `unknown` names as missing from an entry.
    pub entries: Vec<LedgerEntry>,
    /// Kernel names, and why there is no entry (or what the entry lacks).
    pub unknown: Vec<(String, UnknownCounters)>,
}

impl Ledger {
    /// Of the devices below a target.
    pub fn new(host: &Host, devices: &[BlockDevice]) -> Self {
        let class = Path::new("/sys/class/block");
        let rows = devices.iter().map(|device| {
            let queue = disk_of(host, &device.name).unwrap_or_else(|| device.name.clone());
            Row {
                device: device.name.clone(),
                depth: device.depth,
                stat: host.path(class.join(&device.name).join("stat")),
                iostats: host.path(class.join(queue).join("queue/iostats")),
            }
        });
        Self { rows: rows.collect() }
    }

    /// The counters now.
    pub fn snapshot(&self) -> Vec<DeviceCounters> {
        let rows = self.rows.iter().map(|row| DeviceCounters {
            device: row.device.clone(),
            depth: row.depth,
            counters: read(row),
        });
        rows.collect()
    }
}

fn read(row: &Row) -> Result<Counters, UnknownCounters> {
    let text = std::fs::read_to_string(&row.stat).map_err(|_| UnknownCounters::Gone)?;
    let off = std::fs::read_to_string(&row.iostats).is_ok_and(|text| text.trim() == "0");
    if off {
        return Err(UnknownCounters::NotCounted);
    }
    parse(&text).ok_or(UnknownCounters::Malformed)
}

/// Fields by their place: Documentation/block/stat.rst of the kernel.
fn parse(text: &str) -> Option<Counters> {
    let fields: Vec<u64> =
        text.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let field = |index: usize| fields.get(index).copied();
    Some(Counters {
        reads: field(0)?,
        read_sectors: field(2)?,
        read_ms: field(3)?,
        writes: field(4)?,
        write_sectors: field(6)?,
        in_flight: field(8)?,
        queue_ms: field(10)?,
        discards: field(11),
        discard_sectors: field(13),
        flushes: field(15),
    })
}

/// What happened between two snapshots of one ledger.
pub fn difference(before: &[DeviceCounters], after: &[DeviceCounters]) -> Difference {
    let mut found = Difference::default();
    for late in after {
        let early = before.iter().find(|early| early.device == late.device);
        let pair = early
            .ok_or(UnknownCounters::Unpaired)
            .and_then(|early| Ok((early.counters?, late.counters?)));
        match pair.and_then(|(b, a)| Ok((entry(late, &b, &a)?, a))) {
            Ok((entry, after)) => {
                if after.flushes.is_none() {
                    found.unknown.push((late.device.clone(), UnknownCounters::NoFlushes));
                }
                if after.discards.is_none() {
                    found.unknown.push((late.device.clone(), UnknownCounters::NoDiscards));
                }
                found.entries.push(entry);
            }
            Err(reason) => found.unknown.push((late.device.clone(), reason)),
        }
    }
    let lost = before.iter().filter(|early| !after.iter().any(|late| late.device == early.device));
    found.unknown.extend(lost.map(|early| (early.device.clone(), UnknownCounters::Unpaired)));
    found
}

/// Sum over reads of their time in queue and device, ms, of the devices right below the file systems; none
/// where that is not known of each.
pub fn read_ms(before: &[DeviceCounters], after: &[DeviceCounters]) -> Option<u64> {
    let firsts = after.iter().filter(|device| device.depth == 0);
    let spent = |late: &DeviceCounters| {
        let early = before.iter().find(|early| early.device == late.device)?;
        Some(advance_ms(early.counters.ok()?.read_ms, late.counters.ok()?.read_ms))
    };
    let all = firsts.map(spent).collect::<Option<Vec<_>>>()?;
    (!all.is_empty()).then(|| all.iter().sum())
}

fn entry(
    device: &DeviceCounters,
    before: &Counters,
    after: &Counters,
) -> Result<LedgerEntry, UnknownCounters> {
    let optional = |b: Option<u64>, a: Option<u64>| match (b, a) {
        (Some(b), Some(a)) => advance(b, a),
        _ => Ok(0),
    };
    let bytes = |sectors: u64| Bytes::new(sectors.saturating_mul(KERNEL_SECTOR)).get();
    Ok(LedgerEntry {
        device: device.device.clone(),
        depth: device.depth,
        reads: advance(before.reads, after.reads)?,
        read_bytes: bytes(advance(before.read_sectors, after.read_sectors)?),
        writes: advance(before.writes, after.writes)?,
        write_bytes: bytes(advance(before.write_sectors, after.write_sectors)?),
        discards: optional(before.discards, after.discards)?,
        discard_bytes: bytes(optional(before.discard_sectors, after.discard_sectors)?),
        flushes: optional(before.flushes, after.flushes)?,
        queue_ms: advance_ms(before.queue_ms, after.queue_ms),
        in_flight_end: after.in_flight,
    })
}

/// How far a counter of 64 bits came. One that went back either wrapped (it was near its end)
/// or belongs to another device now.
fn advance(before: u64, after: u64) -> Result<u64, UnknownCounters> {
    let forward = after.wrapping_sub(before);
    if forward < 1 << 63 { Ok(forward) } else { Err(UnknownCounters::WentBack) }
}

/// How far a counter of milliseconds came: the kernel prints 32 bits of it, and at a queue depth
/// of 1000 these pass in 72 minutes.
fn advance_ms(before: u64, after: u64) -> u64 {
    if after >= before { after - before } else { (after as u32).wrapping_sub(before as u32).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(text: &str) -> DeviceCounters {
        let counters = parse(text).ok_or(UnknownCounters::Malformed);
        DeviceCounters { device: "sda".to_owned(), depth: 1, counters }
    }

    #[test]
    fn every_field_is_taken_from_its_place() {
        let before = counters("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17");
        let after = counters("11 0 33 0 55 0 77 0 99 0 111 122 0 144 0 166 0");
        let found = difference(&[before], &[after]);
        assert_eq!(
            found.entries,
            [LedgerEntry {
                device: "sda".to_owned(),
                depth: 1,
                reads: 10,
                read_bytes: 30 * 512,
                writes: 50,
                write_bytes: 70 * 512,
                discards: 110,
                discard_bytes: 130 * 512,
                flushes: 150,
                queue_ms: 100,
                in_flight_end: 99,
            }]
        );
        assert!(found.unknown.is_empty());
        let mut pair = [counters("1 2 3 40 5 6 7 8 9 10 11"), counters("1 2 3 90 5 6 7 8 9 10 11")];
        let spent = |[before, after]: &[DeviceCounters; 2]| {
            read_ms(std::slice::from_ref(before), std::slice::from_ref(after))
        };
        assert_eq!(spent(&pair), None, "of the devices below it only");
        pair.iter_mut().for_each(|device| device.depth = 0);
        assert_eq!(spent(&pair), Some(50));
    }

    #[test]
    fn counters_wrap() {
        assert_eq!(advance(u64::MAX - 1, 3), Ok(5));
        assert_eq!(advance(10, 9), Err(UnknownCounters::WentBack));
        assert_eq!(advance_ms(u64::from(u32::MAX), 4), 5);
        assert_eq!(advance_ms(7, 9), 2);
    }

    #[test]
    fn old_kernels_lack_flushes_and_say_so() {
        let zero = counters("0 0 0 0 0 0 0 0 0 0 0");
        let one = counters("1 0 8 0 0 0 0 0 0 0 0");
        let found = difference(&[zero], &[one]);
        assert_eq!(found.entries[0].read_bytes, 4096);
        let reasons: Vec<_> = found.unknown.iter().map(|(_, r)| *r).collect();
        assert_eq!(reasons, [UnknownCounters::NoFlushes, UnknownCounters::NoDiscards]);
    }

    #[test]
    fn what_is_not_known_is_never_zero() {
        let good = counters("0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
        for reason in [UnknownCounters::Gone, UnknownCounters::NotCounted] {
            let bad = DeviceCounters { counters: Err(reason), ..good.clone() };
            for (before, after) in [(&good, &bad), (&bad, &good)] {
                let found = difference(std::slice::from_ref(before), std::slice::from_ref(after));
                assert!(found.entries.is_empty());
                assert_eq!(found.unknown, [("sda".to_owned(), reason)]);
            }
        }
        assert_eq!(
            difference(&[good], &[]).unknown,
            [("sda".to_owned(), UnknownCounters::Unpaired)]
        );
        assert_eq!(counters("what is this").counters, Err(UnknownCounters::Malformed));
    }
}
