//! Gaps and barriers of the published grids.

use explain::View;
use explain::gap::{self, FlaggedCell, Gaps, Kind, Suspect};

use crate::published::{RAID0, RAID5, run};

fn gaps_of(listing: &str) -> Gaps {
    gap::gaps(&View::new(&run("r1", listing)))
}

/// `read 512 1` of the flagged cells, with the ratio in thousandths; -1 for one without a value.
fn flags(gaps: &Gaps) -> Vec<(String, i64)> {
    let name = |c: &FlaggedCell| {
        let ratio = if c.missing { -1 } else { (c.ratio * 1000.0).round() as i64 };
        (format!("{} {} {}", c.op, c.block_bytes, c.threads), ratio)
    };
    gaps.flagged.iter().map(name).collect()
}

#[test]
fn raid0_has_its_first_cell_flagged_and_nothing_else() {
    let gaps = gaps_of(RAID0);
    assert_eq!(flags(&gaps), [("read 512 1".to_owned(), 388)]);
    assert_eq!(gaps.judged, 84);
    assert!(gaps.regions.is_empty());
    let [event] = gaps.events.as_slice() else { panic!("{:?}", gaps.events) };
    assert!(event.first_of_run && !event.confirmed);
    assert!(
        matches!(event.suspect, Some(Suspect::FlushAfterFill { agrees: true, .. })),
        "{:?}",
        event.suspect
    );
}

#[test]
fn raid5_has_two_reads_eight_writes_and_the_four_blanks() {
    let gaps = gaps_of(RAID5);
    let seen = flags(&gaps);
    assert_eq!(seen[..2], [("read 512 1".to_owned(), 1), ("read 512 10".to_owned(), 439)]);
    let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "read 512 1",
            "read 512 10",
            "write 65536 1",
            "write 65536 10",
            "write 65536 40",
            "write 131072 10",
            "write 131072 40",
            "write 262144 10",
            "write 262144 40",
            "write 524288 1",
            "write 524288 10",
            "write 524288 40",
            "write 1048576 10",
            "write 1048576 40",
        ]
    );
    assert_eq!(seen.iter().filter(|(_, ratio)| *ratio == -1).count(), 4);
    let [event] = gaps.events.as_slice() else { panic!("{:?}", gaps.events) };
    assert_eq!(event.visits.len(), 2);
    assert!(matches!(event.suspect, Some(Suspect::FlushAfterFill { agrees: true, .. })));
    assert!(gaps.regions.iter().all(|region| region.kind == Kind::Unconfirmed));
    assert!(matches!(gaps.regions[0].suspect, Some(Suspect::FullWriteCache { .. })));
}

#[test]
fn the_gaps_in_words() {
    insta::assert_snapshot!("gaps_raid0", gaps_of(RAID0).sentences().join("\n"));
    insta::assert_snapshot!("gaps_raid5", gaps_of(RAID5).sentences().join("\n"));
}
