//! Runs in rounds, on twins whose truth is known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use record::{Purpose, Run, RunState, VisitEnd, VisitRecord};
use runner::{Event, Interrupt, Order, RoundOf, prepare, prepare_resume};

use crate::help::{Place, go, go_with, order, order_in_rounds, settings};

/// A device of 1 ms a request and 4000 requests a second, and whatever else it is told.
fn model(place: &Place, more: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"slow\"\n[model]\nsize = \"1GiB\"\n\
         [model.read]\niops = 4000\nbandwidth = \"1GiB\"\nlatency = \"1ms\"\n\
         [model.write]\niops = 4000\nbandwidth = \"1GiB\"\nlatency = \"1ms\"\n{more}"
    );
    let path: PathBuf = place.join("slow.toml");
    std::fs::write(&path, text).unwrap();
    format!("model:{}", path.display())
}

fn rounds(place: &Place, more: &str, sets: &[&str]) -> Order {
    let sets =
        [&["file_size=256MiB", "time=10s", "rounds.visit_time=2s", "rounds.ramp=500ms"], sets]
            .concat();
    order_in_rounds(place, "random-read", &model(place, more), &sets)
}

fn measured(run: &Run) -> impl Iterator<Item = &VisitRecord> {
    run.visits.iter().filter(|visit| visit.purpose == Purpose::Measure)
}

fn counts(run: &Run) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for visit in measured(run) {
        *counts.entry(visit.cell).or_default() += 1;
    }
    counts
}

const TWELVE: &str = "threads=1,2,3,4,5,6,7,8,9,10,11,12";

#[test]
fn quiet_cells_are_left_after_three_or_four_visits() {
    let place = Place::new("rounds-quiet");
    let noise = "[model.noise]\ncv = 0.01\nrho = 0.3\nvisit_shift = 0.01\n";
    let order = rounds(&place, noise, &[TWELVE, "rounds.precision=0.05"]);
    let mut seen = Vec::new();
    let (outcome, run) = go_with(&place, &order, &Interrupt::default(), &mut |event: Event<'_>| {
        if let Event::Round { phase, round } = event {
            assert_eq!(phase, "read");
            seen.push((round.of, round.number, round.open));
        }
    })
    .unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let counts = counts(&run);
    assert_eq!(counts.len(), 12);
    assert!(counts.values().all(|n| (3..=4).contains(n)), "{counts:?}");
    assert_eq!(seen[0], (RoundOf::Pilots, 0, 12));
    assert_eq!(seen[1], (RoundOf::Visits, 1, 12));
    assert_eq!(
        run.header.visits_planned as usize,
        run.visits_made(),
        "what it had, when it is over"
    );
    let pilots: Vec<u32> =
        run.visits.iter().filter(|v| v.purpose == Purpose::Pilot).map(|v| v.cell).collect();
    assert_eq!(pilots, [0, 5, 11]);
    for visit in measured(&run) {
        assert!(visit.ramp_ns >= 500_000_000, "{}", visit.ramp_ns);
        assert!(visit.elapsed_ns.abs_diff(2_000_000_000) < 20_000_000, "{}", visit.elapsed_ns);
        assert_eq!((visit.waited_ns, visit.quiet), (0, None), "nobody can look at a twin");
    }
}

#[test]
fn a_cell_that_froze_is_not_left_early() {
    let place = Place::new("rounds-freeze");
    // One in half a minute: some visits meet one, most do not.
    let freezes = "[model.random_freezes]\nper_hour = 120\nlength = \"300ms\"\n";
    let order = rounds(&place, freezes, &["threads=1,2,3,4,5,6", "rounds.time_max=1h"]);
    let (_, run) = go(&place, &order).unwrap();
    let counts = counts(&run);
    let froze = |cell: u32| measured(&run).any(|v| v.cell == cell && explain::freeze::stalled(v));
    assert!(counts.keys().any(|&cell| froze(cell)), "none froze: {counts:?}, seed 42");
    for (&cell, &visits) in &counts {
        assert!(!froze(cell) || visits == 10, "cell {cell} froze and had {visits} visits");
    }
}

#[test]
fn a_slow_device_is_visited_longer() {
    let place = Place::new("rounds-slow");
    let order = rounds(&place, "", &["rounds.least_operations=4000"]);
    let (_, run) = go(&place, &order).unwrap();
    for visit in measured(&run) {
        let requests = visit.streams[0].ops[0].requests;
        assert!(requests >= 4000, "{requests}");
        assert!(visit.elapsed_ns > 3_000_000_000 && visit.elapsed_ns < 6_000_000_000);
    }
}

#[test]
fn a_slow_device_is_not_visited_longer_where_cells_would_have_too_few_visits() {
    let place = Place::new("rounds-slow-short");
    let sets = ["threads=1,2,3", "rounds.least_operations=4000", "rounds.time_max=25s"];
    let (_, run) = go(&place, &rounds(&place, "", &sets)).unwrap();
    assert_eq!(counts(&run), BTreeMap::from([(0, 3), (1, 3), (2, 3)]));
    // The first round does not know yet how slow it is.
    let (first, later): (Vec<_>, Vec<_>) = measured(&run).partition(|visit| visit.repeat == 0);
    assert!(first.iter().any(|visit| visit.cell == 0 && visit.elapsed_ns > 3_000_000_000));
    let times: Vec<u64> = later.iter().map(|visit| visit.elapsed_ns).collect();
    assert!(times.iter().all(|&ns| ns < 2_000_000_000), "{times:?}");
    let took: u64 = measured(&run).map(|visit| visit.ramp_ns + visit.elapsed_ns).sum();
    assert!(took < 25_500_000_000, "{took}");
}

#[test]
fn pilots_that_find_no_ramp_leave_it_as_it_is() {
    let place = Place::new("rounds-ramp");
    let order = rounds(&place, "", &[TWELVE, "rounds.ramp=100ms"]);
    let (_, run) = go(&place, &order).unwrap();
    let pilots = run.visits.iter().filter(|v| v.purpose == Purpose::Pilot);
    assert!(pilots.clone().all(|v| v.ramp_ns == 0 && v.elapsed_ns >= 9_900_000_000));
    assert_eq!(pilots.count(), 3);
    let ramps: Vec<u64> = measured(&run).map(|visit| visit.ramp_ns).collect();
    // Each is longer by a random time.
    let (least, most) = (*ramps.iter().min().unwrap(), *ramps.iter().max().unwrap());
    assert!(least >= 100_000_000 && most > least && most <= 2 * least, "{ramps:?}");
    assert!(run.header.warnings.is_empty(), "{:?}", run.header.warnings);
}

#[test]
fn a_steady_phase_does_not_end_before_the_cliff_it_must_have_met() {
    let place = Place::new("rounds-steady");
    // 4 KiB at 1000 a second: 4 MiB/s, so 64 MiB are 16 s, and the cliff at twice 32 MiB too.
    let cliff = "[model.write_cliff]\nafter = \"64MiB\"\nfactor = 0.5\n";
    let run = |volume: &str| {
        let text = format!(
            "schema = 1\nname = \"cliff\"\nfile_size = \"32MiB\"\nfill = false\n[[phase]]\n\
             name = \"w\"\noperation = \"write\"\ntime = 1\n\
             steady = {{ round = \"1s\", rounds_max = 60, volume = {volume} }}\n\
             [[phase]]\nname = \"probe\"\ntime = 1\n"
        );
        let order = order_in_rounds(&place, &text, &model(&place, cliff), &[]);
        go(&place, &order).unwrap().1
    };
    let rounds = |run: &Run| measured(run).filter(|v| v.cell == 0).count();
    let early = run("0");
    assert_eq!(rounds(&early), 10, "flat before the cliff: ten rounds are enough");
    let late = run("2.5");
    assert!(rounds(&late) > 16, "accepted before the cliff: {} rounds", rounds(&late));
    let steady: Vec<&VisitRecord> = late.visits.iter().filter(|v| v.cell == 0).collect();
    assert!(steady.iter().all(|v| v.ramp_ns == 0 && v.end == VisitEnd::Complete));
    let rate = |v: &VisitRecord| v.streams[0].ops[0].requests;
    assert!(rate(steady[steady.len() - 1]) * 10 < rate(steady[0]) * 6, "the cliff is in it");
    assert!(late.visits[rounds(&late)..].iter().all(|v| v.cell == 1), "the probe comes after");
}

#[test]
fn what_does_not_become_steady_is_kept_and_said() {
    let place = Place::new("rounds-unsteady");
    let drift = "[model.drift]\nper_gib = 0.9\n";
    let text = "schema = 1\nname = \"drifts\"\nfile_size = \"32MiB\"\nfill = false\n[[phase]]\n\
                name = \"w\"\noperation = \"write\"\nblock_size = \"64KiB\"\ntime = 1\n\
                steady = { round = \"1s\", rounds_max = 12, volume = 0 }\n";
    let (outcome, run) =
        go(&place, &order_in_rounds(&place, text, &model(&place, drift), &[])).unwrap();
    assert_eq!((outcome.state, measured(&run).count()), (RunState::Complete, 12));
    let codes: Vec<&str> = run.header.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["not-steady"]);
}

#[test]
fn a_run_that_was_stopped_goes_on_as_it_would_have() {
    let place = Place::new("rounds-resume");
    // The null twin has no state of its own to lose.
    let sets = [
        "time=20ms",
        "rounds.visit_time=20ms",
        "rounds.ramp=1ms",
        "rounds.visits_max=5",
        "rounds.precision=0.001",
        "threads=1,2,3",
    ];
    let order = order_in_rounds(&place, "random-read", "null:", &sets);
    let (_, whole) = go(&place, &order).unwrap();
    let interrupt = Interrupt::default();
    let mut ended = 0;
    let (outcome, part) = go_with(&place, &order, &interrupt, &mut |event: Event<'_>| {
        if let Event::VisitEnds { .. } = event {
            ended += 1;
            if ended == 7 {
                interrupt.press();
            }
        }
    })
    .unwrap();
    assert_eq!((outcome.state, part.visits.len()), (RunState::Interrupted, 7));
    assert_eq!(part.header.visits_planned, 15, "at most");
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let resumed = prepare_resume(&part, settings(&place), None).unwrap();
    let outcome = resumed.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let run = store.load(&outcome.run).unwrap();
    let keys = |run: &Run| run.visits.iter().map(|v| (v.cell, v.repeat)).collect::<Vec<_>>();
    assert_eq!(keys(&run), keys(&whole), "15 visits to cells that never are known to 0.01 %");
}

#[test]
fn the_layers_of_a_twin_are_in_the_ledger() {
    let place = Place::new("rounds-layers");
    let stages = "[[model.stage]]\nname = \"host\"\nread.iops = 100000\n\
                  [[model.stage]]\nname = \"controller\"\nread.iops = 3000\n\
                  [[model.stage]]\nname = \"drives\"\n\
                  [model.cache]\nsize = \"64MiB\"\nbefore = \"drives\"\n\
                  latency = \"100us\"\n";
    let order = rounds(&place, stages, &["threads=8"]);
    let (_, run) = go(&place, &order).unwrap();
    let visit = run.visits.last().unwrap();
    let layers: Vec<(&str, u32)> =
        visit.ledger.iter().map(|e| (e.device.as_str(), e.depth)).collect();
    assert_eq!(layers, [("host", 0), ("controller", 1), ("drives", 2)]);
    let app = visit.streams[0].ops[0].bytes;
    let (host, drives) = (&visit.ledger[0], &visit.ledger[2]);
    assert!(host.read_bytes >= app && host.reads >= app / 4096);
    // A quarter of the file fits into the cache above the drives.
    let share = drives.read_bytes as f64 / host.read_bytes as f64;
    assert!((0.6..0.95).contains(&share), "{share}");
    // What waits in a layer waits in those above it, too.
    let queued = host.queue_ms;
    assert!(visit.ledger.is_sorted_by(|a, b| a.queue_ms >= b.queue_ms), "{:?}", visit.ledger);
    let seconds = (visit.elapsed_ns + visit.ramp_ns) / 1_000_000;
    assert!(queued.abs_diff(8 * seconds) < seconds, "eight in flight: {queued} ms in {seconds}");
}

#[test]
fn a_file_is_waited_for_and_what_is_in_memory_is_told() {
    let place = Place::new("rounds-file");
    let file = place.join("data");
    let sets = [
        "file_size=4MiB",
        "time=40ms",
        "rounds.visit_time=40ms",
        "rounds.ramp=5ms",
        "rounds.visits_max=3",
        "rounds.least_operations=0",
        "direct=false",
    ];
    let order = order_in_rounds(&place, "random-read", file.to_str().unwrap(), &sets);
    let (outcome, run) = go(&place, &order).unwrap();
    assert_eq!(outcome.state, RunState::Complete);
    let visits: Vec<&VisitRecord> = run.visits.iter().filter(|v| v.cell == 0).collect();
    assert_eq!(visits.len(), 3);
    for visit in &visits {
        // tmpfs and the like have no device to look at.
        assert_eq!(visit.quiet.is_none(), run.header.target.devices.is_empty());
        assert!(visit.resident_after.is_some_and(|share| share <= 1000), "{visit:?}");
    }
    // Read through the page cache, most of 4 MiB is there in the end.
    assert!(visits[2].resident_before.unwrap_or(0) > 100, "{:?}", visits[2].resident_before);
}

#[test]
fn what_will_be_done_is_said_beforehand() {
    let place = Place::new("rounds-said");
    let said = |order: &Order| prepare(order).unwrap().describe().join("\n");
    let text =
        said(&rounds(&place, "", &[TWELVE, "rounds.precision=0.02", "rounds.time_max=20min"]));
    for part in [
        "36 to 120 visits to 12 cells in rounds of random order",
        "known to 2 %",
        "Watches 3 cells for 10 s",
        "at least 2 min",
        "more than 20 min after",
    ] {
        assert!(text.contains(part), "no `{part}`: {text}");
    }
    let classic = order(&place, "random-read", "null:", &["threads=1,2"]);
    assert!(said(&classic).contains("Makes 2 visits to 2 cells, which takes at least 20 s."));
}

#[test]
fn a_time_that_is_too_short_is_said_before_the_first_visit() {
    let place = Place::new("rounds-short");
    let order = rounds(&place, "", &["threads=1,2,3", "rounds.time_max=8s"]);
    let text = "8 s is time for 2 visits to every cell, even if each measures 500 ms instead of 2 s; 3 \
                are wanted";
    let said = prepare(&order).unwrap().describe().join("\n");
    assert!(said.contains(&format!("Time is too short: {text}")), "{said}");
    assert!(said.contains("Its rounds take about 8 s; none begins"), "{said}");
    let mut events = Vec::new();
    let (_, run) = go_with(&place, &order, &Interrupt::default(), &mut |event: Event<'_>| {
        events.push(match event {
            Event::Warning(warning) => warning.code.clone(),
            Event::VisitBegins { .. } => "visit".to_owned(),
            _ => return,
        });
    })
    .unwrap();
    assert_eq!(events[0], "time-short", "{events:?}");
    assert!(run.header.warnings[0].text.contains(text), "{:?}", run.header.warnings);
    let times: Vec<u64> = measured(&run).map(|visit| visit.elapsed_ns).collect();
    assert!(times.len() >= 6 && times.iter().all(|&ns| ns < 1_000_000_000), "{times:?}");
    let enough = rounds(&place, "", &["threads=1,2,3", "rounds.time_max=30s"]);
    let said = prepare(&enough).unwrap().describe().join("\n");
    assert!(!said.contains("Time is too short") && !said.contains("instead of"), "{said}");
}

#[test]
fn cells_that_had_all_their_visits_are_counted_once_and_alike() {
    let place = Place::new("rounds-cap");
    let noise = "[model.noise]\nvisit_shift = 0.2\n";
    let sets = ["threads=1,2,3", "rounds.visits_max=3", "rounds.time_max=20min"];
    let (_, run) = go(&place, &rounds(&place, noise, &sets)).unwrap();
    assert_eq!(measured(&run).count(), 9);
    let view = explain::View::new(&run);
    let findings = explain::Findings::of(&view);
    let marks = findings.marks(&view);
    let marked = marks.iter().filter(|mark| mark.code.name() == "not-converged").count();
    assert!(marked > 0, "{marks:?}");
    let [warning] = run.header.warnings.as_slice() else { panic!("{:?}", run.header.warnings) };
    let are = if marked == 1 { "is" } else { "are" };
    let wanted = format!(
        "{marked} of 3 cells {are} not known to 5 %: the limit of 3 visits per cell was \
         reached; raise it (--set rounds.visits_max=...)"
    );
    assert_eq!((warning.code.as_str(), &warning.text), ("not-converged", &wanted));
    assert_eq!(findings.not_converged.text(), Some(wanted));
    // A stall keeps a cell open to its last visit, and is no reason to call it unknown.
    let stall = "[model.noise]\nvisit_shift = 0.001\n[[model.freeze]]\nstart = \"1s\"\nlength = \"150ms\"\n";
    let sets = ["threads=1", "rounds.visits_max=4", "rounds.time_max=20min", "rounds.pilot=false"];
    let (_, run) = go(&place, &rounds(&place, stall, &sets)).unwrap();
    let view = explain::View::new(&run);
    let findings = explain::Findings::of(&view);
    let marked = findings.marks(&view).iter().filter(|m| m.code.name() == "not-converged").count();
    assert_eq!(marked, findings.not_converged.rows as usize);
    assert_eq!(run.header.warnings.iter().filter(|w| w.code == "not-converged").count(), marked);
}

#[test]
fn a_budget_that_runs_out_is_said() {
    let place = Place::new("rounds-budget");
    let noise = "[model.noise]\nvisit_shift = 0.3\n";
    let order = rounds(&place, noise, &["threads=1,2,3", "rounds.time_max=20s"]);
    let (_, run) = go(&place, &order).unwrap();
    assert_eq!(measured(&run).count(), 9, "three rounds, of 8.25 s if they were whole");
    let [cut, late] = run.header.warnings.as_slice() else { panic!("{:?}", run.header.warnings) };
    assert_eq!((cut.code.as_str(), late.code.as_str()), ("visit-cut", "not-converged"));
    let wanted = "visits measure 1.47 s instead of at least 2 s, since every cell is to \
         have 3 of them within 20 s";
    assert!(cut.text.contains(wanted), "{}", cut.text);
    let wanted = "3 of 3 cells are not known to 5 %: more visits are needed than fit into 20 s \
                  (--max-time)";
    assert_eq!(late.text, wanted);
    let longest = measured(&run).map(|visit| visit.elapsed_ns).max().unwrap();
    assert!(longest < 1_800_000_000, "{longest}");
}
