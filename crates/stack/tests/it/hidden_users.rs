//! Users that one look does not show: threads with tables of their own, layers of overlays, loop devices
//! over what overlays show, images mounted as files, and processes that may not be looked into.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use stack::{
    Access, Consent, Host, Own, RefusalReason, decide, gather, inspect, targets_that_share_bytes,
};

use crate::same_bytes::{
    Elsewhere, Lab, Undo, is_held, is_mapped, is_root, is_written, python, reasons, run, settled,
};

pub fn is_unchecked(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| matches!(reason, RefusalReason::Unchecked { .. }))
}

pub fn is_loop_file(found: &[RefusalReason]) -> bool {
    found.iter().any(|reason| matches!(reason, RefusalReason::LoopFile { .. }))
}

/// Does it without some rights, which are those of a thread.
fn without<T: Send>(rights: CapabilitySet, what: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut mine = capabilities(None).unwrap();
            mine.effective -= rights;
            mine.permitted -= rights;
            set_capabilities(None, mine).unwrap();
            what()
        });
        thread.join().unwrap()
    })
}

const MAY_LOOK: CapabilitySet = CapabilitySet::SYS_PTRACE;

#[test]
fn processes_that_may_not_be_looked_into_are_not_taken_for_free() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("blind");
    let disk = lab.disk("disk");
    let Some(device) = lab.attach(&disk) else { return };
    assert!(settled(&device).is_empty(), "{:?}", settled(&device));
    // Somebody with all rights, who may not be looked into without them.
    let _other = Command::new("sleep").arg("600").spawn().map(Elsewhere).unwrap();
    let found = without(MAY_LOOK, || reasons(&device));
    assert!(is_unchecked(&found), "a device has no leases: {found:?}");
    let said = found.iter().map(ToString::to_string).collect::<String>();
    assert!(said.contains("could not be examined"), "{said}");
    // Of our own file the kernel knows the writers.
    let file = lab.scratch.file("file", &[7; 4096]);
    assert!(settled(&file).is_empty());
    let rights = MAY_LOOK | CapabilitySet::LEASE;
    let found = without(rights, || settled(&file));
    assert!(found.is_empty(), "{found:?}");
    // Unless it may not be read, which its owner can change.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o200)).unwrap();
    let rights = rights | CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    let found = without(rights, || reasons(&file));
    let hint = found.iter().find(|_| is_unchecked(&found)).and_then(RefusalReason::hint);
    assert!(hint.is_some_and(|hint| hint.contains("chmod u+r")), "{found:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    // Of another user's it does not say.
    std::os::unix::fs::chown(&file, Some(65534), None).unwrap();
    assert!(is_unchecked(&without(rights, || reasons(&file))));
    assert!(without(CapabilitySet::LEASE, || settled(&file)).is_empty(), "all can be seen");
    // And a new file is nobody's.
    assert!(without(rights, || reasons(&lab.path("new"))).is_empty());
}

/// Ends the first thread of a process, while another goes on, and says `ready`.
const FIRST_THREAD_ENDS: &str = "
def go():
    while open('/proc/%d/stat' % os.getpid()).read().rsplit(')',1)[1].split()[0] != 'Z':
        time.sleep(0.01)
    print('ready', flush=True)
    time.sleep(600)
threading.Thread(target=go).start()
import platform
number = {'x86_64': 60, 'aarch64': 93}.get(platform.machine())
if number is None:
    print('no number of exit(2)', flush=True)
    os._exit(0)
ctypes.CDLL(None).syscall(number, 0)
";
pub const IMPORTS: &str = "import ctypes,mmap,os,sys,threading,time\n";

fn first_thread_ends(open: &str, path: &Path) -> Option<Elsewhere> {
    python(&format!("{IMPORTS}{open}\n{FIRST_THREAD_ENDS}"), &[path])
}

#[test]
fn a_process_whose_first_thread_has_ended_still_has_its_files() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("first-thread");
    let disk = lab.disk("disk");
    let Some(device) = lab.attach(&disk) else { return };
    for path in [&device, &disk] {
        let Some(holder) = first_thread_ends("f=os.open(sys.argv[1],os.O_RDWR)", path) else {
            return;
        };
        let found = reasons(&device);
        assert!(is_written(&found), "{} is open: {found:?}", path.display());
        drop(holder);
    }
    let file = lab.scratch.file("file", &[7; 8192]);
    let open = "f=os.open(sys.argv[1],os.O_RDONLY)\n\
                m=mmap.mmap(f,4096,mmap.MAP_PRIVATE,mmap.PROT_READ)\nos.close(f)";
    for path in [&device, &disk, &file] {
        let target = if path == &disk { &device } else { path };
        let Some(holder) = first_thread_ends(open, path) else { return };
        let found = reasons(target);
        assert!(is_mapped(&found), "{} is mapped: {found:?}", path.display());
        drop(holder);
        assert!(settled(target).is_empty());
    }
}

#[test]
fn a_thread_may_have_a_table_of_its_own() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("own-table");
    let disk = lab.disk("disk");
    let Some(device) = lab.attach(&disk) else { return };
    let script = format!(
        "{IMPORTS}def go():\n    if ctypes.CDLL(None).unshare(0x400):\n        \
         print('no unshare', flush=True)\n        os._exit(0)\n    \
         f=os.open(sys.argv[1],os.O_RDWR)\n    print('ready', flush=True)\n    time.sleep(600)\n\
         for _ in range(3):\n    threading.Thread(target=time.sleep, args=(600,)).start()\n\
         threading.Thread(target=go).start()\ntime.sleep(600)"
    );
    for path in [&device, &disk] {
        let Some(holder) = python(&script, &[path]) else { return };
        let found = reasons(&device);
        assert!(is_written(&found), "{}: {found:?}", path.display());
        drop(holder);
    }
    assert!(settled(&device).is_empty());
}

#[test]
fn a_private_map_of_a_device_is_a_use_of_it() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("private-map");
    let disk = lab.disk("disk");
    let Some(device) = lab.attach(&disk) else { return };
    let node = lab.path("node");
    let number = fs::metadata(&device).unwrap().rdev();
    let may = Mode::RUSR | Mode::WUSR;
    if rustix::fs::mknodat(CWD, &node, FileType::BlockDevice, may, number).is_err() {
        return println!("skipped: no mknod");
    }
    let script = format!(
        "{IMPORTS}f=os.open(sys.argv[1],os.O_RDONLY)\n\
         m=mmap.mmap(f,4096,mmap.MAP_PRIVATE,mmap.PROT_READ)\nos.close(f)\n\
         print('ready',flush=True)\ntime.sleep(600)"
    );
    for path in [&device, &node] {
        let Some(holder) = python(&script, &[path]) else { return };
        let found = reasons(&device);
        assert!(is_mapped(&found), "{}: {found:?}", path.display());
        drop(holder);
    }
    assert!(settled(&device).is_empty());
}

/// An overlay `m` over `l` and `u`, in a file system of its own: an upper directory must not be on
/// an overlay itself.
pub struct Overlay {
    pub undo: Undo,
    pub base: PathBuf,
}

impl Overlay {
    pub fn new(lab: &Lab) -> Option<Self> {
        let mut undo = Undo::default();
        let base = lab.path("base");
        fs::create_dir(&base).unwrap();
        run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "none".as_ref(), &base])?;
        undo.later("umount", &["-l".as_ref(), &base]);
        for name in ["l", "u", "w", "m"] {
            fs::create_dir(base.join(name)).unwrap();
        }
        Some(Self { undo, base })
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    pub fn mount(&mut self) -> Option<()> {
        let at = |name: &str| self.at(name).display().to_string();
        let options = format!("lowerdir={},upperdir={},workdir={}", at("l"), at("u"), at("w"));
        let merged = self.at("m");
        let words =
            ["-t", "overlay", "none", "-o", &options, merged.to_str().unwrap()].map(Path::new);
        run("mount", &words)?;
        self.undo.later("umount", &["-l".as_ref(), &merged]);
        Some(())
    }
}

#[test]
fn what_runs_or_is_mapped_through_an_overlay_is_in_its_lower_directory() {
    if !is_root() {
        return;
    }
    let lab = Lab::new("lower");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    fs::create_dir(overlay.at("l/d")).unwrap();
    fs::copy("/bin/sleep", overlay.at("l/d/program")).unwrap();
    for how in ["MAP_SHARED", "MAP_PRIVATE", "written"] {
        fs::write(overlay.at("l/d").join(how), vec![7; 8192]).unwrap();
    }
    if overlay.mount().is_none() {
        return;
    }
    let program = overlay.at("l/d/program");
    assert!(settled(&program).is_empty(), "{:?}", settled(&program));
    let Ok(running) = Command::new(overlay.at("m/d/program")).arg("600").spawn() else { return };
    let running = Elsewhere(running);
    // `spawn` returns before the kernel has mapped the program.
    let found = (0..500).map(|_| reasons(&program)).find(|found| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_mapped(found)
    });
    assert!(found.is_some(), "it runs through the overlay: {:?}", reasons(&program));
    drop(running);
    for how in ["MAP_SHARED", "MAP_PRIVATE"] {
        let (data, shown) = (overlay.at("l/d").join(how), overlay.at("m/d").join(how));
        let script = format!(
            "{IMPORTS}f=os.open(sys.argv[1],os.O_RDONLY)\n\
             m=mmap.mmap(f,4096,mmap.{how},mmap.PROT_READ)\nos.close(f)\n\
             print('ready',flush=True)\ntime.sleep(600)"
        );
        let Some(mapper) = python(&script, &[&shown]) else { return };
        let found = reasons(&data);
        assert!(is_mapped(&found), "{how}: {found:?}");
        // Somebody wrote to it: what is mapped is still the lower file.
        fs::OpenOptions::new().append(true).open(&shown).unwrap();
        assert!(overlay.at("u/d").join(how).exists(), "it was copied");
        let found = reasons(&data);
        assert!(is_mapped(&found), "{how}, copied meanwhile: {found:?}");
        drop(mapper);
        assert!(settled(&data).is_empty());
    }
    // A writer of the copy is none of the file below.
    let script = format!(
        "{IMPORTS}f=os.open(sys.argv[1],os.O_RDWR)\nprint('ready',flush=True)\ntime.sleep(600)"
    );
    let _writer = python(&script, &[&overlay.at("m/d/written")]);
    assert!(settled(&overlay.at("l/d/written")).is_empty());
}

#[test]
fn a_map_through_an_overlay_that_is_mounted_no_more_is_seen() {
    if !is_root() {
        return;
    }
    let lab = Lab::new("lazily");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    fs::write(overlay.at("u/data"), vec![7; 8192]).unwrap();
    // Files made at the same moment cannot be told from each other.
    std::thread::sleep(std::time::Duration::from_millis(50));
    fs::write(overlay.at("u/other"), vec![7; 8192]).unwrap();
    if overlay.mount().is_none() {
        return;
    }
    let script = format!(
        "{IMPORTS}f=os.open(sys.argv[1],os.O_RDONLY)\n\
         m=mmap.mmap(f,4096,mmap.MAP_SHARED,mmap.PROT_READ)\nos.close(f)\n\
         print('ready',flush=True)\ntime.sleep(600)"
    );
    let Some(_mapper) = python(&script, &[&overlay.at("m/data")]) else { return };
    if run("umount", &["-l".as_ref(), &overlay.at("m")]).is_none() {
        return;
    }
    let found = reasons(&overlay.at("u/data"));
    assert!(is_mapped(&found), "{found:?}");
    let found = settled(&overlay.at("u/other"));
    assert!(found.is_empty(), "another file: {found:?}");
}

#[test]
fn loop_devices_over_one_file_of_an_overlay_are_one_device() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("overlay-loops");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    for name in ["u/image", "u/another"] {
        fs::File::create(overlay.at(name)).unwrap().set_len(32 << 20).unwrap();
    }
    if overlay.mount().is_none() {
        return;
    }
    let (shown, upper) = (overlay.at("m/image"), overlay.at("u/image"));
    let host = Host::this();
    let share = |one: &Path, other: &Path| {
        let both = [one, other].map(|path| inspect(&host, path).unwrap());
        let found = targets_that_share_bytes(&host, &both);
        assert!(found.is_none_or(|pair| pair == (0, 1)));
        found.is_some()
    };
    assert!(share(&shown, &upper), "two names of one file");
    assert!(!share(&shown, &overlay.at("u/another")));
    // So are two names of a file that is to be made.
    assert!(share(&overlay.at("m/new"), &overlay.at("u/new")));
    assert!(!share(&overlay.at("m/new"), &overlay.at("u/newer")));
    assert!(!share(&overlay.at("m/new"), &overlay.at("l/new")));
    let Some(over_shown) = lab.attach(&shown) else { return };
    assert!(is_loop_file(&reasons(&upper)), "{:?}", reasons(&upper));
    let Some(over_upper) = lab.attach(&upper) else { return };
    let Some(apart) = lab.attach(&overlay.at("m/another")) else { return };
    assert!(share(&over_shown, &over_upper));
    assert!(share(&over_shown, &upper));
    assert!(!share(&over_shown, &apart));
    let script = format!(
        "{IMPORTS}f=os.open(sys.argv[1],os.O_RDWR)\nprint('ready',flush=True)\ntime.sleep(600)"
    );
    for (target, open) in [(&over_shown, &upper), (&over_upper, &shown)] {
        let Some(writer) = python(&script, &[open]) else { return };
        let found = reasons(target);
        assert!(is_written(&found), "{} is open: {found:?}", open.display());
        drop(writer);
    }
    if run("mkfs.ext4", &["-q".as_ref(), &over_upper]).is_none() {
        return;
    }
    let Some(_) = lab.mounted(&over_upper, "mnt") else { return };
    assert!(is_held(&reasons(&over_shown)), "its twin is mounted");
    assert!(!is_held(&settled(&apart)));
    // Ends before the overlay does.
    drop(lab);
}

#[test]
fn a_read_only_loop_device_over_what_an_overlay_shows_is_over_the_lower_file() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("lower-loop");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    let lower = overlay.at("l/image");
    fs::File::create(&lower).unwrap().set_len(32 << 20).unwrap();
    if overlay.mount().is_none() {
        return;
    }
    let shown = overlay.at("m/image");
    let words: [&Path; 4] = ["--read-only".as_ref(), "--find".as_ref(), "--show".as_ref(), &shown];
    let Some(device) = run("losetup", &words).map(PathBuf::from) else { return };
    lab.undo.later("losetup", &["-d".as_ref(), &device]);
    assert!(is_loop_file(&reasons(&lower)), "{:?}", reasons(&lower));
    // Copied to the upper directory since: the device still has the lower file.
    drop(fs::OpenOptions::new().append(true).open(&shown).unwrap());
    assert!(overlay.at("u/image").exists());
    assert!(is_loop_file(&reasons(&lower)), "{:?}", reasons(&lower));
    drop(lab);
}

#[test]
fn the_kernel_is_asked_of_the_upper_file_too() {
    if !is_root() {
        return;
    }
    let lab = Lab::new("upper-lease");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    fs::write(overlay.at("u/file"), vec![7; 8192]).unwrap();
    if overlay.mount().is_none() {
        return;
    }
    let shown = overlay.at("m/file");
    if kernel::has_writer(&fs::File::open(&shown).unwrap()).is_err() {
        return println!("skipped: no leases on overlays");
    }
    assert!(settled(&shown).is_empty());
    // An open file that is in no process's table: under way between two sockets.
    let script = format!(
        "{IMPORTS}import socket,array\n\
         a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_STREAM)\n\
         f=os.open(sys.argv[1],os.O_RDWR)\n\
         a.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[f]))])\n\
         os.close(f)\nprint('ready',flush=True)\ntime.sleep(600)"
    );
    let Some(_holder) = python(&script, &[&overlay.at("u/file")]) else { return };
    assert!(is_written(&reasons(&shown)), "{:?}", reasons(&shown));
}

/// The smallest image of an erofs: an empty root directory.
fn erofs(path: &Path) {
    let mut image = vec![0; 8192];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    // The superblock: magic, size of blocks (2^12), root's number, inodes, blocks, first block of inodes.
    put(1024, &0xE0F5_E1E2_u32.to_le_bytes());
    put(1024 + 12, &[12]);
    put(1024 + 14, &0_u16.to_le_bytes());
    put(1024 + 16, &1_u64.to_le_bytes());
    put(1024 + 36, &2_u32.to_le_bytes());
    put(1024 + 40, &1_u32.to_le_bytes());
    // The root: a compact inode whose data are beside it; directory, two links, empty.
    put(4096, &4_u16.to_le_bytes());
    put(4096 + 4, &0o040_755_u16.to_le_bytes());
    put(4096 + 6, &2_u16.to_le_bytes());
    fs::write(path, image).unwrap();
}

#[test]
fn an_image_that_is_mounted_without_a_loop_device_is_mounted() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("image");
    let image = lab.path("image");
    erofs(&image);
    let link = lab.path("link");
    std::os::unix::fs::symlink(&image, &link).unwrap();
    fs::create_dir(lab.path("mnt")).unwrap();
    let point = lab.path("mnt");
    // mount(8) would set up a loop device.
    let script = "import ctypes,os,sys\ncode=lambda at: os.fsencode(sys.argv[at])\n\
                  sys.exit(ctypes.CDLL(None).mount(code(1), code(2), b'erofs', 1, None) != 0)";
    if run("python3", &["-c".as_ref(), script.as_ref(), &link, &point]).is_none() {
        return;
    }
    lab.undo.later("umount", &[&point]);
    let found = reasons(&image);
    assert!(is_held(&found), "{found:?}");
    let Some(device) = lab.attach(&image) else { return };
    let found = reasons(&device);
    assert!(is_held(&found), "the device over it: {found:?}");
}

/// A process with a lease of a file: one that keeps the default action of `SIGIO`, which ends it.
pub fn leaser(path: &Path, kind: &str) -> Option<Elsewhere> {
    let open = if kind == "F_RDLCK" { "O_RDONLY" } else { "O_RDWR" };
    let script = format!(
        "{IMPORTS}import fcntl\nf=os.open(sys.argv[1],os.{open})\n\
         fcntl.fcntl(f,fcntl.F_SETLEASE,fcntl.{kind})\nprint('ready',flush=True)\ntime.sleep(600)"
    );
    python(&script, &[path])
}

pub fn is_leased(found: &[RefusalReason], by: &Elsewhere) -> bool {
    let who = format!("(pid {})", by.0.id());
    found.iter().any(|one| matches!(one, RefusalReason::Leased { by, .. } if by.contains(&who)))
}

#[test]
fn who_has_a_lease_of_a_file_is_found_and_not_ended() {
    if !is_root() {
        return;
    }
    let lab = Lab::new("leases");
    let Some(mut overlay) = Overlay::new(&lab) else { return };
    fs::write(overlay.at("u/file"), vec![7; 8192]).unwrap();
    if overlay.mount().is_none() {
        return;
    }
    let file = lab.scratch.file("file", &[7; 8192]);
    let (shown, upper) = (overlay.at("m/file"), overlay.at("u/file"));
    for kind in ["F_RDLCK", "F_WRLCK"] {
        for (target, leased) in
            [(&file, &file), (&upper, &upper), (&shown, &upper), (&shown, &shown)]
        {
            let Some(mut holder) = leaser(leased, kind) else { continue };
            let found = reasons(target);
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(holder.0.try_wait().unwrap(), None, "{kind}, {leased:?}: it was ended");
            assert!(is_leased(&found, &holder), "{kind}, {target:?} {leased:?}: {found:?}");
            // A reader ends the lease of a writer only.
            let host = Host::this();
            let facts = inspect(&host, target).map(|target| {
                gather(&host, &target, Access::Read, &Consent::default(), &Own::default())
            });
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(holder.0.try_wait().unwrap(), None, "{kind}, {leased:?}: ended by a reader");
            assert_eq!(decide(&facts.unwrap()).is_err(), kind == "F_WRLCK", "{leased:?}");
            drop(holder);
            assert!(settled(target).is_empty(), "{kind}, {target:?}");
        }
    }
}
