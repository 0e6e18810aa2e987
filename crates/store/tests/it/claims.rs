use store::{Store, StoreError};

use crate::{sample, scratch};

#[test]
fn a_run_has_one_owner() {
    let path = scratch("a_run_has_one_owner");
    let mut store = Store::open(&path).unwrap();
    let id = store.create_run(&sample::header(), &[]).unwrap();
    let other = store.create_run(&sample::header(), &[]).unwrap();
    let claim = store.claim(&id).unwrap();
    assert!(store.list().unwrap()[0].live);
    assert!(!store.list().unwrap()[1].live);
    // The same file under another name.
    let link = path.with_file_name("link.db");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let error = Store::open(&link).unwrap().claim(&id).unwrap_err();
    let expected =
        format!("run r1 is under way in another process: process {} on", std::process::id());
    assert!(error.to_string().starts_with(&expected), "{error}");
    let removal = store.remove(&[other.clone(), id.clone()]);
    assert!(matches!(removal, Err(StoreError::Claimed { .. })));
    assert_eq!(store.list().unwrap().len(), 2);
    drop(claim);
    drop(store.claim(&id).unwrap());
    store.remove(&[id, other]).unwrap();
    let left: Vec<_> = std::fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".lock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_run_that_does_not_exist_cannot_be_claimed() {
    let store = Store::open(&scratch("cannot_be_claimed")).unwrap();
    assert!(matches!(store.claim("r1"), Err(StoreError::NoSuchRun { .. })));
}

/// Another process has it by now: whose lock was removed does not go on.
#[test]
fn a_lock_that_another_has_is_not_renewed() {
    let path = scratch("lock_taken");
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &[]).unwrap();
    let mut first = store.claim("r1").unwrap();
    first.renew().unwrap();
    std::fs::remove_file(path.with_file_name("plimsoll.db-r1.lock")).unwrap();
    let second = store.claim("r1").unwrap();
    assert!(matches!(first.renew(), Err(StoreError::Claimed { .. })));
    drop(first);
    assert!(store.is_live("r1"));
    drop(second);
}

/// Many race for one run: at any moment at most one has it.
#[test]
fn claims_exclude_each_other() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let path = scratch("claims_exclude_each_other");
    let id = Store::open(&path).unwrap().create_run(&sample::header(), &[]).unwrap();
    let (inside, won) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let store = Store::open(&path).unwrap();
                for _ in 0..50 {
                    if let Ok(claim) = store.claim(&id) {
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        won.fetch_add(1, Ordering::SeqCst);
                        // Long enough for another to open the file, see it removed, and lock it.
                        std::thread::sleep(std::time::Duration::from_micros(200));
                        inside.fetch_sub(1, Ordering::SeqCst);
                        drop(claim);
                    }
                }
            });
        }
    });
    assert!(won.into_inner() > 0);
}
