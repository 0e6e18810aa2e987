//! Freezes, rebuilds and verdicts of the studies about parts that nobody waits for.

use array::{Addressing, Answer, Component, Load, Model, builtin};
use layout::Pace;
use units::Bytes;

use crate::claim::{Claim, Role, finding};

pub fn claims() -> Vec<Claim> {
    let mut all = the_first_cells_are_a_freeze();
    all.extend([too_few_requests_do_not_fill_two_links(), the_barrier_is_the_lock_of_the_file()]);
    all.extend([the_reads_are_not_of_drives(), another_file_system_or_more_files_break_it()]);
    all.extend([filling_a_spare(), the_resync_runs_at_the_limit_of_md()]);
    all.push(the_link_is_not_what_limits_one_disk());
    all
}

/// Random reads of one file or more.
fn reads(name: &str, block: Bytes, threads: u32, files: u32) -> Answer {
    let load = Load { files, ..Load::random_reads(block, threads, Bytes::gib(4)) };
    Model::new(builtin::design(name).unwrap()).answer(&load).unwrap()
}

/// S1: 4 GiB are written in 3 s into the cache; then the tests begin, and some of the first cells,
/// of 10 s each, are lost. Published: 11307 instead of 22720 and more in the first cell of table A;
/// 24 and 28061 instead of 63882 in the first two of table B. (What the drives write is fitted to
/// the last writes of table B: there it is the same table's two ends that agree.)
fn the_first_cells_are_a_freeze() -> Vec<Claim> {
    let frozen = |name: &str| {
        let backlog = Bytes::gib(4);
        builtin::design(name).unwrap().freeze(backlog).as_secs_f64() - 3.0
    };
    let share = |frozen: f64, cell: f64| ((cell + 1.0) - frozen / 10.0).clamp(0.0, 1.0);
    let arrays = ["areca-raid0x12", "areca-raid5x4"];
    let [a, b] = arrays.map(frozen);
    let says = "S1: freezes of about 10 s are a puzzle; a full cache is supposed";
    let seen = format!(
        "the same, in numbers: the drives are still writing 4 GiB of backlog, {a:.1} s (A) and {b:.1} s (B) long; their rates are fitted to other rows of the tables"
    );
    assert!(share(b, 0.0) <= 0.01, "the first cell of B is lost: {b}");
    let number = |what, array, [normal, part, published]: [f64; 3]| {
        Claim::number(["R3", "S1", what, array, "requests/s"], [published, normal * part, 0.15])
    };
    let slow = ["R3", "S1", "the first cells are slow", says, &seen];
    let all = [
        number("A reads, 512 B, 1 thread", arrays[0], [22_720.0, share(a, 0.0), 11_307.0]),
        number("B reads, 512 B, 10 threads", arrays[1], [63_882.0, share(b, 1.0), 28_061.0]),
        Claim::statement(slow, &arrays).used(Role::Conclusion),
    ];
    all.map(|claim| claim.limited(Component::Drives)).to_vec()
}

/// S1: 3.3 GB/s at this block size with 40 threads, not yet with 10.
fn too_few_requests_do_not_fill_two_links() -> Claim {
    let bandwidth =
        [10, 40].map(|threads| reads("two-areca-raid0x4", Bytes::kib(128), threads, 1).bandwidth);
    assert!(bandwidth[0].0 < Bytes::mib(3200), "{}", bandwidth[0]);
    assert!(bandwidth[1].0 > Bytes::mib(3300), "{}", bandwidth[1]);
    let seen = format!("{} with 10, {} with 40", bandwidth[0], bandwidth[1]);
    let what = "two controllers, 128 KiB: 10 threads are too few";
    let texts = ["R7", "S1", what, "3.3 GB/s only with 40 threads", &seen];
    Claim::statement(texts, &["two-areca-raid0x4"]).limited(Component::Link)
}

/// S1 and S5 measure reads of a file of 4 GiB behind a cache of 4 GiB.
fn the_reads_are_not_of_drives() -> Claim {
    let answer = reads("areca-raid0x12", Bytes::kib(8), 10, 1);
    assert!(answer.parts.iter().all(|part| part.component != Component::Drives));
    let says = "S1: SSDs, of which more than 8 do not help; S5: likely the cache as well";
    let seen = format!("the cache alone, no read reaches a drive; {}", finding(&answer));
    let texts = ["R8", "S1", "what reads of 4 GiB measure", says, &seen];
    Claim::statement(texts, &["areca-raid0x12"]).limited(answer.binding).used(Role::Conclusion)
}

/// S1: a spare of 32 GB is filled in about 15 minutes.
fn filling_a_spare() -> Claim {
    let array = "areca-raid5x4";
    let rebuild = builtin::design(array).unwrap().rebuild().unwrap();
    assert_eq!(builtin::design("areca-raid0x12").unwrap().rebuild(), None);
    let minutes = rebuild.idle.as_secs_f64() / 60.0;
    let texts = ["R11", "S1", "filling a spare of 32 GB", array, "min"];
    Claim::number(texts, [15.0, minutes, 0.2]).limited(Component::Drives)
}

/// S2: 570 917 376 KiB, of which 71 771 392 are done; the kernel says 41.5 minutes. Its own limit
/// is what holds it: eight disks write more than twice of it.
fn the_resync_runs_at_the_limit_of_md() -> Claim {
    let array = "h800-raid10x8";
    let design = builtin::design(array).unwrap();
    let pace = Pace { member: Some(Bytes::new(140_000_000)), ..Pace::default() };
    let used = Bytes::kib(570_917_376 / 4);
    let sync = design.array.first_sync(used, &pace).unwrap();
    assert!(sync.at_limit);
    let left = 1.0 - 71_771_392.0 / 570_917_376.0;
    let minutes = sync.idle.as_secs_f64() / 60.0 * left;
    let texts = ["R20", "S2", "rest of the first resync", array, "min"];
    Claim { limits: "md".to_owned(), ..Claim::number(texts, [41.5, minutes, 0.01]) }
}

/// S2 concludes that 6 Gbit/s are faster than 3. One disk does not fill either, whatever it is
/// assumed to be.
fn the_link_is_not_what_limits_one_disk() -> Claim {
    let arrays = ["wal-3g", "wal-6g"];
    let seen = arrays.map(|name| {
        let load = Load {
            read_share: 0.0,
            access: Addressing::Sequential,
            depth: 8,
            ..Load::random_reads(Bytes::kib(64), 1, Bytes::gib(62))
        };
        let answer = Model::new(builtin::design(name).unwrap()).answer(&load).unwrap();
        assert_eq!(answer.binding, Component::Drives);
        let link = answer.parts.iter().find(|part| part.component == Component::Link).unwrap();
        assert!(link.gain < 1.01 && link.busy < 0.5, "{link:?}");
        assert!(!answer.rests_on.is_empty(), "the rate of the disk is assumed");
        for one in &answer.rests_on {
            assert!(one.binding.iter().all(|component| *component != Component::Link), "{one:?}");
        }
        format!("{name}: drives limit, link {:.0} % busy", link.busy * 100.0)
    });
    let says = "S2: 6 Gbit/s are faster than 3";
    let texts = ["R21", "S2", "log disk: which part limits", says, &seen.join("; ")];
    Claim::statement(texts, &arrays).limited(Component::Drives).used(Role::Conclusion)
}

/// S1 sees reads stop at 65 000 per second, whatever the drives; S5 blames the transactions of jfs.
fn the_barrier_is_the_lock_of_the_file() -> Claim {
    let answer = |name: &str, threads| reads(name, Bytes::kib(4), threads, 1);
    let first = "areca-raid0x12";
    // From the third thread on one waits for the other; alone nobody does.
    assert!(answer(first, 1).binding != Component::FileLock);
    assert_eq!(answer(first, 3).binding, Component::FileLock);
    let others = ["areca-raid5x4", "two-areca-raid0x4", "two-areca-raid0x8", "two-areca-raid5x8"];
    for threads in [10, 40] {
        let one = answer(first, threads);
        assert_eq!(one.binding, Component::FileLock);
        // Neither more drives, nor another level, nor a second controller change it: not even
        // twice as fast a link does.
        for name in others {
            let other = answer(name, threads);
            assert_eq!(other.binding, Component::FileLock, "{name}");
            assert!((other.rate / one.rate - 1.0).abs() < 0.1, "{name}: {}", other.rate);
            for part in &other.parts {
                let is_its_own = [Component::FileLock, Component::Host].contains(&part.component);
                assert!(is_its_own || part.gain < 1.02, "{name}: {part:?}");
                assert!(part.component != Component::Drives, "{name}");
            }
        }
        let lock = one.parts.iter().find(|part| part.component == one.binding).unwrap();
        assert!(lock.gain > 1.5, "{lock:?}");
    }
    // The knee is at two threads.
    let rate = |threads| answer(first, threads).rate;
    assert!(rate(2) > 1.4 * rate(1) && rate(40) < 1.3 * rate(3));
    let says = "S5: the transactions of jfs; the driver of the controller was suspected first";
    let seen = finding(&answer(first, 10));
    let texts = ["R8", "S1, S5", "reads stop at 65 000/s", says, &seen];
    let arrays = [&[first], &others[..]].concat();
    Claim::statement(texts, &arrays).limited(Component::FileLock).used(Role::Conclusion)
}

/// S5: xfs more than doubles it, and from there on neither drives nor the level matter. So would
/// more files under jfs.
fn another_file_system_or_more_files_break_it() -> Claim {
    let arrays = ["two-areca-raid6x6-xfs", "two-areca-raid0x4"];
    let [xfs, locked, files] =
        [(arrays[0], 1), (arrays[1], 1), (arrays[1], 40)].map(|(name, files)| {
            let answer = reads(name, Bytes::kib(4), 40, files);
            assert!(answer.binding != Component::Drives);
            // How far it goes without the lock depends on a controller of which that is not known.
            let keys: Vec<_> = answer.rests_on.iter().map(|one| one.assumption.key).collect();
            let is_locked = answer.binding == Component::FileLock;
            assert_eq!(keys.contains(&"request_time"), !is_locked, "{name}");
            answer
        });
    for free in [&xfs, &files] {
        assert!(free.rate > (2.0 * locked.rate).max(100_000.0), "{}", free.rate);
    }
    let says = "more than twice, more than 100 000 requests/s";
    let seen = format!("x{:.1}; {}", xfs.rate / locked.rate, finding(&xfs));
    Claim::statement(["R12", "S5", "xfs instead of jfs", says, &seen], &arrays).limited(xfs.binding)
}
