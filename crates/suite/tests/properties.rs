//! Laws over suites that nobody wrote: resolved text means the same, grids have the cells they
//! should, nothing panics.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;
use suite::{CheckContext, SuiteSource, check, parse, resolved_text};

const SOURCES: [&str; 3] = [
    include_str!("data/everything.toml"),
    include_str!("../../../suites/bm-flash.toml"),
    include_str!("../../../suites/random-write.toml"),
];

/// A field with a value of its type; most are sound in most company.
fn assignment() -> impl Strategy<Value = String> {
    let size = || {
        prop_oneof![
            (0u32..14).prop_map(|n| format!("\"{}\"", 512u64 << n)),
            (1u32..64).prop_map(|n| format!("\"{n}K\"")),
            Just("1536".to_owned()),
        ]
    };
    let time = || prop_oneof![(1u32..9).prop_map(|n| n.to_string()), Just("\"250ms\"".to_owned())];
    let share = || (0u32..=20).prop_map(|n| format!("{}", f64::from(n) / 20.0));
    let count = || (1u32..40).prop_map(|n| n.to_string());
    let of = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    let field = |name: &'static str| move |value: String| format!("{name} = {value}");
    prop_oneof![
        size().prop_map(field("block_size")),
        size().prop_map(field("align")),
        size().prop_map(field("bytes")),
        (size(), size()).prop_map(|(a, b)| format!("block_sizes = [{a}, {b}]")),
        (count(), count()).prop_map(|(a, b)| format!("block_sizes = {{ 8K = {a}, \"64KiB\" = {b} }}")),
        time().prop_map(field("time")),
        time().prop_map(field("ramp")),
        time().prop_map(field("think")),
        count().prop_map(field("threads")),
        count().prop_map(field("queue_depth")),
        count().prop_map(field("burst")),
        count().prop_map(field("operations")),
        count().prop_map(field("rate")),
        share().prop_map(field("read_share")),
        share().prop_map(field("random_share")),
        of(&["\"read\"", "\"write\"", "\"fsync\"", "\"trim\"", "\"update\"", "\"copy\"", "\"create\"", "\"stat\"", "\"copy-range\"", "\"transaction\""]).prop_map(field("operation")),
        of(&["\"dice\"", "\"interleave\"", "\"shared\"", "\"ratio\""]).prop_map(field("choice")),
        of(&["true", "false"]).prop_map(field("direct")),
        of(&["\"no\"", "\"data\"", "\"data-and-meta\""]).prop_map(field("write_through")),
        of(&["\"auto\"", "\"blocking\"", "\"mmap\"", "\"libaio\""]).prop_map(field("backend")),
        of(&["\"fixed\"", "\"poisson\""]).prop_map(field("arrivals")),
        of(&["\"concatenated\"", "\"file-per-worker\"", "{ stripe = \"1M\" }"]).prop_map(field("spread")),
        of(&["\"whole\"", "\"short\""]).prop_map(field("last")),
        of(&["\"all\"", "\"first-worker\""]).prop_map(field("stop")),
        of(&["\"none\"", "{ on = 1, off = \"10ms\" }", "{ off = 2 }"]).prop_map(field("duty")),
        of(&["\"none\"", "\"96M\"", "\"75%\""]).prop_map(field("copy_to")),
        of(&["\"none\"", "{ files = 9 }", "{ names = \"random\" }", "{ files = 3, file_size = 7 }"])
            .prop_map(field("directory")),
        of(&["\"none\"", "{ load = \"tpcc\" }", "{ load = \"tpcb\", scale = 7 }", "{ scale = 3 }"])
            .prop_map(field("transactions")),
        of(&["\"none\"", "\"fsync\"", "{ every = 3 }", "{ at_end = \"timed\", shared = true }"])
            .prop_map(field("sync")),
        of(&["\"37%\"", "{ start = \"12.5%\" }", "{ start = \"1M\", length = \"7M\" }"])
            .prop_map(field("region")),
        of(&[
            "\"sequential\"", "\"zipf\"", "{ kind = \"stride\", step = 3 }", "\"same\"", "\"staggered\"",
            "{ kind = \"backward\", shared = true }", "{ kind = \"zipf\", theta = 0.7 }", "{ theta = 0.6 }",
            "{ kind = \"hot\", zones = [{ space_share = 0.5, access_share = 0.9 }, { space_share = 0.5, access_share = 0.1 }] }",
        ])
        .prop_map(field("access")),
        of(&[
            "[{ operation = \"read\" }, { weight = 0.3, operation = \"write\", block_size = \"16K\" }]",
            "[{ operation = \"fdatasync\" }, { weight = 7, operation = \"write\" }]",
            "[{ read_share = 0.7, burst = 1, think = \"2ms\" }, { operation = \"read\", align = 1536, random_share = 0.1 }]",
        ])
        .prop_map(field("classes")),
    ]
}

/// Lines with each field once: TOML refuses doubles, which is not what is tried here.
fn fields(at_most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(assignment(), 0..at_most).prop_map(|lines| {
        let mut seen = std::collections::BTreeSet::new();
        let first = |line: &String| line.split(' ').next().map(str::to_owned);
        let lines: Vec<String> = lines.into_iter().filter(|l| seen.insert(first(l))).collect();
        lines.join("\n")
    })
}

fn grid() -> impl Strategy<Value = String> {
    let axes = [
        "threads = [1, 2, 7]",
        "block_size = [\"4K\", \"64KiB\"]",
        "access = [\"uniform\", \"zipf\", { kind = \"sequential\", shared = true }]",
        "access.theta = [0.3, 0.4]",
        "read_share = [0, 0.5, 1]",
        "rate = [\"none\", 50]",
        "sync = [\"none\", \"fsync\", { every = 9 }]",
        "sync.every = [1, 2]",
        "region = [\"10%\", \"rest\"]",
        "time = [1, \"2s\"]",
    ];
    prop::sample::subsequence(axes.to_vec(), 0..3).prop_map(|axes| axes.join("\n"))
}

fn phase(name: &'static str) -> impl Strategy<Value = String> {
    let streams = prop::collection::vec(fields(4), 0..3);
    (fields(6), grid(), streams).prop_map(move |(fields, grid, streams)| {
        let streams: String = streams
            .iter()
            .enumerate()
            .map(|(i, fields)| format!("[[phase.stream]]\nname = \"s{i}\"\n{fields}\n"))
            .collect();
        format!("[[phase]]\nname = \"{name}\"\n{fields}\n[phase.grid]\n{grid}\n{streams}")
    })
}

fn suite_text() -> impl Strategy<Value = String> {
    (fields(4), phase("one"), phase("two")).prop_map(|(defaults, one, two)| {
        let time = if defaults.contains("\ntime") || defaults.starts_with("time") {
            ""
        } else {
            "time = 1"
        };
        format!(
            "schema = 1\nname = \"made\"\nfile_size = \"64M\"\nfile_count = 3\n\
             [defaults]\n{time}\n{defaults}\n{one}\n{two}"
        )
    })
}

fn override_text() -> impl Strategy<Value = String> {
    let scope = prop::sample::select(vec!["", "", "", "one.", "two.", "s0.", "one.s1."]);
    let list = prop::sample::select(vec![
        "threads=1,2",
        "block_size=[\"8K\"]",
        "access=uniform,zipf",
        "access.theta=0.9",
        "time=3",
        "sync.every=7",
        "sync=none",
        "direct=false,true",
        "region.length=1M",
    ]);
    let any = assignment().prop_map(|line| line.replacen(" = ", "=", 1));
    (scope, prop_oneof![any, list.prop_map(str::to_owned)])
        .prop_map(|(scope, set)| format!("{scope}{set}"))
}

/// If the suite is sound, its resolved text must give the very same suite.
fn holds(source: &SuiteSource) -> Result<bool, TestCaseError> {
    let Ok(suite) = check(source, &CheckContext::default()) else { return Ok(false) };
    for phase in &suite.phases {
        let product: usize = phase.axes.iter().map(|axis| axis.values.len()).product();
        prop_assert_eq!(phase.cells.len(), product);
        for (index, cell) in phase.cells.iter().enumerate() {
            let place = phase
                .axes
                .iter()
                .zip(&cell.coordinates)
                .fold(0, |n, (axis, &at)| n * axis.values.len() + at);
            prop_assert_eq!(place, index);
            for stream in &cell.streams {
                let region = stream.region;
                prop_assert!(region.start.get() + region.length.get() <= suite.files.total().get());
                prop_assert!(stream.block_size_max() <= region.length);
                prop_assert!(stream.align.get() > 0);
                let stop = stream.stop;
                prop_assert!(
                    stop.time.is_some() || stop.bytes.is_some() || stop.operations.is_some()
                );
            }
        }
    }
    let text = resolved_text(source).unwrap();
    let again = match parse(&text, "resolved") {
        Ok(again) => again,
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
    };
    match check(&again, &CheckContext::default()) {
        Ok(same) => prop_assert!(same == suite, "means something else:\n{}", text),
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
    }
    prop_assert_eq!(resolved_text(&again).unwrap(), text);
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn resolved_text_means_the_same(text in suite_text(), sets in prop::collection::vec(override_text(), 0..4)) {
        let Ok(mut source) = parse(&text, "made.toml") else { return Ok(()) };
        holds(&source)?;
        for set in sets {
            let _ = source.set(&set);
            holds(&source)?;
        }
    }

    /// Pieces of text moved, doubled, cut out and spoilt.
    #[test]
    fn no_text_makes_it_panic(
        which in 0usize..3,
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..6, any::<u8>()), 1..6),
    ) {
        let mut text = SOURCES[which].as_bytes().to_vec();
        for (from, to, kind, byte) in edits {
            let (a, b) = (from.index(text.len().max(1)), to.index(text.len().max(1)));
            let (a, b) = (a.min(b), a.max(b).min(a.min(b) + 60).min(text.len()));
            match kind {
                0 => { text.drain(a..b); }
                1 => { let piece = text[a..b].to_vec(); text.splice(b..b, piece); }
                2 => { let piece: Vec<u8> = text.drain(a..b).collect(); let end = to.index(text.len() + 1); text.splice(end..end, piece); }
                3 => text.insert(a, b"{}[]\"=.,#-0123456789"[usize::from(byte) % 20]),
                4 => if let Some(spoilt) = text.get_mut(a) { *spoilt = byte & 0x7f },
                _ => { let line = b"\n[[phase]]\nname = \"x\"\n".to_vec(); text.splice(a..a, line); }
            }
        }
        let text = String::from_utf8_lossy(&text);
        if let Ok(source) = parse(&text, "spoilt.toml") {
            holds(&source)?;
            let mut quick = source.clone();
            if quick.quick().is_ok() {
                holds(&quick)?;
            }
        }
    }

    #[test]
    fn no_override_makes_it_panic(which in 0usize..3, sets in prop::collection::vec(
        prop_oneof![
            "\\PC{0,20}",
            "[a-z_.]{1,12}=[0-9a-zA-Z%{}\\[\\]\",. =-]{0,16}",
            (prop::sample::select(SuiteSource::settable()), "[0-9a-zKMGs%{}\\[\\]\",. =-]{0,10}").prop_map(|(k, v)| format!("{k}={v}")),
            override_text(),
        ], 1..4)) {
        let mut source = parse(SOURCES[which], "t.toml").unwrap();
        for set in sets {
            let before = source.clone();
            if let Err(error) = source.set(&set) {
                prop_assert!(!error.to_string().contains('\n'), "{error}");
                let _ = error.hint();
                // What was refused has changed nothing.
                source = before;
            }
            holds(&source)?;
        }
    }
}

/// The laws above are worth nothing if nothing gets through.
#[test]
fn enough_made_suites_are_sound() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut sound = 0;
    let mut refused = Vec::new();
    for _ in 0..300 {
        let text = suite_text().new_tree(&mut runner).unwrap().current();
        let result = parse(&text, "t").and_then(|s| check(&s, &CheckContext::default()));
        match result {
            Ok(_) => sound += 1,
            Err(error) => refused.push(error.to_string()),
        }
    }
    assert!(sound > 45, "only {sound} of 300 were sound: {refused:#?}");
}
