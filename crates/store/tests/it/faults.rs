use std::path::Path;

use store::{Store, StoreError};

use crate::{add, sample, scratch};

fn filled(path: &Path) -> String {
    add(&mut Store::open(path).unwrap())
}

/// A socket stands for all that is no file. Opening a pipe would wait for ever.
#[test]
fn what_is_no_file_is_no_store() {
    let path = scratch("what_is_no_file");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    for result in [Store::open(&path), Store::open_read_only(&path)] {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::NotAStore(_)), "{error}");
    }
}

/// Our mark is no proof.
#[test]
fn a_store_that_lacks_its_tables_is_damaged() {
    let path = scratch("lacks_its_tables");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE run (mine); INSERT INTO run VALUES (1)").unwrap();
    other.pragma_update(None, "application_id", 0x504c_494d).unwrap();
    other.pragma_update(None, "user_version", 19).unwrap();
    drop(other);
    let store = Store::open_read_only(&path).unwrap();
    let error = store.list().unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("no such") && !source.contains("SELECT"), "{source}");
}

#[test]
fn a_store_that_is_not_there() {
    let path = scratch("a_store_that_is_not_there");
    let error = Store::open_read_only(&path).unwrap_err();
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error}");
    assert!(!path.exists());
    // A directory in its place; a file where a directory is wanted.
    std::fs::create_dir(&path).unwrap();
    assert!(matches!(Store::open(&path).unwrap_err(), StoreError::IsDirectory(_)));
    let file = path.with_file_name("file");
    std::fs::write(&file, "").unwrap();
    let error = Store::open(&file.join("plimsoll.db")).unwrap_err();
    assert!(matches!(error, StoreError::CannotOpen { .. }), "{error}");
}

#[test]
fn an_empty_file_becomes_a_store_only_when_opened_for_writing() {
    let path = scratch("an_empty_file");
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Store::open_read_only(&path).unwrap_err(), StoreError::Empty(_)));
    assert_eq!(filled(&path), "r1");
}

#[test]
fn reading_only_writes_nothing() {
    let path = scratch("reading_only");
    let id = filled(&path);
    let mut store = Store::open_read_only(&path).unwrap();
    let error = store.add_visit(&id, &sample::visit(1)).unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(error.hint().is_some());
    assert_eq!(store.load(&id).unwrap().visits.len(), 1);
}

#[test]
fn many_may_open_a_new_store_at_once() {
    for round in 0..5 {
        let path = scratch(&format!("many_may_open_{round}"));
        let mut ids: Vec<String> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..6).map(|_| scope.spawn(|| filled(&path))).collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        ids.sort();
        assert_eq!(ids, ["r1", "r2", "r3", "r4", "r5", "r6"]);
    }
}

#[test]
fn a_bad_value_names_run_and_column() {
    let path = scratch("a_bad_value");
    let id = filled(&path);
    // The byte before the checksum is a count: it reads as well as the one that was written.
    let flip = "UPDATE worker SET gaps = CAST(substr(gaps, 1, length(gaps) - 5) || x'05'
                    || substr(gaps, -4) AS BLOB)";
    for (trigger, sql, what) in [
        ("op_is_kept", "UPDATE op SET latency = substr(latency, 1, 9)", "latency of visit 0 of"),
        ("worker_is_kept", flip, "gaps of visit 0 of"),
        ("run_is_kept", "UPDATE run SET seed = 'x'", "seed of"),
        ("visit_is_kept", "UPDATE visit SET repeat = -1", "repeat of visit 0 of"),
        ("cell_is_kept", "UPDATE cell SET coordinates = '[1]'", "coordinates of"),
    ] {
        let raw = rusqlite::Connection::open(&path).unwrap();
        raw.execute_batch(&format!("DROP TRIGGER {trigger}; BEGIN; {sql}; COMMIT")).unwrap();
        drop(raw);
        let error = Store::open(&path).unwrap().load(&id).unwrap_err().to_string();
        assert!(error.contains(&format!("{what} {id}")), "{error}");
        std::fs::remove_file(&path).unwrap();
        filled(&path);
    }
}

/// Ten bytes of each say that it has 2^31 bits, all zero.
#[test]
fn a_few_bytes_in_each_of_many_visits_cannot_ask_for_much_memory() {
    let path = scratch("a_few_bytes");
    let id = filled(&path);
    let mut store = Store::open(&path).unwrap();
    (1..3).for_each(|order| store.add_visit(&id, &sample::visit(order)).unwrap());
    drop(store);
    let raw = rusqlite::Connection::open(&path).unwrap();
    raw.execute_batch(
        "DROP TRIGGER visit_is_kept;
         UPDATE visit SET completions = x'018080808008018080808008'",
    )
    .unwrap();
    drop(raw);
    let error = Store::open(&path).unwrap().load(&id).unwrap_err().to_string();
    assert!(error.contains("completions of visit 2 of r1"), "{error}");
    assert!(error.contains("2147483648 bits are more than the 0 that are left"), "{error}");
}

/// Whatever is wrong with the bytes, it ends in a run or in an error.
#[test]
fn a_damaged_file_never_panics() {
    let path = scratch("a_damaged_file");
    filled(&path);
    let good = std::fs::read(&path).unwrap();
    assert!(good.len() > 50_000);
    let mut failures = 0;
    for step in 0..200usize {
        let mut bad = good.clone();
        // Scattered single bytes, then whole stretches, then cuts.
        match step {
            0..120 => bad[(step * 7919) % good.len()] ^= 0xff,
            120..160 => {
                let at = (step * 104_729) % (good.len() - 512);
                bad[at..at + 512].fill(step as u8);
            }
            _ => bad.truncate(good.len() * (step - 160) / 40),
        }
        std::fs::write(&path, &bad).unwrap();
        let outcome = Store::open(&path).and_then(|s| s.list().and_then(|_| s.load("r1")));
        if let Err(error) = outcome {
            assert!(!error.to_string().is_empty());
            failures += 1;
        }
    }
    assert!(failures > 30, "{failures}");
}
