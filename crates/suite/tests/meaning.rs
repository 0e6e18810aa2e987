//! What suites and overrides mean once they are checked.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use suite::model::{
    Access, Arrivals, Backend, CacheStep, Cell, Choice, Class, Data, Operation, Pacing,
    Precondition, Spread, Stream, Suite, SyncAtEnd, SyncPolicy, WriteThrough, Zone,
};
use suite::{CheckContext, SuiteSource, check, parse, resolved_text};
use units::{Bytes, Nanos};

const EVERYTHING: &str = include_str!("data/everything.toml");

fn read(text: &str) -> SuiteSource {
    parse(text, "t.toml").unwrap()
}

fn checked(source: &SuiteSource) -> Suite {
    check(source, &CheckContext::default()).unwrap()
}

/// A suite of one phase named `main` with these fields.
fn phase(fields: &str) -> SuiteSource {
    read(&format!("schema = 1\nname = \"t\"\n[[phase]]\nname = \"main\"\n{fields}\n"))
}

/// The only stream of the only cell.
fn only(source: &SuiteSource) -> Stream {
    let suite = checked(source);
    assert_eq!(suite.cell_count(), 1);
    suite.phases[0].cells[0].streams[0].clone()
}

/// Fails with the first difference only: whole suites fill screens.
fn assert_same(seen: &Suite, wanted: &Suite, text: &str) {
    for (seen, wanted) in seen.phases.iter().zip(&wanted.phases) {
        assert_eq!(seen.axes, wanted.axes, "{text}");
        for (seen, wanted) in seen.cells.iter().zip(&wanted.cells) {
            assert_eq!(seen, wanted, "{text}");
        }
    }
    assert!(seen == wanted, "{text}");
}

fn with(fields: &str, sets: &[&str]) -> SuiteSource {
    let mut source = phase(fields);
    for set in sets {
        source.set(set).unwrap();
    }
    source
}

fn axes(suite: &Suite) -> Vec<(String, Vec<String>)> {
    suite.phases[0].axes.iter().map(|axis| (axis.field.clone(), axis.values.clone())).collect()
}

fn owned(axes: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    axes.iter()
        .map(|(field, values)| {
            ((*field).to_owned(), values.iter().map(|v| (*v).to_owned()).collect())
        })
        .collect()
}

fn class(weight: f64, op: Operation, block_size: Bytes) -> Class {
    Class { weight, op, block_size, line: None }
}

#[test]
fn defaults_are_as_documented() {
    let source = phase("time = 1");
    let suite = checked(&source);
    assert_eq!((suite.files.count, suite.files.size), (1, Bytes::gib(1)));
    assert_eq!((suite.files.fill, suite.files.data), (true, Data::Incompressible));
    assert!(suite.files.precondition.is_empty() && suite.caches.is_empty());
    assert_eq!((suite.repeats, suite.settle), (1, Nanos::ZERO));
    let stream = only(&source);
    assert_eq!(stream.access, Access::Uniform);
    assert_eq!(stream.mix.classes, [class(1.0, Operation::Read, Bytes::kib(4))]);
    assert_eq!(stream.mix.choice, Choice::Dice);
    assert_eq!(stream.align, Bytes::kib(4));
    assert_eq!((stream.region.start, stream.region.length), (Bytes::ZERO, Bytes::gib(1)));
    assert_eq!(stream.region.spread, Spread::Concatenated);
    assert_eq!((stream.sync, stream.threads, stream.queue_depth), (None, 1, 1));
    assert_eq!(stream.pacing, Pacing::Closed { think: Nanos::ZERO, burst: 1 });
    assert_eq!((stream.direct, stream.write_through), (true, WriteThrough::No));
    assert_eq!(stream.backend, Backend::Auto);
    assert_eq!((stream.stop.ramp, stream.stop.time), (Nanos::ZERO, Some(Nanos::secs(1))));
    assert_eq!((stream.stop.bytes, stream.stop.operations), (None, None));
}

#[test]
fn nearer_layers_win() {
    let text = r#"
schema = 1
name = "layers"
[defaults]
time = "1s"
threads = 2
queue_depth = 2
block_size = "8K"
operation = "write"
sync = { op = "fdatasync", every = 10 }
[[phase]]
name = "main"
queue_depth = 3
read_share = 0.5
[[phase.stream]]
name = "a"
block_size = "16K"
sync = { every = 20 }
[[phase.stream]]
name = "b"
operation = "read"
sync = "fsync"
[[phase]]
name = "gridded"
threads = 5
sync = "none"
grid.threads = [7]
"#;
    let suite = checked(&read(text));
    let [a, b] = suite.phases[0].cells[0].streams.as_slice() else { panic!("two streams") };
    for stream in [a, b] {
        assert_eq!((stream.threads, stream.queue_depth), (2, 3));
    }
    let halves =
        [class(0.5, Operation::Read, Bytes::kib(16)), class(0.5, Operation::Write, Bytes::kib(16))];
    assert_eq!(a.mix.classes, halves);
    assert_eq!(b.mix.classes, [class(1.0, Operation::Read, Bytes::kib(8))]);
    let policy = SyncPolicy {
        op: Operation::Fdatasync,
        every: Some(20),
        shared: false,
        each_file: false,
        at_end: SyncAtEnd::No,
    };
    assert_eq!(a.sync, Some(policy));
    assert_eq!(b.sync, Some(SyncPolicy { op: Operation::Fsync, every: Some(1), ..policy }));
    let gridded = &suite.phases[1].cells[0].streams[0];
    assert_eq!((gridded.threads, gridded.sync), (7, None));
    assert_eq!(gridded.name, "gridded");
}

#[test]
fn the_last_axis_is_the_fastest() {
    let suite = checked(&phase("time = 1\ngrid.threads = [1, 2]\ngrid.queue_depth = [3, 4, 5]"));
    let seen: Vec<(u32, u32)> =
        suite.cells().map(|c| (c.streams[0].threads, c.streams[0].queue_depth)).collect();
    assert_eq!(seen, [(1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)]);
    assert_eq!(suite.phases[0].cells[4].coordinates, [1, 1]);
}

#[test]
fn axes_stand_in_the_order_written_though_toml_gathers_dotted_keys() {
    let suite = checked(&phase(
        "time = 1\naccess = \"zipf\"\nsync = \"fsync\"\ngrid.sync.every = [1, 2]\n\
         grid.threads = [1]\ngrid.sync.shared = [true]",
    ));
    let fields: Vec<&str> = suite.phases[0].axes.iter().map(|a| a.field.as_str()).collect();
    assert_eq!(fields, ["sync.every", "threads", "sync.shared"]);
}

#[test]
fn mixes() {
    let mix = |fields: &str| only(&phase(&format!("time = 1\n{fields}"))).mix;
    use Operation::{Fdatasync, Read, Trim, Write};
    let kib = Bytes::kib;
    for (fields, wanted) in [
        ("read_share = 1", vec![class(1.0, Read, kib(4))]),
        ("read_share = 0", vec![class(1.0, Write, kib(4))]),
        ("read_share = 0.75", vec![class(0.75, Read, kib(4)), class(0.25, Write, kib(4))]),
        (
            "read_share = 0.5\nblock_sizes = [\"4K\", \"8K\"]",
            vec![
                class(0.25, Read, kib(4)),
                class(0.25, Read, kib(8)),
                class(0.25, Write, kib(4)),
                class(0.25, Write, kib(8)),
            ],
        ),
        (
            "block_sizes = { \"4K\" = 3, \"8K\" = 1 }",
            vec![class(0.75, Read, kib(4)), class(0.25, Read, kib(8))],
        ),
        // Two spellings of one size are one class.
        (
            "block_sizes = { \"4K\" = 1, 8192 = 2, 4096 = 1 }",
            vec![class(0.5, Read, kib(4)), class(0.5, Read, kib(8))],
        ),
        (
            "classes = [{ operation = \"read\" }, { weight = 2, operation = \"fdatasync\" }, \
             { operation = \"read\", block_size = \"4K\" }, { operation = \"trim\", block_size = \"1M\" }]",
            vec![
                class(2.0, Read, kib(4)),
                class(2.0, Fdatasync, kib(0)),
                class(1.0, Trim, kib(1024)),
            ],
        ),
    ] {
        assert_eq!(mix(fields).classes, wanted, "{fields}");
    }
    assert_eq!(mix("choice = \"interleave\"").choice, Choice::Interleave);
}

#[test]
fn alignment_is_what_all_block_sizes_share() {
    let align = |fields: &str| only(&phase(&format!("time = 1\n{fields}"))).align;
    assert_eq!(align("block_size = \"64K\""), Bytes::kib(64));
    assert_eq!(align("block_sizes = [\"12K\", \"8K\"]"), Bytes::kib(4));
    assert_eq!(align("block_size = \"64K\"\nalign = \"4K\""), Bytes::kib(4));
    assert_eq!(align("operation = \"fsync\"\nblock_size = \"16K\""), Bytes::kib(16));
    assert_eq!(align("align = \"block-size\""), Bytes::kib(4));
}

#[test]
fn regions() {
    let region = |fields: &str| {
        let text = format!(
            "schema = 1\nname = \"t\"\nfile_size = \"1M\"\nfile_count = 4\n\
             [[phase]]\nname = \"main\"\ntime = 1\n{fields}\n"
        );
        let region = only(&read(&text)).region;
        (region.start.get() >> 10, region.length.get() >> 10)
    };
    assert_eq!(region(""), (0, 4096));
    assert_eq!(region("spread = \"file-per-worker\""), (0, 1024));
    assert_eq!(region("region = \"25%\""), (0, 1024));
    assert_eq!(region("region = { start = \"1M\" }"), (1024, 3072));
    assert_eq!(region("region = { start = \"50%\", length = \"512K\" }"), (2048, 512));
    // 33 % of 1 MiB is no multiple of 4 KiB: rounded down.
    assert_eq!(region("spread = \"file-per-worker\"\nregion = \"33%\""), (0, 336));
}

#[test]
fn accesses() {
    let access = |text: &str| only(&phase(&format!("time = 1\naccess = {text}"))).access;
    assert_eq!(access("\"sequential\""), Access::Sequential { shared: false });
    assert_eq!(access("{ kind = \"backward\", shared = true }"), Access::Backward { shared: true });
    assert_eq!(access("{ kind = \"stride\", step = 17 }"), Access::Stride { step: 17 });
    assert_eq!(access("\"zipf\""), Access::Zipf { theta: 0.99 });
    assert_eq!(access("{ kind = \"zipf\", theta = 2 }"), Access::Zipf { theta: 2.0 });
    let zones = "{ kind = \"hot\", zones = [{ space_share = 0.1, access_share = 0.9 }, \
                 { space_share = 0.9, access_share = 0.1 }] }";
    let zone = |space_share, access_share| Zone { space_share, access_share };
    assert_eq!(access(zones), Access::Hot { zones: vec![zone(0.1, 0.9), zone(0.9, 0.1)] });
    let source = phase("time = 1\nrandom_share = 0.8");
    assert_eq!(only(&source).access, Access::Mixed { random_share: 0.8 });
}

#[test]
fn a_replayed_list_ends_by_itself() {
    let list = "access = { kind = \"replay\", requests = [\
                { op = \"read\", offset = \"1M\", length = \"8K\" }, \
                { op = \"write\", length = \"4K\" }, { op = \"fsync\", length = \"4K\" }] }";
    let stream = only(&phase(list));
    assert_eq!(stream.stop.operations, Some(3));
    let Access::Replay { requests } = &stream.access else { panic!("a list") };
    assert_eq!((requests[0].offset, requests[1].offset), (Bytes::mib(1), Bytes::ZERO));
    assert_eq!(requests[2].length, Bytes::ZERO);
    assert_eq!(stream.align, Bytes::kib(4));
    assert_eq!(stream.bytes_written_least(), Bytes::kib(4));
    assert!(stream.modifies());
    assert_eq!(only(&phase(&format!("{list}\noperations = 2"))).stop.operations, Some(2));
}

#[test]
fn pacing() {
    let pacing = |fields: &str| only(&phase(&format!("time = 1\n{fields}"))).pacing;
    let think = Nanos::millis(2);
    assert_eq!(pacing("think = \"2ms\"\nburst = 8"), Pacing::Closed { think, burst: 8 });
    let arrivals = Arrivals::Poisson;
    assert_eq!(
        pacing("rate = 100\narrivals = \"poisson\""),
        Pacing::Open { rate: 100.0, arrivals }
    );
}

#[test]
fn overrides_of_the_whole_suite() {
    let source = with(
        "time = 1",
        &[
            "file_size=64K",
            "file_count=2",
            "fill=false",
            "data=pattern",
            "data.byte=0x5a",
            "repeats=5",
            "order=shuffled",
            "settle=2.5s",
            "caches=flush,purge",
            "precondition=[{ random = true, block_size = \"4K\" }]",
        ],
    );
    let suite = checked(&source);
    assert_eq!((suite.files.size, suite.files.count), (Bytes::kib(64), 2));
    assert_eq!((suite.files.fill, suite.files.data), (false, Data::Pattern { byte: 0x5a }));
    assert_eq!((suite.repeats, suite.settle), (5, Nanos::millis(2500)));
    assert_eq!(suite.caches, [CacheStep::Flush, CacheStep::Purge]);
    assert!(matches!(suite.files.precondition[0], Precondition::Write { random: true, .. }));
    for (set, wanted) in [("caches=none", vec![]), ("caches=drop", vec![CacheStep::Drop])] {
        let mut source = source.clone();
        source.set(set).unwrap();
        assert_eq!(checked(&source).caches, wanted);
    }
}

#[test]
fn one_value_takes_the_place_of_an_axis_and_a_list_makes_one() {
    let grid = "time = 1\ngrid.block_size = [\"4K\", \"8K\"]\ngrid.threads = [1, 2]";
    for (sets, wanted) in [
        (vec![], owned(&[("block_size", &["4KiB", "8KiB"]), ("threads", &["1", "2"])])),
        (vec!["block_size=1M"], owned(&[("threads", &["1", "2"])])),
        (
            vec!["block_size=512,1M"],
            owned(&[("block_size", &["512B", "1MiB"]), ("threads", &["1", "2"])]),
        ),
        (vec!["block_size=[4096]", "threads=9"], owned(&[("block_size", &["4KiB"])])),
        (
            vec!["threads=9", "threads=1,4,16"],
            owned(&[("block_size", &["4KiB", "8KiB"]), ("threads", &["1", "4", "16"])]),
        ),
        (vec!["threads=1,4", "threads=3"], owned(&[("block_size", &["4KiB", "8KiB"])])),
        (
            vec!["direct=true,false"],
            owned(&[
                ("block_size", &["4KiB", "8KiB"]),
                ("threads", &["1", "2"]),
                ("direct", &["true", "false"]),
            ]),
        ),
        // A mix of sizes drives an axis of sizes out.
        (vec!["block_sizes={ 4K = 1, 8K = 2 }"], owned(&[("threads", &["1", "2"])])),
        (vec!["block_sizes=[\"4K\", \"8K\"]"], owned(&[("threads", &["1", "2"])])),
        // A list of mixes is an axis of them, lists and tables alike.
        (
            vec!["block_sizes=[[\"4K\", \"8K\"], { 4K = 9, 128K = 1 }]"],
            owned(&[
                ("block_sizes", &["[\"4KiB\", \"8KiB\"]", "{ 4KiB = 9.0, 128KiB = 1.0 }"]),
                ("threads", &["1", "2"]),
            ]),
        ),
    ] {
        let suite = checked(&with(grid, &sets));
        assert_eq!(axes(&suite), wanted, "{sets:?}");
    }
}

/// A table of weights is a value of the field as a list is.
#[test]
fn mixes_of_sizes_are_values_of_an_axis() {
    let grid = "time = 1\n[phase.grid]\nblock_sizes = [{ \"4KiB\" = 1, \"64KiB\" = 3 }, [\"8KiB\"], \
                { \"4KiB\" = 90, \"128KiB\" = 10 }]\nthreads = [1, 2]";
    let source = phase(grid);
    let suite = checked(&source);
    let sizes = |cell: &Cell| -> Vec<(f64, u64)> {
        let classes = cell.streams[0].mix.classes.iter();
        classes.map(|class| (class.weight, class.block_size.get() >> 10)).collect()
    };
    let found: Vec<_> = suite.phases[0].cells.iter().step_by(2).map(sizes).collect();
    let wanted = [vec![(0.25, 4), (0.75, 64)], vec![(1.0, 8)], vec![(0.9, 4), (0.1, 128)]];
    assert_eq!(found, wanted);
    assert_eq!(suite.phases[0].cells.len(), 6);
    // It reads back, and a phase that tracks one of its cells names it as it was written.
    let again = suite::resolved_text(&source).unwrap();
    assert_eq!(checked(&parse(&again, "t.toml").unwrap()), suite, "{again}");
    let steady = "operation = \"write\"\nsteady = { track = { threads = 2, \
                  block_sizes = { \"4KiB\" = 90, \"128KiB\" = 10 } } }\n";
    let tracked = checked(&phase(&(steady.to_owned() + grid)));
    assert_eq!(tracked.phases[0].steady.unwrap().track, 5);
}

#[test]
fn overrides_reach_details() {
    let stream = |sets: &[&str]| only(&with("time = 1\naccess = \"zipf\"", sets));
    assert_eq!(stream(&["access.theta=0.5"]).access, Access::Zipf { theta: 0.5 });
    assert_eq!(stream(&["access=sequential"]).access, Access::Sequential { shared: false });
    let table = "access={ kind = \"sequential\", shared = true }";
    assert_eq!(stream(&[table]).access, Access::Sequential { shared: true });
    let both = stream(&["access=sequential", "access.shared=true"]);
    assert_eq!(both.access, Access::Sequential { shared: true });
    assert_eq!(stream(&["sync.at_end=timed"]).sync.unwrap().at_end, SyncAtEnd::Timed);
    let write = ["operation=write", "sync=fdatasync", "sync.every=8"];
    assert_eq!(stream(&write).sync.unwrap().every, Some(8));
    assert_eq!(stream(&["sync=fsync", "sync=none"]).sync, None);
    assert_eq!(stream(&["region=50%"]).region.length, Bytes::mib(512));
    let suite = checked(&with("time = 1\naccess = \"zipf\"", &["access.theta=0.5,0.9"]));
    assert_eq!(axes(&suite), owned(&[("access.theta", &["0.5", "0.9"])]));
    let suite = checked(&with("time = 1\ngrid.access = [\"zipf\"]", &["access.theta=0.5"]));
    assert_eq!(suite.phases[0].cells[0].streams[0].access, Access::Zipf { theta: 0.5 });
    assert_eq!(axes(&suite), owned(&[("access", &["zipf theta=0.5"])]));
}

#[test]
fn overrides_drive_alternatives_out() {
    let only = |fields: &str, set: &str| only(&with(&format!("time = 1\n{fields}"), &[set]));
    let share = only("operation = \"read\"", "read_share=0.5");
    assert_eq!(share.mix.classes.len(), 2);
    let write = only("read_share = 0.5", "operation=write");
    assert_eq!(write.mix.classes, [class(1.0, Operation::Write, Bytes::kib(4))]);
    assert_eq!(
        only("access = \"zipf\"", "random_share=0.5").access,
        Access::Mixed { random_share: 0.5 }
    );
    let ended = only("bytes = \"1M\"", "time=none").stop;
    assert_eq!((ended.time, ended.bytes), (None, Some(Bytes::mib(1))));
}

#[test]
fn overrides_can_be_for_one_phase_or_stream() {
    let mut source = read(EVERYTHING);
    for set in
        ["together.time=7s", "writer.align=8K", "together.reader.think=0s", "mixes.threads=9"]
    {
        source.set(set).unwrap();
    }
    let suite = checked(&source);
    let phase = |name: &str| suite.phases.iter().find(|phase| phase.name == name).unwrap();
    let streams = &phase("together").cells[0].streams;
    assert_eq!(streams[0].stop.time, Some(Nanos::secs(7)));
    assert_eq!(streams[1].align, Bytes::kib(8));
    assert_eq!(streams[0].align, Bytes::kib(8), "its block size");
    assert_eq!(streams[0].pacing, Pacing::Closed { think: Nanos::ZERO, burst: 16 });
    assert_eq!(phase("mixes").cells[0].streams[0].threads, 9);
    assert_eq!(phase("patterns").cells[0].streams[0].stop.time, Some(Nanos::secs(10)));
    let refused = source
        .set("writer.threads=3")
        .and_then(|()| check(&source, &CheckContext::default()).map(|_| ()));
    assert_eq!(
        refused.unwrap_err().to_string(),
        "--set writer.threads=3: the grid varies `threads` for all streams of phase `together` together"
    );
}

#[test]
fn everything_is_as_it_was_written() {
    let suite = checked(&read(EVERYTHING));
    assert_eq!(suite.files.total(), Bytes::mib(256));
    assert_eq!(suite.files.data, Data::Compressible { random_share: 0.25 });
    assert_eq!(suite.description, "Two lines with \"quotes\" and a \\ backslash,\nand the second.");
    let counts: Vec<usize> = suite.phases.iter().map(|phase| phase.cells.len()).collect();
    assert_eq!(counts, [13 * 3, 1, 2 * 4, 3 * 3 * 2 * 3]);
    let fields: Vec<&str> = suite.phases[3].axes.iter().map(|axis| axis.field.as_str()).collect();
    assert_eq!(fields, ["threads", "writer.rate", "reader.access.theta", "region"]);
    let [reader, writer] = suite.phases[3].cells.last().unwrap().streams.as_slice() else {
        panic!("two streams")
    };
    assert_eq!(reader.access, Access::Zipf { theta: 0.99 });
    assert_eq!(writer.access, Access::Uniform);
    assert_eq!(writer.pacing, Pacing::Open { rate: 1000.5, arrivals: Arrivals::Fixed });
    assert_eq!((reader.region.start, reader.region.length), (Bytes::mib(32), Bytes::mib(8)));
    assert_eq!((writer.region.start, writer.region.length), (Bytes::mib(128), Bytes::mib(8)));
    let staggered = &suite.phases[1].cells[0].streams[0];
    assert_eq!((staggered.stop.time, staggered.stop.operations), (None, Some(100)));
    // Fill, two passes, nothing certain from the phases.
    assert_eq!(suite.bytes_written_least(), Bytes::mib(256 + 512 + 128));
}

#[test]
fn the_quick_form_of_everything() {
    let mut source = read(EVERYTHING);
    source.quick().unwrap();
    let suite = checked(&source);
    assert_eq!((suite.repeats, suite.caches.as_slice()), (1, [CacheStep::Purge].as_slice()));
    let patterns = &suite.phases[0];
    assert_eq!(patterns.cells.len(), 13);
    assert_eq!(patterns.cells[0].streams[0].stop.time, Some(Nanos::millis(50)));
    let together = &suite.phases[3];
    assert_eq!(together.cells.len(), 6);
    assert_eq!(together.cells[0].streams[0].stop.time, Some(Nanos::millis(100)));
    assert_eq!(
        together.cells[0].streams[1].pacing,
        Pacing::Open { rate: 50.0, arrivals: Arrivals::Fixed }
    );
}

#[test]
fn sizes_and_times_from_flags() {
    let mut source = phase("grid.time = [1, 2]");
    source.set_size(Bytes::new(1536)).unwrap();
    source.set_time(Nanos::new(1_500_000_001)).unwrap();
    source.set("block_size=512").unwrap();
    let suite = checked(&source);
    assert_eq!(suite.files.size, Bytes::new(1536));
    assert_eq!(only(&source).stop.time, Some(Nanos::new(1_500_000_001)));
    source.set_time(Nanos::ZERO).unwrap();
    let error = check(&source, &CheckContext::default()).unwrap_err();
    assert_eq!(error.to_string(), "--time 0s: `time` is `0s`, wanted more than 0");
}

#[test]
fn estimates() {
    let classic = |fields: &str| {
        let mut source = phase(fields);
        source.set_classic().unwrap();
        source
    };
    let least = |fields: &str| checked(&classic(fields)).least_duration();
    assert_eq!(least("time = 3\nramp = 2"), Nanos::secs(5));
    assert_eq!(least("time = 3\nbytes = 1"), Nanos::ZERO);
    assert_eq!(least("operations = 101\nrate = 100"), Nanos::secs(1));
    assert_eq!(least("time = \"500ms\"\noperations = 101\nrate = 100"), Nanos::millis(500));
    assert_eq!(least("time = 1\ngrid.threads = [1, 2, 3]"), Nanos::secs(3));
    let mut settling = classic("time = 3");
    settling.set("settle=2s").unwrap();
    settling.set("repeats=2").unwrap();
    assert_eq!(checked(&settling).least_duration(), Nanos::secs(10));
    let two = "[[phase.stream]]\nname = \"a\"\ntime = 1\n[[phase.stream]]\nname = \"b\"\ntime = 4";
    assert_eq!(least(two), Nanos::secs(4));
    let written = |fields: &str| {
        let mut source = classic(fields);
        source.set("fill=false").unwrap();
        checked(&source).bytes_written_least()
    };
    assert_eq!(written("operation = \"write\"\ntime = 1"), Bytes::ZERO);
    assert_eq!(written("operation = \"write\"\noperations = 10"), Bytes::kib(40));
    assert_eq!(written("operation = \"write\"\noperations = 10\nbytes = \"8K\""), Bytes::kib(8));
    assert_eq!(written("operations = 10"), Bytes::ZERO);
    let cell = checked(&phase("time = 3\nramp = 2\nbytes = 1")).phases[0].cells[0].clone();
    assert_eq!(cell.longest_duration(), Some(Nanos::secs(5)));
    // In rounds: three visits of 2 s and ramp; all of what ends by requests, three times.
    let in_rounds = |fields: &str| checked(&phase(fields));
    assert_eq!(in_rounds("time = 3\nramp = 2").least_duration(), Nanos::secs(12));
    let written = in_rounds("operation = \"write\"\noperations = 10").bytes_written_least();
    assert_eq!(written, Bytes::new((1 << 30) + 3 * 40 * 1024));
    assert!(!checked(&phase("time = 1")).writes());
    assert!(checked(&phase("time = 1\nread_share = 0.9")).writes());
}

#[test]
fn resolved_text_names_every_default() {
    let source = phase("time = 1");
    let text = resolved_text(&source).unwrap();
    for line in [
        "file_size = \"1GiB\"",
        "data = { kind = \"incompressible\" }",
        "access = { kind = \"uniform\" }",
        "block_size = \"4KiB\"",
        "rate = \"none\"",
        "time = \"1s\"",
    ] {
        assert!(text.lines().any(|l| l == line), "no `{line}` in\n{text}");
    }
}

#[test]
fn resolved_text_of_everything_means_the_same() {
    for quick in [false, true] {
        let mut source = read(EVERYTHING);
        if quick {
            source.quick().unwrap();
        }
        source.set("direct=true,false").unwrap_or_default();
        source.set("mixes.direct=false").unwrap();
        let text = resolved_text(&source).unwrap();
        let again = read(&text);
        assert_same(&checked(&again), &checked(&source), &text);
        assert_eq!(resolved_text(&again).unwrap(), text);
    }
}

#[test]
fn every_settable_field_can_be_set() {
    let mut samples: Vec<String> = Vec::new();
    for field in SuiteSource::settable() {
        let value = match field {
            "file_size" | "block_size" | "align" => "8KiB",
            "bytes" => "1MiB",
            "fill" | "direct" => "false",
            "data" => "zero",
            "precondition" => "[{ volume = 1 }]",
            "order" => "shuffled",
            "settle" | "think" | "ramp" | "time" => "2s",
            "method" => "classic",
            "rounds" => "{ precision = 0.02 }",
            "steady" | "before" | "streams" => continue, // A phase's own: set with its name in front.
            "caches" => "purge",
            "table" => "plain",
            "level" => "p99<10ms",
            "access" => "sequential",
            "read_share" | "random_share" => "0.5",
            "operation" => "write",
            "classes" => "[{ operation = \"read\" }]",
            "choice" => "interleave",
            "block_sizes" => "[\"4K\", \"8K\"]",
            "region" => "50%",
            "copy_to" => "512MiB",
            "directory" => "{ files = 7 }",
            "transactions" => "{ scale = 7 }",
            "duty" => "{ on = 1, off = 2 }",
            "stop" => "all",
            "last" => "whole",
            "start_file" => "keep",
            "spread" => "file-per-worker",
            "sync" => "fsync",
            "arrivals" => "fixed",
            "write_through" => "data",
            "backend" => "blocking",
            _ => "2",
        };
        samples.push(format!("{field}={value}"));
    }
    for set in &samples {
        // What changes nothing alone is refused alone.
        let company = match set.split('=').next() {
            Some("burst") => "time = 1\nthink = 1",
            Some("commit_writes") => {
                "time = 1\noperation = \"commit\"\naccess = \"sequential\"\nsync = \"fsync\""
            }
            Some("choice") => "time = 1\nread_share = 0.7",
            Some("sync" | "write_through") => "time = 1\noperation = \"write\"",
            Some("copy_to") => {
                "time = 1\nregion = \"25%\"\noperation = \"copy\"\ncopy_to = \"25%\""
            }
            Some("transactions") => {
                "time = 1\noperation = \"transaction\"\ntransactions = { load = \"tpcc\", scale = 9 }"
            }
            Some("directory") => "time = 1\noperation = \"stat\"\ndirectory = { files = 9 }",
            _ => "time = 1",
        };
        let source = with(company, &[set]);
        let mut fresh = checked(&source);
        let plain = checked(&phase(company));
        fresh.files.size = fresh.files.size.min(plain.files.size);
        let default =
            ["stop=all", "last=whole", "start_file=keep", "arrivals=fixed", "table=plain"];
        if !default.contains(&set.as_str()) && !set.starts_with("classes") {
            assert_ne!(fresh, plain, "`{set}` changed nothing");
        }
        let again = read(&resolved_text(&source).unwrap());
        assert_eq!(checked(&again), checked(&source), "{set}");
    }
}

#[test]
fn the_schema_knows_every_field() {
    let schema = serde_json::to_value(suite::json_schema()).unwrap();
    let text = schema.to_string();
    for field in SuiteSource::settable() {
        assert!(text.contains(&format!("\"{field}\"")), "no {field} in the schema");
    }
    for document in ["SuiteDocument", "ListDocument", "PartDocument"] {
        let part = &schema["$defs"][document];
        assert_eq!(
            part["additionalProperties"].as_bool().or(part["unevaluatedProperties"].as_bool()),
            Some(false),
            "{document}: {part:#}"
        );
    }
    let defaults = &schema["$defs"]["RawStream"];
    assert_eq!(defaults["additionalProperties"].as_bool(), Some(false));
}

/// The parts of the schema that hold it together; the whole is for editors.
#[test]
fn the_schema_asks_for_what_must_be_there() {
    let schema = serde_json::to_value(suite::json_schema()).unwrap();
    for (document, wanted) in [
        ("SuiteDocument", &["name", "phase", "schema"][..]),
        ("ListDocument", &["name", "part", "schema"][..]),
        ("PartDocument", &["suite"][..]),
    ] {
        let required = schema["$defs"][document]["required"].as_array().unwrap();
        let mut required: Vec<&str> = required.iter().filter_map(|v| v.as_str()).collect();
        required.sort_unstable();
        assert_eq!(required, wanted, "{document}");
    }
    assert_eq!(schema["anyOf"].as_array().unwrap().len(), 2);
    assert_eq!(schema["$defs"]["RawStream"]["required"], serde_json::Value::Null);
    assert!(!schema.to_string().contains("null"), "TOML has no null");
    let phase = &schema["$defs"]["PhaseDocument"];
    assert_eq!(phase["required"], serde_json::json!(["name"]));
    assert!(phase["properties"]["threads"].is_object() && phase["properties"]["grid"].is_object());
}

/// As the run has them: what does not fit is refused by whoever only looks at it, too.
#[test]
fn files_are_as_long_as_they_can_be_used() {
    let of = |size: &str, fields: &str| {
        let mut source = phase(fields);
        source.set(&format!("file_size={size}")).unwrap();
        source
    };
    let files = |size: &str, fields: &str| {
        let files = checked(&of(size, fields)).files;
        (files.size.get(), files.asked.map(Bytes::get))
    };
    let buffered = "operations = 1\ndirect = false";
    assert_eq!(files("3000320B", buffered), (3_000_320, None));
    assert_eq!(files("3000320B", "operations = 1"), (2_998_272, Some(3_000_320)));
    assert_eq!(files("2998272B", "operations = 1"), (2_998_272, None));
    // Nothing would be left of it.
    assert_eq!(files("1536B", "operations = 1\nblock_size = 512"), (1536, None));
    let mut several = of("3000320B", buffered);
    several.set("file_count=2").unwrap();
    assert_eq!(checked(&several).files.asked, Some(Bytes::new(3_000_320)));
    let mut stamped = of("3000320B", buffered);
    stamped.set("data=self-describing").unwrap();
    assert_eq!(checked(&stamped).files.asked, Some(Bytes::new(3_000_320)));
    let before = "operations = 1\ndirect = false\n[phase.before]\noperations = 1\ndirect = true";
    assert_eq!(files("3000320B", before).1, Some(3_000_320));
    // A copy up to the end asked for.
    let copy = "operation = \"copy\"\naccess = \"sequential\"\nblock_size = \"512B\"\n\
                region = { start = \"0B\", length = \"1MiB\" }\ncopy_to = \"1951744B\"\nbytes = \"1MiB\"\n";
    let error = check(&of("3000320B", copy), &CheckContext::default()).unwrap_err();
    assert!(
        error.to_string().contains("end of the copy `2930KiB` is more than the files' `2928KiB`"),
        "{error}"
    );
    let hint = error.hint().unwrap();
    assert_eq!(hint, "of a file of `2930KiB` direct I/O and the like use `2928KiB`");
    checked(&of("3000320B", &format!("{copy}direct = false")));
}

/// What is written as a list of requests can be read again.
#[test]
fn long_suites_are_read_up_to_a_limit() {
    let of = |bytes: usize| {
        let text = "schema = 1\nname = \"t\"\n[[phase]]\nname = \"main\"\noperations = 1\n# ";
        format!("{text}{}\n", "x".repeat(bytes))
    };
    checked(&read(&of(18 << 20)));
    let error = parse(&of(suite::TEXT_BYTES_MAX), "t.toml").unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("t.toml:1: a suite of `2097"), "{told}");
    assert!(told.ends_with("B` is too long, wanted at most `20MiB`"), "{told}");
    assert!(error.hint().unwrap().contains("several suites"));
    // With every default it may be longer, and is stored so.
    let head = "schema = 1\nname = \"t\"\ntitle = \"";
    let text = format!(
        "{head}{}\"\n[[phase]]\nname = \"main\"\noperations = 1\n",
        "\u{200b}".repeat(4 << 20)
    );
    let error = resolved_text(&read(&text)).unwrap_err();
    assert!(error.to_string().contains("is too long, wanted at most `20MiB`"), "{error}");
}

/// Reading a region through prepares what is measured after it: cut short it leaves a cache half full.
#[test]
fn a_time_for_all_leaves_whole_what_ends_by_amount_beside_what_ends_by_time() {
    let text = "schema = 1\nname = \"x\"\nmethod = \"classic\"\nfile_size = \"64MiB\"\n\
                [defaults]\noperation = \"read\"\nblock_size = \"4KiB\"\n\
                [[phase]]\nname = \"warm\"\nbytes = \"64MiB\"\n\
                [[phase]]\nname = \"read\"\ntime = \"10s\"\n";
    let times = |text: &str| {
        let mut source = read(text);
        source.set_time(Nanos::secs(5)).unwrap();
        let suite = checked(&source);
        let cells = suite.phases.iter().flat_map(|phase| &phase.cells);
        cells.map(|cell| cell.streams[0].stop.time).collect::<Vec<_>>()
    };
    assert_eq!(times(text), [None, Some(Nanos::secs(5))]);
    // Named, or where nothing has a time of its own, it is meant.
    let bytes_only = text.replace("time = \"10s\"", "bytes = \"64MiB\"");
    assert_eq!(times(&bytes_only), [Some(Nanos::secs(5)); 2]);
}
