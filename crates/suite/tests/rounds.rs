//! The fields of rounds and of steady phases: what they default to, what they make of a cell.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use suite::model::{Extend, Method, Suite};
use suite::{CheckContext, SuiteError, SuiteSource, check, parse, resolved_text};
use units::{Bytes, Nanos};

fn source(head: &str, phases: &str) -> SuiteSource {
    let text = format!("schema = 1\nname = \"t\"\n{head}\n{phases}");
    parse(&text, "t.toml").unwrap()
}

fn checked(source: &SuiteSource) -> Suite {
    check(source, &CheckContext::default()).unwrap()
}

fn refused(source: &SuiteSource) -> SuiteError {
    check(source, &CheckContext::default()).unwrap_err()
}

/// `n` cells of 10 s.
fn grid(n: u32) -> String {
    let threads: Vec<String> = (1..=n).map(|t| t.to_string()).collect();
    format!("[[phase]]\nname = \"p\"\ntime = \"10s\"\ngrid.threads = [{}]\n", threads.join(", "))
}

#[test]
fn what_is_left_out_depends_on_the_suite() {
    let small = checked(&source("", &grid(2)));
    assert_eq!(small.method, Method::Rounds);
    assert_eq!((small.rounds.visits_min, small.rounds.visits_max), (3, 10));
    assert_eq!(small.rounds.time_max, Nanos::secs(60), "at least a minute");
    assert!(!small.rounds.pilot, "two cells are measured faster than watched");
    let large = checked(&source("", &grid(20)));
    assert!(large.rounds.pilot);
    assert_eq!(large.pilots(&large.phases[0]), [0, 9, 19]);
    // 20 cells of 10 s; three visits of 2.5 s and three pilots of 10 s, and a quarter more.
    assert_eq!(large.rounds.time_max, Nanos::secs(225));
    let longer = checked(&source("", &grid(20).replace("10s", "12s")));
    assert_eq!(longer.rounds.time_max, Nanos::secs(240), "no tenth less: they would not fit");
    let longest = checked(&source("", &grid(20).replace("10s", "13s")));
    assert_eq!(longest.rounds.time_max, Nanos::secs(234), "a tenth less than the original");
    let short = checked(&source("rounds.visit_time = \"900ms\"", &grid(20)));
    assert!(!short.rounds.pilot, "a visit must outlast what a pilot could find");
}

#[test]
fn a_visit_in_rounds_is_short_and_stretched_for_slow_devices() {
    let suite = checked(&source("", "[[phase]]\nname = \"p\"\ntime = \"10s\"\nramp = \"2s\""));
    let [cell] = suite.cells_as_played().try_into().unwrap();
    let stop = cell.streams[0].stop;
    assert_eq!((stop.ramp, stop.time), (Nanos::secs(2), Some(Nanos::secs(2))));
    assert_eq!(stop.extend, Some(Extend { operations: 400, time_max: Nanos::secs(10) }));
    assert_eq!(cell.longest_duration(), Some(Nanos::secs(12)));
    assert_eq!(cell.least_duration(), Nanos::secs(4));
    let written = suite.cells().next().unwrap();
    assert_eq!(written.streams[0].stop.time, Some(Nanos::secs(10)), "the suite says ten");
}

#[test]
fn what_ends_by_bytes_or_requests_is_played_whole() {
    for stop in ["bytes = \"1GiB\"", "operations = 7", "time = 9\noperations = 1000000"] {
        let suite = checked(&source("", &format!("[[phase]]\nname = \"p\"\n{stop}")));
        let written: Vec<_> = suite.cells().cloned().collect();
        assert_eq!(suite.cells_as_played(), written, "{stop}");
    }
}

#[test]
fn streams_that_end_earlier_of_themselves_are_not_stretched() {
    let streams = "[[phase]]\nname = \"p\"\n[[phase.stream]]\nname = \"long\"\ntime = 5\n\
                   [[phase.stream]]\nname = \"short\"\ntime = 1\n";
    let suite = checked(&source("", streams));
    let [cell] = suite.cells_as_played().try_into().unwrap();
    assert!(cell.streams[0].stop.extend.is_some());
    assert_eq!(cell.streams[1].stop.extend, None);
    assert_eq!(cell.streams[1].stop.time, Some(Nanos::secs(1)));
}

#[test]
fn classic_is_what_the_suite_says() {
    let mut classic = source("repeats = 4\norder = \"shuffled\"", &grid(3));
    classic.set_classic().unwrap();
    let suite = checked(&classic);
    assert_eq!(suite.method, Method::Classic);
    assert_eq!(suite.cells_as_played(), suite.cells().cloned().collect::<Vec<_>>());
    assert_eq!(suite.least_duration(), Nanos::secs(120));
    assert!(suite.pilots(&suite.phases[0]).is_empty());
}

#[test]
fn time_is_the_measured_time_of_a_visit_by_either_method() {
    let mut timed = source("", &grid(1));
    timed.set_time(Nanos::secs(20)).unwrap();
    let stop = checked(&timed).cells_as_played()[0].streams[0].stop;
    assert_eq!((stop.ramp, stop.time), (Nanos::millis(500), Some(Nanos::secs(20))));
    timed.set_time(Nanos::millis(100)).unwrap();
    let stop = checked(&timed).cells_as_played()[0].streams[0].stop;
    assert_eq!((stop.ramp, stop.time), (Nanos::millis(25), Some(Nanos::millis(100))));
    timed.set_classic().unwrap();
    let stop = checked(&timed).cells_as_played()[0].streams[0].stop;
    assert_eq!((stop.ramp, stop.time), (Nanos::ZERO, Some(Nanos::millis(100))));
}

#[test]
fn fields_of_rounds_are_set_one_by_one() {
    let mut set = source("[rounds]\nvisits_max = 7\nprecision = 0.1", &grid(1));
    set.set("rounds.visits_min=4").unwrap();
    set.set_precision(0.02).unwrap();
    set.set_time_max(Nanos::secs(1200)).unwrap();
    let rounds = checked(&set).rounds;
    assert_eq!((rounds.precision, rounds.visits_min, rounds.visits_max), (0.02, 4, 7));
    assert_eq!(rounds.time_max, Nanos::secs(1200));
}

#[test]
fn what_cannot_be_is_refused_at_its_place() {
    let says = |head: &str, phases: &str| refused(&source(head, phases)).to_string();
    let rounds = |fields: &str| says(&format!("[rounds]\n{fields}"), &grid(4));
    assert_eq!(
        rounds("precision = 0"),
        "t.toml:4: `precision` is `0`, wanted 0.001 to 1: 0.1 % to 100 %"
    );
    assert_eq!(
        rounds("visits_max = 2\nvisits_min = 3"),
        "t.toml:5: `visits_min` is `3`, wanted 1 to 2"
    );
    assert_eq!(
        rounds("visit_time = \"3s\"\nvisit_time_max = \"2s\""),
        "t.toml:5: `visit_time_max` is `2s`, wanted at least `visit_time`, 3s"
    );
    assert_eq!(
        rounds("time_max = \"9s\""),
        "t.toml:4: `time_max` is `9s`, wanted at least 10s: one visit to every cell"
    );
    let steady = "[[phase]]\nname = \"p\"\ntime = 1\nsteady = {}\ngrid.threads = [1, 2]\n";
    assert_eq!(
        says("", steady),
        "t.toml:7: `steady` in phase `p` needs one cell, or `track` to say which of the 2 decides"
    );
    let steady = "[[phase]]\nname = \"p\"\ntime = 1\nsteady = { rounds_max = 0 }\n";
    assert_eq!(says("", steady), "t.toml:7: `steady.rounds_max` is `0`, wanted 1 to 10000");
    let mut stray = source("", &grid(1));
    let error = stray.set("steady.round=5s").unwrap_err();
    assert!(error.to_string().contains("needs the name of a phase in front"), "{error}");
}

#[test]
fn steady_phases_are_set_by_phase_and_written_down() {
    let phases = "[[phase]]\nname = \"w\"\noperation = \"write\"\ntime = 1\nsteady = {}\n\
                  [[phase]]\nname = \"r\"\ntime = 1\n";
    let mut set = source("file_size = \"64MiB\"", phases);
    set.set("w.steady.round=3s").unwrap();
    set.set("steady.volume=1.5").unwrap();
    let suite = checked(&set);
    let steady = suite.phases[0].steady.unwrap();
    assert_eq!((steady.round, steady.volume, steady.rounds_max), (Nanos::secs(3), 1.5, 25));
    assert_eq!(suite.phases[1].steady, None);
    assert_eq!(suite.files.size, Bytes::mib(64));
    let text = resolved_text(&set).unwrap();
    assert!(text.contains("steady = { round = \"3s\", rounds_max = 25, volume = 1.5 }"), "{text}");
}

/// `resume` reads it back: whatever depends on the suite must be in it.
#[test]
fn resolved_text_holds_every_field_of_rounds_and_stays_what_it_is() {
    for head in ["", "method = \"classic\"", "[rounds]\nprecision = 0.02\nvisits_max = 40"] {
        let first = source(head, &grid(20));
        let text = resolved_text(&first).unwrap();
        for field in [
            "precision",
            "visits_min",
            "visits_max",
            "visit_time",
            "ramp",
            "pilot",
            "least_operations",
            "visit_time_max",
            "time_max",
        ] {
            assert!(text.contains(&format!("\n{field} = ")), "{field}: {text}");
        }
        let again = parse(&text, "again").unwrap();
        assert_eq!(checked(&again), checked(&first));
        assert_eq!(resolved_text(&again).unwrap(), text);
    }
}

#[test]
fn one_time_for_all_is_the_time_of_visits_in_rounds() {
    let given = |assignment: &str| {
        let mut source = source("", &grid(2));
        source.set(assignment).unwrap();
        checked(&source).rounds.visit_time
    };
    assert_eq!(given("time=30s"), Nanos::secs(30));
    assert_eq!(given("time = \"200ms\""), Nanos::millis(200));
    assert_eq!(given("p.time=30s"), Nanos::secs(2), "one phase's is its own affair");
    assert_eq!(given("time=3s,4s"), Nanos::secs(2), "an axis is no time for all");
}

/// Seconds of each stream's ramp and time, and whether it may be stretched.
fn played(head: &str, phase: &str) -> Vec<(u64, u64, bool)> {
    let suite = checked(&source(head, &format!("[[phase]]\nname = \"p\"\n{phase}")));
    let [cell] = suite.cells_as_played().try_into().unwrap();
    let seconds = |time: Nanos| time.get() / 1_000_000_000;
    let stops = cell.streams.iter().map(|stream| stream.stop);
    stops.map(|s| (seconds(s.ramp), seconds(s.time.unwrap()), s.extend.is_some())).collect()
}

#[test]
fn a_visit_of_work_and_rest_has_whole_turns() {
    // Half a second of work, none of the rest, and a rate as if there were no rest.
    let duty = "time = \"60s\"\nduty = { on = 1, off = 2 }\n";
    assert_eq!(played("", duty), [(0, 3, false)]);
    assert_eq!(played("rounds.visit_time = 7", duty), [(0, 9, false)]);
    assert_eq!(played("rounds.visit_time = 9", duty), [(0, 9, false)]);
    assert_eq!(played("", "time = \"60s\"\nduty = { on = 5, off = 10 }"), [(0, 15, false)]);
    // Those beside it are measured as long; what ends before by itself does.
    let beside = "time = \"60s\"\n[[phase.stream]]\nname = \"a\"\nduty = { on = 5, off = 10 }\n\
                  [[phase.stream]]\nname = \"b\"\n[[phase.stream]]\nname = \"c\"\ntime = 1";
    assert_eq!(played("", beside), [(0, 15, false), (0, 15, false), (0, 1, false)]);
    // No rest, no turns.
    assert_eq!(played("", "time = \"60s\"\nduty = { on = 5, off = 0 }"), [(0, 2, true)]);
}

#[test]
fn a_time_of_part_of_a_turn_is_doubted() {
    let said = |head: &str, phase: &str| -> Vec<String> {
        let phase = format!("[[phase]]\nname = \"p\"\nduty = {{ on = 1, off = 2 }}\n{phase}");
        let doubts = suite::doubts(&source(head, &phase));
        doubts.iter().map(|doubt| format!("{doubt}; {}", doubt.hint().unwrap())).collect()
    };
    let classic = "method = \"classic\"";
    assert_eq!(
        said(classic, "time = 4"),
        ["t.toml:4: phase `p`: `time` is 4s, which is no whole number of turns of `duty` of 3s \
             each: its rate depends on how much of a rest is in it; set `time` to `6s`"]
    );
    assert_eq!(said(classic, "time = 6"), [""; 0]);
    assert_eq!(said(classic, "operations = 100"), [""; 0]);
    assert_eq!(said(classic, "time = 4\noperations = 100"), [""; 0], "which of them ends it?");
    assert_eq!(said("", "time = 4"), [""; 0], "rounds have whole turns");
    let steady = said("", "time = 4\noperation = \"write\"\nsteady = { round = \"10s\" }");
    assert!(steady[0].contains("`steady.round` is 10s") && steady[0].ends_with("`12s`"));
}
