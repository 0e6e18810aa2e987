//! What is wrong with a suite is said with its place, what was seen and what was wanted.
#![expect(clippy::panic, reason = "a test may panic")]

use suite::{CheckContext, SuiteError, SuiteSource, check, parse};
use units::Bytes;

/// A sound suite: the top, the phase and the grid have room for a line each.
fn text(top: &str, phase: &str, rest: &str) -> String {
    format!(
        "schema = 1\nname = \"t\"\n{top}\n\n[[phase]]\nname = \"main\"\ntime = \"1s\"\n{phase}\n{rest}\n"
    )
}

fn refused(text: &str) -> SuiteError {
    match parse(text, "t.toml").and_then(|source| check(&source, &CheckContext::default())) {
        Ok(_) => panic!("this was accepted:\n{text}"),
        Err(error) => error,
    }
}

/// The message and the hint, as a person sees them.
fn said(error: &SuiteError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}\n  hint: {hint}"),
        None => error.to_string(),
    }
}

#[test]
fn the_sound_suite_is_sound() {
    let source = parse(&text("", "", ""), "t.toml").unwrap();
    assert_eq!(check(&source, &CheckContext::default()).unwrap().cell_count(), 1);
}

#[test]
fn streams_together_ask_for_no_more_than_one_may() {
    let stream = |name: &str, threads: u32| {
        let head = format!("[[phase.stream]]\nname = \"{name}\"\n");
        format!("{head}queue_depth = 65536\nthreads = {threads}\n")
    };
    let most = stream("a", 15) + &stream("b", 1);
    let source = parse(&text("", "", &most), "t.toml").unwrap();
    assert!(check(&source, &CheckContext::default()).is_ok());
    assert_eq!(
        said(&refused(&text("", "", &(most + &stream("c", 1))))),
        "t.toml:5: `threads x queue_depth of all streams` is `1114112`, wanted at most 1048576"
    );
}

#[test]
fn bad_text() {
    let cases = [
        ("schema = ", "t.toml:1: string values must be quoted, expected literal string"),
        (
            "schema = 1\nname = \"t\"\nname = \"u\"",
            "t.toml:3: key `name` comes twice\n  hint: keep one of them",
        ),
        ("", "t.toml:1: the suite has no `schema = 1`"),
        (
            "schema = 2\nname = \"t\"\n[[phase]]\nname = \"p\"",
            "t.toml:1: `schema` is `2`, wanted `1`, all that this version knows",
        ),
        ("schema = 1", "t.toml:1: the suite has no `name`"),
        ("schema = 1\nname = \"t\"", "t.toml:1: the suite has no `[[phase]]`"),
        ("schema = 1\nname = \"t\"\nphase = []", "t.toml:3: the suite has no `[[phase]]`"),
        (
            "schema = 1\nname = \"t\"\n[phase]\nname = \"p\"",
            "t.toml:3: `phase` is a table, wanted a list of tables, written `[[phase]]`",
        ),
        (
            "schema = 1\nname = \"T 1\"\n[[phase]]\nname = \"p\"",
            "t.toml:2: `T 1` cannot be the name of a suite\n  hint: names are 1 to 64 lower-case letters, digits and hyphens, no hyphen first",
        ),
        ("schema = 1\nname = \"t\"\n[[phase]]\ntime = 1", "t.toml:3: the phase has no `name`"),
        (
            "schema = 1\nname = \"t\"\n[[phase]]\nname = \"time\"",
            "t.toml:4: `time` cannot be the name of a phase\n  hint: `time` is the name of a field; overrides could not tell them apart",
        ),
        (
            "schema = 1\nname = \"t\"\n[[phase]]\nname = 7",
            "t.toml:4: `name` is the number 7, wanted a string",
        ),
        (
            "schema = 1\nname = \"t\"\n[[phase]]\nname = \"p\"",
            "t.toml:3: nothing ends stream `p`\n  hint: set `time`, `bytes` or `operations`",
        ),
    ];
    table(&cases, |case| (*case).to_owned());
}

/// What people write who know other tools, or half of this page.
#[test]
fn what_newcomers_write() {
    let top = [
        (
            "[grid]\nthreads = [1, 2]",
            "t.toml:3: unknown key `grid`\n  hint: it belongs in a phase: `[phase.grid]` below its `[[phase]]`",
        ),
        (
            "[[stream]]\nname = \"a\"",
            "t.toml:3: unknown key `stream`\n  hint: it belongs in a phase: `[[phase.stream]]` below its `[[phase]]`",
        ),
        (
            "[[part]]\nsuite = \"bonnie\"",
            "t.toml:3: unknown key `part`\n  hint: it belongs in a list of suites, which has `[[part]]` and no `[[phase]]`: make a file for each",
        ),
        (
            "[default]\nthreads = 2",
            "t.toml:3: unknown key `default`\n  hint: did you mean `[defaults]`?",
        ),
        (
            "visits_max = 3",
            "t.toml:3: unknown key `visits_max`\n  hint: it belongs in `[rounds]`, a table at the top of the suite",
        ),
        (
            "[rounds]\nvisits_mox = 3",
            "t.toml:4: unknown key `visits_mox`\n  hint: did you mean `visits_max`?",
        ),
        (
            "[rounds]\nwhatever = 3",
            "t.toml:4: unknown key `whatever`\n  hint: known here: precision, visits_min, visits_max, visit_time, ramp, least_operations, visit_time_max, time_max, pilot",
        ),
        (
            "iodepth = 3",
            "t.toml:3: unknown key `iodepth`\n  hint: did you mean `queue_depth`? it belongs in [defaults], a phase or a stream",
        ),
        (
            "[rounds]\nramp = 1\n[rounds]\nramp = 2",
            "t.toml:5: key `rounds` comes twice\n  hint: keep one of them",
        ),
        (
            "[phase]\nname = \"a\"\n[phase]\nname = \"b\"",
            "t.toml:5: key `phase` comes twice\n  hint: several are written `[[phase]]`",
        ),
        (
            "file_size = 4GiB",
            "t.toml:3: `file_size` is 4GiB, wanted a number, or text in quotes\n  hint: put it in quotes: `\"4GiB\"`",
        ),
        (
            "fill = yes",
            "t.toml:3: `fill` is yes, wanted a number, or text in quotes\n  hint: say `true`",
        ),
        (
            "file_count = \"2\"",
            "t.toml:3: `file_count` is the string \"2\", wanted a whole number, not negative\n  hint: without quotes: `2`",
        ),
    ];
    table(&top, |case| text(case, "", ""));
    let phase = [
        (
            "[[phase.streams]]\nname = \"a\"",
            "t.toml:8: unknown key `streams`\n  hint: did you mean `[[phase.stream]]`?",
        ),
        (
            "streams = [\"a\", \"b\"]",
            "t.toml:8: `streams` cannot stand here\n  hint: it belongs in [phase.grid]",
        ),
        (
            "[phase.stream]\nname = \"a\"",
            "t.toml:8: `phase.stream` is a table, wanted a list of tables, written `[[phase.stream]]`",
        ),
        (
            "[[phase.grid]]\nthreads = [1, 2]",
            "t.toml:8: `grid` is a list, wanted a table\n  hint: a phase has one `[phase.grid]`, with a list of values for each field that varies",
        ),
        (
            "[phase.grid]\nsteady = [1]",
            "t.toml:9: unknown key `steady`\n  hint: it belongs in a phase, not in a stream or a grid",
        ),
        (
            "rounds_max = 3",
            "t.toml:8: unknown key `rounds_max`\n  hint: it belongs in a phase's `steady = { rounds_max = 50 }`; of `[rounds]` that is `visits_max`",
        ),
        (
            "max_visits = 3",
            "t.toml:8: unknown key `max_visits`\n  hint: did you mean `visits_max`? it belongs in `[rounds]`, a table at the top of the suite",
        ),
        (
            "weight = 3",
            "t.toml:8: unknown key `weight`\n  hint: it belongs in `classes = [{ weight = 3, operation = \"read\" }]`",
        ),
        (
            "write_share = 0.3",
            "t.toml:8: unknown key `write_share`\n  hint: did you mean `read_share`? it is 1 less the share of writes",
        ),
        (
            "read_share = 50%",
            "t.toml:8: `read_share` is 50%, wanted a number, or text in quotes\n  hint: a share is a part of 1: 50 % is `0.5`",
        ),
        (
            "read_share = \"67%\"",
            "t.toml:8: `read_share` is the string \"67%\", wanted a number\n  hint: a share is a part of 1: 67 % is `0.67`",
        ),
        (
            "region = 50%",
            "t.toml:8: `region` is 50%, wanted a number, or text in quotes\n  hint: put it in quotes: `\"50%\"`",
        ),
        (
            "region = { start = 10%, length = \"5%\" }",
            "t.toml:8: `start` is 10%, wanted a number, or text in quotes\n  hint: put it in quotes: `\"10%\"`",
        ),
        (
            "region = 0.25",
            "t.toml:8: `region` is the number 0.25, wanted a size, a share such as \"25%\", or a table with `start` and `length`\n  hint: a share of the files is text: `\"25%\"`",
        ),
        (
            "[phase.grid]\nblock_size = [4KiB, 8KiB]",
            "t.toml:9: `block_size` is 4KiB, wanted a number, or text in quotes\n  hint: put it in quotes: `\"4KiB\"`",
        ),
        (
            "block_size = { \"4KiB\" = 60 }",
            "t.toml:8: `block_size` is a table, wanted a size such as 4096, \"4K\", \"4KiB\" or \"4kB\"\n  hint: a mix of sizes goes to `block_sizes`: `{ \"4KiB\" = 60, \"64KiB\" = 40 }`",
        ),
        (
            "block_sizes = [{ size = \"4KiB\", weight = 60 }]",
            "t.toml:8: `block_sizes` is a table, wanted a size such as 4096, \"4K\", \"4KiB\" or \"4kB\"\n  hint: with weights it is one table: `{ \"4KiB\" = 60, \"64KiB\" = 40 }`",
        ),
        (
            "operation = \"randwrite\"",
            "t.toml:8: `operation` is `randwrite`, wanted `read`, `write`, `fsync`, `fdatasync`, `sync-range`, `trim`, `update`, `copy`, `create`, `stat`, `delete`, `copy-range`, `commit` or `transaction`\n  hint: say `operation = \"write\"` with `access = \"uniform\"`",
        ),
        (
            "steady = true",
            "t.toml:8: `steady` is true, wanted a table\n  hint: for example `steady = { round = \"10s\", volume = 2 }`",
        ),
        (
            "direct = \"false\"",
            "t.toml:8: `direct` is the string \"false\", wanted true or false\n  hint: without quotes: `false`",
        ),
        (
            "think = \"2 minutes\"",
            "t.toml:8: `think`: `minutes` in `2 minutes` is not a unit of time: wanted ns, us, ms, s, min or h",
        ),
        (
            "threads = 1\nthreads = 2",
            "t.toml:9: key `threads` comes twice\n  hint: keep one of them",
        ),
        (
            "[[phase.stream]]\nname = \"a\"\nsettle = 3",
            "t.toml:10: `settle` cannot stand here\n  hint: it belongs in a phase, or at the top of the suite",
        ),
    ];
    table(&phase, |case| text("", case, ""));
}

#[test]
fn bad_top() {
    let cases = [
        ("file_sise = 1", "t.toml:3: unknown key `file_sise`\n  hint: did you mean `file_size`?"),
        ("fil = true", "t.toml:3: unknown key `fil`\n  hint: did you mean `fill`?"),
        (
            "colour = true",
            "t.toml:3: unknown key `colour`\n  hint: known here: schema, name, title, description, scaled, file_size, file_count, fill, data, precondition, method, rounds, repeats, order, settle, caches, table, level, defaults, phase, quick",
        ),
        (
            "block_size = \"4K\"",
            "t.toml:3: `block_size` cannot stand here\n  hint: it belongs in [defaults], a phase or a stream",
        ),
        ("file_size = 0", "t.toml:3: `file_size` is `0B`, wanted 1B to 8EiB in all files together"),
        (
            "file_size = \"4X\"",
            "t.toml:3: `file_size`: `X` in `4X` is not a unit of size: wanted B, KiB, MiB, GiB, TiB (K, M, G, T for short) or kB, MB, GB, TB",
        ),
        ("file_size = -1", "t.toml:3: `file_size`: `-1` is not a size: it is negative"),
        (
            "file_size = true",
            "t.toml:3: `file_size` is true, wanted a size such as 4096, \"4K\", \"4KiB\" or \"4kB\"",
        ),
        (
            "file_size = \"8388608T\"\nfile_count = 2",
            "t.toml:3: `file_size` is `8388608TiB`, wanted 1B to 8EiB in all files together",
        ),
        ("file_count = 0", "t.toml:3: `file_count` is `0`, wanted 1 to 100000"),
        (
            "file_count = \"two\"",
            "t.toml:3: `file_count` is the string \"two\", wanted a whole number, not negative",
        ),
        (
            "file_count = 1.5",
            "t.toml:3: `file_count` is the number 1.5, wanted a whole number, not negative",
        ),
        (
            "fill = \"yes\"",
            "t.toml:3: `fill` is the string \"yes\", wanted true or false\n  hint: say `true`",
        ),
        ("repeats = 0", "t.toml:3: `repeats` is `0`, wanted 1 to 10000"),
        ("repeats = 100000", "t.toml:3: `repeats` is `100000`, wanted 1 to 10000"),
        (
            "order = \"shufled\"",
            "t.toml:3: `order` is `shufled`, wanted `as-written` or `shuffled`\n  hint: did you mean `shuffled`?",
        ),
        ("order = 1", "t.toml:3: `order` is the number 1, wanted a word in quotes"),
        (
            "settle = \"1 parsec\"",
            "t.toml:3: `settle`: `parsec` in `1 parsec` is not a unit of time: wanted ns, us, ms, s, min or h",
        ),
        (
            "caches = [\"flush\", \"burn\"]",
            "t.toml:3: `caches` is `burn`, wanted `flush`, `purge`, `drop`, `reopen` or `remount`",
        ),
        ("caches = 7", "t.toml:3: `caches` is the number 7, wanted a list"),
        (
            "table = \"bmflash\"",
            "t.toml:3: `table` is `bmflash`, wanted `plain`, `bm-flash`, `iometer`, `bonnie`, `iozone`, `orion`, `xdd`, `dd`, `sysbench`, `sysbench-0.4`, `pg-test-fsync`, `ioping` or `crystaldiskmark`\n  hint: did you mean `bm-flash`?",
        ),
        (
            "data = \"zeroes\"",
            "t.toml:3: `data` is `zeroes`, wanted `incompressible`, `zero`, `pattern`, `compressible` or `self-describing`\n  hint: did you mean `zero`?",
        ),
        (
            "data = 0",
            "t.toml:3: `data` is the number 0, wanted \"incompressible\", \"zero\", \"self-describing\" or a table with a `kind`",
        ),
        ("data = \"pattern\"", "t.toml:3: data `pattern` needs a `byte`"),
        (
            "data = { kind = \"pattern\", byte = 256 }",
            "t.toml:3: `byte` is the number 256, wanted a whole number from 0 to 255",
        ),
        (
            "data = { kind = \"zero\", byte = 1 }",
            "t.toml:3: `byte` means nothing for this kind of data",
        ),
        (
            "data = { kind = \"compressible\", random_share = 1.5 }",
            "t.toml:3: `random_share` is `1.5`, wanted a share from 0 to 1",
        ),
        ("data = { byte = 1 }", "t.toml:3: a table of `data` needs a `kind`"),
        (
            "precondition = [{ volume = 0 }]",
            "t.toml:3: `volume` is `0`, wanted more than 0, at most 1000",
        ),
        (
            "precondition = [{ block_size = 1000 }]",
            "t.toml:3: block size `1000` is not a multiple of sector `512`\n  hint: use `512` or `1024`",
        ),
        (
            "precondition = [{ blocksize = 1000 }]",
            "t.toml:3: unknown key `blocksize`\n  hint: did you mean `block_size`?",
        ),
        ("title = 1979-05-27", "t.toml:3: `title` is the date 1979-05-27, wanted a string"),
        (
            "repeats = 99999999999999999999",
            "t.toml:3: the number `99999999999999999999` is too large",
        ),
    ];
    table(&cases, |case| text(case, "", ""));
}

#[test]
fn bad_phase() {
    let cases = [
        (
            "block_size = 6000",
            "t.toml:8: block size `6000` is not a multiple of sector `512`\n  hint: use `5632` or `6144`",
        ),
        (
            "block_size = 100",
            "t.toml:8: block size `100` is not a multiple of sector `512`\n  hint: use `512`",
        ),
        ("block_size = 0", "t.toml:8: `block_size` is `0B`, wanted 1B to 1GiB"),
        ("block_size = \"2GiB\"", "t.toml:8: `block_size` is `2GiB`, wanted 1B to 1GiB"),
        (
            "block_size = \"1.5K\"\nalign = 1000",
            "t.toml:9: alignment `1000` is not a multiple of sector `512`\n  hint: use `512` or `1024`",
        ),
        ("align = 0", "t.toml:8: `align` is `0B`, wanted 1B to 1GiB"),
        (
            "blocksize = 4096",
            "t.toml:8: unknown key `blocksize`\n  hint: did you mean `block_size`?",
        ),
        ("iodepth = 4", "t.toml:8: unknown key `iodepth`\n  hint: did you mean `queue_depth`?"),
        (
            "block_size = [\"4K\", \"8K\"]",
            "t.toml:8: `block_size` is a list, wanted one size; a grid goes to [phase.grid], a mix to `block_sizes`",
        ),
        (
            "threads = [1, 2]",
            "t.toml:8: `threads` is a list, wanted one value; a grid goes to [phase.grid]",
        ),
        (
            "repeats = 3",
            "t.toml:8: `repeats` cannot stand here\n  hint: it belongs at the top of the suite",
        ),
        ("threads = 0", "t.toml:8: `threads` is `0`, wanted 1 to 4096"),
        (
            "threads = 5000",
            "t.toml:8: `threads` is `5000`, wanted 1 to 4096\n  hint: more requests at once: a `queue_depth` for each thread, or more streams",
        ),
        (
            "threads = -1",
            "t.toml:8: `threads` is the number -1, wanted a whole number, not negative",
        ),
        ("queue_depth = 0", "t.toml:8: `queue_depth` is `0`, wanted 1 to 65536"),
        (
            "queue_depth = 70000",
            "t.toml:8: `queue_depth` is `70000`, wanted 1 to 65536\n  hint: more requests at once: more `threads`, each with its own queue",
        ),
        (
            "threads = 4096\nqueue_depth = 65536",
            "t.toml:9: `threads x queue_depth` is `268435456`, wanted at most 1048576",
        ),
        ("bytes = 0", "t.toml:8: `bytes` is `0B`, wanted more than 0"),
        ("operations = 0", "t.toml:8: `operations` is `0`, wanted more than 0"),
        ("ramp = \"9000h\"", "t.toml:8: `ramp` is `32400000s`, wanted at most a year"),
        (
            "access = \"zipff\"",
            "t.toml:8: `access` is `zipff`, wanted `sequential`, `backward`, `stride`, `staggered`, `same`, `uniform`, `uniform-once`, `permutation`, `zipf`, `hot`, `mixed` or `replay`\n  hint: did you mean `zipf`?",
        ),
        (
            "access = \"random\"",
            "t.toml:8: `access` is `random`, wanted `sequential`, `backward`, `stride`, `staggered`, `same`, `uniform`, `uniform-once`, `permutation`, `zipf`, `hot`, `mixed` or `replay`\n  hint: did you mean `uniform`?",
        ),
        (
            "access = 5",
            "t.toml:8: `access` is the number 5, wanted an access such as \"uniform\" or { kind = \"zipf\", theta = 0.99 }",
        ),
        ("access = { theta = 1 }", "t.toml:8: a table of `access` needs a `kind`"),
        (
            "access = { kind = \"zipf\", theta = 0 }",
            "t.toml:8: `theta` is `0`, wanted more than 0, at most 100",
        ),
        (
            "access = { kind = \"zipf\", thetta = 1 }",
            "t.toml:8: unknown key `thetta`\n  hint: did you mean `theta`?",
        ),
        (
            "access = { kind = \"uniform\", theta = 1 }",
            "t.toml:8: `theta` means nothing for access `uniform`\n  hint: it is a detail of `access = { kind = \"zipf\", theta = ... }`",
        ),
        ("access = \"stride\"", "t.toml:8: access `stride` needs a `step`"),
        ("access = { kind = \"stride\", step = 0 }", "t.toml:8: `step` is `0`, wanted at least 1"),
        ("access = \"staggered\"", "t.toml:8: access `staggered` needs `operations`"),
        (
            "access = \"staggered\"\noperations = 1000000",
            "t.toml:9: `operations` is `1000000`, wanted at most the 262144 blocks of the region",
        ),
        ("access = \"hot\"", "t.toml:8: access `hot` needs `zones`"),
        (
            "access = { kind = \"hot\", zones = [{ space_share = 0.2, access_share = 0.8 }, { space_share = 0.8, access_share = 0.1 }] }",
            "t.toml:8: the zones' shares of accesses sum to `0.9`, wanted `1`\n  hint: each share is a part of 1, not a percentage",
        ),
        (
            "access = { kind = \"hot\", zones = [{ space_share = 20, access_share = 0.8 }] }",
            "t.toml:8: `space_share` is `20`, wanted more than 0, at most 1\n  hint: a share is a part of 1: 20 % is `0.2`",
        ),
        (
            "access = { kind = \"hot\", zones = [{ space_share = 0.2 }] }",
            "t.toml:8: `zones` has no `access_share`",
        ),
        ("access = \"replay\"", "t.toml:8: access `replay` needs `requests`"),
        (
            "access = { kind = \"replay\", requests = [{ op = \"read\", offset = \"1GiB\", length = \"4K\" }] }",
            "t.toml:8: end of a request `1048580KiB` is more than the region's `1GiB`",
        ),
        (
            "access = { kind = \"replay\", requests = [{ op = \"read\", offset = 100, length = \"4K\" }] }",
            "t.toml:8: offset `100` is not a multiple of sector `512`\n  hint: use `512`",
        ),
        (
            "access = { kind = \"replay\", requests = [{ op = \"read\" }] }",
            "t.toml:8: `length` is `0B`, wanted 1B to 1GiB",
        ),
        ("random_share = 1.5", "t.toml:8: `random_share` is `1.5`, wanted a share from 0 to 1"),
        (
            "random_share = 0.5\naccess = \"uniform\"",
            "t.toml:8: `access` and `random_share` exclude each other",
        ),
        (
            "operation = \"reed\"",
            "t.toml:8: `operation` is `reed`, wanted `read`, `write`, `fsync`, `fdatasync`, `sync-range`, `trim`, `update`, `copy`, `create`, `stat`, `delete`, `copy-range`, `commit` or `transaction`\n  hint: did you mean `read`?",
        ),
        (
            "read_share = 67",
            "t.toml:8: `read_share` is `67`, wanted a share from 0 to 1\n  hint: a share is a part of 1: 67 % is `0.67`",
        ),
        (
            "read_share = 0.5\noperation = \"read\"",
            "t.toml:8: `operation` and `read_share` exclude each other",
        ),
        ("classes = []", "t.toml:8: `classes` needs at least one class"),
        (
            "classes = [{ weight = 0, operation = \"read\" }]",
            "t.toml:8: `weight` is `0`, wanted more than 0, at most 1000000000",
        ),
        ("classes = [{ weight = 1 }]", "t.toml:8: a class needs an `operation` or a `read_share`"),
        (
            "classes = [{ operation = \"read\", read_share = 0.5 }]",
            "t.toml:8: a class needs an `operation` or a `read_share`",
        ),
        (
            "classes = [{ read_share = 0.5, burst = 2 }]",
            "t.toml:8: a class with a `burst` needs an `operation`: a burst has one",
        ),
        (
            "classes = [{ operation = \"read\", align = 1000 }]",
            "t.toml:8: alignment `1000` is not a multiple of sector `512`\n  hint: use `512` or `1024`",
        ),
        (
            "access = \"zipf\"\nclasses = [{ operation = \"read\", burst = 2 }]",
            "t.toml:9: a class with `random_share`, `align`, `think` or `burst` needs access `uniform`, `sequential` or `mixed`",
        ),
        (
            "rate = 10\nclasses = [{ operation = \"read\", think = 1 }]",
            "t.toml:9: `classes.think` and `rate` exclude each other\n  hint: leave one of them out",
        ),
        (
            "choice = \"shared\"\nread_share = 0.9",
            "t.toml:8: choice `shared` needs `classes` with whole weights, such as 9 and 1",
        ),
        (
            "operation = \"commit\"\naccess = \"sequential\"\ndirect = false",
            "t.toml:8: operation `commit` needs `sync`, such as \"fdatasync\", or `write_through`",
        ),
        (
            "operation = \"commit\"\nsync = \"fdatasync\"",
            "t.toml:5: operation `commit` needs access `sequential`: a log is appended to",
        ),
        (
            "operation = \"commit\"\naccess = \"sequential\"\nsync = \"fdatasync\"\nthreads = 4",
            "t.toml:11: operation `commit` needs one thread: its sessions are its `queue_depth`",
        ),
        (
            "operation = \"commit\"\naccess = \"sequential\"\nsync = \"fdatasync\"\nalign = \"64KiB\"",
            "t.toml:11: operation `commit` needs an `align` of one commit, `block_size`: leave it out",
        ),
        ("operation = \"copy\"", "t.toml:8: operation `copy` needs `copy_to`, a size or a share"),
        (
            "operation = \"copy-range\"",
            "t.toml:8: operation `copy-range` needs `copy_to`, a size or a share",
        ),
        (
            "operation = \"copy-range\"\ncopy_to = \"50%\"\nregion = \"50%\"",
            "t.toml:5: `operation = \"copy-range\"` and `direct = true` exclude each other\n  hint: set `direct=false`: the kernel copies through the page cache",
        ),
        (
            "operation = \"copy-range\"\ncopy_to = \"50%\"\nregion = \"50%\"\ndirect = false\nbackend = \"libaio\"",
            "t.toml:12: `backend = \"libaio\"` and `operation = \"copy-range\"` exclude each other\n  hint: leave `backend` out: it is done by blocking calls",
        ),
        (
            "access = { kind = \"replay\", requests = [{ op = \"copy-range\", length = \"4K\" }] }",
            "t.toml:8: `op` is `copy-range`, wanted a single request: write it as a read and a write",
        ),
        (
            "operation = \"copy\"\ncopy_to = \"50%\"",
            "t.toml:9: end of the copy `1536MiB` is more than the files' `1GiB`",
        ),
        (
            "operation = \"copy\"\ncopy_to = \"255MiB\"\nregion = \"25%\"",
            "t.toml:9: `copy_to` is `255MiB`, wanted a place outside of the region, 256MiB long",
        ),
        (
            "operation = \"copy\"\ncopy_to = 1000000001\nregion = \"1M\"",
            "t.toml:9: copy_to `1000000001` is not a multiple of sector `512`\n  hint: use `1000000000` or `1000000512`",
        ),
        (
            "access = { kind = \"replay\", requests = [{ op = \"update\", length = \"4K\" }] }",
            "t.toml:8: `op` is `update`, wanted a single request: write it as a read and a write",
        ),
        (
            "spread = { stripe = \"100M\" }",
            "t.toml:8: `stripe` is `100MiB`, wanted a part of the file size, 1GiB, without remainder",
        ),
        (
            "spread = { stripe = \"2K\" }",
            "t.toml:8: block size `4KiB` is more than the stripe's `2KiB`",
        ),
        (
            "spread = { strip = \"1M\" }",
            "t.toml:8: unknown key `strip`\n  hint: did you mean `stripe`?",
        ),
        (
            "spread = \"stripe\"",
            "t.toml:8: `spread` is `stripe`, wanted `concatenated` or `file-per-worker`",
        ),
        (
            "last = \"short\"",
            "t.toml:8: `last = \"short\"` needs access `sequential` in blocks of one size, aligned to it",
        ),
        (
            "access = \"sequential\"\nlast = \"short\"\nbytes = 10000",
            "t.toml:9: length of the last `10000` is not a multiple of sector `512`\n  hint: use `9728` or `10240`",
        ),
        (
            "stop = \"first-worker\"",
            "t.toml:8: `stop = \"first-worker\"` needs `bytes` or `operations`",
        ),
        ("duty = { on = 1 }", "t.toml:8: `duty` needs both `on` and `off`"),
        (
            "duty = { on = 0, off = 1 }",
            "t.toml:8: `on` is `0s`, wanted more than 0, at most a year",
        ),
        (
            "rate = 9\nduty = { on = 1, off = 1 }",
            "t.toml:9: `duty` and `rate` exclude each other\n  hint: an open loop does not rest: leave one of them out",
        ),
        ("choice = \"ratio\"", "t.toml:8: choice `ratio` needs exactly two classes"),
        (
            "classes = [{ operation = \"read\", block_size = 1000 }]",
            "t.toml:8: block size `1000` is not a multiple of sector `512`\n  hint: use `512` or `1024`",
        ),
        ("block_sizes = []", "t.toml:8: `block_sizes` needs at least one size"),
        (
            "block_sizes = { \"4K\" = 0 }",
            "t.toml:8: `weight` is `0`, wanted more than 0, at most 1000000000",
        ),
        (
            "block_sizes = { \"4Q\" = 1 }",
            "t.toml:8: `4Q`: `Q` in `4Q` is not a unit of size: wanted B, KiB, MiB, GiB, TiB (K, M, G, T for short) or kB, MB, GB, TB",
        ),
        (
            "block_sizes = { \"4K\" = \"many\" }",
            "t.toml:8: `4K` is the string \"many\", wanted a number",
        ),
        (
            "block_sizes = [\"4K\", \"8\"]",
            "t.toml:8: block size `8` is not a multiple of sector `512`\n  hint: use `512`",
        ),
        (
            "region = { start = \"2GiB\" }",
            "t.toml:8: region's start `2GiB` is more than the files' `1GiB`",
        ),
        (
            "region = { start = \"512MiB\", length = \"1GiB\" }",
            "t.toml:8: region's length `1GiB` is more than what the files have left `512MiB`\n  hint: use `512MiB` or \"rest\"",
        ),
        ("region = \"120%\"", "t.toml:8: `region`: `120%` is not a share from 0% to 100%"),
        ("region = \"1K\"", "t.toml:8: block size `4KiB` is more than the region's `1KiB`"),
        ("region = { start = \"rest\" }", "t.toml:8: `start` is `rest`, wanted a size or a share"),
        (
            "region = { start = 100 }",
            "t.toml:8: region's start `100` is not a multiple of sector `512`\n  hint: use `512`",
        ),
        (
            "sync = \"read\"",
            "t.toml:8: `sync` is `read`, wanted `fsync`, `fdatasync` or `sync-range`",
        ),
        (
            "sync = \"fsink\"",
            "t.toml:8: `sync` is `fsink`, wanted `fsync`, `fdatasync` or `sync-range`",
        ),
        (
            "sync = { op = \"fsync\" }",
            "t.toml:8: `sync` needs `every` or `at_end`, else it never happens",
        ),
        ("sync = { every = 0 }", "t.toml:8: `every` is `0`, wanted at least 1"),
        (
            "sync = { every = 1, at_end = \"later\" }",
            "t.toml:8: `at_end` is `later`, wanted `no`, `timed` or `untimed`",
        ),
        ("rate = 0", "t.toml:8: `rate` is `0`, wanted more than 0, at most 1000000000"),
        ("rate = \"fast\"", "t.toml:8: `rate` is the string \"fast\", wanted a number"),
        ("rate = nan", "t.toml:8: `rate` is `NaN`, wanted more than 0, at most 1000000000"),
        (
            "rate = 100\nthink = \"1ms\"",
            "t.toml:8: `rate` and `think` exclude each other\n  hint: an open loop has no pauses: leave one of them out",
        ),
        (
            "arrivals = \"poisson\"",
            "t.toml:8: `arrivals = \"poisson\"` needs a `rate`, which `main` has not\n  hint: say both of them for those that have a rate, or `arrivals = \"fixed\"` for `main`",
        ),
        ("burst = 0", "t.toml:8: `burst` is `0`, wanted 1 to 1000000000"),
        (
            "direct = 1",
            "t.toml:8: `direct` is the number 1, wanted true or false\n  hint: say `true`",
        ),
        (
            "backend = \"mmap\"",
            "t.toml:8: `backend = \"mmap\"` and `direct = true` exclude each other\n  hint: set `direct=false`: a mapping goes through the page cache",
        ),
        (
            "backend = \"iouring\"",
            "t.toml:8: `backend` is `iouring`, wanted `auto`, `io-uring`, `io-uring-sqpoll`, `io-uring-iopoll`, `libaio`, `blocking` or `mmap`\n  hint: did you mean `io-uring`?",
        ),
        (
            "backend = \"io-uring-iopoll\"\ndirect = false",
            "t.toml:8: `backend = \"io-uring-iopoll\"` and `direct = false` exclude each other\n  hint: set `direct=true`: only direct I/O can be polled",
        ),
        ("write_through = true", "t.toml:8: `write_through` is true, wanted a word in quotes"),
    ];
    table(&cases, |case| text("", case, ""));
}

#[test]
fn bad_grid_and_streams() {
    let cases = [
        (
            "[phase.grid]\nthreads = []",
            "t.toml:10: the grid's axis `threads` is empty\n  hint: leave the axis out or give it values",
        ),
        (
            "[phase.grid]\nblock_sizes = [\"4KiB\", \"64KiB\"]",
            "t.toml:10: `block_sizes` is a list, which is one mix, wanted a list of such lists or tables, one for each value; one value goes to the phase itself\n  hint: for example `[[\"4KiB\", \"64KiB\"], { \"4KiB\" = 60, \"64KiB\" = 40 }]`",
        ),
        (
            "[phase.grid]\nblock_sizes = { \"4KiB\" = 1, \"64KiB\" = 3 }",
            "t.toml:10: `block_sizes` is a table, which is one mix, wanted a list of such lists or tables, one for each value; one value goes to the phase itself\n  hint: for example `[[\"4KiB\", \"64KiB\"], { \"4KiB\" = 60, \"64KiB\" = 40 }]`",
        ),
        (
            "[phase.grid]\nblock_sizes = [[\"4KiB\"], \"64KiB\"]",
            "t.toml:10: `block_sizes` is the string \"64KiB\", wanted a list or a table, as another value of the axis is\n  hint: for example `[[\"4KiB\", \"64KiB\"], { \"4KiB\" = 60, \"64KiB\" = 40 }]`",
        ),
        (
            "[phase.grid]\nblock_sizes = [{ \"4KiB\" = 1 }, { \"4KiB\" = \"x\" }]",
            "t.toml:10: `4KiB` is the string \"x\", wanted a number",
        ),
        (
            "[phase.grid]\nblock_sizes = [[\"4KiB\", \"64KiB\"], { \"4KiB\" = 1, \"64KiB\" = 1 }]",
            "t.toml:10: on the grid's axis `block_sizes` the value `[\"4KiB\", \"64KiB\"]` comes twice",
        ),
        (
            "[phase.grid]\nclasses = [{ operation = \"read\" }]",
            "t.toml:10: `classes` is a list, which is one value, wanted a list of such lists, one for each value; one value goes to the phase itself",
        ),
        (
            "[phase.grid]\nthreads = 4",
            "t.toml:10: `threads` is the number 4, wanted a list of values; one value goes to the phase itself",
        ),
        (
            "[phase.grid]\ntreads = [4]",
            "t.toml:10: unknown key `treads`\n  hint: did you mean `threads`?",
        ),
        (
            "[phase.grid]\nthreads = [1, \"two\"]",
            "t.toml:10: `threads` is the string \"two\", wanted a whole number, not negative",
        ),
        ("[phase.grid]\nthreads = [1, 0]", "t.toml:10: `threads` is `0`, wanted 1 to 4096"),
        (
            "[phase.grid]\nthreads = [1, 2, 1]",
            "t.toml:10: on the grid's axis `threads` the value `1` comes twice",
        ),
        (
            "[phase.grid]\nblock_size = [\"4K\", 4096]",
            "t.toml:10: on the grid's axis `block_size` the value `4KiB` comes twice",
        ),
        (
            "[phase.grid]\nblock_size = [\n  \"4K\",\n  \"6000\",\n]",
            "t.toml:12: block size `6000` is not a multiple of sector `512`\n  hint: use `5632` or `6144`",
        ),
        ("[phase.grid]\naccess.theta = [0.5]", "t.toml:10: a table of `access` needs a `kind`"),
        (
            "[phase.grid]\naccess.tetha = [0.5]",
            "t.toml:10: unknown key `tetha`\n  hint: did you mean `theta`?",
        ),
        (
            "[phase.grid]\naccess = [\"uniform\", \"unifrom\"]",
            "t.toml:10: `access` is `unifrom`, wanted `sequential`, `backward`, `stride`, `staggered`, `same`, `uniform`, `uniform-once`, `permutation`, `zipf`, `hot`, `mixed` or `replay`\n  hint: did you mean `uniform`?",
        ),
        (
            "[phase.grid]\nname = [\"a\"]",
            "t.toml:10: unknown key `name`\n  hint: known here: access, random_share, operation, copy_to, directory, transactions, read_share, classes, choice, block_size, block_sizes, align, region, spread, sync, threads, queue_depth, rate, arrivals, think, burst, duty, direct, write_through, commit_writes, backend, ramp, time, bytes, operations, stop, last, start_file, streams",
        ),
        ("grid = 7", "t.toml:9: `grid` is the number 7, wanted a table"),
        (
            "[[phase.stream]]\nname = \"a\"\n[[phase.stream]]\nname = \"a\"",
            "t.toml:11: stream `a` comes twice",
        ),
        ("[[phase.stream]]\nthreads = 1", "t.toml:9: the stream has no `name`"),
        (
            "[[phase.stream]]\nname = \"a\"\ntime = \"none\"",
            "t.toml:9: nothing ends stream `a`\n  hint: set `time`, `bytes` or `operations`",
        ),
        (
            "[[phase.stream]]\nname = \"a\"\nthreats = 1",
            "t.toml:11: unknown key `threats`\n  hint: did you mean `threads`?",
        ),
        ("[[phase]]\nname = \"main\"", "t.toml:9: phase `main` comes twice"),
        (
            "[[phase]]\nname = \"other\"",
            "t.toml:9: nothing ends stream `other`\n  hint: set `time`, `bytes` or `operations`",
        ),
        (
            "[quick]\ntime = \"none\"\ntimes = 1",
            "t.toml:11: unknown key `times`\n  hint: did you mean `time`?",
        ),
        ("[quick.mian]\ntime = 1", "t.toml:9: unknown key `mian`\n  hint: did you mean `main`?"),
        (
            "[quick]\nthreads = \"x\"",
            "t.toml:10: `threads` is the string \"x\", wanted a whole number, not negative",
        ),
        (
            "[defaults]\nfile_size = 1",
            "t.toml:10: `file_size` cannot stand here\n  hint: it belongs at the top of the suite",
        ),
        (
            "[defaults]\nthread = 1",
            "t.toml:10: unknown key `thread`\n  hint: did you mean `threads`?",
        ),
    ];
    table(&cases, |case| text("", "", case));
}

#[test]
fn too_many_cells() {
    let many = (1..=400).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let grid = format!("[phase.grid]\nthreads = [{many}]\nqueue_depth = [{many}]");
    let error = refused(&text("", "", &grid));
    assert_eq!(
        said(&error),
        "t.toml:10: the grids have `160000` streams in all their cells, wanted at most `100000`"
    );
}

#[test]
fn larger_than_the_target() {
    let source = parse(&text("file_size = \"2G\"\nfile_count = 3", "", ""), "t.toml").unwrap();
    let capacity = Some(Bytes::gib(4));
    let error = check(&source, &CheckContext { capacity, ..CheckContext::default() }).unwrap_err();
    assert_eq!(
        said(&error),
        "t.toml:3: file set `6GiB` is more than the target's `4GiB`\n  hint: use `--size 4GiB`"
    );
}

#[test]
fn bad_overrides() {
    let cases = [
        (
            "threads",
            "--set threads: `threads` is not of the form key=value\n  hint: for example `block_size=8KiB`",
        ),
        (
            "=4",
            "--set =4: `=4` is not of the form key=value\n  hint: for example `block_size=8KiB`",
        ),
        ("thread=4", "--set thread=4: unknown key `thread`\n  hint: did you mean `threads`?"),
        (
            "seed=4",
            "--set seed=4: unknown key `seed`\n  hint: that is of the run, and no part of its suite: `--seed 42`",
        ),
        (
            "name=x",
            "--set name=x: `name` cannot stand here\n  hint: it belongs in the suite's file alone, which it is about",
        ),
        (
            "phase.time=3s",
            "--set phase.time=3s: `phase` cannot stand here\n  hint: it belongs in a file; here its own name stands in front: `read.time=5s`",
        ),
        (
            "threads=four",
            "--set threads=four: `threads` is the string \"four\", wanted a whole number, not negative",
        ),
        (
            "threads=",
            "--set threads=: `threads` is the string \"\", wanted a whole number, not negative",
        ),
        ("threads=0", "--set threads=0: `threads` is `0`, wanted 1 to 4096"),
        (
            "threads=[]",
            "--set threads=[]: the grid's axis `threads` is empty\n  hint: leave the axis out or give it values",
        ),
        (
            "threads=1,x",
            "--set threads=1,x: `threads` is the string \"x\", wanted a whole number, not negative",
        ),
        (
            "threads=1,1",
            "--set threads=1,1: on the grid's axis `threads` the value `1` comes twice",
        ),
        (
            "block_size=6000",
            "--set block_size=6000: block size `6000` is not a multiple of sector `512`\n  hint: use `5632` or `6144`",
        ),
        (
            "block_size=4K,6000",
            "--set block_size=4K,6000: block size `6000` is not a multiple of sector `512`\n  hint: use `5632` or `6144`",
        ),
        ("mian.time=1", "--set mian.time=1: unknown key `mian`\n  hint: did you mean `main`?"),
        (
            "main.file_size=1G",
            "--set main.file_size=1G: `file_size` cannot stand here\n  hint: it belongs at the top of the suite, without a phase or stream in front",
        ),
        (
            "main=1",
            "--set main=1: `main` is the name of a phase or stream, not a field\n  hint: for example `main.threads=4`",
        ),
        (
            "main.main.threads=1",
            "--set main.main.threads=1: unknown key `main`\n  hint: known here: access, random_share, operation, copy_to, directory, transactions, read_share, classes, choice, block_size, block_sizes, align, region, spread, sync, threads, queue_depth, rate, arrivals, think, burst, duty, direct, write_through, commit_writes, backend, ramp, time, bytes, operations, stop, last, start_file",
        ),
        ("access.theta=1", "--set access.theta=1: a table of `access` needs a `kind`"),
        (
            "access=ziph",
            "--set access=ziph: `access` is `ziph`, wanted `sequential`, `backward`, `stride`, `staggered`, `same`, `uniform`, `uniform-once`, `permutation`, `zipf`, `hot`, `mixed` or `replay`\n  hint: did you mean `zipf`?",
        ),
        (
            "access={kind=zipf}",
            "--set access={kind=zipf}: `access` is `{kind=zipf}`, wanted `sequential`, `backward`, `stride`, `staggered`, `same`, `uniform`, `uniform-once`, `permutation`, `zipf`, `hot`, `mixed` or `replay`",
        ),
        (
            "file_size=1Gi B",
            "--set file_size=1Gi B: `file_size`: `Gi B` in `1Gi B` is not a unit of size: wanted B, KiB, MiB, GiB, TiB (K, M, G, T for short) or kB, MB, GB, TB",
        ),
        (
            "time=none",
            "t.toml:5: nothing ends stream `main`\n  hint: set `time`, `bytes` or `operations`",
        ),
        (
            "time=1s\nthreads=3",
            "--set time=1s\\nthreads=3: `time=1s\\nthreads=3` is not of the form key=value\n  hint: for example `block_size=8KiB`",
        ),
        (
            "caches=flush,burn",
            "--set caches=flush,burn: `caches` is `burn`, wanted `flush`, `purge`, `drop`, `reopen` or `remount`",
        ),
        ("data.byte=3", "--set data.byte=3: a table of `data` needs a `kind`"),
        (
            "repeats=1,2",
            "--set repeats=1,2: `repeats` is a list, wanted a whole number, not negative",
        ),
        (
            "threads=1,,2",
            "--set threads=1,,2: `threads` is the string \"\", wanted a whole number, not negative",
        ),
        (
            "threads=1,2,",
            "--set threads=1,2,: `threads` is the string \"\", wanted a whole number, not negative",
        ),
        (
            "think=\"2\"",
            "--set think=\\\"2\\\": `think`: `2` has no unit: wanted ns, us, ms, s, min or h, or seconds without quotes",
        ),
        (
            "time=\"2\"",
            "--set time=\\\"2\\\": `time`: `2` has no unit: wanted ns, us, ms, s, min or h, or seconds without quotes",
        ),
        (
            "block_sizes=[{ 4K = 1 }, \"8K\"]",
            "--set block_sizes=[{ 4K = 1 }, \\\"8K\\\"]: `block_sizes` is the string \"8K\", wanted a list or a table, as another value of the axis is\n  hint: for example `[[\"4KiB\", \"64KiB\"], { \"4KiB\" = 60, \"64KiB\" = 40 }]`",
        ),
        (
            "threads.x=1",
            "--set threads.x=1: `threads` is a table, wanted a whole number, not negative",
        ),
        (
            "sync.every=none",
            "--set sync.every=none: `every` is the string \"none\", wanted a whole number, not negative",
        ),
    ];
    let mut wrong = Vec::new();
    for (assignment, wanted) in cases {
        let mut source = parse(&text("", "", ""), "t.toml").unwrap();
        let error = source.set(assignment).err();
        let error = error.or_else(|| check(&source, &CheckContext::default()).err());
        let seen = error.map_or_else(|| "accepted".to_owned(), |error| said(&error));
        note(&mut wrong, assignment, &seen, wanted);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// What the text asks for fits its own files.
#[test]
fn a_size_that_was_set_is_to_blame_for_what_does_not_fit() {
    let with = |phase: &str, size: u64| {
        let mut source = parse(&text("file_size = \"64MiB\"", phase, ""), "t.toml").unwrap();
        source.set_size(Bytes::new(size)).unwrap();
        check(&source, &CheckContext::default()).unwrap_err().to_string()
    };
    assert_eq!(with("", 1), "--size 1B: block size `4KiB` is more than the file's `1B`");
    let region = with("region = { start = \"32MiB\", length = \"8MiB\" }", 36 << 20);
    assert_eq!(
        region,
        "--size 36MiB: region's length `8MiB` is more than what the files have left `4MiB`"
    );
    // A region of its own is too small for any size.
    assert!(with("region = \"1KiB\"", 1 << 20).starts_with("t.toml:8: block size"));
}

#[test]
fn no_quick_form() {
    let mut source: SuiteSource = parse(&text("", "", ""), "t.toml").unwrap();
    assert!(!source.has_quick());
    let error = source.quick().unwrap_err();
    assert_eq!(
        said(&error),
        "t.toml:1: the suite has no `[quick]` table, so nobody knows what its short form is\n  hint: shorten the cells with `--time`"
    );
}

fn table(cases: &[(&str, &str)], text: impl Fn(&str) -> String) {
    let mut wrong = Vec::new();
    for (case, wanted) in cases {
        let text = text(case);
        let result = parse(&text, "t.toml");
        let result = result.and_then(|source| check(&source, &CheckContext::default()));
        let seen = result.map_or_else(|error| said(&error), |_| "accepted".to_owned());
        note(&mut wrong, case, &seen, wanted);
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn note(wrong: &mut Vec<String>, case: &str, seen: &str, wanted: &str) {
    if seen != wanted {
        wrong.push(format!("case: {case}\nseen: {seen}\nwanted: {wanted}\n"));
    }
}

#[test]
fn a_number_of_bytes_is_no_end_for_requests_that_move_none() {
    let text = suite::find_builtin("random-write").unwrap().text;
    let mut source = suite::parse(text, "t.toml").unwrap();
    for set in ["operation=fsync", "time=none", "bytes=1M"] {
        source.set(set).unwrap();
    }
    let error = suite::check(&source, &suite::CheckContext::default()).unwrap_err();
    assert_eq!(error.to_string(), "--set bytes=1M: `bytes` needs a class that moves data");
}
