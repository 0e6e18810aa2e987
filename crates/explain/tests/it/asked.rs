//! Cells are matched, and plans held against each other, by what is in force and not by how it
//! was said.

use explain::compare::{Comparison, Terms, compare};
use explain::differ::differences;
use explain::factor::from_views;
use explain::view::View;
use finding::Code;
use record::{CellRecord, Imported, Run, StreamPlan};
use suite::model::Stream;
use suite::{CheckContext, check, parse, resolved_text};

use crate::published::{RAID0, run};

fn plan(stream: &Stream) -> StreamPlan {
    StreamPlan {
        name: stream.name.clone(),
        op: stream.mix.classes[0].op.name().to_owned(),
        block_bytes: stream.mix.block_size().map(units::Bytes::get),
        threads: stream.threads,
        queue_depth: stream.queue_depth,
    }
}

/// A run of a suite of one phase `p`, a visit to each cell.
fn played(id: &str, phase: &str, sets: &[&str]) -> Run {
    let text =
        format!("schema = 1\nname = \"t\"\n[[phase]]\nname = \"p\"\ntime = \"1s\"\n{phase}\n");
    let mut source = parse(&text, "t.toml").unwrap();
    sets.iter().for_each(|set| source.set(set).unwrap());
    let suite = check(&source, &CheckContext::default()).unwrap();
    let mut found = run(id, RAID0);
    let visit = found.visits[0].clone();
    found.header.suite = suite.name.clone();
    found.header.suite_text = resolved_text(&source).unwrap();
    found.cells.clear();
    found.visits.clear();
    for phase in &suite.phases {
        for cell in &phase.cells {
            let index = found.cells.len() as u32;
            let axes = phase.axes.iter().zip(&cell.coordinates);
            let place = axes.map(|(axis, &at)| (axis.field.clone(), axis.values[at].clone()));
            let streams = cell.streams.iter().map(plan).collect();
            found.cells.push(CellRecord {
                index,
                phase: phase.name.clone(),
                coordinates: place.collect(),
                streams,
                impossible: None,
            });
            let streams = cell.streams.iter().map(|_| visit.streams[0].clone()).collect();
            found.visits.push(record::VisitRecord { cell: index, streams, ..visit.clone() });
        }
    }
    found
}

fn compared(a: &Run, b: &Run) -> Comparison {
    compare(&[View::new(a), View::new(b)], &Terms::default())
}

fn factors(a: &Run, b: &Run) -> Vec<String> {
    let found = differences(a, b).factors.into_iter();
    found.map(|f| format!("{} {} {}", f.name, f.left, f.right)).collect()
}

const STREAMS: &str = "[[phase.stream]]\nname = \"log\"\noperation = \"write\"\n\
                       [[phase.stream]]\nname = \"reads\"\nqueue_depth = 8\n";

#[test]
fn a_value_of_an_axis_and_the_same_value_set_are_one_place() {
    let grid = "[phase.grid]\nlog.queue_depth = [1, 4]\nlog.block_size = [\"4K\", \"8K\"]\n";
    let (a, b) = (
        played("r1", &format!("{grid}{STREAMS}"), &[]),
        played("r2", STREAMS, &["log.queue_depth=4", "log.block_size=8K"]),
    );
    for (a, b) in [(&a, &b), (&b, &a)] {
        let seen = &compared(a, b).against[0];
        assert_eq!(factors(a, b), [""; 0]);
        assert_eq!(seen.cells.len(), 2, "a row for each stream: {seen:#?}");
        assert!(seen.cells[0].same_load);
        assert_eq!(seen.only_reference.len() + seen.only_other.len(), 3);
    }
    // An axis of one value is that value.
    let b = played("r2", &format!("[phase.grid]\nlog.queue_depth = [4]\n{STREAMS}"), &[]);
    let c = played("r3", STREAMS, &["log.queue_depth=4"]);
    assert_eq!(factors(&b, &c), [""; 0]);
    assert_eq!(compared(&b, &c).against[0].cells.len(), 2);
    // One of another value is another load in the same place.
    let c = played("r3", STREAMS, &["log.queue_depth=2"]);
    assert_eq!(factors(&b, &c), ["phase.p.stream.log.queue_depth 4 2"]);
    assert_eq!(compared(&b, &c).against[0].cells.len(), 2);
    // All streams or one: what is in force counts.
    let all = played("r4", &format!("[phase.grid]\nlog.queue_depth = [1, 8]\n{STREAMS}"), &[]);
    let one = played("r5", STREAMS, &["queue_depth=8"]);
    assert_eq!(factors(&all, &one), [""; 0]);
    assert_eq!(compared(&all, &one).against[0].cells.len(), 2);
    // A value that the axis does not have is in no cell of it.
    let none = played("r5", STREAMS, &["log.queue_depth=3"]);
    assert_eq!(compared(&all, &none).against[0].cells.len(), 0);
}

#[test]
fn axes_of_two_streams_over_one_field_are_two() {
    let grid = "[phase.grid]\nlog.queue_depth = [1, 4]\nreads.queue_depth = [2, 8]\n";
    let both = played("r1", &format!("{grid}{STREAMS}"), &[]);
    let one = played("r2", STREAMS, &["log.queue_depth=4", "reads.queue_depth=2"]);
    assert_eq!(factors(&both, &one), [""; 0]);
    assert_eq!(compared(&both, &one).against[0].cells.len(), 2);
}

#[test]
fn streams_that_differ_in_a_field_are_at_no_place_of_its_axis() {
    let plain = STREAMS.replace("queue_depth = 8\n", "");
    let all = played("r1", &format!("[phase.grid]\nqueue_depth = [1, 8]\n{plain}"), &[]);
    assert_eq!(compared(&all, &played("r2", &plain, &[])).against[0].cells.len(), 2);
    assert_eq!(compared(&all, &played("r2", STREAMS, &[])).against[0].cells.len(), 0);
}

#[test]
fn an_imported_cell_is_where_its_file_says() {
    let of = |id, size: &str| {
        let mut found = fio(id, job("x", 4096, 1), &[("rw", "read")]);
        found.cells[0].coordinates = vec![("file_size".to_owned(), size.to_owned())];
        found
    };
    let rows = |size| compared(&of("r1", "1GiB"), &of("r2", size)).against[0].cells.len();
    assert_eq!((rows("1GiB"), rows("2GiB")), (1, 0));
}

#[test]
fn ends_of_a_share_of_reads_are_operations() {
    let mix = played("r1", "[phase.grid]\nread_share = [1, 0.5, 0]\n", &[]);
    for (id, set) in [("r2", "operation=read"), ("r3", "operation=write"), ("r4", "read_share=0.5")]
    {
        let one = played(id, "", &[set]);
        assert_eq!(factors(&mix, &one), [""; 0], "{set}");
        assert_eq!(compared(&mix, &one).against[0].cells.len(), 1, "{set}");
    }
}

#[test]
fn cells_of_other_streams_are_other_cells() {
    let of =
        |id, names: &str| played(id, &format!("[phase.grid]\nstreams = [{names}]\n{STREAMS}"), &[]);
    let (log, reads) = (of("r1", "\"log\""), of("r2", "\"reads\""));
    assert_eq!(compared(&log, &reads).against[0].cells.len(), 0);
    let (both, plain) = (of("r3", "\"log\", \"all\""), played("r4", STREAMS, &[]));
    assert_eq!(compared(&both, &plain).against[0].cells.len(), 2);
}

#[test]
fn what_changes_nothing_is_no_difference() {
    let classes = "classes = [{ operation = \"read\", block_size = \"8K\" }, { operation = \
                   \"read\", block_size = \"16K\" }]\n";
    let plain = played("r1", classes, &[]);
    let sized = played("r2", &format!("{classes}block_size = \"16K\"\nburst = 4\n"), &[]);
    assert_ne!(plain.header.suite_text, sized.header.suite_text);
    assert_eq!(factors(&plain, &sized), [""; 0]);
    assert_eq!(factors(&plain, &played("r3", classes, &["threads=2"])), ["phase.p.threads 1 2"]);
    // By one option two fields of rounds and one of the stream are set: it is one thing.
    let mut longer = plain.clone();
    let text = longer.header.suite_text.replace("visit_time = \"2s\"", "visit_time = \"500ms\"");
    longer.header.suite_text = text;
    assert_eq!(factors(&plain, &longer), ["phase.p.time 1s 500ms"]);
    let precise = plain.header.suite_text.replace("precision = 0.05", "precision = 0.01");
    let precise = Run {
        header: record::RunHeader { suite_text: precise, ..plain.header.clone() },
        ..plain.clone()
    };
    assert_eq!(factors(&plain, &precise), [""; 0], "how often is no factor");
}

#[test]
fn several_runs_have_those_cells_in_common_that_are_one_place() {
    let runs = [
        played("r1", "[phase.grid]\nqueue_depth = [1, 4]\n", &[]),
        played("r2", "", &["queue_depth=4"]),
        played("r3", "[phase.grid]\nqueue_depth = [2, 4]\n", &[]),
    ];
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    assert_eq!(from_views(&views.iter().collect::<Vec<_>>(), &[]).len(), 3);
}

/// A run of fio of one job.
fn fio(id: &str, plan: StreamPlan, settings: &[(&str, &str)]) -> Run {
    let mut found = played(id, "", &[]);
    found.header.suite = "fio".to_owned();
    found.header.suite_text = String::new();
    found.header.imported = Some(Imported {
        tool: "fio".to_owned(),
        version: None,
        file: "x.json".to_owned(),
        bytes: 1,
        xxh3: String::new(),
        settings: settings.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect(),
        remarks: Vec::new(),
    });
    found.cells[0].phase.clone_from(&plan.name);
    found.cells[0].streams = vec![plan];
    found
}

fn job(name: &str, block: u64, depth: u32) -> StreamPlan {
    let (name, op) = (name.to_owned(), "read".to_owned());
    StreamPlan { name, op, block_bytes: Some(block), threads: 1, queue_depth: depth }
}

#[test]
fn imported_runs_tell_their_loads() {
    let a =
        fio("r1", job("x", 4096, 1), &[("rw", "randread"), ("bs", "4k"), ("ioengine", "psync")]);
    let b =
        fio("r2", job("x", 8192, 4), &[("rw", "read"), ("iodepth", "4"), ("ioengine", "libaio")]);
    let wanted = [
        "access random sequential",
        "block_size 4KiB 8KiB",
        "ioengine psync libaio",
        "queue_depth 1 4",
    ];
    assert_eq!(factors(&a, &b), wanted);
    let codes: Vec<Code> = differences(&a, &b).findings().iter().map(|one| one.code).collect();
    assert_eq!(codes, [Code::SeveralThingsDiffer, Code::RunsImported, Code::PlansDiffer]);
    // Jobs of other names are held against each other all the same.
    let mut other = b.clone();
    other.cells[0].phase = "y".to_owned();
    other.cells[0].streams[0].name = "y".to_owned();
    assert_eq!(factors(&a, &other), wanted);
    // What one of them does not tell is no difference.
    let mut silent = b.clone();
    silent.cells[0].streams[0].queue_depth = 0;
    silent.cells[0].streams[0].block_bytes = None;
    silent.header.imported.as_mut().unwrap().settings.clear();
    assert_eq!(factors(&a, &silent), [""; 0]);
    assert_eq!(differences(&a, &silent).findings()[0].code, Code::NothingSharedDiffers);
}

#[test]
fn an_imported_run_and_one_of_ours_tell_their_loads() {
    let theirs = fio("r1", job("x", 4096, 1), &[("rw", "read")]);
    let ours = played("r2", "", &["queue_depth=8"]);
    let found = factors(&theirs, &ours);
    assert!(found.contains(&"queue_depth 1 8".to_owned()), "{found:?}");
    assert!(found.contains(&"access sequential random".to_owned()), "{found:?}");
    assert!(!found.iter().any(|f| f.starts_with("block_size")), "{found:?}");
}

#[test]
fn a_phase_that_one_lacks_is_a_difference() {
    let a = played("r1", "[phase.grid]\nqueue_depth = [1, 4]\n", &[]);
    let mut b = a.clone();
    b.header.id = "r2".to_owned();
    assert!(differences(&a, &b).is_none());
    let mut other = b.cells[0].clone();
    (other.index, other.phase) = (7, "q".to_owned());
    b.cells.push(other);
    assert_eq!(factors(&a, &b), ["phases that one lacks none q"]);
    assert!(!differences(&a, &b).sentences().join(" ").contains("A/A"));
}

#[test]
fn what_was_imported_and_a_run_of_ours_name_their_targets() {
    let mut theirs = fio("r1", job("x", 4096, 1), &[("rw", "randread")]);
    let mut ours = played("r2", "", &[]);
    (theirs.header.target.kind, ours.header.target.kind) =
        (record::TargetKind::Unknown, record::TargetKind::Twin);
    theirs.header.target.devices.clear();
    ours.header.target.devices.clear();
    theirs.header.target.resolved = "/data/a".to_owned();
    ours.header.target.resolved = "model:disk".to_owned();
    let found = factors(&theirs, &ours);
    assert!(found.contains(&"target /data/a model:disk".to_owned()), "{found:?}");
}

#[test]
fn a_side_of_a_comparison_has_the_interval_of_its_own_run() {
    let noisy = |id: &str, phase: &str| {
        let mut found = played(id, phase, &[]);
        let all = found.visits.clone();
        for repeat in 1..4u32 {
            for (cell, visit) in (0u64..).zip(&all) {
                let mut visit = record::VisitRecord { repeat, ..visit.clone() };
                visit.order = repeat * 10 + visit.cell;
                visit.elapsed_ns += u64::from(repeat) * (cell + 1) * visit.elapsed_ns / 10;
                found.visits.push(visit);
            }
        }
        found
    };
    // The cells that only one has lend their noise to that run's own intervals.
    let a = noisy("r1", "[phase.grid]\nqueue_depth = [1, 2, 4, 8, 16]\n");
    let b = noisy("r2", "[phase.grid]\nqueue_depth = [1, 2]\n");
    let found = compared(&a, &b);
    let view = View::new(&a);
    let own = explain::interval::cells(&view);
    let rows = &found.against[0].cells;
    assert_eq!(rows.len(), 2);
    for (row, own) in rows.iter().zip(own) {
        let own = own.unwrap();
        let ends = (row.reference.low.unwrap(), row.reference.high.unwrap());
        assert!((ends.0 / own.low - 1.0).abs() < 1e-9, "{ends:?} {own:?}");
        assert!((ends.1 / own.high - 1.0).abs() < 1e-9, "{ends:?} {own:?}");
    }
}
