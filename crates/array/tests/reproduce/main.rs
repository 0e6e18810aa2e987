//! What five studies published, against what the model says: every claim has a row in
//! docs/reproduce.md, which is made here.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "the table is for those who ask with --nocapture")]

mod claim;
mod document;
mod figures;
mod tables;
mod verdicts;

use claim::{Claim, Role};

/// All, by their number.
fn claims() -> Vec<Claim> {
    let mut all = [tables::claims(), verdicts::claims(), figures::claims()].concat();
    all.sort_by_key(|claim| claim.id[1..].parse::<u32>().unwrap());
    all
}

/// A miss that is met is no miss any more: then the list is wrong.
#[test]
fn claims_are_met_or_known_to_be_missed() {
    let all = claims();
    let faults = all.iter().filter(|claim| claim.is_met == claim.miss.is_some());
    let faults: Vec<_> = faults.map(Claim::row).collect();
    assert!(faults.is_empty(), "not met, or listed as missed and met:\n{}", faults.join("\n"));
    for number in 1..=23 {
        assert!(all.iter().any(|claim| claim.id == format!("R{number}")), "R{number} has no row");
    }
}

#[test]
fn held_out_figures_are_the_greater_part() {
    let count = |role| claims().iter().filter(|claim| claim.is_met && claim.role == role).count();
    let (fitted, held_out) = (count(Role::Fitted), count(Role::HeldOut));
    assert!(held_out >= 2 * fitted, "{held_out} and {fitted}");
}

#[test]
fn the_committed_document_is_the_current_one() {
    const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduce.md");
    let current = document::text(&claims());
    if std::env::var_os("PLIMSOLL_WRITE_REPRODUCE").is_some() {
        std::fs::write(COMMITTED, &current).unwrap();
    }
    let table = current.lines().filter(|line| line.starts_with("| "));
    println!("{}", document::aligned(&table.take(claims().len() + 1).collect::<Vec<_>>()));
    assert!(
        std::fs::read_to_string(COMMITTED).is_ok_and(|committed| committed == current),
        "docs/reproduce.md is stale: PLIMSOLL_WRITE_REPRODUCE=1 make reproduce writes it"
    );
    println!("docs/reproduce.md is current");
}
