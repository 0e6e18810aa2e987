//! The suites that come with the program, as the engine will see them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use suite::model::{Access, Backend, Operation, Order, Pacing, Stream, Suite, TableLayout};
use suite::{
    CheckContext, Found, SuiteSource, builtin, builtin_lists, check, parse, read, resolved_text,
};
use units::{Bytes, Nanos};

fn source(name: &str) -> SuiteSource {
    let found = suite::find_builtin(name).unwrap();
    parse(found.text, found.file).unwrap()
}

fn checked(source: &SuiteSource) -> Suite {
    check(source, &CheckContext::default()).unwrap()
}

#[test]
fn all_are_read_and_named_for_their_file() {
    for found in builtin() {
        let source = parse(found.text, found.file).unwrap();
        assert_eq!(source.name(), found.name);
        assert!(!source.title().is_empty() && source.title().len() <= 80, "{}", source.title());
        assert!(source.description().len() > 100, "{}", found.name);
        checked(&source);
        let mut quick = source.clone();
        quick.quick().unwrap();
        assert!(checked(&quick).least_duration() < Nanos::secs(65), "{}", found.name);
    }
}

#[test]
fn every_list_has_suites_that_take_what_it_sets() {
    for found in builtin_lists() {
        let Found::Parts(list) = read(found.text, found.file).unwrap() else {
            panic!("{} is no list", found.name);
        };
        assert_eq!(list.name(), found.name);
        assert!(!list.title().is_empty() && list.title().len() <= 80, "{}", list.title());
        assert!(list.description().len() > 100, "{}", found.name);
        for part in list.parts() {
            for quick in [false, true] {
                let mut source = source(&part.suite);
                list.set(part, &mut source).unwrap();
                if quick {
                    source.quick().unwrap();
                }
                list.keep_phases(part, &mut source).unwrap();
                let suite = checked(&source);
                assert!(!quick || suite.least_duration() < Nanos::secs(65), "{}", part.suite);
            }
        }
    }
}

#[test]
fn all_can_be_made_smaller_and_larger() {
    for found in builtin() {
        for factor in [1e-5, 0.01, 0.3, 1.0, 2.0] {
            let mut source = parse(found.text, found.file).unwrap();
            let whole = checked(&source);
            source.set_scale(factor).unwrap();
            let context = CheckContext::default();
            let scaled = check(&source, &context)
                .unwrap_or_else(|error| panic!("{} times {factor}: {error}", found.name));
            let (was, is) = (whole.files.size, scaled.files.size);
            assert!(if factor <= 1.0 { is <= was } else { is >= was }, "{}", found.name);
            for (before, after) in whole.cells().zip(scaled.cells()) {
                for (before, after) in before.streams.iter().zip(&after.streams) {
                    let totals = |stop: &suite::model::Stop| (stop.bytes.is_some(), stop.time);
                    assert_eq!(totals(&before.stop), totals(&after.stop), "{}", found.name);
                    let workers = u64::from(after.threads);
                    let least = after.block_size_max().get().min(after.region.length.get());
                    assert!(after.stop.bytes.is_none_or(|b| b.get() >= least), "{}", found.name);
                    assert!(
                        after.stop.operations.is_none_or(|n| {
                            n >= workers.min(before.stop.operations.unwrap_or(n))
                        }),
                        "{}",
                        found.name
                    );
                }
            }
            let again = parse(&resolved_text(&source).unwrap(), "resolved").unwrap();
            assert_eq!(checked(&again), scaled);
        }
    }
}

#[test]
fn resolved_text_gives_the_same_suite() {
    for found in builtin() {
        for quick in [false, true] {
            let mut source = parse(found.text, found.file).unwrap();
            if quick {
                source.quick().unwrap();
            }
            let text = resolved_text(&source).unwrap();
            let again = parse(&text, "resolved").unwrap();
            assert_eq!(checked(&again), checked(&source), "{text}");
            assert_eq!(resolved_text(&again).unwrap(), text);
        }
    }
}

#[test]
fn bm_flash_is_the_grid_of_the_studies() {
    let suite = checked(&source("bm-flash"));
    assert_eq!(suite.table, TableLayout::BmFlash);
    assert_eq!(suite.order, Order::AsWritten);
    assert_eq!((suite.files.count, suite.files.size), (1, Bytes::gib(4)));
    assert!(suite.files.fill);
    let names: Vec<&str> = suite.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["read", "write"]);
    for (phase, op) in suite.phases.iter().zip([Operation::Read, Operation::Write]) {
        assert_eq!(phase.axes[0].field, "block_size");
        assert_eq!(phase.axes[0].values[..2], ["512B", "1KiB"]);
        assert_eq!(phase.axes[1].values, ["1", "10", "40"]);
        assert_eq!(phase.cells.len(), 42);
        for (index, cell) in phase.cells.iter().enumerate() {
            let [stream] = cell.streams.as_slice() else { panic!("one stream per cell") };
            let size = Bytes::new(512 << (index / 3));
            assert_eq!(stream.mix.block_size(), Some(size));
            assert_eq!(stream.mix.classes[0].op, op);
            assert_eq!(stream.align, size);
            assert_eq!(stream.threads, [1, 10, 40][index % 3]);
            assert_eq!((stream.queue_depth, stream.direct), (1, true));
            assert_eq!(stream.access, Access::Uniform);
            assert_eq!(stream.pacing, Pacing::Closed { think: Nanos::ZERO, burst: 1 });
            assert_eq!(stream.backend, Backend::Auto);
            assert_eq!(stream.stop.time, Some(Nanos::secs(10)));
            assert_eq!(cell.coordinates, [index / 3, index % 3]);
        }
    }
    let mut classic = source("bm-flash");
    classic.set_classic().unwrap();
    let classic = checked(&classic);
    assert_eq!(classic.least_duration(), Nanos::secs(840));
    assert_eq!(classic.cells_as_played(), classic.cells().cloned().collect::<Vec<_>>());
    assert_eq!((classic.visits_least(), classic.visits_most()), (84, 84));
    // Four visits of 1.25 s to each cell, six pilots of 10 s, and half a second of waiting before
    // each visit after a write: all of it and a quarter more in a tenth less than the original.
    assert_eq!(suite.least_duration(), Nanos::secs(84 * 5 + 60));
    assert_eq!(suite.rounds.time_max, Nanos::secs(756));
    assert_eq!((suite.visits_least(), suite.visits_most()), (336, 1680));
    assert_eq!(suite.bytes_written_least(), Bytes::gib(4));
    assert!(suite.writes());
}

#[test]
fn the_line_of_the_readme_works() {
    let mut source = source("random-read");
    for set in ["block_size=4K", "queue_depth=32", "threads=1", "time=5s"] {
        source.set(set).unwrap();
    }
    let suite = checked(&source);
    assert_eq!(suite.cell_count(), 1);
    let stream = &suite.phases[0].cells[0].streams[0];
    assert_eq!((stream.queue_depth, stream.threads), (32, 1));
    assert_eq!(stream.stop.time, Some(Nanos::secs(5)));
    assert_eq!(stream.name, "read");
    assert!(!suite.writes());
}

#[test]
fn the_short_form_of_bm_flash_takes_about_a_minute() {
    let mut source = source("bm-flash");
    source.quick().unwrap();
    let suite = checked(&source);
    assert_eq!(suite.least_duration(), Nanos::secs(63));
    assert_eq!(suite.visits_most(), suite.visits_least());
    let stop = suite.cells_as_played()[0].streams[0].stop;
    assert_eq!((stop.ramp, stop.time), (Nanos::millis(50), Some(Nanos::millis(200))));
    assert_eq!(stop.extend, None);
}

#[test]
fn the_steady_state_suite_has_rounds_and_probes() {
    let suite = checked(&source("steady-write"));
    let steady = suite.phases[0].steady.unwrap();
    assert_eq!((steady.round, steady.rounds_max), (Nanos::secs(10), 25));
    assert_eq!(suite.files.precondition[0].volume(), 2.0);
    let stop = suite.cells_as_played()[0].streams[0].stop;
    assert_eq!((stop.ramp, stop.time, stop.extend), (Nanos::ZERO, Some(Nanos::secs(10)), None));
    let probe = suite.cells_as_played()[1].streams[0].stop;
    assert_eq!((probe.ramp, probe.time), (Nanos::millis(500), Some(Nanos::secs(2))));
    assert!(suite.pilots(&suite.phases[1]).is_empty());
    assert_eq!((suite.visits_least(), suite.visits_most()), (10 + 2 * 3, 25 + 2 * 10));
}

#[test]
fn caches_are_looked_for_in_order_and_over_whole_regions() {
    for (name, sizes) in [
        ("working-set", (Bytes::mib(64), Bytes::mib(2))),
        ("reread", (Bytes::gib(1), Bytes::mib(64))),
    ] {
        let mut quick = source(name);
        quick.quick().unwrap();
        for (suite, first) in [(checked(&source(name)), sizes.0), (checked(&quick), sizes.1)] {
            assert_eq!(suite.method, suite::model::Method::Classic);
            assert_eq!(suite.phases.len(), if name == "reread" { 2 } else { 20 });
            let mut size = first;
            for pair in suite.phases.chunks(2) {
                let [a, b] = [&pair[0], &pair[1]].map(|phase| &phase.cells[0].streams[0]);
                assert_eq!((a.region.length, b.region.length), (size, size));
                assert_eq!(a.region.start, Bytes::ZERO);
                assert_eq!((a.stop.bytes, a.stop.time), (Some(size), None), "once through");
                match name {
                    "reread" => {
                        assert_eq!(a.access, Access::Permutation);
                        assert_eq!(*a, Stream { name: a.name.clone(), ..b.clone() });
                    }
                    _ => assert!(b.access == Access::Uniform && b.stop.bytes.is_none()),
                }
                size = Bytes::new(size.get() * 2);
            }
            assert!(suite.files.size >= Bytes::new(size.get() / 2));
        }
    }
}
