//! What is not possible at a place is said, not stumbled over.

use crate::lab::{Lab, measured, needs_root};

#[test]
fn small_blocks_on_large_sectors_are_not_possible_here() {
    needs_root!("losetup");
    let mut lab = Lab::new("sectors");
    let image = lab.sparse("disk.img", 16);
    let device = lab.attach(&image, &["-b", "4096"]);
    let set = "--time 100ms --set block_size=512,4K";
    let consent = format!("--destroy {device} --size 8MiB");
    for words in [
        format!("run random-read --target {device} {set} --json"),
        format!("run random-write --target {device} {set} {consent} --json"),
    ] {
        let said = lab.ok(&words);
        assert!(said.err.contains("not here"), "{said}");
        let document = said.document();
        let cells = document["cells"].as_array().unwrap();
        let small = cells.iter().find(|cell| cell["block_bytes"] == 512).unwrap();
        let why = "not-possible-here: direct I/O of 512B on a device whose smallest unit is 4KiB";
        assert_eq!(small["marks"][0], why);
        assert!(small["iops"].is_null() && small["visits"].as_array().unwrap().is_empty());
        let large = cells.iter().find(|cell| cell["block_bytes"] == 4096).unwrap();
        assert!(large["iops"].as_f64().unwrap() > 0.0);
    }
    let dry = lab.ok(&format!("run random-read --target {device} {set} --dry-run"));
    assert!(dry.out.contains("read block_size=512B: direct I/O of 512B on a device"), "{dry}");
    let only = format!("run random-read --target {device} --set block_size=512 --time 100ms");
    lab.run(&only).is(5, &["none of the 1 cells is possible on", "--set direct=false"]);
    lab.ok(&format!("{only} --set direct=false"));
}

#[test]
fn a_silent_fall_back_to_the_page_cache_is_said() {
    needs_root!("mount");
    // ramfs refuses O_DIRECT; tmpfs takes it since Linux 6.6 and serves from memory all the same.
    for (kind, word) in
        [("ramfs", "ramfs: memory, no device"), ("tmpfs", "tmpfs: memory, no device")]
    {
        let mut lab = Lab::new(kind);
        lab.mount(&["-t", kind, "none"], "m");
        let said = lab.ok("run random-read --target m/data --size 8MiB --time 100ms --json");
        assert!(said.err.contains(word), "{said}");
        assert!(said.err.contains("warning: "), "{said}");
        let document = said.document();
        let cell =
            document["cells"].as_array().unwrap().iter().find(|c| c["phase"] == "read").unwrap();
        assert!(cell["marks"].to_string().contains("buffered-fallback"), "{cell}");
        let warnings = measured(&document)[0]["warnings"].to_string();
        assert!(warnings.contains("page cache"), "{warnings}");
        // Buffered on purpose is no fall-back.
        let said = lab.ok("run random-read --target m/data --time 100ms --set direct=false --json");
        assert!(!said.document()["cells"].to_string().contains("buffered-fallback"), "{said}");
    }
}

#[test]
fn memory_and_overlay_are_called_what_they_are() {
    needs_root!("mount");
    let mut lab = Lab::new("overlay");
    for name in ["lower", "upper", "work"] {
        std::fs::create_dir(lab.path(name)).unwrap();
    }
    let path = |name: &str| lab.path(name).to_str().unwrap().to_owned();
    let options =
        format!("lowerdir={},upperdir={},workdir={}", path("lower"), path("upper"), path("work"));
    let words = ["-t", "overlay", "overlay", "-o", &options, &path("m")];
    std::fs::create_dir(lab.path("m")).unwrap();
    let mounted = std::process::Command::new("mount").args(words).output().unwrap();
    if !mounted.status.success() {
        eprintln!("skipped: no overlay here");
        return;
    }
    lab.mounted("m");
    let said = lab.ok("run random-write --target m/data --size 1MiB --time 50ms");
    assert!(said.err.contains("overlay: writes go to"), "{said}");
}
