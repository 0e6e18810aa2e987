use record::stack::Queue;
use units::Bytes;

use super::{line, small};
use crate::block::{chosen, class};
use crate::host::Host;

/// Limits and settings of the queue of a block device that has one of its own.
pub(super) fn queue(host: &Host, name: &str) -> Queue {
    let directory = class(name).join("queue");
    let number = |attribute: &str| host.number(directory.join(attribute));
    let text = |attribute: &str| line(host, directory.join(attribute));
    let flag = |attribute: &str| number(attribute).map(|n| n != 0);
    let kib = |attribute: &str| number(attribute).map(|n| Bytes::kib(n.min(u64::MAX >> 10)).get());
    let schedulers = text("scheduler");
    let words = schedulers.as_deref().unwrap_or_default().split_whitespace();
    let offset = host.line(class(name).join("alignment_offset"));
    Queue {
        logical_sector_bytes: number("logical_block_size"),
        physical_sector_bytes: number("physical_block_size"),
        minimum_io_bytes: number("minimum_io_size"),
        optimal_io_bytes: number("optimal_io_size"),
        alignment_offset_bytes: offset.and_then(|text| text.parse().ok()),
        rotational: flag("rotational"),
        scheduler: schedulers.as_deref().map(chosen),
        schedulers: words.map(|word| word.trim_matches(['[', ']']).to_owned()).collect(),
        requests: small(host, directory.join("nr_requests")),
        read_ahead_bytes: kib("read_ahead_kb"),
        request_bytes_max: kib("max_sectors_kb"),
        request_bytes_hardware_max: kib("max_hw_sectors_kb"),
        write_cache: text("write_cache"),
        fua: flag("fua"),
        discard_bytes_max: number("discard_max_bytes"),
        discard_unit_bytes: number("discard_granularity"),
        io_poll: flag("io_poll"),
        no_merges: small(host, directory.join("nomerges")),
        write_brake_ns: number("wbt_lat_usec").and_then(|us| us.checked_mul(1000)),
        zoned: text("zoned"),
        read_only: host.number(class(name).join("ro")).is_some_and(|n| n != 0),
    }
}
