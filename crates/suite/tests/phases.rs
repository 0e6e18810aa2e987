//! What a phase has besides the fields of its streams, and files that begin empty.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use suite::model::{CacheStep, Operation, Precondition, StartFile, Stream, Suite};
use suite::{CheckContext, SuiteSource, check, parse, resolved_text};
use units::{Bytes, Nanos};

fn source(head: &str, phases: &str) -> SuiteSource {
    let text = format!("schema = 1\nname = \"t\"\n{head}\n{phases}");
    parse(&text, "t.toml").unwrap_or_else(|error| panic!("{error}"))
}

/// Checked, and the same after it was written down and read again.
fn checked(source: &SuiteSource) -> Suite {
    let suite = check(source, &CheckContext::default()).unwrap_or_else(|e| panic!("{e}"));
    let text = resolved_text(source).unwrap();
    let again = parse(&text, "resolved").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(check(&again, &CheckContext::default()).unwrap(), suite, "{text}");
    assert_eq!(resolved_text(&again).unwrap(), text);
    suite
}

fn says(phases: &str) -> String {
    let text = format!("schema = 1\nname = \"t\"\n{phases}");
    match parse(&text, "t.toml").and_then(|source| check(&source, &CheckContext::default())) {
        Ok(_) => panic!("it was taken"),
        Err(error) => error.to_string(),
    }
}

const TWO: &str = "[[phase]]\nname = \"a\"\ntime = 1\nsettle = 2\ncaches = \"purge\"\n\
                   precondition = [{ trim = true }, { random = true, volume = 0.5 }]\n\
                   [[phase]]\nname = \"b\"\ntime = 1\n";

#[test]
fn a_phase_has_its_own_and_what_it_leaves_out_is_the_suites() {
    let suite = checked(&source("settle = \"5s\"\ncaches = [\"flush\", \"drop\"]", TWO));
    let [a, b] = suite.phases.as_slice() else { panic!("two phases") };
    assert_eq!((a.settle, b.settle), (Nanos::secs(2), Nanos::secs(5)));
    assert_eq!(a.caches, [CacheStep::Purge]);
    assert_eq!(b.caches, [CacheStep::Flush, CacheStep::Drop]);
    let written = Precondition::Write { random: true, block_size: Bytes::kib(128), volume: 0.5 };
    assert_eq!(a.precondition, [Precondition::Trim, written]);
    assert!(b.precondition.is_empty() && suite.files.precondition.is_empty());
    assert_eq!(suite.bytes_written_least(), Bytes::new((1 << 30) + (1 << 29)), "fill and half");
}

#[test]
fn they_are_set_with_the_name_of_the_phase() {
    let mut of_two = source("", TWO);
    for set in ["a.settle=7s", "b.caches=flush,purge", "a.precondition=[]", "caches=drop"] {
        of_two.set(set).unwrap_or_else(|error| panic!("{error}"));
    }
    let suite = checked(&of_two);
    assert_eq!(suite.phases[0].settle, Nanos::secs(7));
    assert_eq!(suite.phases[0].caches, [CacheStep::Purge], "what is nearer wins");
    assert_eq!(suite.phases[1].caches, [CacheStep::Flush, CacheStep::Purge]);
    assert!(suite.phases[0].precondition.is_empty());
    assert_eq!(suite.caches, [CacheStep::Drop]);
}

const SCAN: &str = "[[phase]]\nname = \"scan\"\naccess = \"sequential\"\nqueue_depth = 4\n\
                    grid.threads = [1, 2]\ngrid.block_size = [\"64KiB\", \"1MiB\"]\n\
                    [phase.before]\nqueue_depth = 32\naccess = \"uniform\"\nthreads = 3\n\
                    bytes = \"16MiB\"\n";

fn before(suite: &Suite, cell: usize) -> &Stream {
    suite.phases[0].cells[cell].before.as_ref().unwrap()
}

#[test]
fn the_stream_before_has_the_rest_from_phase_and_grid() {
    let head = "[defaults]\ntime = \"10s\"\nramp = 1\ndirect = false\n";
    let mut scan = source(head, SCAN);
    let suite = checked(&scan);
    for (cell, kib) in [(0, 64), (1, 1024), (2, 64), (3, 1024)] {
        let before = before(&suite, cell);
        assert_eq!(before.mix.block_size(), Some(Bytes::kib(kib)), "the grid's");
        assert_eq!((before.threads, before.queue_depth), (3, 32), "its own");
        assert!(!before.direct, "from below");
        let stop = before.stop;
        assert_eq!((stop.time, stop.ramp, stop.bytes), (None, Nanos::ZERO, Some(Bytes::mib(16))));
    }
    assert_eq!(suite.phases[0].cells[3].streams[0].queue_depth, 4);
    assert!(!suite.writes());
    for set in ["scan.before.operation=write", "queue_depth=8", "time=3s", "direct=true"] {
        scan.set(set).unwrap();
    }
    scan.set("scan.before.block_size=8KiB").unwrap();
    let suite = checked(&scan);
    assert!(suite.writes(), "what is not counted writes all the same");
    let first = before(&suite, 1);
    assert_eq!(first.mix.block_size(), Some(Bytes::kib(8)));
    assert_eq!((first.queue_depth, first.direct, first.stop.time), (32, true, None));
    assert_eq!(suite.phases[0].cells[0].streams[0].queue_depth, 8);
    scan.set("scan.before=none").unwrap();
    assert!(checked(&scan).phases[0].cells.iter().all(|cell| cell.before.is_none()));
}

#[test]
fn what_it_sets_takes_the_place_of_what_the_grid_varies() {
    let mix = "[[phase]]\nname = \"mix\"\ntime = 1\ngrid.read_share = [1, 0.5]\n\
               [phase.before]\noperation = \"write\"\noperations = 3\n";
    for cell in &checked(&source("", mix)).phases[0].cells {
        let before = cell.before.as_ref().unwrap();
        assert_eq!(before.mix.classes[0].op, Operation::Write);
        assert_eq!(before.mix.classes.len(), 1);
    }
    let same = mix.replace("operation = \"write\"\n", "");
    let suite = checked(&source("", &same));
    let classes = |cell: usize| before(&suite, cell).mix.classes.len();
    assert_eq!((classes(0), classes(1)), (1, 2));
}

const THREE: &str = "[[phase]]\nname = \"p\"\ntime = 1\n[phase.grid]\n\
                     streams = [\"a\", [\"c\", \"a\"], \"all\"]\nb.threads = [1, 2]\n\
                     [[phase.stream]]\nname = \"a\"\n[[phase.stream]]\nname = \"b\"\n\
                     [[phase.stream]]\nname = \"c\"\n";

fn playing(suite: &Suite) -> Vec<String> {
    let names = |cell: &suite::model::Cell| {
        cell.streams.iter().map(|stream| stream.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    suite.phases[0].cells.iter().map(names).collect()
}

#[test]
fn an_axis_says_which_streams_run() {
    let mut three = source("", THREE);
    let suite = checked(&three);
    assert_eq!(suite.phases[0].axes[0].values, ["a", "a+c", "all"]);
    assert_eq!(playing(&suite), ["a", "a", "a c", "a c", "a b c", "a b c"]);
    three.set("streams=b,all").unwrap();
    assert_eq!(playing(&checked(&three)), ["b", "b", "a b c", "a b c"]);
    three.set("p.streams=c").unwrap();
    assert_eq!(playing(&checked(&three)), ["c", "c"]);
    three.set("p.streams=[[\"a\", \"b\"], \"c\"]").unwrap();
    assert_eq!(playing(&checked(&three)), ["a b", "a b", "c", "c"]);
    let error =
        three.set("streams=d").and_then(|()| check(&three, &CheckContext::default()).map(drop));
    assert!(error.unwrap_err().to_string().contains("`d`"));
}

#[test]
fn streams_that_are_not_there_cannot_run() {
    let bad = |value: &str| says(&THREE.replace("\"a\", [\"c\", \"a\"], \"all\"", value));
    assert_eq!(bad("\"a\", \"x\""), "t.toml:7: `streams` is `x`, wanted `a`, `b`, `c` or `all`");
    assert!(bad("[]").contains("`streams` needs the name of a stream"), "{}", bad("[]"));
    assert!(bad("3").contains("the number 3"), "{}", bad("3"));
    assert!(bad("\"a\", [\"a\"]").contains("comes twice"), "{}", bad("\"a\", [\"a\"]"));
    assert!(bad("").contains("is empty"), "{}", bad(""));
    let mut plain = source("", "[[phase]]\nname = \"p\"\ntime = 1\n");
    let error = plain.set("streams=p").unwrap_err().to_string();
    assert!(error.contains("`streams` needs the name of a phase in front"), "{error}");
}

const MATRIX: &str = "[[phase]]\nname = \"m\"\ntime = 1\n\
                      steady = { round = 2, track = { block_size = \"4K\", read_share = 0 } }\n\
                      grid.read_share = [1, 0.5, 0]\ngrid.block_size = [\"8KiB\", \"4KiB\"]\n";

#[test]
fn one_cell_of_a_grid_decides_when_it_is_steady() {
    let mut matrix = source("", MATRIX);
    let suite = checked(&matrix);
    let steady = suite.phases[0].steady.unwrap();
    assert_eq!((steady.track, steady.round, steady.rounds_max), (5, Nanos::secs(2), 25));
    assert_eq!((suite.visits_least(), suite.visits_most()), (60, 150));
    let played = suite.cells_as_played();
    assert!(played.iter().all(|cell| cell.streams[0].stop.time == Some(Nanos::secs(2))));
    assert_eq!(suite.duration_of_rounds(1), Nanos::secs(2 * 6 * 10), "ten rounds at least");
    // What takes an axis away leaves the rest of the name.
    matrix.set("block_size=16KiB").unwrap();
    assert_eq!(checked(&matrix).phases[0].steady.unwrap().track, 2);
    matrix.set("m.steady.track={ read_share = 0.5 }").unwrap();
    assert_eq!(checked(&matrix).phases[0].steady.unwrap().track, 1);
}

#[test]
fn a_cell_that_is_not_on_the_grid_cannot_decide() {
    let track = |track: &str| {
        says(&MATRIX.replace("track = { block_size = \"4K\", read_share = 0 }", track))
    };
    assert_eq!(
        track("volume = 1"),
        "t.toml:6: `steady` in phase `m` needs one cell, or `track` to say which of the 6 decides"
    );
    let half = track("track = { block_size = \"4K\" }");
    assert!(half.ends_with("`steady.track` needs a value for `read_share`"), "{half}");
    let other = track("track = { block_size = \"2K\", read_share = 0 }");
    assert!(other.contains("wanted a value of the grid: 8KiB, 4KiB"), "{other}");
    let stray = track("track = { blocksize = \"4K\", read_share = 0 }");
    assert!(stray.contains("unknown key `blocksize`"), "{stray}");
}

const NEW: &str = "[[phase]]\nname = \"w\"\noperation = \"write\"\naccess = \"sequential\"\n\
                   bytes = \"1MiB\"\nstart_file = \"remove\"\n";

#[test]
fn files_begin_empty_for_streams_that_write_all_of_them() {
    let suite = checked(&source("", NEW));
    assert_eq!(suite.phases[0].cells[0].start_file(), StartFile::Remove);
    for (change, why) in [
        (("operation = \"write\"", "operation = \"read\""), "a stream that only writes"),
        (("operation = \"write\"", "read_share = 0.5"), "a stream that only writes"),
        (("operation = \"write\"", "operation = \"update\""), "a stream that only writes"),
        (("bytes", "region = \"50%\"\nbytes"), "the whole of the files"),
        (("bytes", "backend = \"mmap\"\ndirect = false\nbytes"), "exclude each other"),
    ] {
        let said = says(&NEW.replace(change.0, change.1));
        assert!(said.contains(why), "{said}");
    }
    let beside = NEW.replace("name = \"w\"\n", "name = \"p\"\n[[phase.stream]]\nname = \"w\"\n")
        + "[[phase.stream]]\nname = \"r\"\ntime = 1\n";
    let said = says(&beside);
    assert!(
        said.contains("`start_file` beside stream `r` needs only streams that write"),
        "{said}"
    );
    // What is played before such a visit begins no file anew.
    let before = format!("{NEW}before = {{ operations = 1 }}\n");
    let suite = checked(&source("", &before));
    assert_eq!(before_of(&suite).start_file, StartFile::Keep);
}

fn before_of(suite: &Suite) -> &Stream {
    before(suite, 0)
}

#[test]
fn what_stands_in_the_wrong_place_is_said() {
    let of = |line: &str| says(&format!("[[phase]]\nname = \"p\"\ntime = 1\n{line}\n"));
    assert!(of("before = 3").contains("`before` is the number 3, wanted a table"));
    assert!(of("before = {}").contains("nothing ends stream `before`"));
    assert!(of("before = { operation = \"read\", read_share = 1 }").contains("exclude each other"));
    assert!(of("before = { grid = 1 }").contains("unknown key `grid`"));
    assert!(of("settle = \"2000h\"\nsettle = 1").contains("comes twice"));
    assert!(of("settle = \"20000h\"").contains("at most a year"));
    assert!(of("caches = [\"wash\"]").contains("`wash`"));
    assert!(of("fill = false").contains("cannot stand here"));
    let trim = of("precondition = [{ trim = true, volume = 2 }]");
    assert!(trim.contains("`volume` means nothing for a pass that trims"), "{trim}");
    let mut source = source("", THREE);
    let error = source.set("p.a.settle=1s").unwrap_err();
    assert_eq!(error.hint().as_deref(), Some("it belongs to a phase, not to a stream of it"));
    let error = source.set("before.bytes=1MiB").unwrap_err().to_string();
    assert!(error.contains("`before` needs the name of a phase in front"), "{error}");
}
