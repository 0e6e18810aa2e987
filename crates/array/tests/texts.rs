//! Texts of designs and parts: those that come with the program, and those that are refused.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use array::{Answer, ArrayDesign, Load, Model, Provenance, builtin};
use units::Bytes;

const GOOD: &str = r#"schema = 1
why = "a test"
host = "xeon-2009"
link = "sas-3g"
controller = "plain-sata"
level = "raid5"
members = 4
chunk = "64KiB"
drive = "savvio-15k2"
"#;

const LAYER: &str = r#"schema = 1
kind = "log-layer"
why = "a test"

[parameters]
live_share = { value = 0.6, origin = "assumed", range = [0.5, 0.7] }
"#;

/// The message for `GOOD`, or with it the part `LAYER`, after a replacement.
fn refused(from: &str, to: &str) -> String {
    let (text, layer) = (GOOD.replace(from, to), LAYER.replace(from, to));
    assert!(text != GOOD || layer != LAYER, "`{from}` is in neither");
    let text = format!("{text}layer = \"mine\"\n");
    let part = |name: &str| if name == "mine" { Some(layer.as_str()) } else { builtin::part(name) };
    ArrayDesign::parse("mine.toml", &text, part).unwrap_err().to_string()
}

#[test]
fn a_refusal_says_file_key_seen_and_wanted() {
    let cases = [
        ("schema = 1\nwhy", "schema = 2\nwhy", "mine.toml: `schema` is `2`, wanted 1"),
        ("members = 4", "members = 2", "mine.toml: raid5 needs 3 members or more, found 2"),
        (
            "\"savvio-15k2\"",
            "\"floppy\"",
            "mine.toml: `drive` is `floppy`, wanted the name of a part, of which a file NAME.toml lies beside this one or in ../parts",
        ),
        ("\"xeon-2009\"", "\"sas-3g\"", "sas-3g.toml: `kind` is `link`, wanted host"),
        (
            "\"savvio-15k2\"",
            "\"md\"",
            "md.toml: `kind` is `striping`, wanted mechanical, page-mapped, block-mapped or volume",
        ),
        ("value = 0.6", "value = -0.6", "mine.toml: `live_share` has `-0.6`, wanted 0 to 1"),
        (
            ", range = [0.5, 0.7]",
            "",
            "mine.toml: `live_share` has `assumed` without `range`, wanted the least and the most it may be",
        ),
        (
            "[0.5, 0.7]",
            "[0.1, 0.2]",
            "mine.toml: `live_share` has `0.6` with the range 0.1 to 0.2, wanted a value within it",
        ),
        (
            "assumed",
            "fitted",
            "mine.toml: `live_share` has a range, wanted one only where `origin` is `assumed`",
        ),
        (
            "\"assumed\", range = [0.5, 0.7]",
            "\"spec\"",
            "mine.toml: `live_share` has no `from`, wanted the source of the value",
        ),
    ];
    for (from, to, wanted) in cases {
        assert_eq!(refused(from, to), wanted);
    }
}

#[test]
fn what_the_reader_of_toml_refuses_has_its_line() {
    assert_eq!(
        refused("members = 4", "members = \"four\""),
        "mine.toml:7: `members = \"four\"`: invalid type: string \"four\", expected u32"
    );
    let unknown = refused("live_share", "dead_share");
    assert!(unknown.starts_with("mine.toml:6: `dead_share = "), "{unknown}");
    assert!(unknown.contains("expected `live_share`"), "{unknown}");
    let unit = refused("chunk = \"64KiB\"", "chunk = \"64 bananas\"");
    assert!(unit.starts_with("mine.toml:8: `chunk = \"64 bananas\"`"), "{unit}");
    let legs = "chunk = \"64KiB\"\nstripe = { software = \"md\", chunk = \"64KiB\", legs = 1 }";
    assert_eq!(refused("chunk = \"64KiB\"", legs), "mine.toml: `legs` is `1`, wanted 2 to 64");
    let rate = |text: &str| format!(r#"{{ value = "{text}", origin = "spec", from = "x" }}"#);
    let disk = builtin::part("savvio-15k2").unwrap();
    let line = disk.lines().find(|line| line.starts_with("media_rate")).unwrap();
    let refused = |text| {
        let disk = disk.replace(line, &format!("media_rate = {}", rate(text)));
        let part =
            |name: &str| if name == "savvio-15k2" { Some(&*disk) } else { builtin::part(name) };
        ArrayDesign::parse("mine.toml", GOOD, part).unwrap_err().to_string()
    };
    let error = refused("140MB");
    assert!(error.contains("`140MB` is not a rate: wanted a size per second"), "{error}");
    let error = refused("0MB/s");
    assert!(error.ends_with("`media_rate` has `0 B/s`, wanted more than nothing"), "{error}");
}

#[test]
fn what_comes_with_the_program_is_right_and_honest() {
    let mut assumed = 0;
    for (name, _) in builtin::arrays() {
        let design = builtin::design(name).unwrap();
        assert!(!design.why.is_empty());
        assumed += design.parameters_of(Provenance::Assumed).len();
    }
    assert!(assumed > 50, "nobody knows all that: {assumed}");
    assert_eq!(
        builtin::design("no-such").unwrap_err().to_string(),
        "arrays: `name` is `no-such`, wanted a built-in array"
    );
    // Two arrays alone have more than eight fitted values: none of them.
    let fitted = builtin::design("areca-raid0x12").unwrap().parameters_of(Provenance::Fitted);
    assert_eq!(fitted.iter().filter(|one| one.part != "mtron-7535").count(), 6, "{fitted:?}");
}

#[test]
fn an_assumption_that_matters_is_named_and_others_are_not() {
    let model = Model::new(builtin::design("raptor-alone").unwrap());
    let answer = |threads| {
        let load = Load::random_reads(Bytes::kib(8), threads, Bytes::gib(20));
        model.answer(&load).unwrap()
    };
    let keys = |answer: &Answer| {
        let all = answer.rests_on.iter();
        all.map(|one| format!("{}.{}", one.assumption.part, one.assumption.key)).collect::<Vec<_>>()
    };
    let one = answer(1);
    assert_eq!(keys(&one), ["raptor-10k.command_time"]);
    // Nothing else of the part is at the end of its range meanwhile.
    let slower = 1.0 / one.rate + 200e-6;
    assert!((one.rests_on[0].rate_high * slower - 1.0).abs() < 1e-3);
    assert!(one.rests_on[0].rate_high < one.rate && one.rests_on[0].rate_low >= one.rate);
    // What is only known to be somewhere in a range is not hidden in the JSON either.
    let json = serde_json::to_value(&one).unwrap();
    assert_eq!(json["binding"], "drives");
    assert_eq!(json["rests_on"][0]["assumption"]["key"], "command_time");
    assert_eq!(json["parts"][0]["component"], "host");
}
