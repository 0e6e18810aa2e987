//! What lies beside a store, or in its place, and is not the store's: refused before SQLite opens
//! anything, and not changed. A damaged log: read as far as it goes, and not changed either.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use store::{Store, StoreError};

use crate::{kill, sample, scratch, tidy};

/// Name and content of every file.
type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(store: &Path) -> Files {
    let entries = std::fs::read_dir(store.parent().unwrap()).unwrap();
    entries
        .map(|entry| entry.unwrap().path())
        .map(|p| (p.clone(), std::fs::read(p).unwrap()))
        .collect()
}

fn put_back(store: &Path, before: &Files) {
    for path in files(store).keys() {
        std::fs::remove_file(path).unwrap();
    }
    before.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
}

fn side(store: &Path, end: &str) -> PathBuf {
    PathBuf::from(format!("{}{end}", store.display()))
}

fn filled(path: &Path) {
    drop(open_filled(path));
}

fn open_filled(path: &Path) -> Store {
    let mut store = Store::open(path).unwrap();
    for _ in 0..3 {
        let id = store.create_run(&sample::header(), &sample::cells()).unwrap();
        store.add_visit(&id, &sample::visit(0)).unwrap();
    }
    store
}

type Open = fn(&Path) -> Result<Store, StoreError>;
const OPENS: [(&str, Open); 2] = [("write", Store::open), ("read", Store::open_read_only)];

/// Both ways of opening it are refused, and change no file.
fn refused(what: &str, path: &Path, is_right: impl Fn(&StoreError) -> bool) {
    let before = files(path);
    for (how, open) in OPENS {
        let outcome = open(path).map(|store| store.list().map(|runs| runs.len()));
        let after = files(path);
        let changed: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|name| before.get(*name) != after.get(*name))
            .collect();
        assert!(changed.is_empty(), "{what}: {how} changed {changed:?}, and gave {outcome:?}");
        let Err(error) = outcome else { unreachable!("{what}: {how}: opened: {outcome:?}") };
        assert!(is_right(&error), "{what}: {how}: {error:?}");
        assert!(error.hint().is_some());
    }
}

const fn beside(error: &StoreError) -> bool {
    matches!(error, StoreError::NotBeside { .. })
}

const fn foreign(error: &StoreError) -> bool {
    matches!(error, StoreError::NotAStore(_))
}

#[test]
fn regular_files_under_side_names_are_refused_and_stay() {
    let notes = "my notes\n".repeat(500).into_bytes();
    for (what, is_there) in [("a store", true), ("no store", false), ("an empty file", false)] {
        let path = scratch("regular_files_under_side_names");
        if is_there {
            filled(&path);
            tidy(&path);
        } else if what == "an empty file" {
            std::fs::write(&path, "").unwrap();
        }
        let before = files(&path);
        for end in ["-wal", "-shm", "-journal"] {
            for bytes in [&notes[..], b"short", &notes[..60]] {
                put_back(&path, &before);
                std::fs::write(side(&path, end), bytes).unwrap();
                refused(&format!("{what}, {end} of {} bytes", bytes.len()), &path, beside);
            }
        }
    }
}

/// A database of others with a live log, made in another place.
fn live(place: &Path, sql: &str) -> Files {
    let name = place.with_file_name("elsewhere.db");
    let other = Connection::open(&name).unwrap();
    other.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
    other.execute_batch(sql).unwrap();
    let found = ["", "-wal"].map(|end| std::fs::read(side(&name, end)).unwrap());
    drop(other);
    std::fs::remove_file(&name).unwrap();
    ["", "-wal"].map(|end| side(place, end)).into_iter().zip(found).collect()
}

#[test]
fn databases_of_others_are_not_opened() {
    let path = scratch("databases_of_others");
    let mut table = String::from("CREATE TABLE precious (x); INSERT INTO precious VALUES (1);");
    // With tables in the log alone, then in the file as well.
    put_back(&path, &live(&path, &table));
    refused("a table in the log", &path, foreign);
    table.push_str("PRAGMA wal_checkpoint(RESTART); INSERT INTO precious VALUES (2);");
    put_back(&path, &live(&path, &table));
    refused("a table in the file", &path, foreign);
    let mark =
        "PRAGMA application_id = 77; PRAGMA wal_checkpoint(RESTART); PRAGMA user_version = 3;";
    put_back(&path, &live(&path, mark));
    refused("another's mark", &path, foreign);
    let genuine = std::fs::read(side(&path, "-wal")).unwrap();
    for (text, end) in [(&b"a letter"[..], "-wal"), (&b"a longer letter".repeat(100), "-journal")] {
        put_back(
            &path,
            &Files::from([(path.clone(), text.to_vec()), (side(&path, end), genuine.clone())]),
        );
        refused(end, &path, foreign);
    }
    // Of a later version, and of a version that there never was.
    for (version, is_right) in [(99, newer as fn(&StoreError) -> bool), (-5, foreign)] {
        put_back(&path, &Files::new());
        filled(&path);
        let raw = Connection::open(&path).unwrap();
        raw.pragma_update(None, "user_version", version).unwrap();
        let found: Files = ["", "-wal"]
            .map(|end| (side(&path, end), std::fs::read(side(&path, end)).unwrap()))
            .into();
        drop(raw);
        put_back(&path, &found);
        refused(&format!("version {version}"), &path, is_right);
    }
}

const fn newer(error: &StoreError) -> bool {
    matches!(error, StoreError::Newer { found: 99, .. })
}

/// A journal as SQLite leaves it when it is killed in a transaction.
fn hot_journal(place: &Path) -> Vec<u8> {
    let name = place.with_file_name("elsewhere.db");
    std::fs::copy(place, &name).unwrap();
    let other = Connection::open(&name).unwrap();
    other.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).unwrap();
    other
        .execute_batch(
            "PRAGMA cache_size = 1; BEGIN; DROP TABLE IF EXISTS run_seal; CREATE TABLE x (y);",
        )
        .unwrap();
    for _ in 0..50 {
        other.execute("INSERT INTO x VALUES (zeroblob(9000))", []).unwrap();
    }
    let found = std::fs::read(side(&name, "-journal")).unwrap();
    drop(other);
    std::fs::remove_file(&name).unwrap();
    assert!(found.len() > 512);
    found
}

#[test]
fn a_stale_journal_is_not_rolled_back_into_a_store() {
    let path = scratch("a_stale_journal");
    filled(&path);
    tidy(&path);
    let journal = hot_journal(&path);
    std::fs::write(side(&path, "-journal"), &journal).unwrap();
    let _ = std::fs::remove_file(side(&path, "-wal"));
    let _ = std::fs::remove_file(side(&path, "-shm"));
    refused("a journal beside a store", &path, beside);
    std::fs::remove_file(side(&path, "-journal")).unwrap();
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 3);
    // All of a store may be in its log, and the file is as one that is being made.
    put_back(&path, &Files::new());
    kill(open_filled(&path));
    let small = [&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7][..], &[0; 504]].concat();
    for journal in [&journal, &small] {
        std::fs::write(side(&path, "-journal"), journal).unwrap();
        refused("a journal beside a log", &path, beside);
    }
}

/// Wherever the making of a store was cut short, the next one goes on.
#[test]
fn a_store_that_was_killed_while_it_was_made_opens() {
    let path = scratch("killed_while_made");
    let blank = |marked: bool, wal: bool| {
        put_back(&path, &Files::new());
        let raw = Connection::open(&path).unwrap();
        raw.pragma_update(None, "auto_vacuum", "INCREMENTAL").unwrap();
        if marked {
            raw.pragma_update(None, "application_id", 0x504c_494d).unwrap();
        }
        if wal {
            raw.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        }
    };
    let mut journal = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    journal.resize(512, 0);
    for (marked, wal) in [(false, false), (true, false), (false, true), (true, true)] {
        for journal in [None, Some(&[0u8; 512][..]), Some(&journal[..])] {
            blank(marked, wal);
            if let Some(journal) = journal {
                std::fs::write(side(&path, "-journal"), journal).unwrap();
            }
            let read = Store::open_read_only(&path);
            assert!(matches!(read, Err(StoreError::Empty(_))), "{marked} {wal}: {read:?}");
            filled(&path);
            assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), 3);
        }
    }
}

/// Until schema 16 a file had no mark before its log was put back into it.
#[test]
fn a_store_whose_file_has_no_mark_yet_is_known_by_its_log() {
    let path = scratch("known_by_its_log");
    kill(open_filled(&path));
    let mut bytes = std::fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 4096, "all of it is in the log");
    bytes[68..72].fill(0);
    std::fs::write(&path, bytes).unwrap();
    assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), 3);
    assert_eq!(Store::open(&path).unwrap().list().unwrap().len(), 3);
}

/// The mark is in the file itself before anything is in the log.
#[test]
fn a_new_store_bears_its_mark() {
    let path = scratch("bears_its_mark");
    filled(&path);
    assert_eq!(std::fs::read(&path).unwrap()[68..72], *b"PLIM");
}

#[test]
fn a_log_of_another_page_size_is_refused() {
    let path = scratch("another_page_size");
    filled(&path);
    tidy(&path);
    let own = std::fs::read(&path).unwrap();
    let log = live(&path, "CREATE TABLE x (y)").remove(&side(&path, "-wal")).unwrap();
    put_back(&path, &Files::from([(path.clone(), own)]));
    let mut other = log;
    other[8..12].copy_from_slice(&8192u32.to_be_bytes());
    std::fs::write(side(&path, "-wal"), other).unwrap();
    refused("another page size", &path, beside);
}

/// A store with most of what it has in its log, and the log.
fn logged(path: &Path) -> (PathBuf, Vec<u8>) {
    kill(open_filled(path));
    let log = side(path, "-wal");
    let _ = std::fs::remove_file(side(path, "-shm"));
    let bytes = std::fs::read(&log).unwrap();
    (log, bytes)
}

#[test]
fn a_damaged_log_is_read_and_not_changed() {
    let path = scratch("a_damaged_log");
    let (log, good) = logged(&path);
    // A byte of a page, of a stored checksum, of the salts; a sector of zeros; the head.
    let frame = |n: usize| 32 + n * (24 + 4096);
    let middle = good.len() / 4120 / 2;
    for at in [frame(middle) + 100, frame(middle) + 18, frame(middle) + 9, 20] {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        std::fs::write(&log, bad).unwrap();
        let _ = std::fs::remove_file(side(&path, "-shm"));
        let before = files(&path);
        let doubt = store::doubt(&path);
        assert!(doubt.is_some(), "{at}");
        for _ in 0..2 {
            let listed =
                Store::open_read_only(&path).map(|store| store.list().map(|runs| runs.len()));
            assert!(files(&path) == before, "{at}: {:?}, {listed:?}", files(&path).keys());
            assert_eq!(store::doubt(&path), doubt, "{at}");
        }
        let error = Store::open(&path).unwrap_err();
        assert!(files(&path) == before, "{at}: {error:?}");
        let (text, hint) = (error.to_string(), error.hint().unwrap());
        assert!(text.contains("plimsoll.db-wal"), "{text}");
        assert!(hint.contains("mv ") && hint.contains("plimsoll.db-wal.damaged"), "{hint}");
    }
    // What the hint says helps: the file alone goes on.
    std::fs::rename(&log, side(&path, "-wal.damaged")).unwrap();
    assert!(Store::open(&path).unwrap().list().unwrap().is_empty());
}

/// The runs before the damage are shown.
#[test]
fn what_is_before_the_damage_is_read() {
    let path = scratch("before_the_damage");
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &sample::cells()).unwrap();
    let log = side(&path, "-wal");
    let at = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
    (0..3).for_each(|_| drop(store.create_run(&sample::header(), &sample::cells()).unwrap()));
    kill(store);
    let mut bytes = std::fs::read(&log).unwrap();
    bytes[at + 1000] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), 1);
    assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), 1);
    assert!(Store::open(&path).is_err());
}

/// A last frame that does not fit may be damage, or what a machine wrote as it went down.
#[test]
fn a_torn_end_is_a_doubt_and_keeps_nobody_from_writing() {
    let path = scratch("a_torn_end");
    let (log, good) = logged(&path);
    let mut bad = good.clone();
    let last = bad.len() - 100;
    bad[last] ^= 1;
    std::fs::write(&log, bad).unwrap();
    let before = files(&path);
    assert!(store::doubt(&path).is_some());
    drop(Store::open_read_only(&path).unwrap().list().unwrap());
    assert!(files(&path) == before);
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &[]).unwrap();
    drop(store);
    assert_eq!(store::doubt(&path), None);
}

/// What a transaction wrote to the log before it was taken back is no damage: nothing in it was stored.
#[test]
fn the_rest_of_a_transaction_that_failed_is_no_doubt() {
    let path = scratch("a_transaction_that_failed");
    filled(&path);
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "PRAGMA cache_size = 1; PRAGMA wal_autocheckpoint = 0; BEGIN; CREATE TABLE x (y);",
    )
    .unwrap();
    let log = side(&path, "-wal");
    let length = || std::fs::metadata(&log).unwrap().len();
    let before = length();
    for _ in 0..40 {
        raw.execute("INSERT INTO x VALUES (zeroblob(9000))", []).unwrap();
    }
    raw.execute_batch("ROLLBACK").unwrap();
    assert!(length() > before + 40 * 4096, "it was in the log");
    assert_eq!(store::doubt(&path), None, "not written over");
    let mut store = Store::open(&path).unwrap();
    store.add_warning("r1", &record::Warning::new("a", "b")).unwrap();
    assert!(length() > before + 40 * 4096, "most of it still is");
    assert_eq!(store::doubt(&path), None, "written over at its beginning");
    drop((store, raw));
}

/// Another file has the store's name: the log of the one before is not put into it.
#[test]
fn a_store_that_goes_away_takes_its_log_along() {
    let path = scratch("goes_away");
    let backup = path.with_file_name("backup");
    filled(&path);
    tidy(&path);
    std::fs::copy(&path, &backup).unwrap();
    let good = std::fs::read(&backup).unwrap();
    for is_removed in [false, true] {
        let mut store = Store::open(&path).unwrap();
        store.create_run(&sample::header(), &sample::cells()).unwrap();
        match is_removed {
            true => std::fs::remove_file(&path).unwrap(),
            false => std::fs::rename(&backup, &path).unwrap(),
        }
        assert!(matches!(store.add_visit("r1", &sample::visit(1)), Err(StoreError::Gone(_))));
        drop(store);
        let left: Vec<_> = files(&path).into_keys().collect();
        assert!(left.iter().all(|name| *name == path), "{left:?}");
        if !is_removed {
            assert!(std::fs::read(&path).unwrap() == good);
            assert_eq!(Store::open_read_only(&path).unwrap().list().unwrap().len(), 3);
        }
    }
    // A log that is another's by now stays.
    let mut store = Store::open(&path).unwrap();
    store.create_run(&sample::header(), &sample::cells()).unwrap();
    std::fs::rename(&path, &backup).unwrap();
    std::fs::write(side(&path, "-wal.new"), "another's").unwrap();
    std::fs::rename(side(&path, "-wal.new"), side(&path, "-wal")).unwrap();
    drop(store);
    assert_eq!(std::fs::read(side(&path, "-wal")).unwrap(), b"another's");
}
