//! Names that stand for something else between the check and the first write: what was not judged
//! is not written, whatever is exchanged for what.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use runner::{Event, Interrupt, Order, RunError, prepare};
use rustix::fs::{CWD, RenameFlags};

use crate::help::{Place, go, order};

const SMALL: [&str; 2] = ["file_size=1MiB", "operations=64"];
static PRECIOUS: [u8; 1 << 20] = [0x5a; 1 << 20];

fn precious(path: &Path) {
    fs::write(path, PRECIOUS).unwrap();
}

fn is_untouched(path: &Path) -> bool {
    let has_mark = rustix::fs::getxattr(path, stack::MARK_NAME, &mut [0; 256]).is_ok();
    fs::read(path).unwrap() == PRECIOUS && !has_mark
}

/// A file that a run made; false (with the reason printed) where there are no marks.
fn ours(place: &Place, path: &Path) -> bool {
    go(place, &order(place, "random-write", path.to_str().unwrap(), &SMALL)).unwrap();
    let known = stack::mark_of(path) == stack::Mark::Ours;
    if !known {
        println!("skipped: no extended attributes on {}", path.display());
    }
    known
}

/// A run at the beginning of which, after the check, something is done.
fn with_exchange(place: &Place, order: &Order, exchange: impl FnOnce()) -> Result<(), RunError> {
    let mut store = store::Store::open(&place.join("store.db"))?;
    let prepared = prepare(order)?;
    exchange();
    prepared.run(&mut store, &mut |_: Event<'_>| {}, &Interrupt::default()).map(drop)
}

fn write_to(place: &Place, path: &Path) -> Order {
    order(place, "random-write", path.to_str().unwrap(), &SMALL)
}

#[test]
fn another_file_that_got_the_name_is_not_written() {
    let place = Place::new("exchanged-file");
    let (target, foreign) = (place.join("t.dat"), place.join("foreign"));
    for how in ["rename", "symbolic link", "hard link", "link to it in /proc"] {
        if !ours(&place, &target) {
            return;
        }
        precious(&foreign);
        let kept = place.join("kept");
        fs::hard_link(&foreign, &kept).unwrap();
        let open = File::open(&foreign).unwrap();
        let error = with_exchange(&place, &write_to(&place, &target), || match how {
            "rename" => fs::rename(&foreign, &target).unwrap(),
            "hard link" => {
                fs::remove_file(&target).unwrap();
                fs::hard_link(&foreign, &target).unwrap();
            }
            "symbolic link" => {
                fs::remove_file(&target).unwrap();
                symlink(&foreign, &target).unwrap();
            }
            _ => {
                use std::os::fd::AsRawFd;
                fs::remove_file(&target).unwrap();
                symlink(format!("/proc/self/fd/{}", open.as_raw_fd()), &target).unwrap();
            }
        });
        let error = error.unwrap_err();
        assert!(matches!(error, RunError::Confirm(_)), "{how}: {error}");
        assert!(is_untouched(&kept), "{how}");
        for path in [&target, &foreign, &kept] {
            let _ = fs::remove_file(path);
        }
    }
}

#[test]
fn a_file_that_got_a_second_name_is_not_written() {
    let place = Place::new("exchanged-links");
    let target = place.join("t.dat");
    precious(&target);
    let mut order = write_to(&place, &target);
    order.settings.consent.overwrite = vec![target.clone()];
    let error = with_exchange(&place, &order, || {
        fs::hard_link(&target, place.join("second")).unwrap();
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Refused(_)), "{error}");
    assert!(error.to_string().contains("hard link"), "{error}");
    assert!(is_untouched(&target));
}

#[test]
fn a_file_of_ours_that_becomes_anothers_is_not_written() {
    let place = Place::new("exchanged-mark");
    let target = place.join("t.dat");
    if !ours(&place, &target) {
        return;
    }
    // As `cp` does it: the same inode and length, other data.
    let error = with_exchange(&place, &write_to(&place, &target), || precious_into(&target));
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Refused(_)), "{error}");
    assert_eq!(fs::read(&target).unwrap(), PRECIOUS);
}

fn precious_into(path: &Path) {
    use std::io::Write;
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    file.write_all(&PRECIOUS).unwrap();
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_that_another_opened_for_writing_meanwhile_is_not_written() {
    let place = Place::new("exchanged-writer");
    let target = place.join("t.dat");
    precious(&target);
    let mut order = write_to(&place, &target);
    order.settings.consent.overwrite = vec![target.clone()];
    let mut writer = None;
    let error = with_exchange(&place, &order, || {
        let file = OpenOptions::new().append(true).open(&target).unwrap();
        let child = Command::new("sleep").arg("60").stdout(Stdio::from(file)).spawn().unwrap();
        writer = Some(Process(child));
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Refused(_)), "{error}");
    assert!(error.to_string().contains("is in use by sleep"), "{error}");
    assert!(is_untouched(&target));
    drop(writer);
    go(&place, &order).unwrap();
}

/// What has nothing to do with the data is no reason to refuse.
#[test]
fn a_file_that_is_safe_is_written_whatever_was_done_to_its_attributes() {
    let place = Place::new("exchanged-safe");
    let target = place.join("t.dat");
    if !ours(&place, &target) {
        return;
    }
    with_exchange(&place, &write_to(&place, &target), || {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    })
    .unwrap();
    // And through a link, which is shown before.
    let link = place.join("link");
    symlink(&target, &link).unwrap();
    go(&place, &write_to(&place, &link)).unwrap();
}

#[test]
fn a_link_of_the_users_that_is_pointed_elsewhere_does_not_lead_there() {
    let place = Place::new("exchanged-link");
    let (target, foreign, link) = (place.join("t.dat"), place.join("foreign"), place.join("link"));
    if !ours(&place, &target) {
        return;
    }
    precious(&foreign);
    symlink(&target, &link).unwrap();
    with_exchange(&place, &write_to(&place, &link), || {
        fs::remove_file(&link).unwrap();
        symlink(&foreign, &link).unwrap();
    })
    .unwrap();
    assert!(is_untouched(&foreign));
}

#[test]
fn a_directory_on_the_way_that_is_exchanged_leads_nowhere_else() {
    let place = Place::new("exchanged-directory");
    let (inside, elsewhere) = (place.join("d"), place.join("elsewhere"));
    for how in ["new file", "existing file", "scratch file"] {
        for exchanged_for in ["a link", "a directory"] {
            fs::create_dir(&inside).unwrap();
            fs::create_dir(&elsewhere).unwrap();
            let (target, other) = (inside.join("t.dat"), elsewhere.join("t.dat"));
            if how == "existing file" {
                if !ours(&place, &target) {
                    return;
                }
                precious(&other);
            }
            let order = match how {
                "scratch file" => write_to(&place, &inside),
                _ => write_to(&place, &target),
            };
            let error = with_exchange(&place, &order, || {
                fs::rename(&inside, place.join("moved")).unwrap();
                match exchanged_for {
                    "a link" => symlink(&elsewhere, &inside).unwrap(),
                    _ => fs::rename(&elsewhere, &inside).unwrap(),
                }
            });
            let there = if exchanged_for == "a link" { &elsewhere } else { &inside };
            match how {
                "existing file" => assert!(is_untouched(&there.join("t.dat"))),
                _ => assert_eq!(fs::read_dir(there).unwrap().count(), 0, "{how}, {exchanged_for}"),
            }
            let error = error.unwrap_err();
            assert!(matches!(error, RunError::Confirm(_)), "{how}, {exchanged_for}: {error}");
            let _ = fs::remove_file(&inside);
            for path in [inside.clone(), elsewhere.clone(), place.join("moved")] {
                let _ = fs::remove_dir_all(path);
            }
        }
    }
}

/// Starts while another thread exchanges the target for somebody's file as fast as it can: what is
/// written is ours, or nothing is.
#[test]
fn a_race_is_never_won() {
    let place = Place::new("exchanged-race");
    let (target, foreign) = (place.join("t.dat"), place.join("foreign"));
    if !ours(&place, &target) {
        return;
    }
    precious(&foreign);
    let kept = File::open(&foreign).unwrap();
    let over = AtomicBool::new(false);
    let (mut taken, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ =
                    rustix::fs::renameat_with(CWD, &target, CWD, &foreign, RenameFlags::EXCHANGE);
            }
        });
        let late = Instant::now() + Duration::from_secs(4);
        for _ in 0..400 {
            if Instant::now() > late {
                break;
            }
            match with_exchange(&place, &write_to(&place, &target), || {}) {
                Ok(()) => taken += 1,
                Err(_) => refused += 1,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    println!("{taken} runs, {refused} refused");
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut &kept, &mut content).unwrap();
    assert!(content == PRECIOUS, "somebody's file was written");
    assert!(rustix::fs::fgetxattr(&kept, stack::MARK_NAME, &mut [0; 256]).is_err(), "and marked");
    assert!(taken + refused > 0);
}

/// A loop device that goes with the test.
struct Loop(PathBuf);

impl Loop {
    fn over(file: &Path) -> Option<Self> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let name = String::from_utf8(made.stdout).ok()?;
        if !made.status.success() {
            println!("skipped: no loop devices here");
            return None;
        }
        Some(Self(PathBuf::from(name.trim())))
    }

    /// A further node of the device.
    fn node(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let number = fs::metadata(&self.0).unwrap().rdev();
        let (kind, mode) =
            (rustix::fs::FileType::BlockDevice, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(CWD, path, kind, mode, number).is_ok()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).output();
    }
}

#[test]
fn a_device_node_that_is_exchanged_or_a_device_that_gets_content_is_not_written() {
    let place = Place::new("exchanged-device");
    let (blank, full) = (place.join("blank.img"), place.join("full.img"));
    fs::write(&blank, vec![0; 4 << 20]).unwrap();
    fs::write(&full, vec![0x5a; 4 << 20]).unwrap();
    let (Some(one), Some(other)) = (Loop::over(&blank), Loop::over(&full)) else { return };
    let node = place.join("node");
    if !one.node(&node) || File::open(&node).is_err() {
        println!("skipped: no device nodes here");
        return;
    }
    let mut order = write_to(&place, &node);
    order.settings.consent.destroy = vec![one.0.clone()];
    let error = with_exchange(&place, &order, || {
        fs::remove_file(&node).unwrap();
        assert!(other.node(&node));
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Confirm(_)), "{error}");
    assert!(fs::read(&full).unwrap() == vec![0x5a; 4 << 20]);

    fs::remove_file(&node).unwrap();
    assert!(one.node(&node));
    let error = with_exchange(&place, &order, || {
        let device = OpenOptions::new().write(true).open(&one.0).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&device, b"somebody's", 4096).unwrap();
        device.sync_all().unwrap();
    });
    let error = error.unwrap_err();
    assert!(matches!(error, RunError::Confirm(_)), "{error}");
    assert_eq!(&fs::read(&blank).unwrap()[4096..4106], b"somebody's");

    order.settings.consent.even_though_signature = true;
    go(&place, &order).unwrap();
}

/// A loop device over a file that is blank at both ends: what is in its middle nobody sees.
fn blank_at_its_ends(path: &Path) {
    let mut bytes = vec![0; 8 << 20];
    bytes[4 << 20..5 << 20].copy_from_slice(&PRECIOUS);
    fs::write(path, bytes).unwrap();
}

fn to_destroy(place: &Place, device: &Path) -> Order {
    let mut order = write_to(place, device);
    order.settings.consent.destroy = vec![device.to_owned()];
    order.settings.consent.even_though_signature = true;
    order
}

/// The number of a device is that of another file within a moment.
#[test]
fn a_loop_device_that_is_over_another_file_by_now_is_not_written() {
    let place = Place::new("exchanged-backing");
    let (first, second) = (place.join("first.img"), place.join("second.img"));
    fs::write(&first, vec![0; 8 << 20]).unwrap();
    blank_at_its_ends(&second);
    let before = fs::read(&second).unwrap();
    let Some(device) = Loop::over(&first) else { return };
    for trial in 0..5 {
        let run = |words: &[&str], file: Option<&Path>| {
            Command::new("losetup").args(words).arg(&device.0).args(file).status().unwrap()
        };
        let mut done = false;
        let ended = with_exchange(&place, &to_destroy(&place, &device.0), || {
            // Whoever looks at all loop devices has it open for a moment.
            done = (0..20).any(|_| {
                let _ = run(&["-d"], None);
                std::thread::sleep(Duration::from_millis(20));
                run(&[], Some(&second)).success()
            });
        });
        assert!(done, "trial {trial}: it could not be attached anew");
        let error = ended.unwrap_err();
        assert!(matches!(error, RunError::Confirm(_)), "trial {trial}: {error}");
        assert!(fs::read(&second).unwrap() == before, "trial {trial}");
        let _ = run(&["-d"], None);
        std::thread::sleep(Duration::from_millis(20));
        assert!(run(&[], Some(&first)).success());
    }
}

#[test]
fn a_device_that_another_opened_for_writing_meanwhile_is_not_written() {
    let place = Place::new("exchanged-opened");
    let image = place.join("image");
    fs::write(&image, vec![0; 8 << 20]).unwrap();
    let Some(device) = Loop::over(&image) else { return };
    let twin = Loop::over(&image).unwrap();
    for opened in [&device.0, &twin.0] {
        let mut writer = None;
        let error = with_exchange(&place, &to_destroy(&place, &device.0), || {
            let file = OpenOptions::new().read(true).write(true).open(opened).unwrap();
            let child = Command::new("sleep").arg("60").stdout(Stdio::from(file)).spawn().unwrap();
            writer = Some(Process(child));
        });
        let error = error.unwrap_err();
        assert!(matches!(error, RunError::Refused(_)), "{error}");
        assert!(error.to_string().contains("is in use by sleep"), "{error}");
        drop(writer);
    }
    go(&place, &to_destroy(&place, &device.0)).unwrap();
}

#[test]
fn a_device_or_a_twin_that_another_claimed_meanwhile_is_not_written() {
    let place = Place::new("exchanged-claimed");
    let image = place.join("image");
    fs::write(&image, vec![0; 8 << 20]).unwrap();
    let Some(device) = Loop::over(&image) else { return };
    let twin = Loop::over(&image).unwrap();
    for claimed in [&device.0, &twin.0] {
        let mut claim = None;
        let error = with_exchange(&place, &to_destroy(&place, &device.0), || {
            use std::os::unix::fs::OpenOptionsExt;
            let flags = rustix::fs::OFlags::EXCL.bits().cast_signed();
            let file = OpenOptions::new().read(true).custom_flags(flags).open(claimed).unwrap();
            let child = Command::new("sleep").arg("60").stdin(Stdio::from(file)).spawn().unwrap();
            claim = Some(Process(child));
        });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), runner::ErrorKind::Refused, "{error}");
        let who = format!("sleep (pid {})", claim.as_ref().unwrap().0.id());
        assert!(error.to_string().contains(&who), "{error}");
        drop(claim);
    }
    go(&place, &to_destroy(&place, &device.0)).unwrap();
}
