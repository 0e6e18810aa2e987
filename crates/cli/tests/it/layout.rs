use crate::world::World;

const STACK: &str = "layout raid5 --members 4 --chunk 128KiB --legs 2 --stripe lvm \
                     --file-system xfs --mount noatime --member-size 160GB";

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_stack_is_laid_out() {
    let world = World::new();
    insta::assert_snapshot!("layout", world.ok(&words(STACK)).out);
    let line = "layout raid10 --members 8 --chunk 64KiB --member-size 146GB --member-rate 120MB \
                --write 8KiB,64KiB --scheduler none --read-ahead 4MiB --file-system ext4";
    insta::assert_snapshot!("layout-raid10", world.ok(&words(line)).out);
    assert_eq!(world.files(), ["home"]);
}

#[test]
fn commands_and_their_undoing_stand_alone() {
    let world = World::new();
    let line = "layout raid1 --members 2 --spares 1 --file-system ext4 --device /dev/sdb --device \
                /dev/sdc --device /dev/sdd";
    let commands = world.ok(&words(&format!("{line} --commands"))).out;
    insta::assert_snapshot!("layout-commands", commands);
    insta::assert_snapshot!("layout-undo", world.ok(&words(&format!("{line} --undo"))).out);
}

#[test]
fn the_document_has_it_all() {
    let world = World::new();
    let out = world.ok(&words(&format!("{STACK} --json"))).out;
    let sheet: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(sheet["schema"], "plimsoll.layout/1");
    assert_eq!(sheet["tolerance"]["sure"], 1);
    assert_eq!(sheet["leg"]["data_width"], 393_216);
    assert_eq!(sheet["told"]["unit"], 524_288);
    assert_eq!(sheet["writes"].as_array().unwrap().len(), 14);
    let first = &sheet["steps"][0]["action"]["run"]["argv"];
    assert_eq!(first[0], "mdadm");
}

#[test]
fn what_cannot_be_is_refused_with_a_way_out() {
    let world = World::new();
    let mut text = String::new();
    for line in [
        "layout",
        "layout raid7 --members 4",
        "layout raid5",
        "layout raid5 --members 2",
        "layout raid5 --members 4 --chunk 100KiB",
        "layout raid5 --members 4 --chunk 4X",
        "layout raid1 --members 2 --chunk 64KiB",
        "layout raid5 --members 4 --legs 2",
        "layout raid5 --members 4 --stripe lvm",
        "layout raid5 --members 4 --legs 2 --stripe lvm --stripe-chunk 384KiB",
        "layout raid5 --members 4 --maker mdadm",
        "layout raid6 --members 4 --maker lvm",
        "layout raid5 --members 4 --maker btrfs --file-system xfs",
        "layout raid5 --members 4 --file-system ntfs",
        "layout raid5 --members 4 --member-size 1MiB",
        "layout raid1 --members 2 --member-size 200MiB --file-system xfs",
        "layout raid5 --members 3 --device /dev/sda",
        "layout raid1 --members 2 --device /dev/sda --device /dev/sda",
        "layout raid1 --members 2 --device sda --device sdb",
        "layout device --members 3",
        "layout raid0 --members 3 --spares 1",
        "layout raid5 --members 4000000000",
        "layout raid5 --members 4 --legs 0",
        "layout raid5 --members 4 --member-size 15EiB",
        "layout raid5 --members 4 --member-size 5EiB",
        "layout raid5 --members 4 --member-rate 0",
        "layout raid5 --members 4 --member-rate 1",
        "layout raid5 --members 4 --misaligned-by 15EiB",
        "layout raid5 --members 4 --misaligned-by 3TB",
        "layout raid5 --members 4 --write 0",
        "layout raid5 --members 4 --write 4KiB,4TB",
        "layout raid7",
    ] {
        let done = world.run(&line.split(' ').collect::<Vec<_>>());
        assert_eq!((done.out.as_str(), done.code), ("", 2), "{line}");
        text += &format!("$ plimsoll {line}\n{}\n", done.err);
    }
    insta::assert_snapshot!("layout-mistakes", text);
}

#[test]
fn a_mirror_is_filled_whole() {
    let world = World::new();
    let sync = |line: &str| {
        let out = world.ok(&words(&format!("layout {line} --json"))).out;
        let sheet: serde_json::Value = serde_json::from_str(&out).unwrap();
        let hours = |of: &str| sheet[of]["idle"].as_u64().map(|ns| ns as f64 / 3.6e12);
        [hours("first_sync"), hours("mirror_sync"), hours("rebuild")]
            .map(|hours| hours.map(|hours| (hours * 10.0).round() / 10.0))
    };
    // 1 TB a member at 204.8 MB/s an array: 1.4 h; three of them 4.1 h.
    assert_eq!(sync("raid01 --members 6"), [Some(4.1), None, Some(4.1)]);
    assert_eq!(sync("raid10 --members 8"), [Some(5.4), None, Some(1.4)]);
    let legs = "raid5 --members 4 --legs 2 --stripe md --stripe-level raid1";
    assert_eq!(sync(legs), [Some(1.4), Some(4.1), Some(1.4)]);
    let stripes = "raid0 --members 3 --legs 2 --stripe md --stripe-level raid1";
    assert_eq!(sync(stripes), [None, Some(4.1), Some(4.1)]);
    assert_eq!(sync("raid0 --members 3 --legs 2 --stripe md"), [None; 3]);
    let said = world.ok(&words(&format!("layout {legs}"))).out;
    assert!(said.contains("sync of a leg") && said.contains("sync of legs"), "{said}");
}

#[test]
fn legs_that_are_devices_are_not_known_inside() {
    let world = World::new();
    let line = "layout device --legs 2 --stripe md";
    let said = world.ok(&words(line)).out;
    for wanted in ["Pieces of 64 KiB are a guess", "what a leg bears is not known", "written once"]
    {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("copies") && !said.contains("the first that fails"), "{said}");
    let chosen = world.ok(&words(&format!("{line} --stripe-chunk 512KiB"))).out;
    assert!(!chosen.contains("guess"), "{chosen}");
    let mirror = world.ok(&words(&format!("{line} --stripe-level raid1"))).out;
    assert!(mirror.contains("copies") && !mirror.contains("written once"), "{mirror}");
}

#[test]
fn what_is_printed_names_what_was_meant() {
    let world = World::new();
    let odd = "/dev/\u{202e}vdc";
    let line = ["layout", "raid1", "--members", "2", "--device", "/dev/vdb", "--device", odd];
    for more in ["--commands", "--undo"] {
        let said = world.ok(&[&line[..], &[more]].concat()).out;
        assert!(said.contains(r"$'/dev/\342\200\256vdc'"), "{said}");
        let commands: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(commands.iter().all(|line| !line.contains("\\u")), "{said}");
        assert!(!said.contains('\u{202e}'), "{said}");
    }
}

/// What a study refuses to hand to mkfs is nothing to be copied either.
#[test]
fn words_for_mkfs_name_no_other_device_label_or_kind() {
    let world = World::new();
    for (option, wanted) in [
        ("/dev/vda", "/dev/vda is neither"),
        ("-L x", "by which a study knows its own"),
        ("-Jdevice=/dev/vda", "/dev/vda is neither"),
        ("-text3", "by which a study knows its own"),
    ] {
        let all = ["layout", "raid1", "--members", "2", "--file-system", "ext4", "--commands"];
        let words: Vec<&str> = all.into_iter().chain(["--mkfs-option", option]).collect();
        let said = world.run(&words);
        assert_eq!(said.code, 2, "{option}: {}{}", said.out, said.err);
        assert!(said.err.contains(wanted) && said.out.is_empty(), "{option}: {}", said.err);
    }
    world.ok(&words(
        "layout raid1 --members 2 --file-system ext4 --mkfs-option -N --mkfs-option 4096",
    ));
}
