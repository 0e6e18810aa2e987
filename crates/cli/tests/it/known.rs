//! What is not known as well as was asked for, and how a run stands: told alike by every command,
//! of every suite.

use serde_json::Value;

use crate::world::World;

/// Slow, so that few requests fit into a short visit, and quick.
const MODELS: [&str; 2] = ["disk", "raid-controller"];

fn parsed(world: &World, words: &[&str]) -> Value {
    serde_json::from_str(&world.ok(words).out).unwrap()
}

/// As one line, whatever the width.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an interval is as wide as a mark says, if it says so.
fn is_wide(interval: &Value, wanted: f64) -> bool {
    let width = interval["half_width"].as_f64();
    interval["basis"] != "visits" || width.is_none_or(|width| width > wanted * (1.0 + 1e-9))
}

/// Holds everything that is said of a run against each other; whether there was anything to say.
fn agrees(world: &World, run: &str) -> bool {
    let [exported, explained, page] = [
        parsed(world, &["show", run, "--json"]),
        parsed(world, &["explain", run, "--json"]),
        parsed(world, &["report", run, "--json"]),
    ];
    let list = parsed(world, &["list", "--json"]);
    let listed = list["runs"].as_array().unwrap().iter().find(|listed| listed["id"] == run);
    let listed = listed.unwrap();
    let of = &explained["runs"][0];
    let (table, told) = (world.ok(&["table", run]).out, world.ok(&["explain", run]).out);
    let (list_told, shown) = (world.ok(&["list"]).out, world.ok(&["show", run]).out);

    let (standing, visits) = (of["standing"].as_str().unwrap(), &of["visits"]);
    assert_eq!((listed["standing"].as_str(), &listed["visits"]), (Some(standing), visits), "{run}");
    assert_eq!(page["runs"][0]["state"].as_str(), Some(standing), "{run}");
    assert_eq!(listed["state"].as_str(), Some(standing), "{run}");
    let head = flat(told.lines().nth(2).unwrap());
    assert!(head.starts_with(&format!("{standing}, {} of ", visits["made"])), "{run}: {head}");
    for said in [&table, &shown] {
        assert!(flat(said).contains(&head), "{run}: {head}: {said}");
    }
    let counts = format!("{}/{} ", visits["made"], visits["planned"]);
    let line = list_told.lines().find(|line| line.starts_with(&format!("{run} "))).unwrap();
    assert!(line.contains(&counts) && line.contains(standing), "{run}: {line}");

    let found = &of["findings"]["not_converged"];
    let marks = of["marks"].as_array().unwrap().iter();
    let marked = marks.filter(|mark| mark["code"] == "not-converged").count();
    assert_eq!(found["rows"].as_u64(), Some(marked as u64), "{run}: {found}");
    let whys = ["at_cap", "too_short", "noisier", "failing", "unvisited"];
    let whys: u64 = whys.iter().map(|why| found[why].as_u64().unwrap()).sum();
    assert_eq!(found["cells"].as_u64(), Some(whys), "{run}: {found}");
    let wanted = found["wanted"].as_f64();
    let rows = exported["cells"].as_array().unwrap();
    let measured = || rows.iter().filter(|row| !row["visits"].as_array().unwrap().is_empty());
    let has_mark =
        |row: &Value| row["marks"].as_array().unwrap().iter().any(|mark| mark == "not-converged");
    assert_eq!(rows.iter().filter(|row| has_mark(row)).count(), marked, "{run}");
    let all = found["of_rows"].as_u64() == Some(measured().count() as u64);
    for row in measured() {
        let (wide, marked) = (is_wide(&row["interval"], wanted.unwrap_or(1.0)), has_mark(row));
        assert!(if all { wide == marked } else { wide || !marked }, "{run}: {wide} {row}");
    }

    let code = |warning: &&Value| warning["code"] == "not-converged";
    let warnings = |of: &Value| -> Vec<String> {
        let warnings = of["warnings"].as_array().unwrap().iter().filter(code);
        warnings.map(|warning| warning["text"].as_str().unwrap().to_owned()).collect()
    };
    let said = warnings(&exported);
    assert_eq!(said.len(), usize::from(marked > 0), "{run}: {said:?}");
    assert_eq!(warnings(&page["runs"][0]), said, "{run}");
    for text in &said {
        assert!(flat(&table).contains(&format!("not-converged: {text}")), "{run}: {table}");
        let told = flat(&told).to_lowercase();
        assert!(told.contains(&text.to_lowercase()), "{run}: {text}: {told}");
        assert!(listed["warnings"].as_u64() > Some(0), "{run}: {listed}");
    }
    marked > 0
}

/// Plays every second suite, on both models by turns: a run of each kind, in half the time.
fn suites_agree(hand: usize) {
    let world = World::new();
    let suites = parsed(&world, &["suite", "list", "--json"]);
    let names: Vec<&str> =
        suites["suites"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    let store = world.store();
    for (at, name) in names.iter().enumerate().filter(|(at, _)| at % 2 == hand) {
        let target = format!("model:{models}/{}.toml", MODELS[at / 2 % 2]);
        let words = ["run", name, "--quick", "-q", "--seed", "1", "--target", &target];
        // Whole files are no matter for a model, and some sizes none for its.
        let said = world.run(&words);
        assert!([0, 2, 3, 4, 5].contains(&said.code), "{name}: {said:?}");
    }
    assert!(store.exists());
    let list = parsed(&world, &["list", "--json"]);
    let runs: Vec<&str> =
        list["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert!(runs.len() > 15, "{}", runs.len());
    let open = runs.iter().filter(|run| agrees(&world, run)).count();
    assert!(open > 2, "{open} of {}", runs.len());
}

#[test]
fn one_half_of_the_suites_says_alike_what_is_not_known() {
    suites_agree(0);
}

#[test]
fn the_other_half_of_the_suites_says_alike_what_is_not_known() {
    suites_agree(1);
}

#[test]
fn the_start_and_end_of_visits_count() {
    let world = World::new();
    let models = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models");
    let target = format!("model:{models}/disk.toml");
    let mut words = vec!["run", "random-read", "-q", "--seed", "2", "--target", &target];
    words.extend(["--set", "queue_depth=1,64,256"]);
    world.ok(&words);
    assert!(agrees(&world, "r1"));
    let told = flat(&world.ok(&["explain", "r1"]).out);
    assert!(told.contains("each is too short for so many requests in flight"), "{told}");
}
