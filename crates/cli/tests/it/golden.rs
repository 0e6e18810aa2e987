//! The answers of varied runs, word by word, as somebody gets to read them.

use crate::world::World;

/// A drive of 16 GiB: a flush and a read of so many us, and what else there is to it.
fn drive(world: &World, name: &str, (flush, read): (u32, u32), more: &str) {
    let text = format!(
        "schema = 1\nname = \"{name}\"\nwhy = \"a test\"\n[model]\nsize = \"16GiB\"\n\
         sync_time = \"{flush}us\"\n[model.read]\niops = 40000\nlatency = \"{read}us\"\n\
         [model.write]\niops = 40000\nlatency = \"30us\"\n{more}"
    );
    std::fs::write(world.path(name), text).unwrap();
}

/// All drives that the answers are of.
fn drives() -> World {
    const CALM: &str = "[model.noise]\njitter = 0.2\ncv = 0.02\nrho = 0.3\nvisit_shift = 0.01\n";
    const SHIFTS: &str = "[model.noise]\njitter = 0.3\ncv = 0.1\nrho = 0.9\nvisit_shift = 0.06\n";
    let world = World::new();
    drive(&world, "good", (100, 90), CALM);
    drive(&world, "twin", (100, 90), CALM);
    drive(&world, "slow", (2000, 90), CALM);
    drive(&world, "reader", (600, 60), CALM);
    drive(&world, "noisy", (1000, 100), SHIFTS);
    drive(&world, "noisier", (1110, 100), SHIFTS);
    let cache = "[model.cache]\nsize = \"8GiB\"\nlatency = \"5us\"\n[model.noise]\njitter = 0.2\n";
    drive(&world, "cached", (1000, 100), cache);
    let freezes = "[model.random_freezes]\nper_hour = 200\nlength = \"400ms\"\n";
    drive(&world, "frozen", (500, 90), &format!("{CALM}{freezes}"));
    let fails = "[[fault]]\nwhat = { error = \"EIO\" }\nops = [\"read\"]\nrate = 0.0001\n";
    drive(&world, "failing", (500, 90), &format!("{CALM}{fails}"));
    let loses = "[[fault]]\nwhat = \"lost\"\nnth = 20000\n";
    drive(&world, "losing", (500, 90), &format!("{CALM}{loses}"));
    let bucket = "[[model.bucket]]\nkind = \"ops\"\nbase = 3000\nburst = 12000\nsize = 400000\n";
    drive(&world, "bucket", (300, 150), &format!("{CALM}{bucket}"));
    world
}

/// What each command answers.
///
/// * `told`: the answer in what it printed.
fn answers(world: &World, commands: &[&str], told: impl Fn(&str) -> String) -> String {
    let answer = |command: &&str| {
        let words: Vec<&str> = command.split(' ').chain(["-q", "--seed", "7"]).collect();
        let done = world.run(&words);
        format!("$ plimsoll {command}\n{}\n-- exit code {}\n", told(&done.out), done.code)
    };
    commands.iter().map(answer).collect::<Vec<_>>().join("\n")
}

/// Everything before the first empty line.
fn head(out: &str) -> String {
    out.split("\n\n").next().unwrap_or_default().trim_end().to_owned()
}

#[test]
fn which() {
    let commands = [
        "which model:good model:slow --minutes 1",
        "which model:slow model:good model:reader --minutes 1",
        "which model:good model:twin --minutes 1",
        "which model:slow model:reader --minutes 1",
        "which model:noisy model:noisier --minutes 1",
        "which model:good --minutes 1",
        "which model:cached model:slow --minutes 1",
        "which model:frozen model:slow --minutes 1",
        "which model:failing model:slow --minutes 1",
        "which model:losing model:slow --minutes 1",
        "which model:bucket model:slow --minutes 1",
        "which model:slow model:good --for innodb --minutes 1",
        "which model:slow model:good --for sqlite --minutes 1",
    ];
    insta::assert_snapshot!("answers-which", answers(&drives(), &commands, head));
}

#[test]
fn line() {
    let commands = [
        "line model:good --hold 20s",
        "line model:slow --level p99<20ms --hold 20s",
        "line model:slow --level p99<1ms",
        "line model:frozen --hold 20s",
        "line model:bucket --hold 10min",
        "line model:failing",
        "line model:losing",
        "line model:slow --level p99<1s",
        "line model:slow --at 0.02 --hold 20s",
        "line model:good --at 2000 --hold 20s",
        "line model:slow --at 2000 --hold 20s",
    ];
    insta::assert_snapshot!("answers-line", answers(&drives(), &commands, head));
}

/// Of the newest run, as `explain` begins with it.
fn explained(world: &World) -> String {
    let told = world.ok(&["explain", "--json"]).out;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let said = told["runs"][0]["sections"][0]["findings"].as_array().unwrap();
    let said: Vec<&str> = said.iter().map(|one| one["text"].as_str().unwrap()).collect();
    said.join("\n")
}

#[test]
fn run() {
    let commands = [
        "run wal --quick --target model:good",
        "run database-server --quick --target model:slow",
        "run pg-test-fsync --quick --target model:slow",
        "run random-read --quick --target model:cached",
        "run random-read --quick --target model:failing",
    ];
    let world = drives();
    insta::assert_snapshot!("answers-run", answers(&world, &commands, |_| explained(&world)));
}
