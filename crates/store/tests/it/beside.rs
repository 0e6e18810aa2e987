//! Names beside the store that somebody took beforehand: nothing is written through them.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use store::{Store, StoreError};

use crate::{sample, scratch};

const PRECIOUS: &[u8] = b"mine, and longer than what a lock says of its holder, whoever that is";

fn pipe(path: &Path) {
    let done = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(done.success());
}

/// What can have a name: how it is made, and whether it is refused.
type Way<'a> = (&'a str, &'a dyn Fn(&Path));

fn ways<'a>(precious: &'a Path, nothing: &'a Path, with: &mut dyn FnMut(Way)) {
    with(("symbolic link", &|name| symlink(precious, name).unwrap()));
    with(("dangling link", &|name| symlink(nothing, name).unwrap()));
    with(("hard link", &|name| std::fs::hard_link(precious, name).unwrap()));
    with(("pipe", &|name| pipe(name)));
    with(("directory", &|name| std::fs::create_dir(name).unwrap()));
}

fn clear(path: &Path) {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir(path).unwrap(),
        Ok(_) => std::fs::remove_file(path).unwrap(),
        Err(_) => {}
    }
}

#[test]
fn a_lock_is_not_made_through_what_is_there() {
    let path = scratch("a_lock_is_not_made_through");
    let store = {
        let mut store = Store::open(&path).unwrap();
        store.create_run(&sample::header(), &[]).unwrap();
        store
    };
    let lock = path.with_file_name("plimsoll.db-r1.lock");
    let (precious, nothing) = (path.with_file_name("precious"), path.with_file_name("nothing"));
    std::fs::write(&precious, PRECIOUS).unwrap();
    ways(&precious, &nothing, &mut |(what, put)| {
        put(&lock);
        assert!(!store.is_live("r1"), "{what}");
        let refused = store.claim("r1").unwrap_err();
        assert!(matches!(refused, StoreError::NotBeside { .. }), "{what}: {refused:?}");
        assert!(refused.hint().is_some());
        assert_eq!(std::fs::read(&precious).unwrap(), PRECIOUS, "{what}");
        assert!(!nothing.exists(), "{what}");
        assert!(std::fs::symlink_metadata(&lock).is_ok(), "{what}: it stays");
        clear(&lock);
    });
    // A file of ours that was given the name of a lock.
    std::fs::write(&lock, PRECIOUS).unwrap();
    assert!(matches!(store.claim("r1"), Err(StoreError::NotBeside { .. })));
    assert_eq!(std::fs::read(&lock).unwrap(), PRECIOUS);
    // What a killed holder left is taken over, whatever part of it was written.
    for left in ["", "proc", "process 17 on a-host-of-a-long-name-that-is-longer-than-ours"] {
        std::fs::write(&lock, left).unwrap();
        drop(store.claim("r1").unwrap());
        assert!(!lock.exists());
    }
}

#[test]
fn a_lock_that_became_another_file_stays() {
    let path = scratch("a_lock_that_became_another");
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &[]).unwrap();
    let lock = path.with_file_name("plimsoll.db-r1.lock");
    let claim = store.claim("r1").unwrap();
    std::fs::remove_file(&lock).unwrap();
    std::fs::write(&lock, PRECIOUS).unwrap();
    drop(claim);
    assert_eq!(std::fs::read(&lock).unwrap(), PRECIOUS);
}

#[test]
fn no_journal_is_written_through_what_is_there() {
    for side in ["-wal", "-shm", "-journal"] {
        let path = scratch(&format!("no_journal_is_written_through{side}"));
        let (precious, nothing) = (path.with_file_name("precious"), path.with_file_name("nothing"));
        std::fs::write(&precious, PRECIOUS).unwrap();
        drop(Store::open(&path).unwrap().create_run(&sample::header(), &[]).unwrap());
        let name = path.with_file_name(format!("plimsoll.db{side}"));
        ways(&precious, &nothing, &mut |(what, put)| {
            for is_there in [true, false] {
                put(&name);
                let hidden = path.with_file_name("hidden");
                if !is_there {
                    std::fs::rename(&path, &hidden).unwrap();
                }
                for result in [Store::open(&path), Store::open_read_only(&path)] {
                    let refused = result.unwrap_err();
                    assert!(
                        matches!(refused, StoreError::NotBeside { .. }),
                        "{side} {what}: {refused:?}"
                    );
                }
                assert_eq!(std::fs::read(&precious).unwrap(), PRECIOUS, "{side} {what}");
                assert!(!nothing.exists(), "{side} {what}");
                clear(&name);
                if !is_there {
                    assert!(!path.exists(), "{side} {what}: nothing is made");
                    std::fs::rename(&hidden, &path).unwrap();
                }
            }
        });
        assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 1);
    }
}

/// Somebody else's file where everybody may put one is refused; in a directory of a group it is that of
/// a colleague.
#[test]
fn foreign_files_are_refused_where_everybody_may_write() {
    let path = scratch("foreign_files");
    drop(Store::open(&path).unwrap());
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &[]).unwrap();
    drop(store);
    let folder = path.parent().unwrap();
    let journal = path.with_file_name("plimsoll.db-journal");
    let lock = path.with_file_name("plimsoll.db-r1.lock");
    for (mode, is_refused) in [(0o1777, true), (0o777, true), (0o2775, false), (0o755, false)] {
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode)).unwrap();
        for name in [&journal, &lock] {
            std::fs::write(name, "").unwrap();
            if std::os::unix::fs::chown(name, Some(4711), None).is_err() {
                println!("skipped: only root gives files away");
                return;
            }
            let outcome = Store::open(&path).and_then(|store| store.claim("r1").map(drop));
            assert_eq!(outcome.is_err(), is_refused, "{mode:o} {name:?}: {outcome:?}");
            clear(name);
            // One's own is fine everywhere.
            std::fs::write(name, "").unwrap();
            assert_eq!(std::fs::metadata(name).unwrap().nlink(), 1);
            Store::open(&path).and_then(|store| store.claim("r1").map(drop)).unwrap();
            clear(name);
        }
    }
}

/// A store of such a name would be taken for a part of the other store.
#[test]
fn no_store_has_a_name_of_another_store() {
    let path = scratch("a_name_of_another_store");
    let run = |store: &mut Store| store.create_run(&sample::header(), &[]).unwrap();
    run(&mut Store::open(&path).unwrap());
    for end in ["-wal", "-shm", "-journal", "-r9.lock", ".studies"] {
        let name = PathBuf::from(format!("{}{end}", path.display()));
        let taken = store::taken(&name, None);
        assert_eq!(taken, Some(store::Taken::Beside(path.clone())), "{end}");
        for open in [Store::open, Store::open_read_only] {
            let error = open(&name).unwrap_err();
            assert!(matches!(error, StoreError::BadName { .. }), "{end}: {error:?}");
            assert!(!name.exists(), "{end}");
        }
        // Without that store it is a name like any other.
        let free = path.with_file_name(format!("free.db{end}"));
        run(&mut Store::open(&free).unwrap());
    }
}

#[test]
fn a_name_that_leaves_no_room_for_a_journal_is_refused() {
    let path = scratch("too_long_a_name");
    for length in [239, 247, 248, 250, 251, 252, 255, 256, 300] {
        let name = path.with_file_name("x".repeat(length));
        for open in [Store::open, Store::open_read_only] {
            let error = open(&name).unwrap_err();
            assert!(matches!(error, StoreError::BadName { .. }), "{length}: {error:?}");
            assert!(error.to_string().contains(&length.to_string()), "{error}");
            assert!(!name.exists(), "{length}");
        }
    }
    let longest = path.with_file_name("x".repeat(238));
    let mut store = Store::open(&longest).unwrap();
    let id = store.create_run(&sample::header(), &[]).unwrap();
    drop(store.claim(&id).unwrap());
}

#[test]
fn a_name_that_ends_in_a_slash_is_no_file() {
    let path = scratch("a_slash");
    for name in ["x/", "new/x//"] {
        let name = PathBuf::from(format!("{}/{name}", path.parent().unwrap().display()));
        for open in [Store::open, Store::open_read_only] {
            let error = open(&name).unwrap_err();
            assert!(matches!(error, StoreError::BadName { .. }), "{error:?}");
        }
    }
    assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
}
