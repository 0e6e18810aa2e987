//! `plimsoll line`

use serde_json::Value;

use crate::world::World;

/// A drive whose flush takes 20 ms, and that reads so many pages a second at most.
fn place(world: &World, reads: u32) -> String {
    let text = format!(
        "schema = 1\nname = \"log\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
         sync_time = \"20ms\"\n[model.read]\nlatency = \"100us\"\niops = {reads}\n\
         [model.write]\nlatency = \"20us\"\n[model.noise]\njitter = 0.3\ncv = 0.02\nrho = 0.5\n"
    );
    let name = format!("log-{reads}");
    std::fs::write(world.path(&name), text).unwrap();
    format!("model:{name}")
}

fn words<'a>(place: &'a str, level: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["line", place, "--level", level, "--seed", "5", "-q"], more].concat()
}

fn json(world: &World, words: &[&str]) -> Value {
    serde_json::from_str(&world.ok(words).out).unwrap()
}

#[test]
fn the_line_of_commits_is_what_the_sessions_and_the_flush_allow() {
    let world = World::new();
    let place = place(&world, 1_000_000);
    let told = world.ok(&words(&place, "commits p99<100ms", &[])).out;
    let explained = world.ok(&["explain", "r1", "--json"]).out;
    let explained: Value = serde_json::from_str(&explained).unwrap();
    let found = json(&world, &words(&place, "commits p99<100ms", &["--json"]));
    assert_eq!(explained["runs"][0]["sections"][0]["findings"], found["answer"]["findings"]);
    // 64 sessions share a flush of 20 ms, after a write of 20 us.
    let most = 64.0 / 20.02e-3;
    let rate = found["line"]["value"].as_f64().unwrap();
    assert!((0.9 * most..1.02 * most).contains(&rate), "{rate}, by the formula {most}");
    assert_eq!((&found["standing"], &found["first"]), (&"line".into(), &0.into()));
    let capacity = &found["capacity"];
    let within = capacity["low"].as_f64().unwrap()..capacity["high"].as_f64().unwrap();
    assert!(within.start < 1.03 * most && within.end > 0.97 * most, "{within:?}");
    assert_eq!(found["held"]["broke_at_ns"], Value::Null);
    let rates = found["rates"].as_array().unwrap();
    assert!(rates.len() > 10 && rates[0]["load"] == 20.0, "{rates:?}");
    let (answer, table) = told.split_once("\n\n").unwrap();
    assert!(answer.starts_with("Plan with "), "{told}");
    assert!(answer.lines().count() <= 12 && table.lines().count() <= 13, "{told}");
    let resumed = world.run(&["resume", "r1"]);
    assert_eq!(resumed.code, 2, "{}", resumed.err);
}

#[test]
fn reads_that_break_first_are_named() {
    let world = World::new();
    // Four reads a transaction: 500 transactions.
    let place = place(&world, 2000);
    let found = json(&world, &words(&place, "p99<90ms", &["--json", "--hold", "0s"]));
    let rate = found["line"]["value"].as_f64().unwrap();
    assert!((400.0..510.0).contains(&rate), "{rate}");
    let first = usize::try_from(found["first"].as_u64().unwrap()).unwrap();
    assert_eq!(found["limits"][first]["stream"], "reads");
}

#[test]
fn freezes_are_told_apart_from_the_line() {
    let world = World::new();
    let place = place(&world, 20_000);
    let text = std::fs::read_to_string(world.path("log-20000")).unwrap().replace("20ms", "500us");
    std::fs::write(world.path("log-20000"), &text).unwrap();
    let calm = json(&world, &words(&place, "reads p99<2ms", &["--json", "--hold", "0s"]));
    let freezes = "[model.random_freezes]\nper_hour = 600\nlength = \"300ms\"\n";
    std::fs::write(world.path("log-20000"), text + freezes).unwrap();
    let found = json(&world, &words(&place, "reads p99<2ms", &["--json", "--hold", "0s"]));
    assert_eq!((&calm["standing"], &calm["freezes"]), (&"line".into(), &Value::Null));
    // About one in 6 s: at no rate, and yet between them the line is what it was.
    assert_eq!(found["standing"], "none", "{found:#}");
    let share = &found["freezes"]["late"];
    assert!(share["low"].as_f64().unwrap() > 0.01, "{share}");
    let rate = |of: &Value| of["line"]["value"].as_f64().unwrap();
    assert!((rate(&found) / rate(&calm) - 1.0).abs() < 0.03, "{} {}", rate(&found), rate(&calm));
    let code = &found["answer"]["findings"][0]["code"];
    assert_eq!(code, "line-frozen");
}

#[test]
fn a_rate_is_carried_or_not_or_cannot_be_told() {
    let world = World::new();
    let place = place(&world, 2000);
    let at = |rate: &str, code| {
        let ran = world.run(&words(&place, "reads p99<60ms", &["--at", rate]));
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        ran.out
    };
    assert!(at("300", 0).contains("carries 300 transactions/s for 60 s"));
    assert!(at("600", 8).contains("does not carry 600 transactions/s"));
    let doubtful: Vec<i32> = ["476", "478", "480"]
        .map(|rate| world.run(&words(&place, "reads p99<60ms", &["--at", rate])).code)
        .to_vec();
    assert!(doubtful.contains(&10), "{doubtful:?}");
}

#[test]
fn a_level_that_nothing_holds_is_an_answer_and_a_wrong_one_is_refused() {
    let world = World::new();
    let place = place(&world, 2000);
    let none = json(&world, &words(&place, "commits p99<5ms", &["--json"]));
    assert_eq!((&none["standing"], &none["line"]), (&"none".into(), &Value::Null));
    for level in ["p99", "p99<5", "scans p99<5ms"] {
        assert_eq!(world.run(&words(&place, level, &[])).code, 2, "{level}");
    }
    assert_eq!(world.run(&words(&place, "p99<5ms", &["--at", "10", "--hold", "5s"])).code, 2);
}

#[test]
fn a_suite_of_ones_own_is_raised_and_said_how_far() {
    let world = World::new();
    let place = place(&world, 1_000_000);
    let suite = "schema = 1\nname = \"own\"\ntitle = \"One's own commits\"\nlevel = \"commits p99<100ms\"\n\
        file_size = \"1GiB\"\nfill = true\nrounds = { visit_time = \"2s\", ramp = \"500ms\", \
        least_operations = 0, pilot = false, visits_max = 10 }\n[[phase]]\nname = \"line\"\ntime = \"2s\"\n\
        arrivals = \"poisson\"\n[[phase.stream]]\nname = \"commits\"\noperation = \"commit\"\n\
        access = \"sequential\"\nblock_size = \"4KiB\"\nsync = \"fdatasync\"\nqueue_depth = 64\nrate = 50\n";
    std::fs::write(world.path("own.toml"), suite).unwrap();
    let all = ["line", &place, "--like", "own.toml", "--hold", "0s", "--seed", "5", "-q", "--json"];
    let found = json(&world, &all);
    let rate = found["line"]["value"].as_f64().unwrap();
    let most = 64.0 / 20.02e-3;
    assert!((0.9 * most..1.02 * most).contains(&rate), "{rate}, by the formula {most}");
    let findings = found["answer"]["findings"].as_array().unwrap();
    let like = findings.iter().find(|finding| finding["code"] == "line-like").unwrap();
    assert_eq!(like["values"]["now"]["number"]["value"], 50.0, "{like}");
    let times = like["values"]["times"]["number"]["value"].as_f64().unwrap();
    assert!((0.7 * most..1.02 * most).contains(&(times * 50.0)), "{like}");
    let refused = world.run(&["line", &place, "--like", "own.toml", "--for", "mariadb"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
}
