use finding::texts;
use record::{LedgerEntry, Run, TargetKind};

use super::*;
use crate::freeze::tests as planted;

const MS: u64 = 1_000_000;

/// (device, requests, ms in the queue) of each member of a visit.
type Shares<'a> = &'a [(&'a str, u64, u64)];

/// A run of visits of 10 s on an array, each with these counters of its members.
fn run(visits: usize, shares: Shares<'_>) -> Run {
    let visit = |order: usize| {
        let mut visit = planted::visit(order as u32, "read", &[]);
        visit.ledger = vec![entry("md0", 0, 1000, 0)];
        visit.ledger.extend(shares.iter().map(|&(name, reads, ms)| entry(name, 1, reads, ms)));
        visit
    };
    planted::run(TargetKind::BlockDevice, (0..visits).map(visit).collect())
}

fn entry(device: &str, depth: u32, reads: u64, queue_ms: u64) -> LedgerEntry {
    LedgerEntry { device: device.to_owned(), depth, reads, queue_ms, ..LedgerEntry::default() }
}

fn standings(visits: usize, shares: Shares<'_>) -> Vec<Standing> {
    let run = run(visits, shares);
    let found = members(&View::new(&run));
    let layer = found.layers.first();
    layer.into_iter().flat_map(|layer| &layer.devices).map(|member| member.standing).collect()
}

#[test]
fn the_slow_member_is_named() {
    let shares = [("sda", 1000, 10_000), ("sdb", 1000, 70_000), ("sdc", 990, 11_000)];
    let run = run(6, &shares);
    let found = members(&View::new(&run));
    let slow = found.layers[0].slow();
    assert_eq!(slow.len(), 1);
    assert_eq!((slow[0].device.as_str(), slow[0].time_ns, slow[0].slower_in), ("sdb", 70 * MS, 6));
    let said = texts(&found.findings()).join("\n");
    assert!(said.starts_with("`sdb` is slower than its siblings: a request takes 70"), "{said}");
}

#[test]
fn alike_members_are_not_blamed() {
    use Standing::Alike;
    let shares = [("sda", 1000, 20_000), ("sdb", 1020, 25_000), ("sdc", 990, 19_000)];
    assert_eq!(standings(6, &shares), [Alike, Alike, Alike]);
}

#[test]
fn who_has_more_to_do_is_busier_and_not_slow() {
    use Standing::{Alike, Busier};
    let shares = [("sda", 3000, 90_000), ("sdb", 1000, 10_000), ("sdc", 1000, 11_000)];
    assert_eq!(standings(6, &shares), [Busier, Alike, Alike]);
}

#[test]
fn few_visits_and_few_requests_say_nothing() {
    use Standing::Unknown;
    let shares = [("sda", 1000, 10_000), ("sdb", 1000, 70_000)];
    assert_eq!(standings(3, &shares), [Unknown, Unknown]);
    assert_eq!(standings(6, &[("sda", 5, 50), ("sdb", 5, 500)]), [Unknown, Unknown]);
    assert_eq!(standings(6, &[("sda", 1000, 70_000)]), []);
    assert_eq!(standings(6, &[("sda", 0, 0), ("sdb", 0, u64::MAX / 100)]), [Unknown, Unknown]);
}

#[test]
fn targets_beside_each_other_are_no_members() {
    let mut run = run(6, &[]);
    for visit in &mut run.visits {
        visit.ledger = vec![entry("sda", 0, 1000, 10_000), entry("sdb", 0, 1000, 70_000)];
    }
    assert_eq!(members(&View::new(&run)).layers.len(), 1);
    run.header.target.files = 2;
    assert_eq!(members(&View::new(&run)), Members::default());
}

#[test]
fn what_a_write_costs_the_members_is_counted() {
    let mut run = run(6, &[("sda", 0, 0), ("sdb", 0, 0)]);
    run.cells.remove(0);
    run.cells[0].streams[0].op = "write".to_owned();
    for visit in &mut run.visits {
        visit.cell = run.cells[0].index;
        for entry in &mut visit.ledger {
            entry.write_bytes = 4096;
            entry.read_bytes = if entry.depth == 0 { 0 } else { 4096 };
        }
    }
    let found = members(&View::new(&run));
    assert_eq!(found.writes.len(), 1);
    assert_eq!((found.writes[0].read_per_written, found.writes[0].written_per_written), (2.0, 2.0));
    let said = texts(&found.findings()).join("\n");
    assert!(said.contains("they read x2.00 and write x2.00"), "{said}");
    for entry in run.visits.iter_mut().flat_map(|visit| &mut visit.ledger) {
        entry.read_bytes = 0;
    }
    let found = members(&View::new(&run));
    assert!(texts(&found.findings()).iter().all(|text| !text.contains("read first")));
}
