//! Calibrations are kept, and the newest of a machine is what counts.

use store::{Store, StoredCalibration};

use crate::scratch;

fn of(machine: &str, started_unix_ns: i64, body: &str) -> StoredCalibration {
    let (machine, body) = (machine.to_owned(), body.to_owned());
    StoredCalibration { machine, started_unix_ns, version: 1, body }
}

#[test]
fn the_newest_of_a_machine_counts() {
    let path = scratch("calibrations");
    let mut store = Store::open(&path).unwrap();
    assert_eq!(store.calibration("db1").unwrap(), None);
    for calibration in [of("db1", 9, "{}"), of("db2", 1, "{\"a\":1}"), of("db1", 5, "[]")] {
        store.add_calibration(&calibration).unwrap();
    }
    // The one added last, also where the clock was set back between the two.
    assert_eq!(store.calibration("db1").unwrap(), Some(of("db1", 5, "[]")));
    assert_eq!(store.calibration("db2").unwrap().unwrap().body, "{\"a\":1}");
    assert!(store.add_calibration(&of("db1", 6, "no json")).is_err());
}

#[test]
fn it_is_never_rewritten() {
    let path = scratch("calibrations_kept");
    Store::open(&path).unwrap().add_calibration(&of("db1", 1, "{}")).unwrap();
    let raw = rusqlite::Connection::open(&path).unwrap();
    let error = raw.execute("UPDATE calibration SET body = '[]'", []).unwrap_err();
    assert!(error.to_string().contains("never rewritten"), "{error}");
}

/// What was changed is refused, and the next one takes its place.
#[test]
fn a_damaged_one_is_replaced() {
    for harm in [
        "DROP TRIGGER calibration_is_kept; UPDATE calibration SET body = '[1]' WHERE number = 1",
        "PRAGMA foreign_keys = OFF; DELETE FROM calibration WHERE number = 1",
        "DELETE FROM calibration_seal WHERE number = 1",
    ] {
        let path = scratch("calibrations_damaged");
        let mut store = Store::open(&path).unwrap();
        ["db1", "db2"].iter().for_each(|m| store.add_calibration(&of(m, 1, "{}")).unwrap());
        rusqlite::Connection::open(&path).unwrap().execute_batch(harm).unwrap();
        let error = store.calibration("db1").unwrap_err();
        assert!(matches!(error, store::StoreError::BadValue { .. }), "{harm}: {error}");
        store.add_calibration(&of("db1", 2, "{}")).unwrap();
        assert_eq!(store.calibration("db1").unwrap(), Some(of("db1", 2, "{}")), "{harm}");
        assert_eq!(store.calibration("db2").unwrap(), Some(of("db2", 1, "{}")), "{harm}");
    }
}

/// A name in the index differs from that in the row: the newest is found all the same.
#[test]
fn a_damaged_index_hides_none() {
    let path = scratch("calibrations_index");
    let mut store = Store::open(&path).unwrap();
    for n in 1..=2 {
        store.add_calibration(&of("db-with-a-long-name", n, "{}")).unwrap();
    }
    drop(store);
    let raw = rusqlite::Connection::open(&path).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'calibration_by_machine'";
    let root: u32 = raw.query_row(root, [], |row| row.get(0)).unwrap();
    drop(raw);
    let mut bytes = std::fs::read(&path).unwrap();
    let page = &mut bytes[(root as usize - 1) * 4096..root as usize * 4096];
    // The newest is written last, in front of the other.
    let name = b"db-with-a-long-name";
    let at = page.windows(name.len()).position(|window| window == name).unwrap();
    page[at + name.len() - 1] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let store = Store::open_read_only(&path).unwrap();
    let newest = store.calibration("db-with-a-long-name").unwrap();
    assert_eq!(newest, Some(of("db-with-a-long-name", 2, "{}")));
}
