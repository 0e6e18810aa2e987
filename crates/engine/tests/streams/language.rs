//! What each word of the suite language makes of a stream, on suites written for it.

use device::Op;

use crate::support::*;

/// The requests of a suite of one phase with these fields.
fn play(head: &str, phase: &str) -> Vec<Request> {
    let text = format!(
        "schema = 1\nname = \"made\"\nfile_size = \"1MiB\"\n{head}\n[[phase]]\nname = \"p\"\n{phase}\n"
    );
    let mut cells = play_text(&text, &[]);
    assert_eq!(cells.len(), 1);
    cells.remove(0).requests
}

const K: u64 = 1024;

#[test]
fn sequential_lines_share_one_pointer_and_round_up_to_their_alignment() {
    // At depth 3: in order of issue the next begins where the last one ends, whoever has it.
    let seen = play(
        "",
        "operations = 8\nqueue_depth = 3\nchoice = \"shared\"\naccess = \"sequential\"\n\
         classes = [{ weight = 1, operation = \"read\", block_size = \"512B\", align = \"512B\" },\n\
         { weight = 1, operation = \"write\", block_size = \"6KiB\", align = \"4KiB\" }]",
    );
    let seen: Vec<_> = seen.iter().map(|r| (r.op, r.offset, r.length)).collect();
    let (r, w) = (Op::Read, Op::Write);
    let wanted = [
        (r, 0, 512),
        (w, 4 * K, 6144),
        (r, 10 * K, 512),
        (w, 12 * K, 6144),
        (r, 18 * K, 512),
        (w, 20 * K, 6144),
        (r, 26 * K, 512),
        (w, 28 * K, 6144),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_line_that_no_longer_fits_goes_to_the_start() {
    let seen = play(
        "",
        "operations = 5\nregion = \"20KiB\"\naccess = \"sequential\"\n\
         classes = [{ operation = \"read\", block_size = \"6KiB\", align = \"4KiB\" }]",
    );
    assert_eq!(offsets(&seen), [0, 8 * K, 0, 8 * K, 0], "16 KiB and 6 more do not fit in 20");
}

#[test]
fn random_lines_are_rounded_up_and_what_does_not_fit_goes_to_the_start() {
    let n = 40_000;
    let seen = play(
        "",
        "operations = 40000\nregion = \"64KiB\"\nalign = \"1KiB\"\n\
         classes = [{ operation = \"read\", block_size = \"8KiB\", align = \"8KiB\", random_share = 1 },\n\
         { operation = \"write\", block_size = \"24KiB\", align = \"8KiB\" }]",
    );
    let share = |op: Op, offset: u64| {
        let of: Vec<_> = seen.iter().filter(|r| r.op == op).collect();
        of.iter().filter(|r| r.offset == offset).count() as f64 / of.len() as f64
    };
    // Eight places. Of those of 24 KiB the last two do not fit and make the first three times as
    // likely.
    for place in 0..8 {
        let eighth = share(Op::Read, place * 8 * K);
        assert!((eighth - 0.125).abs() < 0.012, "read at {place}: {eighth}, {n} requests");
        let wanted = [0.375, 0.125, 0.125, 0.125, 0.125, 0.125, 0.0, 0.0][place as usize];
        let found = share(Op::Write, place * 8 * K);
        assert!((found - wanted).abs() < 0.015, "write at {place}: {found}, wanted {wanted}");
    }
}

#[test]
fn lines_have_their_shares_of_size_of_reads_and_of_jumps() {
    let seen = play(
        "",
        "operations = 40000\nrandom_share = 0\nclasses = [\n\
         { weight = 60, read_share = 0.8, block_size = \"4KiB\", random_share = 0.25 },\n\
         { weight = 40, read_share = 0.25, block_size = \"512B\", random_share = 1 }]",
    );
    let share = |of: &dyn Fn(&&Request) -> bool, among: &dyn Fn(&&Request) -> bool| {
        let among = seen.iter().filter(among);
        let total = among.clone().count() as f64;
        among.filter(of).count() as f64 / total
    };
    let near = |seen: f64, wanted: f64| assert!((seen - wanted).abs() < 0.015, "{seen} {wanted}");
    near(share(&|r| r.length == 4096, &|_| true), 0.6);
    near(share(&|r| r.op == Op::Read, &|r| r.length == 4096), 0.8);
    near(share(&|r| r.op == Op::Read, &|r| r.length == 512), 0.25);
    let goes_on = |pair: &[Request]| {
        let end = pair[0].offset + u64::from(pair[0].length);
        pair[1].offset == end
    };
    let pairs: Vec<_> = seen.windows(2).filter(|pair| pair[1].length == 4096).collect();
    let jumps = pairs.iter().filter(|pair| !goes_on(pair)).count() as f64 / pairs.len() as f64;
    near(jumps, 0.25);
}

#[test]
fn a_line_pauses_its_worker_before_each_burst() {
    let seen = play(
        "",
        "operations = 8\nchoice = \"shared\"\nqueue_depth = 2\nclasses = [\n\
         { operation = \"read\", burst = 3, think = \"10ms\" }, { operation = \"write\" }]",
    );
    let starts: Vec<u64> = seen.iter().map(|r| r.start.get() / 1000).collect();
    assert_eq!(letters(&seen), "rrrwrrrw");
    // Two at a time, 100 us each; the fifth waits 10 ms from when it could have been issued.
    let first = [10_000, 10_000, 10_100, 10_100];
    let again = first.map(|us| us + 10_200);
    assert_eq!(starts[..4], first);
    assert_eq!(starts[4..], again);
    assert_eq!(seen[0].end.get(), 10_100_000);
}

#[test]
fn a_shared_choice_counts_the_requests_of_all_workers() {
    for (threads, depth) in [(1, 1), (5, 1), (3, 4)] {
        let seen = play(
            "",
            &format!(
                "operations = 1000\nthreads = {threads}\nqueue_depth = {depth}\n\
                 choice = \"shared\"\nclasses = [{{ weight = 9, operation = \"read\" }},\n\
                 {{ weight = 1, operation = \"write\" }}]"
            ),
        );
        assert_eq!(letters(&seen), "rrrrrrrrrw".repeat(100), "{threads} x {depth}");
    }
}

/// sysbench's rule, written down from its description.
fn ratio(ratio: f64, n: usize) -> String {
    let (mut reads, mut writes) = (0.0, 0.0);
    let next = |_| {
        if (reads + 1.0) / (writes + 1.0) < ratio {
            reads += 1.0;
            'r'
        } else {
            writes += 1.0;
            'w'
        }
    };
    (0..n).map(next).collect()
}

#[test]
fn a_ratio_is_kept_per_worker_as_sysbench_keeps_it() {
    let phase = |choice: &str, threads: u32, first: f64| {
        format!(
            "operations = {}\nthreads = {threads}\nchoice = \"{choice}\"\n\
             classes = [{{ weight = {first}, operation = \"read\" }}, {{ operation = \"write\" }}]",
            300 * threads
        )
    };
    for (threads, first) in [(1, 1.5), (4, 1.5), (1, 1.0), (1, 9.0), (1, 0.25)] {
        let seen = play("", &phase("ratio", threads, first));
        for worker in 0..threads {
            let own: Vec<_> = seen.iter().copied().filter(|r| r.worker == worker).collect();
            assert_eq!(letters(&own), ratio(first, 300), "{threads} threads, {first}");
        }
    }
    assert_eq!(&ratio(1.5, 10), "rwrwrrwrwr");
    // An interleave of the same weights is the same stream at sysbench's default, but not at any
    // ratio: it writes first when it owes half a write, sysbench once it would owe a whole one.
    let interleaved = |first: f64| letters(&play("", &phase("interleave", 1, first)));
    assert_eq!(interleaved(1.5), ratio(1.5, 300));
    assert_eq!(interleaved(9.0)[..20], *"rrrrrwrrrrrrrrrwrrrr");
    assert_eq!(ratio(9.0, 20), "rrrrrrrrwrrrrrrrrrwr");
}

#[test]
fn an_update_is_a_read_and_a_write_of_the_same_place_and_one_request_to_every_count() {
    for (threads, depth) in [(1, 1), (2, 1), (2, 3)] {
        let seen = play(
            "",
            &format!(
                "operation = \"update\"\naccess = {{ kind = \"sequential\", shared = true }}\n\
                 block_size = \"8KiB\"\nthreads = {threads}\nqueue_depth = {depth}\noperations = 50"
            ),
        );
        let (reads, writes): (Vec<Request>, Vec<Request>) =
            seen.iter().copied().partition(|r| r.op == Op::Read);
        let places: Vec<_> = reads.iter().map(|r| (r.offset, r.length)).collect();
        let wanted: Vec<_> = (0..50).map(|i| (i * 8 * K, 8192)).collect();
        assert_eq!(places, wanted, "{threads} x {depth}");
        for read in reads {
            let write = writes.iter().find(|w| w.offset == read.offset).expect("written back");
            assert_eq!((write.length, write.worker), (8192, read.worker));
            assert_eq!(write.start, read.end, "as soon as it was read");
        }
    }
}

#[test]
fn every_tenth_ticket_updates_and_is_flushed_alone() {
    let seen = play(
        "",
        "choice = \"shared\"\noperations = 40\nsync = \"fsync\"\n\
         classes = [{ weight = 9, operation = \"read\" }, { operation = \"update\" }]",
    );
    assert_eq!(letters(&seen), "rrrrrrrrrrwf".repeat(4));
}

#[test]
fn bytes_of_a_pair_count_once() {
    let seen = play(
        "",
        "operation = \"copy\"\naccess = \"sequential\"\nbytes = \"256KiB\"\nblock_size = \"64KiB\"\n\
         region = \"256KiB\"\ncopy_to = \"50%\"",
    );
    let seen: Vec<_> = seen.iter().map(|r| (r.op, r.offset / K, r.length)).collect();
    let (r, w) = (Op::Read, Op::Write);
    let l = 65536;
    let wanted = [
        (r, 0, l),
        (w, 512, l),
        (r, 64, l),
        (w, 576, l),
        (r, 128, l),
        (w, 640, l),
        (r, 192, l),
        (w, 704, l),
    ];
    assert_eq!(seen, wanted);
}

#[test]
fn a_copy_goes_from_file_to_file() {
    let seen = play(
        "file_count = 2",
        "operation = \"copy\"\naccess = \"sequential\"\nbytes = \"1MiB\"\nblock_size = \"256KiB\"\n\
         region = \"50%\"\ncopy_to = \"1MiB\"",
    );
    let places: Vec<_> = seen.iter().map(|r| (r.op, r.file, r.offset / K)).collect();
    let both = |at| [(Op::Read, 0, at), (Op::Write, 1, at)];
    let wanted: Vec<_> = [0, 256, 512, 768].into_iter().flat_map(both).collect();
    assert_eq!(places, wanted);
}

#[test]
fn a_pause_after_updates_counts_them_as_one() {
    let seen = play("", "operation = \"update\"\nburst = 2\nthink = \"1ms\"\noperations = 4");
    let starts: Vec<u64> = seen.iter().map(|r| r.start.get() / 1000).collect();
    assert_eq!(letters(&seen), "rwrwrwrw");
    assert_eq!(starts, [0, 100, 200, 300, 1400, 1500, 1600, 1700]);
}

#[test]
fn the_first_worker_to_finish_its_part_ends_the_stream() {
    let phase = |stop: &str| {
        format!(
            "operation = \"write\"\naccess = \"sequential\"\nspread = \"file-per-worker\"\n\
             threads = 4\nblock_size = \"64KiB\"\nbytes = \"4MiB\"\nstop = \"{stop}\""
        )
    };
    let seen = play("file_count = 4", &phase("first-worker"));
    for worker in 0..4 {
        let own: Vec<_> = seen.iter().filter(|r| r.worker == worker).collect();
        assert_eq!(own.len(), 16);
        assert!(own.iter().zip(0..).all(|(r, i)| r.file == worker && r.offset == i * 64 * K));
    }
    assert_eq!(play("file_count = 4", &phase("all")).len(), 64);
}

#[test]
fn others_stop_where_they_are_when_the_first_worker_is_done() {
    // Whoever draws a pause more often than the others falls behind.
    let text = |stop: &str| {
        format!(
            "threads = 3\noperations = 300\nqueue_depth = 2\nstop = \"{stop}\"\n\
             classes = [{{ operation = \"read\", burst = 3 }}, {{ weight = 0.05, operation = \
             \"write\", think = \"5ms\" }}]"
        )
    };
    let seen = play("", &text("first-worker"));
    let counts: Vec<usize> =
        (0..3).map(|worker| seen.iter().filter(|r| r.worker == worker).count()).collect();
    assert_eq!(counts.iter().max(), Some(&100), "{counts:?}");
    assert!(counts.iter().any(|&n| n < 100), "{counts:?}");
    // What was in flight is waited for: nothing is issued after the first was done.
    let first = (0..3).find(|&worker| counts[worker] == 100).unwrap() as u32;
    let done = seen.iter().filter(|r| r.worker == first).map(|r| r.end).max().unwrap();
    assert!(seen.iter().all(|r| r.start <= done));
    assert_eq!(play("", &text("all")).len(), 300);
}

#[test]
fn a_duty_issues_nothing_while_it_rests() {
    for (depth, threads) in [(1, 1), (4, 2)] {
        let seen = play(
            "",
            &format!(
                "operation = \"write\"\ntime = \"10ms\"\nqueue_depth = {depth}\nthreads = {threads}\n\
                 duty = {{ on = \"1050us\", off = \"2ms\" }}"
            ),
        );
        let cycle = 3_050_000;
        assert!(seen.iter().all(|r| r.start.get() % cycle < 1_050_000));
        for turn in 0..4 {
            let begin = turn * cycle;
            let of_turn = seen.iter().filter(|r| r.start.get() / cycle == turn);
            let starts: Vec<u64> = of_turn.map(|r| r.start.get() - begin).collect();
            // Eleven in a row of 100 us fit; the last turn is cut by the end.
            let each = if turn == 3 { 9 } else { 11 };
            assert_eq!(starts.len(), each * depth * threads, "turn {turn}");
            assert_eq!(starts[0], 0);
        }
    }
}

#[test]
fn a_short_last_request_ends_a_file_exactly() {
    let phase = |more: &str| {
        format!(
            "operation = \"write\"\naccess = \"sequential\"\ndirect = false\nblock_size = \"4KiB\"\n\
             last = \"short\"\n{more}"
        )
    };
    let places =
        |seen: &[Request]| -> Vec<_> { seen.iter().map(|r| (r.offset, r.length)).collect() };
    // The file ends in the middle of a block, and is written twice.
    let seen = play("file_count = 1", &phase("region = \"10000B\"\nbytes = 20000"));
    let pass = [(0, 4096), (4096, 4096), (8192, 1808)];
    assert_eq!(places(&seen), pass.repeat(2));
    // The total does.
    let seen = play("", &phase("bytes = 10000"));
    assert_eq!(places(&seen), pass);
    // Two workers, each with a file and a part of 5000.
    let more = "bytes = 10000\nthreads = 2\nspread = \"file-per-worker\"\nstop = \"first-worker\"";
    let seen = play("file_count = 2", &phase(more));
    for worker in 0..2 {
        let own: Vec<_> = seen.iter().copied().filter(|r| r.worker == worker).collect();
        assert_eq!(places(&own), [(0, 4096), (4096, 904)]);
    }
    // Deep queues: each byte once.
    let mut seen = places(&play("", &phase("bytes = 100000\nqueue_depth = 4")));
    seen.sort_unstable();
    assert_eq!(seen.iter().map(|(_, length)| u64::from(*length)).sum::<u64>(), 100_000);
    assert!(seen.windows(2).all(|pair| pair[0].0 + u64::from(pair[0].1) == pair[1].0));
}

#[test]
fn without_it_the_request_that_reaches_the_total_is_whole() {
    let phase = "operation = \"write\"\naccess = \"sequential\"\nbytes = 10000\nregion = \"12KiB\"";
    let seen = play("", phase);
    assert_eq!(offsets(&seen), [0, 4096, 8192]);
    assert!(seen.iter().all(|r| r.length == 4096));
}

#[test]
fn a_copy_can_end_short() {
    let seen = play(
        "file_count = 2",
        "operation = \"copy\"\naccess = \"sequential\"\ndirect = false\nblock_size = \"4KiB\"\n\
         last = \"short\"\nregion = \"10000B\"\ncopy_to = \"1MiB\"\nbytes = 10000",
    );
    let last: Vec<_> = seen.iter().rev().map(|r| (r.op, r.file, r.offset, r.length)).collect();
    assert_eq!(last[..2], [(Op::Write, 1, 8192, 1808), (Op::Read, 0, 8192, 1808)]);
}

#[test]
fn single_bytes_can_be_written_and_read() {
    let phase = |op: &str| {
        format!(
            "operation = \"{op}\"\naccess = \"sequential\"\ndirect = false\nblock_size = \"1B\"\n\
             operations = 3000"
        )
    };
    for op in ["write", "read"] {
        let seen = play("", &phase(op));
        assert!(seen.iter().zip(0..).all(|(r, i)| (r.offset, r.length) == (i, 1)), "{op}");
        assert_eq!(seen.len(), 3000);
    }
}

#[test]
fn stripes_take_turns() {
    // Three files of 1 MiB in stripes of 64 KiB.
    let at = |r: &Request| (u64::from(r.file), r.offset);
    let place = |linear: u64| {
        let stripe = linear / (64 * K);
        (stripe % 3, stripe / 3 * 64 * K + linear % (64 * K))
    };
    for block in [16u64, 64] {
        let n = 3 * 1024 / block;
        let seen = play(
            "file_count = 3",
            &format!(
                "access = \"sequential\"\nspread = {{ stripe = \"64KiB\" }}\noperations = {n}\n\
                 block_size = \"{block}KiB\""
            ),
        );
        let wanted: Vec<_> = (0..n).map(|i| place(i * block * K)).collect();
        assert_eq!(seen.iter().map(at).collect::<Vec<_>>(), wanted);
    }
    // Random requests reach every block of every file, and only those.
    let seen = play(
        "file_count = 3",
        "access = \"uniform-once\"\nspread = { stripe = \"64KiB\" }\noperations = 384\n\
         block_size = \"8KiB\"",
    );
    let mut places: Vec<_> = seen.iter().map(at).collect();
    places.sort_unstable();
    let wanted: Vec<_> = (0..3).flat_map(|file| (0..128).map(move |i| (file, i * 8 * K))).collect();
    assert_eq!(places, wanted);
    // What does not divide the stripe stays inside of it all the same.
    let seen = play(
        "file_count = 3",
        "spread = { stripe = \"64KiB\" }\noperations = 5000\nblock_size = \"24KiB\"\nalign = \"4KiB\"",
    );
    assert!(seen.iter().all(|r| r.offset % (64 * K) + 24 * K <= 64 * K));
    assert!(seen.iter().all(|r| r.offset % (4 * K) == 0));
}

#[test]
fn the_kernel_is_asked_to_copy_as_far_behind() {
    let head = "file_count = 2";
    let phase = "operation = \"copy-range\"\naccess = \"sequential\"\nblock_size = \"64KiB\"\n\
                 direct = false\nregion = \"50%\"\ncopy_to = \"50%\"\nbytes = \"1MiB\"\n\
                 sync = { every = 4, at_end = \"timed\" }";
    let seen = play(head, phase);
    assert_eq!(letters(&seen), format!("{}ff", "ccccf".repeat(4)), "both files at the end");
    let copies: Vec<_> = seen.iter().filter(|r| r.op == Op::CopyRange).collect();
    for (request, n) in copies.iter().zip(0u64..) {
        assert_eq!((request.file, request.offset, request.length), (0, n * 64 * K, 64 << 10));
        assert_eq!(request.to, Some((1, n * 64 * K)));
    }
    let flushed: Vec<u32> = seen.iter().filter(|r| r.op == Op::Fsync).map(|r| r.file).collect();
    assert_eq!(flushed, [1, 1, 1, 1, 0, 1], "what was written to");
    assert!(seen.iter().all(|r| (r.op == Op::CopyRange) == r.to.is_some()));
    // At random and deep, each with its own.
    let deep = "operation = \"copy-range\"\ndirect = false\nregion = \"512KiB\"\n\
                copy_to = \"512KiB\"\nqueue_depth = 8\nthreads = 2\noperations = 500";
    let seen = play("", deep);
    assert_eq!(seen.len(), 500);
    assert!(seen.iter().all(|r| r.to == Some((0, r.offset + 512 * K))));
}
