//! Streams that make, look at and remove whole files.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use suite::model::{Backend, Directory, Names, Operation, Stream};
use suite::{CheckContext, SuiteSource, check, parse, resolved_text};
use units::Bytes;

fn text(phase: &str) -> String {
    format!("schema = 1\nname = \"t\"\n[[phase]]\nname = \"main\"\n{phase}\n")
}

fn source(phase: &str) -> SuiteSource {
    parse(&text(phase), "t.toml").unwrap()
}

fn stream(source: &SuiteSource) -> Stream {
    let suite = check(source, &CheckContext::default()).unwrap();
    suite.phases[0].cells[0].streams[0].clone()
}

fn refusal(phase: &str) -> String {
    let checked = parse(&text(phase), "t.toml").and_then(|s| check(&s, &CheckContext::default()));
    let Err(error) = checked else { panic!("this was accepted: {phase}") };
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

#[test]
fn the_directory_has_defaults_and_ends_what_can_be_done_once() {
    let plain = stream(&source("operation = \"create\"\ndirectory = { files = 100 }"));
    let wanted = Directory { files: 100, names: Names::Sequential, file_size: Bytes::ZERO };
    assert_eq!(plain.directory(), Some(wanted));
    assert_eq!(plain.stop.operations, Some(100));
    assert_eq!((plain.direct, plain.backend), (false, Backend::Auto));
    assert!(plain.modifies());
    let fewer = "operation = \"delete\"\ndirectory = { files = 100 }\noperations = 30";
    assert_eq!(stream(&source(fewer)).stop.operations, Some(30));
    let more = "operation = \"delete\"\ndirectory = { files = 100 }\noperations = 300";
    assert_eq!(stream(&source(more)).stop.operations, Some(100));
    let timed = "operation = \"create\"\ndirectory = { files = 100 }\ntime = 9";
    assert_eq!(stream(&source(timed)).stop.operations, Some(100));
}

#[test]
fn looking_can_go_on_after_one_time_round() {
    let look = |rest: &str| {
        let phase = format!("operation = \"stat\"\ndirectory = {{ files = 100 }}\n{rest}");
        stream(&source(&phase)).stop
    };
    assert_eq!(look("").operations, Some(100));
    assert_eq!(look("time = 9").operations, None);
    assert_eq!(look("operations = 250").operations, Some(250));
    assert_eq!(look("bytes = 250").operations, Some(100), "empty files have none");
    // It changes nothing, but what is looked at has to be made.
    assert!(stream(&source("operation = \"stat\"\ndirectory = { files = 1 }")).modifies());
}

#[test]
fn the_length_of_the_files_is_that_of_the_requests() {
    for (op, length) in [("create", 5000), ("stat", 5000), ("delete", 0)] {
        let directory = "directory = { files = 9, file_size = 5000, names = \"random\" }";
        let stream = stream(&source(&format!("operation = \"{op}\"\n{directory}")));
        assert_eq!(stream.mix.classes.len(), 1);
        assert_eq!(stream.block_size_max(), Bytes::new(length), "{op}");
        assert_eq!(stream.directory().unwrap().names, Names::Random);
    }
    let large = "file_size = \"1GiB\", files = 1";
    let phase = format!("operation = \"create\"\ndirectory = {{ {large} }}\nregion = \"1MiB\"");
    assert_eq!(stream(&source(&phase)).block_size_max(), Bytes::gib(1), "the region is another's");
}

#[test]
fn details_are_set_one_by_one_and_unset() {
    let mut source = source("operation = \"create\"\ndirectory = { files = 100 }");
    for set in ["directory.files=7", "directory.names=random", "directory.file_size=1K"] {
        source.set(set).unwrap();
    }
    let wanted = Directory { files: 7, names: Names::Random, file_size: Bytes::kib(1) };
    assert_eq!(stream(&source).directory(), Some(wanted));
    source.set("operation=read").unwrap();
    source.set("operations=5").unwrap();
    let refused = check(&source, &CheckContext::default()).unwrap_err().to_string();
    assert!(refused.contains("no file is made, looked at or removed as a whole"), "{refused}");
    source.set("directory=none").unwrap();
    assert_eq!(stream(&source).directory(), None);
    assert_eq!(stream(&source).mix.classes[0].op, Operation::Read);
}

#[test]
fn it_can_be_an_axis_and_reads_back() {
    let mut source = source("operation = \"create\"\ndirectory = { files = 100 }");
    source.set("directory.files=10,1000").unwrap();
    let suite = check(&source, &CheckContext::default()).unwrap();
    let files = suite.cells().map(|cell| cell.streams[0].directory().unwrap().files);
    assert_eq!(files.collect::<Vec<_>>(), [10, 1000]);
    let text = resolved_text(&source).unwrap();
    let again = parse(&text, "resolved").unwrap();
    assert_eq!(check(&again, &CheckContext::default()).unwrap(), suite, "{text}");
    assert_eq!(resolved_text(&again).unwrap(), text);
}

#[test]
fn what_cannot_be_is_refused() {
    let directory = "directory = { files = 100 }";
    for (phase, wanted) in [
        (
            "operation = \"create\"".to_owned(),
            "t.toml:5: operation `create` needs a `directory`, such as { files = 16384 }",
        ),
        (
            "operation = \"stat\"\ndirectory = { names = \"random\" }".to_owned(),
            "t.toml:6: `directory` needs a number of `files`",
        ),
        (
            "operation = \"stat\"\ndirectory = { files = 0 }".to_owned(),
            "t.toml:6: `directory.files` is `0`, wanted 1 to 10000000",
        ),
        (
            "operation = \"create\"\ndirectory = { files = 2, file_size = \"2GiB\" }".to_owned(),
            "t.toml:6: `directory.file_size` is `2GiB`, wanted 0B to 1GiB",
        ),
        (
            format!(
                "classes = [{{ operation = \"create\" }}, {{ operation = \"read\" }}]\n{directory}"
            ),
            "t.toml:3: operation `create` needs a stream of its own",
        ),
        (
            format!(
                "access = {{ kind = \"replay\", requests = [{{ op = \"delete\" }}] }}\n{directory}"
            ),
            "t.toml:3: operation `delete` needs a stream of its own",
        ),
        (
            format!("operation = \"delete\"\nbackend = \"io-uring\"\n{directory}"),
            "t.toml:6: `backend = \"io-uring\"` and `operation = \"delete\"` exclude each other; leave `backend` out: it is done by blocking calls",
        ),
        (
            format!("operation = \"create\"\nsync = \"sync-range\"\n{directory}"),
            "t.toml:6: sync of operation `create` needs `fsync` or `fdatasync`: a directory has no ranges",
        ),
        (
            format!(
                "operation = \"create\"\n{directory}\n[[phase.stream]]\nname = \"a\"\n\
                 [[phase.stream]]\nname = \"b\""
            ),
            "t.toml:3: a directory in which two streams work together needs other `names` for each",
        ),
        (
            format!("time = 1\n[phase.before]\noperation = \"create\"\n{directory}"),
            "t.toml:3: operation `create` in `before` needs a phase of its own",
        ),
    ] {
        assert_eq!(refusal(&phase), wanted, "{phase}");
    }
}
