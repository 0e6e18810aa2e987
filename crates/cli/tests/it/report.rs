use serde_json::Value;

use crate::world::World;

/// The data in a small page that has figures; `None` in a program that was built without them.
fn data(html: &str) -> Option<Value> {
    let (_, rest) = html.split_once("<script type=\"application/json\" id=\"plimsoll-page\">")?;
    serde_json::from_str(rest.split_once("</script>").unwrap().0).ok()
}

#[test]
fn a_page_is_one_file_with_or_without_figures() {
    let world = World::with_two_runs();
    let done = world.ok(&["report", "r1", "r2", "-o", "report.html"]);
    assert!(done.err.contains("r1, r2 are in report.html"), "{done:?}");
    let html = std::fs::read_to_string(world.path("report.html")).unwrap();
    assert!(html.starts_with("<!doctype html>"), "{html}");
    let shown = world.ok(&["report", "r1", "r2", "--json"]).out;
    match data(&html) {
        Some(data) => assert_eq!(data, serde_json::from_str::<Value>(&shown).unwrap()),
        None => {
            assert!(done.err.contains("hint: `make build`"), "{done:?}");
            assert!(html.contains("<h1>r2 random-read on null:</h1>"), "{html}");
        }
    }
    assert_eq!(world.ok(&["report", "r1", "r2"]).out, html, "a pipe gets the same");
    assert_eq!(world.files(), ["home", "report.html"], "no temporary file is left");
}

#[test]
fn a_page_is_replaced_only_by_force_and_the_store_never() {
    let world = World::with_two_runs();
    std::fs::write(world.path("report.html"), "mine").unwrap();
    let words = ["report", "-o", "report.html"];
    assert_eq!(world.run(&words).code, 3);
    assert_eq!(std::fs::read(world.path("report.html")).unwrap(), b"mine");
    world.ok(&[&words[..], &["--force"]].concat());
    assert_ne!(std::fs::read(world.path("report.html")).unwrap(), b"mine");
    let store = world.store();
    let before = std::fs::read(&store).unwrap();
    let done = world.run(&["report", "--force", "-o", store.to_str().unwrap()]);
    assert_eq!(done.code, 3, "{done:?}");
    assert_eq!(std::fs::read(&store).unwrap(), before);
}

#[test]
fn the_baseline_comes_first() {
    let world = World::with_two_runs();
    let ids = |words: &[&str]| {
        let page: Value = serde_json::from_str(&world.ok(words).out).unwrap();
        let id = |run: &Value| run["id"].as_str().unwrap().to_owned();
        page["runs"].as_array().unwrap().iter().map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&["report", "r1", "r2", "--json"]), ["r1", "r2"]);
    assert_eq!(ids(&["report", "r1", "r2", "--baseline", "last", "--json"]), ["r2", "r1"]);
    assert_eq!(ids(&["report", "--json"]), ["r2"]);
    for bad in [
        &["report", "r1", "--baseline", "r2"][..],
        &["report", "r1", "r1"],
        &["report", "r9"],
        &["report", "--json", "-o", "x"],
        &["report", "--group", "last"],
    ] {
        assert_eq!(world.run(bad).code, 2, "{bad:?}");
    }
}
