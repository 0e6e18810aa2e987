//! What is written, what is left alone, what is removed.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use runner::{RunError, TargetName, prepare};

use crate::help::{Place, go, order};

const SMALL: [&str; 2] = ["file_size=1MiB", "operations=64"];

#[test]
fn a_file_of_the_users_is_not_touched_unless_named() {
    let place = Place::new("foreign");
    let file = place.join("payroll.db");
    std::fs::write(&file, vec![7u8; 3 << 20]).unwrap();
    let mut order = order(&place, "random-write", file.to_str().unwrap(), &SMALL);
    let refused = prepare(&order).unwrap_err();
    assert!(matches!(refused, RunError::Refused(_)), "{refused}");
    assert!(refused.hint().unwrap_or_default().contains("--overwrite"), "{:?}", refused.hint());
    assert_eq!(std::fs::read(&file).unwrap(), vec![7u8; 3 << 20]);

    order.settings.consent.overwrite = vec![file.clone()];
    go(&place, &order).unwrap();
    let after = std::fs::read(&file).unwrap();
    assert_eq!(after.len(), 3 << 20, "it keeps its length");
    assert!(after[1 << 20..].iter().all(|&b| b == 7), "beyond what was asked nothing is written");
    assert!(after[..1 << 20].iter().any(|&b| b != 7));
    // Named once is not ours for ever.
    order.settings.consent.overwrite.clear();
    assert!(prepare(&order).is_err());
}

#[test]
fn a_file_of_the_users_can_be_read() {
    let place = Place::new("read");
    let file = place.join("data");
    let content: Vec<u8> = (0..4u32 << 20).map(|i| (i % 251) as u8).collect();
    std::fs::write(&file, &content).unwrap();
    let order = order(&place, "random-read", file.to_str().unwrap(), &["operations=64"]);
    let (_, run) = go(&place, &order).unwrap();
    assert_eq!(run.visits.len(), 1, "no fill");
    assert_eq!(run.header.target.size_bytes, 4 << 20, "taken whole");
    assert_eq!(std::fs::read(&file).unwrap(), content);
}

#[test]
fn our_own_file_is_used_again_in_another_size() {
    let place = Place::new("again");
    let file = place.join("data");
    let name = file.to_str().unwrap();
    go(&place, &order(&place, "random-write", name, &SMALL)).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
    go(&place, &order(&place, "random-write", name, &["file_size=2MiB", "operations=64"])).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 2 << 20);
}

#[test]
fn a_scratch_file_goes_with_the_run_unless_kept() {
    let place = Place::new("scratch");
    let directory = place.join("d");
    std::fs::create_dir(&directory).unwrap();
    let mut order = order(&place, "random-write", directory.to_str().unwrap(), &SMALL);
    let prepared = prepare(&order).unwrap();
    let said = prepared.describe().join("\n");
    assert!(
        said.contains("Removes ") && said.contains("plimsoll-scratch.dat afterwards"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0, "preparing writes nothing");
    go(&place, &order).unwrap();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
    order.settings.keep = true;
    go(&place, &order).unwrap();
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
}

/// What has a name, and how it is put there.
type Way<'a> = (&'a str, &'a dyn Fn(&Path));

/// Whatever has the name of a scratch file and is none: it and what it leads to stay as they are.
#[test]
fn a_scratch_name_is_no_way_to_another_file() {
    let place = Place::new("scratch-links");
    let directory = place.join("d");
    std::fs::create_dir(&directory).unwrap();
    let kept = place.join("kept");
    go(&place, &order(&place, "random-write", kept.to_str().unwrap(), &SMALL)).unwrap();
    let before = (std::fs::read(&kept).unwrap(), std::fs::metadata(&kept).unwrap().mtime_nsec());
    let pipe = |name: &Path| {
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, name, kind, mode, 0).unwrap();
    };
    let ways: [Way; 6] = [
        ("link to one of ours", &|name| symlink(&kept, name).unwrap()),
        ("link to nothing", &|name| symlink(place.join("nothing"), name).unwrap()),
        ("hard link", &|name| std::fs::hard_link(&kept, name).unwrap()),
        ("pipe", &pipe),
        ("directory", &|name| std::fs::create_dir(name).unwrap()),
        ("file of others", &|name| std::fs::write(name, vec![7u8; 1 << 20]).unwrap()),
    ];
    for (what, put) in ways {
        for (file, sets) in [
            ("plimsoll-scratch.dat", &SMALL[..]),
            ("plimsoll-scratch.dat.1", &["file_size=1MiB", "operations=64", "file_count=2"]),
        ] {
            let name = directory.join(file);
            put(&name);
            let found = std::fs::symlink_metadata(&name).unwrap();
            let order = order(&place, "random-write", directory.to_str().unwrap(), sets);
            let refused = go(&place, &order).unwrap_err();
            assert!(!refused.to_string().is_empty(), "{what}");
            let left = std::fs::symlink_metadata(&name).unwrap();
            assert_eq!((found.ino(), found.mtime()), (left.ino(), left.mtime()), "{what} {file}");
            let after = std::fs::metadata(&kept).unwrap().mtime_nsec();
            assert!((std::fs::read(&kept).unwrap(), after) == before, "{what} {file}");
            assert!(!place.join("nothing").exists(), "{what} {file}");
            let others = std::fs::read_dir(&directory).unwrap().count();
            assert_eq!(others, 1, "{what} {file}: nothing else is made");
            if found.is_dir() {
                std::fs::remove_dir(&name).unwrap();
            } else {
                std::fs::remove_file(&name).unwrap();
            }
        }
    }
}

/// A killed run's scratch file that got a second name meanwhile is somebody's.
#[test]
fn what_a_killed_run_left_stays_where_it_has_another_name_by_now() {
    let place = Place::new("scratch-second");
    let directory = place.join("d");
    std::fs::create_dir(&directory).unwrap();
    let order = order(&place, "random-write", directory.to_str().unwrap(), &SMALL);
    let name = directory.join("plimsoll-scratch.dat.7");
    let file = std::fs::File::create(&name).unwrap();
    file.set_len(4096).unwrap();
    let mark = stack::mark_of_scratch(stack::mark_value(&file).unwrap(), 7);
    if uring::set_mark(&name, stack::MARK_NAME, &mark).is_err() {
        println!("skipped: no extended attributes here");
        return;
    }
    drop(file);
    std::fs::hard_link(&name, place.join("second")).unwrap();
    go(&place, &order).unwrap();
    assert!(name.exists() && place.join("second").exists());
    std::fs::remove_file(place.join("second")).unwrap();
    go(&place, &order).unwrap();
    assert!(!name.exists(), "with one name it goes");
}

#[test]
fn several_files_are_numbered_and_all_used() {
    let place = Place::new("several");
    let base = place.join("data");
    let sets = ["file_size=256KiB", "file_count=4", "operations=4096"];
    let order = order(&place, "random-write", base.to_str().unwrap(), &sets);
    let (_, run) = go(&place, &order).unwrap();
    for index in 0..4 {
        let file = place.join(&format!("data.{index}"));
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 256 << 10);
    }
    assert_eq!(run.header.target.files, 4);
}

#[test]
fn a_character_device_is_read_and_never_written() {
    let place = Place::new("zero");
    let read = order(&place, "random-read", "/dev/zero", &["operations=1000"]);
    let (_, run) = go(&place, &read).unwrap();
    assert_eq!(run.visits[0].streams[0].ops[0].requests, 1000);
    assert_eq!(run.visits[0].warnings, [], "there is no page cache to warn of");
    let write = order(&place, "random-write", "/dev/null", &["operations=1000"]);
    assert!(matches!(prepare(&write), Err(RunError::NotWritable { .. })));
}

#[test]
fn a_size_beyond_the_file_is_refused_with_the_size_that_is_there() {
    let place = Place::new("short");
    let file = place.join("data");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let order = order(&place, "random-read", file.to_str().unwrap(), &["file_size=2MiB"]);
    let refused = prepare(&order).unwrap_err();
    assert!(matches!(refused, RunError::TooShort { .. }), "{refused}");
    let hint = refused.hint().unwrap();
    let at = |words: &str| hint.find(words).unwrap_or_else(|| panic!("{hint}"));
    assert!(at("name a longer file") < at("`--size 1MiB` reads no more"), "{hint}");
}

#[test]
fn a_file_that_is_cut_and_one_that_is_short_are_told() {
    let place = Place::new("cut");
    let file = place.join("data");
    let name = file.to_str().unwrap();
    go(&place, &order(&place, "random-write", name, &["file_size=4MiB", "operations=64"])).unwrap();
    if stack::mark_of(&file) != stack::Mark::Ours {
        println!("skipped: no extended attributes here");
        return;
    }
    let (_, run) = go(&place, &order(&place, "random-write", name, &SMALL)).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1 << 20);
    let remarks = &run.header.target.remarks;
    let cut = "cut to 1 MiB for this run: what lay beyond is lost";
    assert!(remarks.iter().any(|remark| remark == cut), "{remarks:?}");
    // Read as it is, it passed for whole.
    let read = |sets: &[&str]| {
        let mut order = order(&place, "random-read", name, sets);
        order.size_given = false;
        let prepared = prepare(&order).unwrap();
        let remarks = &prepared.header().target.remarks;
        assert!(!remarks.iter().any(|remark| remark.contains("cut to")), "{remarks:?}");
        let warnings = prepared.header().warnings.iter();
        let short = warnings.filter(|warning| warning.code == "target-short");
        short.map(|warning| warning.text.clone()).collect::<Vec<_>>()
    };
    let told = read(&["file_size=64MiB"]);
    assert!(
        told.len() == 1 && told[0].contains("has 1 MiB, the suite asks for 64 MiB"),
        "{told:?}"
    );
    assert_eq!(read(&["file_size=1MiB"]), Vec::<String>::new());
    assert_eq!(read(&["file_size=512KiB"]), Vec::<String>::new());
}

#[test]
fn a_size_that_leaves_the_amounts_is_told_with_the_run() {
    let place = Place::new("size-alone");
    let text = "schema = 1\nname = \"t\"\nfile_size = \"8GiB\"\n[[phase]]\nname = \"w\"\n\
                operation = \"write\"\nbytes = \"8GiB\"\n";
    let told = |sets: &[&str]| {
        let prepared = prepare(&order(&place, text, "null:", sets)).unwrap();
        prepared.header().warnings.iter().any(|warning| warning.code == "size-alone")
    };
    assert!(told(&["file_size=256MiB"]));
    assert!(!told(&[]) && !told(&["file_size=256MiB", "bytes=256MiB"]));
}

#[test]
fn an_empty_file_is_refused_before_it_is_read() {
    let place = Place::new("empty");
    let file = place.join("data");
    std::fs::write(&file, "").unwrap();
    let order = order(&place, "random-read", file.to_str().unwrap(), &SMALL);
    let refused = prepare(&order).unwrap_err();
    assert!(matches!(refused, RunError::TooShort { .. }), "{refused}");
    assert_eq!(refused.hint().as_deref(), Some("name a file with data in it"));
}

#[test]
fn a_target_that_cannot_be_is_refused_before_anything_is_stored() {
    let place = Place::new("cannot");
    let missing = place.join("no/such/dir/file");
    let order = order(&place, "random-read", missing.to_str().unwrap(), &SMALL);
    assert!(matches!(go(&place, &order), Err(RunError::Target(_))));
    assert!(TargetName::parse("model:".as_ref()).is_err());
    let store = store::Store::open(&place.join("store.db")).unwrap();
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn a_file_of_ours_whose_fill_was_cut_short_is_filled_again() {
    let place = Place::new("hollow");
    let file = place.join("data");
    let order = order(&place, "random-read", file.to_str().unwrap(), &SMALL);
    let (_, first) = go(&place, &order).unwrap();
    assert_eq!(first.visits.len(), 2, "filled, measured");
    let (_, second) = go(&place, &order).unwrap();
    assert_eq!(second.visits.len(), 1, "the file is whole: only measured");
    // As a kill during the fill leaves it: right length, mark, and a hole.
    let data = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    data.set_len(0).unwrap();
    data.set_len(1 << 20).unwrap();
    uring::set_mark(&file, stack::MARK_NAME, &stack::mark_value(&data).unwrap()).unwrap();
    drop(data);
    let (_, third) = go(&place, &order).unwrap();
    assert_eq!(third.visits.len(), 2, "filled again");
}

#[test]
fn what_no_verifying_run_wrote_is_not_verified() {
    let place = Place::new("verify-foreign");
    let file = place.join("data");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let mut order = order(&place, "random-read", file.to_str().unwrap(), &["operations=64"]);
    order.settings.verify = true;
    assert!(matches!(prepare(&order), Err(RunError::Verify { .. })));
}

#[test]
fn self_describing_data_is_not_expected_of_a_file_of_ours_that_was_filled_otherwise() {
    let place = Place::new("describe-later");
    let file = place.join("data");
    let plain = order(&place, "random-read", file.to_str().unwrap(), &SMALL);
    go(&place, &plain).unwrap();
    let sets = [&SMALL[..], &["data=self-describing"]].concat();
    let describing = order(&place, "random-read", file.to_str().unwrap(), &sets);
    let (outcome, run) = go(&place, &describing).unwrap();
    assert!(!outcome.mismatches, "{:?}", run.visits);
    assert_eq!(run.visits.len(), 2, "filled anew, measured");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    assert!(matches!(prepare(&describing), Err(RunError::Verify { .. })), "not ours to fill");
}

#[test]
fn each_of_several_files_must_describe_itself() {
    let place = Place::new("describe-several");
    let file = place.join("data");
    let run = |suite: &str, sets: &[&str], verify| {
        let mut order = order(&place, suite, file.to_str().unwrap(), sets);
        order.settings.verify = verify;
        go(&place, &order).unwrap()
    };
    let several = [&SMALL[..], &["file_count=2"]].concat();
    run("random-write", &several, false);
    run("random-write", &SMALL, true);
    let (outcome, run) = run("random-read", &several, true);
    assert!(!outcome.mismatches, "{:?}", run.visits);
}

#[test]
fn a_model_without_end_is_refused() {
    let place = Place::new("model-endless");
    let long = place.join("long.toml");
    std::fs::File::create(&long).unwrap().set_len(5 << 20).unwrap();
    let long = format!("model:{}", long.display());
    for (model, why) in [("model:/dev/zero", "wanted a regular file"), (&long, "longer than")] {
        let refused = prepare(&order(&place, "random-read", model, &SMALL)).unwrap_err();
        assert!(matches!(refused, RunError::Model { .. }), "{refused}");
        assert!(refused.to_string().contains(why), "{refused}");
    }
}

#[test]
fn a_later_run_can_read_back_what_a_verifying_run_wrote() {
    let place = Place::new("verify-later");
    let file = place.join("data");
    let mut write = order(&place, "random-write", file.to_str().unwrap(), &SMALL);
    write.settings.verify = true;
    go(&place, &write).unwrap();
    let mut read = order(&place, "random-read", file.to_str().unwrap(), &["operations=256"]);
    read.settings.verify = true;
    let (outcome, run) = go(&place, &read).unwrap();
    assert_eq!(run.visits.len(), 1);
    assert!(!outcome.mismatches, "{:?}", run.visits[0].warnings);
}

#[test]
fn what_somebody_put_into_our_file_is_theirs() {
    let place = Place::new("theirs");
    let file = place.join("data");
    let order = order(&place, "random-write", file.to_str().unwrap(), &SMALL);
    go(&place, &order).unwrap();
    prepare(&order).unwrap();
    // In place: the same inode, the same length, the mark still on it.
    use std::os::unix::fs::FileExt;
    let data = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    data.write_all_at(b"their words", 4096).unwrap();
    drop(data);
    let refused = prepare(&order).unwrap_err();
    assert!(matches!(refused, RunError::Refused(_)), "{refused}");
}

#[test]
fn a_second_writer_of_the_same_file_is_refused() {
    let place = Place::new("two");
    let file = place.join("data");
    let order = order(&place, "random-write", file.to_str().unwrap(), &SMALL);
    go(&place, &order).unwrap();
    // Judged while the file is free, as two runs started together are.
    let late = prepare(&order).unwrap();
    let held = std::fs::File::open(&file).unwrap();
    held.lock().unwrap();
    let mut store = store::Store::open(&place.join("store.db")).unwrap();
    let ended = late.run(&mut store, &mut |_: runner::Event<'_>| {}, &runner::Interrupt::default());
    let error = ended.unwrap_err();
    assert!(matches!(error, RunError::Refused(_)), "{error:?}");
    assert_eq!(error.kind(), runner::ErrorKind::Refused);
    assert_eq!(store.list().unwrap().len(), 1, "nothing of it is stored");
}

/// Both were judged before either made its file.
#[test]
fn of_two_runs_that_make_one_file_the_second_says_who_has_it() {
    use runner::ErrorKind;
    let place = Place::new("both");
    for (target, name) in [("", "plimsoll-scratch.dat"), ("new", "new")] {
        let target = place.join(target);
        let order = order(&place, "random-write", target.to_str().unwrap(), &SMALL);
        let mut store = store::Store::open(&place.join("store.db")).unwrap();
        let begin = || {
            let late = prepare(&order).unwrap();
            let held = std::fs::File::create(place.join(name)).unwrap();
            held.lock().unwrap();
            (late, held)
        };
        for is_held in [true, false] {
            let (late, held) = begin();
            if !is_held {
                drop(held);
            }
            let nothing = &mut |_: runner::Event<'_>| {};
            let ended = late.run(&mut store, nothing, &runner::Interrupt::default()).unwrap_err();
            assert_eq!(ended.kind(), ErrorKind::Refused, "{ended:?}");
            assert!(ended.hint().is_some());
            match (&ended, is_held) {
                (RunError::InUse { holder, .. }, true) => {
                    assert_eq!(holder.id, std::process::id());
                }
                (RunError::Appeared { .. }, false) => {}
                _ => panic!("{is_held}: {ended:?}"),
            }
            std::fs::remove_file(place.join(name)).unwrap();
        }
        assert!(store.list().unwrap().is_empty(), "nothing of it is stored");
    }
}

#[test]
fn buffers_beyond_the_memory_are_refused() {
    let place = Place::new("memory");
    let file = place.join("data");
    let sets = ["file_size=4GiB", "block_size=1GiB", "threads=4096", "operations=1"];
    let order = order(&place, "random-write", file.to_str().unwrap(), &sets);
    assert!(matches!(prepare(&order), Err(RunError::Memory { .. })));
}

#[test]
fn a_processor_that_is_not_there_is_refused() {
    let place = Place::new("processor");
    let mut order = order(&place, "random-read", "null:", &["operations=1"]);
    order.settings.cpus = vec![uring::Cpu(1023)];
    assert!(matches!(prepare(&order), Err(RunError::Processor { cpu: 1023, .. })));
}

/// One file through the page cache: of a length that no block divides.
fn in_short_ends(operation: &str, more: &str) -> String {
    format!(
        "schema = 1\nname = \"s\"\nfile_size = \"1000003B\"\n{more}\n[[phase]]\nname = \"p\"\n\
         operation = \"{operation}\"\naccess = \"sequential\"\nblock_size = \"64KiB\"\n\
         last = \"short\"\nbytes = \"1000003B\"\ndirect = false\n"
    )
}

#[test]
fn a_file_of_any_length_is_written_to_its_end_and_no_further() {
    let place = Place::new("odd-write");
    let file = place.join("data");
    std::fs::write(&file, vec![7u8; 1_000_003]).unwrap();
    let suite = in_short_ends("write", "fill = false");
    let mut order = order(&place, &suite, file.to_str().unwrap(), &[]);
    order.settings.consent.overwrite = vec![file.clone()];
    let (_, run) = go(&place, &order).unwrap();
    assert_eq!(
        (run.visits[0].streams[0].ops[0].requests, run.header.target.size_bytes),
        (16, 1_000_003)
    );
    assert!(run.header.warnings.is_empty(), "{:?}", run.header.warnings);
    let after = std::fs::read(&file).unwrap();
    assert_eq!(after.len(), 1_000_003);
    assert!(after.chunks(4096).all(|page| page.iter().any(|&byte| byte != 7)));
    assert!(after[1_000_003 - 579..].iter().any(|&byte| byte != 7));
}

#[test]
fn a_file_of_any_length_is_filled_and_read_to_its_end() {
    let place = Place::new("odd-read");
    let file = place.join("data");
    let order = order(&place, &in_short_ends("read", ""), file.to_str().unwrap(), &[]);
    let (_, run) = go(&place, &order).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 1_000_003);
    let told = |visit: usize| {
        let op = &run.visits[visit].streams[0].ops[0];
        (op.op.as_str(), op.bytes)
    };
    assert_eq!((told(0), told(1)), (("write", 1_000_003), ("read", 1_000_003)));
    // What somebody else left is read as it is, to its end.
    let file = place.join("other");
    std::fs::write(&file, vec![7u8; 1_000_003]).unwrap();
    let mut order =
        crate::help::order(&place, &in_short_ends("read", ""), file.to_str().unwrap(), &[]);
    order.size_given = false;
    let (_, run) = go(&place, &order).unwrap();
    assert_eq!(
        (run.header.target.size_bytes, run.visits[0].streams[0].ops[0].requests),
        (1_000_003, 16)
    );
}

#[test]
fn that_direct_io_leaves_out_the_end_of_a_file_is_said_beforehand() {
    let place = Place::new("odd-direct");
    let file = place.join("data");
    let of = |sets: &[&str]| {
        let prepared =
            prepare(&order(&place, "random-read", file.to_str().unwrap(), sets)).unwrap();
        assert_eq!(prepared.header().target.size_bytes % 4096, 0);
        (prepared.describe().join("\n"), prepared.header().warnings.len())
    };
    let (said, warnings) = of(&["file_size=1MB", "operations=64"]);
    assert!(said.contains("The file has 976KiB of the 1000000B asked for"), "{said}");
    assert_eq!(warnings, 0, "nothing but a few bytes less");
    let short =
        ["file_size=3000320B", "access=sequential", "last=short", "time=none", "bytes=3000320B"];
    let (said, warnings) = of(&short);
    assert!(said.contains("The file has 2928KiB of the 2930KiB asked for"), "{said}");
    assert_eq!(warnings, 1, "{said}");
    assert!(!of(&["file_size=1MiB", "operations=64"]).0.contains("asked for"));
}
