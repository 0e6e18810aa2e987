//! Names: links of file systems are followed, links of `/proc` stand for open files and are not.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use stack::{Host, Own, PathKind, inspect};

use crate::common::Scratch;
use crate::same_bytes::{Lab, is_root, refusal};

#[test]
fn names_that_say_where_they_lead_are_followed() {
    let scratch = Scratch::new("ordinary");
    fs::create_dir_all(scratch.0.join("a/b")).unwrap();
    let file = scratch.file("a/b/f", b"x");
    symlink("b", scratch.0.join("a/link")).unwrap();
    symlink(scratch.0.join("a/link/f"), scratch.0.join("to-file")).unwrap();
    for name in ["a/b/f", "a/link/f", "to-file", "a/link/../b/./f"] {
        let name = scratch.0.join(name);
        assert_eq!(inspect(&Host::this(), &name).unwrap().path.resolved, file);
        assert!(refusal(&name, &Own::default()).is_none(), "{}", name.display());
    }
    for directory in ["a/b", "a/link", "a/b/", "a/link/", "a/link/."] {
        let found = inspect(&Host::this(), &scratch.0.join(directory)).unwrap().path;
        assert_eq!((found.kind, found.resolved), (PathKind::Directory, scratch.0.join("a/b")));
    }
    let new = inspect(&Host::this(), &scratch.0.join("a/link/new")).unwrap().path;
    assert_eq!((new.kind, new.resolved), (PathKind::Missing, scratch.0.join("a/b/new")));
    let relative = inspect(&Host::this(), Path::new("Cargo.toml")).unwrap();
    assert_eq!(relative.path.resolved, std::env::current_dir().unwrap().join("Cargo.toml"));
}

#[test]
fn links_to_open_files_are_refused_and_so_are_links_in_a_circle() {
    let scratch = Scratch::new("magic");
    let path = scratch.file("f", b"first");
    let open = File::open(&path).unwrap();
    let number = open.as_raw_fd();
    let link = scratch.0.join("link");
    symlink(format!("/proc/self/fd/{number}"), &link).unwrap();
    symlink("circle", scratch.0.join("circle")).unwrap();
    let names = [
        PathBuf::from(format!("/proc/self/fd/{number}")),
        PathBuf::from(format!("/dev/fd/{number}")),
        PathBuf::from(format!("/proc/self/root{}", path.display())),
        PathBuf::from(format!("/proc/self/root{}/new", scratch.0.display())),
        PathBuf::from("/proc/self/cwd/Cargo.toml"),
        link,
        scratch.0.join("circle"),
    ];
    for name in names {
        let error = inspect(&Host::this(), &name).map(|found| found.path.resolved).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("through a link in /proc"), "{}: {text}", name.display());
        assert!(error.hint().is_some());
    }
}

#[test]
fn the_store_is_our_own_as_a_loop_device() {
    if !is_root() {
        return;
    }
    let mut lab = Lab::new("own-store");
    let store = lab.disk("st.db");
    let own = Own { store: Some(store.clone()), ..Own::default() };
    for file in [&store, &lab.disk("st.db-journal")] {
        let Some(device) = lab.attach(file) else { return };
        let refusal = refusal(&device, &own).unwrap();
        assert!(refusal.to_string().contains("the store of results"), "{refusal}");
    }
}
