use proptest::prelude::*;
use record::{Run, VisitEnd};
use report::{document, schema, table};
use serde_json::{Value, json};

use crate::sample;

fn json_of(run: &Run) -> Value {
    serde_json::to_value(document(run)).unwrap()
}

/// The schema in the file of this name is that of today's types, or becomes it.
pub fn assert_committed(file: &str, schema: &impl serde::Serialize) {
    let path = format!("{}/../../schema/{file}", env!("CARGO_MANIFEST_DIR"));
    let current = serde_json::to_string_pretty(schema).unwrap() + "\n";
    if std::env::var_os("PLIMSOLL_WRITE_SCHEMA").is_some() {
        std::fs::write(&path, &current).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == current,
        "schema/{file} is stale: run this test with PLIMSOLL_WRITE_SCHEMA=1"
    );
}

#[test]
fn the_committed_schemas_are_the_current_ones() {
    assert_committed("plimsoll.run-1.schema.json", &schema());
    assert_committed("plimsoll.probe-1.schema.json", &report::stack::probe_schema());
}

/// Checks the words of JSON schema that ours uses; any other is an error, so that none passes
/// unnoticed.
pub fn check(schema: &Value, value: &Value, root: &Value, at: &str) -> Result<(), String> {
    for (word, rule) in schema.as_object().ok_or_else(|| format!("{at}: no schema object"))? {
        let fine = match word.as_str() {
            "$schema" | "title" | "description" | "$defs" => true,
            "$ref" => {
                let path = rule.as_str().unwrap().trim_start_matches('#');
                check(root.pointer(path).unwrap(), value, root, at)?;
                true
            }
            "const" => rule == value,
            "type" => match rule {
                Value::Array(any) => any.iter().any(|t| is_type(t, value)),
                one => is_type(one, value),
            },
            "format" => true,
            "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()),
            "oneOf" => {
                let fits = |s: &&Value| check(s, value, root, at).is_ok();
                rule.as_array().unwrap().iter().filter(fits).count() == 1
            }
            "anyOf" => rule.as_array().unwrap().iter().any(|s| check(s, value, root, at).is_ok()),
            "items" => {
                for (k, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(rule, item, root, &format!("{at}[{k}]"))?;
                }
                true
            }
            "minItems" => {
                value.as_array().is_none_or(|all| all.len() as u64 >= rule.as_u64().unwrap())
            }
            "maxItems" => {
                value.as_array().is_none_or(|all| all.len() as u64 <= rule.as_u64().unwrap())
            }
            "prefixItems" => {
                let places = rule.as_array().unwrap().iter();
                for (k, (one, item)) in
                    places.zip(value.as_array().into_iter().flatten()).enumerate()
                {
                    check(one, item, root, &format!("{at}[{k}]"))?;
                }
                true
            }
            "properties" => {
                for (name, property) in rule.as_object().unwrap() {
                    if let Some(inner) = value.get(name) {
                        check(property, inner, root, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "required" => {
                rule.as_array().unwrap().iter().all(|n| value.get(n.as_str().unwrap()).is_some())
            }
            other => return Err(format!("{at}: the test does not know `{other}`")),
        };
        if !fine {
            return Err(format!("{at}: {value} does not meet {word} {rule}"));
        }
    }
    Ok(())
}

fn is_type(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[test]
fn documents_meet_the_schema() {
    let schema = serde_json::to_value(schema()).unwrap();
    let good = json_of(&sample::rich());
    check(&schema, &good, &schema, "$").unwrap();
    // And the check can say no.
    let mut bad = good.clone();
    bad["cells"][1].as_object_mut().unwrap().remove("iops");
    assert!(check(&schema, &bad, &schema, "$").is_err());
    let mut bad = good.clone();
    bad["cells"][2]["latency_ns"]["p99"] = json!("slow");
    assert!(check(&schema, &bad, &schema, "$").is_err());
    let mut bad = good;
    bad["schema"] = json!("plimsoll.run/2");
    assert!(check(&schema, &bad, &schema, "$").is_err());
}

/// Every property of every object is required: what is not known is null, never missing.
#[test]
fn nothing_is_ever_missing() {
    let schema = serde_json::to_value(schema()).unwrap();
    let defs = schema["$defs"].as_object().unwrap().values().chain([&schema]);
    for object in defs.filter(|def| def.get("properties").is_some()) {
        let mut required: Vec<_> =
            object["required"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        let mut properties: Vec<_> =
            object["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        required.sort_unstable();
        properties.sort_unstable();
        assert_eq!(required, properties, "{}", object["description"]);
    }
}

#[test]
fn the_contract_has_its_words() {
    let value = json_of(&sample::rich());
    assert_eq!(value["schema"], "plimsoll.run/1");
    assert_eq!(value["run"], "r17");
    assert_eq!(value["suite"], "mixed-bag");
    assert_eq!(value["target"]["given"], "/ssd/\u{1b}]0;owned\u{7}test.dat");
    assert_eq!(value["seed"], 7);
    assert_eq!(value["warnings"][0]["code"], "tmpfs");
    let cells = value["cells"].as_array().unwrap();
    let heads: Vec<_> = cells
        .iter()
        .map(|c| {
            (
                c["op"].as_str().unwrap(),
                c["block_bytes"].as_u64(),
                c["threads"].as_u64(),
                c["queue_depth"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        heads,
        [
            ("read", Some(512), Some(1), Some(1)),
            ("read", Some(512), Some(10), Some(1)),
            ("read", Some(4096), Some(1), Some(1)),
            ("read", Some(4096), Some(10), Some(1)),
            ("mixed", Some(8192), Some(8), Some(1)),
            ("write", Some(512), Some(1), Some(1)),
        ]
    );
}

#[test]
fn a_side_of_a_comparison_says_how_often_it_was_to_be_looked_at() {
    let mut run = sample::rich();
    let (group, side) = ("g".to_owned(), "A".to_owned());
    let blocks = record::Blocks { group, side, looks: 2, controls: vec![], is_control: false };
    run.header.blocks = Some(blocks);
    let document = serde_json::to_value(report::document(&run)).unwrap();
    assert_eq!(document["blocks"]["looks"], 2);
}

#[test]
fn the_flush_at_the_end_is_told_with_its_stream() {
    let mut run = sample::rich();
    let place = run.visits.iter().position(|visit| !visit.streams.is_empty()).unwrap();
    let sync = record::Gap { start_ns: 5, length_ns: 41 };
    run.visits[place].streams[0].workers[0].closing_sync = Some(sync);
    let document = serde_json::to_value(report::document(&run)).unwrap();
    let visits = document["cells"].as_array().unwrap().iter().flat_map(|c| c["visits"].as_array());
    let told: Vec<_> = visits.flatten().map(|v| v["closing_sync"].clone()).collect();
    let wanted = json!({"start_ns": 5, "length_ns": 41});
    assert_eq!(told.iter().filter(|told| **told == wanted).count(), 1, "{told:?}");
    assert!(told.iter().all(|told| *told == wanted || told.is_null()), "{told:?}");
}

#[test]
fn figures_are_ratios_of_sums_over_whole_visits() {
    let cell = &json_of(&sample::rich())["cells"][2];
    // 20000 in 2 s and 40000 in 1 s; the mean of the two rates would be 25000. The visit that
    // was cut short is there but does not count.
    assert_eq!(cell["iops"], 20_000.0);
    assert_eq!(cell["bytes_per_s"], 81_920_000.0);
    assert_eq!(cell["latency_ns"]["mean"], 500_500.0);
    assert_eq!(cell["latency_ns"]["min"], 1_000);
    assert_eq!(cell["latency_ns"]["max"], 1_000_000);
    for (name, ns) in
        [("p50", 500_000.0), ("p90", 900_000.0), ("p99", 990_000.0), ("p999", 999_000.0)]
    {
        let seen = cell["latency_ns"][name].as_f64().unwrap();
        assert!((seen / ns - 1.0).abs() < 0.004, "{name}: {seen}");
    }
    assert_eq!(cell["cpu_ns_per_io"], json!({"user": 200.0, "system": 1500.0}));
    assert_eq!(cell["device"], json!({"read_bytes": 40_000 * 4096, "write_bytes": 4096}));
    // Two visits a factor of four apart, and no page cache or device that anybody looked at.
    assert_eq!(cell["interval"]["visits"], 2);
    assert_eq!(cell["marks"], json!(["gap", "partly-cached"]));
    let counted: Vec<_> = cell["visits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| v["counted"].as_bool().unwrap())
        .collect();
    assert_eq!(counted, [true, true, false]);
    let visit = &cell["visits"][0];
    assert_eq!(
        (&visit["iops"], &visit["requests"], &visit["elapsed_ns"]),
        (&json!(10_000.0), &json!(20_000), &json!(2_000_000_000u64))
    );
    assert_eq!(visit["backend"]["flags"], json!(["registered-buffers"]));
    assert_eq!(visit["stamp_error_ns_max"], 800);
    let series = &visit["ops"][0]["series"];
    assert_eq!(series["iops"], json!([10_000.0, 10_000.0]));
    // Bucket 100 holds the rank, 104 is the last that is not empty.
    let p99 = series["p99_ns"][0].as_f64().unwrap();
    let (low, high) =
        (stats::histogram::bucket_bounds(1600).0, stats::histogram::bucket_bounds(1615).1);
    assert!((low as f64..=high as f64).contains(&p99), "{p99}");
    assert_eq!(series["max_ns"][0], stats::histogram::bucket_bounds(104 * 16 + 15).1);
}

#[test]
fn a_visit_cut_short_counts_where_there_is_no_other() {
    let mut run = sample::rich();
    run.visits.retain(|v| v.cell != 2 || v.end == VisitEnd::Interrupted);
    let cell = &json_of(&run)["cells"][2];
    assert_eq!((&cell["iops"], &cell["marks"]), (&json!(2.0), &json!(["interrupted"])));
    assert_eq!(cell["visits"][0]["counted"], true);
}

#[test]
fn percentiles_need_ten_values_above_them() {
    let cell = &json_of(&sample::rich())["cells"][3];
    assert_eq!(cell["visits"][0]["requests"], 15);
    assert_eq!(cell["latency_ns"]["p50"], Value::Null);
    assert_eq!(cell["latency_ns"]["p99"], Value::Null);
    assert_eq!(cell["latency_ns"]["max"], 15_000);
    assert_eq!(cell["latency_ns"]["mean"], 8_000.0);
}

#[test]
fn marks_say_why_to_look_twice() {
    let value = json_of(&sample::rich());
    let marks = |k: usize| value["cells"][k]["marks"].clone();
    assert_eq!(
        marks(0),
        json!(["not-possible-here: 512-byte direct I/O on a device of 4096-byte sectors"])
    );
    assert_eq!(marks(1), json!(["not-measured"]));
    let told = ["hanging", "errors", "short", "buffered-fallback", "few-requests"];
    assert_eq!(marks(3), json!(told));
    for k in [0, 1] {
        let cell = &value["cells"][k];
        for name in ["iops", "bytes_per_s", "device"] {
            assert_eq!(cell[name], Value::Null, "{name}");
        }
        assert_eq!(cell["latency_ns"]["mean"], Value::Null);
        assert_eq!(cell["cpu_ns_per_io"]["user"], Value::Null);
    }
    let visit = &value["cells"][3]["visits"][0];
    assert_eq!((&visit["errors"], &visit["short"]), (&json!(4), &json!(2)));
    assert_eq!(visit["gaps"], json!([{"start_ns": 200_000_000, "length_ns": 100_000_000}]));
    assert_eq!(visit["host_stalls"], json!([{"start_ns": 3, "length_ns": 60_000_000}]));
    assert_eq!(visit["ops"][0]["slow"][0]["offset"], 4096);
}

#[test]
fn syncs_are_apart_from_data() {
    let cell = &json_of(&sample::rich())["cells"][4];
    assert_eq!(cell["iops"], 9_000.0);
    assert_eq!(cell["visits"][0]["requests"], 9_000);
    assert_eq!(cell["visits"][0]["syncs"], 100);
    let ops: Vec<_> = cell["ops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|op| (op["op"].as_str().unwrap(), op["iops"].as_f64().unwrap()))
        .collect();
    assert_eq!(ops, [("read", 6_000.0), ("write", 3_000.0), ("fsync", 100.0)]);
    // One worker's CPU is not known, so neither is the sum.
    assert_eq!(cell["cpu_ns_per_io"]["user"], Value::Null);
}

fn everything(run: &Run) -> String {
    let json = serde_json::to_string(&document(run)).unwrap();
    [
        json,
        report::csv(run),
        table::grid(run),
        table::bm_flash(run),
        table::matrix(run).unwrap_or_default(),
    ]
    .join("\n")
}

#[test]
fn the_same_samples_give_the_same_reports() {
    assert!(everything(&sample::rich()) == everything(&sample::rich().clone()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever the numbers in a store, a report comes out.
    #[test]
    fn odd_numbers_never_panic(numbers in prop::collection::vec(prop_oneof![Just(0), Just(1), Just(u64::MAX), any::<u64>()], 40)) {
        let mut run = sample::rich();
        let mut next = numbers.iter().copied().cycle();
        let mut number = move || next.next().unwrap();
        for visit in &mut run.visits {
            visit.elapsed_ns = number();
            visit.started_unix_ns = number() as i64;
            visit.cell = (number() % 6) as u32;
            for entry in &mut visit.ledger {
                entry.read_bytes = number();
                entry.depth = (number() % 2) as u32;
            }
            for stream in &mut visit.streams {
                for op in &mut stream.ops {
                    op.requests = number();
                    op.bytes = number();
                    op.latency_ns_min = number();
                    op.latency_ns_max = number();
                    op.latency_ns_sum = u128::from(number()) << 64;
                    op.errors = vec![(number() as i32, number()), (5, number())];
                    op.series.interval_ns = number();
                    for row in &mut op.series.rows {
                        row.requests = number();
                        row.tail = vec![(number() as u16, number()), (number() as u16, number())];
                    }
                }
                for worker in &mut stream.workers {
                    worker.cpu_user_ns = Some(number());
                }
            }
        }
        everything(&run);
    }
}
