//! What a run that was killed leaves: `rm`, `resume` and the next run at that place remove what it
//! made, and nothing else; and a run that cannot begin leaves nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, FlockOperation, Mode, flock, mknodat};
use rustix::process::Signal;

use crate::lab::{FILES, Lab, Neighbour, hash, needs_root, text, tool};

/// The files-directories in `d`.
fn directories(lab: &Lab) -> Vec<PathBuf> {
    let entries = fs::read_dir(lab.path("d")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

/// A suite of files in a directory of its own, killed while it looks at them; its directory.
fn killed(lab: &Lab) -> (Neighbour, PathBuf) {
    fs::write(lab.path("files.toml"), FILES).unwrap();
    fs::create_dir(lab.path("d")).unwrap();
    let neighbour = Neighbour::new(&lab.path("d"));
    let mut running = lab.start("run files.toml --target d/data");
    running.until_it_says("look");
    running.kill();
    let [root] = directories(lab).try_into().unwrap();
    (neighbour, root)
}

/// Goes on with the killed run until it measures, and ends it.
fn resumes(lab: &Lab) {
    let mut running = lab.start("resume r1");
    running.until_it_says("look");
    running.signal(Signal::INT);
    running.end().is(130, &[]);
}

/// A file system without extended attributes and without files that have no name; false if there
/// is none such here.
fn mount_plain(lab: &mut Lab) -> bool {
    let image = lab.sparse("plain.img", 2 << 10);
    let device = lab.attach(&image, &[]);
    tool("mkfs.ntfs", &["-q", "-F", &device]);
    fs::create_dir_all(lab.path("plain")).unwrap();
    let point = lab.path("plain");
    let words = ["-o", "streams_interface=none", &device, point.to_str().unwrap()];
    let mounted = std::process::Command::new("ntfs-3g").args(words).output().unwrap();
    if mounted.status.success() {
        lab.mounted("plain");
    } else {
        eprintln!("skipped: ntfs-3g: {}", String::from_utf8_lossy(&mounted.stderr));
    }
    mounted.status.success()
}

const ANEW: &str = r#"
schema = 1
name = "anew"
file_size = "1MiB"
method = "classic"

[defaults]
operation = "write"
access = "sequential"
bytes = "1MiB"

[[phase]]
name = "cut"
start_file = "truncate"

[[phase]]
name = "gone"
start_file = "remove"
"#;

#[test]
fn where_no_file_can_be_marked_everything_is_played_and_what_is_left_is_said() {
    needs_root!("losetup", "mkfs.ntfs", "ntfs-3g");
    let mut lab = Lab::new("no-marks");
    if !mount_plain(&mut lab) {
        return;
    }
    let names = |lab: &Lab| {
        let entries = fs::read_dir(lab.path("plain")).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let small = "--size 1MiB --time 50ms";
    let said = lab.ok(&format!("run random-write --target plain {small}"));
    assert!(said.err.contains("keeps no extended attributes"), "{said}");
    assert_eq!(names(&lab), [""; 0], "the scratch file went");
    fs::write(lab.path("anew.toml"), ANEW).unwrap();
    lab.ok("run anew.toml --target plain");
    lab.ok("run anew.toml --target plain/data");
    assert_eq!(fs::metadata(lab.path("plain/data")).unwrap().len(), 1 << 20);
    fs::write(lab.path("files.toml"), FILES.replace("500", "20").replace("1h", "50ms")).unwrap();
    lab.ok("run files.toml --target plain/data --overwrite plain/data");
    assert_eq!(names(&lab), ["data"]);
    // A file of ours is not known as such, and no export leaves anything but itself.
    lab.run(&format!("run random-write --target plain/data {small}"))
        .is(3, &["keeps no extended attributes", "--overwrite"]);
    lab.ok("export r1 --format csv -o plain/r1.csv");
    lab.run("export r1 --format csv -o plain/r1.csv").is(3, &["exists", "hint: `--force`"]);
    lab.ok("export r1 --format csv -o plain/r1.csv --force");
    assert_eq!(names(&lab), ["data", "r1.csv"]);
    // Killed, it leaves what nobody can know: that is said, and it stays.
    let mut running = lab.start("run random-write --target plain --size 1MiB --time 1h");
    running.until_it_says("fill  ");
    running.kill();
    assert_eq!(names(&lab), ["data", "plimsoll-scratch.dat", "r1.csv"]);
    let run = lab.list().last().unwrap()["id"].as_str().unwrap().to_owned();
    lab.ok(&format!("rm {run} --yes")).is(
        0,
        &[
            "warning: ",
            "plimsoll-scratch.dat may be what the run left, and stays",
            "hint: if no other",
        ],
    );
    assert_eq!(names(&lab), ["data", "plimsoll-scratch.dat", "r1.csv"]);
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn whatever_stands_where_the_mark_was_is_neither_waited_for_nor_removed() {
    for what in ["fifo", "link", "long", "other"] {
        let lab = Lab::new("mark-is-odd");
        let (neighbour, root) = killed(&lab);
        let marker = root.join(".plimsoll");
        let kept = fs::read(&marker).unwrap();
        fs::remove_file(&marker).unwrap();
        match what {
            "fifo" => fifo(&marker),
            "link" => std::os::unix::fs::symlink("/dev/zero", &marker).unwrap(),
            "long" => fs::write(&marker, vec![b'p'; 1 << 20]).unwrap(),
            _ => fs::write(&marker, "plimsoll 1 key=0 inode=0\n").unwrap(),
        }
        let files = || fs::read_dir(root.join("in-order")).unwrap().count();
        let before = files();
        let said = lab.run("resume r1");
        assert_ne!(said.code, Some(0), "{what}: {said}");
        lab.ok("rm r1 --yes").is(0, &["warning: "]);
        assert_eq!(files(), before, "{what}: {said}");
        neighbour.untouched();
        assert!(!kept.is_empty());
    }
}

#[test]
fn a_removal_that_was_cut_short_is_finished() {
    let half = |root: &Path, how: &str| {
        let marker = root.join(".plimsoll");
        let mark = fs::read(&marker).unwrap();
        let clear = || fs::remove_dir_all(root.join("in-order")).unwrap();
        match how {
            "some files are gone" => {
                let files = fs::read_dir(root.join("in-order")).unwrap().take(100);
                files.for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
            }
            "only the mark is there" => clear(),
            "not even that" => {
                clear();
                fs::remove_file(&marker).unwrap();
            }
            "half a mark" => {
                clear();
                fs::write(&marker, &mark[..mark.len() / 2]).unwrap();
            }
            _ => {
                clear();
                fs::write(&marker, "").unwrap();
            }
        }
    };
    for how in [
        "some files are gone",
        "only the mark is there",
        "not even that",
        "half a mark",
        "an empty mark",
    ] {
        for resumed in [false, true] {
            let lab = Lab::new("half-removed");
            let (neighbour, root) = killed(&lab);
            half(&root, how);
            if resumed {
                resumes(&lab);
            } else {
                let said = lab.ok("rm r1 --yes");
                said.is(0, &["removed what r1 left: "]);
                assert!(!said.err.contains("warning"), "{how}: {said}");
            }
            assert_eq!(directories(&lab), Vec::<PathBuf>::new(), "{how}, resumed: {resumed}");
            neighbour.untouched();
        }
    }
}

#[test]
fn what_a_scratch_file_left_behind_has_is_room_for_the_next() {
    needs_root!("mkfs.ext4", "fallocate");
    let mut lab = Lab::new("room-again");
    let (_, point) = lab.ext4("defaults");
    // 1 GiB stays free: less than 200 MiB are left for the file.
    tool("fallocate", &["-l", "1600M", point.join("data").to_str().unwrap()]);
    let sizes = ["r1", "r2"].map(|run| {
        lab.ok("run random-write --target m --keep --classic --quick --time 10ms -q");
        lab.export(run)["target"]["size_bytes"].as_u64().unwrap()
    });
    assert!(sizes[0] < 1 << 30 && sizes[1] > sizes[0] / 10 * 9, "{sizes:?}");
}

#[test]
fn a_directory_that_looks_like_ours_without_a_mark_is_not() {
    let lab = Lab::new("no-mark");
    let (neighbour, root) = killed(&lab);
    fs::remove_file(root.join(".plimsoll")).unwrap();
    lab.run("resume r1").is(3, &["it has no whole .plimsoll and is not empty"]);
    lab.ok("rm r1 --yes").is(0, &["it has no whole .plimsoll and is not empty"]);
    assert!(fs::read_dir(root.join("in-order")).unwrap().count() > 0);
    neighbour.untouched();
}

#[test]
fn what_others_put_there_is_named_and_stays() {
    for place in ["in-order/letter", "letter", "at-random"] {
        let lab = Lab::new("stranger");
        fs::write(lab.path("files.toml"), FILES).unwrap();
        fs::create_dir(lab.path("d")).unwrap();
        let mut running = lab.start("run files.toml --target d/data");
        running.until_it_says("look");
        let [root] = directories(&lab).try_into().unwrap();
        fs::write(root.join(place), "dear").unwrap();
        running.signal(Signal::INT);
        let said = running.end();
        said.is(130, &["warning: ", &format!("is left: it holds {place}, which this run did not")]);
        assert_eq!(fs::read(root.join(place)).unwrap(), b"dear");
        let warnings = lab.export("r1")["warnings"].to_string();
        assert!(warnings.contains("left-behind") && warnings.contains(place), "{warnings}");
        // It is not gone on with there; nothing is lost by trying.
        if place != "letter" {
            lab.run("resume r1").is(3, &[&format!("it holds {place}"), "\nhint: move it"]);
            assert_eq!(fs::read(root.join(place)).unwrap(), b"dear");
        }
        // Removed as far as it is the run's; once the other thing is gone, wholly.
        fs::rename(root.join(place), lab.path("letter")).unwrap();
        lab.ok("rm r1 --yes").is(0, &["removed what r1 left: "]);
        assert_eq!(directories(&lab), Vec::<PathBuf>::new(), "{place}");
        assert_eq!(fs::read(lab.path("letter")).unwrap(), b"dear");
    }
}

/// The names in `d`, but for the neighbour's.
fn names(lab: &Lab) -> Vec<String> {
    let entries = fs::read_dir(lab.path("d")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name != "neighbour.db").collect();
    names.sort();
    names
}

/// A run on scratch files in `d`, killed while it measures; false where no file has a mark.
fn scratch(lab: &Lab, files: u32) -> bool {
    let mut running = lab.start(&format!(
        "run random-write --target d --size 1MiB --time 1h --set file_count={files}"
    ));
    running.until_it_says("fill ");
    running.kill();
    let name = if files == 1 { "plimsoll-scratch.dat" } else { "plimsoll-scratch.dat.0" };
    let known = stack::scratch_owner(&lab.path("d").join(name)).is_some();
    if !known {
        eprintln!("skipped: no extended attributes here");
    }
    known
}

#[test]
fn scratch_files_go_with_the_killed_run() {
    for files in [1, 3] {
        let lab = Lab::new("scratch-rm");
        fs::create_dir(lab.path("d")).unwrap();
        let neighbour = Neighbour::new(&lab.path("d"));
        let foreign = ["plimsoll-scratch.dat.9", "plimsoll-scratch.dat.x", "plimsoll-scratch"];
        foreign.iter().for_each(|name| fs::write(lab.path("d").join(name), "dear").unwrap());
        if !scratch(&lab, files) {
            return;
        }
        // Somebody else's copy with the mark, too.
        let copy = lab.path("d/plimsoll-scratch.dat.7");
        let first = names(&lab).into_iter().find(|name| name.contains(".dat")).unwrap();
        tool("cp", &["-a", lab.path("d").join(first).to_str().unwrap(), copy.to_str().unwrap()]);
        let before = hash(&copy);
        let said = lab.ok("rm r1 --yes");
        said.is(0, &["removed what r1 left: ", "plimsoll-scratch.dat.7 was not made by this run"]);
        let mut left = vec!["plimsoll-scratch", "plimsoll-scratch.dat.7"];
        left.extend(["plimsoll-scratch.dat.9", "plimsoll-scratch.dat.x"]);
        assert_eq!(names(&lab), left, "{said}");
        assert_eq!(hash(&copy), before);
        neighbour.untouched();
    }
}

#[test]
fn scratch_files_of_another_run_and_kept_ones_stay() {
    let lab = Lab::new("scratch-other");
    fs::create_dir(lab.path("d")).unwrap();
    if !scratch(&lab, 1) {
        return;
    }
    // Another run takes it over and is killed, too.
    assert!(scratch(&lab, 1));
    lab.ok("rm r1 --yes");
    assert_eq!(names(&lab), ["plimsoll-scratch.dat"]);
    lab.ok("rm r2 --yes").is(0, &["removed what r2 left: "]);
    assert_eq!(names(&lab), Vec::<String>::new());
    lab.ok("run random-write --target d --size 1MiB --time 50ms --keep");
    lab.ok("rm last --yes");
    assert_eq!(names(&lab), ["plimsoll-scratch.dat"], "it was to be kept");
}

#[test]
fn the_next_run_removes_what_it_does_not_use_of_a_killed_ones() {
    let lab = Lab::new("scratch-next");
    fs::create_dir(lab.path("d")).unwrap();
    let neighbour = Neighbour::new(&lab.path("d"));
    if !scratch(&lab, 3) {
        return;
    }
    fs::write(lab.path("d/plimsoll-scratch.dat.9"), "dear").unwrap();
    let words = "run random-write --target d --size 1MiB --time 50ms";
    let dry = lab.ok(&format!("{words} --dry-run"));
    for number in 0..3 {
        let said = format!("plimsoll-scratch.dat.{number}, which a killed run left");
        assert!(dry.out.contains(&said), "{dry}");
    }
    assert_eq!(names(&lab).len(), 4, "a dry run changes nothing");
    lab.ok(words);
    assert_eq!(names(&lab), ["plimsoll-scratch.dat.9"]);
    neighbour.untouched();
    // The killed one is gone on with all the same.
    let mut running = lab.start("resume r1");
    running.until_it_says("fill ");
    running.signal(Signal::INT);
    running.end().is(130, &[]);
    assert_eq!(names(&lab), ["plimsoll-scratch.dat.9"]);
}

#[test]
fn scratch_files_in_use_are_left_to_their_run() {
    let lab = Lab::new("scratch-used");
    fs::create_dir(lab.path("d")).unwrap();
    let words = "run random-write --target d --size 1MiB --time 1h --set file_count=2";
    let mut first = lab.start(words);
    first.until_it_says("fill ");
    lab.ok("run random-write --target d --size 1MiB --time 50ms");
    assert_eq!(names(&lab).len(), 2);
    first.signal(Signal::INT);
    first.end().is(130, &[]);
    assert_eq!(names(&lab), Vec::<String>::new());
}

#[test]
fn of_several_targets_none_is_left_if_one_cannot_be_had() {
    let lab = Lab::new("undo");
    lab.ok("run random-write --target b --size 1MiB --time 50ms");
    let before = hash(&lab.path("b"));
    let held = File::open(lab.path("b")).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    fs::create_dir(lab.path("d")).unwrap();
    for first in ["a", "d"] {
        let words = format!("run random-write --size 1MiB --time 50ms --target {first} --target b");
        let said = lab.run(&words);
        let who = format!("(pid {})", std::process::id());
        said.is(3, &["b is in use by ", &who, "\nhint: wait"]);
        assert!(!lab.path("a").exists(), "{said}");
        assert_eq!(names(&lab), Vec::<String>::new(), "{said}");
    }
    assert_eq!(hash(&lab.path("b")), before);
    assert_eq!(lab.list().len(), 1, "nothing is stored of what did not begin");
}

#[test]
fn a_directory_that_cannot_be_made_leaves_no_file() {
    needs_root!("losetup", "mkfs.ext4", "mount");
    let mut lab = Lab::new("undo-directory");
    let image = lab.sparse("fs.img", 3 << 10);
    let device = lab.attach(&image, &[]);
    tool("mkfs.ext4", &["-q", "-N", "640", &device]);
    let point = lab.mount(&[&device], "m");
    let suite = FILES.replace("500", "3").replace("1h", "50ms");
    fs::write(lab.path("files.toml"), suite).unwrap();
    let free = || rustix::fs::statvfs(&point).unwrap().f_favail;
    let mut number = 0;
    // One inode is left for the file, and none for the directory.
    while free() > 4 {
        fs::write(point.join(format!("other-{number}")), "").unwrap();
        number += 1;
    }
    let said = lab.run("run files.toml --target m/data --set directory.files=1 --dry-run");
    if said.code != Some(0) {
        eprintln!("skipped: it was seen before: {said}");
        return;
    }
    while free() > 1 {
        fs::write(point.join(format!("other-{number}")), "").unwrap();
        number += 1;
    }
    let said = lab.run("run files.toml --target m/data --set directory.files=1");
    assert_ne!(said.code, Some(0), "{said}");
    assert!(!point.join("data").exists(), "{said}");
}

#[test]
fn a_trim_that_cannot_be_had_is_said() {
    needs_root!("mount");
    let mut lab = Lab::new("no-trim");
    // ramfs makes no holes.
    lab.mount(&["-t", "ramfs", "none"], "m");
    let suite = "schema = 1\nname = \"t\"\nmethod = \"classic\"\nfile_size = \"1MiB\"\n\
                 precondition = [{ trim = true }]\n[[phase]]\nname = \"w\"\noperation = \"write\"\n\
                 time = \"50ms\"\ndirect = false\n";
    fs::write(lab.path("t.toml"), suite).unwrap();
    let said = lab.ok("run t.toml --target m/data --json");
    let words = "nothing could be given back (trim): ";
    said.is(0, &["warning: precondition-1: ", words, "begins with what was on it"]);
    let document = said.document();
    let warnings = document["warnings"].as_array().unwrap();
    let codes: Vec<_> = warnings.iter().map(|warning| text(&warning["code"])).collect();
    assert!(codes.contains(&"not-trimmed".to_owned()), "{codes:?}");
    assert_eq!(document["state"], "complete");
}

#[test]
fn preconditioning_that_is_left_out_is_said() {
    let lab = Lab::new("left-out");
    let suite = "schema = 1\nname = \"t\"\nmethod = \"classic\"\nfile_size = \"1MiB\"\n\
                 precondition = [{ trim = true }]\n[[phase]]\nname = \"r\"\ntime = \"50ms\"\n";
    fs::write(lab.path("t.toml"), suite).unwrap();
    fs::write(lab.path("data"), vec![7; 1 << 20]).unwrap();
    let words = "not prepared as the suite wants it (precondition-1: trim): data is there already";
    let dry = lab.ok("run t.toml --target data --dry-run");
    assert!(dry.out.contains(&words.replacen('n', "N", 1)), "{dry}");
    let said = lab.ok("run t.toml --target data --json");
    said.is(0, &[&format!("warning: {words}")]);
    assert_eq!(said.document()["warnings"][0]["code"], "not-preconditioned");
    assert_eq!(fs::read(lab.path("data")).unwrap(), vec![7; 1 << 20]);
    // Where there is something to fill it is done, and nothing is said.
    let said = lab.ok("run t.toml --target new --json");
    assert!(!said.err.contains("not prepared"), "{said}");
}

#[test]
fn many_files_are_told_in_a_line() {
    let lab = Lab::new("many");
    let words = "run random-write --target data --size 64KiB --set file_count=128 --time 50ms";
    let dry = lab.ok(&format!("{words} --dry-run"));
    let place = lab.dir.display();
    let row = format!("{place}/data.0 .. {place}/data.127 (128 files of 64 KiB)");
    assert!(dry.out.contains(&format!("Creates {row}, marks each as plimsoll's")), "{dry}");
    assert!(dry.out.lines().count() < 12, "{dry}");
    lab.ok(words);
    fs::remove_file(lab.path("data.5")).unwrap();
    let dry = lab.ok(&format!("{words} --dry-run"));
    for said in [
        format!("Overwrites {place}/data.0 .. {place}/data.4 (5 files of 64 KiB), which plimsoll"),
        format!("Creates {place}/data.5 (64 KiB), marks each as plimsoll's"),
        format!("Overwrites {place}/data.6 .. {place}/data.127 (122 files of 64 KiB), which"),
    ] {
        assert!(dry.out.contains(&said), "`{said}`: {dry}");
    }
    fs::create_dir(lab.path("d")).unwrap();
    let dry = lab.ok(&format!("{} --dry-run", words.replace("data", "d")));
    let last = format!("Removes {place}/d/plimsoll-scratch.dat.0 .. {place}/d/plimsoll-scratch");
    assert!(dry.out.contains(&format!("{last}.dat.127 afterwards.")), "{dry}");
}

#[test]
fn a_model_that_is_a_pipe_is_not_waited_for() {
    let lab = Lab::new("model-fifo");
    fifo(&lab.path("model.toml"));
    let said = lab.run("run random-read --target model:model.toml --time 50ms");
    said.is(2, &["cannot use model model.toml: it is a pipe, wanted a regular file", "\nhint: "]);
}

#[test]
fn too_many_threads_are_said_with_what_limits_them() {
    needs_root!("setpriv");
    let lab = Lab::new("threads");
    lab.run("run random-read --target null: --set threads=5000 --time 50ms").is(
        2,
        &["--set threads=5000: `threads` is `5000`, wanted 1 to 4096", "\nhint: more requests"],
    );
    let mut command = std::process::Command::new("prlimit");
    let words = "run random-read --target null: --set threads=64 --time 50ms --store store.db";
    command.args(["--nproc=16", "setpriv", "--reuid", "54321", "--clear-groups"]);
    command.arg(crate::lab::PLIMSOLL).args(words.split_whitespace()).current_dir(&lab.dir);
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&lab.dir, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let said = crate::lab::Running::start(command, &lab.dir).end();
    if said.err.contains("Permission denied") {
        eprintln!("skipped: the program is where other users cannot run it");
        return;
    }
    said.is(
        5,
        &["of the 64 worker threads of stream `read` could be started: ", "`ulimit -u` = 16"],
    );
}
