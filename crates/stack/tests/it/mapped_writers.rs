//! Processes that have mapped a file for writing, through overlays with `metacopy=on` and beside them, and
//! have it no longer open: what they write arrives in the file, so nobody else may write it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::hidden_users::{IMPORTS, Overlay};
use crate::same_bytes::{Elsewhere, Lab, is_mapped, is_root, python, reasons, run, settled};

const MARK: &[u8] = b"was mapped";

/// A process that has a file mapped for writing, and has it no longer open. What it wrote is there.
fn mapper(path: &Path) -> Option<Elsewhere> {
    // Python's own maps keep a descriptor.
    let script = format!(
        "{IMPORTS}f=os.open(sys.argv[1],os.O_RDWR)\n\
         map=ctypes.CDLL(None).mmap\nmap.restype=ctypes.c_void_p\n\
         map.argtypes=[ctypes.c_void_p,ctypes.c_size_t]+3*[ctypes.c_int]+[ctypes.c_long]\n\
         at=map(None,4096,mmap.PROT_READ|mmap.PROT_WRITE,mmap.MAP_SHARED,f,0)\nos.close(f)\n\
         ctypes.memmove(at,b'{}',{})\nprint('ready',flush=True)\ntime.sleep(600)",
        String::from_utf8_lossy(MARK),
        MARK.len(),
    );
    python(&script, &[path])
}

fn has_mark(path: &Path) -> bool {
    let mut seen = vec![0; MARK.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut seen)).is_ok() && seen == MARK
}

/// What happened to the file or its overlay before it was mapped.
const BEFORE: [&str; 4] = ["nothing", "chmod", "chmod and rename", "rename of its directory"];
/// And since.
const SINCE: [&str; 6] = [
    "nothing",
    "rename",
    "rename of its directory",
    "other names of the layers",
    "unmounted",
    "removed in the overlay",
];

/// A file of an overlay, under the name that it has now.
struct Shown {
    directory: &'static str,
    name: &'static str,
}

impl Shown {
    fn path(&self) -> PathBuf {
        Path::new(self.directory).join(self.name)
    }

    fn rename(&mut self, overlay: &Overlay, name: &'static str) {
        let before = overlay.at("m").join(self.path());
        self.name = name;
        fs::rename(before, overlay.at("m").join(self.path())).unwrap();
    }

    fn rename_directory(&mut self, overlay: &Overlay, name: &'static str) {
        let place = overlay.at("m");
        fs::rename(place.join(self.directory), place.join(name)).unwrap();
        self.directory = name;
    }
}

fn mount(overlay: &mut Overlay, options: &str) -> Option<()> {
    let script = "mount -t overlay none -o lowerdir=$0/l,upperdir=$0/u,workdir=$0/w,$1 $0/m";
    run("sh", &["-c".as_ref(), script.as_ref(), &overlay.base, options.as_ref()])?;
    let merged = overlay.at("m");
    overlay.undo.later("umount", &["-l".as_ref(), &merged]);
    Some(())
}

fn before(what: &str, overlay: &Overlay, shown: &mut Shown) {
    if what.starts_with("chmod") {
        let path = overlay.at("m").join(shown.path());
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    match what {
        "chmod and rename" => shown.rename(overlay, "renamed"),
        "rename of its directory" => shown.rename_directory(overlay, "e"),
        _ => {}
    }
}

/// Says where the layers are by now.
fn since(what: &str, overlay: &Overlay, shown: &mut Shown) -> [PathBuf; 2] {
    let mut layers = [overlay.at("u"), overlay.at("l")];
    match what {
        "rename" => shown.rename(overlay, "new"),
        "rename of its directory" => shown.rename_directory(overlay, "f"),
        "other names of the layers" => {
            for layer in &mut layers {
                let now = layer.with_extension("was");
                fs::rename(&layer, &now).unwrap();
                *layer = now;
            }
        }
        "unmounted" => {
            run("umount", &["-l".as_ref(), &overlay.at("m")]).unwrap();
        }
        "removed in the overlay" => {
            fs::hard_link(
                overlay.at("u").join(shown.path()),
                overlay.at("u").join(shown.directory).join("kept"),
            )
            .unwrap();
            fs::remove_file(overlay.at("m").join(shown.path())).unwrap();
            shown.name = "kept";
        }
        _ => {}
    }
    layers
}

fn all_below(place: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(all_below(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

fn set_up(lab: &Lab) -> Option<Overlay> {
    let overlay = Overlay::new(lab)?;
    fs::create_dir(overlay.at("l/d")).unwrap();
    for name in ["file", "other"] {
        fs::write(overlay.at("l/d").join(name), vec![7; 1 << 20]).unwrap();
        std::thread::sleep(Duration::from_millis(15));
    }
    Some(overlay)
}

/// Judges all names of what is mapped, and the loop devices over them. Says which pass for unused.
///
/// * `through`: the directory in which the file is mapped.
fn missed(options: &str, [first, then]: [&str; 2], through: &str) -> Option<Vec<String>> {
    let mut lab = Lab::new("map-write");
    let mut overlay = set_up(&lab)?;
    mount(&mut overlay, options)?;
    let mut shown = Shown { directory: "d", name: "file" };
    before(first, &overlay, &mut shown);
    if through == "u" {
        // It has no data, or is not there, until somebody writes.
        let path = overlay.at("m").join(shown.path());
        drop(fs::OpenOptions::new().append(true).open(path).unwrap());
    }
    let open = match through {
        "l" => overlay.at("l/d/file"),
        place => overlay.at(place).join(shown.path()),
    };
    let _mapper = mapper(&open)?;
    let [upper, lower] = since(then, &overlay, &mut shown);
    // Who writes to what is shown of a lower file has a copy of it.
    let places = match through {
        "l" => vec![lower.clone()],
        _ => vec![upper, overlay.at("m")],
    };
    let mut found = Vec::new();
    let mut marked = 0;
    for path in places.iter().flat_map(|place| all_below(place)).filter(|path| has_mark(path)) {
        marked += 1;
        let what = format!(
            "{options}: {first}, mapped in {through}, {then}: {}",
            path.strip_prefix(&overlay.base).unwrap().display()
        );
        // A lease shows writers of files; devices have none.
        let seen = reasons(&path);
        if !is_mapped(&seen) {
            found.push(format!("{what}: {seen:?}"));
        }
        let device = lab.attach(&path)?;
        let seen = reasons(&device);
        if !is_mapped(&seen) {
            found.push(format!("{what}, a loop device over it: {seen:?}"));
        }
        lab.detach(&device);
    }
    assert!(marked > 0, "{options}: {first}, {through}, {then}: the mark is nowhere");
    let found_other = settled(&lower.join("d/other"));
    assert!(found_other.is_empty(), "{first}, {through}, {then}: unused: {found_other:?}");
    drop(lab);
    Some(found)
}

const OPTIONS: &str = "metacopy=on,redirect_dir=on";

fn check(all: impl Iterator<Item = (&'static str, [&'static str; 2], &'static str)>) {
    if !is_root() {
        return;
    }
    let mut found = Vec::new();
    for (options, changes, through) in all {
        let Some(missed) = missed(options, changes, through) else { continue };
        found.extend(missed);
    }
    assert!(found.is_empty(), "{} missed: {found:#?}", found.len());
}

#[test]
fn who_has_mapped_what_an_overlay_shows_for_writing_is_found_under_all_names() {
    let all = BEFORE.into_iter().flat_map(|first| SINCE.map(|then| [first, then]));
    check(all.map(|changes| (OPTIONS, changes, "m")));
}

#[test]
fn who_has_mapped_a_file_of_a_layer_for_writing_is_found_under_all_names() {
    let all = SINCE.into_iter().flat_map(|then| ["u", "l"].map(|through| (then, through)));
    let all = all.filter(|&(then, through)| through == "u" || !then.starts_with("removed"));
    check(all.map(|(then, through)| (OPTIONS, ["chmod and rename", then], through)));
}

#[test]
fn numbers_that_an_overlay_makes_up_hide_no_map() {
    let options = "metacopy=on,redirect_dir=on,xino=on,index=on";
    let all = SINCE.into_iter().flat_map(|then| ["m", "u"].map(|through| (then, through)));
    check(all.map(move |(then, through)| (options, ["chmod", then], through)));
}
