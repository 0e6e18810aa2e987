//! What each level asks of its drives, against what is worked out by hand.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use array::{Addressing, Answer, ArrayDesign, Component, Load, Model, builtin};
use units::Bytes;

/// All over Savvio 15K.2: seek, half a turn, electronics, and 4 KiB at 140 MB/s; in seconds.
const READ: f64 = 2.9e-3 + 2e-3 + 0.1e-3 + 4096.0 / 140e6;
const WRITE: f64 = 3.3e-3 + 2e-3 + 0.1e-3 + 4096.0 / 140e6;

fn answer(level: &str, members: u32, controller: &str, load: &Load) -> Answer {
    let chunk = if level == "raid1" { "" } else { "chunk = \"64KiB\"" };
    let text = format!(
        r#"
        schema = 1
        why = "a test"
        host = "xeon-2008"
        link = "sas-6g-x4"
        controller = "{controller}"
        level = "{level}"
        members = {members}
        {chunk}
        drive = "savvio-15k2"
        "#
    );
    let design = ArrayDesign::parse("test", &text, builtin::part).unwrap();
    Model::new(design).answer(load).unwrap()
}

#[test]
fn random_writes_cost_what_the_level_asks() {
    // Reads and writes of members for one write: layout's tests have the reasons.
    let cases = [
        ("raid0", 8, 0.0, 1.0),
        ("raid1", 2, 0.0, 2.0),
        ("raid10", 8, 0.0, 2.0),
        ("raid5", 8, 2.0, 2.0),
        ("raid6", 8, 3.0, 3.0),
    ];
    for (level, members, reads, writes) in cases {
        let reads_only = Load::random_reads(Bytes::kib(4), 64, Bytes::gib(2000));
        let load = Load { read_share: 0.0, ..reads_only };
        let answer = answer(level, members, "perc-h800", &load);
        let wanted = f64::from(members) / (reads * READ + writes * WRITE);
        assert!((answer.rate / wanted - 1.0).abs() < 1e-3, "{level}: {}, {wanted}", answer.rate);
        assert_eq!(answer.binding, Component::Drives, "{level}");
        // Threads change nothing: the cache answers, and the drives come after.
        assert_eq!(
            self::answer(level, members, "perc-h800", &Load { threads: 8, ..load }).rate,
            answer.rate
        );
    }
}

#[test]
fn one_writer_without_a_cache_waits_for_both_rounds_of_raid5() {
    let load = Load { read_share: 0.0, ..Load::random_reads(Bytes::kib(4), 1, Bytes::gib(2000)) };
    let one = answer("raid5", 8, "sas-6ir", &load);
    let drives = one.parts.iter().find(|part| part.component == Component::Drives).unwrap();
    assert!((drives.time.as_secs_f64() / (READ + WRITE) - 1.0).abs() < 1e-3, "{drives:?}");
    // Two of eight drives are at work for it, less than all the time.
    assert!(drives.busy < 2.0 / 8.0 && drives.busy > 0.23, "{drives:?}");
}

#[test]
fn copies_serve_reads_and_parity_does_not_in_sequence() {
    let random = Load::random_reads(Bytes::kib(4), 256, Bytes::gib(2000));
    let sequence = Load {
        access: Addressing::Sequential,
        block: Bytes::kib(256),
        depth: 8,
        threads: 1,
        ..random
    };
    // Members at work for random reads, and for one sequence of them.
    for (level, streams) in [("raid0", 8.0), ("raid10", 4.0), ("raid5", 7.0), ("raid6", 6.0)] {
        let busy = answer(level, 8, "sas-6ir", &random).rate;
        let all = answer("raid0", 8, "sas-6ir", &random).rate;
        assert_eq!(busy, all, "{level}");
        let found = answer(level, 8, "sas-6ir", &sequence).bandwidth.0.get() as f64;
        assert!((found / (streams * 140e6) - 1.0).abs() < 1e-3, "{level}: {found}");
    }
}

/// Four requests, two pairs of drives: whichever drive of a pair is free reads, so fewer wait than
/// at four drives of which one has the block.
#[test]
fn a_mirror_reads_from_the_copy_that_is_free() {
    let design = |level: &str| {
        let array = format!(
            "schema = 1\nwhy = \"t\"\nhost = \"linux-6\"\nlink = \"pcie4-x4\"\nlink-per = \"drive\"\n\
            controller = \"ports\"\nlevel = \"{level}\"\nmembers = 4\nchunk = \"64KiB\"\ndrive = \"mtron-7535\"\n"
        );
        ArrayDesign::parse("t.toml", &array, builtin::part).unwrap()
    };
    let rate = |level: &str, threads| {
        let load = Load::random_reads(Bytes::kib(4), threads, Bytes::gib(4));
        Model::new(design(level)).answer(&load).unwrap().rate
    };
    assert!(rate("raid10", 4) > 1.1 * rate("raid0", 4));
    for threads in [1, 256] {
        assert!((rate("raid10", threads) / rate("raid0", threads) - 1.0).abs() < 0.01);
    }
}
