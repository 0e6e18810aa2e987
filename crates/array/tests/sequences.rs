//! Requests one after the other.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use array::{Addressing, Component, Load, Model, builtin};
use units::Bytes;

fn rate(
    name: &str,
    chunk: Option<&str>,
    read_share: f64,
    block: Bytes,
    depth: u32,
) -> (f64, Component) {
    let (_, text) = builtin::arrays().iter().find(|(own, _)| *own == name).unwrap();
    let mut text = (*text).to_owned();
    if let Some(chunk) = chunk {
        let old = text.lines().find(|line| line.starts_with("chunk")).unwrap().to_owned();
        text = text.replace(&old, &format!("chunk = \"{chunk}\""));
    }
    let design = array::ArrayDesign::parse(name, &text, builtin::part).unwrap();
    let access = Addressing::Sequential;
    let load = Load { read_share, access, depth, ..Load::random_reads(block, 1, Bytes::gib(20)) };
    let answer = Model::new(design).answer(&load).unwrap();
    (answer.rate, answer.binding)
}

#[test]
fn a_link_of_each_drive_carries_what_a_write_sends_there() {
    let block = Bytes::kib(128);
    let (one, _) = rate("nvme-alone", None, 0.0, block, 64);
    let (eight, _) = rate("nvme-raid10x8", None, 0.0, block, 64);
    assert!(eight > 3.0 * one, "{eight} of {one}");
    // More in a chunk is not more work.
    let [small, large] =
        ["16KiB", "1MiB"].map(|chunk| rate("nvme-raid10x8", Some(chunk), 0.0, block, 256).0);
    assert!((large / small - 1.0).abs() < 0.1, "{small} {large}");
}

/// The place of the next write has gone by when it comes, unless more of them wait already.
#[test]
fn writes_in_sequence_to_a_disk_take_a_turn_each() {
    let turns = 7200.0 / 60.0;
    let (alone, part) = rate("disk-raid10x8", None, 0.0, Bytes::kib(16), 1);
    assert!(part == Component::Drives && (0.9..1.0).contains(&(alone / turns)), "{alone}");
    let (many, _) = rate("disk-raid10x8", None, 0.0, Bytes::kib(256), 64);
    assert!(many > 15.0 * turns, "{many}");
}

/// Else the old data and parity are read for each.
#[test]
fn writes_in_sequence_are_full_stripes_where_enough_are_in_flight() {
    // Of 192 KiB.
    let [few, enough] =
        [2, 3].map(|depth| rate("nvme-raid5x4", None, 0.0, Bytes::kib(64), depth).0);
    assert!(enough > 3.0 * few, "{few} {enough}");
}

#[test]
fn a_quota_of_requests_counts_those_in_sequence() {
    let (rate, _) = rate("gp3-alone", None, 1.0, Bytes::kib(4), 64);
    assert!((2_900.0..3_100.0).contains(&rate), "{rate}");
}

/// Flash has no parity to pass over.
#[test]
fn flash_is_read_in_sequence_as_fast_as_at_random() {
    let (sequence, _) = rate("nvme-raid5x4", None, 1.0, Bytes::mib(1), 64);
    let load = Load { depth: 64, ..Load::random_reads(Bytes::mib(1), 1, Bytes::gib(20)) };
    let model = Model::new(builtin::design("nvme-raid5x4").unwrap());
    let random = model.answer(&load).unwrap().rate;
    assert!((sequence / random - 1.0).abs() < 0.05, "{sequence} {random}");
}

#[test]
fn a_thread_submits_on_one_core() {
    let model = Model::new(builtin::design("nvme-raid0x4").unwrap());
    let [one, four] = [1, 4].map(|threads| {
        let load = Load::random_reads(Bytes::kib(4), threads, Bytes::gib(20));
        model.answer(&Load { depth: 256 / threads, ..load }).unwrap()
    });
    assert!(one.binding == Component::Host && one.rate < 500_000.0, "{}", one.rate);
    assert!(four.rate > 2.0 * one.rate, "{}", four.rate);
}

#[test]
fn flash_takes_its_time_for_one_request_of_a_sequence_as_for_any() {
    let block = Bytes::kib(128);
    let (alone, part) = rate("nvme-alone", None, 1.0, block, 1);
    let (many, _) = rate("nvme-alone", None, 1.0, block, 64);
    assert!(part == Component::Drives && many > 2.0 * alone, "{alone} {many}");
}
