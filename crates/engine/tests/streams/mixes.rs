//! The read-write mixes of the MySQL study.

use device::Op;

use crate::support::*;

#[test]
fn eight_shares_by_six_loads_of_8_kib() {
    let cells = play_suite("read-write-mix", &["time=40ms", "file_size=64MiB"]);
    assert_eq!(cells.len(), 48);
    for cell in &cells {
        let share = [1.0, 0.95, 0.9, 0.83, 0.8, 0.7, 0.5, 0.0][cell.coordinates[0]];
        let load = [1, 2, 5, 10, 20, 40][cell.coordinates[1]];
        let n = 400 * load;
        assert_eq!((cell.requests.len(), cell.streams[0].threads), (n, 1));
        let reads = cell.requests.iter().filter(|request| request.op == Op::Read).count() as f64;
        let (n, sd) = (n as f64, (n as f64 * share * (1.0 - share)).sqrt());
        assert!((reads - n * share).abs() <= 5.0 * sd, "{share} at {load}: {reads} of {n}");
        assert!(cell.requests.iter().all(|r| r.length == 8192 && r.offset % 8192 == 0));
    }
}
