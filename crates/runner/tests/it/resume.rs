//! Interrupting and going on.

use record::{RunState, VisitEnd};
use runner::{Event, Interrupt, RunError, prepare_resume};

use crate::help::{Place, go_with, order, settings};

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let place = Place::new("resume");
    let file = place.join("data");
    let sets = ["file_size=1MiB", "operations=500", "queue_depth=1,2,3,4,5,6"];
    let order = order(&place, "random-read", file.to_str().unwrap(), &sets);
    let interrupt = Interrupt::default();
    let mut ended = 0;
    let (outcome, run) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event {
            ended += 1;
            if ended == 3 {
                interrupt.press();
            }
        }
    })
    .unwrap();
    assert_eq!(outcome.state, RunState::Interrupted);
    // The fill, two cells; the interrupt came after the third visit ended.
    assert_eq!(run.visits.len(), 3);

    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let prepared = prepare_resume(&run, settings(&place), None).unwrap();
    let outcome = prepared.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let run = store.load(&outcome.run).unwrap();
    let cells: Vec<u32> = run.visits.iter().map(|v| v.cell).collect();
    assert_eq!(cells, [6, 0, 1, 2, 3, 4, 5], "the fill is not repeated");
    let broken = run.header.warnings.iter().find(|w| w.code == "resumed").unwrap();
    assert!(
        broken.text.starts_with("broken off after 3 stored visits and resumed, "),
        "{broken:?}"
    );
    assert!(run.visits.iter().all(|v| v.end == VisitEnd::Complete));
    let again = prepare_resume(&run, settings(&place), None).unwrap_err();
    assert!(matches!(again, RunError::Resume { .. }), "{again}");
}

#[test]
fn an_interrupted_visit_is_stored_and_made_again() {
    let place = Place::new("resume-visit");
    let sets = ["time=10min", "queue_depth=1,2"];
    let order = order(&place, "random-read", "null:", &sets);
    let interrupt = Interrupt::default();
    let (outcome, run) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        // Twice would be to leave at once.
        if matches!(event, Event::Tick(_)) && !interrupt.stops() {
            interrupt.press();
        }
    })
    .unwrap();
    assert_eq!(outcome.state, RunState::Interrupted);
    assert_eq!(run.visits.len(), 1);
    assert_eq!(run.visits[0].end, VisitEnd::Interrupted);
    assert!(run.visits[0].streams[0].ops[0].requests > 0, "what there is is kept");
}

#[test]
fn a_verifying_run_still_verifies_when_resumed() {
    let place = Place::new("resume-verify");
    let file = place.join("data");
    let sets = ["file_size=1MiB", "operations=256", "access=permutation", "repeats=2"];
    let mut order = order(&place, "random-read", file.to_str().unwrap(), &sets);
    order.settings.verify = true;
    let interrupt = Interrupt::default();
    let (_, run) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event {
            interrupt.press();
        }
    })
    .unwrap();
    assert_eq!(run.visits.len(), 1, "the fill only");
    // Damage behind the run's back; `settings` says nothing of verification.
    use std::os::unix::fs::FileExt;
    let data = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    data.write_all_at(&[0; 512], 512 * 8).unwrap();
    data.sync_all().unwrap();
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let prepared = prepare_resume(&run, settings(&place), None).unwrap();
    let outcome = prepared.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    assert!(outcome.mismatches);
}

#[test]
fn the_same_seed_on_the_model_gives_the_same_visits() {
    let place = Place::new("same");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/nvme.toml");
    let target = format!("model:{model}");
    let sets = ["time=1s", "queue_depth=1,8", "threads=4", "order=shuffled", "repeats=2"];
    let order = order(&place, "random-read", &target, &sets);
    let run = || {
        let none = &mut |_: Event<'_>| {};
        let (_, run) = go_with(&place, &order, &Interrupt::default(), none).unwrap();
        run.visits
            .into_iter()
            .map(|mut visit| {
                visit.started_unix_ns = 0;
                visit
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}
