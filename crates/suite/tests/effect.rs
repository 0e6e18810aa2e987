//! Settings that change nothing are refused where they are set on top of a suite, and doubted in
//! its text.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use suite::{CheckContext, Found, SuiteSource, builtin, builtin_lists, check, doubts, parse, read};
use suite::{find_builtin, resolved_text};

fn source(phase: &str) -> SuiteSource {
    let text =
        format!("schema = 1\nname = \"t\"\n[[phase]]\nname = \"main\"\ntime = \"1s\"\n{phase}\n");
    parse(&text, "t.toml").unwrap()
}

/// What is said when all of this is set; nothing if it is taken.
fn said(mut source: SuiteSource, sets: &[&str]) -> Option<String> {
    for set in sets {
        source.set(set).unwrap();
    }
    let error = check(&source, &CheckContext::default()).err()?;
    Some(format!("{error}\nhint: {}", error.hint().unwrap_or_default()))
}

const CLASSES: &str = "classes = [{ operation = \"read\", block_size = \"8K\" }, { operation = \
                       \"write\", block_size = \"16K\", weight = 2 }]";
const LINES: &str = "classes = [{ operation = \"read\", block_size = \"8K\", align = 512, \
                     random_share = 0.5 }]";
const REPLAY: &str =
    "access = { kind = \"replay\", requests = [{ op = \"read\", length = 4096 }] }";
const FILES: &str = "operation = \"stat\"\ndirectory = { files = 10 }";
const MAPPED: &str = "backend = \"mmap\"\ndirect = false";

#[test]
fn what_is_set_in_vain_is_refused() {
    let cases = [
        (CLASSES, "block_size=16KiB", "every class has a `block_size` of its own"),
        (CLASSES, "block_size=4KiB", "every class has a `block_size` of its own"),
        (CLASSES, "block_size=4K,16K", "every class has a `block_size` of its own"),
        (LINES, "align=4K", "every class has an `align` of its own"),
        (LINES, "random_share=0.3", "every class has a `random_share` of its own"),
        (LINES, "access=sequential", "every class has a `random_share` of its own"),
        (REPLAY, "block_size=8K", "a list of requests is replayed"),
        (REPLAY, "read_share=0.5", "a list of requests is replayed"),
        (REPLAY, "choice=interleave", "a list of requests is replayed"),
        (FILES, "block_size=8K", "files are made, looked at and removed whole"),
        (FILES, "region=50%", "files are made, looked at and removed whole"),
        (FILES, "access.kind=sequential", "files are made, looked at and removed whole"),
        (MAPPED, "queue_depth=4", "loads and stores through a mapping block"),
        (MAPPED, "queue_depth=1,4", "loads and stores through a mapping block"),
        ("", "copy_to=50%", "nothing is copied"),
        ("", "directory.files=10", "no file is made, looked at or removed as a whole"),
        ("", "choice=interleave", "all requests are of one kind"),
        ("", "burst=8", "there is no pause after it"),
        ("", "write_through=data", "nothing is written"),
        ("", "sync=fsync", "nothing is written, so nothing is flushed"),
        ("", "main.burst=8", "there is no pause after it"),
    ];
    for (phase, set, why) in cases {
        let said = said(source(phase), &[set]).unwrap_or_default();
        let field = set.split(['=', ',']).next().unwrap().trim_start_matches("main.");
        let wanted = format!("--set {set}: `{field}` changes nothing here: {why}");
        assert!(said.starts_with(&wanted), "{phase}\n{set}: {said}");
        assert!(!said.ends_with("hint: "), "{said}");
    }
}

#[test]
fn what_does_something_somewhere_is_taken() {
    let cases = [
        (CLASSES, &["align=512"][..]),
        (CLASSES, &["access=sequential"]),
        (CLASSES, &["choice=interleave"]),
        ("", &["operation=write", "sync=fsync", "write_through=data"]),
        ("", &["sync.at_end=timed"]),
        ("", &["think=1ms", "burst=8"]),
        ("", &["read_share=1,0.5", "choice=interleave"]),
        ("", &["read_share=1,0", "sync=fsync"]),
        ("operation = \"fsync\"", &["block_size=8K"]),
        (FILES, &["queue_depth=4", "directory.files=20", "threads=2"]),
        // As good as not set.
        ("", &["copy_to=none", "directory=none", "choice=dice", "burst=1", "sync=none"]),
        ("", &["write_through=no"]),
        (MAPPED, &["queue_depth=1"]),
        // The last one wins.
        ("", &["burst=8", "burst=1"]),
        ("", &["main.copy_to=50%", "copy_to=none"]),
    ];
    for (phase, sets) in cases {
        assert_eq!(said(source(phase), sets), None, "{phase}\n{sets:?}");
    }
    // In one of two phases, or in one of two streams.
    let two =
        "operation = \"read\"\n[[phase]]\nname = \"other\"\ntime = \"1s\"\noperation = \"write\"";
    assert_eq!(said(source(two), &["sync=fsync"]), None);
    assert!(said(source(two), &["main.sync=fsync"]).is_some());
    let two = "[[phase.stream]]\nname = \"log\"\noperation = \"write\"\n[[phase.stream]]\nname = \"reads\"";
    assert_eq!(said(source(two), &["sync=fsync"]), None);
    assert_eq!(said(source(two), &["log.sync=fsync"]), None);
    assert!(said(source(two), &["reads.sync=fsync"]).is_some());
}

#[test]
fn an_axis_that_an_override_leaves_nothing_to_vary_is_refused() {
    let grid = "[phase.grid]\nblock_size = [\"4K\", \"8K\"]";
    let classes = CLASSES.replace(" = [", "=[");
    let refused = said(source(grid), &[&classes]).unwrap();
    assert!(refused.starts_with("t.toml:7: `block_size` changes nothing here"), "{refused}");
    // Then one value leaves one cell, and that is something.
    assert_eq!(said(source(grid), &[&classes, "block_size=8K"]), None);
    let refused = said(source(&format!("{MAPPED}\n[phase.grid]\nthreads = [1, 2]")), &[]);
    assert_eq!(refused, None);
}

#[test]
fn cells_that_differ_in_name_only_are_refused() {
    let streams = "[phase.grid]\nqueue_depth = [1, 4]\n[[phase.stream]]\nname = \"log\"";
    let refused = said(source(streams), &["log.queue_depth=8,16"]).unwrap();
    assert!(refused.contains("varies `queue_depth` for all streams"), "{refused}");
    for twice in ["queue_depth=4,4", "block_size=4096,4K", "read_share=1,1.0"] {
        let refused = said(source(""), &[twice]).unwrap();
        assert!(refused.contains("comes twice"), "{twice}: {refused}");
    }
}

#[test]
fn a_text_is_doubted_and_played_all_the_same() {
    let grid = format!(
        "{CLASSES}\nblock_size = \"64K\"\nburst = 1\n[phase.grid]\nblock_size = [\"4K\", \"8K\"]"
    );
    let source = source(&grid);
    check(&source, &CheckContext::default()).unwrap();
    let told: Vec<_> = doubts(&source).iter().map(ToString::to_string).collect();
    let why = "changes nothing here: every class has a `block_size` of its own";
    assert_eq!(
        told,
        [format!("t.toml:10: `block_size` {why}"), format!("t.toml:7: `block_size` {why}")]
    );
    let mut longer = source;
    longer.set("threads=2").unwrap();
    check(&longer, &CheckContext::default()).unwrap();
    // What is so by default is written down, and deceives nobody.
    let text = resolved_text(&longer).unwrap();
    let again = parse(&text.replace("\"64KiB\"", "\"4KiB\""), "again").unwrap();
    assert_eq!(doubts(&again).len(), 1, "only the axis:\n{text}");
}

#[test]
fn no_suite_of_ours_sets_anything_in_vain() {
    for found in builtin() {
        let mut source = parse(found.text, found.file).unwrap();
        assert!(doubts(&source).is_empty(), "{}: {:?}", found.name, doubts(&source));
        if source.has_quick() {
            source.quick().unwrap();
            // A short form has few rounds where the rule wants ten, which is said.
            let short = |error: &suite::SuiteError| {
                !matches!(error.problem(), suite::Problem::NeverSteady { .. })
            };
            assert!(!doubts(&source).iter().any(short), "{} --quick", found.name);
            check(&source, &CheckContext::default()).unwrap();
        }
    }
    for found in builtin_lists() {
        let Found::Parts(list) = read(found.text, found.file).unwrap() else { unreachable!() };
        for part in list.parts() {
            let suite = find_builtin(&part.suite).unwrap();
            let mut source = parse(suite.text, suite.file).unwrap();
            list.set(part, &mut source).unwrap();
            check(&source, &CheckContext::default()).unwrap();
        }
    }
}

/// What is doubted of a steady phase, with its hint.
fn steady_doubts(phase: &str, sets: &[&str]) -> Vec<String> {
    let mut source = source(phase);
    for set in sets {
        source.set(set).unwrap();
    }
    check(&source, &CheckContext::default()).unwrap();
    let told = doubts(&source);
    told.iter().map(|e| format!("{e}\nhint: {}", e.hint().unwrap_or_default())).collect()
}

#[test]
fn what_can_never_be_steady_is_doubted() {
    let few = "phase `main` can never be called steady: it has 6 rounds at most, and the rule looks \
               at the last half of at least 10\nhint: set `steady.rounds_max` to 10 or more";
    assert_eq!(
        steady_doubts("operation = \"write\"\nsteady = { rounds_max = 6 }", &[]),
        [format!("t.toml:7: {few}")]
    );
    assert_eq!(
        steady_doubts("operation = \"write\"\nsteady = {}", &["main.steady.rounds_max=6"]),
        [format!("--set main.steady.rounds_max=6: {few}")]
    );
    assert!(steady_doubts("steady = { rounds_max = 10 }", &[]).is_empty());
    assert!(steady_doubts("operation = \"write\"\nsteady = {}", &[]).is_empty());
}

#[test]
fn a_volume_that_cannot_be_written_is_doubted() {
    let why = "phase `main` can never be called steady: its 25 rounds write";
    // 1 GiB twice, and 100 requests of 4 KiB a second for 250 s.
    let slow = "operation = \"write\"\nrate = 100\nsteady = { volume = 2 }";
    let told = steady_doubts(slow, &[]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains(why) && told[0].contains("`volume` wants 2 GiB"), "{told:?}");
    assert!(steady_doubts(slow, &["rate=10000"]).is_empty());
    let counted = "operation = \"write\"\noperations = 10\nsteady = {}";
    assert!(steady_doubts(counted, &[]).first().is_some_and(|text| text.contains(why)));
    let trims = "operation = \"trim\"\nsteady = {}";
    assert!(steady_doubts(trims, &[]).first().is_some_and(|text| text.contains(why)));
    let reads = steady_doubts("steady = { volume = 2 }", &[]);
    let idle = "t.toml:6: `steady.volume` changes nothing here: phase `main` writes nothing\nhint: \
                leave it out, or say `volume = 0`";
    assert_eq!(reads, [idle]);
    assert!(steady_doubts("steady = {}", &[]).is_empty(), "2 by default, and asked for by nobody");
}

#[test]
fn an_axis_of_a_detail_that_another_axis_says_is_refused() {
    // Cells called `none` flushed after ten requests, and `every=1` after twenty.
    let writes = "operation = \"write\"";
    let within = "the grid varies `sync`, and its values say what `sync.every` is";
    for sets in [
        ["sync=none,fdatasync", "sync.every=10,20"],
        ["sync=fsync,fdatasync", "sync.every=10,20"],
        ["sync=fsync,fdatasync", "main.sync.every=10,20"],
    ] {
        let said = said(source(writes), &sets).unwrap_or_default();
        assert!(said.contains(within), "{sets:?}: {said}");
        assert!(said.ends_with(
            "vary `sync.op` and `sync.every`, or have a table for each cell as a value of `sync`"
        ));
    }
    assert_eq!(said(source(writes), &["sync.op=fsync,fdatasync", "sync.every=10,20"]), None);
    let duty = "[phase.grid]\nduty = [{ on = 1, off = 1 }, { on = 1, off = 2 }]";
    let refused = said(source(duty), &["duty.off=3,4"]).unwrap_or_default();
    assert!(refused.contains("its values say what `duty.off` is"), "{refused}");
    assert_eq!(said(source("duty = { on = 1, off = 2 }"), &["duty.off=3,4"]), None);
    // What the values leave open is another matter.
    assert_eq!(said(source(""), &["region=25%,50%", "region.start=0B,1MiB"]), None);
}

#[test]
fn a_detail_set_for_all_leaves_off_what_is_off() {
    let mut source =
        source("operation = \"write\"\n[phase.grid]\nsync = [\"none\", \"fdatasync\"]");
    source.set("sync.every=8").unwrap();
    let suite = check(&source, &CheckContext::default()).unwrap();
    assert_eq!(suite.phases[0].axes[0].values, ["none", "fdatasync every=8"]);
    let every: Vec<_> = suite.cells().map(|cell| cell.streams[0].sync.map(|s| s.every)).collect();
    assert_eq!(every, [None, Some(Some(8))]);
}
