use crate::world::World;

#[test]
fn alone_it_prints_short_help() {
    let world = World::new();
    let done = world.ok::<&str>(&[]);
    assert_eq!(done.err, "");
    insta::assert_snapshot!("alone", done.out);
    assert_eq!(world.ok(&["-h"]).out, done.out);
    assert_eq!(world.files(), ["home"]);
}

#[test]
fn exit_codes_are_in_the_long_help() {
    let world = World::new();
    for words in [&["--help"][..], &["run", "--help"], &["resume", "--help"]] {
        let done = world.ok(words);
        assert!(done.out.contains("  130  ended by Ctrl-C"), "{words:?}");
    }
}

#[test]
fn mistakes_are_named_with_a_way_out() {
    let world = World::new();
    let mut text = String::new();
    for line in [
        "lst",
        "run",
        "run bm-flsh",
        "run nothing.toml",
        "run bm-flash --size 4X",
        "run bm-flash --time soon",
        "run bm-flash --set thraeds=4",
        "run bm-flash --set threads",
        "run bm-flash --backend iouring",
        "run bm-flash --cpus 3-1",
        "run bm-flash --even-though mounted",
        "run bm-flash --target memory:lots",
        "run bm-flash --target model:missing.toml",
        "run random-write --target /dev/zero",
        "run bm-flash --json --dry-run",
        "show",
        "show --store missing.db",
        "list --store missing.db",
        "resume",
        "rm",
        "export last --format xml",
        "suite show nothing",
        "suite",
        "completions tcsh",
    ] {
        let done = world.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(done.out, "", "{line}");
        text += &format!("$ plimsoll {line}\n{}[{}]\n\n", done.err, done.code);
    }
    let home = world.dir.to_string_lossy().into_owned();
    insta::with_settings!({filters => vec![(home.as_str(), "[DIR]")]}, {
        insta::assert_snapshot!("mistakes", text);
    });
    assert_eq!(world.files(), ["home"]);
    assert!(!world.store().exists());
}

#[test]
fn every_shell_has_completions_and_every_command_a_page() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(world.ok(&["completions", shell]).out.contains("resume"), "{shell}");
    }
    assert!(world.ok(&["man"]).out.contains(".TH plimsoll 1"));
    world.ok(&["man", "--dir", "pages"]);
    assert!(world.path("pages/plimsoll.1").exists());
    assert!(world.path("pages/plimsoll-suite-show.1").exists());
}

#[test]
fn the_generated_pages_do_not_depend_on_where_they_are_made() {
    let world = World::new();
    world.ok(&["__generate", "a"]);
    let mut command = world.command(&["__generate", "b"]);
    assert!(command.env("COLUMNS", "20").env("NO_COLOR", "1").status().unwrap().success());
    for name in ["cli.md", "suite.schema.json"] {
        let read = |dir: &str| std::fs::read_to_string(world.path(dir).join(name)).unwrap();
        assert_eq!(read("a"), read("b"));
        assert!(!read("a").contains('\x1b'));
    }
}
