//! What a suite asks for, as a job file of fio.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use suite::{CheckContext, check, fio_job, parse};

/// The job file of a suite with these lines.
fn job(head: &str, phase: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"t\"\n{head}\n[[phase]]\nname = \"main\"\ntime = \"1s\"\n{phase}\n"
    );
    of_file(&text, "f").unwrap()
}

fn of_file(text: &str, file: &str) -> Result<String, suite::FioNameError> {
    let source = parse(text, "t.toml").unwrap();
    fio_job(&check(&source, &CheckContext::default()).unwrap(), file)
}

/// Options of a job, and nothing of another.
fn options<'a>(job: &'a str, name: &str) -> Vec<&'a str> {
    let section = job.split(&format!("\n[{name}]\n")).nth(1).unwrap_or_default();
    section.lines().take_while(|line| !line.is_empty() && !line.starts_with(';')).collect()
}

const TWO: &str = "file_size = \"32MiB\"\nfile_count = 2";
const STREAMS: &str = "[[phase.stream]]\nname = \"log\"\noperation = \"write\"\n\
                       region = { start = \"75%\" }\n\
                       [[phase.stream]]\nname = \"pages\"\nregion = \"25%\"\n\
                       [[phase.stream]]\nname = \"whole\"";

#[test]
fn a_region_of_several_files_is_in_the_file_that_it_lies_in() {
    // The offset went beyond both files: fio did nothing, and said that all was well.
    let all = job(TWO, STREAMS);
    let log = options(&all, "main-log");
    for option in ["filename=f.1", "offset=16777216", "size=16777216", "stonewall=1"] {
        assert!(log.contains(&option), "{option}: {all}");
    }
    let pages = options(&all, "main-pages");
    assert!(pages.contains(&"filename=f.0") && pages.contains(&"size=16777216"), "{all}");
    assert!(!pages.iter().any(|option| option.starts_with("offset=")), "{all}");
    let whole = options(&all, "main-whole");
    assert!(whole.contains(&"size=67108864"), "{all}");
    assert!(!whole.iter().any(|option| option.starts_with("filename=")), "{all}");
    // Half of the files is whole files.
    let four = "file_size = \"32MiB\"\nfile_count = 4";
    let half = job(four, "region = { start = \"50%\" }");
    let half = options(&half, "main");
    assert!(half.contains(&"filename=f.2:f.3") && half.contains(&"size=67108864"), "{half:?}");
    // A stripe goes over each file.
    let striped = job(TWO, "spread = { stripe = \"1MiB\" }\nregion = { start = \"50%\" }");
    let striped = options(&striped, "main");
    assert!(striped.contains(&"offset=16777216"), "{striped:?}");
    assert!(striped.contains(&"size=33554432"), "{striped:?}");
}

#[test]
fn a_region_that_fio_cannot_say_is_no_job_and_the_next_begins_the_cell() {
    let torn = STREAMS.replacen("75%", "25%", 1);
    let all = job(TWO, &torn);
    assert!(all.contains("; main-log: no job, since its region"), "{all}");
    assert_eq!(options(&all, "main-log"), [""; 0], "{all}");
    assert!(options(&all, "main-pages").contains(&"stonewall=1"), "{all}");
    assert!(!options(&all, "main-whole").contains(&"stonewall=1"), "{all}");
}

#[test]
fn threads_have_no_offsets_beyond_the_end_of_a_file() {
    let phase = "access = \"sequential\"\nthreads = 4";
    let several = job(TWO, phase);
    assert!(!several.contains("offset_increment"), "{several}");
    assert!(several.contains("; threads begin at equal parts of the files"), "{several}");
    assert!(job("file_size = \"32MiB\"", phase).contains("offset_increment=8388608"));
}

#[test]
fn a_rate_is_one_of_reads_and_writes_together() {
    let rate = |more: &str| {
        let all = job("", &format!("threads = 2\nrate = 200\n{more}"));
        all.lines().find(|line| line.starts_with("rate_iops=")).map(str::to_owned).unwrap()
    };
    assert_eq!(rate(""), "rate_iops=100");
    assert_eq!(rate("operation = \"write\"\nsync = \"fdatasync\""), "rate_iops=100");
    // One number would be 100 of each.
    assert_eq!(rate("read_share = 0.7"), "rate_iops=70,30");
}

const ONE: &str = "schema = 1\nname = \"t\"\n[[phase]]\nname = \"main\"\ntime = \"1s\"\n";

#[test]
fn a_name_that_fio_reads_as_another_is_refused() {
    for (file, why) in [
        ("a;b", "`;` begins a comment there"),
        ("a#b", "`#` begins a comment there"),
        ("a\nexec_prerun=x", "`\\n` ends a line"),
        ("a\u{1}b", "`\\u{1}` ends a line"),
        ("a ", "blanks at a line's end"),
        ("${HOME}/a", "`${` is replaced"),
        ("a$ncpus", "`$ncpus` is replaced"),
        ("$jobname", "`$jobname` is replaced"),
        ("", "it is empty"),
    ] {
        let error = of_file(ONE, file).unwrap_err();
        assert!(error.to_string().contains(why), "{file:?}: {error}");
        assert!(!error.to_string().contains('\n') && error.hint().contains("link"), "{error}");
    }
    let error = of_file(ONE, &"x".repeat(4090)).unwrap_err();
    assert!(error.to_string().contains("it has 4090 bytes"), "{error}");
}

#[test]
fn odd_names_that_fio_can_read_are_as_it_reads_them() {
    let line = |text: &str, file: &str| {
        let job = of_file(text, file).unwrap();
        job.lines().find(|line| line.starts_with("filename")).unwrap().to_owned()
    };
    for (file, read) in [
        ("a:b", "a\\:b"),
        ("a\\:b", "a\\\\:b"),
        ("a\\b\\", "a\\b\\"),
        ("a b$c", "a b$c"),
        (" a", "./ a"),
        ("-", "./-"),
        ("-a", "-a"),
    ] {
        assert_eq!(line(ONE, file), format!("filename={read}"));
    }
    // Of several files there is one pattern, in which a colon is a colon.
    let two = ONE.replace("[[phase]]", "file_count = 2\n[[phase]]");
    assert_eq!(line(&two, "a:b"), "filename_format=a:b.$filenum");
}

/// What fio makes of the names, where there is one to ask.
#[test]
fn fio_reads_the_names_that_are_written() {
    let folder = std::env::temp_dir().join(format!("plimsoll-fio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = ONE.replace("time = \"1s\"", "operations = 1\nbackend = \"blocking\"");
    let text = text.replace("[[phase]]", "file_size = \"4KiB\"\n[[phase]]");
    for file in ["a:b", "a\\:b", "a\\b\\", "a b$c", " a", "-", "ä,=\"'[1]%*"] {
        let job = of_file(&text, file).unwrap();
        std::fs::write(folder.join("t.fio"), job).unwrap();
        let done = std::process::Command::new("fio").arg("t.fio").current_dir(&folder).output();
        let Ok(done) = done else {
            println!("skipped: there is no fio to ask");
            break;
        };
        assert!(folder.join(file).exists(), "{file:?}: {done:?}");
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn names_beyond_a_line_of_fio_are_no_job() {
    let text = "schema = 1\nname = \"t\"\nfile_size = \"1MiB\"\nfile_count = 128\n[[phase]]\n\
                name = \"main\"\ntime = \"1s\"\nregion = \"50%\"\n";
    assert!(of_file(text, "f").unwrap().contains("filename=f.0:f.1:"));
    let long = of_file(text, &"x".repeat(100)).unwrap();
    assert!(long.contains("; main: no job, since the names of the files"), "{long}");
    assert!(!long.contains("\n[main]\n"), "{long}");
}

#[test]
fn what_fio_does_otherwise_at_a_rate_is_said() {
    let said = |more: &str| job("", &format!("rate = 200\n{more}"));
    let goes_on = "; a device that cannot keep up ends the visit: fio goes on";
    let apart = "; one rate of reads and writes together: fio paces each by itself";
    assert!(said("").contains(goes_on) && !said("").contains(apart));
    assert!(said("read_share = 0.7").contains(goes_on) && said("read_share = 0.7").contains(apart));
    assert!(!job("", "").contains(goes_on));
}

/// The sections that there are, with `unlink=1` or without.
fn unlinks(job: &str) -> Vec<(&str, bool)> {
    let names = job.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let jobs = names.filter(|name| *name != "global");
    jobs.map(|name| (name, options(job, name).contains(&"unlink=1"))).collect()
}

#[test]
fn no_job_removes_what_a_later_one_reads() {
    let text = |phases: &[(&str, &str)]| {
        let head =
            "schema = 1\nname = \"t\"\nfile_size = \"1MiB\"\n[defaults]\naccess = \"sequential\"\n";
        let phases = phases.iter().map(|(name, fields)| {
            format!("[[phase]]\nname = \"{name}\"\n{}\n", fields.replace(", ", "\n"))
        });
        head.to_owned() + &phases.collect::<String>()
    };
    let anew = "operation = \"write\", start_file = \"remove\"";
    let (whole, part) = (format!("{anew}, bytes = \"1MiB\""), format!("{anew}, bytes = \"64KiB\""));
    let timed = format!("{whole}, time = \"1s\"");
    let read = "bytes = \"1MiB\"";
    let of = |phases: &[(&str, &str)]| {
        let job = of_file(&text(phases), "f").unwrap();
        unlinks(&job).into_iter().map(|(_, unlinks)| unlinks).collect::<Vec<_>>()
    };
    assert_eq!(of(&[("a", &part), ("b", &whole)]), [true, true]);
    assert_eq!(of(&[("a", &part), ("b", &whole), ("c", read)]), [true, false, false]);
    assert_eq!(of(&[("a", &whole), ("b", &part), ("c", read)]), [false, false, false]);
    assert_eq!(of(&[("a", &whole), ("b", &timed), ("c", read)]), [false, false, false]);
    assert_eq!(of(&[("a", read), ("b", &part)]), [false, true]);
    let files = "operation = \"create\", directory = { files = 4 }";
    assert_eq!(of(&[("a", &whole), ("b", files)]), [true]);
}

#[test]
fn what_fio_does_not_do_is_no_job() {
    let suite = suite::find_builtin("bonnie").unwrap();
    let job = of_file(suite.text, "f").unwrap();
    let names: Vec<&str> = unlinks(&job).into_iter().map(|(name, _)| name).collect();
    let wanted = ["write-byte", "write-block", "rewrite", "read-byte", "read-block", "seek"];
    assert_eq!(names, wanted);
    for name in ["create", "stat", "delete"] {
        for order in ["in-order", "at-random"] {
            let told =
                format!("\n; {name}-{order}: no job, since it makes, looks at or removes files");
            assert!(job.contains(&told), "{job}");
        }
    }
    // A byte is a byte, and an order of few blocks needs no generator that fails of some of them.
    assert!(options(&job, "write-byte").contains(&"bs=1"), "{job}");
    let iozone = of_file(suite::find_builtin("iozone").unwrap().text, "f").unwrap();
    assert!(!iozone.contains("random_generator") && !iozone.contains("norandommap"), "{iozone}");
}
