//! `plimsoll study` of what is there already: plan, runs, resume, explanation.

use std::time::Duration;

use crate::world::World;

const TARGETS: &str = r#"
title = "memory against nothing"
[stack]
target = ["null:", "memory:16MiB"]
[measure]
suites = [{ suite = "random-read", set = { rounds = { visits_min = 2, visits_max = 2 } } }]
repeats = 2
time = "20ms"
quick = true
"#;

fn world(text: &str) -> World {
    let world = World::new();
    std::fs::write(world.path("targets.toml"), text).unwrap();
    world
}

fn runs(world: &World) -> Vec<serde_json::Value> {
    let list = world.run(&["list", "--json"]);
    // A program that has begun just now has made its store, and has nothing in it yet.
    if list.code != 0 {
        return Vec::new();
    }
    let list: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    list["runs"].as_array().unwrap().clone()
}

#[test]
fn a_dry_run_tells_what_it_will_know_and_makes_nothing() {
    let world = world(TARGETS);
    let said = world.ok(&["study", "targets.toml", "--dry-run"]).out;
    for wanted in [
        "memory against nothing",
        "Tells what target does",
        "2 stacks that differ, 0 builds, 5 runs in the store",
        "measures null:, a simulated device",
        "as stack 1",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!world.store().exists(), "nothing is made");
    let json = world.ok(&["study", "targets.toml", "--dry-run", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["state"]), (&"plimsoll.study/1".into(), &"planned".into()));
    assert_eq!(json["stacks"].as_array().unwrap().len(), 5);
}

#[test]
fn a_size_that_leaves_the_amounts_of_a_suite_is_told() {
    let amount = "schema = 1\nname = \"amount\"\nfile_size = \"8GiB\"\n[[phase]]\nname = \"w\"\n\
                  operation = \"write\"\nbytes = \"8GiB\"\n";
    let text = "title = \"amounts\"\n[stack]\ntarget = [\"null:\", \"memory:256MiB\"]\n\
                [measure]\nsuites = [\"./amount.toml\"]\nsize = \"256MiB\"\n";
    let world = world(text);
    std::fs::write(world.path("amount.toml"), amount).unwrap();
    let done = world.ok(&["study", "targets.toml", "--dry-run"]);
    let said = words(&done.out);
    assert!(said.contains("moves 8 GiB in a visit over 256 MiB of its files, 32 times"), "{said}");
}

#[test]
fn its_runs_know_their_levels_and_explain_finds_the_factor() {
    let world = world(TARGETS);
    let said = world.ok(&["study", "targets.toml"]);
    assert!(said.err.contains("5 of 5 runs are complete"), "{}", said.err);
    let runs = runs(&world);
    assert_eq!(runs.len(), 5);
    for (number, run) in (1..).zip(&runs) {
        assert_eq!(run["part"]["number"], number);
        let level = &run["part"]["study"]["levels"][0];
        assert_eq!(level[0], "target");
        assert_eq!(level[1], run["target"], "the level is what was measured");
    }
    let told = world.ok(&["explain", "--group", "last"]).out;
    assert!(told.contains("The study varied target (null: and memory:16MiB)."), "{told}");
    assert!(told.contains("Which factor matters"), "{told}");
    let shown = world.ok(&["show", "last"]).out;
    assert!(shown.contains("target null:"), "{shown}");
    // It has come to its end: there is nothing to resume, and it may be played again.
    let again = world.run(&["study", "targets.toml", "--resume"]);
    assert_eq!(again.code, 2, "{}", again.err);
    let clean = world.ok(&["study", "clean"]);
    assert!(clean.err.contains("nothing is left"), "{}", clean.err);
}

#[test]
fn killed_at_any_moment_it_goes_on_and_loses_no_finished_visit() {
    for after in [20, 60, 150, 300, 600, 900] {
        let world = world(&TARGETS.replace("20ms", "60ms"));
        let mut child = world.command(&["study", "targets.toml"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(after));
        child.kill().unwrap();
        child.wait().unwrap();
        let visits = |world: &World| -> Vec<(String, u64)> {
            // Killed while it was being made, it is no store yet.
            if world.run(&["list"]).code != 0 {
                return Vec::new();
            }
            let of = |run: &serde_json::Value| {
                let id = run["id"].as_str().unwrap().to_owned();
                (id, run["visits_made"].as_u64().unwrap())
            };
            runs(world).iter().map(of).collect()
        };
        let before = visits(&world);
        let journals = world.store().with_extension("db.studies");
        let begun = journals.exists() && journals.read_dir().unwrap().next().is_some();
        let left = begun && {
            let again = world.run(&["study", "targets.toml"]);
            again.code == 2 && again.err.contains("--resume")
        };
        if left {
            world.ok(&["study", "targets.toml", "--resume"]);
        } else if !begun {
            world.ok(&["study", "targets.toml"]);
        }
        let after_all = visits(&world);
        for (id, made) in &before {
            let now = after_all.iter().find(|(known, _)| known == id).unwrap();
            assert!(now.1 >= *made, "after {after} ms: {before:?} {after_all:?}");
        }
        let numbers: Vec<u64> =
            runs(&world).iter().map(|run| run["part"]["number"].as_u64().unwrap()).collect();
        if left || !begun {
            assert_eq!(numbers, [1, 2, 3, 4, 5], "after {after} ms: the same plan, each once");
        }
    }
}

#[test]
fn a_study_that_changed_is_not_resumed() {
    let world = world(&TARGETS.replace("20ms", "500ms"));
    let mut child = world.command(&["study", "targets.toml"]).spawn().unwrap();
    let journals = world.store().with_extension("db.studies");
    let begun = (0..400).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        journals.read_dir().is_ok_and(|mut all| {
            all.any(|one| one.is_ok_and(|one| one.path().extension() == Some("journal".as_ref())))
        })
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(begun, "no journal within 4 s");
    std::fs::write(world.path("targets.toml"), TARGETS.replace("20ms", "30ms")).unwrap();
    let again = world.run(&["study", "targets.toml", "--resume"]);
    assert_eq!(again.code, 2, "{}", again.err);
    let wanted = "targets.toml was changed since the study began";
    assert!(again.err.contains(wanted), "{}", again.err);
    world.ok(&["study", "clean"]);
    world.ok(&["study", "targets.toml", "--quiet"]);
}

#[test]
fn what_makes_no_sense_is_said_with_its_place() {
    for (from, to, wanted) in [
        ("\"null:\", ", "\"null:\", \"null:\", ", "targets.toml:4: `target` has the level"),
        ("random-read", "random-reed", "did you mean `random-read`?"),
        ("target =", "traget =", "`[stack]` has no `traget`"),
        ("repeats = 2", "design = \"fraction\"", "a fraction of 1 factors"),
    ] {
        let world = world(&TARGETS.replace(from, to));
        let said = world.run(&["study", "targets.toml"]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains(wanted), "{wanted}: {}", said.err);
    }
    let world = World::new();
    let said = world.run(&["study", "none.toml"]);
    assert_eq!(said.code, 2, "{}", said.err);
}

#[test]
fn two_names_of_one_target_are_refused() {
    let world = world(TARGETS);
    std::fs::write(world.path("one"), "x").unwrap();
    std::fs::hard_link(world.path("one"), world.path("hard")).unwrap();
    std::os::unix::fs::symlink(world.path("one"), world.path("soft")).unwrap();
    std::fs::create_dir(world.path("place")).unwrap();
    std::os::unix::fs::symlink(world.path("place"), world.path("there")).unwrap();
    let plays = |one: &str, other: &str| {
        let text = "[stack]\ntarget = [\"ONE\", \"OTHER\"]\n[measure]\nsuites = [\"random-read\"]\n\
                    size = \"1MiB\"\ntime = \"20ms\"\nquick = true\n";
        let text = text.replace("ONE", one).replace("OTHER", other);
        std::fs::write(world.path("two.toml"), text).unwrap();
        world.run(&["study", "two.toml", "--dry-run"])
    };
    for [one, other] in
        [["one", "hard"], ["soft", "hard"], ["place", "there"], ["place/a", "there/a"]]
    {
        let said = plays(one, other);
        assert_eq!(said.code, 2, "{one} {other}: {}", said.err);
        let wanted = format!("the targets {one} and {other} are two names of one thing");
        assert!(said.err.contains(&wanted), "{wanted}: {}", said.err);
    }
    assert_eq!(plays("place/a", "place/b").code, 0);
}

#[test]
fn an_empty_journal_is_told_for_what_it_is() {
    let world = world(TARGETS);
    let journals = world.store().with_extension("db.studies");
    std::fs::create_dir_all(&journals).unwrap();
    let journal = journals.join("a b-0000abcd.journal");
    std::fs::write(&journal, "").unwrap();
    for words in [&["study", "clean"][..], &["study", "clean", "--dry-run"]] {
        let said = world.run(words);
        assert_eq!(said.code, 6, "{words:?}: {}", said.err);
        assert!(said.err.contains("it is empty"), "{words:?}: {}", said.err);
        assert!(said.err.contains("hint: ") && said.err.contains("`rm '"), "{}", said.err);
        assert!(!said.out.contains("Nothing is left"), "{}", said.out);
    }
    std::fs::remove_file(&journal).unwrap();
    assert_eq!(world.ok(&["study", "clean", "--dry-run"]).out, "Nothing is left of any study.\n");
}

#[test]
fn an_override_must_override_something() {
    let world = world(TARGETS);
    for bad in ["mounted:/dev/sdb", "signature", "signature:"] {
        let said = world.run(&["study", "targets.toml", "--override", bad]);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("overrides nothing"), "{}", said.err);
    }
}

#[test]
fn the_report_goes_from_the_question_to_the_recommendation() {
    let text = TARGETS.replace("title =", "description = \"Does a copy cost anything?\"\ntitle =");
    let world = world(&text);
    let none = world.run(&["study", "report", "targets.toml"]);
    assert_eq!(none.code, 2, "{}", none.err);
    world.ok(&["study", "targets.toml"]);
    let said = world.ok(&["study", "report", "targets.toml"]).out;
    let mut at = 0;
    for wanted in [
        "memory against nothing",
        "Does a copy cost anything?",
        "The stacks",
        "target: null:, memory:16MiB; the first is the base's.",
        "The method",
        "5 measured one after the other",
        "Results: random-read",
        "1 base",
        "Which factors matter",
        "What could not be told",
        "Recommendation",
    ] {
        let found = said[at..].find(wanted);
        at += found.unwrap_or_else(|| panic!("no {wanted:?} in its place: {said}"));
    }
    // From the base to what was tried in its place, whatever the alphabet says; the rate falls.
    let (_, ratio) = said.split_once("target from null: to memory:16MiB: x").expect(&said);
    assert!(ratio.starts_with("0."), "{said}");
    let other = world.run(&["study", "report", "targets.toml", "--group", "ffffffff"]);
    assert_eq!(other.code, 2, "{}", other.err);
    let wanted = "the store has no run of study targets in group ffffffff";
    assert!(other.err.contains(wanted), "{}", other.err);
    assert!(
        other.err.contains("its groups are ") && !other.err.contains("makes them"),
        "{}",
        other.err
    );
    // Nothing is as fast as nothing: there is no row to recommend beside the base.
    assert!(!said.contains("fastest"), "{said}");
}

#[test]
fn a_report_says_why_so_few_runs_show_nothing() {
    let text = TARGETS.replace("repeats = 2", "repeats = 1");
    let world = world(&text.replace("\"null:\"", "\"null:\", \"memory:8MiB\""));
    let plan = words(&world.ok(&["study", "targets.toml", "--dry-run"]).out);
    assert!(
        plan.contains("no effect can be told from chance, however large: `repeats = 2`"),
        "{plan}"
    );
    world.ok(&["study", "targets.toml", "--quiet"]);
    let said = words(&world.ok(&["study", "report", "targets.toml"]).out);
    assert!(
        said.contains(
            "too few runs to tell: however large the effect is, shuffled runs show as much in 8.3 % of \
             cases. Measure each level several times (`repeats`)."
        ),
        "{said}"
    );
    let (_, others) = said.split_once("By the means in the table memory:").expect(&said);
    assert!(others.contains("MiB is x0.") && others.contains(" of null:."), "{said}");
}

/// The means of a run that was broken off are of other work than those of the rest.
#[test]
fn a_report_tells_no_effect_of_a_run_that_was_broken_off() {
    let world = world(&TARGETS.replace("20ms", "400ms"));
    let mut child = world.command(&["study", "targets.toml", "--quiet"]).spawn().unwrap();
    let made = || runs(&world);
    // The second has a visit, and not all.
    let begun = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        made().get(1).is_some_and(|run| run["visits_made"].as_u64() > Some(0))
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(begun && made()[1]["state"] == "killed", "{:?}", made());
    let said = world.ok(&["study", "report", "targets.toml"]).out;
    for wanted in
        ["1 of 5 runs are complete", "r2 is killed: nothing of it is told here", "Too few runs"]
    {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("to memory:16MiB: x"), "{said}");
    // With the whole of it there is something to tell.
    world.ok(&["study", "targets.toml", "--resume", "--quiet"]);
    let said = world.ok(&["study", "report", "targets.toml"]).out;
    assert!(said.contains("from null: to memory:16MiB: x"), "{said}");
}

#[test]
fn a_dry_run_names_targets_that_would_be_left_out() {
    let text = "[stack]\ntarget = [\"new.dat\", \"user.dat\"]\n[measure]\nsuites = [\"random-write\"]\n\
                size = \"16MiB\"\ntime = \"20ms\"\nquick = true\n";
    let world = world(text);
    std::fs::write(world.path("user.dat"), vec![1; 16 << 20]).unwrap();
    let said = world.ok(&["study", "targets.toml", "--dry-run"]).out;
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Stack 2 would be left out of random-write: "), "{said}");
    assert!(!words.contains("Stack 1 would") && !words.contains("Stack 3 would"), "{said}");
    assert!(!world.path("new.dat").exists(), "nothing is made");
    let json = world.ok(&["study", "targets.toml", "--dry-run", "--json"]).out;
    assert!(json.contains("would be left out of random-write"), "{json}");
}

/// The words of a text, whatever its lines.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_report_tells_what_was_played_and_not_what_the_file_says_by_now() {
    let world = world(TARGETS);
    world.ok(&["study", "targets.toml", "--quiet"]);
    let before = world.ok(&["study", "report", "targets.toml"]);
    assert!(!before.err.contains("warning"), "{}", before.err);
    // Another text.
    let other = TARGETS.replace("memory:16MiB", "memory:32MiB");
    assert_ne!(other, TARGETS);
    std::fs::write(world.path("targets.toml"), &other).unwrap();
    let changed = world.ok(&["study", "report", "targets.toml"]);
    assert_eq!(changed.out, before.out);
    assert!(changed.err.contains("the file was changed since it was played"), "{}", changed.err);
    // Another file of that name, played later.
    std::fs::create_dir(world.path("b")).unwrap();
    std::fs::write(world.path("b/targets.toml"), &other).unwrap();
    world.ok(&["study", "b/targets.toml", "--quiet"]);
    std::fs::write(world.path("targets.toml"), TARGETS).unwrap();
    let again = world.ok(&["study", "report", "targets.toml"]);
    assert_eq!(again.out, before.out, "of its own runs, not of the newest of that name");
    let group = runs(&world).last().unwrap()["part"]["group"].as_str().unwrap().to_owned();
    let named = world.ok(&["study", "report", "targets.toml", "--group", &group]);
    assert!(named.out.contains("target: null:, memory:32MiB"), "{}", named.out);
    assert!(words(&named.err).contains("it was played from"), "{}", named.err);
    // Without a journal nobody knows.
    std::fs::remove_dir_all(world.store().with_extension("db.studies")).unwrap();
    let unknown = world.ok(&["study", "report", "targets.toml", "--group", &group]);
    for wanted in ["no journal beside the store", "other factors or levels than the runs"] {
        assert!(words(&unknown.err).contains(wanted), "{wanted}: {}", unknown.err);
    }
}

#[test]
fn every_run_of_a_study_has_a_seed_of_its_own() {
    let world = world(TARGETS);
    world.ok(&["study", "targets.toml", "--quiet"]);
    let seed = |run: &serde_json::Value| {
        let id = run["id"].as_str().unwrap();
        let said = world.ok(&["export", id, "--format", "json"]).out;
        serde_json::from_str::<serde_json::Value>(&said).unwrap()["seed"].clone()
    };
    let mut seeds: Vec<String> = runs(&world).iter().map(|run| seed(run).to_string()).collect();
    let all = seeds.len();
    assert!(all >= 3 && !seeds.contains(&"null".to_owned()), "{seeds:?}");
    seeds.sort();
    seeds.dedup();
    assert_eq!(seeds.len(), all, "{seeds:?}");
}

/// A link to a store is that store, and what it began is found by either name.
#[test]
fn journals_are_those_of_the_store_whatever_link_leads_to_it() {
    let world = world(TARGETS);
    std::fs::create_dir(world.path("l")).unwrap();
    std::fs::write(world.path("l/own.db"), "").unwrap();
    std::os::unix::fs::symlink("l/own.db", world.path("link.db")).unwrap();
    let journals = world.path("l/own.db.studies");
    std::fs::create_dir_all(&journals).unwrap();
    std::fs::write(journals.join("a-0000abcd.journal"), "").unwrap();
    let said = world.run(&["study", "clean", "--store", "link.db"]);
    assert_eq!(said.code, 6, "{}", said.err);
    // Another store's beside it is another's.
    for other in ["l/own", "l/own.db2", "l/own.x"] {
        let said = world.run(&["study", "clean", "--store", other]);
        assert_eq!(said.code, 0, "{other}: {}", said.err);
    }
}

#[test]
fn a_suite_of_one_visit_is_told_by_its_rate() {
    let own = "schema = 1\nname = \"once\"\nfile_size = \"16MiB\"\nmethod = \"classic\"\n[[phase]]\n\
               name = \"read\"\ntime = \"20ms\"\nblock_size = \"4KiB\"\n";
    let text =
        "[stack]\ntarget = [\"null:\", \"memory:16MiB\"]\n[measure]\nsuites = [\"./once.toml\"]\n";
    let world = world(text);
    std::fs::write(world.path("once.toml"), own).unwrap();
    world.ok(&["study", "targets.toml", "--quiet"]);
    let said = world.ok(&["study", "report", "targets.toml"]).out;
    let rows: Vec<&str> = said.lines().filter(|line| line.contains("null:  ")).collect();
    assert!(!rows.is_empty(), "{said}");
    for row in rows {
        let last = row.split_whitespace().last().unwrap();
        assert!(last.parse::<f64>().is_ok_and(|rate| rate > 0.0), "{row}");
    }
}

#[test]
fn scratch_files_of_a_killed_study_go_with_it() {
    let text = "[stack]\ntarget = [\"a/\", \"b/\"]\n[measure]\nsuites = [\"random-read\"]\n\
                size = \"16MiB\"\ntime = \"400ms\"\n";
    let world = world(text);
    for place in ["a", "b"] {
        std::fs::create_dir(world.path(place)).unwrap();
    }
    let files = || {
        let all = ["a", "b"].map(|place| world.path(place).read_dir().unwrap().count());
        all.iter().sum::<usize>()
    };
    let mut child = world.command(&["study", "targets.toml", "--quiet"]).spawn().unwrap();
    let begun = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let visited = || runs(&world).first().is_some_and(|r| r["visits_made"].as_u64() > Some(0));
        files() > 0 && world.run(&["list"]).code == 0 && visited()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(begun && files() > 0);
    let dry = world.ok(&["study", "clean", "--dry-run"]);
    assert!(dry.out.contains("files that its runs left"), "{}", dry.out);
    assert!(files() > 0);
    let said = world.ok(&["study", "clean"]);
    assert_eq!(files(), 0, "{}", said.err);
    assert!(said.err.contains("removed what r1 left"), "{}", said.err);
}
