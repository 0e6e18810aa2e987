//! What models remember, and whose time they keep.

use std::collections::BTreeMap;

use record::{Purpose, Run, RunState, VisitRecord};
use runner::{Event, Interrupt, Order, prepare, prepare_resume};

use crate::help::{Place, go, go_with, order, settings};

/// A device of 4000 requests a second, and whatever else it is told.
fn model(place: &Place, more: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"m\"\n[model]\nsize = \"1GiB\"\n\
         [model.read]\niops = 4000\nlatency = \"1ms\"\n\
         [model.write]\niops = 4000\nbandwidth = \"1GiB\"\nlatency = \"1ms\"\n{more}"
    );
    let path = place.join("m.toml");
    std::fs::write(&path, text).unwrap();
    format!("model:{}", path.display())
}

const SUITE: &str = "schema = 1\nname = \"t\"\ntitle = \"T\"\nfile_size = \"16MiB\"\nmethod = \"classic\"\n\
                     precondition = [{ trim = true }, { volume = 2 }]\nrepeats = 3\n\
                     [[phase]]\nname = \"w\"\noperation = \"write\"\naccess = \"uniform\"\n\
                     block_size = \"4KiB\"\ntime = \"1s\"\n";

/// Falls to a quarter where 32 MiB were written.
const CLIFF: &str = "[model.write_cliff]\nafter = \"32MiB\"\nfactor = 0.25\n";

fn on(place: &Place, more: &str) -> Order {
    order(place, SUITE, &model(place, more), &[])
}

fn rate(run: &Run) -> f64 {
    let first = run.visits.iter().find(|visit| visit.cell == 0).unwrap();
    first.streams[0].ops[0].requests as f64 * 1e9 / first.elapsed_ns as f64
}

#[test]
fn a_model_that_remembers_writes_is_preconditioned() {
    let place = Place::new("models-cliff");
    let order = on(&place, CLIFF);
    let said = prepare(&order).unwrap().describe().join("\n");
    assert!(said.contains("Writes 32 MiB in order before the first visit"), "{said}");
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    assert!(run.header.warnings.is_empty(), "{:?}", run.header.warnings);
    let phases: Vec<&str> =
        run.visits.iter().map(|visit| run.cells[visit.cell as usize].phase.as_str()).collect();
    assert_eq!(phases, ["precondition-1", "precondition-2", "w", "w", "w"]);
    assert!((rate(&run) - 250.0).abs() < 25.0, "one at a time, after the cliff: {}", rate(&run));
}

#[test]
fn a_model_that_remembers_nothing_is_not_preconditioned_and_nothing_is_doubted() {
    let place = Place::new("models-plain");
    let order = on(&place, "");
    let said = prepare(&order).unwrap().describe().join("\n");
    assert!(said.contains("it would change nothing, since model:"), "{said}");
    let (_, run) = go(&place, &order).unwrap();
    assert!(run.header.warnings.is_empty(), "{:?}", run.header.warnings);
    assert_eq!(run.visits.len(), 3);
    let explained = explain::Explanation::of(
        &[explain::View::new(&run)],
        &explain::explanation::Context::default(),
    );
    let said = explained.runs[0].sections.iter().flat_map(|section| section.sentences());
    let said = said.collect::<Vec<_>>().join(" ");
    assert!(said.contains("was left out: model:"), "{said}");
}

/// Starts and ends of the visits, in the order made.
fn times(run: &Run) -> Vec<(i64, i64)> {
    let mut visits: Vec<&VisitRecord> = run.visits.iter().collect();
    visits.sort_by_key(|visit| visit.order);
    let at = |ns: u64| i64::try_from(ns).unwrap();
    let of = |v: &&VisitRecord| (v.started_unix_ns, v.started_unix_ns + at(v.elapsed_ns));
    visits.iter().map(of).collect()
}

#[test]
fn all_times_within_a_run_are_by_the_models_clock() {
    let place = Place::new("models-clock");
    let (_, run) = go(&place, &on(&place, CLIFF)).unwrap();
    let times = times(&run);
    assert_eq!(times[0].0, run.header.started_unix_ns, "it begins with the run");
    for pair in times.windows(2) {
        // A request that is out at a visit's end is waited for.
        let between = pair[1].0 - pair[0].1;
        assert!((0..20_000_000).contains(&between), "{between} ns between visits of {times:?}");
    }
}

#[test]
fn a_resumed_model_is_preconditioned_anew_and_its_clock_goes_on() {
    let place = Place::new("models-resume");
    let order = on(&place, CLIFF);
    let interrupt = Interrupt::default();
    let mut ended = 0;
    let (outcome, part) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event {
            ended += 1;
            if ended == 3 {
                interrupt.press();
            }
        }
    })
    .unwrap();
    assert_eq!((outcome.state, part.visits.len()), (RunState::Interrupted, 3));
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let resumed = prepare_resume(&part, settings(&place), None).unwrap();
    let outcome = resumed.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    let run = store.load(&outcome.run).unwrap();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for visit in run.visits.iter().filter(|visit| visit.purpose == Purpose::Measure) {
        *counts.entry(run.cells[visit.cell as usize].phase.as_str()).or_default() += 1;
    }
    assert_eq!((counts["precondition-2"], counts["w"]), (2, 3), "{counts:?}");
    let times = times(&run);
    assert!(times.windows(2).all(|pair| pair[1].0 >= pair[0].1), "{times:?}");
}

#[test]
fn rounds_that_cannot_show_a_steady_state_say_so_beforehand() {
    let place = Place::new("models-rounds");
    let steady = |rounds: u32| {
        let text = format!("{SUITE}steady = {{ round = \"100ms\", rounds_max = {rounds} }}\n");
        let text = text.replace("repeats = 3\n", "").replace("method = \"classic\"\n", "");
        let order = order(&place, &text, &model(&place, CLIFF), &[]);
        prepare(&order).unwrap().describe().join("\n")
    };
    let few = "9 rounds at most cannot show whether it is steady, which takes 10";
    assert!(steady(9).contains(few), "{}", steady(9));
    assert!(!steady(10).contains("cannot show whether"), "{}", steady(10));
}

#[test]
fn a_pause_before_a_visit_passes_on_the_models_clock() {
    // An hour before each visit took three hours.
    let place = Place::new("models-settle");
    let text = format!("settle = \"1h\"\n{SUITE}");
    let (outcome, run) = go(&place, &order(&place, &text, &model(&place, ""), &[])).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let times = times(&run);
    assert_eq!(times.len(), 3);
    for pair in times.windows(2) {
        let between = pair[1].0 - pair[0].1;
        assert!((3_600_000_000_000..3_600_100_000_000).contains(&between), "{between}");
    }
}

#[test]
fn files_larger_than_the_model_are_refused_as_on_a_device() {
    let place = Place::new("models-size");
    let of = |size: &str| {
        let text = SUITE.replace("16MiB", size);
        prepare(&order(&place, &text, &model(&place, ""), &[]))
    };
    assert!(of("1GiB").is_ok());
    let refused = of("2GiB").unwrap_err();
    let said = format!("{refused}\nhint: {}", refused.hint().unwrap_or_default());
    assert!(said.contains("file set `2GiB` is more than the target's `1GiB`"), "{said}");
    assert!(said.contains("use `--size 1GiB`"), "{said}");
}
