//! Overlays whose directories are not where their names say, and files that an overlay shows under
//! another name or without data of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::hidden_users::{IMPORTS, Overlay, is_leased, is_loop_file, is_unchecked, leaser};
use crate::same_bytes::{
    Elsewhere, Lab, is_held, is_mapped, is_root, is_written, process, python, reasons, run, settled,
};
use stack::{Host, RefusalReason, inspect, targets_that_share_bytes};

/// A process that has a file mapped for reading, and has it no longer open.
fn mapper(path: &Path) -> Option<Elsewhere> {
    let script = format!(
        "{IMPORTS}f=os.open(sys.argv[1],os.O_RDONLY)\n\
         m=mmap.mmap(f,4096,mmap.MAP_SHARED,mmap.PROT_READ)\nos.close(f)\n\
         print('ready',flush=True)\ntime.sleep(600)"
    );
    python(&script, &[path])
}

fn writer(path: &Path) -> Elsewhere {
    process("exec 3<>\"$1\"", &[path])
}

/// A loop device that only reads.
fn reader(lab: &mut Lab, file: &Path) -> Option<PathBuf> {
    let words: [&Path; 4] = ["--read-only".as_ref(), "--find".as_ref(), "--show".as_ref(), file];
    let device = run("losetup", &words).map(PathBuf::from)?;
    lab.undo.later("losetup", &["-d".as_ref(), &device]);
    Some(device)
}

/// Files of their own moments and of one length, since moments and lengths are compared.
fn files(place: &Path, names: &[&str]) {
    for name in names {
        fs::write(place.join(name), vec![7; 1 << 20]).unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
}

/// Whether a process is named that has the file open, and not only the kernel's word that somebody has.
fn is_named(found: &[RefusalReason]) -> bool {
    found
        .iter()
        .any(|one| matches!(one, RefusalReason::OpenWriter { by, .. } if by.contains("(pid ")))
}

/// Mounts an overlay that has lost its directories, and says where they are.
type Lose = fn(&mut Overlay) -> Option<(PathBuf, PathBuf)>;

const LOWER: [&str; 3] = ["mapped-below", "image-below", "other-below"];
const UPPER: [&str; 5] = ["open", "mapped", "image", "other", "twin"];

fn fill(lower: &Path, upper: &Path) {
    files(lower, &LOWER);
    files(upper, &UPPER);
}

fn renamed(overlay: &mut Overlay) -> Option<(PathBuf, PathBuf)> {
    fill(&overlay.at("l"), &overlay.at("u"));
    overlay.mount()?;
    let (lower, upper) = (overlay.at("was-l"), overlay.at("was-u"));
    std::thread::sleep(Duration::from_millis(30));
    fs::rename(overlay.at("l"), &lower).unwrap();
    fs::rename(overlay.at("u"), &upper).unwrap();
    Some((lower, upper))
}

fn replaced(overlay: &mut Overlay) -> Option<(PathBuf, PathBuf)> {
    let found = renamed(overlay)?;
    // Something else has their names.
    for name in ["l", "u"] {
        fs::create_dir(overlay.at(name)).unwrap();
    }
    files(&overlay.at("u"), &UPPER);
    Some(found)
}

fn relative(overlay: &mut Overlay) -> Option<(PathBuf, PathBuf)> {
    // The directories of these names above the mount point were made at another moment.
    std::thread::sleep(Duration::from_millis(30));
    let (lower, upper) = (overlay.at("side/l"), overlay.at("side/u"));
    for place in [&lower, &upper, &overlay.at("side/w")] {
        fs::create_dir_all(place).unwrap();
    }
    fill(&lower, &upper);
    let script =
        "cd \"$0\"/side && mount -i -t overlay none -o lowerdir=l,upperdir=u,workdir=w \"$0\"/m";
    run("sh", &["-c".as_ref(), script.as_ref(), &overlay.base])?;
    let merged = overlay.at("m");
    overlay.undo.later("umount", &["-l".as_ref(), &merged]);
    Some((lower, upper))
}

fn bind_mount_gone(overlay: &mut Overlay) -> Option<(PathBuf, PathBuf)> {
    let (real, bound) = (overlay.at("real"), overlay.at("bound"));
    for place in ["real/l", "real/u", "real/w", "bound"] {
        fs::create_dir_all(overlay.at(place)).unwrap();
    }
    let (lower, upper) = (overlay.at("real/l"), overlay.at("real/u"));
    fill(&lower, &upper);
    run("mount", &["--bind".as_ref(), &real, &bound])?;
    let script =
        "mount -t overlay none -o lowerdir=$0/bound/l,upperdir=$0/bound/u,workdir=$0/bound/w $0/m";
    run("sh", &["-c".as_ref(), script.as_ref(), &overlay.base])?;
    let merged = overlay.at("m");
    overlay.undo.later("umount", &["-l".as_ref(), &merged]);
    run("umount", &["-l".as_ref(), &bound])?;
    Some((lower, upper))
}

const WAYS: [(&str, Lose); 4] = [
    ("renamed", renamed),
    ("replaced", replaced),
    ("relative", relative),
    ("bind-mount-gone", bind_mount_gone),
];

#[test]
fn who_uses_a_file_through_an_overlay_that_lost_its_directories_uses_it() {
    if !is_root() {
        return;
    }
    for (way, lose) in WAYS {
        let lab = Lab::new(way);
        let Some(mut overlay) = Overlay::new(&lab) else { return };
        let Some((lower, upper)) = lose(&mut overlay) else { return };
        let merged = overlay.at("m");

        let Some(_one) = mapper(&merged.join("mapped-below")) else { return };
        let found = reasons(&lower.join("mapped-below"));
        assert!(is_mapped(&found), "{way}: {found:?}");
        let Some(_two) = mapper(&merged.join("mapped")) else { return };
        let found = reasons(&upper.join("mapped"));
        assert!(is_mapped(&found), "{way}: {found:?}");
        let _three = writer(&merged.join("open"));
        let found = reasons(&upper.join("open"));
        assert!(is_named(&found), "{way}: {found:?}");
        for name in ["other", "image"] {
            let found = settled(&upper.join(name));
            assert!(found.is_empty(), "{way}, {name} is unused: {found:?}");
        }
        let found = settled(&lower.join("other-below"));
        assert!(found.is_empty(), "{way}, unused: {found:?}");
    }
}

#[test]
fn who_uses_the_file_below_uses_what_an_overlay_shows_that_lost_its_directories() {
    if !is_root() {
        return;
    }
    for (way, lose) in WAYS {
        let lab = Lab::new(way);
        let Some(mut overlay) = Overlay::new(&lab) else { return };
        let Some((_, upper)) = lose(&mut overlay) else { return };
        let merged = overlay.at("m");
        let Some(_one) = mapper(&upper.join("mapped")) else { return };
        let found = reasons(&merged.join("mapped"));
        assert!(is_mapped(&found), "{way}: {found:?}");
        let _two = writer(&upper.join("open"));
        let found = reasons(&merged.join("open"));
        assert!(is_named(&found), "{way}: {found:?}");
        for name in ["other", "image"] {
            let found = settled(&merged.join(name));
            assert!(found.is_empty(), "{way}, {name} is unused: {found:?}");
        }
    }
}

#[test]
fn loop_devices_through_an_overlay_that_lost_its_directories_are_over_its_files() {
    if !is_root() {
        return;
    }
    for (way, lose) in WAYS {
        let mut lab = Lab::new(way);
        let Some(mut overlay) = Overlay::new(&lab) else { return };
        let Some((lower, upper)) = lose(&mut overlay) else { return };
        let merged = overlay.at("m");
        let Some(_) = reader(&mut lab, &merged.join("image-below")) else { return };
        let found = reasons(&lower.join("image-below"));
        assert!(is_loop_file(&found), "{way}: {found:?}");
        let Some(below) = reader(&mut lab, &upper.join("image")) else { return };
        let found = reasons(&merged.join("image"));
        assert!(is_loop_file(&found), "{way}: {found:?}");
        let Some(above) = reader(&mut lab, &merged.join("image")) else { return };
        let Some(apart) = reader(&mut lab, &merged.join("other")) else { return };
        let host = Host::this();
        let share = |one: &Path, other: &Path| {
            let both = [one, other].map(|path| inspect(&host, path).unwrap());
            targets_that_share_bytes(&host, &both).is_some()
        };
        assert!(share(&above, &below), "{way}: two loop devices");
        assert!(share(&above, &upper.join("image")), "{way}: a loop device and its file");
        assert!(share(&merged.join("other"), &upper.join("other")), "{way}: two files");
        assert!(share(&merged.join("new"), &upper.join("new")), "{way}: two names of a new file");
        assert!(!share(&merged.join("new"), &upper.join("newer")), "{way}: two new files");
        assert!(!share(&apart, &below), "{way}: another file");
        assert!(!share(&apart, &upper.join("image")), "{way}: another file");
        drop(lab);
    }
}

#[test]
fn a_mount_of_what_an_overlay_shows_that_lost_its_directories_is_one_of_the_file() {
    if !is_root() {
        return;
    }
    for (way, lose) in WAYS {
        let mut lab = Lab::new(way);
        let Some(mut overlay) = Overlay::new(&lab) else { return };
        let Some((_, upper)) = lose(&mut overlay) else { return };
        let merged = overlay.at("m");
        let Some(above) = lab.attach(&merged.join("image")) else { return };
        let Some(below) = lab.attach(&upper.join("image")) else { return };
        let Some(apart) = lab.attach(&upper.join("twin")) else { return };
        let _open = writer(&merged.join("image"));
        let found = reasons(&below);
        assert!(is_written(&found), "{way}, open by the overlay: {found:?}");
        if run("mkfs.ext4", &["-q".as_ref(), &above]).is_none() {
            return;
        }
        let Some(_) = lab.mounted(&above, "mnt") else { return };
        let found = reasons(&below);
        assert!(is_held(&found), "{way}: {found:?}");
        let found = settled(&apart);
        assert!(found.is_empty(), "{way}: over another file: {found:?}");
        drop(lab);
    }
}

fn mount_with(overlay: &mut Overlay, options: &str) -> Option<()> {
    let script =
        "mount -t overlay none -o lowerdir=$0/l,upperdir=$0/u,workdir=$0/w,$1 $0/m".as_ref();
    run("sh", &["-c".as_ref(), script, &overlay.base, options.as_ref()])?;
    let merged = overlay.at("m");
    overlay.undo.later("umount", &["-l".as_ref(), &merged]);
    Some(())
}

#[test]
fn a_lower_file_is_used_through_an_upper_file_without_data() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("metacopy");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    files(&overlay.at("l"), &["mapped", "image", "other", "written"]);
    if mount_with(&mut overlay, "metacopy=on,redirect_dir=on").is_none() {
        return;
    }
    let (lower, merged) = (overlay.at("l"), overlay.at("m"));
    for name in ["mapped", "image", "other"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(merged.join(name), mode).unwrap();
        fs::rename(merged.join(name), merged.join(format!("new-{name}"))).unwrap();
    }
    let Some(_one) = mapper(&merged.join("new-mapped")) else { return };
    let found = reasons(&lower.join("mapped"));
    assert!(is_mapped(&found), "{found:?}");
    let Some(_two) = reader(&mut lab, &merged.join("new-image")) else { return };
    let found = reasons(&lower.join("image"));
    assert!(is_loop_file(&found) || is_unchecked(&found), "{found:?}");
    // A writer has a copy of the data.
    let _three = writer(&merged.join("written"));
    let found = settled(&lower.join("written"));
    assert!(found.is_empty(), "{found:?}");
    let found = settled(&lower.join("other"));
    assert!(found.is_empty(), "{found:?}");
    drop(lab);
}

#[test]
fn a_lower_file_is_used_under_the_new_name_of_its_directory() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("redirect");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    fs::create_dir(overlay.at("l/d")).unwrap();
    files(&overlay.at("l/d"), &["mapped", "image", "other"]);
    if mount_with(&mut overlay, "redirect_dir=on").is_none() {
        return;
    }
    if fs::rename(overlay.at("m/d"), overlay.at("m/e")).is_err() {
        return println!("skipped: the overlay renames no directories");
    }
    // Another directory has the old name.
    fs::create_dir(overlay.at("m/d")).unwrap();
    files(&overlay.at("m/d"), &["other"]);
    let Some(_one) = mapper(&overlay.at("m/e/mapped")) else { return };
    let found = reasons(&overlay.at("l/d/mapped"));
    assert!(is_mapped(&found), "{found:?}");
    let Some(_two) = reader(&mut lab, &overlay.at("m/e/image")) else { return };
    let found = reasons(&overlay.at("l/d/image"));
    assert!(is_loop_file(&found), "{found:?}");
    let _three = writer(&overlay.at("m/d/other"));
    let found = settled(&overlay.at("l/d/other"));
    assert!(found.is_empty(), "{found:?}");
    drop(lab);
}

#[test]
fn a_loop_device_over_a_file_of_an_overlay_that_is_mounted_no_more_may_be_over_it() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("unmounted");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    files(&overlay.at("l"), &["image"]);
    fs::write(overlay.at("l/other"), vec![7; 2 << 20]).unwrap();
    if overlay.mount().is_none() {
        return;
    }
    let lower = overlay.at("l/image");
    let Some(gone) = reader(&mut lab, &overlay.at("m/image")) else { return };
    if run("umount", &["-l".as_ref(), &overlay.at("m")]).is_none() {
        return;
    }
    let found = reasons(&lower);
    assert!(is_unchecked(&found) || is_loop_file(&found), "{found:?}");
    let found = settled(&overlay.at("l/other"));
    assert!(found.is_empty(), "of another length: {found:?}");
    let Some(device) = lab.attach(&lower) else { return };
    let found = reasons(&device);
    assert!(is_unchecked(&found), "a device over it: {found:?}");
    let Some(other) = lab.attach(&overlay.at("l/other")) else { return };
    let found = settled(&other);
    assert!(found.is_empty(), "{} of another length: {found:?}", gone.display());
    drop(lab);
}

/// A btrfs subvolume, whose files have a number of no mount.
fn subvolume(lab: &mut Lab) -> Option<PathBuf> {
    let disk = lab.path("btrfs");
    fs::File::create(&disk).unwrap().set_len(256 << 20).unwrap();
    run("mkfs.btrfs", &["-q".as_ref(), &disk])?;
    let device = lab.attach(&disk)?;
    let point = lab.mounted(&device, "top")?;
    let sub = point.join("sub");
    run("btrfs", &["subvolume".as_ref(), "create".as_ref(), &sub])?;
    Some(sub)
}

#[test]
fn loop_devices_over_files_of_subvolumes_and_in_memory_are_over_those_only() {
    if !is_root() {
        return;
    }
    for kind in ["btrfs", "tmpfs"] {
        let mut lab = Lab::new(kind);
        let overlay = Overlay::new(&lab);
        let place = match kind {
            "btrfs" => subvolume(&mut lab),
            _ => overlay.as_ref().map(|one| one.base.clone()),
        };
        let Some(place) = place else { continue };
        files(&place, &["one", "two", "three"]);
        let Some(_) = reader(&mut lab, &place.join("one")) else { return };
        let Some(device) = lab.attach(&place.join("three")) else { return };
        let check = |how: &str| {
            let found = settled(&place.join("two"));
            assert!(found.is_empty(), "{kind}, {how}: {found:?}");
            let found = settled(&device);
            assert!(found.is_empty(), "{kind}, {how}, a device: {found:?}");
        };
        check("named");
        fs::rename(place.join("one"), place.join("four")).unwrap();
        check("renamed");
        let found = reasons(&place.join("four"));
        assert!(is_loop_file(&found), "{kind}: {found:?}");
        fs::remove_file(place.join("four")).unwrap();
        check("removed");
        drop(lab);
    }
}

/// A file without data that became part of a lower layer has a number and a moment of its own.
#[test]
fn a_lower_file_is_used_through_a_lower_file_without_data() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("lower-metacopy");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    files(&overlay.at("l"), &["mapped", "image", "other"]);
    fs::write(overlay.at("l/longer"), vec![7; 2 << 20]).unwrap();
    fs::create_dir_all(overlay.at("first")).unwrap();
    let first = overlay.at("first");
    let script = "mount -t overlay none -o \
                  lowerdir=$0/l,upperdir=$0/u,workdir=$0/w,metacopy=on,redirect_dir=on $0/first";
    if run("sh", &["-c".as_ref(), script.as_ref(), &overlay.base]).is_none() {
        return;
    }
    fs::create_dir(first.join("q")).unwrap();
    for name in ["mapped", "image"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(first.join(name), mode).unwrap();
        fs::rename(first.join(name), first.join("q").join(name)).unwrap();
    }
    run("umount", &[&first]).unwrap();
    for layers in ["$0/u::$0/l", "$0/u:$0/l"] {
        let script = format!(
            "mount -t overlay none -o lowerdir={layers},metacopy=on,redirect_dir=follow $0/m"
        );
        if run("sh", &["-c".as_ref(), script.as_ref(), &overlay.base]).is_none() {
            continue;
        }
        let merged = overlay.at("m");
        overlay.undo.later("umount", &["-l".as_ref(), &merged]);
        let Ok(data) = fs::read(merged.join("q/image")) else {
            println!("skipped: {layers} does not follow");
            continue;
        };
        assert_eq!(data.len(), 1 << 20);
        let Some(one) = mapper(&merged.join("q/mapped")) else { return };
        let found = reasons(&overlay.at("l/mapped"));
        assert!(is_mapped(&found) || is_unchecked(&found), "{layers}: {found:?}");
        drop(one);
        let Some(_two) = reader(&mut lab, &merged.join("q/image")) else { return };
        let found = reasons(&overlay.at("l/image"));
        assert!(is_loop_file(&found) || is_unchecked(&found), "{layers}: {found:?}");
        let found = settled(&overlay.at("l/longer"));
        assert!(found.is_empty(), "{layers}: of another length: {found:?}");
    }
    drop(lab);
}

/// Each file system counts from 1.
#[test]
fn a_file_elsewhere_with_the_number_of_what_is_mapped_in_an_overlay_is_another() {
    use std::os::unix::fs::MetadataExt;
    if !is_root() {
        return;
    }
    let lab = Lab::new("same-number");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    let base = lab.path("elsewhere");
    fs::create_dir(&base).unwrap();
    if run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), &base]).is_none() {
        return;
    }
    overlay.undo.later("umount", &["-l".as_ref(), &base]);
    ["l", "u", "w", "m"].iter().for_each(|name| fs::create_dir(base.join(name)).unwrap());
    files(&overlay.at("l"), &["mapped"]);
    files(&base, &["other"]);
    if mount_with(&mut overlay, "metacopy=on,redirect_dir=on").is_none() {
        return;
    }
    let number = |path: &Path| fs::metadata(path).unwrap().ino();
    if number(&overlay.at("l/mapped")) != number(&base.join("other")) {
        return println!("skipped: other numbers");
    }
    let Some(_one) = mapper(&overlay.at("m/mapped")) else { return };
    assert!(is_mapped(&reasons(&overlay.at("l/mapped"))));
    let found = settled(&base.join("other"));
    assert!(found.is_empty(), "{found:?}");
    drop(lab);
}

#[test]
fn who_has_a_lease_of_what_an_overlay_shows_is_named_for_the_files_below() {
    if !is_root() {
        return;
    }
    let lab = Lab::new("lease-above");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    files(&overlay.at("l"), &["low"]);
    files(&overlay.at("u"), &["up"]);
    if overlay.mount().is_none() {
        return;
    }
    for (shown, below, kind) in
        [("m/up", "u/up", "F_WRLCK"), ("m/up", "u/up", "F_RDLCK"), ("m/low", "l/low", "F_RDLCK")]
    {
        let Some(holder) = leaser(&overlay.at(shown), kind) else { return };
        let found = reasons(&overlay.at(below));
        assert!(is_leased(&found, &holder), "{below}, {kind}: {found:?}");
    }
    drop(lab);
}
