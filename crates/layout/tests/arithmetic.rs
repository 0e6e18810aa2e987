//! Laws of the arithmetic, what a real md did, and what the published studies built.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use layout::lvm;
use layout::md::Metadata;
use layout::{Array, Geometry, Level, Pace, Tolerance};
use proptest::prelude::*;
use units::{ByteOffset, Bytes, Nanos};

fn arrays() -> impl Strategy<Value = Array> {
    let level = prop::sample::select(Level::ALL.to_vec());
    (level, 1u32..24, 2u32..11).prop_filter_map("no such array", |(level, members, power)| {
        let chunk = level.has_chunk().then(|| Bytes::kib(1 << power));
        Array::new(level, members, chunk).ok()
    })
}

fn with_parity() -> impl Strategy<Value = Array> {
    arrays().prop_filter("has no parity", |array| array.level().parity() > 0)
}

proptest! {
    #[test]
    fn full_stripes_never_read(array in with_parity(), row in 0u64..1000, rows in 1u64..20) {
        let width = array.data_width().unwrap().get();
        let cost = array.write_cost(ByteOffset::new(row * width), Bytes::new(rows * width));
        prop_assert_eq!(cost.reads, 0);
        prop_assert_eq!(cost.writes, u64::from(array.members()));
        prop_assert_eq!(cost.written_bytes.get(), rows * array.full_stripe().unwrap().get());
        prop_assert_eq!(cost.ways.words(), "full stripe");
    }

    #[test]
    fn a_stripe_less_a_page_reads(array in with_parity(), row in 0u64..1000) {
        let width = array.data_width().unwrap().get();
        let cost = array.write_cost(ByteOffset::new(row * width), Bytes::new(width - 4096));
        prop_assert!(cost.reads > 0);
    }

    #[test]
    fn longer_writes_write_more(array in arrays(), at in 0u64..1 << 26, a in 1u64..1 << 24, b in 0u64..1 << 24) {
        let cost = |size| array.write_cost(ByteOffset::new(at), Bytes::new(size));
        prop_assert!(cost(a).written_bytes <= cost(a + b).written_bytes);
    }

    #[test]
    fn nothing_is_written_for_less_than_itself(array in arrays(), at in 0u64..1 << 26, size in 1u64..1 << 24) {
        let cost = array.write_cost(ByteOffset::new(at), Bytes::new(size));
        let copies = match array.level() {
            Level::Raid1 => u64::from(array.members()),
            Level::Raid10 | Level::Raid01 => 2,
            _ => 1,
        };
        prop_assert!(cost.written_bytes.get() >= size * copies);
        prop_assert!(cost.writes > u64::from(array.level().parity()));
        // The way that reads less was taken: never more than the whole stripes that it touches.
        if let Some(width) = array.data_width().map(Bytes::get).filter(|_| array.level().parity() > 0) {
            let rows = (at + size - 1) / width - at / width + 1;
            prop_assert!(cost.moved().get() <= rows * 2 * array.full_stripe().unwrap().get());
        }
    }

    #[test]
    fn a_write_moved_by_a_whole_pattern_costs_the_same(array in arrays(), at in 0u64..1 << 24, size in 1u64..1 << 22) {
        let pattern = array.data_width().map_or(4096, Bytes::get) * u64::from(array.members());
        let cost = |at| array.write_cost(ByteOffset::new(at), Bytes::new(size));
        prop_assert_eq!(cost(at), cost(at + pattern));
    }

    #[test]
    fn data_and_redundancy_fill_the_members(array in arrays(), member in 0u64..1 << 44) {
        let capacity = u128::from(array.capacity(Bytes::new(member)).get());
        let used = u128::from(array.used(Bytes::new(member)).get());
        let members = u128::from(array.members());
        let chunk = array.chunk().map_or(1, |chunk| u128::from(chunk.get()));
        let redundancy = match array.level() {
            Level::Linear | Level::Raid0 => 0,
            Level::Raid1 => used * (members - 1),
            Level::Raid10 | Level::Raid01 => capacity,
            Level::Raid5 => used,
            Level::Raid6 => 2 * used,
        };
        // Raid10 of an odd number may leave one chunk over.
        let left = used * members - capacity - redundancy;
        prop_assert!(left == 0 || array.level() == Level::Raid10 && left == chunk, "{left}");
        prop_assert!(member < chunk as u64 || used > 0);
    }

    #[test]
    fn more_is_bearable_than_sure(array in arrays()) {
        let Tolerance { sure, at_best } = array.tolerance();
        prop_assert!(sure <= at_best && at_best < array.members());
        prop_assert_eq!(sure > 0, array.level().is_redundant());
    }

    #[test]
    fn rebuilds_of_more_take_longer(array in arrays(), used in 0u64..1 << 44, more in 0u64..1 << 44) {
        let time = |used| array.rebuild(Bytes::new(used), &Pace::default()).map(|e| e.idle);
        prop_assert!(time(used) <= time(used + more));
    }

    #[test]
    fn lvm_begins_at_a_whole_stripe(width in 1u64..1024) {
        let width = Bytes::kib(4 * width);
        let alignment = lvm::data_alignment(Some(width));
        let start = lvm::data_start(alignment);
        prop_assert!(start.is_multiple_of(width) && start >= Bytes::mib(1));
        let extent = lvm::extent_size(alignment, None);
        prop_assert!(extent.is_multiple_of(width) && extent >= Bytes::mib(4));
        prop_assert!(extent.get().is_power_of_two() || extent.is_multiple_of(Bytes::kib(128)));
    }
}

/// Every write that a real md was given, against the arithmetic.
#[test]
fn costs_are_those_of_the_kernel() {
    let measured = include_str!("md-costs.txt").lines().filter(|line| !line.starts_with('#'));
    let mut count = 0;
    for line in measured {
        let words: Vec<&str> = line.split(' ').collect();
        let n = |k: usize| words[k].parse::<u64>().unwrap();
        let level = words[0].parse().unwrap();
        let array = Array::new(level, words[1].parse().unwrap(), Some(Bytes::kib(64))).unwrap();
        let cost = array.write_cost(ByteOffset::new(n(2)), Bytes::new(n(3)));
        assert_eq!((cost.read_bytes.get(), cost.written_bytes.get()), (n(4), n(5)), "{line}");
        // The kernel now and then makes two requests of what could be one.
        assert!(cost.reads <= n(6) && n(6) <= cost.reads + 1, "{line}: {cost:?}");
        count += 1;
    }
    assert_eq!(count, 198);
}

fn array(level: Level, members: u32, chunk: Bytes) -> Array {
    Array::new(level, members, Some(chunk)).unwrap()
}

/// "data width = array stripe size * number of datadisks in your array. E.g. for raid 6 it's array
/// stripe size * (number of disks in array -2) and for raid 5 it's array stripe size * (number of
/// disks in array -1)." And: "evenly divisable to that for 8K (32KiB) or 128K (512KiB)".
///
/// 100K+ IOPS on semi-commodity hardware, 2009: two legs of six in raid6.
#[test]
fn data_widths_of_the_100k_study() {
    for (chunk, width) in [(8, 32), (128, 512)] {
        let leg = array(Level::Raid6, 6, Bytes::kib(chunk));
        assert_eq!(leg.data_width(), Some(Bytes::kib(width)));
        assert_eq!(leg.geometry(), Some(Geometry { unit: Bytes::kib(chunk), count: 4 }));
        // "#default is 4MiB and that's fine"
        let alignment = lvm::data_alignment(leg.data_width());
        assert_eq!(lvm::extent_size(alignment, leg.data_width()), Bytes::mib(4));
        assert_eq!(array(Level::Raid5, 5, Bytes::kib(chunk)).data_width(), leg.data_width());
    }
    // "2x8xRAID10": the same data width on eight members.
    let ten = array(Level::Raid10, 8, Bytes::kib(128));
    assert_eq!(ten.data_width(), Some(Bytes::kib(512)));
    assert_eq!(ten.tolerance(), Tolerance { sure: 1, at_best: 4 });
}

/// "LVM likes to allocate 192k for its header information, and 192k is not a multiple of 128k."
/// `pvcreate --metadatasize 250k` moved data to 256 KiB, a multiple of a chunk; but a full stripe
/// of that study is 512 KiB, so its stripes were still cut in two.
#[test]
fn headers_of_the_100k_study() {
    let leg = array(Level::Raid6, 6, Bytes::kib(128));
    let stripe_at = |kib: u64| leg.write_cost(ByteOffset::new(kib << 10), Bytes::kib(512));
    assert_eq!(stripe_at(512).reads, 0);
    assert!(stripe_at(192).reads > 0 && stripe_at(256).reads > 0);
    // A chunk at 192 KiB lies on two members; at 256 KiB on one.
    let chunk_at = |kib: u64| leg.write_cost(ByteOffset::new(kib << 10), Bytes::kib(128));
    assert_eq!((chunk_at(192).writes, chunk_at(256).writes), (4, 3));
    // With 8 KiB chunks and a width of 32 KiB both are multiples: no harm there.
    let fine = array(Level::Raid6, 6, Bytes::kib(8));
    assert_eq!(fine.write_cost(ByteOffset::new(192 << 10), Bytes::kib(32)).reads, 0);
}

/// `mdadm --create /dev/md0 -v --raid-devices=8 --level=raid10 /dev/sd[a-h]1` on "Seagate
/// ST9146852SS 146GB", each "exported ... as a single-drive RAID-0 array", gave "570917376 blocks
/// 64K chunks 2 near-copies".
///
/// PostgreSQL Server Benchmarks, part five, 2011. The format of then was 0.90; a drive of 146 GB
/// gives 136.125 GiB behind such a controller, and fdisk's partition went from sector 63 to the
/// end of the last cylinder.
#[test]
fn capacity_of_the_postgresql_study() {
    let drive = Bytes::mib(136 * 1024 + 128).get() / 512;
    let partition = Bytes::new((drive / 16_065 * 16_065 - 63) * 512);
    let ten = array(Level::Raid10, 8, Bytes::kib(64));
    let used = Metadata::V0_90.usable(partition, &ten);
    assert_eq!(ten.capacity(used), Bytes::kib(570_917_376));
    assert_eq!(used, Bytes::kib(142_729_344));
    // "a RAID-10 (with 1 hot spare)" of nine.
    assert_eq!(ten.tolerance(), Tolerance { sure: 1, at_best: 4 });
    // 8 KiB pages of the database: a write is two, and a read is one.
    let page = ten.write_cost(ByteOffset::new(3 << 13), Bytes::kib(8));
    assert_eq!((page.reads, page.writes), (0, 2));
    assert_eq!(ten.read_requests(ByteOffset::new(3 << 13), Bytes::kib(8)), 1);
}

/// "resync = 12.5% (71771392/570917376) finish=41.5min speed=200000K/sec", and "45 minutes later
/// ... the array was ready": at the kernel's limit of 200,000 KiB/s.
#[test]
fn first_sync_of_the_postgresql_study() {
    let ten = array(Level::Raid10, 8, Bytes::kib(64));
    let used = Bytes::kib(142_729_344);
    let sync = ten.first_sync(used, &Pace::default()).unwrap();
    assert!(sync.at_limit);
    assert_eq!(sync.bytes, Bytes::kib(570_917_376));
    let minutes = |time: Nanos| time.as_secs_f64() / 60.0;
    assert!((47.0..48.0).contains(&minutes(sync.idle)), "{sync:?}");
    let left = Bytes::kib(570_917_376 - 71_771_392).get() as f64 / sync.speed.get() as f64;
    assert!((left / 60.0 - 41.5).abs() < 0.2, "{left}");
    // A lost drive alone is a quarter of that.
    let rebuild = ten.rebuild(used, &Pace::default()).unwrap();
    assert!((11.0..12.0).contains(&minutes(rebuild.idle)), "{rebuild:?}");
}

/// "2x RAID5 5 + 1 hot spare SSDs per controller - 128kB stripe size", "lvm2 with two RAID
/// controllers", "12 x MSP7535-032" of 32 GB; "the RAID will rebuild itself using the hot spare in
/// about 15 minutes".
///
/// One DVD per second, 2009.
#[test]
fn production_setup_of_the_dvd_study() {
    let leg = array(Level::Raid5, 5, Bytes::kib(128));
    assert_eq!(leg.data_width(), Some(Bytes::kib(512)));
    assert_eq!(leg.tolerance(), Tolerance { sure: 1, at_best: 1 });
    let drive = Bytes::new(32_000_000_000);
    assert_eq!(leg.capacity(drive).get() / 1_000_000_000, 127);
    // 15 minutes are 36 MB/s: far below what these drives read and write.
    let pace = Pace { member: Some(Bytes::new(35_600_000)), ..Pace::default() };
    let rebuild = leg.rebuild(drive, &pace).unwrap();
    assert!((rebuild.idle.as_secs_f64() / 60.0 - 15.0).abs() < 0.1 && !rebuild.at_limit);
    // The software stripe of 128 kB was a quarter of the leg's data width: a piece of it read two
    // members to write two.
    let piece = leg.write_cost(ByteOffset::ZERO, Bytes::kib(128));
    assert_eq!((piece.reads, piece.writes), (2, 2));
    // The gaps of its raid5 "start at writing the 64kB blocks": on four members, chunk 128 kB, a
    // write of 64 kB and more costs two reads and two writes of as much.
    let four = array(Level::Raid5, 4, Bytes::kib(128));
    let write = four.write_cost(ByteOffset::ZERO, Bytes::kib(64));
    assert_eq!((write.reads, write.writes, write.moved()), (2, 2, Bytes::kib(256)));
}

#[test]
fn the_committed_schema_is_the_current_one() {
    const COMMITTED: &str =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema/plimsoll.layout-1.schema.json");
    let schema = layout::sheet::schema();
    let current = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
    if std::env::var_os("PLIMSOLL_WRITE_SCHEMA").is_some() {
        std::fs::write(COMMITTED, &current).unwrap();
    }
    assert!(
        std::fs::read_to_string(COMMITTED).is_ok_and(|committed| committed == current),
        "schema/plimsoll.layout-1.schema.json is stale: run this test with PLIMSOLL_WRITE_SCHEMA=1"
    );
}
