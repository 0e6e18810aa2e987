//! What goes wrong below is named, stored as it was, and ends what it must end and nothing else.

use std::path::PathBuf;

use record::{Run, RunState, VisitEnd};
use runner::{Event, Interrupt, Outcome};

use crate::help::{Place, go, go_with, order};

const MODEL: &str = r#"
schema = 1
name = "broken"
[model]
size = "1GiB"
[model.read]
iops = 100000
bandwidth = "1GiB"
latency = "100us"
"#;

fn model(place: &Place, faults: &str) -> PathBuf {
    let path = place.join("broken.toml");
    std::fs::write(&path, format!("{MODEL}{faults}")).unwrap();
    path
}

/// Three cells of random reads on a model with these faults.
fn reads(name: &str, faults: &str) -> (Outcome, Run) {
    let place = Place::new(name);
    let target = format!("model:{}", model(&place, faults).display());
    let sets = ["queue_depth=1,2,4", "time=2s", "file_size=1GiB"];
    go(&place, &order(&place, "random-read", &target, &sets)).unwrap()
}

fn texts(run: &Run, code: &str) -> Vec<String> {
    let warnings = run.visits.iter().flat_map(|v| &v.warnings).chain(&run.header.warnings);
    warnings.filter(|w| w.code == code).map(|w| w.text.clone()).collect()
}

#[test]
fn one_error_fails_its_visit_and_no_other() {
    let (outcome, run) =
        reads("eio", "[[fault]]\nwhat = { error = \"EIO\" }\nops = [\"read\"]\nnth = 500\n");
    assert_eq!((outcome.state, outcome.failed_visits), (RunState::Complete, 1));
    let ends: Vec<VisitEnd> = run.visits.iter().map(|v| v.end).collect();
    assert_eq!(ends, [VisitEnd::Failed, VisitEnd::Complete, VisitEnd::Complete]);
    let failed = &run.visits[0].streams[0].ops[0];
    assert_eq!((failed.requests, failed.errors.clone()), (499, vec![(5, 1)]));
    let said = texts(&run, "io-error");
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("EIO") && said[0].contains("read of 4096 bytes at byte"), "{said:?}");
}

#[test]
fn errors_that_are_tolerated_are_counted_and_do_not_end_the_visit() {
    let place = Place::new("tolerate");
    let rule = "[[fault]]\nwhat = { error = \"EIO\" }\nrate = 0.01\n";
    let target = format!("model:{}", model(&place, rule).display());
    let mut order = order(&place, "random-read", &target, &["operations=1000", "file_size=1GiB"]);
    order.settings.failures = 1000;
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!((outcome.state, outcome.failed_visits), (RunState::Complete, 0));
    assert_eq!(run.visits[0].end, VisitEnd::Complete);
    let op = &run.visits[0].streams[0].ops[0];
    assert!(op.errors_total() > 0);
    assert_eq!(op.requests + op.errors_total(), 1000);
}

#[test]
fn a_short_transfer_is_a_failure() {
    let (outcome, run) = reads("short", "[[fault]]\nwhat = { short = \"512B\" }\nnth = 7\n");
    assert_eq!(outcome.failed_visits, 1);
    assert_eq!(run.visits[0].streams[0].ops[0].short, 1);
    assert!(texts(&run, "short-transfer")[0].contains("moved 512 bytes only"));
}

#[test]
fn a_completion_that_never_comes_is_named_and_waited_for_so_long() {
    let (outcome, run) = reads("lost", "[[fault]]\nwhat = \"lost\"\nnth = 100\n");
    assert_eq!((outcome.state, outcome.hanging_visits), (RunState::Complete, 1));
    assert_eq!(run.visits[0].end, VisitEnd::Hanging);
    // Depth 1: nothing more is issued; 2 s by the stop rule and 1 s of patience, to a tick.
    let elapsed = run.visits[0].elapsed_ns;
    assert!((3_000_000_000..3_200_000_000).contains(&elapsed), "{elapsed}");
    let said = texts(&run, "hanging");
    assert!(said[0].contains("had not come back after"), "{said:?}");
    assert_eq!(run.visits[1].end, VisitEnd::Complete);
}

#[test]
fn virtual_time_is_not_mistaken_for_waiting() {
    let place = Place::new("virtual-wait");
    let target = format!("model:{}", model(&place, "").display());
    let order = order(&place, "random-read", &target, &["time=300s", "file_size=1GiB"]);
    let mut ticks = 0;
    let watch = &mut |event: Event<'_>| {
        if let Event::Tick(tick) = event {
            ticks += 1;
            assert_eq!(tick.waiting, []);
        }
    };
    go_with(&place, &order, &Interrupt::default(), watch).unwrap();
    assert!(ticks > 0, "five minutes of it take longer than a tick");
}

#[test]
fn a_device_that_vanishes_ends_the_run() {
    let (outcome, run) = reads(
        "vanish",
        "[[fault]]\nwhat = { vanish = { errno = \"ENODEV\", seen = \"device\" } }\nnth = 1000\n",
    );
    assert_eq!(outcome.state, RunState::Failed);
    assert_eq!(run.header.state, RunState::Failed);
    assert_eq!(run.visits.len(), 1);
    assert_eq!(run.visits[0].end, VisitEnd::Failed);
    assert!(run.visits[0].streams[0].ops[0].requests >= 990);
    assert!(texts(&run, "device-failed")[0].contains("ENODEV"), "{:?}", run.visits[0].warnings);
}

#[test]
fn a_file_truncated_under_us_is_a_short_transfer() {
    let place = Place::new("truncated");
    let file = place.join("data");
    let sets = ["file_size=8MiB", "time=300ms", "queue_depth=1,4"];
    let order = order(&place, "random-read", file.to_str().unwrap(), &sets);
    let cut = &mut |event: Event<'_>| {
        if let Event::VisitEnds { cell, .. } = event
            && cell.phase == "fill"
        {
            std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(4096).unwrap();
        }
    };
    let (outcome, run) = go_with(&place, &order, &Interrupt::default(), cut).unwrap();
    assert_eq!((outcome.state, outcome.failed_visits), (RunState::Complete, 2));
    assert!(texts(&run, "short-transfer")[0].contains("moved 0 bytes only"));
}

#[test]
fn verification_names_the_place_and_what_lies_there() {
    let place = Place::new("verify");
    let file = place.join("data");
    let sets = ["file_size=4MiB", "operations=1024", "access=permutation", "block_size=4K"];
    let mut order = order(&place, "random-read", file.to_str().unwrap(), &sets);
    order.settings.verify = true;
    let damage = &mut |event: Event<'_>| {
        if let Event::VisitEnds { cell, .. } = event
            && cell.phase == "fill"
        {
            use std::os::unix::fs::FileExt;
            let data = std::fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
            let mut sector = vec![0; 512];
            data.read_exact_at(&mut sector, 1 << 20).unwrap();
            // Misplaced: the whole sector of 1 MiB, at 2 MiB. Changed: one bit at 3 MiB.
            data.write_all_at(&sector, 2 << 20).unwrap();
            data.read_exact_at(&mut sector, 3 << 20).unwrap();
            sector[100] ^= 1;
            data.write_all_at(&sector, 3 << 20).unwrap();
            data.sync_all().unwrap();
        }
    };
    let (outcome, run) = go_with(&place, &order, &Interrupt::default(), damage).unwrap();
    assert!(outcome.mismatches);
    let mut said = texts(&run, "verify-mismatch");
    said.sort();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("byte 2097152: found data that was written to file 0, byte 1048576"));
    assert!(said[1].contains("byte 3145728: found this run's data changed"));
}

#[test]
fn verified_writes_and_reads_on_a_real_file_raise_no_false_alarm() {
    let place = Place::new("verify-clean");
    let file = place.join("data");
    let sets = [
        "file_size=1MiB",
        "time=500ms",
        "read_share=0.5",
        "queue_depth=8",
        "threads=4",
        "block_size=512,4K",
    ];
    let mut order = order(&place, "random-write", file.to_str().unwrap(), &sets);
    order.settings.verify = true;
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    assert_eq!(texts(&run, "verify-mismatch"), Vec::<String>::new());
    let ops: Vec<&str> = run.visits[1].streams[0].ops.iter().map(|op| op.op.as_str()).collect();
    assert_eq!(ops, ["read", "write"]);
}
