//! What is imported has the phases and axes of our suite of the same method, so that `compare`
//! finds its cells in runs of ours.

use std::collections::BTreeSet;

use record::Run;
use suite::{CheckContext, model::Suite};

use super::import;

/// Suite, sample, and phases that are none of the suite's; its fill is none.
const ALIKE: [(&str, &str, &[&str]); 23] = [
    ("bm-flash", "bm-flash-raid5-4.txt", &["fill"]),
    ("bm-flash", "bm-flash-raid0-12.txt", &["fill"]),
    ("bonnie", "bonnie-1.03.csv", &[]),
    ("bonnie", "bonnie-1.03.txt", &[]),
    ("bonnie", "bonnie-1.96-h800.txt", &[]),
    ("bonnie", "bonnie-1.96.csv", &[]),
    ("bonnie", "bonnie-2.00.csv", &[]),
    ("bonnie", "bonnie-2.00.table.txt", &[]),
    ("bonnie", "bonnie-2.00-fast.txt", &[]),
    ("bonnie", "bonnie-2.00-files.txt", &[]),
    ("ioping", "ioping-1.3.txt", &[]),
    ("ioping", "ioping-1.3-seek-rate.txt", &[]),
    ("ioping", "ioping-1.3-batch.txt", &[]),
    ("iometer-database", "iometer.csv", &[]),
    ("iozone", "iozone-auto.txt", &[]),
    ("iozone", "iozone-some.txt", &[]),
    ("orion-simple", "orion-simple-summary.txt", &[]),
    ("orion-oltp", "orion-oltp-summary.txt", &[]),
    // pg_test_fsync flushes through another descriptor, to see whether that counts.
    (
        "pg-test-fsync",
        "pg_test_fsync-15.txt",
        &["other-descriptor", "one-fsync-writethrough", "two-fsync-writethrough"],
    ),
    ("sysbench-rndrd", "sysbench-1.0.20-fileio-rndrd.txt", &[]),
    ("sysbench-rndrw", "sysbench-0.4-fileio-rndrw.txt", &[]),
    ("sysbench-seqwr", "sysbench-1.0.20-fileio-seqwr.txt", &[]),
    ("xdd", "xdd.txt", &[]),
];

fn builtin(name: &str) -> Suite {
    let found = suite::find_builtin(name).unwrap_or_else(|| panic!("{name}"));
    let suite::Found::Suite(source) = suite::read(found.text, found.file).unwrap() else {
        panic!("{name} is a list")
    };
    suite::check(&source, &CheckContext::default()).unwrap()
}

type Place = (String, Vec<(String, String)>);

fn places(suite: &Suite) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for phase in &suite.phases {
        for cell in &phase.cells {
            let axes = phase.axes.iter().zip(&cell.coordinates);
            let at = axes.map(|(axis, &k)| (axis.field.clone(), axis.values[k].clone()));
            places.insert((phase.name.clone(), at.collect()));
        }
    }
    places
}

fn streams(suite: &Suite, phase: &str) -> usize {
    let phase = suite.phases.iter().find(|p| p.name == phase).unwrap();
    phase.cells.iter().map(|cell| cell.streams.len()).max().unwrap()
}

#[test]
fn cells_are_those_of_our_suite() {
    for (name, sample, others) in ALIKE {
        let suite = builtin(name);
        let ours = places(&suite);
        let runs: Vec<Run> = import(sample);
        let mut common = 0;
        for run in &runs {
            assert_eq!(run.header.suite, name, "{sample}");
            for cell in &run.cells {
                let place = (cell.phase.clone(), cell.coordinates.clone());
                if others.contains(&cell.phase.as_str()) {
                    continue;
                }
                assert!(ours.contains(&place), "{sample}: {place:?} is not in {name}");
                assert_eq!(cell.streams.len(), streams(&suite, &cell.phase), "{sample}");
                common += 1;
            }
        }
        assert!(common > 0, "{sample}");
    }
}
