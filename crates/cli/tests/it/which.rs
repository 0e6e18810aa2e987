//! `plimsoll which`

use serde_json::Value;

use crate::world::World;

/// A drive whose flush takes so long, and whose reads do.
fn place(world: &World, name: &str, flush_us: u32, read_us: u32) -> String {
    let text = format!(
        "schema = 1\nname = \"{name}\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
         sync_time = \"{flush_us}us\"\n[model.read]\nlatency = \"{read_us}us\"\n\
         [model.write]\nlatency = \"20us\"\n[model.noise]\njitter = 0.1\nvisit_shift = 0.01\n"
    );
    std::fs::write(world.path(name), text).unwrap();
    format!("model:{name}")
}

fn which(world: &World, places: &[&str]) -> Value {
    let words = [&["which", "--json", "--seed", "11", "--minutes", "1"], places].concat();
    serde_json::from_str(&world.ok(&words).out).unwrap()
}

#[test]
fn five_minutes_add_sessions_deep_reads_and_a_scan() {
    let world = World::new();
    let place = place(&world, "one", 500, 100);
    let words = ["which", "--json", "-q", "--seed", "11", "--minutes", "5", &place];
    let found: Value = serde_json::from_str(&world.ok(&words).out).unwrap();
    let figures = found["places"][0]["figures"].as_array().unwrap();
    let of = |what: &str| {
        let one = figures.iter().find(|figure| figure["what"] == what);
        one.unwrap_or_else(|| panic!("no {what}: {found:#}"))["rate"]["value"].as_f64().unwrap()
    };
    // Half of the sessions share a flush of 0.5 ms and its write.
    for (sessions, what) in [(8.0, "commits/s by 8 sessions"), (64.0, "commits/s by 64 sessions")] {
        let wanted = sessions / 2.0 / 520e-6;
        assert!((of(what) / wanted - 1.0).abs() < 0.1, "{what}: {}", of(what));
    }
    assert_eq!(figures[0]["what"], "commits/s by 16 sessions beside reads and a checkpoint");
    assert!(of("page reads/s 128 deep") > 1e6);
    // Four of 1 MiB at a time, 0.1 ms each.
    assert!((of("scan") / (4.0 * 1_048_576.0 / 100e-6) - 1.0).abs() < 0.1, "{}", of("scan"));
}

fn codes(found: &Value) -> Vec<&str> {
    let findings = found["answer"]["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

#[test]
fn the_better_place_is_named_and_the_figures_are_those_planted() {
    let world = World::new();
    let (slow, fast) = (place(&world, "slow", 2000, 100), place(&world, "fast", 500, 100));
    for places in [[&slow, &fast], [&fast, &slow]] {
        let found = which(&world, &places.map(String::as_str));
        assert_eq!((&found["choice"], &found["place"]), (&"use".into(), &Value::from(&*fast)));
        let one = found["places"].as_array().unwrap();
        let one = one.iter().find(|place| place["place"] == *fast).unwrap();
        let figures = one["figures"].as_array().unwrap();
        assert_eq!(figures[1]["what"], "commits/s by 16 sessions");
        // Two groups of eight take turns at flushes of 0.5 ms, each after a write.
        let rate = figures[1]["rate"]["value"].as_f64().unwrap();
        assert!((14_000.0..16_000.0).contains(&rate), "{rate}");
        let reads = figures.iter().find(|one| one["what"] == "page reads/s 16 deep").unwrap();
        assert!((150e3..170e3).contains(&reads["rate"]["value"].as_f64().unwrap()), "{reads}");
    }
    let text = world.ok(&["which", "-q", &slow, &fast, "--seed", "3", "--minutes", "1"]).out;
    assert!(text.starts_with("Use B (`model:fast`): "), "{text}");
    let (answer, table) = text.split_once("\n\n").unwrap();
    assert!(answer.lines().count() <= 9, "{text}");
    assert!(table.contains("commits/s by 16 sessions"), "{text}");
    assert!(table.contains("B / A"), "{text}");
    // The page says the same from what was stored.
    let ids = stored(&world);
    let page = world.ok(&["report", &ids[0], &ids[1], "--json"]).out;
    let page: Value = serde_json::from_str(&page).unwrap();
    let said = page["which"]["answer"]["sentences"][0].as_str().unwrap();
    assert!(said.starts_with("Use B (`model:fast`): "), "{said}");
    assert_eq!(page["which"]["run"], *ids[1]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with(said), "{said} {text}");
}

/// Ids of the last two runs, in their order.
fn stored(world: &World) -> [String; 2] {
    let list: Value = serde_json::from_str(&world.ok(&["list", "--json"]).out).unwrap();
    let runs = list["runs"].as_array().unwrap();
    let mut ids: Vec<u32> = runs
        .iter()
        .map(|run| run["id"].as_str().unwrap().trim_start_matches('r').parse().unwrap())
        .collect();
    ids.sort_unstable();
    let last = &ids[ids.len() - 2..];
    [format!("r{}", last[0]), format!("r{}", last[1])]
}

#[test]
fn equal_places_are_called_so_and_opposite_ones_split() {
    let world = World::new();
    let one = place(&world, "one", 1000, 100);
    let twin = place(&world, "twin", 1000, 100);
    assert_eq!(which(&world, &[&one, &twin])["choice"], "equal");
    let reader = place(&world, "reader", 1000, 50);
    let committer = place(&world, "committer", 500, 100);
    let found = which(&world, &[&reader, &committer]);
    assert_eq!(found["choice"], "split");
    assert_eq!(found["place"], *committer, "commits come first");
    let found = which(&world, &[&one, &reader, &committer]);
    assert_eq!(found["choice"], "split", "the first is worse than either");
    let found = which(&world, &[&one, &twin, &place(&world, "slow", 4000, 400)]);
    assert_eq!(found["choice"], "equal", "the third is out of the question");
    let text = found["answer"]["sentences"][0].as_str().unwrap();
    assert!(text.starts_with("No difference that matters: A and B are"), "{text}");
}

#[test]
fn one_place_has_figures_and_no_choice() {
    let world = World::new();
    let one = place(&world, "one", 1000, 100);
    let found = which(&world, &[&one]);
    assert_eq!(found["choice"], "alone");
    assert_eq!(codes(&found)[..2], ["which-alone", "which-limit"]);
    let table = world.ok(&["table", "last"]).out;
    assert!(table.contains("a commit ends with the flush that it shares"), "{table}");
}

#[test]
fn figures_too_little_known_ask_for_more_minutes_than_were_measured() {
    let world = World::new();
    let noise = "jitter = 0.1\nvisit_shift = 2.2\ncv = 0.5\nrho = 0.9\n";
    let unsteady = noisy(&world, "unsteady", 1.0, noise);
    let said = world.ok(&["which", "--seed", "3", "--minutes", "1", "-q", &unsteady]).out;
    assert!(said.contains("--minutes 4"), "{said}");
    let again = world.ok(&["explain", "last"]).out;
    assert!(again.contains("--minutes 4") && !again.contains("--minutes 0"), "{again}");
}

#[test]
fn several_targets_of_a_run_are_said_to_be_one_result() {
    let world = World::new();
    let words = ["run", "random-read", "--dry-run", "--target", "a.dat", "--target", "b.dat"];
    let hint = "there is one result; to compare places: `plimsoll which A B`";
    assert!(world.ok(&words).err.contains(hint), "{:?}", world.run(&words));
    assert!(!world.ok(&words[..5]).err.contains(hint));
}

#[test]
fn sqlite_commits_one_by_one() {
    let world = World::new();
    let one = place(&world, "one", 1000, 100);
    let words = ["which", "--json", "--seed", "11", "--minutes", "1", "--for", "sqlite", &one];
    let found: Value = serde_json::from_str(&world.ok(&words).out).unwrap();
    let figures = found["places"][0]["figures"].as_array().unwrap();
    let names: Vec<&str> = figures.iter().map(|one| one["what"].as_str().unwrap()).collect();
    assert_eq!(
        names[..2],
        ["commits/s one by one beside reads and a checkpoint", "commits/s one by one"]
    );
    assert!(names.iter().all(|name| !name.contains("sessions")), "{names:?}");
    assert_eq!(names.len(), 4);
}

#[test]
fn a_place_that_fails_is_no_choice_and_is_named_first() {
    let world = World::new();
    let (slow, bad) = (place(&world, "slow", 2000, 100), place(&world, "bad", 100, 50));
    let path = world.path("bad");
    let text = std::fs::read_to_string(&path).unwrap();
    let fault = "[[fault]]\nwhat = { error = \"EIO\" }\nops = [\"read\"]\n";
    std::fs::write(&path, text + fault).unwrap();
    let words = ["which", "--json", "-q", "--seed", "11", "--minutes", "1", &slow, &bad];
    let done = world.run(&words);
    assert_ne!(done.code, 0);
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(codes(&found)[0], "place-failed");
    assert_eq!((&found["choice"], &found["place"]), (&"use".into(), &Value::from(&*slow)));
}

#[test]
fn memory_and_the_same_place_twice_are_refused() {
    let world = World::new();
    let one = place(&world, "one", 1000, 100);
    let done = world.run(&["which", &one, &one]);
    assert!(done.err.contains("is named twice"), "{}", done.err);
    if std::fs::metadata("/dev/shm").is_ok() {
        let done = world.run(&["which", "/dev/shm", &one]);
        assert_ne!(done.code, 0);
        assert!(done.err.contains("memory, which loses everything"), "{}", done.err);
    }
    let done = world.run(&["which", &one, "not-there"]);
    assert!(done.err.contains("not-there is not there"), "{}", done.err);
    assert!(world.files().iter().all(|name| name != "not-there"), "nothing is made");
    let done = world.ok(&["which", &one, "--dry-run"]);
    assert!(done.out.contains("Takes the sides in turn"), "{}", done.out);
}

/// A drive that is so many times as slow as another in all that it does, with its own noise.
fn noisy(world: &World, name: &str, slower: f64, noise: &str) -> String {
    let us = |time: f64| format!("{:.3}us", time * slower);
    let text = format!(
        "schema = 1\nname = \"{name}\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
         sync_time = \"{}\"\n[model.read]\nlatency = \"{}\"\n[model.write]\nlatency = \"{}\"\n\
         [model.noise]\n{noise}\n",
        us(1000.0),
        us(100.0),
        us(20.0)
    );
    std::fs::write(world.path(name), text).unwrap();
    format!("model:{name}")
}

/// Pairs and triples of which the best is known: better by 20 % and more it must be chosen, within 3 %
/// nothing may be. What wanders as slowly as a visit lasts may leave it open. `PLIMSOLL_WHICH=4` plays
/// each so often.
#[test]
fn planted_places_are_told_apart() {
    const NOISES: [&str; 4] = [
        "jitter = 0.1\nvisit_shift = 0.01",
        "cv = 0.05\nrho = 0.5\njitter = 0.2\nvisit_shift = 0.03",
        "cv = 0.15\njitter = 0.3",
        "cv = 0.1\nrho = 0.9\njitter = 0.2\nvisit_shift = 0.05",
    ];
    // By how much each is slower than the first.
    const PLACES: [&[f64]; 6] =
        [&[1.0, 1.2], &[1.0, 1.5], &[1.0, 1.0], &[1.0, 1.03], &[1.0, 1.25, 2.0], &[1.0, 1.0, 1.4]];
    let long = std::env::var("PLIMSOLL_WHICH").ok().map(|text| text.parse::<usize>().unwrap());
    let (mut apart, mut near) = ([0; 3], [0; 3]);
    let cases = PLACES.iter().flat_map(|places| NOISES.iter().map(move |noise| (places, noise)));
    // The short form plays each pair and triple once, with one noise or another.
    let cases = cases.enumerate().filter(|(k, _)| long.is_some() || k % 5 == k / 4 % 5);
    for (k, (slower, noise)) in cases {
        for seed in 0..long.unwrap_or(1) {
            let world = World::new();
            let turned = slower.iter().cycle().skip(seed % slower.len()).take(slower.len());
            let names: Vec<(f64, String)> = turned
                .enumerate()
                .map(|(at, slower)| (*slower, noisy(&world, &format!("p{at}"), *slower, noise)))
                .collect();
            let seed = (1000 * k + seed).to_string();
            let words: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
            let words = [&["which", "--json", "--seed", &seed], words.as_slice()].concat();
            let found: Value = serde_json::from_str(&world.ok(&words).out).unwrap();
            let is_apart = slower.iter().filter(|slower| **slower < 1.1).count() == 1;
            let best = names.iter().find(|(slower, _)| *slower == 1.0).map(|(_, name)| &**name);
            let chosen = found["choice"] == "use";
            let wanders = noise.contains("rho = 0.9");
            let (counts, right, wrong) = match is_apart {
                true => {
                    let is_best = found["place"].as_str() == best;
                    (&mut apart, chosen && is_best, chosen && !is_best)
                }
                false => {
                    (&mut near, found["choice"] == "equal", chosen || found["choice"] == "split")
                }
            };
            let place = if right || wanders && !wrong { 0 } else { 1 + usize::from(wrong) };
            counts[place] += 1;
            if !right {
                let said = &found["answer"]["sentences"][0];
                println!("{slower:?} {noise:?} seed {seed}: {said}");
            }
        }
    }
    println!("apart: right, open, wrong {apart:?}; equal: {near:?}");
    let all = |counts: [usize; 3]| counts.iter().sum::<usize>();
    assert!(apart[0] * 100 >= all(apart) * 95, "{apart:?}");
    assert!(apart[2] * 20 <= all(apart) && near[2] * 20 <= all(near), "{apart:?} {near:?}");
}
